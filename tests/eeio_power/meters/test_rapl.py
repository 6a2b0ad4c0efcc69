"""RAPL against the simulated powercap folder."""

import math
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.simulators import FakeRapl, FakeZone
from tests.simulators.tree import write_tree

from eeio_power.errors import PowerError
from eeio_power.meters import discover, open_meters
from eeio_power.meters import rapl as rapl_module
from eeio_power.reading import EnergyReading
from eeio_power.samples import MeterSamples, meter_info


def pulses_w(time_s: float) -> float:
    return 120.0 if time_s % 4.0 < 2.0 else 300.0


def sample(rapl: FakeRapl, steps: int, period_s: float = 0.1, spec: str = "rapl") -> MeterSamples:
    """Step the simulator and read the meter after each step, without a clock."""
    meter = one_meter(f"{spec},root={rapl.root}")
    rows = []
    for _ in range(steps):
        rows.append((rapl.now_s, [math.nan if v is None else v for v in meter.read()]))
        rapl.step(period_s)
    columns = zip(*(values for _, values in rows), strict=True)
    return MeterSamples(
        meter_info(meter, 1 / period_s), [t for t, _ in rows], tuple(map(list, columns))
    )


def by_domain(readings: list[EnergyReading]) -> dict[str, EnergyReading]:
    return {reading.domain: reading for reading in readings}


def test_packages_and_dram_add_up_and_nothing_else_does(tmp_path: Path) -> None:
    rapl = FakeRapl(tmp_path, power_w=pulses_w)
    samples = sample(rapl, 101)
    assert [c.name for c in samples.info.channels] == [
        "rapl:package-0",
        "rapl:package-0/dram",
        "rapl:package-1",
        "rapl:package-1/dram",
    ]
    found = by_domain(samples.energy(1.0, 9.0))
    assert set(found) == {"package", "dram"}, "RAPL never speaks of the system"
    truth_j = 8.0 * 210.0
    assert found["package"].energy_j == pytest.approx(0.8 * truth_j, abs=1e-3)
    assert found["dram"].energy_j == pytest.approx(0.2 * truth_j, abs=1e-3)
    # What the trap would have cost: all zones of the folder added up.
    naive = sum(zone.share for zone in rapl.zones) * truth_j
    assert naive > 2.5 * truth_j


def test_pulses_are_measured_inside_the_stated_uncertainty(tmp_path: Path) -> None:
    zone = FakeZone("intel-rapl:0", "package-0", 1.0)
    rapl = FakeRapl(tmp_path, [zone], pulses_w)
    samples = sample(rapl, 400)
    for start_s, end_s in [(0.55, 30.03), (1.97, 12.01), (3.14, 6.28)]:
        (reading,) = samples.energy(start_s, end_s)
        truth_j = sum(
            pulses_w(start_s + k * 1e-3) * 1e-3 for k in range(int((end_s - start_s) * 1e3))
        )
        assert reading.valid
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        assert abs(reading.energy_j - truth_j) <= reading.uncertainty_j
        assert reading.power_w == pytest.approx(reading.energy_j / (end_s - start_s))


def test_the_counter_wraps(tmp_path: Path) -> None:
    zone = FakeZone("intel-rapl:0", "package-0", 1.0, range_uj=300_000_000, start_uj=299_000_000)
    rapl = FakeRapl(tmp_path, [zone], lambda _: 100.0)
    samples = sample(rapl, 50, spec="rapl,max_w=200")
    counted = [v for _, v in samples.series("rapl:package-0")]
    assert min(v for v in counted if v is not None) < 10.0, "it must have wrapped"
    (reading,) = samples.energy(0.05, 4.05)
    assert reading.energy_j == pytest.approx(400.0)


def test_the_highest_power_decides_which_gap_is_too_long(tmp_path: Path) -> None:
    zone = FakeZone("intel-rapl:0", "package-0", 1.0, range_uj=300_000_000)
    rapl = FakeRapl(tmp_path, [zone], lambda _: 100.0)
    meter = one_meter(f"rapl,root={tmp_path},max_w=200")
    times_s, values = [], []
    for duration_s in (1.0, 1.0, 3.9, 1.0, 1.0):
        times_s.append(rapl.now_s)
        values.append(meter.read()[0] or math.nan)
        rapl.step(duration_s)
    values[0] = 0.0
    info = meter_info(meter, 1.0)
    (reading,) = MeterSamples(info, times_s, (values,)).energy(0.5, 6.5)
    assert not reading.valid
    assert "wrapped unseen after 1.5 s" in reading.reasons[0]


def test_a_failed_read_is_a_missing_sample(tmp_path: Path) -> None:
    rapl = FakeRapl(tmp_path, power_w=lambda _: 200.0)
    meter = one_meter(f"rapl,root={tmp_path}")
    rapl.step(1.0)
    rapl.fail("intel-rapl:1")
    values = meter.read()
    assert values[2] is None
    assert values[0] == pytest.approx(80.0, abs=1e-5)
    rapl.recover("intel-rapl:1")
    assert meter.read()[2] == pytest.approx(80.0, abs=1e-5)
    for zone in rapl.zones:
        rapl.fail(zone.folder)
    with pytest.raises(ValueError):
        meter.read()


def test_root_only_counters_come_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeRapl(tmp_path / "sys/class/powercap")

    def reject(path: Path) -> int:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return int(path.read_text())

    monkeypatch.setattr(rapl_module, "read_int", reject)
    with pytest.raises(PowerError, match=r"energy_uj.*CVE-2020-8694.*run as root.*chmod g\+r"):
        open_meters(["rapl,reader=no"], tmp_path)
    monkeypatch.setattr(rapl_module, "find_reader", lambda _: None)
    (finding,) = [f for f in discover(tmp_path) if f.spec == "rapl"]
    assert not finding.available
    assert "CVE-2020-8694" in (finding.reason or "")
    assert "run as root" in (finding.remedy or "")


def test_no_rapl(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match="no RAPL package"):
        open_meters([f"rapl,root={tmp_path / 'nothing'}"])
    FakeRapl(tmp_path, [FakeZone("intel-rapl:0", "psys", 1.0)])
    with pytest.raises(PowerError, match="no RAPL package"):
        open_meters([f"rapl,root={tmp_path}"])


def test_damaged_zone_and_senseless_option(tmp_path: Path) -> None:
    FakeRapl(tmp_path)
    with pytest.raises(PowerError, match="max_w"):
        open_meters([f"rapl,root={tmp_path},max_w=0"])
    (tmp_path / "intel-rapl:0" / "max_energy_range_uj").write_text("rubbish")
    with pytest.raises(PowerError, match="damaged"):
        open_meters([f"rapl,root={tmp_path}"])


def machine(root: Path, vendor: str, zones: list[FakeZone]) -> FakeRapl:
    """Zones below a machine's root, whose processors are of `vendor`."""
    write_tree(root, {"proc/cpuinfo": f"processor\t: 0\nvendor_id\t: {vendor}"})
    return FakeRapl(root / "sys/class/powercap", zones, lambda _: 68.0)


def read_machine(root: Path, rapl: FakeRapl, spec: str = "rapl,reader=no") -> MeterSamples:
    """Two seconds at 10 Hz, through the meter that `root` has."""
    meter = one_meter(spec, root)
    rows = []
    for _ in range(21):
        rows.append((rapl.now_s, [math.nan if v is None else v for v in meter.read()]))
        rapl.step(0.1)
    columns = zip(*(values for _, values in rows), strict=True)
    return MeterSamples(meter_info(meter, 10.0), [t for t, _ in rows], tuple(map(list, columns)))


THREADRIPPER = [
    FakeZone("intel-rapl:0", "package-0-die-0", 1.0),
    FakeZone("intel-rapl:0:0", "core", 0.4),
    FakeZone("intel-rapl:1", "package-0-die-1", 1.0),
    FakeZone("intel-rapl:1:0", "core", 0.4),
]


@pytest.mark.parametrize("vendor", ["AuthenticAMD", "HygonGenuine"])
def test_amds_package_counter_is_counted_once_however_many_dies_show_it(
    tmp_path: Path, vendor: str
) -> None:
    """68 W of package-0-die-0 and the same of -die-1, at 125 W from the wall: a Threadripper 1950X
    in CodeCarbon's documentation of RAPL."""
    rapl = machine(tmp_path, vendor, THREADRIPPER)
    samples = read_machine(tmp_path, rapl)
    assert [c.name for c in samples.info.channels] == ["rapl:package-0-die-0"]
    (reading,) = samples.energy(0.0, 2.0)
    assert reading.power_w == pytest.approx(68.0), "and not 136"
    (finding,) = [f for f in discover(tmp_path) if f.spec == "rapl"]
    assert finding.reason == ("2 zones show package-0: eeio uses rapl:package-0-die-0")
    # Another folder than the kernel's: the processors are the machine's all the same.
    moved = one_meter(f"rapl,root={rapl.root},reader=no", tmp_path)
    assert len(moved.channels) == 1


def test_amds_zones_of_one_label_and_of_two_packages(tmp_path: Path) -> None:
    zones = [FakeZone(f"intel-rapl:{n:x}", f"package-{n // 4}", 1.0) for n in range(8)]
    samples = read_machine(tmp_path, machine(tmp_path, "AuthenticAMD", zones))
    assert [c.name for c in samples.info.channels] == ["rapl:package-0", "rapl:package-1"]
    (reading,) = samples.energy(0.0, 2.0)
    assert reading.power_w == pytest.approx(2 * 68.0)


CASCADE_LAKE_AP = [
    FakeZone("intel-rapl:0", "package-0-die-0", 0.5),
    FakeZone("intel-rapl:0:0", "dram", 0.06),
    FakeZone("intel-rapl:1", "package-0-die-1", 0.4),
    FakeZone("intel-rapl:1:0", "dram", 0.04),
]


def test_the_true_counters_of_intels_dies_are_added(tmp_path: Path) -> None:
    """Cascade Lake-AP has a counter a die: the comment above rapl_msrs_are_pkg_scope in Linux."""
    samples = read_machine(tmp_path, machine(tmp_path, "GenuineIntel", CASCADE_LAKE_AP))
    found = by_domain(samples.energy(0.0, 2.0))
    assert found["package"].power_w == pytest.approx(0.9 * 68.0)
    assert found["dram"].power_w == pytest.approx(0.1 * 68.0)


def test_zones_of_one_package_that_move_in_step_have_no_sum(tmp_path: Path) -> None:
    zones = [*THREADRIPPER[:1], FakeZone("intel-rapl:1", "package-0-die-1", 1.0, start_uj=10**9)]
    rapl = machine(tmp_path, "GenuineIntel", zones)
    (reading,) = read_machine(tmp_path, rapl).energy(0.0, 2.0)
    assert not reading.valid and reading.power_w is None
    (reason,) = reading.reasons
    assert "rapl:package-0-die-0 and rapl:package-0-die-1 change in step" in reason
    assert "dies=once" in reason
    (reading,) = read_machine(tmp_path, rapl, "rapl,reader=no,dies=once").energy(3.0, 4.0)
    assert reading.power_w == pytest.approx(68.0, rel=1e-3)
    (reading,) = read_machine(tmp_path, rapl, "rapl,reader=no,dies=each").energy(5.0, 6.0)
    assert reading.power_w == pytest.approx(2.0 * 68.0, rel=1e-3)
    with pytest.raises(PowerError, match="dies=2: it is once or each"):
        open_meters(["rapl,dies=2"], tmp_path)


def test_dies_that_differ_by_half_a_percent_are_added(tmp_path: Path) -> None:
    zones = [*THREADRIPPER[:1], FakeZone("intel-rapl:1", "package-0-die-1", 1.005)]
    rapl = machine(tmp_path, "GenuineIntel", zones)
    (reading,) = read_machine(tmp_path, rapl).energy(0.0, 2.0)
    assert reading.valid and reading.power_w == pytest.approx(2.005 * 68.0, rel=1e-3)


def test_a_read_that_came_late_does_not_make_two_counters_of_one(tmp_path: Path) -> None:
    """One register, shown twice: the reader had to wait 20 ms between its two reads, once."""
    zones = [*THREADRIPPER[:1], FakeZone("intel-rapl:1", "package-0-die-1", 1.0, start_uj=10**9)]
    samples = read_machine(tmp_path, machine(tmp_path, "GenuineIntel", zones))
    first, second = samples.values
    late = [v + (68.0 * 0.02 if k == len(second) // 2 else 0.0) for k, v in enumerate(second)]
    (reading,) = MeterSamples(samples.info, samples.times_s, (first, late)).energy(0.0, 2.0)
    assert not reading.valid, f"{reading.power_w} W is twice what the package draws"
    assert "change in step" in reading.reasons[0]


def test_too_few_readings_to_tell_dies_apart_give_no_energy(tmp_path: Path) -> None:
    samples = read_machine(tmp_path, machine(tmp_path, "GenuineIntel", CASCADE_LAKE_AP))
    short = MeterSamples(
        samples.info, samples.times_s[:3], tuple(column[:3] for column in samples.values)
    )
    same = MeterSamples(samples.info, short.times_s, (short.values[0],) * 4)
    (package, _) = same.energy(0.0, 0.2)
    assert not package.valid
    assert "too rarely to detect" in package.reasons[0]
    assert short.energy(0.0, 0.2)[0].valid, "one step that differs is enough"


@pytest.mark.parametrize("label", ["", "?x"])
def test_a_zone_without_a_name_is_not_left_out_of_the_sum(tmp_path: Path, label: str) -> None:
    zones = [FakeZone("intel-rapl:0", "package-0", 1.0), FakeZone("intel-rapl:1", label, 1.0)]
    rapl = machine(tmp_path, "GenuineIntel", zones)
    with pytest.raises(PowerError, match="which is not a RAPL zone's name"):
        open_meters([f"rapl,root={rapl.root},reader=no"], tmp_path)


def test_zones_are_numbered_in_hexadecimal(tmp_path: Path) -> None:
    """The eleventh zone is intel-rapl:a, and its memory intel-rapl:a:0 (powercap_sys.c: "%s:%x"); a
    machine of 16 packages."""
    zones = [FakeZone(f"intel-rapl:{n:x}", f"package-{n}", 1 + n / 10) for n in range(17)]
    zones += [FakeZone(f"intel-rapl:{n:x}:0", "dram", 0.1) for n in range(17)]
    samples = read_machine(tmp_path, machine(tmp_path, "GenuineIntel", zones))
    packages = [c.name for c in samples.info.channels if c.domain == "package"]
    assert packages == [f"rapl:package-{n}" for n in range(17)], "all of them, in the order"
    assert len(samples.info.channels) == 34
    found = by_domain(samples.energy(0.0, 2.0))
    assert found["package"].power_w == pytest.approx(sum(1 + n / 10 for n in range(17)) * 68.0)
