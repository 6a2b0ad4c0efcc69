"""Worlds that are made: distributions, drift and the bias of cut runs, each as large as asked."""

import math
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Literal

import numpy as np

from eeio.statistics.stopping import LENGTHS_S

from .world import METRICS, POWERS, Draws, Experiment, Floats, Site, within_runs

Kind = Literal["log-normal", "heavy tails", "two modes"]
KINDS: tuple[Kind, ...] = ("log-normal", "heavy tails", "two modes")
DRIFTS = (0.0, 0.03, 0.10)
BIASES = (0.0, 0.01, 0.03)

COMPLETE_S = 60.0
FIXED_HOURS = 12 * 10 * 80.0 / 3600
# Effects that a factor may have: none, below the floor, below the indifference, above, far above.
_EFFECTS = (0.0, 0.005, 0.03, 0.07, 0.4)
# Deviations of the logarithm of whole runs, least and most: bandwidth, system, device.
_DEVIATIONS = ((0.003, 0.10), (0.002, 0.03), (0.005, 0.05))
# Of the runs in the upper of two modes, and the share of the deviation that lies between modes.
_UPPER = 0.2
_APART = 0.98
# The median in deviations from the mean: that of the lower mode, but for what lies above.
_MEDIAN = {
    "two modes": -_APART * math.sqrt(_UPPER / (1 - _UPPER))
    + math.sqrt(1 - _APART**2) * NormalDist().inv_cdf(0.5 / (1 - _UPPER))
}
_SETTLED_S = (3.1, 3.1, 3.2, 3.5, 4.0, 5.0)


@dataclass(frozen=True)
class Generator:
    """`drift` is the change of power over the hours of a fixed campaign; `bias` the deviation, over
    experiments, of what the bandwidth of the first 20 s is off that of the whole run. `noise`
    scales the deviations of runs: 0 is a world without chance."""

    kind: Kind
    drift: float
    bias: float
    noise: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.kind}, drift {100 * self.drift:g} %, bias {100 * self.bias:g} %"


def all_generators() -> list[Generator]:
    return [Generator(*one) for one in product(KINDS, DRIFTS, BIASES)]


def made_world(generator: Generator, rng: np.random.Generator) -> list[Site]:
    """Two machines with one drive each, drawn anew each time."""
    return [_site(generator, rng, machine) for machine in ("PC", "MPSoC")]


def _experiments() -> tuple[Experiment, ...]:
    return tuple(
        Experiment(
            f"{operation}-{spatiality}-{size}-{buffer}",
            operation, spatiality, size, buffer, COMPLETE_S, buffer == "off",
        )
        for operation, spatiality, size, buffer in product(
            ("read", "write"), ("sequential", "random"), (32 << 10, 4 << 20), ("off", "on")
        )
        if operation == "write" or buffer == "off"
    )  # fmt: skip


def _site(generator: Generator, rng: np.random.Generator, machine: str) -> Site:
    experiments = _experiments()
    levels = np.array([_levels(experiment) for experiment in experiments], dtype=float)
    effects = rng.choice(_EFFECTS, (levels.shape[1], len(METRICS)))
    effects *= rng.choice((-1.0, 1.0), effects.shape)
    truth = levels @ effects
    low, high = np.log(np.array(_DEVIATIONS)).T
    deviation = generator.noise * np.exp(rng.uniform(low, high, truth.shape))
    off_at_20_s = rng.normal(0.0, generator.bias, len(experiments))
    # What differs lies in the first seconds, so the mean of s seconds is off by 1 / s less its
    # part in the whole.
    shape = np.array([1 / s - 1 / COMPLETE_S for s in LENGTHS_S]) / (1 / 20 - 1 / COMPLETE_S)
    slope = rng.choice((-1.0, 1.0)) * np.log1p(generator.drift) / FIXED_HOURS

    def draw(random: np.random.Generator, runs: int) -> Draws:
        chance = _chance(generator.kind, random, (*truth.shape[:1], runs, len(METRICS)))
        cut = np.stack(
            [
                within_runs(random, deviation[:, m], [COMPLETE_S] * len(experiments), runs)
                for m in range(len(METRICS))
            ],
            axis=-1,
        )
        cut[..., 0] += off_at_20_s[:, None, None] * shape
        return Draws(truth[:, None, :] + chance * deviation[:, None, :], cut)

    def drift(hour: float) -> Floats:
        found: Floats = slope * (hour - FIXED_HOURS / 2) * POWERS
        return found

    return Site(
        f"{machine} disk", machine, "disk", experiments, truth,
        truth + _MEDIAN.get(generator.kind, 0.0) * deviation, draw, drift, 0.0, _SETTLED_S,
    )  # fmt: skip


def _levels(experiment: Experiment) -> tuple[bool, ...]:
    return (
        experiment.operation == "write",
        experiment.spatiality == "random",
        experiment.buffer == "on",
        experiment.request_size_bytes > 1 << 20,
    )


def _chance(kind: Kind, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Mean 0 and deviation 1."""
    if kind == "heavy tails":
        heavy: Floats = rng.standard_t(3, shape) / math.sqrt(3.0)
        return heavy
    if kind == "two modes":
        upper = rng.random(shape) < _UPPER
        apart = np.where(upper, 1 - _UPPER, -_UPPER) / np.sqrt(_UPPER * (1 - _UPPER))
        found: Floats = _APART * apart + math.sqrt(1 - _APART**2) * rng.standard_normal(shape)
        return found
    return rng.standard_normal(shape)
