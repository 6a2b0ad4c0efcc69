"""The effects of rounds, and that an experiment's own value is not in its own."""

import random
import statistics

import pytest

from eeio.statistics.round_effects import Series, round_effects

Logs = dict[Series, dict[int, float]]


def made(levels: dict[str, float], effects: dict[int, float]) -> Logs:
    return {
        (name, "read"): {r: level + effect for r, effect in effects.items()}
        for name, level in levels.items()
    }


LEVELS = {"a": 1.0, "b": 4.0, "c": -2.0, "d": 0.5}
RISING = {1: 0.00, 2: 0.01, 3: 0.02, 4: 0.05}


def test_what_all_share_is_found_completely() -> None:
    found = round_effects(made(LEVELS, RISING))
    assert found.common == pytest.approx({r: e - 0.02 for r, e in RISING.items()})
    assert all(of == pytest.approx(found.common) for of in found.of.values())
    assert found.largest == (4, pytest.approx(0.03))


def test_what_is_left_after_it_has_no_effect_more() -> None:
    logs = made(LEVELS, RISING)
    found = round_effects(logs)
    left = {s: {r: v - found.of[s][r] for r, v in values.items()} for s, values in logs.items()}
    assert round_effects(left).common == pytest.approx(dict.fromkeys(RISING, 0.0), abs=1e-9)
    assert all(statistics.pstdev(values.values()) < 1e-9 for values in left.values())


def test_rounds_that_few_have_are_measured_against_the_same_experiments_before() -> None:
    """Only b and c go on; the machine goes on to drift. a's level is not in it."""
    logs = made(LEVELS, RISING)
    for number, effect in ((5, 0.08), (6, 0.10)):
        logs["b", "read"][number] = 4.0 + effect
        logs["c", "read"][number] = -2.0 + effect
    found = round_effects(logs)
    assert found.common[6] - found.common[1] == pytest.approx(0.10)
    assert found.of["b", "read"][5] - found.of["b", "read"][1] == pytest.approx(0.08)


def test_a_round_of_one_experiment_keeps_the_effect_before_it() -> None:
    logs = made(LEVELS, RISING)
    logs["b", "read"][5] = 4.0 + 0.5
    found = round_effects(logs)
    assert found.common[5] == found.common[4]
    assert found.of["b", "read"][5] == found.of["b", "read"][4]


def test_an_outlier_stays_that_of_its_experiment() -> None:
    logs = made(LEVELS, dict.fromkeys(RISING, 0.0))
    logs["a", "read"][2] += 0.3
    found = round_effects(logs)
    assert all(abs(effect) < 1e-9 for effect in found.common.values())
    assert abs(found.of["a", "read"][2]) < 1e-9


def test_no_experiment_shows_its_own_effect_in_none_of_its_phases() -> None:
    """Of two phases of the same runs neither lifts the other's."""
    logs = made(LEVELS, dict.fromkeys(RISING, 0.0))
    logs["a", "write"] = dict(logs["a", "read"])
    for phase in ("read", "write"):
        logs["a", phase][5] = 1.0 + 0.2
    logs["b", "read"][5] = 4.0 + 0.01
    found = round_effects(logs)
    for phase in ("read", "write"):
        assert found.of["a", phase][5] - found.of["a", phase][1] == pytest.approx(0.01)
    assert found.of["b", "read"][5] - found.of["b", "read"][1] == pytest.approx(0.2)


def test_the_others_median_is_that_without_its_own_value() -> None:
    random.seed(11)
    names = [f"e{n}" for n in range(9)]
    logs: Logs = {(n, ""): {r: random.gauss(0, 1) for r in range(4)} for n in names}
    found = round_effects(logs)
    # Levels as they end: the value less what is left, by the common effects of the polish.
    level = {
        n: statistics.median(logs[n, ""][r] - found.common[r] for r in range(4)) for n in names
    }
    for name in names:
        for r in range(4):
            others = [logs[n, ""][r] - level[n] for n in names if n != name]
            assert found.of[name, ""][r] == pytest.approx(statistics.median(others), abs=1e-3)


def test_nothing_has_no_effects() -> None:
    found = round_effects({})
    assert found.common == {} and found.of == {} and found.largest is None
    assert round_effects({("a", ""): {}}).of == {("a", ""): {}}
