"""The table of all experiments as it stands in the page before its script runs, or without it.

`script/cells.mjs` writes the same cells again for another domain, or with further columns: a test
in a browser holds the two together.
"""

from dataclasses import dataclass

from eeio_results.domains import Quartiles
from eeio_results.record import MARKS
from eeio_results.report.page.model import Line, Page, figures_of, why_no_power
from eeio_results.units import MB

NONE = "–"


@dataclass(frozen=True)
class Cell:
    """A figure, with what stands below it in small print. `kind` is a class of the style."""

    text: str
    small: str = ""
    kind: str = ""


HEADS = (
    ("n", "valid runs"),
    ("MB/s", "median, quartiles"),
    ("W", "power"),
    ("J/GB", "less is cheaper"),
    ("MB/J", "more is better"),
    ("IOPS/W", "median"),
    ("p99", "latency, ms"),
)
"""What stands in the head of each column after the experiment's, and what stands below it."""


def number(value: float) -> str:
    """Three significant digits, more before the point, no exponent: `0.0123`, `1.20`, `12300`.

    Of the five digits that the script gets, so that both round alike.
    """
    value = float(f"{value:.5g}")
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    size = abs(rounded)
    if size >= 100:
        return f"{value:.0f}"
    places = 2
    while size < 1 and places < 9:
        size *= 10
        places += 1
    if size >= 10:
        places -= 1
    return f"{rounded:.{places}f}"


def cells(page: Page, line: Line) -> list[Cell]:
    """Those of the columns HEADS, in the power domain that the page opens with."""
    row = line.row
    invalid = f"{row.invalid_runs} invalid" if row.invalid_runs else ""
    latency = row.work.latency_s.get("p99")
    figures = figures_of(row, page.key)
    if figures is None:
        energy = [Cell(NONE)] * 4
    else:
        word = MARKS.get(figures.energy_kind, "")
        kind = "estimate" if word else ""
        relative = figures.uncertainty_relative
        limit = "" if relative is None else f"±{number(100 * relative.median)} %"
        marks = [
            mark
            for mark, on in (
                (word, bool(word)),
                ("doubtful", bool(figures.doubts)),
                ("without drives", figures.leaves_drives_out),
                ("not ranked", figures.ranked_reason is not None and not word),
            )
            if on and figures.efficiency_bytes_per_j is not None
        ]
        some = "" if figures.n == row.n or not row.n else f"n {figures.n}"
        of_power = ", ".join(filter(None, (word or some, "doubtful" if figures.doubts else "")))
        energy = [
            _spread(figures.power_w, 1.0, kind, of_power),
            Cell(
                _middle(figures.energy_j_per_gb),
                " ".join(filter(None, (limit, word))) if figures.energy_j_per_gb else "",
                kind,
            ),
            _spread(figures.efficiency_bytes_per_j, MB, kind, ", ".join(marks)),
            Cell(_middle(figures.iops_per_w), word if figures.iops_per_w else "", kind),
        ]
    return [
        Cell(str(row.n), invalid),
        _spread(row.bandwidth_bytes_per_s, MB),
        *energy,
        Cell(NONE if latency is None else number(latency.median * 1e3)),
    ]


def reasons(page: Page, line: Line) -> str:
    """Why a line has no figures, where not all have the same reason."""
    why = why_no_power(line.row, page.key)
    return "" if why is None or why == page.common_reason else why


def _middle(figures: Quartiles | None) -> str:
    return NONE if figures is None else number(figures.median)


def _spread(figures: Quartiles | None, unit: float = 1.0, kind: str = "", more: str = "") -> Cell:
    if figures is None:
        return Cell(NONE, kind=kind)
    low, high = number(figures.q1 / unit), number(figures.q3 / unit)
    # One repetition has no range.
    between = "" if low == high else f"{low}–{high}"
    return Cell(number(figures.median / unit), f"{between} {more}".strip(), kind)
