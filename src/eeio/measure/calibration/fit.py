"""The line of a reference's power on a meter's power, from mean powers of steps of load.

Least squares (Draper and Smith, Applied Regression Analysis, 3rd edition, 1998, chapter 1). The
limit is the half width of the 95 % prediction interval of Student's t (their equation 3.1.6) at
the end of the valid range where it is widest.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eeio.errors import EeioError
from eeio.statistics.stopping import t_quantile
from eeio_power.calibration import MARGIN

FEWEST_STEPS = 6
MOST_UNKNOWN_SLOPE = 0.1
LEAST_GAIN, MOST_GAIN = 0.5, 2.0
MOST_CURVED = 0.05
"""Share of the reference's range of power by which a parabola may differ from the line."""
_CONFIDENCE = 0.99
"""That the curve is no accident."""


@dataclass(frozen=True)
class Fit:
    """reference = gain x meter + offset_w, in 95 % of cases within `limit_w`."""

    gain: float
    gain_limit: float
    """Half width of the 95 % interval of the gain."""
    offset_w: float
    limit_w: float
    least_w: float
    """The range of the meter's power in the steps, W."""
    most_w: float


def fit(steps: Sequence[tuple[float, float]], pair: str) -> Fit:
    """Of mean powers, W, of the meter and of the reference in each step. `pair` names both.

    Raises EeioError if no line is certain.
    """
    n = len(steps)
    if n < FEWEST_STEPS:
        raise EeioError(f"{pair}: {n} usable steps, and {FEWEST_STEPS} are needed")
    least_w, most_w = min(x for x, _ in steps), max(x for x, _ in steps)
    x_mean = statistics.fmean(x for x, _ in steps)
    y_mean = statistics.fmean(y for _, y in steps)
    s_xx = math.fsum((x - x_mean) ** 2 for x, _ in steps)
    if s_xx == 0.0:
        raise EeioError(f"{pair}: the load does not change the power, {least_w:.4g} W in each step")
    gain = math.fsum((x - x_mean) * (y - y_mean) for x, y in steps) / s_xx
    errors_w = [y - y_mean - gain * (x - x_mean) for x, y in steps]
    variance = math.fsum(error_w**2 for error_w in errors_w) / (n - 2)
    t = t_quantile(0.975, n - 2)
    gain_limit = t * math.sqrt(variance / s_xx)
    if gain_limit >= MOST_UNKNOWN_SLOPE * abs(gain):
        raise EeioError(
            f"{pair}: the gain is {gain:.3g} ± {gain_limit:.2g}, and 10 % is needed: the load "
            f"changes the power too little ({least_w:.3g} W to {most_w:.3g} W), or the two do not "
            "read the same part; end other programs, or vary the load of drives with --directory"
        )
    if not LEAST_GAIN <= gain <= MOST_GAIN:
        raise EeioError(
            f"{pair}: the gain is {gain:.3g}, outside {LEAST_GAIN:g} to {MOST_GAIN:g}: the two do "
            "not read the same part; check the domain of both, and what the reference is connected "
            "to"
        )
    curved_w = _curved_w([x - x_mean for x, _ in steps], errors_w)
    if curved_w > MOST_CURVED * gain * (most_w - least_w):
        raise EeioError(
            f"{pair}: their relation is not linear: a curve differs from the line by "
            f"{curved_w:.3g} W; the two do not read the same part, or one of them is not linear"
        )
    farthest_w = max(most_w - x_mean, x_mean - least_w) + MARGIN * (most_w - least_w)
    limit_w = t * math.sqrt(variance * (1.0 + 1.0 / n + farthest_w**2 / s_xx))
    return Fit(gain, gain_limit, y_mean - gain * x_mean, limit_w, least_w, most_w)


def _curved_w(x: Sequence[float], errors_w: Sequence[float]) -> float:
    """How far a parabola is from the line, W; 0 if the curve may be an accident. `x` has mean 0."""
    # The part of x squared that a line does not explain: x has mean 0.
    squares = [each * each for each in x]
    mean, slope = statistics.fmean(squares), math.fsum(a**3 for a in x) / math.fsum(squares)
    q = [square - mean - slope * each for square, each in zip(squares, x, strict=True)]
    q_q = math.fsum(each * each for each in q)
    if q_q <= 1e-9 * math.fsum(each * each for each in squares):  # two levels only
        return 0.0
    curve = math.fsum(a * b for a, b in zip(q, errors_w, strict=True)) / q_q
    left = math.fsum((e - curve * each) ** 2 for e, each in zip(errors_w, q, strict=True))
    degrees = len(x) - 3
    t = t_quantile((1.0 + _CONFIDENCE) / 2.0, degrees)
    if abs(curve) <= t * math.sqrt(left / degrees / q_q):
        return 0.0
    return abs(curve) * (max(q) - min(q))
