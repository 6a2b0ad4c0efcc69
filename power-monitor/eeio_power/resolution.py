"""The step of the values of a power log, which says how its meter or logger rounds."""

import math
from collections.abc import Sequence
from itertools import pairwise

_LEAST_VALUES = 3
"""Different ones: so many are no multiples of a step by chance."""
_LEAST_WITH_DECIMALS = 5
"""... of larger steps than their digits behind the point."""
_EXACT = 1e-6
"""Of a step: so near to a multiple a value is one."""
MOST_READINGS = 20_000
CUT_OFF_STEPS = 2.0
"""The resolution of a log of an unknown logger, in steps. It may cut digits off, so that a value is
up to a step too small; half a resolution is the uncertainty of a value."""


def written_step_w(values: Sequence[float], digit: float | None = None) -> float:
    """The step of which all values (W) are multiples: 1 for 5 and 8, 10 for 150 and 160, 4 for
    148, 152 and 160. 0 without values, or if they have more digits than a microwatt. `digit` is the
    place of the last digit that was written; by default the values show it."""
    distinct = sorted({value for value in values[-MOST_READINGS:] if value == value})
    if not distinct:
        return 0.0
    step = digit or _digit_of(distinct)
    least = 2
    if step < 1.0:  # digits behind the point are written
        least = _LEAST_WITH_DECIMALS
    if len(distinct) < least:
        return step
    while 0.0 < step < max(map(abs, distinct)) and _are_multiples(distinct, 10.0 * step):
        step *= 10.0
    gap = min((after - before for before, after in pairwise(distinct)), default=0.0)
    if len(distinct) >= _LEAST_VALUES and gap > step and _are_multiples(distinct, gap):
        return gap
    return step


def remark_on_step(values: Sequence[float]) -> str | None:
    """That the values do not show the step, as there are too few different ones."""
    distinct = {value for value in values[-MOST_READINGS:] if value == value}
    if len(distinct) >= _LEAST_VALUES:
        return None
    return (
        "the log has only one or two different values, which do not show how its meter rounds: "
        "state resolution= if in doubt"
    )


def _digit_of(values: Sequence[float]) -> float:
    """1, 0.1 ... that all values are multiples of; 0 if there is none."""
    for decimals in range(7):
        if _are_multiples(values, 10.0**-decimals):
            return float(10.0**-decimals)
    return 0.0


def product_step_w(factors: Sequence[Sequence[float]], digits: Sequence[float | None]) -> float:
    """The step of a product such as volts x amperes: the step of each factor times the largest
    value of the others. A factor that never changes is a nominal one, unless no other changes."""
    changing = [values for values in factors if len({v for v in values if v == v}) > 1]
    total_w = 0.0
    for index, (values, digit) in enumerate(zip(factors, digits, strict=True)):
        if values in changing or not changing:
            others = [*factors[:index], *factors[index + 1 :]]
            total_w += written_step_w(values, digit) * math.prod(map(_largest, others))
    return total_w


def _largest(values: Sequence[float]) -> float:
    return max((abs(value) for value in values if value == value), default=0.0)


def _are_multiples(values: Sequence[float], step: float) -> bool:
    for value in values:
        count = value / step
        if not math.isfinite(count):
            return False
        if not math.isclose(count, round(count), rel_tol=1e-9, abs_tol=_EXACT):
            return False
    return True
