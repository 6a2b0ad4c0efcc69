"""Chang et al. 2014, "How processor speedups can slow down I/O performance": its cells.

A cell is one workload (threads x file size x record size, or ranks x files) on one variant of ext4
at one frequency. Its figures are means over the valid repetitions, as the paper's are, each with
the spread; what they mean and where the paper's equations do not hold is in
docs/studies/chang2014.md. Needs no scientific library: the runner asks it when to stop.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, Literal, TypedDict

from eeio.analysis.observation import NOT_REPORTED, Missing, known
from eeio.analysis.selection import judged
from eeio.record.design import PlannedExperiment
from eeio.record.run import KINDS, EnergyReading, Experiment, Phase, Run
from eeio.record.store import Campaign
from eeio.record.windows import energy_of
from eeio.statistics import stopping
from eeio.statistics.stopping import Spread

BASELINE = "ext4"
CHILDREN = "children_bytes_per_s"
PARENT = "parent_bytes_per_s"
CREATES = "creates_per_s"
EQUATION_9 = "rate_eq9_per_s"
# A write of milliseconds under a meter of 10 readings a second: such an energy is no figure.
_LARGEST_UNCERTAINTY = 0.5

_NO_FAST_WAIT = Missing("the calls served by a fast commit are unknown")
_ALL_BLOCKED = Missing("commits blocked a thread from its first write to its last")

THE_FIGURE = {"write": CHILDREN, "create": EQUATION_9}
"""Phase -> the figure the paper compares: IOzone's sum over its children, equation (3), and
Metarates' rate, equation (9); the wall-clock rate (`CREATES`) is next to it."""

# Our name -> the metric of the phase; the parent's figure is the phase's bandwidth itself.
_METRICS = {
    CHILDREN: "children_bandwidth_bytes_per_s",
    CREATES: "operations_per_s",
    "unblocked_bytes_per_s": "unblocked_bandwidth_bytes_per_s",
    **{
        name: name
        for name in (
            EQUATION_9,
            "rate_eq10_per_s",
            "commits",
            "fast_commits",
            "blocked",
            "threads_not_blocked",
            "threads_fully_blocked",
            "threads_partly_blocked",
            "threads_ended_inside",
            "write_held_mean_s",
            "commit_wait_mean_s",
            "threads_behind_a_commit",
            "until_durable_mean_s",
            "until_durable_max_s",
            "delayjc_held_mean_s",
        )
    },
}
FIGURES = (*_METRICS, PARENT)


def _read(phase: Phase, name: str) -> float | None:
    if name == PARENT:
        if phase.name == "write":
            return phase.bandwidth_bytes_per_s
        return None
    return phase.metrics.get(_METRICS[name])


@dataclass(frozen=True)
class Energy:
    """One meter's reading of the measured phase: means over the repetitions that have a value."""

    domain: str
    meter: str
    kind: Annotated[str, KINDS]
    n: int
    power_w: float | None
    energy_j: float | None
    joules_per_file: float | None
    bytes_per_j: float | None
    reason: str | None


class JournalCellBody(TypedDict):
    campaign: str
    experiment_id: str
    tool: str
    description: str
    variant: Literal["ext4", "nojc", "fast_commit", "delayjc"]
    frequency_hz: int | None
    """Null: not set; reasons.frequency_hz has the reason."""
    processes: int
    request_size_bytes: int | None
    arguments: Mapping[str, str]
    phase: str
    n: int
    invalid_runs: int
    converged: bool | None
    """Whether the 95 % interval of the mean is as narrow as the suite requires; null for a fixed
    number of repetitions."""
    figure: Literal["children_bytes_per_s", "creates_per_s", "rate_eq9_per_s"]
    """The figure of rsd, half_width, speedup and ratio_to_ext4."""
    children_bytes_per_s: float | None
    creates_per_s: float | None
    unblocked_bytes_per_s: float | None
    rate_eq9_per_s: float | None
    rate_eq10_per_s: float | None
    commits: float | None
    fast_commits: float | None
    blocked: float | None
    threads_not_blocked: float | None
    threads_fully_blocked: float | None
    threads_partly_blocked: float | None
    threads_ended_inside: float | None
    write_held_mean_s: float | None
    commit_wait_mean_s: float | None
    threads_behind_a_commit: float | None
    until_durable_mean_s: float | None
    until_durable_max_s: float | None
    delayjc_held_mean_s: float | None
    parent_bytes_per_s: float | None
    """Means over the valid repetitions, as all figures here."""
    model_ratio: float | None
    """Throughput or creation rate by the trace over the tool's own, median."""
    rsd: float | None
    half_width: float | None
    speedup: float | None
    """To the same variant at the lowest frequency."""
    ratio_to_ext4: float | None
    """To the variant ext4 at the same frequency."""
    until_durable_ratio_to_ext4: float | None
    model_ratio_range: tuple[float, float] | None
    energy: Sequence[Energy]
    estimates: Sequence[Energy]
    """ESTIMATE: modelled power, never mixed with the above."""
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class VariantCell:
    """One experiment, its valid repetitions summed up. `model_ratio` is the median: a thread that
    is put aside between its clock and its first write, before the trace records it, makes single
    runs outliers. The ratios compare means: to the same workload and variant at the lowest
    frequency, and on plain ext4 at the same frequency; None where that was not measured."""

    campaign: str
    experiment: Experiment
    description: str
    variant: str
    frequency_hz: int | None
    phase: str
    n: int
    invalid_runs: int
    converged: bool | None
    figures: Mapping[str, Spread | Missing]
    """Of each name in `FIGURES`."""
    model_ratio: float | None
    model_ratio_range: tuple[float, float] | None
    energy: tuple[Energy, ...] = ()
    why_fewer: str | None = None
    """Why some of its runs have no figures."""
    why_no_frequency: str | None = None
    """Why its frequency was not set, or not verified."""
    speedup: float | None = None
    ratio_to_ext4: float | None = None
    until_durable_ratio_to_ext4: float | None = None

    @property
    def figure(self) -> str:
        return THE_FIGURE.get(self.phase, CHILDREN)

    @property
    def workload(self) -> tuple[Any, ...]:
        """The common part of the cells of one panel: all but variant and frequency."""
        arguments = tuple(
            pair for pair in self.experiment.arguments if pair[0] not in ("variant", "frequency_hz")
        )
        e = self.experiment
        return (self.campaign, e.tool, e.processes, e.request_size_bytes or 0, arguments)

    def spread(self, name: str) -> Spread | None:
        return known(self.figures.get(name, NOT_REPORTED))

    def mean(self, name: str) -> float | None:
        spread = self.spread(name)
        if spread is None:
            return None
        return spread.mean

    @property
    def reasons(self) -> dict[str, str]:
        """Name in JSON -> why it is missing, or less than planned."""
        settings = {"n": self.why_fewer, "frequency_hz": self.why_no_frequency}
        reasons = {name: reason for name, reason in settings.items() if reason is not None}
        for name, figure in self.figures.items():
            if isinstance(figure, Missing):
                reasons[name] = figure.reason
        return reasons

    def to_json(self) -> dict[str, Any]:
        spread = self.spread(self.figure)
        arguments = dict(self.experiment.arguments)
        return {
            "campaign": self.campaign,
            "experiment_id": self.experiment.id,
            "tool": self.experiment.tool,
            "description": self.description,
            "variant": self.variant,
            "frequency_hz": self.frequency_hz,
            "processes": self.experiment.processes,
            "request_size_bytes": self.experiment.request_size_bytes,
            "arguments": {
                key: value
                for key, value in arguments.items()
                if key not in ("variant", "frequency_hz")
            },
            "phase": self.phase,
            "n": self.n,
            "invalid_runs": self.invalid_runs,
            "converged": self.converged,
            "figure": self.figure,
            "rsd": spread.rsd if spread else None,
            "half_width": spread.half_width if spread else None,
            **{name: self.mean(name) for name in FIGURES},
            "model_ratio": self.model_ratio,
            "model_ratio_range": list(self.model_ratio_range) if self.model_ratio_range else None,
            "speedup": self.speedup,
            "ratio_to_ext4": self.ratio_to_ext4,
            "until_durable_ratio_to_ext4": self.until_durable_ratio_to_ext4,
            "energy": [energy.__dict__ for energy in self.energy if energy.kind != "modelled"],
            "estimates": [energy.__dict__ for energy in self.energy if energy.kind == "modelled"],
            "reasons": self.reasons,
        }


def measured_phase(run: Run) -> Phase | None:
    """The phase that the study is about; None when the run has none that can be used."""
    if run.validity:
        return None
    for p in run.phases:
        if p.name in THE_FIGURE and not p.validity:
            return p
    return None


def figure_of_merit(run: Run) -> float | None:
    """The figure that the paper compares, and that is repeated for; None for a run without it."""
    phase = measured_phase(run)
    if phase is None:
        return None
    reading = _read(phase, THE_FIGURE[phase.name])
    # One thread has no children.
    if reading is None:
        return _read(phase, PARENT)
    return reading


def cells_of(campaign: Campaign) -> list[VariantCell]:
    """Every cell of a campaign in the suite's order, with the ratios to its neighbours; none of one
    that compares no variants of the journal."""
    varied = [planned for planned in campaign.design.experiments if planned.variant]
    if not varied:
        return []
    protocol = campaign.design.protocol
    half_width = None
    if protocol.study:
        half_width = protocol.study.half_width
    runs = campaign.runs_by_experiment()
    cells = []
    for planned in varied:
        cells.append(_cell(campaign, planned, runs.get(planned.experiment.id, []), half_width))
    return [_compared(cell, cells) for cell in cells]


def _figures(phases: Sequence[Phase], notes: Sequence[str]) -> dict[str, Spread | Missing]:
    """Of the valid repetitions; `notes` are of all runs."""
    figures: dict[str, Spread | Missing] = {}
    for name in FIGURES:
        values = [value for phase in phases if (value := _read(phase, name)) is not None]
        figures[name] = stopping.spread(values) if values else NOT_REPORTED
    if isinstance(figures["commits"], Missing):
        untraced = (note for note in notes if note.startswith("journal not traced"))
        figures["commits"] = Missing(next(untraced, "the journal was not traced"))
        return figures
    fast = known(figures["fast_commits"])
    if fast is not None and fast.mean and figures["commit_wait_mean_s"] is NOT_REPORTED:
        figures["commit_wait_mean_s"] = _NO_FAST_WAIT
    if figures["unblocked_bytes_per_s"] is NOT_REPORTED and known(figures[CHILDREN]) is not None:
        figures["unblocked_bytes_per_s"] = _ALL_BLOCKED
    return figures


def _cell(
    campaign: Campaign,
    planned: PlannedExperiment,
    runs: Sequence[Run],
    half_width: float | None,
) -> VariantCell:
    experiment = planned.experiment
    fewest = campaign.design.protocol.repetitions
    phases = [phase for run in runs if (phase := measured_phase(run)) is not None]
    notes = list(chain.from_iterable(run.notes for run in runs))
    figures = _figures(phases, notes)
    of_tool = "create"
    if experiment.tool == "iozone":
        of_tool = "write"
    kind = of_tool
    if phases:
        kind = phases[0].name
    main = known(figures[THE_FIGURE[kind]])
    ratios = []
    for p in phases:
        if "model_ratio" in p.metrics:
            ratios.append(p.metrics["model_ratio"])
    return VariantCell(
        campaign=campaign.name,
        experiment=experiment,
        description=planned.description,
        variant=planned.variant or "",
        frequency_hz=planned.frequency_hz,
        phase=kind,
        n=len(phases),
        invalid_runs=len(runs) - len(phases),
        # Of few repetitions the interval is narrow by chance too often.
        converged=None
        if half_width is None or main is None
        else main.n >= fewest and main.is_within(half_width),
        figures=figures,
        model_ratio=statistics.median(ratios) if ratios else None,
        model_ratio_range=(min(ratios), max(ratios)) if ratios else None,
        energy=_energy([observation.phase for observation in judged(experiment, phases)[0]]),
        why_fewer=_problem(runs),
        why_no_frequency=_why_no_frequency(campaign, planned, notes),
    )


def _problem(runs: Sequence[Run]) -> str | None:
    """Why some of the runs have no figures."""
    if not runs:
        return "not run yet; continue with `eeio resume`"
    of_runs = chain.from_iterable(run.validity for run in runs)
    of_phases = chain.from_iterable(phase.validity for run in runs for phase in run.phases)
    return next(chain(of_runs, of_phases), None)


def _why_no_frequency(
    campaign: Campaign, planned: PlannedExperiment, notes: Sequence[str]
) -> str | None:
    if planned.frequency_hz is None:
        return campaign.design.frequency_reason or "left as it was found"
    doubts = filter(_is_doubt, notes)
    for doubt in doubts:
        return doubt.removeprefix("frequency ")
    return None


def _is_doubt(note: str) -> bool:
    """Whether a run's note reports that its set frequency was not verified."""
    return note.startswith("frequency ") and ("unverified" in note or "not reached" in note)


def _energy(phases: Sequence[Phase]) -> tuple[Energy, ...]:
    of_meter: dict[tuple[str, str, str], list[tuple[Phase, EnergyReading]]] = {}
    for phase in phases:
        for reading in energy_of(phase):
            key = reading.key
            of_meter.setdefault(key, []).append((phase, reading))
    return tuple(_of_meter(*key, readings) for key, readings in sorted(of_meter.items()))


def _of_meter(
    domain: str, meter: str, kind: str, readings: Sequence[tuple[Phase, EnergyReading]]
) -> Energy:
    reasons: list[str] = []
    powers_w: list[float] = []
    known: list[tuple[Phase, float]] = []
    for phase, reading in readings:
        reasons += reading.reasons
        if not reading.valid or reading.energy_j is None or reading.power_w is None:
            continue
        if (reading.uncertainty_j or 0.0) <= _LARGEST_UNCERTAINTY * reading.energy_j:
            powers_w.append(reading.power_w)
            known.append((phase, reading.energy_j))
        else:
            reasons.append(
                f"the phase is too short for {meter}: the uncertainty of its energy "
                f"exceeds {_LARGEST_UNCERTAINTY:.0%}"
            )
    per_file, per_j = [], []
    for phase, joules in known:
        files = phase.metrics.get("operations")
        if files:
            per_file.append(joules / files)
        if phase.bytes_moved and joules > 0:
            per_j.append(phase.bytes_moved / joules)
    return Energy(
        domain,
        meter,
        kind,
        n=len(known),
        power_w=_mean(powers_w),
        energy_j=_mean([joules for _, joules in known]),
        joules_per_file=_mean(per_file),
        bytes_per_j=_mean(per_j),
        reason=None if known else next(iter(reasons), "no valid reading"),
    )


def _mean(values: Sequence[float]) -> float | None:
    if values:
        return statistics.fmean(values)
    return None


def _compared(cell: VariantCell, every: Sequence[VariantCell]) -> VariantCell:
    peers = [other for other in every if other.workload == cell.workload]
    same_variant = []
    for other in peers:
        if other.variant == cell.variant and other.frequency_hz is not None:
            same_variant.append(other)
    lowest = min(same_variant, key=lambda other: other.frequency_hz or 0, default=None)
    plain = next(
        (
            other
            for other in peers
            if other.variant == BASELINE and other.frequency_hz == cell.frequency_hz
        ),
        None,
    )
    return replace(
        cell,
        speedup=_ratio(cell, lowest, cell.figure),
        ratio_to_ext4=_ratio(cell, plain, cell.figure),
        until_durable_ratio_to_ext4=_ratio(cell, plain, "until_durable_mean_s"),
    )


def _ratio(cell: VariantCell, other: VariantCell | None, name: str) -> float | None:
    mine, theirs = cell.mean(name), other.mean(name) if other else None
    if mine is not None and theirs:
        return mine / theirs
    return None


def workload_label(cell: VariantCell) -> str:
    """`x16 128 KiB in 32 KiB`: without variant and frequency."""
    text = cell.description.partition(": ")[2] or cell.description
    return text.partition(" - Variant")[0].rpartition(": ")[2]
