"""Logarithmic axes of charts in the page: from values to pixels, the positions of ticks, and their
SVG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eeio.units.external_text import shown

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
            return linear_ticks(self.low, self.high)
        all_of = (1, 2, 5) if self.high / self.low < 300 else (1,)
        return [value for value in steps(self.low, self.high, all_of) if value >= self.low]


def linear_ticks(low: float, high: float) -> list[float]:
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


@dataclass(frozen=True)
class Frame:
    """The area of a chart in its picture, and the sizes of both."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def scales(self, xs: Sequence[float], ys: Sequence[float]) -> tuple[Scale, Scale]:
        """For positive values along both axes."""
        across = scale(xs, self.left, self.width - self.right)
        return across, scale(ys, self.height - self.bottom, self.top)

    def opening(self, name: str) -> Markup:
        return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            self.width, self.height, shown(name)
        )

    def axes(self, across: Scale, up: Scale, x_title: str, y_title: str) -> Iterator[Markup]:
        line = Markup('<path class="grid" d="M{:.0f} {:.0f}L{:.0f} {:.0f}"/>')
        for value in across.ticks():
            x = across.at(value)
            yield line.format(x, self.top, x, self.height - self.bottom)
            yield text(x, self.height - self.bottom + 16, "tick middle", plain(value))
        for value in up.ticks():
            y = up.at(value)
            yield line.format(self.left, y, self.width - self.right, y)
            yield text(self.left - 6, y + 4, "tick end", plain(value))
        yield text(self.left, self.height - 8, "title", shown(x_title))
        yield text(8, 14, "title", shown(y_title))


def text(x: float, y: float, kind: str, content: str) -> Markup:
    return Markup('<text x="{:.0f}" y="{:.0f}" class="{}">{}</text>').format(x, y, kind, content)


def plain(value: float) -> str:
    """A tick without an exponent."""
    if value >= 1e5:
        return f"{value:.0f}"
    return f"{value:g}"
