"""A fictitious machine's power, to try eeio without hardware. No power is measured.

`demo` follows this machine's load, so that phases differ as real ones do:

    package  5 W + 15 W x utilisation of the processors
    device   1.5 W + 3.5 W x bytes of all disks a second / 500 MB/s, at most 5 W
    system   (20 W + package + device) / 0.9

Its readings are of the kind `demo`, which every output marks. They are compared with other demo
readings only, and never ranked, priced or uploaded.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eeio.units.quantities import COUNT
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected
from eeio_power.meters.modelled import STAT, CpuTicks, parse_stat, utilisation
from eeio_power.reading import Contents, Domain, Kind, all_but, only
from eeio_power.sysfs import read_text

OPTIONS: dict[str, str] = {}
KIND: Kind = "demo"
DISKS = Path("proc/diskstats")
NATIVE_PERIOD_S = 0.01
ACCURACY = 0.01
# The kernel counts processor time in ticks of 10 ms: over less the utilisation is noise.
_LOAD_S = 0.1
_SECTOR_BYTES = 512
_FULL_BYTES_PER_S = 500e6
_DOMAINS: tuple[tuple[Domain, float, Contents], ...] = (
    ("system", 100.0, all_but()),
    ("package", 20.0, only("processor")),
    ("device", 5.0, only("drives")),
)
# Only disks; partitions and stacked devices would count bytes again.
_DISK = re.compile(r"(sd[a-z]+|hd[a-z]|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)")


class DemoMeter:
    """Three counters of fictitious joules since it was opened."""

    kind: Kind = KIND
    native_period_s = NATIVE_PERIOD_S

    def __init__(
        self, spec: str, name: str, root: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.spec = spec
        self.name = name
        self._root = root
        self._clock = clock
        self._time_s = self._load_from_s = clock()
        self._ticks = self._read_ticks()
        self._bytes = self._read_bytes()
        self._load = 0.0
        self._energy_j = [0.0, 0.0, 0.0]
        self.channels: Sequence[Channel] = tuple(
            Channel(
                name=f"demo:{domain}",
                domain=domain,
                quantity="energy_j",
                accuracy_relative=ACCURACY,
                resolution=1e-6,
                max_power_w=max_power_w,
                contents=contents,
            )
            for domain, max_power_w, contents in _DOMAINS
        )

    def read(self) -> Sequence[float | None]:
        """Energy since opening, J. Raises OSError or ValueError if /proc cannot be read."""
        now_s, moved = self._clock(), self._read_bytes()
        lasted_s = now_s - self._time_s
        if lasted_s <= 0:
            return list(self._energy_j)
        if now_s - self._load_from_s >= _LOAD_S:
            ticks = self._read_ticks()
            self._load = utilisation(self._ticks, ticks) or 0.0
            self._ticks, self._load_from_s = ticks, now_s
        rate = max(0, moved - self._bytes) / lasted_s
        package_w = 5.0 + 15.0 * self._load
        device_w = 1.5 + 3.5 * min(1.0, rate / _FULL_BYTES_PER_S)
        for index, power_w in enumerate(((20.0 + package_w + device_w) / 0.9, package_w, device_w)):
            self._energy_j[index] += power_w * lasted_s
        self._time_s, self._bytes = now_s, moved
        return list(self._energy_j)

    def close(self) -> None:
        """No file stays open."""

    def _read_ticks(self) -> CpuTicks:
        return parse_stat(read_text(self._root / STAT))

    def _read_bytes(self) -> int:
        """Bytes that all disks have read and written since boot; 0 where none is listed."""
        total = 0
        for line in read_text(self._root / DISKS).splitlines():
            fields = line.split()
            if len(fields) > 9 and _DISK.fullmatch(fields[2]):
                sectors = (COUNT.of_text(fields[place], "sectors") for place in (5, 9))
                total += _SECTOR_BYTES * int(sum(sectors))
        return total


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> DemoMeter:
    """Raises PowerError if /proc cannot be read."""
    try:
        return DemoMeter(spec, options.get("name", "demo"), root)
    except (OSError, ValueError) as error:
        raise PowerError(f"meter '{spec}': {error}; it needs Linux with /proc mounted") from error


def find(root: Path) -> Detected:
    """It is there on every machine, and never chosen by `auto`."""
    return Detected(
        "demo",
        KIND,
        tuple(domain for domain, _, _ in _DOMAINS),
        True,
        "fictitious power, to try eeio without a meter",
        in_auto=False,
    )
