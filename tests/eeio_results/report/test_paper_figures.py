"""What papers print beside the campaigns' own figures, and which of it has a counterpart."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_results.made import MACHINE, design, energy, phase, run

from eeio import studies
from eeio.record.run import CacheLayers, Experiment, IdleMedian, Run
from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import contents, document, drawings
from eeio.report.document import render_terminal
from eeio.report.figures import paper_figures
from eeio.report.figures.drawing import SCREEN, file_of
from eeio.studies import Chapter, PaperFigure
from eeio.studies.chang2014 import paper_figures as chang2014
from eeio.studies.chang2014.cells import VariantCell

FIGURE = PaperFigure(
    campaign="c", topic="power", what="idle", unit="W", printed=50.0, source="table 3", of="PC",
    ours=25.0, remark="idle baseline",
)  # fmt: skip
KIB = 1024


def _read(size: int, spatiality: str = "sequential") -> Experiment:
    return Experiment("filesystem", "fio", "read", spatiality, size, CacheLayers("off", None))


def _campaign(
    suite: str, *measured: tuple[Experiment, float, float], rotational: bool | None = False,
    measurement: bool = True,
) -> Campaign:  # fmt: skip
    """Each experiment three times with that bandwidth (bytes/s) and power (W)."""
    runs: list[Run] = []
    for experiment, bandwidth, power in measured:
        for _ in range(3):
            reported = replace(
                phase(bandwidth, (energy(power),)),
                request_size_bytes=experiment.request_size_bytes,
                spatiality=experiment.spatiality or "none",
                name=experiment.operation or "none",
                operation=experiment.operation or "none",
            )
            runs.append(run(len(runs), (reported,), experiment))
    made = design("c", len(runs), *(one for one, _, _ in measured), measurement=measurement)
    machine = replace(MACHINE, device_rotational=rotational)
    idle = (energy(20.0),)
    return Campaign(Path("c"), replace(made, suite=suite), machine, idle, None, tuple(runs))


SIZES = ((_read(32 * KIB), 10e6, 20.0), (_read(4096 * KIB), 40e6, 22.0))


def _figures(*campaigns: Campaign) -> Sequence[PaperFigure]:
    return [figure for chapter in studies.chapters(campaigns) for figure in chapter.beside]


def test_the_ratio_of_changes_is_that_of_the_factors() -> None:
    assert FIGURE.ratio == 0.5
    change = replace(FIGURE, unit="change", printed=1.0, ours=3.0)
    assert change.ratio == 2.0
    assert (
        paper_figures.value(change, 3.0) == "+300 %"
        and paper_figures.value(change, -0.25) == "-25 %"
    )
    assert replace(FIGURE, ours=None).ratio is None


def test_what_has_no_counterpart_is_no_row_but_counted_with_its_reason() -> None:
    none = replace(FIGURE, ours=None, remark="no meter was read")
    chapter = Chapter(paper="X 2000", beside=(FIGURE, none, none), apart="Another machine.")
    (table,) = paper_figures.tables(chapter, "")
    assert table.rows == (("idle", "50 W", "25 W", "0.5", "PC", "table 3", "idle baseline"),)
    assert table.note == (
        "Another machine.\n2 of the paper's figures without a counterpart here: no meter was read"
    )
    assert paper_figures.plots(Chapter(paper="X 2000", beside=(none,)), "") == []


def test_pavans_claims_of_one_drive_stand_next_to_a_campaign_of_its_suite() -> None:
    found = {
        (figure.what, figure.of): figure
        for figure in _figures(_campaign("eeio-pavan2018", *SIZES))
        if figure.topic == "bandwidth"
    }
    pc = found["size 4 MiB over 32 KiB: sequential read", "PC, SSDs"]
    assert (pc.printed, pc.source) == (0.75, "section 4")
    assert pc.ours == pytest.approx(3.0) and pc.ratio == pytest.approx(4 / 1.75)
    assert "(n 3, 3)" in pc.remark
    random = found["size 4 MiB over 32 KiB: random read", "PC, SSDs"]
    assert (random.ours, random.remark) == (None, "the campaign has no such experiments")
    # Those of the other kind of drive, and those between machines, are none of ours.
    assert not any("HDD" in of for _, of in found)
    assert not any("machine" in figure.what for figure in found.values())


def test_the_rise_of_the_drive_is_over_the_median_at_idle_as_pavans() -> None:
    made = _campaign("eeio-pavan2018", *SIZES)
    runs = [
        replace(run, phases=(replace(p, energy=(*p.energy, energy(0.75, domain="device"))),))
        for run in made.runs
        for p in run.phases
    ]
    made = replace(
        made, runs=tuple(runs), idle=(energy(20.0), energy(0.6, domain="device")),
        idle_medians=(IdleMedian("device", "meter", 0.5),),
    )  # fmt: skip
    found = [f for f in _figures(made) if f.unit == "W"]
    assert [(f.printed, f.ours) for f in found] == [(0.12, 0.25), (0.2, 0.25)]
    unkept = [f for f in _figures(replace(made, idle_medians=())) if f.unit == "W"]
    assert {(f.ours, f.remark) for f in unkept} == {
        (None, "the median of idle power was not stored")
    }


def test_nothing_stands_next_to_a_campaign_of_another_suite() -> None:
    other = _campaign("eeio-suite", *SIZES)
    assert _figures(other) == []
    assert "beside_papers" not in to_json(build([other]))


def test_idle_and_busy_power_stand_next_to_table_3_of_pavan_2017() -> None:
    found = {(f.what, f.of): f for f in _figures(_campaign("eeio-pavan2017", *SIZES))}
    assert {of for _, of in found} == {"MPSoC, SSD1", "MPSoC, SSD2", "PC, SSD1", "PC, SSD2"}
    idle = found["idle", "PC, SSD1"]
    assert (idle.printed, idle.ours, idle.unit) == (54.3, 20.0, "W")
    assert found["during the experiments", "MPSoC, SSD2"].ours == pytest.approx(21.0)


def test_the_power_of_writes_over_reads_stands_next_to_machado() -> None:
    # Direct, flushed within the tool's own time: as durable as it says.
    write = (replace(_read(64 * KIB), operation="write", flush="each"), 10e6, 30.0)
    campaign = _campaign("eeio-machado2017", (_read(64 * KIB), 10e6, 20.0), write)
    (first, second) = _figures(campaign)
    assert (first.printed, second.printed) == (0.07, 0.23)
    assert first.ours == pytest.approx(0.5)
    assert first.remark == "experiments that write: 1, that read: 1"
    alone = _campaign("eeio-machado2017", (_read(64 * KIB), 10e6, 20.0))
    assert [figure.ours for figure in _figures(alone)] == [None, None]


def test_bt_ios_deviation_stands_next_to_table_1_of_panadero() -> None:
    library = replace(_read(128 * KIB), level="library", tool="ior")
    application = replace(_read(128 * KIB), level="application", tool="btio")
    found = _figures(
        _campaign("eeio-panadero2012", (library, 10e6, 20.0), (application, 9e6, 18.0))
    )
    assert [(f.of, f.printed) for f in found] == [
        ("work station", 0.07), ("cluster, RAID 1", 0.008), ("cluster, RAID 5", 0.005),
    ]  # fmt: skip
    # Either way: 10 % below is as far as 10 % above.
    assert [f.ours for f in found] == [pytest.approx(0.1)] * 3
    alone = _figures(_campaign("eeio-panadero2012", (application, 9e6, 18.0)))
    assert all(f.ours is None and "no read at the library" in f.remark for f in alone)


def _cell(variant: str, ghz: float | None, **changes: Any) -> VariantCell:
    experiment = Experiment(
        "filesystem", "iozone", "write", "sequential", 32 * KIB, CacheLayers("on", None),
        processes=256, flush="none", arguments=(("file_size", "32m"),),
    )  # fmt: skip
    hertz = None if ghz is None else round(ghz * 1e9)
    return VariantCell(
        "c", experiment, "", variant, hertz, "write", 10, 0, None, {}, None, None, **changes
    )


def test_chang_has_counterparts_of_the_same_workload_alone() -> None:
    cells = [
        _cell("ext4", 1.6, speedup=1.0),
        _cell("ext4", 3.2, speedup=0.6),
        _cell("delayjc", 1.6, ratio_to_ext4=1.5),
        _cell("delayjc", 3.2, ratio_to_ext4=2.5),
    ]
    found = {figure.source: figure for figure in chang2014.compared(cells)}
    assert (found["figure 2"].printed, found["figure 2"].ours) == (0.53, 0.6)
    assert found["figure 2"].remark == "3.2 GHz, n 10"
    assert (found["figure 7a"].printed, found["figure 7a"].ours) == (3.65, 2.5)
    assert found["figure 8a"].remark == "the campaign has no such workload"
    one = {
        figure.source: figure for figure in chang2014.compared([_cell("ext4", None, speedup=1.0)])
    }
    assert one["figure 2"].remark == "the campaign has only one frequency"
    assert one["figure 7a"].remark == "the campaign has no such variant"
    ours = cells[0].experiment
    # The paper's flush and the size of each thread's file, 128 KiB, make the workload too.
    for not_the_paper in (
        replace(ours, flush="end"), replace(ours, arguments=(("file_size", "64m"),)),
    ):  # fmt: skip
        other = chang2014.compared([replace(cell, experiment=not_the_paper) for cell in cells])
        assert all(figure.ours is None for figure in other)


def test_every_format_has_it_and_its_quick_mark(tmp_path: Path) -> None:
    report = build([_campaign("eeio-pavan2017", *SIZES, measurement=False)])
    title = (
        "Pavan et al. 2017 compared with this report: power of the system - QUICK: not a "
        "measurement"
    )
    titles = [table.title for table in contents(report)]
    assert titles.index(title) > titles.index("Level: device"), "the campaign's own figures first"
    assert title in render_terminal(document(report))
    body = json.loads(json.dumps(to_json(report)))
    assert body["beside_papers"][0]["paper"] == "Pavan et al. 2017"
    plot = next(plot for plot in drawings(report) if plot.name.startswith("paper-"))
    assert plot.name == "paper-pavan-et-al-2017-power-of-the-system.svg"
    svg = plot.draw()
    assert "paper" in svg and "this campaign: c" in svg and "QUICK" in svg
    assert plot.drawing is not None
    assert file_of(plot.drawing(SCREEN), "png").startswith(b"\x89PNG")
    assert title in page.render(report)
