"""Whether the readings of a log are of one meter, where nothing in the log names it.

Loops over two machines and loggers of two power supplies write readings of the same form. They
follow each other in turn, so that each reading is like the second, third or fourth one after it
and unlike the next one: by its power, or by the time until the next one.
"""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from operator import sub

from eeio_power.errors import PowerError

_MOST_METERS = 4
_ALIKE_SHARE = 0.2
"""Of the change from one reading to the next: that of the same meter is less."""
_LEAST_CHANGE_SHARE = 0.02
"""Of the mean power: less is the noise of a meter."""
_READINGS_OF_EACH = 5
_LONGEST_STEPS = 5.0
"""Usual steps: a longer one is a pause of the logger."""
_RESOLUTIONS_S = (1.0, 0.1, 0.01)
_ROUNDED_SHARE = 0.05
"""Of a resolution: times with its digits are less away from its multiples."""
_RARE_SHARE = 0.2
"""Of the times: readings each second may at times have the same second."""
_MOST_EMPTY = 10
"""Times without a reading: more of them are a pause of the logger."""
_REMEDY = "log each meter, machine and power supply to a separate file"


def check_equal_times(meter: str, times_s: Sequence[float]) -> None:
    """Raises PowerError for several readings at the same times, unless the times of one meter are
    cut there: then the readings spread evenly, and their number at a time changes by one at most.
    It does change, as two meters have an equal number at each time, too."""
    counts: dict[float, int] = {}
    for time_s in times_s:
        counts[time_s] = counts.get(time_s, 0) + 1
    doubled = [time_s for time_s, count in counts.items() if count > 1]
    if len(doubled) <= _RARE_SHARE * len(counts) or _spread_evenly(counts):
        return
    raise PowerError(
        f"{meter}: {counts[doubled[0]]} readings at {doubled[0]:.3f} s: the log does not show that "
        f"they are of one meter: {_REMEDY}, with fractions of a second"
    )


def _spread_evenly(counts: dict[float, int]) -> bool:
    per_cell = _counts_of_cells(counts)
    for cells in range(1, _MOST_METERS + 1):
        sums = sorted(
            sum(per_cell[begin : begin + cells]) for begin in range(len(per_cell) - cells + 1)
        )
        tenth = len(sums) // 10
        least, most = sums[tenth], sums[-1 - tenth]
        if most - least > 1 or (cells == 1 and most == least):
            return False
    return True


def _counts_of_cells(counts: dict[float, int]) -> list[int]:
    """The readings of each usual step of the times, without the pauses of the logger."""
    times_s = list(counts)
    steps_s = list(map(sub, times_s[1:], times_s)) or [1.0]
    step_s = statistics.median(steps_s)
    per_cell = [counts[times_s[0]]]
    for before_s, time_s in pairwise(times_s):
        empty = round((time_s - before_s) / step_s) - 1
        if 0 < empty <= _MOST_EMPTY:
            per_cell += [0] * empty
        per_cell.append(counts[time_s])
    return per_cell


def check_one_meter(meter: str, rows: Sequence[tuple[float, float]]) -> None:
    """Raises PowerError if the readings of several meters follow each other in turn."""
    known = [(time_s, power_w) for time_s, power_w in rows if power_w == power_w]
    times_s = [time_s for time_s, _ in known]
    powers_w = [power_w for _, power_w in known]
    if len(known) < 2:
        return
    steps_s = list(map(sub, times_s[1:], times_s))
    longest_s = _LONGEST_STEPS * statistics.median(steps_s)
    steps_s = [min(step_s, longest_s) for step_s in steps_s]
    least_w = _LEAST_CHANGE_SHARE * statistics.fmean(powers_w)
    for count in range(2, _MOST_METERS + 1):
        quantity = ""
        if _alternate(powers_w, count, least_w):
            quantity = "powers"
        elif _alternate(steps_s, count, _resolution_s(times_s)):
            quantity = "times"
        if quantity:
            raise PowerError(
                f"{meter}: the {quantity} repeat every {count} readings from {times_s[0]:.3f} s, "
                f"as those of {count} meters in turn, or of a load in step with the log: {_REMEDY}"
            )


def _alternate(values: Sequence[float], count: int, least: float) -> bool:
    """Whether each value is like the one `count` later, and unlike the next one by more than
    `least`."""
    if len(values) < _READINGS_OF_EACH * count:
        return False
    to_next = statistics.fmean(map(abs, map(sub, values[1:], values)))
    to_same = statistics.fmean(map(abs, map(sub, values[count:], values)))
    return to_next > least and to_same < _ALIKE_SHARE * to_next


def _resolution_s(times_s: Sequence[float]) -> float:
    """By which cut times differ from even ones."""
    for resolution_s in _RESOLUTIONS_S:
        units = [time_s / resolution_s for time_s in times_s]
        if all(abs(unit - round(unit)) < _ROUNDED_SHARE for unit in units):
            return 1.01 * resolution_s
    return _RESOLUTIONS_S[-1]
