"""One campaign at a time on one disk."""

import fcntl
import os
import re
import stat
import tempfile
from pathlib import Path
from types import TracebackType

from eeio.errors import RefusedError

# What a lock of ours holds: the number of the process that had it last, or nothing.
_CONTENT = re.compile(rb"[0-9]{0,10}\n?")


class TargetLock:
    """Held while a campaign uses a disk; the kernel lets go of it whatever ends the process.

    The file lies in a folder that everybody may write to, and may have been made by another user,
    for any user can lock a disk. So it is opened without following a link, taken only if it is a
    plain file that is nowhere else and holds no more than a lock does, and written only then.

    EEIO_LOCKS names another folder than /run/lock: campaigns with different ones do not see each
    other, and measure each other.
    """

    def __init__(self, disk: str) -> None:
        folder = Path(os.environ.get("EEIO_LOCKS") or "/run/lock")
        if not os.access(folder, os.W_OK):
            folder = Path(tempfile.gettempdir())
        self._disk = disk
        self._path = folder / f"eeio-{disk.replace('/', '-')}.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> "TargetLock":
        try:
            descriptor = self._open()
        except OSError as error:
            raise RefusedError(f"{self._path}: {error.strerror}; it guards the disk") from error
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def _take(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        held = os.pread(descriptor, 100, 0) if plain else b""
        if not plain or not _CONTENT.fullmatch(held):
            raise RefusedError(
                f"{self._path} should be a lock of eeio and is something else, so it is left as it "
                "is; look who made it, and delete it"
            )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = held.decode("ascii").strip() or "unknown"
            raise RefusedError(
                f"another campaign is running on {self._disk} (process {holder}); "
                "two at once would measure each other"
            ) from None
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def _open(self) -> int:
        """The file stays for good, whoever made it: any user can lock it, and no two at once."""
        # Not waiting: what lies there may be a pipe.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
