"""Whole cycles with the real tools: install, prefill, measure, parse, clean up."""

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from eeio.record import tools
from tests.mounts import attached, unmount
from tests.profiles import (
    test_archive,
    test_dlio,
    test_io500,
    test_s3,
    test_servers,
    test_sqlite,
)
from tests.profiles.harness import FOLDERS, Installer

pytestmark = pytest.mark.tools


Cycle = tuple[str, str, list[tuple[str, int | None]]]

CYCLES: list[Cycle] = [
    ("fio", "operation=read request_size=64k file_size=16m", [("read", 16 << 20)]),
    (
        "fio",
        "operation=write spatiality=random request_size=4k file_size=4m buffer=on",
        [("write", 4 << 20)],
    ),
    (
        "fio",
        "operation=mixed spatiality=random request_size=8k processes=2 file_size=4m",
        [("mixed", 4 << 20)],
    ),
    (
        "fio",
        "level=device operation=read spatiality=strided request_size=64k stride=4 file_size=16m",
        [("read", 4 << 20)],
    ),
    ("iozone", "operation=read request_size=64k file_size=16m", [("read", 16 << 20)]),
    ("iozone", "operation=write request_size=1m file_size=16m buffer=on", [("write", 16 << 20)]),
    (
        "iozone",
        "operation=mixed spatiality=random request_size=64k file_size=16m",
        [("random read", 16 << 20), ("random write", 16 << 20)],
    ),
    (
        "iozone",
        "operation=read spatiality=strided stride=5 request_size=64k file_size=16m",
        [("strided read", 16 << 20)],
    ),
    (
        "iozone",
        "operation=read request_size=64k file_size=16m processes=2",
        [("read", 16 << 20)],
    ),
    ("dataserver", "request_size=64k file_size=16m", [("read", 16 << 20)]),
    (
        "dataserver",
        "operation=write spatiality=strided request_size=1m stripe=64k processes=3 clients=5 "
        "file_size=20m flush=each",
        [("write", 20 << 20)],
    ),
    (
        "dataserver",
        "api=mpiio buffer=on spatiality=strided request_size=256k processes=2 file_size=16m",
        [("read", 16 << 20)],
    ),
    ("btio", "class=S processes=4", [("write", 829_440), ("read", 829_440)]),
    ("btio", "class=S processes=9 subtype=simple", [("write", 829_440), ("read", 829_440)]),
    (
        "metadata",
        "mode=fork processes=4 files=5 rounds=3",
        [("create", 0), ("stat", 0), ("utime", 0), ("delete", 0)],
    ),
    (
        "metadata",
        "level=filesystem operation=metadata buffer=on processes=2 files=4 rounds=2 size=4k "
        "layout=own fsync=off",
        [("create", 65_536), ("stat", 0), ("utime", 0), ("delete", 0)],
    ),
    ("rocksdb", "workload=fillseq keys=20000", [("fillseq", None)]),
    (
        "checkpoint",
        "processes=3 size=1m interval_s=0 checkpoints=3",
        [("checkpoint", 9 << 20)],
    ),
    ("varmail", "processes=2 files=300 loops=200 fsync=on flush=each", [("mail", None)]),
    ("ior", "operation=write request_size=64k processes=2 file_size=16m", [("write", 16 << 20)]),
    (
        "ior",
        "operation=write request_size=1m processes=2 file_size=16m flush=each",
        [("write", 16 << 20)],
    ),
    (
        "ior",
        "spatiality=strided request_size=256k processes=2 collective=on file_size=16m",
        [("read", 16 << 20)],
    ),
    (
        "ior",
        "api=posix buffer=off spatiality=random request_size=64k file_per_process=on file_size=8m",
        [("read", 8 << 20)],
    ),
    (
        "ior",
        "spatiality=random request_size=64k processes=2 file_size=16m",
        [("read", 16 << 20)],
    ),
    (
        "bonnie",
        "request_size=64k file_size=16m buffer=on characters=2m",
        [
            ("character write", 2 << 20),
            ("write", 16 << 20),
            ("rewrite", 16 << 20),
            ("character read", 2 << 20),
            ("read", 16 << 20),
            ("seeks", 512 << 20),
        ],
    ),
]
SLOW_CYCLES: list[Cycle] = [
    (
        "iozone",
        "operation=write request_size=16m file_size=64m processes=4 buffer=on flush=off",
        [("write", 64 << 20)],
    ),
    (
        "iozone",
        "operation=write request_size=32k file_size=32m processes=256 buffer=on",
        [("write", 32 << 20)],
    ),
    (
        "btio",
        "class=W processes=4 collective_buffer=128k flush=end",
        [("write", 22_118_400), ("read", 22_118_400)],
    ),
    ("rocksdb", "operation=read workload=readrandom keys=20000", [("readrandom", None)]),
    ("bonnie", "request_size=64k file_size=64m", [("write", 64 << 20)]),
    (
        "bonnie",
        "request_size=64k file_size=16m flush=each",
        [("write", 16 << 20)],
    ),
    (
        "bonnie",
        "request_size=64k file_size=64m buffer=on flush=end",
        [("write", 64 << 20), ("rewrite", 64 << 20), ("read", 64 << 20), ("seeks", 512 << 20)],
    ),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "phases"),
    [*CYCLES, *(pytest.param(*cycle, marks=pytest.mark.slow) for cycle in SLOW_CYCLES)],
)
def test_cycle(
    installed: Installer,
    tmp_path: Path,
    tool: str,
    arguments: str,
    phases: list[tuple[str, int | None]],
) -> None:
    profile = installed(tool)
    profile.script("pre.sh", *arguments.split())
    capture = profile.capture(tmp_path / "out", dict(w.split("=") for w in arguments.split()))
    assert capture.exit_code == 0, capture.text("stderr.txt")
    assert (profile.home / "test-exit-status").read_text() == "0\n"
    result = tools.parse(tool, capture)
    # None: as many as it came to.
    reported = [p.bytes_moved if moved is not None else None
            for p, (_, moved) in zip(result.phases, phases, strict=True)]  # fmt: skip
    assert list(zip((p.name for p in result.phases), reported, strict=True)) == phases
    duration_s = capture.ended_monotonic_s - capture.started_monotonic_s
    for phase in result.phases:
        assert phase.window_source
        if phase.start_s is None or phase.end_s is None:
            # On a busy machine both ends of a short phase may be read at the same time.
            assert tool == "bonnie" and "arrived at the same time" in phase.window_source
        else:
            assert 0 <= phase.start_s < phase.end_s <= duration_s + 0.01
        if phase.bandwidth_bytes_per_s is not None:
            assert 1e5 < phase.bandwidth_bytes_per_s < 1e12
        else:
            assert phase.invalid or phase.operation == "metadata"
    profile.script("post.sh", *arguments.split(), EEIO_KEEP_FILES="1")
    assert list(profile.directory.iterdir())
    profile.clean_up(*arguments.split())


def test_lmbench_cycle(installed: Installer, tmp_path: Path) -> None:
    profile = installed("lmbench")
    profile.script("pre.sh", "tests=syscall")
    capture = profile.capture(tmp_path / "out", {"tests": "syscall", "repetitions": "1"})
    values = {c.name: c.value for c in tools.parse("lmbench", capture).context}
    assert set(values) == {f"syscall_{w}_latency" for w in ("null", "read", "write")}
    assert all(1e-9 < value < 1e-3 for value in values.values())


def test_every_profile_has_a_run_that_is_not_slow() -> None:
    elsewhere: dict[str, Callable[..., None]] = {
        "archive": test_archive.test_a_tree_is_archived_and_copied,
        "dlio": test_dlio.test_cycle,
        "io500": test_io500.test_cycle,
        "lmbench": test_lmbench_cycle,
        "mariadb": test_servers.test_lines_for_pts,
        "postgresql": test_servers.test_lines_for_pts,
        "s3": test_s3.test_cycle,
        "sqlite": test_sqlite.test_transactions_and_lookups,
    }
    names = {path.name.removeprefix("eeio-").rpartition("-")[0] for path in FOLDERS}
    assert {tool for tool, _, _ in CYCLES} | set(elsewhere) == names
    for test in [test_cycle, *elsewhere.values()]:
        marks = {mark.name for mark in getattr(test, "pytestmark", [])}
        assert not marks & {"slow", "fast_variants"}, test


@pytest.mark.parametrize("tool", ["fio", "iozone"])
def test_prefill_is_real_and_done_once(installed: Installer, tool: str) -> None:
    profile = installed(tool)
    arguments = ("operation=read", "request_size=64k", "file_size=8m", "processes=2")
    scratch = profile.directory / "eeio-scratch"
    profile.script("pre.sh", *arguments)
    files = [p for p in scratch.iterdir() if p.stat().st_size == 4 << 20]
    assert len(files) == 2
    for file in files:
        # Blocks on the disk behind every byte, or reads would not reach it.
        assert file.stat().st_blocks * 512 >= 4 << 20
    before = {file: file.stat().st_mtime_ns for file in files}
    profile.script("pre.sh", *arguments)
    assert {file: file.stat().st_mtime_ns for file in files} == before
    # A file that was cut short is written again.
    os.truncate(files[0], 100)
    profile.run(*arguments, code=0 if tool == "fio" else 2)
    profile.script("pre.sh", *arguments)
    assert files[0].stat().st_size == 4 << 20
    # Another request size finds the same files.
    profile.script("pre.sh", *arguments[:1], "request_size=4k", *arguments[2:])
    after = {file: file.stat().st_mtime_ns for file in files}
    profile.script("pre.sh", *arguments)
    assert {file: file.stat().st_mtime_ns for file in files} == after


def test_a_replay_is_complete_however_short_the_preset(
    installed: Installer, tmp_path: Path
) -> None:
    """The last request comes after the preset's run time."""
    profile = installed("dataserver")
    trace = tmp_path / "trace.csv"
    trace.write_text("time,client,op,offset,length\n0.0,0,write,0,65536\n1.5,0,write,65536,65536\n")
    factors = {
        "operation": "mixed", "replay": str(trace), "timed": "on", "processes": "1",
        "buffer": "on", "runtime_s": "1",
    }  # fmt: skip
    arguments = [f"{key}={value}" for key, value in factors.items()]
    profile.script("pre.sh", *arguments)
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0
    (phase,) = tools.parse("dataserver", capture).phases
    assert phase.bytes_moved == 2 * 65536


def test_iozone_s_write_keeps_the_files_of_its_reads(installed: Installer) -> None:
    profile = installed("iozone")
    sizes = ("request_size=64k", "file_size=4m")
    profile.script("pre.sh", "operation=read", *sizes)
    profile.script("pre.sh", "operation=write", *sizes)
    profile.run("operation=write", *sizes)
    profile.run("operation=read", *sizes)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("fio", "speed=high", "unknown factor 'speed=high'"),
        ("fio", "operation", "unknown factor 'operation'"),
        ("fio", "operation=erase", "operation=erase: give one of: read write mixed"),
        ("fio", "request_size=256", "request_size=256"),
        ("fio", "request_size=16m", "request_size=16m"),
        ("fio", "request_size=4.5k", "request_size=4.5k"),
        ("fio", "processes=0", "processes=0"),
        ("fio", "runtime_s=-1", "runtime_s=-1"),
        ("fio", "file_size=99999999999g", "file_size=99999999999g"),
        ("fio", "level=device buffer=on", "buffer=on"),
        ("fio", "file_size=4k", "file_size=4k"),
        ("iozone", "operation=read spatiality=random", "operation=mixed"),
        ("iozone", "operation=mixed spatiality=sequential", "operation=mixed"),
        ("iozone", "level=device", "level=device"),
        ("iozone", "file_size=6m request_size=4m", "file_size=6m"),
        ("iozone", "operation=read spatiality=strided file_size=8m", "stride=17"),
        ("iozone", "operation=write request_size=32m", "from 4k to 16m"),
        ("iozone", "operation=write flush=late", "flush=late: give one of: none end each on off"),
        ("iozone", "operation=read flush=off", "flush=off: a read does not flush"),
        ("iozone", "operation=write processes=257", "processes=257"),
        ("bonnie", "request_size=2m", "request_size=2m"),
        ("bonnie", "operation=read", "operation=read"),
        ("bonnie", "flush=none", "flush=none: Bonnie++ flushes its file whenever it closes it"),
        ("bonnie", "flush=on", "flush=on"),
        ("bonnie", "buffer=off characters=1m", "a byte at a time is no direct I/O"),
        ("bonnie", "buffer=on flush=each characters=1m", "which would flush every byte"),
        ("bonnie", "buffer=on characters=5000", "characters=5000: give 0, or a multiple of 1m"),
        ("bonnie", "buffer=on file_size=8m characters=9m", "at most file_size=8m"),
        ("lmbench", "tests=network", "tests=network"),
    ],
)
@pytest.mark.parametrize("script", ["run", "pre"])
def test_rejected_factors(
    installed: Installer, tool: str, arguments: str, message: str, script: str
) -> None:
    profile = installed(tool)
    done = (
        profile.run(*arguments.split(), code=None)
        if script == "run"
        else profile.script("pre.sh", *arguments.split(), code=None)
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"eeio-{tool}: ") and message in line
    assert list(profile.directory.iterdir()) == []


def test_a_date_without_nanoseconds_is_rejected(installed: Installer, tmp_path: Path) -> None:
    """As busybox 1.35 prints it, the only one on a plain Alpine: runs would have no window."""
    profile = installed("fio")
    arguments = ["operation=read", "request_size=64k", "file_size=4m"]
    profile.script("pre.sh", *arguments)
    (tmp_path / "bin").mkdir()
    date = tmp_path / "bin/date"
    date.write_text("#!/bin/sh\nexec printf '%s\\n' \"${1#+}\"\n")
    date.chmod(0o755)
    done = profile.run(*arguments, PATH=f"{date.parent}:{os.environ['PATH']}", code=None)
    assert done.returncode != 0
    assert "prints no nanoseconds" in done.stderr


@pytest.mark.parametrize("tool", ["fio", "iozone", "bonnie", "lmbench"])
def test_unknown_preset_and_unprepared_directory(installed: Installer, tool: str) -> None:
    profile = installed(tool)
    assert "EEIO_PRESET=fast" in profile.run(EEIO_PRESET="fast", code=2).stderr
    assert "run pre.sh" in profile.run(code=2).stderr
    assert (profile.home / "test-exit-status").read_text() == "2\n"


@pytest.mark.parametrize("tool", ["fio", "iozone", "bonnie"])
def test_too_little_room(installed: Installer, tool: str) -> None:
    profile = installed(tool)
    (line,) = profile.script("pre.sh", "file_size=900000g", code=2).stderr.splitlines()
    assert re.search(rf"{profile.directory}.*needs 966367641600000 bytes, \d+ are free", line)


def test_a_failing_tool_fails_the_wrapper(installed: Installer) -> None:
    profile = installed("fio")
    arguments = ("operation=read", "request_size=4k", "file_size=1m")
    profile.script("pre.sh", *arguments)
    conf = (profile.home / "tool.conf").read_text()
    (profile.home / "tool.conf").write_text(conf.replace("path=/", "path=/nowhere/"))
    done = profile.run(*arguments, code=None)
    assert done.returncode not in (0, 2)
    assert (profile.home / "test-exit-status").read_text() == f"{done.returncode}\n"


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize(
    ("tool", "arguments", "labels"),
    [
        ("fio", "operation=mixed spatiality=random request_size=4k file_size=4m",
         {"read bandwidth", "read rate", "read latency",
          "write bandwidth", "write rate", "write latency"}),
        ("iozone", "operation=mixed spatiality=random request_size=64k file_size=8m",
         {"random read bandwidth", "random write bandwidth"}),
        ("iozone", "operation=write request_size=64k file_size=8m processes=4",
         {"write bandwidth", "write children bandwidth"}),
        ("bonnie", "request_size=64k file_size=64m", set()),
        ("bonnie", "request_size=64k file_size=16m buffer=on characters=4m",
         {"character write bandwidth", "character read bandwidth"}),
        ("lmbench", "tests=syscall repetitions=1",
         {"system call null latency", "system call read latency", "system call write latency"}),
    ],
)  # fmt: skip
def test_result_lines_for_pts(
    installed: Installer, tmp_path: Path, tool: str, arguments: str, labels: set[str]
) -> None:
    """With LOG_FILE set the raw output and the lines of results-definition.xml are in it."""
    profile = installed(tool)
    log = tmp_path / "pts.log"
    profile.script("pre.sh", *arguments.split())
    profile.run(*arguments.split(), LOG_FILE=str(log))
    lines = re.findall(r"^EEIO ([^:]+): ([\d.]+) \S+$", log.read_text(), re.M)
    assert all(float(value) > 0 for _, value in lines)
    assert labels <= {label for label, _ in lines}
    assert len(log.read_text().splitlines()) > len(lines)


# Devices

DEVICE_WRITE = ("level=device", "operation=write", "request_size=4k", "file_size=1m")


def test_what_is_no_block_device_is_rejected(installed: Installer, tmp_path: Path) -> None:
    profile = installed("fio")
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    for node in (tmp_path / "file", Path("/dev/null"), tmp_path / "nothing"):
        settings = {"EEIO_DEVICE": str(node), "EEIO_ERASE": str(node)}
        for script in (profile.run, partial(profile.script, "pre.sh")):
            done = script(*DEVICE_WRITE, code=2, **settings)
            assert f"EEIO_DEVICE={node}: not a block device" in done.stderr
    assert (tmp_path / "file").read_bytes() == bytes(1 << 20)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A loop device of 8 MiB of zeros, and the file behind it."""
    image = tmp_path / "image"
    image.write_bytes(bytes(8 << 20))
    with attached(image) as node:
        yield node, image


@pytest.mark.root
def test_a_device_is_written_only_when_named_twice(
    installed: Installer, tmp_path: Path, loop: tuple[Path, Path]
) -> None:
    profile = installed("fio")
    device, image = loop
    sizes = ("level=device", "request_size=64k", "file_size=4m")
    named = {"EEIO_DEVICE": str(device), "EEIO_OUTPUT_DIR": str(tmp_path / "out")}
    for operation in ("write", "mixed"):
        for erase in ("", "/dev/sda", f"{device}1", " "):
            done = profile.run(f"operation={operation}", *sizes, **named, EEIO_ERASE=erase, code=2)
            assert f"would erase {device}" in done.stderr
    # Reading needs no leave, and prepares nothing.
    profile.script("pre.sh", "operation=read", *sizes, **named)
    profile.run("operation=read", *sizes, **named)
    assert image.read_bytes() == bytes(8 << 20)
    done = profile.run("operation=read", "level=device", "file_size=9m", **named, code=2)
    assert f"{device} has only {8 << 20} bytes" in done.stderr
    # A node of another name, anywhere, is the device as well.
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFBLK | 0o600, device.stat().st_rdev)
    elsewhere = {**named, "EEIO_DEVICE": str(node)}
    profile.run("operation=read", *sizes, **elsewhere)

    twice = {**named, "EEIO_ERASE": str(device)}
    profile.script("pre.sh", "operation=write", *sizes, **twice)
    subprocess.run(["sync"], check=True)
    prefilled = image.read_bytes()
    assert prefilled[: 4 << 20].count(0) < 1 << 20 and prefilled[4 << 20 :] == bytes(4 << 20)
    profile.run("operation=write", "processes=2", *sizes, **twice)

    # What another use of the device did after these runs is not known: it is filled again.
    profile.script("post.sh", **twice)
    device.write_bytes(bytes(8 << 20))
    profile.script("pre.sh", "operation=write", *sizes, **twice)
    subprocess.run(["sync"], check=True)
    assert image.read_bytes()[: 4 << 20].count(0) < 1 << 20


@pytest.mark.root
def test_another_drive_of_the_same_name_is_filled_again(
    installed: Installer, tmp_path: Path, loop: tuple[Path, Path]
) -> None:
    profile = installed("fio")
    node, other = tmp_path / "node", tmp_path / "other"
    other.write_bytes(bytes(8 << 20))
    settings = {"EEIO_DEVICE": str(node), "EEIO_ERASE": str(node), "EEIO_KEEP_FILES": "yes"}
    factors = ("level=device", "operation=write", "request_size=64k", "file_size=4m")
    with attached(other) as second:
        for device, image in (loop, (second, other)):
            node.unlink(missing_ok=True)
            os.mknod(node, stat.S_IFBLK | 0o600, device.stat().st_rdev)
            profile.script("pre.sh", *factors, **settings)
            subprocess.run(["sync"], check=True)
            assert image.read_bytes()[: 4 << 20].count(0) < 1 << 20


@pytest.mark.root
def test_root_follows_no_link_of_another_user_to_a_device(
    installed: Installer, tmp_path: Path, loop: tuple[Path, Path]
) -> None:
    """Its owner could lead the name to another drive, which would be erased."""
    profile = installed("fio")
    device, image = loop
    link = tmp_path / "by-name"
    link.symlink_to(device)
    settings = {"EEIO_DEVICE": str(link), "EEIO_ERASE": str(link)}
    profile.script("pre.sh", *DEVICE_WRITE, **settings)
    written = image.read_bytes()
    assert written != bytes(8 << 20), "root's own link is followed"
    os.lchown(link, 71500, 71500)
    for call in (profile.run, partial(profile.script, "pre.sh")):
        done = call(*DEVICE_WRITE, code=2, **settings)
        assert f"{link} is a link of user 71500. Repair: name the device itself" in done.stderr
    relative = {"EEIO_DEVICE": "by-name", "EEIO_ERASE": "by-name"}
    done = profile.run(*DEVICE_WRITE, code=2, **relative)
    assert "EEIO_DEVICE=by-name: give an absolute path" in done.stderr
    assert image.read_bytes() == written


@pytest.mark.root
def test_a_mounted_device_is_not_written(
    installed: Installer, tmp_path: Path, loop: tuple[Path, Path]
) -> None:
    profile = installed("fio")
    device, _ = loop
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    (tmp_path / "mnt").mkdir()
    done = subprocess.run(["mount", device, tmp_path / "mnt"], check=False)
    if done.returncode != 0:
        pytest.skip("cannot mount")
    try:
        settings = {"EEIO_DEVICE": str(device), "EEIO_ERASE": str(device)}
        for call in (profile.run, partial(profile.script, "pre.sh")):
            assert "mounted" in call(*DEVICE_WRITE, code=2, **settings).stderr
    finally:
        unmount(device)
