"""The pause from which on standby saves energy: the root of a straight line.

A drive in standby during a pause saves energy in proportion to the pause, less the cost of standby
and spin-up: saved = a + b x. The line is fitted by least squares, and its root -a / b has Fieller's
interval (Fieller 1954, Some problems in interval estimation, Journal of the Royal Statistical
Society B 16): all x with a + b x no farther from 0 than the residuals allow. This runs on the
measured machine, so it needs no scientific library.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from eeio.statistics.stopping import t_quantile

FEWEST_PAIRS = 3


@dataclass(frozen=True)
class BreakEven:
    """Of `n` pairs: the pause from which on saving pays, with its 95 % interval, in seconds; None
    with the reason. `saved_w` is the saving of each further second, `cost_j` the cost of a pause of
    no length (None if no line can be fitted). `beyond`: no pause was so short, or so long."""

    n: int
    pause_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    saved_w: float | None = None
    cost_j: float | None = None
    beyond: bool = False
    reason: str | None = None


def break_even(pairs: Sequence[tuple[float, float]]) -> BreakEven:
    """From pairs of a pause, s, and the energy that standby saved over it and the time after, J."""
    n = len(pairs)
    if n < FEWEST_PAIRS or len({pause_s for pause_s, _ in pairs}) < 2:
        return BreakEven(
            n, reason=f"{FEWEST_PAIRS} valid pairs at least, of two lengths of pause, are needed"
        )
    x_mean = statistics.fmean(x for x, _ in pairs)
    y_mean = statistics.fmean(y for _, y in pairs)
    s_xx = math.fsum((x - x_mean) ** 2 for x, _ in pairs)
    slope = math.fsum((x - x_mean) * (y - y_mean) for x, y in pairs) / s_xx
    intercept = y_mean - slope * x_mean
    variance = math.fsum((y - intercept - slope * x) ** 2 for x, y in pairs) / (n - 2)
    t = t_quantile(0.975, n - 2)
    fitted = BreakEven(n, saved_w=slope, cost_j=-intercept)
    doubt = t * t * variance / s_xx
    if slope * slope <= doubt:
        return _without(
            fitted, "the saving per second of pause does not differ significantly from 0"
        )
    if slope < 0:
        return _without(fitted, "saving takes more with each second of pause: it never pays")
    root = -intercept / slope
    if root <= 0:
        return _without(fitted, "it pays in a pause of any length")
    # Fieller's g: the share of the slope that is not known, squared.
    g = doubt / (slope * slope)
    middle = x_mean + (root - x_mean) / (1 - g)
    spread = math.sqrt(variance * ((root - x_mean) ** 2 / s_xx + (1 - g) / n))
    half = t * spread / (slope * (1 - g))
    measured = [pause_s for pause_s, _ in pairs]
    return BreakEven(
        n,
        root,
        max(0.0, middle - half),
        middle + half,
        slope,
        -intercept,
        not min(measured) <= root <= max(measured),
    )


def _without(fitted: BreakEven, reason: str) -> BreakEven:
    return BreakEven(fitted.n, saved_w=fitted.saved_w, cost_j=fitted.cost_j, reason=reason)
