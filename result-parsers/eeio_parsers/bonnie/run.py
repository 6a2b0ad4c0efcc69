"""Bonnie++ 2.x: the CSV line on standard output, the progress text on standard error.

A phase's window is the time between the arrival of its name (`Writing intelligently...`) and of its
`done`. Rates are KiB/s, seeks are per second. `+++++` means that the phase was over in less than
half a second: it has no bandwidth, with the reason.

Its direct I/O (`-D`, buffer=off) applies only to the write phase: the others open the file again
without O_DIRECT, as strace shows for 2.00a. Those phases are marked.

It flushes its file whenever it closes it, at the end of every phase, with -b (flush=each) after
every write too. Both are before its `done` and within its time, as strace shows by delaying the
flushes of 2.00a: 64 MiB were written at 42 MiB/s with 1.5 s, at 16 MiB/s with 4 s, and the seeks
took as much longer. So no phase has a rate into the page cache, and each is durable when it ends.
"""

import re
from collections import deque

from eeio.errors import EeioError, ToolOutputError
from eeio.record.run import Durable
from eeio.record.tools._arrivals import Arrivals
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.record.tools.description import About
from eeio.units import quantities as q
from eeio.units.sizes import parse_size
from eeio_parsers.bonnie.csv_line import TOO_FAST, Figures, Line, lines

ABOUT = About(program="bonnie++", named=())

OUTPUT_FILE = "stdout.txt"
PROGRESS_FILE = "stderr.txt"

# 2.00a leaves the field empty for any -s: use the factor, or the wrapper's default.
_DEFAULT_CHUNK_BYTES = 64 << 10
_ONLY_WRITES_ARE_DIRECT = (
    "Bonnie++ uses direct I/O only for its block write; its rewrite, read and seeks went through "
    "the page cache and are left out"
)
_FLUSHES = "Bonnie++'s fsync at the end of the phase"
_FLUSHES_EACH = "Bonnie++'s fsync of each write (-b)"
_CHARACTER_BYTES = 1
_LATENCY = re.compile(r"(\d{1,18})(us|ms|s)")
_LATENCY_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")

# Name, operation, spatiality, text on stderr.
_PHASES = (
    ("character write", "write", "sequential", r"Writing a byte at a time\.\.\."),
    ("write", "write", "sequential", r"Writing intelligently\.\.\."),
    ("rewrite", "mixed", "sequential", r"Rewriting\.\.\."),
    ("character read", "read", "sequential", r"Reading a byte at a time\.\.\."),
    ("read", "read", "sequential", r"Reading intelligently\.\.\."),
    ("seeks", "mixed", "random", r"start 'em\.\.\."),
)


def parse(capture: Capture) -> ToolResult:
    """The phases of one Bonnie++ invocation: write, rewrite, read, seeks; with the factor
    `characters` also as much written, and read, a byte at a time.

    A rewrite reads and writes the file once; its bandwidth is that of the file's bytes rewritten.
    A seek reads a chunk, and one in ten writes it back; its bandwidth is that of the chunks read.
    """
    source = str(capture.directory / OUTPUT_FILE)
    line = _line(capture.text(OUTPUT_FILE), source)
    try:
        size_bytes = parse_size(line.file_size)
        chunk = line.chunk_size or capture.factors.get("request_size", str(_DEFAULT_CHUNK_BYTES))
        chunk_bytes = q.REQUEST_SIZE.whole_number(parse_size(chunk), "chunk size")
        seeks = int(q.COUNT.of_text(line.seeks, "seeks"))
        characters = capture.factors.get("characters", "0")
        moved = {
            "character write": (parse_size(characters), _CHARACTER_BYTES),
            "character read": (parse_size(characters), _CHARACTER_BYTES),
            "seeks": (seeks * chunk_bytes, chunk_bytes),
        }
        phases = tuple(
            _phase(
                capture, line.tests[plan[0]], plan, *moved.get(plan[0], (size_bytes, chunk_bytes))
            )
            for plan in _PHASES
            # Its output does not report the bytes it moved a byte at a time.
            if line.tests[plan[0]].rate and moved.get(plan[0]) != (0, _CHARACTER_BYTES)
        )
    except (EeioError, ValueError) as error:
        raise ToolOutputError(f"{source}: damaged CSV line: {error}") from error
    if not phases:
        raise ToolOutputError(f"{source}: Bonnie++ ran none of its block tests")
    if capture.factors.get("buffer", "off") == "off":
        # Seen with strace in 2.00a: only the first open of the file has O_DIRECT.
        direct = tuple(phase for phase in phases if phase.name == "write")
        return ToolResult(phases=direct, notes=(_ONLY_WRITES_ARE_DIRECT,))
    return ToolResult(phases=phases)


def _line(text: str, source: str) -> Line:
    """The last line of CSV."""
    with naming(source):
        last = deque(lines(text), maxlen=1)
    if not last:
        raise ToolOutputError(f"{source}: no CSV line; Bonnie++ did not finish (see stderr.txt)")
    if not last[0].is_complete or not last[0].seeks:
        raise ToolOutputError(f"{source}: its CSV line is cut off, or of another version")
    return last[0]


def _phase(
    capture: Capture,
    figures: Figures,
    plan: tuple[str, str, str, str],
    bytes_moved: int,
    request_bytes: int,
) -> PhaseResult:
    name, operation, spatiality, progress = plan
    unit_bytes = 1024
    if name == "seeks":
        unit_bytes = request_bytes
    bandwidth = None
    invalid: tuple[str, ...] = ()
    metrics: dict[str, float] = {}
    if figures.rate == TOO_FAST:
        invalid = ("too fast for Bonnie++ to measure (+++++); give a larger file_size",)
    elif _NUMBER.fullmatch(figures.rate) and float(figures.rate) > 0:
        bandwidth = float(figures.rate) * unit_bytes
        metrics["iops"] = bandwidth / request_bytes
    else:
        raise ValueError(f"{figures.rate!r} is not a rate")
    if operation == "mixed":
        metrics["bytes_read"] = bytes_moved
    if name == "rewrite":
        metrics["bytes_written"] = bytes_moved
    if _NUMBER.fullmatch(figures.cpu):
        metrics["cpu_fraction"] = float(figures.cpu) / 100
    if latency := _LATENCY.fullmatch(figures.latency):
        metrics["latency_max_s"] = int(latency[1]) * _LATENCY_UNITS[latency[2]]
    start_s, end_s, window_source = _window(capture, progress)
    writes = operation != "read"
    durable = None
    if writes and end_s is not None and bandwidth is not None:
        each = capture.factors.get("flush") == "each"
        durable = Durable(end_s, bandwidth, _FLUSHES_EACH if each else _FLUSHES)
    return PhaseResult(
        name=name,
        operation=operation,
        spatiality=spatiality,
        request_size_bytes=request_bytes,
        bytes_moved=bytes_moved,
        bandwidth_bytes_per_s=bandwidth,
        start_s=start_s,
        end_s=end_s,
        window_source=window_source,
        metrics=metrics,
        invalid=invalid,
        until_durable=durable,
        includes_flush=writes,
    )


def _window(capture: Capture, progress: str) -> tuple[float | None, float | None, str]:
    """The arrival times of a phase's progress text and of its last `done`."""
    missing = "none: the arrival of Bonnie++'s progress lines was not recorded"
    try:
        text = capture.text(PROGRESS_FILE)
    except ToolOutputError:
        return None, None, missing
    match = re.search(rf"({progress})(done(?:\.\.\.done)*)", text)
    if match is None:
        return None, None, missing
    arrivals = Arrivals(capture, "stderr", text)
    start_s, end_s = arrivals.of(match.end(1)), arrivals.of(match.end(2))
    if start_s is None or end_s is None:
        return None, None, missing
    if not start_s < end_s:
        return None, None, "none: the start and the end of the phase arrived at the same time"
    return start_s, end_s, "arrival of Bonnie++'s progress messages"
