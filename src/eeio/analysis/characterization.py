"""The four-level characterization: bandwidth, power, energy and efficiency of each experiment.

Method: docs/explanation/energy-and-uncertainty.md. Repetitions are summarized by
median and quartiles; J/GB is the energy of the window over its bytes,
and MB/J is 1000 divided by J/GB.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

from eeio.analysis import metrics
from eeio.analysis.domain_figures import DomainFigures, domain_figures
from eeio.analysis.meter_agreement import agreement
from eeio.analysis.observation import Key, Missing
from eeio.analysis.ranking import RULES, Judgement, Rules
from eeio.analysis.repetitions import Repetitions, repetitions_of
from eeio.analysis.rows import NO_IDENTITY, NOT_OBSERVED, NOT_TRACED, Row
from eeio.analysis.selection import main_figures
from eeio.analysis.summary import Figure, Quartiles, quartiles
from eeio.record.imported_design import IMPORTED
from eeio.record.reasons import NO_DURABLE_POWER
from eeio.record.run import (
    LEVELS,
    MEMORY_CACHE,
    TWO_LEVELS,
    CacheLayers,
    Experiment,
    Level,
    Phase,
    Run,
)
from eeio.record.store import Campaign, once
from eeio.record.windows import energy_of, flush_of, request_size_of
from eeio.statistics.levels import two_levels
from eeio.traces.journal_figures import FIGURES as JOURNAL
from eeio.units.sizes import MB

_NO_PROFILE = "no profile of this level is in the suite"
_NO_RESULT = "no imported result is of this level"


class ContextRowBody(TypedDict):
    campaign: str
    name: str
    unit: str
    n: int
    median: float
    q1: float
    q3: float


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
    return list(once(campaign, "rows", _by_usual_rules, tuple[Row, ...]))


def _by_usual_rules(campaign: Campaign) -> tuple[Row, ...]:
    return tuple(_characterize(campaign, RULES))


def _characterize(campaign: Campaign, rules: Rules) -> list[Row]:
    runs, repetitions = campaign.runs_by_experiment(), repetitions_of(campaign)
    least_s = campaign.design.protocol.min_phase_s
    judgement = Judgement(rules, agreement(campaign), least_s)
    rows: list[Row] = []
    for planned in campaign.design.experiments:
        experiment = planned.experiment
        if experiment.level not in LEVELS:
            continue
        of_experiment = repetitions.get(experiment.id, [])
        for of_phase in of_experiment:
            rows.append(_phase_row(of_phase, judgement))
        if not of_experiment:
            rows.append(_row_without_phase(campaign, experiment, runs.get(experiment.id, [])))
    for left_out in campaign.design.not_measured:
        experiment = left_out.experiment
        if experiment.level in LEVELS:
            rows.append(_missing_row(campaign, experiment.level, experiment, left_out.reason))
    for level in LEVELS:
        if not any(row.level == level for row in rows):
            reason = _NO_PROFILE
            if campaign.design.suite == IMPORTED:
                reason = _NO_RESULT
            rows.append(_missing_row(campaign, level, None, reason))
    return sorted(rows, key=_sort_key)


def context(campaign: Campaign) -> list[ContextRow]:
    """The machine's context figures: memory bandwidth, latencies."""
    return list(once(campaign, "context", _context, tuple[ContextRow, ...]))


def _context(campaign: Campaign) -> tuple[ContextRow, ...]:
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
    return tuple(rows)


def power_during(campaign: Campaign) -> dict[tuple[str, str, str], float]:
    """(domain, meter, kind) -> mean power of the valid runs, W."""
    return dict(once(campaign, "power_during", _power_during, tuple[tuple[Key, float], ...]))


def _power_during(campaign: Campaign) -> tuple[tuple[Key, float], ...]:
    powers_w: dict[tuple[str, str, str], list[float]] = {}
    for run in campaign.runs:
        for phase in run.phases:
            if run.validity or phase.validity:
                continue
            for reading in energy_of(phase):
                if reading.valid and reading.power_w is not None:
                    powers_w.setdefault(reading.key, []).append(reading.power_w)
    return tuple((key, statistics.fmean(values)) for key, values in powers_w.items())


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


def _row_without_phase(campaign: Campaign, experiment: Experiment, runs: Sequence[Run]) -> Row:
    """Of an experiment that did not run, or whose runs reported no I/O."""
    reasons = tuple(dict.fromkeys(reason for run in runs for reason in run.validity))
    why = "the tool reported no I/O"
    if reasons:
        why = reasons[0]
    if not runs:
        why = "the campaign ended before this experiment ran; `eeio resume` continues it"
    row = _missing_row(campaign, experiment.level, experiment, why)
    invalid_runs = sum(not run.valid for run in runs)
    return replace(row, invalid_runs=invalid_runs, invalid_reasons=reasons)


def _missing_row(
    campaign: Campaign, level: Level, experiment: Experiment | None, reason: str
) -> Row:
    why = f"not measured: {reason}"
    row = Row(
        campaign=campaign.name,
        preset=campaign.preset,
        level=level,
        experiment=experiment,
        phase=None,
        operation=None,
        spatiality=None,
        request_size_bytes=None,
        cache=CacheLayers(),
        n=0,
        invalid_runs=0,
        figures=_none(why),
        flush=None,
        spatiality_seen=Missing(why),
        journal=Missing(why),
        details=(),
        drive=_drive(campaign),
    )
    if experiment is None:
        return row
    return replace(
        row,
        operation=experiment.operation,
        spatiality=experiment.spatiality,
        request_size_bytes=experiment.request_size_bytes,
        cache=experiment.cache,
        flush=flush_of(experiment, experiment.operation),
        details=campaign.details[experiment.id],
    )


def _phase_row(repetitions: Repetitions, judgement: Judgement) -> Row:
    campaign, experiment = repetitions.campaign, repetitions.experiment
    observations, runs, first = repetitions.observations, repetitions.runs, repetitions.first
    remarks = _remarks(runs) | _levels(repetitions.bandwidths)
    sources = []
    for figures in domain_figures(observations, campaign, judgement.rules.busy):
        sources.append(judgement.of(figures, repetitions, remarks.get(MEMORY_CACHE)))
    measured = tuple(figures for figures in sources if figures.energy_kind != "modelled")
    phases = [observation.phase for observation in observations]
    return Row(
        campaign=campaign.name,
        preset=campaign.preset,
        level=experiment.level,
        experiment=experiment,
        phase=repetitions.name,
        operation=first.operation,
        spatiality=first.spatiality,
        request_size_bytes=request_size_of(experiment, first),
        cache=CacheLayers(experiment.cache.buffer, _disk_cache(experiment, runs)),
        n=repetitions.n,
        invalid_runs=len(runs) - len(repetitions.good),
        figures=_figures(repetitions, measured),
        bandwidth_values=tuple(repetitions.bandwidths),
        domains=measured,
        estimates=tuple(figures for figures in sources if figures.energy_kind == "modelled"),
        details=campaign.details[experiment.id],
        invalid_reasons=repetitions.invalid_reasons,
        device_checks=tuple(dict.fromkeys(filter(None, (run.device_check for run in runs)))),
        remarks=remarks,
        flush=flush_of(experiment, first.operation),
        durable=repetitions.durable,
        why_not_durable=repetitions.why_not_durable,
        spatiality_seen=_order_seen(phases),
        spatiality_seen_by=_order_seen_by(phases),
        journal=_journal(phases),
        drive=_drive(campaign),
    )


def _figures(repetitions: Repetitions, measured: Sequence[DomainFigures]) -> dict[str, Figure]:
    """The metrics of the row; those of power domains only if no source stands for it."""
    observations = repetitions.observations
    if not observations:
        return _none(next(iter(repetitions.invalid_reasons), "no repetition is valid"))
    figures = metrics.summaries(metrics.in_rows(of_domain=False), observations)
    if repetitions.partly is not None:
        figures["bandwidth_bytes_per_s"] = Missing(repetitions.partly)
    if main_figures(measured, repetitions.experiment.cost_domains) is None:
        reason = _why_no_energy(repetitions, measured)
        unread = []
        for observation in observations:
            unread.append(replace(observation, why_not_read=Missing(reason)))
        figures |= metrics.summaries(metrics.in_rows(of_domain=True), unread)
    return figures


def _none(why: str) -> dict[str, Figure]:
    """Every metric, missing for the same reason."""
    return {metric.key: Missing(why) for metric in metrics.METRICS if metric.in_rows}


def _drive(campaign: Campaign) -> str | Missing:
    if campaign.machine.drive is not None:
        return campaign.machine.drive
    reason = campaign.machine.missing.get("drive_id")
    if reason is None:
        return NO_IDENTITY
    return Missing(reason)


def _order_seen(phases: Sequence[Phase]) -> str | Missing:
    orders = [phase.spatiality_seen for phase in phases if phase.spatiality_seen is not None]
    if orders:
        return "; ".join(dict.fromkeys(orders))
    reasons = [phase.spatiality_seen_reason for phase in phases if phase.spatiality_seen_reason]
    if reasons:
        return Missing(reasons[0])
    return NOT_OBSERVED


def _order_seen_by(phases: Sequence[Phase]) -> str | None:
    seen = [phase for phase in phases if phase.spatiality_seen is not None]
    return (
        "; ".join(dict.fromkeys(phase.spatiality_seen_by or "requests" for phase in seen)) or None
    )


def _journal(phases: Sequence[Phase]) -> dict[str, Quartiles] | Missing:
    figures: dict[str, Quartiles] = {}
    for name in JOURNAL:
        of_phases = quartiles([phase.metrics[name] for phase in phases if name in phase.metrics])
        if of_phases is not None:
            figures[name] = of_phases
    return figures or NOT_TRACED


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


def _disk_cache(experiment: Experiment, runs: Sequence[Run]) -> Any:
    """The requested state, else the state found, if it was the same in every run."""
    if experiment.cache.disk is not None:
        return experiment.cache.disk
    states = {run.disk_cache_found for run in runs}
    if len(states) == 1:
        return states.pop()
    return None


def _why_no_energy(repetitions: Repetitions, measured: Iterable[DomainFigures]) -> str:
    campaign, observations = repetitions.campaign, repetitions.observations
    for figures in measured:
        if figures.reason:
            return figures.reason
    if not observations and repetitions.invalid_reasons:
        return repetitions.invalid_reasons[0]
    phases = [observation.phase for observation in observations]
    if campaign.design.suite == IMPORTED and not any(phase.energy for phase in phases):
        return "the import had no power log of its time (`eeio import --power LOG`)"
    if campaign.idle_reason:
        return campaign.idle_reason
    if any(phase.start_s is None for phase in phases):
        return f"the tool does not report the time of its I/O: {phases[0].window_source}"
    if any(
        observation.phase.energy and not observation.window.energy for observation in observations
    ):
        return NO_DURABLE_POWER
    return "no measured power source was found, only an estimate"
