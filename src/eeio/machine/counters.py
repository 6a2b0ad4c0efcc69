"""The bytes that a drive moved, for all programs and for a control group.

The block layer's counters, and whether they agree with a tool's claim.

A control group with the kernel's byte counters for each drive (cgroup v2, io.stat).

It adds to a program's account (/proc/PID/io) the drive of the bytes, and the bytes that kernel
threads write for it later. Needs root, the unified hierarchy, and its controllers io and memory:
without memory, dirty pages have no owner.
"""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from eeio.errors import EeioError
from eeio.machine.below import mount_of_image, stack_below
from eeio.machine.control_groups import own_groups
from eeio.machine.direct_io import compresses
from eeio.machine.durability import is_remote
from eeio.machine.filesystem import (
    BlockDevice,
    Mount,
    drives_below,
    is_served_by_a_program,
    mounts,
    named_device,
    one_drive,
)
from eeio.machine.limits import sets_limit
from eeio.machine.nvme_power import controller_of
from eeio.machine.owner import own_name
from eeio.machine.undo import UndoEntry, UndoJournal
from eeio.record.run import DeviceCounters, Experiment
from eeio.record.tools import about
from eeio.record.tools.capture import PhaseResult
from eeio.units.quantities import SIZE
from eeio_power.meters.nvme import read_smart_log

_SECTOR_BYTES = 512  # the unit of the stat file, for any sector size of the device
_WRAP_BYTES = (1 << 32) * _SECTOR_BYTES
_OF_32_BITS = (
    "armv5tel",
    "armv6l",
    "armv7l",
    "armv8l",
    "i386",
    "i486",
    "i586",
    "i686",
    "ppc",
    "mips",
    "riscv32",
)
# The device may merge, journal and read ahead, but it cannot move less than requested.
_DIRECT_SHARE = 0.98
_BUFFERED_SHARE = 0.90


def read_counters(device: BlockDevice) -> DeviceCounters:
    """Bytes read and written since boot (Documentation/block/stat.rst, fields 3 and 7).

    With NVMe's native multipath the disk is a head over the paths to it, and older kernels count
    only in the paths: a head with counters of zero has the sum of its paths, which have no
    partitions. Newer kernels count in both. Of md's disks in a row (level `linear`) newer kernels
    count no bytes (observed with 6.1): each byte is one member's, so their sum is the array's.
    """
    counted = _read(device.sysfs)
    if any(astuple(counted)):
        return counted
    paths = list(map(_read, (*nvme_paths(device), *_members_in_a_row(device))))
    return DeviceCounters(
        sum(path.read_bytes for path in paths), sum(path.written_bytes for path in paths)
    )


def drive_below(device: BlockDevice) -> BlockDevice:
    """The complete drive of a partition, or the only one below encryption or a logical volume; for
    a device over several drives itself."""
    below = one_drive(device)
    return named_device(below.disk_sysfs.name, below.root) or device


PASSTHROUGH = "io_uring_cmd"
"""fio's engine whose requests the block layer does not count."""
DATA_UNIT_BYTES = 512_000
_DATA_UNITS_AT = 32


def read_by_drive(device: BlockDevice) -> DeviceCounters:
    """Bytes that an NVMe drive counts itself, in thousands of 512 bytes, rounded up (NVM Express
    base specification 2.0, SMART log: Data Units Read and Written). Raises EeioError."""
    controller = controller_of(device.disk_sysfs)
    if controller is None:
        raise EeioError(f"{device.name}: not an NVMe drive, which engine={PASSTHROUGH} requires")
    try:
        descriptor = os.open(controller.node, os.O_RDONLY | os.O_CLOEXEC)
        try:
            page = read_smart_log(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise EeioError(
            f"{device.name}: its count of bytes cannot be read ({error.strerror or error}), which "
            f"engine={PASSTHROUGH} requires: run as root"
        ) from error
    units = (
        int.from_bytes(page[place : place + 16], "little")
        for place in (_DATA_UNITS_AT, _DATA_UNITS_AT + 16)
    )
    return DeviceCounters(*(count * DATA_UNIT_BYTES for count in units))


def written_elsewhere(device: BlockDevice) -> int:
    """Bytes that all disks of the machine have written since boot, without those of the device and
    of what it is on: other drives, and other partitions of the same one. Of the drive with the
    image of a loop device, those that the device did not write are elsewhere, too."""
    disks = (device.root / "sys/block").glob("*")
    below = {each.sysfs.resolve() for each in stack_below(device)}
    if mount_of_image(device) is not None:
        return _written(disks) - len(below) * _written([device.sysfs.resolve()])
    below |= {path.resolve() for each in stack_below(device) for path in nvme_paths(each)}
    return _written(disks) - _written(below)


def _written(folders: Iterable[Path]) -> int:
    total = 0
    for folder in folders:
        with suppress(OSError):  # a disk that has just been removed
            total += _read(folder).written_bytes
    return total


def may_write_uncounted() -> bool:
    """Whether a mounted file system takes bytes that no block device counts: a server's, a host's,
    or a program's (FUSE)."""
    return any(
        "rw" in mount.options.split(",") and (is_remote(mount) or is_served_by_a_program(mount))
        for mount in mounts()
    )


def nvme_paths(device: BlockDevice) -> list[Path]:
    """Folders of the paths (`nvme0c1n1`) below the head of an NVMe disk (`nvme0n1`); none for any
    other disk."""
    disk = device.disk_sysfs
    name = re.fullmatch(r"nvme([0-9]+)n([0-9]+)", disk.name)
    if name is None:
        return []
    path = re.compile(rf"nvme{name[1]}c[0-9]+n{name[2]}")
    # The subsystem's folder, next to the head, links to its controllers, which contain the paths.
    paths = {each.resolve() for each in disk.parent.glob("nvme*/nvme*c*n*")}
    return sorted(each for each in paths if path.fullmatch(each.name))


def _members_in_a_row(device: BlockDevice) -> list[Path]:
    """The members of an md array of the level `linear`; none of any other."""
    disk = device.disk_sysfs
    try:
        if (disk / "md/level").read_text(encoding="ascii").strip() != "linear":
            return []
    except OSError:
        return []
    return sorted((disk / "slaves").iterdir())


def lies_on(device: BlockDevice) -> str | None:
    """The kind of a stacked device (device mapper, RAID, bcache) as text. Its counters show
    requests to it, not the bytes of each drive. None for a drive."""
    disk = device.disk_sysfs
    try:
        lower = sorted(entry.name for entry in (disk / "slaves").iterdir())
    except OSError:
        lower = []
    if not lower:
        return None
    place = f"{device.name}, which is on {', '.join(lower)}"
    if (disk / "bcache").exists() or disk.name.startswith("bcache"):
        return f"{place}: I/O of bcache's cache and of its disk are not separated"
    uuid = ""
    with suppress(OSError):
        uuid = (disk / "dm/uuid").read_text(encoding="ascii", errors="replace")
    if uuid.startswith("VDO-"):
        return f"{place}: VDO compresses and deduplicates, so its disk moves fewer bytes"
    is_one_to_one = uuid.startswith(_ONE_TO_ONE) and not uuid.strip().endswith(_POOLS)
    if is_one_to_one and len(drives_below(device)) == 1:
        below = [named_device(name, device.root) for name in lower]
        for device_below in below:
            if device_below and (reason := lies_on(device_below)):
                return reason
        return None
    return f"{place}: their I/O is not separated"


# Prefixes of dm/uuid: encryption, logical volumes and paths pass requests on as they are.
_ONE_TO_ONE = ("CRYPT-", "LVM-", "mpath-", "part")
_POOLS = ("-tpool", "-pool", "-cdata", "-cmeta", "-cpool", "-vpool", "-vdata")


def _read(folder: Path) -> DeviceCounters:
    fields = (folder / "stat").read_text(encoding="ascii").split()
    return DeviceCounters(int(fields[2]) * _SECTOR_BYTES, int(fields[6]) * _SECTOR_BYTES)


def unwrapped(
    before: DeviceCounters, after: DeviceCounters, machine: str | None = None
) -> DeviceCounters:
    """`after` as it would be had no counter begun again at 0: the kernel counts sectors in a word,
    which on 32 bits (`machine` as uname tells it) is full after 2 TiB."""
    if (machine or platform.machine()) not in _OF_32_BITS:
        return after
    return DeviceCounters(
        *(
            late + _WRAP_BYTES if late < early else late
            for early, late in zip(astuple(before), astuple(after), strict=True)
        )
    )


def uses_dax(device: BlockDevice) -> bool:
    """Whether a file system on it maps persistent memory, past the block layer."""
    number = f"{device.major}:{device.minor}"
    return any(
        mount.number == number and {"dax", "dax=always"}.intersection(mount.options.split(","))
        for mount in mounts(device.root)
    )


FROM_CACHE = "it was served from a cache or from unwritten extents, or moved to another drive"


def cause_of_missing(device: BlockDevice, mount: Mount | None) -> str:
    """Why the drive may move fewer bytes than a tool, as far as the mount options tell. `mount` is
    the file system's that the tool uses."""
    if uses_dax(device):
        return "the file system uses DAX, and the drive's counters do not include its I/O"
    if mount is not None and compresses(mount):
        return (
            f"{mount.filesystem} compresses data, and this tool's may be compressible; mount it "
            "without compression, or measure --filesystem btrfs+zstd"
        )
    return FROM_CACHE


def disagreements(
    experiment: Experiment,
    phases: tuple[PhaseResult, ...],
    before: DeviceCounters,
    after: DeviceCounters,
    file_bytes: int | None,
    cause: str = FROM_CACHE,
    stored_share: float = 1.0,
    resolution_bytes: int = 0,
) -> dict[str, str]:
    """Per operation (`read`, `write`), why the device's counters contradict the tool's claim.

    The counters span the run and the sync after it, so claims are summed per operation. A mixed
    phase claims its metrics `bytes_read` and `bytes_written`, a phase with `kept_bytes` claims
    those, and one of metadata claims none. Through the page cache a byte written two times may
    reach the device once, so no more than `file_bytes` is then expected. Reads of bytes that the
    same phase may have written before are not expected either. A file system that compresses stores
    `stored_share` of the bytes. A drive's own counters have a resolution. `cause` tells why bytes
    may be missing.
    """
    claimed = {"read": 0.0, "write": 0.0}
    for phase in phases:
        if phase.operation == "metadata":
            continue  # a file system's metadata writes are not claimed
        if phase.operation == "mixed":
            claimed["read"] += phase.metrics.get("bytes_read", 0)
            claimed["write"] += phase.metrics.get("bytes_written", 0)
        else:
            # Of files rewritten without a flush only the last must have reached it.
            claimed[phase.operation] += phase.metrics.get("kept_bytes", phase.bytes_moved or 0)
    moved = {
        "read": after.read_bytes - before.read_bytes,
        "write": after.written_bytes - before.written_bytes,
    }
    buffered = experiment.cache.buffer == "on"
    texts = {}
    for operation, claim in claimed.items():
        if claim and moved[operation] < 0:
            texts[operation] = (
                f"the device's counter of {operation}s went back by {-moved[operation]} bytes: "
                "it was removed, or another device has its name"
            )
            continue
        expected = claim
        if buffered and file_bytes is not None:
            expected = min(claim, file_bytes)
        if operation == "read":
            expected = max(expected - read_back_bytes(experiment, phases), 0)
        expected *= stored_share
        share = _DIRECT_SHARE
        if buffered:
            share = _BUFFERED_SHARE
        if moved[operation] + resolution_bytes < share * expected:
            texts[operation] = (
                f"the device moved {moved[operation]} bytes of the {expected:.0f} that the "
                f"tool's {operation} claims: {cause}"
            )
    return texts


def read_back_bytes(experiment: Experiment, phases: Sequence[PhaseResult]) -> float:
    """How many bytes of reads the page cache may serve because the same phase wrote them before.

    In other orders than random, fio has a position for reads and one for writes, and one of them
    runs ahead by chance. Its random requests move each block once.
    """
    if experiment.cache.buffer != "on" or not about(experiment.tool).reports_all_bytes:
        return 0.0
    return sum(
        phase.metrics.get("bytes_written", 0)
        for phase in phases
        if phase.operation == "mixed" and phase.spatiality != "random"
    )


def read_back(
    experiment: Experiment,
    phases: Sequence[PhaseResult],
    before: DeviceCounters,
    after: DeviceCounters,
) -> str | None:
    """That the page cache served reads from the phase's own writes, as text; None if it cannot
    have, or if the drive read nearly all bytes."""
    if not read_back_bytes(experiment, phases):
        return None
    reported = sum(phase.metrics.get("bytes_read", 0) for phase in phases)
    moved = after.read_bytes - before.read_bytes
    if moved >= _BUFFERED_SHARE * reported:
        return None
    return (
        f"the drive read {moved / 1e6:.1f} MB of the tool's {reported / 1e6:.1f} MB: the page "
        "cache served bytes that the tool had just written"
    )


_CONTROLLERS = ("io", "memory")


def new_io_group(journal: UndoJournal, root: Path = Path("/")) -> "IoGroup | None":
    """A group as near to this process's as possible, so that the limits of its groups still apply
    to the command. The kernel allows no group with controllers below one that has processes. None
    if there can be no group, or only one that a limit does not include."""
    own = [group for group in own_groups(root) if (group.folder / "cgroup.controllers").is_file()]
    for group in own:
        try:
            return IoGroup(group.folder, journal, own[0].folder)
        except OSError:
            if sets_limit(group):
                return None
    return None


class IoGroup:
    """A new group, for one run; its changes are noted in the journal. `home` is the group that its
    processes return to. OSError if the kernel rejects it (`parent` has processes)."""

    def __init__(self, parent: Path, journal: UndoJournal, home: Path | None = None) -> None:
        self.folder = parent / own_name()
        self.home = home or parent
        enabled = parent / "cgroup.subtree_control"
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
        entry = UndoEntry("directory", str(self.folder))
        journal.add(entry)
        try:
            self.folder.mkdir()
        except OSError:
            journal.forget(entry)
            raise

    def release(self) -> None:
        """Moves remaining processes out of it, so that it can be removed: a command may leave a
        daemon outside our process groups."""
        for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(OSError):  # it has just ended
                (self.home / "cgroup.procs").write_text(pid, encoding="ascii")

    def moved(self, device: BlockDevice) -> DeviceCounters:
        """Bytes that the drive has moved for the group so far; the kernel counts per disk.
        EeioError if the kernel's text cannot be parsed."""
        path = self.folder / "io.stat"
        try:
            number = (device.disk_sysfs / "dev").read_text(encoding="ascii").strip()
            return parse_io_stat(path.read_text(encoding="ascii"), number)
        except (OSError, ValueError) as error:
            raise EeioError(f"{path}: cannot be read: {error}") from error


def parse_io_stat(text: str, number: str) -> DeviceCounters:
    """The line of the device `8:0` of an io.stat; without one, no bytes were moved. ValueError for
    another text."""
    for line in text.splitlines():
        first, *fields = line.split()
        if first == number:
            counters = dict(field.split("=", 1) for field in fields)
            read, written = (
                SIZE.whole_number(int(counters.get(name, "")), name)
                for name in ("rbytes", "wbytes")
            )
            return DeviceCounters(read, written)
    return DeviceCounters(0, 0)
