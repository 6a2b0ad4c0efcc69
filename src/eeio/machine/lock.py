"""Locks on resources for one process at a time: a machine, a drive, a folder, an undo journal."""

import fcntl
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from eeio import paths
from eeio.errors import RejectedError
from eeio.files.trust import make_folder
from eeio.machine.owner import start_ticks, this_process

# Contents of an eeio lock file: its last owner, or empty.
_CONTENT = re.compile(rb"[0-9a-f-]{0,100}\n?")
MACHINE = "machine"
_LOOK_S = 1.0
_WAIT = "wait for it (--wait of run, resume, bench, import power and drive does)"
_wait_s: ContextVar[float | None] = ContextVar("wait_s", default=None)


class BusyError(RejectedError):
    """Another process has the lock."""


@contextmanager
def waiting(limit_s: float | None) -> Iterator[None]:
    """Locks that another process has are waited for, `limit_s` at most for each (infinite: until
    they are free); None: they are not."""
    token = _wait_s.set(limit_s)
    try:
        yield
    finally:
        _wait_s.reset(token)


def _when_free(take: Callable[[], None]) -> None:
    """Takes a lock, and waits for it if that is wanted. Names once on stderr who has it. Raises
    BusyError."""
    limit_s = _wait_s.get()
    until_s = None
    if limit_s is not None:
        until_s = time.monotonic() + limit_s
    is_named = False
    while True:
        try:
            take()
        except BusyError as error:
            if until_s is None:
                raise
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                raise RejectedError(f"{error}; waited {limit_s:g} s for it (--wait)") from error
            if not is_named:
                print(f"eeio: waiting: {error}", file=sys.stderr, flush=True)
                is_named = True
            time.sleep(min(_LOOK_S, left_s))
        else:
            return


class Lock:
    """Held while a campaign uses something; the kernel releases it whatever ends the process.

    `name` is for the files, `what` for the message. With `shared` several processes may hold it
    that all share it.

    The files are in every folder that other users or containers may look into, because not every
    user may write to /run/lock everywhere, and containers with one home have a /tmp each.
    EEIO_LOCKS names another folder instead: campaigns with different ones do not see each other.
    """

    def __init__(self, name: str, what: str, *, shared: bool = False) -> None:
        self._name = name.replace("/", "-")
        self._what = what
        self._shared = shared
        self._locks = ExitStack()

    def __enter__(self) -> "Lock":
        _when_free(self._take_all)
        return self

    def _take_all(self) -> None:
        with ExitStack() as stack:
            for folder in lock_folders():
                stack.enter_context(_File(folder / f"eeio-{self._name}.lock", self))
            self._locks = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._locks.close()

    def take(self, descriptor: int, path: Path) -> None:
        """Locks an open lock file, and writes who has it. BusyError if another one has it."""
        status = os.fstat(descriptor)
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        content = b""
        if plain:
            content = os.pread(descriptor, 200, 0)
        if not plain or not _CONTENT.fullmatch(content):
            raise RejectedError(
                f"{path} is not a lock file of eeio, so eeio does not change it. Find out its "
                "origin, and delete it"
            )
        try:
            fcntl.flock(
                descriptor, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
            )
        except BlockingIOError:
            holder = content.decode("ascii").partition("-")[0].strip() or "unknown"
            raise BusyError(f"{self._what} (process {holder})") from None
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{this_process(os.getpid()).name}\n".encode(), 0)


def machine_lock(*, shared: bool) -> Lock:
    """Of every power measurement."""
    return Lock(
        MACHINE,
        "another campaign is running on this machine, and each would measure the other's power: "
        f"{_WAIT}, or give --share-machine to both",
        shared=shared,
    )


def drive_lock(name: str) -> Lock:
    """Of a drive, by its kernel name or, where there is none, by its directory."""
    return Lock(name, f"another campaign is running on {name}: {_WAIT}")


def lock_folders() -> Sequence[Path]:
    """Those that exist here, or can be made."""
    if chosen := os.environ.get("EEIO_LOCKS"):
        return [Path(chosen)]
    folders = [Path("/run/lock"), Path("/tmp")]  # noqa: S108 - no link is followed in them
    writable = [folder for folder in folders if os.access(folder, os.W_OK | os.X_OK)]
    # Of this kernel only: other machines may have the same home.
    boot = this_process(os.getpid()).boot_id[:8]
    state = paths.state_root() / f"locks-{boot}"
    try:
        make_folder(state)
    except OSError:
        if not writable:
            raise RejectedError(
                "no folder for lock files: /run/lock, /tmp and the state folder cannot be written. "
                "EEIO_LOCKS=DIR names one"
            ) from None
        return writable
    return [*writable, state]


def lock_file(path: Path) -> int | None:
    """Locks a file that only this user's processes use, and makes it if need be; None if another
    process has it. Whoever has it may delete it. A file system without locks never says no."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(descriptor, path):
            return descriptor
    except BlockingIOError:
        pass
    except OSError:
        return descriptor
    os.close(descriptor)
    return None


def _is_at(descriptor: int, path: Path | str, folder: int | None = None) -> bool:
    """Whether the open file is still the one of that name (in the folder)."""
    try:
        here, there = os.fstat(descriptor), os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _has_ended(name: str, now: str) -> bool:
    """Whether a process (`Owner.name`) has ended; False if it is not of this boot and container."""
    pid, _, rest = name.partition("-")
    ticks, _, place = rest.partition("-")
    if not (pid.isdecimal() and ticks.isdecimal()) or place != now.split("-", 2)[2]:
        return False
    return start_ticks(int(pid[:10])) != int(ticks[:20])


class FolderLock:
    """The file `.eeio-lock` in a folder that several machines may share. BusyError if another
    process has it: also on a file system without locks, by the process that the file names. The
    folder may be renamed meanwhile."""

    def __init__(self, folder: Path, what: str) -> None:
        self._path = folder / ".eeio-lock"
        self._what = what

    def __enter__(self) -> None:
        _when_free(self._take_file)

    def _take_file(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with ExitStack() as stack:
            try:
                folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, folder)
                descriptor = os.open(self._path.name, flags, 0o600, dir_fd=folder)
                stack.callback(os.close, descriptor)
            except OSError as error:
                raise RejectedError(f"{self._path}: {error.strerror}; campaigns lock it") from error
            self._take(descriptor, folder)
            self._folder = folder
            self._locks = stack.pop_all()

    def _take(self, descriptor: int, folder: int) -> None:
        name, _, host = os.pread(descriptor, 300, 0).decode(errors="replace").strip().partition(" ")
        holder = "another process"
        if host:
            holder = f"process {name.partition('-')[0]} on {host}"
        now = this_process(os.getpid())
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"{self._what} is in use by {holder}: {_WAIT}") from None
        except OSError:
            # No locks here: only of this boot and container is known which processes have ended.
            if host and not _has_ended(name, now.name):
                raise RejectedError(
                    f"{self._what} is in use by {holder}; if that has ended, delete {self._path}"
                ) from None
        if not _is_at(descriptor, self._path.name, folder):
            raise BusyError(f"{self._what}: another process has just released it; try again")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{now.name} {platform.node()}\n".encode(), 0)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            os.unlink(self._path.name, dir_fd=self._folder)
        self._locks.close()


class _File:
    """One lock file. Any user may lock it, and may have made it, or put another file in its place.
    So it is opened without following a link, and written only if it contains no more than a lock
    does."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self._path = path
        self._lock = lock

    def __enter__(self) -> None:
        try:
            descriptor = self._open()
        except OSError as error:
            raise RejectedError(f"{self._path}: {error.strerror}; campaigns lock it") from error
        try:
            self._lock.take(descriptor, self._path)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _open(self) -> int:
        """The file stays for good, whoever made it."""
        # Not waiting: it may be a pipe.
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(self._path, os.O_RDWR | flags)
        except PermissionError:
            return os.open(self._path, os.O_RDONLY | flags)
        except FileNotFoundError:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
            except FileExistsError:  # another was faster
                return os.open(self._path, os.O_RDWR | flags)
            os.fchmod(descriptor, 0o666)  # whatever the umask says
            return descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
