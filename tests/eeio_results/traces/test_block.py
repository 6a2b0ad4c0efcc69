"""What the kernel says of requests to a drive."""

import pytest
from tests.plugin import DATA

from eeio.traces.block import parse
from eeio.traces.order import Request, describe

NEW = (
    "             fio-4711    [001] ...1.  1234.567890: block_rq_issue: "
    "254,0 R 4096 () 2048 + 8 none,0,0 [fio]\n"
)
OLD = (
    "  kworker/u4:1-77    [000] ....  1234.567001: block_rq_issue: "
    "8,0 WS 8192 () 4096 + 16 [kworker/u4:1]\n"
)
BIO = " dd-9 [000] d..2. 1234.600000: block_bio_queue: 253,0 RA 8 + 8 [dd]\n"


def line(what: str, time: str = "1.000000", cpu: int = 0) -> str:
    return f" x-1 [00{cpu}] ..... {time}: block_rq_issue: 7,0 {what} 4096 () 0 + 8 none,0,0 [x]\n"


def test_lines_of_kernels_by_time() -> None:
    found, until_s = parse([NEW, OLD, BIO, "# tracer: nop\n", "\n"], {0: 0, 1: 0})
    assert until_s is None
    assert found == [
        (1234.567001, False, Request(4096 * 512, 8192)),
        (1234.56789, True, Request(2048 * 512, 4096)),
        (1234.6, True, Request(4096, 4096)),
    ]


def test_what_a_kernel_reported_of_fio() -> None:
    """16 KiB at random, read and written past the page cache; the rest is of the whole machine."""
    lines = (DATA / "block/6.18/fio-randrw.txt").read_text().splitlines()
    every, _ = parse(lines, {})
    found = [issued for issued in every if issued.request.length == 16384]
    assert len(every) > len(found) > 20
    assert {issued.reads for issued in found} == {True, False}
    assert describe((issued.request for issued in found), 16384) == "random"


@pytest.mark.parametrize(
    ("what", "kept"),
    [
        ("R", True), ("W", True), ("WS", True), ("RA", True), ("FWFS", True), ("WFS", True),
        ("RM", False), ("WM", False), ("WSM", False), ("D", False), ("FF", False), ("F", False),
        ("N", False),
    ],
)  # fmt: skip
def test_data_alone_count(what: str, kept: bool) -> None:
    found, _ = parse([line(what)], {})
    assert bool(found) == kept


def test_a_flush_without_data_is_none() -> None:
    text = " x-1 [000] ..... 1.0: block_rq_issue: 7,0 FW 0 () 18446744073709551615 + 0 n [x]\n"
    assert parse([text], {}) == ([], None)


def test_what_follows_a_full_buffer_is_not_everything() -> None:
    lines = [line("R", "1.0", 0), line("R", "2.0", 1), line("R", "3.0", 1), line("R", "4.0", 0)]
    found, until_s = parse(lines, {0: 0, 1: 12})
    assert (len(found), until_s) == (3, 3.0)
    assert parse(lines, {2: 1}) == ([], 0.0)


def test_what_is_no_event_is_passed_over() -> None:
    broken = [NEW[:60], "\0\xff", "[000] 1.0: block_rq_issue: ", line("R").replace("+ 8", "+ x")]
    assert parse(broken, {}) == ([], None)
