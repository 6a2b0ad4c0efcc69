"""The contents of a report, in order, the same for every format; and its CSV: one line an
experiment and power domain, SI units, empty = null."""

from collections.abc import Callable
from typing import Any

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.metrics import METRICS
from eeio.analysis.rows import Row
from eeio.analysis.summary import Quartiles
from eeio.report.campaign.characterized import Report, to_json
from eeio.report.campaign.tables import tables
from eeio.report.document import Document
from eeio.report.figures import paper_figures
from eeio.report.table_and_plot import Plot, Table
from eeio.studies import Chapter

_FACTORS = (
    "campaign",
    "preset",
    "level",
    "tool",
    "operation",
    "spatiality",
    "request_size_bytes",
    "cache_buffer",
    "cache_disk",
    "phase",
    "target",
    "api",
    "processes",
    "n",
    "invalid_runs",
    "power_domain",
    "meter",
    "energy_kind",
    "includes",
    "leaves_out",
    "leaves_drives_out",
    "doubts",
)
_PARTS = ("median", "q1", "q3")
# Columns added in version 2 come after the earlier ones.
_TEXT_COLUMNS = (
    "flush",
    "durable",
    "ranked",
    "ranked_reason",
    "spatiality_seen",
    "spatiality_seen_by",
    "drive",
    "bytes_of",
    "experiment_id",
    "details",
)


_TERMS = "domain, window, uncertainty, durable: docs/reference/glossary.md"


def document(report: Report, page: Callable[[], str] | None = None) -> Document:
    """The answer of `eeio report`."""
    next_command = report.next_command
    return Document(
        title=f"eeio report: {', '.join(campaign.name for campaign in report.campaigns)}",
        parts=tuple(contents(report)),
        data=lambda: to_json(report),
        records=lambda: records(report),
        warnings=tuple(report.warnings),
        page=page,
        hint=f"next: {next_command}   (changes, with intervals)" if next_command else _TERMS,
    )


def contents(report: Report) -> list[Table]:
    """The tables of studies first, then the four levels and the rest, then the papers' figures."""
    of_studies: list[Table] = []
    for chapter in report.chapters:
        of_studies.extend(chapter.tables)
    of_papers = [table for chapter in report.chapters for table in _paper_tables(report, chapter)]
    return [*of_studies, *tables(report), *of_papers]


def drawings(report: Report) -> list[Plot]:
    """Those that there is something to draw for; those of studies last. Needs matplotlib."""
    from eeio.report.figures import plots

    drawn = list(filter(None, (plots.bandwidth(report), plots.efficiency(report))))
    return [
        *drawn,
        *(plot for chapter in report.chapters for plot in chapter_plots(report, chapter)),
    ]


def chapter_tables(report: Report, chapter: Chapter) -> list[Table]:
    """The study's tables, then its paper's figures with the campaigns'."""
    return [*chapter.tables, *_paper_tables(report, chapter)]


def _paper_tables(report: Report, chapter: Chapter) -> list[Table]:
    return paper_figures.tables(chapter, paper_figures.stamped(chapter, report.campaigns))


def chapter_plots(report: Report, chapter: Chapter) -> list[Plot]:
    """The study's plots, then its paper's figures with the campaigns'."""
    return [
        *chapter.plots,
        *paper_figures.plots(chapter, paper_figures.stamped(chapter, report.campaigns)),
    ]


def records(report: Report) -> list[dict[str, Any]]:
    """One per row and power domain. Modelled power is in separate columns, which begin with
    ESTIMATE_."""
    empty: dict[str, Any] = dict.fromkeys(
        (*_FACTORS, *_columns(first=True), "reason", *_TEXT_COLUMNS, *_columns(first=False))
    )
    made = []
    for row in report.rows:
        every = [*row.domains, *row.estimates]
        made += [empty | _line(row, figures) for figures in every] or [empty | _line(row, None)]
    return made


def _columns(first: bool) -> list[str]:
    """Those of the metrics of version 1, or of the others; estimates behind them."""
    metrics = [one for one in METRICS if one.in_rows and one.level == first]
    columns = []
    for prefix in ("", "ESTIMATE_"):
        for metric in metrics:
            if metric.of_domain or not prefix:
                for part in _PARTS:
                    columns.append(f"{prefix}{metric.key}_{part}")
    return columns


def _line(row: Row, figures: DomainFigures | None) -> dict[str, Any]:
    body = row.to_json()
    cells = {}
    for key in (*_FACTORS, *_TEXT_COLUMNS):
        if key in body:
            cells[key] = body[key]
    cells["details"] = " ".join(body["details"])
    cells |= {f"cache_{layer}": state for layer, state in body["cache"].items()}
    cells |= _of_domain(figures)
    estimated = figures is not None and figures.energy_kind == "modelled"
    for metric in METRICS:
        prefix = ""
        if estimated and metric.of_domain:
            prefix = "ESTIMATE_"
        if metric.in_rows:
            cells |= _parts(prefix + metric.key, row.figure(metric, figures))
    lacking = None
    if figures is not None and figures["power_w"]:
        lacking = figures.lacks(row.n)
    cells["reason"] = "; ".join(filter(None, (body["reason"], lacking))) or None
    return cells


def _of_domain(figures: DomainFigures | None) -> dict[str, Any]:
    """The cells of a power domain that are no figures."""
    if figures is None:
        return dict.fromkeys(("power_domain", "meter", "energy_kind"))
    return {
        "power_domain": figures.power_domain,
        "meter": figures.meter,
        "energy_kind": figures.energy_kind,
        "includes": "+".join(figures.includes),
        "leaves_out": "+".join(figures.leaves_out),
        "leaves_drives_out": figures.leaves_drives_out,
        "doubts": "; ".join(figures.doubts),
        "ranked": figures.ranked_reason is None,
        "ranked_reason": figures.ranked_reason,
    }


def _parts(name: str, figures: Quartiles | None) -> dict[str, float]:
    if figures is None:
        return {}
    return {f"{name}_{part}": getattr(figures, part) for part in _PARTS}
