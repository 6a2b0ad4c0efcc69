"""A gate for CI: has any experiment become worse by more than a share?

Each experiment is a test of that hypothesis, one-sided, on the logarithms of its values (Welch
1947): its difference must exceed the share by more than chance. The p-values are adjusted over the
experiments (Benjamini and Hochberg 1995), so a campaign in which no experiment is worse by more
than the share fails with a probability of `alpha` at most (Simes 1986).

Few repetitions may all be of one mode of a drive and look quieter than it is. So the error of a row
is never taken to be smaller than that of the median row (benchmarks/gate_truth.py shows the rates).
An experiment that has the metric on one side only, or has one value, cannot be tested. It fails by
name, since a gate that passes it would hide the fault.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtr, stdtrit

from eeio_limits.quantities import MOST_UNCERTAIN
from eeio_limits.reasons import imprecise_energy
from eeio_results.comparison.cells import (
    BANDWIDTH,
    EXECUTION_S,
    J_PER_GB,
    POWER,
    Cell,
    largest_uncertainty,
)
from eeio_results.comparison.changes import OF_EFFICIENCY, PLACE, by_what
from eeio_results.errors import EeioError
from eeio_results.metrics import named
from eeio_results.statistics.adjustment import adjust
from eeio_results.statistics.decision import welch
from eeio_results.store import Campaign

ALPHA = 0.05
POWER_OF_TEST = 0.9
"""Of the changes that the gate reports as detectable."""


Verdict = Literal["worse", "passed", "not tested"]


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
    """The rows of the campaign `after` against those of `before`."""

    before: str
    after: str
    metric: str
    share: float
    rows: tuple[GateRow, ...]

    def of(self, verdict: Verdict) -> list[GateRow]:
        return [row for row in self.rows if row.verdict == verdict]

    @property
    def detectable(self) -> tuple[float, float] | None:
        """Of the median and of the worst tested row; None if none was."""
        found = [row.detectable for row in self.rows if row.detectable is not None]
        return (statistics.median(found), max(found)) if found else None


@dataclass(frozen=True)
class Side:
    """The campaign, or the sessions of one machine, before or after a change."""

    name: str
    cells: Sequence[Cell]
    campaigns: Sequence[Campaign]


def _pairs(before: Side, after: Side, metric: str) -> Iterator[tuple[Cell, Cell | None, str]]:
    """The experiments that have the metric before or after, and the key of it."""
    cells = by_what(after.cells)
    for experiment, cell in by_what(before.cells).items():
        other = cells.get(experiment)
        both = [cell] if other is None else [cell, other]
        key = next(filter(None, (_key(metric, one) for one in both)), None)
        if key is not None and any(one.n(key) for one in both):
            yield cell, other, key


def gate(before: Side, after: Side, share: float, metric: str | None, alpha: float = ALPHA) -> Gate:
    """`metric` is one of `metrics.gated()`; None: J/GB if the campaign before has it, else MB/s, or
    the time of commands that move no bytes. Raises EeioError if no experiment has it."""
    metric = metric or _headline(before.cells)
    pairs = list(_pairs(before, after, metric))
    if not any(cell.n(key) for cell, _, key in pairs):
        raise EeioError(f"--fail-if: no experiment of {before.name} has {metric}")
    if named(metric).better == "more" and share >= 1:
        raise EeioError(
            f"--fail-if: {metric} cannot become {100 * share:g} % worse, as 100 % is all of it"
        )
    tested: list[_Tested] = []
    untested: dict[int, GateRow] = {}
    for position, (cell, other, key) in enumerate(pairs):
        label = cell.label(PLACE, tool=True)
        reason = _why_not_tested(cell, other, key, before, after)
        if reason is not None:
            untested[position] = GateRow(label, "not tested", reason=reason)
        elif other is not None:
            tested.append(_Tested(label, cell.values(key), other.values(key), metric, share))
    judged = iter(_judged(tested, alpha))
    rows = (untested.get(position) or next(judged) for position in range(len(pairs)))
    return Gate(before.name, after.name, metric, share, tuple(rows))


def _headline(cells: Sequence[Cell]) -> str:
    for metric, key in (("J/GB", J_PER_GB), ("MB/s", BANDWIDTH), ("time", EXECUTION_S)):
        if any(cell.n(key) for cell in cells):
            return metric
    return "MB/s"


def _key(metric: str, cell: Cell) -> str | None:
    """Of power that of the widest domain that was measured."""
    if metric == "W":
        return next((key for key in POWER.values() if cell.n(key)), None)
    return named(metric).key


def _why_not_tested(
    cell: Cell, other: Cell | None, key: str, before: Side, after: Side
) -> str | None:
    failure = _failure(after.campaigns, cell.experiment_id)
    if other is None:
        return f"{after.name} has no result of it: {failure or 'it did not run'}"
    if not cell.n(key):
        return f"{before.name} does not have this metric: {cell.why(key) or 'not measured'}"
    if not other.n(key):
        reason = other.why(key) or failure or "not measured"
        return f"{after.name} does not have this metric: {reason}"
    if key in OF_EFFICIENCY and cell.efficiency_of != other.efficiency_of:
        return (
            f"the energies are of different power domains: {', '.join(cell.efficiency_of)} and "
            f"{', '.join(other.efficiency_of)}"
        )
    if key in OF_EFFICIENCY or key in POWER.values():
        worst = largest_uncertainty(cell, other)
        if worst > MOST_UNCERTAIN:
            return imprecise_energy(worst)
    few = min(cell.n(key), other.n(key))
    if few < 2:
        return "a single repetition has no spread to test with"
    if min(*cell.values(key), *other.values(key)) <= 0:
        return "a value of 0 has no ratio"
    return None


def _failure(campaigns: Sequence[Campaign], experiment_id: str) -> str | None:
    """None if a run of the experiment is valid, or if there is none."""
    runs = [run for one in campaigns for run in one.runs if run.experiment.id == experiment_id]
    if not runs or not all(run.validity for run in runs):
        return None
    return f"{len(runs)} runs failed: {next(why for run in runs for why in run.validity)}"


@dataclass(frozen=True)
class _Tested:
    label: str
    before: Sequence[float]
    after: Sequence[float]
    metric: str
    share: float

    @property
    def logs(self) -> tuple[list[float], list[float]]:
        first, second = ([math.log(value) for value in s] for s in (self.before, self.after))
        return first, second

    @property
    def variances(self) -> tuple[float, float]:
        first, second = self.logs
        return statistics.variance(first), statistics.variance(second)


def _judged(tested: Sequence[_Tested], alpha: float) -> list[GateRow]:
    if not tested:
        return []
    usual = statistics.median(statistics.fmean(one.variances) for one in tested)
    errors = [_error(one, usual) for one in tested]
    adjusted = adjust(
        [_p_worse(one, *error) for one, error in zip(tested, errors, strict=True)],
        "benjamini-hochberg",
    )
    strictest = alpha / len(tested)
    return [
        GateRow(
            one.label,
            "worse" if p < alpha else "passed",
            math.expm1(_difference(one)),
            p,
            (len(one.before), len(one.after)),
            _detectable(one, *error, strictest),
        )
        for one, error, p in zip(tested, errors, adjusted, strict=True)
    ]


def _difference(one: _Tested) -> float:
    first, second = one.logs
    return statistics.fmean(second) - statistics.fmean(first)


def _error(one: _Tested, usual: float) -> tuple[float, float]:
    """Standard error of the difference of the logarithms, and its degrees of freedom."""
    n = len(one.before), len(one.after)
    error, degrees = welch(one.variances, n)
    least = math.sqrt(usual / n[0] + usual / n[1])
    return (error, degrees) if error >= least else (least, float(n[0] + n[1] - 2))


def _p_worse(one: _Tested, error: float, degrees: float) -> float:
    """Of a change for the worse that is no larger than the share."""
    worse = _difference(one) * (-1.0 if named(one.metric).better == "more" else 1.0)
    excess = worse - _limit(one)
    if error == 0.0:
        return 0.0 if excess > 0 else 1.0
    return float(stdtr(degrees, -excess / error))


def _limit(one: _Tested) -> float:
    """The share on the logarithmic scale: 5 % more J/GB, or 5 % less MB/s."""
    if named(one.metric).better != "more":
        return math.log1p(one.share)
    return -math.log1p(-one.share)


def _detectable(one: _Tested, error: float, degrees: float, alpha: float) -> float:
    reach = float(stdtrit(degrees, 1 - alpha)) + float(stdtrit(degrees, POWER_OF_TEST))
    size = _limit(one) + reach * error
    if named(one.metric).better == "more":
        return -math.expm1(-size)
    return math.expm1(min(size, 700.0))
