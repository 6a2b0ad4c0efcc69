"""I/O of others on the drive: what is named, what is invalid, and what is the file system's own."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.mounts import attached, mounted, sparse
from tests.simulators.tree import write_tree

from eeio.machine import caches
from eeio.machine.filesystem import BlockDevice, Mount, backing_device, block_device, mount_of
from eeio.machine.other_io import (
    PROGRAMS,
    OtherIo,
    Target,
    may_have_programs,
    other_io,
    readahead_bytes,
)
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign import probes
from eeio.record import tools
from eeio.record.design import PlannedExperiment
from eeio.record.run import OTHER_IO, READ_BACK, CacheLayers, DeviceCounters, Experiment, Run
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult

pytestmark = pytest.mark.other_io
MB = 1_000_000
RAW = Target(None)


def test_a_file_system_may_read_ahead_by_itself(tmp_path: Path) -> None:
    """btrfs reads ahead 4 MiB in each file, whatever the drive does: clean runs were rejected."""
    write_tree(tmp_path, {
        "sys/class/block/sda/dev": "8:0", "sys/class/block/sda/queue/read_ahead_kb": "128",
        "sys/class/bdi/btrfs-1/read_ahead_kb": "4096", "sys/class/bdi/8:0/read_ahead_kb": "128",
    })  # fmt: skip
    device = BlockDevice("sda", 8, 0, root=tmp_path)
    assert readahead_bytes(device, on("btrfs").mount) == 4096 << 10
    assert readahead_bytes(device, on("ext4").mount) == readahead_bytes(device) == 128 << 10


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
    ("written_mb", "read_mb", "text"),
    [
        (268, 67, None),
        (268, 130, "other I/O on the drive"),
        (16, 48, "the programs of the run are on this drive"),
        (16, 100, "other I/O on the drive"),
    ],
)
def test_programs_on_the_drive_are_read_after_the_cache_was_emptied(
    written_mb: int, read_mb: float, text: str | None
) -> None:
    """48 to 67 MB on the drive with the system: each run named other I/O, and small ones were
    invalid."""
    of = experiment("write", "on", flush="end")
    found = judged(
        of, [phase("write", written_mb * MB)], read_mb, written_mb, Target(None, 0, True)
    )
    assert (found is None) if text is None else (found is not None and text in found.text)


def test_a_loop_device_of_its_own_drive_has_no_programs(tmp_path: Path) -> None:
    with attached(sparse(tmp_path / "image", 1 << 20)) as node:
        device, system = block_device(node), backing_device(PROGRAMS)[0]
        assert device is not None and not may_have_programs(device)
        assert system is None or may_have_programs(system) == caches.drops_all()


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
    assert "it read 50.0 MB, the tool 1.0 MB; it wrote 60.0 MB, the tool 1.0 MB" in both.text


def verdict(found: OtherIo | None) -> str:
    if found is None:
        return ""
    if found.text.startswith("other I/O not judged: "):
        assert not found.is_much
        return "not judged"
    return "invalid" if found.is_much else "named"


def test_a_small_run_has_a_slack() -> None:
    small = experiment(request=4096)
    found = judged(small, [phase("read", 4096)], 0.9)
    assert verdict(found) == "not judged"
    assert found is not None and "(the tool moved few bytes)" in found.text
    assert verdict(judged(small, [phase("read", 4096)], 1.5)) == "invalid"
    assert judged(small, [phase("read", 4 * MB)], 4.3, 0.3) is None


@pytest.mark.parametrize(
    ("target", "request_size", "written_mb", "expected"),
    [
        (on("ext4"), 4096, 112, "named"),
        (on("ext4", "rw,data=journal"), 4096, 215, "not judged"),
        (on("ext4", "rw,data=journal"), 4096, 330, "invalid"),
        # Copy on write: measured up to 3.3 times with requests of 4 KiB, 1.12 with 32 KiB.
        (on("btrfs"), 4096, 327, "not judged"),
        (on("btrfs"), 4096, 250, "not judged"),
        (on("btrfs"), 4096, 3500, "invalid"),
        (on("btrfs"), 32768, 112, "not judged"),
        (on("btrfs"), 32768, 109, ""),
        (on("btrfs"), 1 << 20, 106, ""),
        (on("btrfs"), 1 << 20, 140, "named"),
        (on("btrfs"), 1 << 20, 200, "invalid"),
    ],
)
def test_what_a_file_system_writes_of_its_own(
    target: Target, request_size: int, written_mb: float, expected: str
) -> None:
    of = experiment("write", request=request_size)
    found = judged(of, [phase("write", 100 * MB)], 0, written_mb, target)
    assert verdict(found) == expected


def test_the_trees_of_a_fragmented_file_are_read() -> None:
    of, random = experiment(request=4096, spatiality="random"), [phase("read", 20 * MB)]
    assert verdict(judged(of, random, 42, target=on("btrfs"), file_bytes=400 * MB)) == "not judged"
    assert verdict(judged(of, random, 60, target=on("btrfs"), file_bytes=400 * MB)) == "invalid"
    assert verdict(judged(of, random, 42, target=on("ext4"), file_bytes=400 * MB)) == "invalid"


def test_each_flush_writes_a_journal_of_unknown_size() -> None:
    of = experiment("write", request=4096, flush="each")
    assert judged(of, [phase("write", 4 * MB)], 0, 4.3, on("ext4")) is None
    assert verdict(judged(of, [phase("write", 4 * MB)], 0, 130, on("ext4"))) == "not judged"
    both = judged(of, [phase("write", 4 * MB)], 130, 130, on("ext4"))
    assert verdict(both) == "invalid"
    assert both is not None
    assert both.text == (
        "other I/O on the drive: it read 130.0 MB, the tool 0.0 MB; other I/O not judged: it wrote "
        "130.0 MB, the tool 4.0 MB (each flush writes the file system's journal or trees)"
    )
    raw = judged(of, [phase("write", 4 * MB)], 0, 130)
    assert verdict(raw) == "invalid", "a device has no journal"


@pytest.mark.parametrize(
    ("tool", "processes", "buffer", "read_mb", "expected"),
    [
        # 32 x 4 MiB are 134 MB, but no report leaves out more than one request.
        ("fio", 32, "off", 200, "invalid"),
        ("iozone", 32, "off", 200, "invalid"),
        ("iozone", 1, "off", 104, ""),
        ("iozone", 1, "off", 160, "invalid"),
        # Read ahead of each process's file: two windows, or four that fio asks for.
        ("ior", 32, "on", 108, ""),
        ("ior", 32, "on", 170, "invalid"),
        ("fio", 32, "on", 116, ""),
        ("fio", 32, "on", 180, "invalid"),
    ],
)
def test_many_processes_hide_no_more(
    tool: str, processes: int, buffer: str, read_mb: float, expected: str
) -> None:
    of = experiment(buffer=buffer, tool=tool, request=4 << 20, processes=processes)
    ahead = on("ext4", readahead_bytes=128 << 10)
    found = judged(of, [phase("read", 100 * MB)], read_mb, target=ahead, file_bytes=400 * MB)
    assert verdict(found) == expected
    writes = experiment("write", tool=tool, request=4 << 20, processes=processes, buffer=buffer)
    found = judged(writes, [phase("write", 100 * MB)], 0, 200, ahead, 400 * MB)
    assert verdict(found) == "invalid"


def test_read_ahead_ends_with_the_file() -> None:
    of, ahead = experiment(buffer="on", tool="ior"), on("ext4", readahead_bytes=8 << 20)
    sequential = [phase("read", 100 * MB)]
    assert verdict(judged(of, sequential, 115, target=ahead, file_bytes=400 * MB)) == ""
    assert verdict(judged(of, sequential, 115, target=ahead, file_bytes=100 * MB)) == "named"
    deep = on("ext4", readahead_bytes=32 << 20)
    assert verdict(judged(of, sequential, 160, target=deep)) == "not judged"


@pytest.mark.parametrize(
    ("tool", "spatiality", "file_mb", "read_mb", "expected"),
    [
        # fio switches read-ahead off for random requests: each is read once, and no more.
        ("fio", "random", 268, 16.1, ""),
        ("fio", "random", 268, 19, "named"),
        ("fio", "random", 268, 48, "invalid"),
        # Other requests may have the rest of the file read, or all pages once more.
        ("fio", "strided", 268, 16.8, ""),
        ("fio", "strided", 268, 260, "not judged"),
        ("fio", "strided", 268, 300, "invalid"),
        ("iozone", "random", 16, 16.5, ""),
        ("iozone", "random", 16, 23, "not judged"),
        ("iozone", "strided", 16, 32, "not judged"),
        # IOzone passes through the file 17 times: 2.3 times the bytes, if memory is smaller.
        ("iozone", "strided", 16, 48, "not judged"),
        ("iozone", "strided", 16, 300, "invalid"),
        ("iozone", "random", 16, 48, "invalid"),
        ("ior", "random", 16, 48, "invalid"),
        ("dataserver", "sequential", 16, 30, "not judged"),
        ("dataserver", "sequential", 16, 48, "invalid"),
    ],
)
def test_the_page_cache_reads_ahead(
    tool: str, spatiality: str, file_mb: int, read_mb: float, expected: str
) -> None:
    of = experiment(buffer="on", tool=tool, spatiality=spatiality, request=65536)
    found = judged(of, [phase("read", 16 * MB)], read_mb, 0, on("ext4"), file_mb * MB)
    assert verdict(found) == expected


def test_pages_are_read_before_they_are_written() -> None:
    mapped = experiment("write", buffer="on", arguments=(("engine", "mmap"),))
    assert verdict(judged(mapped, [phase("write", 67 * MB)], 67, 67, on("ext4"))) == "not judged"
    assert verdict(judged(mapped, [phase("write", 67 * MB)], 140, 67, on("ext4"))) == "invalid"
    parts = experiment("write", buffer="on", request=512)
    assert verdict(judged(parts, [phase("write", MB)], 8, 8)) == "not judged"
    assert verdict(judged(parts, [phase("write", MB)], 500, 8)) == "invalid"


@pytest.mark.parametrize(
    ("of", "phases"),
    [
        (experiment("write", tool="bonnie"), [phase("write", MB)]),
        (experiment("metadata"), [phase("metadata", MB)]),
        (experiment("read"), [phase("read", None)]),
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
    probe = probes.OtherIo([BlockDevice("sda1", 8, 1, root=tmp_path)], planned, on("ext4"))
    probe.start()
    counted(100 + other_mb, 100)
    probe.stop(1.0)
    run = Run(planned.experiment, 1, 0, "quick", "", 0.0, 1.0, 0, (), "raw", device="sda1")
    result = probe.add_to_result(ToolResult(phases=(phase("read", 100 * MB),)), run)
    expected = f"other I/O on the drive: it read {100 + other_mb:.1f} MB, the tool 100.0 MB"
    assert result.phases[0].invalid == ((expected,) if invalid else ())
    assert probe.add_to(run).remarks == ({} if invalid else {OTHER_IO: expected})


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[tuple[Path, BlockDevice]]:
    """A new ext4 with two files of 16 MiB, and its loop device."""
    if not all(map(shutil.which, ("fio", "mkfs.ext4"))):
        pytest.skip("fio or mkfs.ext4 is missing")
    image = tmp_path / "image"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 << 20)
    with attached(image) as node:
        # Without the tables that the kernel would write later: they are other I/O, too.
        complete = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
        subprocess.run(["mkfs.ext4", "-q", *complete, str(node)], check=True, timeout=100)
        with mounted(node, tmp_path / "mounted") as point:
            for name in ("own", "other"):
                with (point / name).open("wb") as file:
                    file.write(os.urandom(16 << 20))
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            device = block_device(node)
            assert device is not None
            yield point, device


def observed(
    drive: tuple[Path, BlockDevice], of: Experiment, *options: str, other_bytes: int = 0
) -> Run:
    """A run of fio, and of another program that reads meanwhile."""
    point, device = drive
    folder = point.parent
    planned = PlannedExperiment(of, "eeio-fio-1.0.0", {}, "x", "", 16 << 20)
    mount = mount_of(point)
    target = Target(mount, readahead_bytes(device, mount))
    watching = (
        probes.DriveCounters(device, planned, target, UndoJournal(folder / "journal.json")),
        probes.OtherIo([device], planned, target),
    )
    for probe in watching:
        probe.start()
    command = [
        "fio", "--name=x", f"--filename={point / 'own'}", "--size=16m", "--bs=64k",
        "--ioengine=psync", "--end_fsync=1", "--output-format=json",
        f"--output={folder / 'fio.json'}", *options,
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=100, cwd=folder)
    with (point / "other").open("rb") as file:
        file.read(other_bytes)
    caches.flush(point, None)
    for probe in watching:
        probe.stop(1.0)
    run = Run(of, 1, 0, "quick", "", 0.0, 1.0, 0, (), "raw")
    result = tools.parse("fio", Capture(folder, {}, 0, 0.0, 1.0, 0.0))
    for probe in watching:
        result = probe.add_to_result(result, run)
    for probe in watching:
        run = probe.add_to(run)
    return replace(run, validity=tuple(reason for p in result.phases for reason in p.invalid))


@pytest.mark.root
@pytest.mark.tools
@pytest.mark.parametrize(("other_bytes", "invalid"), [(0, False), (10 << 20, True)])
def test_random_reads_of_fio_hide_no_reads_of_the_file(
    drive: tuple[Path, BlockDevice], other_bytes: int, invalid: bool
) -> None:
    of = experiment(buffer="on", spatiality="random", request=65536)
    run = observed(drive, of, "--rw=randread", "--io_size=4m", other_bytes=other_bytes)
    assert run.remarks == {}
    assert (run.validity != ()) is invalid
    assert all("the tool 4.2 MB" in reason for reason in run.validity)


@pytest.mark.root
@pytest.mark.tools
def test_reads_of_own_writes_are_valid(drive: tuple[Path, BlockDevice]) -> None:
    of = experiment("mixed", buffer="on", request=65536, flush="end")
    run = observed(drive, of, "--rw=rw", "--rwmixread=30")
    assert run.validity == ()
    assert "the tool had just written" in run.remarks[READ_BACK]
