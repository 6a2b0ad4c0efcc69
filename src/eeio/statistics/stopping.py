"""When a mean is sufficiently precise: the 95 % interval of Student's t within a share of the mean.

A paper's "repeated to achieve 95 % statistical confidence" as a rule (docs/studies/): stop when
t(0.975, n - 1) s / sqrt(n) <= r x mean, with n >= n_min, at n_max at the latest. Looking after each
repetition costs a little coverage (benchmarks/stopping_coverage.py). This runs on the measured
machine, so it needs no scientific library.

How long a run must be: the shortest cut with the means of the full run.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio.errors import EeioError


@dataclass(frozen=True)
class Spread:
    """Repetitions summed up. `half_width` is that of the 95 % interval of the mean and `rsd` the
    standard deviation, both as shares of the mean; None where they are not defined."""

    n: int
    mean: float | None
    rsd: float | None
    half_width: float | None

    def is_within(self, half_width: float) -> bool:
        return self.half_width is not None and self.half_width <= half_width


def spread(values: Sequence[float]) -> Spread:
    """Of repetitions of one experiment; a single one has a mean and no spread."""
    if not values:
        return Spread(0, None, None, None)
    mean = statistics.fmean(values)
    if len(values) < 2 or mean == 0:
        return Spread(len(values), mean, None, None)
    rsd = statistics.stdev(values, mean) / abs(mean)
    half_width = t_quantile(0.975, len(values) - 1) * rsd / math.sqrt(len(values))
    return Spread(len(values), mean, rsd, half_width)


def t_quantile(probability: float, degrees: int) -> float:
    """Student's t, by Newton's method on its distribution from Abramowitz and Stegun 26.7.5's
    first guess; exact to 1e-9 for 1 degree of freedom and more. 0.5 <= probability < 1."""
    x = statistics.NormalDist().inv_cdf(probability)
    v = float(degrees)
    t = x + (x**3 + x) / (4 * v) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * v**2)
    for _ in range(60):
        step = (_t_cdf(t, degrees) - probability) / _t_density(t, degrees)
        # A first guess far out on a flat tail must not be thrown over zero.
        t = t - step if t - step > 0 or probability == 0.5 else t / 2
        if abs(step) < 1e-12 * max(1.0, abs(t)):
            break
    return t


def _t_density(t: float, degrees: int) -> float:
    v = degrees
    scale = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return math.exp(scale - (v + 1) / 2 * math.log1p(t * t / v))


def _t_cdf(t: float, degrees: int) -> float:
    """For integer degrees of freedom the distribution is a finite sum (Abramowitz and Stegun 26.7.3
    and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(degrees))
    cosine = math.cos(angle)
    if degrees % 2:
        term, total = cosine, 0.0
        for k in range(1, degrees - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        area = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        term, total = 1.0, 0.0
        for k in range(0, degrees, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        area = math.sin(angle) * total
    return 0.5 + area / 2


LENGTHS_S = (10.0, 20.0, 30.0, 45.0)
"""Lengths that a pilot tries, s."""


def proven_length(
    means: Mapping[float, Mapping[str, float]], complete: Mapping[str, float], floor: float
) -> float | None:
    """The shortest length from which on each metric stays near its value in the full run.

    `means` contains, by length (s), the means of the first seconds of a run by metric, `complete`
    those of the full run. A length is proven if it and each longer one are within the share `floor`
    of `complete` for each metric. A cut that lacks a metric of `complete` does not count as proof.
    None: no length is proven, so the run is not shortened. Raises EeioError for means that are not
    above 0, and for a floor that is not a share.
    """
    if not 0.0 <= floor < 1.0:
        raise EeioError(f"floor {floor:g}: give a share from 0 to below 1, such as 0.01")
    for where, found in (
        ("the complete run", complete),
        *((f"the first {s:g} s", means[s]) for s in means),
    ):
        for metric, value in found.items():
            if not (math.isfinite(value) and value > 0.0):
                raise EeioError(
                    f"{metric} of {where} is {value:g}: no length follows from means that are "
                    "not above 0; use the full run length"
                )
    if not complete:
        return None
    proven = None
    for length_s in sorted(means, reverse=True):
        cut = means[length_s]
        if any(
            metric not in cut or abs(cut[metric] - full) > floor * full
            for metric, full in complete.items()
        ):
            break
        proven = length_s
    return proven
