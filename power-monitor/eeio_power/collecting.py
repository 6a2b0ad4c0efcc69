"""A meter's readings as they come: judged, kept in columns, counted and waited for."""

import math
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eeio_limits.quantities import COUNTER_SAMPLE, POWER_SAMPLE
from eeio_power.doubts import earlier_readings
from eeio_power.energy import indices_needed
from eeio_power.meters import Channel
from eeio_power.samples import MISSING, MeterInfo, MeterSamples
from eeio_power.stretches import absurdity

# How long start(), energy() and stop() wait at most for meters that have not answered: this many
# periods of the slowest meter and a little for the scheduler.
WAIT_PERIODS = 1.5
WAIT_FLOOR_S = 0.25
# How much more than `keep_s` is kept, before the old samples are dropped in one go.
KEEP_SLACK = 1.25
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
    """Reads whose values differ from the read before, over the same time."""
    reads: int
    failed_reads: int
    """Reads in which at least one channel gave no value."""
    last_error: str | None


@dataclass(frozen=True)
class Awaited:
    """Something a meter's thread or process will bring about, and how long to wait for it."""

    changed: threading.Condition
    holds: Callable[[], bool]
    limit_s: float
    fetch: Callable[[float], None] | None = None
    """Where no thread brings it about: waits so long at most, and fetches what there is."""

    def wait(self, begun_s: float) -> None:
        deadline_s = begun_s + self.limit_s
        if self.fetch is None:
            with self.changed:
                self.changed.wait_for(self.holds, max(0.0, deadline_s - time.monotonic()))
            return
        while not self.holds() and (left_s := deadline_s - time.monotonic()) > 0.0:
            self.fetch(left_s)


def copied(
    info: MeterInfo,
    times_s: Sequence[float],
    columns: Sequence[Sequence[float]],
    start_s: float,
    end_s: float,
) -> MeterSamples:
    """The samples that the energy of a window depends on."""
    low, high = indices_needed(info.channels, times_s, columns, start_s, end_s)
    return MeterSamples(
        info,
        times_s[low:high],
        tuple(column[low:high] for column in columns),
        earlier_readings(info.channels, times_s, columns, start_s),
    )


def is_storable(channel: Channel, value: float) -> bool:
    """Whether a samples file takes the value."""
    return (COUNTER_SAMPLE if channel.quantity == "energy_j" else POWER_SAMPLE).holds(value)


class Column:
    """One meter's samples so far, and what is counted about them. `_changed` guards everything."""

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
        """The period of a counter at `rate_hz`, s, or its own where that is longer.

        None where that is not faster than it is read anyway, and for powers: their readings are
        means of a time of their own, which more of them make no shorter.
        """
        period_s = max(1.0 / rate_hz, self.info.native_period_s)
        return period_s if self._counters_only and period_s < self.info.period_s else None

    def forget_counters(self, before_s: float) -> None:
        """Let go of a counter's readings from before a time; the file has them, or keeps them here.

        No window after that depends on them; what a window of powers depends on may lie before it.
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
            return MeterRates(
                meter=self.info.name,
                native_hz=1.0 / self.info.native_period_s,
                requested_hz=1.0 / self.info.period_s,
                achieved_hz=(self._answered - 1) / elapsed_s if elapsed_s > 0.0 else None,
                distinct_hz=self._distinct / elapsed_s if elapsed_s > 0.0 else None,
                reads=self._reads,
                failed_reads=self._failed,
                last_error=self._last_error,
            )

    def _awaited(self, holds: Callable[[], bool]) -> Awaited:
        limit_s = WAIT_PERIODS * self.info.native_period_s + WAIT_FLOOR_S
        return Awaited(self._changed, holds, limit_s)

    def _is_sampled(self, time_s: float) -> bool:
        """A sample stands at or after `time_s`, or a read begun after it brought none."""
        newest_s = self._times_s[-1] if self._times_s else -math.inf
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
            # Nobody knows when in that time the counter was taken.
            error = f"the read took {done_s - begun_s:.2f} s, longer than the period"
            values = (MISSING,) * len(self._values)
        # What cannot be true is stored as it was read, and left out of each window's energy.
        problems = [*map(absurdity, self.info.channels, values)]
        error = next((problem for problem in problems if problem is not None), error)
        values = tuple(
            value if is_storable(channel, value) else MISSING
            for channel, value in zip(self.info.channels, values, strict=True)
        )
        time_s = (begun_s + done_s) / 2.0 if self._counters_only else done_s
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
            newest_s = self._times_s[-1] if self._times_s else -math.inf
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
        # What the file does not have yet stays.
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
