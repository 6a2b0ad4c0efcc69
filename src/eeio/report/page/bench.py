"""The charts of the bench page: time, energy and power of each command."""

from collections.abc import Sequence

from eeio.comparison.commands import Bench
from eeio.report.page.panels import Bar, Panel, Part, bars
from eeio.units.number_text import page_number
from eeio.units.sizes import prefixed

_PANELS = {"duration_s": ("Time", "s"), "energy_j": ("Energy", "J"), "power_w": ("Power", "W")}
_NOTE = "Bar: median of one execution; line: quartiles."


def charts(commands: Sequence[Bench], stamp: str) -> list[Panel]:
    """A panel for each figure that a command has; the time first."""
    panels = []
    for name, (title, unit) in _PANELS.items():
        largest = max(
            (of.median for command in commands if (of := command.quartiles(name))), default=0.0
        )
        if largest:
            factor, prefixed_unit = prefixed(largest, unit)
            rows = [_bar(command, name, factor, prefixed_unit) for command in commands]
            panels.append(bars(f"{title} ({prefixed_unit})", rows, stamp, _NOTE))
    return panels


def _bar(one: Bench, name: str, factor: float, unit: str) -> Bar:
    of = one.quartiles(name)
    if of is None:
        return Bar(one.label, "not measured")
    median, low, high = (value / factor for value in (of.median, of.q1, of.q3))
    interval = None
    if low != high:
        interval = (low, high)
    text = f"{page_number(median)} {unit}"
    if interval is not None:
        text = f"{page_number(median)} [{page_number(low)} – {page_number(high)}] {unit}"
    return Bar(one.label, text, (Part("median", median),), interval)
