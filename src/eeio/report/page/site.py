"""A page that compares bundles of many machines: each experiment and power domain in one row.

Rows are ranked by MB/J within a power domain, if the power was measured and the bundle may be
published. The script sorts within the groups, so that no other row is ranked among them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eeio.analysis.characterization import characterize
from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.io_label import load_of
from eeio.analysis.rows import Row
from eeio.record.publication import stamp_of
from eeio.record.run import DOMAINS, MARKS, only_known
from eeio.record.store import Campaign
from eeio.report.page.document import document
from eeio.report.page.table import Cell, Column, columns
from eeio.report.table_and_plot import Table
from eeio.units.number_text import page_number
from eeio.units.sizes import format_size

_COLUMNS = ("n", "bandwidth_bytes_per_s", "power_w", "energy_j_per_gb", "efficiency_bytes_per_j")


@dataclass(frozen=True)
class Bundle:
    """A bundle that could be read. `why_not` has a rule of publication for each
    experiment, or campaign, that breaks it."""

    name: str
    campaigns: tuple[Campaign, ...]
    why_not: tuple[str, ...] = ()
    signer: str | None = None


@dataclass(frozen=True)
class _Line:
    """A row of the table of results. `values` are the levels of the filters."""

    name: str
    more: str
    bundle: str
    machine: str
    values: Mapping[str, str]
    cells: tuple[Cell, ...]
    why: str
    group: tuple[int, str]
    efficiency: float


@dataclass(frozen=True)
class _Group:
    title: str
    is_ranked: bool
    lines: tuple[_Line, ...]


def render(bundles: Sequence[Bundle], prices: Mapping[str, float], version: str) -> str:
    """The page as text; `prices` by drive, as `drives` names them."""
    ordered = sorted(bundles, key=lambda bundle: bundle.name)
    shown = [column for column in columns() if column.key in _COLUMNS]
    lines: list[_Line] = []
    for bundle in ordered:
        lines.extend(_lines(bundle, shown, prices))
    groups = [
        _Group(
            title,
            place < len(DOMAINS),
            tuple(
                sorted(
                    (line for line in lines if line.group == (place, title)),
                    key=lambda line: -line.efficiency if place < len(DOMAINS) else 0.0,
                )
            ),
        )
        for place, title in sorted({line.group for line in lines})
    ]
    return document(
        "site.html.j2",
        title="comparison of bundles",
        bundles=_bundle_table(ordered),
        heads=shown,
        has_prices=bool(prices),
        filters=("drive", "level", "domain", "bundle"),
        groups=groups,
        rows=len(lines),
        version=version,
    )


def drives(bundles: Iterable[Bundle]) -> list[str]:
    """The names of all drives, as the page shows them."""
    return sorted(
        {campaign.machine.drive_name for bundle in bundles for campaign in bundle.campaigns}
    )


def _bundle_table(bundles: Sequence[Bundle]) -> Table:
    return Table(
        "Bundles",
        ("Bundle", "Publishable", "Campaigns", "Drive", "Machine", "Signed by"),
        tuple(
            (
                bundle.name,
                _publishable(bundle),
                _joined(
                    f"{campaign.name} ({campaign.preset})"
                    + (f", {stamp}" if (stamp := stamp_of([campaign])) else "")
                    for campaign in bundle.campaigns
                ),
                _joined(campaign.machine.drive_name for campaign in bundle.campaigns),
                _joined(map(_machine, bundle.campaigns)),
                bundle.signer or "-",
            )
            for bundle in bundles
        ),
    )


def _publishable(bundle: Bundle) -> str:
    """Each reason once, with the number of experiments."""
    if not bundle.why_not:
        return "yes"
    counts = Counter(bundle.why_not)
    reasons = [f"{reason} ({n} times)" if n > 1 else reason for reason, n in counts.items()]
    return f"no: {'; '.join(reasons)}"


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _machine(campaign: Campaign) -> str:
    machine = campaign.machine
    names = machine.hostname, machine.cpu_model or machine.architecture
    return ", ".join(only_known(*names)) or "machine unknown"


def _lines(bundle: Bundle, shown: Sequence[Column], prices: Mapping[str, float]) -> Iterable[_Line]:
    for campaign in bundle.campaigns:
        for row in characterize(campaign):
            if row.experiment is None or row.phase is None:
                continue
            every = (*row.domains, *row.estimates)
            powered: list[DomainFigures | None] = [f for f in every if f["power_w"] is not None]
            for figures in powered or [None]:
                yield _line(bundle, campaign, row, figures, shown, prices)


def _line(
    bundle: Bundle,
    campaign: Campaign,
    row: Row,
    figures: DomainFigures | None,
    shown: Sequence[Column],
    prices: Mapping[str, float],
) -> _Line:
    drive = campaign.machine.drive_name
    price = prices.get(drive)
    reason = _why_not_ranked(bundle, row, figures)
    efficiency = None
    domain, meter = "none", ""
    if figures is not None:
        efficiency = figures["efficiency_bytes_per_j"]
        domain, meter = figures.power_domain, figures.meter
    assert row.experiment is not None
    size = None
    if row.request_size_bytes is not None:
        size = format_size(row.request_size_bytes)
    cache = {"on": "page cache", "off": "direct I/O"}.get(row.cache.buffer or "")
    flush = None
    if row.flush is not None:
        flush = f"flush {row.flush}"
    load = load_of(dict(row.experiment.arguments))
    cells = [column.cell(row, figures) for column in shown]
    if prices:
        cells.append(_price_cell(price))
    return _Line(
        name=f"{row.tool_label} {row.io_label}",
        more=", ".join(filter(None, (load, size, cache, flush))),
        bundle=bundle.name,
        machine=_machine(campaign),
        values={
            "drive": drive,
            "level": row.level,
            "domain": domain,
            "bundle": bundle.name,
            "meter": meter,
            "price": "" if price is None else repr(price),
            "publishable": "no" if bundle.why_not else "yes",
        },
        cells=tuple(cells),
        why=reason or "",
        group=_group(figures, reason),
        efficiency=0.0 if efficiency is None else efficiency.median,
    )


def _price_cell(price: float | None) -> Cell:
    if price is None:
        return Cell("–")
    return Cell(page_number(price))


def _why_not_ranked(bundle: Bundle, row: Row, figures: DomainFigures | None) -> str | None:
    if figures is None:
        return row.why("power_w") or "no power was measured"
    if figures.ranked_reason is not None:
        return figures.ranked_reason
    if figures["efficiency_bytes_per_j"] is None:
        return figures.reason or "it has no MB/J"
    if bundle.why_not:
        return "the bundle is not publishable"
    return None


def _group(figures: DomainFigures | None, why: str | None) -> tuple[int, str]:
    """The place and the title of the group of a row."""
    after = len(DOMAINS)
    if figures is None:
        return after + 3, "Without power"
    if figures.energy_kind in MARKS:
        mark = MARKS[figures.energy_kind]
        return after + (1 if mark == "DEMO" else 2), f"{mark}: not measured, not ranked"
    if why is not None:
        return after, "Measured, not ranked"
    place = DOMAINS.index(figures.power_domain)
    return place, f"Power of {figures.power_domain}, measured: best MB/J first"
