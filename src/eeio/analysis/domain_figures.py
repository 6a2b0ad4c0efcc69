"""Figures of a power domain by one meter, over the repetitions of one row of a report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NotRequired, TypedDict

from eeio.analysis import metrics
from eeio.analysis.observation import (
    NO_BASELINE,
    Baseline,
    Key,
    Missing,
    Observation,
    Value,
    known,
    sources,
)
from eeio.analysis.summary import Figure, Quartiles, quartiles
from eeio.record.run import DOMAINS, KINDS, EnergyReading
from eeio.record.store import Campaign
from eeio.record.windows import GB


class DomainFiguresBody(TypedDict):
    """With the metrics of power domains (`eeio.analysis.metrics`), null with a reason."""

    power_domain: Annotated[str, DOMAINS]
    meter: str
    energy_kind: Annotated[str, KINDS]
    n: int
    energy_uncertainty_j: Quartiles | None
    """Median and quartiles over the valid repetitions, in J; null with a reason."""
    includes: NotRequired[Sequence[str]]
    """The parts of the machine in the domain, as its meter reports them."""
    leaves_out: NotRequired[Sequence[str]]
    leaves_drives_out: NotRequired[bool]
    """True: the domain excludes the drives, so its bytes/J are not the storage's."""
    doubts: NotRequired[Sequence[str]]
    """Which meter contradicts these figures; empty if none."""
    rule: NotRequired[str | None]
    """Which rule chose which of the meter's sensors; null if it has one source."""
    reason: str | None
    ranked_reason: str | None
    """Why it is not ranked; null if it is."""
    reasons: Mapping[str, str]
    """The reason of each null figure."""


@dataclass(frozen=True)
class DomainFigures:
    """Readings of one power domain by one meter, over the valid repetitions. `n` of them have a
    value; `reason` is why the others have none. `figures` contains the metrics of power domains by
    their keys."""

    power_domain: str
    meter: str
    energy_kind: str
    n: int
    figures: Mapping[str, Figure]
    energy_uncertainty_j: Quartiles | None
    efficiency_values: tuple[float, ...]
    reason: str | None
    includes: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    leaves_drives_out: bool = False
    """Whether the MB/J excludes the drives, because the power excludes them."""
    doubts: tuple[str, ...] = ()
    """Why the figures are doubtful: which meter contradicts them, and by how much."""
    ranked_reason: str | None = None
    """Why its MB/J is not ranked; None if it is."""
    rule: str | None = None
    """Which rule chose which of the meter's sensors, and which it does not count."""

    @property
    def key(self) -> Key:
        return self.power_domain, self.meter, self.energy_kind

    def __getitem__(self, metric: str) -> Quartiles | None:
        """A metric of power domains by its key; None if it is missing."""
        return known(self.figures[metric])

    def why(self, metric: str) -> str | None:
        """Why a metric is missing; None if it is not."""
        figure = self.figures[metric]
        if isinstance(figure, Missing):
            return figure.reason
        return None

    def lacks(self, repetitions: int) -> str | None:
        """Which of a row's repetitions have no power or no J/GB, and why; None if all have them."""
        if self.n < repetitions:
            return f"power of {self.n} of {repetitions} repetitions: {self.reason}"
        if self["energy_j_per_gb"] is not None:
            return self.reason
        return None

    def contents(self) -> str | None:
        """The contents of the domain as text; None if its meter does not report them."""
        parts = []
        if self.includes:
            parts = [f"includes {', '.join(self.includes)}"]
        if self.leaves_out:
            parts.append(f"excludes {', '.join(self.leaves_out)}")
        if self.rule:
            parts.append(f"sensors: {self.rule}")
        if parts:
            return f"{self.power_domain} ({self.meter}): {'; '.join(parts)}"
        return None

    def to_json(self) -> dict[str, Any]:
        """An object of the lists `domains` and `estimates` (schemas/report.schema.json)."""
        figures, reasons = metrics.to_json(metrics.in_rows(of_domain=True), self.figures)
        uncertainty_j = self.energy_uncertainty_j
        return {
            "power_domain": self.power_domain,
            "meter": self.meter,
            "energy_kind": self.energy_kind,
            "n": self.n,
            **figures,
            "energy_uncertainty_j": None if uncertainty_j is None else asdict(uncertainty_j),
            "includes": list(self.includes),
            "leaves_out": list(self.leaves_out),
            "leaves_drives_out": self.leaves_drives_out,
            "rule": self.rule,
            "doubts": list(self.doubts),
            "reason": self.reason,
            "ranked_reason": self.ranked_reason,
            "reasons": reasons,
        }


def domain_figures(
    observations: Sequence[Observation], campaign: Campaign, busy: float | None
) -> list[DomainFigures]:
    """Those of every source in the observations of a row, the widest domain first, and the sources
    of one in the records' order. `busy` is the share of the time that a drive is in use (0 to 1),
    None if not given."""
    why_no_idle = NO_BASELINE
    if campaign.idle_reason is not None:
        why_no_idle = Missing(campaign.idle_reason)
    idle = {reading.key: _idle_power(reading) for reading in campaign.idle}
    every = []
    for key in sorted(sources(observations), key=lambda key: DOMAINS.index(key[0])):
        baseline = Baseline(idle.get(key, why_no_idle), busy)
        every.append(_figures(key, [each.by(key, baseline) for each in observations]))
    return every


def _idle_power(reading: EnergyReading) -> Value:
    if reading.valid and reading.power_w is not None:
        return reading.power_w
    if reading.reasons:
        return Missing(f"idle power: {'; '.join(reading.reasons)}")
    return NO_BASELINE


def _figures(key: Key, observations: Sequence[Observation]) -> DomainFigures:
    readings = [each.reading for each in observations if each.reading is not None]
    valid = [reading for reading in readings if reading.valid]
    limits_j = [each.uncertainty_j for each in valid if each.uncertainty_j is not None]
    rules = dict.fromkeys(reading.rule for reading in readings if reading.rule)
    return DomainFigures(
        *key,
        n=sum(not isinstance(each.power_w, Missing) for each in observations),
        figures=metrics.summaries(metrics.in_rows(of_domain=True), observations),
        energy_uncertainty_j=quartiles(limits_j),
        efficiency_values=_efficiency_values(observations),
        reason=_why_incomplete(observations),
        includes=_agreed([reading.includes for reading in readings]),
        leaves_out=_agreed([reading.leaves_out for reading in readings]),
        leaves_drives_out=any(reading.leaves_drives_out for reading in readings),
        doubts=_doubts(valid),
        rule="; ".join(rules) or None,
    )


def _efficiency_values(observations: Iterable[Observation]) -> tuple[float, ...]:
    """Bytes per joule of the observations that have a cost."""
    values = []
    for observation in observations:
        joules = observation.j_per_gb
        if not isinstance(joules, Missing) and joules > 0:
            values.append(GB / joules)
    return tuple(values)


def _doubts(readings: Iterable[EnergyReading]) -> tuple[str, ...]:
    every = list(readings)
    doubtful = [reading for reading in every if reading.doubtful]
    doubts = dict.fromkeys(reason for reading in doubtful for reason in reading.reasons)
    if (mixed := mixed_calibrations(every)) is not None:
        doubts[mixed] = None
    return tuple(doubts)


def mixed_calibrations(readings: Iterable[EnergyReading]) -> str | None:
    """Why readings of one source share no median: a calibration was stored between them."""
    calibrations = dict.fromkeys(reading.calibration for reading in readings)
    if len(calibrations) < 2:
        return None
    named = ", ".join(each or "not calibrated" for each in calibrations)
    return f"its repetitions are calibrated differently: {named}"


def _why_incomplete(observations: Sequence[Observation]) -> str | None:
    """Which repetitions with power have no J/GB, and why; else why some repetitions have no power;
    if all have it, why some energies are not costs."""
    powered = [each for each in observations if not isinstance(each.power_w, Missing)]
    costed = [each for each in powered if not isinstance(each.j_per_gb, Missing)]
    if costed and len(costed) < len(powered):
        reason = next(each.j_per_gb for each in powered if isinstance(each.j_per_gb, Missing))
        return f"J/GB of {len(costed)} of {len(powered)} repetitions: {reason.reason}"
    for each in observations:
        if isinstance(each.power_w, Missing):
            return each.power_w.reason
    reasons = [each.why_no_cost.reason for each in observations if each.why_no_cost is not None]
    if reasons:
        return reasons[0]
    return None


def _agreed(reported: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The entries that all repetitions have."""
    return tuple(part for part in reported[0] if all(part in parts for parts in reported))
