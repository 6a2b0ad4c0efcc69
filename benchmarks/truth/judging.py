"""What campaigns say, held against the truth: answers between experiments, numbers of servers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, Cell
from eeio.guideline.replacement_rule import guideline
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import CellKey, WorkloadEntry, make_workload
from eeio.statistics.decision import Rule, change

from .protocols import truth_of
from .world import Experiment, Site

_METRICS = (BANDWIDTH, POWER["system"], POWER["device"], EFFICIENCY)
_FACTORS = ("operation", "spatiality", "request_size_bytes", "buffer")
_RESAMPLES = 999

Pair = tuple[int, int]


@dataclass
class Score:
    """Counted over questions. `wrong` is a sign that is not that of the true difference of the mean
    logarithms, or "none above" where there is one. `wrong_sign_above` is such a sign where that
    difference is above the indifference, and that of the medians has its sign: where one slow run
    in ten turns the mean against the median no sign is the true one. Intervals: `covered` of
    `intervals` of the number of servers hold the true ratio of the medians."""

    questions: int = 0
    wrong: int = 0
    open: int = 0
    wrong_sign_above: int = 0
    intervals: int = 0
    covered: int = 0
    half_widths: list[float] = field(default_factory=list)

    def add(self, other: "Score") -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


def pairs_of(experiments: Sequence[Experiment]) -> list[Pair]:
    """Experiments that differ in one factor."""
    return [
        (a, b)
        for a, b in combinations(range(len(experiments)), 2)
        if sum(getattr(experiments[a], f) != getattr(experiments[b], f) for f in _FACTORS) == 1
    ]


def inside(site: Site, cells: Sequence[Cell], rule: Rule) -> Score:
    """Of the questions inside one campaign: each pair in bandwidth, powers and MB/J."""
    truths, medians = ([truth_of(one) for one in of] for of in (site.truth, site.medians))
    score = Score()
    for a, b in pairs_of(site.experiments):
        for metric in _METRICS:
            found = change(cells[a].tested(metric), cells[b].tested(metric), rule)
            real = truths[b][metric] - truths[a][metric]
            is_above = abs(real) > math.log1p(rule.indifference)
            opposite = (found.answer == "higher" and real <= 0) or (
                found.answer == "lower" and real >= 0
            )
            score.questions += 1
            score.open += found.answer == "open"
            score.wrong += opposite or (found.answer == "none above" and is_above)
            middle = medians[b][metric] - medians[a][metric]
            score.wrong_sign_above += opposite and is_above and middle * real > 0
    return score


def servers(
    sites: tuple[Site, Site], cells: tuple[Sequence[Cell], Sequence[Cell]], seed: int
) -> Score:
    """Of each experiment: how many of the second machine carry what one of the first does."""
    first, second = (_server(*of) for of in zip(sites, cells, strict=True))
    keys = [_key(experiment) for experiment in sites[0].experiments]
    workload = make_workload("all", [WorkloadEntry(key, 1 / len(keys)) for key in keys])
    rows = guideline(workload, first, second, resamples=_RESAMPLES, seed=seed).experiments
    truth: Mapping[CellKey, float] = {
        key: float(sites[0].medians[n, 0] - sites[1].medians[n, 0]) for n, key in enumerate(keys)
    }
    score = Score()
    for row in rows:
        interval = row.bandwidth_ratio.interval
        score.intervals += 1
        if interval is not None:
            low, high = math.log(interval.low), math.log(interval.high)
            # A world without chance has intervals without width.
            score.covered += low - 1e-9 <= truth[row.key] <= high + 1e-9
            score.half_widths.append((high - low) / 2)
    return score


def _server(site: Site, cells: Sequence[Cell]) -> Server:
    return Server(
        site.name,
        tuple(
            CellValues(_key(experiment), cell.values(BANDWIDTH), cell.values(POWER["system"]))
            for experiment, cell in zip(site.experiments, cells, strict=True)
        ),
    )


def _key(experiment: Experiment) -> CellKey:
    return CellKey(
        experiment.operation,
        experiment.spatiality,
        experiment.request_size_bytes,
        "on" if experiment.buffer == "on" else "off",
    )
