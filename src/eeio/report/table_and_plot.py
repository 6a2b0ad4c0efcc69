"""The parts of a report, the same for every format: tables and plots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eeio.report.figures.drawing import Drawing, Look


@dataclass(frozen=True)
class Table:
    """Cells as text; `numeric` are the columns set to the right."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """Drawn on request: the page shows it under its title, `--plots` writes it as a file of that
    name. `drawing` returns the figure at the requested width, for an SVG, a PDF or a PNG; `svg`
    returns the text of a plot that is only an SVG. Both import the library that they draw with."""

    name: str
    title: str
    svg: Callable[[], str] | None = None
    drawing: "Callable[[Look], Drawing] | None" = None

    def draw(self) -> str:
        """The SVG."""
        if self.svg is not None:
            return self.svg()
        from eeio.report.figures.drawing import SCREEN, svg_of

        assert self.drawing is not None
        return svg_of(self.drawing(SCREEN))
