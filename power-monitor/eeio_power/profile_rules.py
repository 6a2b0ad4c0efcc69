"""PASS or WARN: whether a reading meets the rules of a profile, and why not.

A profile is a set of limits; the energy is the same under each. A reading that misses a limit is
not wrong, but less precise: WARN, with every limit that it missed. An invalid reading is always
WARN.

Rates, Emerald's resolution and SPEC's uncertainty and settling follow the sources; windows,
coverages, gaps and Emerald's uncertainty are this project's choice. Passing is not compliance.

Sources: `spec`: SPEC's Power and Performance Benchmark Methodology (a reading a second, averaged;
uncertainty of 1 %; half a minute to settle). `emerald`: SNIA Emerald Power Efficiency Measurement
Specification (a reading every 5 s or faster; resolution by power). `green500-l1`: Energy Efficient
HPC Working Group, Power Measurement Methodology, level 1 (a reading a second over the core phase).
`lab`: this project's own, for comparing experiments: ten readings a second and 60 of the meter's
periods.

Breakdown of power: system, module, package, dram, device, accelerator, and the rest.

    rest = system - package - dram - device - accelerator

with module in the place of package and dram, which are in it, and with an accelerator, each where
a meter reads one; and with what is not in any of the parts: boards, fans, and, where the system is
measured at the wall, the losses of the power supply. A part that was not measured stays in the
rest, which has a remark.

Idle power is stored as measured. The power of a load above idle is a view of two breakdowns
(`above_idle`), made for tables that show it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eeio_power.reading import DOMAINS, SEVERAL, Domain, EnergyReading, Kind
from eeio_power.samples import MeterInfo

Part = Literal["system", "module", "package", "dram", "device", "accelerator", "rest"]
PARTS: tuple[Domain, ...] = ("package", "dram", "device")
MODULE_PARTS: tuple[Domain, ...] = ("module", "device")
OPTIONAL: tuple[Domain, ...] = ("module", "accelerator")
"""Parts that most machines lack: shown if a meter reads them."""
ALL: tuple[Part, ...] = (*DOMAINS, "rest")

_WORST_LAST: tuple[Kind, ...] = ("measured", "device-reported", "modelled", "demo")


@dataclass(frozen=True)
class Share:
    """One part's mean power over a window. None where it is not known, with the reason."""

    part: Part
    power_w: float | None
    uncertainty_w: float | None
    """Uncertainty of `power_w`, W."""
    kind: str | None
    meter: str | None
    reason: str | None = None


def breakdown(readings: Sequence[EnergyReading], window_s: float) -> tuple[Share, ...]:
    """One share a part, in the order of `ALL`, from the readings of one window of `window_s`; a
    module's and an accelerator's where there is a meter of one.

    Where several meters read one domain, the better kind and then the smaller uncertainty wins;
    modelled values are never subtracted from measured ones. Several meters of devices (or
    accelerators) may be on several ones: one of them wins too, and the share has a remark.
    """
    read = {reading.domain for reading in readings}
    domains = [domain for domain in DOMAINS if domain in read or domain not in OPTIONAL]
    shares = {domain: _share(domain, readings, window_s) for domain in domains}
    parts = [*(MODULE_PARTS if "module" in read else PARTS)]
    if "accelerator" in read:
        parts.append("accelerator")
    return (*shares.values(), _rest(shares["system"], [shares[part] for part in parts]))


def above_idle(busy: Sequence[Share], idle: Sequence[Share]) -> tuple[Share, ...]:
    """The load's power above idle, part by part (figure 6's view; never stored)."""
    return tuple(_difference(b, i) for b, i in zip(busy, idle, strict=True))


def _remarks(best: EnergyReading, others: Sequence[str]) -> Iterator[str]:
    if others:
        yield f"excludes the power from {', '.join(others)}, if it measures another device"
    if best.doubtful:
        yield f"doubtful: {'; '.join(best.reasons)}"


def _share(domain: Domain, readings: Sequence[EnergyReading], window_s: float) -> Share:
    of_domain = [reading for reading in readings if reading.domain == domain]
    valid = [reading for reading in of_domain if reading.valid and reading.power_w is not None]
    if not of_domain:
        return Share(domain, None, None, None, None, f"no meter reads {domain}")
    if not valid:
        reason = "; ".join(of_domain[0].reasons)
        return Share(domain, None, None, None, None, reason)
    best = min(valid, key=lambda r: (_WORST_LAST.index(r.kind), r.uncertainty_j or 0.0))
    uncertainty_w = (best.uncertainty_j or 0.0) / window_s
    others = [reading.meter for reading in valid if reading.meter != best.meter]
    remark = "; ".join(_remarks(best, others if domain in SEVERAL else [])) or None
    return Share(domain, best.power_w, uncertainty_w, best.kind, best.meter, remark)


def _rest(system: Share, parts: Sequence[Share]) -> Share:
    if system.power_w is None or system.uncertainty_w is None:
        return _unknown_rest(f"the system is not known: {system.reason}")
    if system.kind == "modelled":
        return _unknown_rest("the system is an estimate")
    parts_w, limits_w = [], [system.uncertainty_w]
    kinds = {system.kind}
    unknown, reasons = [], []
    for part in parts:
        if part.power_w is None or part.kind == "modelled":
            unknown.append(part.part)
            continue
        parts_w.append(part.power_w)
        limits_w.append(part.uncertainty_w or 0.0)
        kinds.add(part.kind)
        if part.reason:
            reasons.append(f"{part.part} {part.reason}")
    power_w = system.power_w - sum(parts_w)
    uncertainty_w = math.hypot(*limits_w)
    if power_w < -uncertainty_w:
        return _unknown_rest(
            f"the parts sum to {-power_w:.1f} W more than the system: they are not parts of it"
        )
    if unknown:
        reasons = [f"includes {', '.join(unknown)}, which is not measured", *reasons]
    kind: Kind = "measured"
    if "device-reported" in kinds:
        kind = "device-reported"
    return Share("rest", power_w, uncertainty_w, kind, None, "; ".join(reasons) or None)


def _unknown_rest(reason: str) -> Share:
    return Share("rest", None, None, None, None, reason)


def _difference(busy: Share, idle: Share) -> Share:
    for share, state in ((busy, "busy"), (idle, "idle")):
        if share.power_w is None:
            return Share(busy.part, None, None, None, None, f"{state}: {share.reason}")
    if busy.part == "rest" and busy.reason != idle.reason:
        reason = (
            f"the two rests do not include the same parts: busy {busy.reason or 'none'}; idle "
            f"{idle.reason or 'none'}"
        )
        return Share(busy.part, None, None, None, None, reason)
    if busy.meter != idle.meter or busy.kind != idle.kind:
        reason = f"busy by {busy.meter}, idle by {idle.meter}: two meters are not compared"
        return Share(busy.part, None, None, None, None, reason)
    power_w = (busy.power_w or 0.0) - (idle.power_w or 0.0)
    uncertainty_w = math.hypot(busy.uncertainty_w or 0.0, idle.uncertainty_w or 0.0)
    return Share(busy.part, power_w, uncertainty_w, busy.kind, busy.meter, busy.reason)


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
    """Uncertainty as a share of the energy."""
    settle_s: float = 0.0
    """Time before a window in which the load was the window's, or idle."""
    domains: tuple[Domain, ...] = ("system",)
    """Domains to which the rules apply; a part of a system meets none of them."""
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
    domain: str
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

    `settled_s` is how long the load had been steady before the window, None if unknown.
    """
    reasons = [
        *_scope_reasons(reading, profile),
        *_rate_reasons(reading, info, profile, window_s),
        *_window_reasons(info, profile, window_s, settled_s),
        *_quality_reasons(reading, profile),
    ]
    if profile.name == "emerald":
        reasons += _emerald_resolution(reading, info)
    verdict: Verdict = "PASS"
    if reasons:
        verdict = "WARN"
    return Grade(
        profile=profile.name,
        meter=reading.meter,
        domain=reading.domain,
        verdict=verdict,
        reasons=tuple(reasons),
    )


def _scope_reasons(reading: EnergyReading, profile: GradeRules) -> list[str]:
    reasons = []
    if not reading.valid:
        reasons = list(reading.reasons)
    if reading.domain not in profile.domains:
        reasons.append(f"{reading.domain} is a part; {profile.name} requires the complete system")
    if reading.kind in ("modelled", "demo"):
        reasons.append(f"{reading.kind} power: no profile accepts it")
    elif reading.kind != "measured" and profile.measured_only:
        reasons.append(f"{reading.kind}: {profile.name} requires a meter")
    return reasons


def _rate_reasons(
    reading: EnergyReading, info: MeterInfo, profile: GradeRules, window_s: float
) -> list[str]:
    wanted_hz = profile.min_rate_hz
    reasons = []
    if 1.0 / info.native_period_s < RATE_SLACK * wanted_hz:
        reasons.append(
            f"the meter has a value every {info.native_period_s:g} s; {profile.name} requires "
            f"{wanted_hz:g} per second"
        )
    achieved_hz = reading.samples / window_s
    # One reading more or less at the edges is no slower meter.
    if (reading.samples + 1) / window_s < RATE_SLACK * wanted_hz:
        reasons.append(
            f"{achieved_hz:.2f} readings per second; {profile.name} requires {wanted_hz:g}"
        )
    return reasons


def _window_reasons(
    info: MeterInfo, profile: GradeRules, window_s: float, settled_s: float | None
) -> list[str]:
    reasons = []
    if window_s < profile.min_window_s:
        reasons.append(f"a window of {window_s:.1f} s; {profile.name}: {profile.min_window_s:g} s")
    if profile.min_periods and window_s < profile.min_periods * info.native_period_s:
        reasons.append(
            f"{window_s / info.native_period_s:.0f} of the meter's periods; {profile.name} "
            f"requires {profile.min_periods:g}"
        )
    if profile.settle_s and settled_s is None:
        reasons.append(f"duration of the steady load is unknown; {profile.settle_s:g} s required")
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
                f"uncertainty {share:.1%}; {profile.name}: {profile.max_uncertainty:.0%}"
            )
    return reasons


def _emerald_resolution(reading: EnergyReading, info: MeterInfo) -> list[str]:
    """0.01 W below 10 W, 0.1 W up to 100 W, 1 W above."""
    if reading.power_w is None:
        return []
    wanted_w = 1.0
    if reading.power_w <= 100.0:
        wanted_w = 0.1
    if reading.power_w < 10.0:
        wanted_w = 0.01
    steps_w = []
    for channel in info.channels:
        if channel.domain == reading.domain and channel.quantity == "power_w":
            steps_w.append(channel.resolution)
    if 0.0 in steps_w:  # a log without a resolution in its spec
        return ["the meter's resolution is unknown; emerald requires it: give resolution="]
    worst_w = max(steps_w, default=0.0)
    if worst_w > wanted_w:
        return [f"resolution {worst_w:g} W at {reading.power_w:.0f} W; emerald: {wanted_w:g} W"]
    return []
