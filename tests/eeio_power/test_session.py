"""The session process by its protocol: what PHP would send, and what it gets."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.own_meter import BENCH
from tests.processes import ran
from tests.simulators.powercap import FakeRapl
from tests.waiting import until

from eeio.errors import RejectedError
from eeio.machine.lock import machine_lock
from eeio_power import samples
from eeio_power.session import process_state, wait_for_end
from eeio_power.suspension import STOPPED

POWER_W = 50.0


class Client:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.greeting = self.receive()

    def ask(self, request: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.receive()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))


@contextmanager
def session(path: Path, *arguments: str) -> Iterator[Client]:
    with subprocess.Popen(
        [sys.executable, "-m", "eeio_power.session", "--samples", str(path), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield Client(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=300)


@pytest.fixture
def counters(tmp_path: Path) -> Iterator[FakeRapl]:
    with FakeRapl(tmp_path / "powercap", power_w=lambda _: POWER_W) as running:
        yield running


@pytest.fixture
def rapl(counters: FakeRapl) -> str:
    return f"rapl,root={counters.root}"


def test_a_trial_from_its_start_to_the_end_of_its_process(
    tmp_path: Path, counters: FakeRapl, rapl: str
) -> None:
    path = tmp_path / "power.csv.gz"
    with session(path, "--meter", rapl) as client:
        assert [meter["name"] for meter in client.greeting["meters"]] == ["rapl"]
        assert client.ask({"do": "begin"}) == {}
        start_s = time.monotonic()
        with subprocess.Popen(["sleep", "0.4"]) as tool:
            assert client.ask({"do": "watch", "pid": tool.pid, "start_s": start_s}) == {}
            tool.wait()
        window = client.ask({"do": "end"})
        requested_s = time.monotonic()
        assert window["start_s"] == pytest.approx(start_s, abs=1e-5)
        assert 0.4 <= window["duration_s"] <= requested_s - start_s
        total = sum(reading["energy_j"] for reading in window["readings"])
        expected = POWER_W * window["duration_s"]
        # Counters of a busy machine are behind at either end of the window.
        late_j = 2 * POWER_W * counters.largest_lag_s
        assert total == pytest.approx(expected, rel=0.15, abs=0.15 * expected + late_j)
    assert samples.load(path).meters[0].info.name == "rapl"
    assert json.loads((tmp_path / "power.json").read_text())["write_error"] is None


def test_a_session_that_was_stopped_sees_no_end(tmp_path: Path, rapl: str) -> None:
    with session(tmp_path / "power.csv.gz", "--meter", rapl) as client:
        start_s = time.monotonic()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as tool:
            client.ask({"do": "watch", "pid": tool.pid, "start_s": start_s})
            client.process.send_signal(signal.SIGSTOP)
            until(lambda: process_state(client.process.pid) == "T")
            client.process.send_signal(signal.SIGCONT)
        window = client.ask({"do": "end"})
    for reading in window["readings"]:
        assert reading["energy_j"] is None
        assert STOPPED in reading["reasons"]


def test_a_meter_of_ones_own_is_known_in_the_sessions_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench.py").write_text(BENCH)
    monkeypatch.setenv("EEIO_METERS", str(tmp_path))
    with session(tmp_path / "power.csv.gz", "--meter", "bench") as client:
        assert [meter["name"] for meter in client.greeting["meters"]] == ["bench"]
        window = client.ask({"do": "idle", "seconds": 0.3})
    assert [reading["power_w"] for reading in window["readings"]] == [7.5]


def test_a_zombie_has_ended() -> None:
    """PTS reaps its tool only after it has read all output."""
    tool = subprocess.Popen(["true"])
    try:
        begun_s = time.monotonic()
        assert wait_for_end(tool.pid) >= begun_s
        assert process_state(tool.pid) == "Z"
    finally:
        tool.wait()


def test_without_pidfd_the_process_is_polled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen(["sleep", "0.1"]) as tool:
        begun_s = time.monotonic()
        assert wait_for_end(tool.pid) - begun_s > 0.05
    assert process_state(2**22 + 1) is None


def test_idle_sync_and_nonsense(tmp_path: Path, rapl: str) -> None:
    with session(tmp_path / "power.csv.gz", "--meter", rapl) as client:
        window = client.ask({"do": "idle", "seconds": 0.3})
        assert window["duration_s"] == pytest.approx(0.3)
        assert all(reading["valid"] for reading in window["readings"])
        assert client.ask({"do": "sync"})["sync_s"] >= 0
        assert "no trial" in client.ask({"do": "end"})["error"]
        for nonsense in ({"do": "dance"}, {}, [], "x", {"do": "watch"}, {"do": "idle"}):
            assert "not a request" in client.ask(nonsense)["error"]
        assert "sync_s" in client.ask({"do": "sync"})


def test_a_meter_that_is_not_there_is_rejected_in_one_line(tmp_path: Path) -> None:
    done = ran(
        [sys.executable, "-m", "eeio_power.session", "--samples", str(tmp_path / "s.gz"),
         "--meter", f"rapl,root={tmp_path}/none"],
        code=2,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    assert f"{tmp_path}/none" in json.loads(lines[0])["error"]


def test_without_a_meter_the_model_only_if_estimates_will_do(tmp_path: Path) -> None:
    with session(tmp_path / "a.csv.gz", "--meter", "none") as client:
        assert client.greeting == {"meters": []}
        assert client.ask({"do": "idle", "seconds": 0})["readings"] == []
    assert not (tmp_path / "a.json").exists()


def test_a_meter_that_dies_gives_reasons_instead_of_energy(tmp_path: Path) -> None:
    root = tmp_path / "powercap"
    with (
        FakeRapl(root, power_w=lambda _: POWER_W) as fake,
        session(tmp_path / "p.csv.gz", "--meter", f"rapl,root={root}") as client,
    ):
        for zone in fake.zones:
            fake.fail(zone.folder)
        with subprocess.Popen(["sleep", "0.3"]) as tool:
            start_s = time.monotonic()
            client.ask({"do": "watch", "pid": tool.pid, "start_s": start_s})
        readings = client.ask({"do": "end"})["readings"]
    assert readings
    for reading in readings:
        assert not reading["valid"]
        assert reading["energy_j"] is None
        assert reading["reasons"]


def test_two_do_not_measure_one_machine(
    tmp_path: Path, rapl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of PTS at once, or one beside a campaign: each had the energy of both."""
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path))
    command = [sys.executable, "-m", "eeio_power.session", "--samples"]

    def rejected(meter: str) -> bool:
        done = ran([*command, str(tmp_path / "b.csv.gz"), "--meter", meter], code=None)
        return "each would measure the other's" in done.stdout and done.returncode == 2

    with session(tmp_path / "a.csv.gz", "--meter", rapl):
        assert rejected(rapl)
        with pytest.raises(RejectedError, match="another campaign"), machine_lock(shared=False):
            pass
    with machine_lock(shared=True):
        assert rejected(rapl)
        assert not rejected("none")


def test_ctrl_c_does_not_end_the_session_but_the_end_of_input_does(
    tmp_path: Path, rapl: str
) -> None:
    with session(tmp_path / "power.csv.gz", "--meter", rapl) as client:
        client.process.send_signal(signal.SIGINT)
        assert "sync_s" in client.ask({"do": "sync"})
    assert client.process.returncode == 0


def test_quit_ends_it_with_its_input_still_open(tmp_path: Path) -> None:
    with session(tmp_path / "power.csv.gz", "--meter", "none") as client:
        assert client.process.stdin is not None
        client.process.stdin.write('{"do": "quit"}\n')
        client.process.stdin.flush()
        assert client.process.wait(timeout=300) == 0
