"""Readings around a window, and the steps of counters: each limit from both of its sides."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio_power.meters import Channel
from eeio_power.window_readings import (
    Doubt,
    Stretches,
    absurdity,
    constant_since,
    counter_step_j,
    gap_limit_s,
    indices_around,
    lost_readings,
    possible_w,
    readings_around,
    stretches_around,
    wrap_limit_s,
)

POWER = Channel("plug", "system", "power_w", max_power_w=500.0)
COUNTER = Channel("counter", "package", "energy_j")
NAN = math.nan


def judged(
    powers_w: list[float],
    lengths_s: list[float] | None = None,
    *,
    first_j: float = 1e6,
    channel: Channel = COUNTER,
    native_s: float = 1.0,
    window_s: tuple[float, float] | None = None,
) -> Stretches:
    """The stretches of a counter that is read each second, unless `lengths_s` tell otherwise."""
    times_s, values = [0.0], [first_j]
    for power_w, length_s in zip(powers_w, lengths_s or [1.0] * len(powers_w), strict=True):
        times_s.append(times_s[-1] + length_s)
        values.append(values[-1] + power_w * length_s)
    start_s, end_s = window_s or (0.0, times_s[-1])
    readings = readings_around(channel, times_s, values, start_s, end_s)
    return stretches_around(channel, readings, 1.0, native_s, start_s, end_s)


# --- which readings are looked at -----------------------------------------------------------------


def test_eleven_readings_before_a_window_and_ten_from_its_end_are_looked_at() -> None:
    times_s, values = [float(t) for t in range(60)], [100.0 + t for t in range(60)]
    assert indices_around(times_s, values, 30.5, 35.5) == (20, 46)
    # Failed ones are looked at, but do not count.
    values[25] = values[40] = values[41] = NAN
    assert indices_around(times_s, values, 30.5, 35.5) == (19, 48)
    assert indices_around(times_s, values, 3.5, 57.5) == (0, 60)


def test_a_value_that_stays_the_same_is_followed_back_to_its_last_change() -> None:
    times_s = [float(t) for t in range(100)]
    constant = [50.0 + t for t in range(40)] + [7.0] * 60
    # Eleven before the first of them, which is reading 40.
    assert indices_around(times_s, constant, 80.5, 85.5) == (29, 96)
    moves = [*constant[:83], 8.0, *constant[84:85], 9.0, *constant[86:]]
    assert indices_around(times_s, moves, 80.5, 85.5) == (70, 96)


@given(
    column=st.lists(st.sampled_from([1.0, 2.0]), min_size=1, max_size=120),
    runs=st.lists(st.integers(1, 200), max_size=4),
)
def test_the_begin_of_equal_readings_is_found_by_steps_as_one_by_one(
    column: list[float], runs: list[int]
) -> None:
    for n, length in enumerate(runs):
        column = column + [float(n)] * length
    until = len(column)
    first = until - 1
    while first > 0 and column[first - 1] == column[until - 1]:
        first -= 1
    assert constant_since(column, until) == first


def test_equal_readings_are_followed_back_for_six_thousand() -> None:
    assert constant_since([1.0] * 5_000, 5_000) == 0
    assert constant_since([1.0] * 7_000, 7_000) == 1_000
    assert constant_since([1.0] * 7_000, 6_500) == 500


def test_a_false_reading_is_a_doubt_of_windows_that_it_covers() -> None:
    times_s = [float(t) for t in range(12)]

    def doubts(place: int) -> int:
        values = [100.0] * 12
        values[place] = 501.0
        return len(readings_around(POWER, times_s, values, 3.5, 6.5).doubts)

    # The reading after the end is of the time that the end is in.
    assert [doubts(place) for place in (2, 3, 4, 6, 7, 8)] == [0, 0, 1, 1, 1, 0]
    nothing = readings_around(POWER, times_s, [501.0] * 12, 3.5, 6.5)
    assert (nothing.values, nothing.least, nothing.most) == ([], 0.0, 0.0)
    assert "501 W is more than the 500 W it can draw (4 such" in nothing.doubts[0].reason


def test_the_highest_power_and_the_noise_below_zero_are_possible() -> None:
    assert possible_w(Channel("a", "system", "power_w")) == (-0.1, 100e3)
    assert possible_w(Channel("a", "system", "power_w", resolution=0.5)) == (-5.0, 100e3)
    assert possible_w(POWER) == (-0.1, 500.0)
    assert [absurdity(POWER, w) is None for w in (-0.11, -0.1, 500.0, 500.1)] == [
        False, True, True, False,
    ]  # fmt: skip


# --- one step of a counter ------------------------------------------------------------------------


def test_a_counter_wraps_at_its_range_and_not_further() -> None:
    assert counter_step_j(90.0, 10.0, 100.0) == 20.0
    assert counter_step_j(100.0, 0.0, 100.0) == 0.0
    assert counter_step_j(101.0, 0.0, 100.0) is None
    assert counter_step_j(90.0, 10.0, None) is None
    assert counter_step_j(10.0, 10.0, None) == 0.0


def test_the_longest_time_without_a_hidden_wrap_follows_from_the_highest_power() -> None:
    counter = Channel("c", "package", "energy_j", 1000.0)
    assert wrap_limit_s(counter, 50.0) == 20.0
    assert wrap_limit_s(counter) == math.inf
    assert wrap_limit_s(Channel("c", "package", "energy_j", 1000.0, max_power_w=100.0), 50.0) == 10


def test_a_gap_is_five_periods_and_at_least_two_seconds() -> None:
    assert (gap_limit_s(1.0), gap_limit_s(0.4), gap_limit_s(0.1)) == (5.0, 2.0, 2.0)


def test_the_power_before_each_stretch_is_that_of_the_one_before_it() -> None:
    found = judged([100.0, 110.0, 120.0, 130.0])
    assert found.powers_w == [100.0, 110.0, 120.0, 130.0]
    assert found.previous_powers_w == [100.0, 100.0, 110.0, 120.0]
    assert not found.doubts and not found.broken


# --- gaps of counters -----------------------------------------------------------------------------


def around_a_gap(gap_w: float, length_s: float, first_j: float = 1e6) -> Stretches:
    """Twenty seconds at 100 W on either side of a gap."""
    return judged(
        [100.0] * 20 + [gap_w] + [100.0] * 20,
        [1.0] * 20 + [length_s] + [1.0] * 20,
        first_j=first_j,
    )


def test_a_gap_with_much_more_power_than_around_it_is_doubtful() -> None:
    """Five times the power next to it, over the gap and one of the counter's periods."""
    assert not around_a_gap(3499.0 / 6.0, 6.0).doubts
    (doubt,) = around_a_gap(3501.0 / 6.0, 6.0).doubts
    assert doubt.reason == (
        "counter: 6.0 s without a reading at a mean of 583.5 W, next to 100.0 W and 100.0 W"
    )
    assert doubt.error_j == pytest.approx(2901.0)


def test_power_next_to_a_gap_is_that_of_ten_readings_on_either_side() -> None:
    before = [900.0, *[100.0] * 9, 200.0]
    after = [300.0, *[100.0] * 9, 900.0]
    lengths_s = [1.0] * 11 + [6.0] + [1.0] * 11
    (doubt,) = judged([*before, 2000.0, *after], lengths_s).doubts
    assert doubt.reason.endswith("next to 110.0 W and 120.0 W")


def test_a_short_gap_near_zero_hides_at_most_twice_the_power_next_to_it() -> None:
    """Such a counter may have been reset. Up to the limit of gaps, its power shows how much."""

    def doubt(length_s: float) -> Doubt:
        powers_w, lengths_s = [100.0, 100.0, 100.0, *[100.0] * 30], [1.0, 1.0, length_s]
        found = judged(powers_w, [*lengths_s, *[1.0] * 30], first_j=0.0)
        (known,) = found.doubts
        return known

    assert doubt(3.0).reason == (
        "counter: 3.0 s without a reading, in which the counter may have wrapped or was reset"
    )
    assert doubt(3.0).error_j == pytest.approx(600.0)
    assert doubt(5.0).error_j == pytest.approx(1000.0)
    assert doubt(5.5).error_j == math.inf


def test_a_late_reading_may_hide_a_reset_up_to_twice_the_highest_power() -> None:
    limited = Channel("counter", "package", "energy_j", max_power_w=500.0)

    def doubts(first_j: float) -> int:
        powers_w, lengths_s = [100.0] * 20, [*[1.0] * 9, 3.0, *[1.0] * 10]
        return len(judged(powers_w, lengths_s, first_j=first_j, channel=limited).doubts)

    # Twice 500 W for three seconds and one of the counter's periods: 4,000 J, after 1,200 J.
    assert doubts(2_800.0) == 1
    assert doubts(2_801.0) == 0


# --- counters that are stuck ----------------------------------------------------------------------


def stuck(
    caught_up_j: float, before_w: float, after_w: float, window_s: tuple[float, float] | None = None
) -> int:
    """How many doubts: four seconds without a change, then one step. Around it that power for five
    seconds, and 100 W further away."""
    steps = [*[100.0] * 8, *[before_w] * 5, *[0.0] * 4, caught_up_j, *[after_w] * 5, *[100.0] * 8]
    found = judged(steps, window_s=window_s).doubts
    assert all(doubt.reason == "counter: the counter did not change for 4 s" for doubt in found)
    return len(found)


def test_a_counter_that_was_late_has_caught_up_if_half_of_its_power_arrived() -> None:
    # Half of 100 W for the five seconds since it last changed.
    assert (stuck(249.0, 100.0, 100.0), stuck(250.0, 100.0, 100.0)) == (1, 0)
    # The lower power counts, before it or after it.
    assert (stuck(149.0, 60.0, 200.0), stuck(150.0, 60.0, 200.0)) == (1, 0)
    assert (stuck(149.0, 200.0, 60.0), stuck(150.0, 200.0, 60.0)) == (1, 0)


def test_a_counter_that_catches_up_after_the_window_was_stuck_in_it() -> None:
    # The step that catches up ends at 18 s.
    assert stuck(500.0, 100.0, 100.0, (10.0, 18.0)) == 0
    assert stuck(500.0, 100.0, 100.0, (10.0, 17.5)) == 1
    assert stuck(500.0, 100.0, 100.0, (13.0, 18.0)) == 0
    assert stuck(500.0, 100.0, 100.0, (13.5, 18.5)) == 1


def test_too_little_time_around_shows_no_power_to_catch_up_to() -> None:
    # Four seconds on either side are less than the five to compare with; one such side is enough.
    late = [*[0.0] * 4, 500.0]
    assert len(judged([*[100.0] * 4, *late, *[100.0] * 4]).doubts) == 1
    assert not judged([*[100.0] * 5, *late, *[100.0] * 4]).doubts
    assert not judged([*[100.0] * 4, *late, *[100.0] * 5]).doubts


# --- readings that are missing --------------------------------------------------------------------


@given(
    steps=st.integers(0, 12),
    begin=st.integers(0, 16),
    start=st.integers(0, 400),
    length=st.integers(1, 400),
)
def test_lost_readings_are_those_expected_inside_stretch_and_window(
    steps: int, begin: int, start: int, length: int
) -> None:
    """Readings each 8 s were expected at begin + 8, begin + 16 ... and the last one came."""
    stretch = Stretches(
        [0.0, float(begin)], [float(begin), begin + 8.0 * steps], [1.0, 1.0], [1.0, 1.0],
        head=False, tail=False,
    )  # fmt: skip
    expected = [begin + 8 * n for n in range(1, steps)]
    inside = sum(start < time_s <= start + length for time_s in expected)
    assert lost_readings(stretch, 1, 8.0, float(start), float(start + length)) == inside


def test_readings_lost_after_the_last_one_are_whole_periods() -> None:
    stretch = Stretches([0.0, 4.0], [4.0, 9.5], [1.0, 1.0], [1.0, 1.0], head=False, tail=True)
    assert lost_readings(stretch, 1, 2.0, 0.0, 9.5) == 2
