"""The power reading of a server's management controller (BMC), by Redfish.

`redfish:https://BMC,user=NAME[,chassis=ID][,cafile=FILE | ,insecure=yes][,timeout_s=2]`; the
password comes from `password_file=` or the environment, never from the spec, which is stored with
the results.

**Which chassis.** A BMC may show parts of the machine as chassis too: for a GB200 the modules and
each processor, all with a power reading. The system's is the chassis that a system
(`/redfish/v1/Systems`) links to, and that is no part by its `ChassisType` (Component, Module, ...).
If no system links to one, all chassis that are no parts are candidates. One that several systems
link to contains all of them, and is not used. If several candidates give a reading, the meter
rejects them and lists them with their watts: `chassis=` picks one.

**Which reading.** The first of these that the chassis has:

- `EnvironmentMetrics` -> `PowerWatts.Reading` (Redfish 2020.4 on),
- `Power` -> `PowerControl[].PowerConsumedWatts`, or Fujitsu's field for it,

and only if `PhysicalContext` does not name a part (CPU, Memory, GPU, ...).

BMCs are rarely faster than once a second, many slower (`period_s=`); most give integer watts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_limits.inputs import CHASSIS
from eeio_power import http_json
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, number_option
from eeio_power.reading import MACHINE, Kind

OPTIONS = {
    "url": "the BMC, such as https://bmc.example",
    "chassis": "the chassis' Id (default: the only one of a system that gives a reading)",
    "period_s": "how often the BMC takes a new reading, s (default 1)",
    **http_json.OPTIONS,
}
ARGUMENT = "url"

KIND: Kind = "measured"
NATIVE_PERIOD_S = 1.0
ACCURACY = 0.05
RESOLUTION_W = 1.0
MAX_POWER_W = 50e3

_CHASSIS, _SYSTEMS = "/redfish/v1/Chassis", "/redfish/v1/Systems"
_METRICS, _POWER = "/EnvironmentMetrics", "/Power"
# DMTF's Chassis schema: parts of a machine, and enclosures of several machines.
_NO_SYSTEM = frozenset(
    (
        "Card", "Cartridge", "Component", "Module", "Expansion", "IPBasedDrive", "StorageEnclosure",
        "PowerStrip", "HeatExchanger", "ImmersionTank", "Zone", "Rack", "RackGroup", "Row", "Pod",
    )
)  # fmt: skip
# iRMC leaves PowerConsumedWatts empty and has the total in a vendor field.
_FUJITSU = ("Oem", "ts_fujitsu", "ChassisPowerConsumption", "CurrentPowerConsumptionW")
# DMTF's PhysicalContext: a reading with one of these (or none) is of the complete chassis.
_WHOLE = frozenset(("Chassis", "Intake", "ACInput", "PowerSubsystem", "SystemBoard", ""))


@dataclass(frozen=True)
class RedfishMeter:
    """One chassis of one BMC."""

    spec: str
    name: str
    client: http_json.JsonClient
    path: str
    keys: tuple[str | int, ...]
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND
    channels: Sequence[Channel] = (
        Channel(
            name="redfish:system",
            domain="system",
            quantity="power_w",
            accuracy_relative=ACCURACY,
            resolution=RESOLUTION_W,
            max_power_w=MAX_POWER_W,
            contents=MACHINE,
        ),
    )

    def read(self) -> Sequence[float | None]:
        """W. Raises PowerError if the BMC is silent or has no reading now."""
        answer = self.client.get(self.path)
        power_w = http_json.number_at(answer, *self.keys)
        where = f"{self.client.host}{self.path}"
        if power_w is None:
            raise PowerError(f"{where}: no power reading in the answer")
        # A BMC that starts again may list its entries in another order.
        if self.keys[0] == "PowerControl" and _control(answer) != self.keys:
            raise PowerError(
                f"{where}: the entries of {self.keys[0]} changed, so the complete system's "
                "entry is unknown"
            )
        if power_w <= 0.0:
            raise PowerError(f"{where}: {power_w:g} W for a running machine: it is not measured")
        return [power_w]

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


@dataclass(frozen=True)
class _Reading:
    """A place that gives a power now."""

    path: str
    keys: tuple[str | int, ...]
    power_w: float


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> RedfishMeter:
    """Find the chassis and take a first reading. Raises PowerError."""
    url = options.get("url")
    if url is None:
        raise PowerError(f"meter '{spec}': which BMC? Such as redfish:https://bmc.example,user=me")
    client = http_json.client(spec, options, url)
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    try:
        found = _system_reading(client, options.get("chassis"))
    except PowerError as error:
        client.close()
        raise PowerError(f"meter '{spec}': {error}") from error
    name = options.get("name", "redfish")
    return RedfishMeter(spec, name, client, found.path, found.keys, period_s)


def find(root: Path) -> Detected:
    """Which BMC exists cannot be detected from here."""
    return Detected(
        "redfish", KIND, ("system",), False, "eeio does not search the network for BMCs",
        "name it: --meter redfish:https://ADDRESS,user=NAME",
    )  # fmt: skip


def _system_reading(client: http_json.JsonClient, wanted: str | None) -> _Reading:
    """The one reading that is the system's. Raises PowerError if there is none, or several."""
    if wanted is not None:
        candidates = [f"{_CHASSIS}/{wanted}"]
    else:
        everything = _members(client, _CHASSIS)
        linked = _linked(client)
        shared = sorted(_name(path) for path, times in linked.items() if times > 1)
        if shared:
            raise PowerError(
                f"several systems of {client.host} are in the chassis {', '.join(shared)}: if this "
                f"machine is all of them, name it with chassis={shared[0]}"
            )
        candidates = [path for path in everything if path.rstrip("/") in linked] or everything
    found: list[tuple[str, _Reading]] = []
    reasons: list[str] = []
    for path in candidates:
        reading, reason = _reading(client, path)
        if reading is not None:
            found.append((_name(path), reading))
        elif reason is not None:
            reasons.append(reason)
    if not found:
        why = f": {'; '.join(reasons[:3])}" if reasons else ""
        raise PowerError(f"no chassis of {client.host} reports the power of a system{why}")
    if len(found) > 1:
        told = ", ".join(f"{name} {reading.power_w:g} W" for name, reading in found)
        raise PowerError(
            f"several chassis of {client.host} report power and may contain each other: {told}; "
            f"select the system's with chassis={found[0][0]}"
        )
    return found[0][1]


def _reading(client: http_json.JsonClient, path: str) -> tuple[_Reading | None, str | None]:
    """A chassis's reading for all of itself, or why there is none.

    Raises PowerError if the chassis itself is not available.
    """
    name = _name(path)
    chassis = client.get(path)
    kind = _text_at(chassis, "ChassisType")
    if kind in _NO_SYSTEM:
        return None, f"{name} is a {kind}"
    reason = None
    for place in (_METRICS, _POWER):
        where = _linked_place(chassis, path, place)
        try:
            answer = client.get(where)
        except PowerError as error:
            reason = reason or str(error)
            continue  # a chassis need not have it
        keys = _metrics(client, answer) if place == _METRICS else _control(answer)
        power_w = None if keys is None else http_json.number_at(answer, *keys)
        if keys is not None and power_w is not None:
            if power_w > 0.0:
                return _Reading(where, keys, power_w), None
            reason = f"{name} reports {power_w:g} W for a running machine"
            continue
        reason = f"{name} has no power of the complete chassis"
    return None, reason


def _name(path: str) -> str:
    return path.removeprefix(f"{_CHASSIS}/").rstrip("/")


def _linked_place(chassis: Any, path: str, place: str) -> str:
    """The link that the chassis gives: some BMCs accept no other form of it (HPE's end in a slash).
    Below the chassis, if it gives none."""
    link = chassis.get(place.strip("/")) if isinstance(chassis, Mapping) else None
    told = _text_at(link, "@odata.id")
    return told if told.startswith(path.rstrip("/")) else f"{path.rstrip('/')}{place}"


def _metrics(client: http_json.JsonClient, answer: Any) -> tuple[str | int, ...] | None:
    """The place of the power in EnvironmentMetrics; None if its sensor is one of a part."""
    excerpt = answer.get("PowerWatts") if isinstance(answer, Mapping) else None
    context = _text_at(excerpt, "PhysicalContext")
    source = _text_at(excerpt, "DataSourceUri")
    if not context and source.startswith("/redfish/v1/"):
        with suppress(PowerError):  # a sensor need not be there: the excerpt is
            context = _text_at(client.get(source), "PhysicalContext")
    return ("PowerWatts", "Reading") if context in _WHOLE else None


def _control(answer: Any) -> tuple[str | int, ...] | None:
    """The place of the complete chassis' power in PowerControl; None if that is not one entry."""
    controls = answer.get("PowerControl") if isinstance(answer, Mapping) else None
    places: list[tuple[str | int, ...]] = []
    for k, control in enumerate(controls if isinstance(controls, list) else []):
        keys = ("PowerControl", k, "PowerConsumedWatts")
        whole = _text_at(control, "PhysicalContext") in _WHOLE
        if whole and http_json.number_at(answer, *keys) is not None:
            places.append(keys)
    if places:
        return places[0] if len(places) == 1 else None
    return _FUJITSU if http_json.number_at(answer, *_FUJITSU) is not None else None


def _linked(client: http_json.JsonClient) -> Counter[str]:
    """The chassis that the systems link to, and how many do; empty where the BMC does not say."""
    linked: Counter[str] = Counter()
    try:
        for system in _members(client, _SYSTEMS):
            links = client.get(system).get("Links", {})
            linked.update(
                {str(chassis["@odata.id"]).rstrip("/") for chassis in links.get("Chassis", [])}
            )
    except (PowerError, AttributeError, KeyError, TypeError):
        return Counter()
    return linked


def _members(client: http_json.JsonClient, path: str) -> list[str]:
    answer: Any = client.get(path)
    try:
        found = [str(member["@odata.id"]) for member in answer["Members"]]
    except (KeyError, TypeError) as error:
        raise PowerError(f"{client.host}{path}: not a list of members") from error
    return [member for member in found if member.startswith(f"{path}/")][:CHASSIS]


def _text_at(answer: Any, key: str) -> str:
    """The text at a key; empty if there is none."""
    value = answer.get(key) if isinstance(answer, Mapping) else None
    return value if isinstance(value, str) else ""
