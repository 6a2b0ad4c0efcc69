"""The history of a suite: each experiment's values over campaigns, and when they changed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from eeio_results.comparison.campaigns import named_cells
from eeio_results.comparison.cells import J_PER_GB
from eeio_results.comparison.changes import PLACE, what
from eeio_results.metrics import METRICS, named
from eeio_results.record import Machine
from eeio_results.statistics.change_points import LEAST_SEGMENT, change_points
from eeio_results.store import Campaign

_IDENTITY = ("hostname", "drive_id", "drive_label")
_LEAST_CHANGE = 0.01
"""Smaller changes are not worth an alarm, however sure they are."""


@dataclass(frozen=True)
class Point:
    """The median of one campaign."""

    campaign: str
    utc: str
    value: float


@dataclass(frozen=True)
class Step:
    """From the campaign on the values are `change` larger (0.05: 5 %), by the geometric means of
    the segments. `machine` is what differs from the campaign before."""

    campaign: str
    utc: str
    change: float
    p: float
    machine: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """One experiment on one machine; `reason` is why no change can be found."""

    machine: str
    label: str
    points: tuple[Point, ...]
    steps: tuple[Step, ...]
    reason: str | None = None


@dataclass(frozen=True)
class History:
    """All experiments of a suite, machine by machine."""

    suite: str
    metric: str
    campaigns: tuple[str, ...]
    series: tuple[Series, ...]


def history(suite: str, campaigns: Sequence[Campaign], metric: str | None = None) -> History:
    """Of campaigns of one suite. `metric` is the name of one that `compare` gates; without it J/GB,
    or MB/s where no campaign has energy."""
    ordered = sorted(campaigns, key=lambda campaign: campaign.design.created_utc)
    cells = named_cells(ordered)
    key = named(metric).key if metric is not None else J_PER_GB
    if metric is None and not any(cell.known(key) for of_one in cells for cell in of_one):
        key = named("MB/s").key
    found: dict[tuple[object, ...], list[tuple[Campaign, Point]]] = {}
    labels: dict[tuple[object, ...], str] = {}
    for campaign, of_one in zip(ordered, cells, strict=True):
        for cell in of_one:
            value = cell.known(key)
            if value is None or value <= 0:
                continue
            place = (campaign.machine.hostname, *what(cell))
            labels.setdefault(place, cell.label(PLACE, tool=True))
            point = Point(campaign.name, campaign.design.created_utc, value)
            found.setdefault(place, []).append((campaign, point))
    return History(
        suite=suite,
        metric=next(one.name for one in METRICS if one.key == key),
        campaigns=tuple(campaign.name for campaign in ordered),
        series=tuple(
            _series(str(place[0]), labels[place], values) for place, values in found.items()
        ),
    )


def _series(machine: str, label: str, values: Sequence[tuple[Campaign, Point]]) -> Series:
    points = tuple(point for _, point in values)
    if len(points) < 2 * LEAST_SEGMENT:
        reason = f"{len(points)} campaigns, and a change needs {LEAST_SEGMENT} on each side"
        return Series(machine, label, points, (), reason)
    logs = [math.log(point.value) for point in points]
    places = change_points(logs)
    edges = [0, *(one.place for one in places), len(points)]
    means = [math.fsum(logs[a:b]) / (b - a) for a, b in pairwise(edges)]
    steps = []
    for number, one in enumerate(places):
        change = math.exp(means[number + 1] - means[number]) - 1.0
        if abs(change) < _LEAST_CHANGE:
            continue
        before, after = (values[place][0].machine for place in (one.place - 1, one.place))
        point = points[one.place]
        steps.append(
            Step(point.campaign, point.utc, change, one.p, machine_differences(before, after))
        )
    return Series(machine, label, points, tuple(steps))


def machine_differences(before: Machine, after: Machine) -> tuple[str, ...]:
    """`kernel: 6.1.0 -> 6.12.9`, of all that describes the machine and its tools."""
    found = [
        f"{field.name}: {one} -> {other}"
        for field in fields(Machine)
        if field.name not in (*_IDENTITY, "tools", "programs", "missing")
        and (one := getattr(before, field.name)) != (other := getattr(after, field.name))
    ]
    old, new = ({tool.name: tool.version for tool in m.tools} for m in (before, after))
    found += [
        f"{name}: {old.get(name, 'none')} -> {new.get(name, 'none')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    return tuple(found)
