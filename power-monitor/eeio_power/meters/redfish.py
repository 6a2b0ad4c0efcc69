"""The power reading of a server's management controller (BMC), by Redfish.

`redfish:https://BMC,user=NAME[,chassis=ID][,cafile=FILE | ,insecure=yes][,timeout_s=2]`; the
password comes from `password_file=` or the environment, never from the spec, which is stored with
the results. With `report=`, the BMC's telemetry is read (`_redfish_report`).

**Which chassis.** A BMC may show parts of the machine as chassis too: for a GB200 the modules and
each processor, all with a power reading. The system's is the chassis that a system
(`/redfish/v1/Systems`) links to, and that is no part by its `ChassisType` (Component, Module, ...).
If no system links to one, all chassis that are no parts are candidates. One that several systems
link to contains all of them, and is not used. If several candidates give a reading, the meter
rejects them and lists them with their watts: `chassis=` picks one.

**Which reading.** The first of these that the chassis has:

- `EnvironmentMetrics` -> `PowerWatts.Reading` (Redfish 2020.4 on),
- `Power` -> `PowerControl[].PowerConsumedWatts`, or Fujitsu's field for it,
- `Sensors` in watts, chosen by their names and values (`eeio_power.system_sensor`),
- `PowerSubsystem` -> `PowerSupplies` -> `Metrics`: the sum of all supplies that are present,
- `Power` -> `PowerSupplies[].PowerInputWatts`: the same in older BMCs,

and only if `PhysicalContext` does not name a part (CPU, Memory, GPU, ...).

A system that is `PowerState` Off does not run eeio: another BMC was named. The controller of a
power shelf lists no system: its reading is doubtful.

BMCs are rarely faster than once a second, many slower (`period_s=`); most give integer watts.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eeio.files.inputs import CHASSIS
from eeio_power import http_json
from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Verified, _redfish_report, number_option
from eeio_power.reading import BEHIND_SUPPLY, MACHINE, WALL, Contents, Domain, Kind, all_but
from eeio_power.sysfs import SHARED, chassis_of
from eeio_power.system_sensor.agreement import LEAST_EFFICIENCY, LEAST_OF_OUTPUTS, USUAL_EFFICIENCY
from eeio_power.system_sensor.controller import complete_system
from eeio_power.system_sensor.rules import NAMED, SUPPLY_INPUTS, SUPPLY_OUTPUTS
from eeio_power.system_sensor.sensor_names import (
    domain_of,
    is_no_power,
    listed,
    names_all,
    possible_w,
)

OPTIONS = {
    "url": "the BMC, such as https://bmc.example",
    "chassis": "the chassis' Id (default: the only one of a system that gives a reading)",
    "sensor": "the sensor of that chassis that measures the system, by its Id or Name",
    "report": "a metric report of the BMC's telemetry, by its Id",
    "metric": "the metric of that report, by its MetricId or MetricProperty",
    "period_s": "how often the BMC takes a new reading or report, s (default 1, or the report's)",
    **http_json.OPTIONS,
}
ARGUMENT = "url"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
NATIVE_PERIOD_S = 1.0
DELAY = BMC
ACCURACY = 0.05
RESOLUTION_W = 1.0
MAX_POWER_W = 50e3

_CHASSIS, _SYSTEMS = "/redfish/v1/Chassis", "/redfish/v1/Systems"
_METRICS, _POWER = "/EnvironmentMetrics", "/Power"
# DMTF's Chassis schema: parts of a machine, and enclosures of several machines.
_NO_SYSTEM = frozenset(
    (
        "Card",
        "Cartridge",
        "Component",
        "Module",
        "Expansion",
        "IPBasedDrive",
        "StorageEnclosure",
        "PowerStrip",
        "HeatExchanger",
        "ImmersionTank",
        "Zone",
        "Rack",
        "RackGroup",
        "Row",
        "Pod",
    )
)
_IS_PART = " is a "
_CARD = "Card"
"""Intel's controllers have the machine's power in the card of its board."""
_NODES = frozenset(("Blade", "Sled"))
# The largest numbers of 15 and 16 bits, instead of a missing value.
_NO_POWER_W = (32767.0, 65535.0)
_POWER_NAME = re.compile(r"p(o)?w(e)?r|watt|pin|pout|consum", re.I)
_MOST_LISTED = 8
_NOT_READ = ("Absent", "Disabled", "UnavailableOffline")
_MOST_AVERAGED_S = 60.0
"""A sensor that averages longer does not show the power of a run."""
# iRMC leaves PowerConsumedWatts empty and has the total in a vendor field.
_FUJITSU = ("Oem", "ts_fujitsu", "ChassisPowerConsumption", "CurrentPowerConsumptionW")
# DMTF's PhysicalContext: a reading with one of these (or none) is of the complete chassis.
_COMPLETE = frozenset(("Chassis", "Intake", "ACInput", "PowerSubsystem", "SystemBoard", ""))
# What supplies report, and the least part of it that the machine draws.
_OF_SUPPLIES = {
    "PowerInputWatts": USUAL_EFFICIENCY,
    "PowerOutputWatts": LEAST_OF_OUTPUTS,
    "LastPowerOutputWatts": LEAST_OF_OUTPUTS,
}
_REPORTED = "the power that the controller reports of its chassis"
_SUPPLIES = "PowerSupply"
"""Cisco's context of what all supplies draw."""


@dataclass(frozen=True)
class RedfishMeter:
    """One chassis of one BMC."""

    spec: str
    name: str
    client: http_json.JsonClient
    found: "_Reading"
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND

    @property
    def channels(self) -> Sequence[Channel]:
        return (
            Channel(
                name=f"redfish:{self.found.domain}",
                domain=self.found.domain,
                quantity="power_w",
                accuracy_relative=ACCURACY,
                resolution=RESOLUTION_W,
                max_power_w=MAX_POWER_W,
                contents=self.found.contents,
                remark=self.found.remark,
                doubt=self.found.doubt,
                rule=self.found.rule,
            ),
        )

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the BMC is silent or has no reading now."""
        paths = dict.fromkeys(path for path, _ in self.found.places)
        answers = {path: self.client.get(path) for path in paths}
        for path, answer in answers.items():
            self._check_supplies(path, answer)
        total_w = math.fsum(
            self._read(path, keys, answers[path]) for path, keys in self.found.places
        )
        if total_w <= 0.0:
            where = f"{self.client.host}{self.found.places[0][0]}"
            raise PowerError(f"{where}: {total_w:g} W for a running machine: it is not measured")
        return [total_w]

    def _check_supplies(self, path: str, answer: Any) -> None:
        """Raises PowerError if Power has other supplies than at the start: they share the load."""
        places = [keys for where, keys in self.found.places if where == path]
        at_start = []
        for keys in places:
            if keys[0] == "PowerSupplies":
                at_start.append(keys[1])
        if at_start and at_start != _present(answer):
            raise PowerError(f"{self.client.host}{path}: the power supplies changed; start again")

    def _read(self, path: str, keys: tuple[str | int, ...], answer: Any) -> float:
        power_w = http_json.number_at(answer, *keys)
        where = f"{self.client.host}{path}"
        if power_w is None:
            raise PowerError(f"{where}: no power reading in the answer")
        # A BMC that starts again may list its entries in another order.
        if keys[0] == "PowerControl" and _control(answer) != keys:
            raise PowerError(
                f"{where}: the entries of {keys[0]} changed, so the complete system's "
                "entry is unknown"
            )
        if power_w in _NO_POWER_W:
            raise PowerError(f"{where}: {power_w:g} W, its largest number, is not a measurement")
        return power_w

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


@dataclass(frozen=True)
class _Reading:
    """The places that add up to a chassis' power, and their sum now."""

    places: tuple[tuple[str, tuple[str | int, ...]], ...]
    power_w: float
    contents: Contents = MACHINE
    remark: str | None = None
    doubt: str | None = None
    domain: Domain = "system"
    rule: str | None = None


def open_meter(
    spec: str, options: Mapping[str, str], root: Path
) -> RedfishMeter | _redfish_report.RedfishReport:
    """Find the chassis and take a first reading. Raises PowerError."""
    url = options.get("url")
    if url is None:
        raise PowerError(f"meter '{spec}': which BMC? Such as redfish:https://bmc.example,user=me")
    client = http_json.client(spec, options, url)
    period_s = number_option(spec, options, "period_s", above_zero=True)
    name = options.get("name", "redfish")
    report = options.get("report")
    if "metric" in options and report is None:
        client.close()
        raise PowerError(f"meter '{spec}': metric= requires report=")
    wanted = options.get("metric")
    try:
        try:
            reading = _system_reading(client, options.get("chassis"), options.get("sensor"))
        except PowerError:
            if wanted is None:
                raise
            _linked(client)  # raises an error for a system that is off
            reading = _Reading((), 0.0)
        if chassis_of(root) and "chassis" not in options and reading.contents == MACHINE:
            doubt = SHARED.format(what="the BMC's power") + "; name its chassis with chassis="
            reading = replace(reading, doubt=reading.doubt or doubt)
        if report is not None:
            return _of_report(spec, name, client, reading, report, wanted, period_s)
    except PowerError as error:
        client.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    return RedfishMeter(spec, name, client, reading, period_s or NATIVE_PERIOD_S)


def _of_report(
    spec: str,
    name: str,
    client: http_json.JsonClient,
    found: _Reading,
    report: str,
    wanted: str | None,
    period_s: float | None,
) -> _redfish_report.RedfishReport:
    """The metric of a report that is the system's power, or the named one. Raises PowerError."""
    places: set[str] = set()
    if len(found.places) > 1 and wanted is None:
        raise PowerError("the system's power is a sum, so no metric contains it; give metric=")
    for path, keys in found.places if len(found.places) == 1 else ():
        places.add(f"{path.rstrip('/')}#{'/'.join(map(str, keys))}")
        sources = []
        if keys == ("Reading",):
            sources = [path]
        if keys == ("PowerWatts", "Reading"):
            sources.append(_text_at(client.get(path)["PowerWatts"], "DataSourceUri"))
        # A sensor's own address stands for its reading.
        places |= {form for source in sources if source for form in (source, f"{source}#Reading")}
    (channel,) = RedfishMeter(spec, name, client, found).channels
    return _redfish_report.open_report(
        spec, name, client, report, wanted, period_s, channel, places, found.power_w
    )


def find(root: Path) -> Detected:
    """Which BMC exists cannot be detected from here."""
    return Detected(
        "redfish",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for BMCs",
        "name it: --meter redfish:https://ADDRESS,user=NAME",
    )


def _system_reading(
    client: http_json.JsonClient, wanted: str | None, sensor: str | None = None
) -> _Reading:
    """The one reading that is the system's. Raises PowerError if there is none, or several."""
    if sensor is not None:
        return _named_sensor(client, wanted, sensor)
    linked, has_systems, unlinked = _linked(client)
    candidates, everything = _candidates(client, wanted, linked)
    readings, reasons = _readings(client, candidates, wanted is not None, linked)
    reasons.sort(key=lambda reason: " W" not in reason)  # those with powers first
    if not readings:
        others = [path for path in everything if path not in candidates]
        raise PowerError(_no_reading(client, others, reasons, has_systems))
    if len(readings) > 1:
        raise PowerError(
            f"several chassis of {client.host} report power and may contain each other: "
            f"{_listed(readings)}; select the system's with chassis={readings[0][0]}"
        )
    name, reading = readings[0]
    if wanted is not None:
        return replace(reading, doubt=None)
    silent = len(candidates) - 1 - sum(_IS_PART in reason for reason in reasons)
    if linked:
        reason = None
        if unlinked:
            reason = f"{', '.join(unlinked)} links to no chassis"
    elif has_systems:
        reason = None
        if silent:
            reason = "no system links to a chassis"
    else:
        reason = f"{client.host} lists no system"
    if reason is None:
        return reading
    doubt = f"{reason}: that {name} is this machine is assumed"
    return replace(reading, doubt=f"{doubt}; if it is, name it with chassis={name}")


def _candidates(
    client: http_json.JsonClient, wanted: str | None, linked: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    """The chassis that may be the system's, and all chassis. Raises PowerError for one that several
    systems share."""
    if wanted is not None:
        return [f"{_CHASSIS}/{wanted}"], []
    everything = _members(client, _CHASSIS)
    shared = sorted(_name(path) for path, times in linked.items() if times > 1)
    if shared:
        raise PowerError(
            f"several systems of {client.host} are in the chassis {', '.join(shared)}: if this "
            f"machine is all of them, name it with chassis={shared[0]}"
        )
    return [path for path in everything if path.rstrip("/") in linked] or everything, everything


def _no_reading(
    client: http_json.JsonClient, others: Sequence[str], reasons: Sequence[str], has_systems: bool
) -> str:
    """Why no candidate gives the power of a system, with other chassis that give one."""
    powers = _any_power(client, others)
    if powers:
        return (
            f"the system of {client.host} links to parts only ({'; '.join(reasons[:3])}); "
            f"others give {_listed(powers)}; name the system's with chassis={powers[0][0]}"
        )
    listed = ""
    if reasons:
        listed = f": {'; '.join(reasons[:3])}"
    no_system = "; it lists no computer system"
    if has_systems:
        no_system = ""
    return f"no chassis of {client.host} reports the power of a system{listed}{no_system}"


def _readings(
    client: http_json.JsonClient, paths: Sequence[str], is_named: bool, linked: Mapping[str, int]
) -> tuple[list[tuple[str, _Reading]], list[str]]:
    """Chassis with their readings, and why others have none."""
    readings, reasons = [], []
    for path in paths:
        try:
            is_linked = linked.get(path.rstrip("/")) == 1
            reading, reason = _reading(client, path, is_named, is_linked)
        except PowerError as error:
            if is_named or "HTTP 404" not in str(error):
                raise
            reading, reason = None, str(error)  # a list may have a link that leads nowhere
        if reading is not None:
            readings.append((_name(path), reading))
        elif reason is not None:
            reasons.append(reason)
    return readings, reasons


def _any_power(client: http_json.JsonClient, paths: Sequence[str]) -> list[tuple[str, _Reading]]:
    """The power of other chassis, of cards too, for the user to choose from."""
    readings = []
    for path in paths:
        with suppress(PowerError):
            reading, _ = _reading(client, path, is_named=True)
            if reading is not None:
                readings.append((_name(path), reading))
    return readings


def _listed(found: Sequence[tuple[str, _Reading]]) -> str:
    return ", ".join(f"{name} {reading.power_w:g} W" for name, reading in found)


def _reading(
    client: http_json.JsonClient, path: str, is_named: bool = False, is_linked: bool = False
) -> tuple[_Reading | None, str | None]:
    """A chassis's reading for all of itself, or why there is none. A card is read if it is named, a
    rack if one system links to it.

    Raises PowerError if the chassis itself is not available.
    """
    name = _name(path)
    chassis = client.get(path)
    kind = _text_at(chassis, "ChassisType")
    if kind == "Rack" and is_linked:
        kind = "RackMount"  # as Cisco's servers call themselves
    if kind in _NO_SYSTEM and not (is_named and kind == _CARD):
        return None, f"{name}{_IS_PART}{kind}"
    if _text_at(chassis, "PowerState") == "Off":
        return None, f"{name} is off, and this machine runs"
    doubt = None
    if kind == "Enclosure":
        doubt = f"{name} is an {kind}: it may contain other machines"
    is_node = kind in _NODES or _is_in_enclosure(client, chassis)
    contents = MACHINE
    if is_node:
        contents = all_but("fans", "supply")
    reading, reason, no_answer = _of_chassis(client, chassis, path, contents)
    if reading is None:
        reading, reason = _of_its_sensors(client, chassis, path, reason)
    if reading is None:
        return None, reason or no_answer
    if contents != MACHINE:
        reading = replace(reading, contents=contents)
    return replace(reading, doubt=reading.doubt or doubt), None


def _of_chassis(
    client: http_json.JsonClient, chassis: Any, path: str, contents: Contents
) -> tuple[_Reading | None, str | None, str | None]:
    """The power that the controller reports of the complete chassis; why there is none, and why it
    does not answer."""
    name = _name(path)
    reason = no_answer = None
    for resource in (_METRICS, _POWER):
        address = _linked_place(chassis, path, resource)
        try:
            answer = client.get(address)
        except PowerError as error:
            no_answer = no_answer or str(error)
            continue  # a chassis need not have it
        keys = _metrics(client, answer) if resource == _METRICS else _control(answer)
        power_w = None
        if keys is not None:
            power_w = http_json.number_at(answer, *keys)
        if keys is None or power_w is None:
            reason = f"{name} has no power of the complete chassis{_instead(answer)}"
        elif power_w <= 0.0 or power_w in _NO_POWER_W:
            reason = f"{name} reports {power_w:g} W for a running machine"
        else:
            rule = f"{_REPORTED}: {name}{resource}"
            reading = _Reading(((address, keys),), power_w, contents, rule=rule)
            if keys[0] == "PowerControl":
                reading = replace(reading, doubt=_control_doubt(name, answer, keys, power_w))
            return reading, None, None
    return None, reason, no_answer


def _of_its_sensors(
    client: http_json.JsonClient, chassis: Any, path: str, reason: str | None
) -> tuple[_Reading | None, str | None]:
    """The sum of sensors of a chassis, or why there is none; `reason` is why it has no power of its
    own."""
    for search in (_sensors, _supplies, _old_supplies):
        try:
            reading = search(client, _linked_place(chassis, path, _PLACES[search.__name__]))
        except PowerError:
            continue  # a chassis need not have it
        if isinstance(reading, _Reading):
            return reading, None
        if reading is not None:
            reason = f"{reason}; {reading}" if reason else f"{_name(path)}: {reading}"
    return None, reason


def _instead(answer: Any) -> str:
    """What PowerControl has instead of the power now: means over a time, powers of parts."""
    controls = None
    if isinstance(answer, Mapping):
        controls = answer.get("PowerControl")
    names = []
    for k, control in enumerate(controls if isinstance(controls, list) else []):
        context = _text_at(control, "PhysicalContext")
        power_w = http_json.number_at(answer, "PowerControl", k, "PowerConsumedWatts")
        if power_w is not None:
            names.append(f"{power_w:g} W of {context or _text_at(control, 'Name') or 'no name'}")
        metrics = ("PowerControl", k, "PowerMetrics")
        mean_w = http_json.number_at(answer, *metrics, "AverageConsumedWatts")
        minutes = http_json.number_at(answer, *metrics, "IntervalInMin")
        if mean_w is not None and power_w is None:
            over = ""
            if minutes is not None:
                over = f" over {60.0 * minutes:.3g} s"
            names.append(f"{mean_w:g} W, a mean{over}")
    if names:
        return f" (only {', '.join(names)})"
    return ""


def _control_doubt(
    name: str, answer: Any, keys: tuple[str | int, ...], power_w: float
) -> str | None:
    """Why an entry of PowerControl may not be the complete machine's, by what the supplies say."""
    context = _text_at(answer["PowerControl"][keys[1]], "PhysicalContext")
    if context == _SUPPLIES and _is_of_all(answer, power_w) is None:
        return f"{name}: that its power is of all supplies is assumed"
    for key, share in _OF_SUPPLIES.items():
        each_w = [http_json.number_at(answer, "PowerSupplies", k, key) for k in _present(answer)]
        sum_w = math.fsum(w for w in each_w if w is not None and w not in _NO_POWER_W)
        if power_w < share * sum_w:
            return (
                f"{name} reports {power_w:g} W and its supplies {sum_w:g} W: it may be of one "
                "supply, or of one of several machines"
            )
    return None


def _is_in_enclosure(client: http_json.JsonClient, chassis: Any) -> bool:
    """Whether the chassis is in one that has the fans and supplies of several machines."""
    links = None
    if isinstance(chassis, Mapping):
        links = chassis.get("Links")
    around = _link(links, "ContainedBy")
    if around is None:
        return False
    try:
        return _text_at(client.get(around), "ChassisType") in ("Enclosure", "Shelf")
    except PowerError:
        return False


_PLACES = {"_sensors": "/Sensors", "_supplies": "/PowerSubsystem", "_old_supplies": _POWER}


def _sensors(client: http_json.JsonClient, path: str) -> _Reading | str | None:
    """The sensors in watts that add up to the system; why they do not; None without any."""
    values, of_parts = _listed_powers(client, path)
    if not values:
        if of_parts:
            return f"its sensors in watts are of parts: {_largest(of_parts)}"
        return None
    chosen = complete_system(values)
    total_w = math.fsum(values[name] or 0.0 for name in chosen.sensors)
    if not chosen.sensors or total_w <= 0.0:
        reason = chosen.reason or "none measures"
        return f"of its sensors in watts ({_largest({**values, **of_parts})}) {reason}"
    summed = None
    if len(chosen.sensors) > 1:
        summed = f"the sum of {', '.join(chosen.sensors)}"
    remark = "; ".join(filter(None, (summed, chosen.note))) or None
    members = {_last(member): member for member in _members(client, path)}
    places_of_sensors = tuple((members[name], ("Reading",)) for name in chosen.sensors)
    rule = chosen.text([*values, *of_parts])
    return _Reading(places_of_sensors, total_w, chosen.contents, remark, chosen.doubt, rule=rule)


def _listed_powers(
    client: http_json.JsonClient, path: str
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Sensors in watts of the machine or its supplies, and of parts by their contexts, W."""
    values: dict[str, float | None] = {}
    of_parts: dict[str, float | None] = {}
    for member in _members(client, path):
        if not _POWER_NAME.search(_last(member)):
            continue
        try:
            sensor = client.get(member)
        except PowerError as error:
            if "HTTP 404" not in str(error):
                values[_last(member)] = None  # a sum would lack it
            continue
        if not _is_power(sensor):
            continue
        power_w = possible_w(http_json.number_at(sensor, "Reading"))
        if _text_at(sensor, "PhysicalContext") in _COMPLETE | {_SUPPLIES}:
            values[_last(member)] = power_w
            continue
        name = _text_at(sensor, "Name")
        of_parts[name if name and name not in of_parts else _last(member)] = power_w
    return values, of_parts


def _is_power(sensor: Any) -> bool:
    """Whether a sensor is there and reports watts, and not the distance to a limit."""
    status = None
    if isinstance(sensor, Mapping):
        status = sensor.get("Status")
    if _text_at(status, "State") in _NOT_READ or _text_at(sensor, "ReadingBasis") not in (
        "",
        "Zero",
    ):
        return False
    averaged = _text_at(sensor, "AveragingInterval")
    if averaged and _redfish_report.is_longer(averaged, _MOST_AVERAGED_S):
        return False
    units, kind = _text_at(sensor, "ReadingUnits"), _text_at(sensor, "ReadingType")
    return units == "W" or (not units and kind in ("Power", "Watts"))


def _largest(sensors: Mapping[str, float | None]) -> str:
    """Those with the highest powers, and how many more there are."""
    names = sorted(sensors, key=lambda name: -(sensors[name] or 0.0))
    more = len(names) - _MOST_LISTED
    text = listed({name: sensors[name] for name in names[:_MOST_LISTED]})
    if more > 0:
        return f"{text} and {more} more"
    return text


def _named_sensor(client: http_json.JsonClient, chassis: str | None, wanted: str) -> _Reading:
    """The sensor of a chassis with this Id or Name. Raises PowerError if it is not one, or gives no
    power."""
    if chassis is None:
        raise PowerError("sensor= requires chassis=")
    _linked(client)  # raises an error for a system that is off
    around = client.get(f"{_CHASSIS}/{chassis}")
    if _text_at(around, "PowerState") == "Off":
        raise PowerError(f"{chassis} is off, and this machine runs")
    member, sensor = _with_name(client, f"{_CHASSIS}/{chassis}/Sensors", wanted)
    power_w = http_json.number_at(sensor, "Reading")
    if not _is_power(sensor) or not power_w or power_w in _NO_POWER_W:
        raise PowerError(f"{client.host}{member}: gives no power")
    name, context = _text_at(sensor, "Name"), _text_at(sensor, "PhysicalContext")
    text = f"{_last(member)} {name} {context}"
    if is_no_power(text):
        raise PowerError(f"{client.host}{member}: is not the power of a time")
    domain, contents = domain_of(text)
    if domain == "system":
        contents = Contents()
    doubt = None
    if not any(text and names_all(text, domain) for text in (_last(member), name)):
        doubt = f"the name {wanted} does not say what it contains"
    kind = _text_at(around, "ChassisType")
    if domain == "system" and context not in _COMPLETE:
        doubt = f"{wanted} is of {context}, by the BMC"
    elif kind in _NO_SYSTEM:
        doubt = f"{chassis}{_IS_PART}{kind}"
    place = (member, ("Reading",))
    rule = f"{NAMED}: {wanted}"
    return _Reading((place,), power_w, contents, doubt=doubt, domain=domain, rule=rule)


def _with_name(client: http_json.JsonClient, path: str, wanted: str) -> tuple[str, Any]:
    """The address and the answer of the one sensor with this Id or Name. Raises PowerError."""
    fitting = []
    for member in _members(client, path):
        if _last(member) == wanted:
            return member, client.get(member)
        if _POWER_NAME.search(_last(member)):
            sensor = client.get(member)
            if _text_at(sensor, "Name") == wanted:
                fitting.append((member, sensor))
    if len(fitting) != 1:
        raise PowerError(f"{client.host}{path}: {len(fitting)} sensors have the name {wanted}")
    return fitting[0]


def _supplies(client: http_json.JsonClient, path: str) -> _Reading | str | None:
    """All supplies' inputs, or outputs; why they cannot be added; None without any."""
    where = _link(client.get(path), "PowerSupplies") or f"{path}/PowerSupplies"
    listing = client.get(where)
    members = _members_of(listing, client.host, where)
    count = http_json.number_at(listing, "Members@odata.count")
    if count is not None and count > len(members):
        return f"{len(members)} of {count:g} supplies are listed"
    supplies = []
    for m in members:
        if not _is_absent(supply := client.get(m)):
            supplies.append((m, supply))
    remark = f"the sum of the power supplies {', '.join(_last(member) for member, _ in supplies)}"
    for key, contents in (("InputPowerWatts", WALL), ("OutputPowerWatts", BEHIND_SUPPLY)):
        each = []
        for member, supply in supplies:
            place, power_w = _link(supply, "Metrics") or f"{member}/Metrics", None
            with suppress(PowerError):
                power_w = http_json.number_at(client.get(place), key, "Reading")
            each.append(_Supply((place, (key, "Reading")), power_w, _rating_w(supply)))
        if (reading := _added(each, contents, remark)) is not None:
            return reading
    return None


def _old_supplies(client: http_json.JsonClient, path: str) -> _Reading | str | None:
    """All supplies' inputs in Power; why they cannot be added; None without any."""
    answer = client.get(path)
    each = []
    there = _present(answer)
    if there and (expected := _expected_supplies(answer)) > len(answer["PowerSupplies"]):
        return f"{len(answer['PowerSupplies'])} of {expected} supplies are listed"
    for k in there:
        keys = ("PowerSupplies", k, "PowerInputWatts")
        rating_w = _rating_w(answer["PowerSupplies"][k])
        each.append(_Supply((path, keys), http_json.number_at(answer, *keys), rating_w))
    given_w = [http_json.number_at(answer, "PowerSupplies", k, "PowerOutputWatts") for k in there]
    if there and all(w == 0.0 for w in given_w):
        return "its supplies give 0 W: the machine is off"
    remark = None
    if len(each) > 1:
        remark = f"the sum of {len(each)} power supplies"
    reading = _added(each, WALL, remark)
    if isinstance(reading, _Reading):
        return replace(reading, doubt=_supplies_doubt(answer, there, reading.power_w))
    if reading is None and (outputs := _outputs(answer)):
        return f"its supplies report only what they give: {outputs}"
    return reading


def _supplies_doubt(answer: Any, there: Sequence[int], sum_w: float) -> str | None:
    """Why the sum of the supplies' inputs may not be the machine's power."""
    supplies = [answer["PowerSupplies"][k] for k in there]
    gains = next((text for supply in supplies if (text := _gains_power(supply))), None)
    if gains is not None:
        return gains
    if _lacks_a_number([_text_at(supply, "Name") for supply in supplies]):
        return "by their numbers, a supply is missing"
    controls = None
    if isinstance(answer, Mapping):
        controls = answer.get("PowerControl")
    for k in range(len(controls) if isinstance(controls, list) else 0):
        other_w = http_json.number_at(answer, "PowerControl", k, "PowerConsumedWatts")
        if other_w and not USUAL_EFFICIENCY * sum_w <= other_w <= sum_w / USUAL_EFFICIENCY:
            return f"its supplies draw {sum_w:g} W and its PowerControl is {other_w:g} W"
    if len(supplies) == 1:
        # Older controllers list only those that they can read.
        name = _text_at(supplies[0], "Name") or "the only one listed"
        return f"the supply {name} is assumed to be the only one"
    return None


def _gains_power(supply: Any) -> str | None:
    """Whether a supply gives clearly more than it draws, as text."""
    draws_w = http_json.number_at(supply, "PowerInputWatts")
    gives_w = http_json.number_at(supply, "PowerOutputWatts")
    if draws_w is None or gives_w is None or gives_w <= draws_w / LEAST_OF_OUTPUTS:
        return None
    return f"{_text_at(supply, 'Name') or 'a supply'} draws {draws_w:g} W and gives {gives_w:g} W"


def _lacks_a_number(names: Sequence[str]) -> bool:
    """Whether the last numbers in the names of supplies do not follow each other."""
    numbers = []
    for name in names:
        if digits := re.findall(r"[0-9]+", name):
            numbers.append(int(digits[-1]))
    are_different = len(set(numbers)) == len(names) > 1
    return are_different and max(numbers) - min(numbers) >= len(numbers)


def _outputs(answer: Any) -> str:
    """`201 W, 0 W`; empty if the supplies report no outputs."""
    for key in ("PowerOutputWatts", "LastPowerOutputWatts"):
        each_w = [http_json.number_at(answer, "PowerSupplies", k, key) for k in _present(answer)]
        if any(w is not None for w in each_w):
            return ", ".join("no reading" if w is None else f"{w:g} W" for w in each_w)
    return ""


def _expected_supplies(answer: Any) -> int:
    """How many supplies Power should list, by its count and by its sets of redundant ones."""
    counts = [http_json.number_at(answer, "PowerSupplies@odata.count") or 0]
    for group in (answer, *answer["PowerSupplies"]):
        redundancy = None
        if isinstance(group, Mapping):
            redundancy = group.get("Redundancy")
        for one in redundancy if isinstance(redundancy, list) else []:
            members = None
            if isinstance(one, Mapping):
                members = one.get("RedundancySet")
            if not isinstance(members, list):
                members = []
            links = {_text_at(member, "@odata.id") for member in members}
            counts.append(len([link for link in links if "/PowerSupplies/" in link]))
    return int(max(counts))


@dataclass(frozen=True)
class _Supply:
    """Where a supply's power is, that power now, and what the supply can give, W."""

    place: tuple[str, tuple[str | int, ...]]
    power_w: float | None
    rating_w: float | None

    @property
    def reports_its_rating(self) -> bool:
        return bool(self.power_w and self.rating_w and self.power_w >= self.rating_w)


def _added(
    each: Sequence[_Supply], contents: Contents, remark: str | None
) -> _Reading | str | None:
    """The sum of all supplies; why they cannot be added; None if none gives a power."""
    known = [s for s in each if s.power_w is not None and s.power_w not in _NO_POWER_W]
    rated = next((supply for supply in known if supply.reports_its_rating), None)
    if rated is not None:
        return (
            f"a supply of {rated.rating_w:g} W reports {rated.power_w:g} W: a rating, not a "
            "measurement"
        )
    total_w = math.fsum(supply.power_w or 0.0 for supply in known)
    if known and len(known) == len(each) and total_w > 0.0:
        rule = SUPPLY_INPUTS
        if contents == BEHIND_SUPPLY:
            rule = SUPPLY_OUTPUTS
        places = tuple(supply.place for supply in each)
        return _Reading(places, total_w, contents, remark, rule=rule)
    if known:
        return f"{len(known)} of {len(each)} supplies give a power reading"
    return None


def _rating_w(supply: Any) -> float | None:
    """What a supply can give, W."""
    ranges = supply.get("InputRanges")
    if not isinstance(ranges, list):
        ranges = []
    given = [http_json.number_at(supply, "PowerCapacityWatts")]
    for k in range(len(ranges)):
        given.append(http_json.number_at(supply, "InputRanges", k, "OutputWattage"))
    return max((w for w in given if w is not None), default=None)


def _present(answer: Any) -> list[int]:
    """Places of the supplies in Power that are not absent."""
    supplies = None
    if isinstance(answer, Mapping):
        supplies = answer.get("PowerSupplies")
    numbered = enumerate(supplies if isinstance(supplies, list) else [])
    return [k for k, supply in numbered if isinstance(supply, Mapping) and not _is_absent(supply)]


def _is_absent(supply: Any) -> bool:
    status = None
    if isinstance(supply, Mapping):
        status = supply.get("Status")
    return _text_at(status, "State") == "Absent"


def _link(answer: Any, key: str) -> str | None:
    """The link at a key, if it is one into this BMC."""
    target = _text_at(answer.get(key) if isinstance(answer, Mapping) else None, "@odata.id")
    if target.startswith("/redfish/v1/"):
        return target
    return None


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _name(path: str) -> str:
    return path.removeprefix(f"{_CHASSIS}/").rstrip("/")


def _linked_place(chassis: Any, path: str, place: str) -> str:
    """The link that the chassis gives: some BMCs accept no other form of it (HPE's end in a slash).
    Below the chassis, if it gives none."""
    link = None
    if isinstance(chassis, Mapping):
        link = chassis.get(place.strip("/"))
    reported = _text_at(link, "@odata.id")
    if reported.startswith(path.rstrip("/")):
        return reported
    return f"{path.rstrip('/')}{place}"


def _metrics(client: http_json.JsonClient, answer: Any) -> tuple[str | int, ...] | None:
    """The place of the power in EnvironmentMetrics; None if its sensor is one of a part."""
    excerpt = None
    if isinstance(answer, Mapping):
        excerpt = answer.get("PowerWatts")
    context = _text_at(excerpt, "PhysicalContext")
    source = _text_at(excerpt, "DataSourceUri")
    if not context and source.startswith("/redfish/v1/"):
        with suppress(PowerError):  # a sensor need not be there: the excerpt is
            context = _text_at(client.get(source), "PhysicalContext")
    if context in _COMPLETE:
        return ("PowerWatts", "Reading")
    return None


def _control(answer: Any) -> tuple[str | int, ...] | None:
    """The place of the complete chassis' power in PowerControl; None if that is not one entry."""
    controls = None
    if isinstance(answer, Mapping):
        controls = answer.get("PowerControl")
    places: list[tuple[str | int, ...]] = []
    of_supplies: list[tuple[str | int, ...]] = []
    for k, control in enumerate(controls if isinstance(controls, list) else []):
        keys = ("PowerControl", k, "PowerConsumedWatts")
        context = _text_at(control, "PhysicalContext")
        power_w = http_json.number_at(answer, *keys)
        if power_w is not None and context in _COMPLETE:
            places.append(keys)
        if (
            power_w is not None
            and context == _SUPPLIES
            and _is_of_all(answer, power_w) is not False
        ):
            of_supplies.append(keys)
    places = places or of_supplies
    if len(places) > 1:
        places = _by_name(answer, places) or places
    if places:
        if len(places) == 1:
            return places[0]
        return None
    if http_json.number_at(answer, *_FUJITSU) is not None:
        return _FUJITSU
    return None


def _by_name(answer: Any, places: list[tuple[str | int, ...]]) -> list[tuple[str | int, ...]]:
    """The entry with a name of the complete machine: Lenovo lists processors and memory, too."""
    named = {_text_at(answer["PowerControl"][keys[1]], "Name"): keys for keys in places}
    if len(named) < len(places):
        return []
    values = {name: http_json.number_at(answer, *keys) for name, keys in named.items()}
    return [named[name] for name in complete_system(values).sensors]


def _is_of_all(answer: Any, power_w: float) -> bool | None:
    """Whether a power is that of all supplies together, by what each of them reports; None if not
    all do."""
    there = _present(answer)
    each_w = [http_json.number_at(answer, "PowerSupplies", k, "PowerInputWatts") for k in there]
    if not each_w or None in each_w:
        return None
    sum_w = math.fsum(w for w in each_w if w is not None)
    return LEAST_EFFICIENCY * sum_w <= power_w <= sum_w / LEAST_EFFICIENCY


def _linked(client: http_json.JsonClient) -> tuple[Counter[str], bool, list[str]]:
    """The chassis that the systems link to, and how many do; empty where the BMC does not say.
    Whether there is a system at all: a power shelf has none. And the running systems that link to
    no chassis."""
    linked: Counter[str] = Counter()
    off: list[str] = []
    unlinked: list[str] = []
    running = False
    try:
        for member in _members(client, _SYSTEMS):
            system = client.get(member)
            if _text_at(system, "PowerState") == "Off":
                off.append(_last(member))
                continue
            running = True
            links = system.get("Links", {})
            found = {str(chassis["@odata.id"]).rstrip("/") for chassis in links.get("Chassis", [])}
            linked.update(found)
            if not found:
                unlinked += [_last(member)]
    except (PowerError, AttributeError, KeyError, TypeError):
        return Counter(), bool(off) or running, []
    if off and not running:
        raise PowerError(
            f"{', '.join(off)} of {client.host} is off, and this machine runs: is it another "
            "machine's BMC?"
        )
    return linked, running, unlinked


def _members(client: http_json.JsonClient, path: str) -> list[str]:
    return _members_of(client.get(path), client.host, path)


def _members_of(answer: Any, host: str, path: str) -> list[str]:
    try:
        members = [str(member["@odata.id"]) for member in answer["Members"]]
    except (KeyError, TypeError) as error:
        raise PowerError(f"{host}{path}: not a list of members") from error
    if len(members) > CHASSIS:
        raise PowerError(f"{host}{path}: {len(members)} members, more than {CHASSIS}")
    return [member for member in members if member.startswith(f"{path}/")]


def _text_at(answer: Any, key: str) -> str:
    """The text at a key; empty if there is none."""
    value = None
    if isinstance(answer, Mapping):
        value = answer.get(key)
    if isinstance(value, str):
        return value
    return ""
