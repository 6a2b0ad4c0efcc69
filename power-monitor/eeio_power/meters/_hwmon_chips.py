"""The power sensors that the chips of an hwmon folder have, each with its role and its files.

Units as in the kernel's Documentation/hwmon/sysfs-interface.rst.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

from eeio.units.quantities import PERIOD
from eeio_power.delay import BMC, Delay
from eeio_power.meters import Channel, Quantity
from eeio_power.reading import BEHIND_SUPPLY, MACHINE, WALL, Contents, Domain, only
from eeio_power.sysfs import by_number, own_path, read_int, read_optional_int, read_optional_text
from eeio_power.system_sensor.sensor import Role, Sensor
from eeio_power.system_sensor.sensor_names import number, part_of, role_of
from eeio_power.window_readings import ABSURD_POWER_W

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
# Chips of parts that need no label.
_PART_CHIPS: Sequence[tuple[re.Pattern[str], Domain | None]] = (
    (
        re.compile(
            r"(amdgpu|radeon|nouveau|i915|xe|nvidia)([_-].*)?"
            r"|blackhole|wormhole|grayskull|habanalabs|acpi_fan|BAT[0-9A-Z]|CMB[0-9]|wireview"
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
PART_CONTENTS: Mapping[Domain, Contents] = {
    "package": only("processor"),
    "dram": only("memory"),
    "device": only("drives"),
}
# The least number of a driver: a supply without a voltage draws nothing, and 0 W alone might be a
# sensor that does not measure.
_UNPLUGGED_W = 1e-6
_VOLTS = re.compile(r"^[0-9.]+ ?V ", re.I)
"""Of an input's label: `12V input`."""
_SENSOR_FILE = re.compile(r"(energy|power|in)([0-9]+)_(input|average)")
# in4 to in7 of an INA3221 are shunt voltages, curr4 is a sum: no pairs.
_PAIRED_SENSORS = (1, 2, 3)


@dataclass(frozen=True)
class _ChipClass:
    """Nominal figures: a data sheet's class plus the shunt's tolerance."""

    accuracy_relative: float
    resolution_w: float
    period_s: float


Family = Literal["acpi", "ina", "supply", "other"]
"""Kind of a chip: an ACPI meter, an INA chip, a power supply or its regulator, or any other one:
its sensors are read only if they are named."""
_CLASSES: Mapping[Family, _ChipClass] = {
    # ACPI meters report integer watts and average about a second.
    "acpi": _ChipClass(accuracy_relative=0.05, resolution_w=1.0, period_s=1.0),
    # 0.5 % to 1 % of the chip and 1 % of the shunt; one power LSB at 1 mA of current LSB.
    "ina": _ChipClass(accuracy_relative=0.02, resolution_w=0.025, period_s=0.1),
    # PMBus' LINEAR11 has eleven bits: 1 W in supplies of kilowatts. Supplies state 2 % to 5 %.
    "supply": _ChipClass(accuracy_relative=0.05, resolution_w=1.0, period_s=1.0),
}


@dataclass(frozen=True)
class FileSensor:
    """A sensor of a chip, with the files that it is read from."""

    chip: str
    """The name that chips of one kind share."""
    family: Family
    sensor: Sensor
    channel: Channel
    files: tuple[Path, ...]
    """One file, or the voltage's and the current's."""
    period_s: float
    mains: Path | None = None
    """The file of a supply's input voltage."""
    factor: float = 1.0
    """Of a driver with a wrong unit."""

    @property
    def name(self) -> str:
        """`ina226/power1`: its name in `only=`."""
        return self.sensor.name

    @property
    def label(self) -> str:
        return self.sensor.label

    @property
    def is_of_supply(self) -> bool:
        return self.sensor.role in ("input", "output")

    def read(self) -> float | None:
        """W or J; None if the kernel gives no value."""
        try:
            numbers = list(map(read_int, self.files))
        except (OSError, ValueError):
            return None
        # mV x mA is uW, too. The sign of a tester's current is the direction of its plug.
        value = numbers[0] / 1e6
        if len(numbers) != 1:
            value = numbers[0] * numbers[1] / 1e6
        if len(numbers) == 2 and self.family != "ina":
            value = abs(value)
        if value == 0.0 and self.mains is not None and read_optional_int(self.mains) == 0:
            return _UNPLUGGED_W
        if self._is_no_measurement(value):
            return None
        return value * self.factor

    def _is_no_measurement(self, value: float) -> bool:
        """Many ACPI meters always report 0 W, or their largest number, 4.29 MW: for a running
        machine that is not a measurement."""
        is_power = self.family == "acpi" and self.channel.quantity == "power_w"
        return is_power and (value == 0.0 or value > ABSURD_POWER_W)

    def power_now_w(self) -> float | None:
        """W; of an energy, the power that the chip shows of the same sensor."""
        if self.channel.quantity == "power_w":
            return self.read()
        file = self.files[0]
        match = _SENSOR_FILE.fullmatch(file.name)
        if match is None or not _is_of_one_sensor(file.parent, int(match[2])):
            return None
        for suffix in ("average", "input"):
            power = file.with_name(f"power{match[2]}_{suffix}")
            if (value := read_optional_int(power)) is not None:
                return value / 1e6
        return None


def sensors_of(folder: Path) -> tuple[FileSensor, ...]:
    """Those of all chips in an hwmon class folder, in the order of their numbers."""
    if not folder.is_dir():
        return ()
    sensors: list[FileSensor] = []
    for class_folder in sorted(folder.iterdir(), key=by_number):
        chip_folder = own_path(_files_of(class_folder))
        chip = _chip(class_folder, chip_folder)
        # Two chips of one name: the second one is called by its folder.
        is_second = any(sensor.name.startswith(f"{chip}/") for sensor in sensors)
        prefix = chip
        if is_second:
            prefix = f"{chip}@{class_folder.name}"
        sensors += _of_chip(chip, chip_folder, prefix)
    supplies = {sensor.chip for sensor in sensors if sensor.is_of_supply and sensor.sensor.may_add}
    return tuple(_with_its_kind(sensor, supplies) for sensor in sensors)


def _with_its_kind(sensor: FileSensor, supplies: set[str]) -> FileSensor:
    """An unplugged supply counts with those of its kind."""
    if sensor.is_of_supply and sensor.chip in supplies:
        return replace(sensor, sensor=replace(sensor.sensor, may_add=True))
    return sensor


def _of_chip(chip: str, folder: Path, prefix: str) -> list[FileSensor]:
    if chip == _ACPI or _INA.fullmatch(chip):
        family: Family = "ina"
        if chip == _ACPI:
            family = "acpi"
        return list(map(_of_line, _listed(chip, folder, prefix, family)))
    listed = _listed(chip, folder, prefix, "supply")
    supplies = _corsair(listed) if chip == _CORSAIR else _supplies(chip, folder, prefix, listed)
    known_files: set[Path] = set()
    for sensor in supplies:
        known_files.update(sensor.files)
    return supplies + [
        _other(sensor, folder) for sensor in listed if not known_files.issuperset(sensor.files)
    ]


def _files_of(class_folder: Path) -> Path:
    """Where a chip's sensor files are: in its class folder, or in its device's."""
    device = class_folder / "device"
    has_sensors = any(map(_SENSOR_FILE.fullmatch, _file_names(class_folder)))
    if not has_sensors and device.is_dir():
        return device
    return class_folder


def _chip(class_folder: Path, chip_folder: Path) -> str:
    """The chip's name; an ACPI meter is known by its files where a kernel gives it none."""
    for folder in (class_folder, chip_folder):
        if name := read_optional_text(folder / "name"):
            return name
    is_acpi = read_optional_text(chip_folder / "hid") == _ACPI_ID or any(
        (chip_folder / file).exists() for file in _ACPI_FILES
    )
    if is_acpi:
        return _ACPI
    return ""


def _listed(chip: str, folder: Path, prefix: str, family: Family) -> list[FileSensor]:
    """All power sensors of a chip, as their labels describe them."""
    sources = list(_numbered_sources(folder, pairs=family == "ina"))
    if not sources and family == "supply":
        sources = list(_labelled_pairs(folder))
    nominal = _CLASSES[family]
    listed = []
    for n, quantity, word, files in sources:
        of_voltage = files[0] if len(files) == 2 else folder / f"in{n}_input"
        label = _label(folder, n, word, of_voltage if len(files) == 2 or family == "ina" else None)
        period_s = _period_s(folder, n, nominal.period_s)
        role, domain, contents = _meaning(label)
        resolution = 1e-6
        if quantity == "power_w":
            resolution = nominal.resolution_w
        channel = Channel(
            name=f"hwmon:{prefix}/{word}{n}",
            domain=domain or "device",
            quantity=quantity,
            accuracy_relative=nominal.accuracy_relative,
            resolution=resolution,
            in_domain_total=False,
            contents=contents,
            delay=_delay(family, period_s, nominal),
        )
        sensor = Sensor(
            name=f"{prefix}/{word}{n}",
            role=role,
            power_w=None,
            label=label,
            domain=domain,
            contents=contents,
            unit=number(label),
        )
        listed.append(FileSensor(chip, family, sensor, channel, files, period_s))
    if family == "ina":
        listed = [_at_its_voltage(sensor, alone=len(listed) == 1) for sensor in listed]
    return [
        replace(each, sensor=replace(each.sensor, power_w=each.power_now_w())) for each in listed
    ]


def _meaning(label: str) -> tuple[Role, Domain | None, Contents]:
    """What a label says: its role, domain, contents."""
    part = part_of(label)
    if part is None or part.domain == "system":
        return (role_of(_VOLTS.sub("", label)) if label else "rail"), "system", Contents()
    return part.role, part.domain, part.contents if part.domain else Contents()


def _of_line(sensor: FileSensor) -> FileSensor:
    """A sensor of an ACPI meter or an INA chip: in a line of the machine, not yet known which."""
    is_meter = sensor.family == "acpi"
    contents = sensor.sensor.contents
    if sensor.sensor.domain == "system":
        # What is fed by an INA chip's line is unknown.
        contents = MACHINE
        if not is_meter:
            contents = Contents(leaves_out=("supply",))
    known = replace(
        sensor.sensor,
        contents=contents,
        is_meter=is_meter,
        may_add=sensor.sensor.domain is not None,
    )
    return replace(sensor, sensor=known, channel=replace(sensor.channel, contents=contents))


def _at_its_voltage(sensor: FileSensor, alone: bool) -> FileSensor:
    """A sensor of an INA chip with the voltage of its line, V, and the factor of its driver."""
    folder = sensor.files[0].parent
    match = _SENSOR_FILE.fullmatch(sensor.files[0].name)
    voltage_mv = None
    if match:
        voltage_mv = read_optional_int(folder / f"in{match[2]}_input")
    volts = None
    if voltage_mv is not None:
        volts = voltage_mv / 1e3
    factor = 1.0
    if alone and sensor.channel.quantity == "power_w":
        # Through IIO a chip has its shunt's voltage first.
        factor, of_pair = _fitting(folder, sensor.read())
        if of_pair is not None:
            volts = of_pair
    return replace(sensor, sensor=replace(sensor.sensor, volts=volts), factor=factor)


def _fitting(folder: Path, power_w: float | None) -> tuple[float, float | None]:
    """1 or 1000, by which a power is that of a voltage x current of its chip, and that voltage;
    without such a pair, 1 and None. Kernels pass on IIO's milliwatts as microwatts, below the name
    of the chip in the device tree."""
    volts, amperes = (list(_values(folder, word)) for word in ("in", "curr"))
    if power_w:
        for factor, volt, ampere in product((1.0, 1e3), volts, amperes):
            if 0.5 < volt * ampere / (power_w * factor) < 2.0:
                return factor, volt
    return 1.0, None


def _values(folder: Path, word: str) -> Iterator[float]:
    """Voltages (`in`), V, or currents (`curr`), A, of a chip."""
    for name in sorted(_file_names(folder)):
        value = None
        if _is_input(name, word):
            value = read_optional_int(folder / name)
        if value is not None:
            yield value / 1e3


def _is_input(name: str, word: str) -> bool:
    return re.fullmatch(rf"{word}[0-9]+_input", name) is not None


def _corsair(listed: Sequence[FileSensor]) -> list[FileSensor]:
    """A supply of Corsair measures what it gives."""
    return [_of_supply(s, "output", None, True) for s in listed if s.label == _CORSAIR_TOTAL]


def _supplies(
    chip: str, folder: Path, prefix: str, listed: Sequence[FileSensor]
) -> list[FileSensor]:
    """The input and the output of a power supply, or of another PMBus chip: a supply by its
    voltage; one without a voltage may be an unplugged one."""
    voltage = _input_voltage(folder)
    input_mv = None
    if voltage is not None:
        input_mv = read_optional_int(voltage)
    # One with an unreadable voltage may be a supply: it is included, and then rejected.
    is_supply = voltage is not None and (input_mv is None or input_mv / 1e3 >= _MAINS_V)
    is_regulator = not is_supply and bool(input_mv)
    sensors = []
    for sensor in listed:
        role: Role | None = None
        if _PIN.fullmatch(sensor.label):
            role = "input"
        elif _POUT.fullmatch(sensor.label):
            role = "output"
        if role is not None:
            if is_regulator:
                role = "rail"
            sensors.append(_of_supply(sensor, role, voltage, is_supply))
    if is_supply and not sensors:
        # A supply whose power the driver does not show: a sum would lack it.
        channel = Channel(f"hwmon:{prefix}/power1", "system", "power_w", in_domain_total=False)
        missing = (folder / "power1_input",)
        known = Sensor(f"{prefix}/power1", "input", None, label="pin")
        supply = FileSensor(chip, "supply", known, channel, missing, 1.0)
        sensors = [_of_supply(supply, "input", voltage, True)]
    return sensors


def _of_supply(sensor: FileSensor, role: Role, mains: Path | None, is_supply: bool) -> FileSensor:
    contents = WALL
    if _POUT.fullmatch(sensor.label) or role == "output":
        contents = BEHIND_SUPPLY
    known = replace(
        sensor.sensor,
        role=role,
        domain="system",
        contents=contents,
        may_add=is_supply,
        unit=str(sensor.files[0].parent),
        kind=role,
    )
    channel = replace(sensor.channel, domain="system", contents=contents)
    return replace(sensor, sensor=known, channel=channel, mains=mains)


def _input_voltage(folder: Path) -> Path | None:
    """The file of a PMBus chip's input voltage, mV."""
    for name in _file_names(folder):
        if re.fullmatch(r"in[0-9]+_label", name) and read_optional_text(folder / name) == "vin":
            return folder / name.replace("_label", "_input")
    return None


def _other(sensor: FileSensor, folder: Path) -> FileSensor:
    """A sensor of a chip that is no known meter: read only if it is named."""
    domain = sensor.sensor.domain
    if domain == "system":
        domain = next((d for pattern, d in _PART_CHIPS if pattern.fullmatch(sensor.chip)), "system")
    contents = Contents()
    if domain:
        contents = PART_CONTENTS.get(domain, Contents())
    if domain == "module":
        contents = sensor.sensor.contents
    factor = 1.0
    if len(sensor.files) == 1:
        factor, _ = _fitting(folder, sensor.read())
    power_w = sensor.sensor.power_w
    if power_w is not None:
        power_w *= factor
    known = replace(
        sensor.sensor,
        domain=domain,
        contents=contents,
        may_add=False,
        power_w=power_w,
    )
    channel = replace(sensor.channel, domain=domain or "device", contents=contents)
    return replace(sensor, family="other", sensor=known, channel=channel, factor=factor)


def _file_names(folder: Path) -> list[str]:
    if folder.is_dir():
        return [file.name for file in folder.iterdir()]
    return []


_Source = tuple[Quantity, str, tuple[Path, ...]]
"""A sensor's quantity, the word in the name of its file, its files."""


def _numbered_sources(
    folder: Path, pairs: bool
) -> Iterator[tuple[int, Quantity, str, tuple[Path, ...]]]:
    """The sensors of all numbers that are in use, with their numbers."""
    matches = map(_SENSOR_FILE.fullmatch, _file_names(folder))
    for n in sorted({int(match[2]) for match in matches if match}):
        if not _is_off(folder, n):
            for quantity, word, files in _sources(folder, n, pairs):
                yield n, quantity, word, files


def _sources(folder: Path, n: int, pairs: bool) -> Iterator[_Source]:
    """The sensors of the number `n`. An energy and a power of one number are of one sensor, unless
    their labels differ."""
    energy = folder / f"energy{n}_input"
    if energy.exists():
        yield "energy_j", "energy", (energy,)
        if _is_of_one_sensor(folder, n):
            return
    for suffix in ("average", "input"):
        power = folder / f"power{n}_{suffix}"
        if power.exists():
            yield "power_w", "power", (power,)
            return
    voltage, current = folder / f"in{n}_input", folder / f"curr{n}_input"
    if pairs and n in _PAIRED_SENSORS and voltage.exists() and current.exists():
        yield "power_w", "power", (voltage, current)


def _labelled_pairs(folder: Path) -> Iterator[tuple[int, Quantity, str, tuple[Path, ...]]]:
    """Voltages and currents of a chip without a power that belong together by their labels: VBUS
    and IBUS of a USB-C tester, vout1 and iout1."""
    voltages, currents = (_by_label(folder, word) for word in ("in", "curr"))
    for n, (label, voltage) in enumerate(sorted(voltages.items()), 1):
        if label in currents:
            yield n, "power_w", "power", (voltage, currents[label])


def _by_label(folder: Path, word: str) -> dict[str, Path]:
    """Files of a chip's voltages, or currents, by their labels without the letter V, or I."""
    files: dict[str, list[Path]] = {}
    letter = "i"
    if word == "in":
        letter = "v"
    for name in sorted(_file_names(folder)):
        label = (read_optional_text(folder / name.replace("_input", "_label")) or "").lower()
        if _is_input(name, word) and label.startswith(letter):
            files.setdefault(label[1:], []).append(folder / name)
    # Of two files with one label nobody knows which belongs to the other quantity.
    return {label: paths[0] for label, paths in files.items() if len(paths) == 1}


def _is_of_one_sensor(folder: Path, n: int) -> bool:
    """Whether the energy and the power of a number are of one sensor, by their labels."""
    labels = [read_optional_text(folder / f"{word}{n}_label") for word in ("energy", "power")]
    return None in labels or len(set(labels)) == 1


def _is_off(folder: Path, n: int) -> bool:
    return (
        read_optional_int(folder / f"in{n}_enable") == 0
        or read_optional_int(folder / f"power{n}_is_battery") == 1
    )


def _label(folder: Path, n: int, word: str, voltage: Path | None) -> str:
    """Of the file `word`. An INA chip has the label of its one power at the voltage, and so has
    a chip without a file of power."""
    names = [f"{word}{n}_label"]
    if word == "energy":
        names.append(f"power{n}_label")
    if voltage is not None:
        names.append(voltage.name.replace("_input", "_label"))
    for name in (*names, f"power{n}_oem_info", "label"):
        label = read_optional_text(folder / name)
        if label:
            return label
    return ""


def _period_s(folder: Path, n: int, nominal_s: float) -> float:
    """The chip's reported averaging interval (ms), else the nominal one."""
    for name in (f"power{n}_average_interval", "update_interval"):
        interval_ms = read_optional_int(folder / name)
        if interval_ms is not None and interval_ms > 0 and PERIOD.contains(interval_ms / 1e3):
            return interval_ms / 1e3
    return nominal_s


def _delay(family: Family, period_s: float, nominal: _ChipClass) -> Delay | None:
    """An INA chip converts all the time, and its interval is that of its averages. ACPI meters are
    those of a BMC; `power1_average_interval` states the time of their mean."""
    if family == "ina":
        return Delay(period_s / 2.0, period_s, period_s / 2.0, 0.0, "update_interval of the chip")
    if period_s == nominal.period_s:
        return None
    source = "power1_average_interval; " + BMC.source
    return replace(BMC, averages_s=period_s, averages_within_s=0.0, source=source)
