"""Combinations of meters on the known machines: those that agree are never doubted, those that
contradict each other are.

The meters of a machine give what its table says; other meters are added, each within its own limits
of the truth. In half of the combinations one reading is false. Whether the readings contradict each
other is decided here by the parts that each one includes.

`python -m tests.machines.test_combinations 2000` counts the results of many combinations.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest

from eeio_power.false_readings import judged
from eeio_power.meters import close_meters
from eeio_power.reading import (
    BEHIND_SUPPLY,
    CONTENTS,
    MACHINE,
    MODULE,
    SEVERAL,
    WALL,
    Contents,
    Domain,
    EnergyReading,
    all_but,
    only,
)
from tests.machines import machines
from tests.machines.living import RECORD_S, alive, record, wanted_meters

COUNT = 200
# Meter, domain, contents, nominal limit.
ADDED: Sequence[tuple[str, Domain, Contents, float]] = (
    ("shelly", "system", WALL, 0.01), ("snmp", "system", WALL, 0.02),
    ("scpi", "system", WALL, 0.002), ("nut", "system", WALL, 0.05),
    ("redfish", "system", MACHINE, 0.05),
    ("ipmi", "system", MACHINE, 0.05), ("hwmon", "system", BEHIND_SUPPLY, 0.05),
    ("iio", "system", Contents(leaves_out=("supply",)), 0.02),
    ("blade", "system", all_but("fans", "supply"), 0.05), ("module", "module", MODULE, 0.02),
    ("rapl", "package", only("processor"), 0.05), ("perf", "package", only("processor"), 0.05),
    ("rapl", "dram", only("memory"), 0.2), ("quarch", "device", only("drives"), 0.05),
    ("powersensor3", "device", only("drives"), 0.02),
    ("joulescope", "device", only("drives"), 0.01),
    ("nvml", "accelerator", only("gpu"), 0.1),
)  # fmt: skip
# One of two supplies, two machines, a chassis of four, milliwatts, kilowatts, a rail, other gains.
FALSE_FACTORS = (0.5, 2.0, 4.0, 1000.0, 0.001, 0.1, 1.4, 0.7, 1.15)


@dataclass(frozen=True)
class Combination:
    machine: str
    readings: Sequence[EnergyReading]
    false: EnergyReading | None


def known_readings(scratch: Path) -> dict[str, list[EnergyReading]]:
    """What the meters of each machine give, without doubt."""
    found: dict[str, list[EnergyReading]] = {}
    for name in machines.names():
        machine = machines.load(name)
        if not machine.expected.watts:
            continue
        with alive(machine, scratch / name) as living:
            meters = wanted_meters(living)
            try:
                readings = record(meters, living.life)
            finally:
                close_meters(meters)
        usable = [r for r in readings if r.valid and not r.doubtful and r.power_w]
        if usable:
            found[name] = usable
    return found


def truth(rng: random.Random, known: Sequence[EnergyReading]) -> dict[str, float] | None:
    """Watts of each part of the machine, so that its readings are true; None if they cannot be."""
    reported = {r.domain: r.power_w or 0.0 for r in known}
    system = next((r for r in known if r.domain == "system"), None)
    parts = {"processor": reported.get("package", 0.0), "memory": reported.get("dram", 0.0)}
    parts["gpu"] = reported.get("accelerator", 0.0)
    if "module" in reported:
        parts |= {"processor": 0.7 * reported["module"], "memory": 0.3 * reported["module"]}
    total_w = rng.uniform(1.2, 2.0) * sum(parts.values()) if system is None else reported["system"]
    if system is not None and not sum(parts.values()):
        parts = {"processor": 0.4 * total_w, "memory": 0.1 * total_w, "gpu": 0.0}
    parts["processor"] = parts["processor"] or 0.2 * total_w
    parts["memory"] = parts["memory"] or 0.1 * parts["processor"]
    of_rest = ["board", "drives", "network", "fans"]
    if system is not None and "fans" in system.leaves_out:
        of_rest.remove("fans")  # its chassis has them
    loss_share = rng.uniform(0.05, 0.2)
    with_loss = system is not None and "supply" in system.includes
    behind_w = total_w * (1.0 - loss_share) if with_loss else total_w
    rest_w = behind_w - sum(parts.values())
    if rest_w <= 0.02 * total_w:
        return None
    shares = [rng.uniform(0.2, 1.0) for _ in of_rest]
    parts |= {part: rest_w * s / sum(shares) for part, s in zip(of_rest, shares, strict=True)}
    parts.setdefault("fans", 0.05 * behind_w)
    parts["supply"] = sum(parts.values()) * loss_share / (1.0 - loss_share)
    return parts


def combination(rng: random.Random, known: dict[str, list[EnergyReading]]) -> Combination:
    while True:
        machine = rng.choice(sorted(known))
        parts = truth(rng, known[machine])
        if parts is not None:
            break
    readings = list(known[machine])
    taken = {(r.meter, r.domain) for r in readings}
    for meter, domain, contents, limit in rng.sample(list(ADDED), rng.randint(2, 6)):
        if (meter, domain) in taken or (domain == "accelerator" and not parts["gpu"]):
            continue
        inside = set(contents.includes or CONTENTS) - set(contents.leaves_out)
        if contents == MACHINE and rng.random() < 0.5:
            inside |= {"supply"}
        true_w = sum(parts[part] for part in sorted(inside))
        limit *= rng.uniform(1.0, 2.0)
        power_w = true_w * (1.0 + rng.uniform(-1.0, 1.0) * limit / (1.0 + limit))
        readings.append(_reading(meter, domain, contents, power_w, limit))
    false = None
    if rng.random() < 0.5:
        place = rng.randrange(len(readings))
        factor = rng.choice(FALSE_FACTORS)
        before = readings[place]
        false = replace(
            before, power_w=(before.power_w or 0.0) * factor,
            energy_j=(before.energy_j or 0.0) * factor,
            uncertainty_j=(before.uncertainty_j or 0.0) * factor,
        )  # fmt: skip
        readings[place] = false
    rng.shuffle(readings)
    return Combination(machine, readings, false)


def _reading(
    meter: str, domain: Domain, contents: Contents, power_w: float, limit: float
) -> EnergyReading:
    return EnergyReading(
        domain=domain, meter=meter, kind="measured", power_w=power_w, energy_j=power_w * RECORD_S,
        uncertainty_j=limit * power_w * RECORD_S, coverage=1.0, largest_gap_s=0.1, samples=600,
        lost=0, valid=True, reasons=(), includes=contents.includes, leaves_out=contents.leaves_out,
    )  # fmt: skip


def contradict(readings: Sequence[EnergyReading]) -> bool:
    """Whether some reading is above one of all its parts and more, by more than both limits; or
    the disjoint readings in it are together."""
    for complete in readings:
        inside = [r for r in readings if r is not complete and _most(r) <= _least(complete)]
        if complete.domain in SEVERAL:
            continue  # a meter each for two drives, or two makers of GPUs
        if any(_above([r], complete) for r in inside):
            return True
        # The parts one by one; a machine may have several drives and accelerators.
        parts = [r for r in inside if len(_most(r)) == 1]
        for count in (2, 3, 4):
            for some in combinations(parts, count):
                if len(set().union(*map(_most, some))) == count and _above(some, complete):
                    return True
    return any(
        _watts(one) < least * _watts(other) - _limit(one) - _limit(other)
        for one in readings
        for other in readings
        if _least(one) | {"supply"} == _most(other) | {"supply"} == set(CONTENTS)
        for least in (0.5 if _watts(other) < 100.0 else 0.7,)
    )


def _most(reading: EnergyReading) -> set[str]:
    """All parts that it may include."""
    return set(CONTENTS) - set(reading.leaves_out)


def _least(reading: EnergyReading) -> set[str]:
    return set(reading.includes) or _most(reading)


def _watts(reading: EnergyReading) -> float:
    return reading.power_w or 0.0


def _limit(reading: EnergyReading) -> float:
    return (reading.uncertainty_j or 0.0) * _watts(reading) / (reading.energy_j or 1.0)


def _above(parts: Sequence[EnergyReading], complete: EnergyReading) -> bool:
    limits_w = sum(map(_limit, parts)) + _limit(complete)
    return sum(map(_watts, parts)) - _watts(complete) > limits_w


def results(seed: int, count: int, known: dict[str, list[EnergyReading]]) -> Counter[str]:
    """How many combinations were told right, by kind."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    for _ in range(count):
        made = combination(rng, known)
        flagged = any(r.doubtful for r in judged(made.readings))
        if made.false is None:
            assert not contradict(made.readings), made
            kind = "true"
        else:
            kind = "contradicting" if contradict(made.readings) else "false within the limits"
        found[f"{kind}, {'flagged' if flagged else 'not flagged'}"] += 1
        if flagged != (kind == "contradicting") and kind != "false within the limits":
            found["wrong"] += 1
            if found["wrong"] <= 5:
                reported = [
                    (r.meter, r.domain, r.power_w, r.reasons) for r in judged(made.readings)
                ]
                print(kind, made.machine, *reported, sep="\n  ")
    return found


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[EnergyReading]]]:
    yield known_readings(tmp_path_factory.mktemp("machines"))


def test_200_combinations_have_no_false_alarm(known: dict[str, list[EnergyReading]]) -> None:
    found = results(1, COUNT, known)
    assert found["true, flagged"] == 0, found
    reported, silent = found["contradicting, flagged"], found["contradicting, not flagged"]
    assert reported >= 0.95 * (reported + silent) and reported >= 40, found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(dict(results(1, int(sys.argv[1]), known_readings(Path(folder)))))
