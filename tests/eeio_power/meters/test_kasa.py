"""Kasa and Tapo plugs: simulators of our own (tests/simulators/kasa.py), the newer ones below
python-kasa's SmartDevice."""

import asyncio
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.eeio_power.stepped import BURSTS_J, bursts_w, reading_of
from tests.simulators.kasa import DEVICE_ID, FakeKasa, FakeTapo
from tests.waiting import free_port

from eeio_power.delay import PLUG
from eeio_power.errors import PowerError
from eeio_power.http_json import PASSWORD_VARIABLE
from eeio_power.meters import Meter, about, open_meters
from eeio_power.meters.kasa import decrypted, encrypted
from eeio_power.reading import UNKNOWN, WALL


def opened(plug: FakeKasa, options: str = "") -> Meter:
    return one_meter(f"kasa:{plug.address},timeout_s=5{options}")


def test_the_cipher() -> None:
    """The first bytes on the wire of the request that others publish for an HS110."""
    request = b'{"system":{"get_sysinfo":{}}}'
    assert encrypted(request)[:8].hex() == "d0f281f88bff9af7"
    assert decrypted(encrypted(request)) == request


@pytest.mark.parametrize("old_fields", [False, True])
def test_a_plug(old_fields: bool) -> None:
    with FakeKasa(old_fields=old_fields) as plug:
        meter = opened(plug)
        assert [meter.read() for _ in range(3)] == [[87.5]] * 3
        assert plug.connections == 1
        assert plug.requests[-1] == {"emeter": {"get_realtime": {}}}
    (channel,) = meter.channels
    assert (channel.domain, channel.contents, channel.remark) == ("system", WALL, "HS110(EU)")
    assert channel.accuracy_relative == 0.02 and about("kasa").delay == PLUG


def test_other_domains_and_accuracies() -> None:
    with FakeKasa() as plug:
        (channel,) = opened(plug, ",domain=device,accuracy=0.01").channels
    assert (channel.domain, channel.contents) == ("device", UNKNOWN)
    assert channel.accuracy_relative == 0.01


@pytest.mark.parametrize("short_ids", [False, True])
@pytest.mark.parametrize("outlet", ["server", "2"])
def test_an_outlet_of_a_strip(short_ids: bool, outlet: str) -> None:
    names = ["lamp", "server", "lamp"]
    with FakeKasa(lambda k: 10.0 * k, outlets=names, short_ids=short_ids) as plug:
        meter = opened(plug, f",outlet={outlet}")
        assert meter.read() == [10.0]
        assert plug.requests[-1]["context"] == {"child_ids": [f"{DEVICE_ID}01"]}
        assert meter.channels[0].remark == f"HS300(US), outlet {outlet}"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("", r"several outlets: 1 lamp, 2 server, 3 lamp; name one with outlet="),
        (",outlet=tv", r"no outlet 'tv': 1 lamp, 2 server, 3 lamp; give its number"),
        (",outlet=lamp", r"several outlets 'lamp'.*give its number"),
        (",outlet=4", r"no outlet '4'"),
        (",outlet=0", r"no outlet '0'"),
    ],
)
def test_outlets_that_are_not_clear(options: str, reason: str) -> None:
    with (
        FakeKasa(outlets=["lamp", "server", "lamp"]) as plug,
        pytest.raises(PowerError, match=reason),
    ):
        opened(plug, options)


def test_plugs_that_do_not_fit() -> None:
    with FakeKasa() as plug, pytest.raises(PowerError, match="one outlet; leave out outlet="):
        opened(plug, ",outlet=1")
    with (
        FakeKasa(meters=False) as plug,
        pytest.raises(PowerError, match="module not support; it may not meter power"),
    ):
        opened(plug)


def test_energy_of_a_minute_and_of_bursts() -> None:
    """Of a plug that shows the mean of the last second."""
    now_s = [0.0]
    with FakeKasa(lambda _: bursts_w(now_s[0] - 0.5)) as plug:
        meter = opened(plug, ",lag_s=0,averages_s=1")
        minute = reading_of(meter, now_s, 0.0, 60.0)
        burst = reading_of(meter, now_s, 3.0, 4.0)
    assert minute.valid and minute.energy_j == pytest.approx(BURSTS_J, rel=0.005)
    assert burst.energy_j == pytest.approx(100.0, rel=0.02)


@pytest.mark.parametrize("power", [None, "87", True, [], {}])
@pytest.mark.parametrize("old_fields", [False, True])
def test_what_is_no_number_is_missing(power: Any, old_fields: bool) -> None:
    values: list[Any] = [87.5]
    with FakeKasa(lambda _: values[0], old_fields=old_fields) as plug:
        meter = opened(plug)
        values[0] = power
        with pytest.raises(PowerError, match="gives no power"):
            meter.read()
        values[0] = 90.0
        assert meter.read() == [90.0]


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\0\0\0\4abcd",
        b"\0\0\0\0",
        b"\0\0\0\2" + encrypted(b"[]"),
        b"\0\0\0\2" + encrypted(b"{}"),
        b"\0\0\0\x0d" + encrypted(b'{"emeter": 5}'),
        b"",
    ],
)
def test_garbage_is_no_reading(raw: bytes) -> None:
    with FakeKasa() as plug:
        meter = opened(plug)
        plug.raw = raw
        with pytest.raises(PowerError, match=r"127\.0\.0\.1"):
            meter.read()
        plug.raw = None
        plug.drop()
        assert meter.read() == [87.5]


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    values = [5.0]
    with FakeKasa(lambda _: values[0]) as plug:
        meter = one_meter(f"kasa:{plug.address},timeout_s=0.2")
        plug.flowing.clear()
        with pytest.raises(PowerError, match=r"no complete answer in 0\.2 s"):
            meter.read()
        values[0] = 6.0
        plug.flowing.set()
        assert meter.read() == [6.0]
        assert plug.connections == 2


def test_an_answer_that_drips_in_is_late() -> None:
    with FakeKasa() as plug:
        meter = one_meter(f"kasa:{plug.address},timeout_s=1")
        plug.byte_s = 0.05
        with pytest.raises(PowerError, match="no complete answer in 1 s"):
            meter.read()
        plug.byte_s = 0.0
        assert meter.read() == [87.5]


def test_a_plug_that_is_unplugged_and_plugged_in_again() -> None:
    port = free_port()
    with FakeKasa(port=port) as plug:
        meter = opened(plug)
        assert meter.read() == [87.5]
        plug.drop()
        assert meter.read() == [87.5], "it drops idle connections"
    for _ in range(2):
        with pytest.raises(PowerError, match=f"127.0.0.1:{port}: "):
            meter.read()
    with FakeKasa(lambda _: 6.0, port=port):
        assert meter.read() == [6.0]


def test_what_was_missed_is_a_gap() -> None:
    now_s = [0.0]
    with FakeKasa(lambda _: None if 20 < now_s[0] < 30 else 60.0) as plug:
        reading = reading_of(opened(plug, ",lag_s=0,averages_s=1"), now_s, 0.0, 60.0)
    assert not reading.valid and reading.largest_gap_s == pytest.approx(10.0, abs=1.1)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("kasa", "which plug"),
        ("kasa:127.0.0.1:99999", "is not HOST or HOST:PORT"),
        ("kasa:127.0.0.1:1", "127.0.0.1:1: .*; newer plugs need user= and a password"),
        ("kasa:127.0.0.1,domain=rack", "domain=rack is not one of"),
        ("kasa:127.0.0.1,timeout_s=99", "at most 60"),
        ("kasa:127.0.0.1,password_file=x", "password_file= needs user="),
        ("kasa:127.0.0.1:80,user=me", "found without a port"),
        ("kasa:127.0.0.1,user=me,password_file=none", "No such file"),
    ],
)
def test_specs_that_cannot_be(spec: str, reason: str) -> None:
    with pytest.raises(PowerError, match=reason):
        open_meters([spec])


# --- newer plugs ----------------------------------------------------------------------------------


@pytest.fixture
def tapo(monkeypatch: pytest.MonkeyPatch) -> FakeTapo:
    """python-kasa finds this plug at any address."""
    kasa = pytest.importorskip("kasa", reason="python-kasa is not installed")
    from kasa.protocols import SmartProtocol
    from kasa.smart import SmartDevice
    from kasa.transports import BaseTransport

    fake = FakeTapo()

    class Transport(BaseTransport):
        default_port = 80
        credentials_hash = None

        async def send(self, request: str) -> dict[str, Any]:
            return await fake.send(request)

        async def close(self) -> None:
            fake.closed = True

        async def reset(self) -> None:
            """Nothing is kept."""

    async def found(host: str, *, credentials: Any) -> Any:
        assert (credentials.username, credentials.password) == ("me@example", "hunter2")
        config = kasa.DeviceConfig(host, credentials=credentials)
        return SmartDevice(host, protocol=SmartProtocol(transport=Transport(config=config)))

    monkeypatch.setattr(kasa.Discover, "discover_single", found)
    monkeypatch.setenv(PASSWORD_VARIABLE, "hunter2")
    return fake


TAPO = "kasa:192.0.2.9,user=me@example"


def test_a_newer_plug(tapo: FakeTapo) -> None:
    meter = one_meter(TAPO)
    tapo.methods.clear()
    assert [meter.read() for _ in range(3)] == [[87.5]] * 3
    # Version 2 is asked for another command first, which a P110 of this firmware does not know.
    assert set(tapo.methods) == {"get_emeter_data", "get_energy_usage"}
    assert meter.channels[0].remark == "P110"
    assert "hunter2" not in repr(meter) + meter.spec
    meter.close()
    assert tapo.closed
    meter.close()


def test_a_newer_plug_with_faults(tapo: FakeTapo) -> None:
    import kasa

    meter = one_meter(TAPO)
    for fault in (
        kasa.AuthenticationError("login failed"),
        kasa.KasaException("garbage"),
        OSError("no route to host"),
        KeyError("result"),
    ):
        tapo.fails = fault
        with pytest.raises(PowerError, match=r"192\.0\.2\.9: .*check the address, user="):
            meter.read()
    tapo.fails = None
    assert meter.read() == [87.5]


def test_a_newer_plug_that_hangs(tapo: FakeTapo, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = one_meter(f"{TAPO},timeout_s=5")
    meter.plug._timeout_s = 0.05  # type: ignore[attr-defined]

    async def hang(_: str) -> dict[str, Any]:
        await asyncio.sleep(60.0)
        return {}

    with monkeypatch.context() as patched:
        patched.setattr(tapo, "send", hang)
        with pytest.raises(PowerError, match=r"no answer in 0\.05 s"):
            meter.read()
    meter.plug._timeout_s = 5.0  # type: ignore[attr-defined]
    assert meter.read() == [87.5]


def test_a_newer_plug_that_does_not_meter(tapo: FakeTapo) -> None:
    tapo.meters = False
    with pytest.raises(PowerError, match="the P110 does not meter power"):
        open_meters([TAPO])
    assert tapo.closed


def test_a_newer_plug_without_a_value(tapo: FakeTapo, monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[Any] = [87.5]
    tapo.power_w = lambda: values[0]
    meter = one_meter(TAPO)
    with monkeypatch.context() as patched:
        patched.setattr(tapo, "result", lambda _: None)
        with pytest.raises(PowerError):
            meter.read()
    values[0] = 88.0
    assert not math.isnan(meter.read()[0] or math.nan)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "kasa", None)
    monkeypatch.setenv(PASSWORD_VARIABLE, "hunter2")
    with pytest.raises(PowerError, match=r"pip install 'eeio\[kasa\]'"):
        open_meters([TAPO])
