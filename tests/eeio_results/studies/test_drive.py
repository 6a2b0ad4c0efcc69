"""What a drive gives for its watts: by hand, and what is missing with its reason."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.eeio_results.made import EXPERIMENT, design, energy, phase, run, stored

from eeio.record.design import PlannedRun, SteadyProtocol, Wear
from eeio.record.run import EnergyReading
from eeio.record.store import Campaign, Store, load
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import contents
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio.studies.drive import points

SCHEMA = SCHEMAS / "report.schema.json"
READ = replace(
    EXPERIMENT, level="device", spatiality="random",
    arguments=(("engine", "libaio"), ("iodepth", "32"), ("precondition", "200")),
)  # fmt: skip
BOTH = (energy(50.0), energy(20.0, domain="package"))


def campaign(folder: Path, energies: tuple[EnergyReading, ...] = BOTH) -> Campaign:
    """Six rounds of 4 KiB reads, 10000 a second at 50 W, of which the processor takes 20."""
    made = design("c", 1, READ)
    planned = tuple(PlannedRun(n, made.experiments[0], n + 1, 1) for n in range(6))
    protocol = replace(made.protocol, repetitions=5, steady=SteadyProtocol())
    reported = replace(
        phase(40.96e6, energies),
        metrics={"iops": 10_000.0, "latency_p99_s": 0.004, "latency_p9999_s": 0.009},
    )
    runs = [run(n, (reported,), READ) for n in range(6)]
    plan = replace(made, protocol=protocol, runs=planned)
    return load(stored(folder, runs, plan, idle_reason="no meter"))


def test_by_hand(tmp_path: Path) -> None:
    (point,) = points(campaign(tmp_path / "c"))
    assert (point.iodepth, point.engine, point.row.n) == (32, "libaio", 5)
    (body,) = to_json(build([campaign(tmp_path / "d")]))["drive"]
    assert body["iops"]["median"] == 10_000 and body["power_domain"] == "system"
    assert body["iops_per_w"]["median"] == pytest.approx(200)
    assert body["efficiency_bytes_per_j"]["median"] == pytest.approx(40.96e6 / 50)
    assert body["cpu_j_per_request"]["median"] == pytest.approx(20 / 10_000)
    assert point.latency_s["p9999"].median == body["latency_s"]["p9999"]["median"] == 0.009
    assert "iops_per_w" not in body["reasons"] and "cpu_j_per_request" not in body["reasons"]


def test_a_doubtful_power_is_named(tmp_path: Path) -> None:
    doubtful = replace(energy(50.0), doubtful=True, reasons=("a contradicts b",))
    doubted = campaign(tmp_path / "c", (doubtful,))
    (point,) = points(doubted)
    assert point.unsure == "doubtful: a contradicts b" and point.row["power_w"] is not None
    text = str(contents(build([doubted]))[0].note)
    assert "W and MB/J of 1 rows: doubtful: a contradicts b" in text


@pytest.mark.parametrize(
    ("energies", "lacks", "why"),
    [
        ((), {"power_w", "iops_per_w", "efficiency_bytes_per_j", "cpu_j_per_request"}, None),
        ((energy(50.0),), {"cpu_j_per_request"}, "no meter read the processor packages"),
    ],
)
def test_what_was_not_measured_has_its_reason(
    tmp_path: Path, energies: tuple[EnergyReading, ...], lacks: set[str], why: str | None
) -> None:
    (body,) = to_json(build([campaign(tmp_path / "c", energies)]))["drive"]
    for name in lacks:
        assert body[name] is None and body["reasons"][name]
    if why is not None:
        assert body["reasons"]["cpu_j_per_request"] == why


def test_the_report_has_it_in_json_tables_and_a_plot(tmp_path: Path) -> None:
    report = build([campaign(tmp_path / "c")])
    body = json.loads(json.dumps(to_json(report)))
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    (rest,) = body["steady_state"]
    assert (rest["rounds"], rest["first_round"], rest["is_steady"]) == (6, 2, True)
    assert rest["experiments"][0]["bandwidth_bytes_per_s"] == [40.96e6] * 6
    titles = [table.title for table in contents(report)]
    assert titles[:2] == ["The drive: c", "Steady state: c, reached"]
    (plot,) = report.chapters[0].plots
    assert "Rounds to the steady state: c" in plot.draw()


def test_wear_is_the_drives_own_word(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c")
    assert "wear: the drive reports none" in contents(build([made]))[0].note
    worn = (Wear("2026-01-01T00:00:00+00:00", 3, 10**12),
            Wear("2026-01-01T01:00:00+00:00", 4, 10**12 + 5 * 10**9))  # fmt: skip
    Store(tmp_path / "c").write_design(replace(made.design, wear=worn))
    made = load(tmp_path / "c")
    assert made.design.wear == worn
    note = contents(build([made]))[0].note
    assert "counts 5 GB written meanwhile, 4 % of its rated endurance used (before: 3 %)" in note


def test_a_campaign_that_wrote_nothing_before_has_no_such_chapter(tmp_path: Path) -> None:
    made = load(stored(tmp_path / "c", [run(0, (phase(1e6),))], idle_reason="no meter"))
    assert points(made) == []
    assert "drive" not in to_json(build([made])) and made.shortcomings == []
