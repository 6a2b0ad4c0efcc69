"""Disks of a guest, as the machines of others have them: partitions, RAID, device mapper, swap.

What may be written is asked inside a guest kernel; nothing may change on any of its disks.
"""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.qemu import guest, marks

import eeio

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4", "md-mod",
    "raid1", "dm-mod",
)  # fmt: skip
PROGRAMS = ("wipefs", "mdadm", "dmsetup", "mkfs.ext4", "mkswap")
GUEST = guest(MODULES, (*PROGRAMS, "sfdisk"))
pytestmark = [*marks(GUEST), pytest.mark.root]

# In the guest: /dev/vda has two partitions, ext4 (label DATA) and one without anything; vdb and vdc
# are empty, vdd too.
SCRIPT = """
import json, subprocess, sys
from pathlib import Path
from eeio.errors import RejectedError
from eeio.machine.device import Permission, check_erasable

def do(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, stdin=-3)
    if done.returncode:
        print("failed:", words, done.stdout, done.stderr)

def case(name, device, *lose):
    try:
        check_erasable(Path(device), Permission(Path(device), lose))
        verdict = "free"
    except RejectedError as error:
        verdict = str(error)
    print("case", json.dumps([name, device, verdict]), flush=True)

case("partition table", "/dev/vda")
case("table named, partition not", "/dev/vda", "gpt")
case("all named", "/dev/vda", "gpt", "ext4:DATA")
case("empty partition", "/dev/vda2")
case("file system unnamed", "/dev/vda1")
case("another label named", "/dev/vda1", "ext4:OTHER")
do("/busybox", "mount", "-t", "ext4", "/dev/vda1", "/mnt")
case("disk of a mounted partition", "/dev/vda", "gpt", "ext4:DATA")
case("mounted partition", "/dev/vda1", "ext4:DATA")
case("beside a mounted partition", "/dev/vda2")
do("/busybox", "umount", "/mnt")
do("/busybox", "swapon", "/dev/vde")
case("swap", "/dev/vde", "swap:SWAP")
do("/busybox", "swapoff", "/dev/vde")
do("mdadm", "--create", "/dev/md0", "--level=1", "--raid-devices=2", "--metadata=1.2", "--run",
   "--assume-clean", "/dev/vdb", "/dev/vdc")
case("half of a mirror", "/dev/vdb", "linux_raid_member")
case("the mirror itself", "/dev/md0")
do("mkfs.ext4", "-q", "-L", "MIRROR", "/dev/md0")
do("/busybox", "mount", "-t", "ext4", "/dev/md0", "/mnt")
case("half of a mounted mirror", "/dev/vdc")
case("a mounted mirror", "/dev/md0", "ext4:MIRROR")
do("/busybox", "umount", "/mnt")
do("mdadm", "--stop", "/dev/md0")
case("half of a stopped mirror", "/dev/vdb")
do("dmsetup", "create", "--noudevsync", "linear", "--table", "0 8192 linear /dev/vdd 0")
case("under device mapper", "/dev/vdd")
case("device mapper itself", "/dev/dm-0")
do("dmsetup", "remove", "--noudevsync", "linear")
case("free again", "/dev/vdd")
"""

EXPECTED = {
    "partition table": "contains gpt",
    "table named, partition not": "--lose ext4:DATA",
    "all named": "free",
    "empty partition": "free",
    "file system unnamed": "--lose ext4:DATA",
    "another label named": "--lose ext4:DATA",
    "disk of a mounted partition": "/dev/vda1 is mounted at /mnt",
    "mounted partition": "/dev/vda1 is mounted at /mnt",
    "beside a mounted partition": "free",
    "swap": "/dev/vde is swap space",
    "half of a mirror": "/dev/vdb is used by md0",
    "the mirror itself": "free",
    "half of a mounted mirror": "/dev/vdc is used by md0",
    "a mounted mirror": "/dev/md0 is mounted at /mnt",
    "half of a stopped mirror": "contains linux_raid_member",
    "under device mapper": "/dev/vdd is used by dm-0",
    "device mapper itself": "free",
    "free again": "free",
}


def test_what_may_be_written_on_a_machine_with_disks(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    disks = [tmp_path / f"vd{letter}" for letter in "abcde"]
    for disk in disks:
        with disk.open("wb") as file:
            file.truncate(64 << 20)
    subprocess.run(
        ["sfdisk", "--quiet", str(disks[0])], input="label: gpt\nsize=32M\nsize=16M\n", text=True,
        check=True, timeout=300,
    )  # fmt: skip
    file_system = tmp_path / "partition"
    with file_system.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-L", "DATA", str(file_system)], check=True, timeout=300)
    with disks[0].open("r+b") as file:
        file.seek(1 << 20)
        file.write(file_system.read_bytes())
    subprocess.run(
        ["mkswap", "-q", "-L", "SWAP", str(disks[4])], check=True, timeout=300, capture_output=True
    )
    before = hashlib.sha256(disks[3].read_bytes()).hexdigest()
    message = GUEST.run(
        tmp_path, SCRIPT, modules=MODULES, programs=PROGRAMS,
        packages=[Path(str(eeio.__file__)).parent],
        devices=[
            word for disk in disks
            for word in ("-drive", f"file={disk},format=raw,if=virtio,cache=writethrough")
        ],
    )  # fmt: skip
    # The firmware's last words have no line of their own.
    cases = [json.loads(found) for found in re.findall(r"case (\[.*\])", message)]
    assert [name for name, _, _ in cases] == list(EXPECTED), message
    wrong = [case for case in cases if EXPECTED[case[0]] not in case[2]]
    assert not wrong, message
    assert "failed:" not in message
    # Nobody wrote to this one but the device mapper's owner, who wrote nothing.
    assert hashlib.sha256(disks[3].read_bytes()).hexdigest() == before
