"""Power sensors of the kernel's hwmon class: ACPI power meters, INA2xx / INA3221 chips, supplies.

`hwmon[,root=DIR][,only=CHIP/SENSOR[+CHIP/SENSOR...]]`, where DIR is the hwmon class folder (the one
with `hwmon0`). A sensor has the name of its channel: `ina226/power1`.

For each sensor N the best file is read: `energyN_input` (uJ, a counter), `powerN_average` or
`powerN_input` (uW), or `inN_input` (mV) x `currN_input` (mA) on INA chips without a power file.
Units as in the kernel's Documentation/hwmon/sysfs-interface.rst. Some kernels put an ACPI meter's
files into `hwmonN/device/`, without a `name`.

**Domains.** Only chips known to be in a supply line are read: `power_meter` (ACPI), `ina2xx`, and
power supplies (`corsairpsu`, PMBus chips). Any other chip with a power or energy file is read only
if it is named. Drives, CPUs, GPUs, fans and batteries are left out. A sensor measures the complete
`system` unless its label (`powerN_label`, `inN_label`, `powerN_oem_info`) shows another domain:
VDD_IN, 5V_IN (Jetson) or Module (Grace Hopper) -> `module`, without carrier board, drives and
supply; CPU -> `package`, DDR, DRAM or memory -> `dram`, a drive -> `device`, each a part and never
added to the system.

**Totals.** Sensors may include each other (a module and its rails), and adding them would count
energy two times. The system's total is: the sensors labelled input, or the one labelled total, if
all labels use the same of these; else the only ACPI meter, if no other of them is there; else the
power supplies; else an INA sensor without a label that is the only sensor (its readings are
doubtful). One below 4.5 V is a rail's. Several sensors without such a label are ambiguous: the
meter rejects them until `only=` names those that add up to the system. Other sensors are recorded
as samples and do not count.

**Supplies.** Of PMBus chips those on the mains (input of 80 V and more) are power supplies: their
inputs (label `pin`) are added, if all of them have one, else their outputs (`pout1`). If one does
not answer, the sum is missing. An unplugged one of the same kind counts with them: 0 W at 0 V. If
one of another kind does not report its voltage, the meter rejects the set. Others regulate voltages
on the board and are left out. corsairpsu's `power total` is the supply's output.

The power sensors that the chips of an hwmon folder have, each with its domain and files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

from eeio_limits.quantities import PERIOD
from eeio_power.delay import BMC, Delay
from eeio_power.meters import Channel, Detected, Measured, Quantity, Reads, Verified, contents_of
from eeio_power.reading import BEHIND_SUPPLY, MACHINE, MODULE, WALL, Contents, Domain, Kind, only
from eeio_power.stretches import ABSURD_POWER_W
from eeio_power.sysfs import (
    Choice,
    Problem,
    SensorMeter,
    by_number,
    named,
    own_path,
    read_int,
    read_optional_int,
    read_optional_text,
    shown_w,
    unreadable,
)

_ACPI = "power_meter"
# Of an ACPI meter's files those that no other driver has: Documentation/hwmon/acpi_power_meter.rst.
_ACPI_FILES = ("power1_oem_info", "power1_model_number", "power1_is_battery", "power1_accuracy")
_ACPI_ID = "ACPI000D"
_CORSAIR = "corsairpsu"
_PIN, _POUT = re.compile(r"pin[0-9]*", re.I), re.compile(r"pout1?", re.I)
_CORSAIR_TOTAL = "power total"
# Telecommunication supplies take 48 V, regulators on boards 12 V; the mains begins at 100 V.
_MAINS_V = 80.0
# A device tree may add the chip's place: ina226_u76.
_INA = re.compile(r"ina(2[0-9]{2}|2xx|3221)([_-].+)?")
# Below it a voltage is a rail's: boards are fed with 5 V or more.
LEAST_INPUT_V = 4.5
GPU_CHIP = re.compile(r"(amdgpu|radeon|nouveau|i915|xe|nvidia)([_-].*)?")
# Chips of parts that need no label.
_PART_CHIPS: Sequence[tuple[re.Pattern[str], Domain | None]] = (
    (GPU_CHIP, None),
    (
        re.compile(
            r"blackhole|wormhole|grayskull|habanalabs|acpi_fan|BAT[0-9A-Z]|CMB[0-9]|wireview"
            # Controllers of fans and pumps.
            r"|n[0-9]{4}bmc|quadro|octo|d5next|aquaero|farbwerk.*|highflow.*|aquastreamxt|leakshield"
            r"|(.+[_-])?sfp([_-].+)?"
        ),
        None,
    ),
    (
        re.compile(
            r"amd_(energy|hsmp_hwmon)|fam15h_power|zenpower[0-9]*|k10temp|coretemp|altra_hwmon"
        ),
        "package",
    ),
    (re.compile(r"pmic5000|spd5118"), "dram"),
    (re.compile(r"nvme|drivetemp"), "device"),
)
# The least number of a driver: a supply without a voltage draws nothing, and 0 W alone might be a
# sensor that does not measure.
_UNPLUGGED_W = 1e-6
_SENSOR_FILE = re.compile(r"(energy|power|in)([1-9][0-9]*)_(input|average)")
# in4 to in7 of an INA3221 are shunt voltages, curr4 is a sum: no pairs.
_PAIRED_SENSORS = (1, 2, 3)
TOTAL_LABEL = re.compile(r"total|system|\bvin\b|input", re.I)
# Jetson's VDD_IN (Nano: POM_5V_IN), Grace Hopper's "Module Power Socket 0".
# A system on module (Kria: SOM_5V0).
MODULE_LABEL = re.compile(r"module|vdd_in\b|5v_in\b|(?<![a-z])som(?![a-z])", re.I)
_LABELS: Sequence[tuple[re.Pattern[str], Domain | None, bool]] = (
    # pattern, domain (None: leave the sensor out), is it the domain's total?
    # Parts first: the input of a drive is not that of the system.
    (
        re.compile(
            r"gpu|fan|pcie|usb|riser|(?<![a-z])nic(?![a-z])|fpga|(?<![a-z])[rt]x(?![a-z])", re.I
        ),
        None,
        False,
    ),
    # Limits: the powers that a processor or a machine may draw.
    (re.compile(r"(?<![a-z])(sys)?pl[0-9]", re.I), None, False),
    (
        re.compile(r"cpu|core|grace|sysio|soc(?!ket)|(?<![a-z])chip(?![a-z])|heatpipe", re.I),
        "package",
        False,
    ),
    (re.compile(r"ddr|dram|mem", re.I), "dram", False),
    (re.compile(r"nvme|ssd|sata|hdd|disk|drive|emmc", re.I), "device", False),
    (MODULE_LABEL, "module", True),
    (TOTAL_LABEL, "system", True),
)
_PART_CONTENTS: Mapping[Domain, Contents] = {
    "module": MODULE,
    "package": only("processor"),
    "dram": only("memory"),
    "device": only("drives"),
}


@dataclass(frozen=True)
class _ChipClass:
    """Nominal figures: a data sheet's class plus the shunt's tolerance."""

    accuracy_relative: float
    resolution_w: float
    period_s: float


# ACPI meters report integer watts and average about a second.
_ACPI_CLASS = _ChipClass(accuracy_relative=0.05, resolution_w=1.0, period_s=1.0)
# 0.5 % to 1 % of the chip and 1 % of the shunt; one power LSB at 1 mA of current LSB.
_INA_CLASS = _ChipClass(accuracy_relative=0.02, resolution_w=0.025, period_s=0.1)
# PMBus' LINEAR11 has eleven bits: 1 W in supplies of kilowatts. Supplies state 2 % to 5 %.
_SUPPLY_CLASS = _ChipClass(accuracy_relative=0.05, resolution_w=1.0, period_s=1.0)
_Role = Literal["acpi", "ina", "input", "output", "other"]
"""Kind of a sensor: an ACPI meter's, an INA chip's, a power supply's input or output, or of any
other chip: that is read only if it is named."""
SUPPLY_ROLES: tuple[_Role, ...] = ("input", "output")


@dataclass(frozen=True)
class Sensor:
    channel: Channel
    files: tuple[Path, ...]
    """One file, or the voltage's and the current's."""
    period_s: float
    label: str
    is_total: bool
    """The label shows that it covers the complete system."""
    role: _Role
    left_out: bool
    """Used only if `only=` names it."""
    no_domain: bool = False
    """It is of a part that is no domain, such as a GPU."""
    silent: tuple[Path, ...] = ()
    """Unreadable files that should show whether it is a supply's."""
    unclear: bool = False
    """It may be a supply's: its input voltage is unknown, or 0 now (not plugged in)."""
    volts: float | None = None
    """The voltage at an INA chip."""
    mains: Path | None = None
    """The file of a supply's input voltage."""
    factor: float = 1.0
    """Of a driver with a wrong unit."""

    def read(self) -> float | None:
        """W or J; None if the kernel gives no value."""
        try:
            numbers = [read_int(file) for file in self.files]
        except (OSError, ValueError):
            return None
        # mV x mA is uW, too.
        value = numbers[0] / 1e6 if len(numbers) == 1 else numbers[0] * numbers[1] / 1e6
        if value == 0.0 and self.mains is not None and read_optional_int(self.mains) == 0:
            return _UNPLUGGED_W
        return None if self._is_no_measurement(value) else value * self.factor

    @property
    def is_rail(self) -> bool:
        return self.volts is not None and self.volts < LEAST_INPUT_V

    def _is_no_measurement(self, value: float) -> bool:
        """Many ACPI meters always report 0 W, or their largest number, 4.29 MW: for a running
        machine that is not a measurement."""
        is_power = self.role == "acpi" and self.channel.quantity == "power_w"
        return is_power and (value == 0.0 or value > ABSURD_POWER_W)


def short_name(sensor: Sensor) -> str:
    """`ina226/power1`: its name in `only=`."""
    return sensor.channel.name.removeprefix("hwmon:")


def sensors_of(folder: Path) -> tuple[Sensor, ...]:
    """Those of all known chips in an hwmon class folder, in the order of their numbers."""
    if not folder.is_dir():
        return ()
    sensors: list[Sensor] = []
    for class_folder in sorted(folder.iterdir(), key=by_number):
        chip_folder = own_path(_files_of(class_folder))
        chip = _chip(class_folder, chip_folder)
        taken = {s.channel.name for s in sensors}
        # Two chips of one name: the second one is called by its folder.
        prefix = (
            chip
            if not any(n.startswith(f"hwmon:{chip}/") for n in taken)
            else (f"{chip}@{class_folder.name}")
        )
        if chip == _ACPI:
            sensors += _chip_sensors(chip_folder, prefix, _ACPI_CLASS, "acpi")
        elif _INA.fullmatch(chip):
            sensors += _chip_sensors(chip_folder, prefix, _INA_CLASS, "ina")
        else:
            supplies = _supply_sensors(chip_folder, prefix, corsair=chip == _CORSAIR)
            sensors += supplies
            known_files = {file for sensor in supplies for file in sensor.files}
            sensors += [
                _other(sensor, chip, chip_folder)
                for sensor in _chip_sensors(chip_folder, prefix, _SUPPLY_CLASS, "other")
                if not known_files.issuperset(sensor.files)
            ]
    used = {chip_of(s) for s in sensors if s.role in SUPPLY_ROLES and not s.left_out}
    return tuple(
        replace(s, left_out=False) if s.unclear and chip_of(s) in used else s for s in sensors
    )


def _other(sensor: Sensor, chip: str, folder: Path) -> Sensor:
    """A sensor of a chip that is no known meter."""
    domain: Domain | None = None if sensor.left_out else sensor.channel.domain
    if domain == "system":
        domain = next((d for pattern, d in _PART_CHIPS if pattern.fullmatch(chip)), "system")
    contents = _PART_CONTENTS.get(domain, Contents()) if domain else Contents()
    channel = replace(sensor.channel, domain=domain or "device", contents=contents)
    return replace(
        sensor, channel=channel, left_out=True, no_domain=domain is None,
        factor=_factor(folder, sensor),
    )  # fmt: skip


def _factor(folder: Path, sensor: Sensor) -> float:
    """1000 if the chip's voltage x current is 1000 times its power: kernels pass on IIO's
    milliwatts as microwatts, below the name of the chip in the device tree."""
    return _fitting(folder, sensor.read())[0]


def _fitting(folder: Path, power_w: float | None) -> tuple[float, float | None]:
    """1 or 1000, by which a power is that of a voltage x current of its chip, and that voltage;
    without such a pair, 1 and None."""
    volts, amperes = (
        [
            value / 1e3
            for name in sorted(_file_names(folder))
            if re.fullmatch(rf"{kind}[0-9]+_input", name)
            and (value := read_optional_int(folder / name)) is not None
        ]
        for kind in ("in", "curr")
    )
    if power_w:
        for factor, volt, ampere in product((1.0, 1e3), volts, amperes):
            if 0.5 < volt * ampere / (power_w * factor) < 2.0:
                return factor, volt
    return 1.0, None


def chip_of(sensor: Sensor) -> str:
    """The chip's name, which a machine's supplies of one kind share."""
    return re.split("[@/]", short_name(sensor))[0]


def _files_of(class_folder: Path) -> Path:
    """Where a chip's sensor files are: in its class folder, or in its device's."""
    device = class_folder / "device"
    here = any(map(_SENSOR_FILE.fullmatch, _file_names(class_folder)))
    return device if not here and device.is_dir() else class_folder


def _chip(class_folder: Path, chip_folder: Path) -> str:
    """The chip's name; an ACPI meter is known by its files where a kernel gives it none."""
    for folder in (class_folder, chip_folder):
        if name := read_optional_text(folder / "name"):
            return name
    is_acpi = read_optional_text(chip_folder / "hid") == _ACPI_ID or any(
        (chip_folder / file).exists() for file in _ACPI_FILES
    )
    return _ACPI if is_acpi else ""


def _supply_sensors(folder: Path, prefix: str, corsair: bool) -> list[Sensor]:
    """The input and output of a power supply; those of another PMBus chip only if named."""
    sensors = []
    voltage = None if corsair else _input_voltage(folder)
    input_mv = None if voltage is None else read_optional_int(voltage)
    # One with an unreadable voltage may be a supply: it is included, and then rejected.
    mains = corsair or (voltage is not None and (input_mv is None or input_mv / 1e3 >= _MAINS_V))
    silent = (voltage,) if voltage is not None and input_mv is None else ()
    unclear = not corsair and (voltage is None or input_mv == 0)
    for sensor in _chip_sensors(folder, prefix, _SUPPLY_CLASS, "output"):
        if not corsair and _PIN.fullmatch(sensor.label):
            role: _Role = "input"
        elif _POUT.fullmatch(sensor.label) or (corsair and sensor.label == _CORSAIR_TOTAL):
            role = "output"
        else:
            continue
        contents = WALL if role == "input" else BEHIND_SUPPLY
        channel = replace(sensor.channel, domain="system", contents=contents)
        sensors.append(
            replace(
                sensor,
                channel=channel,
                role=role,
                is_total=False,
                left_out=not mains,
                silent=silent,
                unclear=unclear,
                mains=voltage,
            )
        )
    if mains and voltage is not None and not sensors:
        # A supply whose power the driver does not show: a sum would lack it.
        channel = Channel(f"hwmon:{prefix}/power1", "system", "power_w", in_domain_total=False)
        missing = folder / "power1_input"
        period_s = _SUPPLY_CLASS.period_s
        sensors.append(Sensor(channel, (missing,), period_s, "pin", False, "input", False))
    return sensors


def _input_voltage(folder: Path) -> Path | None:
    """The file of a PMBus chip's input voltage, mV."""
    for name in _file_names(folder):
        if re.fullmatch(r"in[0-9]+_label", name) and read_optional_text(folder / name) == "vin":
            return folder / name.replace("_label", "_input")
    return None


def _chip_sensors(folder: Path, prefix: str, nominal: _ChipClass, role: _Role) -> list[Sensor]:
    numbers = {int(m[2]) for m in map(_SENSOR_FILE.fullmatch, _file_names(folder)) if m}
    sensors = []
    for number in sorted(numbers):
        if _is_off(folder, number):
            continue
        for quantity, word, files in _sources(folder, number, pairs=role == "ina"):
            label = _label(folder, number, word, of_voltage=role == "ina")
            domain, is_total = _domain_of(label)
            channel = Channel(
                name=f"hwmon:{prefix}/{word}{number}",
                domain=domain or "device",
                quantity=quantity,
                accuracy_relative=nominal.accuracy_relative,
                resolution=nominal.resolution_w if quantity == "power_w" else 1e-6,
                in_domain_total=False,
                contents=_contents(domain, role),
            )
            period_s = _period_s(folder, number, nominal.period_s)
            sensors.append(
                Sensor(
                    channel=replace(channel, delay=_delay(role, period_s, nominal)),
                    files=files,
                    period_s=period_s,
                    label=label,
                    is_total=is_total,
                    role=role,
                    left_out=domain is None,
                    no_domain=domain is None,
                    volts=_volts(folder, number) if role == "ina" else None,
                )
            )
    if role == "ina" and len(sensors) == 1 and sensors[0].channel.quantity == "power_w":
        # Through IIO a chip has its shunt's voltage first.
        factor, volts = _fitting(folder, sensors[0].read())
        known = sensors[0].volts if volts is None else volts
        sensors = [replace(sensors[0], factor=factor, volts=known)]
    return sensors


def _volts(folder: Path, number: int) -> float | None:
    """The voltage at the sensor of an INA chip, V."""
    voltage_mv = read_optional_int(folder / f"in{number}_input")
    return None if voltage_mv is None else voltage_mv / 1e3


def _contents(domain: Domain | None, role: _Role) -> Contents:
    """What a sensor of `domain` covers; the load of an INA chip's rail is unknown."""
    if domain is not None and domain in _PART_CONTENTS:
        return _PART_CONTENTS[domain]
    if domain == "system" and role == "acpi":
        return MACHINE
    return Contents(leaves_out=("supply",)) if role == "ina" else Contents()


def _file_names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()] if folder.is_dir() else []


def _sources(
    folder: Path, number: int, pairs: bool
) -> Iterator[tuple[Quantity, str, tuple[Path, ...]]]:
    """Files of the sensors `number`: (quantity, the name of its file, files). An energy and a power
    of one number are of one sensor, unless their labels differ."""
    energy = folder / f"energy{number}_input"
    if energy.exists():
        yield "energy_j", "energy", (energy,)
        if _is_one(folder, number):
            return
    for suffix in ("average", "input"):
        power = folder / f"power{number}_{suffix}"
        if power.exists():
            yield "power_w", "power", (power,)
            return
    voltage, current = folder / f"in{number}_input", folder / f"curr{number}_input"
    if pairs and number in _PAIRED_SENSORS and voltage.exists() and current.exists():
        yield "power_w", "power", (voltage, current)


def _is_one(folder: Path, number: int) -> bool:
    """Whether the energy and the power of a number are of one sensor, by their labels."""
    labels = [read_optional_text(folder / f"{word}{number}_label") for word in ("energy", "power")]
    return None in labels or len(set(labels)) == 1


def _is_off(folder: Path, number: int) -> bool:
    return (
        read_optional_int(folder / f"in{number}_enable") == 0
        or read_optional_int(folder / f"power{number}_is_battery") == 1
    )


def _label(folder: Path, number: int, word: str, of_voltage: bool) -> str:
    """Of the file `word`. An INA chip has the label of its one power at the voltage."""
    names = [f"{word}{number}_label"]
    names += [f"power{number}_label"] if word == "energy" else []
    names += [f"in{number}_label"] if of_voltage else []
    for name in (*names, f"power{number}_oem_info", "label"):
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
    """The chip's reported averaging interval (ms), else the nominal one."""
    for name in (f"power{number}_average_interval", "update_interval"):
        interval_ms = read_optional_int(folder / name)
        if interval_ms is not None and interval_ms > 0 and PERIOD.contains(interval_ms / 1e3):
            return interval_ms / 1e3
    return nominal_s


def _delay(role: _Role, period_s: float, nominal: _ChipClass) -> Delay | None:
    """An INA chip converts all the time, and its interval is that of its averages. ACPI meters are
    those of a BMC; `power1_average_interval` states the time of their mean."""
    if role == "ina":
        return Delay(period_s / 2.0, period_s, period_s / 2.0, 0.0, "update_interval of the chip")
    if period_s == nominal.period_s:
        return None
    return replace(
        BMC,
        averages_s=period_s,
        averages_within_s=0.0,
        source="power1_average_interval; " + BMC.source,
    )


DELAY = BMC
OPTIONS = {
    "root": "the hwmon class folder, instead of /sys/class/hwmon",
    "only": "the sensors that add up to the system, joined by +, such as ina226/power1",
}
HWMON = Path("sys/class/hwmon")
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
_FILES = (
    "name,update_interval,power*_average,power*_average_interval*,power*_input,power*_label,"
    "power*_accuracy,power*_is_battery,power*_model_number,power*_oem_info,power*_cap,energy*_input,"
    "energy*_label,in*_input,in*_label,in*_enable,curr*_input,curr*_label,curr*_enable,"
    "shunt*_resistor,label,hid"
)
READS = Reads(files=(("sys/class/hwmon/hwmon*", _FILES), ("sys/class/hwmon/hwmon*/device", _FILES)))
_SAME_VOLTS = 1.15
_INPUTS = frozenset(("input", "vin"))
_SOCKET = re.compile(r"socket ([0-9]+)", re.I)
_ONE_RAIL = [("ina", "system", False)]
_UNLABELLED = (
    "{name} has no label: that it measures the complete system is assumed; if it does, name it: "
    "hwmon,only={name}"
)
_MILLIWATTS = (
    "the driver's power is a thousandth of its voltage x current: it is multiplied by 1000"
)
# Of a mean: runs of a minute have no reading of their own.
_LONG_S = 30.0
_MEAN = (
    "{name} is the mean of {seconds:g} s: shorter windows have no energy; "
    "power1_average_interval may be shortened"
)
_SUMMED = "the sum of {count} power supplies, all that the kernel sees: {names}"


class HwmonMeter(SensorMeter[Sensor]):
    """The known power sensors of one hwmon folder."""

    @property
    def native_period_s(self) -> float:
        """The period of the slowest sensor that counts: no edge is sharper than that."""
        return max(s.period_s for s in self.sensors if s.channel.in_domain_total)


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> HwmonMeter:
    """Open the sensors. Raises PowerError if there is none, or if totals are ambiguous."""
    folder = Path(options["root"]) if "root" in options else root / HWMON
    sensors = _choose(folder, options.get("only")).usable(spec)
    return HwmonMeter(spec=spec, name=options.get("name", "hwmon"), sensors=sensors)


def find(root: Path) -> Detected:
    """Whether a known power sensor is there and its place is clear."""
    choice = _choose(root / HWMON, None)
    return choice.finding("hwmon", KIND, contents_of([s.channel for s in choice.sensors]))


def _choose(folder: Path, only: str | None) -> Choice[Sensor]:
    """The sensors with their totals marked."""
    every = sensors_of(folder)
    found = tuple(s for s in every if s.role != "other")
    if only is not None and every:
        choice = named(every, only, short_name, "sensor")
        problem = choice.problem or _of_a_part(choice.sensors) or _unreadable(choice.sensors)
        return Choice(_as_named(choice.sensors), problem)
    if not found:
        reason = f"{folder} has no ACPI power meter or INA2xx sensor, and no power supply"
        if every:
            readable = [s for s in every if not s.no_domain]
            others = [s for s in readable if s.channel.domain == "system"] or readable
            totals = [s for s in others if s.is_total]
            others = totals or others
            example = short_name(others[0]) if totals or len(others) == 1 else "NAME"
            remedy = "they are of parts; use another meter for the system"
            if others:
                remedy = (
                    f"if one measures the {others[0].channel.domain}, name it: hwmon,only={example}"
                )
            return Choice((), (f"{reason}; other chips have {_listed(every)}", remedy))
        return Choice((), (
            reason,
            "load its driver (acpi_power_meter, ina2xx, ina3221, pmbus), or use another meter",
        ))  # fmt: skip
    sensors = tuple(s for s in found if not s.left_out)
    names = [short_name(s) for s in found]
    total = _totals(sensors, found)
    if not total and [(s.role, s.channel.domain, s.left_out) for s in found] == _ONE_RAIL:
        return Choice(sensors, (
            f"{folder}: {_listed(found)} may be one rail of several",
            f"if all that the system draws goes through it, name it: hwmon,only={names[0]}",
        ))  # fmt: skip
    if total is None:
        return Choice(sensors, (
            f"{folder} has several sensors that may contain each other: {_listed(found)}",
            f"name those that add up to the system, such as hwmon,only={'+'.join(names[:2])}",
        ))  # fmt: skip
    if not total:
        chips = {chip_of(s) for s in found}
        every = tuple(s for s in every if chip_of(s) in chips)
        names = [short_name(s) for s in every if not s.no_domain] or names
        return Choice(sensors, (
            f"{folder} has sensors of parts only: {_listed(every)}",
            "if some of them add up to the system, name them, such as "
            f"hwmon,only={'+'.join(names[:2])}",
        ))  # fmt: skip
    problem = _unreadable(total) or unreadable(f for s in total for f in s.silent)
    problem = problem or _not_measured(total)
    return Choice(tuple(_in_total(s, total) for s in sensors), problem)


def _listed(sensors: Sequence[Sensor]) -> str:
    """`ina226/power1 (VDD_CORE) 3.1 W at 0.8 V, ...`."""
    return ", ".join(
        short_name(s)
        + (f" ({s.label})" if s.label else "")
        + shown_w(s.read() if s.channel.quantity == "power_w" else _power_of(s))
        + ("" if s.volts is None else f" at {s.volts:g} V")
        for s in sensors
    )


def _power_of(energy: Sensor) -> float | None:
    """The power that a chip shows of the same sensor as an energy, W."""
    file = energy.files[0]
    number = _SENSOR_FILE.fullmatch(file.name)
    if number is None or not _is_one(file.parent, int(number[2])):
        return None
    for suffix in ("average", "input"):
        power = file.with_name(file.name.replace("energy", "power").replace("input", suffix))
        if (value := read_optional_int(power)) is not None:
            return value / 1e6
    return None


def _of_a_part(sensors: Sequence[Sensor]) -> Problem | None:
    """Several parts may add up to the system; one that is no domain does not."""
    if not sensors or not all(s.no_domain for s in sensors):
        return None
    return (
        f"{_listed(sensors)}: neither the system nor a domain that is measured",
        "name sensors that add up to the system; GPUs are read with --meter gpu",
    )


def _not_measured(sensors: Sequence[Sensor]) -> Problem | None:
    silent = [s for s in sensors if s.read() is None]
    if not silent:
        return None
    return (
        f"{silent[0].files[0]}: 0 W, or more than {ABSURD_POWER_W:g} W, for a running machine: its "
        "firmware does not measure it",
        "use another meter, or try a newer firmware",
    )


def _totals(sensors: Sequence[Sensor], found: Sequence[Sensor]) -> list[Sensor] | None:
    """The sensors of the totals, of the system and of modules; [] if there is none, None if
    ambiguous. `found` are all sensors, also those left out."""
    modules = [s for s in sensors if s.channel.domain == "module"]
    labels = {match[0].lower() for s in modules if (match := MODULE_LABEL.search(s.label))}
    if len(labels) > 1 or _lacks_a_module(sensors, modules):
        return None
    system = _system_total([s for s in sensors if s not in modules], found)
    # Next to a module, a sensor with an unknown label may be one of its rails.
    if modules and (system is None or any(s.label and not s.is_total for s in system)):
        system = []
    return None if system is None else [*system, *modules]


def _lacks_a_module(sensors: Sequence[Sensor], modules: Sequence[Sensor]) -> bool:
    """Whether a part belongs to a socket without a module sensor, so that a sum would lack it."""
    of_modules, of_all = (
        {match[1] for s in some if (match := _SOCKET.search(s.label))}
        for some in (modules, sensors)
    )
    return bool(of_modules) and of_modules != of_all


def _system_total(sensors: Sequence[Sensor], found: Sequence[Sensor]) -> list[Sensor] | None:
    """The sensors that add up to the system; [] if there is none, None if ambiguous."""
    system = [s for s in sensors if s.channel.domain == "system" and not s.is_rail]
    labelled = [s for s in system if s.is_total]
    acpi = [s for s in system if s.role == "acpi"]
    inputs = [s for s in system if s.role == "input"]
    outputs = [s for s in system if s.role == "output"]
    if labelled:
        # Two inputs add up; a total may contain both, and another total.
        labels = {match[0].lower() for s in labelled if (match := TOTAL_LABEL.search(s.label))}
        # An input of 12 V may feed one of 5 V.
        volts = [s.volts for s in labelled if s.volts is not None]
        alike = not volts or max(volts) <= _SAME_VOLTS * min(volts)
        alone = len(labelled) == 1 or (labels <= _INPUTS and alike)
        return labelled if len(labels) == 1 and alone else None
    if acpi:
        # Next to others, one with an unknown label may measure a part, as they do.
        return acpi if sum(s.role == "acpi" for s in found) == 1 else None
    if inputs or outputs:
        # A sum that may lack a supply is none.
        return None if any(s.unclear and s.left_out for s in found) else _supplies(inputs, outputs)
    # Next to other sensors, or with an unknown label, one may be on a rail or on a supply.
    if len(system) == 1 and len(found) == 1 and not system[0].label:
        return system
    return None if system else []


def _supplies(inputs: list[Sensor], outputs: list[Sensor]) -> list[Sensor] | None:
    """All inputs, or all outputs, of the supplies; None where some have one and some the other."""
    with_input, with_output = ({s.files[0].parent for s in found} for found in (inputs, outputs))
    if with_output <= with_input:
        return inputs
    return None if with_input - with_output else outputs


def _as_named(sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
    """The sensors in `only=`: they add up to the system, or to the domain that all of them have."""
    domains: set[Domain] = {s.channel.domain for s in sensors if not s.no_domain}
    domain: Domain = domains.pop() if len(domains) == 1 else "system"
    contents = _PART_CONTENTS.get(domain)
    return tuple(
        replace(
            s,
            channel=replace(
                s.channel,
                domain=domain,
                in_domain_total=True,
                contents=contents or Contents(),
                remark=_MILLIWATTS if s.factor != 1.0 else None,
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
    doubt = None
    if sensor in total and sensor.role == "ina" and not sensor.label:
        doubt = _UNLABELLED.format(name=short_name(sensor))
    remark = _MILLIWATTS if sensor.factor != 1.0 else remark
    if sensor in total and sensor.period_s > _LONG_S:
        remark = _MEAN.format(name=short_name(sensor), seconds=sensor.period_s)
    channel = replace(sensor.channel, in_domain_total=sensor in total, remark=remark, doubt=doubt)
    return replace(sensor, channel=channel)


def _unreadable(sensors: Sequence[Sensor]) -> Problem | None:
    return unreadable(file for sensor in sensors for file in sensor.files)
