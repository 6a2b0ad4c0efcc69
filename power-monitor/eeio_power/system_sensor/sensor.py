"""A sensor as a meter lists it, and the choice among them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from eeio_power.reading import MACHINE, Contents, Domain

Role = Literal["total", "input", "output", "module", "package", "rail", "part", "unknown"]
"""What a sensor measures: the complete machine (total), the input or the output of one of its
supplies, a module with its processor and memory, a domain of its own such as a processor
(package), one line of several (rail), another part, or what its name does not say."""

Extent = Literal["board", "controller"]
"""Sensors of a board are lines of its circuit; those of a controller have names of the firmware."""


@dataclass(frozen=True)
class Sensor:
    """One sensor, as it is now."""

    name: str
    """Its name in the options of its meter, such as `ina226/power1` or `PS1 Input Power`."""
    role: Role
    power_w: float | None
    """W; None without a reading."""
    label: str = ""
    """What the driver or the firmware says about it; empty if nothing."""
    domain: Domain | None = "system"
    """None for a part that is no domain."""
    contents: Contents = MACHINE
    volts: float | None = None
    """At the sensor, V; None if unknown."""
    unit: str = ""
    """The supply that it belongs to, by a number or a folder."""
    kind: str = ""
    """Sensors of one kind measure the same of several units."""
    may_add: bool = True
    """False for one that is listed, and only counts if the user names it."""
    is_meter: bool = False
    """An ACPI power meter: it measures the machine unless its label names a part."""

    def text(self) -> str:
        """`ina226/power1 (VDD_CORE) 3.1 W at 0.8 V`."""
        label = ""
        if self.label and self.label != self.name:
            label = f" ({self.label})"
        power = ""
        if self.power_w is not None:
            power = f" {self.power_w:.4g} W"
        volts = ""
        if self.volts is not None:
            volts = f" at {self.volts:g} V"
        return f"{self.name}{label}{power}{volts}"


@dataclass(frozen=True)
class Choice:
    """The sensors that add up to the system's power, or why that is unknown."""

    rule: str
    """Name of the rule that decided."""
    sensors: tuple[str, ...] = ()
    reason: str | None = None
    contents: Contents = MACHINE
    doubt: str | None = None
    note: str | None = None

    def text(self, listed: Sequence[str]) -> str:
        """`named as the complete machine: Sys Power; not counted: PS1 Input, CPU Power`."""
        others = [name for name in listed if name not in self.sensors]
        counted = ""
        if self.sensors:
            counted = f": {_shortened(self.sensors)}"
        left_out = ""
        if others:
            left_out = f"; not counted: {_shortened(others)}"
        return f"{self.rule}{counted}{left_out}"


_MOST_SHOWN = 8


def _shortened(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - _MOST_SHOWN
    rest = ""
    if more > 0:
        rest = f" and {more} more"
    return ", ".join(names[:_MOST_SHOWN]) + rest


def texts(sensors: Iterable[Sensor]) -> str:
    """All sensors with their watts, for a user who names one of them."""
    return ", ".join(sensor.text() for sensor in sensors)


def refusal(where: str, choice: Choice, sensors: Sequence[Sensor], option: str) -> tuple[str, str]:
    """Why no sensor is chosen, with the candidates and their watts, and the option that names
    some."""
    names = [sensor.name for sensor in sensors if sensor.domain is not None]
    names = names or [sensor.name for sensor in sensors]
    return (
        f"{where}: {choice.reason}: {texts(sensors)}",
        f"name those that add up to the system, if some do: {option}={'+'.join(names[:2])}",
    )
