"""Tables for a paper: LaTeX with the package booktabs."""

from eeio_limits.text import latex as harmless
from eeio_results.report.contents import contents
from eeio_results.report.model import Report
from eeio_results.report.parts import Table

HEAD = "% needs \\usepackage{booktabs}, \\usepackage{textcomp}, and an engine that reads UTF-8"
# More columns than this are set small and narrow, so that they may fit a page on its side.
_MANY = 8


def render(report: Report) -> str:
    """All tables of the report, each a `table` with caption, in a file to \\input."""
    parts = [HEAD]
    parts += [f"% {_comment(warning)}" for warning in report.warnings]
    warned = " ".join(report.warnings)
    parts += [render_table(table, warned) for table in contents(report)]
    return "\n\n".join(parts) + "\n"


def render_table(table: Table, warning: str = "") -> str:
    """One table; its title, its note and what must be said before any number are the caption."""
    said = " ".join(filter(None, (f"{table.title}.", warning, _sentences(table.note))))
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{harmless(said)}}}"]
    if table.rows:
        if len(table.header) > _MANY:
            lines += [r"\scriptsize", r"\setlength{\tabcolsep}{2pt}"]
        kinds = "".join(
            "r" if place in table.numeric else "l" for place in range(len(table.header))
        )
        lines += [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule"]
        if any(table.header):
            lines += [_line(table.header), r"\midrule"]
        lines += [_line(row) for row in table.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, r"\end{table}"])


def _line(cells: tuple[str, ...]) -> str:
    return " & ".join(harmless(cell.replace("\n", " ")) for cell in cells) + r" \\"


def _sentences(note: str) -> str:
    return " ".join(f"{line.rstrip('.')}." for line in note.splitlines() if line)


def _comment(text: str) -> str:
    # shown within harmless: no line end of others ends the comment.
    return harmless(text)
