"""IOzone 3.x: one row with a column per test, or (with -t) one block per test.

Rates are kB/s of 1024 bytes. Tests that were not run leave their columns blank, so the end position
of a figure identifies it. A test is placed in time by its rate, counted back from the moment its
figure arrived: IOzone prints a figure when its test is over.

Without -e a write's time ends before its flush. IOzone flushes when it closes the file, before it
prints. The parent of several processes (-t) waits for that, so its figure and window include the
flush, and the children's exclude it. One process has no window, because the time between its start
and its figure is not known.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio_limits import quantities as q
from eeio_results.errors import ToolOutputError
from eeio_results.tools._arrivals import Arrivals
from eeio_results.tools.capture import Capture, PhaseResult, ToolResult
from eeio_results.tools.description import About

ABOUT = About(reports_all_bytes=True, words={("flush", "off"): "flush=off"}, named=("stride",))

OUTPUT_FILE = "stdout.txt"
_KIB = 1024

# Each test's column: its width, its name, operation and spatiality.
_COLUMNS = (
    (9, ("write", "write", "sequential")),
    (9, ("rewrite", "write", "sequential")),
    (9, ("read", "read", "sequential")),
    (9, ("reread", "read", "sequential")),
    (9, ("random read", "read", "random")),
    (9, ("random write", "write", "random")),
    (9, ("backward read", "read", "strided")),
    (10, ("record rewrite", "write", "sequential")),
    (10, ("strided read", "read", "strided")),
    (9, ("fwrite", "write", "sequential")),
    (9, ("frewrite", "write", "sequential")),
    (9, ("fread", "read", "sequential")),
    (9, ("freread", "read", "sequential")),
)
_SIZE_END, _RECORD_END = 16, 24
# By the end of the header, how much wider a figure is than the blank of a missing one: 0 in 3.489
# (Debian 12), 1 in 3.507 (Debian 13).
_WIDER = {143: 0, 156: 1}
_GROUPS = {
    "initial writers": ("write", "write", "sequential"),
    "rewriters": ("rewrite", "write", "sequential"),
    "readers": ("read", "read", "sequential"),
    "re-readers": ("reread", "read", "sequential"),
    "random readers": ("random read", "read", "random"),
    "random writers": ("random write", "write", "random"),
    "reverse readers": ("backward read", "read", "strided"),
    "stride readers": ("strided read", "read", "strided"),
}
_HEADER = re.compile(r"^ +kB +reclen +write +rewrite .*\n", re.M)
_COMPLETE = "iozone test complete."
_FLUSHED = "Include fsync in write timing"
# The options that IOzone prints -> what made a write durable.
_FLUSHES = {
    "SYNC Mode": "each write by itself (IOzone -o, O_SYNC)",
    _FLUSHED: "IOzone's fsync (-e), within its time",
}
_WITHOUT_FLUSH = "the time of a write leaves the flush out (flush=none)"
_UNSTOPPED = "Stonewall disabled"
_EACH = re.compile(r"Each process writes a +(\d{1,15}) kByte file in +(\d{1,15}) kByte records")
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_BLOCK = re.compile(
    r"\tChildren see throughput for +(?P<processes>\d{1,9}) (?P<group>[\w -]{1,40}?)\s*"
    r"= *(?P<children>" + _NUMBER + r") kB/sec\n"
    r"\tParent sees throughput for +\d{1,9} [\w -]{1,40}?\s*= *(?P<parent>"
    + _NUMBER
    + r") kB/sec\n"
    r"\tMin throughput per process\s*= *(?P<slowest>" + _NUMBER + r") kB/sec *\n"
    r"\tMax throughput per process\s*= *(?P<fastest>" + _NUMBER + r") kB/sec *\n"
    r"\tAvg throughput per process\s*= *[\d.]+ kB/sec *\n"
    r"\tMin xfer\s*= *(?P<least>" + _NUMBER + r") kB\n"
)


@dataclass(frozen=True)
class _Test:
    name: str
    operation: str
    spatiality: str
    record_bytes: int
    bytes_moved: int
    rate_bytes_per_s: float
    arrived_s: float | None
    metrics: dict[str, float]
    invalid: tuple[str, ...] = ()
    unplaced: str | None = None  # why it has no window


def parse(capture: Capture) -> ToolResult:
    """The phases of one IOzone invocation, in the order they ran, from its standard output."""
    source = str(capture.directory / OUTPUT_FILE)
    text = capture.text(OUTPUT_FILE)
    if "Iozone: Performance Test of File I/O" not in text:
        raise ToolOutputError(f"{source}: not IOzone's output, it begins {text[:60]!r}")
    if _COMPLETE not in text:
        last = text.rstrip().rsplit("\n", 1)[-1].strip()
        raise ToolOutputError(f"{source}: IOzone did not finish; its last line is {last[:80]!r}")
    if "Output is in kBytes/sec" not in text:
        raise ToolOutputError(f"{source}: not in kBytes/sec; run IOzone without -N and -O")
    header = _HEADER.search(text)
    if header is not None:
        # One process: it ends with its test, so the end of the process will do without stamps.
        tests = _rows(capture, text, header.end(), source)
        last_s: float | None = capture.ended_monotonic_s - capture.started_monotonic_s
    else:
        tests = _blocks(capture, text)
        last_s = None
    if not tests:
        raise ToolOutputError(f"{source}: no figures; IOzone could not run its tests")
    notes: tuple[str, ...] = ()
    if not _is_flushed(text) and any(test.operation == "write" for test in tests):
        notes = (
            _WITHOUT_FLUSH
            if header is not None
            else f"{_WITHOUT_FLUSH} in the children's figures; the parent's figure includes it",
        )
    source_of = next((source for mark, source in _FLUSHES.items() if mark in text), None)
    phases = tuple(phase.flushed(source_of) for phase in _placed(tests, last_s))
    return ToolResult(phases=phases, notes=notes)


def _is_flushed(text: str) -> bool:
    return any(mark in text for mark in _FLUSHES)


def _rows(capture: Capture, text: str, begin: int, source: str) -> list[_Test]:
    tests = []
    arrivals = Arrivals(capture, "stdout", text)
    header_end = len(text[:begin].rstrip().rsplit("\n", 1)[-1])
    if header_end not in _WIDER:
        raise ToolOutputError(
            f"{source}: columns that end at {header_end} are of no known version of IOzone"
        )
    wider = _WIDER[header_end]
    position = begin
    end_of_rows = text.find(_COMPLETE, begin)
    if end_of_rows < 0:
        raise ToolOutputError(f"{source}: IOzone's end is before its figures")
    for line in text[begin:end_of_rows].splitlines(keepends=True):
        if line.strip():
            figures = {m.end(): m for m in re.finditer(r"\S+", line)}
            if not re.fullmatch(r"[\d\s]+", line) or not {_SIZE_END, _RECORD_END} < set(figures):
                raise ToolOutputError(f"{source}: not a row of figures: {line.strip()[:80]!r}")
            size_bytes = _kib(figures.pop(_SIZE_END)[0], q.SIZE, "file size")
            record_bytes = _kib(figures.pop(_RECORD_END)[0], q.REQUEST_SIZE, "record size")
            for end, names in _of_columns(figures, wider, source).items():
                figure = figures[end]
                rate = _kib(figure[0], q.BANDWIDTH, "rate")
                if rate == 0:
                    continue  # -+n prints 0 for the second pass it skips
                arrived_s = arrivals.of(position + end)
                test = _Test(*names, record_bytes, size_bytes, rate, arrived_s, metrics={})
                if test.operation == "write" and not _is_flushed(text):
                    test = replace(test, unplaced=_WITHOUT_FLUSH)
                tests.append(test)
        position += len(line)
    return tests


def _of_columns(
    figures: Mapping[int, re.Match[str]], wider: int, source: str
) -> dict[int, tuple[str, str, str]]:
    """Where each figure ends -> the test it is of. A column is a figure or its blank, one after the
    other, so that where a figure may end depends on those before it."""
    left, found, position = sorted(figures), {}, _RECORD_END
    for width, names in _COLUMNS:
        if left and left[0] == position + width + wider:
            position = left.pop(0)
            found[position] = names
        else:
            position += width
    if left:
        figure = figures[left[0]][0]
        raise ToolOutputError(f"{source}: {figure} at column {left[0]} is in no column")
    return found


def _kib(text: str, quantity: q.Quantity, what: str) -> int:
    """Bytes of a figure in units of 1024. Raises LimitError."""
    return quantity.whole_number(int(q.COUNT.of_text(text, what)) * _KIB, what)


def _blocks(capture: Capture, text: str) -> list[_Test]:
    each = _EACH.search(text)
    arrivals = Arrivals(capture, "stdout", text)
    tests = []
    for block in _BLOCK.finditer(text):
        if each is None or block["group"] not in _GROUPS:
            continue
        share_kib, record_kib = int(each[1]), int(each[2])
        processes, least_kib = int(block["processes"]), float(block["least"])
        if record_kib == 0 or float(block["parent"]) == 0:
            raise ToolOutputError(f"{capture.directory / OUTPUT_FILE}: a record or a rate of 0 kB")
        # "Min xfer" is not sufficient: of 16 stopped writers it ignores those that had not moved
        # any data, and is then the complete file (tests/data: 16-stonewalled.txt).
        complete = least_kib >= share_kib and _UNSTOPPED in text
        tests.append(
            _Test(
                *_GROUPS[block["group"]],
                record_bytes=record_kib * _KIB,
                bytes_moved=int((processes * share_kib if complete else least_kib) * _KIB),
                # The children's sum adds each at its speed, however little they overlapped; the
                # parent's figure is all bytes by the time that passed.
                rate_bytes_per_s=float(block["parent"]) * _KIB,
                arrived_s=arrivals.of(block.end("children")),
                metrics={
                    "processes": float(processes),
                    "parent_bandwidth_bytes_per_s": float(block["parent"]) * _KIB,
                    "children_bandwidth_bytes_per_s": float(block["children"]) * _KIB,
                    "slowest_process_bandwidth_bytes_per_s": float(block["slowest"]) * _KIB,
                    "fastest_process_bandwidth_bytes_per_s": float(block["fastest"]) * _KIB,
                },
                invalid=()
                if complete
                else ("IOzone stopped all processes when the first was done; run it with -x",),
            )
        )
    return tests


def _placed(tests: Sequence[_Test], last_s: float | None) -> tuple[PhaseResult, ...]:
    """The tests in time, from the last one backwards: none overlaps its successor."""
    phases: list[PhaseResult] = []
    next_start_s = last_s
    for test in reversed(tests):
        duration_s = test.bytes_moved / test.rate_bytes_per_s
        ends = [s for s in (test.arrived_s, next_start_s) if s is not None]
        end_s = min(ends, default=None)
        start_s = None if end_s is None else max(end_s - duration_s, 0.0)
        next_start_s = start_s if start_s is not None else next_start_s
        if test.unplaced is not None:
            # The distance to the test before is not known either.
            start_s = end_s = next_start_s = None
            window_source = f"none: {test.unplaced}, and its figure comes after the flush"
        elif end_s is None:
            window_source = "none: the arrival of IOzone's figures was not stamped"
        elif test.arrived_s is None:
            window_source = "IOzone's rate, counted back from the end of the process"
        else:
            window_source = "IOzone's rate, counted back from the arrival of its figure"
        phases.append(
            PhaseResult(
                name=test.name,
                operation=test.operation,
                spatiality=test.spatiality,
                request_size_bytes=test.record_bytes,
                bytes_moved=test.bytes_moved,
                bandwidth_bytes_per_s=float(test.rate_bytes_per_s),
                start_s=start_s,
                end_s=end_s,
                window_source=window_source,
                metrics={
                    "iops": test.rate_bytes_per_s / test.record_bytes,
                    "runtime_s": duration_s,
                    **test.metrics,
                },
                invalid=test.invalid,
            )
        )
    return tuple(reversed(phases))
