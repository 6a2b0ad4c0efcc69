"""`eeio import FILES --power LOG`: energy of imported phases from power logs, aligned by time.

A phase has a window if its file reports a start and a run time. Clocks are the same if the log was
written on the measured machine, or if the user gives the offset. Otherwise the offset is estimated
from the load steps, and used only if it is distinct (`estimated`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from eeio.exchange.importing import power_logs
from eeio.exchange.importing.load_steps import (
    LEAST_OF_PART,
    LEAST_PULSES,
    MOST_PARTS,
    MOST_ZONES_S,
    QUARTER_HOUR_S,
    LoadOffset,
    LoadSteps,
    clock_by_load,
    cut_at,
    gaps_of,
    parts_of,
)
from eeio.exchange.importing.power_logs import PowerLog, Series
from eeio.record.windows import known
from eeio_parsers.found import FoundPhase, FoundReport
from eeio_power.alignment import Pulse
from eeio_power.energy import energy_in_parts
from eeio_power.errors import PowerError
from eeio_power.false_readings import doubted
from eeio_power.reading import DOMAINS, Domain, EnergyReading
from eeio_power.samples import MeterSamples, Samples

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
_OF_BOTH = "it read and wrote at the same time: the energy is that of both directions together"
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

    @property
    def pulse(self) -> Pulse:
        return Pulse(self.start_s, self.end_s)


def window_of(phase: FoundPhase) -> Window | None:
    """None if the file does not report when the phase started, and how long it ran."""
    if phase.starts_within_s is None:
        return None
    return _near(phase)


def _near(phase: FoundPhase) -> Window | None:
    """As `window_of`, also of a phase whose start is not known well (`ramp_time`)."""
    if not phase.started_utc or not phase.runtime_s:
        return None
    start_s = _unix_s(phase.started_utc)
    local = datetime.fromisoformat(phase.started_utc).tzinfo is None
    return Window(start_s, start_s + phase.runtime_s, phase.starts_within_s or 0.0, local)


def _unix_s(iso: str) -> float:
    """A time without a zone counts as UTC."""
    moment = datetime.fromisoformat(iso)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def _why_no_window(phase: FoundPhase) -> str:
    if phase.started_utc and phase.runtime_s:
        return _OTHER_START
    return _NO_START


# ---- offset of the clocks ----


@dataclass(frozen=True)
class ClockDoubt:
    """What the load steps show against an offset, for results in a time of their clock."""

    begin_s: float
    end_s: float
    text: str


@dataclass(frozen=True)
class Alignment:
    """How far the clock of a log is ahead of the results' clock, or why that is not known."""

    ahead_s: float | None
    unsure_s: float = 0.0
    source: str = ""
    doubts: tuple[ClockDoubt, ...] = ()
    notes: tuple[str, ...] = ()
    own: Mapping[tuple[str, str], LoadOffset] = field(default_factory=dict)
    """By meter and domain: how much later the readings are, by the steps of load that they show.
    That contains their delay."""

    def of(self, series: Series) -> "SeriesOffset":
        own = self.own.get((series.meter, series.domain))
        if own is not None:
            return SeriesOffset(own.offset_s, own.uncertainty_s, own.drift_s, by_load=True)
        return SeriesOffset(self.ahead_s or 0.0, self.unsure_s)

    def doubts_of(self, window: Window) -> list[str]:
        return [
            doubt.text
            for doubt in self.doubts
            if doubt.begin_s < window.end_s and window.start_s < doubt.end_s
        ]


@dataclass(frozen=True)
class SeriesOffset:
    """How far the times of a series are ahead. `by_load`: its own steps of load show it."""

    ahead_s: float
    unsure_s: float
    drift_s: float = 0.0
    by_load: bool = False


def _steps_of(log: PowerLog) -> list[LoadSteps]:
    """The steps of load of each series. Raises PowerError if none has enough readings."""
    steps: list[LoadSteps] = []
    reasons: list[PowerError] = []
    for series in log.series:
        try:
            steps.append(LoadSteps(series))
        except PowerError as error:
            reasons.append(error)
    if not steps:
        raise reasons[0]
    return steps


_Offsets = Sequence[tuple[Series, LoadOffset]]


def _estimates(steps: Sequence[LoadSteps], windows: Sequence[Window], around_s: float) -> _Offsets:
    """The offset of each series that shows the steps of load. Raises PowerError if none does: the
    reason of the widest domain."""
    spans = [window.pulse for window in windows]
    estimates: list[tuple[Series, LoadOffset]] = []
    reasons: dict[int, PowerError] = {}
    for of_series in steps:
        try:
            estimates.append((of_series.series, of_series.estimated(spans, around_s)))
        except PowerError as error:
            reasons[DOMAINS.index(cast(Domain, of_series.series.domain))] = error
    if not estimates:
        raise reasons[min(reasons)]
    return estimates


def aligned(log: PowerLog, windows: Sequence[Window], given_s: float | None) -> Alignment:
    """By the user's offset, else by the same clock, else by the load steps."""
    is_local = log.clock == "local"
    if given_s is None and log.clock == "start":
        return Alignment(
            None,
            source="the log's times count from a start that it does not report: give "
            "--power-offset, minus the Unix time of that start",
        )
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
    doubts, notes = _clock_doubts(log, windows, given_s, source)
    doubts += _elapsed_doubts(log, windows)
    return Alignment(ahead_s, log.unsure_s, source, tuple(doubts), tuple(dict.fromkeys(notes)))


def _by_load(log: PowerLog, windows: Sequence[Window]) -> Alignment:
    """By the steps of load that each series shows."""
    try:
        estimates = _estimates(_steps_of(log), windows, 0.0)
    except PowerError as error:
        return Alignment(
            None,
            source="the clocks of the log and the results may differ, and the load steps do "
            f"not show by how much: {error}; give --power-offset (0 if they are equal)",
        )
    clock = clock_by_load(estimates)
    own = {(series.meter, series.domain): offset for series, offset in estimates}
    source = f"estimated: {clock.offset_s:+.2f} s ± {clock.uncertainty_s:.2f} s by the load steps"
    return Alignment(clock.offset_s, clock.uncertainty_s, source, own=own)


# ---- doubts about an offset ----


def _clock_doubts(
    log: PowerLog, windows: Sequence[Window], given_s: float | None, source: str
) -> tuple[list[ClockDoubt], list[str]]:
    """What the load steps show against an offset, for each part of the log between two pauses of
    the logger: its clock may have been set there, or may have changed to summer time. Then notes on
    parts whose given offset was not checked."""
    doubts: list[ClockDoubt] = []
    notes: list[str] = []
    used_s = given_s or 0.0
    try:
        steps = _steps_of(log)
    except PowerError as error:
        if given_s is not None:
            notes.append(_not_checked(given_s, error))
        return doubts, notes
    for stretch in _stretches(log, windows, used_s):
        text = None
        try:
            text = _doubt_of_stretch(log, steps, stretch, given_s, source)
        except PowerError as error:
            notes.append(_not_checked(used_s, error))
        if text is not None:
            doubts.append(ClockDoubt(stretch[0].start_s, stretch[-1].end_s, text))
    return doubts, notes


def _doubt_of_stretch(
    log: PowerLog,
    steps: Sequence[LoadSteps],
    stretch: Sequence[Window],
    given_s: float | None,
    source: str,
) -> str | None:
    """Raises PowerError if a given offset cannot be checked."""
    used_s = given_s or 0.0
    unsure_s = log.unsure_s + max(window.unsure_s for window in stretch)
    try:
        return _contradiction(steps, stretch, used_s, unsure_s, source)
    except PowerError:
        text = _doubt_by_parts(steps, stretch, used_s, unsure_s, source)
    if text is None and given_s is not None:
        text = _doubt_by_zones(steps, stretch, used_s, MOST_ZONES_S)
        text = text or _doubt_at_equal_times(steps, stretch, used_s)
    if text is None and (log.clock == "local" or stretch[0].local):
        text = _doubt_by_summer_time(steps, stretch, used_s)
    if text is None and given_s is not None:
        text = _doubt_by_edges(steps, stretch, given_s, unsure_s)
    return text


def _not_checked(given_s: float, error: PowerError) -> str:
    return f"the given offset of {given_s:+g} s was not checked against the load: {error}"


def _doubt_by_edges(
    steps: Sequence[LoadSteps], windows: Sequence[Window], given_s: float, unsure_s: float
) -> str | None:
    """The doubt about a given offset at which the power does not rise and fall with the results, if
    it does so at others: one or several. Raises PowerError if it does so at none."""
    unchecked: PowerError | None = None
    count = max(1, min(MOST_PARTS, len(windows) // LEAST_PULSES))
    # Of a clock that drifts or was set, only some parts show it.
    for part in parts_of(windows, count):
        try:
            better_s = _better_offsets_s(steps, part, given_s, unsure_s)
        except PowerError as error:
            unchecked = error
            continue
        if better_s:
            better = " and ".join(f"{offset_s:+.0f} s" for offset_s in better_s)
            return (
                f"the load steps do not fit the given offset of {given_s:+g} s; "
                f"they fit about {better}"
            )
    if unchecked is not None:
        raise unchecked
    return None


def _better_offsets_s(
    steps: Sequence[LoadSteps], windows: Sequence[Window], given_s: float, unsure_s: float
) -> list[float]:
    """Those of the first series that shows the steps of load. Raises PowerError if none does."""
    spans = [window.pulse for window in windows]
    last_error = PowerError("the log has no series")
    for of_series in steps:
        try:
            return of_series.better_offsets_s(spans, given_s, unsure_s)
        except PowerError as error:
            last_error = error
    raise last_error


def _stretches(log: PowerLog, windows: Sequence[Window], used_s: float) -> list[list[Window]]:
    """The windows that a log has readings of, in order, between the pauses of its logger."""
    times_s = sorted({time_s for series in log.series for time_s in series.times_s})
    gaps_s = gaps_of(times_s, max(series.period_s for series in log.series))
    covered = [
        window
        for window in sorted(windows, key=lambda window: window.start_s)
        if times_s[0] <= window.start_s + used_s and window.end_s + used_s <= times_s[-1]
    ]
    return cut_at(gaps_s, covered, used_s)


def _doubt_by_parts(
    steps: Sequence[LoadSteps],
    windows: Sequence[Window],
    used_s: float,
    unsure_s: float,
    source: str,
) -> str | None:
    """As `_contradiction`, of parts of the windows: of a clock that drifts far, only these show an
    offset."""
    count = min(MOST_PARTS, len(windows) // LEAST_OF_PART)
    for part in parts_of(windows, count) if count > 1 else []:
        with suppress(PowerError):
            text = _contradiction(steps, part, used_s, unsure_s, source)
            if text is not None:
                return text
    return None


def _contradiction(
    steps: Sequence[LoadSteps],
    windows: Sequence[Window],
    used_s: float,
    unsure_s: float,
    source: str,
) -> str | None:
    """The doubt about an offset, if the load steps of the windows show another one, or a drift.
    Raises PowerError if they show no offset."""
    clock = clock_by_load(_estimates(steps, windows, used_s))
    within_s = clock.uncertainty_s - clock.drift_s
    off_s, limit_s = abs(clock.offset_s - used_s), within_s + unsure_s
    if off_s > limit_s:
        return (
            f"the clock is ahead by {clock.offset_s:+.2f} s ± {within_s:.2f} s by the load steps, "
            f"but {used_s:+.2f} s was used ({source})"
        )
    if off_s + clock.drift_s / 2 > limit_s + clock.drift_unsure_s:
        return f"{_drift(clock.drift_s)}, but {used_s:+.2f} s was used for all of them ({source})"
    return None


def _drift(drift_s: float) -> str:
    return f"the log's clock drifts by {drift_s:.1f} s during the results"


def _elapsed_doubts(log: PowerLog, windows: Sequence[Window]) -> Iterator[ClockDoubt]:
    """Times that count from the start of a log do not change to summer time, and those of results
    without a zone do."""
    for series in log.series if log.is_elapsed else ():
        begin_s, end_s = series.times_s[0], series.times_s[-1]
        later = [
            window
            for window in windows
            if window.local
            and begin_s < window.start_s < end_s
            and _may_change(begin_s, window.end_s)
        ]
        if later:
            yield ClockDoubt(
                min(window.start_s for window in later),
                max(window.end_s for window in later),
                "summer time may have begun or ended between the start of the log and the result, "
                "whose local time does not show it: import the results before and after it "
                "separately, each with its --power-offset",
            )


_MONTHS_OF_CHANGES = (3, 4, 9, 10, 11)
_SUNDAY = 6


def _may_change(begin_s: float, end_s: float) -> bool:
    """Whether summer time begins or ends somewhere between two local times: in the night to a
    Sunday of spring or autumn."""
    night = datetime.fromtimestamp(begin_s, UTC).replace(hour=2, minute=0, second=0, microsecond=0)
    while night.timestamp() <= end_s:
        is_change = night.weekday() == _SUNDAY and night.month in _MONTHS_OF_CHANGES
        if is_change and night.timestamp() >= begin_s:
            return True
        night += timedelta(days=1)
    return False


_SUMMER_TIME_S = 2 * 3600.0
"""The most by which summer time differs."""
_ENOUGH_WINDOWS = 32


def _doubt_by_summer_time(
    steps: Sequence[LoadSteps], windows: Sequence[Window], used_s: float
) -> str | None:
    """As `_doubt_by_zones`, for parts of the windows: local times may change among them."""
    count = max(1, min(MOST_PARTS, len(windows) // LEAST_PULSES))
    doubts = (
        _doubt_by_zones(steps, part, used_s, _SUMMER_TIME_S) for part in parts_of(windows, count)
    )
    return next(filter(None, doubts), None)


def _doubt_by_zones(
    steps: Sequence[LoadSteps], windows: Sequence[Window], used_s: float, most_s: float
) -> str | None:
    """The doubt about an offset without steps of load, if another number of quarter hours has them:
    a zone or its sign may be wrong."""
    spans = [window.pulse for window in windows[:_ENOUGH_WINDOWS]]
    most = round(most_s / QUARTER_HOUR_S)
    zones_s = [used_s + k * QUARTER_HOUR_S for k in range(-most, most + 1) if k]
    for of_series in steps:
        zone_s = of_series.better_zone_s(spans, used_s, zones_s)
        if zone_s is not None:
            return (
                f"no step of load fits the offset of {used_s:+g} s, but {zone_s:+.0f} s fits: "
                "check the zone of the log's times and the sign of the offset"
            )
    return None


def _doubt_at_equal_times(
    steps: Sequence[LoadSteps], windows: Sequence[Window], used_s: float
) -> str | None:
    """The doubt about an offset of results at equal times, such as one each hour: another zone fits
    more of them."""
    spans = [window.pulse for window in windows]
    for of_series in steps:
        zone_s = of_series.fitting_zone_s(spans, used_s)
        if zone_s is not None:
            return (
                f"at the offset of {used_s:+g} s some results have no step of load, and at "
                f"{zone_s:+.0f} s more of them have one: check the zone of the log's times"
            )
    return None


# ---- energy ----


def _invalid(series: Series, reason: str) -> EnergyReading:
    return EnergyReading(
        domain=series.domain,
        meter=series.meter,
        kind=series.kind,
        power_w=None,
        energy_j=None,
        uncertainty_j=None,
        coverage=0.0,
        largest_gap_s=None,
        samples=0,
        lost=0,
        valid=False,
        reasons=(reason,),
    )


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
        samples = aligned_samples(series, alignment)
        # Domains of one recorded meter are read together.
        if samples not in meters:
            meters.append(samples)
    found = {
        (reading.meter, reading.domain): reading
        for reading in Samples(tuple(meters)).energy(window.start_s, window.end_s)
    }
    for series, alignment in used:
        readings.append(_unsure(found[series.meter, series.domain], series, window, alignment))
    supplies = _may_be_supplies(readings, [log for log, _ in logs])
    return tuple(
        doubted(reading, [_TWO_SUPPLIES] if reading in supplies else []) for reading in readings
    )


_TWO_SUPPLIES = (
    "another log of this program shows a similar power: if each is of one power supply, the power "
    "of the machine is their sum"
)
_SIMILAR_SHARE = 0.3


def _may_be_supplies(
    readings: Sequence[EnergyReading], logs: Sequence[PowerLog]
) -> list[EnergyReading]:
    """The readings of one domain from two external logs of one program, if their powers are
    similar: two meters of two supplies, and not two of the same power."""
    tools = {}
    for log in logs:
        if not log.same_machine:
            for series in log.series:
                tools[(series.meter, series.domain)] = (log.tool, series.domain)
    of_tools: dict[tuple[str | None, str], dict[str, EnergyReading]] = {}
    for reading in readings:
        tool = tools.get((reading.meter, reading.domain))
        if tool is not None and reading.power_w is not None:
            of_tools.setdefault(tool, {})[reading.meter] = reading
    supplies: list[EnergyReading] = []
    for of_meter in of_tools.values():
        ordered = sorted(of_meter.values(), key=lambda reading: reading.power_w or 0.0)
        for lower, higher in pairwise(ordered):
            if (lower.power_w or 0.0) >= (1 - _SIMILAR_SHARE) * (higher.power_w or 0.0):
                supplies += [lower, higher]
    return supplies


def _common_s(series: Series, window: Window, alignment: Alignment) -> float:
    """How long the series and the window are at the same time."""
    ahead_s = alignment.of(series).ahead_s
    end_s = min(series.times_s[-1], window.end_s + ahead_s)
    return end_s - max(series.times_s[0], window.start_s + ahead_s)


def aligned_samples(series: Series, alignment: Alignment) -> MeterSamples:
    """The readings by the clock of the results."""
    offset = alignment.of(series)
    return series.samples(offset.ahead_s, by_load=offset.by_load)


def _unsure(
    reading: EnergyReading, series: Series, window: Window, alignment: Alignment
) -> EnergyReading:
    """The reading with the uncertainty of its times."""
    offset = alignment.of(series)
    unsure_s = window.unsure_s + offset.unsure_s
    if offset.drift_s > _MOST_DRIFT_SHARE * (window.end_s - window.start_s):
        reason = (
            f"{_drift(offset.drift_s)}: give each part of the log its --power-offset, or import "
            "the days separately"
        )
        return _without_energy(reading, reason)
    if reading.energy_j is not None and unsure_s > 0:
        meter = aligned_samples(series, alignment)
        changes_j = []
        count = min(_MOST_SHIFTS, max(_LEAST_SHIFTS, math.ceil(unsure_s / series.period_s)))
        for number in filter(None, range(-count, count + 1)):
            shift_s = number / count * unsure_s
            (other,) = (
                of_domain
                for of_domain in meter.energy(window.start_s + shift_s, window.end_s + shift_s)
                if of_domain.domain == reading.domain
            )
            if other.energy_j is None:
                why = f"the times are unsure by {unsure_s:.2f} s: {'; '.join(other.reasons)}"
                return _without_energy(reading, why)
            changes_j.append(abs(other.energy_j - reading.energy_j))
        total_j = math.hypot(reading.uncertainty_j or 0.0, max(changes_j))
        if offset.drift_s > unsure_s / 2:
            # The results at both ends of a drift are off by that change, so it adds up.
            total_j = (reading.uncertainty_j or 0.0) + max(changes_j)
        reading = replace(reading, uncertainty_j=total_j)
    return known(doubted(reading, alignment.doubts_of(window)))


_LEAST_SHIFTS, _MOST_SHIFTS = 2, 16
"""In each direction: a reading apart, where the times are unsure by more than two readings."""
_MOST_DRIFT_SHARE = 0.25
"""Of a result's time: a clock that drifts more does not show which power was that of the result."""


def _without_energy(reading: EnergyReading, reason: str) -> EnergyReading:
    return replace(
        reading,
        power_w=None,
        energy_j=None,
        uncertainty_j=None,
        valid=False,
        reasons=(*reading.reasons, reason),
    )


# ---- all files ----


@dataclass(frozen=True)
class UsedLog:
    """A log with the alignment that was used. `busy` is when any result was measured; empty if that
    is not known of each."""

    log: PowerLog
    alignment: Alignment
    busy: tuple[Window, ...] = ()

    @property
    def notes(self) -> list[str]:
        """On the alignment, with the name of the log."""
        return [f"{self.log.path}: {note}" for note in self.alignment.notes]

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
    phases = [phase for report in reports for phase in report.work]
    windows = [window_of(phase) for phase in phases]
    timed = list(filter(None, windows))
    hosts = {report.host for report in reports if report.host}
    why = None
    if not timed:
        why = _NO_START
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
    """`windows` continue with those of its work. Directions at the same time have no energy of
    their own."""
    work = iter([_energies(phase, next(windows), together, pairs) for phase in report.work])
    mixed = tuple(replace(phase, energy=next(work)) for phase in report.mixed)
    groups = {phase.group for phase in mixed}
    of_both = [(log, Alignment(None, source=_OF_BOTH)) for log, _ in pairs]
    none = energy_of(Window(0.0, 1.0, 0.0, False), of_both)
    phases = tuple(
        replace(phase, energy=none if phase.group in groups else next(work))
        for phase in report.phases
    )
    return replace(report, phases=phases, mixed=mixed)


def _energies(
    phase: FoundPhase,
    window: Window | None,
    together: set[Window],
    pairs: Sequence[tuple[PowerLog, Alignment]],
) -> tuple[EnergyReading, ...]:
    """Those of a phase; missing with the reason if its time is not known, or shared."""
    if window is not None and window not in together:
        doubts = [_OF_ONE_MACHINE] if (phase.nodes or 1) > 1 else []
        readings = _energy_of_parts(phase, window, pairs)
        return tuple(doubted(reading, doubts) for reading in readings)
    reason = _TOGETHER if window is not None else _why_no_window(phase)
    missing = [(log, Alignment(None, source=reason)) for log, _ in pairs]
    return energy_of(Window(0.0, 1.0, 0.0, False), missing)


def _energy_of_parts(
    phase: FoundPhase, window: Window, pairs: Sequence[tuple[PowerLog, Alignment]]
) -> tuple[EnergyReading, ...]:
    """That of a phase in its window, or of its stretches only."""
    if not phase.stretches:
        return energy_of(window, pairs)

    def energy(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        return energy_of(replace(window, start_s=start_s, end_s=end_s), pairs)

    starts = [(_unix_s(start), lasted_s) for start, lasted_s in phase.stretches]
    return energy_in_parts(energy, [(start_s, start_s + lasted_s) for start_s, lasted_s in starts])


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
    if is_any_local or log.same_machine:
        return None
    return given_s


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
