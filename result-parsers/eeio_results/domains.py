"""Readings of power domains, over the repetitions of one row of a report."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eeio_results.record import DOMAINS, EnergyReading
from eeio_results.windows import GB, Window

Key = tuple[str, str, str]
"""(domain, meter, kind)"""


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


def most_read(
    energies: Iterable[Sequence[EnergyReading]],
    domain: str,
    is_usable: Callable[[EnergyReading], bool],
) -> Key | None:
    """The meter of a domain that gave usable readings in the most repetitions, the first of equal
    ones; None if there is none. Figures of one row are of one meter."""
    counts = Counter(
        (reading.domain, reading.meter, reading.kind)
        for energy in energies
        for reading in energy
        if reading.domain == domain and is_usable(reading)
    )
    return counts.most_common(1)[0][0] if counts else None


def idle_powers(idle: Iterable[EnergyReading]) -> dict[Key, float]:
    """(domain, meter, kind) -> power of the idle baseline, W."""
    return {
        (r.domain, r.meter, r.kind): r.power_w for r in idle if r.valid and r.power_w is not None
    }


def domain_figures(
    windows: Sequence[Window],
    rates: Sequence[float | None],
    operations: Sequence[float | None],
    idle: Mapping[Key, float],
    why_no_idle: str | None,
    busy: float | None,
) -> list[DomainFigures]:
    """Those of every meter and domain, the widest domain first. `rates` are the IOPS of each
    window, `operations` its operations per second if its power applies to them. `busy` is the share
    of the time that a drive is in use (0 to 1), None if not given."""
    keys = dict.fromkeys(
        (reading.domain, reading.meter, reading.kind)
        for window in windows
        for reading in window.energy
    )
    return [
        _figures(key, windows, rates, operations, idle.get(key), why_no_idle, busy)
        for key in sorted(keys, key=lambda key: (DOMAINS.index(key[0]), key))
    ]


def _figures(
    key: Key,
    windows: Sequence[Window],
    rates: Sequence[float | None],
    operations: Sequence[float | None],
    idle_w: float | None,
    why_no_idle: str | None,
    busy: float | None,
) -> DomainFigures:
    readings = [
        (window, rate, reading)
        for window, rate in zip(windows, rates, strict=True)
        for reading in window.energy
        if (reading.domain, reading.meter, reading.kind) == key
    ]
    valid = [(window, rate, reading) for window, rate, reading in readings if reading.valid]
    powers = [r.power_w for _, _, r in valid if r.power_w is not None]
    # Of those of which enough was seen; the others have power and energy only.
    ranked = [(w, rate, r) for w, rate, r in valid if w.why_no_cost(r) is None]
    reasons = [r for _, _, reading in readings if reading.power_w is None for r in reading.reasons]
    poor = next((why for w, _, r in valid if (why := w.why_no_cost(r))), None)
    without = "no valid reading" if len(readings) == len(windows) else "the meter was not read"
    reason = poor if len(powers) == len(windows) else next(iter(reasons), without)
    why_missing: dict[str, str] = {}
    per_gb = [value for w, _, r in ranked if (value := w.j_per_gb(r)) is not None]
    efficiencies = [GB / joules for joules in per_gb if joules > 0]
    if not per_gb:
        why_missing["energy_j_per_gb"] = _why_no_work(windows, reason)
    partly = None
    if 0 < len(per_gb) < len(powers):
        without_work = [w for w, _, r in valid if w.j_per_gb(r) is None or w.why_no_cost(r)]
        why = _why_no_work(without_work, poor)
        partly = f"J/GB of {len(per_gb)} of {len(powers)} repetitions: {why}"
    relative = [share for _, _, r in valid if (share := r.uncertainty_relative) is not None]
    if not relative:
        why_missing["uncertainty_relative"] = reason or "the meter states no uncertainty"
    per_operation = _per_operation(key, windows, operations)
    if not per_operation and any(operations):
        why_missing["energy_j_per_operation"] = reason or "no valid reading"
    marginal, why_none = _marginal([(w, r) for w, _, r in ranked], idle_w, why_no_idle, reason)
    why_missing |= why_none
    shared = _shared([(w, r) for w, _, r in ranked], idle_w, busy)
    if busy is not None and shared is None:
        why_missing["busy_energy_j_per_gb"] = (
            _why_no_work(windows, reason) if idle_w is not None else why_none["marginal.power_w"]
        )
    return DomainFigures(
        *key,
        n=len(powers),
        power_w=quartiles(powers),
        energy_j=quartiles([r.energy_j for _, _, r in valid if r.energy_j is not None]),
        energy_uncertainty_j=quartiles(
            [r.uncertainty_j for _, _, r in valid if r.uncertainty_j is not None]
        ),
        efficiency_bytes_per_j=bytes_per_j(quartiles(per_gb)),
        efficiency_values=tuple(efficiencies),
        reason=partly or reason,
        includes=_agreed([reading.includes for _, _, reading in readings]),
        leaves_out=_agreed([reading.leaves_out for _, _, reading in readings]),
        leaves_drives_out=any(reading.leaves_drives_out for _, _, reading in readings),
        doubts=tuple(dict.fromkeys(why for _, _, r in valid if r.doubtful for why in r.reasons)),
        energy_j_per_gb=quartiles(per_gb),
        uncertainty_relative=quartiles(relative),
        marginal=marginal,
        busy_energy_j_per_gb=shared,
        energy_j_per_operation=quartiles(per_operation),
        iops_per_w=quartiles([rate / r.power_w for _, rate, r in ranked if rate and r.power_w]),
        reasons=why_missing,
    )


def _per_operation(
    key: Key, windows: Sequence[Window], operations: Sequence[float | None]
) -> list[float]:
    """J of an operation: mean power over operations a second, of each window that was seen well
    enough."""
    return [
        reading.power_w / rate
        for window, rate in zip(windows, operations, strict=True)
        for reading in window.energy
        if (reading.domain, reading.meter, reading.kind) == key
        and reading.valid and window.why_no_cost(reading) is None
        and reading.power_w is not None and rate
    ]  # fmt: skip


def _marginal(
    ranked: Sequence[tuple[Window, EnergyReading]],
    idle_w: float | None,
    why_no_idle: str | None,
    reason: str | None,
) -> tuple[Marginal, dict[str, str]]:
    """Power less idle power, and the derived figures; with the reasons for missing ones."""
    names = ("power_w", "energy_j_per_gb", "efficiency_bytes_per_j")
    if idle_w is None:
        why = why_no_idle or "idle power was not measured by this meter in this domain"
        return Marginal(), {f"marginal.{name}": why for name in names}
    if not ranked:
        return Marginal(), {f"marginal.{name}": reason or "no valid reading" for name in names}
    above = [(w, r, r.power_w - idle_w) for w, r in ranked if r.power_w is not None]
    # Power within the uncertainty may as well be zero or less. Without it the median of the others
    # would be too favourable.
    no_higher = sum(extra_w <= _limit_w(r) for _, r, extra_w in above)
    clear = [] if no_higher else above
    energies = [value for w, r, extra_w in clear if (value := w.j_per_gb(r, extra_w)) is not None]
    found = Marginal(
        quartiles([extra_w for _, _, extra_w in above]),
        quartiles(energies),
        bytes_per_j(quartiles(energies)),
    )
    why_not = _why_no_work([w for w, _ in ranked], reason)
    missing = {f"marginal.{name}": why_not for name in names if getattr(found, name) is None}
    if no_higher:
        for name in names[1:]:
            missing[f"marginal.{name}"] = (
                f"in {no_higher} of {len(above)} repetitions power is not above idle by more than "
                "its uncertainty"
            )
    return found, missing


def _limit_w(reading: EnergyReading) -> float:
    """The uncertainty of its mean power, W; 0 where the meter states none."""
    if not reading.power_w or not reading.energy_j or reading.uncertainty_j is None:
        return 0.0
    return reading.power_w * reading.uncertainty_j / reading.energy_j


def _shared(
    ranked: Sequence[tuple[Window, EnergyReading]], idle_w: float | None, busy: float | None
) -> Quartiles | None:
    """J/GB of a system that is in use for the share `busy` of the time and idle for the rest:
    (P t + P_idle t (1 - b) / b) per GB (docs/explanation/energy-and-uncertainty.md)."""
    if busy is None or idle_w is None:
        return None
    values = [
        value
        for w, r in ranked
        if r.power_w is not None
        and (value := w.j_per_gb(r, r.power_w + idle_w * (1 - busy) / busy)) is not None
    ]
    return quartiles(values)


def bytes_per_j(j_per_gb: Quartiles | None) -> Quartiles | None:
    """Bytes per J of quartiles of J/GB: MB/J is 1000 over J/GB also in every summary, which the
    median of reciprocals is not where it is a mean of two."""
    if j_per_gb is None or min(j_per_gb.q1, j_per_gb.median) <= 0:
        return None
    return Quartiles(GB / j_per_gb.median, GB / j_per_gb.q3, GB / j_per_gb.q1)


def _why_no_work(windows: Sequence[Window], reason: str | None) -> str:
    """Why there is no energy of a GB."""
    why = next((w.why_no_efficiency for w in windows if w.why_no_efficiency), None)
    if why is None and not any(w.bytes_moved or w.bandwidth_bytes_per_s for w in windows):
        why = "the record has neither bytes nor bandwidth"
    return why or reason or "no valid reading"


def _agreed(reported: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The entries that all repetitions have."""
    return tuple(part for part in reported[0] if all(part in parts for parts in reported))
