"""Tables made of records that can be checked by eye."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.analysis.characterization import characterize
from eeio.analysis.summary import quartiles
from eeio.record.run import CacheLayers, Durable, EnergyReading, Experiment, Phase, Run
from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.campaign.tables import tables
from eeio.report.document import render_csv, render_html, render_markdown, render_terminal
from eeio.report.figures import plots
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio.units.number_text import number
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run
from tests.eeio_results.report.visible_text import visible_text


def _campaign(
    *runs: Run,
    experiments: tuple[Experiment, ...] = (),
    measurement: bool = True,
    idle: tuple[EnergyReading, ...] = (),
    idle_reason: str | None = None,
    name: str = "c",
) -> Campaign:
    made = design(name, len(runs), *experiments, measurement=measurement)
    return Campaign(Path(name), made, MACHINE, idle, idle_reason, runs)


def _phases(*bandwidths: float, power_w: float = 50.0) -> list[tuple[Phase, ...]]:
    return [(phase(value, (energy(power_w),)),) for value in bandwidths]


def test_medians_and_quartiles_of_the_valid_repetitions() -> None:
    runs = [run(i, phases) for i, phases in enumerate(_phases(100e6, 200e6, 300e6, 400e6, 500e6))]
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert row.n == 5
    assert row["bandwidth_bytes_per_s"] is not None
    assert (row["bandwidth_bytes_per_s"].q1, row["bandwidth_bytes_per_s"].median) == (200e6, 300e6)
    best = row.measured
    assert best is not None and best["power_w"] is not None and best["energy_j"] is not None
    assert best["power_w"].median == 50 and best["energy_j"].median == 100
    # Bandwidth over power, per repetition: 300 MB/s over 50 W is 6 MB/J.
    assert best["efficiency_bytes_per_j"] is not None
    assert best["efficiency_bytes_per_j"].median == pytest.approx(6e6)


def test_a_row_of_two_levels_says_that_its_median_describes_neither() -> None:
    levels = (100e6, 101e6, 99e6, 50e6, 50.5e6, 49.5e6)
    runs = [run(i, phases) for i, phases in enumerate(_phases(*levels))]
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert row.remarks == {
        "two levels": "two levels: 3 runs about 50 MB/s, 3 runs about 100 MB/s; its median and "
        "interval describe neither"
    }


def test_repetitions_of_which_some_moved_no_bytes_have_no_bandwidth() -> None:
    """A median of a part of the repetitions would stand next to the power of all."""
    reported = _phases(100e6, 200e6, 300e6)
    nothing = replace(reported[0][0], bandwidth_bytes_per_s=None, bytes_moved=0)
    runs = [run(i, phases) for i, phases in enumerate([*reported, (nothing,)])]
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert row.n == 4 and row["bandwidth_bytes_per_s"] is None and row.bandwidth_values == ()
    why = "1 of 4 repetitions moved no bytes, or report no bandwidth"
    assert str(row.why("bandwidth_bytes_per_s")) == str(row.why("efficiency_bytes_per_j")) == why
    best = row.measured
    assert best is not None and best["power_w"] is not None and best.n == 4
    assert best["efficiency_bytes_per_j"] is None and best["energy_j_per_gb"] is None


def test_efficiency_is_the_median_of_ratios_not_the_ratio_of_medians() -> None:
    pairs = [(100.0, 10.0), (200.0, 100.0), (300.0, 20.0)]
    runs = [run(i, (phase(b, (energy(p),)),)) for i, (b, p) in enumerate(pairs)]
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert row.measured is not None and row.measured["efficiency_bytes_per_j"] is not None
    assert row.measured["efficiency_bytes_per_j"].median == 10.0  # of 10, 2 and 15; not 200 / 20


def test_bandwidth_and_power_of_different_times_make_no_efficiency() -> None:
    """An application that does I/O at 100 MB/s for half of the phase, 2 s, and computes."""
    complete = phase(100e6, (energy(50.0),))
    computing = replace(complete, bytes_moved=100_000_000)
    campaign = _campaign(run(0, (computing,)), run(1, (computing,)))
    (row,) = (r for r in characterize(campaign) if r.experiment)
    best = row.measured
    assert best is not None and best["power_w"] is not None and best["energy_j"] is not None
    assert best["efficiency_bytes_per_j"] is None
    reason = str(row.why("efficiency_bytes_per_j"))
    assert "I/O covers 50% of the power window" in reason
    assert reason in render_terminal(document(build([campaign])))
    assert computing.io_share == 0.5 and complete.io_share == 1.0


def _created(rate: float) -> tuple[Phase, ...]:
    made = replace(
        phase(None, (energy(50.0),)),
        name="create", operation="metadata", spatiality="none", request_size_bytes=None,
        bytes_moved=0, metrics={"operations": 100.0, "operations_per_s": rate},
    )  # fmt: skip
    return (made,)


def test_metadata_has_a_rate_and_power_and_no_bandwidth() -> None:
    made = replace(EXPERIMENT, tool="metadata", operation="metadata", spatiality=None)
    runs = [run(i, _created(rate), experiment=made) for i, rate in enumerate((700.0, 900.0, 950.0))]
    campaign = _campaign(*runs, experiments=(made,))
    (row,) = (r for r in characterize(campaign) if r.experiment)
    assert row.n == 3 and row.invalid_runs == 0
    assert row["operations_per_s"] is not None and row["operations_per_s"].median == 900
    assert row.measured is not None and row.measured["energy_j"] is not None
    assert row["bandwidth_bytes_per_s"] is None and row.measured["efficiency_bytes_per_j"] is None
    none = "metadata operations move no data"
    assert {name for name, why in row.to_json()["reasons"].items() if why == none} == {
        "bandwidth_bytes_per_s", "efficiency_bytes_per_j", "energy_j_per_gb",
        "marginal.energy_j_per_gb", "marginal.efficiency_bytes_per_j",
        "metrics.efficiency_per_drive_bytes_per_j",
    }  # fmt: skip
    assert row.to_json()["reason"] == none and row.flush is None and row.durable is None
    # 50 W over 700, 900 and 950 files a second.
    assert row.to_json()["energy_j_per_operation"]["median"] == pytest.approx(50 / 900)
    report = build([campaign])
    written = render_terminal(document(report))
    assert "metadata, create: 900 [800 - 925] operations/s" in written
    assert "MB/s, MB/J: metadata operations move no data" in written
    schema = SCHEMAS / "report.schema.json"
    jsonschema.validate(json.loads(json.dumps(to_json(report))), json.loads(schema.read_text()))


@pytest.mark.parametrize(
    ("metrics", "readings", "why"),
    [
        # A phase of 1 s, of which the operations took half.
        ({"span_s": 0.5}, (energy(50.0),), "operations cover 50% of the power window"),
        ({}, (), "no measured power source was found"),
    ],
)
def test_energy_of_an_operation_is_missing_with_its_reason(
    metrics: dict[str, float], readings: tuple[EnergyReading, ...], why: str
) -> None:
    (made,) = _created(900.0)
    apart = replace(made, energy=readings, metrics={**made.metrics, **metrics}, start_s=0, end_s=1)
    planned = replace(EXPERIMENT, tool="metadata", operation="metadata", spatiality=None)
    campaign = _campaign(run(0, (apart,), experiment=planned), experiments=(planned,))
    (row,) = (r for r in characterize(campaign) if r.experiment)
    assert row["operations_per_s"] is not None
    assert row.to_json()["energy_j_per_operation"] is None
    assert why in str(row.why("energy_j_per_operation"))


def test_a_transaction_has_its_energy_next_to_its_bytes() -> None:
    """Until durable: 2 s in which 100 transactions a second were made for 1 s."""
    wrote = replace(
        phase(8e6, (energy(50.0),)),
        name="write", operation="write", spatiality="mixed", bytes_moved=8_000_000,
        metrics={"operations_per_s": 100.0, "latency_p99_s": 0.004}, start_s=0.0, end_s=1.0,
        until_durable=Durable(2.0, 4e6, "an fsync", (energy(40.0),)),
    )  # fmt: skip
    campaign = _campaign(run(0, (wrote,)))
    (row,) = (r for r in characterize(campaign) if r.experiment)
    assert row["operations_per_s"] is not None and row["operations_per_s"].median == 50
    assert row.to_json()["energy_j_per_operation"]["median"] == pytest.approx(40 / 50)
    written = render_terminal(document(build([campaign])))
    assert "write: 50 operations/s, p99 4 ms" in written
    assert "J/operation" in written and "Operations/s" in written
    assert "Operations/s" not in render_terminal(
        document(build([_campaign(run(0, (phase(8e6),)))]))
    )


def test_invalid_runs_are_counted_and_left_out() -> None:
    runs = (
        run(0, (phase(100.0),)),
        run(1, (phase(900.0, validity=("served from a cache",)),)),
        run(2, validity=("exit code 1: broken",)),
    )
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert (row.n, row.invalid_runs) == (1, 2)
    assert row["bandwidth_bytes_per_s"] is not None and row["bandwidth_bytes_per_s"].median == 100
    assert set(row.invalid_reasons) == {"served from a cache", "exit code 1: broken"}


def test_estimates_are_never_measured_values() -> None:
    runs = [
        run(i, (phase(1e6, (energy(5.0, kind="modelled"), energy(7.0, domain="package"))),))
        for i in range(3)
    ]
    (row,) = (r for r in characterize(_campaign(*runs)) if r.experiment)
    assert [d.energy_kind for d in row.domains] == ["measured"]
    assert [d.energy_kind for d in row.estimates] == ["modelled"]
    assert row.measured is not None and row.measured.power_domain == "package"
    assert row.to_json()["power_w"]["median"] == 7.0


def test_only_an_estimate_leaves_the_measured_fields_null() -> None:
    runs = [run(i, (phase(1e6, (energy(5.0, kind="modelled"),)),)) for i in range(3)]
    (row,) = (r.to_json() for r in characterize(_campaign(*runs)) if r.experiment)
    assert row["power_w"] is None and row["energy_kind"] == "modelled"
    assert "estimate" in row["reasons"]["power_w"]


def test_an_invalid_reading_is_null_with_its_reason() -> None:
    runs = [run(0, (phase(1e6, (energy(None, reasons=("gap of 5 s",)),)),))]
    (row,) = (r.to_json() for r in characterize(_campaign(*runs)) if r.experiment)
    assert row["bandwidth_bytes_per_s"]["median"] == 1e6
    for figure in ("power_w", "energy_j", "efficiency_bytes_per_j"):
        assert row[figure] is None and row["reasons"][figure] == "gap of 5 s"


def test_power_of_fewer_repetitions_than_bandwidth_is_reported() -> None:
    """`n` counts bandwidths: a power median of one of them must not pass for one of three."""
    runs = [run(0, (phase(1e6, (energy(50.0),)),)),
            run(1, (phase(1e6, (energy(None, reasons=("a gap of 3 s",)),)),)),
            run(2, (phase(1e6),))]  # fmt: skip
    report = build([_campaign(*runs)])
    (row,) = (row for row in report.rows if row.experiment)
    assert (row.n, row.domains[0].n) == (3, 1)
    assert row.to_json()["domains"][0]["reason"] == "a gap of 3 s"
    assert "power of 1 of 3 repetitions: a gap of 3 s" in render_terminal(document(report))


def test_an_experiment_that_never_ran_is_a_row_with_the_reason() -> None:
    other = replace(EXPERIMENT, operation="write")
    rows = characterize(_campaign(run(0, (phase(1.0),)), experiments=(EXPERIMENT, other)))
    (row,) = (r for r in rows if r.experiment == other)
    assert row.n == 0 and "eeio resume" in str(row.why("bandwidth_bytes_per_s"))


def _report_campaigns() -> list[Campaign]:
    cached = replace(EXPERIMENT, cache=CacheLayers("on", None))
    runs = [run(i, p) for i, p in enumerate(_phases(100e6, 110e6, 120e6))]
    runs += [
        run(3, (phase(5e9, (energy(5.0, kind="modelled"),)),), experiment=cached),
        run(4, validity=("exit code 1: <b>&|",), experiment=cached),
    ]
    first = _campaign(
        *runs, experiments=(EXPERIMENT, cached), measurement=False, idle=(energy(40.0),)
    )
    return [first, _campaign(run(0, (phase(1e6),)), name="d", idle_reason="--meter none")]


def test_every_format_reports_the_same() -> None:
    report = build(_report_campaigns())
    for written in (
        render_terminal(document(report)),
        render_markdown(document(report)),
        visible_text(page.render(report)),
    ):
        assert "QUICK: not a measurement" in written
        assert "ESTIMATE" in written
        assert "110 [105 - 115]" in written  # MB/s
        assert "2.2 [2.095 - 2.296]" in written  # MB/J at 50 W: 1000 over J/GB and its quartiles
        assert "not measured" in written
        assert "SSD" in written and "fio-3.33" in written
    assert "<b>&" not in page.render(report)
    assert "\\|" in render_markdown(document(report))


def test_estimates_are_not_ranked() -> None:
    report = build(_report_campaigns())
    ranking = next(table for table in tables(report) if "best first" in table.title)
    assert len(ranking.rows) == 1
    assert "measured" in ranking.rows[0] and "modelled" not in ranking.rows[0]


def test_json_follows_its_schema_and_keeps_every_digit() -> None:
    report = build(_report_campaigns())
    made = json.loads(json.dumps(to_json(report)))
    schema = SCHEMAS / "report.schema.json"
    jsonschema.validate(made, json.loads(schema.read_text()))
    row = next(r for r in made["characterization"] if r["n"] == 3)
    joules, efficiency = row["energy_j_per_gb"], row["efficiency_bytes_per_j"]
    assert joules["median"] == pytest.approx(1e9 / 2.2e6)
    assert efficiency == {
        "median": 1e9 / joules["median"], "q1": 1e9 / joules["q3"], "q3": 1e9 / joules["q1"]
    }  # fmt: skip
    assert row["cache"] == {"buffer": "off", "disk": "on"}


def test_csv_keeps_estimates_in_columns_of_their_own() -> None:
    import csv as reader

    lines = list(reader.DictReader(render_csv(document(build(_report_campaigns()))).splitlines()))
    measured = next(line for line in lines if line["energy_kind"] == "measured")
    assert float(measured["power_w_median"]) == 50 and measured["ESTIMATE_power_w_median"] == ""
    modelled = next(line for line in lines if line["energy_kind"] == "modelled")
    assert modelled["power_w_median"] == "" and float(modelled["ESTIMATE_power_w_median"]) == 5


def test_each_experiment_has_a_line_of_its_own_in_the_plot() -> None:
    """Dots of two experiments on one line would pass for repetitions of one."""
    others = (
        replace(EXPERIMENT, api="mpiio"),
        replace(EXPERIMENT, processes=4),
        replace(EXPERIMENT, cache=CacheLayers("off", "off")),
    )
    runs = [run(i, (phase(1e6),), made) for i, made in enumerate((EXPERIMENT, *others))]
    rewritten = replace(phase(1e6), name="reread")
    runs.append(run(4, (rewritten,)))
    plot = plots.bandwidth(build([_campaign(*runs, experiments=(EXPERIMENT, *others))]))
    assert plot is not None
    svg = plot.draw()
    labels = re.findall(r">(fio[^<]*)</text>", svg)
    assert sorted(labels) == [
        "fio mpiio sequential read 4 KiB",
        "fio sequential read (reread) 4 KiB",
        "fio sequential read 4 KiB",
        "fio sequential read 4 KiB, disk cache off",
        "fio x4 sequential read 4 KiB",
    ]


def test_fio_s_own_factors_tell_rows_apart() -> None:
    deep = (("engine", "libaio"), ("fsync", "end"), ("iodepth", "32"), ("stride", "4"))
    made = replace(EXPERIMENT, arguments=(*EXPERIMENT.arguments, *deep))
    runs = [run(i, (phase(1e6),), each) for i, each in enumerate((EXPERIMENT, made))]
    written = render_terminal(document(build([_campaign(*runs, experiments=(EXPERIMENT, made))])))
    assert "fio fsync at the end engine=libaio iodepth=32 stride=4" in written


def test_a_name_with_dollars_is_no_formula() -> None:
    names = ("a$\\bad$", "b$x$")
    plot = plots.bandwidth(build([_campaign(run(0, (phase(1e6),)), name=name) for name in names]))
    assert plot is not None
    found = plot.draw()
    for name in names:
        assert f"{name}: fio sequential read" in found


def test_the_same_records_give_the_same_page() -> None:
    assert page.render(build(_report_campaigns())) == page.render(build(_report_campaigns()))


@given(st.lists(st.floats(min_value=1e-3, max_value=1e12), min_size=1, max_size=30))
def test_quartiles_are_numpys(values: list[float]) -> None:
    found = quartiles(values)
    assert found is not None
    expected = numpy.percentile(values, [25, 50, 75])
    assert [found.q1, found.median, found.q3] == pytest.approx(list(expected), rel=1e-12)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_numbers_are_printed_without_exponent_to_three_digits(value: float) -> None:
    printed = number(value)
    assert "e" not in printed or value < 1e-3
    assert float(printed) == pytest.approx(value, rel=5e-3)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({}, None),
        ({"device": None, "device_before": None, "device_after": None,
          "device_reason": "no block device lies under zfs at /tank (its pool has the devices)"},
         "not checked against a device: no block device lies under zfs at /tank (its pool"),
        ({"notes": ("by hand", "checked against dm-0, which lies on sda, sdb: what each")},
         "checked against dm-0, which lies on sda, sdb: what each"),
        # An older record.
        ({"device": None, "device_before": None, "device_after": None}, "gives no reason"),
    ],
)  # fmt: skip
def test_what_was_compared_with_a_device_is_reported_under_the_table(
    change: dict[str, Any], reported: str | None
) -> None:
    runs = [replace(run(number, (phase(1e6),)), **change) for number in range(3)]
    report = build([_campaign(*runs)])
    found = document(report, lambda: page.render(report))
    for render in (render_terminal, render_markdown, render_html):
        written = render(found)
        assert ("checked against" in written) == (reported is not None)
        if reported is not None:
            assert written.count("checked against") == 1
            assert reported in written


def test_each_row_names_what_else_decided_its_figures() -> None:
    runs = [run(n, phases) for n, phases in enumerate(_phases(1e8, 1e8, 1e8))]
    runs[0] = replace(runs[0], remarks={"limit": "at the cgroup's limit of 20 MB/s"})
    runs[2] = replace(runs[2], remarks={"limit": "at another", "other I/O": "it read 9 MB"})
    report = build([_campaign(*runs)])
    body = json.loads(json.dumps(to_json(report)))
    schema = SCHEMAS / "report.schema.json"
    jsonschema.validate(body, json.loads(schema.read_text()))
    row = next(row for row in body["characterization"] if row["n"])
    assert row["remarks"] == {
        "limit": "at the cgroup's limit of 20 MB/s (2 of 3 runs)",
        "other I/O": "it read 9 MB (1 of 3 runs)",
    }
    assert row["ranked"]
    expected = "at the cgroup's limit of 20 MB/s (2 of 3 runs)"
    assert any(expected in table.note for table in tables(report))


def test_what_goes_through_a_cache_in_memory_is_not_ranked() -> None:
    through = {"memory cache": "through the page cache of the image /x"}
    runs = [replace(run(n, p), remarks=through) for n, p in enumerate(_phases(1e8, 1e8))]
    row = next(row for row in characterize(_campaign(*runs)) if row.n)
    assert not row.ranked and row.ranked_reason == "through the page cache of the image /x"
