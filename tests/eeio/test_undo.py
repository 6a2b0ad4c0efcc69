"""What was changed is put back: by the program itself, or by `eeio restore` after SIGKILL."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.conftest import Eeio

from eeio.target.undo import Entry, UndoJournal, group_alive, orphans, start_ticks

CHANGE_AND_WAIT = textwrap.dedent("""
    import pathlib, subprocess, sys, time
    from eeio.target.undo import Entry, UndoJournal, start_ticks
    journal = UndoJournal()
    setting, image = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    journal.add(Entry("setting", str(setting), setting.read_text()))
    setting.write_text("changed")
    journal.add(Entry("file", str(image)))
    image.write_text("x")
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
    journal.add(Entry("process", str(child.pid), str(start_ticks(child.pid))))
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
    done = eeio("restore")
    assert done.returncode == 0, done.stderr
    assert (home / "setting").read_text() == "original"
    assert not (home / "image").exists()
    assert not group_alive(child)
    assert eeio("restore").stderr.strip() == "nothing to put back"


def test_the_next_run_restores_too(home: Path, eeio: Eeio) -> None:
    _killed_after_changes(home)
    done = eeio("run", "dummy-suite", "--directory", str(home / "target"), "--meter", "none",
                "--name", "next")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (home / "setting").read_text() == "original"


def test_what_cannot_be_put_back_is_named_and_kept(home: Path, eeio: Eeio) -> None:
    _killed_after_changes(home)
    (home / "setting").unlink()
    (home / "setting").mkdir()
    done = eeio("restore")
    assert done.returncode == 1
    assert str(home / "setting") in done.stderr
    (home / "setting").rmdir()
    assert eeio("restore").returncode == 0
    assert (home / "setting").read_text() == "original"


def test_a_living_process_keeps_its_journal(home: Path) -> None:
    journal = UndoJournal()
    entry = Entry("file", str(home / "mine"))
    journal.add(entry)
    with orphans() as found:
        assert found == ([], [])
    journal.forget(entry)
    assert not journal.path.exists()


def test_a_reused_process_number_is_left_alone(home: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        ticks = start_ticks(sleeper.pid)
        assert ticks is not None
        journal = UndoJournal(home / "journal.json")
        journal.add(Entry("process", str(sleeper.pid), str(ticks - 1)))
        assert journal.undo_all() == []
        assert sleeper.poll() is None
        journal.add(Entry("process", str(sleeper.pid), str(ticks)))
        assert journal.undo_all() == []
        assert sleeper.wait(10) == -signal.SIGTERM
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_loop_device_that_a_reboot_took_away_is_no_failure(home: Path) -> None:
    """The kernel makes the nodes beyond the first eight when they are asked for."""
    journal = UndoJournal(home / "journal.json")
    journal.add(Entry("loop", "/dev/loop-of-another-boot", str(home / "image")))
    assert journal.undo_all() == []
    assert not journal.path.exists()


def test_a_full_disk_keeps_nothing_from_being_put_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = UndoJournal(home / "state" / "journal.json")
    setting, image = home / "setting", home / "image"
    setting.write_text("changed")
    image.write_text("x")
    journal.add(Entry("setting", str(setting), "original"))
    journal.add(Entry("file", str(image)))
    journal.add(Entry("file", str(home / "another")))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert journal.undo_all() == []
    assert setting.read_text() == "original"
    assert not image.exists()
    assert not list((home / "state").iterdir())


@pytest.mark.root
def test_a_folder_that_could_not_be_made_on_a_read_only_file_system(tmp_path: Path) -> None:
    """A container's tracefs: the note of the folder stayed, and no `eeio restore` got rid of it."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "none", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"no mount: {done.stderr.strip()}")
    try:
        with pytest.raises(OSError):
            (tmp_path / "instance").mkdir()
        journal = UndoJournal(tmp_path.parent / "undo.json")
        journal.add(Entry("directory", str(tmp_path / "instance")))
        assert journal.undo_all() == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
