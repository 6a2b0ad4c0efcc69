"""Power over time of what a meter saw, domain by domain, and its median."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eeio_power.samples import MeterSamples
from eeio_power.stretches import possible_w

_LEAST_BEAT = 0.5
"""Readings of a counter closer than this share of its period are joined: the extra ones at the
edges of a window would show as spikes."""


@dataclass(frozen=True)
class DomainPower:
    """`watts[i]` is the power at `times_s[i]`, or of a counter the mean since `times_s[i - 1]`;
    NaN where it was not read. Monotonic seconds, rising."""

    domain: str
    times_s: Sequence[float]
    watts: Sequence[float]

    def median_w(self, start_s: float, end_s: float) -> float | None:
        """Of what was read after `start_s` and up to `end_s`; None where nothing was."""
        first, last = bisect_right(self.times_s, start_s), bisect_right(self.times_s, end_s)
        known = [watts for watts in self.watts[first:last] if not math.isnan(watts)]
        return statistics.median(known) if known else None


def power_over_time(meter: MeterSamples) -> list[DomainPower]:
    """One a domain of the meter; none of a meter that was read once."""
    domains: dict[str, list[int]] = {}
    for place, channel in enumerate(meter.info.channels):
        if channel.in_domain_total:
            domains.setdefault(channel.domain, []).append(place)
    return [
        _of_domain(meter, domain, places)
        for domain, places in domains.items()
        if len(meter.times_s) > 1
    ]


def _of_domain(meter: MeterSamples, domain: str, places: Sequence[int]) -> DomainPower:
    """The sum of a domain's channels; NaN where one of them was not read."""
    counted = any(meter.info.channels[place].quantity == "energy_j" for place in places)
    least_s = _LEAST_BEAT * meter.info.period_s if counted else 0.0
    kept = _beats(meter.times_s, least_s)
    columns = [_watts(meter, place, kept) for place in places]
    watts = (
        columns[0]
        if len(columns) == 1
        else [math.fsum(values) for values in zip(*columns, strict=True)]
    )
    return DomainPower(domain, _at(meter.times_s, kept), watts)


def _beats(times_s: Sequence[float], least_s: float) -> Sequence[int]:
    """The places of readings at least that far apart."""
    if not least_s:
        return range(len(times_s))
    kept = [0]
    for place in range(1, len(times_s)):
        if times_s[place] - times_s[kept[-1]] >= least_s:
            kept.append(place)
    return kept


def _at(column: Sequence[float], kept: Sequence[int]) -> Sequence[float]:
    return column if len(kept) == len(column) else [column[n] for n in kept]


def _watts(meter: MeterSamples, place: int, kept: Sequence[int]) -> Sequence[float]:
    """Mean power up to each reading; NaN for the first of a counter."""
    channel, column, times_s = meter.info.channels[place], meter.values[place], meter.times_s
    if channel.quantity == "power_w":
        least_w, most_w = possible_w(channel)
        return [w if least_w <= w <= most_w else math.nan for w in _at(column, kept)]
    watts = [math.nan]
    for before, after in pairwise(kept):
        joules = column[after] - column[before]
        if joules < 0:  # the counter began again, or was set back, which nobody can undo
            joules = joules + channel.range_j if channel.range_j is not None else math.nan
        watts.append(joules / (times_s[after] - times_s[before]))
    return watts
