"""fio's JSON, as fio reports it: jobs with their directions, of 2.x and 3.x.

`io_bytes` is in KiB in fio before 2.18, which the rate and the run time show. Latencies are in us
in fio 2.x and in ns in 3.x. The entry `All clients` repeats the others.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eeio.errors import LimitError, ToolOutputError
from eeio.units.quantities import COUNT, DURATION, NUMBER, SIZE
from eeio_parsers.found import KIB, figure, none_found, unique

DIRECTIONS = ("read", "write", "trim")
MIXED = "mixed"
"""All directions as one (unified_rw_reporting). `both` reports them in addition."""
ALL_CLIENTS = "All clients"
WITHIN_MS_S = 0.1
"""How well a time stamp is known that is of milliseconds."""

_OBJECT = re.compile(r'^[ \t]{0,40}\{|\{(?=\s{0,99}"fio version")', re.M)
_NO_NUMBER = re.compile(r"(: ?)-?(?:nan|inf)\b")
"""fio prints `-nan` for the mean of no request, which is no JSON."""
_MOST_WRAPPERS = 5
_KINDS = (("slat", "submission"), ("clat", "completion"), ("lat", "total"))
_RANKS = {50.0: "p50", 95.0: "p95", 99.0: "p99", 99.9: "p999", 99.99: "p9999"}
REQUESTS_OF_P9999 = 10_000
"""With fewer requests, fio reports the slowest one as the 99.99th percentile."""
_AGREES = 0.01


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction in which a job had requests. `latencies` are in s, by kind (submission,
    completion, total) and statistic (mean, max, p50 ...). `unfinished` counts short and dropped
    requests."""

    operation: str
    bytes: int
    runtime_s: float
    requests: int | None
    iops: float | None
    latencies: Mapping[tuple[str, str], float]
    unfinished: Mapping[str, int]

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        """None where the run time is below fio's ms."""
        if self.runtime_s:
            return self.bytes / self.runtime_s
        return None


@dataclass(frozen=True, slots=True)
class Job:
    """One entry: a job, or all jobs of its group with group_reporting. `started_s` is Unix time;
    `runtimes_s` is the sum of the run times of the entry's jobs; `elapsed_s` is the time since the
    start of fio, rounded up."""

    name: str
    group: str
    host: str | None
    error: int
    options: Mapping[str, str]
    directions: tuple[Direction, ...]
    processor: Mapping[str, float]
    latency_depth: int | None
    started_s: float | None
    runtimes_s: float | None
    elapsed_s: float | None
    other_section: str | None = None
    """The section that the options are of, if the entry has the name of another one: it is the sum
    of several sections then, whose options fio does not report."""


@dataclass(frozen=True, slots=True)
class Report:
    """`ended_s` is Unix time, known within `ended_within_s`. `drives` are those of its files, of
    which fio knows none on network file systems."""

    version: str | None
    jobs: tuple[Job, ...]
    ended_s: float | None
    ended_within_s: float
    drives: tuple[str, ...]


def reports(text: str) -> Iterator[tuple[Report, int]]:
    """Every report of a text and where it begins, with noise before, between and behind them.
    Raises ToolOutputError."""
    decoder = json.JSONDecoder(object_pairs_hook=_object)
    end, has_no_number = 0, False
    while (begin := _OBJECT.search(text, end)) is not None:
        try:
            body, end = decoder.raw_decode(text, begin.end() - 1)
            _check_unique(body)
        except (ValueError, RecursionError) as error:
            if not has_no_number and _NO_NUMBER.search(text, begin.start()):
                # Places before this object stay.
                head, rest = text[: begin.start()], text[begin.start() :]
                text, has_no_number = head + _NO_NUMBER.sub(r"\1null", rest), True
                continue
            if '"fio version"' in text[begin.start() : begin.start() + 200]:
                raise none_found(
                    "fio", f"the JSON is damaged or cut off: {error!s:.120}"
                ) from error
            end = begin.end()
            continue
        for of_fio in _reports_in(body):
            yield report(of_fio), begin.start()


_OF_OPTIONS = ("job options", "global options")
"""fio writes each option as often as it was given."""
_ADDED_OPTIONS = ("filename",)
"""Of these, fio uses all values, as those that one value separates by colons; else the last."""


class _Repeated(dict[str, Any]):
    """An object with two values of one key, which only options may be."""

    why = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError if one of its objects has two values of one key, but for options."""
    for key, value in pairs:
        if key not in _OF_OPTIONS:
            _check_unique(value)
    try:
        return unique(pairs)
    except ValueError as error:
        body = _Repeated(pairs)
        body.why = str(error)
    for key in _ADDED_OPTIONS:
        if key in body:
            values = dict.fromkeys(str(value) for name, value in pairs if name == key)
            body[key] = ":".join(values)
    return body


def _check_unique(value: Any) -> None:
    if isinstance(value, _Repeated):
        raise ValueError(value.why)
    if isinstance(value, list):
        for each in value:
            _check_unique(each)


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
        for inner in body:
            yield from _reports_in(inner, depth + 1)


def report(body: Mapping[str, Any]) -> Report:
    """Of fio's JSON object. Raises ToolOutputError for one without a key that fio always writes, or
    with figures that contradict each other."""
    try:
        every = [
            entry
            for entry in (*body.get("client_stats", ()), *body.get("jobs", ()))
            if isinstance(entry, dict)
        ]
        entries = [entry for entry in every if entry.get("jobname") != ALL_CLIENTS]
        _check_complete(entries)
        for total in every:
            if total.get("jobname") == ALL_CLIENTS:
                _check_sum(total, entries)
        jobs = tuple(_job(entry, body.get("global options", {})) for entry in entries)
        ended_s, within_s = body.get("timestamp"), 1.0
        if body.get("timestamp_ms"):
            ended_s, within_s = body["timestamp_ms"] / 1000, WITHIN_MS_S
        drives = _drives(body)
    except LimitError as error:
        raise none_found("fio", str(error)) from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise none_found("fio", f"a value of another type: {error!r:.120}") from error
    except KeyError as error:
        raise none_found("fio", f"a job without {error}, which fio always reports") from error
    version = str(body.get("fio version", "")).removeprefix("fio-") or None
    return Report(version, jobs, ended_s or None, within_s, drives)


def _drives(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(drive["name"]) for drive in body.get("disk_util") or ())


_OF_ALL = ("jobname", "groupid", "hostname", "job options", *DIRECTIONS, MIXED)


def _check_complete(entries: Sequence[Mapping[str, Any]]) -> None:
    """Raises ToolOutputError if an entry is there twice, or lacks a key that the others have."""
    for number, entry in enumerate(entries):
        if entry in entries[:number]:
            raise none_found("fio", f"the job {entry.get('jobname')!r:.80} is listed twice")
    for key in _OF_ALL:
        lacking = [entry for entry in entries if key not in entry]
        if lacking and len(lacking) < len(entries):
            raise none_found("fio", f"a job without {key!r}, which the other jobs have")


def _check_sum(total: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
    """Raises ToolOutputError if the servers' jobs are not the sum that fio's client reports."""
    for operation in DIRECTIONS:
        moved = []
        for entry in entries:
            if operation in entry:
                moved.append(entry[operation]["io_bytes"])
        reported = total.get(operation, {}).get("io_bytes", sum(moved))
        if sum(moved) != reported:
            raise none_found(
                "fio", f"{ALL_CLIENTS} {operation} {reported} bytes, and their jobs {sum(moved)}"
            )


def _job(entry: Mapping[str, Any], common: Mapping[str, Any]) -> Job:
    options = {
        sys.intern(str(name)): sys.intern(str(value))
        for name, value in {**common, **entry.get("job options", {})}.items()
    }
    name = str(entry["jobname"])[:200]
    section = str(entry.get("job options", {}).get("name", name))[:200]
    apart = [operation for operation in DIRECTIONS if operation in entry]
    names = {"usr_cpu": "cpu_user_fraction", "sys_cpu": "cpu_system_fraction"}
    return Job(
        name=name,
        group=str(entry.get("groupid", 0)),
        host=str(entry["hostname"]) if "hostname" in entry else None,
        error=NUMBER.whole_number(entry["error"], "error"),
        options=options,
        directions=tuple(
            _direction(operation, entry[operation], name)
            for operation in apart or (MIXED,)
            if operation in entry and _did_any(entry[operation])
        ),
        processor={
            metric: entry[key] / 100 for key, metric in names.items() if entry.get(key) is not None
        },
        latency_depth=entry.get("latency_depth"),
        started_s=entry["job_start"] / 1000 if entry.get("job_start") else None,
        runtimes_s=entry["job_runtime"] / 1000 if "job_runtime" in entry else None,
        elapsed_s=float(entry["elapsed"]) if "elapsed" in entry else None,
        other_section=None if section == name else section,
    )


def _did_any(body: Mapping[str, Any]) -> bool:
    return bool(body["io_bytes"] or body.get("total_ios"))


def _direction(operation: str, body: Mapping[str, Any], job: str) -> Direction:
    runtime_s = DURATION.checked(COUNT.whole_number(body["runtime"], "runtime") / 1000, "runtime")
    moved = _bytes(body, runtime_s, f"{job}: {operation}")
    requests = None
    if "total_ios" in body:
        requests = COUNT.whole_number(body["total_ios"], "total_ios")
    return Direction(
        operation=operation,
        bytes=moved,
        runtime_s=runtime_s,
        requests=requests,
        iops=_iops(body, requests, runtime_s),
        latencies=_latencies(body, requests),
        unfinished={
            word: body[key]
            for key, word in (("short_ios", "short"), ("drop_ios", "dropped"))
            if body.get(key)
        },
    )


def _bytes(body: Mapping[str, Any], runtime_s: float, where: str) -> int:
    """`io_bytes`, in the unit that fits the rate: bytes, or KiB in older fio."""
    moved = SIZE.whole_number(body["io_bytes"], "io_bytes")
    rate = body["bw_bytes"] if "bw_bytes" in body else body["bw"] * KIB
    if not runtime_s or not moved:
        if "io_kbytes" in body:
            return moved
        return moved * KIB
    for unit in (1, KIB):
        if abs(moved * unit / runtime_s - rate) <= _AGREES * rate + KIB:
            return moved * unit
    raise ToolOutputError(
        f"fio: {where}: {moved} bytes in {runtime_s:g} s are not its rate of {rate:g} bytes/s"
    )


def _iops(body: Mapping[str, Any], requests: int | None, runtime_s: float) -> float | None:
    """Older fio prints whole numbers, or two decimals; its count of requests over the run time has
    more digits."""
    printed = body.get("iops")
    if printed is None:
        if requests is not None and runtime_s:
            return requests / runtime_s
        return None
    within = 0.01
    if isinstance(printed, int):
        within = 1.0
    return exact_rate(requests, runtime_s, figure(printed), within)


def exact_rate(requests: int | None, runtime_s: float, printed: float, within: float) -> float:
    """The count of requests over the run time where it is the printed rate but for its rounding."""
    if requests is None or not runtime_s:
        return printed
    exact = requests / runtime_s
    if abs(exact - printed) <= within:
        return exact
    return printed


def _latencies(body: Mapping[str, Any], requests: int | None) -> dict[tuple[str, str], float]:
    latencies = {}
    for key, kind in _KINDS:
        per_s = 1e6
        if f"{key}_ns" in body:
            per_s = 1e9
        of_kind = body.get(f"{key}_ns", body.get(key))
        if not isinstance(of_kind, dict) or not of_kind.get("mean"):
            continue
        for statistic in ("mean", "max"):
            latencies[kind, statistic] = of_kind[statistic] / per_s
        counted = of_kind.get("N", requests)
        for rank, value in (of_kind.get("percentile") or {}).items():
            name = _RANKS.get(float(rank))
            is_known = name != "p9999" or (counted or 0) >= REQUESTS_OF_P9999
            if name is not None and value and is_known:
                latencies[kind, name] = value / per_s
    return latencies
