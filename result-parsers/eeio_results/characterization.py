"""The four-level characterization: bandwidth, power, energy and efficiency of each experiment.

Method: docs/explanation/energy-and-uncertainty.md. Repetitions are summarized by
median and quartiles; J/GB is the energy of the window over its bytes,
and MB/J is 1000 divided by J/GB.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from eeio_limits.reasons import NO_DURABLE_POWER
from eeio_results import metrics
from eeio_results.agreement import Agreement, agreement
from eeio_results.domains import (
    DomainFigures,
    Quartiles,
    domain_figures,
    idle_powers,
    quartiles,
)
from eeio_results.imported import IMPORTED
from eeio_results.observation import Key, Observation
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
from eeio_results.selection import judged, main_figures
from eeio_results.statistics.levels import two_levels
from eeio_results.store import Campaign, once
from eeio_results.units import MB
from eeio_results.windows import (
    energy_of,
    flush_of,
    request_size_of,
    writes,
)
from eeio_results.work import NAMES as WORK
from eeio_results.work import work_of

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
                    key = reading.key
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
    return [_phase_row(_Repetitions(campaign, experiment, runs, name), rules) for name in names]


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


@dataclass(frozen=True)
class _Repetitions:
    """The runs of an experiment, and the phases of one name in them."""

    campaign: Campaign
    experiment: Experiment
    runs: Sequence[Run]
    name: str

    @cached_property
    def pairs(self) -> list[tuple[Run, Phase]]:
        return [
            (run, phase) for run in self.runs for phase in run.phases if phase.name == self.name
        ]

    @cached_property
    def good(self) -> list[Phase]:
        """The valid ones."""
        return [phase for run, phase in self.pairs if not run.validity and not phase.validity]

    @cached_property
    def first(self) -> Phase:
        return self.pairs[0][1]

    @cached_property
    def judged(self) -> tuple[list[Observation], str | None]:
        """The valid ones that may share a median, and why others may not."""
        return judged(self.experiment, self.good)

    @property
    def left_out(self) -> str | None:
        """Why some of the valid ones may not share a median with the others."""
        return self.judged[1]

    @cached_property
    def partly(self) -> str | None:
        """Why the bandwidths of some repetitions are none of the row: a median of a part of the
        repetitions is not one of the row."""
        used = self.judged[0]
        lacking = sum(observation.window.bandwidth_bytes_per_s is None for observation in used)
        if lacking in (0, len(used)):
            return None
        return f"{lacking} of {len(used)} repetitions moved no bytes, or report no bandwidth"

    @cached_property
    def observations(self) -> list[Observation]:
        """The valid ones that share a median."""
        used = self.judged[0]
        if self.partly is None:
            return used
        windows = [
            replace(
                observation.window,
                bandwidth_bytes_per_s=None,
                bytes_moved=None,
                why_no_efficiency=self.partly,
            )
            for observation in used
        ]
        return [
            Observation(observation.phase, window)
            for observation, window in zip(used, windows, strict=True)
        ]

    @cached_property
    def bandwidths(self) -> list[float]:
        rates = [observation.window.bandwidth_bytes_per_s for observation in self.observations]
        return [rate for rate in rates if rate is not None]

    @cached_property
    def rates(self) -> list[float]:
        """Operations per second."""
        rates = [observation.operations_per_s for observation in self.observations]
        return [rate for rate in rates if rate is not None]

    @cached_property
    def uncounted(self) -> list[Phase]:
        """Those whose bytes are not known."""
        return [phase for phase in self.good if phase.bytes_moved is None]

    @cached_property
    def invalid_reasons(self) -> tuple[str, ...]:
        of_runs = [reason for run in self.runs for reason in run.validity]
        of_phases = [reason for _, phase in self.pairs for reason in phase.validity]
        return tuple(dict.fromkeys(of_runs + of_phases))

    @property
    def n(self) -> int:
        """Repetitions with figures. Experiments that move uncounted bytes have time and power,
        too."""
        if self.bandwidths or self.rates:
            return len(self.bandwidths) or len(self.rates)
        return len(self.observations) if self.partly else len(self.uncounted)

    @property
    def durable(self) -> bool | None:
        """All windows are of one kind; None if there is no write or no measurement."""
        if not self.observations or not writes(self.first.operation):
            return None
        return bool(self.observations[0].window.durable)


def _phase_row(repetitions: _Repetitions, rules: Rules) -> Row:
    campaign, experiment = repetitions.campaign, repetitions.experiment
    observations, runs, first = repetitions.observations, repetitions.runs, repetitions.first
    # The bytes of the repetitions stay known if their bandwidth is none of the row.
    work = work_of(experiment, repetitions.judged[0])
    sources = domain_figures(
        observations, idle_powers(campaign.idle), campaign.idle_reason, rules.busy
    )
    sources = [
        replace(figures, metrics=metrics.further(observations, figures.key)) for figures in sources
    ]
    measured = tuple(figures for figures in sources if figures.energy_kind != "modelled")
    best = main_figures(measured, experiment.cost_domains)
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
        bandwidth_bytes_per_s=quartiles(repetitions.bandwidths),
        bandwidth_values=tuple(repetitions.bandwidths),
        operations_per_s=quartiles(repetitions.rates),
        domains=measured,
        estimates=tuple(figures for figures in sources if figures.energy_kind == "modelled"),
        metrics=metrics.further(observations),
        details=campaign.details[experiment.id],
        reasons={
            **work.reasons,
            **_why_no_drive(campaign),
            **_why_no_bandwidth(repetitions),
            **_why_no_cost(repetitions, measured, best),
            **_why_not_of_operations(repetitions, measured, best),
            **_why_not_durable(repetitions),
        },
        invalid_reasons=repetitions.invalid_reasons,
        device_checks=tuple(dict.fromkeys(filter(None, (run.device_check for run in runs)))),
        remarks=_remarks(runs) | _levels(repetitions.bandwidths),
        flush=flush_of(experiment, first.operation),
        durable=repetitions.durable,
        work=work,
        drive=campaign.machine.drive,
    )


def _why_no_drive(campaign: Campaign) -> dict[str, str]:
    if campaign.machine.drive is not None:
        return {}
    return {"drive": campaign.machine.missing.get("drive_id", _NO_IDENTITY)}


def _why_no_bandwidth(repetitions: _Repetitions) -> dict[str, str]:
    if repetitions.bandwidths:
        return {}
    why = repetitions.partly or next(iter(repetitions.invalid_reasons), None)
    if why is None:
        has_bytes = not repetitions.uncounted
        why = "the tool reported no bandwidth for this phase" if has_bytes else _NO_BYTES
    reasons = {"bandwidth_bytes_per_s": why}
    if repetitions.uncounted:
        reasons["efficiency_bytes_per_j"] = why
    return reasons


def _why_no_cost(
    repetitions: _Repetitions,
    measured: Sequence[DomainFigures],
    best: DomainFigures | None,
) -> dict[str, str]:
    """Why power, energy and the figures of a GB are missing; `best` is the main source."""
    if best is None:
        why = _why_no_energy(repetitions, measured)
        return dict.fromkeys((*FIRST[1:], *_POWER), why)
    reasons = dict(best.reasons)
    if any(figures.efficiency_bytes_per_j for figures in measured):
        return reasons
    of_windows = [observation.window.why_no_efficiency for observation in repetitions.observations]
    of_sources = [figures.reason for figures in measured if figures.power_w is not None]
    why_not = next((why for why in (*of_windows, *of_sources) if why), None)
    if why_not is not None:
        reasons["efficiency_bytes_per_j"] = why_not
    return reasons


def _why_not_of_operations(
    repetitions: _Repetitions,
    measured: Sequence[DomainFigures],
    best: DomainFigures | None,
) -> dict[str, str]:
    """Of rows that count operations: why there are no figures of data, and none of an operation."""
    reasons: dict[str, str] = {}
    if (
        repetitions.first.operation == "metadata"
        and repetitions.good
        and not repetitions.bandwidths
    ):
        reasons = dict.fromkeys(("bandwidth_bytes_per_s", *_OF_DATA), _NO_DATA)
    if not repetitions.rates or (best is not None and best.energy_j_per_operation is not None):
        return reasons
    if best is None:
        reasons["energy_j_per_operation"] = _why_no_energy(repetitions, measured)
        return reasons
    unpowered = [observation.why_operations_unpowered for observation in repetitions.observations]
    why = next((why for why in unpowered if why), None)
    if why is not None:
        reasons["energy_j_per_operation"] = why
    return reasons


def _why_not_durable(repetitions: _Repetitions) -> dict[str, str]:
    reasons = [observation.window.durable_reason for observation in repetitions.observations]
    why = next((reason for reason in reasons if reason), None)
    if repetitions.left_out is not None:
        return {"durable": repetitions.left_out}
    return {"durable": why} if repetitions.durable is False and why is not None else {}


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
    found = {run.disk_cache_found for run in runs}
    return found.pop() if len(found) == 1 else None


def _why_no_energy(repetitions: _Repetitions, measured: Iterable[DomainFigures]) -> str:
    campaign, observations = repetitions.campaign, repetitions.observations
    for figures in measured:
        if figures.reason:
            return figures.reason
    if not observations and repetitions.invalid_reasons:
        return repetitions.invalid_reasons[0]
    phases = [one.phase for one in observations]
    if campaign.design.suite == IMPORTED and not any(phase.energy for phase in phases):
        return "the import had no power log of its time (`eeio import --power LOG`)"
    if campaign.idle_reason:
        return campaign.idle_reason
    if any(phase.start_s is None for phase in phases):
        return f"the tool does not report the time of its I/O: {phases[0].window_source}"
    if any(one.phase.energy and not one.window.energy for one in observations):
        return NO_DURABLE_POWER
    return "no measured power source was found, only an estimate"
