"""What is below a directory or a device: memory, caches, or a storage device to measure."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.machine.direct_io import why_file_not_direct
from eeio.machine.filesystem import (
    DEEPEST,
    WITHOUT_STORAGE,
    BlockDevice,
    Mount,
    backing_devices,
    device_of_number,
    log_devices,
    mount_of,
    mounts,
    named_device,
)
from eeio.machine.loop import LoopStatus, status
from eeio.machine.undo import run_command

_ELSEWHERE = re.compile(r"(zfs|nfs4?|cifs|smb3|ceph|lustre|gpfs|beegfs)$")
"""File systems whose drives are known to be there, without a block device of this kernel."""


@dataclass(frozen=True)
class _Image:
    """The image of a loop device, its file system (None: not looked up), and the block devices with
    its data. `unknown` is why neither is known."""

    path: Path
    filesystem: str | None
    devices: tuple[BlockDevice, ...] = ()
    unknown: str | None = None
    why_not_direct: str | None = None
    """Why direct I/O to the image is buffered, although its loop device requests it."""
    mount: Mount | None = None
    unseen: str | None = None
    """Why the file itself is not looked at."""


def _image_of(device: BlockDevice) -> _Image | None:
    """None for a device that is no loop device."""
    disk = device.disk_sysfs
    try:
        text = (disk / "loop/backing_file").read_bytes().removesuffix(b"\n")
    except OSError:
        return None
    named = text.removesuffix(b" (deleted)")
    path = Path(os.fsdecode(named))
    if device.root != Path("/"):
        return _image_at(path, path.parent, device.root, None)
    known = status(Path("/dev", disk.name))
    unseen = _why_unseen(path)
    if known is None:
        if unseen is not None or path.exists():
            return _image_at(path, path, device.root, unseen)
        if named == text:
            return _Image(path, None)  # a path outside of this container
        return _image_at(path, path.parent, device.root, unseen)
    number = known.file[0] if known.block is None else known.block
    if os.major(number):
        return _image_on_device(path, number, device.root)
    location = _location_of(known, path)
    if location is None:
        return _Image(
            path,
            None,
            unknown=f"the drive below /dev/{disk.name} is unknown: its image {path} is on a file "
            "system that is unmounted, or mounted elsewhere only (such as in a container)",
        )
    return _image_at(path, location, device.root, unseen)


def _image_on_device(path: Path, number: int, root: Path) -> _Image:
    """An image on the block device of this number."""
    below = device_of_number(os.major(number), os.minor(number), root)
    mounted = [m for m in mounts(root) if m.number == _text_of_number(number)]
    mount = None
    if mounted:
        mount = mounted[0]
    return _Image(
        path,
        None,
        () if below is None else (below,),
        why_not_direct=why_file_not_direct(path, mount),
        mount=mount,
    )


def _image_at(path: Path, location: Path, root: Path, unseen: str | None) -> _Image:
    """An image of which `location` is on the same file system."""
    with suppress(OSError):
        devices = tuple(backing_devices(location, root))
        mount = mount_of(location, root)
        reason = why_file_not_direct(path, mount)
        return _Image(path, mount.filesystem, devices, None, reason, mount, unseen)
    return _Image(path, None)


def _why_unseen(path: Path) -> str | None:
    """Why this user cannot look up a path: it may not pass a folder above it."""
    try:
        path.exists()
    except OSError as error:
        return error.strerror
    return None


def _text_of_number(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


def _location_of(known: LoopStatus, path: Path) -> Path | None:
    """Where an image with an anonymous device number (tmpfs, btrfs) is: at its path, which may be a
    mount of its own, or, renamed or removed, on the file system of the folder."""
    for location, expected in ((path, known.file), (path.parent, known.file[:1])):
        with suppress(OSError):
            status_now = location.stat()
            if (status_now.st_dev, status_now.st_ino)[: len(expected)] == expected:
                return location
    return None


def why_in_memory(device: BlockDevice, depth: int = 0) -> str | None:
    """Why a device keeps its data in memory: it is a RAM disk, its image is on tmpfs, or a device
    below it is one of these; or why that is unknown. None if it does not, as far as sysfs shows."""
    disk = device.disk_sysfs
    if re.fullmatch(r"z?ram[0-9]+", disk.name):
        return f"/dev/{disk.name} is a RAM disk"
    if re.fullmatch(r"nullb[0-9]+", disk.name):
        return f"/dev/{disk.name} is a null device, without storage"
    with suppress(OSError):
        if (disk / "device/model").read_bytes().strip() == b"scsi_debug":
            return f"/dev/{disk.name} is a simulated drive in memory (scsi_debug)"
    if depth == DEEPEST:
        return None
    if (image := _image_of(device)) is not None:
        if image.unknown is not None:
            return image.unknown
        if image.filesystem in WITHOUT_STORAGE:
            return f"the image of /dev/{disk.name}, {image.path}, is on {image.filesystem}"
        if not image.devices and _hides_its_drive(image.filesystem):
            return (
                f"the drive below /dev/{disk.name} is unknown: its image {image.path} is on "
                f"{image.filesystem}, which shows no device"
            )
    reasons = (why_in_memory(lower, depth + 1) for lower in _next_below(device, image))
    for reason in reasons:
        if reason is not None:
            return reason
    return None


def why_any_in_memory(devices: Sequence[BlockDevice]) -> str | None:
    """Why one of the devices keeps its data in memory; None if none does."""
    reasons = map(why_in_memory, devices)
    for reason in reasons:
        if reason is not None:
            return reason
    return None


def has_drives_elsewhere(filesystem: str) -> bool:
    """Whether its drives are known to be there, without a block device of this kernel."""
    return _ELSEWHERE.match(filesystem) is not None


def _hides_its_drive(filesystem: str | None) -> bool:
    return filesystem is not None and not has_drives_elsewhere(filesystem)


def _next_below(device: BlockDevice, image: _Image | None) -> list[BlockDevice]:
    """The devices that a device is directly on: of a loop device those of its image."""
    names: list[str] = []
    with suppress(OSError):
        names = sorted(entry.name for entry in (device.disk_sysfs / "slaves").iterdir())
    slaves = [named_device(name, device.root) for name in names]
    below = [slave for slave in slaves if slave is not None]
    if image is None:
        return below
    return [*below, *image.devices]


@dataclass(frozen=True)
class CacheBelow:
    """A cache between a block device and its drives. `in_memory`: it is this machine's memory,
    which only root can empty, and which makes a row one of the memory, not of a drive."""

    text: str
    in_memory: bool


def stack_below(device: BlockDevice, depth: int = 0) -> list[BlockDevice]:
    """The device and all that it is on, loop devices' images included."""
    stack = [device]
    if depth < DEEPEST:
        for below in _next_below(device, _image_of(device)):
            stack += stack_below(below, depth + 1)
    return list(dict.fromkeys(stack))


def mount_of_image(device: BlockDevice) -> Mount | None:
    """The file system with the image of a loop device, if it is known; None for other devices."""
    image = _image_of(device)
    if image is None:
        return None
    return image.mount


def _caches_of_image(image: _Image, disk: Path) -> list[CacheBelow]:
    caches = []
    if _text_of(disk / "loop/dio") == "0":
        text = f"the page cache of the image {image.path} (/dev/{disk.name} has no direct I/O)"
        caches.append(CacheBelow(text, True))
    elif image.why_not_direct is not None:
        text = f"the page cache of the image {image.path}: {image.why_not_direct}"
        caches.append(CacheBelow(text, True))
    if image.unseen is not None:
        text = f"an image of which caches are not known ({image.path}: {image.unseen})"
        caches.append(CacheBelow(text, False))
    if image.filesystem == "zfs":
        caches.append(CacheBelow(f"the ARC of ZFS with the image {image.path}", True))
    return caches


def caches_below(device: BlockDevice, depth: int = 0) -> list[CacheBelow]:
    """All that direct I/O to the device passes through: the page cache of a loop device's image,
    the ARC of ZFS, bcache, dm-cache, dm-writecache, a write-back journal of md."""
    disk, image = device.disk_sysfs, _image_of(device)
    caches = []
    if image is not None:
        caches = _caches_of_image(image, disk)
    if re.fullmatch(r"zd[0-9]+", disk.name):
        caches.append(CacheBelow(f"the ARC of ZFS (/dev/{disk.name})", True))
    if (state := _text_of(disk / "bcache/state")) is not None and state != "no cache":
        caches.append(CacheBelow(f"the cache of bcache (/dev/{disk.name})", False))
    if "[write-back]" in (_text_of(disk / "md/journal_mode") or ""):
        caches.append(CacheBelow(f"the write-back journal of /dev/{disk.name}", False))
    for target in _caching_targets(device):
        caches.append(CacheBelow(f"{target} (/dev/{disk.name})", False))
    if depth < DEEPEST:
        for below in _next_below(device, image):
            caches += caches_below(below, depth + 1)
    return list(dict.fromkeys(caches))


_CACHE_TARGETS = {"cache": "dm-cache", "writecache": "dm-writecache"}
_CACHE_PARTS = ("-cdata", "-cmeta", "-cpool", "-cvol")
"""Ends of dm/uuid of LVM's cache volumes."""


def _caching_targets(device: BlockDevice) -> list[str]:
    """Of a device of the device mapper. sysfs does not show its targets. `dmsetup` shows them to
    root, and LVM names the parts of a cache."""
    disk = device.disk_sysfs
    if (name := _text_of(disk / "dm/name")) is None:
        return []
    if device.root == Path("/"):
        with suppress(EeioError):
            lines = run_command(["dmsetup", "table", name]).splitlines()
            types = (fields[2] for line in lines if len(fields := line.split()) > 2)
            targets = []
            for kind in dict.fromkeys(types):
                if kind in _CACHE_TARGETS:
                    targets.append(_CACHE_TARGETS[kind])
            return targets
    parts = [_text_of(slave / "dm/uuid") or "" for slave in sorted(disk.glob("slaves/*"))]
    if any(part.endswith(_CACHE_PARTS) for part in parts):
        return ["a cache of LVM"]
    return []


def _text_of(path: Path) -> str | None:
    """The text of a file of sysfs; None without one."""
    try:
        return path.read_bytes().decode(errors="backslashreplace").strip()
    except OSError:
        return None


def check_directory(directory: Path, needed_bytes: int, allow_memory: bool) -> None:
    """Rejects a directory that cannot contain the test files, before the first run."""
    if not directory.is_dir():
        raise RejectedError(f"{directory}: no such directory; create it or name another")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RejectedError(f"{directory}: not writable by this user; name another directory")
    check_storage(directory, mount_of(directory), allow_memory)
    devices = [*backing_devices(directory), *log_devices(directory)]
    check_not_in_memory(devices, str(directory), allow_memory)
    free = os.statvfs(directory)
    free_bytes = free.f_bavail * free.f_frsize
    if free_bytes < needed_bytes:
        raise RejectedError(
            f"{directory}: {needed_bytes / 1e6:.0f} MB needed for the test files, "
            f"{free_bytes / 1e6:.0f} MB free; free some room or choose a smaller preset"
        )


def check_not_in_memory(devices: Sequence[BlockDevice], name: str, allow_memory: bool) -> None:
    """RejectedError if one of the devices keeps its data in memory."""
    reason = None
    if not allow_memory:
        reason = why_any_in_memory(devices)
    if reason is not None:
        raise RejectedError(
            f"{name}: {reason}, so there is no storage device to measure. Name one that is on a "
            "disk (or give --allow-memory-filesystem to try things out)"
        )


def check_storage(directory: Path, mount: Mount, allow_memory: bool) -> None:
    """Rejects a mount that cannot be written, or has no storage to measure."""
    if "ro" in mount.options.split(","):
        raise RejectedError(f"{directory}: {mount.mount_point} is mounted read-only")
    if mount.filesystem in WITHOUT_STORAGE and not allow_memory:
        raise RejectedError(
            f"{directory} is on {mount.filesystem}, which has no storage device to measure; "
            "name a directory on a disk (or try eeio with --allow-memory-filesystem)"
        )
