"""Kwollect (Grid'5000) against a simulator of our own (tests/simulators/kwollect.py)."""

import base64
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.eeio_power.stepped import BURSTS_J, bursts_w
from tests.simulators.kwollect import FakeKwollect, value_of

from eeio_power.delay import BMC
from eeio_power.errors import PowerError
from eeio_power.meters import LoggedMeter, close_meters, kwollect, open_meters, parse_spec
from eeio_power.meters.kwollect import KwollectMeter
from eeio_power.reading import MACHINE, UNKNOWN, WALL, EnergyReading
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterSamples, meter_info

BEGIN_S = 1.8e9
"""Unix s; the monotonic clock is 0 then."""


class Clocks:
    """Those of this machine and of the server, which a test sets."""

    def __init__(self) -> None:
        self.now_s, self.ahead_s, self.set_s = 0.0, 0.0, 0.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def unix(self) -> float:
        return BEGIN_S + self.now_s + self.set_s

    def server(self) -> float:
        return BEGIN_S + self.now_s + self.ahead_s

    def sleep(self, time_s: float) -> None:
        self.now_s += time_s
        self.slept_s += time_s


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture(autouse=True)
def _meters() -> Iterator[None]:
    yield
    close_meters(OPENED)
    OPENED.clear()


OPENED: list[KwollectMeter] = []


def opened(server: FakeKwollect, clocks: Clocks, options: str = "") -> KwollectMeter:
    spec = f"kwollect:lyon/taurus-11,url={server.url}{options}"
    _, parsed = parse_spec(spec)
    parsed["node"] = parsed.pop("")
    meter = kwollect.open_meter(
        spec, parsed, Path("/"), clocks.unix, clocks.monotonic, clocks.sleep
    )
    OPENED.append(meter)
    return meter


def energy(meter: KwollectMeter, start_s: float, end_s: float) -> EnergyReading:
    times_s, columns = meter.logged()
    info = meter_info(meter, 1.0)
    return MeterSamples(info, times_s, columns).energy(start_s, end_s)[0]


def wattmeter(time_s: float) -> float:
    """The mean of the last second of the bursts."""
    return bursts_w(time_s - BEGIN_S - 0.5)


def test_what_it_is(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        assert isinstance(meter, LoggedMeter)
        assert (meter.native_period_s, meter.read()) == (1.0, [87.5])
        (channel,) = meter.channels
        assert (channel.domain, channel.contents) == ("system", WALL)
        assert channel.delay is not None and channel.delay.averages_s == 1.0
        assert "wattmetre1-port33" in (channel.remark or "")
        (other,) = opened(server, clocks, ",domain=device,accuracy=0.01,max_w=99").channels
        assert (other.domain, other.contents) == ("device", UNKNOWN)
        assert (other.accuracy_relative, other.max_power_w) == (0.01, 99.0)
        server.metric = "bmc_node_power_watt"
        server.period_s = 5.0
        bmc = opened(server, clocks, ",metric=bmc_node_power_watt")
        assert bmc.native_period_s == 5.0
        assert (bmc.channels[0].contents, bmc.channels[0].delay) == (MACHINE, BMC)


@pytest.mark.parametrize("ahead_s", [0.0, 0.4, 3600.0, -250.3])
def test_energy_of_a_minute_and_of_bursts(clocks: Clocks, ahead_s: float) -> None:
    """Also if the server has another clock: its dates show by how much, to half a second."""
    clocks.ahead_s = ahead_s
    with FakeKwollect(
        clocks.server, lambda time_s: wattmeter(time_s - ahead_s), late_s=2.0
    ) as server:
        meter = opened(server, clocks, ",lag_s=0,averages_s=1")
        clocks.now_s = 30.3
        energy(meter, 0.0, 20.0)
        clocks.now_s = 65.0
        minute = energy(meter, 0.0, 60.0)
        burst = energy(meter, 3.0, 4.0)
    assert minute.valid and minute.energy_j == pytest.approx(BURSTS_J, rel=0.005)
    if ahead_s == 0.0:
        assert burst.energy_j == pytest.approx(100.0, rel=0.02)
    else:
        assert abs(meter.offset_s - ahead_s) <= 0.5


def test_fifty_values_a_second_are_all_kept(clocks: Clocks) -> None:
    def power_w(time_s: float) -> float:
        return 200.0 if (time_s - BEGIN_S) % 10.0 > 9.0 else 100.0

    with FakeKwollect(clocks.server, power_w, period_s=0.02, late_s=1.0) as server:
        meter = opened(server, clocks, ",lag_s=0,averages_s=0.02")
        assert meter.native_period_s == pytest.approx(0.02, rel=0.01)
        clocks.now_s = 61.0
        times_s, (watts,) = meter.logged()
        assert (
            sum(0.0 < time_s <= 60.0 for time_s in times_s)
            == 3000
            == len(set(times_s)) - sum(not 0.0 < time_s <= 60.0 for time_s in times_s)
        )
        assert len(times_s) == len(watts)
        minute, burst = energy(meter, 0.0, 60.0), energy(meter, 9.0, 10.0)
    assert minute.energy_j == pytest.approx(6600.0, rel=0.005)
    assert burst.energy_j == pytest.approx(200.0, rel=0.02)


def test_a_long_run_is_requested_in_parts(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        server.requests.clear()
        clocks.now_s = 3600.0
        times_s, _ = meter.logged()
        assert len(server.requests) == 61
        assert [t for t in times_s if t >= 0.0] == pytest.approx([float(k) for k in range(3601)])


def test_it_waits_for_values_that_arrive_late_and_once_for_those_that_do_not(
    clocks: Clocks,
) -> None:
    with FakeKwollect(clocks.server, late_s=4.0) as server:
        meter = opened(server, clocks)
        clocks.now_s = 100.0
        times_s, _ = meter.logged()
        assert times_s[-1] >= 98.5 and 2.0 <= clocks.slept_s <= 4.0
        server.ends_s = BEGIN_S + 110.0
        clocks.now_s, clocks.slept_s = 200.0, 0.0
        times_s, _ = meter.logged()
        assert times_s[-1] == 110.0 and clocks.slept_s == pytest.approx(10.0)
        meter.logged()
        assert clocks.slept_s == pytest.approx(10.0)
        with pytest.raises(PowerError, match="no value in the last 1"):
            meter.read()
        # As it is back, the values are there.
        server.ends_s = math.inf
        clocks.now_s = 300.0
        assert meter.logged()[0][-1] >= 296.0
        clocks.slept_s = 0.0
        meter.logged()
        assert clocks.slept_s > 0.0


def test_a_wattmeter_that_fails_for_a_while_leaves_a_gap(clocks: Clocks) -> None:
    def values(time_s: float) -> float | None:
        return None if 20.0 <= time_s - BEGIN_S < 30.0 else 60.0

    with FakeKwollect(clocks.server, values) as server:
        meter = opened(server, clocks)
        clocks.now_s = 70.0
        reading = energy(meter, 0.0, 60.0)
    assert not reading.valid and reading.largest_gap_s == pytest.approx(11.0, abs=1.0)


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>", b"{}", b"null", b'{"message": "no"}', b"[1]", b"[{}]",
        *(
            b"[%s]" % text
            for text in (
                b'{"device_id": "taurus-11", "metric_id": "wattmetre_power_watt", "value": 5}',
                b'{"device_id": "taurus-11", "metric_id": "wattmetre_power_watt", "value": "5", '
                b'"timestamp": "2027-01-15T08:00:00+01:00"}',
                b'{"device_id": "taurus-11", "metric_id": "wattmetre_power_watt", "value": 1e300, '
                b'"timestamp": "2027-01-15T08:00:00+01:00"}',
                b'{"device_id": "taurus-11", "metric_id": "wattmetre_power_watt", "value": 5, '
                b'"timestamp": "yesterday"}',
            )
        ),
    ],
)  # fmt: skip
def test_garbage_is_no_reading_and_what_is_missed_is_read_later(
    clocks: Clocks, garbage: bytes
) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        server.garbage = garbage
        clocks.now_s = 30.0
        with pytest.raises(PowerError):
            meter.logged()
        server.garbage = None
        clocks.now_s = 60.0
        times_s, _ = meter.logged()
        assert sum(0.0 < time_s <= 60.0 for time_s in times_s) == 60


def test_other_nodes_and_metrics_are_left_out(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        server.more = [
            value_of(BEGIN_S - 5.0, 900.0, node="taurus-12"),
            value_of(BEGIN_S - 5.0, 900.0, metric="bmc_node_power_watt"),
        ]
        assert set(opened(server, clocks).logged()[1][0]) == {87.5}


def test_several_devices_of_one_node_are_rejected_with_their_names(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        server.more = [value_of(BEGIN_S - 5.5, 900.0, ports=["wattmetre2-port1"])]
        with pytest.raises(PowerError, match="wattmetre1-port33, wattmetre2-port1; name one"):
            opened(server, clocks)
        meter = opened(server, clocks, ",source=wattmetre1-port33")
        assert set(meter.logged()[1][0]) == {87.5}


@pytest.mark.parametrize("ahead_s", [2.0, 30.0, 3600.0])
@pytest.mark.parametrize("clock_ahead_s", [0.0, 250.0])
def test_a_value_in_the_future_does_not_hide_those_before_it(
    clocks: Clocks, ahead_s: float, clock_ahead_s: float
) -> None:
    clocks.ahead_s = clock_ahead_s
    with FakeKwollect(clocks.server, late_s=1.0) as server:
        meter = opened(server, clocks)
        clocks.now_s = 10.0
        server.more = [value_of(clocks.server() + ahead_s, 87.5)]
        meter.logged()
        server.more = []
        clocks.now_s = 60.0
        assert meter.read() == [87.5]
        times_s, _ = meter.logged()
        assert {round(b - a, 3) for a, b in pairwise(times_s)} == {1.0} and times_s[-1] <= 61.0
        reading = energy(meter, 0.0, 58.0)
    assert reading.valid and reading.energy_j == pytest.approx(58 * 87.5, rel=0.005)


def test_a_value_far_in_the_future_is_no_value(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        server.ends_s = BEGIN_S
        server.more = [value_of(BEGIN_S + 3600.0, 999.0)]
        clocks.now_s = 60.0
        with pytest.raises(PowerError, match="no value in the last 60 s"):
            meter.read()
        server.more = []
        clocks.set_s = -3600.0
        with pytest.raises(PowerError, match=r"3540 s ahead of this machine's clock: was the"):
            meter.read()


def test_values_that_come_again_or_in_another_order_do_not_disturb(clocks: Clocks) -> None:
    """Such as one of a day ago, and one of the window in each answer."""
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        server.more = [
            value_of(BEGIN_S + 4.0, 87.5), value_of(BEGIN_S - 86_400.0, 999.0),
            value_of(BEGIN_S + 2.0, 87.5), value_of(BEGIN_S + 2.0, 87.5),
        ]  # fmt: skip
        for now_s in range(5, 65, 5):
            clocks.now_s = float(now_s)
            meter.logged()
        times_s, (watts,) = meter.logged()
        assert times_s == pytest.approx([float(k) for k in range(-120, 61)])
        assert set(watts) == {87.5}


def test_a_clock_that_was_set_is_reported(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        clocks.now_s, clocks.set_s = 10.0, 5.0
        with pytest.raises(PowerError, match=r"clock was set by \+5\.000 s"):
            meter.logged()


def test_the_offset_can_be_stated(clocks: Clocks) -> None:
    clocks.ahead_s = 0.3
    with FakeKwollect(clocks.server) as server:
        assert opened(server, clocks, ",offset_s=0.3").offset_s == 0.3
        assert opened(server, clocks).offset_s == 0.0
        with pytest.raises(PowerError, match="offset_s=x is not a number"):
            opened(server, clocks, ",offset_s=x")


def test_the_password_is_in_no_message(tmp_path: Path, clocks: Clocks) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    token = base64.b64encode(b"me:hunter2").decode()
    with FakeKwollect(clocks.server, authorization=f"Basic {token}") as server:
        with pytest.raises(PowerError, match="check user= and the password"):
            opened(server, clocks)
        meter = opened(server, clocks, f",user=me,password_file={tmp_path / 'word'}")
        assert meter.read() == [87.5]
        assert "hunter2" not in repr(vars(meter)) + meter.spec


def test_a_sampler_reads_it_after_the_window(tmp_path: Path, clocks: Clocks) -> None:
    with FakeKwollect(clocks.server, late_s=1.0) as server:
        meter = opened(server, clocks)
        with Sampler([meter], tmp_path / "s.csv.gz", 1.0, clock=clocks.monotonic) as sampler:
            clocks.now_s = 70.0
            (reading,) = sampler.energy(0.0, 60.0)
        assert reading.valid and reading.energy_j == pytest.approx(60 * 87.5, rel=0.005)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("kwollect", "name the node"),
        ("kwollect:taurus-7", "name the node"),
        ("kwollect:lyon/taurus-7&x=1", "name the node"),
        ("kwollect:lyon/taurus-7,metric=bmc_ambient_temp_celsius", "is no metric in watts"),
        ("kwollect:lyon/taurus-7,domain=rack", "domain=rack is not one of"),
        ("kwollect:lyon/taurus-7,wait_s=-1", "wait_s=-1 is not a number"),
        ("kwollect:lyon/taurus-7,url=http://127.0.0.1:1", "127.0.0.1/sites/lyon/metrics: "),
        ("kwollect:lyon/taurus-7,user=me,password_file=none", "No such file"),
    ],
)
def test_specs_that_cannot_be(spec: str, reason: str) -> None:
    with pytest.raises(PowerError, match=reason):
        open_meters([spec])


def test_a_node_without_values(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        with pytest.raises(PowerError, match=r"no values for taurus-11 .*choose another metric="):
            opened(server, clocks, ",metric=pdu_outlet_power_watt")
        server.power_w = lambda _: None
        assert opened(server, clocks).read() == [None]


def test_closing_it_twice_is_allowed(clocks: Clocks) -> None:
    with FakeKwollect(clocks.server) as server:
        meter = opened(server, clocks)
        meter.close()
        meter.close()
