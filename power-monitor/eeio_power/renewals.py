"""How often the values of a meter or log really change.

A logger may write a line each second while its meter measures every 15 s. Then a line repeats a
reading of up to 15 s before, whatever delay is stated for the meter.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from operator import sub

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


def times_unchanged_s(rows: Sequence[tuple[float, float]]) -> list[float]:
    """The times between two changes of the value, sorted."""
    changes_s = [time_s for (_, before), (time_s, value) in pairwise(rows) if value != before]
    return sorted(map(sub, changes_s[1:], changes_s))


def renewal_s(
    times_s: Sequence[float], values: Sequence[float], period_s: float, averages_s: float
) -> float | None:
    """The longest time of which all times between two changes of the value are multiples, s. Where
    each line is a mean (of `averages_s`) and no two lines in a row change, it is the shortest of
    these times. None if there is none, or if it may be chance."""
    rows = []
    for time_s, value in zip(times_s, values, strict=True):
        if not math.isnan(value):
            rows.append((time_s, value))
    stays = [stay_s / period_s for stay_s in times_unchanged_s(rows)]
    if not stays:
        return None
    shortest = stays[len(stays) // _OTHERS]
    is_mean_of_line = averages_s >= 0.9 * period_s
    if is_mean_of_line and len(stays) >= _LEAST_STAYS and shortest >= _LEAST_BLOCK:
        # A step of power is in two means, unless it is at the border of two lines.
        return shortest * period_s
    for parts in range(1, math.floor(shortest / _LEAST_BLOCK) + 1):
        block = _block(stays, shortest / parts)
        if block is not None:
            return block * period_s
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
