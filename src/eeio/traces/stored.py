"""Stored traces of any kind: which tool wrote them is in their first line."""

from collections.abc import Sequence
from pathlib import Path

from eeio.errors import LimitError, ToolOutputError
from eeio.files import inputs
from eeio.traces import bpftrace, darshan, logs, strace
from eeio.traces.events import Event, Unobserved


def read(paths: Sequence[Path], unobserved: set[Unobserved]) -> list[Event]:
    """Several files are one strace of several processes; one file may be any trace. Adds to
    `unobserved` what the trace does not show. Raises ToolOutputError."""
    if len(paths) == 1 and paths[0].suffix == ".darshan":
        return darshan.read(paths[0])
    first = _first_line(paths[0])
    if len(paths) == 1 and bpftrace.is_trace(first):
        events = bpftrace.read(paths[0], unobserved)
    elif len(paths) == 1 and not _is_strace(first):
        return logs.read(paths[0])
    else:
        events = strace.read(paths, unobserved)
    if not events and not unobserved:
        raise ToolOutputError(f"{paths[0]}: no read and no write of a file in it")
    return events


def _first_line(path: Path) -> str:
    try:
        with inputs.open_file(path) as file:
            return file.readline(inputs.TRACE_LINE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise ToolOutputError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise ToolOutputError(f"{path}: {error}") from error


def _is_strace(first: str) -> bool:
    return first[:1].isdigit() and first.partition(" ")[0].count(".") == 1 and "(" in first
