"""A file system on a loop device whose bandwidth is known."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_THROTTLES = [
    Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device") for way in ("read", "write")
]


@contextmanager
def throttled_directory(
    folder: Path, bytes_per_s: int, *, in_memory: bool = False
) -> Iterator[Path]:
    """A directory that moves so much; its image lies in `folder`, whose disk others may use, or
    `in_memory`. Skips where that needs what is not here; needs root."""
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    if not all(path.exists() for path in _THROTTLES):
        pytest.skip("needs the blkio controller of cgroup v1, which holds a device to a rate")
    below, mount = folder / "below", folder / "steady"
    below.mkdir()
    if in_memory:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(below)],
            check=True,
            timeout=300,
        )
    try:
        with _throttled(below / "image", mount, bytes_per_s, direct=not in_memory):
            yield mount
    finally:
        if in_memory:
            # Lazily: the kernel may still be detaching the loop device.
            subprocess.run(["umount", "--lazy", str(below)], check=True, timeout=300)


@contextmanager
def _throttled(image: Path, mount: Path, bytes_per_s: int, *, direct: bool) -> Iterator[None]:
    with image.open("wb") as file:
        file.truncate(400 << 20)
    loop = subprocess.run(
        ["losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", str(image)],
        capture_output=True, text=True, check=True, timeout=300,
    ).stdout.strip()  # fmt: skip
    number = Path(loop).stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    try:
        subprocess.run(
            ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", loop], check=True, timeout=300
        )
        mount.mkdir()
        subprocess.run(["mount", loop, str(mount)], check=True, timeout=300)
        for path in _THROTTLES:
            path.write_text(f"{name} {bytes_per_s}")
        yield
    finally:
        for path in _THROTTLES:
            path.write_text(f"{name} 0")
        subprocess.run(["umount", str(mount)], check=False, timeout=300)
        subprocess.run(["losetup", "--detach", loop], check=True, timeout=300)
