"""The repetitions of an adaptive campaign: why each experiment stopped, and the drift."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from eeio.comparison.cells import cells_of
from eeio.comparison.drift import Trend, power_effects, rounds_of, trends
from eeio.record.design import MOST, PRECISE
from eeio.record.store import Campaign
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import percent

# A trend with a larger uncertainty than this, in % an hour from end to end, is meaningless.
_WIDEST_PERCENT = 100.0


def rounds_table(campaigns: Sequence[Campaign]) -> Table | None:
    """A row an adaptive campaign; None where there is none."""
    adaptive = [campaign for campaign in campaigns if campaign.design.protocol.adaptive is not None]
    if not adaptive:
        return None
    return Table(
        title="How often experiments were repeated",
        header=("Campaign", "Runs", "Precise enough", "Most repetitions", "Other", "Open", "Drift"),
        rows=tuple(map(_row, adaptive)),
        numeric=frozenset((1, 2, 3, 4, 5)),
        note="\n".join(map(_rule, adaptive)),
    )


def _beginning(reason: str) -> str:
    """Which of the two reasons it is."""
    if reason.startswith(PRECISE):
        return PRECISE
    if reason.startswith(MOST):
        return MOST
    return ""


def _row(campaign: Campaign) -> tuple[str, ...]:
    design = campaign.design
    why = Counter(_beginning(reason) for reason in design.stopped.values())
    still_open = len(design.experiments) - len(design.stopped)
    drift = "; ".join(map(_drift, trends(campaign)))
    return (
        campaign.name,
        str(len(campaign.runs)),
        *(str(why[kind]) for kind in (PRECISE, MOST, "")),
        str(still_open),
        drift or "not known",
    )


def _drift(trend: Trend) -> str:
    what = "bandwidth"
    if trend.metric.startswith("power"):
        what = "power"
    low, high = (100 * edge for edge in trend.interval)
    if high - low > _WIDEST_PERCENT:
        return f"{trend.label}: {what}: {number(trend.hours)} h are too short"
    return (
        f"{trend.label}: {what} {100 * trend.per_hour:+.2g} % an hour ({low:+.2g} to {high:+.2g}), "
        f"{trend.n} runs in {number(trend.hours)} h"
    )


def _rule(campaign: Campaign) -> str:
    protocol = campaign.design.protocol
    rule = protocol.adaptive
    assert rule is not None
    return (
        f"{campaign.name}: {protocol.repetitions} rounds of all experiments, then of those with "
        f"bandwidth, power or MB/J not known to ±{100 * rule.precision:g} % (95 %), at most "
        f"{rule.most_repetitions} repetitions ({rule.most_whole} of runs of full length). The "
        "stopping rule ignores differences between experiments, so tests keep their level. "
        f"{drift_taken_out(campaign)}".rstrip(". ")
        + f". {_time_saved(campaign)}".rstrip(". ")
    )


def times(campaign: Campaign) -> dict[str, float | None]:
    """`time_s` that the runs and pilots of an adaptive campaign took, and `fixed_s`, that of the
    protocol it replaces: full runs of each, with a fixed pause. Both exclude the idle baseline;
    `fixed_s` is None if that is not known."""
    protocol = campaign.design.protocol
    rule = protocol.adaptive
    planned = {experiment.experiment.id: experiment for experiment in campaign.design.experiments}
    took: dict[str, list[float]] = {}
    complete: dict[str, list[float]] = {}
    for run in campaign.runs:
        of = planned[run.experiment.id]
        work_s = (run.prepare_s or 0.0) + run.duration_s + (run.sync_s or 0.0)
        took.setdefault(run.experiment.id, []).append(work_s + (run.settled_after_s or 0.0))
        if run.valid:
            longer_s = _seconds(of.cut_from) - _seconds(of.factors.get("runtime_s"))
            cut_s = 0.0
            if of.is_cut:
                cut_s = longer_s
            complete.setdefault(run.experiment.id, []).append(work_s + cut_s + protocol.settle_s)
    time_s = math.fsum(s for one in took.values() for s in one) + (campaign.design.pilots_s or 0.0)
    if rule is None or rule.fixed_repetitions is None or not complete:
        return {"time_s": time_s, "fixed_s": None}
    fixed_s = math.fsum(rule.fixed_repetitions * statistics.fmean(one) for one in complete.values())
    return {"time_s": time_s, "fixed_s": fixed_s}


def _seconds(word: str | None) -> float:
    return float(word or 0)


def _time_saved(campaign: Campaign) -> str:
    rule = campaign.design.protocol.adaptive
    of_protocols = times(campaign)
    time_s, fixed_s = of_protocols["time_s"], of_protocols["fixed_s"]
    if rule is None or time_s is None or not fixed_s:
        return ""
    pilots_s = campaign.design.pilots_s
    pilots = ""
    if pilots_s:
        pilots = f", of which pilots {number(pilots_s / 60)} min"
    return (
        f"It took {number(time_s / 60)} min{pilots}; {rule.fixed_repetitions} complete runs of "
        f"each with pauses of {campaign.design.protocol.settle_s:g} s would take "
        f"{number(fixed_s / 60)} min: {percent(time_s / fixed_s)} % of that"
    )


def drift_taken_out(campaign: Campaign) -> str:
    """The correction of the drift, and its size; empty if no power shows any."""
    effects = power_effects(cells_of(campaign), rounds_of(campaign.design))
    largest = []
    for metric, of_metric in effects.items():
        if of_metric.largest is not None:
            number, effect = of_metric.largest
            domain = metric.removeprefix("power_").removesuffix("_w")
            largest.append(f"{domain} {100 * math.expm1(effect):+.2g} % in round {number}")
    if not largest:
        return ""
    return (
        "Tests between its experiments are without the effects of its rounds on power; medians "
        f"and quartiles are as measured. The largest effect: {', '.join(largest)}."
    )
