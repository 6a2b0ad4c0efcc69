"""Readings of power domains, over the repetitions of one row of a report."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eeio_results.observation import (
    NO_READING,
    Key,
    Missing,
    Observation,
    Summary,
    sources,
    summarize,
)
from eeio_results.record import DOMAINS, EnergyReading
from eeio_results.windows import GB


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles (linear interpolation between order statistics, R's type 7)."""

    median: float
    q1: float
    q3: float


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """None without values; for one value, all quartiles are that value."""
    if not values:
        return None
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return Quartiles(median, q1, q3)


@dataclass(frozen=True)
class Marginal:
    """Figures above the idle baseline of the same meter and domain: power in W, J/GB, bytes/J."""

    power_w: Quartiles | None = None
    energy_j_per_gb: Quartiles | None = None
    efficiency_bytes_per_j: Quartiles | None = None


@dataclass(frozen=True)
class DomainFigures:
    """Readings of one power domain by one meter, over the valid repetitions. `n` of them have a
    value; `reason` is why the others have none. `reasons` contains the reason of each None."""

    power_domain: str
    meter: str
    energy_kind: str
    n: int
    power_w: Quartiles | None
    energy_j: Quartiles | None
    energy_uncertainty_j: Quartiles | None
    efficiency_bytes_per_j: Quartiles | None
    efficiency_values: tuple[float, ...]
    reason: str | None
    includes: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    leaves_drives_out: bool = False
    """Whether the MB/J excludes the drives, because the power excludes them."""
    doubts: tuple[str, ...] = ()
    """Why the figures are doubtful: which meter contradicts them, and by how much."""
    energy_j_per_gb: Quartiles | None = None
    uncertainty_relative: Quartiles | None = None
    """Of the energy: only the uncertainty of its reading, divided by it."""
    marginal: Marginal = field(default_factory=Marginal)
    busy_energy_j_per_gb: Quartiles | None = None
    """J/GB including shared idle energy, if a duty cycle is given (`eeio report --duty-cycle`)."""
    iops_per_w: Quartiles | None = None
    energy_j_per_operation: Quartiles | None = None
    """Mean power over operations per second, of tools that count operations."""
    ranked_reason: str | None = None
    """Why its MB/J is not ranked; None if it is."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Quartiles] = field(default_factory=dict)
    """Metrics of the registry that no field above is for (eeio_results.metrics)."""

    @property
    def key(self) -> Key:
        return self.power_domain, self.meter, self.energy_kind

    def lacks(self, repetitions: int) -> str | None:
        """Which of a row's repetitions have no power or no J/GB, and why; None if all have them."""
        if self.n < repetitions:
            return f"power of {self.n} of {repetitions} repetitions: {self.reason}"
        return self.reason if self.energy_j_per_gb is not None else None

    def contents(self) -> str | None:
        """The contents of the domain as text; None if its meter does not report them."""
        parts = [f"includes {', '.join(self.includes)}"] if self.includes else []
        parts += [f"excludes {', '.join(self.leaves_out)}"] if self.leaves_out else []
        return f"{self.power_domain} ({self.meter}): {'; '.join(parts)}" if parts else None

    def to_json(self) -> dict[str, Any]:
        body = asdict(self)
        del body["efficiency_values"]  # drawn in plots; the records contain them
        if not self.metrics:
            del body["metrics"]
        return body


def idle_powers(idle: Iterable[EnergyReading]) -> dict[Key, float]:
    """(domain, meter, kind) -> power of the idle baseline, W."""
    return {r.key: r.power_w for r in idle if r.valid and r.power_w is not None}


def domain_figures(
    observations: Sequence[Observation],
    idle: Mapping[Key, float],
    why_no_idle: str | None,
    busy: float | None,
) -> list[DomainFigures]:
    """Those of every source in the observations of a row, the widest domain first, and the sources
    of one in the records' order. `busy` is the share of the time that a drive is in use (0 to 1),
    None if not given."""
    keys = sorted(sources(observations), key=lambda key: DOMAINS.index(key[0]))
    found = []
    for key in keys:
        by_source = [observation.by(key) for observation in observations]
        baseline = Baseline(idle.get(key), why_no_idle)
        found.append(_figures(key, by_source, baseline, busy))
    return found


@dataclass(frozen=True)
class Baseline:
    """Idle power of a source, W; or why there is none, if it is known."""

    power_w: float | None
    why_none: str | None


def _figures(
    key: Key, observations: Sequence[Observation], baseline: Baseline, busy: float | None
) -> DomainFigures:
    readings = [
        observation.reading for observation in observations if observation.reading is not None
    ]
    valid = [reading for reading in readings if reading.valid]
    power = summarize(observations, lambda observation: observation.power_w)
    cost = summarize(observations, lambda observation: observation.j_per_gb)
    share = summarize(observations, lambda observation: observation.uncertainty_relative)
    per_operation = summarize(observations, lambda observation: observation.j_per_operation)
    reason = _why_incomplete(observations, power)
    costed = [observation for observation in observations if observation.is_costed]
    marginal, missing = _marginal(costed, baseline, reason, cost.reason)
    shared = _shared(costed, baseline.power_w, busy)
    why_missing: dict[str, str] = {}
    if not cost.values:
        why_missing["energy_j_per_gb"] = cost.reason or reason or NO_READING
    if not share.values:
        why_missing["uncertainty_relative"] = reason or share.reason or NO_READING
    if not per_operation.values and any(
        observation.operations_per_s and observation.why_operations_unpowered is None
        for observation in observations
    ):
        why_missing["energy_j_per_operation"] = reason or NO_READING
    why_missing |= missing
    if busy is not None and shared is None:
        why_missing["busy_energy_j_per_gb"] = (
            missing["marginal.power_w"] if baseline.power_w is None else cost.reason or NO_READING
        )
    return DomainFigures(
        *key,
        n=len(power.values),
        power_w=quartiles(power.values),
        energy_j=quartiles([r.energy_j for r in valid if r.energy_j is not None]),
        energy_uncertainty_j=quartiles(
            [r.uncertainty_j for r in valid if r.uncertainty_j is not None]
        ),
        efficiency_bytes_per_j=bytes_per_j(quartiles(cost.values)),
        efficiency_values=tuple(GB / joules for joules in cost.values if joules > 0),
        reason=_why_of_a_part(observations, power, cost) or reason,
        includes=_agreed([reading.includes for reading in readings]),
        leaves_out=_agreed([reading.leaves_out for reading in readings]),
        leaves_drives_out=any(reading.leaves_drives_out for reading in readings),
        doubts=tuple(dict.fromkeys(why for r in valid if r.doubtful for why in r.reasons)),
        energy_j_per_gb=quartiles(cost.values),
        uncertainty_relative=quartiles(share.values),
        marginal=marginal,
        busy_energy_j_per_gb=shared,
        energy_j_per_operation=quartiles(per_operation.values),
        iops_per_w=quartiles(
            summarize(observations, lambda observation: observation.iops_per_w).values
        ),
        reasons=why_missing,
    )


def _why_incomplete(observations: Sequence[Observation], power: Summary) -> str | None:
    """Why some repetitions have no power; if all have it, why some energies are not costs."""
    if power.reasons:
        return power.reason
    return next(
        (observation.why_no_cost for observation in observations if observation.why_no_cost), None
    )


def _why_of_a_part(
    observations: Sequence[Observation], power: Summary, cost: Summary
) -> str | None:
    """Which repetitions with power have no J/GB, and why; None if all or none have one."""
    if not 0 < len(cost.values) < len(power.values):
        return None
    powered = [
        observation for observation in observations if not isinstance(observation.power_w, Missing)
    ]
    why = summarize(powered, lambda observation: observation.j_per_gb).reason
    return f"J/GB of {len(cost.values)} of {len(power.values)} repetitions: {why}"


def _marginal(
    costed: Sequence[Observation],
    baseline: Baseline,
    why_no_power: str | None,
    why_no_cost: str | None,
) -> tuple[Marginal, dict[str, str]]:
    """Power less idle power, and the derived figures; with the reasons for missing ones."""
    names = ("power_w", "energy_j_per_gb", "efficiency_bytes_per_j")
    idle_w = baseline.power_w
    if idle_w is None:
        why = baseline.why_none or "idle power was not measured by this meter in this domain"
        return Marginal(), {f"marginal.{name}": why for name in names}
    above = [
        (observation, observation.power_w - idle_w)
        for observation in costed
        if not isinstance(observation.power_w, Missing)
    ]
    if not above:
        return Marginal(), {f"marginal.{name}": why_no_power or NO_READING for name in names}
    # Power within the uncertainty may as well be zero or less. Without it the median of the others
    # would be too favourable.
    no_higher = sum(extra_w <= _limit_w(observation) for observation, extra_w in above)
    clear = [] if no_higher else above
    figures = [observation.j_per_gb_of(extra_w) for observation, extra_w in clear]
    energies = [value for value in figures if not isinstance(value, Missing)]
    found = Marginal(
        quartiles([extra_w for _, extra_w in above]),
        quartiles(energies),
        bytes_per_j(quartiles(energies)),
    )
    why_not = why_no_cost or why_no_power or NO_READING
    if no_higher:
        why_not = (
            f"in {no_higher} of {len(above)} repetitions power is not above idle by more than "
            "its uncertainty"
        )
    return found, {f"marginal.{n}": why_not for n in names if getattr(found, n) is None}


def _limit_w(observation: Observation) -> float:
    """The uncertainty of its mean power, W; 0 where the meter states none."""
    reading = observation.reading
    if reading is None or not reading.power_w or not reading.energy_j:
        return 0.0
    if reading.uncertainty_j is None:
        return 0.0
    return reading.power_w * reading.uncertainty_j / reading.energy_j


def _shared(
    costed: Sequence[Observation], idle_w: float | None, busy: float | None
) -> Quartiles | None:
    """J/GB of a system that is in use for the share `busy` of the time and idle for the rest:
    (P t + P_idle t (1 - b) / b) per GB (docs/explanation/energy-and-uncertainty.md)."""
    if busy is None or idle_w is None:
        return None
    idle_share_w = idle_w * (1 - busy) / busy
    values = [
        observation.j_per_gb_of(observation.power_w + idle_share_w)
        for observation in costed
        if not isinstance(observation.power_w, Missing)
    ]
    return quartiles([value for value in values if not isinstance(value, Missing)])


def bytes_per_j(j_per_gb: Quartiles | None) -> Quartiles | None:
    """Bytes per J of quartiles of J/GB: MB/J is 1000 over J/GB also in every summary, which the
    median of reciprocals is not where it is a mean of two."""
    if j_per_gb is None or min(j_per_gb.q1, j_per_gb.median) <= 0:
        return None
    return Quartiles(GB / j_per_gb.median, GB / j_per_gb.q3, GB / j_per_gb.q1)


def _agreed(reported: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The entries that all repetitions have."""
    return tuple(part for part in reported[0] if all(part in parts for parts in reported))
