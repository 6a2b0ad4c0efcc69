"""The bytes of a command at the watched drive, and whether a flush made them durable.

The kernel's account of the command's processes covers all drives, and no process that nobody waited
for. It is compared with the drive's count, in both directions
(docs/explanation/caches-and-validity.md, "Bytes of a command").
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eeio.machine import other_io
from eeio.record.reasons import WROTE_NOTHING
from eeio.record.run import COMMAND_READ, COMMAND_WRITTEN, DeviceCounters
from eeio.record.tools.capture import PhaseResult

Remarks = Mapping[str, str]
"""By kind (Run.remarks)."""
READ, WRITTEN = "bytes_read", "bytes_written"
LEAST_CHANGE_BYTES = 1
"""A drive that writes so much between the flush before a command and the one after it, may have
written for the command: changes of names and attributes are in no account."""
SLACK_BYTES, COPYING_SLACK_BYTES = other_io.SLACK_BYTES, other_io.COPYING_SLACK_BYTES
_COMMIT_BYTES, _COPYING_COMMIT_BYTES = 128 << 10, 512 << 10
"""A commit of a file system's journal or trees, which each flush of an execution writes. Measured:
48 kB (ext4), 6 kB (xfs), 172 kB (btrfs)."""
_EXACT_SHARE = 0.98
"""File systems write complete pages, and records of their own: a smaller share is a difference."""


@dataclass(frozen=True)
class Counted:
    """What the watched drive moved for all programs, from the command's start: `until_flush` and
    until the end. `elsewhere_bytes` is what all other drives and partitions wrote until the end;
    None if bytes can go where no drive counts them, such as to a server. `own` and `own_at_flush`
    are the kernel's counts of the command's control group at this drive, if it has one."""

    until_flush: DeviceCounters
    until_end: DeviceCounters
    elsewhere_bytes: int | None
    own: DeviceCounters | None = None
    own_at_flush: DeviceCounters | None = None

    @property
    def is_written_by_group(self) -> bool:
        """A file system without support of control groups writes on no group's account."""
        return self.own is not None and self.own.written_bytes > 0

    def may_be_elsewhere(self, written_bytes: float) -> bool:
        """Whether a part of so many bytes may be on another drive, or came to this one after the
        flush."""
        if self.elsewhere_bytes is None or self.elsewhere_bytes < 0:
            return True
        late_bytes = self.until_end.written_bytes - self.until_flush.written_bytes
        # The account may be many times what the drive wrote (large pages).
        most_bytes = max((1 - _EXACT_SHARE) * self.until_flush.written_bytes, SLACK_BYTES)
        limit_bytes = min((1 - _EXACT_SHARE) * written_bytes, most_bytes)
        return self.elsewhere_bytes + late_bytes > limit_bytes

    def remark_on_others(self, written_bytes: float) -> str | None:
        """That other drives wrote, where no control group shows whose bytes these are: a drive's
        own writes of its journal may stand in for the bytes of the command that went there."""
        limit_bytes: float = _COMMIT_BYTES
        if written_bytes:
            limit_bytes = (1 - _EXACT_SHARE) * written_bytes
        if self.own is not None or (self.elsewhere_bytes or 0) <= limit_bytes:
            return None
        return (
            f"other drives wrote {_mb(self.elsewhere_bytes or 0)} during the run: if the command "
            "did that, its bytes, W, J and the time until durable are without it"
        )


@dataclass(frozen=True)
class _Figure:
    """Bytes at the drive; None if they are not known. `remark`: why they are not the account's."""

    count: float | None
    remark: str | None = None


def without_drive(
    phase: PhaseResult, reason: str, *, is_accounted: bool = True
) -> tuple[PhaseResult, Remarks]:
    """A command's phase if no drive counts its bytes, and the remarks on that: its bytes are no
    drive's, and no flush shows when they are durable. `is_accounted`: the kernel's account of the
    processes has the writes to that file system."""
    durable_reason = phase.durable_reason
    if durable_reason is None or (durable_reason == WROTE_NOTHING and not is_accounted):
        durable_reason = f"whether its bytes are on a drive is not known: {reason}"
    remarks = dict.fromkeys((COMMAND_READ, COMMAND_WRITTEN), f"no drive counts its bytes: {reason}")
    return replace(_with_bytes(phase, None, None), durable_reason=durable_reason), remarks


def at_drive(
    phase: PhaseResult, counted: Counted, target: other_io.Target, is_cold: bool
) -> tuple[PhaseResult, Remarks]:
    """A command's phase with its bytes at the watched drive and why they are not durable, and
    remarks on differences between its account and the drive's count."""
    account = phase.metrics.get(WRITTEN, 0.0)
    if phase.durable_reason == WROTE_NOTHING:
        # Only with a change of the file system the flush is the command's.
        is_changed = counted.until_flush.written_bytes >= LEAST_CHANGE_BYTES
        durable_reason = None
        if not is_changed:
            durable_reason = WROTE_NOTHING
        phase = replace(phase, durable_reason=durable_reason)
    elif phase.durable_reason is None:
        late = _why_late(account, counted)
        phase = replace(phase, durable_reason=late)
    written = _written(phase, counted, target)
    read = _read(phase, counted, target, is_cold, written.count or 0.0)
    remarks = {COMMAND_READ: read.remark, COMMAND_WRITTEN: written.remark}
    if remarks[COMMAND_WRITTEN] is None and phase.durable_reason in (None, WROTE_NOTHING):
        remarks[COMMAND_WRITTEN] = counted.remark_on_others(account)
    known = {kind: text for kind, text in remarks.items() if text is not None}
    return _with_bytes(phase, read.count, written.count), known


def _with_bytes(phase: PhaseResult, read: float | None, written: float | None) -> PhaseResult:
    counts: Mapping[str, float | None] = {READ: read, WRITTEN: written}
    others = {name: value for name, value in phase.metrics.items() if name not in counts}
    known = {name: value for name, value in counts.items() if value is not None}
    total = None
    if len(known) == len(counts):
        total = int(sum(known.values()))
    lasted_s = (phase.end_s or 0.0) - (phase.start_s or 0.0)
    rate = None
    if total and lasted_s > 0:
        rate = total / lasted_s
    return replace(
        phase, metrics={**others, **known}, bytes_moved=total, bandwidth_bytes_per_s=rate
    )


def _read(
    phase: PhaseResult, counted: Counted, target: other_io.Target, is_cold: bool, written: float
) -> _Figure:
    if counted.own is not None:
        return _Figure(counted.own.read_bytes)
    account = phase.metrics.get(READ)
    moved = counted.until_end.read_bytes
    if account is None or moved < 0:
        return _Figure(account)
    # A little of another drive, or of another program, counts against all bytes of the command.
    tolerated_bytes = other_io.NOTE_SHARE * (account + written)
    if moved < account - tolerated_bytes:
        return _Figure(None)
    if moved < _EXACT_SHARE * account:
        text = (
            f"its processes read {_mb(account)} from storage, and the drive {_mb(moved)}: read "
            "bytes are the drive's, the rest is another drive's"
        )
        return _Figure(moved, text)
    most_bytes = account + tolerated_bytes + _slack_bytes(target)
    if is_cold and target.has_programs:
        most_bytes += other_io.PROGRAMS_BYTES
    if moved > most_bytes:
        return _Figure(None, _by_others("read", moved, account))
    return _Figure(account)


def _written(phase: PhaseResult, counted: Counted, target: other_io.Target) -> _Figure:
    account = phase.metrics.get(WRITTEN)
    if counted.own is not None and (counted.is_written_by_group or not account):
        return _Figure(counted.own.written_bytes)
    moved = counted.until_flush.written_bytes
    if account is None or moved < 0:
        return _Figure(account)
    if moved < _EXACT_SHARE * account:
        if counted.may_be_elsewhere(account):
            return _Figure(None, _late(moved, account))
        text = (
            f"the kernel counts {_mb(account)} of pages that its processes changed. The drive "
            f"wrote {_mb(moved)}, which are the written bytes, and no other drive wrote: small "
            "writes count as large pages, or the file system compresses"
        )
        return _Figure(moved, text)
    share = 1 + other_io.NOTE_SHARE
    if target.journals_data:
        share += other_io.JOURNAL_OF_DATA_SHARE
    commit_bytes = _COMMIT_BYTES
    if target.copies:
        commit_bytes = _COPYING_COMMIT_BYTES
    commits_bytes = commit_bytes * phase.metrics.get("executions", 1.0)
    if moved > share * account + _slack_bytes(target) + commits_bytes:
        return _Figure(None, _by_others("wrote", moved, account))
    return _Figure(account)


def _slack_bytes(target: other_io.Target) -> float:
    if target.copies:
        return COPYING_SLACK_BYTES
    return SLACK_BYTES


def _by_others(verb: str, moved: float, account: float) -> str:
    causes = "a process that it did not wait for, a service that it asked, or another program"
    if verb == "wrote":
        causes = f"the file system's records of files and names, {causes}"
    return (
        f"the drive {verb} {_mb(moved)} until the flush, and the command's processes "
        f"{_mb(account)}: the rest is of {causes}"
    )


def _why_late(account: float, counted: Counted) -> str | None:
    """Why a command's bytes were not all on the drive after the flush of the directory's file
    system; None if they were."""
    by_flush = float(counted.until_flush.written_bytes)
    if counted.own is not None and counted.own_at_flush is not None and counted.is_written_by_group:
        by_flush = counted.own_at_flush.written_bytes
        if by_flush < _EXACT_SHARE * counted.own.written_bytes:
            return _late(by_flush, counted.own.written_bytes)
    if by_flush >= _EXACT_SHARE * account or not counted.may_be_elsewhere(account):
        return None
    return _late(by_flush, account)


def _late(by_flush: float, expected: float) -> str:
    return (
        f"{_mb(by_flush)} of its {_mb(expected)} were on the drive when the file system of the "
        "directory was flushed: it wrote to another one (--directory names one), this one stores "
        "fewer bytes (compression, small files in records), or small writes count as large pages"
    )


def _mb(count: float) -> str:
    return f"{count / 1e6:.1f} MB"
