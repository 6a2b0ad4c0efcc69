"""Checks before any change: free space, the device, the folder of test files."""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import EeioError, LimitError, RejectedError
from eeio.files import inputs
from eeio.files.trust import risk_of_device, risk_of_folder, risk_of_scratch
from eeio.machine import caches
from eeio.machine import device as devices
from eeio.machine.as_data.root import HERE
from eeio.machine.below import check_not_in_memory
from eeio.machine.filesystem import backing_device, block_device
from eeio.machine.image import check
from eeio.machine.undo import run_command
from eeio.record.design import Options

SCRATCH = "eeio-scratch"
"""The folder that the profiles keep their test files in."""
MADE = "made-filesystems.txt"
"""In the campaign's folder: UUIDs of the file systems that it made on the device."""
TARGETS = "targets.json"
"""In the campaign's folder: contents of the device, and the file system, at its start."""
DEVICE_STATE = "device.ready"
"""In a profile's installation: which drive it has filled with data."""


def used_bytes(paths: Iterable[Path]) -> int:
    """What plain files take on their file system; one that has just gone takes nothing."""
    used = 0
    for path in paths:
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                used += status.st_blocks * 512
    return used


def left_files(directory: str | None) -> str | None:
    """Where test files of a campaign that was not finished are, and their size; None if none are
    left."""
    if directory is None:
        return None
    scratch = Path(directory) / SCRATCH
    used = used_bytes(scratch.rglob("*"))
    if used >= 1e6:
        return f"{used / 1e9:.2f} GB of test files are left in {scratch}"
    return None


def check_folder(directory: Path) -> None:
    """Rejects a directory, and a folder of test files in it, where another user could replace a
    file of eeio's or put a link in its place: eeio writes and deletes there, perhaps as root. And
    one with a mount in its folder of test files: another drive would be measured."""
    if not directory.is_dir():
        return
    scratch = directory / SCRATCH
    risk = risk_of_folder(directory) or risk_of_scratch(scratch)
    if risk is not None:
        raise RejectedError(risk.text)


def checked_folder(directory: Path) -> Path:
    """The directory without links, which nobody can lead elsewhere once the way is checked."""
    check_folder(directory)
    return directory.resolve()


def checked_device(node: Path) -> Path:
    """The device's node without links, so that a link that is changed later leads to no other
    device. RejectedError for root if another user could change what the name leads to."""
    if (risk := risk_of_device(node)) is not None:
        raise RejectedError(risk.text)
    return Path(os.path.realpath(node))


def with_nodes(options: Options) -> Options:
    """The options for all checks and runs of this process: links to devices followed once."""

    def node(name: str | None) -> str | None:
        if name is None:
            return None
        return str(checked_device(Path(name)))

    return replace(options, device=node(options.device), erase=node(options.erase))


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """Of the folder of that name itself, not of what a link leads to; None if there is none."""
    try:
        status = folder.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def permission(options: Options, folder: Path | None = None) -> devices.Permission:
    """The contents of the device that the campaign, new or resumed, may overwrite."""
    erase = Path(options.erase or "")
    if folder is None:
        return devices.Permission(erase, options.lose)
    made = devices.read_made(folder / MADE)
    return devices.Permission(erase, options.lose, made, _read_targets(folder).contents)


@dataclass(frozen=True)
class _Targets:
    """What a campaign found when it began: contents of the device (`Signature.identity`), and the
    UUID and number of the file system of --directory. Empty if the campaign did not store it."""

    contents: frozenset[str] = frozenset()
    uuid: str | None = None
    number: str | None = None


def note_targets(options: Options, folder: Path) -> None:
    """Stores in the folder of a new campaign what `resume` compares the targets with."""
    contents: list[devices.Signature] = []
    if options.device is not None and options.erase is not None:
        contents = devices.signatures_carried(Path(options.device))
        if missing := permission(options).missing(contents):
            listed = devices.signatures_listed(missing, Path(options.device))
            raise RejectedError(f"{options.device} has just got other contents: {listed}")
    uuid, number = _filesystem(options)
    body = {
        "schema_version": 1,
        "contents": [signature.identity for signature in contents],
        "uuid": uuid,
        "number": number,
    }
    (folder / TARGETS).write_text(json.dumps(body) + "\n", encoding="ascii")


def _read_targets(folder: Path) -> _Targets:
    try:
        body = inputs.read_json(folder / TARGETS)
        return _Targets(frozenset(map(str, body["contents"])), body["uuid"], body["number"])
    except FileNotFoundError:
        return _Targets()  # of an earlier eeio
    except (LimitError, OSError, KeyError, TypeError) as error:
        raise RejectedError(f"{folder / TARGETS}: {error}; start another campaign") from error


def _filesystem(options: Options) -> tuple[str | None, str | None]:
    """UUID and number of the file system of --directory, each None if unknown."""
    if options.directory is None:
        return None, None
    uuid = None
    with suppress(EeioError):
        command = ["findmnt", "--noheadings", "--output", "UUID", "--target", options.directory]
        uuid = run_command(command).strip() or None
    number = os.statvfs(options.directory).f_fsid
    if not number:
        return uuid, None
    return uuid, f"{number:x}"


def disks(options: Options) -> dict[str, str]:
    """Option -> identity of the disk behind it."""
    names = {}
    if options.device is not None:
        device = block_device(Path(options.device))
        names["device"] = "none"
        if device:
            names["device"] = device.identity
    if options.directory is not None:
        device, reason = backing_device(Path(options.directory))
        names["directory"] = str(reason)
        if device:
            names["directory"] = device.identity
    return names


def check_disks(options: Options, disks_before: Mapping[str, str], folder: Path) -> None:
    """Rejects a resume if another disk has the name, if it is not mounted since a reboot, or if
    another file system is on it."""
    now = disks(options)
    for option, before in disks_before.items():
        if now.get(option) != before:
            raise RejectedError(
                f"{getattr(options, option)} is not on the disk that the campaign began on: it was "
                f"{before!r}, is {now.get(option)!r}; mount or attach that disk there again"
            )
    begun = _read_targets(folder)
    uuid, number = _filesystem(options)
    # Numbers of some file systems change with the disk's name, so UUIDs come first.
    both = (begun.number, number)
    if begun.uuid and uuid:
        both = (begun.uuid, uuid)
    if None not in both and both[0] != both[1]:
        raise RejectedError(
            f"{options.directory} is not on the file system that the campaign began on: it was "
            f"{both[0]}, is {both[1]}; mount that one there again, or start another campaign"
        )


def check_targets(
    options: Options, makes_filesystems: bool, folder: Path | None = None, root: Path = HERE
) -> None:
    """Rejects file systems and a device that cannot be used; `folder` is that of a resumed
    campaign."""
    if root == HERE:
        caches.check_drop_file()
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
    device = block_device(Path(options.device), root)
    check_not_in_memory([device] if device else [], options.device, options.allow_memory_filesystem)
