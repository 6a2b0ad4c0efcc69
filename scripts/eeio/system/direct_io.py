"""Whether direct I/O goes past the page cache: the kernel buffers it silently where it cannot."""

import ctypes
import fcntl
import mmap
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from eeio.system.filesystem import Mount

_GET_FLAGS = 2 << 30 | struct.calcsize("l") << 16 | ord("f") << 8 | 1  # FS_IOC_GETFLAGS
# linux/fs.h
_WITHOUT_DIRECT_IO: Mapping[int, str] = MappingProxyType(
    {
        0x4: "compressed files (chattr +c) have no direct I/O",
        0x4000: "files whose data are journaled (chattr +j) have no direct I/O",
        0x800: "encrypted files may have no direct I/O",
        0x100000: "files with fs-verity have no direct I/O",
    }
)
_NOT_COPIED = 0x800000  # chattr +C: btrfs neither copies nor compresses on writing
_PLACES = 8
"""Of a file, where direct reads are tried."""


def compresses(mount: Mount) -> bool:
    """Whether a file system's options request that it compresses data."""
    return mount.filesystem in ("btrfs", "bcachefs", "f2fs") and any(
        option.startswith("compress") for option in mount.options.split(",")
    )


def why_not_direct(mount: Mount) -> str | None:
    """Why the kernel buffers direct I/O on a file system; None if it does not, as far as its
    options tell."""
    if "data=journal" in mount.options.split(","):
        return f"{mount.filesystem} with data=journal has no direct I/O"
    if compresses(mount):
        return f"{mount.filesystem} has no direct I/O of compressed data"
    return None


def why_file_not_direct(path: Path, mount: Mount | None) -> str | None:
    """Why the kernel buffers direct I/O of a file, or of new files in a folder: by its attributes,
    by the options of its file system, or as a direct read shows. None if it does not, as far as
    this user may know."""
    attributes = 0
    with suppress(OSError):
        attributes = _attributes(path)
    for flag, reason in _WITHOUT_DIRECT_IO.items():
        if attributes & flag:
            return reason
    is_plain = bool(attributes & _NOT_COPIED) and mount is not None and mount.filesystem == "btrfs"
    if mount is not None and not is_plain and (why := why_not_direct(mount)) is not None:
        return why
    with suppress(OSError, ValueError):
        if _reads_fill_the_cache(path):
            return "a direct read of it filled the page cache"
    return None


def _open(path: Path, more: int = 0) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | more)


def _attributes(path: Path) -> int:
    """Of one file, as lsattr shows them."""
    descriptor = _open(path)
    try:
        answer = fcntl.ioctl(descriptor, _GET_FLAGS, bytes(struct.calcsize("l")))
    finally:
        os.close(descriptor)
    return int.from_bytes(answer[:4], sys.byteorder)


def _reads_fill_the_cache(path: Path) -> bool:
    """Whether a direct read leaves its page in the page cache. Pages that stay there in any case
    show nothing: dirty ones, and those of a user who may not ask."""
    direct = _open(path, os.O_DIRECT)
    try:
        pages = os.fstat(direct).st_size // mmap.PAGESIZE
        for index in range(0, pages, max(1, pages // _PLACES)):
            offset = index * mmap.PAGESIZE
            os.posix_fadvise(direct, offset, mmap.PAGESIZE, os.POSIX_FADV_DONTNEED)
            if _is_cached(direct, offset):
                continue
            with mmap.mmap(-1, mmap.PAGESIZE) as aligned:
                os.preadv(direct, [aligned], offset)
            if _is_cached(direct, offset):
                return True
        return False
    finally:
        os.close(direct)


def _is_cached(descriptor: int, offset: int) -> bool:
    """Whether a page of a file is in the page cache, by mincore(2)."""
    with mmap.mmap(descriptor, mmap.PAGESIZE, access=mmap.ACCESS_COPY, offset=offset) as mapped:
        state = ctypes.c_ubyte()
        first = ctypes.c_char.from_buffer(mapped)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(mmap.PAGESIZE),
            ctypes.byref(state),
        )  # fmt: skip
        del first  # or the mapping cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return bool(state.value & 1)
