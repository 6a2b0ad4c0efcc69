"""`eeio meter calibrate --meter SPEC` and `eeio meter list`: the delay of a live meter."""

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.simulators.scripted import ScriptedMeter

from eeio.cli import main
from eeio.commands.report import complete_report
from eeio.errors import EeioError
from eeio.measure.block_energy import energy as energy_of_block
from eeio.measure.calibration import delay
from eeio.measure.calibration.delay import Readings, fitted, poll
from eeio.record.results_folder import results_root
from eeio.record.store import load
from eeio.report.campaign.methods import paragraphs
from eeio_power import alignment, calibration
from eeio_power.alignment import Pulse, pulse_lengths_s
from eeio_power.meters import Channel
from eeio_power.now import changes_every_s

COUNT = 10
IDLE_W, LOAD_W = 100.0, 30.0


def pulses_from(begin_s: float, count: int = COUNT) -> list[Pulse]:
    pulses = []
    for loaded_s, idle_s in pulse_lengths_s(count):
        begin_s += idle_s
        pulses.append(Pulse(begin_s, begin_s + loaded_s))
        begin_s += loaded_s
    return pulses


def readings_of(
    pulses: Sequence[Pulse], lag_s: float, averages_s: float, period_s: float, draw: random.Random
) -> Readings:
    """Of a meter with a new value each period, 1 W apart, that is polled five times as often."""
    loaded = delay._Loaded(pulses)
    phase_s, poll_s = draw.uniform(0.0, period_s), max(delay.FASTEST_S, period_s / 5.0)
    times_s: list[float] = []
    values: list[float] = []
    updated_s, value = -1.0, 0.0
    time_s = pulses[0].start_s - 4.0
    while time_s < pulses[-1].end_s + 2.0:
        update_s = time_s - (time_s - phase_s) % period_s
        if update_s != updated_s:
            updated_s = update_s
            share = loaded.share(update_s - lag_s, averages_s)
            value = float(round(IDLE_W + LOAD_W * share + draw.gauss(0.0, 0.3)))
        times_s.append(time_s)
        values.append(value)
        time_s += poll_s * draw.uniform(0.95, 1.1)
    return Readings(times_s, values)


@pytest.mark.parametrize("seed", range(12))
def test_lag_and_averaging_time_are_found_within_the_stated_limits(seed: int) -> None:
    draw = random.Random(seed)
    lag_s = draw.uniform(0.0, 5.0) if seed % 4 else 0.0
    averages_s = draw.uniform(0.0, 5.0) if seed % 4 != 1 else 0.0
    period_s = (0.1, 0.2, 0.5, 1.0)[seed % 4]
    pulses = pulses_from(50.0)
    fit = fitted(readings_of(pulses, lag_s, averages_s, period_s, draw), pulses, period_s, "ipmi")
    assert fit.delay.lag_s == pytest.approx(lag_s, abs=min(0.2, 2.0 * fit.delay.lag_within_s))
    assert fit.delay.averages_s == pytest.approx(averages_s, abs=0.5)
    assert fit.delay.lag_within_s <= 0.3 and fit.delay.averages_within_s <= 0.5
    assert fit.changes_every_s == pytest.approx(period_s, rel=0.2)
    assert fit.change_w == pytest.approx(LOAD_W, rel=0.1)
    assert fit.delay.source.startswith("measured by 10 steps of load on 20")


@pytest.mark.parametrize(("lag_s", "averages_s"), [(0.0, 13.0), (3.0, 20.0), (13.0, 1.0)])
def test_a_delay_longer_than_those_searched_is_rejected(lag_s: float, averages_s: float) -> None:
    """The best of those searched would be wrong."""
    pulses = pulses_from(50.0)
    readings = readings_of(pulses, lag_s, averages_s, 1.0, random.Random(1))
    with pytest.raises(EeioError, match="fit a lag or a mean of 12 s or more"):
        fitted(readings, pulses, 1.0, "ipmi")


def test_readings_that_do_not_follow_the_load_have_no_delay() -> None:
    draw = random.Random(1)
    pulses = pulses_from(50.0)
    times_s = [48.0 + 0.2 * k for k in range(400)]
    noise = Readings(times_s, [draw.gauss(100.0, 5.0) for _ in times_s])
    with pytest.raises(EeioError, match="ipmi: its readings do not follow the load"):
        fitted(noise, pulses, 1.0, "ipmi")
    with pytest.raises(EeioError, match="the meter is stuck"):
        fitted(Readings(times_s, [100.0] * 400), pulses, 1.0, "ipmi")


def test_a_counter_is_polled_as_power() -> None:
    joules: list[float] = []
    read = threading.Event()

    def answer() -> list[float]:
        joules.append(float(len(joules)))
        if len(joules) == 10:
            read.set()
        return joules[-1:]

    meter = ScriptedMeter([Channel("c", "system", "energy_j")], answer, native_period_s=0.02)

    def load() -> list[Pulse]:
        assert read.wait(60.0)
        return pulses_from(0.0)

    readings, pulses = poll(meter, load)
    assert len(pulses) == COUNT
    assert all(value > 0.0 for value in readings.values)


# --- the commands ---------------------------------------------------------------------------------

METER = """
import time
from eeio_power.meters import Channel, Detected

OPTIONS = {}
DELAY = None


class Fake:
    def __init__(self, spec):
        self.spec, self.name, self.kind, self.native_period_s = spec, "fake", "measured", 0.05
        self.channels = [Channel("fake:system", "system", "power_w")]

    def read(self):
        return [100.0 + int(time.monotonic() / 0.05) % 7]

    def close(self):
        pass


def open_meter(spec, options, root):
    return Fake(spec)


def find(root):
    return Detected("fake", "measured", ("system",), True)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "meters"
    folder.mkdir()
    (folder / "fake.py").write_text(METER)
    (tmp_path / "machine-id").write_text("1" * 32)
    monkeypatch.setattr(calibration, "_MACHINE_ID", tmp_path / "machine-id")
    monkeypatch.setenv("EEIO_METERS", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def load_without_waiting(
    count: int = COUNT, clock: Callable[[], float] = time.time, workers: int | None = None
) -> list[Pulse]:
    return pulses_from(50.0, count)


@pytest.mark.usefixtures("fake")
def test_calibrate_stores_the_delay_of_a_live_meter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pulses = pulses_from(50.0)
    readings = readings_of(pulses, 2.0, 3.0, 0.5, random.Random(3))
    monkeypatch.setattr(delay, "poll", lambda meter, load: (readings, pulses))
    assert main(["meter", "calibrate", "--meter", "fake"]) == 0
    printed = capsys.readouterr()
    assert "10 load pulses, about 70 s" in printed.err
    assert "s late, mean of " in printed.out and "steps of load" in printed.out
    assert "a new value every 0." in printed.out
    stored = calibration.stored_delays()["fake"]
    assert stored.lag_s == pytest.approx(2.0, abs=0.2)
    assert stored.averages_s == pytest.approx(3.0, abs=0.5)
    assert main(["meter", "list"]) == 0
    assert f"fake: {stored.text}" in capsys.readouterr().out
    assert main(["meter", "list", "--meter", "fake"]) == 0
    assert stored.text in capsys.readouterr().out
    assert main(["meter", "calibrate", "--forget", "fake"]) == 0
    assert not calibration.stored_delays()


@pytest.mark.usefixtures("fake")
def test_calibrate_names_a_meter_that_does_not_follow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alignment, "make_pulses", load_without_waiting)
    readings = Readings([48.0 + 0.1 * k for k in range(99)], [100.0 + k % 3 for k in range(99)])
    monkeypatch.setattr(delay, "poll", lambda meter, load: (readings, load()))
    assert main(["meter", "calibrate", "--meter", "fake", "--count", "4"]) != 0
    assert "do not follow the load" in capsys.readouterr().err
    assert not calibration.stored_delays()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--meter", "demo"), "it is demo, and has no delay to measure"),
        (("--meter", "fake", "--save", "x.json"), "--save and --pulses are for logs"),
        (("--meter", "none"), "name one meter"),
        ((), "name a live meter with --meter"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_calibrate_rejects_what_has_no_delay(
    arguments: tuple[str, ...], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["meter", "calibrate", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("fake")
def test_list_shows_the_delay_and_how_often_the_value_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["meter", "list", "--meter", "fake"]) == 0
    text = capsys.readouterr().out
    assert "a new value every 0.0" in text and "unknown delay" in text
    spec = "fake,lag_s=1.5,averages_s=0.05"
    assert main(["meter", "list", "--meter", spec, "--format", "json"]) == 0
    (probed,) = json.loads(capsys.readouterr().out)["probed"]
    assert probed["changes_every_s"] == pytest.approx(0.05, rel=0.5)
    (channel,) = probed["channels"]
    assert (channel["lag_s"], channel["averages_s"]) == (1.5, 0.05)
    assert channel["delay_source"] == "stated by the user"
    assert main(["meter", "list"]) == 0
    assert "unknown delay" in capsys.readouterr().out


def test_a_value_that_never_changes_has_no_rate() -> None:
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += max(seconds, 0.01)

    meter = ScriptedMeter([Channel("c", "system", "power_w")], lambda: [100.0], native_period_s=1.0)
    assert changes_every_s(meter, lambda: now_s[0], sleep) is None
    meter = ScriptedMeter(
        [Channel("c", "system", "power_w")], lambda: [float(int(now_s[0]))], native_period_s=1.0
    )
    assert changes_every_s(meter, lambda: now_s[0], sleep) == pytest.approx(1.0, abs=0.05)


STATED = "fake,lag_s=0,averages_s=0.05"


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(("spec", "count"), [("fake", 1), (STATED, 0)])
def test_a_recording_says_once_that_the_delay_is_unknown(
    capfd: pytest.CaptureFixture[str], spec: str, count: int
) -> None:
    command = ["record", "power", "--meter", spec]
    assert main([*command, "--", "sleep", "0.5"]) == 0
    captured = capfd.readouterr()
    assert (captured.out + captured.err).count("fake: delay unknown, so energies may be") == count
    assert main([*command, "--format", "json", "--", "sleep", "0.5"]) == 0
    assert json.loads(capfd.readouterr().out)["unknown_delays"] == ["fake"] * count


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(("spec", "count"), [("fake", 1), (STATED, 0)])
def test_a_block_says_that_the_delay_is_unknown(spec: str, count: int) -> None:
    with energy_of_block(spec) as reading:
        time.sleep(0.5)
    assert sum("delay unknown" in reason for reason in reading.reasons) == count


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(("spec", "count"), [("fake", 1), (STATED, 0)])
def test_a_report_says_that_the_delay_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    spec: str, count: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    arguments = ["--settle", "0", "--directory", str(work), "-r", "2", "sleep 0.6"]
    assert main(["bench", "--name", "c", "--meter", spec, *arguments]) in (0, 3)
    capsys.readouterr()
    remark = "fake: delay unknown, so energies may be wrong by more than their uncertainty"
    assert main(["report", "c"]) in (0, 3)
    text = " ".join(capsys.readouterr().out.split())
    assert (remark in text) == bool(count)
    assert main(["report", "c", "--format", "json"]) in (0, 3)
    (campaign,) = json.loads(capsys.readouterr().out)["campaigns"]
    assert campaign["power"]["unknown_delays"] == ["fake"] * count
    assert main(["report", "c", "--format", "html"]) in (0, 3)
    assert (remark in capsys.readouterr().out) == bool(count)
    report = complete_report([load(results_root() / "c")])
    assert sum(remark in sentence for sentence in paragraphs(report)) == count
