"""Which rows of a report are shown, and in which order."""

from collections.abc import Sequence
from dataclasses import replace

from eeio_results.metrics import METRICS, named
from eeio_results.report.model import Report
from eeio_results.rows import Row

SORTS = tuple(metric.name.lower() for metric in METRICS if metric.better and metric.in_rows)
"""What rows can be sorted by: the words of `--columns` for the same metrics."""


def of_levels(report: Report, levels: Sequence[str]) -> Report:
    """Only what is of these levels; of no level (the machine's own context) then nothing."""
    return replace(
        report,
        levels=tuple(level for level in report.levels if level in levels),
        rows=tuple(row for row in report.rows if row.level in levels),
        context=(),
    )


def sorted_by(report: Report, name: str) -> Report:
    """Rows by their median of one of SORTS, the best first. Rows without it, and those whose power
    is modelled, are last, in their former order."""
    metric = named(name)

    def key(row: Row) -> tuple[bool, float]:
        found = metric.of(row, row.measured)
        if found is None:
            return True, 0.0
        return False, -found.median if metric.better == "more" else found.median

    return replace(report, rows=tuple(sorted(report.rows, key=key)))
