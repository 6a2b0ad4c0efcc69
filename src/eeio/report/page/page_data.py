"""The input of the page's script: rows, domains and factors, as JSON with short names.

Figures are in the units that the page shows (MB/s, W, J/GB, MB/J, ms, %), as [median, q1, q3]. They
are those of `eeio report --format json`, rounded to five digits, without new computation.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.io_label import sized
from eeio.analysis.observation import Key
from eeio.analysis.rows import Row
from eeio.analysis.summary import Quartiles
from eeio.record.reasons import NO_DURABLE_TIME
from eeio.record.run import COST_DOMAINS, DOMAINS, MARKS
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.columns import NONE, flush_cell
from eeio.units.sizes import MB, format_size

MODELLED = "modelled"


@dataclass(frozen=True)
class Line:
    """A row of the page's table: an experiment as text, and its levels, one label per factor."""

    row: Row
    campaign: int
    name: str
    more: str
    levels: tuple[str, ...]
    full_name: str
    """With its details if another line has the same name: for sentences and marks."""


@dataclass(frozen=True)
class Page:
    """A report as the page shows it. `keys` are the power domains, beginning with the initial one;
    `lines` are ordered: the best first, then unranked ones, then those without figures."""

    report: Report
    keys: tuple[Key, ...]
    lines: tuple[Line, ...]
    factors: tuple[str, ...]

    @property
    def key(self) -> Key | None:
        """The power domain that the page opens with: the widest that was measured and ranks
        something, else the widest that was measured, else the estimate."""
        if self.keys:
            return self.keys[0]
        return None

    @property
    def estimated(self) -> bool:
        """Whether the page opens with an estimate, because there is no measurement."""
        return self.key is not None and self.key[2] == MODELLED

    @property
    def quick(self) -> bool:
        return any(not campaign.is_measurement for campaign in self.report.campaigns)

    @property
    def demo(self) -> bool:
        return any(campaign.is_demo for campaign in self.report.campaigns)

    @property
    def stamp(self) -> str:
        """The mark across charts, so that a cropped picture still carries it."""
        return " ".join(
            word
            for word, on in (
                ("QUICK", self.quick),
                ("DEMO", self.demo),
                ("ESTIMATE", self.estimated),
            )
            if on
        )

    @cached_property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each factor, in the order in which they come."""
        levels = []
        for index in range(len(self.factors)):
            levels.append(tuple(dict.fromkeys(line.levels[index] for line in self.lines)))
        return tuple(levels)

    @property
    def constant(self) -> str:
        """The factors with one level, to be said once."""
        return ", ".join(
            f"{factor.lower()} {levels[0]}"
            for factor, levels in zip(self.factors, self.levels, strict=True)
            if len(levels) == 1 and levels[0] != NONE
        )

    @property
    def meters(self) -> list[str]:
        """Those with power in any row."""
        return list(dict.fromkeys(meter for _, meter, _ in self.keys))

    @cached_property
    def common_reason(self) -> str | None:
        """Why no line has power, where it is the same for all."""
        reasons = {why_no_power(line.row, self.key) for line in self.lines}
        if len(reasons) == 1:
            return reasons.pop()
        return None


def figures_of(row: Row, key: Key | None) -> DomainFigures | None:
    """Those of a power domain, measured or modelled; None where the row has no power in it."""
    for figures in (*row.domains, *row.estimates):
        if figures.key == key and figures["power_w"] is not None:
            return figures
    return None


def why_no_power(row: Row, key: Key | None) -> str | None:
    """The reason where a row has no measured power in a domain; None where it has."""
    if figures_of(row, key) is not None and (key is None or key[2] != MODELLED):
        return None
    reason = next((d.reason for d in row.domains if d.key == key and d.reason), None)
    if row.measured is not None and reason is None:
        return f"not measured by this meter: see {row.measured.power_domain}"
    return reason or row.why("power_w") or "not measured"


def domain_label(key: Key) -> str:
    """`system (wattsup)`; an estimate is marked first."""
    domain, meter, kind = key
    return f"{f'{MARKS[kind]}: ' if kind in MARKS else ''}{domain} ({meter})"


_Factor = tuple[str, Callable[[Row], str]]
_FACTORS: tuple[_Factor, ...] = (
    ("Level", lambda row: row.level),
    ("Operation", lambda row: row.operation_label),
    ("Spatiality", lambda row: row.spatiality or NONE),
    ("Request", lambda row: _size(row)),
    ("Buffer cache", lambda row: row.cache.buffer or NONE),
    ("Disk cache", lambda row: row.cache.disk or NONE),
    ("Flush", flush_cell),
    ("Tool", lambda row: row.tool_label or NONE),
    ("Target", lambda row: row.experiment.target if row.experiment else NONE),
)
_IN_NAME = ("Operation", "Spatiality", "Request")


def _size(row: Row) -> str:
    if row.request_size_bytes is None:
        return NONE
    return format_size(row.request_size_bytes)


def _varies(levels: Sequence[tuple[str, ...]], place: int) -> bool:
    return len({of_row[place] for of_row in levels}) > 1


def page_of(report: Report) -> Page:
    """The lines of the page in their order. Levels that no experiment is of have no line."""
    rows = [row for row in report.rows if row.experiment is not None]
    keys = _keys(rows)
    levels = [tuple(level(row) for _, level in _FACTORS) for row in rows]
    names = tuple(name for name, _ in _FACTORS)
    varying = [n for n, name in enumerate(names) if name not in _IN_NAME and _varies(levels, n)]
    campaigns = {campaign.name: index for index, campaign in enumerate(report.campaigns)}
    count = Counter(map(_name, rows))
    lines = []
    for row, of_row in zip(rows, levels, strict=True):
        name = _name(row)
        further = [(names[place], of_row[place]) for place in varying]
        more = []
        for factor, of in further:
            if of not in (NONE, name):
                more.append(_reported(factor, of))
        full_name = name
        if count[name] > 1:
            full_name = " · ".join((name, *row.details))
        place = campaigns[row.campaign]
        lines.append(Line(row, place, name, ", ".join(more), of_row, full_name))
    key = next(iter(keys), None)
    return Page(report, keys, tuple(sorted(lines, key=lambda line: _order(line, key))), names)


def _name(row: Row) -> str:
    if row.experiment is not None and row.experiment.is_command:
        return row.tool_label or row.io_label
    return sized(row.io_label, row.request_size_bytes, " · ")


def _reported(factor: str, level: str) -> str:
    """A level as shown below a name: `buffer cache off`, but `fio` and `device`."""
    if factor in ("Tool", "Target"):
        return level
    if factor != "Level":
        return f"{factor.lower()} {level}"
    return f"{level} level"


def _order(line: Line, key: Key | None) -> tuple[int, float]:
    """The best MB/J first; estimates and unranked lines stay in the campaign's order."""
    figures = figures_of(line.row, key)
    if figures is None:
        return (2 if line.row.n else 3, 0.0)
    if figures.energy_kind == MODELLED or figures.ranked_reason or not figures.efficiency_values:
        return (1, 0.0)
    assert figures["efficiency_bytes_per_j"] is not None
    return (0, -figures["efficiency_bytes_per_j"].median)


def _keys(rows: Sequence[Row]) -> tuple[Key, ...]:
    """Measured sources that rank something first, then by domain and, as for a main source
    (`eeio.analysis.selection`), by their number of readings and their place in the records."""
    readings: Counter[Key] = Counter()
    ranked: set[Key] = set()
    for row in rows:
        cost_domains = COST_DOMAINS if row.experiment is None else row.experiment.cost_domains
        for figures in (*row.domains, *row.estimates):
            if figures["power_w"] is None or figures.power_domain not in cost_domains:
                continue
            readings[figures.key] += figures.n
            if figures.ranked_reason is None and figures.efficiency_values:
                ranked.add(figures.key)

    def order(key: Key) -> tuple[bool, bool, int, int]:
        domain, _, kind = key
        return kind == MODELLED, key not in ranked, DOMAINS.index(domain), -readings[key]

    return tuple(sorted(readings, key=order))


def to_json(page: Page) -> dict[str, Any]:
    """The body that the script reads."""
    campaigns = page.report.campaigns
    return {
        "stamp": page.stamp,
        "campaigns": [campaign.name for campaign in campaigns],
        "domains": [
            {
                "label": domain_label(key),
                "name": key[0],
                "estimate": key[2] == MODELLED,
                "mark": MARKS.get(key[2], ""),
                "idle": [_idle(campaign.idle, key) for campaign in campaigns],
            }
            for key in page.keys
        ],
        "factors": [
            {"name": name, "levels": list(levels)}
            for name, levels in zip(page.factors, page.levels, strict=True)
        ],
        "common": page.common_reason,
        "lines": [_line(page, line) for line in page.lines],
    }


def _idle(readings: Sequence[Any], key: Key) -> float | None:
    for reading in readings:
        if reading.key == key and reading.valid:
            return shortened(reading.power_w)
    return None


def _line(page: Page, line: Line) -> dict[str, Any]:
    row = line.row
    places = [levels.index(level) for levels, level in zip(page.levels, line.levels, strict=True)]
    body: dict[str, Any] = {
        "c": line.campaign,
        "name": line.full_name,
        "more": line.more,
        "levels": places,
        "n": row.n,
        "invalid": row.invalid_runs,
        "mbs": spread(row["bandwidth_bytes_per_s"], MB),
        "d": [_domain(figures_of(row, key)) for key in page.keys],
    }
    if row.durable is False:
        body["lasting"] = row.why_not_durable or NO_DURABLE_TIME
    reason = {
        str(index): reason
        for index, key in enumerate(page.keys or (None,))
        if (reason := why_no_power(row, key)) is not None and reason != page.common_reason
    }
    if reason:
        body["why"] = reason
    if row.invalid_reasons:
        body["reasons"] = list(row.invalid_reasons)
    if row["bandwidth_bytes_per_s"] is None:
        body["still"] = row.why("bandwidth_bytes_per_s")
    return {name: value for name, value in body.items() if value is not None}


def _domain(figures: DomainFigures | None) -> dict[str, Any] | None:
    if figures is None:
        return None
    body: Mapping[str, Any] = {
        "w": spread(figures["power_w"]),
        "jgb": spread(figures["energy_j_per_gb"]),
        "mbj": spread(figures["efficiency_bytes_per_j"], MB),
        "limit": middle(figures["uncertainty_relative"], 0.01),
        "unranked": figures.ranked_reason,
    }
    return {name: value for name, value in body.items() if value is not None}


def shortened(value: float | None) -> float | None:
    """Five digits."""
    if value is None:
        return None
    return float(f"{value:.5g}")


def middle(figures: Quartiles | None, unit: float = 1.0) -> float | None:
    if figures is None:
        return None
    return shortened(figures.median / unit)


def spread(figures: Quartiles | None, unit: float = 1.0) -> list[float | None] | None:
    if figures is None:
        return None
    return [shortened(value / unit) for value in (figures.median, figures.q1, figures.q3)]
