"""Jobs of Slurm that run a suite, one on each node of a list."""

import json
import re
import shlex
import shutil
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from eeio.errors import EeioError, LimitError, RejectedError, SchemaError
from eeio.files import inputs, typed
from eeio.paths import make_output_folder
from eeio.units.external_text import shown

NODES = "nodes"
LOGS = "logs"
_FLEET = "fleet.json"
_SCRIPT = "job.sh"
_TIMEOUT_S = 60.0
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_MOST_NODES = 100_000
SCHEMA_VERSION = 1

TEMPLATE = """\
#!/bin/sh
#SBATCH --job-name=$name
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
# One job runs on each node. A job that starts again resumes its campaign.
set -eu
node=$$SLURMD_NODENAME
export XDG_DATA_HOME=$nodes/$$node
campaign=$name-$$node
if [ -e "$$XDG_DATA_HOME/eeio/results/$$campaign/campaign.json" ]; then
	exec $eeio resume "$$campaign"
fi
exec $eeio run $suite --name "$$campaign" --yes $options
"""
"""For `string.Template`: $$ is a dollar sign of the script."""


@dataclass(frozen=True)
class Submission:
    """fleet.json: what was submitted."""

    name: str
    suite: str
    options: tuple[str, ...]
    nodes: tuple[str, ...]
    submitted_utc: str
    jobs: tuple[str, ...] = ()
    """The number of each node's job; empty if they were not submitted."""


def read_submission(folder: Path) -> Submission:
    """Raises SchemaError for a file that eeio cannot have written."""
    path = folder / _FLEET
    try:
        body = inputs.read_json(path)
        version = None
        if isinstance(body, dict):
            version = body.get("schema_version")
        if version != SCHEMA_VERSION:
            raise LimitError(f"schema_version {version}: this eeio reads {SCHEMA_VERSION}")
        submission = typed.read(
            Submission, {k: v for k, v in body.items() if k != "schema_version"}
        )
        if datetime.fromisoformat(submission.submitted_utc).tzinfo is None:
            raise LimitError(f"submitted_utc: {shown(submission.submitted_utc)} has no time zone")
        # A name becomes that of a log.
        if bad := [name for name in submission.nodes if _NODE_NAME.fullmatch(name) is None]:
            raise LimitError(f"nodes: {shown(bad[0])} is not the name of a node")
        return submission
    except (LimitError, ValueError) as error:
        raise SchemaError(f"{path}: {error}") from error


def node_names(wanted: str, partition: str | None) -> tuple[str, ...]:
    """The nodes of a list in Slurm's form (`n[1-8],n12`), or so many nodes that are up. Raises
    RejectedError if Slurm does not know them, or has fewer."""
    if wanted.isdigit():
        count = int(wanted)
        more = []
        if partition is not None:
            more = [f"--partition={partition}"]
        states = "--states=idle,mixed,allocated"
        names = _slurm(["sinfo", "--noheader", "--Node", states, "--format=%N", *more]).split()
        up = tuple(dict.fromkeys(names))
        if not 1 <= count <= len(up):
            raise RejectedError(f"--nodes {count}: {len(up)} nodes are up (`sinfo` shows them)")
        return up[:count]
    names = _slurm(["scontrol", "show", "hostnames", wanted]).split()
    for name in names:
        if not _NODE_NAME.fullmatch(name):
            raise RejectedError(f"--nodes {shown(wanted)}: {shown(name)} is no name of a node")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise RejectedError(f"--nodes {shown(wanted)}: {twice} is repeated")
    if not 1 <= len(names) <= _MOST_NODES:
        raise RejectedError(f"--nodes {shown(wanted)}: names {len(names)} nodes")
    return tuple(names)


def script(fleet: Submission, folder: Path, template: str) -> str:
    """The job script. Raises RejectedError for a template with an unknown $name."""
    values = {
        "name": fleet.name,
        "suite": shlex.quote(fleet.suite),
        "options": shlex.join(fleet.options),
        "nodes": shlex.quote(str(folder / NODES)),
        "eeio": shlex.join([sys.executable, "-P", "-m", "eeio"]),
    }
    try:
        return string.Template(template).substitute(values)
    except KeyError as error:
        raise RejectedError(
            f"template: ${error.args[0]} is unknown; there are {', '.join(values)}. "
            "Write $$ for a dollar sign of the script"
        ) from error
    except ValueError as error:
        raise RejectedError(f"template: {error}. Write $$ for a dollar sign") from error


def prepare(fleet: Submission, folder: Path, template: str) -> Path:
    """Makes the folder with the job script and returns the script's path. Raises RejectedError if
    the folder exists, and for root if another user could replace the folder above."""
    text = script(fleet, folder, template)
    if re.search(r"[\s%\\]", str(folder)):
        raise RejectedError(
            f"{folder}: Slurm's --output allows no space, % and \\; choose another -o"
        )
    try:
        make_output_folder(folder.parent)
        folder.mkdir()
    except FileExistsError:
        raise RejectedError(
            f"{folder} exists. `eeio fleet collect {folder}` shows its results; to start a "
            f"node again: `sbatch --nodelist=NODE {folder / _SCRIPT}`"
        ) from None
    for sub in (NODES, LOGS):
        (folder / sub).mkdir()
    (folder / _SCRIPT).write_text(text)
    _write(fleet, folder)
    return folder / _SCRIPT


def submit(fleet: Submission, folder: Path, sbatch_options: Sequence[str] = ()) -> Submission:
    """Submits one job a node. If one is not accepted, all are cancelled before any starts."""
    jobs: list[str] = []
    try:
        for node in fleet.nodes:
            place = [f"--nodelist={node}", f"--output={folder / LOGS / node}.log"]
            command = ["sbatch", "--parsable", "--hold", *place, *sbatch_options]
            output = _slurm([*command, str(folder / _SCRIPT)]).strip()
            job = output.partition(";")[0]
            if not job.isdigit():
                raise EeioError(f"sbatch did not print a job number: {shown(output)}")
            jobs.append(job)
        submitted = replace(fleet, jobs=tuple(jobs))
        _write(submitted, folder)
        _slurm(["scontrol", "release", ",".join(jobs)])
    except BaseException:
        if jobs:
            _slurm(["scancel", *jobs])
        shutil.rmtree(folder)
        raise
    return submitted


def now_utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(fleet: Submission, folder: Path) -> None:
    body = {"schema_version": SCHEMA_VERSION, **asdict(fleet)}
    (folder / _FLEET).write_text(json.dumps(body, indent=1) + "\n")


def _slurm(command: list[str]) -> str:
    """What a program of Slurm prints. Raises RejectedError if it is missing, EeioError if it
    fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise RejectedError(
            f"{command[0]} is missing: run this on a login node of a Slurm cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise EeioError(f"{command[0]} did not answer within {_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        first = (done.stderr.strip() or "failed").splitlines()[0]
        raise EeioError(
            f"{' '.join(command[:2])}: {shown(first)}. Run this where Slurm works, such as on "
            "a login node (`sinfo` lists the nodes there)"
        )
    return done.stdout
