"""`eeio fleet` on a real Slurm: a controller and eight nodes."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ran
from tests.profiles import programs
from tests.profiles.hosts import several_hosts
from tests.profiles.test_slurm import Slurm, cluster

pytestmark = [pytest.mark.tools, pytest.mark.root]

SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite>
  <SuiteInformation><Title>Two writes</Title></SuiteInformation>
  <Execute>
    <Test>local/eeio-dataserver-1.0.0</Test>
    <Arguments>{arguments}</Arguments>
    <Description>Sequential write</Description>
  </Execute>
</PhoronixTestSuite>
"""
ARGUMENTS = (
    "level=library api=posix operation=write spatiality=sequential request_size=64k buffer=on "
    "clients=1"
)
PROTOCOL = "presets:\n  quick: {repetitions: 2, settle_s: 0, idle_s: 0, is_measurement: false}\n"
NODES = 8
FULL = 5
"""The place of the node whose disk is too small."""


@dataclass(frozen=True)
class Site:
    slurm: Slurm
    folder: Path
    suite: Path
    target: Path
    environment: dict[str, str]

    def eeio(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return ran(
            self.slurm.hosts.on_first([sys.executable, "-m", "eeio", *arguments]),
            env=self.environment, cwd=self.folder, timeout=240, code=None,
        )  # fmt: skip

    def slurm_output(self, *arguments: str) -> str:
        done = ran(self.slurm.hosts.on_first(list(arguments)), env=self.environment)
        return done.stdout

    def submit(self, nodes: str) -> None:
        """With a template of our own: real nodes have a kernel each, and so locks of their own."""
        shown = self.eeio("fleet", "submit", "--show-template").stdout
        locks = self.folder / "locks-$$SLURMD_NODENAME"
        template = self.folder / "own.sh"
        template.write_text(
            shown.replace("set -eu\n", f"set -eu\nmkdir -p {locks}\nexport EEIO_LOCKS={locks}\n")
        )
        done = self.eeio(
            "fleet", "submit", "--nodes", nodes, "-o", "nightly", "--template", str(template),
            str(self.suite), "--preset", "quick", "--directory", str(self.target),
            "--allow-memory-filesystem", "--meter", "none",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def wait(self, left: int = 0) -> None:
        """Until at most `left` jobs have not ended."""
        deadline_s = time.monotonic() + 240
        while True:
            waiting = self.slurm_output("squeue", "--noheader").splitlines()
            if len(waiting) <= left:
                return
            assert time.monotonic() < deadline_s, waiting
            time.sleep(0.3)

    def collected(self, status: int) -> dict[str, Any]:
        done = self.eeio("fleet", "collect", "nightly", "--format", "json")
        assert done.returncode == status, done.stderr + done.stdout
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    suite = tmp_path / "two-writes"
    suite.mkdir()
    (suite / "suite-definition.xml").write_text(SUITE.format(arguments=ARGUMENTS))
    (suite / "protocol.yaml").write_text(PROTOCOL)
    programs.need("mpicc")
    target = tmp_path / "powercap"  # where each host sees a folder of its own
    target.mkdir()
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(several_hosts(tmp_path, NODES))
        for name in hosts.names:
            size = "size=64m" if name == hosts.names[FULL] else "size=1g"
            stack.enter_context(programs.memory_disk(tmp_path / name, size))
        slurm = stack.enter_context(cluster(hosts))
        environment = {
            **programs.environment({}),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "SLURM_CONF": str(slurm.folder / "slurm.conf"),
        }
        yield Site(slurm, tmp_path, suite, target, environment)


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("count", [3, NODES - 1])
def test_each_node_runs_the_suite_once_and_again_changes_nothing(site: Site, count: int) -> None:
    hosts = site.slurm.hosts.names
    names = [name for name in hosts if name != hosts[FULL]][:count]
    site.submit(",".join(names))
    site.wait()
    logs = {path.stem: path.read_text() for path in (site.folder / "nightly/logs").iterdir()}
    found = site.collected(0)
    assert [node["name"] for node in found["nodes"]] == list(names), logs
    assert {(node["state"], node["runs"]) for node in found["nodes"]} == {("complete", 2)}
    assert found["rejected"] == []
    for name in names:
        assert f"campaign nightly-{name}" in logs[name]
    # A job again: no run is added.
    script = str(site.folder / "nightly/job.sh")
    site.slurm_output("sbatch", "--output=/dev/null", f"--nodelist={names[2]}", script)
    site.wait()
    assert {node["runs"] for node in site.collected(0)["nodes"]} == {2}
    done = site.eeio("fleet", "submit", "--nodes", "1", "-o", "nightly", str(site.suite),
                     "--directory", str(site.target))  # fmt: skip
    assert done.returncode == 2 and "exists" in done.stderr


@pytest.mark.slow
def test_a_node_that_is_down_returns_and_runs_its_campaign(site: Site) -> None:
    first, second, *_ = site.slurm.hosts.names
    site.slurm_output("scontrol", "update", f"NodeName={second}", "State=DOWN", "Reason=test")
    site.submit(f"{first},{second}")
    site.wait(left=1)
    found = {node["name"]: node for node in site.collected(3)["nodes"]}
    assert found[first]["state"] == "complete" and found[second]["state"] == "no results"
    assert "has not started" in found[second]["remarks"][0]
    site.slurm_output("scontrol", "update", f"NodeName={second}", "State=RESUME")
    site.wait()
    assert {node["state"] for node in site.collected(0)["nodes"]} == {"complete"}


@pytest.mark.slow
def test_a_full_disk_of_one_node_is_named_and_the_others_have_results(site: Site) -> None:
    names = (*site.slurm.hosts.names[:2], site.slurm.hosts.names[FULL])
    site.submit(",".join(names))
    site.wait()
    found = {node["name"]: node for node in site.collected(3)["nodes"]}
    assert [found[name]["state"] for name in names] == ["complete", "complete", "no results"]
    assert "MB needed for the test files" in found[names[2]]["remarks"][0]


WRONG = [
    (["--nodes", "99", "eeio-suite"], "8 nodes are up"),
    (["--nodes", "NODE,NODE", "eeio-suite"], "is repeated"),
    (["--nodes", "no-such-node", "eeio-suite"], "nvalid node name"),
    (["--nodes", "1", "no-such-suite"], "no-such-suite"),
    (["--nodes", "1", "eeio-suite", "--pressett", "quick"], "--pressett"),
    (["--nodes", "1", "eeio-suite", "--name", "x", "--directory", "/tmp"], "--name"),
    (["--nodes", "1", "--partition", "none", "eeio-suite", "--directory", "/tmp"], "0 nodes"),
]


@pytest.mark.slow
def test_wrong_arguments_submit_nothing(site: Site) -> None:
    for arguments, message in WRONG:
        arguments = [argument.replace("NODE", site.slurm.hosts.names[0]) for argument in arguments]
        done = site.eeio("fleet", "submit", "-o", "nightly", *arguments)
        assert done.returncode != 0 and message in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert site.slurm_output("squeue", "--noheader") == ""
        assert not (site.folder / "nightly").exists()


def test_without_slurm_it_reports_where_to_run_it(tmp_path: Path) -> None:
    done = ran(
        [sys.executable, "-m", "eeio", "fleet", "submit", "--nodes", "2", "eeio-suite",
         "--directory", str(tmp_path)],
        env={**os.environ, "PATH": "/nonexistent"}, cwd=tmp_path, code=2,
    )  # fmt: skip
    assert done.stderr.splitlines() == [
        "eeio: sinfo is missing: run this on a login node of a Slurm cluster"
    ]
    assert list(tmp_path.iterdir()) == []
