"""A GPU that fio does not use: its power and energy are shown, and are no cost of the I/O."""

from dataclasses import replace
from pathlib import Path

from eeio.analysis.characterization import characterize
from eeio.comparison.cells import EFFICIENCY, J_PER_GB, J_PER_GB_OF, POWER, cells_of
from eeio.record.contradictions import contradictions
from eeio.record.reasons import NO_COST_OF_ACCELERATOR
from eeio.record.run import EnergyReading, Experiment
from eeio.record.store import Campaign
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run

GPU = replace(energy(72.0, domain="accelerator"), meter="nvml", kind="device-reported")
PACKAGE = energy(20.0, domain="package")
COMMAND = replace(EXPERIMENT, tool="command")


def campaign(
    tmp_path: Path, readings: tuple[EnergyReading, ...], experiment: Experiment = EXPERIMENT
) -> Campaign:
    runs = [replace(run(n, (phase(1e8, readings),)), experiment=experiment) for n in range(3)]
    plan = design("c", 3)
    planned = tuple(replace(each, experiment=experiment) for each in plan.experiments)
    return Campaign(
        tmp_path / "c", replace(plan, experiments=planned), MACHINE, (), None, tuple(runs)
    )


def test_a_gpu_is_no_cost_of_io_that_does_not_use_it(tmp_path: Path) -> None:
    both = campaign(tmp_path, (GPU, PACKAGE))
    (row,) = [row for row in characterize(both) if row.phase]
    assert row.measured is not None and row.measured.power_domain == "package" and row.ranked
    gpu = next(figures for figures in row.domains if figures.power_domain == "accelerator")
    assert gpu["power_w"] is not None and gpu["power_w"].median == 72.0
    assert gpu["energy_j_per_gb"] is None and gpu.ranked_reason is not None
    assert gpu.why("energy_j_per_gb") == NO_COST_OF_ACCELERATOR
    (cell,) = cells_of(both)
    assert cell.efficiency_of[0].startswith("package")
    assert cell.n(POWER["accelerator"]) == 3
    assert cell.why(J_PER_GB_OF["accelerator"]) == NO_COST_OF_ACCELERATOR


def test_a_gpu_alone_makes_no_headline(tmp_path: Path) -> None:
    alone = campaign(tmp_path, (GPU,))
    (row,) = [row for row in characterize(alone) if row.phase]
    assert row.measured is None and not row.ranked
    assert row.to_json()["energy_j_per_gb"] is None and row.to_json()["power_w"] is None
    (figures,) = row.domains
    assert figures["power_w"] is not None
    (cell,) = cells_of(alone)
    assert cell.why(EFFICIENCY) is not None and cell.why(J_PER_GB) is not None


def test_a_command_may_use_the_gpu(tmp_path: Path) -> None:
    alone = campaign(tmp_path, (GPU,), COMMAND)
    (cell,) = cells_of(alone)
    assert cell.efficiency_of == ("accelerator without drives",) and cell.n(EFFICIENCY) == 3


def test_a_fictitious_meter_makes_no_real_one_doubtful() -> None:
    system = replace(energy(49.0), meter="demo", kind="demo")
    assert contradictions([replace(GPU, power_w=698.0, energy_j=6980.0), system]) == []
    real = replace(system, meter="ipmi", kind="measured")
    assert contradictions([replace(GPU, power_w=698.0, energy_j=6980.0), real])
