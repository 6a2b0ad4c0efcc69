"""Medians and ratios of medians with their bootstrap intervals.

scipy.stats.bootstrap gives the same intervals (a test holds the two together); ours draws the
resamples of one size once for all samples, so that the thousands of intervals of a comparison take
a twentieth of the time (docs/performance.md), and says why a sample is too small for any interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from eeio_results.errors import EeioError
from eeio_results.statistics.checks import check_share, finite

Floats = npt.NDArray[np.float64]
BootstrapMethod = Literal["percentile", "bca"]

SEED = 20180323
"""Every random draw starts here unless the caller says otherwise: same data, same figures."""
RESAMPLES = 4999
"""(4999 + 1) x 0.025 is whole, so a 95 % interval ends near order statistics 125 and 4875."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval by bootstrap; `confidence` is 0.95 for 95 %."""

    low: float
    high: float
    confidence: float
    method: BootstrapMethod = "percentile"
    resamples: int = RESAMPLES


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval. `n` holds the size of each sample behind it.

    When `value` or `interval` is None, `reason` says why; a reason beside both is a warning.
    """

    value: float | None
    interval: Interval | None
    n: tuple[int, ...]
    reason: str | None = None


def smallest_n_for_interval(confidence: float = 0.95) -> int:
    """Repetitions below which no interval of a median can have this confidence.

    A bootstrap interval lies within the sample's range, and the range of n values covers the median
    with probability 1 - 2^(1-n) (David and Nagaraja 2003, section 7.1): 6 for 95 %, 5 for 90 %.
    """
    check_share(confidence, "confidence")
    # A hair of slack: 0.9375 must not ask for 6 because of rounding in the logarithm.
    return max(2, math.ceil(1.0 - math.log2(1.0 - confidence) - 1e-12))


def too_few_for_interval(n: Sequence[int], confidence: float) -> str | None:
    """Why samples of these sizes have no interval, or None."""
    needed = smallest_n_for_interval(confidence)
    if min(n, default=0) >= needed:
        return None
    least = min(n, default=0)
    reach = 100.0 * (1.0 - 2.0 ** (1 - least)) if least else 0.0
    return (
        f"no interval: n = {least}, and a {100 * confidence:g} % interval of a median needs at "
        f"least {needed} values (the whole range of {least} covers the median with {reach:.4g} %)"
    )


@lru_cache(maxsize=64)
def resample_rows(n: int, resamples: int, seed: int, stream: int) -> npt.NDArray[np.intp]:
    """Row r holds the places drawn (with replacement) for resample r; shape (resamples, n).

    `stream` separates samples that must be drawn independently. Read only; the same for every call.
    """
    generator = np.random.default_rng((seed, n, stream))
    rows = generator.integers(0, n, size=(resamples, n), dtype=np.intp)
    rows.flags.writeable = False
    return rows


@lru_cache(maxsize=64)
def _middle_places(
    n: int, resamples: int, seed: int, stream: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where the two middle values of each resample stand in the ordered sample.

    The median of a resample is an order statistic of the sample (or the mean of two), and which one
    depends on the drawn places alone: found once, it serves every sample of this size.
    """
    rows = np.sort(resample_rows(n, resamples, seed, stream), axis=1)
    return rows[:, (n - 1) // 2].copy(), rows[:, n // 2].copy()


def bootstrap_medians(
    values: Sequence[float],
    resamples: int = RESAMPLES,
    seed: int = SEED,
    stream: int = 0,
) -> Floats:
    """Median of each resample of one or more finite values; shape (resamples,), their unit."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    low, high = _middle_places(len(ordered), resamples, seed, stream)
    if len(ordered) % 2:
        return ordered[low]
    medians: Floats = (ordered[low] + ordered[high]) * 0.5
    return medians


def percentiles(values: Floats, shares: Sequence[float]) -> list[float]:
    """Quantiles of type 7 without NaN handling, for the many short arrays of a bootstrap."""
    places = [(len(values) - 1) * share for share in shares]
    wanted = sorted({p for place in places for p in (math.floor(place), math.ceil(place))})
    parts = np.partition(values, wanted)
    found = []
    for place in places:
        low, high = float(parts[math.floor(place)]), float(parts[math.ceil(place)])
        found.append(low if low == high else low + (high - low) * (place - math.floor(place)))
    return found


def percentile_interval(values: Floats, confidence: float) -> Interval:
    """The middle `confidence` of bootstrap replicates (Efron and Tibshirani 1993, chapter 13)."""
    tail = (1.0 - confidence) / 2.0
    low, high = percentiles(values, (tail, 1.0 - tail))
    return Interval(low, high, confidence, "percentile", len(values))


def _bca_interval(
    value: float, replicates: Floats, jackknives: Sequence[Floats], confidence: float
) -> Interval | str:
    """Efron's bias-corrected and accelerated interval, or why it does not exist."""
    below = float(np.mean(replicates < value) + np.mean(replicates <= value)) / 2.0
    if not 0.0 < below < 1.0:
        return "no BCa interval: every resample lies on one side of the median; use percentile"
    top = bottom = 0.0
    for left_out in jackknives:
        n = len(left_out)
        influence = (n - 1) * (np.mean(left_out) - left_out)
        top += float(np.sum(influence**3)) / n**3
        bottom += float(np.sum(influence**2)) / n**2
    if bottom == 0.0:
        return "no BCa interval: leaving one value out never moves the median; use percentile"
    acceleration = top / (6.0 * bottom**1.5)
    bias = float(special.ndtri(below))
    shares = []
    for tail in ((1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0):
        shifted = bias + float(special.ndtri(tail))
        shares.append(float(special.ndtr(bias + shifted / (1.0 - acceleration * shifted))))
    low, high = percentiles(replicates, shares)
    return Interval(low, high, confidence, "bca", len(replicates))


def _leave_one_out_medians(values: Sequence[float]) -> Floats:
    return np.array(
        [_median([*values[:index], *values[index + 1 :]]) for index in range(len(values))]
    )


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    n = len(ordered)
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2.0


def median_interval(
    values: Sequence[float],
    confidence: float = 0.95,
    method: BootstrapMethod = "percentile",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Median and its bootstrap interval, in the values' unit.

    Raises EeioError for values that are not finite.
    """
    _check_bootstrap(confidence, method, resamples)
    found = finite(values, "the sample")
    if not found:
        return Estimate(None, None, (0,), "no values")
    value = _median(found)
    n = (len(found),)
    if reason := too_few_for_interval(n, confidence):
        return Estimate(value, None, n, reason)
    if min(found) == max(found):
        # No resample can differ; an average of equal values must not differ by rounding either.
        interval = Interval(value, value, confidence, method, resamples)
        return Estimate(value, interval, n, "all values are equal: the interval has no width")
    replicates = bootstrap_medians(found, resamples, seed)
    if method == "percentile":
        return Estimate(value, percentile_interval(replicates, confidence), n)
    made = _bca_interval(value, replicates, [_leave_one_out_medians(found)], confidence)
    if isinstance(made, str):
        return Estimate(value, None, n, made)
    return Estimate(value, made, n)


def ratio_interval(
    numerator: Sequence[float],
    denominator: Sequence[float],
    confidence: float = 0.95,
    method: BootstrapMethod = "percentile",
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Median of one sample over the median of another, both resampled independently.

    Raises EeioError for values that are not finite.
    """
    _check_bootstrap(confidence, method, resamples)
    above, below = finite(numerator, "the numerator"), finite(denominator, "the denominator")
    n = (len(above), len(below))
    if not above or not below:
        which = "numerator" if not above else "denominator"
        return Estimate(None, None, n, f"no values in the {which}")
    bottom = _median(below)
    if bottom == 0.0:
        return Estimate(None, None, n, "the denominator's median is 0")
    value = _median(above) / bottom
    if not math.isfinite(value):
        return Estimate(None, None, n, "the ratio of the medians is too large for a number")
    if reason := too_few_for_interval(n, confidence):
        return Estimate(value, None, n, reason)
    if min(below) <= 0.0 <= max(below):
        reason = "no interval: resamples of the denominator can have a median of 0"
        return Estimate(value, None, n, reason)
    if min(above) == max(above) and min(below) == max(below):
        interval = Interval(value, value, confidence, method, resamples)
        return Estimate(value, interval, n, "all values are equal: the interval has no width")
    replicates = bootstrap_medians(above, resamples, seed) / bootstrap_medians(
        below, resamples, seed, stream=1
    )
    if method == "percentile":
        return Estimate(value, percentile_interval(replicates, confidence), n)
    left_out = [
        _leave_one_out_medians(above) / bottom,
        _median(above) / _leave_one_out_medians(below),
    ]
    made = _bca_interval(value, replicates, left_out, confidence)
    if isinstance(made, str):
        return Estimate(value, None, n, made)
    return Estimate(value, made, n)


def _check_bootstrap(confidence: float, method: str, resamples: int) -> None:
    check_share(confidence, "confidence")
    if method not in ("percentile", "bca"):
        raise EeioError(f"bootstrap method {method!r}: choose percentile or bca")
    if resamples < 100:
        raise EeioError(f"{resamples} resamples are too few for an interval; take at least 100")
