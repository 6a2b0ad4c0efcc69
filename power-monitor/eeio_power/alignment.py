"""Load pulses that find how far a logged meter's clock is ahead of this machine's.

The machine is loaded and left idle in turn, for times that follow no rhythm, so that the pattern
fits its log at one place only. The offset is where the mean power of the loaded times exceeds that
of the idle ones most.
"""

import os
import random
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise

from eeio_power.errors import PowerError

PULSES = 10
SHORTEST_S = 2.0
LONGEST_S = 5.0
SEARCH_S = 60.0
# The best place must beat this share of the log's own range, or the pulses are not in it.
MIN_CONTRAST = 0.3
_LEAST_SHARE = 1e-6
COARSE_S = 0.1
FINE_S = 0.01

# PR_SET_PDEATHSIG, SIGKILL: a load that outlived us would be in everything measured afterwards.
_START = """\
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(1, 9)
"""
_SPIN = (
    _START
    + """\
os.write(1, b".")
while True: pass
"""
)
SHARE = (
    _START
    + """\
share = float(sys.argv[1])
os.write(1, b".")
while True:
    end = time.perf_counter() + 0.02 * share
    while time.perf_counter() < end: pass
    time.sleep(0.02 * (1.0 - share))
"""
)
"""A worker that loads one processor for a share of the time."""
WRITE = (
    _START
    + """\
import tempfile
share, block = float(sys.argv[2]), os.urandom(1 << 20)
with tempfile.TemporaryFile(dir=sys.argv[1], buffering=0) as file:
    os.write(1, b".")
    while True:
        file.seek(0)
        for _ in range(8):
            begun = time.perf_counter()
            for _ in range(32): file.write(block)
            os.fsync(file.fileno())
            time.sleep((time.perf_counter() - begun) * (1.0 / share - 1.0))
"""
)
"""A worker that writes 256 MiB to a nameless file in a directory, again and again, for a share of
the time."""


@dataclass(frozen=True)
class Pulse:
    """A time in which the machine was loaded, s on some clock."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Offset:
    """How far the log's clock is ahead, s, with its uncertainty."""

    offset_s: float
    uncertainty_s: float
    contrast_w: float
    """Mean power loaded minus idle, where the pulses fit best."""


def pulse_lengths_s(count: int, seed: int = 1) -> list[tuple[float, float]]:
    """(loaded, idle) seconds of each pulse: irregular, and the same every time."""
    draw = random.Random(seed)
    return [
        (draw.uniform(SHORTEST_S, LONGEST_S), draw.uniform(SHORTEST_S, LONGEST_S))
        for _ in range(count)
    ]


def make_pulses(
    count: int = PULSES, clock: Callable[[], float] = time.time, workers: int | None = None
) -> list[Pulse]:
    """Load every CPU in pulses; returns when they were, on `clock`."""
    pulses = []
    with loading(workers) as processes:
        for loaded_s, idle_s in pulse_lengths_s(count):
            time.sleep(idle_s)
            start_s = clock()
            _send(processes, signal.SIGCONT)
            time.sleep(loaded_s)
            _send(processes, signal.SIGSTOP)
            pulses.append(Pulse(start_s, clock()))
        time.sleep(SHORTEST_S)
    return pulses


def find_offset(
    times_s: Sequence[float],
    power_w: Sequence[float],
    pulses: Sequence[Pulse],
    search_s: float = SEARCH_S,
) -> Offset:
    """Where the pulses fit the log best, within `search_s` either way.

    Each value is the mean of the time up to it. Raises PowerError if the pulses are not in the log.
    """
    if len(times_s) < 3 or len(pulses) < 2:
        raise PowerError("three readings and two pulses are needed at least")
    energy = Energy(times_s, power_w)
    coarse = []
    for k in range(-round(search_s / COARSE_S), round(search_s / COARSE_S) + 1):
        coarse.append(k * COARSE_S)
    rough_s = max(coarse, key=lambda d: energy.contrast_w(pulses, d))
    fine = [rough_s + k * FINE_S for k in range(-20, 21)]
    best_s = max(fine, key=lambda d: energy.contrast_w(pulses, d))
    contrast_w = energy.contrast_w(pulses, best_s)
    ordered = sorted(power_w)
    spread_w = ordered[int(0.95 * (len(ordered) - 1))] - ordered[int(0.05 * (len(ordered) - 1))]
    gaps_s = sorted(b - a for a, b in pairwise(times_s))
    period_s = gaps_s[len(gaps_s) // 2]
    # A log is extended beyond its ends, and a part of the pulses fits elsewhere as well.
    covered = (
        times_s[0] - period_s <= pulses[0].start_s + best_s
        and pulses[-1].end_s + best_s <= times_s[-1] + period_s
    )
    # One pulse of all fits many places; both halves of them fit one.
    halves = (pulses[: len(pulses) // 2], pulses[len(pulses) // 2 :])
    even = len(pulses) < 4 or all(
        energy.contrast_w(half, best_s) >= contrast_w / 2.0 for half in halves
    )
    # A meter that stands still has a contrast of rounding errors.
    visible = (
        contrast_w > _LEAST_SHARE * max(map(abs, power_w)) and contrast_w >= MIN_CONTRAST * spread_w
    )
    if not (covered and even and visible):
        raise PowerError(
            f"the log does not show the load pulses within {search_s:g} s; does it cover them, "
            "is its time zone right, and does it measure this machine? (--search)"
        )
    # The place of an edge within one of the log's periods is unknown; the pulses' 2 n edges fall
    # at different places in theirs, but an uncertainty does not shrink with that.
    return Offset(best_s, max(FINE_S, period_s / 2.0), contrast_w)


class Energy:
    """The integral of a log, with each reading applied back to the one before."""

    def __init__(self, times_s: Sequence[float], power_w: Sequence[float]) -> None:
        self.times_s = times_s
        self.power_w = power_w
        steps = []
        for k in range(len(times_s)):
            steps.append(power_w[k] * (times_s[k] - times_s[k - 1]) if k else 0.0)
        self._sum_j = list(accumulate(steps))

    def until_j(self, time_s: float) -> float:
        k = bisect_left(self.times_s, time_s)
        if k == 0:
            return self.power_w[0] * (time_s - self.times_s[0])
        if k == len(self.times_s):
            return self._sum_j[-1] + self.power_w[-1] * (time_s - self.times_s[-1])
        return self._sum_j[k] - self.power_w[k] * (self.times_s[k] - time_s)

    def contrast_w(self, pulses: Sequence[Pulse], ahead_s: float) -> float:
        """Mean power of the pulses minus that of the times between them, the log `ahead_s`."""
        on_j = off_j = on_s = off_s = 0.0
        for pulse in pulses:
            on_j += self.until_j(pulse.end_s + ahead_s) - self.until_j(pulse.start_s + ahead_s)
            on_s += pulse.end_s - pulse.start_s
        for before, after in pairwise(pulses):
            off_j += self.until_j(after.start_s + ahead_s) - self.until_j(before.end_s + ahead_s)
            off_s += after.start_s - before.end_s
        return on_j / on_s - off_j / off_s


@contextmanager
def loading(
    count: int | None, script: str = _SPIN, *arguments: str
) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes that load the machine, one a CPU without `count`, stopped for now; gone afterwards,
    whatever happens."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count or os.cpu_count() or 1):
            command = [sys.executable, "-I", "-S", "-c", script, *arguments]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0))
        for process in processes:
            assert process.stdout is not None
            if not process.stdout.read(1):  # stopped before this it might never end
                raise PowerError(
                    f"{sys.executable} does not load the machine; see its error message above"
                )
        _send(processes, signal.SIGSTOP)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
            if process.stdout is not None:
                process.stdout.close()


def resume(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Lets the workers run."""
    _send(processes, signal.SIGCONT)


def _send(processes: Sequence["subprocess.Popen[bytes]"], signum: int) -> None:
    for process in processes:
        process.send_signal(signum)
