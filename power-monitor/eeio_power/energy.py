"""From samples to the energy of a window: pure functions, no clock, no files.

**Value.** Every two neighbouring readings bound a stretch of known energy. A counter gives it as
the difference of its readings (plus its range where it wrapped), so readings lost in between cost
nothing. A power reading is the mean of the time up to it, as meters average, so it is held back to
the reading before (right-hold), over the real time between them and not over the nominal period.
Stretches are clipped to the window by their share of time: linear interpolation of the energy.
Before the first and after the last reading the neighbour's power is held, up to the gap limit.

**Uncertainty.** The root of the sum of squares of four limits of error, in J:

- accuracy: the class of the meter times the energy;
- quantisation: one quantum of a counter (half at either end); half a quantum of power for the
  whole window;
- edges: at either end the highest power near it times the larger of half a native period (how old
  a reading may be) and the shorter part of the stretch that the edge cuts. A meter sampled at its
  own period P thus has power x P at most, which is P / window of the energy;
- gaps (power only): the part of a stretch that no reading averages. Lost readings count with the
  whole spread of the readings around the window; a meter sampled more slowly than it averages
  counts with the difference of neighbouring readings, stretches taken as independent.

Channels of one domain add up: accuracy linearly, for one meter's channels share their calibration,
the others as squares.

**Validity.** A window without a reading, a gap longer than `gap_limit_s`, a counter that may have
wrapped unseen, went backwards, jumped or stands still, counters that are one counter shown several
times (`Channel.counts`): no energy, and the reason. A gap inside a
counter's window is harmless while it cannot hide a wrap; at the window's edges the limit holds for
counters too, because there the energy is interpolated.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from operator import mul, sub, truediv

from eeio_limits.contradictions import INSIDE
from eeio_limits.quantities import DURATION, LEAST_COVERAGE
from eeio_power.meters import Channel, contents_of
from eeio_power.plausibility import doubted
from eeio_power.reading import Domain, EnergyReading, Kind

GAP_PERIODS = 5.0
GAP_FLOOR_S = 2.0

# A stretch up to this many periods is one late reading, not a lost one.
LATE_PERIODS = 1.5

# A counter's step may exceed its highest power by this factor before it counts as a jump: the
# highest power is an estimate, and a counter updates in lumps.
JUMP_FACTOR = 2.0

# A counter that could have shown this power and shows none, over this many of its updates, stands
# still.
STILL_POWER_W = 1e-3
STILL_PERIODS = 10.0

# Counters of one name that agree so closely at most steps are one; fewer steps tell nothing.
STEP_AGREEMENT = 0.01
LEAST_STEPS = 3
# Two packages may run alike: to be one register they must agree as two reads of one do.
EQUAL_AGREEMENT = 0.001
LEAST_EQUAL_STEPS = 20


def gap_limit_s(period_s: float) -> float:
    """The longest gap that is held over, s: five periods, and never under two seconds."""
    return max(GAP_PERIODS * period_s, GAP_FLOOR_S)


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
class ChannelEnergy:
    """One channel over one window; the four limits of error in J."""

    channel: str
    energy_j: float | None
    accuracy_j: float
    quantisation_j: float
    edges_j: float
    gaps_j: float
    coverage: float
    largest_gap_s: float | None
    samples: int
    lost: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Stretches:
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


def channel_energy(
    channel: Channel,
    times_s: Sequence[float],
    values: Sequence[float],
    period_s: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> ChannelEnergy:
    """Integrate one channel from `start_s` to `end_s`.

    `times_s` rises (monotonic s), `values` stands in the unit of the channel's quantity, NaN where
    a read failed. `period_s` is the sampling period, `native_period_s` the meter's own.
    """
    if not start_s < end_s or not math.isfinite(end_s - start_s):
        return _invalid(channel, 0, f"the window from {start_s} s to {end_s} s has no length")
    if end_s - start_s > DURATION.most:
        days = DURATION.most / 86400
        return _invalid(channel, 0, f"a window of more than {days:.0f} days")
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    samples = high - low - sum(map(math.isnan, values[low:high]))
    if samples == 0:
        failed = f": {high - low} reads failed" if high > low else ""
        return _invalid(
            channel,
            0,
            f"{channel.name}: no reading in the window of {end_s - start_s:.3f} s{failed}",
            # A read that waits for a silent meter fails once for several readings.
            lost=max(high - low, int((end_s - start_s) / period_s)),
        )
    readings = _readings_around(times_s, values, start_s, end_s)
    stretches, broken = _stretches(channel, *readings, native_period_s, start_s, end_s)
    if stretches is None:
        return _invalid(channel, samples, *broken)
    window_s = end_s - start_s
    touching = stretches.touching(start_s, end_s)
    first, last = touching[0], touching[-1]
    lengths_s = list(
        map(sub, stretches.ends_s[first : last + 1], stretches.starts_s[first : last + 1])
    )
    inside_s = lengths_s.copy()
    for k in (first, last):
        inside_s[k - first] = stretches.inside_s(k, start_s, end_s)
    energy_j = math.fsum(map(mul, stretches.powers_w[first : last + 1], inside_s))
    longest_s = max(lengths_s)
    late = [first + k for k, s in enumerate(lengths_s) if s > LATE_PERIODS * period_s]
    reasons = (
        *broken,
        *_gap_reasons(channel, stretches, late, period_s, start_s, end_s),
        *_still_reasons(channel, energy_j, native_period_s, stretches, touching),
    )
    if channel.quantity == "energy_j":
        quantisation_j, gaps_j = channel.resolution, 0.0
    else:
        quantisation_j = channel.resolution / 2.0 * window_s
        around_w = (
            [*stretches.powers_w, *_readings_w(times_s, values, start_s, end_s)] if late else []
        )
        spread_w = max(around_w, default=0.0) - min(around_w, default=0.0)
        gaps_j = _gaps_j(stretches, touching, late, spread_w, native_period_s, start_s, end_s)
    seen_s = math.fsum(inside_s) - _unseen_s(channel, stretches, late, period_s, start_s, end_s)
    return ChannelEnergy(
        channel=channel.name,
        energy_j=None if reasons else energy_j,
        accuracy_j=channel.accuracy_relative * abs(energy_j),
        quantisation_j=quantisation_j,
        edges_j=sum(_edge_j(stretches, edge_s, native_period_s) for edge_s in (start_s, end_s)),
        gaps_j=gaps_j,
        coverage=min(1.0, max(0.0, seen_s) / window_s),
        largest_gap_s=longest_s,
        samples=samples,
        lost=sum(_lost(stretches, k, period_s, start_s, end_s) for k in {*late, last}),
        reasons=reasons,
    )


def domain_energy(
    meter: str,
    kind: Kind,
    domain: Domain,
    channels: Sequence[ChannelEnergy],
    start_s: float,
    end_s: float,
) -> EnergyReading:
    """Add up the channels of one power domain. One invalid channel makes the sum invalid."""
    reasons = tuple(dict.fromkeys(reason for c in channels for reason in c.reasons))
    gaps = [c.largest_gap_s for c in channels if c.largest_gap_s is not None]
    energies = [c.energy_j for c in channels if c.energy_j is not None]
    valid = not reasons and len(energies) == len(channels) > 0
    energy_j = math.fsum(energies) if valid else None
    coverage = min((c.coverage for c in channels), default=0.0)
    if valid and coverage < LEAST_COVERAGE:
        reasons = (f"readings stand for {coverage:.0%} of the window only: not to be compared",)
    return EnergyReading(
        domain=domain,
        meter=meter,
        kind=kind,
        power_w=None if energy_j is None else energy_j / (end_s - start_s),
        energy_j=energy_j,
        uncertainty_j=_combined_uncertainty_j(channels) if valid else None,
        coverage=coverage,
        largest_gap_s=max(gaps, default=None),
        samples=min((c.samples for c in channels), default=0),
        lost=max((c.lost for c in channels), default=0),
        valid=valid,
        reasons=reasons,
    )


def meter_energy(
    *,
    meter: str,
    kind: Kind,
    channels: Sequence[Channel],
    native_period_s: float,
    period_s: float,
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[EnergyReading]:
    """One reading a power domain of a meter; `values` holds one column a channel."""

    def energy_of(k: int) -> ChannelEnergy:
        return channel_energy(
            channels[k], times_s, values[k], period_s, native_period_s, start_s, end_s
        )

    by_domain: dict[Domain, list[ChannelEnergy]] = {}
    repeated = _repeated_reasons(channels, times_s, values, start_s, end_s)
    for k, channel in enumerate(channels):
        if channel.in_domain_total:
            part = energy_of(k)
            if channel.name in repeated:
                part = replace(part, energy_j=None, reasons=(*part.reasons, repeated[channel.name]))
            by_domain.setdefault(channel.domain, []).append(part)
    contents = contents_of(channels)
    readings = []
    for domain, parts in by_domain.items():
        reading = domain_energy(meter, kind, domain, parts, start_s, end_s)
        remarks = dict.fromkeys(
            c.remark for c in channels if c.domain == domain and c.in_domain_total and c.remark
        )
        reading = replace(
            reading,
            reasons=(*reading.reasons, *remarks),
            includes=contents[domain].includes,
            leaves_out=contents[domain].leaves_out,
        )
        readings.append(
            doubted(
                reading,
                [
                    *_part_doubts(reading, channels, energy_of),
                    *_step_doubts(reading, channels, times_s, values, start_s, end_s),
                ],
            )
        )
    return readings


def _part_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    energy_of: Callable[[int], ChannelEnergy],
) -> list[str]:
    """Which of the meter's parts (rails, outputs of supplies) draw more than what holds them."""
    if reading.energy_j is None or reading.uncertainty_j is None:
        return []
    doubts = []
    outputs = []
    for k, channel in enumerate(channels):
        if channel.in_domain_total:
            continue
        if channel.domain in INSIDE[reading.domain]:
            doubts += _excess(reading, [channel], [energy_of(k)])
        elif channel.domain == reading.domain and (
            set(channel.contents.leaves_out) & set(reading.includes)
        ):
            # It leaves something out that the total holds: an output beside the inputs.
            outputs.append(k)
    return doubts + _excess(reading, [channels[k] for k in outputs], [*map(energy_of, outputs)])


def _excess(
    reading: EnergyReading, channels: Sequence[Channel], parts: Sequence[ChannelEnergy]
) -> list[str]:
    energies = [part.energy_j for part in parts if part.energy_j is not None]
    if not parts or len(energies) < len(parts) or reading.energy_j is None:
        return []
    limit_j = _combined_uncertainty_j(parts) + (reading.uncertainty_j or 0.0)
    if math.fsum(energies) - reading.energy_j <= limit_j:
        return []
    window_s = reading.energy_j / reading.power_w if reading.power_w else math.inf
    names = " + ".join(channel.name for channel in channels)
    return [
        f"{names} {math.fsum(energies) / window_s:.1f} W is in {reading.domain} ({reading.meter}) "
        f"{reading.power_w or 0.0:.1f} W and draws more, by more than both limits of error"
    ]


def _step_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    times_s: Sequence[float],
    values: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> list[str]:
    """Counters of different packages that move in step: one register, shown for both."""
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    places = [
        k
        for k, channel in enumerate(channels)
        if channel.in_domain_total
        and (channel.domain, channel.quantity) == (reading.domain, "energy_j")
    ]
    if reading.domain != "package" or high - low <= LEAST_EQUAL_STEPS:
        return []
    return [
        f"{channels[one].name} and {channels[other].name} move in step: are they two counters?"
        for one, other in combinations(places, 2)
        if in_step(
            channels[one],
            channels[other],
            (values[one][low:high], values[other][low:high]),
            EQUAL_AGREEMENT,
            LEAST_EQUAL_STEPS,
        )
    ]


def in_step(
    before: Channel,
    after: Channel,
    columns: tuple[Sequence[float], Sequence[float]],
    agreement: float = STEP_AGREEMENT,
    least_steps: int = LEAST_STEPS,
) -> bool | None:
    """Whether two counters read together agree at most steps, within `agreement` and their quanta.

    True dies under one load differ by more at most of them. One register does not, though it is
    read twice: an update between the two reads, or a process that had to wait there, sets two steps
    apart, and no more. None if fewer than `least_steps` tell (a step that did not move, wrapped or
    was not read tells nothing).
    """
    quanta_j = 2.0 * (before.resolution + after.resolution)
    alike = apart = 0
    for (one, other), (next_one, next_other) in pairwise(zip(*columns, strict=True)):
        one_j, other_j = next_one - one, next_other - other
        most_j = max(one_j, other_j)
        if not (one_j >= 0.0 and other_j >= 0.0 and most_j > quanta_j):
            continue
        if abs(one_j - other_j) > agreement * most_j + quanta_j:
            apart += 1
        else:
            alike += 1
    if apart > alike:
        return False
    return True if alike + apart >= least_steps else None


def _repeated_reasons(
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
    # Readings around a short window tell of it too.
    low, high = max(0, low - 2 * LEAST_STEPS), min(len(times_s), high + 2 * LEAST_STEPS)
    reasons: dict[str, str] = {}
    for counts, places in by_name.items():
        for one, other in combinations(places, 2):
            columns = values[one][low:high], values[other][low:high]
            same = in_step(channels[one], channels[other], columns)
            if same is False:
                continue
            names = f"{channels[one].name} and {channels[other].name}"
            why = (
                f"move in step: one counter of {counts} shown twice, whose sum is twice the energy"
                if same
                else f"were read too rarely to tell whether they are one counter of {counts}"
            )
            for k in (one, other):
                reasons[channels[k].name] = (
                    f"{names} {why}; dies=once counts one of them, dies=each all"
                )
    return reasons


def _combined_uncertainty_j(channels: Sequence[ChannelEnergy]) -> float:
    accuracy_j = sum(c.accuracy_j for c in channels)
    independent = [term for c in channels for term in (c.quantisation_j, c.edges_j, c.gaps_j)]
    return math.hypot(accuracy_j, *independent)


def _invalid(channel: Channel, samples: int, *reasons: str, lost: int = 0) -> ChannelEnergy:
    return ChannelEnergy(
        channel=channel.name,
        energy_j=None,
        accuracy_j=0.0,
        quantisation_j=0.0,
        edges_j=0.0,
        gaps_j=0.0,
        coverage=0.0,
        largest_gap_s=None,
        samples=samples,
        lost=lost,
        reasons=reasons,
    )


def places_needed(
    times_s: Sequence[float], columns: Sequence[Sequence[float]], start_s: float, end_s: float
) -> tuple[int, int]:
    """Where all that the energy of a window depends on begins and ends (exclusive): a session of
    days need not be looked at for a window of seconds."""
    length_s = end_s - start_s
    around = [_places_around(times_s, column, start_s, end_s) for column in columns]
    low = min(
        bisect_left(times_s, start_s - length_s),  # _readings_w
        bisect_right(times_s, start_s) - 2 * LEAST_STEPS,  # _repeated_reasons
        *(first for first, _ in around),
    )
    high = max(
        bisect_right(times_s, end_s + length_s),
        bisect_right(times_s, end_s) + 2 * LEAST_STEPS,
        *(last for _, last in around),
    )
    return max(0, low), min(len(times_s), high)


def _places_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> tuple[int, int]:
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


def _readings_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> tuple[list[float], list[float]]:
    """Times and values of the readings that did not fail, and some on either side.

    Three at or before the window (one to hold, the one before it, whose distance says how, and one
    more for the highest power near the edge), two at or after it, as far away as they are.
    """
    low, high = _places_around(times_s, values, start_s, end_s)
    found_s, found = list(times_s[low:high]), list(values[low:high])
    if any(map(math.isnan, found)):
        kept = [(t, v) for t, v in zip(found_s, found, strict=True) if not math.isnan(v)]
        found_s, found = [t for t, _ in kept], [v for _, v in kept]
    return found_s, found


def _stretches(
    channel: Channel,
    times_s: list[float],
    values: list[float],
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> tuple[_Stretches | None, tuple[str, ...]]:
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
    stretches = _Stretches(starts_s, ends_s, powers_w, last_powers_w, head, tail)
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


def _gap_reasons(
    channel: Channel,
    stretches: _Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> list[str]:
    limit_s = gap_limit_s(period_s)
    reasons = []
    for k in late:
        length_s = stretches.length_s(k)
        inside = start_s <= stretches.starts_s[k] and stretches.ends_s[k] <= end_s
        whole = k in stretches.inner and inside
        if length_s > limit_s and not (channel.quantity == "energy_j" and whole):
            reasons.append(
                f"{channel.name}: {length_s:.1f} s without a reading, more than the limit of "
                f"{limit_s:.1f} s"
            )
    return reasons


def _still_reasons(
    channel: Channel,
    energy_j: float,
    native_period_s: float,
    stretches: _Stretches,
    touching: range,
) -> list[str]:
    if energy_j != 0.0:
        return []
    if channel.quantity == "power_w":
        return [f"{channel.name}: every reading is 0 W: the sensor does not measure"]
    # The readings around a short window show what the window itself is too short for.
    watched_s = math.fsum(stretches.length_s(k) for k in touching if k in stretches.inner)
    if watched_s <= STILL_PERIODS * native_period_s:
        return []
    if channel.resolution / watched_s < STILL_POWER_W:
        return [f"{channel.name}: the counter stands still: it does not measure"]
    return []


def _edge_j(stretches: _Stretches, edge_s: float, native_period_s: float) -> float:
    """Limit of the error of cutting a stretch at `edge_s`, J."""
    cut = min(bisect_left(stretches.ends_s, edge_s), len(stretches.ends_s) - 1)
    near_w = max(abs(power_w) for power_w in stretches.powers_w[max(0, cut - 1) : cut + 2])
    if cut in stretches.inner:
        unsure_s = min(edge_s - stretches.starts_s[cut], stretches.ends_s[cut] - edge_s)
    else:
        unsure_s = stretches.length_s(cut)
    return near_w * max(native_period_s / 2.0, unsure_s)


def _readings_w(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> list[float]:
    """The power readings from one window length before the window to one after it, W."""
    length_s = end_s - start_s
    low, high = bisect_left(times_s, start_s - length_s), bisect_right(times_s, end_s + length_s)
    return [value for value in values[low:high] if not math.isnan(value)]


def _gaps_j(
    stretches: _Stretches,
    touching: range,
    late: Sequence[int],
    spread_w: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Limit of the error of holding power over time that no reading averages, J."""
    # The reading at the end averages one native period: the rest of the stretch is unseen. Before
    # the first or after the last reading, the edge's error holds it.
    unseen = [
        (k, unseen_s)
        for k in range(max(touching.start, stretches.inner.start),
                       min(touching.stop, stretches.inner.stop))
        if (unseen_s := stretches.ends_s[k] - native_period_s - stretches.starts_s[k]) > 0.0
    ]  # fmt: skip
    is_late = set(late)
    lost_j = slow_j2 = 0.0
    for k, _ in unseen:
        inside_s = stretches.inside_s(k, start_s, min(end_s, stretches.ends_s[k] - native_period_s))
        if k in is_late:
            lost_j += spread_w * inside_s
        else:
            moved_w = stretches.powers_w[k] - stretches.last_powers_w[k]
            slow_j2 += (moved_w * inside_s) ** 2
    return math.sqrt(lost_j**2 + slow_j2)


def _unseen_s(
    channel: Channel,
    stretches: _Stretches,
    late: Sequence[int],
    period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Time of the window that no reading accounts for, s."""
    counter = channel.quantity == "energy_j"
    unseen_s = 0.0
    ends = [0] if stretches.head and counter else []
    ends += [len(stretches.starts_s) - 1] if stretches.tail else []
    for k in {*late, *ends}:
        inside_s = stretches.inside_s(k, start_s, end_s)
        if k in ends:
            unseen_s += inside_s
        elif not counter:
            # The reading at its end speaks for one period.
            since_s = max(start_s, stretches.ends_s[k] - period_s)
            unseen_s += inside_s - stretches.inside_s(k, since_s, end_s)
    return unseen_s


def _lost(stretches: _Stretches, k: int, period_s: float, start_s: float, end_s: float) -> int:
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
        # The quotient may be a hair off the time that it stands for.
        while count + 1 < steps and begin_s + length_s * (count + 1) / steps <= time_s:
            count += 1
        while count > 0 and begin_s + length_s * count / steps > time_s:
            count -= 1
        return count

    return max(0, until(end_s) - until(start_s))
