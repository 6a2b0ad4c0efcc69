"""Medians and ratios of medians with their bootstrap intervals.

scipy.stats.bootstrap gives the same intervals (a test compares the two). This module draws the
resamples of one size once for all samples, so the thousands of intervals of a comparison take a
twentieth of the time (benchmarks/README.md). It also reports why a sample is too small.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from eeio.errors import EeioError
from eeio.statistics.checks import check_share, finite

Floats = npt.NDArray[np.float64]

SEED = 20180323
"""Every random draw starts here unless the caller sets another seed: same data, same figures."""
RESAMPLES = 4999
"""(4999 + 1) x 0.025 is an integer: a 95 % interval ends near order statistics 125 and 4875."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval by bootstrap; `confidence` is 0.95 for 95 %."""

    low: float
    high: float
    confidence: float
    method: Literal["percentile"] = "percentile"
    resamples: int = RESAMPLES


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval. `n` contains the size of each sample.

    When `value` or `interval` is None, `reason` is why; a reason with both is a warning.
    """

    value: float | None
    interval: Interval | None
    n: tuple[int, ...]
    reason: str | None = None


def smallest_n_for_interval(confidence: float = 0.95) -> int:
    """Repetitions below which no interval of a median can have this confidence.

    A bootstrap interval is within the sample's range, and the range of n values covers the median
    with probability 1 - 2^(1-n) (David and Nagaraja 2003, section 7.1): 6 for 95 %, 5 for 90 %.
    """
    check_share(confidence, "confidence")
    # A small tolerance: 0.9375 must not give 6 because of rounding in the logarithm.
    return max(2, math.ceil(1.0 - math.log2(1.0 - confidence) - 1e-12))


def too_few_for_interval(n: Sequence[int], confidence: float) -> str | None:
    """Why samples of these sizes have no interval, or None."""
    needed = smallest_n_for_interval(confidence)
    if min(n, default=0) >= needed:
        return None
    least = min(n, default=0)
    reach = 0.0
    if least:
        reach = 100.0 * (1.0 - 2.0 ** (1 - least))
    return (
        f"no interval: n = {least}, and a {100 * confidence:g} % interval of a median needs at "
        f"least {needed} values (the complete range of {least} covers the median with "
        f"{reach:.4g} %)"
    )


@lru_cache(maxsize=64)
def resample_rows(n: int, resamples: int, seed: int, stream: int) -> npt.NDArray[np.intp]:
    """Row r contains the places drawn (with replacement) for resample r; shape (resamples, n).

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
    """The positions of the two middle values of each resample in the ordered sample.

    The median of a resample is an order statistic of the sample (or the mean of two), and which one
    depends only on the drawn places: found once, it serves every sample of this size.
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
    quantiles = []
    for place in places:
        low, high = float(parts[math.floor(place)]), float(parts[math.ceil(place)])
        quantiles.append(low if low == high else low + (high - low) * (place - math.floor(place)))
    return quantiles


def percentile_interval(values: Floats, confidence: float) -> Interval:
    """The middle `confidence` of bootstrap replicates (Efron and Tibshirani 1993, chapter 13)."""
    tail = (1.0 - confidence) / 2.0
    low, high = percentiles(values, (tail, 1.0 - tail))
    return Interval(low, high, confidence, resamples=len(values))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    n = len(ordered)
    if n % 2:
        return ordered[n // 2]
    return (ordered[n // 2 - 1] + ordered[n // 2]) / 2.0


def median_interval(
    values: Sequence[float],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Median and its bootstrap interval, in the values' unit.

    Raises EeioError for values that are not finite.
    """
    _check_bootstrap(confidence, resamples)
    sample = finite(values, "the sample")
    if not sample:
        return Estimate(None, None, (0,), "no values")
    return _estimate(
        _median(sample), (sample,), lambda medians: medians, confidence, resamples, seed
    )


def ratio_interval(
    numerator: Sequence[float],
    denominator: Sequence[float],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Median of one sample over the median of another, both resampled independently.

    Raises EeioError for values that are not finite.
    """
    _check_bootstrap(confidence, resamples)
    above, below = finite(numerator, "the numerator"), finite(denominator, "the denominator")
    n = (len(above), len(below))
    if not above or not below:
        which = "denominator"
        if not above:
            which = "numerator"
        return Estimate(None, None, n, f"no values in the {which}")
    bottom = _median(below)
    if bottom == 0.0:
        return Estimate(None, None, n, "the denominator's median is 0")
    value = _median(above) / bottom
    if not math.isfinite(value):
        return Estimate(None, None, n, "the ratio of the medians is too large for a number")
    if not too_few_for_interval(n, confidence) and min(below) <= 0.0 <= max(below):
        reason = "no interval: resamples of the denominator can have a median of 0"
        return Estimate(value, None, n, reason)
    return _estimate(value, (above, below), np.divide, confidence, resamples, seed)


def difference_interval(
    of: Sequence[float],
    less: Sequence[float],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Median of one sample less the median of another, both resampled independently, in the unit of
    the values. Raises EeioError for values that are not finite."""
    _check_bootstrap(confidence, resamples)
    above, below = finite(of, "the first sample"), finite(less, "the second sample")
    n = (len(above), len(below))
    if not above or not below:
        return Estimate(None, None, n, "no values")
    value = _median(above) - _median(below)
    return _estimate(value, (above, below), np.subtract, confidence, resamples, seed)


def _estimate(
    value: float,
    samples: Sequence[Sequence[float]],
    of_medians: Callable[..., Floats],
    confidence: float,
    resamples: int,
    seed: int,
) -> Estimate:
    """The figure with its interval, where `of_medians` makes its replicates of the medians of
    resamples of each sample."""
    n = tuple(map(len, samples))
    if reason := too_few_for_interval(n, confidence):
        return Estimate(value, None, n, reason)
    if all(min(sample) == max(sample) for sample in samples):
        # No resample can differ; an average of equal values must not differ by rounding either.
        interval = Interval(value, value, confidence, resamples=resamples)
        return Estimate(value, interval, n, "all values are equal: the interval has no width")
    medians = (bootstrap_medians(s, resamples, seed, stream) for stream, s in enumerate(samples))
    return Estimate(value, percentile_interval(of_medians(*medians), confidence), n)


def _check_bootstrap(confidence: float, resamples: int) -> None:
    check_share(confidence, "confidence")
    if resamples < 100:
        raise EeioError(f"{resamples} resamples are too few for an interval; take at least 100")


FEWEST_FOR_T = 3
"""Of two values an interval spans twelve times their spread."""


def student_replicates(values: Sequence[float], resamples: int, seed: int, stream: int) -> Floats:
    """Draws whose percentiles are Student's interval of the mean logarithm, as values.

    The mean logarithm plus t(n-1) s / sqrt(n), where t is made of one normal number for each value
    and a chi-square: of two samples of the same size and stream, as bandwidth and power of the same
    runs, the draws are correlated as the samples are. Ratios and mixes of such draws have the
    fiducial interval of Behrens and Fisher (Fisher 1935, The fiducial argument in statistical
    inference, Annals of Eugenics 6), which is a little too wide rather than too narrow. `values`
    above 0.
    """
    n = len(values)
    logs = np.log(np.asarray(values, dtype=np.float64))
    generator = np.random.default_rng((seed, n, stream, 1))
    normal = generator.standard_normal((resamples, n))
    scale = np.sqrt((n - 1) / generator.chisquare(n - 1, resamples)) / math.sqrt(n * (n - 1))
    middle = logs.mean()
    replicates: Floats = np.exp(middle + scale * (normal @ (logs - middle)))
    return replicates
