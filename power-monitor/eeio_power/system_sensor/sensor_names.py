"""What the name of a sensor says: its role, its domain, its number.

A name is a list of words: `PWR_SYSTEM`, `Sys Power` and `Power` have only words for power and for
the complete machine. Any further word, or a number, makes it the name of a part, a supply, a rail,
or of something unknown. So no list of parts is needed to choose the system's sensor.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio_power.errors import PowerError
from eeio_power.reading import BEHIND_SUPPLY, MACHINE, MODULE, Contents, Domain, all_but, only
from eeio_power.system_sensor.sensor import Role, Sensor

NO_POWER_W = 32767.0
"""Controllers report the largest number of 15 or 16 bits instead of a missing value."""

# The word for power also ends the one before it: PMBPWR1, CPUpower.
_WORDS = re.compile(r"[A-Z]+?(?=POWER|PWR|WATT|power|pwr|watt)|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_P_S = re.compile(r"\bp/s\b", re.I)
_POWER = frozenset(
    (
        "power",
        "pwr",
        "pow",
        "watt",
        "watts",
        "consumption",
        "consumed",
        "usage",
        "meter",
        "level",
        "reading",
        "draw",
        "control",
        "ac",
        "input",
        "in",
        "pin",
        "avg",
        "average",
    )
)
_AVERAGE = frozenset(("avg", "average", "averaged", "mean"))
_LONG = frozenset(("minute", "minutes", "hour", "hourly", "hours", "day", "daily", "week"))
_NODE = frozenset(("node", "blade", "sled"))
_EXTENT = _NODE | frozenset(
    ("system", "sys", "server", "machine", "host", "platform", "chassis", "vin")
)
_MACHINES = _NODE | frozenset(("bl", "mlb", "server", "host"))
"""A sensor with one of these and a number is of one of several machines."""
_TOTAL = frozenset(("total", "overall"))
_OUTPUT = frozenset(("out", "output", "pout"))
_LINE = frozenset(("in", "input", "vin", "main", "dc", "v"))
"""In the label of the line through which a board may be fed, beside its voltage."""
_SUPPLY = frozenset(("ps", "psu", "pw", "pmb", "pmbus", "supply"))
_DIRECT_INPUT = frozenset(("input", "vin"))
_NO_MEAN = frozenset(
    (
        "max",
        "maximum",
        "min",
        "minimum",
        "peak",
        "highest",
        "lowest",
        "limit",
        "cap",
        "capacity",
        "rated",
        "allocated",
        "requested",
        "available",
        "budget",
        "threshold",
        "thresholds",
        "target",
        "headroom",
        "tdp",
        "lifetime",
        "factor",
        "apparent",
        "reactive",
        "calibration",
    )
)
"""In the name of a limit, of an extreme, or of another quantity."""
# A rail: its regulator's output has a voltage for a name.
_VOLTAGE = re.compile(r"[0-9]v(?![a-z])", re.I)

# In the words of a name, in this order; a word may have more letters: `CPUPWR1`, `SYSFAN1`.
# `PCIE Proc0 Pwr` is of cards, and `Mem Proc0 Pwr` of memory. pl1, syspl2: limits of power.
_PARTS: Sequence[tuple[re.Pattern[str], Role, Domain | None, Contents]] = (
    (
        re.compile(
            r"gpu|fan|pcie|usb|riser|slot|pch|fpga|bmc|accelerator|\b(nic|vr)|\b[rt]x\b"
            r"|\b(sys)?pl [0-9]"
        ),
        "part",
        None,
        MACHINE,
    ),
    (
        re.compile(r"hdd|ssd|nvme|nv me|disk|drive|storage|sata|emmc"),
        "package",
        "device",
        only("drives"),
    ),
    (re.compile(r"mem(?!ber)|dimm|ddr|dram"), "package", "dram", only("memory")),
    # Jetson's VDD_IN (Nano: POM_5V_IN), Grace Hopper's "Module Power Socket 0", Kria's SOM_5V0.
    (re.compile(r"module|\bvdd in\b|\b5 v in\b|\bsom\b"), "module", "module", MODULE),
    (
        re.compile(
            r"cpu|\bproc|pkg|package|socket|\bsoc|pcore|ecore|\bcore|grace|sysio|heatpipe|\bchip\b"
        ),
        "package",
        "package",
        only("processor"),
    ),
    # A hot-swap controller is between the supplies and the board.
    (re.compile(r"hsc"), "part", "system", BEHIND_SUPPLY),
)
OF_NODE = all_but("fans", "supply")
"""Of a node: the chassis has its fans and supplies."""


def words(name: str) -> list[str]:
    """`CPU1_Power` -> cpu, 1, power."""
    return [word.lower() for word in _WORDS.findall(_P_S.sub("PSU", name))]


def key(name: str) -> str:
    """The name without its number."""
    return " ".join(word for word in words(name) if not word.isdigit())


def number(name: str) -> str:
    """The number in a name; empty without one."""
    return " ".join(word for word in words(name) if word.isdigit())


@dataclass(frozen=True)
class Part:
    """The part of a machine that a name is of."""

    word: str
    role: Role
    domain: Domain | None
    contents: Contents


def part_of(name: str) -> Part | None:
    """The part of the machine in a name; None if it names none."""
    text = " ".join(words(name))
    for pattern, role, domain, contents in _PARTS:
        match = pattern.search(text)
        if match is not None:
            return Part(match[0].upper(), role, domain, contents)
    return None


def is_unqualified(name: str) -> bool:
    """Whether a name has only words for power and for the complete machine."""
    of_name = set(words(name))
    if of_name & _DIRECT_INPUT:
        of_name -= {"board"}
    says_it = of_name & (_POWER - {"in"} | _EXTENT | _TOTAL)
    return bool(says_it) and of_name <= _POWER | _EXTENT | _TOTAL


def role_of(name: str) -> Role:
    """The role that a name shows."""
    if is_unqualified(name):
        return "total"
    part = part_of(name)
    if part is not None:
        return part.role
    if _SUPPLY.intersection(words(name)):
        if is_output(name):
            return "output"
        return "input"
    if _VOLTAGE.search(name):
        return "rail"
    return "unknown"


def of_controller(sensors: Mapping[str, float | None]) -> list[Sensor]:
    """Sensors of a controller by their names and values, W."""
    listed = []
    for name, power_w in sensors.items():
        role = role_of(name)
        contents = MACHINE
        if role in ("input", "output"):
            contents = of_supplies((name,))
        if role == "total" and is_node(name):
            contents = OF_NODE
        listed.append(
            Sensor(
                name=name,
                role=role,
                power_w=power_w,
                label=name,
                contents=contents,
                unit=number(name),
                kind=key(name),
            )
        )
    return listed


def is_total(name: str) -> bool:
    """Whether a name has a word for a sum."""
    return bool(_TOTAL.intersection(words(name)))


def is_direct_input(name: str) -> bool:
    """Whether a name is that of a board's input: several of these feed it together."""
    return bool(_DIRECT_INPUT.intersection(words(name)))


def is_line(label: str) -> bool:
    """Whether a label is that of a line into a board: `12V_IN`, `MAIN`."""
    kinds = {word for word in words(label) if not word.isdigit()}
    has_one_voltage_at_most = len(number(label).split()) <= 1
    return has_one_voltage_at_most and bool(kinds - {"v"}) and kinds <= _LINE


def line_volts(label: str) -> float | None:
    """The voltage in the label of a line, V; None without one."""
    volts = number(label)
    if volts:
        return float(volts)
    return None


def is_node(name: str) -> bool:
    """Whether a name is that of one machine in a chassis of several."""
    return bool(_NODE.intersection(words(name)))


def is_machine(name: str) -> bool:
    """Whether a name is that of a machine, of which a chassis may have several."""
    return bool(_MACHINES.intersection(words(name)))


def is_chassis(name: str) -> bool:
    """Whether a name is that of the chassis."""
    return "chassis" in words(name)


def is_output(name: str) -> bool:
    """Whether a name is that of what a supply gives."""
    return bool(_OUTPUT.intersection(words(name)))


def of_supplies(names: Sequence[str]) -> Contents:
    """The contents of a sum: their losses are in their inputs only."""
    if any(map(is_output, names)):
        return BEHIND_SUPPLY
    return MACHINE


def possible_w(value_w: float | None) -> float | None:
    """The value; None for one that stands for a missing one."""
    if value_w is not None and value_w >= NO_POWER_W:
        return None
    return value_w


def listed(sensors: Mapping[str, float | None]) -> str:
    """`Sys Power 340 W, PS1 Input without a reading`."""
    return ", ".join(
        f"{name} without a reading" if value_w is None else f"{name} {value_w:g} W"
        for name, value_w in sensors.items()
    )


def likely(sensors: Mapping[str, float | None]) -> str:
    """A sensor for an example that names the system's; NAME if all are of parts or silent."""
    with_power = [name for name, value_w in sensors.items() if value_w and not _is_part(name)]
    unqualified = list(filter(is_unqualified, with_power))
    unnumbered = [name for name in with_power if not number(name)]
    return next(iter((*unqualified, *unnumbered, "NAME")))


def _is_part(name: str) -> bool:
    return role_of(name) in ("part", "package", "module")


def domain_of(sensor: str) -> tuple[Domain, Contents]:
    """The domain of a sensor that the user named. Raises PowerError for a part without one."""
    if "and" in words(sensor):
        raise PowerError(f"{sensor} is of several parts: no domain of them is measured")
    part = part_of(sensor)
    if part is None:
        return "system", of_supplies((sensor,))
    if part.domain is None:
        raise PowerError(f"{sensor} is of a part ({part.word}): no domain of it is measured")
    return part.domain, part.contents


def names_all(name: str, domain: Domain) -> bool:
    """Whether the name of a sensor says that it is all of a domain: no other word, no number."""
    if domain == "system":
        return is_unqualified(name)
    others = [word for word in words(name) if part_of(word) is None]
    return set(others) <= _POWER | _TOTAL


def is_no_power(name: str) -> bool:
    """Whether a name is that of a limit, of an extreme, or of another quantity."""
    return bool(_NO_MEAN.intersection(words(name)))


def is_average(name: str) -> bool:
    """Whether a name is that of a mean over some time."""
    return bool((_AVERAGE | _LONG).intersection(words(name)))


def averages(name: str) -> bool:
    """Whether a name has a word for a mean."""
    return bool(_AVERAGE.intersection(words(name)))
