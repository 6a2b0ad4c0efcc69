"""The figures of a study of machines and drives (docs/studies/), from any campaigns.

Every repetition is a dot, the median a line across them, its 95 % interval a band, the quartiles a
thin line at the side; one panel a machine and drive, all on one scale, which is logarithmic where
the values span decades.
"""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from eeio.analysis.summary import quartiles
from eeio.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    POWER,
    S_PER_GB,
    Cell,
    cells_of,
    machine_names,
    size_label,
    without_unsure_energy,
)
from eeio.comparison.idle import IdleBusy, idle_and_busy
from eeio.record.publication import stamp_of
from eeio.record.store import Campaign
from eeio.report.figures import run_figures
from eeio.report.figures.drawing import (
    BLUE,
    GREEN,
    GREY,
    SCREEN,
    VERMILION,
    Drawing,
    Look,
    ending,
    finished,
    foreign,
    is_logarithmic,
    sheet,
    stamp,
    svg_of,
)
from eeio.report.figures.run_figures import Readings, processors
from eeio.statistics.bootstrap import median_interval
from eeio.units.sizes import MB, format_size

_COLOURS = {"off": BLUE, "on": VERMILION, "as found": GREY}
_MARKS = {"off": "o", "on": "s", "as found": "D"}
_PANEL_INCHES = (3.1, 2.9)
# Of the labels below an axis: narrower, and neighbours touch.
_KIND_INCHES = 0.36
_METRICS = {
    BANDWIDTH: ("bandwidth", "Bandwidth (MB/s)", MB),
    EFFICIENCY: ("efficiency", "Energy efficiency (MB/J)", MB),
}
_A_REPETITION = "a repetition; line: median, band: its 95 % interval; thin line: quartiles"


def draw(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """File name -> SVG of every figure that these campaigns have the data for."""
    return {f"{name}.svg": svg_of(drawing) for name, drawing in drawn(campaigns).items()}


def drawn(
    campaigns: Sequence[Campaign],
    look: Look = SCREEN,
    wanted: Callable[[Cell], bool] = lambda cell: True,
    readings: Readings = lambda campaign: (),
) -> dict[str, Drawing]:
    """Name -> every figure that these campaigns have the data for, at that width, of the cells that
    are wanted. `readings` gives what the meters of a campaign read over time."""
    names = machine_names(campaigns)
    stamped = stamp_of(campaigns)
    of_each = []
    for campaign, name in zip(campaigns, names, strict=True):
        # A doubtful power is no mark among others.
        cells = [without_unsure_energy(cell, math.inf) for cell in cells_of(campaign, name)]
        of_each.append((campaign, list(filter(wanted, cells))))
    by_source: dict[tuple[str, str], list[Cell]] = {}
    for _, cells in of_each:
        for cell in cells:
            by_source.setdefault(_source(cell), []).append(cell)
    figures: dict[str, Drawing] = {}
    for source, cells in by_source.items():
        # Most campaigns have one; its name then adds no information.
        suffix = ""
        if len(by_source) != 1:
            suffix = "-" + "-".join(source)
        figures |= _by_metric(cells, source, suffix, stamped, look)
        times = _times(cells, source, stamped, look)
        figures |= {f"{name}{suffix}": drawing for name, drawing in times.items()}
    if idle := _idle_and_busy_values(of_each):
        figures["idle-busy"] = _idle_busy(idle, stamped, look)
    figures |= run_figures.drawn(of_each, readings, stamped, look)
    return figures | processors([_only(*each) for each in of_each], names, stamped, look)


def _by_metric(
    cells: Sequence[Cell], source: tuple[str, str], suffix: str, stamped: str, look: Look
) -> dict[str, Drawing]:
    """A figure for each metric and operation. Writes that end at different moments never share
    one."""
    figures = {}
    for metric, (name, label, unit) in _metrics(cells).items():
        for operation in ("write", "read"):
            by_flush: dict[str, list[Cell]] = {}
            for cell in cells:
                if cell.factors["operation"] == operation and cell.n(metric):
                    by_flush.setdefault(_flushed(cell), []).append(cell)
            for flushed, alike in by_flush.items():
                of_flush = ""
                if len(by_flush) > 1:
                    of_flush = f", {flushed}"
                title = f"{label.partition(' (')[0]}, {operation}{of_flush} ({', '.join(source)})"
                file = f"{name}-{operation}{suffix}{of_flush}".replace(", ", "-")
                axis = label
                if metric == EFFICIENCY:
                    axis = label + _domains(alike)
                figures[file.replace(" ", "-")] = _repetitions(
                    alike, metric, unit, axis, title, stamped, look
                )
    return figures


def _idle_and_busy_values(
    of_each: Sequence[tuple[Campaign, Sequence[Cell]]],
) -> list[tuple[IdleBusy, Sequence[float]]]:
    """Each domain with an idle power, and the powers of its busiest experiment."""
    cells: list[Cell] = []
    for _, of_campaign in of_each:
        cells.extend(of_campaign)
    return [
        (item, _busy_values(cells, item))
        for campaign, of_campaign in of_each
        for item in idle_and_busy(campaign, of_campaign)
        if item.domain != "rest" and item.idle_w is not None
    ]


def _only(campaign: Campaign, cells: Sequence[Cell]) -> Campaign:
    """The runs of these cells."""
    ids = {cell.experiment_id for cell in cells}
    return replace(campaign, runs=tuple(r for r in campaign.runs if r.experiment.id in ids))


def _times(
    cells: Sequence[Cell], source: tuple[str, str], stamped: str, look: Look
) -> dict[str, Drawing]:
    """Figure 5 of Pavan et al. 2017: the time of a fixed work, of the experiments in which every
    repetition moved the same bytes; none where a time ended the runs."""
    groups: dict[tuple[int, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.work_bytes and cell.n(S_PER_GB) and cell.factors["operation"] in ("write", "read"):
            key = cell.work_bytes, cell.factors["operation"], _flushed(cell)
            groups.setdefault(key, []).append(cell)
    several = {
        (work, operation): len({key for key in groups if key[:2] == (work, operation)}) > 1
        for work, operation, _ in groups
    }
    drawn = {}
    for (work, operation, flushed), own in groups.items():
        of_flush = ""
        if several[work, operation]:
            of_flush = f", {flushed}"
        label = f"Time of {format_size(work)} (s)"
        title = f"Time of {format_size(work)}, {operation}{of_flush} ({', '.join(source)})"
        name = f"time-{format_size(work)}-{operation}{of_flush}".replace(", ", "-")
        drawn[name.replace(" ", "-")] = _repetitions(
            own, S_PER_GB, 1e9 / work, label, title, stamped, look
        )
    return drawn


def _domains(cells: Sequence[Cell]) -> str:
    """The power domains of a MB/J: ` of system`; for several machines all of their domains."""
    names = dict.fromkeys(name for cell in cells for name in cell.efficiency_of)
    if names:
        return f" of {', '.join(map(foreign, names))}"
    return ""


def _source(cell: Cell) -> tuple[str, str]:
    return cell.factors["level"], cell.factors["tool"]


def _flushed(cell: Cell) -> str:
    flush = f"flush {cell.factors['flush']}"
    if cell.factors["durable"] == "no":
        return f"{flush}, not durable"
    return flush


def _metrics(cells: Sequence[Cell]) -> Mapping[str, tuple[str, str, float]]:
    domains = {}
    for domain, metric in POWER.items():
        domains[metric] = (f"power-{domain}", f"Power of the {domain} (W)", 1.0)
    return {
        metric: label
        for metric, label in {**_METRICS, **domains}.items()
        if any(cell.n(metric) for cell in cells)
    }


def _place(cell: Cell) -> tuple[str, str]:
    target = cell.factors["target"]
    file_system = ""
    if target not in ("file", "device"):
        file_system = f" {target.removeprefix('file on ')}"
    return cell.factors["machine"], cell.factors["device"] + file_system


def _grid(
    places: Sequence[tuple[str, str]], look: Look, least: float, legend: Sequence[str]
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A row of panels per machine, in as many lines as its drives need; drives that all machines
    have are below each other. `least` is the minimum width of a panel, in inches."""
    machines = list(dict.fromkeys(machine for machine, _ in places))
    drives = {m: [drive for machine, drive in places if machine == m] for m in machines}
    columns = max(map(len, drives.values()))
    panel = max(_PANEL_INCHES[0], least)
    if look.width_inches is not None:
        columns = max(1, min(columns, int((look.width_inches - 0.4) / least)))
    width = look.width_inches or panel * columns + 0.4
    lines = [
        (machine, of_machine[first : first + columns])
        for machine, of_machine in drives.items()
        for first in range(0, len(of_machine), columns)
    ]
    height = 2.2
    if look.width_inches is None:
        height = _PANEL_INCHES[1]
    figure = sheet(width, height * len(lines) + 0.7, legend)
    axes = figure.subplots(len(lines), columns, squeeze=False, sharey=True)
    axes_of = {}
    for row, (machine, of_line) in zip(axes, lines, strict=True):
        for index, axis in enumerate(row):
            if index < len(of_line):
                heading = foreign(f"{machine}, {of_line[index]}")
                axis.set_title(textwrap.fill(heading, int(13 * width / columns)), fontsize=8)
                axes_of[machine, of_line[index]] = axis
            else:
                axis.set_axis_off()
    return figure, axes_of


def _repetitions(
    cells: Sequence[Cell],
    metric: str,
    unit: float,
    label: str,
    title: str,
    stamped: str,
    look: Look,
) -> Drawing:
    """Figures 1, 2, 4, 5, 10 and 11: bars of medians, dots of repetitions."""
    places = sorted(set(map(_place, cells)), key=lambda place: (place[0] != "PC", place))
    kinds = sorted(set(map(_kind, cells)), key=_kind_order)
    values = [value / unit for cell in cells for value in cell.values(metric)]
    logarithmic = is_logarithmic(values)
    buffers = _buffers(cells)
    legend = _legend(buffers)
    least = min(max(1.5, _KIND_INCHES * len(kinds) + 0.4), (look.width_inches or 99) - 0.4)
    figure, panels = _grid(places, look, least, [text for _, text in legend])
    width = 0.7 / len(buffers)
    for cell in cells:
        buffer = cell.factors["buffer"]
        shift = (buffers.index(buffer) - (len(buffers) - 1) / 2) * width
        at = kinds.index(_kind(cell)) + shift
        of_cell = [value / unit for value in cell.values(metric)]
        colour, mark = _COLOURS[buffer], _MARKS[buffer]
        _dots(panels[_place(cell)], at, width * 0.85, of_cell, colour, mark)
    for panel in panels.values():
        _set_axes(panel, kinds, logarithmic)
        if stamped:
            stamp(panel, stamped)
    axis = label + (", logarithmic scale" if logarithmic else "")
    figure.supylabel(textwrap.fill(axis, int(14 * figure.get_size_inches()[1])), fontsize=8)
    names = ", ".join(f"{machine}, {drive}" for machine, drive in places)
    return finished(
        figure,
        title + ending(stamped),
        legend,
        f"{axis}: {len(cells)} experiments on {names}. "
        f"From {min(values):.4g} to {max(values):.4g}. {_A_REPETITION}.",
    )


def _buffers(cells: Sequence[Cell]) -> list[str]:
    """The states of the buffer cache in these cells, in the order of the colours."""
    states = {cell.factors["buffer"] for cell in cells}
    return [state for state in _COLOURS if state in states]


def _legend(buffers: Sequence[str]) -> list[tuple[Line2D, str]]:
    legend = []
    for buffer in buffers:
        handle = Line2D([], [], marker=_MARKS[buffer], linestyle="", color=_COLOURS[buffer])
        legend.append((handle, f"buffer cache {buffer}"))
    handle = Line2D([], [], marker=".", linestyle="-", color="black")
    return [*legend, (handle, _A_REPETITION)]


def _set_axes(panel: Axes, kinds: Sequence[tuple[str, int | None]], logarithmic: bool) -> None:
    texts = [f"{spatiality[:4]}.\n{size_label(size)}" for spatiality, size in kinds]
    panel.set_xticks(range(len(kinds)), texts, fontsize=7)
    panel.set_xlim(-0.6, len(kinds) - 0.4)
    panel.grid(axis="y", linewidth=0.3)
    panel.tick_params(axis="y", labelsize=7)
    if logarithmic:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)


def _kind(cell: Cell) -> tuple[str, int | None]:
    return cell.factors["spatiality"], cell.request_size_bytes


def _kind_order(kind: tuple[str, int | None]) -> tuple[int, int]:
    spatiality, size_bytes = kind
    order = ("sequential", "random", "strided", "mixed")
    return order.index(spatiality), size_bytes or 0


def _dots(
    panel: Axes, at: float, width: float, values: Sequence[float], colour: str, mark: str = "o"
) -> None:
    """Repetitions in their order, their median across them, its interval behind, their quartiles at
    the right side."""
    estimate = median_interval(values, resamples=2000)
    of_values = quartiles(values)
    if estimate.value is None or of_values is None:
        return
    left, right = at - width / 2, at + width / 2
    if estimate.interval is not None:
        panel.fill_between(
            [left, right],
            estimate.interval.low,
            estimate.interval.high,
            color=colour,
            alpha=0.3,
            linewidth=0,
            zorder=2,
        )
    panel.hlines(estimate.value, left, right, color=colour, linewidth=1.8, zorder=3)
    panel.vlines(right, of_values.q1, of_values.q3, color=colour, linewidth=1.0, zorder=3)
    # Side by side, so that equal values stay apart.
    spread = width * 0.8 / max(1, len(values) - 1)
    first = at - spread * (len(values) - 1) / 2
    panel.plot(
        [first + spread * n for n in range(len(values))],
        values,
        mark,
        markersize=2.4,
        color=colour,
        markeredgecolor="black",
        markeredgewidth=0.3,
        zorder=4,
    )


def _busy_values(cells: Sequence[Cell], item: IdleBusy) -> Sequence[float]:
    metric = POWER[item.domain]
    for cell in cells:
        here = cell.factors["machine"] == item.machine and cell.factors["device"] == item.device
        if here and cell.label(without=("machine", "device")) == item.busiest:
            return cell.values(metric)
    return ()


def _idle_busy(
    items: Sequence[tuple[IdleBusy, Sequence[float]]], stamped: str, look: Look
) -> Drawing:
    """Figure 6: a panel a domain, a pair of bars a machine and drive."""
    by_domain: dict[str, list[tuple[IdleBusy, Sequence[float]]]] = {}
    for item, values in items:
        by_domain.setdefault(item.domain, []).append((item, values))
    width = look.width_inches or max(4.5, 1.0 + max(map(len, by_domain.values())))
    labels = ["idle: mean of the baseline; black line: its median", f"busy: {_A_REPETITION}"]
    figure = sheet(width, 2.6 * len(by_domain) + 0.6, labels)
    axes = figure.subplots(len(by_domain), 1, squeeze=False)
    for (panel,), (domain, of_domain) in zip(axes, by_domain.items(), strict=True):
        for at, (item, values) in enumerate(of_domain):
            _pair_of_bars(panel, at, item, values)
        panel.set_xticks(
            range(len(of_domain)),
            [f"{foreign(item.machine)}\n{foreign(item.device)}" for item, _ in of_domain],
            fontsize=7,
        )
        panel.set_ylim(bottom=0)
        panel.set_ylabel(f"Power of {domain} (W)", fontsize=8)
        panel.grid(axis="y", linewidth=0.3)
        if stamped:
            stamp(panel, stamped)
    title = "Power when idle and in the busiest experiment" + ending(stamped)
    handles = [Line2D([], [], marker="s", linestyle="", color=c) for c in (GREEN, VERMILION)]
    description = "; ".join(_idle_text(item) for item, _ in items if item.idle_w is not None)
    return finished(
        figure, title, list(zip(handles, labels, strict=True)), f"{description}. {_A_REPETITION}."
    )


def _pair_of_bars(panel: Axes, at: int, item: IdleBusy, values: Sequence[float]) -> None:
    assert item.idle_w is not None
    panel.bar(at - 0.2, item.idle_w, 0.36, color=GREEN)
    if item.idle_median_w is not None:
        panel.hlines(item.idle_median_w, at - 0.38, at - 0.02, color="black", linewidth=1.2)
    if values:
        _dots(panel, at + 0.2, 0.36, values, VERMILION)


def _idle_text(item: IdleBusy) -> str:
    text = f"{item.machine} {item.device}, {item.domain}: idle {item.idle_w:.4g} W"
    if item.idle_median_w is None:
        return text
    return f"{text} (median {item.idle_median_w:.4g} W)"
