"""The stopping rule's quantile, interval and decision."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eeio.statistics.stopping import spread, t_quantile


@given(
    degrees=st.integers(1, 2000),
    probability=st.sampled_from((0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995)),
)
def test_quantiles_are_scipy_s(degrees: int, probability: float) -> None:
    expected = float(stats.t.ppf(probability, degrees))
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_interval_is_student_s() -> None:
    values = [98.0, 104.0, 101.0, 97.0, 110.0, 93.0, 102.0, 99.0, 105.0, 96.0]
    found = spread(values)
    low, high = stats.t.interval(0.95, len(values) - 1, statistics.fmean(values), stats.sem(values))
    assert found.mean is not None and found.half_width is not None
    assert found.mean * (1 - found.half_width) == pytest.approx(low)
    assert found.mean * (1 + found.half_width) == pytest.approx(high)
    assert found.is_within(0.04) and not found.is_within(0.03)


def test_too_few_values_have_no_interval() -> None:
    assert spread([]).mean is None
    one = spread([5.0])
    assert (one.n, one.mean, one.rsd, one.half_width) == (1, 5.0, None, None)
    assert not one.is_within(math.inf)
    assert spread([0.0, 0.0]).half_width is None
