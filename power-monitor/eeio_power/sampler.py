"""Sample several meters at once, each in a separate loop, and store every sample.

    with Sampler(open_meters(["auto"]), Path("power.csv.gz")) as sampler:
        start_s = time.monotonic()
        ...
        readings = sampler.energy(start_s, time.monotonic())

The sampler reads meters; it does not close them, so that one set serves many runs
(`eeio_power.meters.close_meters`).

The load of the processors, compared with the power that meters read.

A package counter with the same power idle and busy does not measure, nor does a meter that repeats
one reading meanwhile. The load comes from /proc/stat, noted whenever samples are written and energy
is requested. Each window of a package is compared with the window with the lowest load and the one
with the highest so far.
"""

import math
import os
import threading
import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Self

from eeio.files.trust import open_stream
from eeio_power.calibration import of_meter
from eeio_power.errors import PowerError
from eeio_power.false_readings import ConstantRun, doubted, stays_flat
from eeio_power.meters import BatchedMeter, LoggedMeter, Measured, Meter, about, parse_spec
from eeio_power.meters.modelled import STAT, CpuTicks, parse_stat, utilisation
from eeio_power.reading import EnergyReading
from eeio_power.samples import GZIP_WBITS, MeterInfo, Samples, header_line, meter_info, sample_lines
from eeio_power.sampling_loops import (
    Awaited,
    BatchLoop,
    Clock,
    LoggedLoop,
    Loop,
    MeterLoop,
    MeterRates,
)
from eeio_power.suspension import SuspensionWatch, invalid, suspended_s
from eeio_power.suspension import text as suspended_text

NOWHERE = Path(os.devnull)
"""Where samples go that are not stored."""
LEAST_WINDOW_S = 1.0
LEAST_SHARE = 0.8
"""Notes must span so much of a window to give its load."""
MOST_NOTES = 1 << 17


class LoadWatch:
    """Notes the processors' ticks, and judges readings of packages by them.

    `packages` are the names of the meters that count this machine's packages, `meters` those of all
    that measure this machine; without any it is inactive. Safe for several threads.
    """

    def __init__(
        self,
        packages: Collection[str],
        ticks: Callable[[], CpuTicks],
        meters: Collection[str] = (),
    ) -> None:
        self._packages = frozenset(packages)
        self._meters = self._packages | frozenset(meters)
        self._ticks = ticks
        self._times_s: list[float] = []
        self._noted: list[CpuTicks] = []
        self._extremes: dict[str, list[tuple[float, EnergyReading]]] = {}
        self._lock = threading.Lock()

    def note(self, now_s: float) -> None:
        """Read the ticks; a machine without /proc/stat has none."""
        if not self._meters:
            return
        try:
            ticks = self._ticks()
        except (OSError, ValueError):
            return
        with self._lock:
            if self._times_s and now_s <= self._times_s[-1]:
                return
            if len(self._times_s) >= MOST_NOTES:
                del self._times_s[::2], self._noted[::2]
            self._times_s.append(now_s)
            self._noted.append(ticks)

    def load(self, start_s: float, end_s: float) -> float | None:
        """Share of all CPUs' time that was busy, 0 to 1; None if the notes are insufficient."""
        with self._lock:
            low, high = bisect_left(self._times_s, start_s), bisect_right(self._times_s, end_s) - 1
            if low >= high:
                return None
            observed_s = self._times_s[high] - self._times_s[low]
            if observed_s < LEAST_WINDOW_S or observed_s < LEAST_SHARE * (end_s - start_s):
                return None
            return utilisation(self._noted[low], self._noted[high])

    def extremes(self, run: ConstantRun) -> tuple[float, float] | None:
        """The lowest and the highest load while a meter of this machine repeated one reading, each
        over as much time as it takes to show in the reading."""
        if run.meter not in self._meters:
            return None
        with self._lock:
            low = bisect_left(self._times_s, run.begin_s)
            high = bisect_right(self._times_s, run.end_s)
            loads = []
            for k in range(low, high):
                until = bisect_left(self._times_s, self._times_s[k] + run.compared_s, k, high)
                if until < high:
                    loads.append(utilisation(self._noted[k], self._noted[until]))
        known = [load for load in loads if load is not None]
        if known:
            return (min(known), max(known))
        return None

    def judged(
        self, readings: Sequence[EnergyReading], start_s: float, end_s: float
    ) -> list[EnergyReading]:
        """The readings; a package that draws the same at another load is doubtful."""
        load = self.load(start_s, end_s)
        if load is None:
            return list(readings)
        return [
            self._checked(reading, load)
            if reading.meter in self._packages and reading.domain == "package" and reading.valid
            else reading
            for reading in readings
        ]

    def _checked(self, reading: EnergyReading, load: float) -> EnergyReading:
        with self._lock:
            known = self._extremes.setdefault(reading.meter, [])
            doubts = [stays_flat(reading, load, before, its_load) for its_load, before in known]
            known.append((load, reading))
            known.sort(key=lambda item: item[0])
            del known[1:-1]
        return doubted(reading, list(filter(None, doubts)))


__all__ = ["MeterRates", "Sampler"]

# Half the wake-ups of a second; a killed process loses so much, and its run is run again anyway.
FLUSH_PERIOD_S = 2.0

# Ten numbers of at most twenty digits.
_FIRST_LINE_BYTES = 256

# Of counters, while they are read faster.
FASTEST_HZ = 1000.0

# How long stop() waits for a disk that does not take the last samples.
LAST_WRITE_S = 30.0


class Sampler:
    """Reads each meter at min(`rate_hz`, its native rate); streams all samples to `path`.

    A stalled meter delays only its samples. Raises PowerError for a rate that is not positive;
    `start` raises it if the file exists or cannot be written, or if it was started before. With
    `keep_s` only that many seconds stay in memory, for a sampler that never ends; the file contains
    everything.
    """

    def __init__(
        self,
        meters: Sequence[Meter],
        path: Path,
        rate_hz: float = 10.0,
        *,
        clock: Clock = time.monotonic,
        keep_s: float = math.inf,
        suspended: Clock = suspended_s,
    ) -> None:
        if not 0.0 < rate_hz < math.inf:
            raise PowerError(f"a sampling rate of {rate_hz} Hz is invalid; give a positive number")
        self.path = path
        self._clock = clock
        infos = []
        for meter in meters:
            infos.append(replace(meter_info(meter, rate_hz), calibrations=of_meter(meter)))
        self._loops = [
            _loop(meter, info, clock, keep_s) for meter, info in zip(meters, infos, strict=True)
        ]
        self._load = LoadWatch(
            [meter.name for meter in meters if _measured(meter) == "packages"],
            cpu_ticks,
            [meter.name for meter in meters if _measured(meter) is not None],
        )
        self._suspensions = SuspensionWatch(suspended)
        self._stream: _Stream | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start sampling; returns when every meter was read once.

        A meter that does not answer is waited for about one and a half of its periods.
        """
        if self._stream is not None:
            raise PowerError(
                f"{self.path}: this sampler has already been started; create a new one"
            )
        self._stream = _Stream(self.path, self._loops, self._clock, self._note)
        self._note()
        for loop in self._loops:
            loop.start()
        self._wait([loop.has_answered for loop in self._loops])
        self._stream.start()

    def stop(self) -> None:
        """Read every meter a last time, stop, and finish the file. May be called again.

        The thread of a stalled meter is left behind; it ends with its read.
        """
        if self._stream is None or self._stopped:
            return
        self._stopped = True
        for loop in self._loops:
            loop.request_stop()
        self._wait([loop.has_ended for loop in self._loops])
        for loop in self._loops:
            loop.close()
        self._stream.stop()

    def energy(self, start_s: float, end_s: float, *, wait: bool = True) -> list[EnergyReading]:
        """The energy between two times of the monotonic clock, one reading per meter and domain.

        If a meter's last sample is older than `end_s`, one more is requested, so that the window is
        clipped exactly. A stalled one is not waited for; one that does not answer is waited for
        about one and a half of its periods. A meter whose readings are late is waited for, too. If
        `wait` is False, the readings count as they come, without the delay of their meters.
        """
        if end_s <= self._clock():
            self.sample(end_s, late=wait)
        self._note()

        def since(time_s: float) -> Samples:
            meters = (loop.snapshot(time_s, end_s) for loop in self._loops)
            return Samples(
                tuple(each if wait else replace(each, info=each.info.as_read) for each in meters)
            )

        readings = since(start_s).energy(start_s, end_s, self._load.extremes, since)
        errors = {rate.meter: rate.last_error for rate in self.rates()}
        judged = self._load.judged(readings, start_s, end_s)
        if (seconds := self._suspensions.during(start_s, end_s)) > 0.0:
            judged = invalid(judged, suspended_text(seconds))
        return [_with_last_error(reading, errors[reading.meter]) for reading in judged]

    def sample(self, time_s: float, *, late: bool = False) -> None:
        """Reads every meter that has no sample at or after `time_s`; with `late`, as much later as
        its readings are."""
        self._note()
        if self._stream is None or self._stopped:
            return
        due = [(loop, time_s + (loop.info.late_s if late else 0.0)) for loop in self._loops]
        now_s = self._clock()
        self._wait(
            [
                replace(loop.has_sampled(due_s), limit_s=due_s - now_s)
                for loop, due_s in due
                if due_s > now_s
            ]
        )
        waiting = []
        for loop, due_s in due:
            if loop.request_sample(due_s):
                waiting.append((loop, due_s))
        self._wait([loop.has_sampled(due_s) for loop, due_s in waiting])

    def read_counters(self, rate_hz: float | None) -> None:
        """From now on read energy counters at this rate, each only if it has new values; None: at
        the rate of all meters. Does not wait."""
        for loop in self._counters():
            period_s = None
            if rate_hz is not None:
                period_s = loop.faster_period_s(rate_hz)
            loop.set_period(period_s)

    def nudge_counters(self) -> None:
        """Read energy counters as soon as possible, outside their period; does not wait."""
        for loop in self._counters():
            loop.nudge()

    def forget_counters(self, before_s: float) -> None:
        """Keep readings of counters from before that time only in the file."""
        for loop in self._counters():
            loop.forget_counters(before_s)

    def _note(self) -> None:
        now_s = self._clock()
        self._load.note(now_s)
        self._suspensions.note(now_s)

    def _counters(self) -> list[MeterLoop | BatchLoop]:
        """The meters for which the milliseconds around an edge matter."""
        counters = []
        for loop in self._loops:
            if not isinstance(loop, LoggedLoop) and loop.faster_period_s(FASTEST_HZ) is not None:
                counters.append(loop)
        return counters

    @property
    def infos(self) -> tuple[MeterInfo, ...]:
        """The description of each meter."""
        return tuple(loop.info for loop in self._loops)

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
        """Why samples are missing from the file (disk full, say); None while it is complete.

        Sampling continues in memory, and failed writes are tried again two seconds later.
        """
        if self._stream is None:
            return None
        return self._stream.error

    def _wait(self, conditions: Sequence[Awaited]) -> None:
        """Wait for all conditions, each up to its limit, all limits running at once."""
        begun_s = time.monotonic()
        for awaited in conditions:
            awaited.wait(begun_s)


def cpu_ticks() -> CpuTicks:
    """Those of all this machine's CPUs together, now. Raises OSError or ValueError."""
    # The first line has them; that of each CPU is not looked at, for a large machine has many.
    with (Path("/") / STAT).open("rb", buffering=0) as file:
        head = file.read(_FIRST_LINE_BYTES) or b""
    return parse_stat(head.partition(b"\n")[0].decode("ascii", errors="replace"))


def _measured(meter: Meter) -> Measured | None:
    """What it measures of this machine. A named folder or host may be of another machine."""
    name, options = parse_spec(meter.spec)
    if {"root", "host"} & set(options):
        return None
    return about(name).measures


def _loop(meter: Meter, info: MeterInfo, clock: Clock, keep_s: float) -> Loop:
    if isinstance(meter, LoggedMeter):
        return LoggedLoop(meter, info, clock)
    # The helper supports one clock only.
    if isinstance(meter, BatchedMeter) and clock is time.monotonic:
        batches = meter.batches(info.period_s)
        if batches is not None:
            return BatchLoop(batches, info, clock, keep_s)
    return MeterLoop(meter, info, clock, keep_s)


def _with_last_error(reading: EnergyReading, error: str | None) -> EnergyReading:
    """An invalid reading contains the meter's last error."""
    if reading.valid or error is None:
        return reading
    return replace(reading, reasons=(*reading.reasons, f"{reading.meter}: {error}"))


def _new_file(path: Path) -> FileIO:
    """Unbuffered, so that a failed write reports how much was written. FileExistsError if there is
    a file of that name, except for a pipe or a device such as /dev/null."""
    if path.is_char_device() or path.is_fifo():
        file = open_stream(path)
        if file is not None:
            return file
    return path.open("xb", buffering=0)


class _Stream:
    """Writes the samples to a gzip file, in a separate thread: a slow disk delays no meter.

    Every two seconds new samples are compressed, flushed (Z_SYNC_FLUSH, so that the file can be
    read up to there) and written. There is no fsync: it would add our I/O to the measured I/O. A
    killed process loses two seconds at most, a power cut the contents of the page cache.
    """

    def __init__(
        self, path: Path, loops: Sequence[Loop], clock: Clock, note: Callable[[], None]
    ) -> None:
        self._path = path
        self._clock = clock
        self._note = note
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
            self._file = _new_file(path)
        except FileExistsError as error:
            raise PowerError(
                f"{path}: exists, and samples are never overwritten; choose another file"
            ) from error
        except OSError as error:
            raise PowerError(
                f"{path}: cannot write samples: {error.strerror}; create the folder, or choose "
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
        self._note()
        self._compress("".join(self._new_lines()))
        self._unwritten += self._compressor.flush(mode)
        try:
            while self._unwritten:
                count = self._file.write(self._unwritten)
                del self._unwritten[: count or 0]
        except OSError as error:
            self.error = (
                f"{self._path}: samples are not written: {error.strerror}; they stay in memory "
                "until the next attempt. Free space on the disk"
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
            first = self._first_index[k]
            for time_s, values in new:
                lines.append(sample_lines(time_s, first, values))
        return lines
