"""Mounts and loop devices that a test takes away."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

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


def detach(node: Path | str, image: Path) -> None:
    """Detaches the loop device if it is still the one of this image: other tests get the same
    numbers."""
    with suppress(OSError):
        backing = Path("/sys/class/block", Path(node).name, "loop/backing_file").read_bytes()
        if bytes(image.resolve()) in backing:
            subprocess.run(["losetup", "--detach", str(node)], check=True)
