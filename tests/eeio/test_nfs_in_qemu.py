"""A file system served by NFS to the machine itself, by the kernel's own server and client."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.qemu import PACKAGES, guest, marks

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk",
    "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4", "loop", "veth", "sch_netem",
    "sch_tbf", "sunrpc", "auth_rpcgss", "grace", "lockd", "nfs_acl", "nfsd", "dns_resolver",
    "netfs", "fscache", "nfs", "nfsv4",
)  # fmt: skip
PROGRAMS = (
    "ip", "tc", "nsenter", "unshare", "mount", "umount", "mount.nfs4", "rpc.nfsd", "rpc.mountd",
    "exportfs", "losetup", "fallocate", "mkfs.ext4",
)  # fmt: skip
GUEST = guest(MODULES, PROGRAMS)
pytestmark = [*marks(GUEST), pytest.mark.root]
SIZE = 16 << 20

SCRIPT = """
import json, os, subprocess, time
from pathlib import Path
for name in ("mkdir", "cat", "sleep", "sh"):
    if not os.path.exists(f"/bin/{name}"):
        os.symlink("/busybox", f"/bin/{name}")
for folder in ("/sbin", "/var/lib/nfs", "/root"):
    os.makedirs(folder, exist_ok=True)
os.symlink("/usr/bin/mount.nfs4", "/sbin/mount.nfs4")
os.environ["XDG_STATE_HOME"] = "/run/state"
from eeio.measure.campaign import volumes
from eeio.machine import image, nfs, counters, caches
from eeio.machine.undo import UndoJournal
from eeio.machine.filesystem import mount_of

def tell(name, value):
    print("case", json.dumps([name, value]), flush=True)

print()  # after what the firmware has said
target = Path("/run/disk")
target.mkdir()
subprocess.run(["mount", "-t", "ext4", "/dev/vda", "/run/disk"], check=True)
os.makedirs("/run/netns")
journal = UndoJournal(Path("/run/journal.json"))
for name in ("nfs@80mbit", "nfs@1gbit+40ms"):
    try:
        image.check(name)
        made = image.make_on_loop(name, target, 64 << 20, journal)
        volume = volumes.describe(made.mount_point, made.how, made.served)
        scratch = volume.directory / "eeio-scratch"
        scratch.mkdir()
        before = counters.read_counters(volume.device)
        began = time.monotonic()
        (scratch / "file").write_bytes(os.urandom(16 << 20))
        synced = caches.flush(volume.directory, None)
        written_s = time.monotonic() - began
        after = counters.read_counters(volume.device)
        found, reason = caches.drop(volume.test_files, None)
        began = time.monotonic()
        data = (scratch / "file").read_bytes()
        read_s = time.monotonic() - began
        again = counters.read_counters(volume.device)
        began = time.monotonic()
        (scratch / "second").touch()
        os.sync()
        tell(name, {
            "kind": mount_of(volume.directory).filesystem, "how": volume.mkfs,
            "device": volume.device.name, "files": sorted(str(p) for p in volume.test_files),
            "written": after.written_bytes - before.written_bytes, "sync": synced.error,
            "read": again.read_bytes - after.read_bytes, "dropped": found, "reason": reason,
            "same": len(data), "written_s": written_s, "read_s": read_s,
            "create_s": time.monotonic() - began,
        })
    finally:
        tell("undone", [entry.kind for entry in reversed(journal.entries)])
        tell("left", journal.undo_all())
        tell("there", [sorted(os.listdir(target)), sorted(os.listdir("/run/netns")),
                       Path("/proc/mounts").read_text(errors="replace").count("nfs")])

# A server that is gone before its client: nothing may hang.
made = image.make_on_loop("nfs", target, 64 << 20, journal)
(made.mount_point / "file").write_bytes(b"x" * 4096)
for entry in journal.entries:
    if entry.kind == "process":
        os.killpg(int(entry.subject), 9)
namespace = next(e.subject for e in journal.entries if e.subject.endswith("-s"))
subprocess.run(["ip", "-n", namespace, "link", "set", "eeio0", "down"], check=True)
tell("server gone", journal.undo_all())
tell("there", [sorted(os.listdir(target)), sorted(os.listdir("/run/netns")), 0])
"""


def test_linux_serves_itself(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(2 << 30)
    subprocess.run(["mkfs.ext4", "-q", str(disk)], check=True, timeout=300)
    message = GUEST.run(
        tmp_path, SCRIPT, modules=MODULES, programs=PROGRAMS,
        packages=PACKAGES,
        files=[(Path(name), name[1:]) for name in
               ("/etc/netconfig", "/etc/services", "/etc/protocols", "/etc/mke2fs.conf")
               if Path(name).exists()],
        devices=["-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"],
    )  # fmt: skip
    reported = [json.loads(line[5:]) for line in message.splitlines() if line.startswith("case ")]
    assert "ended with 0" in message
    volumes = {name: value for name, value in reported if name.startswith("nfs")}
    assert list(volumes) == ["nfs@80mbit", "nfs@1gbit+40ms"]
    for name, of in volumes.items():
        assert of["kind"] == "nfs4" and of["device"].startswith("loop")
        assert of["how"].startswith("mkfs.ext4 ") and "served by Linux 6." in of["how"]
        # Both sides' pages: the client's and, of the same files, the server's.
        assert [path.partition("/eeio-scratch/")[0] for path in of["files"]] == [
            f"/run/disk/eeio-{name}.served", f"/run/disk/eeio-{name}.served",
            f"/run/disk/eeio-{name}", f"/run/disk/eeio-{name}",
        ]  # fmt: skip
        assert of["sync"] is None and of["reason"] is None
        assert of["dropped"].startswith("dropped complete page cache; 0 of ")
        # What was written is on the server's device, and is read from it.
        assert SIZE <= of["written"] < 1.1 * SIZE
        assert of["same"] == SIZE and SIZE <= of["read"] < 1.1 * SIZE
    # No faster than the cable: its rate, and half of the round trip's delay each way.
    slow, far = volumes["nfs@80mbit"], volumes["nfs@1gbit+40ms"]
    assert min(slow["written_s"], slow["read_s"]) > 0.9 * SIZE / 10e6
    assert far["create_s"] > 2 * 0.040
    assert "80mbit, no delay added" in slow["how"] and "1gbit, 40 ms a round trip" in far["how"]
    undone = [value for name, value in reported if name == "undone"]
    assert undone == [["mount", "process", "namespace", "namespace", "directory", "mount",
                       "loop", "directory", "file"]] * 2  # fmt: skip
    assert [value for name, value in reported if name in ("left", "server gone")] == [[]] * 3
    there = [value for name, value in reported if name == "there"]
    assert there == [[["lost+found"], [], 0]] * 3
