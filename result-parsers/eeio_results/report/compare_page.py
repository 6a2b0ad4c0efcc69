"""`eeio compare --format html`: the report's page with the changes at its top."""

from collections.abc import Sequence

from eeio_results.comparison.campaigns import Comparison
from eeio_results.comparison.changes import Changes, change_metrics
from eeio_results.comparison.gate import Gate
from eeio_results.report import changes as said
from eeio_results.report import gate, page
from eeio_results.report.model import Report
from eeio_results.report.page.delta import Comparison as Compared
from eeio_results.report.page.delta import Delta
from eeio_results.report.page.repetitions import Power


def render(
    report: Report,
    comparison: Comparison,
    power: Power | None = None,
    gates: Sequence[Gate] = (),
) -> str:
    """The page of the compared campaigns. For more than two, the page has the changes from the
    first to the second; the tables of a terminal have all."""
    if not comparison.changes:
        return page.render(report, None, power)
    first = comparison.changes[0]
    note = said.note(first)
    if len(comparison.changes) > 1:
        others = " ".join(said.answer(found) for found in comparison.changes[1:])
        note = f"{note}. {others}"
    note = ". ".join([note, *(line for found in gates for line in gate.lines(found, False))])
    return page.render(
        report,
        Compared(first.before, first.after, said.answer(first), tuple(_deltas(first)), note),
        power,
    )


def _deltas(changes: Changes) -> Sequence[Delta]:
    """The headline of all experiments first, then each other metric that was measured."""
    metrics = [changes.headline, *(m for m in change_metrics() if m != changes.headline)]
    found = []
    for metric in metrics:
        name, unit = said.header_and_unit(metric)
        if all(e.metrics[metric].change.ratio is None for e in changes.experiments):
            continue
        for experiment in said.by_weight(changes, metric):
            one = experiment.metrics[metric]
            ratio, interval = one.change.ratio, one.change.interval
            found.append(
                Delta(
                    experiment=said.label(experiment, changes),
                    metric=name,
                    unit="",
                    before=None if one.before is None else one.before / unit,
                    after=None if one.after is None else one.after / unit,
                    change=None if ratio is None else ratio - 1,
                    low=None if interval is None else interval[0] - 1,
                    high=None if interval is None else interval[1] - 1,
                    verdict=said.verdict(one, changes),
                    n=said.repetitions(one),
                )
            )
    return found
