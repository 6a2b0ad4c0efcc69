"""A file system on a loop device that block control groups (version 1) hold to a rate."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

THROTTLES = {
    way: Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device") for way in ("read", "write")
}
LAZY = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Options of mke2fs: nothing is left for the file system to write later."""


@contextmanager
def throttled(
    folder: Path,
    rate_bytes_per_s: int,
    size_bytes: int,
    ways: Sequence[str],
    geometry: Sequence[str] = LAZY,
    attach: Sequence[str] = (),
) -> Iterator[tuple[Path, Path]]:
    """Where to write, and the device's folder in sysfs; `ways` are `read` and `write`, `attach`
    further words for losetup. SystemExit where nothing can hold it."""
    throttles = [THROTTLES[way] for way in ways]
    if not all(path.exists() for path in throttles):
        raise SystemExit(f"{throttles[0]} is not here: it takes block control groups (v1)")
    image, target = folder / "image", folder / "target"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    target.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", *geometry, str(image)], check=True, timeout=60)
    loop = subprocess.run(
        ["losetup", "--find", "--show", *attach, str(image)],
        check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    node = Path(loop.stdout.strip())
    sysfs = Path("/sys/block") / node.name
    number = (sysfs / "dev").read_text().strip()
    try:
        subprocess.run(["mount", str(node), str(target)], check=True, timeout=60)
        try:
            for throttle in throttles:
                throttle.write_text(f"{number} {rate_bytes_per_s}\n")
            yield target, sysfs
        finally:
            for throttle in throttles:
                throttle.write_text(f"{number} 0\n")
            subprocess.run(["umount", str(target)], check=True, timeout=120)
    finally:
        subprocess.run(["losetup", "--detach", str(node)], check=True, timeout=60)
