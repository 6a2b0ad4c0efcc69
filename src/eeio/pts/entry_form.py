"""The form of `eeio` in the JSON of an entry of a PTS result file (entry.schema.json)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from eeio.files.typed import LATER
from eeio.record.phase_times import Stretch
from eeio.record.run import (
    DOMAINS,
    KINDS,
    OPERATIONS,
    SPATIALITIES,
    ContextValue,
    Durable,
    EnergyReading,
    Experiment,
    Switch,
)
from eeio.units import quantities as q

_PLACE = q.Quantity("place", "", 0, 1e6, whole=True)


@dataclass(frozen=True)
class Phase:
    """A phase of the tool's I/O with the energy of its window; times in s from the start of the
    trial."""

    name: str
    operation: Annotated[str, OPERATIONS]
    spatiality: Annotated[str, SPATIALITIES] | None
    request_size_bytes: Annotated[int, q.REQUEST_SIZE] | None
    bytes_moved: Annotated[int, q.SIZE] | None
    bandwidth_bytes_per_s: Annotated[float, q.BANDWIDTH] | None
    start_s: Annotated[float, q.OFFSET] | None
    end_s: Annotated[float, q.OFFSET] | None
    window_source: str
    metrics: Mapping[str, float] | tuple[float, ...]
    """Figures under names that end in their unit; PHP writes an empty object as an empty array."""
    energy: tuple[EnergyReading, ...]
    invalid: tuple[str, ...]
    until_durable: Durable | None = field(default=None, metadata=LATER)
    durable_reason: str | None = field(default=None, metadata=LATER)
    includes_flush: bool = field(default=False, metadata=LATER)
    spatiality_seen: str | None = field(default=None, metadata=LATER)
    spatiality_seen_by: Literal["requests", "drive"] | None = field(default=None, metadata=LATER)
    spatiality_seen_reason: str | None = field(default=None, metadata=LATER)
    stretches: tuple[Stretch, ...] = field(default=(), metadata=LATER)
    edges_unsure_s: Annotated[float, q.DURATION] | None = field(default=None, metadata=LATER)

    def impossible(self) -> str | None:
        """Invalid values in it, beyond each field's range."""
        is_list = isinstance(self.metrics, tuple) and self.metrics
        if is_list:
            return "metrics: a list is not an object"
        return None


@dataclass(frozen=True)
class Output:
    """Contents of one trial's output."""

    phases: tuple[Phase, ...]
    context: tuple[ContextValue, ...]
    """Figures of the machine (lmbench)."""
    notes: tuple[str, ...]
    device: str | None
    """The block device behind the trial's files."""
    device_reason: str | None
    """Why there is none."""
    disk_cache_found: Switch | None
    """The drive's write cache."""


@dataclass(frozen=True)
class Values:
    """Next to the values of a tool."""

    trial_of_value: tuple[Annotated[int, _PLACE], ...] = field(metadata={"key": "trial-of-value"})
    """Of each value of RawString the number of its trial, from 0."""
    trials: Annotated[int, q.REPETITIONS]
    """How many there were, with those that failed."""
    phase: str = field(default="", metadata=LATER)
    """Which of the tool's phases it is; without it PTS's description names it."""
    told: tuple[Output | None, ...] = field(default=(), metadata=LATER)
    """In the first result of a test: the output of each trial; null if it failed or could not be
    read."""
    experiment: Experiment | None = field(default=None, metadata=LATER)
    """Only in exports: the experiment with the factors that PTS has no arguments for."""


@dataclass(frozen=True)
class Trial:
    """One trial as one meter measured it."""

    order: Annotated[int, _PLACE]
    """Its place in the order of all trials, from 0."""
    start_s: Annotated[float, q.TIMESTAMP]
    """CLOCK_MONOTONIC, s."""
    failed: bool
    reading: EnergyReading | None
    started_utc: str = field(default="", metadata=LATER)
    """ISO 8601."""
    duration_s: Annotated[float, q.DURATION] = field(default=0, metadata=LATER)
    error: str = field(default="", metadata=LATER)
    """Why it has no window."""
    not_told: str = field(default="", metadata=LATER)
    """Why its output could not be read."""


@dataclass(frozen=True)
class Quantity:
    """Next to power (W), energy (J) or energy efficiency (MB/J)."""

    quantity: Annotated[str, ("power_w", "energy_j", "efficiency_mb_per_j")]
    meter: str
    domain: Annotated[str, DOMAINS]
    kind: Annotated[str, KINDS]
    phase: str = field(default="", metadata=LATER)
    """Of an energy of one phase and not of the complete trial."""
    trials: tuple[Trial, ...] = field(default=(), metadata=LATER)
    """Next to an energy: all trials in their order."""


@dataclass(frozen=True)
class Baseline:
    """The readings of all meters without work."""

    readings: tuple[EnergyReading, ...]
    start_s: Annotated[float, q.TIMESTAMP] = field(default=0, metadata=LATER)
    """CLOCK_MONOTONIC, s."""
    duration_s: Annotated[float, q.DURATION] = field(default=0, metadata=LATER)


@dataclass(frozen=True)
class Idle:
    """Next to the idle baseline."""

    idle: Baseline
