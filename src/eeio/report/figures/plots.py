"""Plots of a report: every repetition a mark, the median a bar on the line of its quartiles."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from eeio.analysis.io_label import sized
from eeio.analysis.rows import Row
from eeio.analysis.summary import quartiles
from eeio.record.publication import stamp_of
from eeio.record.run import LEVELS
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.tables import ESTIMATE
from eeio.report.figures.drawing import (
    BLUE,
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
from eeio.report.table_and_plot import Plot
from eeio.units.sizes import MB

# Colour and mark of each state of the buffer cache: never only the colour.
_STATES = {
    "on": (VERMILION, "s", "buffer cache on"),
    "off": (BLUE, "o", "buffer cache off (direct I/O)"),
    None: (GREY, "D", "buffer cache not stated"),
}
_REPETITIONS = "mark: a repetition; bar: median; line: quartiles"
_HOLLOW = "hollow: not ranked"
_SCREEN_INCHES = 9.5
# Of a row's label at 7 points.
_LINE_INCHES = 0.13
_ROW_INCHES = 0.11


@dataclass(frozen=True)
class _Quantity:
    """The drawn figure of each row. `stamped` is written across each panel."""

    title: str
    axis: str
    values_of: Callable[[Row], Sequence[float]]
    hollow: Callable[[Row], bool] = lambda row: False
    stamped: str = ""


def bandwidth(report: Report) -> Plot | None:
    """Bandwidth of every experiment, a panel a level; None without any."""
    if not any(row.bandwidth_values for row in report.rows):
        return None
    return _plot(
        report,
        "bandwidth.svg",
        _Quantity(
            "Bandwidth (MB/s)",
            "Bandwidth (MB/s)",
            lambda row: [value / MB for value in row.bandwidth_values],
        ),
    )


def efficiency(report: Report) -> Plot | None:
    """MB/J: from measured power where there is any, else the ESTIMATE; or None."""
    measured = list(filter(_measured_values, report.rows))
    if measured:
        axis = f"Energy efficiency (MB/J) of {_domains(measured)}"
        wanted = _Quantity(
            "Energy efficiency (MB/J), measured power",
            axis,
            _measured_values,
            lambda row: not row.ranked,
        )
    elif any(map(_estimated_values, report.rows)):
        title = f"{ESTIMATE}: energy efficiency (MB/J) from modelled power"
        wanted = _Quantity(title, f"{ESTIMATE}: MB/J", _estimated_values, stamped=ESTIMATE)
    else:
        return None
    return _plot(report, "efficiency.svg", wanted)


def _plot(report: Report, name: str, wanted: _Quantity) -> Plot:
    return Plot(name, wanted.title, drawing=partial(_draw, report, wanted))


def _domains(rows: Sequence[Row]) -> str:
    """The power domain: `system (meter)`; for several meters all of them."""
    names = dict.fromkeys(
        f"{best.power_domain} ({best.meter}{', without drives' if best.leaves_drives_out else ''})"
        for row in rows
        if (best := row.measured) is not None
    )
    return ", ".join(map(foreign, names))


def _measured_values(row: Row) -> list[float]:
    best = row.measured
    if best:
        return [value / MB for value in best.efficiency_values]
    return []


def _estimated_values(row: Row) -> list[float]:
    if row.estimates:
        return [value / MB for value in row.estimates[0].efficiency_values]
    return []


def _label(row: Row, several: bool) -> str:
    assert row.experiment is not None
    text = sized(f"{row.tool_label} {row.io_label}", row.request_size_bytes)
    if row.experiment.target not in ("file", "device"):
        text += f" {row.experiment.target.removeprefix('file on ')}"
    if row.experiment.cache.disk is not None:
        text += f", disk cache {row.experiment.cache.disk}"
    if row.flush not in (None, "unknown"):
        text += f", flush {row.flush}" + (", not durable" if row.durable is False else "")
    if several:
        return f"{row.campaign}: {text}"
    return text


_Panel = list[tuple[Row, Sequence[float]]]
"""The rows of a level that have values, with them."""


def _draw(report: Report, wanted: _Quantity, look: Look) -> Drawing:
    width = look.width_inches or _SCREEN_INCHES
    panels = _panels(report, wanted)
    labels = _wrapped_labels(report, panels, look)
    heights = [_height(labels[level]) for level in panels]
    legend = _legend([row for rows in panels.values() for row, _ in rows], wanted)
    texts = [label for _, label in legend]
    figure = sheet(width, sum(heights) + 0.25 * len(panels) + 1.0, texts)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights, sharex=True)[:, 0]
    every = [value for rows in panels.values() for _, values in rows for value in values]
    # One scale for all panels, so that they can be compared.
    logarithmic = is_logarithmic(every)
    not_published = stamp_of(report.campaigns)
    stamped = "; ".join(filter(None, (wanted.stamped, not_published)))
    several = len(report.campaigns) > 1
    for axis, (level, rows) in zip(axes, panels.items(), strict=True):
        axis.set_title(f"level: {level}", fontsize=9, loc="left")
        _draw_rows(axis, rows, labels[level], wanted, several)
        axis.tick_params(axis="x", labelsize=7)
        axis.grid(axis="x", alpha=0.3)
        if logarithmic:
            axis.set_xscale("log")
        else:
            axis.set_xlim(left=0)
        if stamped:
            stamp(axis, stamped, 0.5 * width)
    scale = ""
    if logarithmic:
        scale = ", logarithmic scale"
    axes[-1].set_xlabel(textwrap.fill(wanted.axis + scale, int(0.5 * width / 0.066)), fontsize=8)
    count = sum(map(len, labels.values()))
    description = (
        f"{wanted.axis}{scale}: {count} experiments, {', '.join(panels)}. "
        f"From {min(every):.4g} to {max(every):.4g}. "
        + "; ".join(filter(None, (_REPETITIONS, stamped)))
        + ". The tables of the report hold every value."
    )
    return finished(figure, wanted.title + ending(not_published), legend, description)


def _panels(report: Report, wanted: _Quantity) -> dict[str, _Panel]:
    """By level."""
    panels: dict[str, _Panel] = {}
    for level in LEVELS:
        for row in report.rows:
            if row.level == level and (values := wanted.values_of(row)):
                panels.setdefault(level, []).append((row, values))
    return panels


def _wrapped_labels(
    report: Report, panels: Mapping[str, _Panel], look: Look
) -> dict[str, dict[str, str]]:
    """Level -> label -> label in lines."""
    several = len(report.campaigns) > 1
    characters = 200
    if look.width_inches:
        # A label may take a little less than half of the width.
        characters = int(0.45 * look.width_inches / 0.058)
    labels: dict[str, dict[str, str]] = {}
    for level, rows in panels.items():
        names = [_label(row, several) for row, _ in rows]
        labels[level] = {name: textwrap.fill(name, characters) for name in names}
    return labels


def _height(labels: Mapping[str, str]) -> float:
    """Of a panel with these labels, in inches."""
    lines = [label.count("\n") + 1 for label in labels.values()]
    return sum(_ROW_INCHES + _LINE_INCHES * count for count in lines) + 0.35


def _draw_rows(
    axis: Axes, rows: _Panel, labels: Mapping[str, str], wanted: _Quantity, several: bool
) -> None:
    heights = {label: index for index, label in enumerate(reversed(list(labels)))}
    for row, values in rows:
        # The two cache states of one pattern share a line, a little apart.
        apart = -0.16
        if row.cache.buffer == "on":
            apart = 0.16
        _marks(axis, heights[_label(row, several)] + apart, values, row, wanted.hollow(row))
    texts = [labels[label] for label in heights]
    axis.set_yticks(list(heights.values()), texts, fontsize=7, parse_math=False)
    axis.set_ylim(-0.7, len(heights) - 0.3)


def _marks(axis: Axes, y: float, values: Sequence[float], row: Row, hollow: bool) -> None:
    colour, mark, _ = _STATES[row.cache.buffer]
    of_values = quartiles(values)
    assert of_values is not None
    axis.plot(
        [of_values.q1, of_values.q3], [y, y], "-", lw=1.2, color=colour, solid_capstyle="butt"
    )
    axis.plot([of_values.median] * 2, [y - 0.2, y + 0.2], "-", lw=1.8, color=colour)
    axis.plot(
        values,
        [y] * len(values),
        mark,
        ms=3.2,
        color=colour,
        mfc="white" if hollow else colour,
        mew=0.7,
        mec=colour if hollow else "white",
    )


def _legend(rows: Sequence[Row], wanted: _Quantity) -> list[tuple[Line2D, str]]:
    states = {row.cache.buffer for row in rows}
    shown = []
    for state in ("on", "off", None):
        if state in states:
            shown.append(_STATES[state])
    legend = []
    for colour, mark, name in shown:
        legend.append((Line2D([], [], marker=mark, ls="", ms=4, color=colour), name))
    legend.append((Line2D([], [], marker="|", ls="-", ms=7, color=GREY), _REPETITIONS))
    if any(map(wanted.hollow, rows)):
        legend.append((Line2D([], [], marker="o", ls="", ms=4, color=GREY, mfc="white"), _HOLLOW))
    return legend
