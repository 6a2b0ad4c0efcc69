"""Emptying the page cache, and proving that it is empty."""

import ctypes
import mmap
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_BLKFLSBUF = 0x1261  # linux/fs.h: _IO(0x12, 97)
# A page or two may come back at once (read-ahead of a neighbour); more is a cache not dropped.
_TOLERATED_SHARE = 0.001
_CHUNK_BYTES = 1 << 30


def drop_file() -> Path:
    """The kernel's file that empties the page cache. Containers show their own one read-only, and
    another where somebody mounted it: EEIO_DROP_CACHES says where."""
    return Path(os.environ.get("EEIO_DROP_CACHES") or "/proc/sys/vm/drop_caches")


def drops_all() -> bool:
    """Whether this user may empty the machine's page cache."""
    return os.geteuid() == 0 and os.access(drop_file(), os.W_OK)


def drop(files: Iterable[Path], device: Path | None) -> tuple[str, str | None]:
    """Writes dirty pages back and empties the page cache of `files` (and of `device`).

    Returns what was found in the cache afterwards, and None or why the cache is not empty.
    Without root only the files' own pages can be dropped, which is what the verification counts.
    """
    os.sync()
    paths = list(files)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    everything = drops_all()
    if everything:
        try:
            drop_file().write_text("3\n", encoding="ascii")
        except OSError:  # a container may show the file and refuse the write
            everything = False
    if device is not None:
        _flush_device(device)
    total = sum(path.stat().st_size for path in paths)
    resident = sum(map(resident_bytes, paths))
    scope = "whole page cache" if everything else "the test files' pages"
    found = f"dropped {scope}; {resident} of {total} bytes of the test files resident"
    if resident > _TOLERATED_SHARE * total:
        return found, f"page cache not dropped: {resident} of {total} bytes were still resident"
    return found, None


def _flush_device(node: Path) -> None:
    import fcntl

    descriptor = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _BLKFLSBUF)
    except PermissionError:
        pass  # device runs use direct I/O; their counters are checked all the same
    finally:
        os.close(descriptor)


def resident_bytes(path: Path) -> int:
    """Bytes of `path` that the page cache holds, by mincore(2), in whole pages."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
    ]  # fmt: skip
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    mmap_call = getattr(libc, "mmap64", libc.mmap)
    mmap_call.restype, mmap_call.argtypes = libc.mmap.restype, libc.mmap.argtypes
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return 0
        pages = 0
        # Piece by piece: a 32-bit address space cannot map a 20 GB file.
        for offset in range(0, status.st_size, _CHUNK_BYTES):
            length = min(_CHUNK_BYTES, status.st_size - offset)
            address = mmap_call(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
            if address in (None, ctypes.c_void_p(-1).value):
                raise OSError(ctypes.get_errno(), "mmap failed", str(path))
            vector = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
            try:
                if libc.mincore(address, length, vector) != 0:
                    raise OSError(ctypes.get_errno(), "mincore failed", str(path))
            finally:
                libc.munmap(address, length)
            # The lowest bit of each byte says whether the page is resident.
            pages += sum(vector.raw.count(value) for value in range(1, 256, 2))
        return pages * mmap.PAGESIZE
    finally:
        os.close(descriptor)
