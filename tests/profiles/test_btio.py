"""BT-IO: bytes, calls and every value of its file against the table of NAS BT-IO; bad input."""

import json
import os
import re
import subprocess
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eeio.record import tools
from eeio.traces import strace
from eeio.traces.events import find_phases
from tests.profiles import programs
from tests.profiles.harness import Installer
from tests.profiles.programs import Program
from tests.waiting import until

PROGRAM = "btio"

pytestmark = pytest.mark.tools

# class: points a line, dumps, bytes a dump, total bytes, bytes of a row at 1, 4 and 16 ranks.
# From NAS Parallel Benchmarks 3.3 (5 doubles a point, a dump every 5 of 60 or 200 steps).
TABLE = {
    "S": (12, 12, 69_120, 829_440, {1: 480, 4: 240, 16: 120}),
    "W": (24, 40, 552_960, 22_118_400, {1: 960, 4: 480, 16: 240}),
    "A": (64, 40, 10_485_760, 419_430_400, {1: 2560, 4: 1280, 16: 640}),
}


# --- the file -------------------------------------------------------------------------------------


def check_file(path: Path, size: str) -> None:
    """The n-th double of the file's d-th dump bears d and n, wherever its writer's cells lay."""
    _, dumps, dump_bytes, total, _ = TABLE[size]
    assert path.stat().st_size == total
    with path.open("rb") as file:
        for dump in range(dumps):
            found = array("d")
            found.frombytes(file.read(dump_bytes))
            first = (dump + 1) * 1e10
            assert found == array("d", [first + n for n in range(dump_bytes // 8)]), dump


@pytest.mark.fast_variants(6)
@pytest.mark.parametrize(
    ("size", "ranks", "options"),
    [
        ("S", 1, "subtype=full"),
        ("S", 4, "subtype=full"),
        ("S", 9, "subtype=simple"),
        ("S", 16, "subtype=simple"),
        ("W", 4, "subtype=full collective_buffer=131072 flush=end cold=on"),
        ("W", 9, "subtype=full"),
        ("A", 4, "subtype=full"),
        ("W", 16, "subtype=simple"),
        ("S", 16, "subtype=full collective_buffer=4096"),
    ],
)
def test_every_value_lies_in_its_place(
    program: Program, tmp_path: Path, size: str, ranks: int, options: str
) -> None:
    out = program.good(
        ranks, f"class={size}", *options.split(), f"directory={tmp_path}", "keep=on",
        f"eeio={tmp_path}/eeio.json",
    )  # fmt: skip
    check_file(tmp_path / "eeio-btio.out", size)
    points, dumps, _, total, _ = TABLE[size]
    assert re.search(rf"Total data written \(MB\) : {total / 1e6:.6f}\n", out)
    assert "Verification            : SUCCESSFUL" in out
    calls = points**2 * round(ranks**0.5) if "simple" in options else ranks
    for phase in json.loads((tmp_path / "eeio.json").read_text())["phases"]:
        assert phase["bytes_moved"] == total
        assert phase["metrics"]["calls"] == calls * dumps
        assert phase["invalid"] == []


# --- the calls ------------------------------------------------------------------------------------

_CALL = re.compile(
    r"(?P<call>p(?:read|write)64)\(\d+<[^>]*>, .*, (?P<size>\d+), (?P<at>\d+)\) += (?P<moved>\d+)"
)


def traced(
    program: Program, folder: Path, ranks: int, *options: str
) -> dict[str, list[tuple[int, int]]]:
    """(offset, size) of each pwrite64 and pread64 to the file, of all ranks by time."""
    programs.need("strace")
    before = [
        "strace",
        "-ff",
        "-ttt",
        "-T",
        "-y",
        "-s0",
        "-e",
        "trace=openat,close,pread64,pwrite64",
    ]
    program.good(ranks, *options, f"directory={folder}", before=[*before, "-o", f"{folder}/strace"])
    calls: dict[str, list[tuple[str, int, int]]] = {"pread64": [], "pwrite64": []}
    for path in folder.glob("strace.*"):
        for line in path.read_text().splitlines():
            match = _CALL.search(line)
            if match and "eeio-btio.out" in line:
                assert match["size"] == match["moved"]
                calls[match["call"]].append((line.split()[0], int(match["at"]), int(match["size"])))
    return {call: [found[1:] for found in sorted(all_)] for call, all_ in calls.items()}


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(("size", "ranks"), [("S", 1), ("S", 4), ("S", 16), ("W", 4)])
def test_simple_makes_one_call_a_row(
    program: Program, tmp_path: Path, size: str, ranks: int
) -> None:
    _, dumps, dump_bytes, total, rows = TABLE[size]
    calls = traced(program, tmp_path, ranks, f"class={size}", "subtype=simple")
    row = rows[ranks]
    for found in calls.values():
        assert Counter(length for _, length in found) == {row: total // row}
        # Ranks do not wait for each other: their calls mix, and together make the file, each once.
        assert sorted(at for at, _ in found) == list(range(0, total, row))
    if ranks == 1:
        assert [at // dump_bytes for at, _ in calls["pwrite64"]] == sorted(
            list(range(dumps)) * (dump_bytes // row)
        )


@pytest.mark.parametrize("ranks", [1, 4])
def test_full_reaches_the_disk_in_full_collective_buffers(
    program: Program, tmp_path: Path, ranks: int
) -> None:
    _, dumps, dump_bytes, total, _ = TABLE["W"]
    calls = traced(program, tmp_path, ranks, "class=W", "subtype=full", "collective_buffer=131072")
    sizes = [131_072] * (dump_bytes // 131_072) + [dump_bytes % 131_072]
    assert sizes[-1] == 28_672
    for found in calls.values():
        assert len(found) == dumps * len(sizes)
        at = 0
        for offset, length in sorted(found):
            assert offset == at
            # ROMIO cuts a dump among its aggregators; where the tail lies follows from that.
            assert length in (131_072, 28_672)
            at += length
        assert at == total
        for dump in range(dumps):
            within = [s for o, s in found if o // dump_bytes == dump]
            assert sorted(within) == sorted(sizes)


def test_a_trace_has_the_phases_of_writing_and_reading(program: Program, tmp_path: Path) -> None:
    traced(program, tmp_path, 4, "class=W", "subtype=full", "collective_buffer=131072")
    events = [
        event for event in strace.read(sorted(tmp_path.glob("strace.*")))
        if event.file.endswith("eeio-btio.out")
    ]  # fmt: skip
    phases = [(phase.operation, phase.bytes_moved) for phase in find_phases(events)]
    # On a busy machine a close may take long enough to be a phase.
    moved = [phase for phase in phases if phase[0] not in ("close", "flush")]
    assert moved == [("write", 22_118_400), ("read", 22_118_400)]


# --- wrong data -----------------------------------------------------------------------------------


def test_a_wrong_value_is_reported(program: Program, tmp_path: Path) -> None:
    """A value is overwritten between writing and reading: rank 0 is held there by strace."""
    programs.need("strace")
    # The read phase opens the file read-only: all of its opens wait for a second.
    path = tmp_path / "eeio-btio.out"
    process = subprocess.Popen(
        program.command(
            1, "class=S", f"directory={tmp_path}", f"eeio={tmp_path}/eeio.json",
            before=["strace", "-f", "-o", f"{tmp_path}/strace", "-P", str(path), "-e",
                    "trace=openat", "-e", "inject=openat:delay_enter=1500000:when=2+"],
        ),
        env=programs.environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: path.exists() and path.stat().st_size == TABLE["S"][3], process)
        with path.open("r+b") as file:
            file.seek(69_120 * 7 + 80)
            file.write(b"\xff")
        reported, _ = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 1
    assert "Verification            : FAILED" in reported
    written, read = json.loads((tmp_path / "eeio.json").read_text())["phases"]
    assert written["invalid"] == []
    assert read["invalid"] == ["1 values that were read are not what was written"]


# --- bad input ------------------------------------------------------------------------------------

BAD_OPTIONS = [
    ("class=D", "class=D: give S, W, A, B or C"),
    ("class=", "class=: give S, W, A, B or C"),
    ("class=SS", "class=SS: give S, W, A, B or C"),
    ("subtype=fortran", "subtype=fortran: give full or simple"),
    ("flush=each", "flush=each: give none or end"),
    ("keep=1", "keep=1: give off or on"),
    ("cold=", "cold=: give off or on"),
    ("compute_ms=-1", "compute_ms=-1: give a whole number"),
    ("compute_ms=9999999999", "give a whole number from 0 to 3600000"),
    ("collective_buffer=128k", "collective_buffer=128k: give a whole number"),
    ("ranks=4", "4 ranks were started and MPI has joined 1"),
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


@pytest.mark.parametrize(
    ("ranks", "reported"),
    [
        (2, "2 ranks: BT-IO needs a square number (1, 4, 9, 16, ...)"),
        (25, "class S has cells of less than 3 points on 25 ranks"),
    ],
)
def test_ranks_that_do_not_fit(program: Program, tmp_path: Path, ranks: int, reported: str) -> None:
    done = program.run(ranks, "class=S", f"directory={tmp_path}")
    assert done.returncode == 2
    assert f"eeio-btio: {reported}\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_sanitizers_see_nothing(sanitized: Program, tmp_path: Path) -> None:
    for options in ("subtype=full collective_buffer=4096 cold=on", "subtype=simple flush=end"):
        sanitized.good(
            4, "class=S", *options.split(), "compute_ms=1", f"directory={tmp_path}",
            f"eeio={tmp_path}/eeio.json",
        )  # fmt: skip


@pytest.mark.slow
def test_valgrind_sees_nothing(program: Program, tmp_path: Path) -> None:
    for options in ("subtype=full", "subtype=simple"):
        programs.check_memory(
            program, 1, "class=S", options, f"directory={tmp_path}", f"eeio={tmp_path}/eeio.json"
        )


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("processes=2", "processes=2: BT-IO needs a square number"),
        ("class=D", "class=D: give one of: S W A B C"),
        ("subtype=fortran", "subtype=fortran: give one of: full simple"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("flush=each", "flush=each: BT-IO flushes no single call"),
        ("flush=on", "flush=on: give one of: none end"),
        ("collective_buffer=2g", "give 0, or a size from 1 to 1g"),
        ("speed=fast", "unknown factor 'speed=fast'"),
    ],
)
def test_factors_are_rejected(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("btio")
    profile.rejects(arguments, reported)


def test_machines_that_cannot_start_it(installed: Installer, tmp_path: Path) -> None:
    profile = installed("btio")
    arguments = ("class=S", "processes=4")
    profile.run(*arguments, code=2)  # pre.sh has not run
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
    done = profile.run(*arguments, EEIO_NPB=str(tmp_path), code=2)
    assert "bt.S.4.mpi_io_full: not there; build it with NPB's" in done.stderr
    done = profile.run(*arguments, "collective_buffer=128k", EEIO_NPB=str(tmp_path), code=2)
    assert (
        "the original has none of flush=end, cold, compute_ms and collective_buffer" in done.stderr
    )
    profile.clean_up(*arguments)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    with programs.memory_disk(tmp_path / "small", "size=4m") as disk:
        yield disk


@pytest.mark.root
def test_a_disk_that_is_too_small(installed: Installer, program: Program, small_disk: Path) -> None:
    profile = installed("btio")
    done = profile.script("pre.sh", "class=W", EEIO_DIRECTORY=str(small_disk), code=2)
    assert "needs 22118400 bytes, " in done.stderr
    profile.script("post.sh", EEIO_DIRECTORY=str(small_disk), code=None)
    assert list(small_disk.iterdir()) == []
    # A file that an earlier run left does not hide that there is no room.
    (small_disk / "eeio-btio.out").write_bytes(b"old")
    done = program.run(4, "class=W", f"directory={small_disk}")
    assert done.returncode == 1
    assert re.search(r"22118400 bytes are needed, \d+ are free", done.stderr), done.stderr


def test_nothing_stays_when_a_rank_dies(installed: Installer) -> None:
    profile = installed("btio")
    arguments = ("class=S", "processes=4", "compute_ms=5000")
    profile.script("pre.sh", *arguments)
    program = profile.home / "btio"
    reported = programs.reported_of_a_death(profile, program, arguments, 4, "eeio-btio.out")
    assert programs.DIED.search(reported)
    profile.clean_up(*arguments)


def test_what_watches_mpirun_delays_nothing(installed: Installer, tmp_path: Path) -> None:
    profile = installed("btio")
    arguments = ("class=S", "processes=1")
    profile.script("pre.sh", *arguments)
    run = (str(profile.home / "eeio-btio"), *arguments)
    assert profile.leaves_its_pipe(*run)
    assert profile.leaves_its_pipe(*run, LOG_FILE=str(tmp_path / "log"))


def test_parsed_as_two_phases(installed: Installer, tmp_path: Path) -> None:
    profile = installed("btio")
    factors = {"class": "S", "subtype": "simple", "processes": "4", "compute_ms": "2"}
    profile.script("pre.sh", *(f"{k}={v}" for k, v in factors.items()))
    capture = profile.capture(tmp_path / "out", factors)
    result = tools.parse("btio", capture)
    assert [(p.name, p.bytes_moved, p.invalid) for p in result.phases] == [
        ("write", 829_440, ()),
        ("read", 829_440, ()),
    ]
    assert not (profile.directory / "eeio-scratch/eeio-btio.out").exists()


SLOW = """#define _GNU_SOURCE
#include <time.h>
static int late(void) { return nanosleep(&(struct timespec){.tv_nsec = 300000000}, 0); }
int fsync(int file) { (void)file; return late(); }
int fdatasync(int file) { (void)file; return late(); }
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """With flushes that take 0.3 s."""

    def make(folder: Path) -> Program:
        (folder / "slow.c").write_text(SLOW)
        return programs.plain("btio", folder, str(folder / "slow.c"))

    return programs.shared(tmp_path_factory, "slow-btio", make)


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        ("flush=end", "the program's own MPI_File_sync"),
        ("flush=end cold=on", "the program's own MPI_File_sync"),
        ("flush=none cold=on", "the program's own fdatasync, before it read back cold"),
        ("flush=none", None),
    ],
)
def test_until_its_dumps_are_on_the_device(
    slow: Program, tmp_path: Path, arguments: str, source: str | None
) -> None:
    for _ in range(5):
        out = tmp_path / "eeio.json"
        out.unlink(missing_ok=True)
        printed = slow.good(
            4, "class=S", "compute_ms=2", *arguments.split(), f"directory={tmp_path}", f"eeio={out}"
        )
        write, read = json.loads(out.read_text())["phases"]
        rate = write["bandwidth_bytes_per_s"]
        if source is None:
            break
        # What it computes between dumps is in neither rate. On a busy machine its processes wait
        # for each other, so that the sum of their times is no time of the whole.
        durable = write["durable_bandwidth_bytes_per_s"]
        flush_s = write["durable_monotonic_s"] - write["end_monotonic_s"]
        expected_s = pytest.approx(TABLE["S"][3] / rate + flush_s, abs=0.1)
        if TABLE["S"][3] / durable == expected_s:
            break
    assert not [key for key in read if key.startswith("durable")]
    assert write.get("durable_source") == source
    if source is None:
        assert "read back and deleted" in write["durable_reason"]
    else:
        assert flush_s > 0.29
        assert TABLE["S"][3] / durable == expected_s
        assert read["start_monotonic_s"] >= write["durable_monotonic_s"]
        if "end" in arguments:
            rate = durable
    shown = re.search(r"I/O data rate \(MB/sec\) +: ([0-9.]+)", printed)
    assert shown and float(shown[1]) * 1e6 == pytest.approx(rate, abs=600)


def test_the_time_as_npb_counts_it(program: Program, tmp_path: Path) -> None:
    """Without the open, harmonic mean of the ranks: never more than the slowest rank's whole."""
    out = tmp_path / "eeio.json"
    program.good(4, "class=S", "compute_ms=2", f"directory={tmp_path}", f"eeio={out}")
    for phase in json.loads(out.read_text())["phases"]:
        metrics = phase["metrics"]
        assert 0 < metrics["npb_io_time_s"] < metrics["io_time_s"]


def test_the_original_is_run_and_read(installed: Installer, tmp_path: Path) -> None:
    npb = os.environ.get("EEIO_NPB", "")
    if not Path(npb, "bt.S.4.mpi_io_full").is_file():
        pytest.skip("EEIO_NPB names no folder with NPB's bt.S.4.mpi_io_full")
    profile = installed("btio")
    factors = {"class": "S", "processes": "4"}
    profile.script("pre.sh", *(f"{k}={v}" for k, v in factors.items()))
    profile.environment["EEIO_NPB"] = npb
    result = tools.parse("btio", profile.capture(tmp_path / "out", factors))
    (phase,) = result.phases
    assert (phase.name, phase.bytes_moved, phase.invalid) == ("write", 829_440, ())
    # Not deleted before the caller has flushed it to its device.
    assert (profile.directory / "eeio-scratch/btio.full.out").stat().st_size == 829_440
    assert result.notes[-1].startswith("program: bt.S.4.mpi_io_full, sha256 ")
    profile.clean_up()
