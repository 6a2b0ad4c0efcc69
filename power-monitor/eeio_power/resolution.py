"""The step of the values of a power log, which says how its meter or logger rounds."""

import itertools
import math
from collections.abc import Sequence

_FINEST = 1e-6
"""W."""
_MOST_SHARE = 0.25
"""Of the largest value: values that are multiples of a larger step are so by chance."""
_LEAST_VALUES = 3
_EXACT = 1e-6
"""Of a step: so near to a multiple a value is one."""
MOST_READINGS = 20_000


def written_step_w(values: Sequence[float]) -> float:
    """The step of which all values (W) are multiples: 1 for 5 and 8, 10 for 150 and 160, 4 for
    148, 152 and 160. 0 without values, or if they have more digits than a microwatt."""
    distinct = sorted({value for value in values[-MOST_READINGS:] if value == value})
    if not distinct:
        return 0.0
    largest_w = max(map(abs, distinct))
    step_w = _FINEST
    if not _are_multiples(distinct, step_w):
        return 0.0
    while _are_multiples(distinct, 10.0 * step_w) and _may_be(10.0 * step_w, distinct, largest_w):
        step_w *= 10.0
    gaps_w = [after - before for before, after in itertools.pairwise(distinct)]
    if len(distinct) >= _LEAST_VALUES and min(gaps_w) <= _MOST_SHARE * largest_w:
        differences = [value - distinct[0] for value in distinct]
        if _are_multiples(differences, min(gaps_w)):
            return max(step_w, min(gaps_w))
    return step_w


def _may_be(step_w: float, distinct: Sequence[float], largest_w: float) -> bool:
    """Steps up to 1 W are those of the digits that are written."""
    return step_w <= 1.0 or step_w <= _MOST_SHARE * largest_w


def _are_multiples(values: Sequence[float], step_w: float) -> bool:
    for value in values:
        count = value / step_w
        if not math.isclose(count, round(count), rel_tol=1e-9, abs_tol=_EXACT):
            return False
    return True
