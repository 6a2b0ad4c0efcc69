"""What meters were verified on: the table, and the same words in the documentation."""

import re
from pathlib import Path

from eeio_limits.verified import MODELS, VERIFIED_ON, verified_note, verified_on
from eeio_power.meters import meter_names

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "meters.md"


def test_every_meter_that_measures_has_an_entry_and_the_page_has_the_same() -> None:
    assert set(VERIFIED_ON) == set(meter_names()) - {"demo", "modelled"}
    rows = re.findall(
        r"^\| `(\w+)[^|]*\|.*\| (\w*)[^|]*\|$",
        PAGE.read_text().partition("## Domains")[0],
        re.MULTILINE,
    )
    reported = {name: how for name, how in rows if name in VERIFIED_ON}
    assert reported == dict(VERIFIED_ON)


def test_the_kind_of_a_meter_by_its_name_in_readings() -> None:
    assert verified_on("rapl") == verified_on("2 nodes: rapl") == verified_on("nvme0")
    assert verified_on("plug") is None and verified_on("demo") is None
    assert verified_on("plug", ["rapl", "shelly:192.0.2.7,name=plug"]) == "simulator"


def test_one_line_for_each_kind_of_verification() -> None:
    assert verified_note(["rapl", "pmic", "rapl", "demo", "nut", "nvml"]) == [
        "rapl, nut: verified on simulator, not on hardware",
        "pmic: verified on recording, not on hardware",
        "nvml: verified on hardware (NVIDIA H100 80GB HBM3)",
    ]


def test_each_meter_that_was_verified_on_hardware_names_the_device() -> None:
    on_hardware = {name for name, how in VERIFIED_ON.items() if how == "hardware"}
    assert set(MODELS) == on_hardware
    text = PAGE.read_text()
    assert all(model in text for model in MODELS.values())
