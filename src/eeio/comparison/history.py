"""The history of a suite: each experiment's values over campaigns, and when they changed."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

from eeio.analysis.metrics import METRICS, named
from eeio.comparison.campaigns import named_cells
from eeio.comparison.cells import (
    J_PER_GB,
    OF_EFFICIENCY,
    OF_POWER,
    Cell,
    why_energy_unsure,
    without_unsure_energy,
)
from eeio.comparison.changes import PLACE, What, by_what
from eeio.record.run import Machine
from eeio.record.store import Campaign
from eeio.statistics.change_points import LEAST_VALUES, change_points

_IDENTITY = ("hostname", "drive_id", "drive_label")
_LEAST_CHANGE = 0.01
"""Smaller changes are not worth an alarm, however sure they are."""


@dataclass(frozen=True)
class Point:
    """The median of one campaign."""

    campaign: str
    utc: str
    value: float
    unsure: str | None = None
    """Why it is compared with no other meter's: its energy is not known well enough."""


@dataclass(frozen=True)
class LeftOut:
    """A campaign without a value of an experiment, and why."""

    campaign: str
    experiment: str
    reason: str


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
    left_out: tuple[LeftOut, ...] = ()


_Place = tuple[str, str, str, What]
"""Machine, drive, power domain with its meter, experiment."""


def _place_of(campaign: Campaign, experiment: What, cell: Cell, key: str) -> _Place:
    """Another drive is another series, and energy of another domain or by another meter."""
    domain, meter = next(iter(cell.meters.items()), ("", ""))
    source = ""
    if key in OF_EFFICIENCY and domain:
        source = f"{domain} by {meter}"
    # The number of a loop device is another one each time.
    drive = re.sub(r"^(loop|nbd|zram)\d+$", r"\1", campaign.machine.drive_name)
    return campaign.machine.hostname, drive, source, experiment


def _distinguish(labels: dict[_Place, str]) -> None:
    """Adds what tells several series of one experiment apart: the drive, and the source."""
    kinds: dict[tuple[object, object], list[_Place]] = {}
    for place in labels:
        kinds.setdefault((place[0], place[3]), []).append(place)
    for places in kinds.values():
        drives, sources = {place[1] for place in places}, {place[2] for place in places}
        for place in places:
            drive = ""
            if len(drives) > 1:
                drive = place[1]
            source = ""
            if len(sources) > 1:
                source = place[2]
            labels[place] = ", ".join(filter(None, (labels[place], drive, source)))


def history(suite: str, campaigns: Sequence[Campaign], metric: str | None = None) -> History:
    """Of campaigns of one suite. `metric` is the name of one that `compare` gates; without it J/GB,
    or MB/s where no campaign has energy."""
    ordered = sorted(campaigns, key=lambda campaign: campaign.design.created_utc)
    cells = named_cells(ordered)
    key = J_PER_GB
    if metric is not None:
        key = named(metric).key
    if metric is None and not any(cell.known(key) for of_one in cells for cell in of_one):
        key = named("MB/s").key
    points: dict[_Place, list[tuple[Campaign, Point]]] = {}
    labels: dict[_Place, str] = {}
    left_out: list[LeftOut] = []
    for campaign, of_one in zip(ordered, cells, strict=True):
        for experiment, measured in by_what(of_one).items():
            # One meter measured all campaigns of a series, so its uncertainty is no change.
            cell = without_unsure_energy(measured, math.inf)
            label = cell.label(PLACE, tool=True)
            value = cell.known(key)
            if value is None or value <= 0:
                reason = cell.why(key) or f"no {named_by(key)}"
                left_out.append(LeftOut(campaign.name, label, reason))
                continue
            unsure = None
            if key in OF_POWER:
                unsure = why_energy_unsure(measured)
            place = _place_of(campaign, experiment, cell, key)
            labels.setdefault(place, label)
            point = Point(campaign.name, campaign.design.created_utc, value, unsure)
            points.setdefault(place, []).append((campaign, point))
    _distinguish(labels)
    return History(
        suite=suite,
        metric=named_by(key),
        campaigns=tuple(campaign.name for campaign in ordered),
        series=tuple(_series(place[0], labels[place], values) for place, values in points.items()),
        left_out=tuple(left_out),
    )


def named_by(key: str) -> str:
    """The name of the metric with that key."""
    return next(known.name for known in METRICS if known.key == key)


def _series(machine: str, label: str, values: Sequence[tuple[Campaign, Point]]) -> Series:
    points = tuple(point for _, point in values)
    if len(points) < LEAST_VALUES:
        reason = f"{len(points)} campaigns; no change can be sure in fewer than {LEAST_VALUES}"
        return Series(machine, label, points, (), reason)
    logs = [math.log(point.value) for point in points]
    places = change_points(logs)
    edges = [0, *(position.place for position in places), len(points)]
    means = [math.fsum(logs[a:b]) / (b - a) for a, b in pairwise(edges)]
    steps = []
    for number, position in enumerate(places):
        change = math.exp(means[number + 1] - means[number]) - 1.0
        if abs(change) < _LEAST_CHANGE:
            continue
        before, after = (values[place][0].machine for place in (position.place - 1, position.place))
        point = points[position.place]
        steps.append(
            Step(point.campaign, point.utc, change, position.p, machine_differences(before, after))
        )
    return Series(machine, label, points, tuple(steps))


def machine_differences(before: Machine, after: Machine) -> tuple[str, ...]:
    """`kernel: 6.1.0 -> 6.12.9`, of all that describes the machine and its tools."""
    differences = []
    for field in fields(Machine):
        if field.name not in (*_IDENTITY, "tools", "programs", "limits", "missing") and (
            one := getattr(before, field.name)
        ) != (other := getattr(after, field.name)):
            differences.append(f"{field.name}: {one} -> {other}")
    old, new = ({tool.name: tool.version for tool in m.tools} for m in (before, after))
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            differences.append(f"{name}: {old.get(name, 'none')} -> {new.get(name, 'none')}")
    return tuple(differences)
