"""The power of all that happens between a start and a stop: the runner's, and the session's.

with PowerMonitor(open_source(("auto",), estimates_allowed=False), samples) as power:
    power.mark()
    start_s = time.monotonic()
    ...
    end_s = time.monotonic()
    power.mark()
    readings = power.energy(start_s, end_s)

Reports changes in a folder (Linux' inotify).
"""

import ctypes
import json
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from eeio_power.calibration import of_domain
from eeio_power.errors import PowerError
from eeio_power.meters import Meter, close_meters, open_meters
from eeio_power.reading import EnergyReading
from eeio_power.sampler import Sampler
from eeio_power.samples import DomainPower, MeterInfo, meter_info, power_over_time

_IN_MODIFY = 0x2
_IN_CREATE = 0x100


class FolderWatch:
    """Calls `changed` with the monotonic time, s, when a file in the folder was made or written.

    From a thread of its own, until `stop`. Raises OSError if the folder cannot be watched.
    """

    def __init__(self, folder: Path, changed: Callable[[float], None]) -> None:
        self._changed = changed
        self._watch = _inotify(folder)
        self._reported_to_stop, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="eeio-folder-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when `changed` is called no more. To be called once."""
        os.close(self._stop)
        self._thread.join()
        os.close(self._reported_to_stop)
        os.close(self._watch)

    def _run(self) -> None:
        while True:
            ready = select.select([self._watch, self._reported_to_stop], [], [])[0]
            now_s = time.monotonic()
            if self._watch in ready:
                with suppress(OSError):
                    os.read(self._watch, 65536)
                self._changed(now_s)
            if self._reported_to_stop in ready:
                return


@contextmanager
def watched(folder: Path, changed: Callable[[float], None]) -> Iterator[None]:
    """A `FolderWatch` meanwhile; if the system has no more of them, there are no calls."""
    try:
        watch = FolderWatch(folder, changed)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        watch.stop()


def _inotify(folder: Path) -> int:
    """A descriptor that is readable when something in the folder has changed."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    mask = _IN_MODIFY | _IN_CREATE
    if libc.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
        number = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(number, "inotify_add_watch", str(folder))
    return descriptor


SAMPLE_RATE_HZ = 10.0

# Counters while a tool runs: an edge lies 5 ms from a reading at most, both edges together 3 % of
# a window of 0.3 s (docs/decisions/0022-readings-at-the-edges.md).
COUNTER_RATE_HZ = 100.0

# Readings from before a window that its energy looks at.
_BEFORE_S = 60.0

# Of a tool that writes without a pause not each write is an edge.
_BETWEEN_EDGES_S = 0.002


@dataclass(frozen=True)
class PowerSource:
    """Open meters; `reason` if there are none."""

    meters: tuple[Meter, ...]
    reason: str | None


def open_source(specs: Sequence[str], estimates_allowed: bool) -> PowerSource:
    """Opens what `--meter` names. `auto`, and no spec at all, takes every measured source; without
    one the model replaces it, if estimates are allowed.

    Raises PowerError for a meter that was named and cannot be read.
    """
    meters = open_meters(specs or ("auto",))
    if not meters and tuple(specs) in ((), ("auto",)) and estimates_allowed:
        meters = open_meters(("modelled",))
    if meters:
        return PowerSource(tuple(meters), None)
    if "none" in specs:
        return PowerSource((), "--meter none was given")
    return PowerSource(
        (), "no measured power source was found (`eeio doctor` lists how to add one)"
    )


def reading_period_s(meter: Meter, rate_hz: float, counter_rate_hz: float) -> float:
    """How far apart the meter's readings are while a tool runs, s."""
    info = meter_info(meter, rate_hz)
    if any(channel.quantity != "energy_j" for channel in info.channels):
        return info.period_s
    return min(info.period_s, max(1.0 / counter_rate_hz, info.native_period_s))


class PowerMonitor:
    """Samples every meter from `start` to `stop`; without meters it answers with no readings.

    The samples go to `samples` (.csv.gz); `stop` leaves the rates and errors of the meters in a
    file of the same name that ends in .json, and closes the meters. A meter is read at `rate_hz`,
    or as often as it has something new where that is less; energy counters at `counter_rate_hz`
    while a tool runs (`hasten` to `relax`).
    """

    def __init__(
        self,
        source: PowerSource,
        samples: Path,
        rate_hz: float = SAMPLE_RATE_HZ,
        counter_rate_hz: float = COUNTER_RATE_HZ,
    ) -> None:
        self.meters = source.meters
        self._samples = samples
        self._sampler = None
        if self.meters:
            self._sampler = Sampler(self.meters, samples, rate_hz)
        if not 0.0 < counter_rate_hz < math.inf:
            raise PowerError(f"counters cannot be read at {counter_rate_hz} Hz")
        self._counter_rate_hz = counter_rate_hz
        self._last_edge_s = 0.0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when every meter was read once. Raises PowerError if the file cannot be written;
        the meters are closed then."""
        if self._sampler is None:
            return
        try:
            self._sampler.start()
        except BaseException:
            close_meters(self.meters)
            raise

    def stop(self) -> None:
        """May be called repeatedly."""
        if self._sampler is None:
            return
        self._sampler.stop()
        close_meters(self.meters)
        summary = {
            "rates": list(map(asdict, self._sampler.rates())),
            "errors": self._sampler.errors,
            "write_error": self._sampler.write_error,
        }
        # Best effort on a full disk: the error of who measures must not be hidden by this one.
        with suppress(OSError):
            self._samples.with_suffix("").with_suffix(".json").write_text(
                json.dumps(summary, indent=1) + "\n", encoding="utf-8"
            )

    def mark(self) -> None:
        """Samples every meter at once: at both edges of a window, so that a short one need not be
        interpolated between two beats of the sampler, which would cost accuracy."""
        if self._sampler is not None:
            self._sampler.sample(time.monotonic())

    def hasten(self) -> None:
        """A tool is about to start: read counters at `counter_rate_hz` from now on."""
        if self._sampler is not None:
            self._sampler.read_counters(self._counter_rate_hz)

    def relax(self) -> None:
        """It has ended: read counters as all meters are."""
        if self._sampler is not None:
            self._sampler.read_counters(None)

    def edge(self, now_s: float) -> None:
        """A phase may begin or end: read counters at once. Returns at once, too."""
        if self._sampler is not None and now_s - self._last_edge_s > _BETWEEN_EDGES_S:
            self._last_edge_s = now_s
            self._sampler.nudge_counters()

    @contextmanager
    def closely(self, folder: Path) -> Iterator[None]:
        """A tool runs that writes into the folder: counters are read faster, and at once whenever
        something there has changed, such as a word of its output or a stamp."""
        if self._sampler is None:
            yield
            return
        self.hasten()
        try:
            with watched(folder, self.edge):
                yield
        finally:
            self.relax()

    def forget(self, before_s: float) -> None:
        """No window from before that time will be requested: its counters stay only in the file,
        for at a hundred readings a second a campaign of days would fill the memory."""
        if self._sampler is not None:
            self._sampler.forget_counters(before_s - _BEFORE_S)

    def energy(
        self, start_s: float, end_s: float, *, wait: bool = True
    ) -> tuple[EnergyReading, ...]:
        """One reading a meter and domain, for a window in CLOCK_MONOTONIC seconds. Meters whose
        readings are late are waited for; if `wait` is False, readings count as they come."""
        if self._sampler is None:
            return ()
        return tuple(self._sampler.energy(start_s, end_s, wait=wait))

    @property
    def infos(self) -> tuple[MeterInfo, ...]:
        """The description of each meter."""
        if self._sampler is None:
            return ()
        return self._sampler.infos

    def over_time(self, start_s: float, end_s: float) -> list[tuple[str, DomainPower]]:
        """Name of each meter, with the readings of a domain in that window. Dear in a long
        campaign: all samples are copied."""
        if self._sampler is None:
            return []
        parts = []
        for meter in self._sampler.samples().meters:
            for power in power_over_time(meter):
                parts.append((meter.info.name, power.between(start_s, end_s)))
        return parts

    def medians_w(self, start_s: float, end_s: float) -> dict[tuple[str, str], float]:
        """(meter, domain) -> median of the power that was read in that window, W. Dear in a long
        campaign: all samples are copied."""
        if self._sampler is None:
            return {}
        medians = {}
        for meter in self._sampler.samples().meters:
            for power in power_over_time(meter):
                if (median_w := power.median_w(start_s, end_s)) is not None:
                    calibration = of_domain(meter.info.calibrations, power.domain)
                    if calibration is not None and calibration.note(median_w) is None:
                        median_w = calibration.power_w(median_w)
                    medians[meter.info.name, power.domain] = median_w
        return medians
