"""Whether a sample may be normal: Lilliefors and Shapiro-Wilk.

Lilliefors is ours: the only test of scipy with fitted parameters, `goodness_of_fit`, draws its null
distribution anew for each sample; here it is drawn once for a size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from eeio.statistics.bootstrap import SEED, Floats
from eeio.statistics.checks import finite

# nortest::lillie.test, the R function for it, refuses fewer.
_LILLIEFORS_MIN_N = 5
# Above this size Stephens' modified statistic carries the null distribution over.
_LILLIEFORS_MAX_N = 100
_LILLIEFORS_SAMPLES = 20_000
# scipy's (Royston's) p-value for Shapiro-Wilk is not accurate beyond.
_SHAPIRO_MAX_N = 5000


@dataclass(frozen=True)
class TestResult:
    """One test; `p` is None with the reason."""

    statistic: float | None
    p: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Normality:
    """Three tests of one sample. Only Lilliefors and Shapiro-Wilk decide; `kolmogorov_smirnov` is
    there to compare with older papers."""

    kolmogorov_smirnov: TestResult
    lilliefors: TestResult
    shapiro_wilk: TestResult


def normality(values: Sequence[float]) -> Normality:
    """Raises EeioError for values that are not finite."""
    return Normality(kolmogorov_smirnov_fitted(values), lilliefors(values), shapiro_wilk(values))


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
    """Kolmogorov-Smirnov against the normal distribution with the sample's mean and sd.

    As in docs/explanation/statistics.md (R's `ks.test(x, "pnorm", mean(x), sd(x))`). Its p is far
    too large, because the parameters were fitted (Lilliefors 1967): for comparison only.
    """
    sample = finite(values, "the sample")
    if reason := _no_normality(sample, 2):
        return TestResult(None, None, reason)
    from scipy import stats  # a second to import, and only the normality tests need it

    array = np.asarray(sample)
    # Scaled first, so that values near the ends of the float range do not overflow the sd.
    scaled = (array - np.mean(array)) / np.max(np.abs(array - np.mean(array)))
    result = stats.kstest(scaled / np.std(scaled, ddof=1), "norm")
    return TestResult(float(result.statistic), float(result.pvalue))


def lilliefors(values: Sequence[float], seed: int = SEED) -> TestResult:
    """Lilliefors' test of normality; p from 20 000 seeded normal samples of the same size.

    The null distribution does not depend on mean and sd, so it is drawn once per n. Above n = 100
    the one of n = 100 serves through Stephens' (1974) modified statistic.
    """
    sample = finite(values, "the sample")
    if reason := _no_normality(sample, _LILLIEFORS_MIN_N):
        return TestResult(None, None, reason)
    statistic = float(_lilliefors_statistics(np.sort(np.asarray(sample))[np.newaxis, :])[0])
    n = min(len(sample), _LILLIEFORS_MAX_N)
    null = _lilliefors_null(n, seed)
    looked_up = statistic * _stephens(len(sample)) / _stephens(n)
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
    sample = finite(values, "the sample")
    if reason := _no_normality(sample, 3):
        return TestResult(None, None, reason)
    if len(sample) > _SHAPIRO_MAX_N:
        return TestResult(None, None, f"n = {len(sample)}: p is not accurate beyond 5000 values")
    from scipy import stats

    array = np.asarray(sample)
    # W does not depend on scale, but scipy takes samples of a tiny range for constants.
    scaled = (array - np.median(array)) / (np.max(array) - np.min(array))
    result = stats.shapiro(scaled)
    return TestResult(float(result.statistic), float(result.pvalue))
