"""One channel's readings around a window: which are plausible, and the times between them.

Every two neighbouring readings bound a stretch of known mean power. Problems of the readings are
reported here: `broken` makes the energy of the window invalid, a `Doubt` makes it doubtful.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from operator import eq, sub, truediv

from eeio.units.quantities import COUNTER_SAMPLE
from eeio_power.meters import Channel

# An idle sensor has noise and an offset: its readings may be below zero by this many quanta, or by
# this power, W. They are used as they are, for cutting them off at 0 would raise the mean.
NOISE_QUANTA = 10.0
LEAST_NOISE_W = 0.1
# No single machine draws more than this, W: such a reading is noise, or in another unit.
ABSURD_POWER_W = 100e3

# A counter's step may exceed its highest power by this factor before it counts as a jump: the
# highest power is an estimate, and a counter updates in lumps.
JUMP_FACTOR = 2.0
# A counter without a stated highest power is expected to stay below this multiple of its mean.
BURST_FACTOR = 20.0
# Power next to a wrap, or to a gap, is the mean over this many stretches.
NEAR_STRETCHES = 10
# A wrap must fit the power next to it within this factor.
WRAP_FACTOR = 2.0

# A stretch up to this many periods is one late reading, not a lost one.
LATE_PERIODS = 1.5
GAP_PERIODS = 5.0
GAP_FLOOR_S = 2.0

# A counter is stuck if it could have shown this power and shows none, over this many of its
# updates; or that share of its power before and after, over fewer.
STILL_POWER_W = 1e-3
STILL_PERIODS = 10.0
STILL_SHARE = 0.05
STILL_PART_PERIODS = 2.5
STILL_PART_S = 0.02

# A reading that does not change is looked back for so many.
MOST_CONSTANT_READINGS = 6_000

# Readings on either side of a window that its energy looks at.
READINGS_BEFORE, READINGS_AFTER = NEAR_STRETCHES + 1, NEAR_STRETCHES


def noise_w(resolution_w: float) -> float:
    """How far below zero a sensor of that resolution may read, W."""
    return max(NOISE_QUANTA * resolution_w, LEAST_NOISE_W)


def possible_w(channel: Channel) -> tuple[float, float]:
    """The lowest and the highest power reading of the channel that is used, W."""
    return -noise_w(channel.resolution), channel.max_power_w or ABSURD_POWER_W


def absurdity(channel: Channel, value: float) -> str | None:
    """Why the reading cannot be true, None if it can (or is missing).

    Counters are judged by their steps.
    """
    if math.isnan(value):
        return None
    if channel.quantity == "energy_j":
        possible = COUNTER_SAMPLE.contains(value)
        if possible:
            return None
        return f"{channel.name}: {value:g} J is not an energy"
    least_w, most_w = possible_w(channel)
    if value < least_w:
        return f"{channel.name}: {value:g} W is negative: its clamp or shunt may be reversed"
    if value > most_w:
        return f"{channel.name}: {value:g} W is more than the {most_w:g} W it can draw"
    return None


@dataclass(frozen=True)
class Doubt:
    """Why the energy of a window may be wrong, and by how much, J."""

    reason: str
    error_j: float = math.inf
    widens: bool = False
    """It may be true: the uncertainty covers it, however large it is."""


@dataclass(frozen=True)
class Readings:
    """A channel's readings around a window, in order, without those that failed."""

    times_s: list[float]
    values: list[float]
    least: float = 0.0
    """The lowest power among them, W."""
    most: float = 0.0
    doubts: tuple[Doubt, ...] = ()
    """Of readings in the window that cannot be true; they are left out."""

    def inside(self, start_s: float, end_s: float) -> int:
        """How many are in the window."""
        return bisect_right(self.times_s, end_s) - bisect_right(self.times_s, start_s)


def indices_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> tuple[int, int]:
    """Where the readings begin and end (exclusive) that `readings_around` takes."""
    low, high = bisect_right(times_s, start_s), bisect_left(times_s, end_s)
    count, wanted = len(times_s), READINGS_BEFORE
    if 0 < low < high and values[low - 1] == values[high - 1]:
        # A value that has not changed since: its earlier changes show whether it should have.
        low = constant_since(values, low)
    while low > 0 and wanted > 0:
        low -= 1
        if not math.isnan(values[low]):
            wanted -= 1
    wanted = READINGS_AFTER
    while high < count and wanted > 0:
        if not math.isnan(values[high]):
            wanted -= 1
        high += 1
    return low, high


def known(values: Sequence[float]) -> list[float]:
    """Those that are not missing."""
    return list(compress(values, map(eq, values, values)))


def constant_since(column: Sequence[float], until: int) -> int:
    """Where the run of equal readings begins that the one before `until` ends."""
    first, least = until - 1, max(0, until - MOST_CONSTANT_READINGS)
    size, found = 16, False
    while first > least:
        low = max(least, first - size)
        if column[low:first] == column[low + 1 : first + 1]:
            first = low
        elif size == 1:
            break
        else:
            found = True
        size = max(1, size // 2) if found else 2 * size
    return max(0, first)


def readings_around(
    channel: Channel,
    times_s: Sequence[float],
    values: Sequence[float],
    start_s: float,
    end_s: float,
) -> Readings:
    """The readings of the window, and some on either side, as far away as they are."""
    low, high = indices_around(times_s, values, start_s, end_s)
    found_s, found = list(times_s[low:high]), list(values[low:high])
    if any(map(math.isnan, found)):
        found_s, found = list(compress(found_s, map(eq, found, found))), known(found)
    if not found or channel.quantity == "energy_j":
        return Readings(found_s, found)
    least_w, most_w = possible_w(channel)
    least, most = min(found), max(found)
    if least_w <= least and most <= most_w:
        return Readings(found_s, found, least, most)
    # The reading at or after the end covers a part of the window, too.
    until = bisect_left(found_s, end_s) + 1
    wrong = [v for v in found[bisect_right(found_s, start_s) : until] if not least_w <= v <= most_w]
    is_true = [least_w <= v <= most_w for v in found]
    found_s, found = list(compress(found_s, is_true)), list(compress(found, is_true))
    doubts: tuple[Doubt, ...] = ()
    if wrong:
        reason = absurdity(channel, max(wrong, key=abs))
        doubts = (Doubt(f"{reason} ({len(wrong)} such readings are left out)"),)
    least, most = min(found, default=0.0), max(found, default=0.0)
    return Readings(found_s, found, least, most, doubts)


@dataclass(frozen=True)
class Stretches:
    """The times between neighbouring readings, and before the first and after the last one.

    They are stored in columns, and only the first and the last touching one are clipped, because
    days of samples have to be integrated quickly.
    """

    starts_s: Sequence[float]
    ends_s: Sequence[float]
    powers_w: Sequence[float]
    """Mean power over each, W."""
    previous_powers_w: Sequence[float]
    """Power of the one before: how far the power moved, W."""
    head: bool
    """The first one is before the first reading."""
    tail: bool
    """The last one is after the last reading: there is no reading at its end."""
    broken: tuple[str, ...] = ()
    """Why the energy of the window is not known."""
    doubts: tuple[Doubt, ...] = ()
    unsure_j: float = 0.0
    """Uncertainty due to steps that may be a wrap or a reset, J."""

    @property
    def inner(self) -> range:
        """Those between two readings."""
        return range(int(self.head), len(self.starts_s) - int(self.tail))

    def length_s(self, k: int) -> float:
        return self.ends_s[k] - self.starts_s[k]

    def inside_s(self, k: int, start_s: float, end_s: float) -> float:
        """How much of one is in the window, s."""
        return max(0.0, min(self.ends_s[k], end_s) - max(self.starts_s[k], start_s))

    def touching(self, start_s: float, end_s: float) -> range:
        """Those with a part in the window."""
        return range(bisect_right(self.ends_s, start_s), bisect_left(self.starts_s, end_s))


def stretches_around(
    channel: Channel,
    readings: Readings,
    period_s: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> Stretches:
    """Stretches that cover the window, in order, and the problems of those that touch it.

    `readings` has at least one, for a counter two.
    """
    times_s, values = readings.times_s, readings.values
    starts_s, ends_s = times_s[:-1], times_s[1:]
    found = _Found()
    if channel.quantity == "power_w":
        powers_w, previous_powers_w = values[1:], values[:-1]
        first_w, last_w = values[0], values[-1]
    else:
        steps = _Steps(channel, times_s, values, period_s, native_period_s)
        found = steps.judged(start_s, end_s)
        powers_w = steps.powers_w
        previous_powers_w = [powers_w[0], *powers_w[:-1]]
        first_w, last_w = powers_w[0], powers_w[-1]
    head, tail = start_s < times_s[0], times_s[-1] < end_s
    if head:
        starts_s, ends_s = [start_s, *starts_s], [times_s[0], *ends_s]
        powers_w, previous_powers_w = [first_w, *powers_w], [first_w, *previous_powers_w]
    if tail:
        starts_s, ends_s = [*starts_s, times_s[-1]], [*ends_s, end_s]
        powers_w, previous_powers_w = [*powers_w, last_w], [*previous_powers_w, last_w]
    return Stretches(
        starts_s,
        ends_s,
        powers_w,
        previous_powers_w,
        head,
        tail,
        tuple(found.broken),
        (*readings.doubts, *found.doubts),
        found.unsure_j,
    )


# --- counters -------------------------------------------------------------------------------------


def counter_step_j(before_j: float, after_j: float, range_j: float | None) -> float | None:
    """Energy between two counter readings, J; None if it ran backwards and does not wrap.

    A smaller second reading means that the counter started again: add its range (once: more cannot
    be detected, see `wrap_limit_s`).
    """
    step_j = after_j - before_j
    if step_j >= 0.0:
        return step_j
    if range_j is None or step_j + range_j < 0.0:
        return None
    return step_j + range_j


def wrap_limit_s(channel: Channel, likely_w: float | None = None) -> float:
    """The longest time between readings in which no complete wrap can hide, s; may be infinite.

    `likely_w` is the highest power of a channel that states none.
    """
    most_w = channel.max_power_w or likely_w
    if channel.quantity != "energy_j" or channel.range_j is None or not most_w:
        return math.inf
    return channel.range_j / most_w


class _Found:
    def __init__(self) -> None:
        self.broken: list[str] = []
        self.doubts: list[Doubt] = []
        self.unsure_j = 0.0


class _Steps:
    """A counter's steps from reading to reading, J.

    A reading so small that the counter may have begun at 0 since the one before hides a reset: the
    uncertainty of the step then follows from the power next to it.
    """

    def __init__(
        self,
        channel: Channel,
        times_s: Sequence[float],
        values: Sequence[float],
        period_s: float,
        native_period_s: float,
    ) -> None:
        self._channel = channel
        self._times_s = times_s
        self._values = values
        self._late_s = LATE_PERIODS * period_s
        self._gap_limit_s = gap_limit_s(period_s)
        self._native_s = native_period_s
        self.lengths_s: list[float] = list(map(sub, times_s[1:], times_s))
        self.joules: list[float] = list(map(sub, values[1:], values))
        self.powers_w: list[float] = list(map(truediv, self.joules, self.lengths_s))
        self._likely_w: float = channel.max_power_w or self._burst_w()
        self._wrap_limit_s = wrap_limit_s(channel, self._likely_w)

    def judged(self, start_s: float, end_s: float) -> _Found:
        """Corrects steps that wrapped. Reports problems of steps that touch the window."""
        problems = _Found()
        for k in self._suspects():
            # Those before and after the window give the power next to it.
            touches = min(self._times_s[k + 1], end_s) > max(self._times_s[k], start_s)
            self._judge(k, problems if touches else _Found())
            self.powers_w[k] = self.joules[k] / self.lengths_s[k]
        if 0.0 in self.joules:
            problems.doubts += self._still(start_s, end_s)
        return problems

    def _burst_w(self) -> float:
        """The power that a counter which states none is expected to stay below, W: a multiple of
        its mean without the tenth of its steps with the highest power."""
        steps = sorted(zip(self.powers_w, self.joules, self.lengths_s, strict=True))
        rest = [step for step in steps[: -max(1, len(steps) // 10)] if step[1] >= 0.0]
        if not rest:
            return ABSURD_POWER_W
        mean_w = math.fsum(j for _, j, _ in rest) / math.fsum(s for _, _, s in rest)
        return min(ABSURD_POWER_W, BURST_FACTOR * mean_w)

    def _most_j(self, k: int, most_w: float) -> float:
        """The most that a step can count, J: two of its updates may fall into it, and after a late
        update all since the counter last changed."""
        length_s = self.lengths_s[k] + self._native_s
        if self.joules[k] > 0.0:
            stood = k - 1
            while stood >= 0 and self.joules[stood] == 0.0:
                length_s += self.lengths_s[stood]
                stood -= 1
        return most_w * length_s + 2.0 * self._channel.resolution

    def _suspects(self) -> list[int]:
        """Steps that wrapped, or may be a reset, a jump, or long enough to hide one."""
        factor = 1.0
        if self._channel.max_power_w:
            factor = JUMP_FACTOR
        bound_w = self._likely_w * factor
        long_s = min(self._wrap_limit_s, self._gap_limit_s)
        longest_s = max(self.lengths_s)
        least_j = bound_w * (longest_s + self._native_s) + 2.0 * self._channel.resolution
        if (
            longest_s <= long_s
            and min(self.joules) >= 0.0
            and max(self.powers_w) <= bound_w
            and min(self._values[1:]) > least_j
        ):
            return []
        suspects = []
        for k, (joules, seconds) in enumerate(zip(self.joules, self.lengths_s, strict=True)):
            if (
                joules < 0.0
                or seconds > long_s
                or joules > (most_j := self._most_j(k, bound_w))
                or abs(self._values[k + 1]) <= most_j
            ):
                suspects.append(k)
        return suspects

    def _judge(self, k: int, found: _Found) -> None:
        channel, length_s = self._channel, self.lengths_s[k]
        step_j = counter_step_j(self._values[k], self._values[k + 1], channel.range_j)
        wrapped = self.joules[k] < 0.0
        self.joules[k] = step_j or 0.0
        if step_j is None:
            found.broken.append(
                f"{channel.name}: the counter ran backwards (reset, or suspended machine)"
            )
            return
        if (broken := self._broken(k, step_j)) is not None:
            found.broken.append(broken)
            return
        near_w = self._near_w(k)
        apart_j = max((abs(step_j - w * length_s) for w in near_w), default=math.inf)
        if not channel.max_power_w and step_j > self._most_j(k, self._likely_w):
            doubt = Doubt(
                f"{channel.name}: the counter jumped by {step_j:.1f} J in {length_s:.3f} s, more "
                f"than {BURST_FACTOR:g} times its power before and after",
                apart_j,
            )
            found.doubts.append(doubt)
        if wrapped or self._may_be_reset(k, near_w):
            self._judge_reset(k, found, near_w, wrapped)
        elif self._is_high_gap(k, step_j, near_w):
            found.doubts.append(Doubt(self._gap_text(step_j, length_s, near_w), apart_j))

    def _broken(self, k: int, step_j: float) -> str | None:
        """Why the energy of the step is unknown."""
        channel, length_s = self._channel, self.lengths_s[k]
        if length_s > self._wrap_limit_s:
            return (
                f"{channel.name}: {length_s:.1f} s without a reading; at {self._likely_w:g} W the "
                f"counter may have wrapped unseen after {self._wrap_limit_s:.1f} s"
            )
        most_w = channel.max_power_w or ABSURD_POWER_W
        if step_j > self._most_j(k, JUMP_FACTOR * most_w):
            return (
                f"{channel.name}: the counter jumped by {step_j:.1f} J in {length_s:.3f} s, more "
                f"than {most_w:g} W can give: it was reset"
            )
        return None

    def _is_high_gap(self, k: int, step_j: float, near_w: Sequence[float]) -> bool:
        """Whether the power in a time without a reading is far above that next to it."""
        if self.lengths_s[k] <= self._late_s or not near_w:
            return False
        return step_j > self._most_j(k, BURST_FACTOR / 4.0 * max(near_w))

    def _may_be_reset(self, k: int, near_w: Sequence[float]) -> bool:
        """Whether the counter can have counted its value in this time since it began at 0."""
        most_w = self._likely_w
        if self._channel.max_power_w:
            most_w *= JUMP_FACTOR
        if near_w and self.lengths_s[k] <= self._late_s:
            most_w = min(most_w, WRAP_FACTOR * max(near_w))
        return abs(self._values[k + 1]) <= self._most_j(k, most_w)

    def _judge_reset(self, k: int, found: _Found, near_w: Sequence[float], wrapped: bool) -> None:
        """A step that may be a reset of the counter."""
        name, step_j, length_s = self._channel.name, self.joules[k], self.lengths_s[k]
        if wrapped and near_w and not self._fits(k, step_j, near_w):
            found.broken.append(
                f"{name}: the counter restarted: as a wrap that is "
                f"{step_j / length_s:.1f} W, next to {_watts(near_w)}: it was reset"
            )
        elif length_s > self._late_s:
            happened = "may have wrapped or"
            if wrapped:
                happened = "wrapped or"
            # For a short gap, the power next to it limits how much a reset may hide.
            hidden_j = math.inf
            if near_w and length_s <= self._gap_limit_s:
                hidden_j = WRAP_FACTOR * max(near_w) * length_s
            doubt = Doubt(
                f"{name}: {length_s:.1f} s without a reading, in which the counter "
                f"{happened} was reset",
                hidden_j,
            )
            found.doubts.append(doubt)
        elif not near_w:
            found.doubts.append(
                Doubt(f"{name}: the counter may have been reset, and no other reading shows it")
            )
        else:
            # If it was a reset, all energy of the stretch is unknown. There is one at most: after
            # it many readings are small.
            apart_j = max(abs(step_j - w * length_s) for w in near_w)
            found.unsure_j = max(found.unsure_j, apart_j, max(near_w) * length_s)

    def _gap_text(self, step_j: float, length_s: float, near_w: Sequence[float]) -> str:
        return (
            f"{self._channel.name}: {length_s:.1f} s without a reading at a mean of "
            f"{step_j / length_s:.1f} W, next to {_watts(near_w)}"
        )

    def _near_w(self, k: int) -> list[float]:
        """Mean power before the step and after it, W, where that is known."""
        sides = (
            range(max(0, k - NEAR_STRETCHES), k),
            range(k + 1, min(len(self.joules), k + 1 + NEAR_STRETCHES)),
        )
        powers = []
        for side in sides:
            usable = []
            for n in side:
                if 0.0 <= self.joules[n] <= self._most_j(n, JUMP_FACTOR * self._likely_w):
                    usable.append(n)
            seconds = math.fsum(self.lengths_s[n] for n in usable)
            if seconds > 0.0:
                powers.append(math.fsum(self.joules[n] for n in usable) / seconds)
        return powers

    def _over(self, places: range, seconds: float) -> float:
        """Mean power of steps, one after the other, over so much time; infinite if they do not last
        so long, W."""
        joules = lasted_s = 0.0
        for n in places:
            joules, lasted_s = joules + self.joules[n], lasted_s + self.lengths_s[n]
            if lasted_s >= seconds:
                return joules / lasted_s
        return math.inf

    def _fits(self, k: int, step_j: float, near_w: Sequence[float]) -> bool:
        """Whether a wrap's power is that of the stretches next to it, within `WRAP_FACTOR`."""
        length_s, high_w = self.lengths_s[k], max(near_w)
        slack_j = high_w * self._native_s + 2.0 * self._channel.resolution
        least_j, most_j = min(near_w) * length_s / WRAP_FACTOR, high_w * length_s * WRAP_FACTOR
        return least_j - slack_j <= step_j <= most_j + slack_j

    def _still(self, start_s: float, end_s: float) -> Iterator[Doubt]:
        """Times in which the counter was stuck, and would have moved at a small share of its power
        before and after."""
        slow_w = STILL_SHARE * math.fsum(self.joules) / (self._times_s[-1] - self._times_s[0])
        # Where it is stuck all the time, and for long: `energy._still_reasons`.
        slow_w = slow_w or STILL_POWER_W
        first = 0
        for moves, group in groupby(self.joules, key=bool):
            last = first + len(list(group))
            begin_s, until_s = self._times_s[first], self._times_s[last]
            lasted_s, first_one, first = until_s - begin_s, first, last
            if (
                moves
                or lasted_s <= max(STILL_PART_PERIODS * self._native_s, STILL_PART_S)
                or self._channel.resolution > slow_w * lasted_s
                or min(until_s, end_s) <= max(begin_s, start_s)
            ):
                continue
            if start_s <= begin_s and last < len(self.joules) and self._times_s[last + 1] <= end_s:
                caught_up_s = self._times_s[last + 1] - begin_s
                before_w = self._over(range(first_one - 1, -1, -1), caught_up_s)
                after_w = self._over(range(last + 1, len(self.joules)), caught_up_s)
                least_w = 0.5 * min(before_w, after_w)
                if self.joules[last] >= least_w * caught_up_s:
                    continue
            yield Doubt(f"{self._channel.name}: the counter did not change for {lasted_s:.3g} s")


def _watts(powers_w: Sequence[float]) -> str:
    return " and ".join(f"{power_w:.1f} W" for power_w in powers_w)


# --- gaps -----------------------------------------------------------------------------------------


def gap_limit_s(period_s: float) -> float:
    """The longest gap to bridge, s: five periods, and never under two seconds."""
    return max(GAP_PERIODS * period_s, GAP_FLOOR_S)


def gap_reasons(
    channel: Channel,
    stretches: Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> list[str]:
    """Why stretches that are longer than a gap may be make the energy unusable."""
    limit_s = gap_limit_s(period_s)
    reasons = []
    for k in late:
        length_s = stretches.length_s(k)
        inside = start_s <= stretches.starts_s[k] and stretches.ends_s[k] <= end_s
        complete = k in stretches.inner and inside
        if length_s > limit_s and not (channel.quantity == "energy_j" and complete):
            reasons.append(
                f"{channel.name}: {length_s:.1f} s without a reading, more than the limit of "
                f"{limit_s:.1f} s"
            )
    return reasons


def unseen_time_s(
    channel: Channel,
    stretches: Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Time of the window that no reading accounts for, s."""
    counter = channel.quantity == "energy_j"
    unseen_s = 0.0
    ends = []
    if stretches.head and counter:
        ends = [0]
    if stretches.tail:
        ends.append(len(stretches.starts_s) - 1)
    for k in {*late, *ends}:
        inside_s = stretches.inside_s(k, start_s, end_s)
        if k in ends:
            unseen_s += inside_s
        elif not counter:
            # The reading at its end speaks for one period.
            since_s = max(start_s, stretches.ends_s[k] - period_s)
            unseen_s += inside_s - stretches.inside_s(k, since_s, end_s)
    return unseen_s


def lost_readings(
    stretches: Stretches, k: int, period_s: float, start_s: float, end_s: float
) -> int:
    """Readings that should have come inside the stretch and the window."""
    begin_s, length_s = stretches.starts_s[k], stretches.length_s(k)
    if stretches.tail and k == len(stretches.starts_s) - 1:
        return int(length_s / period_s)
    steps = round(length_s / period_s)
    if steps < 2:
        return 0

    def until(time_s: float) -> int:
        """How many of them should have come at `time_s` or before."""
        count = min(max(math.floor((time_s - begin_s) / length_s * steps), 0), steps - 1)
        # The quotient may differ slightly from the exact time.
        while count + 1 < steps and begin_s + length_s * (count + 1) / steps <= time_s:
            count += 1
        while count > 0 and begin_s + length_s * count / steps > time_s:
            count -= 1
        return count

    return max(0, until(end_s) - until(start_s))
