"""The drive's write cache on a made-up sysfs tree: SCSI, virtio, ATA and NVMe."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.executables import executable

from eeio.errors import EeioError
from eeio.machine import caches
from eeio.machine.filesystem import BlockDevice
from eeio.machine.undo import UndoJournal

pytestmark = pytest.mark.root


@dataclass(frozen=True)
class FakeDisk(BlockDevice):
    """A disk whose sysfs folder lies elsewhere."""

    folder: Path = Path()

    @property
    def disk_sysfs(self) -> Path:
        return self.folder


def _disk(tmp_path: Path, name: str, state: str = "write back") -> FakeDisk:
    folder = tmp_path / name
    (folder / "queue").mkdir(parents=True)
    (folder / "queue/write_cache").write_text(f"{state}\n")
    return FakeDisk(name, 8, 0, folder)


def _scsi(disk: FakeDisk) -> Path:
    """cache_type that the kernel mirrors in queue/write_cache."""
    folder = disk.folder / "device/scsi_disk/0:0:0:0"
    folder.mkdir(parents=True)
    (folder / "cache_type").symlink_to(disk.folder / "queue/write_cache")
    return folder / "cache_type"


@pytest.fixture
def journal(tmp_path: Path) -> UndoJournal:
    return UndoJournal(tmp_path / "journal.json")


def test_scsi_is_switched_read_back_and_put_back(tmp_path: Path, journal: UndoJournal) -> None:
    disk = _disk(tmp_path, "sda")
    _scsi(disk)
    assert caches.cannot_switch_write_cache(disk, "off") is None
    caches.switch_write_cache(disk, "off", journal)
    assert caches.write_cache_found(disk) == "off"
    assert journal.undo_all() == []
    assert caches.write_cache_found(disk) == "on"


def test_the_state_that_is_there_already_changes_nothing(
    tmp_path: Path, journal: UndoJournal
) -> None:
    disk = _disk(tmp_path, "vda")
    caches.switch_write_cache(disk, "on", journal)
    assert journal.entries == ()


def test_virtio_without_the_feature_is_reported(tmp_path: Path, journal: UndoJournal) -> None:
    disk = _disk(tmp_path, "vda")
    (disk.folder / "cache_type").write_text("write back\n")
    (disk.folder / "cache_type").chmod(0o444)
    reason = caches.cannot_switch_write_cache(disk, "off")
    assert reason is not None and "/dev/vda offers no way" in reason and "is on" in reason
    with pytest.raises(EeioError, match="offers no way"):
        caches.switch_write_cache(disk, "off", journal)
    assert journal.entries == ()


def test_a_drive_that_does_not_follow_is_an_error_and_put_back(
    tmp_path: Path, journal: UndoJournal
) -> None:
    disk = _disk(tmp_path, "sda")
    folder = disk.folder / "device/scsi_disk/0:0:0:0"
    folder.mkdir(parents=True)
    (folder / "cache_type").write_text("write back\n")  # queue/write_cache does not change with it
    with pytest.raises(EeioError, match="reads back on"):
        caches.switch_write_cache(disk, "off", journal)
    assert journal.undo_all() == []
    assert (folder / "cache_type").read_text() == "write back"


@pytest.mark.parametrize(
    ("name", "program", "arguments"),
    [
        ("hda", "hdparm", ["-q -W0 /dev/hda", "-q -W1 /dev/hda"]),
        ("nvme0n1", "nvme", [
            "set-feature /dev/nvme0n1 -f 6 -v 0", "set-feature /dev/nvme0n1 -f 6 -v 1",
        ]),
    ],
)  # fmt: skip
def test_programs_are_called_and_their_effect_read_back(
    tmp_path: Path, journal: UndoJournal, monkeypatch: pytest.MonkeyPatch,
    name: str, program: str, arguments: list[str],
) -> None:  # fmt: skip
    disk = _disk(tmp_path, name)
    fake = tmp_path / "bin" / program
    fake.parent.mkdir()
    # An NVMe drive answers for itself; the kernel's file does not follow it.
    state = (
        tmp_path / "nvme-state" if name.startswith("nvme") else disk.folder / "queue/write_cache"
    )
    state.write_text("write back")
    executable(
        fake,
        "#!/bin/sh\n"
        f'case "$*" in get-feature*) grep -q back {state} && n=1 || n=0\n'
        'echo "get-feature:0x06 (Volatile Write Cache), Current value:0x0000000$n"; exit ;; esac\n'
        f'echo "$*" >> {tmp_path}/calls\n'
        f'case "$*" in *-W0*|*"-v 0") s="write through" ;; *) s="write back" ;; esac\n'
        f'echo "$s" > {state}\n',
    )
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    caches.switch_write_cache(disk, "off", journal)
    assert caches.write_cache_found(disk) == "off"
    assert journal.undo_all() == []
    assert caches.write_cache_found(disk) == "on"
    assert (tmp_path / "calls").read_text().splitlines() == arguments


@pytest.mark.parametrize("place", ["device/scsi_disk/0:0:0:0/cache_type", "cache_type"])
def test_the_kernel_s_view_set_by_hand_is_not_the_drive_s_cache(tmp_path: Path, place: str) -> None:
    """The row said that the disk cache was off, and that writes were durable after a flush that the
    kernel did not send."""
    disk = _disk(tmp_path, "sda", "write through")
    assert (caches.write_cache_found(disk), caches.why_no_flush(disk)) == ("off", None)
    answer = disk.folder / place
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.write_text("write through\n")
    assert (caches.write_cache_found(disk), caches.why_no_flush(disk)) == ("off", None)
    answer.write_text("write back, no read (daft)\n")
    assert caches.write_cache_found(disk) == "on"
    reason = "the kernel sends no flush to /dev/sda (queue/write_cache is write through)"
    assert caches.why_no_flush(disk) == reason
    (disk.folder / "queue/write_cache").write_text("write back\n")
    assert caches.why_no_flush(disk) is None


@pytest.mark.parametrize(("ro", "is_skipped"), [("0", True), ("1", False)])
def test_the_cache_below_a_loop_device_is_not_known(
    tmp_path: Path, ro: str, is_skipped: bool
) -> None:
    disk = _disk(tmp_path, "loop0", "write through")
    (disk.folder / "loop").mkdir()
    (disk.folder / "ro").write_text(f"{ro}\n")
    assert caches.write_cache_found(disk) is None
    assert (caches.why_no_flush(disk) is not None) == is_skipped
