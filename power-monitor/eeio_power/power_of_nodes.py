"""The power of several machines: one recording a node, and their sum per domain."""

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from eeio.errors import LimitError, RejectedError
from eeio.files import inputs, typed
from eeio.units import quantities as q
from eeio_power import samples as power_samples
from eeio_power.errors import PowerError
from eeio_power.reading import CONTENTS, EnergyReading
from eeio_power.recording import LATER_FIELDS, READING_FIELDS, SCHEMA_VERSION

# Of the node's windows. They end together, with the program; starting it takes some time.
_MOST_APART_S = 1.0
_MOST_APART = 0.05

# Clocks of nodes that no service sets.
_MOST_CLOCKS_DIFFER_S = 300.0

# Which rank of its node a process is. Inside a Slurm job, mpirun's variable comes first: its ranks
# inherit Slurm's of the batch script, 0 for all of them.
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_ALL_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_ALL_NODES = ("SLURM_STEP_NUM_NODES",)

# A wall clock that moved by more against the monotonic one was set, not slewed; s.
_CLOCK_SET_S = 0.05
# Remark on clocks that may differ.
_UNSEEN_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)


@dataclass(frozen=True)
class Clocks:
    """Both clocks of one machine at one moment."""

    unix_s: float
    monotonic_s: float

    @property
    def offset_s(self) -> float:
        return self.unix_s - self.monotonic_s


@dataclass(frozen=True)
class NodeRecording:
    """One node's recording of its part of a program."""

    node: str
    duration_s: float
    readings: tuple[EnergyReading, ...]
    counted: bool = True
    """False for a node that ran a part of the program outside the measurement."""
    ended_unix_s: float | None = None
    """By the node's clock; None in files of `eeio record power`."""


@dataclass(frozen=True)
class Sum:
    """All nodes together. `duration_s` is the longest node's."""

    nodes: tuple[str, ...]
    duration_s: float
    readings: tuple[EnergyReading, ...]


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Which rank of its node this process is. Raises RejectedError outside of mpirun and srun."""
    for name in _LOCAL_RANK:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    raise RejectedError(
        "not started by mpirun or srun: none of " + ", ".join(_LOCAL_RANK) + " is set; "
        "for one machine: `eeio record power -- COMMAND`"
    )


def rank(environment: Mapping[str, str] = os.environ) -> int:
    """Which of all ranks this process is. Raises RejectedError outside of mpirun and srun."""
    for name in _RANK:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    raise RejectedError(f"not started by mpirun or srun: none of {', '.join(_RANK)} is set")


def clocks() -> Clocks:
    """This machine's, now."""
    return Clocks(time.time(), time.monotonic())


def samples_path(recording: Path) -> Path:
    """The path of the samples of a node's recording."""
    return recording.with_suffix(".csv.gz")


def place(begun: Clocks, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """A node file's data besides its readings: its clocks, and its part of the ranks."""
    ended = clocks()
    return {
        "clocks": [[c.unix_s, c.monotonic_s] for c in (begun, ended)],
        "ranks": _reported(_LOCAL_RANKS, environment),
        "all_ranks": _reported(_ALL_RANKS, environment),
        "all_nodes": _reported(_ALL_NODES, environment),
    }


def _reported(names: Sequence[str], environment: Mapping[str, str]) -> int | None:
    for name in names:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return None


def load(path: Path) -> NodeRecording:
    """A file of `eeio meter node`, or the JSON of `eeio record power`, then named by its file."""
    try:
        body = inputs.read_json(path)
        if body["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {body['schema_version']!r:.40}")
        readings = tuple(map(_reading, body["readings"]))
        duration_s = q.DURATION.checked(body["duration_s"], "duration_s")
        if duration_s == 0:
            raise LimitError("duration_s: 0, so that there is no power")
        counted = body.get("counted", True) is not False
        node, ended_unix_s = str(body.get("node", path.stem)), None
        if "clocks" in body:
            _, (ended_s, _) = body["clocks"]
            ended_unix_s = q.TIMESTAMP.checked(ended_s, "clocks")
        return NodeRecording(node, duration_s, readings, counted, ended_unix_s)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RejectedError(f"{path}: not output of `eeio meter node` ({error})") from error


def _reading(fields: Mapping[str, Any]) -> EnergyReading:
    known = {}
    for n in READING_FIELDS:
        if n in fields or n not in LATER_FIELDS:
            known[n] = fields[n]
    texts = {n: tuple(known.get(n, ())) for n in ("reasons", "includes", "leaves_out")}
    reading = {**known, **texts}
    checked = EnergyReading(**reading)
    typed.check(checked)
    return checked


def add(recordings: Sequence[NodeRecording]) -> Sum:
    """Energies add, uncertainties in quadrature; coverage and gap are the worst node's.

    A domain is summed over the one reading of its kind that each node has, by any meter; if a node
    has several, over the readings of each meter. A node whose reading is missing or invalid makes
    the sum invalid, and is named. Raises RejectedError for a duplicate node, and for one that was
    recorded at another time.
    """
    recordings = [recording for recording in recordings if recording.counted]
    names = [recording.node for recording in recordings]
    _check_names(names)
    _check_times(recordings)
    duration_s = max(recording.duration_s for recording in recordings)
    shortest = min(recordings, key=lambda recording: recording.duration_s)
    remarks = []
    apart_s = duration_s - shortest.duration_s
    if apart_s > max(_MOST_APART_S, _MOST_APART * duration_s):
        remarks = [f"{shortest.node} was recorded {apart_s:.1f} s less than the longest"]
    by_kind: dict[tuple[str, str], dict[str, list[EnergyReading]]] = {}
    for recording in recordings:
        for reading in recording.readings:
            nodes = by_kind.setdefault((reading.domain, reading.kind), {n: [] for n in names})
            nodes[recording.node].append(reading)
    sums = []
    for each in by_kind.values():
        for meter, of_meter in _by_meter(each).items():
            sums.append(_sum(of_meter, meter, duration_s, remarks))
    return Sum(tuple(names), duration_s, tuple(sums))


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise RejectedError("no node to sum")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RejectedError(f"{', '.join(twice)}: more than one recording; give one a node")


def _check_times(recordings: Sequence[NodeRecording]) -> None:
    """A folder that was used before has files of nodes that did not run this time."""
    ended = [(r.ended_unix_s, r) for r in recordings if r.ended_unix_s is not None]
    ended.sort(key=lambda pair: pair[0])
    for (earlier_s, earlier), (later_s, later) in pairwise(ended):
        if later_s - later.duration_s - earlier_s > _MOST_CLOCKS_DIFFER_S:
            raise RejectedError(
                f"{earlier.node} and {later.node} were recorded at different times: "
                f"{_utc(earlier_s)} and {_utc(later_s)}. Give the recordings of one run only"
            )


def _utc(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds")


def _by_meter(
    each: Mapping[str, Sequence[EnergyReading]],
) -> dict[str, Mapping[str, Sequence[EnergyReading]]]:
    """The readings to add: of all meters if each node has one at most, else of each meter."""
    meters = dict.fromkeys(reading.meter for readings in each.values() for reading in readings)
    if all(len(readings) <= 1 for readings in each.values()):
        return {"+".join(meters): each}
    return {
        meter: {
            node: [reading for reading in readings if reading.meter == meter]
            for node, readings in each.items()
        }
        for meter in meters
    }


def _sum(
    each: Mapping[str, Sequence[EnergyReading]],
    meter: str,
    duration_s: float,
    remarks: Sequence[str],
) -> EnergyReading:
    known: list[EnergyReading] = []
    for readings in each.values():
        known.extend(readings)
    all_read = len(known) == len(each)
    power_w, energy_j, uncertainty_j = None, None, None
    if all_read:
        energy_j, uncertainty_j = _total_j(known)
    if energy_j is not None:
        power_w = energy_j / duration_s
    gaps = [r.largest_gap_s for r in known if r.largest_gap_s is not None]
    included = set.union(*(set(reading.includes) for reading in known))
    left_out = set.intersection(*(set(reading.leaves_out) for reading in known))
    coverage = 0.0
    if all_read:
        coverage = min(r.coverage for r in known)
    return EnergyReading(
        domain=known[0].domain,
        meter=meter,
        kind=known[0].kind,
        power_w=power_w,
        energy_j=energy_j,
        uncertainty_j=uncertainty_j,
        coverage=coverage,
        largest_gap_s=max(gaps, default=None),
        samples=sum(r.samples for r in known),
        lost=sum(r.lost for r in known),
        valid=energy_j is not None,
        reasons=(*_reasons(each, known[0].domain), *remarks),
        includes=tuple(part for part in CONTENTS if part in included),
        leaves_out=tuple(part for part in CONTENTS if part in left_out),
        doubtful=any(r.doubtful for r in known),
    )


def _total_j(readings: Sequence[EnergyReading]) -> tuple[float | None, float | None]:
    """Energy and uncertainty; None if one of them is not known, or not valid."""
    energies, errors = [], []
    for reading in readings:
        if not reading.valid or reading.energy_j is None or reading.uncertainty_j is None:
            return None, None
        energies.append(reading.energy_j)
        errors.append(reading.uncertainty_j)
    return math.fsum(energies), math.hypot(*errors)


def _reasons(each: Mapping[str, Sequence[EnergyReading]], domain: str) -> list[str]:
    """The nodes' reasons, with their names."""
    reasons = []
    for node, readings in each.items():
        if not readings:
            reasons.append(f"{node}: no reading of {domain}")
        for reading in readings:
            for reason in reading.reasons or _silent(reading):
                reasons.append(f"{node}: {reason}")
    return reasons


def _silent(reading: EnergyReading) -> tuple[str, ...]:
    if reading.valid:
        return ()
    return ("invalid, without a reason",)


# --- a window of a run ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """One node's samples, and its clocks when the program began and ended there."""

    name: str
    samples: power_samples.Samples
    begun: Clocks
    ended: Clocks


_Place = tuple[int | None, int | None, int | None]
"""Ranks of a node, ranks of all nodes, how many nodes."""


def _load(folder: Path) -> tuple[list[Node], list[_Place]]:
    nodes: list[Node] = []
    places: list[_Place] = []
    for path in sorted(folder.glob("*.json")):
        try:
            body = inputs.read_json(path)
            begun, ended = (
                Clocks(q.TIMESTAMP.checked(u, "a clock"), q.TIMESTAMP.checked(m, "a clock"))
                for u, m in body["clocks"]
            )
            if body.get("counted", True) is not False:
                samples = power_samples.load(samples_path(path))
                nodes.append(Node(str(body["node"]), samples, begun, ended))
            for key in ("ranks", "all_ranks", "all_nodes"):
                if body[key] is not None:
                    q.COUNT.checked(body[key], "ranks")
            places.append((body["ranks"], body["all_ranks"], body["all_nodes"]))
        except (OSError, ValueError, KeyError, TypeError, PowerError) as error:
            raise RejectedError(f"{path}: not output of `eeio meter node` ({error})") from error
    return nodes, places


def load_servers(folder: Path) -> tuple[Node, ...]:
    """The servers of a run, which have no ranks. Raises RejectedError if one cannot be read."""
    return tuple(_load(folder)[0])


def load_nodes(folder: Path) -> tuple[Node, ...]:
    """All nodes of one run. Raises RejectedError where one is missing, or cannot be read."""
    nodes, places = _load(folder)
    if not nodes:
        raise RejectedError(f"no node has written its power to {folder}: do all nodes have it?")
    if all(None not in place[:2] for place in places):
        here, wanted, what = sum(place[0] or 0 for place in places), places[0][1], "ranks"
    else:
        here, wanted, what = len(places), places[0][2], "nodes"
    if here != wanted:
        names = ", ".join(node.name for node in nodes)
        raise RejectedError(
            f"the power of {here} of {wanted or '?'} {what} is in {folder} ({names}): all nodes "
            "must see that folder"
        )
    return tuple(nodes)


@dataclass(frozen=True)
class Parts:
    """Each machine's part of a window, and the largest undetected clock offset, s."""

    recordings: tuple[NodeRecording, ...] = ()
    unseen_s: float = 0.0

    def __add__(self, other: "Parts") -> "Parts":
        recordings = self.recordings + other.recordings
        return Parts(recordings, max(self.unseen_s, other.unseen_s))


def parts(
    nodes: Sequence[Node], start_s: float, end_s: float, begun: Clocks, ended: Clocks
) -> Parts:
    """Each node's energy between two moments of this machine's monotonic clock.

    Clocks meet by UTC. `begun` and `ended` are this machine's around the complete program: each
    node must have run its part in between, by its clock. Raises RejectedError if it did not, or if
    a clock was set meanwhile.
    """
    unseen_s = 0.0
    clocks_of = [(node.name, node.begun, node.ended) for node in nodes]
    for name, first, last in [("this machine", begun, ended), *clocks_of]:
        if abs(last.offset_s - first.offset_s) > _CLOCK_SET_S:
            raise RejectedError(f"{name}: its clock was set during the run")
        early_s, late_s = begun.unix_s - first.unix_s, last.unix_s - ended.unix_s
        if max(early_s, late_s) > _CLOCK_SET_S:
            raise RejectedError(
                f"{name}: its clock is {max(early_s, late_s):.2f} s off, or more: its part of "
                "the program is outside the run; synchronise the nodes' clocks (NTP)"
            )
        unseen_s = max(unseen_s, -early_s, -late_s)
    recordings = []
    for node in nodes:
        shift_s = begun.offset_s - node.begun.offset_s
        readings = node.samples.energy(start_s + shift_s, end_s + shift_s)
        recordings.append(NodeRecording(node.name, end_s - start_s, tuple(readings)))
    return Parts(tuple(recordings), unseen_s)


def total(found: Parts) -> tuple[EnergyReading, ...]:
    """The sum of the parts. Each reading gets a short remark with the largest undetected offset of
    the clocks."""
    count = len(found.recordings)
    most_s = next((bound for bound in _UNSEEN_S if found.unseen_s <= bound), found.unseen_s)
    remark = f"clocks of the nodes taken as one: {most_s:g} s and more apart would be seen"
    return tuple(
        replace(
            reading,
            meter=f"{count} node{'s' if count > 1 else ''}: {reading.meter}",
            reasons=(*reading.reasons, remark),
        )
        for reading in add(found.recordings).readings
    )


def window(
    nodes: Sequence[Node], start_s: float, end_s: float, begun: Clocks, ended: Clocks
) -> tuple[EnergyReading, ...]:
    """The energy of all nodes between two moments: the total of their `parts`."""
    return total(parts(nodes, start_s, end_s, begun, ended))
