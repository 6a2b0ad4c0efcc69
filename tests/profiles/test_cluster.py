"""The MPI profiles across two hosts, which are two network namespaces with names of their own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from eeio.record.tools.capture import Capture
from eeio_power import power_of_nodes as cluster
from tests.campaigns import records
from tests.executables import executable
from tests.processes import ran
from tests.profiles import programs
from tests.profiles.harness import PROFILES, Installed, Installer
from tests.profiles.hosts import Hosts, ip, write_suite
from tests.profiles.test_btio import check_file
from tests.simulators import FakeRapl
from tests.waiting import until

pytestmark = [pytest.mark.tools, pytest.mark.root]


def run(profile: Installed, hosts: Hosts, script: str, *arguments: str, **settings: str) -> None:
    """pre.sh, or the profile's executable, typed on the first host."""
    path = profile.profile / script if script.endswith(".sh") else profile.home / script
    command = ["bash", str(path)] if script.endswith(".sh") else [str(path)]
    profile.command(*hosts.on_first([*command, *arguments]), **hosts.settings(), **settings)


def test_servers_on_two_hosts_and_the_power_of_both(
    installed: Installer, hosts: Hosts, rapl: str, eeio_on_path: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    profile = installed("dataserver")
    nodes, output = tmp_path / "nodes", tmp_path / "out"
    arguments = ("operation=write", "processes=4", "request_size=64k", "file_size=16m", "buffer=on",
             "stripe=16k")  # fmt: skip
    run(profile, hosts, "pre.sh", *arguments)
    run(profile, hosts, "eeio-dataserver", *arguments, EEIO_OUTPUT_DIR=str(output),
        EEIO_NODE_POWER=f"--meter {rapl} {nodes}", PATH=eeio_on_path)  # fmt: skip
    reported = json.loads((output / "dataserver.json").read_text())
    assert [rank["bytes"] for rank in reported["ranks"]] == [4 << 20] * 4
    assert sorted(path.stem for path in nodes.glob("*.json")) == sorted(hosts.names)
    files = [str(path) for path in nodes.glob("*.json")]
    done = profile.command(
        sys.executable,
        "-m",
        "eeio",
        "meter",
        "sum",
        "--format",
        "json",
        "--nodes",
        "2",
        *files,
        code=None,
    )
    assert done.returncode in (0, 3), done.stderr  # 3: too short for the meter on a busy machine
    total = json.loads(done.stdout)
    assert sorted(total["nodes"]) == sorted(hosts.names)
    each = [json.loads(Path(file).read_text()) for file in files]
    for number, reading in enumerate(total["readings"]):
        parts = [node["readings"][number] for node in each]
        assert reading["domain"] == parts[0]["domain"] == parts[1]["domain"]
        if reading["valid"]:
            assert abs(reading["energy_j"] - sum(p["energy_j"] for p in parts)) < 1e-6
            assert reading["coverage"] == min(p["coverage"] for p in parts)
    profile.script("post.sh", *arguments)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize(
    ("pace", "more"),
    [("lockstep", ("operation=write",)), ("free", ("operation=read", "spatiality=strided")),
     ("free", ("operation=write", "replay=hou10ni", "request_size=1m"))],
)  # fmt: skip
def test_clients_on_the_other_host_are_served_and_their_power_is_not_counted(
    installed: Installer, hosts: Hosts, rapl: str, eeio_on_path: str,
    tmp_path: Path, pace: str, more: tuple[str, ...],
) -> None:  # fmt: skip
    """Two servers on the first host, two clients on the second, whose meter nobody opens."""
    profile = installed("dataserver")
    nodes, output = tmp_path / "nodes", tmp_path / "out"
    # No time limit, which a busy machine would reach.
    arguments = ("processes=2", "clients=2", "request_size=64k", "file_size=4m", "buffer=on",
             "runtime_s=0", *more)  # fmt: skip
    run(profile, hosts, "pre.sh", *arguments)
    run(profile, hosts, "eeio-dataserver", *arguments, f"pace={pace}", EEIO_OUTPUT_DIR=str(output),
        EEIO_NODE_POWER=f"--meter {rapl} {nodes}", PATH=eeio_on_path)  # fmt: skip
    reported = json.loads((output / "dataserver.json").read_text())
    moved = 160 << 20 if "replay=hou10ni" in more else 4 << 20
    assert sum(rank["bytes"] for rank in reported["ranks"]) == moved and len(reported["ranks"]) == 2
    assert (reported["pace"], reported["checksum"]["wrong_pages"]) == (pace, 0)
    counted = {
        node["node"]: node["counted"]
        for path in nodes.glob("*.json")
        if (node := json.loads(path.read_text()))
    }
    assert counted == {hosts.names[0]: True, hosts.names[1]: False}
    assert [node.name for node in cluster.load_nodes(nodes)] == [hosts.names[0]]
    profile.clean_up(*arguments)


@pytest.mark.slow
def test_btio_on_two_hosts_writes_the_same_file(
    installed: Installer, hosts: Hosts, tmp_path: Path
) -> None:
    profile = installed("btio")
    for subtype in ("full", "simple"):
        arguments = ("class=S", f"subtype={subtype}", "processes=4")
        run(profile, hosts, "pre.sh", *arguments)
        run(profile, hosts, "eeio-btio", *arguments, EEIO_OUTPUT_DIR=str(tmp_path / subtype))
        reported = json.loads((tmp_path / subtype / "eeio.json").read_text())
        assert [(p["bytes_moved"], p["invalid"]) for p in reported["phases"]] == [(829_440, [])] * 2
    program = programs.Program("btio", profile.home / "btio")
    where = profile.directory
    profile.command(
        *hosts.on_first(
            ["mpirun", "--hostfile", str(hosts.hostfile), "-np", "4", str(program.path), "class=S",
             f"directory={where}", "keep=on", "ranks=4"]
        ),
        **hosts.settings(), **programs.MPI_SETTINGS,
    )  # fmt: skip
    check_file(where / "eeio-btio.out", "S")


def test_files_created_on_two_hosts_have_one_hosts_spans(
    installed: Installer, hosts: Hosts, tmp_path: Path
) -> None:
    profile = installed("metadata")
    arguments = ("processes=4", "files=3", "rounds=2")
    run(profile, hosts, "pre.sh", *arguments)
    run(profile, hosts, "eeio-metadata", *arguments, EEIO_OUTPUT_DIR=str(tmp_path / "out"))
    reported = json.loads((tmp_path / "out/eeio.json").read_text())
    assert reported["notes"][0] == "mode: MPI" and "ranks on several hosts" in reported["notes"][1]
    for phase in reported["phases"]:
        assert phase["metrics"]["operations"] == 24
        assert "start_apart_mean_s" not in phase["metrics"]
        assert phase["start_monotonic_s"] < phase["end_monotonic_s"]
    assert len((tmp_path / "out/calls.csv").read_text().splitlines()) == 1 + 24 * 6
    profile.clean_up(*arguments)


def test_checkpoints_on_two_hosts_have_one_hosts_stretches_and_the_power_of_both(
    installed: Installer, hosts: Hosts, rapl: str, eeio_on_path: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    profile = installed("checkpoint")
    nodes, output = tmp_path / "nodes", tmp_path / "out"
    arguments = ("processes=4", "size=64k", "spread=50", "interval_s=0", "checkpoints=3")
    run(profile, hosts, "pre.sh", *arguments)
    run(profile, hosts, "eeio-checkpoint", *arguments, EEIO_OUTPUT_DIR=str(output),
        EEIO_NODE_POWER=f"--meter {rapl} {nodes}", PATH=eeio_on_path)  # fmt: skip
    reported = json.loads((output / "eeio.json").read_text())
    assert any("ranks on several hosts" in note for note in reported["notes"])
    (phase,) = reported["phases"]
    assert phase["bytes_moved"] == pytest.approx(3 * 4 * 65536, abs=12)
    assert len(phase["stretches_monotonic_s"]) == 3
    assert {node.name for node in cluster.load_nodes(nodes)} == set(hosts.names)
    assert len(list((profile.directory / "eeio-scratch").glob("eeio-checkpoint.?.?"))) == 8
    profile.clean_up(*arguments)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("lost", [False, True])
def test_a_campaigns_records_hold_the_power_of_all_hosts(
    hosts: Hosts, eeio_on_path: str, tmp_path: Path, lost: bool
) -> None:
    """Hosts of 100 W and 60 W; or one whose counters stand still."""
    suite, powercap = write_suite(tmp_path / "two-hosts"), tmp_path / "powercap"
    powercap.mkdir()
    first, second = hosts.names
    with (
        FakeRapl(tmp_path / first, power_w=lambda _: 100.0),
        FakeRapl(tmp_path / second, power_w=lambda _: 0.0 if lost else 60.0),
        programs.memory_disk(tmp_path / "target", "size=64m") as target,
    ):
        done = ran(
            hosts.on_first(
                [sys.executable, "-m", "eeio", "run", str(suite), "--preset", "quick", "--name",
                 "c", "--directory", str(target), "--allow-memory-filesystem", "--meter",
                 f"rapl,root={powercap}"]
            ),
            env={
                **programs.environment({"PATH": eeio_on_path}), **hosts.settings(),
                "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state"),
            },
            code=(0, 3),
        )  # fmt: skip
    (run,) = records(tmp_path)
    assert run["validity"] == [], done.stderr
    write = run["phases"][0]
    readings = {reading["domain"]: reading for reading in write["energy"]}
    for domain in ("package", "dram"):
        reading = readings[domain]
        assert (reading["meter"], reading["kind"]) == ("2 nodes: rapl", "measured")
        if lost:
            assert not reading["valid"] and reading["energy_j"] is None
            assert any(reason.startswith(f"{second}: ") for reason in reading["reasons"])
            continue
        if not reading["valid"]:
            assert any("gap" in reason or "late" in reason for reason in reading["reasons"])
            continue
        share = {"package": 0.8, "dram": 0.2}[domain]
        assert abs(reading["power_w"] - share * 160.0) < 0.2 * share * 160.0
        duration_s = write["end_s"] - write["start_s"]
        assert abs(reading["energy_j"] - reading["power_w"] * duration_s) < 1e-6
        assert any("clocks of the nodes" in reason for reason in reading["reasons"])
    idle = json.loads((tmp_path / "data/eeio/results/c/idle.json").read_text())
    assert "of which idle is not measured" in json.dumps(idle)


@pytest.mark.slow
def test_a_rank_that_dies_on_the_other_host_ends_all(
    installed: Installer, hosts: Hosts, rapl: str, eeio_on_path: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    profile = installed("btio")
    arguments = ("class=S", "processes=4", "compute_ms=5000")
    run(profile, hosts, "pre.sh", *arguments)
    program = profile.home / "btio"
    wrapper = subprocess.Popen(
        start_new_session=True,
        args=hosts.on_first([str(profile.home / "eeio-btio"), *arguments]),
        cwd=profile.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**profile.environment, **hosts.settings(), "PATH": eeio_on_path,
             "EEIO_NODE_POWER": f"--meter {rapl} {tmp_path}/nodes"},
    )  # fmt: skip
    try:
        ranks = programs.all_at_work(program, "eeio-btio.out", 4)
        remote = [pid for pid in ranks if namespace(pid) == hosts.names[1]]
        assert len(remote) == 2
        os.kill(remote[0], signal.SIGKILL)
        wrapper.communicate(timeout=300)
        assert wrapper.returncode != 0
        until(lambda: programs.running(program) == [])
    finally:
        for rank in programs.running(program):
            os.kill(rank, signal.SIGKILL)
        if wrapper.poll() is None:
            os.killpg(wrapper.pid, signal.SIGKILL)
            wrapper.communicate(timeout=300)
    profile.clean_up(*arguments)


def namespace(pid: int) -> str:
    """The network namespace of a process, by name."""
    return ip("netns", "identify", str(pid)).stdout.strip()


def test_the_program_sees_ranks_that_mpi_did_not_join(installed: Installer, tmp_path: Path) -> None:
    """As srun without PMIx starts them: four programs of one rank each."""
    profile = installed("btio")
    executable(tmp_path / "srun", '#!/bin/sh\nshift 2\nexec "$@"\n')
    profile.script("pre.sh", "class=S")
    done = profile.run(
        "class=S", "processes=4", SLURM_JOB_ID="1", **programs.alone(str(tmp_path)),
        PATH=f"{tmp_path}:{os.environ['PATH']}", code=2,
    )  # fmt: skip
    assert "4 ranks were started and MPI has joined 1" in done.stderr


# Open MPI's, locked up: its ranks are dead, it reaps none of them, and takes no signal.
STUCK = """#!{python}
import os, pathlib, signal, sys
if "--version" in sys.argv:
    print("mpirun (Open MPI) 4.1.4")
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
session = pathlib.Path(os.environ["TMPDIR"], "ompi.here.0", f"pid.{{os.getpid()}}")
session.mkdir(parents=True)
(session / "contact.txt").write_text(os.environ["JOB"] + ".0;tcp://192.0.2.2:53267\\n")
for rank in range(2):
    if os.fork() == 0:
        os._exit(1)
print("stuck", flush=True)
signal.pause()
"""


def _launched(
    script: str, shell: Sequence[str] = ("sh",), **settings: str
) -> "subprocess.CompletedProcess[str]":
    """A script after `launch` is defined as in a profile."""
    common = str(PROFILES / "common")
    return ran(
        [*shell, "-c", f'. "$HOME/mpi-io.sh"; . "$HOME/mpi.sh"; {script}'],
        env={"PATH": os.environ["PATH"], **settings, "HOME": common},
        code=None, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("is_number", [True, False])
def test_an_mpirun_that_locks_itself_up_is_ended(tmp_path: Path, is_number: bool) -> None:
    """Bash would run a command in the text that should be a number."""
    mpirun = executable(tmp_path / "mpirun", STUCK.format(python=sys.executable))
    job = os.getpid() << 16
    # As Open MPI 4.1 names what a rank shares with the others: by the number of the job, in hex.
    segment = Path(f"/dev/shm/vader_segment.eeio-test.0.{job + 1:x}.0")
    segment.touch()
    planted = tmp_path / "planted"
    done = _launched(
        '(launch 2 true); echo "ended with $?"', ("bash", "--posix"), EEIO_MPIRUN=str(mpirun),
        JOB=str(job) if is_number else f"x[$(touch {planted})]",
    )  # fmt: skip
    was_removed = not segment.exists()
    segment.unlink(missing_ok=True)
    assert done.stdout == "stuck\nended with 137\n", done.stderr
    assert not planted.exists()
    assert was_removed == is_number


SESSION = """#!/bin/sh
[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit
echo "$TMPDIR $OMPI_MCA_btl_vader_backing_directory $OMPI_MCA_btl_sm_backing_directory"
stat -c '%a %u' "$TMPDIR"
touch "$TMPDIR/left"
{more}
"""


@pytest.mark.parametrize(("more", "status"), [("exit 7", 7), ("kill -TERM 0; sleep 600", 143)])
def test_the_files_of_open_mpi_are_in_a_new_folder_of_its_user(
    tmp_path: Path, more: str, status: int
) -> None:
    """In /tmp another user may make its folder first, with links to files of root in it."""
    mpirun = executable(tmp_path / "mpirun", SESSION.format(more=more))
    (tmp_path / "tmp").mkdir()
    done = _launched("launch 2 true", EEIO_MPIRUN=str(mpirun), TMPDIR=str(tmp_path / "tmp"))
    names, mode = done.stdout.splitlines()
    folder, *backing = names.split()
    assert backing == [folder, folder] and folder.startswith("/dev/shm/eeio-mpi.")
    assert mode == f"700 {os.geteuid()}"
    assert done.returncode == status, done.stderr
    until(lambda: not Path(folder).exists())


def test_no_file_is_made_in_the_folder_of_open_mpi_that_another_user_has_made(
    tmp_path: Path,
) -> None:
    programs.need("mpirun")
    planted = tmp_path / f"ompi.{socket.gethostname()}.{os.geteuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    rank = 'ls -A "$PLANTED"; find "$TMPDIR" -name contact.txt'
    done = _launched(
        f"launch 1 sh -c '{rank}'", TMPDIR=str(tmp_path), PLANTED=str(planted),
    )  # fmt: skip
    assert re.fullmatch(r"/dev/shm/eeio-mpi\.\w+/ompi\.\S+/contact\.txt\n", done.stdout), done


def test_root_s_files_of_open_mpi_on_other_hosts_are_where_only_root_makes_them(
    hosts: Hosts, tmp_path: Path
) -> None:
    rank = executable(tmp_path / "rank", "#!/bin/sh\nls -d /*/ompi.$(hostname).*/*\n")
    program = f'. "$HOME/mpi-io.sh"; . "$HOME/mpi.sh"; launch 4 {rank}'
    done = ran(
        hosts.on_first(["sh", "-c", program]),
        env={"PATH": os.environ["PATH"], "HOME": str(PROFILES / "common"), **hosts.settings()},
    )  # fmt: skip
    folders = [re.sub(r"/[a-z]+\.\d+$", "", line) for line in done.stdout.splitlines()]
    assert sorted(folders) == [f"/run/ompi.{name}.0" for name in sorted(hosts.names * 2)]


def test_no_display_is_looked_for(tmp_path: Path) -> None:
    """hwloc would ask for localhost, and wait where only a name server could know it."""
    mpirun = executable(
        tmp_path / "mpirun",
        "#!/bin/sh\n"
        '[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" || echo "$HWLOC_COMPONENTS"\n',
    )
    for given, reported in (({}, "-gl"), ({"HWLOC_COMPONENTS": "-xml"}, "-xml,-gl")):
        done = _launched("launch 2 true", EEIO_MPIRUN=str(mpirun), **given)
        assert done.stdout == f"{reported}\n", done.stderr


# What `ompi_info --parsable` says of MPI-IO: 4.1.4 as Debian 12 has it, 5.0 with the component that
# its documentation names (tuning-apps/mpi-io/romio), and without ROMIO, as it is to be removed.
OMPI_4 = """mca:io:romio321:version:"mca:2.1.0"
mca:io:romio321:version:"component:4.1.4"
mca:io:ompio:version:"mca:2.1.0"
"""
OMPI_5 = """mca:io:ompio:version:"mca:2.1.0"
mca:io:romio341:version:"mca:2.1.0"
mca:io:romio341:version:"component:5.0.5"
"""
OMPIO_ALONE = """mca:io:ompio:version:"mca:2.1.0"
"""


@pytest.mark.parametrize(
    ("reported", "given", "chosen", "note"),
    [
        (OMPI_4, None, "romio321", "MPI-IO by romio321, mpirun (Open MPI) 5.0.5"),
        (OMPI_5, None, "romio341", "MPI-IO by romio341, mpirun (Open MPI) 5.0.5"),
        (OMPIO_ALONE, None, "unset", "MPI-IO by the default of Open MPI (no ROMIO was found;"),
        ("", None, "unset", "MPI-IO by the default of Open MPI (no ROMIO was found;"),
        (OMPI_5, "ompio", "ompio", "MPI-IO by ompio, mpirun (Open MPI) 5.0.5"),
    ],
)
def test_the_romio_of_this_open_mpi_is_queried(
    tmp_path: Path, reported: str, given: str | None, chosen: str, note: str
) -> None:
    """Asking for romio321, which Open MPI 5 does not have, ends every program that opens a file."""
    output = tmp_path / "output"
    output.mkdir()
    (tmp_path / "info.txt").write_text(reported)
    for name, message in (
        ("mpirun", '[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.5" ||\n'
                   'echo "${OMPI_MCA_io-unset}"\n'),
        ("ompi_info", f"cat {tmp_path}/info.txt\n"),
    ):  # fmt: skip
        executable(tmp_path / name, f"#!/bin/sh\n{message}")
    settings = {"OMPI_MCA_io": given} if given else {}
    done = _launched(
        "output=$OUT; launch 2 true", EEIO_MPIRUN=str(tmp_path / "mpirun"), OUT=str(output),
        **settings,
    )  # fmt: skip
    assert done.stdout == f"{chosen}\n", done.stderr
    assert (output / "notes.txt").read_text().startswith(note)
    assert Capture(output, {}, 0, 0.0, 1.0, 0.0).notes[0].startswith(note)


# srun on one node, for a machine without Slurm.
SRUN = """#!/bin/sh
ranks=${1#--ntasks=}
shift 2
exec mpirun --oversubscribe --bind-to none -np "$ranks" "$@"
"""


def test_the_job_script(rapl: str, eeio_on_path: str, tmp_path: Path) -> None:
    programs.need("mpirun", "mpicc")
    executable(tmp_path / "bin/srun", SRUN)
    target = tmp_path / "scratch"
    target.mkdir()
    root = Path(__file__).parents[2]
    done = ran(
        ["bash", str(root / "docs/cluster/job.slurm"), str(target)],
        env={
            **programs.environment({"PATH": eeio_on_path}),
            "SLURM_JOB_ID": "17", "SLURM_NTASKS": "2", "SLURM_NNODES": "1", "SLURM_LOCALID": "0",
            "SLURM_SUBMIT_DIR": str(root), "EEIO_METER": rapl, "EEIO_PRESET": "quick",
        },
        code=(0, 3),
    )  # fmt: skip
    results = target / "eeio-17"
    reported = json.loads((results / "eeio.json").read_text())
    (phase,) = reported["phases"]
    assert phase["operation"] == "write" and phase["invalid"] == []
    (node,) = (results / "nodes").glob("*.json")
    assert json.loads(node.read_text())["exit_code"] == 0
    if done.returncode == 0:
        assert json.loads((results / "power.json").read_text())["nodes"] == [node.stem]
    assert sorted(path.name for path in target.iterdir()) == ["eeio-17"]
