"""A drive's identity and wear, as it reports them.

Which drive it is: its identity, and its connection to the machine.

The kernel's name shows only the order of ports: each of four drives on a board's one port is `sda`.
A drive is identified by its world wide name, else by model and serial number. Data that sysfs does
not report is missing with the reason.

A drive's used share of its rated endurance, and its written bytes, as it reports them.

Only NVMe: of the SMART / health log page (NVM Express Base Specification, log 02h) "Percentage
Used" (byte 5), the drive's estimate, which may exceed 100 %, and "Data Units Written" (bytes 48 to
63), in thousands of 512 bytes, rounded up. No tables of models are used. The query needs root.
"""

import hashlib
import ipaddress
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from eeio.machine.filesystem import BlockDevice, Mount, drives_below
from eeio.record.design import Wear
from eeio.units.quantities import SIZE
from eeio_power.meters.nvme import read_smart_log

_PERCENTAGE_USED = 5
_WRITTEN = slice(48, 64)
_DATA_UNIT_BYTES = 512_000


def percentage_used(disk: Path, dev: Path = Path("/dev")) -> int | None:
    """Of the drive behind a folder of /sys/block; None of other drives, and where it does not
    answer."""
    log = _health(disk, dev)
    if log is None:
        return None
    return log[_PERCENTAGE_USED]


def wear(disk: Path, dev: Path = Path("/dev")) -> Wear | None:
    """The same, with the total of written bytes now."""
    log = _health(disk, dev)
    if log is None:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    written = int.from_bytes(log[_WRITTEN], "little") * _DATA_UNIT_BYTES
    if SIZE.contains(written):
        return Wear(now, log[_PERCENTAGE_USED], written)
    return None


_TEMPERATURE_WARNING = 0x02
"""Of byte 0, critical warning: the temperature is over or under a threshold of the drive."""
_TEMPERATURE_K = slice(1, 3)
_ZERO_CELSIUS_K = 273
"""As the specification converts it."""


def temperature_outside_limits_c(disk: Path, dev: Path = Path("/dev")) -> int | None:
    """The temperature of the drive, if the drive warns that it is outside of its limits."""
    log = _health(disk, dev)
    if log is None or not log[0] & _TEMPERATURE_WARNING:
        return None
    return int.from_bytes(log[_TEMPERATURE_K], "little") - _ZERO_CELSIUS_K


_TRANSITIONS = (slice(216, 220), slice(220, 224))
"""Thermal management temperature 1 and 2 transition counts."""
_TIMES = (slice(224, 228), slice(228, 232))
"""Total time for thermal management temperature 1 and 2, s."""


@dataclass(frozen=True)
class Throttling:
    """So far: how often it began, and how long it lasted, in any unit; 0 if that is not counted."""

    count: int = 0
    time: int = 0


def thermal_throttling(disk: Path, dev: Path = Path("/dev")) -> Throttling | None:
    """Of the drive itself because of its temperature, in s; None as above."""
    log = _health(disk, dev)
    if log is None:
        return None
    return Throttling(
        sum(int.from_bytes(log[place], "little") for place in _TRANSITIONS),
        sum(int.from_bytes(log[place], "little") for place in _TIMES),
    )


def _health(disk: Path, dev: Path) -> bytes | None:
    controller = (disk / "device").resolve().name
    # nvme0, not nvme-subsys0: of several paths to one drive none is queried.
    if not controller.removeprefix("nvme").isdigit() or not controller.startswith("nvme"):
        return None
    try:
        fd = os.open(dev / controller, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_smart_log(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


_HASH_DIGITS = 12
# `t10.` names consist of model and serial number, for drives without a WWN.
_WORLD_WIDE = ("naa.", "eui.", "uuid.", "nvme.")


@dataclass(frozen=True)
class Drive:
    """The identity of the drive. None: not reported, with the reason in `missing`."""

    drive_id: str | None = None
    rotation_rate_rpm: int | None = None
    drive_interface: str | None = None
    drive_link_speed: str | None = None
    raid_level: str | None = None
    raid_members: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)


def drive_of(disk: Path, hash_serial: bool = False) -> Drive:
    """The drive behind a folder of /sys/block; below encryption, a logical volume or several paths
    the one drive that has the data. With `hash_serial` its identity is a hash, which is stable and
    does not reveal the serial number."""
    missing: dict[str, str] = {}
    disk = _one_below(disk)
    interface, speed = _link(disk.resolve())
    if interface is None:
        missing["drive_interface"] = f"{disk}: not on a bus that eeio supports"
    elif speed is None:
        missing["drive_link_speed"] = f"{disk}: sysfs reports no speed of its {interface} link"
    identity = _identity(disk)
    level = _text(disk / "md/level")
    members = tuple(sorted(path.name for path in disk.glob("slaves/*"))) if level else ()
    if identity is None and level:
        identity = _text(disk / "md/uuid") or None
    if identity is None:
        missing["drive_id"] = (
            f"{disk.name} reports no WWN or serial number; name it with --drive-label"
        )
    elif hash_serial:
        identity = f"sha256:{hashlib.sha256(identity.encode()).hexdigest()[:_HASH_DIGITS]}"
    return Drive(identity, _rotation_rate(disk), interface, speed, level, members, missing)


def _one_below(disk: Path, depth: int = 0) -> Path:
    """The folder of the only drive below a device of the device mapper; else the device's."""
    if depth == _DEEPEST or not (disk / "dm").is_dir():
        return disk
    disks: dict[str, Path] = {}
    for slave in sorted(disk.glob("slaves/*")):
        # A description has the names of slaves, and no links.
        places = (folder / "class/block" / slave.name for folder in disk.resolve().parents)
        folder = next((place for place in places if place.exists()), slave).resolve()
        below = _one_below(folder.parent if (folder / "partition").exists() else folder, depth + 1)
        disks.setdefault(_text(below / "device/wwid") or below.name, below)
    if len(disks) == 1:
        return next(iter(disks.values()))
    return disk


def elsewhere(device: BlockDevice) -> str | None:
    """Why a device's drive is in another machine, or behind this one's host: no meter of this
    machine measures its power. None if it is here, as far as sysfs shows."""
    for drive in drives_below(device):
        disk = drive.disk_sysfs
        interface, _ = _link(disk.resolve())
        kind = next((label for p, label in _REMOTE if re.fullmatch(p, disk.name)), None)
        if interface in _REMOTE_LINKS:
            kind = f"is connected by {interface}"
        if interface == "virtio":
            return f"/dev/{disk.name} is a drive of this virtual machine's host; {_NOT_HERE}"
        if kind is not None:
            return f"/dev/{disk.name} {kind}: its drive is in another machine; {_NOT_HERE}"
    return None


_NOT_HERE = "the power of this machine does not include it"
_REMOTE_LINKS = ("NVMe over tcp", "NVMe over rdma", "NVMe over fc", "iSCSI", "Fibre Channel")
_REMOTE = (
    (r"nbd[0-9]+", "is a network block device (nbd)"),
    (r"rbd[0-9]+", "is a Ceph block device (rbd)"),
    (r"drbd[0-9]+", "has a replica (drbd)"),
)
_DEEPEST = 8


def _identity(disk: Path) -> str | None:
    names = (_text(disk / "wwid"), _text(disk / "device/wwid"))
    for name in names:
        if name and name.startswith(_WORLD_WIDE):
            return name
    cid = _text(disk / "device/cid")
    if cid:
        return f"mmc.{cid}"
    serial = _text(disk / "serial") or _text(disk / "device/serial") or _page_80(disk)
    if not serial:
        return None
    model = _text(disk / "device/model") or _text(disk / "device/name")
    return " ".join(filter(None, (model, serial)))


def _page_80(disk: Path) -> str | None:
    """The serial number of SCSI's vital product data: after a head of four bytes."""
    try:
        page = (disk / "device/vpd_pg80").read_bytes()
    except OSError:
        return None
    return page[4:].decode("ascii", "replace").strip() or None


def _rotation_rate(disk: Path) -> int | None:
    """Of a SCSI or ATA drive, in block device characteristics (page B1h): 1 means none."""
    try:
        page = (disk / "device/vpd_pgb1").read_bytes()
    except OSError:
        return None
    rate = 0
    if len(page) >= 6:
        rate = int.from_bytes(page[4:6], "big")
    if 0x401 <= rate < 0xFFFF:
        return rate
    return None


_BUSES: tuple[tuple[str, str], ...] = (
    (r"session\d+", "iSCSI"),
    (r"rport-.*", "Fibre Channel"),
    (r".*\.ufs(hc)?|ufshcd.*", "UFS"),
    (r"mmc\d+", "MMC"),
    (r"virtio\d+", "virtio"),
)
"""The name of a bus's folder -> interface, of those that state no speed."""


def _link(device: Path) -> tuple[str | None, str | None]:
    """Interface and speed, by the buses that the device's path leads over, the nearest first."""
    for folder in _upwards(device / "device", device):
        if re.fullmatch(r"nvme\d+", folder.name):
            return _nvme_link(folder)
        for pattern, interface in _BUSES:
            if re.fullmatch(pattern, folder.name):
                return interface, None
        if (folder / "busnum").exists() and (folder / "speed").exists():
            return "USB", f"{_text(folder / 'speed')} Mb/s"
        if re.fullmatch(r"ata\d+", folder.name):
            return "SATA", _first_text(folder.glob("link*/ata_link/link*/sata_spd"))
        if folder.name.startswith("end_device-"):
            # A SATA drive behind an expander is translated to SCSI, with this vendor.
            interface = "SAS"
            if _text(device / "device/vendor") == "ATA":
                interface = "SATA"
            rates = folder.parent.glob("phy-*/sas_phy/phy-*/negotiated_linkrate")
            return interface, _first_text(rates)
    return None, None


def _nvme_link(folder: Path) -> tuple[str, str | None]:
    transport = _text(folder / "transport") or "pcie"
    speed = _text(folder / "device/current_link_speed")
    width = _text(folder / "device/current_link_width")
    if speed and width:
        speed = f"{speed} x{width}"
    return f"NVMe over {transport}", speed


def _first_text(files: Iterable[Path]) -> str | None:
    """The contents of the first file by name."""
    ordered = sorted(files)
    if not ordered:
        return None
    return _text(ordered[0])


def _upwards(*starts: Path) -> Iterator[Path]:
    for start in starts:
        folder = start.resolve()
        while folder.name and folder.name != "devices":
            yield folder
            folder = folder.parent


@dataclass(frozen=True)
class NetworkFileSystem:
    """The server behind an NFS mount."""

    server: str
    version: str | None
    link: str | None
    """The interface that its server is reached by, with its speed."""


def network_file_system(mount: Mount, root: Path = Path("/")) -> NetworkFileSystem | None:
    """None if it is not NFS."""
    if mount.filesystem not in ("nfs", "nfs4"):
        return None
    options = dict(option.partition("=")[::2] for option in mount.options.split(","))
    address = options.get("addr")
    interface = None
    if address:
        interface = _interface_to(address, root)
    link = None
    if interface is not None:
        speed = _text(root / "sys/class/net" / interface / "speed")
        link = interface
        if speed and speed.isdigit():
            link = f"{interface} at {speed} Mb/s"
    return NetworkFileSystem(mount.source.partition(":")[0], options.get("vers"), link)


def _interface_to(address: str, root: Path) -> str | None:
    """By the longest prefix in the kernel's routing table; IPv4 only."""
    try:
        wanted = int(ipaddress.IPv4Address(address))
        rows = (root / "proc/net/route").read_text(encoding="ascii").splitlines()[1:]
        columns = [row.split() for row in rows]
        routes = [(_little(row[7]), _little(row[1]), row[0]) for row in columns if len(row) > 7]
    except (OSError, ValueError):
        return None
    fitting = []
    for mask, network, name in routes:
        if wanted & mask == network:
            fitting.append((mask, name))
    if fitting:
        return max(fitting)[1]
    return None


def _little(digits: str) -> int:
    return int.from_bytes(bytes.fromhex(digits), "little")


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "backslashreplace").strip() or None
    except OSError:
        return None
