"""A suspended machine, and a stopped process: neither shows in the times of a window.

CLOCK_MONOTONIC stops while the machine is suspended, CLOCK_BOOTTIME does not. The window shows no
gap: counters contain energy of time that it leaves out, and drives and processors resume within it.

A process that was stopped (Ctrl-Z, SIGSTOP, a frozen control group) sees the end of a command too
late.
"""

import math
import resource
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Self

from eeio_power.reading import EnergyReading

LEAST_S = 0.2
"""Shorter differences are those of two reads of clocks."""


def suspended_s() -> float:
    """CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC, s: it rises by the length of each suspension."""
    # A process that waits between the two reads gets too low a difference, never too high a one.
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic() for _ in range(3))


def text(seconds: float) -> str:
    """As a reason."""
    return f"the machine was suspended for {seconds:.1f} s meanwhile"


STOPPED = (
    "eeio was stopped (Ctrl-Z, SIGSTOP or a frozen control group) meanwhile, so that the end was "
    "seen too late"
)
BEAT_S = 0.5
FROZEN_S = 1.0
"""So much longer than `BEAT_S` a thread does not sleep, except when it waits for a processor."""


class Stops:
    """Counts how often this process was stopped or frozen, and continued, in the block.

    SIGCONT shows a stop, but only the main thread receives signals. A frozen control group sends
    none: a thread sleeps and compares the time. It does not count the time in which it waited for a
    processor, this process used one, or a page of memory was read from a drive.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._continued_count = 0
        self._frozen_count = 0
        self._before: Any = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def count(self) -> int:
        """How often, until now."""
        return max(self._continued_count, self._frozen_count)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGCONT, self._continued)
        self._ended.clear()
        self._thread = threading.Thread(target=self._beat, name="eeio-stops", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._before)

    def _continued(self, signum: int, frame: FrameType | None) -> None:
        self._continued_count += 1

    def _beat(self) -> None:
        ended = False
        while not ended:
            begun_s, explained_s, faults = self._clock(), _explained_s(), _page_reads()
            ended = self._ended.wait(BEAT_S)
            late_s = self._clock() - begun_s - BEAT_S
            if late_s > FROZEN_S and _page_reads() == faults:
                late_s -= _explained_s() - explained_s
                self._frozen_count += late_s > FROZEN_S


def _explained_s() -> float:
    """How long this thread has waited for a processor, and this process has used processors, s."""
    try:
        _, waited_ns, _ = Path("/proc/thread-self/schedstat").read_text().split()
    except (OSError, ValueError):  # not known: no time is taken for a stop
        return math.inf
    return int(waited_ns) / 1e9 + time.process_time()


def _page_reads() -> int:
    """Pages of memory that this thread has waited for."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt


def invalid(readings: Sequence[EnergyReading], reason: str) -> list[EnergyReading]:
    """The readings without their figures, for this reason."""
    return [
        replace(
            reading,
            power_w=None,
            energy_j=None,
            uncertainty_j=None,
            valid=False,
            reasons=(*reading.reasons, reason),
        )
        for reading in readings
    ]


class SuspensionWatch:
    """Suspensions between notes. Safe for several threads."""

    def __init__(self, suspended: Callable[[], float] = suspended_s) -> None:
        self._suspended = suspended
        self._last_s = math.nan
        self._last_suspended_s = math.nan
        self._suspensions: list[tuple[float, float, float]] = []
        self._lock = threading.Lock()

    def note(self, now_s: float) -> None:
        """To be called often, at a time of CLOCK_MONOTONIC."""
        with self._lock:
            suspended_s = self._suspended()
            seconds = suspended_s - self._last_suspended_s
            if seconds > LEAST_S:
                self._suspensions.append((self._last_s, now_s, seconds))
            self._last_s, self._last_suspended_s = now_s, suspended_s

    def during(self, start_s: float, end_s: float) -> float:
        """How long the machine may have been suspended in a window, s."""
        with self._lock:
            return math.fsum(
                seconds
                for after_s, before_s, seconds in self._suspensions
                if after_s < end_s and before_s > start_s
            )
