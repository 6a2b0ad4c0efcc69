"""Changes from one campaign to another, as tables, as JSON, and as one line with the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from eeio.analysis.metrics import METRICS
from eeio.comparison.cells import BANDWIDTH, EXECUTION_S, POWER
from eeio.comparison.changes import (
    OF_DRIVE,
    PLACE,
    Changes,
    ExperimentChange,
    MetricChange,
    Verdict,
    change_metrics,
)
from eeio.report.campaign.columns import NONE, plain
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number


def header_and_unit(key: str) -> tuple[str, float]:
    """The title of a metric's column, and the SI value of the unit that it is shown in."""
    for domain, power in POWER.items():
        if key == power:
            return f"{domain} W", 1.0
    if key == OF_DRIVE:
        return "device J/GB", 1.0
    metric = next(known for known in METRICS if known.key == key)
    return metric.header, metric.unit


def answer(changes: Changes) -> str:
    """Did it help? In the headline's metric, over all experiments that both campaigns have. The
    limit is named: a gate asks for another one."""
    metric, limit = changes.headline, _share(changes.rule.indifference)
    counts = changes.counted(metric)
    better, worse = counts.get("better", 0), counts.get("worse", 0)
    none, still_open = counts.get("none above", 0), counts.get("open", 0)
    tested = better + worse + none + still_open
    head = f"{changes.after} against {changes.before}: "
    if changes.of_demo and metric not in (BANDWIDTH, EXECUTION_S):
        head += "demo power, so this is no result: "
    if tested == 0:
        reason = next((e.metrics[metric].reason for e in changes.experiments), None)
        return f"{head}not decided: {reason or 'they have no experiment in common'}."
    text = _verdict(changes, counts, tested)
    rest = []
    if none and (better or worse):
        rest.append(f"{none} without a difference above {limit}")
    elif none and still_open:
        rest.append(f"{none} without one above {limit}")
    if still_open and better + worse > 0:
        rest.append(f"{still_open} open")
    if (mean := changes.mean_ratio(metric)) is not None:
        rest.append(f"on average {_percent(mean)}")
    if left := counts.get("not compared", 0):
        rest.append(f"{left} not compared")
    return head + "; ".join([text, *rest]) + "."


def _verdict(changes: Changes, counts: Mapping[Verdict, int], tested: int) -> str:
    """The first part of the answer: what the tests of the headline's metric say."""
    name = header_and_unit(changes.headline)[0]
    beyond = f"by more than {_share(changes.rule.floor)}"
    better, worse = counts.get("better", 0), counts.get("worse", 0)
    still_open = counts.get("open", 0)
    most_better = ""
    if better:
        most_better = _most(changes, 1)
    most_worse = ""
    if worse:
        most_worse = _most(changes, -1)
    if better and not worse:
        return f"{name} is better {beyond} in {better} of {tested} experiments{most_better}"
    if worse and not better:
        return f"{name} is worse {beyond} in {worse} of {tested} experiments{most_worse}"
    if better:
        return (
            f"mixed: {name} is better {beyond} in {better}{most_better} and worse in "
            f"{worse}{most_worse} of {tested} experiments"
        )
    if still_open:
        return f"not decided: {name} is open in {still_open} of {tested} experiments"
    limit = _share(changes.rule.indifference)
    return f"no difference: {name} differs by no more than {limit} in any of {tested} experiments"


def label(experiment: ExperimentChange, changes: Changes) -> str:
    """With level, tool and target where the experiments differ in them."""
    alike = (
        len(
            {
                (
                    *(e.before.factors[name] for name in ("level", "tool", "target")),
                    *e.before.details,
                )
                for e in changes.experiments
            }
        )
        == 1
    )
    return experiment.before.label(without=PLACE, tool=not alike)


def tables(changes: Changes) -> list[Table]:
    """The headline with its verdicts, then the other changes."""
    if changes.experiments:
        return [_headline(changes), _others(changes)]
    return []


def _headline(changes: Changes) -> Table:
    metric = changes.headline
    name, unit = header_and_unit(metric)
    rows = []
    for experiment in by_weight(changes, metric):
        change = experiment.metrics[metric]
        rows.append(
            (
                label(experiment, changes),
                repetitions(change),
                *(plain(mean, unit) for mean in change.means),
                NONE if change.change.ratio is None else _percent(change.change.ratio),
                _interval(change),
                verdict(change, changes),
            )
        )
    return Table(
        title=f"Changes: {name}, {changes.before} to {changes.after}",
        header=("Experiment", "n", "Before", "After", "Change", "95 % interval", "Verdict"),
        rows=tuple(rows),
        numeric=frozenset((1, 2, 3, 4, 5)),
        note=note(changes),
    )


def note(changes: Changes) -> str:
    """By which rule."""
    rule = changes.rule
    of_one = "One session each: intervals exclude changes from day to day"
    of_sessions = "n is the number of sessions: intervals include changes from day to day"
    return (
        "before, after, change and interval: geometric means, Student's t on logarithms; better, "
        f"worse: beyond {_share(rule.floor)}, Welch's t, p adjusted over the rows, p < "
        f"{rule.alpha:g}; none above {_share(rule.indifference)}: two one-sided tests; open: "
        f"neither. {of_sessions if changes.of_sessions else of_one}"
    )


def by_weight(changes: Changes, metric: str) -> list[ExperimentChange]:
    """Worse ones first, then better, open, and those without a difference; large changes first."""
    return sorted(changes.experiments, key=lambda e: _order(e.metrics[metric]))


def repetitions(found: MetricChange) -> str:
    """`6`, or `6+5` where the campaigns differ."""
    n = found.change.n
    if n[0] == n[1]:
        return str(n[0])
    return f"{n[0]}+{n[1]}"


def _others(changes: Changes) -> Table:
    metrics = []
    for metric in change_metrics():
        if metric != changes.headline and any(
            e.metrics[metric].change.ratio is not None for e in changes.experiments
        ):
            metrics.append(metric)
    less = {metric.key: metric.name for metric in METRICS if metric.better == "less"}
    less |= dict.fromkeys(POWER.values(), "W") | {OF_DRIVE: "J/GB"}
    smaller = " and ".join(dict.fromkeys(less[metric] for metric in metrics if metric in less))
    note = f"change of the geometric mean; ? open, = none above {_share(changes.rule.indifference)}"
    return Table(
        title="Other changes",
        header=("Experiment", *(header_and_unit(metric)[0] for metric in metrics)),
        rows=tuple(
            (label(e, changes), *(_short(e.metrics[metric]) for metric in metrics))
            for e in sorted(changes.experiments, key=lambda e: _order(e.metrics[changes.headline]))
        ),
        numeric=frozenset(range(1, len(metrics) + 1)),
        note=f"{note}; of {smaller} less is better" if smaller else note,
    )


def to_json(changes: Changes) -> dict[str, Any]:
    """An object of the list `changes` of `eeio compare --format json`."""
    return {
        "before": changes.before,
        "after": changes.after,
        "answer": answer(changes),
        "headline": changes.headline,
        "indifference": changes.rule.indifference,
        "floor": changes.rule.floor,
        "statistic": "geometric mean",
        "experiments": list(map(_experiment_json, changes.experiments)),
        "only_before": list(changes.only_before),
        "only_after": list(changes.only_after),
    }


def records(changes: Changes) -> list[dict[str, Any]]:
    """The same as lines of a CSV file: one for each experiment and metric."""
    made = []
    for experiment in changes.experiments:
        body = _experiment_json(experiment)
        for metric, figures in body["metrics"].items():
            low, high = figures.pop("interval_percent") or (None, None)
            n_before, n_after = figures.pop("n")
            made.append(
                {
                    "experiment": body["experiment"],
                    "metric": metric,
                    **{
                        f"{name}_mean" if name in ("before", "after") else name: value
                        for name, value in figures.items()
                    },
                    "interval_low_percent": low,
                    "interval_high_percent": high,
                    "n_before": n_before,
                    "n_after": n_after,
                }
            )
    return made


def _experiment_json(experiment: ExperimentChange) -> dict[str, Any]:
    return {
        "experiment": experiment.label,
        "factors": dict(experiment.before.factors),
        "metrics": {
            name: {
                "verdict": metric.verdict,
                "before": metric.means[0],
                "after": metric.means[1],
                "change_percent": metric.change.percent,
                "interval_percent": metric.change.interval_percent,
                "p_direction": metric.change.p_direction,
                "p_none_above": metric.change.p_none,
                "n": list(metric.change.n),
                "repetitions_needed": metric.change.needed if metric.verdict == "open" else None,
                "reason": metric.reason,
            }
            for name, metric in experiment.metrics.items()
        },
    }


def _order(found: MetricChange) -> tuple[int, float]:
    """Worse first, the largest change first, then better, open, none, and those not compared."""
    ranks: Sequence[str] = ("worse", "better", "open", "none above", "not compared")
    size = 0.0
    if found.change.percent is not None:
        size = abs(found.change.percent)
    return ranks.index(found.verdict), -size


def _most(changes: Changes, way: int) -> str:
    """`, by up to 21 %`: the largest of the better (1) or worse (-1) ones."""
    verdict = "worse"
    if way > 0:
        verdict = "better"
    sentences = []
    for e in changes.experiments:
        if (metric := e.metrics[changes.headline]).verdict == verdict and (
            change := metric.change
        ).percent is not None:
            sentences.append(abs(change.percent))
    return f", by up to {number(max(sentences))} %"


def verdict(found: MetricChange, changes: Changes) -> str:
    if found.verdict == "none above":
        return f"no difference above {_share(changes.rule.indifference)}"
    if found.verdict == "not compared":
        return f"not compared: {found.reason}"
    if found.verdict != "open":
        return found.verdict
    if found.reason is not None:
        return f"open: {found.reason}"
    needed = found.change.needed
    because = "too scattered"
    if needed is not None:
        because = f"about {needed} repetitions decide half of such cases"
    if _is_beyond(found, changes):
        # Its interval is of this row alone, the verdict is over all of them.
        because = f"the interval is of this row alone, over all rows p = {_p(found)}; {because}"
    return f"open: {because}"


def _is_beyond(found: MetricChange, changes: Changes) -> bool:
    """Whether the interval excludes every change below the floor."""
    if found.change.interval is None:
        return False
    low, high = found.change.interval
    floor = 1.0 + changes.rule.floor
    return low > floor or high < 1.0 / floor


def _p(found: MetricChange) -> str:
    if found.change.p_direction is None:
        return "unknown"
    return f"{found.change.p_direction:.2g}"


def _short(found: MetricChange) -> str:
    if found.change.ratio is None or found.verdict == "not compared":
        return NONE
    mark = {"open": " ?", "none above": " ="}.get(found.verdict, f" {found.verdict}")
    return _percent(found.change.ratio) + mark


def _interval(found: MetricChange) -> str:
    if found.change.interval is None:
        return NONE
    low, high = found.change.interval
    return f"{_percent(low)} to {_percent(high)}"


def _percent(ratio: float) -> str:
    change = 100.0 * (ratio - 1.0)
    return f"{'+' if change > 0 else ''}{number(round(change, 2))} %"


def _share(share: float) -> str:
    return f"{100 * share:g} %"
