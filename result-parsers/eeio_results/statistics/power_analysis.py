"""How many repetitions it takes to see a difference, and how well a spread is known."""

import math
from functools import lru_cache

from scipy.special import chdtri, stdtrit

from eeio_results.errors import EeioError
from eeio_results.statistics.decision import MOST_REPETITIONS, Rule

POWER = 0.8
"""The share of campaigns that see it."""


@lru_cache(maxsize=4096)
def _sum_of_quantiles(degrees: int, alpha: float, power: float) -> float:
    return float(stdtrit(degrees, 1 - alpha / 2) + stdtrit(degrees, power))


def repetitions_to_detect(
    share: float, spread: tuple[float, float], rule: Rule, power: float = POWER
) -> int | None:
    """The least repetitions of each side with which a true difference of `share` (0.05: 5 %) is
    told its direction in the share `power` of campaigns.

    `spread` are the variances of the logarithms of the two sides. The difference beyond the floor
    is to be (t(1-alpha/2) + t(power)) standard errors, with 2 (n - 1) degrees of freedom: the usual
    approximation of the noncentral t (Chow, Shao, Wang 2008, "Sample Size Calculations in Clinical
    Research", 3.2). None: more than MOST_REPETITIONS. Raises EeioError for a share that is not
    above the rule's floor.
    """
    beyond = math.log1p(share) - math.log1p(rule.floor)
    if not beyond > 0.0:
        raise EeioError(
            f"a difference of {share:g} is never told: no direction is below the floor of "
            f"{rule.floor:g}; ask for more, or give a smaller --floor"
        )

    def sees(n: int) -> bool:
        error = math.sqrt(sum(spread) / n)
        return beyond >= _sum_of_quantiles(2 * (n - 1), rule.alpha, power) * error

    if not sees(MOST_REPETITIONS):
        return None
    low, high = 2, MOST_REPETITIONS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if sees(middle) else (middle + 1, high)
    return low


def deviation_factor(n: int) -> float:
    """How many times as large as it is in a sample of `n` >= 2 normal values the standard deviation
    may be, by its one-sided 97.5 % limit (chi-square): 31.9 for two, 6.3 for three."""
    return math.sqrt((n - 1) / float(chdtri(n - 1, 0.975)))
