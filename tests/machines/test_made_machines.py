"""Machines made at random, with a known truth: a meter gives the true watts, or doubts them, or
lists the candidates with their watts and the option that names one. Never wrong without a word.

`python -m tests.machines.test_made_machines 20000` counts the results of many machines.
"""

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from eeio_power.errors import PowerError
from eeio_power.http_json import JsonClient
from eeio_power.meters import open_meters, redfish
from eeio_power.system_sensor.controller import complete_system
from eeio_power.system_sensor.sensor_names import listed
from tests.simulators import FakeHwmon
from tests.simulators.tree import write_tree

UW = 1_000_000
ALIKE = 0.06
"""Readings are rounded, and taken at different times."""


@dataclass(frozen=True)
class Truth:
    """Ranges of watts that are true of each domain, by its parts."""

    behind_w: float
    wall_w: float
    module_w: float = 0.0
    node_w: float = 0.0

    def allows(self, domain: str, power_w: float, leaves_out: Sequence[str]) -> bool:
        if domain == "module":
            low_w = high_w = self.module_w
        elif "fans" in leaves_out:
            low_w = high_w = self.node_w
        elif "supply" in leaves_out:
            low_w = high_w = self.behind_w
        else:
            low_w, high_w = self.behind_w, self.wall_w
        return low_w * (1 - ALIKE) - 1.5 <= power_w <= high_w * (1 + ALIKE) + 1.5


@dataclass(frozen=True)
class Answer:
    domain: str
    power_w: float
    leaves_out: Sequence[str]
    doubt: str | None


@dataclass(frozen=True)
class Case:
    truth: Truth
    answers: Sequence[Answer]
    """What was found; empty if it was rejected, with the reason."""
    reason: str
    values: bool
    """Whether a sensor gave a value, so that the reason must list it."""
    option: str
    shown: Any
    answerable: bool
    """Whether names and numbers of its sensors show the power of the system: one has the name of
    the complete machine, or all supplies are there."""

    def verdict(self) -> str:
        if not self.answers:
            lists = not self.values or (
                re.search(r"\d W", self.reason)
                # To name a fan's sensor would be rejected, too.
                and (self.option in self.reason or "they are of parts; use another" in self.reason)
            )
            return "rejected" if lists else "rejected without candidates"
        wrong = [
            a for a in self.answers if not self.truth.allows(a.domain, a.power_w, a.leaves_out)
        ]
        if any(answer.doubt is None for answer in wrong):
            return "wrong"
        return "doubtful" if any(answer.doubt for answer in self.answers) else "right"


# --- controllers with sensors in watts ------------------------------------------------------------

_WORDS = ("Power", "PWR", "Pwr", "Watts", "power")
_SYSTEM = (
    "Sys {}", "System {}", "Total {}", "{}_SYSTEM", "Total_{}", "{}", "Server {}", "total_{}",
    "Pwr Consumption", "System Level", "Chassis {}",
)  # fmt: skip
_PART = (
    "CPU{n} {w}", "CPU {w}", "Mem {w}", "GPU{n} {w}", "{w} Fan", "HDD {w}", "P{n}V {w}",
    "OCP{n} {w}", "Riser{n} {w}", "VR{n} {w}", "PVCCIN {w}", "FPGA {w}", "Retimer{n} {w}",
    "Zeta {w}", "X{n}{w}", "System Board {w}", "Total CPU {w}", "Sys Fan {w}", "{w} Input GPU{n}",
)  # fmt: skip
_SUPPLY = (
    "PS{n} Input {w}", "PSU{n}_PIN", "PMB{w}{n}", "PMB{n}{w}", "AC_PWR_PSU{n}", "Power Supply {n}",
    "/SYS/PS{n}/IN_{w}", "psu{n}_input_{w}", "Feed{n} {w}", "XYZ{w}{n}",
)  # fmt: skip


def controller(rng: random.Random) -> Case:
    word = rng.choice(_WORDS)
    behind_w = rng.uniform(80.0, 3000.0)
    shares = [rng.uniform(0.02, 0.4) for _ in range(rng.randint(0, 6))]
    scale = behind_w * rng.uniform(0.5, 0.95) / max(1.0, sum(shares))
    sensors: dict[str, float | None] = {}
    complete: list[set[str]] = []
    for k, share in enumerate(shares):
        sensors[rng.choice(_PART).format(n=k, w=word)] = share * scale
    nodes = rng.choice((1, 1, 1, 2, 4))
    fans_w = behind_w * rng.uniform(0.03, 0.15) if nodes > 1 else 0.0
    all_w = nodes * behind_w + fans_w
    wall_w = all_w / rng.uniform(0.82, 0.96)
    truth = Truth(behind_w, wall_w if nodes == 1 else behind_w, node_w=behind_w)
    if rng.random() < 0.6:
        names = ("Node {}", "Blade {}") if nodes > 1 and rng.random() < 0.5 else _SYSTEM[:10]
        form = rng.choice(names)
        sensors[form.format(word)] = behind_w
        # The supplies of a chassis feed all nodes: "System" does not say what it is of.
        if form != "{}" and (nodes == 1 or form in ("Node {}", "Blade {}")):
            complete.append({form.format(word)})
    has_supplies = rng.random() < 0.6 or (nodes > 1 and rng.random() < 0.9)
    if has_supplies and (nodes == 1 or any(map(_is_of_system, sensors))):
        count = rng.randint(2, 4)
        form, first = rng.choice(_SUPPLY), rng.choice((0, 1))
        parts = [rng.uniform(0.8, 1.2) for _ in range(count)]
        outputs = "n}" in form and "nput" in form and rng.random() < 0.4
        supplies = {}
        for k, part in enumerate(parts):
            power_w = wall_w * part / sum(parts)
            name = form.format(n=first + k, w=word)
            supplies[name] = power_w
            if outputs:
                output = name.replace("Input", "Output").replace("input", "output")
                supplies[output] = power_w * all_w / wall_w
        # A last supply, or number 0, may be missing unseen: then its number is not missed.
        observed = list(supplies)[:-1] if first == 1 else list(supplies)[1:-1]
        if rng.random() < 0.2 and not outputs and observed:
            del supplies[rng.choice(observed)]
        elif nodes == 1 and not form.startswith(("XYZ", "Feed")):
            complete.append(set(supplies))
        if nodes > 1 and form.startswith(("XYZ", "Feed")):
            complete.clear()  # what is unknown draws more than the node
        sensors |= supplies
    if nodes == 1 and rng.random() < 0.1:
        sensors["Chassis " + word] = behind_w
    for name in sensors:
        if rng.random() < 0.05:
            sensors[name] = None
    items = [(n, None if w is None else float(round(w))) for n, w in sensors.items()]
    rng.shuffle(items)
    shuffled = dict(items)
    chosen = complete_system(shuffled)
    answers = []
    if chosen.sensors and all(shuffled[name] is not None for name in chosen.sensors):
        power_w = sum(shuffled[name] or 0.0 for name in chosen.sensors)
        answers = [Answer("system", power_w, chosen.contents.leaves_out, chosen.doubt)]
    reason = f"{listed(shuffled)} {chosen.reason} sensor="
    values = bool(sensors) and not chosen.sensors and any(w for w in shuffled.values())
    answerable = any(all(sensors[name] is not None for name in names) for names in complete)
    return Case(truth, answers, reason, values, "sensor=", (shuffled, chosen), answerable)


def _is_of_system(name: str) -> bool:
    return complete_system({name: 1.0}).sensors == (name,)


# --- sensors on boards ----------------------------------------------------------------------------

_INPUT_LABELS = ("VIN", "Input", "board input", "Total", "System", "", "", "12V_IN", "MAIN")
_MODULE_LABELS = ("VDD_IN", "POM_5V_IN", "SOM_5V0", "Module Power", "5V_IN")
_RAIL_LABELS = (
    "CPU", "VDD_CORE", "DDR", "3V3", "5V_B", "PCIe", "", "", "VCC_AUX", "SSD", "FAN", "AVTT", "?",
)  # fmt: skip


def board(rng: random.Random, folder: Path) -> Case:
    input_v = rng.choice((5.0, 12.0, 19.0, 24.0, 48.0))
    input_w = rng.uniform(3.0, 120.0)
    module_w = input_w * rng.uniform(0.4, 0.9)
    truth = Truth(input_w, input_w, module_w)
    sensors: list[tuple[str, float, float]] = []
    answering: set[str] = set()
    if rng.random() < 0.5:
        sensors.append((rng.choice(_INPUT_LABELS), input_v, input_w))
        # A line may be one of several.
        if sensors[0][0] not in ("", "MAIN", "12V_IN"):
            answering.add(sensors[0][0])
    if rng.random() < 0.3:
        sensors.append((rng.choice(_MODULE_LABELS), 5.0, module_w))
        answering.add(sensors[-1][0])
    for _ in range(rng.randint(0 if sensors else 1, 4)):
        volts = rng.choice((0.8, 1.0, 1.2, 1.8, 3.3, 3.3, 5.0, 12.0))
        sensors.append((rng.choice(_RAIL_LABELS), volts, module_w * rng.uniform(0.05, 0.4)))
    rng.shuffle(sensors)
    if rng.random() < 0.5:
        return _iio(rng, folder, truth, sensors, bool(answering))
    hwmon = FakeHwmon(folder / "sys/class/hwmon")
    for label, volts, power_w in sensors:
        chip = rng.choice(("ina226", "ina219", "ina260_u14", "ina3221", "ina238", "ltc4282"))
        files: dict[str, int | str] = {"in1_input": round(volts * 1e3)}
        if chip == "ina3221":
            files["curr1_input"] = round(power_w / volts * 1e3)
        else:
            files["power1_input"] = round(power_w * UW)
        if label:
            files[rng.choice(("in1_label", "label"))] = label
        hwmon.add_chip(chip, files)
        if chip == "ltc4282":  # not known to be in a supply line
            answering.discard(label)
    return _opened("hwmon", folder, truth, sensors, "only=", bool(answering))


def _iio(
    rng: random.Random,
    folder: Path,
    truth: Truth,
    sensors: Sequence[tuple[str, float, float]],
    answerable: bool,
) -> Case:
    for k, (label, volts, power_w) in enumerate(sensors):
        files: dict[str, int | str] = {
            "name": rng.choice(("ina226", "pac1934")), "in_power0_input": round(power_w * 1e3),
            "in_voltage0_input": round(volts * 1e3),
        }  # fmt: skip
        if label:
            files[rng.choice(("rail_name_0", "in_power0_label", "label"))] = label
        write_tree(folder / f"sys/bus/iio/devices/iio:device{k}", files)
    return _opened("iio", folder, truth, sensors, "only=", answerable)


def supplies(rng: random.Random, folder: Path) -> Case:
    """PMBus supplies, and a regulator of the board."""
    behind_w = rng.uniform(60.0, 2000.0)
    wall_w = behind_w / rng.uniform(0.8, 0.96)
    truth = Truth(behind_w, wall_w)
    hwmon = FakeHwmon(folder / "sys/class/hwmon")
    count = rng.randint(1, 4)
    parts = [rng.uniform(0.8, 1.2) for _ in range(count)]
    inputs = rng.random() < 0.7
    answerable = True
    for part in parts:
        share = part / sum(parts)
        files: dict[str, int | str] = {
            "in1_label": "vin",
            "in1_input": rng.choice((115, 230)) * 1000,
        }
        if inputs or rng.random() < 0.2:
            files |= {"power1_label": "pin", "power1_input": round(wall_w * share * UW)}
        files |= {"power2_label": "pout1", "power2_input": round(behind_w * share * UW)}
        if rng.random() < 0.05:
            files["in1_input"] = "none"
            answerable = False
        hwmon.add_chip(rng.choice(("pmbus", "dps920ab")) if count < 2 else "pmbus", files)
    if rng.random() < 0.5:
        hwmon.add_chip("tps53679", {
            "in1_label": "vin", "in1_input": 12_000, "power1_label": "pin",
            "power1_input": round(behind_w * 0.3 * UW),
        })  # fmt: skip
    return _opened("hwmon", folder, truth, (), "only=", answerable)


def _opened(
    spec: str, folder: Path, truth: Truth, shown: Any, option: str, answerable: bool
) -> Case:
    try:
        (meter,) = open_meters([spec], folder)
    except PowerError as error:
        values = "unreadable" not in str(error) and "cannot be read" not in str(error)
        return Case(truth, (), str(error), values, option, (shown, str(error)), answerable)
    totals: dict[str, list[tuple[float | None, Any]]] = {}
    for channel, value in zip(meter.channels, meter.read(), strict=True):
        if channel.in_domain_total:
            totals.setdefault(channel.domain, []).append((value, channel))
    answers = [
        Answer(
            domain, sum(cast(float, value) for value, _ in found),
            found[0][1].contents.leaves_out if domain == "system" else (),
            next((channel.doubt for _, channel in found if channel.doubt), None),
        )
        for domain, found in totals.items()
        if all(value is not None for value, _ in found)
    ]  # fmt: skip
    meter.close()
    return Case(truth, answers, "", False, option, (shown, answers), answerable)


# --- Redfish --------------------------------------------------------------------------------------

_V1 = "/redfish/v1"


class _Client:
    """A BMC's answers without a network."""

    host = "bmc"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers

    def get(self, path: str) -> Any:
        if path not in self._answers:
            raise PowerError(f"{path}: 404")
        return self._answers[path]


def redfish_machine(rng: random.Random) -> Case:
    behind_w = rng.uniform(100.0, 8000.0)
    wall_w = behind_w / rng.uniform(0.85, 0.96)
    truth = Truth(behind_w, wall_w, node_w=behind_w)
    answers: dict[str, Any] = {}
    chassis: dict[str, tuple[str, float | None]] = {
        "Main": ("RackMount", rng.choice((behind_w, wall_w, None))),
    }
    for k in range(rng.randint(0, 4)):
        kind = rng.choice(("Component", "Module", "Card"))
        chassis[f"Part_{k}"] = (kind, behind_w * rng.uniform(0.05, 0.5))
    if rng.random() < 0.3:
        chassis["Shelf"] = (rng.choice(("Rack", "Enclosure", "RackMount")), 3.0 * wall_w)
    members = list(chassis.items())
    rng.shuffle(members)
    for name, (kind, power_w) in members:
        place = f"{_V1}/Chassis/{name}"
        answers[place] = {"Id": name, "ChassisType": kind}
        _readings(rng, answers, place, power_w)
    if chassis["Main"][1] is None and rng.random() < 0.7:
        _modern(rng, answers, f"{_V1}/Chassis/Main", behind_w, wall_w)
    linked = rng.choice((["Main"], ["Main", "Part_0"], ["Part_0", "Part_1"], []))
    links = [{"@odata.id": f"{_V1}/Chassis/{name}"} for name in linked if name in chassis]
    systems = {"Sys": {"PowerState": "On", "Links": {"Chassis": links}}}
    for kind, names in (("Chassis", [n for n, _ in members]), ("Systems", list(systems))):
        answers[f"{_V1}/{kind}"] = {"Members": [{"@odata.id": f"{_V1}/{kind}/{n}"} for n in names]}
    answers |= {f"{_V1}/Systems/{name}": body for name, body in systems.items()}
    # Without a link of the system, a second chassis may contain the first.
    answerable = linked[:1] == ["Main"] and _has_value(answers, f"{_V1}/Chassis/Main")
    try:
        found = redfish._system_reading(cast(JsonClient, _Client(answers)), None)
    except PowerError as error:
        values = "several chassis" in str(error) or "parts only" in str(error)
        shown = answers, str(error)
        return Case(truth, (), str(error), values, "chassis=", shown, answerable)
    answer = Answer("system", found.power_w, found.contents.leaves_out, found.doubt)
    return Case(truth, (answer,), "", False, "chassis=", (answers, answer), answerable)


def _readings(rng: random.Random, answers: dict[str, Any], place: str, w: float | None) -> None:
    w = rng.choice((32767.0, 65535.0)) if w is not None and rng.random() < 0.05 else w
    if rng.random() < 0.5:
        answers[f"{place}/EnvironmentMetrics"] = {"PowerWatts": {"Reading": w}}
    else:
        answers[f"{place}/Power"] = {"PowerControl": [{"PowerConsumedWatts": w}]}


def _has_value(answers: Mapping[str, Any], place: str) -> bool:
    """Whether the chassis itself has a power that can be."""
    metrics = answers.get(f"{place}/EnvironmentMetrics", {})
    control = answers.get(f"{place}/Power", {}).get("PowerControl", [{}])
    values = metrics.get("PowerWatts", {}).get("Reading"), control[0].get("PowerConsumedWatts")
    return any(value not in (None, 32767.0, 65535.0) for value in values)


def _modern(
    rng: random.Random, answers: dict[str, Any], place: str, behind_w: float, wall_w: float
) -> None:
    count = rng.randint(2, 4)
    if rng.random() < 0.5:
        total_w = sum(powers := [rng.uniform(0.8, 1.2) for _ in range(count)])
        supplies = f"{place}/PowerSubsystem/PowerSupplies"
        answers[f"{place}/PowerSubsystem"] = {"PowerSupplies": {"@odata.id": supplies}}
        answers[supplies] = {"Members": [{"@odata.id": f"{supplies}/{k}"} for k in range(count)]}
        for k, power in enumerate(powers):
            answers[f"{supplies}/{k}"] = {"Status": {"State": "Enabled"}}
            reading: dict[str, Any] = {}
            if rng.random() < 0.9:
                reading["InputPowerWatts"] = {"Reading": wall_w * power / total_w}
            if rng.random() < 0.5:
                reading["OutputPowerWatts"] = {"Reading": behind_w * power / total_w}
            answers[f"{supplies}/{k}/Metrics"] = reading
        return
    values = {"PWR_SYSTEM": behind_w, "PWR_GPU_1": behind_w * 0.3, "PWR_PSU0": wall_w / 2}
    if rng.random() < 0.3:
        del values["PWR_SYSTEM"]
    answers[f"{place}/Sensors"] = {
        "Members": [{"@odata.id": f"{place}/Sensors/{n}"} for n in values]
    }
    for name, value in values.items():
        answers[f"{place}/Sensors/{name}"] = {
            "Reading": value if rng.random() < 0.95 else None, "ReadingUnits": "W",
        }  # fmt: skip


# --- the property ---------------------------------------------------------------------------------


def made(seed: int) -> Case:
    rng = random.Random(seed)
    kind = rng.choice(("controller", "controller", "board", "board", "supplies", "redfish"))
    if kind == "controller":
        return controller(rng)
    if kind == "redfish":
        return redfish_machine(rng)
    with tempfile.TemporaryDirectory(prefix="eeio-made-") as folder:
        make = board if kind == "board" else supplies
        return make(rng, Path(folder))


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_no_machine_has_wrong_watts_without_a_word(seed: int) -> None:
    case = made(seed)
    assert case.verdict() in ("right", "doubtful", "rejected"), (case.verdict(), case)


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    answerable = Counter[bool]()
    for number in range(int(sys.argv[1])):
        one = made(number)
        counts[one.verdict()] += 1
        if one.answerable:
            answerable[bool(one.answers)] += 1
        if one.verdict().startswith(("wrong", "rejected w")) and counts[one.verdict()] <= 12:
            print(number, one.verdict(), one.truth, one.shown, one.reason[:300])
    print(dict(counts))
    print(f"answered of those that can be answered: {answerable[True]} of {answerable.total()}")
