"""eeio-checkpoint: what each rank writes and when, what is told of it, and dying ranks."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from eeio.record import tools
from tests.profiles import programs
from tests.profiles.harness import Installed, Installer
from tests.profiles.programs import Program

PROGRAM = "checkpoint"

pytestmark = pytest.mark.tools


def ran(program: Program, folder: Path, ranks: int, *options: str) -> tuple[dict[str, Any], str]:
    """The phase, and what was printed."""
    eeio = folder.parent / f"{folder.name}.json"
    out = program.good(ranks, *options, f"directory={folder}", f"eeio={eeio}")
    (phase,) = json.loads(eeio.read_text())["phases"]
    return dict(phase), out


@pytest.mark.parametrize(
    ("ranks", "spread", "sizes"),
    [
        (1, 90, [100_000]),
        (2, 50, [50_000, 150_000]),
        (5, 10, [90_000, 95_000, 100_000, 105_000, 110_000]),
        (3, 0, [100_000] * 3),
    ],
)
def test_each_rank_writes_its_own_size(
    program: Program, tmp_path: Path, ranks: int, spread: int, sizes: list[int]
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    options = ("size=100000", f"spread={spread}", "request_size=30000", "interval_ms=0")
    phase, _ = ran(program, folder, ranks, *options, "checkpoints=3")
    assert phase["bytes_moved"] == 3 * sum(sizes)
    # Two generations, of real data that differ.
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: len(data) for name, data in found.items()} == {
        f"eeio-checkpoint.{rank}.{generation}": size
        for rank, size in enumerate(sizes) for generation in (0, 1)
    }  # fmt: skip
    assert len(set(found.values())) == 2 * ranks
    assert all(len(set(data)) == 256 for data in found.values())


def test_the_figures_are_of_the_time_of_writing(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    phase, out = ran(program, folder, 3, "size=200000", "interval_ms=120", "checkpoints=4")
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [line["checkpoint"] for line in lines] == [1, 2, 3, 4]
    stretches = phase["stretches_monotonic_s"]
    assert (stretches[0][0], stretches[-1][1]) == (
        phase["start_monotonic_s"], phase["end_monotonic_s"],
    )  # fmt: skip
    spans = [end - start for start, end in stretches]
    assert spans == pytest.approx([line["span_s"] for line in lines], abs=1e-8)
    # A checkpoint begins an interval after the one before, or, where that was late, at once.
    for (start, end), (after, _) in itertools.pairwise(stretches):
        assert after >= max(start + 0.12 - 1e-6, end)
    metrics = phase["metrics"]
    writing_s = sum(spans)
    assert phase["bandwidth_bytes_per_s"] == pytest.approx(2_400_000 / writing_s, rel=1e-5)
    assert metrics["operations"] == 4
    assert metrics["operations_per_s"] == pytest.approx(4 / writing_s, rel=1e-5)
    slowest = sorted(line["slowest_s"] for line in lines)
    assert all(line["fastest_s"] <= line["slowest_s"] <= line["span_s"] + 1e-6 for line in lines)
    assert metrics["latency_p50_s"] == pytest.approx(slowest[1], abs=1e-8)
    assert metrics["latency_max_s"] == pytest.approx(slowest[3], abs=1e-8)
    # Of four nobody knows the 95th of a hundred.
    assert "latency_p95_s" not in metrics
    assert metrics["slowest_rank_mean_s"] == pytest.approx(sum(slowest) / 4, abs=1e-8)
    assert 0 <= metrics["waited_fraction"] < 1
    assert metrics["late_checkpoints"] == sum(line["late"] for line in lines)


def test_a_late_checkpoint_is_counted_and_reported(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    phase, out = ran(program, folder, 2, "interval_ms=0", "checkpoints=3", "compute=busy")
    assert phase["metrics"]["late_checkpoints"] == 3
    reported = "3 of 3 checkpoints took longer than the interval of 0 s"
    assert f"late: {reported}" in out
    notes = json.loads((tmp_path / "files.json").read_text())["notes"]
    assert notes[0] == f"{reported}: the next began at once" and "compute=busy" in notes[-1]


@pytest.mark.parametrize("fsync", ["on", "off"])
def test_what_is_flushed_is_what_was_requested(
    program: Program, tmp_path: Path, fsync: str
) -> None:
    programs.need("strace")
    folder, trace = tmp_path / "files", tmp_path / "strace"
    folder.mkdir()
    options = ("size=50000", "interval_ms=0", "checkpoints=4", f"fsync={fsync}")
    eeio = tmp_path / "eeio.json"
    program.good(
        1, *options, f"directory={folder}", f"eeio={eeio}",
        before=["strace", "-f", "-qq", "-y", "-o", str(trace), "-e", "trace=fsync,openat"],
    )  # fmt: skip
    lines = [line for line in trace.read_text().splitlines() if "resumed" not in line]
    files = sum(bool(re.search(r"fsync\(\d+<.*/eeio-checkpoint\.0\.[01]>", li)) for li in lines)
    folders = sum(bool(re.search(rf"fsync\(\d+<{folder}>", line)) for line in lines)
    assert (files, folders) == ((4, 2) if fsync == "on" else (0, 0))
    assert sum("O_CREAT|O_TRUNC" in line and "/eeio-checkpoint.0." in line for line in lines) == 4
    (phase,) = json.loads(eeio.read_text())["phases"]
    assert phase.get("includes_flush", False) is (fsync == "on")
    assert ("not flushed" in phase.get("durable_reason", "")) is (fsync == "off")
    assert phase["metrics"].get("kept_bytes") == (None if fsync == "on" else 100_000)


BAD_OPTIONS = [
    ("ranks=257", "ranks=257: give a whole number from 1 to 256"),
    ("spread=91", "spread=91: give a whole number from 0 to 90"),
    ("ranks=3", "3 ranks were started and MPI has joined 1"),
    ("size=4095", "size=4095: give a whole number from 4096"),
    ("checkpoints=0", "checkpoints=0: give a whole number from 1"),
    ("compute=hard", "compute=hard: give sleep or busy"),
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


@pytest.mark.slow
def test_sanitizers_see_nothing(sanitized: Program, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for more in ("compute=busy", "fsync=off", "request_size=8388608"):
        ran(sanitized, folder, 3, "size=100000", "interval_ms=10", "checkpoints=3", more)


@pytest.mark.root
def test_a_full_disk_ends_all_ranks(program: Program, tmp_path: Path) -> None:
    with programs.memory_disk(tmp_path / "small", "size=2m") as disk:
        done = program.run(3, "size=1000000", "interval_ms=0", f"directory={disk}")
        assert done.returncode != 0
        lines = [line for line in done.stderr.splitlines() if line.startswith("eeio-checkpoint: ")]
        assert lines and all("write: No space left on device" in line for line in lines)
        assert programs.running(program.path) == []


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("processes=257", "processes=257: give a whole number from 1 to 256"),
        ("size=1k", "size=1k: give a size from 4k to 65536g"),
        ("request_size=9m", "request_size=9m: give a size from 4k to 8m"),
        ("fsync=on flush=none", "flush=none: fsync=on is flush=each"),
        ("spread=95", "spread=95: give a whole number from 0 to 90"),
        ("compute=hard", "compute=hard: give one of: sleep busy"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("speed=fast", "unknown factor 'speed=fast'"),
    ],
)
def test_factors_are_rejected(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("checkpoint")
    profile.rejects(arguments, reported)


def test_a_run_is_one_phase_in_stretches(installed: Installer, tmp_path: Path) -> None:
    profile = installed("checkpoint")
    assert "run pre.sh with these factors first" in profile.run(code=2).stderr
    factors = {"processes": "2", "size": "64k", "interval_s": "0", "checkpoints": "5"}
    script = [f"{key}={value}" for key, value in factors.items()]
    scratch = profile.directory / "eeio-scratch"
    scratch.mkdir(exist_ok=True)
    (scratch / "mine").write_text("kept")
    profile.script("pre.sh", *script)
    capture = profile.capture(tmp_path / "out", factors)
    assert capture.exit_code == 0, capture.text("stderr.txt")
    (phase,) = tools.parse("checkpoint", capture).phases
    recorded = phase.recorded()
    assert len(phase.stretches) == 5 and recorded.lasted_s is not None
    assert recorded.io_share == pytest.approx(1, rel=1e-4)
    assert phase.includes_flush and phase.until_durable is None
    assert not (tmp_path / "out/notes.txt").exists()  # no MPI-IO was made
    profile.script("post.sh")
    assert [path.name for path in scratch.iterdir()] == ["mine"]


def test_nothing_stays_when_a_rank_dies(installed: Installer) -> None:
    profile = installed("checkpoint")
    # Large enough for all to hold a file open at once, which tells that they are beyond MPI_Init.
    arguments = ("processes=2", "size=256m", "spread=0", "interval_s=0", "checkpoints=100000")
    profile.script("pre.sh", *arguments)
    program = profile.home / "checkpoint"
    reported = programs.reported_of_a_death(profile, program, arguments, 2, "eeio-checkpoint.")
    assert programs.DIED.search(reported)
    profile.clean_up()


def test_a_machine_without_mpi_gets_the_packages(tmp_path: Path) -> None:
    profile = Installed("checkpoint", tmp_path / "home", tmp_path / "disk")
    done = profile.install(EEIO_MPIRUN="/nowhere", code=1)
    assert "MPI is missing: install the packages openmpi-bin and libopenmpi-dev" in done.stderr


def test_too_little_room(installed: Installer) -> None:
    done = installed("checkpoint").script("pre.sh", "size=65536g", code=2)
    assert re.search(r"needs \d+ bytes, \d+ are free\n$", done.stderr)


def test_lines_for_pts(installed: Installer, tmp_path: Path) -> None:
    profile = installed("checkpoint")
    arguments, log = ("processes=2", "size=64k", "interval_s=0"), tmp_path / "pts.log"
    profile.script("pre.sh", *arguments)
    profile.run(*arguments, LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert sorted(labels) == ["EEIO checkpoint bandwidth", "EEIO checkpoint rate"]
