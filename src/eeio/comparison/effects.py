"""The effect of each factor on each metric, over all pairs of cells that differ only in it."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from eeio.comparison.cells import EFFICIENCY, TESTED, Cell, without_unsure_energy
from eeio.comparison.differences import ALPHA, Difference, differences, largest
from eeio.comparison.pairing import FOLLOWS, Index, Rest
from eeio.statistics.adjustment import Adjustment
from eeio.statistics.rank_tests import dunn_p

FACTORS = (
    "buffer",
    "disk",
    "size",
    "spatiality",
    "operation",
    "frequency",
    "smt",
    "turbo",
    "type",
    "machine",
)
"""Factors with compared levels, in the order of a report."""


@dataclass(frozen=True)
class Effect:
    """The effect of one factor on one metric: of all pairs whose `factor` is `higher` against
    `lower`, how many the test confirms, and the largest of them."""

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
    metrics: Sequence[str] = TESTED,
    factors: Sequence[str] = FACTORS,
) -> list[Effect]:
    """Every factor's effect on every metric, in both directions. Energies that are doubtful or too
    uncertain, and those of different power domains, are not compared, as in `changes`."""
    precise = list(map(without_unsure_energy, cells))
    of_domain = [metric for metric in metrics if metric == EFFICIENCY]
    of_others = [metric for metric in metrics if metric != EFFICIENCY]
    made: list[Effect] = []
    for index, chosen in (
        (Index(precise), of_others),
        (Index(map(_with_domain, precise)), of_domain),
    ):
        for factor in factors if chosen else ():
            made += _effects(index, chosen, factor, adjustment, alpha)
    # By metric, in the order of the report.
    return sorted(made, key=lambda effect: metrics.index(effect.metric))


def _effects(
    index: Index, metrics: Sequence[str], factor: str, adjustment: Adjustment, alpha: float
) -> Iterator[Effect]:
    groups = _groups(index, factor)
    pairs = None
    if not _needs_dunn(groups):
        pairs = _pairs(index, factor)
    for metric in metrics:
        if pairs is None:
            tested: Iterable[Tested] = _by_dunn(groups, index, metric, factor, adjustment)
        else:
            # One after the other: all differences of many machines at once are much to hold.
            tested = (
                (levels, differences(of_levels, metric, adjustment))
                for levels, of_levels in pairs.items()
            )
        for (first, second), of_pair in tested:
            if of_pair:
                yield from _both_ways(metric, factor, first, second, of_pair, alpha)


def _with_domain(cell: Cell) -> Cell:
    """With the power domain of its MB/J as a factor, so that pairs have one domain."""
    return replace(cell, factors={**cell.factors, "power domain": " ".join(cell.efficiency_of)})


Levels = tuple[str, str]
Tested = tuple[Levels, list[Difference]]
Groups = Mapping[Rest, Sequence[Cell]]


def _groups(index: Index, factor: str) -> Groups:
    """Groups of cells that are alike in all but the factor and its consequences: several drives of
    a type are in a group with those of the other."""
    levels = set(index.levels(factor))
    groups: dict[Rest, list[Cell]] = {}
    for rest, cell in index.groups(factor):
        if cell.factors.get(factor) in levels:
            groups.setdefault(rest, []).append(cell)
    return groups


def _needs_dunn(groups: Groups) -> bool:
    """Whether more than two experiments are compared with each other anywhere."""
    return any(len(group) > 2 for group in groups.values())


def _pairs(index: Index, factor: str) -> dict[Levels, list[tuple[Cell, Cell]]]:
    """Of each two levels: tested by Mann-Whitney, adjusted over all their pairs of cells."""
    pairs = {}
    for first, second in combinations(index.levels(factor), 2):
        pairs[(first, second)] = list(index.pairs(factor, first, second))
    return pairs


def _by_dunn(
    groups: Groups, index: Index, metric: str, factor: str, adjustment: Adjustment
) -> Iterator[Tested]:
    """More of them: Dunn's test among the experiments of each group, adjusted over all pairs of the
    group, among them two drives of one type (docs/explanation/statistics.md). Two levels that no
    group contains, such as machines that each have a different drive, are tested as pairs are."""
    tested = [_Group(group, metric, factor, adjustment) for group in groups.values()]
    for first, second in combinations(index.levels(factor), 2):
        of_both: list[Difference] = []
        for group in tested:
            of_both.extend(group.differences(first, second))
        yield (
            (first, second),
            of_both or differences(index.pairs(factor, first, second), metric, adjustment),
        )


class _Group:
    """The cells of a group that have the metric, and the p-value of each two of them."""

    def __init__(
        self, group: Sequence[Cell], metric: str, factor: str, adjustment: Adjustment
    ) -> None:
        self._metric = metric
        self._cells = [cell for cell in group if cell.n(metric) and cell.median(metric) > 0]
        self._places: dict[str, list[int]] = {}
        for n, cell in enumerate(self._cells):
            self._places.setdefault(cell.factors[factor], []).append(n)
        # Values without the effects of rounds are those of one campaign: of a machine, a drive.
        across = factor == "machine" or factor in FOLLOWS
        values = [cell.values(metric) if across else cell.tested(metric) for cell in self._cells]
        self._medians = list(map(statistics.median, values))
        self._p = dunn_p(values, adjustment) if len(self._cells) > 1 else {}

    def differences(self, first: str, second: str) -> Iterator[Difference]:
        """Of each cell of the first level from each of the second."""
        for n in self._places.get(first, ()):
            for m in self._places.get(second, ()):
                yield Difference(
                    self._metric,
                    self._cells[n],
                    self._cells[m],
                    100.0 * (self._medians[n] / self._medians[m] - 1.0),
                    self._p[min(n, m), max(n, m)],
                )


def _both_ways(
    metric: str, factor: str, first: str, second: str, tested: Sequence[Difference], alpha: float
) -> list[Effect]:
    turned = []
    for d in tested:
        if d.percent > -100.0:
            turned.append(
                Difference(
                    metric, d.lower, d.higher, 100.0 * (100.0 / (100.0 + d.percent) - 1.0), d.p
                )
            )
    too_few = sum(d.is_too_small for d in tested)
    ways = []
    for high, low, one_way in ((first, second, tested), (second, first, turned)):
        ways.append(
            Effect(
                metric,
                factor,
                high,
                low,
                len(one_way),
                sum(d.percent > 0 and d.confirmed(alpha) for d in one_way),
                too_few,
                largest(one_way, alpha),
            )
        )
    return ways
