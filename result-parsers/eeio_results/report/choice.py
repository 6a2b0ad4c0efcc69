"""Which rows of a report are shown, and in which order."""

from collections.abc import Sequence
from dataclasses import replace

from eeio_results.metrics import METRICS, named
from eeio_results.report.model import Report
from eeio_results.rows import Row

SORTS = tuple(metric.name.lower() for metric in METRICS if metric.better and metric.in_rows)
"""Sort keys of rows: the names in `--columns` of the same metrics."""


def of_levels(report: Report, levels: Sequence[str]) -> Report:
    """Only rows of these levels; without the machine's context, which has no level."""
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
