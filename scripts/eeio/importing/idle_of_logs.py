"""The idle power of an imported campaign: the stretches of its power log without a result.

A log that runs from before the first result until after the last has minutes in which the machine
did nothing that was measured. They are taken as idle only if they agree: other work between the
results has another power.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eeio.importing.power_logs import Series
from eeio.importing.power_of_results import Alignment, UsedLog, Window, energy_of
from eeio_results.campaign import Design
from eeio_results.record import EnergyReading
from eeio_results.store import Campaign

APART_S = 10.0
"""A stretch begins so long after a result, and ends so long before the next: caches are written
back, and disks become quiet."""
LEAST_S = 30.0
"""A shorter stretch is no idle minute."""
LEAST_TOGETHER_S = 60.0
MOST_APART = 0.05
"""If the powers of stretches differ from their median by more, they contain other work."""


def idle_of_logs(campaign: Campaign, used: Sequence[UsedLog]) -> tuple[EnergyReading, ...]:
    """None for a campaign of eeio's own: between its runs it prepares files. None where it has an
    idle baseline already."""
    if campaign.idle or not is_imported(campaign.design):
        return ()
    return idle_readings(used, used[0].busy)


def is_imported(design: Design) -> bool:
    return design.suite == "imported"


def idle_readings(used: Sequence[UsedLog], windows: Sequence[Window]) -> tuple[EnergyReading, ...]:
    """One reading for each series whose stretches without a result agree; none if it is not known
    when each result was measured (`windows` is empty)."""
    readings: list[EnergyReading] = []
    if not windows:
        return ()
    for each in used:
        if each.log.rejected or each.alignment.ahead_s is None:
            continue
        for series in each.log.series:
            of_series = replace(each.log, series=(series,))
            stretches = list(_stretches(series, each.alignment, windows))
            parts = [
                reading
                for start_s, end_s in stretches
                for reading in energy_of(
                    Window(start_s, end_s, 0.0, False), [(of_series, each.alignment)]
                )
                if reading.valid and reading.power_w is not None
            ]
            if (reading := _together(parts)) is not None:
                readings.append(reading)
    return tuple(readings)


def _stretches(
    series: Series, alignment: Alignment, windows: Sequence[Window]
) -> Iterator[tuple[float, float]]:
    """Of the results' clock, s."""
    ahead_s = alignment.of(series).ahead_s
    edges = [(window.start_s - APART_S, window.end_s + APART_S) for window in windows]
    begin_s, end_s = series.times_s[0] - ahead_s, series.times_s[-1] - ahead_s
    busy = sorted([(-math.inf, begin_s), *edges, (end_s, math.inf)])
    until_s = -math.inf
    for (_, before_s), (after_s, _) in itertools.pairwise(busy):
        until_s = max(until_s, before_s)
        if after_s - until_s >= LEAST_S:
            yield until_s, after_s


def _apart(parts: Sequence[EnergyReading]) -> float:
    """The largest difference of a power from the median, as a share of it."""
    powers_w = [part.power_w for part in parts if part.power_w is not None]
    middle_w = statistics.median(powers_w)
    return max(abs(power_w - middle_w) / middle_w for power_w in powers_w)


def _together(parts: Sequence[EnergyReading]) -> EnergyReading | None:
    """The mean over all stretches; None if they are too short together, or do not agree."""
    lasted_s = [part.energy_j / part.power_w for part in parts if part.energy_j and part.power_w]
    if len(lasted_s) != len(parts) or math.fsum(lasted_s) < LEAST_TOGETHER_S:
        return None
    apart = _apart(parts)
    if apart > MOST_APART:
        return None
    energy_j = math.fsum(part.energy_j for part in parts if part.energy_j is not None)
    together_s = math.fsum(lasted_s)
    share = max((part.uncertainty_j or 0.0) / (part.energy_j or 1.0) for part in parts)
    gaps_s = [part.largest_gap_s for part in parts if part.largest_gap_s is not None]
    return replace(
        parts[0],
        power_w=energy_j / together_s,
        energy_j=energy_j,
        uncertainty_j=energy_j * math.hypot(share, apart),
        coverage=min(part.coverage for part in parts),
        largest_gap_s=max(gaps_s, default=None),
        samples=sum(part.samples for part in parts),
        lost=sum(part.lost for part in parts),
        reasons=(
            *parts[0].reasons,
            f"idle: {len(parts)} stretches of the log without a result, {together_s:.0f} s in all",
        ),
    )
