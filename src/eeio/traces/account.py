"""The time and energy of a traced program as rows that add up: its phases, the rest, the total."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eeio.record.run import EnergyReading
from eeio.record.windows import known
from eeio.traces.events import Event, TracePhase, in_order, not_flushed

REST = "rest"
TOTAL = "total"
WRITEBACK = "writeback after the end"
UNTIL_DURABLE = "total until durable"
NOT_SHOWN = "the trace does not show when the bytes reached the drive"

Measure = Callable[[float, float], tuple[EnergyReading, ...]]
"""The energy of a window."""


@dataclass(frozen=True)
class Row:
    """A part of the program's time, or a sum. `phase` is its number, from 1. `overlap_s` is the
    time of its phase that is in the rows of earlier phases. Bytes are None for rows without reads
    and writes. `reason` is why a row has no time."""

    name: str
    start_s: float | None
    end_s: float | None
    seconds: float | None
    energy: tuple[EnergyReading, ...] = ()
    phase: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    bytes_into_page_cache: int | None = None
    bytes_page_cache_unknown: int | None = None
    overlap_s: float = 0.0
    reason: str | None = None

    @property
    def bytes_moved(self) -> int | None:
        """None for a row without reads and writes."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    def to_json(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "bytes_moved": self.bytes_moved,
            "energy": [reading.to_json() for reading in self.energy],
        }


@dataclass(frozen=True)
class Writeback:
    """The flush of the files' file systems right after the program. `reason` is why it does not
    show when the bytes were on the drive."""

    end_s: float
    reason: str | None = None


def rows_of(
    phases: Sequence[TracePhase],
    events: Sequence[Event],
    window: tuple[float, float],
    measure: Measure,
    writeback: Writeback | None = None,
) -> list[Row]:
    """The phases, the rest and the total of a program that ran in that window; then its writeback
    and the sum of both, if it wrote. Each moment counts in one row: where phases overlap, in that
    of the earlier one."""
    rows = _of_phases(phases, window, measure)
    begin_s, end_s = window
    cached, unknown = not_flushed(in_order(events))
    total = Row(
        TOTAL,
        begin_s,
        end_s,
        end_s - begin_s,
        measure(begin_s, end_s),
        bytes_read=sum(phase.bytes_read for phase in phases),
        bytes_written=sum(phase.bytes_written for phase in phases),
        bytes_into_page_cache=cached,
        bytes_page_cache_unknown=unknown,
    )
    rest_s = max(0.0, end_s - begin_s - sum(row.seconds or 0.0 for row in rows))
    rest = Row(REST, None, None, rest_s, _rest_energy(total.energy, rows, rest_s))
    return [*rows, rest, total, *_afterwards(total, writeback, measure)]


def _of_phases(
    phases: Sequence[TracePhase], window: tuple[float, float], measure: Measure
) -> list[Row]:
    rows = []
    covered_s, last_s = window
    for number, phase in enumerate(phases, 1):
        begin_s = min(max(phase.start_s, covered_s), last_s)
        end_s = min(max(phase.end_s, begin_s), last_s)
        covered_s = max(covered_s, end_s)
        seconds = end_s - begin_s
        overlap_s = max(0.0, phase.end_s - phase.start_s - seconds)
        row = Row(str(number), begin_s, end_s, seconds, phase=number, overlap_s=overlap_s)
        if seconds > 0.0:
            row = replace(row, energy=measure(begin_s, end_s))
        if phase.request_size_bytes is not None:
            row = replace(
                row,
                bytes_read=phase.bytes_read,
                bytes_written=phase.bytes_written,
                bytes_into_page_cache=phase.bytes_into_page_cache,
                bytes_page_cache_unknown=phase.bytes_page_cache_unknown,
            )
        rows.append(row)
    return rows


def _rest_energy(
    total: Sequence[EnergyReading], rows: Sequence[Row], rest_s: float
) -> tuple[EnergyReading, ...]:
    """The total's energy without that of the phases, for each meter and domain."""
    if rest_s <= 0.0:
        return ()
    return tuple(_difference(reading, rows, rest_s) for reading in total)


def _difference(total: EnergyReading, rows: Sequence[Row], rest_s: float) -> EnergyReading:
    """Uncertainties add up: those of one meter may have one cause."""
    if total.energy_j is None:
        return total
    energy_j, uncertainty_j = total.energy_j, total.uncertainty_j or 0.0
    samples, lost = total.samples, total.lost
    for row in rows:
        if not row.seconds:
            continue
        part = next((reading for reading in row.energy if reading.key == total.key), None)
        if part is None or part.energy_j is None:
            cause = "no reading"
            if part is not None:
                cause = "; ".join(part.reasons)
            return _without_energy(total, f"phase {row.name} has no energy: {cause}")
        energy_j -= part.energy_j
        uncertainty_j += part.uncertainty_j or 0.0
        samples, lost = samples - part.samples, lost - part.lost
    if energy_j < 0.0:
        return _without_energy(total, "the energy of the phases exceeds that of the total")
    return known(
        replace(
            total,
            energy_j=energy_j,
            power_w=energy_j / rest_s,
            uncertainty_j=uncertainty_j,
            samples=max(0, samples),
            lost=max(0, lost),
        )
    )


def _without_energy(reading: EnergyReading, reason: str) -> EnergyReading:
    return replace(
        reading, power_w=None, energy_j=None, uncertainty_j=None, valid=False, reasons=(reason,)
    )


def _afterwards(total: Row, writeback: Writeback | None, measure: Measure) -> list[Row]:
    """The time until the program's bytes are on the drive."""
    if writeback is None:
        if not total.bytes_into_page_cache and not total.bytes_page_cache_unknown:
            return []
        writeback = Writeback(0.0, NOT_SHOWN)
    if writeback.reason is not None or total.start_s is None or total.end_s is None:
        return [Row(WRITEBACK, None, None, None, reason=writeback.reason)]
    begin_s, program_end_s, end_s = total.start_s, total.end_s, writeback.end_s
    durable = replace(
        total,
        name=UNTIL_DURABLE,
        end_s=end_s,
        seconds=end_s - begin_s,
        energy=measure(begin_s, end_s),
        bytes_into_page_cache=0,
        bytes_page_cache_unknown=0,
    )
    energy = measure(program_end_s, end_s)
    return [Row(WRITEBACK, program_end_s, end_s, end_s - program_end_s, energy), durable]
