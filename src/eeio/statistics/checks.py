"""Checks of the inputs of statistics: finite numbers, and shares between 0 and 1."""

import math
from collections.abc import Sequence

from eeio.errors import EeioError


def finite(values: Sequence[float], what: str) -> list[float]:
    """The values as floats; EeioError names the first that is not a finite number."""
    numbers = list(map(float, values))
    # The sum of finite values is finite but for an overflow, which the loop below sorts out.
    if not math.isfinite(sum(numbers)):
        for index, value in enumerate(numbers):
            if not math.isfinite(value):
                raise EeioError(
                    f"value {index + 1} of {len(numbers)} of {what} is {value}; statistics take "
                    "finite numbers only: leave the repetition out and say so"
                )
    return numbers


def check_rule(indifference: float, floor: float) -> None:
    """Checks a test's equivalence margin, and its floor, below which it reports no direction."""
    if not 0 <= floor < indifference < 1:
        raise EeioError(
            f"floor {floor:g} and indifference {indifference:g}: give shares with "
            "0 <= floor < indifference < 1"
        )


def check_share(value: float, name: str) -> None:
    if not 0.0 < value < 1.0:
        raise EeioError(f"{name} must be between 0 and 1, not {value}")
