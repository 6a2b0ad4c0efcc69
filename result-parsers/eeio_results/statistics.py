"""Statistics that hold for few repetitions: medians with intervals, normality, rank tests.

Everything is a pure function over sequences of floats and gives a frozen result. A figure that
cannot be had is None with its `reason`; a value that is not finite is an error. `too_small` warns
wherever no data of this size could reach significance. Method and sources: docs/method.md.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from eeio_results.characterization import quartiles
from eeio_results.errors import EeioError

Floats = npt.NDArray[np.float64]
Alternative = Literal["two-sided", "less", "greater"]
Sides = Literal["two-sided", "one-sided"]
Adjustment = Literal["none", "holm", "bonferroni", "benjamini-hochberg"]
BootstrapMethod = Literal["percentile", "bca"]
Magnitude = Literal["negligible", "small", "medium", "large"]

SEED = 20180323
"""Every random draw starts here unless the caller says otherwise: same data, same figures."""
RESAMPLES = 4999
"""(4999 + 1) x 0.025 is whole, so a 95 % interval ends near order statistics 125 and 4875."""

# R's wilcox.test counts exactly below this size of both samples.
_EXACT_BELOW = 50
# nortest::lillie.test, the R function for it, refuses fewer.
_LILLIEFORS_MIN_N = 5
# Above this size Stephens' modified statistic carries the null distribution over.
_LILLIEFORS_MAX_N = 100
_LILLIEFORS_SAMPLES = 20_000
# scipy's (Royston's) p-value for Shapiro-Wilk is not accurate beyond.
_SHAPIRO_MAX_N = 5000
# All orders of more groups than this are too many to try.
_MAX_ORDERED_GROUPS = 6


# Checks ---------------------------------------------------------------------------------------


def _finite(values: Sequence[float], what: str) -> list[float]:
    """The values as floats; EeioError names the first that is not a finite number."""
    found = [float(value) for value in values]
    # The sum of finite values is finite but for an overflow, which the loop below sorts out.
    if not math.isfinite(sum(found)):
        for index, value in enumerate(found):
            if not math.isfinite(value):
                raise EeioError(
                    f"value {index + 1} of {len(found)} of {what} is {value}; statistics take "
                    "finite numbers only: leave the repetition out and say so"
                )
    return found


def _check_share(value: float, name: str) -> None:
    if not 0.0 < value < 1.0:
        raise EeioError(f"{name} must lie between 0 and 1, not {value}")


# Summary --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """Order statistics of one sample; quartiles by R's type 7."""

    n: int
    median: float
    q1: float
    q3: float
    minimum: float
    maximum: float

    @property
    def iqr(self) -> float:
        """Interquartile range, q3 - q1."""
        return self.q3 - self.q1


def summary(values: Sequence[float]) -> Summary | None:
    """None without values. Raises EeioError for a value that is not finite."""
    found = _finite(values, "the sample")
    figures = quartiles(found)
    if figures is None:
        return None
    return Summary(
        len(found), figures.median, figures.q1, figures.q3, min(found), max(found)
    )  # fmt: skip


# Bootstrap ------------------------------------------------------------------------------------


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
    _check_share(confidence, "confidence")
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
    found = _finite(values, "the sample")
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
    above, below = _finite(numerator, "the numerator"), _finite(denominator, "the denominator")
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
    _check_share(confidence, "confidence")
    if method not in ("percentile", "bca"):
        raise EeioError(f"bootstrap method {method!r}: choose percentile or bca")
    if resamples < 100:
        raise EeioError(f"{resamples} resamples are too few for an interval; take at least 100")


# Normality ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TestResult:
    """One test; `p` is None with the reason."""

    statistic: float | None
    p: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Normality:
    """Three tests of one sample. `normal` is decided by Lilliefors and Shapiro-Wilk alone.

    False when either rejects at `alpha`, True when neither does, None when neither could be made.
    True means "not rejected", no more. `kolmogorov_smirnov` is there to compare with the paper.
    """

    n: int
    alpha: float
    kolmogorov_smirnov: TestResult
    lilliefors: TestResult
    shapiro_wilk: TestResult
    normal: bool | None


def normality(values: Sequence[float], alpha: float = 0.05) -> Normality:
    """Raises EeioError for values that are not finite."""
    _check_share(alpha, "alpha")
    found = _finite(values, "the sample")
    tests = kolmogorov_smirnov_fitted(found), lilliefors(found), shapiro_wilk(found)
    deciding = [test.p for test in tests[1:] if test.p is not None]
    normal = all(p >= alpha for p in deciding) if deciding else None
    return Normality(len(found), alpha, *tests, normal)


def _no_normality(values: Sequence[float], least: int) -> str | None:
    if len(values) < least:
        return f"n = {len(values)}: the test needs at least {least} values"
    if min(values) == max(values):
        return "all values are equal"
    spread = max(values) - min(values)
    # Below this the sample is a constant plus rounding, and its shape is the rounding's.
    if spread <= 1e-14 * max(abs(min(values)), abs(max(values))):
        return "all values are equal to within rounding"
    return None


def kolmogorov_smirnov_fitted(values: Sequence[float]) -> TestResult:
    """Kolmogorov-Smirnov against the normal distribution with the sample's own mean and sd.

    As Pavan et al. 2018 did it (R's `ks.test(x, "pnorm", mean(x), sd(x))`). Its p is far too
    large, because the parameters were fitted (Lilliefors 1967): for comparison only.
    """
    found = _finite(values, "the sample")
    if reason := _no_normality(found, 2):
        return TestResult(None, None, reason)
    from scipy import stats  # a second to import, and only the normality tests need it

    array = np.asarray(found)
    # Scaled first, so that values near the ends of the float range do not overflow the sd.
    scaled = (array - np.mean(array)) / np.max(np.abs(array - np.mean(array)))
    result = stats.kstest(scaled / np.std(scaled, ddof=1), "norm")
    return TestResult(float(result.statistic), float(result.pvalue))


def lilliefors(values: Sequence[float], seed: int = SEED) -> TestResult:
    """Lilliefors' test of normality; p from 20 000 seeded normal samples of the same size.

    The null distribution does not depend on mean and sd, so it is drawn once per n. Above n = 100
    the one of n = 100 serves through Stephens' (1974) modified statistic.
    """
    found = _finite(values, "the sample")
    if reason := _no_normality(found, _LILLIEFORS_MIN_N):
        return TestResult(None, None, reason)
    statistic = float(_lilliefors_statistics(np.sort(np.asarray(found))[np.newaxis, :])[0])
    n = min(len(found), _LILLIEFORS_MAX_N)
    null = _lilliefors_null(n, seed)
    looked_up = statistic * _stephens(len(found)) / _stephens(n)
    # Both samples passed through the same arithmetic; a tie by rounding counts as reached.
    above = len(null) - int(np.searchsorted(null, looked_up - 1e-12, side="left"))
    return TestResult(statistic, (above + 1) / (len(null) + 1))


def _stephens(n: int) -> float:
    root = math.sqrt(n)
    return root - 0.01 + 0.85 / root


def _lilliefors_statistics(ordered: Floats) -> Floats:
    """D of each row; rows are sorted samples of one size."""
    n = ordered.shape[1]
    centred = ordered - ordered.mean(axis=1, keepdims=True)
    centred /= np.max(np.abs(centred), axis=1, keepdims=True)
    deviation = np.sqrt(np.sum(centred**2, axis=1, keepdims=True) / (n - 1))
    cumulated = special.ndtr(centred / deviation)
    steps = np.arange(n + 1) / n
    above = np.max(steps[1:] - cumulated, axis=1)
    below = np.max(cumulated - steps[:-1], axis=1)
    statistics: Floats = np.maximum(above, below)
    return statistics


@lru_cache(maxsize=128)
def _lilliefors_null(n: int, seed: int) -> Floats:
    generator = np.random.default_rng((seed, n))
    samples = generator.standard_normal((_LILLIEFORS_SAMPLES, n))
    samples.sort(axis=1)
    null = np.sort(_lilliefors_statistics(samples))
    null.flags.writeable = False
    return null


def shapiro_wilk(values: Sequence[float]) -> TestResult:
    """Shapiro-Wilk's W with Royston's (1995) p, as R's shapiro.test; n from 3 to 5000."""
    found = _finite(values, "the sample")
    if reason := _no_normality(found, 3):
        return TestResult(None, None, reason)
    if len(found) > _SHAPIRO_MAX_N:
        return TestResult(None, None, f"n = {len(found)}: p is not accurate beyond 5000 values")
    from scipy import stats

    array = np.asarray(found)
    # W does not depend on scale, but scipy takes samples of a tiny range for constants.
    scaled = (array - np.median(array)) / (np.max(array) - np.min(array))
    result = stats.shapiro(scaled)
    return TestResult(float(result.statistic), float(result.pvalue))


@dataclass(frozen=True)
class QuantilePlot:
    """A normal Q-Q plot: `theoretical` standard normal quantiles against the `ordered` values.

    The line `intercept + slope x` goes through the quartiles (R's qqline); None without values.
    """

    theoretical: tuple[float, ...]
    ordered: tuple[float, ...]
    slope: float | None
    intercept: float | None


def quantile_plot(values: Sequence[float]) -> QuantilePlot:
    """Plotting positions as R's qqnorm: (i - a) / (n + 1 - 2a), a = 3/8 up to n = 10, else 1/2."""
    found = sorted(_finite(values, "the sample"))
    n = len(found)
    figures = quartiles(found)
    if figures is None:
        return QuantilePlot((), (), None, None)
    a = 3.0 / 8.0 if n <= 10 else 0.5
    theoretical = special.ndtri((np.arange(1, n + 1) - a) / (n + 1 - 2 * a))
    slope = (figures.q3 - figures.q1) / (2.0 * float(special.ndtri(0.75)))
    return QuantilePlot(
        tuple(theoretical.tolist()), tuple(found), slope, (figures.q1 + figures.q3) / 2.0
    )


# Two samples ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MannWhitney:
    """Wilcoxon-Mann-Whitney of a against b.

    `u` is R's W: pairs in which the value of a is larger, ties counting half. `delta` is Cliff's,
    2u / (n_a n_b) - 1, from -1 (all of a below b) to 1. `smallest_p` is what complete separation
    of untied samples of these sizes would give; when it is not below alpha, `too_small` says so.
    """

    n_a: int
    n_b: int
    u: float | None
    p: float | None
    alternative: Alternative
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

    @property
    def magnitude(self) -> Magnitude | None:
        """Cliff's delta in words."""
        return None if self.delta is None else delta_magnitude(self.delta)


def mann_whitney(
    a: Sequence[float],
    b: Sequence[float],
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> MannWhitney:
    """As R's `wilcox.test(a, b)`: exact when both n < 50 and no two values are equal, else normal
    with tie and continuity correction. `less` means that a tends to lie below b.

    A few microseconds at 10 against 10. Raises EeioError for values that are not finite.
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise EeioError(f"alternative {alternative!r}: choose two-sided, less or greater")
    _check_share(alpha, "alpha")
    first, second = sorted(_finite(a, "sample a")), sorted(_finite(b, "sample b"))
    n_a, n_b = len(first), len(second)
    if not n_a or not n_b:
        reason = f"sample {'a' if not n_a else 'b'} is empty"
        return MannWhitney(
            n_a, n_b, None, None, alternative, None, alpha, None, None, None, reason
        )  # fmt: skip
    doubled = 0
    for value in first:
        doubled += bisect_left(second, value) + bisect_right(second, value)
    u = doubled / 2.0
    pairs = n_a * n_b
    delta = 2.0 * u / pairs - 1.0
    least = smallest_p(n_a, n_b, alternative)
    warning = _too_small_pair(n_a, n_b, least, alpha) if least >= alpha else None
    ties = _tie_sum(sorted(first + second))
    if n_a < _EXACT_BELOW and n_b < _EXACT_BELOW and ties == 0:
        p = _exact_p(n_a, n_b, int(u), alternative)
        return MannWhitney(n_a, n_b, u, p, alternative, "exact", alpha, delta, least, warning)
    total = n_a + n_b
    variance = pairs / 12.0 * ((total + 1) - ties / (total * (total - 1)))
    if variance <= 0.0:
        return MannWhitney(
            n_a, n_b, u, None, alternative, None, alpha, delta, least, warning,
            "all values are equal",
        )  # fmt: skip
    p = _normal_p(u - pairs / 2.0, math.sqrt(variance), alternative)
    return MannWhitney(n_a, n_b, u, p, alternative, "normal", alpha, delta, least, warning)


def smallest_p(n_a: int, n_b: int, alternative: Alternative = "two-sided") -> float:
    """The smallest exact p of Mann-Whitney at these sizes: 0.1 at 3 against 3, two-sided."""
    factor = 2.0 if alternative == "two-sided" else 1.0
    if n_a + n_b > 200:
        logarithm = math.lgamma(n_a + n_b + 1) - math.lgamma(n_a + 1) - math.lgamma(n_b + 1)
        return min(1.0, factor * math.exp(-logarithm))
    return min(1.0, factor / math.comb(n_a + n_b, n_a))


def _too_small_pair(n_a: int, n_b: int, least: float, alpha: float) -> str:
    return (
        f"n = {n_a} against {n_b} can never be significant at {alpha:g}: complete separation "
        f"gives p = {least:.3g}; repeat more often"
    )


def _tie_sum(ordered: Sequence[float]) -> int:
    """Sum of t^3 - t over groups of t equal values; 0 when all differ."""
    if len(set(ordered)) == len(ordered):
        return 0
    found = 0
    start = 0
    while start < len(ordered):
        end = bisect_right(ordered, ordered[start], start)
        count = end - start
        found += count**3 - count
        start = end
    return found


@lru_cache(maxsize=256)
def _exact_tail(n_a: int, n_b: int) -> tuple[float, ...]:
    """P(U <= u) for u = 0 ... n_a n_b without ties.

    Mann and Whitney's (1947) recurrence over the sample that holds the largest value, on
    probabilities, so that nothing overflows; each step only adds, so nothing cancels.
    """
    small, large = sorted((n_a, n_b))
    size = small * large + 1
    # rows[i]: distribution of U for i values of one sample against j of the other.
    rows = [np.zeros(size) for _ in range(small + 1)]
    for row in rows:
        row[0] = 1.0
    for j in range(1, large + 1):
        for i in range(1, small + 1):
            # The largest is one of the i (it beats all j) or one of the j (it adds nothing).
            moved = np.zeros(size)
            moved[j:] = rows[i - 1][: size - j]
            rows[i] = (i * moved + j * rows[i]) / (i + j)
    return tuple(np.cumsum(rows[small]).tolist())


def _exact_p(n_a: int, n_b: int, u: int, alternative: Alternative) -> float:
    tail = _exact_tail(min(n_a, n_b), max(n_a, n_b))
    # By symmetry P(U >= u) = P(U <= n_a n_b - u), which keeps the small tail exact.
    lower, upper = tail[u], tail[n_a * n_b - u]
    if alternative == "less":
        return min(1.0, lower)
    if alternative == "greater":
        return min(1.0, upper)
    return min(1.0, 2.0 * min(lower, upper))


def _normal_p(shift: float, deviation: float, alternative: Alternative) -> float:
    if alternative == "two-sided":
        z = (abs(shift) - (0.5 if shift else 0.0)) / deviation
        return min(1.0, 2.0 * _upper_tail(z))
    if alternative == "greater":
        return _upper_tail((shift - 0.5) / deviation)
    return _upper_tail(-(shift + 0.5) / deviation)


def _upper_tail(z: float) -> float:
    """P(Z >= z) of the standard normal distribution."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def cliffs_delta(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Cliff's (1993) delta: P(a > b) - P(a < b); None when a sample is empty."""
    return mann_whitney(a, b).delta


def delta_magnitude(delta: float) -> Magnitude:
    """Words of Romano et al. (2006): negligible < 0.147 <= small < 0.33 <= medium < 0.474."""
    size = abs(delta)
    if size < 0.147:
        return "negligible"
    if size < 0.33:
        return "small"
    return "medium" if size < 0.474 else "large"


def hodges_lehmann(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Median of all differences a - b (R's "difference in location" of the exact test)."""
    first, second = _finite(a, "sample a"), _finite(b, "sample b")
    if not first or not second:
        return None
    return float(np.median(np.subtract.outer(np.asarray(first), np.asarray(second))))


# Several samples ------------------------------------------------------------------------------


@dataclass(frozen=True)
class KruskalWallis:
    """H with tie correction against chi-squared with k - 1 degrees of freedom.

    `smallest_p` is what complete separation of untied groups of these sizes would give.
    """

    n: tuple[int, ...]
    h: float | None
    degrees_of_freedom: int
    p: float | None
    alpha: float
    smallest_p: float | None
    too_small: str | None = None
    reason: str | None = None

    @property
    def significant(self) -> bool:
        return self.p is not None and self.p < self.alpha and self.too_small is None


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


def _rank(groups: Mapping[str, Sequence[float]]) -> _Ranked:
    """Ranks over all groups, ties at their mean rank; empty groups have rank 0."""
    samples = [_finite(values, f"group {name!r}") for name, values in groups.items()]
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


def kruskal_wallis(groups: Mapping[str, Sequence[float]], alpha: float = 0.05) -> KruskalWallis:
    """As R's kruskal.test. Empty groups give a result without p; two groups or more are needed.

    Raises EeioError for fewer groups and for values that are not finite.
    """
    _check_share(alpha, "alpha")
    _check_groups(groups)
    ranked = _rank(groups)
    n, total = ranked.n, ranked.total
    freedom = len(n) - 1
    if 0 in n:
        empty = ", ".join(name for name, size in zip(groups, n, strict=True) if not size)
        return KruskalWallis(n, None, freedom, None, alpha, None, None, f"empty group: {empty}")
    least = _smallest_kruskal_p(tuple(sorted(n)))
    warning = None
    if least >= alpha:
        warning = (
            f"groups of {', '.join(map(str, n))} can never be significant at {alpha:g}: complete "
            f"separation gives p = {least:.3g}; repeat more often"
        )
    if ranked.all_equal:
        return KruskalWallis(
            n, None, freedom, None, alpha, least, warning, "all values are equal"
        )  # fmt: skip
    h = _h(n, ranked.mean_ranks) / (1.0 - ranked.ties / (total**3 - total))
    p = float(special.chdtrc(freedom, h))
    return KruskalWallis(n, h, freedom, p, alpha, least, warning)


def _h(n: Sequence[int], mean_ranks: Sequence[float]) -> float:
    """H without tie correction, from deviations, which lose less than the textbook's squares."""
    total = sum(n)
    middle = (total + 1) / 2.0
    between = sum(
        size * (rank - middle) ** 2 for size, rank in zip(n, mean_ranks, strict=True)
    )  # fmt: skip
    return 12.0 * between / (total * (total + 1))


@lru_cache(maxsize=256)
def _smallest_kruskal_p(n: tuple[int, ...]) -> float:
    """p when the groups do not overlap at all, in the order of groups that gives the largest H."""
    if len(n) > _MAX_ORDERED_GROUPS:
        # H never exceeds N - 1; for so many groups the exact largest is not needed.
        return float(special.chdtrc(len(n) - 1, sum(n) - 1))
    largest = 0.0
    for order in set(permutations(n)):
        start = 0
        means = []
        for size in order:
            means.append(start + (size + 1) / 2.0)
            start += size
        largest = max(largest, _h(order, means))
    return float(special.chdtrc(len(n) - 1, largest))


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
    _check_adjustment(adjustment)
    _check_share(alpha, "alpha")
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
            variance = total * (total + 1) / 12.0 - ranked.ties / (12.0 * (total - 1))
            z = (ranked.mean_ranks[i] - ranked.mean_ranks[j]) / math.sqrt(
                variance * (1.0 / n_a + 1.0 / n_b)
            )
            p = factor * _upper_tail(abs(z))
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
    least = min(1.0, penalty * factor * _upper_tail(apart / math.sqrt(variance)))
    if least < alpha:
        return None
    return (
        f"n = {pair.n_a} against {pair.n_b} among {total} values can never be significant at "
        f"{alpha:g}: the largest possible distance gives p = {least:.3g}; repeat more often"
    )


def adjust(p_values: Sequence[float], adjustment: Adjustment) -> tuple[float, ...]:
    """p-values adjusted for their number, in the order given, as R's p.adjust.

    Holm and Bonferroni bound the chance of any false difference, Benjamini-Hochberg the expected
    share of false ones. Raises EeioError for a p outside 0 to 1.
    """
    _check_adjustment(adjustment)
    for index, p in enumerate(p_values):
        if not 0.0 <= p <= 1.0:
            raise EeioError(f"p-value {index + 1} is {p}; it must lie from 0 to 1")
    m = len(p_values)
    if adjustment == "none":
        return tuple(p_values)
    if adjustment == "bonferroni":
        return tuple(min(1.0, m * p) for p in p_values)
    found = [0.0] * m
    order = sorted(range(m), key=p_values.__getitem__)
    bound = 0.0 if adjustment == "holm" else 1.0
    if adjustment == "holm":
        for rank, index in enumerate(order):
            bound = max(bound, min(1.0, (m - rank) * p_values[index]))
            found[index] = bound
    else:
        for rank, index in reversed(list(enumerate(order, start=1))):
            bound = min(bound, m / rank * p_values[index])
            found[index] = bound
    return tuple(found)


def _check_adjustment(adjustment: str) -> None:
    if adjustment not in ("none", "holm", "bonferroni", "benjamini-hochberg"):
        raise EeioError(
            f"adjustment {adjustment!r}: choose none, holm, bonferroni or benjamini-hochberg"
        )


def _check_groups(groups: Mapping[str, Sequence[float]]) -> None:
    if len(groups) < 2:
        raise EeioError(f"{len(groups)} group given; a comparison needs at least two")
