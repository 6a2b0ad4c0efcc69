"""Figures of lines over a common axis, a panel each: rounds of a drive, steps of a load.

Nothing here needs a library to draw with before a figure is drawn (`line_figures`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from eeio_results.report.parts import Plot

if TYPE_CHECKING:
    from eeio_results.report.drawing import Drawing, Look


@dataclass(frozen=True)
class Line:
    """Points by x; what was not measured is none of them."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """What is drawn over the same x: the y axis with its unit, the lines, `shaded` (from x to x)
    with what that means. The y axis begins at 0 where `from_zero`."""

    axis: str
    lines: Sequence[Line]
    shaded: tuple[float, float] | None = None
    from_zero: bool = True


@dataclass(frozen=True)
class Lines:
    """One figure; `stamped` is written across it (`eeio_results.stamps`)."""

    title: str
    x_axis: str
    panels: Sequence[Panel]
    stamped: str


def plot(name: str, lines: Lines) -> Plot:
    """A file of that name, drawn when it is asked for."""
    return Plot(name, lines.title, partial(_svg, lines), partial(_drawing, lines))


def _drawing(lines: Lines, look: "Look") -> "Drawing":
    from eeio_results.report.line_figures import draw

    return draw(lines, look)


def _svg(lines: Lines) -> str:
    from eeio_results.report.drawing import SCREEN, svg_of

    found = _drawing(lines, SCREEN)
    return svg_of(found.figure, found.title, found.description)
