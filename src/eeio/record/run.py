"""The run record: the contract between what measures and what analyses.

Everything that measures writes these types; everything after it only reads them. On disk a run is
one JSON line that follows `schemas/run.schema.json`. The types (`typed.py`) define the valid values
of each field. A missing value is null, with a reason next to it; it is never 0.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from eeio.errors import LimitError
from eeio.files import typed
from eeio.files.typed import LATER, PAIRS
from eeio.record import energy_reading as readings
from eeio.record.energy_reading import MARKS as MARKS
from eeio.record.energy_reading import EnergyReading as EnergyReading
from eeio.record.phase_times import Stretch, impossible_figures, impossible_stretches, lasted_s
from eeio.record.reasons import partial_io
from eeio.units import quantities as q

SCHEMA_VERSION = 2
"""Version 2 adds writes until their bytes are on the device. Version 1 is still readable."""


DOMAINS: tuple[str, ...] = readings.DOMAINS
COST_DOMAINS: tuple[str, ...] = readings.COST_DOMAINS
"""Power domains, the widest first."""
KINDS: tuple[str, ...] = readings.KINDS
"""How a reading of power came about. The last two are not measured."""

Level = Literal["device", "filesystem", "library", "application", "context"]
"""`context` is not one of the four levels: it describes the machine (lmbench)."""

LEVELS: tuple[Level, ...] = ("device", "filesystem", "library", "application")

OPERATIONS = ("read", "write", "mixed", "metadata")
NOT_STATED = "not stated"
"""The operation of a phase whose imported file says neither read nor write; it is not valid."""
SPATIALITIES = ("sequential", "random", "strided", "mixed", "none")
DEMO = "demo"


def mark(kind: str) -> str:
    """`ESTIMATE ` or `DEMO `, written in front of a figure; empty where power was measured."""
    if kind in MARKS:
        return f"{MARKS[kind]} "
    return ""


Switch = Literal["on", "off"]

FLUSHES = ("none", "end", "each")
"""When the tool itself flushes a write to the device: never, at its end, with each call."""


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class CacheLayers:
    """The page cache and the drive's write cache; None is "left as it was found"."""

    buffer: Switch | None = None
    disk: Switch | None = None


@dataclass(frozen=True)
class Experiment:
    """One combination of factor levels.

    `target` is the kind of target (`file`, `file on xfs`, `device`), not its location, so the same
    experiment has the same `id` on every machine. `flush` is None for experiments that do not
    write, and in records of version 1, which lack it.
    """

    level: Level
    tool: str
    operation: Annotated[str, OPERATIONS] | None
    spatiality: Annotated[str, SPATIALITIES] | None
    request_size_bytes: Annotated[int, q.REQUEST_SIZE] | None
    cache: CacheLayers
    api: str = "posix"
    processes: Annotated[int, q.REQUEST_SIZE] = 1
    target: str = "file"
    arguments: Annotated[tuple[tuple[str, str], ...], PAIRS] = ()
    flush: Annotated[str, FLUSHES] | None = field(default=None, metadata=LATER)

    @property
    def is_command(self) -> bool:
        """Whether it is a user command (`eeio bench`). Its files may be anywhere."""
        return self.tool == "command"

    @property
    def cost_domains(self) -> tuple[str, ...]:
        """The domains whose energy may be the cost of its I/O, the widest first."""
        if self.is_command:
            return DOMAINS
        return COST_DOMAINS

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend only on the factors."""
        body = {**self.to_json(), "arguments": self.arguments}
        return hashlib.sha256(_CANONICAL.encode(body).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "tool": self.tool,
            "operation": self.operation,
            "spatiality": self.spatiality,
            "request_size_bytes": self.request_size_bytes,
            "cache": {"buffer": self.cache.buffer, "disk": self.cache.disk},
            "api": self.api,
            "processes": self.processes,
            "target": self.target,
            "arguments": dict(self.arguments),
            # Left out where there is none, so that ids of before stay.
            **({} if self.flush is None else {"flush": self.flush}),
        }

    @classmethod
    def from_json(cls, body: object) -> "Experiment":
        """Raises LimitError."""
        return typed.read(cls, body)


@dataclass(frozen=True)
class IdleMedian:
    """The median of one meter's readings of a domain during the idle baseline: a machine that wakes
    now and then has a higher mean."""

    domain: Annotated[str, DOMAINS]
    meter: str
    power_w: Annotated[float, q.MEAN_POWER]

    @classmethod
    def from_json(cls, body: object) -> "IdleMedian":
        """Raises LimitError."""
        return typed.read(cls, body)


@dataclass(frozen=True, slots=True)
class DeviceCounters:
    """What the block layer had counted for the device behind the target, since boot."""

    read_bytes: Annotated[int, q.SIZE]
    written_bytes: Annotated[int, q.SIZE]


@dataclass(frozen=True, slots=True)
class Durable:
    """A write until its bytes are on the device: from the start of its phase to `end_s`.

    `source` is what made them durable: the tool's own flush, or a syncfs right after it ended. The
    bandwidth is the phase's bytes over that time; None where those are unknown.
    """

    end_s: Annotated[float, q.OFFSET]
    bandwidth_bytes_per_s: Annotated[float, q.BANDWIDTH] | None
    source: str
    energy: tuple[EnergyReading, ...] = ()


LEAST_IO_SHARE = 0.9
"""With less of a phase's time in I/O its mean power is not that of the I/O."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a run in which the tool did one kind of I/O.

    `start_s` and `end_s` count from the start of the run; None when the tool does not report them.
    `bytes_moved` is the tool's reported bytes; None if not stored (results of plain PTS).
    `validity` lists why the phase must not be used; empty means valid.

    For a write, these describe the time until the tool returned. `until_durable` is the time until
    its bytes were on the device, and `durable_reason` is why that is not known. `includes_flush`:
    the tool's time includes its flush, so the rate into the page cache is not known. If the phase
    consists of `stretches` with other work between them, its energy, power and time are those of
    the stretches only (docs/explanation/windows-and-durability.md). `spatiality_seen` is the
    observed order of requests. `spatiality_seen_by` is its source: the program's log of its
    requests (also None), or the block layer, which passed them to the drive.
    `spatiality_seen_reason` is why no order was observed.
    """

    name: str
    operation: Annotated[str, (*OPERATIONS, NOT_STATED)]
    spatiality: Annotated[str, SPATIALITIES] | None
    request_size_bytes: Annotated[int, q.REQUEST_SIZE] | None
    bytes_moved: Annotated[int, q.SIZE] | None
    bandwidth_bytes_per_s: Annotated[float, q.BANDWIDTH] | None
    start_s: Annotated[float, q.OFFSET] | None
    end_s: Annotated[float, q.OFFSET] | None
    window_source: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    energy: tuple[EnergyReading, ...] = ()
    validity: tuple[str, ...] = ()
    until_durable: Durable | None = field(default=None, metadata=LATER)
    durable_reason: str | None = field(default=None, metadata=LATER)
    includes_flush: bool = field(default=False, metadata=LATER)
    spatiality_seen: str | None = field(default=None, metadata=LATER)
    spatiality_seen_by: Literal["requests", "drive"] | None = field(default=None, metadata=LATER)
    spatiality_seen_reason: str | None = field(default=None, metadata=LATER)
    stretches: tuple[Stretch, ...] = field(default=(), metadata=LATER)
    edges_unsure_s: Annotated[float, q.DURATION] | None = field(default=None, metadata=LATER)
    """How far both edges of the window together may be from those of the I/O."""

    @property
    def lasted_s(self) -> float | None:
        """Its duration without the time between its stretches, s."""
        return lasted_s(self)

    @property
    def io_share(self) -> float | None:
        """The share of the phase's time that the tool's bandwidth covers; the rest is computation,
        or the tool's start. None if a part of it is not known."""
        if not self.bytes_moved or not self.bandwidth_bytes_per_s:
            return None
        lasted_s = self.lasted_s
        if lasted_s is None or lasted_s <= 0:
            return None
        return self.bytes_moved / self.bandwidth_bytes_per_s / lasted_s

    @property
    def why_no_efficiency(self) -> str | None:
        """Why bandwidth and mean power do not cover the same time; None if they do."""
        share = self.io_share
        if share is None or share >= LEAST_IO_SHARE:
            return None
        return partial_io(share)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        return (
            impossible_figures(self.start_s, self.end_s, self.metrics)
            or impossible_durable(self.start_s, self.end_s, self.until_durable)
            or impossible_stretches(self)
        )

    @classmethod
    def from_json(cls, body: object) -> "Phase":
        """Raises LimitError."""
        return typed.read(cls, body)


# The durable end may be slightly earlier than the tool's reported end: two clocks.
_DURABLE_TOLERANCE_S = 0.05


def impossible_durable(
    start_s: float | None, end_s: float | None, durable: Durable | None
) -> str | None:
    """What is invalid in the time until a write is durable."""
    if durable is None:
        return None
    if start_s is None or end_s is None:
        return "until_durable: of a phase without a known window"
    if durable.end_s < end_s - _DURABLE_TOLERANCE_S:
        return f"until_durable: it ends at {durable.end_s} s, before the phase at {end_s} s"
    return None


@dataclass(frozen=True, slots=True)
class ContextValue:
    """A figure that describes the machine rather than an I/O level (lmbench)."""

    name: str
    value: float
    unit: str

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        quantity = q.of_unit(self.unit)
        if quantity.contains(self.value):
            return None
        return quantity.rejection(self.value, self.name)


@dataclass(frozen=True, slots=True)
class ProcessorSeries:
    """What the processors did while a run went on, sampled; all tuples are of one length.

    `times_s` count from the start of the run. `use` is the share of all logical CPUs that was busy
    since the sample before, 0 to 1; `frequency_hz` is their mean. A value that could not be read is
    None; where a whole quantity is missing, `missing` names it with the reason.
    """

    source: str
    times_s: tuple[Annotated[float, q.OFFSET], ...]
    use: tuple[Annotated[float, q.SHARE] | None, ...]
    frequency_hz: tuple[Annotated[float, q.FREQUENCY] | None, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        same = len(self.times_s) == len(self.use) == len(self.frequency_hz)
        if same:
            return None
        return "columns of different lengths"


UNCHECKED = "not checked against a device"
CHECKED = "checked against"
"""Prefixes of run notes about the comparison with the device's counters."""

MEMORY_CACHE = "memory cache"
STORAGE_CACHE = "storage cache"
OTHER_IO = "other I/O"
READ_BACK = "own writes read"
COMMAND_READ = "bytes read"
COMMAND_WRITTEN = "bytes written"
LIMIT = "limit"
STOLEN = "stolen time"
THROTTLED = "throttled"
"""Kinds of remarks on a run (Run.remarks)."""
TWO_LEVELS = "two levels"
"""A remark on the repetitions of a row."""


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition of one experiment: one invocation of a profile.

    `order_index` is the place in the campaign's random order. `started_monotonic_s` and
    `duration_s` are CLOCK_MONOTONIC seconds of the process; `started_utc` is ISO 8601. `validity`
    lists what makes the run unusable (a tool that failed); phases have their lists. `device_before`
    and `device_after` bracket the process and the `sync` after it; they are None when no block
    device is behind the target, with `device_reason`. `cache_dropped` is the state of the page
    cache after dropping it, before the tool began. `prepare_s` is the time that prefilling,
    dropping caches and their verification took.
    """

    experiment: Experiment
    repetition: Annotated[int, q.REPETITION]
    order_index: Annotated[int, q.COUNT]
    preset: str
    started_utc: str
    started_monotonic_s: Annotated[float, q.TIMESTAMP]
    duration_s: Annotated[float, q.DURATION]
    exit_code: Annotated[int, q.EXIT_CODE]
    phases: tuple[Phase, ...]
    raw: str
    context: tuple[ContextValue, ...] = ()
    device: str | None = None
    device_reason: str | None = None
    device_before: DeviceCounters | None = None
    device_after: DeviceCounters | None = None
    disk_cache_found: Switch | None = None
    cache_dropped: str | None = None
    prepare_s: Annotated[float, q.DURATION] | None = None
    sync_s: Annotated[float, q.DURATION] | None = None
    processor: ProcessorSeries | None = field(default=None, metadata=LATER)
    settled_after_s: Annotated[float, q.DURATION] | None = field(default=None, metadata=LATER)
    """Of an adaptive campaign: how long the pause before the run was."""
    settled_reason: str | None = field(default=None, metadata=LATER)
    """Reason why that pause ended."""
    validity: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """What else decided its figures, by kind: a cache below the device, other I/O on the drive, a
    limit of the control group, stolen processor time, throttled processors. Each row names it."""
    stolen_s: Annotated[float, q.DURATION] | None = field(default=None, metadata=LATER)
    """Processor time that the host of a virtual machine gave to others, of all processors."""
    throttle_events: Annotated[int, q.COUNT] | None = field(default=None, metadata=LATER)
    """How often processors and drives were throttled; None if nothing counts that. Throttling that
    lasted all the time, so that only its total time rose, is one event."""

    @property
    def device_check(self) -> str | None:
        """A remark on the comparison with a device's counters: that there was none and why, or what
        the device itself is on. None if a drive counted."""
        if not self.phases or self.experiment.level == "context":
            return None
        if self.device is None or self.device_before is None:
            return f"{UNCHECKED}: {self.device_reason or 'the record gives no reason'}"
        for note in self.notes:
            if note.startswith(CHECKED):
                return note
        return None

    @property
    def valid(self) -> bool:
        """Whether the run and every phase of it can be used."""
        return not self.validity and not any(phase.validity for phase in self.phases)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = typed.body(self)
        body["experiment"] = self.experiment.to_json()
        return {
            "schema_version": SCHEMA_VERSION,
            "experiment_id": self.experiment.id,
            **body,
        }

    @classmethod
    def from_json(cls, body: object, experiment: Experiment | None = None) -> "Run":
        """Raises LimitError. `experiment` is the one that the record repeats, if the caller already
        has it."""
        if not isinstance(body, dict):
            raise LimitError("no object")
        fields = {}
        for k, v in body.items():
            if k not in ("schema_version", "experiment_id"):
                fields[k] = v
        identity = body.get("experiment_id")
        if experiment is not None:
            fields["experiment"] = experiment
        run = typed.read(cls, fields)
        if run.experiment.id != identity:
            raise LimitError(f"experiment_id: {q.shortened(identity)} is not that of its factors")
        return run


@dataclass(frozen=True)
class Tool:
    """A benchmark as it was found: where, which version, and the binary's hash."""

    name: str
    path: str
    version: str
    sha256: str
    source: str


def only_known(*names: str) -> list[str]:
    """Names of a machine and its parts, without those that an import does not know."""
    return [name for name in names if name != "unknown"]


@dataclass(frozen=True)
class Machine:
    """The information that is required to repeat a campaign elsewhere.

    Each value that could not be read is None, and `missing` names it with the reason. Frequencies
    are in Hz, memory in bytes.
    """

    hostname: str
    architecture: str
    cpu_model: str | None
    logical_cpus: Annotated[int, q.COUNT] | None
    governor: str | None
    frequency_min_hz: Annotated[int, q.FREQUENCY] | None
    frequency_max_hz: Annotated[int, q.FREQUENCY] | None
    memory_bytes: Annotated[int, q.SIZE] | None
    kernel: str
    distribution: str | None
    virtualization: str | None
    device: str | None
    device_model: str | None
    device_firmware: str | None
    device_size_bytes: Annotated[int, q.SIZE] | None
    device_rotational: bool | None
    device_write_cache: str | None
    scheduler: str | None
    filesystem: str | None
    mount_options: str | None
    mkfs_options: str | None
    tools: tuple[Tool, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    drive_id: str | None = field(default=None, metadata=LATER)
    """World wide name, or model and serial number (or a hash of them): the same on every port."""
    drive_label: str | None = field(default=None, metadata=LATER)
    """The user's name for it."""
    rotation_rate_rpm: Annotated[int, q.COUNT] | None = field(default=None, metadata=LATER)
    drive_interface: str | None = field(default=None, metadata=LATER)
    drive_link_speed: str | None = field(default=None, metadata=LATER)
    raid_level: str | None = field(default=None, metadata=LATER)
    raid_members: tuple[str, ...] = field(default=(), metadata=LATER)
    nfs_server: str | None = field(default=None, metadata=LATER)
    nfs_version: str | None = field(default=None, metadata=LATER)
    network_link: str | None = field(default=None, metadata=LATER)
    programs: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """Profile -> SHA-256 of the files that its runs execute, tool included."""
    limits: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    """Limits of the own control group and its parents, and of the processors' power."""

    @property
    def drive(self) -> str | None:
        """What distinguishes its drive from others: the user's label, else its identity. None in
        earlier records, and for drives that report no identity."""
        return self.drive_label or self.drive_id

    @property
    def drive_name(self) -> str:
        """The drive in tables: its label; model and the end of its identity; the kernel's name."""
        if self.drive_label is not None:
            return self.drive_label
        if self.drive_id is None:
            return self.device or "unknown"
        return f"{self.device_model or self.device or 'drive'} {self.drive_id[-6:]}"

    @property
    def name(self) -> str | None:
        """The host name and the drive, as far as they are known; None if neither is."""
        return " ".join(only_known(self.hostname, self.drive_name)) or None

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, body: object) -> "Machine":
        """Raises LimitError."""
        if not isinstance(body, dict):
            raise LimitError("no object")
        return typed.read(cls, {k: v for k, v in body.items() if k != "schema_version"})
