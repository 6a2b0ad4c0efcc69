"""The mounts that this process sees, and which of them a path is on."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mount:
    """One line of /proc/PID/mountinfo; `number` is its device's, such as `8:1` (btrfs and those
    without a device have an anonymous one). `id` is the mount's own."""

    mount_point: Path
    filesystem: str
    source: str
    options: str
    number: str
    id: int = 0


def parse_mountinfo(text: bytes) -> list[Mount]:
    """The lines of a mountinfo file (proc_pid_mountinfo(5)), which may hold any bytes; a line that
    is cut off is passed over."""
    mounts = []
    for line in text.split(b"\n"):
        left, _, right = line.partition(b" - ")
        fields, of_filesystem = left.split(b" "), right.split(b" ")
        if len(fields) < 6 or len(of_filesystem) < 2 or not fields[0].isdigit():
            continue
        both = b",".join([fields[5], *of_filesystem[2:3]]).decode(errors="backslashreplace")
        mounts.append(
            Mount(
                Path(unescape(fields[4])),
                of_filesystem[0].decode(errors="backslashreplace"),
                unescape(of_filesystem[1]),
                ",".join(dict.fromkeys(both.split(","))),
                fields[2].decode(errors="backslashreplace"),
                int(fields[0]),
            )
        )
    return mounts


def unescape(text: bytes) -> str:
    """A name as the kernel writes it into mountinfo and swaps: blanks and others are octal."""
    return os.fsdecode(re.sub(rb"\\([0-3][0-7]{2})", lambda octal: bytes([int(octal[1], 8)]), text))


def mount_in(mounts: Iterable[Mount], path: Path) -> Mount | None:
    """The mount of a path of this machine, without following a link at its end. The kernel knows
    it, also where a later mount hides an older one; None if it is not among `mounts`."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        described = Path("/proc/self/fdinfo", str(descriptor)).read_bytes()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    own = re.search(rb"^mnt_id:\s*(\d+)$", described, re.MULTILINE)
    of_id = {mount.id: mount for mount in mounts}
    if own is None:
        return None
    return of_id.get(int(own[1]))


def innermost(mounts: Iterable[Mount], path: Path) -> Mount | None:
    """The last mount at the longest part of a path, by the names of the mount points only."""
    best: Mount | None = None
    for mount in mounts:
        is_above = path.is_relative_to(mount.mount_point)
        if is_above and (best is None or len(str(mount.mount_point)) >= len(str(best.mount_point))):
            best = mount
    return best
