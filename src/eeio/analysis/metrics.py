"""The registry of metrics: a new metric is one entry.

Tables, CSV, JSON, `--sort`, `--columns`, the page, `eeio compare` and its gate read the registry. A
metric is computed from each observation (`value`), and shown by the quartiles over the repetitions,
or by its own `summary` of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from eeio.analysis.observation import NOT_REPORTED, Missing, Observation, Value
from eeio.analysis.summary import Figure, bytes_per_j, summarize
from eeio.units.sizes import KIB, MB, MIB

NO_COMMAND = Missing("it is no command of `eeio bench`")
NO_DRIVES = Missing("the number of drives was not given (eeio import --drives N)")
SEPARATE_LATENCIES = Missing(
    "the tool reports those of reads and of writes separately, in the record"
)
NOT_COUNTED = Missing(
    "instructions and cycles were not counted (counters=perf, perf, and counters that it may read)"
)
LATENCIES = ("p50", "p95", "p99", "p999", "max", "p9999")
"""For single requests: percentiles 50, 95, 99 and 99.9, the longest, and percentile 99.99. The page
uses the positions: add new ones at the end."""


@dataclass(frozen=True)
class Metric:
    """`key` is the name in CSV, and in JSON below `metrics`; `name` that of `--sort`, `--columns`,
    `--fail-if` and of the page's column. `unit` is the SI value of one shown unit (1e6 of MB/s)."""

    key: str
    name: str
    unit: float
    value: Callable[[Observation], Value]
    """Of one repetition, in SI units. Its source is that of the domain, or the widest."""
    summary: Callable[[Sequence[Observation]], Figure] | None = None
    """Of the repetitions of a row; without it, the quartiles of the values."""
    reciprocal_of: str = ""
    """The key of the metric in J/GB whose summary this one is the reciprocal of."""
    better: Literal["more", "less"] | None = None
    title: str = ""
    """Of the column in tables, if not `name`."""
    of_domain: bool = False
    """Of a power domain; cells are marked where the power is not measured."""
    of_storage: bool = False
    """Cells are marked where the power excludes the drives."""
    spread: bool = False
    """Tables show the quartiles, too."""
    is_share: bool = False
    """Shown as ±1.2 %."""
    group: str = ""
    """The word of `--columns` that adds it to a table. Without one every table has it."""
    needed: bool = False
    """Tables have the column even if no row has a value."""
    ranked: bool = False
    """The table of rankings has the column."""
    page: str = ""
    """The sets of columns on the page that contain it, besides `all`."""
    units: tuple[tuple[str, float], ...] = ()
    """Further columns of tables: the same metric in other units."""
    compared: bool = True
    """`eeio compare` tests it; the gate accepts others, too."""
    in_rows: bool = True
    """False: only `eeio compare` has it."""
    in_cells: bool = True
    """False: only reports have it."""
    json: str = ""
    """Its place in the JSON of a row (`marginal.power_w`), if it is not below `metrics`."""
    level: bool = False
    """One of the four of the four-level characterization."""

    @property
    def header(self) -> str:
        return self.title or self.name

    @property
    def hint(self) -> str:
        """The text below the name on the page: the subject, the unit, or which way is better."""
        title, _, unit = self.title.partition(" (")
        if unit:
            if title == self.name:
                return unit.rstrip(")")
            return title.lower()
        if self.better:
            return f"{self.better} is better"
        return ""

    @property
    def place(self) -> str:
        """In the JSON of a row."""
        return self.json or f"metrics.{self.key}"


def _above_idle(observations: Sequence[Observation]) -> Figure:
    """J/GB above idle, of all repetitions or of none: without those whose power is not clearly
    above idle, the median of the others would be too favourable."""
    values = [observation.marginal_j_per_gb for observation in observations]
    pairs = zip(observations, values, strict=True)
    known = [observation for observation, value in pairs if not isinstance(value, Missing)]
    unclear = sum(not observation.is_above_idle for observation in known)
    if unclear:
        return Missing(
            f"in {unclear} of {len(known)} repetitions power is not above idle by more than its "
            "uncertainty"
        )
    return summarize(values)


def _uncertainties(observations: Sequence[Observation]) -> Figure:
    return summarize(observation.uncertainty_relative for observation in observations)


def _latency(name: str) -> Metric:
    key = f"latency_{name}_s"
    shown = {"p999": "p99.9", "p9999": "p99.99"}.get(name, name)
    return Metric(
        key,
        shown,
        1e-3,
        lambda observation: _reported_latency(observation, key),
        better="less",
        title=f"{shown} (ms)",
        group="latency",
        needed=True,
        compared=name == "p99",
        json=f"latency_s.{name}",
        page={"p99": "essential latency", "p9999": ""}.get(name, "latency"),
    )


def _reported_latency(observation: Observation, key: str) -> Value:
    metrics = observation.phase.metrics
    if key in metrics:
        return metrics[key]
    if any(name.startswith("read_latency_") for name in metrics):
        return SEPARATE_LATENCIES
    return NOT_REPORTED


def _uncertainty(observation: Observation) -> Value:
    """Of energies that are compared only."""
    cost = observation.j_per_gb
    if isinstance(cost, Missing):
        return cost
    return observation.uncertainty_relative


def _per_drive(observation: Observation) -> Value:
    efficiency = observation.bytes_per_j
    drives = observation.phase.metrics.get("drives")
    if isinstance(efficiency, Missing):
        return efficiency
    if not drives:
        return NO_DRIVES
    return efficiency / drives


def _execution_s(observation: Observation) -> Value:
    phase = observation.phase
    many = phase.metrics.get("executions")
    lasted_s = phase.metrics.get("executed_s", phase.lasted_s)
    if many and lasted_s is not None:
        return lasted_s / many
    return NO_COMMAND


def _time_s(observation: Observation) -> Value:
    """Of one execution of a command, else of 10^9 bytes, else of one operation."""
    window = observation.window
    lasted_s = _execution_s(observation)
    if not isinstance(lasted_s, Missing):
        return lasted_s
    of_gb_s = window.seconds_per_gb(window.duration_s)
    if of_gb_s is not None:
        return of_gb_s
    rate = observation.operations_per_s
    if not isinstance(rate, Missing) and rate:
        return 1.0 / rate
    return lasted_s


def _counted_per_request(name: str) -> Callable[[Observation], Value]:
    """A counter of the processor, of one request."""

    def value(observation: Observation) -> Value:
        counts, rate = observation.phase.metrics, observation.iops
        lasted_s = counts.get("runtime_s")
        if name not in counts or lasted_s is None:
            return NOT_COUNTED
        if isinstance(rate, Missing):
            return rate
        if rate == 0.0:
            return Missing("no request was served")
        return counts[name] / (rate * lasted_s)

    return value


METRICS: tuple[Metric, ...] = (
    Metric(
        "bandwidth_bytes_per_s", "MB/s", MB, lambda one: one.bandwidth_bytes_per_s,
        better="more", spread=True, needed=True, page="essential latency",
        units=(("MiB/s", MIB),), json="bandwidth_bytes_per_s", level=True,
    ),
    Metric(
        "page_cache_bandwidth_bytes_per_s", "MB/s into page cache", MB,
        lambda one: one.page_cache_bandwidth_bytes_per_s, better="more",
        json="page_cache_bandwidth_bytes_per_s", in_cells=False,
    ),
    Metric(
        "operations_per_s", "Operations/s", 1.0, lambda one: one.operations_per_s,
        better="more", spread=True, json="operations_per_s", compared=False,
    ),
    Metric(
        "duration_s", "s", 1.0, lambda one: one.duration_s, better="less", title="Time (s)",
        needed=True, json="duration_s", in_cells=False,
    ),
    Metric(
        "bytes", "MB", MB, lambda one: one.bytes_moved, needed=True, json="bytes", in_cells=False
    ),
    Metric(
        "power_w", "W", 1.0, lambda one: one.power_w, better="less", title="Power (W)",
        of_domain=True, spread=True, needed=True, page="essential energy", json="power_w",
        in_cells=False, level=True,
    ),
    Metric(
        "marginal_power_w", "W above idle", 1.0, lambda one: one.marginal_power_w, better="less",
        of_domain=True, page="energy", json="marginal.power_w", in_cells=False,
    ),
    Metric(
        "energy_j", "J", 1.0, lambda one: one.energy_j, better="less", title="Energy (J)",
        of_domain=True, spread=True, needed=True, page="energy", json="energy_j",
        in_cells=False, level=True,
    ),
    Metric(
        "uncertainty_relative", "Limit", 1.0, _uncertainty, _uncertainties, better="less",
        of_domain=True, is_share=True, needed=True, ranked=True, json="uncertainty_relative",
        compared=False,
    ),
    Metric(
        "efficiency_bytes_per_j", "MB/J", MB, lambda one: one.bytes_per_j,
        reciprocal_of="energy_j_per_gb", better="more", of_domain=True, of_storage=True,
        spread=True, needed=True, ranked=True,
        page="essential energy", units=(("KiB/J", KIB),), json="efficiency_bytes_per_j",
        level=True,
    ),
    Metric(
        "marginal_efficiency_bytes_per_j", "MB/J above idle", MB,
        lambda one: one.marginal_bytes_per_j,
        reciprocal_of="marginal_energy_j_per_gb", better="more", of_domain=True,
        ranked=True, page="energy", json="marginal.efficiency_bytes_per_j", in_cells=False,
    ),
    Metric(
        "energy_j_per_gb", "J/GB", 1.0, lambda one: one.j_per_gb, better="less",
        of_domain=True, of_storage=True, spread=True, needed=True, ranked=True,
        page="essential energy", json="energy_j_per_gb",
    ),
    Metric(
        "marginal_energy_j_per_gb", "J/GB above idle", 1.0, lambda one: one.marginal_j_per_gb,
        _above_idle, better="less", of_domain=True, ranked=True, page="energy",
        json="marginal.energy_j_per_gb", in_cells=False,
    ),
    Metric(
        "busy_energy_j_per_gb", "J/GB with idle", 1.0, lambda one: one.busy_j_per_gb,
        better="less", of_domain=True, ranked=True, json="busy_energy_j_per_gb", in_cells=False,
    ),
    Metric(
        "energy_j_per_operation", "J/operation", 1.0, lambda one: one.j_per_operation,
        better="less", of_domain=True, of_storage=True, json="energy_j_per_operation",
        in_cells=False,
    ),
    Metric(
        "efficiency_per_drive_bytes_per_j", "MB/J per drive", MB, _per_drive, better="more",
        of_domain=True, of_storage=True, in_cells=False,
    ),
    Metric(
        "iops", "IOPS", 1.0, lambda one: one.iops, better="more", spread=True, group="iops",
        needed=True, page="latency", json="iops", compared=False,
    ),
    Metric(
        "iops_per_w", "IOPS/W", 1.0, lambda one: one.iops_per_w, better="more", of_domain=True,
        group="iops", needed=True, page="essential", json="iops_per_w", in_cells=False,
    ),
    *map(_latency, LATENCIES),
    Metric(
        "instructions_per_request", "instructions/request", 1.0,
        _counted_per_request("instructions"), better="less", compared=False,
    ),
    Metric(
        "cycles_per_request", "cycles/request", 1.0, _counted_per_request("cycles"),
        better="less", compared=False,
    ),
    Metric(
        "execution_s", "execution", 1.0, _execution_s, better="less", title="Execution (s)",
        in_rows=False,
    ),
    Metric(
        "time_s", "time", 1.0, _time_s, better="less", compared=False, in_rows=False
    ),
)  # fmt: skip
"""In the order of columns."""


def in_rows(*, of_domain: bool) -> list[Metric]:
    """Those of a row of a report, or of each of its power domains."""
    return [metric for metric in METRICS if metric.in_rows and metric.of_domain == of_domain]


def best_first(metric: Metric, median: float | None) -> tuple[bool, float]:
    """A key to sort by that metric, the best first and those without it last."""
    if median is None:
        return True, 0.0
    if metric.better == "more":
        return False, -median
    return False, median


def in_cells() -> list[Metric]:
    """Those that comparisons have."""
    return [metric for metric in METRICS if metric.in_cells]


def further() -> list[Metric]:
    """Those without a place of their own in the JSON of a row."""
    return [metric for metric in METRICS if metric.in_rows and not metric.json]


def named(name: str) -> Metric:
    """The metric that `--sort` and `--fail-if` call so. Raises KeyError."""
    return {metric.name.lower(): metric for metric in METRICS}[name.lower()]


def gated() -> tuple[str, ...]:
    """Metrics for `--fail-if`: power, and those of comparisons that have a better direction."""
    names = [cell.name for cell in in_cells() if cell.better and not cell.is_share]
    return ("W", *names)


def gated_name(text: str) -> str:
    """That of a metric for `--fail-if` in any case; a text that is none stays as it is."""
    return {name.lower(): name for name in gated()}.get(text.lower(), text)


def summaries(metrics: Sequence[Metric], observations: Sequence[Observation]) -> dict[str, Figure]:
    """Key -> the figure over the repetitions of a row, of which there is at least one."""
    figures: dict[str, Figure] = {}
    for metric in metrics:
        if metric.summary is not None:
            figures[metric.key] = metric.summary(observations)
        elif not metric.reciprocal_of:
            figures[metric.key] = summarize(list(map(metric.value, observations)))
    for metric in metrics:
        if metric.reciprocal_of:
            figures[metric.key] = bytes_per_j(figures[metric.reciprocal_of])
    return figures


def to_json(
    metrics: Iterable[Metric], figures: Mapping[str, Figure]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Their figures as in the JSON of a row, null where missing, or absent of further metrics; and
    the reason of each missing one."""
    body: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for metric in metrics:
        figure = figures[metric.key]
        value = None
        if not isinstance(figure, Missing):
            value = asdict(figure)
        group, _, name = metric.place.rpartition(".")
        if value is not None or metric.json:
            of_group = body
            if group:
                of_group = body.setdefault(group, {})
            of_group[name] = value
        if isinstance(figure, Missing):
            reasons[metric.place] = figure.reason
    return body, reasons
