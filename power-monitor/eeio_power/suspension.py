"""A suspended machine, and a stopped process: neither shows in the times of a window.

CLOCK_MONOTONIC stops while the machine is suspended, CLOCK_BOOTTIME does not. The window shows no
gap: counters contain energy of time that it leaves out, and drives and processors resume within it.

A process that was stopped (Ctrl-Z, SIGSTOP) sees the end of a command too late.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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


STOPPED = "eeio was stopped (Ctrl-Z or SIGSTOP) meanwhile, so that the end was seen too late"


class Stops:
    """Counts how often this process was stopped and continued, in the block.

    Outside the main thread, which alone receives signals, it counts none.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGCONT, self._continued)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._before)

    def _continued(self, signum: int, frame: FrameType | None) -> None:
        self.count += 1


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
