"""eeio-archive: what it makes of its tree, and what is told of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eeio_results import tools
from tests.profiles.harness import Installed

pytestmark = pytest.mark.tools

Installer = Callable[[str], Installed]


@pytest.mark.parametrize("action", ["tar", "untar", "rsync", "zstd"])
def test_a_tree_is_archived_and_copied(installed: Installer, tmp_path: Path, action: str) -> None:
    if action in ("rsync", "zstd") and not shutil.which(action):
        pytest.skip(f"{action} is not installed")
    profile = installed("archive")
    words = {"action": action, "files": "120"}
    script = [f"{key}={value}" for key, value in words.items()]
    assert profile.script("pre.sh", *script).returncode == 0
    scratch = profile.directory / "eeio-scratch"
    tree = {p.name: p.read_bytes() for p in (scratch / "eeio-archive.tree").rglob("*.c")}
    assert len(tree) == 120 and all(1024 <= len(text) < 20 * 1024 for text in tree.values())
    capture = profile.capture(tmp_path / "out", words)
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
    if action in ("untar", "rsync"):
        made = {p.name: p.read_bytes() for p in (scratch / "eeio-archive.out").rglob("*.c")}
        assert made == tree
    # The tree is made once, what came of it is taken away.
    assert profile.script("pre.sh", "action=tar", "files=120").returncode == 0
    again = {p.name: p.read_bytes() for p in scratch.rglob("*.c")}
    assert again == tree
    assert not list(scratch.glob("eeio-archive.tar*"))
    assert profile.script("post.sh").returncode == 0
    assert list(profile.directory.iterdir()) == []


def test_rejected(installed: Installer) -> None:
    profile = installed("archive")
    for words, said in (
        ("action=cp", "action=cp: give one of: tar untar rsync zstd"),
        ("files=0", "files=0: give a whole number from 1 to 1000000"),
        ("flush=end", "flush=end: give one of: none"),
    ):
        done = profile.run(words)
        assert done.returncode == 2 and said in done.stderr
    done = profile.run("action=tar")
    assert done.returncode == 2 and "run pre.sh with these factors first" in done.stderr
    assert list(profile.directory.iterdir()) == []
