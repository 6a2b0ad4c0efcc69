"""What a drive says of its endurance: an NVMe drive alone, and only when it answers."""

from pathlib import Path

import pytest

from eeio.machine import drive


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """/sys/block/nvme0n1 whose controller is nvme0, and a file for /dev/nvme0."""
    (tmp_path / "class/nvme0").mkdir(parents=True)
    (tmp_path / "block/nvme0n1").mkdir(parents=True)
    (tmp_path / "block/nvme0n1/device").symlink_to(tmp_path / "class/nvme0")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvme0").touch()
    return tmp_path / "block/nvme0n1"


def test_the_share_is_byte_5_of_the_health_log(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bytearray(512)
    log[5] = 103  # drives may tell more than 100
    monkeypatch.setattr(drive, "read_smart_log", lambda fd: bytes(log))
    assert drive.percentage_used(disk, tmp_path / "dev") == 103


def test_what_was_written_is_counted_in_thousands_of_sectors(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bytearray(512)
    log[5], log[48:64] = 3, (7_000_001).to_bytes(16, "little")
    monkeypatch.setattr(drive, "read_smart_log", lambda fd: bytes(log))
    found = drive.wear(disk, tmp_path / "dev")
    assert found is not None
    assert (found.used_percent, found.written_bytes) == (3, 3_584_000_512_000)
    log[48:64] = b"\xff" * 16
    assert drive.wear(disk, tmp_path / "dev") is None, "no drive holds so much"


@pytest.mark.parametrize(("warning", "temperature_c"), [(0x00, None), (0x01, None), (0x02, 85)])
def test_the_drive_itself_warns_of_its_temperature(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    warning: int, temperature_c: int | None,
) -> None:  # fmt: skip
    log = bytearray(512)
    log[0], log[1:3] = warning, (273 + 85).to_bytes(2, "little")
    monkeypatch.setattr(drive, "read_smart_log", lambda fd: bytes(log))
    assert drive.temperature_outside_limits_c(disk, tmp_path / "dev") == temperature_c


def test_a_drive_that_rejects_reports_nothing(disk: Path, tmp_path: Path) -> None:
    # A file answers no NVMe command.
    assert drive.percentage_used(disk, tmp_path / "dev") is None
    (tmp_path / "dev/nvme0").unlink()
    assert drive.percentage_used(disk, tmp_path / "dev") is None


@pytest.mark.parametrize("controller", ["nvme-subsys0", "0:0:0:0", "virtio1", "nvme"])
def test_other_drives_are_not_queried(tmp_path: Path, controller: str) -> None:
    (tmp_path / "class" / controller).mkdir(parents=True)
    (tmp_path / "sda").mkdir()
    (tmp_path / "sda/device").symlink_to(tmp_path / "class" / controller)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / controller).touch()
    assert drive.percentage_used(tmp_path / "sda", tmp_path / "dev") is None
