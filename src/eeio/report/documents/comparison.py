"""The output of `eeio compare`: sentences, tables and JSON of confirmed differences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from eeio.comparison.campaigns import Comparison, Group
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, Cell
from eeio.comparison.differences import Difference
from eeio.comparison.effects import FACTORS, Effect
from eeio.comparison.idle import IdleBusy
from eeio.comparison.normality import NormalityCount
from eeio.record.run import SCHEMA_VERSION
from eeio.report.campaign.columns import plain
from eeio.report.document import Document, flat
from eeio.report.documents import changes, pareto
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import MB

_UNITS = {BANDWIDTH: ("MB/s", MB), EFFICIENCY: ("MB/J", MB)}
_SWITCHES = {"buffer": "the buffer cache", "disk": "the drive's write cache"}
_DOMAINS = {
    "system": "of the system",
    "module": "of the module",
    "package": "of the processor",
    "dram": "of the memory",
    "device": "of the device",
    "accelerator": "of the accelerators",
}


def sentence(effect: Effect) -> str:
    """One effect in a sentence, with its basis."""
    change = _change(effect)
    if effect.largest is None:
        few = ""
        if effect.too_few:
            few = f", {effect.too_few} of them with too few repetitions"
        return (
            f"{change}: {_quantity(effect.metric)} not confirmed higher in any of "
            f"{effect.pairs} pairs{few}."
        )
    best = effect.largest
    unit, factor = _UNITS.get(effect.metric, ("W", 1.0))
    high, low = (cell.median(effect.metric) / factor for cell in (best.higher, best.lower))
    interval = _interval(best)
    between = ""
    if interval is not None:
        between = f", 95 % interval {number(interval[0])} to {number(interval[1])} %"
    where = best.higher.label(without=_without(effect, best))
    return (
        f"{change}: {_quantity(effect.metric)} up to {number(best.percent)} % higher "
        f"(p = {best.p:.2g}{between}): {where}, {number(high)} against {number(low)} {unit}; "
        f"confirmed in {effect.confirmed} of {effect.pairs} pairs."
    )


def _not_confirmed(found: Sequence[Effect]) -> list[str]:
    """All effects that no pair confirms, in one line."""
    if not found:
        return []
    pairs, few = sum(e.pairs for e in found), sum(e.too_few for e in found)
    small = ""
    if few:
        small = f" ({few} of {pairs} pairs have too few repetitions)"
    return [f"Not confirmed higher{small}: {'; '.join(map(_change, found))}."]


def _without(effect: Effect, best: Difference) -> list[str]:
    """Factors in which the two differ, so that the label contains only common ones."""
    apart = best.higher.factors["device"] != best.lower.factors["device"]
    return [effect.factor, *(["device"] if apart else [])]


def _change(effect: Effect) -> str:
    if effect.factor in _SWITCHES:
        verb = "Not using"
        if effect.higher == "on":
            verb = "Using"
        return f"{verb} {_SWITCHES[effect.factor]}"
    texts = {
        "smt": f"SMT {effect.higher} instead of {effect.lower}",
        "turbo": f"Turbo {effect.higher} instead of {effect.lower}",
        "size": f"Requests of {effect.higher} instead of {effect.lower}",
        "spatiality": f"{effect.higher.capitalize()} instead of {effect.lower} access",
        "operation": f"Operation {effect.higher} instead of {effect.lower}",
    }
    return texts.get(effect.factor, f"{effect.higher} instead of {effect.lower}")


def _quantity(metric: str) -> str:
    if metric == BANDWIDTH:
        return "bandwidth"
    if metric == EFFICIENCY:
        return "energy efficiency"
    return f"power {_DOMAINS[metric.removeprefix('power_').removesuffix('_w')]}"


def _interval(difference: Difference) -> tuple[float, float] | None:
    """95 % interval of the percentage, from that of the ratio of the medians."""
    estimate = difference.ratio
    if estimate.interval is None:
        return None
    return 100 * (estimate.interval.low - 1), 100 * (estimate.interval.high - 1)


def document(comparison: Comparison, page: Callable[[], str] | None = None) -> Document:
    """The answer of `eeio compare`: the changes, then the effect of each factor."""
    return Document(
        title=f"eeio compare: {', '.join(comparison.campaigns)}",
        parts=tuple(_parts(comparison)),
        data=lambda: to_json(comparison),
        records=lambda: _records(comparison),
        warnings=tuple(comparison.warnings),
        page=page,
        answer=tuple(map(changes.answer, comparison.changes)),
    )


def _effects(group: Group) -> Iterator[Table]:
    """A table of sentences for each metric."""
    title = ", ".join(f"{name} {level}" for name, level in group.levels)
    for metric in dict.fromkeys(effect.metric for effect in group.effects):
        of_metric = [effect for effect in group.effects if effect.metric == metric]
        sentences = []
        for effect in of_metric:
            if effect.largest is not None:
                sentences.append(sentence(effect))
        sentences += _not_confirmed([e for e in of_metric if e.largest is None])
        heading = _quantity(metric).capitalize() + (f" ({title})" if title else "")
        yield Table(heading, ("",), tuple((line,) for line in sentences))


def _parts(comparison: Comparison) -> Iterator[Table | str]:
    for change in comparison.changes:
        yield from changes.tables(change)
    for group in comparison.groups:
        yield from _effects(group)
    if comparison.idle_busy:
        yield _idle_table(comparison.idle_busy)
    if (front := pareto.pareto_table(comparison.pareto)) is not None:
        yield front
    if comparison.normality:
        yield normality_table(comparison.normality)
    if not comparison.changes and not any(group.effects for group in comparison.groups):
        yield (
            "no comparison: no two experiments differ in only one of the factors "
            f"{', '.join(FACTORS)}; give a second campaign"
        )
        return
    yield (
        f"p: Mann-Whitney, two-sided, adjusted ({comparison.adjustment}) over the pairs of "
        "each factor; Dunn's test among more than two experiments; confirmed: "
        f"p < {comparison.alpha:g}. Intervals: bootstrap of the ratio of the medians."
    )


def _records(comparison: Comparison) -> list[dict[str, Any]]:
    """The changes of each experiment between two campaigns, then the effects of the factors."""
    records = [
        {"before": change.before, "after": change.after, **record}
        for change in comparison.changes
        for record in changes.records(change)
    ]
    for group in comparison.groups:
        for effect in group.effects:
            record = {f"by_{name}": level for name, level in group.levels}
            body = _effect_json(effect)
            largest = body.pop("largest") or {}
            records.append({**record, **body, **flat(largest, "largest_")})
    return records


def _idle_table(items: Sequence[IdleBusy]) -> Table:
    rows = []
    for item in items:
        extra = item.extra_w
        total = next(
            (
                other.extra_w
                for other in items
                if other.domain == "system"
                and (other.machine, other.device) == (item.machine, item.device)
            ),
            None,
        )
        share, reason = "-", item.reason or ""
        if extra is not None and total:
            if extra < 0 or total < 0:
                reason = reason or (
                    "no share: busy power is below idle power, so the idle period was disturbed"
                )
            elif extra / total <= 1:
                share = f"{100 * extra / total:.1f} %"
            else:
                reason = reason or "no share: not between 0 and 100 % of the system's extra power"
        rows.append(
            (
                f"{item.machine} {item.device}",
                item.domain,
                plain(item.idle_w),
                plain(item.idle_median_w),
                plain(item.busy_w),
                plain(extra),
                share,
                reason,
            )
        )
    busiest = dict.fromkeys(f"{i.machine} {i.device}: {i.busiest}" for i in items)
    return Table(
        title="Idle and busy power: distribution of the increase",
        header=(
            "System",
            "Domain",
            "Idle, mean (W)",
            "Idle, median (W)",
            "Busy (W)",
            "Extra (W)",
            "Share",
            "Note",
        ),
        rows=tuple(rows),
        numeric=frozenset((2, 3, 4, 5, 6)),
        note="Busy is the experiment with the highest power; extra is above the mean at idle: "
        + "; ".join(busiest),
    )


def normality_table(counts: Sequence[NormalityCount]) -> Table:
    """Where repetitions are not normal; medians and rank tests do not ask that of them."""
    return Table(
        title="Experiments with repetitions that are not normally distributed (p < 0.05)",
        header=("Metric", "Experiments", "Kolmogorov-Smirnov", "Lilliefors", "Shapiro-Wilk"),
        rows=tuple(
            (
                _quantity(count.metric),
                str(count.experiments),
                str(count.kolmogorov_smirnov),
                str(count.lilliefors),
                str(count.shapiro_wilk),
            )
            for count in counts
        ),
        numeric=frozenset((1, 2, 3, 4)),
        note="Kolmogorov-Smirnov with fitted mean and deviation is too lenient; the others decide.",
    )


def to_json(comparison: Comparison) -> dict[str, Any]:
    """The contract of `eeio compare --format json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "campaigns": list(comparison.campaigns),
        "adjustment": comparison.adjustment,
        "alpha": comparison.alpha,
        "warnings": list(comparison.warnings),
        "changes": list(map(changes.to_json, comparison.changes)),
        "groups": [
            {
                "levels": dict(group.levels),
                "findings": list(map(_effect_json, group.effects)),
            }
            for group in comparison.groups
        ],
        "pareto": pareto.to_json(comparison.pareto),
        "normality": list(map(asdict, comparison.normality)),
        "idle_busy": list(map(asdict, comparison.idle_busy)),
    }


def _effect_json(effect: Effect) -> dict[str, Any]:
    best = effect.largest
    return {
        "metric": effect.metric,
        "factor": effect.factor,
        "higher": effect.higher,
        "lower": effect.lower,
        "pairs": effect.pairs,
        "confirmed": effect.confirmed,
        "too_small": effect.too_few,
        "sentence": sentence(effect),
        "largest": None if best is None else _difference_json(best),
    }


def _difference_json(best: Difference) -> dict[str, Any]:
    interval = _interval(best)
    return {
        "percent": best.percent,
        "interval_percent": list(interval) if interval else None,
        "p_value": best.p,
        "cliffs_delta": None if best.test.delta is None else abs(best.test.delta),
        "higher": _cell_json(best.higher, best.metric),
        "lower": _cell_json(best.lower, best.metric),
    }


def _cell_json(cell: Cell, metric: str) -> dict[str, Any]:
    return {"factors": dict(cell.factors), "n": cell.n(metric), "median": cell.median(metric)}
