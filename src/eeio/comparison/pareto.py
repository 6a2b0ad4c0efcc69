"""Pareto-optimal experiments in two figures at once: MB/J against MB/s, and against p99.

High bandwidth or low latency can conflict with low energy. The Pareto front contains the
experiments that no other dominates in both figures. The energy-delay product combines both into one
figure (Gonzalez and Horowitz 1996), here for moving a GB.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from eeio.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    J_PER_GB,
    P99,
    S_PER_GB,
    Cell,
    why_energy_unsure,
)
from eeio.record.run import DEMO
from eeio.units.quantities import MOST_UNCERTAIN


@dataclass(frozen=True)
class Choice:
    """An experiment with its medians, and its fronts in its group.

    A group has one operation and buffer: reads cannot replace writes, nor the page cache the drive.
    `energy_delay_j_s_per_gb2` is J/GB x s/GB. `on_bandwidth_front` and `on_p99_front` are None if
    the figures are missing, or may not be ranked; `reason` is why.
    """

    label: str
    operation: str
    buffer: str
    bandwidth_bytes_per_s: float | None
    efficiency_bytes_per_j: float | None
    latency_p99_s: float | None
    energy_j_per_gb: float | None
    energy_delay_j_s_per_gb2: float | None
    on_bandwidth_front: bool | None = None
    on_p99_front: bool | None = None
    reason: str | None = None


class ParetoPointBody(TypedDict):
    label: str
    operation: str
    buffer: Literal["on", "off", "as found"]
    bandwidth_bytes_per_s: float | None
    efficiency_bytes_per_j: float | None
    latency_p99_s: float | None
    energy_j_per_gb: float | None
    energy_delay_j_s_per_gb2: float | None
    """J/GB x s/GB."""
    on_bandwidth_front: bool | None
    """No other has more MB/J and more MB/s; null: not ranked."""
    on_p99_front: bool | None
    """No other has more MB/J and a lower p99; null: not ranked, or no p99."""
    reason: str | None


def choices(cells: Iterable[Cell], most_uncertain: float = MOST_UNCERTAIN) -> tuple[Choice, ...]:
    """Each experiment that moves bytes, group by group, the largest MB/J first. By medians: two
    with overlapping intervals may change places."""
    groups: dict[tuple[str, str], list[Choice]] = {}
    moving = [cell for cell in cells if cell.n(BANDWIDTH) or cell.n(EFFICIENCY)]
    domains = Counter(cell.efficiency_of for cell in moving if cell.efficiency_of)
    for cell in moving:
        choice = _choice(cell, most_uncertain)
        if choice.reason is None and len(domains) > 1:
            ((usual, _),) = domains.most_common(1)
            if cell.efficiency_of != usual:
                reason = (
                    f"its power is of {', '.join(cell.efficiency_of)}, not of {', '.join(usual)}"
                )
                choice = replace(choice, reason=reason)
        groups.setdefault((choice.operation, choice.buffer), []).append(choice)
    return tuple(
        placed
        for _, group in sorted(groups.items())
        for placed in sorted(_placed(group), key=lambda one: -(one.efficiency_bytes_per_j or 0.0))
    )


def _choice(cell: Cell, most_uncertain: float) -> Choice:
    joules, seconds = cell.known(J_PER_GB), cell.known(S_PER_GB)
    return Choice(
        label=cell.label(tool=True),
        operation=cell.factors["operation"],
        buffer=cell.factors["buffer"],
        bandwidth_bytes_per_s=cell.known(BANDWIDTH),
        efficiency_bytes_per_j=cell.known(EFFICIENCY),
        latency_p99_s=cell.known(P99),
        energy_j_per_gb=joules,
        energy_delay_j_s_per_gb2=None if joules is None or seconds is None else joules * seconds,
        reason=_why_not(cell, most_uncertain),
    )


def _why_not(cell: Cell, most_uncertain: float) -> str | None:
    """Why it is on no front, for any figures."""
    if not cell.n(EFFICIENCY):
        return cell.why(EFFICIENCY) or "not measured"
    if any(domain.endswith(f"({DEMO})") for domain in cell.efficiency_of):
        return "demo power is not ranked"
    if cell.factors["durable"] == "no":
        return "not durable"
    return why_energy_unsure(cell, most=most_uncertain)


def _placed(group: Sequence[Choice]) -> list[Choice]:
    """Adds their fronts. Unranked experiments are on no front and dominate no other."""
    ranked = [choice for choice in group if choice.reason is None]
    of_rate = {}
    for choice in ranked:
        if choice.efficiency_bytes_per_j is not None and choice.bandwidth_bytes_per_s is not None:
            of_rate[id(choice)] = (choice.efficiency_bytes_per_j, choice.bandwidth_bytes_per_s)
    of_p99 = {
        id(choice): (choice.efficiency_bytes_per_j, -choice.latency_p99_s)
        for choice in ranked
        if choice.efficiency_bytes_per_j is not None and choice.latency_p99_s is not None
    }
    return [
        replace(
            choice,
            on_bandwidth_front=_front(of_rate, choice),
            on_p99_front=_front(of_p99, choice),
            reason=choice.reason
            or (None if id(choice) in of_p99 else "its tool reports no p99 latency"),
        )
        for choice in group
    ]


def _front(points: dict[int, tuple[float, float]], one: Choice) -> bool | None:
    """Whether no other point is as good in both and better in one; None if there is no point."""
    own = points.get(id(one))
    if own is None:
        return None
    return not any(
        other[0] >= own[0] and other[1] >= own[1] and other != own for other in points.values()
    )
