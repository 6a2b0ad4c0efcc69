"""The replacement rule as a map: every experiment by B_ts / B_lp and P_lp / P_ts, as SVG.

Below the line (B_ts / B_lp) x P_lp = P_ts replacing saves power
(docs/explanation/guideline-and-cost.md).
"""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator

from eeio.guideline.answer import Guideline
from eeio.record.publication import QUICK
from eeio.report.documents.guideline import Point, point_text, points
from eeio.report.figures.drawing import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    Drawing,
    Layout,
    foreign,
    stamp,
    svg_of,
)
from eeio.statistics.bootstrap import Estimate

_COLOURS = {"read": BLUE, "write": VERMILION, "mix": BLACK}
_REGION = GREEN
_MARKERS = {"sequential": "o", "random": "s", "strided": "^", "mix": "*"}
# Room around the outermost point on the logarithmic axes.
_MARGIN = 1.4


def draw(guideline: Guideline, is_measurement: bool = True) -> str | None:
    """SVG of the map, or None when no experiment can be compared.

    Filled points belong to the mix, hollow ones do not; the star is the mix. Bars are the
    confidence intervals of both ratios. A map of campaigns that are no measurement is marked.
    """
    of_map = points(guideline)
    if not of_map:
        return None
    figure = Figure(figsize=(9.5, max(5.0, 2.0 + 0.22 * len(of_map))), layout=Layout())
    axis = figure.subplots()
    left, right = _span([point.x for point in of_map])
    # The line's height at every point is in the picture as well as the point.
    heights = [1.0 / point.x.value for point in of_map if point.x.value]
    bottom, top = _span([point.y for point in of_map], heights)
    across = np.geomspace(left, right, 200)
    axis.fill_between(across, bottom, 1.0 / across, color=_REGION, alpha=0.15, lw=0)
    axis.plot(across, 1.0 / across, "-", color=_REGION, lw=1.5)
    for index, point in enumerate(of_map):
        # Numbers are placed around their points in turn, so that those of neighbours stay apart.
        angle = math.radians(45 + 80 * index)
        _draw_point(axis, point, (16 * math.cos(angle), 16 * math.sin(angle)))
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(plain)
        side.set_minor_locator(LogLocator(subs=(1.5, 2, 3, 5, 7)))
        side.set_minor_formatter(plain)
    axis.tick_params(labelsize=7, which="both")
    axis.grid(alpha=0.3, which="both")
    ts, lp = foreign(guideline.traditional.name), foreign(guideline.low_power.name)
    axis.set_xlabel(f"B_ts / B_lp: number of {lp} for the bandwidth of one {ts}", fontsize=8)
    axis.set_ylabel(f"P_lp / P_ts: power of one {lp} over one {ts}", fontsize=8)
    axis.set_title(
        f"Replacing {ts} by {lp}, workload {foreign(guideline.workload.name)}", fontsize=10
    )
    if not is_measurement:
        stamp(axis, QUICK)
    interval = f"{100 * guideline.confidence:g} % intervals"
    # Next to the axes; figure.legend(loc="outside ...") would need matplotlib 3.7.
    axis.legend(
        handles=_handles(of_map),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=7,
        frameon=False,
        title=f"numbers as in the map; {interval}",
        title_fontsize=7,
    )
    name = f"Replacing {guideline.traditional.name} by {guideline.low_power.name}"
    description = (
        f"{len(of_map)} points by B_ts / B_lp and P_lp / P_ts; below the line, where their product "
        "is under 1, replacing saves power"
    )
    return _reported(svg_of(Drawing(figure, name, description)), of_map)


def _reported(svg: str, points: Sequence[Point]) -> str:
    """With a `title` in each point: browsers show it under the pointer, screen readers say it."""
    for point in points:
        group = f'<g id="{_group(point)}">'
        svg = svg.replace(group, f"{group}\n<title>{escape(point_text(point))}</title>", 1)
    return svg


def _group(point: Point) -> str:
    return f"point-{point.number}"


def _span(figures: list[Estimate], others: Sequence[float] = ()) -> tuple[float, float]:
    """Ends of an axis: all points and intervals, with room around them."""
    values = list(others)
    for figure in figures:
        assert figure.value is not None
        values.append(figure.value)
        if figure.interval:
            values += [figure.interval.low, figure.interval.high]
    return min(values) / _MARGIN, max(values) * _MARGIN


def _bars(figure: Estimate) -> list[list[float]] | None:
    """Lengths of an error bar below and above; a bootstrap interval may miss its median."""
    if figure.interval is None or figure.value is None:
        return None
    low, high = figure.value - figure.interval.low, figure.interval.high - figure.value
    return [[max(0.0, low)], [max(0.0, high)]]


def _draw_point(axis: Axes, point: Point, offset: tuple[float, float]) -> None:
    x, y = point.x.value, point.y.value
    assert x is not None and y is not None
    colour = _COLOURS.get(point.operation, "#555555")
    drawn = axis.errorbar(
        x,
        y,
        xerr=_bars(point.x),
        yerr=_bars(point.y),
        fmt=_MARKERS.get(point.spatiality, "D"),
        ms=11 if point.operation == "mix" else 6,
        color=colour,
        mfc=colour if point.in_mix else "white",
        lw=1,
        capsize=2,
    )
    drawn.lines[0].set_gid(_group(point))
    axis.annotate(
        point.number,
        (x, y),
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=7,
        color=colour,
        arrowprops={"arrowstyle": "-", "lw": 0.5, "color": colour, "shrinkA": 4, "shrinkB": 3},
    )


def _handles(points: list[Point]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Patch(color=_REGION, alpha=0.15, label="replacing saves power"),
        Line2D([], [], color=_REGION, label="(B_ts / B_lp) x P_lp = P_ts"),
    ]
    for point in points:
        colour = _COLOURS.get(point.operation, "#555555")
        label = foreign(point.label) + ("" if point.in_mix else " (not in the mix)")
        handles.append(
            Line2D(
                [],
                [],
                ls="",
                marker=_MARKERS.get(point.spatiality, "D"),
                color=colour,
                mfc=colour if point.in_mix else "white",
                label=label if point.operation == "mix" else f"{point.number}: {label}",
            )
        )
    return handles
