"""Differences between experiments: which factor changes what, by how much, and how surely.

A cell is one experiment on one machine and device with the values of its repetitions. Two cells
that differ in one factor alone make a pair; a difference is told only when the Mann-Whitney test
confirms it (Pavan et al. 2018, section 3).
"""

import math
import statistics as descriptive
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from eeio_results.agreement import agreement
from eeio_results.record import DOMAINS, EnergyReading, Run
from eeio_results.statistics.adjustment import Adjustment, adjust
from eeio_results.statistics.bootstrap import Estimate, ratio_interval
from eeio_results.statistics.groups import dunn as dunn_test
from eeio_results.statistics.normality import normality as normality_of
from eeio_results.statistics.pairs import MannWhitney, mann_whitney
from eeio_results.store import Campaign
from eeio_results.units import format_size

ALPHA = 0.05

BANDWIDTH, EFFICIENCY = "bandwidth_bytes_per_s", "efficiency_bytes_per_j"
POWER = {domain: f"power_{domain}_w" for domain in DOMAINS}
METRICS = (BANDWIDTH, *POWER.values(), EFFICIENCY)

FACTORS = ("buffer", "disk", "size", "spatiality", "operation", "type", "machine")
"""Factors whose levels are compared, in the order of a report."""

# A factor that cannot change alone: another kind of drive is another drive.
_FOLLOWS = {"type": ("device",)}
_NOT_MODELLED = "only a modelled power, which no comparison uses"


@dataclass(frozen=True)
class Cell:
    """One experiment on one machine and device.

    `factors` are its levels by name (`machine`, `device`, `type`, `operation`, `spatiality`,
    `size`, `buffer`, ...). `values` holds the repetitions of each metric; a metric that was not
    measured is absent and stands in `reasons`.
    """

    factors: Mapping[str, str]
    values: Mapping[str, tuple[float, ...]]
    reasons: Mapping[str, str] = field(default_factory=dict)
    invalid_runs: int = 0
    efficiency_of: tuple[str, ...] = ()
    """The power domains whose MB/J its efficiency is."""
    doubts: tuple[str, ...] = ()
    """Which of its powers another meter contradicts, and how."""
    runs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The run that each value is of, by its place in the campaign's order."""

    def n(self, metric: str) -> int:
        return len(self.values.get(metric, ()))

    def together(self, *metrics: str) -> tuple[list[tuple[float, ...]], int]:
        """The values of each run that has all these metrics, in the order of the runs; and how
        many runs lack one of them."""
        of_run = [
            dict(zip(self.runs[metric], self.values[metric], strict=True))
            for metric in metrics
            if metric in self.values
        ]
        every = set().union(*of_run)
        whole = sorted(every.intersection(*of_run)) if len(of_run) == len(metrics) else []
        return [tuple(found[run] for found in of_run) for run in whole], len(every) - len(whole)

    @cached_property
    def _medians(self) -> dict[str, float]:
        return {name: descriptive.median(found) for name, found in self.values.items()}

    def median(self, metric: str) -> float:
        """Raises KeyError for a metric that was not measured."""
        return self._medians[metric]

    def words(self, without: Iterable[str] = (), tool: bool = False) -> str:
        """The cell in one line: `PC HDD1: sequential write, 32 KiB, buffer off`; with its level,
        tool and target when `tool` is true. What was left as found is not told."""
        left = {
            name: level
            for name, level in self.factors.items()
            if name not in set(without) and level != "as found"
        }
        place = " ".join(left[k] for k in ("machine", "device") if k in left)
        kind = " ".join(left[k] for k in ("spatiality", "operation") if k in left)
        rest = [left["size"]] if "size" in left else []
        rest += [f"{k} {left[k]}" for k in ("buffer", "disk") if k in left]
        rest += [left[k] for k in ("level", "tool", "target") if tool and k in left]
        return f"{place}: " * bool(place) + ", ".join(([kind] if kind else []) + rest)


@dataclass(frozen=True)
class Difference:
    """`higher` lies `percent` above `lower`, by their medians; `p` is two-sided, of `test` or of
    Dunn's where a factor has more than two levels, adjusted where several pairs are asked."""

    metric: str
    higher: Cell
    lower: Cell
    percent: float
    test: MannWhitney
    p: float | None

    def confirmed(self, alpha: float = ALPHA) -> bool:
        return self.p is not None and self.p < alpha

    def interval_percent(self, resamples: int = 2000) -> Estimate:
        """Bootstrap interval of the ratio of the medians (statistics/bootstrap.py)."""
        return ratio_interval(
            self.higher.values[self.metric], self.lower.values[self.metric], resamples=resamples
        )


def size_word(size_bytes: int | None) -> str:
    return "any" if size_bytes is None else format_size(size_bytes)


def machine_names(campaigns: Sequence[Campaign]) -> list[str]:
    """What to call each campaign's machine: its host name, or the campaign's own name where two
    campaigns were run on the same drive of the same machine."""
    places = [(c.machine.hostname, c.machine.device) for c in campaigns]
    return [
        place[0] if places.count(place) == 1 else campaign.name
        for campaign, place in zip(campaigns, places, strict=True)
    ]


def cells_of(campaign: Campaign, machine_name: str | None = None) -> list[Cell]:
    """The cells of one campaign; invalid runs and phases are counted, not used."""
    machine = campaign.machine
    kind = {True: "HDD", False: "SSD", None: "unknown"}[machine.device_rotational]
    place = {
        "machine": machine_name or machine.hostname,
        "device": machine.device or "unknown",
        "type": kind,
    }
    runs: dict[str, list[Run]] = {}
    for run in campaign.runs:
        if run.experiment.level != "context":
            runs.setdefault(run.experiment.id, []).append(run)
    found = []
    for of_experiment in runs.values():
        names = dict.fromkeys(phase.name for run in of_experiment for phase in run.phases)
        found += [_cell(place, of_experiment, name) for name in names]
    doubts = tuple(words for _, words in agreement(campaign).contradictions)
    if doubts:
        found = [
            replace(cell, doubts=(*cell.doubts, *doubts))
            if any(cell.n(metric) for metric in POWER.values())
            else cell
            for cell in found
        ]
    return found


def _cell(place: Mapping[str, str], runs: Sequence[Run], name: str) -> Cell:
    experiment = runs[0].experiment
    values: dict[str, dict[int, float]] = {}
    reasons: dict[str, str] = {}
    invalid = 0
    efficiency_of: dict[str, None] = {}
    doubts: dict[str, None] = {}
    first = next(phase for run in runs for phase in run.phases if phase.name == name)
    for run in runs:
        phase = next((p for p in run.phases if p.name == name), None)
        if run.validity or phase is None or phase.validity:
            invalid += 1
            continue
        bandwidth = phase.bandwidth_bytes_per_s
        if bandwidth is not None:
            values.setdefault(BANDWIDTH, {})[run.order_index] = bandwidth
        widest = None
        for domain, metric in POWER.items():
            reading = _reading(phase.energy, domain, reasons, metric)
            if reading is not None and reading.power_w is not None:
                values.setdefault(metric, {})[run.order_index] = reading.power_w
                widest = widest or reading
                doubts |= dict.fromkeys(reading.reasons if reading.doubtful else ())
        efficiency = phase.efficiency_bytes_per_j(widest.power_w if widest else None)
        if efficiency is not None:
            values.setdefault(EFFICIENCY, {})[run.order_index] = efficiency
            if widest is not None:
                without = " without drives" if widest.leaves_drives_out else ""
                efficiency_of.setdefault(f"{widest.domain}{without}")
        elif phase.why_no_efficiency is not None:
            reasons.setdefault(EFFICIENCY, phase.why_no_efficiency)
    for metric in (BANDWIDTH, EFFICIENCY, *POWER.values()):
        if metric not in values:
            reasons.setdefault(metric, "not measured")
    factors = {
        **place,
        "level": experiment.level,
        "tool": experiment.tool,
        "target": experiment.target,
        "operation": first.operation,
        "spatiality": first.spatiality,
        "size": size_word(first.request_size_bytes),
        "buffer": experiment.cache.buffer or "as found",
        "disk": experiment.cache.disk or "as found",
        "api": experiment.api,
        "processes": str(experiment.processes),
        "phase": name,
        "arguments": " ".join(f"{k}={v}" for k, v in experiment.arguments),
    }
    return Cell(
        factors,
        {metric: tuple(of_run.values()) for metric, of_run in values.items()},
        reasons,
        invalid,
        tuple(efficiency_of),
        tuple(doubts),
        {metric: tuple(of_run) for metric, of_run in values.items()},
    )


def _reading(
    energy: Sequence[EnergyReading], domain: str, reasons: dict[str, str], metric: str
) -> EnergyReading | None:
    """The first valid reading of a domain that is no model's; else why there is none."""
    for reading in energy:
        if reading.domain != domain:
            continue
        if reading.kind == "modelled":
            reasons.setdefault(metric, _NOT_MODELLED)
        elif reading.why_not_ranked is not None:
            reasons.setdefault(metric, reading.why_not_ranked)
        elif reading.valid and reading.power_w is not None:
            return reading
        elif reading.reasons:
            reasons.setdefault(metric, reading.reasons[0])
    return None


Where = Mapping[str, str | Sequence[str]]


def fits(cell: Cell, where: Where) -> bool:
    """Whether the cell has each named level; a list means any of its levels."""
    for name, wanted in where.items():
        level = cell.factors.get(name)
        if level != wanted and (isinstance(wanted, str) or level not in wanted):
            return False
    return True


def pairs(cells: Sequence[Cell], higher: Where, lower: Where) -> Iterator[tuple[Cell, Cell]]:
    """Cells with the levels `higher` and `lower` that are alike in all that these do not name.

    When the kind of drive differs, the drive itself may differ too.
    """
    free = _free([c for c in cells if fits(c, higher) or fits(c, lower)], {*higher, *lower})
    partners: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in cells:
        if fits(cell, lower):
            partners.setdefault(_rest(cell, free), []).append(cell)
    for cell in cells:
        if fits(cell, higher):
            for partner in partners.get(_rest(cell, free), ()):
                yield cell, partner


def _free(cells: Sequence[Cell], named: set[str]) -> set[str]:
    """Factors that may differ with those that are named."""
    free = set(named)
    free.update(name for factor in named for name in _FOLLOWS.get(factor, ()))
    if "operation" in free:
        free.add("phase")  # a phase is called after its operation
    if "machine" in free and _one_drive_each(cells):
        free.add("device")
    if "device" in free:
        free.add("type")
    return free


def _one_drive_each(cells: Sequence[Cell]) -> bool:
    """Whether each machine has one drive, of another name than the others': then the machines are
    compared with their drives."""
    places = {(cell.factors["machine"], cell.factors["device"]) for cell in cells}
    drives = {drive for _, drive in places}
    return len({machine for machine, _ in places}) == len(places) == len(drives)


def _rest(cell: Cell, free: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, level) for name, level in cell.factors.items() if name not in free)


def differences(
    found: Iterable[tuple[Cell, Cell]], metric: str, adjustment: Adjustment = "none"
) -> list[Difference]:
    """The difference of each pair, as it is: `percent` may be negative. p-values are adjusted over
    all of them. Pairs without the metric are passed over (`Cell.reasons` has why)."""
    tested = []
    for a, b in found:
        if not a.n(metric) or not b.n(metric) or b.median(metric) <= 0:
            continue
        test = mann_whitney(a.values[metric], b.values[metric])
        percent = 100.0 * (a.median(metric) / b.median(metric) - 1.0)
        tested.append((a, b, percent, test))
    known = [test.p for _, _, _, test in tested if test.p is not None]
    adjusted = iter(adjust(known, adjustment) if adjustment != "none" else known)
    return [
        Difference(metric, a, b, percent, test, next(adjusted) if test.p is not None else None)
        for a, b, percent, test in tested
    ]


def largest(found: Sequence[Difference], alpha: float = ALPHA) -> Difference | None:
    """The largest confirmed one upwards; None when none is."""
    confirmed = [d for d in found if d.percent > 0 and d.confirmed(alpha)]
    return max(confirmed, key=lambda d: d.percent, default=None)


def _levels(cells: Sequence[Cell], factor: str) -> list[str]:
    found = dict.fromkeys(cell.factors[factor] for cell in cells if factor in cell.factors)
    return [level for level in found if level not in ("as found", "unknown", "any")]


@dataclass(frozen=True)
class Finding:
    """What one factor does to one metric: of all pairs whose `factor` is `higher` against `lower`,
    how many the test confirms, and the largest of them."""

    metric: str
    factor: str
    higher: str
    lower: str
    pairs: int
    confirmed: int
    too_few: int
    largest: Difference | None


def findings(
    cells: Sequence[Cell],
    adjustment: Adjustment = "benjamini-hochberg",
    alpha: float = ALPHA,
    metrics: Sequence[str] = METRICS,
    factors: Sequence[str] = FACTORS,
) -> list[Finding]:
    """Every factor's effect on every metric, in both directions."""
    found = []
    for metric in metrics:
        for factor in factors:
            levels = _levels(cells, factor)
            if len(levels) > 2 and factor not in ("machine", *_FOLLOWS):
                tested = _by_dunn(cells, metric, factor, levels, adjustment)
            else:
                tested = _by_pairs(cells, metric, factor, levels, adjustment)
            for (first, second), of_pair in tested.items():
                if of_pair:
                    found += _both_ways(metric, factor, first, second, of_pair, alpha)
    return found


Tested = dict[tuple[str, str], list[Difference]]


def _by_pairs(
    cells: Sequence[Cell], metric: str, factor: str, levels: Sequence[str], adjustment: Adjustment
) -> Tested:
    """Two levels: Mann-Whitney, adjusted over all pairs of experiments."""
    return {
        (first, second): differences(
            pairs(cells, {factor: first}, {factor: second}), metric, adjustment
        )
        for first, second in combinations(levels, 2)
    }


def _by_dunn(
    cells: Sequence[Cell], metric: str, factor: str, levels: Sequence[str], adjustment: Adjustment
) -> Tested:
    """More levels: Dunn's test among the experiments that are alike in all else, adjusted over
    these (Pavan et al. 2018, section 3)."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, Cell]] = {}
    free = _free(cells, {factor})
    for cell in cells:
        if cell.factors[factor] in levels and cell.n(metric) and cell.median(metric) > 0:
            groups.setdefault(_rest(cell, free), {})[cell.factors[factor]] = cell
    found: Tested = {pair: [] for pair in combinations(levels, 2)}
    for group in groups.values():
        if len(group) < 2:
            continue
        dunn = dunn_test({level: cell.values[metric] for level, cell in group.items()}, adjustment)
        p_of = {frozenset((pair.a, pair.b)): pair.p_adjusted for pair in dunn.pairs}
        for first, second in found:
            if first in group and second in group:
                a, b = group[first], group[second]
                found[first, second].append(
                    Difference(
                        metric, a, b, 100.0 * (a.median(metric) / b.median(metric) - 1.0),
                        mann_whitney(a.values[metric], b.values[metric]),
                        p_of[frozenset((first, second))],
                    )
                )  # fmt: skip
    return found


def _both_ways(
    metric: str, factor: str, first: str, second: str, tested: Sequence[Difference], alpha: float
) -> list[Finding]:
    turned = [
        Difference(
            metric, d.lower, d.higher, 100.0 * (100.0 / (100.0 + d.percent) - 1.0), d.test, d.p
        )
        for d in tested
        if d.percent > -100.0
    ]
    too_few = sum(d.test.too_small is not None for d in tested)
    return [
        Finding(
            metric, factor, high, low, len(one_way),
            sum(d.percent > 0 and d.confirmed(alpha) for d in one_way), too_few,
            largest(one_way, alpha),
        )
        for high, low, one_way in ((first, second, tested), (second, first, turned))
    ]  # fmt: skip


@dataclass(frozen=True)
class NormalityCount:
    """In how many experiments a test rejects that the repetitions are normally distributed."""

    metric: str
    experiments: int
    kolmogorov_smirnov: int
    lilliefors: int
    shapiro_wilk: int


def normality_counts(cells: Sequence[Cell], alpha: float = ALPHA) -> list[NormalityCount]:
    """For each metric that was measured. Kolmogorov-Smirnov with fitted mean and deviation is far
    too lenient and stands here for comparison with older papers; the other two decide."""
    found = []
    for metric in METRICS:
        tested = [normality_of(cell.values[metric], alpha) for cell in cells if cell.n(metric)]
        if tested:
            found.append(
                NormalityCount(
                    metric,
                    len(tested),
                    *(
                        sum(test.p is not None and test.p < alpha for test in of_name)
                        for of_name in zip(
                            *((t.kolmogorov_smirnov, t.lilliefors, t.shapiro_wilk) for t in tested),
                            strict=True,
                        )
                    ),
                )
            )
    return found


def unmatched(cells: Sequence[Cell]) -> list[str]:
    """Experiments that one machine has and another has not, in words."""
    place = ("machine", "device", "type")
    of_machine: dict[str, set[str]] = {}
    for cell in cells:
        of_machine.setdefault(cell.factors["machine"], set()).add(cell.words(place, tool=True))
    everything = set().union(*of_machine.values()) if of_machine else set()
    return [
        f"{machine} has no {words}"
        for machine, known in of_machine.items()
        for words in sorted(everything - known)
    ]


def domain_warnings(cells: Sequence[Cell]) -> list[str]:
    """What must be said of the power behind a MB/J: without the drives, of different domains on
    different sides, contradicted by another meter."""
    of_machine: dict[str, dict[str, None]] = {}
    doubts: dict[str, None] = {}
    for cell in cells:
        of_machine.setdefault(cell.factors["machine"], {}).update(dict.fromkeys(cell.efficiency_of))
        doubts |= dict.fromkeys(f"{cell.factors['machine']}: doubtful: {d}" for d in cell.doubts)
    domains = {domain for of in of_machine.values() for domain in of}
    told = [f"{machine}: {', '.join(of)}" for machine, of in of_machine.items() if of]
    found = []
    if len(domains) > 1:
        found.append(f"MB/J of different power domains stand beside each other: {'; '.join(told)}")
    elif any("without drives" in domain for domain in domains):
        found.append(f"MB/J is not the storage's, for the drives are not in it: {'; '.join(told)}")
    return [*found, *doubts]


@dataclass(frozen=True)
class IdleBusy:
    """Power of one domain at idle and in the busiest experiment, W; None where not measured."""

    machine: str
    device: str
    domain: str
    idle_w: float | None
    busy_w: float | None
    busiest: str
    reason: str | None

    @property
    def extra_w(self) -> float | None:
        if self.idle_w is None or self.busy_w is None:
            return None
        return self.busy_w - self.idle_w


def idle_and_busy(campaign: Campaign, cells: Sequence[Cell]) -> list[IdleBusy]:
    """Each measured domain of a campaign, idle against the experiment with the highest system
    power (figure 6 of Pavan et al. 2018), and the `rest`: system less what its parts take.

    All domains are those of that one experiment, so that they add up.
    """
    measured = [m for m in POWER.values() if any(cell.n(m) for cell in cells)]
    if not measured:
        return []
    busiest = max(
        (cell for cell in cells if cell.n(measured[0])), key=lambda cell: cell.median(measured[0])
    )
    idle = {r.domain: r.power_w for r in campaign.idle if r.valid and r.kind != "modelled"}
    place = (busiest.factors["machine"], busiest.factors["device"])
    words = busiest.words(without=("machine", "device"))
    found = []
    for domain, metric in POWER.items():
        if metric not in measured:
            continue
        idle_w = idle.get(domain)
        busy_w = busiest.median(metric) if busiest.n(metric) else None
        reason = None
        if idle_w is None:
            reason = campaign.idle_reason or f"idle was not measured in the domain {domain}"
        found.append(IdleBusy(*place, domain, idle_w, busy_w, words, reason))
    by_domain = {item.domain: item for item in found}
    # A module holds its package and memory: either it is a part of the system, or they are.
    inner = ("package", "dram") if "module" in by_domain else ("module",)
    parts = [item for item in found if item.domain not in ("system", *inner)]
    if "system" in by_domain and parts:
        whole = by_domain["system"]
        names = ", ".join(item.domain for item in parts)
        found.append(
            IdleBusy(
                *place,
                "rest",
                _less(whole.idle_w, [item.idle_w for item in parts]),
                _less(whole.busy_w, [item.busy_w for item in parts]),
                words,
                f"system less {names}",
            )
        )
    return found


def _less(whole: float | None, parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    if whole is None or len(known) != len(parts):
        return None
    return whole - math.fsum(known)
