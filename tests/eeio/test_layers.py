"""Layers of a file system made for a campaign: mount options, encryption, overlayfs."""

import os
from pathlib import Path

import pytest

from eeio.errors import RejectedError
from eeio.machine import caches, counters, image
from eeio.machine.filesystem import mount_of, mounts
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign import volumes

pytestmark = pytest.mark.root
MIB = 1 << 20


@pytest.mark.parametrize(
    ("name", "kind", "option", "least", "most"),
    [
        ("ext4+journal", "ext4", "data=journal", 2.0, 2.3),
        ("ext4+fscrypt", "ext4", "", 1.0, 1.3),
        ("ext4+overlay", "overlay", "upperdir=upper", 1.0, 1.3),
        ("btrfs+zstd", "btrfs", "compress=zstd", 0.45, 0.7),
    ],
)
def test_a_layer_is_used_counted_and_taken_away(
    tmp_path: Path, name: str, kind: str, option: str, least: float, most: float
) -> None:
    image.check(name)
    journal = UndoJournal(tmp_path / "journal.json")
    target = tmp_path / "with, a comma: and a colon"
    target.mkdir()
    try:
        made = image.make_on_loop(name, target, 64 * MIB, journal)
        volume = volumes.describe(made.mount_point, made.how, made.served)
        mount = mount_of(volume.directory)
        assert mount.filesystem == kind
        lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
        assert any(option in line.split()[3] for line in lines if str(target.name[-5:]) in line)
        assert volume.device is not None and volume.device.name.startswith("loop")
        assert volume.memory is None
        scratch = volume.directory / "eeio-scratch"
        scratch.mkdir()
        half = b"".join(os.urandom(2048) + bytes(2048) for _ in range(16 * MIB // 4096))
        shares = []
        # On a busy machine the kernel may write back single pages, which zstd makes no shorter.
        while len(shares) < 5 and not (shares and least <= shares[-1] <= most):
            (scratch / "file").unlink(missing_ok=True)
            assert caches.flush(volume.directory, None).error is None
            before = counters.read_counters(volume.device)
            (scratch / "file").write_bytes(half)
            assert caches.flush(volume.directory, None).error is None
            after = counters.read_counters(volume.device)
            shares.append((after.written_bytes - before.written_bytes) / len(half))
        assert least <= shares[-1] <= most, shares
        assert (scratch / "file").read_bytes() == half
    finally:
        failures = journal.undo_all()
    assert failures == []
    assert list(target.iterdir()) == []
    assert not any(target in mount.mount_point.parents for mount in mounts())


def test_what_the_kernel_lacks_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_in_kernel", lambda module: module not in ("f2fs", "dm_crypt"))
    with pytest.raises(RejectedError, match="--filesystem f2fs: this kernel has no f2fs"):
        image.check("f2fs")
    with pytest.raises(RejectedError, match=r"ext4\+dmcrypt: this kernel has no dm_crypt"):
        image.check("ext4+dmcrypt")
    image.check("ext4+overlay")
    with pytest.raises(RejectedError, match="eeio makes ext4, "):
        image.check("ext4+nothing")
