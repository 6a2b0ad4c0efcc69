"""Mounts and loop devices that a test takes away."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import until

_PATIENCE_S = 60.0


def unmount(point: Path | str) -> None:
    """Unmounts it. Another test's process that looks at all mounts may keep it busy for a moment.
    Raises CalledProcessError if that does not end."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        late = time.monotonic() > deadline_s
        done = subprocess.run(["umount", str(point)], check=late, capture_output=True, text=True)
        if done.returncode == 0:
            return
        if "busy" not in done.stderr:
            done.check_returncode()
        time.sleep(0.2)


@contextmanager
def attached(image: Path) -> Iterator[Path]:
    """The image's loop device. Skips where there is none."""
    command = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    node = Path(done.stdout.strip())
    try:
        yield node
    finally:
        detach(node, image)


@contextmanager
def mounted(source: Path, point: Path, *options: str) -> Iterator[Path]:
    """Mounted there, in a new folder. Skips where that is not permitted."""
    point.mkdir()
    command = ["mount", *options, str(source), str(point)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        yield point
    finally:
        unmount(point)


def sparse(path: Path, size_bytes: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def wait_for_losetup(node: Path) -> None:
    """Until no `losetup --find` has the device open: that of another test may have taken it for a
    free one, and tries the next after a moment."""
    until(lambda: not any(_opens(process, node) for process in Path("/proc").glob("[0-9]*")))


def _opens(process: Path, node: Path) -> bool:
    with suppress(OSError):
        if (process / "comm").read_text() == "losetup\n":
            return any(file.readlink() == node for file in (process / "fd").iterdir())
    return False


def detach(node: Path | str, image: Path) -> None:
    """Detaches the loop device if it is still the one of this image: other tests get the same
    numbers."""
    with suppress(OSError):
        backing = Path("/sys/class/block", Path(node).name, "loop/backing_file").read_bytes()
        if bytes(image.resolve()) in backing:
            subprocess.run(["losetup", "--detach", str(node)], check=True)
