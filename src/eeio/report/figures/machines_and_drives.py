"""The figures of a study of machines and drives (docs/studies/), from any campaigns.

Every repetition is a dot, the median a line across them, its 95 % interval a band, the quartiles a
thin line at the side; one panel a machine and drive, all on one scale, which is logarithmic where
the values span decades.
"""

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
_METRICS = {BANDWIDTH: ("bandwidth", "Bandwidth (MB/s)", MB),
            EFFICIENCY: ("efficiency", "Energy efficiency (MB/J)", MB)}  # fmt: skip
_A_REPETITION = "a repetition; line: median, band: its 95 % interval; thin line: quartiles"


def draw(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """File name -> SVG of every figure that these campaigns have the data for."""
    return {f"{name}.svg": svg_of(one) for name, one in drawn(campaigns).items()}


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
    of_each = [
        (campaign, [cell for cell in cells_of(campaign, name) if wanted(cell)])
        for campaign, name in zip(campaigns, names, strict=True)
    ]
    cells = [cell for _, of_one in of_each for cell in of_one]
    found: dict[str, Drawing] = {}
    for source in dict.fromkeys(_source(cell) for cell in cells):
        mine = [cell for cell in cells if _source(cell) == source]
        # Most campaigns have one; its name then adds no information.
        suffix = "" if len({_source(cell) for cell in cells}) == 1 else "-" + "-".join(source)
        for metric, (name, label, unit) in _metrics(mine).items():
            for operation in ("write", "read"):
                chosen = [c for c in mine if c.factors["operation"] == operation and c.n(metric)]
                flushes = dict.fromkeys(_flushed(cell) for cell in chosen)
                for flushed in flushes:
                    # Writes that end at different moments never share a figure.
                    own = [c for c in chosen if _flushed(c) == flushed]
                    of_flush = f", {flushed}" if len(flushes) > 1 else ""
                    title = f"{label.partition(' (')[0]}, {operation}{of_flush} "
                    title += f"({', '.join(source)})"
                    file = f"{name}-{operation}{suffix}{of_flush}".replace(", ", "-")
                    axis = label + _domains(own) if metric == EFFICIENCY else label
                    found[file.replace(" ", "-")] = _repetitions(
                        own, metric, unit, axis, title, stamped, look
                    )
        times = _times(mine, source, stamped, look)
        found |= {f"{name}{suffix}": one for name, one in times.items()}
    idle = [
        (item, _busy_values(cells, item))
        for campaign, of_one in of_each
        for item in idle_and_busy(campaign, of_one)
        if item.domain != "rest" and item.idle_w is not None
    ]
    if idle:
        found["idle-busy"] = _idle_busy(idle, stamped, look)
    found |= run_figures.drawn(of_each, readings, stamped, look)
    return found | processors([_only(*one) for one in of_each], names, stamped, look)


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
    found = {}
    for (work, operation, flushed), own in groups.items():
        of_flush = f", {flushed}" if several[work, operation] else ""
        label = f"Time of {format_size(work)} (s)"
        title = f"Time of {format_size(work)}, {operation}{of_flush} ({', '.join(source)})"
        name = f"time-{format_size(work)}-{operation}{of_flush}".replace(", ", "-")
        found[name.replace(" ", "-")] = _repetitions(
            own, S_PER_GB, 1e9 / work, label, title, stamped, look
        )
    return found


def _domains(cells: Sequence[Cell]) -> str:
    """The power domains of a MB/J: ` of system`; for several machines all of their domains."""
    names = dict.fromkeys(name for cell in cells for name in cell.efficiency_of)
    return f" of {', '.join(map(foreign, names))}" if names else ""


def _source(cell: Cell) -> tuple[str, str]:
    return cell.factors["level"], cell.factors["tool"]


def _flushed(cell: Cell) -> str:
    flush = f"flush {cell.factors['flush']}"
    return f"{flush}, not durable" if cell.factors["durable"] == "no" else flush


def _metrics(cells: Sequence[Cell]) -> Mapping[str, tuple[str, str, float]]:
    domains = {
        metric: (f"power-{domain}", f"Power of the {domain} (W)", 1.0)
        for domain, metric in POWER.items()
    }
    return {
        metric: label
        for metric, label in {**_METRICS, **domains}.items()
        if any(cell.n(metric) for cell in cells)
    }


def _place(cell: Cell) -> tuple[str, str]:
    target = cell.factors["target"]
    file_system = "" if target in ("file", "device") else f" {target.removeprefix('file on ')}"
    return cell.factors["machine"], cell.factors["device"] + file_system


def _grid(
    places: Sequence[tuple[str, str]], look: Look, least: float, legend: Sequence[str]
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A row of panels per machine, in as many lines as its drives need; drives that all machines
    have are below each other. `least` is the minimum width of a panel, in inches."""
    machines = list(dict.fromkeys(machine for machine, _ in places))
    drives = {m: [drive for machine, drive in places if machine == m] for m in machines}
    columns = max(len(of_machine) for of_machine in drives.values())
    panel = max(_PANEL_INCHES[0], least)
    if look.width_inches is not None:
        columns = max(1, min(columns, int((look.width_inches - 0.4) / least)))
    width = look.width_inches or panel * columns + 0.4
    lines = [
        (machine, of_machine[first : first + columns])
        for machine, of_machine in drives.items()
        for first in range(0, len(of_machine), columns)
    ]
    height = _PANEL_INCHES[1] if look.width_inches is None else 2.2
    figure = sheet(width, height * len(lines) + 0.7, legend)
    axes = figure.subplots(len(lines), columns, squeeze=False, sharey=True)
    found = {}
    for row, (machine, of_line) in zip(axes, lines, strict=True):
        for place, axis in enumerate(row):
            if place < len(of_line):
                heading = foreign(f"{machine}, {of_line[place]}")
                axis.set_title(textwrap.fill(heading, int(13 * width / columns)), fontsize=8)
                found[machine, of_line[place]] = axis
            else:
                axis.set_axis_off()
    return figure, found


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
    places = sorted({_place(cell) for cell in cells}, key=lambda place: (place[0] != "PC", place))
    kinds = sorted({_kind(cell) for cell in cells}, key=_kind_order)
    buffers = [b for b in ("off", "on", "as found") if any(c.factors["buffer"] == b for c in cells)]
    values = [value / unit for cell in cells for value in cell.values(metric)]
    logarithmic = is_logarithmic(values)
    handles = [Line2D([], [], marker=_MARKS[b], linestyle="", color=_COLOURS[b]) for b in buffers]
    handles.append(Line2D([], [], marker=".", linestyle="-", color="black"))
    labels = [*(f"buffer cache {b}" for b in buffers), _A_REPETITION]
    least = min(max(1.5, _KIND_INCHES * len(kinds) + 0.4), (look.width_inches or 99) - 0.4)
    figure, panels = _grid(places, look, least, labels)
    width = 0.7 / len(buffers)
    for cell in cells:
        panel = panels[_place(cell)]
        buffer = cell.factors["buffer"]
        shift = (buffers.index(buffer) - (len(buffers) - 1) / 2) * width
        at = kinds.index(_kind(cell)) + shift
        of_cell = [value / unit for value in cell.values(metric)]
        _dots(panel, at, width * 0.85, of_cell, _COLOURS[buffer], _MARKS[buffer])
    for panel in panels.values():
        panel.set_xticks(
            range(len(kinds)), [f"{s[:4]}.\n{size_label(size)}" for s, size in kinds], fontsize=7
        )
        panel.set_xlim(-0.6, len(kinds) - 0.4)
        panel.grid(axis="y", linewidth=0.3)
        panel.tick_params(axis="y", labelsize=7)
        if logarithmic:
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
        if stamped:
            stamp(panel, stamped)
    axis = label + (", logarithmic scale" if logarithmic else "")
    figure.supylabel(textwrap.fill(axis, int(14 * figure.get_size_inches()[1])), fontsize=8)
    return finished(
        figure,
        title + ending(stamped),
        list(zip(handles, labels, strict=True)),
        f"{axis}: {len(cells)} experiments on "
        f"{', '.join(f'{machine}, {drive}' for machine, drive in places)}. "
        f"From {min(values):.4g} to {max(values):.4g}. {_A_REPETITION}.",
    )


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
    found = quartiles(values)
    if estimate.value is None or found is None:
        return
    left, right = at - width / 2, at + width / 2
    if estimate.interval is not None:
        panel.fill_between(
            [left, right], estimate.interval.low, estimate.interval.high, color=colour, alpha=0.3,
            linewidth=0, zorder=2,
        )  # fmt: skip
    panel.hlines(estimate.value, left, right, color=colour, linewidth=1.8, zorder=3)
    panel.vlines(right, found.q1, found.q3, color=colour, linewidth=1.0, zorder=3)
    # Side by side, so that equal values stay apart.
    spread = width * 0.8 / max(1, len(values) - 1)
    first = at - spread * (len(values) - 1) / 2
    panel.plot(
        [first + spread * n for n in range(len(values))], values, mark, markersize=2.4,
        color=colour, markeredgecolor="black", markeredgewidth=0.3, zorder=4,
    )  # fmt: skip


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
    domains = list(dict.fromkeys(item.domain for item, _ in items))
    widest = max(sum(item.domain == domain for item, _ in items) for domain in domains)
    width = look.width_inches or max(4.5, 1.0 + widest)
    labels = ["idle: mean of the baseline; black line: its median", f"busy: {_A_REPETITION}"]
    figure = sheet(width, 2.6 * len(domains) + 0.6, labels)
    axes = figure.subplots(len(domains), 1, squeeze=False)
    for (panel,), domain in zip(axes, domains, strict=True):
        mine = [(item, values) for item, values in items if item.domain == domain]
        for at, (item, values) in enumerate(mine):
            assert item.idle_w is not None
            panel.bar(at - 0.2, item.idle_w, 0.36, color=GREEN)
            if item.idle_median_w is not None:
                panel.hlines(item.idle_median_w, at - 0.38, at - 0.02, color="black", linewidth=1.2)
            if values:
                _dots(panel, at + 0.2, 0.36, values, VERMILION)
        panel.set_xticks(
            range(len(mine)),
            [f"{foreign(item.machine)}\n{foreign(item.device)}" for item, _ in mine],
            fontsize=7,
        )
        panel.set_ylim(bottom=0)
        panel.set_ylabel(f"Power of {domain} (W)", fontsize=8)
        panel.grid(axis="y", linewidth=0.3)
        if stamped:
            stamp(panel, stamped)
    title = "Power when idle and in the busiest experiment" + ending(stamped)
    handles = [Line2D([], [], marker="s", linestyle="", color=c) for c in (GREEN, VERMILION)]
    description = "; ".join(
        f"{item.machine} {item.device}, {item.domain}: idle {item.idle_w:.4g} W"
        + ("" if item.idle_median_w is None else f" (median {item.idle_median_w:.4g} W)")
        for item, _ in items
        if item.idle_w is not None
    )
    return finished(
        figure, title, list(zip(handles, labels, strict=True)), f"{description}. {_A_REPETITION}."
    )
