"""A gate for CI: has any experiment become worse by more than a share?

Each experiment is a test of that hypothesis, one-sided, on the logarithms of its values (Welch
1947): its difference must exceed the share by more than chance. The p-values are adjusted over the
experiments (Benjamini and Hochberg 1995), so a campaign in which no experiment is worse by more
than the share fails with a probability of `alpha` at most (Simes 1986).

An experiment passes if it is surely below the change that must not pass unnoticed: one that is
worse by that change or more passes with a probability of `alpha` at most. If neither is sure, it
is not decided (docs/decisions/0066-gate-and-plan.md).

Few repetitions may all be of one mode of a drive and look quieter than it is. So the error of a row
is never taken to be smaller than that of the median row (benchmarks/gate_truth.py shows the rates).
An experiment that has the metric on one side only, or has one value, cannot be tested. It fails by
name, since a gate that passes it would hide the fault.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scipy.special import stdtr, stdtrit

from eeio.analysis.metrics import named
from eeio.comparison.cells import (
    BANDWIDTH,
    EXECUTION_S,
    J_PER_GB,
    OF_EFFICIENCY,
    POWER,
    Cell,
    why_energy_unsure,
)
from eeio.comparison.changes import PLACE, by_what, doubt, only
from eeio.errors import EeioError
from eeio.record.store import Campaign
from eeio.statistics.adjustment import adjust
from eeio.statistics.decision import welch

ALPHA = 0.05
POWER_OF_TEST = 0.9
"""Of the changes that the gate reports as detectable."""


Verdict = Literal["worse", "passed", "not decided", "not tested"]


@dataclass(frozen=True)
class GateRow:
    """One experiment. `change` is relative (0.1: 10 % more), whatever is better; `detectable` the
    relative change for the worse that would have been found with the probability POWER_OF_TEST."""

    label: str
    verdict: Verdict
    change: float | None = None
    p_adjusted: float | None = None
    n: tuple[int, int] = (0, 0)
    detectable: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Gate:
    """The rows of the campaign `after` against those of `before`. `share` is the tolerated change,
    `detect` the one that must not pass unnoticed (None: the user stated none). `bench_runs` is the
    number of runs of each command that finds it; None for suites, or if no number does.
    `only_after` are experiments that `before` lacks: they are named, and do not fail the gate."""

    before: str
    after: str
    metric: str
    share: float
    rows: tuple[GateRow, ...]
    detect: float | None = None
    bench_runs: int | None = None
    only_after: tuple[str, ...] = ()

    @property
    def to_detect(self) -> float:
        """The change to plan for; where none was stated, twice the one that is tolerated."""
        if self.detect is not None:
            return self.detect
        doubled = 2.0 * self.share or 0.05
        # A bandwidth cannot become worse by all of it.
        if named(self.metric).better == "more":
            return min(doubled, 0.5 * (1 + self.share))
        return doubled

    def of(self, verdict: Verdict) -> list[GateRow]:
        return [row for row in self.rows if row.verdict == verdict]

    @property
    def detectable(self) -> tuple[float, float] | None:
        """Of the median and of the worst tested row; None if none was."""
        changes = [row.detectable for row in self.rows if row.detectable is not None]
        if changes:
            return (statistics.median(changes), max(changes))
        return None


@dataclass(frozen=True)
class Side:
    """The campaign, or the sessions of one machine, before or after a change."""

    name: str
    cells: Sequence[Cell]
    campaigns: Sequence[Campaign]


def pairs(before: Side, after: Side, metric: str) -> Iterator[tuple[Cell, Cell | None, str]]:
    """The experiments that have the metric before or after, and the key of it."""
    cells = by_what(after.cells)
    for experiment, cell in by_what(before.cells).items():
        other = cells.get(experiment)
        both = [cell] if other is None else [cell, other]
        key = next(filter(None, (key_of(metric, one) for one in both)), None)
        if key is not None and any(one.n(key) for one in both):
            yield cell, other, key


def gate(
    before: Side,
    after: Side,
    share: float,
    metric: str | None,
    alpha: float = ALPHA,
    detect: float | None = None,
) -> Gate:
    """`metric` is one of `metrics.gated()`; None: J/GB if the campaign before has it, else MB/s, or
    the time of commands that move no bytes. Raises EeioError if no experiment has it."""
    metric = metric or headline(before.cells)
    check_shares(metric, share, detect)
    compared = list(pairs(before, after, metric))
    if not any(cell.n(key) for cell, _, key in compared):
        raise EeioError(f"--fail-if: no experiment of {before.name} has {metric}")
    tested: list[_Tested] = []
    untested: dict[int, GateRow] = {}
    for position, (cell, other, key) in enumerate(compared):
        label = cell.label(PLACE, tool=True)
        reason = why_not_tested(cell, other, key, before, after)
        if reason is not None:
            untested[position] = GateRow(label, "not tested", reason=reason)
        elif other is not None:
            tested.append(
                _Tested(
                    label,
                    cell.values(key),
                    other.values(key),
                    doubt(cell, other, key),
                    why_energy_unsure(cell, other),
                    log_change(metric, share),
                    log_change(metric, share if detect is None else detect),
                    named(metric).better,
                )
            )
    judged = iter(_judged(tested, alpha))
    rows = (untested.get(position) or next(judged) for position in range(len(compared)))
    return Gate(
        before.name,
        after.name,
        metric,
        share,
        tuple(rows),
        detect,
        only_after=only(by_what(after.cells), by_what(before.cells)),
    )


def check_shares(metric: str, share: float, detect: float | None) -> None:
    """Raises EeioError for shares that no result could have, or that no result could decide."""
    if detect is not None and detect <= share:
        raise EeioError(
            f"--detect {100 * detect:g}%: a change of {100 * share:g} % is tolerated (--fail-if "
            f"worse:{100 * share:g}%); give a larger change to detect"
        )
    for option, value in (("--fail-if", share), ("--detect", detect or 0.0)):
        if named(metric).better == "more" and value >= 1:
            raise EeioError(
                f"{option}: {metric} cannot become {100 * value:g} % worse, as 100 % is all of it"
            )


def log_change(metric: str, share: float) -> float:
    """A change for the worse on the logarithmic scale: 5 % more J/GB, or 5 % less MB/s."""
    if named(metric).better != "more":
        return math.log1p(share)
    return -math.log1p(-share)


def headline(cells: Sequence[Cell]) -> str:
    for metric, key in (("J/GB", J_PER_GB), ("MB/s", BANDWIDTH), ("time", EXECUTION_S)):
        if any(cell.n(key) for cell in cells):
            return metric
    return "MB/s"


def key_of(metric: str, cell: Cell) -> str | None:
    """Of power that of the widest domain that was measured."""
    if metric == "W":
        return next((key for key in POWER.values() if cell.n(key)), None)
    return named(metric).key


def why_not_tested(
    cell: Cell, other: Cell | None, key: str, before: Side, after: Side
) -> str | None:
    """Of the cell before and the `other` after; None if the gate tests them."""
    failed_before = _failed(before.campaigns, cell.experiment_id)
    failed_after = _failed(after.campaigns, cell.experiment_id)
    failure = None
    if failed_after.share == 1:
        failure = failed_after.text
    if other is None:
        return f"{after.name} has no result of it: {failure or 'it did not run'}"
    if not cell.n(key):
        return f"{before.name} does not have this metric: {cell.why(key) or 'not measured'}"
    if not other.n(key):
        reason = other.why(key) or failure or "not measured"
        return f"{after.name} does not have this metric: {reason}"
    if failed_after.share > failed_before.share:
        return f"{failed_after.text} (before: {failed_before.failed} of {failed_before.runs})"
    if key in OF_EFFICIENCY and cell.efficiency_of != other.efficiency_of:
        return (
            f"the energies are of different power domains: {', '.join(cell.efficiency_of)} and "
            f"{', '.join(other.efficiency_of)}"
        )
    few = min(cell.n(key), other.n(key))
    if few < 2:
        return "a single repetition has no spread to test with"
    if min(*cell.values(key), *other.values(key)) <= 0:
        return "a value of 0 has no ratio"
    if doubt(cell, other, key) == math.inf:
        return why_energy_unsure(cell, other)
    return None


@dataclass(frozen=True)
class _Failed:
    """How many of the runs of an experiment failed, with the reason of the first."""

    failed: int
    runs: int
    reason: str

    @property
    def share(self) -> float:
        if self.runs:
            return self.failed / self.runs
        return 0.0

    @property
    def text(self) -> str:
        counted = f"{self.failed} of {self.runs}"
        if self.failed == self.runs:
            counted = str(self.runs)
        return f"{counted} runs failed: {self.reason}"


def _failed(campaigns: Sequence[Campaign], experiment_id: str) -> _Failed:
    reasons = []
    count = 0
    for campaign in campaigns:
        for run in campaign.runs:
            if run.experiment.id != experiment_id:
                continue
            count += 1
            if run.validity:
                reasons.append(run.validity[0])
    return _Failed(len(reasons), count, next(iter(reasons), ""))


@dataclass(frozen=True)
class _Tested:
    """An experiment that is tested. `doubt` is that of the meters with its reason, `tolerated` and
    `detect` the shares of the gate, all on the logarithmic scale."""

    label: str
    before: Sequence[float]
    after: Sequence[float]
    doubt: float
    why_doubtful: str | None
    tolerated: float
    detect: float
    better: Literal["more", "less"] | None

    @cached_property
    def logs(self) -> tuple[list[float], list[float]]:
        first, second = (list(map(math.log, s)) for s in (self.before, self.after))
        return first, second

    @property
    def variances(self) -> tuple[float, float]:
        first, second = self.logs
        return statistics.variance(first), statistics.variance(second)

    @property
    def n(self) -> tuple[int, int]:
        return len(self.before), len(self.after)

    @property
    def difference(self) -> float:
        first, second = self.logs
        return statistics.fmean(second) - statistics.fmean(first)

    @property
    def worse_by(self) -> float:
        """The difference, above 0 where it is for the worse."""
        if self.better == "more":
            return -self.difference
        return self.difference


@dataclass(frozen=True)
class _Error:
    """The standard error of the difference of the logarithms, and its degrees of freedom."""

    size: float
    degrees: float

    def p_above(self, excess: float) -> float:
        """One-sided, of a difference that exceeds a limit by `excess`."""
        if self.size == 0.0:
            if excess > 0:
                return 0.0
            return 1.0
        return float(stdtr(self.degrees, -excess / self.size))


def _judged(tested: Sequence[_Tested], alpha: float) -> list[GateRow]:
    if not tested:
        return []
    usual = statistics.median(statistics.fmean(row.variances) for row in tested)
    errors = [_error(row, usual) for row in tested]
    adjusted = adjust(
        [
            error.p_above(row.worse_by - row.tolerated - row.doubt)
            for row, error in zip(tested, errors, strict=True)
        ],
        "benjamini-hochberg",
    )
    strictest = alpha / len(tested)
    return [
        _row(row, error, p, alpha, strictest)
        for row, error, p in zip(tested, errors, adjusted, strict=True)
    ]


def _row(row: _Tested, error: _Error, p: float, alpha: float, strictest: float) -> GateRow:
    p_passed = error.p_above(row.detect - row.worse_by - row.doubt)
    verdict: Verdict = "not decided"
    if p < alpha:
        verdict = "worse"
    elif p_passed < alpha:
        verdict = "passed"
    reason = None
    if verdict == "not decided" and row.doubt > 0:
        # More repetitions do not help: the meters are the limit.
        verdict, reason = "not tested", row.why_doubtful
    return GateRow(
        row.label,
        verdict,
        math.expm1(row.difference),
        p,
        row.n,
        _detectable(row, error, strictest),
        reason,
    )


def _error(row: _Tested, usual: float) -> _Error:
    size, degrees = welch(row.variances, row.n)
    least = math.sqrt(usual / row.n[0] + usual / row.n[1])
    if size >= least:
        return _Error(size, degrees)
    return _Error(least, float(sum(row.n) - 2))


def _detectable(row: _Tested, error: _Error, alpha: float) -> float:
    reach = float(stdtrit(error.degrees, 1 - alpha)) + float(stdtrit(error.degrees, POWER_OF_TEST))
    size = row.tolerated + row.doubt + reach * error.size
    if row.better == "more":
        return -math.expm1(-size)
    return math.expm1(min(size, 700.0))
