"""The static figures: what each says of itself, whole and legible wherever it is shown."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, energy, phase, run

from eeio.analysis.over_time import PowerSeries
from eeio.files import documents
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build
from eeio.report.figures import drawing, machines_and_drives, plots
from eeio.report.figures.drawing import COLOURS, SCREEN, WIDTHS, Look, file_of

pytest.importorskip("matplotlib")
LOOKS = [SCREEN, *WIDTHS.values()]


def _campaign(measurement: bool = True, kind: str = "measured", spread: float = 1.0) -> Campaign:
    other = replace(EXPERIMENT, request_size_bytes=1 << 20)
    runs = tuple(
        run(
            2 * n + place,
            (
                replace(
                    phase(1e6 * (1 + n) * spread**place, (energy(5.0 + n, kind),)),
                    request_size_bytes=which.request_size_bytes,
                ),
            ),
            which,
        )
        for n in range(4)
        for place, which in enumerate((EXPERIMENT, other))
    )
    idle = (energy(3.0, kind),)
    return Campaign(
        Path("c"), design("c", 8, EXPERIMENT, other, measurement=measurement), MACHINE, idle, None,
        runs,
    )  # fmt: skip


@cache
def _svgs(
    measurement: bool = True, kind: str = "measured", spread: float = 1.0, look: Look = SCREEN
) -> Mapping[str, str]:
    """The files of `_campaign`, drawn once for all tests."""
    campaign = _campaign(measurement, kind, spread)
    report = build([campaign])
    found = dict(machines_and_drives.drawn([campaign], look))
    for plot in (plots.bandwidth(report), plots.efficiency(report)):
        if plot is not None and plot.drawing is not None:
            found[f"report-{plot.name}"] = plot.drawing(look)
    return MappingProxyType({name: file_of(one, "svg").decode() for name, one in found.items()})


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_stand_out_on_white(colour: str) -> None:
    assert 1.05 / (_luminance(colour) + 0.05) >= 4.5


@pytest.mark.parametrize("look", LOOKS)
def test_quick_is_stamped_inside_every_figure(look: Look) -> None:
    drawn = _svgs(measurement=False, look=look)
    assert {"bandwidth-read", "idle-busy", "report-bandwidth.svg"} <= set(drawn)
    for name, svg in drawn.items():
        assert svg.count("QUICK") >= 3, name  # the name, the title, each panel
    assert all("QUICK" not in svg for svg in _svgs().values())


def _readings(campaign: Campaign) -> list[PowerSeries]:
    """100 W at rest; each run its order in W, and one peak."""
    times = [n / 100 for n in range(900, 1400)]
    return [
        PowerSeries(
            ("system", "meter", "measured"), times,
            [100.0 + (50.0 if n == 150 else 0.0) for n, _ in enumerate(times)],
        ),
        PowerSeries(("package", "meter", "measured"), times, [1.0] * len(times)),
    ]  # fmt: skip


def test_the_bandwidth_of_the_tools_log_is_on_a_second_axis(tmp_path: Path) -> None:
    made = replace(_campaign(measurement=False), folder=tmp_path)
    for each in made.runs:
        raw = tmp_path / each.raw
        raw.mkdir(parents=True, exist_ok=True)
        (raw / "fio_bw.1.log").write_text("500, 97656, 0, 0, 0\n1000, 195312, 0, 0, 0\n")
    figure = machines_and_drives.drawn([made], SCREEN, readings=_readings)["power-over-time"].figure
    right = [axes for axes in figure.axes if axes.get_ylabel().startswith("Bandwidth (MB/s)")]
    assert right
    for axes in right:
        for line in axes.get_lines():
            assert list(line.get_xdata()) == [0.5, 1.0]
            assert list(line.get_ydata()) == pytest.approx([100.0, 200.0], rel=1e-4)
    without = machines_and_drives.drawn([_campaign(measurement=False)], SCREEN, readings=_readings)
    labels = [axes.get_ylabel() for axes in without["power-over-time"].figure.axes]
    assert not any(label.startswith("Bandwidth") for label in labels)


@pytest.mark.parametrize("look", LOOKS)
def test_power_over_time_is_that_of_the_widest_domain_with_its_peaks(look: Look) -> None:
    made = _campaign(measurement=False)
    drawn = machines_and_drives.drawn([made], look, readings=_readings)
    names = ["power-over-time", "power-over-normalized-time", "power-readings"]
    assert set(names) <= set(drawn)
    for name in names:
        svg = file_of(drawn[name], "svg").decode()
        assert svg.count("QUICK") >= 3, name
        assert "from 100 to 150" in drawn[name].description
        assert "Power of the system (W)" in svg
    line = drawn["power-over-time"].figure.axes[0].lines[0]
    assert max(line.get_ydata()) == 150.0
    assert len(line.get_ydata()) < 250 or len(_readings(made)[0].times_s) <= 500


@pytest.mark.parametrize(("width", "sheets"), [("one", 3), ("two", 2), (None, 1)])
def test_no_figure_of_power_is_higher_than_a_page_of_a_paper(
    width: str | None, sheets: int
) -> None:
    """24 experiments were 25 inches high."""
    kinds = [replace(EXPERIMENT, request_size_bytes=4096 * (1 + n)) for n in range(24)]
    runs = tuple(
        run(
            n,
            (replace(phase(1e6, (energy(5.0),)), request_size_bytes=one.request_size_bytes),),
            one,
        )
        for n, one in enumerate(kinds)
    )
    made = Campaign(Path("c"), design("c", 24, *kinds), MACHINE, (), None, runs)
    look = SCREEN if width is None else WIDTHS[width]
    drawn = machines_and_drives.drawn([made], look, readings=_readings)
    over_time = [one for name, one in drawn.items() if name.startswith("power-over-time")]
    assert len(over_time) == sheets
    panels = [axes for one in over_time for axes in one.figure.axes if axes.lines]
    assert len(panels) == 24 and len({axes.get_ylim() for axes in panels}) == 1
    if width is not None:
        assert all(one.figure.get_size_inches()[1] <= 10 for one in over_time)


def test_only_what_is_wanted_is_drawn() -> None:
    drawn = machines_and_drives.drawn(
        [_campaign()], SCREEN, lambda cell: cell.factors["size"] == "1 MiB", _readings
    )
    assert "1 experiments" in drawn["bandwidth-read"].description
    assert "4 runs" in drawn["power-over-time"].description


def test_doubtful_power_is_not_drawn_among_others() -> None:
    made = _campaign()
    assert "power-system-read" in machines_and_drives.drawn([made])
    doubtful = replace(energy(5.0), doubtful=True, reasons=("another meter contradicts it",))
    runs = []
    for each in made.runs:
        runs.append(replace(each, phases=(replace(each.phases[0], energy=(doubtful,)),)))
    drawn = machines_and_drives.drawn([replace(made, runs=tuple(runs))])
    assert "bandwidth-read" in drawn
    assert not any(name.startswith(("power-system", "efficiency")) for name in drawn)


def test_readings_of_two_stretches_at_one_time_are_not_drawn() -> None:
    """The clock began again at a restart: nobody knows which of them is the run's."""
    drawn = machines_and_drives.drawn(
        [_campaign()], readings=lambda c: [*_readings(c), *_readings(c)]
    )
    assert not any(name.startswith("power-over") for name in drawn)


def test_the_time_of_a_fixed_work_is_drawn_where_all_repetitions_moved_it() -> None:
    made = _campaign()
    assert not any(name.startswith("time-") for name in machines_and_drives.drawn([made]))
    same = replace(made, runs=tuple(
        replace(run, phases=(replace(run.phases[0], bytes_moved=1 << 30),)) for run in made.runs
    ))  # fmt: skip
    drawn = machines_and_drives.drawn([same])["time-1-GiB-read"]
    # 2 s each, by the phase's own window.
    assert "Time of 1 GiB (s)" in drawn.description and "From 2 to 2." in drawn.description


def test_estimates_are_stamped() -> None:
    svg = _svgs(kind="modelled")["report-efficiency.svg"]
    assert svg.count("ESTIMATE") >= 3


def test_axes_have_units_and_name_the_domain() -> None:
    drawn = _svgs()
    assert "Bandwidth (MB/s)" in drawn["bandwidth-read"]
    assert "Energy efficiency (MB/J) of system" in drawn["efficiency-read"]
    assert "Energy efficiency (MB/J) of system (meter)" in drawn["report-efficiency.svg"]
    assert "Power of system (W)" in drawn["idle-busy"]


def test_a_logarithmic_scale_is_marked() -> None:
    for name in ("bandwidth-read", "report-bandwidth.svg"):
        assert "logarithmic scale" in _svgs(spread=1000.0)[name]
        assert "logarithmic" not in _svgs()[name]


def test_who_cannot_see_it_gets_a_reason() -> None:
    for svg in _svgs().values():
        root = documents.parse_xml(svg.encode())
        assert root.get("role") == "img" and root.get("aria-label")
        assert re.search(r"<title>.+</title><desc>.+</desc>", svg)


@pytest.mark.parametrize("look", LOOKS)
def test_everything_lies_within_the_picture(look: Look) -> None:
    """Legends, titles and labels: nothing is clipped at any width."""
    campaign = _campaign(measurement=False, spread=1000.0)
    drawn = list(machines_and_drives.drawn([campaign], look).values())
    plot = plots.bandwidth(build([campaign]))
    assert plot is not None and plot.drawing is not None
    for one in (*drawn, plot.drawing(look)):
        figure = one.figure
        with warnings.catch_warnings():
            # A layout that gives up is no layout.
            warnings.simplefilter("error")
            figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        if look.width_inches is not None:
            assert width == look.width_inches
        box = figure.get_tightbbox()
        assert box is not None
        assert box.x0 >= -0.02 and box.y0 >= -0.02, one.title
        assert box.x1 <= width + 0.02 and box.y1 <= height + 0.02, one.title


@pytest.mark.parametrize(
    ("form", "begins"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<svg")]
)
def test_the_same_data_gives_the_same_file(form: str, begins: bytes) -> None:
    made = [
        file_of(machines_and_drives.drawn([_campaign()])["bandwidth-read"], form) for _ in range(2)
    ]
    assert made[0] == made[1] and made[0].startswith(begins)


def test_places_have_no_digits_by_chance() -> None:
    """The solver of the layout gives other last digits in other processes."""
    figure = machines_and_drives.drawn([_campaign()])["bandwidth-read"].figure
    figure.draw_without_rendering()
    places = [one for axis in figure.axes for one in axis.get_position(original=True).bounds]
    assert places and places == [round(one, 6) for one in places]


def test_long_legends_wrap_and_are_complete() -> None:
    labels = [f"a long word of what is drawn, number {n}" for n in range(9)]
    figure = drawing.sheet(3.5, 5.0, labels)
    figure.subplots(1, 1)
    lines = [figure.axes[0].plot([n], [n])[0] for n in range(9)]
    drawing.set_legend(figure, lines, labels)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box is not None and box.x0 >= -0.02 and box.x1 <= 3.52 and box.y0 >= -0.02


def test_a_matplotlibrc_in_the_current_folder_has_no_effect(tmp_path: Path) -> None:
    """With text.usetex it ran LaTeX on its own preamble."""
    (tmp_path / "matplotlibrc").write_text(
        "text.usetex: True\ntext.latex.preamble: \\input{/etc/hostname}\nlines.linewidth: 9\n"
        "axes.facecolor: red\nfont.family: monospace\nsvg.fonttype: path\ntimezone: Asia/Tokyo\n"
        "date.epoch: 2000-01-01T00:00:00\n"
    )
    (tmp_path / "empty").mkdir()
    code = (
        "from eeio.report.figures import drawing; f = drawing.sheet(4, 3, ['a']); "
        "f.subplots().plot([1, 2], [3, 4], label='a'); "
        "print(drawing.svg_of(drawing.finished(f, 'b', [], 'c'))); "
        "import matplotlib; print(matplotlib.rcParams)"
    )
    drawn = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for folder in (tmp_path, tmp_path / "empty")
    ]  # fmt: skip
    assert drawn[0] == drawn[1]
