"""The stored output of one invocation of a tool, and the results that a parser derives from it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs, typed
from eeio.files.typed import LATER
from eeio.record import consistency
from eeio.record.phase_times import Stretch, impossible_figures, impossible_stretches
from eeio.record.run import ContextValue, Durable, EnergyReading, Phase, impossible_durable
from eeio.units import quantities as q

CAPTURE_FILE = "capture.json"


@dataclass(frozen=True)
class Stamp:
    """When a piece of output arrived: the stream grew to `end_offset` bytes at `monotonic_s`."""

    stream: str
    end_offset: int
    monotonic_s: float


NOTES_FILE = "notes.txt"
_MOST_NOTES = 20


@dataclass(frozen=True)
class Capture:
    """One invocation: a directory of raw output and the times around it.

    `directory` contains `stdout.txt`, `stderr.txt` and the files the profile wrote. `factors` are
    the key=value arguments the profile got, preset values included. Monotonic times are
    CLOCK_MONOTONIC seconds; `started_utc_s` is the wall clock at `started_monotonic_s`, to place
    stamps that a tool took from the wall clock. `left_out`: bytes missing in the middle of `stdout`
    and `stderr`, if one was too long to store (eeio.files.inputs).
    """

    directory: Path
    factors: Mapping[str, str]
    exit_code: int
    started_monotonic_s: float
    ended_monotonic_s: float
    started_utc_s: float
    stamps: tuple[Stamp, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    left_running: int = 0
    """Processes that still ran after the end of the tool; they were killed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the output: bytes left out, and the first lines of `notes.txt`, in which the
        profile's script describes the run."""
        kept = inputs.size(inputs.KEPT_HEAD_BYTES), inputs.size(inputs.KEPT_TAIL_BYTES)
        left_out = tuple(
            f"{stream}: {count} bytes left out between the first {kept[0]} and the last {kept[1]}"
            for stream, count in self.left_out.items()
        )
        try:
            text = inputs.read_text(self.directory / NOTES_FILE, inputs.CELL_CHARACTERS, "replace")
        except OSError:
            return left_out
        except LimitError as error:
            return (*left_out, f"{NOTES_FILE}: {error}")
        return (*left_out, *text.splitlines()[:_MOST_NOTES])

    def text(self, name: str, most_line: int | None = inputs.TOOL_LINE_CHARACTERS) -> str:
        """The raw file `name`, its lines no longer than `most_line` characters.

        Raises ToolOutputError when it is missing, empty, too long, or incomplete.
        """
        path = self.directory / name
        if count := self.left_out.get(Path(name).stem):
            raise ToolOutputError(
                f"{path}: the tool's output exceeds the limit: {count} bytes were not stored"
            )
        try:
            content = inputs.read_text(path, inputs.TOOL_FILE_BYTES, errors="replace")
            if most_line is not None:
                inputs.check_lines(content, most_line)
        except OSError as error:
            raise ToolOutputError(f"{path}: {error.strerror or error}") from error
        except LimitError as error:
            raise ToolOutputError(f"{path}: {error}") from error
        if not content.strip():
            raise ToolOutputError(f"{path}: empty; the tool stopped before it printed a result")
        return content

    def since_start_s(self, utc_s: float) -> float:
        """Seconds from the start of the invocation to a wall-clock stamp."""
        return utc_s - self.started_utc_s

    def save(self) -> None:
        """Writes capture.json next to the raw output."""
        body = {
            "factors": dict(self.factors),
            "exit_code": self.exit_code,
            "started_monotonic_s": self.started_monotonic_s,
            "ended_monotonic_s": self.ended_monotonic_s,
            "started_utc_s": self.started_utc_s,
            "stamps": [[s.stream, s.end_offset, s.monotonic_s] for s in self.stamps],
            "left_out": dict(self.left_out),
            "left_running": self.left_running,
        }
        (self.directory / CAPTURE_FILE).write_text(json.dumps(body) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "Capture":
        """The capture stored in `directory`. Raises ToolOutputError."""
        path = directory / CAPTURE_FILE
        try:
            return _capture(directory, inputs.read_json(path))
        except (OSError, ValueError) as error:
            raise ToolOutputError(f"{path}: not a capture of a run: {error}") from error


@dataclass(frozen=True)
class StoredCapture:
    """One invocation of a tool, next to its raw output. The runner writes it, and under PTS the
    power session."""

    factors: Mapping[str, str]
    """The key=value arguments that the profile got, preset values included."""
    exit_code: Annotated[int, q.EXIT_CODE]
    started_monotonic_s: Annotated[float, q.TIMESTAMP]
    ended_monotonic_s: Annotated[float, q.TIMESTAMP]
    started_utc_s: Annotated[float, q.TIMESTAMP]
    """The wall clock at started_monotonic_s."""
    stamps: tuple[tuple[str, Annotated[int, q.SIZE], Annotated[float, q.TIMESTAMP]], ...]
    """Stream, bytes that it had grown to, monotonic seconds of that."""
    left_out: Mapping[str, Annotated[int, q.SIZE]] = field(default_factory=dict, metadata=LATER)
    """Of stdout and stderr: bytes of the middle that were not stored."""
    left_running: Annotated[int, q.COUNT] = field(default=0, metadata=LATER)
    """Processes that still ran after the end of the tool."""

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        lasted_s = self.ended_monotonic_s - self.started_monotonic_s
        if q.DURATION.contains(lasted_s):
            return None
        return q.DURATION.rejection(lasted_s, "the time from its start to its end")


def _capture(directory: Path, body: object) -> Capture:
    stored = typed.read(StoredCapture, body)
    known = {item.name: getattr(stored, item.name) for item in fields(stored)}
    return Capture(
        directory, **{**known, "stamps": tuple(Stamp(*stamp) for stamp in stored.stamps)}
    )


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Turns an error about a tool's output into a ToolOutputError that names the source."""
    try:
        yield
    except ToolOutputError as error:
        message = str(error)
        raise ToolOutputError(message if source in message else f"{source}: {message}") from error
    except LimitError as error:
        raise ToolOutputError(f"{source}: {error}") from error


@dataclass(frozen=True)
class PhaseResult:
    """A stretch of an invocation in which the tool did one kind of I/O.

    `start_s` and `end_s` count from the start of the invocation; both are None when the tool does
    not report them. `window_source` is how they were found (or why not). `operation` is read,
    write, mixed, or metadata (files created, looked up, touched, deleted). Metadata has the
    `spatiality` none, and no bandwidth unless data were written too. `bytes_moved` is the tool's
    reported bytes of this phase, None if not known. `metrics` contains further figures under names
    with their unit (`iops`, `latency_mean_s`, `latency_p99_s`, ...). If the tool flushed by itself,
    `until_durable` is the time until the write is durable, without energy. A phase in `stretches`,
    with other work between them, includes its flush, or has none. `edges_unsure_s` is how far both
    edges of the window together may be from those of the I/O, if the parser has a limit. The
    uncertainty of the energy includes it.
    """

    name: str
    operation: str
    spatiality: str
    request_size_bytes: Annotated[int, q.REQUEST_SIZE] | None
    bytes_moved: Annotated[int, q.SIZE] | None
    bandwidth_bytes_per_s: Annotated[float, q.BANDWIDTH] | None
    start_s: Annotated[float, q.OFFSET] | None
    end_s: Annotated[float, q.OFFSET] | None
    window_source: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    invalid: tuple[str, ...] = ()
    until_durable: Durable | None = None
    durable_reason: str | None = None
    includes_flush: bool = False
    spatiality_seen: str | None = None
    stretches: tuple[Stretch, ...] = ()
    edges_unsure_s: Annotated[float, q.DURATION] | None = None

    def __post_init__(self) -> None:
        """Raises LimitError for a figure that cannot be, whichever parser made it."""
        try:
            typed.check(self)
        except LimitError as error:
            raise LimitError(f"{self.name}: {error}") from None

    def flushed(self, source: str | None) -> "PhaseResult":
        """The phase of a tool whose time includes its flush, by `source`; itself without a write or
        a flush."""
        if self.operation == "read" or source is None:
            return self
        durable = None
        if self.end_s is not None and self.bandwidth_bytes_per_s is not None:
            durable = Durable(self.end_s, self.bandwidth_bytes_per_s, source)
        return replace(self, includes_flush=True, until_durable=durable)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        return (
            impossible_figures(self.start_s, self.end_s, self.metrics)
            or impossible_durable(self.start_s, self.end_s, self.until_durable)
            or impossible_stretches(self)
            or (None if self.invalid else consistency.disagreement(self))
        )

    def recorded(
        self, energy: tuple[EnergyReading, ...] = (), validity: tuple[str, ...] | None = None
    ) -> Phase:
        """The phase of a run record, with its energy; `validity` replaces `invalid`."""
        own = ("metrics", "invalid")
        alike = {}
        for f in fields(self):
            if f.name not in own:
                alike[f.name] = getattr(self, f.name)
        return Phase(
            **alike,
            metrics=dict(self.metrics),
            energy=energy,
            validity=self.invalid if validity is None else validity,
            spatiality_seen_by=None if self.spatiality_seen is None else "requests",
        )


@dataclass(frozen=True)
class ToolResult:
    """All results of one invocation."""

    phases: tuple[PhaseResult, ...] = ()
    context: tuple[ContextValue, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises LimitError for a figure of the machine that cannot be."""
        for value in self.context:
            typed.check(value)
