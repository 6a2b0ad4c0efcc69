"""Writes are judged until their bytes are on the device, and rows tell of what work they are."""

import csv as reader
import html
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eeio.analysis.characterization import characterize
from eeio.analysis.observation import Missing
from eeio.analysis.ranking import Rules
from eeio.analysis.rows import Row
from eeio.guideline.measured import measured_domains
from eeio.record.run import EnergyReading, Experiment, Phase
from eeio.record.store import Campaign
from eeio.record.windows import flush_of, known, window_of
from eeio.report import page
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.campaign.tables import tables
from eeio.report.document import RENDERERS, render_csv, render_terminal
from eeio.report.figures import machines_and_drives, plots
from eeio.report.table_and_plot import Table
from eeio.schemas.published import FOLDER as SCHEMAS
from tests.eeio_results.made import (
    EXPERIMENT,
    MACHINE,
    WRITE,
    design,
    energy,
    phase,
    run,
    written,
)

_IDLE = (energy(30.0),)


def _campaign(
    *phases: Phase, experiment: Experiment = WRITE, idle: tuple[EnergyReading, ...] = _IDLE
) -> Campaign:
    runs = tuple(run(i, (one,), experiment) for i, one in enumerate(phases))
    return Campaign(Path("c"), design("c", len(runs), experiment), MACHINE, idle, None, runs)


def _row(campaign: Campaign, rules: Rules | None = None) -> Row:
    (row,) = (r for r in characterize(campaign, rules or Rules()) if r.experiment)
    return row


def _median(row: Row, name: str) -> float:
    value: Any = row.to_json()
    for part in name.split("."):
        value = value[part]
    return float(value["median"])


def test_a_write_is_judged_until_its_bytes_are_on_the_device() -> None:
    """1 GB in 2 s into the page cache and 2 s more onto the device, at 50 W: 250 MB/s, 200 J."""
    row = _row(_campaign(*[written()] * 3))
    assert (row.flush, row.durable) == ("none", True)
    assert _median(row, "bandwidth_bytes_per_s") == 250e6
    assert _median(row, "page_cache_bandwidth_bytes_per_s") == 500e6
    assert (_median(row, "power_w"), _median(row, "energy_j")) == (50, 200)
    assert _median(row, "efficiency_bytes_per_j") == 5e6
    assert _median(row, "energy_j_per_gb") == 200
    assert (_median(row, "duration_s"), _median(row, "bytes")) == (4, 1e9)
    assert row.ranked and row.ranked_reason is None


def test_an_energy_of_0_j_with_an_uncertainty_is_not_known() -> None:
    """As of a counter that does not change during the window: 0 J ± 1200 J."""
    still = replace(energy(50.0), energy_j=0.0, power_w=0.0, uncertainty_j=1200.0)
    assert known(still).energy_j is None and not known(still).valid
    assert known(replace(still, uncertainty_j=0.0)).energy_j == 0.0


def test_what_is_above_idle_stands_next_to_the_total() -> None:
    """At 50 W over an idle of 30 W: 20 W, 80 J for the GB, 12.5 MB/J."""
    row = _row(_campaign(*[written()] * 3))
    assert _median(row, "marginal.power_w") == 20
    assert _median(row, "marginal.energy_j_per_gb") == pytest.approx(80)
    assert _median(row, "marginal.efficiency_bytes_per_j") == 12.5e6


def test_marginal_is_missing_where_idle_is_or_where_power_is_no_higher() -> None:
    row = _row(_campaign(written(), idle=()))
    assert row.to_json()["marginal"]["power_w"] is None
    assert "idle power was not measured" in str(row.why("marginal_power_w"))
    # 25 W is below the idle 30 W; 50 W known to 25 W may be.
    for poor in (written(25.0), written(uncertainty_j=100.0)):
        row = _row(_campaign(written(), poor))
        for name in ("efficiency_bytes_per_j", "energy_j_per_gb"):
            assert row.to_json()["marginal"][name] is None
            assert str(row.why(f"marginal_{name}")).startswith("in 1 of 2 repetitions power is not")
        assert row.to_json()["marginal"]["power_w"] is not None
    other = _row(_campaign(written(), idle=(energy(30.0, domain="package"),)))
    assert other.to_json()["marginal"]["power_w"] is None


def test_a_baseline_above_the_power_of_experiments_is_a_warning() -> None:
    """50 W during the writes."""
    campaigns = [_campaign(written(), idle=(energy(30.0),))]
    assert not any("idle" in message for message in build(campaigns).warnings)
    campaigns = [_campaign(written(), idle=(energy(80.0),))]
    (warning,) = [message for message in build(campaigns).warnings if "idle" in message]
    assert "80 W idle is above the power of 1 of 1 experiments (50 W or more)" in warning


def test_idle_energy_is_shared_out_over_a_duty_cycle() -> None:
    """In use for a tenth of the time: 200 J and nine times 4 s at 30 W for each GB."""
    row = _row(_campaign(written()), Rules(busy=0.1))
    assert _median(row, "busy_energy_j_per_gb") == pytest.approx(200 + 9 * 4 * 30)
    assert _row(_campaign(written())).to_json()["busy_energy_j_per_gb"] is None
    without = _row(_campaign(written(), idle=()), Rules(busy=0.1))
    assert "idle" in str(without.why("busy_energy_j_per_gb"))


def test_repetitions_that_are_not_durable_do_not_join_those_that_are() -> None:
    row = _row(_campaign(written(), written(durable=False), written()))
    assert row.durable and row.n == 2 and row.invalid_runs == 0
    assert _median(row, "bandwidth_bytes_per_s") == 250e6
    assert str(row.why_not_durable).startswith("1 of 3 repetitions are left out: another write")


def test_a_write_that_is_not_durable_is_shown_and_not_ranked() -> None:
    row = _row(_campaign(written(durable=False)))
    assert row.durable is False and not row.ranked
    assert row.ranked_reason == "not durable: another write of the run came after it"
    assert _median(row, "bandwidth_bytes_per_s") == 500e6


def test_records_of_version_1_say_that_the_flush_is_unknown() -> None:
    old = replace(written(), until_durable=None, durable_reason=None)
    row = _row(_campaign(old, experiment=replace(WRITE, flush=None)))
    assert (row.flush, row.durable, row.ranked) == ("unknown", False, False)
    assert str(row.why_not_durable).startswith("flush: unknown")
    assert "flush: unknown" in str(row.why("page_cache_bandwidth_bytes_per_s"))
    assert _median(row, "bandwidth_bytes_per_s") == 500e6


def test_reads_have_neither_flush_nor_page_cache_rate() -> None:
    row = _row(_campaign(phase(1e6, (energy(50.0),)), experiment=EXPERIMENT))
    assert row.flush is None and row.durable is None and row.ranked
    assert row.to_json()["page_cache_bandwidth_bytes_per_s"] is None
    assert flush_of(replace(EXPERIMENT, flush="end"), "read") is None


def test_a_tool_whose_time_contains_its_flush_has_no_page_cache_rate() -> None:
    made = replace(WRITE, flush="end")
    row = _row(_campaign(written(flush=0.0, includes_flush=True), experiment=made))
    assert row.flush == "end" and row.durable
    assert "includes its flush" in str(row.why("page_cache_bandwidth_bytes_per_s"))


def test_what_is_known_worse_than_the_share_is_not_ranked() -> None:
    rough = _campaign(written(uncertainty_j=30.0))  # of 200 J
    row = _row(rough)
    assert _median(row, "uncertainty_relative") == pytest.approx(0.15)
    assert row.ranked_reason == "the energy is known only to ±15 %; the ranking limit is 10 %"
    assert _row(rough, Rules(most_uncertain=0.2)).ranked


def test_a_window_that_is_too_short_is_the_reason_before_what_it_makes_uncertain() -> None:
    rough = _campaign(written(uncertainty_j=30.0))
    requested = replace(rough.design.protocol, min_phase_s=10.0)
    short = replace(rough, design=replace(rough.design, protocol=requested))
    assert _row(short).ranked_reason == ("lasted 4 s, shorter than the requested 10 s")


def test_requests_are_counted_over_the_time_until_durable() -> None:
    reported = {"iops": 1000.0, "latency_p99_s": 0.004, "latency_max_s": 0.5}
    row = _row(_campaign(written(metrics=reported)))
    assert _median(row, "iops") == 500
    latency = row.to_json()["latency_s"]
    assert latency["p99"]["median"] == 0.004 and latency["max"]["q1"] == 0.5
    assert latency["p50"] is None


def test_a_program_that_computes_has_no_energy_of_a_gb_until_durable_either() -> None:
    computing = replace(written(), bytes_moved=500_000_000)  # I/O in 1 of 2 s, then 2 s of flush
    assert window_of(WRITE, computing).why_no_efficiency == (
        "I/O covers 75% of the power window; the record contains the bytes and energy of the "
        "complete window"
    )
    row = _row(_campaign(computing))
    assert row.to_json()["energy_j_per_gb"] is None and not row.ranked
    assert "75%" in str(row.why("energy_j_per_gb"))


def test_what_was_observed_at_the_target_is_reported() -> None:
    campaign = _campaign(replace(written(), spatiality_seen="strided by 8192 bytes"))
    assert _row(campaign).to_json()["spatiality_seen"] == "strided by 8192 bytes"
    reported = render_terminal(document(build([campaign])))
    assert "requests arrived at the target as strided by 8192 bytes" in reported
    alike = _campaign(replace(written(), spatiality_seen="sequential"))
    assert "what arrived" not in render_terminal(document(build([alike])))
    assert _row(campaign).to_json()["spatiality_seen_by"] == "requests"


def test_what_the_drive_saw_is_called_so() -> None:
    by_drive = replace(written(), spatiality_seen="random", spatiality_seen_by="drive")
    row = _row(_campaign(by_drive)).to_json()
    assert (row["spatiality_seen"], row["spatiality_seen_by"]) == ("random", "drive")
    reported = render_terminal(document(build([_campaign(by_drive)])))
    assert "requests reached the drive as random" in reported


def test_what_was_not_observed_reports_why() -> None:
    unseen = replace(written(), spatiality_seen_reason="tracing the drive's requests needs root")
    row = _row(_campaign(unseen))
    assert row.to_json()["spatiality_seen_by"] is None
    assert row.spatiality_seen == Missing("tracing the drive's requests needs root")


def _tables(campaign: Campaign, *columns: str) -> dict[str, Table]:
    return {table.title: table for table in tables(build([campaign], columns=columns))}


def _column(table: Table, header: str) -> list[str]:
    return [row[table.header.index(header)] for row in table.rows]


_RANKING = "Energy efficiency (MB/J), measured power, best first in each domain"
_BELOW = "Energy efficiency (MB/J), measured power, not ranked"


def test_tables_tell_the_work_and_keep_the_page_cache_apart() -> None:
    reported = {"iops": 1000.0, "latency_p99_s": 0.004}
    found = _tables(_campaign(*[written(metrics=reported)] * 3), "iops", "latency")
    level = found["Level: filesystem"]
    cells = {name: _column(level, name)[0] for name in level.header}
    assert cells["Flush"] == "none" and cells["MB/s"].startswith("250")
    assert cells["MB/s into page cache"] == "500"
    assert (cells["Time (s)"], cells["MB"], cells["J/GB"]) == ("4", "1000", "200")
    assert (cells["Limit"], cells["W above idle"]) == ("±0.05 %", "20")
    assert (cells["MB/J above idle"], cells["J/GB above idle"]) == ("12.5", "80")
    assert (cells["IOPS/W"], cells["p99 (ms)"], cells["p50 (ms)"]) == ("10", "4", "-")
    assert len(found[_RANKING].rows) == 1 and _BELOW not in found


def test_a_ranking_names_below_it_what_it_leaves_out() -> None:
    rough = replace(WRITE, request_size_bytes=8192)
    runs = (run(0, (written(),), WRITE), run(1, (written(uncertainty_j=60.0),), rough))
    made = Campaign(Path("c"), design("c", 2, WRITE, rough), MACHINE, _IDLE, None, runs)
    found = _tables(made)
    assert len(found[_RANKING].rows) == 1
    assert _column(found[_BELOW], "Why not") == [
        "the energy is known only to ±30 %; the ranking limit is 10 %"
    ]
    only_rough = _tables(_campaign(written(durable=False)))
    assert not only_rough[_RANKING].rows and "for the reasons below" in only_rough[_RANKING].note
    assert _column(only_rough[_BELOW], "Flush") == ["none, not durable"]


def test_plots_tell_what_is_not_ranked_and_how_writes_were_flushed() -> None:
    ranked = plots.efficiency(build([_campaign(written())]))
    assert ranked is not None and "hollow" not in ranked.title
    assert "write 4 KiB, flush none" in ranked.draw()
    other = plots.efficiency(build([_campaign(written(durable=False))]))
    assert other is not None and "hollow: not ranked" in other.draw()
    assert "flush none, not durable" in other.draw()


def test_figures_of_a_study_keep_flushes_apart() -> None:
    each = replace(WRITE, flush="each")
    runs = (run(0, (written(),), WRITE), run(1, (written(),), each))
    made = Campaign(Path("c"), design("c", 2, WRITE, each), MACHINE, _IDLE, None, runs)
    names = {name for name in machines_and_drives.draw([made]) if name.startswith("bandwidth")}
    assert names == {
        "bandwidth-write-flush-none.svg",
        "bandwidth-write-flush-each.svg",
    }
    assert "bandwidth-write.svg" in machines_and_drives.draw([_campaign(written())])


def test_csv_has_the_figures_of_version_2_behind_the_older_ones() -> None:
    metrics = {"iops": 1000.0, "latency_p99_s": 0.004}
    lines = list(
        reader.DictReader(
            render_csv(document(build([_campaign(written(metrics=metrics))]))).split("\n")
        )
    )
    line = next(line for line in lines if line["operation"] == "write")
    assert (line["flush"], line["durable"], line["ranked"]) == ("none", "yes", "yes")
    assert float(line["page_cache_bandwidth_bytes_per_s_median"]) == 500e6
    assert float(line["energy_j_per_gb_median"]) == 200
    assert float(line["marginal_power_w_median"]) == 20
    assert float(line["latency_p99_s_median"]) == 0.004 and line["latency_p50_s_median"] == ""


@pytest.mark.parametrize(
    ("tool", "whose", "what"),
    [
        ("rocksdb", "process", "the bytes that the kernel counts for its processes"),
        ("varmail", "tool", "the bytes that the program reports; the drive may have moved more"),
        ("command", "drive", "the bytes that the drive moved for it"),
    ],
)
def test_every_format_reports_whose_bytes_an_application_s_are(
    tool: str, whose: str, what: str
) -> None:
    experiment = replace(EXPERIMENT, level="application", tool=tool)
    campaign = _campaign(phase(1e6, (energy(50.0),)), experiment=experiment)
    report = build([campaign])
    message = f"{tool}: MB, MB/s, MB/J and J/GB count {what}"
    made = document(report, lambda: page.render(report))
    for form in ("table", "markdown", "latex", "html"):
        shown = " ".join(html.unescape(RENDERERS[form](made)).replace("\\", "").split())
        assert message in shown, form

    lines = reader.DictReader(StringIO(render_csv(document(report))))
    (line,) = [line for line in lines if line["tool"] == tool]
    (row,) = [row for row in to_json(report)["characterization"] if row["tool"] == tool]
    assert line["bytes_of"] == row["bytes_of"] == whose


def test_a_row_names_its_drive_or_reports_why_not() -> None:
    campaign = _campaign(written())
    body = _row(campaign).to_json()
    assert body["drive"] is None and "no identity of the drive" in body["reasons"]["drive"]
    labelled = replace(campaign, machine=replace(MACHINE, drive_label="the red one"))
    assert _row(labelled).to_json()["drive"] == "the red one"
    assert "drive" not in _row(labelled).to_json()["reasons"]


def test_the_report_of_writes_follows_its_schema() -> None:
    campaign = _campaign(written(metrics={"iops": 3.0, "latency_p50_s": 0.1}), written())
    body = json.loads(json.dumps(to_json(build([campaign], Rules(busy=0.5)))))
    schema = SCHEMAS / "report.schema.json"
    jsonschema.validate(body, json.loads(schema.read_text()))
    for row in body["characterization"]:
        missing = [name for name in ("iops", "latency_s", "energy_j_per_gb", "duration_s")
                   if row[name] is None]  # fmt: skip
        assert set(missing) <= row["reasons"].keys()


@pytest.mark.parametrize(("limit_j", "shown"), [(49.0, True), (51.0, False), (139.0, False)])
def test_an_energy_that_is_not_known_at_all_is_not_shown(limit_j: float, shown: bool) -> None:
    """Phases of some milliseconds showed energies with an uncertainty of 139 %."""
    reading = replace(energy(50.0), uncertainty_j=limit_j)
    (found,) = window_of(EXPERIMENT, phase(1e6, (reading,))).energy
    assert (found.energy_j is not None) == (found.power_w is not None) == found.valid == shown
    if not shown:
        assert f"known only to ±{limit_j:.0f} %" in found.reasons[-1]


@pytest.mark.parametrize(("limit_j", "domains"), [(49.0, ["system"]), (51.0, [])])
def test_a_domain_whose_energy_is_not_known_is_not_measured(
    limit_j: float, domains: list[str]
) -> None:
    reading = replace(energy(50.0), uncertainty_j=limit_j)
    campaign = _campaign(phase(1e6, (reading,)), experiment=EXPERIMENT)
    assert measured_domains([campaign]) == domains


def test_energy_of_a_gb_is_by_the_bytes_or_by_the_bandwidth_without_them() -> None:
    window = window_of(EXPERIMENT, phase(250e6, (energy(50.0),)))  # 500 MB in 2 s at 50 W
    reading = window.energy[0]
    assert window.j_per_gb(reading) == 200.0
    assert window.j_per_gb(reading, 20.0) == 80.0
    by_rate = replace(window, bytes_moved=None)
    assert (by_rate.seconds_per_gb(None), by_rate.seconds_per_gb(9.0)) == (4.0, 4.0)
    assert replace(by_rate, bandwidth_bytes_per_s=None).seconds_per_gb(2.0) is None
    assert window.seconds_per_gb(None) is None
    for gone in (
        replace(reading, power_w=None),
        replace(reading, power_w=0.0),
        replace(reading, energy_j=None),
    ):
        assert window.j_per_gb(gone) is None
        assert window.j_per_gb(gone, 20.0) is None


def test_io_of_nine_tenths_of_the_time_until_durable_is_enough() -> None:
    def why(moved: int, flush_s: float) -> str | None:
        return window_of(
            WRITE, replace(written(flush=flush_s), bytes_moved=moved)
        ).why_no_efficiency

    # I/O in `moved` / 500 MB/s of 2 s, and in all of the flush.
    assert why(800_000_000, 2.0) is None
    assert why(780_000_000, 2.0) == (
        "I/O covers 89% of the power window; the record contains the bytes and energy of the "
        "complete window"
    )
    # A flush that another clock has before the tool's end adds no time.
    assert why(1_000_000_000, -0.01) is None
    unknown = replace(written(), start_s=None)
    assert window_of(WRITE, unknown).why_no_efficiency is None


def test_a_write_is_durable_by_itself_if_the_tool_s_time_has_its_flush() -> None:
    flushed = replace(written(durable=False, includes_flush=True), durable_reason=None)
    assert window_of(replace(WRITE, flush="end"), flushed).durable is True
    late = replace(flushed, durable_reason="another write of the run came after it")
    assert window_of(replace(WRITE, flush="end"), late).durable is False
    not_flushed = replace(flushed, includes_flush=False)
    assert window_of(WRITE, not_flushed).durable is False
    assert window_of(EXPERIMENT, phase(1e6)).durable is None
