"""The parts of a report, the same for every format: tables and plots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eeio_results.report.drawing import Drawing, Look


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
    name. `draw` returns the SVG, and imports the library that it draws with; `drawing` returns the
    figure itself at the requested width, so that it can also be a PDF or a PNG: a plot without it
    is only an SVG."""

    name: str
    title: str
    draw: Callable[[], str]
    drawing: "Callable[[Look], Drawing] | None" = None
