"""fio 2.x and 3.x: JSON, JSON+, text reports, client and server, and logs of bandwidth and IOPS.

JSON: `io_bytes` is in KiB where there is no `io_kbytes` (before fio 2.18); latencies are in us in
fio 2.x and in ns in 3.x. The time stamp is that of the end. `All clients` repeats the others.
"""

import itertools
import json
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

from eeio_limits.quantities import DURATION
from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    FoundPhase,
    FoundReport,
    complete,
    count,
    figure,
    groups,
    local_date,
    none_found,
    number,
    only_one,
    size,
    utc,
)
from eeio_parsers.rules import Rules
from eeio_results.errors import ToolOutputError

_OBJECT = re.compile(r'^[ \t]{0,40}\{|\{(?=\s{0,99}"fio version")', re.M)
_DIRECTIONS = ("read", "write", "trim")
_MIXED = "mixed"
"""All directions as one (unified_rw_reporting). `both` reports them in addition."""
_ALL_CLIENTS = "All clients"
_PATTERNS = dict.fromkeys(("read", "write", "rw", "readwrite", "trim", "trimwrite"), "sequential")


def read_json(text: str) -> Iterator[FoundReport]:
    """Every report of a file, with noise before, between and behind them. Of the reports that
    --status-interval makes of one run, the last one. A text report in the file is named."""
    previous: FoundReport | None = None
    further = (_ALSO_TEXT,) if RECOGNIZED.search(text) else ()
    for report in _json_reports(text):
        report = replace(report, notes=(*report.notes, *further))
        if previous is not None and _continues(previous, report):
            report = replace(report, notes=(*report.notes, _SO_FAR))
        elif previous is not None:
            yield previous
        previous = report
    if previous is not None:
        yield previous


def _continues(before: FoundReport, after: FoundReport) -> bool:
    """Whether two reports are of one run: they began at the same time, and the later one moved
    more in a longer time."""
    names = [[(p.name, p.group, p.operation) for p in each.phases] for each in (before, after)]
    if not before.phases or names[0] != names[1] or _moved(after) < _moved(before):
        return False
    return _began_together(before.phases[0], after.phases[0])


def _began_together(one: FoundPhase, longer: FoundPhase) -> bool:
    if one.started_utc is None or longer.started_utc is None:
        return False
    if one.runtime_s is None or longer.runtime_s is None or longer.runtime_s <= one.runtime_s:
        return False
    begun = [datetime.fromisoformat(text) for text in (one.started_utc, longer.started_utc)]
    apart_s = abs((begun[1] - begun[0]).total_seconds())
    if one.starts_within_s == longer.starts_within_s == _WITHIN_MS_S:
        # A further run would begin after the end of the first one.
        return apart_s < min(_WITHIN_MS_S, one.runtime_s)
    is_longer = longer.runtime_s - one.runtime_s >= _LONGER_S
    return apart_s == 0.0 or (apart_s <= _SAME_START_S and is_longer)


_SAME_START_S, _LONGER_S = 1.05, 0.5
"""fio's time stamps may be of whole seconds."""
_WITHIN_MS_S = 0.1
"""How well the start is known where they are of milliseconds."""
_ALSO_TEXT = "a text report of fio in this file is not read: each form needs a file of its own"


def _json_reports(text: str) -> Iterator[FoundReport]:
    decoder = json.JSONDecoder()
    if "nan" in text or "inf" in text:
        # fio prints `-nan` for the mean of nothing, which is no JSON.
        text = re.sub(r"(:\s{0,9})-?(?:nan|inf)\b", r"\1null", text)
    place = 0
    while (begin := _OBJECT.search(text, place)) is not None:
        try:
            body, place = decoder.raw_decode(text, begin.end() - 1)
        except (ValueError, RecursionError) as error:
            if '"fio version"' in text[begin.start() : begin.start() + 200]:
                raise none_found(
                    "fio", f"the JSON is damaged or cut off: {error!s:.120}"
                ) from error
            place = begin.end()
            continue
        for one in _reports_in(body):
            try:
                yield replace(_report(one), begins_at=begin.start())
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
                raise none_found("fio", f"a value of another type: {error!r:.120}") from error


def _reports_in(body: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """A report, or those that a script has put into lists and objects of its own."""
    if depth > _MOST_WRAPPERS:
        return
    if isinstance(body, dict):
        if "jobs" in body or "client_stats" in body:
            yield body
            return
        body = list(body.values())
    if isinstance(body, list):
        for one in body:
            yield from _reports_in(one, depth + 1)


_MOST_WRAPPERS = 5


def _report(body: Mapping[str, Any]) -> FoundReport:
    entries = [
        job
        for job in [*body.get("client_stats", ()), *body.get("jobs", ())]
        if isinstance(job, dict) and job.get("jobname") != _ALL_CLIENTS
    ]
    ended_s, within_s = body.get("timestamp"), cast(float | None, 1.0)
    if body.get("timestamp_ms"):
        ended_s, within_s = body["timestamp_ms"] / 1000, _WITHIN_MS_S
    if len({job.get("groupid") for job in entries}) > 1:
        within_s = None  # The end of the last group; the others ended before.
    found, clients = [], dict.fromkeys(job["hostname"] for job in entries if "hostname" in job)
    for job in entries:
        options = {
            sys.intern(str(name)): sys.intern(str(value))
            for name, value in {
                **body.get("global options", {}),
                **job.get("job options", {}),
            }.items()
        }
        if skipped := str(options.get("rw", options.get("readwrite", ""))).partition(":")[2]:
            options["rw:N"] = skipped
        same = [one for one in entries if _place(one) == _place(job)]
        apart = any(one in job for one in _DIRECTIONS)
        for direction in _DIRECTIONS if apart else (_MIXED,):
            phase = _of_direction(
                job, direction, options, (ended_s, within_s), _jobs(options, len(same))
            )
            if phase is not None:
                found.append((str(job.get("groupid", 0)), phase))
    version = str(body.get("fio version", "")).removeprefix("fio-") or None
    failed = [job["error"] for job in entries if job.get("error")] if not found else []
    notes = (f"all jobs failed, the first with fio's error {failed[0]}",) if failed else ()
    return FoundReport(groups(found), version, host=next(iter(clients), None), notes=notes)


def _place(job: Mapping[str, Any]) -> tuple[object, ...]:
    return job.get("groupid"), job.get("jobname"), job.get("hostname")


def _jobs(options: Mapping[str, Any], entries: int) -> int | None:
    """The jobs behind an entry. With group_reporting, which the command line may give unseen, one
    entry has all jobs of its group: their number is known if each section has its `numjobs`."""
    of_section = count(options.get("numjobs"))
    if "group_reporting" in options or (entries == 1 and of_section not in (None, 1)):
        return of_section
    return 1


def _of_direction(
    job: Mapping[str, Any],
    direction: str,
    options: Mapping[str, Any],
    ended: tuple[float | None, float | None],
    jobs: int | None,
) -> FoundPhase | None:
    body = job.get(direction)
    if not isinstance(body, dict):
        return None
    moved = body.get("io_bytes") or 0
    if not moved and not body.get("total_ios"):
        return None
    moved = round(moved if "io_kbytes" in body else moved * KIB)
    rate = body.get("bw_bytes")
    runtime_s = body.get("runtime", 0) / 1000
    if rate is None:
        # KiB/s as an integer; bytes over the run time have more digits.
        rate = body.get("bw", 0) * KIB
        exact = moved / runtime_s if runtime_s else 0
        rate = exact if abs(exact - rate) <= KIB else rate
    started, source, within_s = _start(job, options, ended, runtime_s)
    return FoundPhase(
        name=str(job.get("jobname", ""))[:200],
        operation=direction,
        access_pattern=_pattern(options.get("rw") or options.get("readwrite")),
        request_bytes=_request_bytes(options, direction),
        direct=_switch(options.get("direct"), options.get("buffered")),
        iodepth=count(options.get("iodepth")),
        jobs=jobs,
        engine=options.get("ioengine"),
        bandwidth_bytes_per_s=float(rate),
        iops=_requests_per_s(body, runtime_s),
        bytes=moved,
        runtime_s=runtime_s,
        started_utc=started,
        time_source=source,
        starts_within_s=within_s,
        metrics=_latencies(body) | _processor(job),
        options=options,
        error=f"fio's error {job['error']}" if job.get("error") else None,
    )


def _start(
    job: Mapping[str, Any],
    options: Mapping[str, Any],
    ended: tuple[float | None, float | None],
    runtime_s: float,
) -> tuple[str | None, str | None, float | None]:
    """When the I/O began, where that is from, and its uncertainty in s; None where not known."""
    if job.get("job_start"):
        # The run time is that after the ramp.
        within_s = None if "ramp_time" in options else _WITHIN_MS_S
        return utc(job["job_start"] / 1000), "fio's start of the job", within_s
    ended_s, within_s = ended
    if not ended_s:
        return None, None, None
    if "exec_postrun" in options:
        within_s = None  # fio's end is that of the command which follows the job
    source = "fio's time stamp at the end, less its run time"
    return utc(ended_s - runtime_s), source, within_s


def _requests_per_s(body: Mapping[str, Any], runtime_s: float) -> float:
    """Older fio prints whole numbers, or two decimals; its count of requests over the run time has
    more digits."""
    printed, requests = body.get("iops", 0), body.get("total_ios")
    within = 1.0 if isinstance(printed, int) else 0.01
    return _exact(
        requests if isinstance(requests, int) else None, runtime_s, figure(printed), within
    )


def _exact(requests: int | None, runtime_s: float, printed: float, within: float) -> float:
    """The count of requests over the run time where it is the printed rate but for its rounding."""
    if requests is None or not runtime_s:
        return printed
    exact = requests / runtime_s
    return exact if abs(exact - printed) <= within else printed


def _processor(job: Mapping[str, Any]) -> dict[str, float]:
    """Shares of the job's own run time; of one processor."""
    names = {"usr_cpu": "cpu_user_fraction", "sys_cpu": "cpu_system_fraction"}
    return {name: job[key] / 100 for key, name in names.items() if job.get(key) is not None}


def _latencies(body: Mapping[str, Any]) -> dict[str, float]:
    """Mean and percentiles with their kind: submission, completion, total."""
    found = {}
    for key, kind in (("slat", "submission"), ("clat", "completion"), ("lat", "total")):
        for name, unit in ((f"{key}_ns", 1e-9), (key, 1e-6)):
            of = body.get(name)
            if not isinstance(of, dict) or not of.get("mean"):
                continue
            found[f"latency_{kind}_mean_s"] = of["mean"] * unit
            for rank, value in (of.get("percentile") or {}).items():
                share = number(rank)
                if share in (50, 95, 99, 99.9, 99.99) and value:
                    found[f"latency_{kind}_p{f'{share:g}'.replace('.', '')}_s"] = value * unit
    return found


def _pattern(rw: object) -> str | None:
    name = str(rw).partition(":")[0]
    return "random" if name.startswith("rand") else _PATTERNS.get(name)


def _switch(direct: object, buffered: object = None) -> bool | None:
    if direct is not None:
        return str(direct) not in ("0", "false")
    return None if buffered is None else str(buffered) in ("0", "false")


def _request_bytes(options: Mapping[str, Any], direction: str) -> int | None:
    """The one size of the direction; of `4k,8k` the first is that of reads. None for several."""
    if any(name in options for name in ("bsrange", "blocksize_range", "bssplit")):
        return None
    if direction == _MIXED:
        return only_one(_request_bytes(options, one) for one in _DIRECTIONS)
    sizes = str(options.get("bs") or options.get("blocksize") or "").split(",")
    place = min(_DIRECTIONS.index(direction), len(sizes) - 1)
    base = 1000 if options.get("kb_base") == "1000" else KIB
    return size(sizes[place] or sizes[0], base)


# ---- text reports ----

RECOGNIZED = re.compile(
    r"\(groupid=\d{1,20}, jobs=\d{1,20}\): err=|^(?:<[^>\n]{1,80}> )?fio-\d", re.M
)
_BEGIN = re.compile(r"^fio-\d", re.M)
_CLIENT = re.compile(r"^hostname=([^,\n]{1,80}),[^\n]* fio=fio-(\S+?),", re.M)
_HEADER = re.compile(
    r"^(?P<name>.{1,200}?): \(g=(?P<group>\d{1,20})\): rw=(?P<rw>\w{1,80}), bs=(?P<bs>.{1,120}?)"
    r",? ioengine=(?P<engine>[\w./-]+), iodepth=(?P<depth>\d{1,20})", re.M,
)  # fmt: skip
_ENTRY = re.compile(
    r"^(?P<name>.{0,200}?): \(groupid=(?P<group>\d{1,20}), jobs=(?P<jobs>\d{1,20})\): "
    r"err=\s{0,99}(?P<err>-?\d{1,20})(?P<rest>[^\n]*)", re.M,
)  # fmt: skip
_BEGINNING = r"^\s{0,99}(read|write|trim|mixed)\s{0,99}:\s{0,99}"
_FIGURE = r"\d[\d.]{0,30}(?:\w{0,9}| B)"
_OLD = re.compile(
    rf"{_BEGINNING}io=(?P<io>{_FIGURE}), bw=(?P<bw>{_FIGURE})/s, "
    rf"iops=(?P<iops>{_FIGURE})\s{{0,99}}, runt=\s{{0,99}}(?P<ms>\d{{1,20}})\s{{0,99}}msec", re.M,
)  # fmt: skip
_NEW = re.compile(
    # Without `/s` in the lines of a client.
    rf"{_BEGINNING}IOPS=(?P<iops>{_FIGURE}), BW=(?P<bw>{_FIGURE})(?:/s)? "
    rf"\((?P<si>{_FIGURE})(?:/s)?\)"
    rf"\s{{0,99}}\((?P<io>{_FIGURE})/(?P<ms>\d{{1,20}})msec\)", re.M,
)  # fmt: skip
_STATUS = re.compile(r"^Run status group|^Disk stats", re.M)


def read_text(text: str) -> Iterator[FoundReport]:
    text = re.sub(r"^<[^>\n]{1,80}> ", "", text, flags=re.M)
    client = _CLIENT.search(text)
    # All servers' answers are one report; so is one whose version was cut off.
    begins = [0] if client else list(_begins(text)) or [0]
    before = 0
    found, lost = list[FoundReport](), list[ToolOutputError]()
    process, settings, version = None, list[dict[str, str]](), None
    ends = [*begins[1:], len(text)]
    for start, end in zip(begins, ends, strict=True):
        # A report's settings are above its version, and so are those of the next one.
        entries = list(_ENTRY.finditer(text, start, end))
        limit = entries[0].start() if entries and not client else end
        headers = [match.groupdict() for match in _HEADER.finditer(text, before, limit)]
        before = entries[-1].end() if entries else start
        # With --status-interval, fio prints a run's figures so far, and again at its end.
        process, above = _process(text[start:end]), process
        is_complete = bool(headers or _BEGIN.match(text, start))
        is_same = bool(found) and not is_complete and process is not None and process == above
        if is_same:
            headers, version = settings, found[-1].version
        settings = headers
        try:
            report = _text_report(text[start:end], headers)
            is_sum = all(entry["name"].strip() == _ALL_CLIENTS for entry in entries)
            if not client and not is_sum and _STATUS.search(text, before, end) is None:
                raise none_found("fio", "the report is cut off before `Run status`")
        except ToolOutputError as error:
            lost.append(error)
            continue
        report = replace(_on_disks(report, text[before:end]), begins_at=start)
        report, version = replace(report, version=report.version or version), None
        if is_same and _moved(found[-1]) < _moved(report):
            found.pop()
            report = replace(report, notes=(*report.notes, _SO_FAR))
        found.append(replace(report, host=client[1], version=client[2]) if client else report)
    yield from complete(found, lost)


_MARKS = re.compile(
    rf"(?P<banner>{_BEGIN.pattern})|(?P<settings>{_HEADER.pattern.replace('?P<', '?P<s_')})"
    rf"|(?P<entry>{_ENTRY.pattern.replace('?P<', '?P<e_')})|(?P<status>^Run status group 0\b)", re.M
)  # fmt: skip


def _begins(text: str) -> Iterator[int]:
    """Where each report begins: at its version, or, in notes without that line, at the settings or
    the first job after the end of a report, or where the groups begin again."""
    ended, settings, last = False, None, -1
    grouped, begun = set[tuple[str, str]](), False
    for mark in _MARKS.finditer(text):
        if mark["status"]:
            ended, settings = True, None
        elif mark["settings"]:
            settings = mark.start() if settings is None else settings
        elif mark["banner"]:
            yield mark.start()
            ended, settings, last, begun = False, None, -1, True
            grouped.clear()
        elif mark["e_name"].strip() != _ALL_CLIENTS:
            group, key = int(mark["e_group"]), (mark["e_group"], mark["e_name"])
            # With group_reporting a group has one entry.
            again = int(mark["e_jobs"]) > 1 and key in grouped
            if not begun or ended or again or group < last:
                yield mark.start() if settings is None else settings
                ended, begun = False, True
                grouped.clear()
            last, settings = group, None
            grouped.add(key)


_PROCESS = re.compile(r"^[^\n]{0,200}?: \(groupid=\d{1,20}, jobs=\d{1,20}\): err=[^\n]*? (pid=\d+)",
                      re.M)  # fmt: skip


def _process(report: str) -> str | None:
    """The processes of a report's jobs."""
    return " ".join(_PROCESS.findall(report)) or None


_SO_FAR = "figures that fio printed during this run (--status-interval) are left out"


def _moved(report: FoundReport) -> int:
    return sum(phase.bytes or 0 for phase in report.phases)


_DISK = re.compile(r"^\s{1,99}([\w.!-]{1,80}): ios=\d", re.M)


def _on_disks(report: FoundReport, after: str) -> FoundReport:
    """With the drives that fio names below the report."""
    disks = ", ".join(dict.fromkeys(_DISK.findall(after)))
    if not disks:
        return report
    phases = (replace(p, options={**p.options, "disks": disks}) for p in report.phases)
    return replace(report, phases=tuple(phases))


_RATE = re.compile(r"^[ \t]{1,99}(?:read|write|mixed)[ \t]{0,99}:", re.M)


def _text_report(text: str, headers: list[dict[str, str]]) -> FoundReport:
    entries = list(_ENTRY.finditer(text))
    if not entries:
        raise none_found("fio", "no job has a result: the report is cut off, or all jobs failed")
    found = []
    # A client's sum counts where its servers' own entries are not there.
    only_sum = all(entry["name"].strip() == _ALL_CLIENTS for entry in entries)
    for entry, after in zip(entries, [*entries[1:], None], strict=True):
        if entry["name"].strip() == _ALL_CLIENTS and not only_sum:
            continue
        block = text[entry.end() : after.start() if after else len(text)]
        status = _STATUS.search(block)
        block = block[: status.start()] if status else block
        header = _header(headers, entry)
        lines = [*_NEW.finditer(block), *_OLD.finditer(block)]
        ends = [*(line.start() for line in lines[1:]), len(block)]
        apart = any(line[1] != _MIXED for line in lines)
        for line, end in zip(lines, ends, strict=False):
            if line[1] == _MIXED and apart:
                continue
            phase = _text_phase(line, entry, header, block, end)
            if phase.started_utc and len({one["group"] for one in entries}) == 1:
                phase = replace(phase, starts_within_s=1.0)
            found.append((entry["group"], phase))
        if not lines and int(entry["err"]) == 0 and _RATE.search(block):
            raise none_found("fio", f"{entry['name']}: the line of its bandwidth is not understood")
    if not found:
        raise none_found("fio", "no job has a result: the report is cut off, or all jobs failed")
    started = re.search(
        r"^Starting (?:(\d{1,20}) process\w{0,80})?(?: and )?(?:(\d{1,20}) thread\w{0,80})?",
        text,
        re.M,
    )
    wanted = sum(int(number or 0) for number in started.groups()) if started else 0
    reported = sum(int(entry["jobs"]) for entry in entries if entry["name"].strip() != _ALL_CLIENTS)
    if reported < wanted and not only_sum:
        raise none_found("fio", f"results of {reported} of {wanted} jobs: the report is cut off")
    version = re.match(r"fio-(\S{1,300})", text)
    return FoundReport(groups(found), version[1] if version else None)


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
    """The sums of groups without their jobs, as notes quote them. Groups count from 0 again in the
    next report. Without the line of their group, sums of different directions in lines that follow
    each other are of one."""
    reports: list[list[FoundPhase]] = []
    group, begin, end, above, directions = "", 0, 0, "", set[str]()
    for line in STATUS.finditer(text):
        is_apart = bool(directions and text[end : line.start()].strip())
        operation = str(line["direction"]).lower()
        if line["group"] or is_apart or operation in directions or not reports:
            # Of a report without the line of its first group, the next ones are not known.
            if not (line["group"] and group and int(line["group"]) > int(group)):
                reports.append([])
            group, directions = line["group"] or "", set()
            above, begin = text[begin : line.start()], line.start()
        end = line.end()
        if line["group"] or (operation == _MIXED and directions):
            continue
        directions.add(operation)
        rate = size(line["bw"] or line["bw2"])
        reports[-1].append(FoundPhase(
            name=f"group {group}".strip(), operation=operation, group=group or "-",
            bandwidth_bytes_per_s=None if rate is None else float(rate),
            bytes=size(line["io"] or line["io2"]),
            runtime_s=int(line["ms"] or line["ms2"]) / 1000,
            iops=_iops_of_one(above, operation, rate),
        ))  # fmt: skip
    notes = ["only the sums of its groups are in the file: neither jobs nor settings"]
    if lost := [line[0].strip() for line in _SUM.finditer(STATUS.sub("", text))]:
        notes.append(f"{len(lost)} sums of groups are not read, the first: {lost[0]:.80}")
    if not any(reports):
        raise none_found("fio", notes[1] if lost else "its groups have no line of their sums")
    yield from (FoundReport(tuple(phases), notes=tuple(notes)) for phases in reports if phases)


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
        jobs[-1].append(FoundPhase(
            name="job", operation=line[1],
            bandwidth_bytes_per_s=_rate(line, KIB, moved, runtime_s, None),
            iops=_scaled(line["iops"]), bytes=moved, runtime_s=runtime_s,
        ))  # fmt: skip
    note = "only the rates of its jobs are in the file: no settings"
    yield from (FoundReport(tuple(phases), notes=(note,)) for phases in jobs)


def _iops_of_one(jobs: str, direction: str, rate: float | None) -> float | None:
    """IOPS of the only job of that direction above the sum of a group, which is that of the job."""
    lines = [line for line in (*_NEW.finditer(jobs), *_OLD.finditer(jobs)) if line[1] == direction]
    own = size(lines[0]["bw"]) if len(lines) == 1 else None
    return _scaled(lines[0]["iops"]) if own and rate and abs(own / rate - 1) < 0.01 else None


def _header(headers: list[dict[str, str]], entry: re.Match[str]) -> dict[str, str]:
    """Of the job of that name; with group_reporting a group has the name of one of its jobs, so
    the settings count only if all of the group have them."""
    same = [h for h in headers if h["group"] == entry["group"]]
    named = [h for h in same if h["name"] == entry["name"]]
    if int(entry["jobs"]) == 1 and named:
        same = named
    keys = ("rw", "bs", "engine", "depth")
    return {
        key: values.pop()
        for key in keys
        if len(values := {h[key] for h in same}) == 1
    }  # fmt: skip


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
    counts = [int(one) for one in issued.groups()]
    return sum(counts) if direction == _MIXED else counts[_DIRECTIONS.index(direction)]


def _exact_iops(
    issued: int | None, runtime_s: float, printed: float | None, fits: bool
) -> float | None:
    """From the count of requests where fio prints whole numbers: 3 may be 3.98. Some versions print
    24.0k for 24.99k: then the count is right, if the bandwidth `fits` it."""
    if printed is None:
        return None
    if printed >= 1000:
        counted = issued / runtime_s if issued and runtime_s >= 1 and fits else printed
        return counted if 1.01 < counted / printed < 1.05 else printed
    return _exact(issued, runtime_s, printed, 1.0)


def _text_processor(block: str) -> dict[str, float]:
    found = _PROCESSOR.search(block)
    if found is None:
        return {}
    names = ("cpu_user_fraction", "cpu_system_fraction")
    return {name: figure(found[place]) / 100 for place, name in enumerate(names, start=1)}


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
    printed = size(line["io"], base)
    issued = _issued(block, direction)
    exact = None if issued is None or request is None else issued * request
    # Bytes are rounded and counts are not, but these include requests that did not end in time.
    fits = exact and runtime_s and any(
        _fits(exact / runtime_s, text, unit)
        for text, unit in ((line["bw"], base), (line.groupdict().get("si"), 1000))
    )  # fmt: skip
    moved = exact if fits else printed
    wanted = iops * request if iops and request else None
    ended = local_date(entry["rest"])
    started = ended and (datetime.fromisoformat(ended) - timedelta(seconds=runtime_s)).isoformat(
        timespec="milliseconds"
    )
    return FoundPhase(
        name=entry["name"][:200],
        operation=direction,
        access_pattern=_pattern(header.get("rw")),
        request_bytes=request,
        iodepth=count(header.get("depth")),
        jobs=int(entry["jobs"]),
        engine=header.get("engine"),
        bandwidth_bytes_per_s=moved / runtime_s
        if moved and moved == exact and runtime_s >= 1
        else _rate(line, base, moved, runtime_s, wanted),
        iops=_exact_iops(issued, runtime_s, iops, bool(fits)),
        bytes=moved,
        runtime_s=runtime_s,
        started_utc=started,
        time_source=None
        if started is None
        else "fio's local time at the end, less its run time, zone not reported",
        metrics=_text_latencies(after) | _text_processor(block),
        options={k: v for k, v in header.items() if k != "depth"},
        error=None if entry["err"] == "0" else f"fio's error {entry['err']}",
    )


def _digits(text: str) -> int:
    return len(re.sub(r"\D", "", text).lstrip("0"))


def _fits(rate: float, text: str | None, base: int) -> bool:
    """Whether a rate is that of a printed figure within its digits."""
    digits = int(re.sub(r"\D", "", text or "") or 0)
    reported = size(text or "", base)
    return bool(digits and reported and abs(rate / reported - 1) < 1 / digits + 0.001)


def _rate(
    line: re.Match[str], base: int, moved: int | None, runtime_s: float, requested: float | None
) -> float | None:
    """The median of the figures that the line has for it: fio drops digits of some (it prints 70.0
    for 70.9 MiB/s), but not of the others."""
    rate = size(line["bw"], base)
    if not rate:
        # fio 2.x prints the rates of networks in bits.
        return moved / runtime_s if moved and runtime_s else None
    measured = moved / runtime_s if moved and runtime_s else None
    if measured and _digits(line["bw"]) <= 2 < _digits(line["io"]):
        # Older fio prints whole KiB/s: 5 may be 5.9.
        return measured if _fits(measured, line["bw"], base) else None
    if measured and requested and abs(measured / requested - 1) < 0.01 < abs(rate / measured - 1):
        return measured  # bytes and requests agree; both printed rates are cut
    found = [float(rate), measured, requested]
    found.append(size(line["si"], 1000) if "si" in line.groupdict() else None)
    return statistics.median(one for one in found if one and abs(one / rate - 1) < 0.1)


def _base(line: re.Match[str], iops: float | None, request: int | None) -> int:
    """1000 if the job has kb_base=1000, which fio 2.x does not print: IOPS and the request size
    tell the two apart."""
    if "i" in line["bw"] or request is None or iops is None or iops < 200:
        return KIB
    # IOPS of jobs that ended at different times do not fit either of them.
    decimal = (size(line["bw"], 1000) or 0) / (iops * request)
    return 1000 if abs(decimal - 1) < 0.01 else KIB


def _scaled(text: str) -> float | None:
    figure = number(text.rstrip("kKMG"))
    factor = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    return None if figure is None else figure * factor


def _text_request(text: str, direction: str) -> int | None:
    """`4K-4K/8K-8K/4K-4K`, or `(R) 4096B-4096B, (W) ...`: the size of the direction."""
    if direction == _MIXED:
        return only_one(_text_request(text, one) for one in _DIRECTIONS)
    letter = direction[0].upper()
    new = re.search(rf"\({letter}\) ({_FIGURE})-({_FIGURE})", text)
    if new is not None:
        least, most = new[1], new[2]
    else:
        ranges = text.rstrip(", ").replace(",", "/").split("/")
        place = min(_DIRECTIONS.index(direction), len(ranges) - 1)
        least, _, most = ranges[place].partition("-")
    return size(least) if least == (most or least) else None


_UNITS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}


_PERCENTILES = re.compile(
    r"^\s{1,99}(clat|lat) percentiles \((nsec|usec|msec)\):\n((?:\s{1,99}\|.*\n?)+)", re.M
)


def _text_latencies(block: str) -> dict[str, float]:
    found = {}
    for name, unit, mean in re.findall(
        r"^\s{1,99}(slat|clat|lat) \((nsec|usec|msec)\)\s{0,99}: min=[^,\n]+, max=[^,\n]+, "
        r"avg=\s{0,99}([\d.]{1,30})",
        block, re.M,
    ):  # fmt: skip
        kind = {"slat": "submission", "clat": "completion", "lat": "total"}[name]
        found[f"latency_{kind}_mean_s"] = figure(mean) * _UNITS[unit]
    table = _PERCENTILES.search(block)
    if table is not None:
        kind = "completion" if table[1] == "clat" else "total"
        for rank, value in re.findall(r"([\d.]{1,30})th=\[\s{0,99}(\d{1,20})\]", table[3]):
            if figure(rank) in (50, 95, 99, 99.9, 99.99):
                name = f"{figure(rank):g}".replace(".", "")
                found[f"latency_{kind}_p{name}_s"] = int(value) * _UNITS[table[2]]
    return found


# ---- terse output ----

TERSE = re.compile(
    # Version 2 is known by its percentiles.
    r"^(?:(?P<form>[345]);fio-(?P<version>[^;\n]{1,80})|2(?=(?:;[^;\n]{0,200}){15};[\d.]{1,30}%=))"
    r"(?P<cells>;[^\n]*)$", re.M,
)  # fmt: skip
_TERSE_REST = 34
"""Cells behind those of the directions: processor, depths, latencies."""


def read_terse(text: str) -> Iterator[FoundReport]:
    """`--output-format=terse`, versions 2 to 5: a line for each job, or for each group with
    group_reporting. Its percentiles may be of completion or of the total, which it does not say."""
    for line in TERSE.finditer(text):
        name, group, error, *cells = line["cells"][1:].split(";")
        width = 47 if line["form"] == "5" else 41
        directions = _DIRECTIONS[: 2 if line["form"] == "3" else 3]
        blocks = [cells[width * k : width * (k + 1)] for k in range(len(directions))]
        is_known = all(
            re.fullmatch(r"\d{1,18}(?:;\d{1,18}){3}", ";".join(block[:4]))
            and all("%=" in cell for cell in block[12:32])
            for block in blocks
        )
        if not is_known or len(cells) < width * len(directions) + _TERSE_REST:
            raise none_found("fio", f"terse output of {name[:80]} is cut off, or of another form")
        phases = tuple(
            replace(_terse(block), name=name, operation=direction, group=group,
                    error=None if error == "0" else f"fio's error {error}")
            for direction, block in zip(directions, blocks, strict=True) if block[0] != "0"
        )  # fmt: skip
        note = "fio's terse output has neither settings nor the number of jobs of a line"
        yield FoundReport(phases, line["version"], notes=(note,))


def _terse(block: Sequence[str]) -> FoundPhase:
    """In KiB, KiB/s and ms, latencies in us."""
    moved, rate, requests, ms = (int(cell) for cell in block[:4])
    exact = moved * 1000 / ms if ms else 0.0
    agrees = ms > 0 and abs(exact - rate) <= 1 + 1000 / ms
    means = {"submission": number(block[6]), "completion": number(block[10]),
             "total": number(block[34])}  # fmt: skip
    return FoundPhase(
        name="", operation=None,
        bandwidth_bytes_per_s=exact * KIB if agrees else None,
        # Its decimals are cut, which counts in a small number.
        iops=requests if requests >= 100 else None,
        bytes=moved * KIB, runtime_s=ms / 1000,
        metrics={f"latency_{kind}_mean_s": mean * 1e-6 for kind, mean in means.items() if mean},
    )  # fmt: skip


# ---- logs ----

_CELL = r"\s{0,99}\d{1,20},"
_REST = r"\s{0,99}\d{1,20}(?:,\s{0,99}\d{1,20})?(?:,\s{0,99}\S{1,300})?\s{0,99}(?:\n|$)"
LOG = re.compile(rf"{_CELL}{_CELL}\s{{0,99}}[012],{_REST}")
LOG_OF_BOTH = re.compile(rf"{_CELL}{_CELL}{_CELL}\s{{0,99}}[012],{_REST}")
"""With log_window_value=both: the mean and the maximum of each interval."""
LOG_KINDS = ("bw", "iops", "lat", "clat", "slat")
_LOG_NAME = re.compile(rf"_({'|'.join(LOG_KINDS)})(?:\.\d{{1,20}})?\.log(?:\.[\w.-]{{1,80}})?$")
"""The logs have no header; their name says whether a value is KiB/s, IOPS or ns. A server's have
the name of the host at the end."""
_SINCE_1970_MS = 10**11
"""Times from here on are not those since fio's start (log_unix_epoch)."""
_SINGLE = "a log of single requests has no mean rate; use fio's report, or log_avg_msec"
_UNEVEN = "a log without equal intervals has no mean rate; use fio's report"


def is_log(kind: str, head: str, path: Path) -> bool:
    """A log without the usual name is taken as one of latency: its values are no rates."""
    name = _LOG_NAME.search(path.name)
    if name is None:
        return kind == "lat" and LOG.match(head) is not None
    return name[1] == kind and any(form.match(head) for form in (LOG, LOG_OF_BOTH))


def read_log(text: str, kind: str) -> Iterator[FoundReport]:
    """A log of bandwidth (KiB/s), IOPS or latency: time (ms), value, direction, size. The mean over
    equal intervals is a rate; a log of single requests has their sizes, and none."""
    points: dict[int, list[tuple[float, float]]] = {}
    sizes: dict[int, set[int]] = {}
    column = 2 if LOG.match(text) else 3
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < column + 2:
            raise none_found("fio", f"a line of a log with {len(cells)} columns: {line[:60]!r}")
        direction = int(cells[column])
        points.setdefault(direction, []).append((int(cells[0]) / 1000, figure(cells[1])))
        sizes.setdefault(direction, set()).add(int(cells[column + 1]))
    notes: dict[str, None] = {}
    phases = []
    for direction, of_direction in points.items():
        phase = _of_log(of_direction, kind)
        if sizes[direction] != {0}:
            notes[_SINGLE] = None
            only = sizes[direction].pop() if len(sizes[direction]) == 1 else None
            phase = replace(phase, request_bytes=only, bandwidth_bytes_per_s=None, iops=None)
        elif not (phase.bandwidth_bytes_per_s or phase.iops):
            notes[_UNEVEN] = None
        phases.append(replace(phase, operation=_DIRECTIONS[direction]))
    yield FoundReport(tuple(phases), notes=tuple(notes))


def _of_log(points: Sequence[tuple[float, float]], kind: str) -> FoundPhase:
    """Of one direction, by the mean of its values at times in s."""
    steps_s = [after - before for (before, _), (after, _) in itertools.pairwise(points)]
    is_even = bool(steps_s) and max(steps_s) < 1.2 * min(steps_s) and min(steps_s) > 0
    mean = sum(value for _, value in points) / len(points) if is_even else None
    first_s, last_s = points[0][0], points[-1][0]
    begun_s = first_s - statistics.median(steps_s) if steps_s else first_s
    is_of_epoch = first_s >= _SINCE_1970_MS / 1000
    return FoundPhase(
        name=f"{kind} log",
        operation=None,
        bandwidth_bytes_per_s=mean * KIB if mean is not None and kind == "bw" else None,
        iops=mean if kind == "iops" else None,
        runtime_s=last_s - begun_s if is_of_epoch else last_s,
    )


def _flushes(options: Mapping[str, str]) -> bool:
    return options.get("end_fsync") == "1" or options.get("sync") in ("1", "sync", "dsync")


RULES = {"fio": Rules(groups_at_once=True, flushes=_flushes, formats=("fio-json",))}
FORMATS = (
    Format("fio", "json", read_json, keys=("fio version", "jobs")),
    Format("fio", "json", read_json, keys=("fio version", "client_stats")),
    Format("fio", "text", read_text, begins=RECOGNIZED),
    Format("fio", "terse", read_terse, begins=TERSE),
    *(
        Format("fio", f"log of {kind}", partial(read_log, kind=kind), fits=partial(is_log, kind))
        for kind in LOG_KINDS
    ),
    Format("fio", "text", read_status, fits_at_last=lambda text: bool(STATUS.search(text))),
    Format("fio", "text", read_rates, fits_at_last=has_rates),
)
