"""How far the power of a drive can be adapted: by its power states, request sizes and depths.

After Xie et al. 2024 (HotStorage, doi 10.1145/3655038.3665945): the dynamic range is the highest
less the lowest power of all experiments, as a share of the highest. Under a limit of watts the
drive reaches the highest bandwidth of the experiments whose power is not above it. The paper prints
a dynamic range of up to 59.4 % of a device's maximum operating power; its drives are not named in
what is published.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from eeio.analysis.ranking import why_figures_unsure
from eeio.record.publication import stamp_of
from eeio.record.store import Campaign
from eeio.report.campaign.columns import plain
from eeio.report.figures.panels_of_lines import Line, Lines, Panel, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter, PaperFigure, Study
from eeio.units.sizes import MB, format_size

if TYPE_CHECKING:
    from eeio.analysis.rows import Row

SUITE = "eeio-adaptive"
PAPER = "Xie et al. 2024"
_PRINTED_RANGE = 59.4
_LIMITS = 8
"""Limits of watts in the table, at equal distances."""


@dataclass(frozen=True)
class Point:
    """One experiment, in a power state (None: as measured)."""

    label: str
    operation: str
    power_state: str | None
    power_w: float
    bandwidth_bytes_per_s: float
    power_domain: str


@dataclass(frozen=True)
class Limit:
    """The experiment with the highest bandwidth whose power is not above `limit_w`."""

    limit_w: float
    point: Point


def points(campaign: Campaign) -> tuple[list[Point], list[str]]:
    """Those with a sure power of one domain, and why others are missing."""
    from eeio.analysis.characterization import characterize

    measured: list[Point] = []
    reasons: dict[str, None] = {}
    for row in characterize(campaign):
        if row.experiment is None or row.n == 0:
            continue
        point = _point(row)
        if isinstance(point, Point):
            measured.append(point)
        else:
            reasons.setdefault(point)
    domains = {point.power_domain for point in measured}
    if len(domains) > 1:
        return [], ["the experiments have power of different domains"]
    return measured, list(reasons)


def _point(row: "Row") -> Point | str:
    """A point, or why there is none."""
    assert row.experiment is not None
    bandwidth, figures = row["bandwidth_bytes_per_s"], row.drive_or_main
    if bandwidth is None:
        return row.why("bandwidth_bytes_per_s") or "no bandwidth"
    if figures is None or figures["power_w"] is None:
        return row.why("power_w") or "no power"
    unsure = why_figures_unsure(figures)
    if unsure is not None:
        return unsure
    arguments = dict(row.experiment.arguments)
    size = ""
    if row.request_size_bytes is not None:
        size = format_size(row.request_size_bytes)
    return Point(
        label=f"{row.io_label} {size}, depth {arguments.get('iodepth', '1')}",
        operation=row.operation or "",
        power_state=arguments.get("power_state"),
        power_w=figures["power_w"].median,
        bandwidth_bytes_per_s=bandwidth.median,
        power_domain=figures.power_domain,
    )


def dynamic_range(measured: Sequence[Point]) -> float | None:
    """(highest - lowest) / highest power; None with fewer than two points."""
    if len(measured) < 2:
        return None
    powers = [point.power_w for point in measured]
    return (max(powers) - min(powers)) / max(powers)


def under_limits(measured: Sequence[Point]) -> list[Limit]:
    """For limits from the lowest to the highest power of the points of one operation."""
    if not measured:
        return []
    powers = [point.power_w for point in measured]
    lowest, highest = min(powers), max(powers)
    limits = []
    for step in range(_LIMITS):
        limit_w = highest
        if step < _LIMITS - 1:
            limit_w = lowest + (highest - lowest) * step / (_LIMITS - 1)
        allowed = [point for point in measured if point.power_w <= limit_w]
        best = max(allowed, key=lambda point: point.bandwidth_bytes_per_s)
        limits.append(Limit(limit_w, best))
    return limits


@dataclass(frozen=True)
class LimitBody:
    operation: str
    limit_w: float
    bandwidth_bytes_per_s: float
    power_w: float
    power_state: str | None
    experiment: str


@dataclass(frozen=True)
class AdaptivityBody:
    campaign: str
    power_domain: str | None
    dynamic_range: float | None
    """Highest less lowest power, as a share of the highest."""
    limits: Sequence[LimitBody]
    reasons: Sequence[str]
    """Why experiments are left out."""


def _chapter(campaigns: Sequence[Campaign]) -> Chapter | None:
    tables: list[Table] = []
    plots: list[Plot] = []
    beside: list[PaperFigure] = []
    bodies: list[AdaptivityBody] = []
    for campaign in campaigns:
        if campaign.design.suite != SUITE:
            continue
        measured, reasons = points(campaign)
        tables.append(_table(campaign, measured, reasons))
        plots += _plots(campaign, measured)
        beside.append(_beside(campaign, measured, reasons))
        bodies.append(_body(campaign, measured, reasons))
    if not bodies:
        return None
    return Chapter(
        tables=tuple(tables),
        plots=tuple(plots),
        body={"power_adaptivity": list(map(asdict, bodies))},
        paper=PAPER,
        beside=tuple(beside),
        apart="The paper prints the largest range of its data-centre drives, over their power "
        "states and shapes of I/O.",
    )


def _by_operation(measured: Sequence[Point]) -> dict[str, list[Point]]:
    groups: dict[str, list[Point]] = {}
    for point in measured:
        groups.setdefault(point.operation, []).append(point)
    return groups


def _table(campaign: Campaign, measured: Sequence[Point], reasons: Sequence[str]) -> Table:
    rows = []
    for operation, of_operation in _by_operation(measured).items():
        for limit in under_limits(of_operation):
            point = limit.point
            rows.append(
                (
                    operation,
                    plain(limit.limit_w),
                    plain(point.bandwidth_bytes_per_s, MB),
                    plain(point.power_w),
                    point.power_state or "as measured",
                    point.label,
                )
            )
    notes = []
    share = dynamic_range(measured)
    if share is not None:
        notes.append(
            f"dynamic range {100 * share:.1f} % of the highest power, over {len(measured)} "
            f"experiments; power of the {measured[0].power_domain}"
        )
    notes += [f"left out: {reason}" for reason in reasons]
    return Table(
        title=f"Bandwidth under a limit of power: {campaign.name}",
        header=("Operation", "Limit (W)", "MB/s", "Power (W)", "Power state", "Experiment"),
        rows=tuple(rows),
        numeric=frozenset((1, 2, 3)),
        note="\n".join(notes),
    )


def _plots(campaign: Campaign, measured: Sequence[Point]) -> list[Plot]:
    """Bandwidth over power, the points of a state in one colour."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for point in measured:
        state = "as measured"
        if point.power_state is not None:
            state = f"state {point.power_state}"
        label = f"{point.operation}, {state}"
        groups.setdefault(label, []).append((point.power_w, point.bandwidth_bytes_per_s / MB))
    if not groups:
        return []
    title = f"Bandwidth against power: {campaign.name}"
    lines = [Line(label, groups[label], is_joined=False) for label in sorted(groups)]
    panels = [Panel("MB/s", lines)]
    drawn = Lines(title, "power (W)", panels, stamp_of([campaign]))
    return [plot(f"bandwidth-against-power-{campaign.name}.svg", drawn)]


def _beside(campaign: Campaign, measured: Sequence[Point], reasons: Sequence[str]) -> PaperFigure:
    share = dynamic_range(measured)
    remark = "; ".join(reasons) or "too few experiments with power"
    ours = None
    if share is not None:
        ours = 100 * share
        remark = f"{len(measured)} experiments, power of the {measured[0].power_domain}"
    return PaperFigure(
        campaign=campaign.name,
        topic="dynamic range of power",
        what="dynamic range, at most",
        unit="%",
        printed=_PRINTED_RANGE,
        source="abstract",
        of="data-centre drives",
        ours=ours,
        remark=remark,
    )


def _body(campaign: Campaign, measured: Sequence[Point], reasons: Sequence[str]) -> AdaptivityBody:
    domain = None
    if measured:
        domain = measured[0].power_domain
    limits = []
    for operation, of_operation in _by_operation(measured).items():
        for limit in under_limits(of_operation):
            limits.append(
                LimitBody(
                    operation=operation,
                    limit_w=limit.limit_w,
                    bandwidth_bytes_per_s=limit.point.bandwidth_bytes_per_s,
                    power_w=limit.point.power_w,
                    power_state=limit.point.power_state,
                    experiment=limit.point.label,
                )
            )
    return AdaptivityBody(
        campaign=campaign.name,
        power_domain=domain,
        dynamic_range=dynamic_range(measured),
        limits=limits,
        reasons=list(reasons),
    )


STUDY = Study(chapter=_chapter)
