"""The line that a run leaves in the log."""

from dataclasses import replace

import pytest
from tests.eeio_results.made import EXPERIMENT, energy, phase, run

from eeio.measure.campaign.progress import cost_of_run, one_line, run_text
from eeio.record.design import PlannedExperiment, PlannedRun
from eeio.record.run import EnergyReading

PLANNED = PlannedRun(0, PlannedExperiment(EXPERIMENT, "eeio-fio-1.0.0", {}, "read", "", 0), 1, 1)


def _line(*readings: EnergyReading) -> str:
    return run_text(PLANNED, run(0, (phase(10e6, readings),)))


def test_power_and_efficiency_with_their_limits() -> None:
    assert "read 10.0 MB/s, system 5 W ±1 %, 2 MB/J ±1 %" in _line(energy(5.0))


def test_without_a_meter_nothing_is_reported_of_power() -> None:
    line = _line()
    assert "10.0 MB/s" in line and " W" not in line and "MB/J" not in line
    assert cost_of_run(run(0, (phase(10e6, ()),))) == ""


def test_a_reading_without_a_limit_has_none() -> None:
    assert "system 5 W, 2 MB/J" in _line(replace(energy(5.0), uncertainty_j=None))


def test_too_little_observed_is_power_alone() -> None:
    assert "MB/J" not in _line(replace(energy(5.0), coverage=0.2))


@pytest.mark.parametrize("domain", ["package", "dram"])
def test_the_widest_domain_that_was_observed(domain: str) -> None:
    assert f"{domain} 3 W" in _line(energy(None), energy(3.0, domain=domain))


def test_modelled_power_is_marked_and_gives_way() -> None:
    assert "ESTIMATE system 5 W" in _line(energy(5.0, kind="modelled"))
    line = _line(energy(5.0, kind="modelled"), energy(3.0, domain="package"))
    assert "package 3 W" in line and "ESTIMATE" not in line
    assert " W" not in _line(replace(energy(5.0, kind="modelled"), uncertainty_j=40.0))


def test_a_figure_that_is_not_the_storages_is_reported() -> None:
    assert "MB/J ±1 % (without drives)" in _line(replace(energy(5.0), leaves_out=("drives",)))


@pytest.mark.parametrize("columns", [70, 80, 200])
def test_a_run_is_one_line_of_a_terminal_with_all_its_figures(columns: int) -> None:
    figures = "#2: read 120.3 MB/s, system 12 W ±1 %, 9.8 MB/J ±1 %"
    line = f"[3/12] fio sequential reads of 4 MiB with the page cache {figures}"
    shown = one_line(line, columns)
    assert len(shown) <= columns and shown.endswith(figures)
    assert shown.startswith("[3/12] fio")
    assert (shown == line) == (columns == 200) and ("…" in shown) == (columns < 200)


def test_why_a_run_is_invalid_is_never_cut() -> None:
    line = f"[3/12] fio read #2: done INVALID: {'the reason ' * 20}"
    assert one_line(line, 80) == line
