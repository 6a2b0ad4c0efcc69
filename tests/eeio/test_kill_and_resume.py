"""A campaign killed at any moment goes on where it stopped: no run lost, none doubled."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.campaigns import killed, records, signalled
from tests.executables import executable
from tests.kill.harness import COMPOSITE, drop_last_runs, start, stored
from tests.mounts import sparse, unmount
from tests.plugin import Eeio
from tests.processes import ran

from eeio.cli import main
from eeio.machine.filesystem import mounts
from eeio.machine.owner import start_ticks
from eeio.measure import environment
from eeio.record.run import Tool
from eeio.record.store import Store

RUNS = 6 * 3


@pytest.mark.slow
def test_twenty_kills_lose_and_double_nothing(home: Path, eeio: Eeio) -> None:
    moments = random.Random(20)
    process = start(
        "run", "dummy-suite", "--directory", str(home / "target"), "--name", "killed",
        "--repetitions", str(RUNS // 3), "--meter", "none", "--seed", "7",
    )  # fmt: skip
    campaign = home / "data/eeio/results/killed/campaign.json"
    kills = 0
    while kills < 20:
        # A moment between the start of Python and some runs later; once the campaign exists.
        try:
            process.wait(moments.uniform(0.15, 0.9))
        except subprocess.TimeoutExpired:
            if not campaign.exists():
                continue
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        if len(stored(home)) == RUNS:
            # All done before the twentieth kill: the kills go on over the same campaign's tail.
            drop_last_runs(home, 4)
        process = start("resume", "killed")
    process.wait(60)
    eeio("resume", "killed")
    order = stored(home)
    assert order == list(range(RUNS))
    pairs = {(r["experiment_id"], r["repetition"]) for r in records(home, "killed")}
    assert len(pairs) == RUNS


@pytest.mark.root
def test_file_systems_of_a_killed_campaign_are_taken_away(home: Path, eeio: Eeio) -> None:
    target = home / "target"
    killed("[9/", "run", "dummy-suite", "--name", "killed", "--meter", "none", "--directory",
           str(target), "--filesystem", "ext4,xfs", "--repetitions", "50")  # fmt: skip
    assert any(mount.mount_point.parent == target for mount in mounts())
    eeio("doctor", "restore")
    assert not any(mount.mount_point.parent == target for mount in mounts())
    assert list(target.iterdir()) == []
    attached = ran(["losetup", "--list"])
    assert str(target) not in attached.stdout
    # And the campaign goes on with file systems made anew.
    done = signalled(signal.SIGTERM, "[20/", "resume", "killed")
    assert done.returncode == 128 + signal.SIGTERM
    assert list(target.iterdir()) == []
    assert stored(home) == list(range(len(stored(home))))


@pytest.mark.slow
@pytest.mark.root
def test_mkfs_of_a_killed_campaign_is_ended(home: Path, eeio: Eeio) -> None:
    """On an erased device it went on, and kept `resume` from the device."""
    program = home / "bin/mkfs.ext4"
    program.parent.mkdir()
    # Half a file system, and a process that may go on writing.
    executable(
        program,
        f"#!/bin/sh\nfor last; do :; done\n[ -e {home}/waited ] || {{\n"
        f'\texec 9<>"$last"; echo half >&9; echo $$ > {home}/waited; exec sleep 1000\n}}\n'
        f'exec {shutil.which("mkfs.ext4")} "$@"\n',
    )
    image = sparse(home / "device.img", 64 << 20)
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    node = ran(attach).stdout.strip()
    path = f"{program.parent}:{os.environ['PATH']}"
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "eeio", "run", "dummy-suite", "--name", "killed", "--meter",
             "none", "--directory", str(home / "target"), "--device", node, "--erase", node,
             "--filesystem", "ext4", "--repetitions", "1"],
            env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        waited = home / "waited"
        while process.poll() is None and not (waited.exists() and waited.read_text()):
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        mkfs = int(waited.read_text())
        assert start_ticks(mkfs) is not None
        eeio("doctor", "restore")
        assert start_ticks(mkfs) is None
        eeio("resume", "killed")
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)
    assert stored(home) == list(range(3))


@pytest.mark.parametrize(
    "arguments",
    [["run", "dummy-suite", "--directory", "{home}/target"], ["import", str(COMPOSITE)]],
)
def test_a_campaign_that_could_not_be_made_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Half of one would be in the way of run, resume and import alike."""

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Store, "write", fails)
    command = [argument.format(home=home) for argument in arguments]
    assert main([*command, "--name", "c"]) == 1
    assert list((home / "data/eeio/results").iterdir()) == []


def test_a_line_cut_off_by_a_crash_is_run_again(home: Path, eeio: Eeio) -> None:
    arguments = ("--directory", str(home / "target"), "--meter", "none")
    eeio("run", "dummy-suite", "--name", "killed", *arguments)
    path = home / "data/eeio/results/killed/runs.jsonl"
    complete = path.read_bytes()
    path.write_bytes(complete[: len(complete) - 100])
    # A reader passes over the cut line, and says that a run is missing.
    assert "1 of 6 runs are not done" in eeio("report", "killed").stdout
    eeio("resume", "killed")
    assert stored(home) == list(range(6))


def test_resume_after_lost_samples_overwrites_none(home: Path, eeio: Eeio) -> None:
    """It counted the files, and so took the name of one that was there."""
    arguments = ("--directory", str(home / "target"), "--meter", "demo")
    eeio("run", "dummy-suite", "--name", "killed", *arguments)
    samples = home / "data/eeio/results/killed/samples"
    assert not (samples.parent / ".eeio-lock").exists()
    # Of three starts; only the second one's samples are left.
    (samples / "power-0001.json").rename(samples / "power-0003.json")
    (samples / "power-0001.csv.gz").rename(samples / "power-0002.csv.gz")
    before = {path: path.read_bytes() for path in samples.iterdir()}
    drop_last_runs(home, 1)
    eeio("resume", "killed")
    added = {path.name for path in samples.iterdir() if path not in before}
    assert added == {"power-0004.csv.gz", "power-0004.json"}
    assert {path: path.read_bytes() for path in before} == before


def test_a_campaign_goes_on_only_on_the_machine_it_began_on(home: Path, eeio: Eeio) -> None:
    arguments = ("--directory", str(home / "target"), "--meter", "none")
    eeio("run", "dummy-suite", "--name", "killed", *arguments)
    drop_last_runs(home, 2)
    path = home / "data/eeio/results/killed/machine.json"
    machine = json.loads(path.read_text())
    path.write_text(json.dumps({**machine, "kernel": "2.6.32\nrc1"}))
    done = eeio("resume", "killed", code=2)
    assert f"kernel was 2.6.32\\x0arc1, is {os.uname().release}" in done.stderr
    assert len(stored(home)) == 4
    path.write_text(json.dumps(machine))
    eeio("resume", "killed")
    assert stored(home) == list(range(6))


def test_a_tool_that_was_upgraded_makes_another_machine() -> None:
    fio = Tool("fio", "/usr/bin/fio", "fio-3.33", "a" * 64, "system")
    before = environment.capture(None, None, [fio])
    assert environment.differences(before, before, of_target=True) == []
    # A tool that is gone is told by the runs that fail.
    assert environment.differences(before, replace(before, tools=()), of_target=True) == []
    now = replace(before, tools=(replace(fio, version="fio-3.36"),))
    (text,) = environment.differences(before, now, of_target=True)
    assert "fio-3.33" in text and "fio-3.36" in text


@pytest.mark.root
def test_a_campaign_goes_on_only_on_the_disk_it_began_on(home: Path, eeio: Eeio) -> None:
    """After a reboot the disk may not be mounted, or another may have its name."""
    target = home / "target"
    for name in ("first", "second"):
        with (home / name).open("wb") as image:
            image.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(home / name)], check=True)
    mount = ["mount", "-o", "loop"]
    if subprocess.run([*mount, str(home / "first"), str(target)], check=False).returncode:
        pytest.skip("mount is not permitted here")
    try:
        arguments = ("--directory", str(target), "--meter", "none", "--name", "killed")
        eeio("run", "dummy-suite", *arguments)
        drop_last_runs(home, 2)
        unmount(target)
        for way in ([*mount, str(home / "second")], ["mount", "--bind", str(home / "data")]):
            subprocess.run([*way, str(target)], check=True)
            done = eeio("resume", "killed", code=2)
            unmount(target)
            assert str(target) in done.stderr and str(home / "first") in done.stderr
            assert len(stored(home)) == 4
        subprocess.run([*mount, str(home / "first"), str(target)], check=True)
        eeio("resume", "killed")
        assert stored(home) == list(range(6))
    finally:
        subprocess.run(["umount", "-q", str(target)], check=False)


@pytest.mark.root
def test_test_files_that_are_there_need_no_room_again(home: Path, eeio: Eeio) -> None:
    """A stopped campaign leaves them to the one that goes on."""
    target = home / "target"
    profile = home / "profiles" / "eeio-dummy-1.0.0"
    shutil.copytree(Path(os.environ["EEIO_TEST_PROFILES"]) / profile.name, profile)
    script = profile / "eeio-dummy.sh"
    script.write_text(script.read_text().replace("level=*", "level=* | file_size=*"))
    (profile / "presets.conf").write_text("standard file_size=20m\n")
    with (home / "disk").open("wb") as image:
        image.truncate(40 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m0", str(home / "disk")], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", str(home / "disk"), str(target)], check=False)
    if mounted.returncode:
        pytest.skip("mount is not permitted here")
    try:
        own = {"EEIO_TEST_PROFILES": str(profile.parent)}
        eeio("run", "dummy-suite", "--directory", str(target), "--meter", "none", "--name",
                    "killed", environment=own)  # fmt: skip
        drop_last_runs(home, 2)
        (target / "eeio-scratch").mkdir()
        (target / "eeio-scratch" / "eeio-dummy.0.0").write_bytes(bytes(20 << 20))
        eeio("resume", "killed", environment=own)
        assert stored(home) == list(range(6))
    finally:
        unmount(target)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_campaign_and_reports_how_to_go_on(
    home: Path, eeio: Eeio, signum: int
) -> None:
    scratch = home / "target/eeio-scratch"
    scratch.mkdir(parents=True)
    (scratch / "eeio-dummy.0.0").write_bytes(bytes(20 << 20))
    stopped = signalled(
        signum, "[2/", "run", "dummy-suite", "--name", "killed", "--meter", "none",
        "--directory", str(home / "target"), "--repetitions", "50",
    )  # fmt: skip
    assert stopped.returncode == 128 + signum
    assert "eeio resume killed" in stopped.stderr
    assert f"0.02 GB of test files are left in {scratch}" in stopped.stderr
    assert not list((home / "state/eeio/undo").glob("*"))
    assert stored(home) == list(range(len(stored(home))))
    done = eeio("rm", "killed", "--yes")
    assert f"0.02 GB of test files are left in {scratch}: delete that folder" in done.stdout


def test_nohup_keeps_the_campaign_from_stopping_with_its_terminal(home: Path) -> None:
    done = signalled(
        signal.SIGHUP, "[2/", "run", "dummy-suite", "--name", "killed", "--meter", "none",
        "--directory", str(home / "target"), before=["nohup"],
    )  # fmt: skip
    assert done.returncode == 0
    assert stored(home) == list(range(6))
