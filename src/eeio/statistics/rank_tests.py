"""Rank tests: of two samples Wilcoxon-Mann-Whitney and Cliff's delta, of several Dunn's.

scipy's mannwhitneyu takes some fifty times as long at the sizes of repetitions
(benchmarks/README.md); this module also chooses between exact and normal as R does, and reports
when no data of such sizes could be significant. scipy lacks Dunn's test; a test compares this one
with that of scikit-posthocs.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np

from eeio.statistics.adjustment import Adjustment, adjust
from eeio.statistics.checks import check_share, finite

# R's wilcox.test counts exactly below this size of both samples.
_EXACT_BELOW = 50


@dataclass(frozen=True)
class MannWhitney:
    """Wilcoxon-Mann-Whitney of a against b.

    `u` is R's W: pairs in which the value of a is larger, ties counting half. `delta` is Cliff's,
    2u / (n_a n_b) - 1, from -1 (all of a below b) to 1. `smallest_p` is the p of complete
    separation of untied samples of these sizes; if it is not below alpha, `too_small` gives the
    reason.
    """

    n_a: int
    n_b: int
    u: float | None
    p: float | None
    method: Literal["exact", "normal"] | None
    alpha: float
    delta: float | None
    smallest_p: float | None
    too_small: str | None = None
    reason: str | None = None

    @property
    def significant(self) -> bool:
        """p < alpha, and the samples are large enough for that to mean something."""
        return self.p is not None and self.p < self.alpha and self.too_small is None


def mann_whitney(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> MannWhitney:
    """As R's two-sided `wilcox.test(a, b)`: exact when both n < 50 and no two values are equal,
    else normal with tie and continuity correction.

    A few microseconds at 10 against 10. Raises EeioError for values that are not finite.
    """
    check_share(alpha, "alpha")
    first, second = sorted(finite(a, "sample a")), sorted(finite(b, "sample b"))
    n_a, n_b = len(first), len(second)
    if not n_a or not n_b:
        reason = f"sample {'a' if not n_a else 'b'} is empty"
        return MannWhitney(n_a, n_b, None, None, None, alpha, None, None, None, reason)
    doubled = 0
    for value in first:
        doubled += bisect_left(second, value) + bisect_right(second, value)
    u = doubled / 2.0
    pairs = n_a * n_b
    delta = 2.0 * u / pairs - 1.0
    least = smallest_p(n_a, n_b)
    warning = None
    if least >= alpha:
        warning = _too_small_pair(n_a, n_b, least, alpha)
    ties = _tie_sum(sorted(first + second))
    if n_a < _EXACT_BELOW and n_b < _EXACT_BELOW and ties == 0:
        tail = _exact_tail(min(n_a, n_b), max(n_a, n_b))
        # By symmetry P(U >= u) = P(U <= n_a n_b - u), which keeps the small tail exact.
        p = min(1.0, 2.0 * min(tail[int(u)], tail[pairs - int(u)]))
        return MannWhitney(n_a, n_b, u, p, "exact", alpha, delta, least, warning)
    total = n_a + n_b
    variance = pairs / 12.0 * ((total + 1) - ties / (total * (total - 1)))
    if variance <= 0.0:
        reason = "all values are equal"
        return MannWhitney(n_a, n_b, u, None, None, alpha, delta, least, warning, reason)
    shift = u - pairs / 2.0
    p = min(1.0, 2.0 * upper_tail((abs(shift) - (0.5 if shift else 0.0)) / math.sqrt(variance)))
    return MannWhitney(n_a, n_b, u, p, "normal", alpha, delta, least, warning)


@lru_cache(maxsize=1024)
def smallest_p(n_a: int, n_b: int) -> float:
    """The smallest exact two-sided p of Mann-Whitney at these sizes: 0.1 at 3 against 3."""
    if n_a + n_b > 200:
        logarithm = math.lgamma(n_a + n_b + 1) - math.lgamma(n_a + 1) - math.lgamma(n_b + 1)
        return min(1.0, 2.0 * math.exp(-logarithm))
    return min(1.0, 2.0 / math.comb(n_a + n_b, n_a))


def _too_small_pair(n_a: int, n_b: int, least: float, alpha: float) -> str:
    return (
        f"n = {n_a} against {n_b} can never be significant at {alpha:g}: complete separation "
        f"gives p = {least:.3g}; repeat more often"
    )


def _tie_sum(ordered: Sequence[float]) -> int:
    """Sum of t^3 - t over groups of t equal values; 0 when all differ."""
    if len(set(ordered)) == len(ordered):
        return 0
    ties = 0
    start = 0
    while start < len(ordered):
        end = bisect_right(ordered, ordered[start], start)
        count = end - start
        ties += count**3 - count
        start = end
    return ties


@lru_cache(maxsize=256)
def _exact_tail(n_a: int, n_b: int) -> tuple[float, ...]:
    """P(U <= u) for u = 0 ... n_a n_b without ties.

    Mann and Whitney's (1947) recurrence over the sample that contains the largest value, on
    probabilities, to avoid overflow; each step only adds, which avoids cancellation.
    """
    small, large = sorted((n_a, n_b))
    size = small * large + 1
    # rows[i]: distribution of U for i values of one sample against j of the other.
    rows = [np.zeros(size) for _ in range(small + 1)]
    for row in rows:
        row[0] = 1.0
    for j in range(1, large + 1):
        for i in range(1, small + 1):
            # The largest is one of the i (it beats all j) or one of the j (it adds 0).
            moved = np.zeros(size)
            moved[j:] = rows[i - 1][: size - j]
            rows[i] = (i * moved + j * rows[i]) / (i + j)
    return tuple(np.cumsum(rows[small]).tolist())


def upper_tail(z: float) -> float:
    """P(Z >= z) of the standard normal distribution."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def dunn_p(
    samples: Sequence[Sequence[float]], adjustment: Adjustment
) -> dict[tuple[int, int], float | None]:
    """Dunn's (1964) comparison of each two samples by their mean ranks over all samples,
    tie-corrected: the adjusted two-sided p by the places of both. No sample is empty; None if all
    values are equal. Raises EeioError for values that are not finite."""
    sizes = np.array([len(finite(sample, f"sample {n}")) for n, sample in enumerate(samples, 1)])
    every = np.concatenate([np.asarray(sample, dtype=np.float64) for sample in samples])
    _, place, counts = np.unique(every, return_inverse=True, return_counts=True)
    total, ties = len(every), sum(count**3 - count for count in counts.tolist())
    if ties == total**3 - total:
        return dict.fromkeys(combinations(range(len(samples)), 2))
    # Equal values have their mean rank.
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[place.ravel()]
    of_samples = np.split(ranks, np.cumsum(sizes)[:-1])
    means = np.array([np.mean(of_sample) for of_sample in of_samples])
    variance = total * (total + 1) / 12.0 - ties / (12.0 * (total - 1))
    first, second = np.triu_indices(len(samples), 1)
    error = np.sqrt(variance * (1.0 / sizes[first] + 1.0 / sizes[second]))
    scores = np.abs(means[first] - means[second]) / error
    p = adjust([2.0 * upper_tail(score) for score in scores.tolist()], adjustment)
    return dict(zip(zip(first.tolist(), second.tolist(), strict=True), p, strict=True))
