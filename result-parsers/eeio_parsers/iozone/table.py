"""IOzone's tables and throughput tests: which test a figure is of.

A row has a column for each test. Those of tests that did not run are blank, so where a figure ends
identifies its column.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eeio_parsers.found import columns, none_found


@dataclass(frozen=True)
class Test:
    """A test of IOzone. `width` is that of its blank column."""

    name: str
    operation: str
    spatiality: str
    width: int = 9

    @property
    def is_buffered(self) -> bool:
        """Whether it works through the C library's streams (fwrite, fread), which -I does not
        change."""
        return self.name in ("fwrite", "frewrite", "fread", "freread")


COLUMNS = (
    Test("write", "write", "sequential"),
    Test("rewrite", "write", "sequential"),
    Test("read", "read", "sequential"),
    Test("reread", "read", "sequential"),
    Test("random read", "read", "random"),
    Test("random write", "write", "random"),
    Test("backward read", "read", "strided"),
    Test("record rewrite", "write", "sequential", 10),
    Test("strided read", "read", "strided", 10),
    Test("fwrite", "write", "sequential"),
    Test("frewrite", "write", "sequential"),
    Test("fread", "read", "sequential"),
    Test("freread", "read", "sequential"),
)
GROUPS = {
    "initial writers": COLUMNS[0],
    "rewriters": COLUMNS[1],
    "readers": COLUMNS[2],
    "re-readers": COLUMNS[3],
    "random readers": COLUMNS[4],
    "random writers": COLUMNS[5],
    "reverse readers": COLUMNS[6],
    "stride readers": COLUMNS[8],
    "fwriters": COLUMNS[9],
    "re-fwriters": COLUMNS[10],
    "freaders": COLUMNS[11],
    "re-freaders": COLUMNS[12],
    "mixed workload": Test("mixed workload", "mixed", "mixed"),
    "pwrite writers": Test("pwrite", "write", "sequential"),
    "pread readers": Test("pread", "read", "sequential"),
}
"""How a throughput test names its processes."""
_WORDS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "read",
    "write",
    "read",
    "rewrite",
    "read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
)
"""The lower line of a table's header, behind the sizes."""
_WIDER = {119: 0, 132: 1}
"""Where the header ends, behind `reclen` -> how much wider a figure is than a blank: IOzone 3.489
(Debian 12), and 3.507 (Debian 13)."""
_PAIRS = ((0, 1), (2, 3), (4, 5), (9, 10), (11, 12))
"""Columns of one test: IOzone prints both, or 0 for one that did not run."""
_HEADER = re.compile(r"^[ \t]{1,99}[kK]B[ \t]{1,99}reclen[ \t]{1,99}(write\b[^\n]*)$", re.M)
_ROW = re.compile(r"^[ \t]*(\d{1,20})[ \t]+(\d{1,20})((?:[ \t]+\d{1,20})+)[ \t]*$")


@dataclass(frozen=True)
class Row:
    """Sizes in KiB. `cells` are the tests with their rates in KiB/s, and where those end in the
    text."""

    file_kib: int
    record_kib: int
    cells: tuple[tuple[Test, int, int], ...]


def header(text: str) -> re.Match[str] | None:
    """The header of the first table."""
    return _HEADER.search(text)


def is_known(head: re.Match[str]) -> bool:
    """Whether the exact columns of this version are known."""
    return _names_end(head)[-1] in _WIDER


def rows(text: str, head: re.Match[str]) -> Iterator[Row]:
    """Those below a header, to the first line that is none. Raises ToolOutputError for a header of
    another form, and for a figure that is below no column."""
    words = head[1].split()
    if tuple(words) != _WORDS[: len(words)]:
        raise none_found("IOzone", f"another header of its table: {head[0].strip()!r:.80}")
    start = head.end() + 1
    for line in text[head.end() + 1 :].splitlines(keepends=True):
        row = _ROW.match(line)
        if row is not None:
            yield _row(row, head, start)
        elif line.strip():
            return
        start += len(line)


def _row(row: re.Match[str], head: re.Match[str], start: int) -> Row:
    file_kib, record_kib = int(row[1]), int(row[2])
    if record_kib > file_kib:
        raise none_found("IOzone", f"a record larger than its file: {row[0].strip()!r:.80}")
    figures = list(re.finditer(r"\d+", row[3]))
    ends = [figure.end() for figure in figures]
    numbers = _columns(head, ends)
    if numbers is None:
        raise none_found("IOzone", f"a figure is in no column: {row[0].strip()!r:.80}")
    for first, second in _PAIRS:
        if (first in numbers) != (second in numbers):
            names = f"{COLUMNS[first].name} and {COLUMNS[second].name}"
            raise none_found("IOzone", f"{names} are of one test: {row[0].strip()!r:.80}")
    cells = tuple(
        (COLUMNS[number], int(figure[0]), start + row.start(3) + figure.end())
        for number, figure in zip(numbers, figures, strict=True)
    )
    return Row(file_kib, record_kib, cells)


def _names_end(head: re.Match[str]) -> list[int]:
    """Where the names of the tests end, behind `reclen`."""
    reclen_end = head[0].index("reclen") + len("reclen")
    return [word.end() - reclen_end for word in re.finditer(r"\S+", head[0])][2:]


def _columns(head: re.Match[str], ends: Sequence[int]) -> list[int] | None:
    """The column of each figure, by where it ends behind `reclen`; None if one is in none."""
    names_end = _names_end(head)
    wider = _WIDER.get(names_end[-1])
    if wider is None:
        # Of another version: a figure ends nearly where the name of its column does.
        try:
            return list(columns(names_end, ends, most_apart=2))
        except ValueError:
            return None
    left, numbers, position = list(ends), [], 0
    for number, test in enumerate(COLUMNS):
        if left and left[0] == position + test.width + wider:
            position = left.pop(0)
            numbers.append(number)
        else:
            position += test.width
    if left:
        return None
    return numbers
