"""Where a command writes: `-o FILE`, else standard output. The suffix chooses the format."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eeio import pager, terminal
from eeio.arguments import OptionGroup, add_format
from eeio.commands.campaign_folders import analysis
from eeio.errors import RejectedError
from eeio_results import studies
from eeio_results.report.document import RENDERERS, Document, render_terminal

_FORMATS = {
    ".html": "html", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex",
}  # fmt: skip


_NO_TEXT = (".pdf", ".png", ".svg", ".ps", ".eps", ".jpg", ".xlsx", ".ods", ".docx", ".parquet")


class _Output(argparse.Action):
    """Stores the path; its suffix chooses the format if no other than the default was chosen."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        path = Path(str(values))
        setattr(namespace, self.dest, path)
        if path.is_dir():
            parser.error(f"{option_string} {path}: is a folder; give a file")
        if namespace.format == "table":
            if path.suffix in _NO_TEXT:
                parser.error(
                    f"{option_string} {path}: no format has the suffix {path.suffix}; give "
                    f"{', '.join(_FORMATS)} or .txt"
                )
            namespace.format = _FORMATS.get(path.suffix, "table")


def add_formats(options: OptionGroup, pager_is_rare: bool = True) -> None:
    """--format, -o and --no-pager of a command that prints a document."""
    add_format(options.container, tuple(RENDERERS))
    options.add(
        "-o", "--output", metavar="FILE", action=_Output,
        help="output file, suffix sets the format: .html, ... (default: stdout)",
    )  # fmt: skip
    add = options.rare if pager_is_rare else options.add
    add("--no-pager", action="store_true", help="disable the pager")


def write_document(arguments: argparse.Namespace, document: Document) -> None:
    """Writes an answer in the chosen format."""
    if arguments.format == "table":
        width = terminal.width() if arguments.output is None else None
        write_output(arguments, render_terminal(document, width))
    elif arguments.format == "html":
        with analysis():
            write_output(arguments, RENDERERS["html"](document))
    else:
        write_output(arguments, RENDERERS[arguments.format](document))


def write_answer(arguments: argparse.Namespace, answer: Document | str) -> None:
    """Writes the answer of a study. Studies of users that were written for earlier versions return
    text, in one of `studies.FORMATS`."""
    if isinstance(answer, Document):
        write_document(arguments, answer)
    elif arguments.format in studies.FORMATS:
        write_output(arguments, answer)
    else:
        raise RejectedError(
            f"--format {arguments.format}: this study has {', '.join(studies.FORMATS)} only"
        )


def write_output(arguments: argparse.Namespace, content: str) -> None:
    """Writes `content`; for a file prints only the path. On a terminal a pager
    shows it."""
    if arguments.output is None:
        pager.show(content, wanted=not arguments.no_pager)
        return
    write_file(arguments.output, content)
    print(arguments.output)


def write_file(path: Path, content: str) -> None:
    """A full disk leaves no half a file, and keeps the one that was there."""
    if path.exists() and not path.is_file():  # a pipe, /dev/stdout
        path.write_text(content, encoding="utf-8")
        return
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        # Not through a link that somebody put there.
        with part.open("x", encoding="utf-8") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
