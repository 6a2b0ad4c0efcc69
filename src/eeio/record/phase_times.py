"""The times of a phase: checks for invalid ones, and those of a phase in stretches, with other work
in between (docs/explanation/windows-and-durability.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from eeio.units import quantities as q


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a phase's window; both ends count from the start of the run, s."""

    start_s: Annotated[float, q.OFFSET]
    end_s: Annotated[float, q.OFFSET]


class _Phase(Protocol):
    @property
    def start_s(self) -> float | None: ...
    @property
    def end_s(self) -> float | None: ...
    @property
    def until_durable(self) -> object | None: ...
    @property
    def stretches(self) -> Sequence[Stretch]: ...


def lasted_s(phase: _Phase) -> float | None:
    """The duration of a phase without the time between its stretches, s."""
    if phase.start_s is None or phase.end_s is None:
        return None
    if phase.stretches:
        return sum(stretch.end_s - stretch.start_s for stretch in phase.stretches)
    return phase.end_s - phase.start_s


def impossible_figures(
    start_s: float | None, end_s: float | None, metrics: Mapping[str, float]
) -> str | None:
    """What is invalid in the window and the further figures that a tool reports of a phase."""
    if start_s is not None and end_s is not None and end_s < start_s:
        return f"it ends at {end_s} s, before its start at {start_s} s"
    for name, value in metrics.items():
        quantity = q.of_name(name)
        if not quantity.contains(value):
            return quantity.rejection(value, name)
    return None


def impossible_stretches(phase: _Phase) -> str | None:
    """What is invalid in the stretches of a phase: they follow each other, from edge to edge."""
    if not phase.stretches:
        return None
    if phase.start_s is None or phase.end_s is None:
        return "stretches: of a phase without a known window"
    if phase.until_durable is not None:
        return "stretches: of a phase that lasts until it is durable, which is one stretch"
    edges: list[float] = []
    for stretch in phase.stretches:
        edges.extend((stretch.start_s, stretch.end_s))
    if edges != sorted(edges) or any(
        stretch.start_s >= stretch.end_s for stretch in phase.stretches
    ):
        return "stretches: they do not follow each other"
    if (edges[0], edges[-1]) != (phase.start_s, phase.end_s):
        return (
            f"stretches: from {edges[0]} to {edges[-1]} s of a phase from {phase.start_s} to "
            f"{phase.end_s} s"
        )
    return None
