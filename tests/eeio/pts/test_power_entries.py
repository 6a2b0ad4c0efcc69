"""The entries that power adds to a result file of PTS."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.eeio_results.made import EXPERIMENT, energy, phase

from eeio.analysis.observation import observed
from eeio.pts.session import Entries, Measured
from eeio.record.energy_reading import EnergyReading
from eeio.units.number_text import pts_number

READING = energy(20.0, domain="package")
SOURCE = {"meter": "meter", "domain": "package", "kind": "measured"}
UNREAD = Measured((READING,), None, "no eeio")


def read(*labels: tuple[str, float | None]) -> Measured:
    """A trial whose phases of these labels have this bandwidth, MB/s, at 20 W."""
    phases = {
        label: phase(1e6 * (rate or 1.0), (READING,), () if rate else ("as the tool says",))
        for label, rate in labels
    }
    return Measured((READING,), {k: observed(EXPERIMENT, one) for k, one in phases.items()})


def made(trials: Sequence[Measured], bandwidths: int = 1, failed: int = 0) -> dict[str, Any]:
    results = [
        {"hash": "h", "title": "t", "description": "Test - Random Read", "scale": "MB/s",
         "values": [[0, "50"], [1, "60"]]},
        {"hash": "i", "title": "t", "description": "Test - Write", "scale": "MB/s", "values": []},
    ]  # fmt: skip
    described = [
        {"order": k, "start_s": 1.0, "duration_s": 2.0, "failed": k >= len(trials) - failed}
        for k in range(len(trials))
    ]
    experiment = {"name": "e", "arguments": "a=1", "description": "Test", "trials": described}
    return Entries({**experiment, "results": results[:bandwidths]}, list(trials)).to_json()


def efficiencies(body: dict[str, Any]) -> list[str]:
    return [v for entry in body["entries"] if entry["scale"] == "MB/J" for v in entry["values"]]


def reasons(body: dict[str, Any]) -> list[str]:
    return [line.partition(": ")[2] for _, line in body["annotations"]]


def test_of_several_bandwidths_only_what_was_reported_has_an_efficiency() -> None:
    of_trial = read(("Read", 20.0), ("Random Read", 40.0))
    several = made([of_trial, UNREAD], 2)
    assert efficiencies(several) == ["2.00000"]
    assert "none of theirs (no eeio)" in reasons(several)[0]
    alone = made([UNREAD, UNREAD])
    assert efficiencies(alone) == ["2.50000", "3.00000"] and alone["annotations"] == []
    none = made([read(("Random Read", None)), read()])
    assert efficiencies(none) == []
    assert reasons(none) == ["as the tool says"]
    assert reasons(made([read(), read()])) == [
        "no phase of the trial has exactly this bandwidth, and the power covers all its I/O"
    ]


def test_a_phase_whose_window_is_unknown_has_no_efficiency() -> None:
    unknown = replace(phase(40e6), start_s=None, end_s=None, window_source="no times in its output")
    trial = Measured((READING,), {"Random Read": observed(EXPERIMENT, unknown)})
    body = made([trial, trial])
    assert efficiencies(body) == []
    assert reasons(body) == ["no power of read: no times in its output"]


def test_an_entry_is_finished() -> None:
    power, joules, efficiency = made([UNREAD, UNREAD])["entries"]
    assert power == {
        "base": "h", "title": "t", "description": "Test - Power (meter package)",
        "arguments": "a=1", "scale": "W", "proportion": "LIB", "values": ["20.0000", "20.0000"],
        "value": "20.0000",
        "json": {"test-run-times": "2:2", "eeio": {"quantity": "power_w", **SOURCE}},
    }  # fmt: skip
    readings = [trial["reading"] for trial in joules["json"]["eeio"]["trials"]]
    assert readings == [READING.to_json(), READING.to_json()]
    assert efficiency["description"] == (
        "Test - Random Read - Mean Energy Efficiency (meter package), without drives"
    )
    assert (efficiency["value"], efficiency["proportion"]) == ("2.75000", "HIB")


def test_trials_without_energy_are_named() -> None:
    short = Measured((energy(None, domain="package", reasons=("too short",)),), None)
    body = made([UNREAD, short, Measured()], failed=1)
    line = "1 of 2 trials have no energy of meter package: too short"
    assert body["annotations"] == [("h", line)]
    assert list(body["missing"].values()) == [f"e: {line}"]
    assert [len(entry["values"]) for entry in body["entries"]] == [1, 1, 1]


def test_a_power_that_is_not_above_zero_has_no_efficiency() -> None:
    still = replace(energy(0.0, domain="package"), uncertainty_j=None)
    body = made([Measured((still,), None)] * 2)
    assert efficiencies(body) == []
    assert "is not above 0" in reasons(body)[0]


def test_numbers_have_six_digits_and_no_exponent() -> None:
    values = (0.0, 12.5, 123456.7, 1234567.8, 0.000123456789, -2.0)
    assert [pts_number(value) for value in values] == [
        "0", "12.5000", "123457", "1234568", "0.000123457", "-2.00000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reading", "mark"),
    [
        (replace(READING, doubtful=True, reasons=("another meter",)), ", doubtful"),
        (READING, ""),
    ],
)
def test_an_energy_that_is_not_compared_is_marked(reading: EnergyReading, mark: str) -> None:
    """PTS joins results of equal descriptions."""
    body = made([Measured((reading,), None, "no eeio")])
    endings = {entry["description"].partition("package)")[2] for entry in body["entries"]}
    assert endings == {mark} or endings == {mark, f", without drives{mark}"}
