"""A trial's data in a PTS result file besides its bandwidth: its phases, the drive's state.

`python -m eeio.pts.trial PROFILE PRESET HOME FOLDER` is called by the power session when a
trial has ended; HOME is PTS's install folder of the profile, FOLDER contains the tool's output and
its capture.json. It prints an object:

    {"phases": [...], "context": [...], "notes": [...], "device", "device_reason",
     "disk_cache_found", "labels": [...], "experiment": {...}}

which goes, with the energy of each phase, into the result file (`told` of a trial), where `eeio
import` finds it again. So the record of a trial contains the same data as one of `eeio run`.
The session keeps `labels` (PTS's label of each phase's result, null if its profile has none) and
`experiment` for MB/J.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eeio.errors import EeioError, LimitError, SchemaError
from eeio.files import typed
from eeio.machine import caches
from eeio.machine.filesystem import BlockDevice, backing_device, block_device
from eeio.measure.profiles import profile as profiles
from eeio.measure.profiles.suite import experiment_of
from eeio.pts import composite
from eeio.pts.entry import TrialReport
from eeio.pts.session import phase_of_result
from eeio.record import tools
from eeio.record.consistency import disagreement
from eeio.record.run import ContextValue, Run
from eeio.record.tools.capture import Capture


def tell(identifier: str, preset: str, home: Path, folder: Path) -> dict[str, Any]:
    """The data of the trial with its output in `folder`. Raises EeioError if there is none."""
    profile = profiles.find(identifier.rpartition("/")[2])
    sizes = profile.preset_factors(preset)
    capture = Capture.load(folder)
    factors = {**sizes, **capture.factors}
    capture = replace(capture, factors=factors)
    result = tools.parse(profile.tool, capture)
    device, reason = _device(factors, home)
    is_device = factors.get("level") == "device" and "EEIO_DEVICE" in os.environ
    target = "file"
    if is_device:
        target = "device"
    descriptions = composite.pts_descriptions(profile.folder)
    return {
        "phases": [asdict(phase) for phase in result.phases],
        "context": [asdict(value) for value in result.context],
        "notes": list(result.notes),
        "device": device.name if device else None,
        "device_reason": reason,
        "disk_cache_found": caches.write_cache_found(device) if device else None,
        "labels": [descriptions.get(phase.name) for phase in result.phases],
        "experiment": experiment_of(profile.tool, factors, target, None).to_json(),
    }


def _device(factors: Mapping[str, str], home: Path) -> tuple[BlockDevice | None, str | None]:
    """The block device of the trial's files, or the one that it read and wrote itself."""
    node = os.environ.get("EEIO_DEVICE")
    if factors.get("level") == "device" and node:
        return block_device(Path(node)), None
    directory = os.environ.get("EEIO_DIRECTORY")
    return backing_device(Path(directory) if directory else home)


def telling(run: Run) -> TrialReport | None:
    """The trial's data that gives this record; empty for a failed one."""
    if run.validity:
        return None
    phases = [asdict(phase) for phase in run.phases]
    for phase in phases:
        phase["invalid"] = phase.pop("validity")
    return {
        "phases": phases,
        "context": [asdict(value) for value in run.context],
        "notes": list(run.notes),
        "device": run.device,
        "device_reason": run.device_reason,
        "disk_cache_found": run.disk_cache_found,
    }


def with_reported(run: Run, reported: TrialReport | None) -> Run:
    """The run with its reported phases and drive state, if any. Invalid if the figures of a phase
    contradict each other."""
    if not reported or run.validity:
        return run
    try:
        described = replace(
            run,
            phases=tuple(phase_of_result(body) for body in reported["phases"]),
            context=tuple(typed.read(ContextValue, body) for body in reported["context"]),
            notes=(*run.notes, *reported["notes"]),
            device=reported["device"],
            device_reason=reported["device_reason"] or run.device_reason,
            disk_cache_found=reported["disk_cache_found"],
        )
        typed.check(described)
    except (KeyError, TypeError, AttributeError, LimitError) as error:
        raise SchemaError(f"the result file's data of a trial are damaged: {error}") from error
    for phase in described.phases:
        if not phase.validity and (reason := disagreement(phase)) is not None:
            return replace(described, phases=(), validity=(f"{phase.name}: {reason}",))
    return described


def main(arguments: Sequence[str]) -> int:
    """Prints a trial's data as one line of JSON."""
    try:
        identifier, preset, home, folder = arguments
        print(json.dumps(tell(identifier, preset, Path(home), Path(folder))))
    except (EeioError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
