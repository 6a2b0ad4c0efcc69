"""Meters held against each other: pure functions over the readings of one window.

Power domains lie in each other: the system holds modules, packages, memory and devices, a module
holds packages and memory. So

- two readings of one domain agree within both limits of error; where one holds more than the other
  (a plug before the supply, a BMC behind it), the smaller one may be smaller, by half at most if
  the losses of the supply are all that tells them apart;
- a part draws no more than the whole, nor do all parts of different domains together.

What contradicts this beyond the limits of error makes every reading in it doubtful, and each says
which others and by how much. None is picked, none is thrown away: which meter is wrong, no program
can see. Modelled readings contradict nobody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from eeio_power.reading import Content, Domain, EnergyReading

INSIDE: Mapping[Domain, tuple[Domain, ...]] = {
    "system": ("module", "package", "dram", "device"),
    "module": ("package", "dram"),
    "package": (),
    "dram": (),
    "device": (),
}
"""What lies in each domain."""

LEAST_EFFICIENCY = 0.5
"""No supply in use loses more than half of what it takes."""

LOAD_RISE = 0.5
"""Share of all CPUs by which the load must rise before a package that draws the same is told."""
SAME_POWER = 0.02
"""Two means of one package within this are the same power."""


def judged(readings: Sequence[EnergyReading]) -> list[EnergyReading]:
    """The readings of one window; those that contradict each other are doubtful and say so."""
    known = [r for r in readings if r.energy_j is not None and r.kind != "modelled"]
    doubts: dict[int, list[str]] = {}
    for group, words in _contradictions(known):
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


def named(reading: EnergyReading) -> str:
    """`package (rapl)`."""
    return f"{reading.domain} ({reading.meter})"


def _contradictions(
    readings: Sequence[EnergyReading],
) -> list[tuple[tuple[EnergyReading, ...], str]]:
    """Each group of readings that cannot all be true, and why."""
    found: list[tuple[tuple[EnergyReading, ...], str]] = []
    for one, other in combinations(readings, 2):
        words = _same_domain(one, other) if one.domain == other.domain else _nested(one, other)
        if words:
            found.append(((one, other), words))
    if not found:
        # A sum says nothing new where one of its parts contradicts the whole already.
        for whole in readings:
            parts = _parts(whole, readings)
            if len(parts) > 1 and _exceeds(parts, whole):
                names = " + ".join(_watts(part) for part in parts)
                words = f"{names} draw more than the {_watts(whole)} that holds them{_BEYOND}"
                found.append(((whole, *parts), words))
    return found


_BEYOND = ", by more than all their limits of error"


def _same_domain(one: EnergyReading, other: EnergyReading) -> str | None:
    if one.domain == "device" or one.meter == other.meter:
        return None  # one meter each for two drives, as a rule
    more, less = (one, other) if _energy_j(one) >= _energy_j(other) else (other, one)
    if not _exceeds([more], less):
        return None
    extra = _held_by_one(more, less)
    if extra and not (extra == {"supply"} and _is_too_little(less, more)):
        return None
    return f"{_watts(one)} and {_watts(other)} are more apart than both limits of error"


def _held_by_one(more: EnergyReading, less: EnergyReading) -> set[Content]:
    """What is in the reading that says more, and not surely in the other; empty if not told."""
    if not less.includes and not less.leaves_out:
        return set()
    return {content for content in more.includes if content not in less.includes}


def _is_too_little(less: EnergyReading, more: EnergyReading) -> bool:
    slack_j = _limit_j(less) + _limit_j(more)
    return _energy_j(less) < LEAST_EFFICIENCY * _energy_j(more) - slack_j


def _nested(one: EnergyReading, other: EnergyReading) -> str | None:
    for part, whole in ((one, other), (other, one)):
        if part.domain in INSIDE[whole.domain] and _exceeds([part], whole):
            return f"{_watts(part)} is in {_watts(whole)} and draws more{_BEYOND}"
    return None


def _parts(whole: EnergyReading, readings: Sequence[EnergyReading]) -> list[EnergyReading]:
    """Readings inside `whole` that hold nothing in common: the lowest of each domain; a module
    before what is in it."""
    lowest: dict[Domain, EnergyReading] = {}
    for reading in readings:
        if reading.domain in INSIDE[whole.domain]:
            known = lowest.get(reading.domain)
            if known is None or _energy_j(reading) < _energy_j(known):
                lowest[reading.domain] = reading
    inner = {domain for holder in lowest for domain in INSIDE[holder]}
    return [reading for domain, reading in lowest.items() if domain not in inner]


def _exceeds(parts: Sequence[EnergyReading], whole: EnergyReading) -> bool:
    limits_j = sum(map(_limit_j, parts)) + _limit_j(whole)
    return sum(map(_energy_j, parts)) - _energy_j(whole) > limits_j


def _energy_j(reading: EnergyReading) -> float:
    return reading.energy_j or 0.0


def _limit_j(reading: EnergyReading) -> float:
    return reading.uncertainty_j or 0.0


def _watts(reading: EnergyReading) -> str:
    return f"{named(reading)} {reading.power_w or 0.0:.1f} W"
