"""The characterization as CSV: one line an experiment and power domain, SI units, empty = null."""

import csv
import io
from typing import Any

from eeio_limits.text import csv_cell
from eeio_results.characterization import Row
from eeio_results.domains import DomainFigures, Quartiles
from eeio_results.report.model import Report

_FIGURES = ("bandwidth_bytes_per_s", "power_w", "energy_j", "efficiency_bytes_per_j")
_FACTORS = (
    "campaign", "preset", "level", "tool", "operation", "spatiality", "request_size_bytes",
    "cache_buffer", "cache_disk", "phase", "target", "api", "processes", "n", "invalid_runs",
    "power_domain", "meter", "energy_kind", "includes", "leaves_out", "leaves_drives_out",
    "doubts",
)  # fmt: skip


def render(report: Report) -> str:
    """Modelled power stands in columns of its own, which begin with ESTIMATE_."""
    columns = [f"{figure}_{part}" for figure in _FIGURES for part in ("median", "q1", "q3")]
    estimates = [f"ESTIMATE_{column}" for column in columns if not column.startswith("bandwidth")]
    out = io.StringIO()
    writer = csv.DictWriter(
        out, [*_FACTORS, *columns, *estimates, "reason"], restval="", lineterminator="\n"
    )
    writer.writeheader()
    for row in report.rows:
        every = [*row.domains, *row.estimates]
        writer.writerows([_line(row, figures) for figures in every] or [_line(row, None)])
    return out.getvalue()


def _line(row: Row, figures: DomainFigures | None) -> dict[str, Any]:
    body = row.to_json()
    cells = {key: body[key] for key in _FACTORS if key in body}
    cells |= {f"cache_{layer}": state for layer, state in body["cache"].items()}
    cells |= _parts("bandwidth_bytes_per_s", row.bandwidth_bytes_per_s)
    reasons = dict(row.reasons)
    for key in ("power_domain", "meter", "energy_kind"):
        cells[key] = getattr(figures, key) if figures else None
    if figures is not None:
        cells |= {key: "+".join(getattr(figures, key)) for key in ("includes", "leaves_out")}
        cells["leaves_drives_out"] = "yes" if figures.leaves_drives_out else "no"
        cells["doubts"] = "; ".join(figures.doubts)
        prefix = "ESTIMATE_" if figures.energy_kind == "modelled" else ""
        for name in _FIGURES[1:]:
            cells |= _parts(prefix + name, getattr(figures, name))
    cells["reason"] = "; ".join(sorted(set(reasons.values())))
    return {key: _cell(value) for key, value in cells.items()}


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return csv_cell(value) if isinstance(value, str) else value


def _parts(name: str, figures: Quartiles | None) -> dict[str, float]:
    if figures is None:
        return {}
    return {f"{name}_{part}": getattr(figures, part) for part in ("median", "q1", "q3")}
