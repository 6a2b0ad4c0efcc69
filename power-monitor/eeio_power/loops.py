"""How the samples of one meter come about: one loop a meter, each at a pace of its own.

`MeterLoop` reads a meter in a thread; `BatchLoop` fetches what another process has read;
`LoggedLoop` takes over a log that somebody else writes. The sampler treats the three alike.
"""

import math
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from eeio_power.collecting import (
    WAIT_FLOOR_S,
    WAIT_PERIODS,
    Awaited,
    Clock,
    Column,
    MeterRates,
    copied,
    is_storable,
)
from eeio_power.errors import PowerError
from eeio_power.meters import Batch, Batches, LoggedMeter, Meter, PacedBatches
from eeio_power.samples import MISSING, MeterInfo, MeterSamples
from eeio_power.stretches import absurdity

# How long a thread waits at most for readings that another thread may fetch.
FETCH_PERIOD_S = 0.02


def next_deadline(deadline_s: float, now_s: float, period_s: float) -> float:
    """The first beat of the grid `deadline_s + k period_s` (k >= 1) that is not over yet.

    Beats missed by a slow read are skipped, not made up for, and the grid does not drift.
    """
    missed = math.floor(max(0.0, now_s - deadline_s) / period_s)
    return deadline_s + (missed + 1) * period_s


class MeterLoop(Column):
    """Reads one meter in a thread of its own."""

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
        """Nothing is held open: the thread of a stalled meter ends with its read."""

    def request_sample(self, time_s: float) -> bool:
        """Ask for a sample at or after `time_s`; False if there is one or the meter is stalled."""
        with self._changed:
            if self._is_sampled(time_s) or self._is_stalled():
                return False
            self._sample_wanted = True
            self._changed.notify_all()
            return True

    def nudge(self) -> None:
        """Ask for a reading as soon as may be; nobody waits for it."""
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
        # A meter is a plug-in: whatever it raises is a failed read, told through rates().
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        done_s = self._clock()
        with self._changed:
            self._reading_since_s = None
        return self._take(begun_s, done_s, values, error)


class BatchLoop(Column):
    """Fetches what another process reads; no thread: the sampler's writer comes by."""

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
        """Ask for a reading as soon as may be; nobody waits for it."""
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

    def _awaited(self, holds: Callable[[], bool]) -> Awaited:
        return replace(super()._awaited(holds), fetch=self._wait_and_fetch)

    def _wait_and_fetch(self, limit_s: float) -> None:
        # Another thread may fetch what this one waits for: it looks again soon.
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
            unread = "a counter cannot be read" if any(map(math.isnan, values)) else None
            problem = batch.problems.get(k, unread)
            self._take(batch.begun_s[k], batch.done_s[k], values, problem)

    def _is_plain(self, batch: Batch) -> bool:
        """Nothing is missing or late: what every batch should be, and is cheap to keep."""
        newest_s = self._times_s[-1] if self._times_s else -math.inf
        late_s = max(self.info.period_s, WAIT_FLOOR_S)
        return (
            self._counters_only
            # Half a rounding step apart, or more.
            and all(b - a > 1e-6 for a, b in pairwise((newest_s, *batch.begun_s)))
            and all(b - a <= late_s for a, b in zip(batch.begun_s, batch.done_s, strict=True))
            and not any(math.isnan(sum(column)) for column in batch.columns)
        )

    def _take_all(self, batch: Batch) -> None:
        """Like `_take` for every reading of the batch, at a quarter of its cost."""
        rows = list(zip(*batch.columns, strict=True))
        if not rows:
            return
        times_s = [
            round((a + b) / 2.0, 6) for a, b in zip(batch.begun_s, batch.done_s, strict=True)
        ]
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
        if self._reads == 0 or now_s - self._times_s[-1] > self.info.period_s:
            self._take(now_s, now_s, (MISSING,) * len(self._values), error)


class LoggedLoop:
    """A meter whose log somebody else writes: no thread; the log is read when it is needed.

    Its readings reach the samples file when a window is asked for and at the end.
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

    def start(self) -> None:
        self._started_s = self._clock()

    def request_stop(self) -> None:
        self._refresh()

    def close(self) -> None:
        """The log is not ours."""

    def request_sample(self, time_s: float) -> bool:
        return False

    def has_sampled(self, time_s: float) -> Awaited:
        return self._ready()

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
            return copied(self.info, self._times_s, self._values, start_s, end_s)

    def rates(self) -> MeterRates:
        with self._changed:
            times_s, columns = self._times_s, self._values
            rows = list(zip(*columns, strict=True))
            elapsed_s = times_s[-1] - times_s[0] if times_s else 0.0
            distinct = sum(1 for a, b in pairwise(rows) if a != b)
            failed = sum(1 for row in rows if any(map(math.isnan, row)))
            return MeterRates(
                meter=self.info.name,
                native_hz=1.0 / self.info.native_period_s,
                requested_hz=1.0 / self.info.native_period_s,
                achieved_hz=(len(rows) - 1) / elapsed_s if elapsed_s > 0.0 else None,
                distinct_hz=distinct / elapsed_s if elapsed_s > 0.0 else None,
                reads=len(rows),
                failed_reads=failed,
                last_error=self._last_error,
            )

    def _ready(self) -> Awaited:
        return Awaited(self._changed, lambda: True, 0.0)

    def _misfit(self, times_s: Sequence[float]) -> str | None:
        """What is wrong with a log that has nothing about the time since the start."""
        if not times_s or self._started_s == math.inf:
            return None
        early_s, late_s = self._started_s - times_s[-1], times_s[0] - self._clock()
        off_s = max(early_s, late_s)
        if off_s <= 0.0:
            return None
        where = "ends before the run began" if off_s == early_s else "begins after now"
        return f"its log {where}, by {off_s:.1f} s ({off_s / 3600:.2f} h): check tz= and offset_s="

    def _refresh(self) -> None:
        """Append what the log has that we have not; two readings before the start are enough."""
        try:
            times_s, columns = self._meter.logged()
        except PowerError as error:
            with self._changed:
                self._last_error = str(error)
            return
        with self._changed:
            self._last_error = self._misfit(times_s)
            if self._times_s:
                low = bisect_right(times_s, self._times_s[-1])
            else:
                low = max(0, bisect_left(times_s, self._started_s) - 2)
            for time_s in times_s[low:]:
                # Of a log that repeats a time; as readings of other meters are told apart.
                newest_s = self._times_s[-1] if self._times_s else -math.inf
                self._times_s.append(max(time_s, newest_s + 1e-6))
            for channel, mine, theirs in zip(
                self.info.channels, self._values, columns, strict=True
            ):
                for value in theirs[low:]:
                    self._last_error = absurdity(channel, value) or self._last_error
                    mine.append(value if is_storable(channel, value) else MISSING)


Loop = MeterLoop | BatchLoop | LoggedLoop
