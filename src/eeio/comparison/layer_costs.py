"""The cost of each layer of the I/O stack over the one below it, in energy and in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from eeio.comparison.cells import J_PER_GB, S_PER_GB, why_energy_unsure
from eeio.comparison.differences import ALPHA
from eeio.comparison.layers import Match
from eeio.statistics.adjustment import adjust
from eeio.statistics.bootstrap import Estimate, difference_interval
from eeio.statistics.rank_tests import MannWhitney, mann_whitney
from eeio.units.quantities import MOST_UNCERTAIN


class LayerCostBody(TypedDict):
    layer: str
    below: str
    request_size_bytes: int | None
    operation: str
    buffer: Literal["on", "off"] | None
    flush: Literal["none", "end", "each", "unknown"] | None
    spatiality: str
    difference_j_per_gb: float | None
    difference_s_per_gb: float | None
    interval: tuple[float, float] | None
    """Of difference_j_per_gb; null for too few repetitions."""
    n: int
    """Repetitions of the one with fewer."""
    verdict: str
    campaign: str


@dataclass(frozen=True)
class LayerCost:
    """Medians of a layer less those of the layer below; None where one was not measured.

    `verdict` is by the energy: Mann-Whitney, p adjusted over all layers (Benjamini and Hochberg).
    """

    match: Match
    energy_j_per_gb: Estimate
    seconds_per_gb: Estimate
    n: int
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """An object of the list `layers` (schemas/report.schema.json)."""
        factors = self.match.upper.factors
        interval = self.energy_j_per_gb.interval
        buffer = factors["buffer"]
        return {
            "layer": self.match.layer,
            "below": self.match.below,
            "campaign": factors["machine"],
            "operation": factors["operation"],
            "spatiality": factors["spatiality"],
            "request_size_bytes": self.match.upper.request_size_bytes,
            "buffer": buffer if buffer in ("on", "off") else None,
            "flush": None if factors["flush"] == "as found" else factors["flush"],
            "difference_j_per_gb": self.energy_j_per_gb.value,
            "difference_s_per_gb": self.seconds_per_gb.value,
            "interval": None if interval is None else [interval.low, interval.high],
            "n": self.n,
            "verdict": self.verdict,
        }


def layer_costs(
    found: Sequence[Match], alpha: float = ALPHA, most_uncertain: float = MOST_UNCERTAIN
) -> tuple[LayerCost, ...]:
    """Costs from experiments that are one layer apart, whose `machine` is the name of their
    campaign. An energy with an uncertainty above the share `most_uncertain` gives no verdict."""
    tests = [_test(match, alpha) for match in found]
    known = [test.p for test in tests if test is not None and test.p is not None]
    adjusted = iter(adjust(known, "benjamini-hochberg"))
    made = []
    for match, test in zip(found, tests, strict=True):
        p = None
        if test is not None and test.p is not None:
            p = next(adjusted)
        made.append(_cost(match, test, p, alpha, most_uncertain))
    return tuple(made)


def _values(match: Match, metric: str) -> tuple[Sequence[float], Sequence[float]]:
    """The values for the tests, from one campaign."""
    return match.upper.tested(metric), match.lower.tested(metric)


def _test(match: Match, alpha: float) -> MannWhitney | None:
    above, below = _values(match, J_PER_GB)
    if _why_apart(match) is not None:
        return None
    return mann_whitney(above, below, alpha=alpha)


def _why_apart(match: Match) -> str | None:
    """Why two energies cannot be compared."""
    above, below = _values(match, J_PER_GB)
    if not above or not below:
        return f"no energy of {match.below if above else match.layer}"
    if match.upper.efficiency_of == match.lower.efficiency_of:
        return None
    return "the energies are of different power domains"


def _cost(
    match: Match, test: MannWhitney | None, p: float | None, alpha: float, most_uncertain: float
) -> LayerCost:
    reason = _why_apart(match)
    energy = difference_interval(*_values(match, J_PER_GB))
    if reason is not None:
        energy = Estimate(None, None, energy.n, reason)
    seconds = difference_interval(*_values(match, S_PER_GB))
    n = min(energy.n if energy.value is not None else seconds.n)
    unsure = why_energy_unsure(match.upper, match.lower, most=most_uncertain)
    if unsure is not None and energy.value is not None:
        verdict = unsure
    else:
        verdict = _verdict(energy, test, p, alpha)
    return LayerCost(match, energy, seconds, n, verdict)


def _verdict(energy: Estimate, test: MannWhitney | None, p: float | None, alpha: float) -> str:
    if energy.value is None or test is None:
        return f"energy not compared: {energy.reason}"
    if test.too_small is not None:
        return "too few repetitions"
    if p is None or p >= alpha:
        return "no difference confirmed"
    if energy.value > 0:
        return "costs more"
    return "costs less"
