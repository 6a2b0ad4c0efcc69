"""A drive in its steady state: IOPS for its watts, tail latencies, and how it came to rest.

The `precondition` of its experiments is how often the measured area was overwritten before. After
the practice of SNIA's Solid State Storage Performance Test Specification 2.0.2 (steady state,
preconditioning, queue depths) and of SNIA Emerald's Power Efficiency Measurement Specification
(operations a second for each watt).

Campaigns that compare fio's engines have the same table: what polling costs the processors.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from eeio.analysis.io_label import io_label, sized
from eeio.analysis.metrics import LATENCIES
from eeio.analysis.observation import Missing, known
from eeio.analysis.ranking import why_figures_unsure
from eeio.analysis.summary import Figure, Quartiles
from eeio.record.publication import stamp_of
from eeio.record.steady_state import State
from eeio.report.campaign.columns import middle, plain
from eeio.report.figures.panels_of_lines import Line, Lines, Panel, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter, Study
from eeio.units.sizes import MB, percent

if TYPE_CHECKING:
    from eeio.analysis.rows import Row
    from eeio.record.store import Campaign

_CPU = "package"


_COLUMNS = ("engine=", "iodepth=")
_FIGURES = ("iops", "bandwidth_bytes_per_s", "power_w", "efficiency_bytes_per_j", "iops_per_w")


@dataclass(frozen=True)
class Point:
    """One experiment of a drive. Power is that of the widest domain that was measured;
    `cpu_j_per_request` is the energy of the processor packages over the requests, idle energy
    included."""

    row: "Row"
    iodepth: int
    engine: str
    cpu_j_per_request: Figure
    details: tuple[str, ...] = ()
    """How it differs from other points, but for the fields above."""
    unsure: str | None = None
    """Why its energy is compared with no other: a doubt, or its uncertainty."""

    @property
    def latency_s(self) -> Mapping[str, Quartiles]:
        """The percentiles that the tool reported."""
        latencies = {name: self.row[f"latency_{name}_s"] for name in LATENCIES}
        return {name: latency for name, latency in latencies.items() if latency is not None}

    def why(self, name: str) -> str | None:
        """Why this figure of the table is missing; None if it is known."""
        if name == "latency_s":
            if self.latency_s:
                return None
            return self.row.why("latency_p50_s")
        if name != "cpu_j_per_request":
            return self.row.why(name)
        figure = self.cpu_j_per_request
        if isinstance(figure, Missing):
            return figure.reason
        return None


@dataclass(frozen=True)
class PointBody:
    """One experiment of a drive. Power is that of the widest domain that was measured;
    `cpu_j_per_request` is the energy of the processor packages over the requests, idle energy
    included. A null has its reason in `reasons`."""

    campaign: str
    experiment: str
    operation: str | None
    spatiality: str | None
    request_size_bytes: int | None
    iodepth: int
    engine: str
    n: int
    iops: Quartiles | None
    bandwidth_bytes_per_s: Quartiles | None
    power_w: Quartiles | None
    power_domain: str | None
    iops_per_w: Quartiles | None
    efficiency_bytes_per_j: Quartiles | None
    latency_s: Mapping[str, Quartiles] | None
    cpu_j_per_request: Quartiles | None
    reasons: Mapping[str, str] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    """How it differs from other points, but for the fields above."""
    unsure: str | None = None
    """Why its energy is compared with no other: a doubt, or its uncertainty."""


def points(campaign: "Campaign") -> list[Point]:
    """Of the experiments that are preconditioned, else of those that compare engines."""
    from eeio.analysis.characterization import characterize

    factor = _factor(campaign)
    if factor is None:
        return []
    return [
        _point(row)
        for row in characterize(campaign)
        if row.experiment is not None
        and row.n + row.invalid_runs > 0
        and factor in dict(row.experiment.arguments)
    ]


def _factor(campaign: "Campaign") -> str | None:
    """The factor that the experiments of the table have."""
    each = [dict(planned.experiment.arguments) for planned in campaign.design.experiments]
    if any("precondition" in arguments for arguments in each):
        return "precondition"
    if len({a["engine"] for a in each if "engine" in a}) > 1:
        return "engine"
    return None


def _point(row: "Row") -> Point:
    assert row.experiment is not None
    arguments = dict(row.experiment.arguments)
    return Point(
        row=row,
        iodepth=int(arguments.get("iodepth", "1")),
        engine=arguments.get("engine", "psync"),
        cpu_j_per_request=_cpu_j_per_request(row),
        unsure=why_figures_unsure(row.measured),
        details=tuple(detail for detail in row.details if not detail.startswith(_COLUMNS)),
    )


def _point_body(point: Point) -> PointBody:
    row = point.row
    assert row.experiment is not None
    names = (*_FIGURES, "latency_s", "cpu_j_per_request")
    return PointBody(
        campaign=row.campaign,
        experiment=row.experiment.id,
        operation=row.operation,
        spatiality=row.spatiality,
        request_size_bytes=row.request_size_bytes,
        iodepth=point.iodepth,
        engine=point.engine,
        n=row.n,
        iops=row["iops"],
        bandwidth_bytes_per_s=row["bandwidth_bytes_per_s"],
        power_w=row["power_w"],
        power_domain=_power_domain(row),
        iops_per_w=row["iops_per_w"],
        efficiency_bytes_per_j=row["efficiency_bytes_per_j"],
        latency_s=point.latency_s or None,
        cpu_j_per_request=known(point.cpu_j_per_request),
        reasons={name: reason for name in names if (reason := point.why(name)) is not None},
        details=point.details,
        unsure=point.unsure,
    )


def _power_domain(row: "Row") -> str | None:
    if row.measured:
        return row.measured.power_domain
    return None


def _cpu_j_per_request(row: "Row") -> Figure:
    packages = []
    for domain in row.domains:
        if domain.power_domain == _CPU:
            packages.append(domain["iops_per_w"])
    if not packages:
        return Missing("no meter read the processor packages")
    requests_per_j = next((each for each in packages if each is not None), None)
    if requests_per_j is None or requests_per_j.q1 <= 0:
        return Missing(row.why("iops") or "too little of the time was observed")
    return Quartiles(1 / requests_per_j.median, 1 / requests_per_j.q3, 1 / requests_per_j.q1)


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    points_of = [(campaign, each) for campaign in campaigns if (each := points(campaign))]
    if not points_of:
        return None
    tables: list[Table] = []
    plots: list[Plot] = []
    rests: list[dict[str, Any]] = []
    for campaign, each in points_of:
        tables.append(_table(campaign, each))
        rest = campaign.steady_state
        if rest is not None:
            tables.append(_rounds(campaign, rest))
            rests.append(_body(campaign, rest))
            if rest.rounds:
                plots.append(_plot(campaign, rest))
    return Chapter(
        tables=tuple(tables),
        plots=tuple(plots),
        body={
            "drive": [asdict(_point_body(point)) for _, each in points_of for point in each],
            "steady_state": rests,
        },
    )


_COUNTS = ("instructions_per_request", "cycles_per_request")


def _counts(point: Point, is_counted: bool) -> tuple[str, ...]:
    """Cells of the processor's counters; none if no row has them."""
    if not is_counted:
        return ()
    return tuple(middle(point.row[name]) for name in _COUNTS)


def _count_headers(is_counted: bool) -> tuple[str, ...]:
    if not is_counted:
        return ()
    return ("Instructions/request", "Cycles/request")


_LATENCIES = (("p50", "p50 (ms)"), ("p99", "p99 (ms)"), ("p9999", "p99.99 (ms)"))


def _why_missing(each: Sequence[Point]) -> list[str]:
    """Why columns are empty; then why experiments have no figures."""
    reasons: dict[str, None] = {}
    failed = []
    for point in each:
        if point.row.n == 0:
            no_rate = point.why("bandwidth_bytes_per_s") or "see the problems"
            failed.append(f"{point.engine}, {_label(point)}, depth {point.iodepth}: {no_rate}")
            continue
        for name in ("iops_per_w", "cpu_j_per_request", "latency_s"):
            if (reason := point.why(name)) is not None:
                reasons.setdefault(f"{name}: {reason}")
    unsure = Counter(point.unsure for point in each if point.unsure is not None)
    reasons |= {f"W and MB/J of {n} rows: {reason}": None for reason, n in unsure.items()}
    return [*reasons, *failed]


def _table(campaign: "Campaign", each: Sequence[Point]) -> Table:
    order = {"libaio": 0, "io_uring": 1}
    is_counted = any(point.row[name] for point in each for name in _COUNTS)
    rows = tuple(
        (
            _label(point),
            str(point.iodepth),
            point.engine,
            str(point.row.n),
            middle(point.row["iops"]),
            middle(point.row["bandwidth_bytes_per_s"], MB),
            middle(point.row["power_w"]),
            middle(point.row["iops_per_w"]),
            middle(point.row["efficiency_bytes_per_j"], MB),
            *(middle(point.latency_s.get(name), 1e-3) for name, _ in _LATENCIES),
            middle(known(point.cpu_j_per_request), 1e-3),
            *_counts(point, is_counted),
        )
        for point in sorted(
            each, key=lambda p: (order.get(p.engine, 2), _label(p), p.engine, p.iodepth)
        )
    )
    domains = dict.fromkeys(filter(None, (_power_domain(point.row) for point in each)))
    what = "Engines"
    if _factor(campaign) == "precondition":
        what = "The drive"
    note = ""
    if domains:
        note = f"power of the {', '.join(domains)}; "
    return Table(
        title=f"{what}: {campaign.name}",
        header=(
            "Requests",
            "Depth",
            "Engine",
            "n",
            "IOPS",
            "MB/s",
            "Power (W)",
            "IOPS/W",
            "MB/J",
            *(label for _, label in _LATENCIES),
            "CPU (mJ/request)",
            *_count_headers(is_counted),
        ),
        rows=rows,
        numeric=frozenset((1, *range(3, 15))),
        note=f"medians; {note}CPU: energy of the processor packages, idle included, over the "
        f"requests\n{_worn(campaign)}" + "".join(f"\n{reason}" for reason in _why_missing(each)),
    )


def _worn(campaign: "Campaign") -> str:
    """The campaign's wear of the drive, as the drive reports it."""
    if len(campaign.design.wear) < 2:
        return "wear: the drive reports none (NVMe drives do, to root)"
    before, after = campaign.design.wear[0], campaign.design.wear[-1]
    return (
        f"wear: the drive counts {(after.written_bytes - before.written_bytes) / 1e9:.4g} GB "
        f"written meanwhile, {after.used_percent} % of its rated endurance used (before: "
        f"{before.used_percent} %)"
    )


def _label(point: Point) -> str:
    row = point.row
    kind = io_label(row.operation, row.spatiality)
    return " ".join((sized(kind, row.request_size_bytes), *point.details))


def _names(campaign: "Campaign") -> dict[str, str]:
    """Experiment id -> its name in tables and plots."""
    names = {}
    for planned in campaign.design.experiments:
        experiment = planned.experiment
        arguments = dict(experiment.arguments)
        kind = io_label(experiment.operation, experiment.spatiality)
        name = sized(kind, experiment.request_size_bytes)
        name += f", depth {arguments.get('iodepth', '1')}, {arguments.get('engine', 'psync')}"
        names[experiment.id] = name
    return names


def _rounds(campaign: "Campaign", rest: State) -> Table:
    rule = campaign.design.protocol.steady
    assert rule is not None
    names = _names(campaign)
    window = "none complete"
    if rest.rounds:
        window = f"{rest.first} to {rest.rounds}"
    rows = tuple(
        (
            names[tracked.experiment_id],
            plain(tracked.values[0] if tracked.values else None, MB),
            plain(tracked.values[-1] if tracked.values else None, MB),
            "-"
            if tracked.window.range_share is None
            else f"{percent(tracked.window.range_share)} %",
            "-"
            if tracked.window.slope_share is None
            else f"{percent(tracked.window.slope_share)} %",
            "yes" if tracked.is_steady else "no",
        )
        for tracked in rest.tracked
    )
    return Table(
        title=f"Steady state: {campaign.name}, {'reached' if rest.is_steady else 'not reached'}",
        header=("Experiment", "MB/s, first round", "MB/s, last round", "Range", "Line", "Steady"),
        rows=rows,
        numeric=frozenset((1, 2, 3, 4)),
        note=f"{rest.rounds} rounds, of which {window} are the measurement; steady: over these "
        f"the largest and the smallest value are within {percent(rule.range_share)} % of "
        f"their mean, and the fitted line changes by {percent(rule.slope_share)} % at most",
    )


class SteadyExperimentBody(TypedDict):
    experiment: str
    bandwidth_bytes_per_s: Sequence[float | None]
    range_share: float | None
    slope_share: float | None
    is_steady: bool


class SteadyStateBody(TypedDict):
    campaign: str
    rounds: int
    """Complete ones."""
    first_round: int
    """The first of those that are the measurement."""
    is_steady: bool
    experiments: Sequence[SteadyExperimentBody]


def _body(campaign: "Campaign", rest: State) -> dict[str, Any]:
    return {
        "campaign": campaign.name,
        "rounds": rest.rounds,
        "first_round": rest.first,
        "is_steady": rest.is_steady,
        "experiments": [
            {
                "experiment": tracked.experiment_id,
                "bandwidth_bytes_per_s": list(tracked.values),
                "range_share": tracked.window.range_share,
                "slope_share": tracked.window.slope_share,
                "is_steady": tracked.is_steady,
            }
            for tracked in rest.tracked
        ],
    }


def _plot(campaign: "Campaign", rest: State) -> Plot:
    names = _names(campaign)
    each = []
    for tracked in rest.tracked:
        each.append(
            Line(
                names[tracked.experiment_id],
                [(n, value / MB) for n, value in enumerate(tracked.values, 1) if value is not None],
            )
        )
    return plot(
        f"steady-state-{campaign.name}.svg",
        Lines(
            f"Rounds to the steady state: {campaign.name}",
            "round (shaded: the measurement)",
            [Panel("MB/s", each, (rest.first - 0.5, rest.rounds + 0.5))],
            stamp_of([campaign]),
        ),
    )


STUDY = Study(chapter=_chapter)
