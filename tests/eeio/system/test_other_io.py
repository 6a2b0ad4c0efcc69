"""I/O of others on the drive: what is named, what is invalid, and what is the file system's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.simulators.tree import write_tree

from eeio.campaign import probes
from eeio.system.filesystem import BlockDevice, Mount
from eeio.system.other_io import OtherIo, Target, other_io
from eeio_results.campaign import PlannedExperiment
from eeio_results.record import OTHER_IO, CacheLayers, DeviceCounters, Experiment, Run
from eeio_results.tools.capture import PhaseResult, ToolResult

pytestmark = pytest.mark.other_io
MB = 1_000_000
RAW = Target(None)


def on(filesystem: str, options: str = "rw", readahead_bytes: int = 0) -> Target:
    return Target(Mount(Path("/mnt"), filesystem, "/dev/sda1", options, "8:1"), readahead_bytes)


def experiment(
    operation: str = "read", buffer: Any = "off", tool: str = "fio", request: int | None = 1 << 20,
    **more: Any,
) -> Experiment:  # fmt: skip
    spatiality = more.pop("spatiality", "sequential")
    return Experiment(
        "filesystem", tool, operation, spatiality, request, CacheLayers(buffer), **more
    )


def phase(operation: str, moved: int | None, **metrics: float) -> PhaseResult:
    return PhaseResult(operation, operation, "none", None, moved, None, 0.0, 1.0, "test", metrics)


def judged(
    of: Experiment,
    phases: Sequence[PhaseResult],
    read_mb: float = 0,
    written_mb: float = 0,
    target: Target = RAW,
    file_bytes: int | None = None,
) -> OtherIo | None:
    after = DeviceCounters(5 + int(read_mb * MB), 7 + int(written_mb * MB))
    return other_io(of, phases, DeviceCounters(5, 7), after, file_bytes, target)


@pytest.mark.parametrize(
    ("read_mb", "named", "much"),
    [(200, False, False), (218, False, False), (225, True, False), (298, True, False),
     (310, True, True), (600, True, True)],
)  # fmt: skip
def test_reads_beyond_the_tools(read_mb: float, named: bool, much: bool) -> None:
    found = judged(experiment(), [phase("read", 200 * MB)], read_mb)
    assert (found is not None) is named
    assert (found is not None and found.is_much) is much


def test_the_directions_are_compared_separately() -> None:
    """fio read 50.7 MB, the drive wrote 1,145 MB meanwhile, and the run was valid."""
    found = judged(experiment(), [phase("read", 50_700_000)], 50.7, 1145)
    assert found is not None and found.is_much
    assert found.text == "other I/O on the drive: it wrote 1145.0 MB, the tool 0.0 MB"
    # Fewer reads from the drive, as of a cache, do not hide writes of others.
    assert judged(experiment(), [phase("read", 50 * MB)], 0, 100) is not None
    both = judged(experiment("mixed"), [phase("mixed", None, bytes_read=MB, bytes_written=MB)],
                  50, 60)  # fmt: skip
    assert both is not None
    assert "it read 50.0 MB, the tool 1.0; it wrote 60.0 MB, the tool 1.0 MB" in both.text


def test_a_small_run_has_a_slack() -> None:
    small = experiment(request=4096)
    assert judged(small, [phase("read", 4096)], 0.9, 0.9) is None
    assert judged(small, [phase("read", 4096)], 1.5) is not None


@pytest.mark.parametrize(
    ("target", "written_mb", "named"),
    [
        (on("ext4"), 112, True),
        (on("ext4", "rw,data=journal"), 215, False),
        (on("ext4", "rw,data=journal"), 330, True),
        # Copy on write: measured up to 2.0 times with requests of 4 KiB.
        (on("btrfs"), 200, False),
        (on("btrfs"), 300, True),
    ],
)
def test_what_a_file_system_writes_of_its_own(
    target: Target, written_mb: float, named: bool
) -> None:
    of = experiment("write", request=4096)
    found = judged(of, [phase("write", 100 * MB)], 0, written_mb, target)
    assert (found is not None) is named


def test_each_flush_writes_a_journal_of_unknown_size() -> None:
    of = experiment("write", request=4096, flush="each")
    assert judged(of, [phase("write", 4 * MB)], 0, 130, on("ext4")) is None
    assert judged(of, [phase("write", 4 * MB)], 130, 130, on("ext4")) is not None
    assert judged(of, [phase("write", 4 * MB)], 0, 130) is not None, "a device has no journal"


def test_the_page_cache_reads_ahead() -> None:
    of = experiment(buffer="on", spatiality="strided", request=65536)
    strided = [phase("read", 16 * MB)]
    assert judged(of, strided, 260, target=on("ext4"), file_bytes=268 * MB) is None
    assert judged(of, strided, 300, target=on("ext4"), file_bytes=268 * MB) is not None
    # IOzone read 1.42 times its bytes on a busy machine.
    complete = [phase("read", 134 * MB)]
    assert judged(of, complete, 190, target=on("ext4"), file_bytes=134 * MB) is None
    of = experiment(buffer="on")
    ahead = on("ext4", readahead_bytes=8 << 20)
    assert judged(of, [phase("read", 20 * MB)], 36, target=ahead) is None
    assert judged(of, [phase("read", 20 * MB)], 36, target=on("ext4")) is not None


@pytest.mark.parametrize(
    ("of", "phases"),
    [
        (experiment("write", tool="bonnie"), [phase("write", MB)]),
        (experiment("metadata"), [phase("metadata", MB)]),
        (experiment("read"), [phase("read", None)]),
        (experiment("write", buffer="on", request=512), [phase("write", MB)]),
        (experiment("read"), []),
    ],
)
def test_without_all_bytes_of_the_tool_nothing_is_compared(
    of: Experiment, phases: list[PhaseResult]
) -> None:
    assert judged(of, phases, 500, 500) is None


STAT = "0 0 {} 0 0 0 {} 0 0 0 0 0 0 0 0 0 0"


@pytest.mark.parametrize(("other_mb", "invalid"), [(20, False), (200, True)])
def test_other_partitions_of_the_drive_count(tmp_path: Path, other_mb: int, invalid: bool) -> None:
    def counted(disk_mb: int, partition_mb: int) -> None:
        disk = "sys/devices/pci/block/sda"
        write_tree(tmp_path, {
            f"{disk}/dev": "8:0", f"{disk}/stat": STAT.format(disk_mb * MB // 512, 0),
            f"{disk}/sda1/dev": "8:1", f"{disk}/sda1/partition": "1",
            f"{disk}/sda1/stat": STAT.format(partition_mb * MB // 512, 0),
            "proc/self/mountinfo": "",
        })  # fmt: skip

    counted(0, 0)
    for name, target in (("sda", "sda"), ("sda1", "sda/sda1")):
        (tmp_path / "sys/class/block").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/class/block" / name).symlink_to(f"../../devices/pci/block/{target}")
    planned = PlannedExperiment(experiment(), "eeio-fio-1.0.0", {}, "x", "", 100 * MB)
    probe = probes.OtherIo(BlockDevice("sda1", 8, 1, root=tmp_path), planned, on("ext4"))
    probe.start()
    counted(100 + other_mb, 100)
    probe.stop(1.0)
    run = Run(planned.experiment, 1, 0, "quick", "", 0.0, 1.0, 0, (), "raw", device="sda1")
    result = probe.add_to_result(ToolResult(phases=(phase("read", 100 * MB),)), run)
    expected = f"other I/O on the drive: it read {100 + other_mb:.1f} MB, the tool 100.0 MB"
    assert result.phases[0].invalid == ((expected,) if invalid else ())
    assert probe.add_to(run).remarks == ({} if invalid else {OTHER_IO: expected})
