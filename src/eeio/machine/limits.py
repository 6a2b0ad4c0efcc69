"""Limits of this process's control group and of its parents, and what throttles the machine.

Control groups of both versions: bytes and requests per second of a device (`device_limits`),
processor time, memory. Parents outside a container's view are not known. Whether a run reached a
limit of processor time or memory: by the kernel's counts of waiting for it.

Stolen processor time is what the host of a virtual machine gave to others. Throttling is counted
by Intel's processors, NVMe drives and the firmware of Raspberry Pis; cooling devices show a state.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from eeio.machine.below import stack_below
from eeio.machine.control_groups import Group, own_groups, text_of
from eeio.machine.device_limits import DEVICE_FILES
from eeio.machine.drive import Throttling, thermal_throttling
from eeio.machine.filesystem import BlockDevice

LEAST_WAIT_SHARE = 0.01
"""Of a run's time: less waiting for processor time is not named."""
LEAST_STOLEN_SHARE = 0.02
"""Of the processors' time that was in use or stolen, and of one processor's time during the run:
less stolen time is not named."""
LEAST_STOLEN_S = 0.1
"""A few ticks of a short run are not named."""

_OF_PROCESSORS = ("cpu.max", "cpu.cfs_quota_us")
_OF_MEMORY = ("memory.max", "memory.high", "memory.limit_in_bytes")
_FILES = (
    "io.max",
    "io.latency",
    "io.weight",
    *DEVICE_FILES,
    *_OF_PROCESSORS,
    *_OF_MEMORY,
)
# From here on a limit of version 1 means none: the largest multiple of a page.
_UNLIMITED_BYTES = 1 << 62
# Of the fields of /proc/PID/stat behind the program's name (proc_pid_stat(5)).
_NICE, _POLICY = 16, 38
_POLICIES = {"1": "SCHED_FIFO", "2": "SCHED_RR", "3": "SCHED_BATCH", "5": "SCHED_IDLE"}
_NONE = {"io.weight": "default 100", "cpu.cfs_quota_us": "-1"}


def known_limits(root: Path = Path("/")) -> dict[str, str]:
    """File -> its text, of all limits that are set."""
    limits = {
        f"{name} of {group.name}": "; ".join(text.splitlines())
        for group, name, text in _set(own_groups(root), _FILES)
    }
    for zone in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        for path in sorted(zone.glob("constraint_*_power_limit_uw")):
            kind = text_of(zone / path.name.replace("power_limit_uw", "name"))
            text = text_of(path)
            if text and text.isdecimal():
                limits[f"power limit of {text_of(zone / 'name')}, {kind}"] = (
                    f"{int(text) / 1e6:g} W"
                )
    return limits | _of_this_process(root)


def _of_this_process(root: Path) -> dict[str, str]:
    """Fewer processors than are online (taskset), another priority than 0 (nice), and another
    scheduling than the usual one (chrt); the tools inherit them."""
    limits: dict[str, str] = {}
    status = text_of(root / "proc/self/status") or ""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    online = text_of(root / "sys/devices/system/cpu/online")
    if allowed and online and allowed[1] != online:
        limits["processors of this process"] = f"{allowed[1]} of {online}"
    # The name of the program, in brackets, may contain blanks.
    fields = (text_of(root / "proc/self/stat") or "").rpartition(")")[2].split()
    if len(fields) > _NICE and fields[_NICE] != "0":
        limits["priority of this process"] = f"nice {fields[_NICE]}"
    if len(fields) > _POLICY and fields[_POLICY] != "0":
        policy = fields[_POLICY]
        limits["scheduling of this process"] = _POLICIES.get(policy, f"policy {policy}")
    return limits


def _set(groups: Sequence[Group], names: Sequence[str]) -> Iterator[tuple[Group, str, str]]:
    """Group, file and text of the limits that are set."""
    for group in groups:
        for name in names:
            text = text_of(group.folder / name)
            if text and not _is_unlimited(name, text):
                yield group, name, text


def sets_limit(group: Group) -> bool:
    """Whether the group sets a limit of version 2 that a process outside of it does not have."""
    files = ("io.max", "io.latency", "cpu.max", "cpuset.cpus", "memory.max", "memory.high")
    return any(True for _ in _set([group], files))


def _is_unlimited(name: str, text: str) -> bool:
    if name.startswith("memory.") and text.isdecimal():
        return int(text) >= _UNLIMITED_BYTES
    return text.split()[0] == "max" or _NONE.get(name) == text


@dataclass(frozen=True)
class Watched:
    """What the kernel has counted so far."""

    stolen_s: float | None
    used_s: float
    """Processor time in use, of all processors, without stolen time."""
    throttling: Mapping[tuple[str, str], Throttling] = field(default_factory=dict)
    """(What is throttled, who counts it) -> its throttling. All processors count that of their
    package."""
    waits_s: Mapping[str, float] = field(default_factory=dict)
    """Limit of processor time -> time that the group waited for it."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """Limit of memory -> how often the group reached it."""


class Limits:
    """The limits that a run on the devices has; `root` is another tree than `/`, for tests."""

    def __init__(self, devices: Sequence[BlockDevice], root: Path = Path("/")) -> None:
        self._root = root
        self._groups = own_groups(root)
        self._stack = [below for device in devices for below in stack_below(device)]

    def watched(self) -> Watched:
        """What the kernel has counted now."""
        waits = {}
        for group, name, text in _set(self._groups, _OF_PROCESSORS):
            count = _processors(group.folder, name, text)
            limit = f"{count:.3g} processors ({name} of {group.name})"
            waits[limit] = _waited_s(group.folder)
        reached = {}
        for group, name, text in _set(self._groups, _OF_MEMORY):
            limit = f"{int(text) / 1e6:.0f} MB of memory ({name} of {group.name})"
            reached[limit] = _times_reached(group.folder, name)
        stolen_s, used_s = _processor_times(self._root)
        throttling = throttling_so_far(self._root, self._stack)
        return Watched(stolen_s, used_s, throttling, waits, reached)


def stolen_s(before: Watched, after: Watched) -> float | None:
    """Of all processors together; None if the kernel counts none."""
    if before.stolen_s is None or after.stolen_s is None:
        return None
    return max(0.0, after.stolen_s - before.stolen_s)


def throttled(before: Watched, after: Watched) -> int | None:
    """How often it was throttled; None if nothing counts that. Throttling that lasted all the time
    counts once."""
    events: dict[str, int] = {}
    for (throttled_part, counted_by), now in after.throttling.items():
        if (earlier := before.throttling.get((throttled_part, counted_by))) is not None:
            rise = max(now.count - earlier.count, int(now.time > earlier.time))
            events[throttled_part] = max(events.get(throttled_part, 0), rise)
    if events:
        return sum(events.values())
    return None


def groups_limits_reached(before: Watched, after: Watched, lasted_s: float) -> list[str]:
    """Limits of processor time and memory that the groups reached meanwhile, as text."""
    reached = []
    for limit, late_s in after.waits_s.items():
        if (waited_s := late_s - before.waits_s.get(limit, late_s)) > LEAST_WAIT_SHARE * lasted_s:
            reached.append(f"waited {waited_s:.2g} s at the cgroup's limit of {limit}")
    reached += [
        f"at the cgroup's limit of {limit}"
        for limit, count in after.reached.items()
        if count > before.reached.get(limit, count)
    ]
    return reached


def stolen_share(before: Watched, after: Watched, lasted_s: float) -> float | None:
    """Of the processors' time that was in use or stolen; None if that is too little to be named.
    Idle processors lose no time."""
    lost_s = stolen_s(before, after) or 0.0
    if lost_s < max(LEAST_STOLEN_S, LEAST_STOLEN_SHARE * lasted_s):
        return None
    share = lost_s / (lost_s + max(0.0, after.used_s - before.used_s))
    if share > LEAST_STOLEN_SHARE:
        return share
    return None


def _processor_times(root: Path) -> tuple[float | None, float]:
    """(stolen, in use) of all processors since boot, s (proc_stat(5))."""
    fields = (text_of(root / "proc/stat") or "").split("\n", 1)[0].split()[1:9]
    if len(fields) < 8 or not all(map(str.isdecimal, fields)):
        return None, 0.0
    times_s = [int(text) / os.sysconf("SC_CLK_TCK") for text in fields]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = times_s
    return stolen, user + nice + system + irq + softirq


def _processors(folder: Path, name: str, text: str) -> float:
    quota, _, period = text.partition(" ")
    if name == "cpu.cfs_quota_us":
        period = text_of(folder / "cpu.cfs_period_us") or ""
    return int(quota) / int(period or 100_000)


def _waited_s(folder: Path) -> float:
    """Time that its threads waited for a new period (µs in version 2, ns in version 1)."""
    numbers = _numbers_of(folder / "cpu.stat")
    return numbers.get("throttled_usec", 0) / 1e6 + numbers.get("throttled_time", 0) / 1e9


def _times_reached(folder: Path, name: str) -> int:
    if name == "memory.limit_in_bytes":
        return int(text_of(folder / "memory.failcnt") or 0)
    return _numbers_of(folder / "memory.events").get(name.partition(".")[2], 0)


def _numbers_of(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in (text_of(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


_PI = "sys/devices/platform/soc/soc:firmware/get_throttled"
# Below voltage, frequency capped, throttled, soft limit of temperature: now.
_PI_NOW = 0xF


_OF_PROCESSOR = re.compile(r"((?:core|package)_(?:throttle|power_limit))_(count|total_time_ms)")
"""By temperature, and by the limit of power."""


def throttling_so_far(
    root: Path, devices: Sequence[BlockDevice]
) -> dict[tuple[str, str], Throttling]:
    """Of processors and drives, as `Watched.throttling`; empty if nothing counts it."""
    counts: dict[tuple[str, str], Throttling] = {}
    for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*"):
        name, text = _OF_PROCESSOR.fullmatch(path.name), text_of(path) or ""
        if name is not None and text.isdecimal():
            key = (name[1], path.parent.parent.name)
            field_name = "time"
            if name[2] == "count":
                field_name = "count"
            counts[key] = replace(counts.get(key, Throttling()), **{field_name: int(text)})
    for device in devices:
        disk = device.disk_sysfs
        if (throttling := thermal_throttling(disk)) is not None:
            counts[disk.name, disk.name] = throttling
    return counts


def throttled_now(root: Path = Path("/")) -> str | None:
    """What is throttled at this moment, of what shows a state but no count."""
    text = text_of(root / _PI) or "0"
    with suppress(ValueError):
        if int(text, 16) & _PI_NOW:
            return f"the firmware throttles the processor (get_throttled is {text})"
    for folder in sorted((root / "sys/class/thermal").glob("cooling_device*")):
        kind, state = text_of(folder / "type") or "", text_of(folder / "cur_state") or "0"
        if re.match(r"(?i)processor|cpufreq|cpu", kind) and state not in ("0", "-1"):
            return f"{kind} is throttled for cooling (state {state})"
    return None
