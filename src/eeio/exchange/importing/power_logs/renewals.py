"""How often the values of a log really change.

A logger may write a line each second while its meter measures every 15 s. Then a line repeats a
reading of up to 15 s before, whatever delay is stated for the meter.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from eeio.exchange.importing.power_logs.series import Series, times_unchanged_s
from eeio_power.delay import MOST_S, Delay, later

_LEAST_BLOCKS = 8
"""Fewer blocks of equal values may be equal by chance."""
_LEAST_LINES_OF_BLOCK = 2.0
_LEAST_DISTINCT_SHARE = 0.5
"""Of the blocks: with fewer values, the load is constant and the meter has a coarse resolution."""
_MOST_CHANCE_SHARE = 0.1
"""Of the blocks: so many may be shorter or longer than usual by more than one line."""


def renewal_s(series: Series) -> float | None:
    """The even time between two changes of the value, s; None if it changes with most lines, at
    uneven times, or between a few values only, as that of a constant load does."""
    rows = list(zip(series.times_s, series.values, strict=True))
    stays_s = times_unchanged_s(rows)
    if len(stays_s) < _LEAST_BLOCKS:
        return None
    usual_s = statistics.median(stays_s)
    if usual_s < _LEAST_LINES_OF_BLOCK * series.period_s:
        return None
    uneven = [stay_s for stay_s in stays_s if abs(stay_s - usual_s) > 1.5 * series.period_s]
    if len(uneven) > _MOST_CHANCE_SHARE * len(stays_s):
        return None
    if len(set(series.values)) < _LEAST_DISTINCT_SHARE * len(stays_s):
        return None
    return usual_s


def with_renewals(series: Series) -> tuple[Series, str | None]:
    """The series with the delay that its repeated values show, where that is longer than the known
    delay; and a note that says so."""
    if series.form == "counter":
        return series, None
    each_s = renewal_s(series)
    if each_s is None:
        return series, None
    held_s = min(each_s - series.period_s, MOST_S)
    if held_s <= series.known_delay.longest_s:
        return series, None
    source = f"{series.known_delay.source}; its values change each {each_s:g} s"
    delay = _held(series.known_delay, held_s, source)
    note = (
        f"{series.meter}: the values change each {each_s:g} s only, so a line may repeat a reading "
        f"of up to {held_s:g} s before: the uncertainty contains this"
    )
    if series.recorded is None:
        return replace(series, delay=delay, scraped_s=held_s), note
    info = series.recorded.info
    channels = tuple(
        replace(channel, delay=_held(channel.delay or series.known_delay, held_s, source))
        for channel in info.channels
    )
    recorded = replace(series.recorded, info=replace(info, channels=channels))
    return replace(series, delay=delay, scraped_s=held_s, recorded=recorded), note


def _held(delay: Delay, held_s: float, source: str) -> Delay:
    return replace(later(delay, held_s), source=source)


def all_with_renewals(every: Sequence[Series], notes: list[str]) -> list[Series]:
    """Each series with the delay that its values show; what that changed is added to `notes`."""
    checked = []
    for series in every:
        series, note = with_renewals(series)
        checked.append(series)
        if note is not None:
            notes.append(note)
    return checked
