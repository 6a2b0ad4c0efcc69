"""`eeio meter sum`: the energy of several nodes together."""

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from eeio.commands.arguments import add_format
from eeio.commands.meter.meters import line
from eeio.errors import EXIT_DONE, EXIT_DONE_WITH_INVALID_RUNS, RejectedError
from eeio.measure import slurm
from eeio_power import power_of_nodes as cluster
from eeio_power.recording import reading_json

_SUM_SCHEMA = 1


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "sum", help="add the energy of several nodes",
        description="Adds the results of `eeio meter node` per power domain. Uncertainties add "
        "in quadrature; the coverage is that of the worst node. A missing or invalid node makes "
        "a domain invalid. In a Slurm job, the energy that sacct reports of its last step follows.",
        epilog="exit codes: 0 done; 2 wrong usage or unusable file; 3 invalid sum",
    )  # fmt: skip
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--nodes", type=int, metavar="N", help="required number of nodes")
    add_format(parser)
    parser.set_defaults(action=show_sum)


def show_sum(arguments: argparse.Namespace) -> int:
    if arguments.nodes is not None and arguments.nodes != len(arguments.files):
        raise RejectedError(f"{len(arguments.files)} files for {arguments.nodes} nodes")
    total = cluster.add([cluster.load(path) for path in arguments.files])
    counted = slurm.step_energy(os.environ)
    if arguments.format == "json":
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
    return EXIT_DONE if valid else EXIT_DONE_WITH_INVALID_RUNS


def _slurm_text(counted: slurm.StepEnergy | str, total: cluster.Sum) -> str:
    """Slurm's figure, and its ratio to each domain's: which one it is of depends on the site."""
    if isinstance(counted, str):
        return f"missing: {counted}"
    ratios = [
        f"{counted.energy_j / reading.energy_j:.2f} x {reading.domain}"
        for reading in total.readings
        if reading.valid and reading.energy_j
    ]
    text = f"; {', '.join(ratios)}" if ratios else ""
    return f"{counted.energy_j} J in {counted.duration_s} s, step {counted.step} by sacct{text}"
