"""The lock of this machine's power, which campaigns (`eeio.machine.lock`) hold too."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eeio_power.errors import PowerError

FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - no link is followed in them
FILE = "eeio-machine.lock"


@contextmanager
def machine_lock() -> Iterator[None]:
    """Held while this process measures. Raises PowerError if another process holds it.

    The files are in each of the folders that this user may use, or in that of EEIO_LOCKS; they
    stay.
    """
    chosen = os.environ.get("EEIO_LOCKS")
    with ExitStack() as stack:
        for folder in (chosen,) if chosen else FOLDERS:
            path = Path(folder) / FILE
            try:
                descriptor = _opened(path)
            except OSError:
                continue
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PowerError(
                    f"{path}: another campaign or PTS run measures this machine's power, and each "
                    "would measure the other's. Wait for it, or set EEIO_METER=none"
                ) from None
        yield


def _opened(path: Path) -> int:
    """Any user may have made it. It may be a link or a pipe: those are not followed or waited for.
    Raises OSError."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        os.fchmod(descriptor, 0o666)  # whatever the umask
        return descriptor
