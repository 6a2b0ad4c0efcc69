"""Idle against busy: the domains in which power exceeds idle power."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio.comparison.cells import POWER, Cell, without_unsure_energy
from eeio.record.store import Campaign


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

    A doubtful power has its reason instead. All domains are those of that one experiment, so that
    they add up.
    """
    measured = {}
    for d, m in POWER.items():
        if any(cell.n(m) for cell in cells):
            measured[d] = m
    if not measured:
        return []
    widest = next(iter(measured.values()))
    busiest = max((cell for cell in cells if cell.n(widest)), key=lambda cell: cell.median(widest))
    label = busiest.label(without=("machine", "device"))
    sure = without_unsure_energy(busiest, math.inf)
    by_domain = {}
    for domain, metric in measured.items():
        idle_w, median_w, no_idle = _idle_power(campaign, domain)
        busy_w, reason = sure.known(metric), sure.why(metric)
        if reason is None and idle_w is None:
            reason = no_idle
        by_domain[domain] = IdleBusy(
            busiest.factors["machine"],
            busiest.factors["device"],
            domain,
            idle_w,
            median_w,
            busy_w,
            _less(busy_w, [idle_w]),
            label,
            reason,
        )
    return [*by_domain.values(), *_rest(by_domain)]


def _idle_power(campaign: Campaign, domain: str) -> tuple[float | None, float | None, str]:
    """Mean and median of a domain at idle, of the last valid reading, and why they are not
    known."""
    idle_w, median_w = None, None
    reason = ""
    for reading in campaign.idle:
        if reading.domain == domain and reading.kind != "modelled":
            reason = "; ".join(reading.reasons)
            if reading.valid:
                idle_w, median_w = reading.power_w, campaign.idle_median_w(reading)
    not_measured = campaign.idle_reason or f"idle was not measured in the domain {domain}"
    return idle_w, median_w, reason or not_measured


def _rest(by_domain: Mapping[str, IdleBusy]) -> list[IdleBusy]:
    """The system's power less that of its parts; empty if one of them was not measured."""
    # A module contains its package and memory: either it is a part of the system, or they are.
    inner = ("package", "dram") if "module" in by_domain else ("module",)
    parts = [item for name, item in by_domain.items() if name not in ("system", *inner)]
    total = by_domain.get("system")
    if total is None or not parts:
        return []
    idle_w = _less(total.idle_w, [item.idle_w for item in parts])
    busy_w = _less(total.busy_w, [item.busy_w for item in parts])
    reason = f"system less {', '.join(item.domain for item in parts)}"
    return [
        replace(
            total,
            domain="rest",
            idle_w=idle_w,
            idle_median_w=None,
            busy_w=busy_w,
            extra_w=_less(busy_w, [idle_w]),
            reason=reason,
        )
    ]


def _less(total: float | None, parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    if total is None or len(known) != len(parts):
        return None
    return total - math.fsum(known)
