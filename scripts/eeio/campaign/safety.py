"""Checks before any change: free space, the device, the folder of test files."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from eeio.errors import RejectedError
from eeio.machine.root import HERE
from eeio.system import device as devices
from eeio.system.below import check_not_in_memory
from eeio.system.filesystem import backing_device, block_device
from eeio.system.image import check
from eeio_results.campaign import Options

SCRATCH = "eeio-scratch"
"""The folder that the profiles keep their test files in."""
MADE = "made-filesystems.txt"
"""In the campaign's folder: UUIDs of the file systems that it made on the device."""


def used_bytes(paths: Iterable[Path]) -> int:
    """What plain files take on their file system; one that has just gone takes nothing."""
    used = 0
    for path in paths:
        with suppress(OSError):
            status = path.lstat()
            used += status.st_blocks * 512 if stat.S_ISREG(status.st_mode) else 0
    return used


def left_files(directory: str | None) -> str | None:
    """Where test files of a campaign that was not finished are, and their size; None if none are
    left."""
    if directory is None:
        return None
    scratch = Path(directory) / SCRATCH
    used = used_bytes(scratch.rglob("*"))
    return f"{used / 1e9:.2f} GB of test files are left in {scratch}" if used >= 1e6 else None


def check_scratch(directory: Path) -> None:
    """Rejects a folder of test files that is a link, not a folder, or owned by a user who could
    have put links into it: eeio writes to it and deletes its contents, perhaps as root."""
    scratch = directory / SCRATCH
    try:
        status = scratch.lstat()
    except OSError:
        return  # made by the profiles, or rejected there
    if not stat.S_ISDIR(status.st_mode):
        raise RejectedError(
            f"{scratch} is not a folder (a link?), so it is not followed. Remove it"
        )
    # Who owns the directory may change all of it anyway.
    if status.st_uid not in (0, os.geteuid(), directory.stat().st_uid):
        raise RejectedError(f"{scratch} belongs to user {status.st_uid}: take it away")


def permission(options: Options, folder: Path | None = None) -> devices.Permission:
    """The contents of the device that the campaign, new or resumed, may overwrite."""
    made = devices.read_made(folder / MADE) if folder else frozenset[str]()
    return devices.Permission(Path(options.erase or ""), options.lose, made)


def disks(options: Options) -> dict[str, str]:
    """Option -> identity of the disk behind it."""
    found = {}
    if options.device is not None:
        device = block_device(Path(options.device))
        found["device"] = device.identity if device else "none"
    if options.directory is not None:
        device, reason = backing_device(Path(options.directory))
        found["directory"] = device.identity if device else str(reason)
    return found


def check_disks(options: Options, disks_before: Mapping[str, str]) -> None:
    """Rejects a resume if another disk has the name, or if it is not mounted since a reboot."""
    now = disks(options)
    for option, before in disks_before.items():
        if now.get(option) != before:
            raise RejectedError(
                f"{getattr(options, option)} is not on the disk that the campaign began on: it was "
                f"{before!r}, is {now.get(option)!r}; mount or attach that disk there again"
            )


def check_targets(
    options: Options, makes_filesystems: bool, folder: Path | None = None, root: Path = HERE
) -> None:
    """Rejects file systems and a device that cannot be used; `folder` is that of a resumed
    campaign."""
    for name in options.filesystems:
        check(name)
    if options.erase is not None and options.device is None:
        raise RejectedError("--erase DEV requires --device DEV: give both to overwrite the device")
    if options.lose and options.erase is None:
        raise RejectedError(
            f"--lose {options.lose[0]} requires --erase DEV: it names a signature on that device"
        )
    if options.device is None:
        return
    if options.erase is not None:
        devices.check_erasable(Path(options.device), permission(options, folder))
        if folder is None:  # later on it may be gone already
            devices.check_named(Path(options.device), options.lose)
    elif makes_filesystems:
        raise RejectedError(
            f"making file systems writes over {options.device}: name it again with --erase, "
            "or leave --device out for a loop image in --directory"
        )
    else:
        devices.check_readable(Path(options.device), root)
    check_not_in_memory(
        block_device(Path(options.device), root), options.device, options.allow_memory_filesystem
    )
