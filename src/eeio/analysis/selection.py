"""Which source of power stands for an experiment, and which repetitions share one median.

The main source is of the widest domain that may be the cost of the experiment's I/O. Where several
meters read that domain, it is the one with readings of the most repetitions, and of equal ones the
first in the records. Reports, comparisons, `eeio bench` and tables of phases select by this rule,
so that their figures are of one source.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.observation import Key, Observation, observed
from eeio.record.run import DOMAINS, EnergyReading, Experiment, Phase
from eeio.record.windows import Window


def is_powered(reading: EnergyReading) -> bool:
    """Whether the reading is valid and measured: an estimate never stands for an experiment."""
    return reading.kind != "modelled" and reading.valid and reading.power_w is not None


def is_compared(reading: EnergyReading) -> bool:
    """Whether comparisons use the reading."""
    return is_powered(reading) and reading.why_not_ranked is None


def repetitions_by_source(
    energies: Iterable[Sequence[EnergyReading]], is_usable: Callable[[EnergyReading], bool]
) -> Counter[Key]:
    """Source -> in how many of the repetitions its reading is usable, in the records' order."""
    return Counter(reading.key for energy in energies for reading in energy if is_usable(reading))


def source_by_domain(repetitions: Mapping[Key, int]) -> dict[str, Key]:
    """Domain -> the source that is most read, the widest domain first."""
    selected: dict[str, Key] = {}
    for key, count in repetitions.items():
        domain = key[0]
        if count and (domain not in selected or count > repetitions[selected[domain]]):
            selected[domain] = key
    return {domain: selected[domain] for domain in DOMAINS if domain in selected}


def main_source(repetitions: Mapping[Key, int], cost_domains: Sequence[str]) -> Key | None:
    """The source that stands for an experiment; None if none may."""
    selected = source_by_domain(repetitions)
    for domain, key in selected.items():
        if domain in cost_domains:
            return key
    return None


def main_reading(window: Window) -> EnergyReading | None:
    """That of the main source of a single phase; an estimate where nothing was measured."""
    source = main_source(repetitions_by_source([window.energy], is_powered), window.cost_domains)
    readings = [reading for reading in window.energy if reading.key == source]
    valid = [reading for reading in window.cost_energy if reading.valid]
    estimates = [reading for reading in valid if reading.power_w is not None]
    return next(iter(readings or estimates), None)


def main_figures(
    of_sources: Sequence[DomainFigures], cost_domains: Sequence[str]
) -> DomainFigures | None:
    """Those of the main source among the figures of measured sources."""
    by_source = {figures.key: figures for figures in of_sources}
    source = main_source({key: figures.n for key, figures in by_source.items()}, cost_domains)
    if source is None:
        return None
    return by_source[source]


def judged(experiment: Experiment, phases: Sequence[Phase]) -> tuple[list[Observation], str | None]:
    """The phases of one row that may share one median; and why others may not. If some are known
    until durable and some are not, only those that are."""
    every = [observed(experiment, phase) for phase in phases]
    kept = [observation for observation in every if observation.window.durable]
    if not kept:
        return every, None
    reasons = []
    for observation in every:
        if not observation.window.durable:
            reasons.append(observation.window.durable_reason)
    reason = next(iter(reasons), None)
    if reason is None:
        return kept, None
    return kept, f"{len(reasons)} of {len(every)} repetitions are left out: {reason}"
