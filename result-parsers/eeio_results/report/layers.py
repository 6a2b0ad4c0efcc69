"""The cost of each layer of the I/O stack, as a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eeio_results.report.columns import NONE, number
from eeio_results.report.parts import Table
from eeio_results.units import format_size

if TYPE_CHECKING:
    from eeio_results.comparison.layer_costs import LayerCost

_FACTORS = ("machine", "operation", "spatiality")


def layers_table(costs: "Sequence[LayerCost]") -> Table:
    """A row for every two experiments that are one layer apart."""
    return Table(
        title="Cost per layer",
        header=(
            "Campaign", "Operation", "Spatiality", "Request", "Buffer", "Flush", "Layer",
            "Over", "n", "J/GB more", "95 % interval", "s/GB more", "Verdict",
        ),
        rows=tuple(_cells(cost) for cost in costs),
        numeric=frozenset({8, 9, 10, 11}),
        note="medians of the layer less those of the one below; verdict: energy, Mann-Whitney, p "
        "adjusted over all rows (Benjamini and Hochberg), confirmed at p < 0.05",
    )  # fmt: skip


def _cells(cost: "LayerCost") -> tuple[str, ...]:
    factors = cost.match.upper.factors
    size = cost.match.upper.request_size_bytes
    interval = cost.energy_j_per_gb.interval
    return (
        *(factors[name] for name in _FACTORS),
        NONE if size is None else format_size(size),
        factors["buffer"],
        NONE if factors["flush"] == "as found" else factors["flush"],
        cost.match.layer,
        cost.match.below,
        str(cost.n),
        _signed(cost.energy_j_per_gb.value),
        NONE if interval is None else f"{_signed(interval.low)} to {_signed(interval.high)}",
        _signed(cost.seconds_per_gb.value),
        cost.verdict,
    )


def _signed(value: float | None) -> str:
    return NONE if value is None else f"{'+' if value > 0 else ''}{number(value)}"
