"""Statistics against R's published examples, scipy, scikit-posthocs, and what must always hold."""

import json
import math
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eeio.errors import EeioError
from eeio.statistics import adjustment, bootstrap, normality
from eeio.statistics import rank_tests as pairs

DATA = Path(__file__).parents[2] / "data" / "statistics"

# help(wilcox.test): Hollander and Wolfe (1973), p. 69.
PERMEABILITY_A = (0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46)
PERMEABILITY_B = (1.15, 0.88, 0.90, 0.74, 1.21)
# R's data set airquality, Ozone by month without the missing days.
OZONE = {
    "5": (41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23,
          45, 115, 37),
    "6": (29, 71, 39, 23, 21, 37, 20, 12, 13),
    "7": (135, 49, 32, 64, 40, 77, 97, 97, 85, 10, 27, 7, 48, 35, 61, 79, 63, 16, 80, 108, 20, 52,
          82, 50, 64, 59),
    "8": (39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73,
          76, 118, 84, 85),
    "9": (96, 78, 73, 91, 47, 32, 20, 23, 21, 24, 44, 21, 28, 9, 13, 46, 18, 13, 24, 16, 13, 23,
          36, 7, 14, 30, 14, 18, 20),
}  # fmt: skip

TEN = tuple(100.0 + step * step for step in range(10))
numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
samples = st.lists(numbers, min_size=1, max_size=30)
small_complete = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=12)


# Bootstrap


@pytest.mark.parametrize(("confidence", "least"), [(0.95, 6), (0.9, 5), (0.9375, 5), (0.99, 8)])
def test_an_interval_needs_enough_values_for_its_confidence(confidence: float, least: int) -> None:
    assert bootstrap.smallest_n_for_interval(confidence) == least
    few = bootstrap.median_interval(TEN[: least - 1], confidence)
    assert few.value is not None and few.interval is None
    assert few.reason is not None and f"n = {least - 1}" in few.reason
    assert bootstrap.median_interval(TEN[:least], confidence).interval is not None


def test_resampled_medians_follow_their_exact_distribution() -> None:
    # For odd n, P(median* <= k-th value) = P(Binomial(n, k/n) >= (n+1)/2): Efron 1979, section 3.
    values = [float(k) for k in range(1, 10)]
    replicates = bootstrap.bootstrap_medians(values, 200_000)
    for k in range(1, 9):
        exact = stats.binom.sf(4, 9, k / 9)
        assert np.mean(replicates <= k) == pytest.approx(exact, abs=0.005)


@pytest.mark.parametrize("n", [6, 9, 10, 41])
def test_resampled_medians_are_those_of_the_drawn_rows(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    rows = bootstrap.resample_rows(n, 500, 7, 0)
    direct = np.median(np.sort(values)[rows], axis=1)
    assert np.array_equal(bootstrap.bootstrap_medians(values.tolist(), 500, 7), direct)


def test_intervals_agree_with_scipy() -> None:
    method = "percentile"
    generator = np.random.default_rng(3)
    a, b = generator.lognormal(size=25), 5 + generator.lognormal(size=31)
    options = {"n_resamples": 9999, "vectorized": True, "random_state": 5}
    ours = bootstrap.median_interval(a.tolist(), resamples=9999).interval
    theirs = stats.bootstrap((a,), np.median, method=method, **options).confidence_interval
    assert ours is not None
    # Both are Monte Carlo; the ends are order statistics, which jump from value to value.
    gap = np.diff(np.sort(a)).mean()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=gap)

    def ratio(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.median(x, axis=axis) / np.median(y, axis=axis)

    mine = bootstrap.ratio_interval(a.tolist(), b.tolist(), resamples=9999)
    peer = stats.bootstrap((a, b), ratio, method=method, paired=False, **options)
    assert mine.interval is not None and mine.value == ratio(a, b)
    assert mine.interval.low == pytest.approx(peer.confidence_interval.low, rel=0.05)
    assert mine.interval.high == pytest.approx(peer.confidence_interval.high, rel=0.05)


def test_intervals_are_reproducible_and_depend_on_the_seed() -> None:
    assert bootstrap.median_interval(TEN) == bootstrap.median_interval(TEN)
    a = bootstrap.ratio_interval(TEN, TEN, seed=1)
    assert a == bootstrap.ratio_interval(TEN, TEN, seed=1)
    assert a != bootstrap.ratio_interval(TEN, TEN, seed=2)


def test_the_two_samples_of_a_ratio_are_drawn_independently() -> None:
    # Drawn alike, a sample over itself would be 1 in every resample.
    found = bootstrap.ratio_interval(TEN, TEN)
    assert found.interval is not None and found.interval.low < 1 < found.interval.high


@given(st.lists(st.floats(0.1, 1e6), min_size=6, max_size=20), st.floats(0.01, 100))
def test_intervals_hold_the_range_and_scale_with_the_unit(values: list[float], by: float) -> None:
    found = bootstrap.median_interval(values, resamples=199)
    assert found.interval is not None and found.value is not None
    assert min(values) <= found.interval.low <= found.interval.high <= max(values)
    scaled = bootstrap.median_interval([by * value for value in values], resamples=199)
    assert scaled.interval is not None
    assert scaled.interval.low == pytest.approx(by * found.interval.low, rel=1e-9)
    assert scaled.interval.high == pytest.approx(by * found.interval.high, rel=1e-9)


def test_what_has_no_interval_reports_why() -> None:
    assert bootstrap.median_interval(()).reason == "no values"
    equal = bootstrap.median_interval((0.1,) * 10)
    assert equal.interval is not None and equal.interval.low == equal.interval.high == 0.1
    assert equal.reason is not None and "equal" in equal.reason
    assert bootstrap.ratio_interval(TEN, ()).reason == "no values in the denominator"
    assert bootstrap.ratio_interval(TEN, (0.0,) * 10).reason == "the denominator's median is 0"
    mixed = bootstrap.ratio_interval(TEN, (0.0, *TEN))
    assert mixed.value is not None and mixed.interval is None and mixed.reason is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_named(bad: float) -> None:
    values = (1.0, bad, 3.0, 4.0, 5.0, 6.0)
    for call in (
        lambda: bootstrap.median_interval(values),
        lambda: bootstrap.ratio_interval(TEN, values),
        lambda: normality.normality(values),
        lambda: pairs.mann_whitney(TEN, values),
        lambda: pairs.dunn_p((TEN, values), "none"),
    ):
        with pytest.raises(EeioError, match=r"value 2 of 6 of .* is (nan|-?inf)"):
            call()


@pytest.mark.parametrize("call", [
    lambda: bootstrap.median_interval(TEN, confidence=1.0),
    lambda: bootstrap.median_interval(TEN, resamples=10),
    lambda: pairs.mann_whitney(TEN, TEN, alpha=0),
    lambda: pairs.dunn_p((TEN, TEN), "fdr"),  # type: ignore[arg-type]
    lambda: adjustment.adjust((0.5, 1.5), "holm"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EeioError):
        call()


# Normality


def _dallal_wilkinson(d: float, n: int) -> float:
    """The formula of Dallal and Wilkinson (1986), good for p up to 0.1; n up to 100."""
    return math.exp(
        -7.01256 * d**2 * (n + 2.78019)
        + 2.99587 * d * math.sqrt(n + 2.78019)
        - 0.122119
        + 0.974598 / math.sqrt(n)
        + 1.67997 / n
    )


@pytest.mark.parametrize("n", [5, 8, 10, 20, 50, 100])
def test_lilliefors_agrees_with_the_published_approximation(n: int) -> None:
    compared = 0
    generator = np.random.default_rng(n)
    for _ in range(300):
        found = normality.lilliefors(generator.standard_normal(n) ** (3 if n <= 10 else 1))
        assert found.p is not None and found.statistic is not None
        published = _dallal_wilkinson(found.statistic, n)
        if 0.01 < published < 0.1:
            compared += 1
            assert found.p == pytest.approx(published, rel=0.15, abs=0.003)
    assert compared > 5


def test_lilliefors_beyond_the_simulated_sizes() -> None:
    # A normal sample of 500 whose upper half is stretched until p is near 5 %.
    values = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    values[values > 0] *= 1.268
    found = normality.lilliefors(values.tolist())
    assert found.statistic == pytest.approx(_statistic(values), abs=1e-12)
    nd = found.statistic * (500 / 100) ** 0.49  # Dallal and Wilkinson's rule above 100
    assert found.p == pytest.approx(_dallal_wilkinson(nd, 100), rel=0.25)


def _statistic(values: np.ndarray) -> float:
    return float(stats.kstest(values, "norm", args=(values.mean(), values.std(ddof=1))).statistic)


def test_lilliefors_keeps_its_level_where_the_plain_test_does_not() -> None:
    generator = np.random.default_rng(11)
    tests = [normality.normality(generator.normal(5, 2, 10).tolist()) for _ in range(1500)]
    lilliefors = np.mean([t.lilliefors.p < 0.05 for t in tests])  # type: ignore[operator]
    plain = np.mean([t.kolmogorov_smirnov.p < 0.05 for t in tests])  # type: ignore[operator]
    assert 0.035 < lilliefors < 0.065
    assert plain < 0.005


def test_normality_is_scipys() -> None:
    values = (1.0, 1.1, 1.2, 1.3, 1.35, 1.4, 1.5, 1.6, 1.7, 9.0)
    found = normality.normality(values)
    array = np.array(values)
    peer = stats.kstest(array, "norm", args=(array.mean(), array.std(ddof=1)))
    assert found.kolmogorov_smirnov.statistic == pytest.approx(peer.statistic, abs=1e-12)
    assert found.kolmogorov_smirnov.p == pytest.approx(peer.pvalue, rel=1e-9)
    assert found.lilliefors.statistic == pytest.approx(peer.statistic, abs=1e-12)
    assert found.shapiro_wilk.p == pytest.approx(stats.shapiro(array).pvalue, rel=1e-6)
    # The plain test does not reject here at 1 %, the deciding ones do.
    assert found.kolmogorov_smirnov.p is not None and found.kolmogorov_smirnov.p > 0.01
    for test in (found.lilliefors, found.shapiro_wilk):
        assert test.p is not None and test.p < 0.01


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_normality_does_not_depend_on_the_unit(scale: float) -> None:
    plain = normality.normality(TEN)
    scaled = normality.normality([scale * value for value in TEN])
    for name in ("kolmogorov_smirnov", "lilliefors", "shapiro_wilk"):
        assert getattr(scaled, name).p == pytest.approx(getattr(plain, name).p, rel=1e-6)


def test_normality_that_cannot_be_tested_reports_why() -> None:
    equal = normality.normality((0.1,) * 10)
    assert {equal.lilliefors.reason, equal.shapiro_wilk.reason} == {"all values are equal"}
    for n in range(5):
        found = normality.normality(TEN[:n])
        assert found.lilliefors.p is None and f"n = {n}" in (found.lilliefors.reason or "")
        assert (found.shapiro_wilk.p is None) == (n < 3)
    rounding = normality.normality((0.3, 0.1 + 0.2, 0.3, 0.3, 0.3))
    assert (rounding.lilliefors.p, rounding.shapiro_wilk.p) == (None, None)


# Mann-Whitney


def test_rs_example_without_ties_is_exact() -> None:
    # wilcox.test(x, y): W = 35, p-value = 0.2544
    found = pairs.mann_whitney(PERMEABILITY_A, PERMEABILITY_B)
    assert (found.u, found.method, found.reason) == (35.0, "exact", None)
    assert found.p == pytest.approx(0.2544, abs=5e-5)
    # exactly: 382 of the 3003 ways to choose 5 ranks of 15, on either side
    assert found.p == pytest.approx(2 * 382 / 3003, rel=1e-14)


def test_rs_example_with_ties_is_normal_with_both_corrections() -> None:
    # wilcox.test(Ozone ~ Month, subset = Month %in% c(5, 8)): W = 127.5, p-value = 0.0001208
    found = pairs.mann_whitney(OZONE["5"], OZONE["8"])
    assert (found.u, found.method) == (127.5, "normal")
    assert found.p == pytest.approx(0.0001208, abs=5e-8)
    assert found.significant


def test_mann_whitney_agrees_with_scipy() -> None:
    generator = np.random.default_rng(23)
    for _ in range(150):
        n_a, n_b = generator.integers(1, 70, 2)
        tied = generator.random() < 0.5
        a, b = generator.normal(0, 1, n_a), generator.normal(0.4, 1.5, n_b)
        if tied:
            a, b = a.round(), b.round()
        found = pairs.mann_whitney(a.tolist(), b.tolist())
        distinct = len({*a.tolist(), *b.tolist()}) == n_a + n_b
        method = "exact" if distinct and n_a < 50 and n_b < 50 else "normal"
        if found.p is None:
            assert found.reason == "all values are equal"
            continue
        assert found.method == method
        peer = stats.mannwhitneyu(a, b, method="exact" if method == "exact" else "asymptotic")
        assert found.u == peer.statistic
        assert found.p == pytest.approx(peer.pvalue, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(("n_a", "n_b", "exact"), [(49, 49, "exact"), (50, 10, "normal")])
def test_fifty_values_are_too_many_for_the_exact_test(n_a: int, n_b: int, exact: str) -> None:
    a, b = [float(i) for i in range(n_a)], [i + 0.5 for i in range(n_b)]
    assert pairs.mann_whitney(a, b).method == exact


@given(samples, samples)
def test_swapping_the_samples_mirrors_the_test(a: list[float], b: list[float]) -> None:
    one, other = pairs.mann_whitney(a, b), pairs.mann_whitney(b, a)
    assert one.p == (None if other.p is None else pytest.approx(other.p, rel=1e-12))
    assert one.u is not None and other.u is not None and one.u + other.u == len(a) * len(b)
    assert one.delta is not None and other.delta is not None
    assert one.delta == pytest.approx(-other.delta, abs=1e-12)


@given(samples, samples)
def test_ranks_alone_matter(a: list[float], b: list[float]) -> None:
    plain = pairs.mann_whitney(a, b)
    bent = pairs.mann_whitney([math.atan(v / 1e3) for v in a], [math.atan(v / 1e3) for v in b])
    if len({math.atan(v / 1e3) for v in a + b}) == len(set(a + b)):
        assert (plain.p, plain.u) == (bent.p, bent.u)


@given(small_complete, small_complete)
def test_p_is_a_probability_or_has_a_reason(a: list[float], b: list[float]) -> None:
    found = pairs.mann_whitney(a, b)
    assert (found.p is None) == (found.reason is not None)
    assert found.p is None or 0 < found.p <= 1


def test_smallest_p_and_the_warning_of_small_samples() -> None:
    assert pairs.smallest_p(3, 3) == pytest.approx(0.1)
    assert pairs.smallest_p(4, 4) == pytest.approx(2 / 70)
    assert pairs.smallest_p(100, 101) == pytest.approx(2 / math.comb(201, 100), rel=1e-9)
    assert pairs.smallest_p(10**6, 10**6) == 0.0
    for n in range(1, 8):
        a = [float(i) for i in range(n)]
        found = pairs.mann_whitney(a, [value + 100 for value in a])
        assert found.p == pytest.approx(pairs.smallest_p(n, n))
        assert (found.too_small is not None) == (n < 4)
        assert found.significant == (n >= 4)


def test_ties_do_not_talk_three_repetitions_into_significance() -> None:
    # The normal approximation says 0.047 here; three against three cannot carry that.
    found = pairs.mann_whitney((1, 1, 1), (2, 2, 2))
    assert found.p is not None and found.p < 0.05
    assert found.too_small is not None and "p = 0.1" in found.too_small
    assert not found.significant


def test_empty_and_equal_samples_have_reasons() -> None:
    assert pairs.mann_whitney((), TEN).reason == "sample a is empty"
    assert pairs.mann_whitney(TEN, ()).reason == "sample b is empty"
    equal = pairs.mann_whitney((2.0,) * 5, (2.0,) * 5)
    assert (equal.p, equal.reason, equal.delta) == (None, "all values are equal", 0.0)


# Dunn


def _cases() -> list[dict]:  # type: ignore[type-arg]
    return json.loads((DATA / "dunn.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("adjustment", ["none", "holm", "bonferroni", "benjamini-hochberg"])
def test_dunn_agrees_with_scikit_posthocs(adjustment: adjustment.Adjustment) -> None:
    cases = _cases()
    assert len(cases) == 200
    for case in cases:
        found = pairs.dunn_p(case["groups"], adjustment)
        assert list(found) == list(combinations(range(len(case["groups"])), 2))
        assert list(found.values()) == pytest.approx(case["p"][adjustment], rel=0, abs=1e-12)


def test_dunn_of_two_groups_is_kruskal_wallis() -> None:
    groups = (OZONE["5"], OZONE["8"])
    found = pairs.dunn_p(groups, "none")
    assert found[0, 1] == pytest.approx(stats.kruskal(*groups).pvalue, rel=1e-10)


def test_dunn_of_equal_values_has_no_p() -> None:
    assert pairs.dunn_p(((1.0,) * 4, (1.0,) * 4), "none") == {(0, 1): None}


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjusted_p_values_keep_order_and_only_grow(p_values: list[float]) -> None:
    adjusted = {a: adjustment.adjust(p_values, a) for a in (
        "none", "holm", "bonferroni", "benjamini-hochberg")}  # fmt: skip
    assert adjusted["none"] == tuple(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for found in adjusted.values():
        assert all(p - 1e-12 <= q <= 1 for p, q in zip(p_values, found, strict=True))
        assert all(found[i] <= found[j] for i, j in pairwise(order))
    for index in range(len(p_values)):
        values = [adjusted[a][index] for a in ("benjamini-hochberg", "holm", "bonferroni")]
        assert all(x <= y + 1e-12 for x, y in pairwise(values))


def test_adjustments_of_a_worked_example() -> None:
    # p.adjust(c(0.01, 0.04, 0.03), "holm") is 0.03 0.06 0.06; "BH" 0.03 0.04 0.04
    assert adjustment.adjust((0.01, 0.04, 0.03), "holm") == pytest.approx((0.03, 0.06, 0.06))
    assert adjustment.adjust((0.01, 0.04, 0.03), "benjamini-hochberg") == pytest.approx(
        (0.03, 0.04, 0.04)
    )
    assert adjustment.adjust((0.01, 0.04, 0.03), "bonferroni") == pytest.approx((0.03, 0.12, 0.09))
