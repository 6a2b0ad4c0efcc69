"""The page as text: what its first screen says, in which order, and that nothing breaks it."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run, written
from tests.eeio_results.report.visible_text import visible_text
from tests.page.made import campaign

from eeio.record.design import NotMeasured
from eeio.record.run import Run
from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import build
from eeio.report.campaign.contents import document
from eeio.report.document import Document, render_html, render_markdown, render_terminal
from eeio.report.page import table
from eeio.report.page.answer import Tile, answer, marks, tiles
from eeio.report.page.page_data import page_of, to_json
from eeio.report.page.table import cells
from eeio.units.number_text import page_number

ESTIMATED = (("system", "modelled"),)


def _of(*runs: Run, **changes: Any) -> Campaign:
    return Campaign(Path("c"), design("c", max(1, len(runs)), **changes), MACHINE, (), None, runs)


def _answer(*campaigns: Campaign) -> str:
    return "".join(part.text for part in answer(page_of(build(campaigns))))


def _tiles(*campaigns: Campaign) -> dict[str, Tile]:
    return {tile.title: tile for tile in tiles(page_of(build(campaigns)))}


def test_the_answer_is_the_best_and_the_worst_past_the_page_cache() -> None:
    """2 s at 100 MB/s and 5 W are 50 J/GB; the buffered one would be the best of all."""
    cheap, dear = EXPERIMENT, replace(EXPERIMENT, request_size_bytes=8192)
    cached = replace(EXPERIMENT, cache=replace(EXPERIMENT.cache, buffer="on"))
    runs = [
        run(0, (phase(100e6, (energy(5.0),)),)),
        run(1, (replace(phase(50e6, (energy(5.0),)), request_size_bytes=8192),), experiment=dear),
        run(2, (phase(900e6, (energy(5.0),)),), experiment=cached),
    ]
    plan = design("c", 3, cheap, dear, cached)
    made = Campaign(Path("c"), plan, MACHINE, (), "no baseline was asked for", tuple(runs))
    assert _answer(made) == (
        "Moving 1 GB past the page cache costs 50.0 J ±1 %, best ranked (sequential read · 4 KiB), "
        "and 100 J ±1 %, worst ranked (sequential read · 8 KiB): a factor of 2.00. "
        "The system draws 5.00 W during I/O."
    )
    found = _tiles(made)
    assert (found["Best ranked direct I/O"].value, found["Best ranked direct I/O"].unit) == (
        "20.0", "MB/J",
    )  # fmt: skip
    assert found["Worst ranked direct I/O"].value == "10.0"
    assert found["Idle power, system"].value == "none"
    assert found["Idle power, system"].below[0].text == "no baseline was asked for"


def test_a_wide_limit_of_error_is_a_warning_next_to_its_figure() -> None:
    wide = replace(energy(5.0), uncertainty_j=4.0)
    made = page_of(build([_of(run(0, (phase(1e8, (wide,)),)))]))
    assert "the ranking limit is 10 %" in "".join(part.text for part in answer(made))
    from eeio.analysis.ranking import Rules

    made = page_of(build([_of(run(0, (phase(1e8, (wide,)),)))], Rules(0.9, None)))
    assert [part.text for part in answer(made) if part.kind == "unsure"] == ["±40 %"]


def test_the_widest_domain_that_ranks_something_is_shown_first() -> None:
    of_both = (energy(5.0, domain="package"), energy(50.0))
    assert page_of(build([_of(run(0, (phase(1e8, of_both),)))])).key == (
        "system", "meter", "measured",
    )  # fmt: skip
    no_wall = (energy(5.0, domain="package"), energy(None, reasons=("unplugged",)))
    assert page_of(build([_of(run(0, (phase(1e8, no_wall),)))])).key == (
        "package", "meter", "measured",
    )  # fmt: skip


def test_an_estimate_names_no_winner() -> None:
    made = campaign(kinds=ESTIMATED)
    assert _answer(made).startswith("Energy: not measured. ")
    found = _tiles(made)
    assert not any(title.startswith(("Best", "Worst", "IOPS")) for title in found)
    assert found["ESTIMATE: J per GB, modelled"].kind == "estimate"
    assert [mark.word for mark in marks(page_of(build([made])))] == ["ESTIMATE:"]
    lines = page_of(build([made])).lines
    assert [line.name for line in lines] == [
        line.name for line in page_of(build([campaign(kinds=ESTIMATED, scale=3)])).lines
    ]


def test_the_model_contains_the_figures_of_the_report() -> None:
    made = build([campaign()])
    shown = page_of(made)
    body = to_json(shown)
    for line, of_line in zip(shown.lines, body["lines"], strict=True):
        best = line.row.measured
        assert best is not None and best["power_w"] is not None
        assert of_line["d"][0]["w"][0] == pytest.approx(best["power_w"].median, rel=1e-4)
        assert of_line["mbs"][0] == pytest.approx(line.row.bandwidth_values[1] / 1e6, rel=0.2)
    efficiencies = [line["d"][0]["mbj"][0] for line in body["lines"]]
    assert efficiencies == sorted(efficiencies, reverse=True)


EVIL = (
    """<script>alert(1)</script>&"'`=\\""",
    "</style></script><!-- <img src=x onerror=alert(1)>",
    "\u202eright to left\u202c and \x1b[31mred\x00\x07 and \u2028 and \ud800",
    "]]> ${x} {{ x }} {% raw %} %s %(a)s {0}",
)


@pytest.mark.parametrize("name", EVIL)
def test_no_name_breaks_the_page(name: str) -> None:
    machine = replace(MACHINE, hostname=name, drive_label=name, cpu_model=name, filesystem=name)
    experiment = replace(EXPERIMENT, tool=name, target=name)
    plan = design(name, 2, experiment)
    plan = replace(plan, suite_title=name, suite=name)
    good = run(0, (phase(1e8, (energy(5.0),)),), experiment=experiment)
    bad = replace(run(1, (), experiment=experiment, validity=(name,)), raw=name)
    made = build([Campaign(Path("c"), plan, machine, (), name, (good, bad))])
    text = page.render(made)
    text.encode()
    assert text.count("<script") == 3 and text.count("</script>") == 3
    assert "<img" not in text and "<!--" not in text
    assert not any(sign in text for sign in "\u202e\u202c\u2028\x00\x1b\x07")
    for body in re.findall(r'type="application/json" id="\w+">(.*?)</script>', text):
        assert not any(sign in str(json.loads(body)) for sign in "\u202e\u2028\x00\x1b\x07\ud800")
    assert len(text.split("</body>")) == 2


def test_a_campaign_without_any_run_is_reported() -> None:
    message = visible_text(page.render(build([_of()])))
    assert "0 of 1 runs" in message or "1 of 1 runs are not done" in message
    assert "no run" in message and "not measured" in message
    assert "No experiment has both bandwidth and power: there is nothing to draw." in message


def test_a_campaign_without_a_valid_run_reports_why() -> None:
    failed = [
        run(n, (phase(1e8, (energy(5.0),)),), validity=("the disk was full",)) for n in (0, 1)
    ]
    message = visible_text(page.render(build([_of(*failed)])))
    assert "2 invalid" in message and message.count("the disk was full") >= 2
    assert "Energy: not measured. " in message


def test_one_run_is_a_page() -> None:
    text = page.render(build([_of(run(0, (phase(1e8, (energy(5.0),)),)))]))
    assert "the only experiment that may be ranked" in visible_text(text)
    assert text.count('<g class="mark') == 1


def test_metadata_and_what_was_never_planned_are_no_lines_with_figures() -> None:
    left = NotMeasured(replace(EXPERIMENT, level="device"), "no raw device was given")
    plan = replace(design("c", 1), not_measured=(left,))
    made = Campaign(Path("c"), plan, MACHINE, (), None, (run(0, (phase(1e8),)),))
    message = visible_text(page.render(build([made])))
    assert "not measured: no raw device was given" in message


def test_what_is_not_durable_is_not_ranked_and_is_reported() -> None:
    experiment = replace(EXPERIMENT, operation="write", flush="none")
    plan = design("c", 1, experiment)
    made = Campaign(
        Path("c"), plan, MACHINE, (), None, (run(0, (written(durable=False),), experiment),)
    )
    body = to_json(page_of(build([made])))
    assert body["lines"][0]["lasting"] == "another write of the run came after it"


def test_the_page_is_the_same_each_time_and_contains_no_other_page() -> None:
    made = build([campaign()])
    text = page.render(made)
    assert text == page.render(made)
    assert not re.findall(r"""(?:src|href)=["']?(?!#)[^"'\s>]""", text.split("<script>")[0])
    assert "default-src 'none'" in html.unescape(text)


def test_a_page_of_54_experiments_is_below_2_mb_and_one_of_10_000_runs_below_8() -> None:
    assert len(page.render(build([campaign(54, 6)]))) < 2e6
    assert len(page.render(build([campaign(1667, 6)]))) < 8e6


@pytest.mark.slow
def test_a_page_of_10_000_experiments_is_complete() -> None:
    text = page.render(build([campaign(10_000, 1)]))
    assert text.count('<tr id="e') == 10_000 and text.endswith("</html>")
    assert text.count('<g class="mark') == 10_000 and len(text) < 7e6
    assert "10000 rows, not repeated here: `eeio report made` prints them" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.000123, "0.000123"), (1.125, "1.12"), (12.34, "12.3"), (99.96, "100"),
     (112.5, "112"), (12345.6, "12346"), (0.5, "0.500")],
)  # fmt: skip
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert page_number(value) == text


def test_rows_carry_their_marks_and_one_repetition_has_no_range() -> None:
    doubtful = replace(energy(40.0, kind="demo"), doubtful=True, reasons=("it contradicts",))
    made = _of(run(0, (phase(100e6, (doubtful,)),)))
    found = page_of(build([made]))
    shown = [(cell.text, cell.small, cell.kind) for cell in cells(found, found.lines[0])]
    assert shown[1:5] == [
        ("100", "", ""),
        ("40.0", "DEMO, doubtful", "estimate"),
        ("2.50", "DEMO, doubtful", "estimate"),
        ("400", "±0.125 % DEMO", "estimate"),
    ]


def test_cells_are_in_the_page_or_in_its_data_and_never_in_both() -> None:
    found = page_of(build([campaign()]))
    opening = {column.key for column in table.opening()}
    for column in table.to_json(found):
        first, *others = column["cells"]
        assert (first is None) == (column["key"] in opening), column["key"]
        assert len(column["cells"]) == (len(found.keys) if column["energy"] else 1)
        assert all(len(cells) == len(found.lines) for cells in others)


def test_what_is_missing_is_a_dash_in_every_column() -> None:
    (bare,) = page_of(build([_of(run(0, (), validity=("it failed",)))])).lines
    for column in table.columns():
        expected = "0" if column.key == "n" else table.NONE
        assert column.cell(bare.row, None).text == expected


def test_a_figure_that_is_not_ranked_is_reported() -> None:
    read = replace(energy(40.0), leaves_out=("drives",))
    (line,) = page_of(build([_of(run(0, (phase(100e6, (read,)),)))])).lines
    figures = replace(line.row.domains[0], ranked_reason="too short")
    columns = {column.key: column for column in table.columns()}
    shown = columns["efficiency_bytes_per_j"].cell(line.row, figures)
    assert shown.small == "without drives, not ranked"
    assert columns["unranked"].cell(line.row, figures).text == "too short"


@pytest.mark.parametrize("render", [render_terminal, render_markdown, render_html])
def test_several_campaigns_name_the_command_that_compares_them(
    render: Callable[[Document], str],
) -> None:
    first, second = campaign(name="A"), campaign(name="B")

    def written(*campaigns: Campaign) -> str:
        report = build(campaigns)
        return html.unescape(render(document(report, lambda: page.render(report))))

    assert "eeio compare A B" in written(first, second)
    assert "eeio compare" not in written(first)
