"""What `resume` may write over: the drive's contents and file systems of the campaign's start."""

import subprocess
from pathlib import Path

import pytest
from tests.kill.harness import drop_last_runs
from tests.mounts import attached, mounted, sparse
from tests.plugin import Eeio
from tests.waiting import until

from eeio.measure.campaign.safety import TARGETS

pytestmark = pytest.mark.root
RUN = ("run", "dummy-suite", "--meter", "none", "--name", "c", "--repetitions", "1")


def _label(node: Path) -> str:
    command = ["blkid", "-p", "-s", "LABEL", "-o", "value", str(node)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _mkfs(node: Path) -> None:
    """A new file system. A mount namespace that another test made meanwhile keeps the unmounted one
    in use for as long as it exists."""
    command = ["mkfs.ext4", "-q", "-F", "-L", "data", str(node)]
    until(lambda: subprocess.run(command, check=False).returncode == 0)


def test_a_file_system_made_after_the_start_is_not_erased(home: Path, eeio: Eeio) -> None:
    """--lose named the one that was there; a new one may have the same label."""
    with attached(sparse(home / "image", 64 << 20)) as node:
        _mkfs(node)
        eeio(*RUN, "--directory", str(home / "target"), "--device", str(node),
             "--erase", str(node), "--lose", "ext4:data", "--filesystem", "ext4")  # fmt: skip
        drop_last_runs(home, 1, "c")
        eeio("resume", "c")  # over the campaign's own file system
        drop_last_runs(home, 1, "c")
        _mkfs(node)
        done = eeio("resume", "c", code=2)
        assert "which was not there when the campaign began" in done.stderr
        assert "start another campaign with --lose ext4:data" in done.stderr
        assert _label(node) == "data"
        # A campaign of an earlier eeio stored nothing: it may write over its own only.
        (home / "data/eeio/results/c" / TARGETS).unlink()
        assert "not there when" in eeio("resume", "c", code=2).stderr
        assert _label(node) == "data"


def test_another_file_system_below_the_directory_is_noticed(home: Path, eeio: Eeio) -> None:
    with attached(sparse(home / "image", 64 << 20)) as node:
        _mkfs(node)
        with mounted(node, home / "disk"):
            eeio(*RUN, "--directory", str(home / "disk"))
            drop_last_runs(home, 1, "c")
            eeio("resume", "c")
            drop_last_runs(home, 1, "c")
        _mkfs(node)
        (home / "disk").rmdir()
        with mounted(node, home / "disk"):
            done = eeio("resume", "c", code=2)
    assert "is not on the file system that the campaign began on: it was " in done.stderr
