"""`eeio report`: the tables of one or several campaigns, in every format."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.analysis.ranking import Rules
from eeio.commands.campaign_folders import analysis, load_campaigns, save_figures
from eeio.commands.experiments import where_option
from eeio.commands.output_file import (
    document_format,
    output_file,
    pager_switch,
    sort_option,
    write_document,
    write_file,
)
from eeio.commands.plots import CHARTS, WIDTHS, chart_files, plot_files, write_plots
from eeio.commands.plots import FORMATS as PLOT_FORMATS
from eeio.comparison.drift import compared_cells
from eeio.comparison.layers import matches, on_one_drive
from eeio.comparison.pareto import choices
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.measure.power_series import power_series, unknown_delays
from eeio.options import Command, argument, option
from eeio.record import store
from eeio.record.run import LEVELS
from eeio.record.store import Campaign
from eeio.report.campaign import contents
from eeio.report.campaign.characterized import SORTS, Report, build, of_levels, sorted_by
from eeio.report.campaign.columns import groups, known_columns
from eeio.report.campaign.end_of_run import summary
from eeio.units.amounts import duty, share
from eeio.units.names import similar
from eeio.units.quantities import MOST_UNCERTAIN
from eeio_power.meters import verifications

_PAGE = "report.html"


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip().lower() for column in text.split(","))
    known = known_columns()
    names = [f"`{one}`" if " " in one else one for one in known]
    for column in columns:
        if column not in known:
            raise LimitError(
                f"no columns {column!r:.40}{similar(column, known)}; there are {', '.join(names)}"
            )
    return columns


def _charts(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(map(str.strip, text.lower().split(","))))
    for name in names:
        if name not in CHARTS:
            raise LimitError(
                f"no chart {name!r:.40}{similar(name, CHARTS)}; there are {', '.join(CHARTS)}"
            )
    return names


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """`eeio report`."""

    campaigns: tuple[str, ...] = argument(
        "NAME|PATH",
        help="campaign name or folder",
        count="+",
    )
    level: tuple[str, ...] = option(
        "--level",
        help="only experiments of this level; repeatable",
        choices=LEVELS,
        repeat=True,
        group="rows and columns",
    )
    sort: str | None = sort_option(SORTS, "rows and columns")
    columns: tuple[str, ...] = option(
        "--columns",
        value="WORD[,WORD]",
        help=f"add columns: {', '.join(groups())}; or show only "
        f"{', '.join(known_columns()[len(groups()) :])}",
        parse=_columns,
        default=(),
        group="rows and columns",
    )
    most_uncertain: float = option(
        "--most-uncertain",
        value="SHARE",
        help=f"do not rank MB/J with a larger uncertainty (default: {MOST_UNCERTAIN:.0%})".replace(
            "%", "%%"
        ),
        parse=share,
        default=MOST_UNCERTAIN,
        group="rows and columns",
        rare=True,
    )
    duty_cycle: float | None = option(
        "--duty-cycle",
        value="SHARE",
        help="add J/GB with idle energy at this duty cycle, e.g. 10%%",
        former=(("--busy", None),),
        parse=duty,
        group="rows and columns",
    )
    plots: Path | None = option(
        "--plots",
        value="DIR",
        help="also write all plots into DIR",
        parse=Path,
        group="plots",
    )
    chart: tuple[str, ...] = option(
        "--chart",
        value="WORD[,WORD]",
        help=f"only these charts, to --plots DIR or -o FILE.svg: {', '.join(CHARTS)}",
        parse=_charts,
        default=(),
        group="plots",
    )
    plot_format: tuple[str, ...] = option(
        "--plot-format",
        help="plot format, repeatable (default: svg)",
        choices=PLOT_FORMATS,
        repeat=True,
        group="plots",
    )
    width: str | None = option(
        "--width",
        help="plot width: one (3.5 in) or two columns (7.16 in) (default: screen)",
        choices=WIDTHS,
        group="plots",
        rare=True,
    )
    where: tuple[str, ...] = where_option("plots")
    format: str = document_format(group="output")
    output: Path | None = output_file(group="output", pictures=PLOT_FORMATS)
    no_pager: bool = pager_switch(group="output")


def report(request: ReportRequest) -> int:
    if request.chart:
        return _draw_charts(request)
    if request.output is not None and request.output.suffix[1:] in PLOT_FORMATS:
        raise RejectedError(
            f"-o {request.output}: no format has the suffix {request.output.suffix}; give "
            f"--chart {'|'.join(CHARTS)} for a picture, or .html, .csv, ... for the tables"
        )
    if request.where and request.plots is None:
        raise RejectedError("--where selects the experiments of --plots DIR")
    rules = Rules(request.most_uncertain, request.duty_cycle)
    built = with_tests(
        build(load_campaigns(request.campaigns), rules, request.columns, power_series),
        rules.most_uncertain,
    )
    if request.level:
        built = of_levels(built, request.level)
    if request.sort is not None:
        built = sorted_by(built, request.sort)
    if request.plots is not None:
        files = plot_files(built, request.plot_format or ("svg",), request.width, request.where)
        write_plots(files, request.plots)
    write_document(request, contents.document(built, lambda: _render_html(built)))
    save_figures(built.campaigns)
    return EXIT_DONE


def _draw_charts(request: ReportRequest) -> int:
    """Writes the charts of --chart, into the folder or the one file."""
    output = request.output
    if request.where:
        raise RejectedError("--where: not with --chart; --level selects its experiments")
    if (output is None) == (request.plots is None):
        raise RejectedError("--chart: give a folder, --plots DIR, or for one chart -o FILE.svg")
    if output is not None and (
        len(request.chart) > 1 or output.suffix[1:] not in PLOT_FORMATS or request.plot_format
    ):
        raise RejectedError(
            f"-o {output}: one chart in one file, .{', .'.join(PLOT_FORMATS)}; several charts need "
            "--plots DIR"
        )
    built = build(load_campaigns(request.campaigns), readings=power_series)
    if request.level:
        built = of_levels(built, request.level)
    formats = request.plot_format or ("svg",) if output is None else (output.suffix[1:],)
    files = chart_files(built, request.chart, formats, request.width)
    if request.plots is not None:
        write_plots(files, request.plots)
    elif output is None:
        raise AssertionError("checked above")
    elif len(files) > 1:
        raise RejectedError(f"-o {output}: {len(files)} pictures are needed: use --plots DIR")
    else:
        write_file(output, *files.values())
        print(output)
    return EXIT_DONE


def complete_report(campaigns: Sequence[Campaign]) -> Report:
    """The report of campaigns as `eeio report` makes it without options."""
    return with_tests(build(campaigns, readings=power_series))


def with_tests(built: Report, most_uncertain: float = MOST_UNCERTAIN) -> Report:
    """With what tests tell: what layers cost, where experiments are one layer apart, and what
    adaptive campaigns decided; and with what the kinds of meters were verified on, and
    which meters are of unknown delay."""
    late = {one.name: unknown_delays(one) for one in built.campaigns}
    built = replace(built, verification=verifications(), unknown_delays=late)
    cells = [(one, compared_cells(one, one.name)) for one in built.campaigns]
    built = replace(built, pareto=choices((cell for _, of in cells for cell in of), most_uncertain))
    changes = [
        pair for one, of_one in cells for pair in matches(of_one, on_one_drive(one.design.disks))
    ]
    is_adaptive = any(one.design.protocol.adaptive is not None for one in built.campaigns)
    if not changes and not is_adaptive:
        return built
    try:
        with analysis():
            from eeio.comparison.layer_costs import layer_costs
            from eeio.report.campaign.answers import answers
    except EeioError as error:
        print(f"no table that needs a test: {error}", file=sys.stderr)
        return built
    decided = tuple(one for campaign in built.campaigns if (one := answers(campaign)) is not None)
    layers = layer_costs(changes, most_uncertain=most_uncertain)
    return replace(built, layers=layers, answers=decided)


def print_summary(folder: Path) -> None:
    """Writes the page into the campaign's folder and prints the summary."""
    built = with_tests(build([store.load(folder)], readings=power_series))
    page: Path | None = folder / _PAGE
    try:
        (folder / _PAGE).write_text(_render_html(built), encoding="utf-8")
    except EeioError as error:
        print(f"eeio: no page: {error}", file=sys.stderr)
        page = None
    print("\n".join(["", *summary(built, page)]))


def _render_html(built: Report) -> str:
    with analysis():
        from eeio.report import page
        from eeio.report.documents import bench
    if bench.is_of_commands(built):
        with analysis():
            return bench.report_page(built)
    return page.render(built, power=power_series)


COMMAND = Command(
    "report",
    ReportRequest,
    report,
    help="create tables, plots, CSV, JSON, Markdown, LaTeX or an HTML page",
    description="Characterizes stored campaigns: bandwidth, power, energy, efficiency.",
)
