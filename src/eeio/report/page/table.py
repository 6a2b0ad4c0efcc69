"""The page's table of all experiments: its columns and every cell of it.

The cells of the columns and the domain that the page opens with are in its HTML; those of the other
columns and domains are in its data, as the same text. The script chooses and sorts, and formats no
number of the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.metrics import METRICS, Metric
from eeio.analysis.observation import Key, known
from eeio.analysis.rows import Row
from eeio.analysis.summary import Quartiles
from eeio.record.run import MARKS
from eeio.report.page.page_data import Line, Page, figures_of, why_no_power
from eeio.units.number_text import page_number

NONE = "–"


@dataclass(frozen=True)
class Cell:
    """A figure, with the small print below it. `kind` is a class of the style."""

    text: str
    small: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Column:
    """`sets` are the sets of columns that contain it; `energy` is whether it is of a domain."""

    key: str
    head: str
    small: str
    cell: Callable[[Row, DomainFigures | None], Cell]
    energy: bool = False
    sets: tuple[str, ...] = ()


ESSENTIAL = "essential"
"""The set of columns that the page opens with."""


def columns() -> list[Column]:
    """All columns behind the experiment's, in their order."""
    n = Column(
        "n",
        "n",
        "valid runs",
        lambda row, _: Cell(str(row.n), f"{row.invalid_runs} invalid" if row.invalid_runs else ""),
        sets=(ESSENTIAL, "energy", "latency"),
    )
    return [
        n,
        *(_column(metric) for metric in METRICS if metric.in_rows),
        Column("unranked", "Why not ranked", "", _why_not_ranked, energy=True, sets=("energy",)),
        Column("seen", "Order observed", "", lambda row, _: _text_cell(row.order_seen)),
        Column("drive", "Drive", "", lambda row, _: _text_cell(known(row.drive))),
    ]


def opening() -> list[Column]:
    return [column for column in columns() if ESSENTIAL in column.sets]


def cells(page: Page, line: Line) -> list[Cell]:
    """Those that the page opens with."""
    figures = figures_of(line.row, page.key)
    return [column.cell(line.row, figures) for column in opening()]


def to_json(page: Page) -> list[dict[str, Any]]:
    """The columns with their cells: a text, or text and small print, or null if there is none; for
    an energy column a list for each domain. Cells in the page's HTML are null here."""
    opens = {column.key for column in opening()}
    return [
        {
            "key": column.key,
            "head": column.head,
            "small": column.small,
            "energy": column.energy,
            "sets": list(column.sets),
            "cells": [
                _cells(page, column, key, skipped=column.key in opens and key == page.key)
                for key in (page.keys or (None,) if column.energy else (page.key,))
            ],
        }
        for column in columns()
    ]


def _cells(
    page: Page, column: Column, key: Key | None, skipped: bool
) -> list[str | list[str] | None] | None:
    if skipped:
        return None
    cells = [column.cell(line.row, figures_of(line.row, key)) for line in page.lines]
    return list(map(_shown, cells))


def _shown(cell: Cell) -> str | list[str] | None:
    """The text of a cell, with what is small below it; None for a number that is missing."""
    if cell.small:
        return [cell.text, cell.small]
    if cell.text == NONE:
        return None
    return cell.text


def reasons(page: Page, line: Line) -> str:
    """Why a line has no figures, where not all have the same reason."""
    reason = why_no_power(line.row, page.key)
    if reason is None or reason == page.common_reason:
        return ""
    return reason


def _why_not_ranked(_: Row, figures: DomainFigures | None) -> Cell:
    return _text_cell(None if figures is None else figures.ranked_reason)


def _text_cell(text: str | None) -> Cell:
    return Cell(text or NONE, kind="words")


def _column(metric: Metric) -> Column:
    def cell(row: Row, figures: DomainFigures | None) -> Cell:
        figure = row.figure(metric, figures)
        if figure is None:
            return Cell(NONE)
        small = []
        if metric.spread:
            small = [_range(figure, metric.unit)]
        kind = ""
        if metric.of_domain and figures is not None:
            mark = MARKS.get(figures.energy_kind, "")
            if metric.key in ("energy_j", "energy_j_per_gb"):
                small.append(_limit(figures))
            small.append(", ".join(_remarks(metric, row, figures, mark)))
            kind = ""
            if mark:
                kind = "estimate"
        text = None
        if metric.is_share:
            text = f"±{page_number(100 * figure.median)} %"
        return Cell(
            text or page_number(figure.median / metric.unit), " ".join(filter(None, small)), kind
        )

    return Column(
        metric.key, metric.name, metric.hint, cell, metric.of_domain, tuple(metric.page.split())
    )


def _range(figures: Quartiles, unit: float) -> str:
    low, high = page_number(figures.q1 / unit), page_number(figures.q3 / unit)
    # One repetition has no range.
    if low == high:
        return ""
    return f"{low}–{high}"


def _limit(figures: DomainFigures) -> str:
    relative = figures["uncertainty_relative"]
    if relative is None:
        return ""
    return f"±{page_number(100 * relative.median)} %"


def _remarks(metric: Metric, row: Row, figures: DomainFigures, mark: str) -> list[str]:
    """Remarks on a figure: for power the number of repetitions that have it, for MB/J whether it is
    ranked and its domain."""
    of_power, of_efficiency = metric.key == "power_w", metric.key == "efficiency_bytes_per_j"
    some = of_power and bool(row.n) and figures.n != row.n and not mark
    remarks = []
    for text, on in (
        (mark, bool(mark)),
        (f"n {figures.n}", some),
        ("doubtful", (of_power or of_efficiency) and bool(figures.doubts)),
        ("without drives", of_efficiency and figures.leaves_drives_out),
        ("not ranked", of_efficiency and figures.ranked_reason is not None and not mark),
    ):
        if on:
            remarks.append(text)
    return remarks
