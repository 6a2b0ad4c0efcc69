"""A control group whose processes' bytes the kernel counts for each drive (cgroup v2, io.stat).

What a program's own account (/proc/PID/io) cannot tell: which drive its bytes were of, and what was
written for it by the kernel's threads later on. Needs root, the unified hierarchy, and its
controllers io and memory: without the second nobody knows whose a dirty page is.
"""

import os
from contextlib import suppress
from pathlib import Path

from eeio.system.filesystem import BlockDevice, mounts
from eeio.system.owner import own_name
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_limits.quantities import SIZE
from eeio_results.errors import EeioError
from eeio_results.record import DeviceCounters

_CONTROLLERS = ("io", "memory")


def _root() -> Path | None:
    """Where groups can be made; None where they cannot."""
    for mount in mounts():
        if mount.filesystem != "cgroup2":
            continue
        folder = mount.mount_point
        try:
            known = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
        except OSError:
            continue
        if all(name in known for name in _CONTROLLERS) and os.access(folder, os.W_OK):
            return folder
    return None


def new(journal: UndoJournal) -> "IoGroup | None":
    """A group, or None where there can be none."""
    root = _root()
    if root is None:
        return None
    try:
        return IoGroup(root, journal)
    except OSError:
        return None


class IoGroup:
    """A new group, for one run; what was changed for it is noted in the journal. OSError where the
    kernel refuses it (in a container the group at the top has processes)."""

    def __init__(self, root: Path, journal: UndoJournal) -> None:
        self.folder = root / own_name()
        enabled = root / "cgroup.subtree_control"
        on = enabled.read_text(encoding="ascii").split()
        missing = " ".join(name for name in _CONTROLLERS if name not in on)
        if missing:
            entry = UndoEntry("controllers", str(enabled), missing)
            journal.add(entry)
            try:
                enabled.write_text(" ".join(f"+{n}" for n in missing.split()), encoding="ascii")
            except OSError:
                journal.forget(entry)
                raise
        journal.add(UndoEntry("directory", str(self.folder)))
        self.folder.mkdir()

    def release(self) -> None:
        """Lets go of what still runs in it, so that it can be taken away: a command may leave a
        daemon that is in no process group of ours."""
        for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(OSError):  # it has just ended
                (self.folder.parent / "cgroup.procs").write_text(pid, encoding="ascii")

    def moved(self, device: BlockDevice) -> DeviceCounters:
        """Bytes that the drive has moved for the group so far; the kernel counts whole disks.
        EeioError where the kernel's text cannot be read."""
        path = self.folder / "io.stat"
        try:
            number = (device.disk_sysfs / "dev").read_text(encoding="ascii").strip()
            return parse(path.read_text(encoding="ascii"), number)
        except (OSError, ValueError) as error:
            raise EeioError(f"{path}: cannot be read: {error}") from error


def parse(text: str, number: str) -> DeviceCounters:
    """The line of the device `8:0` of an io.stat; without one nothing was moved. ValueError for
    another text."""
    for line in text.splitlines():
        first, *words = line.split()
        if first == number:
            found = dict(word.split("=", 1) for word in words)
            read, written = (
                SIZE.whole_number(int(found.get(name, "")), name) for name in ("rbytes", "wbytes")
            )
            return DeviceCounters(read, written)
    return DeviceCounters(0, 0)
