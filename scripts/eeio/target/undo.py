"""A journal of what must be put back: settings, mounts, loop devices, files and processes.

An entry is on disk before the change is made, so that whatever ends the program - SIGKILL
included - `eeio restore` can put things back. One journal file belongs to one process; a journal
whose process is gone is an orphan.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from eeio.paths import state_root
from eeio_results.errors import EeioError

_COMMAND_TIMEOUT_S = 60
_KILL_GRACE_S = 5.0


@dataclass(frozen=True)
class Entry:
    """One thing to put back.

    `setting`: write `value` to the file `subject`. `command`: run `value` (JSON list) for device
    `subject`. `mount`: unmount it. `loop`: detach the loop device. `file`, `directory`: delete it.
    `process`: end the process group `subject` that began at `value` (clock ticks after boot).
    """

    kind: str
    subject: str
    value: str = ""

    @property
    def words(self) -> str:
        """For the user: what putting it back means."""
        return {
            "setting": f"set {self.subject} back to {self.value.strip()!r}",
            "command": f"run {self.value} for {self.subject}",
            "mount": f"unmount {self.subject}",
            "loop": f"detach {self.subject}",
            "file": f"delete {self.subject}",
            "directory": f"remove the folder {self.subject}",
            "process": f"end process group {self.subject}",
        }[self.kind]


class UndoJournal:
    """What this process must put back, newest last."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_root() / "undo" / f"{os.getpid()}-{start_ticks(os.getpid())}.json"
        self._entries: list[Entry] = _read(self.path) if self.path.exists() else []

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    def add(self, entry: Entry) -> None:
        """Notes `entry` on disk; the caller then makes the change."""
        self.add_all([entry])

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Notes several with one write to disk; the caller then makes the changes.

        An undo may come before any of them: it puts back what was not changed too.
        """
        new = list(entries)
        if new:
            self._entries += new
            self._write()

    def forget(self, entry: Entry) -> None:
        """The thing is gone by itself (a process that ended)."""
        self._forget_all([entry])

    def _forget_all(self, entries: Iterable[Entry]) -> None:
        """The newest where some are the same: an older one is still to come."""
        for entry in entries:
            newest = len(self._entries) - 1 - self._entries[::-1].index(entry)
            del self._entries[newest]
        try:
            self._write()
        except OSError:
            # A full disk keeps nothing from being put back. What then stands in the file longer
            # than it need be may be put back twice.
            self._new.unlink(missing_ok=True)

    def undo(self, entry: Entry) -> None:
        """Puts one thing back."""
        _PUT_BACK[entry.kind](entry)
        self.forget(entry)

    def undo_all(self) -> list[str]:
        """Puts everything back, newest first; returns what could not be, and keeps that."""
        failures: list[str] = []
        stuck: set[str] = set()
        for are_settings, group in groupby(
            reversed(self.entries), key=lambda entry: entry.kind == "setting"
        ):
            entries = list(group)
            # Settings may be put back twice, so one write to disk after all of them will do:
            # whatever comes in between, they stand in the journal until then.
            for some in [entries] if are_settings else [[entry] for entry in entries]:
                failures += self._undo_some(some, stuck)
        if not self._entries:
            self._write()  # once more: a signal may have come just before the file was deleted
        return failures

    def _undo_some(self, entries: list[Entry], stuck: set[str]) -> list[str]:
        failures, done = [], []
        try:
            for entry in entries:
                if entry.subject in stuck:
                    continue  # else the next try would end with the newer entry's value
                try:
                    _PUT_BACK[entry.kind](entry)
                    done.append(entry)
                except (OSError, EeioError, subprocess.SubprocessError) as error:
                    failures.append(f"{entry.words}: {error}")
                    stuck.add(entry.subject)
        finally:
            if done:
                self._forget_all(done)
        return failures

    @contextlib.contextmanager
    def held(self, entry: Entry) -> Iterator[None]:
        """The entry stands while the block runs, and is undone after it."""
        self.add(entry)
        try:
            yield
        finally:
            self.undo(entry)

    def _write(self) -> None:
        if not self._entries:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._new.open("w", encoding="utf-8") as file:
            json.dump([asdict(entry) for entry in self._entries], file)
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path)

    @property
    def _new(self) -> Path:
        return self.path.with_suffix(".new")


def orphans() -> list[UndoJournal]:
    """Journals whose process is gone."""
    found = []
    for path in sorted((state_root() / "undo").glob("*.json")):
        pid, _, ticks = path.stem.partition("-")
        if start_ticks(int(pid)) != int(ticks):
            found.append(UndoJournal(path))
    return found


def start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks after boot: with the PID it names a process for good.

    None when there is no such process, or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _read(path: Path) -> list[Entry]:
    try:
        body: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return [Entry(**item) for item in body]
    except (OSError, ValueError, TypeError) as error:
        raise EeioError(
            f"{path}: cannot be read ({error}); look what it names, put it back, delete the file"
        ) from error


def run_command(command: list[str]) -> str:
    """Output of a small system command; EeioError with its own words when it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise EeioError(f"{command[0]}: not installed; `scripts/setup` installs it") from error
    except subprocess.TimeoutExpired as error:
        raise EeioError(f"{' '.join(command)}: no end after {_COMMAND_TIMEOUT_S} s") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise EeioError(f"{' '.join(command)}: {words}")
    return done.stdout


def _put_back_setting(entry: Entry) -> None:
    Path(entry.subject).write_text(entry.value, encoding="ascii")


def _put_back_command(entry: Entry) -> None:
    run_command(json.loads(entry.value))


def _unmount(entry: Entry) -> None:
    if os.path.ismount(entry.subject):
        run_command(["umount", entry.subject])


def _detach(entry: Entry) -> None:
    # After a reboot the node itself may be gone: the kernel makes those beyond the first on demand.
    if not Path(entry.subject).exists():
        return
    # A loop device may have been given to another image since: only ours is detached.
    attached = run_command(["losetup", "--noheadings", "--output", "BACK-FILE", entry.subject])
    if attached.strip() == entry.value:
        run_command(["losetup", "--detach", entry.subject])


def _delete(entry: Entry) -> None:
    Path(entry.subject).unlink(missing_ok=True)


def _remove_directory(entry: Entry) -> None:
    folder = Path(entry.subject)
    if not folder.exists():
        return  # asked first: a read-only file system says EROFS of a folder that was never made
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def _end_process_group(entry: Entry) -> None:
    leader = int(entry.subject)
    if start_ticks(leader) not in (None, int(entry.value)):
        return  # the number was given to another process since
    end_group(leader)


def end_group(group: int) -> None:
    """Ends a process group: SIGTERM, then SIGKILL to what is left of it."""
    deadline = time.monotonic() + _KILL_GRACE_S
    for signum in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, signum)
            while signum == signal.SIGTERM and time.monotonic() < deadline:
                if not group_alive(group):
                    return
                time.sleep(0.02)
        except ProcessLookupError:
            return


def group_alive(group: int) -> bool:
    """Whether a process of the group still runs; zombies that wait for their parent do not."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


_PUT_BACK: dict[str, Callable[[Entry], None]] = {
    "setting": _put_back_setting,
    "command": _put_back_command,
    "mount": _unmount,
    "loop": _detach,
    "file": _delete,
    "directory": _remove_directory,
    "process": _end_process_group,
}
