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
    first_group,
    more_exact_rate,
    none_found,
    rounding,
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
    reports, places, failed = list[FoundReport](), list[int](), list[str]()
    for start, end in _runs(text):
        part = text[start:end]
        if phases := tuple(_phases(part)):
            version = TEXT.match(part)
            reports.append(FoundReport(phases, first_group(version)))
            places.append(start)
        elif "Extra file open flags" in part and "Threads started" in part:
            failed.append(_failure(part))
    if not reports and failed:
        raise none_found("sysbench", f"no throughput of file I/O: {failed[0]}")
    if not reports:
        raise none_found("sysbench", "no throughput of file I/O: not a fileio test, or cut off")
    notes: tuple[str, ...] = ()
    if failed:
        notes = (
            f"{len(failed)} other tests of file I/O have no throughput, the first: {failed[0]}",
        )
    for report, begin in zip(reports, places, strict=True):
        yield replace(report, notes=notes, begins_at=begin)


_NO_REQUESTS = re.compile(
    r"^(?:Operations performed:\s{1,99}0 reads?, 0 writes?,"
    r"|\s{1,99}total number of events:\s{1,99}0$)",
    re.M | re.I,
)


def _failure(part: str) -> str:
    """Why a test of file I/O has no throughput."""
    reasons = []
    if _NO_REQUESTS.search(part):
        reasons.append("0 requests")
    if (message := _first(r"^(FATAL: [^\n]{1,120})", part)) is not None:
        reasons.append(message.strip())
    return "; ".join(reasons) or "cut off"


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


def _first(pattern: str, part: str) -> str | None:
    match = re.search(pattern, part, re.M)
    if match:
        return match[1]
    return None


def _phases(part: str) -> Iterator[FoundPhase]:
    total = _first(r"total time:\s{1,99}([\d.]{1,30})s", part)
    seconds = None
    if total:
        seconds = figure(total)
    mode = re.search(r"^Doing (\w{1,80}) (.*) test", part, re.M)
    flags = _first(r"^Extra file open flags: (\S{1,80})\s{0,9}$", part)
    threads = _first(r"^Number of threads: (\d{1,20})", part)
    settings = {name: _first(pattern, part) for name, pattern in _OPTIONS.items()}
    common = FoundPhase(
        name="",
        operation=None,
        access_pattern=_pattern(mode[0]) if mode else None,
        request_bytes=size(_first(r"^Block size (\S{1,300})", part) or ""),
        direct=_FLAGS.get(flags) if flags else None,
        jobs=int(threads) if threads else None,
        runtime_s=seconds,
        options={name: value for name, value in settings.items() if value is not None},
    )
    for operation in ("read", "write"):
        rate, iops, moved = _rates(part, operation, seconds, common.request_bytes)
        if rate:
            yield replace(
                common,
                name=operation,
                operation=operation,
                bandwidth_bytes_per_s=rate,
                iops=iops if iops is not None else _counted(part, operation, seconds),
                bytes=moved,
            )


def _pattern(mode: str) -> str:
    if "random" in mode:
        return "random"
    return "sequential"


def _rates(
    part: str, operation: str, seconds: float | None, request: int | None
) -> tuple[float | None, float | None, int | None]:
    """Bytes/s, requests/s and bytes: sysbench 1.1 and 1.0 print rates, older ones the bytes."""
    both = re.search(_SYSBENCH_1_1 % operation, part, re.M)
    if both:
        return _exact(both[2], both[1], request), figure(both[1]), None
    past = {"read": "read", "write": "written"}[operation]
    iops = _first(rf"^\s{{1,99}}{operation}s/s:\s{{1,99}}([\d.]{{1,30}})", part)
    per_s = None
    if iops:
        per_s = figure(iops)
    if rate := _first(rf"^\s{{1,99}}{past}, MiB/s:\s{{1,99}}([\d.]{{1,30}})", part):
        return _exact(rate, iops, request), per_s, None
    moved = size(_first(rf"\b{past.title()} ([\d.]{{1,30}}\w{{1,80}})", part) or "")
    return (moved / seconds if moved and seconds else None), per_s, moved


def _exact(mib_per_s: str, per_s: str | None, request: int | None) -> float:
    """Bytes/s. With two decimals of MiB/s, a small rate is up to half off."""
    if per_s is None or request is None:
        return figure(mib_per_s) * MIB
    within = rounding(per_s) * request
    return more_exact_rate(mib_per_s, MIB, figure(per_s) * request, within)


def _counted(part: str, operation: str, seconds: float | None) -> float | None:
    """Requests/s from their count."""
    done = re.search(r"(?P<read>\d{1,20}) reads?, (?P<write>\d{1,20}) writes?", part, re.I)
    if done and seconds:
        return int(done[operation]) / seconds
    return None


RULES = {"sysbench": Rules()}
FORMATS = (Format("sysbench", "text", read_text, begins=TEXT),)
