"""Whether a drive is in its steady state: the criterion of SNIA's Solid State Storage Performance
Test Specification (2.0.2, 2020, definitions of "steady state" and "measurement window").
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Steadiness:
    """Of the values of one window. `range_share` is the largest less the smallest value over their
    mean, `slope_share` how far the least-squares line goes from the window's first round to its
    last, over the same; None with fewer than two values, or where their mean is 0."""

    range_share: float | None
    slope_share: float | None

    def within(self, range_share: float, slope_share: float) -> bool:
        """Whether both are at most the shares allowed (0.20 and 0.10 there)."""
        return (
            self.range_share is not None
            and self.slope_share is not None
            and self.range_share <= range_share
            and self.slope_share <= slope_share
        )


def steadiness(values: Sequence[float]) -> Steadiness:
    """Of a window's values, one a round, in their order."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return Steadiness(None, None)
    mean = statistics.fmean(values)
    if mean <= 0:
        return Steadiness(None, None)
    slope = statistics.linear_regression(range(len(values)), values).slope
    return Steadiness((max(values) - min(values)) / mean, abs(slope) * (len(values) - 1) / mean)
