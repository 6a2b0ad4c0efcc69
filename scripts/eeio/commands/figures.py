"""`eeio figures`: the figures of a study of machines and drives, as SVG files."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.errors import EXIT_DONE


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
    campaigns = load_campaigns(arguments.campaigns)
    with analysis():
        from eeio_results.report import figures as report
    write_figures(report.draw(campaigns), arguments.output)
    return EXIT_DONE


def write_figures(drawn: Mapping[str, str], folder: Path) -> None:
    """Each into a file of its name, which is told on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in drawn.items():
        (folder / name).write_text(svg, encoding="utf-8")
        print(f"figure: {folder / name}", file=sys.stderr)
    if not drawn:
        print("no figure: no campaign has a valid result to draw", file=sys.stderr)
