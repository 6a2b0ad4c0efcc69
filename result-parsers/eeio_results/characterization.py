"""The four-level characterization: bandwidth, power, energy and efficiency of each experiment.

Method: docs/explanation/energy-and-uncertainty.md. Repetitions are summarized by
median and quartiles; J/GB is the energy of the window over its bytes,
and MB/J is 1000 divided by J/GB.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eeio_limits.reasons import NO_DURABLE_POWER
from eeio_results import metrics
from eeio_results.agreement import Agreement, agreement
from eeio_results.domains import (
    DomainFigures,
    Key,
    Quartiles,
    domain_figures,
    idle_powers,
    quartiles,
)
from eeio_results.imported import IMPORTED
from eeio_results.ranking import RULES, Rules, why_not_ranked, why_too_short
from eeio_results.record import (
    LEVELS,
    MEMORY_CACHE,
    TWO_LEVELS,
    CacheLayers,
    Experiment,
    Level,
    Phase,
    Run,
)
from eeio_results.rows import FIRST, LATER, Row
from eeio_results.statistics.levels import two_levels
from eeio_results.store import Campaign, once
from eeio_results.units import MB
from eeio_results.windows import (
    Window,
    energy_of,
    flush_of,
    judged,
    request_size_of,
    writes,
)
from eeio_results.work import NAMES as WORK
from eeio_results.work import (
    iops_of,
    operations_rate,
    why_not_powered,
    work_of,
)

_NO_PROFILE = "no profile of this level is in the suite"
_NO_RESULT = "no imported result is of this level"
_NO_BYTES = "the number of bytes is unknown, and therefore the bandwidth"
_NO_DATA = "metadata operations move no data"


_POWER = tuple(name for name in LATER if name not in (*WORK, "drive", "energy_j_per_operation"))
_OF_DATA = (
    "efficiency_bytes_per_j", "energy_j_per_gb", "marginal.energy_j_per_gb",
    "marginal.efficiency_bytes_per_j",
)  # fmt: skip
_NO_IDENTITY = "the record contains no identity of the drive, only the kernel's name"


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


def characterize(campaign: Campaign, rules: Rules = RULES) -> list[Row]:
    """Every row of one campaign, levels in their order, the not measured ones with the reason."""
    if rules != RULES:
        return _characterize(campaign, rules)
    return list(once(campaign, "rows", lambda campaign: _characterize(campaign, RULES)))


def _characterize(campaign: Campaign, rules: Rules) -> list[Row]:
    groups = campaign.runs_by_experiment()
    rows: list[Row] = []
    for planned in campaign.design.experiments:
        experiment = planned.experiment
        if experiment.level in LEVELS:
            rows += _experiment_rows(campaign, experiment, groups.get(experiment.id, []), rules)
    for left_out in campaign.design.not_measured:
        experiment = left_out.experiment
        if experiment.level in LEVELS:
            rows.append(_missing_row(campaign, experiment.level, experiment, left_out.reason))
    for level in LEVELS:
        if not any(row.level == level for row in rows):
            why = _NO_RESULT if campaign.design.suite == IMPORTED else _NO_PROFILE
            rows.append(_missing_row(campaign, level, None, why))
    found = agreement(campaign)
    requested_s = campaign.design.protocol.min_phase_s
    return sorted(
        (_ranked(_doubted(row, found), rules, requested_s) for row in rows), key=_sort_key
    )


def _ranked(row: Row, rules: Rules, requested_s: float | None) -> Row:
    """The row with the reason why each of its domains is not ranked, if any."""
    lasted = row.work.duration_s
    too_short = why_too_short(lasted.median if lasted else None, requested_s)

    def judge(every: tuple[DomainFigures, ...]) -> tuple[DomainFigures, ...]:
        return tuple(
            replace(
                d,
                ranked_reason=row.remarks.get(MEMORY_CACHE)
                or why_not_ranked(d, row.durable, row.reasons.get("durable"), rules, too_short),
            )
            for d in every
        )

    return replace(row, domains=judge(row.domains), estimates=judge(row.estimates))


def _doubted(row: Row, found: Agreement) -> Row:
    """The row with the contradictions of its meters over the complete campaign."""
    if not found.contradictions:
        return row
    domains = tuple(
        replace(
            d,
            doubts=(*d.doubts, *found.doubts(d.key)),
        )
        for d in row.domains
    )
    return replace(row, domains=domains)


def context(campaign: Campaign) -> list[ContextRow]:
    """The machine's context figures: memory bandwidth, latencies."""
    return list(once(campaign, "context", _context))


def _context(campaign: Campaign) -> list[ContextRow]:
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
    return dict(once(campaign, "power_during", _power_during))


def _power_during(campaign: Campaign) -> list[tuple[Key, float]]:
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in campaign.runs:
        for phase in () if run.validity else run.phases:
            for reading in () if phase.validity else energy_of(phase):
                if reading.valid and reading.power_w is not None:
                    key = (reading.domain, reading.meter, reading.kind)
                    found.setdefault(key, []).append(reading.power_w)
    return [(key, statistics.fmean(values)) for key, values in found.items()]


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


def _experiment_rows(
    campaign: Campaign, experiment: Experiment, runs: list[Run], rules: Rules
) -> list[Row]:
    if not runs:
        reason = "the campaign ended before this experiment ran; `eeio resume` continues it"
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
    return [_phase_row(campaign, experiment, runs, name, rules) for name in names]


def _missing_row(
    campaign: Campaign, level: Level, experiment: Experiment | None, reason: str
) -> Row:
    text = f"not measured: {reason}"
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
        reasons={
            name: text
            for name in (*FIRST, *LATER)
            if name not in ("drive", "energy_j_per_operation")
            or (name == "drive" and campaign.machine.drive is None)
        },
        flush=flush_of(experiment, experiment.operation) if experiment else None,
        details=campaign.details[experiment.id] if experiment else (),
        drive=campaign.machine.drive,
    )


def _phase_row(
    campaign: Campaign, experiment: Experiment, runs: list[Run], name: str, rules: Rules
) -> Row:
    pairs = [(run, phase) for run in runs for phase in run.phases if phase.name == name]
    good = [phase for run, phase in pairs if not run.validity and not phase.validity]
    used, left_out = judged(experiment, good)
    work = work_of(experiment, used)
    windows = [window for _, window in used]
    invalid_reasons = dict.fromkeys(reason for run in runs for reason in run.validity)
    invalid_reasons.update(dict.fromkeys(reason for _, phase in pairs for reason in phase.validity))
    uncounted = [phase for phase in good if phase.bytes_moved is None]
    bandwidths = [w.bandwidth_bytes_per_s for w in windows if w.bandwidth_bytes_per_s is not None]
    partly = None
    if bandwidths and len(bandwidths) < len(windows):
        # A median of a part of the repetitions is not one of the row.
        lacking = len(windows) - len(bandwidths)
        partly = f"{lacking} of {len(windows)} repetitions moved no bytes, or report no bandwidth"
        bandwidths = []
        windows = [
            replace(w, bandwidth_bytes_per_s=None, bytes_moved=None, why_no_efficiency=partly)
            for w in windows
        ]
        used = list(zip((phase for phase, _ in used), windows, strict=True))
    first = pairs[0][1]
    figures = [
        replace(one, metrics=metrics.further(used, one.key))
        for one in domain_figures(
            windows,
            [iops_of(phase, window) for phase, window in used],
            [operations_rate(*of) if why_not_powered(*of) is None else None for of in used],
            idle_powers(campaign.idle),
            campaign.idle_reason,
            rules.busy,
        )
    ]
    measured = tuple(d for d in figures if d.energy_kind != "modelled")
    estimates = tuple(d for d in figures if d.energy_kind == "modelled")
    reasons = dict(work.reasons)
    if campaign.machine.drive is None:
        reasons["drive"] = campaign.machine.missing.get("drive_id", _NO_IDENTITY)
    if not bandwidths:
        reasons["bandwidth_bytes_per_s"] = partly or next(
            iter(invalid_reasons),
            _NO_BYTES if uncounted else "the tool reported no bandwidth for this phase",
        )
        if uncounted:
            reasons.setdefault("efficiency_bytes_per_j", reasons["bandwidth_bytes_per_s"])
    best = next((d for d in measured if d.power_w is not None), None)
    if best is None:
        why = _why_no_energy(campaign, measured, used, tuple(invalid_reasons))
        reasons.update(dict.fromkeys((*FIRST[1:], *_POWER), why))
    else:
        reasons |= best.reasons
        if not any(d.efficiency_bytes_per_j for d in measured):
            poor = (d.reason for d in measured if d.reason and d.power_w is not None)
            why_not = next((w.why_no_efficiency for w in windows if w.why_no_efficiency), None)
            why_not = why_not or next(poor, None)
            if why_not is not None:
                reasons["efficiency_bytes_per_j"] = why_not
    rates = [rate for of in used if (rate := operations_rate(*of)) is not None]
    if first.operation == "metadata" and good and not bandwidths:
        for name_of in ("bandwidth_bytes_per_s", *_OF_DATA):
            reasons[name_of] = _NO_DATA
    if rates and (best is None or best.energy_j_per_operation is None):
        if best is None:
            reasons["energy_j_per_operation"] = reasons["energy_j"]
        elif apart := next(filter(None, (why_not_powered(*of) for of in used)), None):
            reasons["energy_j_per_operation"] = apart
    durable = _durable(first.operation, windows)
    why_not_durable = next((w.durable_reason for w in windows if w.durable_reason), None)
    if left_out or (durable is False and why_not_durable):
        reasons["durable"] = left_out or why_not_durable or ""
    return Row(
        campaign=campaign.name,
        preset=campaign.preset,
        level=experiment.level,
        experiment=experiment,
        phase=name,
        operation=first.operation,
        spatiality=first.spatiality,
        request_size_bytes=request_size_of(experiment, first),
        cache=CacheLayers(experiment.cache.buffer, _disk_cache(experiment, runs)),
        # Experiments that move uncounted bytes have time and power, too.
        n=len(bandwidths) or len(rates) or (len(used) if partly else len(uncounted)),
        invalid_runs=len(runs) - len(good),
        bandwidth_bytes_per_s=quartiles(bandwidths),
        bandwidth_values=tuple(bandwidths),
        operations_per_s=quartiles(rates),
        domains=measured,
        estimates=estimates,
        metrics=metrics.further(used),
        details=campaign.details[experiment.id],
        reasons=reasons,
        invalid_reasons=tuple(invalid_reasons),
        device_checks=tuple(dict.fromkeys(filter(None, (run.device_check for run in runs)))),
        remarks=_remarks(runs) | _levels(bandwidths),
        flush=flush_of(experiment, first.operation),
        durable=durable,
        work=work,
        drive=campaign.machine.drive,
    )


def _remarks(runs: Sequence[Run]) -> dict[str, str]:
    """Of each kind the first, with the number of runs if not all have one."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for kind, text in run.remarks.items():
            found.setdefault(kind, []).append(text)
    return {
        kind: texts[0] + ("" if len(texts) == len(runs) else f" ({len(texts)} of {len(runs)} runs)")
        for kind, texts in found.items()
    }


def _levels(bandwidths: Sequence[float]) -> dict[str, str]:
    """A remark on bandwidths of two levels, whose median describes neither."""
    levels = two_levels(bandwidths)
    if levels is None:
        return {}
    low, high = (
        f"{len(level)} runs about {statistics.median(level) / MB:.4g} MB/s" for level in levels
    )
    return {TWO_LEVELS: f"two levels: {low}, {high}; its median and interval describe neither"}


def _durable(operation: str | None, windows: Sequence[Window]) -> bool | None:
    """For a row whose windows are all of one kind; None if there is no write or no measurement."""
    return bool(windows[0].durable) if windows and writes(operation) else None


def _disk_cache(experiment: Experiment, runs: list[Run]) -> Any:
    """The requested state, else the state found, if it was the same in every run."""
    if experiment.cache.disk is not None:
        return experiment.cache.disk
    found = {run.disk_cache_found for run in runs}
    return found.pop() if len(found) == 1 else None


def _why_no_energy(
    campaign: Campaign,
    measured: Iterable[DomainFigures],
    used: list[tuple[Phase, Window]],
    invalid_reasons: tuple[str, ...],
) -> str:
    for figures in measured:
        if figures.reason:
            return figures.reason
    if not used and invalid_reasons:
        return invalid_reasons[0]
    if campaign.design.suite == IMPORTED and not any(phase.energy for phase, _ in used):
        return "the import had no power log of its time (`eeio import --power LOG`)"
    if campaign.idle_reason:
        return campaign.idle_reason
    if any(phase.start_s is None for phase, _ in used):
        return f"the tool does not report the time of its I/O: {used[0][0].window_source}"
    if any(phase.energy and not window.energy for phase, window in used):
        return NO_DURABLE_POWER
    return "no measured power source was found, only an estimate"
