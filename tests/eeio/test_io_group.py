"""Bytes of a control group at a drive: io.stat's text, and a kernel with the unified hierarchy."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.qemu import PACKAGES, guest

from eeio.system import counters, owner
from eeio.system.counters import of_this_drive
from eeio.system.undo import UndoEntry, UndoJournal
from eeio_results.record import DeviceCounters
from eeio_results.tools.capture import PhaseResult

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4",
)  # fmt: skip
PROGRAMS = ("mount", "umount", "dd")
GUEST = guest(MODULES, (*PROGRAMS, "mkfs.ext4"))
SIZE = 16 << 20

SCRIPT = """
import json, os, subprocess, threading
from pathlib import Path
from eeio.system import counters, owner
from eeio.system.filesystem import backing_device, block_device
from eeio.system.undo import UndoJournal

def tell(name, value):
    print("case", json.dumps([name, value]), flush=True)

print()
os.environ["XDG_STATE_HOME"] = "/run/state"
journal = UndoJournal(Path("/run/journal.json"))
tell("without", counters.new_io_group(journal) is None and not journal.entries)
top = Path("/sys/fs/cgroup")
subprocess.run(["mount", "-t", "cgroup2", "none", str(top)], check=True)
disk = Path("/run/disk")
disk.mkdir()
subprocess.run(["mount", "-t", "ext4", "/dev/vda", str(disk)], check=True)
before = (top / "cgroup.subtree_control").read_text().split()
group = counters.new_io_group(journal)
drive, other = backing_device(disk)[0], block_device(Path("/dev/vdb"))

def beside():
    with (disk / "beside").open("wb") as file:
        for _ in range(16):
            file.write(os.urandom(1 << 21))
            os.fsync(file.fileno())

writer = threading.Thread(target=beside)
writer.start()
subprocess.run(
    ["/busybox", "sh", "-c", "echo $$ >$0/cgroup.procs; "
     "dd if=/dev/zero of=/run/disk/own bs=1M count=16 2>/dev/null; "
     "dd if=/dev/vdb of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null", str(group.folder)],
    check=True,
)
writer.join()
os.sync()
at_drive, elsewhere = group.moved(drive), group.moved(other)
tell("drive", [at_drive.read_bytes, at_drive.written_bytes])
tell("other", [elsewhere.read_bytes, elsewhere.written_bytes])
# A daemon of the command's, which has left its session.
daemon = subprocess.Popen(
    ["/busybox", "sh", "-c", "echo $$ >$0/cgroup.procs; exec /busybox sleep 60", str(group.folder)]
)
while str(daemon.pid) not in (group.folder / "cgroup.procs").read_text().split():
    pass
group.release()
tell("left", journal.undo_all())
tell("lives", daemon.poll() is None)
daemon.kill()
after = (top / "cgroup.subtree_control").read_text().split()
tell("there", [group.folder.exists(), before == after])
"""


def test_no_process_of_another_boot_has_the_same_group(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal of before a reboot would remove it."""
    (tmp_path / "cgroup.subtree_control").write_text("io memory")
    journal = UndoJournal()
    folders = {counters.IoGroup(tmp_path, journal).folder}
    boot = tmp_path / "boot_id"
    boot.write_text("12345678-1234-1234-1234-123456789abc\n")
    monkeypatch.setattr(owner, "_BOOT_ID", boot)
    folders.add(counters.IoGroup(tmp_path, journal).folder)
    assert len(folders) == 2
    assert journal.undo_all() == []


def test_controllers_stay_while_another_group_needs_them(home: Path, tmp_path: Path) -> None:
    """The first of two benches to end took them from the other."""
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("")
    journal = UndoJournal()
    counters.IoGroup(tmp_path, journal)
    control.write_text("io memory")  # as the kernel shows it
    other = tmp_path / "eeio-other"
    other.mkdir()
    assert journal.undo_all() == []
    assert control.read_text() == "io memory"
    other.rmdir()
    entry = UndoEntry("controllers", str(control), "io memory")
    journal.add(entry)
    journal.undo(entry)
    assert control.read_text() == "-io -memory"


def test_a_line_of_io_stat_is_one_device_s() -> None:
    text = (
        "8:16 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n8:0 rbytes=4096 wbytes=512 rios=1\n"
    )
    assert counters.parse_io_stat(text, "8:0") == DeviceCounters(4096, 512)
    assert counters.parse_io_stat(text, "8:32") == DeviceCounters(0, 0)
    with pytest.raises((ValueError, KeyError)):
        counters.parse_io_stat("8:0 nonsense", "8:0")


def _phase(**metrics: float) -> PhaseResult:
    moved = int(sum(metrics.values()))
    return PhaseResult("run", "mixed", "mixed", None, moved, moved / 2, 1.0, 3.0, "", metrics)


ZERO = DeviceCounters(0, 0)


@pytest.mark.parametrize(
    ("account", "device", "own", "expected"),
    [
        # The drive moved what the account says: nobody knows better without a group.
        ((100, 200), (150, 300), None, (100, 200)),
        ((100, 200), (10, 300), None, (None, 200)),
        # A group knows which bytes were of this drive.
        ((100, 200), (10, 300), (8, 200), (8, 200)),
        # A file system without groups writes on nobody's account.
        ((100, 200), (150, 300), (90, 0), (90, 200)),
    ],
)
def test_bytes_of_a_command_are_the_watched_drives(
    account: tuple[int, int], device: tuple[int, int], own: tuple[int, int] | None,
    expected: tuple[int | None, int | None],
) -> None:  # fmt: skip
    phase = of_this_drive(
        _phase(bytes_read=account[0], bytes_written=account[1]), ZERO, DeviceCounters(*device),
        None if own is None else DeviceCounters(*own),
    )  # fmt: skip
    found = phase.metrics.get("bytes_read"), phase.metrics.get("bytes_written")
    assert found == expected
    complete = None if None in expected else sum(value or 0 for value in expected)
    assert phase.bytes_moved == complete
    assert phase.bandwidth_bytes_per_s == (None if complete is None else complete / 2)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.root
@pytest.mark.skipif(isinstance(GUEST, str), reason=str(GUEST))
def test_a_kernel_counts_a_group_s_bytes_at_each_drive(tmp_path: Path) -> None:
    """Beside another writer on the same drive, and with reads of another."""
    assert not isinstance(GUEST, str)
    disks = [tmp_path / "vda", tmp_path / "vdb"]
    for disk in disks:
        with disk.open("wb") as file:
            file.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(disks[0])], check=True, timeout=300)
    message = GUEST.run(
        tmp_path, SCRIPT, modules=MODULES, programs=PROGRAMS,
        packages=PACKAGES,
        devices=[word for disk in disks
                 for word in ("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe")],
    )  # fmt: skip
    reported = dict(
        json.loads(line[5:]) for line in message.splitlines() if line.startswith("case ")
    )
    assert reported["without"] and "ended with 0" in message
    read_bytes, written_bytes = reported["drive"]
    assert written_bytes == pytest.approx(SIZE, rel=0.01)
    assert read_bytes < 0.1 * SIZE
    assert reported["other"] == [SIZE // 2, 0]
    assert reported["lives"] and reported["left"] == [] and reported["there"] == [False, True]
