"""`eeio report --chart`: what fio-plot draws, and power over time, of own runs and of imports."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugin import PARSERS, InProcess

from eeio.analysis.observation import Missing
from eeio.cli import main
from eeio.record.store import load
from eeio.report.campaign.characterized import build
from eeio.report.figures import load_charts
from eeio.report.figures.drawing import SCREEN, Drawing

CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"
POWER = Path(__file__).parents[1] / "data/imports/power"


def _drawing(name: str, campaign: str) -> Drawing:
    report = build([load(CAMPAIGNS / campaign)])
    drawn = load_charts.chart(name, report, lambda _: (), SCREEN)
    assert not isinstance(drawn, load_charts.Lacking)
    (drawing,) = drawn.values()
    return drawing


def test_each_chart_is_a_file(tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("report", str(CAMPAIGNS / "drive"), "--chart", "latency,depth,power",
                      "--plots", str(tmp_path / "charts"))  # fmt: skip
    names = {"latency.svg", "depth.svg", "power-over-time.svg"}
    assert {path.name for path in (tmp_path / "charts").iterdir()} == names
    assert done.out == "" and done.err.count("plot: ") == 3
    for form, begin in (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        file = tmp_path / f"one.{form}"
        in_process("report", str(CAMPAIGNS / "drive"), "--chart", "depth", "-o", str(file))
        assert file.read_bytes().startswith(begin)


def test_points_are_the_rows_figures_by_queue_depth() -> None:
    """IOPS of random reads at depths 1 and 32, and J per request as W over IOPS."""
    drawing = _drawing("depth", "drive")
    panels = {panel.get_ylabel(): panel for panel in drawing.figure.axes}
    assert list(panels) == [
        "IOPS", "Latency, median (ms)", "Latency, p99 (ms)", "Energy of a request (mJ)",
    ]  # fmt: skip
    rows = {
        dict(row.experiment.arguments)["iodepth"]: row
        for row in build([load(CAMPAIGNS / "drive")]).rows
        if row.experiment is not None
        and row.n
        and (row.operation, row.spatiality, row.request_size_bytes) == ("read", "random", 4096)
        and dict(row.experiment.arguments)["engine"] == "libaio"
    }
    assert sorted(rows) == ["1", "32"]
    lines = panels["IOPS"].get_lines()
    points = [(list(line.get_xdata()), list(line.get_ydata())) for line in lines]
    wanted = [rows[depth]["iops"].median for depth in ("1", "32")]  # type: ignore[union-attr]
    assert ([1, 32], pytest.approx(wanted)) in points
    joules = [
        1e3 / rows[depth]["iops_per_w"].median  # type: ignore[union-attr]
        for depth in ("1", "32")
    ]
    lines = panels["Energy of a request (mJ)"].get_lines()
    points = [(list(line.get_xdata()), list(line.get_ydata())) for line in lines]
    assert ([1, 32], pytest.approx(joules)) in points


def test_percentiles_are_those_of_the_report() -> None:
    drawing = _drawing("latency", "drive")
    (panel,) = drawing.figure.axes
    ticks = [label.get_text() for label in panel.get_xticklabels()]
    assert ticks == ["50", "95", "99", "99.9", "99.99", "max"]
    row = next(
        row for row in build([load(CAMPAIGNS / "drive")]).rows if row["latency_p50_s"] is not None
    )
    first = list(panel.get_lines()[0].get_ydata())
    found = [row[f"latency_{name}_s"] for name in ("p50", "p95", "p99", "p999")]
    assert first[:4] == pytest.approx([1e3 * of.median for of in found if of is not None])


def test_charts_of_imports(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    """The queue depth is that of fio's report. Power without stored readings: each run's mean."""
    in_process("import", str(PARSERS / "fio/outputs"), "--name", "fio", code=3)
    done = in_process("report", "fio", "--chart", "latency,depth,power", "--plots",
                      str(tmp_path / "charts"))  # fmt: skip
    assert "eeio: no chart of power: no power of a run was measured\n" in done.err
    text = (tmp_path / "charts/latency.svg").read_text()
    assert "random read, 4 KiB, fio, psync, depth 1, x4" in text
    in_process("import", "files", str(POWER / "results"), "--power", str(POWER / "logs/wattsup"),
               "--power-offset", "0", "--name", "power")  # fmt: skip
    in_process("report", "power", "--chart", "power", "-o", str(tmp_path / "power.svg"))
    text = (tmp_path / "power.svg").read_text()
    assert "The mean power of 5 runs; their readings are not stored." in text


def test_an_imported_queue_depth_is_not_guessed() -> None:
    """Of an import without a depth it is unknown; eeio's own profile of fio has one of 1."""
    campaign = load(CAMPAIGNS / "quick-before")
    imported = replace(campaign, design=replace(campaign.design, suite="imported"))
    for one, depth in ((campaign, 1), (imported, None)):
        report = build([one])
        row = next(row for row in report.rows if row.n and row.experiment.tool == "fio")
        assert not isinstance(row.figures["iops"], Missing)
        assert load_charts._depth_of(row, report) == depth


@pytest.mark.parametrize(("arguments", "why"), [
    (["--chart", "latency"], "--chart: give a folder, --plots DIR, or for one chart -o FILE.svg"),
    (["--chart", "latency,depth", "-o", "x.svg"], "-o x.svg: one chart in one file"),
    (["--chart", "latency", "-o", "x.html"], "-o x.html: one chart in one file"),
    (["--chart", "latenc", "--plots", "d"], "no chart 'latenc'"),
    (["-o", "x.svg"], "no format has the suffix .svg; give --chart latency|depth|power"),
    (["--chart", "depth", "--plots", "d"], "no chart: depth: no two experiments differ only in"),
])  # fmt: skip
def test_rejected(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(["report", str(CAMPAIGNS / "meters"), *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    err = capsys.readouterr().err
    assert why in err and len(re.findall(r"^eeio", err, re.MULTILINE)) <= 1
    assert list(tmp_path.iterdir()) == []
