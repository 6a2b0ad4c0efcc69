"""`eeio figures`: the figures of a study of machines and drives, as SVG files."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.commands.analysis import analysis, load_campaigns
from eeio.errors import EXIT_DONE

if TYPE_CHECKING:
    from eeio_results.store import Campaign


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "figures",
        help="bandwidth, power and efficiency of machines and drives side by side, as SVG",
        description="Draws campaigns of several machines and drives: every repetition a dot, the "
        "median a bar with its interval, a panel a machine and drive; idle against busy power; "
        "use and frequency of the processors.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True)
    parser.set_defaults(action=figures)


def figures(arguments: argparse.Namespace) -> int:
    draw_into(load_campaigns(arguments.campaigns), arguments.output)
    return EXIT_DONE


def draw_into(campaigns: "Sequence[Campaign]", folder: Path) -> None:
    """Writes every figure that the campaigns have the data for, and names each on stderr."""
    with analysis():
        from eeio_results.report import figures as report
    drawn = report.draw(campaigns)
    _write(drawn, folder)
    if not drawn:
        print("no figure: no campaign has a valid result to draw", file=sys.stderr)


def draw_processors_into(campaigns: "Sequence[Campaign]", folder: Path) -> None:
    """Writes the figures of use and frequency alone."""
    with analysis():
        from eeio_results.report import figures as report
    _write(report.draw_processors(campaigns), folder)


def _write(drawn: dict[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in drawn.items():
        (folder / name).write_text(svg, encoding="utf-8")
        print(f"figure: {folder / name}", file=sys.stderr)
