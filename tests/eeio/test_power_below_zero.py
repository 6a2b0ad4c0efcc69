"""Sensors of idle rails that read a little below zero, through run, resume and bench."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import records, records_in
from tests.dummy import suite
from tests.kill.harness import drop_last_runs
from tests.plugin import Eeio
from tests.simulators import FakeHwmon
from tests.simulators.tree import write_tree

from eeio.cli import main
from eeio.errors import LimitError
from eeio.measure.campaign.measurement import Measurement


def ina3221(root: Path) -> str:
    """-2 mA at 5 V."""
    FakeHwmon(root).add_chip("ina3221", {"in1_input": 5000, "curr1_input": -2})
    return f"hwmon,root={root},only=ina3221/power1"


def ina226(root: Path) -> str:
    FakeHwmon(root).add_chip("ina226", {"power1_input": -10_000, "update_interval": 100})
    return f"hwmon,root={root},only=ina226/power1"


def iio(root: Path) -> str:
    write_tree(root, {"iio:device0/name": "ina226", "iio:device0/in_power2_input": -10})
    return f"iio,root={root},only=ina226/power2"


SENSORS = (ina3221, ina226, iio)


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_campaign_stores_a_power_below_zero_and_goes_on(
    home: Path, eeio: Eeio, sensor: Callable[[Path], str]
) -> None:
    made = suite(home, "level=filesystem operation=read spatiality=sequential sleep_s=0.4")
    eeio.run(
        made, "--name", "killed", "--idle", "0.5", "--repetitions", "3", "--meter",
        sensor(home / "sensors"),
    )  # fmt: skip
    drop_last_runs(home, 1)
    eeio("resume", "killed")
    folder = home / "data/eeio/results/killed"
    runs = records_in(folder)
    idle = json.loads((folder / "idle.json").read_text())
    readings = [r for run in runs for phase in run["phases"] for r in phase["energy"]]
    assert len(readings) == 3
    for reading in (*readings, *idle["readings"]):
        assert reading["valid"], reading["reasons"]
        assert reading["power_w"] == pytest.approx(-0.01), "as it was measured, not cut off at 0"
        assert reading["energy_j"] < 0 < reading["uncertainty_j"] + reading["energy_j"]
    assert [median["power_w"] for median in idle["medians"]] == [pytest.approx(-0.01)]
    row = _row(eeio)
    for figure in ("power_w", "energy_j", "efficiency_bytes_per_j", "energy_j_per_gb"):
        assert row[figure] is None
    assert "the energy is known only to ±" in row["reasons"]["energy_j_per_gb"]
    assert "the energy is known only to ±" in row["ranked_reason"]
    for form in ("table", "markdown", "html", "csv", "latex"):
        eeio("report", "killed", "--format", form)
    eeio("compare", "killed", "killed", code=(0, 2))


def _row(eeio: Eeio) -> dict[str, Any]:
    body = eeio.json("report", "killed")
    (row,) = [row for row in body["characterization"] if row["tool"]]
    found: dict[str, Any] = row
    return found


def test_bench_measures_with_such_a_sensor(home: Path, eeio: Eeio) -> None:
    done = eeio(
        "bench", "--directory", str(home / "target"), "--name", "b", "--format", "json",
        "--meter", ina3221(home / "sensors"), "-r", "3", "sleep 0.3", "sleep 0.4",
    )  # fmt: skip
    body = json.loads(done.stdout)
    for command in body["commands"]:
        assert command["energy_j"] is None and command["efficiency_bytes_per_j"] is None
        assert "the energy is known only to ±" in command["reasons"]["energy_j"]


def test_a_figure_that_no_record_contains_makes_its_run_invalid(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = Measurement.measure

    def measured(self: Measurement, planned: Any, *rest: Any) -> Any:
        if planned.order_index == 1:
            raise LimitError("power_w: -500 is not a number from -100 to 1e+09 W")
        return measure(self, planned, *rest)

    monkeypatch.setattr(Measurement, "measure", measured)
    made = suite(home, "level=filesystem operation=read spatiality=sequential")
    code = main([
        "run", made, "--directory", str(home / "target"), "--name", "c", "--repetitions", "3",
        "--meter", "none",
    ])  # fmt: skip
    assert code != 2, capsys.readouterr().err
    reasons = [record["validity"] for record in records(home)]
    assert reasons == [[], ["power_w: -500 is not a number from -100 to 1e+09 W"], []]
