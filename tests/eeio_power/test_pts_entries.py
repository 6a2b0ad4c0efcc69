"""The entries that power adds to a result file of PTS."""

from typing import Any

from eeio.units.number_text import pts_number
from eeio_power.pts_entries import entries_of

SOURCE = {"meter": "rapl", "domain": "package", "kind": "measured"}
READING = {
    **SOURCE, "power_w": 20.0, "energy_j": 40.0, "valid": True, "doubtful": False, "reasons": [],
    "leaves_out": [],
}  # fmt: skip
UNTOLD = {"not_told": "no eeio"}


def reported(*items: tuple[str | None, float | None]) -> dict[str, Any]:
    return {
        "efficiency": [
            {"words": text, "mb_per_j": value, "reason": "as told", **SOURCE}
            for text, value in items
        ]
    }


def made(trials: list[dict[str, Any]], bandwidths: int = 1, **changes: Any) -> dict[str, Any]:
    results = [
        {"hash": "h", "title": "t", "description": "Test - Random Read", "scale": "MB/s",
         "values": [[0, "50"], [1, "60"]]},
        {"hash": "i", "title": "t", "description": "Test - Write", "scale": "MB/s", "values": []},
    ]  # fmt: skip
    both = [
        {"order": k, "start_s": 1.0, "duration_s": 2.0, "failed": False, "readings": [READING],
         **trial}
        for k, trial in enumerate(trials)
    ]  # fmt: skip
    experiment = {"name": "e", "arguments": "a=1", "description": "Test", "trials": both}
    return entries_of({**experiment, "results": results[:bandwidths], **changes})


def efficiencies(found: dict[str, Any]) -> list[str]:
    return [v for entry in found["entries"] if entry["scale"] == "MB/J" for v in entry["values"]]


def reasons(found: dict[str, Any]) -> list[str]:
    return [line.partition(": ")[2] for _, line in found["annotations"]]


def test_of_several_bandwidths_only_what_was_reported_has_an_efficiency() -> None:
    of_trial = reported(("Read", 1.0), ("Random Read", 2.0), (None, 9.0))
    several = made([of_trial, UNTOLD], 2)
    assert efficiencies(several) == ["2.00000"]
    assert "none of theirs (no eeio)" in reasons(several)[0]
    alone = made([UNTOLD, UNTOLD])
    assert efficiencies(alone) == ["2.50000", "3.00000"] and alone["annotations"] == []
    none = made([reported(("Random Read", None)), reported()])
    assert efficiencies(none) == []
    assert reasons(none) == ["as told"]
    assert reasons(made([reported(), reported()])) == [
        "no phase of the trial has exactly this bandwidth, and the power covers all its I/O"
    ]


def test_an_entry_is_finished() -> None:
    power, energy, efficiency = made([UNTOLD, UNTOLD])["entries"]
    assert power == {
        "base": "h", "title": "t", "description": "Test - Power (rapl package)",
        "arguments": "a=1", "scale": "W", "proportion": "LIB", "values": ["20.0000", "20.0000"],
        "value": "20.0000",
        "json": {"test-run-times": "2:2", "eeio": {"quantity": "power_w", **SOURCE}},
    }  # fmt: skip
    assert [trial["reading"] for trial in energy["json"]["eeio"]["trials"]] == [READING, READING]
    assert "readings" not in energy["json"]["eeio"]["trials"][0]
    assert efficiency["description"] == (
        "Test - Random Read - Mean Energy Efficiency (rapl package), without drives"
    )
    assert (efficiency["value"], efficiency["proportion"]) == ("2.75000", "HIB")


def test_trials_without_energy_are_named() -> None:
    bad = {"readings": [{**READING, "valid": False, "reasons": ["too short"]}]}
    found = made([UNTOLD, bad, {"failed": True, "readings": []}])
    line = "1 of 2 trials have no energy of rapl package: too short"
    assert found["annotations"] == [("h", line)]
    assert list(found["missing"].values()) == [f"e: {line}"]
    assert [len(entry["values"]) for entry in found["entries"]] == [1, 1, 1]


def test_numbers_have_six_digits_and_no_exponent() -> None:
    values = (0.0, 12.5, 123456.7, 1234567.8, 0.000123456789, -2.0)
    assert [pts_number(value) for value in values] == [
        "0", "12.5000", "123457", "1234568", "0.000123457", "-2.00000",
    ]  # fmt: skip
