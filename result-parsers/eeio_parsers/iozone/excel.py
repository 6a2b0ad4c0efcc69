"""IOzone's tables for spreadsheets (-R): one of each test, with a row for each file size and a
column for each record size. A figure of 0 is that of a cell that did not run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from eeio_parsers.found import none_found
from eeio_parsers.iozone.table import COLUMNS, GROUPS, Test

_NAMES = (
    "Writer",
    "Re-writer",
    "Reader",
    "Re-Reader",
    "Random read",
    "Random write",
    "Backward read",
    "Record rewrite",
    "Stride read",
    "Fwrite",
    "Re-Fwrite",
    "Fread",
    "Re-Fread",
)
_TESTS = {
    **dict(zip(_NAMES, COLUMNS, strict=True)),
    "Pwrite": GROUPS["pwrite writers"],
    "Re-Pwrite": Test("re-pwrite", "write", "sequential"),
    "Pread": GROUPS["pread readers"],
    "Re-Pread": Test("re-pread", "read", "sequential"),
}
_TITLE = r'^"(?P<test>[A-Z][a-z]{1,20}[- ]?[A-Za-z]{0,20}) report"[ \t]{0,999}$'
_SIZES = r'^[ \t]{1,99}(?P<sizes>"\d{1,9}"(?:[ \t]{1,99}"\d{1,9}"){0,99})[ \t]{0,999}$'
BEGIN = re.compile(rf"{_TITLE}\n{_SIZES}", re.M)
_ROW = re.compile(r'"(\d{1,12})"((?:[ \t]+\d{1,15})+)[ \t]*')


@dataclass(frozen=True)
class Cell:
    """The rate of a test, in KiB/s, and its sizes in KiB."""

    test: Test
    file_kib: int
    record_kib: int
    rate_kib_per_s: int


@dataclass
class Part:
    """The tables of one run, and the place of the first one."""

    begins_at: int
    tests: list[Test] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    sizes: tuple[tuple[int, ...], ...] = ()
    """Of the records, then of the files: all tests of a run have the same."""

    @property
    def missing(self) -> list[str]:
        """The tests of which IOzone prints a table with that of another one that is here."""
        names = {test.name for test in self.tests}
        pairs = zip(_PAIRED[::2], _PAIRED[1::2], strict=True)
        return [name for pair in pairs if names & set(pair) for name in sorted(set(pair) - names)]


_PAIRED = (
    *("write", "rewrite", "read", "reread", "random read", "random write"),
    *("fwrite", "frewrite", "fread", "freread", "pwrite", "re-pwrite", "pread", "re-pread"),
)


def parts(text: str) -> Iterator[Part]:
    """The tables of each run: the first one behind those of a run is of a test that it has. Raises
    ToolOutputError for a table that is cut off, or of another form."""
    part: Part | None = None
    for title in BEGIN.finditer(text):
        test = _TESTS.get(title["test"])
        if test is None:
            raise none_found("IOzone", f"a test of another name: {title['test']!r:.80}")
        if part is None or test in part.tests:
            if part is not None:
                yield part
            part = Part(title.start())
        _read(text, title, test, part)
    if part is not None:
        yield part


def _read(text: str, title: re.Match[str], test: Test, part: Part) -> None:
    """Adds a table. Raises ToolOutputError if its sizes are not those of the others."""
    records = tuple(int(size) for size in re.findall(r"\d+", title["sizes"]))
    files = []
    for line in text[title.end() + 1 :].splitlines(keepends=True):
        if not line.startswith('"') or not line[1:2].isdecimal():
            break
        row = _ROW.fullmatch(line.rstrip("\n"))
        where = f"{test.name}: {line.strip()!r:.80}"
        # Without its end, the last figure of a line may lack digits.
        if row is None or not line.endswith("\n"):
            raise none_found("IOzone", f"cut off, or of another form: {where}")
        file_kib, rates = int(row[1]), [int(rate) for rate in row[2].split()]
        possible = [record_kib for record_kib in records if record_kib <= file_kib]
        if len(rates) != len(possible):
            raise none_found("IOzone", f"{len(rates)} of {len(possible)} figures in {where}")
        part.cells += (
            Cell(test, file_kib, record_kib, rate)
            for record_kib, rate in zip(possible, rates, strict=True)
            if rate
        )
        files.append(file_kib)
    sizes = (records, tuple(files))
    if part.tests and sizes != part.sizes:
        raise none_found("IOzone", f"the table of {test.name} has other sizes than those above it")
    part.sizes = sizes
    part.tests.append(test)
