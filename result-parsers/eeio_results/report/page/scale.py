"""Logarithmic axes of charts in the page: from values to pixels, and the positions of ticks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NARROW = 6.0
"""An axis with ends closer than this factor has even ticks."""


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis from the value `low` at the pixel `begin` to `high` at `end`."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if self.high / self.low < _NARROW:
            return _even(self.low, self.high)
        all_of = (1, 2, 5) if self.high / self.low < 300 else (1,)
        return [value for value in steps(self.low, self.high, all_of) if value >= self.low]


def _even(low: float, high: float) -> list[float]:
    """Even steps of 1, 2 or 5 in a decade: a narrow axis has no decade to step through."""
    raw = (high - low) / 4
    decade = 10.0 ** math.floor(math.log10(raw))
    step = next(n * decade for n in (1, 2, 5, 10) if n * decade >= raw)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def steps(low: float, high: float, of: Sequence[int]) -> Iterator[float]:
    """1-2-5 steps from the decade of `low` up to `high`."""
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in of:
            value = step * 10.0**decade
            if value <= high:
                yield value


def scale(values: Sequence[float], begin: float, end: float) -> Scale:
    """A scale that contains all of some positive values, with a margin."""
    low, high = min(values) / 1.15, max(values) * 1.15
    if high / low < 1.5:
        low, high = low / 1.2, high * 1.2
    return Scale(low, high, begin, end)


def plain(value: float) -> str:
    """A tick without an exponent."""
    return f"{value:.0f}" if value >= 1e5 else f"{value:g}"
