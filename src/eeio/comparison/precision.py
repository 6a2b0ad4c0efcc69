"""How well an experiment is known: the interval of the mean logarithm of each of its figures.

No scientific library: adaptive campaigns ask on the measured machine.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, EXECUTION_S, POWER, Cell
from eeio.statistics.stopping import t_quantile

KNOWN_BY = (BANDWIDTH, EXECUTION_S, *POWER.values(), EFFICIENCY)
"""Metrics that a repetition is made for."""


@dataclass(frozen=True)
class Known:
    """The figure of an experiment that is known worst. `half_width` is that of the 95 % interval of
    the mean logarithm, so a share; None: fewer than two values. `n` values of `metric`."""

    half_width: float | None
    metric: str
    n: int


def half_width(values: Sequence[float]) -> float | None:
    """Of the 95 % interval of the mean logarithm (Student's t); None for fewer than two values, or
    where one is not above 0."""
    if len(values) < 2 or min(values) <= 0:
        return None
    deviation = statistics.stdev(map(math.log, values))
    return t_quantile(0.975, len(values) - 1) * deviation / math.sqrt(len(values))


def log_variance(values: Sequence[float]) -> float:
    """Of the logarithms of two values above 0 or more."""
    return statistics.variance(map(math.log, values))


def known_worst(cells: Iterable[Cell]) -> Known | None:
    """Of all phases of an experiment; None where it gave no figure at all."""
    shares = []
    for cell in cells:
        for metric in KNOWN_BY:
            if values := cell.values(metric):
                shares.append(Known(half_width(values), metric, len(values)))
    return max(
        shares, key=lambda k: math.inf if k.half_width is None else k.half_width, default=None
    )
