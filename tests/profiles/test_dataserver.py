"""The emulated data servers: every byte against the model, damage, bad input, dying ranks."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from eeio.record import tools
from tests.profiles import programs
from tests.profiles.harness import Installer
from tests.profiles.programs import Program

PROGRAM = "dataserver"

pytestmark = pytest.mark.tools

PAGE = 4096
MASK = (1 << 64) - 1


# --- the model, from its description and not from the C program -----------------------------------


@dataclass(frozen=True)
class Model:
    """Where the bytes of a striped file lie: how stripes go round-robin."""

    servers: int
    clients: int
    stripe: int
    request: int
    client_bytes: int
    strided: bool

    def requests(self) -> Iterator[int]:
        """Logical offsets."""
        for i in range(self.client_bytes // self.request):
            for client in range(self.clients):
                if self.strided:
                    yield (i * self.clients + client) * self.request
                else:
                    yield client * self.client_bytes + i * self.request

    def touched(self) -> list[set[int]]:
        """Of each server, the local pages that requests touch, stepping page by logical page."""
        pages: list[set[int]] = [set() for _ in range(self.servers)]
        for offset in self.requests():
            for at in range(offset, offset + self.request, PAGE):
                number, rest = divmod(at, self.stripe)
                row, server = divmod(number, self.servers)
                pages[server].add((row * self.stripe + rest) // PAGE)
        return pages

    def options(self) -> list[str]:
        pattern = "strided" if self.strided else "contiguous"
        return [
            f"clients={self.clients}", f"stripe={self.stripe}", f"request={self.request}",
            f"client_bytes={self.client_bytes}", f"pattern={pattern}",
        ]  # fmt: skip


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stamp(seed: int, server: int, page: int) -> int:
    return mix((seed * 31 + server + 1) & MASK) ^ mix(page + 1)


MODELS = [
    Model(1, 1, 16384, 16384, 65536, strided=False),
    Model(1, 3, 4096, 12288, 36864, strided=True),  # a request of three stripes
    Model(2, 3, 32768, 8192, 40960, strided=False),  # a stripe of four requests
    Model(2, 1, 12288, 20480, 61440, strided=True),  # neither divides the other
    Model(3, 2, 4096, 20480, 40960, strided=False),
    Model(3, 4, 12288, 8192, 24576, strided=True),
]


@pytest.mark.fast_variants(4)
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("api", ["posix", "mpiio"])
def test_each_page_lies_where_the_model_puts_it(
    program: Program, tmp_path: Path, model: Model, api: str
) -> None:
    where = [*model.options(), f"directory={tmp_path}", "seed=7", f"api={api}"]
    program.good(model.servers, "operation=write", *where, f"json={tmp_path}/w.json")
    total = 0
    for server, pages in enumerate(model.touched()):
        path = tmp_path / f"eeio-dataserver.{server}"
        content = path.read_bytes()
        assert len(content) == (max(pages) + 1) * PAGE if pages else content == b""
        borne = {
            page
            for page in range(len(content) // PAGE)
            if int.from_bytes(content[page * PAGE : page * PAGE + 8], "little")
            == stamp(7, server, page)
        }
        assert borne == pages
        total += sum(stamp(7, server, page) for page in pages)
    written = json.loads((tmp_path / "w.json").read_text())
    moved = model.clients * model.client_bytes
    assert written["checksum"]["written"] == f"{total & MASK:016x}"
    assert written["aggregate"]["bytes_written"] == moved
    assert [rank["bytes"] for rank in written["ranks"]] == [
        len(pages) * PAGE for pages in model.touched()
    ]
    # Both patterns cover the same bytes, so either reads what the other wrote.
    for pattern in ("contiguous", "strided"):
        program.good(
            model.servers, "operation=read", *where, f"pattern={pattern}", f"json={tmp_path}/r.json"
        )
        read = json.loads((tmp_path / "r.json").read_text())
        assert read["aggregate"]["bytes_read"] == moved
        assert read["checksum"]["read"] == written["checksum"]["written"]
        assert read["checksum"]["expected"] == read["checksum"]["read"]
        assert read["checksum"]["wrong_pages"] == 0


def test_a_damaged_stamp_makes_the_run_invalid(installed: Installer, tmp_path: Path) -> None:
    profile = installed("dataserver")
    factors = {"processes": "2", "request_size": "64k", "file_size": "1m", "buffer": "on"}
    profile.script("pre.sh", *(f"{k}={v}" for k, v in factors.items()))
    path = profile.directory / "eeio-scratch/eeio-dataserver.1"
    with path.open("r+b") as file:
        for page in (3, 100):
            file.seek(page * PAGE + 5)
            byte = file.read(1)[0]
            file.seek(page * PAGE + 5)
            file.write(bytes([byte ^ 1]))
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0
    reported = json.loads((tmp_path / "out/dataserver.json").read_text())["checksum"]
    assert reported["wrong_pages"] == 2 and reported["read"] != reported["expected"]
    (phase,) = tools.parse("dataserver", capture).phases
    assert any("2 pages that were read are not what was written" in x for x in phase.invalid)


@pytest.mark.parametrize("api", ["posix", "mpiio"])
def test_one_file_serves_one_server_and_a_shared_mode(
    installed: Installer, tmp_path: Path, api: str
) -> None:
    """Layers are compared on the same file, which is not written anew between them."""
    profile = installed("dataserver")
    factors = {"processes": "1", "clients": "1", "request_size": "64k", "file_size": "1m"}
    profile.script("pre.sh", *(f"{k}={v}" for k, v in factors.items()))
    path = profile.directory / "eeio-scratch/eeio-dataserver.0"
    before = path.stat()
    shared = {"processes": "2", "file": "shared", "request_size": "4k", "file_size": "1m"}
    shared |= {"buffer": "on", "api": api}
    profile.script("pre.sh", *(f"{k}={v}" for k, v in shared.items()))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    (phase,) = tools.parse("dataserver", profile.capture(tmp_path / "out", shared)).phases
    assert (phase.bytes_moved, phase.invalid) == (1 << 20, ())


# --- traces ---------------------------------------------------------------------------------------

TRACE = """time,client,op,offset,length
# two clients, one of which reads back what the other wrote
0.0,0,write,0,16384
0.0,1,write,16384,8192
0.02,1,read,0,16384
0.1,0,read,12288,12288
0.1,0,write,100,5000
"""


def test_a_trace_is_replayed_byte_for_byte(program: Program, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(TRACE)
    where = [
        "stripe=8192", f"directory={tmp_path}", f"replay={tmp_path}/trace.csv",
        f"json={tmp_path}/out.json", f"eeio={tmp_path}/eeio.json",
    ]  # fmt: skip
    program.good(2, *where)
    reported = json.loads((tmp_path / "out.json").read_text())
    assert reported["aggregate"]["bytes_written"] == 16384 + 8192 + 5000
    assert reported["aggregate"]["bytes_read"] == 16384 + 12288
    assert reported["checksum"]["wrong_pages"] == 0
    assert reported["aggregate"]["seconds"] < 0.09
    assert [(tmp_path / f"eeio-dataserver.{n}").stat().st_size for n in (0, 1)] == [16384, 8192]
    program.good(2, *where, "timed=on")
    assert json.loads((tmp_path / "out.json").read_text())["aggregate"]["seconds"] >= 0.1


@pytest.mark.parametrize("parts", [(1000, 1000, 6192), (4, 4, 4094, 2, 4088), (8191, 1)])
def test_what_is_written_in_parts_is_read_back_completely(
    program: Program, tmp_path: Path, parts: tuple[int, ...]
) -> None:
    """Parts that end within a page, and within its stamp; small ones over large ones too."""
    ends = list(accumulate(parts, initial=0))
    lines = [f"0,0,write,{at},{length}" for at, length in zip(ends, parts, strict=False)]
    assert ends[-1] == 8192
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([*lines, "0,0,read,0,8192", *lines[:1], "0,1,read,0,8192"]) + "\n")
    program.good(1, f"replay={path}", f"directory={tmp_path}", f"json={tmp_path}/out.json")
    reported = json.loads((tmp_path / "out.json").read_text())["checksum"]
    assert reported["wrong_pages"] == 0 and reported["read"] == reported["expected"] != "0" * 16


LATE = """#define _GNU_SOURCE
#include <mpi.h>
#include <time.h>
int MPI_Barrier(MPI_Comm comm)
{
	int rank, error = PMPI_Barrier(comm);
	MPI_Comm_rank(comm, &rank);
	if (rank == 1)
		nanosleep(&(struct timespec){.tv_nsec = 500000000}, 0);
	return error;
}
"""


def test_ranks_that_work_one_after_the_other_are_not_counted_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """With more ranks than processors one leaves the barrier when another has done its work."""
    late = tmp_path / "late.c"
    late.write_text(LATE)
    program = programs.plain("dataserver", tmp_path_factory.mktemp("late"), str(late))
    where = (f"directory={tmp_path}", f"json={tmp_path}/out.json", f"eeio={tmp_path}/eeio.json")
    program.good(2, "operation=write", "stripe=4096", "request=4096", *where)
    reported = json.loads((tmp_path / "out.json").read_text())
    (phase,) = json.loads((tmp_path / "eeio.json").read_text())["phases"]
    length_s = phase["end_monotonic_s"] - phase["start_monotonic_s"]
    for seconds in (reported["aggregate"]["seconds"], length_s):
        assert seconds > 0.25
        assert seconds > max(rank["seconds"] for rank in reported["ranks"])


def test_a_replay_has_the_spatiality_of_its_trace(installed: Installer, tmp_path: Path) -> None:
    profile = installed("dataserver")
    for step, reported in ((1, "sequential"), (3, "strided")):
        trace = tmp_path / f"trace.{step}"
        trace.write_text("".join(f"0,0,read,{n * step * 4096},4096\n" for n in range(16)))
        factors = {"replay": str(trace), "buffer": "on", "processes": "2"}
        profile.script("pre.sh", *(f"{key}={value}" for key, value in factors.items()))
        (phase,) = tools.parse("dataserver", profile.capture(tmp_path / reported, factors)).phases
        assert (phase.spatiality, phase.bytes_moved, phase.invalid) == (reported, 65_536, ())


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("0.5,0,read,0,4096\n0.4,0,read,0,4096", r":3: the time runs backwards; sort the trace"),
        ("nan,0,read,0,4096", r":2: a value is negative, empty or too large"),
        ("-1,0,read,0,4096", r":2: a value is negative, empty or too large"),
        ("0,0,read,9223372036854775807,4096", r":2: a value is negative, empty or too large"),
        ("0,0,read,0,0", r":2: a value is negative, empty or too large"),
        ("0,0,trim,0,4096", r":2: the operation is 'trim', not read or write"),
        ("0,0,read,0", r":2: not time,client,op,offset,length"),
        ("0,0,read,0,4096,extra", r":2: not time,client,op,offset,length"),
        ("", r": no event in it"),
    ],
)
def test_a_bad_trace_is_rejected_with_its_line(
    program: Program, tmp_path: Path, line: str, reported: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"time,client,op,offset,length\n{line}\n")
    message = program.rejection(f"replay={path}", f"directory={tmp_path}")
    assert re.search(reported, message), message
    assert list(tmp_path.glob("eeio-dataserver.*")) == []


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("1,1,wr", ":3: not time,client,op,offset,length"),
        ("0.5,0,write,4096,4096", ":3: the time runs backwards"),
    ],
)
def test_a_bad_trace_is_named_before_anything_is_written(
    installed: Installer, tmp_path: Path, line: str, reported: str
) -> None:
    profile = installed("dataserver")
    path = tmp_path / "trace.csv"
    path.write_text(f"time,client,op,offset,length\n1,0,write,0,4096\n{line}\n")
    arguments = (f"replay={path}", "buffer=on", "processes=2")
    done = profile.script("pre.sh", *arguments, code=1)
    assert f"eeio-dataserver: {path}{reported}" in done.stderr
    assert list(profile.directory.rglob("eeio-dataserver.*")) == []
    profile.clean_up(*arguments)


def test_times_that_overlap_are_concurrent_clients(program: Program, tmp_path: Path) -> None:
    """A trace has starts only: requests of one moment are served one after the other."""
    path = tmp_path / "trace.csv"
    path.write_text("".join(f"0.001,{n},write,{n * 4096},4096\n" for n in range(8)))
    program.good(
        1, f"replay={path}", "timed=on", f"directory={tmp_path}", f"json={tmp_path}/out.json"
    )
    reported = json.loads((tmp_path / "out.json").read_text())
    assert reported["aggregate"]["requests"] == 8 and not reported["stopped_early"]


# --- options --------------------------------------------------------------------------------------

BAD_OPTIONS = [
    ("stripe=0", "stripe=0: give a whole number from 4096"),
    ("fill=on", "fill=on writes the blocks of a trace: give replay=FILE"),
    ("stripe=5000", "stripe and request must be multiples of 4096"),
    ("request=0", "request=0: give a whole number"),
    ("request=4095", "request=4095: give a whole number"),
    ("clients=0", "clients=0: give a whole number from 1 to 65536"),
    ("clients=two", "clients=two: give a whole number"),
    ("client_bytes=5000", "client_bytes one of request"),
    ("client_bytes=99999999999999999999", "give a whole number"),
    ("operation=append", "operation=append: give read or write"),
    ("api=nfs", "api=nfs: give posix or mpiio"),
    ("pattern=random", "pattern=random: give contiguous or strided"),
    ("direct=maybe", "direct=maybe: give off or on"),
    ("flush=", "flush=: give none, end or each"),
    ("file=own", "file=own: give private or shared"),
    ("stride=0 pattern=strided", "stride=0: give a whole number from 1 to 1024"),
    ("stride=2", "stride=2: give pattern=strided"),
    ("stride=17 pattern=strided", "stride=17: longer than the data of a client"),
    ("collective=on file=shared", "only MPI-IO has collective calls, in one file"),
    ("collective=on api=mpiio", "only MPI-IO has collective calls, in one file"),
    ("file=shared api=mpiio flush=each", "flush=each: ranks of one file flush it together"),
    ("file=shared replay=x", "replay=x: servers have separate files"),
    ("timed=on", "give replay=FILE"),
    ("seed=-1", "seed=-1: give a whole number"),
    ("runtime_s=x", "runtime_s=x: give a whole number"),
    ("replay=/nowhere/trace", "/nowhere/trace: No such file or directory"),
    ("ranks=3", "3 ranks were started and MPI has joined 1"),
    ("api=mpiio direct=on", "MPI-IO has no direct I/O here"),
    (f"clients=65536 client_bytes={1 << 49} request=4096", "too large together"),
    ("speed=fast", "unknown option speed"),
    ("fast", "fast: give KEY=VALUE"),
]


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("options", [BAD_OPTIONS[:2], BAD_OPTIONS[2:]], ids=["some", "others"])
def test_bad_options_are_rejected_and_touch_nothing(
    sanitized: Program, tmp_path: Path, options: list[tuple[str, str]]
) -> None:
    sanitized.all_rejected(options, f"directory={tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_used(program: Program, tmp_path: Path) -> None:
    done = program.run(2, "operation=read", f"directory={tmp_path}")
    assert done.returncode == 1 and "No such file or directory" in done.stderr
    done = program.run(2, "operation=write", "directory=/nowhere")
    assert done.returncode == 1 and "/nowhere: No such file or directory" in done.stderr
    program.good(1, "operation=write", f"directory={tmp_path}", "clients=1")
    done = program.run(1, "operation=read", f"directory={tmp_path}", "clients=2")
    assert done.returncode == 1 and "ends at 1048576, before a read" in done.stderr
    assert programs.running(program.path) == []


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sanitizers_see_nothing(sanitized: Program, tmp_path: Path) -> None:
    for operation, api in (("write", "posix"), ("read", "mpiio")):
        sanitized.good(
            3, *MODELS[5].options(), f"operation={operation}", f"api={api}", "flush=end",
            f"directory={tmp_path}", f"json={tmp_path}/out.json", f"eeio={tmp_path}/eeio.json",
        )  # fmt: skip
        shared = ("file=shared", f"api={api}", f"collective={'on' if api == 'mpiio' else 'off'}")
        sanitized.good(
            3, f"operation={operation}", *shared, "pattern=strided", "stride=2", "flush=each",
            f"directory={tmp_path}", f"json={tmp_path}/out.json", f"eeio={tmp_path}/eeio.json",
        )  # fmt: skip
    (tmp_path / "trace.csv").write_text(TRACE)
    sanitized.good(2, f"replay={tmp_path}/trace.csv", f"directory={tmp_path}", "timed=on",
                   "stripe=8192", f"json={tmp_path}/out.json")  # fmt: skip


@pytest.mark.slow
def test_valgrind_sees_nothing(program: Program, tmp_path: Path) -> None:
    options = [*MODELS[3].options(), f"directory={tmp_path}", f"json={tmp_path}/out.json"]
    programs.check_memory(program, 2, "operation=write", *options)
    programs.check_memory(program, 2, "operation=write", "file=shared", *options)
    (tmp_path / "trace.csv").write_text(TRACE)
    programs.check_memory(program, 2, f"replay={tmp_path}/trace.csv", f"directory={tmp_path}")


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("stripe=0", "stripe=0: give a size"),
        ("request_size=5000", "give a multiple of 4k"),
        ("operation=mixed", "give replay=TRACE with it"),
        ("replay=/nowhere", "replay=/nowhere: cannot be read"),
        ("api=mpiio", "MPI-IO has no direct I/O"),
        ("flush=end", "flush=end: a read does not flush"),
        ("operation=write flush=on", "flush=on: give one of: none end each"),
        ("stride=4", "stride=4: give spatiality=strided"),
        ("spatiality=strided clients=1 stride=1", "would be contiguous"),
        ("spatiality=strided clients=1 file_size=64m", "stride=17: longer than the file"),
        ("collective=on buffer=on api=mpiio", "give api=mpiio file=shared"),
        ("file=shared clients=2", "each process is its own client"),
        ("file=shared api=mpiio buffer=on operation=write flush=each", "give collective=on or"),
        ("processes=0", "processes=0: give a whole number"),
        ("clients=9 file_size=64k", "less than a request of each of 9 clients"),
        ("speed=fast", "unknown factor 'speed=fast'"),
    ],
)
def test_factors_are_rejected(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("dataserver")
    profile.rejects(arguments, reported)


def test_machines_that_cannot_start_it(installed: Installer, tmp_path: Path) -> None:
    profile = installed("dataserver")
    arguments = ("processes=2", "file_size=1m", "request_size=64k", "buffer=on")
    done = profile.script("pre.sh", *arguments, EEIO_MPIRUN="/nowhere", code=None)
    assert done.returncode != 0 and "/nowhere is missing: install the packages" in done.stderr
    profile.script("pre.sh", *arguments)
    done = profile.run(*arguments, EEIO_MPIRUN="/nowhere", code=2)
    assert "/nowhere is missing: install the packages" in done.stderr
    assert (profile.home / "test-exit-status").read_text() == "2\n"
    done = profile.run(*arguments, EEIO_HOSTFILE="/nowhere", code=2)
    assert "EEIO_HOSTFILE=/nowhere: cannot be read" in done.stderr
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=1\n")
    done = profile.run(*arguments, EEIO_HOSTFILE=str(hosts), code=None)
    assert done.returncode != 0 and "not enough slots" in done.stderr
    profile.clean_up(*arguments)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with programs.memory_disk(tmp_path / "small", "size=1m") as disk:
        yield disk


@pytest.mark.root
def test_a_disk_that_is_too_small(installed: Installer, small_disk: Path) -> None:
    profile = installed("dataserver")
    arguments = ("processes=2", "file_size=4m", "request_size=64k", "buffer=on")
    done = profile.script("pre.sh", *arguments, EEIO_DIRECTORY=str(small_disk), code=1)
    assert re.search(r"\d+ bytes are needed, \d+ are free", done.stderr), done.stderr
    profile.run(*arguments, EEIO_DIRECTORY=str(small_disk), code=2)
    profile.script("post.sh", *arguments, EEIO_DIRECTORY=str(small_disk), code=None)
    assert list(small_disk.iterdir()) == []


@pytest.mark.root
def test_what_watches_mpirun_delays_nothing(installed: Installer, tmp_path: Path) -> None:
    """It looks every few seconds: neither who reads our output nor an umount waits for it."""
    profile = installed("dataserver")
    arguments = ("operation=write", "file_size=1m", "request_size=64k", "buffer=on")
    with programs.memory_disk(tmp_path / "mounted", "size=4m") as disk:
        where = {"EEIO_DIRECTORY": str(disk)}
        for script in ("sh", "bash"):
            pre = (script, str(profile.profile / "pre.sh"), *arguments)
            assert profile.leaves_its_pipe(*pre, **where)
        run = (str(profile.home / "eeio-dataserver"), *arguments)
        assert profile.leaves_its_pipe(*run, **where)
        assert profile.leaves_its_pipe(*run, **where, LOG_FILE=str(tmp_path / "log"))
        profile.script("post.sh", *arguments, **where)


@pytest.mark.parametrize("victim", ["rank", "mpirun"])
def test_nothing_stays_when_a_process_dies(
    installed: Installer, tmp_path: Path, victim: str
) -> None:
    profile = installed("dataserver")
    trace = tmp_path / "trace.csv"
    trace.write_text("0,0,write,0,65536\n60,0,write,65536,65536\n")
    arguments = (
        "operation=mixed", f"replay={trace}", "timed=on", "processes=2", "buffer=on", "stripe=4k",
        "runtime_s=0",
    )  # fmt: skip
    profile.script("pre.sh", *arguments)
    program = profile.home / "dataserver"
    reported = programs.reported_of_a_death(
        profile, program, arguments, 2, "eeio-dataserver.",
        lambda ranks: ranks[0] if victim == "rank" else programs.parent(ranks[0]),
    )  # fmt: skip
    if victim == "rank":
        assert programs.DIED.search(reported)
    profile.clean_up(*arguments)
