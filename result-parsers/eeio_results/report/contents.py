"""What stands in a report, in order, the same for every format."""

from eeio_results.report.model import Report
from eeio_results.report.parts import Table
from eeio_results.report.tables import tables
from eeio_results.studies.chang2014 import tables as journal


def contents(report: Report) -> list[Table]:
    """A study's own tables first, then the four levels and the rest."""
    return [*journal.tables(report.cells), *tables(report)]
