"""Room for the files of all profiles on a volume, as each profile states it."""

import re
from pathlib import Path

import pytest

from eeio.measure.campaign import plan
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options

LMBENCH = profiles.find("eeio-lmbench-1.0.0")


@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
def test_an_image_has_the_room_that_each_profile_states(tmp_path: Path, preset: str) -> None:
    """An image that was sized for fio's file only made all runs of lmbench fail."""
    options = Options(
        preset=preset, device=None, seed=1, directory=str(tmp_path), filesystems=("ext4",)
    )
    made = plan.make(options, suites.find("eeio-pavan2018"))
    others = sum(size for (_, profile), size in made.files.items() if profile != LMBENCH.identifier)
    assert made.room_bytes("ext4") == others + (1 << 30)


def test_lmbench_states_the_room_that_it_requires() -> None:
    required = re.search(r"^needed=(\d+)$", (LMBENCH.folder / "pre.sh").read_text(), re.MULTILINE)
    assert required is not None
    for preset in LMBENCH.presets:
        stated = suites.size_of("lmbench", "room", LMBENCH.preset(preset)["room"])
        assert stated == int(required[1])
