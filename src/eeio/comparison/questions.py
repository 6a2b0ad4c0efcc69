"""A campaign's questions about its experiments: each two that differ in one factor, in each figure.

One test at the end with three answers (statistics/decision.py), on values without the effects of
their rounds. Each has its level: of the pairs that do not differ, at most alpha are reported with a
direction; of those that differ by more than the equivalence margin, at most alpha are reported as
not different.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eeio.comparison.cells import Cell
from eeio.comparison.pairing import Index
from eeio.comparison.precision import KNOWN_BY
from eeio.statistics.decision import Answer, Change, Rule, change

FACTORS = ("buffer", "disk", "size", "spatiality", "operation")
"""In which experiments of one campaign differ."""


@dataclass(frozen=True)
class Question:
    """Does the `metric` differ from `before` to `after`, which differ only in the `factor`?"""

    metric: str
    factor: str
    before: Cell
    after: Cell
    change: Change

    @property
    def is_open(self) -> bool:
        return self.change.answer == "open"

    @property
    def label(self) -> str:
        """The pair as text."""
        place = ("machine", "device", "type", self.factor)
        if self.before is self.after:
            return f"{self.before.label(without=place)}: against itself later"
        levels = (cell.factors[self.factor] for cell in (self.before, self.after))
        return f"{self.before.label(without=place)}: {self.factor} {' against '.join(levels)}"


def questions(cells: Sequence[Cell], rule: Rule) -> list[Question]:
    """Of the cells of one campaign (`drift.compared_cells`)."""
    index = Index(cells)
    return [
        Question(metric, factor, before, after, change(values[0], values[1], rule))
        for factor in FACTORS
        for levels in combinations(index.levels(factor), 2)
        for before, after in index.pairs(factor, *levels)
        for metric in KNOWN_BY
        if all(values := (before.tested(metric), after.tested(metric)))
    ]


def against_itself(cell: Cell, rule: Rule) -> list[Question]:
    """In each figure, if a campaign after a change had the same values."""
    return [
        Question(metric, "campaign", cell, cell, change(values, values, rule))
        for metric in KNOWN_BY
        if (values := cell.tested(metric))
    ]


def counted(found: Sequence[Question]) -> dict[str, dict[Answer, int]]:
    """Metric -> how many have which answer."""
    counts: dict[str, dict[Answer, int]] = {}
    for question in found:
        of_metric = counts.setdefault(question.metric, {})
        of_metric[question.change.answer] = of_metric.get(question.change.answer, 0) + 1
    return counts


def repetitions_requested(found: Sequence[Question], most: int) -> Mapping[str, int]:
    """Experiment id -> the repetitions that its open questions take, of those that take no more
    than `most`."""
    requested: dict[str, int] = {}
    for question in found:
        needed = question.change.needed
        if question.is_open and needed is not None and needed <= most:
            for cell in (question.before, question.after):
                if needed > cell.n(question.metric):
                    requested[cell.experiment_id] = max(
                        needed, requested.get(cell.experiment_id, 0)
                    )
    return requested
