"""The design of a campaign that somebody else's program ran."""

from collections.abc import Sequence

from eeio.record.design import Design, Options, PlannedExperiment, PlannedRun, Protocol
from eeio.record.run import Run

IMPORTED = "imported"
"""The suite of a campaign with imported runs."""


def imported(
    name: str,
    title: str,
    created_utc: str,
    experiments: Sequence[PlannedExperiment],
    runs: Sequence[Run],
    preset: str = IMPORTED,
    is_measurement: bool = True,
    remarks: Sequence[str] = (),
    eeio_version: str = "",
) -> Design:
    """The design of a campaign whose runs are there already, in their order."""
    by_id = {planned.experiment.id: planned for planned in experiments}
    planned = tuple(
        PlannedRun(index, by_id[run.experiment.id], run.repetition, 0)
        for index, run in enumerate(runs)
    )
    repetitions = max((run.repetition for run in planned), default=0)
    return Design(
        name=name,
        suite=IMPORTED,
        suite_title=title,
        created_utc=created_utc,
        options=Options(suite=IMPORTED, preset=preset, seed=0, repetitions=repetitions),
        protocol=Protocol(repetitions, 0.0, 0.0, is_measurement),
        experiments=tuple(experiments),
        not_measured=(),
        runs=planned,
        remarks=tuple(remarks),
        eeio_version=eeio_version,
    )
