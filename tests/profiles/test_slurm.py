"""Inside jobs of a real Slurm: a controller, and a daemon on each host."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.campaigns import records
from tests.processes import ran
from tests.profiles import programs
from tests.profiles.harness import Installer
from tests.profiles.hosts import Hosts, write_suite
from tests.simulators import FakeRapl

pytestmark = [pytest.mark.tools, pytest.mark.root]

ROOT = Path(__file__).parents[2]
START_S = 30.0

CONFIGURATION = """ClusterName=eeio
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
KillWait=5
JobRequeue=0
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A cluster of nodes with two processors each, that share the file system."""

    hosts: Hosts
    folder: Path

    def start(
        self, arguments: list[str], environment: dict[str, str], output: Path
    ) -> "subprocess.Popen[str]":
        """A job on both nodes, two tasks each; ends with it, with its exit code."""
        command = ["sbatch", "--wait", "--nodes=2", "--ntasks-per-node=2", f"--output={output}"]
        return subprocess.Popen(
            self.hosts.on_first([*command, *arguments]),
            env={**environment, "SLURM_CONF": str(self.folder / "slurm.conf")},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def job(self, arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
        """Its exit code and what it printed."""
        output = self.folder / "job.out"
        process = self.start(arguments, environment, output)
        try:
            message = process.communicate(timeout=150)[0]
        finally:
            process.kill()
        return process.returncode, message + (output.read_text() if output.exists() else "")


@contextmanager
def cluster(hosts: Hosts) -> Iterator[Slurm]:
    """Slurm on the hosts; what is mounted later its jobs do not see."""
    programs.need("munged", "slurmctld", "slurmd", "sbatch", "srun")
    # pytest's folders are too deep for the names of sockets.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        yield from _cluster(hosts, Path(folder))


def _cluster(hosts: Hosts, folder: Path) -> Iterator[Slurm]:
    for name in ("state", *(f"{kind}-{host}" for kind in ("spool", "tmp") for host in hosts.names)):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            names=hosts.names,
            addresses=hosts.addresses,
            folder=folder,
            nodes="\n".join(
                f"NodeName={name} NodeAddr={address} CPUs=2 State=UNKNOWN"
                for name, address in zip(hosts.names, hosts.addresses, strict=True)
            ),
        )
    )
    # Nothing here limits or counts by control groups, which not every machine has mounted: named,
    # this plugin does not look for them before they are wanted.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    munge = [
        "munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
        f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid",
        f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munged.log",
    ]  # fmt: skip
    daemons = [
        munge,
        hosts.on_first(["slurmctld", "-D", "-c"]),
        *(hosts.on(name, ["slurmd", "-D", "-N", name]) for name in hosts.names),
    ]
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for arguments in daemons:
            running.append(
                subprocess.Popen(
                    arguments, env=environment, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            if arguments is munge:
                _until(lambda: (folder / "munge.socket").exists(), "munged does not start", folder)
        _until(
            lambda: _idle_nodes(hosts, environment) == len(hosts.names),
            "Slurm does not come up",
            folder,
        )
        yield Slurm(hosts, folder)
    finally:
        for daemon in reversed(running):
            daemon.terminate()
        for daemon in running:
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _until(contains: Callable[[], bool], failure: str, folder: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while not contains():
        if time.monotonic() > deadline_s:
            logs = (path.read_text(errors="replace") for path in sorted(folder.glob("*.log")))
            pytest.fail(failure + ":\n" + "\n".join(logs))
        time.sleep(0.1)


def _idle_nodes(hosts: Hosts, environment: dict[str, str]) -> int:
    done = ran(
        hosts.on_first(["sinfo", "--noheader", "--Node", "--format=%T"]), env=environment, code=None
    )
    return done.stdout.split().count("idle")


@pytest.mark.slow
def test_the_job_script_on_two_nodes(
    hosts: Hosts, rapl: str, eeio_on_path: str, tmp_path: Path
) -> None:
    with (
        programs.memory_disk(tmp_path / "target", "size=1g") as target,
        cluster(hosts) as slurm,
    ):
        code, message = slurm.job(
            [str(ROOT / "docs/cluster/job.slurm"), str(target)],
            {
                **programs.environment({"PATH": eeio_on_path}), "EEIO_ROOT": str(ROOT),
                "EEIO_METER": rapl, "EEIO_PRESET": "quick",
            },
        )  # fmt: skip
        assert code in (0, 3), message  # 3: too short for the meter on a busy machine
        (results,) = target.iterdir()
        reported = json.loads((results / "dataserver.json").read_text())
        assert len(reported["ranks"]) == 4
        nodes = sorted(path.stem for path in results.glob("nodes/*.json"))
        assert tuple(nodes) == hosts.names
        if code == 0:
            total = json.loads((results / "power.json").read_text())
            assert tuple(total["nodes"]) == hosts.names
            # The cluster has no slurmdbd.
            assert total["slurm"]["missing"].startswith("sacct: ")


def test_a_campaign_in_a_job_contains_the_power_of_all_nodes(
    hosts: Hosts, eeio_on_path: str, tmp_path: Path
) -> None:
    suite, powercap = write_suite(tmp_path / "two-hosts"), tmp_path / "powercap"
    powercap.mkdir()
    first, second = hosts.names
    with (
        FakeRapl(tmp_path / first, power_w=lambda _: 100.0),
        FakeRapl(tmp_path / second, power_w=lambda _: 60.0),
        programs.memory_disk(tmp_path / "target", "size=64m") as target,
        cluster(hosts) as slurm,
    ):
        line = (
            f"eeio run {suite} --preset quick --name c --directory {target} "
            f"--allow-memory-filesystem --meter rapl,root={powercap}"
        )
        code, message = slurm.job(
            [f"--wrap={line}"],
            {
                **programs.environment({"PATH": eeio_on_path}),
                "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state"),
            },
        )  # fmt: skip
    assert code in (0, 3), message
    (run,) = records(tmp_path)
    assert run["validity"] == [], message
    write = run["phases"][0]
    assert write["bytes_moved"] == 829_440
    readings = {reading["domain"]: reading for reading in write["energy"]}
    for domain, share in (("package", 0.8), ("dram", 0.2)):
        reading = readings[domain]
        assert (reading["meter"], reading["kind"]) == ("2 nodes: rapl", "measured")
        if reading["valid"]:
            assert abs(reading["power_w"] - share * 160.0) < 0.2 * share * 160.0
        else:
            assert any("gap" in reason or "late" in reason for reason in reading["reasons"])


@pytest.mark.slow
def test_a_rank_that_dies_ends_the_step_on_both_nodes(
    installed: Installer, hosts: Hosts, tmp_path: Path
) -> None:
    profile = installed("btio")
    arguments = ("class=S", "processes=4", "compute_ms=5000")
    profile.script("pre.sh", *arguments)
    program, output = profile.home / "btio", tmp_path / "job.out"
    line = " ".join([str(profile.home / "eeio-btio"), *arguments])
    with cluster(hosts) as slurm:
        job = slurm.start([f"--wrap={line}"], profile.environment, output)
        try:
            ranks = programs.all_at_work(program, "eeio-btio.out", 4)
            os.kill(ranks[0], signal.SIGKILL)
            job.communicate(timeout=300)
            assert job.returncode != 0
            assert programs.running(program) == []
        finally:
            for rank in programs.running(program):
                os.kill(rank, signal.SIGKILL)
            job.kill()
            job.communicate(timeout=300)
    profile.clean_up(*arguments)
