"""Which rows of a report are shown, and in which order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from eeio_results.characterization import Row
from eeio_results.domains import DomainFigures, Quartiles
from eeio_results.report.model import Report

Figure = Callable[[Row, DomainFigures | None], Quartiles | None]


def _of_domain(name: str) -> Figure:
    return lambda row, figures: None if figures is None else getattr(figures, name)


_MOST_FIRST: Mapping[str, Figure] = MappingProxyType(
    {
        "mb/s": lambda row, _: row.bandwidth_bytes_per_s,
        "mb/j": _of_domain("efficiency_bytes_per_j"),
        "iops": lambda row, _: row.work.iops,
        "iops/w": _of_domain("iops_per_w"),
    }
)
_LEAST_FIRST: Mapping[str, Figure] = MappingProxyType(
    {
        "w": _of_domain("power_w"),
        "j": _of_domain("energy_j"),
        "j/gb": _of_domain("energy_j_per_gb"),
        "limit": _of_domain("uncertainty_relative"),
        "s": lambda row, _: row.work.duration_s,
        "p99": lambda row, _: row.work.latency_s.get("p99"),
    }
)
_FIGURES: Mapping[str, Figure] = MappingProxyType({**_MOST_FIRST, **_LEAST_FIRST})
SORTS = tuple(_FIGURES)
"""What rows can be sorted by: the words of `--columns` for the same figures."""


def of_levels(report: Report, levels: Sequence[str]) -> Report:
    """Only what is of these levels; of no level (the machine's own context) then nothing."""
    return replace(
        report,
        levels=tuple(level for level in report.levels if level in levels),
        rows=tuple(row for row in report.rows if row.level in levels),
        context=(),
    )


def sorted_by(report: Report, figure: str) -> Report:
    """Rows by their median of one of SORTS, the best first: the most of what is wanted, the least
    of what is spent. Rows without it, and those whose power is modelled, stand last as they were.
    """

    def key(row: Row) -> tuple[bool, float]:
        found = _FIGURES[figure](row, row.measured)
        if found is None:
            return True, 0.0
        return False, -found.median if figure in _MOST_FIRST else found.median

    return replace(report, rows=tuple(sorted(report.rows, key=key)))
