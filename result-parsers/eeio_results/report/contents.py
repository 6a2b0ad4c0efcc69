"""The contents of a report, in order, the same for every format."""

from collections.abc import Callable

from eeio_results.report import beside
from eeio_results.report.document import Document
from eeio_results.report.model import Report, to_json
from eeio_results.report.parts import Plot, Table
from eeio_results.report.records import records
from eeio_results.report.tables import tables
from eeio_results.studies import Chapter


def document(report: Report, page: Callable[[], str] | None = None) -> Document:
    """The answer of `eeio report`."""
    next_command = report.next_command
    return Document(
        title=f"eeio report: {', '.join(campaign.name for campaign in report.campaigns)}",
        parts=tuple(contents(report)),
        data=lambda: to_json(report),
        records=lambda: records(report),
        warnings=tuple(report.warnings),
        page=page,
        hint=f"next: {next_command}   (changes, with intervals)" if next_command else "",
    )


def contents(report: Report) -> list[Table]:
    """The tables of studies first, then the four levels and the rest, then the papers' figures."""
    of_studies = [table for one in report.chapters for table in one.tables]
    of_papers = [table for one in report.chapters for table in _paper_tables(report, one)]
    return [*of_studies, *tables(report), *of_papers]


def drawings(report: Report) -> list[Plot]:
    """Those that there is something to draw for; those of studies last. Needs matplotlib."""
    from eeio_results.report import plots

    found = [plot for plot in (plots.bandwidth(report), plots.efficiency(report)) if plot]
    return [*found, *(plot for one in report.chapters for plot in chapter_plots(report, one))]


def chapter_tables(report: Report, chapter: Chapter) -> list[Table]:
    """The study's tables, then its paper's figures with the campaigns'."""
    return [*chapter.tables, *_paper_tables(report, chapter)]


def _paper_tables(report: Report, chapter: Chapter) -> list[Table]:
    return beside.tables(chapter, beside.stamped(chapter, report.campaigns))


def chapter_plots(report: Report, chapter: Chapter) -> list[Plot]:
    """The study's plots, then its paper's figures with the campaigns'."""
    return [*chapter.plots, *beside.plots(chapter, beside.stamped(chapter, report.campaigns))]
