"""`eeio report`: the tables of one or several campaigns, in every format."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eeio.analysis.ranking import Rules
from eeio.commands.amounts import duty, share
from eeio.commands.arguments import OptionGroup, add_help_all, former
from eeio.commands.campaign_folders import analysis, load_campaigns, save_figures
from eeio.commands.experiments import add_where
from eeio.commands.output_file import add_formats, write_document, write_file
from eeio.commands.plots import CHARTS, WIDTHS, chart_files, plot_files, write_plots
from eeio.commands.plots import FORMATS as PLOT_FORMATS
from eeio.comparison.drift import compared_cells
from eeio.comparison.layers import matches, on_one_drive
from eeio.comparison.pareto import choices
from eeio.errors import EXIT_DONE, EeioError, RejectedError
from eeio.record import store
from eeio.record.run import LEVELS
from eeio.record.store import Campaign
from eeio.report.campaign import contents
from eeio.report.campaign.characterized import SORTS, Report, build, of_levels, sorted_by
from eeio.report.campaign.columns import groups, known_columns
from eeio.report.campaign.end_of_run import summary
from eeio.units.names import similar
from eeio.units.quantities import MOST_UNCERTAIN
from eeio_power.meters import verifications

_PAGE = "report.html"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "report",
        help="create tables, plots, CSV, JSON, Markdown, LaTeX or an HTML page",
        description="Characterizes stored campaigns: bandwidth, power, energy, efficiency.",
    )
    parser.add_argument("campaigns", metavar="NAME|PATH", nargs="+", help="campaign name or folder")
    rows = OptionGroup(parser, "rows and columns")
    rows.add(
        "--level", choices=LEVELS, action="append", default=[],
        help="only experiments of this level; repeatable",
    )  # fmt: skip
    rows.add(
        "--sort", type=str.lower, choices=SORTS, metavar="WORD",
        help=f"sort by median, best first: {', '.join(SORTS)}",
    )  # fmt: skip
    rows.add(
        "--columns", metavar="WORD[,WORD]", type=_columns, default=(),
        help=f"add columns: {', '.join(groups())}; or show only "
        f"{', '.join(known_columns()[len(groups()):])}",
    )  # fmt: skip
    rows.rare(
        "--most-uncertain", metavar="SHARE", type=share, default=MOST_UNCERTAIN,
        help="do not rank MB/J with a larger uncertainty (default: "
        f"{MOST_UNCERTAIN:.0%})".replace("%", "%%"),
    )  # fmt: skip
    rows.add(
        "--duty-cycle", metavar="SHARE", type=duty,
        help="add J/GB with idle energy at this duty cycle, e.g. 10%%",
    )  # fmt: skip
    plots = OptionGroup(parser, "plots")
    plots.add("--plots", metavar="DIR", type=Path, help="also write all plots into DIR")
    plots.add(
        "--chart", metavar="WORD[,WORD]", type=_charts, default=(),
        help=f"only these charts, to --plots DIR or -o FILE.svg: {', '.join(CHARTS)}",
    )  # fmt: skip
    plots.add(
        "--plot-format", choices=PLOT_FORMATS, action="append", default=[],
        help="plot format, repeatable (default: svg)",
    )  # fmt: skip
    plots.rare(
        "--width", choices=WIDTHS,
        help="plot width: one (3.5 in) or two columns (7.16 in) (default: screen)",
    )  # fmt: skip
    add_where(plots)
    add_formats(OptionGroup(parser, "output"))
    former(parser, "--busy", "--duty-cycle")
    add_help_all(parser)
    parser.set_defaults(action=report, pictures=PLOT_FORMATS)


def report(arguments: argparse.Namespace) -> int:
    if arguments.chart:
        return _draw_charts(arguments)
    if arguments.output is not None and arguments.output.suffix[1:] in PLOT_FORMATS:
        raise RejectedError(
            f"-o {arguments.output}: no format has the suffix {arguments.output.suffix}; give "
            f"--chart {'|'.join(CHARTS)} for a picture, or .html, .csv, ... for the tables"
        )
    if arguments.where and arguments.plots is None:
        raise RejectedError("--where selects the experiments of --plots DIR")
    rules = Rules(arguments.most_uncertain, arguments.duty_cycle)
    built = with_tests(
        build(load_campaigns(arguments.campaigns), rules, arguments.columns), rules.most_uncertain
    )
    if arguments.level:
        built = of_levels(built, arguments.level)
    if arguments.sort is not None:
        built = sorted_by(built, arguments.sort)
    if arguments.plots is not None:
        files = plot_files(
            built, arguments.plot_format or ("svg",), arguments.width, arguments.where
        )
        write_plots(files, arguments.plots)
    write_document(arguments, contents.document(built, lambda: _render_html(built)))
    save_figures(built.campaigns)
    return EXIT_DONE


def _draw_charts(arguments: argparse.Namespace) -> int:
    """Writes the charts of --chart, into the folder or the one file."""
    output: Path | None = arguments.output
    if arguments.where:
        raise RejectedError("--where: not with --chart; --level selects its experiments")
    if (output is None) == (arguments.plots is None):
        raise RejectedError("--chart: give a folder, --plots DIR, or for one chart -o FILE.svg")
    if output is not None and (
        len(arguments.chart) > 1 or output.suffix[1:] not in PLOT_FORMATS or arguments.plot_format
    ):
        raise RejectedError(
            f"-o {output}: one chart in one file, .{', .'.join(PLOT_FORMATS)}; several charts need "
            "--plots DIR"
        )
    built = build(load_campaigns(arguments.campaigns))
    if arguments.level:
        built = of_levels(built, arguments.level)
    formats = arguments.plot_format or ("svg",) if output is None else (output.suffix[1:],)
    files = chart_files(built, arguments.chart, formats, arguments.width)
    if output is None:
        write_plots(files, arguments.plots)
    elif len(files) > 1:
        raise RejectedError(f"-o {output}: {len(files)} pictures are needed: use --plots DIR")
    else:
        write_file(output, *files.values())
        print(output)
    return EXIT_DONE


def complete_report(campaigns: Sequence[Campaign]) -> Report:
    """The report of campaigns as `eeio report` makes it without options."""
    return with_tests(build(campaigns))


def with_tests(built: Report, most_uncertain: float = MOST_UNCERTAIN) -> Report:
    """With what tests tell: what layers cost, where experiments are one layer apart, and what
    adaptive campaigns decided; and with what the kinds of meters were verified on."""
    built = replace(built, verification=verifications())
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
            from eeio.comparison.layer_costs import layer_costs
            from eeio.report.campaign.answers import answers
    except EeioError as error:
        print(f"no table that needs a test: {error}", file=sys.stderr)
        return built
    decided = tuple(one for campaign in built.campaigns if (one := answers(campaign)) is not None)
    layers = layer_costs(found, most_uncertain=most_uncertain)
    return replace(built, layers=layers, answers=decided)


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip().lower() for column in text.split(","))
    known = known_columns()
    names = [f"`{one}`" if " " in one else one for one in known]
    for column in columns:
        if column not in known:
            raise argparse.ArgumentTypeError(
                f"no columns {column!r:.40}{similar(column, known)}; there are {', '.join(names)}"
            )
    return columns


def _charts(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(map(str.strip, text.lower().split(","))))
    for name in names:
        if name not in CHARTS:
            raise argparse.ArgumentTypeError(
                f"no chart {name!r:.40}{similar(name, CHARTS)}; there are {', '.join(CHARTS)}"
            )
    return names


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
        from eeio.measure.power_series import power_series
        from eeio.report import page
        from eeio.report.documents import bench
    if bench.is_of_commands(built):
        with analysis():
            return bench.report_page(built)
    return page.render(built, power=power_series)
