"""Numbers out of sysfs and procfs, and the choice of sensors of a meter made of such files."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from eeio.files.inputs import SYSFS_BYTES, size
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Detected
from eeio_power.reading import Contents, Domain, Kind

# sysfs gives a page at most; /proc/stat of a large machine is longer.
_CHUNK = 1 << 16

_PARTS = re.compile(r":[0-9a-f]+(?=:|$)|[0-9]+|[^0-9:]+|:")


def read_text(path: Path) -> str:
    """The file's text without surrounding white space. Raises OSError as the kernel gave it."""
    # Several times as fast as a text file of Python's, and this is read ten times a second.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while more := os.read(fd, _CHUNK):
            data += more
            if len(data) > SYSFS_BYTES:
                raise OSError(errno.EFBIG, f"longer than {size(SYSFS_BYTES)}", str(path))
    finally:
        os.close(fd)
    return data.decode("ascii", errors="replace").strip()


def read_int(path: Path) -> int:
    """The file's integer. Raises OSError, or ValueError for other contents."""
    # One read: an integer is never longer, and this is what a fast meter does all day.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(fd, 64))
    finally:
        os.close(fd)


def read_optional_int(path: Path) -> int | None:
    """The file's integer, or None if it cannot be read or has other contents."""
    try:
        return read_int(path)
    except (OSError, ValueError):
        return None


def read_optional_text(path: Path) -> str | None:
    """The file's text, or None if it cannot be read or is empty."""
    try:
        return read_text(path) or None
    except OSError:
        return None


def own_path(folder: Path) -> Path:
    """Where a link of a class leads: the device's own place, which no other device ever has.

    hwmon2 may be another chip after its driver was loaded again. A link in a circle leads nowhere.
    """
    return Path(os.path.realpath(folder))


def by_number(path: Path) -> list[tuple[int, str]]:
    """Sort key that puts `hwmon2` before `hwmon10` and `intel-rapl:0` before `intel-rapl:0:0`.

    A number after a colon is hexadecimal, as powercap's are: `intel-rapl:9` before `intel-rapl:a`.
    """
    return list(map(_part_number, _PARTS.findall(path.name)))


def _part_number(part: str) -> tuple[int, str]:
    if part[0] == ":" and len(part) > 1:
        return int(part[1:], 16), ":"
    if part.isdigit():
        return (int(part), "")
    return (-1, part)


def chassis_of(root: Path) -> str | None:
    """`shared` or `blade` if SMBIOS (7.4.1) shows that the chassis has several machines."""
    number = read_optional_int(root / "sys/class/dmi/id/chassis_type")
    if number is not None:
        return _CHASSIS.get(number)
    return None


# Multi-system chassis; Blade, Blade enclosure. The highest bit is that of a lock.
_CHASSIS = {25: "shared", 28: "blade", 29: "shared"} | {153: "shared", 156: "blade", 157: "shared"}
SHARED = "its SMBIOS shows a shared chassis: {what} may contain other machines"


SomeSensor = TypeVar("SomeSensor", bound="Readable")

Problem = tuple[str, str]
"""The problem and its remedy."""


@dataclass(frozen=True)
class Choice(Generic[SomeSensor]):
    """The sensors of a meter, or why they cannot be used."""

    sensors: tuple[SomeSensor, ...]
    problem: Problem | None = None
    rule: str | None = None
    """Which rule chose which sensors, and which are left out."""

    def usable(self, spec: str) -> tuple[SomeSensor, ...]:
        """The sensors. Raises PowerError with the remedy if they cannot be used."""
        if self.problem is not None:
            reason, remedy = self.problem
            raise PowerError(f"meter '{spec}': {reason}; {remedy}")
        return self.sensors

    def finding(self, spec: str, kind: Kind, contents: Mapping[Domain, Contents]) -> Detected:
        """The choice as `find` returns it, with the contents of its domains."""
        if self.problem is not None:
            return Detected(spec, kind, tuple(contents), False, *self.problem, contents)
        remark = next((s.channel.remark for s in self.sensors if s.channel.remark), None)
        doubt = next((s.channel.doubt for s in self.sensors if s.channel.doubt), None)
        return Detected(
            spec,
            kind,
            tuple(contents),
            True,
            remark,
            contents=contents,
            rule=self.rule,
            doubt=doubt,
        )


class Readable(Protocol):
    """A sensor of files."""

    @property
    def channel(self) -> Channel: ...

    def read(self) -> float | None: ...


@dataclass(frozen=True)
class SensorMeter(Generic[SomeSensor]):
    """A meter made of the sensors of one folder, each a channel."""

    spec: str
    name: str
    sensors: tuple[SomeSensor, ...]
    kind: Kind = "measured"

    @property
    def channels(self) -> Sequence[Channel]:
        return [sensor.channel for sensor in self.sensors]

    def read(self) -> Sequence[float | None]:
        """W or J of each sensor; None for one that the kernel does not answer for."""
        return [sensor.read() for sensor in self.sensors]

    def close(self) -> None:
        """No file stays open."""


def named(
    sensors: Sequence[SomeSensor], only: str, name_of: Callable[[SomeSensor], str], noun: str
) -> Choice[SomeSensor]:
    """The sensors that `only=A+B` names: the user states that they add up to the system."""
    names = list(map(name_of, sensors))
    wanted = only.split("+")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        return Choice((), (f"no {noun} {', '.join(unknown)}", f"there are: {', '.join(names)}"))
    return Choice(tuple(s for s, name in zip(sensors, names, strict=True) if name in wanted))


def shown_w(value_w: float | None) -> str:
    """` 12.5 W`; empty without a value."""
    if value_w is None:
        return ""
    return f" {value_w:.4g} W"


def unreadable(files: Iterable[Path]) -> Problem | None:
    """The first file that gives no number."""
    for file in files:
        try:
            read_int(file)
        except PermissionError:
            return f"{file}: permission denied", f"run as root, or 'chmod o+r {file}'"
        except (OSError, ValueError) as error:
            return f"{file}: cannot be read ({error})", "check the sensor's driver and wiring"
    return None
