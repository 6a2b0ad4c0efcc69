"""Power sensors of the kernel's Industrial I/O class: INA2xx, PAC193x and other monitors on boards.

`iio[,root=DIR][,only=DEVICE/CHANNEL[+...]]`, where DIR is the folder with `iio:device0`.

A channel is `in_powerN_input` (mW), or `in_powerN_raw` x `in_powerN_scale` (mW), as in the kernel's
Documentation/ABI/testing/sysfs-bus-iio. The wiring of a channel is usually unknown, so only a
single one is taken for the complete system; several must be named. If it is known (a label of the
device tree, `in_powerN_label`; `rail_name_N` of NVIDIA's driver for the INA3221 of Jetson boards),
POM_5V_IN and VDD_IN are the input of a module, without its carrier board (`module`); a channel of
another name may be a rail, and is read only if it is named.

Reading does one conversion, or gives the last one: the averaging time of an INA2xx
(`in_..._integration_time`, some milliseconds) is far shorter than the sampling period. Energy then
has the uncertainty of spot readings, which grows with their spread.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eeio_limits.quantities import FIGURE
from eeio_power.meters import Channel, Detected, Measured, Reads, Verified, contents_of
from eeio_power.meters.hwmon import LEAST_INPUT_V
from eeio_power.reading import MODULE, Contents, Kind
from eeio_power.sysfs import (
    Choice,
    SensorMeter,
    by_number,
    named,
    own_path,
    read_int,
    read_optional_int,
    read_optional_text,
    read_text,
    shown_w,
    unreadable,
)

OPTIONS = {
    "root": "the folder of IIO devices, instead of /sys/bus/iio/devices",
    "only": "the channels that add up to the system, joined by +, such as ina226/power2",
}

DEVICES = Path("sys/bus/iio/devices")
# A sensor on a board measures direct current; the load of its rail is unknown.
CONTENTS = Contents(leaves_out=("supply",))
KIND: Kind = "measured"
VERIFIED_ON: Verified = "simulator"
MEASURES: Measured = "this machine"
READS = Reads(
    files=(
        (
            "sys/bus/iio/devices/iio:device*",
            "name,label,rail_name_*,in_power*,in_voltage*,in_current*,in_shunt_resistor*,"
            "sampling_frequency,in_sampling_frequency,integration_time,in_oversampling_ratio,"
            "in_energy*",
        ),
    )
)
# One conversion of voltage and of current, 1.1 ms each on an INA2xx: between readings it is blind.
NATIVE_PERIOD_S = 0.002
ACCURACY = 0.02
MAX_POWER_W = 5000.0

_VOLTAGE = re.compile(r"in_voltage(\d*)_(input|raw)")
_CHANNEL = re.compile(r"in_power(\d*)_(input|raw)")
# Input of a complete module: Jetson Nano; Xavier NX, TX2; Kria.
_MODULE_RAIL = re.compile(r"POM_5V_IN|VDD_IN|SOM_?[0-9]+V[0-9]*(_IN)?", re.I)
_UNLABELLED = (
    "{name} has no label: that it measures the complete system is assumed; if it does, name it: "
    "iio,only={name}"
)


@dataclass(frozen=True)
class _Sensor:
    name: str
    file: Path
    scale_mw: float
    """mW a count; 1 for `_input`."""
    rail: str | None = None
    """Its wiring according to the driver."""
    volts: float | None = None
    doubt: str | None = None

    @property
    def of_module(self) -> bool:
        """Whether it measures the complete module, without its carrier board."""
        return self.rail is not None and _MODULE_RAIL.fullmatch(self.rail) is not None

    @property
    def label(self) -> str:
        rail = "" if self.rail is None else f" ({self.rail})"
        volts = "" if self.volts is None else f" at {self.volts:g} V"
        return f"{self.name}{rail}{shown_w(self.read())}{volts}"

    def read(self) -> float | None:
        """W; None if the kernel gives no value."""
        try:
            return read_int(self.file) * self.scale_mw / 1e3
        except (OSError, ValueError):
            return None

    @property
    def channel(self) -> Channel:
        return Channel(
            name=f"iio:{self.name}",
            domain="module" if self.of_module else "system",
            quantity="power_w",
            accuracy_relative=ACCURACY,
            resolution=self.scale_mw / 1e3,
            max_power_w=MAX_POWER_W,
            contents=MODULE if self.of_module else CONTENTS,
            doubt=self.doubt,
        )


@dataclass(frozen=True)
class IioMeter(SensorMeter[_Sensor]):
    """The channels that add up to the system."""

    native_period_s: float = NATIVE_PERIOD_S


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> IioMeter:
    """Open the channels. Raises PowerError if there is none, or if they are ambiguous."""
    folder = Path(options["root"]) if "root" in options else root / DEVICES
    sensors = _choose(folder, options.get("only")).usable(spec)
    return IioMeter(spec=spec, name=options.get("name", "iio"), sensors=sensors)


def find(root: Path) -> Detected:
    """Whether there is one power channel."""
    choice = _choose(root / DEVICES, None)
    contents = contents_of([sensor.channel for sensor in choice.sensors])
    return choice.finding("iio", KIND, contents or {"system": CONTENTS})


def _choose(folder: Path, only: str | None) -> Choice[_Sensor]:
    try:
        sensors = _sensors(folder)
    except (OSError, ValueError) as error:
        return Choice(
            (), (f"{folder}: a channel is damaged ({error})", "check the sensor's driver")
        )
    names = [sensor.name for sensor in sensors]
    if not sensors:
        return Choice((), (
            f"{folder} has no power channel",
            "load the sensor's driver (ina2xx_adc, pac1934), or use another meter",
        ))  # fmt: skip
    if only is not None:
        choice = named(sensors, only, lambda sensor: sensor.name, "channel")
    elif len(of_module := [sensor for sensor in sensors if sensor.of_module]) == 1:
        choice = Choice(tuple(of_module))
    elif len(sensors) > 1:
        labels = ", ".join(sensor.label for sensor in sensors)
        choice = Choice((), (
            f"several channels that may be rails of one supply, or each other's: {labels}",
            f"name those that add up to the system, such as iio,only={'+'.join(names[:2])}",
        ))  # fmt: skip
    elif not sensors[0].of_module and (
        sensors[0].rail is not None or (sensors[0].volts or LEAST_INPUT_V) < LEAST_INPUT_V
    ):
        choice = Choice((), (
            f"{sensors[0].label} may be one rail of several",
            f"if it measures the complete system, select it: iio,only={names[0]}",
        ))  # fmt: skip
    elif sensors[0].of_module:
        choice = Choice(sensors)
    else:
        choice = Choice((replace(sensors[0], doubt=_UNLABELLED.format(name=names[0])),))
    problem = choice.problem or unreadable(sensor.file for sensor in choice.sensors)
    return Choice(choice.sensors, problem)


def _sensors(folder: Path) -> tuple[_Sensor, ...]:
    if not folder.is_dir():
        return ()
    sensors: dict[str, _Sensor] = {}
    for device in sorted(folder.glob("iio:device*"), key=by_number):
        chip = read_optional_text(device / "name") or device.name
        if any(name.startswith(f"{chip}/") for name in sensors):
            chip = f"{chip}@{device.name}"
        if not device.is_dir():
            continue  # a link that leads nowhere
        for file in sorted(own_path(device).iterdir(), key=by_number):
            match = _CHANNEL.fullmatch(file.name)
            if match is None:
                continue
            name = f"{chip}/power{match[1]}"
            places = (f"rail_name_{match[1]}", f"in_power{match[1]}_label", "label")
            rail = next(
                filter(None, (read_optional_text(device / place) for place in places)), None
            )
            volts = _volts(device, match[1])
            if match[2] == "input":
                sensors[name] = _Sensor(name, file, 1.0, rail, volts)
            elif name not in sensors:
                sensors[name] = _Sensor(name, file, _scale_mw(device, match[1]), rail, volts)
    return tuple(sensors.values())


def _volts(device: Path, number: str) -> float | None:
    """The voltage of the rail, V: of its number, else the highest (an INA's other one is its
    shunt's); None if unknown."""
    found: dict[str, float] = {}
    for file in device.iterdir():
        match = _VOLTAGE.fullmatch(file.name)
        count = read_optional_int(file) if match else None
        if match is None or count is None:
            continue
        scale_mv = 1.0
        if match[2] == "raw":
            text = read_optional_text(device / f"in_voltage{match[1]}_scale")
            text = text or read_optional_text(device / "in_voltage_scale")
            try:
                scale_mv = FIGURE.of_text(text or "", file.name)
            except ValueError:
                continue
        found[match[1]] = count * scale_mv / 1e3
    if number in found and len(found) > 2:
        return found[number]
    return max(found.values(), default=None)


def _scale_mw(device: Path, number: str) -> float:
    """mW a count; some drivers have one scale for all power channels."""
    for name in (f"in_power{number}_scale", "in_power_scale"):
        if (device / name).exists():
            scale_mw = FIGURE.of_text(read_text(device / name), f"{device / name}")
            if scale_mw <= 0:
                raise ValueError(f"{device / name}: a scale of {scale_mw:g}")
            return scale_mw
    raise ValueError(f"{device} has raw power without a scale")
