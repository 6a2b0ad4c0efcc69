"""The charts of `eeio report --chart`: latency, queue depth and request size, and power over time.

They need what a tool reported, so they draw own runs and imported results alike.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from eeio_results.comparison.campaigns import named_cells
from eeio_results.comparison.cells import size_label
from eeio_results.domains import DomainFigures
from eeio_results.record import DOMAINS
from eeio_results.report import run_figures
from eeio_results.report.drawing import (
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
from eeio_results.report.model import Report
from eeio_results.report.run_figures import Readings
from eeio_results.report.source import is_imported
from eeio_results.rows import Row
from eeio_results.stamps import stamp_of
from eeio_results.store import Campaign
from eeio_results.summary import Quartiles
from eeio_results.units import format_size

CHARTS = ("latency", "depth", "power")
"""The names of `--chart`."""

_PERCENTILES = {"p50": "50", "p95": "95", "p99": "99", "p999": "99.9", "p9999": "99.99",
                "max": "max"}  # fmt: skip
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
    rows = []
    for row in _rows(report):
        values = {name: row[f"latency_{name}_s"] for name in _PERCENTILES}
        points = {name: 1e3 * of.median for name, of in values.items() if of and of.median > 0}
        if points:
            rows.append((row, points))
    if not rows:
        return Lacking("no experiment has percentiles of latencies")
    labels = _distinct([row for row, _points in rows[:_MOST_LINES]], report)
    known = [name for name in _PERCENTILES if any(name in points for _row, points in rows)]
    figure = sheet(look.width_inches or 7.5, 3.6, labels)
    panel = figure.subplots()
    for number, (_row, points) in enumerate(rows[:_MOST_LINES]):
        places = [known.index(name) for name in points]
        panel.plot(places, list(points.values()), **_style(number))
    panel.set_xticks(range(len(known)), [_PERCENTILES[name] for name in known], fontsize=7)
    panel.set_xlabel("Percentile of requests", fontsize=8)
    _set_y(panel, "Latency (ms)", [value for _row, of in rows for value in of.values()])
    description = f"Latency of {len(labels)} experiments by percentile{_left_out(len(rows))}."
    return {"latency": _done(figure, [panel], "Latency by percentile", labels, report, description)}


def _distinct(rows: Sequence[Row], report: Report) -> list[str]:
    """The label of each row, with its details where several have the same."""
    labels = [_label(row, report, ()) for row in rows]
    count = Counter(labels)
    return [
        f"{label}, {foreign(', '.join(row.details))}" if count[label] > 1 else label
        for row, label in zip(rows, labels, strict=True)
    ]


@dataclass(frozen=True)
class _Quantity:
    """A figure of a row over queue depth or request size."""

    title: str
    value: Callable[[Row, DomainFigures | None], Quartiles | None]
    unit: float = 1.0


def _j_per_request(row: Row, figures: DomainFigures | None) -> Quartiles | None:
    """The reciprocal of IOPS/W."""
    rate = None if figures is None else figures["iops_per_w"]
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
    return 1 if is_own and not stated else None


_Point = tuple[int, Row]


def _depth(report: Report, readings: Readings, look: Look) -> dict[str, Drawing] | Lacking:
    """IOPS, latency and energy of a request, over the queue depth, and over the request size."""
    rows = [row for row in _rows(report) if row["iops"] is not None]
    if not rows:
        return Lacking("no experiment reports its requests per second (IOPS)")
    by_depth: dict[str, list[_Point]] = {}
    by_size: dict[str, list[_Point]] = {}
    for row in rows:
        depth, size = _depth_of(row, report), row.request_size_bytes
        if depth is not None:
            by_depth.setdefault(_label(row, report, ("iodepth",)), []).append((depth, row))
        if size is not None:
            by_size.setdefault(_label(row, report, ("size",)), []).append((size, row))
    swept = {
        title: {label: points for label, points in groups.items()
                if len({x for x, _ in points}) > 1}
        for title, groups in (("Queue depth", by_depth), ("Request size", by_size))
    }  # fmt: skip
    swept = {title: groups for title, groups in swept.items() if groups}
    if not swept:
        return Lacking(
            "no two experiments differ only in their queue depth (iodepth) or request size"
        )
    return {"depth": _draw_depth(report, swept, look)}


def _draw_depth(
    report: Report, swept: Mapping[str, Mapping[str, Sequence[_Point]]], look: Look
) -> Drawing:
    labels = list(dict.fromkeys(label for groups in swept.values() for label in groups))
    shown = labels[:_MOST_LINES]
    figures = [figure for figure in _QUANTITIES if _has(figure, swept)]
    columns = len(figures) if look.width_inches is None else min(2, len(figures))
    lines = -(-len(figures) // columns)
    width = look.width_inches or _PANEL_INCHES[0] * columns
    sheet_of = sheet(width, _PANEL_INCHES[1] * lines * len(swept), shown)
    grid = sheet_of.subplots(lines * len(swept), columns, squeeze=False)
    panels = []
    for line, (title, groups) in enumerate(swept.items()):
        of_line = list(grid[line * lines : (line + 1) * lines].flat)
        for panel, figure in zip(of_line, figures, strict=False):
            for label in (one for one in groups if one in shown):
                _draw_points(panel, groups[label], figure, shown.index(label))
            _set_x(panel, title, sorted({x for points in groups.values() for x, _ in points}))
            _set_y(panel, figure.title, _values(groups, figure))
            panels.append(panel)
        for panel in of_line[len(figures) :]:
            panel.set_axis_off()
    title = f"Requests by {' and '.join(name.lower() for name in swept)}"
    description = (
        f"{', '.join(figure.title for figure in figures)}: medians with quartiles of "
        f"{len(shown)} series{_left_out(len(labels))}."
    )
    return _done(sheet_of, panels, title, shown, report, description)


def _has(figure: _Quantity, swept: Mapping[str, Mapping[str, Sequence[_Point]]]) -> bool:
    points = [one for groups in swept.values() for of_group in groups.values() for one in of_group]
    return any(figure.value(row, row.measured) is not None for _, row in points)


def _draw_points(panel: Axes, points: Sequence[_Point], figure: _Quantity, number: int) -> None:
    found = [
        (x, of)
        for x, row in sorted(points, key=lambda point: point[0])
        if (of := figure.value(row, row.measured)) is not None and of.q1 > 0
    ]
    if not found:
        return
    middle = [of.median / figure.unit for _, of in found]
    below = [(of.median - of.q1) / figure.unit for _, of in found]
    above = [(of.q3 - of.median) / figure.unit for _, of in found]
    panel.errorbar([x for x, _ in found], middle, yerr=[below, above], elinewidth=0.8,
                   **_style(number))  # fmt: skip


def _set_x(panel: Axes, title: str, values: Sequence[int]) -> None:
    panel.set_xscale("log", base=2)
    label = size_label if title == "Request size" else str
    panel.set_xticks(values, [label(value) for value in values], fontsize=7)
    panel.minorticks_off()
    panel.set_xlabel(title, fontsize=8)


def _values(groups: Mapping[str, Sequence[_Point]], figure: _Quantity) -> list[float]:
    found = [figure.value(row, row.measured) for points in groups.values() for _, row in points]
    ends = [end for of in found if of is not None for end in (of.q1, of.q3)]
    return [end / figure.unit for end in ends if end > 0]


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
    found = {name: one for name, one in every.items() if name.startswith("power-over-time")}
    if found:
        return found
    means = {one.name: of for one in report.campaigns if (of := _means(one))}
    if not means:
        return Lacking("no power of a run was measured")
    labels = list(dict.fromkeys(label for of in means.values() for label, _, _, _ in of))
    figure = sheet(look.width_inches or 7.5, 2.6 * len(means), labels)
    panels = list(figure.subplots(len(means), 1, squeeze=False).flat)
    for panel, (name, of_campaign) in zip(panels, means.items(), strict=True):
        first_s = min(begin_s for _, begin_s, _, _ in of_campaign)
        for label, begin_s, lasted_s, power_w in of_campaign:
            colour = COLOURS[labels.index(label) % len(COLOURS)]
            ends = [begin_s - first_s, begin_s - first_s + lasted_s]
            panel.plot(ends, [power_w, power_w], linewidth=2.0, color=colour)
        panel.set_xlabel(f"Time since the first run of {foreign(name)} (s)", fontsize=8)
        panel.set_ylabel("Mean power of a run (W)", fontsize=8)
        panel.set_ylim(0, 1.1 * max(power_w for _, _, _, power_w in of_campaign))
        panel.grid(linewidth=0.3)
        panel.tick_params(axis="y", labelsize=7)
        panel.tick_params(axis="x", labelsize=7)
    count = sum(map(len, means.values()))
    description = f"The mean power of {count} runs; their readings are not stored."
    title = "Power over time, mean of each run"
    return {"power-over-time": _done(figure, panels, title, labels, report, description, "")}


def _means(campaign: Campaign) -> list[tuple[str, float, float, float]]:
    """Of each run with a measured power: the domain with its meter, the time of its begin, how
    long it lasted, and W of its widest domain."""
    found = []
    for run in campaign.runs:
        readings = [
            reading
            for phase in run.phases
            for reading in phase.energy
            if reading.valid and reading.power_w is not None and reading.kind != "modelled"
        ]
        if not readings or run.validity or not run.started_utc or not run.duration_s:
            continue
        widest = min(readings, key=lambda one: list(DOMAINS).index(one.domain))
        assert widest.power_w is not None
        begin_s = datetime.fromisoformat(run.started_utc).timestamp()
        label = f"{widest.domain} ({widest.meter})"
        found.append((label, begin_s, run.duration_s, widest.power_w))
    return found


def _label(row: Row, report: Report, without: Sequence[str]) -> str:
    """An experiment in words, but for its queue depth or its request size."""
    experiment = row.experiment
    assert experiment is not None
    arguments = dict(experiment.arguments)
    parts = [row.campaign] if len(report.campaigns) > 1 else []
    parts.append(row.io_label)
    if "size" not in without and row.request_size_bytes is not None:
        parts.append(format_size(row.request_size_bytes))
    parts += [experiment.tool, arguments.get("engine", "")]
    if "iodepth" not in without and "iodepth" in arguments:
        parts.append(f"depth {arguments['iodepth']}")
    if experiment.processes > 1:
        parts.append(f"x{experiment.processes}")
    parts += [
        f"{name.replace('_', ' ')} {arguments[name]} %"
        for name in ("read_share", "load")
        if name in arguments
    ]
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
    return f"; {count - _MOST_LINES} more are left out" if count > _MOST_LINES else ""


def _done(
    figure: Figure,
    panels: Sequence[Axes],
    title: str,
    labels: Sequence[str],
    report: Report,
    description: str,
    marker: str | None = None,
) -> Drawing:
    stamped = stamp_of(report.campaigns)
    for panel in panels:
        if stamped:
            stamp(panel, stamped)
    handles = []
    for number in range(len(labels)):
        style = _style(number)
        handles.append(Line2D([], [], **(style if marker is None else style | {"marker": marker})))
    legend = list(zip(handles, labels, strict=True))
    return finished(figure, title + ending(stamped), legend, description)
