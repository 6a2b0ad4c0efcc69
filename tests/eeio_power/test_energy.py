"""Integration: exact where it can be, inside its own uncertainty where it cannot."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eeio_power.energy import ChannelEnergy, channel_energy, domain_energy, meter_energy
from eeio_power.meters import Channel
from eeio_power.window_readings import counter_step_j, gap_limit_s, wrap_limit_s

POWER = Channel("test:power", "system", "power_w")
COUNTER = Channel("test:counter", "package", "energy_j")
NAN = math.nan


def integrate(
    channel: Channel,
    readings: list[tuple[float, float]],
    start_s: float,
    end_s: float,
    period_s: float = 1.0,
    native_period_s: float | None = None,
) -> ChannelEnergy:
    return channel_energy(
        channel,
        [t for t, _ in readings],
        [v for _, v in readings],
        period_s,
        period_s if native_period_s is None else native_period_s,
        start_s,
        end_s,
    )


def uncertainty_j(part: ChannelEnergy) -> float:
    return math.hypot(part.accuracy_j, part.quantisation_j, part.edges_j, part.gaps_j)


class Pulses:
    """120 W and 300 W in turn, with its exact integral."""

    def __init__(self, low_s: float, high_s: float, low_w: float = 120.0, high_w: float = 300.0):
        self.low_s, self.high_s, self.low_w, self.high_w = low_s, high_s, low_w, high_w

    def energy_j(self, time_s: float) -> float:
        complete, rest_s = divmod(time_s, self.low_s + self.high_s)
        cycle_j = self.low_s * self.low_w + self.high_s * self.high_w
        in_low_s = min(rest_s, self.low_s)
        return complete * cycle_j + in_low_s * self.low_w + (rest_s - in_low_s) * self.high_w

    def mean_w(self, from_s: float, to_s: float) -> float:
        return (self.energy_j(to_s) - self.energy_j(from_s)) / (to_s - from_s)

    def power_readings(self, times_s: list[float], period_s: float) -> list[tuple[float, float]]:
        """What an averaging meter says: the mean of the period up to each reading."""
        return [(t, self.mean_w(t - period_s, t)) for t in times_s]


# --- exact cases -------------------------------------------------------------------------------


@given(
    power_w=st.floats(0.1, 1000),
    start_s=st.floats(1.0, 10.0),
    length_s=st.floats(1.5, 20.0),
)
def test_constant_power_is_exact(power_w: float, start_s: float, length_s: float) -> None:
    end_s = start_s + length_s
    power = integrate(POWER, [(float(t), power_w) for t in range(40)], start_s, end_s)
    counter = integrate(COUNTER, [(float(t), t * power_w) for t in range(40)], start_s, end_s)
    for part in (power, counter):
        assert part.reasons == ()
        assert part.energy_j == pytest.approx(power_w * length_s, rel=1e-9)
        assert part.coverage == pytest.approx(1.0)
        assert part.lost == 0
        assert part.largest_gap_s == pytest.approx(1.0)


def test_a_power_reading_is_the_mean_of_the_time_before_it() -> None:
    readings = [(0.0, 999.0), (1.0, 100.0), (2.0, 200.0), (3.0, 400.0)]
    part = integrate(POWER, readings, 0.5, 2.5)
    assert part.energy_j == pytest.approx(0.5 * 100 + 1.0 * 200 + 0.5 * 400)
    assert part.samples == 2


def test_a_counter_is_interpolated_at_the_edges() -> None:
    part = integrate(COUNTER, [(0.0, 10.0), (1.0, 20.0), (2.0, 60.0)], 0.5, 1.25)
    assert part.energy_j == pytest.approx(5.0 + 10.0)


@given(
    steps=st.lists(st.floats(0.2, 1.4), min_size=8, max_size=40),
    values=st.lists(st.floats(1.0, 500.0), min_size=41, max_size=41),
    cut=st.floats(0.2, 0.8),
    counter=st.booleans(),
)
def test_adjacent_windows_add_up(
    steps: list[float], values: list[float], cut: float, counter: bool
) -> None:
    times_s = [math.fsum(steps[:k]) for k in range(len(steps) + 1)]
    if counter:
        values = [math.fsum(values[:k]) for k in range(len(times_s))]
    readings = list(zip(times_s, values, strict=False))
    channel = COUNTER if counter else POWER
    start_s, end_s = times_s[1] - 0.1, times_s[-2] + 0.1
    middle_s = start_s + cut * (end_s - start_s)
    left = integrate(channel, readings, start_s, middle_s)
    right = integrate(channel, readings, middle_s, end_s)
    complete = integrate(channel, readings, start_s, end_s)
    assume(left.samples > 0 and right.samples > 0)
    assert left.energy_j is not None and right.energy_j is not None
    assert left.energy_j + right.energy_j == pytest.approx(complete.energy_j, rel=1e-9)
    assert left.samples + right.samples == complete.samples
    assert left.lost + right.lost == complete.lost


# --- counters ----------------------------------------------------------------------------------


def test_the_wrap_rule() -> None:
    assert counter_step_j(10.0, 25.0, 100.0) == 15.0
    assert counter_step_j(90.0, 5.0, 100.0) == 15.0
    assert counter_step_j(90.0, 5.0, None) is None


@given(
    start_j=st.floats(0.0, 999.0),
    power_w=st.floats(1.0, 90.0),
    from_s=st.floats(0.5, 20.0),
    length_s=st.floats(2.0, 30.0),
)
def test_a_wrapping_counter_gives_the_true_energy(
    start_j: float, power_w: float, from_s: float, length_s: float
) -> None:
    channel = replace(COUNTER, range_j=1000.0, max_power_w=100.0)
    readings = [(float(t), (start_j + power_w * t) % 1000.0) for t in range(60)]
    part = integrate(channel, readings, from_s, from_s + length_s)
    assert part.reasons == ()
    assert part.energy_j == pytest.approx(power_w * length_s, rel=1e-6)


def test_a_gap_that_may_hide_a_wrap_is_invalid() -> None:
    channel = replace(COUNTER, range_j=1000.0, max_power_w=100.0)
    assert wrap_limit_s(channel) == 10.0
    readings = [(0.0, 0.0), (1.0, 50.0), (12.0, 600.0), (13.0, 650.0)]
    part = integrate(channel, readings, 0.5, 12.5)
    assert part.energy_j is None
    assert "wrapped unseen" in part.reasons[0]
    # The same gap is harmless to a counter with room, and costs nothing: the difference is exact.
    roomy = integrate(replace(channel, range_j=1e6), readings, 0.5, 12.5)
    assert roomy.energy_j == pytest.approx(600.0)
    assert roomy.coverage == 1.0
    assert roomy.largest_gap_s == 11.0
    assert roomy.lost == 10


def test_a_gap_at_the_edge_of_the_window_is_invalid_for_a_counter_too() -> None:
    readings = [(0.0, 0.0), (1.0, 50.0), (12.0, 600.0), (13.0, 650.0)]
    part = integrate(COUNTER, readings, 6.0, 12.5)
    assert part.energy_j is None
    assert "11.0 s without a reading" in part.reasons[0]


def test_a_reset_counter_is_invalid_and_not_a_wrap() -> None:
    # A failed read stored as 0 would look the same: 250 000 J out of nothing.
    channel = replace(COUNTER, range_j=262_143.0, max_power_w=500.0)
    part = integrate(channel, [(0.0, 9000.0), (1.0, 9100.0), (2.0, 10.0), (3.0, 110.0)], 0.5, 2.5)
    assert part.energy_j is None
    assert "jumped" in part.reasons[0]
    backwards = integrate(COUNTER, [(0.0, 9.0), (1.0, 10.0), (2.0, 1.0), (3.0, 2.0)], 0.5, 2.5)
    assert backwards.energy_j is None
    assert "backwards" in backwards.reasons[0]


def test_a_counter_that_stands_still_is_invalid() -> None:
    part = integrate(COUNTER, [(t / 10, 42.0) for t in range(50)], 0.5, 4.5, 0.1, 0.001)
    assert part.energy_j is None
    assert "does not change" in part.reasons[0]
    # A counter in units of 360 J may well stand still for four seconds.
    coarse = replace(COUNTER, resolution=360.0)
    part = integrate(coarse, [(t / 10, 42.0) for t in range(50)], 0.5, 4.5, 0.1, 0.001)
    assert part.energy_j == 0.0
    assert part.quantisation_j == 360.0
    # RAPL's step at 10 Hz: 20 ms are too short to tell, the readings around them are not.
    fine = replace(COUNTER, resolution=2.0**-14)
    part = integrate(fine, [(t / 10, 42.0) for t in range(50)], 1.99, 2.01, 0.1, 0.001)
    assert part.energy_j is None
    assert "does not change" in part.reasons[0]


def test_a_sensor_that_only_reports_zero_is_invalid() -> None:
    part = integrate(POWER, [(float(t), 0.0) for t in range(10)], 1.0, 8.0)
    assert part.energy_j is None
    assert "0 W" in part.reasons[0]


# --- gaps, lost and failed readings ------------------------------------------------------------


def test_lost_records_are_extended_over_the_real_gap_and_counted() -> None:
    pulses = Pulses(10.0, 10.0)
    times_s = [float(t) for t in range(1, 41) if t not in (14, 25)]
    readings = pulses.power_readings(times_s, 1.0)
    part = integrate(POWER, readings, 5.0, 35.0)
    truth_j = pulses.energy_j(35.0) - pulses.energy_j(5.0)
    assert part.lost == 2
    assert part.samples == 28
    assert part.coverage == pytest.approx(28 / 30)
    assert part.largest_gap_s == 2.0
    assert part.energy_j == pytest.approx(truth_j)
    counted_j = sum(v for t, v in readings if 5.0 < t <= 35.0)
    assert counted_j < truth_j - 200.0, "adding W x 1 s must show the loss this test is about"


@given(
    half_s=st.integers(3, 8),
    lost=st.sets(st.integers(20, 79), max_size=8),
)
def test_holding_over_gaps_stays_inside_the_uncertainty(half_s: int, lost: set[int]) -> None:
    pulses = Pulses(float(half_s), float(half_s))
    times_s = [float(t) for t in range(1, 100) if t not in lost]
    readings = pulses.power_readings(times_s, 1.0)
    part = integrate(POWER, readings, 15.0, 85.0)
    assume(not part.reasons)
    truth_j = pulses.energy_j(85.0) - pulses.energy_j(15.0)
    assert part.energy_j is not None
    assert abs(part.energy_j - truth_j) <= uncertainty_j(part) + 1e-6
    assert part.lost == len(lost)
    # The statement must say something: without gaps it is the edges' 2 % or so.
    if not lost:
        assert uncertainty_j(part) < 0.025 * truth_j


@given(
    start_s=st.floats(5.0, 15.0),
    length_s=st.floats(5.0, 60.0),
    half_s=st.floats(1.2, 8.0),
    counter=st.booleans(),
)
def test_cutting_pulses_anywhere_stays_inside_the_uncertainty(
    start_s: float, length_s: float, half_s: float, counter: bool
) -> None:
    pulses = Pulses(half_s, half_s)
    times_s = [float(t) for t in range(1, 90)]
    if counter:
        readings = [(t, pulses.energy_j(t)) for t in times_s]
    else:
        readings = pulses.power_readings(times_s, 1.0)
    end_s = start_s + length_s
    part = integrate(COUNTER if counter else POWER, readings, start_s, end_s, 1.0)
    truth_j = pulses.energy_j(end_s) - pulses.energy_j(start_s)
    assert part.energy_j is not None
    assert abs(part.energy_j - truth_j) <= uncertainty_j(part) + 1e-6
    assert part.edges_j <= 300.0 * 1.0 + 1e-9, "at most the power times the period"


def test_sampling_slower_than_the_meter_averages_shows_in_the_uncertainty() -> None:
    # A chip that averages 1 ms read at 2 Hz sees spots of the pulses.
    pulses = Pulses(0.7, 1.1)
    rng = random.Random(20)
    inside = 0
    for _ in range(200):
        phase_s = rng.uniform(1.0, 3.0)
        times_s = [phase_s + 0.5 * k for k in range(100)]
        readings = pulses.power_readings(times_s, 0.001)
        part = integrate(POWER, readings, 5.0, 35.0, 0.5, 0.001)
        assert part.energy_j is not None
        error_j = abs(part.energy_j - (pulses.energy_j(35.0) - pulses.energy_j(5.0)))
        inside += error_j <= uncertainty_j(part)
    assert inside >= 190
    constant = [(0.5 * k, 200.0) for k in range(100)]
    assert integrate(POWER, constant, 5.0, 35.0, 0.5, 0.001).gaps_j == 0.0


def test_a_gap_beyond_the_limit_is_invalid() -> None:
    assert gap_limit_s(0.1) == 2.0
    assert gap_limit_s(1.0) == 5.0
    readings = [(float(t), 100.0) for t in range(20) if not 5 < t < 12]
    part = integrate(POWER, readings, 1.0, 18.0)
    assert part.energy_j is None
    assert "7.0 s without a reading" in part.reasons[0]
    assert part.lost == 6
    assert integrate(POWER, readings, 13.0, 18.0).energy_j == pytest.approx(500.0)


def test_a_failed_read_is_missing_and_not_zero() -> None:
    readings = [(float(t), NAN if t in (4, 5) else 100.0) for t in range(12)]
    part = integrate(POWER, readings, 1.0, 10.0)
    assert part.energy_j == pytest.approx(900.0)
    assert part.lost == 2
    assert part.samples == 7
    failed = integrate(POWER, [(float(t), NAN) for t in range(12)], 1.0, 10.0)
    assert failed.energy_j is None
    assert "9 reads failed" in failed.reasons[0]


def test_the_first_reading_covers_back_to_the_start_of_the_window() -> None:
    readings = [(t + 0.4, 100.0) for t in range(10)]
    part = integrate(POWER, readings, 0.0, 9.4)
    assert part.energy_j == pytest.approx(940.0)
    assert part.coverage == pytest.approx(1.0)
    late = integrate(POWER, [(t + 7.0, 100.0) for t in range(10)], 0.0, 12.0)
    assert late.energy_j is None


def test_a_window_beyond_the_last_reading_is_extrapolated_but_not_covered() -> None:
    readings = [(float(t), 100.0) for t in range(11)]
    part = integrate(POWER, readings, 2.0, 10.5)
    assert part.energy_j == pytest.approx(850.0)
    assert part.coverage == pytest.approx(8.0 / 8.5)
    assert part.edges_j >= 100.0 * 0.5
    assert integrate(POWER, readings, 2.0, 16.0).energy_j is None


@pytest.mark.parametrize(
    ("start_s", "end_s", "message"),
    [
        (2.2, 2.8, "no reading in the window"),
        (50.0, 60.0, "no reading in the window"),
        (5.0, 5.0, "no length"),
        (6.0, 5.0, "no length"),
        (NAN, 5.0, "no length"),
    ],
)
def test_windows_that_cannot_be_answered(start_s: float, end_s: float, message: str) -> None:
    part = integrate(POWER, [(float(t), 100.0) for t in range(20)], start_s, end_s)
    assert part.energy_j is None
    assert message in part.reasons[0]
    assert integrate(COUNTER, [], 0.0, 1.0).energy_j is None


@pytest.mark.parametrize("readings", [[], [(1.0, 100.0)], [(1.0, 100.0), (6.0, NAN), (9.0, NAN)]])
@pytest.mark.parametrize("channel", [POWER, COUNTER])
def test_a_silent_meters_readings_are_lost(
    channel: Channel, readings: list[tuple[float, float]]
) -> None:
    part = integrate(channel, readings, 2.0, 12.0)
    assert part.energy_j is None and part.samples == 0
    assert part.lost == 10, "one a second was promised"


def test_one_counter_reading_is_no_energy() -> None:
    part = integrate(COUNTER, [(1.0, 50.0)], 0.5, 1.5)
    assert part.energy_j is None
    assert "needs two" in part.reasons[0]


# --- uncertainty and sums ----------------------------------------------------------------------


def test_the_four_limits_of_error() -> None:
    channel = replace(POWER, accuracy_relative=0.015, resolution=0.1)
    part = integrate(channel, [(float(t), 200.0) for t in range(80)], 10.0, 70.0)
    assert part.accuracy_j == pytest.approx(0.015 * 200 * 60)
    assert part.quantisation_j == pytest.approx(0.05 * 60)
    assert part.edges_j == pytest.approx(200.0 * 1.0), "P x period"
    assert part.gaps_j == 0.0


def test_channels_of_a_domain_add_up_and_one_invalid_one_spoils_the_sum() -> None:
    a = replace(COUNTER, name="a", accuracy_relative=0.05, resolution=3.0)
    b = replace(COUNTER, name="b", accuracy_relative=0.05, resolution=4.0)
    part = replace(a, name="core", in_domain_total=False)
    dram = replace(COUNTER, name="d", domain="dram")
    times_s = [float(t) for t in range(20)]
    rising = [100.0 * t for t in times_s]

    found = meter_energy(
        meter="m",
        kind="measured",
        channels=[a, b, part, dram],
        native_period_s=1e-9,
        period_s=1.0,
        times_s=times_s,
        values=[rising, rising, rising, [0.5 * v for v in rising]],
        start_s=5.0,
        end_s=15.0,
    )
    assert [r.domain for r in found] == ["package", "dram"]
    package, memory = found
    assert package.energy_j == pytest.approx(2000.0)
    assert package.power_w == pytest.approx(200.0)
    assert package.uncertainty_j == pytest.approx(math.hypot(0.05 * 2000.0, 3.0, 4.0), rel=1e-6)
    assert memory.energy_j == pytest.approx(500.0)
    spoilt = domain_energy(
        "m",
        "measured",
        "package",
        [
            integrate(a, list(zip(times_s, rising, strict=True)), 5.0, 15.0),
            integrate(b, [(t, NAN) for t in times_s], 5.0, 15.0),
        ],
        5.0,
        15.0,
    )
    assert not spoilt.valid
    assert (spoilt.energy_j, spoilt.power_w, spoilt.uncertainty_j) == (None, None, None)
    assert spoilt.to_json()["reasons"] == list(spoilt.reasons) != []


def test_a_counter_that_is_updated_late_has_not_jumped() -> None:
    """It stood for 50 ms under load and then counted all of it within a millisecond."""
    counter = replace(COUNTER, max_power_w=500.0)
    readings, counted_j = [], 1000.0
    for k in range(1000):
        late = 300 <= k < 350
        readings.append((k * 1e-3, counted_j if late else 1000.0 + 80.0 * k * 1e-3))
        counted_j = readings[-1][1]
    found = integrate(counter, readings, 0.1, 0.9, period_s=1e-3)
    assert not found.reasons and not found.doubts
    assert found.energy_j == pytest.approx(64.0, abs=uncertainty_j(found))
