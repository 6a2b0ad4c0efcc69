"""eeio-varmail: the calls of its loop, what is told of them, and what it leaves."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eeio.record import tools
from tests.processes import ran
from tests.profiles import programs
from tests.profiles.harness import Installed, Installer
from tests.profiles.programs import Program

pytestmark = pytest.mark.tools


TREE = "eeio-varmail.files"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return programs.shared(
        tmp_path_factory,
        "plain-varmail",
        lambda folder: programs.plain("varmail", folder, "-pthread", mpi=False),
    )


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return programs.shared(
        tmp_path_factory,
        "sanitized-varmail",
        lambda folder: programs.sanitized("varmail", folder, "-pthread", mpi=False),
    )


def sizes(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("mail.*")}


def one_run(program: Program, folder: Path, ranks: int, *options: str) -> dict[str, Any]:
    """The phase of a run on a tree that is there."""
    eeio = folder.parent / f"{folder.name}.json"
    program.good(ranks, *options, f"directory={folder}", f"eeio={eeio}")
    (phase,) = json.loads(eeio.read_text())["phases"]
    return dict(phase)


def test_sizes_are_of_the_mean_that_was_requested(program: Program, tmp_path: Path) -> None:
    program.good(3, "fill", "files=4000", "size=2000", f"directory={tmp_path}")
    found = sorted(sizes(tmp_path).values())
    assert len(found) == 4000
    # Of a gamma distribution of shape 1.5: the mean's deviation is sqrt(2/3) of it over sqrt(n).
    assert sum(found) / 4000 == pytest.approx(2000, rel=6 * 0.013)
    assert found[2000] == pytest.approx(0.79 * 2000, rel=0.12)
    assert {len(list(f.iterdir())) for f in (tmp_path / TREE).iterdir()} <= {99, 100, 101}
    # Real bytes, not zeros: what a drive or a file system compresses is not written.
    biggest = max((tmp_path / TREE).rglob("mail.*"), key=lambda path: path.stat().st_size)
    assert len(set(biggest.read_bytes())) > 200


@pytest.mark.parametrize("fsync", ["on", "off"])
def test_what_is_reported_is_what_the_kernel_observed(
    program: Program, tmp_path: Path, fsync: str
) -> None:
    programs.need("strace")
    program.good(2, "fill", "files=40", f"directory={tmp_path}")
    trace, eeio = tmp_path / "strace", tmp_path / "eeio.json"
    program.good(
        2, "files=40", "loops=25", f"fsync={fsync}", f"directory={tmp_path}", f"eeio={eeio}",
        before=["strace", "-f", "-qq", "-y", "-o", str(trace), "-e",
                "trace=openat,read,write,fsync,unlink,syncfs"],
    )  # fmt: skip
    lines = [line for line in trace.read_text().splitlines() if TREE in line]
    # strace cuts a call in two where another process's comes between.
    begun = [line for line in lines if " resumed>" not in line]
    assert sum("O_CREAT|O_EXCL" in line for line in begun) == 25
    assert sum("O_RDWR|O_APPEND" in line for line in begun) == 25
    assert sum("/mail." in line and "O_RDONLY|O_CLOEXEC" in line for line in begun) == 25
    calls = Counter(re.sub(r"^\d+ +(\w+)\(.*", r"\1", line) for line in begun)
    assert calls["unlink"] == 25 and calls["syncfs"] == 1
    assert calls["fsync"] == (50 if fsync == "on" else 0) and calls["write"] == 50

    (phase,) = json.loads(eeio.read_text())["phases"]
    metrics = phase["metrics"]
    assert metrics["operations"] == 25
    assert ("fsync_latency_p50_s" in metrics) is ("bytes_written" in metrics) is (fsync == "on")
    complete = re.compile(r"(read|write)\(\d+<[^>]*/mail\.[^>]*>.*= (\d+)$")
    seen = Counter[str]()
    for match in filter(None, map(complete.search, lines)):
        seen[match[1]] += int(match[2])
    if not any("unfinished" in line for line in lines):
        assert seen["read"] == metrics["called_read_bytes"]
        assert seen["write"] == metrics["called_written_bytes"]


def test_the_figures_follow_from_the_files(program: Program, tmp_path: Path) -> None:
    program.good(4, "fill", "files=80", f"directory={tmp_path}")
    before = sizes(tmp_path)
    phase = one_run(program, tmp_path, 4, "files=80", "loops=201", "append=5000", "seed=3")
    after = sizes(tmp_path)
    metrics = phase["metrics"]
    assert len(after) == 80
    assert metrics["operations"] == 201 and metrics["bytes_written"] < 2 * 201 * 5000
    # What was there before and is there still has only grown.
    assert all(after[name] >= before[name] for name in set(after) & set(before))
    assert max(int(name.rpartition(".")[2]) for name in after) <= 20 + 51
    lasted_s = phase["end_monotonic_s"] - phase["start_monotonic_s"]
    assert metrics["operations_per_s"] == pytest.approx(201 / lasted_s, rel=1e-6)
    assert metrics["returned_operations_per_s"] > metrics["operations_per_s"]
    moved = metrics["called_read_bytes"] + metrics["called_written_bytes"]
    assert phase["bytes_moved"] == moved
    assert phase["bandwidth_bytes_per_s"] == pytest.approx(moved / lasted_s, rel=1e-6)
    assert phase["includes_flush"] and phase["durable_monotonic_s"] == phase["end_monotonic_s"]
    for prefix in ("", "fsync_"):
        places = [metrics[f"{prefix}latency_{p}_s"] for p in ("p50", "p95", "p99", "p999", "max")]
        assert places == sorted(places) and places[0] > 0
    assert metrics["fsync_latency_p50_s"] < metrics["latency_p50_s"]
    # Another seed takes other files; the same seed the same.
    names = []
    for number, seed in enumerate((3, 3, 4)):
        folder = tmp_path / f"again{number}"
        folder.mkdir()
        program.good(4, "fill", "files=80", f"directory={folder}")
        one_run(program, folder, 4, "files=80", "loops=201", f"seed={seed}", "fsync=off")
        names.append(sorted(Path(name).name for name in sizes(folder)))
    assert names[0] == names[1] != names[2]


def test_it_ends_in_time_and_sanitizers_see_nothing(sanitized: Program, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("timed", "short")]
    for folder in folders:
        folder.mkdir()
        sanitized.good(3, "fill", "files=30", "size=300000", f"directory={folder}")
    endless = ("loops=10000000", "runtime_s=1", "append=2097152")
    phase = one_run(sanitized, folders[0], 3, "files=30", *endless)
    assert 0 < phase["metrics"]["operations"] < 10_000_000
    # Some processes have nothing to do.
    phase = one_run(sanitized, folders[1], 3, "files=30", "loops=1", "fsync=off")
    assert phase["metrics"]["operations"] == 1


def test_bad_options_are_rejected_and_touch_nothing(sanitized: Program, tmp_path: Path) -> None:
    sanitized.all_rejected(
        [
            ("ranks=257", "ranks=257: give a whole number from 1 to 256"),
            ("ranks=16 files=31", "files=31: give at least two for each of 16 processes"),
            ("loops=0", "loops=0: give a whole number from 1"),
            ("append=99999999", "append=99999999: give a whole number"),
            ("fsync=yes", "fsync=yes: give off or on"),
            ("speed=fast", "unknown option speed"),
            ("fast", "fast: give KEY=VALUE"),
        ],
        f"directory={tmp_path}",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
def test_a_full_disk_is_one_line(program: Program, tmp_path: Path) -> None:
    with programs.memory_disk(tmp_path / "small", "size=2m") as disk:
        program.good(4, "fill", "files=40", "size=4000", f"directory={disk}")
        done = program.run(4, "files=40", "loops=100000", "append=2097152", f"directory={disk}")
        (line,) = done.stderr.splitlines()
        assert done.returncode == 1
        assert re.fullmatch(rf"eeio-varmail: {disk}/{TREE}/.*: write: No space left .*", line)
        assert programs.running(program.path) == []


@pytest.mark.parametrize("call", ["unlink", "fsync"])
def test_an_error_in_the_middle_ends_all(program: Program, tmp_path: Path, call: str) -> None:
    programs.need("strace")
    program.good(3, "fill", "files=30", f"directory={tmp_path}")
    done = program.run(
        3, "files=30", "loops=300", f"directory={tmp_path}",
        before=("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                f"inject={call}:error=EIO:when=5"),
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and f"{call}: Input/output error" in line
    assert programs.running(program.path) == []


# --- the profile ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ("processes=257", "processes=257: give a whole number from 1 to 256"),
        ("files=20", "files=20: give at least two for each of 16 processes"),
        ("fsync=on flush=none", "flush=none: fsync=on is flush=each"),
        ("fsync=off flush=each", "flush=each: fsync=off is flush=none"),
        ("append=3m", "append=3m: give a size from 1 to 2m"),
        ("buffer=off", "buffer=off: give one of: on"),
        ("speed=fast", "unknown factor 'speed=fast'"),
    ],
)
def test_factors_are_rejected(installed: Installer, arguments: str, reported: str) -> None:
    profile = installed("varmail")
    profile.rejects(arguments, reported)


def test_a_run_is_parsed_and_the_next_has_a_new_tree(installed: Installer, tmp_path: Path) -> None:
    profile = installed("varmail")
    assert "run pre.sh with these factors first" in profile.run(code=2).stderr
    factors = {"processes": "2", "files": "60", "loops": "50", "flush": "each"}
    script = [f"{key}={value}" for key, value in factors.items()]
    scratch = profile.directory / "eeio-scratch"
    (scratch / "mine").mkdir(parents=True)
    for number in range(2):
        profile.script("pre.sh", *script)
        assert {int(n.rpartition(".")[2]) for n in sizes(scratch)} == set(range(30))
        capture = profile.capture(tmp_path / str(number), factors)
        assert capture.exit_code == 0, capture.text("stderr.txt")
        (phase,) = tools.parse("varmail", capture).phases
        assert (phase.name, phase.operation, phase.invalid) == ("mail", "mixed", ())
        assert phase.until_durable is not None and phase.until_durable.end_s == phase.end_s
    # A run changes the tree, and of other processes it has other names.
    assert "not of a new tree with these factors" in profile.run(*script, code=2).stderr
    profile.script("pre.sh", *script)
    done = profile.run("processes=3", "files=60", code=2)
    assert "run pre.sh with these factors first" in done.stderr
    profile.script("post.sh")
    assert [path.name for path in scratch.iterdir()] == ["mine"]


def test_nothing_stays_when_a_process_dies(installed: Installer) -> None:
    profile = installed("varmail")
    profile.script("pre.sh", "processes=3", "files=60")
    arguments = ("processes=3", "files=60", "loops=10000000", "runtime_s=600")
    reported = programs.reported_of_a_death(profile, profile.home / "varmail", arguments, 3, TREE)
    assert "died of signal 9; the others were ended" in reported
    profile.clean_up()


def test_lines_for_pts(installed: Installer, tmp_path: Path) -> None:
    profile = installed("varmail")
    arguments, log = ("processes=2", "files=40", "loops=40"), tmp_path / "pts.log"
    profile.script("pre.sh", *arguments)
    profile.run(*arguments, LOG_FILE=str(log))
    labels = [line.partition(":")[0] for line in log.read_text().splitlines() if "EEIO" in line]
    assert sorted(labels) == ["EEIO mail bandwidth", "EEIO mail rate"]


@pytest.mark.root
def test_a_disk_that_is_too_small(installed: Installer, tmp_path: Path) -> None:
    profile = installed("varmail")
    with programs.memory_disk(tmp_path / "small", "size=1m,nr_inodes=50") as disk:
        for arguments, reported in (
            ("processes=2 files=100", "needs 4096000 bytes, 1048576 are free"),
            ("processes=2 files=100 size=1 append=1", "needs 106 inodes, 48 are free"),
        ):
            done = profile.script("pre.sh", *arguments.split(), EEIO_DIRECTORY=str(disk), code=2)
            assert reported in done.stderr, done.stderr


def test_a_machine_without_a_compiler(tmp_path: Path) -> None:
    profile = Installed("varmail", tmp_path / "home", tmp_path / "disk")
    (tmp_path / "commands").mkdir()
    for command in ("bash", "chmod", "cp", "rm"):
        found = ran(["sh", "-c", f"command -v {command}"])
        (tmp_path / "commands" / command).symlink_to(found.stdout.strip())
    done = profile.install(PATH=str(tmp_path / "commands"), code=1)
    assert "a C compiler is missing: install the packages gcc and libc6-dev" in done.stderr
