"""How many repetitions it takes to see a difference, by the spread of a campaign that was run, and
how well a spread is known."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import chdtri, stdtrit

from eeio.comparison.drift import compared_cells
from eeio.comparison.precision import log_variance
from eeio.comparison.questions import Question, against_itself, questions
from eeio.errors import EeioError
from eeio.record.store import Campaign
from eeio.statistics.decision import Rule, least_repetitions

POWER = 0.9
"""The share of campaigns that see it."""


@lru_cache(maxsize=4096)
def _sum_of_quantiles(degrees: int, alpha: float, power: float) -> float:
    return float(stdtrit(degrees, 1 - alpha / 2) + stdtrit(degrees, power))


def repetitions_to_detect(
    share: float, spread: tuple[float, float], rule: Rule, power: float = POWER
) -> int | None:
    """The least repetitions of each side with which a true difference of `share` (0.05: 5 %) is
    reported with its direction in the share `power` of campaigns.

    `spread` are the variances of the logarithms of the two sides. The difference beyond the floor
    is to be (t(1-alpha/2) + t(power)) standard errors, with 2 (n - 1) degrees of freedom: the usual
    approximation of the noncentral t (Chow, Shao, Wang 2008, "Sample Size Calculations in Clinical
    Research", 3.2). None: more than MOST_REPETITIONS. Raises EeioError for a share that is not
    above the rule's floor.
    """
    beyond = math.log1p(share) - math.log1p(rule.floor)
    if not beyond > 0.0:
        raise EeioError(
            f"a difference of {share:g} is below the minimum effect of {rule.floor:g} and never "
            "reported; request a larger one, or a smaller --floor"
        )

    def sees(n: int) -> bool:
        error = math.sqrt(sum(spread) / n)
        return beyond >= _sum_of_quantiles(2 * (n - 1), rule.alpha, power) * error

    return least_repetitions(sees)


def deviation_factor(n: int) -> float:
    """How many times as large as it is in a sample of `n` >= 2 normal values the standard deviation
    may be, by its one-sided 97.5 % limit (chi-square): 31.9 for two, 6.3 for three."""
    return math.sqrt((n - 1) / float(chdtri(n - 1, 0.975)))


@dataclass(frozen=True)
class Needed:
    """Repetitions of each side for a question; None: more than anybody would run."""

    question: Question
    repetitions: int | None


def needed(earlier: Campaign, share: float, within: Rule) -> list[Needed]:
    """Of each question whose two experiments have a spread, by the rule `within` a campaign, and of
    each experiment without such a question against itself in a later campaign, by the rule of
    `eeio compare`; those that take most first. Raises EeioError for a share that the floor of a
    rule hides."""
    cells, between = compared_cells(earlier), Rule()
    pairs = [pair for pair in questions(cells, within) if pair.change.interval is not None]
    paired = {cell.experiment_id for pair in pairs for cell in (pair.before, pair.after)}
    alone = [cell for cell in cells if cell.experiment_id not in paired]
    needs = [_needed(pair, share, within) for pair in pairs]
    for cell in alone:
        later = against_itself(cell, between)
        for q in later:
            if q.change.interval is not None:
                needs.append(_needed(q, share, between))
    return sorted(needs, key=lambda need: need.repetitions or 10**9, reverse=True)


def _needed(question: Question, share: float, rule: Rule) -> Needed:
    return Needed(question, repetitions_to_detect(share, _spread(question), rule))


def hardest(found: Sequence[Needed]) -> Mapping[str, int]:
    """Experiment id -> repetitions for the hardest of its questions that can be answered."""
    of: dict[str, int] = {}
    for need in found:
        for cell in (need.question.before, need.question.after):
            if need.repetitions is not None:
                of[cell.experiment_id] = max(need.repetitions, of.get(cell.experiment_id, 0))
    return of


def _spread(question: Question) -> tuple[float, float]:
    """Variances of the logarithms."""
    sides = (question.before, question.after)
    before, after = (log_variance(cell.tested(question.metric)) for cell in sides)
    return before, after
