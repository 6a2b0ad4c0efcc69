"""The cost of a deployment compared with the traditional server, and when it has paid back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from eeio.guideline.answer import Money, Outcome
from eeio.guideline.replicates import Bootstrap, Mix, Replicates, none_because
from eeio.guideline.servers import Costs, Server
from eeio.statistics.bootstrap import Estimate, Floats

KWH_PER_W_YEAR = 24 * 365.25 / 1000
"""kWh per watt drawn for a year of 365.25 days."""


def _saved_w(servers: Floats, mix: Mix, systems: tuple[Server, Server], costs: Costs) -> Any:
    """Mean power saved in place of one traditional server, or why it is not known."""
    busy = costs.busy_share
    if busy is None:
        return mix.p_ts - servers * mix.p_lp
    needed = busy * mix.b_ts / (servers * mix.b_lp)
    if needed[0] > 1.0 + 1e-9:
        return (
            f"{servers[0]:.4g} servers cannot carry the load: they would be busy "
            f"{100 * needed[0]:.4g} % of the time"
        )
    needed = np.minimum(needed, 1.0)
    idles = []
    for system, share in zip(systems, (busy, float(needed[0])), strict=True):
        if system.idle_power_w is None and share < 1.0 - 1e-9:
            return f"the idle power of {system.name} is not known, and it idles part of the time"
        idles.append(system.idle_power_w)
    # At full load a missing idle power has no effect; its weight is 0 but for rounding.
    idle_ts, idle_lp = (0.0 if idle is None else idle for idle in idles)
    p_ts = busy * mix.p_ts + (1.0 - busy) * idle_ts
    p_lp = needed * mix.p_lp + (1.0 - needed) * idle_lp
    return p_ts - servers * p_lp


def money_of(
    servers: Floats,
    mix: Mix,
    systems: tuple[Server, Server],
    costs: Costs,
    bootstrap: Bootstrap,
) -> Money:
    def figure(values: Floats) -> Estimate:
        return bootstrap.estimate(Replicates(values, mix.n))

    traditional, low_power = systems
    no_price = "; ".join(filter(None, (system.why_no_price for system in systems))) or None
    saved_w = _saved_w(servers, mix, systems, costs)
    if isinstance(saved_w, str):
        none = none_because(saved_w)
        purchase = none_because(no_price or "")
        if traditional.price is not None and low_power.price is not None:
            purchase = figure(servers * low_power.price - traditional.price)
        return Money(purchase, none, none, none, None, none, none, none)
    kwh = saved_w * costs.pue * KWH_PER_W_YEAR
    running = kwh * costs.price_per_kwh
    if no_price is not None or traditional.price is None or low_power.price is None:
        none = none_because(no_price or "")
        return Money(none, figure(kwh), figure(running), none, None, none, none, none)
    bought = servers * low_power.price - traditional.price
    outcomes = _outcomes(bought, running)
    outcome = outcomes[0]
    server_price = (traditional.price + running * costs.years) / servers - (
        low_power.price - (low_power.server_price or 0.0)
    )
    allowed = figure(server_price)
    if allowed.value is not None and allowed.value < 0:
        allowed = replace(allowed, reason="negative: not even servers given away would pay back")
    return Money(
        figure(bought),
        figure(kwh),
        figure(running),
        figure(running * costs.years - bought),
        outcome,
        _crossing(outcomes, bought, running, mix.n, bootstrap),
        _crossing(outcomes, bought, kwh * costs.years, mix.n, bootstrap, price=True),
        allowed,
    )


def _outcomes(bought: Floats, saved: Floats) -> list[Outcome]:
    dearer, saving = bought > 0, saved > 0
    until = (bought < 0) & (saved < 0)
    at_once = ~dearer & (saved >= 0)
    outcomes = np.select(
        [dearer & saving, until, at_once], ["pays-back", "until", "at-once"], "never"
    )
    return cast(list[Outcome], outcomes.tolist())


def _crossing(
    outcomes: Sequence[Outcome],
    bought: Floats,
    saved: Floats,
    n: tuple[int, ...],
    bootstrap: Bootstrap,
    price: bool = False,
) -> Estimate:
    """bought / saved where that is a break-even: years, or (`price`) the price of a kWh."""
    outcome = outcomes[0]
    if outcome == "never":
        return none_because("never: not cheaper to buy, and no energy is saved")
    if outcome == "at-once" and price:
        return none_because("any price: cheaper to buy and no dearer to run")
    if outcome == "at-once":
        values: Floats = np.zeros_like(bought)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = bought / saved
    others = sum(word != outcome for word in outcomes[1:])
    if others:
        share = 100.0 * others / (len(outcomes) - 1)
        reason = f"no interval: in {share:.3g} % of the resamples the outcome is not {outcome!r}"
        too_few = bootstrap.too_few(n)
        return Estimate(float(values[0]), None, n, too_few or reason)
    return bootstrap.estimate(Replicates(values, n))
