"""The times between neighbouring readings, each with the energy or power that it stands for."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub, truediv

from eeio_power.meters import Channel

# A counter's step may exceed its highest power by this factor before it counts as a jump: the
# highest power is an estimate, and a counter updates in lumps.
JUMP_FACTOR = 2.0


def counter_step_j(before_j: float, after_j: float, range_j: float | None) -> float | None:
    """Energy between two counter readings, J; None if it ran backwards and does not wrap.

    A smaller second reading means the counter started again: add its range (once: more cannot be
    seen, see `wrap_limit_s`).
    """
    step_j = after_j - before_j
    if step_j >= 0.0:
        return step_j
    if range_j is None or step_j + range_j < 0.0:
        return None
    return step_j + range_j


def wrap_limit_s(channel: Channel) -> float:
    """The longest time between readings in which no whole wrap can hide, s; may be infinite."""
    if channel.quantity != "energy_j" or channel.range_j is None or not channel.max_power_w:
        return math.inf
    return channel.range_j / channel.max_power_w


@dataclass(frozen=True)
class Stretches:
    """The times between neighbouring readings, and before the first and after the last one.

    They stand in columns, and only the first and the last touching one are clipped, because days
    of samples have to be integrated quickly.
    """

    starts_s: Sequence[float]
    ends_s: Sequence[float]
    powers_w: Sequence[float]
    """Mean power held over each, W."""
    last_powers_w: Sequence[float]
    """Power of the one before: how far the power moved, W."""
    head: bool
    """The first one lies before the first reading."""
    tail: bool
    """The last one lies after the last reading: no reading stands at its end."""

    @property
    def inner(self) -> range:
        """Those between two readings."""
        return range(int(self.head), len(self.starts_s) - int(self.tail))

    def length_s(self, k: int) -> float:
        return self.ends_s[k] - self.starts_s[k]

    def inside_s(self, k: int, start_s: float, end_s: float) -> float:
        """How much of one lies in the window, s."""
        return max(0.0, min(self.ends_s[k], end_s) - max(self.starts_s[k], start_s))

    def touching(self, start_s: float, end_s: float) -> range:
        """Those of which a part lies in the window."""
        return range(bisect_right(self.ends_s, start_s), bisect_left(self.starts_s, end_s))


def indices_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> tuple[int, int]:
    """Where the readings begin and end (exclusive) that `readings_around` takes."""
    low, high = bisect_right(times_s, start_s), bisect_left(times_s, end_s)
    count, wanted = len(times_s), 3
    while low > 0 and wanted > 0:
        low -= 1
        wanted -= 0 if math.isnan(values[low]) else 1
    wanted = 2
    while high < count and wanted > 0:
        wanted -= 0 if math.isnan(values[high]) else 1
        high += 1
    return low, high


def readings_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> tuple[list[float], list[float]]:
    """Times and values of the readings that did not fail, and some on either side.

    Three at or before the window (one to hold, the one before it, whose distance says how, and one
    more for the highest power near the edge), two at or after it, as far away as they are.
    """
    low, high = indices_around(times_s, values, start_s, end_s)
    found_s, found = list(times_s[low:high]), list(values[low:high])
    if any(map(math.isnan, found)):
        kept = [(t, v) for t, v in zip(found_s, found, strict=True) if not math.isnan(v)]
        found_s, found = [t for t, _ in kept], [v for _, v in kept]
    return found_s, found


def stretches_around(
    channel: Channel,
    times_s: list[float],
    values: list[float],
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> tuple[Stretches | None, tuple[str, ...]]:
    """Stretches that cover the window, in order, and what is wrong with those that touch it."""
    starts_s, ends_s = times_s[:-1], times_s[1:]
    broken: list[str] = []
    if channel.quantity == "power_w":
        powers_w, last_powers_w = values[1:], values[:-1]
        first_w, last_w = values[0], values[-1]
    elif not starts_s:
        return None, (f"{channel.name}: one counter reading only; energy needs two",)
    else:
        lengths_s = list(map(sub, ends_s, starts_s))
        steps_j = list(map(sub, values[1:], values[:-1]))
        for k in _doubtful_steps(channel, steps_j, lengths_s, native_period_s):
            step_j = counter_step_j(values[k], values[k + 1], channel.range_j)
            problem = _step_problem(channel, step_j, lengths_s[k], native_period_s)
            steps_j[k] = step_j or 0.0
            if problem and min(ends_s[k], end_s) > max(starts_s[k], start_s):
                broken.append(problem)
        powers_w = list(map(truediv, steps_j, lengths_s))
        last_powers_w = [powers_w[0], *powers_w[:-1]]
        first_w, last_w = powers_w[0], powers_w[-1]
    head, tail = start_s < times_s[0], times_s[-1] < end_s
    if head:
        starts_s, ends_s = [start_s, *starts_s], [times_s[0], *ends_s]
        powers_w, last_powers_w = [first_w, *powers_w], [first_w, *last_powers_w]
    if tail:
        starts_s, ends_s = [*starts_s, times_s[-1]], [*ends_s, end_s]
        powers_w, last_powers_w = [*powers_w, last_w], [*last_powers_w, last_w]
    stretches = Stretches(starts_s, ends_s, powers_w, last_powers_w, head, tail)
    return stretches, tuple(broken)


def _doubtful_steps(
    channel: Channel,
    steps_j: Sequence[float],
    lengths_s: Sequence[float],
    native_period_s: float,
) -> list[int]:
    """Steps of a counter that wrapped, or that `_step_problem` has to look at."""
    limit_s = wrap_limit_s(channel)
    most_w = math.inf if channel.max_power_w is None else JUMP_FACTOR * channel.max_power_w
    return [
        k
        for k, (step_j, length_s) in enumerate(zip(steps_j, lengths_s, strict=True))
        if step_j < 0.0 or length_s > limit_s or step_j > most_w * (length_s + native_period_s)
    ]


def _step_problem(
    channel: Channel, step_j: float | None, length_s: float, native_period_s: float
) -> str | None:
    if step_j is None:
        return f"{channel.name}: the counter ran backwards (reset, or suspended machine)"
    limit_s = wrap_limit_s(channel)
    if length_s > limit_s:
        return (
            f"{channel.name}: {length_s:.1f} s without a reading; at {channel.max_power_w:g} W the "
            f"counter may have wrapped unseen after {limit_s:.1f} s"
        )
    if channel.max_power_w is not None:
        most_j = JUMP_FACTOR * channel.max_power_w * (length_s + native_period_s)
        if step_j > most_j + channel.resolution:
            return (
                f"{channel.name}: the counter jumped by {step_j:.1f} J in {length_s:.3f} s, more "
                f"than {channel.max_power_w:g} W can give: it was reset"
            )
    return None
