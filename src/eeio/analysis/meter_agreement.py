"""Compares the meters of a campaign over all of it.

A single window may be too short to show a contradiction: a slow meter's edges make some per cent of
it. Over a campaign random errors average out, and errors of the meter remain.

**Uncertainty.** The record has one uncertainty u per window. At most the share r of the energy E is
the meter's accuracy, the same in all windows: r is the smallest u / E of any window. The rest is
independent from window to window. So the uncertainty of the sum is

    sqrt(sum(u^2) + r^2 * (sum(E)^2 - sum(E^2)))

which is at most the sum of the uncertainties, and never below accuracy and random error combined.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eeio.record.contradictions import contradictions
from eeio.record.run import EnergyReading
from eeio.record.store import Campaign, once
from eeio.record.windows import energy_of

Key = tuple[str, str, str]
"""(domain, meter, kind)"""

LEAST_WINDOWS = 2
"""For one window, its readings already show it."""


@dataclass(frozen=True)
class Mean:
    """One domain by one meter, over all windows in which it was read."""

    domain: str
    meter: str
    kind: str
    windows: int
    power_w: float
    """Energy over time of all windows together, W."""
    energy_j: float
    uncertainty_j: float
    """Uncertainty of `energy_j`, J."""
    includes: tuple[str, ...]
    leaves_out: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.domain, self.meter, self.kind


@dataclass(frozen=True)
class Agreement:
    """The means of a campaign, and which of them cannot all be true."""

    means: tuple[Mean, ...] = ()
    contradictions: tuple[tuple[tuple[Key, ...], str], ...] = ()
    """The readings that contradict each other, and how."""

    def doubts(self, key: Key) -> tuple[str, ...]:
        """Why a domain of a meter is doubtful over the complete campaign."""
        return tuple(message for keys, message in self.contradictions if key in keys)


def agreement(campaign: Campaign) -> Agreement:
    """Compares the means of all valid windows.

    Two meters are compared over the windows that both measured, several over those of all. Windows
    that are not compared otherwise (`why_not_ranked`) are not compared here.
    """
    return once(campaign, "agreement", _agreement, Agreement)


def _agreement(campaign: Campaign) -> Agreement:
    known: dict[Key, Key] = {}
    windows = [_by_key(readings, known) for readings in _windows(campaign)]
    of_key = {key: [window for window in windows if key in window] for key in known}
    means = {key: _mean(key, of_key[key]) for key in known}

    def mean_over(key: Key, shared: Sequence[Mapping[Key, EnergyReading]]) -> Mean:
        if len(of_key[key]) > len(shared):
            return _mean(key, shared)
        return means[key]

    messages: dict[str, tuple[Key, ...]] = {}
    for group in _groups(list(known)):
        shared = [window for window in windows if window.keys() >= set(group)]
        if len(shared) < LEAST_WINDOWS or (len(group) > 2 and messages):
            continue
        for readings, message in contradictions([mean_over(key, shared) for key in group]):
            text = f"over {len(shared)} windows of the campaign: {message}"
            messages.setdefault(text, tuple(mean.key for mean in readings))
    contradicting = tuple((keys, message) for message, keys in messages.items())
    return Agreement(tuple(means.values()), contradicting)


def _groups(keys: Sequence[Key]) -> list[Sequence[Key]]:
    """The pairs first: of three that contradict each other, two may suffice."""
    groups: list[Sequence[Key]] = list(combinations(keys, 2))
    if len(keys) > 2:
        groups.append(keys)
    return groups


def _windows(campaign: Campaign) -> Iterable[Iterable[EnergyReading]]:
    yield campaign.idle
    for run in campaign.runs:
        if not run.validity:
            for phase in run.phases:
                yield () if phase.validity else energy_of(phase)


def _by_key(readings: Iterable[EnergyReading], known: dict[Key, Key]) -> dict[Key, EnergyReading]:
    """`known` gets the keys, one object each: a long campaign has a hundred thousand windows."""
    return {
        known.setdefault(key, key): reading
        for reading in readings
        if (key := reading.key)
        and reading.valid
        and reading.kind != "modelled"
        and reading.why_not_ranked is None
        and reading.uncertainty_j is not None
        and reading.power_w
        and reading.energy_j
    }


def _mean(key: Key, windows: Sequence[Mapping[Key, EnergyReading]]) -> Mean:
    readings = [window[key] for window in windows]
    energies_j = [reading.energy_j or 0.0 for reading in readings]
    limits_j = [reading.uncertainty_j or 0.0 for reading in readings]
    seconds = math.fsum(
        e / (r.power_w or math.inf) for e, r in zip(energies_j, readings, strict=True)
    )
    total_j = math.fsum(energies_j)
    share = min(u / e for u, e in zip(limits_j, energies_j, strict=True))
    together_j2 = total_j**2 - math.fsum(e * e for e in energies_j)
    limit_j2 = math.fsum(u * u for u in limits_j) + share**2 * max(0.0, together_j2)
    return Mean(
        *key,
        windows=len(readings),
        power_w=total_j / seconds,
        energy_j=total_j,
        uncertainty_j=math.sqrt(limit_j2),
        includes=_of_all([reading.includes for reading in readings]),
        leaves_out=_of_all([reading.leaves_out for reading in readings]),
    )


def _of_all(reported: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(part for part in reported[0] if all(part in parts for parts in reported))
