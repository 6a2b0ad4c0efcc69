"""`eeio fleet collect`: nodes of a fleet, and those that differ from the others."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, in_turn, phase, run, stored
from tests.plugin import InProcess

from eeio.cli import main
from eeio.record.run import Machine

PTS_FILE = Path(__file__).parents[1] / "data/pts/10.8.6/native.xml"
PTS_SYSTEM = "eeio quick"
NIGHT = "2026-11-01T06:00:00+00:00"


def store_node(
    folder: Path,
    host: str,
    rates: Sequence[float],
    *,
    machine: Machine = MACHINE,
    power_w: float = 5.0,
    kind: str = "measured",
    created_utc: str = NIGHT,
    name: str | None = None,
    planned: int | None = None,
) -> Path:
    """A node's campaign: one run a rate in bytes/s."""
    plan = design(name or f"nightly-{host}", planned or len(rates))
    plan = replace(plan, suite="nightly", created_utc=created_utc)
    runs = [run(n, (phase(rate, (energy(power_w, kind),)),)) for n, rate in enumerate(rates)]
    return stored(folder / plan.name, runs, plan, machine=replace(machine, hostname=host))


def fleet_of(folder: Path, nodes: int, slow: Sequence[int] = (), seed: int = 1) -> None:
    draw = np.random.default_rng(seed)
    for node in range(nodes):
        rates = 1e8 * np.exp(draw.normal(0.0, 0.01, 3)) * (0.9 if node in slow else 1.0)
        store_node(folder, f"n{node}", [float(rate) for rate in rates])


def collected(in_process: InProcess, *paths: Path, status: int = 0) -> dict[str, object]:
    done = in_process("fleet", "collect", *map(str, paths), "--format", "json", code=status)
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def test_the_slow_node_is_the_outlier(tmp_path: Path, in_process: InProcess) -> None:
    fleet_of(tmp_path, 12, slow=[4])
    found = collected(in_process, tmp_path)
    outliers = found["outliers"]
    assert {(one["node"], one["metric"]) for one in outliers} == {("n4", "MB/s"), ("n4", "MB/J")}
    (slow,) = [one for one in outliers if one["metric"] == "MB/s"]
    assert slow["worse"] and slow["difference"] == pytest.approx(-0.1, abs=0.03)
    assert slow["value"] == pytest.approx(0.9e8, rel=0.03) and slow["p"] < 0.05
    assert [node["name"] for node in found["nodes"]] == [f"n{number}" for number in range(12)]
    shown = in_process("fleet", "collect", str(tmp_path)).out
    assert "nodes: 12 of 12 complete, 1 worse than the others of their kind" in shown
    done = in_process("fleet", "collect", str(tmp_path), "--format", "csv")
    header, *lines = done.out.splitlines()
    assert header.startswith("name,kind,state,runs") and len(lines) == 12
    for form in ("markdown", "latex"):
        assert "n4" in in_process("study", "fleet", "collect", str(tmp_path), "--format", form).out
    page = tmp_path / "fleet.html"
    assert main(["fleet", "collect", str(tmp_path), "-o", str(page)]) == 0
    assert "Outliers" in page.read_text()


def test_experiments_of_a_sweep_are_not_joined(tmp_path: Path, in_process: InProcess) -> None:
    draw = np.random.default_rng(1)
    tests = [replace(EXPERIMENT, arguments=(("file_size", size),)) for size in ("1g", "2g")]
    for node in range(6):
        plan = in_turn(design(f"nightly-n{node}", 2, *tests))
        runs = []
        for number, test in enumerate(tests):
            slow = 0.5 if node == number == 1 else 1.0
            rate = slow * 1e8 * float(np.exp(draw.normal(0.0, 0.01)))
            runs.append(run(number, (phase(rate),), test))
        stored(tmp_path / plan.name, runs, plan, machine=replace(MACHINE, hostname=f"n{node}"))
    outliers = collected(in_process, tmp_path)["outliers"]
    assert {one["node"] for one in outliers} == {"n1"}
    (slow_row,) = [one for one in outliers if one["experiment"] != "all experiments"]
    assert "file_size=2g" in slow_row["experiment"]
    assert slow_row["difference"] == pytest.approx(-0.5, abs=0.03)


def test_nodes_of_different_drives_are_not_compared(tmp_path: Path, in_process: InProcess) -> None:
    fleet_of(tmp_path, 6)
    for number in range(4):
        other = replace(MACHINE, device_model="HDD")
        store_node(tmp_path, f"h{number}", [2e7], machine=other)
    found = collected(in_process, tmp_path)
    assert found["outliers"] == []
    assert any("a test needs 5" in reason and "HDD" in reason for reason in found["not_tested"])
    assert len({node["kind"] for node in found["nodes"]}) == 2


def test_a_node_unlike_the_others_is_described(tmp_path: Path, in_process: InProcess) -> None:
    for number in range(5):
        store_node(tmp_path, f"n{number}", [1e8 + number])
    store_node(tmp_path, "n5", [1e8 + 7], machine=replace(MACHINE, kernel="5.10"))
    *_, last = collected(in_process, tmp_path)["nodes"]
    assert last["remarks"] == ["unlike the others: kernel: 6.1 -> 5.10"]


def test_repeated_reports_copies_and_namesakes(tmp_path: Path, in_process: InProcess) -> None:
    fleet_of(tmp_path / "a", 5)
    shutil.copytree(tmp_path / "a" / "nightly-n0", tmp_path / "b" / "nightly-n0")
    store_node(tmp_path / "b", "n1", [1e8], created_utc="2026-11-02T06:00:00+00:00")
    store_node(tmp_path / "b", "n2", [1e8], machine=replace(MACHINE, memory_bytes=4 << 30))
    found = collected(in_process, tmp_path, status=3)
    names = [node["name"] for node in found["nodes"]]
    assert names == ["n0", "n1", "n2 (1)", "n2 (2)", "n3", "n4"]
    message = "\n".join(found["rejected"])
    assert f"{tmp_path}/b/nightly-n0: a copy of {tmp_path}/a/nightly-n0" in message
    assert f"{tmp_path}/a/nightly-n1: not used; the newest complete campaign" in message
    assert f"{tmp_path}/b/nightly-n2: another machine of the name n2" in message
    assert len(found["rejected"]) == 4


def test_what_is_not_used_fails_nothing(tmp_path: Path, in_process: InProcess) -> None:
    """A repeated report, and a campaign of another suite than that of most nodes."""
    fleet_of(tmp_path, 5)
    store_node(tmp_path / "b", "n1", [1e8], created_utc="2026-11-02T06:00:00+00:00")
    other = store_node(tmp_path / "c", "n2", [1e8], created_utc="2026-11-03T06:00:00+00:00")
    body = json.loads((other / "campaign.json").read_text())
    body["suite"] = "bench"
    (other / "campaign.json").write_text(json.dumps(body))
    found = collected(in_process, tmp_path)
    assert len(found["nodes"]) == 5 and len(found["rejected"]) == 2
    assert f"{other}: not used; its suite is bench, not" in "\n".join(found["rejected"])


def test_what_cannot_be_used_is_named_and_the_rest_is_shown(
    tmp_path: Path, in_process: InProcess
) -> None:
    fleet_of(tmp_path, 5)
    broken = store_node(tmp_path, "n5", [1e8])
    body = json.loads((broken / "campaign.json").read_text())
    (broken / "campaign.json").write_text(json.dumps({**body, "schema_version": 99}))
    store_node(tmp_path, "n6", [1e8], planned=3)
    store_node(tmp_path, "n7", [1e8], created_utc="2999-01-01T00:00:00+00:00")
    found = collected(in_process, tmp_path, status=3)
    (rejected,) = found["rejected"]
    assert str(broken) in rejected and "99" in rejected
    states = {node["name"]: (node["state"], node["remarks"]) for node in found["nodes"]}
    assert "n5" not in states and states["n6"][0] == "incomplete"
    assert "2 of 3 runs are not done" in states["n6"][1][0]
    assert "its clock is wrong" in states["n7"][1][0]


def test_result_files_of_pts_are_nodes(tmp_path: Path, in_process: InProcess) -> None:
    for host in ("a", "b"):
        (tmp_path / host).mkdir()
        shutil.copy(PTS_FILE, tmp_path / host / "composite.xml")
    text = (tmp_path / "b" / "composite.xml").read_text()
    (tmp_path / "b" / "composite.xml").write_text(text.replace(PTS_SYSTEM, "other"))
    found = collected(in_process, tmp_path)
    assert [node["name"] for node in found["nodes"]] == sorted([PTS_SYSTEM, "other"])
    assert all(node["state"] == "complete" and node["runs"] for node in found["nodes"])
    (tmp_path / "b" / "composite.xml").write_text(text[:500])
    found = collected(in_process, tmp_path, status=3)
    assert len(found["nodes"]) == 1 and "composite.xml" in found["rejected"][0]


def test_a_folder_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess
) -> None:
    fleet_of(tmp_path, 2)
    scandir = os.scandir

    def reject(path: str) -> object:
        if str(path).endswith("nightly-n1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", reject)
    found = collected(in_process, tmp_path, status=3)
    assert found["rejected"] == [f"{tmp_path}/nightly-n1: Permission denied"]


@pytest.mark.parametrize("arguments", [["nowhere"], ["empty"]])
def test_nothing_to_collect_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: InProcess,
    arguments: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    assert len(in_process("fleet", "collect", *arguments, code=2).err.splitlines()) == 1


def test_fictitious_and_measured_power_are_not_compared(
    tmp_path: Path, in_process: InProcess
) -> None:
    fleet_of(tmp_path, 3)
    store_node(tmp_path, "d", [1e8], kind="demo")
    found = collected(in_process, tmp_path, status=3)
    (demo,) = [node for node in found["nodes"] if node["name"] == "d"]
    assert demo["ratios"] == {} and "its power is fictitious" in demo["remarks"][0]
    assert found["warnings"] == []


def test_nodes_that_never_reported_are_listed_with_their_log(
    tmp_path: Path, in_process: InProcess
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "fleet.json").write_text(
        json.dumps(
            {"schema_version": 1, "name": "f", "suite": "nightly", "options": [],
             "nodes": ["n1", "n2", "n3"], "submitted_utc": "2026-11-01T07:00:00+00:00",
             "jobs": ["7", "8", "9"]}
        )
    )  # fmt: skip
    (tmp_path / "logs" / "n3.log").write_text("eeio: /scratch: no space left\n")
    store_node(tmp_path / "nodes/n1/eeio/results", "any", [1e8])
    found = collected(in_process, tmp_path, status=3)
    nodes = {node["name"]: node for node in found["nodes"]}
    assert "began 60 minutes before its job" in nodes["n1"]["remarks"][0]
    assert nodes["n2"]["state"] == nodes["n3"]["state"] == "no results"
    assert nodes["n2"]["remarks"] == ["its job has not started, or its log is missing"]
    assert nodes["n3"]["remarks"] == ["log n3.log: eeio: /scratch: no space left"]


@pytest.mark.parametrize(("changed", "message"), [
    ({"submitted_utc": "yesterday"}, "Invalid isoformat string"),
    ({"submitted_utc": "2026-11-01T07:00:00"}, "has no time zone"),
    ({"nodes": ["../../../etc/passwd"]}, "../../../etc/passwd is not the name of a node"),
])  # fmt: skip
def test_a_damaged_description_of_a_fleet_is_named(
    tmp_path: Path, in_process: InProcess, changed: dict[str, object], message: str
) -> None:
    """A time without its zone ended in a traceback; the last line of any log was printed."""
    body = {"schema_version": 1, "name": "f", "suite": "nightly", "options": [], "nodes": ["n1"],
            "submitted_utc": NIGHT, "jobs": []}  # fmt: skip
    (tmp_path / "fleet.json").write_text(json.dumps(body | changed))
    store_node(tmp_path / "nodes/n1/eeio/results", "n1", [1e8])
    found = collected(in_process, tmp_path, status=3)
    (rejected,) = found["rejected"]
    assert "fleet.json" in rejected and message in rejected
