"""The charts of the cost page: what a TB costs by part, and at which duty cycle."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from eeio.guideline.answer import Cost, CostAtDuty
from eeio.report.page.panels import Axes, Bar, Line, Panel, Part, bars, crossing, lines
from eeio.units.number_text import page_number

_TITLES = {
    "kwh_per_tb": ("Energy", "kWh/TB"),
    "money_per_tb": ("Money", "{currency}/TB"),
    "g_co2e_per_tb": ("Carbon", "g CO2e/TB"),
}
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def charts(costs: Sequence[Cost], stamp: str) -> list[Panel]:
    """Bars of each answer that has a value, then its line over the duty cycle."""
    currency = costs[0].inputs.currency or "money"
    panels = []
    for answer, (title, unit) in _TITLES.items():
        unit = unit.format(currency=currency)
        rows = [_bar(cost, answer, unit) for cost in costs]
        if any(map(attrgetter("parts"), rows)):
            panels.append(bars(f"{title} per TB ({unit})", rows, stamp))
    for answer, (title, unit) in _TITLES.items():
        panels += _over_duty(costs, answer, title, unit.format(currency=currency), stamp)
    return panels


def _bar(cost: Cost, answer: str, unit: str) -> Bar:
    figure = getattr(cost, answer)
    if figure.value is None:
        return Bar(cost.system, figure.reason or "no value")
    parts = tuple(Part(part.name, part.value) for part in cost.parts if part.answer == answer)
    interval = None
    text = f"{page_number(figure.value)} {unit}"
    if figure.interval is not None:
        interval = (figure.interval.low, figure.interval.high)
    return Bar(cost.system, text, parts, interval)


def _over_duty(
    costs: Sequence[Cost], answer: str, title: str, unit: str, stamp: str
) -> Iterator[Panel]:
    """None if a system has no idle power, or no value of this answer."""
    series = [Line(cost.system, _values(cost.by_duty, answer)) for cost in costs]
    if not all(map(attrgetter("points"), series)):
        return
    equal = []
    if len(series) == 2:
        equal = _equal(series)
    upright = [(duty, f"equal: {_percent(duty)}") for duty in equal]
    for duty in dict.fromkeys(cost.inputs.duty for cost in costs):
        if duty is not None and duty >= _TICKS[0]:
            upright.append((duty, f"yours: {_percent(duty)}"))
    axes = Axes(
        y_title=unit,
        x_title="Duty cycle (share of time with I/O)",
        x_ticks=tuple(zip(_TICKS, map(_percent, _TICKS), strict=True)),
        upright=tuple(upright),
        is_logarithmic=True,
        is_x_logarithmic=True,
    )
    note = " ".join([*_break_even(series, equal), *(_ends(line, unit) for line in series)])
    yield lines(f"{title} per TB by duty cycle ({unit})", series, axes, note, stamp)


def _values(by_duty: Sequence[CostAtDuty], answer: str) -> tuple[tuple[float, float], ...]:
    points = []
    for at_duty in by_duty:
        value = getattr(at_duty, answer)
        if value is not None:
            points.append((at_duty.duty, value))
    return tuple(points)


def _equal(series: Sequence[Line]) -> list[float]:
    """The duty cycles at which both cost the same: a cost is a + b / duty, so the lines over
    1 / duty are straight."""
    ours, theirs = (_over_inverse(line.points) for line in series)
    return [1 / place for place in crossing(ours, theirs)]


def _over_inverse(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(1 / duty, value) for duty, value in points]


def _break_even(series: Sequence[Line], equal: Sequence[float]) -> Iterator[str]:
    """Which of two systems costs less below and above the duty cycle of equal cost."""
    if len(series) != 2:
        return
    first, second = series
    below, above = first.label, second.label
    if first.points[0][1] > second.points[0][1]:
        below, above = above, below
    if equal:
        yield (
            f"Break-even at {_percent(equal[0])}: by the medians {below} costs less below, "
            f"{above} above."
        )
    elif first.points[0][1] != second.points[0][1]:
        yield f"By the medians {below} costs less at every duty cycle."


def _ends(line: Line, unit: str) -> str:
    (low, at_low), (high, at_high) = line.points[0], line.points[-1]
    return (
        f"{line.label}: {page_number(at_low)} {unit} at {_percent(low)}, {page_number(at_high)} "
        f"at {_percent(high)}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
