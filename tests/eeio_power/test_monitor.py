"""One monitor for the runner and for PTS's session: what is opened, and what it leaves behind."""

import json
import time
from pathlib import Path

import pytest
from tests.simulators import ScriptedMeter

from eeio_power import monitor, samples
from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.monitor import PowerMonitor, PowerSource, open_source


def constant(power_w: float) -> ScriptedMeter:
    return ScriptedMeter((Channel("scripted", "system", "power_w"),), lambda: (power_w,))


def test_the_energy_of_a_window_its_samples_and_their_summary(tmp_path: Path) -> None:
    path = tmp_path / "power.csv.gz"
    meter = constant(50.0)
    with PowerMonitor(PowerSource((meter,), None), path) as power:
        power.mark()
        start_s = time.monotonic()
        for _ in range(3):  # a read has ended when the next one begins
            meter.entered.clear()
            assert meter.entered.wait(20.0)
        end_s = time.monotonic()
        power.mark()
        (reading,) = power.energy(start_s, end_s)
    power.stop()
    assert reading.energy_j == pytest.approx(50.0 * (end_s - start_s))
    assert meter.closed
    (kept,) = samples.load(path).meters
    assert kept.info.name == "scripted"
    summary = json.loads((tmp_path / "power.json").read_text())
    assert set(summary) == {"rates", "errors", "write_error"}
    assert summary["errors"] == {"scripted": 0} and summary["write_error"] is None


def test_without_a_meter_there_are_no_readings_and_no_files(tmp_path: Path) -> None:
    source = open_source(("none",), estimates_allowed=True)
    with PowerMonitor(source, tmp_path / "power.csv.gz") as power:
        power.mark()
        assert power.energy(0.0, time.monotonic()) == ()
    assert source == PowerSource((), "--meter none was given")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("specs", [(), ("auto",)])
def test_the_model_stands_in_only_where_estimates_are_allowed(
    specs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(wanted: tuple[str, ...]) -> list[str]:
        return ["the model"] if wanted == ("modelled",) else []

    monkeypatch.setattr(monitor, "open_meters", opened)
    assert open_source(specs, estimates_allowed=True).meters == ("the model",)
    rejected = open_source(specs, estimates_allowed=False)
    assert rejected.meters == () and "no measured power source" in str(rejected.reason)


def test_meters_are_closed_when_their_samples_cannot_be_kept(tmp_path: Path) -> None:
    meter = constant(50.0)
    power = PowerMonitor(PowerSource((meter,), None), tmp_path / "nowhere" / "power.csv.gz")
    with pytest.raises(PowerError, match="nowhere"):
        power.start()
    assert meter.closed


# --- while a tool runs -------------------------------------------------------------------------


def counter(native_period_s: float = 0.001) -> ScriptedMeter:
    """100 W."""
    channel = Channel("scripted", "package", "energy_j", max_power_w=500.0)
    return ScriptedMeter(
        (channel,), lambda: (100.0 * time.monotonic(),), native_period_s=native_period_s
    )


def wait_for_reads(meter: ScriptedMeter, count: int) -> None:
    for _ in range(count):
        meter.entered.clear()
        assert meter.entered.wait(20.0)


def test_a_counter_is_read_faster_while_a_tool_runs(tmp_path: Path) -> None:
    meter = counter()
    # By its own beat it would be read once in a quarter of an hour.
    power = PowerMonitor(PowerSource((meter,), None), tmp_path / "p.csv.gz", 1e-3, 500.0)
    with power, power.closely(tmp_path):
        wait_for_reads(meter, 20)


def test_a_change_in_the_folder_of_a_tool_is_an_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges: list[float] = []
    monkeypatch.setattr(PowerMonitor, "edge", lambda _, now_s: edges.append(now_s))
    output = tmp_path / "output"
    output.mkdir()
    start_s = time.monotonic()
    power = PowerMonitor(PowerSource((counter(),), None), tmp_path / "p.csv.gz")
    with power, power.closely(output):
        (output / "fio-start.txt").write_text("1\n")
    assert edges and start_s <= edges[0] <= time.monotonic()


def test_counters_are_read_at_an_edge(tmp_path: Path) -> None:
    meter = counter()
    with PowerMonitor(PowerSource((meter,), None), tmp_path / "p.csv.gz", 1e-3) as power:
        meter.entered.clear()
        power.edge(time.monotonic())
        assert meter.entered.wait(20.0)


def test_a_tool_that_writes_without_a_pause_does_not_make_each_write_an_edge(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.csv.gz"
    with PowerMonitor(PowerSource((counter(),), None), path, 1e-3, 500.0) as power:
        for write in range(1000):
            power.edge(1.0 + write * 1e-6)
        power.mark()
    (kept,) = samples.load(path).meters
    assert len(kept.times_s) <= 4, "at the start, of the first write, at the mark and at the end"


@pytest.mark.parametrize(
    "meter",
    [constant(50.0), counter(native_period_s=1000.0)],
    ids=["a power, a mean over a time of its own", "a counter with nothing new so soon"],
)
def test_other_meters_keep_their_pace(meter: ScriptedMeter, tmp_path: Path) -> None:
    path = tmp_path / "p.csv.gz"
    with PowerMonitor(PowerSource((meter,), None), path, 1e-3, 500.0) as power:
        power.hasten()
        power.edge(time.monotonic())
        power.mark()
        power.relax()
    (kept,) = samples.load(path).meters
    assert len(kept.times_s) == 3, "at the start, at the mark and at the end"


def test_a_rate_that_cannot_be_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match=r"0\.0 Hz"):
        PowerMonitor(PowerSource((counter(),), None), tmp_path / "p.csv.gz", 10.0, 0.0)


def test_readings_of_a_counter_that_no_window_needs_any_more_stay_in_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.csv.gz"
    meter = counter()
    with PowerMonitor(PowerSource((meter,), None), path, 1e-3, 500.0) as power:
        first_s = time.monotonic()
        power.mark()
        power.forget(first_s + 1e6)  # not even what is not in the file yet
        power.mark()
        (reading,) = power.energy(first_s, time.monotonic())
        assert reading.valid
    (kept,) = samples.load(path).meters
    assert kept.times_s[0] <= first_s
