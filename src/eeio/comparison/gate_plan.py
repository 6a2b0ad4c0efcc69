"""How many repetitions the gate needs, by the spread of a campaign that was run.

The question is that of `comparison/gate.py`: the same test, metric and adjustment over the same
experiments, each against itself in a later campaign. One experiment is worse by the detectable
change, the others did not change.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr, stdtrit

from eeio.comparison.cells import Cell, why_energy_unsure
from eeio.comparison.changes import PLACE, doubt
from eeio.comparison.gate import (
    ALPHA,
    POWER_OF_TEST,
    Side,
    check_shares,
    headline,
    log_change,
    pairs,
    why_not_tested,
)
from eeio.comparison.precision import log_variance
from eeio.errors import EeioError
from eeio.statistics.decision import MOST_REPETITIONS, least_repetitions
from eeio.statistics.moderation import moderated

LEAST_POWER = 0.85
"""Of a change of the noisiest experiment: the earlier campaign shows one of many as noisier than it
is, so that 9 of 10 for it would be 97 of 100 for most."""
_QUANTILES = (np.arange(400) + 0.5) / 400


@dataclass(frozen=True)
class Unanswered:
    """An experiment that the gate could not decide with any number of repetitions."""

    experiment: str
    reason: str


@dataclass(frozen=True)
class GatePlan:
    """`repetitions` of each side with which the gate finds the change `detect` of one of its
    `experiments` in 9 of 10 campaigns, whichever it is, and in 85 of 100 if it is the noisiest;
    None: more than 1000, or no experiment can be tested."""

    metric: str
    share: float
    detect: float
    experiments: int
    repetitions: int | None
    without_answer: tuple[Unanswered, ...]


def gate_plan(earlier: Side, share: float, metric: str | None, detect: float) -> GatePlan:
    """Raises EeioError for shares that no result could decide, and where no experiment has the
    metric."""
    metric = metric or headline(earlier.cells)
    check_shares(metric, share, detect)
    compared = [(cell, key) for cell, _, key in pairs(earlier, earlier, metric)]
    if not compared:
        raise EeioError(f"--fail-if: no experiment of {earlier.name} has {metric}")
    tested: list[tuple[Cell, str]] = []
    without: list[Unanswered] = []
    for cell, key in compared:
        reason = why_not_tested(cell, cell, key, earlier, earlier)
        if reason is None:
            tested.append((cell, key))
        else:
            without.append(Unanswered(_label(cell), reason))
    needed: list[int] = []
    answered: list[tuple[float, float]] = []
    """How far the change exceeds the tolerated one, and the variance; of each experiment."""
    usual = level = 0.0
    if tested:
        samples = [cell.values(key) for cell, key in tested]
        variances = moderated(list(map(log_variance, samples)), [len(s) - 1 for s in samples])
        usual, level = statistics.median(variances), ALPHA / len(tested)
        beyond = log_change(metric, detect) - log_change(metric, share)
        for (cell, key), variance in zip(tested, variances, strict=True):
            # The meters may be wrong by this much in any change, however often it is measured.
            clear = beyond - doubt(cell, cell, key)
            unsure = why_energy_unsure(cell)
            if unsure is not None and clear <= 0:
                without.append(Unanswered(_label(cell), unsure))
                continue
            least = _least(clear, variance, usual, level)
            if least is None:
                reason = f"it needs more than {MOST_REPETITIONS} repetitions"
                without.append(Unanswered(_label(cell), reason))
            else:
                needed.append(least)
                answered.append((clear, variance))
    repetitions = None
    if needed:
        repetitions = _repetitions(max(needed), answered, usual, level)
    return GatePlan(metric, share, detect, len(compared), repetitions, tuple(without))


def _label(cell: Cell) -> str:
    return cell.label(PLACE, tool=True)


def _least(beyond: float, variance: float, usual: float, level: float) -> int | None:
    """The least n of each side with LEAST_POWER; None: more than MOST_REPETITIONS."""

    def finds(n: int) -> bool:
        return power(n, beyond, variance, usual, level) >= LEAST_POWER

    return least_repetitions(finds)


def _repetitions(
    least: int, answered: Sequence[tuple[float, float]], usual: float, level: float
) -> int | None:
    """The least n, from `least` on, with POWER_OF_TEST as the mean over the experiments."""

    def finds(n: int) -> bool:
        powers = [power(n, beyond, variance, usual, level) for beyond, variance in answered]
        return n >= least and statistics.fmean(powers) >= POWER_OF_TEST

    return least_repetitions(finds)


def power(n: int, beyond: float, variance: float, usual: float, level: float) -> float:
    """The probability that the gate finds a change that exceeds the tolerated one by `beyond`, with
    `n` repetitions of each side.

    `variance` is that of the logarithms of the experiment, `usual` that of the median experiment,
    and `level` the one-sided level of one experiment. The mean over the chi-square of the sample's
    variance, of which the test takes no less than that of the median experiment.
    """
    if variance == 0.0 and usual == 0.0:
        if beyond > 0:
            return 1.0
        return 0.0
    degrees = 2 * (n - 1)
    of_row = variance * chdtri(degrees, 1.0 - _QUANTILES) / degrees
    of_median = usual * float(chdtri(degrees, 0.5)) / degrees
    errors = np.sqrt(2.0 / n * np.maximum(of_row, of_median))
    reach = beyond - float(stdtrit(degrees, 1.0 - level)) * errors
    if variance == 0.0:
        return float(np.mean(reach > 0))
    return float(np.mean(ndtr(reach / math.sqrt(2.0 * variance / n))))
