"""Limits of error of a window: what its edges and its unseen time may hide, J."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from eeio_power.stretches import Stretches


def edge_error_j(stretches: Stretches, edge_s: float, native_period_s: float) -> float:
    """Limit of the error of cutting a stretch at `edge_s`, J."""
    cut = min(bisect_left(stretches.ends_s, edge_s), len(stretches.ends_s) - 1)
    near_w = max(abs(power_w) for power_w in stretches.powers_w[max(0, cut - 1) : cut + 2])
    if cut in stretches.inner:
        unsure_s = min(edge_s - stretches.starts_s[cut], stretches.ends_s[cut] - edge_s)
    else:
        unsure_s = stretches.length_s(cut)
    return near_w * max(native_period_s / 2.0, unsure_s)


def readings_near_w(
    times_s: Sequence[float], values: Sequence[float], start_s: float, end_s: float
) -> list[float]:
    """The power readings from one window length before the window to one after it, W."""
    length_s = end_s - start_s
    low, high = bisect_left(times_s, start_s - length_s), bisect_right(times_s, end_s + length_s)
    return [value for value in values[low:high] if not math.isnan(value)]


def gaps_error_j(
    stretches: Stretches,
    touching: range,
    late: Sequence[int],
    spread_w: float,
    native_period_s: float,
    start_s: float,
    end_s: float,
) -> float:
    """Limit of the error of holding power over time that no reading averages, J."""
    # The reading at the end averages one native period: the rest of the stretch is unseen. Before
    # the first or after the last reading, the edge's error holds it.
    unseen = [
        (k, unseen_s)
        for k in range(max(touching.start, stretches.inner.start),
                       min(touching.stop, stretches.inner.stop))
        if (unseen_s := stretches.ends_s[k] - native_period_s - stretches.starts_s[k]) > 0.0
    ]  # fmt: skip
    is_late = set(late)
    lost_j = slow_j2 = 0.0
    for k, _ in unseen:
        inside_s = stretches.inside_s(k, start_s, min(end_s, stretches.ends_s[k] - native_period_s))
        if k in is_late:
            lost_j += spread_w * inside_s
        else:
            moved_w = stretches.powers_w[k] - stretches.last_powers_w[k]
            slow_j2 += (moved_w * inside_s) ** 2
    return math.sqrt(lost_j**2 + slow_j2)
