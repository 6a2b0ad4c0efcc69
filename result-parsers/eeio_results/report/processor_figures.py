"""Use and frequency of the processors while the runs of campaigns went on."""

import math
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.lines import Line2D

from eeio_results.comparison.cells import machine_names, size_label
from eeio_results.record import ProcessorSeries, Run
from eeio_results.report.drawing import (
    COLOURS,
    GREY,
    SCREEN,
    Drawing,
    Look,
    ending,
    foreign,
    set_legend,
    set_title,
    sheet,
    stamp,
    svg_of,
)
from eeio_results.stamps import stamp_of
from eeio_results.store import Campaign


def draw(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """File name -> SVG of the figures of only the processors."""
    stamped = stamp_of(campaigns)
    return {
        f"{name}.svg": svg_of(one.figure, one.title, one.description)
        for name, one in processors(campaigns, machine_names(campaigns), stamped, SCREEN).items()
    }


def processors(
    campaigns: Sequence[Campaign], names: Sequence[str], stamped: str, look: Look
) -> dict[str, Drawing]:
    """Figures 7 and 8: use and frequency of the processors while each repetition ran. `names` are
    the names of the campaigns' machines."""
    named = list(zip(campaigns, names, strict=True))
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
            file = "cpu-use" if name == "use" else "cpu-frequency"
            found[file] = _lines(series, name, label, scale, stamped, look)
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
    stamped: str,
    look: Look,
) -> Drawing:
    """A panel a machine, drive and experiment, a line a repetition; all on one scale."""
    shown = {
        (place, kind): [one for words, one in taken if words == kind]
        for place, taken in series.items()
        for kind in dict.fromkeys(words for words, _ in taken)
    }
    columns = min(len(shown), 4)
    if look.width_inches is not None:
        columns = max(1, min(columns, int(look.width_inches / 1.7)))
    width = look.width_inches or max(5.0, 0.8 + 2.4 * columns)
    rows = math.ceil(len(shown) / columns)
    words = ["a repetition"]
    figure = sheet(width, 1.0 + 2.0 * rows, words)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    axes = list(grid.flat)
    for panel, ((place, kind), mine) in zip(axes, shown.items(), strict=False):
        panel.set_title(
            textwrap.fill(f"{foreign(' '.join(place))}: {kind}, {len(mine)} runs",
                          int(16 * width / columns)),
            fontsize=7,
        )  # fmt: skip
        panel.grid(linewidth=0.3)
        panel.tick_params(labelsize=7)
        for number, one in enumerate(mine):
            values = one.use if name == "use" else one.frequency_hz
            points = [
                (t, v * scale) for t, v in zip(one.times_s, values, strict=True) if v is not None
            ]
            panel.plot(
                [t for t, _ in points], [v for _, v in points], marker=".", markersize=2,
                linewidth=0.6, alpha=0.8, color=COLOURS[number % len(COLOURS)],
            )  # fmt: skip
        if stamped:
            stamp(panel, stamped)
    for panel in axes[len(shown) :]:
        panel.set_axis_off()
    figure.axes[0].set_ylim(bottom=0)
    figure.supylabel(label, fontsize=8)
    for panel in figure.axes[columns * (rows - 1) :]:
        panel.set_xlabel("Time since start (s)", fontsize=7)
    title = label.partition(" (")[0] + ending(stamped)
    set_title(figure, title)
    set_legend(figure, [Line2D([], [], color=GREY, linewidth=0.6)], words)
    told = "; ".join(f"{' '.join(place)}, {kind}: {len(mine)} runs"
                     for (place, kind), mine in shown.items())  # fmt: skip
    return Drawing(figure, title, f"{label} over time, a line a repetition. {told}.")
