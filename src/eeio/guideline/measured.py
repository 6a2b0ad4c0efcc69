"""The experiments of a campaign as a system that costs something: of one tool, level and power
domain."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eeio.analysis.characterization import characterize
from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.ranking import why_figures_unsure
from eeio.comparison.cells import (
    BANDWIDTH,
    J_PER_GB_OF,
    POWER,
    cells_of,
    why_energy_unsure,
    why_too_slow,
)
from eeio.guideline.servers import CellValues
from eeio.guideline.workload import CellKey
from eeio.record.run import COST_DOMAINS, DOMAINS, FLUSHES, MARKS, Switch
from eeio.record.store import Campaign
from eeio.record.windows import energy_of

LeftOut = dict[str, list[str]]
"""Experiments that have no figure, by the reason."""

NO_SIZE = "it has no single request size, by which a workload names experiments"


@dataclass(frozen=True)
class Choice:
    """Which experiments count. `domain` None: the widest that every campaign measured;
    `max_p99_s`: those with a p99 latency of at most this."""

    tool: str = "fio"
    level: str = "filesystem"
    domain: str | None = None
    max_p99_s: float | None = None


def cells(campaign: Campaign, choice: Choice, domain: str, left_out: LeftOut) -> list[CellValues]:
    """Its experiments that count."""
    power, energy = POWER[domain], J_PER_GB_OF[domain]
    values = []
    for cell in cells_of(campaign):
        factors = cell.factors
        wanted = factors["tool"] == choice.tool and factors["level"] == choice.level
        if not wanted:
            continue
        if cell.is_direction:
            continue
        if cell.request_size_bytes is None:
            left_out.setdefault(NO_SIZE, []).append(f"{campaign.name}: {cell.label()}")
            continue
        if (slow := why_too_slow(cell, choice.max_p99_s)) is not None:
            left_out.setdefault(slow, []).append(f"{campaign.name}: {cell.label()}")
            continue
        if (unsure := why_energy_unsure(cell)) is not None:
            left_out.setdefault(unsure, []).append(f"{campaign.name}: {cell.label()}")
            continue
        both, without = cell.together(BANDWIDTH, power, energy)
        if not both:
            reason = cell.why(power) or cell.why(BANDWIDTH)
            reason = reason or "no repetition has both bandwidth and power"
            left_out.setdefault(reason, []).append(f"{campaign.name}: {cell.label()}")
            continue
        key = CellKey(
            operation=factors["operation"],
            spatiality=factors["spatiality"],
            request_size_bytes=cell.request_size_bytes,
            buffer=_switch(factors["buffer"]),
            disk=_switch(factors["disk"]),
            flush=factors["flush"] if factors["flush"] in FLUSHES else None,
        )
        variant = factors["device"] + _target(factors["target"]) + _load(factors["arguments"])
        if factors["operation"] == "mixed":
            variant = " ".join((variant, *cell.details)).strip()
        bandwidths, powers, energies = zip(*both, strict=True)
        durable = {"yes": True, "no": False}.get(factors["durable"])
        values.append(CellValues(key, bandwidths, powers, variant, without, durable, energies))
    return values


def domain_of(campaigns: Sequence[Campaign], choice: Choice) -> str | None:
    """The power domain to compare in: the requested one, else the widest in which every campaign
    has an experiment that counts; None if there is none."""
    if choice.domain is not None:
        return choice.domain
    for domain in COST_DOMAINS:
        if all(cells(campaign, choice, domain, {}) for campaign in campaigns):
            return domain
    return None


def why_other_contents(campaigns: Sequence[Campaign], choice: Choice, domain: str) -> str | None:
    """Why the powers of the campaigns are not of the same parts: those of one include the drives,
    those of another do not. None if they are."""
    contents = {}
    for campaign in campaigns:
        described: set[str] = set()
        for cell in cells_of(campaign):
            factors = cell.factors
            if (factors["tool"], factors["level"]) == (choice.tool, choice.level):
                described.update(cell.efficiency_of)
        contents[campaign.name] = {text for text in described if text.split()[0] == domain}
    known = [each for each in contents.values() if each]
    if all(each == known[0] for each in known):
        return None
    listed = [f"{name}: {', '.join(sorted(each))}" for name, each in contents.items() if each]
    return f"the powers are not of the same parts: {'; '.join(listed)}"


def is_enough(campaigns: Sequence[Campaign], choice: Choice) -> bool:
    """Whether every campaign has an experiment that counts, in one domain."""
    domain = domain_of(campaigns, choice)
    return domain is not None and all(cells(campaign, choice, domain, {}) for campaign in campaigns)


def unranked_remarks(campaign: Campaign, choice: Choice, domain: str) -> list[str]:
    """Which of the experiments that count are not ranked in the campaign's report, by reason."""
    reasons = Counter[str]()
    for row in characterize(campaign):
        experiment, figures = row.experiment, row.measured
        if experiment is None or figures is None or figures.ranked_reason is None:
            continue
        wanted = experiment.tool == choice.tool and experiment.level == choice.level
        if wanted and figures.power_domain == domain and _may_count(figures):
            reasons[figures.ranked_reason] += 1
    remarks = []
    for reason, count in reasons.items():
        remarks.append(f"experiments that the report does not rank: {count} ({reason})")
    return remarks


def _may_count(figures: DomainFigures) -> bool:
    """Whether a cost uses figures that are not ranked. Of fictitious power it says so itself."""
    if figures.energy_kind in MARKS:
        return False
    return why_figures_unsure(figures) is None


def domain_remark(domain: str, campaigns: int) -> str | None:
    """A remark on power that is not that of the complete machine."""
    if domain == "system":
        return None
    both = "the campaign has"
    if campaigns > 1:
        both = "every campaign has"
    return (
        f"power of the {domain}, the widest domain that {both}: the rest of the machine is excluded"
    )


def measured_domains(campaigns: Sequence[Campaign]) -> list[str]:
    """The domains that any run of them has a valid reading of, the widest first."""
    measured = set()
    for campaign in campaigns:
        for run in campaign.runs:
            for phase in run.phases:
                for reading in energy_of(phase):
                    if reading.valid and reading.kind != "modelled":
                        measured.add(reading.domain)
    return [domain for domain in DOMAINS if domain in measured]


def _switch(level: str) -> Switch | None:
    switches: dict[str, Switch] = {"on": "on", "off": "off"}
    return switches.get(level)


def _load(arguments: str) -> str:
    """The step of a load curve."""
    return "".join(f", load {one[5:]} %" for one in arguments.split() if one.startswith("load="))


def _target(target: str) -> str:
    if target == "file":
        return ""
    return f" {target.removeprefix('file on ')}"
