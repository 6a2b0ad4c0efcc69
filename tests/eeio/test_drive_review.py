"""`eeio drive review`, and power states as a factor of a campaign."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mounts import attached, mounted
from tests.plugin import Eeio
from tests.processes import ran
from tests.simulators.nvme_states import FakeNvmeStates

ROOT = Path(__file__).parents[2]
FIGURES = 10


def with_states(file: Path, *arguments: str, code: int | None = 0, **environment: str) -> Any:
    """The command with a simulated NVMe controller behind every block device."""
    return ran(
        [sys.executable, "-m", "tests.nvme_drive", str(file), "--", *arguments],
        env={**os.environ, **environment}, cwd=ROOT, code=code,
    )  # fmt: skip


def runs_of(home: Path, name: str) -> list[dict[str, Any]]:
    path = home / "data/eeio/results" / name / "runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- the review -----------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.tools
def test_a_review_has_ten_figures_and_is_a_campaign(home: Path, eeio: Eeio, loop: str) -> None:
    done = eeio(
        "drive", "review", loop, "--erase", "--lose", "data", "--preset", "quick", "--meter",
        "demo", "--name", "reviewed", "--drive-label", "image", "--yes", code=(0, 3),
    )  # fmt: skip
    assert done.stdout.index("will be touched:") > done.stdout.index("GB written")
    assert f"{loop}: OVERWRITTEN" in done.stdout
    (review,) = json.loads(eeio("report", "reviewed", "--format", "json").stdout)["drive_review"]
    figures = {(each["name"], each["unit"]): each for each in review["figures"]}
    assert len(review["figures"]) == FIGURES
    assert review["power_domain"] == "device"
    for each in review["figures"]:
        assert each["value"] is not None or each["remark"]
    assert figures["sequential read", "MB/s"]["value"] > 0
    assert "no power state" in figures["lowest idle power of its states", "W"]["remark"]
    page = (home / "data/eeio/results/reviewed/report.html").read_text()
    assert "Review of image" in page and "Random reads of 4 KiB by queue depth" in page
    eeio("export", "bundle", "reviewed", "-o", str(home / "bundle"))
    assert (home / "bundle/data/reviewed/drive-states.json").is_file()
    eeio("export", "table", str(home / "bundle"), "-o", str(home / "table"))
    assert "image" in (home / "table/index.html").read_text()


@pytest.mark.root
@pytest.mark.parametrize("meter", [("--meter", "none"), ("--meter", "demo"), ()])
def test_the_plan_comes_first_and_writes_nothing(
    home: Path, eeio: Eeio, loop: str, meter: tuple[str, ...]
) -> None:
    done = eeio(
        "drive", "review", loop, "--plan", "--preset", "quick", "--rated-writes", "1T", *meter
    )
    assert "only read: to measure writes, repeat it with --erase" in done.stdout
    assert "at most 0" in done.stdout
    assert not (home / "data/eeio/results").exists()


@pytest.mark.root
def test_a_mounted_drive_is_rejected(eeio: Eeio, tmp_path: Path) -> None:
    image, point = tmp_path / "image", tmp_path / "point"
    image.write_bytes(bytes(16 << 20))
    ran(["mkfs.ext4", "-q", image])
    with attached(image) as node, mounted(node, point):
        done = eeio("drive", "review", str(node), "--erase", "--yes", code=2)
    assert "mounted" in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_is_no_drive_is_rejected(eeio: Eeio, tmp_path: Path) -> None:
    done = eeio("drive", "review", str(tmp_path), code=2)
    assert "not a block device" in done.stderr


# --- power states as a factor ---------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.tools
def test_each_power_state_is_set_for_its_runs_and_restored(
    home: Path, loop: str, tmp_path: Path
) -> None:
    file = tmp_path / "controller"
    FakeNvmeStates(file)
    with_states(
        file, "run", "eeio-adaptive", "--preset", "quick", "--device", loop, "--power-state",
        "all", "--sweep", "runtime_s=1", "--sweep", "file_size=4m", "--meter", "demo", "--idle",
        "1", "--name", "states", code=None,
    )  # fmt: skip
    assert FakeNvmeStates(file).body() == {"state": 0, "operational": 0, "autonomous": 1}
    runs = runs_of(home, "states")
    states = [dict(run["experiment"]["arguments"])["power_state"] for run in runs]
    assert runs
    assert sorted(states) == sorted(["0", "1"] * (len(runs) // 2))
    assert not [reason for run in runs for reason in run["validity"] if "power state" in reason]
    said = with_states(file, "report", "states", "--format", "json").stdout
    (adaptivity,) = json.loads(said)["power_adaptivity"]
    assert {limit["power_state"] for limit in adaptivity["limits"]} <= {"0", "1"}


@pytest.mark.root
@pytest.mark.parametrize(
    ("states", "message"),
    [("7", "is no state in which"), ("2", "is no state in which"), ("low", "there are 0, 1")],
)
def test_a_state_in_which_the_drive_does_not_work_is_rejected(
    home: Path, loop: str, tmp_path: Path, states: str, message: str
) -> None:
    file = tmp_path / "controller"
    FakeNvmeStates(file)
    done = with_states(
        file, "run", "eeio-adaptive", "--device", loop, "--power-state", states, code=2
    )
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_power_states_need_an_nvme_device(eeio: Eeio, tmp_path: Path) -> None:
    done = eeio(
        "plan", "eeio-adaptive", "--directory", str(tmp_path), "--power-state", "all", code=2
    )
    assert "--power-state: it sets the states of a drive; give --device" in done.stderr


@pytest.mark.root
def test_power_states_of_another_drive_are_rejected(eeio: Eeio, loop: str) -> None:
    done = eeio("plan", "eeio-adaptive", "--device", loop, "--power-state", "all", code=2)
    assert "is not an NVMe drive" in done.stderr


@pytest.mark.root
@pytest.mark.tools
def test_a_state_that_the_drive_refuses_makes_its_runs_invalid(
    home: Path, loop: str, tmp_path: Path
) -> None:
    file = tmp_path / "controller"
    FakeNvmeStates(file)
    with_states(
        file, "run", "eeio-adaptive", "--preset", "quick", "--device", loop, "--power-state", "0,1",
        "--sweep", "runtime_s=1", "--sweep", "iodepth=1", "--sweep", "request_size=4k", "--sweep",
        "file_size=4m", "--meter", "none", "--name", "refused", code=None, NVME_REFUSES="1",
    )  # fmt: skip
    assert FakeNvmeStates(file).body() == {"state": 0, "operational": 0, "autonomous": 1}
    for run in runs_of(home, "refused"):
        state = dict(run["experiment"]["arguments"])["power_state"]
        refused = [reason for reason in run["validity"] if "refuses Set Features" in reason]
        assert bool(refused) is (state == "1")
