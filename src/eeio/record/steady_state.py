"""Rounds until a drive is in its steady state, and which of them are its measurement.

All follows from the stored runs and the rule in campaign.json: runs of the rounds before the window
are set aside when a campaign is loaded, so that no table, comparison or plot counts them. The
criterion is that of SNIA's Solid State Storage Performance Test Specification (2.0.2, 2020,
definitions of "steady state" and "measurement window").
"""

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count

from eeio.record.design import Design, SteadyProtocol
from eeio.record.run import Run


@dataclass(frozen=True)
class Steadiness:
    """Of the values of one window. `range_share` is the largest less the smallest value over their
    mean, `slope_share` how far the least-squares line goes from the window's first round to its
    last, over the same; None with fewer than two values, or where their mean is 0."""

    range_share: float | None
    slope_share: float | None

    def within(self, range_share: float, slope_share: float) -> bool:
        """Whether both are at most the shares allowed (0.20 and 0.10 there)."""
        return (
            self.range_share is not None
            and self.slope_share is not None
            and self.range_share <= range_share
            and self.slope_share <= slope_share
        )


def steadiness(values: Sequence[float]) -> Steadiness:
    """Of a window's values, one a round, in their order."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return Steadiness(None, None)
    mean = statistics.fmean(values)
    if mean <= 0:
        return Steadiness(None, None)
    slope = statistics.linear_regression(range(len(values)), values).slope
    return Steadiness((max(values) - min(values)) / mean, abs(slope) * (len(values) - 1) / mean)


_CHANGES = ("write", "mixed")
"""Operations that change a drive's background work."""


@dataclass(frozen=True)
class Tracked:
    """One experiment's bandwidth of each complete round, bytes/s, None where it failed, and how
    steady its last `SteadyProtocol.rounds` are."""

    experiment_id: str
    values: tuple[float | None, ...]
    window: Steadiness
    is_steady: bool


@dataclass(frozen=True)
class State:
    """How far a campaign's drive is. `rounds` are the complete ones; `first` is the first round of
    the window (1 with fewer rounds than it takes)."""

    rounds: int
    first: int
    is_steady: bool
    tracked: tuple[Tracked, ...]

    @property
    def restless(self) -> tuple[Tracked, ...]:
        """Those that are not steady yet."""
        return tuple(tracked for tracked in self.tracked if not tracked.is_steady)


def _complete_rounds(by_round: Mapping[int, Mapping[str, Run]], ids: Set[str]) -> int:
    """How many rounds, from the first one, have a run of every experiment."""
    complete = {number for number, of_round in by_round.items() if of_round.keys() == ids}
    return next(number for number in count() if number + 1 not in complete)


def state(design: Design, rule: SteadyProtocol, runs: Sequence[Run]) -> State:
    """Of all runs of a campaign, in any order."""
    ids = [planned.experiment.id for planned in design.experiments]
    by_round: dict[int, dict[str, Run]] = {}
    for run in runs:
        by_round.setdefault(run.repetition, {})[run.experiment.id] = run
    rounds = _complete_rounds(by_round, set(ids))
    first = max(1, rounds - rule.rounds + 1)
    writing = [p.experiment.id for p in design.experiments if p.experiment.operation in _CHANGES]
    tracked_experiments = []
    for id in writing or ids:
        values = tuple(_bandwidth(by_round[number][id]) for number in range(1, rounds + 1))
        # Ignore experiments that never worked, such as an engine that the kernel lacks.
        if rounds >= rule.rounds and not any(values):
            continue
        window = [value for value in values[first - 1 :] if value is not None]
        steady = steadiness(window if len(window) == rule.rounds else ())
        tracked_experiments.append(
            Tracked(id, values, steady, steady.within(rule.range_share, rule.slope_share))
        )
    is_steady = bool(tracked_experiments) and all(
        tracked.is_steady for tracked in tracked_experiments
    )
    return State(rounds, first, is_steady, tuple(tracked_experiments))


def goes_on(found: State, rule: SteadyProtocol) -> bool:
    """Whether another round is to be run."""
    nothing_works = found.rounds >= rule.rounds and not found.tracked
    return not (found.is_steady or nothing_works) and found.rounds < rule.most_rounds


def parted(design: Design, runs: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs set aside and those that are the measurement; all are, without such a rule."""
    rule = design.protocol.steady
    if rule is None:
        return (), tuple(runs)
    reached = state(design, rule, runs)
    aside = tuple(run for run in runs if run.repetition < reached.first)
    # A round that has begun after the window's last is none yet.
    last = max(reached.rounds, 1)
    over = tuple(run for run in runs if run.repetition > last)
    return (*aside, *over), tuple(run for run in runs if reached.first <= run.repetition <= last)


def why_not_steady(found: State | None) -> str | None:
    """A warning that comes before any figure of a campaign; None if its drive is in its steady
    state, or if the protocol requires none."""
    if found is None or found.is_steady:
        return None
    return (
        f"no steady state after {found.rounds} rounds ({len(found.restless)} of "
        f"{len(found.tracked)} experiments still change): the figures are of rounds "
        f"{found.first} to {max(found.rounds, 1)}"
    )


def _bandwidth(run: Run) -> float | None:
    """Of its valid phases together, by the tool's figure."""
    if run.validity:
        return None
    values = []
    for phase in run.phases:
        if not phase.validity and phase.bandwidth_bytes_per_s is not None:
            values.append(phase.bandwidth_bytes_per_s)
    if values:
        return sum(values)
    return None
