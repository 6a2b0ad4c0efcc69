"""Long text on a terminal, a screen at a time, by the rules that git has for its pager."""

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from eeio.files.trust import why_untrusted
from eeio.units.external_text import shown_lines
from eeio.units.terminal import raw

# As git sets it: end at once where all fits on a screen, leave colours and the screen as they are.
_LESS = "FRX"


def show(text: str, wanted: bool = True) -> None:
    """Prints text: through a pager where standard output is a terminal and one is `wanted`.

    The pager is EEIO_PAGER's, else PAGER's, else less; none where that is empty or `cat`, where
    NO_PAGER is set, where root must not run it (it is another user's), and where it cannot be
    started.
    """
    pager = []
    if wanted and sys.stdout.isatty():
        pager = command()
    if not pager or not _paged(pager, text):
        sys.stdout.write(text)


def command() -> list[str]:
    """The pager's command; empty for no pager."""
    if os.environ.get("NO_PAGER"):
        return []
    requested = os.environ.get("EEIO_PAGER", os.environ.get("PAGER", "less"))
    try:
        pager = shlex.split(requested)
    except ValueError:
        return []
    if pager[:1] in ([], ["cat"]):
        return []
    program = shutil.which(pager[0])
    if program is None or why_untrusted(Path(program)) is not None:
        return []
    return pager


def _paged(arguments: list[str], text: str) -> bool:
    """Whether the pager showed it. It may be left open as long as its user reads: no timeout."""
    try:
        pager = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=raw(sys.stdout),
            env={**os.environ, "LESS": os.environ.get("LESS", _LESS)},
        )
    except OSError:
        return False
    # Ctrl-C is the pager's own affair, which gets it as well: its screen must not be left behind.
    with suppress(KeyboardInterrupt):
        pager.communicate(shown_lines(text).encode(errors="backslashreplace"))
    if pager.stdin is not None:
        with suppress(OSError, ValueError):
            pager.stdin.close()
    while pager.returncode is None:
        with suppress(KeyboardInterrupt):
            pager.wait()
    return True
