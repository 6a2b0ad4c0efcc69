"""Tables for a paper: LaTeX with the package booktabs."""

from collections.abc import Sequence
from dataclasses import replace

from eeio.report.table_and_plot import Table
from eeio.units.external_text import latex as harmless

HEAD = (
    "% needs \\usepackage[T1]{fontenc}, \\usepackage{textcomp}, \\usepackage{booktabs} and "
    "\\usepackage{graphicx}"
)
# Tables with more columns are small and narrow; those still too wide are shrunk to a line.
_MANY = 8
_LONG_CELL = 34
"""Characters; a text column with a longer cell breaks its lines."""
_LONG_COLUMN = (r"p{4.6cm}", 30)
"""Such a column among others, and how many characters its lines have at least."""
_ONLY_COLUMN = (r"p{0.95\linewidth}", 70)
_LONG_WORD = 24
"""Characters; a longer one (a hash, a path) may break anywhere."""
_LINES = 38
"""Of one table: more do not fit on a page, and a `table` has one page."""
_FLOATS = 12
"""LaTeX delays at most this many tables; then a command sets them."""


def together(tables: Sequence[str]) -> str:
    """Tables one below the other."""
    parts = []
    for first in range(0, len(tables), _FLOATS):
        parts.append("\n\n".join(tables[first : first + _FLOATS]))
    return "\n\n\\clearpage\n\n".join(parts)


def render_table(table: Table, warning: str = "") -> str:
    """One table. Its caption contains its title, its note, the warning, and the values that all
    rows have in common. A long table becomes several."""
    narrow, common = _without_common(table)
    note = " ".join(filter(None, (warning, common, _sentences(table.note))))
    pieces = _pieces(narrow)
    lines = []
    for number, rows in enumerate(pieces, start=1):
        part = ""
        if len(pieces) > 1:
            part = f" (part {number} of {len(pieces)})"
        caption = f"{table.title}{part}. {note if number == 1 else ''}".strip()
        lines.append(_render(replace(narrow, rows=tuple(rows)), caption))
    return "\n\n".join(lines)


def _pieces(table: Table) -> list[list[tuple[str, ...]]]:
    """The rows, as many together as fit on a page."""
    columns = [_kind(table, index)[1] for index in range(len(table.header))]
    pieces: list[list[tuple[str, ...]]] = [[]]
    used = 0
    for row in table.rows:
        pairs = zip(row, columns, strict=True)
        lines = max((-(-len(cell) // most) for cell, most in pairs if most), default=1)
        if pieces[-1] and used + lines > _LINES:
            pieces.append([])
            used = 0
        pieces[-1].append(row)
        used += max(1, lines)
    return pieces


def _is_common(table: Table, place: int) -> bool:
    """Whether a column of text is the same in every row."""
    if not table.header[place] or place in table.numeric:
        return False
    return len({row[place] for row in table.rows}) == 1


def _without_common(table: Table) -> tuple[Table, str]:
    """Without the text columns that are the same in every row, and these as text."""
    same = [index for index in range(1, len(table.header)) if _is_common(table, index)]
    if not same or len(table.rows) < 2:
        return table, ""
    kept = [index for index in range(len(table.header)) if index not in same]
    common = ", ".join(f"{table.header[place]} {table.rows[0][place]}" for place in same)
    return (
        replace(
            table,
            header=tuple(table.header[place] for place in kept),
            rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
            numeric=frozenset(n for n, place in enumerate(kept) if place in table.numeric),
        ),
        f"In every row: {common}.",
    )


def _render(table: Table, caption: str) -> str:
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{harmless(caption)}}}"]
    if table.rows:
        if len(table.header) > _MANY:
            lines += [r"\scriptsize", r"\setlength{\tabcolsep}{2pt}"]
        kinds = "".join(_kind(table, index)[0] for index in range(len(table.header)))
        lines += [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
        lines += [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule"]
        if any(table.header):
            lines += [_line(table.header), r"\midrule"]
        lines += list(map(_line, table.rows))
        lines += [r"\bottomrule", r"\end{tabular}}"]
    return "\n".join([*lines, r"\end{table}"])


def _kind(table: Table, place: int) -> tuple[str, int]:
    """A column's letter, and the characters of its lines; 0 where it has one line."""
    if place in table.numeric:
        return "r", 0
    if not any(len(row[place]) > _LONG_CELL for row in table.rows):
        return "l", 0
    if len(table.header) == 1:
        return _ONLY_COLUMN
    return _LONG_COLUMN


def _line(cells: tuple[str, ...]) -> str:
    return " & ".join(" ".join(map(_word, cell.split())) for cell in cells) + r" \\"


def _word(word: str) -> str:
    """A word of a cell, with places to break where it is long."""
    parts = [word[at : at + _LONG_WORD] for at in range(0, len(word), _LONG_WORD)]
    return r"\allowbreak{}".join(map(harmless, parts))


def _sentences(note: str) -> str:
    return " ".join(f"{line.rstrip('.')}." for line in note.splitlines() if line)
