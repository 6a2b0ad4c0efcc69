"""What was changed is put back: by the program itself, or by `eeio doctor restore` after
SIGKILL."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mounts import unmount
from tests.plugin import Eeio, InProcess
from tests.processes import ran
from tests.simulators.tree import write_tree

from eeio.errors import EeioError
from eeio.machine.owner import Owner, start_ticks, this_process
from eeio.machine.undo import (
    Found,
    UndoEntry,
    UndoJournal,
    denied_to_root,
    group_alive,
    mark,
    orphans,
    run_command,
)

CHANGE_AND_WAIT = textwrap.dedent("""
    import pathlib, subprocess, sys, time
    from eeio.machine.owner import start_ticks
    from eeio.machine.undo import UndoEntry, UndoJournal
    journal = UndoJournal()
    setting, image = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    journal.add(UndoEntry("setting", str(setting), setting.read_text()))
    setting.write_text("changed")
    journal.add(UndoEntry("file", str(image)))
    image.write_text("x")
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
    journal.add(UndoEntry("process", str(child.pid), str(start_ticks(child.pid))))
    print(child.pid, flush=True)
    time.sleep(1000)
""")


def _killed_after_changes(home: Path) -> int:
    """A process that changed a setting, made a file and started a child, and was killed."""
    setting = home / "setting"
    setting.write_text("original")
    process = subprocess.Popen(
        [sys.executable, "-c", CHANGE_AND_WAIT, str(setting), str(home / "image")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return child


def test_restore_after_sigkill(home: Path, eeio: Eeio) -> None:
    child = _killed_after_changes(home)
    assert (home / "setting").read_text() == "changed"
    eeio("doctor", "restore")
    assert (home / "setting").read_text() == "original"
    assert not (home / "image").exists()
    assert not group_alive(child)
    assert eeio("doctor", "restore").stderr.strip() == "no settings to restore"


def test_the_next_run_restores_too(home: Path, eeio: Eeio) -> None:
    _killed_after_changes(home)
    eeio.run("dummy-suite", "--meter", "none", "--name", "next")
    assert (home / "setting").read_text() == "original"


def test_what_cannot_be_put_back_is_named_and_kept(home: Path, eeio: Eeio) -> None:
    _killed_after_changes(home)
    (home / "setting").unlink()
    (home / "setting").mkdir()
    assert str(home / "setting") in eeio("doctor", "restore", code=1).stderr
    (home / "setting").rmdir()
    eeio("doctor", "restore")
    assert (home / "setting").read_text() == "original"


def test_a_living_process_keeps_its_journal(home: Path) -> None:
    journal = UndoJournal()
    entry = UndoEntry("file", str(home / "mine"))
    journal.add(entry)
    with orphans() as found:
        assert found == Found()
    journal.forget(entry)
    assert not journal.path.exists()


def test_a_reused_process_number_is_left_alone(home: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        ticks = start_ticks(sleeper.pid)
        assert ticks is not None
        journal = UndoJournal(home / "journal.json")
        journal.add(UndoEntry("process", str(sleeper.pid), str(ticks - 1)))
        assert journal.undo_all() == []
        assert sleeper.poll() is None
        journal.add(UndoEntry("process", str(sleeper.pid), str(ticks)))
        assert journal.undo_all() == []
        assert sleeper.wait(10) == -signal.SIGTERM
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_loop_device_that_a_reboot_took_away_is_no_failure(home: Path) -> None:
    """The kernel makes the nodes beyond the first eight when they are asked for."""
    journal = UndoJournal(home / "journal.json")
    journal.add(UndoEntry("loop", "/dev/loop-of-another-boot", str(home / "image")))
    assert journal.undo_all() == []
    assert not journal.path.exists()


def test_a_full_disk_keeps_nothing_from_being_put_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = UndoJournal(home / "state" / "journal.json")
    setting, image = home / "setting", home / "image"
    setting.write_text("changed")
    image.write_text("x")
    journal.add(UndoEntry("setting", str(setting), "original"))
    journal.add(UndoEntry("file", str(image)))
    journal.add(UndoEntry("file", str(home / "another")))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert journal.undo_all() == []
    assert setting.read_text() == "original"
    assert not image.exists()
    assert not list((home / "state").iterdir())


@pytest.mark.root
def test_a_folder_that_could_not_be_made_on_a_read_only_file_system(tmp_path: Path) -> None:
    """A container's tracefs: the note of the folder stayed, and no `eeio doctor restore` got rid
    of it."""
    done = ran(["mount", "-t", "tmpfs", "-o", "ro", "none", str(tmp_path)], code=None)
    if done.returncode != 0:
        pytest.skip(f"no mount: {done.stderr.strip()}")
    try:
        with pytest.raises(OSError):
            (tmp_path / "instance").mkdir()
        journal = UndoJournal(tmp_path.parent / "undo.json")
        journal.add(UndoEntry("directory", str(tmp_path / "instance")))
        assert journal.undo_all() == []
    finally:
        unmount(tmp_path)


@pytest.fixture
def undo(home: Path) -> Path:
    folder = home / "state/eeio/undo"
    folder.mkdir(parents=True)
    return folder


def _dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def _dead(ticks: int = 1) -> Owner:
    """A process of this boot and container that has ended."""
    return replace(this_process(os.getpid()), pid=_dead_pid(), start_ticks=ticks)


def left_by(owner: Owner, undo: Path, *entries: UndoEntry) -> Path:
    """The journal of a process that was killed."""
    journal = UndoJournal(undo / f"{owner.name}.json")
    journal.owner = owner
    journal.add_all(entries)
    journal.release()
    return journal.path


def test_a_process_of_any_name_stops_nothing(home: Path) -> None:
    """Any user may run one, and /proc/PID/stat shows its name as it is."""
    program = home / os.fsdecode(b"\xff) Z 1")
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "1000"], start_new_session=True)
    try:
        assert start_ticks(process.pid) is not None
        assert group_alive(process.pid)
        assert not group_alive(_dead_pid())
        journal = UndoJournal(home / "journal.json")
        journal.add(UndoEntry("process", str(process.pid), str(start_ticks(process.pid))))
        assert journal.undo_all() == []
        assert process.wait(10) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait()


def test_whatever_goes_wrong_with_an_entry_the_others_are_put_back(home: Path) -> None:
    setting, file = home / "setting", home / "file"
    setting.write_text("changed")
    file.write_text("x")
    journal = UndoJournal(home / "journal.json")
    journal.add(UndoEntry("setting", str(setting), "original"))
    journal.add(UndoEntry("command", "/dev/x", "no JSON"))
    journal.add(UndoEntry("setting", str(home / "other"), "\u20ac"))
    journal.add(UndoEntry("file", str(file)))
    failures = journal.undo_all()
    assert len(failures) == 2 and "no JSON" in failures[1] and "other" in failures[0]
    assert setting.read_text() == "original" and not file.exists()
    assert [entry.subject for entry in journal.entries] == ["/dev/x", str(home / "other")]


BAD = {
    "1-x.json": "[]",
    "notes.txt": "mine",
    "000-1.json": "[]",
    "{dead}-1.json": "no JSON",
    "{dead}-2.json": '{"kind": "file", "subject": "/x"}',
    "{dead}-3.json": '[{"kind": "format", "subject": "/dev/vda"}]',
    "{dead}-4.json": '[{"kind": "file", "subject": "/x", "more": 1}]',
    "{dead}-5.json": '[{"kind": "file", "subject": ["/x"]}]',
    "{dead}-6.json": '[{"kind": "process", "subject": "1", "value": "1"}]',
    "{dead}-7.json": '[{"kind": "process", "subject": "-5", "value": "1"}]',
    "{dead}-8.json": "[" * 200_000,
    "{dead}-9.json": '[{"kind": "file", "subject": "/x\\u0000y"}]',
    "{dead}-10.json": "[1]",
    "{dead}-11.json": '[{"kind": ["file"], "subject": "/x"}]',
    "{dead}-12.json": '[{"kind": "process", "subject": "' + "9" * 5000 + '", "value": "1"}]',
}


@pytest.mark.parametrize(("name", "content"), BAD.items(), ids=BAD)
def test_what_is_no_journal_is_set_aside(
    home: Path, undo: Path, name: str, content: str, in_process: InProcess
) -> None:
    path = undo / (f"{_dead(int(name[7:-5])).name}.json" if name.startswith("{dead}") else name)
    path.write_text(content)
    setting = home / "setting"
    setting.write_text("changed")
    left_by(_dead(), undo, UndoEntry("setting", str(setting), "original"))
    output = in_process("doctor", "restore", code=1).err
    assert str(path) in output and f"{path.name}.bad" in output and output.count("\n") == 2
    # What stands beside it is put back all the same, and the next one finds nothing.
    assert setting.read_text() == "original"
    assert path.with_name(f"{path.name}.bad").read_text() == content
    assert in_process("doctor", "restore").err.strip() == "no settings to restore"


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "huge"])
def test_what_cannot_be_read_as_a_file_is_set_aside(undo: Path, kind: str) -> None:
    path = undo / f"{_dead().name}.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with orphans() as found:
        (message,) = found.bad
        assert found.journals == [] and "renamed to" in message
    assert [entry.name for entry in undo.iterdir()] == [f"{path.name}.bad"]


def test_run_and_resume_go_on_next_to_a_bad_file(home: Path, undo: Path, eeio: Eeio) -> None:
    (undo / "notes.json").write_text("[")
    arguments = ("--directory", str(home / "target"), "--meter", "none", "--name", "next")
    assert "notes.json.bad" in eeio("run", "dummy-suite", *arguments).stderr
    (undo / "notes.json").write_text("[")
    assert "renamed to" in eeio("resume", "next").stderr


def test_half_a_write_of_a_dead_process_is_cleared(undo: Path) -> None:
    mine = undo / f"{this_process(os.getpid()).name}.new"
    mine.write_text("half")
    (undo / f"{_dead().name}.new").write_text("half")
    with orphans() as found:
        assert found == Found()
    assert list(undo.iterdir()) == [mine]


def test_two_restores_put_everything_back_once(home: Path, undo: Path) -> None:
    """The second waits for the first, and then finds nothing."""
    (home / "image").write_text("x")
    left_by(_dead(), undo, UndoEntry("file", str(home / "image")))
    with orphans() as found:
        other = subprocess.Popen(
            [sys.executable, "-m", "eeio", "doctor", "restore"], stderr=subprocess.PIPE, text=True
        )
        lock = str(undo.with_suffix(".lock"))
        while other.poll() is None and not _has_open(other.pid, lock):
            pass
        assert [journal.undo_all() for journal in found.journals] == [[]]
        assert other.poll() is None
    _, message = other.communicate(timeout=300)
    assert (other.returncode, message.strip()) == (0, "no settings to restore")


def _has_open(pid: int, path: str) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(os.path.realpath(entry) == path for entry in folder.iterdir())
    except OSError:
        return False


def test_what_a_killed_process_had_started_is_ended_before_anything_is_put_back(
    home: Path, undo: Path
) -> None:
    """Killed between the start and the note of it, or in the middle of a `mount`."""
    dead = _dead()
    (name,) = mark()
    child = subprocess.Popen(["sleep", "1000"], env={**os.environ, name: dead.name})
    other = subprocess.Popen(["sleep", "1000"], env={**os.environ, name: f"{dead.name}2"})
    try:
        left_by(dead, undo, UndoEntry("file", str(home / "image")))
        with orphans() as found:
            assert child.poll() is not None or child.wait(10) == -signal.SIGTERM
            assert [journal.undo_all() for journal in found.journals] == [[]]
        assert other.poll() is None
    finally:
        for process in (child, other):
            process.kill()
            process.wait()


def test_a_link_in_the_place_of_a_folder_is_not_followed(home: Path) -> None:
    (home / "victim").mkdir()
    (home / "mine").symlink_to("victim")
    journal = UndoJournal(home / "journal.json")
    journal.add(UndoEntry("directory", str(home / "mine")))
    (failure,) = journal.undo_all()
    assert "refusing to follow a symbolic link" in failure
    journal.add(UndoEntry("file", str(home / "mine")))
    journal.undo(journal.entries[-1])
    assert (home / "victim").is_dir()


@pytest.mark.parametrize(
    ("message", "enforce", "user", "reported"),
    [
        # The words of util-linux's mount and losetup for EACCES and EPERM.
        ("mount: /mnt/x: permission denied.", "1", 0, True),
        (
            "losetup: /tmp/image: failed to set up loop device: Operation not permitted",
            "1",
            0,
            True,
        ),
        ("mount: /mnt/x: permission denied.", "0", 0, False),
        ("mount: /mnt/x: permission denied.", None, 0, False),
        ("mount: /mnt/x: must be superuser to use mount: permission denied", "1", 1000, False),
        ("mount: /mnt/x: wrong fs type", "1", 0, False),
    ],
)
def test_what_selinux_denies_to_root_is_reported_as_such(
    tmp_path: Path, message: str, enforce: str | None, user: int, reported: bool
) -> None:
    write_tree(tmp_path, {"proc/self/status": f"Uid:\t{user}\t{user}\t{user}\t{user}"})
    if enforce is not None:
        write_tree(tmp_path, {"sys/fs/selinux/enforce": enforce})
    assert ("ausearch" in denied_to_root(message, tmp_path)) == reported


def test_a_command_that_prints_without_end_fails_and_fills_no_memory() -> None:
    assert run_command(["sh", "-c", "echo one; echo two >&2"]) == "one\n"
    with pytest.raises(EeioError, match="not permitted"):
        run_command(["sh", "-c", "LC_ALL=C exec head -c 100000000 /dev/zero"])
