"""Readings that are implausible or contradictory: these make a valid energy doubtful.

Pure functions, of one channel (a reading far from all others, a value that never changes), of one
meter (one counter shown as two) and of all meters together. Meters that contradict each other are
all doubtful, and each reports which others and by how much: a program cannot decide which of them
is wrong.
"""

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress, pairwise
from operator import ne, sub

from eeio.record.contradictions import INSIDE, contradictions, named
from eeio_power.meters import Channel
from eeio_power.reading import SEVERAL, Domain, EnergyReading
from eeio_power.window_readings import (
    Doubt,
    Readings,
    Stretches,
    constant_since,
    noise_w,
    possible_w,
)

# Counters with equal increments at most of so many steps are one; fewer steps are inconclusive.
LEAST_STEPS = 3
# Two packages may run alike for a moment.
LEAST_COUNTED = 0.8
"""Of a window between the first and the last step of a counter next to its power."""
_FEWEST_COUNTED = 3
LEAST_EQUAL_STEPS = 20
# Increments of one register are equal, except for the rounding of each read, in quanta.
EQUAL_QUANTA = 1.5

# Share of all CPUs by which the load must rise before a power that stays the same is doubtful.
LOAD_RISE = 0.5
# Two means of one package within this are the same power.
SAME_POWER = 0.02

# A few readings that differ from those before and after by this factor are false, or of a burst: a
# burst that is a hundred milliseconds long may be higher than one that lasts a meter's second.
OUTLIER_FACTOR = 5.0
BURST_FACTOR, BURST_PERIOD_S = 20.0, 0.5
OUTLIER_READINGS, OUTLIER_REPEATED = 3, 6
# A machine does not change its power by this factor, and does not go on so.
UNIT_FACTOR = {
    "system": 100.0,
    "module": 100.0,
    "package": 300.0,
    "dram": 300.0,
    "accelerator": 300.0,
}
UNIT_SHARE = 0.1
EARLIER_READINGS = 32
# Readings that were taken at different times are further apart.
SAME_TIME_S = 1.5e-6
# A power of 0 W is taken for so much where it is compared with another, W.
ZERO_W = 0.01

# No machine's power stays the same within a share of itself for so many of the meter's periods,
# times the share; if the share is not a small one, not for so long.
CONSTANT_PERIODS_OF_SHARE = 150_000.0
LEAST_CONSTANT_PERIODS = 4.0
FINE_SHARE = 2e-4
LEAST_CONSTANT_S = 600.0
# Of a channel that does not state its resolution.
UNKNOWN_SHARE = 0.05
LEAST_CHANGES, OBSERVED_READINGS = 10, 1000
# Products of the same numbers differ by no more.
SAME_SHARE = 1e-9
# A constant reading is compared with the load, or another meter, over stretches of so much time.
COMPARED_PERIODS = 5.0
COMPARED_S = 5.0
MOST_COMPARED = 60
# Other meters are looked at from so long before a window, s.
MOST_BEFORE_S = 120.0
# The smallest computers that run Linux draw several times as much, W.
LEAST_SYSTEM_W = 0.05
# A part's power must change by this share of the constant one, and by so many quanta.
PART_RISE, PART_QUANTA = 0.1, 10.0


# --- one channel ----------------------------------------------------------------------------------


def earlier_readings(
    channels: Sequence[Channel],
    times_s: Sequence[float],
    columns: Sequence[Sequence[float]],
    before_s: float,
) -> tuple[Sequence[float], ...]:
    """Some power readings of each channel, spread over all the time before a window."""
    until = bisect_right(times_s, before_s)
    step = max(1, until // EARLIER_READINGS)
    readings = []
    for channel, column in zip(channels, columns, strict=True):
        reading: Sequence[float] = ()
        if channel.quantity == "power_w":
            reading = column[:until:step]
        readings.append(reading)
    return tuple(readings)


def false_readings(
    channel: Channel,
    readings: Readings,
    stretches: Stretches,
    touching: range,
    native_period_s: float,
    earlier: Sequence[float],
) -> list[Doubt]:
    """Times and power readings of the window that cannot be true, or may be false."""
    doubts = []
    # Times equal to that of an edge are next to the window.
    begin, end = max(0, touching.start - 1), touching.stop + 1
    lengths_s = list(map(sub, stretches.ends_s[begin:end], stretches.starts_s[begin:end]))
    if min(lengths_s) <= SAME_TIME_S:
        same = sum(length_s <= SAME_TIME_S for length_s in lengths_s)
        doubts.append(
            Doubt(
                f"{channel.name}: {same + 1} readings have the same time: the clock stopped, or "
                "they arrived out of order"
            )
        )
    if channel.quantity == "energy_j":
        return doubts
    floor_w = noise_w(channel.resolution)
    if readings.most > OUTLIER_FACTOR * max(readings.least, floor_w):
        sure = BURST_FACTOR
        if native_period_s >= BURST_PERIOD_S:
            sure = OUTLIER_FACTOR
        doubts += _outliers(channel, stretches, touching, floor_w, sure)
    factor = UNIT_FACTOR.get(channel.domain)
    if factor is not None:
        doubts += _unit_changes(channel, readings, stretches, touching, factor, earlier)
    return doubts


def _outliers(
    channel: Channel, stretches: Stretches, touching: range, floor_w: float, sure: float
) -> Iterator[Doubt]:
    """Readings, few in a row, that differ by a factor from those before and after. Below the factor
    `sure` they may be a burst; the first and the last ones may be a step."""
    parts = list(_parted(stretches, floor_w))
    for n, part in enumerate(parts):
        if part.is_long or len(parts) == 1:
            continue
        around_w = _around_w(parts, n)
        inside = [k for k in part.places if k in touching]
        if not around_w or not inside:
            continue
        powers_w = [stretches.powers_w[k] for k in inside]
        ratios = []
        for w in powers_w:
            for near_w in around_w:
                ratios.append(max(w, floor_w) / max(near_w, floor_w))
        if not all(map(_is_apart, ratios)):
            continue
        base_w = min(around_w)
        yield Doubt(
            f"{channel.name}: {powers_w[0]:g} W, {len(inside)} in a row, among "
            f"readings of {base_w:g} W",
            math.fsum(abs(stretches.powers_w[k] - base_w) * stretches.length_s(k) for k in inside),
            widens=len(around_w) == 1 or 1.0 < max(ratios) <= sure,
        )


def _is_apart(ratio: float) -> bool:
    return ratio > OUTLIER_FACTOR or ratio < 1.0 / OUTLIER_FACTOR


def _around_w(parts: "Sequence[_Part]", n: int) -> list[float]:
    """The powers next to a part: of the long parts before and after it."""
    around_w = []
    for before in reversed(parts[:n]):
        if before.is_long:
            around_w.append(before.last_w)
            break
    for after in parts[n + 1 :]:
        if after.is_long:
            around_w.append(after.first_w)
            break
    return around_w


@dataclass(frozen=True)
class _Part:
    """Consecutive stretches with power changes below `OUTLIER_FACTOR`."""

    places: list[int]
    values: int
    """Without repeated ones: a meter that is read more often than it has a new value repeats it."""
    first_w: float
    last_w: float

    @property
    def is_long(self) -> bool:
        return self.values > OUTLIER_READINGS or len(self.places) > OUTLIER_REPEATED


def _parted(stretches: Stretches, floor_w: float) -> Iterator[_Part]:
    powers_w = stretches.powers_w
    places: list[int] = []
    for k in range(len(powers_w)):
        if places:
            low, high = sorted((max(powers_w[k - 1], floor_w), max(powers_w[k], floor_w)))
            if high > OUTLIER_FACTOR * low:
                yield _part(powers_w, places)
                places = []
        places.append(k)
    yield _part(powers_w, places)


def _part(powers_w: Sequence[float], places: list[int]) -> _Part:
    changes = sum(powers_w[a] != powers_w[b] for a, b in pairwise(places))
    return _Part(places, 1 + changes, powers_w[places[0]], powers_w[places[-1]])


def _unit_changes(
    channel: Channel,
    readings: Readings,
    stretches: Stretches,
    touching: range,
    factor: float,
    earlier: Sequence[float],
) -> Iterator[Doubt]:
    """Power that is another by a factor than in the rest of the window, or than before it."""
    # A reading of 0 may be anything below its resolution.
    floor_w = max(ZERO_W, channel.resolution) / 10.0
    least_w, most_w = possible_w(channel)
    before_w = [power_w for power_w in earlier if least_w <= power_w <= most_w]
    every_w = [readings.least, readings.most, *before_w]
    if max(every_w) <= factor * max(min(every_w), floor_w):
        return
    inside_w = stretches.powers_w[touching.start : touching.stop]
    typical_w = max(statistics.median_low(inside_w), floor_w)

    def differs(power_w: float) -> bool:
        return power_w > factor * typical_w or max(power_w, floor_w) < typical_w / factor

    if max(inside_w) > factor * typical_w or min(inside_w) < typical_w / factor:
        places = [k for k in touching if differs(stretches.powers_w[k])]
        error_j = math.fsum(
            abs(stretches.powers_w[k] - typical_w) * stretches.length_s(k) for k in places
        )
        # A few of them in the middle are outliers.
        if len(places) > OUTLIER_READINGS or touching[-1] in places:
            yield Doubt(
                f"{channel.name}: {stretches.powers_w[places[0]]:g} W and {typical_w:g} W in one "
                "window: did its unit change?",
                error_j,
            )
    others = list(filter(differs, before_w))
    if len(others) >= max(3.0, UNIT_SHARE * len(before_w)):
        yield Doubt(
            f"{channel.name}: {typical_w:g} W, and {statistics.median(others):g} W earlier: did "
            "its unit change?"
        )


# --- one meter ------------------------------------------------------------------------------------


def step_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[str]:
    """Counters of different packages that move in step: one register, shown for both."""
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    if reading.domain != "package" or high - low <= LEAST_EQUAL_STEPS:
        return []
    counters = []
    for channel, column in zip(channels, values, strict=True):
        of_domain = channel.in_domain_total and channel.domain == reading.domain
        if of_domain and channel.quantity == "energy_j":
            counters.append((channel, column[low:high]))
    doubts = []
    for (first, first_j), (second, second_j) in combinations(counters, 2):
        if in_step(first, second, (first_j, second_j), LEAST_EQUAL_STEPS):
            names = f"{first.name} and {second.name}"
            doubts.append(f"{names} change in step: they may be one counter")
    return doubts


def counter_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[str]:
    """Counters next to the power that is counted, which saw another energy: the power is frozen, or
    of another scale. They move in large steps, so that most of the window has to be between two."""
    if reading.power_w is None or reading.uncertainty_j is None:
        return []
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    doubts = []
    for channel, column in zip(channels, values, strict=True):
        if not _counts_the_same(channel, reading, channels):
            continue
        steps = _steps(times_s[low:high], column[low:high])
        if len(steps) < _FEWEST_COUNTED or steps[-1].value < steps[0].value:
            continue
        counted_s = steps[-1].time_s - steps[0].time_s
        if counted_s < LEAST_COUNTED * (end_s - start_s):
            continue
        counted_j = steps[-1].value - steps[0].value
        power_w = counted_j / counted_s
        # A step is seen at the next reading, and the power of the rest of the window is unknown.
        unseen_s = steps[0].late_s + steps[-1].late_s + (end_s - start_s - counted_s)
        limit_j = (
            reading.uncertainty_j
            + channel.accuracy_relative * counted_j
            + 2 * channel.resolution
            + unseen_s * max(power_w, reading.power_w)
        )
        if abs(power_w - reading.power_w) * counted_s > limit_j:
            doubts.append(
                f"{channel.name} shows {power_w:.1f} W in {counted_s:.1f} s of the window, and "
                f"the power is {reading.power_w:.1f} W"
            )
    return doubts


def _counts_the_same(channel: Channel, reading: EnergyReading, channels: Sequence[Channel]) -> bool:
    """Whether it is a counter that is not counted, next to a power of the same parts that is."""
    if channel.in_domain_total or channel.quantity != "energy_j":
        return False
    for other in channels:
        is_total = other.in_domain_total and other.domain == reading.domain
        if is_total and (other.quantity != "power_w" or other.contents != channel.contents):
            return False
    return channel.domain == reading.domain


@dataclass(frozen=True)
class _Step:
    """A change of a counter: the reading that shows it, s, how long after the one before that is,
    s, and the counter's value, J."""

    time_s: float
    late_s: float
    value: float


def _steps(times_s: Sequence[float], values: Sequence[float]) -> list[_Step]:
    steps = []
    read = [(at, value) for at, value in zip(times_s, values, strict=True) if value == value]
    for (before_s, before), (now_s, now) in pairwise(read):
        if now != before:
            steps.append(_Step(now_s, now_s - before_s, now))
    return steps


def in_step(
    before: Channel,
    after: Channel,
    columns: tuple[Sequence[float], Sequence[float]],
    least_steps: int = LEAST_STEPS,
) -> bool | None:
    """Whether two counters read together are one register, by equal increments over time.

    An update or a wait between two reads of one register separates two steps, not the sums of
    many. The increments of two registers differ at most steps, or their sums drift apart. None if
    fewer than `least_steps` are usable (a step that did not move, wrapped or was not read is not).
    """
    quantum_j = EQUAL_QUANTA * max(before.resolution, after.resolution)
    alike = apart = 0
    drift_j = most_step_j = 0.0
    for (one, other), (next_one, next_other) in pairwise(zip(*columns, strict=True)):
        one_j, other_j = next_one - one, next_other - other
        most_j = max(one_j, other_j)
        if not (one_j >= 0.0 and other_j >= 0.0 and most_j > quantum_j):
            continue
        drift_j += one_j - other_j
        most_step_j = max(most_step_j, most_j)
        if abs(one_j - other_j) > quantum_j + SAME_SHARE * max(abs(next_one), abs(next_other)):
            apart += 1
        else:
            alike += 1
    if apart > alike or abs(drift_j) > most_step_j + quantum_j:
        return False
    if alike + apart >= least_steps:
        return True
    return None


def repeated_reasons(
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> dict[str, str]:
    """By channel: why several counters of one name cannot be added."""
    by_name: dict[str, list[int]] = {}
    for k, channel in enumerate(channels):
        if channel.counts is not None and channel.in_domain_total:
            by_name.setdefault(channel.counts, []).append(k)
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    # Readings around a short window are used too.
    low, high = max(0, low - 2 * LEAST_STEPS), min(len(times_s), high + 2 * LEAST_STEPS)
    reasons: dict[str, str] = {}
    for counts, places in by_name.items():
        for one, other in combinations(places, 2):
            columns = values[one][low:high], values[other][low:high]
            same = in_step(channels[one], channels[other], columns)
            if same is False:
                continue
            names = f"{channels[one].name} and {channels[other].name}"
            if same:
                reason = (
                    f"change in step: they are one counter of {counts}, so their sum is double the "
                    "energy"
                )
            else:
                reason = f"were read too rarely to detect whether they are one counter of {counts}"
            for k in (one, other):
                reasons[channels[k].name] = (
                    f"{names} {reason}; dies=once counts one of them, dies=each all"
                )
    return reasons


# --- a constant value -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ConstantRun:
    """A power reading that did not change, in a window and perhaps from before it on."""

    meter: str
    domain: Domain
    channel: Channel
    power_w: float
    begin_s: float
    end_s: float
    readings: int
    native_period_s: float
    resolution: float
    """Stated by the channel, or observed in its other readings, W; 0 if unknown."""

    @property
    def compared_s(self) -> float:
        """Means over so much time are compared with it, s: the meter must have had time to show a
        change."""
        return max(COMPARED_S, COMPARED_PERIODS * self.native_period_s)

    @property
    def is_comparable(self) -> bool:
        """Whether it lasted long enough to be compared with something else."""
        return self.end_s - self.begin_s >= 2.0 * self.compared_s

    @property
    def least_rise_w(self) -> float:
        """Its parts must change by so much before it has to change, W."""
        return max(PART_RISE * self.power_w, PART_QUANTA * self.resolution)

    @property
    def too_steady(self) -> bool:
        """Whether no machine's power is so steady."""
        if self.power_w <= 0.0:
            return False
        share = self.resolution / self.power_w or UNKNOWN_SHARE
        lasted_s = self.end_s - self.begin_s
        least = max(LEAST_CONSTANT_PERIODS, CONSTANT_PERIODS_OF_SHARE * share)
        if min(self.readings - 1, lasted_s / self.native_period_s) < least:
            return False
        # A drive may report the same power whenever it is idle.
        return share <= FINE_SHARE or (lasted_s >= LEAST_CONSTANT_S and self.domain not in SEVERAL)

    def reason(self, why: str) -> str:
        """As a reason of the reading that it is in."""
        return (
            f"{self.channel.name}: the same {self.power_w:g} W for {self.end_s - self.begin_s:.0f} "
            f"s, {why}"
        )


def constant_runs(
    meter: str,
    channels: Sequence[Channel],
    native_period_s: float,
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[ConstantRun]:
    """The longest run of equal readings in a window, of each channel that reads power."""
    runs = []
    until = bisect_right(times_s, end_s)
    for channel, column in zip(channels, values, strict=True):
        if channel.quantity != "power_w" or not channel.in_domain_total:
            continue
        first = bisect_right(times_s, start_s)
        if first:
            first = constant_since(column, first)
        inside = column[first:until]
        # Where each run begins; the last one ends with the window.
        changes = compress(range(1, len(inside)), map(ne, inside[1:], inside))
        begins = [0, *changes, len(inside)]
        counts = list(map(sub, begins[1:], begins))
        count = max(counts)
        if count > LEAST_CONSTANT_PERIODS:
            begin = first + begins[counts.index(count)]
            observed = column[max(0, until - OBSERVED_READINGS) : until]
            runs.append(
                ConstantRun(
                    meter,
                    channel.domain,
                    channel,
                    column[begin],
                    times_s[begin],
                    times_s[begin + count - 1],
                    count,
                    native_period_s,
                    channel.resolution or _observed_resolution(observed),
                )
            )
    return runs


def _observed_resolution(column: Sequence[float]) -> float:
    """The smallest change between readings, W; 0 if there are too few."""
    changes = [change for a, b in pairwise(column) if (change := abs(b - a)) > SAME_SHARE * abs(a)]
    if len(changes) >= LEAST_CHANGES:
        return min(changes)
    return 0.0


def means_w(
    channels: Sequence[Channel],
    domain: Domain,
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    run: ConstantRun,
) -> list[float]:
    """Mean powers of a domain while another reading was constant, each over `compared_s`, W."""
    counted = []
    for channel, column in zip(channels, values, strict=True):
        if channel.domain == domain and channel.in_domain_total:
            counted.append((channel.quantity, column))
    first = bisect_right(times_s, run.begin_s)
    begin_s = run.end_s
    if first < len(times_s):
        begin_s = times_s[first]
    count = min(MOST_COMPARED, int((run.end_s - begin_s) // run.compared_s))
    places: list[int] = []
    if count > 1:
        for k in range(count + 1):
            places.append(bisect_right(times_s, begin_s + (run.end_s - begin_s) * k / count) - 1)
    means = []
    for low, high in pairwise(places):
        if high - low < 2:
            continue
        seconds = times_s[high] - times_s[low]
        power_w = math.fsum(
            math.fsum(column[low + 1 : high + 1]) / (high - low)
            if quantity == "power_w"
            else _counted_w(column[low], column[high], seconds)
            for quantity, column in counted
        )
        if not math.isnan(power_w):
            means.append(power_w)
    return means


def _counted_w(first_j: float, last_j: float, seconds: float) -> float:
    """Mean power of a counter, W; NaN if it started again."""
    if last_j >= first_j:
        return (last_j - first_j) / seconds
    return math.nan


def contains(run: ConstantRun, meter: str, domain: Domain) -> bool:
    """Whether a meter's reading of a domain is part of the constant power, or the same."""
    same = domain == run.domain not in SEVERAL and meter != run.meter
    return same or domain in INSIDE[run.domain]


def rise_doubt(run: ConstantRun, source: str, powers_w: Sequence[float]) -> list[str]:
    """Why another meter's power contradicts a constant one that contains it."""
    if not powers_w or max(powers_w) - min(powers_w) <= run.least_rise_w:
        return []
    return [run.reason(f"while {source} went from {min(powers_w):.1f} to {max(powers_w):.1f} W")]


def load_doubt(run: ConstantRun, loads: tuple[float, float] | None) -> list[str]:
    """Why a constant power contradicts the lowest and highest load of the processors meanwhile."""
    if run.domain not in UNIT_FACTOR or loads is None or loads[1] - loads[0] < LOAD_RISE:
        return []
    return [run.reason(f"while {loads[0]:.0%} to {loads[1]:.0%} of the processors were busy")]


# --- several meters -------------------------------------------------------------------------------


def judged(readings: Sequence[EnergyReading]) -> list[EnergyReading]:
    """The readings of one window; those that contradict each other, and a system's that are lower
    than any running machine's, are doubtful and say so."""
    doubts: dict[int, list[str]] = {}
    for reading in readings:
        if reading.domain == "system" and _most_w(reading) < LEAST_SYSTEM_W:
            doubts[id(reading)] = [
                f"{named(reading)} {reading.power_w:.3g} W: a running machine draws at least "
                f"{LEAST_SYSTEM_W:g} W"
            ]
    for group, message in contradictions(readings):
        for reading in group:
            doubts.setdefault(id(reading), []).append(message)
    return [doubted(reading, doubts.get(id(reading), ())) for reading in readings]


def _most_w(reading: EnergyReading) -> float:
    """The highest power within the uncertainty, W; infinite if it is not known."""
    if not reading.power_w or reading.energy_j is None or reading.uncertainty_j is None:
        return math.inf
    return reading.power_w + abs(reading.power_w / reading.energy_j) * reading.uncertainty_j


def doubted(reading: EnergyReading, doubts: Sequence[str]) -> EnergyReading:
    """The reading with these doubts, if there are any."""
    if not doubts:
        return reading
    reasons = tuple(dict.fromkeys((*reading.reasons, *doubts)))
    return replace(reading, doubtful=True, reasons=reasons)


def stays_flat(
    reading: EnergyReading, load: float, before: EnergyReading, load_before: float
) -> str | None:
    """Why a package that draws the same at another load of the processors is doubtful.

    The loads are shares of all CPUs' time, 0 to 1.
    """
    if reading.power_w is None or before.power_w is None:
        return None
    if abs(load - load_before) < LOAD_RISE:
        return None
    if abs(reading.power_w - before.power_w) > SAME_POWER * max(reading.power_w, before.power_w):
        return None
    return (
        f"{named(reading)} draws {reading.power_w:.1f} W with {load:.0%} of the processors busy, "
        f"and {before.power_w:.1f} W with {load_before:.0%}: its counter does not follow the load"
    )
