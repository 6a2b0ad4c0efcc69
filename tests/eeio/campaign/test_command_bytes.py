"""Bytes of a command: the account of its processes against the count of the watched drive."""

from dataclasses import replace

import pytest

from eeio.machine.other_io import Target
from eeio.measure.campaign.command_bytes import Counted, at_drive, without_drive
from eeio.record.reasons import WROTE_NOTHING
from eeio.record.run import COMMAND_READ, COMMAND_WRITTEN, DeviceCounters
from eeio.record.tools.capture import PhaseResult

MB = 1_000_000
TARGET = Target(None)
PROGRAMS = Target(None, has_programs=True)

pytestmark = pytest.mark.other_io


def command(read: float = 0.0, written: float = 0.0, executions: float = 1.0) -> PhaseResult:
    metrics = {"bytes_read": read, "bytes_written": written, "executions": executions}
    return PhaseResult(
        "run", "mixed", "mixed", None, int(read + written), None, 1.0, 3.0, "", metrics,
        durable_reason=None if written else WROTE_NOTHING,
    )  # fmt: skip


def drive(read: int = 0, written: int = 0, elsewhere: int | None = 0) -> Counted:
    count = DeviceCounters(read, written)
    return Counted(count, count, elsewhere)


def test_bytes_that_the_drive_moved_too_are_the_command_s() -> None:
    phase, remarks = at_drive(
        command(100 * MB, 200 * MB), drive(101 * MB, 201 * MB), TARGET, is_cold=False
    )
    assert phase.metrics["bytes_read"] == 100 * MB and phase.metrics["bytes_written"] == 200 * MB
    assert phase.bytes_moved == 300 * MB and phase.bandwidth_bytes_per_s == 150 * MB
    assert phase.durable_reason is None and not remarks


def test_writes_of_processes_that_nobody_waited_for_leave_no_bytes() -> None:
    """A child whose parent ignores SIGCHLD is in no account."""
    phase, remarks = at_drive(command(written=8 * MB), drive(written=208 * MB), TARGET, False)
    assert "bytes_written" not in phase.metrics and phase.bytes_moved is None
    assert phase.durable_reason is None, "the flush included them"
    assert "208.0 MB" in remarks[COMMAND_WRITTEN] and "did not wait for" in remarks[COMMAND_WRITTEN]


def test_reads_of_processes_that_nobody_waited_for_leave_no_bytes() -> None:
    phase, remarks = at_drive(command(read=8 * MB), drive(read=60 * MB), PROGRAMS, False)
    assert "bytes_read" not in phase.metrics and "60.0 MB" in remarks[COMMAND_READ]
    phase, remarks = at_drive(command(read=8 * MB), drive(read=60 * MB), PROGRAMS, is_cold=True)
    assert phase.metrics["bytes_read"] == 8 * MB and not remarks, "its programs were read"


def test_few_reads_of_others_leave_the_bytes_of_a_command_that_writes() -> None:
    phase, remarks = at_drive(
        command(written=200 * MB), drive(read=4 * MB, written=200 * MB), TARGET, False
    )
    assert phase.metrics["bytes_read"] == 0 and phase.bytes_moved == 200 * MB and not remarks


def test_commits_of_each_execution_are_the_file_system_s() -> None:
    phase, remarks = at_drive(
        command(written=400_000, executions=100.0), drive(written=4 * MB), TARGET, False
    )
    assert phase.metrics["bytes_written"] == 400_000 and not remarks


@pytest.mark.parametrize("changed", [4096, 11 * MB])
def test_the_flush_belongs_to_a_command_that_changes_names_only(changed: int) -> None:
    phase, remarks = at_drive(command(), drive(written=changed), TARGET, False)
    assert phase.durable_reason is None
    assert ("bytes_written" in phase.metrics) is (changed < MB)
    assert all("another program did" not in text for text in remarks.values())


def test_a_command_changed_nothing_if_the_drive_wrote_nothing() -> None:
    phase, remarks = at_drive(command(), drive(), TARGET, False)
    assert phase.durable_reason == WROTE_NOTHING and not remarks


@pytest.mark.parametrize("elsewhere", [1000 * MB, None, -1])
def test_bytes_on_another_drive_are_not_durable(elsewhere: int | None) -> None:
    counted = drive(written=8192, elsewhere=elsewhere)
    phase, _ = at_drive(command(written=1000 * MB), counted, TARGET, False)
    assert "bytes_written" not in phase.metrics
    assert "0.0 MB of its 1000.0 MB were on the drive" in str(phase.durable_reason)


def test_bytes_that_come_after_the_flush_are_not_durable() -> None:
    """The drive is named, and the file system with them is not that of the directory."""
    counted = replace(drive(written=0), until_end=DeviceCounters(0, 200 * MB))
    phase, _ = at_drive(command(written=200 * MB), counted, TARGET, False)
    assert "bytes_written" not in phase.metrics
    assert "0.0 MB of its 200.0 MB were on the drive" in str(phase.durable_reason)


def test_a_control_group_does_not_hide_bytes_on_another_drive() -> None:
    """It counted a log on the watched drive only."""
    log = DeviceCounters(0, 8192)
    counted = replace(drive(written=8192, elsewhere=1000 * MB), own=log, own_at_flush=log)
    phase, _ = at_drive(command(written=1000 * MB + 8192), counted, TARGET, False)
    assert phase.durable_reason is not None
    assert phase.metrics["bytes_written"] == 8192, "at the watched drive"


def test_bytes_of_a_control_group_that_are_written_later_are_not_durable() -> None:
    """Of another file system on the same drive."""
    counted = replace(
        drive(written=300 * MB), own=DeviceCounters(0, 100 * MB), own_at_flush=DeviceCounters(0, 0)
    )
    phase, _ = at_drive(command(written=100 * MB), counted, TARGET, False)
    assert "0.0 MB of its 100.0 MB" in str(phase.durable_reason)


def test_a_control_group_knows_the_bytes_next_to_another_writer() -> None:
    own = DeviceCounters(8, 20 * MB)
    counted = replace(drive(10, 300 * MB), own=own, own_at_flush=own)
    phase, remarks = at_drive(command(100, 20 * MB), counted, TARGET, False)
    assert phase.metrics["bytes_read"] == 8 and phase.metrics["bytes_written"] == 20 * MB
    assert phase.durable_reason is None and not remarks


def test_a_file_system_without_groups_writes_on_no_account() -> None:
    own = DeviceCounters(90, 0)
    counted = replace(drive(150, 20 * MB), own=own, own_at_flush=own)
    phase, _ = at_drive(command(100, 20 * MB), counted, TARGET, False)
    assert phase.metrics["bytes_read"] == 90 and phase.metrics["bytes_written"] == 20 * MB


@pytest.mark.parametrize(
    ("written", "elsewhere", "is_named"),
    [
        (40_000.0, 20_000, True),  # half of short writes
        (29.0 * MB, 29 * MB, True),  # the drive wrote as much for 3600 mkdir
        (0.0, MB, True),  # rm of files on another drive
        (100.0 * MB, MB, False),
        (0.0, 50_000, False),
        (100.0 * MB, None, False),
    ],
)
def test_writes_of_other_drives_are_named(
    written: float, elsewhere: int | None, is_named: bool
) -> None:
    """A drive's own journal may stand in for bytes that a command wrote elsewhere."""
    counted = drive(written=int(written), elsewhere=elsewhere)
    phase, remarks = at_drive(command(written=written), counted, TARGET, False)
    assert ("other drives wrote" in remarks.get(COMMAND_WRITTEN, "")) is is_named
    assert phase.metrics["bytes_written"] == written
    own = DeviceCounters(0, int(written))
    known = replace(counted, own=own, own_at_flush=own)
    assert not at_drive(command(written=written), known, TARGET, False)[1], "the group's are known"


def test_what_the_drive_wrote_shows_how_much_may_be_elsewhere() -> None:
    """The account of 98.5 MB is of large pages: 1.5 MB of 5.5 MB were written to another drive."""
    counted = drive(written=4 * MB, elsewhere=1_500_000)
    phase, _ = at_drive(command(written=98.5 * MB), counted, TARGET, False)
    assert phase.durable_reason is not None and "bytes_written" not in phase.metrics


def test_small_overwrites_count_what_the_drive_wrote() -> None:
    """The kernel counts a large page of the cache for each of 4 KiB."""
    counted = drive(written=4 * MB, elsewhere=MB)
    phase, _ = at_drive(command(3 * MB, 196 * MB), counted, TARGET, False)
    assert "bytes_read" not in phase.metrics, "3 of 7 MB are another drive's"
    phase, remarks = at_drive(command(written=196 * MB), counted, TARGET, False)
    assert phase.metrics["bytes_written"] == 4 * MB == phase.bytes_moved
    assert phase.durable_reason is None
    assert "196.0 MB" in remarks[COMMAND_WRITTEN] and "large pages" in remarks[COMMAND_WRITTEN]


@pytest.mark.parametrize(
    ("at_the_drive", "expected"), [(99.0, 100.0), (95.0, 95.0), (91.0, 91.0), (89.0, None)]
)
def test_reads_of_another_drive_are_not_counted(
    at_the_drive: float, expected: float | None
) -> None:
    counted = drive(read=int(at_the_drive * MB))
    phase, remarks = at_drive(command(read=100.0 * MB), counted, TARGET, False)
    found = phase.metrics.get("bytes_read")
    assert found == (None if expected is None else expected * MB)
    assert (COMMAND_READ in remarks) is (at_the_drive in (95.0, 91.0)), "the difference is named"


def test_few_reads_of_another_drive_leave_the_bytes_of_a_command_that_writes() -> None:
    """The libraries of a program, once in three runs."""
    phase, remarks = at_drive(
        command(2 * MB, 200 * MB), drive(read=0, written=200 * MB), TARGET, False
    )
    assert phase.metrics["bytes_read"] == 0 and phase.bytes_moved == 200 * MB
    assert "2.0 MB" in remarks[COMMAND_READ]


@pytest.mark.parametrize("written", [0.0, 100.0])
def test_without_a_drive_neither_bytes_nor_durability_are_known(written: float) -> None:
    phase, remarks = without_drive(command(100.0, written), "the server has the drives")
    assert not {"bytes_read", "bytes_written"} & phase.metrics.keys()
    assert phase.bytes_moved is None and phase.bandwidth_bytes_per_s is None
    assert set(remarks) == {COMMAND_READ, COMMAND_WRITTEN}
    if written:
        assert "not known: the server has the drives" in str(phase.durable_reason)
    else:
        assert phase.durable_reason == WROTE_NOTHING


@pytest.mark.parametrize("is_accounted", [True, False])
def test_the_bytes_that_a_command_wrote_to_memory_are_in_no_account(is_accounted: bool) -> None:
    reason = "/dev/shm is tmpfs"
    phase, _ = without_drive(command(100.0, 0.0), reason, is_accounted=is_accounted)
    assert (phase.durable_reason == WROTE_NOTHING) == is_accounted
    assert is_accounted or f"not known: {reason}" in str(phase.durable_reason)
