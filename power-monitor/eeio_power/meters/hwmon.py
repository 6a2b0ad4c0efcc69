"""Power sensors of the kernel's hwmon class: ACPI power meters and INA2xx / INA3221 chips.

`hwmon[,root=DIR][,only=CHIP/SENSOR[+CHIP/SENSOR...]]`, where DIR is the hwmon class folder (the one
that holds `hwmon0`) and a sensor is called as its channel is: `ina226/power1`.

Of each sensor N the best file is read: `energyN_input` (uJ, a counter), `powerN_average` or
`powerN_input` (uW), or `inN_input` (mV) x `currN_input` (mA) on INA chips without a power file.
Units as in the kernel's Documentation/hwmon/sysfs-interface.rst.

**Domains.** Only chips known to stand in a supply line are read: `power_meter` (ACPI) and `ina2xx`.
Drives, CPUs, GPUs, fans and batteries are left out. A sensor is the whole `system` unless its label
(`powerN_label`, `inN_label`, `powerN_oem_info`) says otherwise: CPU -> `package`, DDR, DRAM or
memory -> `dram`, a drive -> `device`, each a part and never added to the system.

**Totals.** Sensors may contain each other (a module and its rails), and adding them would count
energy twice. The system's total is: the sensors whose label says total, input or module, if all say
the same of these; else the only ACPI meter; else the only INA sensor. Several sensors without such
a label cannot be told apart: the meter refuses them until `only=` names those that add up to the
system. Other sensors are recorded as samples and do not count.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio_limits.quantities import PERIOD
from eeio_power.meters import Channel, Finding, Quantity
from eeio_power.meters._choice import Choice, Problem, named, unreadable
from eeio_power.reading import Domain, Kind
from eeio_power.sysfs import by_number, read_int, read_optional_int, read_optional_text

OPTIONS = {
    "root": "the hwmon class folder, instead of /sys/class/hwmon",
    "only": "the sensors that add up to the system, joined by +, such as ina226/power1",
}

HWMON = Path("sys/class/hwmon")
KIND: Kind = "measured"

_ACPI = re.compile(r"power_meter")
_INA = re.compile(r"ina(2[0-9]{2}|2xx|3221)")
_SENSOR_FILE = re.compile(r"(energy|power|in)([1-9][0-9]*)_(input|average)")
# in4 to in7 of an INA3221 are shunt voltages, curr4 is a sum: no pairs.
_PAIRED_SENSORS = (1, 2, 3)

_TOTAL = re.compile(r"total|module|system|\bvin\b|vdd_in\b|5v_in\b|input", re.I)
_LABELS: Sequence[tuple[re.Pattern[str], Domain | None, bool]] = (
    # pattern, domain (None: leave the sensor out), is it the domain's total?
    # Parts first: the input of a drive is not that of the system.
    (re.compile(r"gpu", re.I), None, False),
    (re.compile(r"cpu|core|soc(?!ket)", re.I), "package", False),
    (re.compile(r"ddr|dram|mem", re.I), "dram", False),
    (re.compile(r"nvme|ssd|sata|hdd|disk|drive|emmc", re.I), "device", False),
    (_TOTAL, "system", True),
)


@dataclass(frozen=True)
class _ChipClass:
    """Nominal figures: a data sheet's class plus the shunt's tolerance."""

    accuracy_relative: float
    resolution_w: float
    period_s: float


# ACPI meters report whole watts and average about a second.
_ACPI_CLASS = _ChipClass(accuracy_relative=0.05, resolution_w=1.0, period_s=1.0)
# 0.5 % to 1 % of the chip and 1 % of the shunt; one power LSB at 1 mA of current LSB.
_INA_CLASS = _ChipClass(accuracy_relative=0.02, resolution_w=0.025, period_s=0.1)


@dataclass(frozen=True)
class _Sensor:
    channel: Channel
    files: tuple[Path, ...]
    """One file, or the voltage's and the current's."""
    period_s: float
    label: str
    says_total: bool
    """The label says that nothing of the system is missing from it."""
    acpi: bool
    left_out: bool
    """Used only if `only=` names it."""

    def read(self) -> float | None:
        """W or J; None if the kernel gives no value."""
        try:
            numbers = [read_int(file) for file in self.files]
        except (OSError, ValueError):
            return None
        # mV x mA is uW, too.
        return numbers[0] / 1e6 if len(numbers) == 1 else numbers[0] * numbers[1] / 1e6


@dataclass(frozen=True)
class HwmonMeter:
    """The known power sensors of one hwmon folder."""

    spec: str
    name: str
    sensors: tuple[_Sensor, ...]
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


def find(root: Path) -> Finding:
    """Whether a known power sensor is there and its place is clear."""
    choice = _choose(root / HWMON, None)
    counted = [s.channel.domain for s in choice.sensors if s.channel.in_domain_total]
    return choice.finding("hwmon", KIND, tuple(dict.fromkeys(counted)))


def _choose(folder: Path, only: str | None) -> Choice[_Sensor]:
    """The sensors with their totals marked."""
    found = _sensors(folder)
    sensors = tuple(s for s in found if not s.left_out)
    names = [_short_name(s) for s in found]
    if not found:
        return Choice((), (
            f"{folder} has no ACPI power meter or INA2xx sensor",
            "load its driver (acpi_power_meter, ina2xx, ina3221), or use another meter",
        ))  # fmt: skip
    if only is not None:
        choice = named(found, only, _short_name, "sensor")
        problem = choice.problem or _unreadable(choice.sensors)
        return Choice(tuple(_of_system(s) for s in choice.sensors), problem)
    total = _system_total(sensors)
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
    return Choice(tuple(_in_total(s, s in total) for s in sensors), _unreadable(total))


def _system_total(sensors: Sequence[_Sensor]) -> list[_Sensor] | None:
    """The sensors that add up to the system; [] if there is none, None if nobody can tell."""
    system = [s for s in sensors if s.channel.domain == "system"]
    labelled = [s for s in system if s.says_total]
    acpi = [s for s in system if s.acpi]
    if labelled:
        # Two modules or two inputs add up; a total may contain both.
        words = {match[0].lower() for s in labelled if (match := _TOTAL.search(s.label))}
        return labelled if len(words) == 1 else None
    if acpi:
        return acpi if len(acpi) == 1 else None
    # A label that we do not know, beside other sensors, may name a rail as well as the supply.
    if len(system) == 1 and (not system[0].label or len(sensors) == 1):
        return system
    return None if system else []


def _short_name(sensor: _Sensor) -> str:
    return sensor.channel.name.removeprefix("hwmon:")


def _of_system(sensor: _Sensor) -> _Sensor:
    return replace(sensor, channel=replace(sensor.channel, domain="system", in_domain_total=True))


def _in_total(sensor: _Sensor, is_in: bool) -> _Sensor:
    return replace(sensor, channel=replace(sensor.channel, in_domain_total=is_in))


def _unreadable(sensors: Sequence[_Sensor]) -> Problem | None:
    return unreadable(file for sensor in sensors for file in sensor.files)


def _sensors(folder: Path) -> tuple[_Sensor, ...]:
    if not folder.is_dir():
        return ()
    sensors: list[_Sensor] = []
    for chip_folder in sorted(folder.iterdir(), key=by_number):
        chip = read_optional_text(chip_folder / "name") or ""
        taken = {s.channel.name for s in sensors}
        # Two chips of one name: the second one is called by its folder.
        prefix = (
            chip
            if not any(n.startswith(f"hwmon:{chip}/") for n in taken)
            else (f"{chip}@{chip_folder.name}")
        )
        if _ACPI.fullmatch(chip):
            sensors += _chip_sensors(chip_folder, prefix, _ACPI_CLASS, acpi=True)
        elif _INA.fullmatch(chip):
            sensors += _chip_sensors(chip_folder, prefix, _INA_CLASS, acpi=False)
    return tuple(sensors)


def _chip_sensors(folder: Path, prefix: str, nominal: _ChipClass, acpi: bool) -> list[_Sensor]:
    numbers = {int(m[2]) for m in map(_SENSOR_FILE.fullmatch, _file_names(folder)) if m}
    sensors = []
    for number in sorted(numbers):
        source = _source(folder, number, pairs=not acpi)
        if source is None or _is_off(folder, number):
            continue
        quantity, word, files = source
        label = _label(folder, number)
        domain, is_total = _domain_of(label)
        channel = Channel(
            name=f"hwmon:{prefix}/{word}{number}",
            domain=domain or "device",
            quantity=quantity,
            accuracy_relative=nominal.accuracy_relative,
            resolution=nominal.resolution_w if quantity == "power_w" else 1e-6,
            in_domain_total=False,
        )
        period_s = _period_s(folder, number, nominal.period_s)
        sensors.append(
            _Sensor(
                channel=channel,
                files=files,
                period_s=period_s,
                label=label,
                says_total=is_total,
                acpi=acpi,
                left_out=domain is None,
            )
        )
    return sensors


def _file_names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


def _source(
    folder: Path, number: int, pairs: bool
) -> tuple[Quantity, str, tuple[Path, ...]] | None:
    """What to read of sensor `number`: (quantity, the word it is called by, files)."""
    energy = folder / f"energy{number}_input"
    if energy.exists():
        return "energy_j", "energy", (energy,)
    for suffix in ("average", "input"):
        power = folder / f"power{number}_{suffix}"
        if power.exists():
            return "power_w", "power", (power,)
    voltage, current = folder / f"in{number}_input", folder / f"curr{number}_input"
    if pairs and number in _PAIRED_SENSORS and voltage.exists() and current.exists():
        return "power_w", "power", (voltage, current)
    return None


def _is_off(folder: Path, number: int) -> bool:
    return (
        read_optional_int(folder / f"in{number}_enable") == 0
        or read_optional_int(folder / f"power{number}_is_battery") == 1
    )


def _label(folder: Path, number: int) -> str:
    for name in (f"power{number}_label", f"in{number}_label", f"power{number}_oem_info"):
        label = read_optional_text(folder / name)
        if label:
            return label
    return ""


def _domain_of(label: str) -> tuple[Domain | None, bool]:
    for pattern, domain, is_total in _LABELS:
        if pattern.search(label):
            return domain, is_total
    return "system", False


def _period_s(folder: Path, number: int, nominal_s: float) -> float:
    """The averaging interval the chip tells (ms), else the nominal one."""
    for name in (f"power{number}_average_interval", "update_interval"):
        interval_ms = read_optional_int(folder / name)
        if interval_ms is not None and interval_ms > 0 and PERIOD.holds(interval_ms / 1e3):
            return interval_ms / 1e3
    return nominal_s
