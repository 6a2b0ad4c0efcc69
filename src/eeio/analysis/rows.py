"""A row of the characterization: one experiment and one kind of I/O, over its repetitions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from eeio.analysis import metrics
from eeio.analysis.domain_figures import DomainFigures, DomainFiguresBody
from eeio.analysis.io_label import io_label, operation_label
from eeio.analysis.observation import Missing, known
from eeio.analysis.selection import main_figures
from eeio.analysis.summary import Figure, Quartiles
from eeio.record.run import (
    COST_DOMAINS,
    KINDS,
    LEVELS,
    OPERATIONS,
    SPATIALITIES,
    CacheLayers,
    Experiment,
    Level,
)
from eeio.record.tool_label import tool_label
from eeio.record.tools import about


class CacheBody(TypedDict):
    buffer: Literal["on", "off"] | None
    disk: Literal["on", "off"] | None


class JournalBody(TypedDict):
    """Activity of ext4's journal: commits, fast commits, fsync calls and those that waited for a
    commit, counts of a run; means in s; null if it was not traced."""

    journal_commits: NotRequired[Quartiles]
    journal_commit_mean_s: NotRequired[Quartiles]
    journal_fast_commits: NotRequired[Quartiles]
    journal_fsyncs: NotRequired[Quartiles]
    journal_fsync_mean_s: NotRequired[Quartiles]
    journal_fsyncs_waiting: NotRequired[Quartiles]


class RowBody(TypedDict):
    """With the metrics of rows and of their main source (`eeio.analysis.metrics`), null with a
    reason."""

    campaign: str
    preset: str
    level: Annotated[str, LEVELS]
    tool: str | None
    operation: Annotated[str, OPERATIONS] | None
    spatiality: Annotated[str, SPATIALITIES] | None
    request_size_bytes: int | None
    cache: CacheBody
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
    energy_kind: Annotated[str, KINDS] | None
    """Kind of power_w, energy_j, efficiency; `modelled` if only `estimates` has values."""
    power_domain: str | None
    meter: str | None
    leaves_drives_out: NotRequired[bool | None]
    """True: power_w excludes the drives, so bytes/J are not the storage's."""
    domains: Sequence[DomainFiguresBody]
    """Every measured or device-reported source."""
    estimates: Sequence[DomainFiguresBody]
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
    spatiality_seen: str | None
    """The observed order of requests; null with a reason."""
    spatiality_seen_by: NotRequired[str | None]
    """Requests: the program's own log; drive: the block layer."""
    journal: NotRequired[JournalBody | None]
    """Activity of ext4's journal: commits, fast commits, fsync calls and those that waited for a
    commit, counts of a run; means in s; null if it was not traced."""
    ranked: bool
    """Whether efficiency_bytes_per_j is ranked."""
    ranked_reason: str | None
    """Why it is not ranked; null if it is."""
    bytes_of: Literal["tool", "process", "drive"] | None
    """The source of bytes: the tool's report, the kernel's count for its processes, or the drive.
    """
    drive: str | None
    """Identity or label of the drive; null with a reason."""


NOT_OBSERVED = Missing("the order of the requests was not observed")
NOT_TRACED = Missing("the journal was not traced (--trace-journal, on ext4)")
NO_IDENTITY = Missing("the record contains no identity of the drive, only the kernel's name")


@dataclass(frozen=True)
class Row:
    """One experiment, one kind of I/O. `figures` contains the metrics by their keys; those of power
    domains only where no source stands for the row. `domains` contains the measured sources,
    `estimates` the modelled ones, which are never mixed with them."""

    campaign: str
    preset: str
    level: Level
    experiment: Experiment | None
    phase: str | None
    operation: str | None
    spatiality: str | None
    request_size_bytes: int | None
    cache: CacheLayers
    n: int
    invalid_runs: int
    figures: Mapping[str, Figure]
    bandwidth_values: tuple[float, ...] = ()
    domains: tuple[DomainFigures, ...] = ()
    estimates: tuple[DomainFigures, ...] = ()
    invalid_reasons: tuple[str, ...] = ()
    device_checks: tuple[str, ...] = ()
    """Its runs' remarks on the comparison with the device's counters (Run.device_check)."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """Further causes of its figures, by kind (Run.remarks), of its first run that has one."""
    flush: str | None = None
    """none, end, each or unknown; None for rows that write no data."""
    durable: bool | None = None
    """Whether bandwidth and energy run until the bytes are on the device; None as `flush`."""
    why_not_durable: str | None = None
    spatiality_seen: str | Missing = NOT_OBSERVED
    """The observed order of requests, of all repetitions."""
    spatiality_seen_by: str | None = None
    """At the file by the program's log (`requests`), or at the drive by the block layer (`drive`).
    """
    journal: Mapping[str, Quartiles] | Missing = NOT_TRACED
    """The activity of ext4's journal: `traces.journal_figures.FIGURES`."""
    drive: str | Missing = NO_IDENTITY
    """The identity of the drive behind the target."""
    details: tuple[str, ...] = ()
    """How its experiment differs from others of its campaign with the same tool (`tool_label`)."""

    def __getitem__(self, metric: str) -> Quartiles | None:
        """A metric by its key, of power domains that of the main source; None if it is missing."""
        if metric in self.figures:
            return known(self.figures[metric])
        if self.measured is None:
            return None
        return self.measured[metric]

    def figure(self, metric: metrics.Metric, domain: DomainFigures | None) -> Quartiles | None:
        """A metric of the row, or of one of its power domains; None if it is missing."""
        if not metric.of_domain:
            return known(self.figures[metric.key])
        if domain is None:
            return None
        return domain[metric.key]

    def why(self, metric: str) -> str | None:
        """Why a metric is missing; None if it is not."""
        if metric not in self.figures and self.measured is not None:
            return self.measured.why(metric)
        figure = self.figures[metric]
        if isinstance(figure, Missing):
            return figure.reason
        return None

    @property
    def tool_label(self) -> str | None:
        """None for a row without an experiment."""
        if self.experiment is None:
            return None
        return tool_label(self.experiment, self.details)

    @property
    def operation_label(self) -> str:
        """`write (rewrite)`"""
        return operation_label(self.operation, self.spatiality, self.phase)

    @property
    def io_label(self) -> str:
        """`sequential write (rewrite)`"""
        return io_label(self.operation, self.spatiality, self.phase)

    @property
    def measured(self) -> DomainFigures | None:
        """The main source (`eeio.analysis.selection`)."""
        cost_domains = COST_DOMAINS if self.experiment is None else self.experiment.cost_domains
        return main_figures(self.domains, cost_domains)

    @property
    def drive_or_main(self) -> DomainFigures | None:
        """Of the drive's own power if it was measured, else of the main source."""
        for domain in self.domains:
            if domain.power_domain == "device":
                return domain
        return self.measured

    @property
    def ranked_reason(self) -> str | None:
        """Why its MB/J is not ranked; None if it is."""
        best = self.measured
        if best:
            return best.ranked_reason
        return self.why("efficiency_bytes_per_j")

    @property
    def ranked(self) -> bool:
        return self.measured is not None and self.ranked_reason is None

    @property
    def order_seen(self) -> str | None:
        return known(self.spatiality_seen)

    @property
    def observed_otherwise(self) -> bool:
        """Whether requests arrived in another order than the requested one."""
        order = self.order_seen
        return order is not None and not order.startswith(self.spatiality or "")

    def to_json(self) -> dict[str, Any]:
        """An object of the `characterization` list (schemas/report.schema.json)."""
        experiment = self._experiment_json()
        source = self._source_json()
        figures, reasons = self._figures()
        poor = set()
        for metric in metrics.METRICS:
            if metric.level:
                poor.add(self.why(metric.key))
        body = {
            "campaign": self.campaign,
            "preset": self.preset,
            "level": self.level,
            "tool": experiment.get("tool"),
            "operation": self.operation,
            "spatiality": self.spatiality,
            "request_size_bytes": self.request_size_bytes,
            "cache": asdict(self.cache),
            "phase": self.phase,
            "target": experiment.get("target"),
            "api": experiment.get("api"),
            "experiment_id": experiment.get("id"),
            "details": list(self.details),
            "processes": experiment.get("processes"),
            "n": self.n,
            "invalid_runs": self.invalid_runs,
            **figures,
            "energy_kind": source.get("energy_kind"),
            "power_domain": source.get("power_domain"),
            "meter": source.get("meter"),
            "leaves_drives_out": source.get("leaves_drives_out"),
            "domains": [of_domain.to_json() for of_domain in self.domains],
            "estimates": [of_domain.to_json() for of_domain in self.estimates],
            "flush": self.flush,
            "durable": self.durable,
            "spatiality_seen": self.order_seen,
            "spatiality_seen_by": self.spatiality_seen_by,
            "ranked": self.ranked,
            "ranked_reason": self.ranked_reason,
            "drive": known(self.drive),
            "bytes_of": experiment.get("bytes_of"),
            "reason": "; ".join(sorted(filter(None, {*poor, self.why_not_durable}))) or None,
            "reasons": reasons,
            "invalid_reasons": list(self.invalid_reasons),
        }
        if self.remarks:
            body["remarks"] = dict(self.remarks)
        return body

    def _experiment_json(self) -> dict[str, Any]:
        """Its fields in `to_json`; empty without an experiment."""
        experiment = self.experiment
        if experiment is None:
            return {}
        return {
            "tool": experiment.tool,
            "target": experiment.target,
            "api": experiment.api,
            "id": experiment.id,
            "processes": experiment.processes,
            "bytes_of": about(experiment.tool).bytes_of,
        }

    def _source_json(self) -> dict[str, Any]:
        """The main source's fields in `to_json`; without one the kind of the first estimate."""
        best = self.measured
        if best is not None:
            return {
                "energy_kind": best.energy_kind,
                "power_domain": best.power_domain,
                "meter": best.meter,
                "leaves_drives_out": best.leaves_drives_out,
            }
        if self.estimates:
            return {"energy_kind": self.estimates[0].energy_kind}
        return {}

    def _figures(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Every figure, null where it is missing, and the reason of each null."""
        of_row, why_of_row = metrics.to_json(metrics.in_rows(of_domain=False), self.figures)
        of_domains = self.figures if self.measured is None else self.measured.figures
        of_source, why_of_source = metrics.to_json(metrics.in_rows(of_domain=True), of_domains)
        texts = {
            "spatiality_seen": self.spatiality_seen,
            "journal": self.journal,
            "drive": self.drive,
        }
        reasons = why_of_row | why_of_source
        reasons |= {key: of.reason for key, of in texts.items() if isinstance(of, Missing)}
        if self.why_not_durable is not None:
            reasons["durable"] = self.why_not_durable
        figures = of_row | of_source
        further = {**of_row.get("metrics", {}), **of_source.get("metrics", {})}
        if further:
            figures["metrics"] = further
        if not any(figures["latency_s"].values()):
            figures["latency_s"] = None
            reason = reasons["latency_s.p50"]
            reasons = {key: of for key, of in reasons.items() if not key.startswith("latency_s.")}
            reasons["latency_s"] = reason
        if isinstance(self.journal, Missing):
            figures["journal"] = None
        else:
            figures["journal"] = {key: asdict(of) for key, of in self.journal.items()}
        return figures, reasons
