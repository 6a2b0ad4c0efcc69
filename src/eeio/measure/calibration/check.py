"""Is a meter good enough? What it shows at rest, and which phases it resolves, without any load."""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from eeio.measure.campaign.forecast import resolvable_s
from eeio.units.number_text import number
from eeio.units.quantities import LEAST_COVERAGE, MOST_UNCERTAIN
from eeio_power.meters import Meter
from eeio_power.monitor import COUNTER_RATE_HZ
from eeio_power.profile_rules import PROFILES, grade
from eeio_power.reading import EnergyReading
from eeio_power.sampler import NOWHERE, Sampler
from eeio_power.samples import MeterSamples

SHARES = (MOST_UNCERTAIN / 2, MOST_UNCERTAIN)
"""Uncertainties of an energy, for which the shortest window is given: the second is the limit of
ranking."""

_SELDOM = 1.5
"""A value whose changes are so many readings apart is not a new one at each reading."""


@dataclass(frozen=True)
class Checked:
    """One meter and power domain. Times in s; None where the time of the check did not show it.

    `changes_s` is the usual time between two changes of the value, `longest_s` the longest time
    without one. `resolution_w` is the smallest step that was seen (J of a counter). `windows_s` are
    the shortest phases whose energy is known to the shares SHARES; None: no phase is, because the
    accuracy itself is worse. `grades` are the profiles with the limits that the meter misses.
    """

    meter: str
    domain: str
    kind: str
    power_w: float | None
    period_s: float
    changes_s: float | None
    longest_s: float | None
    resolution: float | None
    unit: str
    accuracy: float
    delay: str
    coverage: float
    windows_s: tuple[float | None, ...]
    grades: dict[str, list[str]]
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Without the name of the meter."""
        fine_s, ranked_s = self.windows_s
        if self.why_not is not None or ranked_s is None:
            return f"not good enough: {self.why_not}"
        fine = "no phase at 5 %"
        if fine_s is not None:
            fine = f"5 %: {number(fine_s)} s"
        return f"good enough for phases of {number(ranked_s)} s and more at 10 % ({fine})"

    @property
    def why_not(self) -> str | None:
        """Why no phase can be ranked by it; None if it is good enough."""
        if self.power_w is None:
            return "; ".join(self.reasons) or "no reading"
        if self.coverage < LEAST_COVERAGE:
            return f"only {100 * self.coverage:.0f} % of its readings have a value"
        if self.windows_s[-1] is None:
            return f"its accuracy is {100 * self.accuracy:g} %"
        return None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def verdicts(checked: Sequence[Checked]) -> list[str]:
    """A line for each meter; several where its domains differ."""
    domains: dict[tuple[str, str], list[str]] = {}
    for each in checked:
        domains.setdefault((each.meter, each.verdict), []).append(each.domain)
    return [f"{meter} ({', '.join(of)}): {text}" for (meter, text), of in domains.items()]


def check(meters: Sequence[Meter], rate_hz: float, lasts_s: float) -> list[Checked]:
    """What the meters show in `lasts_s`."""
    with Sampler(meters, NOWHERE, rate_hz, keep_s=lasts_s + 60.0) as sampler:
        begin_s = time.monotonic()
        time.sleep(lasts_s)
        readings = sampler.energy(begin_s, begin_s + lasts_s)
        samples = sampler.samples()
    checked = []
    for reading in readings:
        meter = next(each for each in meters if each.name == reading.meter)
        of_meter = next(each for each in samples.meters if each.info.name == reading.meter)
        checked.append(_checked(meter, of_meter, reading, rate_hz, lasts_s))
    return checked


def _checked(
    meter: Meter, samples: MeterSamples, reading: EnergyReading, rate_hz: float, lasts_s: float
) -> Checked:
    channels = [
        (channel, values)
        for channel, values in zip(samples.info.channels, samples.values, strict=True)
        if channel.domain == reading.domain and channel.in_domain_total
    ]
    columns = [values for _, values in channels]
    apart_s = sorted(s for values in columns for s in _changes_s(samples.times_s, values))
    steps = [step for values in columns for step in _steps(values)]
    changes_s = None
    if apart_s:
        changes_s = statistics.median(apart_s)
    delays = dict.fromkeys(
        "not known: it is assumed to be punctual" if channel.delay is None else channel.delay.text
        for channel, _ in channels
    )
    longest_s = None
    if apart_s:
        longest_s = apart_s[-1]
    return Checked(
        meter=reading.meter,
        domain=reading.domain,
        kind=reading.kind,
        power_w=reading.power_w,
        period_s=samples.info.period_s,
        changes_s=changes_s,
        longest_s=longest_s,
        resolution=min(steps, default=None),
        unit="J" if any(channel.quantity == "energy_j" for channel, _ in channels) else "W",
        accuracy=min(channel.accuracy_relative for channel, _ in channels),
        delay="; ".join(delays),
        coverage=reading.coverage,
        windows_s=_windows_s(meter, rate_hz, changes_s, samples.info.period_s),
        grades=dict(_grades(reading, samples, lasts_s)),
        reasons=reading.reasons,
    )


def _windows_s(
    meter: Meter, rate_hz: float, changes_s: float | None, period_s: float
) -> tuple[float | None, ...]:
    """The shortest phases for SHARES. A value that changes at each reading may change more often
    than it was read."""
    is_seldom = changes_s is not None and changes_s >= _SELDOM * period_s
    seldom_s = 0.0
    if changes_s is not None and is_seldom:
        seldom_s = changes_s
    windows_s = [
        resolvable_s(meter, (rate_hz, COUNTER_RATE_HZ), share, seldom_s) for share in SHARES
    ]
    return tuple(None if math.isinf(window_s) else window_s for window_s in windows_s)


def _changes_s(times_s: Sequence[float], values: Sequence[float]) -> Iterator[float]:
    """The times between two changes of the value."""
    changed_s = [
        after_s
        for ((_, before), (after_s, value)) in pairwise(zip(times_s, values, strict=True))
        if value != before and not math.isnan(value) and not math.isnan(before)
    ]
    return (after_s - before_s for before_s, after_s in pairwise(changed_s))


def _steps(values: Sequence[float]) -> Iterator[float]:
    """The sizes of the changes."""
    known = [value for value in values if not math.isnan(value)]
    return (abs(after - before) for before, after in pairwise(known) if after != before)


def _grades(
    reading: EnergyReading, samples: MeterSamples, lasts_s: float
) -> Iterator[tuple[str, list[str]]]:
    """The limits that the meter misses under each profile, but for those of a window: the time of
    a check is none."""
    for name, rules in PROFILES.items():
        of_meter = replace(rules, min_window_s=0.0, settle_s=0.0, min_periods=None)
        yield name, list(grade(reading, samples.info, of_meter, lasts_s).reasons)
