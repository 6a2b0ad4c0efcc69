"""The command's output, made harmless for a terminal.

Tool output, file names, sensors' names and reasons of servers reach the screen in many lines. They
all leave through here, so that none of them can move the cursor, set a title, or turn the
direction of writing.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

from eeio.units.external_text import shown_lines


class HarmlessStream:
    """A text stream that shows control characters as escapes; line breaks and tabs stay."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        self.raw.write(self._shown(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.raw.writelines(map(self._shown, lines))

    def _shown(self, text: str) -> str:
        """A character that the encoding of the terminal lacks becomes an escape, too."""
        harmless = shown_lines(text)
        if harmless.isascii():
            return harmless
        encoding = self.raw.encoding or "utf-8"
        return harmless.encode(encoding, "backslashreplace").decode(encoding)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def harmless_streams() -> Iterator[None]:
    """Standard output and standard error show all of others' text as text."""
    out, err = HarmlessStream(sys.stdout), HarmlessStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        yield


def raw(stream: TextIO) -> TextIO:
    """The stream itself, for what moves the cursor on purpose: a bar, a table drawn again.

    Who writes others' text there escapes it (`eeio.units.external_text.shown`)."""
    if isinstance(stream, HarmlessStream):
        return stream.raw
    return stream


def width() -> int | None:
    """How many characters fit on a line of standard output; None where that is no terminal: what
    goes into a pipe or a file is neither wrapped nor cut."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None
