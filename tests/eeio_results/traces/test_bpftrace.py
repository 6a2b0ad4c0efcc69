"""Lines of our bpftrace program to events: of a real trace, and of damaged ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import ToolOutputError
from eeio.traces import bpftrace
from eeio.traces.events import Unobserved, find_phases

REAL = Path(__file__).parents[2] / "data" / "bpftrace" / "0.17" / "shell.txt"
F, G = "/srv/eeio-example/sub/f", "/srv/eeio-example/sub/g"

TRACE = """\
eeio-bpftrace 1 1000
n ffff1 7 9 0 f
n ffff1 7 9 1 data
f ffff1 7 9 2 266338304
w 20 3000000000 3000000100 ffff1 7 9 4096 512
r 10 2000000000 2000000050 ffff1 7 9 0 4096
end 4000

@events: 2
clock 1000000000
mount 254:0 / /
"""


def parsed(text: str = TRACE) -> list[bpftrace.Event]:
    return bpftrace.parse(text.splitlines(keepends=True))


def test_a_real_trace() -> None:
    """Opened relative to a directory changed to, appended through a descriptor kept over fork."""
    events = bpftrace.read(REAL)
    assert [(e.operation, e.offset, e.length) for e in events if e.file == F] == [
        *(("write", n * 65536, 65536) for n in range(10)),
        # dd skips by lseek.
        *(("read", n * 32768, 32768) for n in range(4, 20)),
    ]
    assert [(e.operation, e.offset, e.length) for e in events if e.file == G] == [
        ("write", 0, 2), ("write", 2, 2), ("write", 4, 2), ("write", 6, 2),
    ]  # fmt: skip
    # The loader's reads of /usr/lib are not the program's work.
    assert {e.file for e in events} == {F, G}
    write, read = find_phases(events)
    assert (write.bytes_written, write.processes, write.spatiality) == (655368, 2, "sequential")
    assert (read.bytes_read, read.processes, read.spatiality) == (524288, 1, "sequential")


def test_times_are_put_on_the_monotonic_clock_and_sorted() -> None:
    assert [event[:7] for event in parsed()] == [
        (1.0, pytest.approx(50e-9), "10", "read", "/data/f", 0, 4096),
        (2.0, pytest.approx(100e-9), "20", "write", "/data/f", 4096, 512),
    ]


@pytest.mark.parametrize(
    ("mounts", "path"),
    [
        ("mount 254:0 / /\nmount 254:1 / /data\n", "/data/f"),
        ("mount 254:0 / /mnt/my\\040disk\n", "/mnt/my disk/data/f"),
        # A bind mount of a part, and of another part.
        ("mount 254:0 /data /scratch\nmount 254:0 /other /x\n", "/scratch/f"),
        ("mount 254:0 /dat /scratch\n", "/[254:0]/data/f"),
        ("", "/[254:0]/data/f"),
    ],
)
def test_where_a_file_system_is_mounted(mounts: str, path: str) -> None:
    assert {e.file for e in parsed(TRACE.replace("mount 254:0 / /\n", mounts))} == {path}


def test_an_inode_number_that_is_used_again_is_another_file() -> None:
    text = TRACE.replace("w 20 3000000000 3000000100 ffff1 7 9", "w 20 3 4 ffff1 7 10")
    text += "n ffff1 7 10 0 g\nf ffff1 7 10 1 266338304\n"
    assert {e.file for e in parsed(text)} == {"/data/f", "/g"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("end 4000", "Lost 17 events\nend 4000", "lost 17 events"),
        ("@events: 2", "@events: 5", "2 of 5 events"),
        ("@events: 2\n", "", "2 of 0 events"),
        ("end 4000\n", "", "cut off"),
        ("eeio-bpftrace 1 1000\n", "", "not a trace"),
        ("n ffff1 7 9 1 data\n", "", "a part of a file's name is missing"),
        ("f ffff1 7 9 2 266338304\n", "", "file or number is missing"),
        ("f ffff1 7 9 2", "f ffff1 7 9 64", "deeper than 64"),
        ("n ffff1 7 9 0 f", "n ffff1 7 9 0 " + 127 * "x", "longer than 126 bytes"),
        ("4096 512", "4096", ":5: not a line of eeio's bpftrace program"),
        ("4096 512", "4096 x", "file or number is missing"),
        ("end", "WARNING: Failed to map_update_elem: No space left (-28)\nend", "not a line"),
    ],
)
def test_a_damaged_trace(old: str, new: str, message: str) -> None:
    assert old in TRACE
    with pytest.raises(ToolOutputError, match=message):
        parsed(TRACE.replace(old, new))


def test_io_without_a_call_per_request_is_named() -> None:
    text = TRACE.replace(
        "end 4000",
        "m 10 2500000000 2500000050 ffff1 7 9 1 139718000000000\nq io_uring\nq libaio\nend 4000",
    ).replace("@events: 2", "@events: 5")
    unobserved: set[Unobserved] = set()
    events = bpftrace.parse(text.splitlines(keepends=True), "x", unobserved)
    assert events == parsed()
    assert unobserved == {("mmap", "/data/f"), ("io_uring", None), ("libaio", None)}


@given(st.data())
def test_the_order_of_lines_does_not_matter(data: st.DataObject) -> None:
    lines = data.draw(st.permutations(TRACE.splitlines(keepends=True)))
    assert bpftrace.parse(lines) == parsed()


@given(st.integers(0, len(REAL.read_text().partition("end ")[0])))
def test_a_trace_cut_anywhere_is_rejected(length: int) -> None:
    with pytest.raises(ToolOutputError):
        parsed(REAL.read_text()[:length])
