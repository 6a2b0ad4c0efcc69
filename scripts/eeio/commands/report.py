"""`eeio report`: the tables of one or several campaigns, in every format."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from eeio import terminal
from eeio.commands.amounts import duty, share
from eeio.commands.campaign_folders import analysis, load_campaigns
from eeio.commands.figures import add_width, look_of
from eeio.commands.output_file import add_output, write_output
from eeio.errors import EXIT_DONE
from eeio_limits.names import similar
from eeio_results import store
from eeio_results.comparison.drift import compared_cells
from eeio_results.comparison.layers import matches, on_one_drive
from eeio_results.comparison.pareto import choices
from eeio_results.errors import EeioError
from eeio_results.ranking import MOST_UNCERTAIN, Rules
from eeio_results.record import LEVELS
from eeio_results.report import csv, latex, markdown, text
from eeio_results.report.choice import SORTS, of_levels, sorted_by
from eeio_results.report.columns import FURTHER, known_words
from eeio_results.report.contents import drawings
from eeio_results.report.model import Report, build, to_json
from eeio_results.report.summary import summary
from eeio_results.store import Campaign

_PAGE = "report.html"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        help="tables, CSV, JSON, Markdown or an HTML page of stored campaigns",
        description="Characterizes stored campaigns: bandwidth, power, energy, efficiency.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="name, or its folder")
    parser.add_argument(
        "--format", choices=tuple(FORMATS), default="table", help="(default: table)"
    )
    add_output(parser)
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="also write the plots as SVG files into DIR"
    )
    parser.add_argument(
        "--plot-format", choices=("svg", "pdf", "png"), action="append", default=[],
        help="of --plots; may be given again (default: svg)",
    )  # fmt: skip
    add_width(parser)
    parser.add_argument(
        "--columns", metavar="WORD[,WORD]", type=_columns, default=(),
        help=f"further columns of the tables: {', '.join(FURTHER)}; or only those that are named: "
        f"{', '.join(known_words()[len(FURTHER):])}",
    )  # fmt: skip
    parser.add_argument(
        "--level", choices=LEVELS, action="append", default=[],
        help="only experiments of this level; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--sort", type=str.lower, choices=SORTS, metavar="WORD",
        help=f"rows by their median, the best first: {', '.join(SORTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--most-uncertain", metavar="SHARE", type=share, default=MOST_UNCERTAIN,
        help="rank no MB/J whose limit of error is above this share of the energy (default: "
        f"{MOST_UNCERTAIN:.0%})".replace("%", "%%"),
    )  # fmt: skip
    parser.add_argument(
        "--busy", metavar="SHARE", type=duty,
        help="also J/GB of a system in use for this share of the time (0.1, 10%%), with the idle "
        "energy of the rest shared out over its bytes",
    )  # fmt: skip
    parser.set_defaults(action=report)


def report(arguments: argparse.Namespace) -> int:
    rules = Rules(arguments.most_uncertain, arguments.busy)
    built = with_tests(
        build(load_campaigns(arguments.campaigns), rules, arguments.columns), rules.most_uncertain
    )
    if arguments.level:
        built = of_levels(built, arguments.level)
    if arguments.sort is not None:
        built = sorted_by(built, arguments.sort)
    if arguments.plots is not None:
        _write_plots(built, arguments.plots, arguments.plot_format or ("svg",), arguments.width)
    if arguments.format == "table" and arguments.output is None:
        write_output(arguments, text.render(built, terminal.width()))
    else:
        write_output(arguments, FORMATS[arguments.format](built))
    return EXIT_DONE


def complete_report(campaigns: Sequence[Campaign]) -> Report:
    """The report of campaigns as `eeio report` makes it without options."""
    return with_tests(build(campaigns))


def with_tests(built: Report, most_uncertain: float = MOST_UNCERTAIN) -> Report:
    """With what tests tell: what layers cost, where experiments are one layer apart, and what
    adaptive campaigns decided."""
    cells = [(one, compared_cells(one, one.name)) for one in built.campaigns]
    built = replace(built, pareto=choices((cell for _, of in cells for cell in of), most_uncertain))
    found = [
        pair for one, of_one in cells for pair in matches(of_one, on_one_drive(one.design.disks))
    ]
    is_adaptive = any(one.design.protocol.adaptive is not None for one in built.campaigns)
    if not found and not is_adaptive:
        return built
    try:
        with analysis():
            from eeio_results.comparison.layer_costs import layer_costs
            from eeio_results.report.answers import answers
    except EeioError as error:
        print(f"no table that needs a test: {error}", file=sys.stderr)
        return built
    decided = tuple(one for campaign in built.campaigns if (one := answers(campaign)) is not None)
    layers = layer_costs(found, most_uncertain=most_uncertain)
    return replace(built, layers=layers, answers=decided)


def _columns(text: str) -> tuple[str, ...]:
    words = tuple(word.strip().lower() for word in text.split(","))
    known = known_words()
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(
                f"no columns {word!r:.40}{similar(word, known)}; there are {', '.join(known)}"
            )
    return words


def print_summary(folder: Path) -> None:
    """Writes the page into the campaign's folder and prints the summary."""
    built = with_tests(build([store.load(folder)]))
    page: Path | None = folder / _PAGE
    try:
        (folder / _PAGE).write_text(_render_html(built), encoding="utf-8")
    except EeioError as error:
        print(f"eeio: no page: {error}", file=sys.stderr)
        page = None
    print("\n".join(["", *summary(built, page)]))


def _render_html(built: Report) -> str:
    with analysis():
        from eeio.power_series import power_series
        from eeio_results.report import page
    return page.render(built, power=power_series)


def _write_plots(
    built: Report, folder: Path, forms: Sequence[str] = ("svg",), width: str | None = None
) -> None:
    with analysis():
        from eeio_results.report.drawing import file_of

        found = drawings(built)
    look = look_of(width)
    for plot in found:
        folder.mkdir(parents=True, exist_ok=True)
        drawing = plot.drawing(look) if plot.drawing is not None else None
        for form in dict.fromkeys(forms):
            path = (folder / plot.name).with_suffix(f".{form}")
            if drawing is not None:
                path.write_bytes(file_of(drawing, form))
            elif form == "svg":
                path.write_text(plot.draw(), encoding="utf-8")
            else:
                print(f"{plot.name}: its study draws it as SVG alone", file=sys.stderr)
                continue
            print(f"plot: {path}", file=sys.stderr)


def _render_json(built: Report) -> str:
    return json.dumps(to_json(built), indent=1) + "\n"


FORMATS: dict[str, Callable[[Report], str]] = {
    "table": text.render,
    "json": _render_json,
    "csv": csv.render,
    "markdown": markdown.render,
    "latex": latex.render,
    "html": _render_html,
}
