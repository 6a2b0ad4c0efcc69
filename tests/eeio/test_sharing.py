"""Campaigns on one machine: one at a time, or with --share-machine and without shared energies."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from tests import dummy
from tests.plugin import InProcess
from tests.simulators import FakeRapl

from eeio.cli import main
from eeio.machine.owner import this_process
from eeio.measure.campaign.sharing import Sharing, missing
from eeio.record.run import EnergyReading
from eeio.record.store import load


@pytest.fixture
def other_drive() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


def _arguments(home: Path, name: str, target: Path, *more: str) -> list[str]:
    return [
        "run", "dummy-suite", "--directory", str(target), "--allow-memory-filesystem", "--idle",
        "0.3", "--settle", "0", "--repetitions", "1", "--name", name, "--meter",
        f"rapl,root={home}/powercap", *more,
    ]  # fmt: skip


def _energies(home: Path, name: str) -> list[list[EnergyReading]]:
    """Of each run, in their order."""
    runs = sorted(load(home / "data/eeio/results" / name).runs, key=lambda run: run.order_index)
    return [[reading for phase in run.phases for reading in phase.energy] for run in runs]


def test_two_campaigns_at_once(
    home: Path,
    other_drive: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: InProcess,
) -> None:
    gate = home / "gate"
    os.mkfifo(gate)
    script = 'if [ -p "${GATE:-}" ]; then echo >"$GATE"; cat "$GATE" >/dev/null; rm "$GATE"; fi'
    monkeypatch.setenv("EEIO_TEST_PROFILES", str(dummy.profile(home, script)))
    with FakeRapl(home / "powercap", power_w=lambda _: 40.0):
        first = subprocess.Popen(
            [sys.executable, "-m", "eeio",
             *_arguments(home, "a", home / "target", "--share-machine")],
            env={**os.environ, "GATE": str(gate)}, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            gate.read_text()  # it is in its first run
            done = in_process(*_arguments(home, "b", other_drive), code=2)
            assert "another campaign is running on this machine" in done.err
            # Not even the trial run of a command disturbs it.
            done = in_process("bench", f"touch {home}/ran", "--meter", "none", code=2)
            assert "another campaign is running" in done.err
            assert not (home / "ran").exists()
            assert main(_arguments(home, "b", other_drive, "--share-machine")) in (0, 3)
            gate.write_text("go on")
            _, message = first.communicate(timeout=300)
            assert first.returncode == 0, message
        finally:
            first.kill()
            first.wait()
    shared = "ran on this machine at the same time (--share-machine)"
    for reading in chain(*_energies(home, "b")):
        assert reading.energy_j is None and shared in reading.reasons[-1]
    overlapped, *alone = _energies(home, "a")
    for reading in overlapped:
        assert reading.energy_j is None and f"process {os.getpid()}" in reading.reasons[-1]
    assert len(alone) == 2 and all(reading.energy_j is not None for reading in chain(*alone))


def test_a_campaign_that_was_killed_overlaps_only_the_run_in_which_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path))
    now_s = time.monotonic()
    dead = replace(this_process(os.getpid()), pid=4194304).name
    (tmp_path / f"eeio-sharing-{dead}").write_text(f"{now_s - 50:.6f} -\n")
    ended = replace(this_process(os.getpid()), pid=4194303).name
    (tmp_path / f"eeio-sharing-{ended}").write_text(f"{now_s - 100:.6f} {now_s - 60:.6f}\n")
    (tmp_path / "eeio-sharing-nonsense").write_text("x")
    (tmp_path / f"eeio-sharing-{ended}0").write_bytes(b"\xff" * 200)
    with Sharing() as sharing:
        # It may have been alive in a run that began before anybody looked.
        assert sharing.overlapping(now_s - 10, now_s) == ["4194304"]
        assert sharing.overlapping(now_s - 70, now_s) == ["4194303", "4194304"]
        sharing.begin()
        later_s = time.monotonic()
        assert sharing.overlapping(later_s, later_s + 1) == []


def test_a_drive_s_own_meter_keeps_its_energy() -> None:
    system = EnergyReading(
        domain="system", meter="wattsup", kind="measured", power_w=50.0, energy_j=100.0,
        uncertainty_j=1.0, coverage=1.0, largest_gap_s=1.0, samples=2, lost=0, valid=True,
    )  # fmt: skip
    drive = replace(system, domain="device", meter="ina219")
    lost, kept = missing([system, drive], "why")
    assert kept == drive
    assert (lost.energy_j, lost.power_w, lost.uncertainty_j, lost.valid) == (
        None,
        None,
        None,
        False,
    )
    assert lost.reasons == ("why",)
