"""File creation: every figure from the calls' times, the calls themselves, dying processes."""

import csv
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eeio.record import tools
from tests.profiles import programs
from tests.profiles.harness import Installed, Installer
from tests.profiles.programs import Program

pytestmark = pytest.mark.tools

KINDS = {
    "create": ("open", "write", "fsync", "close"),
    "stat": ("stat",),
    "utime": ("utime",),
    "delete": ("unlink",),
}
MODES = ("fork", "mpi")
FLAGS = {"fork": ("-pthread",), "mpi": ("-pthread", "-DWITH_MPI")}


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return _plain(tmp_path_factory, mode)


def _plain(temporary: pytest.TempPathFactory, mode: str) -> Program:
    return programs.shared(
        temporary,
        f"plain-metadata-{mode}",
        lambda folder: programs.plain("metadata", folder, *FLAGS[mode], mpi=mode == "mpi"),
    )


@pytest.fixture(scope="module")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return _plain(tmp_path_factory, "fork")


@pytest.fixture(scope="module")
def sanitized(mode: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return programs.shared(
        tmp_path_factory,
        f"sanitized-metadata-{mode}",
        lambda folder: programs.sanitized("metadata", folder, *FLAGS[mode], mpi=mode == "mpi"),
    )


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    rank: int
    pid: int
    round: int
    file: int
    name: str
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def calls_of(path: Path) -> list[Call]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(re.fullmatch(r"\d+\.\d{9}", row["end_monotonic_s"]) for row in rows)
    return [
        Call(int(row["rank"]), int(row["pid"]), int(row["round"]), int(row["file"]), row["call"],
             float(row["start_monotonic_s"]), float(row["end_monotonic_s"]))
        for row in rows
    ]  # fmt: skip


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-6, abs=2e-9)


def span_s(calls: list[Call]) -> float:
    return max(call.end_s for call in calls) - min(call.start_s for call in calls)


def equation_9(calls: list[Call]) -> float:
    """N x files over the sum of T_open + T_fsync + T_close (docs/studies/)."""
    spent_s = math.fsum(c.seconds for c in calls if c.name in ("open", "fsync", "close"))
    return sum(c.name == "open" for c in calls) / spent_s


def equation_10(calls: list[Call]) -> float:
    spent_s = math.fsum(c.seconds for c in calls if c.name == "fsync")
    return sum(c.name == "open" for c in calls) / spent_s


@pytest.mark.parametrize(
    ("ranks", "files", "rounds", "more"),
    [
        (1, 1, 1, ""),
        (4, 5, 3, ""),
        (3, 7, 4, "layout=own size=5000"),
        (2, 20, 2, "fsync=off"),
        (2, 101, 1, "layout=own fsync=off size=1"),
    ],
)
def test_every_figure_follows_from_the_calls(
    program: Program, tmp_path: Path, ranks: int, files: int, rounds: int, more: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    out = program.good(
        ranks, f"files={files}", f"rounds={rounds}", *more.split(), f"directory={folder}",
        f"calls={tmp_path}/calls.csv", f"eeio={tmp_path}/eeio.json",
    )  # fmt: skip
    assert list(folder.iterdir()) == []
    calls = calls_of(tmp_path / "calls.csv")
    flushed, written = "fsync=off" not in more, "size" in more
    made = {"open", "close", "stat", "utime", "unlink"}
    made |= {"fsync"} if flushed else set()
    made |= {"write"} if written else set()
    operations = ranks * files * rounds
    assert Counter(call.name for call in calls) == dict.fromkeys(made, operations)
    assert len({(c.rank, c.round, c.file, c.name) for c in calls}) == len(calls)
    assert {(c.rank, c.round, c.file) for c in calls} == {
        (rank, round_, file)
        for rank in range(ranks) for round_ in range(1, rounds + 1) for file in range(files)
    }  # fmt: skip
    assert len({(c.rank, c.pid) for c in calls}) == len({c.pid for c in calls}) == ranks
    # A process does one thing after the other.
    for rank in range(ranks):
        times = sorted((c.start_s, c.end_s) for c in calls if c.rank == rank)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(times))

    reported = json.loads((tmp_path / "eeio.json").read_text())
    assert [phase["name"] for phase in reported["phases"]] == list(KINDS)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [line["round"] for line in lines] == list(range(1, rounds + 1))
    ended_s = 0.0
    for phase in reported["phases"]:
        mine = [c for c in calls if c.name in KINDS[phase["name"]]]
        # Kinds follow each other, and each call lies in its kind's window, which is not wider.
        assert phase["start_monotonic_s"] > ended_s
        ended_s = phase["end_monotonic_s"]
        assert phase["start_monotonic_s"] == min(c.start_s for c in mine)
        assert phase["end_monotonic_s"] == max(c.end_s for c in mine)
        rounds_of = [[c for c in mine if c.round == n] for n in range(1, rounds + 1)]
        spans = [span_s(found) for found in rounds_of]
        metrics = phase["metrics"]
        assert metrics["operations"] == operations
        assert metrics["span_s"] == near(sum(spans))
        assert metrics["operations_per_s"] == near(operations / metrics["span_s"])
        first = [[c.start_s for c in found if c.file == 0 and c.name == KINDS[phase["name"]][0]]
                 for found in rounds_of]  # fmt: skip
        apart_s = sum(max(starts) - min(starts) for starts in first) / rounds
        assert metrics["start_apart_mean_s"] == near(apart_s)
        bytes_moved = operations * int((re.findall(r"size=(\d+)", more) or ["0"])[0])
        if phase["name"] == "create" and bytes_moved:
            assert phase["bytes_moved"] == bytes_moved
            assert phase["bandwidth_bytes_per_s"] == near(bytes_moved / metrics["span_s"])
        else:
            assert (phase["bytes_moved"], phase["bandwidth_bytes_per_s"]) == (0, None)
        for name in KINDS[phase["name"]]:
            times = sorted(c.seconds for c in mine if c.name == name)
            if not times:
                assert not any(key.startswith(f"{name}_") for key in metrics)
                continue
            assert metrics[f"{name}_mean_s"] == near(math.fsum(times) / len(times))
            assert metrics[f"{name}_max_s"] == near(times[-1])
            for percent in (50, 95, 99):
                rank = math.ceil(len(times) * percent / 100)
                assert metrics[f"{name}_p{percent}_s"] == near(times[rank - 1])
        for line, found, span in zip(lines, rounds_of, spans, strict=True):
            part = line[phase["name"]]
            assert part["operations"] == ranks * files
            assert part["span_s"] == near(span)
            assert part["operations_per_s"] == near(ranks * files / part["span_s"])
            if phase["name"] == "create":
                assert part["rate_eq9_per_s"] == near(equation_9(found))
        if phase["name"] == "create":
            assert metrics["rate_eq9_per_s"] == near(equation_9(mine))
            if flushed:
                assert metrics["rate_eq10_per_s"] == near(equation_10(mine))
                assert metrics["rate_eq10_per_s"] > metrics["rate_eq9_per_s"]
            else:
                assert "rate_eq10_per_s" not in metrics
    notes = " ".join(reported["notes"])
    assert f"mode: {'MPI' if program.mpi else 'fork'}" in notes
    assert ("equation (10) has no value" in notes) == (not flushed)


def test_all_start_at_one_instant(forking: Program, tmp_path: Path) -> None:
    """In each round all ask the kernel to wake them at the same time, and none starts earlier."""
    programs.need("strace")
    trace, ranks, rounds = tmp_path / "strace", 3, 5
    forking.good(
        ranks, "files=1", f"rounds={rounds}", f"directory={tmp_path}",
        f"calls={tmp_path}/calls.csv",
        before=["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=clock_nanosleep"],
    )  # fmt: skip
    moment = re.compile(
        r"clock_nanosleep\(CLOCK_MONOTONIC, TIMER_ABSTIME, \{tv_sec=(\d+), tv_nsec=(\d+)\}"
    )
    woken = Counter(int(s) * 10**9 + int(ns) for s, ns in moment.findall(trace.read_text()))
    assert set(woken.values()) == {ranks}
    calls = calls_of(tmp_path / "calls.csv")
    stretches = itertools.product(("open", "stat", "utime", "unlink"), range(1, rounds + 1))
    for (name, number), instant_ns in zip(stretches, sorted(woken), strict=True):
        starts_s = [c.start_s for c in calls if (c.name, c.round) == (name, number)]
        assert len(starts_s) == ranks and min(starts_s) >= instant_ns * 1e-9 - 1e-6


def test_as_many_processes_as_are_allowed(forking: Program, tmp_path: Path) -> None:
    forking.good(
        256, "rounds=3", "layout=own", f"directory={tmp_path}", f"calls={tmp_path}/calls.csv"
    )
    calls = calls_of(tmp_path / "calls.csv")
    assert Counter(c.rank for c in calls) == dict.fromkeys(range(256), 3 * 6)
    assert programs.running(forking.path) == []


# --- the calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["shared", "own"])
def test_the_kernel_sees_these_calls_and_no_others(
    forking: Program, tmp_path: Path, layout: str
) -> None:
    programs.need("strace")
    trace = tmp_path / "strace"
    forking.good(
        3, "files=4", "rounds=5", f"layout={layout}", "size=100", f"directory={tmp_path}",
        f"calls={tmp_path}/calls.csv",
        before=["strace", "-f", "-qq", "-y", "-o", str(trace), "-e",
                "trace=openat,open,write,fsync,fdatasync,close,newfstatat,utimensat,unlinkat"],
    )  # fmt: skip
    lines = [
        # strace cuts a call in two where another process's comes between.
        line
        for line in trace.read_text().splitlines()
        if " resumed>" not in line
    ]
    places = r"round\.\d+/rank\.\d+" if layout == "own" else r"round\.\d+"
    made = re.compile(rf'openat\(\d+<.*/eeio-metadata\.files/{places}>, "file\.\d+\.\d+", (\S+),')
    flags = Counter(match[1] for line in lines if (match := made.search(line)))
    assert flags == {"O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC": 60}
    assert sum("O_EXCL" in line for line in lines) == 60
    on_file = re.compile(rf"(\w+)\(\d+<[^>]*/{places}/file\.\d+\.\d+>")
    calls = Counter(match[1] for line in lines if (match := on_file.search(line)))
    assert calls == {
        "write": 60, "fsync": 60, "close": 60,
    }  # fmt: skip
    assert sum(re.search(r"f(data)?sync\(", line) is not None for line in lines) == 60
    named = re.compile(r'(newfstatat|utimensat|unlinkat)\(\d+<[^>]*>, "file\.')
    calls = Counter(match[1] for line in lines if (match := named.search(line)))
    assert calls == {
        "newfstatat": 60, "utimensat": 60, "unlinkat": 60,
    }  # fmt: skip


# --- bad input ------------------------------------------------------------------------------------

BAD_OPTIONS = [
    ("files=0", "files=0: give a whole number from 1 to 65536"),
    ("files=65537", "files=65537: give a whole number from 1 to 65536"),
    ("files=many", "files=many: give a whole number"),
    ("rounds=0", "rounds=0: give a whole number from 1"),
    ("size=-1", "size=-1: give a whole number from 0"),
    ("size=99999999999999999999", "give a whole number"),
    ("ranks=257", "ranks=257: give a whole number from 1 to 256"),
    ("ranks=0", "ranks=0: give a whole number from 1 to 256"),
    ("fsync=yes", "fsync=yes: give off or on"),
    ("layout=", "layout=: give shared or own"),
    ("files=65536 rounds=100000", "more than half of the"),
    ("speed=fast", "unknown option speed"),
    ("fast", "fast: give KEY=VALUE"),
]


@pytest.mark.fast_variants(1)
def test_bad_options_are_rejected_and_touch_nothing(sanitized: Program, tmp_path: Path) -> None:
    sanitized.all_rejected(BAD_OPTIONS, f"directory={tmp_path}")
    if sanitized.mpi:
        assert "3 ranks were started and MPI has joined 1" in sanitized.rejection("ranks=3")
    assert list(tmp_path.iterdir()) == []


def failure(program: Program, ranks: int, *options: str, before: tuple[str, ...] = ()) -> str:
    """The program's own words of a run that must fail, of all ranks."""
    done = program.run(ranks, *options, before=before)
    assert done.returncode == 1, done.stdout + done.stderr
    assert programs.running(program.path) == []
    lines = [line for line in done.stderr.splitlines() if line.startswith("eeio-metadata: ")]
    assert lines, done.stderr
    if not program.mpi:
        assert len(lines) == 1
    return lines[0]


def test_directories_that_cannot_be_used(program: Program, tmp_path: Path) -> None:
    reported = failure(program, 2, "directory=/nowhere")
    assert "/nowhere/eeio-metadata.files: No such file or directory" in reported
    (tmp_path / "file").write_text("")
    assert "Not a directory" in failure(program, 2, f"directory={tmp_path}/file")
    assert "File name too long" in failure(program, 2, f"directory={tmp_path}/{'n' * 300}")
    deep = str(tmp_path) + "/" + "d/" * 2100
    assert "the path is too long" in failure(program, 2, f"directory={deep}")
    # Of another run, or what one left: nobody's files are touched.
    (tmp_path / "eeio-metadata.files").mkdir()
    (tmp_path / "eeio-metadata.files/kept").write_text("mine")
    reported = failure(program, 2, f"directory={tmp_path}")
    assert "File exists: another run works there, or left it; run post.sh" in reported
    assert (tmp_path / "eeio-metadata.files/kept").read_text() == "mine"


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "more", "reported"),
    [
        ("size=1m,nr_inodes=20", "files=30", r"file\.\d+\.\d+: open: No space left on device"),
        ("size=256k", "files=30 size=9000", r"file\.\d+\.\d+: write: No space left on device"),
        ("size=1m,ro", "", r"eeio-metadata\.files: Read-only file system"),
    ],
)
def test_disks_that_are_full_or_read_only(
    program: Program, tmp_path: Path, options: str, more: str, reported: str
) -> None:
    with programs.memory_disk(tmp_path / "small", options) as disk:
        assert re.search(reported, failure(program, 3, *more.split(), f"directory={disk}"))
        if not program.mpi:
            assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "error", "reported"),
    [
        ("fsync", "EDQUOT", r"round\.1/file\.\d\.1: fsync: Disk quota exceeded"),
        ("fsync", "EIO", r"round\.1/file\.\d\.1: fsync: Input/output error"),
        ("unlinkat", "EROFS", r"round\.1/file\.\d\.1: unlink: Read-only file system"),
        ("utimensat", "EPERM", r"round\.1/file\.\d\.1: utime: Operation not permitted"),
    ],
)
def test_errors_in_the_middle(
    forking: Program, tmp_path: Path, call: str, error: str, reported: str
) -> None:
    """Of the second such call of each process; the others must not wait for it."""
    programs.need("strace")
    inject = f"inject={call}:error={error}:when=2"
    before = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject)
    assert re.search(
        reported, failure(forking, 3, "files=4", f"directory={tmp_path}", before=before)
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_already(forking: Program, tmp_path: Path) -> None:
    programs.need("strace")
    opened = tmp_path / "eeio-metadata.files/round.1"
    before = ("strace", "-f", "-qq", "-o", "/dev/null", "-P", str(opened), "-e", "trace=openat",
              "-e", "inject=openat:error=EEXIST:when=3")  # fmt: skip
    reported = failure(forking, 2, "files=4", f"directory={tmp_path}", before=before)
    assert re.search(r"round\.1/file\.\d\.\d: open: File exists", reported)
    assert list(tmp_path.iterdir()) == []


def test_results_that_cannot_be_kept(program: Program, tmp_path: Path) -> None:
    for key in ("calls", "eeio"):
        reported = failure(program, 1, f"directory={tmp_path}", f"{key}=/dev/full", "rounds=200")
        assert "/dev/full: the result was not written completely" in reported
    assert list(tmp_path.iterdir()) == []


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.fast_variants(1)
def test_sanitizers_see_nothing(sanitized: Program, tmp_path: Path) -> None:
    for more in ("layout=own size=4097", "fsync=off"):
        sanitized.good(
            3, "files=4", "rounds=3", *more.split(), f"directory={tmp_path}",
            f"calls={tmp_path}/calls.csv", f"eeio={tmp_path}/eeio.json",
        )  # fmt: skip


@pytest.mark.fast_variants(1)
def test_valgrind_sees_nothing(program: Program, tmp_path: Path) -> None:
    programs.check_memory(
        program, 2, "files=3", "rounds=2", "layout=own", "size=100", f"directory={tmp_path}",
        f"calls={tmp_path}/calls.csv", f"eeio={tmp_path}/eeio.json",
    )  # fmt: skip


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("files=0", "files=0: give a whole number from 1 to 65536"),
        ("processes=257", "processes=257: give a whole number from 1 to 256"),
        ("rounds=x", "rounds=x: give a whole number"),
        ("size=1t", "size=1t: give a size"),
        ("size=2g", "size=2g: give 0, or a size from 1 to 1g"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("operation=write", "operation=write: give one of: metadata"),
        ("layout=tree", "layout=tree: give one of: shared own"),
        ("mode=threads", "mode=threads: give one of: auto mpi fork"),
        ("speed=fast", "unknown factor 'speed=fast'"),
    ],
)
def test_factors_are_rejected(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("metadata")
    profile.rejects(arguments, reported)


def tool_conf(profile: Installed) -> dict[str, str]:
    lines = (profile.home / "tool.conf").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_machine_without_mpi_forks(tmp_path: Path) -> None:
    programs.need("cc")
    profile = Installed("metadata", tmp_path / "home", tmp_path / "disk")
    profile.install(EEIO_MPIRUN="/nowhere")
    assert tool_conf(profile)["mode"] == "fork"
    assert ", fork, " in tool_conf(profile)["version"]
    assert Path(tool_conf(profile)["path"]).name == "metadata-fork"
    factors = {"processes": "2", "rounds": "2"}
    profile.script("pre.sh")
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    assert "mode: fork" in tools.parse("metadata", capture).notes[0]
    done = profile.run("mode=mpi", code=2)
    assert "MPI was missing when this was installed: install the packages" in done.stderr


def test_a_machine_without_a_compiler(tmp_path: Path) -> None:
    profile = Installed("metadata", tmp_path / "home", tmp_path / "disk")
    commands = tmp_path / "commands"
    commands.mkdir()
    for command in ("bash", "chmod", "cp", "dirname", "rm"):
        found = shutil.which(command)
        assert found
        (commands / command).symlink_to(found)
    done = profile.install(PATH=str(commands), code=1)
    assert "a C compiler is missing: install the packages gcc and libc6-dev" in done.stderr
    assert not (profile.home / "tool.conf").exists()


def test_machines_that_cannot_start_it(installed: Installer, tmp_path: Path) -> None:
    programs.need("mpicc", "mpirun")
    profile = installed("metadata")
    assert tool_conf(profile)["mode"] == "mpi"
    arguments = ("processes=2", "rounds=1")
    assert "run pre.sh with these factors first" in profile.run(*arguments, code=2).stderr
    profile.script("pre.sh", *arguments)
    done = profile.run(*arguments, EEIO_MPIRUN="/nowhere", code=2)
    assert "/nowhere is missing: install the packages" in done.stderr
    assert (profile.home / "test-exit-status").read_text() == "2\n"
    done = profile.run("mode=fork", *arguments, EEIO_HOSTFILE=str(tmp_path), code=2)
    assert "its processes run on one machine" in done.stderr
    profile.clean_up(*arguments)


@pytest.mark.root
def test_a_disk_that_is_too_small(installed: Installer, tmp_path: Path) -> None:
    profile = installed("metadata")
    with programs.memory_disk(tmp_path / "small", "size=1m,nr_inodes=50") as disk:
        for arguments, reported in (
            ("processes=2 files=30 rounds=1 fsync=off", "needs 65 inodes, 48 are free"),
            ("processes=2 files=4 rounds=1 size=1m", "needs 8413184 bytes, 1048576 are free"),
        ):
            done = profile.script("pre.sh", *arguments.split(), EEIO_DIRECTORY=str(disk), code=2)
            assert reported in done.stderr, done.stderr
        profile.script("post.sh", EEIO_DIRECTORY=str(disk), code=None)
        assert list(disk.iterdir()) == []


def endless(mode: str) -> tuple[str, ...]:
    """Some 100 000 creations a process, with the disk's own pace."""
    return ("files=65536", "rounds=2", "processes=4", f"mode={mode}")


@pytest.mark.parametrize("victim", ["rank", "parent"])
def test_nothing_stays_when_a_process_dies(installed: Installer, mode: str, victim: str) -> None:
    if mode == "mpi":
        programs.need("mpicc", "mpirun")
    profile = installed("metadata")
    profile.script("pre.sh", "rounds=1")
    reported = programs.reported_of_a_death(
        profile, profile.home / f"metadata-{mode}", endless(mode), 4, "eeio-metadata.files",
        lambda ranks: max(ranks) if victim == "rank" else programs.parent(ranks[0]),
    )  # fmt: skip
    if victim == "rank":
        assert programs.DIED.search(reported)
        if mode == "fork":
            assert "died of signal 9; the others were ended" in reported
    # The wrapper removes what they left; MPI's ranks write on for a moment without their mpirun.
    left = {path.name for path in (profile.directory / "eeio-scratch").iterdir()}
    assert left == {"eeio-metadata.ready"} or (mode, victim) == ("mpi", "parent")
    profile.clean_up()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_ended_run_removes_its_files(
    forking: Program, tmp_path: Path, how: signal.Signals
) -> None:
    process = subprocess.Popen(
        forking.command(3, "files=65536", f"directory={tmp_path}", f"calls={tmp_path}/calls.csv"),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while len(programs.at_work(forking.path, "eeio-metadata.files")) < 3:
            assert process.poll() is None
        os.kill(process.pid, how)
        _, reported = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 128 + how
    assert reported == f"eeio-metadata: ended by signal {int(how)}\n"
    assert programs.running(forking.path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_removed(installed: Installer) -> None:
    profile = installed("metadata")
    left = profile.directory / "eeio-scratch/eeio-metadata.files/round.1"
    for script in ("pre.sh", "interim.sh", "post.sh"):
        left.mkdir(parents=True)
        (left / "file.0.0").write_text("")
        profile.script(script)
        assert not left.exists()
    assert list(profile.directory.iterdir()) == []


@pytest.fixture
def captured(installed: Installer, tmp_path: Path) -> Iterator[Installed]:
    profile = installed("metadata")
    profile.script("pre.sh")
    yield profile
    profile.script("post.sh")


def test_parsed_as_four_phases(captured: Installed, mode: str, tmp_path: Path) -> None:
    if mode == "mpi":
        programs.need("mpicc", "mpirun")
    factors = {"processes": "2", "rounds": "3", "mode": mode, "size": "1k"}
    capture = captured.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("metadata", capture)
    assert [(p.name, p.operation, p.spatiality, p.request_size_bytes) for p in result.phases] == [
        (kind, "metadata", "none", None) for kind in KINDS
    ]
    create, *others = result.phases
    assert create.bytes_moved == 2 * 8 * 3 * 1024  # quick: 8 files
    assert create.bandwidth_bytes_per_s
    assert {(p.bytes_moved, p.bandwidth_bytes_per_s) for p in others} == {(0, None)}
    assert all(p.start_s and p.end_s and p.invalid == () for p in result.phases)
    assert f"mode: {'MPI' if mode == 'mpi' else 'fork'}" in result.notes[0]


def test_result_lines_for_pts(captured: Installed, tmp_path: Path) -> None:
    log = tmp_path / "pts.log"
    done = captured.run("processes=2", "mode=fork", LOG_FILE=str(log))
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^EEIO (\w+) rate: ([\d.]+) Files/s$", log.read_text(), re.M)
    assert [name for name, _ in lines] == list(KINDS)
    assert all(float(value) > 0 for _, value in lines)
