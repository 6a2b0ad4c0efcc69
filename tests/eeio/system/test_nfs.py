"""NFS made for a campaign: what its words mean, what is refused, and NFS-Ganesha as its server."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from eeio.errors import RejectedError
from eeio.machine import image, nfs
from eeio.machine.undo import UndoJournal

root = pytest.mark.root


@pytest.mark.parametrize(
    ("name", "rate", "delay_s"),
    [("nfs", None, None), ("nfs@1gbit", "1gbit", None), ("nfs@0.5ms", None, 0.0005),
     ("nfs@100mbit+200us", "100mbit", 0.0002)],
)  # fmt: skip
def test_what_the_arguments_mean(name: str, rate: str | None, delay_s: float | None) -> None:
    link = nfs.link_of(name)
    assert (link.rate, link.delay_s) == (rate, pytest.approx(delay_s))


def test_each_end_of_the_cable_has_half_of_the_delay() -> None:
    arguments = nfs.shaping(nfs.link_of("nfs@1gbit+0.5ms"))
    assert arguments[:1] == ["netem"] and arguments[-4:] == ["delay", "250us", "rate", "1gbit"]
    assert nfs.shaping(nfs.link_of("nfs")) == []


@pytest.mark.parametrize(
    "name", ["nfs@", "nfs@fast", "nfs@1gbit+1gbit", "nfs@1ms+1gbit", "nfs@0ms", "nfs@-1ms",
              "nfs@1gbit+", "nfs@1gbit+1ms+1ms", "nfs@1;reboot", "nfs@99999gbit"],
)  # fmt: skip
def test_other_arguments_are_rejected(name: str) -> None:
    with pytest.raises(RejectedError, match=r"nfs@RATE\+DELAY"):
        image.check(name)


def test_a_server_that_is_not_here_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RejectedError, match=r"nfs-kernel-server.*nfs-ganesha-vfs"):
        nfs.server()
    monkeypatch.setenv("EEIO_NFS_SERVER", "samba")
    with pytest.raises(RejectedError, match="kernel or ganesha"):
        nfs.server()


@root
def test_ganesha_serves_a_folder_over_the_cable(tmp_path: Path) -> None:
    """Read by a client in user space: a kernel's is not everywhere."""
    for program in ("ganesha.nfsd", "nfs-cp", "ip", "tc", "nsenter", "unshare", "ss"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    # Of a file system that has handles, as those that are made for a campaign.
    journal = UndoJournal(tmp_path / "journal.json")
    made = image.make_on_loop("ext4", tmp_path, 64 << 20, journal)
    data = os.urandom(8 << 20)
    (made.mount_point / "folder").mkdir()
    (made.mount_point / "folder/data").write_bytes(data)
    try:
        client = nfs.export("nfs@80mbit", made.mount_point, "ganesha", journal)
        url = f"nfs://{nfs.SERVER}/folder/data?version=4"
        began_s = time.monotonic()
        subprocess.run(
            ["nsenter", f"--net=/run/netns/{client}", "nfs-cp", url, str(tmp_path / "read")],
            check=True, timeout=300,
        )  # fmt: skip
        taken_s = time.monotonic() - began_s
        assert (tmp_path / "read").read_bytes() == data
        assert taken_s > 0.9 * len(data) / 10e6  # no faster than the cable
    finally:
        namespaces = {e.subject for e in journal.entries if e.kind == "namespace"}
        assert journal.undo_all() == []
    assert not [path for path in Path("/run/netns").iterdir() if path.name in namespaces]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["read"]
