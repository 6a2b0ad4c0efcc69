"""A CPU-load model of the system's power: an estimate, for machines without any meter.

`modelled[,idle_w=X][,busy_w=Y]`:

    P = idle_w + utilisation x (busy_w - idle_w)

with the utilisation of all CPUs from /proc/stat between two consecutive reads: the linear model of
Fan, Weber and Barroso, "Power provisioning for a warehouse-sized computer", ISCA 2007. The meter
integrates P itself and offers the energy since it was opened as a counter, so that late reads lose
no energy.

It does not see drives, network or memory: for I/O it is worse than for computing. Its readings are
`modelled`, never `measured`, and carry a band of 20 % when both coefficients were measured on this
machine and given, 50 % with the nominal ones: 2 W + 1 W a CPU idle, 2 W + 6 W a CPU busy.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.units.quantities import COUNT
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, number_option
from eeio_power.reading import Kind, all_but
from eeio_power.sysfs import read_text

OPTIONS = {
    "idle_w": "power of the complete system when idle, W",
    "busy_w": "power of the complete system with all CPUs busy, W",
}

# Its two powers are those of the complete machine, without the active power of drives.
CONTENTS = all_but("drives")
KIND: Kind = "modelled"
STAT = Path("proc/stat")
# Ten of the kernel's 10 ms ticks: below that the utilisation of one CPU is all noise.
NATIVE_PERIOD_S = 0.1
CALIBRATED_BAND = 0.20
NOMINAL_BAND = 0.50
BASE_W = 2.0
IDLE_W_PER_CPU = 1.0
BUSY_W_PER_CPU = 6.0


@dataclass(frozen=True)
class CpuTicks:
    """Ticks of all CPUs since boot."""

    busy: int
    total: int
    cpus: int


def parse_stat(text: str) -> CpuTicks:
    """Ticks from /proc/stat. Waiting for I/O is idle time; guests are in user time already.

    Raises ValueError if the text has no `cpu` line.
    """
    lines = []
    for line in text.splitlines():
        if line.startswith("cpu"):
            lines.append(line.split())
    if not lines or lines[0][0] != "cpu" or len(lines[0]) < 6:
        raise ValueError("no 'cpu' line with at least five numbers")
    # user nice system idle iowait irq softirq steal [guest guest_nice]
    ticks = [int(COUNT.of_text(word, "ticks")) for word in lines[0][1:9]]
    total = sum(ticks)
    return CpuTicks(busy=total - ticks[3] - ticks[4], total=total, cpus=max(1, len(lines) - 1))


def utilisation(before: CpuTicks, after: CpuTicks) -> float | None:
    """Share of CPU time that was busy, 0 to 1; None if no tick went by in between."""
    total = after.total - before.total
    if total <= 0:
        return None
    return min(1.0, max(0.0, (after.busy - before.busy) / total))


class ModelledMeter:
    """The model; one channel, a counter of modelled joules."""

    kind: Kind = KIND
    native_period_s = NATIVE_PERIOD_S

    def __init__(
        self,
        spec: str,
        name: str,
        stat_file: Path,
        idle_w: float | None,
        busy_w: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self.name = name
        self._stat_file = stat_file
        self._clock = clock
        self._time_s = clock()
        self._ticks = parse_stat(read_text(stat_file))
        self._load: float | None = None
        self._energy_j = 0.0
        calibrated = idle_w is not None and busy_w is not None
        cpus = self._ticks.cpus
        if idle_w is None:
            idle_w = BASE_W + IDLE_W_PER_CPU * cpus
        if busy_w is None:
            busy_w = BASE_W + BUSY_W_PER_CPU * cpus
        self.idle_w = idle_w
        self.busy_w = busy_w
        if self.busy_w < self.idle_w:
            raise PowerError(
                f"meter '{spec}': busy_w ({self.busy_w:g} W) is under idle_w ({self.idle_w:g} W); "
                "give both, the larger one as busy_w"
            )
        accuracy = NOMINAL_BAND
        if calibrated:
            accuracy = CALIBRATED_BAND
        self.channels: Sequence[Channel] = (
            Channel(
                name="modelled:system",
                domain="system",
                quantity="energy_j",
                accuracy_relative=accuracy,
                contents=CONTENTS,
            ),
        )

    def read(self) -> Sequence[float | None]:
        """Modelled energy since opening, J; None before the first CPU tick.

        Raises OSError or ValueError if /proc/stat cannot be read.
        """
        now_s, ticks = self._clock(), parse_stat(read_text(self._stat_file))
        load = utilisation(self._ticks, ticks)
        if load is None:
            # Read again within one tick: the load of the ticks before is the newest there is.
            load = self._load
        if load is None:
            return [None]
        power_w = self.idle_w + load * (self.busy_w - self.idle_w)
        self._energy_j += power_w * (now_s - self._time_s)
        self._time_s, self._ticks, self._load = now_s, ticks, load
        return [self._energy_j]

    def close(self) -> None:
        """No file stays open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> ModelledMeter:
    """Open the model. Raises PowerError if /proc/stat cannot be read or a power is not a number."""
    idle_w = number_option(spec, options, "idle_w")
    busy_w = number_option(spec, options, "busy_w")
    stat_file = root / STAT
    try:
        return ModelledMeter(spec, options.get("name", "modelled"), stat_file, idle_w, busy_w)
    except (OSError, ValueError) as error:
        raise PowerError(
            f"meter '{spec}': {stat_file} does not give CPU times ({error}); the model needs Linux "
            "with /proc mounted"
        ) from error


def find(root: Path) -> Detected:
    """The model is there wherever /proc/stat is."""
    try:
        parse_stat(read_text(root / STAT))
    except (OSError, ValueError) as error:
        reason = f"{root / STAT} does not give CPU times ({error})"
        return Detected("modelled", KIND, ("system",), False, reason, "mount /proc")
    return Detected(
        "modelled",
        KIND,
        ("system",),
        True,
        f"an estimate from CPU load, accurate to {NOMINAL_BAND:.0%}: it ignores drives",
        "attach a meter, or measure this machine idle and busy and give idle_w and busy_w",
        contents={"system": CONTENTS},
    )
