"""Power against offered load: energy proportionality from a suite that offers fio a `load`.

Each step is an experiment with `load=N`, N % of the bandwidth that was measured at full speed; the
step of 0 % is the campaign's idle baseline. With P(u) the power at load u, drawn as straight lines
between the steps, and A the area below it from 0 to 1:

* idle share: P(0) / P(1); dynamic range: 1 less that (Wong and Annavaram 2012, section 2);
* linear deviation: A over the area below the straight line from P(0) to P(1), less 1: how far the
  curve sags or bulges (the same);
* proportionality: 1 - (A / A_ideal - 1), A_ideal the area below the line from 0 to P(1)
  (Ryckbosch et al. 2011); it is 2 - (2 - dynamic range) (linear deviation + 1);
* overall: the bytes of all steps over their joules, the idle one among them, each step lasting as
  long as the others: the sum of bandwidths over that of powers, as SPECpower's overall figure.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypedDict

from eeio.analysis.ranking import why_unsure
from eeio.record.publication import stamp_of
from eeio.record.run import COST_DOMAINS, DEMO
from eeio.report.campaign.columns import plain
from eeio.report.figures.panels_of_lines import Line, Lines, Panel, plot
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter, Study
from eeio.units.number_text import number

if TYPE_CHECKING:
    from eeio.comparison.cells import Cell
from eeio.record.store import Campaign

MOST_DEVIATION = 0.02
"""Steps are marked if their bandwidth differs from the offer by more than this share."""
_LATENCIES = ("p50", "p95", "p99", "p999")


@dataclass(frozen=True)
class Step:
    """One offered load. `held` is the bandwidth over the offer, None if the tool reported no offer;
    `latency_s` has medians of percentiles. A None has its reason."""

    campaign: str
    experiment: str
    offered_share: float
    n: int
    bandwidth_bytes_per_s: float | None
    power_w: float | None
    energy_j_per_gb: float | None
    latency_s: Mapping[str, float] | None
    held: float | None
    power_domain: str | None
    reason: str | None = None
    unsure: str | None = None
    """Why its power is compared with no other: a doubt, or its uncertainty."""


@dataclass(frozen=True)
class Proportionality:
    """Of one curve; all None with the reason where a step or the idle power is missing."""

    campaign: str
    experiment: str
    power_domain: str | None
    idle_share: float | None = None
    dynamic_range: float | None = None
    linear_deviation: float | None = None
    proportionality: float | None = None
    overall_bytes_per_j: float | None = None
    reason: str | None = None


def _of_steps(steps: Sequence[Step]) -> str:
    """Why these steps cannot be used, each reason once."""
    shares: dict[str, list[str]] = {}
    for step in steps:
        of_reason = shares.setdefault(step.reason or "not measured", [])
        of_reason.append(f"{100 * step.offered_share:g} %")
    return "; ".join(
        f"the step{'s' * (len(of_reason) > 1)} of {', '.join(of_reason)}: {reason}"
        for reason, of_reason in shares.items()
    )


def _is_unusable(step: Step) -> bool:
    """Without power or bandwidth, with an unsure power, or with another load than the offer."""
    if step.power_w is None or step.bandwidth_bytes_per_s is None or step.unsure is not None:
        return True
    return step.held is not None and abs(step.held - 1.0) > MOST_DEVIATION


def proportionality(steps: Sequence[Step]) -> Proportionality:
    """Of the steps of one curve, in any order."""
    first = steps[0]
    nothing = Proportionality(first.campaign, first.experiment, first.power_domain)
    if unusable := list(filter(_is_unusable, steps)):
        return _because(nothing, _of_steps(unusable))
    points = sorted(
        (step.offered_share, step.power_w, step.bandwidth_bytes_per_s)
        for step in steps
        if step.power_w is not None and step.bandwidth_bytes_per_s is not None
    )
    if len(points) < 3 or points[0][0] != 0.0 or points[-1][0] != 1.0:
        return _because(nothing, "the steps do not reach from idle to 100 %")
    idle_w, peak_w = points[0][1], points[-1][1]
    area = sum(
        (share - before) * (power_w + power_before_w) / 2
        for (before, power_before_w, _), (share, power_w, _) in pairwise(points)
    )
    return Proportionality(
        first.campaign,
        first.experiment,
        first.power_domain,
        idle_share=idle_w / peak_w,
        dynamic_range=1.0 - idle_w / peak_w,
        linear_deviation=area / ((idle_w + peak_w) / 2) - 1.0,
        proportionality=2.0 - area / (peak_w / 2),
        overall_bytes_per_j=sum(rate for _, _, rate in points) / sum(w for _, w, _ in points),
    )


def _because(nothing: Proportionality, reason: str) -> Proportionality:
    return Proportionality(
        nothing.campaign, nothing.experiment, nothing.power_domain, reason=reason
    )


def load_curves(campaign: "Campaign") -> list[list[Step]]:
    """The curves of a campaign, each from idle to its highest load; none without a `load`."""
    from eeio.comparison.cells import cells_of

    groups: dict[str, list[tuple[int, Cell]]] = {}
    if not campaign.has_load:
        return []
    for cell in cells_of(campaign):
        pairs = (word.partition("=") for word in cell.factors["arguments"].split())
        arguments = {}
        for key, equals, value in pairs:
            if equals:
                arguments[key] = value
        if (load := arguments.pop("load", "")).isdecimal():
            label = cell.label(without=("load",), tool=True)
            groups.setdefault(label, []).append((int(load), cell))
    return [_curve(campaign, name, steps) for name, steps in groups.items()]


def _why_no_idle(campaign: "Campaign", domain: str | None) -> str:
    reasons: list[str] = []
    for r in campaign.idle:
        if r.domain == domain:
            reasons.extend(r.reasons)
    return (
        campaign.idle_reason
        or "; ".join(reasons)
        or ("the campaign has no idle power of this domain")
    )


def _why_idle_unsure(campaign: "Campaign", domain: str) -> str | None:
    for reading in campaign.idle:
        if reading.domain == domain and reading.valid and reading.kind != "modelled":
            doubts = reading.reasons
            if not reading.doubtful:
                doubts = ()
            return why_unsure(doubts, reading.uncertainty_relative)
    return None


def _curve(campaign: "Campaign", name: str, steps: "list[tuple[int, Cell]]") -> list[Step]:
    from eeio.comparison.cells import POWER

    domain = next(
        (d for d in COST_DOMAINS if any(cell.n(POWER[d]) for _, cell in steps)), None
    )  # the widest that was measured
    idle_w = None
    if domain is not None:
        idle_w = campaign.idle_power_w(domain)
    unsure = None
    if idle_w is not None:
        unsure = _why_idle_unsure(campaign, str(domain))
    found = [
        Step(
            campaign.name,
            name,
            0.0,
            0 if idle_w is None else 1,
            0.0,
            idle_w,
            None,
            None,
            None,
            domain,
            unsure or "idle: no bytes, so no J/GB"
            if idle_w is not None
            else _why_no_idle(campaign, domain),
            unsure,
        )
    ]
    metrics = _metrics(campaign)
    return found + [
        _step(campaign, name, load, cell, domain, metrics.get(cell.experiment_id, []))
        for load, cell in sorted(steps, key=lambda step: step[0])
    ]


def _median(metrics: Sequence[Mapping[str, float]], name: str) -> float | None:
    values = []
    for of_run in metrics:
        if name in of_run:
            values.append(of_run[name])
    if values:
        return statistics.median(values)
    return None


def _step(
    campaign: "Campaign",
    name: str,
    load: int,
    cell: "Cell",
    domain: str | None,
    metrics: Sequence[Mapping[str, float]],
) -> Step:
    from eeio.comparison.cells import BANDWIDTH, J_PER_GB_OF, POWER, why_energy_unsure

    power = POWER[domain or "system"]
    bandwidth, power_w, joules = cell.known(BANDWIDTH), None, None
    if domain is not None:
        power_w, joules = cell.known(power), cell.known(J_PER_GB_OF[domain])
    medians = {name: _median(metrics, f"latency_{name}_s") for name in _LATENCIES}
    latency = {name: median for name, median in medians.items() if median is not None}
    offered = _median(metrics, "offered_bytes_per_s")
    reached = None
    if offered and bandwidth is not None:
        reached = bandwidth / offered
    unsure = None
    if power_w is not None:
        unsure = why_energy_unsure(cell)
    reasons = [_why_not_reached(reached), unsure]
    if bandwidth is None:
        reasons.append(cell.why(BANDWIDTH) or "not measured")
    elif power_w is None:
        reasons.append(cell.why(power) or "power was not measured")
    return Step(
        campaign.name,
        name,
        load / 100,
        cell.n(BANDWIDTH),
        bandwidth,
        power_w,
        joules,
        latency or None,
        reached,
        domain,
        "; ".join(filter(None, reasons)) or None,
        unsure,
    )


def _why_not_reached(held: float | None) -> str | None:
    if held is None or abs(held - 1.0) <= MOST_DEVIATION:
        return None
    return f"the load was not reached: {100 * held:.1f} % of the offer"


def _metrics(campaign: "Campaign") -> dict[str, list[Mapping[str, float]]]:
    """The tool's reported metrics of each valid phase, by experiment."""
    metrics: dict[str, list[Mapping[str, float]]] = {}
    for run in campaign.runs:
        for phase in run.phases:
            if not run.validity and not phase.validity:
                metrics.setdefault(run.experiment.id, []).append(phase.metrics)
    return metrics


def _chapter(campaigns: "Sequence[Campaign]") -> Chapter | None:
    curves = []
    for campaign in campaigns:
        curves.extend(load_curves(campaign))
    if not curves:
        return None
    of_curves = list(map(proportionality, curves))
    stamped = stamp_of(campaigns)
    fictitious = {campaign.name for campaign in campaigns if campaign.is_demo}
    return Chapter(
        tables=tuple(
            _table(curve, result, f" ({DEMO})" if result.campaign in fictitious else "")
            for curve, result in zip(curves, of_curves, strict=True)
        ),
        plots=_plots(curves, stamped),
        body={
            "load_curve": [asdict(step) for curve in curves for step in curve],
            "proportionality": _body(of_curves),
        },
    )


class CurveBody(TypedDict):
    campaign: str | None
    experiment: str | None
    power_domain: str | None
    idle_share: float | None
    dynamic_range: float | None
    linear_deviation: float | None
    proportionality: float | None
    overall_bytes_per_j: float | None
    reason: str | None


class ProportionalityBody(CurveBody):
    """Of the only load curve; of several, each is in curves."""

    curves: Sequence[CurveBody]


def _body(found: Sequence[Proportionality]) -> dict[str, Any]:
    """The figures of one curve; several are in `curves`, with the reason at the top."""
    each = list(map(asdict, found))
    if len(each) == 1:
        return {**each[0], "curves": each}
    top = dict.fromkeys(each[0])
    return {**top, "reason": f"{len(each)} curves, which are in `curves`", "curves": each}


def _table(curve: Sequence[Step], result: Proportionality, mark: str) -> Table:
    """`mark` follows each figure of the power."""
    rows = tuple(
        (
            f"{100 * step.offered_share:g} %",
            str(step.n),
            plain(step.bandwidth_bytes_per_s, 1e6),
            "-" if step.held is None else f"{100 * step.held:.1f} %",
            plain(step.power_w) + mark * (step.power_w is not None),
            plain(step.energy_j_per_gb) + mark * (step.energy_j_per_gb is not None),
            plain((step.latency_s or {}).get("p50"), 1e-3),
            plain((step.latency_s or {}).get("p99"), 1e-3),
            step.reason or "",
        )
        for step in curve
    )
    return Table(
        title=f"Power against offered load: {result.campaign}, {result.experiment}",
        header=("Load", "n", "MB/s", "Held", "Power (W)", "J/GB", "p50 (ms)", "p99 (ms)", "Remark"),
        rows=rows,
        numeric=frozenset(range(8)),
        note=_note(result),
    )


def _plots(curves: Sequence[Sequence[Step]], stamped: str) -> tuple[Plot, ...]:
    """Power and p99 latency over the load, a line per curve; a step without one has no point."""
    names = []
    for curve in curves:
        names.append(
            curve[0].campaign if len(curves) == 1 else f"{curve[0].campaign}: {curve[0].experiment}"
        )

    def lines(value_of: Callable[[Step], float | None]) -> list[Line]:
        lines = []
        for name, curve in zip(names, curves, strict=True):
            lines.append(
                Line(
                    name,
                    [
                        (100 * step.offered_share, value)
                        for step in curve
                        if (value := value_of(step)) is not None
                    ],
                )
            )
        return lines

    def p99_ms(step: Step) -> float | None:
        p99_s = (step.latency_s or {}).get("p99")
        if p99_s is None:
            return None
        return 1e3 * p99_s

    panels = [
        Panel("Power (W)", lines(lambda step: step.power_w)),
        Panel("p99 (ms)", lines(p99_ms)),
    ]
    drawn = [panel for panel in panels if any(line.points for line in panel.lines)]
    title = "Power and latency against load"
    if drawn:
        return (plot("load-curve.svg", Lines(title, "load (%)", drawn, stamped)),)
    return ()


def _note(result: Proportionality) -> str:
    if result.reason is not None:
        return f"no proportionality: {result.reason}"
    assert result.idle_share is not None and result.dynamic_range is not None
    assert result.linear_deviation is not None and result.proportionality is not None
    assert result.overall_bytes_per_j is not None
    return (
        f"power of the {result.power_domain}; idle share {100 * result.idle_share:.1f} %, dynamic "
        f"range {100 * result.dynamic_range:.1f} %, linear deviation "
        f"{100 * result.linear_deviation:+.1f} %, proportionality "
        f"{100 * result.proportionality:.1f} %\n"
        f"overall, bytes over joules of all steps: {number(result.overall_bytes_per_j / 1e6)} MB/J"
    )


STUDY = Study(chapter=_chapter)
