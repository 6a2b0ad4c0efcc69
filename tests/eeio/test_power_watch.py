"""The live view of `eeio meter watch`."""

import pytest

from eeio.commands.meter.watch import Observed, chart

BARS = "12345678"


def test_bars_run_from_zero_to_the_most() -> None:
    assert chart([0.0, 4.0, 8.0], BARS, 10) == "158"


def test_a_missing_value_is_a_gap_and_no_zero() -> None:
    assert chart([8.0, None, 8.0], BARS, 10) == "8 8"


@pytest.mark.parametrize("values", [[], [None], [0.0]])
def test_nothing_to_scale_by(values: list[float | None]) -> None:
    assert len(chart(values, BARS, 10)) == len(values)


def test_the_last_values_that_fit() -> None:
    assert chart([1.0, 2.0, 8.0, 4.0], BARS, 2) == "85"
    assert chart([1.0], BARS, 0) == chart([1.0], BARS, -3) == ""


def test_least_mean_and_most_of_what_was_observed() -> None:
    seen = Observed()
    assert seen.text() == ""
    for value in (4.0, None, 8.0):
        seen.add(value)
    assert seen.text() == "min 4.00  mean 6.00  max 8.00 W"
