"""Repeating until the mean is known: after the planned runs, one round at a time."""

from collections.abc import Iterable, Sequence

from eeio.campaign.plan import Plan
from eeio_results.campaign import PlannedExperiment
from eeio_results.record import Run
from eeio_results.studies.chang2014 import cells as chang2014


def unsettled(plan: Plan, runs: Iterable[Run]) -> Sequence[PlannedExperiment]:
    """The experiments that need one more repetition; none for a fixed number of them.

    Runs that failed count towards the most repetitions, so that a broken experiment ends too; one
    that never gave a figure is not tried again.
    """
    study = plan.protocol.study
    if study is None or study.half_width is None:
        return ()
    by_id: dict[str, list[Run]] = {}
    for run in runs:
        by_id.setdefault(run.experiment.id, []).append(run)
    found = []
    for planned in plan.experiments:
        done = by_id.get(planned.experiment.id, [])
        known = chang2014.spread_of(done)
        if known.n == 0 or len(done) >= study.most_repetitions:
            continue
        if known.n < plan.protocol.repetitions or not known.is_within(study.half_width):
            found.append(planned)
    return found
