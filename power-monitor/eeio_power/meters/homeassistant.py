"""A sensor of Home Assistant, by its REST API: any plug or meter that it integrates.

`homeassistant:http://HOST:8123,entity=sensor.NAME[,token_file=FILE]`: `/api/states/sensor.NAME`
with a long-lived access token -> `state`, in the sensor's unit (W, kW, mW; Wh, kWh of a counter).

A state stays the same until its value changes. `last_reported` (Home Assistant 2024.4 and later)
shows whether the device still reports it, but that answer is stored until the value changes (issue
181392 of home-assistant/core). If it is old, `/api/template` is requested, whose `last_reported` is
current; this needs the token of an administrator. A value that was last reported more than
`max_age_s` ago or in the future, or of which that is not known, is missing.

Accuracy differs from device to device: 5 % and 1 W are used.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from eeio.units.quantities import FIGURE
from eeio_power import http_json
from eeio_power.delay import unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Quantity,
    Verified,
    domain_option,
    first_reading,
    number_option,
)
from eeio_power.reading import DOMAINS, UNKNOWN, WALL, Kind

OPTIONS = {
    "url": "address, such as http://192.0.2.5:8123",
    "entity": "its name in Home Assistant, such as sensor.server_power",
    "token_file": "file with a long-lived access token; default: $EEIO_METER_TOKEN",
    "unit": "unit of the state, if it has none",
    "domain": f"power domain: {', '.join(DOMAINS)} (default system)",
    "accuracy": "uncertainty as a share (default 0.05)",
    "resolution": "step of the state, W (default 2) or J (a counter's must be given)",
    "max_w": "highest power that can be true, W (default 4000)",
    "period_s": "how often the device reports, s (default 10)",
    "max_age_s": "age at which a reported value is missing, s (default 2.5 periods)",
    "cafile": http_json.OPTIONS["cafile"],
    "insecure": http_json.OPTIONS["insecure"],
    "timeout_s": http_json.OPTIONS["timeout_s"],
}
ARGUMENT = "url"

KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
_PERIOD_S, _ACCURACY, _RESOLUTION_W, _MOST_W, _INTERVALS = 10.0, 0.05, 2.0, 16 * 250.0, 2.5
_MOST_PERIOD_S = 100.0
_AHEAD_S = 5.0
"""A report may be so far in the future: `Date` has whole seconds, and may be of another machine's
clock, such as that of a proxy. One further ahead is of a clock that was wrong, so its age is
unknown."""
_UNITS_W = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
_UNITS_J = {"Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9, "J": 1.0, "kJ": 1e3, "MJ": 1e6}
_NO_VALUE = ("unavailable", "unknown", "none", "")
_ENTITY = re.compile(r"[a-z0-9_]{1,100}\.[a-z0-9_]{1,150}")
_TEMPLATE = (
    "{{% set s = states.{entity} %}}"
    "{{{{ {{'state': s.state, 'last_reported': s.last_reported.isoformat(), 'attributes': "
    "{{'unit_of_measurement': s.attributes.unit_of_measurement}}}} | to_json }}}}"
)


@dataclass(frozen=True)
class HomeAssistantMeter:
    """One sensor."""

    spec: str
    name: str
    client: http_json.JsonClient = field(repr=False)
    entity: str
    unit: str
    native_period_s: float
    max_age_s: float
    channels: Sequence[Channel]
    kind: Kind = KIND

    def read(self) -> Sequence[float | None]:
        """W, or J of a counter. Raises PowerError for an old or missing state."""
        state = self.client.get(f"/api/states/{self.entity}")
        if not self._is_fresh(self._age_s(state)):
            state = self._reported_again(state)
        return [self._value(state) * {**_UNITS_W, **_UNITS_J}[self.unit]]

    def _is_fresh(self, age_s: float) -> bool:
        return -_AHEAD_S <= age_s <= self.max_age_s

    def _reported_again(self, old: Any) -> Any:
        """The state with the time of its last report. Raises PowerError if that is old too, or in
        the future."""
        try:
            state = self.client.post(
                "/api/template", {"template": _TEMPLATE.format(entity=self.entity)}
            )
        except PowerError as error:
            age_s = self._age_s(old)
            known = f"has not changed for {age_s:.0f} s"
            if age_s < 0.0:
                known = f"has a report {-age_s:.0f} s in the future"
            raise PowerError(
                f"{self._label} {known}, and whether it was reported again is unknown ({error}): "
                "use the token of an administrator, and Home Assistant 2024.4 or later"
            ) from error
        age_s = self._age_s(state)
        if self._is_fresh(age_s):
            return state
        if age_s < 0.0:
            raise PowerError(
                f"{self._label} was last reported {-age_s:.0f} s in the future: check the clock of "
                "Home Assistant"
            )
        raise PowerError(
            f"{self._label} was last reported {age_s:.0f} s ago: check the device; set period_s= "
            "if it reports less often"
        )

    def _age_s(self, state: Any) -> float:
        """At least so long ago its value was reported, by Home Assistant's clock, which is given
        in whole seconds; below 0 in the future. Raises PowerError."""
        try:
            text = state.get("last_reported") or state["last_updated"]
            reported_s = datetime.fromisoformat(text).timestamp()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise PowerError(f"{self._label}: not a state of Home Assistant") from error
        served_s = self.client.served_s
        return (time.time() if served_s is None else served_s) - reported_s

    def _value(self, state: Any) -> float:
        text = state.get("state")
        if not isinstance(text, str) or text.lower() in _NO_VALUE:
            raise PowerError(f"{self._label} is {text!r:.40}: check the device")
        unit = _unit_of(state)
        if unit not in (None, self.unit):
            raise PowerError(f"{self._label} is in {unit!r:.20} now, no longer in {self.unit}")
        try:
            value = float(text)
        except ValueError as error:
            raise PowerError(f"{self._label}: {text!r:.40} is not a number") from error
        if not FIGURE.contains(value):
            raise PowerError(f"{self._label}: {text!r:.40} cannot be true")
        return value

    @property
    def _label(self) -> str:
        return f"{self.client.host}: {self.entity}"

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def _unit_of(state: Any) -> str | None:
    """None if it has none."""
    try:
        return str(state["attributes"]["unit_of_measurement"])
    except (KeyError, TypeError):
        return None


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> HomeAssistantMeter:
    """Take a first reading. Raises PowerError if there is none."""
    url, entity = options.get("url"), options.get("entity", "")
    if url is None or _ENTITY.fullmatch(entity) is None:
        raise PowerError(
            f"meter '{spec}': give the address and the sensor, such as "
            "homeassistant:http://192.0.2.5:8123,entity=sensor.server_power"
        )
    domain = domain_option(spec, options)
    period_s = number_option(spec, options, "period_s", above_zero=True) or _PERIOD_S
    if period_s > _MOST_PERIOD_S:
        raise PowerError(
            f"meter '{spec}': period_s={period_s:g}: {_MOST_PERIOD_S:g} at most; let the device "
            "report more often"
        )
    max_age_s = number_option(spec, options, "max_age_s", above_zero=True)
    client = http_json.client(spec, options, url, token=http_json.token(spec, options))
    name = options.get("name", "homeassistant")
    try:
        unit = _unit(spec, options, client, entity)
        channel = _channel(spec, options, f"{name}:{domain}", unit, period_s)
    except PowerError:
        client.close()
        raise
    return first_reading(
        HomeAssistantMeter(
            spec=spec,
            name=name,
            client=client,
            entity=entity,
            unit=unit,
            native_period_s=period_s,
            max_age_s=max_age_s or _INTERVALS * period_s,
            channels=(channel,),
        )
    )


def find(root: Path) -> Detected:
    """Which of its sensors is of this machine is unknown."""
    return Detected(
        "homeassistant",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for Home Assistant",
        "name it: --meter homeassistant:http://HOST:8123,entity=sensor.NAME",
    )


def _unit(spec: str, options: Mapping[str, str], client: http_json.JsonClient, entity: str) -> str:
    """Of the sensor, else of unit=. Raises PowerError for one that is neither W nor Wh."""
    try:
        own = _unit_of(client.get(f"/api/states/{entity}"))
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {error}; check the address and entity=") from error
    stated = options.get("unit")
    if own is not None and stated not in (None, own):
        raise PowerError(f"meter '{spec}': {entity} is in {own!r:.20}; leave out unit={stated}")
    unit = own or stated
    if unit not in _UNITS_W and unit not in _UNITS_J:
        raise PowerError(
            f"meter '{spec}': {entity} is in {unit!r:.20}, which is neither a power nor an energy "
            f"({', '.join([*_UNITS_W, *_UNITS_J])}): name another entity="
        )
    return unit


def _channel(
    spec: str, options: Mapping[str, str], name: str, unit: str, period_s: float
) -> Channel:
    domain = domain_option(spec, options)
    accuracy = number_option(spec, options, "accuracy")
    resolution = number_option(spec, options, "resolution")
    is_counter = unit in _UNITS_J
    if is_counter and resolution is None:
        raise PowerError(
            f"meter '{spec}': give the counter's step, J, as resolution=, such as 36000 for a "
            "state with 0.01 kWh; better name the sensor of its power"
        )
    if accuracy is None:
        accuracy = _ACCURACY
    contents = UNKNOWN
    if domain == "system":
        contents = WALL
    if resolution is None:
        resolution = _RESOLUTION_W
    averages_s = 1.0
    quantity: Quantity = "power_w"
    if is_counter:
        averages_s = 0.0
        quantity = "energy_j"
    return Channel(
        name=name,
        domain=domain,
        quantity=quantity,
        accuracy_relative=accuracy,
        resolution=resolution,
        max_power_w=number_option(spec, options, "max_w", above_zero=True) or _MOST_W,
        contents=contents,
        remark=f"{options['entity']} of Home Assistant",
        delay=unknown_up_to(
            period_s + 2.0,
            averages_s,
            "assumed: a plug's 2 s, and the time until its next report",
        ),
    )
