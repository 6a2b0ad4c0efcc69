"""PASS or WARN: whether a reading meets the rules of a profile, and why not.

A profile is a set of limits; the energy is the same under each. A reading that misses a limit is
not wrong, it says less: WARN, with every limit that it missed. An invalid reading is always WARN.

Rates, Emerald's resolution and SPEC's uncertainty and settling follow the sources; windows,
coverages, gaps and Emerald's uncertainty are this project's choice. Passing is not compliance.

Sources: `spec`: SPEC's Power and Performance Benchmark Methodology (a reading a second, averaged;
uncertainty of 1 %; half a minute to settle). `emerald`: SNIA Emerald Power Efficiency Measurement
Specification (a reading every 5 s or faster; resolution by power). `green500-l1`: Energy Efficient
HPC Working Group, Power Measurement Methodology, level 1 (a reading a second over the core phase).
`lab`: this project's own, for comparing experiments: ten readings a second and 60 of the meter's
periods.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from eeio_power.reading import DOMAINS, Domain, EnergyReading
from eeio_power.samples import MeterInfo

Verdict = Literal["PASS", "WARN"]

# Rates come out of real clocks: a reading every 1.0004 s is one a second.
RATE_SLACK = 0.98


@dataclass(frozen=True)
class GradeRules:
    """Limits; None where a profile sets none."""

    name: str
    min_rate_hz: float
    """Readings a second, native and achieved."""
    min_window_s: float
    min_coverage: float
    min_periods: float | None = None
    """Native periods of the meter in a window, at least."""
    max_gap_s: float | None = None
    max_uncertainty: float | None = None
    """Limit of error as a share of the energy."""
    settle_s: float = 0.0
    """Time before a window in which the load was the window's, or idle."""
    domains: tuple[Domain, ...] = ("system",)
    """What the rules are about; a part of a system meets none of them."""
    measured_only: bool = True


PROFILES: Mapping[str, GradeRules] = {
    profile.name: profile
    for profile in (
        GradeRules("spec", 1.0, 60.0, 0.99, max_gap_s=5.0, max_uncertainty=0.01, settle_s=30.0),
        GradeRules("emerald", 0.2, 600.0, 0.99, max_gap_s=15.0, max_uncertainty=0.02, settle_s=0.0),
        GradeRules("green500-l1", 1.0, 60.0, 0.99, max_gap_s=5.0),
        GradeRules(
            "lab",
            10.0,
            6.0,
            0.98,
            min_periods=60.0,
            max_gap_s=1.0,
            max_uncertainty=0.05,
            settle_s=1.0,
            domains=DOMAINS,
            measured_only=False,
        ),
    )
}


@dataclass(frozen=True)
class Grade:
    """A reading's verdict under a profile, with every limit it missed."""

    profile: str
    meter: str
    domain: Domain
    verdict: Verdict
    reasons: tuple[str, ...]


def grade(
    reading: EnergyReading,
    info: MeterInfo,
    profile: GradeRules,
    window_s: float,
    settled_s: float | None = None,
) -> Grade:
    """Judge one reading of a window of `window_s`.

    `settled_s` is how long the load had been steady before the window, None if nobody knows.
    """
    reasons = [
        *_scope_reasons(reading, profile),
        *_rate_reasons(reading, info, profile, window_s),
        *_window_reasons(info, profile, window_s, settled_s),
        *_quality_reasons(reading, profile),
    ]
    if profile.name == "emerald":
        reasons += _emerald_resolution(reading, info)
    return Grade(
        profile=profile.name,
        meter=reading.meter,
        domain=reading.domain,
        verdict="WARN" if reasons else "PASS",
        reasons=tuple(reasons),
    )


def _scope_reasons(reading: EnergyReading, profile: GradeRules) -> list[str]:
    reasons = list(reading.reasons) if not reading.valid else []
    if reading.domain not in profile.domains:
        reasons.append(f"{reading.domain} is a part: {profile.name} is about the whole system")
    if reading.kind in ("modelled", "demo"):
        reasons.append(f"{reading.kind} power: no profile takes it")
    elif reading.kind != "measured" and profile.measured_only:
        reasons.append(f"{reading.kind}: {profile.name} wants a meter")
    return reasons


def _rate_reasons(
    reading: EnergyReading, info: MeterInfo, profile: GradeRules, window_s: float
) -> list[str]:
    wanted_hz = profile.min_rate_hz
    reasons = []
    if 1.0 / info.native_period_s < RATE_SLACK * wanted_hz:
        reasons.append(
            f"the meter has a value every {info.native_period_s:g} s; {profile.name} wants "
            f"{wanted_hz:g} a second"
        )
    achieved_hz = reading.samples / window_s
    # One reading more or less at the edges is no slower meter.
    if (reading.samples + 1) / window_s < RATE_SLACK * wanted_hz:
        reasons.append(f"{achieved_hz:.2f} readings a second; {profile.name} wants {wanted_hz:g}")
    return reasons


def _window_reasons(
    info: MeterInfo, profile: GradeRules, window_s: float, settled_s: float | None
) -> list[str]:
    reasons = []
    if window_s < profile.min_window_s:
        reasons.append(f"a window of {window_s:.1f} s; {profile.name}: {profile.min_window_s:g} s")
    if profile.min_periods and window_s < profile.min_periods * info.native_period_s:
        reasons.append(
            f"{window_s / info.native_period_s:.0f} of the meter's periods; {profile.name} wants "
            f"{profile.min_periods:g}"
        )
    if profile.settle_s and settled_s is None:
        reasons.append(f"nobody says how long the load was steady; {profile.settle_s:g} s wanted")
    elif settled_s is not None and settled_s < profile.settle_s:
        reasons.append(f"settled for {settled_s:.1f} s; {profile.name}: {profile.settle_s:g} s")
    return reasons


def _quality_reasons(reading: EnergyReading, profile: GradeRules) -> list[str]:
    reasons = []
    if reading.coverage < profile.min_coverage:
        reasons.append(
            f"coverage {reading.coverage:.1%}; {profile.name}: {profile.min_coverage:.0%}"
        )
    gap_s = reading.largest_gap_s
    if profile.max_gap_s is not None and gap_s is not None and gap_s > profile.max_gap_s:
        reasons.append(f"a gap of {gap_s:.2f} s; {profile.name}: {profile.max_gap_s:g} s")
    if profile.max_uncertainty is not None and reading.energy_j and reading.uncertainty_j:
        share = reading.uncertainty_j / abs(reading.energy_j)
        if share > profile.max_uncertainty:
            reasons.append(
                f"limit of error {share:.1%}; {profile.name}: {profile.max_uncertainty:.0%}"
            )
    return reasons


def _emerald_resolution(reading: EnergyReading, info: MeterInfo) -> list[str]:
    """0.01 W below 10 W, 0.1 W up to 100 W, 1 W above."""
    if reading.power_w is None:
        return []
    wanted_w = 0.01 if reading.power_w < 10.0 else 0.1 if reading.power_w <= 100.0 else 1.0
    steps_w = [
        channel.resolution
        for channel in info.channels
        if channel.domain == reading.domain and channel.quantity == "power_w"
    ]
    if 0.0 in steps_w:  # a log whose spec does not tell it
        return ["the meter's resolution is not known; emerald wants one: give resolution="]
    worst_w = max(steps_w, default=0.0)
    if worst_w > wanted_w:
        return [f"resolution {worst_w:g} W at {reading.power_w:.0f} W; emerald: {wanted_w:g} W"]
    return []
