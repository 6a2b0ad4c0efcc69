"""Meters held against each other: pure functions over the readings of one window.

What cannot all be true (eeio_limits.contradictions) makes every reading in it doubtful, and each
says which others and by how much. None is picked, none is thrown away: which meter is wrong, no
program can see.
"""

from collections.abc import Sequence
from dataclasses import replace

from eeio_limits.contradictions import contradictions, named
from eeio_power.reading import EnergyReading

LOAD_RISE = 0.5
"""Share of all CPUs by which the load must rise before a package that draws the same is told."""
SAME_POWER = 0.02
"""Two means of one package within this are the same power."""


def judged(readings: Sequence[EnergyReading]) -> list[EnergyReading]:
    """The readings of one window; those that contradict each other are doubtful and say so."""
    doubts: dict[int, list[str]] = {}
    for group, words in contradictions(readings):
        for reading in group:
            doubts.setdefault(id(reading), []).append(words)
    return [doubted(reading, doubts.get(id(reading), ())) for reading in readings]


def doubted(reading: EnergyReading, doubts: Sequence[str]) -> EnergyReading:
    """The reading with these doubts, if there are any."""
    if not doubts:
        return reading
    reasons = tuple(dict.fromkeys((*reading.reasons, *doubts)))
    return replace(reading, doubtful=True, reasons=reasons)


def stays_flat(
    reading: EnergyReading, load: float, before: EnergyReading, load_before: float
) -> str | None:
    """Why a package that draws the same at another load of the processors is doubtful.

    The loads are shares of all CPUs' time, 0 to 1.
    """
    if reading.power_w is None or before.power_w is None:
        return None
    if abs(load - load_before) < LOAD_RISE:
        return None
    if abs(reading.power_w - before.power_w) > SAME_POWER * max(reading.power_w, before.power_w):
        return None
    return (
        f"{named(reading)} draws {reading.power_w:.1f} W with {load:.0%} of the processors busy, "
        f"and {before.power_w:.1f} W with {load_before:.0%}: its counter does not follow the load"
    )
