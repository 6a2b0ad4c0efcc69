"""eeio-rocksdb: db_bench's workloads, what is told of them, and what of a db_bench that fails."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from eeio.record import tools
from tests.executables import executable
from tests.profiles import programs
from tests.profiles.harness import Installed, Installer
from tests.waiting import until

pytestmark = pytest.mark.tools


WORK = "keys=30000 operations=20000 runtime_s=0"
FIRST = "DB path: [x]"
RESULT = (
    "fillrandom   :       3.878 micros/op 257813 ops/sec 0.001 seconds 200 operations;   28.5 MB/s"
)


@pytest.mark.parametrize(
    ("factors", "operation", "operations"),
    [
        ("workload=fillseq flush=none", "mixed", 30000),
        ("workload=fillrandom sync=off processes=2", "mixed", 20000),
        ("workload=fillrandom sync=on flush=each operations=300", "mixed", 300),
        ("workload=readrandom processes=3", "read", 19998),
        ("workload=readwhilewriting sync=off processes=2", "mixed", 20000),
    ],
)
def test_each_workload(
    installed: Installer, tmp_path: Path, factors: str, operation: str, operations: int
) -> None:
    profile = installed("rocksdb")
    fields = dict(word.split("=") for word in f"{WORK} {factors}".split())
    script = [f"{key}={value}" for key, value in fields.items()]
    profile.script("pre.sh", *script)
    capture = profile.capture(tmp_path / "out", fields)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("rocksdb", capture)
    (phase,) = result.phases
    assert (phase.name, phase.operation) == (fields["workload"], operation)
    assert phase.start_s is not None and phase.end_s is not None
    metrics = phase.metrics
    lasted_s = phase.end_s - phase.start_s
    assert metrics["operations"] == operations
    assert metrics["operations_per_s"] == pytest.approx(operations / lasted_s, rel=1e-6)
    # db_bench's own line lies in the output that is kept.
    line = re.search(
        r" (\d+) ops/sec ([\d.]+) seconds", text := (tmp_path / "out/stdout.txt").read_text()
    )
    assert line and metrics["returned_operations_per_s"] == float(line[1])
    assert float(line[2]) <= lasted_s + 0.000501
    printed = re.search(r"P50: ([\d.]+) .* P99: ([\d.]+) ", text)
    assert printed and metrics["latency_p50_s"] == pytest.approx(float(printed[1]) / 1e6)
    assert metrics["latency_p99_s"] == pytest.approx(float(printed[2]) / 1e6)
    # It prints no p95, and of 300 operations nobody knows the thousandth.
    assert "latency_p95_s" not in metrics
    assert ("latency_p999_s" in metrics) is (operations > 1000)
    if operation == "read":
        assert phase.bytes_moved == metrics["fetched_bytes"] and phase.until_durable is None
        assert phase.bytes_moved or "came from a cache" in phase.invalid[0]
    else:
        assert phase.bytes_moved == metrics["fetched_bytes"] + metrics["dirtied_bytes"]
        assert phase.until_durable is not None and phase.until_durable.end_s == phase.end_s
        assert metrics["dirtied_bytes"] > (operations * 116 if "fill" in factors else 0)
    profile.clean_up(*script)


def test_a_database_that_was_only_read_is_kept(installed: Installer, tmp_path: Path) -> None:
    profile = installed("rocksdb")
    scratch = profile.directory / "eeio-scratch"

    def tables() -> dict[str, int]:
        return {p.name: p.stat().st_ino for p in scratch.rglob("*.sst")}

    read = ["workload=readrandom", "keys=5000", "operations=50", "runtime_s=0"]
    profile.script("pre.sh", *read)
    first = tables()
    profile.run(*read, EEIO_OUTPUT_DIR=str(tmp_path))
    profile.script("pre.sh", *read)
    assert tables() == first
    done = profile.run("workload=readrandom", "keys=6000", EEIO_OUTPUT_DIR=str(tmp_path), code=2)
    assert "of another database; run pre.sh" in done.stderr
    mixed = ["workload=readwhilewriting", *read[1:]]
    profile.run(*mixed, EEIO_OUTPUT_DIR=str(tmp_path))
    # It was written to: what reads does not take it as it is.
    done = profile.run(*read, EEIO_OUTPUT_DIR=str(tmp_path), code=2)
    assert "run pre.sh with these factors first" in done.stderr
    profile.script("pre.sh", *read)
    profile.run(*read, EEIO_OUTPUT_DIR=str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("workload=seekrandom", "give one of: fillseq fillrandom readrandom readwhilewriting"),
        ("workload=readrandom operation=mixed", "workload=readrandom is operation=read"),
        ("workload=readrandom sync=on", "workload=readrandom does not write"),
        ("workload=readrandom flush=none", "flush=none: workload=readrandom does not write"),
        ("sync=on flush=none", "flush=none: sync=on is flush=each"),
        ("workload=fillseq processes=2", "each would write the same keys; give processes=1"),
        ("keys=0", "keys=0: give a whole number from 1 to 1000000000"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("cache=1", "unknown factor 'cache=1'"),
    ],
)
def test_rejected_factors(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("rocksdb")
    profile.rejects(arguments, reported)


def test_too_little_room(installed: Installer) -> None:
    profile = installed("rocksdb")
    done = profile.script(
        "pre.sh", "workload=fillseq", "keys=1000000000", "value_size=65536", code=2
    )
    assert re.search(r"needs 196704268435456 bytes, \d+ are free\n$", done.stderr)


# --- a db_bench that fails ------------------------------------------------------------------------


def fake(folder: Path, *script: str) -> Path:
    """A program in place of db_bench."""
    return executable(folder / "db_bench", "\n".join(("#!/bin/sh", *script)) + "\n")


@pytest.mark.parametrize(
    ("script", "reported"),
    [
        (("echo put error: IO error: No space left on device >&2", "exit 1"),
         "db_bench ended with exit code 1: put error: IO error: No space left on device"),
        ((f"echo '{FIRST}'", r"printf '... finished 100 ops\rcorruption\n' >&2", "kill -9 $$"),
         "db_bench died of signal 9: corruption"),
        (("echo 'fillrandom : 2.1 micros/op 398000 ops/sec; 44.0 MB/s'",),
         "db_bench told no result of fillrandom: fillrandom : 2.1 micros/op"),
        ((f"echo '{FIRST}'", f"echo '{RESULT.replace('fillrandom', 'overwrite ')}'"),
         "db_bench told no result of fillrandom: overwrite"),
        (("true",), "db_bench told no result of fillrandom: it printed nothing"),
    ],
)  # fmt: skip
def test_what_fails_is_reported_in_a_line(
    installed: Installer, tmp_path: Path, script: tuple[str, ...], reported: str
) -> None:
    profile = installed("rocksdb")
    profile.script("pre.sh", *["workload=fillrandom"])
    conf = profile.home / "tool.conf"
    kept = [line for line in conf.read_text().splitlines() if not line.startswith("path=")]
    conf.write_text("\n".join([f"path={fake(tmp_path, *script)}", *kept]) + "\n")
    done = profile.run("workload=fillrandom", EEIO_OUTPUT_DIR=str(tmp_path / "out"), code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and line.startswith(f"eeio-rocksdb: {reported}")
    assert not (tmp_path / "out/eeio.json").exists()


def test_programs_that_cannot_be_used_are_not_installed(tmp_path: Path) -> None:
    profile = Installed("rocksdb", tmp_path / "home", tmp_path / "disk")
    done = profile.install(EEIO_DB_BENCH="/nowhere/db_bench", code=1)
    assert "/nowhere/db_bench is missing: install the package rocksdb-tools" in done.stderr
    old = fake(tmp_path, f"echo '{FIRST}'", "echo 'fillseq : 2.1 micros/op 398000 ops/sec; 4 MB/s'")
    done = profile.install(EEIO_DB_BENCH=str(old), code=None)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "cannot be used, RocksDB 7.8 of Debian 12 can: " in line
    assert "told no result of fillseq: fillseq : 2.1 micros/op" in line
    assert not (profile.home / "tool.conf").exists()


@pytest.mark.parametrize("victim", ["db_bench", "workload.py"])
def test_nothing_runs_on_when_a_process_dies(
    installed: Installer, tmp_path: Path, victim: str
) -> None:
    profile = installed("rocksdb")
    profile.script("pre.sh", *["workload=fillrandom", "keys=1000"])
    arguments = [
        "workload=fillrandom",
        "keys=1000",
        "operations=1000000000",
        "runtime_s=600",
        "sync=on",
    ]
    wrapper = subprocess.Popen(
        [str(profile.home / "eeio-rocksdb"), *arguments], cwd=profile.home,
        env={**profile.environment, "EEIO_OUTPUT_DIR": str(tmp_path / "out")},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    program = Path(dict(
        line.split("=", 1) for line in (profile.home / "tool.conf").read_text().splitlines()
    )["path"]).resolve()  # fmt: skip

    def ours() -> list[int]:
        return [
            pid for pid in programs.running(program) if str(profile.directory) in arguments_of(pid)
        ]

    def arguments_of(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            return ""

    try:
        found = until(ours)
        os.kill(found[0] if victim == "db_bench" else programs.parent(found[0]), signal.SIGKILL)
        _, reported = wrapper.communicate(timeout=300)
        assert wrapper.returncode != 0
        if victim == "db_bench":
            assert "eeio-rocksdb: db_bench died of signal 9" in reported
        until(lambda: ours() == [])
    finally:
        if wrapper.poll() is None:
            os.killpg(wrapper.pid, signal.SIGKILL)
            wrapper.communicate(timeout=300)
    profile.clean_up()


def test_lines_for_pts(installed: Installer, tmp_path: Path) -> None:
    profile = installed("rocksdb")
    arguments, log = [*WORK.split(), "workload=fillrandom"], tmp_path / "pts.log"
    profile.script("pre.sh", *arguments)
    profile.run(*arguments, LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert sorted(labels) == ["EEIO fillrandom bandwidth", "EEIO fillrandom rate"]


@pytest.mark.parametrize("preset", ["quick", "standard", "paper"])
@pytest.mark.parametrize("workload", ["fillseq", "fillrandom", "readwhilewriting"])
def test_the_footprint_is_the_room_that_is_required(
    installed: Installer, tmp_path: Path, preset: str, workload: str
) -> None:
    profile = installed("rocksdb")
    df = executable(tmp_path / "bin/df", "#!/bin/sh\necho\necho x 0 0 0 0 x\n")
    done = profile.script(
        "pre.sh", f"workload={workload}", EEIO_PRESET=preset,
        PATH=f"{df.parent}:{os.environ['PATH']}", code=None,
    )  # fmt: skip
    needed = re.search(r"needs (\d+) bytes, 0 are free", done.stderr)
    line = next(
        line for line in (profile.profile / "presets.conf").read_text().splitlines()
        if line.startswith(preset)
    )  # fmt: skip
    footprint = re.search(r"footprint=(\d+)", line)
    assert needed and footprint and int(needed[1]) <= int(footprint[1])
