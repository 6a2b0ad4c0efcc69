"""Bytes of a control group at a drive: io.stat's text, and a kernel with the unified hierarchy."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.qemu import PACKAGES, guest
from tests.simulators.tree import write_tree

from eeio.machine import counters, owner
from eeio.machine.undo import UndoEntry, UndoJournal
from eeio.record.run import DeviceCounters

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
from eeio.machine import counters, owner
from eeio.machine.filesystem import backing_device, block_device
from eeio.machine.undo import UndoJournal

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
# This process in a group of a slice, as a session has it.
session = top / "slice/session"
session.mkdir(parents=True)
for folder in (top, session.parent):
    (folder / "cgroup.subtree_control").write_text("+io +memory")
(session / "cgroup.procs").write_text(str(os.getpid()))
nearest = counters.new_io_group(journal)
tell("nearest", [str(nearest.folder.parent), str(nearest.home)])
journal.undo_all()
(session / "memory.max").write_text("1000000000")
tell("limited", counters.new_io_group(journal) is None and not journal.entries)
(top / "cgroup.procs").write_text(str(os.getpid()))
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


def _groups(root: Path, **files: str) -> None:
    """This process is in /user/session, which has processes: no group can be made below it."""
    folders = ("", "user/", "user/session/")
    write_tree(root, {
        "proc/self/mountinfo": "30 1 0:40 / /sys/fs/cgroup rw - cgroup2 none rw",
        "proc/self/cgroup": "0::/user/session",
        **{f"sys/fs/cgroup/{folder}cgroup.controllers": "io memory" for folder in folders},
        "sys/fs/cgroup/user/cgroup.subtree_control": "io memory",
        **{f"sys/fs/cgroup/user/session/{name}": text for name, text in files.items()},
    })  # fmt: skip


def test_a_group_is_made_in_the_nearest_one(home: Path, tmp_path: Path) -> None:
    _groups(tmp_path, **{"memory.max": "max", "cpu.max": "max 100000"})
    journal = UndoJournal()
    group = counters.new_io_group(journal, tmp_path)
    assert group is not None
    assert group.folder.parent == tmp_path / "sys/fs/cgroup/user"
    assert group.home == tmp_path / "sys/fs/cgroup/user/session", "processes return to their own"
    assert journal.undo_all() == []


@pytest.mark.parametrize(
    "limit", [{"memory.max": "1000000"}, {"cpu.max": "50000 100000"}, {"io.max": "8:0 rbps=1"}]
)
def test_no_group_is_made_outside_of_a_limit(
    home: Path, tmp_path: Path, limit: dict[str, str]
) -> None:
    _groups(tmp_path, **limit)
    journal = UndoJournal()
    assert counters.new_io_group(journal, tmp_path) is None
    assert not journal.entries


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
    assert reported["nearest"] == ["/sys/fs/cgroup/slice", "/sys/fs/cgroup/slice/session"]
    assert reported["limited"], "a group outside of the session would not have its limit"
    assert reported["lives"] and reported["left"] == [] and reported["there"] == [False, True]
