"""Readings that cannot be true: the energy says so, whatever the meter."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulators import ScriptedMeter

from eeio_power.meters import Channel
from eeio_power.reading import Domain, EnergyReading
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterInfo, MeterSamples, Samples, load

PLUG = Channel("plug", "system", "power_w", accuracy_relative=0.02, resolution=0.2)
BMC = Channel("bmc", "system", "power_w", accuracy_relative=0.05, resolution=1.0)
RAPL = Channel(
    "rapl", "package", "energy_j", 262_143.0, 0.05, 2.0**-14, max_power_w=500.0
)  # fmt: skip
RANGE_J = 262_143.0
COUNTER = Channel("counter", "system", "energy_j", accuracy_relative=0.02, resolution=1e-6)


def samples(
    channel: Channel, readings: Sequence[tuple[float, float]], native_s: float = 1.0
) -> MeterSamples:
    period_s = max(0.1, native_s)
    info = MeterInfo(channel.name, channel.name, "measured", native_s, period_s, (channel,))
    return MeterSamples(info, [t for t, _ in readings], ([v for _, v in readings],))


def energy(
    channel: Channel,
    readings: Sequence[tuple[float, float]],
    start_s: float,
    end_s: float,
    native_s: float = 1.0,
) -> EnergyReading:
    (found,) = Samples((samples(channel, readings, native_s),)).energy(start_s, end_s)
    return found


def noisy(power_w: float, count: int, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [round(power_w * draw.uniform(0.99, 1.01), 1) for _ in range(count)]


def counted(
    powers_w: Sequence[float], period_s: float, start_j: float = 0.0
) -> list[tuple[float, float]]:
    joules = [start_j + math.fsum(powers_w[:k]) * period_s for k in range(len(powers_w) + 1)]
    return [(k * period_s, value) for k, value in enumerate(joules)]


# --- outliers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("max_power_w", [None, 4000.0])
@pytest.mark.parametrize("wrong_w", [99_999.0, 2000.0, 0.0, 5.0])
def test_a_reading_far_from_all_others_is_reported(
    wrong_w: float, max_power_w: float | None
) -> None:
    powers_w = noisy(80.0, 60)
    powers_w[30] = wrong_w
    channel = replace(PLUG, max_power_w=max_power_w, accuracy_relative=0.002, resolution=0.1)
    found = energy(channel, list(enumerate(powers_w)), 15.0, 45.0)
    assert found.valid and found.doubtful
    (reason,) = found.reasons
    assert f"{wrong_w:g} W" in reason


def test_one_that_cannot_be_is_left_out_of_the_energy_and_kept_in_the_file(tmp_path: Path) -> None:
    values = iter([*noisy(80.0, 20), 99_999.0, *noisy(80.0, 20)])
    meter = ScriptedMeter([replace(PLUG, max_power_w=4000.0)], lambda: [next(values)],
                          native_period_s=1.0)  # fmt: skip
    clock_s = [100.0]
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=lambda: clock_s[0]) as sampler:
        for _ in range(38):
            clock_s[0] += 1.0
            sampler.energy(100.0, clock_s[0])
        (found,) = sampler.energy(110.0, 130.0)
        assert sampler.errors == {"scripted": 1}
        clock_s[0] += 1.0
    assert found.power_w == pytest.approx(80.0, rel=0.01)
    assert found.doubtful and "99999 W is more than the 4000 W it can draw" in found.reasons[0]
    stored = load(sampler.path)
    assert 99_999.0 in stored.meters[0].values[0]
    assert stored.energy(110.0, 130.0) == [found]


def test_a_real_step_and_a_busy_phase_are_no_outliers() -> None:
    powers_w = [*noisy(20.0, 20), *noisy(180.0, 6), *noisy(20.0, 20), *noisy(150.0, 20)]
    found = energy(PLUG, list(enumerate(powers_w)), 10.0, 60.0)
    assert found.valid and found.reasons == ()


def test_a_short_burst_widens_the_limit_of_a_fast_sensor() -> None:
    board = Channel("ina", "system", "power_w", accuracy_relative=0.02, resolution=0.025)
    quiet = [(k / 10, 0.5) for k in range(200)]
    calm = energy(board, quiet, 5.0, 15.0, 0.1)
    burst = energy(board, [(t, 4.0 if t == 10.0 else w) for t, w in quiet], 5.0, 15.0, 0.1)
    assert burst.valid and not burst.doubtful
    assert (burst.uncertainty_j or 0.0) > (calm.uncertainty_j or 0.0) + 0.3


@given(
    place=st.integers(12, 47),
    factor=st.one_of(st.floats(6.0, 1e4), st.floats(0.0, 0.15)),
    count=st.integers(1, 3),
    level_w=st.floats(20.0, 500.0),
)
def test_outliers_are_reported_or_within_the_limit(
    place: int, factor: float, count: int, level_w: float
) -> None:
    powers_w = [level_w] * 60
    powers_w[place : place + count] = [level_w * factor] * count
    start_s, end_s = 10.5, 50.5
    found = energy(PLUG, list(enumerate(powers_w)), start_s, end_s)
    if found.valid and not found.doubtful:
        assert found.energy_j is not None and found.uncertainty_j is not None
        assert abs(found.energy_j - level_w * (end_s - start_s)) <= found.uncertainty_j


@pytest.mark.parametrize("factor", [1e3, 1e-3])
@pytest.mark.parametrize("change_s", [20, 45, 70])
def test_a_change_of_unit_is_reported(factor: float, change_s: int) -> None:
    powers_w = [w * (factor if k >= change_s else 1.0) for k, w in enumerate(noisy(80.0, 100))]
    found = energy(PLUG, list(enumerate(powers_w)), 40.0, 90.0)
    assert found.doubtful and "unit" in " ".join(found.reasons)
    later = samples(PLUG, list(enumerate(powers_w))).energy(92.0, 98.0)[0]
    assert later.doubtful, "also in a window with one unit only"


# --- below zero --------------------------------------------------------------------------------


def test_noise_below_zero_is_used_as_it_is() -> None:
    powers_w = [0.02 * (-1) ** k - 0.01 for k in range(60)]
    ina = replace(PLUG, resolution=0.025)
    found = energy(ina, list(enumerate(powers_w)), 10.0, 50.0)
    assert found.valid and not found.doubtful
    assert found.power_w == pytest.approx(-0.01), "cut off at 0 it would be 0.005"
    assert found.uncertainty_j == pytest.approx(0.25 * 40.0, rel=0.01)


def test_more_than_noise_below_zero_is_left_out_and_reported() -> None:
    powers_w = noisy(80.0, 60)
    powers_w[30] = -80.0
    found = energy(PLUG, list(enumerate(powers_w)), 15.0, 45.0)
    assert found.power_w == pytest.approx(80.0, rel=0.01)
    assert found.doubtful and "-80 W is negative" in found.reasons[0]
    turned = energy(PLUG, [(t, -w) for t, w in enumerate(powers_w)], 15.0, 29.0)
    assert not turned.valid and any("may be reversed" in reason for reason in turned.reasons)


# --- counters ----------------------------------------------------------------------------------


def test_a_reset_in_a_gap_is_no_wrap() -> None:
    """80 W; 30 s without a reading, in which the counter was reset: as a wrap that is 113 W."""
    before = [(t, RANGE_J - 2000.0 + 80.0 * t) for t in map(float, range(11))]
    after = [(t, 1390.0 + 80.0 * (t - 40.0)) for t in map(float, range(40, 60))]
    found = energy(RAPL, [*before, *after], 5.0, 55.0, 0.001)
    assert found.doubtful or not found.valid
    assert "30.0 s without a reading" in found.reasons[0] or "reset" in found.reasons[0]
    # A reset that leaves a larger value than before it.
    early = [(t, 100.0 + 8.0 * t) for t in map(float, range(11))]
    found = energy(RAPL, [*early, *after], 5.0, 55.0, 0.001)
    assert found.doubtful and "reset" in found.reasons[0]
    # Where the value is too large to have been counted since, none can hide.
    late = [(t, 100_000.0 + 80.0 * t) for t, _ in [*before, *after]]
    found = energy(RAPL, late, 5.0, 55.0, 0.001)
    assert found.valid and found.reasons == ()
    assert found.energy_j == pytest.approx(4000.0)


@given(place=st.integers(10, 190), phase=st.floats(0.0, 1.0), power_w=st.floats(5.0, 400.0))
def test_a_wrap_between_two_readings_is_right_and_not_doubted(
    place: int, phase: float, power_w: float
) -> None:
    start_j = RANGE_J - power_w * 0.1 * (place + phase)
    readings = [(0.1 * k, (start_j + power_w * 0.1 * k) % RANGE_J) for k in range(200)]
    found = energy(RAPL, readings, 1.0, 19.0, 0.001)
    assert found.valid and found.reasons == ()
    assert found.energy_j == pytest.approx(18.0 * power_w, rel=1e-6)
    assert (found.uncertainty_j or 0.0) < 0.06 * 18.0 * power_w


def test_a_counter_without_a_maximum_that_jumps_is_reported() -> None:
    powers_w = noisy(80.0, 200)
    for extra_j in (1e6, 2e3):
        readings = [(t, j + (extra_j if t > 10.0 else 0.0)) for t, j in counted(powers_w, 0.1, 5e5)]
        found = energy(COUNTER, readings, 5.0, 15.0, 0.1)
        assert found.doubtful or not found.valid
        assert "jumped" in found.reasons[0]
    found = energy(COUNTER, counted(powers_w, 0.1, 5e5), 5.0, 15.0, 0.1)
    assert found.valid and found.reasons == ()


def test_several_wraps_in_a_gap_are_not_counted_as_one() -> None:
    channel = replace(COUNTER, range_j=1000.0)
    joules = [(t, (80.0 * t) % 1000.0) for t in map(float, range(90)) if not 30 < t < 60]
    found = energy(channel, joules, 10.0, 80.0, 0.1)
    assert not found.valid and "wrapped unseen" in found.reasons[0]


def test_a_counter_that_stands_still_for_a_while_is_reported() -> None:
    steady = counted(noisy(80.0, 300), 0.1, 5e5)
    stuck_j = steady[100][1]
    lost_j = steady[130][1] - stuck_j
    lost = [(t, j if t < 10 else stuck_j if t < 13 else j - lost_j) for t, j in steady]
    found = energy(RAPL, lost, 5.0, 25.0, 0.001)
    assert found.doubtful and "did not change for 3" in found.reasons[0]
    late = [(t, stuck_j if 10 <= t < 10.55 else j) for t, j in steady]
    found = energy(RAPL, late, 5.0, 25.0, 0.001)
    assert found.valid and found.reasons == (), "it caught up"
    assert energy(RAPL, late, 5.0, 10.3, 0.001).doubtful, "it caught up after the window"


def test_a_coarse_counter_may_stand_still() -> None:
    coarse = replace(COUNTER, resolution=3600.0)
    readings = [(float(t), float(int(100.0 * t / 3600.0) * 3600)) for t in range(600)]
    found = energy(coarse, readings, 100.0, 500.0, 1.0)
    assert found.valid and found.reasons == ()


# --- a value that is held ----------------------------------------------------------------------


def test_a_fine_meter_that_repeats_a_value_is_frozen() -> None:
    fine = replace(PLUG, resolution=0.001)
    draw = random.Random(2)
    live = [(float(t), draw.uniform(79.0, 81.0)) for t in range(30)]
    frozen = [*live, *((float(t), live[-1][1]) for t in range(30, 60))]
    found = energy(fine, frozen, 20.0, 50.0)
    assert found.doubtful and "frozen" in found.reasons[0]
    assert not energy(fine, live, 5.0, 28.0).doubtful


def test_a_coarse_meter_at_a_steady_machine_is_not_doubted() -> None:
    steady = [(float(t), 57.0) for t in range(900)]
    assert not energy(BMC, steady, 800.0, 880.0).doubtful
    # In ten minutes a plug of 0.2 W would have shown something at 80 W.
    assert energy(PLUG, [(t, 80.0) for t, _ in steady], 800.0, 880.0).doubtful
    assert not energy(PLUG, [(t, 80.0) for t, _ in steady[:400]], 300.0, 380.0).doubtful


def compared(frozen_w: float, part: Domain, powers_w: Sequence[float]) -> list[EnergyReading]:
    """A BMC that always reads the same, and a counter of a part of the machine."""
    bmc = samples(BMC, [(float(t), frozen_w) for t in range(len(powers_w))])
    rapl = samples(replace(RAPL, domain=part), counted(powers_w, 1.0, 5e4), 0.001)
    return Samples((bmc, rapl)).energy(10.0, len(powers_w) - 5.0)


def test_a_constant_value_is_compared_with_another_meter() -> None:
    idle_and_busy = [*noisy(10.0, 30), *noisy(60.0, 30)]
    bmc, rapl = compared(120.0, "package", idle_and_busy)
    assert bmc.doubtful and "while package (rapl) went from" in bmc.reasons[0]
    assert not rapl.doubtful
    assert not any(r.doubtful for r in compared(120.0, "package", noisy(30.0, 60)))


# --- time --------------------------------------------------------------------------------------


def test_readings_of_one_time_are_reported(tmp_path: Path) -> None:
    """A log that repeats its times, as a plug-in may give it: 80 W, 20 s of them lost."""

    class Log(ScriptedMeter):
        def logged(self) -> tuple[Sequence[float], tuple[Sequence[float], ...]]:
            times_s = [min(float(t), 30.0) if t < 50 else t - 20.0 for t in range(80)]
            return times_s, ([80.0 + t % 3 for t in range(80)],)

    meter = Log([PLUG], lambda: [80.0], native_period_s=1.0)
    with Sampler([meter], tmp_path / "s.gz", clock=lambda: 0.0) as sampler:
        (found,) = sampler.energy(10.0, 55.0)
    assert found.doubtful and "21 readings have the same time" in found.reasons[0]
