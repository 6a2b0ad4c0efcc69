"""Tables, plots and JSON of a drive by request size and over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from eeio.record.publication import stamp_of
from eeio.record.store import Campaign
from eeio.report.figures.panels_of_lines import Lines, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies.powersensor3 import by_size, over_time
from eeio.studies.powersensor3.by_size import OfSize
from eeio.studies.powersensor3.over_time import OverTime
from eeio.units.sizes import MIB


def tables_of(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> list[Table]:
    """By request size, and over the time of each run."""
    tables = []
    if sizes:
        tables.append(by_size.table(campaign.name, sizes))
    tables += [over_time.table(campaign.name, run) for run in runs]
    return tables


def plots_of(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> list[Plot]:
    """As the tables."""
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


@dataclass(frozen=True)
class ChangeBody:
    at_s: float
    """Since the I/O began."""
    before_w: float
    after_w: float
    before_bytes_per_s: float
    after_bytes_per_s: float
    energy_per_byte_factor: float


@dataclass(frozen=True)
class OverTimeBody:
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


@dataclass(frozen=True)
class SsdPowerBody:
    campaign: str
    request_sizes: Sequence[OfSize]
    over_time: Sequence[OverTimeBody]


def body_of(campaign: Campaign, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> SsdPowerBody:
    """The member of the report's JSON."""
    return SsdPowerBody(
        campaign=campaign.name,
        request_sizes=sizes,
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
