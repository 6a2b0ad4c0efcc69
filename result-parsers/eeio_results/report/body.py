"""The body of `eeio report --format json`: schemas/report.schema.json is made of these types.

Figures are in SI units. A null figure has its reason in `reasons`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from eeio_results.domains import Marginal, Quartiles
from eeio_results.record import DOMAINS, KINDS, LEVELS, OPERATIONS, SPATIALITIES
from eeio_results.studies.drive import Point
from eeio_results.studies.io500 import Points
from eeio_results.studies.load import Step


class DomainFigures(TypedDict):
    power_domain: Annotated[str, DOMAINS]
    meter: str
    energy_kind: Annotated[str, KINDS]
    n: int
    power_w: Quartiles | None
    """Median and quartiles over the valid repetitions, in W; null with a reason."""
    energy_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in J; null with a reason."""
    energy_uncertainty_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in J; null with a reason."""
    efficiency_bytes_per_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in bytes/J; null with a reason."""
    includes: NotRequired[Sequence[str]]
    """The parts of the machine in the domain, as its meter reports them."""
    leaves_out: NotRequired[Sequence[str]]
    leaves_drives_out: NotRequired[bool]
    """True: the domain excludes the drives, so its bytes/J are not the storage's."""
    doubts: NotRequired[Sequence[str]]
    """Which meter contradicts these figures; empty if none."""
    reason: str | None
    energy_j_per_gb: Quartiles | None
    """J for 10^9 bytes; null with a reason."""
    uncertainty_relative: Quartiles | None
    """Uncertainty of the energy's reading as a share of the energy; null with a reason."""
    marginal: Marginal
    energy_j_per_operation: Quartiles | None
    """J of an operation that the tool counts (a file, a transaction): mean power over operations
    per second; null for a tool that counts none, else with a reason."""
    busy_energy_j_per_gb: Quartiles | None
    """J for 10^9 bytes with idle energy, at the duty cycle of --duty-cycle; null without that
    option."""
    ranked_reason: str | None
    """Why it is not ranked; null if it is."""
    iops_per_w: Quartiles | None
    """Requests per joule."""
    metrics: NotRequired[Mapping[str, Quartiles]]
    """Metrics of the registry that have no key of their own."""
    reasons: Mapping[str, str]
    """The reason of each null figure."""


class CellEnergy(TypedDict):
    domain: str
    meter: str
    kind: Annotated[str, KINDS]
    n: int
    power_w: float | None
    energy_j: float | None
    joules_per_file: float | None
    bytes_per_j: float | None
    reason: str | None


class Idle(TypedDict):
    readings: Sequence[Mapping[str, Any]]
    reason: str | None


class MeanPower(TypedDict):
    domain: str
    meter: str
    kind: str
    windows: int
    power_w: float
    uncertainty_w: float
    """Uncertainty."""


class Power(TypedDict):
    """The meters over all valid windows, compared with each other."""

    means: Sequence[MeanPower]
    contradictions: Sequence[str]
    """Means that contradict each other: their readings are doubtful."""


class Campaign(TypedDict):
    name: str
    suite: str
    preset: str
    is_measurement: bool
    """False: QUICK, not to be published."""
    planned_runs: int
    stored_runs: int
    machine: Mapping[str, Any]
    idle: Idle
    power: Power
    """The meters over all valid windows, compared with each other."""


class Cache(TypedDict):
    buffer: Literal["on", "off"] | None
    disk: Literal["on", "off"] | None


class Latency(TypedDict):
    p50: Quartiles | None
    """S."""
    p95: Quartiles | None
    """S."""
    p99: Quartiles | None
    """S."""
    p999: Quartiles | None
    """S."""
    p9999: Quartiles | None
    """S."""
    max: Quartiles | None
    """S."""


class Journal(TypedDict):
    """Activity of ext4's journal: commits, fast commits, fsync calls and those that waited for a
    commit, counts of a run; means in s; null if it was not traced."""

    journal_commits: NotRequired[Quartiles]
    journal_commit_mean_s: NotRequired[Quartiles]
    journal_fast_commits: NotRequired[Quartiles]
    journal_fsyncs: NotRequired[Quartiles]
    journal_fsync_mean_s: NotRequired[Quartiles]
    journal_fsyncs_waiting: NotRequired[Quartiles]


class Row(TypedDict):
    campaign: str
    preset: str
    level: Annotated[str, LEVELS]
    tool: str | None
    operation: Annotated[str, OPERATIONS] | None
    spatiality: Annotated[str, SPATIALITIES] | None
    request_size_bytes: int | None
    cache: Cache
    phase: str | None
    target: str | None
    api: str | None
    experiment_id: NotRequired[str | None]
    details: NotRequired[Sequence[str]]
    """How the experiment differs from others of its campaign with the same tool."""
    processes: int | None
    n: int
    """Valid repetitions behind the bandwidth, or behind the rate of operations."""
    invalid_runs: int
    bandwidth_bytes_per_s: Quartiles | None
    """Median and quartiles over the valid repetitions, in bytes/s; null with a reason."""
    operations_per_s: Quartiles | None
    """Median and quartiles of the rate of operations that the tool counts (files, transactions), in
    1/s; null for a tool that counts none."""
    power_w: Quartiles | None
    """Median and quartiles over the valid repetitions, in W; null with a reason."""
    energy_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in J; null with a reason."""
    efficiency_bytes_per_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in bytes/J; null with a reason."""
    energy_kind: Annotated[str, KINDS] | None
    """Kind of power_w, energy_j, efficiency; `modelled` if only `estimates` has values."""
    power_domain: str | None
    meter: str | None
    leaves_drives_out: NotRequired[bool | None]
    """True: power_w excludes the drives, so bytes/J are not the storage's."""
    domains: Sequence[DomainFigures]
    """Every measured or device-reported source."""
    estimates: Sequence[DomainFigures]
    """ESTIMATE: modelled power, never mixed with the above."""
    reason: str | None
    reasons: Mapping[str, str]
    """The reason of each null figure."""
    invalid_reasons: Sequence[str]
    remarks: NotRequired[Mapping[str, str]]
    """What else decided its figures, by kind, such as other I/O on the drive; absent if nothing
    is known."""
    flush: Literal["none", "end", "each", "unknown"] | None
    """When the tool flushes its bytes to the device; unknown: a record of version 1; null: nothing
    is written."""
    durable: bool | None
    """True: bandwidth, power and energy are until the bytes are on the device; null: nothing is
    written or measured."""
    duration_s: Quartiles | None
    """The time of bandwidth, power and energy, in s; null with a reason."""
    bytes: Quartiles | None
    """Bytes moved in a repetition; null with a reason."""
    page_cache_bandwidth_bytes_per_s: Quartiles | None
    """Rate of a write into the page cache, in bytes/s, never ranked; null with a reason."""
    iops: Quartiles | None
    """Requests per second over duration_s; null if the tool reports none."""
    latency_s: Latency | None
    """Of single requests, in s, as the tool reports them; null with a reason."""
    spatiality_seen: str | None
    """The observed order of requests; null with a reason."""
    spatiality_seen_by: NotRequired[str | None]
    """Requests: the program's own log; drive: the block layer."""
    journal: NotRequired[Journal | None]
    """Activity of ext4's journal: commits, fast commits, fsync calls and those that waited for a
    commit, counts of a run; means in s; null if it was not traced."""
    energy_j_per_gb: Quartiles | None
    """J for 10^9 bytes; null with a reason."""
    uncertainty_relative: Quartiles | None
    """Uncertainty of the energy's reading as a share of the energy; null with a reason."""
    marginal: Marginal
    energy_j_per_operation: Quartiles | None
    """J of an operation that the tool counts (a file, a transaction): mean power over operations
    per second; null for a tool that counts none, else with a reason."""
    busy_energy_j_per_gb: Quartiles | None
    """J for 10^9 bytes with idle energy, at the duty cycle of --duty-cycle; null without that
    option."""
    ranked: bool
    """Whether efficiency_bytes_per_j is ranked."""
    ranked_reason: str | None
    """Why it is not ranked; null if it is."""
    bytes_of: Literal["tool", "process", "drive"] | None
    """The source of bytes: the tool's report, the kernel's count for its processes, or the drive.
    """
    drive: str | None
    """Identity or label of the drive; null with a reason."""
    metrics: NotRequired[Mapping[str, Quartiles]]
    """Metrics of the registry that have no key of their own."""


class ContextRow(TypedDict):
    campaign: str
    name: str
    unit: str
    n: int
    median: float
    q1: float
    q3: float


class JournalCell(TypedDict):
    campaign: str
    experiment_id: str
    tool: str
    description: str
    variant: Literal["ext4", "nojc", "fast_commit", "delayjc"]
    frequency_hz: int | None
    """Null: not set; reasons.frequency_hz has the reason."""
    processes: int
    request_size_bytes: int | None
    arguments: Mapping[str, str]
    phase: str
    n: int
    invalid_runs: int
    converged: bool | None
    """Whether the 95 % interval of the mean is as narrow as the suite requires; null for a fixed
    number of repetitions."""
    figure: Literal["children_bytes_per_s", "creates_per_s", "rate_eq9_per_s"]
    """The figure of rsd, half_width, speedup and ratio_to_ext4."""
    children_bytes_per_s: float | None
    creates_per_s: float | None
    unblocked_bytes_per_s: float | None
    rate_eq9_per_s: float | None
    rate_eq10_per_s: float | None
    commits: float | None
    fast_commits: float | None
    blocked: float | None
    threads_not_blocked: float | None
    threads_fully_blocked: float | None
    threads_partly_blocked: float | None
    threads_ended_inside: float | None
    write_held_mean_s: float | None
    commit_wait_mean_s: float | None
    threads_behind_a_commit: float | None
    until_durable_mean_s: float | None
    until_durable_max_s: float | None
    delayjc_held_mean_s: float | None
    parent_bytes_per_s: float | None
    """Means over the valid repetitions, as all figures here."""
    model_ratio: float | None
    """Throughput or creation rate by the trace over the tool's own, median."""
    rsd: float | None
    half_width: float | None
    speedup: float | None
    """To the same variant at the lowest frequency."""
    ratio_to_ext4: float | None
    """To the variant ext4 at the same frequency."""
    until_durable_ratio_to_ext4: float | None
    model_ratio_range: tuple[float, float] | None
    energy: Sequence[CellEnergy]
    estimates: Sequence[CellEnergy]
    """ESTIMATE: modelled power, never mixed with the above."""
    reasons: Mapping[str, str]


class Question(TypedDict):
    experiment: str
    metric: str
    factor: str
    before: str
    after: str
    answer: Literal["higher", "lower", "none above", "open"]
    change_percent: float | None
    """Of the geometric means, from before to after."""
    interval_percent: Sequence[float] | None
    """95 %."""
    n: Sequence[int]
    repetitions_needed: int | None
    """Of each, for an answer; null if there is one, or for more than 1000."""
    reason: str | None


class Adaptive(TypedDict):
    campaign: str
    time_s: float
    """Of all runs, pauses and pilots."""
    fixed_s: float | None
    """Of the largest number of repetitions of each experiment, with the fixed pause; null if no run
    shows it."""
    alpha: float
    """Level of each answer."""
    indifference: float
    floor: float
    extensions: int
    questions: Sequence[Question]


class PaperFigure(TypedDict):
    paper: str
    campaign: str
    topic: str
    figure: str
    unit: Literal["W", "x", "change"]
    """Of both values; change: a share more or less (0.79 is +79 %)."""
    source: str
    """Its place in the paper."""
    of: str
    """The paper's system."""
    paper_value: float
    campaign_value: float | None
    """Null if the campaign has no equivalent result; remark has the reason."""
    ratio: float | None
    """The campaign's value over the paper's; of changes, of their factors."""
    remark: str


class SteadyExperiment(TypedDict):
    experiment: str
    bandwidth_bytes_per_s: Sequence[float | None]
    range_share: float | None
    slope_share: float | None
    is_steady: bool


class SteadyState(TypedDict):
    campaign: str
    rounds: int
    """Complete ones."""
    first_round: int
    """The first of those that are the measurement."""
    is_steady: bool
    experiments: Sequence[SteadyExperiment]


class Curve(TypedDict):
    campaign: str | None
    experiment: str | None
    power_domain: str | None
    idle_share: float | None
    dynamic_range: float | None
    linear_deviation: float | None
    proportionality: float | None
    overall_bytes_per_j: float | None
    reason: str | None


class Proportionality(Curve):
    """Of the only load curve; of several, each is in curves."""

    curves: Sequence[Curve]


class ParetoPoint(TypedDict):
    label: str
    operation: str
    buffer: Literal["on", "off", "as found"]
    bandwidth_bytes_per_s: float | None
    efficiency_bytes_per_j: float | None
    latency_p99_s: float | None
    energy_j_per_gb: float | None
    energy_delay_j_s_per_gb2: float | None
    """J/GB x s/GB."""
    on_bandwidth_front: bool | None
    """No other has more MB/J and more MB/s; null: not ranked."""
    on_p99_front: bool | None
    """No other has more MB/J and a lower p99; null: not ranked, or no p99."""
    reason: str | None


class LayerCost(TypedDict):
    layer: str
    below: str
    request_size_bytes: int | None
    operation: str
    buffer: Literal["on", "off"] | None
    flush: Literal["none", "end", "each", "unknown"] | None
    spatiality: str
    difference_j_per_gb: float | None
    difference_s_per_gb: float | None
    interval: tuple[float, float] | None
    """Of difference_j_per_gb; null for too few repetitions."""
    n: int
    """Repetitions of the one with fewer."""
    verdict: str
    campaign: str


class ReportBody(TypedDict):
    """Campaigns and their characterization; further parts for some suites."""

    schema_version: Literal[2]
    campaigns: Sequence[Campaign]
    characterization: Sequence[Row]
    context: Sequence[ContextRow]
    cells: NotRequired[Sequence[JournalCell]]
    """Only for studies of the journal: one workload on one variant at one frequency."""
    adaptive: Sequence[Adaptive]
    """The time and the decisions of each adaptive campaign."""
    beside_papers: NotRequired[Sequence[PaperFigure]]
    """Figures of papers next to those of the campaigns; absent if no campaign belongs to such a
    study."""
    io500: NotRequired[Sequence[Points]]
    """Experiments with IO500: medians over their valid runs; absent if there are none."""
    drive: NotRequired[Sequence[Point]]
    """Experiments of a preconditioned drive, or of engines; absent if there are none."""
    steady_state: NotRequired[Sequence[SteadyState]]
    """How the drive came to its steady state."""
    load_curve: NotRequired[Sequence[Step]]
    """Steps of offered load; absent if no campaign has any."""
    proportionality: NotRequired[Proportionality]
    """Of the only load curve; of several, each is in curves."""
    pareto: Sequence[ParetoPoint]
    """Every experiment that moves bytes, with its medians, and whether it is Pareto-optimal among
    those of its operation and buffer."""
    layers: Sequence[LayerCost]
    """The cost of a layer over the one below: experiments that differ only in it; empty if no two
    do."""
