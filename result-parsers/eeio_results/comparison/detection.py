"""How many repetitions it takes to see a difference, by the spread of a campaign that was run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio_results.comparison.drift import compared_cells
from eeio_results.comparison.precision import log_variance
from eeio_results.comparison.questions import Question, questions
from eeio_results.statistics.decision import Rule
from eeio_results.statistics.power_analysis import repetitions_to_detect
from eeio_results.store import Campaign


@dataclass(frozen=True)
class Needed:
    """Repetitions of each side for a question; None: more than anybody would run."""

    question: Question
    repetitions: int | None


def needed(earlier: Campaign, share: float, rule: Rule) -> list[Needed]:
    """Of each question whose two experiments have a spread; those that take most first. Raises
    EeioError for a share that the rule's floor hides."""
    found = [
        Needed(question, repetitions_to_detect(share, _spread(question), rule))
        for question in questions(compared_cells(earlier), rule)
        if question.change.interval is not None
    ]
    return sorted(found, key=lambda one: one.repetitions or 10**9, reverse=True)


def hardest(found: Sequence[Needed]) -> Mapping[str, int]:
    """Experiment id -> what the hardest of its questions takes, of those that can be answered."""
    of: dict[str, int] = {}
    for one in found:
        for cell in (one.question.before, one.question.after):
            if one.repetitions is not None:
                of[cell.experiment_id] = max(one.repetitions, of.get(cell.experiment_id, 0))
    return of


def _spread(question: Question) -> tuple[float, float]:
    """Variances of the logarithms."""
    sides = (question.before, question.after)
    before, after = (log_variance(cell.tested(question.metric)) for cell in sides)
    return before, after
