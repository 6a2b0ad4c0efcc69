"""Tables for a terminal: plain columns that also survive a pipe and a mail."""

from eeio_limits.text import shown
from eeio_results.report.contents import contents
from eeio_results.report.model import Report
from eeio_results.report.parts import Table


def render(report: Report) -> str:
    """The whole report as text."""
    parts = [f"*** {shown(warning)}" for warning in report.warnings]
    parts += [render_table(table) for table in contents(report)]
    return "\n\n".join(parts) + "\n"


def render_table(table: Table) -> str:
    """One table with its title and note."""
    title = shown(table.title)
    lines = [title, "=" * len(title)]
    if table.rows:
        rows = [tuple(shown(cell.replace("\n", " ")) for cell in row) for row in table.rows]
        widths = [
            max(len(row[column]) for row in (table.header, *rows))
            for column in range(len(table.header))
        ]
        if any(table.header):
            lines.append(_line(table.header, widths, table.numeric))
            lines.append("  ".join("-" * width for width in widths))
        lines += [_line(row, widths, table.numeric) for row in rows]
    lines += [f"  {shown(note)}" for note in table.note.splitlines()]
    return "\n".join(lines)


def _line(cells: tuple[str, ...], widths: list[int], numeric: frozenset[int]) -> str:
    return "  ".join(
        cell.rjust(width) if column in numeric else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
