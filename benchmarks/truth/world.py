"""A world to measure: sites (a machine with a drive), whose true values are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eeio.statistics.stopping import LENGTHS_S

Floats = npt.NDArray[np.float64]

METRICS = ("bandwidth", "system", "device")
"""What a run gives, in this order wherever an array has them: logarithms."""
POWERS = np.array([0.0, 1.0, 1.0])

WITHIN_SHARE = 0.25
"""Of the variance between whole runs: what is chance within a run, which a cut run averages less.
Assumed for bandwidth, whose course is published by nobody; for power the courses tell it."""


@dataclass(frozen=True)
class Experiment:
    """`whole_s` is how long a run lasts that nothing cuts; `is_cut` whether a
    pilot may."""

    id: str
    operation: str
    spatiality: str
    request_size_bytes: int
    buffer: str
    complete_s: float
    is_cut: bool


@dataclass(frozen=True)
class Draws:
    """Runs of each experiment, drawn before anybody runs them, so that each protocol meets the
    same chance. `complete` has the logarithms by experiment, run and metric, without drift; `cut`
    what the first LENGTHS_S seconds are off them, by experiment, run, length and metric."""

    complete: Floats
    cut: Floats


@dataclass(frozen=True)
class Site:
    """`truth` has by experiment and metric the mean logarithm of whole runs, `medians` the medians:
    tests ask for the one, the guideline for the other. `drift(hour)` is the logarithm by which
    powers are off then, around 0 over the time of a fixed campaign; an adaptive one begins at an
    hour up to `latest_start_h`. `settled_s` are the pauses that settling takes."""

    name: str
    machine: str
    drive: str
    experiments: tuple[Experiment, ...]
    truth: Floats
    medians: Floats
    draw: Callable[[np.random.Generator, int], Draws]
    drift: Callable[[float], Floats]
    latest_start_h: float
    settled_s: Sequence[float]


def within_runs(
    rng: np.random.Generator, deviation: Floats, complete_s: Sequence[float], runs: int
) -> Floats:
    """What the first seconds of a run are off the whole by chance that has no memory: by
    experiment, run and length. `deviation` is that of whole runs; WITHIN_SHARE of its square is
    chance within them. Lengths that are no shorter than the whole are off by nothing."""
    ends = np.array([0.0, *LENGTHS_S])
    off = np.zeros((len(complete_s), runs, len(LENGTHS_S)))
    for place, complete in enumerate(complete_s):
        edges = np.unique(np.append(np.minimum(ends, complete), complete))
        lasts = np.diff(edges)
        # Variance of the mean of s seconds: share x deviation^2 x whole / s.
        scale = np.sqrt(WITHIN_SHARE * complete / lasts) * deviation[place]
        parts = rng.standard_normal((runs, len(lasts))) * scale
        sums = np.cumsum(parts * lasts, axis=1)
        mean = sums[:, -1] / complete
        for number, length in enumerate(LENGTHS_S):
            if length < complete:
                at = int(np.searchsorted(edges[1:], length))
                off[place, :, number] = sums[:, at] / length - mean
    return off
