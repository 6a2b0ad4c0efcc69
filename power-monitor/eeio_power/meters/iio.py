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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.units.quantities import FIGURE
from eeio_power.meters import Channel, Detected, Measured, Reads, Verified, contents_of
from eeio_power.reading import MODULE, Contents, Domain, Kind
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
    read_text,
    unreadable,
)
from eeio_power.system_sensor import rules
from eeio_power.system_sensor.sensor import Role, Sensor, refusal
from eeio_power.system_sensor.sensor_names import role_of

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


@dataclass(frozen=True)
class _Channel:
    """A channel of a device, with its file."""

    sensor: Sensor
    channel: Channel
    file: Path
    scale_mw: float
    """mW a count; 1 for `_input`."""

    def read(self) -> float | None:
        """W; None if the kernel gives no value."""
        try:
            return read_int(self.file) * self.scale_mw / 1e3
        except (OSError, ValueError):
            return None


@dataclass(frozen=True)
class IioMeter(SensorMeter[_Channel]):
    """The channels that add up to the system."""

    native_period_s: float = NATIVE_PERIOD_S


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> IioMeter:
    """Open the channels. Raises PowerError if there is none, or if they are ambiguous."""
    folder = root / DEVICES
    if "root" in options:
        folder = Path(options["root"])
    sensors = _choose(folder, options.get("only")).usable(spec)
    return IioMeter(spec=spec, name=options.get("name", "iio"), sensors=sensors)


def find(root: Path) -> Detected:
    """Whether there is one power channel."""
    choice = _choose(root / DEVICES, None)
    contents = contents_of([sensor.channel for sensor in choice.sensors])
    return choice.finding("iio", KIND, contents or {"system": CONTENTS})


def _choose(folder: Path, only: str | None) -> Choice[_Channel]:
    try:
        channels = _channels(folder)
    except (OSError, ValueError) as error:
        return Choice(
            (), (f"{folder}: a channel is damaged ({error})", "check the sensor's driver")
        )
    if not channels:
        return Choice(
            (),
            (
                f"{folder} has no power channel",
                "load the sensor's driver (ina2xx_adc, pac1934), or use another meter",
            ),
        )
    if only is not None:
        choice = named(channels, only, lambda channel: channel.sensor.name, "channel")
        return Choice(choice.sensors, choice.problem or _unreadable(choice.sensors))
    sensors = [channel.sensor for channel in channels]
    chosen = rules.of_board(sensors)
    if chosen.refused is not None:
        return Choice((), refusal(str(folder), chosen.refused, sensors, "iio,only"))
    total = [channel for channel in channels if channel.sensor.name in chosen.sensors]
    doubt = chosen.system.doubt
    if doubt is not None:
        doubt = f"{doubt}; if it does, name it: iio,only={chosen.sensors[0]}"
    rule = chosen.text(sensors)
    counted = [replace(c, channel=replace(c.channel, doubt=doubt, rule=rule)) for c in total]
    return Choice(tuple(counted), _unreadable(total), rule)


def _unreadable(channels: Sequence[_Channel]) -> Problem | None:
    return unreadable(channel.file for channel in channels)


def _channels(folder: Path) -> tuple[_Channel, ...]:
    if not folder.is_dir():
        return ()
    channels: dict[str, _Channel] = {}
    for device in sorted(folder.glob("iio:device*"), key=by_number):
        chip = read_optional_text(device / "name") or device.name
        if any(name.startswith(f"{chip}/") for name in channels):
            chip = f"{chip}@{device.name}"
        if not device.is_dir():
            continue  # a link that leads nowhere
        for file in sorted(own_path(device).iterdir(), key=by_number):
            match = _CHANNEL.fullmatch(file.name)
            if match is None:
                continue
            name = f"{chip}/power{match[1]}"
            if match[2] == "input":
                channels[name] = _channel(name, device, file, match[1], 1.0)
            elif name not in channels:
                scale_mw = _scale_mw(device, match[1])
                channels[name] = _channel(name, device, file, match[1], scale_mw)
    return tuple(channels.values())


def _channel(name: str, device: Path, file: Path, number: str, scale_mw: float) -> _Channel:
    """A channel by its label and its voltage."""
    labels = (f"rail_name_{number}", f"in_power{number}_label", "label")
    label = next(filter(None, (read_optional_text(device / file) for file in labels)), "")
    is_module = role_of(label) == "module"
    domain: Domain = "system"
    contents = CONTENTS
    if is_module:
        domain, contents = "module", MODULE
    channel = Channel(
        name=f"iio:{name}",
        domain=domain,
        quantity="power_w",
        accuracy_relative=ACCURACY,
        resolution=scale_mw / 1e3,
        max_power_w=MAX_POWER_W,
        contents=contents,
    )
    role: Role = "rail"
    if label:
        role = role_of(label)
    sensor = Sensor(
        name,
        role,
        None,
        label=label,
        domain=domain,
        contents=contents,
        volts=_volts(device, number),
    )
    known = _Channel(sensor, channel, file, scale_mw)
    return replace(known, sensor=replace(sensor, power_w=known.read()))


def _volts(device: Path, number: str) -> float | None:
    """The voltage of the rail, V: of its number, else the highest (an INA's other one is its
    shunt's); None if unknown."""
    volts: dict[str, float] = {}
    for file in device.iterdir():
        match = _VOLTAGE.fullmatch(file.name)
        count = None
        if match:
            count = read_optional_int(file)
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
        volts[match[1]] = count * scale_mv / 1e3
    if number in volts and len(volts) > 2:
        return volts[number]
    return max(volts.values(), default=None)


def _scale_mw(device: Path, number: str) -> float:
    """mW a count; some drivers have one scale for all power channels."""
    for name in (f"in_power{number}_scale", "in_power_scale"):
        if (device / name).exists():
            scale_mw = FIGURE.of_text(read_text(device / name), f"{device / name}")
            if scale_mw <= 0:
                raise ValueError(f"{device / name}: a scale of {scale_mw:g}")
            return scale_mw
    raise ValueError(f"{device} has raw power without a scale")
