"""Figures of lines over a common axis, a panel each: rounds of a drive, steps of a load.

matplotlib is imported when a figure is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from eeio.report.table_and_plot import Plot

if TYPE_CHECKING:
    from eeio.report.figures.drawing import Drawing, Look

_SCREEN_INCHES = 9.5
_PANEL_INCHES = 2.4
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class Line:
    """Points by x; values that were not measured are not included. Points that are no series are
    not joined."""

    label: str
    points: Sequence[tuple[float, float]]
    is_joined: bool = True


@dataclass(frozen=True)
class Panel:
    """A panel over one x axis: the y axis with its unit, the lines, `shaded` (from x to x) with its
    meaning. The y axis begins at 0 with `from_zero`."""

    axis: str
    lines: Sequence[Line]
    shaded: tuple[float, float] | None = None
    from_zero: bool = True


@dataclass(frozen=True)
class Lines:
    """One figure; `stamped` is written across it (`eeio.record.publication`). The x axis is
    logarithmic with `is_x_logarithmic`."""

    title: str
    x_axis: str
    panels: Sequence[Panel]
    stamped: str
    is_x_logarithmic: bool = False


def plot(name: str, lines: Lines) -> Plot:
    """A file of that name, drawn on request."""
    return Plot(name, lines.title, drawing=partial(_drawing, lines))


def _drawing(lines: Lines, look: "Look") -> "Drawing":
    """All panels over one x axis; values that span much on a logarithmic one."""
    from eeio.report.figures.drawing import finished, foreign, sheet, stamp

    panels = lines.panels
    width = look.width_inches or _SCREEN_INCHES
    labels = list(dict.fromkeys(line.label for panel in panels for line in panel.lines))
    figure = sheet(width, _PANEL_INCHES * len(panels) + 0.4, list(map(foreign, labels)))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    handles: dict[str, Any] = {}
    for axes, panel in zip(all_axes, panels, strict=True):
        handles |= _draw_panel(axes, panel, labels)
        if lines.stamped:
            stamp(axes, lines.stamped, 0.8 * width)
    if lines.is_x_logarithmic:
        all_axes[-1].set_xscale("log", base=2)
        all_axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    all_axes[-1].set_xlabel(lines.x_axis, fontsize=8)
    ranges = "; ".join(f"{panel.axis}: {_range(panel)}" for panel in panels)
    entries = [(handles[label], foreign(label)) for label in labels]
    description = f"{len(labels)} lines over {lines.x_axis}. {ranges}."
    return finished(figure, lines.title, entries, description)


def _line_style(line: Line, is_new_colour: bool) -> str:
    if not line.is_joined:
        return ""
    if is_new_colour:
        return "-"
    return "--"


def _draw_panel(axes: Any, panel: Panel, labels: Sequence[str]) -> dict[str, Any]:
    """The handles of its lines, by label."""
    from eeio.report.figures.drawing import COLOURS, is_logarithmic

    handles = {}
    for line in panel.lines:
        number = labels.index(line.label)
        (handles[line.label],) = axes.plot(
            [x for x, _ in line.points],
            [y for _, y in line.points],
            marker=_MARKS[number % len(_MARKS)],
            color=COLOURS[number % len(COLOURS)],
            markersize=4,
            linewidth=1.0,
            linestyle=_line_style(line, number < len(COLOURS)),
        )
    axis = panel.axis
    if is_logarithmic(_values(panel)):
        axes.set_yscale("log")
        axis += ", logarithmic scale"
    elif panel.from_zero:
        axes.set_ylim(bottom=0)
    if panel.shaded is not None:
        axes.axvspan(*panel.shaded, color="#EEEEEE", zorder=0)
    axes.set_ylabel(axis, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    return handles


def _values(panel: Panel) -> list[float]:
    values = []
    for line in panel.lines:
        for _, y in line.points:
            values.append(y)
    return values


def _range(panel: Panel) -> str:
    values = _values(panel)
    if not values:
        return "not measured"
    return f"{min(values):.4g} to {max(values):.4g}"
