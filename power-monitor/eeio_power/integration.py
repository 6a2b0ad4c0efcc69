"""The energy of one channel over one window, with its four limits of error."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul, sub

from eeio_limits.quantities import DURATION
from eeio_power.gaps import gap_reasons, lost_readings, still_reasons, unseen_time_s
from eeio_power.meters import Channel
from eeio_power.stretches import readings_around, stretches_around
from eeio_power.uncertainty import edge_error_j, gaps_error_j, readings_near_w

# A stretch up to this many periods is one late reading, not a lost one.
LATE_PERIODS = 1.5


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
    readings = readings_around(times_s, values, start_s, end_s)
    stretches, broken = stretches_around(channel, *readings, native_period_s, start_s, end_s)
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
        *gap_reasons(channel, stretches, late, period_s, start_s, end_s),
        *still_reasons(channel, energy_j, native_period_s, stretches, touching),
    )
    if channel.quantity == "energy_j":
        quantisation_j, gaps_j = channel.resolution, 0.0
    else:
        quantisation_j = channel.resolution / 2.0 * window_s
        around_w = (
            [*stretches.powers_w, *readings_near_w(times_s, values, start_s, end_s)] if late else []
        )
        spread_w = max(around_w, default=0.0) - min(around_w, default=0.0)
        gaps_j = gaps_error_j(stretches, touching, late, spread_w, native_period_s, start_s, end_s)
    seen_s = math.fsum(inside_s) - unseen_time_s(channel, stretches, late, period_s, start_s, end_s)
    return ChannelEnergy(
        channel=channel.name,
        energy_j=None if reasons else energy_j,
        accuracy_j=channel.accuracy_relative * abs(energy_j),
        quantisation_j=quantisation_j,
        edges_j=sum(
            edge_error_j(stretches, edge_s, native_period_s) for edge_s in (start_s, end_s)
        ),
        gaps_j=gaps_j,
        coverage=min(1.0, max(0.0, seen_s) / window_s),
        largest_gap_s=longest_s,
        samples=samples,
        lost=sum(lost_readings(stretches, k, period_s, start_s, end_s) for k in {*late, last}),
        reasons=reasons,
    )


def combined_uncertainty_j(channels: Sequence[ChannelEnergy]) -> float:
    """Of channels that add up, J: accuracy linearly, all else as squares."""
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
