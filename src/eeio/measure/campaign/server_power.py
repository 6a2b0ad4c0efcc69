"""The power of other machines during a run: servers behind the files, and nodes of the ranks.

The power of the servers behind a file system, recorded on them during a run.

A command of the user reaches each server and runs `eeio meter node -` there, e.g. `ssh nas eeio
meter node --meter rapl -`. It records until its standard input ends and prints the recording: the
machines share only the clock.

The power of all nodes with ranks of a run, if a campaign has several.
"""

import base64
import binascii
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.files import inputs
from eeio.machine.owner import start_ticks
from eeio.machine.undo import UndoEntry, UndoJournal, end_group, mark, memory_file, printed_in
from eeio.measure.campaign.probes import Environment, Probe
from eeio.measure.power import recorded
from eeio.measure.profiles.profile import Profile
from eeio.record.run import EnergyReading
from eeio.record.tools.capture import Capture
from eeio_power import power_of_nodes as cluster
from eeio_power.monitor import PowerMonitor

BEGUN = b"recording\n"
"""The line that `eeio meter node -` prints once its meters are read."""
_BEGIN_S = 60.0
_END_S = 60.0
# Samples of a day at 10 Hz are some megabytes.
_LARGEST_BYTES = 64 << 20


class ServerPower(Probe):
    """One recording of every server; their output is in `folder`."""

    def __init__(self, commands: Sequence[str], folder: Path, journal: UndoJournal) -> None:
        self._commands = commands
        self._folder = folder
        self._journal = journal
        self._servers: list[_Server] = []
        self._begun = cluster.clocks()
        self._ended = self._begun

    @property
    def recorded(self) -> bool:
        """Whether there are servers to be recorded."""
        return bool(self._commands)

    def start(self) -> None:
        """Raises EeioError where a server does not say that it records."""
        self._begun = cluster.clocks()
        for command in self._commands:
            self._servers.append(_Server(command, self._journal))
        for server in self._servers:
            server.wait()

    def stop(self, ended_s: float | None) -> None:
        """Stores each server's recording; EeioError if one has none."""
        try:
            for number, server in enumerate(self._servers if ended_s is not None else (), 1):
                self._keep(number, server)
        finally:
            for server in self._servers:
                server.stop()
            self._servers = []
        self._ended = cluster.clocks()

    def _keep(self, number: int, server: "_Server") -> None:
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"server-{number}.json"
        try:
            body = inputs.parse_json(server.finish(), _LARGEST_BYTES)
            samples = base64.b64decode(body.pop("samples"), validate=True)
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise EeioError(
                f"--server-power {server.command}: that is not output of `eeio meter node -` "
                f"({error})"
            ) from error
        cluster.samples_path(path).write_bytes(samples)
        path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")

    def parts(self, start_s: float, end_s: float) -> cluster.Parts:
        """Each server's energy between two moments of this machine's monotonic clock; none without
        a command. Raises RejectedError where a server's clock is another."""
        if not self._commands:
            return cluster.Parts()
        servers = cluster.load_servers(self._folder)
        names = [server.name for server in servers]
        if len(set(names)) != len(self._commands):
            raise RejectedError(f"--server-power: {len(self._commands)} servers printed {names}")
        return cluster.parts(servers, start_s, end_s, self._begun, self._ended)


class _Server:
    def __init__(self, command: str, journal: UndoJournal) -> None:
        self.command = command
        self._journal = journal
        # A file, not a pipe: the command must not wait for somebody to read its messages.
        self._messages = memory_file()
        self._process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,
            env={**os.environ, **mark()},
        )
        ticks = start_ticks(self._process.pid) or 0
        self._entry = UndoEntry("process", str(self._process.pid), str(ticks))
        journal.add(self._entry)

    def wait(self) -> None:
        output = self._read(_BEGIN_S, len(BEGUN))
        if output != BEGUN:
            raise EeioError(f"--server-power {self.command}: {self._why()}")

    def finish(self) -> bytes:
        assert self._process.stdin is not None
        self._process.stdin.close()
        output = self._read(_END_S, _LARGEST_BYTES)
        if not output:
            raise EeioError(f"--server-power {self.command}: {self._why()}")
        return output

    def _read(self, limit_s: float, most: int) -> bytes:
        """Until so many bytes, the end of its output, or the time limit."""
        assert self._process.stdout is not None
        output = b""
        deadline_s = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while len(output) < most:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    return b""
                chunk = os.read(self._process.stdout.fileno(), min(65536, most - len(output)))
                if not chunk:
                    break
                output += chunk
        return output

    def _why(self) -> str:
        """Its last message, once it has ended."""
        if self._process.poll() is None:
            end_group(self._process.pid)
        lines = printed_in(self._messages).strip().splitlines()
        if not lines:
            return "it did not record and printed no message"
        return lines[-1][:300]

    def stop(self) -> None:
        if self._process.poll() is None:
            end_group(self._process.pid)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._messages):
            if stream is not None:
                stream.close()
        if self._entry in self._journal.entries:
            self._journal.forget(self._entry)


Energy = Callable[[float, float], tuple[EnergyReading, ...]]
"""The energy between two moments of this machine's monotonic clock."""

NO_IDLE_OF_SERVERS = "runs have the power of the servers, too, of which idle is not measured"
NO_IDLE = "runs over MPI have the power of several nodes, of which idle is not measured"


def several(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ranks may start on other machines than this one (docs/how-to/run-on-a-cluster.md)."""
    slurm = bool(environment.get("SLURM_JOB_ID"))
    in_slurm = slurm and environment.get("SLURM_JOB_NUM_NODES", "1") != "1"
    return in_slurm or bool(environment.get("EEIO_HOSTFILE"))


class NodePower(Probe):
    """The power of all nodes with ranks of a profile: they start under `eeio meter node`, which
    writes into `folder`. Inactive for programs that run only on this machine, and without a
    meter."""

    def __init__(
        self,
        profile: Profile,
        folder: Path,
        specs: tuple[str, ...],
        power: PowerMonitor,
        servers: ServerPower,
    ) -> None:
        self.several = several() and profile.has_ranks and bool(power.meters)
        self._folder = folder
        self._specs = specs
        self._power = power
        self._servers = servers

    @property
    def settings(self) -> Environment:
        """Raises RejectedError for arguments that the profile's shell would split."""
        if not self.several:
            return {}
        kinds = {meter.kind for meter in self._power.meters}
        specs = self._specs or ("modelled" if kinds == {"modelled"} else "auto",)
        for word in (*specs, str(self._folder)):
            if len(word.split()) != 1:
                raise RejectedError(
                    f"{word!r}: with several nodes meters and paths without blanks only"
                )
        meters = " ".join(f"--meter {spec}" for spec in specs)
        # Next to the running Python, for who has called `.venv/bin/eeio`; on all nodes alike.
        path = f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}"
        return {"EEIO_NODE_POWER": f"{meters} {self._folder}", "PATH": path}

    def energy(self, capture: Capture) -> Energy:
        """This machine's, or the sum of the nodes that have written into the folder; and of the
        servers behind the files. Invalid with its reason if one of them is missing.

        Without a meter there are no files and no readings.
        """
        if not self.several and not self._servers.recorded:
            return lambda start_s, end_s: recorded(self._power.energy(start_s, end_s))
        begun = cluster.Clocks(capture.started_utc_s, capture.started_monotonic_s)
        now = cluster.clocks()
        ended = cluster.Clocks(capture.ended_monotonic_s + now.offset_s, capture.ended_monotonic_s)

        def of(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
            here = tuple(self._power.energy(start_s, end_s))
            try:
                if self.several:
                    nodes = cluster.load_nodes(self._folder)
                    parts = cluster.parts(nodes, start_s, end_s, begun, ended)
                else:
                    name = socket.gethostname()
                    parts = cluster.Parts((cluster.NodeRecording(name, end_s - start_s, here),))
                return recorded(cluster.total(parts + self._servers.parts(start_s, end_s)))
            except RejectedError as error:
                return tuple(_none(reading, str(error)) for reading in recorded(here))

        return of


def _none(reading: EnergyReading, reason: str) -> EnergyReading:
    """No figure: this machine's would be mistaken for the total."""
    return replace(
        reading,
        meter=f"nodes: {reading.meter}",
        power_w=None,
        energy_j=None,
        uncertainty_j=None,
        coverage=0.0,
        largest_gap_s=None,
        samples=0,
        lost=0,
        valid=False,
        reasons=(reason,),
    )
