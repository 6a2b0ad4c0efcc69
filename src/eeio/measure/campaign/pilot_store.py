"""Results of pilots, stored for the next campaign: valid on the same machine, drive, kernel and
tool.

One file per pilot below `pilots/` next to the results. It contains the machine of its campaign, and
is reused if that campaign could be resumed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from eeio import paths
from eeio.errors import EeioError, LimitError
from eeio.files import inputs, typed
from eeio.files.trust import make_folder
from eeio.measure import environment
from eeio.record.run import Experiment, Machine
from eeio.units import quantities as q
from eeio.units.external_text import shown

SCHEMA_VERSION = 1

Kind = Literal["length", "work"]


@dataclass(frozen=True)
class PilotTask:
    """A pilot's task: the `factor` of an experiment, with the value `before`.

    `least_s` is how long a phase is to last; for lengths `floor` and `tried_s` are the rule's, and
    `meters` those with evaluated power.
    """

    kind: Kind
    profile: str
    experiment: Experiment
    factor: str
    before: str
    preset: str
    least_s: Annotated[float, q.DURATION]
    floor: Annotated[float, q.FRACTION] | None = None
    tried_s: tuple[Annotated[float, q.DURATION], ...] = ()
    meters: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredPilot:
    """A pilot's result: the value of the factor, and in `words` how; `disks` are those of the
    campaign, by option (campaign.json)."""

    schema_version: Annotated[int, q.COUNT]
    asked: PilotTask
    found: str
    file_bytes: Annotated[int, q.SIZE]
    words: str
    campaign: str
    made_utc: str
    machine: Machine
    disks: Mapping[str, str] = field(default_factory=dict)

    def why_not(self, task: PilotTask, machine: Machine, disks: Mapping[str, str]) -> list[str]:
        """Why it does not answer the task on this machine, as text; empty if it does."""
        # A file system that is made for each campaign is made as it was.
        of_target = " on " not in task.experiment.target
        differences = environment.differences(self.machine, machine, of_target)
        differences += [
            f"{name} was {shown(self.disks.get(name, 'none'))}, is {shown(disks.get(name, 'none'))}"
            for name in sorted({*self.disks, *disks})
            if self.disks.get(name) != disks.get(name)
        ]
        for name in ("before", "preset", "least_s", "floor", "tried_s", "meters"):
            was, now = getattr(self.asked, name), getattr(task, name)
            if was != now:
                differences.append(f"{_LABELS[name]} was {_word(was)}, is {_word(now)}")
        return differences

    def to_json(self) -> dict[str, Any]:
        """In stored form."""
        body = asdict(self)
        body["asked"]["experiment"] = self.asked.experiment.to_json()
        return body


_LABELS = {
    "before": "the preset's value",
    "preset": "the preset",
    "least_s": "the least length of a phase",
    "floor": "the floor",
    "tried_s": "the values tried",
    "meters": "the meters",
}


def folder() -> Path:
    """The folder of stored pilots."""
    return paths.results_root().parent / "pilots"


def keep(pilot: StoredPilot) -> Path:
    """Writes it, in the place of the one before for the same experiment on the same machine and
    drive. Raises EeioError where it cannot be written."""
    task = pilot.asked
    place = json.dumps([pilot.machine.hostname, *sorted(pilot.disks.items())])
    where = hashlib.sha256(place.encode()).hexdigest()[:12]
    path = folder() / f"{task.kind}-{task.experiment.id}-{where}.json"
    try:
        make_folder(path.parent)
        made = path.with_suffix(".new")
        made.write_text(json.dumps(pilot.to_json(), indent=1) + "\n", encoding="utf-8")
        made.replace(path)
    except OSError as error:
        raise EeioError(f"{path}: cannot store the pilot's result: {error.strerror}") from error
    return path


def stored(kind: Kind | None = None, experiment_id: str | None = None) -> list[StoredPilot]:
    """All stored pilots, by name, or those of a kind and experiment. Damaged ones count as missing:
    `unreadable` lists them."""
    pilots = (_read(path) for path in _files(kind, experiment_id))
    return [pilot for pilot in pilots if isinstance(pilot, StoredPilot)]


def unreadable() -> list[str]:
    """A line a file that is none of these."""
    return [one for path in _files() if isinstance(one := _read(path), str)]


def best(
    task: PilotTask, machine: Machine, disks: Mapping[str, str]
) -> tuple[StoredPilot | None, Sequence[str]]:
    """The one that answers; else why the nearest does not, empty where there is none at all."""
    nearest: Sequence[str] = ()
    for pilot in stored(task.kind, task.experiment.id):
        reason = pilot.why_not(task, machine, disks)
        if not reason:
            return pilot, ()
        if not nearest or len(reason) < len(nearest):
            whose = f"that of {pilot.machine.hostname}, campaign {pilot.campaign}"
            nearest = [f"{whose}: {difference}" for difference in reason]
    return None, nearest


def _files(kind: Kind | None = None, experiment_id: str | None = None) -> list[Path]:
    return sorted(folder().glob(f"{kind or '*'}-{experiment_id or '*'}-*.json"))


def _read(path: Path) -> StoredPilot | str:
    try:
        pilot: StoredPilot = typed.read(StoredPilot, inputs.read_json(path))
    except (OSError, LimitError, ValueError) as error:
        return f"{path}: no pilot of eeio: {error!s:.200}"
    if pilot.schema_version > SCHEMA_VERSION:
        return f"{path}: of a newer eeio (version {pilot.schema_version})"
    return pilot


def _word(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return "none"
    return str(value)
