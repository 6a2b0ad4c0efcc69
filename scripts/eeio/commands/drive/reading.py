"""One state of a drive while the meters are read: code shared by sweeps of all kinds of drives."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.power import recorded
from eeio.system.caches import read_direct
from eeio_power.monitor import PowerMonitor
from eeio_results.record import EnergyReading
from eeio_results.windows import known

_SECTOR_BYTES = 4096


@dataclass(frozen=True)
class Asked:
    """Which drive is measured, for `seconds` in each state, after `settle_s`."""

    node: Path
    seconds: float
    settle_s: float
    power: PowerMonitor


@dataclass(frozen=True)
class StateReading:
    """One state: how long it was measured, and what the meters saw. `invalid` says why not. Of a
    state in which the drive read, `bandwidth_bytes_per_s`."""

    state: str
    duration_s: float
    energy: tuple[EnergyReading, ...]
    invalid: str | None
    bandwidth_bytes_per_s: float | None = None

    def because(self, reason: str) -> "StateReading":
        return replace(self, invalid=self.invalid or reason)


def during(state: str, act: Callable[[], int | None], power: PowerMonitor) -> StateReading:
    """`act` returns how much it read, None where that is not the question."""
    power.mark()
    start_s = time.monotonic()
    moved = act()
    end_s = time.monotonic()
    power.mark()
    return StateReading(
        state,
        end_s - start_s,
        tuple(map(known, recorded(power.energy(start_s, end_s)))),
        None,
        moved / (end_s - start_s) if moved else None,
    )


def read_for(node: Path, seconds: float) -> int:
    """Reads the drive from its beginning, over and over, past the page cache; bytes in all."""
    end_s = time.monotonic() + seconds
    moved = 0
    while time.monotonic() < end_s:
        moved += read_direct(node, None, end_s=end_s)
    return moved


def wake(node: Path) -> None:
    """Reads a sector, which any drive has to be awake for."""
    read_direct(node, _SECTOR_BYTES)
