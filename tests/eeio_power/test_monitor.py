"""One monitor for the runner and for PTS's session: what is opened, and what it leaves behind."""

import json
import time
from pathlib import Path

import pytest

from eeio_power import monitor, samples
from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.monitor import PowerMonitor, PowerSource, open_source
from eeio_power.simulators import FakeRapl, ScriptedMeter


def test_the_energy_of_a_window_its_samples_and_their_summary(tmp_path: Path) -> None:
    path = tmp_path / "power.csv.gz"
    with FakeRapl(tmp_path / "rapl", power_w=lambda _: 50.0):
        source = open_source((f"rapl,root={tmp_path}/rapl",), estimates_allowed=False)
        with PowerMonitor(source, path) as power:
            power.mark()
            start_s = time.monotonic()
            while time.monotonic() < start_s + 0.2:
                pass
            end_s = time.monotonic()
            power.mark()
            readings = power.energy(start_s, end_s)
        power.stop()
    assert sum(reading.energy_j or 0.0 for reading in readings) == pytest.approx(
        50.0 * (end_s - start_s), rel=0.2
    )
    (meter,) = samples.load(path).meters
    assert (meter.info.name, source.reason) == ("rapl", None)
    summary = json.loads((tmp_path / "power.json").read_text())
    assert set(summary) == {"rates", "errors", "write_error"}
    assert summary["errors"] == {"rapl": 0} and summary["write_error"] is None


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
    refused = open_source(specs, estimates_allowed=False)
    assert refused.meters == () and "no measured power source" in str(refused.reason)


def test_meters_are_closed_when_their_samples_cannot_be_kept(tmp_path: Path) -> None:
    meter = ScriptedMeter((Channel("scripted", "system", "power_w"),), lambda: (50.0,))
    power = PowerMonitor(PowerSource((meter,), None), tmp_path / "nowhere" / "power.csv.gz")
    with pytest.raises(PowerError, match="nowhere"):
        power.start()
    assert meter.closed
