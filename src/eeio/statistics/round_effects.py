"""Common effects of a campaign's rounds: a machine that becomes warm increases all power.

The logarithm of a value is its experiment's level, its round's effect and chance. Levels and
effects are medians in turn (Tukey 1977, Exploratory Data Analysis, chapter 11: median polish), for
one experiment of two modes must not move the others.

The effect removed from an experiment comes only from the others of the round. Including its value,
a round of few would draw that value to its level: the spread shrinks, and intervals contain the
true value in 90 % of cases instead of 95 % (benchmarks/round_effects.py,
docs/explanation/statistics.md).
"""

import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FEWEST = 2
"""A round of fewer experiments gives no effect and uses that of the round before it. Two are
enough: if all others have stopped, one other experiment shows later drift better than none
(benchmarks/round_effects.py)."""

Series = tuple[str, str]
"""An experiment, and which of the values of its runs: its phase."""

_MOST_TURNS = 50
_STILL = 1e-9


@dataclass(frozen=True)
class RoundEffects:
    """Shares, as logarithms. `common` is the effect of each round, around 0 over all values; `of`
    contains, by series and round, the effect to remove from it."""

    common: Mapping[int, float]
    of: Mapping[Series, Mapping[int, float]]

    @property
    def largest(self) -> tuple[int, float] | None:
        """The round whose common effect is farthest from 0, and the effect; None without rounds."""
        return max(self.common.items(), key=lambda item: abs(item[1]), default=None)


def round_effects(logs: Mapping[Series, Mapping[int, float]]) -> RoundEffects:
    """`logs` has by series and round the logarithm of its value."""
    in_round: dict[int, list[Series]] = {}
    for series, values in logs.items():
        for number in values:
            in_round.setdefault(number, []).append(series)
    rounds = sorted(in_round)
    enough = {r for r in rounds if len({experiment for experiment, _ in in_round[r]}) >= FEWEST}
    effects, rest = _polished(logs, rounds, enough)
    middle = 0.0
    if count := sum(map(len, in_round.values())):
        middle = sum(effects[r] * len(in_round[r]) for r in rounds) / count
    by_others = _by_others(rounds, enough, rest)
    return RoundEffects(
        {r: effects[r] - middle for r in rounds},
        {
            series: {r: by_others[series[0]][r] - middle for r in values}
            for series, values in logs.items()
        },
    )


def _polished(
    logs: Mapping[Series, Mapping[int, float]], rounds: Sequence[int], enough: set[int]
) -> tuple[dict[int, float], dict[int, dict[Series, float]]]:
    """The effect of each round, and by round and series the logarithm without its level."""
    effects = dict.fromkeys(rounds, 0.0)
    rest: dict[int, dict[Series, float]] = {}
    for _ in range(_MOST_TURNS):
        rest = {number: {} for number in rounds}
        for series, values in logs.items():
            if values:
                level = statistics.median(value - effects[r] for r, value in values.items())
                for number, value in values.items():
                    rest[number][series] = value - level
        before, effects, last = effects, {}, 0.0
        for number in rounds:
            if number in enough:
                last = statistics.median(rest[number].values())
            effects[number] = last
        if all(abs(effects[r] - before[r]) < _STILL for r in rounds):
            break
    return effects, rest


def _by_others(
    rounds: Sequence[int], enough: set[int], rest: Mapping[int, Mapping[Series, float]]
) -> dict[str, dict[int, float]]:
    """By experiment and round: the median of the others' residuals."""
    own: dict[str, dict[int, list[float]]] = {}
    for number in rounds:
        for (experiment, _), value in rest[number].items():
            own.setdefault(experiment, {}).setdefault(number, []).append(value)
    ordered = {r: sorted(rest[r].values()) for r in enough}
    effects: dict[str, dict[int, float]] = {}
    for experiment, values in own.items():
        last = 0.0
        effects[experiment] = {}
        for number in rounds:
            if number in enough:
                last = _median_without(ordered[number], values.get(number, []))
            effects[experiment][number] = last
    return effects


def _median_without(ordered: Sequence[float], own: Sequence[float]) -> float:
    """The median of the sorted values but these of them."""
    gone: list[int] = []
    for value in sorted(own):
        place = bisect_left(ordered, value)
        gone.append(max(place, gone[-1] + 1) if gone else place)
    n = len(ordered) - len(gone)

    def at(place: int) -> float:
        for one in gone:
            place += one <= place
        return ordered[place]

    return (at((n - 1) // 2) + at(n // 2)) / 2
