"""sysbench fileio's text."""

import re
from collections.abc import Iterator
from dataclasses import replace

from eeio_parsers.format import Format
from eeio_parsers.found import (
    MIB,
    FoundPhase,
    FoundReport,
    figure,
    none_found,
    size,
)
from eeio_parsers.rules import Rules

TEXT = re.compile(r"^(?:sysbench (\d\S*?)[:\s]|Extra file open flags: |File operations:$)", re.M)
_BEGINS = re.compile(
    r"^(?:(?P<banner>sysbench \d\S*?[:\s])|(?P<running>Running the test with following options)"
    r"|(?P<settings>Extra file open flags: )|(?P<done>File operations:|Operations performed:)"
    r"|(?P<rates>Throughput:))",
    re.M,
)


_SYSBENCH_1_1 = r"^\s{1,99}%s:\s{1,99}IOPS=([\d.]{1,30})\s{1,99}([\d.]{1,30}) MiB/s"


_FLAGS = {"directio": True, "direct": True, "(none)": False, "0": False}
"""Extra file open flags -> whether they bypass the cache. sysbench 0.5 and 1.0 print a number,
which is another one on other processors."""
_OPTIONS = {
    "files": r"^(\d{1,9} files, \S{1,20}) each",
    "flags": r"^Extra file open flags: (\S[^\n]{0,80})",
    "mode": r"^Using (\S[^\n]{0,80}) mode",
    "test": r"^Doing (\S[^\n]{0,80}) test",
    "fsync each": r"^Periodic FSYNC enabled, calling fsync\(\) each (\d{1,9}) requests",
    "sync each": r"^Calling (f\w{4,9}\(\)) after each write",
    "fsync at the end": r"^Calling fsync\(\) at the end of test, (\w{1,20})",
    "reads per write": r"^Read/Write ratio for combined random IO test: ([\d.]{1,30})",
}


def read_text(text: str) -> Iterator[FoundReport]:
    """`sysbench fileio` 0.4 to 1.1. Other tests, `prepare` and `cleanup` may be in the file."""
    reports, places, cut_off = list[FoundReport](), list[int](), 0
    for start, end in _runs(text):
        part = text[start:end]
        if phases := tuple(_phases(part)):
            version = TEXT.match(part)
            reports.append(FoundReport(phases, version[1] if version else None))
            places.append(start)
        elif "Extra file open flags" in part and "Threads started" in part:
            cut_off += 1
    if not reports:
        raise none_found("sysbench", "no throughput of file I/O: not a fileio test, or cut off")
    notes = (f"{cut_off} other tests of file I/O have no throughput: cut off",) if cut_off else ()
    for report, begin in zip(reports, places, strict=True):
        yield replace(report, notes=notes, begins_at=begin)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Where each run begins and ends: scripts may cut off the beginning of a run, so it also begins
    where its lines are not in their order."""
    order = list(_BEGINS.groupindex)
    places, last = list[int](), len(order)
    for match in _BEGINS.finditer(text):
        place = order.index(match.lastgroup or "")
        if place <= last:
            places.append(match.start())
        last = place
    yield from zip(places, [*places[1:], len(text)], strict=True)


def _phases(part: str) -> Iterator[FoundPhase]:
    block = re.search(r"^Block size (\S{1,300})", part, re.M)
    threads = re.search(r"^Number of threads: (\d{1,20})", part, re.M)
    mode = re.search(r"^Doing (\w{1,80}) (.*) test", part, re.M)
    flags = re.search(r"^Extra file open flags: (\S{1,80})\s{0,9}$", part, re.M)
    total = re.search(r"total time:\s{1,99}([\d.]{1,30})s", part)
    seconds = figure(total[1]) if total else None
    done = re.search(r"(\d{1,20}) reads?, (\d{1,20}) writes?", part, re.I)
    for place, (operation, past) in enumerate((("read", "read"), ("write", "written"))):
        both = re.search(_SYSBENCH_1_1 % operation, part, re.M)
        rate = re.search(rf"^\s{{1,99}}{past}, MiB/s:\s{{1,99}}([\d.]{{1,30}})", part, re.M)
        iops = re.search(rf"^\s{{1,99}}{operation}s/s:\s{{1,99}}([\d.]{{1,30}})", part, re.M)
        old = re.search(rf"\b{past.title()} ([\d.]{{1,30}}\w{{1,80}})", part)
        moved = size(old[1]) if old and not rate and not both else None
        speed = moved / seconds if moved and seconds else None
        if rate or both:
            speed = figure(both[2] if both else rate[1] if rate else 0) * MIB
        per_s = figure(both[1]) if both else figure(iops[1]) if iops else None
        if per_s is None and done and seconds:
            per_s = int(done[1 + place]) / seconds
        if not speed:
            continue
        yield FoundPhase(
            name=operation, operation=operation,
            access_pattern=None if mode is None else "random" if "random" in mode[0]
            else "sequential",
            request_bytes=size(block[1]) if block else None,
            direct=None if flags is None else _FLAGS.get(flags[1]),
            jobs=int(threads[1]) if threads else None,
            bandwidth_bytes_per_s=speed, iops=per_s, bytes=moved, runtime_s=seconds,
            options={name: found[1] for name, pattern in _OPTIONS.items()
                     if (found := re.search(pattern, part, re.M))},
        )  # fmt: skip


RULES = {"sysbench": Rules()}
FORMATS = (Format("sysbench", "text", read_text, begins=TEXT),)
