"""Idle against busy: the domains in which power exceeds idle power."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eeio_results.comparison.cells import POWER, Cell
from eeio_results.store import Campaign


@dataclass(frozen=True)
class IdleBusy:
    """Power of one domain at idle and in the busiest experiment, W; None where not measured.
    `idle_w` is the mean, as energy uses it; `idle_median_w` is the median, if stored."""

    machine: str
    device: str
    domain: str
    idle_w: float | None
    idle_median_w: float | None
    busy_w: float | None
    extra_w: float | None
    busiest: str
    reason: str | None


def idle_and_busy(campaign: Campaign, cells: Sequence[Cell]) -> list[IdleBusy]:
    """Each measured domain of a campaign, idle against the experiment with the highest system
    power, and the `rest`: system power less the power of its parts.

    All domains are those of that one experiment, so that they add up.
    """
    measured = [m for m in POWER.values() if any(cell.n(m) for cell in cells)]
    if not measured:
        return []
    busiest = max(
        (cell for cell in cells if cell.n(measured[0])), key=lambda cell: cell.median(measured[0])
    )
    readings = {r.domain: r for r in campaign.idle if r.valid and r.kind != "modelled"}
    place = (busiest.factors["machine"], busiest.factors["device"])
    label = busiest.label(without=("machine", "device"))
    found = []
    for domain, metric in POWER.items():
        if metric not in measured:
            continue
        idle = readings.get(domain)
        idle_w = None if idle is None else idle.power_w
        median_w = None if idle is None else campaign.idle_median_w(idle)
        busy_w = busiest.known(metric)
        reason = None
        if idle_w is None:
            reason = campaign.idle_reason or f"idle was not measured in the domain {domain}"
        extra_w = _less(busy_w, [idle_w])
        found.append(IdleBusy(*place, domain, idle_w, median_w, busy_w, extra_w, label, reason))
    by_domain = {item.domain: item for item in found}
    # A module contains its package and memory: either it is a part of the system, or they are.
    inner = ("package", "dram") if "module" in by_domain else ("module",)
    parts = [item for item in found if item.domain not in ("system", *inner)]
    if "system" in by_domain and parts:
        total = by_domain["system"]
        names = ", ".join(item.domain for item in parts)
        idle_w = _less(total.idle_w, [item.idle_w for item in parts])
        busy_w = _less(total.busy_w, [item.busy_w for item in parts])
        reason, extra_w = f"system less {names}", _less(busy_w, [idle_w])
        found.append(IdleBusy(*place, "rest", idle_w, None, busy_w, extra_w, label, reason))
    return found


def _less(total: float | None, parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    if total is None or len(known) != len(parts):
        return None
    return total - math.fsum(known)
