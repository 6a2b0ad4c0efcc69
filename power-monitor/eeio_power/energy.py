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
wrapped unseen, went backwards, jumped or stands still: no energy, and the reason. A gap inside a
counter's window is harmless while it cannot hide a wrap; at the window's edges the limit holds for
counters too, because there the energy is interpolated.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eeio_power.meters import Channel
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
class _Stretch:
    """The time between two neighbouring readings, or before the first or after the last one."""

    start_s: float
    end_s: float
    power_w: float
    """Mean power held over it, W."""
    last_power_w: float
    """Power of the stretch before it: how far the power moved, W."""
    inner: bool
    """Between two readings."""
    closed: bool
    """A reading stands at its end."""

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def inside_s(self, start_s: float, end_s: float) -> float:
        """How much of it lies in the window, s."""
        return max(0.0, min(self.end_s, end_s) - max(self.start_s, start_s))


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
    low, high = bisect_right(times_s, start_s), bisect_right(times_s, end_s)
    samples = sum(1 for i in range(low, high) if not math.isnan(values[i]))
    if samples == 0:
        failed = f": {high - low} reads failed" if high > low else ""
        return _invalid(
            channel,
            0,
            f"{channel.name}: no reading in the window of {end_s - start_s:.3f} s{failed}",
            lost=high - low,
        )
    readings = _readings_around(times_s, values, start_s, end_s)
    stretches, broken = _stretches(channel, readings, native_period_s, start_s, end_s)
    if not stretches:
        return _invalid(channel, samples, *broken)
    touching = [s for s in stretches if s.inside_s(start_s, end_s) > 0.0]
    energy_j = math.fsum(s.power_w * s.inside_s(start_s, end_s) for s in touching)
    window_s = end_s - start_s
    reasons = (
        *broken,
        *_gap_reasons(channel, touching, period_s, start_s, end_s),
        *_still_reasons(channel, energy_j, native_period_s, window_s),
    )
    if channel.quantity == "energy_j":
        quantisation_j, gaps_j = channel.resolution, 0.0
    else:
        quantisation_j = channel.resolution / 2.0 * window_s
        gaps_j = _gaps_j(stretches, touching, period_s, native_period_s, start_s, end_s)
    return ChannelEnergy(
        channel=channel.name,
        energy_j=None if reasons else energy_j,
        accuracy_j=channel.accuracy_relative * abs(energy_j),
        quantisation_j=quantisation_j,
        edges_j=sum(_edge_j(stretches, edge_s, native_period_s) for edge_s in (start_s, end_s)),
        gaps_j=gaps_j,
        coverage=min(1.0, _seen_s(channel, touching, period_s, start_s, end_s) / window_s),
        largest_gap_s=max(s.length_s for s in touching),
        samples=samples,
        lost=sum(_lost(s, period_s, start_s, end_s) for s in touching),
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
    return EnergyReading(
        domain=domain,
        meter=meter,
        kind=kind,
        power_w=None if energy_j is None else energy_j / (end_s - start_s),
        energy_j=energy_j,
        uncertainty_j=_combined_uncertainty_j(channels) if valid else None,
        coverage=min((c.coverage for c in channels), default=0.0),
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
    by_domain: dict[Domain, list[ChannelEnergy]] = {}
    for channel, column in zip(channels, values, strict=True):
        if channel.in_domain_total:
            by_domain.setdefault(channel.domain, []).append(
                channel_energy(channel, times_s, column, period_s, native_period_s, start_s, end_s)
            )
    return [
        domain_energy(meter, kind, domain, parts, start_s, end_s)
        for domain, parts in by_domain.items()
    ]


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


def _readings_around(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> list[tuple[float, float]]:
    """The readings that did not fail, from one window length before to one after the window.

    Reaches farther where needed to hold one reading (and the one before it, whose distance says
    how the first is held) at or outside either end of the window.
    """
    length_s = end_s - start_s
    low, high = bisect_left(times_s, start_s - length_s), bisect_right(times_s, end_s + length_s)
    count = len(times_s)
    before = [i for i in range(low, bisect_right(times_s, start_s)) if not math.isnan(values[i])]
    wanted = 2 - len(before)
    while low > 0 and wanted > 0:
        low -= 1
        wanted -= 0 if math.isnan(values[low]) else 1
    after_end = any(not math.isnan(values[i]) for i in range(bisect_left(times_s, end_s), high))
    while high < count and not after_end:
        after_end = not math.isnan(values[high])
        high += 1
    return [(times_s[i], values[i]) for i in range(low, high) if not math.isnan(values[i])]


def _stretches(
    channel: Channel,
    readings: Sequence[tuple[float, float]],
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> tuple[list[_Stretch], tuple[str, ...]]:
    """Stretches that cover the window, in order, and what is wrong with those that touch it."""
    stretches: list[_Stretch] = []
    broken: list[str] = []
    for (a_s, a), (b_s, b) in pairwise(readings):
        if channel.quantity == "power_w":
            power_w, last_w, problem = b, a, None
        else:
            step_j = counter_step_j(a, b, channel.range_j)
            problem = _step_problem(channel, step_j, b_s - a_s, native_period_s)
            power_w = (step_j or 0.0) / (b_s - a_s)
            last_w = stretches[-1].power_w if stretches else power_w
        stretch = _Stretch(a_s, b_s, power_w, last_w, inner=True, closed=True)
        if problem and stretch.inside_s(start_s, end_s) > 0.0:
            broken.append(problem)
        stretches.append(stretch)
    if channel.quantity == "energy_j" and not stretches:
        return [], (f"{channel.name}: one counter reading only; energy needs two",)
    first_s, first = readings[0]
    last_s, last = readings[-1]
    if channel.quantity == "energy_j":
        first, last = stretches[0].power_w, stretches[-1].power_w
    if start_s < first_s:
        stretches.insert(0, _Stretch(start_s, first_s, first, first, inner=False, closed=True))
    if last_s < end_s:
        stretches.append(_Stretch(last_s, end_s, last, last, inner=False, closed=False))
    return stretches, tuple(broken)


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
    channel: Channel, touching: Sequence[_Stretch], period_s: float, start_s: float, end_s: float
) -> list[str]:
    limit_s = gap_limit_s(period_s)
    reasons = []
    for s in touching:
        whole = s.inner and start_s <= s.start_s and s.end_s <= end_s
        if s.length_s > limit_s and not (channel.quantity == "energy_j" and whole):
            reasons.append(
                f"{channel.name}: {s.length_s:.1f} s without a reading, more than the limit of "
                f"{limit_s:.1f} s"
            )
    return reasons


def _still_reasons(
    channel: Channel, energy_j: float, native_period_s: float, window_s: float
) -> list[str]:
    if energy_j != 0.0:
        return []
    if channel.quantity == "power_w":
        return [f"{channel.name}: every reading is 0 W: the sensor does not measure"]
    shows_w = channel.resolution / window_s
    if window_s > STILL_PERIODS * native_period_s and shows_w < STILL_POWER_W:
        return [f"{channel.name}: the counter stands still: it does not measure"]
    return []


def _edge_j(stretches: Sequence[_Stretch], edge_s: float, native_period_s: float) -> float:
    """Limit of the error of cutting a stretch at `edge_s`, J."""
    cut = min(
        bisect_left([s.end_s for s in stretches], edge_s),
        len(stretches) - 1,
    )
    near_w = max(abs(s.power_w) for s in stretches[max(0, cut - 1) : cut + 2])
    stretch = stretches[cut]
    if stretch.inner:
        unsure_s = min(edge_s - stretch.start_s, stretch.end_s - edge_s)
    else:
        unsure_s = stretch.length_s
    return near_w * max(native_period_s / 2.0, unsure_s)


def _gaps_j(
    stretches: Sequence[_Stretch],
    touching: Sequence[_Stretch],
    period_s: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Limit of the error of holding power over time that no reading averages, J."""
    powers = [s.power_w for s in stretches]
    spread_w = max(powers) - min(powers)
    lost_j = 0.0
    slow_j2 = 0.0
    for s in touching:
        if not s.inner:
            continue  # before the first or after the last reading: the edge's error holds it
        # The reading at the end averages one native period: the rest of the stretch is unseen.
        unseen_s = s.inside_s(start_s, min(end_s, s.end_s - native_period_s))
        if s.length_s > LATE_PERIODS * period_s:
            lost_j += spread_w * unseen_s
        else:
            slow_j2 += ((s.power_w - s.last_power_w) * unseen_s) ** 2
    return math.sqrt(lost_j**2 + slow_j2)


def _seen_s(
    channel: Channel, touching: Sequence[_Stretch], period_s: float, start_s: float, end_s: float
) -> float:
    """Time of the window that readings account for, s."""
    seen_s = 0.0
    for s in touching:
        if not s.closed or (channel.quantity == "energy_j" and not s.inner):
            continue
        if channel.quantity == "energy_j" or s.length_s <= LATE_PERIODS * period_s:
            seen_s += s.inside_s(start_s, end_s)
        else:
            seen_s += s.inside_s(max(start_s, s.end_s - period_s), end_s)
    return seen_s


def _lost(s: _Stretch, period_s: float, start_s: float, end_s: float) -> int:
    """Readings that should have come inside the stretch and the window."""
    if not s.closed:
        return int(s.length_s / period_s)
    steps = round(s.length_s / period_s)
    return sum(1 for k in range(1, steps) if start_s < s.start_s + s.length_s * k / steps <= end_s)
