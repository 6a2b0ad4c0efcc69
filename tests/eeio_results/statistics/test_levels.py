"""Two levels are found, and ordinary samples have one."""

import numpy as np
import pytest

from eeio.statistics.levels import two_levels


@pytest.mark.parametrize(("n", "most"), [(6, 1 / 60), (8, 1 / 250), (20, 1 / 1000)])
def test_ordinary_samples_have_one_level(n: int, most: float) -> None:
    draw = np.random.default_rng(1)
    count = 10_000
    for samples in (
        draw.lognormal(0.0, 0.3, (count, n)),
        np.exp(0.3 * draw.standard_t(3, (count, n))),
        np.exp(draw.uniform(0.0, 1.0, (count, n))),
        np.exp(draw.exponential(0.3, (count, n))),
    ):
        assert sum(two_levels(sample.tolist()) is not None for sample in samples) <= most * count


def test_two_levels_with_noise_of_one_per_cent_are_found() -> None:
    draw = np.random.default_rng(2)
    for _ in range(1000):
        low, high = 80 * draw.lognormal(0, 0.01, 3), 100 * draw.lognormal(0, 0.01, 5)
        found = two_levels([*high, *low])
        if found is not None:
            assert found == (sorted(low), sorted(high))
    assert two_levels([100, 101, 99, 80, 81, 79]) == ([79, 80, 81], [99, 100, 101])


@pytest.mark.parametrize("values", [
    [100, 101, 99, 80, 81],  # too few
    [100, 101, 99, 100, 102, 50],  # an outlier is no level
    [100, 101, 99, 97, 98, 96.5],  # a difference that does not matter
    [100, 101, 99, 0.0, 0.0, 0.0],
    [],
])  # fmt: skip
def test_other_samples(values: list[float]) -> None:
    assert two_levels(values) is None
