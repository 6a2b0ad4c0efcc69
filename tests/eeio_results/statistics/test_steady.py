"""The criterion of the steady state, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.record.steady_state import Steadiness, steadiness


@pytest.mark.parametrize(
    ("values", "range_share", "slope_share", "is_steady"),
    [
        # Mean 100, 110 - 90 over it; sum((x - 2)(y - 100)) = -15, over 10, times 4.
        ((100, 110, 90, 105, 95), 0.20, 0.06, True),
        # Mean 106, a straight line: its ends are 12 apart, more than a tenth.
        ((100, 103, 106, 109, 112), 12 / 106, 12 / 106, False),
        # Mean 102, 22 apart: the line is flat, the range is not.
        ((102, 91, 102, 113, 102), 22 / 102, 8.8 / 102, False),
        ((7, 7, 7, 7, 7), 0.0, 0.0, True),
        # The first minutes of an SSD: half the speed in the end.
        ((400, 350, 300, 250, 200), 200 / 300, 200 / 300, False),
    ],
)
def test_by_hand(
    values: tuple[float, ...], range_share: float, slope_share: float, is_steady: bool
) -> None:
    found = steadiness(values)
    assert found.range_share == pytest.approx(range_share)
    assert found.slope_share == pytest.approx(slope_share)
    assert found.within(0.20, 0.10) is is_steady


@pytest.mark.parametrize("values", [(), (5.0,), (0.0, 0.0), (1.0, math.nan), (1.0, math.inf)])
def test_what_shows_nothing_is_not_steady(values: tuple[float, ...]) -> None:
    found = steadiness(values)
    assert found == Steadiness(None, None) and not found.within(1e6, 1e6)


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=8), st.floats(0.01, 100))
def test_shares_have_no_unit_and_no_direction(values: list[float], factor: float) -> None:
    found = steadiness(values)
    for other in ([factor * v for v in values], values[::-1]):
        again = steadiness(other)
        assert again.range_share == pytest.approx(found.range_share, abs=1e-9)
        assert again.slope_share == pytest.approx(found.slope_share, abs=1e-6)
