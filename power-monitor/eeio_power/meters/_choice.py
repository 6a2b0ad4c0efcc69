"""What meters made of sensor files share: choosing the sensors, and saying why that fails."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from eeio_power.errors import PowerError
from eeio_power.meters import Detected
from eeio_power.reading import Contents, Domain, Kind
from eeio_power.sysfs import read_int

Sensor = TypeVar("Sensor")

Problem = tuple[str, str]
"""What is wrong, and what to do about it."""


@dataclass(frozen=True)
class Choice(Generic[Sensor]):
    """The sensors of a meter, or why they cannot be used."""

    sensors: tuple[Sensor, ...]
    problem: Problem | None = None

    def usable(self, spec: str) -> tuple[Sensor, ...]:
        """The sensors. Raises PowerError with the remedy if they cannot be used."""
        if self.problem is not None:
            reason, remedy = self.problem
            raise PowerError(f"meter '{spec}': {reason}; {remedy}")
        return self.sensors

    def finding(self, spec: str, kind: Kind, contents: Mapping[Domain, Contents]) -> Detected:
        """The choice as `find` tells it, with what its domains hold."""
        reason, remedy = self.problem or (None, None)
        available = self.problem is None
        return Detected(spec, kind, tuple(contents), available, reason, remedy, contents)


def named(
    sensors: Sequence[Sensor], only: str, name_of: Callable[[Sensor], str], noun: str
) -> Choice[Sensor]:
    """The sensors that `only=A+B` names, which the user says add up to the system."""
    names = [name_of(sensor) for sensor in sensors]
    wanted = only.split("+")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        return Choice((), (f"no {noun} {', '.join(unknown)}", f"there are: {', '.join(names)}"))
    return Choice(tuple(s for s, name in zip(sensors, names, strict=True) if name in wanted))


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
