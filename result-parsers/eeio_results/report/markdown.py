"""Tables as Markdown, for a repository or an issue."""

from eeio_limits.text import markdown as harmless
from eeio_results.report.parts import Table


def render_table(table: Table) -> str:
    """One table with its title and note."""
    lines = [f"## {harmless(table.title)}", ""]
    if table.rows:
        rule = ("---:" if column in table.numeric else "---" for column in range(len(table.header)))
        lines += [_line(table.header), _line(tuple(rule)), *map(_line, table.rows), ""]
    lines += [f"{harmless(note)}  " for note in table.note.splitlines()]
    return "\n".join(lines).rstrip()


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(harmless(cell.replace("\n", " ")) for cell in cells) + " |"
