"""The charts of the cost page: what a TB costs by part, and at which duty cycle."""

import math
from collections.abc import Iterator, Sequence

from eeio_limits.number_text import page_number
from eeio_results.guideline.answer import Cost, CostAtDuty
from eeio_results.report.page.panels import Axes, Bar, Line, Panel, Part, bars, crossing, lines

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
        if any(getattr(cost, answer).value is not None for cost in costs):
            rows = [_bar(cost, answer, unit) for cost in costs]
            panels.append(bars(f"{title} per TB ({unit})", rows, stamp))
    for answer, (title, unit) in _TITLES.items():
        panels += _over_duty(costs, answer, title, unit.format(currency=currency), stamp)
    return panels


def _bar(cost: Cost, answer: str, unit: str) -> Bar:
    figure = getattr(cost, answer)
    if figure.value is None:
        return Bar(cost.system, figure.reason or "no value")
    parts = tuple(Part(one.name, one.value) for one in cost.parts if one.answer == answer)
    interval = None
    text = f"{page_number(figure.value)} {unit}"
    if figure.interval is not None:
        interval = (figure.interval.low, figure.interval.high)
    return Bar(cost.system, text, parts, interval)


def _over_duty(
    costs: Sequence[Cost], answer: str, title: str, unit: str, stamp: str
) -> Iterator[Panel]:
    """None if a system has no idle power, or no value of this answer."""
    values = [_values(cost.by_duty, answer) for cost in costs]
    if not all(values):
        return
    equal = _equal(values) if len(values) == 2 else []
    series = [
        Line(cost.system, tuple((math.log10(duty), value) for duty, value in of_system))
        for cost, of_system in zip(costs, values, strict=True)
    ]
    given = [cost.inputs.duty for cost in costs if cost.inputs.duty is not None]
    upright = [(math.log10(duty), f"equal: {_percent(duty)}") for duty in equal]
    upright += [(math.log10(duty), f"yours: {_percent(duty)}") for duty in dict.fromkeys(given)
                if duty >= _TICKS[0]]  # fmt: skip
    axes = Axes(
        y_title=unit, x_title="Duty cycle (share of time with I/O)",
        x_ticks=tuple((math.log10(duty), _percent(duty)) for duty in _TICKS),
        upright=tuple(upright), is_logarithmic=True,
    )  # fmt: skip
    ends = ". ".join(
        _ends(cost, of_system, unit) for cost, of_system in zip(costs, values, strict=True)
    )
    note = f"{_break_even(costs, values, equal)}{ends}."
    yield lines(f"{title} per TB by duty cycle ({unit})", series, axes, note, stamp)


def _values(by_duty: Sequence[CostAtDuty], answer: str) -> list[tuple[float, float]]:
    values = [(one.duty, getattr(one, answer)) for one in by_duty]
    return [(duty, value) for duty, value in values if value is not None]


def _equal(values: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """The duty cycles at which both cost the same: a cost is a + b / duty, so the lines over
    1 / duty are straight."""
    ours, theirs = ([(1 / duty, value) for duty, value in one] for one in values)
    return [1 / place for place in crossing(ours, theirs)]


def _break_even(
    costs: Sequence[Cost], values: Sequence[Sequence[tuple[float, float]]], equal: Sequence[float]
) -> str:
    """Which of two systems costs less below and above the duty cycle of equal cost."""
    if len(values) != 2:
        return ""
    first, second = (one[0][1] for one in values)
    if first == second:
        return ""
    below, above = (0, 1) if first < second else (1, 0)
    if not equal:
        return f"{costs[below].system} costs less at every duty cycle. "
    return (
        f"Break-even at {_percent(equal[0])}: {costs[below].system} costs less below, "
        f"{costs[above].system} above. "
    )


def _ends(cost: Cost, values: Sequence[tuple[float, float]], unit: str) -> str:
    (low, at_low), (high, at_high) = values[0], values[-1]
    return (
        f"{cost.system}: {page_number(at_low)} {unit} at {_percent(low)}, {page_number(at_high)} "
        f"at {_percent(high)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
