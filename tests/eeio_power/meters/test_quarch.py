"""A Quarch power module: a stand-in for QIS, written from the maker's quarchpy."""

import math
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.eeio_power.line_server import serving
from tests.eeio_power.one_meter import one_meter

from eeio_power.errors import PowerError
from eeio_power.meters import open_meters
from eeio_power.meters.quarch import QuarchMeter, parsed_header
from eeio_power.reading import only

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


@contextmanager
def qis(
    *streams: list[str] | str, answers: dict[str, str] | None = None, head: str | None = None
) -> Iterator[str]:
    """Rows of each request; a text is the state that `stream?` gives instead."""
    script = list(streams)
    state = ["Running"]
    replies = {"$list": "1) USB::QTL1999-01-001\r\n", **(answers or {})}

    def answer(line: str) -> str:
        if line in replies:
            return replies[line]
        command = line.partition(" ")[2]
        if command == "stream text header":
            return header() if head is None else head
        if command == "stream text all":
            rows = script.pop(0) if script else []
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
