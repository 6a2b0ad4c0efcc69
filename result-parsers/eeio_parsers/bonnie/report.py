"""Bonnie++'s CSV and text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from eeio_parsers.bonnie.csv_line import BEGIN, FILE_TESTS, TESTS, lines
from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    MIB,
    FoundPhase,
    FoundReport,
    columns,
    count,
    figure,
    none_found,
    number,
    parts,
    size,
)
from eeio_parsers.rules import Rules

_OPERATIONS = {
    "character write": "write",
    "write": "write",
    "rewrite": "mixed",
    "character read": "read",
    "read": "read",
    "seeks": "mixed",
}
_OF_CHUNKS = ("write", "rewrite", "read")


def read_csv(text: str) -> Iterator[FoundReport]:
    """Lines of CSV, one report each. `+++++` is a test that was too short."""
    tables = [match.start() for match in TEXT.finditer(text)]
    last = 0
    for line in lines(text):
        # The table of a run is above its line.
        begin = next((start for start in tables if last <= start < line.start), line.start)
        last = line.end
        rates = {name: figures.rate for name, figures in line.tests.items()}
        of_line = _phases(rates, line.file_size, line.chunk_size, count(line.processes))
        phases = tuple(_with_files(phase, line.files) for phase in of_line)
        if not phases:
            raise none_found("Bonnie++", "no test has a result")
        yield FoundReport(phases, line.version, line.host or None, begins_at=begin)


def _with_files(phase: FoundPhase, files: str) -> FoundPhase:
    """A test of files, with their number."""
    if phase.name not in FILE_TESTS or not files:
        return phase
    return replace(phase, options={**phase.options, "files": files})


def _phases(
    rates: Mapping[str, str], file_size: str, chunk: str | None, jobs: int | None
) -> Iterator[FoundPhase]:
    moved = int(file_size) * MIB if file_size.isdigit() else size(file_size)
    for name, text in rates.items():
        value = number(text)
        if not value:
            continue
        phase = FoundPhase(
            name=name,
            operation=_OPERATIONS.get(name, "metadata"),
            jobs=jobs,
            options={"file size": file_size, **({} if chunk is None else {"chunk size": chunk})},
        )
        if name in FILE_TESTS:
            yield replace(phase, access_pattern="none", iops=value)
        elif name == "seeks":
            yield replace(phase, access_pattern="random", iops=value)
        else:
            yield replace(
                phase,
                access_pattern="sequential",
                request_bytes=size(chunk) if chunk and name in _OF_CHUNKS else None,
                bandwidth_bytes_per_s=value * KIB,
                bytes=moved,
            )


TEXT = re.compile(
    # Notes may lack the version, and the machine in front of the sizes.
    r"^(?:Version\s{1,99}(?P<version>\S{1,300}))?"
    r"[ \t]{1,99}-+Sequential Output-+",
    re.M,
)

_ROW = re.compile(
    r"(?P<line>(?P<host>\S+?)?[ \t:]+(?P<size>\d{1,20}[KMGT]?)(?::(?P<chunk>\d{1,20}\w{0,80}))?"
    r"[ \t]{1,99}(?P<figures>[^\n]*))(?:\n|\Z)"
)
_DEFAULT_CHUNK = "8k"
"""Of Bonnie++, which prints another one."""
_OF_BONNIE = "-Per Char-"
"""In the heading of Bonnie, the older program, which does not state the size of its requests."""


def read_text(text: str) -> Iterator[FoundReport]:
    """The table on a terminal (1.03 to 2.00): K/sec, with M for MiB from 1.96 on. Its line of CSV,
    if the file has it, has more digits."""
    if len(BEGIN.findall(text)) == len(TEXT.findall(text)):
        yield from read_csv(text)
        return
    for part, begin in parts(text, TEXT):
        version = TEXT.match(part)
        reported = None
        if version:
            reported = version["version"]
        chunk: str | None = _DEFAULT_CHUNK
        if _OF_BONNIE in part:
            chunk = None
        header, rows = _rows(part)
        for row in rows:
            rates = _rates(header, row)
            phases = tuple(_phases(rates, row["size"], row["chunk"] or chunk, None))
            if not phases:
                raise none_found("Bonnie++", "no test has a result")
            begins_at = begin
            if row is not rows[0]:
                begins_at = begin + row.start("line")
            yield FoundReport(phases, reported, row["host"] or None, begins_at=begins_at)


def _rows(part: str) -> tuple[str, list[re.Match[str]]]:
    """The header of a table, and the rows below it: who collects results may put several there."""
    header = re.search(r"^(?:[ \t]*Size|Machine|Name:Size)[^\n]*\n", part, re.M)
    rows: list[re.Match[str]] = []
    at = 0
    if header is not None:
        at = header.end()
    while header is not None and (row := _ROW.match(part, at)) is not None:
        rows.append(row)
        at = row.end()
    if header is None or not rows:
        raise none_found("Bonnie++", "its table has no row")
    return header[0], rows


def _rates(header: str, row: re.Match[str]) -> dict[str, str]:
    """Test -> its rate, by the columns of a header and a row below it."""
    ends = [m.end() for m in re.finditer(r"/sec|%CP", header)]
    cells = list(re.finditer(r"\S{1,300}", row["figures"]))
    if len(cells) > len(ends) or len(ends) > 2 * len(TESTS):
        raise none_found("Bonnie++", f"its table has another form: {row['line'][:120]!r}")
    indent = row.start("figures") - row.start("line")
    below = list(columns(ends, [indent + cell.end() for cell in cells], most_apart=4))
    if any(column ^ 1 not in below for column in below if column ^ 1 < len(ends)):
        raise none_found("Bonnie++", f"a rate without its %CP: {row['line'].strip()[-120:]!r}")
    # A rate is in each second column.
    rates = {}
    for column, cell in zip(below, cells, strict=True):
        if column % 2 == 0:
            rates[TESTS[column // 2]] = _rate(cell[0])
    return rates


def _rate(cell: str) -> str:
    match = re.fullmatch(r"([\d.]{1,30})([kmg])", cell, re.I)
    if match is None:
        return cell
    return str(figure(match[1]) * {"k": 1, "m": 1024, "g": 1024**2}[match[2].lower()])


def _flushes(options: Mapping[str, str]) -> bool:
    """Always."""
    return True


RULES = {"bonnie": Rules(flushes=_flushes)}
FORMATS = (
    Format("bonnie", "csv", read_csv, begins=BEGIN),
    Format("bonnie", "text", read_text, begins=TEXT),
)
