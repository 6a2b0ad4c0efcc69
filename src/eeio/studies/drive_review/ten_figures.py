"""The ten figures of a drive's review.

Power is that of the drive if a meter measured it, otherwise that of the widest domain. A figure
that was not measured has its reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eeio.analysis.ranking import why_figures_unsure
from eeio.analysis.summary import Quartiles
from eeio.record.drive_states import DriveStates, StateReading
from eeio.record.store import Campaign
from eeio.studies.load import load_curves, proportionality
from eeio.studies.powersensor3.by_size import OfSize
from eeio.studies.powersensor3.over_time import OverTime

if TYPE_CHECKING:
    from eeio.analysis.rows import Row

_KIB = 1024


@dataclass(frozen=True)
class ReviewFigure:
    """`value` is in `unit`; `spread` are the quartiles over `n` repetitions, None for a figure that
    follows from several experiments. None has its reason in `remark`, which otherwise says what the
    figure describes."""

    name: str
    unit: str
    value: float | None
    remark: str
    n: int = 0
    spread: Sequence[float] | None = None
    unsure: str | None = None
    """Why it is compared with no other drive's: a doubt, or its uncertainty."""


@dataclass(frozen=True)
class Review:
    """What the figures follow from."""

    campaign: Campaign
    rows: "Sequence[Row]"
    sizes: Sequence[OfSize]
    runs: Sequence[OverTime]
    states: DriveStates | None

    @property
    def power_domain(self) -> str | None:
        """Of the figures with power."""
        for row in self.rows:
            figures = row.drive_or_main
            if figures is not None and figures["power_w"] is not None:
                return figures.power_domain
        return None

    def row(self, operation: str, spatiality: str, kib: int, depth: int) -> "Row | None":
        """That of the only experiment with these levels, without an offered load or a refill."""
        for row in self.rows:
            if row.experiment is None:
                continue
            arguments = dict(row.experiment.arguments)
            levels = (row.operation, row.spatiality, row.request_size_bytes)
            is_plain = "load" not in arguments and arguments.get("fill", "once") == "once"
            has_depth = arguments.get("iodepth", "1") == str(depth)
            if levels == (operation, spatiality, kib * _KIB) and is_plain and has_depth:
                return row
        return None


def ten_figures(review: Review) -> list[ReviewFigure]:
    """In the order of the table."""
    return [
        _idle(review),
        _highest(review),
        _of_row(review, "sequential read", "MB/s", ("read", "sequential", 128, 32), _bandwidth),
        _of_row(review, "sequential read", "MB/J", ("read", "sequential", 128, 32), _efficiency),
        _of_row(review, "random read 4 KiB", "IOPS/W", ("read", "random", 4, 128), _iops_per_w),
        _of_row(review, "sequential write", "MB/J", ("write", "sequential", 128, 32), _efficiency),
        _of_row(review, "random write 4 KiB", "IOPS/W", ("write", "random", 4, 32), _iops_per_w),
        _dynamic_range(review),
        _change(review),
        _lowest_state(review),
    ]


_Metric = tuple[str, float]
_bandwidth: _Metric = ("bandwidth_bytes_per_s", 1e6)
_efficiency: _Metric = ("efficiency_bytes_per_j", 1e6)
_iops_per_w: _Metric = ("iops_per_w", 1.0)


def _of_row(
    review: Review,
    name: str,
    unit: str,
    levels: tuple[str, str, int, int],
    metric: _Metric,
) -> ReviewFigure:
    row = review.row(*levels)
    remark = f"{levels[2]} KiB, depth {levels[3]}"
    if row is None:
        return ReviewFigure(name, unit, None, f"{remark}: {_why_left_out(review, levels)}")
    key, scale = metric
    figures = row.drive_or_main
    if key == "bandwidth_bytes_per_s":
        quartiles: Quartiles | None = row[key]
        reason = row.why(key)
        unsure = None
    elif figures is None:
        quartiles, reason, unsure = None, row.why("power_w"), None
    else:
        quartiles, reason = figures[key], figures.why(key)
        unsure = why_figures_unsure(figures)
    if quartiles is None:
        return ReviewFigure(name, unit, None, f"{remark}: {reason or 'not measured'}")
    spread = (quartiles.q1 / scale, quartiles.q3 / scale)
    return ReviewFigure(name, unit, quartiles.median / scale, remark, row.n, spread, unsure)


def _why_left_out(review: Review, levels: tuple[str, str, int, int]) -> str:
    operation, spatiality, kib, _ = levels
    for item in review.campaign.design.not_measured:
        experiment = item.experiment
        planned = (experiment.operation, experiment.spatiality, experiment.request_size_bytes)
        if planned == (operation, spatiality, kib * _KIB):
            return item.reason
    return "the campaign has no such experiment"


def _idle(review: Review) -> ReviewFigure:
    domain = review.power_domain
    if domain is None:
        return ReviewFigure("idle", "W", None, _why_no_power(review))
    watts = review.campaign.idle_power_w(domain)
    if watts is None:
        reason = review.campaign.idle_reason or f"no idle power of the {domain} was measured"
        return ReviewFigure("idle", "W", None, reason)
    remark = "baseline before the runs"
    below = sum(power.median < watts for power in _powers(review))
    if below:
        unsure = f"above the power of {below} experiments: the machine was not idle"
        return ReviewFigure("idle", "W", watts, remark, unsure=unsure)
    return ReviewFigure("idle", "W", watts, remark)


def _powers(review: Review) -> list[Quartiles]:
    powers = []
    for row in review.rows:
        figures = row.drive_or_main
        if figures is not None and (power := figures["power_w"]) is not None:
            powers.append(power)
    return powers


def _why_no_power(review: Review) -> str:
    for row in review.rows:
        reason = row.why("power_w")
        if reason is not None:
            return reason
    return "no experiment has power"


def _highest(review: Review) -> ReviewFigure:
    best: ReviewFigure | None = None
    for row in review.rows:
        figures = row.drive_or_main
        if figures is None or (power := figures["power_w"]) is None:
            continue
        if best is None or best.value is None or power.median > best.value:
            remark = " ".join((row.io_label, *row.details))
            spread = (power.q1, power.q3)
            best = ReviewFigure("highest power", "W", power.median, remark, row.n, spread)
    if best is None:
        return ReviewFigure("highest power", "W", None, _why_no_power(review))
    return best


def _dynamic_range(review: Review) -> ReviewFigure:
    """Of the load curve: 1 less idle power over the power at full speed."""
    name, unit = "dynamic range of the load curve", "%"
    curves = load_curves(review.campaign)
    if not curves:
        return ReviewFigure(name, unit, None, "the campaign has no offered load")
    result = proportionality(curves[0])
    if result.dynamic_range is None:
        return ReviewFigure(name, unit, None, result.reason or "not measured")
    remark = f"random reads of 64 KiB; power of the {result.power_domain}"
    return ReviewFigure(name, unit, 100 * result.dynamic_range, remark)


def _change(review: Review) -> ReviewFigure:
    name, unit = "random writes until energy per byte rises", "s"
    changes = [run.change for run in review.runs if run.change is not None]
    if not changes:
        reasons = dict.fromkeys(run.reason for run in review.runs if run.reason is not None)
        if not reasons:
            levels = ("write", "random", 4, 1)
            return ReviewFigure(name, unit, None, _why_left_out(review, levels))
        return ReviewFigure(name, unit, None, "; ".join(reasons))
    times_s = sorted(change.at_s for change in changes)
    factors = sorted(change.factor for change in changes)
    middle = len(changes) // 2
    remark = f"by a factor of {factors[middle]:.3g}; {len(changes)} of {len(review.runs)} runs"
    return ReviewFigure(name, unit, times_s[middle], remark, len(changes))


def _lowest_state(review: Review) -> ReviewFigure:
    name, unit = "lowest idle power of its states", "W"
    if review.states is None:
        return ReviewFigure(name, unit, None, "the states were not measured (--device)")
    if review.states.reason is not None:
        return ReviewFigure(name, unit, None, review.states.reason)
    best: ReviewFigure | None = None
    for reading in review.states.states:
        watts = power_of_state(reading, review.power_domain)
        is_idle = "idle" in reading.state or reading.state == "standby"
        if watts is None or not is_idle:
            continue
        if best is None or best.value is None or watts < best.value:
            best = ReviewFigure(name, unit, watts, _with_wake(reading, review.states.states))
    if best is None:
        reasons = [reading.invalid for reading in review.states.states if reading.invalid]
        return ReviewFigure(name, unit, None, "; ".join(dict.fromkeys(reasons)) or "no power")
    return best


def power_of_state(reading: StateReading, domain: str | None) -> float | None:
    """W of a valid reading without doubt, of that domain."""
    if reading.invalid is not None:
        return None
    for energy in reading.energy:
        is_usable = energy.valid and not energy.doubtful and energy.kind != "modelled"
        if energy.domain == domain and is_usable:
            return energy.power_w
    return None


def _with_wake(idle: StateReading, states: Sequence[StateReading]) -> str:
    """`ps4 idle; the first read takes 12 ms`."""
    waking = idle.state.replace(" idle", " waking").replace("standby", "spin-up")
    for reading in states:
        if reading.state == waking and reading.invalid is None and waking != idle.state:
            return f"{idle.state}; the first read takes {1e3 * reading.duration_s:.3g} ms"
    return idle.state
