"""`eeio figures`: the figures of a study of machines and drives, as SVG, PDF or PNG files."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.where import add_where, wanted
from eeio.errors import EXIT_DONE, RefusedError
from eeio_results import studies
from eeio_results.report import beside

if TYPE_CHECKING:
    from eeio_results.report.drawing import Drawing, Look
    from eeio_results.store import Campaign

_FORMATS = ("svg", "pdf", "png")
_WIDTHS = ("one", "two")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "figures",
        help="bandwidth, power and efficiency of machines and drives side by side, as pictures",
        description="Draws campaigns of several machines and drives: every repetition a dot, the "
        "median a bar with its interval and quartiles, a panel a machine and drive; idle against "
        "busy power; power over time; use and frequency of the processors; and what papers print "
        "beside campaigns of their suites (without --where).",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True)
    parser.add_argument(
        "--format", choices=_FORMATS, action="append", default=[],
        help="may be given again (default: svg)",
    )  # fmt: skip
    add_width(parser)
    add_where(parser)
    parser.set_defaults(action=figures)


def add_width(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width", choices=_WIDTHS,
        help="for one (3.5 inches) or two columns (7.16) of a paper (default: for a screen)",
    )  # fmt: skip


def figures(arguments: argparse.Namespace) -> int:
    campaigns = load_campaigns(arguments.campaigns)
    with analysis():
        from eeio.power_series import power_series
        from eeio_results.comparison.campaigns import named_cells
        from eeio_results.comparison.cells import fits
        from eeio_results.report import figures as report
    look = look_of(arguments.width)
    where = wanted(arguments.where, [cell for of_one in named_cells(campaigns) for cell in of_one])
    drawn = report.drawn(campaigns, look, lambda cell: fits(cell, where), power_series)
    if not where:
        drawn |= _beside_papers(campaigns, look)
    write_drawings(drawn, arguments.output, arguments.format or ["svg"])
    return EXIT_DONE


def _beside_papers(campaigns: "Sequence[Campaign]", look: "Look") -> "dict[str, Drawing]":
    """What papers print, beside the campaigns that are after them."""
    found = {}
    for chapter in studies.chapters(campaigns):
        for plot in beside.plots(chapter, beside.stamped(chapter, campaigns)):
            if plot.drawing is not None:
                found[plot.name.removesuffix(".svg")] = plot.drawing(look)
    return found


def look_of(width: str | None) -> "Look":
    """What `--width` asks for."""
    with analysis():
        from eeio_results.report.drawing import SCREEN, WIDTHS
    return SCREEN if width is None else WIDTHS[width]


def write_drawings(drawn: "Mapping[str, Drawing]", folder: Path, forms: Sequence[str]) -> None:
    """Each into a file of its name for each format; which is told on stderr."""
    with analysis():
        from eeio_results.report.drawing import file_of
    if folder.suffix in (".pdf", ".png", ".svg"):
        raise RefusedError(f"{folder}: -o names a folder; --format {folder.suffix[1:]} the format")
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawn.items():
        for form in dict.fromkeys(forms):
            path = folder / f"{name}.{form}"
            path.write_bytes(file_of(drawing, form))
            _tell(path)
    if not drawn:
        print("no figure: no campaign has a valid result to draw", file=sys.stderr)


def _tell(path: Path) -> None:
    print(f"figure: {path}", file=sys.stderr)


def write_figures(drawn: Mapping[str, str], folder: Path) -> None:
    """SVGs, each into a file of its name, which is told on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in drawn.items():
        (folder / name).write_text(svg, encoding="utf-8")
        _tell(folder / name)
    if not drawn:
        print("no figure: no campaign has a valid result to draw", file=sys.stderr)
