"""`eeio bench`: time, joules and bytes of any command."""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import killed, records
from tests.mounts import attached, sparse
from tests.plugin import Eeio, InProcess
from tests.processes import Code
from tests.simulators import FakeRapl

from eeio.errors import ToolOutputError
from eeio.machine import caches, image
from eeio.machine.filesystem import WITHOUT_STORAGE, backing_device, mount_of
from eeio.machine.undo import UndoJournal
from eeio.measure.bench import request, trial
from eeio.measure.bench.plan import Executions, How
from eeio.measure.campaign import command_bytes, probes, shared_process, volumes
from eeio.measure.campaign.volumes import Volume
from eeio.record.run import DeviceCounters
from eeio.record.store import load

MIB = 1 << 20
CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"
LOOP = Path(trial.__file__).with_name("eeio-command-1.0.0") / "loop.py"
CONTRACT = {
    "command", "n", "duration_s", "cpu_s", "bytes_device_read", "bytes_device_written",
    "bytes_asked", "energy_j", "power_w", "efficiency_bytes_per_j", "durable_s", "exit_codes",
}  # fmt: skip


def bench(
    home: Path, eeio: Eeio, *arguments: str, code: Code = 0
) -> "subprocess.CompletedProcess[str]":
    where = ("--directory", str(home / "target"), "--seed", "1", "--name", "b")
    return eeio("bench", *where, *arguments, code=code)


def found(home: Path, eeio: Eeio, *arguments: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(bench(home, eeio, "--format", "json", *arguments).stdout)
    return body


def test_a_command_has_its_figures_or_the_reason_why_not(home: Path, eeio: Eeio) -> None:
    body = found(home, eeio, "head -c 1048576 /dev/zero > a", "true", "-r", "3", "--meter", "none")
    first, second = body["commands"]
    assert set(first) >= CONTRACT and first["n"] == second["n"] == 3
    assert first["duration_s"]["q1"] <= first["duration_s"]["median"] <= first["duration_s"]["q3"]
    assert 0 < first["cpu_s"]["median"] < 10 * first["duration_s"]["median"]
    assert first["bytes_asked"]["median"] >= 2 * MIB, "read from one file, written to another"
    assert first["exit_codes"] == {"0": first["executions"]}
    assert first["executions"] == second["executions"] == 3, "no meter needs more of them"
    for name in ("energy_j", "power_w", "efficiency_bytes_per_j"):
        assert first[name] is None and "meter" in first["reasons"][name]
    assert second["durable_s"] is None
    assert second["reasons"]["durable_s"] in ("it wrote no data", shared_process.ONE_FLUSH)
    time = next(one for one in body["comparisons"] if one["metric"] == "duration_s")
    assert (time["a"], time["b"]) == (first["command"], "true") and time["ratio"] > 0
    assert {one["metric"] for one in body["comparisons"]} >= {"energy_j", "duration_s"}


def test_energy_is_that_of_the_meter(home: Path, eeio: Eeio) -> None:
    """40 W for 2 s, the package's share of it."""
    with FakeRapl(home / "powercap", power_w=lambda time_s: 40.0) as rapl:
        body = found(home, eeio, "sleep 2", "-r", "3", "--meter", f"rapl,root={home / 'powercap'}")
    (one,) = body["commands"]
    assert one["power_domain"] == "package" and one["executions"] == 3
    phases = [phase for record in records(home, "b") for phase in record["phases"]]
    assert len(phases) == 3
    for phase in phases:
        (package,) = (found for found in phase["energy"] if found["domain"] == "package")
        lasted_s = phase["end_s"] - phase["start_s"]
        assert package["energy_j"] == pytest.approx(package["power_w"] * lasted_s, rel=0.01)
        # Both the counter and its reader may wait for a processor.
        late_s = rapl.largest_lag_s + 2 * package["largest_gap_s"]
        drawn_j = 0.8 * 40.0 * lasted_s
        assert package["energy_j"] == pytest.approx(drawn_j, rel=0.03, abs=0.8 * 40.0 * late_s)
    if one["bytes_device_read"]["q3"] == 0:  # else its program was read from the drive again
        assert one["efficiency_bytes_per_j"] is None
        assert "moved no bytes" in one["reasons"]["efficiency_bytes_per_j"]


def test_bytes_are_the_command_s_own_next_to_another_writer(home: Path, eeio: Eeio) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    target = home / "target"
    (target / "source").write_bytes(os.urandom(8 * MIB))
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.01):
            with (target / "busy").open("wb") as file:
                file.write(b"x" * 4 * MIB)
                os.fsync(file.fileno())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        body = found(
            home, eeio, "dd if=/dev/urandom of=a bs=1M count=16 oflag=direct", "cp source b",
            "-r", "3", "--meter", "none", "--prepare", "rm -f a b",
        )  # fmt: skip
    finally:
        ended.set()
        writer.join()
    for one, size in zip(body["commands"], (16 * MIB, 8 * MIB), strict=True):
        # With the blocks of metadata that it dirties.
        assert one["bytes_device_written"]["median"] == pytest.approx(size, rel=0.03), one
        assert one["durable_s"] is not None, one["reasons"]
        assert one["durable_s"]["median"] >= one["duration_s"]["median"]


@pytest.mark.root
def test_bytes_of_another_drive_are_not_the_watched_ones(
    home: Path, eeio: Eeio, tmp_path: Path
) -> None:
    """A program that is read from the system's disk, a file from elsewhere: no cache answered."""
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    (home / "elsewhere").write_bytes(os.urandom(8 * MIB))
    os.sync()
    journal = UndoJournal(tmp_path / "journal.json")
    volume = image.make_on_loop("ext4", tmp_path, 32 * MIB, journal)
    try:
        both = f"dd if={home}/elsewhere iflag=direct bs=1M | dd of=a bs=1M oflag=direct"
        done = bench(home, eeio, both, "-r", "2", "--meter", "none", "--format", "json",
                     "--directory", str(volume.mount_point))  # fmt: skip
        (one,) = json.loads(done.stdout)["commands"]
        assert one["n"] == 2 and one["duration_s"]["median"] > 0
        assert one["bytes_device_read"] is None
        assert "another drive" in one["reasons"]["bytes_device_read"]
        assert one["bytes_device_written"]["median"] == pytest.approx(8 * MIB, rel=0.01)
    finally:
        assert journal.undo_all() == []


@pytest.mark.root
@pytest.mark.parametrize("other_drive", [False, True])
def test_a_command_that_writes_to_another_file_system_is_not_durable(
    home: Path, eeio: Eeio, tmp_path: Path, other_drive: bool
) -> None:
    """On another drive, or in an image on this one."""
    journal = UndoJournal(tmp_path / "journal.json")
    try:
        volume = image.make_on_loop("ext4", tmp_path, 128 * MIB, journal)
        inner = (tmp_path if other_drive else volume.mount_point) / "inner"
        inner.mkdir()
        other = image.make_on_loop("ext4", inner, 40 * MIB, journal)
        done = bench(
            home, eeio, "-n", "here", "head -c 16M /dev/zero > a", "-n", "elsewhere",
            f"head -c 16M /dev/zero > {other.mount_point}/a", "-r", "3", "--meter", "none",
            "--prepare", f"rm -f a {other.mount_point}/a; sync", "--format", "json",
            "--directory", str(volume.mount_point),
        )  # fmt: skip
    finally:
        assert journal.undo_all() == []
    here, elsewhere = json.loads(done.stdout)["commands"]
    assert here["not_durable"] is None and here["durable_s"] is not None
    assert "file system of the directory was flushed" in elsewhere["not_durable"]
    assert elsewhere["durable_s"] is None and elsewhere["duration_s"] is not None


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """An ext4 on a drive of its own: nobody else writes there."""
    journal = UndoJournal(tmp_path / "journal.json")
    made = image.make_on_loop("ext4", tmp_path, 96 * MIB, journal)
    os.sync()
    try:
        yield made.mount_point
    finally:
        assert journal.undo_all() == []


def alone(in_process: InProcess, volume: Path, *arguments: str) -> dict[str, Any]:
    """The first command of a bench in that directory."""
    done = in_process("bench", "--directory", str(volume), "--name", "b", "-r", "2", "--meter",
                      "none", "--format", "json", *arguments)  # fmt: skip
    one: dict[str, Any] = json.loads(done.out)["commands"][0]
    return one


@pytest.mark.root
@pytest.mark.other_io
def test_writes_of_another_program_are_not_the_command_s(
    home: Path, in_process: InProcess, volume: Path
) -> None:
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.01):
            with (volume / "busy").open("wb") as file:
                file.write(b"x" * 8 * MIB)
                os.fsync(file.fileno())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        one = alone(in_process, volume, "sleep 1")
    finally:
        ended.set()
        writer.join()
    assert one["bytes_device_written"] is None and one["efficiency_bytes_per_j"] is None
    reason = one["reasons"]["bytes_device_written"]
    assert "the command's processes 0.0 MB" in reason and "another program" in reason


@pytest.mark.root
@pytest.mark.other_io
@pytest.mark.parametrize("command", ["mkdir -p a/b; sleep 0.2", "rm -rf tree; sleep 0.2"])
def test_a_change_of_names_is_flushed(
    home: Path, in_process: InProcess, volume: Path, command: str
) -> None:
    """No byte of it is in the account of a process."""
    prepare = "mkdir tree; for n in $(seq 300); do : > tree/$n; done; rm -rf a"
    one = alone(in_process, volume, command, "--prepare", f"rm -rf tree; {prepare}")
    assert one["not_durable"] is None
    assert one["durable_s"]["q1"] > one["duration_s"]["q1"]


@pytest.mark.root
@pytest.mark.other_io
def test_what_prepare_wrote_is_not_the_command_s(
    home: Path, in_process: InProcess, volume: Path
) -> None:
    one = alone(
        in_process, volume, "head -c 1M /dev/zero > z", "--prepare",
        "rm -f y z; head -c 32M /dev/zero > y",
    )  # fmt: skip
    assert one["bytes_device_written"]["median"] == pytest.approx(MIB, rel=0.05)
    for run in records(home, "b"):
        moved = run["device_after"]["written_bytes"] - run["device_before"]["written_bytes"]
        assert moved < 8 * MIB


def test_overwritten_data_of_prepare_are_not_subtracted(home: Path, eeio: Eeio) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    body = found(home, eeio, "head -c 4M /dev/zero > y", "-r", "2", "--meter", "none",
                 "--prepare", "rm -f y; head -c 3M /dev/zero > y")  # fmt: skip
    (one,) = body["commands"]
    assert one["bytes_device_written"]["median"] == pytest.approx(4 * MIB, rel=0.03)


def test_a_process_that_the_command_does_not_wait_for_is_counted(home: Path, eeio: Eeio) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    # The parent of the writer ends at once, and the command when the writer has ended.
    orphan = "mkfifo p; (head -c 4M /dev/zero > b; : > p) & "
    body = found(home, eeio, f"sh -c '{orphan}'; head -c 1M /dev/zero > c; cat p; sleep 0.2",
                 "-r", "2", "--meter", "none", "--prepare", "rm -f b c p")  # fmt: skip
    (one,) = body["commands"]
    assert one["bytes_device_written"]["median"] == pytest.approx(5 * MIB, rel=0.05)


def _without_drive(volume: Volume, memory: str | None) -> Volume:
    if memory is not None:
        return replace(volume, memory=memory)
    return replace(volume, device=None, device_reason="no drive is known", devices=())


@pytest.mark.parametrize("memory", ["/dev/zram0 is a RAM disk", None])
def test_without_a_drive_bytes_and_durability_are_not_known(
    home: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, memory: str | None
) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    describe = volumes.describe
    monkeypatch.setattr(
        volumes, "describe", lambda *given: _without_drive(describe(*given), memory)
    )
    done = in_process(
        "bench", "head -c 1M /dev/zero > a", "true", "-r", "2", "--meter", "demo",
        "--directory", str(home / "target"), "--format", "json",
    )  # fmt: skip
    body = json.loads(done.out)
    writer, idle = body["commands"]
    reason = memory or "no drive is known"
    assert writer["bytes_device_read"] is None and writer["bytes_device_written"] is None
    assert reason in writer["reasons"]["bytes_device_written"]
    assert reason in writer["not_durable"] and writer["durable_s"] is None
    assert writer["efficiency_bytes_per_j"] is None and writer["duration_s"] is not None
    assert idle["not_durable"] is None and idle["energy_j"] is not None
    (joules,) = (one for one in body["comparisons"] if one["metric"] == "energy_j")
    assert joules["ratio"] is None


def test_durability_is_not_known_on_tmpfs(home: Path, eeio: Eeio) -> None:
    if mount_of(Path("/dev/shm")).filesystem != "tmpfs" or not os.access("/dev/shm", os.W_OK):
        pytest.skip("needs a tmpfs")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        body = found(home, eeio, "head -c 1M /dev/zero > a", "-r", "2", "--meter", "none",
                     "--directory", folder)  # fmt: skip
    (writer,) = body["commands"]
    assert writer["durable_s"] is None
    assert "whether its bytes are on a drive is not known" in writer["reasons"]["durable_s"]


@pytest.mark.root
def test_the_file_system_on_the_named_device_is_flushed(
    home: Path, in_process: InProcess, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the flush may begin late.
    monkeypatch.setattr(probes, "_LATEST_FLUSH_S", 60.0)
    drive = backing_device(volume)[0]
    assert drive is not None
    done = in_process(
        "bench", "head -c 8M /dev/zero > a", "-r", "2", "--meter", "none", "--format", "json",
        "--prepare", "rm -f a", "--directory", str(volume), "--device", str(drive.node),
        "--seed", "1", "--name", "b",
    )  # fmt: skip
    (one,) = json.loads(done.out)["commands"]
    assert one["not_durable"] is None
    assert one["bytes_device_written"]["median"] == pytest.approx(8 * MIB, rel=0.05)
    assert one["durable_s"]["median"] > one["duration_s"]["median"]


@pytest.mark.root
def test_the_named_device_is_watched_and_flushed(home: Path, eeio: Eeio, tmp_path: Path) -> None:
    with attached(sparse(tmp_path / "image", 64 * MIB)) as node:
        body = found(home, eeio, f"dd if=/dev/zero of={node} bs=1M count=8 conv=notrunc", "-r", "2",
                     "--meter", "none", "--device", str(node))  # fmt: skip
        (one,) = body["commands"]
        assert {run["device"] for run in records(home, "b")} == {node.name}
        assert one["executions"] == one["n"] == 2 and one["not_durable"] is None
        assert one["bytes_device_written"]["median"] == 8 * MIB
        assert one["durable_s"]["median"] > one["duration_s"]["median"]


@pytest.mark.root
def test_a_full_disk_is_reported(home: Path, eeio: Eeio, tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "journal.json")
    volume = image.make_on_loop("ext4", tmp_path, 16 * MIB, journal)
    try:
        done = bench(home, eeio, "head -c 1G /dev/zero >a", "--meter", "none", "--directory",
                     str(volume.mount_point), code=1)  # fmt: skip
        assert len(done.stderr.strip().splitlines()) == 1
        assert "exit code" in done.stderr and f"{volume.mount_point} is full" in done.stderr
    finally:
        assert journal.undo_all() == []


def _sync(directory: Path, node: Path | None) -> caches.Sync:
    """As on a drive that takes 1000 s."""
    return caches.Sync(10.0, 1010.0, "test")


def test_a_run_repeats_a_command_by_its_time_until_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into the page cache it takes milliseconds; onto a slow drive it takes long."""
    if mount_of(tmp_path).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    monkeypatch.setattr(trial, "flush", _sync)
    (command,) = request.commands(["head -c 1048576 /dev/zero >f"], (), {})
    tried = trial.run(command, How(), str(tmp_path), 0)
    assert tried.bytes_written == pytest.approx(MIB, rel=0.1)
    assert tried.durable_s > 1000
    assert tried.executions(How(), 0.0).count == 1


def test_what_writes_nothing_waits_for_no_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "flush", _sync)
    (command,) = request.commands(["true"], (), {})
    tried = trial.run(command, How(), str(tmp_path), 2)
    assert tried.bytes_written == 0
    assert tried.durable_s < 1000


def test_a_change_of_names_waits_for_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes have written no bytes, and the drive has; without the command it has not."""
    if backing_device(tmp_path)[0] is None:
        pytest.skip("needs a directory on a disk")
    written = iter([0, 4096, 4096, 8192, 8192, 12288, 12288, 12288])
    monkeypatch.setattr(command_bytes, "LEAST_CHANGE_BYTES", 1)
    monkeypatch.setattr(trial, "read_counters", lambda drive: DeviceCounters(0, next(written)))
    (command,) = request.commands(["true"], (), {})
    tried = trial.run(command, How(shortest_s=1000.0), str(tmp_path), 0)
    assert tried.bytes_written == 0 and tried.writes


def test_a_change_of_names_lasts_until_it_is_on_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backing_device(tmp_path)[0] is None:
        pytest.skip("needs a directory on a disk")
    written = itertools.count(step=4096)
    monkeypatch.setattr(command_bytes, "LEAST_CHANGE_BYTES", 1)
    monkeypatch.setattr(trial, "read_counters", lambda drive: DeviceCounters(0, next(written)))
    monkeypatch.setattr(trial, "flush", _sync)
    (command,) = request.commands(["true"], (), {})
    tried = trial.run(command, How(), str(tmp_path), 0)
    assert tried.bytes_written == 0 and tried.writes and tried.durable_s > 1000


def test_one_write_of_another_program_makes_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backing_device(tmp_path)[0] is None:
        pytest.skip("needs a directory on a disk")
    written = iter([0, 4096, 4096, 4096])
    monkeypatch.setattr(command_bytes, "LEAST_CHANGE_BYTES", 1)
    monkeypatch.setattr(trial, "read_counters", lambda drive: DeviceCounters(0, next(written)))
    (command,) = request.commands(["true"], (), {})
    assert not trial.run(command, How(shortest_s=1000.0), str(tmp_path), 0).writes


def test_a_drive_that_others_write_to_makes_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backing_device(tmp_path)[0] is None:
        pytest.skip("needs a directory on a disk")
    written = itertools.count(step=4096)
    monkeypatch.setattr(command_bytes, "LEAST_CHANGE_BYTES", 1)
    monkeypatch.setattr(trial, "read_counters", lambda drive: DeviceCounters(0, next(written)))
    (command,) = request.commands(["true"], (), {})
    assert not trial.run(command, How(shortest_s=1000.0), str(tmp_path), 0).writes


@pytest.mark.parametrize(
    ("durable_s", "period_s", "how", "count"),
    [
        (0.1, 0.0, How(), 10),
        (0.05, 0.1, How(), 40),  # 20 readings
        (0.2, 0.0, How(), 1),
        (0.1, 0.0, How(prepare="true"), 1),
        (0.1, 0.0, How(conclude="true"), 1),
        (0.0, 0.0, How(), 100_000),
    ],
)
def test_executions_of_a_run(durable_s: float, period_s: float, how: How, count: int) -> None:
    tried = trial.Trial(durable_s, None, None)
    assert tried.executions(how, period_s) == Executions(count, writes=True)
    assert tried.executions(how, None) == Executions(1, writes=True)


@pytest.mark.parametrize(
    ("durable_s", "how", "share"),
    [
        (0.1, How(), True),
        (0.2, How(), False),
        (0.1, How(prepare="true"), False),
        (0.1, How(precision=0.03), False),
        (0.1, How(settle_s=1.0), False),
    ],
)
def test_which_runs_share_a_process(durable_s: float, how: How, share: bool) -> None:
    tried = trial.Trial(durable_s, 0, 0, writes=False)
    assert tried.executions(how, None) == Executions(share_process=share)
    assert not tried.executions(how, 0.1).share_process


def test_runs_that_share_a_process_are_runs_of_their_own(home: Path, eeio: Eeio) -> None:
    """Of three commands, of which one is too slow to share one."""
    commands = ("true", "cat /dev/null", "sleep 0.25")
    body = found(home, eeio, *commands, "-r", "20", "--meter", "none", "--seed", "1")
    assert [(one["n"], one["executions"]) for one in body["commands"]] == [(20, 20)] * 3
    campaign = load(home / "data/eeio/results/b")
    runs = sorted(campaign.runs, key=lambda run: run.order_index)
    assert [run.order_index for run in runs] == list(range(60))
    for planned, run in zip(campaign.design.runs, runs, strict=True):
        assert (planned.repetition, planned.order_index) == (run.repetition, run.order_index)
        assert planned.experiment.experiment.id == run.experiment.id
    for earlier, later in pairwise(runs):
        assert earlier.started_monotonic_s + earlier.duration_s <= later.started_monotonic_s
    for run in runs:
        (phase,) = run.phases
        assert phase.metrics["executions"] == phase.metrics["exit_code_0"] == 1.0
    assert "true" in eeio("report", "b").stdout


def test_a_failure_in_a_shared_process_is_no_figure(home: Path, eeio: Eeio) -> None:
    """The sixth execution fails. Its counter is in memory: a command that writes shares none."""
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as counter:
        counter.write("0")
        counter.flush()
        path = counter.name
        command = f"read n <{path}; echo $((n + 1)) >{path}; test $n -lt 5"
        done = bench(home, eeio, command, "--format", "json", "-r", "10", "--meter", "none", code=3)
    runs = load(home / "data/eeio/results/b").runs
    if len({run.raw for run in runs}) > 1:
        pytest.skip("an execution takes more than 0.2 s here, so that no runs share a process")
    (one,) = json.loads(done.stdout)["commands"]
    assert one["n"] == 0 and one["duration_s"] is None
    assert one["reason"].startswith("exit code 1")
    assert len(runs) == 10


@pytest.mark.parametrize(("each", "count"), [([[1.0, 1.1, 0.0, 0.0, 4096, 0]], 1), ([], 0)])
def test_a_record_that_lacks_executions_gives_no_figures(
    tmp_path: Path, each: list[list[float]], count: int
) -> None:
    campaign = load(CAMPAIGNS / "bench")
    (tmp_path / "command.json").write_text(json.dumps({"each": each}))
    run = next(run for run in campaign.runs if run.phases)
    separate = shared_process.separated(run, campaign.design.runs[:2], tmp_path)
    reason = f"{count} of 2 executions were recorded"
    assert [(one.phases, one.validity) for one in separate] == [((), (reason,))] * 2
    (tmp_path / "command.json").write_text('{"each": "none"}')
    with pytest.raises(ToolOutputError, match="not a command's record"):
        shared_process.separated(run, campaign.design.runs[:2], tmp_path)


def test_time_and_bytes_are_printed_before_the_first_run(home: Path, eeio: Eeio) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    done = bench(home, eeio, "head -c 1048576 /dev/zero >f; sync f; sleep 0.25", "-r", "3",
                 "--meter", "none")  # fmt: skip
    lines = done.stderr.splitlines()
    announced = next(line for line in lines if line.startswith("3 runs of 1 execution, about"))
    written = re.search(r", up to ([0-9.]+) MB written and ", announced)
    # The file, and what the file system writes with it.
    assert written is not None and 3 * 1.048 < float(written[1]) < 30
    assert lines.index(announced) < next(n for n, line in enumerate(lines) if "[1/3]" in line)


def test_a_user_has_an_account_of_bytes(tmp_path: Path) -> None:
    """Nobody but root reads /proc/PID/io of a process that has ended."""
    if mount_of(tmp_path).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    nobody: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:
            nobody = {"user": 65534, "group": 65534}
            os.chown(folder, 65534, 65534)
        python = next((
            program for program in (sys.executable, "/usr/bin/python3")
            if subprocess.run(["test", "-x", program, "-a", "-r", str(LOOP)], check=False,
                              **nobody).returncode == 0  # type: ignore[call-overload]
        ), None)  # fmt: skip
        if python is None:
            pytest.skip("no Python that another user may start")
        subprocess.run(
            [python, "-I", "-S", str(LOOP), 'command="head -c 1048576 /dev/zero >f; echo | cat"',
             "count=3", f"directory={folder}", f"output={folder}"],
            check=True, timeout=300, **nobody,  # type: ignore[call-overload]
        )  # fmt: skip
        account = json.loads((Path(folder) / "command.json").read_text())["account"]
    assert account["wchar"] >= 3 * MIB
    assert account["write_bytes"] == pytest.approx(3 * MIB, rel=0.1)


def test_memory_below_that_of_who_starts_it_is_not_known(home: Path, eeio: Eeio) -> None:
    """The kernel's peak of a process begins with that of its parent."""
    larger = [f"{sys.executable} -c \"x = b'a' * {size}\"" for size in (20_000_000, 200_000_000)]
    body = found(home, eeio, "true", *larger, "-r", "2", "--meter", "none")
    small, some, other = body["commands"]
    assert 20e6 < some["memory_peak_bytes"]["median"] < 60e6
    assert small["memory_peak_bytes"] is None
    assert small["reasons"]["memory_peak_bytes"].startswith("below the detection limit of ")
    again = ("--directory", str(home / "target"), "--name", "text", "-r", "2", "--meter", "none")
    done = eeio("bench", *again, "true")
    text = done.stdout
    assert "not measured: peak memory: below the detection limit of " in " ".join(text.split())
    assert 200e6 < other["memory_peak_bytes"]["median"] < 260e6


def test_executions_that_overwrite_each_other_are_all_written(home: Path, eeio: Eeio) -> None:
    if mount_of(home).filesystem in WITHOUT_STORAGE:
        pytest.skip("needs a directory on a disk")
    overwritten = "dd if=/dev/zero of=b bs=1M count=1 conv=notrunc"
    body = found(home, eeio, overwritten, "rm -f c; head -c 1M /dev/zero >c", "-r", "2",
                 "--meter", "none")  # fmt: skip
    for command in body["commands"]:
        assert command["bytes_device_written"]["median"] == pytest.approx(MIB, rel=0.05)
        assert command["durable_s"]["median"] > command["duration_s"]["median"]
    if any(command["executions"] == command["n"] for command in body["commands"]):
        pytest.skip("an execution takes more than 0.2 s here, so that a run has only one")


def test_what_precedes_and_follows_is_not_measured(home: Path, eeio: Eeio) -> None:
    body = found(
        home, eeio, "echo run >> log", "-r", "3", "--meter", "none",
        "--prepare", "sleep 1; echo before >> log", "--conclude", "echo after >> log",
    )  # fmt: skip
    lines = (home / "target/log").read_text().split()
    assert lines == ["before", "run", "after"] * 4, "once to see that it works, then three runs"
    assert body["commands"][0]["duration_s"]["median"] < 1


def test_conclude_of_a_killed_campaign_runs_in_no_other(home: Path, eeio: Eeio) -> None:
    log = home / "log"
    killed(
        "[2/", "bench", "sleep 0.25", "-r", "4", "--meter", "none", "--name", "a",
        "--directory", str(home / "target"), "--conclude", f"echo x >> {log}",
    )  # fmt: skip
    lines = log.read_text()
    bench(home, eeio, "true", "-r", "2", "--meter", "none")
    assert lines and log.read_text() == lines


def test_a_conclude_that_fails_is_reported(home: Path, eeio: Eeio) -> None:
    """It works once, for the trial."""
    done = bench(home, eeio, "sleep 0.2", "-r", "1", "--meter", "none", "--conclude",
                 "mkdir once", "--format", "json", code=3)  # fmt: skip
    (one,) = json.loads(done.stdout)["commands"]
    assert one["n"] == 0 and one["reason"].startswith("--conclude failed: exit code 1: mkdir")


@pytest.mark.parametrize("option", ["--prepare", "--conclude"])
def test_what_precedes_and_follows_leaves_no_process(home: Path, eeio: Eeio, option: str) -> None:
    """It would take power during the run."""
    background = "setsid -f sleep 60"
    done = bench(home, eeio, option, background, "true", "-r", "1", "--meter", "none", code=1)
    assert "of its processes continued in the background" in done.stderr
    assert not (home / "data/eeio/results/b").exists()


def test_a_program_runs_without_a_shell(home: Path, eeio: Eeio) -> None:
    body = found(home, eeio, "-r", "2", "--meter", "none", "--", "sh", "-c", "echo $0 $1 > p", "x")
    assert body["commands"][0]["command"] == "sh -c echo $0 $1 > p x"
    assert (home / "target/p").read_text() == "x\n"


def test_parameters_stand_in_commands(home: Path, eeio: Eeio) -> None:
    export, theirs = home / "hyperfine.json", home / "theirs"
    export.symlink_to(theirs)
    body = found(
        home, eeio, "head -c {size} /dev/zero > {name}", "-P", "size", "1000", "2000",
        "-D", "1000", "-L", "name", "a,b", "-r", "2", "--meter", "none",
        "--export-json", str(export),
    )  # fmt: skip
    assert [one["parameters"] for one in body["commands"]] == [
        {"size": size, "name": name} for size in ("1000", "2000") for name in ("a", "b")
    ]
    assert not theirs.exists() and not export.is_symlink()
    results = json.loads(export.read_text())["results"]
    assert [one["command"] for one in results] == [one["command"] for one in body["commands"]]
    assert {"mean", "stddev", "median", "user", "system", "min", "max", "times"} <= set(results[0])
    assert len(results[0]["times"]) == 2 and results[0]["exit_codes"] == [0, 0]
