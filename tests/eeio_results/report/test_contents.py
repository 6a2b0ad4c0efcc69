"""What stands in a report: one list of tables and one of plots, whatever the format."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results.made import MACHINE, design, energy, phase, run

from eeio.commands.plots import plot_files, write_plots
from eeio.record.store import Campaign
from eeio.report import page
from eeio.report.campaign.characterized import Report, build
from eeio.report.campaign.contents import contents, document, drawings
from eeio.report.document import render_markdown, render_terminal
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter


def _report(*chapters: Chapter) -> Report:
    runs = (run(0, (phase(1e6, (energy(5.0),)),)),)
    built = build([Campaign(Path("c"), design("c", 1), MACHINE, (), None, runs)])
    return replace(built, chapters=chapters)


CHAPTER = Chapter(
    tables=(Table("First of all", ("Figure",), (("1.5",),)),),
    plots=(Plot("own.svg", "A plot of its own", lambda: "<svg><!-- own --></svg>"),),
)


def test_the_tables_of_a_study_stand_first_in_every_format() -> None:
    report = _report(CHAPTER)
    assert contents(report)[0].title == "First of all"
    assert render_terminal(document(report)).startswith("First of all\n")
    assert "## First of all" in render_markdown(document(report))
    assert "<h2>First of all</h2>" in page.render(report)


def test_the_files_have_all_plots_and_the_page_those_of_studies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _report(CHAPTER)
    found = drawings(report)
    assert [plot.name for plot in found] == ["bandwidth.svg", "efficiency.svg", "own.svg"]
    written = page.render(report)
    # Of the rest the page has a chart of its own, which can be asked.
    assert (
        "<figcaption>A plot of its own</figcaption>"
        '<svg role="img" aria-label="A plot of its own"><!-- own --></svg>'
    ) in written
    assert written.count("<figcaption") == 1
    write_plots(plot_files(report, ("svg",)), tmp_path / "plots")
    written_files = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {p.name for p in found} <= written_files
    assert (tmp_path / "plots/own.svg").read_text() == "<svg><!-- own --></svg>"
    assert capsys.readouterr().err.count("plot: ") == len(written_files)


def test_without_anything_measured_nothing_is_drawn() -> None:
    empty = build([Campaign(Path("c"), design("c", 1), MACHINE, (), None, ())])
    assert drawings(empty) == []
