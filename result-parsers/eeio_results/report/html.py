"""The report as one HTML file that needs nothing else: tables and inline SVG."""

from pathlib import Path

import jinja2

from eeio_limits.text import shown_lines
from eeio_results.report import plots
from eeio_results.report.contents import contents
from eeio_results.report.model import Report
from eeio_results.report.tables import ESTIMATE
from eeio_results.studies.chang2014 import figures as journal_figures

_FIGURE_TITLES = {
    "journal-throughput.svg": "Throughput, by variant of ext4 and frequency",
    "journal-creation.svg": "File creation, by variant of ext4 and frequency",
}


def render(report: Report) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = []
    if any(row.bandwidth_values for row in report.rows):
        figures.append(("Bandwidth (MB/s)", plots.bandwidth(report)))
        efficiency = plots.efficiency(report)
        if efficiency is not None:
            figures.append(efficiency)
    figures += [(_FIGURE_TITLES[name], svg) for name, svg in journal_figures.draw(report).items()]
    page = environment.get_template("page.html.j2").render(
        title=", ".join(campaign.name for campaign in report.campaigns),
        campaigns=report.campaigns,
        warnings=report.warnings,
        tables=contents(report),
        figures=figures,
        estimate=ESTIMATE,
    )
    # Whatever came in by a name or a reason: nothing that turns the direction of writing or that
    # UTF-8 cannot hold.
    return shown_lines(page)
