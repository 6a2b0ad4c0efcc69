"""The data under `eeio` in the JSON of an entry of a PTS result file: read and written here.

PTS's module (`session`, pts_module/results.php) and `eeio export pts` write it; `eeio
import` reads it. Its form is entry.schema.json. Other programs' entries have no such data.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from eeio.errors import LimitError, SchemaError
from eeio.files import typed
from eeio.pts import entry_form
from eeio.pts.composite import ResultEntry
from eeio.record.run import EnergyReading, Experiment
from eeio.units import quantities as q

ENERGY = "energy_j"

TrialReport = Mapping[str, Any]
"""Data of a trial's output (`trial`): its phases with their energy, the drive's state."""


@dataclass(frozen=True)
class Values:
    """Next to the values of a tool: `trial_of_value` is the trial's number, from 0, of each value,
    `trials` the number of trials. `told`, per trial, is only in the first result of a test, None if
    the trial failed or was unreadable. `experiment` is only in exports of eeio: PTS has no
    arguments for the file system, the frequency and other factors."""

    trial_of_value: tuple[int, ...]
    trials: int
    phase: str | None = None
    told: tuple[TrialReport | None, ...] = ()
    experiment: Experiment | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {} if self.phase is None else {"phase": self.phase}
        body |= {"trial-of-value": list(self.trial_of_value), "trials": self.trials}
        if self.experiment is not None:
            body["experiment"] = self.experiment.to_json()
        return body | ({"told": list(self.told)} if self.told else {})

    def reported_of(self, trial: int) -> TrialReport | None:
        """Data of the trial's output; None if unknown."""
        if trial < len(self.told):
            return self.told[trial]
        return None


@dataclass(frozen=True)
class TrialEntry:
    """One trial as one meter saw it; `start_s` is CLOCK_MONOTONIC, in seconds."""

    order: int
    start_s: float
    failed: bool
    reading: EnergyReading | None
    started_utc: str | None = None
    duration_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        known = {"started_utc": self.started_utc, "duration_s": self.duration_s}
        return {
            "order": self.order,
            "start_s": self.start_s,
            **{key: value for key, value in known.items() if value is not None},
            "failed": self.failed,
            "reading": None if self.reading is None else asdict(self.reading),
        }


@dataclass(frozen=True)
class QuantityEntry:
    """Next to power, energy or energy efficiency of one meter and power domain; `trials` are only
    with an energy, which is the complete trial's without a `phase`."""

    quantity: str
    meter: str
    domain: str
    kind: str
    phase: str | None = None
    trials: tuple[TrialEntry, ...] = ()

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "meter": self.meter,
            "domain": self.domain,
            "kind": self.kind,
            "quantity": self.quantity,
        }
        body |= {} if self.phase is None else {"phase": self.phase}
        return body | ({"trials": [t.to_json() for t in self.trials]} if self.trials else {})


@dataclass(frozen=True)
class Idle:
    """Next to the idle baseline: its readings, of all meters."""

    readings: tuple[EnergyReading, ...]

    def to_json(self) -> dict[str, Any]:
        return {"idle": {"readings": [asdict(reading) for reading in self.readings]}}


Own = Values | QuantityEntry | Idle


def own_of(entry: ResultEntry) -> Own | None:
    """Our data of an entry; None in a file of plain PTS. Raises SchemaError."""
    if not entry.own:
        return None
    check(entry.own)
    try:
        return _own(entry.own)
    except LimitError as error:
        raise SchemaError(f"the result file's eeio section is damaged: {error}") from error


def check(body: Mapping[str, Any]) -> None:
    """Raises SchemaError if it does not match the published schema."""
    form: type = entry_form.Values
    if "idle" in body or "quantity" in body:
        form = entry_form.Idle if "idle" in body else entry_form.Quantity
    try:
        typed.read(form, dict(body))
    except LimitError as error:
        raise SchemaError(f"the result file's eeio section is damaged: {error}") from error


def _own(body: Mapping[str, Any]) -> Own:
    if "idle" in body:
        return Idle(
            tuple(typed.read(EnergyReading, reading) for reading in body["idle"]["readings"])
        )
    if "quantity" in body:
        trials = tuple(_trial(trial) for trial in body.get("trials", ()))
        return QuantityEntry(**{**body, "trials": trials})
    experiment = body.get("experiment")
    return Values(
        trial_of_value=tuple(int(trial) for trial in body["trial-of-value"]),
        trials=int(body["trials"]),
        phase=body.get("phase"),
        told=tuple(
            None if reported is None else _reported(reported) for reported in body.get("told", ())
        ),
        experiment=None if experiment is None else Experiment.from_json(experiment),
    )


def _reported(body: TrialReport) -> TrialReport:
    # PHP writes an empty object as an empty array.
    phases = [{**phase, "metrics": phase["metrics"] or {}} for phase in body["phases"]]
    return {**body, "phases": phases}


def _trial(body: Mapping[str, Any]) -> TrialEntry:
    duration_s = body.get("duration_s")
    return TrialEntry(
        order=q.COUNT.whole_number(body["order"], "order"),
        start_s=q.TIMESTAMP.checked(body["start_s"], "start_s"),
        failed=body["failed"],
        reading=None if body["reading"] is None else typed.read(EnergyReading, body["reading"]),
        started_utc=body.get("started_utc"),
        duration_s=None if duration_s is None else q.DURATION.checked(duration_s, "duration_s"),
    )
