"""One or several campaigns, characterized, ready for any format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from eeio import studies
from eeio.analysis.characterization import ContextRow, characterize, context
from eeio.analysis.meter_agreement import Agreement, agreement
from eeio.analysis.metrics import METRICS, best_first, named
from eeio.analysis.ranking import RULES, Rules
from eeio.analysis.rows import Row
from eeio.errors import EeioError
from eeio.record.publication import warnings_of
from eeio.record.reasons import unknown_delays
from eeio.record.run import LEVELS, SCHEMA_VERSION
from eeio.record.store import Campaign
from eeio.report.campaign.rounds import times
from eeio.report.campaign.verification import verification_notes
from eeio.report.documents import pareto
from eeio.report.figures import paper_figures
from eeio.studies import Chapter
from eeio.units.number_text import number

if TYPE_CHECKING:
    from eeio.comparison.layer_costs import LayerCost
    from eeio.comparison.pareto import Choice
    from eeio.report.campaign.answers import Answers


SORTS = tuple(metric.name.lower() for metric in METRICS if metric.better and metric.in_rows)
"""Sort keys of rows: the names in `--columns` of the same metrics."""


@dataclass(frozen=True)
class Report:
    """Campaigns and their rows. `chapters` are the studies' parts; `columns` are the requested
    columns (`report.columns.known_columns`), without them the usual ones; `levels` are those that
    are shown."""

    campaigns: tuple[Campaign, ...]
    rows: tuple[Row, ...]
    context: tuple[ContextRow, ...]
    chapters: tuple[Chapter, ...] = ()
    columns: tuple[str, ...] = ()
    levels: tuple[str, ...] = LEVELS
    layers: "tuple[LayerCost, ...]" = ()
    """The cost per layer; `comparison.layer_costs` computes it, which needs numpy."""
    pareto: "tuple[Choice, ...]" = ()
    """Pareto-optimal experiments in two figures; `comparison.pareto` computes them."""
    answers: "tuple[Answers, ...]" = ()
    """Decisions of adaptive campaigns; `report.answers` computes them, which needs scipy."""
    verification: Mapping[str, str] = field(default_factory=dict)
    """Kind of meter -> what it was verified on (`eeio_power.meters.About.verified`)."""

    unknown_delays: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Campaign -> its meters of unknown delay (`eeio_power.samples.of_unknown_delay`)."""

    def verified(self, meters: Iterable[str]) -> list[str]:
        """What these meters were verified on, by their names in readings."""
        specs: list[str] = []
        for c in self.campaigns:
            specs.extend(c.design.options.meters)
        return verification_notes(meters, specs, self.verification)

    def remarks_on_delays(self, campaign: Campaign) -> list[str]:
        """The remark on the meters of a campaign whose delay is unknown; none without such."""
        return unknown_delays(self.unknown_delays.get(campaign.name, ()))

    @property
    def warnings(self) -> list[str]:
        """Warnings that come before any number."""
        warnings = []
        for campaign in self.campaigns:
            messages = (*warnings_of(campaign), *campaign.shortcomings)
            messages += tuple(idle_above_busy(campaign, self.rows))
            messages += tuple(self.remarks_on_delays(campaign))
            for message in messages:
                warnings.append(f"{campaign.name}: {message}")
        return warnings

    @property
    def next_command(self) -> str | None:
        """The command that shows differences between several campaigns; None for one."""
        names = " ".join(campaign.name for campaign in self.campaigns)
        if len(self.campaigns) > 1:
            return f"eeio compare {names}"
        return None


def idle_above_busy(campaign: Campaign, rows: Sequence[Row]) -> list[str]:
    """Where the machine drew more before the campaign than in some of its experiments, by more than
    the uncertainty of the baseline."""
    texts = []
    for idle in campaign.idle:
        if not idle.valid or not idle.power_w or idle.kind == "modelled":
            continue
        relative = 0.0
        if idle.energy_j:
            relative = (idle.uncertainty_j or 0.0) / idle.energy_j
        least_w = idle.power_w * (1.0 - relative)
        powers_w = []
        for row in rows:
            if row.campaign == campaign.name:
                for figures in row.domains:
                    if figures.key == idle.key and figures["power_w"] is not None:
                        powers_w.append(figures["power_w"].median)
        below = [power_w for power_w in powers_w if power_w < least_w]
        if below:
            texts.append(
                f"{idle.domain} ({idle.meter}): {number(idle.power_w)} W idle is above the power "
                f"of {len(below)} of {len(powers_w)} experiments ({number(min(below))} W or more): "
                "the machine was not idle before the runs. Do not use figures above idle"
            )
    return texts


def build(
    campaigns: Sequence[Campaign],
    rules: Rules = RULES,
    columns: Sequence[str] = (),
    readings: studies.Readings = studies.no_readings,
) -> Report:
    """Characterizes each campaign. `readings` returns the stored readings of its meters."""
    return Report(
        campaigns=tuple(campaigns),
        rows=tuple(row for campaign in campaigns for row in characterize(campaign, rules)),
        columns=tuple(columns),
        context=tuple(row for campaign in campaigns for row in context(campaign)),
        chapters=studies.chapters(campaigns, readings),
    )


def _power(found: Agreement) -> dict[str, Any]:
    """The means of each meter over the campaign, and which of them contradict each other."""
    return {
        "means": [
            {
                "domain": mean.domain,
                "meter": mean.meter,
                "kind": mean.kind,
                "windows": mean.windows,
                "power_w": mean.power_w,
                "uncertainty_w": mean.power_w * mean.uncertainty_j / mean.energy_j,
            }
            for mean in found.means
        ],
        "contradictions": [message for _, message in found.contradictions],
    }


class IdleBody(TypedDict):
    readings: Sequence[Mapping[str, Any]]
    reason: str | None


class MeanPowerBody(TypedDict):
    domain: str
    meter: str
    kind: str
    windows: int
    power_w: float
    uncertainty_w: float
    """Uncertainty."""


class PowerBody(TypedDict):
    """The meters over all valid windows, compared with each other."""

    means: Sequence[MeanPowerBody]
    contradictions: Sequence[str]
    """Means that contradict each other: their readings are doubtful."""
    unknown_delays: Sequence[str]
    """Meters of unknown delay: energies may be wrong by more than their uncertainty."""


class CampaignBody(TypedDict):
    name: str
    suite: str
    preset: str
    is_measurement: bool
    """False: QUICK, not to be published."""
    planned_runs: int
    stored_runs: int
    machine: Mapping[str, Any]
    idle: IdleBody
    power: PowerBody
    """The meters over all valid windows, compared with each other."""


def to_json(report: Report) -> dict[str, Any]:
    """The body of `eeio report --format json` (schemas/report.schema.json)."""
    body = {
        "schema_version": SCHEMA_VERSION,
        "campaigns": [
            {
                "name": campaign.name,
                "suite": campaign.design.suite,
                "preset": campaign.preset,
                "is_measurement": campaign.is_measurement,
                "planned_runs": campaign.planned_runs,
                "stored_runs": campaign.stored_runs,
                "machine": campaign.machine.to_json(),
                "idle": {
                    "readings": [
                        {**asdict(reading), "power_median_w": campaign.idle_median_w(reading)}
                        for reading in campaign.idle
                    ],
                    "reason": campaign.idle_reason,
                },
                "power": {
                    **_power(agreement(campaign)),
                    "unknown_delays": list(report.unknown_delays.get(campaign.name, ())),
                },
            }
            for campaign in report.campaigns
        ],
        "characterization": [row.to_json() for row in report.rows],
        "context": [row.to_json() for row in report.context],
        "layers": [cost.to_json() for cost in report.layers],
        "adaptive": _adaptive(report),
        "pareto": pareto.to_json(report.pareto),
    }
    figures = [figure for chapter in report.chapters for figure in paper_figures.to_json(chapter)]
    if figures:
        body["beside_papers"] = figures
    for chapter in report.chapters:
        if both := sorted(body.keys() & chapter.body.keys()):
            raise EeioError(f"a study adds {both[0]!r} to a report's JSON, which has one")
        body |= chapter.body
    return body


def _adaptive(report: Report) -> list[dict[str, Any]]:
    """The answers; empty if a required package is not installed."""
    if not report.answers:
        return []
    from eeio.report.campaign.answers import to_json as answered

    times_of = {campaign.name: times(campaign) for campaign in report.campaigns}
    return [answered(answer, times_of[answer.campaign]) for answer in report.answers]


def of_levels(report: Report, levels: Sequence[str]) -> Report:
    """Only rows of these levels; without the machine's context, which has no level."""
    return replace(
        report,
        levels=tuple(level for level in report.levels if level in levels),
        rows=tuple(row for row in report.rows if row.level in levels),
        context=(),
    )


def sorted_by(report: Report, name: str) -> Report:
    """Rows by their median of one of SORTS, the best first. Rows without it, and those whose power
    is modelled, are last, in their former order."""
    metric = named(name)

    def key(row: Row) -> tuple[bool, float]:
        figure = row.figure(metric, row.measured)
        return best_first(metric, None if figure is None else figure.median)

    return replace(report, rows=tuple(sorted(report.rows, key=key)))
