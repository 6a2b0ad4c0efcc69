"""The report as Markdown, for a repository or an issue."""

from eeio_limits.text import markdown as harmless
from eeio_results.report.contents import contents
from eeio_results.report.model import Report
from eeio_results.report.parts import Table


def render(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown."""
    title = ", ".join(campaign.name for campaign in report.campaigns)
    parts = [f"# eeio report: {harmless(title)}"]
    parts += [f"> **{harmless(warning)}**" for warning in report.warnings]
    parts += [render_table(table) for table in contents(report)]
    if (command := report.next_command) is not None:
        parts.append(f"Next: {harmless(command)} shows what changed, with intervals.")
    return "\n\n".join(parts) + "\n"


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
