"""The four-level characterization: bandwidth, power, energy and efficiency of each experiment.

Method: papers' own (docs/method.md). Repetitions are summed up as median and quartiles; efficiency
is bandwidth over mean power, per repetition, then the median.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eeio_results.agreement import Agreement, agreement
from eeio_results.record import DOMAINS, LEVELS, CacheLayers, Experiment, Level, Phase, Run
from eeio_results.store import Campaign

_NO_PROFILE = "no profile of this level is in the suite"
_NO_DATA = "metadata operations move no data"


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles (linear interpolation between order statistics, R's type 7)."""

    median: float
    q1: float
    q3: float


def quartiles(values: Sequence[float]) -> Quartiles | None:
    """None without values; one value is its own quartiles."""
    if not values:
        return None
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return Quartiles(median, q1, q3)


@dataclass(frozen=True)
class DomainFigures:
    """What one meter saw of one power domain, over the valid repetitions. `n` of them have a value;
    `reason` is why the others have none."""

    power_domain: str
    meter: str
    energy_kind: str
    n: int
    power_w: Quartiles | None
    energy_j: Quartiles | None
    energy_uncertainty_j: Quartiles | None
    efficiency_bytes_per_j: Quartiles | None
    efficiency_values: tuple[float, ...]
    reason: str | None
    includes: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    leaves_drives_out: bool = False
    """The MB/J is not that of the storage: what the drives draw is not in the power."""
    doubts: tuple[str, ...] = ()
    """Why the figures are doubtful: which meter contradicts them, and by how much."""

    def contents(self) -> str | None:
        """What the domain holds, in words; None where its meter did not tell."""
        parts = [f"includes {', '.join(self.includes)}"] if self.includes else []
        parts += [f"leaves out {', '.join(self.leaves_out)}"] if self.leaves_out else []
        return f"{self.power_domain} ({self.meter}): {'; '.join(parts)}" if parts else None


@dataclass(frozen=True)
class Row:
    """One experiment, one kind of I/O. `domains` holds the measured sources, `estimates` the
    modelled ones, which are never mixed with them. A null figure has its reason in `reasons`.
    `operations_per_s` is the rate of metadata operations, None for I/O that moves data."""

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
    """What its runs say of the comparison with the device's counters (Run.device_check)."""

    @property
    def measured(self) -> DomainFigures | None:
        """The widest measured domain that has a value."""
        return next((d for d in self.domains if d.power_w is not None), None)

    def to_json(self) -> dict[str, Any]:
        """An object of the `characterization` list (schemas/report.schema.json)."""
        best = self.measured
        experiment = self.experiment
        reasons = sorted(set(self.reasons.values()))
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
            "domains": [_domain_json(figures) for figures in self.domains],
            "estimates": [_domain_json(figures) for figures in self.estimates],
            "reason": "; ".join(reasons) or None,
            "reasons": self.reasons,
            "invalid_reasons": list(self.invalid_reasons),
        }


@dataclass(frozen=True)
class ContextRow:
    """A figure of the machine (lmbench), over the repetitions."""

    campaign: str
    name: str
    unit: str
    n: int
    value: Quartiles

    def to_json(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign,
            "name": self.name,
            "unit": self.unit,
            "n": self.n,
            **asdict(self.value),
        }


def _json(figures: Quartiles | None) -> dict[str, float] | None:
    return asdict(figures) if figures else None


def _domain_json(figures: DomainFigures) -> dict[str, Any]:
    body = asdict(figures)
    del body["efficiency_values"]  # drawn in plots; the records hold them
    return body


def characterize(campaign: Campaign) -> list[Row]:
    """Every row of one campaign, levels in their order, the not measured ones with the reason."""
    groups: dict[str, list[Run]] = {}
    for run in campaign.runs:
        groups.setdefault(run.experiment.id, []).append(run)
    rows: list[Row] = []
    for planned in campaign.design.experiments:
        experiment = planned.experiment
        if experiment.level in LEVELS:
            rows += _experiment_rows(campaign, experiment, groups.get(experiment.id, []))
    for left_out in campaign.design.not_measured:
        experiment = left_out.experiment
        if experiment.level in LEVELS:
            rows.append(_missing_row(campaign, experiment.level, experiment, left_out.reason))
    for level in LEVELS:
        if not any(row.level == level for row in rows):
            rows.append(_missing_row(campaign, level, None, _NO_PROFILE))
    found = agreement(campaign)
    return sorted((_doubted(row, found) for row in rows), key=_sort_key)


def _doubted(row: Row, found: Agreement) -> Row:
    """The row with what its meters contradict over the whole campaign."""
    if not found.contradictions:
        return row
    domains = tuple(
        replace(
            d,
            doubts=(*d.doubts, *found.doubts((d.power_domain, d.meter, d.energy_kind))),
        )
        for d in row.domains
    )
    return replace(row, domains=domains)


def context(campaign: Campaign) -> list[ContextRow]:
    """The machine's own figures: memory bandwidth, latencies."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in campaign.runs:
        if not run.validity:
            for figure in run.context:
                values.setdefault((figure.name, figure.unit), []).append(figure.value)
    rows = []
    for (name, unit), found in values.items():
        summary = quartiles(found)
        assert summary is not None
        rows.append(ContextRow(campaign.name, name, unit, len(found), summary))
    return rows


def power_during(campaign: Campaign) -> dict[tuple[str, str, str], float]:
    """(domain, meter, kind) -> mean power of the valid runs, W."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in campaign.runs:
        for phase in () if run.validity else run.phases:
            for reading in () if phase.validity else phase.energy:
                if reading.valid and reading.power_w is not None:
                    key = (reading.domain, reading.meter, reading.kind)
                    found.setdefault(key, []).append(reading.power_w)
    return {key: statistics.fmean(values) for key, values in found.items()}


def _sort_key(row: Row) -> tuple[Any, ...]:
    experiment = row.experiment
    return (
        LEVELS.index(row.level),
        experiment is None,
        experiment.target if experiment else "",
        experiment.tool if experiment else "",
        row.operation or "",
        ("sequential", "random", "strided", "mixed", "none", None).index(row.spatiality),
        row.request_size_bytes or 0,
        row.cache.buffer or "",
        row.cache.disk or "",
        row.phase or "",
    )


def _experiment_rows(campaign: Campaign, experiment: Experiment, runs: list[Run]) -> list[Row]:
    if not runs:
        reason = "the campaign ended before this experiment ran; `eeio resume` goes on"
        return [_missing_row(campaign, experiment.level, experiment, reason)]
    failed = [run for run in runs if run.validity]
    names = list(dict.fromkeys(phase.name for run in runs for phase in run.phases))
    if not names:
        reasons = tuple(dict.fromkeys(reason for run in failed for reason in run.validity))
        row = _missing_row(
            campaign,
            experiment.level,
            experiment,
            reasons[0] if reasons else "the tool reported no I/O",
        )
        return [replace(row, invalid_runs=len(failed), invalid_reasons=reasons)]
    return [_phase_row(campaign, experiment, runs, name) for name in names]


def _missing_row(
    campaign: Campaign, level: Level, experiment: Experiment | None, reason: str
) -> Row:
    words = f"not measured: {reason}"
    return Row(
        campaign=campaign.name,
        preset=campaign.preset,
        level=level,
        experiment=experiment,
        phase=None,
        operation=experiment.operation if experiment else None,
        spatiality=experiment.spatiality if experiment else None,
        request_size_bytes=experiment.request_size_bytes if experiment else None,
        cache=experiment.cache if experiment else CacheLayers(),
        n=0,
        invalid_runs=0,
        bandwidth_bytes_per_s=None,
        reasons=dict.fromkeys(
            ("bandwidth_bytes_per_s", "power_w", "energy_j", "efficiency_bytes_per_j"), words
        ),
    )


def _phase_row(campaign: Campaign, experiment: Experiment, runs: list[Run], name: str) -> Row:
    pairs = [(run, phase) for run in runs for phase in run.phases if phase.name == name]
    good = [phase for run, phase in pairs if not run.validity and not phase.validity]
    invalid_reasons = dict.fromkeys(reason for run in runs for reason in run.validity)
    invalid_reasons.update(dict.fromkeys(reason for _, phase in pairs for reason in phase.validity))
    bandwidths = [p.bandwidth_bytes_per_s for p in good if p.bandwidth_bytes_per_s is not None]
    first = pairs[0][1]
    figures = _domains(good)
    measured = tuple(d for d in figures if d.energy_kind != "modelled")
    estimates = tuple(d for d in figures if d.energy_kind == "modelled")
    reasons: dict[str, str] = {}
    if not bandwidths:
        reasons["bandwidth_bytes_per_s"] = next(
            iter(invalid_reasons), "the tool gave no bandwidth for this phase"
        )
    if not any(d.power_w is not None for d in measured):
        why = _why_no_energy(campaign, measured, good, tuple(invalid_reasons))
        reasons.update(dict.fromkeys(("power_w", "energy_j", "efficiency_bytes_per_j"), why))
    elif not any(d.efficiency_bytes_per_j for d in measured):
        poor = (d.reason for d in measured if d.reason and d.power_w is not None)
        why_not = next((p.why_no_efficiency for p in good if p.why_no_efficiency), None)
        why_not = why_not or next(poor, None)
        if why_not is not None:
            reasons["efficiency_bytes_per_j"] = why_not
    rates: list[float] = []
    if first.operation == "metadata":
        rates = [p.metrics["operations_per_s"] for p in good if "operations_per_s" in p.metrics]
        if good and not bandwidths:
            reasons.update(
                dict.fromkeys(("bandwidth_bytes_per_s", "efficiency_bytes_per_j"), _NO_DATA)
            )
    return Row(
        campaign=campaign.name,
        preset=campaign.preset,
        level=experiment.level,
        experiment=experiment,
        phase=name,
        operation=first.operation,
        spatiality=first.spatiality,
        request_size_bytes=first.request_size_bytes,
        cache=CacheLayers(experiment.cache.buffer, _disk_cache(experiment, runs)),
        n=len(bandwidths) or len(rates),
        invalid_runs=len(runs) - len(good),
        bandwidth_bytes_per_s=quartiles(bandwidths),
        bandwidth_values=tuple(bandwidths),
        operations_per_s=quartiles(rates),
        domains=measured,
        estimates=estimates,
        reasons=reasons,
        invalid_reasons=tuple(invalid_reasons),
        device_checks=tuple(dict.fromkeys(filter(None, (run.device_check for run in runs)))),
    )


def _disk_cache(experiment: Experiment, runs: list[Run]) -> Any:
    """What was asked for, else what was found, if it was the same in every run."""
    if experiment.cache.disk is not None:
        return experiment.cache.disk
    found = {run.disk_cache_found for run in runs}
    return found.pop() if len(found) == 1 else None


def _why_no_energy(
    campaign: Campaign,
    measured: Iterable[DomainFigures],
    good: list[Phase],
    invalid_reasons: tuple[str, ...],
) -> str:
    for figures in measured:
        if figures.reason:
            return figures.reason
    if not good and invalid_reasons:
        return invalid_reasons[0]
    if campaign.idle_reason:
        return campaign.idle_reason
    if any(phase.start_s is None for phase in good):
        return f"the tool does not tell when it did I/O: {good[0].window_source}"
    return "no measured power source was found; only an estimate is there"


def _agreed(told: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What all repetitions say."""
    return tuple(word for word in told[0] if all(word in words for words in told))


def _domains(good: list[Phase]) -> list[DomainFigures]:
    keys = dict.fromkeys(
        (reading.domain, reading.meter, reading.kind) for phase in good for reading in phase.energy
    )
    found = []
    for domain, meter, kind in sorted(keys, key=lambda key: (DOMAINS.index(key[0]), key)):
        readings = [
            (phase, reading)
            for phase in good
            for reading in phase.energy
            if (reading.domain, reading.meter, reading.kind) == (domain, meter, kind)
        ]
        valid = [(phase, reading) for phase, reading in readings if reading.valid]
        powers = [r.power_w for _, r in valid if r.power_w is not None]
        efficiencies = [
            value
            for phase, reading in valid
            if reading.why_not_ranked is None
            and (value := phase.efficiency_bytes_per_j(reading.power_w)) is not None
        ]
        reasons = [r for _, reading in readings if reading.power_w is None for r in reading.reasons]
        poor = dict.fromkeys(why for _, r in valid if (why := r.why_not_ranked))
        without = "no valid reading" if len(readings) == len(good) else "the meter was not read"
        found.append(
            DomainFigures(
                power_domain=domain,
                meter=meter,
                energy_kind=kind,
                n=len(powers),
                power_w=quartiles(powers),
                energy_j=quartiles([r.energy_j for _, r in valid if r.energy_j is not None]),
                energy_uncertainty_j=quartiles(
                    [r.uncertainty_j for _, r in valid if r.uncertainty_j is not None]
                ),
                efficiency_bytes_per_j=quartiles(efficiencies),
                efficiency_values=tuple(efficiencies),
                reason=next(iter(poor), None)
                if len(powers) == len(good)
                else next(iter(reasons), without),
                includes=_agreed([reading.includes for _, reading in readings]),
                leaves_out=_agreed([reading.leaves_out for _, reading in readings]),
                leaves_drives_out=any(reading.leaves_drives_out for _, reading in readings),
                doubts=tuple(
                    dict.fromkeys(why for _, r in valid if r.doubtful for why in r.reasons)
                ),
            )
        )
    return found
