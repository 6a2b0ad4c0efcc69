"""Power, bandwidth and MiB/J of random writes over time, after the drive was filled.

A drive answers writes into its free blocks at first. When these are used up, it has to move data
before it can erase a block (garbage collection): power rises and bandwidth falls. The run is cut
into intervals. `before` is the median MiB/J of the first tenth of the intervals, `after` the lowest
mean of as many consecutive ones. The drive changed if `before` is at least CHANGED times `after`.
The time of the change is the begin of the first interval from which as many consecutive intervals
as a hundredth of the run (three at least) are all below the geometric mean of both.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from eeio.analysis.observation import Key
from eeio.analysis.over_time import PowerSeries, bandwidth_log
from eeio.record.run import DOMAINS, Phase, Run
from eeio.record.store import Campaign
from eeio.report.campaign.columns import plain
from eeio.report.figures.panels_of_lines import Line, Panel
from eeio.report.table_and_plot import Table
from eeio.units.sizes import MB, MIB

if TYPE_CHECKING:
    from eeio.studies import Readings

CHANGED = 1.5
FEWEST = 20
"""Intervals of a run that is evaluated."""
_MOST = 2000
_LEAST_S = 0.5
_TENTH, _HUNDREDTH, _LEAST_TOGETHER = 10, 100, 3
_ROWS = 25


@dataclass(frozen=True)
class Interval:
    """A part of a run: s since its I/O began, mean W, bytes/s."""

    begin_s: float
    end_s: float
    power_w: float
    bytes_per_s: float

    @property
    def mib_per_s(self) -> float:
        return self.bytes_per_s / MIB

    @property
    def mib_per_j(self) -> float:
        return self.mib_per_s / self.power_w


@dataclass(frozen=True)
class Change:
    """`at_s` since the I/O began; means of W, MiB/s and MiB/J before it, and in the tenth of the
    run with the fewest MiB/J."""

    at_s: float
    before_w: float
    after_w: float
    before_mib_per_s: float
    after_mib_per_s: float
    before_mib_per_j: float
    after_mib_per_j: float

    @property
    def factor(self) -> float:
        """Of the energy per byte."""
        return self.before_mib_per_j / self.after_mib_per_j


@dataclass(frozen=True)
class OverTime:
    """One run. Without a change, `reason` says why; it also says why there are no intervals."""

    run: Run
    power_domain: str | None = None
    intervals: tuple[Interval, ...] = ()
    change: Change | None = None
    reason: str | None = None


def over_time(campaign: Campaign, readings: "Readings") -> list[OverTime]:
    """The runs that write at random after a fill, in the order of their runs."""
    runs = [run for run in campaign.runs if dict(run.experiment.arguments).get("fill") == "each"]
    if not runs:
        return []
    series = list(readings(campaign))
    return [_of_run(campaign, run, series) for run in runs]


def _of_run(campaign: Campaign, run: Run, series: Sequence[PowerSeries]) -> OverTime:
    if not run.valid:
        return OverTime(run, reason="; ".join(run.validity))
    if len(run.phases) != 1 or run.phases[0].validity or run.phases[0].start_s is None:
        return OverTime(run, reason="its I/O has no known time")
    log = bandwidth_log(campaign.folder / run.raw)
    if not log:
        return OverTime(run, reason="fio's bandwidth log is missing or incomplete")
    begin_s = run.started_monotonic_s + run.phases[0].start_s
    chosen = _series_of_run(run.phases[0], series, begin_s, begin_s + log[-1][0])
    if chosen is None:
        return OverTime(run, reason=_why_no_power(run.phases[0]))
    intervals = tuple(_intervals(log, chosen, begin_s))
    if len(intervals) < FEWEST:
        reason = (
            f"the run has {len(intervals)} intervals with power and bandwidth, and {FEWEST} are "
            "needed: a larger file or device lets it take longer"
        )
        return OverTime(run, chosen.key[0], intervals, reason=reason)
    change = change_of(intervals)
    if change is None:
        reason = (
            f"no change in {intervals[-1].end_s:.3g} s and {_written_gb(intervals):.3g} GB: the "
            f"MiB/J never fell by a factor of {CHANGED:g} for long. A longer run may reach it"
        )
        return OverTime(run, chosen.key[0], intervals, reason=reason)
    return OverTime(run, chosen.key[0], intervals, change)


def _why_no_power(phase: Phase) -> str:
    for reading in phase.energy:
        if reading.reasons:
            return f"{reading.domain} ({reading.meter}): {reading.reasons[0]}"
    return "no meter was read during the run"


def _series_of_run(
    phase: Phase, series: Sequence[PowerSeries], begin_s: float, end_s: float
) -> PowerSeries | None:
    """That of the drive, or else of the widest domain, whose energy is valid and without doubt."""
    sure: set[Key] = set()
    for reading in phase.energy:
        if reading.valid and not reading.doubtful and reading.kind != "modelled":
            sure.add((reading.domain, reading.meter, reading.kind))
    order = ["device", *DOMAINS]
    for domain in order:
        for each in series:
            is_there = each.times_s[0] <= begin_s and each.times_s[-1] >= end_s - _LEAST_S
            if each.key[0] == domain and each.key in sure and is_there:
                return each
    return None


def _intervals(
    log: Sequence[tuple[float, float]], series: PowerSeries, begin_s: float
) -> Iterator[Interval]:
    """Complete ones; those in which power was not read are left out."""
    length_s = _interval_s(log, series)
    count = int(log[-1][0] / length_s)
    written = [0.0] * count
    earlier_s = 0.0
    for at_s, mb_per_s in log:
        # An entry is the mean since the one before.
        for index, share_s in _shares(earlier_s, at_s, length_s, count):
            written[index] += mb_per_s * MB * share_s
        earlier_s = at_s
    for index in range(count):
        first_s, last_s = index * length_s, (index + 1) * length_s
        power_w = series.mean_between(begin_s + first_s, begin_s + last_s)
        bytes_per_s = written[index] / length_s
        if power_w is not None and power_w > 0 and bytes_per_s > 0:
            yield Interval(first_s, last_s, power_w, bytes_per_s)


def _interval_s(log: Sequence[tuple[float, float]], series: PowerSeries) -> float:
    """Half a second, or as long as two readings or two entries of the log are apart."""
    steps_s = [after - before for before, after in pairwise(series.times_s)]
    log_s = [after[0] - before[0] for before, after in pairwise(log)]
    apart_s = max(statistics.median(steps_s), statistics.median(log_s))
    return max(_LEAST_S, apart_s, log[-1][0] / _MOST)


def _shares(
    begin_s: float, end_s: float, length_s: float, count: int
) -> Iterator[tuple[int, float]]:
    """Which intervals a time lies in, and for how many seconds."""
    for index in range(int(begin_s / length_s), min(count, math.ceil(end_s / length_s))):
        inside_s = min(end_s, (index + 1) * length_s) - max(begin_s, index * length_s)
        if inside_s > 0:
            yield index, inside_s


def change_of(intervals: Sequence[Interval]) -> Change | None:
    """When the drive changed; None if it did not."""
    tenth = max(_LEAST_TOGETHER, len(intervals) // _TENTH)
    together = max(_LEAST_TOGETHER, len(intervals) // _HUNDREDTH)
    each_mib_per_j = [interval.mib_per_j for interval in intervals]
    before = statistics.median(each_mib_per_j[:tenth])
    starts = range(len(intervals) - tenth + 1)
    lowest = min(starts, key=lambda start: statistics.fmean(each_mib_per_j[start : start + tenth]))
    after = statistics.fmean(each_mib_per_j[lowest : lowest + tenth])
    if before < CHANGED * after:
        return None
    limit = math.sqrt(before * after)
    for index in range(len(intervals) - together + 1):
        if max(each_mib_per_j[index : index + together]) < limit:
            return _change(intervals, index, intervals[lowest : lowest + tenth])
    return None


def _change(intervals: Sequence[Interval], index: int, worst: Sequence[Interval]) -> Change | None:
    # The drive may have changed within the interval before.
    earlier = intervals[: index - 1]
    if index < 2:
        return None
    return Change(
        at_s=intervals[index].begin_s,
        before_w=_mean_w(earlier),
        after_w=_mean_w(worst),
        before_mib_per_s=_mean_mib_per_s(earlier),
        after_mib_per_s=_mean_mib_per_s(worst),
        before_mib_per_j=_mean_mib_per_s(earlier) / _mean_w(earlier),
        after_mib_per_j=_mean_mib_per_s(worst) / _mean_w(worst),
    )


def _mean_w(intervals: Sequence[Interval]) -> float:
    return statistics.fmean(interval.power_w for interval in intervals)


def _mean_mib_per_s(intervals: Sequence[Interval]) -> float:
    return statistics.fmean(interval.mib_per_s for interval in intervals)


def _written_gb(intervals: Sequence[Interval]) -> float:
    return sum(each.bytes_per_s * (each.end_s - each.begin_s) for each in intervals) / 1e9


def table(name: str, run: OverTime) -> Table:
    """At most 25 rows, each the mean of as many intervals."""
    group = max(1, math.ceil(len(run.intervals) / _ROWS))
    rows = []
    for first in range(0, len(run.intervals), group):
        part = run.intervals[first : first + group]
        mib_per_s, power_w = _mean_mib_per_s(part), _mean_w(part)
        rows.append(
            (
                f"{part[0].begin_s:.4g} to {part[-1].end_s:.4g}",
                plain(mib_per_s),
                plain(power_w),
                plain(mib_per_s / power_w),
            )
        )
    notes = []
    if run.power_domain is not None:
        notes.append(f"means; power of the {run.power_domain}")
    change = run.change
    if change is not None:
        notes.append(
            f"after {change.at_s:.4g} s the energy per byte rises by a factor of "
            f"{plain(change.factor)}: {plain(change.before_w)} W and "
            f"{plain(change.before_mib_per_s)} MiB/s before, {plain(change.after_w)} W and "
            f"{plain(change.after_mib_per_s)} MiB/s in the tenth of the run with the fewest MiB/J"
        )
    if run.reason is not None:
        notes.append(run.reason)
    return Table(
        title=f"Random writes of 4 KiB after a fill: {name}, repetition {run.run.repetition}",
        header=("Time (s)", "MiB/s", "Power (W)", "MiB/J"),
        rows=tuple(rows),
        numeric=frozenset((1, 2, 3)),
        note="\n".join(notes),
    )


def panels(run: OverTime) -> list[Panel]:
    """Power, bandwidth and MiB/J over the time in s; from the change on shaded."""
    shaded = None
    if run.change is not None:
        shaded = (run.change.at_s, run.intervals[-1].end_s)
    values = (
        ("MiB/s", [each.mib_per_s for each in run.intervals]),
        ("power (W)", [each.power_w for each in run.intervals]),
        ("MiB/J", [each.mib_per_j for each in run.intervals]),
    )
    made = []
    for axis, of_axis in values:
        points = [
            ((each.begin_s + each.end_s) / 2, value)
            for each, value in zip(run.intervals, of_axis, strict=True)
        ]
        made.append(Panel(axis, [Line("random writes", points)], shaded))
    return made
