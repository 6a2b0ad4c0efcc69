"""A figure over the repetitions of a group: quartiles, or `Missing` with the reason."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eeio.analysis.observation import NO_ENERGY, Missing, Value
from eeio.record.windows import GB


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles (linear interpolation between order statistics, R's type 7)."""

    median: float
    q1: float
    q3: float


Figure = Quartiles | Missing


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """None without values; for one value, all quartiles are that value."""
    if not values:
        return None
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return Quartiles(median, q1, q3)


def summarize(values: Iterable[Value]) -> Figure:
    """Of the known values of a figure, one per repetition; without any, the first reason. Raises
    StopIteration without repetitions."""
    every = list(values)
    known = quartiles([value for value in every if not isinstance(value, Missing)])
    if known is not None:
        return known
    return next(value for value in every if isinstance(value, Missing))


def bytes_per_j(j_per_gb: Figure) -> Figure:
    """Bytes per J of quartiles of J/GB: MB/J is 1000 over J/GB also in every summary, which the
    median of reciprocals is not where it is a mean of two."""
    if isinstance(j_per_gb, Missing):
        return j_per_gb
    if min(j_per_gb.q1, j_per_gb.median) <= 0:
        return NO_ENERGY
    return Quartiles(GB / j_per_gb.median, GB / j_per_gb.q3, GB / j_per_gb.q1)
