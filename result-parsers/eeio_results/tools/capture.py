"""What the runner kept of one invocation of a tool, and what a parser makes of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eeio_results.errors import ToolOutputError
from eeio_results.record import ContextValue, EnergyReading, Phase

CAPTURE_FILE = "capture.json"


@dataclass(frozen=True)
class Stamp:
    """When a piece of output arrived: the stream grew to `end_offset` bytes at `monotonic_s`."""

    stream: str
    end_offset: int
    monotonic_s: float


@dataclass(frozen=True)
class Capture:
    """One invocation: a directory of raw output and the times around it.

    `directory` holds `stdout.txt`, `stderr.txt` and the files the profile wrote.
    `factors` are the key=value arguments the profile got, preset values included.
    Monotonic times are CLOCK_MONOTONIC seconds; `started_utc_s` is the wall clock at
    `started_monotonic_s`, so that a stamp a tool took from the wall clock can be placed.
    """

    directory: Path
    factors: Mapping[str, str]
    exit_code: int
    started_monotonic_s: float
    ended_monotonic_s: float
    started_utc_s: float
    stamps: tuple[Stamp, ...] = ()

    def text(self, name: str) -> str:
        """The raw file `name`, or ToolOutputError when it is missing or empty."""
        path = self.directory / name
        try:
            content = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ToolOutputError(f"{path}: {error.strerror or error}") from error
        if not content.strip():
            raise ToolOutputError(f"{path}: empty; the tool stopped before it printed a result")
        return content

    def since_start_s(self, utc_s: float) -> float:
        """Seconds from the start of the invocation to a wall-clock stamp."""
        return utc_s - self.started_utc_s

    def save(self) -> None:
        """Writes capture.json beside the raw output."""
        body = {
            "factors": dict(self.factors),
            "exit_code": self.exit_code,
            "started_monotonic_s": self.started_monotonic_s,
            "ended_monotonic_s": self.ended_monotonic_s,
            "started_utc_s": self.started_utc_s,
            "stamps": [[s.stream, s.end_offset, s.monotonic_s] for s in self.stamps],
        }
        (self.directory / CAPTURE_FILE).write_text(json.dumps(body) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "Capture":
        """The capture kept in `directory`."""
        path = directory / CAPTURE_FILE
        try:
            body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                directory=directory,
                factors=body["factors"],
                exit_code=body["exit_code"],
                started_monotonic_s=body["started_monotonic_s"],
                ended_monotonic_s=body["ended_monotonic_s"],
                started_utc_s=body["started_utc_s"],
                stamps=tuple(Stamp(*row) for row in body["stamps"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ToolOutputError(f"{path}: not a capture of a run: {error}") from error


@dataclass(frozen=True)
class PhaseResult:
    """A stretch of an invocation in which the tool did one kind of I/O.

    `start_s` and `end_s` count from the start of the invocation; both are None when the tool
    does not tell, and `window_source` says how they were found (or why not).
    `operation` is read, write, mixed, or metadata (files created, looked up, touched, deleted),
    whose `spatiality` is none and whose bandwidth is None unless data were written too.
    `bytes_moved` is what the tool claims to have transferred in this phase.
    `metrics` holds further figures under names that carry their unit
    (`iops`, `latency_mean_s`, `latency_p99_s`, ...).
    """

    name: str
    operation: str
    spatiality: str
    request_size_bytes: int | None
    bytes_moved: int
    bandwidth_bytes_per_s: float | None
    start_s: float | None
    end_s: float | None
    window_source: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    invalid: tuple[str, ...] = ()

    def recorded(
        self, energy: tuple[EnergyReading, ...] = (), validity: tuple[str, ...] | None = None
    ) -> Phase:
        """The phase of a run record, with its energy; `validity` stands for `invalid`."""
        return Phase(
            name=self.name,
            operation=self.operation,
            spatiality=self.spatiality,
            request_size_bytes=self.request_size_bytes,
            bytes_moved=self.bytes_moved,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
            start_s=self.start_s,
            end_s=self.end_s,
            window_source=self.window_source,
            metrics=dict(self.metrics),
            energy=energy,
            validity=self.invalid if validity is None else validity,
        )


@dataclass(frozen=True)
class ToolResult:
    """All that one invocation tells."""

    phases: tuple[PhaseResult, ...] = ()
    context: tuple[ContextValue, ...] = ()
    notes: tuple[str, ...] = ()
