"""Power, and use and frequency of the processors, during the runs of campaigns, from the readings
that they stored.

Three figures show the power: over the time of each run; over the elapsed share of that time, to
compare drives that take hours with those that take minutes; and as boxes of the single readings.
"""

import math
import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from eeio.analysis.io_label import io_label
from eeio.analysis.over_time import bandwidth_log
from eeio.comparison.cells import Cell, size_label
from eeio.record.run import DOMAINS, Phase, ProcessorSeries, Run
from eeio.record.store import Campaign
from eeio.report.figures.drawing import (
    COLOURS,
    GREY,
    Drawing,
    Look,
    ending,
    finished,
    foreign,
    sheet,
    stamp,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from eeio.analysis.over_time import PowerSeries

Readings = Callable[[Campaign], "Sequence[PowerSeries]"]

_SHOWN = 120
"""Groups of readings of one run in a picture, of each the lowest and the highest: peaks stay."""
_WHISKERS = (5, 95)
_GAP = 8.0
"""So many times the usual time between readings is a gap."""
_APART = ("level", "tool", "target", "flush", "frequency", "smt", "turbo", "processes")
"""Factors in an experiment's label if the drawn experiments differ in them."""
_MOST_ROWS = 4
"""Of panels in a figure for a paper: with title and legend they are as high as a page, 9 inches."""
_LETTER_INCHES = 0.042
"""Of the text below an axis."""


@dataclass(frozen=True)
class Trace:
    """The power of one phase of one run: of each reading the time since the phase began, and W.
    `bandwidth` is the tool's own log: the same times, and MB/s; empty if it has none."""

    place: tuple[str, str]
    kind: str
    buffer: str
    domain: str
    seconds: float
    times_s: tuple[float, ...]
    watts: tuple[float, ...]
    bandwidth: tuple[tuple[float, float], ...] = ()


def drawn(
    chosen: Sequence[tuple[Campaign, Sequence[Cell]]], readings: Readings, stamped: str, look: Look
) -> dict[str, Drawing]:
    """Name -> each figure, of the chosen cells of each campaign, in the widest power domain that it
    measured; none for campaigns that stored no readings."""
    traces: list[Trace] = []
    for campaign, cells in chosen:
        traces.extend(_traces(campaign, cells, readings))
    domains = sorted({trace.domain for trace in traces}, key=list(DOMAINS).index)
    drawings = {}
    for domain in domains:
        mine = [trace for trace in traces if trace.domain == domain]
        suffix = ""
        if len(domains) > 1:
            suffix = f"-{domain}"
        label = f"Power of the {domain} (W)"
        for number, drawing in enumerate(_over_time(mine, label, stamped, look), 1):
            part = ""
            if number != 1:
                part = f"-{number}"
            drawings[f"power-over-time{suffix}{part}"] = drawing
        drawings[f"power-over-normalized-time{suffix}"] = _over_share(mine, label, stamped, look)
        drawings[f"power-readings{suffix}"] = _boxes(mine, label, stamped, look)
    return drawings


def _traces(campaign: Campaign, cells: Sequence[Cell], readings: Readings) -> Iterator[Trace]:
    cell_of = {(cell.experiment_id, cell.factors["phase"]): cell for cell in cells}
    runs = []
    for run, phase in _valid_phases(campaign):
        cell = cell_of.get((run.experiment.id, phase.name))
        if cell is not None:
            runs.append((run, phase, cell))
    series = []
    if runs:
        series = _widest_series(readings(campaign))
    if not series:
        return
    domain = series[0].key[0]
    apart = _factors_apart(cells)
    for run, phase, cell in runs:
        if (points := _of_phase(run, phase, series)) is None:
            continue
        seconds, times_s, watts = points
        place = cell.factors["machine"], cell.factors["device"]
        kind = _kind(cell, apart)
        log = tuple(bandwidth_log(campaign.folder / run.raw)) if len(run.phases) == 1 else ()
        yield Trace(place, kind, cell.factors["buffer"], domain, seconds, times_s, watts, log)


def _valid_phases(campaign: Campaign) -> Iterator[tuple[Run, Phase]]:
    for run in campaign.runs:
        for phase in run.phases:
            if run.valid and not phase.validity:
                yield run, phase


def _widest_series(series: "Iterable[PowerSeries]") -> "list[PowerSeries]":
    """Those of the first meter of the widest domain, without models."""
    measured = [each for each in series if each.key[2] != "modelled"]
    if not measured:
        return []
    domain = min((each.key[0] for each in measured), key=list(DOMAINS).index)
    meter = next(each.key[1] for each in measured if each.key[0] == domain)
    return [each for each in measured if each.key[:2] == (domain, meter)]


def _factors_apart(cells: Sequence[Cell]) -> list[str]:
    """The factors that have several levels in these cells."""
    apart = []
    for name in _APART:
        levels = {cell.factors.get(name, "as found") for cell in cells}
        if len(levels - {"as found"}) > 1:
            apart.append(name)
    return apart


def _kind(cell: Cell, apart: Sequence[str]) -> str:
    """`sequential write, 32 KiB`, and its differences from other experiments."""
    factors = cell.factors
    parts = [io_label(factors["operation"], factors["spatiality"]), factors["size"]]
    for name in apart:
        level = factors.get(name, "as found")
        if level != "as found":
            parts.append(level if name in ("level", "tool", "target") else f"{name} {level}")
    return ", ".join(parts)


def _of_phase(
    run: Run, phase: Phase, series: "Sequence[PowerSeries]"
) -> tuple[float, tuple[float, ...], tuple[float, ...]] | None:
    """Readings until the writes are on the device. None if there are none, and if two stretches of
    a campaign have readings of that time: one is from before a restart of the machine. None also
    for a phase in stretches, whose power excludes the time between them."""
    if phase.start_s is None or phase.end_s is None or phase.stretches:
        return None
    begin_s = run.started_monotonic_s + phase.start_s
    end_s = phase.until_durable.end_s if phase.until_durable else phase.end_s
    seconds = end_s - phase.start_s
    readings = []
    for part in series:
        if points := [
            (at_s - begin_s, watts)
            for at_s, watts in zip(part.times_s, part.watts, strict=True)
            if begin_s < at_s <= begin_s + seconds and not math.isnan(watts)
        ]:
            readings.append(points)
    if len(readings) != 1 or seconds <= 0:
        return None
    return seconds, tuple(t for t, _ in readings[0]), tuple(w for _, w in readings[0])


def _line(trace: Trace) -> tuple[list[float], list[float]]:
    """The points of a line; broken if readings are missing for much longer than usual."""
    times_s, watts = _thinned(trace)
    steps = [after - before for before, after in pairwise(times_s)]
    longest_s = 0.0
    if steps:
        longest_s = _GAP * statistics.median(steps)
    for index in range(len(steps), 0, -1):
        if steps[index - 1] > longest_s:
            times_s.insert(index, times_s[index])
            watts.insert(index, math.nan)
    return times_s, watts


def _thinned(trace: Trace) -> tuple[list[float], list[float]]:
    """Of many readings the lowest and the highest of each group, in their order."""
    count = len(trace.watts)
    if count <= 2 * _SHOWN:
        return list(trace.times_s), list(trace.watts)
    size = -(-count // _SHOWN)
    kept = sorted(
        place
        for first in range(0, count, size)
        for place in {
            choose(range(first, min(first + size, count)), key=trace.watts.__getitem__)
            for choose in (min, max)
        }
    )
    return [trace.times_s[n] for n in kept], [trace.watts[n] for n in kept]


def _grouped(traces: Sequence[Trace]) -> Mapping[tuple[tuple[str, str], str], list[Trace]]:
    """By place and experiment, in their order."""
    groups: dict[tuple[tuple[str, str], str], list[Trace]] = {}
    for trace in sorted(traces, key=lambda t: (t.place, t.kind, t.buffer)):
        label = trace.kind + (f", buffer {trace.buffer}" if trace.buffer in ("on", "off") else "")
        groups.setdefault((trace.place, label), []).append(trace)
    return groups


def _over_time(traces: Sequence[Trace], label: str, stamped: str, look: Look) -> Iterator[Drawing]:
    """Figure 9 of Pavan et al. 2018: a panel a machine, drive and experiment, a line a repetition;
    all on one scale of power. In a paper as many figures as fit a page each."""
    every = list(_grouped(traces).items())
    most = len(every)
    if look.width_inches is not None:
        most = min(most, _MOST_ROWS * _columns(look.width_inches))
    highest_w = max(watts for trace in traces for watts in trace.watts)
    for first in range(0, len(every), most):
        shown = every[first : first + most]
        figure, panels = _panels(len(shown), look, ["a repetition"])
        for panel, ((place, kind), mine) in zip(panels, shown, strict=False):
            _set_title(panel, f"{' '.join(place)}: {kind}, {len(mine)} runs", figure)
            for number, trace in enumerate(mine):
                panel.plot(*_line(trace), linewidth=0.6, color=COLOURS[number % len(COLOURS)])
            panel.set_xlabel("Time since start (s)", fontsize=7)
            _add_bandwidth(panel, mine)
        part = ""
        if most < len(every):
            figure.axes[0].set_ylim(top=1.05 * highest_w)
            part = f", {first // most + 1} of {-(-len(every) // most)}"
        drawn_traces = [trace for _, mine in shown for trace in mine]
        yield _finished(
            figure,
            panels[: len(shown)],
            f"Power over time{part}",
            label,
            stamped,
            _of_traces(drawn_traces, label),
        )


def _add_bandwidth(panel: "Axes", traces: Sequence[Trace]) -> None:
    """The bandwidth on a second axis, dotted, each repetition in the colour of its power."""
    if not any(trace.bandwidth for trace in traces):
        return
    right = panel.twinx()
    for number, trace in enumerate(traces):
        right.plot(
            [at_s for at_s, _ in trace.bandwidth],
            [rate for _, rate in trace.bandwidth],
            linewidth=0.6,
            linestyle=":",
            color=COLOURS[number % len(COLOURS)],
        )
    right.set_ylim(bottom=0)
    right.set_ylabel("Bandwidth (MB/s), dotted", fontsize=7)
    right.tick_params(labelsize=6)


def _over_share(traces: Sequence[Trace], label: str, stamped: str, look: Look) -> Drawing:
    """Figure 2 of Pavan et al. 2017: a panel a machine and drive, the experiments side by side, all
    of one width, its repetitions over each other."""
    shown: dict[tuple[str, str], list[tuple[str, list[Trace]]]] = {}
    for (place, kind), mine in _grouped(traces).items():
        shown.setdefault(place, []).append((kind, mine))
    figure, panels = _panels(len(shown), look, ["a repetition"], 1)
    for panel, (place, kinds) in zip(panels, shown.items(), strict=False):
        _set_title(panel, " ".join(place), figure)
        for at, (_, mine) in enumerate(kinds):
            for number, trace in enumerate(mine):
                times_s, watts = _line(trace)
                panel.plot(
                    [at + t / trace.seconds for t in times_s],
                    watts,
                    linewidth=0.6,
                    color=COLOURS[number % len(COLOURS)],
                )
        _set_kinds(panel, [kind for kind, _ in kinds], 0.5, figure.get_size_inches()[0])
    return _finished(
        figure,
        panels[: len(shown)],
        "Power over normalized time",
        label,
        stamped,
        _of_traces(traces, label),
        x_size=5,
    )


def _watts(traces: Sequence[Trace], panel: tuple[tuple[str, ...], str, str]) -> list[float]:
    """The readings of a machine and drive, a kind of experiment and a state of the page cache."""
    of_panel = [trace for trace in traces if (trace.place, trace.kind, trace.buffer) == panel]
    return [watts for trace in of_panel for watts in trace.watts]


def _boxes(traces: Sequence[Trace], label: str, stamped: str, look: Look) -> Drawing:
    """Figure 1 of Pavan et al. 2017: a panel a machine and drive, a box an experiment, of all
    single readings of all its repetitions; the states of the page cache side by side."""
    places = sorted({trace.place for trace in traces})
    kinds = sorted({trace.kind for trace in traces})
    buffers = [b for b in ("off", "on", "as found") if any(t.buffer == b for t in traces)]
    figure, panels = _panels(len(places), look, [f"buffer cache {b}" for b in buffers], 1)
    for panel, place in zip(panels, places, strict=False):
        _set_title(panel, " ".join(place), figure)
        for number, buffer in enumerate(buffers):
            boxes, at = [], []
            for where, kind in enumerate(kinds):
                watts = _watts(traces, (place, kind, buffer))
                if watts:
                    boxes.append(_box(watts))
                    at.append(where + (number - (len(buffers) - 1) / 2) * 0.3)
            drawn_boxes = panel.bxp(
                boxes,
                positions=at,
                widths=0.24,
                showfliers=False,
                patch_artist=True,
                medianprops={"color": "black", "linewidth": 1.0},
                whiskerprops={"linewidth": 0.6},
                capprops={"linewidth": 0.6},
                boxprops={"linewidth": 0.6},
                manage_ticks=False,
            )
            for box in drawn_boxes["boxes"]:
                box.set(facecolor=COLOURS[number], alpha=0.6)
        _set_kinds(panel, kinds, 0.0, figure.get_size_inches()[0])
    description = "box: quartiles and median; whiskers: 5 % and 95 % of the readings"
    return _finished(
        figure,
        panels[: len(places)],
        "Single readings of power",
        label,
        stamped,
        _of_traces(traces, label, description),
        [(Patch(color=COLOURS[n], alpha=0.6), f"buffer cache {b}") for n, b in enumerate(buffers)],
        x_size=5,
    )


def _box(watts: Sequence[float]) -> dict[str, float]:
    """The statistics of a box of readings."""
    ordered = sorted(watts)
    cuts = None
    if len(ordered) > 1:
        cuts = statistics.quantiles(ordered, n=100, method="inclusive")
    at = (lambda p: cuts[p - 1]) if cuts else (lambda p: ordered[0])
    return {
        "med": at(50),
        "q1": at(25),
        "q3": at(75),
        "whislo": at(_WHISKERS[0]),
        "whishi": at(_WHISKERS[1]),
    }


def _panels(
    count: int, look: Look, legend: Sequence[str], most: int = 4, sharex: bool = False
) -> tuple["Figure", "list[Axes]"]:
    """At most `most` columns; a single column is as wide as the figure."""
    columns = min(count, most)
    if look.width_inches is not None:
        columns = min(columns, _columns(look.width_inches))
    width = look.width_inches or (7.5 if most == 1 else max(5.0, 0.8 + 2.4 * columns))
    rows = math.ceil(count / columns)
    figure = sheet(width, 1.0 + (2.4 if most == 1 else 2.0) * rows, legend)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True, sharex=sharex)
    for panel in list(grid.flat)[count:]:
        panel.set_axis_off()
    return figure, list(grid.flat)


def _columns(width_inches: float) -> int:
    """Of panels in a figure for a paper."""
    return max(1, int(width_inches / 1.7))


def _set_title(panel: "Axes", title: str, figure: "Figure") -> None:
    grid = panel.get_gridspec()
    columns = 1
    if grid is not None:
        columns = grid.ncols
    characters = int(16 * figure.get_size_inches()[0] / columns)
    panel.set_title(textwrap.fill(foreign(title), characters), fontsize=7)


def _set_kinds(panel: "Axes", kinds: Sequence[str], middle: float, width: float) -> None:
    """On end where they would touch."""
    characters = int((width - 0.8) / len(kinds) / _LETTER_INCHES)
    on_end = characters < 2 + max(len(word) for kind in kinds for word in kind.split())
    panel.set_xticks(
        [at + middle for at in range(len(kinds))],
        [textwrap.fill(foreign(kind), 28 if on_end else characters) for kind in kinds],
        fontsize=5,
        rotation=90 if on_end else 0,
    )


def _of_traces(
    traces: Sequence[Trace], label: str, description: str = "a line a repetition"
) -> str:
    every: list[float] = []
    for trace in traces:
        every.extend(trace.watts)
    return (
        f"{label}: {len(every)} readings of {len(traces)} runs, from {min(every):.4g} to "
        f"{max(every):.4g}; {description}."
    )


def _finished(
    figure: "Figure",
    panels: "Sequence[Axes]",
    title: str,
    label: str,
    stamped: str,
    description: str,
    legend: "Sequence[tuple[Line2D | Patch, str]]" = (),
    x_size: int = 7,
) -> Drawing:
    for panel in panels:
        panel.grid(linewidth=0.3)
        panel.tick_params(axis="y", labelsize=7)
        panel.tick_params(axis="x", labelsize=x_size)
        if stamped:
            stamp(panel, stamped)
    figure.axes[0].set_ylim(bottom=0)
    figure.supylabel(label, fontsize=8)
    legend = legend or [(Line2D([], [], color=GREY, linewidth=0.6), "a repetition")]
    return finished(figure, title + ending(stamped), legend, description)


def processors(
    campaigns: Sequence[Campaign], names: Sequence[str], stamped: str, look: Look
) -> dict[str, Drawing]:
    """Figures 7 and 8: use and frequency of the processors while each repetition ran. `names` are
    the names of the campaigns' machines."""
    named = list(zip(campaigns, names, strict=True))
    drawings = {}
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
            file = "cpu-frequency"
            if name == "use":
                file = "cpu-use"
            drawings[file] = _of_processors(series, name, label, scale, stamped, look)
    return drawings


def _run_label(run: Run) -> str:
    experiment = run.experiment
    kind = io_label(experiment.operation, experiment.spatiality)
    label = f"{kind}, {size_label(experiment.request_size_bytes)}"
    return label + (f", buffer {experiment.cache.buffer}" if experiment.cache.buffer else "")


def _of_processors(
    series: Mapping[tuple[str, str], Sequence[tuple[str, ProcessorSeries]]],
    name: str,
    label: str,
    scale: float,
    stamped: str,
    look: Look,
) -> Drawing:
    """A panel a machine, drive and experiment, a line a repetition; all on one scale."""
    shown: dict[tuple[tuple[str, str], str], list[ProcessorSeries]] = {}
    for place, of_place in series.items():
        for kind, repetition in of_place:
            shown.setdefault((place, kind), []).append(repetition)
    figure, panels = _panels(len(shown), look, ["a repetition"], sharex=True)
    for panel, ((place, kind), mine) in zip(panels, shown.items(), strict=False):
        _set_title(panel, f"{' '.join(place)}: {kind}, {len(mine)} runs", figure)
        for number, trace in enumerate(mine):
            values = trace.frequency_hz
            if name == "use":
                values = trace.use
            points = []
            for t, v in zip(trace.times_s, values, strict=True):
                if v is not None:
                    points.append((t, v * scale))
            panel.plot(
                [t for t, _ in points],
                [v for _, v in points],
                marker=".",
                markersize=2,
                linewidth=0.6,
                alpha=0.8,
                color=COLOURS[number % len(COLOURS)],
            )
    grid = panels[0].get_gridspec()
    for panel in panels[-grid.ncols :] if grid is not None else ():
        panel.set_xlabel("Time since start (s)", fontsize=7)
    description = "; ".join(
        f"{' '.join(place)}, {kind}: {len(mine)} runs" for (place, kind), mine in shown.items()
    )
    return _finished(
        figure,
        panels[: len(shown)],
        label.partition(" (")[0],
        label,
        stamped,
        f"{label} over time, a line a repetition. {description}.",
    )
