"""Where the power goes: system, module, package, dram, device, and the rest.

    rest = system - package - dram - device

with module in the place of package and dram, which are in it, where a meter reads one, and with
what is not in any of the parts: boards, fans, and, where the system is measured at the wall, the
losses of the power supply. A part that was not measured stays in the rest, which says so.

Idle power is stored as it was measured. What a load costs above idle is a view of two breakdowns
(`above_idle`), made where a table wants it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eeio_power.reading import DOMAINS, Domain, EnergyReading, Kind

Part = Literal["system", "module", "package", "dram", "device", "rest"]
PARTS: tuple[Domain, ...] = ("package", "dram", "device")
MODULE_PARTS: tuple[Domain, ...] = ("module", "device")
ALL: tuple[Part, ...] = ("system", "module", "package", "dram", "device", "rest")

_WORST_LAST: tuple[Kind, ...] = ("measured", "device-reported", "modelled", "demo")


@dataclass(frozen=True)
class Share:
    """One part's mean power over a window. None where it is not known, with the reason."""

    part: Part
    power_w: float | None
    uncertainty_w: float | None
    """Limit of error of `power_w`, W."""
    kind: Kind | None
    meter: str | None
    reason: str | None = None


def breakdown(readings: Sequence[EnergyReading], window_s: float) -> tuple[Share, ...]:
    """One share a part, in the order of `ALL`, from the readings of one window of `window_s`; a
    module's where there is a meter of one.

    Where several meters read one domain, the better kind and then the smaller limit of error wins;
    modelled values are never subtracted from measured ones. Several meters of devices may be on
    several devices: one of them wins too, and the share says so.
    """
    has_module = any(reading.domain == "module" for reading in readings)
    domains = [domain for domain in DOMAINS if has_module or domain != "module"]
    shares = {domain: _share(domain, readings, window_s) for domain in domains}
    parts = MODULE_PARTS if has_module else PARTS
    return (*shares.values(), _rest(shares["system"], [shares[part] for part in parts]))


def above_idle(busy: Sequence[Share], idle: Sequence[Share]) -> tuple[Share, ...]:
    """What the load costs above idle, part by part (figure 6's view; never stored)."""
    return tuple(_difference(b, i) for b, i in zip(busy, idle, strict=True))


def _share(domain: Domain, readings: Sequence[EnergyReading], window_s: float) -> Share:
    found = [r for r in readings if r.domain == domain]
    valid = [r for r in found if r.valid and r.power_w is not None]
    if not valid:
        reason = "; ".join(found[0].reasons) if found else f"no meter reads {domain}"
        return Share(domain, None, None, None, None, reason)
    best = min(valid, key=lambda r: (_WORST_LAST.index(r.kind), r.uncertainty_j or 0.0))
    uncertainty_w = (best.uncertainty_j or 0.0) / window_s
    others = [r.meter for r in valid if domain == "device" and r.meter != best.meter]
    remarks = [f"without what {', '.join(others)} reads, if it is another device"] if others else []
    remarks += [f"doubtful: {'; '.join(best.reasons)}"] if best.doubtful else []
    remark = "; ".join(remarks) or None
    return Share(domain, best.power_w, uncertainty_w, best.kind, best.meter, remark)


def _rest(system: Share, parts: Sequence[Share]) -> Share:
    if system.power_w is None or system.uncertainty_w is None:
        return Share("rest", None, None, None, None, f"the system is not known: {system.reason}")
    if system.kind == "modelled":
        return Share("rest", None, None, None, None, "the system is an estimate")
    known = [p for p in parts if p.power_w is not None and p.kind != "modelled"]
    unknown = [p.part for p in parts if p not in known]
    power_w = system.power_w - sum(p.power_w or 0.0 for p in known)
    uncertainty_w = math.hypot(system.uncertainty_w, *(p.uncertainty_w or 0.0 for p in known))
    if power_w < -uncertainty_w:
        return Share(
            "rest", None, None, None, None,
            f"the parts say {-power_w:.1f} W more than the system: they are not parts of it",
        )  # fmt: skip
    kinds = [system.kind, *(p.kind for p in known)]
    kind: Kind = "device-reported" if "device-reported" in kinds else "measured"
    reasons = [f"holds {', '.join(unknown)} too: not measured"] if unknown else []
    reasons += [f"{p.part} {p.reason}" for p in known if p.reason]
    return Share("rest", power_w, uncertainty_w, kind, None, "; ".join(reasons) or None)


def _difference(busy: Share, idle: Share) -> Share:
    for share, state in ((busy, "busy"), (idle, "idle")):
        if share.power_w is None:
            return Share(busy.part, None, None, None, None, f"{state}: {share.reason}")
    if busy.part == "rest" and busy.reason != idle.reason:
        reason = (
            "the two rests do not hold the same parts: "
            f"busy {busy.reason or 'none'}; idle {idle.reason or 'none'}"
        )
        return Share(busy.part, None, None, None, None, reason)
    if busy.meter != idle.meter or busy.kind != idle.kind:
        reason = f"busy by {busy.meter}, idle by {idle.meter}: two meters are not compared"
        return Share(busy.part, None, None, None, None, reason)
    power_w = (busy.power_w or 0.0) - (idle.power_w or 0.0)
    uncertainty_w = math.hypot(busy.uncertainty_w or 0.0, idle.uncertainty_w or 0.0)
    return Share(busy.part, power_w, uncertainty_w, busy.kind, busy.meter, busy.reason)
