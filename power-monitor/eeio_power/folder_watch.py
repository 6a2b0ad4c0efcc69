"""Tells when something in a folder has changed (Linux' inotify)."""

import ctypes
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_IN_MODIFY = 0x2
_IN_CREATE = 0x100


class FolderWatch:
    """Calls `changed` with the monotonic time, s, when a file in the folder was made or written.

    From a thread of its own, until `stop`. Raises OSError if the folder cannot be watched.
    """

    def __init__(self, folder: Path, changed: Callable[[float], None]) -> None:
        self._changed = changed
        self._watch = _inotify(folder)
        self._told_to_stop, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="eeio-folder-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when `changed` is called no more. To be called once."""
        os.close(self._stop)
        self._thread.join()
        os.close(self._told_to_stop)
        os.close(self._watch)

    def _run(self) -> None:
        while True:
            ready = select.select([self._watch, self._told_to_stop], [], [])[0]
            now_s = time.monotonic()
            if self._watch in ready:
                with suppress(OSError):
                    os.read(self._watch, 65536)
                self._changed(now_s)
            if self._told_to_stop in ready:
                return


@contextmanager
def watched(folder: Path, changed: Callable[[float], None]) -> Iterator[None]:
    """A `FolderWatch` meanwhile; where the system has no more of them nothing is called."""
    try:
        watch = FolderWatch(folder, changed)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        watch.stop()


def _inotify(folder: Path) -> int:
    """A descriptor that is readable when something in the folder has changed."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    mask = _IN_MODIFY | _IN_CREATE
    if libc.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, "inotify_add_watch", str(folder))
    return descriptor
