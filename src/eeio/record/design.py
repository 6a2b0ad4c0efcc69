"""campaign.json: which experiments a campaign runs, in which order, under which protocol.

This is the second contract, next to the run record. The runner and the importers make a `Design`,
and the store writes it. The analysis reads it. Its published form is
`schemas/campaign.schema.json`.
"""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from eeio.errors import EeioError, LimitError
from eeio.files import typed
from eeio.files.typed import LATER
from eeio.options import argument, option, switch
from eeio.record.run import SCHEMA_VERSION, Experiment
from eeio.statistics.checks import check_rule
from eeio.statistics.stopping import LENGTHS_S
from eeio.units import amounts
from eeio.units import quantities as q

PilotUse = Literal["once", "each", "stored", "none"]
"""Whether stored pilots are used while they are valid, each campaign runs new ones, only stored
ones are used, or none."""


_TARGET, _PROTOCOL, _FACTORS, _POWER = "target", "protocol", "factors", "power"
_ADAPTIVE = "adaptive campaigns"


def drawn_seed() -> int:
    """A new seed."""
    return secrets.randbelow(2**31)


@dataclass(frozen=True)
class Options:
    """What the user chose: the options of `eeio run` and `eeio plan`, in the order of their help,
    as campaign.json stores them. `resume` uses them again; a campaign of before an option was there
    has the one that changes nothing."""

    suite: str = argument("SUITE", help="suite name (see `eeio list`) or folder", stored=LATER)
    directory: str | None = option(
        "--directory", value="DIR", help="folder for the test files", group=_TARGET, stored=LATER
    )
    device: str | None = option(
        "--device",
        value="DEV",
        help="raw block device for the device level, only read",
        group=_TARGET,
    )
    erase: str | None = option(
        "--erase",
        value="DEV",
        help="confirm that DEV may be overwritten",
        group=_TARGET,
        stored=LATER,
    )
    lose: tuple[str, ...] = option(
        "--lose",
        value="NAME",
        repeat=True,
        help="existing signature to destroy, e.g. ext4:LABEL; repeatable",
        group=_TARGET,
        rare=True,
        stored=LATER,
    )
    filesystems: tuple[str, ...] = option(
        "--filesystem",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="ext4,xfs,btrfs to create on the erased device or on loop images",
        group=_TARGET,
        stored=LATER,
    )
    disk_cache: str = option(
        "--disk-cache",
        choices=("leave", "on", "off", "both"),
        default="leave",
        help="write cache of the drive during writes (default: leave)",
        group=_TARGET,
        stored=LATER,
    )
    drive_label: str | None = option(
        "--drive-label",
        value="NAME",
        help="drive name in tables and comparisons",
        group=_TARGET,
        rare=True,
        stored=LATER,
    )
    hash_serial: bool = switch(
        "--hash-serial",
        help="store a hash of the drive's serial number",
        group=_TARGET,
        rare=True,
        stored=LATER,
    )
    allow_memory_filesystem: bool = switch(
        "--allow-memory-filesystem",
        help="allow tmpfs or overlay (marks all runs invalid)",
        group=_TARGET,
        rare=True,
        stored=LATER,
    )
    preset: str = option(
        "--preset",
        default="standard",
        help="quick (test only), standard, paper or adaptive (default: standard)",
        group=_PROTOCOL,
    )
    repetitions: Annotated[int, q.COUNT] | None = option(
        "--repetitions",
        value="N",
        parse=amounts.repetitions,
        help="runs of each experiment",
        group=_PROTOCOL,
        stored=LATER,
    )
    settle_s: Annotated[float, q.PAUSE] | None = option(
        "--settle",
        value="S",
        parse=amounts.pause,
        help="pause before each run",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    idle_s: Annotated[float, q.PAUSE] | None = option(
        "--idle",
        value="S",
        parse=amounts.pause,
        help="length of the idle baseline",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    work_bytes: Annotated[int, q.SIZE] | None = option(
        "--work",
        value="SIZE",
        parse=amounts.work,
        help="bytes to move per run, e.g. 1g (2^30)",
        group=_PROTOCOL,
        stored=LATER,
    )
    min_phase_s: Annotated[float, q.PAUSE] | None = option(
        "--min-phase",
        value="S",
        parse=amounts.pause,
        help="shortest phase; pilots size the work, shorter phases are not ranked",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    max_written_bytes: Annotated[int, q.SIZE] | None = option(
        "--max-written",
        value="BYTES",
        parse=amounts.decimal_bytes_whole,
        write=amounts.gigabytes,
        help="limit of written bytes with test files, e.g. 10G (10^10)",
        group=_PROTOCOL,
        stored=LATER,
    )
    precondition_percent: Annotated[int, q.COUNT] | None = option(
        "--precondition",
        value="PERCENT",
        parse=amounts.precondition,
        help="writes before measuring, in percent of the target, e.g. 200%%",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    seed: Annotated[int, q.COUNT] = option(
        "--seed",
        value="N",
        parse=amounts.seed,
        default_factory=drawn_seed,
        help="repeat the random order of a campaign",
        group=_PROTOCOL,
        rare=True,
    )
    drop_caches_by: str | None = option(
        "--drop-caches-by",
        value="COMMAND",
        help="command that empties the servers' caches",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    share_machine: bool = switch(
        "--share-machine",
        help="allow parallel campaigns (no energy for overlapping runs)",
        group=_PROTOCOL,
        rare=True,
        stored=LATER,
    )
    sweeps: tuple[str, ...] = option(
        "--sweep",
        value="FACTOR=VALUES",
        repeat=True,
        help="factor values, e.g. threads=1..256, file_size=1m..9m+2m; repeatable",
        group=_FACTORS,
        stored=LATER,
    )
    frequencies: tuple[str, ...] = option(
        "--frequency",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="processor frequencies: lowest, highest, all or 1.6GHz,2.4GHz",
        group=_FACTORS,
        stored=LATER,
    )
    smt: tuple[str, ...] = option(
        "--smt",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="simultaneous multithreading: on, off, or on,off",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    turbo: tuple[str, ...] = option(
        "--turbo",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="turbo: on, off, or on,off",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    power_states: tuple[str, ...] = option(
        "--power-state",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="NVMe power states of the device: all (in which it works), or 0,1,2",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    variants: tuple[str, ...] = option(
        "--variant",
        value="LIST",
        parse=amounts.words,
        default=(),
        help="journal study: ext4, nojc, fast_commit, delayjc",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    windows_of: str | None = option(
        "--windows-of",
        value="PRESET",
        help="journal study: preset for the delays (paper: 16 ms and 1 ms)",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    sysfs_root: str = option(
        "--sysfs-root",
        value="DIR",
        default="/",
        help="set frequency, SMT and turbo under DIR instead (for testing)",
        group=_FACTORS,
        rare=True,
        stored=LATER,
    )
    meters: tuple[str, ...] = option(
        "--meter",
        value="SPEC",
        repeat=True,
        help="power meter, repeatable: auto (default), none, demo, rapl, hwmon, ...",
        group=_POWER,
        stored=LATER,
    )
    allow_estimates: bool = switch(
        "--allow-estimates",
        help="model the power if there is no meter",
        group=_POWER,
        stored=LATER,
    )
    server_power: tuple[str, ...] = option(
        "--server-power",
        value="COMMAND",
        repeat=True,
        help="command that reports a storage server's power; repeatable",
        group=_POWER,
        rare=True,
        stored=LATER,
    )
    rate_hz: Annotated[float, q.RATE] = field(default=10.0, metadata=LATER)
    """How often each meter is read, where it has something new so often (`--rate`)."""
    counter_rate_hz: Annotated[float, q.RATE] = field(default=10.0, metadata=LATER)
    """How often energy counters are, while a tool runs (`--rate`)."""
    see_order: bool = switch(
        "--see-order",
        help="record the block-layer request order",
        group=_POWER,
        rare=True,
        stored=LATER,
    )
    trace_journal: bool = switch(
        "--trace-journal",
        help="count ext4 journal commits (needs root)",
        group=_POWER,
        rare=True,
        stored=LATER,
    )
    adaptive: bool = switch(
        "--adaptive",
        help="repeat until --precision is reached; shorten pauses at stable power",
        group=_ADAPTIVE,
        stored=LATER,
    )
    precision: Annotated[float, q.FRACTION] | None = option(
        "--precision",
        value="SHARE",
        parse=amounts.share_below_one,
        help="half-width of the 95 %% interval to reach (default: 0.05)",
        group=_ADAPTIVE,
        stored=LATER,
    )
    indifference: Annotated[float, q.FRACTION] | None = option(
        "--indifference",
        value="SHARE",
        parse=amounts.share_below_one,
        help="equivalence margin (default: 0.05)",
        group=_ADAPTIVE,
        rare=True,
        stored=LATER,
    )
    floor: Annotated[float, q.FRACTION] | None = option(
        "--floor",
        value="SHARE",
        parse=amounts.share_below_one,
        help="smallest effect to report (default: 0.02)",
        group=_ADAPTIVE,
        rare=True,
        stored=LATER,
    )
    pilot: PilotUse | None = option(
        "--pilot",
        choices=get_args(PilotUse),
        help="pilots for run length: once (default), each campaign, stored, none",
        group=_ADAPTIVE,
        rare=True,
        stored=LATER,
    )

    @property
    def frequency_root(self) -> Path:
        return Path(self.sysfs_root)


@dataclass(frozen=True)
class StudyProtocol:
    """Every experiment of the suite, on every variant of ext4 and at every frequency, with the
    journal traced (docs/studies/).

    `frequencies` are `lowest`, `highest`, `all` or Hz. `window_us` is, by tool, how long the
    variant `delayjc` delays an fsync. Repetitions go on until the 95 % interval of the mean is
    within `half_width` of it (a share), `most_repetitions` at most; None: a fixed number. `name` is
    the study (eeio.studies) whose figure that is the mean of; None: the first that has one
    of a run.
    """

    variants: tuple[str, ...]
    frequencies: tuple[str, ...]
    window_us: Mapping[str, Annotated[int, q.COUNT]]
    max_resets: Annotated[int, q.COUNT]
    flush_first: bool
    half_width: Annotated[float, q.FRACTION] | None
    most_repetitions: Annotated[int, q.REPETITIONS]
    name: str | None = field(default=None, metadata=LATER)


PRECISE, MOST = "precise enough", "the most repetitions"
"""How `Design.stopped` begins where an experiment was known well enough, and where it was not."""

ADAPTIVE_RULE = 1
"""Version of the rule by which adaptive campaigns continue; a campaign always uses its version."""


@dataclass(frozen=True)
class AdaptiveProtocol:
    """Rounds until each experiment is known well enough (docs/explanation/statistics.md).

    After `Protocol.repetitions` rounds of all experiments, an experiment is repeated while the
    half-width of its 95 % interval exceeds `precision`, in the logarithm of bandwidth, a measured
    power or MB/J. The limit is `most_repetitions`, or `most_whole` for runs that only their work
    ends. `indifference` and `floor` are those of the test at the end. Before each run the machine
    settles: `settle_least_s` at least, then until power is within the share `settle_power` of idle
    and the drive is idle, `settle_most_s` at most.

    Direct I/O runs that a time ends are as short as a pilot proves on this machine: the shortest of
    `lengths_s` from which on bandwidth and power stay within `floor` of those of the complete run.
    `pilot` is the source of such proofs.
    """

    most_repetitions: Annotated[int, q.REPETITIONS] = 6
    most_whole: Annotated[int, q.REPETITIONS] = 6
    precision: Annotated[float, q.FRACTION] = 0.05
    indifference: Annotated[float, q.FRACTION] = 0.05
    floor: Annotated[float, q.FRACTION] = 0.02
    settle_least_s: Annotated[float, q.PAUSE] = 3.0
    settle_most_s: Annotated[float, q.PAUSE] = 20.0
    settle_power: Annotated[float, q.FRACTION] = 0.02
    rule: Annotated[int, q.COUNT] = ADAPTIVE_RULE
    lengths_s: tuple[Annotated[float, q.PAUSE], ...] = field(default=LENGTHS_S, metadata=LATER)
    pilot: PilotUse = field(default="once", metadata=LATER)
    fixed_repetitions: Annotated[int, q.REPETITIONS] | None = field(default=None, metadata=LATER)
    """Of the protocol that it replaces."""

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        if not 0 < self.precision < 1:
            return f"precision {self.precision:g}: a share above 0 and below 1, such as 0.03"
        try:
            check_rule(self.indifference, self.floor)
        except EeioError as error:
            return str(error)
        if self.settle_least_s > self.settle_most_s:
            return f"settle: {self.settle_least_s:g} s at least is more than the most"
        if any(length_s < 1 or length_s % 1 for length_s in self.lengths_s):
            return "lengths_s: run times are integer seconds, 1 or more"
        return None


@dataclass(frozen=True)
class SteadyProtocol:
    """Rounds of all experiments until, over the last `rounds` of them, the bandwidth of each that
    writes keeps within the share `range_share` of its mean and its fitted line within
    `slope_share`; `most_rounds` at most. Where none writes, of each that reads.

    `active_share` is the share of a raw device that is written before and measured (None: what the
    preset's file_size says).
    """

    rounds: Annotated[int, q.REPETITIONS] = 5
    most_rounds: Annotated[int, q.REPETITIONS] = 25
    range_share: Annotated[float, q.FRACTION] = 0.20
    slope_share: Annotated[float, q.FRACTION] = 0.10
    active_share: Annotated[float, q.FRACTION] | None = field(default=None, metadata=LATER)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        if self.rounds < 2:
            return "steady: a window of one round has no slope; give 2 rounds or more"
        if self.most_rounds < self.rounds:
            return f"steady: {self.most_rounds} rounds at most are fewer than the window's"
        if self.active_share == 0:
            return "steady: active_share 0 leaves no area to measure"
        return None


@dataclass(frozen=True)
class Protocol:
    """How the experiments are repeated and spaced; times in seconds.

    `is_measurement` is false where the preset is too short to publish from. Each run of a tool that
    moves a file moves `work_bytes`, however long that takes; None: as much as the profile's preset
    says, or less where that sets a time. Work that is sized by a pilot makes each phase last
    `min_phase_s` or more; what does not is not ranked. `device_share` is the share of a raw device
    that is filled before and measured (None: what the preset's file_size says).
    """

    repetitions: Annotated[int, q.COUNT]
    settle_s: Annotated[float, q.PAUSE]
    idle_s: Annotated[float, q.PAUSE]
    is_measurement: bool
    study: StudyProtocol | None = field(default=None, metadata=LATER)
    work_bytes: Annotated[int, q.SIZE] | None = field(default=None, metadata=LATER)
    min_phase_s: Annotated[float, q.PAUSE] | None = field(default=None, metadata=LATER)
    adaptive: AdaptiveProtocol | None = field(default=None, metadata=LATER)
    sizes_of: str | None = field(default=None, metadata=LATER)
    """The preset of the profiles' sizes and times; None: that of the campaign's name."""
    steady: SteadyProtocol | None = field(default=None, metadata=LATER)
    device_share: Annotated[float, q.FRACTION] | None = field(default=None, metadata=LATER)
    drive_states_s: Annotated[float, q.PAUSE] | None = field(default=None, metadata=LATER)
    """How long each power state of the drive is measured after the runs; None: not at all."""


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment with what it takes to run it. `volume` names the file system it runs on:
    empty for the user's own directory, else `ext4`, `xfs`, `btrfs` made for the campaign.
    `file_bytes` is the size of the test files, all processes together; 0 for none. `variant` and
    `frequency_hz` are those of a study (None: none, or the frequency left as it is). `pilot` tells
    what sized its work or its time, and `sized` which of its factors is the work (None: nothing
    did). `cut_from` is the run time of the preset, in its own words, where a pilot asked whether a
    shorter one tells the same: `factors` has the one that is run. `smt` and `turbo` are `on`,
    `off`, or None: left as it is. `settings` are those that the file of an imported result states;
    None: not known."""

    experiment: Experiment
    profile: str
    factors: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    volume: str = ""
    file_bytes: Annotated[int, q.SIZE] = 0
    variant: str | None = field(default=None, metadata=LATER)
    frequency_hz: Annotated[int, q.FREQUENCY] | None = field(default=None, metadata=LATER)
    pilot: str | None = field(default=None, metadata=LATER)
    sized: str | None = field(default=None, metadata=LATER)
    cut_from: str | None = field(default=None, metadata=LATER)
    smt: str | None = field(default=None, metadata=LATER)
    turbo: str | None = field(default=None, metadata=LATER)
    settings: Mapping[str, str] | None = field(default=None, metadata=LATER)

    @property
    def is_cut(self) -> bool:
        """Whether its runs are shorter than the preset has them."""
        return self.cut_from is not None and self.cut_from != self.factors.get("runtime_s")

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment_id": self.experiment.id,
            "experiment": self.experiment.to_json(),
            "profile": self.profile,
            "factors": dict(self.factors),
            "description": self.description,
            "place": self.volume,
            "file_bytes": self.file_bytes,
            "variant": self.variant,
            "frequency_hz": self.frequency_hz,
            **_known(
                pilot=self.pilot,
                sized=self.sized,
                cut_from=self.cut_from,
                smt=self.smt,
                turbo=self.turbo,
                settings=None if self.settings is None else dict(self.settings),
            ),
        }


def _known(**values: object) -> dict[str, object]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of the order. `seed` makes the tool's own random offsets repeatable."""

    order_index: int
    experiment: PlannedExperiment
    repetition: int
    seed: int


@dataclass(frozen=True)
class NotMeasured:
    """An experiment of the suite that this campaign leaves out, and why."""

    experiment: Experiment
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"experiment": self.experiment.to_json(), "reason": self.reason}


@dataclass(frozen=True)
class Wear:
    """What a drive says of its life at a moment: the share of its rated endurance that is used, in
    percent (it may go beyond 100), and what was ever written to it."""

    at_utc: str
    used_percent: Annotated[int, q.COUNT]
    written_bytes: Annotated[int, q.SIZE]


@dataclass(frozen=True)
class Design:
    """A campaign as planned, or as imported.

    `disks` identifies, by option, the disk behind it; `remarks` is what an importer skipped,
    changed or found odd; `frequency_reason` is why no frequency is set. In an adaptive campaign,
    `anchors` are the ids of the experiments that run in each round, and `stopped` is, by id, why
    one is no longer repeated. `targets` are the repetitions, by id, that an extension requested;
    `extensions` is how many there were: each looked at the answers, which costs their level.
    `pilots_s` is the time that the pilots took. `ended` is why a campaign has no further run though
    its protocol requires more. `wear` is the drive's before the first run and after the last; empty
    if the drive does not report it.
    """

    name: str
    suite_title: str
    created_utc: str
    options: Options
    protocol: Protocol
    experiments: tuple[PlannedExperiment, ...]
    not_measured: tuple[NotMeasured, ...]
    runs: tuple[PlannedRun, ...]
    frequency_reason: str | None = None
    disks: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    suite: str = ""
    eeio_version: str = ""
    anchors: tuple[str, ...] = ()
    stopped: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, int] = field(default_factory=dict)
    extensions: int = 0
    pilots_s: float | None = None
    ended: str | None = None
    wear: tuple[Wear, ...] = ()

    @property
    def sizes_preset(self) -> str:
        """The preset of the profiles."""
        return self.protocol.sizes_of or self.options.preset

    def to_json(self) -> dict[str, Any]:
        """campaign.json."""
        indices = {planned.experiment.id: index for index, planned in enumerate(self.experiments)}
        adaptive, steady = self.protocol.adaptive, self.protocol.steady
        rounds = {
            "anchors": list(self.anchors),
            "stopped": dict(self.stopped),
            "targets": dict(self.targets),
            "extensions": self.extensions,
            "pilots_s": self.pilots_s,
        }
        written_by = {}
        if self.eeio_version:
            written_by = {"eeio_version": self.eeio_version}
        return {
            "schema_version": SCHEMA_VERSION,
            **written_by,
            "name": self.name,
            "suite": self.suite,
            "suite_title": self.suite_title,
            "created_utc": self.created_utc,
            "options": _plain(self.options),
            "protocol": {
                **_plain(self.protocol),
                "study": None if self.protocol.study is None else _plain(self.protocol.study),
                "adaptive": None if adaptive is None else _plain(adaptive),
                "steady": None if steady is None else _plain(steady),
            },
            "frequency_reason": self.frequency_reason,
            "disks": dict(self.disks),
            "experiments": [planned.to_json() for planned in self.experiments],
            "not_measured": [left_out.to_json() for left_out in self.not_measured],
            "order": [
                [indices[run.experiment.experiment.id], run.repetition, run.seed]
                for run in self.runs
            ],
            "remarks": list(self.remarks),
            **({} if adaptive is None else rounds),
            **_known(ended=self.ended, wear=list(map(asdict, self.wear)) or None),
        }

    @classmethod
    def from_json(cls, body: object) -> "Design":
        """Raises LimitError where the file could not be of eeio."""
        if not isinstance(body, dict):
            raise LimitError("no object")
        stored = typed.read(StoredDesign, {k: v for k, v in body.items() if k != "schema_version"})
        experiments = tuple(map(_planned, stored.experiments))
        return cls(
            name=stored.name,
            suite_title=stored.suite_title,
            created_utc=stored.created_utc,
            options=stored.options,
            protocol=Protocol(**{f: getattr(stored.protocol, f) for f in _PROTOCOL_FIELDS}),
            experiments=experiments,
            not_measured=stored.not_measured,
            runs=_runs(experiments, stored.order),
            frequency_reason=stored.frequency_reason,
            disks=stored.disks,
            remarks=stored.remarks,
            suite=stored.suite,
            eeio_version=stored.eeio_version,
            anchors=stored.anchors,
            stopped=stored.stopped,
            targets=stored.targets,
            extensions=stored.extensions,
            pilots_s=stored.pilots_s,
            ended=stored.ended,
            wear=stored.wear,
        )


# As it is in the file, where the order refers to experiments by index and contains their id too.


@dataclass(frozen=True)
class _StoredProtocol(Protocol):
    leave_out: tuple[Mapping[str, str], ...] = field(default=(), metadata=LATER)
    """Written by early versions, always empty: `not_measured` lists the omitted experiments."""


@dataclass(frozen=True)
class _StoredExperiment:
    experiment_id: str
    experiment: Experiment
    profile: str
    factors: Mapping[str, str]
    description: str
    place: str
    file_bytes: Annotated[int, q.SIZE]
    variant: str | None = field(default=None, metadata=LATER)
    frequency_hz: Annotated[float, q.FREQUENCY] | None = field(default=None, metadata=LATER)
    pilot: str | None = field(default=None, metadata=LATER)
    sized: str | None = field(default=None, metadata=LATER)
    cut_from: str | None = field(default=None, metadata=LATER)
    smt: str | None = field(default=None, metadata=LATER)
    turbo: str | None = field(default=None, metadata=LATER)
    settings: Mapping[str, str] | None = field(default=None, metadata=LATER)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        if self.experiment_id != self.experiment.id:
            return f"experiment_id: {q.shortened(self.experiment_id)} is not that of its factors"
        return None


@dataclass(frozen=True)
class StoredDesign:
    """What was requested, the experiments, and the order of all runs: index of the experiment,
    repetition and seed of each."""

    name: str
    suite: str
    suite_title: str
    created_utc: str
    options: Options
    protocol: _StoredProtocol
    experiments: tuple[_StoredExperiment, ...]
    not_measured: tuple[NotMeasured, ...]
    order: tuple[
        tuple[
            Annotated[int, q.COUNT] | str,
            Annotated[int, q.COUNT],
            Annotated[int, q.COUNT],
        ],
        ...,
    ]
    frequency_reason: str | None = field(default=None, metadata=LATER)
    disks: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    remarks: tuple[str, ...] = field(default=(), metadata=LATER)
    eeio_version: str = field(default="", metadata=LATER)
    anchors: tuple[str, ...] = field(default=(), metadata=LATER)
    stopped: Mapping[str, str] = field(default_factory=dict, metadata=LATER)
    targets: Mapping[str, Annotated[int, q.COUNT]] = field(default_factory=dict, metadata=LATER)
    extensions: Annotated[int, q.COUNT] = field(default=0, metadata=LATER)
    pilots_s: Annotated[float, q.DURATION] | None = field(default=None, metadata=LATER)
    ended: str | None = field(default=None, metadata=LATER)
    wear: tuple[Wear, ...] = field(default=(), metadata=LATER)

    def impossible(self) -> str | None:
        """What is invalid in it, beyond each field's range."""
        try:
            datetime.fromisoformat(self.created_utc or "1970-01-01")
        except ValueError as error:
            return f"created_utc: {q.shortened(self.created_utc)} is not a date: {error}"
        return None


_PROTOCOL_FIELDS = tuple(item.name for item in dataclasses.fields(Protocol))


def _planned(stored: _StoredExperiment) -> PlannedExperiment:
    hz = stored.frequency_hz
    return PlannedExperiment(
        experiment=stored.experiment,
        profile=stored.profile,
        factors=stored.factors,
        description=stored.description,
        volume=stored.place,
        file_bytes=stored.file_bytes,
        variant=stored.variant,
        frequency_hz=None if hz is None else int(hz),
        pilot=stored.pilot,
        sized=stored.sized,
        cut_from=stored.cut_from,
        smt=stored.smt,
        turbo=stored.turbo,
        settings=stored.settings,
    )


def _runs(
    experiments: Sequence[PlannedExperiment], order: Sequence[tuple[int | str, int, int]]
) -> tuple[PlannedRun, ...]:
    """The order. Imports of early versions contain the experiment's id instead of its index."""
    by_id: dict[int | str, PlannedExperiment] = {p.experiment.id: p for p in experiments}
    by_index: dict[int | str, PlannedExperiment] = dict(enumerate(experiments))
    runs = []
    for order_index, (which, repetition, seed) in enumerate(order):
        planned = (by_id if isinstance(which, str) else by_index).get(which)
        if planned is None:
            raise LimitError(f"order: there is no experiment {q.shortened(str(which))}")
        runs.append(PlannedRun(order_index, planned, repetition, seed))
    return tuple(runs)


def _plain(value: Any) -> dict[str, Any]:
    """A flat dataclass as JSON has it."""
    body = asdict(replace(value))
    return {k: list(v) if isinstance(v, tuple) else v for k, v in body.items()}
