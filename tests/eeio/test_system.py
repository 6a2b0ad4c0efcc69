"""Devices, caches and file systems, on loop devices of the test's own."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results import made
from tests.mounts import attached, detach, unmount
from tests.processes import ran

from eeio.errors import EeioError, RejectedError
from eeio.machine import caches, counters, device, image
from eeio.machine.below import check_directory
from eeio.machine.device import Permission
from eeio.machine.filesystem import backing_device, block_device, mount_of
from eeio.machine.undo import UndoEntry, UndoJournal
from eeio.measure.campaign.plan import of_design
from eeio.measure.campaign.volumes import Volumes
from eeio.record.design import Options
from eeio.record.run import CacheLayers, DeviceCounters, Experiment
from eeio.record.tools.capture import PhaseResult

root = pytest.mark.root


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """A loop device over 64 MiB of zeros."""
    backing = tmp_path / "backing.img"
    backing.write_bytes(bytes(64 << 20))
    with attached(backing) as node:
        yield node


@root
def test_a_free_device_may_be_erased_only_when_named_twice(loop: Path) -> None:
    assert device.check_erasable(loop, Permission(loop)).name == loop.name
    with pytest.raises(RejectedError, match="name it in both options"):
        device.check_erasable(loop, Permission(Path("/dev/null")))


@root
def test_a_mounted_device_is_rejected(loop: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", str(loop)], check=True)
    mount_point = tmp_path / "mnt"
    mount_point.mkdir()
    subprocess.run(["mount", str(loop), str(mount_point)], check=True)
    try:
        with pytest.raises(RejectedError, match="mounted at"):
            device.check_erasable(loop, Permission(loop))
        device.check_readable(loop)  # reading a mounted device harms nobody
    finally:
        unmount(mount_point)


@root
def test_a_swap_device_is_rejected(loop: Path) -> None:
    subprocess.run(["mkswap", str(loop)], check=True, capture_output=True)
    if subprocess.run(["swapon", str(loop)], check=False, capture_output=True).returncode:
        pytest.skip("swapon is not permitted here")
    try:
        with pytest.raises(RejectedError, match="swap"):
            device.check_erasable(loop, Permission(loop))
    finally:
        subprocess.run(["swapoff", str(loop)], check=True)


@root
def test_a_device_in_use_by_a_mounted_partition_is_rejected(loop: Path, tmp_path: Path) -> None:
    subprocess.run(["losetup", "--detach", str(loop)], check=True)
    subprocess.run(["sfdisk", "-q", str(tmp_path / "backing.img")], input=b"2048,\n", check=True)
    again = ran(
        ["losetup", "--find", "--show", "--partscan", str(tmp_path / "backing.img")]
    ).stdout.strip()
    try:
        partition = Path(f"{again}p1")
        if not partition.exists():
            pytest.skip("the kernel makes no partition nodes for loop devices here")
        subprocess.run(["mkfs.ext4", "-q", str(partition)], check=True)
        (tmp_path / "mnt").mkdir()
        subprocess.run(["mount", str(partition), str(tmp_path / "mnt")], check=True)
        try:
            with pytest.raises(RejectedError, match="mounted at"):
                device.check_erasable(Path(again), Permission(Path(again)))
        finally:
            unmount(tmp_path / "mnt")
    finally:
        subprocess.run(["losetup", "--detach", again], check=True)


@pytest.mark.parametrize("node", ["/dev/null", "/etc/passwd", "/dev/does-not-exist"])
def test_what_is_no_block_device_is_rejected(node: str) -> None:
    with pytest.raises(RejectedError, match=node):
        device.check_readable(Path(node))


@root
@pytest.mark.parametrize("filesystem", sorted(image.MKFS))
def test_a_file_system_is_made_measured_and_taken_away(filesystem: str, tmp_path: Path) -> None:
    try:
        image.check(filesystem)
    except RejectedError as error:
        pytest.skip(str(error))
    program = "cryptsetup" if filesystem.endswith("dmcrypt") else image.MKFS[filesystem][0]
    if shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") is None:
        pytest.skip(f"{program} is not installed")
    journal = UndoJournal(tmp_path / "journal.json")
    try:
        volume = image.make_on_loop(filesystem, tmp_path, 16 << 20, journal)
        mount_point = volume.mount_point
        kind, _, layer = filesystem.partition("+")
        assert mount_of(mount_point).filesystem == ("overlay" if layer == "overlay" else kind)
        assert volume.how.startswith(image.MKFS[filesystem][0])
        found, reason = backing_device(volume.served or mount_point)
        assert found is not None, reason
        assert found.name.startswith("dm-" if layer == "dmcrypt" else "loop")
        before = counters.read_counters(found)
        (mount_point / "data").write_bytes(os.urandom(8 << 20))
        os.sync()
        after = counters.read_counters(found)
        assert after.written_bytes - before.written_bytes >= 8 << 20
    finally:
        assert journal.undo_all() == []
    assert sorted(tmp_path.iterdir()) == []


@root
def test_an_image_is_taken_away_even_when_the_mount_fails(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "journal.json")
    (tmp_path / "eeio-ext4").write_text("in the way")
    with pytest.raises(EeioError, match="eeio-ext4 exists"):
        image.make_on_loop("ext4", tmp_path, 16 << 20, journal)
    assert journal.undo_all() == []
    assert [path.name for path in tmp_path.iterdir()] == ["eeio-ext4"]
    assert (tmp_path / "eeio-ext4").read_text() == "in the way"


@root
def test_a_file_system_that_cannot_be_made_keeps_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image of the first try must not pass for another campaign's at the second."""
    monkeypatch.setitem(image.MKFS, "xfs", ["mkfs.no-such-program"])
    options = Options(
        preset="standard", device=None, seed=1, directory=str(tmp_path), filesystems=("xfs",)
    )
    design = replace(made.design("c", 0), options=options, experiments=())
    journal = UndoJournal(tmp_path / "journal.json")
    volumes = Volumes(of_design(design), tmp_path, journal)
    try:
        for _ in range(2):
            with pytest.raises(EeioError, match="no-such-program: not installed"):
                volumes.get("xfs")
    finally:
        assert volumes.close() == []


@root
def test_an_image_behind_a_symbolic_link_is_detached(tmp_path: Path) -> None:
    """The kernel tells where the image really is, whatever way led there."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    journal = UndoJournal(tmp_path / "journal.json")
    image.make_on_loop("ext4", link, 16 << 20, journal)
    loop = next(entry.subject for entry in journal.entries if entry.kind == "loop")
    assert journal.undo_all() == []
    attached = ran(["losetup", "--list"])
    detach(loop, tmp_path)
    assert str(tmp_path) not in attached.stdout


@root
@pytest.mark.parametrize("name", [b"a b", b"n\nl", b"x\xff", b"e\x1b[31m", b"b\\040s"])
def test_an_image_in_a_folder_of_any_name_is_detached(tmp_path: Path, name: bytes) -> None:
    """losetup writes such names as escapes; the device stayed, and with it the deleted image."""
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    journal = UndoJournal(tmp_path / "journal.json")
    image.make_on_loop("ext4", folder, 16 << 20, journal)
    loop = next(entry.subject for entry in journal.entries if entry.kind == "loop")
    assert UndoJournal(tmp_path / "journal.json").undo_all() == []
    backing = Path("/sys/class/block") / Path(loop).name / "loop/backing_file"
    left = backing.read_bytes() if backing.exists() else b""  # another may have it already
    if bytes(folder) in left:
        subprocess.run(["losetup", "--detach", loop], check=True)
    assert bytes(folder) not in left
    assert not list(folder.iterdir())


@root
def test_a_loop_device_whose_image_somebody_deleted_is_detached(tmp_path: Path) -> None:
    backing = tmp_path / "image"
    backing.write_bytes(bytes(1 << 20))
    node = ran(["losetup", "--find", "--show", str(backing)], code=None).stdout.strip()
    if not node:
        pytest.skip("no loop devices here")
    journal = UndoJournal(tmp_path / "journal.json")
    journal.add(UndoEntry("loop", node, str(backing)))
    backing.unlink()
    assert journal.undo_all() == []
    shown = Path("/sys/class/block") / Path(node).name / "loop/backing_file"
    left = shown.read_text() if shown.exists() else ""
    if str(backing) in left:
        subprocess.run(["losetup", "--detach", node], check=True)
    assert str(backing) not in left


def test_a_dropped_file_is_not_resident(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(4 << 20))
    if mount_of(tmp_path).filesystem in ("tmpfs", "overlay"):
        pytest.skip("the temporary directory has no storage behind it")
    os.sync()
    file.read_bytes()
    assert caches.resident_bytes(file) >= 4 << 20
    found, reason = caches.drop([file], None)
    assert reason is None
    assert caches.resident_bytes(file) == 0
    assert f"0 of {4 << 20} bytes" in found


def test_a_page_that_cannot_be_dropped_is_reported(tmp_path: Path) -> None:
    import ctypes
    import mmap

    if mount_of(tmp_path).filesystem in ("tmpfs", "overlay"):
        pytest.skip("the temporary directory has no storage behind it")
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 20))
    with file.open("r+b") as handle, mmap.mmap(handle.fileno(), 0) as pages:
        libc = ctypes.CDLL(None, use_errno=True)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20)) != 0:
            pytest.skip("mlock is not permitted here")
        _, reason = caches.drop([file], None)
        assert reason is not None and "still resident" in reason
        libc.munlock(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20))


def test_directories_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="no such directory"):
        check_directory(tmp_path / "missing", 0, False)
    with pytest.raises(RejectedError, match="needed"):
        check_directory(tmp_path, 1 << 60, True)
    shm = Path("/dev/shm")
    if shm.is_dir() and mount_of(shm).filesystem == "tmpfs":
        with pytest.raises(RejectedError, match="tmpfs"):
            check_directory(shm, 0, False)
        check_directory(shm, 0, True)
        assert backing_device(shm)[0] is None


@root
def test_a_read_only_file_system_is_rejected(loop: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", str(loop)], check=True)
    (tmp_path / "mnt").mkdir()
    subprocess.run(["mount", "-o", "ro", str(loop), str(tmp_path / "mnt")], check=True)
    try:
        with pytest.raises(RejectedError, match=r"read-only|not writable"):
            check_directory(tmp_path / "mnt", 0, False)
    finally:
        unmount(tmp_path / "mnt")


def _experiment(buffer: str) -> Experiment:
    return Experiment(
        "filesystem", "fio", "read", "sequential", 4096,
        CacheLayers(buffer=buffer),  # type: ignore[arg-type]
    )  # fmt: skip


def _phase(operation: str, bytes_moved: int) -> PhaseResult:
    half = {"bytes_read": bytes_moved / 2, "bytes_written": bytes_moved / 2}
    metrics = half if operation == "mixed" else {}
    return PhaseResult(
        "p", operation, "sequential", 4096, bytes_moved, bytes_moved, 0.0, 1.0, "test", metrics
    )


@pytest.mark.parametrize(
    ("buffer", "phases", "moved", "expected"),
    [
        ("off", [("read", 1000_000)], (1000_000, 0), set()),
        ("off", [("read", 1000_000)], (970_000, 0), {"read"}),
        # An unwritten extent: the tool "reads" what the device never saw.
        ("off", [("read", 1000_000)], (0, 0), {"read"}),
        # Overwritten in the cache: the file's size reaches the device, not every write.
        ("on", [("write", 5000_000)], (0, 1000_000), set()),
        ("on", [("write", 5000_000)], (0, 800_000), {"write"}),
        ("on", [("read", 1000_000)], (500_000, 0), {"read"}),
        ("off", [("read", 1000_000), ("write", 1000_000)], (1000_000, 10), {"write"}),
        ("off", [("mixed", 2000_000)], (1000_000, 1000_000), set()),
        ("off", [("mixed", 2000_000)], (1000_000, 0), {"write"}),
        # Files of some bytes may be gone before any of them is written.
        ("on", [("metadata", 1000_000), ("metadata", 0)], (0, 0), set()),
    ],
)
def test_counters_against_claims(
    buffer: str, phases: list[tuple[str, int]], moved: tuple[int, int], expected: set[str]
) -> None:
    found = counters.disagreements(
        _experiment(buffer),
        tuple(_phase(*phase) for phase in phases),
        DeviceCounters(5, 7),
        DeviceCounters(5 + moved[0], 7 + moved[1]),
        1000_000,
    )
    assert set(found) == expected


@pytest.mark.parametrize(("kept", "agrees"), [(400_000, True), (None, False)])
def test_what_is_replaced_before_it_is_flushed_is_no_claim(kept: int | None, agrees: bool) -> None:
    phase = _phase("write", 1000_000)
    if kept is not None:
        phase = replace(phase, metrics={"kept_bytes": kept})
    found = counters.disagreements(
        _experiment("on"), (phase,), DeviceCounters(0, 0), DeviceCounters(0, 400_000), None
    )
    assert (found == {}) is agrees


def test_the_journal_runs_backwards(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path / "journal.json")
    setting = tmp_path / "setting"
    for value in ("first", "second"):
        journal.add(UndoEntry("setting", str(setting), value))
    assert journal.undo_all() == []
    assert setting.read_text() == "first"


@root
def test_blocks_never_written_are_observed(loop: Path) -> None:
    assert device.zero_share(loop, 64 << 20) == 1.0
    with loop.open("r+b") as node:
        node.write(os.urandom(32 << 20))
    assert device.zero_share(loop, 64 << 20) == pytest.approx(0.5, abs=0.02)
    assert device.zero_share(loop, 32 << 20) == 0.0


def test_block_device_of_a_plain_file(tmp_path: Path) -> None:
    assert block_device(tmp_path / "missing") is None
    assert block_device(tmp_path) is None
