"""Plots as SVG: every repetition a dot, the median a bar; colours safe for the colour-blind."""

import io
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from eeio_limits import text as harmless
from eeio_results.characterization import Row
from eeio_results.record import LEVELS
from eeio_results.report.model import Report
from eeio_results.report.parts import Plot
from eeio_results.report.tables import ESTIMATE, operation_label, tool_label
from eeio_results.units import MB, format_size

# Okabe and Ito's palette.
_COLOURS = {"on": "#E69F00", "off": "#0072B2", None: "#555555"}
# A panel spans decades where the slowest and the fastest differ by more than this.
_LOG_SCALE_RATIO = 20.0
_LEGEND_INCHES = 0.35
_STAMP = "#B00020"
QUICK_MARK = " - QUICK: not a measurement"


def bandwidth(report: Report) -> str:
    """Bandwidth of every experiment, a panel a level."""
    return _draw(report, "Bandwidth (MB/s)", lambda row: [v / MB for v in row.bandwidth_values])


def efficiency(report: Report) -> Plot | None:
    """MB/J: from measured power where there is any, else the ESTIMATE; or None."""
    if any(_measured_values(row) for row in report.rows):
        title, values_of = "Energy efficiency (MB/J), measured power", _measured_values
        if any(_measured_values(row) and not row.ranked for row in report.rows):
            title += "; hollow: not ranked"
        return Plot(
            "efficiency.svg",
            title,
            partial(_draw, report, title, values_of, lambda row: not row.ranked),
        )
    if any(_estimated_values(row) for row in report.rows):
        title = f"{ESTIMATE}: energy efficiency (MB/J) from modelled power"
        return Plot("efficiency.svg", title, partial(_draw, report, title, _estimated_values))
    return None


def _measured_values(row: Row) -> list[float]:
    best = row.measured
    return [value / MB for value in best.efficiency_values] if best else []


def _estimated_values(row: Row) -> list[float]:
    return [value / MB for value in row.estimates[0].efficiency_values] if row.estimates else []


def _label(row: Row, several: bool) -> str:
    assert row.experiment is not None
    size = "" if row.request_size_bytes is None else f" {format_size(row.request_size_bytes)}"
    words = f"{tool_label(row.experiment)} {row.spatiality} {operation_label(row)}{size}"
    if row.experiment.target not in ("file", "device"):
        words += f" {row.experiment.target.removeprefix('file on ')}"
    if row.experiment.cache.disk is not None:
        words += f", disk cache {row.experiment.cache.disk}"
    if row.flush not in (None, "unknown"):
        words += f", flush {row.flush}" + (", not durable" if row.durable is False else "")
    return f"{row.campaign}: {words}" if several else words


def _draw(
    report: Report,
    title: str,
    values_of: Callable[[Row], Sequence[float]],
    hollow: Callable[[Row], bool] = lambda row: False,
) -> str:
    several = len(report.campaigns) > 1
    panels = [
        (level, [(row, values) for row in report.rows if row.level == level
                 and (values := values_of(row))])
        for level in LEVELS
    ]  # fmt: skip
    panels = [(level, rows) for level, rows in panels if rows]
    labels = {
        level: list(dict.fromkeys(_label(row, several) for row, _ in rows))
        for level, rows in panels
    }
    heights = [len(labels[level]) + 1.6 for level, _ in panels]
    figure = sheet(9.5, 0.24 * sum(heights) + 0.9)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (level, rows) in zip(axes, panels, strict=True):
        places = {label: index for index, label in enumerate(reversed(labels[level]))}
        for row, values in rows:
            colour = _COLOURS[row.cache.buffer]
            # The two cache states of one pattern share a line, a little apart.
            y = places[_label(row, several)] + (0.16 if row.cache.buffer == "on" else -0.16)
            # Hollow: its MB/J stands in no ranking.
            inside = "none" if hollow(row) else colour
            axis.plot(
                values, [y] * len(values), "o", ms=3.5, alpha=0.6, color=colour, mfc=inside,
                mew=0.7 if hollow(row) else 0,
            )  # fmt: skip
            middle = statistics.median(values)
            axis.plot([middle, middle], [y - 0.2, y + 0.2], "-", lw=1.8, color=colour)
        axis.set_yticks(list(places.values()), list(places), fontsize=7, parse_math=False)
        axis.set_ylim(-0.7, len(places) - 0.3)
        axis.set_title(f"level: {level}", fontsize=9, loc="left")
        axis.tick_params(axis="x", labelsize=7)
        axis.grid(axis="x", alpha=0.3)
        every = [value for _, values in rows for value in values if value > 0]
        if every and max(every) > _LOG_SCALE_RATIO * min(every):
            axis.set_xscale("log")
        else:
            axis.set_xlim(left=0)
    quick = "" if all(c.is_measurement for c in report.campaigns) else QUICK_MARK
    figure.suptitle(title + quick, fontsize=10)
    states = {row.cache.buffer for _, rows in panels for row, _ in rows}
    names = {"on": "buffer cache on", "off": "buffer cache off (direct I/O)", None: "not stated"}
    handles = [
        matplotlib.lines.Line2D([], [], marker="o", ls="", ms=4, color=_COLOURS[s], label=names[s])
        for s in ("on", "off", None)
        if s in states
    ]
    figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=7, frameon=False)
    return svg_of(figure)


def sheet(width: float, height: float) -> Figure:
    """A figure of that size in inches, with room for a legend below the axes.

    loc="outside lower center" would make that room itself, but needs matplotlib 3.7.
    """
    room = _LEGEND_INCHES / height
    return Figure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(rect=(0, room, 1, 1 - room))
    )


def svg_of(figure: Figure) -> str:
    """The `<svg>` element. Fixed identifiers and no date: the same data gives the same file."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "eeio", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    # Names of others may hold what XML forbids.
    return harmless.xml(text[text.index("<svg") :])


QUICK_STAMP = "QUICK: not a measurement"


def stamp(axes: Axes, words: str) -> None:
    """Words across a panel: they stay when the picture is cropped or shown without its caption."""
    axes.text(
        0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", rotation=20,
        fontsize=15, color=_STAMP, alpha=0.45, zorder=10, clip_on=True, parse_math=False,
    )  # fmt: skip


def foreign(name: str) -> str:
    """A name of others for a label: with all its dollars, which matplotlib takes for formulas."""
    return harmless.shown(name).replace("$", r"\$")
