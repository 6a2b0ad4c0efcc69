"""Campaigns and `record power` on a machine that other work uses during the idle baseline."""

import itertools
import json
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from tests.dummy import suite
from tests.plugin import InProcess
from tests.simulators import FakeRapl

from eeio.record.store import load
from eeio_power import idleness
from eeio_power.idleness import Activity

REASON = "the machine was not idle: sda moved 100.0 MB/s"


@pytest.fixture
def drive_moves(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], None]:
    """Sets the bytes/s of a drive in each baseline; after the last it stands still."""
    monkeypatch.setattr(idleness, "MOST_BYTES_PER_S", 1e6)

    def moves(rates: list[float]) -> None:
        left, calls = iter(rates), itertools.count()
        moved = [0.0]

        def activity(drives: Collection[str]) -> Activity:
            call = next(calls)
            if call % 2:
                moved[0] += 10.0 * next(left, 0.0)
            return Activity(10.0 * call, {"sda": int(moved[0])}, 0.0)

        monkeypatch.setattr(idleness, "activity", activity)

    return moves


def _campaign(home: Path, in_process: InProcess) -> None:
    made = suite(home, "level=filesystem operation=read spatiality=sequential sleep_s=0.3")
    with FakeRapl(home / "powercap", power_w=lambda time_s: 20.0):
        in_process(
            "run", made, "--directory", str(home / "target"), "--name", "c", "--idle", "0.3",
            "--repetitions", "1", "--meter", f"rapl,root={home / 'powercap'}",
            "--allow-memory-filesystem",
        )  # fmt: skip


def test_other_work_during_the_baseline_leaves_no_figure_above_idle(
    home: Path, in_process: InProcess, drive_moves: Callable[[list[float]], None]
) -> None:
    drive_moves([100e6, 100e6])
    _campaign(home, in_process)
    campaign = load(home / "data/eeio/results/c")
    assert campaign.idle and not any(reading.valid for reading in campaign.idle)
    assert all(REASON in reading.reasons for reading in campaign.idle)
    assert not campaign.idle_medians
    body = json.loads(in_process("report", "c", "--format", "json").out)
    (row,) = [row for row in body["characterization"] if row["tool"]]
    assert row["power_w"] is not None
    assert row["marginal"]["power_w"] is None
    assert REASON in row["reasons"]["marginal.power_w"]
    assert REASON in in_process("report", "c").out


def test_a_repeated_baseline_of_an_idle_machine_is_used(
    home: Path, in_process: InProcess, drive_moves: Callable[[list[float]], None]
) -> None:
    drive_moves([100e6])
    _campaign(home, in_process)
    campaign = load(home / "data/eeio/results/c")
    assert all(reading.valid for reading in campaign.idle if reading.domain == "package")


def test_record_power_shows_no_power_above_idle(
    in_process: InProcess, rapl: str, drive_moves: Callable[[list[float]], None]
) -> None:
    drive_moves([100e6, 100e6])
    done = in_process("record", "power", "--meter", rapl, "--idle", "0.3", "--", "sleep", "0.3")
    (line,) = [line for line in done.out.splitlines() if line.startswith("package  ")]
    assert line.split()[-1] == "-" and f"idle: {REASON}" in done.out
    assert f"eeio: {REASON}; measuring idle power once more" in done.err
