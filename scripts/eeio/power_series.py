"""Power over time of a campaign, of the samples that it kept: what the report's page draws."""

import math
from collections.abc import Sequence
from itertools import pairwise

from eeio_power import samples
from eeio_power.errors import PowerError
from eeio_power.samples import MeterSamples
from eeio_results.report.page.series import PowerSeries
from eeio_results.store import Campaign

_FILES = "power-*.csv.gz"
_LEAST_BEAT = 0.5
"""Readings of a counter closer than this share of its period are joined: the extra ones at the
edges of a window would show as spikes."""


def power_series(campaign: Campaign) -> list[PowerSeries]:
    """One series a meter, domain and segment of the campaign; none of a file that cannot be read:
    the records hold its energy all the same."""
    found: list[PowerSeries] = []
    for path in sorted((campaign.folder / "samples").glob(_FILES)):
        try:
            loaded = samples.load(path)
        except PowerError:
            continue
        for meter in loaded.meters:
            found += _of_meter(meter)
    return found


def _of_meter(meter: MeterSamples) -> list[PowerSeries]:
    domains: dict[str, list[int]] = {}
    for place, channel in enumerate(meter.info.channels):
        if channel.in_domain_total:
            domains.setdefault(channel.domain, []).append(place)
    return [
        _of_domain(meter, domain, places)
        for domain, places in domains.items()
        if len(meter.times_s) > 1
    ]


def _of_domain(meter: MeterSamples, domain: str, places: Sequence[int]) -> PowerSeries:
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
    return PowerSeries((domain, meter.info.name, meter.info.kind), _at(meter.times_s, kept), watts)


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
        return _at(column, kept)
    watts = [math.nan]
    for before, after in pairwise(kept):
        joules = column[after] - column[before]
        if joules < 0:  # the counter began again, or was set back, which nobody can undo
            joules = joules + channel.range_j if channel.range_j is not None else math.nan
        watts.append(joules / (times_s[after] - times_s[before]))
    return watts
