"""The complete comparison of campaigns, which `eeio compare` prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from eeio.comparison import remarks, settings
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
    of_each, too_slow = _chosen(cells, where or {}, max_p99_s)
    chosen = list(chain.from_iterable(of_each))
    if not chosen:
        return None
    idle_busy: list[IdleBusy] = []
    for campaign, of_campaign in zip(campaigns, of_each, strict=True):
        idle_busy += idle_and_busy(campaign, of_campaign)
    complete = [cell for cell in chosen if not cell.is_direction]
    normality = normality_counts(chosen, alpha) if with_normality else ()
    found = _changes(campaigns, of_each, rule or Rule(alpha=alpha), adjustment)
    return Comparison(
        campaigns=tuple(campaign.name for campaign in campaigns),
        adjustment=adjustment,
        alpha=alpha,
        groups=_groups(chosen, by, adjustment, alpha),
        idle_busy=tuple(idle_busy),
        changes=found,
        pareto=choices(chosen),
        normality=tuple(normality),
        warnings=(
            *settings.differing({campaign.name: [campaign] for campaign in campaigns}, found),
            *remarks.of_runs(campaigns, complete),
            *too_slow,
            *remarks.of_load(campaigns),
            *remarks.of_flush(complete),
            *remarks.domain_warnings(chosen),
            *remarks.unmatched(chosen),
        ),
    )


def _chosen(
    cells: Sequence[Sequence[Cell]], where: Where, max_p99_s: float | None
) -> tuple[list[list[Cell]], list[str]]:
    """The cells of each campaign to compare, and a warning for each one that is too slow."""
    chosen, too_slow = [], []
    for of_campaign in cells:
        fast = []
        for cell in of_campaign:
            slow = why_too_slow(cell, max_p99_s)
            if not fits(cell, where):
                continue
            if slow is None:
                fast.append(cell)
            else:
                too_slow.append(f"{cell.label(tool=True)}: left out: {slow}")
        chosen.append(fast)
    return chosen, too_slow


def _groups(
    cells: Sequence[Cell], by: Sequence[str], adjustment: Adjustment, alpha: float
) -> tuple[Group, ...]:
    """The effects for each level of the factors `by`."""
    parts: dict[Levels, list[Cell]] = {}
    for cell in cells:
        levels = tuple((name, cell.factors[name]) for name in by)
        parts.setdefault(levels, []).append(cell)
    return tuple(
        Group(levels, tuple(effects(part, adjustment, alpha))) for levels, part in parts.items()
    )


def _changes(
    campaigns: Sequence[Campaign],
    cells: Sequence[Sequence[Cell]],
    rule: Rule,
    adjustment: Adjustment,
) -> tuple[Changes, ...]:
    """From the first campaign to each other one."""
    names = [campaign.name for campaign in campaigns]
    first, *others = zip(names, cells, strict=True)
    return tuple(changes(first, other, rule, adjustment) for other in others)
