"""What a campaign may still write, where the user set a budget (`--max-written`)."""

from collections.abc import Iterable

from eeio.campaign.plan import Plan
from eeio_results.campaign import PlannedExperiment
from eeio_results.record import Run

# A run may write more than the largest of its kind so far, though seldom much more.
_MARGIN = 1.5


class WriteBudget:
    """Counts what was written; a run begins only where the most that it may write still fits.

    `starts` is how often the campaign was begun or resumed: each start may write the test files
    anew. A run's bytes are those that the drive counted, or the tool where nothing counts.
    """

    def __init__(self, plan: Plan, runs: Iterable[Run], starts: int) -> None:
        self._plan = plan
        self._most_bytes = plan.options.max_written_bytes
        self._written_bytes = plan.prefill_bytes * starts
        self._largest: dict[str, int] = {}
        for run in runs:
            self.add(run)

    def add(self, run: Run) -> None:
        """A run that has ended."""
        written = _written(run)
        self._written_bytes += written
        id = run.experiment.id
        self._largest[id] = max(self._largest.get(id, 0), written)

    def why_not(self, planned: PlannedExperiment) -> str | None:
        """Why another run of it does not fit; None where it does, and without a budget."""
        if self._most_bytes is None:
            return None
        next_bytes = self._plan.most_written(planned)
        if planned.experiment.id in self._largest:
            next_bytes = min(next_bytes, int(_MARGIN * self._largest[planned.experiment.id]))
        if self._written_bytes + next_bytes <= self._most_bytes:
            return None
        return (
            f"ended by --max-written: {self._written_bytes / 1e9:.3g} of "
            f"{self._most_bytes / 1e9:.3g} GB were written, and the next run may write "
            f"{next_bytes / 1e9:.3g} GB"
        )


def _written(run: Run) -> int:
    before, after = run.device_before, run.device_after
    if before is not None and after is not None:
        return max(0, after.written_bytes - before.written_bytes)
    return sum(
        int(phase.metrics.get("bytes_written", phase.bytes_moved or 0))
        for phase in run.phases
        if phase.operation != "read"
    )
