"""Differences between two campaigns, as a part of the page: a table with forest marks."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eeio.report.page.panels import Difference, Panel, forest
from eeio.report.page.table import NONE
from eeio.units.external_text import shown
from eeio.units.number_text import page_number

if TYPE_CHECKING:
    from eeio.comparison.changes import Changes
    from eeio.statistics.decision import Change

_WIDTH, _HEIGHT = 180, 20
_PANELS, _ROWS = 3, 8
"""Of the charts of changes: so many panels, of so many rows each."""
_LEAST_SPAN = 0.05
_WIDEST_SPAN = 1.0


def compared(changes: "Sequence[Changes]", remarks: "Sequence[str]" = ()) -> dict[str, Any] | None:
    """For the template, the changes from the first campaign to the second; of further ones only
    the answers, because the tables of a terminal have all. None if nothing was compared."""
    if not changes:
        return None
    from eeio.report.documents.changes import answer, note

    first = changes[0]
    others = " ".join(map(answer, changes[1:]))
    return {
        "first": first.before,
        "second": first.after,
        "answer": answer(first),
        "table": delta_table(first),
        "charts": delta_charts(first),
        "note": ". ".join([note(first), *([others] if others else []), *remarks]),
    }


def span_of(changes: "Iterable[Change]") -> float:
    """Half the width of the axis, a share: it contains all changes and intervals, up to 100 %."""
    ends: list[float] = []
    for change in changes:
        if change.ratio is not None:
            for ratio in (change.ratio, *(change.interval or ())):
                ends.append(abs(ratio - 1))
    return min(_WIDEST_SPAN, max([_LEAST_SPAN, *ends]))


def forest_mark(change: "Change", span: float) -> Markup:
    """The change as a point with its interval, on an axis from -span to +span with 0 in the
    middle; the point is hollow without an interval. Ends beyond the axis stop at it."""
    if change.ratio is None:
        return Markup()
    middle, y = _WIDTH / 2, _HEIGHT / 2

    def at(ratio: float) -> float:
        return middle + max(-1.0, min(1.0, (ratio - 1) / span)) * (_WIDTH / 2 - 8)

    parts = [Markup('<path class="grid" d="M{:.0f} 0V{}"/>').format(middle, _HEIGHT)]
    if change.interval is not None:
        low, high = map(at, change.interval)
        parts.append(Markup('<path class="whisker" d="M{:.1f} {}H{:.1f}"/>').format(low, y, high))
    parts.append(
        Markup('<circle class="{}" cx="{:.1f}" cy="{}" r="4.5"/>').format(
            "open" if change.interval is None else "sure", at(change.ratio), y
        )
    )
    return Markup(
        '<svg class="forest" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, shown(change_text(change)), Markup("").join(parts))


def change_text(change: "Change") -> str:
    """`+5.2 %`."""
    if change.ratio is None:
        return NONE
    return f"{100 * (change.ratio - 1):+.1f} %"


def interval_text(change: "Change") -> str:
    """`-1.0 to +11.0 %`, or that there is none."""
    if change.interval is None:
        return "no interval"
    low, high = (100 * (ratio - 1) for ratio in change.interval)
    return f"{low:+.1f} to {high:+.1f} %"


def delta_charts(changes: "Changes", stamp: str = "") -> list[Panel]:
    """The changes of the headline's metric, side by side; more of them are in the table."""
    from eeio.report.documents import changes as texts

    metric = changes.headline
    panels = []
    for experiment in texts.by_weight(changes, metric):
        if (one := experiment.metrics[metric]).change.ratio is not None:
            panels.append((texts.label(experiment, changes), one))
    shown_rows = panels[: _PANELS * _ROWS]
    span = span_of(one.change for _, one in shown_rows)
    name, _ = texts.header_and_unit(metric)
    rows = []
    for label, one in shown_rows:
        change = one.change
        assert change.ratio is not None
        interval = None
        if change.interval is not None:
            interval = (change.interval[0] - 1, change.interval[1] - 1)
        text = f"{change_text(change)}, {one.verdict}"
        is_sure = one.verdict in ("better", "worse")
        rows.append(Difference(label, text, change.ratio - 1, interval, is_sure))
    each = 1
    if rows:
        each = -(-len(rows) // _PANELS)
    charts = []
    for first in range(0, len(rows), each):
        charts.append(forest(f"Change of {name}", rows[first : first + each], span, stamp))
    return charts


def delta_table(changes: "Changes") -> Markup:
    """The headline's metric of all experiments, then each other metric that was measured."""
    from eeio.comparison.changes import change_metrics
    from eeio.report.documents import changes as texts

    metrics = [changes.headline, *(m for m in change_metrics() if m != changes.headline)]
    found = [
        (metric, experiment, experiment.metrics[metric])
        for metric in metrics
        if any(e.metrics[metric].change.ratio is not None for e in changes.experiments)
        for experiment in texts.by_weight(changes, metric)
    ]
    span = span_of(change.change for _, _, change in found)
    rows = []
    for metric, experiment, change in found:
        name, unit = texts.header_and_unit(metric)
        verdict = texts.verdict(change, changes)
        rows.append(
            Markup(
                '<tr><th scope="row">{}</th><td class="words">{}</td><td>{}</td><td>{}</td>'
                '<td>{}</td><td>{}<small>{}</small></td><td class="words">{}</td>'
                '<td class="words verdict-{}">{}<small></small></td></tr>'
            ).format(
                texts.label(experiment, changes),
                name,
                texts.repetitions(change),
                *(NONE if v is None else page_number(v / unit) for v in change.means),
                change_text(change.change),
                interval_text(change.change),
                forest_mark(change.change, span),
                verdict.split(" ", 1)[0],
                verdict,
            )
        )
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
        changes.after,
        changes.before,
        changes.before,
        changes.after,
        f"{100 * span:.0f}",
        f"{100 * span:.0f}",
        Markup("").join(rows),
    )
