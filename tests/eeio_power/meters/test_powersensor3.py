"""PowerSensor3 against a simulator of our own on a pseudo terminal, and its stream as bytes."""

import errno
import fcntl
import math
import os
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.eeio_power.one_meter import one_meter
from tests.simulators.powersensor3 import (
    NVME,
    PATTERN_SETS,
    UNUSED,
    FakePair,
    FakePowerSensor3,
    Patterns,
    sample_set,
)

from eeio_power.errors import PowerError
from eeio_power.meters import discover, open_meters, powersensor3
from eeio_power.meters.powersensor3 import (
    Averager,
    PowerSensor3Meter,
    StreamBatches,
    measured_set_s,
    pairs_in_use,
    parse_record,
)
from eeio_power.reading import UNKNOWN, only
from eeio_power.sampler import NOWHERE, Sampler
from eeio_power.samples import MeterSamples, meter_info

SET_S = 50e-6
RECORDS = b"".join(pair.records() for pair in NVME)
PAIRS = pairs_in_use([parse_record(RECORDS[41 * k : 41 * (k + 1)], k) for k in range(8)])
PATTERNS = Patterns(NVME)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("STOP_S", 0.02), ("ANSWER_S", 0.5), ("SILENT_S", 0.1), ("REOPEN_S", 0.02),
    ):  # fmt: skip
        monkeypatch.setattr(powersensor3, name, seconds)


def averaged(
    data: bytes, period_s: float = 0.001, at_once: int = 2700, late_s: float = 0
) -> Averager:
    """The stream of a board whose bytes arrive at once when they are due."""
    averager = Averager(PAIRS, SET_S, period_s)
    for begin in range(0, len(data), at_once):
        end = min(len(data), begin + at_once)
        averager.feed(data[begin:end], 1000.0 + end / 18 * SET_S)
    return averager


def problems(averager: Averager) -> list[str]:
    return [reading.problem for reading in averager.readings if reading.problem is not None]


# ---- the start ----


def test_opening_reads_the_calibration_and_writes_none() -> None:
    with FakePowerSensor3() as board:
        meter = one_meter(f"powersensor3:{board.path}")
        assert meter.read() == pytest.approx([2.5, 6.0], rel=1e-3)
        meter.close()
    # Stop, version, configuration with a byte after each record, and streams that are stopped.
    assert board.heard.startswith(b"TVR" + b"s" * 8 + b"S")
    assert set(board.heard) <= set(b"TVRsS")
    assert board.heard.endswith(b"T")
    assert meter.native_period_s == pytest.approx(50e-6)
    assert [(c.name, c.domain, c.contents) for c in meter.channels] == [
        ("powersensor3:NVMe", "device", only("drives")),
        ("powersensor3:12V", "device", only("drives")),
    ]
    # One level of an MLX10 is 27 mA either way.
    assert [c.resolution for c in meter.channels] == pytest.approx([0.178, 0.645], rel=0.01)
    assert "MLX10" in (meter.channels[0].remark or "")


def test_a_stream_that_was_left_on_is_stopped_first() -> None:
    with FakePowerSensor3(streams=True) as board:
        assert one_meter(f"powersensor3:{board.path}").read() == pytest.approx([2.5, 6.0], rel=1e-3)


def test_pairs_by_name_and_number_and_the_domain() -> None:
    with FakePowerSensor3() as board:
        for pairs in ("12V", "1"):
            (meter,) = open_meters([f"powersensor3:{board.path},pairs={pairs},domain=system"])
            assert meter.read() == pytest.approx([6.0], rel=1e-3)
            assert [(c.name, c.domain, c.contents) for c in meter.channels] == [
                ("powersensor3:12V", "system", UNKNOWN)
            ]
            meter.close()
        with pytest.raises(PowerError, match=r"'5V' is not one of its pairs: NVMe .number 0., 12V"):
            open_meters([f"powersensor3:{board.path},pairs=NVMe+5V"])
        with pytest.raises(PowerError, match="'NVMe' is not one"):
            open_meters([f"powersensor3:{board.path},pairs=NVMe+NVMe"])


def test_pairs_of_one_name_are_selected_by_number() -> None:
    same = (replace(NVME[0], name="12V"), NVME[1], UNUSED, UNUSED)
    with FakePowerSensor3(pairs=same) as board:
        with pytest.raises(PowerError, match="several pairs have the name 12V"):
            open_meters([f"powersensor3:{board.path}"])
        assert one_meter(f"powersensor3:{board.path},pairs=0").read() == pytest.approx(
            [2.5], rel=1e-3
        )


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        (b"\xff" * 328, "sensor 0 is not configured"),
        (RECORDS[:32] + struct.pack("<f", math.nan) + RECORDS[36:], "sensor 0 is not configured"),
        (UNUSED.records() * 4, "no pair is in use"),
        (replace(NVME[0], sensitivity=0.0).records() + UNUSED.records() * 3, "sensitivity of 0"),
        (RECORDS[:300], "13 bytes instead of 41 of the configuration of sensor 7"),
    ],
)
def test_boards_that_are_not_set_up(records: bytes, problem: str) -> None:
    with (
        FakePowerSensor3(records=records) as board,
        pytest.raises(PowerError, match=problem),
    ):
        open_meters([f"powersensor3:{board.path}"])


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        (b"", "no PowerSensor3 answers"),
        (b"Watts Up?\r\n", "no PowerSensor3 answers"),
        (b"F411-1.6.1-DEMO\r\n", "a demo build, which sends invented values"),
    ],
)
def test_other_devices_and_demo_firmware(version: bytes, problem: str) -> None:
    with (
        FakePowerSensor3(version=version) as board,
        pytest.raises(PowerError, match=problem),
    ):
        open_meters([f"powersensor3:{board.path}"])


def test_another_program_on_the_line_is_named() -> None:
    with FakePowerSensor3() as board:
        descriptor = os.open(board.path, os.O_RDWR | os.O_NOCTTY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(PowerError, match=r"locked by .*(process \d+|psrun).*; end it"):
            open_meters([f"powersensor3:{board.path}"])
        os.close(descriptor)
        meter = one_meter(f"powersensor3:{board.path}")
        with pytest.raises(PowerError, match="is locked by"):
            open_meters([f"powersensor3:{board.path}"])
        meter.close()
    assert b"W" not in board.heard


def test_no_line_no_board_and_no_port(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match=r"No such file.*dialout"):
        open_meters([f"powersensor3:{tmp_path}/ttyACM9"])
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerError, match="not a serial line"):
        open_meters([f"powersensor3:{tmp_path}/file"])
    with pytest.raises(PowerError, match="which line"):
        open_meters(["powersensor3"])


def test_finding_writes_to_no_line(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (finding,) = [f for f in discover(tmp_path) if f.spec == "powersensor3"]
    assert not finding.available and "no USB serial line" in (finding.reason or "")
    (tmp_path / "dev/ttyACM0").write_text("")
    (finding,) = [f for f in discover(tmp_path) if f.spec == "powersensor3"]
    assert "--meter powersensor3:/dev/ttyACM0" in (finding.remedy or "")
    assert (tmp_path / "dev/ttyACM0").read_text() == ""


# ---- energy ----


def energy_j(
    averager: Averager, period_s: float, start_s: float, end_s: float
) -> tuple[float | None, float]:
    """The energy of both pairs and its coverage, integrated as the sampler does."""
    channels = tuple(
        powersensor3.Channel(f"p:{p.name}", "device", "power_w", accuracy_relative=0.02,
                             resolution=0.1, max_power_w=p.most_w)
        for p in PAIRS
    )  # fmt: skip
    meter = PowerSensor3Meter("powersensor3:x", "p", "x", tuple(PAIRS), SET_S, channels)
    times_s = [reading.time_s for reading in averager.readings]
    columns = tuple([r.watts[k] for r in averager.readings] for k in range(len(PAIRS)))
    info = meter_info(meter, 1.0 / period_s)
    (reading,) = MeterSamples(info, times_s, columns).energy(1000.0 + start_s, 1000.0 + end_s)
    return reading.energy_j, reading.coverage


def stream(power_w: Callable[[float], tuple[float, float]], seconds: float) -> bytes:
    """The bytes of a load that changes each millisecond at most."""
    return b"".join(
        PATTERNS.sets(20 * k, 20 * (k + 1), power_w(k / 1000.0))
        for k in range(round(seconds * 1000))
    )


def test_energy_of_a_minute_is_that_of_the_simulator() -> None:
    blocks = [PATTERNS.sets(0, 100 * PATTERN_SETS, (w, 12.0 - w)) for w in (0.5, 2.5, 7.0)]
    data = b"".join(blocks[k % 3] for k in range(24))
    averager = averaged(data, 0.1)
    assert not problems(averager)
    seconds = len(data) / 18 * SET_S
    assert seconds > 60
    found_j, coverage = energy_j(averager, 0.1, 0.0, seconds)
    assert found_j == pytest.approx(12.0 * seconds, rel=0.002)
    assert coverage > 0.999
    nvme_w = [reading.watts[0] for reading in averager.readings]
    assert math.fsum(nvme_w) / len(nvme_w) == pytest.approx(10.0 / 3, rel=0.005)


@pytest.mark.parametrize("period_s", [0.001, 0.01])
def test_a_burst_of_a_second(period_s: float) -> None:
    """2.0015 s to 3.0015 s, so that it begins within a reading."""
    data = stream(lambda t: (8.0 if 2.0015 <= t < 3.0015 else 1.0, 0.0), 5.0)
    averager = averaged(data, period_s)
    found_j, _ = energy_j(averager, period_s, 2.002, 3.002)
    assert found_j == pytest.approx(8.0, rel=0.02)
    found_j, _ = energy_j(averager, period_s, 0.5, 4.5)
    assert found_j == pytest.approx(4.0 + 7.0, rel=0.005)


def test_current_and_voltage_are_multiplied_set_by_set() -> None:
    """They alternate against each other: the product of the means would be four times as much."""
    high = [p.levels(8.0)[0] for p in NVME[:1]] + [0]
    low = [NVME[0].vref_v * 1023 / 3.3, 89]
    sets = [
        sample_set(50 * k, [*map(round, high if k % 2 else low), *[512, 0] * 3])
        for k in range(2000)
    ]
    averager = averaged(b"".join(sets), 0.01)
    assert max(reading.watts[0] for reading in averager.readings) < 0.1


# ---- the stream ----


@settings(max_examples=30)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=20), st.binary(max_size=17))
def test_readings_do_not_depend_on_how_the_stream_is_cut(bites: list[int], before: bytes) -> None:
    data = before + PATTERNS.sets(3, 603, (2.5, 6.0))
    averager, begin, k = Averager(PAIRS, SET_S, 0.001), 0, 0
    while begin < len(data):
        end = begin + bites[k % len(bites)]
        averager.feed(data[begin:end], 1000.0 + end / 18 * SET_S)
        begin, k = end, k + 1
    known = [reading.watts[0] for reading in averager.readings if reading.problem is None]
    assert len(known) >= 28
    assert known == pytest.approx([2.5] * len(known), rel=0.02)


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_noise_is_no_reading(noise: bytes) -> None:
    averager = averaged(noise, SET_S, at_once=64)
    for reading in averager.readings:
        assert all(math.isnan(w) or abs(w) < 600 for w in reading.watts)


@pytest.mark.parametrize("count", [1, 2, 7, 18, 36, 400, 720])
def test_lost_bytes_cost_their_reading_only(count: int) -> None:
    data = PATTERNS.sets(0, 4000, (2.5, 6.0))
    averager = averaged(data[: 18 * 2005 + 5] + data[18 * 2005 + 5 + count :])
    missing = [reading for reading in averager.readings if reading.problem is not None]
    assert [reading.problem for reading in missing] == ["bytes of the stream are missing"]
    assert all(math.isnan(w) for w in missing[0].watts)
    assert missing[0].time_s == pytest.approx(1000.1, abs=0.005)
    known = [reading.watts for reading in averager.readings if reading.problem is None]
    assert len(known) >= 196
    assert all(watts == pytest.approx((2.5, 6.0), rel=0.03) for watts in known)


@pytest.mark.parametrize(
    "noise", [b"\xff\x3f", b"\xff\x3f\xff\x3f", b"\xf0", b"\x55", b"\x80\0" * 9]
)
def test_garbage_and_stop_packets_between_sets(noise: bytes) -> None:
    data = PATTERNS.sets(0, 2000, (2.5, 6.0))
    averager = averaged(data[: 18 * 1005] + noise + data[18 * 1005 :])
    assert problems(averager) == ["bytes of the stream are missing"]
    known = [reading.watts for reading in averager.readings if reading.problem is None]
    assert all(watts == pytest.approx((2.5, 6.0), rel=0.03) for watts in known)
    assert energy_j(averager, 0.001, 0.01, 0.09)[0] == pytest.approx(8.5 * 0.08, rel=0.01)


def test_a_gap_that_the_stamps_do_not_show_is_found_by_the_clock() -> None:
    """2048 sets are missing, which take 100 times the time after which stamps repeat."""
    first, rest = PATTERNS.sets(0, 20_480, (2.5, 6.0)), PATTERNS.sets(0, 40_000, (2.5, 6.0))
    averager = averaged(first)
    assert not averager.gaps
    missing_s = 4 * PATTERN_SETS * SET_S
    for begin in range(0, len(rest), 2700):
        end = min(len(rest), begin + 2700)
        now_s = 1000.0 + (20_480 + end / 18) * SET_S + missing_s
        averager.feed(rest[begin:end], now_s)
    assert problems(averager) == ["102 ms of the stream are missing"]
    assert averager.readings[-1].time_s == pytest.approx(now_s, abs=0.003)
    _, coverage = energy_j(averager, 0.001, 0.5, 2.5)
    assert coverage < 0.96


def test_a_busy_machine_makes_no_gap() -> None:
    """Its reads are late for half a second at a time, and some of them are not."""
    data = PATTERNS.sets(0, 100_000, (2.5, 6.0))
    averager, begin = Averager(PAIRS, SET_S, 0.01), 0
    for k in range(100):
        end = begin + 18_000
        late_s = 0.0 if k % 7 == 0 else 0.02
        averager.feed(data[begin:end], 1000.0 + end / 18 * SET_S + late_s)
        begin = end
    assert averager.gaps == 0
    times_s = [reading.time_s for reading in averager.readings]
    assert times_s == sorted(set(times_s))


def test_a_drifting_clock_makes_no_gap() -> None:
    averager, data = Averager(PAIRS, SET_S, 0.1), PATTERNS.sets(0, 1536, (2.5, 6.0))
    for k in range(800):
        averager.feed(data, 1000.0 + (k + 1) * 1536 * SET_S * (1 + 50e-6))
    assert averager.gaps == 0
    assert averager.readings[-1].time_s == pytest.approx(1000.0 + 800 * 1536 * SET_S, abs=0.11)


def test_a_sensor_at_the_end_of_its_range_is_missing() -> None:
    """FF 3F is level 1023 of sensor 7, too: no stop."""
    pairs = [replace(PAIRS[0], number=3), PAIRS[1]]
    good, full = [512, 100, 520, 326, 512, 0, 520, 300], [512, 100, 520, 326, 512, 0, 520, 1023]
    sets = [sample_set(50 * k, full if 25 <= k < 30 else good) for k in range(100)]
    averager = Averager(pairs, SET_S, 0.001)
    averager.feed(b"".join(sets), 1000.0)
    assert [math.isnan(r.watts[0]) for r in averager.readings] == [False, True, False, False, False]
    assert not any(math.isnan(r.watts[1]) for r in averager.readings)
    assert problems(averager) == ["a sensor of NVMe is at the end of its range"]


def test_markers_are_no_time_stamps() -> None:
    sets = [sample_set(50 * k, [520, 95, 520, 326, 0, 0, 0, 0], k % 3 == 0) for k in range(200)]
    averager = averaged(b"".join(sets))
    assert len(averager.readings) == 10 and averager.gaps == 0


@pytest.mark.parametrize(("set_us", "set_s"), [(50, 50e-6), (57, 57e-6), (29, 29e-6)])
def test_the_rate_is_that_of_the_stamps(set_us: int, set_s: float) -> None:
    data = Patterns(NVME, set_us).sets(0, 500, (2.5, 6.0))
    assert measured_set_s(b"\x12" + data) == pytest.approx(set_s, abs=1e-7)
    with pytest.raises(PowerError, match="do not rise evenly"):
        measured_set_s(b"".join(sample_set(k * k * 13, [0] * 8) for k in range(500)))


# ---- under a sampler ----


def fetched(batches: StreamBatches, until: Callable[[list[float], list[str]], bool]) -> list[str]:
    """Fetches until the times and errors of all readings suffice; the errors."""
    times_s: list[float] = []
    errors: list[str] = []
    deadline_s = time.monotonic() + 20.0
    while not until(times_s, errors):
        assert time.monotonic() < deadline_s, errors
        batches.wait(0.01)
        try:
            batch = batches.fetch()
        except (PowerError, OSError) as error:
            errors.append(str(error))
            continue
        times_s += batch.done_s
        errors += batch.problems.values()
    return errors


def test_a_sampler_at_1_khz_gets_means_of_the_stream() -> None:
    with FakePowerSensor3() as board:
        meter = one_meter(f"powersensor3:{board.path}")
        with Sampler([meter], NOWHERE, rate_hz=1000.0) as sampler:
            start_s = time.monotonic()
            while sampler.rates()[0].reads < 300:
                time.sleep(0.02)
            (reading,) = sampler.energy(start_s, time.monotonic())
            (info,) = sampler.infos
        assert (info.period_s, info.native_period_s) == pytest.approx((0.001, 0.001))
        assert [c.delay.averages_s for c in info.channels if c.delay] == pytest.approx([0.001] * 2)
    assert reading.power_w == pytest.approx(8.5, rel=0.005)


def test_unplugged_plugged_in_and_restarted(tmp_path: Path) -> None:
    with FakePowerSensor3(link=tmp_path / "ttyACM0") as board:
        meter = one_meter(f"powersensor3:{board.path}")
        assert isinstance(meter, PowerSensor3Meter)
        batches = meter.batches(0.001)
        batches.start()
        fetched(batches, lambda times, _: len(times) > 20)
        board.unplug()
        errors = fetched(batches, lambda _, errors: len(errors) > 0)
        assert str(tmp_path) in errors[-1]
        board.plug_in()
        fetched(batches, lambda times, _: len(times) > 20)
        board.reset()
        errors = fetched(batches, lambda times, errors: "the stream has stopped" in str(errors))
        fetched(batches, lambda times, _: len(times) > 20)
        batches.finish()
        batches.fetch()
        assert batches.ended
        batches.kill()


def test_another_calibration_after_a_restart_is_no_reading(tmp_path: Path) -> None:
    link = tmp_path / "ttyACM0"
    with FakePowerSensor3(link=link) as board:
        meter = one_meter(f"powersensor3:{board.path}")
        assert isinstance(meter, PowerSensor3Meter)
        board.unplug()
        with pytest.raises(OSError):
            meter.read()
    other = (replace(NVME[0], sensitivity=0.0625), *NVME[1:])
    with (
        FakePowerSensor3(pairs=other, link=link),
        pytest.raises(PowerError, match="its calibration has changed"),
    ):
        meter.read()


def test_a_failed_stream_is_reported_by_the_fetch(tmp_path: Path) -> None:
    link = tmp_path / "ttyACM0"
    with FakePowerSensor3(link=link) as board:
        meter = one_meter(f"powersensor3:{board.path}")
        assert isinstance(meter, PowerSensor3Meter)
        board.unplug()
        batches = meter.batches(0.001)
        batches.start()
        errors = fetched(batches, lambda _, errors: len(errors) > 2)
        assert any(os.strerror(errno.ENOENT) in error or "unplugged" in error for error in errors)
        batches.kill()


def test_inverted_sensors() -> None:
    pairs = (FakePair("USB", 5.0, sensitivity=-0.12), UNUSED, UNUSED, UNUSED)
    with FakePowerSensor3(lambda _: (4.0,), pairs=pairs) as board:
        assert one_meter(f"powersensor3:{board.path}").read() == pytest.approx([4.0], rel=1e-3)
