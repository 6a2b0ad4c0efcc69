"""Why a flush does not show that data are on the drive, whatever it returns."""

from collections.abc import Sequence

from eeio.machine.below import has_drives_elsewhere, mount_of_image, stack_below
from eeio.machine.caches import why_no_flush
from eeio.machine.filesystem import (
    WITHOUT_STORAGE,
    BlockDevice,
    Mount,
    folder_below,
    is_served_by_a_program,
    is_served_by_ext4,
    mount_of,
    options_of,
)

_WITHOUT_FLUSHES = frozenset(
    (
        "nobarrier",
        "barrier=0",
        "barrier=none",
        "fsync_mode=nobarrier",
        "volatile",
        "fsync=volatile",
        "journal_flush_disabled",
    )
)
"""Options of mount(8) with which a file system writes, and sends the drive no flush: of ext4, xfs,
btrfs and f2fs, of overlayfs and bcachefs."""

_FLUSHED_BY_SYNCFS = frozenset(
    (
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "f2fs",
        "bcachefs",
        "nilfs2",
        "gfs2",
        "hfsplus",
        "zfs",
        "ubifs",
        "nfs",
        "nfs4",
        "ceph",
    )
)
"""File systems with a sync_fs that sends the drive a flush, by the kernel's sources, or that waits
until the server has one (the COMMIT of NFS). Those of vfat, exfat, ntfs3 and udf write the data,
and send none. cifs, ecryptfs, vmhgfs and orangefs have no sync_fs."""
_OF_A_HOST = frozenset(("9p", "virtiofs", "vboxsf", "prl_fs", "drvfs", "hostfs"))
"""Shared folders, also /mnt/c of WSL: syncfs does not make the host write them to its drives."""


def is_remote(mount: Mount) -> bool:
    """Whether the drives of a file system are another machine's, or the host's."""
    return mount.filesystem in _OF_A_HOST or has_drives_elsewhere(mount.filesystem)


def why_flushes_end_early(mount: Mount | None, devices: Sequence[BlockDevice]) -> str | None:
    """None if flushes of the file system (None: of a raw device) on these devices reach all drives,
    as far as mounts and sysfs show."""
    stack = []
    for device in devices:
        stack.extend(stack_below(device))
    mounts = [mount, *map(mount_of_image, stack)]
    reasons = [*map(_why_of_mount, mounts), *map(why_no_flush, stack)]
    for reason in reasons:
        if reason is not None:
            return reason
    return None


def _why_of_mount(mount: Mount | None) -> str | None:
    if mount is None:
        return None
    if is_served_by_a_program(mount):
        return f"flushes end at the program that serves {mount.mount_point} ({mount.filesystem})"
    if mount.filesystem == "fuseblk":
        return f"the kernel writes the data of {mount.mount_point} (fuseblk), and sends no flush"
    if mount.filesystem in _OF_A_HOST:
        return f"flushes end at the host that serves {mount.mount_point} ({mount.filesystem})"
    if not _is_flushed_by_syncfs(mount):
        return f"syncfs of {mount.mount_point} ({mount.filesystem}) is not known to flush the drive"
    options = sorted(_WITHOUT_FLUSHES & options_of(mount))
    if options:
        return f"{mount.mount_point} is mounted with {options[0]}, so the drive gets no flush"
    below = folder_below(mount)
    if below is None:
        return None
    return _why_of_mount(mount_of(below))


def _is_flushed_by_syncfs(mount: Mount) -> bool:
    """Also one in memory, which has no drive, and overlayfs, whose upper layer decides."""
    known = _FLUSHED_BY_SYNCFS | WITHOUT_STORAGE
    return mount.filesystem in known or is_served_by_ext4(mount)
