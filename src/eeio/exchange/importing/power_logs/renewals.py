"""Lines of a log that repeat a reading of a slower meter (`eeio_power.renewals`) count once."""

from collections.abc import Sequence
from dataclasses import replace

from eeio.exchange.importing.power_logs.series import Series
from eeio_power.delay import MOST_S, Delay, later
from eeio_power.renewals import renewal_s
from eeio_power.samples import MeterSamples


def with_renewals(series: Series) -> tuple[Series, str | None]:
    """The readings without their repetitions, where these last longer than the mean that a reading
    is; and a note that says so."""
    if series.form != "sample":
        return series, None
    known = series.known_delay
    each_s = renewal_s(series.times_s, series.values, series.period_s, known.averages_s)
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
