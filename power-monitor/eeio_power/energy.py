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
from collections.abc import Sequence
from dataclasses import replace

from eeio_limits.quantities import LEAST_COVERAGE
from eeio_power.doubts import LEAST_STEPS, part_doubts, repeated_reasons, step_doubts
from eeio_power.integration import ChannelEnergy, channel_energy, combined_uncertainty_j
from eeio_power.meters import Channel, contents_of
from eeio_power.plausibility import doubted
from eeio_power.reading import Domain, EnergyReading, Kind
from eeio_power.stretches import indices_around


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
        uncertainty_j=combined_uncertainty_j(channels) if valid else None,
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
                    *part_doubts(reading, channels, energy_of),
                    *step_doubts(reading, channels, times_s, values, start_s, end_s),
                ],
            )
        )
    return readings


def indices_needed(
    times_s: Sequence[float], columns: Sequence[Sequence[float]], start_s: float, end_s: float
) -> tuple[int, int]:
    """Where all that the energy of a window depends on begins and ends (exclusive): a session of
    days need not be looked at for a window of seconds."""
    length_s = end_s - start_s
    around = [indices_around(times_s, column, start_s, end_s) for column in columns]
    low = min(
        bisect_left(times_s, start_s - length_s),  # readings_near_w
        bisect_right(times_s, start_s) - 2 * LEAST_STEPS,  # repeated_reasons
        *(first for first, _ in around),
    )
    high = max(
        bisect_right(times_s, end_s + length_s),
        bisect_right(times_s, end_s) + 2 * LEAST_STEPS,
        *(last for _, last in around),
    )
    return max(0, low), min(len(times_s), high)
