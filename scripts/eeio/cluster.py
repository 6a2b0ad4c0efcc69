"""The power of several machines: one recording a node, and their sum per domain."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eeio.errors import RefusedError
from eeio_power.reading import EnergyReading
from eeio_power.recording import READING_FIELDS, SCHEMA_VERSION

# Of the node's windows. They end together, with the program; starting it takes some time.
_MOST_APART_S = 1.0
_MOST_APART = 0.05

# Which rank of its node a process is. Inside a job that Slurm started, mpirun's own word comes
# first: its ranks inherit Slurm's of the batch script, 0 for all of them.
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")


@dataclass(frozen=True)
class NodeRecording:
    """What one node says of its part of a program."""

    node: str
    duration_s: float
    readings: tuple[EnergyReading, ...]


@dataclass(frozen=True)
class Sum:
    """All nodes together. `duration_s` is the longest node's."""

    nodes: tuple[str, ...]
    duration_s: float
    readings: tuple[EnergyReading, ...]


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Which rank of its node this process is. Raises RefusedError outside of mpirun and srun."""
    for name in _LOCAL_RANK:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    raise RefusedError(
        "not started by mpirun or srun: none of " + ", ".join(_LOCAL_RANK) + " is set; "
        "for one machine: `eeio power record -- COMMAND`"
    )


def load(path: Path) -> NodeRecording:
    """A file of `eeio power node`, or the JSON of `eeio power record`, then named by its file."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {body['schema_version']}")
        readings = tuple(_reading(fields) for fields in body["readings"])
        return NodeRecording(str(body.get("node", path.stem)), float(body["duration_s"]), readings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"{path}: not what `eeio power node` writes ({error})") from error


def _reading(fields: Mapping[str, Any]) -> EnergyReading:
    known = {name: fields[name] for name in READING_FIELDS}
    return EnergyReading(**{**known, "reasons": tuple(known["reasons"])})


def add(recordings: Sequence[NodeRecording]) -> Sum:
    """Energies add, limits of error in quadrature; coverage and gap are the worst node's.

    A domain is summed over the one reading of its kind that each node has, by whatever meter; where
    a node has several, over the readings of each meter. A node whose reading is missing or invalid
    makes the sum invalid, and is named. Raises RefusedError for a node that comes twice.
    """
    names = [recording.node for recording in recordings]
    if not names:
        raise RefusedError("no node to sum")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RefusedError(f"{', '.join(twice)}: more than one recording; give one a node")
    duration_s = max(recording.duration_s for recording in recordings)
    shortest = min(recordings, key=lambda recording: recording.duration_s)
    remarks = []
    apart_s = duration_s - shortest.duration_s
    if apart_s > max(_MOST_APART_S, _MOST_APART * duration_s):
        remarks = [f"{shortest.node} was recorded {apart_s:.1f} s less than the longest"]
    keys = dict.fromkeys((r.domain, r.kind) for recording in recordings for r in recording.readings)
    sums = []
    for domain, kind in keys:
        each = {
            recording.node: [r for r in recording.readings if (r.domain, r.kind) == (domain, kind)]
            for recording in recordings
        }
        meters = dict.fromkeys(r.meter for found in each.values() for r in found)
        if all(len(found) <= 1 for found in each.values()):
            sums.append(_sum(each, "+".join(meters), duration_s, remarks))
            continue
        for meter in meters:
            of_meter = {
                node: [r for r in found if r.meter == meter] for node, found in each.items()
            }
            sums.append(_sum(of_meter, meter, duration_s, remarks))
    return Sum(tuple(names), duration_s, tuple(sums))


def _sum(
    each: Mapping[str, Sequence[EnergyReading]],
    meter: str,
    duration_s: float,
    remarks: Sequence[str],
) -> EnergyReading:
    known = [reading for found in each.values() for reading in found]
    one = known[0]
    reasons = [f"{node}: no reading of {one.domain}" for node, found in each.items() if not found]
    for node, found in each.items():
        reasons += [f"{node}: {why}" for r in found for why in r.reasons or _silent(r)]
    valid = all(len(found) == 1 and found[0].valid for found in each.values())
    energies = [r.energy_j for r in known if r.energy_j is not None]
    errors = [r.uncertainty_j for r in known if r.uncertainty_j is not None]
    whole = valid and len(energies) == len(errors) == len(each)
    gaps = [r.largest_gap_s for r in known if r.largest_gap_s is not None]
    return EnergyReading(
        domain=one.domain,
        meter=meter,
        kind=one.kind,
        power_w=math.fsum(energies) / duration_s if whole else None,
        energy_j=math.fsum(energies) if whole else None,
        uncertainty_j=math.hypot(*errors) if whole else None,
        coverage=min((r.coverage for r in known), default=0.0) if len(known) == len(each) else 0.0,
        largest_gap_s=max(gaps, default=None),
        samples=sum(r.samples for r in known),
        lost=sum(r.lost for r in known),
        valid=whole,
        reasons=(*reasons, *remarks),
    )


def _silent(reading: EnergyReading) -> tuple[str, ...]:
    return () if reading.valid else ("invalid, without a reason",)
