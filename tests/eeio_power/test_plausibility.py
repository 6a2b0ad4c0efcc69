"""Meters held against each other: contradictions are all told, agreement is never doubted."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulators.scripted import ScriptedMeter

from eeio_power import sampler as sampler_module
from eeio_power.false_readings import in_step, judged
from eeio_power.meters import Channel
from eeio_power.meters.modelled import CpuTicks
from eeio_power.profile_rules import breakdown
from eeio_power.reading import (
    BEHIND_SUPPLY,
    MACHINE,
    MODULE,
    WALL,
    Contents,
    Domain,
    EnergyReading,
    all_but,
    only,
)  # fmt: skip
from eeio_power.sampler import LoadWatch, Sampler
from eeio_power.samples import MeterInfo, MeterSamples, Samples

WINDOW_S = 60.0
PERIOD_S = 0.1


def reading(
    meter: str,
    domain: Domain,
    power_w: float,
    limit: float = 0.02,
    contents: Contents | None = None,
) -> EnergyReading:
    """A mean over a minute, with an uncertainty as a share of it."""
    reported = contents or Contents()
    return EnergyReading(
        domain=domain, meter=meter, kind="measured", power_w=power_w,
        energy_j=power_w * WINDOW_S, uncertainty_j=limit * power_w * WINDOW_S, coverage=1.0,
        largest_gap_s=PERIOD_S, samples=600, lost=0, valid=True, reasons=(),
        includes=reported.includes, leaves_out=reported.leaves_out,
    )  # fmt: skip


def machine(rng: random.Random) -> list[EnergyReading]:
    """Meters of one machine that agree: each says the truth within its own uncertainty."""
    package_w, dram_w, device_w = rng.uniform(20, 200), rng.uniform(2, 40), rng.uniform(1, 25)
    inner_w = package_w + dram_w + device_w
    behind_w = inner_w * rng.uniform(1.05, 1.8)
    wall_w = behind_w / rng.uniform(0.75, 0.95)
    truths: list[tuple[str, Domain, float, Contents | None]] = [
        ("plug", "system", wall_w, WALL), ("bmc", "system", behind_w, MACHINE),
        ("board", "system", behind_w, BEHIND_SUPPLY),
        ("som", "module", (package_w + dram_w) * 1.02, MODULE),
        ("rapl", "package", package_w, only("processor")), ("perf", "package", package_w, None),
        ("rapl", "dram", dram_w, only("memory")), ("nvme0", "device", device_w, only("drives")),
    ]  # fmt: skip
    chosen = rng.sample(truths, rng.randint(2, len(truths)))
    found = []
    for meter, domain, truth_w, contents in chosen:
        limit = rng.uniform(0.005, 0.1)
        # The limit of a reading is a share of what it says.
        reported_w = truth_w * (1.0 + rng.uniform(-1.0, 1.0) * limit / (1.0 + limit))
        found.append(reading(meter, domain, reported_w, limit, contents))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_meters_that_agree_within_their_limits_are_not_doubted(seed: int) -> None:
    readings = machine(random.Random(seed))
    assert judged(readings) == readings


Pair = tuple[Domain, Contents | None, Domain, Contents | None]
# (what should be the smaller, what should be the larger or the same)
CONTRADICTIONS: list[Pair] = [
    ("package", only("processor"), "system", WALL), ("package", None, "module", MODULE),
    ("dram", None, "system", None), ("device", only("drives"), "system", BEHIND_SUPPLY),
    ("module", MODULE, "system", MACHINE), ("system", BEHIND_SUPPLY, "system", WALL),
    ("system", WALL, "system", WALL), ("package", None, "package", None),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_meters_that_contradict_each_other_are_all_reported(seed: int) -> None:
    rng = random.Random(1000 + seed)
    part, part_contains, complete, complete_contains = rng.choice(CONTRADICTIONS)
    limits = rng.uniform(0.005, 0.1), rng.uniform(0.005, 0.1)
    complete_w = rng.uniform(5.0, 800.0)
    # Beyond both limits, by a little or by much.
    part_w = complete_w * (1 + limits[1]) / (1 - limits[0]) * rng.uniform(1.001, 3.0)
    pair = [
        reading("first", part, part_w, limits[0], part_contains),
        reading("second", complete, complete_w, limits[1], complete_contains),
    ]
    bystander = replace(reading("model", "system", 1.0), kind="modelled")
    invalid = replace(
        reading("dead", "system", 1.0), valid=False, power_w=None, energy_j=None, uncertainty_j=None
    )
    rng.shuffle(pair)
    *found, model, dead = judged([*pair, bystander, invalid])
    for item in found:
        assert item.doubtful and item.valid, "a doubt, and the number stays"
        (reason,) = item.reasons
        assert "(first)" in reason and "(second)" in reason
    assert (model, dead) == (bystander, invalid), "these contradict nobody"


def test_a_plug_may_say_more_than_a_bmc_but_not_twice_as_much() -> None:
    bmc = reading("bmc", "system", 100.0, contents=MACHINE)
    for plug_w, doubtful in ((130.0, False), (145.0, False), (160.0, True), (90.0, True)):
        plug = reading("plug", "system", plug_w, contents=WALL)
        assert [r.doubtful for r in judged([plug, bmc])] == [doubtful] * 2, plug_w


def test_two_controllers_may_measure_before_and_behind_the_supply() -> None:
    ipmi = reading("ipmi", "system", 490.0, contents=MACHINE)
    for other_w, doubtful in ((611.0, False), (800.0, True)):
        other = reading("redfish", "system", other_w, contents=MACHINE)
        assert [r.doubtful for r in judged([ipmi, other])] == [doubtful] * 2, other_w


def test_a_board_input_without_a_list_may_include_the_fans_that_a_node_lacks() -> None:
    node = reading("ipmi", "system", 1712.0, contents=all_but("fans", "supply"))
    board = reading("iio", "system", 1956.0, contents=Contents(leaves_out=("supply",)))
    assert not any(r.doubtful for r in judged([node, board]))


def test_supplies_of_little_load_may_lose_half() -> None:
    board = reading("board", "system", 10.0, contents=BEHIND_SUPPLY)
    for plug_w, doubtful in ((18.0, False), (25.0, True)):
        plug = reading("plug", "system", plug_w, contents=WALL)
        assert [r.doubtful for r in judged([plug, board])] == [doubtful] * 2, plug_w


@pytest.mark.parametrize("behind", [MACHINE, BEHIND_SUPPLY, Contents(leaves_out=("supply",))])
def test_one_supply_of_two_is_contradicted_by_a_plug(behind: Contents) -> None:
    """150 W of one supply, or of a rail that was taken for the system, and 310 W at the plug."""
    plug = reading("plug", "system", 310.0, contents=WALL)
    one = reading("board", "system", 150.0, limit=0.05, contents=behind)
    assert all(r.doubtful for r in judged([plug, one]))
    both = reading("board", "system", 270.0, limit=0.05, contents=behind)
    assert not any(r.doubtful for r in judged([plug, both]))


def test_a_system_far_above_its_packages_is_doubtful() -> None:
    package = reading("rapl", "package", 60.0, contents=only("processor"))
    for system_w, doubtful in ((1200.0, False), (32767.0, True), (2500.0, True)):
        system = reading("ipmi", "system", system_w, contents=MACHINE)
        assert [r.doubtful for r in judged([system, package])] == [doubtful] * 2, system_w
    idle = reading("rapl", "package", 1.5)
    assert not any(r.doubtful for r in judged([idle, reading("plug", "system", 60.0)]))


def test_packages_and_dies_with_nearly_equal_power_are_two_counters() -> None:
    """Packages within 0.04 %, dies within 0.6 %: their increments are not equal over time."""
    rng = random.Random(7)
    channel = Channel("rapl:a", "package", "energy_j", resolution=61e-6)
    for share in (0.0004, 0.006):
        one, other, columns = 0.0, 0.0, ([0.0], [0.0])
        for _ in range(200):
            step_j = rng.uniform(0.9, 1.1)
            one, other = one + step_j, other + step_j * (1.0 + share + rng.gauss(0.0, share))
            columns[0].append(one)
            columns[1].append(other)
        assert in_step(channel, channel, columns) is False, share
        assert in_step(channel, channel, (columns[0], columns[0])) is True


def test_parts_that_draw_more_together_than_the_total_are_all_reported() -> None:
    readings = [
        reading("plug", "system", 100.0), reading("rapl", "package", 70.0),
        reading("perf", "package", 71.0), reading("rapl", "dram", 25.0),
        reading("nvme0", "device", 20.0),
    ]  # fmt: skip
    found = {f"{r.meter} {r.domain}": r for r in judged(readings)}
    assert [name for name, r in found.items() if r.doubtful] == [
        "plug system", "rapl package", "rapl dram", "nvme0 device",
    ], "the package is counted once"  # fmt: skip
    (reason,) = found["plug system"].reasons
    for name in ("package (rapl) 70.0 W", "dram (rapl) 25.0 W", "device (nvme0)", "system (plug)"):
        assert name in reason
    module = reading("som", "module", 80.0)
    with_module = judged([readings[0], module, reading("rapl", "package", 70.0)])
    assert not any(r.doubtful for r in with_module), "the package is in the module"


def test_where_the_power_goes_reports_that_its_meter_is_doubtful() -> None:
    readings = judged([reading("plug", "system", 100.0), reading("rapl", "package", 130.0)])
    shares = {share.part: share for share in breakdown(readings, WINDOW_S)}
    for part in ("system", "package"):
        assert "doubtful: package (rapl) 130.0 W is in system (plug)" in (shares[part].reason or "")


# --- inside one meter --------------------------------------------------------------------------


def samples(channels: dict[Channel, float], steps: int = 100) -> Samples:
    """Each channel at a constant power, W."""
    times_s = [k * PERIOD_S for k in range(steps + 1)]
    columns = tuple(
        [power_w * (t if c.quantity == "energy_j" else 1.0) for t in times_s]
        for c, power_w in channels.items()
    )
    info = MeterInfo("hwmon", "hwmon", "measured", PERIOD_S, PERIOD_S, tuple(channels))
    return Samples((MeterSamples(info, times_s, columns),))


def channel(name: str, domain: Domain, total: bool, contents: Contents = MACHINE) -> Channel:
    return Channel(
        name, domain, "power_w", accuracy_relative=0.02, in_domain_total=total, contents=contents
    )


def test_a_rail_that_draws_more_than_the_input_makes_it_doubtful() -> None:
    total = channel("hwmon:ina3221/power1", "module", True, MODULE)
    rail = channel("hwmon:ina3221/power2", "package", False, only("processor"))
    (found,) = samples({total: 6.0, rail: 5.9}).energy(1.0, 9.0)
    assert not found.doubtful
    (found,) = samples({total: 6.0, rail: 7.0}).energy(1.0, 9.0)
    assert found.doubtful and found.valid
    assert "hwmon:ina3221/power2 7.0 W is in module (hwmon) 6.0 W" in found.reasons[0]


def test_supplies_that_give_more_than_they_take_are_doubtful() -> None:
    sensors = {channel(f"hwmon:psu{k}/pin", "system", True, WALL): 100.0 for k in range(2)} | {
        channel(f"hwmon:psu{k}/pout", "system", False, BEHIND_SUPPLY): 92.0 for k in range(2)
    }
    (found,) = samples(sensors).energy(1.0, 9.0)
    assert (found.power_w, found.doubtful) == (pytest.approx(200.0), False)
    more = {c: 110.0 if c.name.endswith("pout") else w for c, w in sensors.items()}
    (found,) = samples(more).energy(1.0, 9.0)
    assert found.doubtful
    assert "hwmon:psu0/pout + hwmon:psu1/pout 220.0 W" in found.reasons[0]


def test_packages_that_move_in_step_are_reported_and_others_are_not() -> None:
    counters = [
        Channel(f"rapl:package-{k}", "package", "energy_j", resolution=2.0**-14) for k in range(2)
    ]
    (found,) = samples(dict(zip(counters, (80.0, 80.0), strict=True))).energy(0.0, 10.0)
    assert found.valid and found.doubtful, "nobody knows: two packages may run alike"
    assert "rapl:package-0 and rapl:package-1 change in step" in found.reasons[0]
    (found,) = samples(dict(zip(counters, (80.0, 80.4), strict=True))).energy(0.0, 10.0)
    assert not found.doubtful and found.reasons == ()


def plug(power_w: float, counted_w: float, step_s: float) -> Samples:
    """A plug read once a second for 5 minutes, with a counter of 0.001 Wh beside its power that
    moves every `step_s` seconds."""
    power = Channel("plug:system", "system", "power_w", accuracy_relative=0.02, contents=WALL)
    counter = Channel(
        "plug:counter", "system", "energy_j", accuracy_relative=0.02, resolution=3.6,
        in_domain_total=False, contents=WALL,
    )  # fmt: skip
    times_s = tuple(map(float, range(300)))
    energies_j = []
    for time_s in times_s:
        stepped_s = time_s // step_s * step_s
        energies_j.append(counted_w * stepped_s // 3.6 * 3.6)
    info = MeterInfo("plug", "plug", "measured", 1.0, 1.0, (power, counter))
    return Samples((MeterSamples(info, times_s, ((power_w,) * 300, energies_j)),))


@pytest.mark.parametrize(
    ("counted_w", "step_s", "seconds", "doubtful"),
    [
        (50.0, 1.0, 30.0, False),
        (51.0, 1.0, 200.0, False),
        (50.0, 60.0, 280.0, False),
        (100.0, 1.0, 30.0, True),
        (25.0, 1.0, 30.0, True),
        (100.0, 20.0, 280.0, True),
        (100.0, 60.0, 30.0, False),  # one step shows nothing
    ],
)
def test_a_power_that_its_own_counter_contradicts_is_doubtful(
    counted_w: float, step_s: float, seconds: float, doubtful: bool
) -> None:
    """It was frozen at 50 W, and the plug counted 100 W."""
    (found,) = plug(50.0, counted_w, step_s).energy(10.0, 10.0 + seconds)
    assert found.valid and found.doubtful == doubtful
    if doubtful:
        assert "plug:counter shows" in found.reasons[0]
        assert "and the power is 50.0 W" in found.reasons[0]


# --- against the load --------------------------------------------------------------------------


class Processors:
    """Ticks that a test moves on: 100 CPU seconds a second of time."""

    def __init__(self) -> None:
        self.ticks = CpuTicks(0, 0, 100)

    def run(self, seconds: float, load: float) -> None:
        total = round(seconds * 1e4)
        self.ticks = CpuTicks(
            self.ticks.busy + round(total * load), self.ticks.total + total, self.ticks.cpus
        )

    def __call__(self) -> CpuTicks:
        return self.ticks


@pytest.mark.parametrize(
    ("busy_w", "busy_load", "doubtful"),
    [(50.0, 0.9, True), (50.4, 0.9, True), (58.0, 0.9, False), (50.0, 0.3, False)],
)
def test_a_package_that_draws_the_same_idle_and_busy_is_reported(
    busy_w: float, busy_load: float, doubtful: bool
) -> None:
    processors = Processors()
    watch = LoadWatch(["rapl"], processors)
    watch.note(0.0)
    processors.run(10.0, 0.02)
    watch.note(10.0)
    (idle,) = watch.judged([reading("rapl", "package", 50.0)], 0.0, 10.0)
    assert not idle.doubtful
    processors.run(10.0, busy_load)
    watch.note(20.0)
    assert watch.load(10.0, 20.0) == pytest.approx(busy_load)
    (busy,) = watch.judged([reading("rapl", "package", busy_w)], 10.0, 20.0)
    assert busy.doubtful is doubtful
    if doubtful:
        assert "with 90% of the processors busy, and 50.0 W with 2%" in busy.reasons[0]
    plug = reading("plug", "system", 50.0)
    assert watch.judged([plug], 10.0, 20.0) == [plug], "a system has more than processors"


def test_a_load_that_nobody_noted_judges_nothing() -> None:
    processors = Processors()
    watch = LoadWatch(["rapl"], processors)
    package = reading("rapl", "package", 50.0)
    assert watch.judged([package], 0.0, 10.0) == [package]
    watch.note(0.0)
    processors.run(2.0, 0.5)
    watch.note(2.0)
    assert watch.load(0.0, 10.0) is None, "two of ten seconds"
    assert watch.load(0.5, 1.0) is None

    def broken() -> CpuTicks:
        raise OSError("no /proc")

    other = LoadWatch(["rapl"], broken)
    other.note(0.0)
    assert other.load(0.0, 10.0) is None


def test_this_machines_ticks_only_grow() -> None:
    before, after = sampler_module.cpu_ticks(), sampler_module.cpu_ticks()
    assert 0 < before.total <= after.total
    assert 0 <= before.busy <= before.total


def test_the_sampler_watches_this_machines_packages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def ticks() -> CpuTicks:
        calls.append(1)
        return CpuTicks(0, len(calls), 1)

    monkeypatch.setattr(sampler_module, "cpu_ticks", ticks)
    specs = (("rapl", True), ("rapl,root=/x", False), ("csv:log", False))
    for number, (spec, watched) in enumerate(specs):
        meter = ScriptedMeter([Channel("a", "package", "power_w")], lambda: [5.0], spec=spec)
        calls.clear()
        with Sampler([meter], tmp_path / f"{number}.gz", rate_hz=100.0) as sampler:
            now_s = sampler.samples().meters[0].times_s[0]
            (found,) = sampler.energy(now_s - 0.01, now_s)
        assert math.isclose(found.power_w or 0.0, 5.0)
        assert bool(calls) is watched, spec


@pytest.mark.parametrize(
    ("spec", "watts", "busy_load", "doubtful"),
    [
        ("ipmi,lag_s=0,averages_s=0", lambda k: 120.0, 0.9, True),
        ("ipmi,lag_s=0,averages_s=0", lambda k: 120.0, 0.3, False),
        ("ipmi,lag_s=0,averages_s=0", lambda k: 120.0 + k // 20, 0.9, False),
        ("ipmi:lanplus,host=bmc,lag_s=0,averages_s=0", lambda k: 120.0, 0.9, False),
    ],
)
def test_a_reading_that_stays_the_same_is_compared_with_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str,
    watts: Callable[[int], float], busy_load: float, doubtful: bool,
) -> None:  # fmt: skip
    processors, now_s = Processors(), [100.0]
    monkeypatch.setattr(sampler_module, "cpu_ticks", processors)
    bmc = Channel("bmc", "system", "power_w", accuracy_relative=0.05, resolution=1.0)
    meter = ScriptedMeter(
        [bmc], lambda: [watts(int(now_s[0]) - 100)], spec=spec, native_period_s=1.0
    )
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=lambda: now_s[0]) as sampler:
        for k in range(40):
            now_s[0] += 1.0
            processors.run(1.0, 0.02 if k < 20 else busy_load)
            sampler.energy(now_s[0] - 1.0, now_s[0])
        (found,) = sampler.energy(120.0, 140.0)
        now_s[0] += 1.0
    assert found.valid and found.doubtful is doubtful
    if doubtful:
        assert "the same 120 W for 40 s, while 2% to 90% of the processors" in "; ".join(
            found.reasons
        )
