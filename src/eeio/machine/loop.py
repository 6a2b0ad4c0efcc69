"""Loop devices: their image, as the kernel knows it."""

import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

_LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h
# struct loop_info64: lo_device, lo_inode, lo_rdevice and unused fields.
_LOOP_INFO64 = struct.Struct("=QQQ208x")


@dataclass(frozen=True)
class LoopStatus:
    """`file`: device and inode of the image, as stat(2) reports them. `block`: the number of the
    image if it is a block device itself."""

    file: tuple[int, int]
    block: int | None


def status(node: Path) -> LoopStatus | None:
    """Of the loop device at `node`; None if this user may not ask, or no image is attached. This is
    the reliable source: the image's name may be gone, or mean another file elsewhere."""
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO64.size))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    device, inode, own = _LOOP_INFO64.unpack(info)
    # Of a plain file the kernel gives no number, or that of its file system again.
    return LoopStatus((device, inode), None if own in (0, device) else own)
