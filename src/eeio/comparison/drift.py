"""Drift within a campaign: the trend of the experiments that run in each of its rounds, and the
effects of the rounds, which are removed before its experiments are compared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, Cell, cells_of
from eeio.record.design import Design
from eeio.record.store import Campaign
from eeio.statistics.round_effects import RoundEffects, Series, round_effects
from eeio.statistics.stopping import t_quantile


@dataclass(frozen=True)
class Trend:
    """Of an anchor: the change of `metric` per hour, as a share, with its 95 % interval by the line
    of least squares through the logarithms; over so many `hours` and `n` runs."""

    label: str
    metric: str
    per_hour: float
    interval: tuple[float, float]
    hours: float
    n: int


def trends(campaign: Campaign) -> list[Trend]:
    """Of each anchor that has three runs or more, in power, or bandwidth where there is none."""
    began_s = {run.order_index: run.started_monotonic_s for run in campaign.runs}
    slopes = []
    for cell in cells_of(campaign):
        if cell.experiment_id not in campaign.design.anchors:
            continue
        metric = next((m for m in (*POWER.values(), BANDWIDTH) if cell.n(m) >= 3), None)
        trend = None
        if metric is not None:
            trend = _trend(cell, metric, began_s)
        if trend is not None:
            slopes.append(trend)
    return slopes


def _trend(cell: Cell, metric: str, began_s: dict[int, float]) -> Trend | None:
    measured = cell.measured[metric]
    hours = [began_s[order] / 3600 for order in measured.runs]
    values = measured.values
    if min(values) <= 0 or min(hours) == max(hours):
        return None
    slope, half = _line(hours, list(map(math.log, values)))
    return Trend(
        cell.label(without=("machine", "device", "type")),
        metric,
        slope,
        (slope - half, slope + half),
        max(hours) - min(hours),
        len(values),
    )


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Slope, and half the width of its 95 % interval."""
    n = len(x)
    middle_x, middle_y = math.fsum(x) / n, math.fsum(y) / n
    spread = math.fsum((one - middle_x) ** 2 for one in x)
    slope = math.fsum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread
    rest = math.fsum(
        (b - middle_y - slope * (a - middle_x)) ** 2 for a, b in zip(x, y, strict=True)
    )
    return slope, t_quantile(0.975, n - 2) * math.sqrt(rest / (n - 2) / spread)


def rounds_of(design: Design) -> dict[int, int]:
    """Of an adaptive campaign the round of each run, from 1 on, by its place in the order: a round
    ends where an experiment would come again. A fixed campaign is one random order: no rounds."""
    if design.protocol.adaptive is None:
        return {}
    rounds: dict[int, int] = {}
    number, seen = 1, set[str]()
    for run in design.runs:
        id = run.experiment.experiment.id
        if id in seen:
            number, seen = number + 1, set()
        seen.add(id)
        rounds[run.order_index] = number
    return rounds


def power_effects(cells: Sequence[Cell], round_of: Mapping[int, int]) -> dict[str, RoundEffects]:
    """Of the rounds on each measured power that two cells or more have, by metric."""
    effects = {}
    for metric in POWER.values():
        logs = {}
        for cell in cells:
            if (measured := cell.measured.get(metric)) and min(measured.values) > 0:
                logs[_series(cell)] = {
                    round_of[order]: math.log(watts)
                    for order, watts in zip(measured.runs, measured.values, strict=True)
                    if order in round_of
                }
        if len(logs) > 1:
            effects[metric] = round_effects(logs)
    return effects


def without_drift(cells: Sequence[Cell], round_of: Mapping[int, int]) -> list[Cell]:
    """The cells of one campaign, with the effects of its rounds removed in `levelled`: from
    powers, and from MB/J and J/GB through their power. Bandwidth is unchanged: it does not follow
    the machine's temperature, and the correction would only add noise."""
    effects = power_effects(cells, round_of)
    if effects:
        return [_levelled(cell, effects, round_of) for cell in cells]
    return list(cells)


def compared_cells(campaign: Campaign, machine_name: str | None = None) -> list[Cell]:
    """`cells_of`, ready to be compared with each other."""
    return without_drift(cells_of(campaign, machine_name), rounds_of(campaign.design))


def _series(cell: Cell) -> Series:
    return cell.experiment_id, cell.factors.get("phase", "")


def _levelled(cell: Cell, effects: Mapping[str, RoundEffects], round_of: Mapping[int, int]) -> Cell:
    figures = dict(cell.figures)
    # The sign of a power's effect in a figure, and the power.
    follows = {metric: (1, metric) for metric in POWER.values()}
    if len(cell.efficiency_of) == 1:
        power = POWER[cell.efficiency_of[0].split()[0]]
        follows |= {J_PER_GB: (1, power), EFFICIENCY: (-1, power)}
    for metric, (sign, power) in follows.items():
        of_round: Mapping[int, float] = {}
        if power in effects:
            of_round = effects[power].of.get(_series(cell), {})
        measured = cell.measured.get(metric)
        if not of_round or measured is None:
            continue
        if all(round_of.get(order) in of_round for order in measured.runs):
            levelled = tuple(
                value * math.exp(-sign * of_round[round_of[order]])
                for order, value in zip(measured.runs, measured.values, strict=True)
            )
            figures[metric] = replace(measured, levelled=levelled)
    return replace(cell, figures=figures)
