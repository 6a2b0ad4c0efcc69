"""fio: JSON and JSON+ of 3.x.

The window of a run begins at the stamp that the profile has fio write right before its I/O
(`fio-start.txt`), because fio's process also lays out, opens and reports. It ends after fio's run
time, and never after fio's process. The stamp right after the I/O (`fio-end.txt`) is late by the
time in which fio writes its logs and starts a program. This delay bounds the error of both edges.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_results.errors import EeioError, ToolOutputError
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult
from eeio_results.tools.description import FSYNC, About
from eeio_results.units import parse_size

ABOUT = About(
    reports_all_bytes=True,
    words=FSYNC,
    named=("engine", "iodepth", "stride", "workload", "distribution", "latency_ms", "compressible"),
    layer_rank=0,
)

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
    phase = replace(phase, metrics={**phase.metrics, **_of_workload(capture, job, phase, source)})
    flush = next((source for name, on, source in _FLUSHES if str(options.get(name)) in on), None)
    return ToolResult(phases=(phase.flushed(flush),))


def _offered(options: Mapping[str, Any], processes: int) -> float | None:
    """Offered bytes per second of all processes, if fio had a rate limit."""
    rate = inputs.whole_number(str(options.get("rate", "")))
    return float(rate * processes) if rate else None


def _of_workload(
    capture: Capture, job: Mapping[str, Any], phase: PhaseResult, source: str
) -> dict[str, float]:
    """The requests of a named workload are its operations. With a latency bound, also the queue
    depth at which fio met it."""
    found = {}
    if "workload" in capture.factors:
        found["operations_per_s"] = phase.metrics["iops"]
    if "latency_ms" in capture.factors:
        try:
            found["depth_within_bound"] = q.COUNT.checked(job["latency_depth"], "latency_depth")
        except (KeyError, TypeError, ValueError) as error:
            raise ToolOutputError(f"{source}: no queue depth of the latency bound") from error
    return found


def _reject_killed(capture: Capture) -> None:
    """fio ends with 0 when a process of it was killed, and counts the bytes of the others."""
    for name in ("stderr.txt", "stdout.txt"):
        output = ""
        with suppress(ToolOutputError):  # missing or empty: no output
            output = capture.text(name)
        if (killed := _KILLED.search(output)) is not None:
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
    # A window outside the process was moved by the wall clock, at least so far.
    moved_s = max(0.0, end_s - duration_s) - max(0.0, -begun_s)
    unsure_s = max(slack_s, 0.0) + _RUN_TIME_STEP_S + abs(moved_s)
    begun_s, end_s = max(begun_s - moved_s, 0.0), min(end_s - moved_s, duration_s)
    return begun_s, end_s, "fio exec_prerun and run time", unsure_s


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
