"""Meters that are late or average: `eeio_power.delay`, and what it does to the energy."""

import bisect
import itertools
import json
import math
import random
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.simulators.scripted import ScriptedMeter
from tests.waiting import until

from eeio.errors import LimitError
from eeio_power import calibration, delay
from eeio_power.delay import BMC, Delay
from eeio_power.energy import channel_energy, combined_uncertainty_j, meter_energy, wait_s
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, about, meter_names, open_meters
from eeio_power.reading import EnergyReading
from eeio_power.sampler import Sampler
from eeio_power.samples import load, meter_info

IDLE_W, LOAD_W = 100.0, 300.0
START_S, END_S = 40.0, 60.0


def true_w(time_s: float) -> float:
    return LOAD_W if START_S < time_s <= END_S else IDLE_W


def mean_w(low_s: float, high_s: float) -> float:
    """Of a machine that is loaded in the window only."""
    if high_s <= low_s:
        return true_w(high_s)
    loaded_s = max(0.0, min(high_s, END_S) - max(low_s, START_S))
    return IDLE_W + (LOAD_W - IDLE_W) * loaded_s / (high_s - low_s)


def readings_of(
    real: Delay, period_s: float, until_s: float = 100.0
) -> tuple[list[float], list[float]]:
    times_s = [k * period_s for k in range(1, int(until_s / period_s) + 1)]
    ends_s = [time_s - real.lag_s for time_s in times_s]
    return times_s, [mean_w(end_s - real.averages_s, end_s) for end_s in ends_s]


def energy(
    known: Delay | None, real: Delay, *, period_s: float = 0.1, until_s: float = 100.0,
    start_s: float = START_S, end_s: float = END_S,
) -> EnergyReading:  # fmt: skip
    times_s, values = readings_of(real, period_s, until_s)
    channel = Channel("meter", "system", "power_w", delay=known)
    (reading,) = meter_energy(
        meter="meter", kind="measured", channels=[channel], native_period_s=period_s,
        period_s=period_s, times_s=times_s, values=[values], start_s=start_s, end_s=end_s,
    )  # fmt: skip
    return reading


TRUE_J = LOAD_W * (END_S - START_S)


@pytest.mark.parametrize("real", [Delay(2.0), Delay(0.0, 3.0), Delay(1.5, 2.5)])
def test_a_known_delay_is_undone_and_what_is_left_is_in_the_uncertainty(real: Delay) -> None:
    unknown = energy(None, real)
    assert unknown.energy_j is not None and unknown.uncertainty_j is not None
    assert abs(unknown.energy_j - TRUE_J) > unknown.uncertainty_j, "as it was before"
    reading = energy(real, real)
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    # A step at the edge: an eighth of the mean's time, at both edges.
    left_j = 2.0 * (LOAD_W - IDLE_W) * real.averages_s / 8.0
    assert abs(reading.energy_j - TRUE_J) == pytest.approx(left_j, abs=0.1 * LOAD_W)
    hidden_j = real.averages_s / 2.0 * reading.energy_j / (END_S - START_S)
    assert left_j <= reading.uncertainty_j <= math.hypot(left_j + 0.2 * LOAD_W, hidden_j)


def test_a_counter_that_lags_is_read_later() -> None:
    times_s = [k * 0.1 for k in range(1, 1001)]
    joules = [mean_w(0.0, time_s - 2.0) * (time_s - 2.0) + 1e4 for time_s in times_s]
    channel = Channel("c", "system", "energy_j", delay=Delay(2.0))
    (reading,) = meter_energy(
        meter="c", kind="measured", channels=[channel], native_period_s=0.1, period_s=0.1,
        times_s=times_s, values=[joules], start_s=START_S, end_s=END_S,
    )  # fmt: skip
    assert reading.energy_j == pytest.approx(TRUE_J, abs=1.0)


def test_a_delay_that_is_not_sure_costs_the_change_of_power_at_the_edges() -> None:
    unsure = Delay(2.0, 0.0, lag_within_s=1.0)
    reading = energy(unsure, Delay(3.0))
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    change_j = (LOAD_W - IDLE_W) * 1.0
    assert abs(reading.energy_j - TRUE_J) == pytest.approx(change_j, abs=1.0)
    assert change_j <= reading.uncertainty_j <= 1.3 * change_j, "and what single readings miss"
    # Where the power stays the same the delay costs nothing.
    idle = energy(unsure, Delay(3.0), start_s=5.0, end_s=25.0)
    assert idle.uncertainty_j is not None and idle.uncertainty_j <= 0.2 * IDLE_W


def test_a_window_that_is_too_short_for_the_delay_says_so() -> None:
    flat = energy(BMC, Delay(1.0), until_s=200.0, start_s=80.0, end_s=110.0)
    assert flat.reasons == (), "the power is the same"
    reading = energy(BMC, Delay(1.0), start_s=START_S, end_s=START_S + 2.0)
    reason, too_long = sorted(reading.reasons, reverse=True)
    assert "each reading is a mean of 2.5 s, too long for a window of 2 s" in too_long
    assert reading.doubtful
    assert reason.startswith("meter: readings are 2.5 ± 2.5 s late, mean of 2.5 ± 2.5 s (assumed")
    assert (
        "the energy of this window of 2 s is uncertain" in reason
        and "eeio meter calibrate" in reason
    )
    assert reading.uncertainty_relative is not None and reading.uncertainty_relative > 0.1


def test_a_window_shorter_than_the_mean_knows_that_it_shows_a_part_of_the_step() -> None:
    """The load is a pulse of 1 s, of which a mean of 3 s shows a third."""
    real, short = Delay(0.0, 3.0), 1.0
    times_s = [k * 0.1 for k in range(1, 1001)]
    values = [
        100.0 + 200.0 * max(0.0, min(t, 50.0 + short) - max(t - 3.0, 50.0)) / 3.0 for t in times_s
    ]
    channel = Channel("meter", "system", "power_w", delay=real)
    (reading,) = meter_energy(
        meter="meter", kind="measured", channels=[channel], native_period_s=0.1, period_s=0.1,
        times_s=times_s, values=[values], start_s=50.0, end_s=50.0 + short,
    )  # fmt: skip
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    assert 300.0 - reading.energy_j > 100.0
    assert abs(reading.energy_j - 300.0) <= reading.uncertainty_j


def test_readings_that_end_with_the_window_cost_uncertainty_but_no_energy() -> None:
    real = Delay(2.0)
    reading = energy(real, real, until_s=END_S)
    assert reading.valid and reading.coverage == pytest.approx(1.0)
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    assert abs(reading.energy_j - TRUE_J) <= reading.uncertainty_j


def test_random_delays_are_within_the_uncertainty() -> None:
    draw = random.Random(5)
    inside = 0
    for _ in range(300):
        real = Delay(draw.uniform(0.0, 5.0), draw.uniform(0.0, 5.0))
        reading = energy(real, real, period_s=draw.choice((0.1, 0.5, 1.0)))
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        inside += abs(reading.energy_j - TRUE_J) <= reading.uncertainty_j
    assert inside >= 285


# --- where a delay comes from ---------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "machine-id").write_text("1" * 32)
    monkeypatch.setattr(calibration, "_MACHINE_ID", tmp_path / "machine-id")
    return tmp_path


def delay_of(spec: str, own: Delay | None = None) -> Delay | None:
    channel = Channel("c", "system", "power_w", delay=own)
    meter = ScriptedMeter([channel], lambda: [1.0], spec=spec, native_period_s=1.0)
    (found,) = meter_info(meter, 10.0).channels
    return found.delay


def test_the_user_comes_before_a_calibration_the_channel_and_the_kind(machine: Path) -> None:
    assert delay_of("iio") is None
    assert delay_of("ipmi") == BMC
    assert delay_of("ipmi", Delay(0.5)) == Delay(0.5)
    measured = Delay(1.0, 2.0, 0.2, 0.5, "measured")
    calibration.store_delay("ipmi", measured)
    assert delay_of("ipmi", Delay(0.5)) == measured
    assert delay_of("ipmi,host=other") == BMC
    stated = delay_of("ipmi,lag_s=3")
    source = f"lag stated by the user; mean: {BMC.source}"
    assert stated == Delay(3.0, BMC.averages_s, 0.0, BMC.averages_within_s, source)
    assert delay_of("iio,lag_s=0,averages_s=2") == Delay(0.0, 2.0, source="stated by the user")
    assert calibration.forget("ipmi") == 1
    assert delay_of("ipmi") == BMC


@pytest.mark.parametrize("spec", ["iio", "csv:log", "prometheus:host", "modbus:host", "ipmi"])
def test_what_is_not_stated_of_an_unknown_delay_stays_unknown(machine: Path, spec: str) -> None:
    lag = delay_of(f"{spec},lag_s=3")
    assert lag is not None and (lag.lag_s, lag.lag_within_s) == (3.0, 0.0)
    assert (lag.averages_s, lag.averages_within_s) == (BMC.averages_s, BMC.averages_within_s)
    mean = delay_of(f"{spec},averages_s=1")
    assert mean is not None and (mean.averages_s, mean.averages_within_s) == (1.0, 0.0)
    assert (mean.lag_s, mean.lag_within_s) == (BMC.lag_s, BMC.lag_within_s)
    assert mean.source == f"mean stated by the user; lag: {BMC.source}"
    both = delay_of(f"{spec},lag_s=3,averages_s=1")
    assert both == Delay(3.0, 1.0, source="stated by the user")


def test_a_counter_whose_mean_is_not_stated_has_none(machine: Path) -> None:
    channel = Channel("c", "system", "energy_j")
    meter = ScriptedMeter([channel], lambda: [1.0], spec="csv:log,lag_s=3", native_period_s=1.0)
    (found,) = meter_info(meter, 10.0).channels
    assert found.delay is not None
    assert (found.delay.lag_s, found.delay.lag_within_s, found.delay.averages_s) == (3.0, 0.0, 0.0)


def test_a_stated_mean_does_not_make_the_lag_certain(machine: Path) -> None:
    """Of a meter that is 4 s late."""
    half = delay_of("csv:log,averages_s=1")
    reading = energy(half, Delay(4.0, 1.0), until_s=END_S + 10.0)
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    assert abs(reading.energy_j - TRUE_J) <= reading.uncertainty_j


def test_calibrations_of_the_delay_and_of_the_gain_share_a_file(machine: Path) -> None:
    calibration.store_delay("shelly:plug", Delay(1.0, 2.0, 0.2, 0.5, "measured"))
    calibration.store_delay("ipmi", Delay(3.0))
    assert set(calibration.stored_delays()) == {"shelly:plug", "ipmi"}
    assert calibration.forget("shelly") == 1
    assert set(calibration.stored_delays()) == {"ipmi"}
    body = json.loads(calibration.path().read_text())
    (delays,) = body["delays"].values()
    assert delays["ipmi"]["lag_s"] == 3.0
    delays["ipmi"]["lag_s"] = -1.0
    calibration.path().write_text(json.dumps(body))
    with pytest.raises(PowerError, match="remove it and calibrate"):
        calibration.stored_delays()


@pytest.mark.parametrize("option", ["lag_s=-1", "averages_s=x", "lag_s=nan"])
def test_a_delay_that_is_no_time_is_rejected(machine: Path, option: str) -> None:
    (meter,) = open_meters([f"demo,{option}"])
    with pytest.raises(PowerError, match="not a number of at least 0"):
        meter_info(meter, 10.0)


def test_every_kind_that_averages_states_its_delay() -> None:
    stated = {name: about(name).delay for name in meter_names()}
    for name in ("ipmi", "redfish", "hwmon", "snmp", "nut", "shelly", "tasmota", "mqtt", "nvme"):
        known = stated[name]
        assert known is not None and known.longest_s > 0.0 and known.source, name
    assert stated["csv"] is None and stated["prometheus"] is None


def test_a_delay_is_in_the_samples_file(tmp_path: Path) -> None:
    known = Delay(0.1, 0.2, 0.05, 0.1, "datasheet")
    channel = Channel("c", "system", "power_w", delay=known)
    meter = ScriptedMeter([channel], lambda: [5.0], native_period_s=0.01)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=100.0):
        pass
    (read,) = load(tmp_path / "s.gz").meters[0].info.channels
    assert read.delay == known


@pytest.mark.parametrize(
    ("key", "value"), [("lag_s", -1.0), ("averages_s", "x"), ("source", 3), ("color", 1.0)]
)
def test_a_delay_of_a_file_is_checked(key: str, value: object) -> None:
    with pytest.raises((LimitError, TypeError)):
        delay.read({**asdict(Delay()), key: value})


# --- the sampler ----------------------------------------------------------------------------------


def test_the_sampler_waits_for_the_readings_of_a_late_meter(tmp_path: Path) -> None:
    late = Delay(0.3, source="datasheet")
    meter = ScriptedMeter(
        [Channel("c", "system", "power_w", delay=late)], lambda: [5.0], native_period_s=0.01
    )
    with Sampler([meter], tmp_path / "s.gz", rate_hz=100.0) as sampler:
        start_s = sampler.samples().meters[0].times_s[0]
        until(lambda: len(sampler.samples().meters[0].times_s) > 5)
        end_s = time.monotonic()
        at_once = sampler.energy(start_s, end_s, wait=False)
        assert sampler.samples().meters[0].times_s[-1] < end_s + late.lag_s
        (reading,) = sampler.energy(start_s, end_s)
        assert sampler.samples().meters[0].times_s[-1] >= end_s + late.lag_s
    assert at_once[0].valid and reading.valid
    assert reading.power_w == pytest.approx(5.0)


# --- bursts, and readings that are missing --------------------------------------------------------


def of_loads(
    real: Delay, loads: list[tuple[float, float]], period_s: float, *, after_s: float,
    counter: bool = False,
) -> tuple[EnergyReading, float]:  # fmt: skip
    """The reading of a window of loads (W, s) between idle times, whose delay is stated, and the
    true energy. `after_s`: how long the meter is read after the window."""
    powers = [(50.0, 20.0), *loads, (50.0, 60.0)]
    edges_s = [0.0, *itertools.accumulate(seconds for _, seconds in powers)]
    joules = [0.0, *itertools.accumulate(w * s for w, s in powers)]

    def until_j(time_s: float) -> float:
        k = max(0, min(bisect.bisect_right(edges_s, time_s) - 1, len(powers) - 1))
        return joules[k] + powers[k][0] * (max(0.0, time_s) - edges_s[k])

    start_s, end_s = 20.0, 20.0 + sum(seconds for _, seconds in loads)
    count = int((end_s + after_s) / period_s)
    times_s = [k * period_s for k in range(1, count + 1)]
    values = []
    for time_s in times_s:
        until_s = time_s - real.lag_s
        if counter:
            values.append(until_j(until_s))
        else:
            mean_s = real.averages_s or 1e-6
            values.append((until_j(until_s) - until_j(until_s - mean_s)) / mean_s)
    channel = Channel("m", "system", "energy_j" if counter else "power_w", delay=real)
    (reading,) = meter_energy(
        meter="m", kind="measured", channels=[channel], native_period_s=period_s,
        period_s=period_s, times_s=times_s, values=[values], start_s=start_s, end_s=end_s,
    )  # fmt: skip
    return reading, until_j(end_s) - until_j(start_s)


@pytest.mark.parametrize("after_s", [0.0, 1.0])
def test_a_log_that_ends_before_the_late_readings_has_no_energy(after_s: float) -> None:
    """3 s at 1000 W, of which a meter that is 5 s late has shown nothing yet."""
    reading, _ = of_loads(Delay(5.0), [(1000.0, 3.0)], 1.0, after_s=after_s)
    assert reading.energy_j is None
    assert "are missing: read the meter, or log it, for longer" in reading.reasons[0]


@pytest.mark.parametrize(
    ("real", "loads", "period_s"),
    [
        (Delay(0.0, 5.0), [(100.0, 30.0), (2000.0, 0.4)], 0.1),
        (Delay(2.0, 3.0), [(100.0, 30.0), (2000.0, 0.4)], 0.1),
        (Delay(0.0, 5.0), [(100.0, 40.0), (1000.0, 1.0)], 1.0),
        (Delay(5.0, 5.0), [(100.0, 18.0), (1000.0, 2.0)], 1.0),
    ],
)
def test_a_burst_at_the_end_that_is_shorter_than_the_mean_is_in_the_uncertainty(
    real: Delay, loads: list[tuple[float, float]], period_s: float
) -> None:
    channel = Channel("m", "system", "power_w", delay=real)
    after_s = wait_s(channel, period_s, period_s) + period_s
    reading, true_j = of_loads(real, loads, period_s, after_s=after_s)
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    assert abs(reading.energy_j - true_j) > 0.05 * true_j, "the burst is half outside"
    assert abs(reading.energy_j - true_j) <= reading.uncertainty_j


def test_a_burst_in_the_last_period_of_a_counter_is_in_the_uncertainty() -> None:
    real = Delay(0.3)
    channel = Channel("m", "system", "energy_j", delay=real)
    after_s = wait_s(channel, 1.0, 1.0)
    assert after_s > 1.0, "the next update shows it"
    reading, true_j = of_loads(
        real, [(100.0, 40.0), (500.0, 0.7)], 1.0, after_s=after_s + 1.0, counter=True
    )
    assert reading.energy_j is not None and reading.uncertainty_j is not None
    assert abs(reading.energy_j - true_j) <= reading.uncertainty_j


@pytest.mark.parametrize("option", ["lag_s=1e9", "averages_s=121"])
def test_eeio_waits_for_no_reading_for_hours(machine: Path, option: str) -> None:
    (meter,) = open_meters([f"demo,{option}"])
    with pytest.raises(PowerError, match="is more than 120 s"):
        meter_info(meter, 10.0)


def test_values_that_are_shown_count_as_they_come() -> None:
    channel = Channel("c", "system", "power_w", delay=BMC)
    meter = ScriptedMeter([channel], lambda: [1.0], spec="ipmi", native_period_s=1.0)
    info = meter_info(meter, 10.0)
    assert info.late_s > 0.0 and info.as_read.late_s == 0.0


@pytest.mark.parametrize(
    ("pause_s", "run_s", "averages_s", "is_doubtful"),
    [(5.0, 5.0, 10.0, True), (5.0, 20.0, 25.0, True), (5.0, 20.0, 8.0, False)],
)
def test_a_mean_that_is_as_long_as_pause_and_run_is_doubted(
    pause_s: float, run_s: float, averages_s: float, is_doubtful: bool
) -> None:
    """Such readings are flat, as if the power never changed: energies were 25 % off at 2.8 %."""
    period_s = pause_s + run_s

    def energy_until(time_s: float) -> float:
        cycles, rest_s = divmod(time_s, period_s)
        return 200.0 * (cycles * run_s + max(0.0, rest_s - pause_s)) + 100.0 * (
            cycles * pause_s + min(rest_s, pause_s)
        )

    times_s = [averages_s + 0.1 * k for k in range(3000)]
    watts = [(energy_until(t) - energy_until(t - averages_s)) / averages_s for t in times_s]
    channel = Channel(
        "meter", "system", "power_w", accuracy_relative=0.02,
        delay=Delay(0.0, averages_s, source="given"),
    )  # fmt: skip
    start_s = 5 * period_s + pause_s
    found = channel_energy(channel, times_s, watts, 0.1, 0.1, start_s, start_s + run_s)
    assert bool(found.doubts) == is_doubtful
    assert found.energy_j is not None
    if not is_doubtful:
        off_j = abs(found.energy_j - 200.0 * run_s)
        assert off_j <= combined_uncertainty_j([found])


@pytest.mark.parametrize("burst_share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("repetitions", [1, 2])
@pytest.mark.parametrize("periods", [2.25, 2.5, 3.75, 8.4])
def test_bursts_that_repeat_in_each_mean_are_in_the_uncertainty(
    burst_share: float, repetitions: int, periods: float
) -> None:
    """The readings are flat, and the window has no complete number of bursts."""
    averages_s, least_w, mean_w = 10.0, 50.0, 100.0
    burst_s = burst_share * averages_s / repetitions
    pause_s = averages_s / repetitions - burst_s
    burst_w = (mean_w - least_w * (1.0 - burst_share)) / burst_share
    real = Delay(0.0, averages_s, source="given")
    cycles = [(burst_w, burst_s), (least_w, pause_s)]

    def until_j(time_s: float) -> float:
        complete, rest_s = divmod(time_s, burst_s + pause_s)
        begun_j = burst_w * min(rest_s, burst_s) + least_w * max(0.0, rest_s - burst_s)
        return complete * sum(w * s for w, s in cycles) + begun_j

    times_s = [averages_s + 0.5 * k for k in range(1000)]
    watts = [(until_j(t) - until_j(t - averages_s)) / averages_s for t in times_s]
    channel = Channel("meter", "system", "power_w", delay=real)
    start_s = 50.0 + burst_s  # at the pause
    end_s = start_s + periods * averages_s
    result = channel_energy(channel, times_s, watts, 0.5, 0.5, start_s, end_s)
    assert result.energy_j is not None and not result.doubts
    off_j = abs(result.energy_j - (until_j(end_s) - until_j(start_s)))
    assert off_j <= combined_uncertainty_j([result])


@pytest.mark.parametrize(
    ("period_s", "known"),
    [(1.0, Delay(0.0, 0.0, source="given")), (1.0, BMC), (0.5, Delay(0.0, 0.1, source="given"))],
)
def test_what_a_meter_does_not_see_between_two_single_readings_is_in_the_uncertainty(
    period_s: float, known: Delay
) -> None:
    """Of a load that changes faster than the meter is read, each reading is one of its powers."""
    draw = random.Random(7)
    inside, window_s = 0, 60.0
    for _ in range(200):
        edges_s = [0.0]
        while edges_s[-1] < 200.0:
            edges_s.append(edges_s[-1] + draw.uniform(0.3, 1.5))
        watts = [120.0 if k % 2 else 60.0 for k in range(len(edges_s))]
        times_s = [k * period_s for k in range(1, int(190.0 / period_s))]
        values = [watts[bisect.bisect_right(edges_s, time_s) - 1] for time_s in times_s]
        start_s = 60.0
        true_j = math.fsum(
            watts[k] * max(0.0, min(end_s, start_s + window_s) - max(edges_s[k], start_s))
            for k, end_s in enumerate(edges_s[1:])
        )
        channel = Channel("m", "system", "power_w", delay=replace(known, lag_s=0.0))
        result = channel_energy(
            channel, times_s, values, period_s, period_s, start_s, start_s + window_s
        )
        assert result.energy_j is not None
        inside += abs(result.energy_j - true_j) <= combined_uncertainty_j([result])
    assert inside >= 190


@pytest.mark.parametrize(
    ("known", "is_named"),
    [
        (Delay(0.0, 1.0, source="given"), True),
        (Delay(0.0, 6.0, source="given"), False),
        (BMC, False),
    ],
)
def test_a_meter_that_shows_less_than_half_of_the_time_says_what_it_cannot_show(
    known: Delay, is_named: bool
) -> None:
    times_s = [10.0 * k for k in range(1, 60)]
    channel = Channel("m", "system", "power_w", delay=known)
    result = channel_energy(channel, times_s, [50.0] * 59, 10.0, 10.0, 100.0, 500.0)
    assert any("shows 1 s of each 10 s" in remark for remark in result.remarks) == is_named
