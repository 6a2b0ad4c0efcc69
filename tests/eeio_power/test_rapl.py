"""RAPL against the simulated powercap folder."""

import math
from pathlib import Path

import pytest

from eeio_power.errors import PowerError
from eeio_power.meters import discover, open_meters
from eeio_power.meters import rapl as rapl_module
from eeio_power.reading import EnergyReading
from eeio_power.samples import MeterSamples, meter_info
from eeio_power.simulators import FakeRapl, FakeZone


def pulses_w(time_s: float) -> float:
    return 120.0 if time_s % 4.0 < 2.0 else 300.0


def sample(rapl: FakeRapl, steps: int, period_s: float = 0.1, spec: str = "rapl") -> MeterSamples:
    """Step the simulator and read the meter after each step, without a clock."""
    (meter,) = open_meters([f"{spec},root={rapl.root}"])
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
    (meter,) = open_meters([f"rapl,root={tmp_path},max_w=200"])
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
    (meter,) = open_meters([f"rapl,root={tmp_path}"])
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

    def refuse(path: Path) -> int:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return int(path.read_text())

    monkeypatch.setattr(rapl_module, "read_int", refuse)
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
