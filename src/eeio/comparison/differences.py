"""The difference of a pair of cells, and whether a test confirms it.

Method: docs/explanation/statistics.md."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eeio.comparison.cells import Cell
from eeio.statistics.adjustment import Adjustment, adjust
from eeio.statistics.bootstrap import Estimate, ratio_interval
from eeio.statistics.rank_tests import MannWhitney, mann_whitney, smallest_p

ALPHA = 0.05
_RESAMPLES = 2000


@dataclass(frozen=True)
class Difference:
    """`higher` is `percent` above `lower`, by the medians of the tested values (`values_to_test`).
    `p` is two-sided, of `test` or of Dunn's among more than two experiments, adjusted if several
    pairs are tested."""

    metric: str
    higher: Cell
    lower: Cell
    percent: float
    p: float | None

    def confirmed(self, alpha: float = ALPHA) -> bool:
        return self.p is not None and self.p < alpha

    @cached_property
    def test(self) -> MannWhitney:
        return mann_whitney(*values_to_test(self.higher, self.lower, self.metric))

    @property
    def is_too_small(self) -> bool:
        """Whether no data of these sizes could be significant."""
        return smallest_p(self.higher.n(self.metric), self.lower.n(self.metric)) >= ALPHA

    @cached_property
    def ratio(self) -> Estimate:
        """Of the medians, with its bootstrap interval (statistics/bootstrap.py)."""
        return ratio_interval(
            *values_to_test(self.higher, self.lower, self.metric), resamples=_RESAMPLES
        )


def values_to_test(a: Cell, b: Cell, metric: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The values that distinguish a from b: within one campaign, without the effects of its rounds,
    which differ from campaign to campaign."""
    if all(a.factors.get(name) == b.factors.get(name) for name in ("machine", "device")):
        return a.tested(metric), b.tested(metric)
    return a.values(metric), b.values(metric)


def percent_above(a: Sequence[float], b: Sequence[float]) -> float:
    """Of their medians."""
    return 100.0 * (statistics.median(a) / statistics.median(b) - 1.0)


def differences(
    found: Iterable[tuple[Cell, Cell]], metric: str, adjustment: Adjustment = "none"
) -> list[Difference]:
    """The difference of each pair, as it is: `percent` may be negative. p-values are adjusted over
    all of them. Pairs without the metric are passed over (`Cell.why`)."""
    tested = []
    for a, b in found:
        if not a.n(metric) or not b.n(metric) or b.median(metric) <= 0:
            continue
        values = values_to_test(a, b, metric)
        tested.append((a, b, percent_above(*values), mann_whitney(*values)))
    known = [test.p for _, _, _, test in tested if test.p is not None]
    adjusted = iter(adjust(known, adjustment) if adjustment != "none" else known)
    return [
        Difference(metric, a, b, percent, next(adjusted) if test.p is not None else None)
        for a, b, percent, test in tested
    ]


def largest(found: Sequence[Difference], alpha: float = ALPHA) -> Difference | None:
    """The largest confirmed one upwards; None when none is."""
    confirmed = [d for d in found if d.percent > 0 and d.confirmed(alpha)]
    return max(confirmed, key=lambda d: d.percent, default=None)
