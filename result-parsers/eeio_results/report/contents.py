"""What stands in a report, in order, the same for every format."""

from eeio_results.report.model import Report
from eeio_results.report.parts import Plot, Table
from eeio_results.report.tables import tables


def contents(report: Report) -> list[Table]:
    """The tables of studies first, then the four levels and the rest."""
    of_studies = [table for chapter in report.chapters for table in chapter.tables]
    return [*of_studies, *tables(report)]


def drawings(report: Report) -> list[Plot]:
    """Those that there is something to draw for; those of studies last. Needs matplotlib."""
    from eeio_results.report import plots

    found = [plot for plot in (plots.bandwidth(report), plots.efficiency(report)) if plot]
    return [*found, *(plot for chapter in report.chapters for plot in chapter.plots)]
