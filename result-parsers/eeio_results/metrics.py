"""The registry of metrics: a new metric is one entry.

Tables, CSV, JSON, `--sort`, `--columns`, the page, `eeio compare` and its gate read the registry. A
metric is a field of a row or of a power domain (`figures`), or it is computed from each repetition
(`value`). Of a metric without `figures` the quartiles over the repetitions are shown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from eeio_results.domains import DomainFigures, Quartiles, quartiles
from eeio_results.observation import Key, Missing, Observation
from eeio_results.rows import Row
from eeio_results.units import KIB, MB, MIB
from eeio_results.work import LATENCIES

Figures = Callable[[Row, DomainFigures | None], Quartiles | None]
Value = Callable[[Observation], float | Missing | None]
"""Of one repetition, in SI units. Its source is that of the domain, or the widest. None as a
`Missing` of which nobody asks the reason."""


@dataclass(frozen=True)
class Metric:
    """`key` is the name in JSON and CSV; `name` that of `--sort`, `--columns`, `--fail-if` and of
    the page's column. `unit` is the SI value of one shown unit (1e6 of MB/s)."""

    key: str
    name: str
    unit: float = 1.0
    figures: Figures | None = None
    value: Value | None = None
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
    """`eeio compare` tests it, if it has `value`."""
    in_rows: bool = True
    """False: only `eeio compare` has it."""

    @property
    def header(self) -> str:
        return self.title or self.name

    @property
    def hint(self) -> str:
        """The text below the name on the page: the subject, the unit, or which way is better."""
        title, _, unit = self.title.partition(" (")
        if unit:
            return unit.rstrip(")") if title == self.name else title.lower()
        return f"{self.better} is better" if self.better else ""

    def of(self, row: Row, domain: DomainFigures | None) -> Quartiles | None:
        """The quartiles of a row in one of its power domains; None where it has none."""
        if self.figures is not None:
            return self.figures(row, domain)
        of = domain if self.of_domain else row
        return None if of is None else of.metrics.get(self.key)


def _of_row(name: str) -> Figures:
    return lambda row, _: getattr(row, name)


def _of_work(name: str) -> Figures:
    return lambda row, _: getattr(row.work, name)


def _of_domain(name: str) -> Figures:
    return lambda _, domain: None if domain is None else getattr(domain, name)


def _above_idle(name: str) -> Figures:
    return lambda _, domain: None if domain is None else getattr(domain.marginal, name)


def _latency(name: str) -> Metric:
    key = f"latency_{name}_s"
    shown = {"p999": "p99.9", "p9999": "p99.99"}.get(name, name)
    return Metric(
        key, shown, 1e-3, lambda row, _: row.work.latency_s.get(name),
        lambda observation: observation.phase.metrics.get(key),
        better="less", title=f"{shown} (ms)",
        group="latency", needed=True, compared=name == "p99",
        page={"p99": "essential latency", "p9999": ""}.get(name, "latency"),
    )  # fmt: skip


def _uncertainty(observation: Observation) -> float | Missing:
    """Of energies that are compared only."""
    cost = observation.j_per_gb
    return cost if isinstance(cost, Missing) else observation.uncertainty_relative


def _execution_s(observation: Observation) -> float | None:
    phase = observation.phase
    many = phase.metrics.get("executions")
    return phase.lasted_s / many if many and phase.lasted_s is not None else None


def _time_s(observation: Observation) -> float | None:
    """Of one execution of a command, else of 10^9 bytes, else of one operation."""
    window = observation.window
    found = _execution_s(observation)
    if found is None:
        found = window.seconds_per_gb(window.duration_s)
    if found is None and (rate := observation.operations_per_s):
        found = 1.0 / rate
    return found


METRICS: tuple[Metric, ...] = (
    Metric(
        "bandwidth_bytes_per_s", "MB/s", MB, _of_row("bandwidth_bytes_per_s"),
        lambda observation: observation.window.bandwidth_bytes_per_s, better="more", spread=True,
        needed=True, page="essential latency", units=(("MiB/s", MIB),),
    ),
    Metric(
        "page_cache_bandwidth_bytes_per_s", "MB/s into page cache", MB,
        _of_work("page_cache_bandwidth_bytes_per_s"), better="more",
    ),
    Metric(
        "operations_per_s", "Operations/s", 1.0, _of_row("operations_per_s"),
        lambda observation: observation.operations_per_s, better="more", spread=True,
        compared=False,
    ),
    Metric("duration_s", "s", 1.0, _of_work("duration_s"), better="less", title="Time (s)",
           needed=True),
    Metric("bytes", "MB", MB, _of_work("bytes"), needed=True),
    Metric(
        "power_w", "W", 1.0, _of_domain("power_w"), better="less", title="Power (W)",
        of_domain=True, spread=True, needed=True, page="essential energy",
    ),
    Metric("marginal_power_w", "W above idle", 1.0, _above_idle("power_w"), better="less",
           of_domain=True, page="energy"),
    Metric(
        "energy_j", "J", 1.0, _of_domain("energy_j"), better="less", title="Energy (J)",
        of_domain=True, spread=True, needed=True, page="energy",
    ),
    Metric(
        "uncertainty_relative", "Limit", 1.0, _of_domain("uncertainty_relative"), _uncertainty,
        better="less", of_domain=True, is_share=True, needed=True, ranked=True, compared=False,
    ),
    Metric(
        "efficiency_bytes_per_j", "MB/J", MB, _of_domain("efficiency_bytes_per_j"),
        lambda observation: observation.bytes_per_j,
        better="more", of_domain=True, of_storage=True, spread=True, needed=True, ranked=True,
        page="essential energy", units=(("KiB/J", KIB),),
    ),
    Metric(
        "marginal_efficiency_bytes_per_j", "MB/J above idle", MB,
        _above_idle("efficiency_bytes_per_j"), better="more", of_domain=True, ranked=True,
        page="energy",
    ),
    Metric(
        "energy_j_per_gb", "J/GB", 1.0, _of_domain("energy_j_per_gb"),
        lambda observation: observation.j_per_gb,
        better="less", of_domain=True, of_storage=True, spread=True, needed=True, ranked=True,
        page="essential energy",
    ),
    Metric("marginal_energy_j_per_gb", "J/GB above idle", 1.0, _above_idle("energy_j_per_gb"),
           better="less", of_domain=True, ranked=True, page="energy"),
    Metric("busy_energy_j_per_gb", "J/GB with idle", 1.0,
           _of_domain("busy_energy_j_per_gb"), better="less", of_domain=True, ranked=True),
    Metric(
        "energy_j_per_operation", "J/operation", 1.0, _of_domain("energy_j_per_operation"),
        better="less", of_domain=True, of_storage=True,
    ),
    Metric(
        "iops", "IOPS", 1.0, _of_work("iops"), lambda observation: observation.iops,
        better="more", spread=True, group="iops", needed=True, compared=False, page="latency",
    ),
    Metric("iops_per_w", "IOPS/W", 1.0, _of_domain("iops_per_w"), better="more", of_domain=True,
           group="iops", needed=True, page="essential"),
    *map(_latency, LATENCIES),
    Metric("execution_s", "execution", 1.0, value=_execution_s, better="less",
           title="Execution (s)", in_rows=False),
    Metric("time_s", "time", 1.0, value=_time_s, better="less", compared=False, in_rows=False),
)  # fmt: skip
"""In the order of columns."""


FURTHER = tuple(metric for metric in METRICS if metric.figures is None and metric.in_rows)
"""Those that no field of a row is for."""


def named(name: str) -> Metric:
    """The metric that `--sort` and `--fail-if` call so. Raises KeyError."""
    return {metric.name.lower(): metric for metric in METRICS}[name.lower()]


def gated() -> tuple[str, ...]:
    """Metrics for `--fail-if`: power, and the metrics with a value in each repetition and a better
    direction."""
    found = [one.name for one in METRICS if one.value and one.better and not one.is_share]
    return ("W", *found)


def further(observations: Sequence[Observation], domain: Key | None = None) -> dict[str, Quartiles]:
    """The metrics that no field of a row is for, over the repetitions of a row; of one of its power
    domains if it is given."""
    requested = [metric for metric in FURTHER if metric.of_domain == (domain is not None)]
    used = observations
    if domain is not None:
        by_domain = (observation.by(domain) for observation in observations)
        used = [observation for observation in by_domain if observation.is_costed]
    summaries = {metric.key: quartiles(values_of(metric, used)) for metric in requested}
    return {key: summary for key, summary in summaries.items() if summary is not None}


def values_of(metric: Metric, observations: Iterable[Observation]) -> list[float]:
    """The values of a metric that has `value`, of the repetitions that have one."""
    assert metric.value is not None
    found = [metric.value(observation) for observation in observations]
    return [value for value in found if value is not None and not isinstance(value, Missing)]
