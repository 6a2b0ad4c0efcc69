"""The caches below a program: empty the page cache, flush, direct reads, the drive's write cache.

Emptying the page cache, and proving that it is empty.

Timed write-back of a target: until a tool's bytes are on the device.

Reading a block device with direct I/O.

The drive's write cache: read, switched if the drive permits it, verified, restored.

The drive is queried: SCSI and ATA through the kernel's `cache_type`, other ATA drives with hdparm,
NVMe with feature 6, virtio with its `cache_type`. `queue/write_cache` is only read: writing to it
changes whether the kernel sends flushes, not the drive's cache, so data would be at risk and the
measurement wrong.
"""

import ctypes
import errno
import json
import mmap
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.files.trust import why_untrusted
from eeio.machine.as_data.root import user_id
from eeio.machine.filesystem import BlockDevice, one_drive
from eeio.machine.undo import UndoEntry, UndoJournal, run_command
from eeio.record.run import Switch


@dataclass(frozen=True)
class Sync:
    """The flush right after a tool ended; CLOCK_MONOTONIC seconds. `error` is why there was none:
    then the arrival time of the bytes is unknown. `lost` is why bytes did not arrive at all."""

    start_s: float
    end_s: float
    source: str
    error: str | None = None
    lost: str | None = None


# What the kernel reports if it could not write pages back: a failed drive, or a full one below
# (a thin pool, a sparse image).
_LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)


def flush(directory: Path | None, node: Path | None) -> Sync:
    """Flushes the file system of the directory, then the device itself; None: not that.

    Both also wait until the drive reports that its cache is on its medium.
    """
    start_s = time.monotonic()
    flushed: list[str] = []
    try:
        if directory is not None:
            _flush(directory, _syncfs)
            flushed.append("syncfs of the target")
        if node is not None:
            _flush(node, os.fsync)
            flushed.append(f"fsync of {node}")
    except OSError as error:
        end_s = time.monotonic()
        failed = directory
        if directory is None or flushed:
            failed = node
        text = f"{failed}: {error.strerror or error}"
        return Sync(start_s, end_s, "", text, text if error.errno in _LOST else None)
    source = f"{' and '.join(flushed)} right after the tool ended"
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


CHUNK_BYTES = 1 << 20


def read_direct(
    node: Path, length: int | None, offset: int = 0, end_s: float = float("inf")
) -> int:
    """Reads `length` bytes, or to the end of the device (None), until that time on the monotonic
    clock at the latest; how many it read. Length and offset are multiples of a sector."""
    descriptor = os.open(node, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    left = float("inf") if length is None else length
    begun = offset
    # O_DIRECT needs aligned memory, which a mapping is.
    with mmap.mmap(-1, CHUNK_BYTES) as buffer:
        complete = memoryview(buffer)
        try:
            while left > 0 and time.monotonic() < end_s:
                with complete[: int(min(CHUNK_BYTES, left))] as view:
                    moved = os.preadv(descriptor, [view], offset)
                    short = moved < len(view)
                offset += moved
                left -= moved
                if short:
                    break
        finally:
            complete.release()
            os.close(descriptor)
    return offset - begun


_TEXTS: dict[Switch, str] = {"on": "write back", "off": "write through"}
_NVME_VOLATILE_WRITE_CACHE = "6"  # feature identifier in the NVMe base specification


def write_cache_found(device: BlockDevice) -> Switch | None:
    """State of the drive: `write back` is on, `write through` is off. None if it is not known: the
    kernel's view of a loop device says nothing of its image."""
    disk = one_drive(device).disk_sysfs
    answered, viewed = _drive_answer(disk), _kernel_view(disk)
    if disk.name.startswith("nvme") and answered is not None:
        return answered  # the kernel does not notice that feature 6 was set
    if viewed == "off" and (disk / "loop").is_dir():
        return None
    if answered == "on":
        return "on"
    return viewed


def why_no_flush(device: BlockDevice) -> str | None:
    """Why the kernel sends no flush to a device although data may be in a volatile cache there: its
    view was set to `write through` by hand. None if it does, as far as the device tells."""
    disk = device.disk_sysfs
    if _kernel_view(disk) != "off":
        return None
    # A loop device flushes its image, if it may write there.
    is_image = (disk / "loop").is_dir() and _text_of(disk / "ro") == "0"
    if not is_image and _drive_answer(disk) != "on":
        return None
    return f"the kernel sends no flush to /dev/{disk.name} (queue/write_cache is write through)"


def _kernel_view(disk: Path) -> Switch | None:
    """Of the drive's cache: it sends flushes only if that is on."""
    text = _text_of(disk / "queue/write_cache")
    for state, label in _TEXTS.items():
        if label == text:
            return state
    return None


def _drive_answer(disk: Path) -> Switch | None:
    """The drive's own, of NVMe, SCSI, libata and virtio; None without one."""
    if disk.name.startswith("nvme"):
        return _nvme_state(f"/dev/{disk.name}")
    for text in map(_text_of, _cache_types(disk)):
        if text is not None:
            if text.startswith("write back"):
                return "on"
            return "off"
    return None


def _text_of(path: Path) -> str | None:
    """The text of a file of sysfs; None without one."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def cannot_switch_write_cache(device: BlockDevice, wanted: Switch) -> str | None:
    """Why the cache cannot be brought into that state; None when it can, or already is."""
    if write_cache_found(device) == wanted:
        return None
    disk = one_drive(device).disk_sysfs
    if _cache_type(disk) is not None or disk.name.startswith(("nvme", "sd", "hd")):
        if user_id(device.root) == 0:
            return None
        return f"the write cache of /dev/{disk.name} can only be switched as root"
    state = write_cache_found(device) or "unknown"
    return f"/dev/{disk.name} offers no way to switch its write cache, which is {state}"


def switch_write_cache(device: BlockDevice, wanted: Switch, journal: UndoJournal) -> None:
    """Sets the cache and proves it by reading back; EeioError when the drive does not follow."""
    before = write_cache_found(device)
    if before == wanted:
        return
    reason = cannot_switch_write_cache(device, wanted)
    if reason is not None:
        raise EeioError(reason)
    disk = one_drive(device).disk_sysfs
    node = f"/dev/{disk.name}"
    cache_type = _cache_type(disk)
    if cache_type is not None:
        old = cache_type.read_text(encoding="ascii").strip()
        journal.add(UndoEntry("setting", str(cache_type), old).of_drive(Path(node)))
        cache_type.write_text(_TEXTS[wanted], encoding="ascii")
    else:
        opposite: Switch = "on"
        if wanted == "on":
            opposite = "off"
        restore = json.dumps(_command(node, before or opposite))
        journal.add(UndoEntry("command", node, restore).of_drive(Path(node)))
        run_command(_command(node, wanted))
    now = write_cache_found(device)
    if now != wanted:
        raise EeioError(f"{node}: write cache set to {wanted}, but it reads back {now}")


def _nvme_state(node: str) -> Switch | None:
    try:
        text = run_command(["nvme", "get-feature", node, "-f", _NVME_VOLATILE_WRITE_CACHE])
    except EeioError:
        return None  # no volatile cache, no privilege or no nvme-cli: use the kernel's value
    match = re.search(r"value:\s*(?:0x)?([0-9a-f]+)", text, re.IGNORECASE)
    if match is None:
        return None
    if int(match[1], 16) & 1:
        return "on"
    return "off"


def _cache_type(disk: Path) -> Path | None:
    """The kernel's switch for SCSI, libata and virtio disks, where it can be written."""
    # For root access(2) permits everything, so the file's mode decides.
    for path in _cache_types(disk):
        if path.stat().st_mode & 0o200:
            return path
    return None


def _cache_types(disk: Path) -> list[Path]:
    candidates = [*sorted((disk / "device/scsi_disk").glob("*/cache_type")), disk / "cache_type"]
    return [path for path in candidates if path.exists()]


def _command(node: str, state: Switch) -> list[str]:
    number = "0"
    if state == "on":
        number = "1"
    if Path(node).name.startswith("nvme"):
        return ["nvme", "set-feature", node, "-f", _NVME_VOLATILE_WRITE_CACHE, "-v", number]
    return ["hdparm", "-q", f"-W{number}", node]


_BLKFLSBUF = 0x1261  # linux/fs.h: _IO(0x12, 97)
# A page or two may come back at once (read-ahead of a neighbour); more is a cache not dropped.
_TOLERATED_SHARE = 0.001
_CHUNK_BYTES = 1 << 30


def drop_file() -> Path:
    """The kernel's file that empties the page cache. Containers show it read-only, and maybe
    another mounted elsewhere: EEIO_DROP_CACHES is that path."""
    return Path(os.environ.get("EEIO_DROP_CACHES") or "/proc/sys/vm/drop_caches")


def why_not_written() -> str | None:
    """Why root does not write to the file of EEIO_DROP_CACHES: another user could let it lead to
    any file."""
    if (reason := why_untrusted(drop_file())) is None:
        return None
    return (
        f"EEIO_DROP_CACHES={drop_file()}: not written as root: {reason}. Repair: unset "
        "EEIO_DROP_CACHES, or name a file of root"
    )


def check_drop_file() -> None:
    """RejectedError for such a file."""
    if (reason := why_not_written()) is not None:
        raise RejectedError(reason)


def drops_all() -> bool:
    """Whether this user may empty the machine's page cache. RejectedError as `check_drop_file`."""
    check_drop_file()
    return os.geteuid() == 0 and os.access(drop_file(), os.W_OK)


def drop(files: Iterable[Path], device: Path | None) -> tuple[str, str | None]:
    """Writes dirty pages back and empties the page cache of `files` (and of `device`).

    Returns the bytes in the cache afterwards, and None or why the cache is not empty. Without root
    only the files' pages can be dropped, which the verification counts.
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
    scope = "the test files' pages"
    if everything:
        scope = "complete page cache"
    state = f"dropped {scope}; {resident} of {total} bytes of the test files resident"
    if resident > _TOLERATED_SHARE * total:
        return (
            state,
            f"page cache not dropped: {resident} of {total} bytes were still resident",
        )
    return state, None


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
    """Bytes of `path` in the page cache, by mincore(2), in full pages."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    ]
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
            # The lowest bit of each byte shows whether the page is resident.
            pages += sum(map(vector.raw.count, range(1, 256, 2)))
        return pages * mmap.PAGESIZE
    finally:
        os.close(descriptor)
