"""Joulescope against a stand-in of ours for the maker's driver."""

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eeio_power.one_meter import one_meter
from tests.simulators.joulescope import DEVICE, FakeDriver, FakeJoulescope, statistics

from eeio_power.errors import PowerError
from eeio_power.meters import discover, joulescope, open_meters
from eeio_power.meters.joulescope import JoulescopeMeter, PushedStatistics, parsed
from eeio_power.reading import UNKNOWN, only
from eeio_power.samples import MeterSamples, meter_info


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> FakeJoulescope:
    """The device behind the stand-in."""
    fake = FakeJoulescope()
    monkeypatch.setitem(sys.modules, "pyjoulescope_driver", fake)  # type: ignore[arg-type]
    monkeypatch.setattr(joulescope, "_REOPEN_S", 0.0)
    return fake


def opened(options: str = "") -> JoulescopeMeter:
    meter = one_meter(f"joulescope{options}")
    assert isinstance(meter, JoulescopeMeter)
    return meter


def test_its_energy_is_the_counter(board: FakeJoulescope) -> None:
    meter = opened()
    (channel,) = meter.channels
    assert (channel.name, channel.domain, channel.quantity) == (
        "joulescope:device", "device", "energy_j",
    )  # fmt: skip
    assert channel.contents == only("drives")
    assert board.modes == ["restore"]
    assert board.published == [
        (f"{DEVICE}/s/i/range/mode", "auto"),
        (f"{DEVICE}/s/stats/scnt", 10_000),
        (f"{DEVICE}/s/stats/ctrl", 1),
    ]
    board.beat()
    assert meter.read() == [pytest.approx(board.energy_j)]
    meter.close()
    assert board.published[-1] == (f"{DEVICE}/s/stats/ctrl", 0)


def test_rate_domain_and_accuracy(board: FakeJoulescope) -> None:
    meter = opened(",rate=1000,domain=system,accuracy=0.002")
    assert (f"{DEVICE}/s/stats/scnt", 1000) in board.published
    assert meter.native_period_s == 0.001
    (channel,) = meter.channels
    assert (channel.domain, channel.contents, channel.accuracy_relative) == (
        "system", UNKNOWN, 0.002,
    )  # fmt: skip
    with pytest.raises(PowerError, match="rate=5000 is not 1 to 1000 Hz"):
        open_meters(["joulescope,rate=5000"])


def test_a_js110_streams(board: FakeJoulescope) -> None:
    board.devices, board.sample_hz = ("u/js110/001234",), 2e6
    opened()
    topics = dict(board.published)
    assert topics["u/js110/001234/s/stats/scnt"] == 20_000
    assert topics["u/js110/001234/s/i/range/select"] == "auto"
    assert all(topics[f"u/js110/001234/s/{signal}/ctrl"] == "on" for signal in "ivp")
    assert board.modes == ["defaults"]


def test_without_a_counter_it_is_the_mean_power(board: FakeJoulescope) -> None:
    board.has_energy = False
    meter = opened()
    (channel,) = meter.channels
    assert channel.quantity == "power_w" and channel.delay is not None
    assert channel.delay.averages_s == 0.01
    board.beat()
    assert meter.read() == [2.5]


@pytest.mark.parametrize(
    ("devices", "spec", "why"),
    [
        ((), "joulescope", "has these devices: none; plug it in"),
        ((DEVICE, "u/js220/2"), "joulescope", f"{DEVICE}, u/js220/2"),
        ((DEVICE,), "joulescope:u/js220/9", f"has these devices: {DEVICE}"),
        (("u/js320/1",), "joulescope", "eeio reads the models js220, js110"),
    ],
)
def test_devices_that_cannot_be_opened(
    board: FakeJoulescope, devices: tuple[str, ...], spec: str, why: str
) -> None:
    board.devices = devices
    with pytest.raises(PowerError, match=why):
        open_meters([spec])


def test_another_program_and_a_missing_module(
    board: FakeJoulescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.in_use = True
    with pytest.raises(PowerError, match=r"IN_USE.*Joulescope UI"):
        open_meters(["joulescope"])
    monkeypatch.setitem(sys.modules, "pyjoulescope_driver", None)
    with pytest.raises(PowerError, match=r"pip install 'eeio\[joulescope\]'"):
        open_meters(["joulescope"])


def simulated(
    board: FakeJoulescope, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> tuple[JoulescopeMeter, PushedStatistics, Callable[[float], None]]:
    """A meter, its values, and a function that lets a time pass."""
    meter = opened()
    now = [500.0]
    monkeypatch.setattr(joulescope.time, "monotonic", lambda: now[0])
    batches = meter.batches(0.1)
    batches.start()

    def pass_s(duration_s: float) -> None:
        for _ in range(round(duration_s / board.period_s)):
            now[0] += board.period_s
            board.beat()

    return meter, batches, pass_s


def energy_j(
    meter: JoulescopeMeter, times_s: list[float], values: list[float], start_s: float, end_s: float
) -> float | None:
    info = meter_info(meter, 10.0)
    (reading,) = MeterSamples(info, times_s, (values,)).energy(start_s, end_s)
    return reading.energy_j


@pytest.mark.parametrize("has_energy", [True, False])
def test_energy_of_a_minute_and_of_a_burst(
    board: FakeJoulescope, monkeypatch: pytest.MonkeyPatch, has_energy: bool
) -> None:
    board.has_energy = has_energy
    meter, batches, pass_s = simulated(board, monkeypatch, 62.0)
    times_s: list[float] = []
    values: list[float] = []
    for power_w, duration_s in ((2.5, 30.0), (8.0, 1.0), (1.0, 31.0)):
        board.power_w = power_w
        for _ in range(round(duration_s)):
            pass_s(1.0)
            batch = batches.fetch()
            times_s += batch.done_s
            values += batch.columns[0]
    assert len(values) == 6200 and times_s == sorted(set(times_s))
    assert times_s[-1] == pytest.approx(562.0, abs=0.011)
    expected_j = 29.5 * 2.5 + 8.0 + 29.5
    assert energy_j(meter, times_s, values, 500.5, 560.5) == pytest.approx(expected_j, rel=0.005)
    assert energy_j(meter, times_s, values, 530.0, 531.0) == pytest.approx(8.0, rel=0.02)


def test_lost_statistics(board: FakeJoulescope, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter has their energy; a mean power is missing."""
    for has_energy in (True, False):
        board.has_energy = has_energy
        _, batches, pass_s = simulated(board, monkeypatch, 1.0)
        pass_s(0.1)
        batches.fetch()
        board.beat(5, lose=True)
        pass_s(0.02)
        batch = batches.fetch()
        assert math.isnan(batch.columns[0][0]) is not has_energy
        assert bool(batch.problems) is not has_energy
        monkeypatch.undo()
        monkeypatch.setitem(sys.modules, "pyjoulescope_driver", board)  # type: ignore[arg-type]


def test_unplugged_and_plugged_in_again(
    board: FakeJoulescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter, batches, pass_s = simulated(board, monkeypatch, 1.0)
    pass_s(0.1)
    batches.fetch()
    board.unplug()
    meter.timeout_s = 0.0
    with pytest.raises(PowerError, match="was it unplugged"):
        batches.fetch()
    with pytest.raises(PowerError, match="has these devices: none"):
        batches.fetch()
    board.plug_in()
    batch = batches.fetch()
    # Its counter and its clock began again.
    assert batch.columns[0][0] < 0.1
    assert meter._highest_j < 0.2


def test_an_idle_input_is_no_reset(board: FakeJoulescope) -> None:
    meter = opened()
    board.energy_j, board.power_w = 1.0, -0.001
    values = []
    for _ in range(20):
        board.beat()
        values += meter.read()
    assert values == sorted(values)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value.pop("time"),
        lambda value: value["signals"].pop("power"),
        lambda value: value["signals"]["power"]["avg"].update(value=math.nan),
        lambda value: value["time"]["samples"].update(value=[5, 5]),
        lambda value: value["time"]["sample_freq"].update(value=0),
        lambda value: value["accumulators"]["energy"].update(value="x"),
        lambda value: value["accumulators"]["energy"].update(value=math.inf),
    ],
)
def test_statistics_that_are_not_understood(damage: Callable[[dict[str, Any]], None]) -> None:
    value = statistics(0, 1000, 2.5, 1.0)
    assert parsed(value).power_w == 2.5
    damage(value)
    with pytest.raises(PowerError, match=r"its statistics|its energy"):
        parsed(value)


KEYS = st.sampled_from(["time", "samples", "value", "signals", "power", "avg", "accumulators"])


@given(
    st.recursive(
        st.none() | st.floats() | st.text(max_size=5), lambda inner: st.dictionaries(KEYS, inner)
    )
)
def test_any_dictionary_is_rejected_or_read(value: Any) -> None:
    if isinstance(value, dict):
        with pytest.raises(PowerError):
            parsed(value)


def test_the_interface_is_that_of_the_package() -> None:
    module = pytest.importorskip(
        "pyjoulescope_driver", reason="pyjoulescope_driver is not installed"
    )
    for name in ("device_paths", "open", "publish", "subscribe", "close", "finalize"):
        theirs = list(inspect.signature(getattr(module.Driver, name)).parameters)
        ours = list(inspect.signature(getattr(FakeDriver, name)).parameters)
        assert theirs[: len(ours)] == ours, name


def test_it_is_not_searched_for() -> None:
    (finding,) = [found for found in discover() if found.spec == "joulescope"]
    assert not finding.available and "--meter joulescope" in (finding.remedy or "")
