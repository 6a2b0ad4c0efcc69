"""Limits and constants of the statistics, each from both of its sides or against another way."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from eeio.errors import EeioError
from eeio.statistics.adjustment import adjust
from eeio.statistics.bootstrap import median_interval, ratio_interval, too_few_for_interval
from eeio.statistics.break_even import break_even
from eeio.statistics.change_points import LEAST_SEGMENT, _best_split, change_points
from eeio.statistics.decision import Rule, change
from eeio.statistics.normality import lilliefors, shapiro_wilk
from eeio.statistics.rank_tests import dunn_p, smallest_p
from eeio.statistics.round_effects import round_effects
from eeio.statistics.stopping import proven_length

RULE = Rule()


# --- medians --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 10))
def test_the_median_is_that_of_numpy(n: int) -> None:
    values = random.Random(n).sample(range(1, 100), n)
    assert median_interval(values).value == np.median(values)
    assert ratio_interval(values, [1.0, 2.0, 5.0, 7.0]).value == np.median(values) / 3.5


def test_an_interval_that_is_missing_names_what_the_range_covers() -> None:
    assert "(the complete range of 3 covers the median with 75 %)" in str(
        too_few_for_interval([3], 0.95)
    )
    assert "the complete range of 5 covers the median with 93.75 %" in str(
        too_few_for_interval([8, 5], 0.95)
    )
    assert "covers the median with 0 %" in str(too_few_for_interval([1], 0.95))
    assert too_few_for_interval([6], 0.95) is None


def test_intervals_are_of_95_percent_unless_another_is_requested() -> None:
    for found in (median_interval(range(9)), ratio_interval(range(1, 9), range(1, 9))):
        assert found.interval is not None and found.interval.confidence == 0.95


# --- tests of samples -----------------------------------------------------------------------------


def test_shapiro_wilk_has_no_p_above_5000_values() -> None:
    values = np.random.default_rng(1).standard_normal(5001).tolist()
    assert shapiro_wilk(values[:5000]).p is not None
    assert shapiro_wilk(values).reason == "n = 5001: p is not accurate beyond 5000 values"


def test_the_smallest_p_of_lilliefors_is_one_of_its_samples() -> None:
    assert lilliefors([0.0] * 30 + [1e6]).p == 1 / 20_001


def test_lilliefors_of_many_values_is_as_if_drawn_for_their_number() -> None:
    """The own null distribution of n = 300, with scipy's statistic."""
    draw = np.random.default_rng(7)
    null = []
    for _ in range(1500):
        sample = draw.standard_normal(300)
        null.append(stats.kstest((sample - sample.mean()) / sample.std(ddof=1), "norm").statistic)
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal(300)
        values = values + (0.12 + 0.12 * seed) * values**2
        result = lilliefors(values.tolist())
        assert result.statistic is not None
        assert result.p == pytest.approx(np.mean(np.array(null) >= result.statistic), abs=0.04)


@pytest.mark.parametrize(("n_a", "n_b"), [(3, 3), (100, 99), (100, 100), (101, 100), (3, 300)])
def test_the_smallest_p_is_that_of_all_orders(n_a: int, n_b: int) -> None:
    assert smallest_p(n_a, n_b) == pytest.approx(2.0 / math.comb(n_a + n_b, n_a), rel=1e-9)


def test_samples_and_p_values_are_counted_from_one_in_messages() -> None:
    with pytest.raises(EeioError, match="sample 2"):
        dunn_p([[1.0, 2.0], [1.0, math.nan]], "holm")
    with pytest.raises(EeioError, match=r"p-value 2 is 1\.5"):
        adjust([0.1, 1.5], "holm")


# --- decisions ------------------------------------------------------------------------------------


def test_a_direction_of_constants_is_certain_beyond_the_floor_only() -> None:
    assert change([2.0] * 3, [2.0] * 3, RULE).p_direction == 1.0
    assert change([2.0] * 3, [2.01] * 3, RULE).p_direction == 1.0
    assert change([2.0] * 3, [2.03] * 3, RULE).p_direction == 0.0


def test_a_difference_is_in_percent_of_the_value_before() -> None:
    found = change([100.0, 101.0, 99.5], [110.0, 111.0, 109.0], RULE)
    assert found.ratio is not None and found.interval is not None
    assert found.percent == pytest.approx(100.0 * (found.ratio - 1.0))
    assert found.interval_percent == pytest.approx([100.0 * (e - 1.0) for e in found.interval])


@pytest.mark.parametrize("noise", [0.005, 0.01, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("seed", range(12))
def test_the_repetitions_needed_are_the_fewest_that_decide(noise: float, seed: int) -> None:
    draw = random.Random(seed)
    before = [math.exp(draw.gauss(0.0, noise)) for _ in range(4)]
    after = [1.03 * math.exp(draw.gauss(0.0, noise)) for _ in range(4)]
    found = change(before, after, RULE)
    logs = [np.log(before), np.log(after)]
    size = abs(logs[1].mean() - logs[0].mean())
    variance = logs[0].var(ddof=1) + logs[1].var(ddof=1)

    def decides(n: int) -> bool:
        error, degrees = math.sqrt(variance / n), 2 * n - 2
        higher = size - math.log(1.01) > stats.t.ppf(0.975, degrees) * error
        return bool(higher or math.log(1.05) - size > stats.t.ppf(0.95, degrees) * error)

    expected = next((n for n in range(4, 1001) if decides(n)), None)
    assert found.answer != "open" or found.needed == max(expected or 0, 5)


@pytest.mark.parametrize("indifference", [1.0, 1.5])
def test_an_indifference_is_below_one(indifference: float) -> None:
    with pytest.raises(EeioError, match="0 <= floor < indifference < 1"):
        Rule(indifference, 0.01)


@pytest.mark.parametrize("floor", [-0.01, 1.0, 1.5])
def test_a_floor_of_lengths_is_a_share(floor: float) -> None:
    with pytest.raises(EeioError, match="give a share from 0 to below 1"):
        proven_length({10.0: {"power_w": 5.0}}, {"power_w": 5.0}, floor)


# --- pauses ---------------------------------------------------------------------------------------


def noisy_line(saved_w: float, cost_j: float, noise_j: float) -> list[tuple[float, float]]:
    draw = random.Random(5)
    pauses = [10.0, 20.0, 30.0, 40.0, 60.0]
    return [(x, saved_w * x - cost_j + draw.gauss(0.0, noise_j)) for x in pauses]


@pytest.mark.parametrize("saved_w", [0.4, 3.0])
def test_at_the_ends_of_the_interval_the_line_is_at_its_limit(saved_w: float) -> None:
    """Fieller's interval are the pauses whose saving is within t standard errors of 0."""
    pairs = noisy_line(saved_w, 25.0 * saved_w, 2.0 * saved_w)
    found = break_even(pairs)
    assert found.reason is None and found.low_s is not None and found.high_s is not None
    x, y = np.array(pairs).T
    line = stats.linregress(x, y)
    rest = y - line.intercept - line.slope * x
    variance = float(rest @ rest) / (len(x) - 2)
    for end_s in (found.low_s, found.high_s):
        error = math.sqrt(
            variance * (1 / len(x) + (end_s - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
        )
        saved = abs(line.intercept + line.slope * end_s)
        assert saved == pytest.approx(stats.t.ppf(0.975, len(x) - 2) * error, rel=1e-6)


# --- changes over time ----------------------------------------------------------------------------


def energy_statistic(series: Sequence[float], place: int) -> float:
    """Of Szekely and Rizzo: twice the mean distance between both parts, less those within."""
    a, b = np.array(series[:place]), np.array(series[place:])

    def mean(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.abs(x[:, None] - y[None, :]).mean())

    return len(a) * len(b) / len(series) * (2.0 * mean(a, b) - mean(a, a) - mean(b, b))


def test_a_change_is_where_the_energy_statistic_is_largest() -> None:
    for seed in range(6):
        draw = np.random.default_rng(seed)
        series = [*draw.normal(10.0, 1.0, 12 + 4 * seed), *draw.normal(13.0, 1.5, 34 - 4 * seed)]
        best = max(
            range(LEAST_SEGMENT, len(series) - LEAST_SEGMENT + 1),
            key=lambda k: energy_statistic(series, k),
        )
        found = change_points(series, 0.05, 199)
        assert best in [one.place for one in found]


def test_the_statistic_of_a_change_is_the_energy_distance() -> None:
    for seed in range(4):
        series = np.random.default_rng(seed).normal(10.0, 2.0, 17)
        statistic, place = _best_split(series)
        assert statistic == pytest.approx(energy_statistic(series.tolist(), place))


def test_either_side_of_a_change_has_three_values() -> None:
    for place in (1, 2):
        series = [50.0] * place + [10.0 + 0.01 * n for n in range(40)]
        for one in change_points(series, 0.05, 199):
            assert 3 <= one.place <= len(series) - 3
    three = [50.0, 50.1, 50.2, *(10.0 + 0.01 * n for n in range(40))]
    assert change_points(three, 0.05, 199)[0].place == 3


def test_the_smallest_p_of_a_change_is_that_of_no_order_as_extreme() -> None:
    (one,) = change_points([10.0 + 0.1 * (n % 3) for n in range(20)] + [20.0] * 20)
    assert (one.place, one.p) == (20, 1 / 2000)


# --- rounds ---------------------------------------------------------------------------------------


def test_the_effect_on_an_experiment_is_the_median_of_all_others() -> None:
    """Of experiments with several phases none of which counts; each may be equal to another's."""
    draw = random.Random(2)
    names = [
        (f"e{n}", phase) for n in range(5) for phase in ("read", "write", "mixed")[: 1 + n % 3]
    ]
    # Flat levels: what is left of each value is its deviation from 0 in this round.
    deviation = {name: draw.choice([0.01, 0.02, 0.03]) for name in names}
    logs = {
        name: {r: 5.0 + (deviation[name] if r == 3 else 0.0) for r in range(7)} for name in names
    }
    found = round_effects(logs)
    for name in names:
        others = [deviation[other] for other in names if other[0] != name[0]]
        effect = found.of[name][3] - found.of[name][0]
        assert effect == pytest.approx(np.median(others), abs=1e-12)


def test_a_first_round_of_one_experiment_has_no_effect() -> None:
    logs = {("a", "p"): {1: 1.0, 2: 1.0, 3: 1.0}, ("b", "p"): {2: 2.0, 3: 2.0}}
    assert round_effects(logs).common == {1: 0.0, 2: 0.0, 3: 0.0}
