"""The sampler: threads that cannot hold each other up, exact windows, a file that survives."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulators import FakeRapl, ScriptedMeter
from tests.waiting import until

import eeio_power.sampler as sampler_module
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, open_meters
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterInfo, MeterSamples, load
from eeio_power.sampling_loops import copied, next_deadline

COUNTER = Channel("test:counter", "package", "energy_j")
POWER = Channel("test:power", "system", "power_w")

PATIENCE_S = 20.0
"""How long a thread may take on a slow machine before a test fails."""


class Clock:
    """Time that only a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Ticker:
    """Answers with a counter of 100 W, and says when it was asked often enough."""

    def __init__(self, reads: int = 5) -> None:
        self.reads = 0
        self.often = threading.Event()
        self._wanted = reads

    def __call__(self) -> Sequence[float | None]:
        self.reads += 1
        if self.reads >= self._wanted:
            self.often.set()
        return [100.0 * time.monotonic()]


# --- pace --------------------------------------------------------------------------------------


@given(
    period_s=st.floats(0.001, 2.0),
    late_s=st.floats(0.0, 10.0),
    beats=st.integers(0, 1000),
)
def test_deadlines_stay_on_the_grid(period_s: float, late_s: float, beats: int) -> None:
    deadline_s = beats * period_s
    following_s = next_deadline(deadline_s, deadline_s + late_s, period_s)
    steps = (following_s - deadline_s) / period_s
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert steps >= 0.999
    assert following_s >= deadline_s + late_s - 1e-9, "a missed beat is skipped, not made up for"
    assert following_s <= deadline_s + late_s + period_s * (1 + 1e-9)


def test_each_meter_has_a_pace_of_its_own(tmp_path: Path) -> None:
    fast = ScriptedMeter([COUNTER], Ticker(), name="fast", native_period_s=0.001)
    slow = ScriptedMeter([POWER], lambda: [1.0], name="slow", native_period_s=0.5)
    sampler = Sampler([fast, slow], tmp_path / "s.gz", rate_hz=20.0)
    rates = {r.meter: r for r in sampler.rates()}
    assert rates["fast"].native_hz == pytest.approx(1000.0)
    assert rates["fast"].requested_hz == pytest.approx(20.0)
    assert rates["slow"].requested_hz == pytest.approx(2.0)
    assert rates["fast"].achieved_hz is None, "not measured is None"


def test_rates_tell_distinct_values_from_repeated_ones(tmp_path: Path) -> None:
    clock = Clock()
    meter = ScriptedMeter([POWER], lambda: [math.floor(clock.now_s / 2)], native_period_s=1.0)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock) as sampler:
        for _ in range(8):
            clock.now_s += 1.0
            sampler.energy(100.0, clock.now_s)
        (rates,) = sampler.rates()
    assert rates.reads == 9
    assert rates.achieved_hz == pytest.approx(1.0)
    assert rates.distinct_hz == pytest.approx(0.5)


# --- windows -----------------------------------------------------------------------------------


def test_a_window_with_a_suspension_has_no_energy(tmp_path: Path) -> None:
    """The counter of an outlet went on meanwhile: 300 J more in a window of 2 s, valid."""
    clock, suspended = Clock(), Clock()
    meter = ScriptedMeter(
        [COUNTER], lambda: [50.0 * clock.now_s + 5.0 * suspended.now_s], native_period_s=0.001
    )
    with Sampler(
        [meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock, suspended=suspended
    ) as sampler:
        clock.now_s = 102.0
        (before,) = sampler.energy(100.0, 102.0)
        clock.now_s, suspended.now_s = 104.0, 160.0
        (around,) = sampler.energy(102.0, 104.0)
        clock.now_s = 106.0
        (after,) = sampler.energy(104.0, 106.0)
    assert before.energy_j == pytest.approx(100.0)
    assert after.energy_j == pytest.approx(100.0)
    assert not around.valid and around.energy_j is None
    assert "the machine was suspended for 60.0 s meanwhile" in around.reasons


def test_a_window_that_ends_now_is_clipped_by_one_more_read(tmp_path: Path) -> None:
    clock = Clock()
    meter = ScriptedMeter([COUNTER], lambda: [50.0 * clock.now_s], native_period_s=0.001)
    # At this rate no read happens by itself.
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock) as sampler:
        clock.now_s = 101.0
        (first,) = sampler.energy(100.0, 101.0)
        clock.now_s = 103.5
        (second,) = sampler.energy(101.0, 103.5)
        (again,) = sampler.energy(101.0, 103.5)
        (rates,) = sampler.rates()
    assert first.energy_j == pytest.approx(50.0)
    assert second.energy_j == pytest.approx(125.0)
    assert second.uncertainty_j == pytest.approx(50.0 * 0.001, rel=1e-3), "the edges are exact"
    assert again == second
    assert rates.reads == 3, "a window that is covered needs no more reads"


def test_two_meters_of_one_domain_both_keep_their_readings(tmp_path: Path) -> None:
    clock = Clock()
    a = ScriptedMeter([POWER], lambda: [100.0], name="a", native_period_s=1.0)
    b = ScriptedMeter(
        [POWER], lambda: [90.0], name="b", kind="device-reported", native_period_s=1.0
    )
    with Sampler([a, b], tmp_path / "s.gz", rate_hz=1e-3, clock=clock) as sampler:
        clock.now_s = 101.0
        readings = sampler.energy(100.0, 101.0)
    assert [(r.meter, r.kind, r.power_w) for r in readings] == [
        ("a", "measured", pytest.approx(100.0)),
        ("b", "device-reported", pytest.approx(90.0)),
    ]


def test_rapl_runs_in_real_time(tmp_path: Path) -> None:
    with FakeRapl(tmp_path / "powercap", power_w=lambda _: 150.0) as rapl:
        meters = open_meters([f"rapl,root={rapl.root}"])
        with Sampler(meters, tmp_path / "s.gz", rate_hz=50.0) as sampler:
            start_s = time.monotonic()
            assert not threading.Event().wait(0.6), "time must go by"
            end_s = time.monotonic()
            readings = {r.domain: r for r in sampler.energy(start_s, end_s)}
    total_w = sum(r.power_w or 0.0 for r in readings.values())
    assert all(r.valid for r in readings.values())
    # The simulator writes every 10 ms or so: a late write at either end is all that may differ.
    assert total_w == pytest.approx(150.0, rel=0.3)
    assert sampler.errors == {"rapl": 0}


# --- stalls and failures -----------------------------------------------------------------------


def test_a_stalled_meter_blocks_nothing(tmp_path: Path) -> None:
    ticker = Ticker(reads=40)
    good = ScriptedMeter([COUNTER], ticker, name="good")
    bad = ScriptedMeter([POWER], lambda: [5.0], name="bad")
    bad.flowing.clear()
    sampler = Sampler([bad, good], tmp_path / "s.gz", rate_hz=100.0)
    try:
        begun_s = time.monotonic()
        sampler.start()
        assert bad.entered.wait(PATIENCE_S)
        assert ticker.often.wait(PATIENCE_S), "the good meter must go on"
        (stalled, fine) = sampler.energy(begun_s, time.monotonic())
        sampler.stop()
        assert time.monotonic() - begun_s < PATIENCE_S
    finally:
        bad.flowing.set()
    assert fine.valid
    # A busy machine may delay the time stamp of a reading by some milliseconds of 0.4 s.
    assert fine.power_w == pytest.approx(100.0, rel=0.3)
    assert not stalled.valid
    assert stalled.power_w is None
    assert "no reading in the window" in stalled.reasons[0]
    assert load(sampler.path).energy(begun_s, time.monotonic())[1].samples > 0


def test_a_failed_read_is_missing_counted_and_reported(tmp_path: Path) -> None:
    clock = Clock()

    def answer() -> Sequence[float | None]:
        if clock.now_s == 103.0:
            raise OSError(5, "Input/output error")
        if clock.now_s == 105.0:
            return [None]
        if clock.now_s == 107.0:
            return [1.0, 2.0]
        return [100.0]

    meter = ScriptedMeter([POWER], answer, native_period_s=1.0)
    errors = []
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=clock) as sampler:
        for _ in range(9):
            clock.now_s += 1.0
            sampler.energy(100.0, clock.now_s)
            errors.append(sampler.rates()[0].last_error)
        (reading,) = sampler.energy(100.0, 109.0)
        assert sampler.errors == {"scripted": 3}
        clock.now_s += 1.0
    assert "Input/output error" in (errors[2] or "")
    assert "no value from test:power" in (errors[4] or "")
    assert "2 values for 1 channels" in (errors[6] or "")
    assert reading.energy_j == pytest.approx(900.0), "three zeros would have cost 300 J"
    assert reading.samples == 6
    values = [v for _, v in sampler.samples().meters[0].series("test:power")]
    assert values.count(None) == 3
    assert load(sampler.path).energy(100.0, 109.0) == [reading]


def test_a_counter_read_that_took_too_long_is_missing(tmp_path: Path) -> None:
    clock = Clock()

    def answer() -> Sequence[float | None]:
        if clock.now_s == 101.0:
            clock.now_s += 2.0  # nobody knows when in these two seconds the counter was taken
        return [50.0 * clock.now_s]

    meter = ScriptedMeter([COUNTER], answer, native_period_s=0.1)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1.0, clock=clock) as sampler:
        clock.now_s = 101.0
        sampler.energy(100.0, 101.0)
        (rates,) = sampler.rates()
    assert rates.failed_reads == 1
    assert "took 2.00 s" in (rates.last_error or "")


def test_misuse_is_reported(tmp_path: Path) -> None:
    meter = ScriptedMeter([POWER], lambda: [1.0])
    for rate_hz in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(PowerError, match="Hz"):
            Sampler([meter], tmp_path / "s.gz", rate_hz=rate_hz)
    with pytest.raises(PowerError, match="create the folder"):
        Sampler([meter], tmp_path / "no" / "s.gz").start()
    sampler = Sampler([], tmp_path / "s.gz")
    assert sampler.write_error is None
    sampler.stop()
    with sampler, pytest.raises(PowerError, match="already been started"):
        sampler.start()
    sampler.stop()
    assert sampler.energy(0.0, 1.0) == []
    assert not meter.closed, "the sampler does not close what it did not open"


# --- the file ----------------------------------------------------------------------------------


def test_samples_of_another_run_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "power-0001.csv.gz"
    path.write_bytes(b"other samples")
    link = tmp_path / "link.csv.gz"
    link.symlink_to(tmp_path / "nowhere")
    for taken in (path, link):
        sampler = Sampler([ScriptedMeter([POWER], lambda: [1.0])], taken)
        with pytest.raises(PowerError, match=f"{taken.name}: exists, and"):
            sampler.start()
        sampler.stop()
    assert path.read_bytes() == b"other samples"
    assert not (tmp_path / "nowhere").exists()


def test_a_full_disk_is_reported_and_sampling_goes_on(tmp_path: Path) -> None:
    ticker = Ticker(reads=30)
    meter = ScriptedMeter([COUNTER], ticker)
    with Sampler([meter], Path("/dev/full"), rate_hz=200.0) as sampler:
        start_s = time.monotonic()
        assert ticker.often.wait(PATIENCE_S)
        (reading,) = sampler.energy(start_s, time.monotonic())
    assert reading.valid
    assert "not written: No space left" in (sampler.write_error or "")


def test_a_disk_with_room_again_gets_the_complete_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _Refusing(FileIO):
        full = True

        def write(self, data: Any) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            # And then in small bites, as a nearly full disk gives them.
            return super().write(bytes(data[:7]))

    file = _Refusing(str(tmp_path / "s.gz"), "w")
    monkeypatch.setattr(Path, "open", lambda *_, **__: file)
    monkeypatch.setattr(sampler_module, "FLUSH_PERIOD_S", 0.01)
    ticker = Ticker(reads=20)
    sampler = Sampler([ScriptedMeter([COUNTER], ticker)], tmp_path / "s.gz", rate_hz=200.0)
    sampler.start()
    assert ticker.often.wait(PATIENCE_S)
    until(lambda: sampler.write_error is not None)
    file.full = False
    sampler.stop()
    monkeypatch.undo()
    assert sampler.write_error is None
    back = load(sampler.path)
    assert not back.truncated
    assert list(back.meters[0].times_s) == list(sampler.samples().meters[0].times_s)


CHILD = """
import sys, time
from pathlib import Path
from eeio_power.meters import Channel
from eeio_power.sampler import Sampler
from tests.simulators import ScriptedMeter
meter = ScriptedMeter(
    [Channel("test:counter", "package", "energy_j")], lambda: [100.0 * time.monotonic()]
)
Sampler([meter], Path(sys.argv[1]), rate_hz=100.0).start()
sys.stdin.read()
"""


def test_a_killed_sampler_leaves_a_file_good_up_to_the_last_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, env=environment
    )
    try:
        until(lambda: path.exists() and path.stat().st_size > 600)
    finally:
        child.send_signal(signal.SIGKILL)
        killed_s = time.monotonic()
        child.wait(PATIENCE_S)
        if child.stdin is not None:
            child.stdin.close()
    samples = load(path)
    assert samples.truncated
    times_s = samples.meters[0].times_s
    assert len(times_s) > 20
    assert killed_s - times_s[-1] < 10.0, "two seconds, and some for a busy machine"
    (reading,) = samples.energy(times_s[2], times_s[-2])
    assert reading.power_w == pytest.approx(100.0, rel=0.1)


@settings(deadline=None, max_examples=1000)
@given(data=st.data())
def test_the_energy_of_a_window_needs_no_more_than_is_copied(data: st.DataObject) -> None:
    """A session of days is not copied for a window of seconds, and the figures are the same."""
    meters = [
        Channel("a", "system", "power_w", max_power_w=500.0),
        Channel("b", "package", "energy_j", range_j=1e6, max_power_w=500.0, counts="package-0"),
        Channel("c", "package", "energy_j", range_j=1e6, max_power_w=500.0, counts="package-0"),
    ]
    info = MeterInfo("m", "m", "measured", 0.1, 0.1, tuple(meters))
    steps = data.draw(st.lists(st.floats(0.05, 0.7), min_size=1, max_size=60))
    times = [sum(steps[: k + 1]) for k in range(len(steps))]
    value = st.one_of(st.just(math.nan), st.floats(1.0, 400.0))
    powers = [data.draw(value) for _ in times]
    counter = [math.nan if math.isnan(data.draw(value)) else 50.0 * t for t in times]
    start_s = data.draw(st.floats(0.0, times[-1]))
    end_s = start_s + data.draw(st.floats(0.01, 3.0))
    other = [50.0 * data.draw(st.sampled_from((1.0, 1.1))) * t for t in times]
    complete = MeterSamples(info, times, (powers, counter, other))
    part = copied(info, times, (powers, counter, other), start_s, end_s)
    assert part.energy(start_s, end_s) == complete.energy(start_s, end_s)


def test_a_window_late_in_a_session_copies_little() -> None:
    info = MeterInfo("m", "m", "measured", 0.1, 0.1, (Channel("a", "system", "power_w"),))
    times = [0.1 * k for k in range(100_000)]
    powers = [40.0 + k % 3 for k in range(len(times))]
    part = copied(info, times, (powers,), 5000.0, 5001.0)
    assert len(part.times_s) < 50
