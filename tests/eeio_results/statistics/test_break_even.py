"""From which pause on saving pays: the root of a line, with Fieller's interval."""

import random

import pytest

from eeio.statistics.break_even import break_even


def line(pause_s: float, noise: float = 0.0) -> tuple[float, float]:
    """2 W saved in each second, 40 J for standing by and spinning up: from 20 s on it pays."""
    return pause_s, 2.0 * pause_s - 40.0 + noise


def test_the_root_of_an_exact_line() -> None:
    found = break_even([line(10), line(30), line(60)])
    assert found.pause_s == pytest.approx(20.0)
    assert (found.low_s, found.high_s) == (pytest.approx(20.0), pytest.approx(20.0))
    assert (found.saved_w, found.cost_j) == (pytest.approx(2.0), pytest.approx(40.0))
    assert not found.beyond and found.reason is None and found.n == 3


def test_a_root_between_no_measured_pauses_is_reported() -> None:
    assert break_even([line(30), line(60), line(90)]).beyond


def test_the_interval_contains_the_truth_as_often_as_stated() -> None:
    draw = random.Random(7)
    pauses = [10.0, 20.0, 40.0, 80.0] * 3
    inside = 0
    for _ in range(1000):
        found = break_even([line(pause, draw.gauss(0.0, 8.0)) for pause in pauses])
        assert found.low_s is not None and found.high_s is not None
        inside += found.low_s <= 20.0 <= found.high_s
    assert 925 <= inside <= 975  # of 1000, three standard deviations about 950


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([line(10), line(60)], "3 valid pairs"),
        ([line(10)] * 5, "two lengths"),
        ([(10, 5.0), (30, -5.0), (60, 5.0), (90, -4.0)], "does not differ significantly from 0"),
        ([(10, -10.0), (30, -30.0), (60, -60.0)], "it never pays"),
        ([(10, 15.0), (30, 35.0), (60, 65.0)], "a pause of any length"),
    ],
)
def test_what_has_no_break_even_reports_why(pairs: list[tuple[float, float]], message: str) -> None:
    found = break_even(pairs)
    assert found.pause_s is found.low_s is found.high_s is None
    assert found.reason is not None and message in found.reason
