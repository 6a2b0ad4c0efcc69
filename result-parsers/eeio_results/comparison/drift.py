"""What drifts within a campaign: the trend of the experiments that run in each of its rounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eeio_results.comparison.cells import BANDWIDTH, POWER, Cell, cells_of
from eeio_results.statistics.stopping import t_quantile
from eeio_results.store import Campaign


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
    found = []
    for cell in cells_of(campaign):
        if cell.experiment_id not in campaign.design.anchors:
            continue
        metric = next((m for m in (*POWER.values(), BANDWIDTH) if cell.n(m) >= 3), None)
        trend = None if metric is None else _trend(cell, metric, began_s)
        if trend is not None:
            found.append(trend)
    return found


def _trend(cell: Cell, metric: str, began_s: dict[int, float]) -> Trend | None:
    hours = [began_s[order] / 3600 for order in cell.runs[metric]]
    values = cell.values[metric]
    if min(values) <= 0 or min(hours) == max(hours):
        return None
    slope, half = _line(hours, [math.log(value) for value in values])
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
