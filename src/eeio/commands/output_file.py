"""Where a command writes: `-o FILE`, else standard output. The suffix chooses the format."""

import argparse
import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any

from eeio import studies
from eeio.commands import pager
from eeio.commands.arguments import OptionGroup, add_format
from eeio.commands.campaign_folders import analysis
from eeio.errors import RejectedError
from eeio.files.trust import open_stream
from eeio.paths import check_output_folder, make_output_folder
from eeio.report.document import RENDERERS, Document, render_terminal
from eeio.units import terminal

_FORMATS = {
    ".html": "html", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex",
}  # fmt: skip

_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Folders of names such as /dev/stdout. What they name is never replaced."""
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
            pictures = getattr(namespace, "pictures", ())
            if path.suffix in _NO_TEXT and path.suffix[1:] not in pictures:
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


def write_file(path: Path, content: str | bytes) -> None:
    """A full disk leaves no half a file, and keeps the one that was there. Raises RejectedError for
    root if another user could replace the folder, and for a block device."""
    data = content.encode() if isinstance(content, str) else content
    check_output_folder(path.parent)
    if _is_stream(path):
        _write_in_place(path, data)
        return
    part = path.with_name(f".{path.name}.part")
    try:
        make_output_folder(path.parent)
        part.unlink(missing_ok=True)
        # Not through a link that somebody put there.
        with part.open("xb") as file:
            file.write(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def check_writable(path: Path) -> None:
    """For a command that measures for long before it calls write_file: raises the RejectedError or
    OSError of that. It opens nothing, so it follows no link to write."""
    check_output_folder(path.parent)
    target = path if _is_stream(path) else path.parent
    if not target.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _is_stream(path: Path) -> bool:
    """Whether it is written in place, and not replaced."""
    return path.exists() and (path.parent in _STREAMS or not path.is_file())


def _write_in_place(path: Path, data: bytes) -> None:
    """To a pipe or character device."""
    file = open_stream(path)
    if file is None and path.is_file():
        # Its position is not that of standard output, which would write over it.
        raise RejectedError(f"{path}: standard output is a file; give its name")
    if file is None:
        raise RejectedError(f"{path}: is neither a file, a pipe nor a character device")
    with BufferedWriter(file) as stream:
        stream.write(data)
