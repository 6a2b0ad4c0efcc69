"""Stopped and frozen processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eeio_power import suspension
from eeio_power.suspension import Stops

GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
WATCHING = """
import sys
from eeio_power.suspension import Stops
with Stops() as stops:
    print("ready", flush=True)
    sys.stdin.readline()
print(stops.count, flush=True)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group that can be frozen."""
    for root in GROUPS:
        folder = root / f"eeio-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "cgroup.freeze").exists():
            yield folder
            folder.rmdir()
            return
        folder.rmdir()
    pytest.skip("no control group can be made that can be frozen")


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_control_group_is_a_stop(group: Path, frozen: bool) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        (group / "cgroup.procs").write_text(str(process.pid))
        assert process.stdout.readline() == "ready\n"
        if frozen:
            (group / "cgroup.freeze").write_text("1")
        # The time must pass for a frozen process, too.
        time.sleep(suspension.BEAT_S + suspension.FROZEN_S + 0.5)
        (group / "cgroup.freeze").write_text("0")
        # A process that was frozen is told the end after its next beat.
        time.sleep(suspension.BEAT_S)
        process.stdin.write("end\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{int(frozen)}\n"


@pytest.mark.parametrize(("explained_s", "count"), [(0.0, 1), (29.0, 0), (float("inf"), 0)])
def test_time_in_which_the_processors_were_in_use_is_no_stop(
    monkeypatch: pytest.MonkeyPatch, explained_s: float, count: int
) -> None:
    monkeypatch.setattr(suspension, "BEAT_S", 0.001)
    explained = iter([0.0, explained_s] + [explained_s] * 1000)
    monkeypatch.setattr(suspension, "_explained_s", lambda: next(explained))
    times = iter([0.0, 30.0])
    last = 30.0

    def clock() -> float:
        return next(times, last)

    with Stops(clock) as stops:
        for _ in range(100):
            time.sleep(0.001)
    assert stops.count == count
