"""Whether the values of other sensors agree with what was chosen as the system's power: no other
sensor draws more than the system, and its supplies draw about as much."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eeio_power.system_sensor.sensor import Choice, Extent, Sensor
from eeio_power.system_sensor.sensor_names import (
    OF_NODE,
    is_chassis,
    is_machine,
    is_output,
    key,
    number,
)

LEAST_EFFICIENCY = 0.7
"""Supplies above a fifth of their rated load lose less."""
USUAL_EFFICIENCY = 0.87
"""Most supplies lose less."""
LEAST_OF_OUTPUTS = 0.87
"""A machine draws what its supplies give; they are read at another time."""
ALIKE = 1.05
"""Sensors of one power differ by no more: they are read at different times."""
LARGER: Mapping[Extent, float] = {"controller": ALIKE, "board": 1.5}
"""By which another sensor draws more than the system. Those of a board are spot readings of
milliseconds, one after the other, while the load changes."""
LARGEST_W = 2550.0
"""Of an unplugged supply of HPE: 255 times 10 W."""
_FALSE_FACTOR = 5.0
"""Supplies that share a load do not differ by as much."""
_STANDBY_W = 50.0
"""A server that is off draws less."""


def checked(
    choice: Choice, system: Sensor, sensors: Sequence[Sensor], extent: Extent = "controller"
) -> Choice:
    """The choice of a sensor of the complete machine, doubted or refused by what others say."""
    value_w = system.power_w
    if value_w is None:
        return choice
    supplies = of_supplies(sensors)
    if system.contents != OF_NODE:
        choice = _against_supplies(choice, system.name, value_w, supplies)
        if choice.reason is not None:
            return choice
    machines = [sensor.name for sensor in sensors if is_machine(sensor.name)]
    if is_chassis(system.name) and machines and system.name not in machines:
        several = f"{system.name} may be of several machines ({', '.join(machines)})"
        return Choice(choice.rule, reason=several)
    others = [s for s in sensors if s not in supplies and s is not system]
    more = exceeding(value_w, others, extent)
    if more is not None:
        return Choice(choice.rule, reason=f"{more} more than {system.name}")
    return replace(choice, doubt=choice.doubt or standby(value_w, supplies))


def _against_supplies(
    choice: Choice, name: str, value_w: float, supplies: Sequence[Sensor]
) -> Choice:
    """A power somewhat below that of the inputs may be behind the supplies, which is noted;
    doubtful if they would lose more than usual; of another machine too if far below."""
    sum_w, least_w = of_known(supplies)
    if value_w < least_w:
        text = f"the supplies draw {sum_w:g} W and {name} is {value_w:g} W"
        return Choice(choice.rule, reason=f"{text}: they may feed other machines too")
    if value_w <= 0.0 or value_w >= least_w / LEAST_EFFICIENCY:
        return choice
    inputs_w = [s.power_w for s in supplies if s.role == "input" and s.power_w is not None]
    drawn_w = used_w(inputs_w)
    if drawn_w <= ALIKE * value_w:
        return choice
    text = f"the supplies draw {drawn_w:g} W and {name} is {value_w:g} W"
    if value_w < USUAL_EFFICIENCY * drawn_w:
        return replace(choice, doubt=text)
    return replace(choice, note=f"{text}: it may leave out their losses")


def of_supplies(sensors: Iterable[Sensor]) -> list[Sensor]:
    """Those of inputs and outputs of supplies."""
    return [sensor for sensor in sensors if sensor.role in ("input", "output")]


def larger_than(power_w: float, sensors: Iterable[Sensor], extent: Extent) -> Sensor | None:
    """The first sensor that draws clearly more than the system would."""
    for sensor in sensors:
        if sensor.power_w is not None and sensor.power_w > LARGER[extent] * power_w:
            return sensor
    return None


def exceeding(power_w: float, sensors: Sequence[Sensor], extent: Extent) -> str | None:
    """`CPU2 is`, or `CPU1 and CPU2 together are`, for those that draw clearly more than the system
    would; None if nothing does."""
    larger = larger_than(power_w, sensors, extent)
    if larger is not None:
        return f"{larger.name} is"
    alike: dict[str, dict[str, Sensor]] = {}
    for sensor in sensors:
        label = sensor.label or sensor.name
        if sensor.role in ("package", "part") and number(label):
            alike.setdefault(key(label), {})[number(label)] = sensor
    for parts in alike.values():
        if sum(part.power_w or 0.0 for part in parts.values()) > LARGER[extent] * power_w:
            return f"{' and '.join(part.name for part in parts.values())} together are"
    return None


def standby(power_w: float, supplies: Sequence[Sensor]) -> str | None:
    """Whether a power may be that of a machine that is off."""
    if power_w > _STANDBY_W or not supplies or any(s.power_w is not None for s in supplies):
        return None
    names = ", ".join(sensor.name for sensor in supplies)
    return f"{power_w:g} W, and {names} give no reading: the machine may be off"


def of_known(supplies: Iterable[Sensor]) -> tuple[float, float]:
    """What the supplies with a reading draw or give together, and what the machine draws at least
    then, W: 0 without any."""
    kinds: dict[str, list[float]] = {}
    for sensor in supplies:
        if sensor.power_w is not None and sensor.power_w != LARGEST_W:
            kinds.setdefault(sensor.kind, []).append(sensor.power_w)
    most = (0.0, 0.0)
    for kind, powers_w in kinds.items():
        sum_w = used_w(powers_w)
        share = LEAST_EFFICIENCY
        if is_output(kind):
            share = LEAST_OF_OUTPUTS
        if share * sum_w > most[1]:
            most = (sum_w, share * sum_w)
    return most


def used_w(powers_w: Iterable[float]) -> float:
    """The sum of supplies; an unplugged one may report its largest number."""
    *others_w, most_w = sorted(powers_w) or [0.0]
    rest_w = math.fsum(others_w)
    if most_w > _FALSE_FACTOR * rest_w > 0.0:
        return rest_w
    return rest_w + most_w
