"""File systems made for a campaign, on a loop image or on a device the user gave up."""

import os
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import RejectedError
from eeio.system import nfs
from eeio.system.device import ErasedDevice
from eeio.system.undo import UndoEntry, UndoJournal, run_command
from eeio_results.errors import EeioError

# No discard, which would punch holes into a loop image; and ext4 initializes its tables now
# instead of in the background while the campaign measures.
_EXT4 = ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
DELAYJC = "ext4+delayjc"
"""ext4 with delayed fsync calls, so that one commit of the journal serves many."""
# The part after + is a feature; the part before it is the type to mount.
MKFS = {
    "ext4": _EXT4,
    "ext4+nojc": [*_EXT4, "-O", "^has_journal"],
    "ext4+fast_commit": [*_EXT4, "-O", "fast_commit"],
    # As ext4: the difference is in a library (campaign/watch.py).
    DELAYJC: _EXT4,
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}
# One of these served to this machine by NFS: `nfs`, `nfs@1gbit+0.5ms`.
NFS = "nfs[@RATE][+DELAY]"
# The option that takes a UUID, by the type.
_UUID_OPTION = {"ext4": ["-U"], "xfs": ["-m"], "btrfs": ["-U"]}
# Space for the file system in addition to the test files; xfs rejects less than 300 MiB.
OVERHEAD_BYTES = 320 << 20
# Tables of a large slow drive take minutes to write, and so does an image that must be zeroed.
_MAKE_S = 3600.0
# Between asking for a free loop device and taking it.
_TRIES = 5


def in_the_way(filesystem: str, directory: Path) -> Path | None:
    """An existing file with the name of the image or its mount point, if any, also a dangling
    link."""
    names = (directory / f"eeio-{filesystem}.img", directory / f"eeio-{filesystem}")
    return next((path for path in names if os.path.lexists(path)), None)


@dataclass(frozen=True)
class Made:
    """A created file system, a description of how, and its path on the server if there is one."""

    mount_point: Path
    how: str
    served: Path | None = None


def check(filesystem: str) -> None:
    """Rejects an unknown name, and NFS if this machine does not support it."""
    if nfs.is_nfs(filesystem):
        nfs.check(filesystem)
    elif filesystem not in MKFS:
        raise RejectedError(f"--filesystem {filesystem}: eeio makes {', '.join([*MKFS, NFS])}")


def how(filesystem: str) -> str:
    """How it is made: the command without the device's name, and its server."""
    if nfs.is_nfs(filesystem):
        return f"{' '.join(MKFS[nfs.SERVED])}, {nfs.told(filesystem)}"
    return " ".join(MKFS[filesystem])


def make_on_loop(filesystem: str, directory: Path, size_bytes: int, journal: UndoJournal) -> Made:
    """A new file system of at least `size_bytes` free, on an image in `directory`, mounted.

    Image, loop device and mount are taken away again through the journal.
    """
    image = directory / f"eeio-{filesystem}.img"
    _make_new(UndoEntry("file", str(image)), journal)
    mount_point = _new_mount_point(filesystem, directory, journal)
    total = size_bytes + size_bytes // 8 + OVERHEAD_BYTES
    # Allocated, not sparse: the image must not run out of room in the middle of a run.
    run_command(["fallocate", "--length", str(total), str(image)], _MAKE_S)
    loop = _attach(image, journal)
    command = [*MKFS[_on_disk(filesystem)], str(loop)]
    run_command(command, _MAKE_S)
    return _mount(filesystem, loop, mount_point, journal, " ".join(command))


def _on_disk(filesystem: str) -> str:
    return nfs.SERVED if nfs.is_nfs(filesystem) else filesystem


def _make_new(entry: UndoEntry, journal: UndoJournal) -> None:
    """A file or folder of eeio, noted before it is made; never an existing one, and never through a
    link."""
    path = Path(entry.subject)
    journal.add(entry)
    try:
        if entry.kind == "directory":
            path.mkdir()
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o600))
    except FileExistsError as error:
        journal.forget(entry)  # not created by eeio, so not deleted
        raise EeioError(
            f"{path} exists; another campaign may be using it. If not, delete it"
        ) from error


def _attach(image: Path, journal: UndoJournal) -> Path:
    """A loop device over `image`, noted before it is taken; another program may be faster."""
    for left in reversed(range(_TRIES)):
        loop = run_command(["losetup", "--find"]).strip()
        # As the kernel will report it: without symbolic links.
        entry = UndoEntry("loop", loop, str(image.resolve()))
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
    filesystem: str, device: ErasedDevice, directory: Path, journal: UndoJournal
) -> Made:
    """A new file system on `device`, mounted under `directory`; previous data on the device is
    destroyed.

    EeioError if the device may not, or no longer, be written.
    """
    # Before mkfs: `eeio doctor restore` ends the programs of a killed process that left a journal.
    mount_point = _new_mount_point(filesystem, directory, journal)
    kind, *_ = _on_disk(filesystem).partition("+")
    made = device.new_uuid()
    own = [*_UUID_OPTION[kind], f"uuid={made}" if kind == "xfs" else made]
    command = [*MKFS[_on_disk(filesystem)], *own, str(device.node)]
    with device.released():
        run_command(command, _MAKE_S)
    device.release()  # the mount protects it from now on
    return _mount(filesystem, device.node, mount_point, journal, " ".join(command))


def _new_mount_point(filesystem: str, directory: Path, journal: UndoJournal) -> Path:
    """Where the file system itself is mounted; of NFS, where the server sees it."""
    name = f"eeio-{filesystem}.served" if nfs.is_nfs(filesystem) else f"eeio-{filesystem}"
    _make_new(UndoEntry("directory", str(directory / name)), journal)
    return directory / name


def _mount(filesystem: str, node: Path, mount_point: Path, journal: UndoJournal, made: str) -> Made:
    kind, *_ = _on_disk(filesystem).partition("+")
    journal.add(UndoEntry("mount", str(mount_point)))
    run_command(["mount", "-t", kind, str(node), str(mount_point)])
    if not nfs.is_nfs(filesystem):
        return Made(mount_point, made)
    client = mount_point.with_name(f"eeio-{filesystem}")
    _make_new(UndoEntry("directory", str(client)), journal)
    nfs.serve(filesystem, mount_point, client, journal)
    return Made(client, f"{made}, {nfs.told(filesystem)}", mount_point)
