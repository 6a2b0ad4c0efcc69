"""The writeback of the files that a program wrote, right after its end."""

import time
from collections.abc import Iterable
from pathlib import Path

from eeio.errors import RejectedError
from eeio.files.mounts import Mount
from eeio.machine import caches
from eeio.machine.durability import why_flushes_end_early
from eeio.machine.filesystem import IN_MEMORY, backing_devices, mount_of
from eeio.traces.account import Writeback


def flush(files: Iterable[str]) -> Writeback | None:
    """Flushes the file systems of these files (syncfs), which also writes other programs' data on
    them. None if there are no files."""
    folders: dict[Path, Mount] = {}
    for file in files:
        folder = _existing(Path(file).parent)
        try:
            mount = mount_of(folder)
        except RejectedError as error:
            return Writeback(time.monotonic(), str(error))
        folders.setdefault(mount.mount_point, mount)
    if not folders:
        return None
    errors = [caches.flush(point, None).error for point in folders]
    end_s = time.monotonic()
    reasons = [*errors, *map(_why_not_on_the_drive, folders.values())]
    return Writeback(end_s, next((reason for reason in reasons if reason is not None), None))


def _existing(folder: Path) -> Path:
    """The folder, or the next one above it if the program removed it."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def _why_not_on_the_drive(mount: Mount) -> str | None:
    if mount.filesystem in IN_MEMORY:
        return f"{mount.mount_point} ({mount.filesystem}) is in memory and has no drive"
    return why_flushes_end_early(mount, backing_devices(mount.mount_point))
