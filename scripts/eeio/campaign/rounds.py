"""Repeating until the mean is known: after the planned runs, one round at a time."""

from collections.abc import Iterable, Sequence

from eeio.campaign.plan import Plan
from eeio_results import studies
from eeio_results.campaign import PlannedExperiment
from eeio_results.record import Run
from eeio_results.statistics import stopping


def unsettled(plan: Plan, runs: Iterable[Run]) -> Sequence[PlannedExperiment]:
    """The experiments that need one more repetition; none for a fixed number of them.

    Runs that failed count towards the most repetitions, so that a broken experiment ends too; one
    that never gave a figure is not tried again.
    """
    study = plan.protocol.study
    if study is None or study.half_width is None:
        return ()
    asked = studies.of_campaign(study.name)
    by_id: dict[str, list[Run]] = {}
    for run in runs:
        by_id.setdefault(run.experiment.id, []).append(run)
    found = []
    for planned in plan.experiments:
        done = by_id.get(planned.experiment.id, [])
        values = [studies.figure_of_merit(asked, run) for run in done]
        known = stopping.spread([value for value in values if value is not None])
        if known.n == 0 or len(done) >= study.most_repetitions:
            continue
        if known.n < plan.protocol.repetitions or not known.is_within(study.half_width):
            found.append(planned)
    return found
