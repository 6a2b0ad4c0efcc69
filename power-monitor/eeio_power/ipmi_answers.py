"""What a BMC answers, as ipmitool prints it: power readings, and which sensors are the system's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eeio_limits.quantities import POWER_SAMPLE
from eeio_power.errors import PowerError

_NM_INTEL = bytes.fromhex("570100")
_NM_ENABLED, _NM_VALID = 0x10, 0x40
_HEX_LINE = re.compile(r"(?:\s*[0-9a-f]{2})+\s*")
_WHOLE_SYSTEM = re.compile(
    r"pwr consumption|sys\w*[ _]?(input[ _]?)?p(o)?w(e)?r|total[ _]?p(o)?w(e)?r|power meter"
    r"|power[ _]?usage",
    re.I,
)
# Fujitsu's controllers call the board's part "System Power", and the whole "Total Power".
_TOTAL = re.compile(r"total", re.I)
# A part of the machine, whatever else stands in the name.
_PART = re.compile(
    r"cpu|proc(essor)?|mem|dimm|ddr|gpu|pch|fan|hdd|ssd|nvme|disk|drive|pcie|riser|slot|bmc|nic|hsc",
    re.I,
)
# A supply by its number: PS1 Input Power, PSU2_PIN, Power Supply 1, PW2 Consumption.
_SUPPLY = re.compile(
    r"(?P<head>ps|psu|power[ _]?supply|pw|pwr[ _]?supply)[ _#-]*(?P<number>[0-9]+)(?P<tail>.*)",
    re.I,
)
# A supply whose number stands elsewhere, or that has none: AC_PWR_PSU1, /SYS/PS0/IN_POWER.
_OF_A_SUPPLY = re.compile(r"(?<![a-z])(psu?[ _#-]*[0-9]|psu|p/s|p(o)?w(e)?r[ _]?supply)", re.I)
# A voltage, or a regulator: what stands behind it is a rail.
_RAIL = re.compile(r"[0-9]v([0-9]|(?![a-z0-9]))|(?<![a-z])vr(?![a-z])|vcc|vcore|backplane", re.I)
_OUTPUT = re.compile(r"out", re.I)
_POWER_WORD = re.compile(r"p(o)?w(e)?r|watt|\bp(in|out)\b|consum", re.I)


@dataclass(frozen=True)
class DcmiReading:
    """DCMI 1.5, table 6-16."""

    current_w: int
    minimum_w: int
    maximum_w: int
    average_w: int
    period_ms: int
    active: bool


def parse_dcmi(lines: Sequence[str]) -> DcmiReading:
    """The bytes that `raw` printed. Raises PowerError for anything else."""
    text = " ".join(line for line in lines if _HEX_LINE.fullmatch(line))
    try:
        data = bytes.fromhex(text)
    except ValueError:  # white space that Python's patterns know, and fromhex does not
        data = b""
    if len(data) < 18 or data[0] != 0xDC:
        said = " ".join(lines).strip() or "nothing"
        raise PowerError(f"the BMC's power reading makes no sense: {said[:120]!r}")
    words = [int.from_bytes(data[k : k + 2], "little") for k in (1, 3, 5, 7)]
    period_ms = int.from_bytes(data[13:17], "little")
    return DcmiReading(words[0], words[1], words[2], words[3], period_ms, bool(data[17] & 0x40))


@dataclass(frozen=True)
class NodeManagerReading:
    """Get Node Manager Statistics, mode 1."""

    current_w: int
    period_s: int
    active: bool


def parse_node_manager(lines: Sequence[str]) -> NodeManagerReading:
    """The bytes that `raw` printed: Intel's number; current, minimum, maximum and average power,
    u16 little endian, W; time stamp; statistics period, s; state. Raises PowerError otherwise."""
    text = " ".join(line for line in lines if _HEX_LINE.fullmatch(line))
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) < 20 or data[:3] != _NM_INTEL:
        said = " ".join(lines).strip() or "nothing"
        raise PowerError(f"the Node Manager's statistics make no sense: {said[:120]!r}")
    period_s = int.from_bytes(data[15:19], "little")
    active = data[19] & (_NM_ENABLED | _NM_VALID) == _NM_ENABLED | _NM_VALID
    return NodeManagerReading(int.from_bytes(data[3:5], "little"), period_s, active)


def watt_sensors(lines: Sequence[str]) -> dict[str, float | None]:
    """Sensors in watts of `ipmitool -c sdr ...` (`name,88,Watts,ok`), with their values.

    None for one without a reading (`PS2 Input Power,,,ns`): ipmitool tells no unit then, so that
    its name says whether it is one. None, too, for a name that several sensors have: which of them
    a reading is of cannot be said.
    """
    sensors: dict[str, float | None] = {}
    for line in lines:
        words = line.split(",")
        if len(words) < 4:
            continue
        name, value, unit, state = (word.strip() for word in words[:4])
        value_w: float | None = None
        if unit == "Watts" and value:
            try:
                value_w = POWER_SAMPLE.of_text(value, name)
            except ValueError:
                continue
        elif value or state != "ns" or not (unit == "Watts" or _may_be_watts(name)):
            continue
        sensors[name] = None if name in sensors else value_w
    return sensors


def _may_be_watts(name: str) -> bool:
    return bool(_POWER_WORD.search(name)) or bool(_SUPPLY.fullmatch(name))


@dataclass(frozen=True)
class Chosen:
    """The sensors whose sum is the system's power, or why nobody can tell."""

    sensors: tuple[str, ...]
    reason: str | None = None


def whole_system(sensors: Mapping[str, float | None]) -> Chosen:
    """The sensors that stand for the whole system."""
    whole = [name for name in sensors if not _PART.search(name) and not _SUPPLY.fullmatch(name)]
    likely = [name for name in whole if _WHOLE_SYSTEM.search(name) and not _OUTPUT.search(name)]
    for chosen in (likely, [name for name in likely if _TOTAL.search(name)]):
        if len(chosen) == 1:
            return Chosen((chosen[0],))
    if not likely and len(whole) == 1 and len(sensors) == 1:
        if _OF_A_SUPPLY.search(whole[0]):
            return Chosen((), "one supply alone need not be the only one")
        if _RAIL.search(whole[0]):
            return Chosen((), "it is of a rail")
        return Chosen((whole[0],))
    supplies = [name for name in sensors if _SUPPLY.fullmatch(name) and not _PART.search(name)]
    if not whole and supplies:
        return _supplies(sensors, supplies)
    if not whole:
        return Chosen((), "they are of parts of the machine")
    return Chosen((), "none is clearly the system's")


def _supplies(sensors: Mapping[str, float | None], names: Sequence[str]) -> Chosen:
    """The inputs of all numbered supplies, or the one kind of sensor that each of them has."""
    groups: dict[str, dict[str, str]] = {}
    for name in names:
        match = _SUPPLY.fullmatch(name)
        assert match is not None
        key = f"{match['head']}{match['tail']}".lower()
        groups.setdefault(key, {})[match["number"]] = name
    numbers = {number for group in groups.values() for number in group}
    inputs = {key: group for key, group in groups.items() if not _OUTPUT.search(key)}
    usable = inputs or groups
    if len(numbers) < 2:
        return Chosen((), "one supply alone need not be the only one")
    if len(usable) != 1:
        return Chosen((), "the supplies have several sensors each")
    (group,) = usable.values()
    if set(group) != numbers:
        return Chosen((), "not every supply has the same sensor")
    silent = [name for name in group.values() if sensors[name] is None]
    if silent:
        return Chosen((), f"{', '.join(silent)} gives no reading, so that a sum would lack it")
    return Chosen(tuple(group.values()))
