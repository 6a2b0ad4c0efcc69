"""The planned repetitions are those with which the gate finds what it was planned for."""

import math
import random
import statistics
from collections.abc import Sequence

import pytest
from benchmarks.gate_plan_truth import rates, side
from scipy.stats import nct
from scipy.stats import t as student
from tests.eeio_results.comparison.test_changes import around, cell

from eeio.comparison.cells import Cell
from eeio.comparison.gate import Side
from eeio.comparison.gate_plan import GatePlan, Unanswered, gate_plan, power
from eeio.errors import EeioError
from eeio.statistics.moderation import moderated


def planned(cells: Sequence[Cell], share: float, detect: float, metric: str = "J/GB") -> GatePlan:
    return gate_plan(Side("base", cells, []), share, metric, detect)


def test_the_planned_change_is_found_and_no_other_fails() -> None:
    """30 campaigns of 50 experiments: by chance 21 to 30 find what 9 of 10 find."""
    of = rates(noise=0.03, share=0.03, detect=0.08, two_modes=False, campaigns=30, seed=3)
    assert of.found >= 0.7 and of.false <= 0.15
    assert 15 < of.repetitions < 30


def test_more_noise_smaller_changes_and_more_experiments_take_more() -> None:
    sizes = [f"{k} KiB" for k in range(1, 9)]
    quiet = [cell("a", size, around(100, 0.005)) for size in sizes]
    noisy = [cell("a", size, around(100, 0.02)) for size in sizes]

    def n(cells: Sequence[Cell], share: float, detect: float) -> int:
        return planned(cells, share, detect).repetitions or 1000

    assert n(noisy, 0.03, 0.10) > n(quiet, 0.03, 0.10)
    assert n(noisy, 0.03, 0.05) > n(noisy, 0.03, 0.10)
    assert n(noisy, 0.03, 0.10) > n(noisy[:1], 0.03, 0.10)
    assert planned(noisy, 0.03, 0.10).experiments == 8


def test_the_noisiest_experiment_decides() -> None:
    cells = [cell("a", f"{k} KiB", around(100, 0.005)) for k in range(1, 9)]
    alone = planned(cells, 0.03, 0.10).repetitions
    with_noisy = planned([*cells, cell("a", "1 MiB", around(100, 0.08))], 0.03, 0.10).repetitions
    assert alone is not None and with_noisy is not None and with_noisy > 3 * alone


def test_what_no_number_of_repetitions_decides_is_named() -> None:
    cells = [
        cell("a", "1 KiB", around(100, 0.01)),
        cell("a", "2 KiB", [100.0]),
        cell("a", "4 KiB", around(100, 0.01), known=0.2),
        cell("a", "8 KiB", [10, 1000, 10, 900]),
    ]
    found = planned(cells, 0.03, 0.05)
    assert found.repetitions is not None and found.experiments == 4
    place = "sequential read, {}, buffer off, filesystem, fio, file"
    assert set(found.without_answer) == {
        Unanswered(place.format("2 KiB"), "a single repetition has no spread to test with"),
        Unanswered(place.format("4 KiB"), "the energy is known only to ±20 %"),
        Unanswered(place.format("8 KiB"), "it needs more than 1000 repetitions"),
    }
    assert planned(cells[1:2], 0.03, 0.05).repetitions is None
    with pytest.raises(EeioError, match="no experiment of base has p99"):
        planned(cells, 0.03, 0.05, "p99")


def test_power_is_that_of_the_test() -> None:
    """Without the floor of the median experiment it is that of the noncentral t."""
    for n, beyond, level in ((10, 1.0, 0.05), (5, 2.0, 0.01), (30, 0.7, 0.001)):
        degrees = 2 * n - 2
        least = student.ppf(1 - level, degrees)
        exact = 1 - nct.cdf(least, degrees, beyond * math.sqrt(n / 2))
        assert power(n, beyond, 1.0, 0.0, level) == pytest.approx(exact, abs=0.002)
    assert power(10, 1.0, 0.0, 0.0, 0.05) == 1.0
    assert power(10, 0.1, 1.0, 1.0, 0.05) < power(10, 0.1, 1.0, 0.0, 0.05)


def test_samples_of_one_variance_share_it() -> None:
    draw = random.Random(2)
    same = [statistics.variance(draw.gauss(0, 2) for _ in range(5)) for _ in range(200)]
    of_same = moderated(same, [4] * 200)
    assert max(of_same) / min(of_same) < 0.1 * max(same) / min(same)
    assert statistics.median(of_same) == pytest.approx(4, rel=0.2)
    apart = [*same[:20], *(1e4 * value for value in same[20:40])]
    of_apart = moderated(apart, [4] * 40)
    assert min(of_apart[20:]) > 100 * max(of_apart[:20])
    assert moderated([3.0], [2]) == [3.0] and moderated([0.0, 1.0, 1.0], [2] * 3)[0] == 0.0


def test_values_without_noise_need_two() -> None:
    found = gate_plan(side("base", 3, 0.0, False, random.Random(1)), 0.03, "J/GB", 0.05)
    assert found.repetitions == 2 and not found.without_answer
