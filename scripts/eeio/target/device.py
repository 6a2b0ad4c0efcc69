"""Whether a block device may be read, or written over."""

import errno
import os
import stat
from pathlib import Path

from eeio.errors import RefusedError
from eeio.target.filesystem import BlockDevice, block_device, mounts

_SAMPLES = 256
_SAMPLE_BYTES = 4096


def check_readable(node: Path) -> BlockDevice:
    """The device at `node`, which this user can read; RefusedError otherwise."""
    try:
        mode = node.stat().st_mode
    except OSError as error:
        raise RefusedError(f"{node}: {error.strerror}; `lsblk` lists the devices") from error
    device = block_device(node)
    if not stat.S_ISBLK(mode) or device is None:
        raise RefusedError(f"{node} is not a block device; `lsblk` lists them")
    if not os.access(node, os.R_OK):
        raise RefusedError(f"{node}: this user may not read it; run as root or join group disk")
    return device


def check_unused(node: Path) -> BlockDevice:
    """The device at `node`, which is readable and which nothing has mounted."""
    device = check_readable(node)
    for member in [device, *_partitions(device)]:
        _refuse_in_use(member)
    return device


def check_erasable(node: Path, erase: Path) -> BlockDevice:
    """The device at `node`, which may be written over: it is the one the user named with --erase,
    and nothing uses it. RefusedError says what does."""
    device = check_readable(node)
    if node.resolve() != erase.resolve():
        raise RefusedError(
            f"--erase names {erase}, --device names {node}: to write to a device name it twice"
        )
    family = [device, *_partitions(device)]
    for member in family:
        _refuse_in_use(member)
    try:
        # The kernel grants an exclusive open only to a device that nothing has claimed.
        os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise RefusedError(f"{node} is in use by the kernel (RAID, LVM, swap?)") from error
        raise RefusedError(f"{node}: {error.strerror}") from error
    if not os.access(node, os.W_OK):
        raise RefusedError(f"{node}: this user may not write to it; run as root")
    return device


def zero_share(node: Path, length_bytes: int) -> float:
    """Share of blocks, sampled evenly over the first `length_bytes`, that hold nothing but zeros.

    A drive answers for blocks that were never written, or were trimmed, without touching its
    medium, and it answers with zeros; the block layer's counters do not show that.
    """
    step = max(_SAMPLE_BYTES, length_bytes // _SAMPLES // _SAMPLE_BYTES * _SAMPLE_BYTES)
    empty = bytes(_SAMPLE_BYTES)
    found = []
    with node.open("rb", buffering=0) as device:
        for offset in range(0, length_bytes - _SAMPLE_BYTES + 1, step):
            device.seek(offset)
            found.append(device.read(_SAMPLE_BYTES) == empty)
    return sum(found) / len(found) if found else 0.0


def _partitions(device: BlockDevice) -> list[BlockDevice]:
    found = []
    for entry in device.sysfs.resolve().glob(f"{device.name}*/partition"):
        partition = block_device(Path("/dev") / entry.parent.name)
        if partition is not None:
            found.append(partition)
    return found


def _refuse_in_use(device: BlockDevice) -> None:
    for mount in mounts():
        source = Path(mount.source)
        mounted = block_device(source) if source.is_absolute() else None
        if mounted == device or _holds(mount.mount_point, device):
            raise RefusedError(f"{device.node} is mounted at {mount.mount_point}; unmount it first")
    holders = device.sysfs.resolve() / "holders"
    if holders.is_dir() and (names := sorted(entry.name for entry in holders.iterdir())):
        raise RefusedError(f"{device.node} is used by {', '.join(names)}; take it out first")
    swaps = Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]
    if any(block_device(Path(line.split()[0])) == device for line in swaps):
        raise RefusedError(f"{device.node} is swap space; `swapoff {device.node}` first")


def _holds(mount_point: Path, device: BlockDevice) -> bool:
    """Whether the file system there has this device's number (its source name may be an alias)."""
    try:
        number = mount_point.stat().st_dev
    except OSError:
        return False
    return (os.major(number), os.minor(number)) == (device.major, device.minor)
