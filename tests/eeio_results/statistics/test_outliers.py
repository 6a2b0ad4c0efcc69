"""The scale without outliers, against samples of a known one."""

import numpy as np
import pytest

from eeio.statistics.outliers import outlier_p_values, robust_scale


@pytest.mark.parametrize("n", [*range(2, 14), 20, 31])
def test_the_scale_of_normal_values_is_one(n: int) -> None:
    """Rousseeuw and Croux's factors for small samples make its mean 1."""
    samples = np.random.default_rng(n).standard_normal((4000, n))
    assert np.mean([robust_scale(sample) for sample in samples]) == pytest.approx(1.0, abs=0.04)


def test_an_outlier_does_not_change_the_scale_much() -> None:
    values = list(np.random.default_rng(1).normal(100.0, 2.0, 40))
    plain = robust_scale(values)
    assert robust_scale([*values[:-4], 1e6, 1e6, 1e6, 1e6]) < 1.5 * plain
    assert robust_scale([5.0, 5.0, 5.0]) == 0.0
    with pytest.raises(ValueError, match="1 values"):
        robust_scale([1.0])


@pytest.mark.parametrize("n", [8, 20])
def test_one_of_a_hundred_normal_values_has_a_p_below_1_percent(n: int) -> None:
    samples = np.random.default_rng(n).standard_normal((1500, n))
    found = np.array([outlier_p_values(list(sample)) for sample in samples]).ravel()
    assert 0.004 < np.mean(found < 0.01) < 0.03
