"""The I/O phases of a traced program with their power: JSON, a table, and a picture over time."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from eeio_limits.number_text import number
from eeio_results.record import EnergyReading, mark
from eeio_results.report.parts import Table
from eeio_results.traces.events import Event, TracePhase, Unobserved
from eeio_results.units import MB, format_size, percent

SCHEMA_VERSION = 1
_MOST_FILES = 5
_WRITES_END_EARLY = (
    "MB/s, W, J and MB/J of writes end when the calls returned; bytes in the page cache reach the "
    "drive later, and that energy is not included"
)
"""The trace shows no flush, nor when bytes reached the drive."""


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


def to_json(traced: Traced) -> dict[str, Any]:
    """The body of `eeio record trace --format json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": traced.exit_code,
        "events": len(traced.events),
        "power_reason": traced.reason,
        "not_observed": [each._asdict() for each in traced.unobserved],
        "phases": [
            {
                **phase.to_json(),
                "energy": [asdict(reading) for reading in traced.energy.get(place, ())],
            }
            for place, phase in enumerate(traced.phases)
        ],
    }


def table(traced: Traced) -> Table | str:
    """A row a phase; without any the reason."""
    phases = traced.phases
    not_observed = _not_observed(traced.unobserved)
    if not phases:
        reason = "no read and no write of a file was observed (pipes, devices and system files "
        return "\n".join((reason + "are left out)", *not_observed))
    begin_s = phases[0].start_s
    rows = []
    for place, phase in enumerate(phases):
        readings = traced.energy.get(place, ())
        span_s = phase.end_s - phase.start_s
        rows.append(
            (
                str(place + 1),
                phase.operation,
                phase.spatiality,
                f"{phase.start_s - begin_s:.3f}",
                f"{span_s:.3f}",
                f"{phase.requests}",
                f"{format_size(phase.request_size_bytes)} ({phase.request_size_share:.0%})",
                number(phase.bytes_moved / MB),
                number(phase.bytes_moved / MB / span_s) if span_s > 0 else "-",
                str(phase.processes),
                _of_domains(readings, lambda r: r.power_w),
                _of_domains(readings, lambda r: r.energy_j),
                _of_domains(readings, partial(_mb_per_j, phase)),
            )
        )
    notes = not_observed + ([f"power: {traced.reason}"] if traced.reason else [])
    notes += [f"power of {why}" for why in _left_out(traced)]
    notes += [f"MB/J of {where}: power excludes the drives" for where in _no_drives(traced)]
    notes += [_WRITES_END_EARLY] if any(phase.bytes_written for phase in phases) else []
    notes += [traced.overhead] if traced.overhead else []
    header = (
        "Phase", "Operation", "Spatiality", "Start (s)", "Length (s)", "Requests", "Size (share)",
        "MB", "MB/s", "Processes", "Power (W)", "Energy (J)", "MB/J",
    )  # fmt: skip
    return Table("I/O phases", header, tuple(rows), frozenset((0, *range(3, 10))), "\n".join(notes))


def _not_observed(unobserved: Sequence[Unobserved]) -> list[str]:
    """`not observed: bytes of mmap of FILE; io_uring`: what is missing in the figures, if any."""
    files = [each.file for each in unobserved if each.file is not None]
    kinds = [each.kind for each in unobserved if each.file is None]
    if files:
        more = f" and {len(files) - _MOST_FILES} more files" if len(files) > _MOST_FILES else ""
        kinds.append(f"mmap of {', '.join(files[:_MOST_FILES])}{more}")
    return [f"not observed, so its bytes are missing: {'; '.join(kinds)}"] if kinds else []


def _of_domains(
    readings: Sequence[EnergyReading], figure: Callable[[EnergyReading], float | None]
) -> str:
    """`package 12.1 ±1.2 %, dram 2.5`: of each domain with its uncertainty, where it has one."""
    found = []
    for reading in readings:
        value = figure(reading)
        if value is None:
            continue
        text = f"{mark(reading.kind)}{reading.domain} {number(value)}"
        if (share := reading.uncertainty_relative) is not None:
            text += f" ±{percent(share)} %"
        found.append(text)
    return ", ".join(found) or "-"


def _mb_per_j(phase: TracePhase, reading: EnergyReading) -> float | None:
    """None where there is no energy, or too little of the phase was seen for a figure of merit."""
    if not reading.energy_j or reading.why_not_ranked is not None:
        return None
    return phase.bytes_moved / MB / reading.energy_j


def _left_out(traced: Traced) -> list[str]:
    """Why phases have no power, or a doubtful one, each reason once."""
    return list(
        dict.fromkeys(
            f"{reading.domain} ({reading.meter}): {'doubtful: ' * reading.doubtful}{reason}"
            for readings in traced.energy.values()
            for reading in readings
            if reading.power_w is None or reading.doubtful
            for reason in reading.reasons
        )
    )


def _no_drives(traced: Traced) -> list[str]:
    """Domains whose power is not that of the storage, each once."""
    every = (reading for readings in traced.energy.values() for reading in readings)
    return list(dict.fromkeys(f"{r.domain} ({r.meter})" for r in every if r.leaves_drives_out))
