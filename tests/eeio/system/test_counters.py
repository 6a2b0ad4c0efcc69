"""The device's counters on trees with published names and values, and what they mean."""

import itertools
from pathlib import Path

import pytest
from tests.campaigns import records
from tests.simulators.tree import write_tree

from eeio.cli import main
from eeio.machine import caches, counters
from eeio.machine.filesystem import BlockDevice, backing_device, block_device
from eeio.measure.campaign import preparation, recorded_phase
from eeio.measure.campaign.volumes import Volume
from eeio.record.design import PlannedExperiment
from eeio.record.run import CacheLayers, DeviceCounters, Experiment, Run
from eeio.record.tools.capture import Capture, PhaseResult, ToolResult

# Of a server of Bytedance, in pull request 157 of atop (2021): the head of a drive with native
# multipath counts nothing, its path does.
PATH_STAT = (
    "34706049 74843 4815165730 93876201 4187610 1925219 6989322264 47813633 0 45557635 118897696 "
    "312571 0 11200562376 857547"
)
HEAD_STAT = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
SUBSYSTEM = "sys/devices/virtual/nvme-subsystem/nvme-subsys0"


def nvme(root: Path, head: str, paths: dict[int, str], others: bool = True) -> BlockDevice:
    """A drive as kernels with native multipath show it, with a path a controller, and another
    namespace and another subsystem beside it."""
    files = {
        f"{SUBSYSTEM}/nvme0n1/dev": "259:1",
        f"{SUBSYSTEM}/nvme0n1/stat": head,
        f"{SUBSYSTEM}/nvme0n1/nvme0n1p1/partition": "1",
        f"{SUBSYSTEM}/nvme0n1/nvme0n1p1/dev": "259:2",
        f"{SUBSYSTEM}/nvme0n1/nvme0n1p1/stat": head,
    }
    links = {
        "sys/class/block/nvme0n1": f"../../../{SUBSYSTEM}/nvme0n1",
        "sys/class/block/nvme0n1p1": f"../../../{SUBSYSTEM}/nvme0n1/nvme0n1p1",
    }
    for number, stat in paths.items():
        controller = f"sys/devices/pci0000:00/0000:00:0{number}.0/nvme/nvme{number}"
        files[f"{controller}/nvme0c{number}n1/stat"] = stat
        if others:
            files[f"{controller}/nvme0c{number}n2/stat"] = PATH_STAT
            files[f"{controller}/nvme7c{number}n1/stat"] = PATH_STAT
        links[f"{SUBSYSTEM}/nvme{number}"] = f"../../../../../{controller}"
    write_tree(root, files)
    for name, target in links.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    device = block_device(Path("/dev/nvme0n1"), root)
    assert device is not None
    return device


READ, WRITTEN = 4815165730 * 512, 6989322264 * 512


def test_a_head_that_counts_nothing_has_its_paths_counters(tmp_path: Path) -> None:
    device = nvme(tmp_path, HEAD_STAT, {0: PATH_STAT})
    assert counters.read_counters(device) == DeviceCounters(READ, WRITTEN)


def test_several_paths_are_added(tmp_path: Path) -> None:
    device = nvme(tmp_path, HEAD_STAT, {0: PATH_STAT, 1: PATH_STAT})
    assert counters.read_counters(device) == DeviceCounters(2 * READ, 2 * WRITTEN)


def test_a_head_that_counts_is_not_counted_twice(tmp_path: Path) -> None:
    """Newer kernels count in the head too."""
    device = nvme(tmp_path, PATH_STAT, {0: PATH_STAT})
    assert counters.read_counters(device) == DeviceCounters(READ, WRITTEN)


def test_a_partition_of_such_a_drive_has_the_paths_too(tmp_path: Path) -> None:
    nvme(tmp_path, HEAD_STAT, {0: PATH_STAT})
    partition = block_device(Path("/dev/nvme0n1p1"), tmp_path)
    assert partition is not None
    assert counters.read_counters(partition) == DeviceCounters(READ, WRITTEN)


@pytest.mark.parametrize(
    ("level", "read", "written"), [("linear", 2 * READ, 2 * WRITTEN), ("raid1", 0, 0)]
)
def test_disks_in_a_row_have_their_members_counters(
    tmp_path: Path, level: str, read: int, written: int
) -> None:
    """Linux 6.1 counts nothing in an array of the level linear; what a mirror moved is not the sum
    of its members' writes."""
    block = "sys/devices/virtual/block"
    write_tree(
        tmp_path,
        {
            f"{block}/md0/dev": "9:0", f"{block}/md0/stat": HEAD_STAT,
            f"{block}/md0/md/level": f"{level}\n",
            f"{block}/sdb/stat": PATH_STAT, f"{block}/sdc/stat": PATH_STAT,
        },
    )  # fmt: skip
    for link, target in (
        ("sys/class/block/md0", f"../../../{block}/md0"),
        (f"{block}/md0/slaves/sdb", "../../sdb"),
        (f"{block}/md0/slaves/sdc", "../../sdc"),
    ):
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(target)
    device = block_device(Path("/dev/md0"), tmp_path)
    assert device is not None
    assert counters.read_counters(device) == DeviceCounters(read, written)


def test_another_disk_that_moved_nothing_has_moved_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, {"sys/class/block/sdb/dev": "8:16", "sys/class/block/sdb/stat": HEAD_STAT})
    device = block_device(Path("/dev/sdb"), tmp_path)
    assert device is not None
    assert counters.read_counters(device) == DeviceCounters(0, 0)


def _claim(operation: str, bytes_moved: int) -> PhaseResult:
    return PhaseResult("p", operation, "sequential", 4096, bytes_moved, None, 0.0, 1.0, "test", {})  # type: ignore[arg-type]


MB = 1_000_000


def of_fio(buffer: str, tool: str = "fio") -> Experiment:
    cache = CacheLayers(buffer=buffer)  # type: ignore[arg-type]
    return Experiment("filesystem", tool, "mixed", "sequential", 65536, cache)


def both(spatiality: str, read_mb: int, written_mb: int) -> PhaseResult:
    metrics = {"bytes_read": float(read_mb * MB), "bytes_written": float(written_mb * MB)}
    return PhaseResult(
        "mixed", "mixed", spatiality, 65536, None, None, 0.0, 1.0, "test", metrics
    )  # fmt: skip


@pytest.mark.parametrize(
    ("experiment", "phase", "read_mb", "agrees"),
    [
        # Measured with 34 of 67 MB: the writes were ahead of the reads by chance.
        (of_fio("on"), both("sequential", 34, 33), 7.5, True),
        (of_fio("on"), both("strided", 11, 11), 0.8, True),
        # 20 MB at most were written before they were read.
        (of_fio("on"), both("sequential", 47, 20), 26, True),
        (of_fio("on"), both("sequential", 47, 20), 20, False),
        # fio's random requests move each block once, and direct I/O has no cache.
        (of_fio("on"), both("random", 34, 33), 27, False),
        (of_fio("off"), both("sequential", 34, 33), 27, False),
        # The bytes of applications are counted below the page cache.
        (of_fio("on", "postgresql"), both("sequential", 34, 33), 27, False),
    ],
)
def test_reads_of_own_writes_are_not_expected_at_the_drive(
    experiment: Experiment, phase: PhaseResult, read_mb: float, agrees: bool
) -> None:
    counted = (DeviceCounters(5, 7), DeviceCounters(5 + int(read_mb * MB), 7 + 60 * MB))
    reasons = counters.disagreements(experiment, (phase,), *counted, 67 * MB)
    assert (reasons == {}) is agrees
    if agrees:
        remark = counters.read_back(experiment, (phase,), *counted)
        assert remark is not None
        assert remark.startswith(f"the drive read {read_mb:.1f} MB of the tool's ")


def test_reads_of_the_drive_have_no_remark() -> None:
    counted = (DeviceCounters(0, 0), DeviceCounters(33 * MB, 33 * MB))
    assert counters.read_back(of_fio("on"), (both("sequential", 34, 33),), *counted) is None
    assert counters.read_back(of_fio("on"), (both("random", 50, 33),), *counted) is None


@pytest.mark.parametrize(
    ("phase", "is_valid"), [(both("sequential", 34, 33), False), (both("random", 34, 33), True)]
)
def test_a_warm_page_cache_rejects_reads_that_the_counters_do_not_prove(
    tmp_path: Path, phase: PhaseResult, is_valid: bool
) -> None:
    prepared = preparation.Prepared(
        preparation.Dropped(None, "page cache not dropped: 5 of 5 bytes"), 0.0
    )
    experiment = of_fio("on")
    planned = PlannedExperiment(experiment, "eeio-fio-1.0.0", {}, "x", "", 67 * MB)
    observed = recorded_phase.Observed(
        planned, Capture(tmp_path, {}, 0, 0.0, 1.0, 0.0), prepared,
        Volume(tmp_path, None, "none", None, None), None, (), lambda start, end: (),
        caches.Sync(1.0, 1.0, "syncfs"),
    )  # fmt: skip
    run = Run(experiment, 1, 0, "quick", "", 0.0, 1.0, 0, (), "raw")
    recorded = recorded_phase.recorded_phase(
        phase, run, observed, ToolResult(phases=(phase,)), None
    )
    assert (recorded.validity == ()) is is_valid


# A word of sectors on 32 bits: 2 TiB. The drive had moved all but 1 GB of that.
FULL = (1 << 32) * 512
BEFORE, AFTER = DeviceCounters(FULL - 10**9, 0), DeviceCounters(10**9, 0)


@pytest.mark.parametrize("machine", ["armv7l", "i686"])
def test_sectors_of_a_32_bit_kernel_begin_again(machine: str) -> None:
    assert counters.unwrapped(BEFORE, AFTER, machine) == DeviceCounters(FULL + 10**9, 0)
    assert counters.unwrapped(AFTER, BEFORE, machine) == BEFORE


def test_those_of_a_64_bit_kernel_do_not() -> None:
    assert counters.unwrapped(BEFORE, AFTER, "x86_64") == AFTER
    experiment = Experiment("device", "fio", "read", "sequential", 4096, CacheLayers(buffer="off"))
    (reason,) = counters.disagreements(
        experiment, (_claim("read", 10**9),), BEFORE, AFTER, None
    ).values()
    assert "went back" in reason
    assert "cache" not in reason


@pytest.mark.parametrize(
    ("files", "reported"),
    [
        ({"sys/class/block/sda/dev": "8:0"}, None),
        ({"sys/class/block/sda/dev": "253:0", "sys/class/block/sda/slaves/sdb": "",
          "sys/class/block/sda/slaves/sdc": ""},
         "sda, which is on sdb, sdc: their I/O is not separated"),
        ({"sys/class/block/sda/dev": "252:0", "sys/class/block/sda/slaves/sdb": "",
          "sys/class/block/sda/bcache/state": "clean"},
         "sda, which is on sdb: I/O of bcache's cache and of its disk are not separated"),
    ],
)  # fmt: skip
def test_what_a_device_lies_on_is_reported(
    tmp_path: Path, files: dict[str, str], reported: str | None
) -> None:
    device = block_device(Path("/dev/sda"), write_tree(tmp_path, files))
    assert device is not None
    assert counters.lies_on(device) == reported


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("30 1 0:40 / /data rw - zfs tank/data rw,xattr", "its cache (ARC) may answer"),
        ("30 1 0:40 / /data rw - nfs4 server:/export rw", "its server has the devices"),
        ("30 1 0:40 / /data rw - 9p host0 rw,trans=virtio", "the host has the devices"),
        ("30 1 0:40 / /data rw - overlay overlay rw,lowerdir=/l", "the file system below it"),
        ("30 1 0:40 / /data rw - btrfs /dev/sda rw", "/data spans 2 devices: sda, sdb"),
    ],
)
def test_why_no_device_was_compared_is_reported(tmp_path: Path, line: str, reported: str) -> None:
    pair = "sys/fs/btrfs/0b7a1c2e-1111-4222-8333-444455556666/devices"
    write_tree(
        tmp_path,
        {"proc/self/mountinfo": line, "sys/class/block/sda/dev": "8:0", f"{pair}/sda": "",
         f"{pair}/sdb": "", "dev/sda": ""},
    )  # fmt: skip
    device, reason = backing_device(Path("/data/files"), tmp_path)
    assert device is None
    assert reported in str(reason)


def test_a_campaign_records_counters_without_their_wrap_and_what_they_are_of(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a 32-bit board, with files on device mapper."""
    target = home / "target"
    if backing_device(target)[0] is None:
        pytest.skip("no block device lies under the tests' folder")
    states = itertools.cycle([BEFORE, AFTER])
    monkeypatch.setattr(counters, "read_counters", lambda device: next(states))
    monkeypatch.setattr(counters, "lies_on", lambda device: "dm-0, which is on sda, sdb: both")
    monkeypatch.setattr("platform.machine", lambda: "armv7l")
    code = main(["run", "dummy-suite", "--directory", str(target), "--name", "c",
                 "--meter", "none", "--idle", "0", "--settle", "0",
                 "--repetitions", "1"])  # fmt: skip
    assert code in (0, 3)
    runs = records(home)
    assert runs
    for run in runs:
        assert run["device_after"]["read_bytes"] == FULL + 10**9
        if run["phases"]:
            assert "checked against dm-0, which is on sda, sdb: both" in run["notes"]
    assert any(run["phases"] for run in runs)
