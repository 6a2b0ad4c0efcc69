"""A plan with the repetitions that an earlier campaign's spread asks for, and its time."""

from collections.abc import Mapping
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
    same experiments another work or time."""
    ids = {_what(planned): planned.experiment.id for planned in earlier.experiments}
    repetitions, unknown = {}, []
    for planned in plan.experiments:
        known = asked.get(ids.get(_what(planned), ""))
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


def _what(planned: PlannedExperiment) -> tuple[str, str, str, str | None, int | None]:
    """What no pilot changes."""
    return (
        planned.profile, planned.description, planned.volume, planned.variant,
        planned.frequency_hz,
    )  # fmt: skip
