"""What a power state of a drive changed: whether the power fell, and when.

A drive may accept a state and draw what it drew before. A state did nothing if the power did not
fall by more than both readings' uncertainties together. A drive has entered a state when its power
has passed nine tenths of the way from before to the state's, in five consecutive readings. That
needs a meter that reads at least each 20 ms.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from eeio.record.drive_states import StateReading
from eeio.record.energy_reading import EnergyReading
from eeio.units.number_text import number
from eeio_power.monitor import PowerMonitor
from eeio_power.samples import DomainPower

_SLOWEST_S = 0.02
_TOGETHER = 5
_WAY = 0.9
_BEFORE_S = 0.5


def judged(readings: Sequence[StateReading]) -> list[StateReading]:
    """With a remark on each state that the drive accepted and that did not lower its power. States
    in which a drive works are compared while it reads, the others while it idles."""
    result: list[StateReading] = []
    before: dict[str, StateReading] = {}
    works = {reading.state.split()[0] for reading in readings if reading.state.endswith("reading")}
    for reading in readings:
        name, _, kind = reading.state.partition(" ")
        is_compared = kind == "reading" or (kind == "idle" and name not in works)
        if is_compared and kind in before:
            reading = replace(reading, remark=_why_no_effect(before[kind], reading))
        if kind and reading.invalid is None:
            before[kind] = reading
        result.append(reading)
    return result


def _why_no_effect(before: StateReading, reading: StateReading) -> str | None:
    first, second = power_of(before), power_of(reading)
    if first is None or second is None or reading.invalid is not None:
        return None
    if first.power_w is None or second.power_w is None:
        return None
    uncertainty_w = math.hypot(
        _uncertainty_w(first, before.duration_s), _uncertainty_w(second, reading.duration_s)
    )
    if first.power_w - second.power_w > uncertainty_w:
        return None
    return (
        f"the drive accepted the state, and the power of the {second.domain} did not fall: "
        f"{number(second.power_w)} W after {number(first.power_w)} W in {before.state}"
    )


def _uncertainty_w(reading: EnergyReading, duration_s: float) -> float:
    if reading.uncertainty_j is None or duration_s <= 0:
        return 0.0
    return reading.uncertainty_j / duration_s


def power_of(reading: StateReading) -> EnergyReading | None:
    """That of the drive, or else the first measured one; None if there is none without doubt."""
    usable = [e for e in reading.energy if e.valid and not e.doubtful and e.kind != "modelled"]
    for energy in usable:
        if energy.domain == "device":
            return energy
    if usable:
        return usable[0]
    return None


def entered(reading: StateReading, set_s: float, power: PowerMonitor) -> StateReading:
    """With the time that the drive took to enter the state that was set at `set_s` (monotonic);
    None with a slow meter, and where the power did not fall."""
    energy = power_of(reading)
    if energy is None or energy.power_w is None:
        return reading
    for meter, over_time in power.over_time(set_s - _BEFORE_S, math.inf):
        if (meter, over_time.domain) == (energy.meter, energy.domain):
            return replace(reading, entered_s=entry_s(over_time, set_s, energy.power_w))
    return reading


def entry_s(over_time: DomainPower, set_s: float, state_w: float) -> float | None:
    """From setting the state (monotonic s) to a power of `state_w`, s; None if it is not known."""
    before_w = over_time.median_w(set_s - _BEFORE_S, set_s)
    times_s, watts = over_time.times_s, over_time.watts
    if before_w is None or len(times_s) < 2 * _TOGETHER or before_w <= state_w:
        return None
    if (times_s[-1] - times_s[0]) / (len(times_s) - 1) > _SLOWEST_S:
        return None
    level_w = before_w - _WAY * (before_w - state_w)
    for index in range(len(times_s) - _TOGETHER + 1):
        if times_s[index] > set_s and max(watts[index : index + _TOGETHER]) <= level_w:
            return times_s[index] - set_s
    return None
