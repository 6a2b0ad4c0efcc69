"""IOzone's text: tables, strides and throughput of several processes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    MIB,
    FoundPhase,
    FoundReport,
    columns,
    figure,
    none_found,
)
from eeio_parsers.rules import Rules

_BEGIN = re.compile(r"^\s{0,99}Iozone: Performance Test of File I/O", re.M)
_TABLE = re.compile(
    r"^(?:[^\n]{0,200}\brandom\b[^\n]{0,200}\n)?[ \t]{1,99}[kK]B[ \t]{1,99}reclen[ \t]{1,99}write",
    re.M,
)
_PART = re.compile(
    rf"{_TABLE.pattern}"
    r"|^[ \t]{0,99}Children see throughput for[ \t]{1,99}\d{1,9}[ \t]{1,99}initial writers", re.M
)  # fmt: skip
_TESTS = re.compile(r"\A(?=[\s\S]*?^[ \t]{0,99}Children see throughput for)", re.M)
TEXT = re.compile(
    f"{_BEGIN.pattern}|{_PART.pattern}|^[ \\t]{{0,99}}Children see throughput for[ \\t]",
    re.M,
)
_PATTERNS = {"random": "random", "stride": "strided", "strided": "strided"}
_CHILDREN = re.compile(r"^\s{0,99}Children see throughput for\s{1,99}(\d{1,20})\s{1,99}"
                       r"([\w -]{1,80}?)[ \t]{0,99}=\s{0,99}([\d.]{1,30}) "
                       r"[kK]B(?:ytes)?/sec", re.M)  # fmt: skip


def read_text(text: str) -> Iterator[FoundReport]:
    """Tables of sizes and throughput tests. Rates are in KiB/s. Notes may lack the lines above."""
    for part, begin in _parts(text):
        version = re.search(r"Version \$?Revision: ([\d.]{1,30})", part)
        command = re.search(r"^\s{0,99}Command line used: \S{1,999}(.*)$", part, re.M)
        direct = _is_direct(part, command[1].split() if command else [])
        options = {"command": command[1].strip()[:500]} if command else {}
        phases = [
            replace(phase, options={**options, **phase.options})
            for phase in (*_table(part, direct), *_children(part, direct))
        ]
        if re.search(r"Time Resolution|in microseconds/op|in ops/sec", part) and (
            "Output is in microseconds" in part or "Output is in ops/sec" in part
        ):
            raise none_found(
                "IOzone", "its output is not in kBytes/s (-N or -O): give no such option"
            )
        if not phases:
            raise none_found("IOzone", "no result: it was ended before its first one")
        last = part.rpartition("\n")[2]
        if "iozone test complete" not in part and re.search(r"^[\d\s]+$|Children", last):
            raise none_found("IOzone", "cut off in its last line")
        yield FoundReport(tuple(phases), version[1] if version else None, begins_at=begin)


def _is_direct(part: str, command: Sequence[str]) -> bool | None:
    """Without its first lines, a report says nothing of it. Raises ToolOutputError if its command
    line contradicts it."""
    is_enabled = "O_DIRECT feature enabled" in part
    if "-I" in command and not is_enabled:
        raise none_found("IOzone", "-I in its command line, but no line `O_DIRECT feature enabled`")
    return is_enabled if is_enabled or command else None


_SETTINGS = re.compile(
    r"^[ \t]{0,99}(?:Run began: |O_DIRECT feature enabled|Auto Mode$|File size set to \d"
    r"|Record Size \d|Command line used: )", re.M
)  # fmt: skip


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Each report: from its banner, or from a table that is not the first one below a banner."""
    if not _BEGIN.search(text):
        begin = _PART if _PART.search(text) else _TESTS
        marks = list(re.finditer(rf"(?P<banner>(?!))|{begin.pattern}", text, re.M))
    else:
        marks = list(re.finditer(f"(?P<banner>{_BEGIN.pattern})|{_TABLE.pattern}", text, re.M))
    places: list[int] = []
    has_table, last = True, 0
    for mark in marks:
        if mark["banner"] or has_table:
            # IOzone prints its settings above its table.
            above = None if mark["banner"] else _SETTINGS.search(text, last, mark.start())
            places.append(above.start() if above else mark.start())
        has_table, last = not mark["banner"], mark.end()
    ends = [*places[1:], len(text)]
    for start, end in zip(places, ends, strict=True):
        yield text[start:end], start


def _table(part: str, direct: bool | None) -> Iterator[FoundPhase]:
    head = re.search(r"^\s{1,99}(?:kB|KB)\s{1,99}reclen\s{1,99}(.*)$", part, re.M)
    if head is None:
        return
    above = part[: head.start()].splitlines()[-1] if part[: head.start()].strip() else ""
    names = _columns(above, head)
    for place, line in enumerate(part[head.end() :].splitlines()):
        cells = line.split()
        is_row = len(cells) > 2 and all(re.fullmatch(r"\d{1,20}", cell) for cell in cells)
        if is_row and int(cells[1]) > int(cells[0]):
            raise none_found("IOzone", f"a record larger than its file: {line.strip()!r:.80}")
        if not is_row:
            if cells and place > 0 and not re.match(r"[\d\s]+$", line):
                break
            continue
        for name, cell in zip(_names(names, line), cells[2:], strict=True):
            fields = name.split()
            if int(cell) == 0:
                continue  # The test of this column did not run (-+n).
            yield FoundPhase(
                name=name,
                operation="write" if "write" in name else "read",
                access_pattern=_PATTERNS.get(fields[0], "sequential"),
                group=f"{cells[0]} kB {cells[1]}",
                request_bytes=int(cells[1]) * KIB,
                direct=direct,
                jobs=1,
                bandwidth_bytes_per_s=figure(cell) * KIB,
                bytes=int(cells[0]) * KIB,
                options={"file size": f"{cells[0]} kB"},
            )


_COLUMNS = (
    "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read", "fwrite",
    "frewrite", "fread", "freread",
)  # fmt: skip
"""The lower line of a table's header, behind the sizes."""


def _columns(above: str, head: re.Match[str]) -> list[tuple[str, int]]:
    """The names of the columns, whose first words are in the line above, and where they end behind
    the column `reclen`."""
    below = [(m.start(), m.end(), m[0]) for m in re.finditer(r"\S{1,300}", head[0])][1:]
    firsts = [(m.start(), m.end(), m[0]) for m in re.finditer(r"\S{1,300}", above)]
    names = []
    for start, end, word in below[1:]:
        over = [f for f in firsts if f[0] < end and f[1] > start and f[2] in
                ("random", "bkwd", "record", "stride")]  # fmt: skip
        names.append((f"{over[0][2]} {word}" if over else word, end - below[0][1]))
    words = tuple(word for _, _, word in below[1:])
    if words != _COLUMNS[: len(words)]:
        raise none_found("IOzone", f"another header of its table: {head[0].strip()!r:.80}")
    if len({name for name, _ in names}) < len(names):
        raise none_found("IOzone", "the upper line of its table's header is missing")
    return names


_WIDTHS = {
    119: (9, 9, 9, 9, 9, 9, 9, 10, 10, 9, 9, 9, 9),
    132: (10, 10, 10, 10, 10, 10, 10, 11, 11, 10, 10, 10, 10),
}
"""Where the last name of the header ends, behind `reclen` -> the widths of figures: IOzone 3.4xx,
and 3.5xx, where they are one wider than the blanks of a test that did not run."""
_WITH_NARROW_BLANKS = 132


def _names(names: Sequence[tuple[str, int]], row: str) -> Iterator[str]:
    """The column of each figure of a row, by where it ends: other tests are blanks."""
    reclen, *ends = [m.end() for m in re.finditer(r"\S{1,300}", row)][1:]
    if len(ends) > len(names):
        raise none_found("IOzone", f"more figures than columns: {row[:120]!r}")
    last = names[-1][1]
    columns_end = list(accumulate(_WIDTHS[last])) if last in _WIDTHS else [end for _, end in names]
    placed = columns(
        [reclen + end for end in columns_end],
        ends,
        wider=last == _WITH_NARROW_BLANKS,
        most_apart=0 if last in _WIDTHS else 2,
    )
    below = [names[column][0] for column in placed]
    for first, second in _PAIRS:
        if (first in below) != (second in below):
            raise none_found("IOzone", f"{first} and {second} are of one test: {row.strip()!r:.80}")
    yield from below


_PAIRS = (
    ("write", "rewrite"), ("read", "reread"), ("random read", "random write"),
    ("fwrite", "frewrite"), ("fread", "freread"),
)  # fmt: skip
"""Columns of one test: IOzone prints both, or 0 for one that did not run."""


def _size(part: str, name: str) -> int | None:
    found = re.search(name + r" (\d{1,20}) ([kK]B|MB)", part)
    return None if found is None else int(found[1]) * (MIB if found[2] == "MB" else KIB)


def _children(part: str, direct: bool | None) -> Iterator[FoundPhase]:
    request = _size(part, r"Record Size")
    file_size = _size(part, r"File size set to")
    each = re.search(
        r"Each process writes a (\d{1,20}) K?k?[Bb]yte file in (\d{1,20}) K?k?[Bb]yte records", part
    )
    if each is not None:
        file_size, request = file_size or int(each[1]) * KIB, request or int(each[2]) * KIB
    tests = list(_CHILDREN.finditer(part))
    ends = [*(test.start() for test in tests[1:]), len(part)]
    for test, end in zip(tests, ends, strict=False):
        least = re.search(r"Min xfer\s{1,99}=\s{1,99}([\d.]{1,30}) [kK]B", part[test.end() : end])
        # All children stop when the first one has finished, so only the least is sure.
        is_all = file_size and least and figure(least[1]) * KIB >= file_size
        name = test[2].replace("-", " ").rstrip("s")
        rate = figure(test[3]) * KIB
        yield FoundPhase(
            name=name,
            operation="mixed" if "mixed" in name or ("pread" in name and "pwrite" in name)
            else "write" if "write" in name else "read",
            access_pattern="random" if "random" in name else "strided" if "strid" in name
            else "mixed" if "mixed" in name else "sequential",
            group=name,
            request_bytes=request,
            direct=direct,
            jobs=int(test[1]),
            bandwidth_bytes_per_s=rate,
            bytes=file_size * int(test[1]) if file_size and (is_all or int(test[1]) == 1) else None,
        )  # fmt: skip


def _flushes(options: Mapping[str, str]) -> bool:
    """With -e."""
    return "-e" in options.get("command", "").split() or options.get("fsync") in ("1", "TRUE")


RULES = {"iozone": Rules(flushes=_flushes)}
FORMATS = (Format("iozone", "text", read_text, begins=TEXT),)
