"""Figures of one observation: a number, or the reason why there is none."""

from dataclasses import replace

import pytest

from eeio.analysis.metrics import in_rows, summaries
from eeio.analysis.observation import (
    NO_BASELINE,
    NO_BYTES,
    NO_READING,
    NOT_READ,
    Baseline,
    Missing,
    Observation,
    known,
    observed,
    sources,
)
from eeio.analysis.summary import Quartiles, summarize
from eeio.record.reasons import NO_COST_OF_ACCELERATOR
from eeio.record.run import EnergyReading, Phase
from tests.eeio_results import made

READING = made.energy(50.0)
PHASE = made.phase(250e6, (READING,))  # 500 MB in 2 s at 50 W


def by_system(phase: Phase = PHASE, reading: EnergyReading | None = None) -> Observation:
    observation = observed(made.EXPERIMENT, phase)
    return replace(observation, reading=reading) if reading else observation.by(READING.key)


def test_the_figures_of_a_complete_observation() -> None:
    one = by_system()
    assert (one.power_w, one.j_per_gb, one.bytes_per_j) == (50.0, 200.0, 5e6)
    assert replace(one, baseline=Baseline(30.0)).marginal_j_per_gb == 80.0
    assert one.why_no_cost is None and one.is_costed


@pytest.mark.parametrize(
    ("reading", "power", "cost"),
    [
        (replace(READING, valid=False, power_w=None, reasons=("it broke",)), "it broke",
         "it broke"),
        (replace(READING, power_w=None), NO_READING.reason, NO_READING.reason),
        (replace(READING, domain="accelerator"), None, NO_COST_OF_ACCELERATOR),
        (replace(READING, energy_j=None), None, NO_READING.reason),
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
    assert one.power_w == one.j_per_gb == NOT_READ
    assert not one.is_costed and one.uncertainty_relative != 0


def test_without_bytes_and_bandwidth_there_is_no_figure_of_a_gb() -> None:
    bare = replace(PHASE, bytes_moved=None, bandwidth_bytes_per_s=None)
    one = by_system(bare)
    assert one.power_w == 50.0 and one.j_per_gb == NO_BYTES
    by_rate = by_system(replace(PHASE, bytes_moved=None))
    assert by_rate.j_per_gb == 200.0


@pytest.mark.parametrize(("power_w", "efficiency"), [(1e-320, None), (0.1, 2.5e9), (2.0, 125e6)])
def test_next_to_no_power_gives_no_endless_efficiency(
    power_w: float, efficiency: float | None
) -> None:
    one = by_system(made.phase(250e6, (made.energy(power_w),)))
    assert known(one.bytes_per_j) == (None if efficiency is None else pytest.approx(efficiency))


def test_a_summary_is_of_the_known_values_or_has_the_first_reason() -> None:
    broken = by_system(reading=replace(READING, valid=False, power_w=None, reasons=("it broke",)))
    row = [broken, by_system(), by_system(reading=replace(READING, power_w=60.0))]
    assert summarize(one.power_w for one in row) == Quartiles(55.0, 52.5, 57.5)
    assert summarize([broken.power_w, Missing("later")]) == Missing("it broke")
    assert sources(row) == [READING.key]


def test_energy_above_idle_is_of_all_repetitions_or_of_none() -> None:
    clear = replace(by_system(), baseline=Baseline(20.0))
    unclear = replace(clear, baseline=Baseline(50.0))
    key, of_domains = "marginal_energy_j_per_gb", in_rows(of_domain=True)
    assert summaries(of_domains, [clear, clear])[key] == Quartiles(120.0, 120.0, 120.0)
    why = "in 1 of 2 repetitions power is not above idle by more than its uncertainty"
    assert summaries(of_domains, [clear, unclear])[key] == Missing(why)
    assert summaries(of_domains, [by_system()])[key] == NO_BASELINE
