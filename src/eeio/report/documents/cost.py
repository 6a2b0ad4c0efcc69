"""The cost of moving and storing a TB: the answer of `eeio cost`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from eeio.guideline.answer import HEADLINES, STEP, Cost, LessPerTb
from eeio.record.run import SCHEMA_VERSION
from eeio.report.campaign.columns import plain
from eeio.report.document import Document, flat
from eeio.report.documents.guideline import PER_TB, estimate, less_text
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import MB

if TYPE_CHECKING:
    from eeio.report.page.panels import Panel

_ANSWERS = {
    **PER_TB,
    "kwh_per_tb_year": "Stored: energy (kWh/TB a year)",
    "money_per_tb_year": "Stored: money ({currency}/TB a year)",
    "g_co2e_per_tb_year": "Stored: carbon (g CO2e/TB a year)",
}
_NAMES = {
    "j_per_gb": "J/GB",
    "kwh_per_tb": "kWh/TB",
    "money_per_tb": "money/TB",
    "g_co2e_per_tb": "g CO2e/TB",
    "kwh_per_tb_year": "stored, kWh",
    "money_per_tb_year": "stored, money",
    "g_co2e_per_tb_year": "stored, g CO2e",
}


def document(
    costs: Sequence[Cost], less: Sequence[LessPerTb] = (), domain: str = "", *, demo: bool = False
) -> Document:
    """The answer of `eeio cost`: which system costs less, then the tables. `demo`: the power is
    fictitious, and each sentence says so."""
    mark = ""
    if demo:
        mark = "DEMO: "

    def charts() -> "Sequence[Panel]":
        from eeio.report.page import cost

        return cost.charts(costs, "DEMO" if demo else "")

    return Document(
        title=f"eeio cost: {' and '.join(cost.system for cost in costs)}",
        answer=tuple(f"{mark}{less_text(per_tb)}" for per_tb in less),
        parts=tuple(tables(costs)),
        data=lambda: _to_json(costs, less, domain),
        records=lambda: [
            {"system": cost.system, "workload": cost.workload, "answer": name}
            | flat(getattr(cost, name))
            for cost in costs
            for name in _ANSWERS
        ],
        warnings=tuple(messages(costs)),
        charts=charts,
    )


def _to_json(costs: Sequence[Cost], less: Sequence[LessPerTb], domain: str) -> dict[str, Any]:
    """Each answer at the top, null with its reason; changes are ratios (0.04). Of several campaigns
    `costs` has one such body each, and `less_per_tb` which of them costs less."""
    body: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "power_domain": domain}
    if len(costs) == 1:
        return body | asdict(costs[0])
    return body | {
        "costs": list(map(asdict, costs)),
        "less_per_tb": [{**asdict(per_tb), "verdict": less_text(per_tb)} for per_tb in less],
    }


def messages(costs: Sequence[Cost]) -> list[str]:
    """Warnings that come before any number, each once."""
    return list(dict.fromkeys(message for cost in costs for message in cost.messages))


def tables(costs: Sequence[Cost]) -> list[Table]:
    """Answers side by side, their sensitivities, the workloads and the inputs, in this order."""
    made = [_answers(costs)]
    for cost in costs:
        several = ""
        if len(costs) > 1:
            several = f", {cost.system}"
        if cost.sensitivities and len(costs) == 1:
            made.append(_sensitivities(cost))
        made += [_mix(cost, several)]
    return [*made, *(_inputs(c, f", {c.system}" if len(costs) > 1 else "") for c in costs)]


def _answers(costs: Sequence[Cost]) -> Table:
    first = costs[0]
    currency = first.inputs.currency or "money"
    rows = []
    answers_of: dict[str, list[str]] = {}
    for name, title in _ANSWERS.items():
        title = title.format(currency=currency)
        figures = [getattr(cost, name) for cost in costs]
        for reason in dict.fromkeys(figure.reason for figure in figures if figure.reason):
            answers_of.setdefault(reason, []).append(title.strip())
        rows.append((title, *map(estimate, figures)))
    of = ""
    if len(costs) == 1:
        of = f" on {first.system}"
    reasons = [f"{', '.join(titles)}: {reason}" for reason, titles in answers_of.items()]
    intervals = (
        f"TB = 10^12 bytes; [ ]: {100 * first.confidence:g} % intervals, bootstrap "
        f"({first.resamples} resamples, seed {first.seed}), or as below; they include only the "
        "variation of bandwidth and power"
    )
    return Table(
        title=f"Cost per TB{of}, workload: {first.workload}",
        header=("Answer", *(("Value",) if len(costs) == 1 else (c.system for c in costs))),
        rows=tuple(rows),
        numeric=frozenset(range(1, len(costs) + 1)),
        note="\n".join((intervals, *reasons)),
    )


def _sensitivities(cost: Cost) -> Table:
    rows = []
    for answer in HEADLINES:
        of_answer = []
        for sensitivity in cost.sensitivities:
            if sensitivity.answer == answer:
                of_answer.append(sensitivity)
        for index, one in enumerate(of_answer):
            rows.append(
                (
                    _NAMES[answer] if index == 0 else "",
                    one.input,
                    "-" if one.change is None else f"{100 * one.change:+.2f} %",
                    one.reason or "",
                )
            )
    return Table(
        title=f"Sensitivity: each input {100 * STEP:g} % larger",
        header=("Answer", "Input", "Change", "Remark"),
        rows=tuple(rows),
        numeric=frozenset({2}),
    )


def _mix(cost: Cost, several: str) -> Table:
    return Table(
        title=f"The workload{several}",
        header=("Experiment", "Share", "MB/s", "Power (W)", "J/GB, busy"),
        rows=tuple(
            (
                share.label,
                f"{100 * share.share:.4g} %",
                estimate(share.bandwidth_bytes_per_s, MB),
                estimate(share.power_w),
                estimate(share.j_per_gb),
            )
            for share in cost.mix
        ),
        numeric=frozenset({1, 2, 3, 4}),
        note=cost.combination,
    )


def _inputs(cost: Cost, several: str) -> Table:
    given = cost.inputs
    numbers = {
        "price of a kWh": given.price_per_kwh,
        "PUE": given.pue,
        "duty": given.duty,
        "purchase": given.purchase,
        "embodied carbon (kg CO2e)": given.embodied_kg,
        "years": given.years,
        "capacity (bytes)": given.capacity_bytes,
    }
    rows = [(name, plain(v)) for name, v in numbers.items()]
    text = "-"
    if given.grid is not None:
        text = number(given.grid.g_per_kwh)
        if given.grid.hours is not None:
            least, most = given.grid.least_g_per_kwh, given.grid.most_g_per_kwh
            assert least is not None and most is not None
            text += f" (mean of {given.grid.hours} hours, {number(least)} - {number(most)})"
    rows.insert(1, ("grid (g CO2e/kWh)", text))
    how = "given"
    if given.idle_w is None:
        how = "measured"
    rows.append((f"idle power, {how} (W)", plain(cost.idle_power_w)))
    return Table(
        title=f"Inputs{several}",
        header=("Input", "Value"),
        rows=tuple(rows),
        numeric=frozenset({1}),
    )
