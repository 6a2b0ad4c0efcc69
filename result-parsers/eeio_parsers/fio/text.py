"""fio's reports on a terminal: complete ones, sums of groups alone, and lines of rates alone."""

import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from eeio.errors import ToolOutputError
from eeio.units.quantities import DURATION
from eeio_parsers.fio import verification
from eeio_parsers.fio.jobs import ALL_CLIENTS, DIRECTIONS, MIXED, REQUESTS_OF_P9999, exact_rate
from eeio_parsers.fio.json_report import SO_FAR, moved, stopped
from eeio_parsers.fio.settings import pattern
from eeio_parsers.found import (
    KIB,
    FoundPhase,
    FoundReport,
    complete,
    count,
    figure,
    first_group,
    groups,
    local_date,
    none_found,
    number,
    only_one,
    size,
)

_BEGIN = re.compile(r"^fio-\d", re.M)
_CLIENT = re.compile(r"^hostname=([^,\n]{1,80}),[^\n]* fio=fio-(\S+?),", re.M)
_HEADER = re.compile(
    r"^(?P<name>.{1,200}?): \(g=(?P<group>\d{1,20})\): rw=(?P<rw>\w{1,80}), bs=(?P<bs>.{1,120}?)"
    r",? ioengine=(?P<engine>[\w./-]+), iodepth=(?P<depth>\d{1,20})",
    re.M,
)
_ENTRY = re.compile(
    r"^(?P<name>.{0,200}?): \(groupid=(?P<group>\d{1,20}), jobs=(?P<jobs>\d{1,20})\): "
    r"err=\s{0,99}(?P<err>-?\d{1,20})(?P<rest>[^\n]*)",
    re.M,
)
_BEGINNING = r"^\s{0,99}(read|write|trim|mixed)\s{0,99}:\s{0,99}"
_FIGURE = r"\d[\d.]{0,30}(?:\w{0,9}| B)"
_OLD = re.compile(
    rf"{_BEGINNING}io=(?P<io>{_FIGURE}), bw=(?P<bw>{_FIGURE})/s, "
    rf"iops=(?P<iops>{_FIGURE})\s{{0,99}}, runt=\s{{0,99}}(?P<ms>\d{{1,20}})\s{{0,99}}msec",
    re.M,
)
_NEW = re.compile(
    # Without `/s` in the lines of a client.
    rf"{_BEGINNING}IOPS=(?P<iops>{_FIGURE}), BW=(?P<bw>{_FIGURE})(?:/s)? "
    rf"\((?P<si>{_FIGURE})(?:/s)?\)"
    rf"\s{{0,99}}\((?P<io>{_FIGURE})/(?P<ms>\d{{1,20}})msec\)",
    re.M,
)
_STATUS = re.compile(r"^Run status group|^Disk stats", re.M)


@dataclass(frozen=True)
class _Part:
    """A report of a text, with the settings of its jobs. `after` is behind its last entry."""

    start: int
    text: str
    headers: list[dict[str, str]]
    process: str | None
    after: str
    is_complete: bool
    """Whether its beginning is there."""
    ends_at_report: bool
    """Whether another complete report begins behind it."""


def _text_parts(text: str, is_client: bool) -> Iterator[_Part]:
    # All servers' answers are one report; so is one whose version was cut off.
    begins = [0] if is_client else list(_begins(text)) or [0]
    before = 0
    for start, end in zip(begins, [*begins[1:], len(text)], strict=True):
        # A report's settings are above its version, and so are those of the next one.
        entries = list(_ENTRY.finditer(text, start, end))
        limit = end
        if entries and not is_client:
            limit = entries[0].start()
        headers = [match.groupdict() for match in _HEADER.finditer(text, before, limit)]
        before = start
        if entries:
            before = entries[-1].end()
        part = text[start:end]
        yield _Part(
            start,
            part,
            headers,
            _process(part),
            after=text[before:end],
            is_complete=bool(headers or _BEGIN.match(text, start)),
            ends_at_report=bool(_BEGIN.match(text, end)),
        )


def read_text(text: str) -> Iterator[FoundReport]:
    """The reports of jobs. Raises ToolOutputError if there is none."""
    text = re.sub(r"^<[^>\n]{1,80}> ", "", text, flags=re.M)
    client = _CLIENT.search(text)
    found, lost = list[FoundReport](), list[ToolOutputError]()
    above: _Part | None = None
    is_rest = False
    for part in _text_parts(text, client is not None):
        # With --status-interval, fio prints a run's figures so far, and again at its end.
        is_same = bool(found) and above is not None and _is_same_run(part, above)
        if is_same and above is not None:
            part = replace(part, headers=above.headers)
        above = part
        try:
            if is_rest:
                raise none_found("fio", "it is the rest of a report that is not understood")
            report = _text_report(part.text, part.headers)
        except ToolOutputError as error:
            lost.append(error)
            is_rest = part.is_complete and not part.ends_at_report
            continue
        is_rest = False
        report = replace(_on_disks(report, part.after), begins_at=part.start)
        if is_same:
            report = replace(report, version=report.version or found[-1].version)
            if moved(found[-1]) < moved(report):
                found.pop()
                report = replace(report, notes=(*report.notes, SO_FAR))
        found.append(replace(report, host=client[1], version=client[2]) if client else report)
    yield from complete(found, lost)


def _is_same_run(part: _Part, above: _Part) -> bool:
    return not part.is_complete and part.process is not None and part.process == above.process


_MARKS = re.compile(
    rf"(?P<banner>{_BEGIN.pattern})|(?P<settings>{_HEADER.pattern.replace('?P<', '?P<s_')})"
    rf"|(?P<entry>{_ENTRY.pattern.replace('?P<', '?P<e_')})|(?P<status>^Run status group 0\b)",
    re.M,
)


def _begins(text: str) -> Iterator[int]:
    """Where each report begins: at its version, or, in notes without that line, at the settings or
    the first job after the end of a report, or where the groups begin again."""
    ended, settings, last = False, None, -1
    grouped, begun = set[tuple[str, str]](), False
    for mark in _MARKS.finditer(text):
        if mark["status"]:
            ended, settings = True, None
        elif mark["settings"]:
            if settings is None:
                settings = mark.start()
        elif mark["banner"]:
            yield mark.start()
            ended, settings, last, begun = False, None, -1, True
            grouped.clear()
        elif mark["e_name"].strip() != ALL_CLIENTS:
            group, key = int(mark["e_group"]), (mark["e_group"], mark["e_name"])
            # With group_reporting a group has one entry.
            again = int(mark["e_jobs"]) > 1 and key in grouped
            if not begun or ended or again or group < last:
                yield mark.start() if settings is None else settings
                ended, begun = False, True
                grouped.clear()
            last, settings = group, None
            grouped.add(key)


_PROCESS = re.compile(
    r"^[^\n]{0,200}?: \(groupid=\d{1,20}, jobs=\d{1,20}\): err=[^\n]*? (pid=\d+)", re.M
)


def _process(report: str) -> str | None:
    """The processes of a report's jobs."""
    return " ".join(_PROCESS.findall(report)) or None


_DISK = re.compile(r"^\s{1,99}([\w.!-]{1,80}): ios=\d", re.M)


def _on_disks(report: FoundReport, after: str) -> FoundReport:
    """With the drives that fio names below the report. It names none on network file systems, where
    close() waits until the data are written: so the begin of writes is not known there."""
    disks = ", ".join(dict.fromkeys(_DISK.findall(after)))
    if not disks:
        if all(phase.operation == "read" for phase in report.phases):
            return report
        phases = (replace(phase, starts_within_s=None) for phase in report.phases)
        return replace(report, phases=tuple(phases))
    phases = (replace(p, options={**p.options, "disks": disks}) for p in report.phases)
    return replace(report, phases=tuple(phases))


_RATE = re.compile(r"^[ \t]{1,99}(?:read|write|mixed)[ \t]{0,99}:", re.M)


def _text_report(text: str, headers: list[dict[str, str]]) -> FoundReport:
    every = list(_ENTRY.finditer(text))
    of_servers = [entry for entry in every if entry["name"].strip() != ALL_CLIENTS]
    # A client's sum counts where its servers' own entries are not there.
    blocks = _blocks(text, every, set(of_servers or every))
    phases = []
    apart = []
    for entry, block in blocks:
        header = _header(headers, entry)
        of_entry = _of_entry(entry, block, header)
        phases += [(entry["group"], phase) for phase in of_entry]
        if verification.is_apart(verification.runtimes_s(of_entry), header.get("rw")):
            apart.append(entry["group"])
    if not phases:
        raise none_found("fio", _why_no_result(text))
    if of_servers:
        _check_started(text, sum(int(entry["jobs"]) for entry in of_servers))
    if len(of_servers) == len(every) and _STATUS.search(text, every[-1].end()) is None:
        raise none_found("fio", "the report is cut off before `Run status`")
    _check_directions(phases)
    of_groups = groups(phases)
    _check_sums(text, of_groups)
    is_only_group = len({entry["group"] for entry in every}) == 1
    of_groups = tuple(_with_start(phase, is_only_group) for phase in of_groups)
    of_groups = verification.with_unsure_starts(of_groups, apart)
    of_groups, notes = verification.separate(of_groups, apart)
    version = re.match(r"fio-(\S{1,300})", text)
    return FoundReport(of_groups, first_group(version), notes=(*stopped(text), *notes))


def _blocks(
    text: str, every: Sequence[re.Match[str]], wanted: Collection[re.Match[str]]
) -> Iterator[tuple[re.Match[str], str]]:
    """The wanted entries of jobs, and the text of each."""
    ends = [*(entry.start() for entry in every[1:]), len(text)]
    for entry, end in zip(every, ends, strict=False):
        if entry in wanted:
            block = text[entry.end() : end]
            status = _STATUS.search(block)
            yield entry, block[: status.start()] if status else block


def _with_start(phase: FoundPhase, is_only_group: bool) -> FoundPhase:
    """With the start of its I/O. fio prints one time for all groups, when the last one has ended,
    and no options: some of several jobs may have started later (`startdelay`)."""
    if not is_only_group:
        return replace(phase, started_utc=None, time_source=None)
    is_known = phase.started_utc is not None and phase.jobs == 1
    return replace(phase, starts_within_s=_PRINTED_WITHIN_S if is_known else None)


_PRINTED_WITHIN_S = 1.0
"""fio prints whole seconds."""


def _of_entry(entry: re.Match[str], block: str, header: dict[str, str]) -> list[FoundPhase]:
    """The directions of a job. Raises ToolOutputError for a direction that is listed twice, and for
    a line of rates in another form."""
    lines = sorted((*_NEW.finditer(block), *_OLD.finditer(block)), key=lambda line: line.start())
    if not lines and int(entry["err"]) == 0 and _RATE.search(block):
        raise none_found("fio", f"{entry['name']}: the line of its bandwidth is not understood")
    operations = [line[1] for line in lines]
    if len(set(operations)) < len(operations):
        raise none_found("fio", f"{entry['name'][:80]}: two lines of one direction")
    ends = [*(line.start() for line in lines[1:]), len(block)]
    apart = set(operations) - {MIXED}
    return [
        _text_phase(line, entry, header, block, end)
        for line, end in zip(lines, ends, strict=False)
        if line[1] != MIXED or not apart
    ]


def _check_started(text: str, reported: int) -> None:
    """Raises ToolOutputError if results of some of the jobs that fio started are missing."""
    started = re.search(
        r"^Starting (?:(\d{1,20}) process\w{0,80})?(?: and )?(?:(\d{1,20}) thread\w{0,80})?",
        text,
        re.M,
    )
    wanted = 0
    if started:
        wanted = sum(int(number or 0) for number in started.groups())
    if reported < wanted:
        raise none_found("fio", f"results of {reported} of {wanted} jobs: the report is cut off")


def _check_directions(phases: Sequence[tuple[str, FoundPhase]]) -> None:
    """Raises ToolOutputError if one of several jobs of one name lacks a direction."""
    counts = Counter((group, phase.name, phase.operation) for group, phase in phases)
    most = Counter[tuple[str, str]]()
    for (group, name, _), jobs in counts.items():
        most[group, name] = max(most[group, name], jobs)
    for (group, name, operation), jobs in counts.items():
        if jobs != most[group, name]:
            raise none_found("fio", f"{operation} of {jobs} of {most[group, name]} jobs {name!r}")


_SUMS_AGREE = 0.02
"""Of a sum whose digits are rounded."""


def _check_sums(text: str, phases: Sequence[FoundPhase]) -> None:
    """Raises ToolOutputError if the jobs of a group are not its sum."""
    sums = _printed_sums(text)
    for (group, operation), printed in sums.items():
        of_group = [phase for phase in phases if phase.group == group]
        of_sum = [phase for phase in of_group if phase.operation == operation]
        # The sum of all directions may be there in addition.
        if of_group and not of_sum and operation != MIXED and size(printed):
            raise none_found("fio", f"group {group}: no job has the {operation}s of {printed}")
        for phase in of_sum:
            if phase.bytes and not _is_sum(phase.bytes, printed):
                raise none_found(
                    "fio",
                    f"group {group}: its jobs {operation} {phase.bytes} bytes, but it says "
                    f"{printed}: a part of the report is missing",
                )
    _check_all_have_sums(phases, sums)


def _check_all_have_sums(phases: Sequence[FoundPhase], sums: Mapping[tuple[str, str], str]) -> None:
    groups_with_sums = {group for group, _ in sums}
    for phase in phases:
        is_missing = (phase.group, phase.operation) not in sums
        if phase.bytes and is_missing and phase.group in groups_with_sums:
            raise none_found("fio", f"group {phase.group}: it has no sum of its {phase.operation}s")


def _printed_sums(text: str) -> dict[tuple[str, str], str]:
    """Group and direction -> the bytes that `Run status` has, as they are printed."""
    group, sums = "", {}
    for line in STATUS.finditer(text):
        if line["group"]:
            group = line["group"]
        else:
            sums[group, line["direction"].lower()] = line["io"] or line["io2"]
    return sums


def _is_sum(moved: int, printed: str) -> bool:
    for base in (KIB, 1000):
        total = size(printed, base) or 0
        if total and abs(moved / total - 1) <= _SUMS_AGREE:
            return True
        unit = size(_WITHOUT_CARRY.sub("1", printed), base) or 0
        if _WITHOUT_CARRY.search(printed) and total + 0.94 * unit <= moved < total + unit:
            return True
    return False


_WITHOUT_CARRY = re.compile(r"\d+\.0(?!\d)")
"""Rounded to one digit without a carry: fio 3.1 prints 24.0 for 24.99 GiB."""


_TOTAL = (
    rf"^\s{{0,99}}(?P<direction>READ|WRITE|TRIM|MIXED): (?:"
    rf"io=(?P<io>{_FIGURE}), aggrb=(?P<bw>{_FIGURE})/s, "
    rf"[^\n]*maxt=(?P<ms>\d{{1,20}})msec|bw=(?P<bw2>{_FIGURE})/s [^\n]*io=(?P<io2>{_FIGURE})[^\n]*"
    r"run=\d{1,20}-(?P<ms2>\d{1,20})msec)"
)
STATUS = re.compile(
    rf"^[ \t]{{0,99}}Run status group (?P<group>\d{{1,9}}) \(all jobs\):|{_TOTAL}", re.M
)

_SUM = re.compile(r"^[ \t]{0,99}(?:READ|WRITE|TRIM|MIXED): (?:io|bw)=[^\n]*", re.M)


def read_status(text: str) -> Iterator[FoundReport]:
    """The sums of groups without their jobs, as notes quote them."""
    notes = ["only the sums of its groups are in the file: neither jobs nor settings"]
    if lost := [line[0].strip() for line in _SUM.finditer(STATUS.sub("", text))]:
        notes.append(f"{len(lost)} sums of groups are not read, the first: {lost[0]:.80}")
    reports = list(filter(None, _sums_of_reports(text)))
    if not reports:
        raise none_found("fio", notes[1] if lost else "its groups have no line of their sums")
    yield from (verification.without_settings(phases, None, *notes) for phases in reports)


def _sums_of_reports(text: str) -> list[list[FoundPhase]]:
    """Groups count from 0 again in the next report. Without the line of their group, sums of
    different directions in lines that follow each other are of one."""
    reports: list[list[FoundPhase]] = []
    group, begin, end, above, directions = "", 0, 0, "", set[str]()
    for line in STATUS.finditer(text):
        is_apart = bool(directions and text[end : line.start()].strip())
        operation = str(line["direction"]).lower()
        if line["group"] or is_apart or operation in directions or not reports:
            # Of a report without the line of its first group, the next ones are not known.
            is_next = line["group"] and group and int(line["group"]) > int(group)
            if not is_next:
                reports.append([])
            group, directions = line["group"] or "", set()
            above, begin = text[begin : line.start()], line.start()
        end = line.end()
        if not line["group"] and not (operation == MIXED and directions):
            directions.add(operation)
            reports[-1].append(_sum(line, group, operation, above))
    return reports


def _sum(line: re.Match[str], group: str, operation: str, above: str) -> FoundPhase:
    rate = size(line["bw"] or line["bw2"])
    return FoundPhase(
        name=f"group {group}".strip(),
        operation=operation,
        group=group or "-",
        bandwidth_bytes_per_s=None if rate is None else float(rate),
        bytes=size(line["io"] or line["io2"]),
        runtime_s=int(line["ms"] or line["ms2"]) / 1000,
        iops=_iops_of_one(above, operation, rate),
    )


def has_rates(text: str) -> bool:
    return any(pattern.search(text) is not None for pattern in (_NEW, _OLD))


def read_rates(text: str) -> Iterator[FoundReport]:
    """Lines with the rates of jobs alone, as `grep` leaves them. Lines of different directions that
    follow each other are of one job."""
    lines = sorted((*_NEW.finditer(text), *_OLD.finditer(text)), key=lambda line: line.start())
    jobs, end = list[list[FoundPhase]](), 0
    for line in lines:
        directions = {phase.operation for phase in jobs[-1]} if jobs else set()
        if not jobs or line[1] in directions or text[end : line.start()].strip():
            jobs.append([])
        end, moved, runtime_s = line.end(), size(line["io"]), int(line["ms"]) / 1000
        jobs[-1].append(
            FoundPhase(
                name="job",
                operation=line[1],
                bandwidth_bytes_per_s=_rate(line, KIB, moved, runtime_s, None),
                iops=_scaled(line["iops"]),
                bytes=moved,
                runtime_s=runtime_s,
            )
        )
    note = "only the rates of its jobs are in the file: no settings"
    yield from (verification.without_settings(phases, None, note) for phases in jobs)


def _iops_of_one(jobs: str, direction: str, rate: float | None) -> float | None:
    """IOPS of the only job of that direction above the sum of a group, which is that of the job."""
    lines = [line for line in (*_NEW.finditer(jobs), *_OLD.finditer(jobs)) if line[1] == direction]
    own = None
    if len(lines) == 1:
        own = size(lines[0]["bw"])
    if own and rate and abs(own / rate - 1) < 0.01:
        return _scaled(lines[0]["iops"])
    return None


def _header(headers: list[dict[str, str]], entry: re.Match[str]) -> dict[str, str]:
    """Of the job of that name; with group_reporting a group has the name of one of its jobs, so
    the settings count only if all of the group have them."""
    same = [h for h in headers if h["group"] == entry["group"]]
    named = [h for h in same if h["name"] == entry["name"]]
    if int(entry["jobs"]) == 1 and named:
        same = named
    keys = ("rw", "bs", "engine", "depth")
    return {key: values.pop() for key in keys if len(values := {h[key] for h in same}) == 1}


_ISSUED = re.compile(
    r"^ +issued(?: rwts?)? *: total=(?:r=)?(\d{1,18})[/,](?:w=)?(\d{1,18})[/,](?:d=)?(\d{1,18})",
    re.M,
)
_PROCESSOR = re.compile(r"^  cpu +: usr=([\d.]{1,30})%, sys=([\d.]{1,30})%,", re.M)


def _issued(block: str, direction: str) -> int | None:
    """The requests of a job."""
    issued = _ISSUED.search(block)
    if issued is None:
        return None
    counts = list(map(int, issued.groups()))
    if direction == MIXED:
        return sum(counts)
    return counts[DIRECTIONS.index(direction)]


def _exact_iops(
    issued: int | None, runtime_s: float, printed: float | None, fits: bool
) -> float | None:
    """From the count of requests where fio prints whole numbers: 3 may be 3.98. Some versions print
    13.0k for 13.99k: then the count is right, if the bandwidth `fits` it."""
    if printed is None:
        return None
    if printed < 1000:
        return exact_rate(issued, runtime_s, printed, 1.0)
    if not issued or runtime_s < 1 or not fits:
        return printed
    counted, unit = issued / runtime_s, 1e3
    if printed >= 1e6:
        unit = 1e6
    if counted > 1.01 * printed and printed % unit == 0 and counted - printed < unit:
        return counted
    return printed


def _text_processor(block: str) -> dict[str, float]:
    lines = list(_PROCESSOR.finditer(block))
    if len(lines) > 1:
        raise none_found("fio", "two lines of `cpu` of one job")
    names = ("cpu_user_fraction", "cpu_system_fraction")
    return {
        name: figure(line[number]) / 100
        for line in lines
        for number, name in enumerate(names, start=1)
    }


def _text_phase(
    line: re.Match[str], entry: re.Match[str], header: dict[str, str], block: str, end: int
) -> FoundPhase:
    """`block` is the entry of the job, in which the figures of `line` reach to `end`."""
    direction, after = line[1], block[line.end() : end]
    request = _text_request(header.get("bs", ""), direction)
    iops = _scaled(line["iops"])
    runtime_s = int(line["ms"]) / 1000
    if not DURATION.contains(runtime_s):
        raise none_found("fio", f"{entry['name'][:80]}: a run time of {line['ms']} ms is none")
    base = _base(line, iops, request)
    issued = _issued(block, direction)
    exact = _exact_bytes(line, base, issued, request, runtime_s)
    moved = exact or size(line["io"], base)
    if exact and runtime_s >= 1:
        rate: float | None = exact / runtime_s
    else:
        requested = None
        if iops and request:
            requested = iops * request
        rate = _rate(line, base, moved, runtime_s, requested)
    started = _started(entry["rest"], runtime_s)
    return FoundPhase(
        name=entry["name"][:200],
        operation=direction,
        access_pattern=pattern(header.get("rw")),
        request_bytes=request,
        iodepth=count(header.get("depth")),
        jobs=int(entry["jobs"]),
        engine=header.get("engine"),
        bandwidth_bytes_per_s=rate,
        iops=_exact_iops(issued, runtime_s, iops, exact is not None),
        bytes=moved,
        runtime_s=runtime_s,
        started_utc=started,
        time_source=_TIME_SOURCE if started else None,
        metrics=_text_latencies(after, issued) | _text_processor(block),
        options={k: v for k, v in header.items() if k != "depth"},
        error=None if entry["err"] == "0" else f"fio's error {entry['err']}",
    )


def _exact_bytes(
    line: re.Match[str], base: int, issued: int | None, request: int | None, runtime_s: float
) -> int | None:
    """The bytes by the count of requests, if they fit the printed figures: bytes are rounded and
    counts are not, but these include requests that did not end in time."""
    if not issued or not request or not runtime_s:
        return None
    exact = issued * request
    if _fits_line(line, exact / runtime_s, base):
        return exact
    return None


_TIME_SOURCE = "fio's local time at the end, less its run time, zone not reported"


def _started(rest: str, runtime_s: float) -> str | None:
    ended = local_date(rest)
    if ended is None:
        return None
    started = datetime.fromisoformat(ended) - timedelta(seconds=runtime_s)
    return started.isoformat(timespec="milliseconds")


def _fits_line(line: re.Match[str], rate: float, base: int) -> bool:
    """Whether a rate is one of those that are printed."""
    decimal = line.groupdict().get("si")
    return _fits(rate, line["bw"], base) or _fits(rate, decimal, 1000)


def _digits(text: str) -> int:
    return len(re.sub(r"\D", "", text).lstrip("0"))


_ROUNDED_SHARE = 1e-4
"""Of a rate, by the ms of its run time. A larger difference is of requests that did not end."""


def _fits(rate: float, text: str | None, base: int) -> bool:
    """Whether a rate is that of a printed figure within its digits."""
    digits = int(re.sub(r"\D", "", text or "") or 0)
    reported = size(text or "", base)
    return bool(digits and reported and abs(rate / reported - 1) < 1 / digits + _ROUNDED_SHARE)


def _rate(
    line: re.Match[str], base: int, moved: int | None, runtime_s: float, requested: float | None
) -> float | None:
    """The median of the figures that the line has for it: fio drops digits of some (it prints 70.0
    for 70.9 MiB/s), but not of the others."""
    rate = size(line["bw"], base)
    measured = None
    if moved and runtime_s:
        measured = moved / runtime_s
    if not rate:
        return measured  # fio 2.x prints the rates of networks in bits
    if measured and _digits(line["bw"]) <= 2 < _digits(line["io"]):
        # Older fio prints whole KiB/s: 5 may be 5.9.
        if _fits(measured, line["bw"], base):
            return measured
        return None
    if measured and requested and abs(measured / requested - 1) < 0.01 < abs(rate / measured - 1):
        return measured  # bytes and requests agree; both printed rates are cut
    rates = [float(rate), measured, requested]
    rates.append(size(line["si"], 1000) if "si" in line.groupdict() else None)
    known = list(filter(None, rates))
    return statistics.median(each for each in known if abs(each / rate - 1) < 0.1)


def _base(line: re.Match[str], iops: float | None, request: int | None) -> int:
    """1000 if the job has kb_base=1000, which fio 2.x does not print: IOPS and the request size
    tell the two apart."""
    if "i" in line["bw"] or request is None or iops is None or iops < 200:
        return KIB
    # IOPS of jobs that ended at different times do not fit either of them.
    decimal = (size(line["bw"], 1000) or 0) / (iops * request)
    if abs(decimal - 1) < 0.01:
        return 1000
    return KIB


def _scaled(text: str) -> float | None:
    figure = number(text.rstrip("kKMG"))
    factor = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    if figure is None:
        return None
    return figure * factor


def _text_request(text: str, direction: str) -> int | None:
    """`4K-4K/8K-8K/4K-4K`, or `(R) 4096B-4096B, (W) ...`: the size of the direction."""
    if direction == MIXED:
        return only_one(_text_request(text, each) for each in DIRECTIONS)
    letter = direction[0].upper()
    new = re.search(rf"\({letter}\) ({_FIGURE})-({_FIGURE})", text)
    if new is not None:
        least, most = new[1], new[2]
    else:
        ranges = text.rstrip(", ").replace(",", "/").split("/")
        position = min(DIRECTIONS.index(direction), len(ranges) - 1)
        least, _, most = ranges[position].partition("-")
    if least == (most or least):
        return size(least)
    return None


_JOB = re.compile(
    r"\(groupid=\d{1,20}, jobs=\d{1,20}\): err= ?0\b.*\n(?:[ \t].*\n)*? {2}cpu {2,}:", re.M
)


def _why_no_result(text: str) -> str:
    if "(groupid=" not in text and "(g=" not in text:
        return "a line with fio's version, and no job"
    if _JOB.search(text):
        return "no job did I/O (ioengine=cpu does none)"
    return "no job has a result: the report is cut off, or all jobs failed"


_UNITS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}


_PERCENTILES = re.compile(
    r"^\s{1,99}(slat|clat|lat|sync) percentiles \((nsec|usec|msec)\):\n((?:\s{1,99}\|.*\n?)+)", re.M
)
_READ_PERCENTILES = {"clat": "completion", "lat": "total"}


def _text_latencies(block: str, requests: int | None) -> dict[str, float]:
    """The 99.99th percentile of too few requests is the slowest of them."""
    latencies: dict[str, float] = {}
    for name, unit, mean in re.findall(
        r"^\s{1,99}(slat|clat|lat) \((nsec|usec|msec)\)\s{0,99}: min=[^,\n]+, max=[^,\n]+, "
        r"avg=\s{0,99}([\d.]{1,30})",
        block,
        re.M,
    ):
        kind = {"slat": "submission", "clat": "completion", "lat": "total"}[name]
        metric = f"latency_{kind}_mean_s"
        if metric in latencies:
            raise none_found("fio", f"two lines of `{name}` in one direction of a job")
        latencies[metric] = figure(mean) * _UNITS[unit]
    tables = list(_PERCENTILES.finditer(block))
    if len(tables) != len(re.findall(r"^\s{1,99}\w{3,4} percentiles \(", block, re.M)):
        raise none_found("fio", "percentiles without their table")
    for table in tables:
        if table[1] not in _READ_PERCENTILES:
            continue
        kind = _READ_PERCENTILES[table[1]]
        rows = re.findall(r"([\d.]{1,30})th=\[\s{0,99}(\d{1,20})\]", table[3])
        ranks = [figure(rank) for rank, _ in rows]
        if ranks != sorted(set(ranks)):
            raise none_found("fio", "its percentiles are not in their order")
        for rank, value in rows:
            is_known = figure(rank) < 99.99 or (requests or 0) >= REQUESTS_OF_P9999
            if figure(rank) in (50, 95, 99, 99.9, 99.99) and is_known:
                name = f"{figure(rank):g}".replace(".", "")
                latencies[f"latency_{kind}_p{name}_s"] = int(value) * _UNITS[table[2]]
    return latencies
