"""Has it changed: a direction, none above a size, or open; against scipy and known truth."""

import math
import random

import pytest
from scipy import stats

from eeio.errors import EeioError
from eeio.statistics.decision import Rule, answered, change

RULE = Rule(indifference=0.05, floor=0.01)


def drawn(seed: int, n: int, middle: float = 1.0, sigma: float = 0.02) -> list[float]:
    draw = random.Random(seed)
    return [middle * math.exp(draw.gauss(0.0, sigma)) for _ in range(n)]


@pytest.mark.parametrize("seed", range(20))
def test_without_a_floor_the_direction_is_welchs(seed: int) -> None:
    a, b = drawn(seed, 7), drawn(seed + 100, 5, 1.03, 0.05)
    found = change(a, b, Rule(floor=0.0))
    logs = [[math.log(x) for x in sample] for sample in (b, a)]
    wanted = stats.ttest_ind(*logs, equal_var=False)
    assert found.p_direction == pytest.approx(wanted.pvalue, rel=1e-9)
    interval = wanted.confidence_interval(0.95)
    assert found.interval == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    limit = math.log1p(0.05)
    one_sided = [
        stats.ttest_ind([x + shift for x in logs[0]], logs[1], equal_var=False, alternative=way)
        for shift, way in ((limit, "greater"), (-limit, "less"))
    ]
    assert found.p_none == pytest.approx(max(t.pvalue for t in one_sided), rel=1e-9)


def test_the_three_answers() -> None:
    before = drawn(1, 8, sigma=0.005)
    assert change(before, drawn(2, 8, 1.10, 0.005), RULE).answer == "higher"
    assert change(before, drawn(3, 8, 0.90, 0.005), RULE).answer == "lower"
    assert change(before, drawn(4, 8, 1.00, 0.005), RULE).answer == "none above"
    still_open = change(drawn(5, 8, sigma=0.1), drawn(6, 8, 1.04, 0.1), RULE)
    assert still_open.answer == "open" and (still_open.needed or 1001) > 8


def test_a_small_difference_however_sure_is_none_that_matters() -> None:
    found = change(drawn(1, 30, sigma=0.001), drawn(2, 30, 1.02, 0.001), RULE)
    assert found.p_direction is not None and found.p_direction < 1e-9
    assert found.answer == "none above"


def test_a_p_adjusted_over_many_questions_decides() -> None:
    found = change(drawn(1, 6, sigma=0.03), drawn(2, 6, 1.10, 0.03), RULE)
    assert found.answer == "higher"
    again = answered(found, 0.2, RULE)
    assert (again.answer, again.p_direction) == ("open", 0.2)
    assert again.needed is not None and again.needed > 6


def test_the_repetitions_that_are_needed_give_an_answer() -> None:
    """Of two samples with the same means and spreads at that number; with one fewer they do not."""
    a, b = [1.0, 1.1] * 4, [1.04, 1.144] * 4
    needed = change(a, b, RULE).needed
    assert needed is not None

    def of(n: int) -> str:
        spread = math.log(1.1) / 2 * math.sqrt(8 / 7)  # of one value of the sample above
        one = spread * math.sqrt((n - 1) / n)
        first = [math.exp(one * (-1) ** k) for k in range(n)]
        return change(first, [x * 1.04 for x in first], RULE).answer

    assert of(needed + needed % 2) != "open"
    assert of(needed - 2 - needed % 2) == "open"


def test_what_cannot_be_recognized() -> None:
    assert change([], [1.0], RULE).reason == "not measured"
    one = change([1.0], [1.2, 1.3], RULE)
    assert (one.answer, one.interval, one.reason) == ("open", None, "n = 1: no spread is known")
    assert one.ratio is not None, "what was measured is told"
    assert change([0.0, 1.0], [1.0, 1.0], RULE).ratio is None
    with pytest.raises(EeioError, match="finite"):
        change([math.nan, 1.0], [1.0, 1.0], RULE)
    equal = change([2.0] * 3, [2.0] * 3, RULE)
    assert (equal.answer, equal.interval) == ("none above", (1.0, 1.0))
    assert change([2.0] * 3, [2.2] * 3, RULE).answer == "higher"


@pytest.mark.parametrize(
    ("indifference", "floor"), [(0.05, 0.05), (0.01, 0.05), (0.0, 0.0), (1.0, 0.0), (0.1, -0.1)]
)
def test_a_rule_that_makes_no_sense_is_rejected(indifference: float, floor: float) -> None:
    with pytest.raises(EeioError, match="0 <= floor < indifference < 1"):
        Rule(indifference, floor)


@pytest.mark.parametrize("n", [4, 6, 10])
def test_error_rates_with_known_truth(n: int) -> None:
    """Of 2000 questions without a difference at most 5 % get a direction, and of 2000 whose
    difference is just the indifference at most 5 % are called none (and a little for chance)."""
    wrong = none = 0
    for seed in range(2000):
        a = drawn(seed, n, sigma=0.03)
        wrong += change(a, drawn(seed + 10**6, n, sigma=0.03), RULE).answer in ("higher", "lower")
        none += change(a, drawn(seed + 10**6, n, 1.05, 0.03), RULE).answer == "none above"
    assert wrong / 2000 < 0.065 and none / 2000 < 0.065
