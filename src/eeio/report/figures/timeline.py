"""I/O and power of a traced program on one time axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from eeio.report.figures.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    INDIGO,
    PURPLE,
    VERMILION,
    WINE,
    Drawing,
    foreign,
    set_legend,
    sheet,
    svg_of,
)
from eeio.traces.events import Event, TracePhase, transfers
from eeio.units.sizes import MB, format_size

_COLOURS = {"read": BLUE, "write": VERMILION, "mixed": PURPLE, "flush": GREEN, "close": GREY}
_POWER = (BLACK, GREEN, WINE, INDIGO, GREY)
_BINS = 300
_DRAWN = ("read", "write")
_WIDTH_INCHES = 9.5
# Of the part of it with data, and of a letter of 7 points.
_DATA_INCHES, _LETTER_INCHES = 8.6, 0.062
_MOST_LINES = 6


def draw(
    events: Sequence[Event],
    phases: Sequence[TracePhase],
    power: Mapping[str, Sequence[tuple[float, float]]],
) -> str:
    """SVG."""
    return svg_of(drawing(events, phases, power))


def drawing(
    events: Sequence[Event],
    phases: Sequence[TracePhase],
    power: Mapping[str, Sequence[tuple[float, float]]],
) -> Drawing:
    """Bandwidth of reads and writes over time, phases shaded and numbered, and below it the
    samples of each meter. `power` is meter -> (time, W); times on the events' clock."""
    begin_s = phases[0].start_s
    end_s = max(phase.end_s for phase in phases)
    moments = []
    for samples in power.values():
        for t, _ in samples:
            moments.append(t)
    first_s = min([begin_s, *moments])
    last_s = max([end_s, *moments])
    by_operation: dict[str, list[Event]] = {}
    for operation in _DRAWN:
        if of_operation := [event for event in events if event.operation == operation]:
            by_operation[operation] = of_operation
    labels = [*by_operation, *map(foreign, power)]
    rows = 1
    if power:
        rows = 2
    figure = sheet(_WIDTH_INCHES, 2.6 * rows + 0.2, labels)
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    _draw_bandwidth(axes[0], by_operation, first_s, last_s)
    for phase in phases:
        colour = _COLOURS[phase.operation]
        left_s, right_s = phase.start_s - first_s, phase.end_s - first_s
        axes[0].axvspan(left_s, right_s, color=colour, alpha=0.12, linewidth=0)
    _name_phases(axes[0], phases, first_s, last_s)
    if power:
        _draw_power(axes[1], power, first_s)
    axes[-1].set_xlabel("Time (s)")
    handles, names = [], []
    for axis in axes:
        of_axis = axis.get_legend_handles_labels()
        handles += of_axis[0]
        names += of_axis[1]
    set_legend(figure, handles, names)
    description = f"{len(transfers(events))} reads and writes in {len(phases)} phases"
    return Drawing(figure, "I/O and power over time", description)


def _draw_bandwidth(
    panel: Axes, by_operation: Mapping[str, Sequence[Event]], first_s: float, last_s: float
) -> None:
    edges = np.linspace(first_s, max(last_s, first_s + 1e-6), _BINS + 1)
    width_s = edges[1] - edges[0]
    for operation, events in by_operation.items():
        starts_s = [event.start_s for event in events]
        moved, _ = np.histogram(starts_s, edges, weights=[event.length for event in events])
        panel.stairs(
            moved / width_s / MB,
            edges - first_s,
            color=_COLOURS[operation],
            fill=True,
            alpha=0.7,
            label=operation,
        )
    panel.set_ylabel("I/O (MB/s)")
    panel.grid(linewidth=0.3)


def _draw_power(
    panel: Axes, power: Mapping[str, Sequence[tuple[float, float]]], first_s: float
) -> None:
    for (name, samples), colour in zip(power.items(), _POWER * 8, strict=False):
        panel.step(
            [time_s - first_s for time_s, _ in samples],
            [power_w for _, power_w in samples],
            where="pre",
            color=colour,
            linewidth=0.9,
            label=foreign(name),
        )
    panel.set_ylabel("Power (W)")
    panel.set_ylim(bottom=0)
    panel.grid(linewidth=0.3)


def _name_phases(panel: Axes, phases: Sequence[TracePhase], first_s: float, last_s: float) -> None:
    """Each phase's number and kind at its beginning, in the first line with room for it. A phase
    without room in any line has its number only, or no name: the table has all."""
    ends = [0.0] * _MOST_LINES
    scale = _DATA_INCHES / max(last_s - first_s, 1e-6)
    for number, phase in enumerate(phases, 1):
        begin = (phase.start_s - first_s) * scale
        for name in (f"{number}: {_name(phase)}", str(number)):
            width = _LETTER_INCHES * (len(name) + 1)
            # A name at the end is set to the left, so that it stays within the panel.
            left = min(begin, _DATA_INCHES - width)
            line = next((n for n, end in enumerate(ends) if end <= left), None)
            if line is None:
                continue
            ends[line] = left + width
            panel.annotate(
                name,
                (left / scale, 0.97 - 0.09 * line),
                xycoords=("data", "axes fraction"),
                fontsize=7,
                va="top",
            )
            break


def _name(phase: TracePhase) -> str:
    """`write, 1M`; a flush has no request size."""
    if phase.request_size_bytes is None:
        return phase.operation
    return f"{phase.operation}, {format_size(phase.request_size_bytes)}"
