"""A powercap folder as RAPL's drivers make it, with counters that run, wrap and fail.

Stepped by hand:

    rapl = FakeRapl(tmp_path, power_w=lambda t_s: 120.0)
    rapl.step(0.1)

or running in real time:

    with FakeRapl(tmp_path, power_w=pulses):
        open_meters([f"rapl,root={tmp_path}"])
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from eeio_power.errors import PowerError
from tests.simulators.files import write_atomically, write_in_place

Power = Callable[[float], float]
"""W at a time, s, since the simulator's start."""

PACKAGE_RANGE_UJ = 262_143_328_850
DRAM_RANGE_UJ = 65_532_610_987


@dataclass(frozen=True)
class FakeZone:
    """One zone: its folder's name, its label, and its share of the power function."""

    folder: str
    label: str
    share: float
    range_uj: int = PACKAGE_RANGE_UJ
    start_uj: int = 0


def default_zones(packages: int = 2) -> tuple[FakeZone, ...]:
    """Zones of a server. `package-N` and `dram` add up to 1 over all packages: the true sum.

    Of a package's power, 60 % is its core's and 10 % its uncore's (parts of it); DRAM has a fifth
    of the total; psys holds everything and a quarter more; the mmio zones repeat the packages.
    """
    zones: list[FakeZone] = []
    for n in range(packages):
        package, dram = 0.8 / packages, 0.2 / packages
        zones += [
            FakeZone(f"intel-rapl:{n}", f"package-{n}", package),
            FakeZone(f"intel-rapl:{n}:0", "core", 0.6 * package),
            FakeZone(f"intel-rapl:{n}:1", "uncore", 0.1 * package),
            FakeZone(f"intel-rapl:{n}:2", "dram", dram, DRAM_RANGE_UJ),
            FakeZone(f"intel-rapl-mmio:{n}", f"package-{n}", package),
        ]
    zones.append(FakeZone(f"intel-rapl:{packages}", "psys", 1.25))
    return tuple(zones)


class FakeRapl:
    """A powercap folder at `root`; `power_w` is what packages and DRAM draw together.

    The power is integrated by the midpoint rule in steps of at most `step_s`.
    """

    def __init__(
        self,
        root: Path,
        zones: Sequence[FakeZone] | None = None,
        power_w: Power = lambda _: 100.0,
        *,
        step_s: float = 0.01,
    ) -> None:
        self.root = root
        self.zones = default_zones() if zones is None else tuple(zones)
        self.now_s = 0.0
        """Simulated time, s."""
        self.energy_j = 0.0
        """True energy of a share of 1 since the start, J."""
        self.largest_lag_s = 0.0
        """How far the counters were behind at most, on a machine that gave them no processor."""
        self._power_w = power_w
        self._step_s = step_s
        self._failing: set[str] = set()
        # fail() and recover() come from a test's thread while the counters run in another.
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        root.mkdir(parents=True, exist_ok=True)
        for zone in self.zones:
            folder = root / zone.folder
            folder.mkdir()
            write_atomically(folder / "name", zone.label)
            write_atomically(folder / "max_energy_range_uj", str(zone.range_uj))
        self._write()

    def step(self, duration_s: float) -> None:
        """Let time go by, then write the counters once."""
        steps = max(1, -int(-duration_s // self._step_s))
        width_s = duration_s / steps
        for k in range(steps):
            self.energy_j += self._power_w(self.now_s + (k + 0.5) * width_s) * width_s
        self.now_s += duration_s
        self._write()

    def fail(self, folder: str) -> None:
        """Make reads of the zone's counter fail until `recover`."""
        with self._lock:
            self._failing.add(folder)
            # A file without permissions would not fail for root; an empty one does for everybody.
            os.truncate(self.root / folder / "energy_uj", 0)

    def recover(self, folder: str) -> None:
        """Let the zone's counter be read again."""
        with self._lock:
            self._failing.discard(folder)
            self._write()

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise PowerError("this simulator runs already; make a new one")
        self._thread = threading.Thread(target=self._run, name="fake-rapl", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Real counters need no processor: root's run before everything else on a busy machine.
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        begun_s = time.monotonic() - self.now_s
        wait_s = self._step_s
        while not self._stop.wait(wait_s):
            late_s = time.monotonic() - begun_s - self.now_s
            self.largest_lag_s = max(self.largest_lag_s, late_s)
            # After a while without processor time: all at once would be more power than a package
            # can give, and a meter would take it for a reset.
            self.step(min(late_s, max(2 * self._step_s, min(late_s / 8, 4 * self._step_s))))
            wait_s = self._step_s if late_s <= 2 * self._step_s else self._step_s / 2

    def _write(self) -> None:
        with self._lock:
            for zone in self.zones:
                if zone.folder not in self._failing:
                    total_uj = zone.start_uj + round(self.energy_j * zone.share * 1e6)
                    counter = self.root / zone.folder / "energy_uj"
                    write_in_place(counter, str(total_uj % zone.range_uj))
