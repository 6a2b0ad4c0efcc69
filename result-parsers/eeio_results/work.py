"""How much a row did, how long and how promptly: seconds, bytes, requests, latencies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eeio_results.domains import Quartiles, quartiles
from eeio_results.observation import Observation
from eeio_results.record import Experiment, Phase
from eeio_results.traces.journal_figures import FIGURES
from eeio_results.windows import page_cache_bandwidth

LATENCIES = ("p50", "p95", "p99", "p999", "max", "p9999")
"""For single requests: percentiles 50, 95, 99 and 99.9, the longest, and percentile 99.99. The page
uses the positions: add new ones at the end."""


@dataclass(frozen=True)
class Work:
    """Medians over the repetitions; a figure that is None has its reason in `reasons`.

    `iops` is requests over the row's window. `spatiality_seen` is the observed order of requests,
    of all repetitions: at the file by the program's log (`spatiality_seen_by` is `requests`), or at
    the drive by the block layer (`drive`).
    """

    duration_s: Quartiles | None = None
    bytes: Quartiles | None = None
    page_cache_bandwidth_bytes_per_s: Quartiles | None = None
    iops: Quartiles | None = None
    latency_s: Mapping[str, Quartiles] = field(default_factory=dict)
    spatiality_seen: str | None = None
    spatiality_seen_by: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    journal: Mapping[str, Quartiles] = field(default_factory=dict)
    """The activity of ext4's journal, if traced: `traces.journal_figures.FIGURES`."""

    def to_json(self) -> dict[str, Any]:
        found = {key: asdict(value) for key, value in self.latency_s.items()}
        return {
            "duration_s": _json(self.duration_s),
            "bytes": _json(self.bytes),
            "page_cache_bandwidth_bytes_per_s": _json(self.page_cache_bandwidth_bytes_per_s),
            "iops": _json(self.iops),
            "latency_s": {key: found.get(key) for key in LATENCIES} if found else None,
            "spatiality_seen": self.spatiality_seen,
            "spatiality_seen_by": self.spatiality_seen_by,
            "journal": {key: asdict(value) for key, value in self.journal.items()} or None,
        }


def _json(figures: Quartiles | None) -> dict[str, float] | None:
    return asdict(figures) if figures else None


NOTHING = Work()
NAMES = tuple(NOTHING.to_json())
"""The figures of a row that are of its work."""


def work_of(experiment: Experiment, used: Sequence[Observation]) -> Work:
    """Of the valid repetitions that are in the row."""
    phases, windows = [one.phase for one in used], [one.window for one in used]
    cached = [page_cache_bandwidth(experiment, phase) for phase in phases]
    rates = [one.iops for one in used]
    latencies = {
        key: found
        for key in LATENCIES
        if (found := quartiles(_reported(phases, f"latency_{key}_s"))) is not None
    }
    observed = dict.fromkeys(p.spatiality_seen for p in phases if p.spatiality_seen is not None)
    journal = {
        key: found for key in FIGURES if (found := quartiles(_reported(phases, key))) is not None
    }
    lasts = [w.duration_s for w in windows if w.duration_s is not None]
    moved = [float(w.bytes_moved) for w in windows if w.bytes_moved is not None]
    into_cache = [rate for rate, _ in cached if rate is not None]
    served = [rate for rate in rates if rate is not None]
    reasons = {}
    if phases:
        known: tuple[tuple[str, object, str | None], ...] = (
            ("duration_s", lasts, phases[0].window_source),
            ("bytes", moved, "the record has no count of bytes"),
            ("page_cache_bandwidth_bytes_per_s", into_cache, cached[0][1]),
            ("iops", served, "the tool reports none"),
            ("latency_s", latencies, _why_no_latency(phases)),
            ("spatiality_seen", observed, _why_not_observed(phases)),
            ("journal", journal, "the journal was not traced (--trace-journal, on ext4)"),
        )  # fmt: skip
        reasons = {name: why for name, found, why in known if not found and why is not None}
    return Work(
        quartiles(lasts), quartiles(moved), quartiles(into_cache), quartiles(served), latencies,
        "; ".join(observed) or None, _observed_by(phases) if observed else None, reasons,
        journal,
    )  # fmt: skip


def _observed_by(phases: Sequence[Phase]) -> str:
    by = dict.fromkeys(p.spatiality_seen_by or "requests" for p in phases if p.spatiality_seen)
    return "; ".join(by)


def _why_not_observed(phases: Sequence[Phase]) -> str:
    reason = next((p.spatiality_seen_reason for p in phases if p.spatiality_seen_reason), None)
    return reason or "the order of the requests was not observed"


def _reported(phases: Sequence[Phase], name: str) -> list[float]:
    return [phase.metrics[name] for phase in phases if name in phase.metrics]


def _why_no_latency(phases: Sequence[Phase]) -> str:
    if any(name.startswith("read_latency_") for phase in phases for name in phase.metrics):
        return "the tool reports those of reads and of writes separately, in the record"
    return "the tool reports none"
