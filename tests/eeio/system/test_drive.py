"""Drives by their identity, on trees as the kernel makes them, and campaigns told apart by it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results import made
from tests.simulators.tree import write_tree

from eeio.comparison.cells import cells_of, machine_names
from eeio.errors import EeioError
from eeio.machine.drive import drive_of, network_file_system
from eeio.machine.filesystem import Mount, named_device
from eeio.record.run import Machine
from eeio.record.store import Campaign

SATA = "devices/pci0000:00/0000:00:17.0/ata1"
NVME = "devices/pci0000:00/0000:01:00.0/nvme/nvme0"
USB = "devices/pci0000:00/0000:00:14.0/usb2/2-1"


def disk(root: Path, device: str, files: dict[str, int | str], name: str = "sda") -> Path:
    """A disk below a device of the bus, as /sys/block links to it."""
    folder = root / device / "block" / name
    folder.mkdir(parents=True)
    write_tree(root, files)
    (folder / "device").symlink_to(root / device)
    block = root / "block"
    block.mkdir(exist_ok=True)
    (block / name).symlink_to(folder)
    return block / name


def test_a_sata_drive_has_a_world_wide_name_and_a_link(tmp_path: Path) -> None:
    scsi = f"{SATA}/host0/target0:0:0/0:0:0:0"
    found = disk(tmp_path, scsi, {
        f"{scsi}/wwid": "naa.5000c500a1b2c3d4", f"{scsi}/model": "ST1000LM035",
        f"{SATA}/link1/ata_link/link1/sata_spd": "6.0 Gbps",
    })  # fmt: skip
    (tmp_path / scsi / "vpd_pgb1").write_bytes(bytes([0, 0xB1, 0, 60, 0x15, 0x18]) + bytes(58))
    drive = drive_of(found)
    assert drive.drive_id == "naa.5000c500a1b2c3d4"
    assert (drive.drive_interface, drive.drive_link_speed) == ("SATA", "6.0 Gbps")
    assert drive.rotation_rate_rpm == 5400
    assert not drive.missing
    hashed = drive_of(found, hash_serial=True).drive_id
    assert hashed is not None and hashed.startswith("sha256:") and "c3d4" not in hashed
    assert drive_of(found, hash_serial=True).drive_id == hashed


def test_a_name_that_is_made_of_model_and_serial_is_recognized_by_these(tmp_path: Path) -> None:
    scsi = f"{SATA}/host0/target0:0:0/0:0:0:0"
    found = disk(tmp_path, scsi, {
        f"{scsi}/wwid": "t10.ATA     QEMU HARDDISK    QM00001", f"{scsi}/model": "QEMU HARDDISK",
    })  # fmt: skip
    (tmp_path / scsi / "vpd_pg80").write_bytes(b"\0\x80\0\x14             QM00001")
    assert drive_of(found).drive_id == "QEMU HARDDISK QM00001"
    assert "sata_spd" not in str(drive_of(found).missing)
    assert "no speed of its SATA link" in drive_of(found).missing["drive_link_speed"]


def test_nvme_usb_and_mmc(tmp_path: Path) -> None:
    pci = "devices/pci0000:00/0000:01:00.0"
    nvme = disk(tmp_path, NVME, {
        f"{NVME}/block/nvme0n1/wwid": "eui.0025385b91b0a1c2", f"{NVME}/transport": "pcie",
        f"{pci}/current_link_speed": "8.0 GT/s PCIe", f"{pci}/current_link_width": "4",
    }, "nvme0n1")  # fmt: skip
    (tmp_path / NVME / "device").symlink_to(tmp_path / pci)
    drive = drive_of(nvme)
    assert drive.drive_id == "eui.0025385b91b0a1c2"
    assert drive.drive_interface == "NVMe over pcie"
    assert drive.drive_link_speed == "8.0 GT/s PCIe x4"
    scsi = f"{USB}/2-1:1.0/host4/target4:0:0/4:0:0:0"
    usb = disk(
        tmp_path, scsi, {f"{USB}/busnum": 2, f"{USB}/speed": 5000, f"{scsi}/model": "X"}, "sdb"
    )
    drive = drive_of(usb)
    assert (drive.drive_interface, drive.drive_link_speed) == ("USB", "5000 Mb/s")
    assert drive.drive_id is None and "--drive-label" in drive.missing["drive_id"]
    card = "devices/platform/fe340000.mmc/mmc_host/mmc0/mmc0:aaaa"
    sd = disk(tmp_path, card, {f"{card}/cid": "035344534c3332478012345678014a00"}, "mmcblk0")
    assert drive_of(sd).drive_id == "mmc.035344534c3332478012345678014a00"
    assert drive_of(sd).drive_interface == "MMC"


def test_an_array_reports_its_level_and_its_members(tmp_path: Path) -> None:
    array = "devices/virtual"
    found = disk(tmp_path, array, {f"{array}/block/md0/md/level": "raid5"}, "md0")
    for member in ("sdb1", "sda1"):
        (found / "slaves" / member).mkdir(parents=True)
    drive = drive_of(found)
    assert (drive.raid_level, drive.raid_members) == ("raid5", ("sda1", "sdb1"))


def test_nfs_reports_its_server_its_version_and_the_network(tmp_path: Path) -> None:
    write_tree(tmp_path, {
        "proc/net/route": "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\n"
        "eth0 00000000 0100000A 0003 0 0 0 00000000 0\n"
        "eth1 0000A8C0 00000000 0001 0 0 0 00FFFFFF 0\n",
        "sys/class/net/eth1/speed": 1000,
    })  # fmt: skip
    mount = Mount(Path("/mnt"), "nfs4", "box:/export", "rw,vers=4.2,addr=192.168.0.7", "0:52")
    found = network_file_system(mount, tmp_path)
    assert found is not None
    assert (found.server, found.version, found.link) == ("box", "4.2", "eth1 at 1000 Mb/s")
    assert network_file_system(replace(mount, filesystem="ext4"), tmp_path) is None


def on(drive: str, machine: Machine, bandwidth: float) -> Campaign:
    """A campaign on a drive that the kernel calls sda like all others."""
    runs = tuple(made.run(n, (made.phase(bandwidth + n, (made.energy(5.0),)),)) for n in range(6))
    machine = replace(machine, device="sda", device_model="DISK", drive_id=drive)
    return Campaign(Path(drive), made.design(drive, 6), machine, (), None, runs)


def test_four_drives_called_sda_are_four() -> None:
    pc = replace(made.MACHINE, hostname="pc")
    campaigns = [
        on("naa.500000000000000a", pc, 1e8), on("naa.500000000000000b", pc, 2e8),
        on("naa.500000000000000c", made.MACHINE, 3e7),
        on("naa.500000000000000d", made.MACHINE, 4e7),
    ]  # fmt: skip
    assert machine_names(campaigns) == ["pc", "pc", "board", "board"]
    devices = {cell.factors["device"] for c in campaigns for cell in cells_of(c)}
    assert devices == {f"DISK 00000{letter}" for letter in "abcd"}


def test_two_drives_of_one_label_are_rejected() -> None:
    one, other = on("naa.a", made.MACHINE, 1e8), on("naa.b", made.MACHINE, 2e8)
    named = [replace(c, machine=replace(c.machine, drive_label="blue")) for c in (one, other)]
    with pytest.raises(EeioError, match="two drives of board have the label 'blue'"):
        machine_names(named)
    assert cells_of(named[0])[0].factors["device"] == "blue"


def test_a_device_without_an_identity_has_that_of_what_it_lies_on(tmp_path: Path) -> None:
    """Else another device mapper of the same name and size, on another drive, would pass for it."""
    folder = tmp_path / "sys/class/block"
    for name, number, serial in (("dm-0", "253:0", None), ("vda", "254:0", "SERIAL")):
        (folder / name).mkdir(parents=True)
        (folder / name / "dev").write_text(f"{number}\n")
        (folder / name / "size").write_text("8\n")
        if serial is not None:
            (folder / name / "serial").write_text(f"{serial}\n")
    (folder / "dm-0/slaves").mkdir()
    (folder / "dm-0/slaves/vda").symlink_to(folder / "vda")
    device = named_device("dm-0", tmp_path)
    assert device is not None
    assert device.identity == "on SERIAL, 4096 bytes, 4096 bytes"
    (folder / "dm-0/dm").mkdir()
    (folder / "dm-0/dm/uuid").write_text("LVM-x\n")
    assert device.identity == "LVM-x, 4096 bytes"
