"""Change points of a series by E-divisive with permutation tests.

D. S. Matteson, N. A. James: "A Nonparametric Approach for Multiple Change Point Analysis of
Multivariate Data", Journal of the American Statistical Association 109 (2014), with exponent 1, one
change after the other. MongoDB finds regressions of performance in CI by it (D. Daly et al., ICPE
2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import comb

import numpy as np
import numpy.typing as npt

LEAST_SEGMENT = 3
"""Values on each side of a change."""
PERMUTATIONS = 1999
LEVEL = 0.001
"""Of each test: a suite of 50 rows has at most about one false change in 20 histories."""
LEAST_VALUES = next(n for n in count(1) if 2 / comb(n, n // 2) <= LEVEL)
"""In shorter series not even a step in the middle, of any size, can have a p that small: two of all
orders are as extreme as the one with the lower half first. A step near an end needs more values."""


@dataclass(frozen=True)
class ChangePoint:
    """The series is another one from `place` on."""

    place: int
    p: float


def change_points(
    values: Sequence[float], level: float = LEVEL, permutations: int = PERMUTATIONS, seed: int = 1
) -> list[ChangePoint]:
    """Those with p at most `level`, in order. `values` are finite; the same values give the same
    answer. A series of less than twice LEAST_SEGMENT values has none."""
    series = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    points: list[ChangePoint] = []
    segments = [(0, len(series))]
    while segments:
        best = max(
            ((*_best_split(series[a:b]), a, b) for a, b in segments if b - a >= 2 * LEAST_SEGMENT),
            default=None,
        )
        if best is None:
            break
        statistic, place, first, last = best
        p = _p_value(series[first:last], statistic, permutations, generator)
        if p > level:
            # The other segments have a smaller statistic, not always a larger p: look at them too.
            segments.remove((first, last))
            continue
        points.append(ChangePoint(first + place, p))
        segments.remove((first, last))
        segments += [(first, first + place), (first + place, last)]
    return sorted(points, key=lambda one: one.place)


def _best_split(series: npt.NDArray[np.float64]) -> tuple[float, int]:
    """The largest energy statistic of all splits, and its place."""
    return _largest(np.abs(series[:, None] - series[None, :]))


def _largest(distances: npt.NDArray[np.float64]) -> tuple[float, int]:
    """`distances` is the matrix between all values, in their order."""
    n = len(distances)
    # Sums over the upper left k x k and the lower right, for every k.
    total = distances.sum()
    corner = np.cumsum(np.cumsum(distances, axis=0), axis=1).diagonal()
    rows = np.cumsum(distances.sum(axis=1))
    k = np.arange(1, n)
    left, cross = corner[:-1], rows[:-1] - corner[:-1]
    right = total - left - 2 * cross
    m = n - k
    between = 2.0 * cross / (k * m)
    within = left / (k * k) + right / (m * m)
    statistic = k * m / n * (between - within)
    statistic[: LEAST_SEGMENT - 1] = statistic[n - LEAST_SEGMENT :] = -np.inf
    place = int(np.argmax(statistic))
    return float(statistic[place]), place + 1


def _p_value(
    series: npt.NDArray[np.float64],
    statistic: float,
    permutations: int,
    generator: np.random.Generator,
) -> float:
    """The share of random orders with a statistic as large."""
    distances = np.abs(series[:, None] - series[None, :])
    larger = 0
    for _ in range(permutations):
        order = generator.permutation(len(series))
        larger += _largest(distances[np.ix_(order, order)])[0] >= statistic - 1e-12
        if (larger + 1) / (permutations + 1) > 0.05:
            break  # far from any level: the exact value does not matter
    return (larger + 1) / (permutations + 1)
