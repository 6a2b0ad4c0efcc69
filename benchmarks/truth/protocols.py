"""Campaigns of one site: the fixed protocol and the adaptive one, by the product's own rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, POWER, Cell, Measured
from eeio.comparison.drift import without_drift
from eeio.measure.campaign.rounds import Candidate, who_goes_on
from eeio.record.design import Protocol
from eeio.statistics.stopping import LENGTHS_S, proven_length
from eeio.units.sizes import format_size

from .world import METRICS, POWERS, Draws, Experiment, Floats, Site

FIXED_REPETITIONS = 10
FIXED_PAUSE_S = 20.0

Drift = Literal["rounds", "left in"]


@dataclass(frozen=True)
class Campaign:
    """What a campaign gave: its cells, and the seconds of its runs and pauses."""

    cells: tuple[Cell, ...]
    seconds: float
    runs: int


@dataclass(frozen=True)
class Pilot:
    """Lengths by experiment, None for the whole; and what finding them took."""

    lengths: Mapping[str, float | None]
    seconds: float


def fixed(site: Site, draws: Draws, rng: np.random.Generator) -> Campaign:
    """All repetitions of all experiments whole, in one random order."""
    order = [(e, n) for e in range(len(site.experiments)) for n in range(FIXED_REPETITIONS)]
    campaign = _Runs(site, draws, {}, 0.0)
    for place in rng.permutation(len(order)):
        experiment, number = order[int(place)]
        campaign.run(experiment, number, FIXED_PAUSE_S)
    return campaign.ended()


def pilot(site: Site, draws: Draws, run: int, floor: float, pauses: Sequence[float]) -> Pilot:
    """One whole run of each experiment that may be cut. Bandwidth and both powers must agree."""
    lengths: dict[str, float | None] = {}
    seconds = 0.0
    for place, experiment in enumerate(site.experiments):
        if not experiment.is_cut:
            continue
        complete = draws.complete[place, run]
        means = {
            length: dict(zip(METRICS, np.exp(complete + draws.cut[place, run, n]), strict=True))
            for n, length in enumerate(LENGTHS_S)
            if length < experiment.complete_s
        }
        lengths[experiment.id] = proven_length(
            means, dict(zip(METRICS, np.exp(complete), strict=True)), floor
        )
        seconds += experiment.complete_s + pauses[place % len(pauses)]
    return Pilot(lengths, seconds)


def adaptive(
    site: Site,
    draws: Draws,
    protocol: Protocol,
    lengths: Mapping[str, float | None],
    rng: np.random.Generator,
    drift: Drift = "rounds",
) -> Campaign:
    """Rounds until `who_goes_on` names nobody, pauses as they settle."""
    rule = protocol.adaptive
    assert rule is not None
    start_h = float(rng.uniform(0.0, site.latest_start_h)) if site.latest_start_h > 0 else 0.0
    campaign = _Runs(site, draws, lengths, start_h)
    places = {experiment.id: place for place, experiment in enumerate(site.experiments)}
    active: Sequence[str] = tuple(places)
    anchors: tuple[str, ...] = ()
    stopped: Mapping[str, str] = {}
    done = 0
    while active:
        for id in rng.permutation(list(active)):
            campaign.run(places[id], campaign.ran(places[id]), float(rng.choice(site.settled_s)))
        done += 1
        campaign.round += 1
        if done < protocol.repetitions:
            continue
        cells = {cell.experiment_id: cell for cell in campaign.cells()}
        requested = [
            Candidate(
                experiment.id,
                rule.most_repetitions if experiment.is_cut else rule.most_whole,
                campaign.ran(place),
                (cells[experiment.id],),
            )
            for experiment, place in zip(site.experiments, range(len(places)), strict=True)
        ]
        ids, anchors, stopped = who_goes_on(requested, anchors, stopped, rule.precision)
        active = [id for id in places if id in ids]
    ended = campaign.ended()
    if drift == "left in":
        return ended
    return Campaign(tuple(without_drift(ended.cells, campaign.round_of)), ended.seconds, ended.runs)


def truth_of(experiment_truth: Floats) -> dict[str, float]:
    """The mean logarithm of whole runs by the product's metrics."""
    bandwidth, system, device = experiment_truth.tolist()
    return {
        BANDWIDTH: bandwidth,
        POWER["system"]: system,
        POWER["device"]: device,
        EFFICIENCY: bandwidth - system,
    }


@dataclass
class _Runs:
    """A campaign as it goes on."""

    site: Site
    draws: Draws
    lengths: Mapping[str, float | None]
    start_h: float
    seconds: float = 0.0
    round: int = 1
    logs: dict[int, list[Floats]] = field(default_factory=dict)
    orders: dict[int, list[int]] = field(default_factory=dict)
    round_of: dict[int, int] = field(default_factory=dict)

    def ran(self, place: int) -> int:
        return len(self.logs.get(place, ()))

    def run(self, place: int, number: int, pause_s: float) -> None:
        """The drawn run of that number, after a pause."""
        experiment = self.site.experiments[place]
        length = self.lengths.get(experiment.id)
        found = self.draws.complete[place, number].copy()
        if length is not None:
            found += self.draws.cut[place, number, LENGTHS_S.index(length)]
        found += self.site.drift(self.start_h + self.seconds / 3600) * POWERS
        order = len(self.round_of)
        self.round_of[order] = self.round
        self.logs.setdefault(place, []).append(found)
        self.orders.setdefault(place, []).append(order)
        self.seconds += pause_s + (experiment.complete_s if length is None else length)

    def cells(self) -> list[Cell]:
        return [
            _cell(self.site, self.site.experiments[place], np.array(logs), self.orders[place])
            for place, logs in sorted(self.logs.items())
        ]

    def ended(self) -> Campaign:
        return Campaign(tuple(self.cells()), self.seconds, len(self.round_of))


def _cell(site: Site, experiment: Experiment, logs: Floats, orders: Sequence[int]) -> Cell:
    bandwidth, system, device = np.exp(logs).T
    values = {
        BANDWIDTH: bandwidth,
        POWER["system"]: system,
        POWER["device"]: device,
        EFFICIENCY: bandwidth / system,
    }
    return Cell(
        factors={
            "machine": site.machine,
            "device": site.drive,
            "operation": experiment.operation,
            "spatiality": experiment.spatiality,
            "size": format_size(experiment.request_size_bytes),
            "buffer": experiment.buffer,
        },
        figures={
            metric: Measured(tuple(of.tolist()), tuple(orders)) for metric, of in values.items()
        },
        efficiency_of=("system",),
        experiment_id=experiment.id,
    )
