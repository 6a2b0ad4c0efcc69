"""What makes up one reading: a value of each part (sockets, packages, modes, GPUs, sensors) of it.

A log has the parts of a reading one after the other, each with a time of its own. Values belong
together if they are of different parts, and within half of the log's period: the usual time between
two values of one part. If no part is ever missing, they may be a period apart. A part that is
missing makes the reading missing.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter, sub

from eeio_power.errors import PowerError

Value = tuple[float, str, float]
"""Time in Unix s, the name of the part, and its value; NaN is a missing one."""
Row = tuple[float, float]
"""Time in Unix s, and the sum of all parts."""

_TIME = itemgetter(0)
_APART_SHARE = 0.5
"""Of the period: values of one reading are less apart."""
_SPREAD_SHARE = 0.25
"""Of the period: rows of one block are less apart."""
_INTERVALS_SHARE = 0.02
"""By which the intervals of the parts of a total may differ."""
_MOST_ROWS = 8192
"""Of a block: more than the processors of any machine."""


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
    steps_s: list[float] = []
    last_s: dict[str, float] = {}
    for time_s, part, _ in values:
        if time_s > last_s.get(part, time_s):
            steps_s.append(time_s - last_s[part])
        last_s[part] = time_s
    if steps_s:
        return statistics.median(steps_s)
    return math.inf


def _has_one_order(values: Sequence[Value]) -> bool:
    """Whether all parts follow each other in the same order, and none is missing."""
    parts = list(map(itemgetter(1), values))
    count = len(set(parts))
    return len(set(parts[:count])) == count and parts[count:] == parts[:-count]


def _has_equal_steps(times_s: Sequence[float]) -> bool:
    """Whether most times are about equally apart, as those of one part are."""
    steps_s: list[float] = sorted(map(sub, times_s[1:], times_s))
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
            name = ""
            if part:
                name = f"of {part} "
            raise PowerError(
                f"{meter}: two values {name}at {time_s:.3f} s: the log does not show what they are "
                "of; log the column that names each part"
            )
        last_s[part] = time_s
    if set(last_s) == {""} and not _has_equal_steps(list(map(_TIME, values))):
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
    values = sorted(values, key=_TIME)
    apart_s = period_s(values) * (1.0 if _has_one_order(values) else _APART_SHARE)
    readings: list[Reading] = []
    times_s: list[float] = []
    parts: dict[str, float] = {}
    for time_s, part, value in values:
        if times_s and (part in parts or time_s - times_s[0] >= apart_s):
            readings.append(Reading(statistics.fmean(times_s), parts))
            times_s, parts = [], {}
        times_s.append(time_s)
        parts[part] = value
    if times_s:
        return [*readings, Reading(statistics.fmean(times_s), parts)]
    return readings


def _parts_of(meter: str, readings: Sequence[Reading]) -> list[str]:
    """The names of all parts. Raises PowerError if no reading has all of them."""
    parts: dict[str, None] = {}
    for reading in readings:
        parts |= dict.fromkeys(reading.parts)
    if not any(len(reading.parts) == len(parts) for reading in readings):
        raise PowerError(
            f"{meter}: no reading has all of its parts ({', '.join(parts)[:200]}): the log has "
            "them at different times, or some of the time only"
        )
    return list(parts)


def summed(meter: str, values: Sequence[Value]) -> list[Row]:
    """The sum of all parts at the time of each reading. Raises PowerError."""
    readings = grouped(meter, values)
    parts = _parts_of(meter, readings)
    return [(reading.time_s, reading.total(parts)) for reading in readings]


_FALL_J = 1e-3
"""The least by which a sum falls where one of its counters begins again."""


def summed_counters(meter: str, starts: Sequence[Sequence[Value]]) -> list[Row]:
    """The same of counters, from the values of each start of their program. A counter that falls
    has begun again, too. The sum falls to about 0 there, also if the other counters rise by more:
    the energy in between is not known. Raises PowerError."""
    of_starts = [grouped(meter, values) for values in starts]
    readings = list(chain(*of_starts))
    parts = _parts_of(meter, readings)
    begins = set(accumulate(map(len, of_starts)))
    runs: list[list[Row]] = [[]]
    last: Mapping[str, float] = {}
    for index, reading in enumerate(readings):
        total = reading.total(parts)
        falls = any(value < last.get(part, -math.inf) for part, value in reading.parts.items())
        if falls or index in begins:
            runs.append([])
        if total == total:
            last = reading.parts
        runs[-1].append((reading.time_s, total))
    rows = runs[0]
    for later, run in enumerate(runs[1:], start=1):
        first_j = next((total for _, total in run if total == total), 0.0)
        begin_j = first_j - _FALL_J * (len(runs) - later)
        rows += [(time_s, total - begin_j) for time_s, total in run]
    return rows


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
    times_s, powers_w = zip(*rows, strict=True)
    steps_s = list(map(sub, times_s[1:], times_s))
    if None in powers_w:
        return None
    if steps_s and min(steps_s) <= _APART_SHARE * statistics.median(steps_s):
        return None
    return list(range(len(rows)))


def _is_sum(total_w: float, sum_w: float, count: int) -> bool:
    """Whether a total is the sum of that many values of two decimals, each over a time of its own
    that may be a little longer or shorter."""
    return not abs(sum_w - total_w) > 0.01 * (count + 1) + _INTERVALS_SHARE * total_w


def _lengths(rows: Sequence[tuple[float, float | None]]) -> list[int]:
    """Those of the first block that its sum and its times allow."""
    (first_s, first_w), sum_w = rows[0], 0.0
    lengths: list[int] = []
    earliest_s = latest_s = first_s
    for count, (time_s, value) in enumerate(rows[1:_MOST_ROWS], start=1):
        # `rows[count]` would be the total of the next block.
        step_s = time_s - first_s
        is_near = count > 1 and latest_s - earliest_s < _APART_SHARE * step_s
        if is_near and _is_sum(first_w or 0.0, sum_w, count):
            lengths.append(count)
        earliest_s, latest_s = min(earliest_s, time_s), max(latest_s, time_s)
        sum_w += value or 0.0
    return lengths


def _is_block(rows: Sequence[tuple[float, float | None]], length: int) -> bool:
    begins = range(0, len(rows) - length + 1, length)
    if len(begins) < 2:
        return False
    starts_s = list(map(_TIME, rows[::length][: len(begins)]))
    steps_s = list(map(sub, starts_s[1:], starts_s))
    apart_s = _SPREAD_SHARE * statistics.median(steps_s)
    for begin in begins:
        times_s, (total_w, *parts_w) = zip(*rows[begin : begin + length], strict=True)
        if total_w is None or max(times_s) - min(times_s) >= apart_s:
            return False
        known_w = list(filter(None, parts_w))
        if not _is_sum(total_w, math.fsum(known_w), len(known_w)):
            return False
    return True
