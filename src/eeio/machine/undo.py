"""A journal of changes to restore: settings, mounts, loop devices, files and processes.

An entry is on disk before the change is made, so that `eeio doctor restore` can undo the change
after any end of the program, also SIGKILL. One journal belongs to one process, which locks it while
it runs (docs/decisions/0036-who-may-restore.md). A file in the folder that is not a journal is
renamed, with `.bad` at the end of its name.
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
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import IO

from eeio.errors import EeioError, RejectedError
from eeio.files.trust import hand_over, make_folder, risk_of_folder, why_untrusted
from eeio.machine import owner
from eeio.machine.as_data.root import HERE, user_id
from eeio.machine.filesystem import mounts, named_device
from eeio.machine.lock import lock_file
from eeio.machine.owner import Owner, Place, start_ticks, stat_fields, this_process
from eeio.paths import state_root

_COMMAND_TIMEOUT_S = 60
_KILL_GRACE_S = 5.0
# Time limit for a mount with a server that does not answer.
_FORCE_S = 20
# A journal is some kilobytes; settings of 4096 processors are a megabyte.
_LARGEST_BYTES = 16 << 20
_MOST_PRINTED_BYTES = 1 << 20
_VERSION = 2
_NAME = re.compile(rf"({owner.NAME.pattern})\.(json|new|lock)")
# Journals of eeio 0.1: their names and contents do not say on which machine they were written.
_OLD_NAME = re.compile(r"[1-9][0-9]{0,9}-[0-9]{1,20}\.json")
_MARK = "EEIO_STARTED_BY"
# As long as another restore may take: tools are ended, file systems unmounted.
_OTHER_RESTORE_S = 300
# Kinds that ended with the kernel of that boot, or have another number or name now.
_OF_ONE_BOOT = frozenset(
    {"process", "mount", "loop", "mapping", "namespace", "setting", "controllers"}
)


@dataclass(frozen=True)
class UndoEntry:
    """One thing to restore.

    `setting`: write `value` to the file `subject`. `command`: run `value` (JSON list) for device
    `subject`. `mount`: unmount it if `drive` is mounted there, with the option `value` if there is
    one. `loop`: detach the loop device. `mapping`: close the dm-crypt device of that name. `file`,
    `directory`: delete it.
    `namespace`: remove the network namespace.
    `controllers`: take `value` (`io memory`) out of the cgroup file `subject`, unless groups of
    other processes of eeio need them.
    `nvme`: set a power feature of the NVMe controller `subject` back to `value` (`state 0`).
    `process`: end the process group `subject` that began at `value` (clock ticks after boot).
    """

    kind: str
    subject: str
    value: str = ""
    drive: str = ""
    """Node of the drive that the entry is about, if any, such as /dev/sda, ..."""
    identity: str = ""
    """... and which drive that was: another one may have the name when it is restored."""

    @property
    def text(self) -> str:
        """For the user: the effect of restoring it."""
        return {
            "setting": f"set {self.subject} back to {self.value.strip()!r}",
            "command": f"run {self.value} for {self.subject}",
            "mount": f"unmount {self.subject}",
            "loop": f"detach {self.subject}",
            "mapping": f"close /dev/mapper/{self.subject}",
            "file": f"delete {self.subject}",
            "directory": f"remove the folder {self.subject}",
            "process": f"end process group {self.subject}",
            "namespace": f"remove the network namespace {self.subject}",
            "controllers": f"disable {self.value} in {self.subject}",
            "nvme": f"set the NVMe drive {self.subject} back to {self.value}",
        }[self.kind]

    def of_drive(self, drive: Path) -> "UndoEntry":
        """The same, restored only on this drive (a node such as /dev/sda or /dev/nvme0)."""
        return replace(self, drive=str(drive), identity=_identity(drive))


class UndoJournal:
    """The changes that this process must restore, newest last. With `path`, the journal of another
    process."""

    def __init__(self, path: Path | None = None) -> None:
        self.owner = this_process(os.getpid())
        self.path = path or state_root() / "undo" / f"{self.owner.name}.json"
        self._entries: list[UndoEntry] = []
        self._lock: int | None = None
        if os.path.lexists(self.path):
            self.owner, self._entries = _read(self.path)

    @property
    def entries(self) -> tuple[UndoEntry, ...]:
        return tuple(self._entries)

    def add(self, entry: UndoEntry) -> None:
        """Notes `entry` on disk; the caller then makes the change."""
        self.add_all([entry])

    def add_all(self, entries: Iterable[UndoEntry]) -> None:
        """Notes several with one write to disk; the caller then makes the changes.

        An undo may come before any change: it also restores unchanged things.
        """
        new = list(entries)
        if new:
            self._entries += new
            self._write()

    def forget(self, entry: UndoEntry) -> None:
        """The thing no longer exists (a process that ended)."""
        self._forget_all([entry])

    def _forget_all(self, entries: Iterable[UndoEntry]) -> None:
        """The newest where some are the same: an older one is still to come."""
        for entry in entries:
            newest = len(self._entries) - 1 - self._entries[::-1].index(entry)
            del self._entries[newest]
        try:
            self._write()
        except OSError:
            # A full disk must not stop the restoring. An entry that stays in the file too long may
            # be restored again.
            self._new.unlink(missing_ok=True)

    def undo(self, entry: UndoEntry) -> None:
        """Restores one thing."""
        self._restore(entry)
        self.forget(entry)

    def undo_all(self) -> list[str]:
        """Restores everything, newest first; returns failed entries, and keeps them."""
        failures: list[str] = []
        stuck: set[str] = set()
        for are_settings, group in groupby(
            reversed(self.entries), key=lambda entry: entry.kind == "setting"
        ):
            entries = list(group)
            # Restoring settings again is harmless, so one write to disk after all of them is
            # enough: they are in the journal until then.
            for some in [entries] if are_settings else [[entry] for entry in entries]:
                failures += self._undo_some(some, stuck)
        if not self._entries:
            self._write()  # once more: a signal may have come just before the file was deleted
        return failures

    def drop(self, place: Place) -> None:
        """Drops entries that ended when the machine was rebooted, and process numbers of another
        container."""
        gone = {"here": frozenset[str](), "earlier boot": _OF_ONE_BOOT}.get(place)
        if gone is None:
            same_boot = self.owner.boot_id == this_process(os.getpid()).boot_id
            gone = _OF_ONE_BOOT
            if same_boot:
                gone = frozenset({"process"})
        if gone:
            self._forget_all([entry for entry in self._entries if entry.kind in gone])

    def _undo_some(self, entries: list[UndoEntry], stuck: set[str]) -> list[str]:
        failures, done = [], []
        try:
            for entry in entries:
                if entry.subject in stuck:
                    continue  # else the next try would end with the newer entry's value
                try:
                    self._restore(entry)
                    done.append(entry)
                except Exception as error:
                    # Whatever it is, everything else is restored all the same.
                    failures.append(f"{entry.text}: {error or type(error).__name__}")
                    stuck.add(entry.subject)
        finally:
            if done:
                self._forget_all(done)
        return failures

    def _restore(self, entry: UndoEntry) -> None:
        if entry.identity and (now := _identity(Path(entry.drive))) != entry.identity:
            raise EeioError(
                f"{entry.drive} was the drive {entry.identity!r} and is {now or 'absent'!r} "
                "now: no value was written to it"
            )
        if entry.kind == "process":
            _end_process_group(entry, self.owner.name)
        else:
            _RESTORE[entry.kind](entry)

    @contextlib.contextmanager
    def recorded(self, entry: UndoEntry) -> Iterator[None]:
        """The entry is in the journal while the block runs, and is undone after it."""
        self.add(entry)
        try:
            yield
        finally:
            self.undo(entry)

    def _write(self) -> None:
        if not self._entries:
            self.path.unlink(missing_ok=True)
            self._new.unlink(missing_ok=True)  # of a process that was killed while it wrote
            self.release()
            return
        first = self._lock is None
        if first:
            make_folder(self.path.parent)
            self._lock = lock_file(_lock_path(self.path))
        body = {
            "schema_version": _VERSION,
            "owner": asdict(self.owner),
            "entries": list(map(asdict, self._entries)),
        }
        with self._new.open("w", encoding="utf-8") as file:
            json.dump(body, file)
            file.flush()
            os.fsync(file.fileno())
        self._new.replace(self.path)
        if first:
            _sync_folder(self.path.parent)

    def hold(self) -> bool:
        """Locks the journal of another process; False if that process is alive and has locked
        it."""
        self._lock = self._lock or lock_file(_lock_path(self.path))
        return self._lock is not None

    def release(self) -> None:
        """Releases the lock; deletes the journal too if it is empty."""
        if self._lock is None:
            return
        if not self._entries:
            _lock_path(self.path).unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None

    @property
    def _new(self) -> Path:
        return self.path.with_suffix(".new")


def _lock_path(journal: Path) -> Path:
    return journal.with_suffix(".lock")


def _identity(drive: Path) -> str:
    """Identity of a drive, to distinguish it from another with its name later; empty if absent or
    unknown."""
    name = drive.resolve().name
    device = named_device(name)
    if device is not None:
        return device.identity
    # An NVMe controller (/dev/nvme0) is not a block device.
    folder = Path("/sys/class/nvme") / name
    texts = []
    for attribute in ("subsysnqn", "serial", "model"):
        with contextlib.suppress(OSError):
            texts.append((folder / attribute).read_text(errors="backslashreplace").strip())
    return ", ".join(texts)


@dataclass(frozen=True)
class Found:
    """The folder of journals: those to restore, and one sentence for each other file."""

    journals: list[UndoJournal] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    """Files that are not journals."""
    elsewhere: list[str] = field(default_factory=list)
    """Journals of processes that may be alive in another container or on another machine, or of
    root."""


@contextlib.contextmanager
def orphans(chosen: Path | None = None) -> Iterator[Found]:
    """Journals whose process was killed; `chosen` is one to take although it is unknown whether its
    process is alive. They belong to this process until the block ends. Raises EeioError if another
    process does not finish restoring within some minutes, or `chosen` cannot be taken."""
    folder = state_root() / "undo"
    if chosen is None and not folder.is_dir():
        yield Found()
        return
    if (reason := why_untrusted(folder)) is not None:
        raise EeioError(
            f"{folder}: not used as root: {reason}. "
            "Use sudo, or name another folder (XDG_STATE_HOME)"
        )
    # Not in the folder, and it stays.
    make_folder(folder.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder.with_suffix(".lock"), flags, 0o600)
    found = Found()
    try:
        hand_over(descriptor, folder.parent)
        _wait_for(descriptor, folder)
        found = _orphans_in(folder) if chosen is None else Found([_taken(chosen)])
        yield found
    finally:
        for journal in found.journals:
            journal.release()
        os.close(descriptor)


def _wait_for(descriptor: int, folder: Path) -> None:
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


def _orphans_in(folder: Path) -> Found:
    orphans_here, now = Found(), this_process(os.getpid())
    for path in sorted(folder.iterdir()):
        if path.suffix == ".bad":
            continue
        name = _NAME.fullmatch(path.name)
        if name is not None and name[2] != "json":
            if not path.with_suffix(".json").exists():
                _clear(path, name[1] == now.name)
            continue
        if not path.is_symlink() and (reason := why_untrusted(path)) is not None:
            orphans_here.bad.append(
                f"{path}: not read as root: {reason}. Delete it or change its owner"
            )
            continue
        try:
            if _OLD_NAME.fullmatch(path.name):
                orphans_here.elsewhere.append(
                    f"{path}: written by an earlier version of eeio. If its process has ended, "
                    f"`eeio doctor restore {path}` restores what it lists"
                )
                continue
            if name is None:
                raise EeioError(f"{path}: not a journal of eeio")
            if name[1] == now.name:
                continue
            _take(path, now, orphans_here)
        except FileNotFoundError:
            continue  # its process was just about to end by itself
        except PermissionError as error:
            # Of root, which made it through sudo in this user's home.
            orphans_here.elsewhere.append(
                f"{path}: not restored: {error.strerror}. `sudo eeio doctor restore {path}` "
                "restores what it changed"
            )
        except EeioError as error:
            orphans_here.bad.append(_set_aside(path, error))
    return orphans_here


def _take(path: Path, now: Owner, found: Found) -> None:
    journal = UndoJournal(path)
    if not journal.hold():
        return
    place = journal.owner.place(now)
    if place == "elsewhere":
        journal.release()
        found.elsewhere.append(
            f"{path}: not restored, as {journal.owner.text} in another container or on another "
            f"machine may be alive. If it has ended, `eeio doctor restore {path}` restores what "
            "it changed"
        )
    elif place == "here" and journal.owner.is_alive:
        journal.release()  # on a file system without locks
    else:
        if place == "here":
            _end_children_of(journal.owner.name)
        journal.drop(place)
        found.journals.append(journal)


def _taken(path: Path) -> UndoJournal:
    if not path.is_file():
        raise RejectedError(f"{path}: no such journal")
    if (reason := why_untrusted(path)) is not None:
        raise EeioError(f"{path}: not read as root: {reason}")
    journal = UndoJournal(path)
    place = journal.owner.place(this_process(os.getpid()))
    if not journal.hold() or (place == "here" and journal.owner.is_alive):
        journal.release()
        raise EeioError(f"{path}: {journal.owner.text} is alive and restores this itself")
    journal.drop(place)
    return journal


def _clear(path: Path, is_mine: bool) -> None:
    """Removes a lock or partial write without its journal, unless its process is alive."""
    if is_mine:
        return
    with contextlib.suppress(OSError):
        descriptor = lock_file(_lock_path(path))
        if descriptor is not None:
            path.unlink(missing_ok=True)
            _lock_path(path).unlink(missing_ok=True)
            os.close(descriptor)


def mark() -> dict[str, str]:
    """Environment for child processes of this process. They can then be found if this process was
    killed before it noted them, or during a `mount`."""
    return {_MARK: this_process(os.getpid()).name}


def _end_children_of(name: str) -> None:
    """Ends children of the journal's dead process, so that no mount is made after the
    unmounting."""
    _end(lambda: _marked(name), 2 * _KILL_GRACE_S)


def _end(living: Callable[[], set[int]], limit_s: float) -> None:
    """SIGTERM, then SIGKILL, to the processes that `living` finds, until it finds none."""
    deadline_s = time.monotonic() + limit_s
    for signum in (signal.SIGTERM, signal.SIGKILL):
        sent: set[int] = set()
        grace_s = time.monotonic() + _KILL_GRACE_S
        while alive := living():
            for pid in alive - sent:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signum)
            sent |= alive
            if time.monotonic() > (grace_s if signum == signal.SIGTERM else deadline_s):
                break
            time.sleep(0.02)


def _marked(name: str) -> set[int]:
    """Living processes that the process of that name started."""
    wanted, marked = f"{_MARK}={name}".encode(), set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                marked.add(int(folder.name))
    return marked


def _set_aside(path: Path, error: EeioError) -> str:
    bad = path.with_name(f"{path.name}.bad")
    try:
        path.rename(bad)
    except OSError as rejected:
        return f"{error}; it could not be renamed ({rejected.strerror}): delete it"
    return f"{error}; renamed to {bad.name}: restore its entries by hand, then delete it"


def _read(path: Path) -> tuple[Owner, list[UndoEntry]]:
    """Owner and entries of a journal; EeioError if the file is not a journal."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_BYTES:
                raise ValueError("no plain file, or too large")
            body = json.loads(file.read(_LARGEST_BYTES))
        if isinstance(body, list):  # eeio 0.1
            owner_of, items = Owner(0, 0, "", "", ""), body
        else:
            if body["schema_version"] != _VERSION:
                raise ValueError(f"schema version {body['schema_version']}")
            owner_of, items = Owner(**body["owner"]), body["entries"]
        if not all(isinstance(value, str | int) for value in asdict(owner_of).values()):
            raise ValueError("an owner that is not a process")
        entries = [UndoEntry(**item) for item in items]
        for entry in entries:
            _check(entry)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        message = str(error) or type(error).__name__
        raise EeioError(f"{path}: cannot be read as a journal ({message[:200]})") from error
    return owner_of, entries


def _check(entry: UndoEntry) -> None:
    """ValueError for an entry that eeio never writes: acting on it might harm."""
    if not all(isinstance(value, str) for value in asdict(entry).values()):
        raise ValueError("an entry that is not text")
    if entry.kind not in (*_RESTORE, "process"):
        raise ValueError(f"an entry of the unknown kind {entry.kind!r:.40}")
    if not entry.subject or "\0" in entry.subject or "\0" in entry.drive:
        raise ValueError(f"{entry.kind} of no name")
    # To the kernel 0 and 1 are not a group but many.
    if entry.kind == "process" and (int(entry.subject) < 2 or int(entry.value) < 0):
        raise ValueError(f"no process: {entry.subject:.40}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def run_command(command: list[str], timeout_s: float = _COMMAND_TIMEOUT_S) -> str:
    """Output of a small system command; EeioError with its message if it fails.

    Returns when the command ends, even if a child of it continues and keeps its output open.
    """
    # Files, not pipes, whose end would be that of the last child; and none that needs a disk.
    with memory_file() as stdout, memory_file() as stderr:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **mark()},
                timeout=timeout_s,
                check=False,
            )
        except FileNotFoundError as error:
            raise EeioError(f"{command[0]}: not installed; `scripts/setup` installs it") from error
        except subprocess.TimeoutExpired as error:
            raise EeioError(f"{' '.join(command)}: no end after {timeout_s:g} s") from error
        printed, complaints = printed_in(stdout), printed_in(stderr)
    if done.returncode != 0:
        message = (complaints or printed).strip() or f"exit code {done.returncode}"
        raise EeioError(f"{' '.join(command)}: {message}{denied_to_root(message)}")
    return printed


def memory_file() -> IO[bytes]:
    """For a program's output: after 1 MiB its writes fail, so that it cannot fill the memory."""
    descriptor = os.memfd_create("printed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, _MOST_PRINTED_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return os.fdopen(descriptor, "w+b")


def printed_in(file: IO[bytes]) -> str:
    """A program's output in a `memory_file`."""
    # Not by its position, which we share with a child that continues.
    content = os.pread(file.fileno(), _MOST_PRINTED_BYTES, 0).rstrip(b"\0")
    text = content.decode(errors="backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def denied_to_root(message: str, root: Path = HERE) -> str:
    """A hint to add to a program's message if root was denied something: SELinux may do that, so
    `run as root` does not help. Empty in any other case."""
    if not re.search(r"permission denied|operation not permitted", message, re.IGNORECASE):
        return ""
    try:
        enforcing = (root / "sys/fs/selinux/enforce").read_text(encoding="ascii").strip() == "1"
    except OSError:
        return ""
    if not enforcing or user_id(root) != 0:
        return ""
    return "; SELinux is enforcing here, `ausearch -m avc -ts recent` shows its denials"


def _restore_setting(entry: UndoEntry) -> None:
    file = Path(entry.subject)
    if (reason := why_untrusted(file)) is not None:
        raise EeioError(f"{file}: not written as root: {reason}")
    file.write_text(entry.value, encoding="ascii")


def _restore_command(entry: UndoEntry) -> None:
    run_command(json.loads(entry.value))


def _restore_nvme(entry: UndoEntry) -> None:
    # Few machines have one, and it needs modules of the meters.
    from eeio.machine import nvme_power

    nvme_power.put_back(entry.subject, entry.value)


def _remove_namespace(entry: UndoEntry) -> None:
    """Takes away a network namespace; Linux's NFS server in it is stopped first."""
    node = Path("/run/netns") / entry.subject
    if not node.exists():
        return
    if "nfsd" in Path("/proc/filesystems").read_text(encoding="ascii").split():
        script = "mount -t nfsd nfsd /proc/fs/nfsd && echo 0 >/proc/fs/nfsd/threads"
        with contextlib.suppress(EeioError):  # of a namespace without one
            run_command(["nsenter", f"--net={node}", "unshare", "--mount", "sh", "-c", script])
    run_command(["ip", "netns", "delete", entry.subject])


def _disable_controllers(entry: UndoEntry) -> None:
    file = Path(entry.subject)
    if not any(file.parent.glob("eeio-*")):
        file.write_text(" ".join(f"-{name}" for name in entry.value.split()), encoding="ascii")


def _unmount(entry: UndoEntry) -> None:
    if entry.value not in ("", "--force"):
        raise EeioError(f"no option of umount: {entry.value[:40]!r}")
    if not entry.value:
        _unmount_own(entry)
        return
    command = ["umount", "--no-canonicalize", entry.value, entry.subject]
    try:
        if _is_mounted(Path(entry.subject)):
            run_command(command, _FORCE_S)
    except EeioError:
        # Its server is unreachable, and unwritten data waits for it; the mount may wait, too.
        if _is_mounted(Path(entry.subject)):
            run_command([*command, "--lazy"])


def _unmount_own(entry: UndoEntry) -> None:
    """Unmounts what is mounted at the folder, if it is of the drive that the entry names."""
    folder = Path(entry.subject).resolve()
    layers = [mount for mount in mounts() if mount.mount_point == folder]
    if entry.drive:
        own = Path(entry.drive).resolve()
        if own not in [Path(mount.source).resolve() for mount in layers]:
            return
        if Path(layers[-1].source).resolve() != own:
            raise EeioError(
                f"{layers[-1].source} is mounted at {folder}, over {own}: `umount {folder}`, and "
                "restore again"
            )
    if layers:
        run_command(["umount", entry.subject])


def _is_mounted(folder: Path) -> bool:
    """Does not access the folder, which may wait for its server."""
    where = folder.parent.resolve() / folder.name
    return any(mount.mount_point == where for mount in mounts())


def _detach(entry: UndoEntry) -> None:
    # Read from the kernel, because losetup escapes special bytes of a name. The file is absent if
    # no file is attached, and after a reboot.
    backing = Path("/sys/class/block") / Path(entry.subject).name / "loop/backing_file"
    try:
        attached = os.fsdecode(backing.read_bytes().removesuffix(b"\n"))
    except FileNotFoundError:
        return
    # A loop device may belong to another image by now: only ours is detached, also if its image was
    # deleted.
    if attached in (entry.value, f"{entry.value} (deleted)"):
        run_command(["losetup", "--detach", entry.subject])


def _close_mapping(entry: UndoEntry) -> None:
    if Path("/dev/mapper", entry.subject).exists():
        run_command(["cryptsetup", "close", entry.subject])


def _delete(entry: UndoEntry) -> None:
    _check_folder_of(Path(entry.subject))
    Path(entry.subject).unlink(missing_ok=True)


def _remove_directory(entry: UndoEntry) -> None:
    folder = Path(entry.subject)
    if not os.path.lexists(folder):
        return  # asked first: a read-only file system says EROFS of a folder that was never made
    if folder.is_symlink():
        raise EeioError("refusing to follow a symbolic link; find out its origin")
    _check_folder_of(folder)
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def _check_folder_of(path: Path) -> None:
    """EeioError where another user could have put a link on the way to the file."""
    # In the kernel's folders (cgroups, tracefs) nobody can make a link.
    if path.is_relative_to("/sys") or not path.parent.is_dir():
        return
    if (risk := risk_of_folder(path.parent)) is not None:
        raise EeioError(f"not deleted: {risk.text}")


def _end_process_group(entry: UndoEntry, owner_name: str) -> None:
    leader = int(entry.subject)
    ticks = start_ticks(leader)
    if ticks == int(entry.value):
        end_group(leader)
    elif ticks is None:
        # Its leader has ended. The number may be another group's since, but not of processes that
        # the journal's owner started.
        marked = _marked(owner_name)
        _end(lambda: {pid for pid in group_members(leader) if pid in marked}, 2 * _KILL_GRACE_S)


def end_group(group: int) -> None:
    """Ends a process group: SIGTERM, then SIGKILL to the rest."""
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


def group_members(group: int) -> set[int]:
    """Processes of the group that run; zombies that wait for their parent do not."""
    members = set()
    for folder in Path("/proc").glob("[0-9]*"):
        fields = stat_fields(folder)
        if fields is not None and int(fields[2]) == group and fields[0] != b"Z":
            members.add(int(folder.name))
    return members


def group_alive(group: int) -> bool:
    """Whether a process of the group still runs."""
    return bool(group_members(group))


_RESTORE: dict[str, Callable[[UndoEntry], None]] = {
    "setting": _restore_setting,
    "command": _restore_command,
    "mount": _unmount,
    "loop": _detach,
    "mapping": _close_mapping,
    "file": _delete,
    "directory": _remove_directory,
    "namespace": _remove_namespace,
    "controllers": _disable_controllers,
    "nvme": _restore_nvme,
}
