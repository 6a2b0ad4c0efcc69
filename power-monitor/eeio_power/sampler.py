"""Sample several meters at once, each in a thread of its own, and keep every sample.

    with Sampler(open_meters(["auto"]), Path("power.csv.gz")) as sampler:
        start_s = time.monotonic()
        ...
        readings = sampler.energy(start_s, time.monotonic())

The sampler reads meters; it does not close them, so that one set serves many runs
(`eeio_power.meters.close_meters`).
"""

import math
import threading
import time
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import FileIO
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from eeio_power.errors import PowerError
from eeio_power.meters import Channel, LoggedMeter, Meter
from eeio_power.reading import EnergyReading
from eeio_power.samples import (
    GZIP_WBITS,
    MISSING,
    MeterInfo,
    MeterSamples,
    Samples,
    header_line,
    meter_info,
    sample_line,
)

FLUSH_PERIOD_S = 1.0

# How long stop() waits for a disk that does not take the last samples.
LAST_WRITE_S = 30.0

# How long start(), energy() and stop() wait at most for meters that have not answered: this many
# periods of the slowest meter and a little for the scheduler.
WAIT_PERIODS = 1.5
WAIT_FLOOR_S = 0.25

# How much more than `keep_s` is kept, before the old samples are dropped in one go.
KEEP_SLACK = 1.25

# More than this no single machine draws, W: such a reading is noise, or in another unit.
ABSURD_POWER_W = 100e3

# An idle sensor may fall this many quanta below zero before its reading is called negative.
NEGATIVE_QUANTA = 10.0

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


def next_deadline(deadline_s: float, now_s: float, period_s: float) -> float:
    """The first beat of the grid `deadline_s + k period_s` (k >= 1) that is not over yet.

    Beats missed by a slow read are skipped, not made up for, and the grid does not drift.
    """
    missed = math.floor(max(0.0, now_s - deadline_s) / period_s)
    return deadline_s + (missed + 1) * period_s


def absurdity(channel: Channel, value: float) -> str | None:
    """Why the value cannot be true, None if it can (or is missing).

    Counters are judged by their steps: see `eeio_power.energy`.
    """
    if math.isnan(value):
        return None
    if channel.quantity == "energy_j":
        return None if math.isfinite(value) else f"{channel.name}: {value} J is no energy"
    if value < -NEGATIVE_QUANTA * channel.resolution:
        return f"{channel.name}: {value:g} W is negative: is its clamp or shunt turned round?"
    most_w = channel.max_power_w or ABSURD_POWER_W
    if value > most_w:
        return f"{channel.name}: {value:g} W is more than the {most_w:g} W it can draw"
    return None


class Sampler:
    """Reads each meter at min(`rate_hz`, its native rate); streams all samples to `path`.

    A stalled meter holds up nothing but its own samples. Raises PowerError for a rate that is not
    positive; `start` raises it if the file cannot be written or if it was started before.
    With `keep_s` only that many seconds stay in memory, for a sampler that never ends; the file
    holds everything.
    """

    def __init__(
        self,
        meters: Sequence[Meter],
        path: Path,
        rate_hz: float = 10.0,
        *,
        clock: Clock = time.monotonic,
        keep_s: float = math.inf,
    ) -> None:
        if not 0.0 < rate_hz < math.inf:
            raise PowerError(f"a sampling rate of {rate_hz} Hz cannot be; give a positive number")
        self.path = path
        self._clock = clock
        self._loops: list[_MeterLoop | _LoggedLoop] = [
            _LoggedLoop(meter, meter_info(meter, rate_hz), clock)
            if isinstance(meter, LoggedMeter)
            else _MeterLoop(meter, meter_info(meter, rate_hz), clock, keep_s)
            for meter in meters
        ]
        self._stream: _Stream | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start sampling; returns when every meter was read once.

        A meter that does not answer is waited for about one and a half of its periods.
        """
        if self._stream is not None:
            raise PowerError(f"{self.path}: this sampler was started before; make a new one")
        self._stream = _Stream(self.path, self._loops, self._clock)
        for loop in self._loops:
            loop.start()
        self._wait([loop.has_answered for loop in self._loops])
        self._stream.start()

    def stop(self) -> None:
        """Read every meter a last time, stop, and finish the file. May be called twice.

        The thread of a stalled meter is left behind; it ends with its read.
        """
        if self._stream is None or self._stopped:
            return
        self._stopped = True
        for loop in self._loops:
            loop.request_stop()
        self._wait([loop.has_ended for loop in self._loops])
        self._stream.stop()

    def energy(self, start_s: float, end_s: float) -> list[EnergyReading]:
        """The energy between two times of the monotonic clock, one reading a meter and domain.

        A meter whose last sample is older than `end_s` is asked for one more, so that the window
        is clipped exactly. A stalled one is not waited for; one that does not answer is waited
        for about one and a half of its periods.
        """
        if self._stream is not None and not self._stopped and end_s <= self._clock():
            waiting = [loop for loop in self._loops if loop.request_sample(end_s)]
            self._wait([loop.has_sampled(end_s) for loop in waiting])
        samples = self.samples()
        errors = {rate.meter: rate.last_error for rate in self.rates()}
        return [
            _with_last_error(reading, errors[reading.meter])
            for reading in samples.energy(start_s, end_s)
        ]

    def samples(self) -> Samples:
        """A copy of all samples so far."""
        return Samples(meters=tuple(loop.snapshot() for loop in self._loops))

    def rates(self) -> list[MeterRates]:
        """Native, requested, achieved and distinct-value rates, and failed reads, of each meter."""
        return [loop.rates() for loop in self._loops]

    @property
    def errors(self) -> dict[str, int]:
        """Failed reads of each meter, by meter name."""
        return {rate.meter: rate.failed_reads for rate in self.rates()}

    @property
    def write_error(self) -> str | None:
        """Why samples are missing from the file (disk full, say); None while it is whole.

        Sampling goes on in memory, and what could not be written is tried again every second.
        """
        return None if self._stream is None else self._stream.error

    def _wait(self, conditions: Sequence["_Awaited"]) -> None:
        """Wait for all conditions, each up to its own limit, all limits running at once."""
        begun_s = time.monotonic()
        for awaited in conditions:
            awaited.wait(begun_s)


def _with_last_error(reading: EnergyReading, error: str | None) -> EnergyReading:
    """An invalid reading says what the meter complained about last."""
    if reading.valid or error is None:
        return reading
    return replace(reading, reasons=(*reading.reasons, f"{reading.meter}: {error}"))


@dataclass(frozen=True)
class _Awaited:
    """Something a meter's thread will bring about, and how long to wait for it."""

    changed: threading.Condition
    holds: Callable[[], bool]
    limit_s: float

    def wait(self, begun_s: float) -> None:
        with self.changed:
            left_s = begun_s + self.limit_s - time.monotonic()
            self.changed.wait_for(self.holds, timeout=max(0.0, left_s))


class _MeterLoop:
    """One meter's thread and samples. `_changed` guards everything that changes."""

    def __init__(
        self, meter: Meter, info: MeterInfo, clock: Clock, keep_s: float = math.inf
    ) -> None:
        self._meter = meter
        self.info = info
        self._clock = clock
        self._keep_s = keep_s
        self._forgotten = 0
        self._taken = 0
        self._paces_itself = bool(getattr(meter, "paces_itself", False))
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._run, name=f"eeio-power-{info.name}", daemon=True
        )
        self._times_s = array("d")
        self._values = tuple(array("d") for _ in info.channels)
        self._reading_since_s: float | None = None
        self._last_begun_s = -math.inf
        self._sample_wanted = False
        self._stop_wanted = False
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

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        with self._changed:
            self._stop_wanted = True
            self._changed.notify_all()

    def request_sample(self, time_s: float) -> bool:
        """Ask for a sample at or after `time_s`; False if there is one or the meter is stalled."""
        with self._changed:
            if self._is_sampled(time_s) or self._is_stalled():
                return False
            self._sample_wanted = True
            self._changed.notify_all()
            return True

    def has_sampled(self, time_s: float) -> _Awaited:
        return self._awaited(lambda: self._is_sampled(time_s) or self._ended)

    @property
    def has_answered(self) -> _Awaited:
        return self._awaited(lambda: self._reads > 0 or self._ended)

    @property
    def has_ended(self) -> _Awaited:
        stalled = self._is_stalled()
        return self._awaited(lambda: self._ended or stalled)

    def samples_from(self, first: int) -> list[tuple[float, tuple[float, ...]]]:
        """The reads from the `first` one on, as (monotonic s, values)."""
        with self._changed:
            self._taken = self._forgotten + len(self._times_s)
            return [
                (self._times_s[i], tuple(column[i] for column in self._values))
                for i in range(first - self._forgotten, len(self._times_s))
            ]

    def snapshot(self) -> MeterSamples:
        with self._changed:
            return MeterSamples(
                self.info, self._times_s[:], tuple(column[:] for column in self._values)
            )

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

    def _awaited(self, holds: Callable[[], bool]) -> _Awaited:
        limit_s = WAIT_PERIODS * self.info.native_period_s + WAIT_FLOOR_S
        return _Awaited(self._changed, holds, limit_s)

    def _is_sampled(self, time_s: float) -> bool:
        """A sample stands at or after `time_s`, or a read begun after it brought none."""
        newest_s = self._times_s[-1] if self._times_s else -math.inf
        return max(newest_s, self._last_begun_s) >= time_s

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
                deadline_s = next_deadline(deadline_s, self._clock(), self.info.period_s)
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stop_wanted or self._sample_wanted,
                    timeout=max(0.0, deadline_s - self._clock()),
                )
                extra, self._sample_wanted = self._sample_wanted, False
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
        if len(values) != len(self._values):
            error = f"{len(values)} values for {len(self._values)} channels"
            values = (MISSING,) * len(self._values)
        late_s = max(self.info.period_s, WAIT_FLOOR_S)
        if self._counters_only and done_s - begun_s > late_s:
            # Nobody knows when in that time the counter was taken.
            error = f"the read took {done_s - begun_s:.2f} s, longer than the period"
            values = (MISSING,) * len(self._values)
        for k, problem in enumerate(map(absurdity, self.info.channels, values)):
            if problem is not None:
                error = problem
                values = (*values[:k], MISSING, *values[k + 1 :])
        time_s = (begun_s + done_s) / 2.0 if self._counters_only else done_s
        self._store(begun_s, time_s, values, error)
        return not all(map(math.isnan, values))

    def _store(
        self, begun_s: float, time_s: float, values: tuple[float, ...], error: str | None
    ) -> None:
        missing = [c.name for c, v in zip(self.info.channels, values, strict=True) if v != v]
        with self._changed:
            newest_s = self._times_s[-1] if self._times_s else -math.inf
            # Microseconds are enough, and make the file short and exact.
            time_s = max(round(time_s, 6), round(newest_s + 1e-6, 6))
            self._times_s.append(time_s)
            for column, value in zip(self._values, values, strict=True):
                column.append(value)
            self._reads += 1
            self._last_begun_s = begun_s
            self._reading_since_s = None
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
        # What the file does not have yet stays.
        written = self._taken - self._forgotten
        old = min(bisect_left(self._times_s, now_s - self._keep_s), written)
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


class _LoggedLoop:
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

    def request_sample(self, time_s: float) -> bool:
        return False

    def has_sampled(self, time_s: float) -> _Awaited:
        return self._ready()

    @property
    def has_answered(self) -> _Awaited:
        return self._ready()

    @property
    def has_ended(self) -> _Awaited:
        return self._ready()

    def samples_from(self, first: int) -> list[tuple[float, tuple[float, ...]]]:
        with self._changed:
            return [
                (self._times_s[i], tuple(column[i] for column in self._values))
                for i in range(first, len(self._times_s))
            ]

    def snapshot(self) -> MeterSamples:
        self._refresh()
        with self._changed:
            return MeterSamples(
                self.info, self._times_s[:], tuple(column[:] for column in self._values)
            )

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

    def _ready(self) -> _Awaited:
        return _Awaited(self._changed, lambda: True, 0.0)

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
            self._times_s.extend(times_s[low:])
            for channel, mine, theirs in zip(
                self.info.channels, self._values, columns, strict=True
            ):
                for value in theirs[low:]:
                    problem = absurdity(channel, value)
                    self._last_error = problem or self._last_error
                    mine.append(MISSING if problem else value)


class _Stream:
    """Writes the samples to a gzip file, in a thread of its own: a slow disk delays no meter.

    Every second what is new is compressed, flushed (Z_SYNC_FLUSH, so that the file can be read up
    to there) and written. There is no fsync: it would add I/O of our own to the I/O that is
    measured; a killed process loses a second at most, a power cut what the page cache held.
    """

    def __init__(self, path: Path, loops: Sequence[_MeterLoop | _LoggedLoop], clock: Clock) -> None:
        self._path = path
        self._loops = loops
        self._written = [0] * len(loops)
        self._first_index = [
            sum(len(loop.info.channels) for loop in loops[:k]) for k in range(len(loops))
        ]
        self._compressor = zlib.compressobj(wbits=GZIP_WBITS)
        self._unwritten = bytearray()
        self.error: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="eeio-power-stream", daemon=True)
        try:
            # Unbuffered, so that a write that fails half-way says how much of it went through.
            self._file: FileIO = path.open("wb", buffering=0)
        except OSError as error:
            raise PowerError(
                f"{path}: cannot write samples there: {error.strerror}; make the folder, or name "
                "another one"
            ) from error
        utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._compress(header_line([loop.info for loop in loops], round(clock(), 6), utc))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=LAST_WRITE_S)
        if self._thread.is_alive():
            self.error = f"{self._path}: the disk has not taken the last samples yet"

    def _run(self) -> None:
        self._flush(zlib.Z_SYNC_FLUSH)
        while not self._stop.wait(FLUSH_PERIOD_S):
            self._flush(zlib.Z_SYNC_FLUSH)
        self._flush(zlib.Z_FINISH)
        self._file.close()

    def _flush(self, mode: int) -> None:
        self._compress("".join(self._new_lines()))
        self._unwritten += self._compressor.flush(mode)
        try:
            while self._unwritten:
                count = self._file.write(self._unwritten)
                del self._unwritten[: count or 0]
        except OSError as error:
            self.error = (
                f"{self._path}: samples are not written: {error.strerror}; they are kept in "
                "memory and tried again: make room on the disk"
            )
        else:
            self.error = None

    def _compress(self, text: str) -> None:
        self._unwritten += self._compressor.compress(text.encode("utf-8"))

    def _new_lines(self) -> list[str]:
        lines: list[str] = []
        for k, loop in enumerate(self._loops):
            new = loop.samples_from(self._written[k])
            self._written[k] += len(new)
            for time_s, values in new:
                for c, value in enumerate(values):
                    lines.append(sample_line(time_s, self._first_index[k] + c, value))
        return lines
