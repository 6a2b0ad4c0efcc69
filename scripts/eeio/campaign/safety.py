"""What is looked at before anything is touched: the room, the device, the folder of test files."""

import math
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from eeio.errors import RefusedError
from eeio.machine.root import HERE
from eeio.system import device as devices
from eeio.system.filesystem import (
    backing_device,
    block_device,
    check_directory,
    check_not_in_memory,
    check_storage,
    mount_of,
)
from eeio.system.image import OVERHEAD_BYTES, check, in_the_way
from eeio_results.campaign import Options, PlannedExperiment

if TYPE_CHECKING:
    from eeio.campaign.plan import Plan

SCRATCH = "eeio-scratch"
"""The folder that the profiles keep their test files in."""
MADE = "made-filesystems.txt"
"""In the campaign's folder: UUIDs of the file systems that it made on the device."""


def check_room(plan: "Plan") -> None:
    """Refuses before anything runs when the target is not there or too small."""
    options = plan.options
    if options.directory is None:
        if any(planned.volume == "" and planned.experiment.target != "device"
               for planned in plan.experiments):  # fmt: skip
            raise RefusedError("this suite needs a directory: give --directory DIR on the disk")
        return
    directory = Path(options.directory)
    check_scratch(directory)
    needed = max(0, math.ceil(plan.room_bytes("") * 1.05) - _left_bytes(plan))
    if options.device is None:
        for filesystem in plan.made_volumes:
            if (there := in_the_way(filesystem, directory)) is not None:
                raise RefusedError(
                    f"{there} is there already; is another campaign using it? Delete it if not"
                )
            size = plan.room_bytes(filesystem)
            needed += size + size // 8 + OVERHEAD_BYTES
    check_directory(directory, needed, options.allow_memory_filesystem)


def room_to_grow(plan: "Plan", planned: PlannedExperiment) -> int:
    """The largest size that the experiment's test files may be given, in bytes.

    Of a directory: what it has and four fifths of what is free there, shared with the files of the
    other profiles, which may grow as well. Of a raw device: what it has.
    """
    options = plan.options
    if planned.experiment.target == "device":
        device = block_device(Path(options.device)) if options.device else None
        return device.size_bytes if device else 0
    if options.directory is None:
        return 0
    free = shutil.disk_usage(options.directory).free + _left_bytes(plan)
    return int(0.8 * free / max(1, len(plan.files)))


def check_described(plan: "Plan", root: Path) -> str:
    """As `check_room` on a machine that is only described, as far as that tells; returns on what
    the directory lies there, in words, or nothing without one."""
    options = plan.options
    if options.directory is None:
        check_room(plan)
        return ""
    directory = Path(options.directory)
    mount = mount_of(directory, root)
    check_storage(directory, mount, options.allow_memory_filesystem)
    device, reason = backing_device(directory, root)
    return f"{directory}: {mount.filesystem} on {device.node if device else f'no device: {reason}'}"


def check_scratch(directory: Path) -> None:
    """Refuses a folder of test files that is a link, no folder, or of a user who could have laid
    links in it: it is written, and what lies in it deleted, perhaps as root."""
    scratch = directory / SCRATCH
    try:
        status = scratch.lstat()
    except OSError:
        return  # made by the profiles, or refused there
    if not stat.S_ISDIR(status.st_mode):
        raise RefusedError(f"{scratch} is no folder (a link?): it is not followed. Take it away")
    # Who owns the directory may change all of it anyway.
    if status.st_uid not in (0, os.geteuid(), directory.stat().st_uid):
        raise RefusedError(f"{scratch} belongs to user {status.st_uid}: take it away")


def _left_bytes(plan: "Plan") -> int:
    """What test files of the plan's profiles, left by a start that was stopped, take already."""
    scratch = Path(plan.options.directory or "") / SCRATCH
    return sum(
        path.stat().st_blocks * 512
        for profile in plan.profiles.values()
        for top in scratch.glob(f"{profile.name}*")
        for path in (top, *top.rglob("*"))
        if path.is_file()
    )


def permission(options: Options, folder: Path | None = None) -> devices.Permission:
    """What of the device the campaign, which has this folder already or not, may write over."""
    made = devices.read_made(folder / MADE) if folder else frozenset[str]()
    return devices.Permission(Path(options.erase or ""), options.lose, made)


def disks(options: Options) -> dict[str, str]:
    """Option -> what tells the disk behind it from others."""
    found = {}
    if options.device is not None:
        device = block_device(Path(options.device))
        found["device"] = device.identity if device else "none"
    if options.directory is not None:
        device, reason = backing_device(Path(options.directory))
        found["directory"] = device.identity if device else str(reason)
    return found


def check_disks(options: Options, disks_before: Mapping[str, str]) -> None:
    """Refuses to go on where another disk has the name, or nothing is mounted since a reboot."""
    now = disks(options)
    for option, before in disks_before.items():
        if now.get(option) != before:
            raise RefusedError(
                f"{getattr(options, option)} is not on the disk that the campaign began on: it was "
                f"{before!r}, is {now.get(option)!r}; mount or attach that disk there again"
            )


def check_targets(
    options: Options, makes_filesystems: bool, folder: Path | None = None, root: Path = HERE
) -> None:
    """Refuses file systems and a device that cannot be used; `folder` is that of a campaign which
    goes on."""
    for name in options.filesystems:
        check(name)
    if options.erase is not None and options.device is None:
        raise RefusedError("--erase DEV needs --device DEV: name the device twice to write over it")
    if options.lose and options.erase is None:
        raise RefusedError(
            f"--lose {options.lose[0]} needs --erase DEV: it names what that device carries"
        )
    if options.device is None:
        return
    if options.erase is not None:
        devices.check_erasable(Path(options.device), permission(options, folder))
        if folder is None:  # later on it may be gone already
            devices.check_named(Path(options.device), options.lose)
    elif makes_filesystems:
        raise RefusedError(
            f"making file systems writes over {options.device}: name it again with --erase, "
            "or leave --device out for a loop image in --directory"
        )
    else:
        devices.check_readable(Path(options.device), root)
    check_not_in_memory(
        block_device(Path(options.device), root), options.device, options.allow_memory_filesystem
    )
