"""The file system under a directory, and the block device under that."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import RefusedError

# File systems that keep data in memory, or have no storage of their own: no I/O cost to measure.
WITHOUT_STORAGE = frozenset(
    {
        "tmpfs", "ramfs", "devtmpfs", "overlay", "fuse.fuse-overlayfs", "aufs", "squashfs", "proc",
        "sysfs", "devpts", "cgroup", "cgroup2", "tracefs", "debugfs",
    }
)  # fmt: skip

# Of a drive, in its folder of /sys/block: whichever of these there are.
_IDENTIFYING = (
    "wwid", "device/wwid", "device/serial", "device/cid", "device/model", "serial", "dm/uuid",
    "md/uuid", "loop/backing_file",
)  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    mount_point: Path
    filesystem: str
    source: str
    options: str


@dataclass(frozen=True)
class BlockDevice:
    """A block device by its kernel name (`sda1`, `loop0`) and number."""

    name: str
    major: int
    minor: int

    @property
    def sysfs(self) -> Path:
        # By name, not number: podman hides /sys/dev/block from containers.
        return Path("/sys/class/block") / self.name

    @property
    def node(self) -> Path:
        return Path("/dev") / self.name

    @property
    def disk_sysfs(self) -> Path:
        """The whole disk's folder: a partition has no queue of its own."""
        folder = self.sysfs.resolve()
        return folder.parent if (folder / "partition").exists() else folder

    @property
    def identity(self) -> str:
        """What a reboot leaves as it is: the name may be another's then."""
        words = []
        for name in _IDENTIFYING:
            with suppress(OSError):
                words.append((self.disk_sysfs / name).read_text(encoding="utf-8").strip())
        with suppress(OSError):
            number = (self.sysfs / "partition").read_text(encoding="ascii").strip()
            words.append(f"partition {number}")
        sectors = (self.sysfs / "size").read_text(encoding="ascii").strip()
        return ", ".join(dict.fromkeys([*filter(None, words), f"{int(sectors) * 512} bytes"]))


def mounts() -> list[Mount]:
    """Every mount of this mount namespace, oldest first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        fields, (filesystem, source, *super_options) = left.split(), right.split()
        both = ",".join([fields[5], *super_options[-1:]])
        options = ",".join(dict.fromkeys(both.split(",")))
        found.append(Mount(Path(_unescape(fields[4])), filesystem, _unescape(source), options))
    return found


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def mount_of(directory: Path) -> Mount:
    """The mount that `directory` lies on (the last one wins where mounts are stacked)."""
    resolved = directory.resolve()
    best: Mount | None = None
    for mount in mounts():
        inside = resolved == mount.mount_point or mount.mount_point in resolved.parents
        if inside and (best is None or len(str(mount.mount_point)) >= len(str(best.mount_point))):
            best = mount
    if best is None:
        raise RefusedError(
            f"{directory}: cannot tell its file system: /proc/self/mountinfo lists no mount at "
            f"{resolved} or a folder above it, not even /. In a chroot make the new root a mount "
            "point (`mount --bind ROOT ROOT` before entering it), or name a directory on a mount"
        )
    return best


def block_device(node: Path) -> BlockDevice | None:
    """The block device behind a node such as /dev/sda, or None when it is not one."""
    try:
        status = node.stat()
    except OSError:
        return None
    return _from_number(os.major(status.st_rdev), os.minor(status.st_rdev))


def backing_device(directory: Path) -> tuple[BlockDevice | None, str | None]:
    """The block device that holds `directory`'s files, or None and why there is none.

    A file system with device numbers of its own (btrfs) is found by its mount source; one that
    spans several devices is not attributed to any of them.
    """
    number = directory.stat().st_dev
    device = _from_number(os.major(number), os.minor(number))
    if device is not None:
        return device, None
    mount = mount_of(directory)
    source = Path(mount.source)
    device = block_device(source) if source.is_absolute() else None
    if device is None:
        return None, f"no block device lies under {mount.filesystem} at {mount.mount_point}"
    members = _btrfs_members(device)
    if len(members) > 1:
        return None, f"{mount.mount_point} spans {len(members)} devices: {', '.join(members)}"
    return device, None


def _from_number(major: int, minor: int) -> BlockDevice | None:
    if major == 0:
        return None
    for folder in Path("/sys/class/block").iterdir():
        with suppress(OSError):
            if (folder / "dev").read_text(encoding="ascii").strip() == f"{major}:{minor}":
                return BlockDevice(folder.name, major, minor)
    return None


def _btrfs_members(device: BlockDevice) -> list[str]:
    for folder in Path("/sys/fs/btrfs").glob("*-*-*/devices"):
        members = sorted(entry.name for entry in folder.iterdir())
        if device.name in members:
            return members
    return [device.name]


def check_directory(directory: Path, needed_bytes: int, allow_memory: bool) -> None:
    """Refuses a directory that cannot hold the test files, before anything runs."""
    if not directory.is_dir():
        raise RefusedError(f"{directory}: no such directory; create it or name another")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RefusedError(f"{directory}: not writable by this user; name another directory")
    mount = mount_of(directory)
    if "ro" in mount.options.split(","):
        raise RefusedError(f"{directory}: {mount.mount_point} is mounted read-only")
    if mount.filesystem in WITHOUT_STORAGE and not allow_memory:
        raise RefusedError(
            f"{directory} lies on {mount.filesystem}, which has no storage device to measure; "
            "name a directory on a disk (or give --allow-memory-filesystem to try things out)"
        )
    free = os.statvfs(directory)
    free_bytes = free.f_bavail * free.f_frsize
    if free_bytes < needed_bytes:
        raise RefusedError(
            f"{directory}: {needed_bytes / 1e6:.0f} MB needed for the test files, "
            f"{free_bytes / 1e6:.0f} MB free; free some room or choose a smaller preset"
        )
