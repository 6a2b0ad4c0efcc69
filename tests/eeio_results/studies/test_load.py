"""Power against offered load: by hand, by the papers' identity, and what is missing."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eeio_results.made import EXPERIMENT, design, energy, in_turn, phase, run, stored
from tests.plugin import DATA

from eeio.record.run import EnergyReading
from eeio.record.store import Campaign, load
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import contents
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio.studies.load import Step, load_curves, proportionality

SCHEMA = SCHEMAS / "report.schema.json"
MOST = 400e6


def steps(watts: list[float]) -> list[Step]:
    last = len(watts) - 1
    return [
        Step("c", "e", n / last, 1, MOST * n / last, w, None, None, None, "system")
        for n, w in enumerate(watts)
    ]


def campaign(
    folder: Path, idle: tuple[EnergyReading, ...] = (energy(20.0),), leave: int = 0
) -> Campaign:
    """Steps of 10 to 100 % whose power is 20 W and 30 W more at full load, without the last."""
    made = [
        replace(EXPERIMENT, arguments=(("file_size", "1g"), ("load", str(n))))
        for n in range(10, 101 - leave, 10)
    ]
    runs = []
    for place, experiment in enumerate(made):
        share = (place + 1) / 10
        reached = replace(
            phase(MOST * share, (energy(20 + 30 * share),)),
            metrics={"latency_p50_s": 0.001, "latency_p99_s": 0.004,
                     "offered_bytes_per_s": MOST * share},
        )  # fmt: skip
        runs.append(run(place, (reached,), experiment))
    plan = in_turn(design("c", len(made), *made))
    return load(stored(folder, runs, plan, idle=idle, idle_reason=None if idle else "no meter"))


def test_a_line_by_hand(tmp_path: Path) -> None:
    (curve,) = load_curves(campaign(tmp_path / "c"))
    assert [step.offered_share for step in curve] == pytest.approx([n / 10 for n in range(11)])
    half = curve[5]
    assert (half.power_w, half.bandwidth_bytes_per_s) == (35.0, 200e6)
    assert half.energy_j_per_gb == pytest.approx(175) and half.held == pytest.approx(1)
    assert half.latency_s == {"p50": 0.001, "p99": 0.004} and half.reason is None
    found = proportionality(curve)
    assert found.idle_share == pytest.approx(0.4) and found.dynamic_range == pytest.approx(0.6)
    assert found.linear_deviation == pytest.approx(0, abs=1e-12)
    assert found.proportionality == pytest.approx(1 - (0.4 + 1) / 2 / 0.5 + 1)
    # 5.5 times 400 MB/s over eleven powers of 35 W in the mean.
    assert found.overall_bytes_per_j == pytest.approx(5.5 * MOST / (11 * 35))


def test_a_curve_that_sags_or_bulges() -> None:
    assert proportionality(steps([20, 20, 40])).linear_deviation == pytest.approx(-1 / 6)
    assert proportionality(steps([20, 40, 40])).linear_deviation == pytest.approx(1 / 6)
    ideal = proportionality(steps([0, 20, 40]))
    assert (ideal.proportionality, ideal.dynamic_range) == (pytest.approx(1), 1.0)
    flat = proportionality(steps([40, 40, 40]))
    assert (flat.proportionality, flat.idle_share) == (pytest.approx(0), 1.0)


@given(st.lists(st.floats(1, 500), min_size=3, max_size=12))
def test_both_papers_agree(watts: list[float]) -> None:
    found = proportionality(steps(watts))
    assert found.dynamic_range is not None and found.linear_deviation is not None
    by_wong = 2 - (2 - found.dynamic_range) * (found.linear_deviation + 1)
    assert found.proportionality == pytest.approx(by_wong, abs=1e-9)


def test_what_is_missing_leaves_no_figure(tmp_path: Path) -> None:
    without_idle = proportionality(load_curves(campaign(tmp_path / "a", ()))[0])
    assert without_idle.idle_share is None and without_idle.overall_bytes_per_j is None
    assert without_idle.reason == "the step of 0 %: no meter"
    without_top = proportionality(load_curves(campaign(tmp_path / "b", leave=10))[0])
    assert without_top.reason == "the steps do not reach from idle to 100 %"


def test_a_step_that_was_not_reached_is_reported(tmp_path: Path) -> None:
    complete = campaign(tmp_path / "c")
    (half,) = complete.runs[4].phases
    offered = replace(half, metrics={**half.metrics, "offered_bytes_per_s": 210e6})
    runs = tuple(
        replace(one, phases=(offered,)) if n == 4 else one for n, one in enumerate(complete.runs)
    )
    (curve,) = load_curves(replace(complete, runs=runs))
    assert curve[5].reason == "the load was not reached: 95.2 % of the offer"
    found = proportionality(curve)
    assert found.reason == f"the step of 50 %: {curve[5].reason}"
    assert found.proportionality is None and found.overall_bytes_per_j is None


def test_all_steps_that_cannot_be_used_are_reported() -> None:
    curve = steps([20.0, 30.0, 40.0, 50.0, 60.0])
    late = [replace(curve[n], held=held, reason=f"held {held}") for n, held in ((1, 0.9), (3, 1.1))]
    found = proportionality([curve[0], late[0], curve[2], late[1], curve[4]])
    assert found.reason == "the step of 25 %: held 0.9; the step of 75 %: held 1.1"
    lost = [replace(step, power_w=None, reason="no meter") for step in curve[2:4]]
    found = proportionality([curve[0], late[0], *lost, curve[4]])
    assert found.reason == "the step of 25 %: held 0.9; the steps of 50 %, 75 %: no meter"


def test_an_idle_baseline_without_power_has_its_reason(tmp_path: Path) -> None:
    idle = replace(energy(None), valid=False, reasons=("the machine was not idle",))
    found = proportionality(load_curves(campaign(tmp_path / "c", (idle,)))[0])
    assert found.reason == "the step of 0 %: the machine was not idle"


def test_an_unsure_power_is_named_and_gives_no_proportionality(tmp_path: Path) -> None:
    doubtful = replace(energy(20.0), doubtful=True, reasons=("a contradicts b",))
    (curve,) = load_curves(campaign(tmp_path / "idle", (doubtful,)))
    assert curve[0].power_w == 20.0 and curve[0].reason == "doubtful: a contradicts b"
    found = proportionality(curve)
    assert found.reason == "the step of 0 %: doubtful: a contradicts b"
    complete = campaign(tmp_path / "c")
    (half,) = complete.runs[4].phases
    (reading,) = half.energy
    vague = replace(half, energy=(replace(reading, uncertainty_j=0.25 * (reading.energy_j or 0)),))
    runs = tuple(
        replace(one, phases=(vague,)) if n == 4 else one for n, one in enumerate(complete.runs)
    )
    (curve,) = load_curves(replace(complete, runs=runs))
    assert curve[5].power_w == 35.0 and "known only to ±25 %" in str(curve[5].reason)
    assert proportionality(curve).proportionality is None


def test_a_curve_of_invalid_runs_has_no_plot(tmp_path: Path) -> None:
    """The page ended with a traceback: a figure has at least one panel."""
    complete = campaign(tmp_path / "c", ())
    runs = tuple(
        replace(one, phases=(replace(one.phases[0], validity=("other I/O",)),))
        for one in complete.runs
    )
    report = build([replace(complete, runs=runs)])
    assert all(plot.draw() for chapter in report.chapters for plot in chapter.plots)


@pytest.mark.parametrize("columns", [(), ("w",)])
def test_each_step_has_its_load_and_one_repetition_no_range(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    report = build([campaign(tmp_path / "c")], columns=columns)
    level, efficiency = (
        next(table for table in contents(report) if table.title.startswith(title))
        for title in ("Level: filesystem", "Energy efficiency")
    )
    loads = [f"{n} %" for n in range(10, 101, 10)]
    assert [row[level.header.index("Load")] for row in level.rows] == loads
    at = efficiency.header.index("Load")
    assert [row[at] for row in efficiency.rows] == loads[::-1]
    power = level.header.index("Power (W)")
    assert level.rows[0][power] == "23"
    assert not any("[" in cell for t in (level, efficiency) for row in t.rows for cell in row)


def test_the_report_has_the_curve_and_keeps_to_its_schema(tmp_path: Path) -> None:
    report = build([campaign(tmp_path / "c")])
    body = json.loads(json.dumps(to_json(report)))
    jsonschema.validate(body, json.loads(SCHEMA.read_text()))
    assert len(body["load_curve"]) == 11
    assert body["proportionality"]["idle_share"] == pytest.approx(0.4)
    assert contents(report)[0].title.startswith("Power against offered load")
    two = to_json(build([campaign(tmp_path / "d"), campaign(tmp_path / "e")]))
    jsonschema.validate(json.loads(json.dumps(two)), json.loads(SCHEMA.read_text()))
    assert two["proportionality"]["idle_share"] is None
    assert two["proportionality"]["reason"] == "2 curves, which are in `curves`"


def test_all_steps_of_a_campaign_are_one_curve() -> None:
    report = build([load(DATA / "campaigns/load")])
    (chapter,) = report.chapters
    assert len(chapter.tables[0].rows) == 11  # idle, and ten steps
