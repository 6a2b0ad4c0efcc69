"""Replicates by Student's t, where a bootstrap has too few values."""

import math

import numpy as np
import pytest
from scipy import stats

from eeio.statistics.bootstrap import student_replicates
from eeio.statistics.decision import Rule, change

VALUES = [100.0, 104.0, 97.0, 101.0]


def test_their_percentiles_are_students_interval_of_the_mean_logarithm() -> None:
    logs = np.log(VALUES)
    wanted = stats.t.interval(0.95, 3, loc=logs.mean(), scale=stats.sem(logs))
    found = np.log(np.percentile(student_replicates(VALUES, 200_000, 1, 0), (2.5, 97.5)))
    assert found == pytest.approx(wanted, abs=2e-3)


def test_what_belongs_together_is_drawn_together() -> None:
    """Power that follows bandwidth: their ratio has no spread. Another stream is another sample."""
    follows = [2.0 * value for value in VALUES]
    one, two = (student_replicates(v, 2000, 1, 0) for v in (VALUES, follows))
    assert two / one == pytest.approx(np.full(2000, 2.0))
    assert abs(np.corrcoef(one, student_replicates(VALUES, 2000, 1, 1))[0, 1]) < 0.2


def test_equal_values_have_no_width() -> None:
    assert student_replicates([5.0] * 3, 100, 1, 0) == pytest.approx(np.full(100, 5.0))


def test_the_interval_of_a_ratio_of_few_contains_the_truth() -> None:
    """Deviations of 10 and 2 %, four values each; as wide as Welch's, or a little wider."""
    rng = np.random.default_rng(5)
    covered, wider = 0, []
    for _ in range(800):
        a = np.exp(rng.normal(0, 0.10, 4)).tolist()
        b = np.exp(rng.normal(0, 0.02, 4)).tolist()
        ratio = student_replicates(a, 999, 1, 0) / student_replicates(b, 999, 1, 1)
        low, high = np.percentile(ratio, (2.5, 97.5))
        covered += low <= 1 <= high
        welch = change(b, a, Rule()).interval
        assert welch is not None
        wider.append(math.log(high / low) / math.log(welch[1] / welch[0]))
    assert 0.93 <= covered / 800 <= 0.98
    assert 0.95 <= float(np.median(wider)) <= 1.3
