"""The figures of a study of machines and drives (docs/studies/), from any campaigns.

Every repetition is a dot, the median a line across them, its 95 % interval a
band; one panel a machine and drive;
a logarithmic axis where the values span decades; Okabe and Ito's colours.
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from eeio_results.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    POWER,
    Cell,
    cells_of,
    machine_names,
    size_label,
)
from eeio_results.comparison.idle import IdleBusy, idle_and_busy
from eeio_results.record import ProcessorSeries, Run
from eeio_results.report.plots import foreign, sheet, svg_of
from eeio_results.statistics.bootstrap import median_interval
from eeio_results.store import Campaign
from eeio_results.units import MB

_COLOURS = {"off": "#0072B2", "on": "#E69F00", "as found": "#555555"}
_LINES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000")
# Values that span more than this are drawn on a logarithmic axis.
_LOG_SCALE_RATIO = 20.0
_PANEL_INCHES = (3.1, 2.9)
_METRICS = {BANDWIDTH: ("bandwidth", "Bandwidth (MB/s)", MB),
            EFFICIENCY: ("efficiency", "Energy efficiency (MB/J)", MB)}  # fmt: skip


def draw(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """File name -> SVG of every figure that these campaigns have the data for."""
    names = machine_names(campaigns)
    named = list(zip(campaigns, names, strict=True))
    cells = [cell for campaign, name in named for cell in cells_of(campaign, name)]
    found: dict[str, str] = {}
    for source in dict.fromkeys(_source(cell) for cell in cells):
        mine = [cell for cell in cells if _source(cell) == source]
        # Most campaigns have one; its name then says nothing.
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
                    file = f"{name}-{operation}{suffix}{of_flush}.svg".replace(", ", "-")
                    found[file.replace(" ", "-")] = _repetitions(own, metric, unit, label, title)
    idle = [
        (item, _busy_values(cells, item))
        for campaign, name in named
        for item in idle_and_busy(campaign, cells_of(campaign, name))
        if item.domain != "rest" and item.idle_w is not None
    ]
    if idle:
        found["idle-busy.svg"] = _idle_busy(idle)
    return found | draw_processors(campaigns)


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
        metric: words
        for metric, words in {**_METRICS, **domains}.items()
        if any(cell.n(metric) for cell in cells)
    }


def _place(cell: Cell) -> tuple[str, str]:
    target = cell.factors["target"]
    file_system = "" if target in ("file", "device") else f" {target.removeprefix('file on ')}"
    return cell.factors["machine"], cell.factors["device"] + file_system


def _grid(
    places: Sequence[tuple[str, str]], height: float = _PANEL_INCHES[1]
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A row of panels a machine; drives that both have stand below each other."""
    machines = list(dict.fromkeys(machine for machine, _ in places))
    drives = {m: [drive for machine, drive in places if machine == m] for m in machines}
    columns = max(len(of_machine) for of_machine in drives.values())
    figure = sheet(_PANEL_INCHES[0] * columns + 0.4, height * len(machines) + 0.7)
    axes = figure.subplots(len(machines), columns, squeeze=False, sharey=True)
    found = {}
    for row, machine in enumerate(machines):
        for column in range(columns):
            panel = axes[row][column]
            if column < len(drives[machine]):
                drive = drives[machine][column]
                panel.set_title(foreign(f"{machine}, {drive}"), fontsize=9)
                found[machine, drive] = panel
            else:
                panel.set_axis_off()
    return figure, found


def _repetitions(cells: Sequence[Cell], metric: str, unit: float, label: str, title: str) -> str:
    """Figures 1, 2, 4, 5, 10 and 11: bars of medians, dots of repetitions."""
    places = sorted({_place(cell) for cell in cells}, key=lambda place: (place[0] != "PC", place))
    kinds = sorted({_kind(cell) for cell in cells}, key=_kind_order)
    buffers = [b for b in ("off", "on", "as found") if any(c.factors["buffer"] == b for c in cells)]
    values = [value / unit for cell in cells for value in cell.values[metric]]
    logarithmic = min(values) > 0 and max(values) / min(values) > _LOG_SCALE_RATIO
    figure, panels = _grid(places)
    width = 0.7 / len(buffers)
    for cell in cells:
        panel = panels[_place(cell)]
        shift = (buffers.index(cell.factors["buffer"]) - (len(buffers) - 1) / 2) * width
        at = kinds.index(_kind(cell)) + shift
        of_cell = [value / unit for value in cell.values[metric]]
        _dots(panel, at, width * 0.85, of_cell, _COLOURS[cell.factors["buffer"]])
    for panel in panels.values():
        panel.set_xticks(
            range(len(kinds)), [f"{s[:4]}.\n{size_label(size)}" for s, size in kinds], fontsize=7
        )
        panel.set_xlim(-0.6, len(kinds) - 0.4)
        panel.grid(axis="y", linewidth=0.3)
        panel.tick_params(axis="y", labelsize=8)
        if logarithmic:
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
    figure.supylabel(label + (", logarithmic" if logarithmic else ""), fontsize=9)
    figure.suptitle(foreign(title), fontsize=11)
    handles = [Line2D([], [], marker="s", linestyle="", color=_COLOURS[b]) for b in buffers]
    handles.append(Line2D([], [], marker=".", linestyle="", color="black"))
    words = [f"buffer cache {b}" for b in buffers]
    _legend(figure, handles, [*words, "a repetition; line: median, band: its 95 % interval"])
    return svg_of(figure)


def _kind(cell: Cell) -> tuple[str, int | None]:
    return cell.factors["spatiality"], cell.request_size_bytes


def _kind_order(kind: tuple[str, int | None]) -> tuple[int, int]:
    spatiality, size_bytes = kind
    order = ("sequential", "random", "strided", "mixed")
    return order.index(spatiality), size_bytes or 0


def _legend(figure: Figure, handles: Sequence[Line2D], words: Sequence[str]) -> None:
    """In the room that `sheet` leaves below the panels."""
    figure.legend(
        list(handles), list(words), loc="lower center", ncols=len(words), fontsize=8, frameon=False
    )


def _dots(panel: Axes, at: float, width: float, values: Sequence[float], colour: str) -> None:
    """Repetitions in their order, their median across them, its interval behind."""
    estimate = median_interval(values, resamples=2000)
    if estimate.value is None:
        return
    left, right = at - width / 2, at + width / 2
    if estimate.interval is not None:
        panel.fill_between(
            [left, right], estimate.interval.low, estimate.interval.high, color=colour, alpha=0.35,
            linewidth=0, zorder=2,
        )  # fmt: skip
    panel.hlines(estimate.value, left, right, color=colour, linewidth=1.8, zorder=3)
    # Side by side, so that equal values stay apart.
    spread = width * 0.8 / max(1, len(values) - 1)
    first = at - spread * (len(values) - 1) / 2
    panel.plot(
        [first + spread * n for n in range(len(values))], values, ".", markersize=3.5, color=colour,
        markeredgecolor="black", markeredgewidth=0.3, zorder=4,
    )  # fmt: skip


def _busy_values(cells: Sequence[Cell], item: IdleBusy) -> Sequence[float]:
    metric = POWER[item.domain]
    for cell in cells:
        here = cell.factors["machine"] == item.machine and cell.factors["device"] == item.device
        if here and cell.label(without=("machine", "device")) == item.busiest:
            return cell.values.get(metric, ())
    return ()


def _idle_busy(items: Sequence[tuple[IdleBusy, Sequence[float]]]) -> str:
    """Figure 6: a panel a domain, a pair of bars a machine and drive."""
    domains = list(dict.fromkeys(item.domain for item, _ in items))
    widest = max(sum(item.domain == domain for item, _ in items) for domain in domains)
    figure = sheet(max(4.0, 1.0 + widest), 2.9 * len(domains) + 0.6)
    axes = figure.subplots(len(domains), 1, squeeze=False)
    for (panel,), domain in zip(axes, domains, strict=True):
        mine = [(item, values) for item, values in items if item.domain == domain]
        for at, (item, values) in enumerate(mine):
            assert item.idle_w is not None
            panel.bar(at - 0.2, item.idle_w, 0.36, color="#009E73", alpha=0.6)
            if values:
                _dots(panel, at + 0.2, 0.36, values, "#D55E00")
        panel.set_xticks(
            range(len(mine)),
            [f"{foreign(item.machine)}\n{foreign(item.device)}" for item, _ in mine],
            fontsize=8,
        )
        panel.set_ylabel(f"{domain} (W)", fontsize=9)
        panel.grid(axis="y", linewidth=0.3)
    figure.suptitle("Power when idle and in the busiest experiment", fontsize=11)
    handles = [Line2D([], [], marker="s", linestyle="", color=c) for c in ("#009E73", "#D55E00")]
    _legend(figure, handles, ["idle", "busy: repetitions, median and its 95 % interval"])
    return svg_of(figure)


def draw_processors(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """Figures 7 and 8: use and frequency of the processors while each repetition ran."""
    named = list(zip(campaigns, machine_names(campaigns), strict=True))
    found = {}
    for name, label, scale in (
        ("use", "CPU use (% of all processors)", 100.0),
        ("frequency_hz", "Mean CPU frequency (GHz)", 1e-9),
    ):
        series: dict[tuple[str, str], list[tuple[str, ProcessorSeries]]] = {}
        for campaign, machine in named:
            for run in campaign.runs:
                taken = run.processor
                if taken is None or name in taken.missing or run.validity:
                    continue
                place = (machine, campaign.machine.drive_name)
                series.setdefault(place, []).append((_run_label(run), taken))
        if series:
            file = "cpu-use.svg" if name == "use" else "cpu-frequency.svg"
            found[file] = _lines(series, name, label, scale)
    return found


def _run_label(run: Run) -> str:
    experiment = run.experiment
    size = size_label(experiment.request_size_bytes)
    words = f"{experiment.spatiality} {experiment.operation}, {size}"
    return words + (f", buffer {experiment.cache.buffer}" if experiment.cache.buffer else "")


def _lines(
    series: Mapping[tuple[str, str], Sequence[tuple[str, ProcessorSeries]]],
    name: str,
    label: str,
    scale: float,
) -> str:
    """A row of panels a machine and drive, a panel an experiment, a line a repetition."""
    kinds = list(dict.fromkeys(words for taken in series.values() for words, _ in taken))
    figure = sheet(max(5.0, 0.8 + 2.4 * len(kinds)), 0.9 + 2.3 * len(series))
    axes = figure.subplots(len(series), len(kinds), squeeze=False, sharex=True, sharey=True)
    for row, (place, taken) in zip(axes, series.items(), strict=True):
        for panel, kind in zip(row, kinds, strict=True):
            mine = [one for words, one in taken if words == kind]
            panel.set_title(f"{foreign(' '.join(place))}: {len(mine)} runs\n{kind}", fontsize=7)
            panel.grid(linewidth=0.3)
            panel.tick_params(labelsize=7)
            for number, one in enumerate(mine):
                values = one.use if name == "use" else one.frequency_hz
                points = [
                    (t, v * scale)
                    for t, v in zip(one.times_s, values, strict=True)
                    if v is not None
                ]
                panel.plot(
                    [t for t, _ in points], [v for _, v in points], linewidth=0.6, alpha=0.8,
                    color=_LINES[number % len(_LINES)],
                )  # fmt: skip
    axes[0][0].set_ylim(bottom=0)
    figure.supylabel(label, fontsize=9)
    figure.supxlabel("Time since the run began (s)", fontsize=9)
    return svg_of(figure)
