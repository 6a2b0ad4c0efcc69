"""What eeio does because it may run in a container."""

import os
from pathlib import Path

import pytest
from tests.plugin import Eeio

from eeio.machine import caches
from eeio.machine.filesystem import WITHOUT_STORAGE, block_device


def test_another_file_may_drop_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EEIO_DROP_CACHES", raising=False)
    assert caches.drop_file() == Path("/proc/sys/vm/drop_caches")
    monkeypatch.setenv("EEIO_DROP_CACHES", "/drop_caches")
    assert caches.drop_file() == Path("/drop_caches")


def test_doctor_can_fail(home: Path, eeio: Eeio) -> None:
    # No profile is installed for this user.
    eeio("doctor", "--format", "json")
    eeio("doctor", "--format", "json", "--require", "tool", code=1)
    eeio("doctor", "--require", "csv", code=1)
    eeio("doctor", "--require", "modelled")
    assert "luck" in eeio("doctor", "--require", "modelled,luck", code=2).stderr


@pytest.mark.parametrize("layered", ["overlay", "fuse.fuse-overlayfs", "aufs"])
def test_layers_of_an_image_are_no_storage(layered: str) -> None:
    assert layered in WITHOUT_STORAGE


def test_devices_are_found_without_sys_dev_block() -> None:
    nodes = [Path("/dev") / folder.name for folder in Path("/sys/class/block").iterdir()]
    found = [node for node in nodes if node.is_block_device()]
    if not found:
        pytest.skip("no block device here")
    device = block_device(found[0])
    assert device is not None
    number = found[0].stat().st_rdev
    assert (device.major, device.minor) == (os.major(number), os.minor(number))
    assert (device.sysfs / "stat").is_file()
