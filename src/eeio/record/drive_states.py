"""The power states of a drive as a campaign measured them: drive-states.json."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from eeio.errors import LimitError, SchemaError
from eeio.files import inputs, typed
from eeio.record.energy_reading import EnergyReading
from eeio.units import quantities as q

FILE = "drive-states.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class StateReading:
    """One state: how long it was measured, and what the meters saw. `invalid` says why not. Of a
    state in which the drive read, `bandwidth_bytes_per_s`. `entered_s` is how long the drive took
    to enter the state, where the meter is fast enough. `remark` says that the state had no effect.
    """

    state: str
    duration_s: Annotated[float, q.DURATION]
    energy: tuple[EnergyReading, ...]
    invalid: str | None
    bandwidth_bytes_per_s: Annotated[float, q.BANDWIDTH] | None = None
    entered_s: Annotated[float, q.DURATION] | None = None
    remark: str | None = None

    def because(self, reason: str) -> "StateReading":
        return replace(self, invalid=self.invalid or reason)


@dataclass(frozen=True)
class DriveStates:
    """All states of `device`; `reason` is why there are none."""

    schema_version: Annotated[int, q.COUNT]
    device: str
    states: tuple[StateReading, ...]
    reason: str | None


def stored_states(folder: Path) -> DriveStates | None:
    """Of a campaign's folder; None if it measured none. Raises SchemaError."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return typed.read(DriveStates, inputs.read_json(path, typed=True))
    except (OSError, LimitError) as error:
        raise SchemaError(f"{path}: {error}") from error
