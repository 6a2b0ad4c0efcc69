"""A row of the characterization: one experiment and one kind of I/O, over its repetitions."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eeio_results.domains import DomainFigures, Marginal, Quartiles
from eeio_results.io_label import io_label, operation_label
from eeio_results.record import COST_DOMAINS, CacheLayers, Experiment, Level
from eeio_results.selection import main_figures
from eeio_results.tool_label import tool_label
from eeio_results.tools import about
from eeio_results.work import NAMES as WORK
from eeio_results.work import NOTHING, Work

FIRST = ("bandwidth_bytes_per_s", "power_w", "energy_j", "efficiency_bytes_per_j")
LATER = (
    *WORK, "drive", "energy_j_per_gb", "uncertainty_relative", "energy_j_per_operation",
    *(f"marginal.{name}" for name in asdict(Marginal())),
)  # fmt: skip
"""Figures that came with version 2; their reasons are in `reasons` only."""


@dataclass(frozen=True)
class Row:
    """One experiment, one kind of I/O. `domains` contains the measured sources, `estimates` the
    modelled ones, which are never mixed with them. A null figure has its reason in `reasons`.
    `operations_per_s` is the rate of operations that a tool counts (files, transactions), in the
    row's window; None for a tool that counts none."""

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
    bandwidth_bytes_per_s: Quartiles | None
    bandwidth_values: tuple[float, ...] = ()
    operations_per_s: Quartiles | None = None
    domains: tuple[DomainFigures, ...] = ()
    estimates: tuple[DomainFigures, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    invalid_reasons: tuple[str, ...] = ()
    device_checks: tuple[str, ...] = ()
    """Its runs' remarks on the comparison with the device's counters (Run.device_check)."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What else decided its figures, by kind (Run.remarks), of its first run that has one."""
    flush: str | None = None
    """none, end, each or unknown; None for rows that write no data."""
    durable: bool | None = None
    """Whether bandwidth and energy run until the bytes are on the device; None as `flush`."""
    work: Work = NOTHING
    drive: str | None = None
    """The identity of the drive behind the target; None if the record contains none."""
    details: tuple[str, ...] = ()
    """How its experiment differs from others of its campaign with the same tool (`tool_label`)."""
    metrics: Mapping[str, Quartiles] = field(default_factory=dict)
    """Metrics of the registry that no field above is for (eeio_results.metrics)."""

    @property
    def tool_label(self) -> str | None:
        """None for a row without an experiment."""
        return None if self.experiment is None else tool_label(self.experiment, self.details)

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
        """The main source (`eeio_results.selection`)."""
        cost_domains = COST_DOMAINS if self.experiment is None else self.experiment.cost_domains
        return main_figures(self.domains, cost_domains)

    @property
    def ranked_reason(self) -> str | None:
        """Why its MB/J is not ranked; None if it is."""
        best = self.measured
        return best.ranked_reason if best else self.reasons.get("efficiency_bytes_per_j")

    @property
    def ranked(self) -> bool:
        return self.measured is not None and self.ranked_reason is None

    @property
    def observed_otherwise(self) -> bool:
        """Whether requests arrived in another order than the requested one."""
        observed = self.work.spatiality_seen
        return observed is not None and not observed.startswith(self.spatiality or "")

    def to_json(self) -> dict[str, Any]:
        """An object of the `characterization` list (schemas/report.schema.json)."""
        best = self.measured
        experiment = self.experiment
        # Figures that version 1 lacks do not make a row poor.
        reasons = sorted({why for name, why in self.reasons.items() if name not in LATER})
        kinds = [d.energy_kind for d in ([best] if best else self.estimates)]
        return {
            "campaign": self.campaign,
            "preset": self.preset,
            "level": self.level,
            "tool": experiment.tool if experiment else None,
            "operation": self.operation,
            "spatiality": self.spatiality,
            "request_size_bytes": self.request_size_bytes,
            "cache": asdict(self.cache),
            "phase": self.phase,
            "target": experiment.target if experiment else None,
            "api": experiment.api if experiment else None,
            "experiment_id": experiment.id if experiment else None,
            "details": list(self.details),
            "processes": experiment.processes if experiment else None,
            "n": self.n,
            "invalid_runs": self.invalid_runs,
            "bandwidth_bytes_per_s": _json(self.bandwidth_bytes_per_s),
            "operations_per_s": _json(self.operations_per_s),
            "power_w": _json(best.power_w if best else None),
            "energy_j": _json(best.energy_j if best else None),
            "efficiency_bytes_per_j": _json(best.efficiency_bytes_per_j if best else None),
            "energy_kind": kinds[0] if kinds else None,
            "power_domain": best.power_domain if best else None,
            "meter": best.meter if best else None,
            "leaves_drives_out": best.leaves_drives_out if best else None,
            "domains": [figures.to_json() for figures in self.domains],
            "estimates": [figures.to_json() for figures in self.estimates],
            "flush": self.flush,
            "durable": self.durable,
            **self.work.to_json(),
            "energy_j_per_gb": _json(best.energy_j_per_gb if best else None),
            "uncertainty_relative": _json(best.uncertainty_relative if best else None),
            "marginal": asdict(best.marginal if best else Marginal()),
            "busy_energy_j_per_gb": _json(best.busy_energy_j_per_gb if best else None),
            "energy_j_per_operation": _json(best.energy_j_per_operation if best else None),
            "ranked": self.ranked,
            "ranked_reason": self.ranked_reason,
            "drive": self.drive,
            "bytes_of": about(experiment.tool).bytes_of if experiment else None,
            "reason": "; ".join(reasons) or None,
            "reasons": self.reasons,
            "invalid_reasons": list(self.invalid_reasons),
            **({"remarks": dict(self.remarks)} if self.remarks else {}),
            **({"metrics": further} if (further := _further(self)) else {}),
        }


def _further(row: Row) -> dict[str, dict[str, float]]:
    of_domain = row.measured.metrics if row.measured else {}
    return {key: asdict(found) for key, found in {**row.metrics, **of_domain}.items()}


def _json(figures: Quartiles | None) -> dict[str, float] | None:
    return asdict(figures) if figures else None
