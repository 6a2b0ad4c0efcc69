"""Differences between two campaigns, as a part of the page: a table with forest marks.

The caller provides the rows; this module computes only positions on the axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eeio_limits.text import shown
from eeio_results.report.page.table import NONE, number

_WIDTH, _HEIGHT = 180, 20
_LEAST_SPAN = 0.05
_WIDEST_SPAN = 1.0


@dataclass(frozen=True)
class Delta:
    """One experiment, one metric, in two campaigns. `change`, `low` and `high` are shares of the
    first: 0.05 is 5 % more, and low to high is the interval; None where there is none. `verdict` is
    a label (`better`, `worse`, `open`, ...), `why` the text below it, `n` the number of
    repetitions."""

    experiment: str
    metric: str
    unit: str
    before: float | None
    after: float | None
    change: float | None
    low: float | None
    high: float | None
    verdict: str
    why: str = ""
    n: str = ""


@dataclass(frozen=True)
class Comparison:
    """`answer` is the one line that answers whether the change helped."""

    first: str
    second: str
    answer: str
    deltas: tuple[Delta, ...]
    note: str = ""


def span_of(deltas: Sequence[Delta]) -> float:
    """Half the width of the axis, a share: it contains all changes and intervals, up to 100 %."""
    ends = [
        abs(value)
        for delta in deltas
        for value in (delta.change, delta.low, delta.high)
        if value is not None
    ]
    return min(_WIDEST_SPAN, max([_LEAST_SPAN, *ends]))


def forest_mark(delta: Delta, span: float) -> Markup:
    """The change as a point with its interval, on an axis from -span to +span with 0 in the
    middle; the point is hollow without an interval. Ends beyond the axis stop at it."""
    if delta.change is None:
        return Markup()
    middle, y = _WIDTH / 2, _HEIGHT / 2

    def at(share: float) -> float:
        return middle + max(-1.0, min(1.0, share / span)) * (_WIDTH / 2 - 8)

    parts = [Markup('<path class="grid" d="M{:.0f} 0V{}"/>').format(middle, _HEIGHT)]
    interval = delta.low is not None and delta.high is not None
    if delta.low is not None and delta.high is not None:
        parts.append(
            Markup('<path class="whisker" d="M{:.1f} {}H{:.1f}"/>').format(
                at(delta.low), y, at(delta.high)
            )
        )
    parts.append(
        Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="4.5"/>').format(
            "sure" if interval else "open", at(delta.change), y
        )
    )
    return Markup(
        '<svg class="forest" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, shown(change_text(delta)), Markup("").join(parts))


def change_text(delta: Delta) -> str:
    """`+5.2 %`."""
    return NONE if delta.change is None else f"{100 * delta.change:+.1f} %"


def interval_text(delta: Delta) -> str:
    """`-1.0 to +11.0 %`, or that there is none."""
    if delta.low is None or delta.high is None:
        return "no interval"
    return f"{100 * delta.low:+.1f} to {100 * delta.high:+.1f} %"


def delta_table(comparison: Comparison) -> Markup:
    """The complete table, all metrics below each other."""
    span = span_of(comparison.deltas)
    rows = [
        Markup(
            '<tr><th scope="row">{}</th><td class="words">{}</td><td>{}</td><td>{}</td><td>{}</td>'
            '<td>{}<small>{}</small></td><td class="words">{}</td>'
            '<td class="words verdict-{}">{}<small>{}</small></td></tr>'
        ).format(
            delta.experiment,
            f"{delta.metric} ({delta.unit})" if delta.unit else delta.metric,
            delta.n,
            _value(delta.before),
            _value(delta.after),
            change_text(delta),
            interval_text(delta),
            forest_mark(delta, span),
            delta.verdict.split(" ", 1)[0],
            delta.verdict,
            delta.why,
        )
        for delta in comparison.deltas
    ]
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="Comparison">'
        "<table><caption>{} against {}</caption><thead><tr>"
        '<th scope="col" class="words">Experiment</th><th scope="col" class="words">Figure</th>'
        '<th scope="col">n</th>'
        '<th scope="col">{}</th><th scope="col">{}</th>'
        '<th scope="col">Change<small>95 % interval</small></th>'
        '<th scope="col" class="words">−{} % · 0 · +{} %</th>'
        '<th scope="col" class="words">Verdict</th></tr></thead><tbody>{}</tbody></table></div>'
    ).format(
        comparison.second, comparison.first, comparison.first, comparison.second,
        f"{100 * span:.0f}", f"{100 * span:.0f}", Markup("").join(rows),
    )  # fmt: skip


def _value(value: float | None) -> str:
    return NONE if value is None else number(value)
