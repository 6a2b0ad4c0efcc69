"""Figures of one row are of one power domain and one meter, and others are not compared with it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run

from eeio.analysis.characterization import characterize
from eeio.comparison.campaigns import compare, named_cells
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, cells_of
from eeio.comparison.fleet import NodeResults, fleet
from eeio.comparison.gate import Side, gate
from eeio.comparison.history import history
from eeio.comparison.remarks import domain_warnings
from eeio.comparison.sessions import compare_groups
from eeio.record.run import EnergyReading, Experiment
from eeio.record.store import Campaign
from eeio.statistics.decision import Rule

LOST = energy(None, reasons=("the meter was lost",))
SYSTEM, PACKAGE = energy(50.0), energy(20.0, domain="package")


def campaign(
    folder: Path, name: str, readings: Sequence[tuple[EnergyReading, ...]],
    experiment: Experiment = EXPERIMENT, host: str = "board", drive: str = "sda", day: int = 1,
) -> Campaign:  # fmt: skip
    """One run a tuple of readings."""
    runs = [
        replace(run(n, (phase(1e8 * (1 + 0.001 * n), of_run),)), experiment=experiment)
        for n, of_run in enumerate(readings)
    ]
    plan = replace(design(name, len(runs)), created_utc=f"2026-11-{day:02d}T00:00:00+00:00")
    machine = replace(MACHINE, hostname=host, device=drive)
    return Campaign(folder / name, plan, machine, (), None, tuple(runs))


def test_a_lost_reading_does_not_change_the_power_domain(tmp_path: Path) -> None:
    """With 1 of 6 and with 5 of 6 readings of the system lost, the energy is the same."""
    few = campaign(tmp_path, "few", [(LOST, PACKAGE)] + [(SYSTEM, PACKAGE)] * 5)
    many = campaign(tmp_path, "many", [(LOST, PACKAGE)] * 5 + [(SYSTEM, PACKAGE)])
    for one, n in ((few, 5), (many, 1)):
        (cell,) = cells_of(one)
        assert cell.efficiency_of == ("system",) and cell.n(J_PER_GB) == n
        assert cell.median(J_PER_GB) == pytest.approx(500, rel=0.01)
        assert cell.n(POWER["package"]) == 6
        (row,) = [row for row in characterize(one) if row.phase]
        assert row.measured and row.measured.n == n
        assert row.measured["energy_j_per_gb"]
        assert row.measured["energy_j_per_gb"].median == pytest.approx(cell.median(J_PER_GB))


def test_a_calibration_is_as_another_meter(tmp_path: Path) -> None:
    text = "calibrated against wattsup on 2026-11-27: gain 0.85, offset +0 W"
    calibrated = replace(energy(43.0), reasons=(text,))
    before = campaign(tmp_path, "before", [(SYSTEM,)] * 6)
    after = campaign(tmp_path, "after", [(calibrated,)] * 6)
    cells = [cell for one in (before, after) for cell in cells_of(one, one.name)]
    assert cells[1].meters["system"].endswith(text) and not cells[1].doubts
    (remark,) = domain_warnings(cells)
    assert "is by different meters" in remark and text in remark
    between = campaign(tmp_path, "between", [(SYSTEM,)] * 3 + [(calibrated,)] * 3)
    why = f"its repetitions are calibrated differently: not calibrated, {text}"
    (cell,) = cells_of(between)
    assert cell.doubts == (why,)
    (row,) = [row for row in characterize(between) if row.phase]
    assert row.ranked_reason == f"doubtful: {why}"


def test_one_meter_of_a_domain(tmp_path: Path) -> None:
    other = replace(energy(60.0), meter="plug")
    one = campaign(tmp_path, "a", [(SYSTEM, other)] * 2 + [(LOST, other)] * 4)
    (cell,) = cells_of(one)
    assert cell.meters == {"system": "plug"} and set(cell.values(POWER["system"])) == {60.0}


def test_other_domains_are_confirmed_by_no_test(tmp_path: Path) -> None:
    both = [
        campaign(tmp_path, "a", [(SYSTEM, PACKAGE)] * 6),
        campaign(tmp_path, "b", [(PACKAGE,)] * 6, host="other"),
    ]
    found = compare(both, named_cells(both))
    assert found is not None
    effects = [one for group in found.groups for one in group.effects]
    assert not [one for one in effects if one.metric == EFFICIENCY and one.factor == "machine"]
    on_front = [one.label for one in found.pareto if one.on_bandwidth_front]
    assert len(on_front) == 1
    assert {one.reason for one in found.pareto if one.on_bandwidth_front is None} == {
        "its power is of package without drives, not of system"
    }


def test_other_meters_of_one_domain_are_named(tmp_path: Path) -> None:
    plug = replace(SYSTEM, meter="plug")
    both = [
        campaign(tmp_path, "a", [(SYSTEM,)] * 6),
        campaign(tmp_path, "b", [(plug,)] * 6, host="other"),
    ]
    found = compare(both, named_cells(both))
    assert found is not None
    assert any("by different meters" in one and "other: plug" in one for one in found.warnings)


def test_history_joins_neither_domains_nor_drives(tmp_path: Path) -> None:
    days = [
        *(campaign(tmp_path, f"s{k}", [(SYSTEM, PACKAGE)] * 2, day=k + 1) for k in range(8)),
        *(campaign(tmp_path, f"p{k}", [(PACKAGE,)] * 2, day=k + 9) for k in range(8)),
        *(campaign(tmp_path, f"d{k}", [(SYSTEM,)] * 2, drive="sdb", day=k + 17) for k in range(8)),
    ]
    found = history("s", days)
    assert [(len(one.points), one.steps) for one in found.series] == [(8, ())] * 3
    assert {one.label.partition("sd")[2] for one in found.series} == {
        "a, system by meter", "a, package by meter", "b, system by meter",
    }  # fmt: skip
    assert "no change can be sure in fewer than 14" in str(found.series[0].reason)


def test_a_node_without_the_system_s_power_is_no_outlier_by_it(tmp_path: Path) -> None:
    nodes = [
        NodeResults(
            f"n{k}",
            campaign(tmp_path, f"n{k}", [(energy(50.0 + 0.1 * k), PACKAGE)] * 2, host=f"n{k}"),
        )
        for k in range(11)
    ]
    nodes.append(NodeResults("x", campaign(tmp_path, "x", [(PACKAGE,)] * 2, host="x")))
    assert [one for one in fleet(nodes).outliers if one.node == "x"] == []


DOUBTED = replace(energy(80.0, reasons=("the clock is ahead",)), doubtful=True)


def test_a_doubtful_power_makes_no_change_in_a_history_and_no_outlier(tmp_path: Path) -> None:
    days = []
    for k in range(16):
        reading = SYSTEM if k < 15 else DOUBTED
        days.append(campaign(tmp_path, f"d{k}", [(reading,)] * 2, day=k + 1))
    (series,) = history("s", days).series
    assert len(series.points) == 15
    nodes = []
    for k in range(12):
        reading = energy(50.0 + 0.1 * k) if k < 11 else DOUBTED
        of_node = campaign(tmp_path, f"n{k}", [(reading,)] * 2, host=f"n{k}")
        nodes.append(NodeResults(f"n{k}", of_node))
    assert [outlier for outlier in fleet(nodes).outliers if outlier.node == "n11"] == []


def test_sessions_keep_the_doubts_of_each(tmp_path: Path) -> None:
    first = [campaign(tmp_path, "a", [(SYSTEM,)] * 3), campaign(tmp_path, "b", [(DOUBTED,)] * 3)]
    second = [campaign(tmp_path, name, [(SYSTEM,)] * 3) for name in ("c", "d")]
    found = compare_groups([first, second], Rule(), "benjamini-hochberg")
    (cell,) = found.cells[0]
    assert cell.doubts == ("the clock is ahead",)


def test_a_doubtful_power_has_no_factor_with_an_effect(tmp_path: Path) -> None:
    both = [
        campaign(tmp_path, "a", [(SYSTEM,)] * 6),
        campaign(tmp_path, "b", [(DOUBTED,)] * 6, host="other"),
    ]
    found = compare(both, named_cells(both))
    assert found is not None
    effects = [effect for group in found.groups for effect in group.effects]
    assert not [effect for effect in effects if effect.metric != BANDWIDTH]
    busy = {each.machine: (each.busy_w, each.reason) for each in found.idle_busy}
    assert busy["other"] == (None, "doubtful: the clock is ahead")


def test_sessions_of_other_domains_have_no_energy(tmp_path: Path) -> None:
    first = [campaign(tmp_path, "a", [(SYSTEM,)] * 3), campaign(tmp_path, "b", [(PACKAGE,)] * 3)]
    second = [campaign(tmp_path, name, [(SYSTEM,)] * 3) for name in ("c", "d")]
    found = compare_groups([first, second], Rule(), "benjamini-hochberg")
    (cell,) = found.cells[0]
    assert "power domains or meters" in str(cell.why(J_PER_GB))


def test_an_experiment_that_a_session_lacks_is_named(tmp_path: Path) -> None:
    other = replace(EXPERIMENT, arguments=(("file_size", "2g"),))
    first = [campaign(tmp_path, name, [(SYSTEM,)] * 3) for name in ("a", "b")]
    second = [
        campaign(tmp_path, "c", [(SYSTEM,)] * 3),
        campaign(tmp_path, "d", [(SYSTEM,)] * 3, experiment=other),
    ]
    found = compare_groups([first, second], Rule(), "benjamini-hochberg")
    (changed,) = found.changes[0].experiments
    assert "only 1 of 2 sessions have a result of it" in str(changed.metrics[J_PER_GB].reason)


def test_a_metric_that_only_the_later_campaign_has_is_not_tested(tmp_path: Path) -> None:
    other = replace(EXPERIMENT, arguments=(("file_size", "2g"),))
    before = [
        *cells_of(campaign(tmp_path, "a", [()] * 6)),
        *cells_of(campaign(tmp_path, "b", [(SYSTEM,)] * 6, experiment=other)),
    ]
    after = [
        *cells_of(campaign(tmp_path, "c", [(SYSTEM,)] * 6)),
        *cells_of(campaign(tmp_path, "d", [(SYSTEM,)] * 6, experiment=other)),
    ]
    found = gate(Side("old", before, []), Side("new", after, []), 0.05, "J/GB")
    assert [row.verdict for row in found.rows] == ["not tested", "passed"]
    assert "old does not have this metric" in str(found.rows[0].reason)


def test_j_per_gb_of_a_part_of_the_repetitions_is_named(tmp_path: Path) -> None:
    poor = replace(SYSTEM, coverage=0.3, reasons=("30 % of the window was seen",))
    one = campaign(tmp_path, "a", [(SYSTEM,)] * 3 + [(poor,)] * 3)
    (row,) = [row for row in characterize(one) if row.phase]
    assert row.measured and row.measured.n == 6
    assert "J/GB of 3 of 6 repetitions" in str(row.measured.lacks(row.n))
