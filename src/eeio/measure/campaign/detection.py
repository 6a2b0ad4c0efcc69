"""The repetitions and hours to detect a difference, by the spread of an earlier campaign."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eeio import paths
from eeio.errors import EeioError, RejectedError
from eeio.measure.campaign import safety
from eeio.measure.campaign.planned_campaign import Plan
from eeio.measure.campaign.progress import duration_text
from eeio.record.design import Design, PlannedExperiment, PlannedRun
from eeio.record.store import Campaign, load, read_design
from eeio.units.external_text import shown

if TYPE_CHECKING:
    from eeio.comparison.detection import Needed
    from eeio.comparison.gate_plan import GatePlan

_LINES = 12


@dataclass(frozen=True)
class Repeated:
    """`repetitions` by experiment id, at least the protocol's; `unknown` are experiments without
    data in the earlier campaign; `expected_s` is the time of all, and `equal_s` that with the
    largest number for each."""

    repetitions: Mapping[str, int]
    unknown: tuple[str, ...]
    expected_s: float
    equal_s: float


def repeated(plan: Plan, earlier: Design, requested: Mapping[str, int]) -> Repeated:
    """`requested` are repetitions by the ids of the earlier campaign. Its pilots may have set
    another work or time for the same experiments, or it may lack labels for them."""
    known_as = _by(_what, earlier), _by(_measures, earlier)
    repetitions, unknown = {}, []
    for planned in plan.experiments:
        id = known_as[0].get(_what(planned)) or known_as[1].get(_measures(planned), "")
        known = requested.get(id)
        repetitions[planned.experiment.id] = max(plan.protocol.repetitions, known or 0)
        if known is None and planned.experiment.level != "context":
            unknown.append(planned.description)
    most = dict.fromkeys(repetitions, max(repetitions.values()))
    times_s = (_expected_s(plan, counts) for counts in (repetitions, most))
    return Repeated(repetitions, tuple(unknown), *times_s)


def _expected_s(plan: Plan, repetitions: Mapping[str, int]) -> float:
    runs = [
        (planned, number + 1)
        for planned in plan.experiments
        for number in range(repetitions[planned.experiment.id])
    ]
    complete = tuple(PlannedRun(k, planned, n, 1) for k, (planned, n) in enumerate(runs))
    return replace(plan, runs=complete).expected_s


def _by(key: Callable[[PlannedExperiment], object], design: Design) -> dict[object, str]:
    """Ids of the experiments that no other has the key of."""
    count = Counter(map(key, design.experiments))
    return {key(p): p.experiment.id for p in design.experiments if count[key(p)] == 1}


def _measures(planned: PlannedExperiment) -> object:
    """The measured configuration, with any work."""
    return (
        replace(planned.experiment, arguments=(), target="", flush=None),
        planned.variant,
        planned.frequency_hz,
        planned.smt,
        planned.turbo,
    )


def _what(planned: PlannedExperiment) -> object:
    """The parameters that pilots do not change."""
    return (
        planned.profile,
        planned.description,
        planned.volume,
        planned.variant,
        planned.frequency_hz,
        planned.smt,
        planned.turbo,
    )


@dataclass(frozen=True)
class Detection:
    """The effort to detect a difference of `share`, by the campaign `earlier`."""

    share: float
    earlier: str
    needed: "tuple[Needed, ...]"
    times: Repeated

    def to_json(self) -> dict[str, Any]:
        """`detect` of `eeio plan --detect --format json`."""
        questions = [
            {
                "experiment": needed.question.label,
                "metric": needed.question.metric,
                "repetitions": needed.repetitions,
            }
            for needed in self.needed
        ]
        return {
            "detect": {
                "share": self.share,
                "earlier": self.earlier,
                "expected_s": self.times.expected_s,
                "repetitions": dict(self.times.repetitions),
                "questions": questions,
                "unknown": list(self.times.unknown),
            }
        }

    def lines(self) -> list[str]:
        """A line a question, those that take most first."""
        counts = sorted(set(self.times.repetitions.values()))
        least = ""
        if counts[0] < counts[-1]:
            least = f"{counts[0]} to "
        lines = [
            f"to see {self.share:.1%} in 9 of 10 campaigns, by the spread of {self.earlier}: "
            f"{least}{counts[-1]} repetitions, about {duration_text(self.times.expected_s)} (all "
            f"with {counts[-1]}: about {duration_text(self.times.equal_s)}); each pair that "
            "differs in one factor, and each experiment without one in two campaigns:"
        ]
        if unseen := sum(not need.repetitions for need in self.needed):
            lines.append(f"  {unseen} of {len(self.needed)} need more than 1000: not included")
        for need in self.needed[:_LINES]:
            many = "more than 1000"
            if need.repetitions:
                many = f"{need.repetitions} repetitions"
            lines.append(f"  {shown(need.question.label)}: {need.question.metric}: {many}")
        if len(self.needed) > _LINES:
            lines.append(
                f"  and {len(self.needed) - _LINES} that take fewer (--format json has all)"
            )
        if unknown := self.times.unknown:
            first = shown("; ".join(unknown[:2]))
            more = len(unknown) - 2
            rest = ""
            if more > 0:
                rest = f"; and {more} more (--format json has all)"
            lines.append(f"  spread unknown for {len(unknown)} experiments: {first}{rest}")
        return lines


def detection(plan: Plan, earlier: Campaign, share: float) -> Detection:
    """Raises RejectedError if the earlier campaign shows no spread."""
    from eeio.comparison.detection import hardest, needed
    from eeio.statistics.decision import Rule

    adaptive = plan.protocol.adaptive
    within = Rule()
    if adaptive is not None:
        within = Rule(adaptive.indifference, adaptive.floor)
    try:
        found = needed(earlier, share, within)
    except EeioError as error:
        raise RejectedError(f"--detect: {error}") from error
    times = repeated(plan, earlier.design, hardest(found))
    if not found:
        raise RejectedError(
            f"--detect: {earlier.name} has no two valid repetitions of any experiment, so the "
            "spread is unknown. Run more repetitions first"
        )
    return Detection(share, earlier.name, tuple(found), times)


@dataclass(frozen=True)
class GateDetection:
    """The effort with which the gate of `eeio compare` finds a change, by the campaign `earlier`;
    `seconds` is the time of one campaign with these repetitions."""

    plan: "GatePlan"
    earlier: str
    seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """`gate` of `eeio plan --detect --fail-if --format json`."""
        return {
            "gate": {
                "repetitions": self.plan.repetitions,
                "detect": self.plan.detect,
                "share": self.plan.share,
                "metric": self.plan.metric,
                "experiments": self.plan.experiments,
                "seconds": self.seconds,
                "without_answer": [
                    {"experiment": unanswered.experiment, "reason": unanswered.reason}
                    for unanswered in self.plan.without_answer
                ],
                "earlier": self.earlier,
            }
        }

    def lines(self) -> list[str]:
        """The answer first, then its error rates, then experiments without an answer."""
        gate = f"worse:{100 * self.plan.share:g}%:{self.plan.metric}"
        detect = f"{100 * self.plan.detect:g} %"
        without = self.plan.without_answer
        answered = self.plan.experiments - len(without)
        if self.plan.repetitions is None or self.seconds is None:
            lines = [f"no number of repetitions finds {detect} with --fail-if {gate}"]
        else:
            lines = [
                f"--repetitions {self.plan.repetitions}, about {duration_text(self.seconds)} a "
                f"campaign: --fail-if {gate} then finds one experiment that is {detect} worse in 9 "
                "of 10 comparisons",
                f"  by the spread of {shown(self.earlier)}, for each of {answered} of "
                f"{self.plan.experiments} experiments; a comparison in which no experiment is more "
                f"than {100 * self.plan.share:g} % worse fails in at most 5 of 100",
            ]
        lines += [
            f"  no answer: {shown(unanswered.experiment)}: {unanswered.reason}"
            for unanswered in without[:_LINES]
        ]
        if len(without) > _LINES:
            lines.append(f"  and {len(without) - _LINES} more (--format json has all)")
        return lines


def gate_detection(
    plan: Plan, earlier: Campaign, share: float, metric: str | None, detect: float
) -> GateDetection:
    """Raises RejectedError for a gate that no result could decide, and where the earlier campaign
    does not have the metric."""
    from eeio.comparison.cells import cells_of
    from eeio.comparison.gate import Side
    from eeio.comparison.gate_plan import gate_plan

    side = Side(earlier.name, cells_of(earlier), [earlier])
    try:
        planned = gate_plan(side, share, metric, detect)
    except EeioError as error:
        raise RejectedError(str(error)) from error
    seconds = None
    if planned.repetitions is not None:
        repetitions = {each.experiment.id: planned.repetitions for each in plan.experiments}
        seconds = _expected_s(plan, repetitions)
    return GateDetection(planned, earlier.name, seconds)


def newest(plan: Plan, suite: str) -> Campaign:
    """The newest campaign of the suite on the disk of the plan; RejectedError if there is none."""
    disks = safety.disks(plan.options)
    folders = [folder / "campaign.json" for folder in paths.campaigns().values()]
    there = [file for file in folders if file.is_file()]
    for file in sorted(there, key=lambda f: f.stat().st_mtime, reverse=True):
        try:
            design = read_design(file.parent)
            if Path(design.suite).name == suite and design.disks == disks:
                return load(file.parent)
        except EeioError:
            continue  # damaged, which `eeio report` reports
    raise RejectedError(
        f"--detect: no campaign of {suite} on this disk shows the scatter of its "
        "experiments; run one (--preset quick gives a rough value), or name one with --from"
    )
