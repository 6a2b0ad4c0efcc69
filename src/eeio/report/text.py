"""Tables for a terminal: plain columns that also survive a pipe and a mail.

Without a width nothing is cut or wrapped. With one every line fits. Values that are the same in
every row appear once above the table, and cells wrap between words. A table that is still wider is
split into parts with numbered rows.
"""

import re
import textwrap
from collections.abc import Sequence

from eeio.report.table_and_plot import Table
from eeio.units.external_text import shown

_GAP = 2
# A narrower terminal than this is taken for one of this width.
_LEAST_WIDTH = 40
_ROW = "#"

# The text after a figure in a cell.
_REMARK = re.compile(r" \([^()]*\)$")

Column = tuple[str, tuple[str, ...], bool]
"""A column's header, its cells, and whether they are set to the right."""


def render_table(table: Table, width: int | None = None) -> str:
    """One table with its title and note, in lines of at most `width` characters (40 at least)."""
    if width is not None:
        width = max(width, _LEAST_WIDTH)
    title = _wrapped(shown(table.title), width)
    lines = [*title, "=" * max(map(len, title))]
    if table.rows:
        columns = []
        for index, header in enumerate(table.header):
            columns.append(
                (
                    shown(header),
                    tuple(shown(row[index].replace("\n", " ")) for row in table.rows),
                    index in table.numeric,
                )
            )
        lines += _set(columns) if width is None else _fitted(columns, width)
    for note in table.note.splitlines():
        lines += _wrapped(f"  {shown(note)}", width, "  ")
    return "\n".join(lines)


def _wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=indent) or [""]


def _fitted(columns: Sequence[Column], width: int) -> list[str]:
    natural = list(map(_natural, columns))
    if _together(natural) <= width:
        return _set(columns)
    lines: list[str] = []
    if len(columns[0][1]) > 1:
        same = [column for column in columns if column[0] and len(set(column[1])) == 1]
        columns = [column for column in columns if column not in same] or columns[:1]
        common = [f"{header}: {cells[0]}" for header, cells, _ in same]
        columns, remarks = _without_remarks(columns)
        common += remarks
        lines = []
        if common:
            lines = _wrapped(f"in every row: {'; '.join(common)}", width, "  ")
    for part in _parts(columns, width):
        if len(lines) and lines[-1]:
            lines.append("")
        lines += _set(part, _widths(part, width))
    return lines


def _without_remarks(columns: Sequence[Column]) -> tuple[list[Column], list[str]]:
    """The columns without a remark in brackets that every figure of one ends with, and those."""
    kept_columns: list[Column] = []
    remarks: dict[str, list[str]] = {}
    for header, cells, right in columns:
        endings = set()
        for c in cells:
            if c != "-":
                endings.add(match[0] if (match := _REMARK.search(c)) else "")
        ending = ""
        if len(endings) == 1:
            ending = endings.pop()
        if ending and right:
            remarks.setdefault(ending.strip(" ()"), []).append(header)
            cells = tuple(cell.removesuffix(ending) for cell in cells)
        kept_columns.append((header, cells, right))
    return kept_columns, [f"{', '.join(headers)}: {remark}" for remark, headers in remarks.items()]


def _parts(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """The columns, in as many tables as it takes; each but a single one has the rows' numbers."""
    if _together([_floor(column, width) for column in columns]) <= width:
        return [list(columns)]
    count = len(columns[0][1])
    number: Column = (_ROW, tuple(map(str, range(1, count + 1))), True)
    parts: list[list[Column]] = [[number]]
    for column in columns:
        # Its natural width if there is room; only the longest is wrapped.
        widths = [min(_natural(one), width // 2) for one in (*parts[-1], column)]
        if _together(widths) > width and len(parts[-1]) > 1:
            parts.append([number])
        parts[-1].append(column)
    return parts


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Of each column: the widest ones give room first, none more than its longest word needs while
    another still can."""
    widths = list(map(_natural, columns))
    for floor in ([_floor(column, width) for column in columns], [1] * len(columns)):
        while _together(widths) > width:
            spare = []
            for index, (wide, least) in enumerate(zip(widths, floor, strict=True)):
                if wide > least:
                    spare.append((wide - least, index))
            if not spare:
                break
            place = max(spare)[1]
            widths[place] -= 1
    return widths


def _natural(column: Column) -> int:
    return max(map(len, (column[0], *column[1])))


def _floor(column: Column, width: int) -> int:
    """A column's minimum width: its longest word; for figures the longest cell, because a number
    and its quartiles are read together. Never more than half of the width."""
    header, cells, right = column
    words = [*header.split(), *(cells if right else (w for cell in cells for w in cell.split()))]
    return min(max(map(len, words), default=0), width // 2)


def _together(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _set(columns: Sequence[Column], widths: Sequence[int] | None = None) -> list[str]:
    widths = widths or list(map(_natural, columns))
    numeric = [column[2] for column in columns]
    lines: list[str] = []
    if any(header for header, _, _ in columns):
        lines += _lines([header for header, _, _ in columns], widths, numeric)
        lines.append((" " * _GAP).join("-" * width for width in widths))
    for row in zip(*(cells for _, cells, _ in columns), strict=True):
        lines += _lines(row, widths, numeric)
    return lines


def _lines(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """A row, in as many lines as its longest cell."""
    wrapped = []
    for cell, width in zip(cells, widths, strict=True):
        wrapped.append([cell] if len(cell) <= width else textwrap.wrap(cell, width))
    lines = []
    for line in range(max(map(len, wrapped))):
        lines.append(
            (" " * _GAP)
            .join(
                text.rjust(width) if right else text.ljust(width)
                for cell, width, right in zip(wrapped, widths, numeric, strict=True)
                for text in (cell[line] if line < len(cell) else "",)
            )
            .rstrip()
        )
    return lines
