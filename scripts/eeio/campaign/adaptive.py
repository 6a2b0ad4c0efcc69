"""Rounds until each experiment is known well enough: who goes on, who has stopped, and why.

All follows from the stored runs, the seed and the rule in campaign.json, so that a campaign that
was killed goes on in the same order.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio_results.campaign import MOST, PRECISE, AdaptiveProtocol, Design, PlannedExperiment
from eeio_results.comparison.cells import BANDWIDTH, POWER, Cell, cells_of
from eeio_results.comparison.precision import known_worst
from eeio_results.record import Run
from eeio_results.store import Campaign
from eeio_results.units import percent


@dataclass(frozen=True)
class Round:
    """The next one: its experiments (with the anchors), and why each other is repeated no further,
    by its id. No experiment: the campaign is at its end."""

    experiments: tuple[PlannedExperiment, ...]
    anchors: tuple[str, ...]
    stopped: Mapping[str, str]


def next_round(campaign: Campaign, rule: AdaptiveProtocol) -> Round:
    """After the first rounds, which all experiments run in (`Protocol.repetitions`)."""
    design = campaign.design
    done: dict[str, list[Run]] = {}
    for run in campaign.runs:
        done.setdefault(run.experiment.id, []).append(run)
    cells: dict[str, list[Cell]] = {}
    for cell in cells_of(campaign):
        cells.setdefault(cell.experiment_id, []).append(cell)
    # What has stopped stays so: an anchor that runs on is not drawn into the question again.
    stopped = dict(design.stopped)
    for planned in design.experiments:
        id = planned.experiment.id
        if id not in stopped:
            why = _why_stopped(planned, done.get(id, ()), cells.get(id, ()), rule)
            if why is not None:
                stopped[id] = why
    anchors = design.anchors or _anchors(design, cells)
    ids = {planned.experiment.id for planned in design.experiments} - set(stopped)
    kept = ids | set(anchors) if ids else ids
    experiments = tuple(p for p in design.experiments if p.experiment.id in kept)
    return Round(experiments, anchors, stopped)


def is_whole(planned: PlannedExperiment) -> bool:
    """Whether its run is never shortened: it moves a fixed work, or writes through the page cache,
    whose rate depends on how long it lasts, or a pilot found that no shorter one tells the same."""
    untimed = not float(planned.factors.get("runtime_s", "0") or 0)
    tried = planned.cut_from is not None and not planned.is_cut
    return untimed or tried or planned.experiment.cache.buffer == "on"


def most_repetitions(planned: PlannedExperiment, rule: AdaptiveProtocol, least: int) -> int:
    """Of one experiment, no fewer than all have."""
    return max(least, rule.most_whole if is_whole(planned) else rule.most_repetitions)


def _why_stopped(
    planned: PlannedExperiment, runs: Sequence[Run], cells: Sequence[Cell], rule: AdaptiveProtocol
) -> str | None:
    if planned.experiment.level == "context":
        return "it describes the machine"
    known = known_worst(cells)
    if known is None:
        return f"no figure of {len(runs)} runs"
    width = "" if known.half_width is None else f"{known.metric} to ±{percent(known.half_width)} %"
    if known.half_width is not None and known.half_width <= rule.precision:
        return f"{PRECISE} after {len(runs)}: {width}"
    # Runs that failed count, so that a broken experiment ends too.
    if len(runs) >= most_repetitions(planned, rule, 0):
        return f"{MOST}, {len(runs)}: {width or 'one value'}"
    return None


def _anchors(design: Design, cells: Mapping[str, Sequence[Cell]]) -> tuple[str, ...]:
    """The experiments with the highest and the lowest power, or bandwidth where there is none: they
    run in all rounds, so that what drifts shows."""
    for metric in (*POWER.values(), BANDWIDTH):
        levels = {
            id: statistics.fmean(cell.median(metric) for cell in found if cell.n(metric))
            for id, found in cells.items()
            if any(cell.n(metric) for cell in found)
        }
        if levels:
            order = [p.experiment.id for p in design.experiments if p.experiment.id in levels]
            both = (max(order, key=levels.__getitem__), min(order, key=levels.__getitem__))
            return tuple(dict.fromkeys(both))
    return ()
