"""Power readings that cannot all be true: pure functions over any objects with such readings.

Power domains contain each other: the system contains modules, packages, memory, devices and
accelerators, a module contains packages and memory. So

- two readings of one domain agree within both uncertainties. If one includes more than the other
  (a plug before the supply, a BMC behind it), the smaller one may be smaller; if they differ only
  by the losses of the supply, by 30 % at most (below 100 W: by half);
- a system does not draw 30 times as much as its processors;
- a part draws no more than the total, nor do all parts of different domains together.

Modelled and fictitious readings cannot contradict others, nor can readings without an uncertainty.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Protocol, TypeVar

from eeio.record.energy_reading import MARKS, SEVERAL

INSIDE: Mapping[str, tuple[str, ...]] = {
    "system": ("module", "package", "dram", "device", "accelerator"),
    "module": ("package", "dram"),
    "package": (),
    "dram": (),
    "device": (),
    "accelerator": (),
}
"""The domains inside each domain."""

_OF_SYSTEM = ("processor", "memory", "gpu", "board", "drives", "network", "fans", "supply")
LEAST_EFFICIENCY, LEAST_EFFICIENCY_OF_LITTLE = 0.7, 0.5
"""No supply above a fifth of its rated load loses more than 30 % of its input power, and no supply
in use more than half. Ratings are unknown here: above `LITTLE_W` the load is taken for enough."""
LITTLE_W = 100.0
MOST_OF_PACKAGE, OUTSIDE_PACKAGE_W = 30.0, 100.0
"""A system that draws more than so many times its processors, and so much, is another machine's, or
its unit is wrong."""


class Reading(Protocol):
    """Energy of one power domain over some time, as one meter saw it."""

    @property
    def domain(self) -> str: ...
    @property
    def meter(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def power_w(self) -> float | None: ...
    @property
    def energy_j(self) -> float | None: ...
    @property
    def uncertainty_j(self) -> float | None:
        """Uncertainty of the energy, J."""

    @property
    def includes(self) -> Sequence[str]: ...
    @property
    def leaves_out(self) -> Sequence[str]: ...


R = TypeVar("R", bound=Reading)


def contradictions(readings: Sequence[R]) -> list[tuple[tuple[R, ...], str]]:
    """Each group of readings of one time that cannot all be true, and why."""
    known = []
    for reading in readings:
        if (
            None not in (reading.power_w, reading.energy_j, reading.uncertainty_j)
            and reading.kind not in MARKS
        ):
            known.append(reading)
    pairs: list[tuple[tuple[R, ...], str]] = []
    for one, other in combinations(known, 2):
        message = _same_domain(one, other) if one.domain == other.domain else _nested(one, other)
        if message:
            pairs.append(((one, other), message))
    if not pairs:
        # A sum adds no information if one of its parts already contradicts the total.
        for total in known:
            parts = _parts(total, known)
            if len(parts) > 1 and _exceeds(parts, total):
                names = " + ".join(map(_watts, parts))
                message = f"{names} draw more than the {_watts(total)} that includes them{_BEYOND}"
                pairs.append(((total, *parts), message))
    return pairs


_BEYOND = ", by more than all their uncertainties"


def named(reading: Reading) -> str:
    """`package (rapl)`."""
    return f"{reading.domain} ({reading.meter})"


def _same_domain(one: Reading, other: Reading) -> str | None:
    if one.domain in SEVERAL or one.meter == other.meter:
        return None  # one meter each for two drives or makers of GPUs, as a rule
    more, less = (one, other) if _energy_j(one) >= _energy_j(other) else (other, one)
    if not _exceeds([more], less):
        return None
    extra = _of_one_only(more, less)
    if extra and not (extra == {"supply"} and _is_too_little(less, more)):
        return None
    return f"{_watts(one)} and {_watts(other)} are more apart than both uncertainties"


def _of_one_only(more: Reading, less: Reading) -> set[str]:
    """The contents of the higher reading that may be missing in the other; empty if not known."""
    extra = _contents(more)
    if more.domain == "system":
        # Unknown parts: a BMC may measure before its supply, and another one behind it.
        extra |= set(_OF_SYSTEM) - set(more.leaves_out)
    return extra - _contents(less)


def _contents(reading: Reading) -> set[str]:
    """A system without a list is complete, except for what it leaves out."""
    if reading.includes or reading.domain != "system":
        return set(reading.includes)
    return set(_OF_SYSTEM) - set(reading.leaves_out)


def _is_too_little(less: Reading, more: Reading) -> bool:
    slack_j = _limit_j(less) + _limit_j(more)
    is_little = (more.power_w or 0.0) < LITTLE_W
    efficiency = LEAST_EFFICIENCY
    if is_little:
        efficiency = LEAST_EFFICIENCY_OF_LITTLE
    return _energy_j(less) < efficiency * _energy_j(more) - slack_j


def _nested(one: Reading, other: Reading) -> str | None:
    for part, total in ((one, other), (other, one)):
        if part.domain in INSIDE[total.domain] and _exceeds([part], total):
            return f"{_watts(part)} is in {_watts(total)} and draws more{_BEYOND}"
        if (part.domain, total.domain) == ("package", "system") and _is_far_above(total, part):
            return (
                f"{_watts(total)} is more than {MOST_OF_PACKAGE:g} times {_watts(part)}: is it of "
                "this machine only, and in W?"
            )
    return None


def _is_far_above(total: Reading, part: Reading) -> bool:
    package_w, system_w = part.power_w or 0.0, total.power_w or 0.0
    return package_w > 0.0 and system_w > MOST_OF_PACKAGE * package_w + OUTSIDE_PACKAGE_W


def _parts(total: R, readings: Sequence[R]) -> list[R]:
    """Disjoint readings inside `total`: the lowest of each domain; a module before its parts."""
    lowest: dict[str, R] = {}
    for reading in readings:
        if reading.domain in INSIDE[total.domain]:
            known = lowest.get(reading.domain)
            if known is None or _energy_j(reading) < _energy_j(known):
                lowest[reading.domain] = reading
    inner: set[str] = set()
    for holder in lowest:
        inner.update(INSIDE[holder])
    return [reading for domain, reading in lowest.items() if domain not in inner]


def _exceeds(parts: Sequence[Reading], total: Reading) -> bool:
    limits_j = sum(map(_limit_j, parts)) + _limit_j(total)
    return sum(map(_energy_j, parts)) - _energy_j(total) > limits_j


def _energy_j(reading: Reading) -> float:
    return reading.energy_j or 0.0


def _limit_j(reading: Reading) -> float:
    return reading.uncertainty_j or 0.0


def _watts(reading: Reading) -> str:
    return f"{named(reading)} {reading.power_w or 0.0:.1f} W"
