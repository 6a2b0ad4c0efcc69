"""The energy of I/O that goes on in several stretches of time, with something else in between."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar


class Reading(Protocol):
    """Energy of one domain over one window, as one meter saw it: ours, or that of a run record."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def domain(self) -> str: ...
    @property
    def meter(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def energy_j(self) -> float | None: ...
    @property
    def uncertainty_j(self) -> float | None: ...
    @property
    def coverage(self) -> float: ...
    @property
    def largest_gap_s(self) -> float | None: ...
    @property
    def samples(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def valid(self) -> bool: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    @property
    def doubtful(self) -> bool: ...


R = TypeVar("R", bound=Reading)


def energy_in_parts(
    energy: Callable[[float, float], Sequence[R]], stretches: Sequence[tuple[float, float]]
) -> tuple[R, ...]:
    """One reading a meter and domain over all stretches, each from its start to its end, s.

    `energy` gives the readings of one. Energies add up, and so do their limits of error: what a
    meter is wrong by may be the same in each. Power is the energy over the stretches' time alone.
    Where one stretch has no energy there is none, with its reason.
    """
    lasted_s = [end_s - start_s for start_s, end_s in stretches]
    by_source = [
        {(reading.domain, reading.meter, reading.kind): reading for reading in energy(*stretch)}
        for stretch in stretches
    ]
    # A meter reads in all stretches, or tells of each why it does not.
    known = [key for key in by_source[0] if all(key in readings for readings in by_source)]
    return tuple(_sum([readings[key] for readings in by_source], lasted_s) for key in known)


def _sum(parts: Sequence[R], lasted_s: Sequence[float]) -> R:
    whole_s = math.fsum(lasted_s)
    shares = zip(parts, lasted_s, strict=True)
    gaps = [part.largest_gap_s for part in parts if part.largest_gap_s is not None]
    energy_j = _all_of(part.energy_j for part in parts)
    valid = energy_j is not None and all(part.valid for part in parts)
    return replace(
        parts[0],
        power_w=energy_j / whole_s if valid and energy_j is not None else None,
        energy_j=energy_j if valid else None,
        uncertainty_j=_all_of(part.uncertainty_j for part in parts) if valid else None,
        coverage=min(1.0, math.fsum(part.coverage * s for part, s in shares) / whole_s),
        largest_gap_s=max(gaps, default=None),
        samples=sum(part.samples for part in parts),
        lost=sum(part.lost for part in parts),
        valid=valid,
        reasons=tuple(dict.fromkeys(why for part in parts for why in part.reasons)),
        doubtful=any(part.doubtful for part in parts),
    )


def _all_of(figures: Iterable[float | None]) -> float | None:
    found = list(figures)
    known = [figure for figure in found if figure is not None]
    return math.fsum(known) if len(known) == len(found) else None
