"""The step of the values of a log."""

import math

import pytest

from eeio_power.csv_log import last_digit
from eeio_power.resolution import product_step_w, written_step_w


@pytest.mark.parametrize(
    ("values", "digit", "step_w"),
    [
        ([], None, 0.0),
        ([math.nan], None, 0.0),
        ([3.0, 5.0, 3.0], None, 1.0),
        ([60.0, 40.0], 1.0, 10.0),
        ([60.0, 40.0], 0.1, 0.1),  # of `60.0` and `40.0`
        ([150.0, 160.0, 40.0], 1.0, 10.0),
        ([150.0, 160.0, 40.0], 0.1, 0.1),
        ([150.0, 160.0, 40.0, 80.0, 90.0], 0.1, 10.0),
        ([148.0, 152.0, 160.0], None, 4.0),
        ([50.12, 65.12, 80.12], None, 0.01),
        ([0.25, 0.5, 1.25, 0.75, 2.0], None, 0.25),
        ([42.13, 57.8], None, 0.01),
        ([50.123456789], None, 0.0),
        # One value does not show more than its digits.
        ([5.0], None, 1.0),
        ([200.0], 1.0, 1.0),
        ([50.0], 0.01, 0.01),
    ],
)
def test_all_values_are_multiples_of_the_step(
    values: list[float], digit: float | None, step_w: float
) -> None:
    assert written_step_w(values, digit) == pytest.approx(step_w)


@pytest.mark.parametrize(
    ("volts", "amperes", "step_w"),
    [
        ([230.0, 230.0], [0.2, 0.3], 23.0),  # the mains' voltage is a nominal one
        ([230.0, 231.0], [0.2, 0.3], 23.1 + 0.3),
        ([5.0], [0.2], 0.5 + 0.2),
    ],
)
def test_the_step_of_a_product_is_that_of_its_factors(
    volts: list[float], amperes: list[float], step_w: float
) -> None:
    for factors in ([volts, amperes], [amperes, volts]):
        assert product_step_w(factors, [None, None]) == pytest.approx(step_w)


@pytest.mark.parametrize(
    ("text", "place"),
    [("50", 1.0), ("50.00", 0.01), ("5,5", 0.1), ("1.5e3", 100.0), ("-2e-2", 0.01)],
)
def test_the_place_of_the_last_digit(text: str, place: float) -> None:
    assert last_digit(text) == pytest.approx(place)
