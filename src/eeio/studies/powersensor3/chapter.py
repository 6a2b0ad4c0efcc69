"""The chapter of a report: tables and figures by request size and over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from eeio.record.publication import stamp_of
from eeio.record.store import Campaign
from eeio.report.figures.panels_of_lines import Lines, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter
from eeio.studies.powersensor3 import by_size, over_time, published
from eeio.studies.powersensor3.beside import figures
from eeio.studies.powersensor3.by_size import OfSize
from eeio.studies.powersensor3.over_time import OverTime
from eeio.units.sizes import MIB

if TYPE_CHECKING:
    from eeio.studies import Readings

SUITE = "eeio-ssd-power"
_SUITES = (SUITE, "eeio-drive-review")
_APART = (
    f"The paper's drive is a {published.DRIVE}, measured at its supply with io_uring and fixed "
    "buffers, registered files, polled completions and a polling submission thread (these engine "
    "options: --sweep engine=io_uring_combined). Its values are read from the drawings of its "
    "published measurements."
)


def chapter(campaigns: Sequence[Campaign], readings: "Readings") -> Chapter | None:
    tables: list[Table] = []
    plots: list[Plot] = []
    beside = []
    body: list[SsdPowerBody] = []
    for campaign in campaigns:
        if campaign.design.suite not in _SUITES:
            continue
        sizes = by_size.of_sizes(campaign)
        runs = over_time.over_time(campaign, readings)
        tables += _tables(campaign, sizes, runs)
        plots += _plots(campaign, sizes, runs)
        if campaign.design.suite == SUITE:
            beside += figures(campaign.name, sizes, runs)
        body.append(_body(campaign, sizes, runs))
    if not body:
        return None
    return Chapter(
        tables=tuple(tables),
        plots=tuple(plots),
        body={"ssd_power": body},
        paper=published.PAPER,
        beside=tuple(beside),
        apart=_APART,
    )


def _tables(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> list[Table]:
    tables = []
    if sizes:
        tables.append(by_size.table(campaign.name, sizes))
    tables += [over_time.table(campaign.name, run) for run in runs]
    return tables


def _plots(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> list[Plot]:
    stamped = stamp_of([campaign])
    plots = []
    panels = by_size.panels(sizes)
    if panels:
        title = f"Random reads by request size: {campaign.name}"
        lines = Lines(title, "request size (KiB)", panels, stamped, is_x_logarithmic=True)
        plots.append(plot(f"request-size-{campaign.name}.svg", lines))
    for run in runs:
        if run.intervals:
            number = run.run.repetition
            title = f"Random writes after a fill: {campaign.name}, repetition {number}"
            lines = Lines(title, "time (s)", over_time.panels(run), stamped)
            plots.append(plot(f"writes-over-time-{campaign.name}-{number}.svg", lines))
    return plots


class OfSizeBody(TypedDict):
    """Medians of one request size; a null has its reason."""

    request_size_bytes: int
    engine: str
    n: int
    bandwidth_bytes_per_s: float | None
    power_w: float | None
    efficiency_bytes_per_j: float | None
    power_domain: str | None
    reason: str | None
    unsure: str | None
    """Why the energy is compared with no other."""


class ChangeBody(TypedDict):
    at_s: float
    """Since the I/O began."""
    before_w: float
    after_w: float
    before_bytes_per_s: float
    after_bytes_per_s: float
    energy_per_byte_factor: float


class OverTimeBody(TypedDict):
    """One run of random writes after a fill."""

    repetition: int
    power_domain: str | None
    change: ChangeBody | None
    reason: str | None
    """Why there is no change, or why there are no intervals."""
    begin_s: Sequence[float]
    end_s: Sequence[float]
    power_w: Sequence[float]
    bandwidth_bytes_per_s: Sequence[float]


class SsdPowerBody(TypedDict):
    campaign: str
    request_sizes: Sequence[OfSizeBody]
    over_time: Sequence[OverTimeBody]


def _body(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> SsdPowerBody:
    return SsdPowerBody(
        campaign=campaign.name,
        request_sizes=[
            OfSizeBody(
                request_size_bytes=each.request_size_bytes,
                engine=each.engine,
                n=each.n,
                bandwidth_bytes_per_s=each.bandwidth_bytes_per_s,
                power_w=each.power_w,
                efficiency_bytes_per_j=each.efficiency_bytes_per_j,
                power_domain=each.power_domain,
                reason=each.reason,
                unsure=each.unsure,
            )
            for each in sizes
        ],
        over_time=[_over_time_body(run) for run in runs],
    )


def _over_time_body(run: OverTime) -> OverTimeBody:
    change = None
    if run.change is not None:
        change = ChangeBody(
            at_s=run.change.at_s,
            before_w=run.change.before_w,
            after_w=run.change.after_w,
            before_bytes_per_s=run.change.before_mib_per_s * MIB,
            after_bytes_per_s=run.change.after_mib_per_s * MIB,
            energy_per_byte_factor=run.change.factor,
        )
    return OverTimeBody(
        repetition=run.run.repetition,
        power_domain=run.power_domain,
        change=change,
        reason=run.reason,
        begin_s=[each.begin_s for each in run.intervals],
        end_s=[each.end_s for each in run.intervals],
        power_w=[each.power_w for each in run.intervals],
        bandwidth_bytes_per_s=[each.bytes_per_s for each in run.intervals],
    )
