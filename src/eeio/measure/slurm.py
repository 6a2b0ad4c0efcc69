"""Slurm's accounting of a step's energy, to be compared with eeio's own.

It is that of the plug-in that the site configured (`AcctGatherEnergyType`): processors and memory
with `rapl`, the node with `ipmi`. It counts in whole seconds, and from the step's start to its end.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

_WAIT_S = 20.0
# Slurm writes its NO_VAL, of 32 or 64 bits, or 0 without a plug-in.
_MOST_J = 0xFFFFFFF0


@dataclass(frozen=True)
class StepEnergy:
    """What sacct reports of a step."""

    step: str
    energy_j: int
    duration_s: int


def step_energy(environment: Mapping[str, str]) -> StepEnergy | str | None:
    """Of the last step of the job that this process is in; why there is none; None outside jobs."""
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    command = ["sacct", "--noheader", "--parsable2", f"--jobs={job}"]
    try:
        done = subprocess.run(
            [*command, "--format=JobID,ConsumedEnergyRaw,ElapsedRaw"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_WAIT_S,
            stdin=subprocess.DEVNULL,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"sacct: {error}"
    if done.returncode != 0:
        return f"sacct: {done.stderr.strip()[:200] or f'exit code {done.returncode}'}"
    return last_step(done.stdout, job)


def last_step(text: str, job: str) -> StepEnergy | str:
    """The last numbered step: `JOB.3|ConsumedEnergyRaw|ElapsedRaw`."""
    steps: dict[int, tuple[str, str]] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        number = name.removeprefix(f"{job}.")
        energy, _, lasted = rest.partition("|")
        if number != name and number.isdigit():
            steps[int(number)] = (energy, lasted)
    if not steps:
        return f"sacct has no finished step of job {job}"
    last = max(steps)
    energy, lasted = steps[last]
    if not (energy.isdigit() and lasted.isdigit() and 0 < int(energy) < _MOST_J):
        return f"step {job}.{last} has no energy: is AcctGatherEnergyType set?"
    return StepEnergy(f"{job}.{last}", int(energy), int(lasted))
