"""Several samples: Dunn's comparison of all pairs, which scipy lacks; a test compares it with that
of scikit-posthocs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from eeio_results.errors import EeioError
from eeio_results.statistics.adjustment import Adjustment, adjust, check_adjustment
from eeio_results.statistics.checks import check_share, finite
from eeio_results.statistics.pairs import upper_tail

Sides = Literal["two-sided", "one-sided"]


@dataclass(frozen=True)
class DunnPair:
    """Two groups of a Dunn test; z is positive when a's mean rank is the larger."""

    a: str
    b: str
    n_a: int
    n_b: int
    z: float | None
    p: float | None
    p_adjusted: float | None
    too_small: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Dunn:
    """All pairs of groups in the order given; `comparisons` is the number adjusted for."""

    pairs: tuple[DunnPair, ...]
    comparisons: int
    adjustment: Adjustment
    sides: Sides
    alpha: float

    def significant(self, pair: DunnPair) -> bool:
        """Adjusted p < alpha, and the groups are large enough for that to mean something."""
        return pair.p_adjusted is not None and pair.p_adjusted < self.alpha and not pair.too_small


@dataclass(frozen=True)
class _Ranked:
    """Groups ranked together: sizes, mean ranks, all values, sum of t^3 - t over ties."""

    n: tuple[int, ...]
    mean_ranks: tuple[float, ...]
    total: int
    ties: int

    @property
    def all_equal(self) -> bool:
        return self.ties == self.total**3 - self.total

    @property
    def variance(self) -> float:
        """Of a rank, with the correction for ties."""
        total = self.total
        return total * (total + 1) / 12.0 - self.ties / (12.0 * (total - 1))


def _rank(groups: Mapping[str, Sequence[float]]) -> _Ranked:
    """Ranks over all groups, ties at their mean rank; empty groups have rank 0."""
    samples = [finite(values, f"group {name!r}") for name, values in groups.items()]
    n = tuple(len(sample) for sample in samples)
    every = np.array([value for sample in samples for value in sample])
    if not len(every):
        return _Ranked(n, (0.0,) * len(n), 0, 0)
    _, place, counts = np.unique(every, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2.0)[place.ravel()]
    means = []
    start = 0
    for size in n:
        means.append(float(np.mean(ranks[start : start + size])) if size else 0.0)
        start += size
    ties = sum(count**3 - count for count in counts.tolist() if count > 1)
    return _Ranked(n, tuple(means), len(every), ties)


def dunn_p(
    samples: Sequence[Sequence[float]], adjustment: Adjustment
) -> dict[tuple[int, int], float | None]:
    """The adjusted two-sided p of `dunn` for each two samples, by their places. For many samples,
    none of them empty; None if all values are equal."""
    ranked = _rank({str(place): sample for place, sample in enumerate(samples)})
    if ranked.all_equal:
        return dict.fromkeys(combinations(range(len(samples)), 2))
    first, second = np.triu_indices(len(samples), 1)
    means, shares = np.array(ranked.mean_ranks), 1.0 / np.array(ranked.n)
    error = np.sqrt(ranked.variance * (shares[first] + shares[second]))
    scores = np.abs(means[first] - means[second]) / error
    p = adjust([2.0 * upper_tail(score) for score in scores.tolist()], adjustment)
    return dict(zip(zip(first.tolist(), second.tolist(), strict=True), p, strict=True))


def dunn(
    groups: Mapping[str, Sequence[float]],
    adjustment: Adjustment = "none",
    sides: Sides = "two-sided",
    alpha: float = 0.05,
) -> Dunn:
    """Dunn's (1964) comparison of all pairs by their mean ranks over all groups, tie-corrected.

    One-sided p is P(Z >= |z|), as R's dunn.test prints it: the side is the one the data shows.
    Pairs with an empty group have no p and are not adjusted for. Raises EeioError for fewer than
    two groups and for values that are not finite.
    """
    if sides not in ("two-sided", "one-sided"):
        raise EeioError(f"sides {sides!r}: choose two-sided or one-sided")
    check_adjustment(adjustment)
    check_share(alpha, "alpha")
    _check_groups(groups)
    ranked = _rank(groups)
    total = ranked.total
    factor = 2.0 if sides == "two-sided" else 1.0
    drafts: list[DunnPair] = []
    for (i, a), (j, b) in combinations(enumerate(groups), 2):
        n_a, n_b = ranked.n[i], ranked.n[j]
        z = p = reason = None
        if not n_a or not n_b:
            reason = f"group {a if not n_a else b} is empty"
        elif ranked.all_equal:
            reason = "all values are equal"
        else:
            z = (ranked.mean_ranks[i] - ranked.mean_ranks[j]) / math.sqrt(
                ranked.variance * (1.0 / n_a + 1.0 / n_b)
            )
            p = factor * upper_tail(abs(z))
        drafts.append(DunnPair(a, b, n_a, n_b, z, p, None, None, reason))
    adjusted = iter(adjust([pair.p for pair in drafts if pair.p is not None], adjustment))
    comparisons = sum(pair.p is not None for pair in drafts)
    penalty = comparisons if adjustment in ("holm", "bonferroni") else 1
    pairs = tuple(
        DunnPair(
            pair.a, pair.b, pair.n_a, pair.n_b, pair.z, pair.p,
            None if pair.p is None else next(adjusted),
            _too_small_dunn(pair, total, factor, penalty, alpha),
            pair.reason,
        )
        for pair in drafts
    )  # fmt: skip
    return Dunn(pairs, comparisons, adjustment, sides, alpha)


def _too_small_dunn(
    pair: DunnPair, total: int, factor: float, penalty: int, alpha: float
) -> str | None:
    """Even with these two groups at the two ends of all ranks, p would not reach alpha."""
    if not pair.n_a or not pair.n_b or not penalty:
        return None
    apart = total - (pair.n_a + pair.n_b) / 2.0
    variance = total * (total + 1) / 12.0 * (1.0 / pair.n_a + 1.0 / pair.n_b)
    least = min(1.0, penalty * factor * upper_tail(apart / math.sqrt(variance)))
    if least < alpha:
        return None
    return (
        f"n = {pair.n_a} against {pair.n_b} among {total} values can never be significant at "
        f"{alpha:g}: the largest possible distance gives p = {least:.3g}; repeat more often"
    )


def _check_groups(groups: Mapping[str, Sequence[float]]) -> None:
    if len(groups) < 2:
        raise EeioError(f"{len(groups)} group given; a comparison needs at least two")
