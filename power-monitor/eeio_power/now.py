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


@dataclass(frozen=True)
class _Values:
    """One value a channel at two times; `reason` if there are none."""

    first: Sequence[float | None]
    last: Sequence[float | None]
    lasted_s: float
    reason: str | None


def power_now(
    meters: Sequence[Meter],
    wait_s: float = COUNTED_S,
    calibrations: Callable[[Meter], Sequence[Calibration]] = calibration.of_meter,
    recorded: Mapping[str, Recorded] | None = None,
) -> list[PowerNow]:
    """One entry for each domain of each meter; contradictions between them are doubts.

    Counters are read again after `wait_s`; 0: not at all. `recorded` meters, by name, are not read.
    """
    entries, readings = [], []
    for meter, values in zip(meters, _read_all(meters, wait_s), strict=True):
        if recorded and meter.name in recorded:
            values = _of_recording(meter, recorded[meter.name])
        for domain, contents in contents_of(meter.channels).items():
            now, reading = _domain_now(meter, domain, contents, values, calibrations)
            entries.append(now)
            if reading is not None:
                readings.append(reading)
    doubted = {}
    for r in judged(readings):
        if r.doubtful:
            doubted[(r.meter, r.domain)] = r.reasons
    return [
        replace(now, doubts=(*now.doubts, *doubted.get((now.meter, now.domain), ())))
        for now in entries
    ]


def _read_all(meters: Sequence[Meter], wait_s: float) -> list[_Values]:
    """The values of all meters, of those with counters again after `wait_s`."""
    counting = [any(c.quantity == "energy_j" for c in meter.channels) for meter in meters]
    before = [(time.monotonic(), *_values(meter, wait_s)) for meter in meters]
    if any(counting) and wait_s > 0.0:
        time.sleep(wait_s)
    values = []
    for meter, counts, (begun_s, first, reason) in zip(meters, counting, before, strict=True):
        last, lasted_s = first, 0.0
        if counts and wait_s > 0.0:
            last, reason = _values(meter, wait_s)
            lasted_s = time.monotonic() - begun_s
        values.append(_Values(first, last, lasted_s, reason))
    return values


def _of_recording(meter: Meter, recorded: Recorded) -> _Values:
    first = [recorded.first.get(channel.name) for channel in meter.channels]
    last = [recorded.last.get(channel.name) for channel in meter.channels]
    return _Values(first, last, recorded.lasted_s, None)


def _domain_now(
    meter: Meter,
    domain: Domain,
    contents: Contents,
    values: _Values,
    calibrations: Callable[[Meter], Sequence[Calibration]],
) -> tuple[PowerNow, EnergyReading | None]:
    """The power of one domain, and as a reading if there is one."""
    channels, powers_w, doubts = [], [], []
    if values.reason is not None:
        doubts.append(values.reason)
    for channel, first, last in zip(meter.channels, values.first, values.last, strict=True):
        if channel.domain != domain or not channel.in_domain_total:
            continue
        channels.append(channel)
        power_w, missing = _power_w(channel, first, last, values.lasted_s)
        if power_w is not None:
            powers_w.append(power_w)
        if missing and values.reason is None:
            doubts.append(missing)
    doubts += [channel.doubt for channel in channels if channel.doubt]
    used = calibration.of_domain(calibrations(meter), domain)
    total_w = limit_w = note = None
    if len(powers_w) == len(channels):
        total_w, limit_w, note = _calibrated(math.fsum(powers_w), used)
    now = PowerNow(
        meter.name,
        domain,
        total_w,
        tuple(channel.name for channel in channels),
        contents,
        tuple(dict.fromkeys(doubts)),
        note,
    )
    if total_w is None:
        return now, None
    return now, _reading(meter, now, channels, total_w, limit_w)


def _calibrated(power_w: float, used: Calibration | None) -> tuple[float, float | None, str | None]:
    """The power, the limit of its calibration, and the note on it."""
    if used is None:
        return power_w, None, None
    note = used.note(power_w) or used.remark
    if note != used.remark:
        return power_w, None, note
    power_w = used.power_w(power_w)
    return power_w, used.limit_of_w(power_w), note


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
    if (reason := absurdity(channel, later)) is not None:
        return None, reason
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
    calibration_limit_w: float | None,
) -> EnergyReading:
    """As the energy of one second, to compare it with others. `calibration_limit_w` is the limit of
    its calibration."""
    accuracy_w = max(channel.accuracy_relative for channel in channels) * abs(power_w)
    limit_w = accuracy_w
    if calibration_limit_w is not None:
        limit_w = calibration_limit_w
    limit_w += math.fsum(channel.resolution for channel in channels)
    return EnergyReading(
        domain=now.domain,
        meter=meter.name,
        kind=meter.kind,
        power_w=power_w,
        energy_j=power_w,
        uncertainty_j=limit_w,
        coverage=1.0,
        largest_gap_s=None,
        samples=1,
        lost=0,
        valid=True,
        reasons=(),
        includes=now.contents.includes,
        leaves_out=now.contents.leaves_out,
    )
