"""Bonnie++'s CSV and text."""

import re
from collections.abc import Iterator, Mapping

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

CSV = re.compile(
    r"^(?:1\.9\d\w?|2\.\d{1,20}\w?),(?:1\.9\d\w?|2\.\d{1,20}\w?),[^,\n]*,\d{1,20},", re.M
)
_BONNIE_1 = ("putc", None, "put_block", None, "rewrite", None, "getc", None, "get_block", None,
             "seeks", None)  # fmt: skip
_FILES_1 = ("seq_create", None, "seq_stat", None, "seq_del", None, "ran_create", None, "ran_stat",
            None, "ran_del", None)  # fmt: skip
_NAMES = {
    "putc": ("write by characters", "write"), "put_block": ("write", "write"),
    "rewrite": ("rewrite", "mixed"), "getc": ("read by characters", "read"),
    "get_block": ("read", "read"), "seeks": ("seeks", "mixed"),
    "seq_create": ("sequential create", "metadata"), "seq_stat": ("sequential stat", "metadata"),
    "seq_del": ("sequential delete", "metadata"), "ran_create": ("random create", "metadata"),
    "ran_stat": ("random stat", "metadata"), "ran_del": ("random delete", "metadata"),
}  # fmt: skip


def read_csv(text: str) -> Iterator[FoundReport]:
    """Lines of 1.96 and later, one report each. `+++++` is a test that was too short."""
    lines = list(CSV.finditer(text))
    tables = [match.start() for match in TEXT.finditer(text)]
    # The table of a run is above its line.
    spans = zip([0, *(line.end() for line in lines)], lines, strict=False)
    begins = [
        next((place for place in tables if start <= place < line.start()), line.start())
        for start, line in spans
    ]
    ends = [text.find("\n", line.start()) for line in lines]
    for line, begin, end in zip(lines, begins, ends, strict=True):
        cells = text[line.start() : end if end >= 0 else None].strip().split(",")
        # From format 1.98 on seeks and their processes stand after the chunk size.
        first = {48: 7, 50: 9}.get(len(cells))
        if first is None:
            raise none_found("Bonnie++", f"a line of {len(cells)} fields, and not 48 or 50")
        files = first + 12
        fields = dict(zip(_BONNIE_1, cells[first:], strict=False))
        # Five settings of the files stand before their rates.
        fields |= dict(zip(_FILES_1, cells[files + 5 :], strict=False))
        phases = tuple(_phases(fields, cells[5], cells[6], count(cells[3])))
        if not phases:
            raise none_found("Bonnie++", "no test has a result")
        yield FoundReport(phases, cells[1], cells[2] or None, begins_at=begin)


def _phases(
    fields: Mapping[str | None, str], file_size: str, chunk: str, jobs: int | None
) -> Iterator[FoundPhase]:
    for field, (name, operation) in _NAMES.items():
        value = number(fields.get(field))
        if not value:
            continue
        rate = field not in ("seeks", *filter(None, _FILES_1))
        moved = size(file_size + "B" if file_size.isdigit() else file_size) if rate else None
        moved = None if moved is None else moved * (MIB if file_size.isdigit() else 1)
        yield FoundPhase(
            name=name,
            operation=operation,
            access_pattern="none" if operation == "metadata" else "random" if field == "seeks"
            else "sequential",
            request_bytes=(size(chunk) if "block" in str(field) or field == "rewrite" else None),
            jobs=jobs,
            bandwidth_bytes_per_s=value * KIB if rate else None,
            iops=None if rate else value,
            bytes=moved,
            options={"file size": file_size, "chunk size": chunk},
        )  # fmt: skip


TEXT = re.compile(
    # Notes may lack the version, and the machine in front of the sizes.
    r"^(?:Version\s{1,99}(?P<version>\S{1,300}))?"
    r"[ \t]{1,99}-+Sequential Output-+",
    re.M,
)

_SIZES = r"(\d{1,20}[KMGT]?)(?::(\d{1,20}\w{0,80}))?\s{1,99}([^\n]*)$"


def read_text(text: str) -> Iterator[FoundReport]:
    """The table on a terminal (1.03 to 2.00): K/sec, with M for MiB from 1.96 on. Its line of CSV,
    if the file has it, has more digits."""
    if len(CSV.findall(text)) == len(TEXT.findall(text)):
        yield from read_csv(text)
        return
    for part, begin in parts(text, TEXT):
        version = TEXT.match(part)
        row = re.search(
            rf"^([ \t]*Size[^\n]*)\n()[ \t]*{_SIZES}", part, re.M
        ) or re.search(
            rf"^((?:Machine|Name:Size)[^\n]*)\n(\S+?)?[\s:]+{_SIZES}", part, re.M
        )  # fmt: skip
        if row is None:
            raise none_found("Bonnie++", "its table has no row")
        ends = [m.end() for m in re.finditer(r"/sec|%CP", row[1])]
        cells = list(re.finditer(r"\S{1,300}", row[5]))
        if len(cells) > len(ends) or len(ends) > len(_BONNIE_1):
            raise none_found("Bonnie++", f"its table has another form: {row[0][:120]!r}")
        indent = row.start(5) - row.end(1) - 1
        below = list(columns(ends, [indent + cell.end() for cell in cells], most_apart=4))
        if any(column ^ 1 not in below for column in below if column ^ 1 < len(ends)):
            raise none_found("Bonnie++", f"a rate without its %CP: {row[0].strip()[-120:]!r}")
        fields = {
            _BONNIE_1[column]: _rate(cell[0]) for column, cell in zip(below, cells, strict=True)
        }
        phases = tuple(_phases(fields, row[3], row[4] or "8k", None))
        if not phases:
            raise none_found("Bonnie++", "no test has a result")
        reported = version["version"] if version else None
        yield FoundReport(phases, reported, row[2] or None, begins_at=begin)


def _rate(cell: str) -> str:
    found = re.fullmatch(r"([\d.]{1,30})([kmg])", cell, re.I)
    if found is None:
        return cell
    return str(figure(found[1]) * {"k": 1, "m": 1024, "g": 1024**2}[found[2].lower()])


def _flushes(options: Mapping[str, str]) -> bool:
    """Always."""
    return True


RULES = {"bonnie": Rules(flushes=_flushes)}
FORMATS = (
    Format("bonnie", "csv", read_csv, begins=CSV),
    Format("bonnie", "text", read_text, begins=TEXT),
)
