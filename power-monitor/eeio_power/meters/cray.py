"""Cray's power counters of a node: `cray[,root=DIR]`, where DIR is /sys/cray/pm_counters.

Each file contains a number, its unit and the time of its scan (`245 W 1700000000000000 us`).
`energy` is the node's counter, J, with its accelerators in it; `cpu_energy` and `memory_energy` are
those of the processors and the memory. If a node has no counters, the powers (`power`, `cpu_power`,
`memory_power`, W) are read. Accelerators (`accel*`) are part of the node, without a separate
domain.

`freshness` counts the scans, about ten a second (see `raw_scan_hz`). While it does not change, the
numbers are old, and the reading is missing.

Accuracy is not stated by HPE: 5 % is used. The counters have integer joules.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.units.quantities import ENERGY
from eeio_power.delay import unknown_up_to
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, Measured, Quantity, Reads, Verified, contents_of
from eeio_power.reading import Contents, Domain, Kind, all_but, only
from eeio_power.sysfs import read_int, read_optional_int, read_text

DELAY = unknown_up_to(0.1, 0.0, "Cray: the node's controller scans at 10 Hz")
OPTIONS = {"root": "the folder of counters, instead of /sys/cray/pm_counters"}

COUNTERS = Path("sys/cray/pm_counters")
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
READS = Reads(files=(("sys/cray/pm_counters", "*"),))
SCAN_HZ = 10.0
MOST_SCAN_HZ = 1000
ACCURACY = 0.05
MAX_POWER_W = 20e3
# After so many scans that should have come, the counters are old.
STALE_SCANS = 20.0

# Rectifiers are in the cabinet; whether drives, network and fans are in it depends on the blade.
NODE = all_but("supply", unknown=("drives", "network", "fans"))
_PARTS: Sequence[tuple[str, Domain, Contents]] = (
    ("", "system", NODE),
    ("cpu_", "package", only("processor")),
    ("memory_", "dram", only("memory")),
)
_UNITS: Mapping[Quantity, tuple[str, str]] = {
    "energy_j": ("energy", "J"),
    "power_w": ("power", "W"),
}
_ABSENT_REMEDY = "Cray EX and XC nodes have it; elsewhere use another meter"


@dataclass(frozen=True)
class _Counter:
    channel: Channel
    file: Path

    def read(self) -> float | None:
        """J or W; None if the file cannot be read or contains something else."""
        try:
            return _value(self.file, _UNITS[self.channel.quantity][1])
        except (OSError, ValueError):
            return None


class CrayMeter:
    """The counters of this node."""

    kind: Kind = KIND

    def __init__(
        self,
        spec: str,
        name: str,
        folder: Path,
        counters: Sequence[_Counter],
        clock: Callable[[], float],
    ) -> None:
        self.spec = spec
        self.name = name
        self.channels: Sequence[Channel] = [counter.channel for counter in counters]
        scan_hz = read_optional_int(folder / "raw_scan_hz") or 0
        self.native_period_s = 1.0 / (scan_hz if 0 < scan_hz <= MOST_SCAN_HZ else SCAN_HZ)
        self._freshness = folder / "freshness"
        self._counters = counters
        self._clock = clock
        self._scan: int | None = None
        self._since_s = 0.0

    def read(self) -> Sequence[float | None]:
        """J or W of each counter. Raises PowerError while no scan comes."""
        scan = read_optional_int(self._freshness)
        now_s = self._clock()
        if scan is None or scan != self._scan:
            self._scan, self._since_s = scan, now_s
        elif now_s - self._since_s > STALE_SCANS * self.native_period_s:
            raise PowerError(
                f"{self._freshness} does not change from {scan}: the other counters are out of date"
            )
        return [counter.read() for counter in self._counters]

    def close(self) -> None:
        """No file stays open."""


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, clock: Callable[[], float] = time.monotonic
) -> CrayMeter:
    """Open the counters. Raises PowerError if the node's is not there or cannot be read."""
    folder = root / COUNTERS
    if "root" in options:
        folder = Path(options["root"])
    try:
        counters = _found(folder)
    except (OSError, ValueError) as error:
        raise PowerError(f"meter '{spec}': {folder}: {error}; {_ABSENT_REMEDY}") from error
    return CrayMeter(spec, options.get("name", "cray"), folder, counters, clock)


def find(root: Path) -> Detected:
    """Whether this is a Cray node with readable counters."""
    try:
        meter = open_meter("cray", {}, root)
    except PowerError as error:
        reason, _, remedy = str(error).removeprefix("meter 'cray': ").rpartition("; ")
        return Detected("cray", KIND, ("system",), False, reason, remedy)
    contents = contents_of(meter.channels)
    return Detected("cray", KIND, tuple(contents), True, contents=contents)


def _found(folder: Path) -> list[_Counter]:
    """The node's and its parts' counters. Raises OSError or ValueError without the node's."""
    counters = []
    for prefix, domain, contents in _PARTS:
        counter = _counter(folder, prefix, domain, contents)
        if counter is not None:
            counters.append(counter)
        elif domain == "system":
            read_int(folder / "freshness")  # raises the error, if there is one
            raise ValueError("neither energy nor power can be read")
    return counters


def _counter(folder: Path, prefix: str, domain: Domain, contents: Contents) -> _Counter | None:
    for quantity, (word, unit) in _UNITS.items():
        file = folder / f"{prefix}{word}"
        try:
            _value(file, unit)
        except (OSError, ValueError):
            continue
        channel = Channel(
            name=f"cray:{prefix}{word}",
            domain=domain,
            quantity=quantity,
            accuracy_relative=ACCURACY,
            resolution=1.0,
            max_power_w=MAX_POWER_W,
            contents=contents,
        )
        return _Counter(channel, file)
    return None


def _value(file: Path, unit: str) -> float:
    """`245 W 1700000000000000 us` -> 245. Raises OSError or ValueError."""
    fields = read_text(file).split()
    if len(fields) < 2 or fields[1] != unit:
        raise ValueError(f"{file.name} is not in {unit}: {' '.join(fields)!r:.60}")
    return ENERGY.of_text(fields[0], str(file))
