"""Writing everything of a target back, timed: until a tool's bytes are on the device."""

import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sync:
    """The flush right after a tool ended; CLOCK_MONOTONIC seconds. `error` says why there was none:
    then nothing is known of when the bytes arrived."""

    start_s: float
    end_s: float
    source: str
    error: str | None = None


def sync(directory: Path, node: Path | None) -> Sync:
    """Flushes the file system of the directory, or, of a raw device, the device itself.

    Both wait for the drive to say that its own cache is on its medium, too.
    """
    start_s = time.monotonic()
    try:
        if node is not None:
            _flush(node, os.fsync)
            source = f"fsync of {node} right after the tool ended"
        else:
            _flush(directory, _syncfs)
            source = "syncfs of the target right after the tool ended"
    except OSError as error:
        end_s = time.monotonic()
        return Sync(start_s, end_s, "", f"{node or directory}: {error.strerror or error}")
    return Sync(start_s, time.monotonic(), source)


def _flush(path: Path, how: Callable[[int], object]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        how(descriptor)
    finally:
        os.close(descriptor)


def _syncfs(descriptor: int) -> None:
    # Python has sync, of all file systems, and fsync, of one file.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
