"""dm-crypt and f2fs, which this machine's kernel may lack, in a guest kernel."""

import json
import re
from pathlib import Path

import pytest
from tests.qemu import PACKAGES, guest, marks

MODULES = (
    "virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4", "loop",
    "dm-mod", "ecb", "xts", "dm-crypt", "crc32_generic", "lz4_compress", "lz4hc_compress",
    "zstd_compress", "f2fs",
)  # fmt: skip
PROGRAMS = ("mount", "umount", "losetup", "fallocate", "mkfs.ext4", "mkfs.f2fs", "cryptsetup")
GUEST = guest(MODULES, PROGRAMS)
pytestmark = [*marks(GUEST), pytest.mark.root]

SCRIPT = """
import json, os, subprocess
from pathlib import Path
os.environ["XDG_STATE_HOME"] = "/run/state"
from eeio.measure.campaign import volumes
from eeio.machine import image, counters, caches
from eeio.machine.undo import UndoJournal
from eeio.machine.filesystem import mount_of

def tell(name, value):
    print("case", json.dumps([name, value]), flush=True)

print()  # after what the firmware has said
target = Path("/run/disk")
target.mkdir()
subprocess.run(["mkfs.ext4", "-q", "/dev/vda"], check=True)
subprocess.run(["mount", "-t", "ext4", "/dev/vda", "/run/disk"], check=True)
(target / "lost+found").rmdir()
journal = UndoJournal(Path("/run/journal.json"))
for name in ("ext4+dmcrypt", "f2fs"):
    try:
        image.check(name)
        made = image.make_on_loop(name, target, 64 << 20, journal)
        volume = volumes.describe(made.mount_point, made.how, made.served)
        before = counters.read_counters(volume.device)
        text = b"plain text " * 100_000
        (volume.directory / "file").write_bytes(text)
        synced = caches.flush(volume.directory, None)
        after = counters.read_counters(volume.device)
        os.sync()
        tell(name, {
            "kind": mount_of(volume.directory).filesystem, "how": volume.mkfs,
            "device": volume.device.name, "on": counters.lies_on(volume.device),
            "share": (after.written_bytes - before.written_bytes) / len(text),
            "plain": b"plain text plain text" in (target / f"eeio-{name}.img").read_bytes(),
            "sync": synced.error,
        })
    finally:
        tell("undone", [entry.kind for entry in reversed(journal.entries)])
        tell("left", journal.undo_all())
        tell("there", sorted(os.listdir(target)) + [
            name for name in os.listdir("/dev/mapper") if name != "control"])
"""


def test_encrypted_blocks_and_another_file_system(tmp_path: Path) -> None:
    assert not isinstance(GUEST, str)
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(1 << 30)
    message = GUEST.run(
        tmp_path / "guest", SCRIPT, modules=MODULES, programs=PROGRAMS,
        packages=PACKAGES,
        devices=["-drive", f"file={disk},format=raw,if=virtio"],
    )  # fmt: skip
    cases = [json.loads(one) for one in re.findall(r"^case (\[.*\])\r?$", message, re.MULTILINE)]
    names = [name for name, _ in cases]
    assert names == ["ext4+dmcrypt", "undone", "left", "there", "f2fs", "undone", "left", "there"]
    crypt, undone, left, there, f2fs, *rest = [value for _, value in cases]
    assert crypt["kind"] == "ext4" and crypt["device"].startswith("dm-") and crypt["on"] is None
    assert "cryptsetup open --type plain" in crypt["how"]
    assert crypt["plain"] is False and 0.99 <= crypt["share"] < 1.5 and crypt["sync"] is None
    assert undone == ["mount", "mapping", "loop", "directory", "file"]
    assert f2fs["kind"] == "f2fs" and f2fs["plain"] is True and 0.99 <= f2fs["share"] < 1.5
    assert left == [] and there == [] and rest[1:] == [[], []]
