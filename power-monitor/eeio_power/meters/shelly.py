"""Shelly plugs, switches and meters, on the network.

`shelly:HOST[,switch=0][,component=switch][,password_file=FILE]`. From the second generation on:

- `/rpc/Switch.GetStatus?id=0` (plugs) and `/rpc/PM1.GetStatus?id=0` (meters without a relay) ->
  `apower`, W, and `aenergy.total`, Wh, which is recorded as a counter and not added, because it
  moves in large steps;
- `/rpc/EM1.GetStatus?id=0` -> `act_power`, W; `/rpc/EM.GetStatus?id=0` (three phases) ->
  `total_act_power`, or with `phase=a` that phase's `a_act_power`.

Without `component=` the first of these that answers is taken, in this order. A plug of the first
generation answers `/status` -> `meters[0].power`.

A password is sent in the device's scheme: Digest with SHA-256 (second generation, whose user is
always `admin`), Basic (first).

Accuracy: Shelly states none for most models; its chips are specified at 1 %, so 2 % and 0.1 W are
used. A reading is made about once a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio_power import http_json
from eeio_power.delay import PLUG
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Verified, number_option
from eeio_power.reading import WALL, Kind
from eeio_power.window_readings import possible_w

OPTIONS = {
    "host": "the plug's address",
    "switch": "number of the switch, or of another component (default 0)",
    "component": "switch, pm1, em1 or em (default: the first that answers)",
    "phase": "a, b or c of a three-phase em (default: their sum)",
    "period_s": "how often the plug takes a new reading, s (default 1)",
    **http_json.OPTIONS,
}
ARGUMENT = "host"

USER = "admin"
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
NATIVE_PERIOD_S = 1.0
DELAY = PLUG
ACCURACY = 0.02
MAX_POWER_W = 16 * 250.0
J_PER_WH = 3600.0

POWER = Channel(
    name="shelly:system",
    domain="system",
    quantity="power_w",
    accuracy_relative=ACCURACY,
    resolution=0.2,
    max_power_w=MAX_POWER_W,
    contents=WALL,
)
ENERGY = Channel(
    name="shelly:counter",
    domain="system",
    quantity="energy_j",
    accuracy_relative=ACCURACY,
    resolution=0.001 * J_PER_WH,
    in_domain_total=False,
    contents=WALL,
)


@dataclass(frozen=True)
class _Component:
    """A metering component of the second generation."""

    method: str
    power: str
    """The key of the power, W; `{phase}` is replaced by the phase."""
    counter: bool
    """Whether `aenergy.total` is next to it."""


COMPONENTS: Mapping[str, _Component] = {
    "switch": _Component("Switch.GetStatus", "apower", counter=True),
    "pm1": _Component("PM1.GetStatus", "apower", counter=True),
    "em1": _Component("EM1.GetStatus", "act_power", counter=False),
    "em": _Component("EM.GetStatus", "{phase}_act_power", counter=False),
}
PHASES = ("total", "a", "b", "c")
_SUM = "total_act_power"


@dataclass(frozen=True)
class ShellyMeter:
    """One switch or meter of one device."""

    spec: str
    name: str
    client: http_json.JsonClient
    switch: int
    component: _Component | None
    """None for the first generation."""
    phase: str = "total"
    native_period_s: float = NATIVE_PERIOD_S
    kind: Kind = KIND

    @property
    def channels(self) -> Sequence[Channel]:
        if self.component and self.component.counter:
            return (POWER, ENERGY)
        return (POWER,)

    def read(self) -> Sequence[float | None]:
        """W, and J since the plug was new. Raises PowerError without a power reading."""
        if self.component is None:
            answer = self.client.get("/status")
            power_w = http_json.number_at(answer, "meters", self.switch, "power")
            if power_w is not None and not _is_valid(answer, self.switch):
                raise PowerError(
                    f"{self.client.host}: switch {self.switch}: the plug's self-check of its "
                    "meter failed"
                )
        else:
            answer = self.client.get(f"/rpc/{self.component.method}?id={self.switch}")
            key = self.component.power.format(phase=self.phase)
            power_w = http_json.number_at(answer, key)
            if key == _SUM:
                self._check_phases(answer)
        if power_w is None:
            raise PowerError(f"{self.client.host}: switch {self.switch} gives no power")
        if len(self.channels) == 1:
            return [power_w]
        energy_wh = http_json.number_at(answer, "aenergy", "total")
        energy_j = None
        if energy_wh is not None:
            energy_j = energy_wh * J_PER_WH
        return [power_w, energy_j]

    def _check_phases(self, answer: Any) -> None:
        """Raises PowerError if a phase is negative, as with a reversed clamp."""
        for phase in PHASES[1:]:
            power_w = http_json.number_at(answer, f"{phase}_act_power")
            # An unused clamp reads a little below zero.
            if power_w is not None and power_w < possible_w(POWER)[0]:
                raise PowerError(
                    f"{self.client.host}: phase {phase} reports {power_w:g} W: reverse its "
                    "clamp, or select a phase with phase="
                )

    def close(self) -> None:
        """Drop the connection."""
        self.client.close()


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> ShellyMeter:
    """Take a first reading, by the way that answers. Raises PowerError if there is none."""
    host = options.get("host")
    if host is None:
        raise PowerError(f"meter '{spec}': which plug? Such as shelly:192.168.1.20")
    phase = options.get("phase", "total")
    components = _components(spec, options.get("component"), phase)
    client = http_json.client(spec, options, host, requested_user=USER)
    switch = int(number_option(spec, options, "switch") or 0)
    period_s = number_option(spec, options, "period_s", above_zero=True) or NATIVE_PERIOD_S
    problem: PowerError | None = None
    for component in components:
        name = options.get("name", "shelly")
        meter = ShellyMeter(spec, name, client, switch, component, phase, period_s)
        try:
            meter.read()
        except PowerError as error:
            problem = problem or error
            if isinstance(error.__cause__, OSError):
                break  # no answer: another request would wait as long
        else:
            return meter
    client.close()
    raise PowerError(f"meter '{spec}': {problem}; check the address, and that it meters power")


def _components(spec: str, wanted: str | None, phase: str) -> list[_Component | None]:
    """The parts of a plug that may meter; None is a plug of the first generation."""
    if wanted is not None and wanted not in COMPONENTS:
        raise PowerError(
            f"meter '{spec}': component={wanted}: it is one of {', '.join(COMPONENTS)}"
        )
    if phase not in PHASES or (phase != "total" and wanted not in (None, "em")):
        raise PowerError(f"meter '{spec}': phase={phase}: a, b or c of component=em")
    if wanted is not None:
        return [COMPONENTS[wanted]]
    if phase != "total":
        return [COMPONENTS["em"]]
    return [*COMPONENTS.values(), None]


def find(root: Path) -> Detected:
    """Which plug feeds this machine cannot be detected from here."""
    return Detected(
        "shelly",
        KIND,
        ("system",),
        False,
        "eeio does not search the network for plugs",
        "name it: --meter shelly:ADDRESS",
    )


def _is_valid(answer: Any, switch: int) -> bool:
    """Validity of a first-generation plug's meter (`is_valid`), if reported."""
    return answer["meters"][switch].get("is_valid", True) is not False
