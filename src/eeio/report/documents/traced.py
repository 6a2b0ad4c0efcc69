"""The I/O phases of a traced program with their power: JSON, a table, and a picture over time."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from eeio.record.reasons import unknown_delays
from eeio.record.run import EnergyReading, mark
from eeio.report.document import Document
from eeio.report.table_and_plot import Table
from eeio.traces.account import WRITEBACK, Row
from eeio.traces.events import Event, TracePhase, Unobserved, transfers
from eeio.units.number_text import number
from eeio.units.sizes import MB, format_size, percent

SCHEMA_VERSION = 1
_MOST_FILES = 5
_OVERLAP_S = 1e-6
_IN_CACHE = "*"
"""Mark of a MB/s and MB/J of bytes that may be only in the page cache."""
_CACHE_NOTE = (
    f"{_IN_CACHE} into page cache: the row ends when the calls returned. The bytes reach the drive "
    "later: in a row `flush`, in the background, or after the end"
)
_UNKNOWN_NOTE = (
    f"{_IN_CACHE} page cache unknown: the trace does not show how the file was opened, so the "
    "bytes may be only in the page cache"
)
_OVERLAP_NOTE = (
    "phases overlap: the time and energy of an overlap are in the row of the earlier phase"
)
_WRITEBACK_NOTE = (
    f"{WRITEBACK}: syncfs right after the program, which also writes other programs' data"
)


@dataclass(frozen=True)
class Traced:
    """Events on CLOCK_MONOTONIC where they were taken here, else as their file has them; the phases
    of those that were asked for, and the energy of each by its place."""

    events: Sequence[Event]
    phases: Sequence[TracePhase]
    reason: str | None
    """Why there is no power."""
    energy: dict[int, tuple[EnergyReading, ...]] = field(default_factory=dict)
    exit_code: int = 0
    overhead: str | None = None
    """The tracer's effect on the program; None for a stored trace."""
    unobserved: Sequence[Unobserved] = ()
    """I/O with bytes that the trace does not show."""
    rows: Sequence[Row] = ()
    """The phases, the rest and the total, which add up (`traces.account`)."""
    unknown_delays: Sequence[str] = ()
    """Meters of unknown delay."""
    other_io: Sequence[str] = ()
    """Drives that moved much more than the program."""


def to_json(traced: Traced) -> dict[str, Any]:
    """The body of `eeio record trace --format json`. `energy` of a phase is that of its complete
    time; the energies of `rows` add up, also where phases overlap."""
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": traced.exit_code,
        "events": len(transfers(traced.events)),
        "power_reason": traced.reason,
        "unknown_delays": list(traced.unknown_delays),
        "other_io": list(traced.other_io),
        "not_observed": [each._asdict() for each in traced.unobserved],
        "phases": [
            {
                **phase.to_json(),
                "energy": list(map(asdict, traced.energy.get(index, ()))),
            }
            for index, phase in enumerate(traced.phases)
        ],
        "rows": [row.to_json() for row in traced.rows],
    }


def document(traced: Traced, nothing: str | None) -> Document:
    """`nothing` replaces the table of a program without phases."""
    part = nothing or table(traced)
    return Document(
        "I/O of a program",
        parts=(part,),
        data=lambda: to_json(traced),
        records=lambda: [_record(traced, row) for row in traced.rows],
    )


def _record(traced: Traced, row: Row) -> dict[str, Any]:
    """A line of the CSV."""
    record = {**row.to_json(), "operation": _operation(traced, row), "not_observed": ""}
    record["other_io"] = "; ".join(traced.other_io)
    readings = record.pop("energy")
    if traced.unobserved:
        record["not_observed"] = "; ".join(_not_observed(traced.unobserved))
    for reading in readings:
        name = f"{reading['meter']}_{reading['domain']}"
        for key in ("energy_j", "uncertainty_j", "power_w"):
            record[f"{name}_{key}"] = reading[key]
        record[f"{name}_kind"] = reading["kind"]
        record[f"{name}_reason"] = "; ".join(reading["reasons"])
    return record


def _operation(traced: Traced, row: Row) -> str:
    """`write, 12 flushes, into page cache`; nothing for the rest and the sums."""
    if row.phase is None:
        return ""
    phase = traced.phases[row.phase - 1]
    texts = [phase.operation]
    if phase.flushes:
        texts.append(f"{phase.flushes} flush{'es' if phase.flushes > 1 else ''}")
    if row.bytes_into_page_cache:
        texts.append("into page cache")
    elif row.bytes_page_cache_unknown:
        texts.append("page cache unknown")
    return ", ".join(texts)


def table(traced: Traced) -> Table | tuple[str, ...]:
    """A row a phase, then the rest and the sums; without any phase the reason."""
    phases = traced.phases
    not_observed = _not_observed(traced.unobserved)
    if not phases:
        reason = "no read and no write of a file was observed (pipes, devices and system files "
        return (reason + "are left out)", *not_observed)
    begin_s = min(row.start_s for row in traced.rows if row.start_s is not None)
    rows = [_cells(traced, row, begin_s) for row in traced.rows]
    notes = not_observed + ([f"power: {traced.reason}"] if traced.reason else [])
    notes += unknown_delays(traced.unknown_delays)
    notes += traced.other_io
    for why in _left_out(traced):
        notes.append(f"power of {why}")
    for row in traced.rows:
        if row.reason is not None:
            notes.append(f"{row.name}: {row.reason}")
    for where in _no_drives(traced):
        notes.append(f"MB/J of {where}: power excludes the drives")
    for note, applies in _notes_on_rows(traced.rows):
        if applies:
            notes.append(note)
    if traced.overhead:
        notes.append(traced.overhead)
    header = (
        "Phase",
        "Operation",
        "Spatiality",
        "Start (s)",
        "Length (s)",
        "Requests",
        "Size (share)",
        "MB",
        "MB/s",
        "Processes",
        "Power (W)",
        "Energy (J)",
        "MB/J",
    )
    numeric = frozenset(range(3, 10))
    return Table("I/O phases", header, tuple(rows), numeric, "\n".join(notes))


def _cells(traced: Traced, row: Row, begin_s: float) -> tuple[str, ...]:
    requests = ("", "", "-", "-", "-")
    if row.phase is not None:
        phase = traced.phases[row.phase - 1]
        size = "-"
        if phase.request_size_bytes is not None:
            size = f"{format_size(phase.request_size_bytes)} ({phase.request_size_share:.0%})"
        requests = (
            _operation(traced, row),
            phase.spatiality,
            f"{phase.requests}",
            size,
            str(phase.processes),
        )
    operation, pattern, count, size, processes = requests
    return (
        row.name,
        operation,
        pattern,
        "-" if row.start_s is None else f"{row.start_s - begin_s:.3f}",
        "-" if row.seconds is None else f"{row.seconds:.3f}",
        count,
        size,
        "-" if row.bytes_moved is None else number(row.bytes_moved / MB),
        _marked(row, _rate(row)),
        processes,
        _of_domains(row.energy, lambda r: r.power_w),
        _of_domains(row.energy, lambda r: r.energy_j),
        _marked(row, _of_domains(row.energy, partial(_mb_per_j, row))),
    )


def _rate(row: Row) -> str:
    """MB/s over the complete time of a phase, also where that overlaps an earlier one."""
    if row.bytes_moved is None or row.seconds is None:
        return "-"
    span_s = row.seconds + row.overlap_s
    if span_s > 0:
        return number(row.bytes_moved / MB / span_s)
    return "-"


def _marked(row: Row, text: str) -> str:
    in_cache = row.bytes_into_page_cache or row.bytes_page_cache_unknown
    if in_cache and text != "-":
        return f"{text}{_IN_CACHE}"
    return text


def _notes_on_rows(rows: Sequence[Row]) -> tuple[tuple[str, bool], ...]:
    """Each note, and whether a row needs it."""
    return (
        (_CACHE_NOTE, any(row.bytes_into_page_cache for row in rows)),
        (_UNKNOWN_NOTE, any(row.bytes_page_cache_unknown for row in rows)),
        (_OVERLAP_NOTE, any(row.overlap_s > _OVERLAP_S for row in rows)),
        (_WRITEBACK_NOTE, any(row.name == WRITEBACK and row.seconds is not None for row in rows)),
    )


def _not_observed(unobserved: Sequence[Unobserved]) -> list[str]:
    """`not observed: bytes of mmap of FILE; io_uring`: what is missing in the figures, if any."""
    files = [each.file for each in unobserved if each.file is not None]
    kinds = [each.kind for each in unobserved if each.file is None]
    if files:
        more = ""
        if len(files) > _MOST_FILES:
            more = f" and {len(files) - _MOST_FILES} more files"
        kinds.append(f"mmap of {', '.join(files[:_MOST_FILES])}{more}")
    if kinds:
        return [f"not observed, so its bytes are missing: {'; '.join(kinds)}"]
    return []


def _of_domains(
    readings: Sequence[EnergyReading], figure: Callable[[EnergyReading], float | None]
) -> str:
    """`package 12.1 ±1.2 %, dram 2.5`: of each domain with its uncertainty, where it has one."""
    texts = []
    for reading in readings:
        value = figure(reading)
        if value is None:
            continue
        text = f"{mark(reading.kind)}{reading.domain} {number(value)}"
        if (share := reading.uncertainty_relative) is not None:
            text += f" ±{percent(share)} %"
        texts.append(text)
    return ", ".join(texts) or "-"


def _mb_per_j(row: Row, reading: EnergyReading) -> float | None:
    """None where there is no energy, too little of the row was observed for a figure of merit, or a
    part of its phase is in another row."""
    if not row.bytes_moved or not reading.energy_j or reading.why_not_ranked is not None:
        return None
    if row.overlap_s > _OVERLAP_S:
        return None
    return row.bytes_moved / MB / reading.energy_j


def _left_out(traced: Traced) -> list[str]:
    """Why rows have no power, or a doubtful one: each reason once, with its rows."""
    rows: dict[str, list[str]] = {}
    for row in traced.rows:
        for reading in row.energy:
            if reading.power_w is not None and not reading.doubtful:
                continue
            for reason in reading.reasons:
                doubt = "doubtful: " * reading.doubtful
                text = f"{reading.domain} ({reading.meter}): {doubt}{reason}"
                rows.setdefault(text, []).append(row.name)
    return [f"{text} (in {', '.join(names)})" for text, names in rows.items()]


def _no_drives(traced: Traced) -> list[str]:
    """Domains whose power is not that of the storage, each once."""
    every = (reading for row in traced.rows for reading in row.energy)
    return list(dict.fromkeys(f"{r.domain} ({r.meter})" for r in every if r.leaves_drives_out))
