"""The CPU-load model against a hand-written /proc/stat."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter

from eeio_power.errors import PowerError
from eeio_power.meters import open_meters
from eeio_power.meters.modelled import CpuTicks, ModelledMeter, parse_stat, utilisation
from eeio_power.samples import MeterSamples, meter_info

CPUS = 4


class FakeStat:
    """/proc/stat of a machine with four CPUs, and the clock that goes with it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "proc/stat"
        self.path.parent.mkdir(parents=True)
        self.now_s = 0.0
        self.busy = self.idle = self.iowait = 0.0
        self.run(0.0, 0.0)

    def run(self, duration_s: float, load: float, waiting: float = 0.0) -> None:
        self.now_s += duration_s
        ticks = duration_s * 100 * CPUS
        self.busy += ticks * load
        self.iowait += ticks * waiting
        self.idle += ticks * (1 - load - waiting)
        # user nice system idle iowait irq softirq steal guest guest_nice; a guest's time is in
        # user time already.
        numbers = f"{self.busy:.0f} 0 0 {self.idle:.0f} {self.iowait:.0f} 0 0 0 {self.busy:.0f} 0"
        cpus = "".join(f"cpu{n} 1 0 0 1 0 0 0 0 0 0\n" for n in range(CPUS))
        self.path.write_text(f"cpu  {numbers}\n{cpus}intr 1 2 3\n")

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def stat(tmp_path: Path) -> FakeStat:
    return FakeStat(tmp_path)


def model(
    stat: FakeStat, idle_w: float | None = None, busy_w: float | None = None
) -> ModelledMeter:
    return ModelledMeter("modelled", "modelled", stat.path, idle_w, busy_w, stat.clock)


def power_w(meter: ModelledMeter, stat: FakeStat, run: Callable[[], None]) -> float:
    before_s, before = stat.now_s, meter.read()[0] or 0.0
    run()
    after = meter.read()[0]
    assert after is not None
    return (after - before) / (stat.now_s - before_s)


@pytest.mark.parametrize(("load", "expected_w"), [(0.0, 40.0), (0.5, 70.0), (1.0, 100.0)])
def test_power_is_linear_in_load(stat: FakeStat, load: float, expected_w: float) -> None:
    meter = model(stat, 40.0, 100.0)
    assert power_w(meter, stat, lambda: stat.run(1.0, load)) == pytest.approx(expected_w)


def test_waiting_for_io_is_idle_and_guests_count_once(stat: FakeStat) -> None:
    meter = model(stat, 40.0, 100.0)
    assert power_w(meter, stat, lambda: stat.run(1.0, 0.25, 0.5)) == pytest.approx(55.0)


def test_the_band_is_in_the_uncertainty(stat: FakeStat) -> None:
    for given, band in [((40.0, 100.0), 0.20), ((None, None), 0.50), ((40.0, None), 0.50)]:
        meter = model(stat, *given) if given != (40.0, None) else model(stat, 5.0, None)
        times_s, values = [], []
        for _ in range(50):
            stat.run(0.1, 0.5)
            times_s.append(stat.now_s)
            values.append(meter.read()[0])
        samples = MeterSamples(meter_info(meter, 10.0), times_s, (values,))  # type: ignore[arg-type]
        (reading,) = samples.energy(times_s[5], times_s[45])
        assert (reading.domain, reading.kind) == ("system", "modelled")
        assert reading.valid
        assert reading.energy_j is not None and reading.uncertainty_j is not None
        assert band * reading.energy_j <= reading.uncertainty_j < 1.1 * band * reading.energy_j
        assert reading.power_w == pytest.approx((meter.idle_w + meter.busy_w) / 2, rel=1e-6)


def test_nominal_coefficients_follow_the_cpus(stat: FakeStat) -> None:
    meter = model(stat)
    assert (meter.idle_w, meter.busy_w) == (6.0, 26.0)


def test_no_tick_yet_is_no_value_and_a_second_read_within_a_tick_goes_on(stat: FakeStat) -> None:
    meter = model(stat, 40.0, 100.0)
    assert meter.read() == [None]
    stat.run(1.0, 1.0)
    (first,) = meter.read()
    stat.now_s += 0.001
    (second,) = meter.read()
    assert first is not None and second is not None
    assert second - first == pytest.approx(0.1)


def test_utilisation_stays_between_0_and_1() -> None:
    before = CpuTicks(busy=100, total=200, cpus=2)
    # Idle time may run backwards a little on some kernels.
    assert utilisation(before, CpuTicks(busy=120, total=210, cpus=2)) == 1.0
    assert utilisation(before, CpuTicks(busy=90, total=210, cpus=2)) == 0.0
    assert utilisation(before, before) is None


@pytest.mark.parametrize("text", ["", "intr 1 2", "cpu 1 2", "cpu a b c d e f g h"])
def test_what_is_no_stat_file(text: str) -> None:
    with pytest.raises(ValueError):
        parse_stat(text)


def test_options_are_checked(stat: FakeStat, tmp_path: Path) -> None:
    assert one_meter("modelled,idle_w=40,busy_w=100", tmp_path).kind == "modelled"
    for spec, message in [
        ("modelled,idle_w=100,busy_w=40", "under idle_w"),
        ("modelled,idle_w=warm", "idle_w=warm is not a number"),
        ("modelled,idle_w=-3", "at least 0"),
        ("modelled,idle_w=nan", "not a number"),
    ]:
        with pytest.raises(PowerError, match=message):
            open_meters([spec], tmp_path)
    with pytest.raises(PowerError, match="does not give CPU times"):
        open_meters(["modelled"], tmp_path / "elsewhere")
