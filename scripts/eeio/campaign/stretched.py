"""The energy of a phase that goes on in stretches, with something else in between."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from eeio_results.phase_times import Stretch
from eeio_results.record import EnergyReading

Energy = Callable[[float, float], tuple[EnergyReading, ...]]
"""The energy between two moments of one clock, s."""


def stretched(
    energy: Energy, began_s: float, stretches: Sequence[Stretch]
) -> tuple[EnergyReading, ...]:
    """One reading a meter and domain over all stretches, which count from `began_s`.

    Energies add up, and so do their limits of error: what a meter is wrong by may be the same in
    each. Power is the energy over the stretches' time alone. Where one stretch has no energy there
    is none, with its reason.
    """
    lasted_s = [stretch.end_s - stretch.start_s for stretch in stretches]
    every = [energy(began_s + one.start_s, began_s + one.end_s) for one in stretches]
    by_source = [
        {(reading.domain, reading.meter, reading.kind): reading for reading in readings}
        for readings in every
    ]
    # A meter reads in all stretches, or tells of each why it does not.
    known = [key for key in by_source[0] if all(key in readings for readings in by_source)]
    return tuple(_sum([readings[key] for readings in by_source], lasted_s) for key in known)


def _sum(parts: Sequence[EnergyReading], lasted_s: Sequence[float]) -> EnergyReading:
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
