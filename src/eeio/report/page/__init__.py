"""The report as one self-contained HTML file, offline and without a server.

Tables and a still chart contain all information; the script, from `script/`, adds interaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from eeio.report.campaign.characterized import Report
from eeio.report.campaign.contents import chapter_plots, chapter_tables
from eeio.report.campaign.tables import ESTIMATE, tables
from eeio.report.campaign.terms import TERMS
from eeio.report.page import table as page_table
from eeio.report.page.answer import answer, marks, tiles
from eeio.report.page.delta import compared
from eeio.report.page.document import document, embedded
from eeio.report.page.page_data import Page, page_of, to_json
from eeio.report.page.repetitions import Power, repetitions
from eeio.report.page.still import still
from eeio.report.page.table import Cell, cells, opening, reasons
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter

if TYPE_CHECKING:
    from eeio.comparison.changes import Changes

_LONGEST_TABLE = 300
"""Rows of a table below the first one; longer ones would say everything of it again."""


@dataclass(frozen=True)
class _Row:
    """A line of the page's table, ready for the template."""

    name: str
    more: str
    campaign: str
    why: str
    cells: list[Cell]


@dataclass(frozen=True)
class _Chapter:
    """A study's parts: its tables, and its figures with their titles, drawn."""

    tables: tuple[Table, ...]
    drawn: list[tuple[str, Markup]]


def render(
    report: Report,
    changes: "Sequence[Changes]" = (),
    power: Power | None = None,
    remarks: "Sequence[str]" = (),
) -> str:
    """The page as text. `changes` are those from the first campaign to each other one, `remarks`
    sentences below them; `power` gives the samples of a campaign, for power over time."""
    page = page_of(report)
    several = len(report.campaigns) > 1
    return document(
        "page.html.j2",
        page=page,
        report=report,
        several=several,
        title=", ".join(campaign.name for campaign in report.campaigns),
        marks=marks(page),
        answer=answer(page),
        tiles=tiles(page),
        chart=still(page),
        comparison=compared(changes, remarks),
        terms=TERMS,
        heads=[(column.key, column.head, column.small) for column in opening()],
        rows=[_row(page, index, several) for index in range(len(page.lines))],
        chapters=[
            _chapter(report, chapter)
            for chapter in report.chapters
            if chapter.tables or chapter.plots or chapter.beside
        ],
        tables=[_bounded(table, report) for table in tables(report)],
        estimate=ESTIMATE,
        meters=_meters(page),
        model=embedded("model", to_json(page) | {"columns": page_table.to_json(page)}),
        runs=embedded("runs", repetitions(page, power), always_packed=True),
    )


def _chapter(report: Report, chapter: Chapter) -> _Chapter:
    drawn = [(plot.title, _drawing(plot)) for plot in chapter_plots(report, chapter)]
    return _Chapter(tuple(chapter_tables(report, chapter)), drawn)


def _drawing(plot: Plot) -> Markup:
    """A figure of a study; without a description, a screen reader uses its title."""
    svg = plot.draw()
    if " role=" in svg.partition(">")[0]:
        return Markup(svg)
    named = Markup('<svg role="img" aria-label="{}"').format(plot.title)
    return Markup(svg.replace("<svg", named, 1))


def _row(page: Page, place: int, several: bool) -> _Row:
    line = page.lines[place]
    campaign = ""
    if several:
        campaign = line.row.campaign
    return _Row(line.name, line.more, campaign, reasons(page, line), cells(page, line))


def _bounded(table: Table, report: Report) -> Table:
    """A table that is too long to be said again becomes the command that prints it."""
    if len(table.rows) <= _LONGEST_TABLE:
        return table
    names = " ".join(campaign.name for campaign in report.campaigns)
    text = f"{len(table.rows)} rows, not repeated here: `eeio report {names}` prints them"
    return Table(table.title, (), (), note="\n".join(filter(None, (text, table.note))))


def _meters(page: Page) -> str:
    return ", ".join(f"{key[0]} ({key[1]}, {key[2]})" for key in page.keys) or "none"
