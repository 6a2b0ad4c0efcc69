"""A guideline for replacing servers: the answer of `eeio cost --traditional`."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eeio.guideline.answer import (
    CHOICES,
    Change,
    Cost,
    Deployment,
    Guideline,
    LessPerTb,
    Money,
    ServerFigures,
)
from eeio.guideline.workload import Workload
from eeio.record.run import SCHEMA_VERSION
from eeio.report.campaign.columns import NONE, plain
from eeio.report.document import Document, flat
from eeio.report.table_and_plot import Table
from eeio.statistics.bootstrap import Estimate
from eeio.units import external_text as harmless
from eeio.units.number_text import number
from eeio.units.sizes import MB

PER_TB = {
    "j_per_gb": "Energy of the machine (J/GB)",
    "kwh_per_tb": "Energy (kWh/TB)",
    "money_per_tb": "Money ({currency}/TB)",
    "electricity_per_tb": "  of it electricity",
    "purchase_per_tb": "  of it purchase",
    "g_co2e_per_tb": "Carbon (g CO2e/TB)",
    "g_co2e_operation_per_tb": "  of it operation",
    "g_co2e_embodied_per_tb": "  of it embodied",
}
"""Costs of moving a TB, by the names of `Cost`, with their table labels."""
_OUTCOMES = {
    "pays-back": "dearer to buy, cheaper to run",
    "at-once": "cheaper to buy, no dearer to run",
    "until": "cheaper to buy, dearer to run: pays only until the break-even",
    "never": "never pays back",
    None: NONE,
}


def document(guideline: Guideline, page: Callable[[], str] | None = None) -> Document:
    """The answer of `eeio cost --traditional ... --low-power ...`."""
    return Document(
        title=f"eeio cost: {_title(guideline)}",
        parts=(verdict(guideline), *tables(guideline)),
        data=lambda: to_json(guideline),
        records=lambda: list(map(flat, guideline.experiments)),
        warnings=tuple(warnings(guideline)),
        page=page,
    )


def to_json(guideline: Guideline) -> dict[str, Any]:
    """SI units; a missing figure is null with its reason next to it; changes are ratios (0.25)."""
    body = asdict(guideline)
    body["per_tb"] = [
        {"system": per_tb.system, **{name: asdict(getattr(per_tb, name)) for name in PER_TB}}
        for per_tb in guideline.per_tb
    ]
    return {"schema_version": SCHEMA_VERSION, "guideline": body}


def verdict(guideline: Guideline) -> str:
    """The rule applied, in a sentence."""
    if guideline.reason:
        return guideline.reason
    ts, lp = guideline.traditional.name, guideline.low_power.name
    fractional = guideline.deployments[0]
    outcome = {
        True: "saves power",
        False: "costs more power",
        None: "may save or cost power: the interval includes both"
        if fractional.power_change.interval
        else "is judged only by the medians: there is no interval",
    }[guideline.saves]
    return (
        f"Replacing one {ts} by {estimate(guideline.ratio)} {lp} (the same bandwidth) changes "
        f"power by {percent(fractional.power_change)}: it {outcome}."
    )


def tables(guideline: Guideline) -> list[Table]:
    """Everything a reader sees, in order."""
    made = [_workload_table(guideline.workload), _systems_table(guideline)]
    if guideline.deployments:
        made.append(_deployment_table(guideline))
        if guideline.costs:
            made.append(_money_table(guideline))
        made.append(_changes_table(guideline))
    if guideline.per_tb:
        made.append(_per_tb_table(guideline.per_tb, guideline.less_per_tb))
    made.append(_experiments_table(guideline))
    return made


def _per_tb_table(costs: Sequence[Cost], less: Sequence[LessPerTb]) -> Table:
    """The cost of moving a TB on each system, one server of it."""
    currency = costs[0].inputs.currency or "money"
    reasons = dict.fromkeys(
        f"{title.strip()}: {why}"
        for name, title in PER_TB.items()
        for cost in costs
        if (why := getattr(cost, name).reason) is not None
    )
    return Table(
        title="Cost per moved TB",
        header=("Answer", *(cost.system for cost in costs)),
        rows=tuple(
            (title.format(currency=currency), *(estimate(getattr(cost, name)) for cost in costs))
            for name, title in PER_TB.items()
        ),
        numeric=frozenset(range(1, len(costs) + 1)),
        note="\n".join(
            (
                "on one server of each kind; `eeio cost` shows which input changes each answer "
                "most",
                *map(less_text, less),
                *(reason.format(currency=currency) for reason in reasons),
            )
        ),
    )


def less_text(one: LessPerTb) -> str:
    """`B takes 0.81 [0.78 - 0.84] times the energy per TB of A: B costs less.`"""
    what = "money"
    if one.answer == "kwh_per_tb":
        what = "energy"
    text = f"{one.second} takes {estimate(one.ratio)} times the {what} per TB of {one.first}: "
    if one.less is not None:
        return text + f"{one.less} costs less."
    if one.ratio.interval is None:
        return text + f"not decided; {one.ratio.reason}."
    return text + "not decided: the interval contains 1."


def estimate(figure: Estimate, unit: float = 1.0, show: Callable[[float], str] = number) -> str:
    """`value [low - high]`; `-` without a value."""
    if figure.value is None:
        return NONE
    # A figure that no resample changes (a purchase) needs no brackets.
    if figure.interval is None or figure.interval.low == figure.interval.high:
        return show(figure.value / unit)
    low, high = show(figure.interval.low / unit), show(figure.interval.high / unit)
    return f"{show(figure.value / unit)} [{low} - {high}]"


def percent(figure: Estimate) -> str:
    """A change, with its interval: `-20.0 % [-22.1 - -18.3]`."""
    if figure.value is None:
        return NONE
    value = f"{_signed(figure.value)} %"
    # Rounding makes an interval even if no resample changes the value (the bandwidth retained).
    if figure.interval is None or figure.interval.high - figure.interval.low < 1e-9:
        return value
    return f"{value} [{_signed(figure.interval.low)} - {_signed(figure.interval.high)}]"


def _signed(ratio: float) -> str:
    """Per cent with its sign; values that round to 0 are +0.0, never -0.0."""
    return f"{round(100 * ratio, 1) + 0.0:+.1f}"


def _title(guideline: Guideline) -> str:
    names = f"{guideline.traditional.name} by {guideline.low_power.name}"
    return f"{names}, workload {guideline.workload.name}"


def warnings(guideline: Guideline) -> list[str]:
    """Warnings that come before any number."""
    texts = list(guideline.messages)
    reasons = dict.fromkeys(
        figure.reason
        for figure in (
            guideline.ratio,
            *(row.bandwidth_ratio for row in guideline.experiments if not row.reason),
        )
        if figure.value is not None and figure.interval is None and figure.reason
    )
    return texts + list(filter(None, reasons))


def _workload_table(workload: Workload) -> Table:
    return Table(
        title=f"Workload {workload.name}, shares of {workload.share_of}",
        header=("Experiment", "Share"),
        rows=tuple((entry.key.label, f"{100 * entry.share:.4g} %") for entry in workload.entries),
        numeric=frozenset({1}),
    )


def _systems_table(guideline: Guideline) -> Table:
    def cells(role: str, system: ServerFigures) -> tuple[str, ...]:
        return (
            role,
            system.name,
            estimate(system.bandwidth_bytes_per_s, MB),
            estimate(system.power_w),
            estimate(system.energy_j_per_byte, 1 / MB),
            plain(system.idle_power_w),
            plain(system.price),
        )

    return Table(
        title="One server of each under the workload",
        header=("Role", "System", "MB/s", "Power (W)", "J/MB", "Idle (W)", "Price"),
        rows=(
            cells("traditional", guideline.traditional),
            cells("low-power", guideline.low_power),
        ),
        numeric=frozenset({2, 3, 4, 5, 6}),
        note=f"values: {CHOICES[guideline.choice]}\n"
        f"mix: {guideline.combination}\n"
        f"[ ]: {100 * guideline.confidence:g} % intervals, bootstrap, {guideline.resamples} "
        f"resamples, seed {guideline.seed}",
    )


def _deployment_table(guideline: Guideline) -> Table:
    operations = [change.label for change in guideline.deployments[0].operations]
    return Table(
        title="Low-power servers in place of one traditional server",
        header=(
            "Servers",
            "Number",
            "Power",
            "Bandwidth",
            *(f"of {operation}s" for operation in operations),
        ),
        rows=tuple(
            (
                plan.kind,
                estimate(plan.servers),
                percent(plan.power_change),
                percent(plan.bandwidth_change),
                *(percent(change.change) for change in plan.operations),
            )
            for plan in guideline.deployments
        ),
        numeric=frozenset(range(1, 4 + len(operations))),
        note="power: all servers busy; (B_ts / B_lp) x P_lp < P_ts saves power",
    )


def _money_table(guideline: Guideline) -> Table:
    costs = guideline.costs
    assert costs is not None
    load = "all servers always busy"
    if costs.busy_share is not None:
        load = f"traditional server busy {100 * costs.busy_share:.4g} % of the time, the same bytes"
    rows = []
    notes: dict[str, None] = {}
    for plan in guideline.deployments:
        if plan.money is None:
            continue
        rows.append(_money_cells(plan, plan.money))
        for name in ("running_saving_per_year", "purchase_difference", "break_even_years"):
            figure: Estimate = getattr(plan.money, name)
            if figure.reason and figure.interval is None:
                notes.setdefault(f"{plan.kind} {_servers(plan)}: {figure.reason}")
    return Table(
        title=f"Money{f' ({costs.currency})' if costs.currency else ''}: "
        f"{number(costs.price_per_kwh)} per kWh, {number(costs.years)} years, "
        f"PUE {number(costs.pue)}, {load}",
        header=(
            "Servers",
            "Number",
            "Purchase",
            "kWh saved a year",
            "Saved a year",
            "Saved in all",
            "Break-even (years)",
            "Break-even per kWh",
            "Break-even server price",
            "Outcome",
        ),
        rows=tuple(rows),
        numeric=frozenset(range(1, 9)),
        note="\n".join(notes),
    )


def _servers(plan: Deployment) -> str:
    return plain(plan.servers.value)


def _money_cells(plan: Deployment, money: Money) -> tuple[str, ...]:
    return (
        plan.kind,
        _servers(plan),
        estimate(money.purchase_difference),
        estimate(money.energy_saving_kwh_per_year),
        estimate(money.running_saving_per_year),
        estimate(money.saving_after_years),
        estimate(money.break_even_years),
        estimate(money.break_even_price_per_kwh),
        estimate(money.break_even_server_price),
        _OUTCOMES[money.outcome],
    )


def _changes_table(guideline: Guideline) -> Table:
    plans = guideline.deployments
    first: tuple[Change, ...] = plans[0].experiments
    return Table(
        title="Bandwidth change of every experiment",
        header=("Experiment", "In the mix", *(f"{p.kind}: {_servers(p)}" for p in plans)),
        rows=tuple(
            (
                change.label,
                "yes" if change.in_mix else "no",
                *(percent(plan.experiments[index].change) for plan in plans),
            )
            for index, change in enumerate(first)
        ),
        numeric=frozenset(range(2, 2 + len(plans))),
    )


def _experiments_table(guideline: Guideline) -> Table:
    outcomes = {True: "saves", False: "costs more", None: "not decided"}
    rows = []
    for row in guideline.experiments:
        variants = f"{row.traditional_variant or NONE} / {row.low_power_variant or NONE}"
        rows.append(
            (
                row.label,
                NONE if row.share is None else f"{100 * row.share:.4g} %",
                variants,
                estimate(row.bandwidth_ratio),
                estimate(row.power_ratio),
                percent(row.energy_per_byte_change),
                row.reason or outcomes[row.saves],
            )
        )
    return Table(
        title="Experiment by experiment",
        header=(
            "Experiment",
            "Share",
            "Variants",
            "B_ts / B_lp",
            "P_lp / P_ts",
            "Energy per byte",
            "At the same bandwidth",
        ),
        rows=tuple(rows),
        numeric=frozenset({1, 3, 4, 5}),
    )


@dataclass(frozen=True)
class Point:
    """One experiment, or the complete mix: `x` is B_ts / B_lp, `y` P_lp / P_ts, both above 0.
    `saves` is whether replacing saves power there; None if the interval does not decide."""

    number: str
    label: str
    operation: str
    spatiality: str
    in_mix: bool
    x: Estimate
    y: Estimate
    saves: bool | None


def point_text(point: Point) -> str:
    """The point as text: both ratios with their intervals."""
    mix = ", not in the mix"
    if point.in_mix:
        mix = ""
    return harmless.xml(
        f"{point.number}: {point.label}{mix}; B_ts / B_lp {interval(point.x)}; "
        f"P_lp / P_ts {interval(point.y)}"
    )


def interval(figure: Estimate) -> str:
    """`1.43 (1.38 to 1.49)`."""
    between = figure.interval
    text = "no interval"
    if between is not None:
        text = f"{between.low:.3g} to {between.high:.3g}"
    return f"{figure.value:.3g} ({text})"


def points(guideline: Guideline) -> list[Point]:
    """Those that have both ratios, in the order of the experiments; the mix is the last."""
    made = []
    for index, row in enumerate((r for r in guideline.experiments if not r.reason), start=1):
        made.append(
            Point(
                str(index),
                row.label,
                row.key.operation,
                row.key.spatiality,
                row.share is not None,
                row.bandwidth_ratio,
                row.power_ratio,
                row.saves,
            )
        )
    if guideline.reason is None:
        ratios = guideline.ratio, guideline.power_ratio
        made.append(Point("mix", "the complete mix", "mix", "mix", True, *ratios, guideline.saves))
    return [point for point in made if point.x.value and point.y.value]
