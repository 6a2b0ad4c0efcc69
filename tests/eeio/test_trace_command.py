"""`eeio record trace` on real programs, and on what cannot be traced."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results import made
from tests.executables import executable
from tests.plugin import Eeio
from tests.processes import ran

from eeio import tracers
from eeio_results.report.parts import Table
from eeio_results.report.text import render_table
from eeio_results.report.traced import Traced, table
from eeio_results.traces.events import TracePhase

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
# bpftrace looks for tracepoints where systemd mounts tracefs at boot; where nobody has mounted it,
# each command gets a mount of its own that nobody else sees.
WITH_TRACEFS = (
    "unshare", "--mount", "sh", "-c",
    'mountpoint -q "$0" || mount -t tracefs tracefs "$0" && exec "$@"', "/sys/kernel/tracing",
)  # fmt: skip


def _no_bpftrace(path: str = os.environ.get("PATH", os.defpath)) -> str | None:
    """Why bpftrace cannot be tried here, at the best that a test can do for it."""
    program = "from eeio import tracers; print(tracers.no_bpftrace() or '')"
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
    write, read = body["phases"]
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


@needs_strace
def test_power_is_in_every_output(home: Path, eeio: Eeio) -> None:
    """The window is long enough for readings: dd, a pause, dd."""
    dd = f"dd if=/dev/zero of={home}/f bs=64k count=20 conv=notrunc"
    arguments = ("record", "trace", "--meter", "demo", "--gap", "9", "--file", str(home / "f"))
    program = ("--", "sh", "-c", f"{dd}; sleep 1; {dd}")
    shown = eeio(*arguments, "-o", str(home / "a"), "--replay", str(home / "t.csv"), *program)
    for domain in ("system", "package", "device"):
        assert f"DEMO {domain} " in shown.stdout
    assert (home / "t.csv").read_text().count("write") == 40
    assert "DEMO system (" in (home / "a" / "timeline.svg").read_text()
    stored = json.loads((home / "a" / "phases.json").read_text())
    printed = eeio(*arguments, "-o", str(home / "b"), "--format", "json", *program)
    for body in (stored, json.loads(printed.stdout)):
        (phase,) = body["phases"]
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
    (phase,) = json.loads(done.stdout)["phases"]
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
    assert [p["requests"] for p in json.loads(done.stdout)["phases"]] == [9]


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
                for phase in json.loads(done.stdout)["phases"]
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
    reading = made.energy(5.0, domain="package")
    readings = {0: (reading, made.energy(None, reasons=("too slow",)))}
    text = _text(Traced([], [phase], None, readings, overhead=tracers.OVERHEAD["strace"]))
    assert "Energy (J)" in text and "MB/J" in text
    assert "package 10 ±1 %" in text and "package 1 ±1 %" in text
    assert "power of system (meter): too slow" in text
    assert "ran under strace, which stops it at each call" in text
    assert "MB/J of writes end when the calls returned" in text
    read = replace(phase, operation="read", bytes_read=10_000_000, bytes_written=0)
    assert "calls returned" not in _text(Traced([], [read], None, readings))
    assert "strace" not in _text(Traced([], [phase], "a stored trace has no power"))


def _text(traced: Traced) -> str:
    shown = table(traced)
    assert isinstance(shown, Table)
    return render_table(shown)
