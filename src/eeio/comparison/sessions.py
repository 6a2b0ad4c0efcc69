"""Several campaigns of one machine as sessions of one campaign: changes from day to day.

A campaign is one session: its repetitions do not show changes between two, such as temperature or
other installed software. In several sessions each has one value per figure, the geometric mean of
its repetitions. The comparison uses these values as its repetitions.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio.analysis.metrics import in_cells
from eeio.analysis.observation import Missing
from eeio.comparison.cells import OF_EFFICIENCY, POWER, UNCERTAINTY, Cell, Measured, cells_of
from eeio.comparison.changes import OF_DRIVE, Changes, by_what, changes
from eeio.comparison.precision import log_variance
from eeio.errors import EeioError
from eeio.record.store import Campaign
from eeio.statistics.adjustment import Adjustment
from eeio.statistics.decision import Rule


def _metrics() -> tuple[str, ...]:
    """The keys of all metrics that vary between sessions."""
    keys = [cell.key for cell in in_cells() if cell.key != UNCERTAINTY]
    return (*keys, *POWER.values(), OF_DRIVE)


@dataclass(frozen=True)
class SessionEffect:
    """How much a metric changes from session to session of the campaigns `of`.

    `between` and `within` are standard deviations of the logarithm, so shares: between sessions
    (over `experiments` that all have it, each separately) and between repetitions of one. `shift`
    is, by campaign, the deviation common to its experiments: the median of their deviations.
    """

    metric: str
    of: tuple[str, ...]
    experiments: int
    between: float
    within: float
    shift: Mapping[str, float]


@dataclass(frozen=True)
class Sessions:
    """Groups of sessions: how each changes from session to session, and from the first group to
    each other one."""

    groups: tuple[tuple[str, ...], ...]
    cells: tuple[tuple[Cell, ...], ...]
    effects: tuple[tuple[SessionEffect, ...], ...]
    changes: tuple[Changes, ...]


def compare_groups(
    groups: Sequence[Sequence[Campaign]], rule: Rule, adjustment: Adjustment
) -> Sessions:
    """Raises EeioError where a group is not of one machine, or none has two sessions."""
    if all(len(group) < 2 for group in groups):
        raise EeioError("--sessions needs several campaigns of each machine, such as A1,A2 B1,B2")
    effects, cells = [], []
    for group in groups:
        check_one_machine(group)
        of_each = [cells_of(campaign, "machine") for campaign in group]
        names = [campaign.name for campaign in group]
        effects.append(tuple(session_effects(names, of_each)) if len(group) > 1 else ())
        cells.append((" + ".join(names), joined(of_each)))
    return Sessions(
        tuple(tuple(campaign.name for campaign in group) for group in groups),
        tuple(tuple(of_group) for _, of_group in cells),
        tuple(effects),
        tuple(
            replace(changes(cells[0], other, rule, adjustment), of_sessions=True)
            for other in cells[1:]
        ),
    )


def check_one_machine(campaigns: Sequence[Campaign]) -> None:
    """Raises EeioError where they are not sessions of one machine and drive."""
    first = campaigns[0].machine
    for campaign in campaigns[1:]:
        for name, was, now in (
            ("machine", first.hostname, campaign.machine.hostname),
            (
                "drive",
                first.drive or first.device,
                campaign.machine.drive or campaign.machine.device,
            ),
            ("kernel", first.kernel, campaign.machine.kernel),
        ):
            if was != now:
                raise EeioError(
                    f"{campaigns[0].name} and {campaign.name} are not sessions of one machine: the "
                    f"{name} is {was} in one, {now} in the other"
                )


def joined(sessions: Sequence[Sequence[Cell]]) -> list[Cell]:
    """The experiments of the sessions, each with one value a session: the geometric mean of its
    repetitions. One that is not in all sessions has no value, with the reason."""
    of_each = list(map(by_what, sessions))
    found = []
    for key in dict.fromkeys(key for of in of_each for key in of):
        cells = []
        for of in of_each:
            if key in of:
                cells.append(of[key])
        if len(cells) == len(of_each):
            found.append(_joined(cells))
        else:
            reason = Missing(f"only {len(cells)} of {len(of_each)} sessions have a result of it")
            found.append(replace(cells[0], figures=dict.fromkeys(_metrics(), reason)))
    return found


def session_effects(
    names: Sequence[str], sessions: Sequence[Sequence[Cell]]
) -> list[SessionEffect]:
    """Of each metric that two repetitions of an experiment have in all sessions."""
    of_each = list(map(by_what, sessions))
    effects = []
    for metric in _metrics():
        shared = []
        for key in of_each[0]:
            if all(key in of and _has_spread(of[key], metric) for of in of_each):
                shared.append([of[key] for of in of_each])
        if shared:
            effects.append(_effect(metric, tuple(names), shared))
    return effects


def _effect(metric: str, names: tuple[str, ...], shared: Sequence[Sequence[Cell]]) -> SessionEffect:
    """For each experiment: the variance of the sessions' means, less the part due to their
    repetitions (the method of moments of a one-way random model, Searle, Casella, McCulloch 1992,
    "Variance Components", 3.5), at least 0; the mean over the experiments."""
    between, within = [], []
    deviations: dict[str, list[float]] = {name: [] for name in names}
    for cells in shared:
        means = [_mean_log(cell, metric) for cell in cells]
        inside = [log_variance(cell.values(metric)) for cell in cells]
        noise = statistics.fmean(
            variance / cell.n(metric) for variance, cell in zip(inside, cells, strict=True)
        )
        between.append(statistics.variance(means) - noise)
        within.append(statistics.fmean(inside))
        middle = statistics.fmean(means)
        for name, mean in zip(names, means, strict=True):
            deviations[name].append(mean - middle)
    return SessionEffect(
        metric,
        names,
        len(shared),
        math.sqrt(max(0.0, statistics.fmean(between))),
        math.sqrt(statistics.fmean(within)),
        {name: math.expm1(statistics.median(deviation)) for name, deviation in deviations.items()},
    )


def _joined(cells: Sequence[Cell]) -> Cell:
    # A mean of the energies of several power domains or meters is of none of them.
    of_session = {domain: {c.meters.get(domain) for c in cells} for domain in POWER}
    energies = {(c.efficiency_of, next(iter(c.meters.values()), None)) for c in cells}
    sources: dict[str, int] = {metric: len(of_session[domain]) for domain, metric in POWER.items()}
    sources |= dict.fromkeys(OF_EFFICIENCY, len(energies))
    sources[OF_DRIVE] = len(of_session["device"])
    figures = {}
    for metric in (*_metrics(), UNCERTAINTY):
        figures[metric] = _of_sessions(cells, metric, sources.get(metric, 1) > 1)
    doubts = tuple(dict.fromkeys(doubt for cell in cells for doubt in cell.doubts))
    return replace(cells[0], figures=figures, doubts=doubts)


def _of_sessions(cells: Sequence[Cell], metric: str, is_mixed: bool) -> Measured | Missing:
    """One value a session."""
    if not is_mixed and all(cell.n(metric) and min(cell.values(metric)) > 0 for cell in cells):
        means = tuple(math.exp(_mean_log(cell, metric)) for cell in cells)
        return Measured(means, tuple(range(len(means))))
    reasons = (cell.why(metric) for cell in cells)
    different = "the sessions lack it, or have it of different power domains or meters"
    return Missing(next(filter(None, reasons), different))


def _mean_log(cell: Cell, metric: str) -> float:
    return statistics.fmean(map(math.log, cell.values(metric)))


def _has_spread(cell: Cell, metric: str) -> bool:
    return cell.n(metric) >= 2 and min(cell.values(metric)) > 0
