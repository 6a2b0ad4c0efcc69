"""Limits of this process's control group and of its parents, and what throttles the machine.

Control groups of both versions: bytes and requests per second of a device, processor time, memory.
Parents outside a container's view are not known. Whether a run reached a limit: by its rates for a
device, by the kernel's counts of waiting for processor time and memory.

Stolen processor time is what the host of a virtual machine gave to others. Throttling is counted
by Intel's processors, NVMe drives and the firmware of Raspberry Pis; cooling devices show a state.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from eeio.system.below import stack_below
from eeio.system.drive import thermal_transitions
from eeio.system.filesystem import BlockDevice, Mount, mounts
from eeio_results.record import Phase

NEAR = (0.9, 1.1)
"""A rate between these shares of a limit is at the limit."""
LEAST_WAIT_SHARE = 0.01
"""Of a run's time: less waiting for processor time is not named."""
LEAST_STOLEN_SHARE = 0.02
"""Of the processors' time: less stolen time is not named."""

# Of version 1: file, and the name of version 2 for what it limits.
_DEVICE_FILES = {
    "blkio.throttle.read_bps_device": "rbps",
    "blkio.throttle.write_bps_device": "wbps",
    "blkio.throttle.read_iops_device": "riops",
    "blkio.throttle.write_iops_device": "wiops",
}
_OF_PROCESSORS = ("cpu.max", "cpu.cfs_quota_us")
_OF_MEMORY = ("memory.max", "memory.high", "memory.limit_in_bytes")
_FILES = (
    "io.max", "io.latency", "io.weight", *_DEVICE_FILES, *_OF_PROCESSORS, *_OF_MEMORY,
)  # fmt: skip
# From here on a limit of version 1 means none: the largest multiple of a page.
_UNLIMITED_BYTES = 1 << 62
_NONE = {"io.weight": "default 100", "cpu.cfs_quota_us": "-1"}
_UNITS = {"rbps": "MB/s", "wbps": "MB/s", "riops": "requests/s", "wiops": "requests/s"}


@dataclass(frozen=True)
class Group:
    """A control group, by its name and its folder."""

    name: str
    folder: Path


def own_groups(root: Path = Path("/")) -> list[Group]:
    """Those of this process and their visible parents, in all hierarchies."""
    found: dict[Path, Group] = {}
    own = (_text(root / "proc/self/cgroup") or "").splitlines()
    for mount in mounts(root):
        for line in own:
            _, controllers, name = line.split(":", 2)
            if not _is_hierarchy(mount, controllers):
                continue
            top = root / str(mount.mount_point).lstrip("/")
            folder = top / name.lstrip("/")
            # A container may see only its part of the tree, under the name of the host.
            folder = folder if folder.is_dir() else top
            # Throttling in version 1 is flat: a parent's limit is not its children's.
            parents = () if "blkio" in controllers.split(",") else folder.parents
            for each in (folder, *parents):
                found[each] = Group(f"/{each.relative_to(top)}".replace("/.", "/"), each)
                if each == top:
                    break
    return list(found.values())


def _is_hierarchy(mount: Mount, controllers: str) -> bool:
    if mount.filesystem == "cgroup2":
        return not controllers
    names = set(controllers.split(","))
    return mount.filesystem == "cgroup" and names <= set(mount.options.split(","))


def known_limits(root: Path = Path("/")) -> dict[str, str]:
    """File -> its text, of all limits that are set."""
    found = {
        f"{name} of {group.name}": "; ".join(text.splitlines())
        for group, name, text in _set(own_groups(root), _FILES)
    }
    for zone in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        for path in sorted(zone.glob("constraint_*_power_limit_uw")):
            kind = _text(zone / path.name.replace("power_limit_uw", "name"))
            text = _text(path)
            if text and text.isdecimal():
                found[f"power limit of {_text(zone / 'name')}, {kind}"] = f"{int(text) / 1e6:g} W"
    return found


def _set(groups: Sequence[Group], names: Sequence[str]) -> Iterator[tuple[Group, str, str]]:
    """Group, file and text of the limits that are set."""
    for group in groups:
        for name in names:
            text = _text(group.folder / name)
            if text and not _is_unlimited(name, text):
                yield group, name, text


def _is_unlimited(name: str, text: str) -> bool:
    if name.startswith("memory.") and text.isdecimal():
        return int(text) >= _UNLIMITED_BYTES
    return text.split()[0] == "max" or _NONE.get(name) == text


def _device_limits(
    groups: Sequence[Group], numbers: Sequence[str]
) -> Iterator[tuple[str, str, float]]:
    """(kind such as rbps, source, limit per second) for the devices with these numbers."""
    for group in groups:
        for line in (_text(group.folder / "io.max") or "").splitlines():
            number, *pairs = line.split()
            for pair in pairs if number in numbers else ():
                kind, _, value = pair.partition("=")
                if value.isdecimal():
                    yield kind, f"io.max of {group.name}", float(value)
        for name, kind in _DEVICE_FILES.items():
            for line in (_text(group.folder / name) or "").splitlines():
                number, _, value = line.partition(" ")
                if number in numbers and value.isdecimal():
                    yield kind, f"{name} of {group.name}", float(value)


def _rates(phase: Phase) -> dict[str, float]:
    """What it moved per second, by the kinds of a limit; a write until its bytes were durable."""
    until = phase.until_durable
    total = until.bandwidth_bytes_per_s if until else phase.bandwidth_bytes_per_s
    requests = phase.metrics.get("iops")
    letters = {"read": "r", "write": "w"}
    if phase.operation in letters:
        letter = letters[phase.operation]
        rates = {f"{letter}bps": total, f"{letter}iops": requests}
        return {kind: rate for kind, rate in rates.items() if rate}
    named = {letter: f"{name}_bandwidth_bytes_per_s" for name, letter in letters.items()}
    return {f"{k}bps": phase.metrics[name] for k, name in named.items() if name in phase.metrics}


@dataclass(frozen=True)
class Watched:
    """What the kernel has counted so far."""

    stolen_s: float | None
    total_s: float
    throttles: int | None
    waits_s: Mapping[str, float] = field(default_factory=dict)
    """Limit of processor time -> time that the group waited for it."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """Limit of memory -> how often the group reached it."""


class Limits:
    """The limits that a run on `device` has; `root` is another tree than `/`, for tests."""

    def __init__(self, device: BlockDevice | None, root: Path = Path("/")) -> None:
        self._root = root
        self._groups = own_groups(root)
        self._device = device
        stack = [] if device is None else stack_below(device)
        self._numbers = [n for one in stack if (n := _text(one.disk_sysfs / "dev")) is not None]

    def reached_by(self, phases: Sequence[Phase]) -> list[str]:
        """The limits of the device that a phase reached, as text."""
        found = []
        for kind, source, limit in _device_limits(self._groups, self._numbers):
            rates = (_rates(phase).get(kind, 0.0) for phase in phases)
            if any(NEAR[0] * limit <= rate <= NEAR[1] * limit for rate in rates):
                value = limit / 1e6 if kind.endswith("bps") else limit
                found.append(f"at the cgroup's limit of {value:.3g} {_UNITS[kind]} ({source})")
        return found

    def watched(self) -> Watched:
        """What the kernel has counted now."""
        waits = {
            f"{_processors(group.folder, name, text):.3g} processors ({name} of {group.name})":
            _waited_s(group.folder)
            for group, name, text in _set(self._groups, _OF_PROCESSORS)
        }  # fmt: skip
        reached = {
            f"{int(text) / 1e6:.0f} MB of memory ({name} of {group.name})":
            _times_reached(group.folder, name)
            for group, name, text in _set(self._groups, _OF_MEMORY)
        }  # fmt: skip
        stolen_s, total_s = _processor_times(self._root)
        return Watched(stolen_s, total_s, throttle_count(self._root, self._device), waits, reached)


def stolen_s(before: Watched, after: Watched) -> float | None:
    """Of all processors together; None if the kernel counts none."""
    if before.stolen_s is None or after.stolen_s is None:
        return None
    return max(0.0, after.stolen_s - before.stolen_s)


def throttled(before: Watched, after: Watched) -> int | None:
    """How often it was throttled; None if nothing counts that."""
    if before.throttles is None or after.throttles is None:
        return None
    return max(0, after.throttles - before.throttles)


def groups_limits_reached(before: Watched, after: Watched, lasted_s: float) -> list[str]:
    """Limits of processor time and memory that the groups reached meanwhile, as text."""
    found = [
        f"waited {waited_s:.2g} s at the cgroup's limit of {limit}"
        for limit, late_s in after.waits_s.items()
        if (waited_s := late_s - before.waits_s.get(limit, late_s)) > LEAST_WAIT_SHARE * lasted_s
    ]
    found += [
        f"at the cgroup's limit of {limit}"
        for limit, count in after.reached.items()
        if count > before.reached.get(limit, count)
    ]
    return found


def stolen_share(before: Watched, after: Watched) -> float:
    """Of the processors' time; 0 if it is not known."""
    total_s = after.total_s - before.total_s
    return (stolen_s(before, after) or 0.0) / total_s if total_s > 0 else 0.0


def _processor_times(root: Path) -> tuple[float | None, float]:
    """(stolen, all) of all processors since boot, s (proc_stat(5))."""
    fields = (_text(root / "proc/stat") or "").split("\n", 1)[0].split()[1:9]
    if len(fields) < 8 or not all(map(str.isdecimal, fields)):
        return None, 0.0
    times_s = [int(text) / os.sysconf("SC_CLK_TCK") for text in fields]
    return times_s[7], sum(times_s)


def _processors(folder: Path, name: str, text: str) -> float:
    quota, _, period = text.partition(" ")
    if name == "cpu.cfs_quota_us":
        period = _text(folder / "cpu.cfs_period_us") or ""
    return int(quota) / int(period or 100_000)


def _waited_s(folder: Path) -> float:
    """Time that its threads waited for a new period (µs in version 2, ns in version 1)."""
    found = _numbers_of(folder / "cpu.stat")
    return found.get("throttled_usec", 0) / 1e6 + found.get("throttled_time", 0) / 1e9


def _times_reached(folder: Path, name: str) -> int:
    if name == "memory.limit_in_bytes":
        return int(_text(folder / "memory.failcnt") or 0)
    return _numbers_of(folder / "memory.events").get(name.partition(".")[2], 0)


def _numbers_of(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in (_text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


_PI = "sys/devices/platform/soc/soc:firmware/get_throttled"
# Below voltage, frequency capped, throttled, soft limit of temperature: now.
_PI_NOW = 0xF


def throttle_count(root: Path, device: BlockDevice | None) -> int | None:
    """Events of throttling so far, of processors and the drive; None if nothing counts any."""
    # Each processor of a package has the package's count: the largest is taken.
    counts: dict[str, int] = {}
    for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_count"):
        with suppress(ValueError):
            counts[path.name] = max(counts.get(path.name, 0), int(_text(path) or ""))
    transitions = None if device is None else thermal_transitions(device.disk_sysfs)
    if transitions is not None:
        counts["drive"] = transitions
    return sum(counts.values()) if counts else None


def throttled_now(root: Path = Path("/")) -> str | None:
    """What is throttled at this moment, of what shows a state but no count."""
    text = _text(root / _PI) or "0"
    with suppress(ValueError):
        if int(text, 16) & _PI_NOW:
            return f"the firmware throttles the processor (get_throttled is {text})"
    for folder in sorted((root / "sys/class/thermal").glob("cooling_device*")):
        kind, state = _text(folder / "type") or "", _text(folder / "cur_state") or "0"
        if re.match(r"(?i)processor|cpufreq|cpu", kind) and state not in ("0", "-1"):
            return f"{kind} is throttled for cooling (state {state})"
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
