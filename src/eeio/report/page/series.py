"""Power and bandwidth over time, reduced to the resolution of a card of one repetition."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eeio.analysis.observation import Key
from eeio.analysis.over_time import PowerSeries, bandwidth_log

_LEAST_PAD_S, _PAD = 0.35, 0.12
"""The margin on both sides of the window: seconds, and a share of it."""
_EVEN_S = 0.004
"""Steps with ends this near to even ones are drawn as even: no pixel of a card is as short."""


def shown_span(start_s: float, end_s: float) -> tuple[float, float]:
    """The window, with its margins before and after."""
    pad = max(_LEAST_PAD_S, _PAD * (end_s - start_s))
    return start_s - pad, end_s + pad


def power_steps(
    found: Sequence[PowerSeries], origin_s: float, span: tuple[float, float], points: int
) -> list[Any] | None:
    """[times, watts] within a span, as `_times` gives them; times count from `origin_s`. At most
    about `points` steps: longer ones are means over time of those within, so that the area under
    them, which is the energy, stays. None without readings."""
    begin_s, end_s = origin_s + span[0], origin_s + span[1]
    ends: list[float] = []
    watts: list[float | None] = []
    for series in found:
        low = bisect_left(series.times_s, begin_s)
        high = min(len(series.times_s), bisect_right(series.times_s, end_s) + 1)
        if low >= high:
            continue
        group = max(1, -(-(high - low) // points))
        before = max(0, low - 1)
        ends.append(round(series.times_s[before] - origin_s, 3))
        watts.append(None)
        for first in range(low, high, group):
            last = min(first + group, high) - 1
            mean_w = series.mean_w(before, last)
            before = last
            ends.append(round(series.times_s[last] - origin_s, 3))
            watts.append(None if mean_w is None else round(mean_w, 1))
    if len(ends) > 1:
        return [_times(ends), watts]
    return None


def _times(ends: list[float]) -> dict[str, float] | list[float]:
    """The ends of steps, s; the first is where the first step begins. Where all but the last are as
    far apart: `from`, `step` and `to`, as most are and a page may hold 10 000 of them."""
    if len(ends) < 4:
        return ends
    step = (ends[-2] - ends[0]) / (len(ends) - 2)
    if any(abs(ends[0] + n * step - end) > _EVEN_S for n, end in enumerate(ends[:-1])):
        return ends
    return {"from": ends[0], "step": round(step, 5), "to": ends[-1]}


def bandwidth_steps(raw: Path, points: int) -> list[Any] | None:
    """[times, MB/s] as in `power_steps`, of `bandwidth_log`; None without one."""
    ordered = bandwidth_log(raw)
    if not ordered:
        return None
    group = -(-len(ordered) // points)
    ends = [0.0]
    result: list[float | None] = [None]
    for first in range(0, len(ordered), group):
        part = ordered[first : first + group]
        ends.append(round(part[-1][0], 3))
        result.append(round(sum(value for _, value in part) / len(part), 1))
    return [_times(ends), result]


def by_key(found: Sequence[PowerSeries]) -> Mapping[Key, list[PowerSeries]]:
    keyed: dict[Key, list[PowerSeries]] = {}
    for series in found:
        keyed.setdefault(series.key, []).append(series)
    return keyed
