"""Has it changed? One test with three answers: a direction, no difference above a size, or open.

On the logarithms of the values, so that differences are shares: Welch's t for a direction beyond a
floor, two one-sided tests for equivalence (Schuirmann 1987, "A comparison of the two one-sided
tests procedure ...", J. Pharmacokinet. Biopharm. 15(6)). "Not confirmed" is no answer: it is open,
with the repetitions that an answer would take.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from scipy.special import stdtr, stdtrit

from eeio.statistics.checks import check_rule, check_share, finite

Answer = Literal["higher", "lower", "none above", "open"]

INDIFFERENCE = 0.05
"""A difference below this share is none that matters."""
FLOOR = 0.01
"""No direction is reported for a smaller difference: meters and cut runs are less accurate."""
MOST_REPETITIONS = 1000


@dataclass(frozen=True)
class Rule:
    """`indifference` and `floor` are shares (0.05: 5 %); `alpha` is that of each answer."""

    indifference: float = INDIFFERENCE
    floor: float = FLOOR
    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_share(self.alpha, "alpha")
        check_rule(self.indifference, self.floor)


@dataclass(frozen=True)
class Change:
    """From the values `before` to those `after`.

    `ratio` is that of the geometric means and `interval` its 95 % interval by Student's t (None
    with fewer than two values of either). `p_direction` is that of a difference beyond the floor,
    `p_none` that of one below the indifference. `needed` is the repetitions of each side to decide
    an open question if means and spread stay; None: more than MOST_REPETITIONS, or unknown.
    """

    answer: Answer
    ratio: float | None
    interval: tuple[float, float] | None
    p_direction: float | None
    p_none: float | None
    n: tuple[int, int]
    needed: int | None = None
    reason: str | None = None

    @property
    def percent(self) -> float | None:
        if self.ratio is None:
            return None
        return 100.0 * (self.ratio - 1.0)

    @property
    def interval_percent(self) -> list[float] | None:
        if self.interval is None:
            return None
        return [100 * (edge - 1) for edge in self.interval]


def change(
    before: Sequence[float], after: Sequence[float], rule: Rule, doubt: float = 0.0
) -> Change:
    """The answer from these samples only. `doubt` is what the meters may be wrong in the difference
    of the logarithms; an answer exceeds it. Raises EeioError for values that are not finite."""
    first, second = finite(before, "the values before"), finite(after, "the values after")
    n = len(first), len(second)
    if not first or not second:
        return Change("open", None, None, None, None, n, reason="not measured")
    if min(*first, *second) <= 0:
        return Change(
            "open", None, None, None, None, n, reason="values that are not above 0 have no ratio"
        )
    logs = [list(map(math.log, sample)) for sample in (first, second)]
    difference = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    ratio = math.exp(difference)
    if min(n) < 2:
        return Change(
            "open", ratio, None, None, None, n, reason=f"n = {min(n)}: no spread is known"
        )
    spread = _variance(logs[0]), _variance(logs[1])
    error, degrees = welch(spread, n)
    half = float(stdtrit(degrees, 0.975)) * error
    found = Change(
        "open",
        ratio,
        (math.exp(difference - half), math.exp(difference + half)),
        _p_beyond(abs(difference), math.log1p(rule.floor) + doubt, error, degrees),
        _p_within(abs(difference), math.log1p(rule.indifference) - doubt, error, degrees),
        n,
    )
    needed = None if doubt > 0 else _needed(abs(difference), spread, max(n), rule)
    return answered(replace(found, needed=needed), found.p_direction, rule)


def _variance(values: Sequence[float]) -> float:
    """Of a sample. The standard library's computes in fractions, which takes 20 times as long."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def answered(found: Change, p_direction: float | None, rule: Rule) -> Change:
    """With the answer for `p_direction`, such as one that is adjusted over many questions.

    None above the equivalence margin precedes a direction: a small difference, even if certain,
    does not matter.
    """
    if found.ratio is None or p_direction is None or found.p_none is None:
        return found
    if found.p_none < rule.alpha:
        return replace(found, answer="none above", p_direction=p_direction)
    if p_direction < rule.alpha:
        way: Answer = "lower"
        if found.ratio > 1:
            way = "higher"
        return replace(found, answer=way, p_direction=p_direction)
    # A question that is open only due to the adjustment takes one repetition more, at least.
    needed = None
    if found.needed is not None:
        needed = max(found.needed, max(found.n) + 1)
    return replace(found, answer="open", p_direction=p_direction, needed=needed)


def welch(spread: tuple[float, float], n: tuple[int, int]) -> tuple[float, float]:
    """Standard error of the difference, and its degrees of freedom (Welch 1947)."""
    a, b = spread[0] / n[0], spread[1] / n[1]
    if a + b == 0.0:
        return 0.0, float(n[0] + n[1] - 2)
    return math.sqrt(a + b), (a + b) ** 2 / (a**2 / (n[0] - 1) + b**2 / (n[1] - 1))


def _p_beyond(size: float, floor: float, error: float, degrees: float) -> float:
    if error == 0.0:
        if size > floor:
            return 0.0
        return 1.0
    return min(1.0, 2.0 * float(stdtr(degrees, -(size - floor) / error)))


def _p_within(size: float, limit: float, error: float, degrees: float) -> float:
    if error == 0.0:
        if size < limit:
            return 0.0
        return 1.0
    return float(stdtr(degrees, -(limit - size) / error))


@lru_cache(maxsize=4096)
def _quantiles(degrees: int, alpha: float) -> tuple[float, float]:
    return float(stdtrit(degrees, 1 - alpha / 2)), float(stdtrit(degrees, 1 - alpha))


def _needed(size: float, spread: tuple[float, float], least: int, rule: Rule) -> int | None:
    """The least n of each side with which the same difference and spread give an answer."""
    if size == 0.0 and sum(spread) == 0.0:
        return least
    floor, limit = math.log1p(rule.floor), math.log1p(rule.indifference)

    def answers(n: int) -> bool:
        error = math.sqrt(sum(spread) / n)
        two_sided, one_sided = _quantiles(2 * (n - 1), rule.alpha)
        return size - floor > two_sided * error or limit - size > one_sided * error

    return least_repetitions(answers, max(least, 2))


def least_repetitions(is_enough: Callable[[int], bool], least: int = 2) -> int | None:
    """The least number from `least` on that is enough, if more are enough, too; None: more than
    MOST_REPETITIONS."""
    if not is_enough(MOST_REPETITIONS):
        return None
    low, high = least, MOST_REPETITIONS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
