"""Series of power, the logs that contain them, and their checks."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import sub
from pathlib import Path
from typing import Any, Literal, cast

from eeio.exchange.importing.power_logs.one_meter import check_equal_times
from eeio.units.quantities import COUNTER_SAMPLE, DURATION, PERIOD, POWER_SAMPLE, TIMESTAMP
from eeio_power.delay import COUNTER, MOST_S, Delay, assumed, stated, unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.reading import DOMAINS, UNKNOWN, Contents, Domain, Kind
from eeio_power.renewals import times_unchanged_s
from eeio_power.resolution import written_step_w
from eeio_power.samples import MeterInfo, MeterSamples

Form = Literal["sample", "mean", "counter"]
"""`sample`: the power at a time, W. `mean`: of the time since the value before, W. `counter`: the
energy since its start, J."""


Clock = Literal["utc", "local", "start"]
"""`local`: times have no zone. `start`: seconds since a start that the log does not report."""


Rows = Iterable[tuple[float, float]]


_ACCURACY = {"dram": 0.2}
"""Share of the value, as for eeio's own meters; 0.05 for all other domains."""


PUNCTUAL: Delay | None = None
"""Of RAPL's counters that are read at the time of the record: a value is the mean since the one
before, or the energy until then."""


ANALYSER = unknown_up_to(1.0, 0.0, "a value each second: up to 1 s late")


_SAMPLE_S = 1e-3
"""How long a sample applies for sure."""


_LEAST_READINGS = 3


@dataclass(frozen=True)
class Series:
    """The readings of one power domain: times (Unix s, rising), values in W, or J of a counter."""

    meter: str
    domain: str
    kind: Kind
    form: Form
    times_s: Sequence[float]
    values: Sequence[float]
    accuracy: float = 0.05
    contents: Contents = UNKNOWN
    delay: Delay | None = None
    is_punctual: bool = False
    """The meter is read at the time of its value, so that a delay is that of the scrapes only."""
    scraped_s: float = 0.0
    """A value may be that of a reading up to so much earlier: the interval in which Prometheus
    takes over the readings, or in which the logger repeats one. The delay contains it."""
    recorded: MeterSamples | None = None
    """The meter as eeio recorded it, with all its channels and calibrations: the energy is computed
    from these. Its times are Unix s, too."""
    doubt: str | None = None
    """Why each of its energies is doubtful."""
    resolution_w: float | None = None
    """Of its powers, W; None if the values show it."""

    @cached_property
    def period_s(self) -> float:
        """The usual time between two readings, s."""
        steps = [after - before for before, after in pairwise(self.times_s)]
        return min(max(statistics.median(steps), PERIOD.least), PERIOD.most)

    @cached_property
    def _made(self) -> dict[tuple[float, bool], MeterSamples]:
        return {}

    def samples(self, ahead_s: float, *, by_load: bool = False) -> MeterSamples:
        """As samples of an eeio meter, on a clock that this one is ahead of by `ahead_s`.
        `by_load`: the steps of load show this, so that it contains the delay of the readings."""
        if (ahead_s, by_load) not in self._made:
            self._made[ahead_s, by_load] = self._samples(ahead_s, by_load)
        return self._made[ahead_s, by_load]

    def _samples(self, ahead_s: float, by_load: bool) -> MeterSamples:
        if self.recorded is not None:
            return self._of_recorded(self.recorded, ahead_s, by_load)
        period_s, mean_s = self.period_s, self._mean_s
        shift_s = self._centre_s - ahead_s
        delay = self._aligned(self.delay) if by_load else self.delay
        channel = Channel(
            name=self.meter,
            domain=cast(Domain, self.domain),
            quantity="energy_j" if self.form == "counter" else "power_w",
            accuracy_relative=self.accuracy,
            resolution=self._resolution,
            contents=self.contents,
            doubt=self.doubt,
            delay=delay,
        )
        native_s = min(mean_s, period_s) if self.form == "sample" else period_s
        info = MeterInfo(self.meter, self.meter, self.kind, native_s, period_s, (channel,))
        return MeterSamples(info, [t + shift_s for t in self.times_s], (self.values,))

    @property
    def _resolution(self) -> float:
        """W, or J of a counter: the least difference of two values, as one meter gives them all."""
        if self.resolution_w is not None:
            return self.resolution_w
        distinct = sorted({value for value in self.values if value == value})
        least = min((after - before for before, after in pairwise(distinct)), default=0.0)
        if self.form == "counter":
            return least
        return max(least, written_step_w(self.values))

    def doubted(self, doubt: str) -> "Series":
        return replace(self, doubt=doubt)

    def _of_recorded(self, recorded: MeterSamples, ahead_s: float, by_load: bool) -> MeterSamples:
        info = recorded.info
        if by_load:
            # The steps of load were found in the readings of the series.
            ahead_s -= self._centre_s
            channels = tuple(replace(c, delay=self._aligned(c.delay)) for c in info.channels)
            info = replace(info, channels=channels)
        times_s = [time_s - ahead_s for time_s in recorded.times_s]
        return replace(recorded, info=info, times_s=times_s)

    @property
    def _mean_s(self) -> float:
        """The time that a value is the mean of, if that is known."""
        return max(_SAMPLE_S, self.delay.averages_s if self.delay else 0.0)

    @property
    def _centre_s(self) -> float:
        """How much later than its time a value is in the samples: eeio applies it to the time
        before it, and a sample stands for half a period either way."""
        if self.form != "sample":
            return 0.0
        return max(0.0, self.period_s - self._mean_s) / 2

    @property
    def known_delay(self) -> Delay:
        """The delay, also of punctual readings: each is the mean of the time since the one
        before."""
        return self.delay or Delay(averages_s=min(self.period_s, MOST_S), source="punctual")

    @property
    def hold_s(self) -> float | None:
        """The time before it that a value is applied to; None for a counter."""
        if self.form == "counter":
            return None
        return self.period_s

    def _aligned(self, delay: Delay | None) -> Delay | None:
        """What is left of a delay if the steps of load gave the offset, which contains it."""
        if delay is None:
            return None
        # The time since the last scrape differs from step to step of load.
        return replace(delay.aligned(self.hold_s), lag_within_s=self.scraped_s / 2.0)

    def renamed(self, meter: str) -> "Series":
        """The same readings of a meter of that name."""
        if self.recorded is None:
            return replace(self, meter=meter)
        info = replace(self.recorded.info, name=meter)
        return replace(self, meter=meter, recorded=replace(self.recorded, info=info))

    def to_json(self) -> dict[str, Any]:
        return {
            "meter": self.meter,
            "domain": self.domain,
            "kind": self.kind,
            "form": self.form,
            "readings": len(self.times_s),
            "period_s": self.period_s,
            "first_s": self.times_s[0],
            "last_s": self.times_s[-1],
        }


@dataclass(frozen=True)
class PowerLog:
    """A file with series of power, or why it was rejected.

    `same_machine`: its program reads the clock of the machine that it measures. Its times may be
    off by `unsure_s` together.
    """

    path: Path
    sha256: str = ""
    tool: str | None = None
    clock: Clock = "utc"
    same_machine: bool = False
    unsure_s: float = 0.0
    is_elapsed: bool = False
    """Its times count from a start of which it has the date."""
    offset_s: float | None = None
    """How far its clock is ahead, as the user states behind its name."""
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    rejected: str | None = None


@dataclass
class ReadLog:
    """What a reader found."""

    series: list[Series] = field(default_factory=list)
    clock: Clock = "utc"
    same_machine: bool = True
    unsure_s: float = 0.0
    is_elapsed: bool = False
    notes: list[str] = field(default_factory=list)
    select: Callable[[Mapping[str, str]], list[Series]] | None = None
    """The series with the options `domain` and `pairs` behind the name of a log that does not state
    them."""


def check(series: Series) -> None:
    """Raises PowerError for a series that eeio cannot integrate."""
    if series.domain not in DOMAINS:
        raise PowerError(
            f"{series.meter}: power of the domain {series.domain}, which is not among "
            f"{', '.join(DOMAINS)}"
        )
    if all(value != value for value in series.values):
        raise PowerError(f"{series.meter}: no reading of the domain {series.domain} has a value")
    if len(series.times_s) < (2 if series.form == "counter" else _LEAST_READINGS):
        raise PowerError(f"{series.meter}: {len(series.times_s)} readings are too few")
    TIMESTAMP.checked(series.times_s[0], "the first time")
    TIMESTAMP.checked(series.times_s[-1], "the last time")
    longest_s = max(map(sub, series.times_s[1:], series.times_s), default=0.0)
    DURATION.checked(longest_s, f"{series.meter}: the time between two readings")


_ZONE_STEPS_S = (1800.0, 3600.0, 7200.0)
"""Local times step by one of them when the zone changes (summer time)."""
_STEPS_WITHIN_S = 240.0


def check_steps(series: Series) -> None:
    """Raises PowerError if local times step ahead as by summer time."""
    if series.form == "counter":
        return
    within_s = min(2 * series.period_s, _STEPS_WITHIN_S)
    for before_s, after_s in pairwise(series.times_s):
        step_s = after_s - before_s - series.period_s
        if any(abs(step_s - zone_s) <= within_s for zone_s in _ZONE_STEPS_S):
            raise PowerError(
                f"{series.meter}: the local times step ahead by {after_s - before_s:.0f} s, as by "
                "summer time: cut the log there, and import the parts with separate offsets"
            )


def series_of(
    meter: str,
    domain: str,
    kind: Kind,
    form: Form,
    rows: Rows,
    delay: Delay | None,
    accuracy: float | None = None,
    contents: Contents = UNKNOWN,
) -> Series:
    """Of rows in the order of their times; NaN is a missing value. Of values with one time, such as
    a clock of whole seconds gives, the mean counts, and of a counter the last one. `delay` is that
    of the readings which the program logs, adds up or averages.

    Raises PowerError if the clock runs backwards, or if values with one time may be of several
    meters.
    """
    possible = COUNTER_SAMPLE if form == "counter" else POWER_SAMPLE
    of_time: dict[float, list[float]] = {}
    last_s = -math.inf
    for time_s, value in rows:
        if not math.isfinite(time_s):
            raise PowerError(f"{meter}: {time_s} s is not a time")
        if time_s < last_s:
            raise PowerError(
                f"{meter}: the clock runs backwards by {last_s - time_s:.3f} s: cut the log there"
            )
        last_s = time_s
        of_time.setdefault(time_s, []).append(value if possible.contains(value) else math.nan)
    if form != "counter":
        check_equal_times(meter, [t for t, values in of_time.items() for _ in values])
    values = [_value_of_a_time(values, form) for values in of_time.values()]
    if accuracy is None:
        accuracy = default_accuracy(domain)
    series = Series(
        meter,
        domain,
        kind,
        form,
        list(of_time),
        values,
        accuracy,
        contents,
        is_punctual=delay is None,
    )
    if delay is None or len(of_time) < 2:
        return series
    return replace(series, delay=of_form(delay, form, series.period_s))


def _value_of_a_time(values: Sequence[float], form: Form) -> float:
    known = [value for value in values if value == value]
    if not known:
        return math.nan
    if form == "counter":
        return known[-1]
    return statistics.fmean(known)


def of_form(delay: Delay, form: Form, period_s: float) -> Delay:
    """The delay of values that a program computes each `period_s` from readings with a delay."""
    if form == "mean":
        return replace(delay, averages_s=delay.averages_s + period_s)
    if form == "counter":
        # A counter has the energy of a mean when that mean ends, at the latest.
        return replace(
            delay,
            lag_s=delay.lag_s + delay.averages_s,
            lag_within_s=delay.lag_within_s + delay.averages_within_s,
            averages_s=0.0,
            averages_within_s=0.0,
        )
    return delay


def default_accuracy(domain: str) -> float:
    """The accuracy of a log that states none, as a share."""
    return _ACCURACY.get(domain, 0.05)


def usual_longest_s(stays_s: Sequence[float]) -> float:
    """Of sorted times: nine of ten are not longer."""
    return stays_s[-1 - len(stays_s) // 10]


def _of_updates(series: Series) -> Delay:
    """The delay of a counter that a program reads more often than its meter counts."""
    stays_s = times_unchanged_s(list(zip(series.times_s, series.values, strict=True)))
    update_s = 0.0
    if stays_s:
        update_s = usual_longest_s(stays_s)
    if update_s < 1.5 * series.period_s:
        return COUNTER
    most_lag_s = COUNTER.lag_s + COUNTER.lag_within_s + update_s
    return unknown_up_to(most_lag_s, 0.0, f"{COUNTER.source}; it changes each {update_s:g} s")


def of_unknown_program(series: Series) -> Delay:
    """The delay of a log that only its user knows, and of which nobody states one."""
    if series.form == "counter":
        return _of_updates(series)
    return assumed("power_w", series.domain)


def described(
    meter: str,
    domain: str,
    kind: Kind,
    form: Form,
    rows: Rows,
    accuracy: float | None,
    lag_s: float | None,
    averages_s: float | None,
) -> Series:
    """Of a log that only its user knows: an unknown program wrote it, so its readings may be as
    late as those of a BMC, unless the user states their delay. Raises PowerError."""
    series = series_of(meter, domain, kind, form, rows, None, accuracy)
    if len(series.times_s) < 2:
        raise PowerError(f"{meter}: one reading is too few")
    known = of_unknown_program(series)
    if lag_s is not None or averages_s is not None:
        known = stated(known, lag_s, averages_s)
    return replace(series, delay=known)
