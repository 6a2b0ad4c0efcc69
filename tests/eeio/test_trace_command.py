"""`eeio record trace` on real programs, and on what cannot be traced."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.eeio_results import made
from tests.executables import executable
from tests.plugin import Eeio
from tests.processes import ran

from eeio.machine.filesystem import mount_of
from eeio.measure import tracers, writeback
from eeio.report.documents.traced import Traced, table
from eeio.report.table_and_plot import Table
from eeio.report.text import render_table
from eeio.traces import account, stored
from eeio.traces.events import ALL_FILES, TracePhase

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
# bpftrace looks for tracepoints where systemd mounts tracefs at boot; where nobody has mounted it,
# each command gets a mount of its own that nobody else sees.
WITH_TRACEFS = (
    "unshare", "--mount", "sh", "-c",
    'mountpoint -q "$0" || mount -t tracefs tracefs "$0" && exec "$@"', "/sys/kernel/tracing",
)  # fmt: skip


def _no_bpftrace(path: str = os.environ.get("PATH", os.defpath)) -> str | None:
    """Why bpftrace cannot be tried here, at the best that a test can do for it."""
    program = "from eeio.measure import tracers; print(tracers.no_bpftrace() or '')"
    done = ran(
        [*WITH_TRACEFS, sys.executable, "-c", program], env={**os.environ, "PATH": path}, code=None
    )
    return (done.stdout if done.returncode == 0 else done.stderr).strip() or None


BEFORE = {"strace": (), "bpftrace": WITH_TRACEFS}
NO_BPFTRACE = _no_bpftrace()
needs_bpftrace = pytest.mark.skipif(NO_BPFTRACE is not None, reason=str(NO_BPFTRACE))
BTIO = Path(__file__).parents[2] / "test-profiles" / "eeio-btio-1.0.0" / "btio.c"


@pytest.mark.slow
@pytest.mark.parametrize(
    "tracer",
    [pytest.param("strace", marks=needs_strace), pytest.param("bpftrace", marks=needs_bpftrace)],
)
def test_two_phases_of_dd(home: Path, eeio: Eeio, tracer: str) -> None:
    script = (
        f"dd if=/dev/zero of={home}/f bs=64k count=20 2>/dev/null; "
        f"dd if={home}/f of=/dev/null bs=128k 2>/dev/null"
    )
    done = eeio(
        "record", "trace", "--tracer", tracer, "--meter", "none", "-o", str(home / "out"),
        "--format", "json",
        "--replay", str(home / "replay.csv"), "--", "sh", "-c", script, before=BEFORE[tracer],
    )  # fmt: skip
    body = json.loads(done.stdout)
    write, read = _transfers(body)
    assert (write["operation"], write["requests"], write["bytes_written"]) == (
        "write",
        20,
        20 << 16,
    )
    assert (read["operation"], read["requests"], read["request_size_bytes"]) == (
        "read",
        10,
        1 << 17,
    )
    assert write["spatiality"] == read["spatiality"] == "sequential"
    assert write["end_s"] <= read["start_s"]
    assert json.loads((home / "out" / "phases.json").read_text()) == body
    assert (home / "out" / "timeline.svg").read_text().startswith("<svg")
    lines = (home / "replay.csv").read_text().splitlines()
    assert len(lines) == 31
    again = eeio("record", "trace", "--format", "json", "--read", str(home / "replay.csv"))
    phases = json.loads(again.stdout)["phases"]
    assert [p["bytes_moved"] for p in phases] == [20 << 16, 20 << 16]


def _writes_with_pauses(path: Path, *pauses_s: float) -> tuple[str, ...]:
    """A program that writes 20 blocks before each pause.

    It is one process with one open file: a close between two blocks is a phase of its own where a
    busy machine makes it slow.
    """
    program = (
        "import os, sys, time\n"
        "file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "for pause_s in map(float, sys.argv[2:]):\n"
        "    for _ in range(20):\n"
        "        os.write(file, bytes(1 << 16))\n"
        "    time.sleep(pause_s)\n"
    )
    return (sys.executable, "-c", program, str(path), *map(str, pauses_s))


@needs_strace
def test_power_is_in_every_output(home: Path, eeio: Eeio) -> None:
    """The window is long enough for readings: writes, a pause, writes."""
    arguments = ("record", "trace", "--meter", "demo", "--gap", "60", "--file", str(home / "f"))
    program = ("--", *_writes_with_pauses(home / "f", 1, 0))
    shown = eeio(*arguments, "-o", str(home / "a"), "--replay", str(home / "t.csv"), *program)
    for domain in ("system", "package", "device"):
        assert f"DEMO {domain} " in shown.stdout
    assert (home / "t.csv").read_text().count("write") == 40
    assert "DEMO system (" in (home / "a" / "timeline.svg").read_text()
    stored = json.loads((home / "a" / "phases.json").read_text())
    printed = eeio(*arguments, "-o", str(home / "b"), "--format", "json", *program)
    for body in (stored, json.loads(printed.stdout)):
        (phase,) = _transfers(body)
        assert [reading["domain"] for reading in phase["energy"]] == ["system", "package", "device"]
        for reading in phase["energy"]:
            assert (reading["meter"], reading["kind"], reading["valid"]) == ("demo", "demo", True)
            span_s = phase["end_s"] - phase["start_s"]
            assert reading["energy_j"] == pytest.approx(reading["power_w"] * span_s)


@needs_strace
def test_an_energy_that_is_not_known_is_not_shown(home: Path, eeio: Eeio) -> None:
    """Some milliseconds between two readings: the energy was shown with a limit of 100 %."""
    done = eeio(
        "record", "trace", "--meter", "demo", "-o", str(home / "o"), "--file", str(home / "f"),
        "--format", "json",
        "--", "dd", "if=/dev/zero", f"of={home}/f", "bs=64k", "count=200",
    )  # fmt: skip
    (phase,) = _transfers(json.loads(done.stdout))
    assert len(phase["energy"]) == 3
    for reading in phase["energy"]:
        if reading["energy_j"] is None:
            assert reading["reasons"] and reading["power_w"] is None
        else:
            assert reading["uncertainty_j"] <= 0.5 * reading["energy_j"]


@needs_strace
def test_the_table_is_printed_where_a_replay_is_impossible(home: Path, eeio: Eeio) -> None:
    done = eeio(
        "record", "trace", "--meter", "none", "-o", str(home / "o"), "--replay",
        str(home / "t.csv"),
        "--", "sh", "-c", f"echo x >>{home}/f", code=1,
    )  # fmt: skip
    assert "I/O phases" in done.stdout
    assert "cannot be replayed" in done.stderr


@pytest.mark.parametrize(
    "tracer",
    [pytest.param("strace", marks=needs_strace), pytest.param("bpftrace", marks=needs_bpftrace)],
)
def test_copies_are_observed_and_mappings_and_queues_are_named(
    home: Path, eeio: Eeio, tracer: str
) -> None:
    (home / "f").write_bytes(b"x" * 100_000)
    program = f"""
import ctypes, mmap, os
f = os.open({str(home / "f")!r}, os.O_RDWR)
g = os.open({str(home / "g")!r}, os.O_RDWR | os.O_CREAT)
os.copy_file_range(f, g, 1000)
os.copy_file_range(f, g, 900, 5000, 7000)
os.sendfile(g, f, None, 300)
os.sendfile(g, f, 4096, 200)
r, w = os.pipe()
os.splice(f, w, 500, offset_src=10)
os.splice(r, g, 500)
mmap.mmap(f, 4096)
mmap.mmap(-1, 4096)
ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(256))
"""
    done = eeio(
        "record", "trace", "--tracer", tracer, "--meter", "none", "-o", str(home / "o"), "--replay",
        str(home / "t.csv"), "--file", str(home), "--format", "json", "--", sys.executable, "-c",
            program,
        before=BEFORE[tracer],
    )  # fmt: skip
    rows = [line.split(",")[2:] for line in (home / "t.csv").read_text().splitlines()[1:]]
    # The second file is behind the first one: from 8192 on.
    assert rows == [
        ["read", "0", "1000"], ["write", "8192", "1000"],
        ["read", "5000", "900"], ["write", "15192", "900"],
        ["read", "1000", "300"], ["write", "9192", "300"],
        ["read", "4096", "200"], ["write", "9492", "200"],
        ["read", "10", "500"], ["write", "9692", "500"],
    ]  # fmt: skip
    body = json.loads(done.stdout)
    assert {"kind": "mmap", "file": str(home / "f")} in body["not_observed"]
    queues = [each for each in body["not_observed"] if each["file"] is None]
    # A kernel may refuse io_uring (kernel.io_uring_disabled, seccomp).
    assert queues in ([], [{"kind": "io_uring", "file": None}])
    again = eeio(
        "record", "trace", "--read", *(str(path) for path in (home / "o").glob(f"{tracer}.*")),
    )  # fmt: skip
    assert f"not observed, so its bytes are missing: {'io_uring; ' * bool(queues)}mmap of " in (
        again.stdout
    )


@needs_strace
def test_the_programs_failure_is_handed_on(home: Path, eeio: Eeio) -> None:
    done = eeio("record", "trace", "--meter", "none", "-o", str(home / "o"), "--", "false", code=1)
    assert "no read and no write of a file was observed" in done.stdout


@needs_strace
def test_strace_files_are_read_again(home: Path, eeio: Eeio) -> None:
    eeio(
        "record", "trace", "--meter", "none", "-o", str(home / "o"), "--",
        "dd", "if=/dev/zero", f"of={home}/f", "bs=4k", "count=9",
    )  # fmt: skip
    files = [str(path) for path in (home / "o").glob("strace.*")]
    done = eeio("record", "trace", "--format", "json", "--read", *files)
    assert [p["requests"] for p in _transfers(json.loads(done.stdout))] == [9]


@needs_strace
def test_a_file_that_nothing_touched_is_reported_as_that(home: Path, eeio: Eeio) -> None:
    done = eeio(
        "record", "trace", "--meter", "none", "-o", str(home / "o"), "--file", "nowhere", "--",
        "dd", "if=/dev/zero", f"of={home}/f", "bs=4k", "count=9",
    )  # fmt: skip
    assert "none of 9 reads and writes was of a file with nowhere in its path" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which program"),
        (("--read", "/nowhere"), "No such file"),
        (("--read", "x", "--", "true"), "which program"),
        (("--", "no-such-program-here"), "no such program"),
        (("--meter", "nonsense", "--", "true"), "nonsense"),
        (("--gap", "nan", "--", "true"), "--gap is 0 or above"),
        (("--gap", "-1", "--", "true"), "--gap is 0 or above"),
    ],
)
def test_rejected(home: Path, eeio: Eeio, arguments: tuple[str, ...], message: str) -> None:
    done = eeio("record", "trace", *arguments, code=2)
    assert message in done.stderr, done.stderr


def test_without_strace_it_reports_what_to_install(home: Path, eeio: Eeio) -> None:
    (home / "bin").mkdir()
    for name in ("true", "env"):
        (home / "bin" / name).symlink_to(shutil.which(name) or "")
    done = eeio("record", "trace", "--", "true", environment={"PATH": str(home / "bin")}, code=2)
    assert "install the package strace" in done.stderr


# --- rows that add up


def _rows(body: Any) -> dict[str, Any]:
    return {row["name"]: row for row in body["rows"]}


def _traced(home: Path, eeio: Eeio, *arguments: str, meter: str = "none") -> Any:
    """The JSON of a program under strace, of the files in `home`."""
    done = eeio(
        "record", "trace", "--meter", meter, "-o", str(home / "o"), "--file", str(home / "f"),
        "--format", "json", "--", *arguments,
    )  # fmt: skip
    return json.loads(done.stdout)


def _assert_times_and_bytes_add_up(body: Any) -> None:
    rows = _rows(body)
    parts = [row for row in body["rows"] if row["phase"] is not None or row["name"] == "rest"]
    assert sum(row["seconds"] for row in parts) == pytest.approx(rows["total"]["seconds"])
    moved = sum(row["bytes_moved"] or 0 for row in parts)
    assert moved == rows["total"]["bytes_moved"] == sum(p["bytes_moved"] for p in body["phases"])


@needs_strace
@pytest.mark.parametrize("flushes", [True, False])
def test_dd_with_and_without_its_flush(home: Path, eeio: Eeio, flushes: bool) -> None:
    dd = ["dd", "if=/dev/zero", f"of={home}/f", "bs=1M", "count=20"]
    body = _traced(home, eeio, *dd, *["conv=fsync"] * flushes)
    _assert_times_and_bytes_add_up(body)
    rows = _rows(body)
    operations = [phase["operation"] for phase in body["phases"]]
    assert ("flush" in operations) == flushes
    # On a busy machine the file that dd has opened twice may be closed slowly before its writes.
    number = str(operations.index("write") + 1)
    assert rows[number]["bytes_into_page_cache"] == 20 << 20
    assert rows["total"]["bytes_into_page_cache"] == (0 if flushes else 20 << 20)
    late = rows["writeback after the end"]
    if late["seconds"] is None:  # such as on tmpfs
        assert late["reason"]
    else:
        assert rows["total until durable"]["seconds"] == pytest.approx(
            rows["total"]["seconds"] + late["seconds"]
        )
    text = eeio("record", "trace", "--read", *map(str, (home / "o").glob("strace.*"))).stdout
    write, total = (
        next(line for line in text.splitlines() if line.startswith(name))
        for name in (f"{number} ", "total")
    )
    assert "write, into page cache" in write
    assert [line.count("*") for line in (write, total)] == [1, int(not flushes)]


@needs_strace
def test_joules_of_phases_and_rest_are_those_of_the_total(home: Path, eeio: Eeio) -> None:
    """Long enough for the demo meter: a phase over the pauses, and a rest of a second."""
    done = eeio(
        "record", "trace", "--meter", "demo", "-o", str(home / "o"), "--file", str(home / "f"),
        "--format", "json", "--gap", "60", "--", *_writes_with_pauses(home / "f", 0.4, 0.4, 1),
    )  # fmt: skip
    body = json.loads(done.stdout)
    _assert_times_and_bytes_add_up(body)
    assert json.loads((home / "o" / "phases.json").read_text()) == body
    rows = _rows(body)
    totals = rows["total"]["energy"]
    assert [reading["domain"] for reading in totals] == ["system", "package", "device"]
    for number, reading in enumerate(totals):
        summands = [row for row in body["rows"] if row["phase"] or row["name"] == "rest"]
        parts = [row["energy"][number] for row in summands if row["seconds"]]
        assert reading["energy_j"] is not None, reading
        assert all(part["kind"] == "demo" for part in parts)
        missing = [part for part in parts if part["energy_j"] is None]
        assert all(part["reasons"] for part in missing)
        if not missing:
            assert sum(part["energy_j"] for part in parts) == pytest.approx(reading["energy_j"])
    assert rows["1"]["energy"][0]["energy_j"] is not None


@needs_strace
def test_a_copy_and_direct_writes(home: Path, eeio: Eeio) -> None:
    (home / "g").write_bytes(b"x" * 300_000)
    body = _traced(home, eeio, "cp", "--reflink=never", str(home / "g"), str(home / "f"))
    _assert_times_and_bytes_add_up(body)
    assert _rows(body)["total"]["bytes_into_page_cache"] == 300_000
    program = f"import os; f = os.open({str(home / 'f')!r}, os.O_WRONLY | os.O_DSYNC); " + (
        "os.write(f, b'x' * 5000)"
    )
    shutil.rmtree(home / "o")
    body = _traced(home, eeio, sys.executable, "-c", program)
    assert _rows(body)["total"]["bytes_into_page_cache"] == 0
    assert _rows(body)["1"]["bytes_written"] == 5000


@needs_strace
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_a_transaction_of_sqlite(home: Path, eeio: Eeio) -> None:
    body = _traced(home, eeio, "sqlite3", str(home / "f"), "create table t(a)")
    _assert_times_and_bytes_add_up(body)
    flushes = sum(
        phase["requests"] if phase["operation"] == "flush" else phase["flushes"]
        for phase in body["phases"]
    )
    assert flushes >= 2  # of the journal and of the database
    assert _rows(body)["total"]["bytes_into_page_cache"] == 0


@needs_strace
def test_every_format_has_the_rest_and_the_total(home: Path, eeio: Eeio) -> None:
    dd = ("dd", "if=/dev/zero", f"of={home}/f", "bs=1M", "count=4", "conv=fsync")
    done = eeio(
        "record", "trace", "--meter", "demo", "-o", str(home / "o"), "--format", "csv", "--", *dd
    )
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [line["name"] for line in lines][-4:-2] == ["rest", "total"]
    assert lines[0]["operation"] == "write, into page cache"
    assert {line["demo_system_kind"] for line in lines if line["name"] != "rest"} <= {"demo", ""}
    total = next(line for line in lines if line["name"] == "total")
    assert int(total["bytes_written"]) >= 4 << 20
    files = [str(path) for path in (home / "o").glob("strace.*")]
    for format_ in ("table", "markdown", "latex", "html"):
        text = eeio("record", "trace", "--format", format_, "--read", *files).stdout
        assert "rest" in text and "total" in text and "into page cache" in text


def test_a_file_in_memory_has_no_writeback(tmp_path: Path) -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir() or mount_of(folder).filesystem != "tmpfs":
        pytest.skip("/dev/shm is not on tmpfs")
    done = writeback.flush([str(folder / "no-such-folder" / "f")])
    assert done is not None
    assert done.reason == f"{mount_of(folder).mount_point} (tmpfs) is in memory and has no drive"
    assert writeback.flush([]) is None


@needs_strace
@needs_bpftrace
def test_both_tracers_observe_flushes_and_the_page_cache(home: Path, eeio: Eeio) -> None:
    program = f"""
import os
f = os.open({str(home / "f")!r}, os.O_RDWR | os.O_CREAT)
os.write(f, b"x" * 1000)
os.fsync(f)
g = os.open({str(home / "f-sync")!r}, os.O_RDWR | os.O_CREAT | os.O_DSYNC)
os.write(g, b"x" * 900)
os.write(f, b"x" * 50)
os.pwritev(f, [b"x" * 70], 0, os.RWF_DSYNC)
os.fdatasync(f)
os.fsync(os.open({str(home)!r}, os.O_RDONLY))
os.sync()
os.write(f, b"x" * 30)
"""
    found = {}
    for tracer in tracers.NAMES:
        eeio(
            "record", "trace", "--tracer", tracer, "--meter", "none", "-o", str(home / tracer),
            "--", sys.executable, "-c", program, before=BEFORE[tracer],
        )  # fmt: skip
        files = sorted((home / tracer).glob(f"{tracer}.*"))
        found[tracer] = [
            (event.operation, event.file, event.length, event.page_cache)
            for event in stored.read(files, set())
            if event.file.startswith((str(home), ALL_FILES)) and event.operation != "close"
        ]
    file, other = str(home / "f"), str(home / "f-sync")
    assert found["strace"] == found["bpftrace"] == [
        ("write", file, 1000, True), ("flush", file, 0, False), ("write", other, 900, False),
        ("write", file, 50, True), ("write", file, 70, False), ("flush", file, 0, False),
        ("flush", str(home), 0, False), ("flush", ALL_FILES, 0, False), ("write", file, 30, True),
    ]  # fmt: skip


# --- bpftrace


@pytest.mark.slow
@needs_bpftrace
def test_both_tracers_find_the_phases_of_mpi_ranks(home: Path, eeio: Eeio) -> None:
    if shutil.which("strace") is None or shutil.which("mpicc") is None:
        pytest.skip("strace or mpicc is missing")
    subprocess.run(
        [
            "mpicc",
            "-O2",
            f"-I{BTIO.parents[1] / 'common'}",
            "-o",
            str(home / "btio"),
            str(BTIO),
            "-lm",
        ],
        check=True,
    )
    mpi = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_io": "romio321", "HWLOC_COMPONENTS": "-gl"}  # fmt: skip
    found = []
    for tracer in tracers.NAMES:
        done = eeio(
            "record", "trace", "--tracer", tracer, "--meter", "none", "-o", str(home / tracer),
            "--format", "json",
            "--file", "eeio-btio", "--", "mpirun", "--oversubscribe", "-np", "4",
            str(home / "btio"), "class=S", "subtype=simple", f"directory={home}",
            environment=mpi, before=BEFORE[tracer],
        )  # fmt: skip
        times = {"start_s", "end_s", "io_s", "energy"}
        found.append(
            [
                {key: value for key, value in phase.items() if key not in times}
                for phase in _transfers(json.loads(done.stdout))
            ]
        )
    assert found[0] == found[1]
    assert [(p["operation"], p["requests"], p["processes"]) for p in found[0]] == [
        ("write", 3456, 4), ("read", 3456, 4),
    ]  # fmt: skip
    again = eeio(
        "record", "trace", "--format", "json", "--file", "eeio-btio", "--read",
        str(home / "bpftrace" / "bpftrace.txt"),
    )  # fmt: skip
    assert json.loads(again.stdout)["phases"][0]["bytes_written"] == 829440


@pytest.mark.parametrize(
    "tracer",
    [pytest.param("strace", marks=needs_strace), pytest.param("bpftrace", marks=needs_bpftrace)],
)
def test_every_kind_of_call_is_observed_and_nothing_of_others(
    home: Path, eeio: Eeio, tracer: str
) -> None:
    program = f"""
import os, threading
f = os.open({str(home / "f")!r}, os.O_RDWR | os.O_CREAT)
os.write(f, b"x" * 100)
os.writev(f, [b"x" * 10, b"y" * 10])
os.pwrite(f, b"x" * 7, 1000)
os.pwritev(f, [b"x" * 5, b"x"], 5000000000)
os.preadv(f, [bytearray(6)], 5000000000)
os.pread(f, 7, 1000)
os.lseek(f, 50, 0)
os.readv(os.dup(f), [bytearray(30)])
reader = threading.Thread(target=os.read, args=(f, 20))
reader.start()
reader.join()
if os.fork() == 0:
    os.write(f, b"c" * 3)
    os._exit(0)
os.wait()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", f"while True: open({str(home / 'other')!r}, 'w').write('x')"]
    )
    try:
        eeio(
            "record", "trace", "--tracer", tracer, "--meter", "none", "-o", str(home / "o"),
            "--replay",
            str(home / "t.csv"), "--file", str(home), "--", sys.executable, "-c", program,
            before=BEFORE[tracer],
        )  # fmt: skip
    finally:
        other.kill()
        other.wait()
    rows = [line.split(",")[2:] for line in (home / "t.csv").read_text().splitlines()[1:]]
    assert rows == [
        ["write", "0", "100"], ["write", "100", "20"], ["write", "1000", "7"],
        ["write", "5000000000", "6"], ["read", "5000000000", "6"], ["read", "1000", "7"],
        ["read", "50", "30"], ["read", "80", "20"], ["write", "100", "3"],
    ]  # fmt: skip


@pytest.mark.slow
@needs_bpftrace
def test_bpftrace_shows_where_appended_bytes_lie(home: Path, eeio: Eeio) -> None:
    """Linux appends what pwrite is given too (pwrite(2), bugs)."""
    (home / "f").write_bytes(b"x" * 1000)
    program = f"""
import os
f = os.open({str(home / "f")!r}, os.O_RDWR | os.O_APPEND)
os.write(f, b"x" * 10)
os.pwrite(f, b"x" * 20, 5)
os.pread(f, 30, 5)
"""
    eeio(
        "record", "trace", "--tracer", "bpftrace", "--meter", "none", "-o", str(home / "o"),
        "--replay",
        str(home / "t.csv"), "--file", str(home / "f"), "--", sys.executable, "-c", program,
        before=WITH_TRACEFS,
    )  # fmt: skip
    rows = [line.split(",")[2:] for line in (home / "t.csv").read_text().splitlines()[1:]]
    assert rows == [["write", "1000", "10"], ["write", "1010", "20"], ["read", "5", "30"]]


@pytest.mark.slow
@needs_bpftrace
def test_bpftrace_hands_on_the_programs_end(home: Path, eeio: Eeio) -> None:
    arguments = ("record", "trace", "--tracer", "bpftrace", "--meter", "none", "-o")
    eeio(*arguments, str(home / "a"), "--", "false", before=WITH_TRACEFS, code=1)
    eeio(
        *arguments, str(home / "b"), "--", "sh", "-c", "kill -9 $$", before=WITH_TRACEFS,
        code=128 + 9,
    )  # fmt: skip
    again = eeio(
        *arguments, str(home / "a"), "--", "touch", str(home / "ran"), before=WITH_TRACEFS, code=2
    )
    assert "contains a trace" in again.stderr


@needs_bpftrace
def test_lost_events_make_the_trace_invalid(home: Path, eeio: Eeio) -> None:
    done = eeio(
        "record", "trace", "--tracer", "bpftrace", "--meter", "none", "-o", str(home / "o"), "--",
        "dd",
        "if=/dev/zero", f"of={home / 'f'}", "bs=1", "count=200000",
        environment={"BPFTRACE_PERF_RB_PAGES": "1"}, before=WITH_TRACEFS, code=1,
    )  # fmt: skip
    assert "bpftrace lost" in done.stderr
    assert not (home / "o" / "phases.json").exists()


def test_a_bpftrace_that_does_not_start_runs_nothing(home: Path, eeio: Eeio) -> None:
    path = f"{home / 'bin'}:/usr/bin:/bin"
    executable(
        home / "bin" / "bpftrace", "#!/bin/sh\necho 'ERROR: Could not resolve symbol' >&2\nexit 1\n"
    )
    if (reason := _no_bpftrace(path)) is not None:
        pytest.skip(reason)
    done = eeio(
        "record", "trace", "--tracer", "bpftrace", "--meter", "none", "-o", str(home / "o"), "--",
        "touch", str(home / "ran"), environment={"PATH": path}, before=WITH_TRACEFS, code=2,
    )  # fmt: skip
    assert "bpftrace did not start, so the command was not run: ERROR: Could not" in done.stderr
    assert not (home / "ran").exists()


def test_where_bpftrace_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "install the package bpftrace, or take --tracer" in str(tracers.no_bpftrace())
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/bpftrace")
    pids = tmp_path / "pid"
    pids.symlink_to("pid:[4026532999]")

    def reason(user: int = 0) -> str:
        return str(tracers.no_bpftrace(tmp_path, str(pids), user))

    assert "needs root" in reason(1000)
    assert "has no BTF" in reason()
    (tmp_path / "btf").mkdir()
    (tmp_path / "btf" / "vmlinux").touch()
    assert "no tracepoints of system calls" in reason()
    (tmp_path / "tracing/events/syscalls/sys_enter_pread64").mkdir(parents=True)
    assert "--pid=host" in reason()
    pids.unlink()
    pids.symlink_to("pid:[4026531836]")
    assert reason() == "None"


def test_phases_tell_j_and_mb_per_j_with_their_limits_and_the_tracers_cost() -> None:
    phase = TracePhase(
        "write", "sequential", 0.0, 2.0, 10, 0, 10_000_000, 1 << 20, 1.0, 1, 1 << 20, 1, ("f",), 1.0
    )  # fmt: skip
    readings = (
        made.energy(5.0, domain="package"), made.energy(None, reasons=("too slow",)),
    )  # fmt: skip
    rows = account.rows_of([phase], [], (0.0, 2.0), lambda *_: readings)
    traced = Traced([], [phase], None, overhead=tracers.OVERHEAD["strace"], rows=rows)
    text = _text(traced)
    assert "Energy (J)" in text and "MB/J" in text
    assert "package 10 ±1 %" in text and "package 1 ±1 %" in text
    assert "power of system (meter): too slow (in 1, total)" in text
    assert "ran under strace, which stops it at each call" in text
    assert "strace" not in _text(replace(traced, overhead=None))
    assert "into page cache" not in text
    cached = replace(phase, bytes_into_page_cache=10_000_000)
    rows = account.rows_of([cached], [], (0.0, 2.0), lambda *_: readings)
    text = _text(replace(traced, phases=[cached], rows=rows))
    assert "write, into page cache" in text
    assert " 5* " in text and "package 1 ±1 %*" in text


def _transfers(body: Any) -> list[Any]:
    """The phases with reads and writes: on a busy machine a close may take long, too."""
    return [phase for phase in body["phases"] if phase["operation"] not in ("flush", "close")]


def _text(traced: Traced) -> str:
    shown = table(traced)
    assert isinstance(shown, Table)
    return render_table(shown)
