"""An estimate of a drive's power from its power states and its busy time, without a meter.

`drive_estimate:DEVICE[,table=FILE][,class=][,standby_w=][,idle_w=][,max_w=]`:

    P = busy x (least + most) / 2 + (1 - busy) x (standby + idle) / 2

`busy` is the share of the time in which the drive had a request, by the kernel (`io_ticks` in
/sys/block/DEVICE/stat). A busy drive draws between `least` and `most`, an idle one between
`standby` and `idle`. The uncertainty is the half of each range: a bound, and not an accuracy.

The powers are those of an NVMe drive's power state table (NVM Express Base Specification 2.0,
Identify Controller), which the drive states (root), or which `nvme id-ctrl DEVICE -o json` stored:

    most     the maximum power of the operational states, else their active power
    idle     the idle power of the first state, else the least maximum of an operational state
    least    the idle power of the first state, else `standby`
    standby  the least idle power, or maximum of a state that is not operational; 0 without both

Those of a hard disk are of a class, the data sheet of one drive, or given:

    3.5in    Seagate Barracuda 7200.7, product manual, Rev. N (160 GB with NCQ): standby 1.0 W,
             idle 7.5 W, seek 12.5 W
    2.5in    Seagate Laptop Ultrathin HDD, product manual, Rev. C: standby 0.18 W, idle 1.10 W,
             write 1.70 W

Its readings are `modelled`: marked ESTIMATE, never ranked, and never opened by `auto`. It cannot
see work inside the drive, or a spin-up, which takes more.
"""

import ctypes
import fcntl
import os
import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio.errors import LimitError
from eeio.files import inputs
from eeio.units.quantities import COUNT
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected, choice_option, number_option
from eeio_power.meters.nvme import ADMIN_COMMAND, COMMAND, TIMEOUT_MS, Ioctl
from eeio_power.reading import Kind, only
from eeio_power.sysfs import read_optional_int, read_text

OPTIONS = {
    "device": "the drive, such as /dev/nvme0n1 or /dev/sda",
    "table": "file with its power states: nvme id-ctrl DEVICE -o json",
    "class": "hard disk without a power state table: 3.5in or 2.5in",
    "standby_w": "least power, such as of a stopped disk, W (default 0)",
    "idle_w": "most power without a request, W",
    "max_w": "most power with requests, W",
}
ARGUMENT = "device"

KIND: Kind = "modelled"
CONTENTS = only("drives")
# The kernel counts busy time in ticks, of 1 to 10 ms.
NATIVE_PERIOD_S = 0.1
_BUSY_MS_FIELD = 9
_WRAPS_MS = 1 << 32
_IDENTIFY, _CONTROLLER, _IDENTIFY_BYTES = 0x06, 1, 4096
_LAST_STATE_AT, _STATES_AT, _STATE_BYTES = 263, 2048, 32
_STATE = struct.Struct("<HxB12xHBxHB")
_SCALES_W = {0: 0.0, 1: 1e-4, 2: 1e-2}
_MOST_STATES = 32
_RUNS_W = 1e-6
"""Added to both counters: one that does not change is taken for a broken meter."""
MAX_POWER_W = 1000.0


@dataclass(frozen=True)
class PowerRanges:
    """W of a drive: without a request between `standby` and `idle`, with one between `least` and
    `most`."""

    standby: float
    idle: float
    least: float
    most: float


CLASSES = {
    "3.5in": PowerRanges(standby=1.0, idle=7.5, least=7.5, most=12.5),
    "2.5in": PowerRanges(standby=0.18, idle=1.10, least=1.10, most=1.70),
}


@dataclass(frozen=True)
class PowerState:
    """As the drive states it, W; 0 is not stated."""

    most: float
    idle: float
    active: float
    is_operational: bool


def ranges_of(states: Sequence[PowerState]) -> PowerRanges:
    """Raises PowerError if no state has a power."""
    operational = [state for state in states if state.is_operational]
    tops = [state.most or state.active for state in operational]
    most = max(tops, default=0.0)
    if most == 0.0:
        raise PowerError(
            "its power state table has no maximum power; give idle_w= and max_w= of its data sheet"
        )
    resting = [state.idle for state in states]
    resting += [state.most for state in states if not state.is_operational]
    standby = min(filter(None, resting), default=0.0)
    first = min(operational[0].idle, most)
    idle = first or min(filter(None, tops))
    standby = min(standby, idle)
    return PowerRanges(standby=standby, idle=idle, least=first or standby, most=most)


def states_of_page(page: bytes) -> list[PowerState]:
    """Of the Identify Controller data."""
    states = []
    for number in range(min(page[_LAST_STATE_AT] + 1, _MOST_STATES)):
        most, flags, idle, idle_scale, active, active_scale = _STATE.unpack_from(
            page, _STATES_AT + number * _STATE_BYTES
        )
        states.append(
            PowerState(
                most=most * _SCALES_W[2 - (flags & 1)],
                idle=idle * _SCALES_W.get(idle_scale >> 6, 0.0),
                active=active * _SCALES_W.get(active_scale >> 6, 0.0),
                is_operational=not flags & 2,
            )
        )
    return states


def states_of_json(body: Any) -> list[PowerState]:
    """Of `nvme id-ctrl -o json`. Raises KeyError, TypeError and LimitError for another form."""

    def watts(state: Mapping[str, Any], name: str, scale_w: float) -> float:
        return COUNT.checked(state[name], name) * scale_w

    return [
        PowerState(
            most=watts(state, "max_power", _SCALES_W[2 - (int(state["max_power_scale"]) & 1)]),
            idle=watts(state, "idle_power", _SCALES_W.get(state["idle_scale"], 0.0)),
            active=watts(state, "active_power", _SCALES_W.get(state["active_scale"], 0.0)),
            is_operational=not state["non-operational_state"],
        )
        for state in body["psds"]
    ]


def identify(fd: int, ioctl: Ioctl) -> bytes:
    """The Identify Controller data. Raises OSError."""
    page = ctypes.create_string_buffer(_IDENTIFY_BYTES)
    command = COMMAND.pack(
        _IDENTIFY, 0, 0, 0, 0, 0, 0, ctypes.addressof(page), 0, _IDENTIFY_BYTES, _CONTROLLER,
        0, 0, 0, 0, 0, TIMEOUT_MS, 0,
    )  # fmt: skip
    status = ioctl(fd, ADMIN_COMMAND, bytearray(command))
    if status != 0:
        raise OSError(5, f"the drive rejected Identify Controller (status {status:#x})")
    return page.raw


def _middle(low: float, high: float) -> float:
    return (low + high) / 2


def _half_share(low: float, high: float) -> float:
    """The half of a range, as a share of its middle."""
    if high == 0.0:
        return 0.0
    return (high - low) / (high + low)


class DriveEstimateMeter:
    """Two counters of estimated joules, of the idle and of the busy time, which add up: each has
    the half of its range as its uncertainty."""

    kind: Kind = KIND
    native_period_s = NATIVE_PERIOD_S

    def __init__(
        self,
        spec: str,
        name: str,
        stat: Path,
        ranges: PowerRanges,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec = spec
        self.name = name
        self.ranges = ranges
        self._stat = stat
        self._clock = clock
        self._time_s, self._busy_ms = clock(), self._read_busy_ms()
        self._energy_j = [0.0, 0.0]
        drive = stat.parent.name
        bounds = ((ranges.standby, ranges.idle), (ranges.least, ranges.most))
        self.channels: Sequence[Channel] = tuple(
            Channel(
                name=f"drive_estimate:{drive}-{part}",
                domain="device",
                quantity="energy_j",
                accuracy_relative=_half_share(low, high),
                max_power_w=MAX_POWER_W,
                contents=CONTENTS,
                remark=f"estimate for {drive}: {low:g} to {high:g} W when {part}",
            )
            for part, (low, high) in zip(("idle", "busy"), bounds, strict=True)
        )

    def read(self) -> Sequence[float | None]:
        """Estimated energy since opening, J. Raises OSError or ValueError if the kernel's counters
        cannot be read."""
        now_s, busy_ms = self._clock(), self._read_busy_ms()
        lasted_s = now_s - self._time_s
        # The kernel counts in ticks, so that it may count more than the time between two reads.
        busy_s = min(lasted_s, (busy_ms - self._busy_ms) % _WRAPS_MS / 1000)
        idle_j = (lasted_s - busy_s) * _middle(self.ranges.standby, self.ranges.idle)
        busy_j = busy_s * _middle(self.ranges.least, self.ranges.most)
        self._energy_j[0] += idle_j + lasted_s * _RUNS_W
        self._energy_j[1] += busy_j + lasted_s * _RUNS_W
        self._time_s, self._busy_ms = now_s, busy_ms
        return list(self._energy_j)

    def close(self) -> None:
        """No file stays open."""

    def _read_busy_ms(self) -> int:
        fields = read_text(self._stat).split()
        if len(fields) <= _BUSY_MS_FIELD:
            raise ValueError(f"{self._stat} has no busy time")
        return int(COUNT.of_text(fields[_BUSY_MS_FIELD], "busy time"))


def open_meter(
    spec: str, options: Mapping[str, str], root: Path, ioctl: Ioctl = fcntl.ioctl
) -> DriveEstimateMeter:
    """Raises PowerError if the drive, its powers or its busy time are not known."""
    device = options.get("device")
    if device is None:
        raise PowerError(f"meter '{spec}': which drive? Such as drive_estimate:/dev/nvme0n1")
    name = Path(device).name
    folder = root / "sys/block" / name
    if not folder.is_dir():
        raise PowerError(f"meter '{spec}': {device} is no drive; `lsblk -d` lists them")
    try:
        ranges = _given(spec, options) or _stated(spec, options, name, folder, root, ioctl)
        return DriveEstimateMeter(spec, options.get("name", name), folder / "stat", ranges)
    except (OSError, ValueError, LimitError) as error:
        raise PowerError(f"meter '{spec}': {device}: {error}") from error


def _given(spec: str, options: Mapping[str, str]) -> PowerRanges | None:
    """By the user: a class, or watts; None without both."""
    standby_w = number_option(spec, options, "standby_w")
    idle_w = number_option(spec, options, "idle_w")
    max_w = number_option(spec, options, "max_w", above_zero=True, most=MAX_POWER_W)
    if "class" in options:
        if {"standby_w", "idle_w", "max_w", "table"} & set(options):
            raise PowerError(f"meter '{spec}': give class=, or table=, or watts")
        return CLASSES[choice_option(spec, options, "class", CLASSES, "")]
    if idle_w is None and max_w is None and standby_w is None:
        return None
    if idle_w is None or max_w is None:
        raise PowerError(f"meter '{spec}': give both, idle_w= and max_w=")
    if not (standby_w or 0.0) <= idle_w <= max_w:
        raise PowerError(f"meter '{spec}': standby_w, idle_w and max_w must rise in this order")
    return PowerRanges(standby_w or 0.0, idle_w, idle_w, max_w)


def _stated(
    spec: str, options: Mapping[str, str], name: str, folder: Path, root: Path, ioctl: Ioctl
) -> PowerRanges:
    """By the drive's power state table. Raises PowerError and OSError."""
    if "table" in options:
        path = Path(options["table"])
        try:
            return ranges_of(states_of_json(inputs.read_json(path, inputs.DEFINITION_BYTES)))
        except PowerError as error:
            raise PowerError(f"meter '{spec}': {path}: {error}") from error
        except (KeyError, TypeError, ValueError, LimitError) as error:
            raise PowerError(
                f"meter '{spec}': {path}: no power state table ({error!r:.60}); make it by "
                f"`nvme id-ctrl /dev/{name} -o json`"
            ) from error
    controller = re.match(r"nvme\d{1,4}", name)
    if controller is None:
        raise PowerError(f"meter '{spec}': {_why_no_table(name, folder)}")
    node = root / "dev" / controller[0]
    try:
        fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise PowerError(
            f"meter '{spec}': {node}: {error.strerror}; run as root, or give table= or its watts"
        ) from error
    try:
        return ranges_of(states_of_page(identify(fd, ioctl)))
    except PowerError as error:
        raise PowerError(f"meter '{spec}': {node}: {error}") from error
    finally:
        os.close(fd)


def _why_no_table(name: str, folder: Path) -> str:
    remedy = "idle_w= and max_w= of its data sheet"
    if "/usb" in str(folder.resolve()):
        return f"{name} is behind a USB bridge, which passes no power states on; give {remedy}"
    if read_optional_int(folder / "queue/rotational") == 1:
        return f"{name} is a hard disk and states no powers; give class=3.5in or 2.5in, or {remedy}"
    return f"{name} is not NVMe and states no powers; give {remedy}"


def find(root: Path) -> Detected:
    """It is there for any drive, and never chosen by `auto`."""
    return Detected(
        "drive_estimate",
        KIND,
        ("device",),
        False,
        "eeio does not choose a drive to estimate",
        "name it: --meter drive_estimate:/dev/nvme0n1",
        in_auto=False,
    )
