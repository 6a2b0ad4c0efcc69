"""The run record: the contract between what measures and what analyses.

Everything that measures writes these types; everything after it only reads them. On disk a run is
one JSON line that follows `schemas/run.schema.json`. A missing value is null, and a reason stands
beside it; it is never 0.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from eeio_limits.quantities import FIGURE, LEAST_COVERAGE

SCHEMA_VERSION = 1

DOMAINS = ("system", "module", "package", "dram", "device")
"""Power domains, the widest first: a value for the whole machine says most."""
DOMAINS_WITHOUT_DRIVES = ("module", "package", "dram")

Level = Literal["device", "filesystem", "library", "application", "context"]
"""`context` is not one of the four levels: it describes the machine (lmbench)."""

LEVELS: tuple[Level, ...] = ("device", "filesystem", "library", "application")

Switch = Literal["on", "off"]


@dataclass(frozen=True)
class CacheLayers:
    """The page cache and the drive's write cache; None is "left as it was found"."""

    buffer: Switch | None = None
    disk: Switch | None = None


@dataclass(frozen=True)
class Experiment:
    """One combination of factor levels.

    `target` says what kind of thing is measured (`file`, `file on xfs`, `device`), not where it
    lies, so that the same experiment has the same `id` on every machine.
    """

    level: Level
    tool: str
    operation: str | None
    spatiality: str | None
    request_size_bytes: int | None
    cache: CacheLayers
    api: str = "posix"
    processes: int = 1
    target: str = "file"
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend on the factors alone."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        body = asdict(self)
        body["arguments"] = dict(self.arguments)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Experiment":
        return cls(
            **{
                **body,
                "cache": CacheLayers(**body["cache"]),
                "arguments": tuple(sorted(body["arguments"].items())),
            }
        )


@dataclass(frozen=True)
class EnergyReading:
    """Energy of one power domain over one window, as one meter saw it.

    `kind` is `measured`, `device-reported` or `modelled`. When `valid` is false, `power_w`,
    `energy_j` and `uncertainty_j` are None and `reasons` says why.
    `coverage` is the share of the window that samples stand for, 0 to 1.
    """

    domain: str
    meter: str
    kind: str
    power_w: float | None
    energy_j: float | None
    uncertainty_j: float | None
    coverage: float
    largest_gap_s: float | None
    samples: int
    lost: int
    valid: bool
    reasons: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    """What of the machine is in the domain, by its meter; empty where nobody told."""
    leaves_out: tuple[str, ...] = ()
    doubtful: bool = False
    """Another meter contradicts it, or it contradicts itself: `reasons` name both."""

    @property
    def leaves_drives_out(self) -> bool:
        """Whether what the drives draw is not in it, so that its MB/J is not the storage's."""
        return "drives" in self.leaves_out or self.domain in DOMAINS_WITHOUT_DRIVES

    @property
    def why_not_ranked(self) -> str | None:
        """The reason where too little of the window was seen to compare it with others."""
        if not self.valid or self.coverage >= LEAST_COVERAGE:
            return None
        return (
            f"{self.meter}: readings stand for {self.coverage:.0%} of the window, less than "
            f"{LEAST_COVERAGE:.0%}: not ranked and not compared"
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "EnergyReading":
        # What a domain holds was not told by the first versions.
        texts = {name: tuple(body.get(name, ())) for name in ("reasons", "includes", "leaves_out")}
        return cls(**{**body, **texts})


@dataclass(frozen=True)
class DeviceCounters:
    """What the block layer had counted for the device behind the target, since boot."""

    read_bytes: int
    written_bytes: int


LEAST_IO_SHARE = 0.9
"""With less of a phase's time in I/O its mean power is not that of the I/O."""


@dataclass(frozen=True)
class Phase:
    """A stretch of a run in which the tool did one kind of I/O.

    `start_s` and `end_s` count from the start of the run; None when the tool does not tell.
    `bytes_moved` is what the tool claims; None where nothing kept it (results of plain PTS).
    `validity` lists why the phase must not be used; empty means valid.
    """

    name: str
    operation: str
    spatiality: str
    request_size_bytes: int | None
    bytes_moved: int | None
    bandwidth_bytes_per_s: float | None
    start_s: float | None
    end_s: float | None
    window_source: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    energy: tuple[EnergyReading, ...] = ()
    validity: tuple[str, ...] = ()

    @property
    def io_share(self) -> float | None:
        """How much of the phase's time the tool's bandwidth speaks of; the rest is computation, or
        the tool's own start. None where a part of it is not known."""
        if not self.bytes_moved or not self.bandwidth_bytes_per_s:
            return None
        if self.start_s is None or self.end_s is None or self.end_s <= self.start_s:
            return None
        return self.bytes_moved / self.bandwidth_bytes_per_s / (self.end_s - self.start_s)

    @property
    def why_no_efficiency(self) -> str | None:
        """The reason where bandwidth and mean power are not of the same time."""
        share = self.io_share
        if share is None or share >= LEAST_IO_SHARE:
            return None
        return (
            f"the tool did I/O in {share:.0%} of the time that the power is the mean of; bytes and "
            "energy of all of it are in the record"
        )

    def efficiency_bytes_per_j(self, power_w: float | None) -> float | None:
        """Bandwidth over mean power (docs/method.md); None where they do not belong together."""
        if self.bandwidth_bytes_per_s is None or not power_w or self.why_no_efficiency:
            return None
        efficiency = self.bandwidth_bytes_per_s / power_w
        return efficiency if FIGURE.holds(efficiency) else None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Phase":
        return cls(
            **{
                **body,
                "energy": tuple(EnergyReading.from_json(e) for e in body["energy"]),
                "validity": tuple(body["validity"]),
            }
        )


@dataclass(frozen=True)
class ContextValue:
    """A figure that describes the machine rather than an I/O level (lmbench)."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class ProcessorSeries:
    """What the processors did while a run went on, sampled; all tuples are of one length.

    `times_s` count from the start of the run. `use` is the share of all logical CPUs that was busy
    since the sample before, 0 to 1; `frequency_hz` is their mean. A value that could not be read is
    None; where a whole quantity is missing, `missing` names it with the reason.
    """

    source: str
    times_s: tuple[float, ...]
    use: tuple[float | None, ...]
    frequency_hz: tuple[float | None, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "ProcessorSeries":
        series = {key: tuple(body[key]) for key in ("times_s", "use", "frequency_hz")}
        return cls(**{**body, **series})


UNCHECKED = "not checked against a device"
CHECKED = "checked against"
"""How notes of a run begin that tell of the comparison with the device's counters."""


@dataclass(frozen=True)
class Run:
    """One repetition of one experiment: one invocation of a profile.

    `order_index` is the place in the campaign's random order. `started_monotonic_s` and
    `duration_s` are CLOCK_MONOTONIC seconds of the process; `started_utc` is ISO 8601.
    `validity` lists what makes the whole run unusable (a tool that failed); phases add their own.
    `device_before` and `device_after` bracket the process and the `sync` after it; they are None
    when no block device lies behind the target, with `device_reason`.
    `cache_dropped` tells what was found in the page cache after dropping it, before the tool began.
    `prepare_s` is the time that prefilling, dropping caches and their verification took.
    """

    experiment: Experiment
    repetition: int
    order_index: int
    preset: str
    started_utc: str
    started_monotonic_s: float
    duration_s: float
    exit_code: int
    phases: tuple[Phase, ...]
    raw: str
    context: tuple[ContextValue, ...] = ()
    device: str | None = None
    device_reason: str | None = None
    device_before: DeviceCounters | None = None
    device_after: DeviceCounters | None = None
    disk_cache_found: Switch | None = None
    cache_dropped: str | None = None
    prepare_s: float | None = None
    sync_s: float | None = None
    processor: ProcessorSeries | None = None
    validity: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def device_check(self) -> str | None:
        """What is to be known of the comparison with a device's counters: that there was none and
        why, or what the device itself lies on; None where it is a drive that counted."""
        if not self.phases or self.experiment.level == "context":
            return None
        if self.device is None or self.device_before is None:
            return f"{UNCHECKED}: {self.device_reason or 'the record says no reason'}"
        return next((note for note in self.notes if note.startswith(CHECKED)), None)

    @property
    def valid(self) -> bool:
        """Whether the run and every phase of it can be used."""
        return not self.validity and not any(phase.validity for phase in self.phases)

    def to_json(self) -> dict[str, Any]:
        body = asdict(self)
        body["experiment"] = self.experiment.to_json()
        return {
            "schema_version": SCHEMA_VERSION,
            "experiment_id": self.experiment.id,
            **body,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Run":
        fields = {k: v for k, v in body.items() if k not in ("schema_version", "experiment_id")}
        for key in ("device_before", "device_after"):
            if fields[key] is not None:
                fields[key] = DeviceCounters(**fields[key])
        if fields.get("processor") is not None:
            fields["processor"] = ProcessorSeries.from_json(fields["processor"])
        fields["experiment"] = Experiment.from_json(body["experiment"])
        fields["phases"] = tuple(Phase.from_json(p) for p in body["phases"])
        fields["context"] = tuple(ContextValue(**c) for c in body["context"])
        for key in ("validity", "notes"):
            fields[key] = tuple(body[key])
        return cls(**fields)


@dataclass(frozen=True)
class Tool:
    """A benchmark as it was found: where, which version, and the binary's hash."""

    name: str
    path: str
    version: str
    sha256: str
    source: str


@dataclass(frozen=True)
class Machine:
    """What an outsider needs to know to repeat a campaign.

    Each value that could not be read is None, and `missing` names it with the reason.
    Frequencies are in Hz, memory in bytes.
    """

    hostname: str
    architecture: str
    cpu_model: str | None
    logical_cpus: int
    governor: str | None
    frequency_min_hz: int | None
    frequency_max_hz: int | None
    memory_bytes: int | None
    kernel: str
    distribution: str | None
    virtualization: str | None
    device: str | None
    device_model: str | None
    device_firmware: str | None
    device_size_bytes: int | None
    device_rotational: bool | None
    device_write_cache: str | None
    scheduler: str | None
    filesystem: str | None
    mount_options: str | None
    mkfs_options: str | None
    tools: tuple[Tool, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Machine":
        fields = {k: v for k, v in body.items() if k != "schema_version"}
        fields["tools"] = tuple(Tool(**tool) for tool in body["tools"])
        return cls(**fields)
