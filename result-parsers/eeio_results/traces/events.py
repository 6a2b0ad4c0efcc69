"""Reads and writes, one event each, and the phases that they make."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from eeio_limits import quantities as q

GAP_S = 0.5
"""A pause as long as this ends a phase (docs/how-to/trace-a-program.md)."""

# A stretch of one operation shorter than this between others is part of an alternation.
_FEWEST = 8
# This share of the steps decides the spatiality.
_MOST = 0.8


class Event(NamedTuple):
    """One read or write. Times are seconds on one clock; `offset` is None if not reported."""

    start_s: float
    duration_s: float
    process: str
    operation: str
    file: str
    offset: int | None
    length: int


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
    q.REQUEST_SIZE.checked(event.length, "its length")
    if event.offset is not None:
        q.SIZE.checked(event.offset, "its offset")
    return event


@dataclass(frozen=True)
class TracePhase:
    """A stretch in which a program did one kind of I/O, without a pause.

    `operation` is read, write, or mixed where the two alternate. `request_size_bytes` is the most
    frequent size and `request_size_share` how many of the requests have it. `io_s` is the time that
    its calls took, of all processes together.
    """

    operation: str
    spatiality: str
    start_s: float
    end_s: float
    requests: int
    bytes_read: int
    bytes_written: int
    request_size_bytes: int
    request_size_share: float
    smallest_bytes: int
    largest_bytes: int
    processes: int
    files: tuple[str, ...]
    io_s: float

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
    alternate in short stretches (as in read-modify-write) the phase is mixed.
    """
    ordered = sorted(events)
    phases: list[TracePhase] = []
    begin = 0
    end_s = 0.0
    for place, event in enumerate(ordered):
        if place > begin and event.start_s - end_s > gap_s:
            phases += _split(ordered[begin:place])
            begin, end_s = place, 0.0
        end_s = max(end_s, event.start_s + event.duration_s)
    if begin < len(ordered):
        phases += _split(ordered[begin:])
    return phases


def _split(events: Sequence[Event]) -> list[TracePhase]:
    """One stretch without a pause: cut where the operation changes for longer."""
    operations = [event.operation for event in events]
    for place, (one, other) in enumerate(pairwise(events)):
        # One thread reads and writes at the same time in a call that copies between files.
        if (
            one.operation != other.operation
            and one.process == other.process
            and other.start_s < one.start_s + one.duration_s
        ):
            operations[place : place + 2] = "mixed", "mixed"
    runs: list[tuple[str, int, int]] = []
    begin = 0
    for place in range(1, len(events) + 1):
        if place == len(events) or operations[place] != operations[begin]:
            runs.append((operations[begin], begin, place))
            begin = place
    merged: list[tuple[str, int, int]] = []
    for operation, first, last in runs:
        short = last - first < _FEWEST and len(runs) > 2
        operation = "mixed" if short else operation
        if merged and merged[-1][0] == operation:
            merged[-1] = (operation, merged[-1][1], last)
        else:
            merged.append((operation, first, last))
    return [_phase(_operation(events[first:last]), events[first:last]) for _, first, last in merged]


def _operation(events: Iterable[Event]) -> str:
    """A single short stretch between longer ones has no alternation."""
    found = {event.operation for event in events}
    return found.pop() if len(found) == 1 else "mixed"


def _phase(operation: str, events: Sequence[Event]) -> TracePhase:
    sizes = Counter(event.length for event in events)
    common, count = sizes.most_common(1)[0]
    return TracePhase(
        operation=operation,
        spatiality=spatiality(events),
        start_s=events[0].start_s,
        end_s=max(event.start_s + event.duration_s for event in events),
        requests=len(events),
        bytes_read=sum(e.length for e in events if e.operation == "read"),
        bytes_written=sum(e.length for e in events if e.operation == "write"),
        request_size_bytes=common,
        request_size_share=count / len(events),
        smallest_bytes=min(sizes),
        largest_bytes=max(sizes),
        processes=len({event.process for event in events}),
        files=tuple(dict.fromkeys(event.file for event in events)),
        io_s=_in_calls_s(events),
    )


def _in_calls_s(events: Iterable[Event]) -> float:
    """Time of all calls; one that copies between files counts once though it is two events."""
    ended_s: dict[str, float] = {}
    total_s = 0.0
    for event in events:
        end_s = event.start_s + event.duration_s
        begin_s = max(event.start_s, ended_s.get(event.process, event.start_s))
        total_s += max(0.0, end_s - begin_s)
        ended_s[event.process] = max(end_s, ended_s.get(event.process, end_s))
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
        return "sequential" if single else "unknown"
    if steps[0] >= _MOST * total:
        return "sequential"
    (step, count) = steps.most_common(1)[0]
    if step > 0 and count >= _MOST * total:
        return "strided"
    # Patterns of several strides, as nested loops make them, go forward all the time.
    forward = sum(number for size, number in steps.items() if size >= 0)
    few = sum(number for _, number in steps.most_common(4))
    return "strided" if forward >= _MOST * total and few >= _MOST * total else "random"
