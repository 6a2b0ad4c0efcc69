"""The characterization as CSV: one line an experiment and power domain, SI units, empty = null."""

from typing import Any

from eeio_results.characterization import Row
from eeio_results.domains import DomainFigures, Quartiles
from eeio_results.report.model import Report
from eeio_results.work import LATENCIES

_FIGURES = ("bandwidth_bytes_per_s", "power_w", "energy_j", "efficiency_bytes_per_j")
_FACTORS = (
    "campaign", "preset", "level", "tool", "operation", "spatiality", "request_size_bytes",
    "cache_buffer", "cache_disk", "phase", "target", "api", "processes", "n", "invalid_runs",
    "power_domain", "meter", "energy_kind", "includes", "leaves_out", "leaves_drives_out",
    "doubts",
)  # fmt: skip
_PARTS = ("median", "q1", "q3")
# What version 2 brought stands behind what was there before.
_WORDS = (
    "flush", "durable", "ranked", "ranked_reason", "spatiality_seen", "spatiality_seen_by", "drive",
    "bytes_of",
)  # fmt: skip
_WORK = ("duration_s", "bytes", "page_cache_bandwidth_bytes_per_s", "iops")
_LATENCIES = tuple(f"latency_{name}_s" for name in LATENCIES)
_OF_DOMAIN = (
    "energy_j_per_gb", "uncertainty_relative", "marginal_power_w", "marginal_energy_j_per_gb",
    "marginal_efficiency_bytes_per_j", "busy_energy_j_per_gb", "iops_per_w",
    "energy_j_per_operation",
)  # fmt: skip


def records(report: Report) -> list[dict[str, Any]]:
    """One a row and power domain. Modelled power is in columns of its own, which begin with
    ESTIMATE_."""
    of_power = _columns(_FIGURES[1:])
    further = _columns(_OF_DOMAIN)
    empty: dict[str, Any] = dict.fromkeys((
        *_FACTORS, *_columns(_FIGURES), *_estimates(of_power), "reason", *_WORDS,
        *_columns((*_WORK, *_LATENCIES)), *further, *_estimates(further),
    ))  # fmt: skip
    found = []
    for row in report.rows:
        every = [*row.domains, *row.estimates]
        found += [empty | _line(row, figures) for figures in every] or [empty | _line(row, None)]
    return found


def _columns(names: tuple[str, ...]) -> list[str]:
    return [f"{name}_{part}" for name in names for part in _PARTS]


def _estimates(columns: list[str]) -> list[str]:
    return [f"ESTIMATE_{column}" for column in columns]


def _line(row: Row, figures: DomainFigures | None) -> dict[str, Any]:
    body = row.to_json()
    cells = {key: body[key] for key in (*_FACTORS, *_WORDS) if key in body}
    cells |= {f"cache_{layer}": state for layer, state in body["cache"].items()}
    cells |= _parts("bandwidth_bytes_per_s", row.bandwidth_bytes_per_s)
    for name in _WORK:
        cells |= _parts(name, getattr(row.work, name))
    for name, latency in row.work.latency_s.items():
        cells |= _parts(f"latency_{name}_s", latency)
    for key in ("power_domain", "meter", "energy_kind"):
        cells[key] = getattr(figures, key) if figures else None
    if figures is not None:
        cells |= {key: "+".join(getattr(figures, key)) for key in ("includes", "leaves_out")}
        cells["leaves_drives_out"] = figures.leaves_drives_out
        cells["doubts"] = "; ".join(figures.doubts)
        cells["ranked"] = figures.ranked_reason is None
        cells["ranked_reason"] = figures.ranked_reason
        prefix = "ESTIMATE_" if figures.energy_kind == "modelled" else ""
        for name in (*_FIGURES[1:], *_OF_DOMAIN):
            of = figures.marginal if name.startswith("marginal_") else figures
            cells |= _parts(prefix + name, getattr(of, name.removeprefix("marginal_")))
    cells["reason"] = body["reason"]
    return cells


def _parts(name: str, figures: Quartiles | None) -> dict[str, float]:
    if figures is None:
        return {}
    return {f"{name}_{part}": getattr(figures, part) for part in _PARTS}
