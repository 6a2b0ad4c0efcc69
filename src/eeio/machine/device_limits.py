"""Limits of control groups for a device: bytes and requests per second, and which a phase reached.

The kernel counts what a group moves in the unit of its limits, after it has split large requests.
These counts are sampled while a run lasts. A tool's own rates are used, too: a phase may be shorter
than a sample, and the kernel may show no counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio.machine.below import stack_below
from eeio.machine.control_groups import Group, own_groups, text_of
from eeio.machine.filesystem import BlockDevice
from eeio.record.run import Phase
from eeio.units.number_text import number

NEAR = (0.9, 1.1)
"""A rate of a tool between these shares of a limit is at the limit."""
PERIOD_S = 0.25
LEAST_SHARE = 0.2
"""Of a phase: a limit that the group's counts were at for a shorter time is not named."""

# Of version 1: file, and the name of version 2 for what it limits.
DEVICE_FILES = {
    "blkio.throttle.read_bps_device": "rbps",
    "blkio.throttle.write_bps_device": "wbps",
    "blkio.throttle.read_iops_device": "riops",
    "blkio.throttle.write_iops_device": "wiops",
}
_UNITS = {"rbps": "MB/s", "wbps": "MB/s", "riops": "requests/s", "wiops": "requests/s"}
# Of version 2: key of io.stat. Of version 1: file and key.
_COUNTS = {"rbps": "rbytes", "wbps": "wbytes", "riops": "rios", "wiops": "wios"}
_COUNTS_1 = {
    "rbps": ("blkio.throttle.io_service_bytes", "Read"),
    "wbps": ("blkio.throttle.io_service_bytes", "Write"),
    "riops": ("blkio.throttle.io_serviced", "Read"),
    "wiops": ("blkio.throttle.io_serviced", "Write"),
}


@dataclass(frozen=True)
class DeviceLimit:
    """A limit `per_s` of a group for the device `number` (8:0), set in `file`. Its `kind` is
    rbps, wbps (bytes), riops or wiops (requests)."""

    kind: str
    per_s: float
    group: Group
    file: str
    number: str

    @property
    def text(self) -> str:
        """For the user: the limit and its source."""
        value = self.per_s / 1e6 if self.kind.endswith("bps") else self.per_s
        source = f"{self.file} of {self.group.name}"
        return f"at the cgroup's limit of {number(value)} {_UNITS[self.kind]} ({source})"

    def moved(self) -> float:
        """What the group has moved so far, in the limit's unit; nan if the kernel does not show
        it."""
        if self.file in DEVICE_FILES:
            name, key = _COUNTS_1[self.kind]
            pairs = _fields(self.group.folder / name, self.number, " ")
        else:
            key = _COUNTS[self.kind]
            pairs = _fields(self.group.folder / "io.stat", self.number, "=")
        value = pairs.get(key, "")
        if value.isdecimal():
            return float(value)
        return float("nan")


def _fields(path: Path, number: str, separator: str) -> dict[str, str]:
    """Key and value of the lines of a device: `8:0 rbytes=1 wbytes=2`, or `8:0 Read 1`."""
    fields: dict[str, str] = {}
    for line in (text_of(path) or "").splitlines():
        device, _, rest = line.partition(" ")
        if device != number:
            continue
        for pair in rest.split() if separator == "=" else [rest]:
            key, _, value = pair.partition(separator)
            fields[key] = value
    return fields


def device_limits(
    devices: Sequence[BlockDevice], root: Path = Path("/")
) -> tuple[DeviceLimit, ...]:
    """Those of this process's groups for the devices and all that they are on."""
    stack = []
    for device in devices:
        stack.extend(stack_below(device))
    numbers = {text_of(device.disk_sysfs / "dev") for device in stack}
    groups = own_groups(root)
    limits = []
    for group in groups:
        for limit in _of(group):
            if limit.number in numbers:
                limits.append(limit)
    return tuple(limits)


def _of(group: Group) -> Iterator[DeviceLimit]:
    """All that are set in a group, for all devices."""
    for line in (text_of(group.folder / "io.max") or "").splitlines():
        device, *pairs = line.split()
        for pair in pairs:
            kind, _, value = pair.partition("=")
            if value.isdecimal():
                yield DeviceLimit(kind, float(value), group, "io.max", device)
    for name, kind in DEVICE_FILES.items():
        for line in (text_of(group.folder / name) or "").splitlines():
            device, _, value = line.partition(" ")
            if value.isdecimal():
                yield DeviceLimit(kind, float(value), group, name, device)


@dataclass(frozen=True)
class Sample:
    """What the group of each limit had moved at `time_s` after the start of the run."""

    time_s: float
    moved: tuple[float, ...]


def reached_by(
    limits: Sequence[DeviceLimit], samples: Sequence[Sample], phases: Sequence[Phase]
) -> list[str]:
    """The limits that a phase reached, as text."""
    times_s = [sample.time_s for sample in samples]
    reached = []
    for index, limit in enumerate(limits):
        moved = [sample.moved[index] for sample in samples]
        if any(
            _is_limited(limit, times_s, moved, phase) or _is_near(limit, phase) for phase in phases
        ):
            reached.append(limit.text)
    return reached


def _is_limited(
    limit: DeviceLimit, times_s: Sequence[float], moved: Sequence[float], phase: Phase
) -> bool:
    """Whether the group was at the limit for a share of a phase, of a write until its bytes were
    durable.

    Requests are counted when they are given to the kernel. So one period may have those of several
    seconds, which then wait: what was moved beyond the limit keeps the group at it.
    """
    end_s = phase.until_durable.end_s if phase.until_durable else phase.end_s
    if phase.start_s is None or end_s is None or end_s <= phase.start_s:
        return False
    at_limit_s = waiting_s = 0.0
    periods = zip(times_s, times_s[1:], moved, moved[1:], strict=False)
    for from_s, to_s, before, after in periods:
        waiting_s += (after - before) / limit.per_s
        if waiting_s >= NEAR[0] * (to_s - from_s):
            at_limit_s += max(0.0, min(to_s, end_s) - max(from_s, phase.start_s))
        waiting_s = max(0.0, waiting_s - (to_s - from_s))
    return at_limit_s >= LEAST_SHARE * (end_s - phase.start_s)


def _is_near(limit: DeviceLimit, phase: Phase) -> bool:
    """Whether the tool's rate is that of the limit."""
    rate = _tool_rate(limit.kind, phase)
    low, high = (share * limit.per_s for share in NEAR)
    return rate is not None and low <= rate <= high


def _tool_rate(kind: str, phase: Phase) -> float | None:
    """What the tool reports for the kind of a limit."""
    direction = {"r": "read", "w": "write"}[kind[0]]
    if phase.operation == "mixed" and kind.endswith("bps"):
        return phase.metrics.get(f"{direction}_bandwidth_bytes_per_s")
    if phase.operation != direction:
        return None
    if kind.endswith("iops"):
        return phase.metrics.get("iops")
    until = phase.until_durable
    if until:
        return until.bandwidth_bytes_per_s
    return phase.bandwidth_bytes_per_s
