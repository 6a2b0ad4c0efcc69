"""A journal of what must be put back: settings, mounts, loop devices, files and processes.

An entry is on disk before the change is made, so that whatever ends the program - SIGKILL
included - `eeio restore` can put things back. One journal file belongs to one process; a journal
whose process is gone is an orphan. One process at a time deals with orphans. What stands in the
folder and is no journal is set aside, with its name ending in `.bad`.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from eeio.machine.root import HERE, user_id
from eeio.paths import state_root
from eeio.system.filesystem import mounts
from eeio_results.errors import EeioError

_COMMAND_TIMEOUT_S = 60
_KILL_GRACE_S = 5.0
# Until a mount whose server does not answer is given up.
_FORCE_S = 20
# A journal is some kilobytes; settings of 4096 processors are a megabyte.
_LARGEST_BYTES = 16 << 20
_NAME = re.compile(r"([1-9][0-9]{0,9})-([0-9]{1,20})\.(json|new)")
_MARK = "EEIO_STARTED_BY"
# As long as another restore may take: tools are ended, file systems unmounted.
_OTHER_RESTORE_S = 300


@dataclass(frozen=True)
class UndoEntry:
    """One thing to put back.

    `setting`: write `value` to the file `subject`. `command`: run `value` (JSON list) for device
    `subject`. `mount`: unmount it, with the option `value` if there is one. `loop`: detach the loop
    device. `file`, `directory`: delete it. `namespace`: take away the network namespace.
    `nvme`: set a power feature of the NVMe controller `subject` back to `value` (`state 0`).
    `process`: end the process group `subject` that began at `value` (clock ticks after boot).
    """

    kind: str
    subject: str
    value: str = ""

    @property
    def text(self) -> str:
        """For the user: what putting it back means."""
        return {
            "setting": f"set {self.subject} back to {self.value.strip()!r}",
            "command": f"run {self.value} for {self.subject}",
            "mount": f"unmount {self.subject}",
            "loop": f"detach {self.subject}",
            "file": f"delete {self.subject}",
            "directory": f"remove the folder {self.subject}",
            "process": f"end process group {self.subject}",
            "namespace": f"take away the network namespace {self.subject}",
            "nvme": f"set the NVMe drive {self.subject} back to {self.value}",
        }[self.kind]


class UndoJournal:
    """What this process must put back, newest last."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_root() / "undo" / f"{os.getpid()}-{start_ticks(os.getpid())}.json"
        self._entries: list[UndoEntry] = _read(self.path) if os.path.lexists(self.path) else []

    @property
    def entries(self) -> tuple[UndoEntry, ...]:
        return tuple(self._entries)

    def add(self, entry: UndoEntry) -> None:
        """Notes `entry` on disk; the caller then makes the change."""
        self.add_all([entry])

    def add_all(self, entries: Iterable[UndoEntry]) -> None:
        """Notes several with one write to disk; the caller then makes the changes.

        An undo may come before any of them: it puts back what was not changed too.
        """
        new = list(entries)
        if new:
            self._entries += new
            self._write()

    def forget(self, entry: UndoEntry) -> None:
        """The thing is gone by itself (a process that ended)."""
        self._forget_all([entry])

    def _forget_all(self, entries: Iterable[UndoEntry]) -> None:
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

    def undo(self, entry: UndoEntry) -> None:
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

    def _undo_some(self, entries: list[UndoEntry], stuck: set[str]) -> list[str]:
        failures, done = [], []
        try:
            for entry in entries:
                if entry.subject in stuck:
                    continue  # else the next try would end with the newer entry's value
                try:
                    _PUT_BACK[entry.kind](entry)
                    done.append(entry)
                except Exception as error:
                    # Whatever it is, it keeps nothing else from being put back.
                    failures.append(f"{entry.text}: {error or type(error).__name__}")
                    stuck.add(entry.subject)
        finally:
            if done:
                self._forget_all(done)
        return failures

    @contextlib.contextmanager
    def held(self, entry: UndoEntry) -> Iterator[None]:
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


@contextlib.contextmanager
def orphans() -> Iterator[tuple[list[UndoJournal], list[str]]]:
    """Journals whose process is gone, and what was set aside since it is no journal, a sentence
    each. They are this process's alone until the block ends; EeioError when another process has
    not put them back within some minutes."""
    folder = state_root() / "undo"
    if not folder.is_dir():
        yield [], []
        return
    # Beside the folder, and it stays: network file systems lock no folders.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.with_suffix(".lock"), flags, 0o600)
    try:
        _lock(descriptor, folder)
        yield _orphans_in(folder)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    deadline_s = time.monotonic() + _OTHER_RESTORE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline_s:
                raise EeioError(
                    f"{folder}: another restore is at work; wait for its end"
                ) from error
            time.sleep(0.05)
        else:
            return


def _orphans_in(folder: Path) -> tuple[list[UndoJournal], list[str]]:
    found, aside = [], []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".bad":
            continue
        name = _NAME.fullmatch(path.name)
        if name is not None:
            pid, ticks = int(name[1]), int(name[2])
            if start_ticks(pid) == ticks:
                continue
            if name[3] == "new":
                # Half of a write; what it was to replace still stands beside it.
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
        try:
            if name is None:
                raise EeioError(f"{path}: is no journal of eeio")
            _end_children_of(path.stem)
            found.append(UndoJournal(path))
        except FileNotFoundError:
            continue  # its process was just about to end by itself
        except EeioError as error:
            aside.append(_set_aside(path, error))
    return found, aside


def mark() -> dict[str, str]:
    """For the environment of what this process starts, so that it can be found when this process
    was killed before it could note it, or in the middle of a `mount`."""
    return {_MARK: f"{os.getpid()}-{start_ticks(os.getpid())}"}


def _end_children_of(name: str) -> None:
    """Ends what the dead process of that journal had started, so that no mount is made after the
    unmounting."""
    wanted = f"{_MARK}={name}".encode()
    deadline_s = time.monotonic() + 2 * _KILL_GRACE_S
    for signum in (signal.SIGTERM, signal.SIGKILL):
        sent: set[int] = set()
        grace_s = time.monotonic() + _KILL_GRACE_S
        while found := _marked(wanted):
            for pid in found - sent:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signum)
            sent |= found
            if time.monotonic() > (grace_s if signum == signal.SIGTERM else deadline_s):
                break
            time.sleep(0.02)


def _marked(wanted: bytes) -> set[int]:
    """Living processes with that in their environment."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found


def _set_aside(path: Path, error: EeioError) -> str:
    bad = path.with_name(f"{path.name}.bad")
    try:
        path.rename(bad)
    except OSError as refused:
        return f"{error}; it could not be set aside ({refused.strerror}): delete it"
    return f"{error}; set aside as {bad.name}: look what it names, put it back, delete it"


def start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks after boot: with the PID it names a process for good.

    None when there is no such process, or it is a zombie."""
    fields = _stat_fields(Path(f"/proc/{pid}"))
    return None if fields is None or fields[0] == b"Z" else int(fields[19])


def _stat_fields(process: Path) -> list[bytes] | None:
    """State, parent, group and what follows of /proc/PID/stat; None when the process is gone. Its
    name, which may be any bytes, stands before them in brackets."""
    try:
        text = (process / "stat").read_bytes()
    except OSError:
        return None
    return text.rpartition(b")")[2].split() or None


def _read(path: Path) -> list[UndoEntry]:
    """The entries of a journal; EeioError where it is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_BYTES:
                raise ValueError("no plain file, or too large")
            body = json.loads(file.read(_LARGEST_BYTES))
        entries = [UndoEntry(**item) for item in body]
        for entry in entries:
            _check(entry)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, RecursionError) as error:
        words = str(error) or type(error).__name__
        raise EeioError(f"{path}: cannot be read as a journal ({words[:200]})") from error
    return entries


def _check(entry: UndoEntry) -> None:
    """ValueError for what no journal of ours holds: acting on it might harm."""
    if not isinstance(entry.subject, str) or not isinstance(entry.value, str):
        raise ValueError("an entry that is no text")
    if entry.kind not in _PUT_BACK:
        raise ValueError(f"an entry of the unknown kind {entry.kind!r:.40}")
    if not entry.subject or "\0" in entry.subject:
        raise ValueError(f"{entry.kind} of no name")
    # To the kernel 0 and 1 are not a group but many.
    if entry.kind == "process" and (int(entry.subject) < 2 or int(entry.value) < 0):
        raise ValueError(f"no process: {entry.subject:.40}")


def run_command(command: list[str], timeout_s: float = _COMMAND_TIMEOUT_S) -> str:
    """Output of a small system command; EeioError with its own words when it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, **mark()},
            text=True,
            errors="backslashreplace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise EeioError(f"{command[0]}: not installed; `scripts/setup` installs it") from error
    except subprocess.TimeoutExpired as error:
        raise EeioError(f"{' '.join(command)}: no end after {timeout_s:g} s") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise EeioError(f"{' '.join(command)}: {words}{denied_to_root(words)}")
    return done.stdout


def denied_to_root(words: str, root: Path = HERE) -> str:
    """What to add to a program's words where root was denied something: that SELinux does that,
    which `run as root` does not mend. Nothing in any other case."""
    if not re.search(r"permission denied|operation not permitted", words, re.IGNORECASE):
        return ""
    try:
        enforcing = (root / "sys/fs/selinux/enforce").read_text(encoding="ascii").strip() == "1"
    except OSError:
        return ""
    if not enforcing or user_id(root) != 0:
        return ""
    return "; SELinux is enforcing here, `ausearch -m avc -ts recent` shows what it denied"


def _put_back_setting(entry: UndoEntry) -> None:
    Path(entry.subject).write_text(entry.value, encoding="ascii")


def _put_back_command(entry: UndoEntry) -> None:
    run_command(json.loads(entry.value))


def _put_back_nvme(entry: UndoEntry) -> None:
    # Few machines have one, and what it takes is of the meters.
    from eeio.system import nvme_power

    nvme_power.put_back(entry.subject, entry.value)


def _remove_namespace(entry: UndoEntry) -> None:
    from eeio.system import nfs

    nfs.remove_namespace(entry.subject)


def _unmount(entry: UndoEntry) -> None:
    if entry.value not in ("", "--force"):
        raise EeioError(f"no option of umount: {entry.value[:40]!r}")
    if not entry.value:
        if os.path.ismount(entry.subject):
            run_command(["umount", entry.subject])
        return
    command = ["umount", "--no-canonicalize", entry.value, entry.subject]
    try:
        if _is_mounted(Path(entry.subject)):
            run_command(command, _FORCE_S)
    except EeioError:
        # Its server is gone, and what is not written yet waits for it; the mount may be, too.
        if _is_mounted(Path(entry.subject)):
            run_command([*command, "--lazy"])


def _is_mounted(folder: Path) -> bool:
    """Not asked of the folder itself, which may wait for its server."""
    where = folder.parent.resolve() / folder.name
    return any(mount.mount_point == where for mount in mounts())


def _detach(entry: UndoEntry) -> None:
    # Asked of the kernel itself, for losetup writes a name's odd bytes as escapes. Nothing is there
    # where nothing is attached, and after a reboot.
    backing = Path("/sys/class/block") / Path(entry.subject).name / "loop/backing_file"
    try:
        attached = os.fsdecode(backing.read_bytes().removesuffix(b"\n"))
    except FileNotFoundError:
        return
    # A loop device may have been given to another image since: only ours is detached, also when
    # somebody deleted the image.
    if attached in (entry.value, f"{entry.value} (deleted)"):
        run_command(["losetup", "--detach", entry.subject])


def _delete(entry: UndoEntry) -> None:
    Path(entry.subject).unlink(missing_ok=True)


def _remove_directory(entry: UndoEntry) -> None:
    folder = Path(entry.subject)
    if not os.path.lexists(folder):
        return  # asked first: a read-only file system says EROFS of a folder that was never made
    if folder.is_symlink():
        raise EeioError("a link has its place; it is not followed: look what made it")
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def _end_process_group(entry: UndoEntry) -> None:
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
        fields = _stat_fields(folder)
        if fields is not None and int(fields[2]) == group and fields[0] != b"Z":
            return True
    return False


_PUT_BACK: dict[str, Callable[[UndoEntry], None]] = {
    "setting": _put_back_setting,
    "command": _put_back_command,
    "mount": _unmount,
    "loop": _detach,
    "file": _delete,
    "directory": _remove_directory,
    "process": _end_process_group,
    "namespace": _remove_namespace,
    "nvme": _put_back_nvme,
}
