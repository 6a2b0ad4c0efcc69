"""What each factor does to each metric, over all pairs of cells that differ in it alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from eeio_results.comparison.cells import METRICS, Cell
from eeio_results.comparison.differences import (
    ALPHA,
    Difference,
    differences,
    largest,
    percent_above,
)
from eeio_results.comparison.pairing import FOLLOWS, Index, Rest
from eeio_results.statistics.adjustment import Adjustment
from eeio_results.statistics.groups import dunn as dunn_test
from eeio_results.statistics.pairs import mann_whitney

FACTORS = ("buffer", "disk", "size", "spatiality", "operation", "type", "machine")
"""Factors whose levels are compared, in the order of a report."""


@dataclass(frozen=True)
class Effect:
    """What one factor does to one metric: of all pairs whose `factor` is `higher` against `lower`,
    how many the test confirms, and the largest of them."""

    metric: str
    factor: str
    higher: str
    lower: str
    pairs: int
    confirmed: int
    too_few: int
    largest: Difference | None


def effects(
    cells: Sequence[Cell],
    adjustment: Adjustment = "benjamini-hochberg",
    alpha: float = ALPHA,
    metrics: Sequence[str] = METRICS,
    factors: Sequence[str] = FACTORS,
) -> list[Effect]:
    """Every factor's effect on every metric, in both directions."""
    index = Index(cells)
    pairs_of = {
        factor: None if _needs_dunn(index, factor) else _pairs(index, factor) for factor in factors
    }
    found = []
    for metric in metrics:
        for factor, pairs in pairs_of.items():
            if pairs is None:
                tested: Iterable[Tested] = _by_dunn(index, metric, factor, adjustment).items()
            else:
                # One after the other: all differences of many machines at once are much to hold.
                tested = (
                    (levels, differences(of_levels, metric, adjustment))
                    for levels, of_levels in pairs.items()
                )
            for (first, second), of_pair in tested:
                if of_pair:
                    found += _both_ways(metric, factor, first, second, of_pair, alpha)
    return found


Levels = tuple[str, str]
Tested = tuple[Levels, list[Difference]]


def _needs_dunn(index: Index, factor: str) -> bool:
    return len(index.levels(factor)) > 2 and factor not in ("machine", *FOLLOWS)


def _pairs(index: Index, factor: str) -> dict[Levels, list[tuple[Cell, Cell]]]:
    """Of each two levels: tested by Mann-Whitney, adjusted over all their pairs of cells."""
    return {
        (first, second): list(index.pairs(factor, first, second))
        for first, second in combinations(index.levels(factor), 2)
    }


def _by_dunn(
    index: Index, metric: str, factor: str, adjustment: Adjustment
) -> dict[Levels, list[Difference]]:
    """More levels: Dunn's test among the experiments that are alike in all else, adjusted over
    these (docs/method.md)."""
    levels = index.levels(factor)
    groups: dict[Rest, dict[str, Cell]] = {}
    for rest, cell in index.groups(factor):
        if cell.factors[factor] in levels and cell.n(metric) and cell.median(metric) > 0:
            groups.setdefault(rest, {})[cell.factors[factor]] = cell
    found: dict[Levels, list[Difference]] = {pair: [] for pair in combinations(levels, 2)}
    for group in groups.values():
        if len(group) < 2:
            continue
        # Levels of a factor other than the machine: cells of one campaign.
        dunn = dunn_test({level: cell.tested(metric) for level, cell in group.items()}, adjustment)
        p_of = {frozenset((pair.a, pair.b)): pair.p_adjusted for pair in dunn.pairs}
        for first, second in found:
            if first in group and second in group:
                a, b = group[first], group[second]
                values = a.tested(metric), b.tested(metric)
                found[first, second].append(
                    Difference(
                        metric, a, b, percent_above(*values), mann_whitney(*values),
                        p_of[frozenset((first, second))],
                    )
                )  # fmt: skip
    return found


def _both_ways(
    metric: str, factor: str, first: str, second: str, tested: Sequence[Difference], alpha: float
) -> list[Effect]:
    turned = [
        Difference(
            metric, d.lower, d.higher, 100.0 * (100.0 / (100.0 + d.percent) - 1.0), d.test, d.p
        )
        for d in tested
        if d.percent > -100.0
    ]
    too_few = sum(d.test.too_small is not None for d in tested)
    return [
        Effect(
            metric, factor, high, low, len(one_way),
            sum(d.percent > 0 and d.confirmed(alpha) for d in one_way), too_few,
            largest(one_way, alpha),
        )
        for high, low, one_way in ((first, second, tested), (second, first, turned))
    ]  # fmt: skip
