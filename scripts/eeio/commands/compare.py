"""`eeio compare`: the largest confirmed differences between experiments, factor by factor."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio.commands.amounts import seconds
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.output_file import add_output, write_output
from eeio.errors import EXIT_DONE, RefusedError

if TYPE_CHECKING:
    from eeio_results.comparison.cells import Cell

_ADJUSTMENTS = ("benjamini-hochberg", "holm", "bonferroni", "none")
_BY = (
    "machine",
    "device",
    "type",
    "operation",
    "spatiality",
    "size",
    "buffer",
    "disk",
    "flush",
    "level",
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "compare",
        help="which factor changes bandwidth, power and efficiency, by how much, how surely",
        description="Finds, for each factor (cache, request size, spatiality, operation, type of "
        "drive, machine), the largest difference in bandwidth, power and efficiency that the "
        "Mann-Whitney test confirms, with its interval; and where the power above idle goes.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "--by", metavar="FACTOR", action="append", default=[], choices=_BY,
        help=f"ask each of its levels apart; may be given again ({', '.join(_BY)})",
    )  # fmt: skip
    parser.add_argument(
        "--where", metavar="FACTOR=LEVEL", action="append", default=[],
        help="only experiments with that level, such as 'size=32 KiB'; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--adjust", choices=_ADJUSTMENTS, default=_ADJUSTMENTS[0],
        help="of p-values over the pairs of a factor (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--alpha", type=float, default=0.05, help="confirmed below this p (default: %(default)s)"
    )
    parser.add_argument(
        "--max-p99", metavar="TIME", type=seconds,
        help="only experiments whose p99 latency is at most this (250us, 5ms, 0.1s)",
    )  # fmt: skip
    parser.add_argument(
        "--normality", action="store_true",
        help="also test whether the repetitions of each experiment are normally distributed",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("table", "json", "markdown"), default="table", help="(default: table)"
    )
    add_output(parser)
    parser.set_defaults(action=compare)


def compare(arguments: argparse.Namespace) -> int:
    with analysis():
        from eeio_results.comparison import campaigns as comparison
        from eeio_results.report import comparison as report
    if not 0 < arguments.alpha < 1:
        raise RefusedError(f"--alpha {arguments.alpha}: it is between 0 and 1")
    campaigns = load_campaigns(arguments.campaigns)
    cells = comparison.named_cells(campaigns)
    found = comparison.compare(
        campaigns,
        cells,
        where=_where(arguments.where, [cell for of_one in cells for cell in of_one]),
        by=arguments.by,
        adjustment=arguments.adjust,
        alpha=arguments.alpha,
        with_normality=arguments.normality,
        max_p99_s=arguments.max_p99,
    )
    if found is None:
        raise RefusedError("none of these campaigns has such an experiment with a result")
    render = {"table": report.to_text, "json": report.to_json, "markdown": report.to_markdown}
    write_output(arguments, render[arguments.format](found))
    return EXIT_DONE


def _where(words: Sequence[str], cells: "Sequence[Cell]") -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, level = word.partition("=")
        if not equals or name not in _BY:
            raise RefusedError(f"--where {word}: it is FACTOR=LEVEL with one of {', '.join(_BY)}")
        known = sorted({cell.factors[name] for cell in cells})
        if level not in known:
            raise RefusedError(f"--where {word}: no experiment; there is {', '.join(known)}")
        found[name] = level
    return found
