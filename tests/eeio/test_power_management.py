"""What saves power between a drive and its processor, read from trees as machines have them."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from tests.plugin import Eeio

from eeio.errors import EeioError
from eeio.machine.power_saving import KEYS, Setting, settings
from eeio.machine.undo import UndoJournal
from eeio.measure.drives.states import Measured, StateReading, of_setting
from eeio_power.monitor import PowerMonitor


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_sata_drive(tmp_path: Path) -> None:
    pci = tmp_path / "sys/devices/pci0000:00/0000:00:17.0"
    host = pci / "ata1/host0"
    disk = host / "target0:0:0/0:0:0:0/block/sda"
    disk.mkdir(parents=True)
    (disk / "device").symlink_to("../../../0:0:0:0")
    _write(host / "scsi_host/host0/link_power_management_policy", "med_power_with_dipm\n")
    _write(pci / "power/control", "on\n")
    _write(disk.parent.parent / "power/control", "auto\n")
    _write(tmp_path / "sys/module/pcie_aspm/parameters/policy", "[default] performance powersave\n")
    block = tmp_path / "sys/block"
    block.mkdir()
    (block / "sda").symlink_to(disk)
    alpm, policy, l1, controller, drive = settings(block / "sda", tmp_path)
    assert alpm.value == "med_power_with_dipm" and policy.value == "default"
    assert l1.value is None and "l1_aspm" in (l1.reason or "")
    assert (controller.value, drive.value) == ("on", "auto")


def test_a_device_on_no_bus_has_reasons(tmp_path: Path) -> None:
    loop = tmp_path / "sys/devices/virtual/block/loop0"
    loop.mkdir(parents=True)
    found = settings(loop, tmp_path)
    assert len(found) == 5 and all(one.value is None and one.reason for one in found)


def test_the_keys_are_those_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    assert tuple(one.key for one in settings(tmp_path / "disk", tmp_path)) == KEYS


class _Policy:
    """A file of sysfs that lists what it could be, as ASPM's, and refuses one of it."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.value = path, "default"
        self._write = Path.write_text
        self.show()
        monkeypatch.setattr(
            Path, "write_text", lambda at, *arguments, **k: self.take(at, *arguments, **k)
        )

    def show(self) -> None:
        labels = [f"[{w}]" if w == self.value else w for w in ("default", "performance", "deep")]
        self._write(self.path, " ".join(labels), encoding="ascii")

    def take(self, at: Path, text: str, **further: str) -> int:
        if at != self.path:
            return self._write(at, text, **further)  # type: ignore[arg-type]
        if text == "deep":
            raise OSError(22, "Invalid argument")
        self.value = text
        self.show()
        return len(text)


def test_each_value_is_set_proved_and_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = _Policy(tmp_path / "policy", monkeypatch)
    observed: list[tuple[str, str]] = []

    def during(_: Measured, state: str, act: Callable[[], object]) -> StateReading:
        observed.append((state, policy.value))
        return StateReading(state, 0.1, (), None)

    monkeypatch.setattr(Measured, "_during", during)
    setting = Setting(
        "ASPM", "default", str(policy.path), None, "aspm", ("performance", "deep", "default")
    )
    journal = UndoJournal(tmp_path / "journal.json")
    drive = Measured(tmp_path, 0.0, 0.0, cast("PowerMonitor", None))
    found = of_setting(setting, drive, journal)
    assert observed == [
        (f"aspm={value} {what}", value)
        for value in ("performance", "default")
        for what in ("reading", "idle", "first read")
    ]
    (rejected,) = [one for one in found if one.invalid is not None]
    assert rejected.state == "aspm=deep" and "'deep' is rejected: Invalid argument" in str(
        rejected.invalid
    )
    assert policy.value == "default" and not journal.entries


@pytest.mark.root
def test_a_value_that_does_not_stay_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "control"
    # As /dev/null, which takes all and reads back nothing, but of root alone.
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    setting = Setting("x", "on", str(path), None, "drive", ("auto",))
    journal = UndoJournal(tmp_path / "journal.json")
    with (
        pytest.raises(EeioError, match="set to 'auto', but it reads back ''"),
        setting.set_to("auto", journal),
    ):
        pass


@pytest.mark.root
def test_a_setting_that_a_drive_has_not_is_rejected(eeio: Eeio, loop: str) -> None:
    done = eeio("drive", "states", "--device", loop, "--meter", "none", "--setting", "alpm", code=2)
    assert "the drive is on no SATA link" in done.stderr
