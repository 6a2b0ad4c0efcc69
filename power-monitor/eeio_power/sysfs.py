"""Reading numbers out of sysfs and procfs."""

import errno
import os
import re
from pathlib import Path

from eeio_limits.inputs import SYSFS_BYTES, size

# sysfs gives a page at most; /proc/stat of a large machine is longer.
_CHUNK = 1 << 16

_PARTS = re.compile(r":[0-9a-f]+(?=:|$)|[0-9]+|[^0-9:]+|:")


def read_text(path: Path) -> str:
    """The file's text without surrounding white space. Raises OSError as the kernel gave it."""
    # Several times as fast as a text file of Python's, and this is read ten times a second.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while more := os.read(fd, _CHUNK):
            data += more
            if len(data) > SYSFS_BYTES:
                raise OSError(errno.EFBIG, f"longer than {size(SYSFS_BYTES)}", str(path))
    finally:
        os.close(fd)
    return data.decode("ascii", errors="replace").strip()


def read_int(path: Path) -> int:
    """The file's integer. Raises OSError, or ValueError if it holds something else."""
    # One read: an integer is never longer, and this is what a fast meter does all day.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(fd, 64))
    finally:
        os.close(fd)


def read_optional_int(path: Path) -> int | None:
    """The file's integer, or None if it cannot be read or holds something else."""
    try:
        return read_int(path)
    except (OSError, ValueError):
        return None


def read_optional_text(path: Path) -> str | None:
    """The file's text, or None if it cannot be read or is empty."""
    try:
        return read_text(path) or None
    except OSError:
        return None


def own_path(folder: Path) -> Path:
    """Where a link of a class leads: the device's own place, which no other device ever has.

    hwmon2 may be another chip after its driver was loaded again. A link in a circle leads nowhere.
    """
    return Path(os.path.realpath(folder))


def by_number(path: Path) -> list[tuple[int, str]]:
    """Sort key that puts `hwmon2` before `hwmon10` and `intel-rapl:0` before `intel-rapl:0:0`.

    A number after a colon is hexadecimal, as powercap's are: `intel-rapl:9` before `intel-rapl:a`.
    """
    return [
        (int(part[1:], 16), ":") if part[0] == ":" and len(part) > 1
        else (int(part), "") if part.isdigit()
        else (-1, part)
        for part in _PARTS.findall(path.name)
    ]  # fmt: skip
