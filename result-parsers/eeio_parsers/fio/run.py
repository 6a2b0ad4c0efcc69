"""fio: JSON and JSON+ of 3.x.

The window of a run begins at the stamp that the profile has fio write right before its I/O
(`fio-start.txt`), because fio's process also lays out, opens and reports. It ends after fio's run
time, and never after fio's process. The stamp right after the I/O (`fio-end.txt`) is late by the
time in which fio writes its logs and starts a program. This delay bounds the error of both edges.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from eeio.errors import EeioError, ToolOutputError
from eeio.files import inputs
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.record.tools.description import FSYNC, About
from eeio.units import quantities as q
from eeio.units.sizes import parse_size
from eeio_parsers.fio import jobs
from eeio_parsers.fio.jobs import Direction, Job

ABOUT = About(
    reports_all_bytes=True,
    words=FSYNC,
    named=("engine", "iodepth", "stride", "workload", "distribution", "latency_ms", "compressible"),
    layer_rank=0,
)

OUTPUT_FILE = "fio.json"
START_FILE = "fio-start.txt"
END_FILE = "fio-end.txt"
PERF_FILE = "perf.csv"

_STAMP = re.compile(r"(\d{9,12}\.\d{9})\n")
_PERF_LINE = re.compile(
    r"(?P<count>\d{1,19}),[^,]*,(?P<event>instructions|cycles)(?::(?P<mode>u))?,"
    r"\d{1,19},(?P<percent>\d{1,3}\.\d{1,2})(?:,.*)?"
)
_COUNTED_PERCENT = 99.9
_KILLED = re.compile(r"^fio: pid=\d{1,10}, got signal=(\d{1,3})$", re.MULTILINE)
# How far a wall-clock stamp may be outside the invocation before the clock must have been set.
_CLOCK_TOLERANCE_S = 0.5
# fio reports its run time in integer ms.
_RUN_TIME_STEP_S = 0.001
# How much shorter than fio's run time the stamps may be: it counts ms, and clocks drift.
_RUN_TIME_TOLERANCE_S = 0.05


def parse(capture: Capture) -> ToolResult:
    """The phase of one fio invocation, from `fio.json` and the stamps next to it.

    A run that reads and writes at once is one phase, `mixed`, because its energy cannot be divided;
    each direction's figures are then metrics that begin with `read_` or `write_`.
    """
    source = str(capture.directory / OUTPUT_FILE)
    _reject_killed(capture)
    job = _job(capture.text(OUTPUT_FILE, None), source)
    directions = [each for each in job.directions if each.operation != "trim" and each.bytes]
    if not directions:
        raise ToolOutputError(f"{source}: fio moved no bytes; see stderr.txt")
    if any(each.runtime_s <= 0 for each in directions):
        raise ToolOutputError(f"{source}: its run time is 0 ms: give a larger file")
    options = job.options
    processes = inputs.whole_number(options.get("numjobs", "1"))
    if not processes or not q.REQUEST_SIZE.contains(processes):
        raise ToolOutputError(f"{source}: numjobs is {options['numjobs']!r:.40}")
    pattern = str(options.get("rw") or options.get("readwrite") or "")

    runtime_s = max(d.runtime_s for d in directions)
    start_s, end_s, window_source, unsure_s = _window(capture, processes, runtime_s)
    phase = _phase(directions, job.processor, pattern, start_s, end_s)
    phase = replace(
        phase,
        window_source=window_source,
        request_size_bytes=_single_size(str(options.get("bs", "4k"))),
    )
    phase = replace(phase, edges_unsure_s=unsure_s)
    if (offered := _offered(options, processes)) is not None:
        phase = replace(phase, metrics={**phase.metrics, "offered_bytes_per_s": offered})
    phase = replace(phase, metrics={**phase.metrics, **_of_workload(capture, job, phase, source)})
    phase = replace(phase, metrics={**phase.metrics, **_counted(capture)})
    flush = next((source for name, on, source in _FLUSHES if str(options.get(name)) in on), None)
    return ToolResult(phases=(phase.flushed(flush),))


def _counted(capture: Capture) -> dict[str, float]:
    """Instructions and cycles of fio, as `perf stat` counted them; with `user_` before them, those
    without the kernel's. One that was not counted all the time is left out."""
    counts: dict[str, float] = {}
    text = ""
    if (capture.directory / PERF_FILE).exists():
        with suppress(ToolOutputError):  # perf was stopped: nothing was counted
            text = capture.text(PERF_FILE, None)
    for line in text.splitlines():
        counter = _PERF_LINE.fullmatch(line)
        if counter is None or float(counter["percent"]) < _COUNTED_PERCENT:
            continue
        name = counter["event"]
        if counter["mode"] == "u":
            name = f"user_{name}"
        counts[name] = float(counter["count"])
    return counts


def _offered(options: Mapping[str, str], processes: int) -> float | None:
    """Offered bytes per second of all processes, if fio had a rate limit."""
    rate = inputs.whole_number(str(options.get("rate", "")))
    if rate:
        return float(rate * processes)
    return None


def _of_workload(capture: Capture, job: Job, phase: PhaseResult, source: str) -> dict[str, float]:
    """The requests of a named workload are its operations. With a latency bound, also the queue
    depth at which fio met it."""
    found = {}
    if "workload" in capture.factors:
        found["operations_per_s"] = phase.metrics["iops"]
    if "latency_ms" in capture.factors:
        if job.latency_depth is None:
            raise ToolOutputError(f"{source}: no queue depth of the latency bound")
        found["depth_within_bound"] = q.COUNT.checked(job.latency_depth, "latency_depth")
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


def _job(text: str, source: str) -> Job:
    """The only job of fio's output; warnings may come before and after it."""
    with naming(source):
        found = [report for report, _ in jobs.reports(text)]
    if not found:
        raise ToolOutputError(f"{source}: no JSON of fio, it begins {text[:60]!r}")
    entries = found[-1].jobs
    if len(found) > 1 or len(entries) != 1:
        raise ToolOutputError(f"{source}: {len(entries)} jobs; run fio with --group_reporting")
    job = entries[0]
    if job.error != 0:
        raise ToolOutputError(f"{source}: fio stopped with error {job.error}; see stderr.txt")
    return job


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
        reason = " (its time stamps are off: the clock was set)"
        return start_s, duration_s, fallback + reason, None
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
    stamps = list(map(float, _STAMP.findall(text)))
    if len(stamps) != processes or _STAMP.sub("", text):
        raise ToolOutputError(
            f"{capture.directory / name}: {len(stamps)} time stamps of {processes} processes"
        )
    return stamps


def _spatiality(pattern: str) -> str:
    """The access pattern for fio's `rw` option: `read:61440` steps over 61440 bytes each time."""
    if pattern.startswith("rand"):
        return "random"
    if ":" in pattern:
        return "strided"
    return "sequential"


def _single_size(text: str) -> int | None:
    """The block size, or None when fio mixed several."""
    try:
        return parse_size(text)
    except EeioError:
        return None


def _phase(
    directions: Sequence[Direction],
    processor: Mapping[str, float],
    pattern: str,
    start_s: float,
    end_s: float,
) -> PhaseResult:
    operation = "mixed"
    if len(directions) == 1:
        operation = directions[0].operation
    runtime_s = max(each.runtime_s for each in directions)
    bytes_moved = sum(each.bytes for each in directions)
    requests = sum(each.requests or 0 for each in directions)
    metrics = {"iops": requests / runtime_s, "runtime_s": runtime_s, **processor}
    for direction in directions:
        prefix = ""
        if len(directions) != 1:
            prefix = f"{direction.operation}_"
        latencies = _latencies(direction)
        metrics |= {f"{prefix}latency_{name}_s": value for name, value in latencies.items()}
        if prefix:
            metrics[f"{prefix}bandwidth_bytes_per_s"] = direction.bytes / direction.runtime_s
            moved = "bytes_written"
            if direction.operation == "read":
                moved = "bytes_read"
            metrics[moved] = direction.bytes
    return PhaseResult(
        name=operation,
        operation=operation,
        spatiality=_spatiality(pattern),
        request_size_bytes=None,
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=bytes_moved / runtime_s,
        start_s=start_s,
        end_s=end_s,
        window_source="",
        metrics=metrics,
        invalid=tuple(
            f"fio reports {number} {word} {direction.operation}s"
            for direction in directions
            for word, number in direction.unfinished.items()
        ),
    )


def _latencies(direction: Direction) -> dict[str, float]:
    """Those of the total time; fio gives their percentiles only with --lat_percentiles=1."""
    total = {}
    for (kind, name), value in direction.latencies.items():
        if kind == "total":
            total[name] = value
    if any(name.startswith("p") for name in total):
        return total
    percentiles = {
        name: value
        for (kind, name), value in direction.latencies.items()
        if kind == "completion" and name.startswith("p")
    }
    return {**total, **percentiles}


# fio's options -> what made a write durable: the time of its bandwidth includes it.
_FLUSHES = (
    ("sync", ("1", "sync", "dsync"), "each write by itself (fio's sync=1, O_SYNC)"),
    ("end_fsync", ("1",), "fio's fsync at its end, within its time"),
)
