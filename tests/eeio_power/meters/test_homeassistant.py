"""Home Assistant's REST API against a simulator of our own (tests/simulators/homeassistant.py)."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.eeio_power.stepped import BURSTS_J, bursts_w, reading_of

from eeio_power.errors import PowerError
from eeio_power.http_json import TOKEN_VARIABLE
from eeio_power.meters import Meter, open_meters
from eeio_power.reading import UNKNOWN, WALL

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
from tests.simulators.homeassistant import TOKEN, FakeHomeAssistant

ENTITY = "entity=sensor.server_power"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    yield


def opened(home: FakeHomeAssistant, options: str = "") -> Meter:
    return one_meter(f"homeassistant:{home.address},{ENTITY},timeout_s=5{options}")


@pytest.mark.parametrize(
    ("unit", "state", "options", "value"),
    [
        ("W", "87.5", "", 87.5),
        ("kW", "0.0875", "", 87.5),
        ("mW", "87500", "", 87.5),
        (None, "87.5", ",unit=W", 87.5),
        ("kWh", "1.25", ",resolution=36000", 4.5e6),
        ("Wh", "10", ",resolution=3600", 36_000.0),
    ],
)
def test_units(unit: str | None, state: str, options: str, value: float) -> None:
    with FakeHomeAssistant(unit) as home:
        home.report(state)
        meter = opened(home, options)
        assert meter.read()[0] == pytest.approx(value)
    (channel,) = meter.channels
    assert channel.quantity == ("energy_j" if "resolution" in options else "power_w")
    assert (channel.domain, channel.contents) == ("system", WALL)


def test_other_domains_and_uncertainties() -> None:
    with FakeHomeAssistant() as home:
        home.report(5)
        (channel,) = opened(home, ",domain=device,accuracy=0.01,resolution=0.2,max_w=99").channels
    assert (channel.domain, channel.contents) == ("device", UNKNOWN)
    assert (channel.accuracy_relative, channel.resolution, channel.max_power_w) == (0.01, 0.2, 99)


@pytest.mark.parametrize("state", ["unavailable", "unknown", "None", "", "idle", "NaN", "1e300"])
def test_what_is_no_number_is_missing(state: str) -> None:
    with FakeHomeAssistant() as home:
        home.report(87.5)
        meter = opened(home)
        home.report(state)
        with pytest.raises(PowerError, match=r"sensor\.server_power"):
            meter.read()
        home.report(90)
        assert meter.read() == [90.0]


def test_a_constant_power_that_is_reported_again_is_a_reading() -> None:
    """`/api/states` still shows the first report."""
    now_s = [1.8e9]
    with FakeHomeAssistant(clock=lambda: now_s[0]) as home:
        home.report(87.5)
        meter = opened(home)
        for _ in range(10):
            now_s[0] += 10.0
            home.report(87.5)
            assert meter.read() == [87.5]
        assert home.requests[-1] == "POST /api/template"
        # Nobody reports it any more.
        now_s[0] += 24.0
        assert meter.read() == [87.5]
        now_s[0] += 3.0
        with pytest.raises(PowerError, match=r"was last reported 27 s ago: check the device"):
            meter.read()
        home.report(88)
        assert meter.read() == [88.0]
        assert home.requests[-1].startswith("GET ")


def test_the_age_that_is_allowed_is_an_option() -> None:
    now_s = [1.8e9]
    with FakeHomeAssistant(clock=lambda: now_s[0]) as home:
        home.report(87.5)
        meter = opened(home, ",max_age_s=300")
        now_s[0] += 299.0
        assert meter.read() == [87.5]
        now_s[0] += 2.0
        with pytest.raises(PowerError, match="last reported 301 s ago"):
            meter.read()


@pytest.mark.parametrize("options", [{"admin": False}, {"knows_reports": False}])
def test_where_reports_are_not_known_a_constant_value_is_missing(options: dict[str, bool]) -> None:
    """A user without rights, and Home Assistant before 2024.4."""
    now_s = [1.8e9]
    with FakeHomeAssistant(clock=lambda: now_s[0], **options) as home:  # type: ignore[arg-type]
        home.report(87.5)
        meter = opened(home)
        now_s[0] += 30.0
        home.report(87.5)
        with pytest.raises(PowerError, match=r"not changed for 30 s.*token of an administrator"):
            meter.read()
        home.report(88)
        assert meter.read() == [88.0]


def test_a_report_in_the_future_is_missing_until_the_next_one() -> None:
    """Its clock was ahead when the device reported last, and was set back."""
    now_s = [1.8e9]
    with FakeHomeAssistant(clock=lambda: now_s[0]) as home:
        home.report(87.5)
        meter = opened(home)
        now_s[0] -= 4.0
        assert meter.read() == [87.5], "clocks differ a little"
        now_s[0] -= 3596.0
        with pytest.raises(PowerError, match=r"reported 3600 s in the future: check the clock of"):
            meter.read()
        home.report(87.5)
        assert meter.read() == [87.5], "the same value, reported now"
        home.admin = False
        with pytest.raises(PowerError, match=r"3600 s in the future, and whether .* is unknown"):
            meter.read()
        home.report(88)
        assert meter.read() == [88.0]


def test_energy_of_a_minute_and_of_bursts() -> None:
    """Of a device that reports the mean of each second."""
    now_s = [0.0]
    with FakeHomeAssistant(clock=lambda: 1.8e9 + now_s[0]) as home:
        home.report(60)
        meter = opened(home, ",period_s=1,lag_s=0,averages_s=1")
        read = meter.read

        class Reported:
            """The device reports before each reading."""

            def __getattr__(self, name: str) -> object:
                return getattr(meter, name)

            def read(self) -> object:
                home.report(bursts_w(now_s[0] - 0.5))
                return read()

        minute = reading_of(Reported(), now_s, 0.0, 60.0)  # type: ignore[arg-type]
        burst = reading_of(Reported(), now_s, 3.0, 4.0)  # type: ignore[arg-type]
    assert minute.valid and minute.energy_j == pytest.approx(BURSTS_J, rel=0.005)
    assert burst.energy_j == pytest.approx(100.0, rel=0.02)


def test_a_restart_leaves_a_gap() -> None:
    """Home Assistant restores states as `unavailable` until the device reports."""
    now_s = [0.0]
    with FakeHomeAssistant(clock=lambda: 1.8e9 + now_s[0]) as home:
        home.report(60)
        meter = opened(home, ",period_s=1,lag_s=0,averages_s=1")
        read = meter.read

        class Restarted:
            def __getattr__(self, name: str) -> object:
                return getattr(meter, name)

            def read(self) -> object:
                home.report("unavailable" if 20.0 < now_s[0] < 30.0 else 60)
                return read()

        reading = reading_of(Restarted(), now_s, 0.0, 60.0)  # type: ignore[arg-type]
    assert not reading.valid and reading.largest_gap_s == pytest.approx(10.0, abs=1.1)


@pytest.mark.parametrize(
    "garbage", [b"<html>", b"[]", b"{}", b"null", b'{"state": "5"}', b'"87.5"',
                b'{"state": "5", "last_reported": "yesterday"}',
                b'{"state": 5, "last_reported": "2020-01-01T00:00:00+00:00"}'],
)  # fmt: skip
def test_garbage_is_no_reading(garbage: bytes) -> None:
    with FakeHomeAssistant() as home:
        home.report(5)
        meter = opened(home)
        home.garbage = garbage
        with pytest.raises(PowerError):
            meter.read()
        home.garbage = None
        assert meter.read() == [5.0]


def test_a_unit_that_changes_is_reported() -> None:
    with FakeHomeAssistant() as home:
        home.report(5)
        meter = opened(home)
        home.unit = "kW"
        home.report(0.006)
        with pytest.raises(PowerError, match="is in 'kW' now, no longer in W"):
            meter.read()


def test_the_token_is_in_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE)
    with FakeHomeAssistant() as home:
        home.report(5)
        with pytest.raises(PowerError, match=f"token is missing; .* or set {TOKEN_VARIABLE}"):
            opened(home)
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        meter = opened(home, f",token_file={tmp_path / 'token'}")
        assert meter.read() == [5.0]
        assert TOKEN not in repr(meter) + meter.spec
        (tmp_path / "token").write_text("hunter2\n")
        with pytest.raises(PowerError, match=r"401 .*: check token_file=") as caught:
            opened(home, f",token_file={tmp_path / 'token'}")
        assert "hunter2" not in str(caught.value)
        (tmp_path / "token").write_text("hunter\x002\n")
        with pytest.raises(PowerError, match="is no token"):
            opened(home, f",token_file={tmp_path / 'token'}")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("", "give the address and the sensor"),
        (",entity=server_power", "give the address and the sensor"),
        (",entity=sensor.other", "404 .*; check the address and entity="),
        (f",{ENTITY},unit=kW", "is in 'W'; leave out unit=kW"),
        (f",{ENTITY},domain=rack", "domain=rack is not one of"),
        (f",{ENTITY},period_s=600", "100 at most; let the device report more often"),
    ],
)
def test_specs_that_cannot_be(options: str, reason: str) -> None:
    with FakeHomeAssistant() as home:
        home.report(5)
        with pytest.raises(PowerError, match=reason):
            open_meters([f"homeassistant:{home.address}{options}"])


@pytest.mark.parametrize(
    ("unit", "reason"),
    [("VA", "'VA', which is neither a power nor an energy"), (None, "is in None"),
     ("kWh", "give the counter's step, J, as resolution=")],
)  # fmt: skip
def test_sensors_that_are_no_power(unit: str | None, reason: str) -> None:
    with FakeHomeAssistant(unit) as home:
        home.report(5)
        with pytest.raises(PowerError, match=reason):
            opened(home)


def test_its_values_are_finite() -> None:
    with FakeHomeAssistant() as home:
        home.report("inf")
        with pytest.raises(PowerError, match="cannot be true"):
            opened(home)
        home.report("-0.5")
        assert not math.isnan(opened(home).read()[0] or math.nan)
