"""The report as one HTML file that needs nothing else: tables and inline SVG."""

from pathlib import Path

import jinja2

from eeio_limits.text import shown_lines
from eeio_results.report.contents import contents, drawings
from eeio_results.report.model import Report
from eeio_results.report.tables import ESTIMATE


def render(report: Report) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html.j2").render(
        title=", ".join(campaign.name for campaign in report.campaigns),
        campaigns=report.campaigns,
        warnings=report.warnings,
        tables=contents(report),
        figures=[(plot.title, plot.draw()) for plot in drawings(report)],
        estimate=ESTIMATE,
    )
    # Whatever came in by a name or a reason: nothing that turns the direction of writing or that
    # UTF-8 cannot hold.
    return shown_lines(page)
