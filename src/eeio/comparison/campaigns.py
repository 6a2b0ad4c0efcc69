"""The complete comparison of campaigns, which `eeio compare` prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from eeio.comparison import remarks
from eeio.comparison.cells import Cell, Where, fits, machine_names, why_too_slow
from eeio.comparison.changes import Changes, changes
from eeio.comparison.differences import ALPHA
from eeio.comparison.drift import compared_cells
from eeio.comparison.effects import Effect, effects
from eeio.comparison.idle import IdleBusy, idle_and_busy
from eeio.comparison.normality import NormalityCount, normality_counts
from eeio.comparison.pareto import Choice, choices
from eeio.record.store import Campaign
from eeio.statistics.adjustment import Adjustment
from eeio.statistics.decision import Rule

Levels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Group:
    """The effects within one part of the cells; `levels` are their common levels."""

    levels: Levels
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Comparison:
    """All that was found between some campaigns."""

    campaigns: tuple[str, ...]
    adjustment: str
    alpha: float
    groups: tuple[Group, ...]
    idle_busy: tuple[IdleBusy, ...]
    warnings: tuple[str, ...]
    changes: tuple[Changes, ...] = ()
    """From the first campaign to each other one."""
    normality: tuple[NormalityCount, ...] = ()
    pareto: tuple[Choice, ...] = ()


def named_cells(campaigns: Sequence[Campaign]) -> list[list[Cell]]:
    """The cells of each campaign, under names that distinguish their machines."""
    names = machine_names(campaigns)
    return [compared_cells(campaign, name) for campaign, name in zip(campaigns, names, strict=True)]


def compare(
    campaigns: Sequence[Campaign],
    cells: Sequence[Sequence[Cell]],
    *,
    where: Where | None = None,
    by: Sequence[str] = (),
    adjustment: Adjustment = "benjamini-hochberg",
    alpha: float = ALPHA,
    with_normality: bool = False,
    max_p99_s: float | None = None,
    rule: Rule | None = None,
) -> Comparison | None:
    """Compares the cells of each campaign (`named_cells`) that fit `where` and whose median p99
    latency is at most `max_p99_s`, separately for each level of the factors `by`; None if there is
    no such cell."""
    chosen, too_slow = [], []
    for cell in chain.from_iterable(cells):
        why = why_too_slow(cell, max_p99_s)
        if fits(cell, where or {}) and why is None:
            chosen.append(cell)
        elif fits(cell, where or {}):
            too_slow.append(f"{cell.label(tool=True)}: left out: {why}")
    if not chosen:
        return None
    wanted = {id(cell) for cell in chosen}
    parts: dict[Levels, list[Cell]] = {}
    for cell in chosen:
        parts.setdefault(tuple((name, cell.factors[name]) for name in by), []).append(cell)
    idle_busy: list[IdleBusy] = []
    for campaign, of_campaign in zip(campaigns, cells, strict=True):
        idle_busy += idle_and_busy(campaign, [cell for cell in of_campaign if id(cell) in wanted])
    complete = [cell for cell in chosen if not cell.is_direction]
    return Comparison(
        campaigns=tuple(campaign.name for campaign in campaigns),
        adjustment=adjustment,
        alpha=alpha,
        groups=tuple(
            Group(levels, tuple(effects(part, adjustment, alpha))) for levels, part in parts.items()
        ),
        idle_busy=tuple(idle_busy),
        changes=_changes(campaigns, cells, chosen, rule or Rule(alpha=alpha), adjustment),
        pareto=choices(chosen),
        normality=tuple(normality_counts(chosen, alpha) if with_normality else ()),
        warnings=(
            *remarks.of_runs(campaigns, complete),
            *too_slow,
            *remarks.of_load(campaigns),
            *remarks.of_flush(complete),
            *remarks.domain_warnings(chosen),
            *remarks.unmatched(chosen),
        ),
    )


def _changes(
    campaigns: Sequence[Campaign],
    cells: Sequence[Sequence[Cell]],
    chosen: Sequence[Cell],
    rule: Rule,
    adjustment: Adjustment,
) -> tuple[Changes, ...]:
    """Of the chosen cells."""
    wanted = {id(cell) for cell in chosen}
    of = [
        (campaign.name, [cell for cell in of_one if id(cell) in wanted])
        for campaign, of_one in zip(campaigns, cells, strict=True)
    ]
    return tuple(changes(of[0], other, rule, adjustment) for other in of[1:])
