"""`eeio meter node`: a rank of an MPI program, with its node's energy."""

import base64
import json
import os
import signal
import socket
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.arguments import program_of
from eeio.commands.meter.meters import meter_option, opened, rate_option
from eeio.commands.output_file import write_file
from eeio.errors import RejectedError
from eeio.measure.signals import signals_raise
from eeio.options import Command, argument, option
from eeio.paths import make_output_folder, temporary_folder
from eeio_power import power_of_nodes as cluster
from eeio_power.errors import PowerError
from eeio_power.meters import Meter
from eeio_power.recording import record, to_json


@dataclass(frozen=True, kw_only=True)
class NodeRequest:
    """`eeio meter node`."""

    meter: tuple[str, ...] = meter_option()
    rate: float = rate_option()
    first_ranks: int | None = option(
        "--first-ranks",
        value="N",
        help="exclude nodes without one of the first N ranks, e.g. clients",
        parse=int,
    )
    folder: Path = argument(
        "DIR",
        help="output folder on a file system of all nodes",
        parse=Path,
    )
    words: tuple[str, ...] = argument(
        "-- COMMAND",
        count="...",
    )


def record_node(request: NodeRequest) -> int:
    if (first := "".join(request.words[:1])).startswith("-") and first != "--":
        raise RejectedError(
            f"{first}: options come before DIR: `eeio meter node {first} ... DIR -- PROGRAM`"
        )
    command = program_of(request.words)
    if request.folder == Path("-") and not command:
        return _until_input_ends(request)
    if not command:
        raise RejectedError("which program? `eeio meter node DIR -- PROGRAM [ARGUMENT]...`")
    if cluster.local_rank() != 0:
        try:
            os.execvp(command[0], list(command))
        except OSError as error:
            raise RejectedError(f"{command[0]}: {error.strerror}") from error
    node = socket.gethostname()
    counted = request.first_ranks is None or cluster.rank() < request.first_ranks
    path = request.folder / f"{node}.json"
    try:
        make_output_folder(request.folder)
        # Files of an earlier program must not be taken for this one's.
        path.unlink(missing_ok=True)
        with (
            _meters(request.meter, counted) as meters,
            tempfile.TemporaryDirectory(dir=temporary_folder()) as folder,
        ):
            begun = cluster.clocks()
            # Copied only afterwards: the nodes' folder may be on the disks that are measured.
            samples = Path(folder) / "power.csv.gz"
            with signals_raise("so is the command", (signal.SIGTERM,)):
                recording = record(command, meters, samples, rate_hz=request.rate)
            write_file(cluster.samples_path(path), samples.read_bytes())
        body = {**to_json(recording), "node": node, **cluster.place(begun), "counted": counted}
        write_file(path, json.dumps(body, indent=1) + "\n")
    except (OSError, PowerError, RejectedError) as error:
        raise RejectedError(f"{node}: {error}") from error
    # An invalid reading is in the file: another code would end the other nodes' ranks.
    return recording.exit_code


def _until_input_ends(request: NodeRequest) -> int:
    """For `eeio run --server-power`: says that it records, waits, and prints what it has."""
    # Not by `cat`, which would continue to print later lines.
    waiting = ["sh", "-c", "echo recording; while read -r line; do :; done"]
    try:
        with (
            opened(request.meter) as meters,
            tempfile.TemporaryDirectory(dir=temporary_folder()) as folder,
        ):
            begun = cluster.clocks()
            samples = Path(folder) / "power.csv.gz"
            recording = record(waiting, meters, samples, rate_hz=request.rate)
            body = {
                **to_json(recording),
                "node": socket.gethostname(),
                **cluster.place(begun, {}),
                "samples": base64.b64encode(samples.read_bytes()).decode("ascii"),
            }
    except (OSError, PowerError) as error:
        raise RejectedError(f"{socket.gethostname()}: {error}") from error
    print(json.dumps(body), flush=True)
    return recording.exit_code


def _meters(specs: Sequence[str], counted: bool) -> AbstractContextManager[Sequence[Meter]]:
    """Of a node that counts for nothing none: it need not have any."""
    if counted:
        return opened(specs)
    return nullcontext(())


COMMAND = Command(
    "node",
    NodeRequest,
    record_node,
    help="run an MPI rank and record the energy of its node",
    description="Use it before the program in an mpirun or srun command. The first rank of "
    "each node records the node's energy while its program runs: DIR/HOST.json, with "
    "samples in DIR/HOST.csv.gz. The other ranks only run the program. `eeio meter sum` "
    "adds the nodes (docs/how-to/run-on-a-cluster.md). With - as DIR and no command, it "
    "records until its standard input ends and prints both: for `eeio run --server-power`.",
    epilog="exit codes: the program's; 2 wrong usage or no meter, program not started",
)
