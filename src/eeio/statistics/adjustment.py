"""p-values adjusted for their number.

Implemented here: scipy adjusts only by Benjamini and Hochberg, and only from 1.11 on; statsmodels
would be a further dependency for these thirty lines. A test compares them with R's p.adjust.
"""

from collections.abc import Sequence
from typing import Literal

from eeio.errors import EeioError

Adjustment = Literal["none", "holm", "bonferroni", "benjamini-hochberg"]


def adjust(p_values: Sequence[float], adjustment: Adjustment) -> tuple[float, ...]:
    """p-values adjusted for their number, in the order given, as R's p.adjust.

    Holm and Bonferroni bound the chance of any false difference, Benjamini-Hochberg the expected
    share of false ones. Raises EeioError for a p outside 0 to 1.
    """
    check_adjustment(adjustment)
    for index, p in enumerate(p_values):
        if not 0.0 <= p <= 1.0:
            raise EeioError(f"p-value {index + 1} is {p}; it must be between 0 and 1")
    m = len(p_values)
    if adjustment == "none":
        return tuple(p_values)
    if adjustment == "bonferroni":
        return tuple(min(1.0, m * p) for p in p_values)
    adjusted = [0.0] * m
    order = sorted(range(m), key=p_values.__getitem__)
    bound = 1.0
    if adjustment == "holm":
        bound = 0.0
    if adjustment == "holm":
        for rank, index in enumerate(order):
            bound = max(bound, min(1.0, (m - rank) * p_values[index]))
            adjusted[index] = bound
    else:
        for rank, index in reversed(list(enumerate(order, start=1))):
            bound = min(bound, m / rank * p_values[index])
            adjusted[index] = bound
    return tuple(adjusted)


def check_adjustment(adjustment: str) -> None:
    if adjustment not in ("none", "holm", "bonferroni", "benjamini-hochberg"):
        raise EeioError(
            f"adjustment {adjustment!r}: choose none, holm, bonferroni or benjamini-hochberg"
        )
