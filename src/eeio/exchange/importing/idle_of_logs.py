"""The idle power of an imported campaign: the stretches of its power log without a result.

A log that runs from before the first result until after the last has minutes in which the machine
did nothing that was measured. They are taken as idle only if they agree: other work between the
results has another power.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eeio.exchange.importing.power_logs import Series
from eeio.exchange.importing.power_of_results import (
    Alignment,
    UsedLog,
    Window,
    aligned_samples,
    energy_of,
)
from eeio.record.run import EnergyReading
from eeio.record.store import Campaign

APART_S = 10.0
"""A stretch begins so long after a result, and ends so long before the next: caches are written
back, and disks become quiet."""
LEAST_S = 30.0
"""A shorter stretch is no idle minute."""
LEAST_TOGETHER_S = 60.0
PART_S = 10.0
"""Work that repeats within a stretch shows in the power of its parts."""
LEAST_READINGS = 5
"""Of a part."""
MOST_APART = 0.05
"""If the powers of parts differ from their median by more, they contain other work."""
_OF_LOG = "idle: "
"""How the reason begins of a reading that is from a power log."""


@dataclass(frozen=True)
class IdleOfLogs:
    """The idle power of each series, and why others have none."""

    readings: tuple[EnergyReading, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        """Why there is none at all."""
        if self.readings:
            return None
        return "; ".join(dict.fromkeys(self.reasons)) or "the files hold no idle baseline"


def idle_of_logs(campaign: Campaign, used: Sequence[UsedLog]) -> IdleOfLogs:
    """None for a campaign of eeio's own: between its runs it prepares files. None where its idle
    baseline is not of a power log."""
    if campaign.design.suite != "imported" or any(map(is_measured, campaign.idle)):
        return IdleOfLogs()
    return idle_readings(used, used[0].busy)


def is_measured(reading: EnergyReading) -> bool:
    """Whether an idle reading is from another source than the stretches of a power log."""
    return not any(reason.startswith(_OF_LOG) for reason in reading.reasons)


def idle_readings(used: Sequence[UsedLog], windows: Sequence[Window]) -> IdleOfLogs:
    """One reading for each series whose stretches without a result agree; none if it is not known
    when each result was measured (`windows` is empty)."""
    if not windows:
        return IdleOfLogs(reasons=("no idle power: a result does not report when it was measured",))
    readings: list[EnergyReading] = []
    reasons: list[str] = []
    for each in used:
        if each.log.rejected or each.alignment.ahead_s is None:
            continue
        for series in each.log.series:
            reading = _of_series(series, each, windows)
            if isinstance(reading, str):
                reasons.append(f"no idle power by {series.meter}: {reading}")
            else:
                readings.append(reading)
    return IdleOfLogs(tuple(readings), tuple(reasons))


def _of_series(series: Series, used: UsedLog, windows: Sequence[Window]) -> EnergyReading | str:
    """The idle reading, or why there is none."""
    log = [(replace(used.log, series=(series,)), used.alignment)]
    stretches = list(_stretches(series, used.alignment, windows))
    if len(stretches) < 2:
        # A single one may be any work.
        return "the log has less than two stretches of 30 s without a result"
    part_s = max(PART_S, LEAST_READINGS * series.period_s)
    parts = [
        reading
        for begin_s, end_s in stretches
        for start_s, stop_s in _parts(begin_s, end_s, part_s)
        for reading in energy_of(Window(start_s, stop_s, 0.0, False), log)
    ]
    if any(not part.valid or not part.power_w or part.energy_j is None for part in parts):
        return "readings are missing between the results"
    lasted_s = math.fsum(end_s - begin_s for begin_s, end_s in stretches)
    if lasted_s < LEAST_TOGETHER_S:
        return "the log has less than 60 s without a result"
    apart = _apart(parts)
    if apart > MOST_APART:
        return f"the power between the results differs by {100 * apart:.0f} %: other work ran"
    busy = [reading for window in windows for reading in energy_of(window, log)]
    busy_w = [reading.power_w for reading in busy if reading.power_w is not None]
    reading = _together(parts, len(stretches), lasted_s, apart)
    if busy_w and reading.power_w is not None and reading.power_w >= statistics.median(busy_w):
        return "the power between the results is not below that of the results"
    return reading


def _stretches(
    series: Series, alignment: Alignment, windows: Sequence[Window]
) -> Iterator[tuple[float, float]]:
    """Of the results' clock, s. The log does not show the power right before its end, as its
    readings are late."""
    offset = alignment.of(series)
    late_s = aligned_samples(series, alignment).info.late_s
    edges = [(window.start_s - APART_S, window.end_s + APART_S) for window in windows]
    begin_s = series.times_s[0] - offset.ahead_s + offset.unsure_s
    end_s = series.times_s[-1] - offset.ahead_s - offset.unsure_s - late_s
    busy = sorted([(-math.inf, begin_s), *edges, (end_s, math.inf)])
    until_s = -math.inf
    for (_, before_s), (after_s, _) in itertools.pairwise(busy):
        until_s = max(until_s, before_s)
        if after_s - until_s >= LEAST_S:
            yield until_s, after_s


def _parts(begin_s: float, end_s: float, part_s: float) -> Iterator[tuple[float, float]]:
    """Parts of one length, of `part_s` at least; the complete stretch if it is shorter."""
    count = max(1, math.floor((end_s - begin_s) / part_s))
    length_s = (end_s - begin_s) / count
    for number in range(count):
        yield begin_s + number * length_s, begin_s + (number + 1) * length_s


def _apart(parts: Sequence[EnergyReading]) -> float:
    """The largest difference of a power from the median, as a share of it."""
    powers_w = [part.power_w for part in parts if part.power_w is not None]
    middle_w = statistics.median(powers_w)
    return max(abs(power_w - middle_w) / middle_w for power_w in powers_w)


def _together(
    parts: Sequence[EnergyReading], stretches: int, lasted_s: float, apart: float
) -> EnergyReading:
    """The mean over all parts."""
    energy_j = math.fsum(part.energy_j for part in parts if part.energy_j is not None)
    share = max((part.uncertainty_j or 0.0) / (part.energy_j or 1.0) for part in parts)
    gaps_s = [part.largest_gap_s for part in parts if part.largest_gap_s is not None]
    return replace(
        parts[0],
        power_w=energy_j / lasted_s,
        energy_j=energy_j,
        uncertainty_j=energy_j * math.hypot(share, apart),
        coverage=min(part.coverage for part in parts),
        largest_gap_s=max(gaps_s, default=None),
        samples=sum(part.samples for part in parts),
        lost=sum(part.lost for part in parts),
        reasons=(
            *parts[0].reasons,
            f"{_OF_LOG}{stretches} stretches of the log without a result, {lasted_s:.0f} s in all",
        ),
    )
