"""When low-power servers pay: a rule with intervals (docs/explanation/guideline-and-cost.md,
"Replacement guideline").

For a workload mix and two systems' repetitions: how many low-power servers carry the load of one
traditional server (B_ts / B_lp), and the effect on power, on the bandwidth of each experiment and
on the bill. Pure functions.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from eeio.errors import EeioError
from eeio.guideline.answer import (
    Change,
    Choice,
    Deployment,
    DeploymentKind,
    ExperimentComparison,
    Guideline,
    ServerFigures,
)
from eeio.guideline.money import money_of
from eeio.guideline.replicates import (
    Bootstrap,
    Mix,
    Pair,
    Replicates,
    mix_of,
    none_because,
    pick,
    replicate,
    why_not_equal,
)
from eeio.guideline.servers import Costs, Server
from eeio.guideline.workload import COMBINATIONS, CellKey, Workload
from eeio.statistics.bootstrap import RESAMPLES, SEED, Estimate, Floats


def guideline(
    workload: Workload,
    traditional: Server,
    low_power: Server,
    costs: Costs | None = None,
    *,
    choice: Choice = "medians",
    counts: Sequence[float] = (),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Guideline:
    """The replacement rule for a mix, with bootstrap intervals.

    Method: docs/explanation/guideline-and-cost.md.

    `counts` are further numbers of low-power servers to judge, in addition to B_ts / B_lp and the
    next integer. If one system lacks an experiment of the mix, the mix has no answer, with the
    reason. Raises EeioError for contradictory input.
    """
    _check(traditional, low_power, costs, choice, counts, confidence, resamples)
    bootstrap = Bootstrap(confidence, resamples, seed)
    pairs, comparisons = _compare(workload, traditional, low_power, choice, bootstrap)
    messages = [*workload.messages, *_messages(traditional, low_power, choice)]
    missing = [row for row in comparisons if row.reason]
    for row in missing:
        messages.append(f"{row.label}{'' if row.share is None else ' (in the mix)'}: {row.reason}")
    of_mix = [pair for pair in pairs if pair.share is not None]
    lacking = [row.label for row in missing if row.share is not None]
    reason = None
    if lacking:
        reason = f"no answer for the mix: not comparable: {'; '.join(lacking)}"
    none = none_because(reason or "")
    unanswered = Guideline(
        workload=workload,
        costs=costs,
        choice=choice,
        combination=COMBINATIONS[workload.share_of],
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        traditional=_no_figures(traditional, none),
        low_power=_no_figures(low_power, none),
        ratio=none,
        power_ratio=none,
        energy_per_byte_change=none,
        saves=None,
        deployments=(),
        experiments=comparisons,
        messages=tuple(messages),
        reason=reason,
    )
    if lacking:
        return unanswered
    mix = mix_of(of_mix, workload.share_of)
    ratio = Replicates(mix.b_ts / mix.b_lp, mix.n)
    rounded = float(max(1, math.ceil(float(ratio.values[0]) - 1e-9)))
    plans: list[tuple[DeploymentKind, Floats]] = [
        ("fractional", ratio.values),
        ("whole", np.full_like(ratio.values, rounded)),
    ]
    for count in counts:
        plans.append(("asked", np.full_like(ratio.values, float(count))))
    change = Replicates(ratio.values * mix.p_lp / mix.p_ts - 1.0, mix.n)
    energy_change = bootstrap.estimate(change)
    return replace(
        unanswered,
        traditional=_figures(traditional, mix.b_ts, mix.p_ts, mix.n_ts, bootstrap),
        low_power=_figures(low_power, mix.b_lp, mix.p_lp, mix.n_lp, bootstrap),
        ratio=bootstrap.estimate(ratio),
        power_ratio=bootstrap.estimate(Replicates(mix.p_lp / mix.p_ts, mix.n)),
        energy_per_byte_change=energy_change,
        saves=_saves(energy_change),
        deployments=tuple(
            _deployment(
                kind, servers, mix, pairs, workload, (traditional, low_power), costs, bootstrap
            )
            for kind, servers in plans
        ),
    )


def _check(
    traditional: Server,
    low_power: Server,
    costs: Costs | None,
    choice: str,
    counts: Sequence[float],
    confidence: float,
    resamples: int,
) -> None:
    if choice not in get_args(Choice):
        raise EeioError(f"choice {choice!r}: take medians or best-worst")
    if not 0 < confidence < 1 or resamples < 100:
        raise EeioError(
            f"confidence {confidence}: it must be between 0 and 1, and resamples at least 100"
        )
    for count in counts:
        if not (math.isfinite(count) and count > 0):
            raise EeioError(f"{count} low-power servers: the number must be positive")
    for system in (traditional, low_power):
        _check_system(system)
    if costs is not None:
        _check_costs(costs)


def _check_system(system: Server) -> None:
    known = set()
    for cell in system.cells:
        variant = (cell.key, cell.variant)
        if variant in known:
            raise EeioError(f"{system.name}: {cell.key.label} {cell.variant} is repeated")
        known.add(variant)
    for name in ("idle_power_w", "server_price", "device_price", "devices"):
        value = getattr(system, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise EeioError(f"{system.name}: {name} is {value}; it cannot be negative")


def _check_costs(costs: Costs) -> None:
    for name in ("price_per_kwh", "years", "pue"):
        value = getattr(costs, name)
        if not (math.isfinite(value) and value > 0):
            raise EeioError(f"costs: {name} is {value}; it must be positive")
    if costs.pue < 1:
        raise EeioError(f"costs: pue is {costs.pue}; a site's energy is never below its servers'")
    if costs.busy_share is not None and not 0 < costs.busy_share <= 1:
        raise EeioError(
            f"costs: busy_share is {costs.busy_share}; it must be above 0 and at most 1"
        )


def _messages(traditional: Server, low_power: Server, choice: Choice) -> list[str]:
    messages = []
    for system in (traditional, low_power):
        for cell in system.cells:
            if cell.left_out:
                messages.append(f"{system.name}, {cell.key.label}: {cell.why_fewer}")
    single = all(
        len({cell.variant for cell in system.cells}) < 2 for system in (traditional, low_power)
    )
    if choice == "best-worst" and single:
        messages.append("each system has one variant, so best against worst is the same as medians")
    return messages


def _compare(
    workload: Workload,
    traditional: Server,
    low_power: Server,
    choice: Choice,
    bootstrap: Bootstrap,
) -> tuple[list[Pair], tuple[ExperimentComparison, ...]]:
    """The mix's experiments in its order, then every other that either system has."""
    shares: dict[CellKey, float | None] = {entry.key: entry.share for entry in workload.entries}
    for cell in (*traditional.cells, *low_power.cells):
        if not any(key.covers(cell.key) for key in shares):
            shares[replace(cell.key, disk=None)] = None
    pairs = []
    rows = []
    for index, (key, share) in enumerate(shares.items()):
        picked = (
            pick(traditional, key, choice, best=True),
            pick(low_power, key, choice, best=False),
        )
        if isinstance(picked[0], str) or isinstance(picked[1], str):
            reason = "; ".join(item for item in picked if isinstance(item, str))
        else:
            reason = why_not_equal(picked[0], picked[1]) or ""
        if isinstance(picked[0], str) or isinstance(picked[1], str) or reason:
            none = none_because(reason)
            rows.append(
                ExperimentComparison(key, share, None, None, none, none, none, None, reason)
            )
            continue
        # Four streams per experiment: every sample of either system is drawn independently.
        pair = Pair(
            key,
            share,
            replicate(picked[0], bootstrap, 4 * index),
            replicate(picked[1], bootstrap, 4 * index + 2),
        )
        pairs.append(pair)
        rows.append(_comparison(pair, bootstrap))
    return pairs, tuple(rows)


def _comparison(pair: Pair, bootstrap: Bootstrap) -> ExperimentComparison:
    ts, lp = pair.traditional, pair.low_power
    ratio, power = ts.bandwidth / lp.bandwidth, lp.power / ts.power
    change = bootstrap.estimate(Replicates(lp.j_per_byte / ts.j_per_byte - 1.0, pair.n))
    return ExperimentComparison(
        pair.key,
        pair.share,
        ts.variant,
        lp.variant,
        bootstrap.estimate(Replicates(ratio, pair.n)),
        bootstrap.estimate(Replicates(power, pair.n)),
        change,
        _saves(change),
        None,
    )


def _saves(change: Estimate) -> bool | None:
    if change.interval is None or change.interval.low <= 0.0 <= change.interval.high:
        return None
    return change.interval.high < 0.0


def _figures(
    system: Server, bandwidth: Floats, power: Floats, n: tuple[int, ...], bootstrap: Bootstrap
) -> ServerFigures:
    return ServerFigures(
        system.name,
        bootstrap.estimate(Replicates(bandwidth, n)),
        bootstrap.estimate(Replicates(power, n)),
        bootstrap.estimate(Replicates(power / bandwidth, n)),
        system.idle_power_w,
        system.price,
    )


def _no_figures(system: Server, none: Estimate) -> ServerFigures:
    return ServerFigures(system.name, none, none, none, system.idle_power_w, system.price)


def _deployment(
    kind: DeploymentKind,
    servers: Floats,
    mix: Mix,
    pairs: Sequence[Pair],
    workload: Workload,
    systems: tuple[Server, Server],
    costs: Costs | None,
    bootstrap: Bootstrap,
) -> Deployment:
    def change(ours: Floats, theirs: Floats, n: tuple[int, ...]) -> Estimate:
        return bootstrap.estimate(Replicates(servers * ours / theirs - 1.0, n))

    of_mix = [pair for pair in pairs if pair.share is not None]
    operations = []
    for operation in dict.fromkeys(pair.key.operation for pair in of_mix):
        part = mix_of([p for p in of_mix if p.key.operation == operation], workload.share_of)
        # The number of servers is based on the complete mix, unless it is given.
        n = part.n
        if kind == "fractional":
            n = mix.n
        operations.append(Change(operation, True, change(part.b_lp, part.b_ts, n)))
    count = Replicates(servers, mix.n)
    return Deployment(
        kind,
        bootstrap.estimate(count)
        if kind == "fractional"
        else Estimate(float(servers[0]), None, (), "a given number has no interval"),
        change(mix.p_lp, mix.p_ts, mix.n),
        Estimate(0.0, None, mix.n, "0 by definition: the servers keep the mix's bandwidth")
        if kind == "fractional"
        else change(mix.b_lp, mix.b_ts, mix.n),
        tuple(operations),
        tuple(
            Change(
                pair.key.label,
                pair.share is not None,
                change(
                    pair.low_power.bandwidth,
                    pair.traditional.bandwidth,
                    mix.n + pair.n if kind == "fractional" else pair.n,
                ),
            )
            for pair in pairs
        ),
        money_of(servers, mix, systems, costs, bootstrap) if costs else None,
    )
