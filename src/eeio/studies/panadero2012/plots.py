"""The experiments of each figure of Panadero et al. 2012; drawn on request."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eeio.comparison.cells import BANDWIDTH, Cell, fits
from eeio.report.table_and_plot import Plot
from eeio.studies.panadero2012.references import Reference, references

if TYPE_CHECKING:
    from eeio.report.figures.drawing import Drawing, Look


def plots(cells: Sequence[Cell], campaign: str, stamped: str) -> list[Plot]:
    """Those with cells in a campaign; `campaign` distinguishes several, and is empty for one."""
    made = []
    for name, title, chosen, line in _figures(cells):
        # One request size is no curve.
        if len({cell.request_size_bytes for cell in chosen if cell.n(BANDWIDTH)}) > 1:
            made.append(_plot(name, title, campaign, partial(_curves, chosen, line, stamped)))
    compared = []
    for item in references(cells):
        if item.reference and item.application.n(BANDWIDTH):
            compared.append(item)
    if compared:
        title = "An application and its reference values (figure 14)"
        made.append(_plot("reference", title, campaign, partial(_references, compared, stamped)))
    return made


_PATTERNS = {"sequential": " (figure 6)", "random": " (figure 7)", "strided": ""}
_FILES = (
    ("IOzone", "sequential", " (figure 8)"),
    ("fio", "sequential", ""),
    ("IOzone", "random", ""),
    ("IOzone", "strided", ""),
)
_NamedCells = tuple[str, str, list[Cell], Callable[[Cell], str]]
"""Name and title of a figure, its cells, and the line of each."""


def _figures(cells: Sequence[Cell]) -> list[_NamedCells]:
    figures: list[_NamedCells] = []
    for pattern, figure in _PATTERNS.items():
        chosen = _chosen(cells, level="device", spatiality=pattern)
        title = f"The device by request size, {pattern}{figure}"
        figures.append((f"request-size-{pattern}", title, chosen, _operation_and_disk))
    for tool, pattern, figure in _FILES:
        chosen = _chosen(cells, level="filesystem", tool=tool.lower(), spatiality=pattern)
        title = f"The cache layers on and off, {tool}, {pattern}{figure}"
        name = f"caches-{pattern}"
        if tool != "IOzone":
            name += f"-{tool}"
        figures.append((name, title, chosen, _caches))
    ranks = _chosen(cells, tool="ior", processes="1")
    servers = _chosen(cells, tool="dataserver")
    return [
        *figures,
        ("library", "The I/O library, IOR on one rank (figure 9)", ranks, _library),
        ("library-servers", "POSIX against MPI-IO, one data server", servers, _library),
    ]


def _chosen(cells: Sequence[Cell], **levels: str) -> list[Cell]:
    return [cell for cell in cells if fits(cell, levels)]


def _operation_and_disk(cell: Cell) -> str:
    disk = cell.factors["disk"]
    return cell.factors["operation"] + (f", disk cache {disk}" if disk != "as found" else "")


def _caches(cell: Cell) -> str:
    return f"{_operation_and_disk(cell)}, buffer cache {cell.factors['buffer']}"


def _library(cell: Cell) -> str:
    return f"{_operation_and_disk(cell)}, {cell.factors['api']}"


def _plot(name: str, title: str, campaign: str, made: "Callable[[str, Look], Drawing]") -> Plot:
    full = title
    if campaign:
        full = f"{title}, {campaign}"
    if campaign:
        name = f"{name}-{campaign}"
    return Plot(f"{name}.svg", full, drawing=partial(made, full))


def _curves(
    cells: Sequence[Cell], line: Callable[[Cell], str], stamped: str, title: str, look: "Look"
) -> "Drawing":
    from eeio.studies.panadero2012 import figures

    return figures.by_request_size(figures.lines_of(cells, line), title, stamped, look)


def _references(found: Sequence[Reference], stamped: str, title: str, look: "Look") -> "Drawing":
    from eeio.studies.panadero2012 import figures

    return figures.next_to_references(found, title, stamped, look)
