"""RAPL's counters by perf events, where powercap is not there: `perf[,root=DIR][,max_w=500]`.

The kernel's `power` unit (/sys/bus/event_source/devices/power): `events/energy-pkg` and
`energy-ram`, each opened with perf_event_open(2) on one CPU of every package, as counts
of `energy-*.scale` joules. The kernel widens the counters to 64 bits, so that they do not wrap.
`energy-cores`, `-gpu` and `-psys` are left out, for the reasons in `rapl`.

`cpumask` does not list counters: it names a CPU a die where packages have one counter (AMD before
6.12), and the newest kernels name every CPU. Of the CPUs in it the first of each package is taken
(`topology/physical_package_id`), or of each die (`die_id`) where dies have counters of their own,
by the rules of `rapl`.

Both read the same counters: `auto` takes `rapl` where that can be read. perf needs CAP_PERFMON or
root, or kernel.perf_event_paranoid of at most 0.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.files.inputs import CPUS
from eeio.units.quantities import NUMBER, POWER
from eeio_power.errors import PowerError
from eeio_power.meters import (
    Channel,
    Detected,
    Measured,
    Reads,
    Verified,
    contents_of,
    number_option,
    rapl,
)
from eeio_power.meters.rapl import DIES_OPTION, dies_once
from eeio_power.reading import Domain, Kind
from eeio_power.sysfs import read_int, read_optional_int, read_text

OPTIONS = {
    "root": "the unit's folder, instead of /sys/bus/event_source/devices/power",
    "max_w": "highest power of one counter, W (default 500): more is a jump",
    "dies": DIES_OPTION,
}

UNIT = Path("sys/bus/event_source/devices/power")
CPU_FOLDER = Path("sys/devices/system/cpu")
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "packages"
READS = Reads(
    files=(
        ("sys/bus/event_source/devices/power*", "type,cpumask,cpus,events/energy-*,format/event"),
    )
)
EVENTS: Mapping[str, Domain] = {"energy-pkg": "package", "energy-ram": "dram"}

# perf_event_open's number: linux' asm/unistd.h. RAPL is there on x86 only.
SYSCALL_NUMBERS = {"x86_64": 298, "i686": 336, "i386": 336}
# struct perf_event_attr, PERF_ATTR_SIZE_VER0 (64 bytes): type size config sample_period sample_type
# read_format flags wakeup_events bp_type bp_addr
ATTR = struct.Struct("=IIQQQQQIIQ")

Opener = Callable[[int, int, int], int]
"""(type, config, cpu) -> file descriptor; raises OSError."""


@dataclass(frozen=True)
class _Event:
    channel: Channel
    config: int
    cpu: int
    scale_j: float


def open_event(event_type: int, config: int, cpu: int) -> int:
    """A counting event of everything on one CPU. Raises OSError as the kernel gave it."""
    number = SYSCALL_NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(38, f"perf energy events are not known on {platform.machine()}")
    attr = ctypes.create_string_buffer(
        ATTR.pack(event_type, ATTR.size, config, 0, 0, 0, 0, 0, 0, 0), ATTR.size
    )
    libc = ctypes.CDLL(None, use_errno=True)
    close_on_exec = 8
    fd = libc.syscall(
        ctypes.c_long(number),
        attr,
        ctypes.c_int(-1),
        ctypes.c_int(cpu),
        ctypes.c_int(-1),
        ctypes.c_ulong(close_on_exec),
    )
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(fd)


DELAY = rapl.DELAY


class PerfMeter:
    """The package and DRAM counters of every package."""

    kind: Kind = KIND
    native_period_s = rapl.NATIVE_PERIOD_S

    def __init__(
        self, spec: str, name: str, events: Sequence[_Event], event_type: int, opener: Opener
    ) -> None:
        self.spec = spec
        self.name = name
        self.channels: Sequence[Channel] = [event.channel for event in events]
        self._scales_j = [event.scale_j for event in events]
        self._fds: list[int] = []
        try:
            for event in events:
                self._fds.append(opener(event_type, event.config, event.cpu))
        except OSError:
            self.close()
            raise

    def read(self) -> Sequence[float | None]:
        """J since the meter was opened. Raises OSError if a counter cannot be read."""
        values = []
        for channel, fd, scale_j in zip(self.channels, self._fds, self._scales_j, strict=True):
            count = os.read(fd, 8)
            if len(count) < 8:  # an event in error reads as an end of file
                raise OSError(errno.EIO, f"{channel.name} has no count")
            values.append(int.from_bytes(count, "little") * scale_j)
        return values

    def close(self) -> None:
        """Close the events."""
        while self._fds:
            os.close(self._fds.pop())


def _stand_in(event_type: int, config: int, cpu: int) -> int:
    """Events in another machine's tree can be listed but not opened: this machine's would be."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, opener: Opener | None = None
) -> PerfMeter:
    """Open the events. Raises PowerError if there is none, or they may not be read."""
    opener = opener or (open_event if root == Path("/") else _stand_in)
    unit = root / UNIT
    if "root" in options:
        unit = Path(options["root"])
    max_power_w = number_option(spec, options, "max_w", above_zero=True) or rapl.MAX_POWER_W
    once = dies_once(spec, options, root)
    try:
        events, event_type = _events(unit, root / CPU_FOLDER, max_power_w, once)
    except (OSError, ValueError) as error:
        raise PowerError(f"meter '{spec}': {unit}: {error}; {_ABSENT_REMEDY}") from error
    try:
        return PerfMeter(spec, options.get("name", "perf"), events, event_type, opener)
    except OSError as error:
        raise PowerError(f"meter '{spec}': {error.strerror}; {_PERMISSION_REMEDY}") from error


def find(root: Path) -> Detected:
    """Whether the events are there and may be read; `rapl` goes first in `auto`."""
    try:
        meter = open_meter("perf", {}, root)
    except PowerError as error:
        reason, _, remedy = str(error).removeprefix("meter 'perf': ").rpartition("; ")
        return Detected("perf", KIND, ("package", "dram"), False, reason, remedy)
    meter.close()
    domains = tuple(dict.fromkeys(channel.domain for channel in meter.channels))
    in_auto = not rapl.find(root).available
    contents = contents_of(meter.channels)
    return Detected("perf", KIND, domains, True, contents=contents, in_auto=in_auto)


_ABSENT_REMEDY = "RAPL's perf events exist only on x86 ('modprobe rapl'), not in most guests"
_PERMISSION_REMEDY = "run as root, or give CAP_PERFMON, or set kernel.perf_event_paranoid=0"


@dataclass(frozen=True)
class _Counter:
    """One counter of a package: its name, the package it is of, and a CPU to read it on."""

    name: str
    package: str
    cpu: int
    own: bool
    """It is the package's only counter, or it is known to belong to one die."""


def _events(
    unit: Path, cpu_folder: Path, max_power_w: float, once: bool | None
) -> tuple[list[_Event], int]:
    """Raises OSError or ValueError if the unit is not there, or is damaged."""
    event_type = NUMBER.whole_number(read_int(unit / "type"), f"{unit / 'type'}")
    counters = _counters(_cpu_list(read_text(unit / "cpumask")), cpu_folder, once)
    events = []
    for counter in counters:
        for label, domain in EVENTS.items():
            file = unit / "events" / label
            if not file.exists():
                continue
            unit_name = read_text(file.with_name(f"{label}.unit"))
            if unit_name != "Joules":
                raise ValueError(f"{label} is in {unit_name!r:.60}, not in Joules")
            scale_j = POWER.of_text(read_text(file.with_name(f"{label}.scale")), f"{label}.scale")
            memory = domain == "dram"
            part = ""
            if memory:
                part = " dram"
            counts = counter.package + part
            channel = Channel(
                name=f"perf:{counter.name}" + ("/dram" if memory else ""),
                domain=domain,
                quantity="energy_j",
                accuracy_relative=rapl.ACCURACY[domain],
                resolution=rapl.RESOLUTION_J,
                max_power_w=max_power_w,
                contents=rapl.CONTENTS[domain],
                counts=None if counter.own else counts,
            )
            events.append(_Event(channel, _config(read_text(file)), counter.cpu, scale_j))
    if not events:
        raise ValueError("no energy-pkg and no energy-ram")
    return events, event_type


def _counters(cpus: Sequence[int], cpu_folder: Path, once: bool | None) -> list[_Counter]:
    """One counter a package, or a die unless `once`. Raises ValueError if that is unknown."""
    first: dict[tuple[int, int], int] = {}
    for cpu in cpus:
        topology = cpu_folder / f"cpu{cpu}" / "topology"
        package = read_optional_int(topology / "physical_package_id")
        if package is None and len(cpus) > 1:
            raise ValueError(
                f"{topology / 'physical_package_id'} cannot be read, so it is unknown which of "
                f"the {len(cpus)} CPUs of cpumask share a counter"
            )
        # Kernels before 5.3 know no dies; every package is one then.
        die = 0
        if not once:
            die = read_optional_int(topology / "die_id") or 0
        first.setdefault((package or 0, die), cpu)
    packages = {package for package, _ in first}
    for file in sorted(cpu_folder.glob("cpu[0-9]*/topology/physical_package_id")):
        if read_optional_int(file) not in packages:
            raise ValueError(f"cpumask names no CPU of the package of {file.parents[1].name}")
    dies: dict[int, int] = {}
    for package, _ in first:
        dies[package] = dies.get(package, 0) + 1
    return [
        _Counter(
            name=f"package-{package}" + (f"-die-{die}" if dies[package] > 1 else ""),
            package=f"package-{package}",
            cpu=cpu,
            own=once is False or dies[package] == 1,
        )
        for (package, die), cpu in sorted(first.items())
    ]


def _config(text: str) -> int:
    """`event=0x02` -> 2. Raises ValueError."""
    key, _, value = text.partition("=")
    if key != "event":
        raise ValueError(f"an event described as {text!r:.60}")
    return int(value, 0)


def _cpu_list(text: str) -> list[int]:
    """`0,36` or `0-1` -> CPU numbers. Raises ValueError."""
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        if not 0 <= begin <= end < CPUS:
            raise ValueError(f"CPUs {part!r:.60}")
        cpus += range(begin, end + 1)
    return cpus
