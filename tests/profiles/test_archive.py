"""eeio-archive: what it makes of its tree, and what is told of it."""

import os
import shutil
from pathlib import Path

import pytest

from eeio.machine import caches, counters, image
from eeio.machine.undo import UndoJournal
from eeio.measure.campaign import volumes
from eeio.record import tools
from tests.profiles.harness import Installer

pytestmark = pytest.mark.tools


@pytest.mark.parametrize("action", ["tar", "untar", "rsync", "zstd", "copy"])
def test_a_tree_is_archived_and_copied(installed: Installer, tmp_path: Path, action: str) -> None:
    if action in ("rsync", "zstd") and not shutil.which(action):
        pytest.skip(f"{action} is not installed")
    profile = installed("archive")
    factors = {"action": action, "files": "120"}
    script = [f"{key}={value}" for key, value in factors.items()]
    profile.script("pre.sh", *script)
    scratch = profile.directory / "eeio-scratch"
    tree = {p.name: p.read_bytes() for p in (scratch / "eeio-archive.tree").rglob("*.c")}
    assert len(tree) == 120 and all(1024 <= len(text) < 20 * 1024 for text in tree.values())
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("archive", capture)
    (phase,) = result.phases
    size = sum(map(len, tree.values()))
    assert (phase.operation, phase.bytes_moved, phase.invalid) == ("mixed", size, ())
    assert phase.start_s is not None and phase.end_s is not None
    assert phase.metrics["operations"] == 120
    rate = 120 / (phase.end_s - phase.start_s)
    assert phase.metrics["operations_per_s"] == pytest.approx(rate, rel=1e-6)
    # It compresses, as source does.
    assert (phase.metrics["out_bytes"] < size / 3) is (action == "zstd")
    assert result.notes[0].startswith("tar ")
    if action in ("untar", "rsync", "copy"):
        made = {p.name: p.read_bytes() for p in (scratch / "eeio-archive.out").rglob("*.c")}
        assert made == tree
    # The tree is made once, what came of it is taken away.
    profile.script("pre.sh", "action=tar", "files=120")
    again = {p.name: p.read_bytes() for p in scratch.rglob("*.c")}
    assert again == tree
    assert not list(scratch.glob("eeio-archive.tar*"))
    profile.clean_up()


def test_rejected(installed: Installer) -> None:
    profile = installed("archive")
    for arguments, message in (
        ("action=cp", "action=cp: give one of: tar untar rsync zstd copy"),
        ("copy=reflink", "copy=reflink: only with action=copy"),
        ("files=0", "files=0: give a whole number from 1 to 1000000"),
        ("flush=end", "flush=end: give one of: none"),
    ):
        assert message in profile.run(arguments, code=2).stderr
    assert "run pre.sh with these factors first" in profile.run("action=tar", code=2).stderr
    assert list(profile.directory.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["xfs", "btrfs"])
def test_reflinks_share_the_data(installed: Installer, tmp_path: Path, filesystem: str) -> None:
    image.check(filesystem)
    profile = installed("archive")
    journal = UndoJournal(tmp_path / "journal.json")
    written, phases = {}, {}
    try:
        made = image.make_on_loop(filesystem, profile.directory, 64 << 20, journal)
        volume = volumes.describe(made.mount_point, made.how, made.served)
        assert volume.device is not None
        profile.environment["EEIO_DIRECTORY"] = str(volume.directory)
        for copy in ("data", "reflink"):
            factors = {"action": "copy", "copy": copy, "files": "1000"}
            script = [f"{key}={value}" for key, value in factors.items()]
            profile.script("pre.sh", *script)
            assert caches.flush(volume.directory, None).error is None
            before = counters.read_counters(volume.device)
            capture = profile.capture(tmp_path / copy, factors)
            assert caches.flush(volume.directory, None).error is None
            after = counters.read_counters(volume.device)
            assert capture.exit_code == 0, capture.text("stderr.txt")
            written[copy] = after.written_bytes - before.written_bytes
            (phases[copy],) = tools.parse("archive", capture).phases
            scratch = volume.directory / "eeio-scratch"
            tree, out = (
                {p.name: p.read_bytes() for p in (scratch / f"eeio-archive.{name}").rglob("*.c")}
                for name in ("tree", "out")
            )
            assert tree == out and len(tree) == 1000
    finally:
        failures = journal.undo_all()
    assert failures == []
    size = sum(map(len, tree.values()))
    data, shared = phases["data"], phases["reflink"]
    assert data.bytes_moved == size and data.invalid == shared.invalid == ()
    assert (shared.operation, shared.spatiality) == ("metadata", "none")
    assert (shared.bytes_moved, shared.bandwidth_bytes_per_s) == (0, None)
    assert shared.metrics["shared_bytes"] == size and shared.metrics["operations"] == 1000
    # What is written for reflinks is inodes, extents and their reference counts, by btrfs twice.
    share = {"xfs": 0.25, "btrfs": 0.4}[filesystem]
    assert written["data"] > size and written["reflink"] < share * written["data"], written


def test_reflinks_require_a_file_system_with_them(installed: Installer) -> None:
    profile = installed("archive")
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        pytest.skip("no tmpfs here")
    folder = shared / f"eeio-test-{os.getpid()}"
    profile.environment["EEIO_DIRECTORY"] = str(folder)
    try:
        done = profile.script("pre.sh", "action=copy", "copy=reflink", "files=10", code=2)
        assert done.stderr.count("\n") == 1
        assert "no reflinks in the file system of" in done.stderr
        assert list((folder / "eeio-scratch").iterdir()) == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
