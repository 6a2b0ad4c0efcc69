"""The chapter of a report: the table of ten figures, and the charts that no other study draws."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from eeio.record.drive_states import DriveStates, StateReading, stored_states
from eeio.record.publication import stamp_of
from eeio.record.store import Campaign
from eeio.report.campaign.columns import plain
from eeio.report.figures.panels_of_lines import Line, Lines, Panel, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter
from eeio.studies.drive_review.ten_figures import (
    Review,
    ReviewFigure,
    power_of_state,
    ten_figures,
)
from eeio.studies.powersensor3 import by_size, over_time, presentation
from eeio.studies.powersensor3.presentation import SsdPowerBody

if TYPE_CHECKING:
    from eeio.studies import Readings

SUITE = "eeio-drive-review"


@dataclass(frozen=True)
class DriveReviewBody:
    campaign: str
    power_domain: str | None
    figures: Sequence[ReviewFigure]
    ssd_power: SsdPowerBody
    """By request size, and over time."""


def chapter(campaigns: Sequence[Campaign], readings: "Readings") -> Chapter | None:
    """Of the campaigns of the suite."""
    tables: list[Table] = []
    plots: list[Plot] = []
    body: list[DriveReviewBody] = []
    for campaign in campaigns:
        if campaign.design.suite != SUITE:
            continue
        review = _review(campaign, readings)
        figures = ten_figures(review)
        tables.append(_table(review, figures))
        if review.states is not None and review.states.states:
            tables.append(_states_table(campaign, review.states, review.power_domain))
        tables += presentation.tables_of(campaign, review.sizes, review.runs)
        plots += _plots(review)
        plots += presentation.plots_of(campaign, review.sizes, review.runs)
        body.append(_body(review, figures))
    if not body:
        return None
    return Chapter(tuple(tables), tuple(plots), {"drive_review": list(map(asdict, body))})


def _review(campaign: Campaign, readings: "Readings") -> Review:
    from eeio.analysis.characterization import characterize

    return Review(
        campaign,
        characterize(campaign),
        by_size.of_sizes(campaign),
        over_time.over_time(campaign, readings),
        stored_states(campaign.folder),
    )


def _table(review: Review, figures: Sequence[ReviewFigure]) -> Table:
    rows = []
    for figure in figures:
        spread = "-"
        if figure.spread is not None and figure.n > 1:
            spread = f"{plain(figure.spread[0])} to {plain(figure.spread[1])}"
        repetitions = "-"
        if figure.n:
            repetitions = str(figure.n)
        rows.append(
            (figure.name, plain(figure.value), figure.unit, spread, repetitions, figure.remark)
        )
    notes = ["medians and quartiles over n repetitions"]
    if review.power_domain is not None:
        notes.append(f"power of the {review.power_domain}")
    unsure = [f"{each.name}: {each.unsure}" for each in figures if each.unsure is not None]
    title = f"Review of {review.campaign.machine.drive_name}: {review.campaign.name}"
    stamped = stamp_of([review.campaign])
    if stamped:
        title += f" - {stamped}"
    return Table(
        title=title,
        header=("Figure", "Value", "Unit", "Quartiles", "n", "Of"),
        rows=tuple(rows),
        numeric=frozenset((1, 4)),
        note="\n".join(("; ".join(notes), *unsure)),
    )


def _states_table(campaign: Campaign, states: DriveStates, domain: str | None) -> Table:
    rows = []
    for reading in states.states:
        rate = reading.bandwidth_bytes_per_s
        rows.append(
            (
                reading.state,
                f"{reading.duration_s:.4g}",
                plain(rate, 1e6),
                plain(power_of_state(reading, domain)),
                _note(reading),
            )
        )
    return Table(
        title=f"Power states: {campaign.name}",
        header=("State", "Time (s)", "MB/s", "Power (W)", "Note"),
        rows=tuple(rows),
        numeric=frozenset((1, 2, 3)),
        note=f"power of the {domain}; waking: the time of the first read",
    )


def _note(reading: StateReading) -> str:
    notes = [reading.invalid or "", reading.remark or ""]
    if reading.entered_s is not None:
        notes.append(f"entered after {1e3 * reading.entered_s:.3g} ms")
    return "; ".join(filter(None, notes))


def _plots(review: Review) -> list[Plot]:
    """Depths, power against bandwidth, and power states; loads have the chart of their study."""
    stamped, name = stamp_of([review.campaign]), review.campaign.name
    plots = []
    depths = _depth_panels(review)
    if depths:
        title = f"Random reads of 4 KiB by queue depth: {name}"
        lines = Lines(title, "queue depth", depths, stamped, is_x_logarithmic=True)
        plots.append(plot(f"queue-depth-{name}.svg", lines))
    powers = _power_against_bandwidth(review)
    if powers:
        title = f"Power against bandwidth: {name}"
        panels = [Panel("power (W)", powers, from_zero=False)]
        plots.append(plot(f"power-bandwidth-{name}.svg", Lines(title, "MB/s", panels, stamped)))
    states = _state_panel(review)
    if states is not None:
        title = f"Power states: {name}"
        plots.append(
            plot(f"power-states-{name}.svg", Lines(title, "power state", [states], stamped))
        )
    return plots


def _depth_panels(review: Review) -> list[Panel]:
    points: dict[str, list[tuple[float, float]]] = {"IOPS": [], "power (W)": [], "IOPS/W": []}
    for depth in (1, 4, 16, 64, 128):
        row = review.row("read", "random", 4, depth)
        if row is None:
            continue
        figures = row.drive_or_main
        values = {"IOPS": row["iops"]}
        if figures is not None:
            values |= {"power (W)": figures["power_w"], "IOPS/W": figures["iops_per_w"]}
        for axis, value in values.items():
            if value is not None:
                points[axis].append((depth, value.median))
    panels = []
    for axis, of_axis in points.items():
        if of_axis:
            panels.append(Panel(axis, [Line("random read 4 KiB", of_axis)]))
    return panels


def _power_against_bandwidth(review: Review) -> list[Line]:
    """One point for each experiment, in the colour of its kind of I/O."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in review.rows:
        figures = row.drive_or_main
        bandwidth = row["bandwidth_bytes_per_s"]
        if figures is None or bandwidth is None or figures["power_w"] is None:
            continue
        power = figures["power_w"]
        points.setdefault(row.io_label, []).append((bandwidth.median / 1e6, power.median))
    return [Line(label, points[label], is_joined=False) for label in sorted(points)]


def _state_panel(review: Review) -> Panel | None:
    """Idle and reading power over the number of the state."""
    if review.states is None:
        return None
    lines: dict[str, list[tuple[float, float]]] = {}
    for reading in review.states.states:
        name, _, what = reading.state.partition(" ")
        watts = power_of_state(reading, review.power_domain)
        if watts is not None and name.removeprefix("ps").isdecimal() and what != "waking":
            lines.setdefault(what, []).append((float(name.removeprefix("ps")), watts))
    if not lines:
        return None
    return Panel("power (W)", [Line(what, points) for what, points in lines.items()])


def _body(review: Review, figures: Sequence[ReviewFigure]) -> DriveReviewBody:
    return DriveReviewBody(
        campaign=review.campaign.name,
        power_domain=review.power_domain,
        figures=figures,
        ssd_power=presentation.body_of(review.campaign, review.sizes, review.runs),
    )
