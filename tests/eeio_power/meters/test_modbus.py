"""Modbus: pymodbus' own server over TCP and over a serial line, which other people wrote."""

import importlib.util
import math
import socketserver
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.eeio_power.line_server import serving
from tests.eeio_power.one_meter import one_meter
from tests.eeio_power.stepped import BURSTS_J, bursts_w, reading_of
from tests.waiting import free_port, until

from eeio_power.errors import PowerError
from eeio_power.meters import Meter, open_meters
from eeio_power.meters.modbus import SDM_DELAY
from eeio_power.reading import UNKNOWN, WALL
from eeio_power.sampler import Sampler

pytest.importorskip("pymodbus", reason="pymodbus is not installed")
from tests.simulators import modbus as device


def opened(address: str, options: str = "model=sdm120") -> Meter:
    return one_meter(f"modbus:{address},timeout_s=5,{options}")


def impatient(meter: Meter) -> None:
    """It waits so long that a busy machine answers in most cases."""
    client = meter.line._client  # type: ignore[attr-defined]
    if device.IS_OLD:
        client.params.timeout = 0.3
    else:
        client.comm_params.timeout_connect = 0.3


def soon(meter: Meter, power_w: float) -> bool:
    """It reads this power again; a busy machine may need several readings."""

    def reads() -> bool:
        with suppress(PowerError):
            assert meter.read() == [power_w]
            return True
        return False

    return until(reads)


@pytest.mark.parametrize(
    ("options", "register", "most_w"),
    [
        ("model=sdm120", 0x0C, 11_250.0),
        ("model=sdm220", 0x0C, 16_250.0),
        ("model=sdm230", 0x0C, 25_000.0),
        ("model=sdm72", 0x34, 75_000.0),
        ("model=sdm630", 0x34, 75_000.0),
        ("model=sdm630,phase=1", 0x0C, 25_000.0),
        ("model=sdm630,phase=3", 0x10, 25_000.0),
    ],
)
def test_models(options: str, register: int, most_w: float) -> None:
    with device.over_tcp(device.sdm(lambda: 87.5, register)) as address:
        meter = opened(address, options)
        assert meter.read() == [87.5]
    (channel,) = meter.channels
    assert (channel.domain, channel.quantity, channel.contents) == ("system", "power_w", WALL)
    assert (channel.max_power_w, channel.accuracy_relative) == (most_w, 0.01)
    assert channel.delay == SDM_DELAY


@pytest.mark.parametrize(
    ("options", "layout", "count", "value"),
    [
        ("type=float32", "f", 87.5, 87.5),
        ("type=float64,unit=kW", "d", 0.0875, 87.5),
        ("type=uint16,scale=0.1", "H", 875, 87.5),
        ("type=int16", "h", 875, 875.0),
        ("type=uint32,unit=mW", "I", 87_500, 87.5),
        ("type=int32,unit=mW", "i", 87_500, 87.5),
        ("type=int64,unit=mW", "q", 87_500, 87.5),
        ("type=uint64,unit=Wh", "Q", 10, 36_000.0),
        ("type=uint32,unit=Wh,scale=10", "I", 10, 360_000.0),
        ("type=float32,unit=kWh,resolution=36000", "f", 0.5, 1.8e6),
    ],
)
@pytest.mark.parametrize("table", ["input", "holding"])
@pytest.mark.parametrize("word_order", ["big", "little"])
def test_numbers_of_other_devices(
    options: str, layout: str, count: float, value: float, table: str, word_order: str
) -> None:
    words = device.registers_of(count, layout)
    if word_order == "little":
        words.reverse()

    def read(of: str, address: int, number: int) -> Sequence[int] | None:
        return words if (of, address, number) == (table, 0x104, len(words)) else None

    with device.over_tcp(read) as address:
        meter = opened(
            address, f"register=0x104,table={table},word_order={word_order},{options},domain=device"
        )
        assert meter.read()[0] == pytest.approx(value)
    (channel,) = meter.channels
    assert channel.quantity == ("energy_j" if "Wh" in options else "power_w")
    assert (channel.domain, channel.contents, channel.delay) == ("device", UNKNOWN, None)


def test_the_step_of_a_counter_is_its_resolution() -> None:
    with device.over_tcp(lambda *_: [0, 10]) as address:
        (channel,) = opened(address, "register=1,type=uint32,unit=Wh,scale=10").channels
    assert channel.resolution == 36_000.0


@pytest.mark.parametrize(
    ("layout", "kind", "count", "reason"),
    [
        ("f", "float32", math.nan, "no number"),
        ("f", "float32", -math.inf, "no number"),
        ("f", "float32", 1e30, "cannot be true; check type= and word_order="),
        ("f", "float32", -500.0, "negative"),
        ("f", "float32", 5e6, "more than the 20000 W"),
        ("H", "uint16", 0xFFFF, "no value"),
        ("h", "int16", -0x8000, "no value"),
        ("I", "uint32", 0xFFFFFFFF, "no value"),
    ],
)
def test_what_is_no_power_is_missing(layout: str, kind: str, count: float, reason: str) -> None:
    values = [device.registers_of(count, layout)]
    with device.over_tcp(lambda *_: values[0]) as address:
        with pytest.raises(PowerError, match=reason):
            opened(address, f"register=0,type={kind}")
        values[0] = device.registers_of(87, layout)
        meter = opened(address, f"register=0,type={kind}")
        values[0] = device.registers_of(count, layout)
        with pytest.raises(PowerError, match=reason):
            meter.read()
        values[0] = device.registers_of(88, layout)
        assert meter.read() == [88.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("model=sdm630", "no input register 52; check register= or model="),
        ("register=12,table=holding", "no holding register 12"),
    ],
)
def test_a_device_without_the_register(options: str, message: str) -> None:
    with (
        device.over_tcp(device.sdm(lambda: 5.0)) as address,
        pytest.raises(PowerError, match=message),
    ):
        opened(address, options)


def test_the_number_of_the_device() -> None:
    with device.over_tcp(device.sdm(lambda: 5.0), device_id=7) as address:
        assert opened(address, "model=sdm120,device_id=7").read() == [5.0]
        with pytest.raises(PowerError):
            open_meters([f"modbus:{address},model=sdm120,device_id=3,timeout_s=0.3"])


def test_energy_of_a_minute_and_of_bursts() -> None:
    """At 1 Hz, of a device that shows the mean of the last second."""
    now_s = [0.0]
    with device.over_tcp(device.sdm(lambda: bursts_w(now_s[0] - 0.5))) as address:
        meter = opened(address, "model=sdm120,lag_s=0,averages_s=1")
        minute = reading_of(meter, now_s, 0.0, 60.0)
        steady = reading_of(meter, now_s, 4.0, 12.0)
        burst = reading_of(meter, now_s, 3.0, 4.0)
    assert minute.valid and minute.energy_j == pytest.approx(BURSTS_J, rel=0.005)
    assert steady.energy_j == pytest.approx(8 * 60.0, rel=0.005)
    assert burst.energy_j == pytest.approx(100.0, rel=0.02)


def test_a_gateway_that_is_restarted_leaves_a_gap() -> None:
    port = free_port()
    with device.over_tcp(device.sdm(lambda: 5.0), port=port) as address:
        meter = opened(address)
        assert meter.read() == [5.0]
    for _ in range(2):
        with pytest.raises(PowerError, match=f"127.0.0.1:{port}: no "):
            meter.read()
    with device.over_tcp(device.sdm(lambda: 6.0), port=port):
        assert meter.read() == [6.0]


class _Garbage(socketserver.BaseRequestHandler):
    answer = b""

    def handle(self) -> None:
        while self.request.recv(4096):
            self.request.sendall(self.answer)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff" * 300,
        b"\0\1\0\0\0\7\1\4\4\0",  # cut off
        b"\0\1\0\0\0\5\1\4\2\0\5",  # one register of two
        b"\0\1\0\0\0\7\1\3\4\x42\xaf\0\0",  # of the other table
    ],
)
def test_garbage_is_no_reading(answer: bytes) -> None:
    handler = type("Handler", (_Garbage,), {"answer": answer})
    with serving(handler) as address, pytest.raises(PowerError, match=address):
        open_meters([f"modbus:{address},model=sdm120,timeout_s=0.3"])


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    """It is for a request that was given up; the connection is dropped."""
    waits = threading.Event()
    waits.set()
    power_w = [5.0]

    def read() -> float:
        taken = power_w[0]
        waits.wait(5.0)
        return taken

    with device.over_tcp(device.sdm(read)) as address:
        meter = opened(address)
        impatient(meter)
        waits.clear()
        with pytest.raises(PowerError, match="no answer"):
            meter.read()
        power_w[0] = 6.0
        waits.set()
        assert soon(meter, 6.0)


# --- a serial line --------------------------------------------------------------------------------

over_serial = pytest.mark.skipif(
    device.IS_OLD or importlib.util.find_spec("serial") is None,
    reason="pymodbus' server needs version 3.1 and pyserial on a serial line",
)


@over_serial
def test_a_serial_line() -> None:
    with device.over_serial(device.sdm(lambda: 87.5), device_id=3) as cable:
        meter = opened(cable.client, "model=sdm120,device_id=3,baud=9600")
        assert meter.read() == [87.5]
        # Device 3, function 4, register 12, two registers, checksum.
        assert b"".join(cable.requests)[:6] == bytes((3, 4, 0, 12, 0, 2))


@over_serial
def test_noise_on_a_serial_line_is_no_reading() -> None:
    with device.over_serial(device.sdm(lambda: 87.5)) as cable:
        meter = opened(cable.client)
        impatient(meter)
        for spoiled in (
            lambda data: data[:-1] + bytes([data[-1] ^ 1]),  # checksum
            lambda data: data[:3] + bytes([data[3] ^ 0x40]) + data[4:],  # a bit of the value
            lambda data: b"",
            lambda data: data[:-2],
            lambda data: bytes([9]) + data[1:],  # another device
        ):
            cable.on_answer = spoiled
            with pytest.raises(PowerError, match=cable.client):
                meter.read()
            cable.on_answer = lambda data: data
            assert soon(meter, 87.5)


@over_serial
def test_a_second_program_on_the_line_is_reported() -> None:
    with device.over_serial(device.sdm(lambda: 87.5)) as cable:
        meter = opened(cable.client)
        with pytest.raises(PowerError, match=f"{cable.client}: .*does another program use it"):
            open_meters([f"modbus:{cable.client},model=sdm120,timeout_s=0.3"])
        assert meter.read() == [87.5]


@over_serial
def test_an_unplugged_adapter_is_reported_and_comes_back(tmp_path: Path) -> None:
    link = tmp_path / "ttyUSB0"
    with device.over_serial(device.sdm(lambda: 5.0)) as cable:
        link.symlink_to(cable.client)
        meter = opened(str(link))
        assert meter.read() == [5.0]
    link.unlink()
    with pytest.raises(PowerError, match="ttyUSB0"):
        meter.read()
    with pytest.raises(PowerError, match="ttyUSB0 is not there; check the cable"):
        meter.read()
    with device.over_serial(device.sdm(lambda: 6.0)) as cable:
        link.symlink_to(cable.client)
        assert meter.read() == [6.0]


def test_a_window_with_a_gap_reports_it(tmp_path: Path) -> None:
    failing = threading.Event()
    registers = device.sdm(lambda: 50.0)
    with device.over_tcp(lambda *of: None if failing.is_set() else registers(*of)) as address:
        meter = one_meter(f"modbus:{address},model=sdm120,period_s=0.05,timeout_s=5")
        with Sampler([meter], tmp_path / "s.csv.gz", 20.0) as sampler:
            until(lambda: sampler.rates()[0].reads > 2)
            failing.set()
            until(lambda: sampler.rates()[0].failed_reads > 1)
            assert "no input register 12" in (sampler.rates()[0].last_error or "")
            failing.clear()
            before = sampler.rates()[0]
            until(lambda: sampler.rates()[0].reads > before.reads + 3)
        values = sampler.samples().meters[0].values[0]
    assert {value for value in values if not math.isnan(value)} == {50.0}
    assert any(math.isnan(value) for value in values)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("modbus", "which device"),
        ("modbus:127.0.0.1", "give model=sdm72, .* or register="),
        ("modbus:127.0.0.1,model=em24", "model=em24 is not one of"),
        ("modbus:127.0.0.1,model=sdm120,register=5", "has its own register"),
        ("modbus:127.0.0.1,model=sdm120,phase=2", "a sdm120 has one phase"),
        ("modbus:127.0.0.1,model=sdm630,phase=4", "phase=4 is not one of 1, 2, 3"),
        ("modbus:127.0.0.1,register=5,phase=2", "phase= is of a model"),
        ("modbus:127.0.0.1,register=70000", "register=70000 is not a number of 0 to 65535"),
        ("modbus:127.0.0.1,register=x", "register=x is not a number"),
        ("modbus:127.0.0.1,register=5,type=bcd", "type=bcd is not one of"),
        ("modbus:127.0.0.1,register=5,unit=VA", "unit=VA is not one of W, mW"),
        ("modbus:127.0.0.1,register=5,unit=1", "the device's number is device_id=1"),
        ("modbus:127.0.0.1,register=5,unit=kWh", "give the counter's step, J, as resolution="),
        ("modbus:127.0.0.1,register=5,table=coil", "table=coil is not one of input, holding"),
        ("modbus:127.0.0.1,register=5,word_order=x", "word_order=x is not one of"),
        ("modbus:127.0.0.1,register=5,scale=0", "scale=0 is not a number above 0"),
        ("modbus:127.0.0.1,register=5,baud=9600", "baud= is of a serial line"),
        ("modbus:127.0.0.1,register=5,domain=rack", "domain=rack is not one of"),
        ("modbus:127.0.0.1,register=5,device_id=256", "device_id=256 is not a number of 0"),
        ("modbus:127.0.0.1,register=5,timeout_s=99", "at most 60"),
        ("modbus:127.0.0.1:99999,register=5", "is not HOST or HOST:PORT"),
        ("modbus:127.0.0.1:1,register=5", "no connection; check HOST:PORT"),
        ("modbus:/dev/none,model=sdm120", "/dev/none is not there"),
    ],
)
def test_specs_that_cannot_be(spec: str, reason: str) -> None:
    with pytest.raises(PowerError, match=reason):
        open_meters([spec])
