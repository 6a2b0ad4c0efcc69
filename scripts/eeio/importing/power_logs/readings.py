"""What makes up one reading: a value of each part (sockets, packages, modes, GPUs, sensors) of it.

A log has the parts of a reading one after the other, each with a time of its own. Values belong
together if they are of different parts, and within half of the log's period: the usual time between
two values of one part. A part that is missing makes the reading missing.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eeio_power.errors import PowerError

Value = tuple[float, str, float]
"""Time in Unix s, the name of the part, and its value; NaN is a missing one."""
Row = tuple[float, float]
"""Time in Unix s, and the sum of all parts."""

_APART_SHARE = 0.5
"""Of the period: values of one reading are less apart."""
_SPREAD_SHARE = 0.25
"""Of the period: rows of one block are less apart."""


@dataclass(frozen=True)
class Reading:
    """The parts of one reading, at the mean of their times."""

    time_s: float
    parts: Mapping[str, float]

    def total(self, parts: Iterable[str]) -> float:
        """Of these parts; NaN if one of them is missing."""
        return math.fsum(self.parts.get(part, math.nan) for part in parts)


def period_s(values: Sequence[Value]) -> float:
    """The usual time between two values of one part; infinite if each has one value only."""
    times_s: dict[str, list[float]] = {}
    for time_s, part, _ in values:
        times_s.setdefault(part, []).append(time_s)
    steps_s = [
        after - before
        for of_part in times_s.values()
        for before, after in pairwise(of_part)
        if after > before
    ]
    return statistics.median(steps_s) if steps_s else math.inf


def _has_equal_steps(times_s: Sequence[float]) -> bool:
    """Whether most times are about equally apart, as those of one part are."""
    steps_s = sorted(after - before for before, after in pairwise(times_s))
    if not steps_s:
        return True
    tenth = len(steps_s) // 10
    return steps_s[tenth] >= _APART_SHARE * steps_s[-1 - tenth]


def _check_times(meter: str, values: Sequence[Value]) -> None:
    """Raises PowerError for times that rise for no part, and for parts without a name."""
    last_s: dict[str, float] = {}
    for time_s, part, _ in values:
        if not math.isfinite(time_s):
            raise PowerError(f"{meter}: {time_s} s is not a time")
        before_s = last_s.get(part, -math.inf)
        if time_s < before_s:
            raise PowerError(
                f"{meter}: the clock runs backwards by {before_s - time_s:.3f} s: cut the log there"
            )
        if time_s == before_s:
            name = f"of {part} " if part else ""
            raise PowerError(
                f"{meter}: two values {name}at {time_s:.3f} s: the log does not show what they are "
                "of; log the column that names each part"
            )
        last_s[part] = time_s
    if set(last_s) == {""} and not _has_equal_steps([time_s for time_s, _, _ in values]):
        raise PowerError(
            f"{meter}: values come in groups, and the log does not show what they are of; log the "
            "column that names each part"
        )


def grouped(meter: str, values: Sequence[Value]) -> list[Reading]:
    """The readings of values in the order of the file.

    Raises PowerError if the clock of a part runs backwards, if a part has two values at a time, or
    if values without the name of a part come in groups.
    """
    _check_times(meter, values)
    apart_s = _APART_SHARE * period_s(values)
    groups: list[dict[str, tuple[float, float]]] = []
    first_s = -math.inf
    for time_s, part, value in sorted(values, key=lambda value: value[0]):
        if not groups or part in groups[-1] or time_s - first_s >= apart_s:
            groups.append({})
            first_s = time_s
        groups[-1][part] = time_s, value
    return [
        Reading(
            statistics.fmean(time_s for time_s, _ in group.values()),
            {part: value for part, (_, value) in group.items()},
        )
        for group in groups
    ]


def _parts_of(meter: str, readings: Sequence[Reading]) -> list[str]:
    """The names of all parts. Raises PowerError if no reading has all of them."""
    parts = list(dict.fromkeys(part for reading in readings for part in reading.parts))
    if not any(len(reading.parts) == len(parts) for reading in readings):
        raise PowerError(
            f"{meter}: no reading has all of its parts ({', '.join(parts)[:200]}): the log has "
            "them at different times, or some of the time only"
        )
    return parts


def summed(meter: str, values: Sequence[Value]) -> list[Row]:
    """The sum of all parts at the time of each reading. Raises PowerError."""
    readings = grouped(meter, values)
    parts = _parts_of(meter, readings)
    return [(reading.time_s, reading.total(parts)) for reading in readings]


def summed_counters(meter: str, values: Sequence[Value]) -> list[list[Row]]:
    """The same of counters. A counter that falls has begun again: a new list begins there, because
    the energy in between is not known. Raises PowerError."""
    readings = grouped(meter, values)
    parts = _parts_of(meter, readings)
    runs: list[list[Row]] = [[]]
    last: dict[str, float] = {}
    for reading in readings:
        known = {part: value for part, value in reading.parts.items() if value == value}
        if any(value < last.get(part, value) for part, value in known.items()):
            runs.append([])
            last = {}
        last |= known
        runs[-1].append((reading.time_s, reading.total(parts)))
    return runs


# ---- rows without names ----


def totals(rows: Sequence[tuple[float, float | None]]) -> list[int] | None:
    """The rows that are totals, of rows that no column names: a block of rows has the total first,
    and behind it a row of each part, some of them without a value.

    A block is known by its sum and by its times. None if neither these nor single rows with equal
    steps fit the log.
    """
    length = next((n for n in _lengths(rows) if _is_block(rows, n)), None)
    if length is not None:
        return list(range(0, len(rows) - length + 1, length))
    steps_s = [after - before for (before, _), (after, _) in pairwise(rows)]
    if any(value is None for _, value in rows):
        return None
    if steps_s and min(steps_s) <= _APART_SHARE * statistics.median(steps_s):
        return None
    return list(range(len(rows)))


def _within(count: int) -> float:
    """How far a total may be from the sum of that many values of two decimals."""
    return 0.01 * (count + 1)


def _lengths(rows: Sequence[tuple[float, float | None]]) -> list[int]:
    """Those of the first block that its sum allows."""
    total, lengths, sum_w = rows[0][1] or 0.0, [], 0.0
    for count, (_, value) in enumerate(rows[1:], start=1):
        sum_w += value or 0.0
        if abs(sum_w - total) <= _within(count):
            lengths.append(count + 1)
        elif sum_w > total + _within(count):
            break
    return lengths


def _is_block(rows: Sequence[tuple[float, float | None]], length: int) -> bool:
    begins = range(0, len(rows) - length + 1, length)
    if len(begins) < 2:
        return False
    steps_s = [rows[after][0] - rows[before][0] for before, after in pairwise(begins)]
    apart_s = _SPREAD_SHARE * statistics.median(steps_s)
    for begin in begins:
        block = rows[begin : begin + length]
        times_s = [time_s for time_s, _ in block]
        parts_w = [value for _, value in block[1:] if value is not None]
        total_w = block[0][1]
        if total_w is None or max(times_s) - min(times_s) >= apart_s:
            return False
        if abs(math.fsum(parts_w) - total_w) > _within(len(parts_w)):
            return False
    return True
