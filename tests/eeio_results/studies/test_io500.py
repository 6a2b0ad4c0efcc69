"""Points per kW by hand, and what is missing with its reason."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run

from eeio.record.run import ContextValue, EnergyReading, Phase, Run
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import contents
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio.studies.io500 import points

SCHEMA = SCHEMAS / "report.schema.json"
IO500 = replace(
    EXPERIMENT, level="application", tool="io500", operation="mixed", spatiality="mixed",
    request_size_bytes=None, arguments=(("processes", "2"),),
)  # fmt: skip
BOTH = (energy(50.0), energy(20.0, domain="package"))


def phases(energies: tuple[EnergyReading, ...] = BOTH) -> tuple[Phase, ...]:
    """Two scored phases of 2 s, and one that is not scored."""
    found = phase(2.0**30, energies)
    return (
        replace(found, name="ior-easy-read"),
        replace(
            found, name="find", operation="metadata", spatiality="none", bytes_moved=0,
            request_size_bytes=None, bandwidth_bytes_per_s=None,
            metrics={"operations_per_s": 4000.0},
            energy=tuple(replace(e, power_w=2 * (e.power_w or 0), energy_j=2 * (e.energy_j or 0))
                         if e.valid else e for e in energies),
        ),
        replace(found, name="ior-rnd4K-easy-read"),
    )  # fmt: skip


def of(found: tuple[Phase, ...], name: str = "io500_score") -> Run:
    figures = (("", 6.0, "1"), ("_bandwidth", 2.0**30, "B/s"), ("_metadata", 4000.0, "1/s"))
    context = tuple(ContextValue(name + suffix, value, unit) for suffix, value, unit in figures)
    return replace(run(0, found, IO500), context=context)


def campaign(*runs: Run) -> Campaign:
    made = design("c", len(runs), IO500)
    return Campaign(Path("c"), made, MACHINE, (), None, runs)


def test_points_are_the_score_over_the_power_of_the_scored_phases() -> None:
    """100 J and 200 J in 4 s are 75 W: 6 points are 80 per kW."""
    (one,) = points(campaign(of(phases())))
    assert (one.n, one.is_valid, one.score, one.power_domain) == (1, True, 6.0, "system")
    assert (one.power_w, one.energy_j, one.reason) == (75.0, 300.0, None)
    assert one.points_per_kw == pytest.approx(80.0)
    assert [(p.phase, p.energy_j, p.power_w) for p in one.phases] == [
        ("ior-easy-read", 100.0, 50.0), ("find", 200.0, 100.0),
        ("ior-rnd4K-easy-read", 100.0, 50.0),
    ]  # fmt: skip
    assert one.phases[1].operations_per_s == 4000.0


def test_a_phase_too_short_for_its_meter_is_part_of_the_sum() -> None:
    """As long as the sum is known."""
    easy, find, rest = phases()
    unsure = replace(find, energy=(replace(find.energy[0], energy_j=4.0, uncertainty_j=3.9),))
    (one,) = points(campaign(of((easy, unsure, rest))))
    assert one.phases[1].energy_j is None and "only to" in (one.phases[1].reason or "")
    assert one.energy_j == 104.0 and one.points_per_kw is not None
    both = replace(easy, energy=(replace(easy.energy[0], uncertainty_j=99.0),))
    (one,) = points(campaign(of((both, unsure, rest))))
    assert one.points_per_kw is None and "too uncertain" in (one.reason or "")


@pytest.mark.parametrize(
    ("energies", "why"),
    [
        ((), "no meter measured it"),
        ((energy(30.0, "modelled"),), "no meter measured it"),
        ((energy(None, reasons=("the meter failed",)),), "no meter measured it"),
    ],
)
def test_without_a_meter_there_is_a_reason(energies: tuple[EnergyReading, ...], why: str) -> None:
    (one,) = points(campaign(of(phases(energies))))
    assert (one.score, one.power_w, one.energy_j, one.points_per_kw) == (6.0, None, None, None)
    assert one.reason == f"ior-easy-read: {why}"


def test_an_invalid_phase_has_no_figures_and_leaves_no_points() -> None:
    easy, *others = phases()
    bad = replace(easy, validity=("served from a cache",))
    (one,) = points(campaign(of((bad, *others))))
    assert one.points_per_kw is None and one.reason == "ior-easy-read: served from a cache"
    assert one.phases[0].n == 0 and one.phases[0].energy_j is None
    assert one.phases[0].bandwidth_bytes_per_s is None


def test_a_debug_run_is_marked_everywhere() -> None:
    debug = of(phases(), "io500_debug_score")
    (one,) = points(campaign(debug, of(phases())))
    assert not one.is_valid and one.n == 2
    tables = {table.title: table for table in contents(build([campaign(debug)]))}
    score = tables["IO500: c"]
    assert score.rows[0][2] == "no: debug" and "not a valid IO500 run" in score.note
    assert any(title.endswith("not a valid IO500 run") for title in tables)
    valid = {table.title: table for table in contents(build([campaign(of(phases()))]))}
    assert valid["IO500: c"].rows[0][2] == "yes"
    assert not any("not a valid" in title for title in valid)


def test_demo_power_is_marked() -> None:
    (table, *_) = contents(build([campaign(of(phases((energy(50.0, "demo"),))))]))
    assert table.rows[0][6:9] == ("75 (demo)", "300 (demo)", "80 (demo)")


def test_the_json_is_that_of_the_schema() -> None:
    body = to_json(build([campaign(of(phases()))]))
    jsonschema.validate(json.loads(json.dumps(body)), json.loads(SCHEMA.read_text()))
    assert body["io500"][0]["points_per_kw"] == pytest.approx(80.0)


def test_other_campaigns_have_no_such_table() -> None:
    assert points(campaign(replace(run(0, phases(), EXPERIMENT), context=()))) == []
    assert points(campaign(replace(of(phases()), validity=("failed",)))) == []
