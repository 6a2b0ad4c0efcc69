"""fio: JSON and JSON+ of 3.x; the text report of 2.x and 3.x for results that already exist.

The window of a run begins at the stamp that the profile has fio write right before its I/O
(`fio-start.txt`), because fio's process also lays out, opens and reports. It ends after fio's run
time. The stamp right after the I/O (`fio-end.txt`) is late by the time in which fio writes its logs
and starts a program. This delay bounds the error of both edges.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio_results.units import parse_size

OUTPUT_FILE = "fio.json"
START_FILE = "fio-start.txt"
END_FILE = "fio-end.txt"

_STAMP = re.compile(r"(\d{9,12}\.\d{9})\n")
_KILLED = re.compile(r"^fio: pid=\d{1,10}, got signal=(\d{1,3})$", re.MULTILINE)
_PERCENTILES = {50.0: "p50", 95.0: "p95", 99.0: "p99", 99.9: "p999", 99.99: "p9999"}
# How far a wall-clock stamp may be outside the invocation before the clock must have been set.
_CLOCK_TOLERANCE_S = 0.5
# fio reports its run time in integer ms.
_RUN_TIME_STEP_S = 0.001
# How much shorter than fio's run time the stamps may be: it counts ms, and clocks drift.
_RUN_TIME_TOLERANCE_S = 0.05


@dataclass(frozen=True)
class _Direction:
    """fio's figures for one direction (read or write) of a job."""

    operation: str
    bytes_moved: int
    runtime_s: float
    requests: int
    latency: Mapping[str, float] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()


def parse(capture: Capture) -> ToolResult:
    """The phase of one fio invocation, from `fio.json` and the stamps next to it.

    A run that reads and writes at once is one phase, `mixed`, because its energy cannot be divided;
    each direction's figures are then metrics that begin with `read_` or `write_`.
    """
    source = str(capture.directory / OUTPUT_FILE)
    _reject_killed(capture)
    body = _document(capture.text(OUTPUT_FILE, None), source)
    try:
        jobs = body["jobs"]
        if len(jobs) != 1:
            raise ToolOutputError(f"{source}: {len(jobs)} jobs; run fio with --group_reporting")
        job = jobs[0]
        if job["error"] != 0:
            raise ToolOutputError(
                f"{source}: fio stopped with error {job['error']}; see stderr.txt"
            )
        options = {**body.get("global options", {}), **job.get("job options", {})}
        directions = [
            _json_direction(operation, job[operation])
            for operation in ("read", "write")
            if q.SIZE.checked(job[operation]["io_bytes"], f"{operation}: io_bytes") > 0
        ]
        cpu = {
            "cpu_user_fraction": q.FIGURE.checked(job["usr_cpu"], "usr_cpu") / 100,
            "cpu_system_fraction": q.FIGURE.checked(job["sys_cpu"], "sys_cpu") / 100,
        }
        processes = q.REQUEST_SIZE.whole_number(int(options.get("numjobs", 1)), "numjobs")
        pattern = str(options.get("rw") or options.get("readwrite") or "")
        request_size_bytes = _single_size(str(options.get("bs", "4k")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ToolOutputError(f"{source}: not fio's report of a job: {error!r:.200}") from error
    if not directions:
        raise ToolOutputError(f"{source}: fio moved no bytes; see stderr.txt")

    runtime_s = max(d.runtime_s for d in directions)
    start_s, end_s, window_source, unsure_s = _window(capture, processes, runtime_s)
    phase = _phase(
        directions, _spatiality(pattern), request_size_bytes, cpu, start_s, end_s, window_source
    )
    phase = replace(phase, edges_unsure_s=unsure_s)
    if (offered := _offered(options, processes)) is not None:
        phase = replace(phase, metrics={**phase.metrics, "offered_bytes_per_s": offered})
    flush = next((source for name, on, source in _FLUSHES if str(options.get(name)) in on), None)
    return ToolResult(phases=(phase.flushed(flush),))


def _offered(options: Mapping[str, Any], processes: int) -> float | None:
    """Offered bytes per second of all processes, if fio had a rate limit."""
    rate = inputs.whole_number(str(options.get("rate", "")))
    return float(rate * processes) if rate else None


def _reject_killed(capture: Capture) -> None:
    """fio ends with 0 when a process of it was killed, and counts the bytes of the others."""
    for name in ("stderr.txt", "stdout.txt"):
        said = ""
        with suppress(ToolOutputError):  # missing or empty: no output
            said = capture.text(name)
        if (killed := _KILLED.search(said)) is not None:
            raise ToolOutputError(
                f"{capture.directory / name}: a process of fio was ended by signal {killed[1]} "
                "before its end: its bytes and flushes are unknown"
            )


def _document(text: str, source: str) -> dict[str, Any]:
    """The JSON object in fio's output; warnings may come before and after it."""
    brace = re.search(r"^\{", text, re.MULTILINE)
    if brace is None:
        raise ToolOutputError(f"{source}: no JSON, it begins {text[:60]!r}; is it fio's output?")
    try:
        body = inputs.parse_json_at(text, brace.start())
    except LimitError as error:
        raise ToolOutputError(f"{source}: cut off or damaged JSON: {error}") from error
    if "fio version" not in body or "jobs" not in body:
        raise ToolOutputError(f"{source}: JSON, but not fio's: it has {sorted(body)[:5]}")
    return dict(body)


def _json_direction(operation: str, body: Mapping[str, Any]) -> _Direction:
    total = body["lat_ns"]
    latency = {}
    if (requests := q.COUNT.checked(total["N"], "lat_ns: N")) > 0:
        latency = {
            f"latency_{key}_s": q.FIGURE.checked(total[key], f"lat_ns: {key}") / 1e9
            for key in ("mean", "max")
        }
        # fio gives percentiles of the total latency only with --lat_percentiles=1.
        percentiles = total.get("percentile") or body["clat_ns"].get("percentile") or {}
        for rank, value in percentiles.items():
            if float(rank) in _PERCENTILES and _is_known(float(rank), requests):
                taken_ns = q.FIGURE.checked(value, f"percentile {rank}")
                latency[f"latency_{_PERCENTILES[float(rank)]}_s"] = taken_ns / 1e9
    flaws = tuple(
        f"fio reports {body[key]} {word} {operation}s"
        for key, word in (("short_ios", "short"), ("drop_ios", "dropped"))
        if body.get(key, 0)
    )
    runtime_ms = q.FIGURE.checked(body["runtime"], "runtime")
    if runtime_ms <= 0:
        raise ValueError("its run time is 0 ms: give a larger file")
    return _Direction(
        operation=operation,
        bytes_moved=q.SIZE.whole_number(body["io_bytes"], "io_bytes"),
        runtime_s=q.DURATION.checked(runtime_ms / 1e3, "runtime"),
        requests=q.COUNT.whole_number(body["total_ios"], "total_ios"),
        latency=latency,
        flaws=flaws,
    )


def _is_known(rank: float, requests: float) -> bool:
    """Whether a request lies beyond the percentile. With fewer than ten thousand requests, fio
    reports the slowest one as the 99.99th."""
    return rank < 99.99 or requests >= 10_000


def _window(
    capture: Capture, processes: int, runtime_s: float
) -> tuple[float, float, str, float | None]:
    """Start, end (seconds from the start of the invocation), how they were found, and how far both
    edges together may be from the I/O, s; None where that is not known."""
    duration_s = capture.ended_monotonic_s - capture.started_monotonic_s
    start_s, fallback = max(duration_s - runtime_s, 0.0), "end of process minus fio's run time"
    if not (capture.directory / START_FILE).exists() or not (capture.directory / END_FILE).exists():
        return start_s, duration_s, fallback, None
    starts_s = list(map(capture.since_start_s, _stamps(capture, START_FILE, processes)))
    ends_s = list(map(capture.since_start_s, _stamps(capture, END_FILE, processes)))
    begun_s, ended_s = min(starts_s), max(ends_s)
    inside = -_CLOCK_TOLERANCE_S <= begun_s < ended_s <= duration_s + _CLOCK_TOLERANCE_S
    # If a clock was set back in between, both are inside, but leave too little time for fio's run.
    slack_s = ended_s - begun_s - runtime_s
    if not inside or slack_s < -_RUN_TIME_TOLERANCE_S:
        why = " (its time stamps are off: the clock was set)"
        return start_s, duration_s, fallback + why, None
    # The run time is that of the process that took longest, which may have begun last.
    end_s = max(starts_s) + runtime_s
    if slack_s > 0:
        end_s = min(end_s, ended_s)
    return begun_s, end_s, "fio exec_prerun and run time", max(slack_s, 0.0) + _RUN_TIME_STEP_S


def _stamps(capture: Capture, name: str, processes: int) -> list[float]:
    text = capture.text(name)
    stamps = [float(stamp) for stamp in _STAMP.findall(text)]
    if len(stamps) != processes or _STAMP.sub("", text):
        raise ToolOutputError(
            f"{capture.directory / name}: {len(stamps)} time stamps of {processes} processes"
        )
    return stamps


def _spatiality(pattern: str) -> str:
    """The access pattern for fio's `rw` option: `read:61440` steps over 61440 bytes each time."""
    if pattern.startswith("rand"):
        return "random"
    return "strided" if ":" in pattern else "sequential"


def _single_size(text: str) -> int | None:
    """The block size, or None when fio mixed several."""
    try:
        return parse_size(text)
    except EeioError:
        return None


def _phase(
    directions: list[_Direction],
    spatiality: str,
    request_size_bytes: int | None,
    cpu: Mapping[str, float],
    start_s: float | None,
    end_s: float | None,
    window_source: str,
    name: str | None = None,
) -> PhaseResult:
    operation = directions[0].operation if len(directions) == 1 else "mixed"
    runtime_s = max(d.runtime_s for d in directions)
    bytes_moved = sum(d.bytes_moved for d in directions)
    metrics = {
        "iops": sum(d.requests for d in directions) / runtime_s,
        "runtime_s": runtime_s,
        **cpu,
    }
    for direction in directions:
        prefix = "" if len(directions) == 1 else f"{direction.operation}_"
        metrics |= {prefix + key: value for key, value in direction.latency.items()}
        if prefix:
            metrics[f"{prefix}bandwidth_bytes_per_s"] = direction.bytes_moved / direction.runtime_s
            moved = "bytes_read" if direction.operation == "read" else "bytes_written"
            metrics[moved] = direction.bytes_moved
    return PhaseResult(
        name=name or operation,
        operation=operation,
        spatiality=spatiality,
        request_size_bytes=request_size_bytes,
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=bytes_moved / runtime_s,
        start_s=start_s,
        end_s=end_s,
        window_source=window_source,
        metrics=metrics,
        invalid=tuple(flaw for d in directions for flaw in d.flaws),
    )


# fio's options -> what made a write durable: the time of its bandwidth includes it.
_FLUSHES = (
    ("sync", ("1", "sync", "dsync"), "each write by itself (fio's sync=1, O_SYNC)"),
    ("end_fsync", ("1",), "fio's fsync at its end, within its time"),
)


# The text report. In 2.x `KB` and `MB` are binary and every figure is rounded; in 3.x `KiB` is
# binary and `kB` decimal. Counts of requests are exact in both, so bytes are counted from them.

# Expressions take the first place that fits, and no other, so that they take linear time.
_FIGURE = r"\d{1,18}(?:\.\d{0,18})?"
_TIME_UNITS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0}
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_HEADER = re.compile(
    r"^(?P<job>(?>.*?(?=: \(g=))): \(g=(?P<group>\d+)\): rw=(?P<rw>[^,\n]+), bs=(?P<bs>.*),", re.M
)
_BLOCK = re.compile(
    r"^(?P<job>(?>.*?(?=: \(groupid=))): \(groupid=(?P<group>\d+), jobs=\d+\): "
    r"err= *(?P<error>\d+)",
    re.M,
)
_STATUS = re.compile(r"^Run status group (?P<group>\d+) ", re.M)
_LINE_2 = re.compile(r"^  (read|write) *: io=\S+, bw=\S+, iops=\S+, runt= *(\d{1,18})msec$", re.M)
_LINE_3 = re.compile(
    r"^  (read|write): IOPS=\S+, BW=\S+ \([^\s()]+\)\([^\s()/]+/(\d{1,18})msec\)", re.M
)
_ISSUED = re.compile(
    r"^ +issued(?: rwts?)? *: total=(?:r=)?(\d{1,18})[/,](?:w=)?(\d{1,18})\b.*$", re.M
)
_TOTAL = re.compile(r"^ +(READ|WRITE): .*(?:maxt=|-)\d+msec$", re.M)
_LATENCY = re.compile(
    rf"^ +lat \((nsec|usec|msec|sec)\): min= *\S+, max= *({_FIGURE})([kKMG]?), "
    rf"avg= *({_FIGURE})([kKMG]?),",
    re.M,
)
_PERCENTILE_HEAD = re.compile(r"^ +c?lat percentiles \((nsec|usec|msec|sec)\):\n", re.M)
_PERCENTILE = re.compile(rf"({_FIGURE})th=\[ *(\d{{1,18}})\]")
_CPU = re.compile(rf"^  cpu +: usr=({_FIGURE})%, sys=({_FIGURE})%,", re.M)


def parse_text(text: str, source: str = "fio's report") -> ToolResult:
    """The phases of a human-readable report of fio 2.x or 3.x, one for each job it lists.

    Bytes are requests issued x block size; the report's `io=` is rounded. The report contains no
    time of the I/O, so the phases have no window. Raises ToolOutputError when the report is cut
    off, is not fio's, or reports an error.
    """
    with naming(source):
        inputs.check_lines(text)
        return _text_phases(text, source)


def _text_phases(text: str, source: str) -> ToolResult:
    if re.search(r"^fio-\d", text, re.M) is None:
        raise ToolOutputError(f"{source}: not fio's report, it begins {text[:60]!r}")
    headers = list(_HEADER.finditer(text))
    blocks = list(_BLOCK.finditer(text))
    statuses = list(_STATUS.finditer(text))
    if not headers or not blocks or not statuses:
        raise ToolOutputError(f"{source}: cut off before fio's `Run status`")
    ends = [block.start() for block in blocks[1:]] + [statuses[0].start()]
    phases = []
    of_job = {header["job"]: header for header in reversed(headers)}
    for block, end in zip(blocks, ends, strict=True):
        header = of_job.get(block["job"], headers[0])
        phases.append(_text_phase(text[block.start() : end], block, header, source))
    _check_complete(text, blocks, statuses, source)
    return ToolResult(phases=tuple(phases), notes=("text report: bytes are requests x block size",))


def _check_complete(
    text: str, blocks: list[re.Match[str]], statuses: list[re.Match[str]], source: str
) -> None:
    """Each group must end with the totals of every direction its jobs had."""
    ends = [status.start() for status in statuses[1:]] + [len(text)]
    totals: dict[str, set[str]] = {}
    for status, end in zip(statuses, ends, strict=True):
        of_group = totals.setdefault(status["group"], set())
        of_group.update(total[1] for total in _TOTAL.finditer(text, status.start(), end))
    for index, block in enumerate(blocks):
        block_end = blocks[index + 1].start() if index + 1 < len(blocks) else statuses[0].start()
        wanted = {m[1].upper() for m in _text_lines(text[block.start() : block_end])}
        if not wanted <= totals.get(block["group"], set()):
            raise ToolOutputError(f"{source}: cut off in the totals of group {block['group']}")


def _text_lines(block: str) -> list[re.Match[str]]:
    return list(_LINE_2.finditer(block)) or list(_LINE_3.finditer(block))


def _text_phase(block: str, head: re.Match[str], header: re.Match[str], source: str) -> PhaseResult:
    if head["error"] != "0":
        raise ToolOutputError(f"{source}: job {head['job']}: fio's error {head['error']}")
    lines, issued, cpu = _text_lines(block), _ISSUED.search(block), _CPU.search(block)
    if not lines or issued is None or cpu is None:
        raise ToolOutputError(f"{source}: job {head['job']}: no result, or cut off")
    sizes = _text_sizes(header["bs"])
    directions = []
    for line, end in zip(lines, [m.start() for m in lines[1:]] + [len(block)], strict=True):
        operation = line[1]
        size = sizes.get(operation)
        if size is None:
            raise ToolOutputError(
                f"{source}: job {head['job']}: bytes of mixed block sizes {header['bs']}"
            )
        requests = int(issued[1 if operation == "read" else 2])
        if requests == 0 or int(line[2]) == 0:
            raise ToolOutputError(f"{source}: job {head['job']}: no {operation}s in no time")
        directions.append(
            _Direction(
                operation=operation,
                bytes_moved=requests * size,
                runtime_s=int(line[2]) / 1e3,
                requests=requests,
                latency=_text_latency(block[line.start() : end]),
            )
        )
    fractions = {
        "cpu_user_fraction": float(cpu[1]) / 100,
        "cpu_system_fraction": float(cpu[2]) / 100,
    }
    only = {sizes[d.operation] for d in directions}
    return _phase(
        directions,
        _spatiality(header["rw"]),
        only.pop() if len(only) == 1 else None,
        fractions,
        None,
        None,
        "none: fio's text report contains no times",
        name=head["job"],
    )


def _text_sizes(text: str) -> dict[str, int | None]:
    """Block sizes by direction, from `32K-32K/32K-32K/...` or `(R) 4096B-4096B, (W) ...`."""
    ranges = re.findall(r"\b(\w{1,20})-(\w{1,20})\b", text)
    return {
        operation: _single_size(low) if low == high else None
        for operation, (low, high) in zip(("read", "write"), ranges, strict=False)
    }


def _text_latency(text: str) -> dict[str, float]:
    latency = {}
    if total := _LATENCY.search(text):
        unit = _TIME_UNITS[total[1]]
        latency["latency_max_s"] = float(total[2]) * _SUFFIXES[total[3].lower()] * unit
        latency["latency_mean_s"] = float(total[4]) * _SUFFIXES[total[5].lower()] * unit
    if head := _PERCENTILE_HEAD.search(text):
        table = re.match(r"(?: +\|.*\n)*", text[head.end() :])
        for rank, value in _PERCENTILE.findall(table[0] if table else ""):
            if float(rank) in _PERCENTILES:
                key = f"latency_{_PERCENTILES[float(rank)]}_s"
                latency[key] = int(value) * _TIME_UNITS[head[1]]
    return latency
