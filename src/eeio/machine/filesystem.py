"""The file system under a directory, and the block device under that."""

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eeio.errors import RejectedError
from eeio.files.mounts import Mount as Mount
from eeio.files.mounts import innermost, mount_in, parse_mountinfo

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
"""The kernel's account of a process has none of the bytes that it writes there."""
# File systems in memory, or without storage: no I/O cost to measure.
WITHOUT_STORAGE = frozenset(
    {
        "tmpfs",
        "ramfs",
        "devtmpfs",
        "overlay",
        "fuse.fuse-overlayfs",
        "aufs",
        "squashfs",
        "proc",
        "sysfs",
        "devpts",
        "cgroup",
        "cgroup2",
        "tracefs",
        "debugfs",
    }
)

# Why no device of this machine counts the bytes of these, and the consequences.
_WHY = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"(ubifs|jffs2|yaffs)", "its flash is no block device: the kernel counts no bytes of it"),
        (r"zfs$", "its pool has the devices, and its cache (ARC) may answer reads"),
        (
            r"(nfs|cifs|smb|ceph|glusterfs|lustre|beegfs|afs|gpfs|wekafs|pvfs2|orangefs|panfs)",
            "its server has the devices, and its caches may answer",
        ),
        (r"(9p|virtiofs)", "the host has the devices, and its caches may answer"),
        (r"(overlay|aufs|fuse)", "the file system below it has the devices"),
    )
)

# Of a drive, in its folder of /sys/block: whichever of these there are.
_IDENTIFYING = (
    "wwid",
    "device/wwid",
    "device/serial",
    "device/cid",
    "device/model",
    "serial",
    "dm/uuid",
    "md/uuid",
    "loop/backing_file",
)


_PROGRAMS = re.compile(r"fuse(\..*)?")
"""Without fuseblk, whose data the kernel writes itself."""


def is_served_by_a_program(mount: Mount) -> bool:
    """Whether a file system is FUSE, and so a program keeps its data wherever it wants: the kernel
    neither flushes them (syncfs) nor sees their pages."""
    return _PROGRAMS.fullmatch(mount.filesystem) is not None


_LOGS_OF_XFS = ("logdev", "rtdev")


@dataclass(frozen=True)
class BlockDevice:
    """A block device by its kernel name (`sda1`, `loop0`) and number. `root` is another tree than
    `/` for a machine that was laid out from a description."""

    name: str
    major: int
    minor: int
    root: Path = field(default=Path("/"), kw_only=True)

    @property
    def sysfs(self) -> Path:
        # By name, not number: podman hides /sys/dev/block from containers.
        return self.root / "sys/class/block" / self.name

    @property
    def node(self) -> Path:
        """Its name, also in another tree: the file is there at `root` and this."""
        return Path("/dev") / self.name

    @property
    def disk_sysfs(self) -> Path:
        """The disk's folder: a partition has no queue."""
        folder = self.sysfs.resolve()
        if (folder / "partition").exists():
            return folder.parent
        return folder

    @property
    def partitions(self) -> "list[BlockDevice]":
        """Those of the kernel; a partition has none."""
        partitions = []
        for entry in sorted(self.sysfs.resolve().glob("*/partition")):
            major, _, minor = (entry.parent / "dev").read_text(encoding="ascii").partition(":")
            partitions.append(
                BlockDevice(entry.parent.name, int(major), int(minor), root=self.root)
            )
        return partitions

    @property
    def size_bytes(self) -> int:
        # In units of 512 bytes, whatever the device's sectors are.
        return int((self.sysfs / "size").read_text(encoding="ascii")) * 512

    @property
    def block_bytes(self) -> int | None:
        """Size of a logical block: direct requests are a multiple of it. None if unknown."""
        with suppress(OSError, ValueError):
            return int((self.disk_sysfs / "queue/logical_block_size").read_text(encoding="ascii"))
        return None

    @property
    def has_poll_queues(self) -> bool:
        """Whether a program can poll it for completions; also True if the kernel does not say."""
        try:
            return (self.disk_sysfs / "queue/io_poll").read_text(encoding="ascii").strip() != "0"
        except OSError:
            return True

    @property
    def identity(self) -> str:
        """A stable identity across reboots: the name may be another's then."""
        texts = []
        for name in _IDENTIFYING:
            with suppress(OSError):
                # A drive's serial number and an image's name may hold any bytes.
                text = (self.disk_sysfs / name).read_bytes().decode(errors="backslashreplace")
                texts.append(text.strip())
        if not any(texts):
            # Device mapper without a UUID and similar: by the devices below.
            with suppress(OSError):
                for lower in sorted((self.disk_sysfs / "slaves").iterdir()):
                    device = named_device(lower.name, self.root)
                    if device is not None:
                        texts.append(f"on {device.identity}")
        with suppress(OSError):
            number = (self.sysfs / "partition").read_text(encoding="ascii").strip()
            texts.append(f"partition {number}")
        return ", ".join(dict.fromkeys([*filter(None, texts), f"{self.size_bytes} bytes"]))


def mounts(root: Path = Path("/")) -> list[Mount]:
    """Every mount of this mount namespace, oldest first."""
    return parse_mountinfo((root / "proc/self/mountinfo").read_bytes())


def mount_of(directory: Path, root: Path = Path("/")) -> Mount:
    """The mount of `directory`. For another machine only the mounts are known, not the targets of
    its links, nor which mount hides another."""
    known = mounts(root)
    mount = None
    if root == Path("/"):
        directory = directory.resolve()
        mount = mount_in(known, directory)
    mount = mount or innermost(known, Path(os.path.normpath(directory)))
    if mount is None:
        raise RejectedError(
            f"{directory}: cannot determine its file system: /proc/self/mountinfo lists no "
            f"mount at {directory} or a folder above it, not even /. In a chroot make the new "
            "root a mount point (`mount --bind ROOT ROOT` before entering it), or name a "
            "directory on a mount"
        )
    return mount


def device_number(node: Path) -> tuple[int, int] | None:
    """Major and minor number of the block device at a node, or None when it is not one."""
    try:
        status = node.stat()
    except (OSError, ValueError):
        return None
    # A character device may have a block device's number: /dev/null that of /dev/ram3.
    if not stat.S_ISBLK(status.st_mode):
        return None
    return os.major(status.st_rdev), os.minor(status.st_rdev)


def block_device(node: Path, root: Path = Path("/")) -> BlockDevice | None:
    """The block device behind a node such as /dev/sda, or None when it is not one."""
    if root != Path("/"):
        # A description has plain files and links for nodes: their names are the kernel's.
        return named_device((root / str(node).lstrip("/")).resolve().name, root)
    number = device_number(node)
    if number is None:
        return None
    return device_of_number(*number, root)


def backing_device(
    directory: Path, root: Path = Path("/")
) -> tuple[BlockDevice | None, str | None]:
    """The one block device with `directory`'s files, or None and why there is none: a file system
    that spans several devices is not attributed to any of them."""
    names = _device_names(directory, root)
    devices = backing_devices(directory, root)
    if len(names) == len(devices) == 1:
        return devices[0], None
    mount = mount_of(directory, root)
    if len(names) > 1:
        return None, f"{mount.mount_point} spans {len(names)} devices: {', '.join(names)}"
    reason = next((f" ({why_not})" for kind, why_not in _WHY if kind.match(mount.filesystem)), "")
    return (
        None,
        f"there is not a block device under {mount.filesystem} at {mount.mount_point}{reason}",
    )


def backing_devices(directory: Path, root: Path = Path("/")) -> list[BlockDevice]:
    """All block devices of `directory`'s file system that the kernel shows."""
    devices = [named_device(name, root) for name in _device_names(directory, root)]
    return [device for device in devices if device is not None]


def _device_names(directory: Path, root: Path) -> list[str]:
    """A file system with anonymous device numbers (btrfs) is known by its mount source. A path of
    another machine, or one that this user may not look up, is known by its mount only."""
    number = None
    if root == Path("/"):
        with suppress(PermissionError):
            number = directory.stat().st_dev
    if number is not None:
        device = device_of_number(os.major(number), os.minor(number), root)
    else:
        major, _, minor = mount_of(directory, root).number.partition(":")
        device = None
        if major.isdecimal():
            device = device_of_number(int(major), int(minor), root)
    if device is not None:
        return [device.name]
    mount = mount_of(directory, root)
    # bcachefs lists all its devices: /dev/sda:/dev/sdb.
    sources = mount.source.split(":") if mount.filesystem == "bcachefs" else [mount.source]
    if len(sources) > 1:
        nodes = {source: block_device(Path(source), root) for source in sources}
        return [node.name if node else Path(source).name for source, node in nodes.items()]
    source = Path(mount.source)
    device = None
    if source.is_absolute():
        device = block_device(source, root)
    if device is None:
        return []
    return _btrfs_members(device)


def log_devices(directory: Path) -> list[BlockDevice]:
    """Further devices of `directory`'s file system: of its log (xfs, ext4), and of xfs's real-time
    part."""
    mount = mount_of(directory)
    if mount.filesystem == "xfs":
        options = (option.partition("=") for option in mount.options.split(","))
        nodes = []
        for name, _, value in options:
            if name in _LOGS_OF_XFS:
                nodes.append(block_device(Path(value)))
        return [node for node in nodes if node is not None]
    devices = []
    for device in backing_devices(directory):
        with suppress(OSError):
            # The thread of a journal in the file system is jbd2/sda1-8.
            process = Path("/sys/fs/ext4", device.name, "journal_task").read_text().strip()
            thread = Path("/proc", process, "comm").read_text().strip()
            log = named_device(thread.removeprefix("jbd2/"), device.root)
            if thread.startswith("jbd2/") and log is not None:
                devices.append(log)
    return devices


def options_of(mount: Mount) -> frozenset[str]:
    """The options of a mount. Those of ext4 that are a default of its superblock are not in the
    table of mounts; the kernel lists them elsewhere."""
    options = set(mount.options.split(","))
    if is_served_by_ext4(mount):
        with suppress(OSError):
            options.update((_folder_of_ext4(mount) / "options").read_text().split())
    return frozenset(options)


def is_served_by_ext4(mount: Mount) -> bool:
    """Whether the kernel's ext4 driver serves it, as it may ext2 and ext3."""
    return mount.filesystem in ("ext2", "ext3", "ext4") and _folder_of_ext4(mount).is_dir()


def _folder_of_ext4(mount: Mount) -> Path:
    """Where ext4's driver describes a file system that it serves."""
    return Path("/proc/fs/ext4", Path("/sys/dev/block", mount.number).resolve().name)


def folder_below(mount: Mount) -> Path | None:
    """The folder into which overlayfs writes; None for other file systems, and where it is not
    visible, as in a container."""
    if mount.filesystem != "overlay":
        return None
    for option in mount.options.split(","):
        name, _, value = option.partition("=")
        if name == "upperdir" and Path(value).is_absolute() and Path(value).is_dir():
            return Path(value)
    return None


def further_devices(directory: Path) -> list[BlockDevice]:
    """Devices that serve `directory`, too: of its file system's log, and those below overlayfs."""
    below = folder_below(mount_of(directory))
    if below is None:
        return log_devices(directory)
    return [*backing_devices(below), *log_devices(below)]


def device_of_number(major: int, minor: int, root: Path) -> BlockDevice | None:
    """The device with that number; None if it is anonymous, or unknown."""
    if major == 0:
        return None
    for folder in (root / "sys/class/block").glob("*"):
        device = named_device(folder.name, root)
        if device is not None and (device.major, device.minor) == (major, minor):
            return device
    return None


DEEPEST = 8
"""Of a stack of devices."""


def drives_below(device: BlockDevice, depth: int = 0) -> list[BlockDevice]:
    """The drives that a device is on: itself, or the leaves of its slaves; of several paths to one
    drive (multipath) the first."""
    drives: dict[str, BlockDevice] = {}
    names: list[str] = []
    with suppress(OSError):
        names = sorted(e.name for e in (device.disk_sysfs / "slaves").iterdir())
    for name in names if depth < DEEPEST else ():
        lower = named_device(name, device.root)
        for drive in drives_below(lower, depth + 1) if lower is not None else ():
            wwid = ""
            for place in ("wwid", "device/wwid"):
                with suppress(OSError):
                    text = (drive.disk_sysfs / place).read_bytes()
                    wwid = wwid or text.decode(errors="backslashreplace").strip()
            drives.setdefault(wwid or drive.disk_sysfs.name, drive)
    return list(drives.values()) or [device]


def zone_bytes(device: BlockDevice | None) -> int | None:
    """Size of a zone of a drive that accepts writes only at the write pointer of each zone (ZNS,
    host-managed SMR), bytes; None for other drives."""
    if device is None:
        return None
    queue = device.disk_sysfs / "queue"
    try:
        if (queue / "zoned").read_text(encoding="ascii").strip() != "host-managed":
            return None
        # The kernel's documentation of chunk_sectors: sectors of 512 bytes, on any drive.
        return 512 * int((queue / "chunk_sectors").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def one_drive(device: BlockDevice) -> BlockDevice:
    """The only drive below a device (encryption, logical volume, paths); else the device."""
    drives = drives_below(device)
    if len(drives) == 1:
        return drives[0]
    return device


def named_device(name: str, root: Path = Path("/")) -> BlockDevice | None:
    """The block device of that kernel name (`sda1`), or None."""
    with suppress(OSError, ValueError):
        text = (root / "sys/class/block" / name / "dev").read_text(encoding="ascii")
        major, _, minor = text.partition(":")
        return BlockDevice(name, int(major), int(minor), root=root)
    return None


def _btrfs_members(device: BlockDevice) -> list[str]:
    for folder in (device.root / "sys/fs/btrfs").glob("*-*-*/devices"):
        members = sorted(entry.name for entry in folder.iterdir())
        if device.name in members:
            return members
    return [device.name]
