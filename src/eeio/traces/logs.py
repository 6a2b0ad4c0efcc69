"""Traces of other tools -> events: fio's iolog v2 and v3, Darshan's DXT text, and eeio's CSV.

The CSV (`time,client,op,offset,length`) is what eeio-dataserver replays.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.traces.events import Event, in_order, possible, transfers
from eeio.units.quantities import MOST_DIGITS

HEADER = ("time", "client", "op", "offset", "length")


def read(path: Path) -> list[Event]:
    """Events of a trace, whose first line identifies its format. Raises ToolOutputError."""
    try:
        text = inputs.read_text(path, inputs.TABLE_BYTES, errors="replace")
        inputs.check_lines(text, inputs.TRACE_LINE_BYTES)
    except OSError as error:
        raise ToolOutputError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise ToolOutputError(f"{path}: {error}") from error
    first = text.lstrip().partition("\n")[0]
    readers: dict[str, Callable[[str, str], Iterator[Event]]] = {
        "fio version": parse_iolog,
        "# DXT": parse_dxt,
        "# darshan log": parse_dxt,
        "# ***": parse_dxt,
        "time,": parse_csv,
    }
    for start, parse in readers.items():
        if first.startswith(start):
            events = list(parse(text, str(path)))
            if not events:
                raise ToolOutputError(f"{path}: no read and no write in it")
            return events
    raise ToolOutputError(
        f"{path}: no trace that is known here: fio's iolog, Darshan's DXT text, or a CSV with "
        f"{','.join(HEADER)}; it begins {first[:60]!r}"
    )


def parse_csv(text: str, source: str = "trace") -> Iterator[Event]:
    lines = text.split("\n")
    if tuple(lines[0].strip("\r").split(",")) != HEADER:
        raise ToolOutputError(f"{source}: the first line is not {','.join(HEADER)}")
    last_s = 0.0
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        where = f"{source}:{number}"
        try:
            # No cell has quotes: these are numbers and two texts.
            time, client, operation, offset, length = line.strip("\r").split(",")
            event = possible(
                Event(
                    float(time[:MOST_DIGITS]),
                    0.0,
                    str(int(client)),
                    operation,
                    "trace",
                    int(offset),
                    int(length),
                )
            )
            if operation not in ("read", "write") or event.start_s < 0:
                raise ValueError(operation)
        except ValueError as error:
            raise ToolOutputError(f"{where}: not {','.join(HEADER)}: {line!r:.100}") from error
        if event.start_s < last_s:
            raise ToolOutputError(f"{where}: the time runs backwards; sort the trace")
        last_s = event.start_s
        yield event


def parse_iolog(text: str, source: str = "iolog") -> Iterator[Event]:
    """fio's --write_iolog: v3 has a time in front of each line (us); v2 has `wait` lines, in ms
    since the start of fio (its source, iolog.c; its HOWTO takes them for pauses)."""
    lines = text.splitlines()
    version = None
    if lines:
        version = re.fullmatch(r"fio version (\d) iolog", lines[0].strip())
    if version is None or version[1] not in "23":
        raise ToolOutputError(f"{source}: not an iolog of version 2 or 3")
    clock_us = 0
    for number, line in enumerate(lines[1:], 2):
        fields = line.split()
        where = f"{source}:{number}"
        try:
            before_us = clock_us
            if version[1] == "3":
                clock_us = int(fields.pop(0)[:MOST_DIGITS])
            file, action, *place = fields
            numbers = list(map(int, place))
            if any(value < 0 for value in numbers):
                raise ValueError(place)
            if action == "wait":
                clock_us = numbers[0] * 1000
            if clock_us < before_us:
                raise ToolOutputError(f"{where}: the time runs backwards; sort the trace")
            if action in ("read", "write"):
                offset, length = numbers
                if length == 0:
                    raise ValueError(place)
                yield possible(Event(clock_us / 1e6, 0.0, file, action, file, offset, length))
            elif action not in ("add", "open", "close", "sync", "datasync", "trim", "wait"):
                raise ValueError(action)
        except (ValueError, IndexError, OverflowError) as error:
            raise ToolOutputError(f"{where}: not a line of an iolog: {line!r:.100}") from error


_DXT = re.compile(
    r" *(?P<module>X_\w+) +(?P<rank>-?\d+) +(?P<operation>read|write) +(?P<segment>\d{1,18}) +"
    r"(?P<offset>\d{1,19}) +(?P<length>\d{1,19}) +(?P<start>\d{1,15}(?:\.\d{0,15})?) +"
    r"(?P<end>\d{1,15}(?:\.\d{0,15})?)\s*$"
)
_DXT_FILE = re.compile(r"# DXT, file_id: \d+, file_name: (?P<name>.*)")


def parse_dxt(text: str, source: str = "DXT") -> Iterator[Event]:
    """darshan-dxt-parser's output; POSIX segments, for MPI-IO's are the same bytes once more."""
    file = "unknown"
    expected = found = files = counted = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            if match := _DXT_FILE.match(line):
                file = match["name"].strip()
                files += 1
            if "DXT_POSIX module contains incomplete data" in line:
                raise ToolOutputError(
                    f"{source}:{number}: incomplete: Darshan had no memory for all segments; run "
                    "the program again with more (DARSHAN_MODMEM)"
                )
            counts = re.findall(r"(?:write|read)_count: (\d{1,18})", line)
            counted += bool(counts)
            expected += sum(map(int, counts))
            continue
        if not line.strip():
            continue
        match = _DXT.match(line)
        if match is None:
            raise ToolOutputError(
                f"{source}:{number}: not a line of DXT, or cut off: {line!r:.100}"
            )
        found += 1
        if match["module"] != "X_POSIX" or int(match["length"]) == 0:
            continue
        start_s, end_s = float(match["start"]), float(match["end"])
        if end_s < start_s:
            raise ToolOutputError(f"{source}:{number}: a request ends before it starts")
        try:
            yield possible(
                Event(
                    start_s,
                    end_s - start_s,
                    match["rank"],
                    match["operation"],
                    file,
                    int(match["offset"]),
                    int(match["length"]),
                )
            )
        except LimitError as error:
            raise ToolOutputError(f"{source}:{number}: {error}") from error
    if counted < files:
        raise ToolOutputError(f"{source}: cut off: a file has no segments, nor their number")
    if not text.endswith("\n"):
        raise ToolOutputError(f"{source}: cut off: the last line does not end")
    if found < expected:
        raise ToolOutputError(f"{source}: cut off: {found} of {expected} segments are present")


def to_csv(events: Iterable[Event]) -> str:
    """The requests for eeio-dataserver: clients are numbered by process, files are placed one after
    the other. Reads and writes without an offset cannot be replayed and raise ToolOutputError."""
    ordered = in_order(transfers(events))
    if not ordered:
        raise ToolOutputError("no event to replay")
    ends: dict[str, int] = {}
    for event in ordered:
        if event.offset is None:
            raise ToolOutputError(
                f"{event.file}: the trace contains no offset of a request to it, so it cannot be "
                "replayed; leave the file out with --file, or use --tracer bpftrace"
            )
        ends[event.file] = max(ends.get(event.file, 0), event.offset + event.length)
    begins: dict[str, int] = {}
    end = 0
    for file, size in ends.items():
        begins[file] = end
        end += -(-size // 4096) * 4096
    clients = {process: n for n, process in enumerate(dict.fromkeys(e.process for e in ordered))}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for event in ordered:
        assert event.offset is not None
        writer.writerow(
            [
                f"{event.start_s - ordered[0].start_s:.6f}",
                clients[event.process],
                event.operation,
                begins[event.file] + event.offset,
                event.length,
            ]
        )
    return out.getvalue()
