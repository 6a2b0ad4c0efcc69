"""I/O of other programs on the drive: its bytes beyond those of the tool.

A file system moves bytes of its own, too. Its share is known for each state of the caches
(docs/explanation/caches-and-validity.md, measured by benchmarks/other_io.py).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio.machine import caches
from eeio.machine.direct_io import journals_data
from eeio.machine.filesystem import BlockDevice, Mount, backing_devices, drives_below
from eeio.record.run import DeviceCounters, Experiment
from eeio.record.tools import about
from eeio.record.tools.capture import PhaseResult

NOTE_SHARE, INVALID_SHARE = 0.1, 0.5
"""Of the tool's bytes: more than the first is noted, more than the second makes a run invalid."""
SLACK_BYTES = 1 << 20
COPYING_SLACK_BYTES = 8 << 20
"""What a file system may move of its own in any run: journal, superblock, trees."""
COPYING_BYTES_PER_REQUEST = 128 << 10
"""What a file system that copies on write may write for each request: a leaf of 16 KiB in each of
four trees, two times. Measured: up to 9.3 KiB."""
COPYING_TREES_SHARE = 0.04
"""Of the file: trees to read if it consists of fragments of 4 KiB. Measured: up to 0.027."""
JOURNAL_OF_DATA_SHARE = 1.1
READ_AGAIN_SHARE = 1.0
"""Of buffered reads in another order than the file's: what was read ahead may leave memory, and is
read again. Measured: up to 0.25, with files that are larger than memory."""
PROGRAMS_BYTES = 80 << 20
"""Programs and libraries of a run, if the page cache was emptied before. Measured: up to 67 MB."""
IOZONE_STRIDE = "17"
"""Of the profile, if no other is given. So often IOzone passes through the file."""
NOT_JUDGED = "other I/O not judged"
PROGRAMS = Path("/usr")
_COPYING = ("btrfs", "bcachefs", "f2fs")
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Target:
    """Where the bytes go: `mount` is the file system's, None for a device itself.
    `readahead_bytes`: what the kernel may read ahead in a file. `has_programs`: programs of the run
    are read from the same drive."""

    mount: Mount | None
    readahead_bytes: int = 0
    has_programs: bool = False

    @property
    def copies(self) -> bool:
        return self.mount is not None and self.mount.filesystem in _COPYING

    @property
    def journals_data(self) -> bool:
        return self.mount is not None and journals_data(self.mount)


def readahead_bytes(device: BlockDevice, mount: Mount | None = None) -> int:
    """What the kernel may read ahead in a file: of the drive, or, if that is more, of mounted file
    systems of the type, which have their own (btrfs). 0 if it is not known."""
    files = [device.disk_sysfs / "queue/read_ahead_kb"]
    if mount is not None:
        files += (device.root / "sys/class/bdi").glob(f"{mount.filesystem}-*/read_ahead_kb")
    known = [0]
    for file in files:
        with suppress(OSError, ValueError):
            known.append(1024 * int(file.read_text(encoding="ascii")))
    return max(known)


def may_have_programs(device: BlockDevice) -> bool:
    """Whether programs of a run may be read from its drive: they are installed there, or it is not
    known where (in a container), and the page cache is emptied before a run."""
    if not caches.drops_all():
        return False
    of_programs = backing_devices(PROGRAMS)
    return not of_programs or share_a_disk(of_programs, [device])


def share_a_disk(some: Sequence[BlockDevice], others: Sequence[BlockDevice]) -> bool:
    """Whether a drive is below devices of both."""
    return not _disks(some).isdisjoint(_disks(others))


def _disks(devices: Sequence[BlockDevice]) -> set[str]:
    """The names of the disks that they are on, of which all partitions count."""
    disks = set()
    for device in devices:
        for drive in drives_below(device):
            disks.add(drive.disk_sysfs.name)
    return disks


@dataclass(frozen=True)
class OtherIo:
    """Other I/O as text, or why it cannot be judged, and whether it is too much for the figures of
    the run."""

    text: str
    is_much: bool


@dataclass(frozen=True)
class _Own:
    """Bytes that the tool does not report, but causes at most, and their reason."""

    most_bytes: float
    reason: str


def other_io(
    experiment: Experiment,
    phases: Sequence[PhaseResult],
    before: DeviceCounters,
    after: DeviceCounters,
    file_bytes: int | None,
    target: Target,
    resolution_bytes: int = 0,
) -> OtherIo | None:
    """What the drive moved beyond the tool's bytes and the file system's own, by direction. Where
    their own bytes could hide too much of others', the text says why it is not judged. None if the
    drive moved little more than the tool, or if the tool does not report all its bytes."""
    tool_bytes = _tool_bytes(experiment, phases)
    if tool_bytes is None:
        return None
    total = sum(tool_bytes.values())
    moved = {
        "read": after.read_bytes - before.read_bytes,
        "write": after.written_bytes - before.written_bytes,
    }
    own = {
        "read": _own_reads(experiment, tool_bytes, file_bytes, target),
        "write": _own_writes(experiment, tool_bytes["write"], target),
    }
    any_run = _in_any_run(target, resolution_bytes)
    named, not_judged, most = [], [], 0.0
    for operation, reported in tool_bytes.items():
        beyond = moved[operation] - reported
        if beyond <= NOTE_SHARE * total:
            continue
        causes = [any_run, *own[operation]]
        most_own = sum(cause.most_bytes for cause in causes)
        share = (beyond - most_own) / total
        verb = {"read": "read", "write": "wrote"}[operation]
        text = f"it {verb} {moved[operation] / 1e6:.1f} MB, the tool {reported / 1e6:.1f} MB"
        if share > NOTE_SHARE:
            named.append(text)
            most = max(most, share)
        elif most_own > (INVALID_SHARE - NOTE_SHARE) * total:
            largest = max(causes, key=lambda cause: cause.most_bytes)
            not_judged.append(f"{text} ({largest.reason})")
    texts = []
    if named:
        texts.append(f"other I/O on the drive: {'; '.join(named)}")
    if not_judged:
        texts.append(f"{NOT_JUDGED}: {'; '.join(not_judged)}")
    if texts:
        return OtherIo("; ".join(texts), most > INVALID_SHARE)
    return None


def _tool_bytes(experiment: Experiment, phases: Sequence[PhaseResult]) -> dict[str, float] | None:
    """By direction; None if they are not complete."""
    if not about(experiment.tool).reports_all_bytes:
        return None
    moved = {"read": 0.0, "write": 0.0}
    for phase in phases:
        if phase.operation == "mixed":
            moved["read"] += phase.metrics.get("bytes_read", 0)
            moved["write"] += phase.metrics.get("bytes_written", 0)
        elif phase.operation in moved and phase.bytes_moved is not None:
            moved[phase.operation] += phase.bytes_moved
        else:
            return None
    if sum(moved.values()):
        return moved
    return None


def _in_any_run(target: Target, resolution_bytes: int) -> _Own:
    slack = SLACK_BYTES
    if target.copies:
        slack = COPYING_SLACK_BYTES
    return _Own(slack + resolution_bytes, "the tool moved few bytes")


def _own_reads(
    experiment: Experiment, tool_bytes: Mapping[str, float], file_bytes: int | None, target: Target
) -> Iterator[_Own]:
    """What is read for the tool beyond its reported bytes."""
    reported = tool_bytes["read"]
    if target.has_programs:
        yield _Own(PROGRAMS_BYTES, "the programs of the run are on this drive")
    if target.copies:
        yield _Own(COPYING_TREES_SHARE * (file_bytes or 0), "the file system reads its trees")
    if experiment.cache.buffer != "on":
        if experiment.tool == "iozone" and experiment.processes == 1:
            first = experiment.request_size_bytes or 0
            yield _Own(first, "IOzone does not report its first request")
        return
    yield from _of_pages(experiment, sum(tool_bytes.values()))
    if ("engine", "mmap") in experiment.arguments:
        yield _Own(tool_bytes["write"], "a memory map reads each page before it is written")
    if reported:
        rest = math.inf
        if file_bytes is not None:
            rest = max(file_bytes - reported, 0)
        yield from _read_ahead(experiment, reported, rest, target)


def _read_ahead(
    experiment: Experiment, reported: float, rest: float, target: Target
) -> Iterator[_Own]:
    """What the kernel reads ahead of reads through the page cache. `rest` is the part of the files
    beyond the reported bytes."""
    is_fio = experiment.tool == "fio"
    # The clients of a data server read in turn, each in a place of its own.
    if experiment.spatiality == "sequential" and experiment.tool != "dataserver":
        # The window that is read and the one after it; fio has the kernel double both.
        windows = 2
        if is_fio:
            windows = 4
        ahead = experiment.processes * windows * target.readahead_bytes
        yield _Own(min(ahead, rest), "the kernel reads ahead in each file")
    elif not (is_fio and experiment.spatiality == "random"):  # fio switches read-ahead off
        again = READ_AGAIN_SHARE * reported
        if experiment.tool == "iozone" and experiment.spatiality == "strided":
            # Each pass may read all of a file that is larger than memory.
            passes = int(dict(experiment.arguments).get("stride", IOZONE_STRIDE))
            again = (passes - 1) * reported
        yield _Own(max(again, rest), "the kernel reads ahead between the requests")


def _own_writes(experiment: Experiment, reported: float, target: Target) -> Iterator[_Own]:
    """What is written for the tool beyond its reported bytes."""
    if experiment.cache.buffer == "on":
        yield from _of_pages(experiment, reported)
    if target.mount is None or not reported:
        return
    if experiment.flush == "each":
        # Up to 33 times the bytes were measured.
        yield _Own(math.inf, "each flush writes the file system's journal or trees")
    if target.copies:
        most_bytes = _requests(experiment, reported) * COPYING_BYTES_PER_REQUEST
        yield _Own(most_bytes, f"{target.mount.filesystem} writes its trees for each request")
    if target.journals_data:
        yield _Own(JOURNAL_OF_DATA_SHARE * reported, "the journal contains the data, too")


def _of_pages(experiment: Experiment, moved: float) -> Iterator[_Own]:
    if (experiment.request_size_bytes or 0) % _PAGE_BYTES:
        both_ends = 2 * _PAGE_BYTES * _requests(experiment, moved)
        yield _Own(both_ends, "the page cache moves complete pages of 4 KiB")


def _requests(experiment: Experiment, moved: float) -> float:
    return moved / (experiment.request_size_bytes or _PAGE_BYTES)
