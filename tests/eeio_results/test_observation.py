"""Figures of one observation: a number, or the reason why there is none."""

from dataclasses import replace

import pytest

from eeio_limits.reasons import NO_COST_OF_ACCELERATOR
from eeio_results.observation import (
    NO_READING,
    NO_WORK,
    NOT_READ,
    Missing,
    Observation,
    Summary,
    known,
    observed,
    sources,
    summarize,
)
from eeio_results.record import EnergyReading, Phase
from tests.eeio_results import made

READING = made.energy(50.0)
PHASE = made.phase(250e6, (READING,))  # 500 MB in 2 s at 50 W


def by_system(phase: Phase = PHASE, reading: EnergyReading | None = None) -> Observation:
    observation = observed(made.EXPERIMENT, phase)
    return replace(observation, reading=reading) if reading else observation.by(READING.key)


def test_the_figures_of_a_complete_observation() -> None:
    one = by_system()
    assert (one.power_w, one.j_per_gb, one.bytes_per_j) == (50.0, 200.0, 5e6)
    assert one.j_per_gb_of(20.0) == 80.0
    assert one.why_no_cost is None and one.is_costed


@pytest.mark.parametrize(
    ("reading", "power", "cost"),
    [
        (replace(READING, valid=False, power_w=None, reasons=("it broke",)), "it broke",
         "it broke"),
        (replace(READING, power_w=None), NO_READING, NO_READING),
        (replace(READING, domain="accelerator"), None, NO_COST_OF_ACCELERATOR),
        (replace(READING, energy_j=None), None, NO_READING),
    ],
)  # fmt: skip
def test_the_reason_travels_in_the_value(
    reading: EnergyReading, power: str | None, cost: str
) -> None:
    one = by_system(reading=reading)
    assert one.power_w == (reading.power_w if power is None else Missing(power))
    assert one.j_per_gb == one.bytes_per_j == Missing(cost)
    assert known(one.j_per_gb) is None


def test_a_source_that_was_not_read() -> None:
    one = observed(made.EXPERIMENT, PHASE).by(("package", "other", "measured"))
    assert one.power_w == one.j_per_gb == Missing(NOT_READ)
    assert not one.is_costed and one.uncertainty_relative != 0


def test_without_bytes_and_bandwidth_there_is_no_figure_of_a_gb() -> None:
    bare = replace(PHASE, bytes_moved=None, bandwidth_bytes_per_s=None)
    one = by_system(bare)
    assert one.power_w == 50.0 and one.j_per_gb == Missing(NO_WORK)
    by_rate = by_system(replace(PHASE, bytes_moved=None))
    assert by_rate.j_per_gb == 200.0


@pytest.mark.parametrize(("power_w", "efficiency"), [(1e-320, None), (0.1, 2.5e9), (2.0, 125e6)])
def test_next_to_no_power_gives_no_endless_efficiency(
    power_w: float, efficiency: float | None
) -> None:
    one = by_system(made.phase(250e6, (made.energy(power_w),)))
    assert known(one.bytes_per_j) == (None if efficiency is None else pytest.approx(efficiency))


def test_a_summary_keeps_values_and_reasons_in_order() -> None:
    row = [
        by_system(),
        by_system(reading=replace(READING, valid=False, power_w=None, reasons=("it broke",))),
        by_system(reading=replace(READING, power_w=60.0)),
    ]
    assert summarize(row, lambda one: one.power_w) == Summary((50.0, 60.0), ("it broke",))
    assert summarize(row, lambda one: one.power_w).reason == "it broke"
    assert sources(row) == [READING.key]
