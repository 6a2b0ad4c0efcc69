"""The difference of a pair of cells, and whether a test confirms it (docs/method.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eeio_results.comparison.cells import Cell
from eeio_results.statistics.adjustment import Adjustment, adjust
from eeio_results.statistics.bootstrap import Estimate, ratio_interval
from eeio_results.statistics.pairs import MannWhitney, mann_whitney

ALPHA = 0.05
_RESAMPLES = 2000


@dataclass(frozen=True)
class Difference:
    """`higher` lies `percent` above `lower`, by their medians; `p` is two-sided, of `test` or of
    Dunn's where a factor has more than two levels, adjusted where several pairs are asked."""

    metric: str
    higher: Cell
    lower: Cell
    percent: float
    test: MannWhitney
    p: float | None

    def confirmed(self, alpha: float = ALPHA) -> bool:
        return self.p is not None and self.p < alpha

    @cached_property
    def ratio(self) -> Estimate:
        """Of the medians, with its bootstrap interval (statistics/bootstrap.py)."""
        return ratio_interval(
            self.higher.values[self.metric], self.lower.values[self.metric], resamples=_RESAMPLES
        )


def differences(
    found: Iterable[tuple[Cell, Cell]], metric: str, adjustment: Adjustment = "none"
) -> list[Difference]:
    """The difference of each pair, as it is: `percent` may be negative. p-values are adjusted over
    all of them. Pairs without the metric are passed over (`Cell.reasons` has why)."""
    tested = []
    for a, b in found:
        if not a.n(metric) or not b.n(metric) or b.median(metric) <= 0:
            continue
        test = mann_whitney(a.values[metric], b.values[metric])
        percent = 100.0 * (a.median(metric) / b.median(metric) - 1.0)
        tested.append((a, b, percent, test))
    known = [test.p for _, _, _, test in tested if test.p is not None]
    adjusted = iter(adjust(known, adjustment) if adjustment != "none" else known)
    return [
        Difference(metric, a, b, percent, test, next(adjusted) if test.p is not None else None)
        for a, b, percent, test in tested
    ]


def largest(found: Sequence[Difference], alpha: float = ALPHA) -> Difference | None:
    """The largest confirmed one upwards; None when none is."""
    confirmed = [d for d in found if d.percent > 0 and d.confirmed(alpha)]
    return max(confirmed, key=lambda d: d.percent, default=None)
