"""Whether the machine is idle during an idle baseline.

Power of other work would be in the baseline, and so be missing from each figure above idle. All
drives of the machine count, because the system contains them, and its processors. The limits are
above what an idle machine does, and below what changes its power by a watt.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eeio_power.reading import EnergyReading
from eeio_power.suspension import invalid

MOST_BYTES_PER_S = 1e6
"""Of a drive. Journals, logs and eeio's samples are less."""
MOST_PROCESSORS = 0.5
"""In use on average, without this process. A program that computes uses one."""
LEAST_S = 1.0
"""A shorter baseline counts as this long: one commit of a journal is no load."""

# /proc/stat, line `cpu`: user nice system idle iowait irq softirq steal (proc_stat(5)).
_IN_USE = (0, 1, 2, 5, 6)
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Activity:
    """What the kernel has counted so far."""

    at_s: float
    moved_bytes: Mapping[str, int]
    """Of each drive, read and written."""
    used_s: float
    """Processor time of all programs but this one."""


def activity(drives: Collection[str] = (), root: Path = Path("/")) -> Activity:
    """Of all drives of the machine, and of further block devices by their names (`loop0`)."""
    blocks = root / "sys/block"
    names = {path.parent.name for path in blocks.glob("*/device")} | set(drives)
    moved_bytes = {}
    for name in sorted(names):
        with suppress(OSError, ValueError, IndexError):
            fields = (blocks / name / "stat").read_text(encoding="ascii").split()
            moved_bytes[name] = (int(fields[2]) + int(fields[6])) * _SECTOR_BYTES
    return Activity(time.monotonic(), moved_bytes, _used_s(root))


def _used_s(root: Path) -> float:
    with suppress(OSError, ValueError, IndexError):
        fields = (root / "proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        ticks = sum(int(fields[place]) for place in _IN_USE)
        return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])
    return 0.0


def why_not_idle(before: Activity, after: Activity) -> str | None:
    """As text; None if the machine was idle in between."""
    lasted_s = max(after.at_s - before.at_s, LEAST_S)
    rates = {}
    for name, moved in after.moved_bytes.items():
        rates[name] = (moved - before.moved_bytes.get(name, moved)) / lasted_s
    causes = [
        f"{name} moved {rate / 1e6:.1f} MB/s"
        for name, rate in rates.items()
        if rate > MOST_BYTES_PER_S
    ]
    processors = (after.used_s - before.used_s) / lasted_s
    if processors > MOST_PROCESSORS:
        causes.append(f"{processors:.1f} processors were in use")
    if causes:
        return f"the machine was not idle: {', '.join(causes)}"
    return None


@dataclass(frozen=True)
class Baseline:
    """The time of an idle baseline, monotonic s, and why it is none."""

    start_s: float
    end_s: float
    why_not_idle: str | None

    def readings(self, readings: Sequence[EnergyReading]) -> tuple[EnergyReading, ...]:
        """Those of this time, without figures if the machine was not idle. Fictitious power does
        not depend on the machine."""
        if self.why_not_idle is None:
            return tuple(readings)
        return tuple(
            reading if reading.kind == "demo" else invalid([reading], self.why_not_idle)[0]
            for reading in readings
        )


def wait(
    seconds: float, drives: Collection[str] = (), say: Callable[[str], None] = lambda text: None
) -> Baseline:
    """Waits for the time of a baseline, and once more if the machine was not idle. `drives` as in
    `activity`."""
    baseline = _waited(seconds, drives)
    if baseline.why_not_idle is None:
        return baseline
    say(f"{baseline.why_not_idle}; measuring idle power once more")
    return _waited(seconds, drives)


def _waited(seconds: float, drives: Collection[str]) -> Baseline:
    before = activity(drives)
    start_s = time.monotonic()
    time.sleep(seconds)
    return Baseline(start_s, start_s + seconds, why_not_idle(before, activity(drives)))
