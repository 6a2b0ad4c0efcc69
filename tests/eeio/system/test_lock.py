"""The lock of a disk lies where everybody may write."""

import errno
import fcntl
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugin import InProcess

from eeio.errors import RejectedError
from eeio.machine.lock import FolderLock, drive_lock, lock_folders, machine_lock, waiting
from eeio.machine.owner import this_process


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "locks").mkdir(mode=0o1777)
    monkeypatch.setenv("EEIO_LOCKS", str(tmp_path / "locks"))
    return tmp_path / "locks" / "eeio-sdx.lock"


def test_one_at_a_time(path: Path) -> None:
    for _ in range(2):
        with drive_lock("sdx"):
            assert path.read_text() == f"{this_process(os.getpid()).name}\n"
            with pytest.raises(RejectedError, match=f"process {os.getpid()}"), drive_lock("sdx"):
                pass
    assert path.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("content", ["", "123\n", "4194304"])
def test_a_lock_that_another_left_is_taken(path: Path, content: str) -> None:
    path.write_text(content)
    with drive_lock("sdx"):
        assert path.read_text() == f"{this_process(os.getpid()).name}\n"


@pytest.mark.root
def test_a_lock_that_another_user_made_is_taken(path: Path) -> None:
    path.write_text("123\n")
    os.chown(path, 12345, 12345)
    with drive_lock("sdx"):
        assert path.stat().st_uid == 12345


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder", "text"])
def test_what_is_no_lock_is_left_as_it_is(path: Path, tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("123\n")  # as the file of any daemon's number
    before = victim.read_text()
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "new")
    elif kind == "hard link":
        path.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("precious")
    with pytest.raises(RejectedError, match=r"eeio-sdx\.lock"), drive_lock("sdx"):
        pass
    assert victim.read_text() == before
    assert not (tmp_path / "new").exists()
    if kind == "text":
        assert path.read_text() == "precious"


def test_campaigns_exclude_each_other_unless_all_share_the_machine(path: Path) -> None:
    with machine_lock(shared=False):
        for shared in (False, True):
            with pytest.raises(RejectedError, match="--share-machine"), machine_lock(shared=shared):
                pass
    with (
        machine_lock(shared=True),
        machine_lock(shared=True),
        pytest.raises(RejectedError, match="another campaign"),
        machine_lock(shared=False),
    ):
        pass


@pytest.mark.root
def test_root_and_a_user_who_may_not_write_to_run_lock_see_each_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EEIO_LOCKS")
    folders = lock_folders()
    assert Path("/tmp") in folders
    assert any(home in folder.parents for folder in folders)  # containers with one home
    may_write = os.access

    def access(where: Path, mode: int) -> bool:
        return where != Path("/run/lock") and may_write(where, mode)

    name = f"test-{os.getpid()}"
    with drive_lock(name):
        monkeypatch.setattr(os, "access", access)
        assert Path("/run/lock") not in lock_folders()
        with pytest.raises(RejectedError, match=name), drive_lock(name):
            pass
    for folder in folders:
        (folder / f"eeio-{name}.lock").unlink()


def test_a_folder_is_locked_for_one_process(tmp_path: Path) -> None:
    lock = tmp_path / ".eeio-lock"
    with FolderLock(tmp_path, "campaign c"):
        assert this_process(os.getpid()).name in lock.read_text()
        with (
            pytest.raises(RejectedError, match=f"campaign c is in use by process {os.getpid()} on"),
            FolderLock(tmp_path, "campaign c"),
        ):
            pass
    assert not lock.exists()


def test_the_lock_goes_with_its_folder(tmp_path: Path) -> None:
    """`eeio run` locks a campaign's folder before it has its name; the lock file stayed there, and
    without locks of the file system it kept `resume` away."""
    (tmp_path / "new").mkdir()
    with FolderLock(tmp_path / "new", "campaign c"):
        (tmp_path / "new").rename(tmp_path / "c")
        with (
            pytest.raises(RejectedError, match=f"campaign c is in use by process {os.getpid()} on"),
            FolderLock(tmp_path / "c", "campaign c"),
        ):
            pass
    assert list((tmp_path / "c").iterdir()) == []


@pytest.mark.parametrize("holder_is", ["dead", "alive", "elsewhere"])
def test_without_locks_the_process_in_the_file_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder_is: str
) -> None:
    """As on some network file systems."""

    def rejects(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", rejects)
    holder = this_process(os.getppid() if holder_is == "alive" else 4194304)
    name = replace(holder, boot_id="0" * 36 if holder_is == "elsewhere" else holder.boot_id).name
    (tmp_path / ".eeio-lock").write_text(f"{name} another-node\n")
    if holder_is == "dead":
        with FolderLock(tmp_path, "campaign c"):
            pass
        return
    with (
        pytest.raises(RejectedError, match="on another-node; if that has ended, delete"),
        FolderLock(tmp_path, "campaign c"),
    ):
        pass


def test_a_lock_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other campaign ends while this one looks for the third time."""
    other = drive_lock("sdx")
    other.__enter__()
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            other.__exit__()

    monkeypatch.setattr("eeio.machine.lock.time.sleep", sleep)
    with waiting(math.inf), drive_lock("sdx"):
        assert len(looks) == 3
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and f"process {os.getpid()}" in message


def test_a_campaign_that_never_ends_is_waited_for_no_longer_than_allowed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr("eeio.machine.lock.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("eeio.machine.lock.time.sleep", lambda s: now_s.append(now_s.pop() + s))
    with drive_lock("sdx"), waiting(90.0), pytest.raises(RejectedError, match="waited 90 s"):
        drive_lock("sdx").__enter__()
    assert now_s == [90.0]


def test_a_folder_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = FolderLock(tmp_path, "it")
    other.__enter__()
    monkeypatch.setattr("eeio.machine.lock.time.sleep", lambda _: other.__exit__())
    with waiting(math.inf), FolderLock(tmp_path, "it"):
        assert (tmp_path / ".eeio-lock").exists()


@pytest.mark.parametrize(
    ("typed", "why"), [("eeio-suite", "give --wait last"), ("xs", "xs"), ("-5m", "5m")]
)
def test_times_to_wait(in_process: InProcess, typed: str, why: str) -> None:
    assert why in in_process("resume", f"--wait={typed}", "x", code=2).err
