"""Several hosts on one machine: network namespaces with names of their own."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.executables import executable
from tests.processes import ran
from tests.profiles import programs

NETWORK = "10.231.7"

# What ssh is on a cluster: HOST COMMAND.
AGENT = """#!/bin/sh
case $1 in {cases} esac
shift
exec ip netns exec $host unshare --uts --mount sh -c "hostname $host; {own}; $*"
"""

# A host that has a powercap tree of its own sees that one.
OWN = "if [ -d {folder}/$(hostname) ]; then mount --bind {folder}/$(hostname) {folder}/powercap; fi"


@dataclass(frozen=True)
class Hosts:
    """Hosts that reach each other by one switch, and share the file system."""

    names: tuple[str, ...]
    hostfile: Path
    agent: Path
    own: str

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(f"{NETWORK}.{number}" for number in range(1, len(self.names) + 1))

    def on_first(self, arguments: list[str]) -> list[str]:
        """The command, as if it were typed on the first host."""
        return self.on(self.names[0], arguments)

    def on(self, name: str, arguments: list[str]) -> list[str]:
        """The command, as if it were typed on the host of that name."""
        line = f"hostname {name}; {self.own}; exec {shlex.join(arguments)}"
        # `ip netns exec` would hide the control groups, which Slurm wants.
        network = f"--net=/run/netns/{name}"
        return ["nsenter", network, "unshare", "--uts", "--mount", "sh", "-c", line]

    def settings(self) -> dict[str, str]:
        return {"EEIO_HOSTFILE": str(self.hostfile), "OMPI_MCA_plm_rsh_agent": str(self.agent)}


def ip(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return ran(["ip", *arguments], code=None)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    programs.need("mpirun", "mpicc")
    with several_hosts(tmp_path, 2) as made:
        yield made


@contextmanager
def several_hosts(tmp_path: Path, count: int) -> Iterator[Hosts]:
    """At most 26 of them. The switch is on the first host."""
    programs.need("ip", "nsenter", "unshare")
    names = tuple(f"eeio-{os.getpid()}-{chr(ord('a') + number)}" for number in range(count))
    agent, hostfile = tmp_path / "agent", tmp_path / "hosts"
    own = OWN.format(folder=tmp_path)
    made = Hosts(names, hostfile, agent, own)
    try:
        for name in names:
            _ip_or_skip("network namespaces", "netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        first = names[0]
        _ip_or_skip("network bridges", "-n", first, "link", "add", "eeio0", "type", "bridge")
        for name in names[1:]:
            _ip_or_skip("virtual cables", "-n", name, "link", "add", "eeio0", "type", "veth",
                        "peer", "name", f"to-{name[-1]}", "netns", first)  # fmt: skip
            ip("-n", first, "link", "set", f"to-{name[-1]}", "master", "eeio0", "up")
        for name, address in zip(names, made.addresses, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eeio0")
            ip("-n", name, "link", "set", "eeio0", "up")
        pairs = zip(made.addresses, names, strict=True)
        cases = " ".join(f"{address}) host={name} ;;" for address, name in pairs)
        executable(agent, AGENT.format(cases=cases, own=own.replace("$", r"\$")))
        hostfile.write_text("".join(f"{address} slots=2\n" for address in made.addresses))
        yield made
    finally:
        for name in names:
            ip("netns", "delete", name)


def _ip_or_skip(what: str, *arguments: str) -> None:
    done = ip(*arguments)
    if done.returncode:
        pytest.skip(f"no {what} here: {done.stderr.strip()}")


@pytest.fixture
def eeio_on_path(tmp_path: Path) -> str:
    """A PATH with the command, as each node of a cluster has it."""
    commands = tmp_path / "bin"
    executable(commands / "eeio", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m eeio "$@"\n')
    return f"{commands}:{os.environ['PATH']}"


SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite>
  <SuiteInformation><Title>Two hosts</Title></SuiteInformation>
  <Execute>
    <Test>local/eeio-btio-1.0.0</Test>
    <Arguments>level=application class=S subtype=full processes=4 compute_ms=200</Arguments>
    <Description>BT-IO on two hosts</Description>
  </Execute>
</PhoronixTestSuite>
"""
PROTOCOL = "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n"


def write_suite(folder: Path) -> Path:
    """A suite with one experiment for both hosts."""
    folder.mkdir()
    (folder / "suite-definition.xml").write_text(SUITE)
    (folder / "protocol.yaml").write_text(PROTOCOL)
    return folder
