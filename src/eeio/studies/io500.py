"""IO500: the energy of each phase, and IO500 points per kW.

Points per kW are the score of a run over the mean power of its scored phases: the sum of their
energies over the sum of their times. Power is that of the widest domain that was measured. A phase
that is invalid, or has no reading, leaves its run without points per kW. A debug run's score is
marked and is no IO500 score.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from eeio.record.run import COST_DOMAINS, DEMO, EnergyReading, Phase, Run
from eeio.record.tool_label import tool_label
from eeio.record.windows import energy_of
from eeio.report.campaign.columns import plain
from eeio.report.table_and_plot import Table
from eeio.studies import Chapter, Study
from eeio.units.quantities import MOST_UNKNOWN
from eeio_parsers.io500.run import DEBUG_SCORE, GIB, NOT_VALID, SCORE, SCORED

if TYPE_CHECKING:
    from eeio.record.store import Campaign

TOOL = "io500"


@dataclass(frozen=True)
class PhaseFigures:
    """Medians of one phase over the valid runs of an experiment. The rate is in bytes/s or
    operations/s. A None has its reason."""

    phase: str
    n: int
    bandwidth_bytes_per_s: float | None
    operations_per_s: float | None
    duration_s: float | None
    power_w: float | None
    energy_j: float | None
    reason: str | None


@dataclass(frozen=True)
class Points:
    """Medians of the runs of an experiment; energy and power are those of the scored phases.
    `is_valid`: whether IO500 accepts every run. A None has its reason."""

    campaign: str
    experiment: str
    n: int
    is_valid: bool
    score: float
    bandwidth_bytes_per_s: float
    operations_per_s: float
    power_domain: str | None
    power_w: float | None
    energy_j: float | None
    points_per_kw: float | None
    reason: str | None
    phases: tuple[PhaseFigures, ...]


def points(campaign: "Campaign") -> list[Points]:
    """One for each experiment of the campaign with IO500 that has a valid run."""
    groups: dict[str, list[Run]] = {}
    for run in campaign.runs if TOOL in campaign.tools else ():
        names = {figure.name for figure in run.context}
        if run.experiment.tool == TOOL and not run.validity and names & {SCORE, DEBUG_SCORE}:
            groups.setdefault(run.experiment.id, []).append(run)
    return [_points(campaign.name, runs) for runs in groups.values()]


def _points(campaign: str, runs: Sequence[Run]) -> Points:
    by_phase: dict[str, list[Phase]] = {}
    for run in runs:
        for phase in run.phases:
            by_phase.setdefault(phase.name, []).append(phase)
    domain = _widest_domain([phase for phases in by_phase.values() for phase in phases])
    scores = list(map(_scores, runs))
    power_w, energy_j, points_per_kw, reason = _medians_of_energy(runs, scores, domain)
    return Points(
        campaign,
        tool_label(runs[0].experiment),
        len(runs),
        all(score.is_valid for score in scores),
        statistics.median(score.total for score in scores),
        statistics.median(score.bandwidth for score in scores),
        statistics.median(score.metadata for score in scores),
        domain,
        power_w,
        energy_j,
        points_per_kw,
        reason,
        tuple(_phase(phases, domain) for phases in by_phase.values()),
    )


@dataclass(frozen=True)
class _Scores:
    """Of one run. Those of a debug run are not valid."""

    is_valid: bool
    total: float
    bandwidth: float
    metadata: float


def _scores(run: Run) -> _Scores:
    figures = {figure.name: figure.value for figure in run.context}
    name = DEBUG_SCORE
    if SCORE in figures:
        name = SCORE
    return _Scores(
        name == SCORE, figures[name], figures[f"{name}_bandwidth"], figures[f"{name}_metadata"]
    )


def _widest_domain(phases: Sequence[Phase]) -> str | None:
    for domain in COST_DOMAINS:
        if any(_reading(phase, domain) for phase in phases):
            return domain
    return None


def _medians_of_energy(
    runs: Sequence[Run], scores: Sequence[_Scores], domain: str | None
) -> tuple[float | None, float | None, float | None, str | None]:
    """W, J and points a kW; or the reason why they are not known."""
    powers_w, energies_j, points_per_kw = [], [], []
    for run, score in zip(runs, scores, strict=True):
        total = _total(run, domain)
        if isinstance(total, str):
            return None, None, None, total
        joules, seconds = total
        powers_w.append(joules / seconds)
        energies_j.append(joules)
        points_per_kw.append(1000 * score.total * seconds / joules)
    return (
        statistics.median(powers_w),
        statistics.median(energies_j),
        statistics.median(points_per_kw),
        None,
    )


def _total(run: Run, domain: str | None) -> tuple[float, float] | str:
    """Energy and time of the scored phases, or why they are not known. A phase too short for its
    meter is part of the sum: the uncertainty of the sum is what counts."""
    energy_j = lasted_s = unsure_j = 0.0
    for phase in run.phases:
        if phase.name not in SCORED:
            continue
        reading = _usable(phase.energy, domain)
        if phase.validity or reading is None or not phase.lasted_s:
            return f"{phase.name}: {_why(phase, domain)}"
        energy_j += reading.energy_j or 0.0
        unsure_j += reading.uncertainty_j or 0.0
        lasted_s += phase.lasted_s
    if energy_j <= 0 or unsure_j > MOST_UNKNOWN * energy_j:
        return "the energy of the scored phases is too uncertain"
    return energy_j, lasted_s


def _phase(phases: Sequence[Phase], domain: str | None) -> PhaseFigures:
    valid = [phase for phase in phases if not phase.validity]
    readings = [_reading(phase, domain) for phase in valid]
    without = [p for p in phases if p.validity or _reading(p, domain) is None]

    def median(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        if known:
            return statistics.median(known)
        return None

    return PhaseFigures(
        phases[0].name,
        len(valid),
        median([phase.bandwidth_bytes_per_s for phase in valid]),
        median([phase.metrics.get("operations_per_s") for phase in valid]),
        median([phase.lasted_s for phase in valid]),
        median([reading.power_w for reading in readings if reading]),
        median([reading.energy_j for reading in readings if reading]),
        _why(without[0], domain) if without else None,
    )


def _reading(phase: Phase, domain: str | None) -> EnergyReading | None:
    return _usable(energy_of(phase), domain)


def _usable(readings: Sequence[EnergyReading], domain: str | None) -> EnergyReading | None:
    """The first of the domain with a value, measured or the demo meter's."""
    for reading in readings:
        if (
            reading.domain == domain
            and reading.valid
            and reading.energy_j is not None
            and reading.kind != "modelled"
        ):
            return reading
    return None


def _why(phase: Phase, domain: str | None) -> str:
    """Why a phase has no figures, or no energy."""
    if phase.validity:
        return phase.validity[0]
    if phase.start_s is None:
        return phase.window_source
    reasons: list[str] = []
    for r in energy_of(phase):
        if r.domain == domain:
            reasons.extend(r.reasons)
    if reasons:
        return reasons[0]
    return "no meter measured it"


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    points_of = [(campaign, each) for campaign in campaigns if (each := points(campaign))]
    if not points_of:
        return None
    tables = []
    for campaign, each in points_of:
        mark = ""
        if campaign.is_demo:
            mark = f" ({DEMO})"
        tables += [_score_table(campaign.name, each, mark)]
        for point in each:
            tables.append(_phase_table(point, mark))
    return Chapter(
        tables=tuple(tables),
        body={"io500": [asdict(point) for _, each in points_of for point in each]},
    )


def _marked(value: float | None, mark: str) -> str:
    return plain(value) + mark * (value is not None)


def _score_table(campaign: str, each: Sequence[Points], mark: str) -> Table:
    rows = tuple(
        (
            point.experiment,
            str(point.n),
            "yes" if point.is_valid else "no: debug",
            plain(point.score),
            plain(point.bandwidth_bytes_per_s, GIB),
            plain(point.operations_per_s, 1000.0),
            _marked(point.power_w, mark),
            _marked(point.energy_j, mark),
            _marked(point.points_per_kw, mark),
            point.reason or "",
        )
        for point in each
    )
    domains = ", ".join(dict.fromkeys(point.power_domain for point in each if point.power_domain))
    debug = ""
    if not all(point.is_valid for point in each):
        debug = f"\ndebug: {NOT_VALID}, not to be published"
    return Table(
        title=f"IO500: {campaign}",
        header=(
            "Experiment",
            "n",
            "Valid IO500 run",
            "Score",
            "GiB/s",
            "kIOPS",
            "Power (W)",
            "Energy (J)",
            "Points/kW",
            "Remark",
        ),
        rows=rows,
        numeric=frozenset((1, *range(3, 9))),
        note=f"medians; power of the {domains or 'machine'} over the scored phases; "
        f"points/kW: the score over that power{debug}",
    )


def _phase_table(one: Points, mark: str) -> Table:
    rows = tuple(
        (
            phase.phase,
            "yes" if phase.phase in SCORED else "no",
            str(phase.n),
            plain(phase.bandwidth_bytes_per_s, GIB),
            plain(phase.operations_per_s, 1000.0),
            plain(phase.duration_s),
            _marked(phase.power_w, mark),
            _marked(phase.energy_j, mark),
            phase.reason or "",
        )
        for phase in one.phases
    )
    debug = ""
    if not one.is_valid:
        debug = f", {NOT_VALID}"
    return Table(
        title=f"IO500 phases: {one.campaign}, {one.experiment}{debug}",
        header=(
            "Phase",
            "Scored",
            "n",
            "GiB/s",
            "kIOPS",
            "Time (s)",
            "Power (W)",
            "Energy (J)",
            "Remark",
        ),
        rows=rows,
        numeric=frozenset(range(2, 8)),
        note=f"medians; power of the {one.power_domain or 'machine'}",
    )


STUDY = Study(chapter=_chapter)
