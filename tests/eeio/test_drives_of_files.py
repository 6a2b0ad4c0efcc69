"""What a drive moved, compared with a traced program."""

from pathlib import Path

import pytest

from eeio.machine.below import CacheBelow
from eeio.machine.filesystem import backing_devices
from eeio.measure import drives_of_files
from eeio.record.run import DeviceCounters
from eeio.traces.events import Event
from eeio.units.sizes import MB


@pytest.fixture(autouse=True)
def known_drive(tmp_path: Path) -> None:
    if not backing_devices(tmp_path):
        pytest.skip("the drive below the temporary folder is not known here")


@pytest.mark.parametrize(
    ("read_mb", "written_mb", "named"),
    [
        (0, 50, False),  # the program's own
        (80, 108, False),  # programs, the journal, and as much as the program
        (0, 120, True),
        (200, 50, True),
    ],
)
def test_a_drive_that_moved_much_more_than_the_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_mb: int, written_mb: int, named: bool
) -> None:
    counted = DeviceCounters(0, 0)
    monkeypatch.setattr(drives_of_files, "read_counters", lambda device: counted)
    drives = drives_of_files.DrivesOfFiles()
    counted = DeviceCounters(read_mb * MB, written_mb * MB)
    file = tmp_path / "data"
    file.write_bytes(b"x")
    written = Event(0.0, 1.0, "1", "write", str(file), 0, 50 * MB)
    notes = drives.notes([written, written._replace(operation="close", length=0)])
    assert len(notes) == int(named)
    for note in notes:
        assert f"wrote {written_mb} MB meanwhile, the program 0 and 50 MB" in note


def test_files_that_are_gone_are_on_the_drive_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = DeviceCounters(0, 0)
    monkeypatch.setattr(drives_of_files, "read_counters", lambda device: counted)
    drives = drives_of_files.DrivesOfFiles()
    counted = DeviceCounters(0, 900 * MB)
    gone = Event(0.0, 1.0, "1", "write", str(tmp_path / "folder/gone"), 0, 4096)
    assert len(drives.notes([gone])) == 1
    assert drives.notes([gone._replace(file="")]) == []


def test_caches_below_the_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = [CacheBelow("the page cache of the image /a", True), CacheBelow("bcache", False)]
    monkeypatch.setattr(drives_of_files, "caches_below", lambda device: caches)
    monkeypatch.setattr(drives_of_files, "why_in_memory", lambda device: "/dev/ram0 is a RAM disk")
    read = Event(0.0, 1.0, "1", "read", str(tmp_path / "data"), 0, 4096)
    assert drives_of_files.DrivesOfFiles().notes([read, read])[:2] == [
        "/dev/ram0 is a RAM disk: its figures are of no drive",
        "through the page cache of the image /a: the figures are not those of the drive",
    ]
