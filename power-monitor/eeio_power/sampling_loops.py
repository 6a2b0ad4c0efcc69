"""How one meter is sampled: one loop per meter, each at a separate rate.

`MeterLoop` reads a meter in a thread; `BatchLoop` fetches what another process has read;
`LoggedLoop` takes over a log of another program. The sampler treats the three alike.

A meter's incoming readings: checked, stored in columns, counted and waited for.
"""

import math
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from eeio.units.quantities import COUNTER_SAMPLE, POWER_SAMPLE
from eeio_power.energy import indices_needed
from eeio_power.errors import PowerError
from eeio_power.false_readings import earlier_readings
from eeio_power.meters import Batch, Batches, Channel, LoggedMeter, Meter, PacedBatches
from eeio_power.renewals import renewal_s
from eeio_power.resolution import written_step_w
from eeio_power.samples import MISSING, MeterInfo, MeterSamples
from eeio_power.window_readings import absurdity, possible_w

# How long start(), energy() and stop() wait at most for meters that have not answered: this many
# periods of the slowest meter and a little for the scheduler.
WAIT_PERIODS = 1.5
WAIT_FLOOR_S = 0.25
# How much beyond `keep_s` is stored before the old samples are dropped at once.
KEEP_SLACK = 1.25
# How far the clock of a log may be ahead. A lead below the time between two readings is in the
# uncertainty of the edges.
CLOCK_WITHIN_S = 0.5
# The last readings of a log, which show how often its values really change.
JUDGED_READINGS = 20_000
Clock = Callable[[], float]


@dataclass(frozen=True)
class MeterRates:
    """How often a meter was read, and how often it had something new to say; rates in Hz."""

    meter: str
    native_hz: float
    requested_hz: float
    achieved_hz: float | None
    """Reads that gave a value, over the time from first to last; None before the second one."""
    distinct_hz: float | None
    """Reads with a value different from the read before, over the same time."""
    reads: int
    failed_reads: int
    """Reads in which at least one channel gave no value."""
    last_error: str | None


@dataclass(frozen=True)
class Awaited:
    """Something a meter's thread or process will bring about, and how long to wait for it."""

    changed: threading.Condition
    condition: Callable[[], bool]
    limit_s: float
    fetch: Callable[[float], None] | None = None
    """Without a thread: waits so long at most, and fetches the available readings."""

    def wait(self, begun_s: float) -> None:
        deadline_s = begun_s + self.limit_s
        if self.fetch is None:
            with self.changed:
                self.changed.wait_for(self.condition, max(0.0, deadline_s - time.monotonic()))
            return
        while not self.condition() and (left_s := deadline_s - time.monotonic()) > 0.0:
            self.fetch(left_s)


def copied(
    info: MeterInfo,
    times_s: Sequence[float],
    columns: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> MeterSamples:
    """The samples that the energy of a window depends on."""
    low, high = indices_needed(
        info.channels, times_s, columns, info.period_s, info.native_period_s, start_s, end_s
    )
    return MeterSamples(
        info,
        times_s[low:high],
        tuple(column[low:high] for column in columns),
        earlier_readings(info.channels, times_s, columns, start_s),
    )


def is_storable(channel: Channel, value: float) -> bool:
    """Whether a samples file takes the value."""
    return (COUNTER_SAMPLE if channel.quantity == "energy_j" else POWER_SAMPLE).contains(value)


def _are_possible(channel: Channel, values: Sequence[float]) -> bool:
    """Whether all are powers that the channel can draw, and that a samples file takes."""
    if channel.quantity == "energy_j" or not values:
        return channel.quantity != "energy_j"
    least_w, most_w = possible_w(channel)
    least, most = min(values), max(values)
    is_possible = least_w <= least and most <= most_w
    return is_possible and is_storable(channel, least) and is_storable(channel, most)


class Column:
    """One meter's samples so far, and their statistics. `_changed` guards everything."""

    def __init__(self, info: MeterInfo, clock: Clock, keep_s: float) -> None:
        self.info = info
        self._clock = clock
        self._keep_s = keep_s
        self._forgotten = 0
        self._taken = 0
        self._changed = threading.Condition()
        self._times_s = array("d")
        self._values = tuple(array("d") for _ in info.channels)
        self._last_begun_s = -math.inf
        self._ended = False
        self._reads = 0
        self._answered = 0
        self._distinct = 0
        self._failed = 0
        self._first_answer_s: float | None = None
        self._last_answer_s: float | None = None
        self._last_values: tuple[float, ...] | None = None
        self._last_error: str | None = None
        # A counter's value belongs to the middle of the read; a power reading is the mean of the
        # time up to its arrival.
        self._counters_only = all(c.quantity == "energy_j" for c in info.channels)

    def has_sampled(self, time_s: float) -> Awaited:
        return self._awaited(lambda: self._is_sampled(time_s) or self._ended)

    @property
    def has_answered(self) -> Awaited:
        return self._awaited(lambda: self._reads > 0 or self._ended)

    def faster_period_s(self, rate_hz: float) -> float | None:
        """The period of a counter at `rate_hz`, s, or its native period if that is longer.

        None if that is not faster than its present rate, and for powers: their readings average a
        fixed time, which faster reading does not shorten.
        """
        period_s = max(1.0 / rate_hz, self.info.native_period_s)
        if self._counters_only and period_s < self.info.period_s:
            return period_s
        return None

    def forget_counters(self, before_s: float) -> None:
        """Drops a counter's readings from before a time that are in the file.

        No later window depends on them; a window of powers may depend on earlier readings.
        """
        with self._changed:
            if self._counters_only:
                self._drop(before_s)

    def samples_from(self, first: int) -> list[tuple[float, tuple[float, ...]]]:
        """The reads from the `first` one on, as (monotonic s, values)."""
        with self._changed:
            self._taken = self._forgotten + len(self._times_s)
            return [
                (self._times_s[i], tuple(column[i] for column in self._values))
                for i in range(first - self._forgotten, len(self._times_s))
            ]

    def snapshot(self, start_s: float = -math.inf, end_s: float = math.inf) -> MeterSamples:
        """A copy of the samples; with a window of those that its energy depends on."""
        with self._changed:
            return copied(self.info, self._times_s, self._values, start_s, end_s)

    def rates(self) -> MeterRates:
        with self._changed:
            elapsed_s = (self._last_answer_s or 0.0) - (self._first_answer_s or 0.0)
            achieved_hz = None
            distinct_hz = None
            if elapsed_s > 0.0:
                achieved_hz = (self._answered - 1) / elapsed_s
                distinct_hz = self._distinct / elapsed_s
            return MeterRates(
                meter=self.info.name,
                native_hz=1.0 / self.info.native_period_s,
                requested_hz=1.0 / self.info.period_s,
                achieved_hz=achieved_hz,
                distinct_hz=distinct_hz,
                reads=self._reads,
                failed_reads=self._failed,
                last_error=self._last_error,
            )

    def _awaited(self, condition: Callable[[], bool]) -> Awaited:
        limit_s = WAIT_PERIODS * self.info.native_period_s + WAIT_FLOOR_S
        return Awaited(self._changed, condition, limit_s)

    def _is_sampled(self, time_s: float) -> bool:
        """A sample exists at or after `time_s`, or a read begun after it brought none."""
        newest_s = -math.inf
        if self._times_s:
            newest_s = self._times_s[-1]
        return max(newest_s, self._last_begun_s) >= time_s

    def _take(
        self, begun_s: float, done_s: float, values: tuple[float, ...], error: str | None
    ) -> bool:
        """Judge one read and keep it; whether any channel gave a value."""
        if len(values) != len(self._values):
            error = f"{len(values)} values for {len(self._values)} channels"
            values = (MISSING,) * len(self._values)
        late_s = max(self.info.period_s, WAIT_FLOOR_S)
        if self._counters_only and done_s - begun_s > late_s:
            # The time of the counter's value within the read is unknown.
            error = f"the read took {done_s - begun_s:.2f} s, longer than the period"
            values = (MISSING,) * len(self._values)
        # Impossible values are stored as read, and left out of each window's energy.
        problems = [*map(absurdity, self.info.channels, values)]
        error = next((problem for problem in problems if problem is not None), error)
        values = tuple(
            value if is_storable(channel, value) else MISSING
            for channel, value in zip(self.info.channels, values, strict=True)
        )
        time_s = done_s
        if self._counters_only:
            time_s = (begun_s + done_s) / 2.0
        usable = [p is None and v == v for p, v in zip(problems, values, strict=True)]
        self._store(begun_s, time_s, values, usable, error)
        return any(usable)

    def _store(
        self,
        begun_s: float,
        time_s: float,
        values: tuple[float, ...],
        usable: Sequence[bool],
        error: str | None,
    ) -> None:
        missing = [c.name for c, ok in zip(self.info.channels, usable, strict=True) if not ok]
        with self._changed:
            newest_s = -math.inf
            if self._times_s:
                newest_s = self._times_s[-1]
            # Microseconds are enough, and make the file short and exact.
            time_s = max(round(time_s, 6), round(newest_s + 1e-6, 6))
            self._times_s.append(time_s)
            for column, value in zip(self._values, values, strict=True):
                column.append(value)
            self._reads += 1
            self._last_begun_s = begun_s
            if missing:
                self._failed += 1
                self._last_error = error or f"no value from {', '.join(missing)}"
            if len(missing) < len(values):
                self._note_answer(time_s, values)
            self._forget(time_s)
            self._changed.notify_all()

    def _forget(self, now_s: float) -> None:
        if now_s - self._times_s[0] <= KEEP_SLACK * self._keep_s:
            return
        self._drop(now_s - self._keep_s)

    def _drop(self, before_s: float) -> None:
        # Samples that are not in the file yet stay.
        written = self._taken - self._forgotten
        old = min(bisect_left(self._times_s, before_s), written)
        for column in (self._times_s, *self._values):
            del column[:old]
        self._forgotten += old

    def _note_answer(self, time_s: float, values: tuple[float, ...]) -> None:
        self._answered += 1
        if self._first_answer_s is None:
            self._first_answer_s = time_s
        elif values != self._last_values:
            self._distinct += 1
        self._last_answer_s = time_s
        self._last_values = values


# How long a thread waits at most for readings that another thread may fetch.
FETCH_PERIOD_S = 0.02


def next_deadline(deadline_s: float, now_s: float, period_s: float) -> float:
    """The first beat of the grid `deadline_s + k period_s` (k >= 1) that is not over yet.

    Beats missed by a slow read are skipped, not made up for, and the grid does not drift.
    """
    missed = math.floor(max(0.0, now_s - deadline_s) / period_s)
    return deadline_s + (missed + 1) * period_s


class MeterLoop(Column):
    """Reads one meter in a separate thread."""

    def __init__(
        self, meter: Meter, info: MeterInfo, clock: Clock, keep_s: float = math.inf
    ) -> None:
        super().__init__(info, clock, keep_s)
        self._meter = meter
        self._paces_itself = bool(getattr(meter, "paces_itself", False))
        self._thread = threading.Thread(
            target=self._run, name=f"eeio-power-{info.name}", daemon=True
        )
        self._reading_since_s: float | None = None
        self._sample_wanted = False
        self._stop_wanted = False
        self._period_s = info.period_s
        self._new_beat = False

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        with self._changed:
            self._stop_wanted = True
            self._changed.notify_all()

    def close(self) -> None:
        """No file is left open: the thread of a stalled meter ends with its read."""

    def request_sample(self, time_s: float) -> bool:
        """Ask for a sample at or after `time_s`; False if there is one or the meter is stalled."""
        with self._changed:
            if self._is_sampled(time_s) or self._is_stalled():
                return False
            self._sample_wanted = True
            self._changed.notify_all()
            return True

    def nudge(self) -> None:
        """Request a reading as soon as possible, without waiting for it."""
        with self._changed:
            self._sample_wanted = True
            self._changed.notify_all()

    def set_period(self, period_s: float | None) -> None:
        """Read so often from now on; None: as at the start."""
        with self._changed:
            self._period_s = period_s or self.info.period_s
            self._new_beat = True
            self._changed.notify_all()

    @property
    def has_ended(self) -> Awaited:
        stalled = self._is_stalled()
        return self._awaited(lambda: self._ended or stalled)

    def _is_stalled(self) -> bool:
        since_s = self._reading_since_s
        limit_s = WAIT_PERIODS * self.info.native_period_s + WAIT_FLOOR_S
        return since_s is not None and self._clock() - since_s > limit_s

    def _run(self) -> None:
        deadline_s = self._clock()
        extra = last_one = False
        while True:
            answered = self._read_once()
            if last_one:
                break
            if self._paces_itself and answered:
                # It waited for its reading; the next one is on its way.
                with self._changed:
                    self._sample_wanted = False
                    last_one = self._stop_wanted
                continue
            if not extra:  # an extra read must not swallow the beat it comes before
                deadline_s = next_deadline(deadline_s, self._clock(), self._period_s)
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stop_wanted or self._sample_wanted or self._new_beat,
                    timeout=max(0.0, deadline_s - self._clock()),
                )
                extra, self._sample_wanted = self._sample_wanted, False
                if self._new_beat:
                    extra, self._new_beat = False, False
                    deadline_s = self._clock()
                last_one = self._stop_wanted
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_once(self) -> bool:
        """Whether any channel gave a value."""
        begun_s = self._clock()
        with self._changed:
            self._reading_since_s = begun_s
        error: str | None = None
        values: tuple[float, ...] = (MISSING,) * len(self._values)
        try:
            values = tuple(MISSING if v is None else float(v) for v in self._meter.read())
            if any(map(math.isnan, values)):
                error = getattr(self._meter, "complaint", None)
        # A meter is a plug-in: any exception is a failed read, reported by rates().
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        done_s = self._clock()
        with self._changed:
            self._reading_since_s = None
        return self._take(begun_s, done_s, values, error)


class BatchLoop(Column):
    """Fetches readings of another process without a thread: the sampler's writer calls it."""

    def __init__(
        self, batches: Batches, info: MeterInfo, clock: Clock, keep_s: float = math.inf
    ) -> None:
        super().__init__(info, clock, keep_s)
        self._batches = batches

    def start(self) -> None:
        try:
            self._batches.start()
        except OSError as error:
            self._failed_fetch(f"{type(error).__name__}: {error}")

    def request_stop(self) -> None:
        with self._changed:
            self._fetch()
            self._batches.finish()

    def request_sample(self, time_s: float) -> bool:
        """Ask for a sample at or after `time_s`; False if there is one or the process is silent."""
        with self._changed:
            self._fetch()
            if self._is_sampled(time_s) or self._is_silent():
                return False
            self._batches.sample_now()
            return True

    def nudge(self) -> None:
        """Request a reading as soon as possible, without waiting for it."""
        with self._changed:
            self._batches.sample_now()

    def set_period(self, period_s: float | None) -> None:
        """Read so often from now on, if the process can; None: as at the start."""
        with self._changed:
            if isinstance(self._batches, PacedBatches):
                self._batches.set_period(period_s)

    @property
    def has_ended(self) -> Awaited:
        return self._awaited(lambda: self._batches.ended)

    def close(self) -> None:
        """End a process that has not ended by itself."""
        with self._changed:
            self._batches.kill()

    def samples_from(self, first: int) -> list[tuple[float, tuple[float, ...]]]:
        with self._changed:
            self._fetch()
            return super().samples_from(first)

    def snapshot(self, start_s: float = -math.inf, end_s: float = math.inf) -> MeterSamples:
        with self._changed:
            self._fetch()
            return super().snapshot(start_s, end_s)

    def rates(self) -> MeterRates:
        with self._changed:
            self._fetch()
            return super().rates()

    def _awaited(self, condition: Callable[[], bool]) -> Awaited:
        return replace(super()._awaited(condition), fetch=self._wait_and_fetch)

    def _wait_and_fetch(self, limit_s: float) -> None:
        # Another thread may fetch the awaited readings: this one checks again soon.
        self._batches.wait(min(limit_s, FETCH_PERIOD_S))
        with self._changed:
            self._fetch()

    def _is_silent(self) -> bool:
        limit_s = WAIT_PERIODS * self.info.period_s + WAIT_FLOOR_S
        return bool(self._times_s) and self._clock() - self._times_s[-1] > limit_s

    def _fetch(self) -> None:
        try:
            batch = self._batches.fetch()
        except PowerError as error:
            self._failed_fetch(str(error))
            return
        if self._is_plain(batch):
            self._take_all(batch)
            return
        for k, values in enumerate(zip(*batch.columns, strict=True)):
            unread = None
            if any(map(math.isnan, values)):
                unread = "a counter cannot be read"
            problem = batch.problems.get(k, unread)
            self._take(batch.begun_s[k], batch.done_s[k], values, problem)

    def _is_plain(self, batch: Batch) -> bool:
        """No reading is missing, late or impossible: the normal case, and cheap to store."""
        newest_s = -math.inf
        if self._times_s:
            newest_s = self._times_s[-1]
        late_s = max(self.info.period_s, WAIT_FLOOR_S)
        is_counter = self._counters_only
        return (
            not batch.problems
            # Half a rounding step apart, or more.
            and all(b - a > 1e-6 for a, b in pairwise((newest_s, *batch.begun_s)))
            and (
                not is_counter
                or all(b - a <= late_s for a, b in zip(batch.begun_s, batch.done_s, strict=True))
            )
            and not any(math.isnan(sum(column)) for column in batch.columns)
            and (is_counter or all(map(_are_possible, self.info.channels, batch.columns)))
        )

    def _take_all(self, batch: Batch) -> None:
        """Like `_take` for every reading of the batch, at a quarter of its cost."""
        rows = list(zip(*batch.columns, strict=True))
        if not rows:
            return
        times_s = [round(time_s, 6) for time_s in batch.done_s]
        if self._counters_only:
            times_s = []
            for a, b in zip(batch.begun_s, batch.done_s, strict=True):
                times_s.append(round((a + b) / 2.0, 6))
        self._times_s.extend(times_s)
        for column, values in zip(self._values, batch.columns, strict=True):
            column.extend(values)
        self._reads += len(rows)
        self._last_begun_s = batch.begun_s[-1]
        self._answered += len(rows)
        if self._first_answer_s is None:
            self._first_answer_s, self._last_values = times_s[0], rows[0]
        self._distinct += sum(a != b for a, b in pairwise((self._last_values, *rows)))
        self._last_answer_s, self._last_values = times_s[-1], rows[-1]
        self._forget(times_s[-1])

    def _failed_fetch(self, error: str) -> None:
        now_s = self._clock()
        self._last_error = error
        # A process that is started again within a period has missed no reading.
        if self._reads == 0 or now_s - self._times_s[-1] > self.info.period_s:
            self._take(now_s, now_s, (MISSING,) * len(self._values), error)


class LoggedLoop:
    """A meter with a log from another program: no thread; the log is read when it is needed.

    Its readings reach the samples file when a window is requested and at the end.
    """

    def __init__(self, meter: LoggedMeter, info: MeterInfo, clock: Clock) -> None:
        self._meter = meter
        self.info = info
        self._clock = clock
        self._changed = threading.Condition()
        self._started_s = math.inf
        self._times_s = array("d")
        self._values = tuple(array("d") for _ in info.channels)
        self._last_error: str | None = None
        self._ahead_s = -math.inf
        self._judged = 0
        """Readings of the log when it was judged."""
        self._renewals_s: tuple[float | None, ...] = (None,) * len(info.channels)
        self._resolutions: tuple[float, ...] = (0.0,) * len(info.channels)

    def start(self) -> None:
        self._started_s = self._clock()

    def request_stop(self) -> None:
        self._refresh()

    def close(self) -> None:
        """The log belongs to another program."""

    def request_sample(self, time_s: float) -> bool:
        return False

    def has_sampled(self, time_s: float) -> Awaited:
        """The log is complete up to a time when that is over."""
        return Awaited(self._changed, lambda: self._clock() >= time_s, 0.0)

    @property
    def has_answered(self) -> Awaited:
        return self._ready()

    @property
    def has_ended(self) -> Awaited:
        return self._ready()

    def samples_from(self, first: int) -> list[tuple[float, tuple[float, ...]]]:
        with self._changed:
            return [
                (self._times_s[i], tuple(column[i] for column in self._values))
                for i in range(first, len(self._times_s))
            ]

    def snapshot(self, start_s: float = -math.inf, end_s: float = math.inf) -> MeterSamples:
        self._refresh()
        with self._changed:
            channels = []
            for channel, each_s, logged in zip(
                self.info.channels, self._renewals_s, self._resolutions, strict=True
            ):
                doubt = self._doubt(channel, each_s)
                resolution = max(channel.resolution, logged)
                channels.append(replace(channel, doubt=doubt, resolution=resolution))
            info = replace(self.info, channels=tuple(channels))
            return copied(info, self._times_s, self._values, start_s, end_s)

    def rates(self) -> MeterRates:
        with self._changed:
            times_s, columns = self._times_s, self._values
            rows = list(zip(*columns, strict=True))
            elapsed_s = 0.0
            if times_s:
                elapsed_s = times_s[-1] - times_s[0]
            distinct = sum(1 for a, b in pairwise(rows) if a != b)
            failed = sum(1 for row in rows if any(map(math.isnan, row)))
            achieved_hz = None
            distinct_hz = None
            if elapsed_s > 0.0:
                achieved_hz = (len(rows) - 1) / elapsed_s
                distinct_hz = distinct / elapsed_s
            return MeterRates(
                meter=self.info.name,
                native_hz=1.0 / self.info.native_period_s,
                requested_hz=1.0 / self.info.native_period_s,
                achieved_hz=achieved_hz,
                distinct_hz=distinct_hz,
                reads=len(rows),
                failed_reads=failed,
                last_error=self._last_error,
            )

    def _ready(self) -> Awaited:
        return Awaited(self._changed, lambda: True, 0.0)

    def _misfit(self, times_s: Sequence[float]) -> str | None:
        """The problem with a log without values since the start."""
        if not times_s or self._started_s == math.inf:
            return None
        early_s, late_s = self._started_s - times_s[-1], times_s[0] - self._clock()
        off_s = max(early_s, late_s)
        if off_s <= 0.0:
            return None
        where = "begins after now"
        if off_s == early_s:
            where = "ends before the run began"
        return f"its log {where}, by {off_s:.1f} s ({off_s / 3600:.2f} h): check tz= and offset_s="

    def _doubt(self, channel: Channel, each_s: float | None) -> str | None:
        """Why its energies are doubtful; `each_s`: how often its values really change."""
        if self._ahead_s > max(CLOCK_WITHIN_S, self.info.native_period_s):
            return (
                f"{channel.name}: a reading of the log was {self._ahead_s:.1f} s in the future, so "
                "its clock is ahead by at least that: state offset_s="
            )
        longest_mean_s = self.info.native_period_s
        if channel.delay is not None:
            longest_mean_s = channel.delay.longest_s
        if each_s is not None and each_s > longest_mean_s:
            return (
                f"{channel.name}: the log has a line each {self.info.native_period_s:g} s, but its "
                f"values change each {each_s:.3g} s only: state lag_s= and averages_s= of meter "
                "and logger together"
            )
        return channel.doubt

    def _judge(self, times_s: Sequence[float], columns: Sequence[Sequence[float]]) -> None:
        """Note how far the log is ahead of now, how often its values change, and their steps."""
        if times_s:
            self._ahead_s = max(self._ahead_s, times_s[-1] - self._clock())
        if len(times_s) == self._judged:
            return
        self._judged = len(times_s)
        renewals_s: list[float | None] = []
        resolutions = []
        for channel, values in zip(self.info.channels, columns, strict=True):
            each_s: float | None = None
            resolution: float | None = 0.0
            if channel.quantity == "power_w":
                # A log with few values at its start may show its step later.
                resolution = getattr(self._meter, "resolution_w", None)
                if resolution is None and not channel.resolution:
                    resolution = written_step_w(values)
                averages_s = 0.0
                if channel.delay is not None:
                    averages_s = channel.delay.averages_s
                each_s = renewal_s(
                    times_s[-JUDGED_READINGS:],
                    values[-JUDGED_READINGS:],
                    self.info.native_period_s,
                    averages_s,
                )
            renewals_s.append(each_s)
            resolutions.append(resolution or 0.0)
        self._renewals_s, self._resolutions = tuple(renewals_s), tuple(resolutions)

    def _refresh(self) -> None:
        """Append new readings of the log; two readings before the start are enough."""
        try:
            times_s, columns = self._meter.logged()
        except PowerError as error:
            with self._changed:
                self._last_error = str(error)
            return
        with self._changed:
            self._last_error = self._misfit(times_s)
            self._judge(times_s, columns)
            if self._times_s:
                low = bisect_right(times_s, self._times_s[-1])
            else:
                low = max(0, bisect_left(times_s, self._started_s) - 2)
            for time_s in times_s[low:]:
                # For a log that repeats a time, as for readings of other meters.
                newest_s = -math.inf
                if self._times_s:
                    newest_s = self._times_s[-1]
                self._times_s.append(max(time_s, newest_s + 1e-6))
            for channel, mine, theirs in zip(
                self.info.channels, self._values, columns, strict=True
            ):
                for value in theirs[low:]:
                    self._last_error = absurdity(channel, value) or self._last_error
                    mine.append(value if is_storable(channel, value) else MISSING)


Loop = MeterLoop | BatchLoop | LoggedLoop
