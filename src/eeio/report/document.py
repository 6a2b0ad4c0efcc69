"""The result of an analysing command, and its renderers: one for each format."""

import csv as csv_files
import io
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eeio.errors import EeioError
from eeio.report import latex, text
from eeio.report.table_and_plot import Table
from eeio.units import external_text as harmless
from eeio.units.external_text import csv_cell

if TYPE_CHECKING:
    from eeio.report.page.panels import Panel


@dataclass(frozen=True)
class Document:
    """An answer, the same in every format. `answer` are the lines that say it, which come first;
    then come the `warnings`. `parts` are tables, sentences, and the lines of a paragraph in the
    order in which they are read. `data` is the
    body of the JSON; `records` are the lines of the CSV, with values in SI units at full precision.
    `page` makes a separate HTML page; without it the page has the tables."""

    title: str
    parts: tuple[Table | str | tuple[str, ...], ...]
    data: Callable[[], Mapping[str, Any]]
    records: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    warnings: tuple[str, ...] = ()
    page: Callable[[], str] | None = None
    hint: str = ""
    """The next step; for readers of the terminal and of Markdown."""
    answer: tuple[str, ...] = ()
    charts: "Callable[[], Sequence[Panel]]" = tuple
    """Of the HTML page, below its answer."""


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of a dataclass or mapping as one line of a CSV file: `interval_low` for a field
    of a field. Lists of numbers are joined by spaces; lists of records are left out."""
    fields = value
    if is_dataclass(value) and not isinstance(value, type):
        fields = asdict(value)
    found: dict[str, Any] = {}
    for name, field in fields.items():
        if isinstance(field, Mapping):
            found |= flat(field, f"{prefix}{name}_")
        elif isinstance(field, list | tuple):
            if not any(isinstance(item, Mapping) for item in field):
                found[f"{prefix}{name}"] = " ".join(map(str, field))
        else:
            found[f"{prefix}{name}"] = field
    return found


def render_terminal(document: Document, width: int | None = None) -> str:
    """In lines of at most `width` characters if one is given."""

    def lines(part: str | tuple[str, ...]) -> str:
        shown = list(map(harmless.shown, _lines(part)))
        return "\n".join(shown if width is None else (textwrap.fill(line, width) for line in shown))

    parts = []
    if document.answer:
        parts = [lines(document.answer)]
    if document.warnings:
        parts.append(lines(tuple(f"*** {warning}" for warning in document.warnings)))
    parts += [
        text.render_table(part, width) if isinstance(part, Table) else lines(part)
        for part in document.parts
    ]
    return "\n\n".join([*parts, *([lines(document.hint)] if document.hint else [])]) + "\n"


def _lines(part: str | tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a paragraph: text of others that contains a line break begins no new one."""
    if isinstance(part, str):
        return (part,)
    return part


def render_json(document: Document) -> str:
    return json.dumps(document.data(), indent=1, allow_nan=False) + "\n"


def render_csv(document: Document) -> str:
    """One line a record; a value that is missing is empty. Raises EeioError if there is none."""
    records = document.records()
    if not records:
        raise EeioError(f"{document.title}: no rows for a CSV file; use --format json")
    names = list(dict.fromkeys(name for record in records for name in record))
    if document.warnings and "energy_kind" not in names:
        # A line is read without the others: fictitious or doubtful power has to be marked in it.
        names.append("warnings")
        warned = "; ".join(document.warnings)
        records = [{**record, "warnings": warned} for record in records]
    out = io.StringIO()
    writer = csv_files.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _cell(value) for name, value in record.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, str):
        return csv_cell(value)
    return value


def render_markdown(document: Document) -> str:
    """For a repository or an issue: GitHub-flavoured Markdown."""
    parts = [f"# {harmless.markdown(document.title)}"]
    parts += map(harmless.markdown, document.answer)
    for warning in document.warnings:
        parts.append(f"> **{harmless.markdown(warning)}**")
    for part in document.parts:
        parts.append(
            _markdown_table(part)
            if isinstance(part, Table)
            else "\n".join(map(harmless.markdown, _lines(part)))
        )
    if document.hint:
        parts.append(harmless.markdown(document.hint))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    """One table with its title and note."""
    lines = [f"## {harmless.markdown(table.title)}", ""]
    if table.rows:
        rule = ("---:" if column in table.numeric else "---" for column in range(len(table.header)))
        lines += [
            _markdown_line(table.header),
            _markdown_line(tuple(rule)),
            *map(_markdown_line, table.rows),
            "",
        ]
    for note in table.note.splitlines():
        lines.append(f"{harmless.markdown(note)}  ")
    return "\n".join(lines).rstrip()


def _markdown_line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(harmless.markdown(cell.replace("\n", " ")) for cell in cells) + " |"


def render_latex(document: Document) -> str:
    """For a paper, in a file to \\input. Warnings are part of each table's caption."""
    warned = " ".join(document.warnings)
    parts = [latex.HEAD, *(f"% {harmless.latex(warning)}" for warning in document.warnings)]
    parts += map(harmless.latex, document.answer)
    tables: list[str] = []
    for part in document.parts:
        if isinstance(part, Table):
            tables.append(latex.render_table(part, warned))
        else:
            if tables:
                parts.append(latex.together(tables))
            tables = []
            parts.append("\n".join(map(harmless.latex, _lines(part))))
    return "\n\n".join([*parts, *([latex.together(tables)] if tables else [])]) + "\n"


def render_html(document: Document) -> str:
    """A page that needs no network. Needs Jinja2."""
    if document.page is not None:
        return document.page()
    from eeio.report.page.document import document as page

    return page(
        "document.html.j2",
        title=document.title,
        document=document,
        charts=document.charts(),
    )


RENDERERS: Mapping[str, Callable[[Document], str]] = MappingProxyType(
    {
        "table": render_terminal,
        "json": render_json,
        "csv": render_csv,
        "markdown": render_markdown,
        "latex": render_latex,
        "html": render_html,
    }
)
"""The formats of every analysing command, the default first."""
