"""Repetitions of two levels: a drive with and without room in its cache, two frequencies.

A median, a mean and their intervals then describe neither level: in a sample of both, they depend
on how many repetitions had which. The rule must not call ordinary samples so: of six values from a
normal, uniform or exponential distribution, or Student's t with 3 degrees of freedom, it calls at
most 1 in 60 so, of eight 1 in 250 (a test simulates it).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

LEAST_N = 6
LEAST_GAP = 0.05
"""Smaller differences, as shares, do not matter."""
RANGES = 4.0
"""The gap must be so many times as wide as the wider level."""


def two_levels(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """The lower and the higher level of positive values, each rising and with two at least; None if
    they do not clearly have two."""
    if len(values) < LEAST_N or min(values) <= 0.0:
        return None
    ordered = sorted(values)
    logs = list(map(math.log, ordered))
    gaps = [after - before for before, after in pairwise(logs)]
    gap = max(gaps)
    k = gaps.index(gap) + 1
    widest = max(logs[k - 1] - logs[0], logs[-1] - logs[k])
    if min(k, len(ordered) - k) < 2 or gap < math.log1p(LEAST_GAP) or gap < RANGES * widest:
        return None
    return ordered[:k], ordered[k:]
