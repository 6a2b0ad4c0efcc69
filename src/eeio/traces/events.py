"""Reads, writes, flushes and slow closes, one event each, and the phases that they make."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from eeio.units import quantities as q

GAP_S = 0.5
"""A pause as long as this ends a phase (docs/how-to/trace-a-program.md)."""

TRANSFERS = ("read", "write")
WAITS = ("flush", "close")
"""Calls without bytes of their own that wait for the drive, in which a program's time may go."""
ALL_FILES = "(all files)"
"""The file of a flush by sync(2)."""

# A stretch of one operation shorter than this between others is part of an alternation.
_FEWEST = 8
# This share of the steps decides the spatiality.
_MOST = 0.8


class Event(NamedTuple):
    """One read, write, flush or close. Times are seconds on one clock; `offset` is None if not
    reported.

    `page_cache`: whether written bytes of the file may be only in the page cache when the call has
    returned. False for writes with O_DIRECT or O_SYNC and for fsync; None if it is not known.
    """

    start_s: float
    duration_s: float
    process: str
    operation: str
    file: str
    offset: int | None
    length: int
    page_cache: bool | None = None

    @property
    def end_s(self) -> float:
        """When the call returned."""
        return self.start_s + self.duration_s


class Unobserved(NamedTuple):
    """I/O that a program can do without a call per request, so that its bytes are not observed.

    `kind` is mmap, with the mapped `file`, or io_uring or libaio, whose files are not known.
    """

    kind: str
    file: str | None = None


def possible(event: Event) -> Event:
    """The event. Raises LimitError where its time, place or length cannot be."""
    q.TIMESTAMP.checked(event.start_s, "its time")
    q.DURATION.checked(event.duration_s, "its duration")
    if event.operation in TRANSFERS:
        q.REQUEST_SIZE.checked(event.length, "its length")
    if event.offset is not None:
        q.SIZE.checked(event.offset, "its offset")
    return event


def transfers(events: Iterable[Event]) -> list[Event]:
    """The reads and writes among the events."""
    return [event for event in events if event.operation in TRANSFERS]


def in_order(events: Iterable[Event]) -> list[Event]:
    """By time."""
    return sorted(events, key=itemgetter(0, 1, 2, 3))


@dataclass(frozen=True)
class TracePhase:
    """A stretch in which a program did one kind of I/O, without a pause.

    `operation` is read, write, or mixed where the two alternate; flush or close without either.
    `request_size_bytes` is the most frequent size and `request_size_share` how many of the requests
    have it; flushes and closes have none. `io_s` is the time that its calls took, of all processes
    together. `flushes` are those among its reads and writes. `bytes_into_page_cache` may be only in
    the page cache at its end; of `bytes_page_cache_unknown` that is not known.
    """

    operation: str
    spatiality: str
    start_s: float
    end_s: float
    requests: int
    bytes_read: int
    bytes_written: int
    request_size_bytes: int | None
    request_size_share: float | None
    smallest_bytes: int | None
    largest_bytes: int | None
    processes: int
    files: tuple[str, ...]
    io_s: float
    flushes: int = 0
    bytes_into_page_cache: int = 0
    bytes_page_cache_unknown: int = 0

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "bytes_moved": self.bytes_moved}

    def _asdict(self) -> dict[str, Any]:
        return {**self.__dict__, "files": list(self.files)}


def find_phases(events: Iterable[Event], gap_s: float = GAP_S) -> list[TracePhase]:
    """The phases of all processes together, by time. Events need not be sorted.

    A phase ends with a pause of `gap_s`, or when the operation changes; where reads and writes
    alternate in short stretches (as in read-modify-write) the phase is mixed. Flushes and closes
    are phases of their own, unless they are short and frequent.
    """
    ordered = in_order(events)
    phases: list[TracePhase] = []
    begin = 0
    end_s = 0.0
    for index, event in enumerate(ordered):
        if index > begin and event.start_s - end_s > gap_s:
            phases += _split(ordered[begin:index], gap_s)
            begin, end_s = index, 0.0
        end_s = max(end_s, event.end_s)
    if begin < len(ordered):
        phases += _split(ordered[begin:], gap_s)
    return phases


_Run = tuple[str, int, int]
"""An operation, and the first event and the one behind the last."""


def _split(events: Sequence[Event], gap_s: float) -> list[TracePhase]:
    """One stretch without a pause: cut where the operation changes for longer."""
    operations = [event.operation for event in events]
    for index, (one, other) in enumerate(pairwise(events)):
        # One thread reads and writes at the same time in a call that copies between files.
        if (
            {one.operation, other.operation} == set(TRANSFERS)
            and one.process == other.process
            and other.start_s < one.end_s
        ):
            operations[index : index + 2] = "mixed", "mixed"
    _join_frequent_waits(operations, events, gap_s)
    runs = _runs(operations)
    alternates = sum(operation not in WAITS for operation, _, _ in runs) > 2
    merged: list[_Run] = []
    for operation, first, last in runs:
        short = last - first < _FEWEST and alternates and operation not in WAITS
        if short:
            operation = "mixed"
        if merged and merged[-1][0] == operation:
            merged[-1] = (operation, merged[-1][1], last)
        else:
            merged.append((operation, first, last))
    return [_phase(_operation(events[first:last]), events[first:last]) for _, first, last in merged]


def _runs(operations: Sequence[str]) -> list[_Run]:
    """Stretches of one operation."""
    runs = []
    begin = 0
    for operation, group in groupby(operations):
        end = begin + sum(1 for _ in group)
        runs.append((operation, begin, end))
        begin = end
    return runs


def _join_frequent_waits(operations: list[str], events: Sequence[Event], gap_s: float) -> None:
    """A program that flushes after each few writes does one kind of I/O: these flushes get the
    operation of the reads or writes before them. Long ones stay."""
    runs = _runs(operations)
    for wait in WAITS:
        mine = [run for run in runs if run[0] == wait]
        if len(mine) < _FEWEST:
            continue
        for _, first, last in mine:
            took_s = max(event.end_s for event in events[first:last]) - events[first].start_s
            if first > 0 and took_s < gap_s:
                operations[first:last] = [operations[first - 1]] * (last - first)


def _operation(events: Sequence[Event]) -> str:
    """A single short stretch between longer ones has no alternation."""
    operations = {event.operation for event in transfers(events) or events}
    if operations <= set(WAITS):
        if "flush" in operations:
            return "flush"
        return "close"
    if len(operations) == 1:
        return operations.pop()
    return "mixed"


def _phase(operation: str, events: Sequence[Event]) -> TracePhase:
    moved = transfers(events)
    phase = TracePhase(
        operation=operation,
        spatiality="none",
        start_s=events[0].start_s,
        end_s=max(event.end_s for event in events),
        requests=len(events),
        bytes_read=0,
        bytes_written=0,
        request_size_bytes=None,
        request_size_share=None,
        smallest_bytes=None,
        largest_bytes=None,
        processes=len({event.process for event in events}),
        files=tuple(dict.fromkeys(event.file for event in events)),
        io_s=_in_calls_s(events),
    )
    if not moved:
        return phase
    sizes = Counter(event.length for event in moved)
    common, count = sizes.most_common(1)[0]
    cached, unknown = not_flushed(events)
    return replace(
        phase,
        spatiality=spatiality(moved),
        requests=len(moved),
        bytes_read=sum(e.length for e in moved if e.operation == "read"),
        bytes_written=sum(e.length for e in moved if e.operation == "write"),
        request_size_bytes=common,
        request_size_share=count / len(moved),
        smallest_bytes=min(sizes),
        largest_bytes=max(sizes),
        flushes=sum(event.operation == "flush" for event in events),
        bytes_into_page_cache=cached,
        bytes_page_cache_unknown=unknown,
    )


def not_flushed(events: Iterable[Event]) -> tuple[int, int]:
    """Written bytes that no later flush of their file has sent to the drive: those that went into
    the page cache, and those of which that is not known. Events are sorted."""
    waiting: dict[str, list[Event]] = {}
    for event in events:
        if event.operation == "write" and event.page_cache is not False:
            waiting.setdefault(event.file, []).append(event)
        elif event.operation == "flush" and event.page_cache is False:
            _flush(event, waiting)
    cached = unknown = 0
    for writes in waiting.values():
        for write in writes:
            if write.page_cache:
                cached += write.length
            else:
                unknown += write.length
    return cached, unknown


def _flush(flush: Event, waiting: dict[str, list[Event]]) -> None:
    """Remove the writes that had ended when the flush began."""
    files = list(waiting) if flush.file == ALL_FILES else [flush.file]
    for file in files:
        later = [write for write in waiting.pop(file, ()) if write.end_s > flush.start_s]
        if later:
            waiting[file] = later


def _in_calls_s(events: Iterable[Event]) -> float:
    """Time of all calls; one that copies between files counts once though it is two events."""
    ended_s: dict[str, float] = {}
    total_s = 0.0
    for event in events:
        begin_s = max(event.start_s, ended_s.get(event.process, event.start_s))
        total_s += max(0.0, event.end_s - begin_s)
        ended_s[event.process] = max(event.end_s, ended_s.get(event.process, event.end_s))
    return total_s


def spatiality(events: Sequence[Event]) -> str:
    """By the steps from the end of a request to the next one of that process and operation in that
    file: read-modify-write goes forward with both."""
    ends: dict[tuple[str, str, str], int] = {}
    steps: Counter[int] = Counter()
    for event in events:
        if event.offset is None:
            continue
        key = (event.process, event.file, event.operation)
        if key in ends:
            steps[event.offset - ends[key]] += 1
        ends[key] = event.offset + event.length
    total = sum(steps.values())
    if total == 0:
        single = len({event.operation for event in events}) == len(events)
        if single:
            return "sequential"
        return "unknown"
    if steps[0] >= _MOST * total:
        return "sequential"
    (step, count) = steps.most_common(1)[0]
    if step > 0 and count >= _MOST * total:
        return "strided"
    # Patterns of several strides, as nested loops make them, go forward all the time.
    forward = sum(number for size, number in steps.items() if size >= 0)
    few = sum(number for _, number in steps.most_common(4))
    if forward >= _MOST * total and few >= _MOST * total:
        return "strided"
    return "random"
