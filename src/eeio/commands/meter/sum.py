"""`eeio meter sum`: the energy of several nodes together."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from eeio.commands.meter.meters import line
from eeio.commands.output_file import format_option
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, RejectedError
from eeio.measure import slurm
from eeio.options import Command, argument, option
from eeio_power import power_of_nodes as cluster
from eeio_power.recording import reading_json

_SUM_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class SumRequest:
    """`eeio meter sum`."""

    files: tuple[Path, ...] = argument(
        "FILE",
        parse=Path,
        count="+",
    )
    nodes: int | None = option(
        "--nodes",
        value="N",
        help="required number of nodes",
        parse=int,
    )
    format: str = format_option()


def show_sum(request: SumRequest) -> int:
    if request.nodes is not None and request.nodes != len(request.files):
        raise RejectedError(f"{len(request.files)} files for {request.nodes} nodes")
    total = cluster.add([cluster.load(path) for path in request.files])
    counted = slurm.step_energy(os.environ)
    if request.format == "json":
        body: dict[str, object] = {
            "schema_version": _SUM_SCHEMA,
            "nodes": list(total.nodes),
            "duration_s": total.duration_s,
            "readings": [reading_json(reading) for reading in total.readings],
        }
        if counted is not None:
            body["slurm"] = {"missing": counted} if isinstance(counted, str) else asdict(counted)
        print(json.dumps(body, indent=1))
    else:
        print(f"{len(total.nodes)} nodes, {total.duration_s:.3f} s: {', '.join(total.nodes)}")
        for reading in total.readings:
            print(line(reading))
            for reason in reading.reasons:
                print(f"{'':12}{reason}")
        if counted is not None:
            print(f"{'slurm':12}{_slurm_text(counted, total)}")
    valid = bool(total.readings) and all(reading.valid for reading in total.readings)
    if valid:
        return EXIT_DONE
    return EXIT_DONE_WITH_INVALID_RUNS


def _slurm_text(counted: slurm.StepEnergy | str, total: cluster.Sum) -> str:
    """Slurm's figure, and its ratio to each domain's: which one it is of depends on the site."""
    if isinstance(counted, str):
        return f"missing: {counted}"
    ratios = [
        f"{counted.energy_j / reading.energy_j:.2f} x {reading.domain}"
        for reading in total.readings
        if reading.valid and reading.energy_j
    ]
    text = ""
    if ratios:
        text = f"; {', '.join(ratios)}"
    return f"{counted.energy_j} J in {counted.duration_s} s, step {counted.step} by sacct{text}"


COMMAND = Command(
    "sum",
    SumRequest,
    show_sum,
    help="add the energy of several nodes",
    description="Adds the results of `eeio meter node` per power domain. Uncertainties add "
    "in quadrature; the coverage is that of the worst node. A missing or invalid node makes "
    "a domain invalid. In a Slurm job, the energy that sacct reports of its last step follows.",
    epilog="exit codes: 0 done; 2 wrong usage or unusable file; 3 invalid sum",
)
