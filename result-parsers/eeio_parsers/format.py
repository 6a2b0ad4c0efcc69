"""A form of a tool's output: how it is recognized, and who reads it.

A tool's `report.py` has `FORMATS`, and `RULES`: the name of each of its tools with its rules.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eeio_parsers.found import FoundReport

Read = Callable[[str], Iterator[FoundReport]]


@dataclass(frozen=True)
class Format:
    """One of `begins`, `keys`, `fits` and `fits_at_last` recognizes it.

    `begins` matches the beginning of a report in a text. The format whose report is the first in a
    file is that of the file. A file with all `keys` in it is JSON of this format. `fits` is asked,
    with the beginning of a file and its path, for those without a line that tells them;
    `fits_at_last`, with all of the text, if no format is recognized.
    """

    tool: str
    name: str
    read: Read
    begins: re.Pattern[str] | None = None
    keys: tuple[str, ...] = ()
    fits: Callable[[str, Path], bool] | None = None
    fits_at_last: Callable[[str], bool] | None = None
    prepares_others: bool = False
    """Its tool often makes the files for others, whose output is then the one that counts."""
