"""`eeio record journal` on file systems of the test's own, and what it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.executables import executable
from tests.mounts import attached, mounted, sparse, unmount
from tests.plugin import Eeio
from tests.processes import ran

from eeio.errors import EeioError
from eeio.machine.undo import UndoJournal
from eeio.measure.journal import delayjc
from eeio.measure.journal.trace import JournalTracer, find_ext4, read_transactions

pytestmark = pytest.mark.root

# Eight threads, a file each: four writes of 4 KiB, fsync.
WRITERS = """
import os, sys, threading
gate = threading.Barrier(8)
def work(number):
    gate.wait()
    fd = os.open(f"{sys.argv[1]}/f{number}", os.O_CREAT | os.O_WRONLY)
    for _ in range(4):
        os.write(fd, bytes(4096))
    os.fsync(fd)
    os.close(fd)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def _mounted(folder: Path, *mkfs: str) -> Iterator[Path]:
    image = sparse(folder / "disk.img", 64 << 20)
    made = ran([*mkfs, str(image)], code=None)
    if made.returncode != 0:
        pytest.skip(f"{mkfs[0]}: {made.stderr.strip()}")
    with mounted(image, folder / "mnt", "-o", "loop") as directory:
        yield directory


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Path]:
    yield from _mounted(tmp_path, "mkfs.ext4", "-q", "-F")


@pytest.fixture
def traced(ext4: Path) -> Iterator[Path]:
    """ext4 whose journal can be traced on this machine; tracefs is mounted beside it, to look."""
    undo = UndoJournal(ext4.parent / "undo.json")
    try:
        with JournalTracer(find_ext4(ext4), ext4.parent / "try.gz", undo):
            pass
    except EeioError as error:
        pytest.skip(str(error))
    finally:
        undo.undo_all()
    tracefs = ext4.parent / "tracefs"
    tracefs.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "nodev", str(tracefs)], check=True)
    try:
        yield ext4
    finally:
        unmount(tracefs)


@pytest.fixture
def instances(traced: Path) -> Callable[[], list[Path]]:
    """Asks for the traces of this file system that began in this test: an instance is the kernel's,
    and one of a killed program may have the name of the same loop device."""
    folder = traced.parent / "tracefs/instances"
    pattern = f"eeio-*-{find_ext4(traced).name}"
    earlier = set(folder.glob(pattern))
    return lambda: [path for path in folder.glob(pattern) if path not in earlier]


def _journal(
    eeio: Eeio, directory: Path, *arguments: str, script: str = WRITERS, path: Path | None = None
) -> dict[str, object]:
    """What is told of a Python program that works on the directory, or on `path` in it."""
    done = eeio(
        "record", "journal", "--format", "json", "--directory", str(directory), "-o",
        str(directory.parent / "out"),
        *arguments, "--", sys.executable, "-c", script, str(path or directory),
    )  # fmt: skip
    body: dict[str, object] = json.loads(done.stdout)
    return body


def test_a_program_s_writes_and_commits(
    traced: Path, eeio: Eeio, instances: Callable[[], list[Path]]
) -> None:
    body = _journal(eeio, traced)
    metrics = body["metrics"]
    assert isinstance(metrics, dict)
    assert body["overruns"] == 0 and body["reason"] is None
    assert metrics["threads"] == 8
    assert metrics["commits"] >= 1
    # jbd2 counts for itself; a commit of the mount itself may fall into its count.
    assert isinstance(body["commits"], list)
    assert len(body["commits"]) <= int(str(body["jbd2_transactions"])) <= len(body["commits"]) + 1
    files = body["files"]
    assert isinstance(files, list) and len(files) == 8
    known = {commit["transaction"] for commit in body["commits"]} | {None}
    for file in files:
        assert [write["bytes"] for write in file["writes"]] == [4096] * 4
        (sync,) = file["syncs"]
        assert sync["commit"] in known and file["durable_s"] == sync["end_s"]
        assert file["writes"][-1]["end_s"] <= sync["start_s"]
    assert not instances()


def test_what_eeio_itself_synchronizes_is_not_the_program_s(
    traced: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It notes on disk what it starts; where that lies on the traced file system it was counted."""
    monkeypatch.setenv("XDG_STATE_HOME", str(traced / "state"))
    body = _journal(eeio, traced)
    assert isinstance(body["files"], list) and len(body["files"]) == 8
    metrics = body["metrics"]
    assert isinstance(metrics, dict) and metrics["threads"] == 8


def test_writes_from_a_vector_are_writes(traced: Path, eeio: Eeio) -> None:
    """Without them the file was taken for one that is created empty."""
    script = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY);"
        "os.writev(fd, [bytes(3000), bytes(1000)]); os.pwritev(fd, [bytes(500)], 4000);"
        "os.fsync(fd); os.close(fd)"
    )
    body: dict[str, Any] = _journal(eeio, traced, script=script, path=traced / "f")
    (file,) = body["files"]
    assert [write["bytes"] for write in file["writes"]] == [4000, 500]
    assert "model_rate_eq9_per_s" not in body["metrics"]


def test_what_went_elsewhere_before_a_dup_is_not_the_file_s(traced: Path, eeio: Eeio) -> None:
    """Standard output is a pipe at first; then the file is put in its place, as shells do."""
    script = (
        "import os, sys; os.write(1, bytes(1000));"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.dup2(fd, 1); os.close(fd);"
        "os.write(1, bytes(3000)); os.dup2(1, 1); os.write(1, bytes(96)); os.fsync(1)"
    )
    body: dict[str, Any] = _journal(eeio, traced, script=script, path=traced / "f")
    (file,) = body["files"]
    assert [write["bytes"] for write in file["writes"]] == [3000, 96]


def test_synchronous_writes_have_no_figures_and_say_so(traced: Path, eeio: Eeio) -> None:
    done = eeio(
        "record", "journal", "--directory", str(traced), "-o", str(traced.parent / "out"), "--",
        "dd", "if=/dev/zero", f"of={traced}/f", "bs=4k", "count=2", "oflag=sync",
    )  # fmt: skip
    assert "written with O_SYNC or O_DSYNC" in done.stdout


def test_delayed_commits_are_counted(traced: Path, eeio: Eeio) -> None:
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    body = _journal(eeio, traced, "--delayjc", "--window", "50")
    delays = body["delayjc"]
    assert isinstance(delays, dict)
    (device,) = delays["devices"]
    assert device["calls"] == device["finished"] == 8
    # All that arrive within 50 ms of each other are let go together.
    assert device["windows"] + device["resets"] + device["joins_at_maximum"] == 8


def test_without_a_journal_there_are_no_commits(tmp_path: Path, eeio: Eeio) -> None:
    for directory in _mounted(tmp_path, "mkfs.ext4", "-q", "-F", "-O", "^has_journal"):
        assert find_ext4(directory).journal_task is None
        assert read_transactions(find_ext4(directory)) is None
        body = _journal(eeio, directory)
        metrics = body["metrics"]
        assert isinstance(metrics, dict)
        assert (metrics["threads"], metrics["commits"], body["has_journal"]) == (8, 0, False)
        assert body["jbd2_transactions"] is None


def test_an_external_journal_is_traced_all_the_same(tmp_path: Path, eeio: Eeio) -> None:
    outside = sparse(tmp_path / "journal.img", 16 << 20)
    subprocess.run(["mke2fs", "-q", "-F", "-O", "journal_dev", str(outside)], check=True)
    with attached(outside) as node:
        for directory in _mounted(tmp_path, "mkfs.ext4", "-q", "-F", "-J", f"device={node}"):
            body = _journal(eeio, directory)
            metrics = body["metrics"]
            assert isinstance(metrics, dict)
            assert metrics["commits"] >= 1
            # jbd2 names the journal after the other device: no cross-check is claimed.
            assert body["jbd2_transactions"] is None


def test_another_file_system_is_rejected(eeio: Eeio) -> None:
    done = eeio("record", "journal", "--directory", "/dev/shm", "--", "true", code=2)
    assert "not on ext4 but on tmpfs" in done.stderr


def test_a_container_s_own_process_numbers_are_rejected(
    traced: Path, home: Path, instances: Callable[[], list[Path]]
) -> None:
    """The kernel traces by the host's: nothing was traced, without a word."""
    done = ran(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "eeio", "record",
         "journal", "--directory", str(traced), "-o", str(home / "out"), "--", "true"],
        code=1,
    )  # fmt: skip
    assert "--pid=host" in done.stderr
    assert not instances()


def test_a_full_disk_takes_the_trace_and_leaves_no_instance(
    traced: Path, eeio: Eeio, instances: Callable[[], list[Path]]
) -> None:
    small = traced.parent / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(small)], check=True)
    try:
        done = eeio(
            "record", "journal", "--directory", str(traced), "-o", str(small / "out"), "--",
            sys.executable, "-c", WRITERS, str(traced), code=None,
        )  # fmt: skip
        assert not list((small / "out").iterdir())
    finally:
        unmount(small)
    assert done.returncode == 1
    assert "journal.gz: the trace was not written completely" in done.stderr
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr
    assert not instances()


def test_a_static_program_is_rejected_for_delayjc(ext4: Path, eeio: Eeio) -> None:
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    program = ext4.parent / "static"
    built = ran(
        ["cc", "-static", "-o", str(program), "-x", "c", "-"],
        input="int main(void){return 0;}",
        code=None,
    )
    if built.returncode != 0:
        pytest.skip(f"no static C library: {built.stderr.strip()[-200:]}")
    done = eeio(
        "record", "journal", "--delayjc", "--directory", str(ext4), "-o", str(ext4.parent / "o"),
        "--", str(program), code=2,
    )  # fmt: skip
    assert "statically linked" in done.stderr
    # Behind a shell it cannot be known before.
    done = eeio(
        "record", "journal", "--delayjc", "--directory", str(ext4), "-o", str(ext4.parent / "o"),
        "--", "sh", "-c", str(program),
    )  # fmt: skip
    assert "libdelayjc.so delayed no call" in done.stdout


def test_the_program_in_this_folder_is_the_one_looked_at(
    ext4: Path, eeio: Eeio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./ls` is not the ls of PATH."""
    if delayjc.find_library() is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    monkeypatch.chdir(ext4.parent)
    executable(Path("ls"), "no program\n")
    done = eeio(
        "record", "journal", "--delayjc", "--directory", str(ext4), "-o", "o", "--", "./ls", code=2
    )
    assert "neither an ELF program nor a script" in done.stderr


@pytest.mark.parametrize("window", ["nan", "inf", "0", "-1"])
def test_a_window_that_is_no_time_is_rejected(window: str, ext4: Path, eeio: Eeio) -> None:
    done = eeio(
        "record", "journal", "--delayjc", f"--window={window}", "--directory", str(ext4),
        "-o", str(ext4.parent / "o"), "--", "true", code=2,
    )  # fmt: skip
    assert f"--window {window}" in done.stderr


def test_a_failing_program_leaves_no_instance(
    traced: Path, eeio: Eeio, instances: Callable[[], list[Path]]
) -> None:
    done = eeio(
        "record", "journal", "--directory", str(traced), "-o", str(traced.parent / "o"), "--",
        "false", code=1,
    )  # fmt: skip
    assert "no traced task called fsync" in done.stdout
    assert not instances()


def test_a_killed_trace_is_taken_away_by_restore(
    traced: Path, eeio: Eeio, home: Path, instances: Callable[[], list[Path]]
) -> None:
    """The child says when it is at work; its tracer is then killed without mercy."""
    fifo = home / "fifo"
    subprocess.run(["mkfifo", str(fifo)], check=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "eeio", "record", "journal", "--directory", str(traced), "-o",
         str(home / "out"), "--", "sh", "-c", f"echo up >{fifo}; exec sleep 60"],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert fifo.read_text() == "up\n"
        assert instances()
    finally:
        process.kill()
        process.wait()
        done = eeio("doctor", "restore")
    assert "end process group" in done.stdout + done.stderr
    assert not instances()


def test_where_tracefs_is_not_mounted_nobody_else_meets_it(traced: Path, home: Path) -> None:
    """In a mount namespace without it: traced on a mount of the program's own, gone after it."""
    arguments = [
        sys.executable, "-m", "eeio", "record", "journal", "--directory", str(traced), "-o",
        str(home / "out"), "--", "sh", "-c", f"echo x >{traced}/f; grep tracefs /proc/mounts",
    ]  # fmt: skip
    script = (
        "grep ' tracefs ' /proc/mounts | cut -d' ' -f2 | xargs -r umount; "
        "umount -q /sys/kernel/debug; \"$@\"; code=$?; grep ' tracefs ' /proc/mounts; exit $code"
    )
    done = ran(["unshare", "--mount", "sh", "-c", script, "sh", *arguments])
    (mount,) = (line for line in done.stdout.splitlines() if " tracefs " in line)
    assert mount.split()[1].startswith(f"{home}/state/eeio/tracefs-")
    assert list((home / "state/eeio").glob("tracefs-*")) == []


def test_counters_of_the_library_alone(ext4: Path, eeio: Eeio) -> None:
    library = delayjc.find_library()
    if library is None:
        pytest.skip("libdelayjc.so is not compiled (scripts/setup, with a C compiler)")
    state = ext4.parent / "state"
    subprocess.run(
        [sys.executable, "-c", WRITERS, str(ext4)], check=True, timeout=300,
        env={**os.environ, **delayjc.settings(state, window_us=20000)},
    )  # fmt: skip
    body = json.loads(eeio("record", "journal", "--counters", str(state)).stdout)
    assert (body["window_us"], body["total"]["calls"], body["total"]["finished"]) == (20000, 8, 8)
    done = eeio("record", "journal", "--counters", str(ext4.parent / "disk.img"), code=1)
    assert "state file" in done.stderr


def test_a_stored_trace_is_read_again(eeio: Eeio) -> None:
    data = Path(__file__).parents[1] / "data/journal/6.18/iozone-64-ext4/journal.gz"
    assert "ended inside the commit" in eeio("record", "journal", "--read", str(data)).stdout
