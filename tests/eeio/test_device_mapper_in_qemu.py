"""Device mapper and LVM in a guest kernel: which device it is, what uses it, what it counts."""

import json
import re
from pathlib import Path

import pytest
from tests.qemu import guest, marks

import eeio

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk", "dm-mod",
)  # fmt: skip
PROGRAMS = ("wipefs", "dmsetup", "lvm")
GUEST = guest(MODULES, PROGRAMS)
pytestmark = [*marks(GUEST), pytest.mark.root]

SCRIPT = """
import json, mmap, os, subprocess
from dataclasses import astuple
from pathlib import Path
from eeio.errors import RejectedError
from eeio.machine import counters
from eeio.machine.device import ErasedDevice, Permission, check_erasable
from eeio.machine.filesystem import block_device
from eeio.errors import EeioError

LVM = "devices{use_devicesfile=0} activation{udev_sync=0 udev_rules=0 monitoring=0}"

def do(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=-3)
    if done.returncode:
        print("failed:", words, done.stdout, done.stderr)

def create(name, table, *more):
    do("dmsetup", "create", "--noudevsync", name, *more, "--table", table)

def remove(name):
    do("dmsetup", "remove", "--noudevsync", name)

def lvm(command, *words):
    do("lvm", command, "--config", LVM, "--yes", *words)

def told(name, value):
    print("told", json.dumps([name, value]), flush=True)

def case(name, device, *lose):
    try:
        check_erasable(Path(device), Permission(Path(device), lose))
        told(name, "free")
    except RejectedError as error:
        told(name, str(error))

def moved(of, by):
    before = [counters.read_counters(block_device(Path(node))) for node in of]
    descriptor = os.open(by, os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 1 << 20)
    for number in range(8):
        os.pwrite(descriptor, page, number << 20)
    os.close(descriptor)
    after = [counters.read_counters(block_device(Path(node))) for node in of]
    return [late.written_bytes - early.written_bytes for early, late in zip(before, after)]

create("named", "0 65536 linear /dev/vda 0", "--uuid", "TEST-1")
told("identity", block_device(Path("/dev/dm-0")).identity)
told("lies on", counters.lies_on(block_device(Path("/dev/dm-0"))))
told("counted", moved(["/dev/dm-0", "/dev/vda"], "/dev/dm-0"))
held = ErasedDevice(Path("/dev/dm-0"), Permission(Path("/dev/dm-0")), Path("/made"))
held.hold()
case("below a held one", "/dev/vda")
held.release()
remove("named")

for name, more in (("another uuid", ["--uuid", "TEST-2"]), ("no uuid", [])):
    create("named", "0 65536 linear /dev/vda 0", *(["--uuid", "TEST-1"] if more else []))
    held = ErasedDevice(Path("/dev/dm-0"), Permission(Path("/dev/dm-0")), Path("/made"))
    remove("named")
    create("named", "0 65536 linear /dev/vdb 0", *more)
    try:
        held.hold()
        told(name, "held")
    except EeioError as error:
        told(name, str(error))
    held.release()
    remove("named")

lvm("pvcreate", "/dev/vdc")
lvm("vgcreate", "group", "/dev/vdc")
lvm("lvcreate", "-n", "volume", "-L", "32M", "-Wn", "-Zn", "group")
case("active volume", "/dev/mapper/group-volume")
told("identity of a volume", block_device(Path("/dev/mapper/group-volume")).identity)
case("under an active volume", "/dev/vdc", "LVM2_member")
lvm("vgchange", "-an", "group")
case("under an inactive volume", "/dev/vdc")
"""

EXPECTED = {
    "identity": r"TEST-1, 33554432 bytes",
    "lies on": r"dm-0, which is on vda: .*",
    "counted": r"\[8388608, 8388608\]",
    "below a held one": r"/dev/vda is used by dm-0.*",
    "another uuid": r".*is no longer the device that the campaign began on.*",
    "no uuid": r".*is no longer the device that the campaign began on.*",
    "active volume": "free",
    "identity of a volume": r"LVM-\w{64}, 33554432 bytes",
    "under an active volume": r"/dev/vdc is used by dm-0.*",
    "under an inactive volume": r"/dev/vdc .* contains LVM2_member.*",
}


def test_device_mapper_is_known_guarded_and_counted(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    disks = [tmp_path / f"vd{letter}" for letter in "abc"]
    for disk in disks:
        with disk.open("wb") as file:
            file.truncate(64 << 20)
    message = GUEST.run(
        tmp_path, SCRIPT, modules=MODULES, programs=PROGRAMS,
        packages=[Path(str(eeio.__file__)).parent],
        devices=[
            word for disk in disks
            for word in (
                "-drive", f"file={disk},format=raw,if=none,id={disk.name}",
                "-device", f"virtio-blk-pci,drive={disk.name},serial=SERIAL-{disk.name}",
            )
        ],
    )  # fmt: skip
    reported = dict(json.loads(found) for found in re.findall(r"told (\[.*\])", message))
    assert list(reported) == list(EXPECTED), message
    wrong = {
        name: reported[name]
        for name, expected in EXPECTED.items()
        if re.fullmatch(expected, str(reported[name])) is None
    }
    assert not wrong, message
    assert "failed:" not in message
