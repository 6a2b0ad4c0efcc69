"""Changes from one campaign to another: each experiment that both have, metric by metric."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eeio.analysis.metrics import METRICS, in_cells
from eeio.comparison.cells import (
    BANDWIDTH,
    EXECUTION_S,
    J_PER_GB,
    J_PER_GB_OF,
    OF_EFFICIENCY,
    OF_POWER,
    POWER,
    Cell,
    largest_uncertainty,
    why_energy_unsure,
)
from eeio.record.run import DEMO
from eeio.statistics.adjustment import Adjustment, adjust
from eeio.statistics.decision import Change, Rule, answered, change
from eeio.units.quantities import MOST_UNCERTAIN

Verdict = Literal["better", "worse", "none above", "open", "not compared"]

_MORE_IS_BETTER = frozenset(metric.key for metric in METRICS if metric.better == "more")
OF_DRIVE = J_PER_GB_OF["device"]
"""The drive's own energy, next to that of the widest domain."""


def change_metrics() -> tuple[str, ...]:
    """The keys of the metrics that are compared, in the order of the tables."""
    compared = [metric.key for metric in in_cells() if metric.compared]
    return (*compared, *POWER.values(), OF_DRIVE)


PLACE = ("machine", "device", "type")
"""Where an experiment ran, which differs between campaigns."""


@dataclass(frozen=True)
class MetricChange:
    """One metric of one experiment; `reason` is why there is no answer. `means` are the geometric
    means before and after, whose ratio the change is."""

    metric: str
    verdict: Verdict
    change: Change
    means: tuple[float | None, float | None]
    reason: str | None = None


@dataclass(frozen=True)
class ExperimentChange:
    """One experiment that both campaigns have."""

    before: Cell
    after: Cell
    metrics: Mapping[str, MetricChange]

    @property
    def label(self) -> str:
        return self.before.label(without=PLACE, tool=True)


@dataclass(frozen=True)
class Changes:
    """From the campaign `before` to the campaign `after`.

    Their values are of repetitions, or of sessions if `of_sessions` (comparison/sessions.py).
    `headline` is the metric that answers whether the change helped: J/GB, bandwidth where one of
    them has no energy, or the time of commands that move no bytes. `only_before` and `only_after`
    are experiments that the other lacks.
    """

    before: str
    after: str
    rule: Rule
    headline: str
    experiments: tuple[ExperimentChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    of_sessions: bool = False

    @property
    def of_demo(self) -> bool:
        """Whether the energies are fictitious."""
        domains = (d for e in self.experiments for d in e.before.efficiency_of)
        return any(domain.endswith(f"({DEMO})") for domain in domains)

    def counted(self, metric: str) -> dict[Verdict, int]:
        """Experiments by their verdict in a metric."""
        counts: dict[Verdict, int] = {}
        for experiment in self.experiments:
            verdict = experiment.metrics[metric].verdict
            counts[verdict] = counts.get(verdict, 0) + 1
        return counts

    def mean_ratio(self, metric: str) -> float | None:
        """Geometric mean over the experiments of their ratios; None where none has one."""
        logs = []
        for experiment in self.experiments:
            of_metric = experiment.metrics[metric]
            if of_metric.change.ratio is not None and of_metric.verdict != "not compared":
                logs.append(math.log(of_metric.change.ratio))
        if not logs:
            return None
        return math.exp(math.fsum(logs) / len(logs))


def changes(
    before: tuple[str, Sequence[Cell]],
    after: tuple[str, Sequence[Cell]],
    rule: Rule,
    adjustment: Adjustment = "benjamini-hochberg",
) -> Changes:
    """Names and cells of two campaigns. Directions are adjusted over all experiments of a metric;
    a doubtful energy has no answer, and one that is known to worse than MOST_UNCERTAIN has one only
    where the change exceeds what both meters may be wrong."""
    first, second = (by_what(cells) for _, cells in (before, after))
    pairs = []
    for key in first:
        if key in second:
            pairs.append((first[key], second[key]))
    columns = {metric: _column(pairs, metric, rule, adjustment) for metric in change_metrics()}
    return Changes(
        before=before[0],
        after=after[0],
        rule=rule,
        headline=_headline(columns),
        experiments=tuple(
            ExperimentChange(*pair, {metric: columns[metric][index] for metric in columns})
            for index, pair in enumerate(pairs)
        ),
        only_before=only(first, second),
        only_after=only(second, first),
    )


def _headline(columns: Mapping[str, Sequence[MetricChange]]) -> str:
    """J/GB; without energy MB/s; for commands that move no bytes their time."""
    for metric in (J_PER_GB, BANDWIDTH, EXECUTION_S):
        if any(of_metric.change.ratio is not None for of_metric in columns[metric]):
            return metric
    return BANDWIDTH


What = tuple[tuple[str, str], ...]


def what(cell: Cell) -> What:
    """The experiment, without its place."""
    return tuple((name, level) for name, level in cell.factors.items() if name not in PLACE)


def by_what(cells: Iterable[Cell]) -> dict[What, Cell]:
    """The cells of one campaign by their experiments. Experiments that are alike in all factors
    are told apart by their identities."""
    alike: dict[What, list[Cell]] = {}
    for cell in cells:
        alike.setdefault(what(cell), []).append(cell)
    return {
        key if len(of_key) == 1 else (*key, ("experiment", cell.experiment_id)): cell
        for key, of_key in alike.items()
        for cell in of_key
    }


def only(of: Mapping[What, Cell], other: Mapping[What, Cell]) -> tuple[str, ...]:
    """The labels of the experiments that the `other` campaign lacks."""
    return tuple(cell.label(PLACE, tool=True) for key, cell in of.items() if key not in other)


def _column(
    pairs: Sequence[tuple[Cell, Cell]],
    metric: str,
    rule: Rule,
    adjustment: Adjustment,
) -> list[MetricChange]:
    changes = []
    for before, after in pairs:
        changes.append(
            change(
                before.values(metric),
                after.values(metric),
                rule,
                _finite(doubt(before, after, metric)),
            )
        )
    p_values = [of_pair.p_direction for of_pair in changes if of_pair.p_direction is not None]
    adjusted = iter(p_values if adjustment == "none" else adjust(p_values, adjustment))
    return [
        _metric_change(
            pair,
            metric,
            answered(of_pair, next(adjusted), rule) if of_pair.p_direction is not None else of_pair,
        )
        for pair, of_pair in zip(pairs, changes, strict=True)
    ]


def _metric_change(pair: tuple[Cell, Cell], metric: str, found: Change) -> MetricChange:
    first, second = (_geometric_mean(cell.values(metric)) for cell in pair)
    means = first, second
    reason = _why_not(pair, metric, found)
    if reason is not None:
        open_ = replace(found, answer="open")
        return MetricChange(metric, "not compared", open_, means, reason)
    verdict: Verdict
    if found.answer in ("higher", "lower"):
        better = (found.answer == "higher") == (metric in _MORE_IS_BETTER)
        verdict = "worse"
        if better:
            verdict = "better"
    else:
        verdict = "open"
        if found.answer == "none above":
            verdict = "none above"
    return MetricChange(metric, verdict, found, means, found.reason)


def _geometric_mean(values: Sequence[float]) -> float | None:
    if not values or min(values) <= 0:
        return None
    return statistics.geometric_mean(values)


def _why_not(pair: tuple[Cell, Cell], metric: str, found: Change) -> str | None:
    for cell in pair:
        if not cell.n(metric):
            return f"not measured: {cell.why(metric) or 'the tool does not report it'}"
    first, second = pair
    if metric in OF_EFFICIENCY and first.efficiency_of != second.efficiency_of:
        return "the energies are of different power domains"
    limit = doubt(*pair, metric)
    if limit == math.inf or (limit > 0 and found.answer not in ("higher", "lower")):
        return why_energy_unsure(*pair)
    return None


def doubt(before: Cell, after: Cell, metric: str) -> float:
    """What the meters may be wrong in a change, on the logarithmic scale: 0 where they are known
    well enough, because two campaigns have the same meter; else all that both may be wrong, and
    infinite where one of them is doubtful or may be wrong by its whole value."""
    if metric not in OF_POWER:
        return 0.0
    if before.doubts or after.doubts:
        return math.inf
    if largest_uncertainty(before, after) <= MOST_UNCERTAIN:
        return 0.0
    first, second = largest_uncertainty(before), largest_uncertainty(after)
    if max(first, second) >= 1:
        return math.inf
    return max(
        math.log1p(first) - math.log1p(-second),
        math.log1p(second) - math.log1p(-first),
    )


def _finite(limit: float) -> float:
    """A doubt for a test; one that is infinite has no answer anyway."""
    if limit == math.inf:
        return 0.0
    return limit
