"""`eeio history`: change points of the results of a suite, and what changed in the machine."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.eeio_results.made import MACHINE, design, energy, phase, run
from tests.eeio_results.made import stored as stored_in
from tests.plugin import InProcess

from eeio.statistics.change_points import change_points


def stored(home: Path, number: int, bandwidth_bytes_per_s: float, kernel: str) -> None:
    name = f"day-{number:02d}"
    of_day = f"2026-11-{number + 1:02d}T06:00:00+00:00"
    rates = [bandwidth_bytes_per_s * (1 + 0.001 * repetition) for repetition in range(3)]
    stored_in(
        home / "data/eeio/results" / name,
        [run(n, (phase(rate, (energy(5.0),)),)) for n, rate in enumerate(rates)],
        replace(design(name, 3), suite="nightly", created_utc=of_day),
        machine=replace(MACHINE, kernel=kernel),
    )


def test_a_change_is_found_with_the_kernel_that_changed(home: Path, in_process: InProcess) -> None:
    draw = np.random.default_rng(3)
    for number in range(24):
        new = number >= 12
        rate = 1e8 * (0.9 if new else 1.0) * float(np.exp(draw.normal(0, 0.01)))
        stored(home, number, rate, "6.12.9" if new else "6.1.0")
    done = in_process("history", "nightly", "--metric", "MB/s", "--format", "json")
    (series,) = json.loads(done.out)["series"]
    (step,) = series["steps"]
    assert (step["campaign"], step["machine"]) == ("day-12", ["kernel: 6.1.0 -> 6.12.9"])
    assert step["change"] == pytest.approx(-0.1, abs=0.02) and step["p"] <= 0.001
    assert len(series["points"]) == 24
    shown = in_process("history", "nightly", "--metric", "mb/s").out
    assert "MB/s changed in 1 of 1 experiments over 24 campaigns" in shown
    assert "kernel: 6.1.0 -> 6.12.9" in shown
    for form in ("csv", "markdown", "latex", "html"):
        assert "day-12" in in_process("history", "nightly", "--format", form).out or form == "html"


def test_a_campaign_without_power_stands_next_to_those_of_the_demo_meter(
    home: Path, in_process: InProcess
) -> None:
    for number in range(4):
        stored(home, number, 1e8, "6.1.0")
        runs = home / f"data/eeio/results/day-{number:02d}/runs.jsonl"
        lines = [json.loads(line) for line in runs.read_text().splitlines()]
        for line in lines:
            for one in line["phases"]:
                if number == 3:
                    one["energy"] = []
                for reading in one["energy"]:
                    reading["kind"] = "demo"
        runs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = in_process("history", "nightly", "--metric", "MB/s", "--format", "json")
    (series,) = json.loads(done.out)["series"]
    assert "4 campaigns" in series["reason"]


def test_too_few_campaigns_have_a_reason(home: Path, in_process: InProcess) -> None:
    for number in range(4):
        stored(home, number, 1e8, "6.1.0")
    (series,) = json.loads(in_process("history", "nightly", "--format", "json").out)["series"]
    assert series["steps"] == [] and "4 campaigns" in series["reason"]
    for arguments in (["nightli"], ["nightly", "--machine", "other"]):
        assert len(in_process("history", *arguments, code=2).err.splitlines()) == 1


def test_noise_has_no_change_and_two_steps_have_two() -> None:
    draw = np.random.default_rng(5)
    assert [change_points(list(draw.normal(0, 0.03, 60))) for _ in range(20)] == [[]] * 20
    steps = np.concatenate([draw.normal(level, 0.01, 15) for level in (0.0, 0.1, -0.1)])
    assert [one.place for one in change_points(list(steps))] == [15, 30]
    assert change_points([1.0, 1.0, 1.0, 1.0, 1.0]) == []
    assert change_points([1.0] * 12) == []


def test_damaged_copied_and_demo_campaigns_are_left_out(home: Path, in_process: InProcess) -> None:
    results = home / "data/eeio/results"
    for number in range(5):
        stored(home, number, 1e8, "6.1.0")
    shutil.copytree(results / "day-00", results / "later")
    body = json.loads((results / "later/campaign.json").read_text())
    (results / "later/campaign.json").write_text(json.dumps(body | {"name": "later"}))
    runs = results / "day-03/runs.jsonl"
    runs.write_text(re.sub(r'"kind": ?"[\w-]+"', '"kind": "demo"', runs.read_text()))
    (results / "day-04/runs.jsonl").write_text('{"schema_version": 1}\n')
    found = in_process("history", "nightly", "--format", "json")
    (series,) = json.loads(found.out)["series"]
    assert [point["campaign"] for point in series["points"]] == ["day-00", "day-01", "day-02"]
    assert "day-03: its power is fictitious" in found.err
    assert "later is a copy of day-00" in found.err and "day-04" in found.err


def test_a_history_of_fictitious_power_is_marked(home: Path, in_process: InProcess) -> None:
    for number in range(2):
        stored(home, number, 1e8, "6.1.0")
        runs = home / f"data/eeio/results/day-0{number}/runs.jsonl"
        runs.write_text(re.sub(r'"kind": ?"[\w-]+"', '"kind": "demo"', runs.read_text()))
    assert "*** DEMO: fictitious power" in in_process("history", "nightly").out
    body = json.loads(in_process("history", "nightly", "--format", "json").out)
    assert "DEMO: fictitious power" in body["warnings"][0]
    assert "DEMO: fictitious power" in in_process("history", "nightly", "--format", "html").out


def test_an_energy_that_is_not_known_well_has_its_reason(home: Path, in_process: InProcess) -> None:
    for number in range(3):
        stored(home, number, 1e8, "6.1.0")
        runs = home / f"data/eeio/results/day-0{number}/runs.jsonl"
        lines = [json.loads(line) for line in runs.read_text().splitlines()]
        for line in lines:
            (reading,) = line["phases"][0]["energy"]
            if number == 1:
                reading["uncertainty_j"] = 0.25 * reading["energy_j"]
            if number == 2:
                reading |= {"energy_j": None, "power_w": None, "uncertainty_j": None}
                reading |= {"valid": False, "reasons": ["the meter was silent"]}
        runs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    body = json.loads(in_process("history", "nightly", "--format", "json").out)
    first, second = body["series"][0]["points"]
    assert first["unsure"] is None
    assert second["unsure"] == "the energy is known only to ±25 %"
    (left_out,) = body["left_out"]
    assert left_out["campaign"] == "day-02" and "the meter was silent" in left_out["reason"]
    shown = " ".join(in_process("history", "nightly").out.split())
    assert "not ranked: the energy is known only to ±25 %" in shown
    assert "left out: " in shown and "the meter was silent" in shown
