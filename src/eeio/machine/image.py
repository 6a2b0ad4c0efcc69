"""File systems made for a campaign, on a loop image or on a device the user gave up.

A name is a type and, behind a +, a feature, a mount option or a layer: `ext4`, `ext4+nojc`,
`btrfs+zstd`, `ext4+dmcrypt`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.machine import fscrypt, nfs
from eeio.machine.device import ErasedDevice
from eeio.machine.undo import UndoEntry, UndoJournal, run_command

# No discard, which would punch holes into a loop image; and ext4 initializes its tables now
# instead of in the background while the campaign measures.
_EXT4 = ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]
DELAYJC = "ext4+delayjc"
"""ext4 with delayed fsync calls, so that one commit of the journal serves many."""
MKFS = {
    "ext4": _EXT4,
    "ext4+nojc": [*_EXT4, "-O", "^has_journal"],
    "ext4+fast_commit": [*_EXT4, "-O", "fast_commit"],
    # As ext4: the difference is in a library (campaign/watch.py).
    DELAYJC: _EXT4,
    "ext4+journal": _EXT4,
    "ext4+dmcrypt": _EXT4,
    "ext4+fscrypt": [*_EXT4, "-O", "encrypt"],
    "ext4+overlay": _EXT4,
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "xfs+dmcrypt": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
    "btrfs+zstd": ["mkfs.btrfs", "-q", "-f", "-K"],
    "f2fs": ["mkfs.f2fs", "-q", "-f", "-t", "0"],
    "bcachefs": ["bcachefs", "format", "--quiet", "--force"],
}
_OPTIONS = {"ext4+journal": "data=journal", "btrfs+zstd": "compress=zstd"}
"""Of mount(8)."""
COMPRESSING = ("btrfs+zstd",)
_CRYPT = [
    "cryptsetup",
    "open",
    "--type",
    "plain",
    "--cipher",
    "aes-xts-plain64",
    "--key-size",
    "512",
    "--key-file",
    "/dev/urandom",
]
"""A key that nobody knows: what is on the device ends with the campaign."""
# One of these served to this machine by NFS: `nfs`, `nfs@1gbit+0.5ms`.
NFS = "nfs[@RATE][+DELAY]"
# The option that takes a UUID, by the type.
_UUID_OPTION = {"ext4": "-U", "xfs": "-m", "btrfs": "-U", "f2fs": "-U", "bcachefs": "--uuid"}
# Space for the file system in addition to the test files; xfs rejects less than 300 MiB.
OVERHEAD_BYTES = 320 << 20
# Tables of a large slow drive take minutes to write, and so does an image that must be zeroed.
_MAKE_S = 3600.0
# Between asking for a free loop device and taking it.
_TRIES = 5


def in_the_way(filesystem: str, directory: Path) -> Path | None:
    """An existing file with the name of the image or its mount point, if any, also a dangling
    link."""
    for path in (directory / f"eeio-{filesystem}.img", directory / f"eeio-{filesystem}"):
        if os.path.lexists(path):
            return path
    return None


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
    else:
        for module in _needed(filesystem):
            if not _in_kernel(module):
                raise RejectedError(f"--filesystem {filesystem}: this kernel has no {module}")


def _needed(filesystem: str) -> list[str]:
    """What the kernel must have."""
    kind, _, layer = filesystem.partition("+")
    return [kind, *{"dmcrypt": ["dm_crypt"], "overlay": ["overlay"]}.get(layer, [])]


def _in_kernel(module: str) -> bool:
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    if module in known or Path("/sys/module", module).exists():
        return True
    try:
        run_command(["modprobe", "--dry-run", "--quiet", module])
    except EeioError:
        return False
    return True


def how(filesystem: str) -> str:
    """How it is made: the command without the device's name, and its server."""
    if nfs.is_nfs(filesystem):
        return f"{' '.join(MKFS[nfs.SERVED])}, {nfs.described(filesystem)}"
    layer = filesystem.partition("+")[2]
    parts = [" ".join(MKFS[filesystem])]
    if filesystem in _OPTIONS:
        parts.append(f"mounted with {_OPTIONS[filesystem]}")
    if layer == "dmcrypt":
        parts.append(f"on dm-crypt ({' '.join(_CRYPT)})")
    elif layer == "fscrypt":
        parts.append("in a folder encrypted by fscrypt (AES-256-XTS)")
    elif layer == "overlay":
        parts.append("below overlayfs, with an empty lower folder")
    return ", ".join(parts)


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
    node = _below(filesystem, _attach(image, journal), journal)
    run_command([*MKFS[_on_disk(filesystem)], str(node)], _MAKE_S)
    return _mount(filesystem, node, mount_point, journal)


def _on_disk(filesystem: str) -> str:
    if nfs.is_nfs(filesystem):
        return nfs.SERVED
    return filesystem


def _make_new(entry: UndoEntry, journal: UndoJournal) -> None:
    """A file or folder of eeio, noted before it is made; never an existing one, and never through a
    link."""
    path = Path(entry.subject)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    journal.add(entry)
    try:
        if entry.kind == "directory":
            os.mkdir(path.name, dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(path.name, flags, 0o600, dir_fd=folder))
    except FileExistsError as error:
        journal.forget(entry)  # not created by eeio, so not deleted
        raise EeioError(
            f"{path} exists; another campaign may be using it. If not, delete it"
        ) from error
    finally:
        os.close(folder)


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
    own = [_UUID_OPTION[kind], f"uuid={made}" if kind == "xfs" else made]
    with device.released():
        node = _below(filesystem, device.node, journal)
        run_command([*MKFS[_on_disk(filesystem)], *own, str(node)], _MAKE_S)
    device.release()  # the mount protects it from now on
    return _mount(filesystem, node, mount_point, journal)


def _below(filesystem: str, node: Path, journal: UndoJournal) -> Path:
    """The device that the file system is made on: `node`, or dm-crypt on it."""
    if not filesystem.endswith("+dmcrypt"):
        return node
    name = f"eeio-{os.getpid()}-{filesystem}"
    journal.add(UndoEntry("mapping", name))
    run_command([*_CRYPT, str(node), name])
    return Path("/dev/mapper", name)


def _new_mount_point(filesystem: str, directory: Path, journal: UndoJournal) -> Path:
    """Where the file system itself is mounted; of NFS and overlayfs, the one below."""
    below = nfs.is_nfs(filesystem) or filesystem.endswith("+overlay")
    name = f"eeio-{filesystem}.served" if below else f"eeio-{filesystem}"
    _make_new(UndoEntry("directory", str(directory / name)), journal)
    return directory / name


def _mount(filesystem: str, node: Path, mount_point: Path, journal: UndoJournal) -> Made:
    kind, _, layer = _on_disk(filesystem).partition("+")
    options = _OPTIONS.get(filesystem)
    journal.add(UndoEntry("mount", str(mount_point), drive=str(node)))
    run_command(
        ["mount", "-t", kind, *(["-o", options] if options else []), str(node), str(mount_point)]
    )
    if layer == "fscrypt":
        folder = mount_point / "encrypted"
        folder.mkdir()
        fscrypt.encrypt(folder)
        return Made(folder, how(filesystem))
    if not nfs.is_nfs(filesystem) and layer != "overlay":
        return Made(mount_point, how(filesystem))
    outer = mount_point.with_name(f"eeio-{filesystem}")
    _make_new(UndoEntry("directory", str(outer)), journal)
    if layer == "overlay":
        for name in ("lower", "upper", "work"):
            (mount_point / name).mkdir()
        journal.add(UndoEntry("mount", str(outer), drive="overlay"))
        # In the folder, so that no character of its path has a meaning in the options.
        run_command(
            [
                "sh",
                "-c",
                'cd "$1" && exec mount -t overlay -o '
                'lowerdir=lower,upperdir=upper,workdir=work overlay "$2"',
                "sh",
                str(mount_point),
                str(outer),
            ]
        )
        return Made(outer, how(filesystem), mount_point / "upper")
    nfs.serve(filesystem, mount_point, outer, journal)
    return Made(outer, how(filesystem), mount_point)
