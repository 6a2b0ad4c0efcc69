"""One campaign at a time on one disk."""

import fcntl
import os
import tempfile
from pathlib import Path
from types import TracebackType

from eeio.errors import RefusedError


class TargetLock:
    """Held while a campaign uses a disk; the kernel lets go of it whatever ends the process.

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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 100).decode(errors="replace").strip()
            os.close(descriptor)
            raise RefusedError(
                f"another campaign is running on {self._disk} (process {holder or 'unknown'}); "
                "two at once would measure each other"
            ) from None
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor
        return self

    def _open(self) -> int:
        """The file stays for good, whoever made it: any user can lock it, and no two at once."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
