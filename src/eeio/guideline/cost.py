"""The cost of moving a TB on a measured system, and of storing one for a year
(docs/explanation/guideline-and-cost.md, "Cost and carbon"): J, kWh, money and g CO2e, from the
user's prices and the campaign's power.

Pure functions over arrays whose first place is the figure and whose others are its bootstrap
replicates, as the guideline's: one formula serves the figure, its interval and its sensitivities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from eeio.errors import EeioError
from eeio.guideline.answer import (
    ANSWERS,
    HEADLINES,
    MOVED,
    STEP,
    Cost,
    CostAtDuty,
    CostPart,
    LessPerTb,
    Sensitivity,
    ShareOfWork,
)
from eeio.guideline.cost_inputs import CostInputs
from eeio.guideline.money import KWH_PER_W_YEAR
from eeio.guideline.replicates import (
    Bootstrap,
    CellReplicates,
    Replicates,
    none_because,
    pick,
    replicate,
    together,
)
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import COMBINATIONS, ShareOf, Workload
from eeio.statistics.bootstrap import RESAMPLES, SEED, Estimate, Floats

TB = 1e12
_S_PER_YEAR = 365.25 * 86400
_J_PER_KWH = 3.6e6
_NO_IDLE = "its idle power is not known: the campaign did not measure it, and --idle-w is not given"


@dataclass(frozen=True)
class _Terms:
    """The inputs of the formulas: measured arrays, and the user's numbers."""

    bandwidth: Floats
    power: Floats
    idle_power_w: float | None
    price_per_kwh: float | None
    grid_g_per_kwh: float | None
    pue: float | None
    duty: float | None
    purchase: float | None
    embodied_kg: float | None
    years: float | None
    capacity_bytes: float | None


DUTIES = tuple(float(f"{10 ** (step / 20 - 2):.4g}") for step in range(41))
"""From 1 % to 100 %, twenty a decade."""

Answer = Floats | str
"""Values, or why there are none."""


def costs(
    systems: Sequence[Server],
    workload: Workload | None,
    given: Sequence[CostInputs],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[tuple[Cost, ...], tuple[LessPerTb, ...]]:
    """The cost on each system, and each later system compared with the first. Without a workload
    only experiments that all systems have count: other bytes would be another workload.

    Raises EeioError where there is none.
    """
    if workload is None:
        systems = _common(systems)
    bootstrap = Bootstrap(confidence, resamples, seed)
    # Separate streams: the systems' runs are independent of each other.
    made = []
    for index, (system, inputs) in enumerate(zip(systems, given, strict=True)):
        made.append(_cost(system, workload, inputs, bootstrap, _STREAMS * index))
    verdicts = []
    for other in made[1:]:
        for answer in ("kwh_per_tb", "money_per_tb"):
            if all(not isinstance(answers.get(answer), str) for _, answers, _ in (made[0], other)):
                verdicts.append(_less_per_tb(answer, made[0], other, bootstrap))
    return tuple(cost for cost, _, _ in made), tuple(
        verdict for verdict in verdicts if verdict is not None
    )


_STREAMS = 100_000
"""Of one system's bootstrap: two an experiment."""

_Made = tuple[Cost, Mapping[str, Answer], tuple[int, ...]]


def _less_per_tb(answer: str, a: _Made, b: _Made, bootstrap: Bootstrap) -> LessPerTb | None:
    (first, of_first, n_first), (second, of_second, n_second) = a, b
    ours, theirs = of_first.get(answer), of_second.get(answer)
    if ours is None or theirs is None or isinstance(ours, str) or isinstance(theirs, str):
        return None
    ratio = bootstrap.estimate(Replicates(theirs / ours, n_first + n_second))
    less = None
    if ratio.interval is not None:
        less = None
        if ratio.interval.high < 1.0:
            less = second.system
        if ratio.interval.low > 1.0:
            less = first.system
    return LessPerTb(answer, first.system, second.system, ratio, less)


def _common(systems: Sequence[Server]) -> list[Server]:
    """The systems with the experiments that all of them have."""
    keys = [{(cell.key, cell.durable) for cell in system.cells} for system in systems]
    shared = set.intersection(*keys)
    if not shared:
        raise EeioError(
            f"{' and '.join(system.name for system in systems)} have no experiment in common; "
            "run the same suite on each"
        )
    return [
        replace(
            system,
            cells=tuple(cell for cell in system.cells if (cell.key, cell.durable) in shared),
        )
        for system in systems
    ]


def _cost(
    system: Server,
    workload: Workload | None,
    given: CostInputs,
    bootstrap: Bootstrap,
    stream: int,
) -> _Made:
    if not system.cells:
        raise EeioError(f"{system.name}: no experiment has both bandwidth and power")
    messages: list[str] = []
    if workload is None:
        share_of: ShareOf = "bytes"
        workloads: list[tuple[str, float, CellValues]] = [
            (_named(cell), 1.0 / len(system.cells), cell) for cell in system.cells
        ]
        lacking: list[str] = []
        if len(workloads) > 1:
            messages.append(
                f"no --workload: the same share of bytes in each of {len(workloads)} experiments; "
                "the answer is that of no workload in particular"
            )
    else:
        share_of = workload.share_of
        messages += workload.messages
        workloads, lacking = _of_workload(system, workload)
    for label, _, cell in workloads:
        if cell.left_out:
            messages.append(f"{label}: {cell.why_fewer}")
    made = [
        replicate(cell, bootstrap, stream + 2 * index)
        for index, (_, _, cell) in enumerate(workloads)
    ]
    mix = tuple(
        _share(label, share, cell, bootstrap)
        for (label, share, _), cell in zip(workloads, made, strict=True)
    )
    answers: dict[str, Estimate]
    values: Mapping[str, Answer] = {}
    sensitivities: tuple[Sensitivity, ...] = ()
    parts: tuple[CostPart, ...] = ()
    by_duty: tuple[CostAtDuty, ...] = ()
    n = tuple(n for cell in made for n in cell.n)
    if lacking:
        reason = f"no answer for the workload: {'; '.join(lacking)}"
        answers = dict.fromkeys(ANSWERS, none_because(reason))
    else:
        bandwidth, power = _together([share for _, share, _ in workloads], made, share_of)
        terms = _terms(bandwidth, power, system.idle_power_w, given)
        values = _answers(terms)
        answers = {name: _estimated(name, answer, n, bootstrap) for name, answer in values.items()}
        sensitivities = _sensitivities(terms)
        parts, by_duty = _parts(terms), _by_duty(terms)
    found_cost = Cost(
        system=system.name,
        workload=_name_of(workload, workloads),
        combination=COMBINATIONS[share_of],
        inputs=given,
        confidence=bootstrap.confidence,
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
        idle_power_w=system.idle_power_w,
        mix=mix,
        sensitivities=sensitivities,
        messages=tuple(messages),
        parts=parts,
        by_duty=by_duty,
        **answers,
    )
    return found_cost, values, n


def _name_of(workload: Workload | None, found: Sequence[tuple[str, float, CellValues]]) -> str:
    if workload is not None:
        return workload.name
    if len(found) == 1:
        return found[0][0]
    return "every experiment alike"


def _named(cell: CellValues) -> str:
    return f"{cell.key.label} {cell.variant}".strip()


def _of_workload(
    system: Server, workload: Workload
) -> tuple[list[tuple[str, float, CellValues]], list[str]]:
    workloads, lacking = [], []
    for entry in workload.entries:
        picked = pick(system, entry.key, "medians", best=True)
        if isinstance(picked, str):
            lacking.append(f"{entry.key.label}: {picked}")
        else:
            workloads.append((entry.key.label, entry.share, picked))
    return workloads, lacking


def _together(
    shares: Sequence[float], cells: Sequence[CellReplicates], share_of: ShareOf
) -> tuple[Floats, Floats]:
    """Bandwidth and power under the mix; shares of time are specific to this system."""
    bytes_shares = []
    for share, cell in zip(shares, cells, strict=True):
        bytes_shares.append(
            share * (cell.bandwidth if share_of == "time" else np.ones_like(cell.bandwidth))
        )
    return together(bytes_shares, cells)


def _share(label: str, share: float, cell: CellReplicates, bootstrap: Bootstrap) -> ShareOfWork:
    def figure(values: Floats) -> Estimate:
        return bootstrap.estimate(Replicates(values, cell.n))

    return ShareOfWork(
        label,
        share,
        figure(cell.bandwidth),
        figure(cell.power),
        figure(1e9 * cell.j_per_byte),
    )


def _terms(
    bandwidth: Floats, power: Floats, idle_power_w: float | None, given: CostInputs
) -> _Terms:
    values = {f.name: getattr(given, f.name) for f in fields(CostInputs)}
    values.pop("currency")
    values.pop("idle_w")  # `idle_power_w` is that, or the campaign's
    grid = values.pop("grid")
    intensity = None
    if grid is not None:
        intensity = grid.g_per_kwh
    return _Terms(bandwidth, power, idle_power_w, grid_g_per_kwh=intensity, **values)


def _answers(terms: _Terms) -> dict[str, Answer]:
    """Every answer by its formula, or why it has none."""
    joules = _j_per_byte(terms)
    pue = 1.0
    if terms.pue is not None:
        pue = terms.pue
    kwh = _scaled(joules, TB / _J_PER_KWH * pue)
    stored_kwh = _stored_kwh(terms, pue)
    electricity = _priced(kwh, terms.price_per_kwh, "--price-per-kwh")
    operation = _priced(kwh, terms.grid_g_per_kwh, "--grid-g-per-kwh")
    purchase = _spread(terms, terms.purchase, "--price")
    embodied = _spread(terms, _grams(terms.embodied_kg), "--embodied-kg")
    return {
        "j_per_gb": _scaled(joules, 1e9),
        "kwh_per_tb": kwh,
        "money_per_tb": _sum(electricity, purchase, terms.purchase),
        "electricity_per_tb": electricity,
        "purchase_per_tb": purchase,
        "g_co2e_per_tb": _sum(operation, embodied, terms.embodied_kg),
        "g_co2e_operation_per_tb": operation,
        "g_co2e_embodied_per_tb": embodied,
        "kwh_per_tb_year": stored_kwh,
        "money_per_tb_year": _sum(
            _priced(stored_kwh, terms.price_per_kwh, "--price-per-kwh"),
            _stored_share(terms, terms.purchase),
            terms.purchase,
        ),
        "g_co2e_per_tb_year": _sum(
            _priced(stored_kwh, terms.grid_g_per_kwh, "--grid-g-per-kwh"),
            _stored_share(terms, _grams(terms.embodied_kg)),
            terms.embodied_kg,
        ),
    }


def _j_per_byte(terms: _Terms) -> Answer:
    """Busy energy of a byte, and the idle energy of the time in between."""
    busy: Floats = terms.power / terms.bandwidth
    if terms.duty is None or terms.duty >= 1.0:
        return busy
    if terms.idle_power_w is None:
        return f"the machine idles part of the time, and {_NO_IDLE}"
    between: Floats = terms.idle_power_w * (1.0 / terms.duty - 1.0) / terms.bandwidth
    return busy + between


def _stored_kwh(terms: _Terms, pue: float) -> Answer:
    """kWh that storing a TB takes in a year, from the power of idling."""
    if terms.capacity_bytes is None:
        return "not given: --capacity"
    if terms.idle_power_w is None:
        return _NO_IDLE
    kwh = terms.idle_power_w * KWH_PER_W_YEAR * pue / (terms.capacity_bytes / TB)
    return np.full_like(terms.power, kwh)


def _spread(terms: _Terms, total: float | None, option: str) -> Answer:
    """A purchase over all bytes of its life."""
    needed = {option: total, "--years": terms.years, "--duty-cycle": terms.duty}
    if total is None or terms.years is None or terms.duty is None:
        return "not given: " + ", ".join(name for name, value in needed.items() if value is None)
    spread: Floats = total * TB / (terms.bandwidth * terms.duty * terms.years * _S_PER_YEAR)
    return spread


def _stored_share(terms: _Terms, total: float | None) -> Answer:
    if total is None or terms.capacity_bytes is None:
        return "not given"
    if terms.years is None:
        return "not given: --years, over which the purchase is spread"
    return np.full_like(terms.power, total / terms.years / (terms.capacity_bytes / TB))


def _grams(kilograms: float | None) -> float | None:
    if kilograms is None:
        return None
    return 1000.0 * kilograms


def _scaled(answer: Answer, factor: float) -> Answer:
    if isinstance(answer, str):
        return answer
    return answer * factor


def _priced(answer: Answer, price: float | None, option: str) -> Answer:
    if price is None:
        return f"not given: {option}"
    return _scaled(answer, price)


def _sum(running: Answer, bought: Answer, given: float | None) -> Answer:
    """The sum of both; the purchase only if its price is given: then both must be known."""
    if given is None or isinstance(running, str):
        return running
    if isinstance(bought, str):
        return bought
    return running + bought


def _estimated(name: str, answer: Answer, n: tuple[int, ...], bootstrap: Bootstrap) -> Estimate:
    if isinstance(answer, str):
        return none_because(answer)
    if name.endswith("_tb_year"):
        return Estimate(float(answer[0]), None, (1,), "no interval: one idle baseline a campaign")
    return bootstrap.estimate(Replicates(answer, n))


def _parts(terms: _Terms) -> tuple[CostPart, ...]:
    """The energy of moving bytes and of idling between, what each costs, and what was bought."""
    central = _central(terms)
    total = _answers(central)
    busy = _answers(replace(central, duty=None))["kwh_per_tb"]
    kwh = total["kwh_per_tb"]
    if isinstance(kwh, str) or isinstance(busy, str):
        return ()
    idle = kwh - busy
    rates = {
        "kwh_per_tb": (1.0, None),
        "money_per_tb": (terms.price_per_kwh, "purchase_per_tb"),
        "g_co2e_per_tb": (terms.grid_g_per_kwh, "g_co2e_embodied_per_tb"),
    }
    parts = []
    for answer, (rate, bought) in rates.items():
        if rate is None or isinstance(total[answer], str):
            continue
        parts.append(CostPart(answer, "energy, moving", float(busy[0]) * rate))
        if idle[0] > 0:
            parts.append(CostPart(answer, "energy, idle", float(idle[0]) * rate))
        purchase = None
        if bought is not None:
            purchase = total[bought]
        if purchase is not None and not isinstance(purchase, str):
            name = "embodied carbon"
            if answer == "money_per_tb":
                name = "purchase"
            parts.append(CostPart(answer, name, float(purchase[0])))
    return tuple(parts)


def _by_duty(terms: _Terms) -> tuple[CostAtDuty, ...]:
    if terms.idle_power_w is None:
        return ()
    central = _central(terms)
    costs = []
    for duty in DUTIES:
        answers = _answers(replace(central, duty=duty))
        values = {name: _first(answers[name]) for name in MOVED}
        costs.append(CostAtDuty(duty, **values))
    return tuple(costs)


def _first(answer: Answer) -> float | None:
    if isinstance(answer, str):
        return None
    return float(answer[0])


def _central(terms: _Terms) -> _Terms:
    """Without the bootstrap's replicates."""
    return replace(terms, bandwidth=terms.bandwidth[:1], power=terms.power[:1])


_MEASURED = {"power": "power_w", "bandwidth": "bandwidth_bytes_per_s"}
_NAMES: Mapping[str, str] = {
    **_MEASURED,
    **{f.name: f.name for f in fields(_Terms) if f.name not in _MEASURED},
}


def _sensitivities(terms: _Terms) -> tuple[Sensitivity, ...]:
    """For each answer, the inputs by effect, the largest first: by the formulas, one input after
    the other 10 % larger. Skips inputs that an answer does not depend on."""
    central = _central(terms)
    before = _answers(central)
    sensitivities: list[Sensitivity] = []
    for answer in HEADLINES:
        value = before[answer]
        if isinstance(value, str):
            continue
        of_answer = []
        for name, shown in _NAMES.items():
            given = getattr(central, name)
            if given is None:
                continue
            if name == "duty" and given * (1 + STEP) > 1:
                smaller = _answers(replace(central, duty=given * (1 - STEP)))[answer]
                if isinstance(smaller, str) or smaller[0] != value[0]:
                    reason = f"a duty of {given:g} cannot be 10 % larger"
                    of_answer.append(Sensitivity(answer, shown, None, reason))
                continue
            after = _answers(replace(central, **{name: given * (1 + STEP)}))[answer]
            assert not isinstance(after, str)
            change = float(after[0] / value[0]) - 1.0
            if abs(change) > 1e-12:
                of_answer.append(Sensitivity(answer, shown, change))
        of_answer.sort(key=lambda one: -abs(one.change or 0.0))
        sensitivities += of_answer
    return tuple(sensitivities)
