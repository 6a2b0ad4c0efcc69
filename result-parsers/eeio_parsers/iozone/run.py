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
from collections.abc import Sequence
from dataclasses import dataclass

from eeio.errors import ToolOutputError
from eeio.record.tools._arrivals import Arrivals
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult, naming
from eeio.record.tools.description import About
from eeio.units import quantities as q
from eeio_parsers.iozone import table

ABOUT = About(reports_all_bytes=True, words={("flush", "off"): "flush=off"}, named=("stride",))

OUTPUT_FILE = "stdout.txt"
_KIB = 1024

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
class _Result:
    test: table.Test
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
    head = table.header(text)
    if head is not None:
        # One process: it ends with its test, so the end of the process will do without stamps.
        tests = _rows(capture, text, head, source)
        last_s: float | None = capture.ended_monotonic_s - capture.started_monotonic_s
    else:
        tests = _blocks(capture, text)
        last_s = None
    if not tests:
        raise ToolOutputError(f"{source}: no figures; IOzone could not run its tests")
    notes: tuple[str, ...] = ()
    if not _is_flushed(text) and any(each.test.operation == "write" for each in tests):
        notes = (
            _WITHOUT_FLUSH
            if head is not None
            else f"{_WITHOUT_FLUSH} in the children's figures; the parent's figure includes it",
        )
    source_of = next((source for mark, source in _FLUSHES.items() if mark in text), None)
    phases = tuple(phase.flushed(source_of) for phase in _placed(tests, last_s))
    return ToolResult(phases=phases, notes=notes)


def _is_flushed(text: str) -> bool:
    return any(mark in text for mark in _FLUSHES)


def _rows(capture: Capture, text: str, head: re.Match[str], source: str) -> list[_Result]:
    results: list[_Result] = []
    arrivals = Arrivals(capture, "stdout", text)
    end = text.find(_COMPLETE, head.end())
    if end < 0:
        raise ToolOutputError(f"{source}: IOzone's end is before its figures")
    if not table.is_known(head):
        raise ToolOutputError(f"{source}: columns of no known version: {head[0].strip()!r:.99}")
    is_flushed = _is_flushed(text)
    last = head.end()
    with naming(source):
        for row in table.rows(text[:end], head):
            size_bytes = q.SIZE.whole_number(row.file_kib * _KIB, "file size")
            record_bytes = q.REQUEST_SIZE.whole_number(row.record_kib * _KIB, "record size")
            for test, kib_per_s, last in row.cells:
                rate = q.BANDWIDTH.whole_number(kib_per_s * _KIB, "rate")
                if rate == 0:
                    continue  # -+n prints 0 for the second pass it skips
                without_flush = test.operation == "write" and not is_flushed
                results.append(
                    _Result(
                        test,
                        record_bytes,
                        size_bytes,
                        rate,
                        arrivals.of(last),
                        metrics={},
                        unplaced=_WITHOUT_FLUSH if without_flush else None,
                    )
                )
    if rest := text[last:end].strip():
        raise ToolOutputError(f"{source}: not a row of figures: {rest[:80]!r}")
    return results


def _blocks(capture: Capture, text: str) -> list[_Result]:
    each = _EACH.search(text)
    arrivals = Arrivals(capture, "stdout", text)
    tests = []
    for block in _BLOCK.finditer(text):
        test = table.GROUPS.get(block["group"])
        if each is None or test is None:
            continue
        share_kib, record_kib = int(each[1]), int(each[2])
        processes, least_kib = int(block["processes"]), float(block["least"])
        if record_kib == 0 or float(block["parent"]) == 0:
            raise ToolOutputError(f"{capture.directory / OUTPUT_FILE}: a record or a rate of 0 kB")
        # "Min xfer" is not sufficient: of 16 stopped writers it ignores those that had not moved
        # any data, and is then the complete file (tests/data: 16-stonewalled.txt).
        complete = least_kib >= share_kib and _UNSTOPPED in text
        tests.append(
            _Result(
                test,
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


def _placed(tests: Sequence[_Result], last_s: float | None) -> tuple[PhaseResult, ...]:
    """The tests in time, from the last one backwards: none overlaps its successor."""
    phases: list[PhaseResult] = []
    next_start_s = last_s
    for result in reversed(tests):
        duration_s = result.bytes_moved / result.rate_bytes_per_s
        ends = [s for s in (result.arrived_s, next_start_s) if s is not None]
        end_s = min(ends, default=None)
        start_s = None
        if end_s is not None:
            start_s = max(end_s - duration_s, 0.0)
        if start_s is not None:
            next_start_s = start_s
        if result.unplaced is not None:
            # The distance to the test before is not known either.
            start_s = end_s = next_start_s = None
            window_source = f"none: {result.unplaced}, and its figure comes after the flush"
        elif end_s is None:
            window_source = "none: the arrival of IOzone's figures was not stamped"
        elif result.arrived_s is None:
            window_source = "IOzone's rate, counted back from the end of the process"
        else:
            window_source = "IOzone's rate, counted back from the arrival of its figure"
        phases.append(
            PhaseResult(
                name=result.test.name,
                operation=result.test.operation,
                spatiality=result.test.spatiality,
                request_size_bytes=result.record_bytes,
                bytes_moved=result.bytes_moved,
                bandwidth_bytes_per_s=float(result.rate_bytes_per_s),
                start_s=start_s,
                end_s=end_s,
                window_source=window_source,
                metrics={
                    "iops": result.rate_bytes_per_s / result.record_bytes,
                    "runtime_s": duration_s,
                    **result.metrics,
                },
                invalid=result.invalid,
            )
        )
    return tuple(reversed(phases))
