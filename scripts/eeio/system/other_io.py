"""I/O of other programs on the drive: its bytes beyond those of the tool.

A file system moves bytes of its own, too. Its share is known for each state of the caches
(docs/explanation/caches-and-validity.md, measured by benchmarks/other_io.py).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from eeio.system.filesystem import BlockDevice, Mount
from eeio_results.record import DeviceCounters, Experiment
from eeio_results.tools.capture import PhaseResult

NOTE_SHARE, INVALID_SHARE = 0.1, 0.5
"""Of the tool's bytes: more than the first is noted, more than the second makes a run invalid."""
SLACK_BYTES = 1 << 20
COPYING_SLACK_BYTES = 8 << 20
"""What a file system may move of its own in any run: journal, superblock, trees."""
COPYING_BYTES_PER_REQUEST = 6144
"""What a file system that copies on write may write of its trees for each request."""
JOURNAL_OF_DATA_SHARE = 1.1
READ_AGAIN_SHARE = 1.0
"""Of buffered reads that are not sequential: what was read ahead may leave memory, and is read
again."""
COMPLETE = ("btio", "dataserver", "fio", "ior", "iozone")
"""Tools that report all bytes that they move. Bonnie++ rewrites and reads its file, too."""
_COPYING = ("btrfs", "bcachefs", "f2fs")
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class Target:
    """Where the bytes go: `mount` is the file system's, None for a device itself.
    `readahead_bytes`: what the kernel may read ahead in a file."""

    mount: Mount | None
    readahead_bytes: int = 0

    @property
    def copies(self) -> bool:
        return self.mount is not None and self.mount.filesystem in _COPYING

    @property
    def journals_data(self) -> bool:
        return self.mount is not None and "data=journal" in self.mount.options.split(",")


def readahead_bytes(device: BlockDevice) -> int:
    """0 if it is not known."""
    with suppress(OSError, ValueError):
        return 1024 * int((device.disk_sysfs / "queue/read_ahead_kb").read_text(encoding="ascii"))
    return 0


@dataclass(frozen=True)
class OtherIo:
    """Other I/O as text, and whether it is too much for the figures of the run."""

    text: str
    is_much: bool


def other_io(
    experiment: Experiment,
    phases: Sequence[PhaseResult],
    before: DeviceCounters,
    after: DeviceCounters,
    file_bytes: int | None,
    target: Target,
    resolution_bytes: int = 0,
) -> OtherIo | None:
    """What the drive moved beyond the tool's bytes and the file system's own, by direction; None if
    it is little, or if the tool does not report all its bytes."""
    tool_bytes = _tool_bytes(experiment, phases)
    if tool_bytes is None:
        return None
    total = sum(tool_bytes.values())
    moved = {
        "read": after.read_bytes - before.read_bytes,
        "write": after.written_bytes - before.written_bytes,
    }
    slack = resolution_bytes + _slack_bytes(experiment, target)
    texts, most = [], 0.0
    for operation, reported in tool_bytes.items():
        if operation == "write" and experiment.flush == "each" and target.mount is not None:
            continue  # each flush writes the journal or trees, up to 33 times the bytes
        expected = reported
        if operation == "read" and _reads_more(experiment) and reported:
            expected = max((1 + READ_AGAIN_SHARE) * reported, file_bytes or 0)
        if operation == "write":
            expected += reported * _own_share(experiment, target)
        share = (moved[operation] - expected - slack) / total
        most = max(most, share)
        if share > NOTE_SHARE:
            verb = {"read": "read", "write": "wrote"}[operation]
            texts.append(f"{verb} {moved[operation] / 1e6:.1f} MB, the tool {reported / 1e6:.1f}")
    if not texts:
        return None
    return OtherIo(f"other I/O on the drive: it {'; it '.join(texts)} MB", most > INVALID_SHARE)


def _tool_bytes(experiment: Experiment, phases: Sequence[PhaseResult]) -> dict[str, float] | None:
    """By direction; None if they are not complete."""
    if experiment.tool not in COMPLETE:
        return None
    found = {"read": 0.0, "write": 0.0}
    for phase in phases:
        if phase.operation == "mixed":
            found["read"] += phase.metrics.get("bytes_read", 0)
            found["write"] += phase.metrics.get("bytes_written", 0)
        elif phase.operation in found and phase.bytes_moved is not None:
            found[phase.operation] += phase.bytes_moved
        else:
            return None
    if experiment.cache.buffer == "on" and 0 < (experiment.request_size_bytes or 0) < _PAGE_BYTES:
        return None  # each request reads and writes a page
    return found if sum(found.values()) else None


def _reads_more(experiment: Experiment) -> bool:
    """Whether the page cache may read all of the file for a part of it."""
    return experiment.cache.buffer == "on" and experiment.spatiality != "sequential"


def _own_share(experiment: Experiment, target: Target) -> float:
    """What the file system itself writes, as a share of the tool's bytes."""
    if target.copies:
        return COPYING_BYTES_PER_REQUEST / (experiment.request_size_bytes or _PAGE_BYTES)
    return JOURNAL_OF_DATA_SHARE if target.journals_data else 0.0


def _slack_bytes(experiment: Experiment, target: Target) -> int:
    """Bytes that are in no report: IOzone's first request, and what is read ahead past the end."""
    slack = COPYING_SLACK_BYTES if target.copies else SLACK_BYTES
    each = experiment.request_size_bytes or 0
    if experiment.cache.buffer == "on":
        each += 2 * target.readahead_bytes
    return slack + experiment.processes * each
