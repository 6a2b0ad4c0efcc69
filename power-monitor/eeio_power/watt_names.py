"""Which of a controller's sensors in watts measure the complete system: by their names and values.

A name is a list of words: `PWR_SYSTEM`, `Sys Power` and `Power` have only words for power and for
the complete machine. Any further word, or a number, makes it the name of a part, a supply, a rail,
or of something unknown. So no list of parts is needed to choose a sensor.

Values must agree: no other sensor draws more than the system, and the supplies do not draw several
times as much. Else the sensors are listed with their watts, and the user names one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eeio_power.errors import PowerError
from eeio_power.reading import BEHIND_SUPPLY, MACHINE, Contents, Domain, all_but, only

NO_POWER_W = 32767.0
"""Controllers report the largest number of 15 or 16 bits instead of a missing value."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_POWER = frozenset(
    (
        "power", "pwr", "pow", "watt", "watts", "consumption", "consumed", "usage", "meter",
        "level", "reading", "draw", "control", "ac", "input", "in", "pin", "avg", "average",
    )
)  # fmt: skip
_AVERAGE = frozenset(("avg", "average", "averaged", "mean"))
_LONG = frozenset(("minute", "minutes", "hour", "hourly", "hours", "day", "daily", "week"))
_NODE = frozenset(("node", "blade", "sled"))
_EXTENT = frozenset(("system", "sys", "server", "machine", "host", "platform", "chassis")) | _NODE
_MACHINES = frozenset(("node", "blade", "sled", "bl", "mlb", "server", "host"))
"""A sensor with one of these and a number is of one of several machines."""
_TOTAL = frozenset(("total", "overall"))
_OUTPUT = frozenset(("out", "output", "pout"))
_SUPPLY = frozenset(("ps", "psu", "pw", "pmb", "pmbus", "supply"))
# Only for the reason of a rejection.
_PART = re.compile(
    r"cpu|proc(essor)?|mem|dimm|ddr|gpu|pch|fan|hdd|ssd|nvme|disk|drive|pcie|riser|slot|bmc|nic|hsc"
    r"|pkg|package|socket|soc|core|vrm?[0-9_ ]|fpga",
    re.I,
)
# A rail: its regulator's output has a voltage for a name.
_VOLTAGE = re.compile(r"[0-9]v(?![a-z])", re.I)
_P_S = re.compile(r"\bp/s\b", re.I)

# In the words of a name; a word of it may have more letters: `CPUPWR1`, `SYSFAN1`.
_PART_DOMAINS: Sequence[tuple[re.Pattern[str], Domain | None, Contents]] = (
    # `PCIE Proc0 Pwr` is of cards, and `Mem Proc0 Pwr` of memory.
    (re.compile(r"gpu|fan|pcie|riser|slot|pch|fpga|bmc|accelerator|\b(nic|vr)"), None, MACHINE),
    (re.compile(r"hdd|ssd|nvme|disk|drive|storage"), "device", only("drives")),
    (re.compile(r"mem(?!ber)|dimm|ddr|dram"), "dram", only("memory")),
    (re.compile(r"cpu|\bproc|pkg|package|socket|\b(soc|core)"), "package", only("processor")),
    # A hot-swap controller is between the supplies and the board.
    (re.compile(r"hsc"), "system", BEHIND_SUPPLY),
)
_NO_MEAN = frozenset(
    (
        "max", "maximum", "min", "minimum", "peak", "highest", "lowest", "limit", "cap", "capacity",
        "rated", "allocated", "requested", "available", "budget", "threshold", "thresholds",
        "target", "headroom", "tdp", "lifetime", "factor", "apparent", "reactive", "calibration",
    )
)  # fmt: skip
"""In the name of a limit, of an extreme, or of another quantity."""


LEAST_EFFICIENCY = 0.7
"""Supplies above a fifth of their rated load lose less."""
USUAL_EFFICIENCY = 0.87
"""Most supplies lose less."""
LEAST_OF_OUTPUTS = 0.87
"""A machine draws what its supplies give; they are read at another time."""
_OTHER_SHARE = 0.5
"""Two readings of one machine at nearly the same time differ by less."""
_OF_NODE = all_but("fans", "supply")
"""Of a node: the chassis has its fans and supplies."""
_FALSE_FACTOR = 5.0
"""Supplies that share a load do not differ by as much."""
_HPE_LARGEST_W = 2550.0
"""Of an unplugged supply: 255 times 10 W."""
_STANDBY_W = 50.0
"""A server that is off draws less."""
_ALIKE = 1.05
"""Sensors of one power differ by no more: they are read at different times."""


@dataclass(frozen=True)
class Chosen:
    """The sensors that add up to the system's power, or why that is unknown."""

    sensors: tuple[str, ...]
    reason: str | None = None
    contents: Contents = MACHINE
    doubt: str | None = None
    note: str | None = None


def possible_w(value_w: float | None) -> float | None:
    """The value; None for one that stands for a missing one."""
    return None if value_w is not None and value_w >= NO_POWER_W else value_w


def listed(sensors: Mapping[str, float | None]) -> str:
    """`Sys Power 340 W, PS1 Input without a reading`."""
    return ", ".join(
        f"{name} without a reading" if value_w is None else f"{name} {value_w:g} W"
        for name, value_w in sensors.items()
    )


def complete_system(sensors: Mapping[str, float | None]) -> Chosen:
    """The sensors that measure the complete system."""
    likely = [name for name in sensors if _is_unqualified(name)]
    # IBM's only sensor averages; next to another one, that one is the present power.
    likely = [name for name in likely if not _AVERAGE.intersection(_words(name))] or likely
    totals = [name for name in likely if _TOTAL.intersection(_words(name))]
    for chosen in (likely, totals):
        if len(chosen) == 1:
            twins = [n for n in sensors if _key(n) == _key(chosen[0]) and n != chosen[0]]
            sum_w = sum(sensors[name] or 0.0 for name in twins)
            value_w = sensors[chosen[0]] or 0.0
            if twins and not sum_w / _ALIKE <= value_w <= _ALIKE * sum_w:
                return Chosen((), f"{chosen[0]} may be one of several ({', '.join(twins)})")
            return _checked(chosen[0], sensors)
    if likely:
        return Chosen((), "several may be the system's")
    supplies = [name for name in sensors if _is_supply(name)]
    others = [name for name in sensors if name not in supplies]
    machines = [name for name in others if _MACHINES.intersection(_words(name)) and _number(name)]
    if supplies and machines:
        return Chosen((), f"the supplies may feed several machines ({', '.join(machines)})")
    if supplies:
        summed = _summed(sensors, supplies)
        largest = [name for name in summed.sensors if sensors[name] == _HPE_LARGEST_W]
        if largest:
            return Chosen((), f"{largest[0]} is {_HPE_LARGEST_W:g} W, its largest number")
        return summed
    if all(map(_PART.search, sensors)):
        return Chosen((), "they are of parts of the machine")
    if all(_PART.search(name) or _VOLTAGE.search(name) for name in sensors):
        return Chosen((), "they are of rails")
    family = [name for name in others if not _PART.search(name)]
    if len(family) > 1 and len({_key(name) for name in family}) == 1 and _number(family[0]):
        if _NODE.intersection(_words(family[0])):
            return Chosen((), "they are of several machines")
        summed = _summed(sensors, family)
        doubt = f"{', '.join(family)} are assumed to be all supplies of the machine"
        return Chosen(summed.sensors, summed.reason, summed.contents, doubt)
    if len(family) == 1 and _number(family[0]):
        return Chosen((), f"{family[0]} is one of several by its number")
    return Chosen((), "none is clearly the system's")


def against(name: str, sensors: Mapping[str, float | None]) -> str | None:
    """What the other sensors show against one that the user named as the system's."""
    if name not in sensors:
        return None
    checked = _checked(name, sensors)
    return checked.reason or checked.doubt or checked.note


def around_dcmi(dcmi_w: float, sensors: Mapping[str, float | None]) -> Chosen:
    """What the sensors show about DCMI's power: no sensors where DCMI is to be read, with its
    contents and the doubt; else the sensor of the node, where DCMI reports its chassis."""
    chosen = complete_system(sensors)
    value_w = sensors[chosen.sensors[0]] if len(chosen.sensors) == 1 else None
    if chosen.contents == _OF_NODE:
        if not value_w:
            silent = chosen.sensors[0]
            return Chosen((), doubt=f"{silent} gives no power: DCMI's may be of a shared chassis")
        return chosen if value_w < LEAST_EFFICIENCY * dcmi_w else Chosen((), contents=_OF_NODE)
    supplies = [name for name in sensors if _is_supply(name)]
    if (doubt := _standby(dcmi_w, supplies, sensors)) is not None:
        return Chosen((), doubt=doubt)
    sum_w, least_w = _of_known(sensors, supplies)
    if dcmi_w < least_w:
        doubt = (
            f"the supplies draw {sum_w:g} W and DCMI reports {dcmi_w:g} W: it is assumed to be of "
            "this node in a shared chassis"
        )
        return Chosen((), contents=_OF_NODE, doubt=doubt)
    if value_w and value_w < _OTHER_SHARE * dcmi_w:
        return Chosen((), doubt=(
            f"{chosen.sensors[0]} is {value_w:g} W and DCMI reports {dcmi_w:g} W: it may be of a "
            "shared chassis"
        ))  # fmt: skip
    return Chosen(())


def likely(sensors: Mapping[str, float | None]) -> str:
    """A sensor for an example that names the system's; NAME if all are of parts or silent."""
    there = [name for name, value_w in sensors.items() if value_w and not _PART.search(name)]
    unqualified = [name for name in there if _is_unqualified(name)]
    unnumbered = [name for name in there if not _number(name)]
    return next(iter((*unqualified, *unnumbered, "NAME")))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(_P_S.sub("PSU", name))]


def _key(name: str) -> str:
    """The name without its number."""
    return " ".join(word for word in _words(name) if not word.isdigit())


def _number(name: str) -> str:
    return " ".join(word for word in _words(name) if word.isdigit())


def _is_unqualified(name: str) -> bool:
    words = set(_words(name))
    known = _POWER | _EXTENT | _TOTAL
    return bool(words & (_POWER - {"in"} | _EXTENT)) and words <= known


def _is_supply(name: str) -> bool:
    return bool(_SUPPLY.intersection(_words(name))) and not _PART.search(name)


def _checked(name: str, sensors: Mapping[str, float | None]) -> Chosen:
    """The sensor with the system's name, if the values of the others agree."""
    value_w = sensors[name]
    contents = _OF_NODE if _NODE.intersection(_words(name)) else MACHINE
    chosen = Chosen((name,), contents=contents)
    if value_w is None:
        return chosen
    supplies = [other for other in sensors if _is_supply(other)]
    sum_w, least_w = _of_known(sensors, supplies)
    if contents == MACHINE and value_w < least_w:
        return Chosen(
            (), f"the supplies draw {sum_w:g} W and {name} is {value_w:g} W: they may feed "
            "other machines too"
        )  # fmt: skip
    if contents == MACHINE and 0.0 < value_w < least_w / LEAST_EFFICIENCY:
        chosen = _below_inputs(chosen, name, value_w, sensors, supplies)
    machines = [other for other in sensors if _MACHINES.intersection(_words(other))]
    if "chassis" in _words(name) and machines and name not in machines:
        return Chosen((), f"{name} may be of several machines ({', '.join(machines)})")
    for other, other_w in sensors.items():
        if other not in supplies and other_w is not None and other_w > _ALIKE * value_w:
            return Chosen((), f"{other} is more than {name}")
    return replace(chosen, doubt=chosen.doubt or _standby(value_w, supplies, sensors))


def _below_inputs(
    chosen: Chosen, name: str, value_w: float, sensors: Mapping[str, float | None],
    supplies: Sequence[str],
) -> Chosen:  # fmt: skip
    """A power somewhat below that of the inputs may be behind the supplies, which is noted;
    doubtful if they would lose more than usual."""
    inputs_w = [w for n in supplies if not _is_output(n) and (w := sensors[n]) is not None]
    sum_w = _used_w(inputs_w) if inputs_w else 0.0
    if sum_w <= _ALIKE * value_w:
        return chosen
    text = f"the supplies draw {sum_w:g} W and {name} is {value_w:g} W"
    if value_w < USUAL_EFFICIENCY * sum_w:
        return replace(chosen, doubt=text)
    return replace(chosen, note=f"{text}: it may leave out their losses")


def _standby(
    power_w: float, supplies: Sequence[str], sensors: Mapping[str, float | None]
) -> str | None:
    """Whether a power may be that of a machine that is off."""
    if power_w > _STANDBY_W or not supplies or any(sensors[n] is not None for n in supplies):
        return None
    return f"{power_w:g} W, and {', '.join(supplies)} give no reading: the machine may be off"


def _of_known(sensors: Mapping[str, float | None], supplies: Sequence[str]) -> tuple[float, float]:
    """What the supplies with a reading draw or give together, and what the machine draws at least
    then: 0 without any."""
    sums: dict[str, list[float]] = {}
    for name in supplies:
        value_w = sensors[name]
        if value_w is not None and value_w != _HPE_LARGEST_W:
            sums.setdefault(_key(name), []).append(value_w)
    found = ((_used_w(values_w), _share(key)) for key, values_w in sums.items())
    sum_w, share = max(found, key=lambda one: one[0] * one[1], default=(0.0, 0.0))
    return sum_w, share * sum_w


def _share(key: str) -> float:
    """The least part of what supplies draw, or give, that the machine draws."""
    return LEAST_OF_OUTPUTS if _is_output(key) else LEAST_EFFICIENCY


def _summed(sensors: Mapping[str, float | None], names: Sequence[str]) -> Chosen:
    """The inputs of all numbered supplies, or the one kind of sensor that each of them has. Next
    to numbered ones, a name without a number is their total."""
    totals = [name for name in names if not _number(name)]
    if len(totals) == len(names):
        totals = []
    groups: dict[str, dict[str, str]] = {}
    for name in names:
        if name in totals:
            continue
        groups.setdefault(_key(name), {})[_number(name)] = name
    numbers = {number for group in groups.values() for number in group}
    inputs = {key: group for key, group in groups.items() if not _is_output(key)}
    usable = inputs or groups
    if len(numbers) < 2:
        return Chosen((), "a single supply sensor may not cover all supplies")
    known = {int(number) for number in numbers if number.isdigit()}
    if known and len(known) == len(numbers) and not _follow_each_other(known):
        return Chosen((), "by their numbers, a supply is missing")
    if len(usable) != 1:
        return Chosen((), "the supplies have several sensors each")
    (group,) = usable.values()
    if set(group) != numbers:
        return Chosen((), "not every supply has the same sensor")
    silent = [name for name in group.values() if sensors[name] is None]
    if silent:
        give = "gives" if len(silent) == 1 else "give"
        return Chosen((), f"{', '.join(silent)} {give} no reading, so that a sum would lack it")
    sum_w = sum(sensors[name] or 0.0 for name in group.values())
    outputs_w, _ = _of_known(sensors, [name for name in names if _is_output(name)])
    if inputs and outputs_w * LEAST_OF_OUTPUTS > sum_w:
        return Chosen((), f"the supplies draw {sum_w:g} W and give {outputs_w:g} W")
    for name in totals:
        total_w = sensors[name]
        if total_w is not None and not LEAST_EFFICIENCY * sum_w <= total_w <= _ALIKE * sum_w:
            return Chosen((), f"{name} is {total_w:g} W and the numbered supplies are {sum_w:g} W")
    for other, other_w in sensors.items():
        if other not in names and other_w is not None and other_w > _ALIKE * sum_w:
            return Chosen((), f"{other} is more than the sum of the supplies")
    return Chosen(tuple(group.values()), contents=of_supplies(group.values()))


def _follow_each_other(numbers: set[int]) -> bool:
    return min(numbers) in (0, 1) and max(numbers) - min(numbers) == len(numbers) - 1


def _used_w(powers_w: Iterable[float]) -> float:
    """The sum of supplies; an unplugged one may report its largest number (HPE: 2550 W)."""
    *others_w, most_w = sorted(powers_w)
    rest_w = sum(others_w)
    return rest_w if most_w > _FALSE_FACTOR * rest_w > 0.0 else rest_w + most_w


def _is_output(name: str) -> bool:
    return bool(_OUTPUT.intersection(_words(name)))


def of_supplies(names: Iterable[str]) -> Contents:
    """The contents of a sum: their losses are in their inputs only."""
    return BEHIND_SUPPLY if any(map(_is_output, names)) else MACHINE


def domain_of(sensor: str) -> tuple[Domain, Contents]:
    """The domain of a sensor that the user named. Raises PowerError for a part without one."""
    text = " ".join(_words(sensor))
    if re.search(r"\band\b", text):
        raise PowerError(f"{sensor} is of several parts: no domain of them is measured")
    for pattern, domain, contents in _PART_DOMAINS:
        found = pattern.search(text)
        if found is not None and domain is None:
            part = found[0].upper()
            raise PowerError(f"{sensor} is of a part ({part}): no domain of it is measured")
        if found is not None and domain is not None:
            return domain, contents
    return "system", of_supplies((sensor,))


def names_all(name: str, domain: Domain) -> bool:
    """Whether the name of a sensor says that it is all of a domain: no other word, no number."""
    if domain == "system":
        return _is_unqualified(name)
    others = [w for w in _words(name) if not any(p.search(w) for p, _, _ in _PART_DOMAINS)]
    return set(others) <= _POWER | _TOTAL


def is_no_power(name: str) -> bool:
    """Whether a name is that of a limit, of an extreme, or of another quantity."""
    return bool(_NO_MEAN.intersection(_words(name)))


def is_average(name: str) -> bool:
    """Whether a name is that of a mean over some time."""
    return bool((_AVERAGE | _LONG).intersection(_words(name)))
