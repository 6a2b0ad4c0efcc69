"""eeio-io500 with the real IO500 that EEIO_IO500 or PATH names."""

import bisect
import csv
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from eeio.record import tools
from eeio.record.tools.capture import Capture
from eeio_parsers.io500.run import NOT_VALID, RESULT, SCORED
from tests.campaigns import records_in
from tests.executables import executable
from tests.plugin import Eeio
from tests.profiles import test_slurm
from tests.profiles.harness import Installed, Installer
from tests.profiles.hosts import Hosts

pytestmark = pytest.mark.tools


SHORT = """[ior-rnd4K-easy-read]
run = FALSE
[mdtest-easy]
run = FALSE
[mdtest-hard]
run = FALSE
[find]
run = FALSE
[ior-easy]
transferSize = 1m
"""
"""Without the phases that wait for a second."""
FACTORS = ["processes=2", "data=4m", "files=200"]


@pytest.fixture
def io500(installed: Installer, tmp_path: Path) -> Installed:
    profile = installed("io500")
    # The page cache of this machine stays as it is.
    (tmp_path / "drop_caches").touch()
    profile.environment["EEIO_DROP_CACHES"] = str(tmp_path / "drop_caches")
    return profile


@pytest.fixture
def short(io500: Installed, tmp_path: Path) -> Installed:
    ini = tmp_path / "short.ini"
    ini.write_text(SHORT)
    io500.environment["EEIO_IO500_INI"] = str(ini)
    return io500


def factors() -> dict[str, str]:
    return dict(word.split("=") for word in FACTORS)


def test_cycle(short: Installed, tmp_path: Path) -> None:
    """With the user's ini, whose values replace the preset's."""
    short.script("pre.sh", *FACTORS)
    capture = short.capture(tmp_path / "out", factors())
    assert capture.exit_code == 0, capture.text("stderr.txt")
    result = tools.parse("io500", capture)
    segments = (4 << 20) // 47008
    assert [(phase.name, phase.bytes_moved) for phase in result.phases] == [
        ("ior-easy-write", 8 << 20),
        ("ior-hard-write", 2 * segments * 47008),
        ("ior-easy-read", 8 << 20),
        ("ior-hard-read", 2 * segments * 47008),
    ]
    assert [phase.request_size_bytes for phase in result.phases] == [1 << 20, 47008] * 2
    for phase in result.phases:
        assert phase.start_s is not None and phase.end_s is not None
        assert 0 <= phase.start_s < phase.end_s
        assert phase.end_s <= capture.ended_monotonic_s - capture.started_monotonic_s
    assert result.notes[0].startswith(NOT_VALID)
    assert f"IO500's ini file: {tmp_path / 'short.ini'}" in capture.notes
    assert (tmp_path / "short.ini").read_text() == SHORT
    short.clean_up(*FACTORS)


@pytest.mark.slow
def test_lines_for_pts(short: Installed, tmp_path: Path) -> None:
    short.script("pre.sh", *FACTORS)
    log = tmp_path / "log"
    short.run(*FACTORS, LOG_FILE=str(log))
    text = log.read_text()
    for name in ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read"):
        printed = re.search(rf"^\[RESULT\] +{name} +([\d.]+) GiB/s", text, re.M)
        line = re.search(rf"^EEIO {name} bandwidth: ([\d.]+) MB/s$", text, re.M)
        assert printed and line
        assert float(line[1]) == pytest.approx(float(printed[1]) * 1073.741824, abs=0.001)
    short.clean_up(*FACTORS)


def rejected(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[debug]\nstonewall = 1\n", 'section debug line 2, unknown option "stonewall"'),
        ("[bonnie]\nrun = TRUE\n", "line 1, unknown section bonnie"),
        ("[debug]\nstonewall-time = soon\n", "option stonewall-time expects integer"),
        ("stonewall-time = 1\n", "variable assigned outside section"),
        ("\x01\x02\n", "unexpected content"),
        ("", "empty, or longer than 1 MiB"),
    ],
)
def test_an_ini_file_that_io500_does_not_know_is_rejected(
    io500: Installed, tmp_path: Path, text: str, message: str
) -> None:
    ini = tmp_path / "bad.ini"
    ini.write_text(text)
    (io500.directory / "of-the-user").write_text("kept")
    line = rejected(io500.script("pre.sh", *FACTORS, EEIO_IO500_INI=str(ini), code=None))
    assert line.startswith(f"eeio-io500: EEIO_IO500_INI={ini}: ") and message in line
    assert ini.read_text() == text
    assert [path.name for path in io500.directory.iterdir()] == ["of-the-user"]


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ("data=3m", {}, "data=3m: give a multiple of 2m"),
        ("processes=0", {}, "processes=0"),
        ("operation=read", {}, "operation=read: give one of: mixed"),
        ("stonewall_s=no", {}, "stonewall_s=no"),
        ("data=900000g", {}, "needs 3865470566400000 bytes"),
        ("", {"EEIO_IO500_INI": "short.ini"}, "give an absolute path"),
        ("", {"EEIO_IO500_INI": "/no/such.ini"}, "not a file that can be read"),
        ("", {"EEIO_PRESET": "fast"}, "EEIO_PRESET=fast"),
    ],
)
def test_what_cannot_be_is_rejected(
    io500: Installed, arguments: str, settings: dict[str, str], message: str
) -> None:
    assert message in rejected(
        io500.script("pre.sh", *FACTORS, *arguments.split(), **settings, code=None)
    )


@pytest.mark.parametrize("name", ["my dir", "a,b", "a#b", "it's", "$x"])
def test_a_path_that_io500_cuts_is_rejected(io500: Installed, name: str) -> None:
    """It wrote into the file `my`, next to the directory `my dir`."""
    (io500.directory / "my").write_text("of the user")
    directory = io500.directory / name
    line = rejected(io500.script("pre.sh", *FACTORS, EEIO_DIRECTORY=str(directory), code=None))
    assert "IO500 cannot use this path" in line and str(directory) in line
    assert (io500.directory / "my").read_text() == "of the user"


def test_a_run_that_is_not_prepared_is_rejected(io500: Installed) -> None:
    assert "run pre.sh with them first" in rejected(io500.run(*FACTORS, code=None))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("{0}/nothing", "EEIO_IO500={0}/nothing: no program io500; build IO500 by its prepare.sh"),
        ("{0}/checkout", "EEIO_IO500={0}/checkout: no program io500; build IO500 by"),
        ("{0}/other", "{0}/other: not IO500"),
    ],
)
def test_without_io500_the_installation_reports_the_remedy(
    tmp_path: Path, named: str, message: str
) -> None:
    (tmp_path / "checkout").mkdir()
    executable(tmp_path / "other", "#!/bin/sh\necho no\n")
    profile = Installed("io500", tmp_path / "home", tmp_path / "disk")
    done = profile.install(EEIO_IO500=named.format(tmp_path), code=1)
    assert done.stderr.startswith(f"eeio-io500: {message.format(tmp_path)}"), done.stderr


def test_without_a_name_the_installation_names_both_places(tmp_path: Path) -> None:
    profile = Installed("io500", tmp_path / "home", tmp_path / "disk")
    path = ":".join(
        folder for folder in os.environ["PATH"].split(":") if not (Path(folder) / "io500").exists()
    )
    done = profile.install(PATH=path, code=1)
    assert "EEIO_IO500" in done.stderr and "docker/io500/" in done.stderr
    assert done.stderr.count("\n") == 1


def descendants(pid: int) -> list[int]:
    """Of a process of this test."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


@pytest.mark.slow
def test_a_killed_rank_leaves_nothing(io500: Installed) -> None:
    io500.script("pre.sh", *FACTORS)
    process = subprocess.Popen(
        [str(io500.home / "eeio-io500"), *FACTORS], env=io500.environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    observed: list[int] = []
    data = io500.directory / "eeio-scratch/eeio-io500/data"
    try:
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s and not (data / "mdtest-easy").exists():
            time.sleep(0.02)
        observed = descendants(process.pid)
        ranks = [pid for pid in observed if Path(f"/proc/{pid}/comm").read_text() == "io500\n"]
        assert len(ranks) == 2
        os.kill(ranks[-1], signal.SIGKILL)
        _, message = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0
    assert message.splitlines()[-1].startswith("eeio-io500: IO500 stopped with exit code ")
    until_s = time.monotonic() + 30
    while any(map(runs_still, observed)) and time.monotonic() < until_s:
        time.sleep(0.1)
    assert not any(map(runs_still, observed))
    io500.clean_up(*FACTORS)


def runs_still(pid: int) -> bool:
    try:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"io500" in command_line or b"mpirun" in command_line


STRACE = """#!/bin/sh
exec strace -f -ttt -s 512 --seccomp-bpf -e trace=write -o {0}.$OMPI_COMM_WORLD_RANK {1} "$@"
"""
EDGE_S = 0.1


@pytest.mark.slow
def test_the_edges_are_those_that_strace_saw(io500: Installed, tmp_path: Path) -> None:
    """In one of three runs at least: on a busy machine the line is read late."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    conf = io500.home / "tool.conf"
    (program,) = re.findall(r"^path=(.*)$", conf.read_text(), re.M)
    traced = tmp_path / "traced"
    io500.script("pre.sh", *FACTORS)
    executable(traced, STRACE.format(tmp_path / "trace", program))
    conf.write_text(conf.read_text().replace(f"path={program}", f"path={traced}"))
    farthest_s = []
    for number in range(3):
        capture = io500.capture(tmp_path / f"out-{number}", factors())
        assert capture.exit_code == 0, capture.text("stderr.txt")
        farthest_s.append(farthest(capture, (tmp_path / "trace.0").read_text()))
        if farthest_s[-1] < EDGE_S:
            break
    assert min(farthest_s) < EDGE_S, farthest_s
    io500.clean_up(*FACTORS)


def farthest(capture: Capture, trace: str) -> float:
    """The most that an edge is from when rank 0 wrote the beginning of the phase, or its score,
    into result.txt, s."""
    phases = tools.parse("io500", capture).phases
    assert [phase.name for phase in phases[:12]] == list(SCORED)
    apart_s = []
    for phase in phases:
        began = re.search(rf"^\d+ +([\d.]+) write\(.*\[{phase.name}\]\\nt_start", trace, re.M)
        assert began, phase.name
        ended = re.search(r"^\d+ +([\d.]+) write\(.*score {11}= ", trace[began.end() :], re.M)
        assert ended and phase.start_s is not None and phase.end_s is not None
        apart_s += [
            abs(phase.start_s - capture.since_start_s(float(began[1]))),
            abs(phase.end_s - capture.since_start_s(float(ended[1]))),
        ]
    return max(apart_s)


@pytest.mark.slow
@pytest.mark.root
def test_ranks_on_two_hosts_and_the_power_of_both(
    short: Installed, hosts: Hosts, rapl: str, eeio_on_path: str, tmp_path: Path
) -> None:
    arguments = ["processes=4", "data=4m", "files=200"]
    nodes, output = tmp_path / "nodes", tmp_path / "out"
    settings = hosts.settings()
    short.command(*hosts.on_first(["bash", str(short.profile / "pre.sh"), *arguments]), **settings)
    settings |= {"EEIO_OUTPUT_DIR": str(output), "PATH": eeio_on_path}
    short.command(
        *hosts.on_first([str(short.home / "eeio-io500"), *arguments]),
        **settings, EEIO_NODE_POWER=f"--meter {rapl} {nodes}",
    )  # fmt: skip
    assert "procs           = 4\n" in (output / "io500/result.txt").read_text()
    assert "nodes               : 2\n" in (output / "io500/ior-easy-write.txt").read_text()
    assert sorted(path.stem for path in nodes.glob("*.json")) == sorted(hosts.names)
    short.clean_up(*FACTORS)


@pytest.mark.slow
@pytest.mark.root
def test_a_job_of_slurm_starts_the_ranks_on_its_nodes(
    short: Installed, hosts: Hosts, tmp_path: Path
) -> None:
    arguments = "processes=4 data=4m files=200"
    line = f"bash {short.profile}/pre.sh {arguments} && {short.home}/eeio-io500 {arguments}"
    with test_slurm.cluster(hosts) as slurm:
        code, message = slurm.job(
            [f"--wrap={line}"], {**short.environment, "EEIO_OUTPUT_DIR": str(tmp_path / "out")}
        )
    assert code == 0, message
    assert "nodes               : 2\n" in (tmp_path / "out/io500/ior-easy-write.txt").read_text()
    assert len(RESULT.findall(message)) >= 4
    short.clean_up(*FACTORS)


@pytest.mark.slow
def test_the_energy_of_the_phases_is_the_meter_s_less_the_gaps(
    io500: Installed, tmp_path: Path, eeio: Eeio, home: Path
) -> None:
    """By the demo meter's stored samples, which are integrated here once more."""
    (path,) = re.findall(r"^path=(.*)$", (io500.home / "tool.conf").read_text(), re.M)
    disk = tmp_path / "disk"
    disk.mkdir(exist_ok=True)
    done = eeio(
        "run", "eeio-io500", "--preset", "quick", "--repetitions", "1", "--meter", "demo",
        "--directory", str(disk), "--name", "io",
        environment={
            "EEIO_IO500": path, "EEIO_DROP_CACHES": io500.environment["EEIO_DROP_CACHES"]
        }, code=None,
    )  # fmt: skip
    # Reads come from the page cache, which the test does not drop: they are invalid, with energy.
    assert done.returncode == 0 or "it was served from a cache" in done.stderr, done.stderr
    assert list(disk.iterdir()) == []
    (folder,) = home.rglob("results/io")
    (run,) = records_in(folder)
    times_s, joules = samples(folder)

    def counted_j(at_s: float) -> float:
        """The demo meter's counter of the system, between its readings."""
        place = min(max(bisect.bisect_left(times_s, at_s), 1), len(times_s) - 1)
        share = (at_s - times_s[place - 1]) / (times_s[place] - times_s[place - 1])
        return joules[place - 1] + share * (joules[place] - joules[place - 1])

    began_s = run["started_monotonic_s"]
    windows = [(began_s + p["start_s"], began_s + p["end_s"]) for p in run["phases"]]
    gaps_j = sum(counted_j(after[0]) - counted_j(before[1]) for before, after in pairwise(windows))
    total_j = counted_j(windows[-1][1]) - counted_j(windows[0][0])
    energy_j = sum(
        reading["energy_j"] for p in run["phases"] for reading in p["energy"]
        if reading["domain"] == "system"
    )  # fmt: skip
    assert len(windows) == 13 and total_j > 100
    assert energy_j == pytest.approx(total_j - gaps_j, rel=0.01)
    report = eeio("report", "io")
    assert "Points/kW" in report.stdout and "no: debug" in report.stdout
    assert NOT_VALID in report.stdout


def samples(folder: Path) -> tuple[Sequence[float], Sequence[float]]:
    """Times, s, and the counter of the first channel, J."""
    with gzip.open(folder / "samples/power-0001.csv.gz", "rt") as file:
        header = json.loads(file.readline())
        assert header["meters"][0]["channels"][0]["domain"] == "system"
        rows = [row for row in csv.reader(file) if len(row) == 3 and row[1] == "0"]
    return [float(row[0]) for row in rows], [float(row[2]) for row in rows]
