"""Nodes of a fleet: which differ from the others of their kind (decision 50)."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from eeio.analysis.metrics import METRICS
from eeio.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    POWER,
    Cell,
    cells_of,
    without_unsure_energy,
)
from eeio.comparison.changes import PLACE
from eeio.comparison.history import machine_differences
from eeio.record.run import Machine
from eeio.record.store import Campaign
from eeio.statistics.adjustment import adjust
from eeio.statistics.outliers import LEAST_VALUES, outlier_p_values

FALSE_SHARE = 0.05
"""Of the reported nodes, at most this share is expected to be false."""
LEAST_DIFFERENCE = 0.01
"""Smaller differences are not worth a visit to the node, however sure they are."""
ALL = "all experiments"

_METRICS = (BANDWIDTH, "operations_per_s", *POWER.values(), EFFICIENCY)
_NAMES = {metric.key: metric.name for metric in METRICS if metric.key in _METRICS} | {
    key: f"W {domain}" for domain, key in POWER.items()
}
_MORE_IS_BETTER = {metric.key for metric in METRICS if metric.better == "more"}
_KIND = ("architecture", "cpu_model", "logical_cpus", "device_model")
_OF_NODE = ("hostname", "drive_id", "drive_label", "missing", "programs", "limits", "device")


@dataclass(frozen=True)
class NodeResults:
    """What was collected of one node. `campaign` is None if it has none; `remarks` say what is
    missing or doubtful."""

    name: str
    campaign: Campaign | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outlier:
    """One node's value that differs from those of its kind by `difference` (-0.1: 10 % less).
    `value` and `usual` are geometric means of the node's runs and the median over the nodes, in SI
    units; None for all experiments together. `p` is the node's, adjusted for the number
    of its tests and of nodes."""

    node: str
    experiment: str
    metric: str
    difference: float
    p: float
    worse: bool
    value: float | None = None
    usual: float | None = None


@dataclass(frozen=True)
class NodeSummary:
    """`ratios` is, for each metric, the mean over the experiments of the node's value divided by
    the median of its kind (geometric mean)."""

    name: str
    kind: str
    state: str
    runs: int
    invalid_runs: int
    ratios: Mapping[str, float]
    outliers: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Fleet:
    nodes: tuple[NodeSummary, ...]
    outliers: tuple[Outlier, ...]
    tests: int
    metrics: tuple[str, ...]
    not_tested: tuple[str, ...]
    """What could not be tested, and why."""


@dataclass(frozen=True)
class NodeTest:
    """One value of one node in one test, as logarithms."""

    node: str
    experiment: str
    metric: str
    log: float
    usual: float
    p: float


def fleet(nodes: Sequence[NodeResults]) -> Fleet:
    """Compares nodes of one kind with each other."""
    kinds: dict[tuple[object, ...], list[NodeResults]] = {}
    for node in nodes:
        if node.campaign is not None:
            kinds.setdefault(_kind(node.campaign.machine), []).append(node)
    tests: list[NodeTest] = []
    ratios: dict[str, dict[str, float]] = {}
    not_tested: list[str] = []
    metrics: dict[str, None] = {}
    for kind, of_kind in kinds.items():
        values = _values(of_kind)
        metrics |= dict.fromkeys(key for key, _ in values)
        found, why = tests_of(values)
        tests += found
        for reason in why:
            not_tested.append(f"{_kind_name(kind)}: {reason}")
        for key in dict.fromkeys(key for key, _ in values):
            for name, mean in _mean_ratios(values, key).items():
                ratios.setdefault(name, {})[_NAMES[key]] = math.exp(mean)
    outliers = outliers_of(tests)
    per_node = Counter(outlier.node for outlier in outliers)
    usual = {kind: _usual(of_kind) for kind, of_kind in kinds.items()}
    return Fleet(
        nodes=tuple(
            _summary(node, usual, ratios.get(node.name, {}), per_node[node.name]) for node in nodes
        ),
        outliers=tuple(outliers),
        tests=len(tests),
        metrics=tuple(_NAMES[key] for key in _METRICS if key in metrics),
        not_tested=tuple(not_tested),
    )


def _kind(machine: Machine) -> tuple[object, ...]:
    return tuple(getattr(machine, name) for name in _KIND)


def _kind_name(kind: tuple[object, ...]) -> str:
    architecture, processor, count, drive = kind
    return f"{count} x {processor or architecture}, {drive or 'unknown drive'}"


def _without_doubtful(cell: Cell) -> Cell:
    """All nodes have meters of one kind, so an uncertainty that they share is no difference."""
    return without_unsure_energy(cell, math.inf)


Values = dict[tuple[str, str], dict[str, float]]
"""(metric, experiment) -> node -> logarithm of its value."""


def _values(nodes: Sequence[NodeResults]) -> Values:
    cells = [
        (node.name, cell, cell.label(PLACE, tool=True))
        for node in nodes
        if node.campaign is not None
        for cell in map(_without_doubtful, cells_of(node.campaign))
    ]
    # Experiments may differ in arguments that no label shows; their ids are equal on all nodes.
    ids: dict[str, set[str]] = {}
    for _, cell, label in cells:
        ids.setdefault(label, set()).add(cell.experiment_id)
    # Power of other domains or by other meters is not compared: it is in rows of its own.
    sources: dict[str, set[str]] = {}
    for _, cell, _ in cells:
        for key in _METRICS:
            sources.setdefault(key, set()).add(_source(cell, key))
    by_node: Values = {}
    for name, cell, label in cells:
        in_all = label
        if len(ids[label]) != 1:
            in_all = f"{label}, experiment {cell.experiment_id}"
        for key in _METRICS:
            several = len(sources[key] - {""}) > 1
            row = in_all
            if several:
                row = f"{in_all}, {_source(cell, key)}"
            runs = [value for value in cell.values(key) if value > 0]
            if runs:
                mean = statistics.fmean(map(math.log, runs))
                by_node.setdefault((key, row), {})[name] = mean
    return by_node


_DOMAIN_OF = {key: domain for domain, key in POWER.items()}


def _source(cell: Cell, key: str) -> str:
    """The power domain and the meter of a metric; empty if it has none."""
    domain = next(iter(cell.meters), "") if key == EFFICIENCY else _DOMAIN_OF.get(key, "")
    if domain in cell.meters:
        return f"{domain} by {cell.meters[domain]}"
    return ""


def tests_of(values: Values) -> tuple[list[NodeTest], list[str]]:
    """Those of each experiment, and of all together; and what could not be tested."""
    tests: list[NodeTest] = []
    few: Counter[int] = Counter()
    equal = 0
    for (key, label), of_nodes in values.items():
        p_values = outlier_p_values(list(of_nodes.values()))
        if p_values is None:
            if len(of_nodes) < LEAST_VALUES:
                few[len(of_nodes)] += 1
            else:
                equal += 1
            continue
        usual = statistics.median(of_nodes.values())
        for (name, log), p in zip(of_nodes.items(), p_values, strict=True):
            tests.append(NodeTest(name, label, key, log, usual, p))
    for key in dict.fromkeys(key for key, _ in values):
        if len([1 for other, _ in values if other == key]) < 2:
            continue
        means = _mean_ratios(values, key)
        p_values = outlier_p_values(list(means.values()))
        if p_values is not None:
            usual = statistics.median(means.values())
            tests += [
                NodeTest(name, ALL, key, log, usual, p)
                for (name, log), p in zip(means.items(), p_values, strict=True)
            ]
    reasons = []
    for nodes, count in sorted(few.items()):
        reasons.append(
            f"{count} rows have values of {nodes} nodes only; a test needs {LEAST_VALUES}"
        )
    if equal:
        reasons.append(f"in {equal} rows at least half of the nodes have the same value")
    return tests, reasons


def _mean_ratios(values: Values, key: str) -> dict[str, float]:
    """Of the nodes that have all rows that most nodes have, so that the means are of the same rows:
    node -> mean logarithm of its ratio to the median."""
    rows = {}
    for (other, label), of_nodes in values.items():
        if other == key:
            rows[label] = of_nodes
    most = max(map(len, rows.values()))
    common = {label: of_nodes for label, of_nodes in rows.items() if 2 * len(of_nodes) > most}
    nodes = set.intersection(*(set(of_nodes) for of_nodes in common.values()))
    usual = {label: statistics.median(of_nodes.values()) for label, of_nodes in common.items()}
    ratios = {}
    for name in next(iter(common.values())):
        if name in nodes:
            ratios[name] = statistics.fmean(
                of_nodes[name] - usual[label] for label, of_nodes in common.items()
            )
    return ratios


def outliers_of(tests: Sequence[NodeTest]) -> list[Outlier]:
    """First the nodes, then the rows of each: Y. Benjamini and M. Bogomolov, Selective inference on
    multiple families of hypotheses, Journal of the Royal Statistical Society B 76 (2014), 297-318.
    With one adjustment for all rows a bad node, which has many rows, would let in false rows of
    other nodes."""
    of_node: dict[str, list[NodeTest]] = {}
    for test in tests:
        of_node.setdefault(test.node, []).append(test)
    in_node = {
        node: adjust([test.p for test in own], "benjamini-hochberg")
        for node, own in of_node.items()
    }
    # The smallest adjusted p of a node is Simes' p that none of its rows differs.
    smallest = [min(of_rows) for of_rows in in_node.values()]
    p_of_node = dict(zip(in_node, adjust(smallest, "benjamini-hochberg"), strict=True))
    chosen = [node for node, p in p_of_node.items() if p <= FALSE_SHARE]
    level = FALSE_SHARE * len(chosen) / max(1, len(of_node))
    outliers = []
    for node in chosen:
        for test, p in zip(of_node[node], in_node[node], strict=True):
            difference = math.exp(test.log - test.usual) - 1.0
            if p > level or abs(difference) < LEAST_DIFFERENCE:
                continue
            together = test.experiment == ALL
            outliers.append(
                Outlier(
                    node=node,
                    experiment=test.experiment,
                    metric=_NAMES[test.metric],
                    difference=difference,
                    p=p_of_node[node],
                    worse=(difference < 0) == (test.metric in _MORE_IS_BETTER),
                    value=None if together else math.exp(test.log),
                    usual=None if together else math.exp(test.usual),
                )
            )
    outliers.sort(key=lambda one: (one.p, one.node, one.experiment != ALL))
    return outliers


def _usual(nodes: Sequence[NodeResults]) -> Machine:
    """A machine with the most common value of each field."""
    machines = [node.campaign.machine for node in nodes if node.campaign is not None]
    common = {}
    for field in fields(Machine):
        if field.name in _OF_NODE:
            continue
        values = [getattr(machine, field.name) for machine in machines]
        common[field.name] = max(values, key=values.count)
    return replace(machines[0], **common)


def _summary(
    node: NodeResults,
    usual: Mapping[tuple[object, ...], Machine],
    ratios: Mapping[str, float],
    outliers: int,
) -> NodeSummary:
    if node.campaign is None:
        return NodeSummary(node.name, "unknown", "no results", 0, 0, {}, 0, node.remarks)
    campaign = node.campaign
    kind = _kind(campaign.machine)
    invalid = sum(not run.valid for run in campaign.runs)
    state = "incomplete"
    if campaign.is_complete:
        state = "complete"
    return NodeSummary(
        name=node.name,
        kind=_kind_name(kind),
        state=state,
        runs=campaign.stored_runs,
        invalid_runs=invalid,
        ratios=dict(ratios),
        outliers=outliers,
        remarks=(
            *node.remarks,
            *campaign.shortcomings,
            *_why_invalid(campaign),
            *(
                f"unlike the others: {difference}"
                for difference in machine_differences(usual[kind], campaign.machine)
            ),
        ),
    )


def _why_invalid(campaign: Campaign) -> list[str]:
    """The reasons of invalid runs, the most frequent ones first."""
    reasons = Counter(run.validity[0] for run in campaign.runs if run.validity)
    most = reasons.most_common(_MOST_REASONS)
    others = sum(reasons.values()) - sum(count for _, count in most)
    return [
        *(f"{count} invalid: {reason}" for reason, count in most),
        *([f"{others} invalid for other reasons"] if others else []),
    ]


_MOST_REASONS = 3
