"""Power sensors of the kernel's hwmon class: ACPI power meters, INA2xx / INA3221 chips, supplies.

`hwmon[,root=DIR][,only=CHIP/SENSOR[+CHIP/SENSOR...]]`, where DIR is the hwmon class folder (the one
that holds `hwmon0`) and a sensor is called as its channel is: `ina226/power1`.

Of each sensor N the best file is read: `energyN_input` (uJ, a counter), `powerN_average` or
`powerN_input` (uW), or `inN_input` (mV) x `currN_input` (mA) on INA chips without a power file.
Units as in the kernel's Documentation/hwmon/sysfs-interface.rst. Some kernels put an ACPI meter's
files into `hwmonN/device/`, without a `name`.

**Domains.** Only chips known to stand in a supply line are read: `power_meter` (ACPI), `ina2xx`,
and power supplies (`corsairpsu`, PMBus chips). Drives, CPUs, GPUs, fans and batteries are left out.
A sensor is the whole `system` unless its label (`powerN_label`, `inN_label`, `powerN_oem_info`)
says otherwise: VDD_IN, 5V_IN (Jetson) or Module (Grace Hopper) -> `module`, whose carrier board,
drives and supply are elsewhere; CPU -> `package`, DDR, DRAM or memory -> `dram`, a drive ->
`device`, each a part and never added to the system.

**Totals.** Sensors may contain each other (a module and its rails), and adding them would count
energy twice. The system's total is: the sensors whose label says input, or the one whose label says
total, if all say the same of these; else the only ACPI meter, if no other of them is there; else
the power supplies; else an INA sensor that is the only sensor. Several sensors without such a label
cannot be told apart: the meter refuses them until `only=` names those that add up to the system.
Other sensors are recorded as samples and do not count.

**Supplies.** Of PMBus chips those on the mains (input of 80 V and more) are power supplies: their
inputs (label `pin`) are added, where all of them have one, else their outputs (`pout1`); one that
does not answer makes the sum missing. One of the same kind that is not plugged in counts with them;
one of another kind that does not tell its voltage makes the meter refuse. Others regulate voltages
on the board and are left out.
corsairpsu's `power total` is the supply's output.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio_power.hwmon_sensors import (
    MODULE_LABEL,
    SUPPLY_ROLES,
    TOTAL_LABEL,
    Sensor,
    sensors_of,
    short_name,
)
from eeio_power.meters import Channel, Detected, contents_of
from eeio_power.meters._choice import Choice, Problem, named, unreadable
from eeio_power.reading import MODULE, Contents, Kind

OPTIONS = {
    "root": "the hwmon class folder, instead of /sys/class/hwmon",
    "only": "the sensors that add up to the system, joined by +, such as ina226/power1",
}
HWMON = Path("sys/class/hwmon")
KIND: Kind = "measured"
_INPUTS = frozenset(("input", "vin"))
_SOCKET = re.compile(r"socket ([0-9]+)", re.I)
_SUMMED = "the sum of {count} power supplies, all that the kernel sees: {names}"


@dataclass(frozen=True)
class HwmonMeter:
    """The known power sensors of one hwmon folder."""

    spec: str
    name: str
    sensors: tuple[Sensor, ...]
    kind: Kind = KIND

    @property
    def native_period_s(self) -> float:
        """The period of the slowest sensor that counts: no edge is sharper than that."""
        return max(s.period_s for s in self.sensors if s.channel.in_domain_total)

    @property
    def channels(self) -> Sequence[Channel]:
        return [sensor.channel for sensor in self.sensors]

    def read(self) -> Sequence[float | None]:
        """W or J of each sensor; None for one that the kernel does not answer for."""
        return [sensor.read() for sensor in self.sensors]

    def close(self) -> None:
        """Nothing is held open."""


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> HwmonMeter:
    """Open the sensors. Raises PowerError if there is none, or if totals cannot be told."""
    folder = Path(options["root"]) if "root" in options else root / HWMON
    sensors = _choose(folder, options.get("only")).usable(spec)
    return HwmonMeter(spec=spec, name=options.get("name", "hwmon"), sensors=sensors)


def find(root: Path) -> Detected:
    """Whether a known power sensor is there and its place is clear."""
    choice = _choose(root / HWMON, None)
    return choice.finding("hwmon", KIND, contents_of([s.channel for s in choice.sensors]))


def _choose(folder: Path, only: str | None) -> Choice[Sensor]:
    """The sensors with their totals marked."""
    found = sensors_of(folder)
    sensors = tuple(s for s in found if not s.left_out)
    names = [short_name(s) for s in found]
    if not found:
        return Choice((), (
            f"{folder} has no ACPI power meter or INA2xx sensor, and no power supply",
            "load its driver (acpi_power_meter, ina2xx, ina3221, pmbus), or use another meter",
        ))  # fmt: skip
    if only is not None:
        choice = named(found, only, short_name, "sensor")
        problem = choice.problem or _unreadable(choice.sensors)
        return Choice(_as_named(choice.sensors), problem)
    total = _totals(sensors, found)
    if total is None:
        return Choice(sensors, (
            f"{folder} has several sensors that may contain each other: {', '.join(names)}",
            f"name those that add up to the system, such as hwmon,only={'+'.join(names[:2])}",
        ))  # fmt: skip
    if not total:
        return Choice(sensors, (
            f"{folder} has sensors of parts only: {', '.join(names)}",
            "if some of them add up to the system, name them with hwmon,only=CHIP/SENSOR+...",
        ))  # fmt: skip
    problem = _unreadable(total) or unreadable(f for s in total for f in s.silent)
    problem = problem or _says_nothing(total)
    return Choice(tuple(_in_total(s, total) for s in sensors), problem)


def _says_nothing(sensors: Sequence[Sensor]) -> Problem | None:
    silent = [s for s in sensors if s.read() is None]
    if not silent:
        return None
    return (
        f"{silent[0].files[0]}: 0 W of a machine that runs: its firmware does not measure it",
        "use another meter; a newer firmware may mend this one",
    )


def _totals(sensors: Sequence[Sensor], found: Sequence[Sensor]) -> list[Sensor] | None:
    """The sensors of the totals, of the system and of modules; [] if there is none, None if nobody
    can tell. `found` are all there are, those that are left out too."""
    modules = [s for s in sensors if s.channel.domain == "module"]
    words = {match[0].lower() for s in modules if (match := MODULE_LABEL.search(s.label))}
    if len(words) > 1 or _lacks_a_module(sensors, modules):
        return None
    system = _system_total([s for s in sensors if s not in modules], found)
    # Beside a module a sensor whose label we do not know may be a rail of it.
    if modules and (system is None or any(s.label and not s.says_total for s in system)):
        system = []
    return None if system is None else [*system, *modules]


def _lacks_a_module(sensors: Sequence[Sensor], modules: Sequence[Sensor]) -> bool:
    """Whether a part is of a socket whose module has no sensor, so that a sum would lack it."""
    of_modules, of_all = (
        {match[1] for s in some if (match := _SOCKET.search(s.label))}
        for some in (modules, sensors)
    )
    return bool(of_modules) and of_modules != of_all


def _system_total(sensors: Sequence[Sensor], found: Sequence[Sensor]) -> list[Sensor] | None:
    """The sensors that add up to the system; [] if there is none, None if nobody can tell."""
    system = [s for s in sensors if s.channel.domain == "system"]
    labelled = [s for s in system if s.says_total]
    acpi = [s for s in system if s.role == "acpi"]
    inputs = [s for s in system if s.role == "input"]
    outputs = [s for s in system if s.role == "output"]
    if labelled:
        # Two inputs add up; a total may contain both, and another total.
        words = {match[0].lower() for s in labelled if (match := TOTAL_LABEL.search(s.label))}
        alone = len(labelled) == 1 or words <= _INPUTS
        return labelled if len(words) == 1 and alone else None
    if acpi:
        # Beside others one whose label says nothing that we know may be of a part, as theirs are.
        return acpi if sum(s.role == "acpi" for s in found) == 1 else None
    if inputs or outputs:
        # A sum that may lack a supply is none.
        return None if any(s.unclear and s.left_out for s in found) else _supplies(inputs, outputs)
    # Beside other sensors, one without a label that we know may be on a rail as well as a supply.
    if len(system) == 1 and len(found) == 1:
        return system
    return None if system else []


def _supplies(inputs: list[Sensor], outputs: list[Sensor]) -> list[Sensor] | None:
    """All inputs, or all outputs, of the supplies; None where some have one and some the other."""
    with_input, with_output = ({s.files[0].parent for s in found} for found in (inputs, outputs))
    if with_output <= with_input:
        return inputs
    return None if with_input - with_output else outputs


def _as_named(sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
    """The sensors that `only=` names: they add up to the system, or to the modules if that is what
    each of them is."""
    modules = all(s.channel.domain == "module" for s in sensors)
    return tuple(
        replace(
            s,
            channel=replace(
                s.channel,
                domain="module" if modules else "system",
                in_domain_total=True,
                contents=MODULE if modules else Contents(),
            ),
        )
        for s in sensors
    )


def _in_total(sensor: Sensor, total: Sequence[Sensor]) -> Sensor:
    supplies = [s for s in total if s.role in SUPPLY_ROLES]
    remark = None
    if sensor in supplies and len(supplies) > 1:
        names = ", ".join(map(short_name, supplies))
        remark = _SUMMED.format(count=len(supplies), names=names)
    channel = replace(sensor.channel, in_domain_total=sensor in total, remark=remark)
    return replace(sensor, channel=channel)


def _unreadable(sensors: Sequence[Sensor]) -> Problem | None:
    return unreadable(file for sensor in sensors for file in sensor.files)
