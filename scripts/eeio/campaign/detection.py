"""A plan with the repetitions that an earlier campaign's spread asks for, and its time."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from eeio.campaign.plan import Plan
from eeio_results.campaign import Design, PlannedExperiment, PlannedRun


@dataclass(frozen=True)
class Repeated:
    """`repetitions` by experiment id, what the protocol says at least; `unknown` are experiments
    that the earlier campaign tells nothing of; `expected_s` is the time of all."""

    repetitions: Mapping[str, int]
    unknown: tuple[str, ...]
    expected_s: float


def repeated(plan: Plan, earlier: Design, asked: Mapping[str, int]) -> Repeated:
    """`asked` are repetitions by the ids of the earlier campaign, whose pilots may have given the
    same experiments another work or time, or which has no words of its own for them."""
    known_as = _by(_what, earlier), _by(_measures, earlier)
    repetitions, unknown = {}, []
    for planned in plan.experiments:
        id = known_as[0].get(_what(planned)) or known_as[1].get(_measures(planned), "")
        known = asked.get(id)
        repetitions[planned.experiment.id] = max(plan.protocol.repetitions, known or 0)
        if known is None and planned.experiment.level != "context":
            unknown.append(planned.description)
    runs = [
        (planned, number + 1)
        for planned in plan.experiments
        for number in range(repetitions[planned.experiment.id])
    ]
    whole = tuple(PlannedRun(k, planned, n, 1) for k, (planned, n) in enumerate(runs))
    return Repeated(repetitions, tuple(unknown), replace(plan, runs=whole).expected_s)


def _by(key: Callable[[PlannedExperiment], object], design: Design) -> dict[object, str]:
    """Ids of the experiments that no other has the key of."""
    count = Counter(map(key, design.experiments))
    return {key(p): p.experiment.id for p in design.experiments if count[key(p)] == 1}


def _measures(planned: PlannedExperiment) -> object:
    """What is measured, with whatever work."""
    return (
        replace(planned.experiment, arguments=(), target="", flush=None),
        planned.variant, planned.frequency_hz, planned.smt, planned.turbo,
    )  # fmt: skip


def _what(planned: PlannedExperiment) -> object:
    """What no pilot changes."""
    return (
        planned.profile, planned.description, planned.volume, planned.variant,
        planned.frequency_hz, planned.smt, planned.turbo,
    )  # fmt: skip
