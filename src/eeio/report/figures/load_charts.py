"""The charts of `eeio report --chart`: latency, queue depth and request size, and power over time.

They need what a tool reported, so they draw own runs and imported results alike.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.rows import Row
from eeio.analysis.selection import is_powered
from eeio.analysis.summary import Quartiles
from eeio.comparison.campaigns import named_cells
from eeio.comparison.cells import size_label
from eeio.record.publication import stamp_of
from eeio.record.run import DOMAINS, EnergyReading
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.data_source import is_imported
from eeio.report.figures import run_figures
from eeio.report.figures.drawing import (
    COLOURS,
    Drawing,
    Look,
    ending,
    finished,
    foreign,
    is_logarithmic,
    sheet,
    stamp,
)
from eeio.report.figures.run_figures import Readings
from eeio.units.sizes import format_size

CHARTS = ("latency", "depth", "power")
"""The names of `--chart`."""

_PERCENTILES = {
    "p50": "50",
    "p95": "95",
    "p99": "99",
    "p999": "99.9",
    "p9999": "99.99",
    "max": "max",
}
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_MOST_LINES = 16
"""Of experiments in a chart; more could not be told apart."""
_PANEL_INCHES = (3.3, 2.6)


@dataclass(frozen=True)
class Lacking:
    """Why a chart cannot be drawn."""

    reason: str


def chart(
    name: str, report: Report, readings: Readings, look: Look
) -> dict[str, Drawing] | Lacking:
    """File name -> the drawings of one of CHARTS."""
    makers: Mapping[str, Callable[[Report, Readings, Look], dict[str, Drawing] | Lacking]]
    makers = MappingProxyType({"latency": _latency, "depth": _depth, "power": _power})
    return makers[name](report, readings, look)


def _rows(report: Report) -> list[Row]:
    return [row for row in report.rows if row.experiment is not None and row.n]


def _latency(report: Report, readings: Readings, look: Look) -> dict[str, Drawing] | Lacking:
    """The percentiles of each experiment, a line each."""
    rows = list(filter(_percentiles, _rows(report)))
    if not rows:
        return Lacking("no experiment has percentiles of latencies")
    curves = list(map(_percentiles, rows[:_MOST_LINES]))
    labels = _distinct(rows[:_MOST_LINES], report)
    known = [name for name in _PERCENTILES if any(name in curve for curve in curves)]
    figure = sheet(look.width_inches or 7.5, 3.6, labels)
    panel = figure.subplots()
    values: list[float] = []
    for number, curve in enumerate(curves):
        panel.plot(list(map(known.index, curve)), list(curve.values()), **_style(number))
        values += curve.values()
    panel.set_xticks(range(len(known)), list(map(_PERCENTILES.__getitem__, known)), fontsize=7)
    panel.set_xlabel("Percentile of requests", fontsize=8)
    _set_y(panel, "Latency (ms)", values)
    description = f"Latency of {len(labels)} experiments by percentile{_left_out(len(rows))}."
    drawing = _done(_Sheet(figure, [panel], labels), "Latency by percentile", report, description)
    return {"latency": drawing}


def _percentiles(row: Row) -> dict[str, float]:
    """Percentile -> ms, of those that the tool reports."""
    points = {}
    for name in _PERCENTILES:
        latency = row[f"latency_{name}_s"]
        if latency is not None and latency.median > 0:
            points[name] = 1e3 * latency.median
    return points


def _distinct(rows: Sequence[Row], report: Report) -> list[str]:
    """The label of each row, with its details where several have the same."""
    labels = [_label(row, report, ()) for row in rows]
    count = Counter(labels)
    distinct = []
    for row, label in zip(rows, labels, strict=True):
        if count[label] > 1:
            details = []
            for detail in row.details:
                if not detail.startswith(("engine=", "iodepth=")):
                    details.append(detail)
            label = ", ".join([label, *map(foreign, details)])
        distinct.append(label)
    return distinct


@dataclass(frozen=True)
class _Quantity:
    """A figure of a row over queue depth or request size."""

    title: str
    value: Callable[[Row, DomainFigures | None], Quartiles | None]
    unit: float = 1.0


def _j_per_request(row: Row, figures: DomainFigures | None) -> Quartiles | None:
    """The reciprocal of IOPS/W."""
    rate = None
    if figures is not None:
        rate = figures["iops_per_w"]
    if rate is None or rate.q1 <= 0:
        return None
    return Quartiles(1 / rate.median, 1 / rate.q3, 1 / rate.q1)


_QUANTITIES = (
    _Quantity("IOPS", lambda row, _: row["iops"]),
    _Quantity("Latency, median (ms)", lambda row, _: row["latency_p50_s"], 1e-3),
    _Quantity("Latency, p99 (ms)", lambda row, _: row["latency_p99_s"], 1e-3),
    _Quantity("Energy of a request (mJ)", _j_per_request, 1e-3),
)


def _depth_of(row: Row, report: Report) -> int | None:
    """None if it is not known: an imported result may not say it."""
    assert row.experiment is not None
    stated = dict(row.experiment.arguments).get("iodepth", "")
    if stated.isdigit() and int(stated):
        return int(stated)
    imported = {campaign.name for campaign in report.campaigns if is_imported(campaign)}
    # eeio's own profile of fio requests one at a time unless its argument says otherwise.
    is_own = row.experiment.tool == "fio" and row.campaign not in imported
    if is_own and not stated:
        return 1
    return None


_Groups = dict[str, list[tuple[int, Row]]]
"""Label -> the rows of a line, each with its queue depth or request size."""


def _depth(report: Report, readings: Readings, look: Look) -> dict[str, Drawing] | Lacking:
    """IOPS, latency and energy of a request, over the queue depth, and over the request size."""
    rows = [row for row in _rows(report) if row["iops"] is not None]
    if not rows:
        return Lacking("no experiment reports its requests per second (IOPS)")
    by_depth: _Groups = {}
    by_size: _Groups = {}
    for row in rows:
        depth, size = _depth_of(row, report), row.request_size_bytes
        if depth is not None:
            by_depth.setdefault(_label(row, report, ("iodepth",)), []).append((depth, row))
        if size is not None:
            by_size.setdefault(_label(row, report, ("size",)), []).append((size, row))
    swept: dict[str, _Groups] = {}
    for title, groups in (("Queue depth", by_depth), ("Request size", by_size)):
        if several := _swept(groups):
            swept[title] = several
    if not swept:
        return Lacking(
            "no two experiments differ only in their queue depth (iodepth) or request size"
        )
    return {"depth": _draw_depth(report, swept, look)}


def _swept(groups: _Groups) -> _Groups:
    """Those with several depths or sizes, in their order."""
    found: _Groups = {}
    for label, points in groups.items():
        points.sort(key=lambda point: point[0])
        if points[0][0] < points[-1][0]:
            found[label] = points
    return found


def _draw_depth(report: Report, swept: Mapping[str, _Groups], look: Look) -> Drawing:
    labels = list(dict.fromkeys(label for groups in swept.values() for label in groups))
    shown = labels[:_MOST_LINES]
    quantities = [one for one in _QUANTITIES if any(_curves(one, of) for of in swept.values())]
    columns = len(quantities) if look.width_inches is None else min(2, len(quantities))
    lines = -(-len(quantities) // columns)
    width = look.width_inches or _PANEL_INCHES[0] * columns
    figure = sheet(width, _PANEL_INCHES[1] * lines * len(swept), shown)
    grid = figure.subplots(lines * len(swept), columns, squeeze=False)
    panels: list[Axes] = []
    for line, (title, groups) in enumerate(swept.items()):
        of_line = list(grid[line * lines : (line + 1) * lines].flat)
        for panel, quantity in zip(of_line, quantities, strict=False):
            _draw_curves(panel, _curves(quantity, groups), shown, quantity.title)
            _set_x(panel, title, groups)
        for panel in of_line[len(quantities) :]:
            panel.set_axis_off()
        panels += of_line[: len(quantities)]
    title = f"Requests by {' and '.join(map(str.lower, swept))}"
    titles = ", ".join(map(attrgetter("title"), quantities))
    description = (
        f"{titles}: medians with quartiles of {len(shown)} series{_left_out(len(labels))}."
    )
    return _done(_Sheet(figure, panels, shown), title, report, description)


@dataclass
class _Curve:
    """Queue depths or request sizes, and a quantity there: its median, and the distances of its
    quartiles."""

    places: list[int] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)
    above: list[float] = field(default_factory=list)


def _curves(quantity: _Quantity, groups: _Groups) -> dict[str, _Curve]:
    """Label -> its line; none of a label without a value."""
    curves: dict[str, _Curve] = {}
    for label, points in groups.items():
        for place, row in points:
            value = quantity.value(row, row.measured)
            if value is None or value.q1 <= 0:
                continue
            curve = curves.setdefault(label, _Curve())
            curve.places.append(place)
            curve.medians.append(value.median / quantity.unit)
            curve.below.append((value.median - value.q1) / quantity.unit)
            curve.above.append((value.q3 - value.median) / quantity.unit)
    return curves


def _draw_curves(
    panel: Axes, curves: Mapping[str, _Curve], shown: Sequence[str], title: str
) -> None:
    values: list[float] = []
    for number, label in enumerate(shown):
        curve = curves.get(label)
        if curve is None:
            continue
        quartiles = [curve.below, curve.above]
        panel.errorbar(
            curve.places, curve.medians, yerr=quartiles, elinewidth=0.8, **_style(number)
        )
        values += map(sum, zip(curve.medians, curve.above, strict=True))
        values += curve.medians
    _set_y(panel, title, values)


def _set_x(panel: Axes, title: str, groups: _Groups) -> None:
    panel.set_xscale("log", base=2)
    values = sorted({place for points in groups.values() for place, _ in points})
    label = size_label if title == "Request size" else str
    panel.set_xticks(values, list(map(label, values)), fontsize=7)
    panel.minorticks_off()
    panel.set_xlabel(title, fontsize=8)


def _set_y(panel: Axes, title: str, values: Sequence[float]) -> None:
    """From 0, or logarithmic where the values span much."""
    if is_logarithmic(values):
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        panel.set_ylim(0, 1.1 * max(values, default=1.0))
    panel.set_ylabel(title, fontsize=8)
    panel.tick_params(axis="y", which="both", labelsize=7)
    panel.grid(linewidth=0.3)


def _power(report: Report, readings: Readings, look: Look) -> dict[str, Drawing] | Lacking:
    """Readings over the time of each run; of results without stored readings the mean of each run
    over the time of day."""
    stamped = stamp_of(report.campaigns)
    of_each = list(zip(report.campaigns, named_cells(report.campaigns), strict=True))
    every = run_figures.drawn(of_each, readings, stamped, look)
    drawn = {}
    for name, drawing in every.items():
        if name.startswith("power-over-time"):
            drawn[name] = drawing
    if drawn:
        return drawn
    means: dict[str, Sequence[_Mean]] = {}
    for campaign in report.campaigns:
        if of_campaign := _means(campaign):
            means[campaign.name] = of_campaign
    if not means:
        return Lacking("no power of a run was measured")
    return {"power-over-time": _draw_means(report, means, look)}


@dataclass(frozen=True)
class _Mean:
    """The power of a run: the source, the time of its begin, how long it lasted, and W."""

    source: str
    begin_s: float
    lasted_s: float
    power_w: float


def _draw_means(report: Report, means: Mapping[str, Sequence[_Mean]], look: Look) -> Drawing:
    """A panel a campaign, a line a run."""
    sources = list(dict.fromkeys(step.source for of in means.values() for step in of))
    figure = sheet(look.width_inches or 7.5, 2.6 * len(means), sources)
    panels = list(figure.subplots(len(means), 1, squeeze=False).flat)
    for panel, (name, of_campaign) in zip(panels, means.items(), strict=True):
        first_s = min(of_campaign, key=attrgetter("begin_s")).begin_s
        for step in of_campaign:
            colour = COLOURS[sources.index(step.source) % len(COLOURS)]
            begin_s = step.begin_s - first_s
            ends_s = [begin_s, begin_s + step.lasted_s]
            panel.plot(ends_s, [step.power_w] * 2, linewidth=2.0, color=colour)
        panel.set_xlabel(f"Time since the first run of {foreign(name)} (s)", fontsize=8)
        panel.set_ylabel("Mean power of a run (W)", fontsize=8)
        panel.set_ylim(0, 1.1 * max(of_campaign, key=attrgetter("power_w")).power_w)
        panel.grid(linewidth=0.3)
        panel.tick_params(labelsize=7)
    count = sum(map(len, means.values()))
    description = f"The mean power of {count} runs; their readings are not stored."
    return _done(
        _Sheet(figure, panels, sources, ""),
        "Power over time, mean of each run",
        report,
        description,
    )


def _means(campaign: Campaign) -> list[_Mean]:
    """Of each valid run with a measured power, in its widest domain."""
    means = []
    for run in campaign.runs:
        every: list[EnergyReading] = []
        for phase in run.phases:
            every.extend(phase.energy)
        readings = list(filter(is_powered, every))
        if not readings or run.validity or not run.started_utc or not run.duration_s:
            continue
        widest = min(readings, key=lambda one: list(DOMAINS).index(one.domain))
        assert widest.power_w is not None
        begin_s = datetime.fromisoformat(run.started_utc).timestamp()
        source = f"{widest.domain} ({widest.meter})"
        means.append(_Mean(source, begin_s, run.duration_s, widest.power_w))
    return means


def _label(row: Row, report: Report, without: Sequence[str]) -> str:
    """An experiment in words, but for its queue depth or its request size."""
    experiment = row.experiment
    assert experiment is not None
    arguments = dict(experiment.arguments)
    parts = []
    if len(report.campaigns) > 1:
        parts = [row.campaign]
    parts.append(row.io_label)
    if "size" not in without and row.request_size_bytes is not None:
        parts.append(format_size(row.request_size_bytes))
    parts += [experiment.tool, arguments.get("engine", "")]
    if "iodepth" not in without and "iodepth" in arguments:
        parts.append(f"depth {arguments['iodepth']}")
    if experiment.processes > 1:
        parts.append(f"x{experiment.processes}")
    for name in ("read_share", "load"):
        if name in arguments:
            parts.append(f"{name.replace('_', ' ')} {arguments[name]} %")
    if row.cache.buffer:
        parts.append(f"buffer {row.cache.buffer}")
    parts.append(experiment.target if experiment.target != "file" else "")
    return foreign(", ".join(filter(None, parts)))


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": _MARKS[(number + number // len(COLOURS)) % len(_MARKS)],
        "markersize": 3.5,
        "linewidth": 1.0,
    }


def _left_out(count: int) -> str:
    if count > _MOST_LINES:
        return f"; {count - _MOST_LINES} more are left out"
    return ""


@dataclass(frozen=True)
class _Sheet:
    """A figure with its panels, and the labels of its lines. `marker` replaces those of lines."""

    figure: Figure
    panels: Sequence[Axes]
    labels: Sequence[str]
    marker: str | None = None


def _done(drawn: _Sheet, title: str, report: Report, description: str) -> Drawing:
    stamped = stamp_of(report.campaigns)
    if stamped:
        for panel in drawn.panels:
            stamp(panel, stamped)
    legend = []
    for number, label in enumerate(drawn.labels):
        style = _style(number)
        if drawn.marker is not None:
            style["marker"] = drawn.marker
        legend.append((Line2D([], [], **style), label))
    return finished(drawn.figure, title + ending(stamped), legend, description)
