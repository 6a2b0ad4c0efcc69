"""Several samples: Dunn's comparison of all pairs, which scipy lacks; a test compares it with that
of scikit-posthocs."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from eeio_results.statistics.adjustment import Adjustment, adjust
from eeio_results.statistics.checks import finite
from eeio_results.statistics.pairs import upper_tail


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
    means = np.array([np.mean(part) for part in np.split(ranks, np.cumsum(sizes)[:-1])])
    variance = total * (total + 1) / 12.0 - ties / (12.0 * (total - 1))
    first, second = np.triu_indices(len(samples), 1)
    error = np.sqrt(variance * (1.0 / sizes[first] + 1.0 / sizes[second]))
    scores = np.abs(means[first] - means[second]) / error
    p = adjust([2.0 * upper_tail(score) for score in scores.tolist()], adjustment)
    return dict(zip(zip(first.tolist(), second.tolist(), strict=True), p, strict=True))
