"""Traces to phases: real ones by strace and fio, made ones for every pattern and every damage."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import EeioError, ToolOutputError
from eeio.traces import darshan, logs, strace
from eeio.traces.events import ALL_FILES, Event, Unobserved, find_phases, transfers

DATA = Path(__file__).parents[1] / "data"


STEP_S = 0.01


def stream(
    operation: str, offsets: list[int], start_s: float = 0.0, size: int = 4096
) -> list[Event]:
    return [
        Event(start_s + STEP_S * n, STEP_S / 2, "1", operation, "/data/f", offset, size)
        for n, offset in enumerate(offsets)
    ]


SEQUENTIAL = [4096 * n for n in range(40)]


def test_a_phase_ends_when_the_operation_changes() -> None:
    events = stream("write", SEQUENTIAL) + stream("read", SEQUENTIAL, start_s=0.5)
    write, read = find_phases(events)
    assert (write.operation, write.requests, write.bytes_written) == ("write", 40, 40 * 4096)
    assert (read.operation, read.bytes_read, read.bytes_written) == ("read", 40 * 4096, 0)
    assert write.end_s == pytest.approx(0.395)
    assert read.start_s == 0.5


def test_a_phase_ends_with_a_pause() -> None:
    events = stream("write", SEQUENTIAL) + stream("write", SEQUENTIAL, start_s=1.0)
    assert len(find_phases(events)) == 2
    assert len(find_phases(events, gap_s=1.0)) == 1


def test_a_long_request_is_no_pause() -> None:
    events = [Event(0.0, 5.0, "1", "write", "/f", 0, 1), Event(5.1, 0.1, "1", "write", "/f", 1, 1)]
    assert len(find_phases(events)) == 1


@pytest.mark.parametrize(
    ("offsets", "spatiality"),
    [
        (SEQUENTIAL, "sequential"),
        ([16384 * n for n in range(40)], "strided"),
        # Two nested strides, as a cell's rows and planes make them.
        ([1_000_000 * (n // 8) + 16384 * (n % 8) for n in range(64)], "strided"),
        ([(n * 7919) % 1009 * 4096 for n in range(200)], "random"),
        ([0], "sequential"),
    ],
)
def test_spatiality(offsets: list[int], spatiality: str) -> None:
    (phase,) = find_phases(stream("read", offsets))
    assert phase.spatiality == spatiality


def test_processes_are_judged_each_for_itself() -> None:
    both = stream("write", SEQUENTIAL) + [
        e._replace(process="2", offset=(e.offset or 0) + 10**9) for e in stream("write", SEQUENTIAL)
    ]
    (phase,) = find_phases(both)
    assert (phase.processes, phase.spatiality) == (2, "sequential")


def test_read_modify_write_is_one_mixed_phase() -> None:
    events = []
    for n in range(100):
        events += stream("read", [n * 4096], start_s=0.02 * n)
        events += stream("write", [n * 4096], start_s=0.02 * n + 0.01)
    (phase,) = find_phases(events)
    assert (phase.operation, phase.bytes_read, phase.bytes_written) == ("mixed", 409600, 409600)


def test_read_modify_write_that_goes_forward_is_sequential() -> None:
    events = []
    for n in range(100):
        events += stream("read", [n * 4096], start_s=0.02 * n)
        events += stream("write", [n * 4096], start_s=0.02 * n + 0.01)
    assert find_phases(events)[0].spatiality == "sequential"


def test_a_short_phase_of_one_operation_is_not_mixed() -> None:
    events = stream("write", SEQUENTIAL[:3])
    events += stream("read", SEQUENTIAL, start_s=0.1)
    events += stream("write", SEQUENTIAL[:5], start_s=0.6)
    assert [(p.operation, p.requests) for p in find_phases(events)] == [
        ("write", 3), ("read", 40), ("write", 5),
    ]  # fmt: skip


def test_request_sizes() -> None:
    events = stream("write", SEQUENTIAL) + stream("write", [10**6], start_s=0.4, size=512)
    (phase,) = find_phases(events)
    assert (phase.request_size_bytes, phase.smallest_bytes, phase.largest_bytes) == (
        4096,
        512,
        4096,
    )
    assert phase.request_size_share == pytest.approx(40 / 41)


def test_without_offsets_the_spatiality_is_unknown() -> None:
    events = [e._replace(offset=None) for e in stream("read", SEQUENTIAL)]
    assert find_phases(events)[0].spatiality == "unknown"


@given(
    st.lists(
        st.tuples(
            st.floats(0, 10), st.floats(0, 1), st.sampled_from("ab"),
            st.sampled_from(["read", "write"]), st.integers(0, 10**6), st.integers(1, 10**6),
        ),
        max_size=60,
    )
)  # fmt: skip
def test_no_byte_is_lost(rows: list[tuple[float, float, str, str, int, int]]) -> None:
    events = [Event(t, d, p, o, "/f", at, n) for t, d, p, o, at, n in rows]
    phases = find_phases(events)
    assert sum(p.requests for p in phases) == len(events)
    assert sum(p.bytes_moved for p in phases) == sum(e.length for e in events)
    assert all(p.start_s <= p.end_s for p in phases)


# --- strace


ENDED = "9999.0 +++ exited with 0 +++\n"


def parsed(text: str) -> list[Event]:
    return list(strace.parse((text + ENDED).splitlines(), "7"))


def test_calls_of_strace() -> None:
    events = parsed(
        '1000.5 openat(AT_FDCWD</home>, "/home/f", O_RDWR) = 3</home/f> <0.000010>\n'
        '1000.6 write(3</home/f>, ""..., 4096) = 4096 <0.000200>\n'
        '1000.7 write(3</home/f>, ""..., 4096) = 100 <0.000200>\n'
        "1000.8 lseek(3</home/f>, 65536, SEEK_SET) = 65536 <0.000002>\n"
        '1000.9 read(3</home/f>, ""..., 512) = 512 <0.000100>\n'
        '1001.0 pwrite64(3</home/f>, ""..., 131072, 262144) = 131072 <0.1>\n'
        '1001.1 preadv2(3</home/f>, [{iov_base=""..., iov_len=8192}], 1, 8192, 0) = 8192 <0.1>\n'
        '1001.2 read(3</home/f>, "", 512) = 0 <0.000100>\n'
        '1001.3 pwrite64(3</home/f>, ""..., 10, 0) = -1 ENOSPC (No space left on device) <0.1>\n'
    )
    assert [(e.operation, e.offset, e.length) for e in events] == [
        ("write", 0, 4096), ("write", 4096, 100), ("read", 65536, 512),
        ("write", 262144, 131072), ("read", 8192, 8192),
    ]  # fmt: skip
    assert events[0] == Event(1000.6, 0.0002, "7", "write", "/home/f", 0, 4096, True)


def test_a_descriptor_keeps_its_place_when_it_is_doubled() -> None:
    events = parsed(
        '1.0 openat(AT_FDCWD</>, "/f", O_WRONLY) = 3</f> <0.1>\n'
        "1.1 dup2(3</f>, 1</dev/pts/0>) = 1</f> <0.1>\n"
        '1.2 write(1</f>, ""..., 10) = 10 <0.1>\n'
        '1.3 write(1</f>, ""..., 10) = 10 <0.1>\n'
    )
    assert [e.offset for e in events] == [0, 10]


OPENED = '1.0 openat(AT_FDCWD</>, "f", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3</f> <0.1>\n'


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        pytest.param(
            '2.0 dup(3</f>) = 4</f> <0.1>\n2.1 write(3</f>, ""..., 50) = 50 <0.1>\n'
            '2.2 write(4</f>, ""..., 60) = 60 <0.1>\n2.3 write(3</f>, ""..., 70) = 70 <0.1>\n',
            [0, 50, 110],
            id="both-descriptors-move-one-place",
        ),
        pytest.param(
            '2.0 write(3</f>, ""..., 5) = 5 <0.1>\n2.1 fcntl(3</f>, F_DUPFD, 10) = 10</f> <0.1>\n'
            '2.2 write(10</f>, ""..., 6) = 6 <0.1>\n2.3 write(3</f>, ""..., 7) = 7 <0.1>\n',
            [0, 5, 11],
            id="a-shell-saves-one-by-fcntl",
        ),
        pytest.param(
            '2.0 openat(AT_FDCWD</>, "f", O_WRONLY|O_APPEND) = 4</f> <0.1>\n'
            '2.1 write(4</f>, ""..., 5) = 5 <0.1>\n2.2 pwrite64(4</f>, ""..., 6, 0) = 6 <0.1>\n'
            "2.3 lseek(4</f>, 0, SEEK_CUR) = 11 <0.1>\n"
            '2.4 read(4</f>, ""..., 1) = 1 <0.1>\n2.5 write(4</f>, ""..., 1) = 1 <0.1>\n',
            [None, None, 11, None],
            id="what-is-appended-goes-to-the-end-wherever-that-is",
        ),
        pytest.param(
            "2.0 fcntl(3</f>, F_SETFL, O_RDWR|O_APPEND) = 0 <0.1>\n"
            '2.1 write(3</f>, ""..., 5) = 5 <0.1>\n'
            "2.2 fcntl(3</f>, F_SETFL, O_RDWR) = 0 <0.1>\n"
            '2.3 pwrite64(3</f>, ""..., 5, 7) = 5 <0.1>\n',
            [None, 7],
            id="appending-from-then-on",
        ),
        pytest.param(
            "2.0 pwritev2(3</f>, [...], 1, -1, 0) = 30 <0.1>\n"
            "2.1 preadv2(3</f>, [...], 1, -1, RWF_NOWAIT) = 40 <0.1>\n"
            "2.2 pwritev2(3</f>, [...], 1, 0, RWF_APPEND) = 50 <0.1>\n",
            [0, 30, None],
            id="minus-one-is-where-the-file-is",
        ),
        pytest.param(
            "2.0 _llseek(3</f>, 5000000000, [5000000000], SEEK_SET) = 0 <0.1>\n"
            '2.1 write(3</f>, ""..., 5) = 5 <0.1>\n',
            [5_000_000_000],
            id="seeking-on-32-bit",
        ),
        pytest.param(
            "2.0 close(3</f>) = 0 <0.1>\n"
            '2.1 write(3</f>, ""..., 5) = 5 <0.1>\n2.2 write(3</f>, ""..., 5) = 5 <0.1>\n',
            [None, None],
            id="a-descriptor-that-came-from-nowhere",
        ),
    ],
)
def test_where_a_descriptor_is(text: str, offsets: list[int | None]) -> None:
    assert [e.offset for e in transfers(parsed(OPENED + text))] == offsets


def test_a_call_that_copies_between_files_is_a_read_and_a_write() -> None:
    events = parsed(
        OPENED + '1.1 openat(AT_FDCWD</>, "g", O_RDWR) = 4</g> <0.1>\n'
        "2.0 copy_file_range(3</f>, NULL, 4</g>, NULL, 9000, 0) = 1000 <0.1>\n"
        "2.1 copy_file_range(3</f>, [5000], 4</g>, [7000], 900, 0) = 900 <0.1>\n"
        "2.2 sendfile(4</g>, 3</f>, NULL, 300) = 300 <0.1>\n"
        "2.3 sendfile(4</g>, 3</f>, [4096] => [4296], 300) = 200 <0.1>\n"
        "2.4 splice(3</f>, [10], 6<pipe:[9]>, NULL, 500, 0) = 500 <0.1>\n"
        "2.5 splice(5<pipe:[9]>, NULL, 4</g>, NULL, 500, 0) = 500 <0.1>\n"
        "2.6 copy_file_range(3</f>, NULL, 4</g>, NULL, 9000, 0) = 0 <0.1>\n"
        "2.7 sendfile(1</dev/null>, 3</f>, NULL, 300) = 40 <0.1>\n"
        "2.8 sendfile(4</g>, 3</f>, NULL, 300) = -1 EINVAL (Invalid argument) <0.1>\n"
    )
    assert [(e.start_s, e.operation, e.file, e.offset, e.length) for e in events] == [
        (2.0, "read", "/f", 0, 1000), (2.0, "write", "/g", 0, 1000),
        (2.1, "read", "/f", 5000, 900), (2.1, "write", "/g", 7000, 900),
        (2.2, "read", "/f", 1000, 300), (2.2, "write", "/g", 1000, 300),
        (2.3, "read", "/f", 4096, 200), (2.3, "write", "/g", 1300, 200),
        (2.4, "read", "/f", 10, 500), (2.5, "write", "/g", 1500, 500),
        (2.7, "read", "/f", 1300, 40),
    ]  # fmt: skip


def test_a_copy_in_one_call_is_one_phase_with_the_time_of_one_call() -> None:
    (phase,) = find_phases(
        parsed("2.0 copy_file_range(3</f>, [0], 4</g>, [0], 9000, 0) = 1000 <0.25>\n")
    )
    assert (phase.operation, phase.spatiality, phase.bytes_read, phase.bytes_written) == (
        "mixed", "sequential", 1000, 1000,
    )  # fmt: skip
    assert phase.io_s == pytest.approx(0.25)


@pytest.mark.parametrize("call", ["copy_file_range(3</f>, 4</g>, 1)", "sendfile(x)", "splice(3)"])
def test_a_copy_without_two_files_is_damaged(tmp_path: Path, call: str) -> None:
    (tmp_path / "s.7").write_text(f"1.0 {call} = 5 <0.1>\n{ENDED}")
    with pytest.raises(ToolOutputError, match="no two files in it"):
        strace.read([tmp_path / "s.7"])


def test_io_without_a_call_per_request_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.7").write_text(
        "1.0 mmap(NULL, 40, PROT_READ|PROT_WRITE, MAP_SHARED, 3</data/f>, 0) = 0x7f2b93169000\n"
        "1.1 mmap2(NULL, 40, PROT_READ, MAP_PRIVATE, 3</data/\\303\\274>, 0) = 0xb6f2b000\n"
        "1.2 mmap(NULL, 40, PROT_READ, MAP_SHARED, 3</data/no>, 0) = -1 ENODEV (No such device)\n"
        "1.3 mmap(NULL, 40, PROT_READ, MAP_SHARED|MAP_ANONYMOUS, -1, 0) = 0x7f2b93169000\n"
        "1.4 mmap(NULL, 40, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3</data/l.so>, 0) = 0x7f0000\n"
        "1.5 mmap(NULL, 40, PROT_READ|PROT_EXEC, MAP_PRIVATE, 3</data/l.so>, 0) = 0x7f0000\n"
        "1.6 mmap(NULL, 40, PROT_READ, MAP_PRIVATE, 3</usr/lib/locale/x>, 0) = 0x7f0000\n"
        "1.7 io_uring_setup(8, {flags=0}) = 4<anon_inode:[io_uring]>\n"
        "1.8 io_setup(8, [0x7f2b9310f000]) = 0\n" + ENDED
    )
    unobserved: set[Unobserved] = set()
    assert strace.read([tmp_path / "s.7"], unobserved) == []
    assert unobserved == {
        ("mmap", "/data/f"), ("mmap", "/data/ü"), ("io_uring", None), ("libaio", None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("start", "offsets"),
    [
        ("fork() = 8", [0, 11, 33]),
        ("clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|SIGCHLD) = 8", [0, 11, 33]),
        # Nobody was seen to start it: it may share the place, so that nobody's is known any more.
        ("dup2(1</dev/null>, 2</dev/null>) = 2</dev/null>", [0, None, None]),
    ],
)
def test_a_place_is_shared_with_children_and_threads(
    tmp_path: Path, start: str, offsets: list[int | None]
) -> None:
    (tmp_path / "s.7").write_text(
        OPENED + f'2.0 write(3</f>, ""..., 11) = 11 <0.1>\n2.1 {start} <0.1>\n'
        '2.3 write(3</f>, ""..., 33) = 33 <0.1>\n' + ENDED
    )
    (tmp_path / "s.8").write_text('2.2 write(3</f>, ""..., 22) = 22 <0.1>\n' + ENDED)
    events = strace.read([tmp_path / "s.7", tmp_path / "s.8"])
    assert [(e.process, e.offset) for e in events] == list(
        zip(("7", "8", "7"), offsets, strict=True)
    )


def test_a_thread_opens_for_all(tmp_path: Path) -> None:
    (tmp_path / "s.7").write_text(
        '1.0 openat(AT_FDCWD</>, "f", O_RDWR) = 3</f> <0.1>\n'
        '1.1 read(3</f>, ""..., 11) = 11 <0.1>\n'
        "1.2 clone3({flags=CLONE_VM|CLONE_FILES, exit_signal=0}, 88) = 8 <0.1>\n"
        '1.5 read(3</f>, ""..., 11) = 11 <0.1>\n' + ENDED
    )
    (tmp_path / "s.8").write_text(
        '1.3 close(3</f>) = 0 <0.1>\n1.4 openat(AT_FDCWD</>, "f", O_RDWR) = 3</f> <0.1>\n' + ENDED
    )
    events = transfers(strace.read([tmp_path / "s.7", tmp_path / "s.8"]))
    assert [e.offset for e in events] == [0, 0]


@pytest.mark.parametrize(
    "path",
    ["/dev/null", "pipe:[1]", "socket:[2]", "/proc/stat", "/usr/lib/x.so", "/etc/passwd", "/lib/x"],
)
def test_what_is_no_data_is_left_out(path: str) -> None:
    assert parsed(f'1.0 read(3<{path}>, ""..., 10) = 10 <0.1>\n') == []


@pytest.mark.parametrize(
    "path", ["/library/x", "/dev/shm/x", "/run/media/me/disk/x", "/optimum", "/home/x"]
)
def test_what_is_data_is_kept(path: str) -> None:
    assert len(parsed(f'1.0 read(3<{path}>, ""..., 10) = 10 <0.1>\n')) == 1


@pytest.mark.parametrize("path", ["/opt/results/x", "/usr/local/data", "/run/x", "/etc/x"])
def test_what_is_written_is_data_wherever_it_lies(path: str) -> None:
    assert len(parsed(f'1.0 write(3<{path}>, ""..., 10) = 10 <0.1>\n')) == 1


def test_names_are_as_they_are_on_the_disk() -> None:
    (event,) = parsed('1.0 read(3</home/\\303\\274\\76x\\t\\\\>, ""..., 10) = 10 <0.1>\n')
    assert event.file == "/home/ü>x\t\\"


@pytest.mark.parametrize("cut", [0, len(ENDED), len(ENDED) + 1, len(ENDED) + 14])
def test_a_strace_that_is_cut_off(tmp_path: Path, cut: int) -> None:
    """Also where what is left of a line is one, and tells `= 40` of 4096 bytes."""
    path = tmp_path / "strace.7"
    text = OPENED + '2.0 write(3</f>, ""..., 4096) = 4096 <0.000200>\n' + ENDED
    path.write_text(text[: len(text) - cut])
    if cut == 0:
        assert len(strace.read([path])) == 1
        return
    with pytest.raises(ToolOutputError, match=r"cut off|not a line of strace"):
        strace.read([path])


def test_a_call_that_was_interrupted_is_put_together() -> None:
    (event,) = parsed(
        '1.0 pwrite64(3</f>, ""..., 10, 0 <unfinished ...>\n'
        "1.5 <... pwrite64 resumed>) = 10 <0.5>\n"
    )
    assert (event.start_s, event.length, event.duration_s) == (1.0, 10, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\n", "not a line of strace"),
        ('2.0 read(3</f>, ""..., 1) = 1 <0.1>\n1.0 read(3</f>, ""..., 1) = 1 <0.1>\n', "backwards"),
        ('1.0 pwrite64(3</f>, ""..., 10', "not a line"),
    ],
)
def test_a_damaged_strace(text: str, message: str) -> None:
    with pytest.raises(ToolOutputError, match=message):
        parsed(text)


# --- other tools' traces


@pytest.mark.parametrize("version", ["2", "3"])
def test_iologs_of_fio(version: str) -> None:
    """64 random reads of 4 KiB by fio 3.33, which writes version 3; version 2 is cut from it."""
    events = logs.read(DATA / "iolog" / f"v{version}.log")
    assert len(events) == 64
    assert {e.length for e in events} == {4096}
    (phase,) = find_phases(events, gap_s=10)
    assert (phase.operation, phase.spatiality) == ("read", "random")


# As `darshan-dxt-parser --show-incomplete` says it (Darshan 3.4).
INCOMPLETE = "# *WARNING*: The DXT_POSIX module contains incomplete data!\n"
DXT = """\
# DXT, file_id: 123, file_name: /scratch/out
# DXT, rank: 0, hostname: n1
# DXT, write_count: 2, read_count: 1
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0  write        0               0       262144      0.0043      0.0051
 X_POSIX       0  write        1          262144       262144      0.0052      0.0060
 X_POSIX       0   read        0               0         1024      0.0070      0.0071
"""


def test_dxt() -> None:
    events = list(logs.parse_dxt(DXT))
    assert [(e.operation, e.offset, e.length, e.file) for e in events] == [
        ("write", 0, 262144, "/scratch/out"), ("write", 262144, 262144, "/scratch/out"),
        ("read", 0, 1024, "/scratch/out"),
    ]  # fmt: skip
    assert events[0].duration_s == pytest.approx(0.0008)


def test_a_read_at_the_end_of_a_file_is_no_event_of_dxt() -> None:
    events = list(logs.parse_dxt(DXT.replace("         1024 ", "            0 ")))
    assert [e.operation for e in events] == ["write", "write"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DXT.rsplit("\n", 2)[0] + "\n", "cut off: 2 of 3"),
        (DXT[:-20], "not a line of DXT"),
        (DXT[:-2], "cut off: the last line does not end"),
        (DXT + "\n# DXT, file_id: 124, file_name: /scratch/more\n", "cut off: a file has no segm"),
        ("# *** \n" + INCOMPLETE + DXT, "incomplete"),
        (DXT.replace("0.0071", "0.0001"), "ends before it starts"),
        ("fio version 1 iolog\nx\n", "version 2 or 3"),
        ("fio version 3 iolog\n12 /f read 0\n", "not a line of an iolog"),
        ("fio version 3 iolog\n12 /f read -4096 4096\n", "not a line of an iolog"),
        ("fio version 3 iolog\n12 /f read 0 0\n", "not a line of an iolog"),
        ("fio version 3 iolog\nnan /f read 0 1\n", "not a line of an iolog"),
        ("fio version 3 iolog\n12 /f read 0 1\n11 /f read 0 1\n", ":3: the time runs backwards"),
        ("fio version 2 iolog\n/f wait -5 0\n", "not a line of an iolog"),
        ("fio version 2 iolog\n/f wait 5 0\n/f wait 4 0\n", ":3: the time runs backwards"),
        ("time,client,op,offset,length\nnan,0,read,0,1\n", "not time,client"),
        ("time,client,op,offset,length\ninf,0,read,0,1\n", "not time,client"),
        ("time,client,op,offset,length\n0,0,erase,0,1\n", "not time,client"),
        ("time,client,op,offset,length\n1,0,read,0,1\n0,0,read,0,1\n", "backwards"),
        ("time,client,op,offset,length\n", "no read and no write"),
        ("something else\n", "no trace that is known"),
    ],
)
def test_damaged_traces(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(ToolOutputError, match=message):
        logs.read(path)


def test_a_darshan_log_without_pydarshan_reports_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "darshan", None)  # as if it were not installed
    with pytest.raises(EeioError, match="pip install darshan"):
        darshan.read(tmp_path / "x.darshan")


def test_a_darshan_log_that_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Darshan's runtime stops recording where its memory ends, and marks the module."""
    report = SimpleNamespace(modules={"DXT_POSIX": {"partial_flag": True}}, records={})
    fake = SimpleNamespace(DarshanReport=lambda path, read_all: report)
    monkeypatch.setitem(sys.modules, "darshan", fake)
    (tmp_path / "x.darshan").touch()
    with pytest.raises(ToolOutputError, match="incomplete"):
        darshan.read(tmp_path / "x.darshan")


def test_a_darshan_log() -> None:
    """The log that PyDarshan brings: 1 process, 1497 writes, 6126 reads, of which 10 met an end."""
    package = pytest.importorskip("darshan", reason="PyDarshan is not installed")
    path = Path(package.__file__).parent / "examples" / "example_logs" / "dxt.darshan"
    events = darshan.read(path)
    counts = Counter(event.operation for event in events)
    assert counts == {"write": 1497, "read": 6116}
    assert sum(p.requests for p in find_phases(events)) == 1497 + 6116


def test_a_replay_puts_files_behind_each_other() -> None:
    events = [*stream("write", [0, 4096]), Event(0.5, 0.0, "2", "read", "/other", 512, 100)]
    text = logs.to_csv(events)
    assert text.splitlines() == [
        "time,client,op,offset,length",
        "0.000000,0,write,0,4096",
        "0.010000,0,write,4096,4096",
        f"0.500000,1,read,{8192 + 512},100",
    ]
    again = list(logs.parse_csv(text))
    assert [e.length for e in again] == [4096, 4096, 100]
    with pytest.raises(ToolOutputError, match="contains no offset"):
        logs.to_csv([events[0]._replace(offset=None)])


# --- flushes, closes and the page cache


@pytest.mark.parametrize(
    ("flags", "call", "cached"),
    [
        ("O_WRONLY", 'write(3</f>, ""..., 9) = 9', True),
        ("O_WRONLY|O_DIRECT", 'write(3</f>, ""..., 9) = 9', False),
        ("O_WRONLY|O_SYNC", 'write(3</f>, ""..., 9) = 9', False),
        ("O_WRONLY|O_DSYNC", 'pwrite64(3</f>, ""..., 9, 0) = 9', False),
        ("O_WRONLY", 'pwritev2(3</f>, [{iov_base="", iov_len=9}], 1, 0, RWF_DSYNC) = 9', False),
        ("O_WRONLY", 'pwritev2(3</f>, [{iov_base="", iov_len=9}], 1, 0, RWF_HIPRI) = 9', True),
        ("O_WRONLY", 'write(4</f>, ""..., 9) = 9', None),
        ("O_WRONLY", "sendfile(3</f>, 5</g>, [0], 9) = 9", True),
    ],
)
def test_whether_a_write_goes_into_the_page_cache(
    flags: str, call: str, cached: bool | None
) -> None:
    events = parsed(f'1.0 openat(AT_FDCWD</>, "f", {flags}) = 3</f> <0.1>\n2.0 {call} <0.1>\n')
    assert [e.page_cache for e in events if e.operation == "write"] == [cached]


def test_fcntl_switches_direct_io_and_cannot_switch_sync() -> None:
    events = parsed(
        '1.0 openat(AT_FDCWD</>, "f", O_RDWR|O_DIRECT) = 3</f> <0.1>\n'
        '1.1 openat(AT_FDCWD</>, "g", O_RDWR|O_DSYNC) = 4</g> <0.1>\n'
        '1.2 write(3</f>, ""..., 5) = 5 <0.1>\n1.3 write(4</g>, ""..., 5) = 5 <0.1>\n'
        "1.4 fcntl(3</f>, F_SETFL, O_RDWR) = 0 <0.1>\n1.5 fcntl(4</g>, F_SETFL, O_RDWR) = 0 <0.1>\n"
        '1.6 write(3</f>, ""..., 5) = 5 <0.1>\n1.7 write(4</g>, ""..., 5) = 5 <0.1>\n'
    )
    assert [e.page_cache for e in events] == [False, False, True, False]


def test_flushes_and_slow_closes_are_events() -> None:
    events = parsed(
        OPENED + "2.0 fsync(3</f>) = 0 <0.5>\n2.6 fdatasync(3</f>) = 0 <0.1>\n"
        "2.7 sync_file_range(3</f>, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0 <0.1>\n"
        "2.8 syncfs(3</f>) = 0 <0.1>\n2.9 sync() = 0 <0.1>\n"
        "3.0 fsync(5</proc/x>) = 0 <0.5>\n3.5 fsync(3</f>) = -1 EIO (Input/output error) <0.1>\n"
        "4.0 close(3</f>) = 0 <0.002>\n4.1 close(4</g>) = 0 <0.0005>\n"
        "4.2 close(5</usr/lib/x.so>) = 0 <0.5>\n"
    )
    assert [(e.operation, e.start_s, e.file, e.length, e.page_cache) for e in events] == [
        ("flush", 2.0, "/f", 0, False), ("flush", 2.6, "/f", 0, False),
        ("flush", 2.7, "/f", 0, True), ("flush", 2.8, "/f", 0, True),
        ("flush", 2.9, ALL_FILES, 0, False), ("close", 4.0, "/f", 0, None),
    ]  # fmt: skip


def test_files_that_were_opened_to_write(tmp_path: Path) -> None:
    (tmp_path / "s.7").write_text(
        OPENED + '1.1 openat(AT_FDCWD</>, "r", O_RDONLY) = 4</r> <0.1>\n'
        '1.2 openat(AT_FDCWD</>, "null", O_WRONLY) = 5</dev/null> <0.1>\n'
        '1.3 openat(AT_FDCWD</>, "no", O_WRONLY) = -1 ENOENT (No such file or directory) <0.1>\n'
        '1.4 creat("\\303\\274", 0666) = 6</data/\\303\\274> <0.1>\n' + ENDED
    )
    assert strace.opened_to_write([tmp_path / "s.7"]) == {"/f", "/data/ü"}


def test_a_replay_has_the_reads_and_writes(tmp_path: Path) -> None:
    events = parsed(OPENED + '2.0 write(3</f>, ""..., 9) = 9 <0.1>\n2.2 fsync(3</f>) = 0 <0.5>\n')
    assert logs.to_csv(events).splitlines()[1:] == ["0.000000,0,write,0,9"]
