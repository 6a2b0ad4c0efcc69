"""Decisions of adaptive campaigns between their experiments, inconclusive results, and the cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from eeio.comparison.drift import compared_cells
from eeio.comparison.questions import FACTORS, Question, counted, questions
from eeio.record.design import AdaptiveProtocol, Design
from eeio.record.store import Campaign
from eeio.report.documents.changes import header_and_unit
from eeio.report.table_and_plot import Table
from eeio.statistics.decision import Rule
from eeio.units.number_text import number
from eeio.units.sizes import percent

_ALPHA = 0.05
# More rows than this are for JSON.
_OPEN_SHOWN = 10


@dataclass(frozen=True)
class Answers:
    """Of one campaign, by the rule that it ends with."""

    campaign: str
    rule: Rule
    questions: tuple[Question, ...]
    extensions: int


def rule_of(protocol: AdaptiveProtocol, extensions: int) -> Rule:
    """Of the test at the end. An extension looked at the answers before: as many looks share the
    level (Bonferroni)."""
    return Rule(protocol.indifference, protocol.floor, _ALPHA / (1 + extensions))


def answers(campaign: Campaign) -> Answers | None:
    """None for a campaign of a fixed number of repetitions."""
    design: Design = campaign.design
    if design.protocol.adaptive is None:
        return None
    rule = rule_of(design.protocol.adaptive, design.extensions)
    asked = questions(compared_cells(campaign), rule)
    return Answers(campaign.name, rule, tuple(asked), design.extensions)


def answers_table(found: Sequence[Answers]) -> Table | None:
    """A row per campaign and figure; None if there are no questions."""
    rows = []
    for question in found:
        for metric, counts in counted(question.questions).items():
            rows.append(
                (
                    question.campaign,
                    header_and_unit(metric)[0],
                    str(sum(counts.values())),
                    str(counts.get("higher", 0) + counts.get("lower", 0)),
                    str(counts.get("none above", 0)),
                    str(counts.get("open", 0)),
                )
            )
    if not rows:
        return None
    limits = {f"{percent(question.rule.indifference)} %" for question in found}
    return Table(
        title="Decided comparisons between experiments",
        header=(
            "Campaign",
            "Figure",
            "Pairs",
            "Differ",
            f"None above {', '.join(sorted(limits))}",
            "Open",
        ),
        rows=tuple(rows),
        numeric=frozenset((2, 3, 4, 5)),
        note="\n".join(line for question in found for line in _notes(question)),
    )


def _notes(one: Answers) -> list[str]:
    rule, alpha = one.rule, percent(one.rule.alpha)
    looks = ""
    if one.extensions:
        looks = f", the {1 + one.extensions} looks of a campaign that was extended sharing 5 %"
    lines = [
        f"{one.campaign}: all pairs of experiments that differ in one factor "
        f"({', '.join(FACTORS)}). At most {alpha} % of equal pairs are reported as different. "
        f"At most {alpha} % of pairs that differ by more than {percent(rule.indifference)} % "
        f"are reported as equal{looks}. Differences below {percent(rule.floor)} % get no "
        "direction"
    ]
    still_open = sorted(
        (q for q in one.questions if q.is_open), key=lambda q: q.change.needed or 10**9
    )
    for question in still_open[:_OPEN_SHOWN]:
        lines.append(f"open: {_open(question)}")
    if len(still_open) > _OPEN_SHOWN:
        lines.append(f"and {len(still_open) - _OPEN_SHOWN} more open ones, in JSON")
    if still_open:
        lines.append(
            f"`eeio resume --extend {one.campaign}` adds the repetitions that open ones need"
        )
    return lines


def _open(question: Question) -> str:
    change = question.change
    change_text = ""
    if change.percent is not None:
        change_text = f" {change.percent:+.1f} %"
    needed = (
        f"about {number(change.needed)} repetitions of each decide half of such cases"
        if change.needed
        else change.reason or "too scattered"
    )
    return f"{question.label}: {header_and_unit(question.metric)[0]}{change_text}; {needed}"


class QuestionBody(TypedDict):
    experiment: str
    metric: str
    factor: str
    before: str
    after: str
    answer: Literal["higher", "lower", "none above", "open"]
    change_percent: float | None
    """Of the geometric means, from before to after."""
    interval_percent: Sequence[float] | None
    """95 %."""
    n: Sequence[int]
    repetitions_needed: int | None
    """Of each, for an answer; null if there is one, or for more than 1000."""
    reason: str | None


class AdaptiveBody(TypedDict):
    campaign: str
    time_s: float
    """Of all runs, pauses and pilots."""
    fixed_s: float | None
    """Of the largest number of repetitions of each experiment, with the fixed pause; null if no run
    shows it."""
    alpha: float
    """Level of each answer."""
    indifference: float
    floor: float
    extensions: int
    questions: Sequence[QuestionBody]


def to_json(one: Answers, times: Mapping[str, float | None]) -> dict[str, Any]:
    """An object of the list `adaptive` of a report's JSON; `times` are those of `rounds.times`."""
    return {
        "campaign": one.campaign,
        **times,
        "alpha": one.rule.alpha,
        "indifference": one.rule.indifference,
        "floor": one.rule.floor,
        "extensions": one.extensions,
        "questions": [
            {
                "experiment": question.label,
                "metric": question.metric,
                "factor": question.factor,
                "before": question.before.factors[question.factor],
                "after": question.after.factors[question.factor],
                "answer": question.change.answer,
                "change_percent": question.change.percent,
                "interval_percent": question.change.interval_percent,
                "n": list(question.change.n),
                "repetitions_needed": question.change.needed if question.is_open else None,
                "reason": question.change.reason,
            }
            for question in one.questions
        ],
    }
