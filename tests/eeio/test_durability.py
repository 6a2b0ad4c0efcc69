"""Writes until their bytes are on the device: by the tool's own flush, or by the runner's."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.campaigns import records
from tests.dummy import suite as dummy_suite
from tests.executables import executable
from tests.mounts import attached, mounted, sparse
from tests.plugin import Eeio, ior_program
from tests.simulators.powercap import FakeRapl
from tests.suites import QUICK, written

from eeio.machine import caches
from eeio.machine.caches import Sync, flush
from eeio.machine.durability import why_flushes_end_early
from eeio.machine.filesystem import Mount, backing_devices, further_devices, mount_of
from eeio.measure.campaign.probes import Flush
from eeio.measure.campaign.recorded_phase import until_durable
from eeio.record.run import CacheLayers, Durable, Experiment, Run
from eeio.record.tools.capture import PhaseResult, ToolResult
from eeio_power.monitor import PowerMonitor, PowerSource

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
RATE_BYTES_PER_S = 40_000_000
WATTS = 20.0
PACKAGE = 0.8  # of what the simulated machine draws


def phases(home: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(record, phase) of every phase of the campaign `c`."""
    return [(record, phase) for record in records(home) for phase in record["phases"]]


def drawn_j(package: dict[str, Any], duration_s: float, lag_s: float) -> Any:
    """Of the simulated package, whose counters were `lag_s` behind at most. Their reader waits for
    a processor, too."""
    late_s = lag_s + 2 * package["largest_gap_s"] + 0.03 * duration_s
    return pytest.approx(PACKAGE * WATTS * duration_s, abs=PACKAGE * WATTS * late_s)


def write(name: str, start_s: float | None, end_s: float | None, **more: Any) -> PhaseResult:
    operation = "read" if name == "read" else "write"
    return PhaseResult(
        name, operation, "sequential", 4096, 8_000_000, 4e6, start_s, end_s, "test", **more
    )


def test_the_last_write_is_durable_when_the_flush_after_the_tool_returns() -> None:
    first, last = write("first", 0.0, 2.0), write("last", 2.0, 4.0)
    synced = Sync(105.0, 106.0, "syncfs")
    found, reason = until_durable(last, (first, last), synced, 100.0)
    assert (found, reason) == (Durable(6.0, 2e6, "syncfs"), None)
    found, reason = until_durable(first, (first, last), synced, 100.0)
    assert found is None and reason is not None and "other I/O of the same run followed" in reason


def test_what_is_not_known_has_its_reason() -> None:
    unplaced, placed = write("write", None, None), write("write", 0.0, 2.0)
    synced = Sync(103.0, 104.0, "syncfs")
    assert "when it wrote is not known: test" in str(
        until_durable(unplaced, (unplaced,), synced, 100.0)[1]
    )
    failed = Sync(103.0, 103.0, "", "/mnt: Input/output error")
    assert until_durable(placed, (placed,), failed, 100.0) == (
        None,
        "not flushed: /mnt: Input/output error",
    )
    assert until_durable(write("read", 0.0, 2.0), (), synced, 100.0) == (None, None)


def test_a_command_that_reads_from_another_drive_too_is_durable() -> None:
    """Its own program, for instance: the bytes that it read are unknown, those written are not."""
    known = replace(write("write", 0.0, 2.0, metrics={"bytes_written": 1e6}), bytes_moved=None)
    synced = Sync(3.0, 4.0, "syncfs")
    assert until_durable(known, (known,), synced, 0.0) == (Durable(4.0, None, "syncfs"), None)
    unknown = replace(known, metrics={})
    found, reason = until_durable(unknown, (unknown,), synced, 0.0)
    assert found is None and reason == "the number of written bytes is unknown"


def test_a_tool_s_own_flush_stands() -> None:
    own = Durable(2.0, 4e6, "the tool's own")
    flushed = write("write", 0.0, 2.0, until_durable=own)
    later = write("read", 2.0, 3.0)
    assert until_durable(flushed, (flushed, later), Sync(4.0, 5.0, "x"), 0.0) == (own, None)


def test_no_flush_counts_where_flushes_do_not_reach_the_drive() -> None:
    flushed = write("write", 0.0, 2.0, until_durable=Durable(2.0, 4e6, "the tool's own"))
    for phase, wanted in (
        (flushed, (None, "not here")),
        (write("write", 0.0, 2.0), (None, "not here")),
        (write("write", 0.0, 2.0, durable_reason="it wrote no data"), (None, "it wrote no data")),
        (write("read", 0.0, 2.0), (None, None)),
    ):
        assert until_durable(phase, (phase,), Sync(2.0, 3.0, "x"), 0.0, "not here") == wanted


@pytest.mark.root
def test_flushes_that_do_not_reach_the_drive_are_found(tmp_path: Path) -> None:
    """By the options of a mount, or by the kernel's view of a drive's cache, also below a loop
    device: such a write was durable in 0.1 s."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    lower, upper = sparse(tmp_path / "lower", 64 << 20), tmp_path / "point/upper"
    subprocess.run(["mkfs.ext4", "-q", str(lower)], check=True)
    with attached(lower) as node:
        with mounted(node, tmp_path / "point") as point:
            assert _why(point) is None
        (tmp_path / "point").rmdir()
        with mounted(node, tmp_path / "point", "-o", "nobarrier") as point:
            assert _why(point) == f"{point} is mounted with nobarrier, so the drive gets no flush"
            sparse(upper, 32 << 20)
            subprocess.run(["mkfs.ext4", "-q", str(upper)], check=True)
            with attached(upper) as above, mounted(above, tmp_path / "above") as directory:
                assert _why(directory) == _why(point)
        (tmp_path / "point").rmdir()
        view = Path("/sys/class/block", node.name, "queue/write_cache")
        try:
            view.write_text("write through")
        except OSError as error:
            pytest.skip(f"{view} cannot be changed: {error}")
        with mounted(node, tmp_path / "point") as point:
            assert f"no flush to {node} (queue/write_cache is write through)" in str(_why(point))
        view.write_text("write back")


@pytest.mark.root
def test_defaults_of_a_superblock_and_overlays_are_seen(tmp_path: Path) -> None:
    """The table of mounts does not show an option that is a default of ext4's superblock, and
    overlayfs writes into another file system."""
    if shutil.which("tune2fs") is None:
        pytest.skip("tune2fs is not installed")
    image = sparse(tmp_path / "image", 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with attached(image) as node:
        with mounted(node, tmp_path / "point") as point:
            options = _overlay(point)
            with mounted(Path("overlay"), tmp_path / "above", *options) as above:
                assert _why(above) is None
                assert node.name in [device.name for device in further_devices(above)]
            (tmp_path / "above").rmdir()
            with mounted(Path("overlay"), tmp_path / "above", *options, "-o", "volatile") as above:
                assert f"{above} is mounted with" in str(_why(above))
            (tmp_path / "above").rmdir()
        (tmp_path / "point").rmdir()
        subprocess.run(["tune2fs", "-o", "nobarrier", str(node)], check=True, capture_output=True)
        with mounted(node, tmp_path / "point") as point:
            why = f"{point} is mounted with nobarrier, so the drive gets no flush"
            assert "nobarrier" not in mount_of(point).options and _why(point) == why
            with mounted(Path("overlay"), tmp_path / "above", *_overlay(point)) as above:
                assert _why(above) == why


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        *((kind, "0:50", "flushes end at the host that serves /m") for kind in (
            "9p", "virtiofs", "vboxsf", "drvfs", "prl_fs", "hostfs")),
        *((kind, "8:17", "syncfs of /m") for kind in (
            "vfat", "msdos", "exfat", "ntfs3", "ntfs", "udf", "jfs", "unknown")),
        *((kind, "0:50", "syncfs of /m") for kind in (
            "cifs", "smb3", "ecryptfs", "fakeowner", "shiftfs", "vmhgfs", "beegfs", "lustre",
            "orangefs", "gpfs", "afs", "unknown")),
        ("fuseblk", "8:17", "the kernel writes the data of /m"),
        *((kind, "8:17", None) for kind in (
            "ext3", "ext4", "xfs", "f2fs", "nilfs2", "gfs2", "hfsplus")),
        *((kind, "0:50", None) for kind in (
            "btrfs", "bcachefs", "zfs", "ubifs", "nfs", "nfs4", "ceph", "tmpfs", "ramfs")),
    ],
)  # fmt: skip
def test_file_systems_whose_syncfs_sends_no_flush_are_known(
    kind: str, number: str, text: str | None
) -> None:
    """USB sticks, SD cards, shared folders of virtual machines, /mnt/c of WSL, servers, and layers
    above another file system."""
    why = why_flushes_end_early(Mount(Path("/m"), kind, "/dev/sdb1", "rw", number), [])
    assert why == text or str(why).startswith(f"{text}")


@pytest.mark.root
def test_ext2_is_flushed_if_the_driver_of_ext4_serves_it(tmp_path: Path) -> None:
    if shutil.which("mkfs.ext2") is None:
        pytest.skip("mkfs.ext2 is not installed")
    image = sparse(tmp_path / "image", 16 << 20)
    subprocess.run(["mkfs.ext2", "-q", str(image)], check=True)
    with attached(image) as node, mounted(node, tmp_path / "point", "-t", "ext2") as point:
        if not Path("/proc/fs/ext4", node.name).is_dir():
            pytest.skip("the kernel has a driver of its own for ext2")
        assert _why(point) is None
    no_device = Mount(Path("/m"), "ext2", "/dev/sdb1", "rw", "")
    assert "(ext2) is not known to flush" in str(why_flushes_end_early(no_device, []))


def _overlay(point: Path) -> tuple[str, ...]:
    # After a volatile mount the kernel rejects the same working folder.
    shutil.rmtree(point / "work", ignore_errors=True)
    for name in ("lower", "upper", "work"):
        (point / name).mkdir(exist_ok=True)
    folders = f"lowerdir={point}/lower,upperdir={point}/upper,workdir={point}/work"
    return "-t", "overlay", "-o", folders


def _why(directory: Path) -> str | None:
    devices = [*backing_devices(directory), *further_devices(directory)]
    return why_flushes_end_early(mount_of(directory), devices)


class Power:
    """A meter that answers its first question only when the flush has run."""

    def __init__(self) -> None:
        self.flushed = threading.Event()
        self.marks: list[bool] = []

    def mark(self) -> None:
        self.marks.append(self.flushed.wait(20))


def test_a_slow_meter_does_not_hold_the_flush_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it holds up would count as time that the write took."""
    power = Power()

    def flush(directory: Path, node: Path | None) -> Sync:
        power.flushed.set()
        return Sync(100.0, 101.0, "syncfs")

    monkeypatch.setattr(caches, "flush", flush)
    probe = Flush(cast("PowerMonitor", power), tmp_path, None)
    probe.stop(99.9)
    assert probe.done.error is None
    assert power.marks == [True, True]
    probe.stop(99.0)
    assert probe.done.error == "the flush began 1.00 s after the tool had ended"


def test_a_directory_that_is_gone_was_not_flushed(tmp_path: Path) -> None:
    found = flush(tmp_path / "gone", None)
    assert found.error is not None and "gone: No such file" in found.error
    assert flush(tmp_path, None).error is None


@pytest.mark.root
def test_a_run_whose_bytes_the_drive_did_not_take_is_invalid(tmp_path: Path) -> None:
    """A sparse image on a full disk: 400 MB at 800 MB/s, of which the kernel lost 180, valid."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    with mounted(Path("tmpfs"), tmp_path / "full", "-t", "tmpfs", "-o", "size=8m") as pool:
        image = sparse(pool / "image", 64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True)
        with attached(image) as node, mounted(node, tmp_path / "thin") as thin:
            probe = Flush(PowerMonitor(PowerSource((), None), Path(os.devnull)), thin, None)
            (thin / "file").write_bytes(os.urandom(32 << 20))
            probe.stop(time.monotonic())
    phase = PhaseResult("w", "write", "sequential", 4096, 32 << 20, None, 0.0, 1.0, "test")
    experiment = Experiment("filesystem", "fio", "write", "sequential", 4096, CacheLayers("on"))
    run = Run(experiment, 1, 0, "quick", "2026-01-01T00:00:00Z", 0.0, 2.0, 0, (), "raw")
    ((reason,),) = [p.invalid for p in probe.add_to_result(ToolResult((phase,)), run).phases]
    assert reason.startswith(f"written data were lost: {tmp_path}/thin: ")


def test_the_runner_flushes_and_keeps_the_energy_until_then(home: Path, eeio: Eeio) -> None:
    factors = "level=filesystem operation=write spatiality=sequential buffer=on bytes_moved=500000"
    suite = dummy_suite(home, f"{factors} sleep_s=0.3")
    for _ in range(5):
        shutil.rmtree(home / "data", ignore_errors=True)
        with FakeRapl(home / "powercap", power_w=lambda time_s: WATTS) as rapl:
            eeio.run(
                suite, "--name", "c", "--meter", f"rapl,root={home / 'powercap'}", "--idle",
                "0.3", code=(0, 3),
            )  # fmt: skip
        found = list(phases(home))
        late = [phase["durable_reason"] for _, phase in found if phase["until_durable"] is None]
        if not late:
            break
        # On a busy machine; the next campaign may be faster.
        assert all(reason.endswith("s after the tool had ended") for reason in late), late
        shutil.rmtree(home / "powercap")
    assert not late, late
    for record, phase in found:
        durable = phase["until_durable"]
        assert durable["source"] == "syncfs of the target right after the tool ended"
        assert durable["end_s"] >= record["duration_s"]
        took_s = durable["end_s"] - phase["start_s"]
        assert durable["bandwidth_bytes_per_s"] == pytest.approx(500_000 / took_s)
        (package,) = (r for r in durable["energy"] if r["domain"] == "package")
        assert package["energy_j"] == drawn_j(package, took_s, rapl.largest_lag_s)


@pytest.fixture
def slow_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system on a loop device that writes RATE_BYTES_PER_S, far less than the page cache."""
    if os.geteuid() != 0 or not THROTTLE.exists():
        pytest.skip("root, and version 1 of the kernel's block control groups, slow a device down")
    image = sparse(tmp_path / "image", 300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, timeout=300)
    with attached(image) as node, mounted(node, tmp_path / "slow") as folder:
        number = (Path("/sys/block") / node.name / "dev").read_text().strip()
        try:
            THROTTLE.write_text(f"{number} {RATE_BYTES_PER_S}\n")
            yield folder
        finally:
            THROTTLE.write_text(f"{number} 0\n")


_SEQUENTIAL = "operation=write spatiality=sequential request_size=1m buffer=on file_size=32m"
SLOW_FACTORS = {
    "fio": f"level=filesystem {_SEQUENTIAL} runtime_s=60",
    "iozone": f"level=filesystem {_SEQUENTIAL}",
    "dataserver": f"level=library {_SEQUENTIAL} runtime_s=60 clients=1",
    "ior": f"level=library api=posix {_SEQUENTIAL}",
    "btio": "level=application api=mpiio buffer=on class=W cold=on",
}


BYTES = {"btio": 22_118_400}  # of class W


def suite_of(home: Path, tool: str, factors: str) -> Path:
    """A suite of one experiment of this tool."""
    protocol = QUICK.replace("idle_s: 0", "idle_s: 0.3")
    return written(home / "suites/slow", [(tool, factors, "slow")], protocol)


@pytest.mark.fast_variants(3)
@pytest.mark.parametrize(
    ("tool", "flush", "page_cache_observed"),
    [
        ("fio", "none", True), ("fio", "end", False), ("fio", "each", False),
        ("iozone", "end", False),
        ("dataserver", "none", True), ("dataserver", "end", True), ("dataserver", "each", False),
        ("ior", "none", True), ("ior", "end", False), ("ior", "each", False),
        ("btio", "none", True), ("btio", "end", True),
    ],
)  # fmt: skip
def test_on_a_slow_disk_it_is_the_disk_s_rate(
    home: Path,
    eeio: Eeio,
    slow_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    flush: str,
    page_cache_observed: bool,
) -> None:
    """The rate into the page cache is a hundred times that of the device: whoever ranks by it
    compares nothing."""
    program = {"dataserver": "mpicc", "btio": "mpicc", "ior": ior_program() or "ior"}
    if shutil.which(program.get(tool, tool)) is None:
        pytest.skip(f"no {program.get(tool, tool)} here")
    folder = suite_of(home, tool, f"{SLOW_FACTORS[tool]} flush={flush}")
    monkeypatch.delenv("EEIO_TEST_PROFILES")
    with FakeRapl(home / "powercap", power_w=lambda time_s: WATTS) as rapl:
        eeio(
            "run", str(folder), "--preset", "quick", "--directory", str(slow_disk), "--name", "c",
            "--meter", f"rapl,root={home / 'powercap'}",
        )  # fmt: skip
    (record, phase), *read_back = phases(home)
    assert len(read_back) == (tool == "btio")
    assert record["experiment"]["flush"] == flush
    durable = phase["until_durable"]
    # A busy machine writes more slowly. The kernel's limit lets some of its slices of 0.1 s through
    # at once (block/blk-throttle.c), one more if its timer is late; nothing else is faster than the
    # disk.
    took_s = durable["end_s"] - phase["start_s"]
    moved = durable["bandwidth_bytes_per_s"] * took_s
    assert moved == pytest.approx(BYTES.get(tool, 32 << 20), rel=0.01)
    assert moved < 1.05 * RATE_BYTES_PER_S * (took_s + 0.3)
    assert phase["includes_flush"] != page_cache_observed
    if page_cache_observed:
        assert phase["end_s"] < durable["end_s"]
        assert phase["bandwidth_bytes_per_s"] > durable["bandwidth_bytes_per_s"]
    (package,) = (r for r in durable["energy"] if r["domain"] == "package")
    assert package["energy_j"] == drawn_j(package, took_s, rapl.largest_lag_s)


KILLED = """#!/bin/sh
# fio, which somebody kills when it has begun: all of it, or the process that does the I/O.
{fio} "$@" &
[ -n "${{EEIO_FIO_START:-}}" ] || {{ wait $!; exit; }}
while [ ! -s "$EEIO_FIO_START" ] && kill -0 $!; do sleep 0.01; done
read -r children <"/proc/$!/task/$!/children"
kill -KILL {victim}
wait $!
"""


@pytest.mark.parametrize(
    ("victim", "message"),
    [
        ("$!", "killed (SIGKILL) before it was done"),
        ("$children", "a process of fio was ended by signal 9 before its end"),
    ],
)
def test_a_tool_that_is_killed_before_its_flush_has_no_figure(
    home: Path,
    eeio: Eeio,
    slow_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    victim: str,
    message: str,
) -> None:
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("no fio here")
    program = home / "bin/fio"
    executable(program, KILLED.format(fio=fio, victim=victim))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("EEIO_TEST_PROFILES")
    folder = suite_of(home, "fio", f"{SLOW_FACTORS['fio']} flush=end")
    with FakeRapl(home / "powercap", power_w=lambda time_s: WATTS):
        done = eeio(
            "run", str(folder), "--preset", "quick", "--directory", str(slow_disk), "--name", "c",
            "--meter", f"rapl,root={home / 'powercap'}", code=3,
        )  # fmt: skip
    (record,) = records(home)
    assert record["phases"] == []
    (reason,) = record["validity"]
    assert message in reason and "\n" not in reason
    assert "until durable: " not in done.stdout
