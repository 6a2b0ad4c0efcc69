"""Power sensors of the kernel's hwmon class: ACPI power meters, INA2xx / INA3221 chips, supplies.

`hwmon[,root=DIR][,only=CHIP/SENSOR[+CHIP/SENSOR...]]`, where DIR is the hwmon class folder (the one
with `hwmon0`). A sensor has the name of its channel: `ina226/power1`.

For each sensor N the best file is read: `energyN_input` (uJ, a counter), `powerN_average` or
`powerN_input` (uW), or `inN_input` (mV) x `currN_input` (mA) on INA chips without a power file, and
on chips without any whose labels say which belong together (VBUS and IBUS of a USB-C tester). Some
kernels put an ACPI meter's files into `hwmonN/device/`, without a `name`.

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
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.meters import Detected, Measured, Reads, Verified, contents_of, domain_option
from eeio_power.meters._hwmon_chips import PART_CONTENTS, FileSensor, sensors_of
from eeio_power.reading import Contents, Domain, Kind
from eeio_power.sysfs import Choice, Problem, SensorMeter, named, unreadable
from eeio_power.system_sensor import rules
from eeio_power.system_sensor.sensor import Choice as SystemChoice
from eeio_power.system_sensor.sensor import refusal, texts
from eeio_power.window_readings import ABSURD_POWER_W

DELAY = BMC
OPTIONS = {
    "root": "the hwmon class folder, instead of /sys/class/hwmon",
    "only": "the sensors that add up to the system, joined by +, such as ina226/power1",
    "domain": "with only=: what they add up to, if it is not the system (device, module, ...)",
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
_MILLIWATTS = (
    "the driver's power is a thousandth of its voltage x current: it is multiplied by 1000"
)
# Of a mean: runs of a minute have no reading of their own.
_LONG_S = 30.0
_MEAN = (
    "{name} is the mean of {seconds:g} s: shorter windows have no energy; "
    "power1_average_interval may be shortened"
)


class HwmonMeter(SensorMeter[FileSensor]):
    """The known power sensors of one hwmon folder."""

    @property
    def native_period_s(self) -> float:
        """The period of the slowest sensor that counts: no edge is sharper than that."""
        return max(s.period_s for s in self.sensors if s.channel.in_domain_total)


def open_meter(spec: str, options: Mapping[str, str], root: Path) -> HwmonMeter:
    """Open the sensors. Raises PowerError if there is none, or if totals are ambiguous."""
    folder = root / HWMON
    if "root" in options:
        folder = Path(options["root"])
    domain = None
    if "domain" in options:
        domain = domain_option(spec, options)
    if domain is not None and "only" not in options:
        raise PowerError(f"meter '{spec}': domain= requires only=: name the sensors of it")
    sensors = _choose(folder, options.get("only"), domain).usable(spec)
    return HwmonMeter(spec=spec, name=options.get("name", "hwmon"), sensors=sensors)


def find(root: Path) -> Detected:
    """Whether a known power sensor is there and its place is clear."""
    choice = _choose(root / HWMON, None)
    return choice.finding("hwmon", KIND, contents_of([s.channel for s in choice.sensors]))


def _choose(folder: Path, only: str | None, domain: Domain | None = None) -> Choice[FileSensor]:
    """The sensors with their totals marked."""
    every = sensors_of(folder)
    if only is not None and every:
        return _named(every, only, domain)
    meters = [s for s in every if s.family != "other"]
    if not meters:
        return Choice((), _without_meters(folder, every))
    choice = rules.of_board([s.sensor for s in meters])
    if choice.refused is not None:
        chips = {s.chip for s in meters}
        shown = [s.sensor for s in every if s.chip in chips]
        problem = refusal(str(folder), choice.refused, shown, "hwmon,only")
        return Choice(tuple(s for s in meters if s.sensor.may_add), problem)
    return _with_totals(meters, choice)


def _with_totals(meters: Sequence[FileSensor], choice: rules.BoardChoice) -> Choice[FileSensor]:
    """The sensors with those marked that add up, and why they cannot be read."""
    total = [s for s in meters if s.name in choice.sensors]
    problem = _unreadable(total) or _not_measured(total)
    rule = choice.text([s.sensor for s in meters])
    used = [s for s in meters if s.sensor.may_add]
    marked = tuple(_in_total(s, total, choice.system, rule) for s in used)
    return Choice(marked, problem, rule)


def _named(every: Sequence[FileSensor], only: str, domain: Domain | None) -> Choice[FileSensor]:
    """The sensors of `only=`."""
    choice = named(every, only, lambda sensor: sensor.name, "sensor")
    problem = choice.problem
    if problem is None and domain is None:
        problem = _of_a_part(choice.sensors)
    problem = problem or _unreadable(choice.sensors)
    return Choice(_as_named(choice.sensors, domain), problem)


def _without_meters(folder: Path, every: Sequence[FileSensor]) -> Problem:
    """Why no chip is a known meter, and which sensor of others may be named."""
    reason = f"{folder} has no ACPI power meter or INA2xx sensor, and no power supply"
    if not every:
        drivers = "load its driver (acpi_power_meter, ina2xx, ina3221, pmbus)"
        return reason, f"{drivers}, or use another meter"
    reason = f"{reason}; other chips have {_listed(every)}"
    readable = [s.sensor for s in every if s.sensor.domain is not None]
    if not readable:
        return reason, "they are of parts; use another meter for the system"
    readable = [s for s in readable if s.domain == "system"] or readable
    totals = [s for s in readable if s.role == "total"]
    candidates = totals or readable
    example = "NAME"
    if totals or len(candidates) == 1:
        example = candidates[0].name
    domain = candidates[0].domain
    return reason, f"if one measures the {domain}, name it: hwmon,only={example}"


def _listed(sensors: Sequence[FileSensor]) -> str:
    return texts(s.sensor for s in sensors)


def _of_a_part(sensors: Sequence[FileSensor]) -> Problem | None:
    """Several parts may add up to the system; one that is no domain does not."""
    if not sensors or any(s.sensor.domain is not None for s in sensors):
        return None
    return (
        f"{_listed(sensors)}: neither the system nor a domain that is measured",
        "name sensors that add up to the system; GPUs are read with --meter gpu",
    )


def _not_measured(sensors: Sequence[FileSensor]) -> Problem | None:
    silent = [s for s in sensors if s.read() is None]
    if not silent:
        return None
    return (
        f"{silent[0].files[0]}: 0 W, or more than {ABSURD_POWER_W:g} W, for a running machine: its "
        "firmware does not measure it",
        "use another meter, or try a newer firmware",
    )


def _as_named(sensors: Sequence[FileSensor], wanted: Domain | None) -> tuple[FileSensor, ...]:
    """The sensors in `only=`: they add up to what the user says, else to the domain that all of
    them have, else to the system."""
    domains = {s.sensor.domain for s in sensors if s.sensor.domain is not None}
    only_domain: Domain = "system"
    if len(domains) == 1:
        only_domain = domains.pop()
    domain: Domain = wanted or only_domain
    contents = PART_CONTENTS.get(domain, Contents())
    if domain == "module" and wanted is None:
        contents = sensors[0].sensor.contents
    names = ", ".join(s.name for s in sensors)
    named_sensors = []
    for sensor in sensors:
        remark = None
        if sensor.factor != 1.0:
            remark = _MILLIWATTS
        channel = replace(
            sensor.channel,
            domain=domain,
            in_domain_total=True,
            contents=contents,
            remark=remark,
            rule=f"{rules.NAMED}: {names}",
        )
        named_sensors.append(replace(sensor, channel=channel))
    return tuple(named_sensors)


def _in_total(
    sensor: FileSensor, total: Sequence[FileSensor], system: SystemChoice, rule: str
) -> FileSensor:
    """The sensor's channel with what the choice says about it."""
    if sensor not in total:
        return sensor
    doubt = None
    if sensor.name in system.sensors:
        doubt = system.doubt
    if doubt is not None and system.rule == rules.ONLY:
        doubt = f"{doubt}; if it does, name it: hwmon,only={sensor.name}"
    remark = system.note
    if sensor.sensor.role in ("input", "output"):
        names = ", ".join(system.sensors)
        count = "a power supply"
        if len(total) > 1:
            count = f"the sum of {len(total)} power supplies"
        remark = f"{count}, all that the kernel sees: {names}"
    if sensor.factor != 1.0:
        remark = _MILLIWATTS
    if sensor.period_s > _LONG_S:
        remark = _MEAN.format(name=sensor.name, seconds=sensor.period_s)
    channel = replace(sensor.channel, in_domain_total=True, remark=remark, doubt=doubt, rule=rule)
    return replace(sensor, channel=channel)


def _unreadable(sensors: Sequence[FileSensor]) -> Problem | None:
    voltages = (s.mains for s in sensors if s.mains is not None)
    return unreadable(file for s in sensors for file in s.files) or unreadable(voltages)
