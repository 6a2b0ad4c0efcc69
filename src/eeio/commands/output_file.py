"""Where a command writes: `-o FILE`, else standard output. The suffix chooses the format."""

import argparse
import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path
from typing import Any, Protocol

from eeio import studies
from eeio.commands import pager
from eeio.commands.campaign_folders import analysis
from eeio.errors import RejectedError
from eeio.files.trust import open_stream
from eeio.options import option, switch
from eeio.paths import check_output_folder, make_output_folder
from eeio.report.document import RENDERERS, Document, render_terminal
from eeio.units import terminal

_FORMATS = {
    ".html": "html",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
}

_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Folders of names such as /dev/stdout. The files that they name are never replaced."""
_NO_TEXT = (".pdf", ".png", ".svg", ".ps", ".eps", ".jpg", ".xlsx", ".ods", ".docx", ".parquet")


class DocumentRequest(Protocol):
    """In which format an answer is written, and where; None: to standard output."""

    @property
    def format(self) -> str: ...
    @property
    def output(self) -> Path | None: ...
    @property
    def no_pager(self) -> bool: ...


class _Output(argparse.Action):
    """Stores the path; its suffix chooses the format if no other than the default was chosen.
    `pictures` are the suffixes that need none."""

    def __init__(self, *flags: Any, pictures: Sequence[str], **settings: Any) -> None:
        super().__init__(*flags, **settings)
        self._pictures = pictures

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
            if path.suffix in _NO_TEXT and path.suffix[1:] not in self._pictures:
                parser.error(
                    f"{option_string} {path}: no format has the suffix {path.suffix}; give "
                    f"{', '.join(_FORMATS)} or .txt"
                )
            namespace.format = _FORMATS.get(path.suffix, "table")


def format_option(formats: Sequence[str] = ("table", "json"), group: str | None = None) -> Any:
    """The field `format: str`, of which the first is the default."""
    return option(
        "--format",
        choices=tuple(formats),
        default=formats[0],
        help=f"output format (default: {formats[0]})",
        group=group,
        former=(("--json", "json"),) if "json" in formats else (),
    )


def document_format(group: str | None = None) -> Any:
    """The field `format: str` of a command that prints a document."""
    return format_option(tuple(RENDERERS), group)


def sort_option(words: tuple[str, ...], group: str) -> Any:
    """The field `sort: str | None`; `words` are names of metrics."""
    return option(
        "--sort",
        value="WORD",
        help=f"sort by median, best first: {', '.join(words)}",
        parse=str.lower,
        choices=words,
        group=group,
    )


def output_file(group: str | None = None, pictures: Sequence[str] = ()) -> Any:
    """The field `output: Path | None` of a command that prints a document."""
    return option(
        "-o",
        "--output",
        value="FILE",
        action=partial(_Output, pictures=pictures),
        help="output file, suffix sets the format: .html, ... (default: stdout)",
        group=group,
    )


def pager_switch(group: str | None = None, rare: bool = True) -> Any:
    """The field `no_pager: bool`."""
    return switch("--no-pager", help="disable the pager", group=group, rare=rare)


def write_document(request: DocumentRequest, document: Document) -> None:
    """Writes an answer in the chosen format."""
    if request.format == "table":
        width = None
        if request.output is None:
            width = terminal.width()
        write_output(request, render_terminal(document, width))
    elif request.format == "html":
        with analysis():
            write_output(request, RENDERERS["html"](document))
    else:
        write_output(request, RENDERERS[request.format](document))


def write_answer(request: DocumentRequest, answer: Document | str) -> None:
    """Writes the answer of a study. Studies of users that were written for earlier versions return
    text, in one of `studies.FORMATS`."""
    if isinstance(answer, Document):
        write_document(request, answer)
    elif request.format in studies.FORMATS:
        write_output(request, answer)
    else:
        raise RejectedError(
            f"--format {request.format}: this study has {', '.join(studies.FORMATS)} only"
        )


def write_output(request: DocumentRequest, content: str) -> None:
    """Writes `content`; for a file prints only the path. On a terminal a pager
    shows it."""
    if request.output is None:
        pager.show(content, wanted=not request.no_pager)
        return
    write_file(request.output, content)
    print(request.output)


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
    target = path
    if not _is_stream(path):
        target = path.parent
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
