"""Drives of other machines: behind expanders, encryption and networks, and none at all."""

from pathlib import Path

import pytest
from tests.machines.machines import FOLDER
from tests.plugin import InProcess
from tests.simulators.tree import write_tree

from eeio.machine import counters
from eeio.machine import device as devices
from eeio.machine.below import why_in_memory
from eeio.machine.drive import drive_of, elsewhere
from eeio.machine.filesystem import (
    backing_device,
    block_device,
    drives_below,
    mounts,
    named_device,
    one_drive,
    zone_bytes,
)
from eeio.measure.campaign import plan
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options

PCI = "sys/devices/pci0000:00/0000:00:01.0"
SAS = f"{PCI}/host0/port-0:0/expander-0:0/port-0:0:1/end_device-0:0:1/target0:0:1/0:0:1:0"
ISCSI = "sys/devices/platform/host7/session2/target7:0:0/7:0:0:0"


def disk(root: Path, below: str, name: str, number: str, **files: str) -> Path:
    """A disk on a bus, as the kernel's trees show it."""
    folder = f"{below}/block/{name}"
    write_tree(root, {f"{folder}/dev": number, f"{folder}/size": "8", f"{folder}/stat": "0 " * 11})
    write_tree(root, {f"{below}/{file}": text for file, text in files.items()})
    (root / folder / "device").symlink_to(root / below)
    (root / folder / "queue").mkdir()
    place = root / "sys/class/block"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).symlink_to(root / folder)
    return place / name


def stacked(root: Path, name: str, number: str, uuid: str, *lower: str) -> None:
    folder = f"sys/devices/virtual/block/{name}"
    write_tree(
        root,
        {f"{folder}/dev": number, f"{folder}/size": "8", f"{folder}/dm/uuid": uuid}
        | {f"{folder}/slaves/{one}/dev": "0:0" for one in lower},
    )
    (root / "sys/class/block").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/block" / name).symlink_to(root / folder)


@pytest.mark.parametrize(("vendor", "interface"), [("ATA", "SATA"), ("SEAGATE", "SAS")])
def test_a_sata_drive_behind_an_expander_is_no_sas_drive(
    tmp_path: Path, vendor: str, interface: str
) -> None:
    found = disk(tmp_path, SAS, "sda", "8:0", vendor=vendor)
    assert drive_of(found).drive_interface == interface


def test_a_ufs_drive_has_an_interface(tmp_path: Path) -> None:
    found = disk(tmp_path, "sys/devices/platform/1d84000.ufshc/host0/0:0:0:0", "sda", "8:0")
    assert drive_of(found).drive_interface == "UFS"


def test_several_devices_of_bcachefs_are_not_one(tmp_path: Path) -> None:
    line = "30 1 0:40 / /data rw - bcachefs {} rw"
    disk(tmp_path, SAS, "sda", "8:0")
    disk(tmp_path, f"{SAS[:-1]}1", "sdb", "8:16")
    write_tree(tmp_path, {"dev/sda": "", "dev/sdb": "", "proc/self/mountinfo": line.format(
        "/dev/sda:/dev/sdb")})  # fmt: skip
    device, reason = backing_device(Path("/data/files"), tmp_path)
    assert device is None and reason == "/data spans 2 devices: sda, sdb"
    write_tree(tmp_path, {"proc/self/mountinfo": line.format("/dev/sdb")})
    device, _ = backing_device(Path("/data/files"), tmp_path)
    assert device is not None and device.name == "sdb"


@pytest.mark.parametrize(
    "uuid", ["CRYPT-LUKS2-0b7a1c2e-root", "LVM-aBcD1234", "mpath-3600a098038303053"]
)
def test_a_drive_below_encryption_or_a_volume_keeps_its_identity(tmp_path: Path, uuid: str) -> None:
    """Debian's guided installation: LVM on LUKS on one drive."""
    disk(tmp_path, SAS, "sda", "8:0", wwid="naa.5000c500a1b2c3d4", vendor="ATA")
    stacked(tmp_path, "dm-0", "253:0", uuid, "sda")
    stacked(tmp_path, "dm-1", "253:1", "LVM-xyz", "dm-0")
    for name in ("dm-0", "dm-1"):
        device = named_device(name, tmp_path)
        assert device is not None
        found = drive_of(device.disk_sysfs)
        assert (found.drive_id, found.drive_interface) == ("naa.5000c500a1b2c3d4", "SATA")
        assert counters.lies_on(device) is None
        assert one_drive(device).name == "sda"


def test_paths_to_one_drive_are_one_and_two_drives_are_two(tmp_path: Path) -> None:
    disk(tmp_path, SAS, "sda", "8:0", wwid="naa.1")
    disk(tmp_path, f"{SAS[:-1]}1", "sdb", "8:16", wwid="naa.1")
    disk(tmp_path, f"{SAS[:-1]}2", "sdc", "8:32", wwid="naa.2")
    stacked(tmp_path, "dm-0", "253:0", "mpath-1", "sda", "sdb")
    stacked(tmp_path, "dm-1", "253:1", "LVM-1", "sda", "sdc")
    paths, linear = named_device("dm-0", tmp_path), named_device("dm-1", tmp_path)
    assert paths is not None and linear is not None
    assert drive_of(paths.disk_sysfs).drive_id == "naa.1" and counters.lies_on(paths) is None
    assert len(drives_below(linear)) == 2
    assert drive_of(linear.disk_sysfs).drive_id is None
    assert "not separated" in (counters.lies_on(linear) or "")


def test_vdo_moves_fewer_bytes_than_are_written(tmp_path: Path) -> None:
    disk(tmp_path, SAS, "sda", "8:0")
    stacked(tmp_path, "dm-0", "253:0", "VDO-1234", "sda")
    device = named_device("dm-0", tmp_path)
    assert device is not None and "VDO compresses" in (counters.lies_on(device) or "")


@pytest.mark.parametrize(
    ("below", "name", "files", "message"),
    [
        (ISCSI, "sdb", {}, "connected by iSCSI"),
        (f"{PCI}/nvme/nvme1", "nvme1n1", {"transport": "tcp"}, "connected by NVMe over tcp"),
        (f"{PCI}/nvme/nvme2", "nvme2n1", {"transport": "rdma"}, "connected by NVMe over rdma"),
        ("sys/devices/virtual", "nbd0", {}, "network block device"),
        ("sys/devices/virtual", "rbd1", {}, "Ceph block device"),
        ("sys/devices/virtual", "drbd0", {}, "has a replica"),
        (f"{PCI}/virtio2", "vda", {}, "this virtual machine's host"),
    ],
)
def test_a_drive_of_another_machine_is_named_as_such(
    tmp_path: Path, below: str, name: str, files: dict[str, str], message: str
) -> None:
    disk(tmp_path, below, name, "259:0", **files)
    stacked(tmp_path, "dm-0", "253:0", "CRYPT-LUKS2-1", name)
    for each in (name, "dm-0"):
        device = named_device(each, tmp_path)
        assert device is not None and message in (elsewhere(device) or "")


@pytest.mark.parametrize(("below", "name"), [(SAS, "sda"), (f"{PCI}/nvme/nvme0", "nvme0n1")])
def test_a_drive_of_this_machine_is_not(tmp_path: Path, below: str, name: str) -> None:
    disk(tmp_path, below, name, "259:0")
    device = named_device(name, tmp_path)
    assert device is not None and elsewhere(device) is None


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("zram0", {}, "RAM disk"), ("ram0", {}, "RAM disk"), ("nullb0", {}, "null device"),
        ("sdz", {"model": "scsi_debug"}, "simulated drive"), ("sdz", {"model": "ST4000"}, None),
        ("loop0", {"block/loop0/loop/backing_file": "/tmp/image"}, "is on tmpfs"),
    ],
)  # fmt: skip
def test_a_device_in_memory_is_none(
    tmp_path: Path, name: str, files: dict[str, str], message: str | None
) -> None:
    disk(tmp_path, "sys/devices/virtual", name, "252:0", **files)
    write_tree(tmp_path, {"proc/self/mountinfo": "30 1 0:40 / /tmp rw - tmpfs tmpfs rw"})
    device = named_device(name, tmp_path)
    assert device is not None
    why = why_in_memory(device)
    assert why is None if message is None else message in str(why)


def test_persistent_memory_with_dax_has_no_counted_bytes(tmp_path: Path) -> None:
    disk(tmp_path, "sys/devices/LNXSYSTM:00", "pmem0", "259:0")
    for options, dax in (("rw,dax=always", True), ("rw,dax", True), ("rw,dax=never", False)):
        line = f"30 1 259:0 / /data rw - ext4 /dev/pmem0 {options}"
        write_tree(tmp_path, {"proc/self/mountinfo": line})
        device = block_device(Path("/dev/pmem0"), tmp_path)
        assert device is not None and counters.uses_dax(device) == dax


@pytest.mark.parametrize(
    ("filesystem", "options", "expected"),
    [
        ("btrfs", "rw,compress=zstd:3", "btrfs compresses data"),
        ("btrfs", "rw", "served from a cache"),
        ("btrfs", "rw", ", or moved to another drive"),
        ("ext4", "rw,dax", "uses DAX"),
    ],
)
def test_a_row_without_its_bytes_at_the_drive_names_the_option_that_causes_it(
    tmp_path: Path, filesystem: str, options: str, expected: str
) -> None:
    disk(tmp_path, "sys/devices/LNXSYSTM:00", "pmem0", "259:0")
    line = f"30 1 259:0 / /data rw - {filesystem} /dev/pmem0 {options}"
    write_tree(tmp_path, {"proc/self/mountinfo": line})
    device = block_device(Path("/dev/pmem0"), tmp_path)
    (mount,) = mounts(tmp_path)
    assert device is not None
    assert expected in counters.cause_of_missing(device, mount)


def test_a_zoned_drive_is_recognised(tmp_path: Path) -> None:
    for name, zoned in (("sda", "host-managed"), ("sdb", "host-aware"), ("sdc", "none")):
        folder = f"{SAS[:-1]}{name}"
        disk(tmp_path, folder, name, "8:0")
        queue = f"{folder}/block/{name}/queue"
        write_tree(tmp_path, {f"{queue}/zoned": zoned, f"{queue}/chunk_sectors": "524288"})
        device = named_device(name, tmp_path)
        assert device is not None and zone_bytes(device) == (
            256 << 20 if zoned == "host-managed" else None
        )


@pytest.mark.parametrize(
    ("filesystem", "message"),
    [
        ("gpfs", "its server has"), ("wekafs", "its server has"), ("pvfs2", "its server has"),
        ("ubifs", "its flash is no block device"),
    ],
)  # fmt: skip
def test_why_these_file_systems_have_no_device(
    tmp_path: Path, filesystem: str, message: str
) -> None:
    write_tree(tmp_path, {"proc/self/mountinfo": f"30 1 0:40 / /data rw - {filesystem} x rw"})
    device, reason = backing_device(Path("/data"), tmp_path)
    assert device is None and message in str(reason)


def test_a_replayed_plan_reports_a_remote_drive(in_process: InProcess) -> None:
    machine = FOLDER / "iscsi-volume/machine.yaml"
    arguments = ["--preset", "quick", "--directory", "/data", "--replay", str(machine)]
    assert "its drive is in another machine" in in_process("plan", "eeio-suite", *arguments).out


def test_a_replayed_plan_rejects_a_device_in_memory(tmp_path: Path, in_process: InProcess) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text(
        "machine: 1\nabout: zram\ntree:\n"
        '  proc/self/mountinfo: "20 1 252:0 / /data rw - ext4 /dev/zram0 rw"\n'
        "  sys/class/block/zram0/dev: '252:0'\n"
    )
    arguments = ["--preset", "quick", "--directory", "/data", "--replay", str(machine)]
    assert "RAM disk" in in_process("plan", "eeio-suite", *arguments, code=2).err


def test_a_plan_leaves_out_random_writes_to_a_zoned_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drive of 14 TB with zones of 256 MiB, as zonedstorage.io's guide shows it."""
    queue = f"{SAS}/block/sda/queue"
    disk(tmp_path, SAS, "sda", "8:0")
    write_tree(tmp_path, {
        "dev/sda": "", f"{queue}/zoned": "host-managed", f"{queue}/chunk_sectors": "524288",
        f"{SAS}/block/sda/size": "27344764928",
    })  # fmt: skip
    # Nobody's drive is erased here.
    monkeypatch.setattr(plan, "check_targets", lambda *_, **__: None)
    options = Options(seed=1, suite="eeio-panadero2012", preset="quick", device="/dev/sda",
                      erase="/dev/sda", directory="/data")  # fmt: skip
    found = plan.make(options, suites.find("eeio-panadero2012"), tmp_path)
    planned = [p for p in found.experiments if p.experiment.target == "device"]
    writes = [p for p in planned if p.experiment.operation == "write"]
    assert {p.experiment.spatiality for p in planned} == {"sequential", "random"}
    assert len(writes) == 10 and {p.experiment.spatiality for p in writes} == {"sequential"}
    assert {p.file_bytes for p in planned} == {256 << 20}, "whole zones"
    left = [n for n in found.not_measured if "zoned drive (host-managed)" in n.reason]
    assert len(left) == 18
    assert {n.experiment.spatiality for n in left} == {"random", "strided"}


def test_gaps_at_the_ends_of_zones_are_no_zeros(tmp_path: Path) -> None:
    """As util-linux prints zones; the first is full, the second has a quarter of its data."""
    report = "".join(
        f"  start: {start:#011x}, len 0x002000, cap 0x001800, wptr {wptr:#08x} reset:0 non-seq:0, "
        f"zcond:{state} [type: 2(SEQ_WRITE_REQUIRED)]\n"
        for start, wptr, state in ((0, 0x2000, "14(fu)"), (0x2000, 0x600, " 2(oi)"))
    )
    zones = devices.zones_of(report)
    assert zones == [devices.Zone(3 << 20, 3 << 20), devices.Zone(3 << 20, 3 << 18)]
    drive = tmp_path / "drive"
    data, gap = b"x" * (3 << 20), bytes(1 << 20)
    drive.write_bytes(data + gap + b"x" * (3 << 18) + bytes(13 << 18))
    assert devices.zero_share(drive, 4 << 20, 4 << 20, zones) == 0.0
    assert devices.zero_share(drive, 8 << 20, 4 << 20, zones) == pytest.approx(3 / 8, abs=0.02)
    assert devices.zero_share(drive, 4 << 20) == pytest.approx(1 / 4, abs=0.02)
    assert devices.zones_of("no zones here") == []
