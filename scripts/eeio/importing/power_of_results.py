"""`eeio import FILES --power LOG`: energy of imported phases from power logs, aligned by time.

A phase has a window if its file reports a start and a run time. Clocks are the same if the log was
written on the measured machine, or if the user gives the offset. Otherwise the offset is estimated
from the load steps, and used only if it is distinct (`estimated`).
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from eeio.importing import power_logs
from eeio.importing.power_logs import PowerLog, Series
from eeio_parsers.found import FoundPhase, FoundReport
from eeio_power.alignment import FINE_S, SEARCH_S, Energy, Offset, Pulse
from eeio_power.doubts import doubted
from eeio_power.errors import PowerError
from eeio_power.reading import DOMAINS, Domain, EnergyReading
from eeio_power.samples import MeterSamples, Samples
from eeio_results.windows import known

DISTINCT_SHARE = 0.8
"""An offset is distinct if no other place within the search reaches this share of its contrast."""
LEAST_CONTRAST = 0.7
"""Of the spread of the readings: less shows that something else changed the power."""
LEAST_SIGMAS = 5.0
LEAST_PULSES = 3
"""Results with pauses between them: one or two fit other work as well."""
MOST_PULSES = 2000
MOST_REPEATED = 0.74
"""The share of the results' time that may lie on results again after a shift."""
LEAST_UNREPEATED = 1.05
"""Of the longest result's time: what must not lie on results again. Less is what one other load can
look like."""
_NO_START = "the file reports no start of this phase, so its power is not known"
_OTHER_START = (
    "the start that the file reports may not be that of this phase: other phases, jobs that start "
    "later, or other work of the tool are in between, so its power is not known"
)
_NOT_FOR_THIS = (
    "--power-offset is for logs whose clock needs it; that of this one is LOG,offset_s=S"
)
_OF_ONE_MACHINE = "several machines worked, and the log may be that of one of them"
_TOGETHER = "another result was measured at the same time, so the energy cannot be divided"
_NO_ZONE = (
    "the times of the power log or of the results have no zone: give --power-offset, the seconds "
    "that the log's clock is ahead (times without a zone count as UTC)"
)


@dataclass(frozen=True)
class Window:
    """When a phase ran, Unix s; its times may be off by `unsure_s` together."""

    start_s: float
    end_s: float
    unsure_s: float
    local: bool
    """Its times have no zone and count as UTC."""


def window_of(phase: FoundPhase) -> Window | None:
    """None if the file does not report when the phase started, and how long it ran."""
    return None if phase.starts_within_s is None else _near(phase)


def _near(phase: FoundPhase) -> Window | None:
    """As `window_of`, also of a phase whose start is not known well (`ramp_time`)."""
    if not phase.started_utc or not phase.runtime_s:
        return None
    moment = datetime.fromisoformat(phase.started_utc)
    start_s = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    local = moment.tzinfo is None
    return Window(start_s, start_s + phase.runtime_s, phase.starts_within_s or 0.0, local)


def _why_no_window(phase: FoundPhase) -> str:
    return _OTHER_START if phase.started_utc and phase.runtime_s else _NO_START


# ---- offset of the clocks ----


def estimated(
    series: Series, windows: Sequence[Window], around_s: float, search_s: float = SEARCH_S
) -> Offset:
    """How far the readings are later than the results, within `search_s` of `around_s`: the offset
    of the log's clock, and the delay of the meter.

    It is where the mean power of the windows exceeds that of the pauses most. Raises PowerError if
    that is not distinct: there are less than LEAST_PULSES results, the contrast is below
    LEAST_CONTRAST of the readings' spread or LEAST_SIGMAS of its noise, another place reaches
    DISTINCT_SHARE of it, some results have less than half of it, the place is at an end of the
    search, or the log does not cover all windows there.
    """
    times_s, power_w = _powers(series)
    period_s = series.period_s
    pulses = _pulses(windows, 2 * period_s)
    if not LEAST_PULSES <= len(pulses) <= MOST_PULSES:
        raise PowerError(
            f"{len(pulses)} results with pauses between them, and {LEAST_PULSES} to {MOST_PULSES} "
            "are needed"
        )
    if times_s[-1] - times_s[0] < pulses[-1].end_s - pulses[0].start_s:
        raise PowerError("the log does not cover all results")
    if _repeats(pulses):
        raise PowerError("the results repeat evenly, so that several offsets fit")
    longest_s = max(pulse.end_s - pulse.start_s for pulse in pulses)
    if longest_s < 3 * period_s:
        raise PowerError(f"no result lasts 3 readings of {series.meter} ({period_s:g} s each)")
    energy = Energy(times_s, power_w)
    step_s = max(0.05, period_s / 4)
    count = math.ceil(search_s / step_s)
    contrasts = {
        k: _contrast_w(energy, pulses, longest_s, around_s + k * step_s)
        for k in range(-count, count + 1)
    }
    best = max(contrasts, key=lambda k: contrasts[k])
    best_s = around_s + best * step_s
    _check_distinct(contrasts, best, search_s)
    _check_visible(energy, pulses, best_s, contrasts[best], period_s)
    offset = _refined(energy, pulses, longest_s, best_s, step_s, period_s)
    half = len(pulses) // 2
    if half < 2:
        return offset
    # A clock that drifts fits the first and the last results at different places.
    parts = [
        _refined(energy, part, longest_s, offset.offset_s, step_s, period_s)
        for part in (pulses[:half], pulses[half:])
    ]
    drift_s = abs(parts[0].offset_s - parts[1].offset_s)
    return replace(offset, uncertainty_s=offset.uncertainty_s + drift_s)


def _check_distinct(contrasts: Mapping[int, float], best: int, search_s: float) -> None:
    """Raises PowerError if another place of the search fits, or one beyond its ends may."""
    low = high = best
    limit_w = DISTINCT_SHARE * contrasts[best]
    while contrasts.get(low - 1, -math.inf) >= limit_w:
        low -= 1
    while contrasts.get(high + 1, -math.inf) >= limit_w:
        high += 1
    if sum(contrast_w >= limit_w for contrast_w in contrasts.values()) > high - low + 1:
        raise PowerError(
            "several offsets fit, because the results repeat evenly or other work was done"
        )
    if low == min(contrasts) or high == max(contrasts):
        raise PowerError(f"the best fit is at an end of the search ({search_s:g} s either way)")


def _check_visible(
    energy: Energy, pulses: Sequence[Pulse], best_s: float, contrast_w: float, period_s: float
) -> None:
    """Raises PowerError if the power does not follow the results at that offset."""
    times_s, power_w = energy.times_s, energy.power_w
    begin_s, end_s = pulses[0].start_s + best_s, pulses[-1].end_s + best_s
    first, last = bisect_left(times_s, begin_s), bisect_right(times_s, end_s)
    near = sorted(power_w[max(0, first - 2) : last + 2])
    spread_w = near[int(0.95 * (len(near) - 1))] - near[int(0.05 * (len(near) - 1))]
    noise_w = _noise_w(power_w, pulses, period_s)
    if not contrast_w > max(LEAST_CONTRAST * spread_w, LEAST_SIGMAS * noise_w):
        raise PowerError("the power does not follow the results")
    if not _all_visible(energy, pulses, best_s, contrast_w):
        raise PowerError("some results do not change the power")
    if begin_s < times_s[0] or end_s > times_s[-1]:
        raise PowerError("the log does not cover all results")


def _repeats(pulses: Sequence[Pulse]) -> bool:
    """Whether all pulses but one, or most of them, lie on pulses again after a shift. One other
    load at an end would make the shifted place look better than the true one."""
    total_s = sum(p.end_s - p.start_s for p in pulses)
    longest_s = max(p.end_s - p.start_s for p in pulses)
    limit_s = min(MOST_REPEATED * total_s, total_s - LEAST_UNREPEATED * longest_s)
    shifts = {q.start_s - p.start_s for p in pulses[:2] for q in pulses if q.start_s > p.start_s}
    for shift_s in sorted(shifts):
        if shift_s > 2 * SEARCH_S:
            break
        common_s, place = 0.0, 0
        for pulse in pulses:
            begin_s, end_s = pulse.start_s + shift_s, pulse.end_s + shift_s
            while place < len(pulses) and pulses[place].end_s <= begin_s:
                place += 1
            for other in pulses[place:]:
                if other.start_s >= end_s:
                    break
                common_s += min(end_s, other.end_s) - max(begin_s, other.start_s)
        if common_s > limit_s:
            return True
    return False


def _all_visible(
    energy: Energy, pulses: Sequence[Pulse], ahead_s: float, contrast_w: float
) -> bool:
    """Whether nine of ten results have at least half of the contrast."""
    means_w = [
        (energy.until_j(p.end_s + ahead_s) - energy.until_j(p.start_s + ahead_s))
        / (p.end_s - p.start_s)
        for p in pulses
    ]
    # Half of the contrast below the mean of them all.
    limit_w = statistics.fmean(means_w) - contrast_w / 2
    return sum(mean_w < limit_w for mean_w in means_w) <= len(pulses) // 10


def _powers(series: Series) -> tuple[list[float], list[float]]:
    """Times and mean powers, each of the time since the one before."""
    # Of a meter that eeio recorded: the sum of the domain's channels.
    meter = replace(series, recorded=None).samples(0.0)
    readings = [(t, v) for t, v in zip(meter.times_s, meter.values[0], strict=True) if v == v]
    if series.form == "counter":
        readings = [
            (t, max(0.0, now - before) / (t - t0))
            for (t0, before), (t, now) in pairwise(readings)
        ]  # fmt: skip
    if len(readings) < 3:
        raise PowerError(f"{series.meter}: {len(readings)} readings are too few")
    return [t for t, _ in readings], [v for _, v in readings]


def _pulses(windows: Sequence[Window], shortest_s: float) -> list[Pulse]:
    """The windows in order; pauses that the log cannot show are no pauses."""
    pulses: list[Pulse] = []
    for window in sorted(windows, key=lambda window: window.start_s):
        if pulses and window.start_s - pulses[-1].end_s < shortest_s:
            last = pulses.pop()
            pulses.append(Pulse(last.start_s, max(last.end_s, window.end_s)))
        else:
            pulses.append(Pulse(window.start_s, window.end_s))
    return pulses


def _contrast_w(energy: Energy, pulses: Sequence[Pulse], margin_s: float, ahead_s: float) -> float:
    """Mean power of the pulses minus that of the pauses, and of as much time before and after."""
    margin_s = min(margin_s, SEARCH_S)
    first_s, last_s = pulses[0].start_s, pulses[-1].end_s
    around = [Pulse(first_s - margin_s, first_s - margin_s), *pulses,
              Pulse(last_s + margin_s, last_s + margin_s)]  # fmt: skip
    return energy.contrast_w(around, ahead_s)


def _noise_w(power_w: Sequence[float], pulses: Sequence[Pulse], period_s: float) -> float:
    """The standard error of a contrast, from the differences of neighbouring readings."""
    steps = [abs(b - a) for a, b in pairwise(power_w)]
    count = max(1.0, sum(p.end_s - p.start_s for p in pulses) / period_s)
    return 1.05 * statistics.median(steps) * math.sqrt(2 / count)


def _refined(
    energy: Energy, pulses: Sequence[Pulse], margin_s: float, near_s: float, step_s: float,
    period_s: float,
) -> Offset:  # fmt: skip
    """The best place near one, and how far the contrast does not change by more than its noise."""
    fine_s = max(FINE_S, period_s / 50)
    reach = math.ceil(3 * step_s / fine_s)
    found = {
        k: _contrast_w(energy, pulses, margin_s, near_s + k * fine_s)
        for k in range(-reach, reach + 1)
    }
    best = max(found, key=lambda k: found[k])
    limit_w = found[best] - 3 * _noise_w(energy.power_w, pulses, period_s)
    alike = [k for k, contrast_w in found.items() if contrast_w >= limit_w]
    width_s = (max(alike) - min(alike)) * fine_s / 2
    return Offset(near_s + best * fine_s, max(FINE_S, period_s / 2) + width_s, found[best])


def _late_s(series: Series) -> float:
    """How much later than the power the readings are, by the delay of the meter."""
    if series.delay is None:
        return 0.0
    return series.delay.shift_s(None if series.form == "counter" else series.period_s)


def _late_within_s(series: Series) -> float:
    return 0.0 if series.delay is None else series.delay.unsure_s


@dataclass(frozen=True)
class Alignment:
    """How far the clock of a log is ahead of the results' clock, or why that is not known."""

    ahead_s: float | None
    unsure_s: float = 0.0
    source: str = ""
    doubt: str | None = None
    own: Mapping[tuple[str, str], Offset] = field(default_factory=dict)
    """By meter and domain: how much later the readings are, by the steps of load that they show.
    That contains their delay."""

    def of(self, series: Series) -> "SeriesOffset":
        own = self.own.get((series.meter, series.domain))
        if own is not None:
            return SeriesOffset(own.offset_s, own.uncertainty_s, by_load=True)
        return SeriesOffset(self.ahead_s or 0.0, self.unsure_s)


@dataclass(frozen=True)
class SeriesOffset:
    """How far the times of a series are ahead. `by_load`: its own steps of load show it."""

    ahead_s: float
    unsure_s: float
    by_load: bool = False


def _estimates(log: PowerLog, windows: Sequence[Window], around_s: float) -> dict[int, Offset]:
    """The offset of each series that shows the steps of load, by its place in the log. Raises
    PowerError if none does: the reason of the widest domain."""
    estimates: dict[int, Offset] = {}
    reasons: dict[int, PowerError] = {}
    for place, series in enumerate(log.series):
        try:
            estimates[place] = estimated(series, windows, around_s)
        except PowerError as error:
            reasons[DOMAINS.index(cast(Domain, series.domain))] = error
    if not estimates:
        raise reasons[min(reasons)]
    return estimates


def aligned(log: PowerLog, windows: Sequence[Window], given_s: float | None) -> Alignment:
    """By the user's offset, else by the same clock, else by the load steps."""
    is_local = log.clock == "local"
    if given_s is None and log.clock == "start":
        return Alignment(
            None, source="the log's times count from a start that it does not report: give "
            "--power-offset, minus the Unix time of that start",
        )  # fmt: skip
    if given_s is None and is_local and not log.same_machine:
        return Alignment(None, source=_NO_ZONE)
    if given_s is None and any(window.local != is_local for window in windows):
        return Alignment(None, source=_NO_ZONE)
    if given_s is None and not log.same_machine:
        return _by_load(log, windows)
    source = "0, as the log was written on the measured machine"
    if given_s is not None:
        source = "given by --power-offset"
    ahead_s = given_s or 0.0
    return Alignment(ahead_s, log.unsure_s, source, _clock_doubt(log, windows, given_s, source))


def _clock_by_load(log: PowerLog, estimates: Mapping[int, Offset]) -> tuple[float, float]:
    """How far the clock of the log is ahead, by the series with the least unknown delay, and the
    uncertainty."""
    best = min(estimates, key=lambda place: _late_within_s(log.series[place]))
    series, offset = log.series[best], estimates[best]
    ahead_s = offset.offset_s - _late_s(series)
    return ahead_s, offset.uncertainty_s + _late_within_s(series)


def _by_load(log: PowerLog, windows: Sequence[Window]) -> Alignment:
    """By the steps of load that each series shows."""
    try:
        estimates = _estimates(log, windows, 0.0)
    except PowerError as error:
        return Alignment(
            None, source="the clocks of the log and the results may differ, and the load steps do "
            f"not show by how much: {error}; give --power-offset (0 if they are equal)",
        )  # fmt: skip
    ahead_s, unsure_s = _clock_by_load(log, estimates)
    own = {
        (log.series[place].meter, log.series[place].domain): offset
        for place, offset in estimates.items()
    }
    source = f"estimated: {ahead_s:+.2f} s ± {unsure_s:.2f} s by the load steps"
    return Alignment(ahead_s, unsure_s, source, own=own)


def _clock_doubt(
    log: PowerLog, windows: Sequence[Window], given_s: float | None, source: str
) -> str | None:
    """What the load steps show against an offset."""
    used_s = given_s or 0.0
    try:
        estimates = _estimates(log, windows, used_s)
    except PowerError:
        return None if given_s is None else _quarter_hour_doubt(log, windows, given_s)
    ahead_s, unsure_s = _clock_by_load(log, estimates)
    limit_s = unsure_s + log.unsure_s + max(window.unsure_s for window in windows)
    if abs(ahead_s - used_s) <= limit_s:
        return None
    return (
        f"the clock is ahead by {ahead_s:+.2f} s ± {unsure_s:.2f} s by the load steps, but "
        f"{used_s:+.2f} s was used ({source})"
    )


_QUARTER_HOUR_S = 900.0
"""Zones differ by multiples of it."""
_MOST_ZONES_S = 26 * 3600.0
"""From UTC-12 to UTC+14."""
_NEAR_ZONE_S = 15.0


def _quarter_hour_doubt(log: PowerLog, windows: Sequence[Window], given_s: float) -> str | None:
    """The doubt about an offset without steps of load, if another number of quarter hours has them:
    a zone or its sign may be wrong."""
    first_s = min(window.start_s for window in windows)
    last_s = max(window.end_s for window in windows)
    most = round(_MOST_ZONES_S / _QUARTER_HOUR_S)
    offsets_s = [given_s + k * _QUARTER_HOUR_S for k in range(-most, most + 1) if k]
    for series in log.series:
        for offset_s in sorted(offsets_s, key=lambda offset_s: abs(offset_s - given_s)):
            begin_s, end_s = first_s + offset_s, last_s + offset_s
            if series.times_s[0] > begin_s or series.times_s[-1] < end_s:
                continue
            try:
                estimated(series, windows, offset_s, _NEAR_ZONE_S)
            except PowerError:
                continue
            return (
                f"no step of load fits the offset of {given_s:+g} s, but {offset_s:+.0f} s "
                "fits: check the zone of the log's times and the sign of the offset"
            )
    return None


# ---- energy ----


def _invalid(series: Series, reason: str) -> EnergyReading:
    return EnergyReading(
        domain=series.domain, meter=series.meter, kind=series.kind, power_w=None, energy_j=None,
        uncertainty_j=None, coverage=0.0, largest_gap_s=None, samples=0, lost=0, valid=False,
        reasons=(reason,),
    )  # fmt: skip


def energy_of(
    window: Window, logs: Sequence[tuple[PowerLog, Alignment]]
) -> tuple[EnergyReading, ...]:
    """Mean power and energy of a window, one reading for each meter and domain.

    Each is computed as for eeio's own meters (`eeio_power.energy`). If the times are unsure, the
    largest change of the energy within them adds to its uncertainty.
    """
    used: list[tuple[Series, Alignment]] = []
    readings: list[EnergyReading] = []
    for log, alignment in logs:
        for meter, domain in dict.fromkeys((series.meter, series.domain) for series in log.series):
            # A program that ran several times wrote several series.
            series = max(
                (one for one in log.series if (one.meter, one.domain) == (meter, domain)),
                key=lambda one: _common_s(one, window, alignment),
            )
            if alignment.ahead_s is None:
                readings.append(_invalid(series, alignment.source))
            else:
                used.append((series, alignment))
    meters: list[MeterSamples] = []
    for series, alignment in used:
        samples = _aligned_samples(series, alignment)
        # Domains of one recorded meter are read together.
        if samples not in meters:
            meters.append(samples)
    found = {
        (reading.meter, reading.domain): reading
        for reading in Samples(tuple(meters)).energy(window.start_s, window.end_s)
    }
    for series, alignment in used:
        readings.append(_unsure(found[series.meter, series.domain], series, window, alignment))
    return tuple(readings)


def _common_s(series: Series, window: Window, alignment: Alignment) -> float:
    """How long the series and the window are at the same time."""
    ahead_s = alignment.of(series).ahead_s
    end_s = min(series.times_s[-1], window.end_s + ahead_s)
    return end_s - max(series.times_s[0], window.start_s + ahead_s)


def _aligned_samples(series: Series, alignment: Alignment) -> MeterSamples:
    offset = alignment.of(series)
    return series.samples(offset.ahead_s, by_load=offset.by_load)


def _unsure(
    reading: EnergyReading, series: Series, window: Window, alignment: Alignment
) -> EnergyReading:
    """The reading with the uncertainty of its times."""
    unsure_s = window.unsure_s + alignment.of(series).unsure_s
    if reading.energy_j is not None and unsure_s > 0:
        meter = _aligned_samples(series, alignment)
        changes_j = []
        for share in (-1.0, -0.5, 0.5, 1.0):
            shift_s = share * unsure_s
            (other,) = (
                of_domain
                for of_domain in meter.energy(window.start_s + shift_s, window.end_s + shift_s)
                if of_domain.domain == reading.domain
            )
            if other.energy_j is None:
                why = f"the times are unsure by {unsure_s:.2f} s: {'; '.join(other.reasons)}"
                return replace(reading, power_w=None, energy_j=None, uncertainty_j=None,
                               valid=False, reasons=(*reading.reasons, why))  # fmt: skip
            changes_j.append(abs(other.energy_j - reading.energy_j))
        total_j = math.hypot(reading.uncertainty_j or 0.0, max(changes_j))
        reading = replace(reading, uncertainty_j=total_j)
    return known(doubted(reading, [alignment.doubt] if alignment.doubt else []))


# ---- all files ----


@dataclass(frozen=True)
class UsedLog:
    """A log with the alignment that was used. `busy` is when any result was measured; empty if that
    is not known of each."""

    log: PowerLog
    alignment: Alignment
    busy: tuple[Window, ...] = ()

    def to_json(self) -> dict[str, Any]:
        log, alignment = self.log, self.alignment
        return {
            "path": str(log.path),
            "sha256": log.sha256,
            "tool": log.tool,
            "clock": log.clock,
            "series": [series.to_json() for series in log.series],
            "notes": list(log.notes),
            "rejected": log.rejected,
            "ahead_s": alignment.ahead_s,
            "ahead_uncertainty_s": None if alignment.ahead_s is None else alignment.unsure_s,
            "ahead_source": alignment.source,
        }


def add_power(
    reports: Sequence[FoundReport], paths: Sequence[Path], given_s: float | None
) -> tuple[list[FoundReport], list[UsedLog]]:
    """The reports, with energy in their phases, and the logs. `given_s` is --power-offset."""
    phases = [phase for report in reports for phase in report.phases]
    windows = [window_of(phase) for phase in phases]
    timed = list(filter(None, windows))
    hosts = {report.host for report in reports if report.host}
    why = None if timed else _NO_START
    if len(hosts) > 1:
        why = f"results of {len(hosts)} hosts: import those of one"
    near = list(filter(None, map(_near, phases)))
    used = used_logs(paths, timed, given_s, why, near if len(near) == len(phases) else ())
    pairs = pairs_of(used)
    together = _together(near)
    following = iter(windows)
    return [_with_energies(report, following, together, pairs) for report in reports], used


def used_logs(
    paths: Sequence[Path],
    windows: Sequence[Window],
    given_s: float | None,
    why: str | None = None,
    busy: Sequence[Window] = (),
) -> list[UsedLog]:
    """The logs, aligned with the windows of results; `why` is the reason if there is no energy from
    them, `given_s` is --power-offset."""
    logs = list(_named([power_logs.read(path) for path in paths]))
    return [
        UsedLog(
            log,
            _alignment_of(log, logs, windows, given_s, log.rejected or why),
            tuple(busy) if why is None else (),
        )
        for log in logs
    ]


def pairs_of(used: Sequence[UsedLog]) -> list[tuple[PowerLog, Alignment]]:
    """Those that can be used."""
    return [(each.log, each.alignment) for each in used if not each.log.rejected]


def _with_energies(
    report: FoundReport,
    windows: Iterator[Window | None],
    together: set[Window],
    pairs: Sequence[tuple[PowerLog, Alignment]],
) -> FoundReport:
    """`windows` continue with those of its phases."""
    phases = tuple(
        replace(phase, energy=_energies(phase, next(windows), together, pairs))
        for phase in report.phases
    )
    return replace(report, phases=phases)


def _energies(
    phase: FoundPhase,
    window: Window | None,
    together: set[Window],
    pairs: Sequence[tuple[PowerLog, Alignment]],
) -> tuple[EnergyReading, ...]:
    """Those of a phase; missing with the reason if its time is not known, or shared."""
    if window is not None and window not in together:
        doubts = [_OF_ONE_MACHINE] if (phase.nodes or 1) > 1 else []
        return tuple(doubted(reading, doubts) for reading in energy_of(window, pairs))
    reason = _TOGETHER if window is not None else _why_no_window(phase)
    missing = [(log, Alignment(None, source=reason)) for log, _ in pairs]
    return energy_of(Window(0.0, 1.0, 0.0, False), missing)


def _alignment_of(
    log: PowerLog,
    logs: Sequence[PowerLog],
    windows: Sequence[Window],
    given_s: float | None,
    why: str | None,
) -> Alignment:
    """That of one of the logs. `why` is the reason if there is no energy from it."""
    if why is not None:
        return Alignment(None, source=why)
    offset_s = _offset_of(log, logs, windows, given_s)
    alignment = aligned(log, windows, offset_s)
    if given_s is not None and offset_s is None:
        return replace(alignment, source=f"{alignment.source}; {_NOT_FOR_THIS}")
    return alignment


def _offset_of(
    log: PowerLog, logs: Sequence[PowerLog], windows: Sequence[Window], given_s: float | None
) -> float | None:
    """The offset that the user gives for a log: its own (`LOG,offset_s=`), or --power-offset. That
    applies to logs that need one, because their times or those of the results have no zone; if none
    does, to those of another clock than that of the measured machine."""
    if log.offset_s is not None:
        return log.offset_s
    are_local = any(window.local for window in windows)
    if are_local or log.clock != "utc":
        return given_s
    is_any_local = any(each.clock != "utc" for each in logs)
    return None if is_any_local or log.same_machine else given_s


def _named(logs: Sequence[PowerLog]) -> Iterator[PowerLog]:
    """The logs; meters of two logs of one tool have the name of their file, too: with its folders
    if these tell two files apart."""
    tools = [log.tool for log in logs]
    names = [log.path.name for log in logs]
    for log in logs:
        if tools.count(log.tool) > 1:
            name = str(log.path) if names.count(log.path.name) > 1 else log.path.name
            series = [s.renamed(f"{s.meter} {name}") for s in log.series]
            log = replace(log, series=tuple(series))
        yield log


def _together(windows: Sequence[Window]) -> set[Window]:
    """Those that overlap another by more than their times are unsure."""
    found: set[Window] = set()
    last: Window | None = None
    for window in sorted(windows, key=lambda window: window.start_s):
        if last and last.end_s - window.start_s > last.unsure_s + window.unsure_s + _SLACK_S:
            found |= {last, window}
        if last is None or window.end_s > last.end_s:
            last = window
    return found


_SLACK_S = 0.05
"""Tools round their times."""
