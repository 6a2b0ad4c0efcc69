"""The nodes of a fleet as a document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from eeio.analysis.metrics import named
from eeio.comparison.fleet import FALSE_SHARE, Fleet, NodeSummary, Outlier
from eeio.record.publication import short_stamp
from eeio.report.campaign.columns import NONE
from eeio.report.document import Document, flat
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number

if TYPE_CHECKING:
    from eeio.report.page.panels import Panel


def document(
    found: Fleet, rejected: Sequence[str], title: str, warnings: tuple[str, ...]
) -> Document:
    """`rejected` are files and campaigns that were not used, with the reason; `warnings` those of
    the campaigns: QUICK, fictitious power."""
    with_results = [node for node in found.nodes if node.state != "no results"]
    complete = sum(node.state == "complete" for node in found.nodes)
    worse = {outlier.node for outlier in found.outliers if outlier.worse}
    answer = (
        f"nodes: {complete} of {len(found.nodes)} complete, {len(worse)} worse than the others of "
        "their kind"
    )
    parts: list[Table | str | tuple[str, ...]] = []
    if with_results:
        parts += [_outliers(found), _nodes(found)]
    else:
        parts.append(_nodes(found))
    if found.not_tested:
        parts.append(tuple(f"not tested: {reason}" for reason in found.not_tested))
    if rejected:
        parts.append(tuple(f"not used: {reason}" for reason in rejected))

    def charts() -> "Sequence[Panel]":
        from eeio.report.page import fleet

        return fleet.charts(found, short_stamp(warnings))

    return Document(
        title=title,
        answer=(answer,),
        parts=tuple(parts),
        data=lambda: {
            "schema_version": 1,
            **asdict(found),
            "rejected": list(rejected),
            "warnings": list(warnings),
        },
        records=lambda: [_record(node, found.metrics) for node in found.nodes],
        warnings=warnings,
        hint="eeio compare CAMPAIGN CAMPAIGN shows two nodes in detail",
        charts=charts,
    )


def _record(node: NodeSummary, metrics: Sequence[str]) -> Mapping[str, Any]:
    ratios = {f"ratio of {name}": node.ratios.get(name) for name in metrics}
    return {**flat({**asdict(node), "ratios": {}}), **ratios}


def _outliers(found: Fleet) -> Table:
    return Table(
        title="Outliers",
        header=("Node", "Experiment", "Metric", "Node's value", "Usual value", "Difference", "p"),
        rows=tuple(
            (
                outlier.node,
                outlier.experiment,
                outlier.metric,
                _value(outlier, outlier.value),
                _value(outlier, outlier.usual),
                f"{100 * outlier.difference:+.1f} %{' worse' if outlier.worse else ''}",
                f"{outlier.p:.1g}",
            )
            for outlier in found.outliers
        ),
        numeric=frozenset({3, 4, 5, 6}),
        note=f"{found.tests} tests between nodes with the same processor and drive (robust scale "
        "Q_n, Rousseeuw and Croux 1993; p of the node by Simes, Benjamini and Hochberg): at most "
        f"{100 * FALSE_SHARE:.0f} % of the nodes listed here are expected to be false",
    )


def _value(one: Outlier, value: float | None) -> str:
    if value is None:
        return NONE
    unit = 1.0
    if not one.metric.startswith("W "):
        unit = named(one.metric).unit
    return number(value / unit)


def _nodes(found: Fleet) -> Table:
    """The nodes that need attention first."""
    ordered = sorted(
        found.nodes, key=lambda node: (node.state == "complete", -node.outliers, not node.remarks)
    )
    return Table(
        title="Nodes",
        header=("Node", "Kind", "State", "Runs", "Invalid", "Outliers", *found.metrics, "Remarks"),
        rows=tuple(
            (
                node.name,
                node.kind,
                node.state,
                str(node.runs),
                str(node.invalid_runs),
                str(node.outliers),
                *(_percent(node.ratios.get(name)) for name in found.metrics),
                "; ".join(node.remarks) or NONE,
            )
            for node in ordered
        ),
        numeric=frozenset(range(3, 6 + len(found.metrics))),
        note="metrics: the node relative to the median of its kind, mean over its experiments",
    )


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return NONE
    return f"{100 * (ratio - 1):+.1f} %"
