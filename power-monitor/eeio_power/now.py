"""The power of open meters now, for a list of meters: one reading, or two of a counter."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from eeio_power import calibration
from eeio_power.calibration import Calibration
from eeio_power.errors import PowerError
from eeio_power.false_readings import judged
from eeio_power.meters import Channel, LoggedMeter, Meter, contents_of
from eeio_power.reading import Contents, Domain, EnergyReading
from eeio_power.window_readings import absurdity

ONE_READING = "a counter needs two readings, there is only one"
COUNTED_S = 1.0
LEAST_WATCHED_S, WATCHED_S, WATCHED_PERIODS = 1.0, 10.0, 5.0
"""How long a meter is watched for changes of its value, s, and in its periods."""


@dataclass(frozen=True)
class PowerNow:
    """One domain of one meter. Without power, the first of `doubts` is the reason."""

    meter: str
    domain: Domain
    power_w: float | None
    channels: tuple[str, ...]
    contents: Contents
    doubts: tuple[str, ...]
    calibration: str | None = None
    """That the power is calibrated, or why it is not although there is a calibration."""


@dataclass(frozen=True)
class Recorded:
    """The first and the last reading of a meter, by channel, that were `lasted_s` apart."""

    first: Mapping[str, float | None]
    last: Mapping[str, float | None]
    lasted_s: float


def power_now(
    meters: Sequence[Meter],
    wait_s: float = COUNTED_S,
    calibrations: Callable[[Meter], Sequence[Calibration]] = calibration.of_meter,
    recorded: Mapping[str, Recorded] | None = None,
) -> list[PowerNow]:
    """One entry for each domain of each meter; contradictions between them are doubts.

    Counters are read again after `wait_s`; 0: not at all. `recorded` meters, by name, are not read.
    """
    counting = [any(c.quantity == "energy_j" for c in meter.channels) for meter in meters]
    before = [(time.monotonic(), *_values(meter, wait_s)) for meter in meters]
    if any(counting) and wait_s > 0.0:
        time.sleep(wait_s)
    found, readings = [], []
    for meter, counts, (begun_s, values, reason) in zip(meters, counting, before, strict=True):
        later, lasted_s = values, 0.0
        if counts and wait_s > 0.0:
            later, reason = _values(meter, wait_s)
            lasted_s = time.monotonic() - begun_s
        if (known_before := (recorded or {}).get(meter.name)) is not None:
            values = [known_before.first.get(channel.name) for channel in meter.channels]
            later = [known_before.last.get(channel.name) for channel in meter.channels]
            lasted_s, reason = known_before.lasted_s, None
        for domain, contents in contents_of(meter.channels).items():
            places = [
                k for k, channel in enumerate(meter.channels)
                if channel.domain == domain and channel.in_domain_total
            ]  # fmt: skip
            channels = [meter.channels[k] for k in places]
            powers_w, doubts = [], [] if reason is None else [reason]
            for k, channel in zip(places, channels, strict=True):
                power_w, why = _power_w(channel, values[k], later[k], lasted_s)
                powers_w.append(power_w)
                doubts += [why] if why and reason is None else []
            known = [power_w for power_w in powers_w if power_w is not None]
            total_w = math.fsum(known) if len(known) == len(channels) else None
            doubts += [channel.doubt for channel in channels if channel.doubt]
            limit_w, note = None, None
            used = calibration.of_domain(calibrations(meter), domain)
            if used is not None and total_w is not None:
                note = used.note(total_w) or used.remark
                if note == used.remark:
                    total_w = used.power_w(total_w)
                    limit_w = used.limit_of_w(total_w)
            now = PowerNow(
                meter.name, domain, total_w, tuple(channel.name for channel in channels), contents,
                tuple(dict.fromkeys(doubts)), note,
            )  # fmt: skip
            found.append(now)
            if total_w is not None:
                readings.append(_reading(meter, now, channels, total_w, limit_w))
    doubted = {(r.meter, r.domain): r.reasons for r in judged(readings) if r.doubtful}
    return [
        replace(now, doubts=(*now.doubts, *doubted.get((now.meter, now.domain), ())))
        for now in found
    ]


def changes_every_s(
    meter: Meter,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float | None:
    """How often the value of a live meter really changes, s: the median over some of its periods;
    None if it is a log, or changes less than three times."""
    if isinstance(meter, LoggedMeter):
        return None
    lasts_s = min(WATCHED_S, max(LEAST_WATCHED_S, WATCHED_PERIODS * meter.native_period_s))
    until_s = clock() + lasts_s
    changes_s: list[float] = []
    before: Sequence[float | None] = ()
    while (now_s := clock()) < until_s:
        with suppress(OSError, ValueError, PowerError):
            values = meter.read()
            if before and list(values) != list(before):
                changes_s.append(now_s)
            before = values
        sleep(max(0.0, min(0.01, meter.native_period_s / 5.0)))
    if len(changes_s) < 3:
        return None
    return statistics.median(after - earlier for earlier, after in pairwise(changes_s))


def _values(meter: Meter, wait_s: float) -> tuple[Sequence[float | None], str | None]:
    """One value a channel, and why there are none."""
    missing = [None] * len(meter.channels)
    if isinstance(meter, LoggedMeter):
        return missing, "the log is read for a window"
    if wait_s <= 0.0 and all(c.quantity == "energy_j" for c in meter.channels):
        return missing, ONE_READING
    try:
        return meter.read(), None
    except (OSError, ValueError, PowerError) as error:
        return missing, str(error)


def _power_w(
    channel: Channel, value: float | None, later: float | None, lasted_s: float
) -> tuple[float | None, str | None]:
    """W, or why it is missing."""
    if value is None or later is None or math.isnan(later):
        return None, f"{channel.name} gives no value"
    if (why := absurdity(channel, later)) is not None:
        return None, why
    if channel.quantity == "power_w":
        return later, None
    if lasted_s <= 0.0:
        return None, f"{channel.name}: {ONE_READING}"
    if later <= value:
        return None, f"{channel.name}: the counter did not increase in {lasted_s:.1f} s"
    return (later - value) / lasted_s, None


def _reading(
    meter: Meter,
    now: PowerNow,
    channels: Sequence[Channel],
    power_w: float,
    calibrated_w: float | None,
) -> EnergyReading:
    """As the energy of one second, to compare it with others. `calibrated_w` is the limit of its
    calibration."""
    accuracy_w = max(channel.accuracy_relative for channel in channels) * abs(power_w)
    limit_w = accuracy_w if calibrated_w is None else calibrated_w
    limit_w += math.fsum(channel.resolution for channel in channels)
    return EnergyReading(
        domain=now.domain, meter=meter.name, kind=meter.kind, power_w=power_w, energy_j=power_w,
        uncertainty_j=limit_w, coverage=1.0, largest_gap_s=None, samples=1, lost=0, valid=True,
        reasons=(), includes=now.contents.includes, leaves_out=now.contents.leaves_out,
    )  # fmt: skip
