"""IOzone's text: tables, strides and throughput of several processes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    MIB,
    FoundPhase,
    FoundReport,
    figure,
    first_group,
    none_found,
)
from eeio_parsers.iozone import excel, table
from eeio_parsers.rules import Rules

_BEGIN = re.compile(r"^\s{0,99}Iozone: Performance Test of File I/O", re.M)
_TABLE = re.compile(
    r"^(?:[^\n]{0,200}\brandom\b[^\n]{0,200}\n)?[ \t]{1,99}[kK]B[ \t]{1,99}reclen[ \t]{1,99}write",
    re.M,
)
_PART = re.compile(
    rf"{_TABLE.pattern}"
    r"|^[ \t]{0,99}Children see throughput for[ \t]{1,99}\d{1,9}[ \t]{1,99}initial writers",
    re.M,
)
_TESTS = re.compile(r"\A(?=[\s\S]*?^[ \t]{0,99}Children see throughput for)", re.M)
TEXT = re.compile(
    f"{_BEGIN.pattern}|{_PART.pattern}|^[ \\t]{{0,99}}Children see throughput for[ \\t]",
    re.M,
)
_CHILDREN = re.compile(
    r"^\s{0,99}Children see throughput for\s{1,99}(\d{1,20})\s{1,99}"
    r"([\w -]{1,80}?)[ \t]{0,99}=\s{0,99}([\d.]{1,30}) "
    r"[kK]B(?:ytes)?/sec",
    re.M,
)


def read_text(text: str) -> Iterator[FoundReport]:
    """Tables of sizes and throughput tests. Rates are in KiB/s. Notes may lack the lines above."""
    for part, begin in _parts(text):
        version = re.search(r"Version \$?Revision: ([\d.]{1,30})", part)
        command = re.search(r"^\s{0,99}Command line used: \S{1,999}(.*)$", part, re.M)
        words: list[str] = []
        if command:
            words = command[1].split()
        direct = _is_direct(part, words)
        options = {}
        if command:
            options = {"command": command[1].strip()[:500]}
        stride = re.search(r"^[ \t]{0,99}File stride size set to ([^\n]{1,80})", part, re.M)
        if stride is not None:
            options["stride"] = stride[1].strip()
        phases = []
        for phase in (*_table(part, direct, words), *_children(part, direct)):
            phases.append(replace(phase, options={**options, **phase.options}))
        unit = re.search(r"Output is in ([^\n]{1,80})", part)
        if unit is not None and not unit[1].lower().startswith("kbytes/sec"):
            raise none_found(
                "IOzone", f"its output is in {unit[1].strip()}, not kBytes/sec: no -N and no -O"
            )
        if not phases:
            raise none_found("IOzone", "no result: it was ended before its first one")
        last = part.rpartition("\n")[2]
        if "iozone test complete" not in part and re.search(r"^[\d\s]+$|Children", last):
            raise none_found("IOzone", "cut off in its last line")
        yield FoundReport(tuple(phases), first_group(version), begins_at=begin)


def _is_direct(part: str, command: Sequence[str]) -> bool | None:
    """Without its first lines, a report says nothing of it. Raises ToolOutputError if its command
    line contradicts it."""
    is_enabled = "O_DIRECT feature enabled" in part
    if "-I" in command and not is_enabled:
        raise none_found("IOzone", "-I in its command line, but no line `O_DIRECT feature enabled`")
    if is_enabled or command:
        return is_enabled
    return None


_SETTINGS = re.compile(
    r"^[ \t]{0,99}(?:Run began: |O_DIRECT feature enabled|Auto Mode$|File size set to \d"
    r"|Record Size \d|Command line used: )",
    re.M,
)


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Each report: from its banner, or from a table that is not the first one below a banner."""
    if not _BEGIN.search(text):
        begin = _TESTS
        if _PART.search(text):
            begin = _PART
        marks = list(re.finditer(rf"(?P<banner>(?!))|{begin.pattern}", text, re.M))
    else:
        marks = list(re.finditer(f"(?P<banner>{_BEGIN.pattern})|{_TABLE.pattern}", text, re.M))
    places: list[int] = []
    has_table, last = True, 0
    for mark in marks:
        if mark["banner"] or has_table:
            # IOzone prints its settings above its table.
            above = None
            if not mark["banner"]:
                above = _SETTINGS.search(text, last, mark.start())
            places.append(above.start() if above else mark.start())
        has_table, last = not mark["banner"], mark.end()
    ends = [*places[1:], len(text)]
    for start, end in zip(places, ends, strict=True):
        yield text[start:end], start


def _table(part: str, direct: bool | None, command: Sequence[str]) -> Iterator[FoundPhase]:
    has_no_second_tests = "-+n" in command  # IOzone prints 0 for them.
    head = table.header(part)
    for row in table.rows(part, head) if head is not None else ():
        for test, rate_kib_per_s, _ in row.cells:
            if rate_kib_per_s == 0 and has_no_second_tests:
                continue
            phase = _of_cell(test, row.file_kib, row.record_kib, rate_kib_per_s)
            yield replace(phase, direct=direct and not test.is_buffered)


def _of_cell(test: table.Test, file_kib: int, record_kib: int, rate_kib_per_s: int) -> FoundPhase:
    return FoundPhase(
        name=test.name,
        operation=test.operation,
        access_pattern=test.spatiality,
        group=f"{file_kib} kB {record_kib}",
        request_bytes=record_kib * KIB,
        jobs=1,
        bandwidth_bytes_per_s=float(rate_kib_per_s * KIB),
        bytes=file_kib * KIB,
        options={"file size": f"{file_kib} kB"},
        error=None if rate_kib_per_s else "IOzone printed a rate of 0",
    )


def read_excel(text: str) -> Iterator[FoundReport]:
    """The tables of -R without IOzone's other output, which has them as well."""
    if TEXT.search(text):
        raise none_found("IOzone", "tables of -R above another report: each needs a separate file")
    for part in excel.parts(text):
        phases = tuple(
            _of_cell(cell.test, cell.file_kib, cell.record_kib, cell.rate_kib_per_s)
            for cell in part.cells
        )
        notes = [_NO_UNIT]
        if part.missing:
            notes.append(f"a part of IOzone's tables: without {', '.join(part.missing)}")
        yield FoundReport(phases, notes=tuple(notes), begins_at=part.begins_at)


_NO_UNIT = "tables of -R do not state their unit: it is kB/s, unless IOzone was run with -O or -N"


def _size(part: str, name: str) -> int | None:
    match = re.search(name + r" (\d{1,20}) ([kK]B|MB)", part)
    if match is None:
        return None
    unit = KIB
    if match[2] == "MB":
        unit = MIB
    return int(match[1]) * unit


def _children(part: str, direct: bool | None) -> Iterator[FoundPhase]:
    request = _size(part, r"Record Size")
    file_size = _size(part, r"File size set to")
    each = re.search(
        r"Each process writes a (\d{1,20}) K?k?[Bb]yte file in (\d{1,20}) K?k?[Bb]yte records", part
    )
    if each is not None:
        file_size, request = file_size or int(each[1]) * KIB, request or int(each[2]) * KIB
    lines = list(_CHILDREN.finditer(part))
    ends = [*(line.start() for line in lines[1:]), len(part)]
    for line, end in zip(lines, ends, strict=False):
        test, processes = table.GROUPS.get(line[2]), int(line[1])
        if test is None:
            raise none_found("IOzone", f"a test of another name: {line[2]!r}")
        least = re.search(r"Min xfer\s{1,99}=\s{1,99}([\d.]{1,30}) [kK]B", part[line.end() : end])
        # All children stop when the first one has finished, so only the least is sure.
        is_all = file_size and least and figure(least[1]) * KIB >= file_size
        yield FoundPhase(
            name=test.name,
            operation=test.operation,
            access_pattern=test.spatiality,
            group=test.name,
            request_bytes=request,
            direct=direct and not test.is_buffered,
            jobs=processes,
            bandwidth_bytes_per_s=figure(line[3]) * KIB,
            bytes=file_size * processes if file_size and (is_all or processes == 1) else None,
        )


def _flushes(options: Mapping[str, str]) -> bool:
    """With -e."""
    return "-e" in options.get("command", "").split() or options.get("fsync") in ("1", "TRUE")


RULES = {"iozone": Rules(flushes=_flushes)}
FORMATS = (
    Format("iozone", "text", read_text, begins=TEXT),
    Format("iozone", "excel", read_excel, begins=excel.BEGIN),
)
