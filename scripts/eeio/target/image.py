"""File systems made for a campaign, on a loop image or on a device the user gave up."""

from pathlib import Path

from eeio.target.undo import Entry, UndoJournal, run_command
from eeio_results.errors import EeioError

# No discard, which would punch holes into a loop image; and ext4 initializes its tables now
# instead of in the background while the campaign measures.
_EXT4 = ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
# What follows a + is a feature; before it stands the type to mount.
MKFS = {
    "ext4": _EXT4,
    "ext4+nojc": [*_EXT4, "-O", "^has_journal"],
    "ext4+fast_commit": [*_EXT4, "-O", "fast_commit"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}
# What a file system needs for itself beside the test files; xfs refuses less than 300 MiB.
OVERHEAD_BYTES = 320 << 20
# Between asking for a free loop device and taking it.
_TRIES = 5


def make_on_loop(
    filesystem: str, directory: Path, size_bytes: int, journal: UndoJournal
) -> tuple[Path, str]:
    """A new file system of at least `size_bytes` free, on an image in `directory`, mounted.

    Returns the mount point and the mkfs command. Image, loop device and mount are taken away
    again through the journal.
    """
    image = directory / f"eeio-{filesystem}.img"
    if image.exists():
        raise EeioError(f"{image} is there already; is another campaign using it? Delete it if not")
    journal.add(Entry("file", str(image)))
    total = size_bytes + size_bytes // 8 + OVERHEAD_BYTES
    # Allocated, not sparse: the image must not run out of room in the middle of a run.
    run_command(["fallocate", "--length", str(total), str(image)])
    return make_on_device(filesystem, _attach(image, journal), directory, journal)


def _attach(image: Path, journal: UndoJournal) -> Path:
    """A loop device over `image`, noted before it is taken; another program may be faster."""
    for left in reversed(range(_TRIES)):
        loop = run_command(["losetup", "--find"]).strip()
        # As the kernel will tell it: without symbolic links.
        entry = Entry("loop", loop, str(image.resolve()))
        journal.add(entry)
        try:
            # Direct I/O on the image keeps its pages out of the cache a second time.
            run_command(["losetup", "--direct-io=on", loop, str(image)])
        except EeioError:
            journal.undo(entry)
            if left == 0:
                raise
        else:
            break
    return Path(loop)


def make_on_device(
    filesystem: str, node: Path, directory: Path, journal: UndoJournal
) -> tuple[Path, str]:
    """A new file system on `node`, mounted under `directory`; what was on the device is lost."""
    command = [*MKFS[filesystem], str(node)]
    run_command(command)
    mount_point = directory / f"eeio-{filesystem}"
    journal.add(Entry("directory", str(mount_point)))
    mount_point.mkdir()
    journal.add(Entry("mount", str(mount_point)))
    run_command(["mount", "-t", filesystem.partition("+")[0], str(node), str(mount_point)])
    return mount_point, " ".join(command)
