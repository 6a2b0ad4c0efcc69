"""The power of all nodes that a run's ranks are on, where a campaign has several."""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from eeio import cluster
from eeio.campaign.server_power import ServerPower
from eeio.errors import RefusedError
from eeio.power import recorded
from eeio.profiles.profile import Profile
from eeio_power.monitor import PowerMonitor
from eeio_results.record import EnergyReading
from eeio_results.tools.capture import Capture

Energy = Callable[[float, float], tuple[EnergyReading, ...]]
"""The energy between two moments of this machine's monotonic clock."""

NO_IDLE_OF_SERVERS = "runs have the power of the servers, too, of which idle is not measured"
NO_IDLE = "runs over MPI have the power of several nodes, of which idle is not measured"


def several(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ranks may start on other machines than this one (docs/cluster.md)."""
    slurm = bool(environment.get("SLURM_JOB_ID"))
    in_slurm = slurm and environment.get("SLURM_JOB_NUM_NODES", "1") != "1"
    return in_slurm or bool(environment.get("EEIO_HOSTFILE"))


def settings(
    profile: Profile, folder: Path, specs: tuple[str, ...], power: PowerMonitor
) -> Mapping[str, str]:
    """What makes the profile's ranks start under `eeio meter node`, which writes into `folder`.

    Empty for programs of this machine alone, and without a meter. Raises RefusedError for words
    that the profile's shell would take apart.
    """
    if not several() or not profile.has_ranks or not power.meters:
        return {}
    if not specs:
        kinds = {meter.kind for meter in power.meters}
        specs = ("modelled" if kinds == {"modelled"} else "auto",)
    for word in (*specs, str(folder)):
        if len(word.split()) != 1:
            raise RefusedError(f"{word!r}: with several nodes meters and paths without blanks only")
    meters = " ".join(f"--meter {spec}" for spec in specs)
    # Next to the running Python, for who has called `.venv/bin/eeio`; on all nodes alike.
    path = f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}"
    return {"EEIO_NODE_POWER": f"{meters} {folder}", "PATH": path}


def energy(
    folder: Path | None, capture: Capture, power: PowerMonitor, servers: ServerPower
) -> Energy:
    """This machine's, or the sum of the nodes that have written into `folder`; and of the servers
    behind the files. Invalid with its reason where one of them is missing.

    Without a meter nothing is there, and nothing was to be read.
    """
    if folder is None and not servers.recorded:
        return lambda start_s, end_s: recorded(power.energy(start_s, end_s))
    begun = cluster.Clocks(capture.started_utc_s, capture.started_monotonic_s)
    now = cluster.clocks()
    ended = cluster.Clocks(capture.ended_monotonic_s + now.offset_s, capture.ended_monotonic_s)

    def of(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        here = tuple(power.energy(start_s, end_s))
        try:
            if folder is None:
                name = socket.gethostname()
                found = cluster.Parts((cluster.NodeRecording(name, end_s - start_s, here),))
            else:
                nodes = cluster.load_nodes(folder)
                found = cluster.parts(nodes, start_s, end_s, begun, ended)
            return recorded(cluster.total(found + servers.parts(start_s, end_s)))
        except RefusedError as error:
            return tuple(_none(reading, str(error)) for reading in recorded(here))

    return of


def _none(reading: EnergyReading, reason: str) -> EnergyReading:
    """No figure: this machine's alone would be a part that passes for the whole."""
    return replace(
        reading, meter=f"nodes: {reading.meter}", power_w=None, energy_j=None, uncertainty_j=None,
        coverage=0.0, largest_gap_s=None, samples=0, lost=0, valid=False, reasons=(reason,),
    )  # fmt: skip
