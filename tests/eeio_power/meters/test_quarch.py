"""A Quarch power module: a stand-in for QIS, written from the maker's quarchpy."""

import math
import socketserver
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from itertools import count, pairwise
from types import SimpleNamespace

import pytest
from tests.eeio_power.line_server import serving
from tests.eeio_power.one_meter import one_meter

from eeio_power.errors import PowerError
from eeio_power.meters import open_meters, quarch
from eeio_power.meters.quarch import AVERAGES, QuarchMeter, parsed_header, parsed_outputs
from eeio_power.reading import only
from eeio_power.samples import meter_info

CHANNELS = (
    ("5V", "voltage", "mV"), ("5V", "current", "uA"), ("5V", "power", "uW"),
    ("12V", "voltage", "mV"), ("12V", "current", "uA"), ("12V", "power", "uW"),
    ("Tot", "power", "uW"),
)  # fmt: skip


def header(channels: tuple[tuple[str, str, str], ...] = CHANNELS, period: str = "65536uS") -> str:
    inner = "".join(
        f"<channel><name>{name}</name><group>{group}</group><units>{units}</units>"
        "<maxTValue>0</maxTValue></channel>"
        for name, group, units in channels
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><header><version>V3</version>'
        f"<devicePeriod>{period}</devicePeriod><channels>{inner}</channels></header>"
    )


def row(number: int, five_mw: float, twelve_mw: float) -> str:
    five, twelve = five_mw * 1e3, twelve_mw * 1e3
    rails = f"5000,{five / 5:.0f},{five:.0f},12000,{twelve / 12:.0f},{twelve:.0f}"
    return f"{number * 65536},{rails},{five + twelve:.0f}"


ROWS = [row(0, 1000, 6000), row(1, 2000, 6000), row(2, 3000, 6000)]


def drip(file: BufferedIOBase, end: bytes) -> None:
    """An answer of many bytes, each soon after the one before, until the other side leaves."""
    with suppress(OSError):
        for byte in b"x" * 60 + end:
            file.write(bytes([byte]))
            time.sleep(0.05)


@contextmanager
def qis(
    *streams: list[str] | str,
    answers: dict[str, str] | None = None,
    head: str | list[str] | None = None,
    seen: list[str] | None = None,
) -> Iterator[str]:
    """Rows of each request; a text is the state that `stream?` gives instead, or `drip`. A list of
    headers has that of each request."""
    script = list(streams)
    state = ["Running"]
    replies = {"$list": "1) USB::QTL1999-01-001\r\n", **(answers or {})}

    def answer(line: str) -> str:
        if seen is not None:
            seen.append(line)
        if line in replies:
            return replies[line]
        command = line.partition(" ")[2]
        if command == "stream text header":
            if isinstance(head, list):
                return head.pop(0) if len(head) > 1 else head[0]
            return header() if head is None else head
        if command == "stream text all":
            rows = script.pop(0) if script else []
            if rows == "drip":
                return rows
            if isinstance(rows, str):
                state[0], rows = rows, []
            return "".join(f"{one}\r\n" for one in rows) + "eof"
        if command == "stream?":
            return f"{state[0]}: 0\r\nStripes Buffered: 0 of 1024"
        if command == "rec stream":
            state[0] = "Running"
        return "OK"

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"qis 1.40\r\n>")
            while line := self.rfile.readline().decode().strip():
                text = answer(line)
                if text == "drop":
                    return
                if text == "drip":
                    drip(self.wfile, b"late\r\n>")
                else:
                    self.wfile.write(f"{text}\r\n>".encode())

    with serving(Handler) as address:
        yield address


def test_the_rails_are_the_drive() -> None:
    with qis(ROWS, [row(3, 500, 500), row(4, 1500, 500)]) as address:
        meter = one_meter(f"quarch:{address},accuracy=0.02")
        assert meter.read() == pytest.approx([1.0, 0.5])
        assert [(c.name, c.domain) for c in meter.channels] == [
            ("quarch:5V", "device"), ("quarch:12V", "device"),
        ]  # fmt: skip
        assert all(c.in_domain_total and c.contents == only("drives") for c in meter.channels)
        assert meter.native_period_s == pytest.approx(0.065536)


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ([row(5, 1, 1)], "rows of the stream are missing"),
        ([row(3, 1, 1), row(9, 1, 1)], "rows of the stream are missing"),
        ([row(1, 1, 1)], "rows of the stream are missing"),
        ([], "no new data"),
        ("Stopped: Overrun", r"the stream ended .Stopped: Overrun.*; started again"),
        (["1,2,3"], "a row of 3 columns"),
        (["NaN,1,1,1,1,1,1,1"], "a row of 8 columns"),
        (["x,1,1,1,1,1,1,1"], "not a row"),
    ],
)
def test_a_stream_that_drops(then: list[str] | str, why: str) -> None:
    again = [then] * (1 if then and not isinstance(then, str) else 4)
    with qis(ROWS, *again, [row(20, 2000, 4000)]) as address:
        meter = one_meter(f"quarch:{address}")
        with pytest.raises(PowerError, match=why):
            meter.read()
        if isinstance(then, str):  # the new stream has new times
            assert meter.read() == pytest.approx([2.0, 4.0])


def test_a_connection_that_closes_is_made_again() -> None:
    replies: dict[str, str] = {}
    with qis(ROWS, [row(3, 2000, 4000)], answers=replies) as address:
        meter = one_meter(f"quarch:{address}")
        meter.qis._connection.close()  # type: ignore[attr-defined]
        with pytest.raises(PowerError, match="is QIS running"):
            meter.read()
        assert meter.read() == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"$list": "No Devices Found"}, "QIS has 0 modules"),
        ({"$list": "1) USB::A1-1\r\n2) TCP::A2-1"}, "module=USB::A1-1 or TCP::A2-1"),
        ({"USB::QTL1999-01-001 rec stream": "FAIL: 0x21"}, "'rec stream': 'FAIL: 0x21'"),
        ({"$list": "drop"}, "is QIS running"),
    ],
)
def test_modules_that_cannot_be_opened(answers: dict[str, str], why: str) -> None:
    with qis(ROWS, answers=answers) as address, pytest.raises(PowerError, match=why):
        open_meters([f"quarch:{address}"])


def test_an_answer_that_drips_in_is_late() -> None:
    with qis(ROWS, "drip", [row(3, 2000, 4000)]) as address:
        meter = one_meter(f"quarch:{address},timeout_s=1")
        with pytest.raises(PowerError, match="no complete answer in 1 s; is QIS running"):
            meter.read()
        assert meter.read() == pytest.approx([2.0, 4.0]), "by a new connection"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: "<x", "no XML"),
        (lambda: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declarations"),
        (lambda: header(CHANNELS[:2]), "no power of a rail"),
        (lambda: header(period="0uS"), "no power of a rail, or no period"),
    ],
)
def test_headers_that_cannot_be_used(make: Callable[[], str], why: str) -> None:
    with pytest.raises(PowerError, match=why):
        parsed_header(make())


def test_no_server_and_specs() -> None:
    for spec in ("quarch", "quarch:a b", "quarch:h:99999", "quarch:h,module=a b"):
        with pytest.raises(PowerError, match=r"is not HOST or HOST:PORT|is not a module"):
            open_meters([spec])
    with pytest.raises(PowerError, match="is QIS running"):
        open_meters(["quarch:127.0.0.1:1,timeout_s=1"])


def test_a_sampler_gets_means_of_the_rows() -> None:
    """Two rows each, at the times of the stream; where rows are missing, the reading is."""
    more = [[row(3, 1000, 0)], [row(4, 1000, 4000), row(5, 3000, 6000), row(6, 5000, 1000)],
            [row(7, 7000, 3000), row(12, 1000, 0), row(13, 1000, 0)]]  # fmt: skip
    with qis(ROWS, *more, "Stopped: Overrun") as address:
        meter = one_meter(f"quarch:{address}")
        assert isinstance(meter, QuarchMeter)
        batches = meter.batches(0.14)
        batches.start()
        first, second = batches.fetch(), batches.fetch()
        assert list(first.columns) == [[2.0], [5.0]]
        assert second.columns[0][0] == 6.0 and 1 in second.problems
        assert all(math.isnan(column[1]) for column in second.columns)
        times = [*first.done_s, *second.done_s]
        assert times == sorted(set(times)), "rows that come early have later times all the same"
        with pytest.raises(PowerError, match="started again"):
            batches.fetch()
        batches.finish()
        assert not batches.ended
        batches.fetch()
        assert batches.ended


LATER = [[row(100_000, 1000, 0), row(100_001, 1000, 0)], [row(100_002, 1000, 0)]]


@pytest.mark.parametrize("is_told", [True, False])
def test_rows_of_a_stream_that_began_again_have_its_times(
    is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a module that was switched off begin at 0. QIS says that the stream stopped, or
    another program started it before the next request."""
    new = [row(k, 1000 * k, 0) for k in range(5)]
    streams = [["Stopped: Module lost"], [new]] if is_told else [[new], [new]]
    script = [LATER[0], [], LATER[1], *(one for stream in streams for one in stream)]
    clock = SimpleNamespace(monotonic=count(10_000.0, 10.0).__next__)
    with qis(*script) as address:
        meter = one_meter(f"quarch:{address}")
        assert isinstance(meter, QuarchMeter)
        monkeypatch.setattr(quarch, "time", clock)
        batches = meter.batches(0.0656)
        batches.start()
        before = batches.fetch()
        with pytest.raises(PowerError, match=r"started again|its times began again"):
            batches.fetch()
        after = batches.fetch()
    assert len(before.done_s) == 1 and after.problems.keys() == {0}
    assert math.isnan(after.columns[0][0]) and after.columns[0][1:] == [1.0, 2.0, 3.0, 4.0]
    steps = [b - a for a, b in pairwise(after.done_s)]
    assert steps == pytest.approx([0.065536] * 4)
    assert (before.done_s[0], after.done_s[-1]) == pytest.approx((10_000.0, 10_010.0))


def test_a_stream_that_ended_is_set_up_again() -> None:
    """A module that was switched off has forgotten its averaging."""
    seen: list[str] = []
    with qis(ROWS, *["Stopped: Module lost"] * 4, [row(0, 2000, 4000)], seen=seen) as address:
        meter = one_meter(f"quarch:{address},average=8k")
        set_up = [line for line in seen if "text" not in line and "$" not in line]
        seen.clear()
        with pytest.raises(PowerError, match="started again"):
            meter.read()
        assert [line for line in seen if "text" not in line and "?" not in line] == set_up
        assert any(line.endswith("stream text header") for line in seen)
        assert meter.read() == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            header(period="262144uS"),
            r"rows of 262\.144 ms of 5V, 12V now, no longer rows of 65\.536",
        ),
        (header(CHANNELS[3:]), r"of 12V now, no longer .* of 5V, 12V; end the other program"),
    ],
)
@pytest.mark.parametrize(
    ("script", "first"),
    [
        (["Stopped: Module lost"] * 4, None),
        ([[row(0, 1, 1)]], "its times began again"),
        ([["FAIL: no such module"]], "a row of 4 columns"),
        ([], None),
    ],
    ids=["stopped", "began again", "no row", "connection lost"],
)
def test_a_stream_that_became_another_one_is_rejected(
    script: list[list[str] | str], first: str | None, other: str, why: str
) -> None:
    heads = [header(), other, other, header()]
    with qis(LATER[0], *script, [row(9, 2000, 4000)], head=heads) as address:
        meter = one_meter(f"quarch:{address}")
        assert isinstance(meter, QuarchMeter)
        if not script:
            meter.qis.close()
        if first is not None:
            with pytest.raises(PowerError, match=first):
                meter.read()
        for _ in range(2):
            with pytest.raises(PowerError, match=why):
                meter.read()
        assert meter.read() == pytest.approx([2.0, 4.0]), "as the first one is back"


# ---- the averaging ----


@pytest.mark.parametrize("average", ["32", "512", "1k", "16k", "32k"])
def test_the_averaging_is_an_option(average: str) -> None:
    commands: list[str] = []
    with qis(ROWS, [row(3, 1000, 0)], seen=commands) as address:
        one_meter(f"quarch:{address},average={average}")
    (sent,) = [command for command in commands if "record:averaging" in command]
    assert sent.endswith(f" record:averaging {average}")


def test_the_averaging_is_16k_unless_it_is_stated_and_others_are_rejected() -> None:
    commands: list[str] = []
    with qis(ROWS, [row(3, 1000, 0)], seen=commands) as address:
        one_meter(f"quarch:{address}")
        with pytest.raises(PowerError, match="average=100 is not one of 32, 64, 128"):
            open_meters([f"quarch:{address},average=100"])
    assert any(command.endswith(" record:averaging 16k") for command in commands)
    assert AVERAGES["32k"] * 4e-6 == pytest.approx(0.131, abs=1e-3)


def fine_row(number: int, five_w: float) -> str:
    """A row of 1.024 ms."""
    return f"{number * 1024},5000,{five_w / 5 * 1e6:.0f},{five_w * 1e6:.0f},12000,0,0,0"


def test_means_and_delay_follow_the_period_of_the_rows() -> None:
    rows = [fine_row(k, 1.0) for k in range(3)]
    with qis(rows, rows[:0], head=header(period="1024uS")) as address:
        meter = one_meter(f"quarch:{address},average=256")
        assert isinstance(meter, QuarchMeter)
        assert meter.native_period_s == pytest.approx(0.001024)
        for period_s, averages_s in ((0.1, 97 * 0.001024), (0.001024, 0.001024)):
            info = meter_info(meter, 1.0 / period_s)
            assert info.native_period_s == pytest.approx(averages_s)
            assert [c.delay.averages_s for c in info.channels if c.delay] == pytest.approx(
                [averages_s] * 2
            )


def test_fine_rows_are_fetched_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarch, "_FETCH_S", 0.005)
    first = [fine_row(k, 1.0) for k in range(3)]
    later = [[fine_row(10 * k + j, float(k)) for j in range(10)] for k in range(1, 40)]
    between = [fine_row(k, 1.0) for k in range(3, 10)]
    with qis(first, between, *later, head=header(period="1024uS")) as address:
        meter = one_meter(f"quarch:{address},average=256")
        assert isinstance(meter, QuarchMeter)
        batches = meter.batches(0.01024)
        batches.start()
        values: list[float] = []
        deadline_s = time.monotonic() + 20.0
        while len(values) < 30 and time.monotonic() < deadline_s:
            batches.wait(0.02)
            with suppress(PowerError):
                values += batches.fetch().columns[0]
        batches.kill()
    assert values[:25] == sorted(values[:25]) and len(set(values[:25])) == 25


# ---- a module without QIS ----

OUTPUTS = "5V Voltage = 5012 mV\r\n5V Current = 400000 uA\r\n12V Voltage = 12000 mV\r\n" \
    "12V Current = 250000.5 uA\r\nPERST# = 1"  # fmt: skip


@contextmanager
def network_module(*answers: str, frame: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    """A module on the network; each of `answers` is that to `measure:outputs?`. It is our own."""
    script, heard = list(answers), []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while len(head := self.rfile.read(2)) == 2:
                line = self.rfile.read(head[0])
                heard.append(head + line)
                text = "OK"
                if line.strip() == b"measure:outputs?":
                    text = script.pop(0) if len(script) > 1 else script[0]
                if text == "drop":
                    return
                if text == "drip":
                    drip(self.wfile, b"\r\n>")
                    return
                if text == "empty":
                    self.wfile.write(bytes(200))
                data = f"{text}\r\n>".encode()
                for begin in range(0, len(data), frame):
                    part = data[begin : begin + frame]
                    self.wfile.write(len(part).to_bytes(2, "little") + part)

    with serving(Handler) as address:
        yield address, heard


@pytest.mark.parametrize("frame", [200, 7])
def test_a_module_without_qis(frame: int) -> None:
    with network_module(OUTPUTS, frame=frame) as (address, heard):
        meter = one_meter(f"quarch:tcp://{address},average=1k")
        assert meter.read() == pytest.approx([2.0048, 3.0], rel=1e-4)
        assert [c.name for c in meter.channels] == ["quarch:5V", "quarch:12V"]
        assert meter.native_period_s == pytest.approx(0.0041, abs=1e-4)
        assert all(c.delay is None for c in meter.channels)
        meter.close()
    assert heard[1:3] == [b"\x15\0record:averaging 1k\r\n", b"\x12\0measure:outputs?\r\n"]
    # `config:default state` would switch the drive off.
    assert not any(b"conf" in line.lower() or b"power" in line.lower() for line in heard)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("FAIL: 0x21", "no voltage and current of each rail"),
        ("5V Voltage = 5012 mV", "no voltage and current of each rail"),
        ("5V Voltage = 5012 mV\r\n12V Current = 5 uA", "no voltage and current of each rail"),
        ("5V Voltage = 5012 mV\r\n5V Voltage = 5013 mV", "two values in mV"),
        ("5V Voltage = 5012 mV, 12 uA", "not understood"),
        ("drop", "the connection was closed"),
        ("empty", "a part of an answer without bytes"),
        ("drip", "no complete answer in 1 s"),
    ],
)
def test_answers_that_are_not_understood(answer: str, why: str) -> None:
    with network_module(answer) as (address, _), pytest.raises(PowerError, match=why):
        open_meters([f"quarch:tcp://{address},timeout_s=1"])


def test_a_module_that_comes_back_is_set_up_again() -> None:
    with network_module(OUTPUTS, "drop", OUTPUTS) as (address, heard):
        meter = one_meter(f"quarch:tcp://{address}")
        with pytest.raises(PowerError, match="no other program uses it"):
            meter.read()
        assert meter.read() == pytest.approx([2.0048, 3.0], rel=1e-4)
    assert sum(b"averaging" in line for line in heard) == 2


def test_one_rail_needs_no_names() -> None:
    assert parsed_outputs("Voltage = 3000 mV\nCurrent = 500000 uA") == {"drive": 1.5}
    with pytest.raises(PowerError, match="not understood"):
        parsed_outputs("Voltage: 3000 mV\nCurrent: 500000 uA")
