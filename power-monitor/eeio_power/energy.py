"""Computes the energy of a window from samples: pure functions, no clock, no files.

**Value.** Every two neighbouring readings bound a stretch of known energy. A counter gives it as
the difference of its readings (plus its range if it wrapped), so lost readings in between do not
matter. A power reading is the mean of the time up to it, as meters average, so it applies back to
the reading before (right-hold), over the real time between them, not the nominal period. Stretches
are clipped to the window by their share of time: linear interpolation of the energy. Before the
first and after the last reading the neighbour's power applies, up to the gap limit.

A meter whose readings are late, or means of a longer time, is read over a window that is as much
later (`eeio_power.delay`).

**Uncertainty.** The root of the sum of squares of six contributions, in J:

- accuracy: the class of the meter times the energy;
- quantisation: one quantum of a counter (half at either end); half a quantum of power for the
  complete window, or as much as the lowest reading is below zero;
- edges: at either end the shorter part of the stretch that the edge cuts, times the highest power
  near it, or half a native period times the highest power near both (a reading may be one period
  old), whichever is more. A meter sampled at its native period P thus has power x P at most, which
  is P / window of the energy;
- gaps (power only): the part of a stretch that no reading averages, such as the time between two
  readings of a meter that averages for a shorter time. Lost readings count with the
  full spread of the readings around the window. So does, once, a reading of a fine meter that
  exactly repeats the one before: it was read again, and another was missed. A meter sampled more
  slowly than it averages counts with the difference of neighbouring readings, stretches taken as
  independent. One that does not see a quarter of the time counts at least with the standard
  deviation of its readings;
- delay: what a meter that is late or averages cannot separate at the edges, and the changes that
  its means hide;
- unsure, added to the accuracy: the energy of a step that may be a wrap or a reset, and of a few
  readings that may be false.

A calibrated domain (`eeio_power.calibration`) has gain x energy + offset x duration, and the limit
of the calibration instead of the accuracy.

Channels of one domain add up: accuracy linearly, because one meter's channels share their
calibration, the others as squares.

**Validity.** A window without a reading, a gap longer than `gap_limit_s`, a counter that may have
wrapped unnoticed, went backwards, jumped or is stuck, counters that are one counter shown several
times (`Channel.counts`): no energy, and the reason. A gap inside a counter's window is harmless
while it cannot hide a wrap or a reset; at the window's edges the limit holds for counters too,
because there the energy is interpolated. Possible errors make it doubtful:
`eeio_power.window_readings`, `eeio_power.false_readings`.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from operator import mul, ne, sub

from eeio.record.contradictions import INSIDE
from eeio.record.reasons import low_coverage
from eeio.units.quantities import DURATION, LEAST_COVERAGE, MEAN_POWER, MOST_UNCERTAIN
from eeio_power.calibration import Calibration, of_domain
from eeio_power.delay import MOST_MEAN_SHARE, MOST_MISSING, Near, delay_error_j, edge_zones
from eeio_power.false_readings import (
    FINE_SHARE,
    LEAST_STEPS,
    counter_doubts,
    doubted,
    earlier_readings,
    false_readings,
    repeated_reasons,
    step_doubts,
)
from eeio_power.meters import Channel, contents_of
from eeio_power.reading import Contents, Domain, EnergyReading, Kind
from eeio_power.window_readings import (
    LATE_PERIODS,
    STILL_PERIODS,
    STILL_POWER_W,
    Doubt,
    Readings,
    Stretches,
    constant_since,
    gap_reasons,
    indices_around,
    known,
    lost_readings,
    possible_w,
    readings_around,
    stretches_around,
    unseen_time_s,
)

# Mean powers of a counter are taken over so many of its updates: one more or less is a fifth.
COUNTER_UPDATES = 5.0
# Of the time: what a meter that averages less of it does not see may repeat with the load.
MOST_UNSEEN = 0.25
# Of the time between readings: a meter that averages less of it takes single values.
LEAST_SEEN = 0.5

# --- one channel ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChannelEnergy:
    """One channel over one window; the uncertainties in J."""

    channel: str
    energy_j: float | None
    accuracy_j: float = 0.0
    quantisation_j: float = 0.0
    edges_j: float = 0.0
    gaps_j: float = 0.0
    delay_j: float = 0.0
    unsure_j: float = 0.0
    """Of readings that may be false, wraps that may be resets."""
    coverage: float = 0.0
    largest_gap_s: float | None = None
    samples: int = 0
    lost: int = 0
    reasons: tuple[str, ...] = ()
    """Why there is no energy."""
    doubts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def channel_energy(
    channel: Channel,
    times_s: Sequence[float],
    values: Sequence[float],
    period_s: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
    earlier: Sequence[float] = (),
) -> ChannelEnergy:
    """Integrate one channel from `start_s` to `end_s`.

    `times_s` rises (monotonic s), `values` are in the unit of the channel's quantity, NaN where a
    read failed. `period_s` is the sampling period, `native_period_s` the meter's. `earlier` are
    some readings from long before the window.
    """
    window_s = end_s - start_s
    if (problem := _window_problem(start_s, end_s)) is not None:
        return _invalid(channel, 0, problem)
    late_s = shift_s(channel, period_s)
    missing_s = _missing_s(times_s, end_s, late_s)
    start_s, end_s = start_s + late_s - missing_s, end_s + late_s - missing_s
    if missing_s > MOST_MISSING * window_s:
        return _invalid(
            channel,
            0,
            f"{channel.name}: its readings are {late_s:.2g} s late, and those of the last "
            f"{missing_s:.2g} s of this window are missing: read the meter, or log it, for longer",
        )
    readings = readings_around(channel, times_s, values, start_s, end_s)
    samples = readings.inside(start_s, end_s)
    if samples == 0:
        failed = bisect_right(times_s, end_s) - bisect_right(times_s, start_s)
        reason = _no_reading(channel, window_s, native_period_s, failed)
        # A read that waits for a silent meter fails once for several readings.
        lost = max(failed, int(window_s / period_s))
        return _invalid(channel, 0, reason, *(d.reason for d in readings.doubts), lost=lost)
    if channel.quantity == "energy_j" and len(readings.values) == 1:
        reason = f"{channel.name}: one counter reading only; energy needs two"
        return _invalid(channel, samples, reason)
    stretches = stretches_around(channel, readings, period_s, native_period_s, start_s, end_s)
    touching = stretches.touching(start_s, end_s)
    first, last = touching[0], touching[-1]
    lengths_s = list(
        map(sub, stretches.ends_s[first : last + 1], stretches.starts_s[first : last + 1])
    )
    inside_s = lengths_s.copy()
    for k in (first, last):
        inside_s[k - first] = stretches.inside_s(k, start_s, end_s)
    powers_w = stretches.powers_w[first : last + 1]
    energy_j = math.fsum(map(mul, powers_w, inside_s))
    late_s = LATE_PERIODS * period_s
    late = list(compress(range(first, last + 1), map(late_s.__lt__, lengths_s)))
    reasons = (
        *stretches.broken,
        *gap_reasons(channel, stretches, late, period_s, start_s, end_s),
        *_still_reasons(channel, energy_j, native_period_s, stretches, touching),
    )
    quantisation_j, gaps_j = channel.resolution, 0.0
    if channel.quantity == "power_w":
        powers_w = stretches.powers_w[first : last + 1]
        quantisation_j = window_s * _quantum_w(channel, readings, powers_w)
        repeated = _repeated_count(channel, readings, stretches, touching)
        spread_w = 0.0
        if late or repeated:
            spread_w = _spread_w(channel, readings, times_s, values, start_s, end_s)
        averaged_s = _averaged_s(channel, native_period_s)
        gaps_j = math.hypot(
            _gaps_error_j(stretches, touching, late, spread_w, averaged_s, start_s, end_s),
            math.sqrt(repeated) * spread_w * native_period_s,
        )
    observed_s = math.fsum(inside_s) - unseen_time_s(
        channel, stretches, late, period_s, start_s, end_s
    )
    delay_j = 0.0
    if channel.delay is not None:
        hold_s = _hold_s(channel, period_s, native_period_s)
        near = _near_edges(channel, times_s, values, hold_s, start_s, end_s)
        delay_j = delay_error_j(channel.delay, near, hold_s, window_s, missing_s)
        if channel.quantity == "power_w":
            delay_j = math.hypot(delay_j, channel.delay.hidden_s * energy_j / window_s)
    energy = ChannelEnergy(
        channel=channel.name,
        energy_j=None if reasons else energy_j,
        accuracy_j=channel.accuracy_relative * abs(energy_j),
        quantisation_j=quantisation_j,
        edges_j=_edges_error_j(stretches, (start_s, end_s), native_period_s),
        gaps_j=gaps_j,
        delay_j=delay_j,
        unsure_j=stretches.unsure_j,
        coverage=min(1.0, max(0.0, observed_s) / window_s),
        largest_gap_s=max(lengths_s),
        samples=samples,
        lost=sum(lost_readings(stretches, k, period_s, start_s, end_s) for k in {*late, last}),
        reasons=reasons,
        remarks=(
            *_delay_remarks(channel, delay_j, energy_j, window_s),
            *_remarks_on_single_values(channel, max(period_s, native_period_s)),
        ),
    )
    doubts = (
        *stretches.doubts,
        *false_readings(channel, readings, stretches, touching, native_period_s, earlier),
        *_long_mean(channel, window_s),
    )
    return _doubted(energy, doubts)


def _quantum_w(channel: Channel, readings: Readings, powers_w: Sequence[float]) -> float:
    """What a reading may be off by, W, besides the meter's accuracy."""
    if readings.least < 0.0 and min(powers_w) < 0.0:
        # Below zero there is no power: the sensor is off by any part of its noise.
        return -possible_w(channel)[0]
    return channel.resolution / 2.0


def _repeated_count(
    channel: Channel, readings: Readings, stretches: Stretches, touching: range
) -> int:
    """How many readings of a fine meter repeat the one before between two that changed."""
    if not 0.0 < channel.resolution <= FINE_SHARE * readings.least:
        return 0
    powers_w = stretches.powers_w[touching.start : touching.stop]
    before_w = stretches.previous_powers_w[touching.start : touching.stop]
    changes = list(compress(range(len(powers_w)), map(ne, powers_w, before_w)))
    return list(map(sub, changes[1:], changes)).count(2)


def _window_problem(start_s: float, end_s: float) -> str | None:
    if not start_s < end_s or not math.isfinite(end_s - start_s):
        return f"the window from {start_s} s to {end_s} s has no length"
    if end_s - start_s > DURATION.most:
        return f"a window of more than {DURATION.most / 86400:.0f} days"
    return None


def _missing_s(times_s: Sequence[float], end_s: float, late_s: float) -> float:
    """How long the readings that are `late_s` late are missing at the end of a window: a log may
    end with it."""
    if not times_s:
        return 0.0
    return max(0.0, late_s - max(0.0, times_s[-1] - end_s))


def _no_reading(channel: Channel, window_s: float, native_period_s: float, failed: int) -> str:
    """Why there is no energy; `failed` is the number of failed reads in the window."""
    reason = f"{channel.name}: no reading in the window of {window_s:.3f} s"
    if failed:
        reason += f": {failed} reads failed"
    if native_period_s > window_s:
        reason += f"; it has one each {native_period_s:g} s"
    return reason


def combined_uncertainty_j(channels: Sequence[ChannelEnergy]) -> float:
    """Of channels that add up, J: accuracy and false readings linearly, all else as squares."""
    linear_j = sum(c.accuracy_j + c.unsure_j for c in channels)
    independent: list[float] = []
    for c in channels:
        independent.extend((c.quantisation_j, c.edges_j, c.gaps_j, c.delay_j))
    return math.hypot(linear_j, *independent)


def shift_s(channel: Channel, period_s: float) -> float:
    """How much later than a window the readings of the channel are, s."""
    if channel.delay is None:
        return 0.0
    averaged_s = None
    if channel.quantity == "power_w":
        averaged_s = period_s
    return channel.delay.shift_s(averaged_s)


def wait_s(channel: Channel, period_s: float, native_period_s: float) -> float:
    """How long after a window the readings come that show the power at its end, s: all of a mean,
    and the next update of a counter."""
    if channel.delay is None:
        return 0.0
    more_s = native_period_s
    if channel.quantity != "energy_j":
        more_s = channel.delay.averages_s / 2.0
    return shift_s(channel, period_s) + more_s


def reach_s(channel: Channel, period_s: float, native_period_s: float) -> float:
    """How far from a window the readings may be on which its energy depends, due to the delay."""
    if channel.delay is None:
        return 0.0
    hold_s = _hold_s(channel, period_s, native_period_s)
    (low_s, high_s), *_ = edge_zones(channel.delay, hold_s, 0.0, 0.0)
    return abs(shift_s(channel, period_s)) + high_s - low_s


def _hold_s(channel: Channel, period_s: float, native_period_s: float) -> float:
    """The time that one power next to an edge is the mean of, s."""
    if channel.quantity == "power_w":
        return min(period_s, COUNTER_UPDATES * native_period_s)
    return COUNTER_UPDATES * native_period_s


def _near_edges(
    channel: Channel,
    times_s: Sequence[float],
    values: Sequence[float],
    hold_s: float,
    start_s: float,
    end_s: float,
) -> list[Near]:
    """The powers around both edges of a shifted window."""
    assert channel.delay is not None
    least_w, most_w = possible_w(channel)
    edges = []
    for low_s, high_s in edge_zones(channel.delay, hold_s, start_s, end_s):
        low = max(0, bisect_left(times_s, low_s) - 1)
        high = bisect_right(times_s, high_s) + 1
        near = Near(times_s[low:high], values[low:high])
        if channel.quantity == "energy_j":
            near = _counter_powers(near, hold_s)
        is_possible = [least_w <= power_w <= most_w for power_w in near.watts]
        edges.append(
            Near(list(compress(near.times_s, is_possible)), list(compress(near.watts, is_possible)))
        )
    return edges


def _counter_powers(counted: Near, least_s: float) -> Near:
    """Mean powers of a counter over times of at least `least_s`: between two readings that are
    closer it may show one update too much or too little."""
    times_s, values = counted.times_s, counted.watts
    found_s, powers_w, last = [], [], 0
    for k in range(1, len(times_s)):
        step_j = values[k] - values[last]
        if step_j == step_j and times_s[k] - times_s[last] >= least_s:
            found_s.append(times_s[k])
            powers_w.append(step_j / (times_s[k] - times_s[last]))
            last = k
    return Near(found_s, powers_w)


def _long_mean(channel: Channel, window_s: float) -> tuple[Doubt, ...]:
    """A mean that is long against the window contains what was before and after it. Where pauses
    and runs follow each other, it does not even show that the power changes."""
    mean_s = 0.0
    if channel.delay is not None:
        mean_s = channel.delay.averages_s
    if channel.quantity != "power_w" or mean_s <= MOST_MEAN_SHARE * window_s:
        return ()
    reason = (
        f"{channel.name}: each reading is a mean of {mean_s:.3g} s, too long for a window of "
        f"{window_s:.3g} s; measure for at least {mean_s / MOST_MEAN_SHARE:.3g} s"
    )
    return (Doubt(reason, math.inf),)


def _delay_remarks(
    channel: Channel, delay_j: float, energy_j: float, window_s: float
) -> tuple[str, ...]:
    """Why a window is too short for the delay of its meter to be ranked, if it is."""
    if channel.delay is None or delay_j <= MOST_UNCERTAIN * abs(energy_j):
        return ()
    share = ""
    if energy_j:
        share = f" by {delay_j / abs(energy_j):.0%}"
    return (
        f"{channel.name}: readings are {channel.delay.text}, so the energy of this window of "
        f"{window_s:.3g} s is uncertain{share}. Measure longer, "
        "state lag_s= and averages_s=, or measure the delay with `eeio meter calibrate`",
    )


def _remarks_on_single_values(channel: Channel, period_s: float) -> tuple[str, ...]:
    """What readings of a part of the time cannot show, whatever their spread is."""
    delay = channel.delay
    if delay is None or channel.quantity != "power_w":
        return ()
    seen_s = delay.averages_s
    if seen_s >= LEAST_SEEN * period_s:
        return ()
    about = ""
    if delay.averages_within_s:
        about = "about "
    return (
        f"{channel.name}: shows {about}{seen_s:.2g} s of each {period_s:.2g} s; short bursts "
        "between, and loads that repeat in step with its readings, are not in the uncertainty",
    )


def _invalid(channel: Channel, samples: int, *reasons: str, lost: int = 0) -> ChannelEnergy:
    return ChannelEnergy(channel.name, None, samples=samples, lost=lost, reasons=reasons)


def _still_reasons(
    channel: Channel,
    energy_j: float,
    native_period_s: float,
    stretches: Stretches,
    touching: range,
) -> list[str]:
    """Why an energy of 0 J is none: a sensor, or a counter, that does not measure."""
    if energy_j != 0.0:
        return []
    if channel.quantity == "power_w":
        return [f"{channel.name}: every reading is 0 W: the sensor does not measure"]
    # The readings around a short window show effects that the window is too short for.
    watched_s = math.fsum(stretches.length_s(k) for k in touching if k in stretches.inner)
    if watched_s <= STILL_PERIODS * native_period_s:
        return []
    if channel.resolution / watched_s < STILL_POWER_W:
        return [f"{channel.name}: the counter does not change: it does not measure"]
    return []


def _doubted(found: ChannelEnergy, doubts: Sequence[Doubt]) -> ChannelEnergy:
    """With possible errors beyond the uncertainty; smaller ones widen it.

    Edges and gaps do not count: a false reading near them widens them itself.
    """
    limit_j = math.hypot(found.accuracy_j + found.unsure_j, found.quantisation_j)
    small = [doubt for doubt in doubts if doubt.widens or doubt.error_j <= limit_j]
    return replace(
        found,
        unsure_j=found.unsure_j + math.fsum(doubt.error_j for doubt in small),
        doubts=tuple(doubt.reason for doubt in doubts if doubt not in small),
    )


def _edges_error_j(stretches: Stretches, edges_s: Sequence[float], native_period_s: float) -> float:
    """Uncertainty of cutting stretches at the edges of a window, J."""
    near_w, unsure_s = [], []
    for edge_s in edges_s:
        cut = min(bisect_left(stretches.ends_s, edge_s), len(stretches.ends_s) - 1)
        if cut in stretches.inner:
            near_w.append(max(map(abs, stretches.powers_w[max(0, cut - 1) : cut + 2])))
            unsure_s.append(min(edge_s - stretches.starts_s[cut], stretches.ends_s[cut] - edge_s))
        else:
            # Time that no reading averages may have any observed power.
            near_w.append(max(map(abs, stretches.powers_w)))
            unsure_s.append(stretches.length_s(cut))
    # A reading is up to one native period old, at either edge.
    old_j = max(near_w) * native_period_s / 2.0
    return math.fsum(max(old_j, w * s) for w, s in zip(near_w, unsure_s, strict=True))


def _spread_w(
    channel: Channel,
    readings: Readings,
    times_s: Sequence[float],
    values: Sequence[float],
    start_s: float,
    end_s: float,
) -> float:
    """How far apart power readings are from one window length before the window to one after, W."""
    length_s = end_s - start_s
    low, high = bisect_left(times_s, start_s - length_s), bisect_right(times_s, end_s + length_s)
    near_w = known(values[low:high])
    least_w, most_w = possible_w(channel)
    least, most = min(near_w), max(near_w)
    if not least_w <= least <= most <= most_w:
        near_w = [value for value in near_w if least_w <= value <= most_w]
        least, most = min(near_w), max(near_w)
    return max(most, readings.most) - min(least, readings.least)


def _averaged_s(channel: Channel, native_period_s: float) -> float:
    """The time before a power reading that it is the mean of for certain, s."""
    delay = channel.delay
    if delay is None:
        return native_period_s
    # A float: lengths are compared with it by its method.
    return float(min(native_period_s, max(0.0, delay.averages_s - delay.averages_within_s)))


def _gaps_error_j(
    stretches: Stretches,
    touching: range,
    late: Sequence[int],
    spread_w: float,
    averaged_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Uncertainty of holding power over time that no reading averages, J."""
    # The reading at the end averages `averaged_s`: the rest of the stretch is unobserved.
    # Before the first or after the last reading, the edge's error includes it.
    starts_s, ends_s = stretches.starts_s, stretches.ends_s
    powers_w, previous_powers_w = stretches.powers_w, stretches.previous_powers_w
    first = max(touching.start, stretches.inner.start)
    last = min(touching.stop, stretches.inner.stop) - 1
    lengths_s = map(sub, ends_s[first : last + 1], starts_s[first : last + 1])
    is_late = set(late)
    lost_j = slow_j2 = 0.0
    slow_s: list[float] = []
    for k in compress(range(first, last + 1), map(averaged_s.__lt__, lengths_s)):
        until_s = ends_s[k] - averaged_s
        unseen_s = until_s - starts_s[k]
        if k in (first, last):
            unseen_s = stretches.inside_s(k, start_s, min(end_s, until_s))
        if k in is_late:
            lost_j += spread_w * unseen_s
        else:
            slow_s.append(unseen_s)
            # Independent readings differ by √2 times their standard deviation; the limit is two.
            slow_j2 += 2.0 * ((powers_w[k] - previous_powers_w[k]) * unseen_s) ** 2
    if slow_s and math.fsum(slow_s) >= MOST_UNSEEN * (ends_s[last] - starts_s[first]):
        # Neighbours may be alike because the load repeats in nearly the time between readings.
        variance_w2 = statistics.pvariance(powers_w[first : last + 1])
        slow_j2 = max(slow_j2, 4.0 * variance_w2 * sum(unseen_s**2 for unseen_s in slow_s))
    return math.sqrt(lost_j**2 + slow_j2)


# --- one meter ------------------------------------------------------------------------------------


def domain_energy(
    meter: str,
    kind: Kind,
    domain: Domain,
    channels: Sequence[ChannelEnergy],
    start_s: float,
    end_s: float,
) -> EnergyReading:
    """Add up the channels of one power domain. One invalid channel makes the sum invalid."""
    reasons = _each_once(channel.reasons for channel in channels)
    energy_j = _all_of(channel.energy_j for channel in channels)
    power_w = uncertainty_j = None
    if reasons or not channels:
        energy_j = None
    if energy_j is not None:
        power_w = energy_j / (end_s - start_s)
        if not MEAN_POWER.contains(power_w):
            reasons = [MEAN_POWER.rejection(power_w, f"{meter} {domain}")]
            energy_j = power_w = None
    coverage = min((channel.coverage for channel in channels), default=0.0)
    doubts: list[str] = []
    if energy_j is not None:
        uncertainty_j = combined_uncertainty_j(channels)
        if coverage < LEAST_COVERAGE:
            reasons = [low_coverage(coverage)]
        for channel in channels:
            reasons += channel.remarks
            doubts += channel.doubts
    gaps = [c.largest_gap_s for c in channels if c.largest_gap_s is not None]
    reading = EnergyReading(
        domain=domain,
        meter=meter,
        kind=kind,
        power_w=power_w,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        coverage=coverage,
        largest_gap_s=max(gaps, default=None),
        samples=min((c.samples for c in channels), default=0),
        lost=max((c.lost for c in channels), default=0),
        valid=energy_j is not None,
        reasons=tuple(reasons),
    )
    return doubted(reading, doubts)


def _each_once(texts: Iterable[Sequence[str]]) -> list[str]:
    """Each text once."""
    return list(dict.fromkeys(chain.from_iterable(texts)))


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
    earlier: Sequence[Sequence[float]] | None = None,
    calibrations: Sequence[Calibration] = (),
) -> list[EnergyReading]:
    """One reading a power domain of a meter; `values` and `earlier` hold one column a channel.

    `earlier` are those of `earlier_readings`, where `times_s` does not reach back to the beginning.
    """
    if earlier is None:
        earlier = earlier_readings(channels, times_s, values, start_s)

    def energy_of(k: int) -> ChannelEnergy:
        return channel_energy(
            channels[k], times_s, values[k], period_s, native_period_s, start_s, end_s, earlier[k]
        )

    by_domain: dict[Domain, list[ChannelEnergy]] = {}
    repeated = repeated_reasons(channels, times_s, values, start_s, end_s)
    for k, channel in enumerate(channels):
        if channel.in_domain_total:
            part = energy_of(k)
            if channel.name in repeated:
                part = replace(part, energy_j=None, reasons=(*part.reasons, repeated[channel.name]))
            by_domain.setdefault(channel.domain, []).append(part)
    contents = contents_of(channels)
    readings = []
    for domain, parts in by_domain.items():
        counted = [c for c in channels if c.domain == domain and c.in_domain_total]
        reading = domain_energy(meter, kind, domain, parts, start_s, end_s)
        reading = _described(reading, counted, contents[domain])
        doubts = [
            *filter(None, (channel.doubt for channel in counted)),
            *_part_doubts(reading, channels, energy_of),
            *step_doubts(reading, channels, times_s, values, start_s, end_s),
            *counter_doubts(reading, channels, times_s, values, start_s, end_s),
        ]
        reading = doubted(reading, doubts)
        if calibration := of_domain(calibrations, domain):
            reading = _calibrated(reading, parts, calibration, end_s - start_s)
        readings.append(reading)
    return readings


def _described(
    reading: EnergyReading, channels: Sequence[Channel], contents: Contents
) -> EnergyReading:
    """With what its channels measure, and their remarks."""
    remarks = dict.fromkeys(filter(None, (channel.remark for channel in channels)))
    rules = filter(None, (channel.rule for channel in channels))
    return replace(
        reading,
        reasons=(*reading.reasons, *remarks),
        includes=contents.includes,
        leaves_out=contents.leaves_out,
        rule=next(rules, None),
    )


def _calibrated(
    reading: EnergyReading,
    channels: Sequence[ChannelEnergy],
    calibration: Calibration,
    window_s: float,
) -> EnergyReading:
    """The reading as the calibration has it, or as it is, with a note."""
    if reading.energy_j is None or reading.power_w is None:
        return reading
    if (note := calibration.note(reading.power_w)) is not None:
        return replace(reading, reasons=(*reading.reasons, note))
    power_w, gain = calibration.power_w(reading.power_w), calibration.gain
    limit_j = calibration.limit_of_w(power_w) * window_s
    scaled = []
    for c in channels:
        scaled.append(
            replace(
                c,
                accuracy_j=limit_j / len(channels),
                quantisation_j=gain * c.quantisation_j,
                edges_j=gain * c.edges_j,
                gaps_j=gain * c.gaps_j,
                delay_j=gain * c.delay_j,
                unsure_j=gain * c.unsure_j,
            )
        )
    return replace(
        reading,
        power_w=power_w,
        energy_j=power_w * window_s,
        uncertainty_j=combined_uncertainty_j(scaled),
        reasons=(*reading.reasons, calibration.remark),
    )


def _part_doubts(
    reading: EnergyReading,
    channels: Sequence[Channel],
    energy_of: Callable[[int], ChannelEnergy],
) -> list[str]:
    """Which of the meter's parts (rails, outputs of supplies) draw more than the channel that
    contains them."""
    if reading.energy_j is None or reading.uncertainty_j is None:
        return []
    doubts = []
    outputs = []
    for k, channel in enumerate(channels):
        if channel.in_domain_total:
            continue
        if channel.domain in INSIDE[reading.domain] or _is_in_total(channel, reading):
            doubts += _excess(reading, [channel], [energy_of(k)])
        elif channel.domain == reading.domain and (
            set(channel.contents.leaves_out) & set(reading.includes)
        ):
            # It excludes a part that the total includes: an output next to the inputs.
            outputs.append(k)
    return doubts + _excess(reading, [channels[k] for k in outputs], [*map(energy_of, outputs)])


def _is_in_total(channel: Channel, reading: EnergyReading) -> bool:
    """Whether a power that is not counted is of the reading's domain and includes nothing that the
    reading leaves out: a rail next to the input. Outputs of supplies are compared as a sum, and
    counters, which may be updated once a minute, by their steps (`counter_doubts`)."""
    left_out = set(channel.contents.leaves_out)
    is_of_domain = channel.domain == reading.domain and channel.quantity == "power_w"
    if not is_of_domain or left_out & set(reading.includes):
        return False
    return set(reading.leaves_out) <= left_out


def _excess(
    reading: EnergyReading, channels: Sequence[Channel], parts: Sequence[ChannelEnergy]
) -> list[str]:
    energies = [part.energy_j for part in parts if part.energy_j is not None]
    if not parts or len(energies) < len(parts) or reading.energy_j is None:
        return []
    limit_j = combined_uncertainty_j(parts) + (reading.uncertainty_j or 0.0)
    if math.fsum(energies) - reading.energy_j <= limit_j:
        return []
    window_s = math.inf
    if reading.power_w:
        window_s = reading.energy_j / reading.power_w
    names = " + ".join(channel.name for channel in channels)
    return [
        f"{names} {math.fsum(energies) / window_s:.1f} W is in {reading.domain} ({reading.meter}) "
        f"{reading.power_w or 0.0:.1f} W and draws more, by more than both uncertainties"
    ]


def indices_needed(
    channels: Sequence[Channel],
    times_s: Sequence[float],
    columns: Sequence[Sequence[float]],
    period_s: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> tuple[int, int]:
    """Where all that the energy of a window depends on begins and ends (exclusive): a session of
    days need not be looked at for a window of seconds."""
    length_s = end_s - start_s
    furthest_s = max((reach_s(c, period_s, native_period_s) for c in channels), default=0.0)
    start_s, end_s = start_s - furthest_s, end_s + furthest_s
    around = [indices_around(times_s, column, start_s, end_s) for column in columns]
    low = min(
        bisect_left(times_s, start_s - length_s),  # _spread_w
        bisect_right(times_s, start_s) - 2 * LEAST_STEPS,  # repeated_reasons
        *(first for first, _ in around),
        *(
            constant_since(column, bisect_right(times_s, start_s))
            for channel, column in zip(channels, columns, strict=True)
            if channel.quantity == "power_w"
        ),
    )
    high = max(
        bisect_right(times_s, end_s + length_s),
        bisect_right(times_s, end_s) + 2 * LEAST_STEPS,
        *(last for _, last in around),
    )
    return max(0, low), min(len(times_s), high)


# --- several stretches of time --------------------------------------------------------------------


def energy_in_parts(
    energy: Callable[[float, float], Sequence[EnergyReading]],
    stretches: Sequence[tuple[float, float]],
) -> tuple[EnergyReading, ...]:
    """One reading per meter and domain over all stretches, each from its start to its end, s.

    `energy` gives the readings of one. Energies add up, and so do their uncertainties: a meter's
    error may be the same in each. Power is the energy over only the stretches' time. If one stretch
    has no energy there is none, with its reason.
    """
    lasted_s = [end_s - start_s for start_s, end_s in stretches]
    by_source = [{reading.key: reading for reading in energy(*stretch)} for stretch in stretches]
    # A meter reads in all stretches, or gives a reason for each without a reading.
    known = [key for key in by_source[0] if all(key in readings for readings in by_source)]
    return tuple(_sum([readings[key] for readings in by_source], lasted_s) for key in known)


def _sum(parts: Sequence[EnergyReading], lasted_s: Sequence[float]) -> EnergyReading:
    complete_s = math.fsum(lasted_s)
    shares = zip(parts, lasted_s, strict=True)
    gaps = [part.largest_gap_s for part in parts if part.largest_gap_s is not None]
    energy_j = power_w = uncertainty_j = None
    if all(part.valid for part in parts):
        energy_j = _all_of(part.energy_j for part in parts)
    if energy_j is not None:
        power_w = energy_j / complete_s
        uncertainty_j = _all_of(part.uncertainty_j for part in parts)
    return replace(
        parts[0],
        power_w=power_w,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        coverage=min(1.0, math.fsum(part.coverage * s for part, s in shares) / complete_s),
        largest_gap_s=max(gaps, default=None),
        samples=sum(part.samples for part in parts),
        lost=sum(part.lost for part in parts),
        valid=energy_j is not None,
        reasons=tuple(_each_once(part.reasons for part in parts)),
        doubtful=any(part.doubtful for part in parts),
    )


def _all_of(figures: Iterable[float | None]) -> float | None:
    """Their sum; None if one of them is not known."""
    known = []
    for figure in figures:
        if figure is None:
            return None
        known.append(figure)
    return math.fsum(known)
