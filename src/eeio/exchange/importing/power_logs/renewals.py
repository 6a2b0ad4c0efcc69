"""How often the values of a log really change.

A logger may write a line each second while its meter measures every 15 s. Then a line repeats a
reading of up to 15 s before, whatever delay is stated for the meter.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from eeio.exchange.importing.power_logs.series import Series, times_unchanged_s
from eeio_power.delay import MOST_S, Delay, later
from eeio_power.samples import MeterSamples

_MOST_CHANCE = 1e-6
"""A load whose power changes at random times is so unlikely to look like a slow logger."""
_OTHERS = 50
"""One change of so many may be off, as that after a line that came late."""
_LEAST_BLOCK = 1.5
"""Lines."""
_LEAST_STAYS = 12
"""So many steps of power are not all at the border of two lines."""
_EXACT = 0.05
"""Lines: so near to a number of lines a time is that number."""
_MOST_BLOCKS = 20
"""Of a time without a change: the length of one block is not known well enough for more."""
_BLOCKS_OF_MEAN = (1, 2, 4, 8)
"""The more blocks a time has, the better its length must be known before."""


def renewal_s(series: Series) -> float | None:
    """The longest time of which all times between two changes of the value are multiples, s. Where
    each line is a mean and no two lines in a row change, it is the shortest of these times. None if
    there is none, or if it may be chance."""
    rows = []
    for time_s, value in zip(series.times_s, series.values, strict=True):
        if not math.isnan(value):
            rows.append((time_s, value))
    stays = [stay_s / series.period_s for stay_s in times_unchanged_s(rows)]
    if not stays:
        return None
    shortest = stays[len(stays) // _OTHERS]
    is_mean_of_line = series.known_delay.averages_s >= 0.9 * series.period_s
    if is_mean_of_line and len(stays) >= _LEAST_STAYS and shortest >= _LEAST_BLOCK:
        # A step of power is in two means, unless it is at the border of two lines.
        return shortest * series.period_s
    for parts in range(1, math.floor(shortest / _LEAST_BLOCK) + 1):
        block = _block(stays, shortest / parts)
        if block is not None:
            return block * series.period_s
    return None


def _block(stays: Sequence[float], about: float) -> float | None:
    """The length of blocks of about that many lines of which the stays are multiples."""
    whole = round(about)
    if whole > 1 and _are_multiples(stays, whole, _EXACT, 1.0 / whole):
        return float(whole)
    mean = about
    for most_blocks in _BLOCKS_OF_MEAN:
        lines, blocks = 0.0, 0
        for stay in stays:
            count = round(stay / mean)
            if 0 < count <= most_blocks:
                lines, blocks = lines + stay, blocks + count
        if blocks == 0:
            return None
        mean = lines / blocks
    # The first line after a renewal comes up to one line later.
    if _are_multiples(stays, mean, 1.0, 2.0 / mean):
        return mean
    return None


def _are_multiples(
    stays: Sequence[float], block: float, within: float, share_by_chance: float
) -> bool:
    """Whether the stays are multiples of a block, and too many to be so by chance: one in
    `1 / share_by_chance` of all stays is."""
    known = [stay for stay in stays if stay < _MOST_BLOCKS * block]
    fitting = 0
    for stay in known:
        count = max(1, round(stay / block))
        fitting += abs(stay - count * block) <= within
    if len(known) - fitting > len(known) / _OTHERS:
        return False
    return share_by_chance < 1.0 and share_by_chance**fitting < _MOST_CHANCE


def with_renewals(series: Series) -> tuple[Series, str | None]:
    """The readings without their repetitions, where these last longer than the mean that a reading
    is; and a note that says so."""
    if series.form != "sample":
        return series, None
    each_s = renewal_s(series)
    known = series.known_delay
    # A mean of that time or longer shows all of the power.
    if each_s is None or each_s <= known.averages_s + known.averages_within_s:
        return series, None
    note = (
        f"{series.meter}: the values change each {each_s:g} s only, so a line may repeat a reading "
        f"of up to {each_s - series.period_s:g} s before: one line of each {each_s:g} s is used"
    )
    kept = _renewed(series, each_s)
    used = replace(
        series,
        times_s=[series.times_s[index] for index in kept],
        values=[series.values[index] for index in kept],
    )
    if series.scraped_s:  # the delay contains the repetitions
        return used, note
    # The first line with a reading may come up to one line after it.
    late_s = min(series.period_s, MOST_S)
    source = f"{known.source}; its values change each {each_s:g} s"
    used = replace(used, delay=_later(known, late_s, source), scraped_s=late_s)
    if series.recorded is None:
        return used, note
    recorded = series.recorded
    channels = []
    for channel in recorded.info.channels:
        delay = _later(channel.delay or known, late_s, source)
        channels.append(replace(channel, delay=delay))
    info = replace(recorded.info, native_period_s=each_s, period_s=each_s, channels=tuple(channels))
    columns = []
    for column in recorded.values:
        columns.append([column[index] for index in kept])
    times_s = [recorded.times_s[index] for index in kept]
    return replace(used, recorded=MeterSamples(info, times_s, tuple(columns))), note


def _renewed(series: Series, each_s: float) -> list[int]:
    """The lines that begin a block: those with another value, and one each `each_s` after them."""
    kept = [0]
    for index, value in enumerate(series.values):
        last = kept[-1]
        is_next = series.times_s[index] - series.times_s[last] >= each_s - series.period_s / 2.0
        if is_next or (value != series.values[last] and value == value):
            kept.append(index)
    return kept


def _later(delay: Delay, late_s: float, source: str) -> Delay:
    return replace(later(delay, late_s), source=source)


def all_with_renewals(every: Sequence[Series], notes: list[str]) -> list[Series]:
    """Each series without repetitions of its readings; what that changed is added to `notes`."""
    checked = []
    for series in every:
        series, note = with_renewals(series)
        checked.append(series)
        if note is not None:
            notes.append(note)
    return checked
