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

from eeio.machine.filesystem import Mount, options_of

_GET_FLAGS = 2 << 30 | struct.calcsize("l") << 16 | ord("f") << 8 | 1  # FS_IOC_GETFLAGS
# linux/fs.h
_WITHOUT_DIRECT_IO: Mapping[int, str] = MappingProxyType(
    {
        0x4: "compressed files (chattr +c) have no direct I/O",
        0x800: "encrypted files may have no direct I/O",
        0x100000: "files with fs-verity have no direct I/O",
    }
)
_JOURNALED = 0x4000  # chattr +j, which ext4 obeys without delayed allocation
_NOT_COPIED = 0x800000  # chattr +C: btrfs neither copies nor compresses on writing
_EXTENTS = struct.Struct("=QQLLLL")  # struct fiemap
_EXTENT = struct.Struct("=QQQ16xL12x")  # struct fiemap_extent
_GET_EXTENTS, _EXTENTS_AT_ONCE = 0xC020660B, 256  # FS_IOC_FIEMAP
_LAST_EXTENT, _ENCODED = 0x1, 0x8
_READ, _WRITTEN = "a direct read filled the page cache", "a direct write filled the page cache"
_PLACES = 8
"""Of a file, where direct reads are tried."""


def journals_data(mount: Mount) -> bool:
    """Whether ext4 writes data to its journal first."""
    return "data=journal" in options_of(mount)


def compresses(mount: Mount) -> bool:
    """Whether a file system's options request that it compresses data."""
    return mount.filesystem in ("btrfs", "bcachefs", "f2fs") and any(
        option.startswith("compress") for option in mount.options.split(",")
    )


def why_not_direct(mount: Mount) -> str | None:
    """Why the kernel buffers direct I/O on a file system; None if it does not, as far as its
    options tell."""
    if journals_data(mount):
        return f"{mount.filesystem} with data=journal has no direct I/O"
    if compresses(mount):
        return f"{mount.filesystem} has no direct I/O of compressed data"
    return None


def why_file_not_direct(path: Path, mount: Mount | None) -> str | None:
    """Why the kernel buffers direct I/O of a file, or of new files in a folder: by its attributes,
    by the options of its file system, or as a direct read and write show (of btrfs, newer kernels
    buffer writes of data with a checksum). None if it does not, as far as this user may know."""
    attributes = 0
    with suppress(OSError):
        attributes = _attributes(path)
    for flag, reason in _WITHOUT_DIRECT_IO.items():
        if attributes & flag:
            return reason
    is_plain = False
    if mount is not None:
        if attributes & _JOURNALED and "nodelalloc" in mount.options.split(","):
            return "files whose data are journaled (chattr +j) have no direct I/O"
        is_plain = bool(attributes & _NOT_COPIED) and mount.filesystem == "btrfs"
        if not is_plain and (buffered := why_not_direct(mount)) is not None:
            return buffered
    with suppress(OSError):
        if _has_encoded_extents(path):
            return "a part of it is compressed, which has no direct I/O"
    with suppress(OSError, ValueError):
        return _why_shown_not_direct(path, is_plain)
    return None


def _why_shown_not_direct(path: Path, is_plain: bool) -> str | None:
    """As a direct read and write show. Raises OSError or ValueError."""
    if path.is_dir():
        return _why_new_not_direct(path)
    if not path.is_file():
        return None  # a block device, in a folder of another file system
    if _reads_of_image_fill_the_cache(path):
        return _READ
    if is_plain:
        return None
    return _why_new_not_direct(path.parent)


def _reads_of_image_fill_the_cache(path: Path) -> bool:
    descriptor = _open(path, os.O_DIRECT)
    try:
        return _reads_fill_the_cache(descriptor)
    finally:
        os.close(descriptor)


def _why_new_not_direct(folder: Path) -> str | None:
    """By writing and reading a file in the folder that has no name."""
    flags = os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC
    descriptor = os.open(folder, flags, 0o600)
    try:
        with mmap.mmap(-1, _PLACES * mmap.PAGESIZE) as aligned:
            aligned.write(os.urandom(len(aligned)))
            os.pwrite(descriptor, aligned, 0)
        if _is_cached(descriptor, 0):
            return _WRITTEN
        os.fsync(descriptor)
        if _reads_fill_the_cache(descriptor):
            return _READ
        return None
    finally:
        os.close(descriptor)


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


def _has_encoded_extents(path: Path) -> bool:
    """Whether a part of a file is stored in another form, such as compressed."""
    descriptor = _open(path)
    try:
        start = 0
        while True:
            request = _EXTENTS.pack(start, (1 << 64) - 1 - start, 0, 0, _EXTENTS_AT_ONCE, 0)
            room = bytearray(request + bytes(_EXTENT.size * _EXTENTS_AT_ONCE))
            fcntl.ioctl(descriptor, _GET_EXTENTS, room)
            count = _EXTENTS.unpack_from(room)[3]
            flags = 0
            for index in range(count):
                place = _EXTENTS.size + index * _EXTENT.size
                logical, _, length, flags = _EXTENT.unpack_from(room, place)
                if flags & _ENCODED:
                    return True
                start = logical + length
            if count == 0 or flags & _LAST_EXTENT:
                return False
    finally:
        os.close(descriptor)


def _reads_fill_the_cache(descriptor: int) -> bool:
    """Whether a direct read leaves its page in the page cache. Pages that stay there in any case
    show nothing: dirty ones, and those of a user who may not ask."""
    pages = os.fstat(descriptor).st_size // mmap.PAGESIZE
    for index in range(0, pages, max(1, pages // _PLACES)):
        offset = index * mmap.PAGESIZE
        os.posix_fadvise(descriptor, offset, mmap.PAGESIZE, os.POSIX_FADV_DONTNEED)
        if _is_cached(descriptor, offset):
            continue
        with mmap.mmap(-1, mmap.PAGESIZE) as aligned:
            # btrfs buffers a read into memory that does not exist yet.
            aligned.write(bytes(mmap.PAGESIZE))
            os.preadv(descriptor, [aligned], offset)
        if _is_cached(descriptor, offset):
            return True
    return False


def _is_cached(descriptor: int, offset: int) -> bool:
    """Whether a page of a file is in the page cache, by mincore(2)."""
    with mmap.mmap(descriptor, mmap.PAGESIZE, access=mmap.ACCESS_COPY, offset=offset) as mapped:
        state = ctypes.c_ubyte()
        first = ctypes.c_char.from_buffer(mapped)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(first)),
            ctypes.c_size_t(mmap.PAGESIZE),
            ctypes.byref(state),
        )
        del first  # or the mapping cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), "mincore")
        return bool(state.value & 1)
