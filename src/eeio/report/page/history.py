"""The charts of the history page: each experiment over the campaigns, with its changes."""

from eeio.analysis.metrics import named
from eeio.comparison.history import History, Series
from eeio.report.page.panels import Axes, Line, Panel, lines
from eeio.units.number_text import page_number

_MOST = 12
"""Of panels; the table has every experiment."""


def charts(found: History, stamp: str) -> list[Panel]:
    """A panel for each experiment: those that changed first, the largest change before the others;
    of experiments without a change as many as have room."""
    drawable = [series for series in found.series if len(series.points) > 1]
    drawable.sort(key=lambda series: -_largest(series))
    return [_panel(series, found.metric, stamp) for series in drawable[:_MOST]]


def _largest(series: Series) -> float:
    return max((abs(step.change) for step in series.steps), default=0.0)


def _panel(series: Series, metric: str, stamp: str) -> Panel:
    unit = named(metric).unit
    values = tuple((float(n), point.value / unit) for n, point in enumerate(series.points))
    changes = {step.campaign: f"{100 * step.change:+.1f} %" for step in series.steps}
    upright = []
    for index, point in enumerate(series.points):
        if point.campaign in changes:
            upright.append((index - 0.5, changes[point.campaign]))
    axes = Axes(metric, "Campaigns, by date", _dates(series), upright=tuple(upright))
    line = Line(series.label, values, marks=tuple(range(len(values))))
    return lines(f"{series.label}, {series.machine}", [line], axes, _note(series, unit), stamp)


def _dates(series: Series) -> tuple[tuple[float, str], ...]:
    """Of at most four campaigns; a day is named once."""
    step = max(1, -(-len(series.points) // 4))
    days: dict[str, float] = {}
    for place, point in list(enumerate(series.points))[::step]:
        days.setdefault(point.utc[:10], float(place))
    return tuple(zip(days.values(), days, strict=True))


def _note(series: Series, unit: float) -> str:
    first = page_number(series.points[0].value / unit)
    last = page_number(series.points[-1].value / unit)
    sentences = [f"From {first} to {last} in {len(series.points)} campaigns."]
    for step in series.steps:
        sentences.append(f"{step.utc[:10]}, {step.campaign}: {100 * step.change:+.1f} %.")
    return " ".join(sentences if series.steps else [*sentences, "No change found."])
