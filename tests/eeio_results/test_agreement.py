"""Meters held against each other over a whole campaign."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from eeio.analysis.meter_agreement import agreement
from eeio.comparison.cells import cells_of
from eeio.comparison.remarks import domain_warnings
from eeio.record.run import EnergyReading
from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.document import RENDERERS
from tests.eeio_results.made import MACHINE, design, energy, phase, run

WINDOW_S = 2.0


def reading(meter: str, domain: str, power_w: float, limit: float) -> EnergyReading:
    """`limit` as a share of the energy."""
    return replace(
        energy(power_w, domain=domain), meter=meter, uncertainty_j=limit * power_w * WINDOW_S
    )


def campaign(*windows: tuple[EnergyReading, ...], idle: tuple[EnergyReading, ...] = ()) -> Campaign:
    runs = tuple(run(k, (phase(100e6, readings),)) for k, readings in enumerate(windows))
    return Campaign(Path("c"), design("c", len(runs)), MACHINE, idle, None, runs)


def slow_bmc(offset: float, windows: int = 40) -> Campaign:
    """A controller that reads too little, by less than its edges are unsure of in one window; the
    windows are long enough once to show how good it is."""
    made = []
    for k in range(windows):
        bmc = reading("ipmi", "system", 100.0 * (1 - offset), 0.05 if k == 0 else 0.20)
        made.append((bmc, reading("rapl", "package", 100.0, 0.05)))
    return campaign(*made)


def test_what_no_single_window_can_tell_the_campaign_does() -> None:
    found = agreement(slow_bmc(0.16))
    ((keys, text),) = found.contradictions
    assert {key[:2] for key in keys} == {("system", "ipmi"), ("package", "rapl")}
    assert text == (
        "over 40 windows of the campaign: package (rapl) 100.0 W is in system (ipmi) 84.0 W and "
        "draws more, by more than all their uncertainties"
    )
    assert agreement(slow_bmc(0.16, windows=1)).contradictions == ()
    assert agreement(slow_bmc(0.04)).contradictions == (), "within both accuracies, however long"


def test_every_format_is_reported() -> None:
    report = build([slow_bmc(0.16)])
    (message,) = (message for _, message in agreement(report.campaigns[0]).contradictions)
    found = document(report, lambda: page.render(report))
    for name, render in RENDERERS.items():
        shown = " ".join(render(found).replace("\\", "").split())
        assert "doubtful" in shown or name in ("csv", "json")
        assert message in shown, name
    made = json.loads(json.dumps(to_json(report)))
    (stored,) = made["campaigns"]
    assert stored["power"]["contradictions"] == [message]
    assert [
        (mean["domain"], mean["meter"], mean["windows"], mean["power_w"])
        for mean in stored["power"]["means"]
    ] == [("system", "ipmi", 40, pytest.approx(84.0)), ("package", "rapl", 40, 100.0)]
    (row,) = (r for r in made["characterization"] if r["tool"])
    assert [domain["doubts"] for domain in row["domains"]] == [[message], [message]]
    assert f"machine: doubtful: {message}" in domain_warnings(
        cells_of(report.campaigns[0], "machine")
    )


def test_only_windows_that_both_saw_are_compared() -> None:
    """The plug was there for the idle part, the package's counters for the busy one."""
    plug, package = (reading("plug", "system", 40.0, 0.02), reading("rapl", "package", 90.0, 0.05))
    found = agreement(campaign(*[(package,)] * 5, idle=(plug,)))
    assert found.contradictions == ()
    assert {mean.meter: mean.windows for mean in found.means} == {"plug": 1, "rapl": 5}


@pytest.mark.parametrize(
    "apart",
    [
        {"valid": False, "power_w": None, "energy_j": None, "uncertainty_j": None},
        {"kind": "modelled"},
        {"coverage": 0.1},
        {"uncertainty_j": None},
    ],
)
def test_a_reading_that_is_not_compared_contradicts_nobody(apart: dict[str, object]) -> None:
    wrong = replace(reading("rapl", "package", 500.0, 0.05), **apart)  # type: ignore[arg-type]
    windows = [(reading("plug", "system", 100.0, 0.02), wrong)] * 3
    assert agreement(campaign(*windows)).contradictions == ()


def test_parts_together_above_the_total_are_reported() -> None:
    windows = [
        (
            reading("plug", "system", 100.0, 0.02), reading("rapl", "package", 80.0, 0.02),
            reading("rapl", "dram", 40.0, 0.02),
        )
    ] * 3  # fmt: skip
    ((keys, text),) = agreement(campaign(*windows)).contradictions
    assert len(keys) == 3
    assert "package (rapl) 80.0 W + dram (rapl) 40.0 W draw more" in text


@pytest.mark.parametrize("seed", range(20))
def test_meters_within_their_limits_are_never_reported(seed: int) -> None:
    """Each says the truth but for its own accuracy, the same in all windows, and for chance."""
    rng = random.Random(seed)
    accuracies = {meter: rng.uniform(0.005, 0.05) for meter in ("plug", "bmc", "board")}
    errors = {meter: rng.choice((-1, 1)) * limit for meter, limit in accuracies.items()}
    windows = []
    for _ in range(rng.randint(2, 200)):
        truth_w = rng.uniform(20, 400)
        readings = []
        for meter, accuracy in accuracies.items():
            chance = rng.uniform(0.0, 0.1)
            reported_w = truth_w * (1 + errors[meter] + rng.uniform(-chance, chance) / 2)
            readings.append(
                reading(meter, "system", reported_w, math.hypot(accuracy, chance) * 1.1)
            )
        windows.append(tuple(readings))
    assert agreement(campaign(*windows)).contradictions == ()
