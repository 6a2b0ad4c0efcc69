"""The load of the processors, compared with the power that meters read.

A package counter that shows the same power idle and busy does not measure, nor does a meter that
repeats one reading meanwhile. The load is that of /proc/stat, noted whenever samples are written
and energy is asked for. Each window of a package is compared with the window with the lowest load
and the one with the highest so far.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence

from eeio_power.doubts import Held, doubted, stays_flat
from eeio_power.meters.modelled import CpuTicks, utilisation
from eeio_power.reading import EnergyReading

LEAST_WINDOW_S = 1.0
LEAST_SHARE = 0.8
"""Notes must span so much of a window to tell its load."""
MOST_NOTES = 1 << 17


class LoadWatch:
    """Notes the processors' ticks, and judges readings of packages by them.

    `packages` are the names of the meters that count this machine's own packages, `meters` those of
    all that measure this machine; without any it does nothing. Safe for several threads.
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
        """Share of all CPUs' time that was busy, 0 to 1; None where the notes do not tell."""
        with self._lock:
            low, high = bisect_left(self._times_s, start_s), bisect_right(self._times_s, end_s) - 1
            if low >= high:
                return None
            seen_s = self._times_s[high] - self._times_s[low]
            if seen_s < LEAST_WINDOW_S or seen_s < LEAST_SHARE * (end_s - start_s):
                return None
            return utilisation(self._noted[low], self._noted[high])

    def extremes(self, run: Held) -> tuple[float, float] | None:
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
        return (min(known), max(known)) if known else None

    def judged(
        self, readings: Sequence[EnergyReading], start_s: float, end_s: float
    ) -> list[EnergyReading]:
        """The readings; a package that draws the same at another load is doubtful."""
        load = self.load(start_s, end_s)
        if load is None:
            return list(readings)
        return [
            self._held(reading, load)
            if reading.meter in self._packages and reading.domain == "package" and reading.valid
            else reading
            for reading in readings
        ]

    def _held(self, reading: EnergyReading, load: float) -> EnergyReading:
        with self._lock:
            known = self._extremes.setdefault(reading.meter, [])
            doubts = [stays_flat(reading, load, before, its_load) for its_load, before in known]
            known.append((load, reading))
            known.sort(key=lambda item: item[0])
            del known[1:-1]
        return doubted(reading, [doubt for doubt in doubts if doubt])
