"""The history of a suite as a document."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from eeio.analysis.metrics import named
from eeio.comparison.history import History, Series, Step
from eeio.record.publication import short_stamp
from eeio.report.campaign.columns import NONE
from eeio.report.document import Document
from eeio.report.table_and_plot import Table
from eeio.statistics.change_points import LEVEL
from eeio.units.number_text import number

if TYPE_CHECKING:
    from eeio.report.page.panels import Panel


def document(found: History, warnings: Sequence[str] = ()) -> Document:
    """`warnings` are those of the campaigns: QUICK, fictitious power."""
    changed = sum(bool(series.steps) for series in found.series)
    used = set()
    for series in found.series:
        for point in series.points:
            used.add(point.campaign)
    answer = (
        f"{found.suite}: {found.metric} changed in {changed} of {len(found.series)} experiments "
        f"over {len(used)} campaigns"
    )

    def charts() -> "Sequence[Panel]":
        from eeio.report.page import history

        return history.charts(found, short_stamp(warnings))

    return Document(
        title=f"History of {found.suite}",
        answer=(answer,),
        parts=(_table(found),),
        data=lambda: {"schema_version": 1, **asdict(found), "warnings": list(warnings)},
        records=lambda: [
            {
                "machine": series.machine,
                "experiment": series.label,
                **asdict(point),
                "metric": found.metric,
                "changed": any(step.campaign == point.campaign for step in series.steps),
            }
            for series in found.series
            for point in series.points
        ],
        warnings=tuple(warnings),
        hint="eeio compare BEFORE AFTER shows two campaigns in detail",
        charts=charts,
    )


def _table(found: History) -> Table:
    unit = named(found.metric).unit
    first_changed = sorted(found.series, key=lambda change: not change.steps)
    return Table(
        title=f"{found.metric} over time",
        header=("Machine", "Experiment", "Campaigns", "First", "Last", "Changes"),
        rows=tuple(
            (
                change.machine,
                change.label,
                str(len(change.points)),
                number(change.points[0].value / unit),
                number(change.points[-1].value / unit),
                _changes(change),
            )
            for change in first_changed
        ),
        numeric=frozenset({2, 3, 4}),
        note="\n".join([_METHOD, *_unsure(found), *_left_out(found)]),
    )


_METHOD = (
    "medians of campaigns; changes by E-divisive (Matteson and James 2014) on logarithms, "
    f"p at most {LEVEL:g} for each; a change is by the geometric means before and after it"
)
_MOST_NOTES = 12


def _unsure(found: History) -> list[str]:
    reasons = []
    for series in found.series:
        for point in series.points:
            if point.unsure is not None:
                reasons.append(f"{point.campaign}, {series.label}: not ranked: {point.unsure}")
    return _some(reasons)


def _left_out(found: History) -> list[str]:
    reasons = []
    for missing in found.left_out:
        reasons.append(f"{missing.campaign}, {missing.experiment}: left out: {missing.reason}")
    return _some(reasons)


def _some(reasons: Sequence[str]) -> list[str]:
    some = list(reasons[:_MOST_NOTES])
    if more := len(reasons) - len(some):
        some.append(f"and {more} more: --format json has all")
    return some


def _changes(series: Series) -> str:
    if series.reason is not None:
        return series.reason
    return "; ".join(map(_text, series.steps)) or NONE


def _text(step: Step) -> str:
    machine = ""
    if step.machine:
        machine = f" ({', '.join(step.machine)})"
    return f"{step.utc[:10]} {step.campaign}: {100 * step.change:+.1f} %{machine}"
