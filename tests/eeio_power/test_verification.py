"""What meters say about themselves, and the same words in the documentation."""

import re
from pathlib import Path

import pytest

from eeio.machine.as_data import capture
from eeio.report.campaign.verification import verification_notes
from eeio_power.errors import PowerError
from eeio_power.meters import about, about_all, meter_names, verifications

PAGE = Path(__file__).parents[2] / "docs/reference/meters.md"

OWN = """
from eeio_power.meters import Detected, Reads
OPTIONS = {}
VERIFIED_ON = "hardware"
VERIFIED_WITH = "a strip"
MEASURES = "this machine"
READS = Reads((("sys/class/strip/*", "power"),), ("dev/strip*",), ("stripctl",))
def open_meter(spec, options, root): raise OSError
def find(root): return Detected("strip", "measured", ("system",), False)
"""


def test_every_meter_that_measures_says_it_and_the_page_has_the_same() -> None:
    stated = {name: kind.verified_on for name, kind in about_all().items()}
    assert {name for name, how in stated.items() if how is None} == {
        "demo",
        "drive_estimate",
        "modelled",
    }
    rows = re.findall(
        r"^\| `(\w+)[^|]*\|.*\| (\w*)[^|]*\|$",
        PAGE.read_text().partition("## Domains")[0],
        re.MULTILINE,
    )
    known = {name: how for name, how in stated.items() if how is not None}
    assert {name: how for name, how in rows if name in known} == known


def test_each_meter_that_was_verified_on_hardware_names_the_device() -> None:
    text = PAGE.read_text()
    for name, kind in about_all().items():
        assert (kind.verified_on == "hardware") == (kind.verified_with is not None), name
        assert kind.verified_with is None or kind.verified_with in text


def test_a_meter_of_a_user_says_it_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left out: the lists were eeio's own."""
    (tmp_path / "strip.py").write_text(OWN)
    monkeypatch.setenv("EEIO_METERS", str(tmp_path))
    strip = about("strip")
    assert (strip.verified, strip.measures) == ("hardware (a strip)", "this machine")
    assert verifications()["strip"] == strip.verified
    every = capture.read_by_all()
    assert ("sys/class/strip/*", "power") in every.files
    assert "dev/strip*" in every.nodes and "stripctl" in every.programs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('VERIFIED_ON = "nothing"', "VERIFIED_ON is 'nothing', none of simulator, recording"),
        ('MEASURES = "all"', "MEASURES is 'all', none of packages, this machine"),
        ('VERIFIED_ON = "hardware"', "VERIFIED_WITH must name the device"),
    ],
)
def test_what_a_meter_cannot_say_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    (tmp_path / "strip.py").write_text(
        f"OPTIONS = {{}}\n{line}\ndef open_meter(*_): ...\ndef find(_): ...\n"
    )
    monkeypatch.setenv("EEIO_METERS", str(tmp_path))
    with pytest.raises(PowerError, match=message):
        about("strip")


def test_an_unknown_kind_says_nothing() -> None:
    assert "no_meter" not in meter_names() and about("no_meter").verified is None


def test_one_line_for_each_kind_of_verification() -> None:
    assert verification_notes(
        ["rapl", "pmic", "rapl", "demo", "nut", "nvml"], (), verifications()
    ) == [
        "rapl, nut: verified on simulator, not on hardware",
        "pmic: verified on recording, not on hardware",
        "nvml: verified on hardware (NVIDIA H100 80GB HBM3)",
    ]


@pytest.mark.parametrize("meter", ["rapl", "2 nodes: rapl", "rapl0", "plug"])
def test_the_kind_of_a_meter_by_its_name_in_readings(meter: str) -> None:
    specs = ["rapl", "shelly:192.0.2.7,name=plug"]
    assert verification_notes([meter], specs, {"rapl": "x", "shelly": "x"}) == [
        f"{meter}: verified on x, not on hardware"
    ]
    assert verification_notes(["plug"], (), {"shelly": "x"}) == []
