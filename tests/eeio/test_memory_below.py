"""A loop device whose image is in memory, or in this machine's page cache, is no drive."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import mounts
from tests.campaigns import records
from tests.conftest import InProcess
from tests.mounts import sparse
from tests.simulators.tree import write_tree

from eeio.cli import main
from eeio.system import caches
from eeio.system.filesystem import BlockDevice, backing_device, caches_below, why_in_memory

pytestmark = pytest.mark.root
READ = "level=filesystem operation=read spatiality=sequential buffer=off"


@pytest.fixture
def mounted(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An ext4 on a loop image, below the folder that the parameter names."""
    below = Path(tempfile.mkdtemp(dir=request.param or tmp_path))
    image = sparse(below / "image", 64 << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
        with mounts.mounted(image, tmp_path / "mounted", "-o", "loop") as point:
            yield point
    finally:
        shutil.rmtree(below)


def _arguments(target: Path, *more: str) -> list[str]:
    return ["run", "dummy-suite", "--directory", str(target), "--meter", "none", "--name", "c",
            "--idle", "0", "--settle", "0", "--repetitions", "1", *more]  # fmt: skip


def _reasons(home: Path) -> list[str]:
    return ["; ".join(record["phases"][0]["validity"]) for record in records(home)]


@pytest.mark.parametrize("mounted", ["/dev/shm"], indirect=True)
def test_an_image_on_tmpfs_is_rejected(home: Path, mounted: Path, in_process: InProcess) -> None:
    """It was measured as a drive of 4194 MB/s, and valid."""
    output = in_process(*_arguments(mounted), code=2).err
    assert f"{mounted}: the image of /dev/loop" in output and "is on tmpfs" in output
    assert main(_arguments(mounted, "--allow-memory-filesystem")) == 3
    assert all("no storage device was measured" in reason for reason in _reasons(home))


@pytest.mark.parametrize("mounted", ["/dev/shm"], indirect=True)
def test_a_device_below_which_memory_is(home: Path, mounted: Path, in_process: InProcess) -> None:
    device, _ = backing_device(mounted)
    assert device is not None
    arguments = ["run", "dummy-suite", "--device", str(device.node), "--meter", "none"]
    assert f"{device.node}: the image of {device.node}" in in_process(*arguments, code=2).err


@pytest.mark.parametrize("mounted", [""], indirect=True)
def test_reads_of_an_image_that_may_be_cached_are_invalid(
    home: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without root nobody can empty that cache, and direct I/O goes through it as well."""
    device, _ = backing_device(mounted)
    assert device is not None and why_in_memory(device) is None
    subprocess.run(["losetup", "--direct-io=off", str(device.node)], check=True)
    image = caches_below(device)
    assert image is not None and image.endswith("/image")
    assert main(_arguments(mounted)) == 0
    shutil.rmtree(home / "data/eeio/results/c")
    monkeypatch.setattr(caches, "drops_all", lambda: False)
    assert main(_arguments(mounted)) == 3
    reasons = _reasons(home)
    assert [f"the image {image} may be in the page cache" in why for why in sorted(reasons)] == [
        False, True, True,
    ]  # fmt: skip  # one write, two reads


def test_what_is_below_other_devices(tmp_path: Path) -> None:
    sys = tmp_path / "sys/class/block"
    for name, number in (("ram0", "1:0"), ("zram1", "252:1"), ("dm-0", "253:0"), ("sda", "8:0")):
        write_tree(sys / name, {"dev": number})
    (sys / "dm-0/slaves/ram0").mkdir(parents=True)

    def why(name: str) -> str | None:
        return why_in_memory(BlockDevice(name, 1, 0, root=tmp_path))

    assert why("ram0") == why("dm-0") == "/dev/ram0 is a RAM disk"
    assert why("zram1") == "/dev/zram1 is a RAM disk"
    assert why("sda") is None
