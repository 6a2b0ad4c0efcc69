"""Figures 6 to 9 and 14 of Panadero et al. 2012, of any campaign of its suite.

6, 7 (and strided, which the paper characterizes and does not draw): the device, by request size. 8:
the file system with its cache layers on and off. 9: the library, IOR on one rank. Each has
bandwidth, power, energy of a GB (the paper's joules are of the same work) and MB/J, as far as they
were measured. 14: each phase of an application next to its reference value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

from eeio.analysis.summary import quartiles
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, UNCERTAINTY, Cell
from eeio.report.figures.drawing import (
    COLOURS,
    GREY,
    VERMILION,
    Drawing,
    Look,
    ending,
    finished,
    foreign,
    is_logarithmic,
    sheet,
    stamp,
)
from eeio.studies.panadero2012.references import Reference
from eeio.units.quantities import MOST_UNCERTAIN
from eeio.units.sizes import MB, format_size, percent

_SCREEN_INCHES = 8.0
_PANEL_INCHES = 2.3
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_READING = "median of the repetitions; bar: quartiles"
_DOUBTFUL = f"hollow: its energy is known to no better than {MOST_UNCERTAIN:.0%}"


@dataclass(frozen=True)
class Line:
    """The experiments of one line, and its name."""

    name: str
    cells: tuple[Cell, ...]


def by_request_size(lines: Sequence[Line], title: str, stamped: str, look: Look) -> Drawing:
    """Bandwidth, power, J/GB and MB/J over the request size, a panel each that has values."""
    every: list[Cell] = []
    for line in lines:
        every.extend(line.cells)
    panels = _panels(every)
    width = look.width_inches or _SCREEN_INCHES
    columns = _columns(width, len(panels))
    rows = -(-len(panels) // columns)
    shown = [metric for metric, _, _ in panels]
    doubtful = any(_is_doubtful(cell, metric) for cell, metric in product(every, shown))
    legend = _legend(lines, doubtful)
    labels = [label for _, label in legend]
    figure = sheet(width, _PANEL_INCHES * rows + 0.5, labels)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    sizes = sorted({cell.request_size_bytes or 0 for cell in every})
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(axis, panel, lines, sizes)
        if stamped:
            stamp(axis, stamped, 0.8 * width / columns)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    ranges = "; ".join(label for _, _, label in panels)
    return finished(
        figure,
        title + ending(stamped),
        legend,
        f"{ranges}, by request size from {format_size(sizes[0])} to {format_size(sizes[-1])}: "
        f"{', '.join(line.name for line in lines)}. {'; '.join(labels[len(lines) :])}.",
    )


def _columns(width: float, panel_count: int) -> int:
    """Of panels, on a sheet of this width in inches."""
    if width < 5 or panel_count == 1:
        return 1
    return 2


def _legend(lines: Sequence[Line], doubtful: bool) -> list[tuple[Line2D, str]]:
    legend = []
    for number, line in enumerate(lines):
        colour, mark = _style(number)
        handle = Line2D([], [], marker=mark, color=colour, markersize=4)
        legend.append((handle, foreign(line.name)))
    legend.append((Line2D([], [], marker="|", linestyle="", color=GREY), _READING))
    if doubtful:
        handle = Line2D([], [], marker="o", linestyle="", color=GREY, mfc="white")
        legend.append((handle, _DOUBTFUL))
    return legend


def _draw_panel(
    axis: Axes, panel: tuple[str, float, str], lines: Sequence[Line], sizes: Sequence[int]
) -> None:
    metric, unit, label = panel
    for number, line in enumerate(lines):
        _line(axis, line, metric, unit, *_style(number))
    _size_axis(axis, sizes)
    axis.set_ylabel(label, fontsize=7)
    if is_logarithmic([value for line in lines for c in line.cells for value in c.values(metric)]):
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)


def next_to_references(shown: Sequence[Reference], title: str, stamped: str, look: Look) -> Drawing:
    """Each phase's bandwidth and power next to those of its reference, with the share; all have
    one."""
    width = look.width_inches or _SCREEN_INCHES
    cells = [item.application for item in shown]
    panels = [panel for panel in _panels(cells) if panel[0] not in (EFFICIENCY, J_PER_GB)]
    labels = ["the application", "its reference in the characterization"]
    figure = sheet(width, 0.9 + 0.55 * len(shown) * len(panels), labels)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (metric, unit, label) in zip(axes, panels, strict=True):
        _shares(axis, shown, metric, unit)
        axis.set_xlabel(label, fontsize=7)
        axis.set_xlim(left=0, right=1.25 * axis.get_xlim()[1])
        if stamped:
            stamp(axis, stamped, 0.6 * width)
    handles = [Line2D([], [], marker="s", linestyle="", color=c) for c in (VERMILION, GREY)]
    shares = "; ".join(f"{_phase(item)}: {_share(item, BANDWIDTH)}" for item in shown)
    return finished(
        figure,
        title + ending(stamped),
        list(zip(handles, labels, strict=True)),
        f"Share of the reference's bandwidth that is used: {shares}.",
    )


def _panels(cells: Sequence[Cell]) -> list[tuple[str, float, str]]:
    """Metric, unit and label of each that any cell has."""
    # POWER has the widest domain first.
    measured = [domain for domain, metric in POWER.items() if any(c.n(metric) for c in cells)]
    power = [(POWER[d], 1.0, f"Power of the {d} (W)") for d in measured[:1]]
    every = (
        (BANDWIDTH, MB, "Bandwidth (MB/s)"),
        *power,
        (J_PER_GB, 1.0, "Energy (J/GB)"),
        (EFFICIENCY, MB, "Energy efficiency (MB/J)"),
    )
    return [panel for panel in every if any(cell.n(panel[0]) for cell in cells)]


def _style(number: int) -> tuple[str, str]:
    return COLOURS[number % len(COLOURS)], _MARKS[number % len(_MARKS)]


def _line(axis: Axes, line: Line, metric: str, unit: float, colour: str, mark: str) -> None:
    points = []
    for cell in line.cells:
        if cell.n(metric):
            points.append((cell.request_size_bytes or 0, cell.median(metric) / unit, cell))
    if not points:
        return
    points.sort(key=itemgetter(0))
    axis.plot(
        [size for size, _, _ in points],
        [median for _, median, _ in points],
        linewidth=1.1,
        color=colour,
    )
    for doubtful, inside in ((False, colour), (True, "white")):
        marked = [point for point in points if _is_doubtful(point[2], metric) == doubtful]
        axis.plot(
            [size for size, _, _ in marked],
            [median for _, median, _ in marked],
            mark,
            markersize=4,
            color=colour,
            mfc=inside,
            zorder=3,
        )
    for size, _, cell in points:
        spread = quartiles([value / unit for value in cell.values(metric)])
        if spread is not None:
            axis.vlines(size, spread.q1, spread.q3, color=colour, linewidth=1.0)


def _is_doubtful(cell: Cell, metric: str) -> bool:
    """Whether it was too short for its meter: drawn as measured, and marked."""
    return (
        metric != BANDWIDTH
        and cell.n(UNCERTAINTY) > 0
        and (cell.median(UNCERTAINTY) > MOST_UNCERTAIN)
    )


def _size_axis(axis: Axes, sizes: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(list(sizes)))
    labels = [format_size(size).replace("iB", "").replace(" ", "") for size in sizes]
    axis.xaxis.set_major_formatter(FixedFormatter(labels))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("Request size (B, KiB, MiB)", fontsize=7)
    axis.tick_params(labelsize=6)
    axis.grid(linewidth=0.3)


def _shares(axis: Axes, shown: Sequence[Reference], metric: str, unit: float) -> None:
    for index, item in enumerate(reversed(shown)):
        reference = item.reference
        assert reference is not None
        for cell, shift, colour in ((item.application, 0.2, VERMILION), (reference, -0.2, GREY)):
            if cell.n(metric):
                axis.barh(index + shift, cell.median(metric) / unit, 0.36, color=colour)
        if item.application.n(metric) and reference.n(metric):
            end = max(item.application.median(metric), reference.median(metric)) / unit
            axis.text(end, index, f" {_share(item, metric)}", va="center", fontsize=7)
    axis.set_yticks(range(len(shown)), [foreign(_phase(i)) for i in reversed(shown)], fontsize=7)
    axis.tick_params(axis="x", labelsize=7)
    axis.grid(axis="x", linewidth=0.3)
    axis.set_axisbelow(True)


def _phase(item: Reference) -> str:
    factors = item.application.factors
    return f"{factors['tool']} {factors['phase']}, {factors['machine']}"


def _share(item: Reference, metric: str) -> str:
    away = item.deviation_percent(metric)
    if away is None:
        return "not measured"
    return f"{percent(1 + away / 100)} % of the reference"


def lines_of(cells: Sequence[Cell], name: Callable[[Cell], str]) -> list[Line]:
    """The cells in lines of one name each, only those with a request size."""
    by_label: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.request_size_bytes and cell.n(BANDWIDTH):
            by_label.setdefault(name(cell), []).append(cell)
    return [Line(label, tuple(of_name)) for label, of_name in by_label.items()]
