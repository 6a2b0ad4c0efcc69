"""Which experiments a campaign repeats after its planned runs, and its remaining write budget.

Repeating until the mean is known: after the planned runs, one round at a time.

Rounds until each experiment is precise enough: which continue, which have stopped, and why.

All follows from the stored runs, the seed and the rule in campaign.json, so that a resumed campaign
continues in the same order.

The bytes that a campaign may still write within the user's budget (`--max-written`).
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eeio import studies
from eeio.comparison.cells import BANDWIDTH, POWER, Cell, cells_of
from eeio.comparison.precision import known_worst
from eeio.measure.campaign.planned_campaign import Plan
from eeio.record.design import MOST, PRECISE, AdaptiveProtocol, PlannedExperiment
from eeio.record.run import Run
from eeio.record.store import Campaign
from eeio.statistics import stopping
from eeio.units.sizes import percent


def without_known_mean(plan: Plan, runs: Iterable[Run]) -> Sequence[PlannedExperiment]:
    """The experiments that need one more repetition; none for a fixed number of them.

    Runs that failed count towards the most repetitions, so that a broken experiment ends too; one
    that never gave a figure is not tried again.
    """
    study = plan.protocol.study
    if study is None or study.half_width is None:
        return ()
    found_studies = studies.of_campaign(study.name)
    by_id: dict[str, list[Run]] = {}
    for run in runs:
        by_id.setdefault(run.experiment.id, []).append(run)
    experiments = []
    for planned in plan.experiments:
        done = by_id.get(planned.experiment.id, [])
        values = [studies.figure_of_merit(found_studies, run) for run in done]
        known = stopping.spread([value for value in values if value is not None])
        if known.n == 0 or len(done) >= study.most_repetitions:
            continue
        if known.n < plan.protocol.repetitions or not known.is_within(study.half_width):
            experiments.append(planned)
    return experiments


FEWEST = 4
"""Valid repetitions before an experiment may be called precise: three may agree by chance."""


@dataclass(frozen=True)
class Round:
    """The next one: its experiments (with the anchors), and why each other is repeated no further,
    by its id. No experiment: the campaign is at its end."""

    experiments: tuple[PlannedExperiment, ...]
    anchors: tuple[str, ...]
    stopped: Mapping[str, str]


@dataclass(frozen=True)
class Candidate:
    """The rule's input on an experiment: how often it may run, `most`, how often it `ran`, and its
    cells so far. `describes`: it describes the machine, and once is enough."""

    id: str
    most: int
    ran: int
    cells: Sequence[Cell]
    describes: bool = False


def next_round(campaign: Campaign, rule: AdaptiveProtocol) -> Round:
    """After the first rounds, which all experiments run in (`Protocol.repetitions`)."""
    design = campaign.design
    done = Counter(run.experiment.id for run in campaign.runs)
    cells: dict[str, list[Cell]] = {}
    for cell in cells_of(campaign):
        cells.setdefault(cell.experiment_id, []).append(cell)
    candidates = [
        Candidate(
            (id := planned.experiment.id),
            most_repetitions(planned, rule, 0),
            done[id],
            cells.get(id, ()),
            planned.experiment.level == "context",
        )
        for planned in design.experiments
    ]
    ids, anchors, stopped = who_goes_on(candidates, design.anchors, design.stopped, rule.precision)
    # Requested by an extension, though the precision has stopped it.
    wanted = {id for id, many in design.targets.items() if done[id] < many}
    if wanted:
        ids |= wanted | set(anchors)
    experiments = tuple(p for p in design.experiments if p.experiment.id in ids)
    return Round(experiments, anchors, stopped)


def who_goes_on(
    candidates: Sequence[Candidate],
    anchors: tuple[str, ...],
    stopped: Mapping[str, str],
    precision: float,
) -> tuple[frozenset[str], tuple[str, ...], Mapping[str, str]]:
    """The ids of the next round, its anchors, and what has stopped; from those of the rounds
    before. Stopped experiments stay stopped: an anchor that continues is not evaluated again."""
    stopped = dict(stopped)
    for candidate in candidates:
        if candidate.id not in stopped:
            reason = _why_stopped(candidate, precision)
            if reason is not None:
                stopped[candidate.id] = reason
    anchors = anchors or _anchors(candidates)
    ids = {candidate.id for candidate in candidates} - set(stopped)
    if ids:
        ids |= set(anchors)
    return frozenset(ids), anchors, stopped


def is_complete(planned: PlannedExperiment) -> bool:
    """Whether its run is never shortened: it moves a fixed work, or writes through the page cache
    at a rate that depends on its length, or a pilot found no shorter equivalent."""
    untimed = not float(planned.factors.get("runtime_s", "0") or 0)
    tried = planned.cut_from is not None and not planned.is_cut
    return untimed or tried or planned.experiment.cache.buffer == "on"


def most_repetitions(planned: PlannedExperiment, rule: AdaptiveProtocol, least: int) -> int:
    """Of one experiment, no fewer than all have."""
    most = rule.most_repetitions
    if is_complete(planned):
        most = rule.most_whole
    return max(least, most)


def _why_stopped(candidate: Candidate, precision: float) -> str | None:
    if candidate.describes:
        return "it describes the machine"
    known = known_worst(candidate.cells)
    if known is None:
        return f"no figure of {candidate.ran} runs"
    width = ""
    if known.half_width is not None:
        width = f"{known.metric} to ±{percent(known.half_width)} %"
    if known.half_width is not None and known.half_width <= precision and known.n >= FEWEST:
        return f"{PRECISE} after {candidate.ran}: {width}"
    # Runs that failed count, so that a broken experiment ends too.
    if candidate.ran >= candidate.most:
        return f"{MOST}, {candidate.ran}: {width or 'one value'}"
    return None


def _anchors(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The experiments with the highest and the lowest power, or bandwidth where there is none: they
    run in all rounds, to show drift. Chosen from those that may run most often, which are the short
    ones: they show drift as well as complete runs."""
    most = max((candidate.most for candidate in candidates), default=0)
    candidates = [candidate for candidate in candidates if candidate.most == most]
    for metric in (*POWER.values(), BANDWIDTH):
        levels = {
            candidate.id: statistics.fmean(
                cell.median(metric) for cell in candidate.cells if cell.n(metric)
            )
            for candidate in candidates
            if any(cell.n(metric) for cell in candidate.cells)
        }
        if levels:
            both = (max(levels, key=levels.__getitem__), min(levels, key=levels.__getitem__))
            return tuple(dict.fromkeys(both))
    return ()


# A run may write more than the largest of its kind so far, though seldom much more.
_WRITE_MARGIN = 1.5


class WriteBudget:
    """Counts written bytes; a run begins only if its maximum still fits.

    `starts` is how often the campaign was begun or resumed: each start may write the test files
    anew. A run's bytes are the drive's count, or the tool's without drive counters.
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
            next_bytes = min(next_bytes, int(_WRITE_MARGIN * self._largest[planned.experiment.id]))
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
