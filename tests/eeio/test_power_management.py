"""What saves power between a drive and its processor, read from trees as machines have them."""

from pathlib import Path

from eeio.system.power_management import settings


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
    assert alpm.value == "med_power_with_dipm" and policy.value == "[default] performance powersave"
    assert l1.value is None and "l1_aspm" in (l1.reason or "")
    assert (controller.value, drive.value) == ("on", "auto")


def test_a_device_on_no_bus_has_reasons(tmp_path: Path) -> None:
    loop = tmp_path / "sys/devices/virtual/block/loop0"
    loop.mkdir(parents=True)
    found = settings(loop, tmp_path)
    assert len(found) == 5 and all(one.value is None and one.reason for one in found)
