"""The end of `eeio run` on a terminal: the result of each level, missing figures, the next steps.

At most MOST_LINES lines, however large the campaign is.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from eeio.analysis.rows import Row
from eeio.record.design import PRECISE
from eeio.record.publication import stamp_of
from eeio.record.run import DEMO, MEMORY_CACHE
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.tables import row_label
from eeio.units.external_text import shown
from eeio.units.number_text import number
from eeio.units.sizes import percent

MOST_LINES = 15
MOST_COLUMNS = 100
_MB = 1e6


def _program() -> str:
    """How the user can start eeio again."""
    started = Path(sys.argv[0])
    known = shutil.which("eeio") is not None or started.name != "eeio"
    if known:
        return "eeio"
    return os.path.relpath(started)


def summary(report: Report, page: Path | None) -> list[str]:
    """The summary of one campaign; `page` is the file of its page (None: it was not written)."""
    (campaign,) = report.campaigns
    rows = list(filter(_has_figures, report.rows))
    head = (f"{campaign.name}: {_runs(campaign)}", *_precision(campaign), stamp_of([campaign]))
    first = [
        "; ".join(filter(None, head)),
        *campaign.shortcomings[:1],
        *_power(rows),
    ]
    missing = list(_missing(report))
    end = [
        *([f"page: {page}"] if page is not None else []),
        f"next: {_program()} report {campaign.name}   (all tables; --help shows the other formats)",
    ]
    levels = [list(_level(level, rows)) for level in report.levels]
    room = MOST_LINES - len(first) - len(missing) - len(end)
    if sum(map(len, levels)) > room:
        levels = [lines[:1] for lines in levels]
    # A label and a reason may take two lines of a terminal; a path is never cut.
    figures = []
    for lines in levels:
        for line in lines:
            figures.append(_cut(shown(line), 2 * MOST_COLUMNS))
    reasons = [_cut(shown(line), 2 * MOST_COLUMNS) for line in missing]
    return [*map(shown, first), *figures, *reasons, *end]


def _has_figures(row: Row) -> bool:
    return row.experiment is not None and (row.n > 0 or row["duration_s"] is not None)


def _runs(campaign: Campaign) -> str:
    invalid = sum(not run.valid for run in campaign.runs)
    text = f"{campaign.stored_runs} of {campaign.planned_runs} runs done"
    if invalid:
        return f"{text}, {invalid} of them failed or invalid"
    return f"{text}, all valid"


def _level(level: str, every: Sequence[Row]) -> Iterable[str]:
    """The least and the most J/GB of the level; the highest and lowest bandwidth where no row may
    be ranked. Rows that bypass the page cache come first: the others may not have reached a
    drive. Rows of an image in the page cache are left out."""
    rows = [row for row in every if row.level == level and MEMORY_CACHE not in row.remarks]
    if not rows:
        return
    direct = [row for row in rows if row.cache.buffer == "off"] or rows
    costs = [row for row in direct if row.ranked and _j_per_gb(row) is not None]
    if costs:
        ends, labels = sorted(costs, key=_cost), ("least J/GB", "most J/GB")
    else:
        ends, labels = sorted(direct, key=_slowness), ("fastest", "slowest")
    chosen = [(labels[0], ends[0]), (labels[1], ends[-1])] if len(ends) > 1 else [("", ends[0])]
    for label, row in chosen:
        yield f"{level:<12}{label:<11}{_figures(row)}  {row_label(row)}"


def _power(rows: Sequence[Row]) -> Iterable[str]:
    """The power domains of J/GB."""
    domains = dict.fromkeys(
        f"{best.power_domain} (meter {best.meter}, {best.energy_kind})"
        for row in rows
        if (best := row.measured) is not None
    )
    if domains:
        yield f"J/GB: energy of the {', '.join(domains)} per 10^9 bytes"


def _cost(row: Row) -> float:
    return _j_per_gb(row) or 0.0


def _slowness(row: Row) -> tuple[float, float]:
    """By bandwidth; by time where there is none."""
    lasted = row["duration_s"]
    speed = 0.0
    if row["bandwidth_bytes_per_s"]:
        speed = row["bandwidth_bytes_per_s"].median
    return -speed, lasted.median if lasted else 0.0


def _j_per_gb(row: Row) -> float | None:
    cost = row["energy_j_per_gb"]
    if cost is None:
        return None
    return cost.median


def _figures(row: Row) -> str:
    best, joules, lasted = row.measured, _j_per_gb(row), row["duration_s"]
    bandwidth, energy_j = row["bandwidth_bytes_per_s"], row["energy_j"]
    if bandwidth is not None:
        text = f"{number(bandwidth.median / _MB):>6} MB/s"
        energy = None
        if joules is not None:
            energy = f"{number(joules):>7} J/GB"
    else:
        text = f"{number(lasted.median) if lasted else '-':>6} s   "
        energy = None
        if energy_j is not None:
            energy = f"{number(energy_j.median):>7} J"
    if best is None or energy is None:
        return text
    limit = best["uncertainty_relative"]
    known = ""
    if limit is not None:
        known = f" ±{percent(limit.median)} %"
    return f"{text}{energy}{known}{' DEMO' if best.energy_kind == DEMO else ''}"


def _missing(report: Report) -> Iterable[str]:
    """Rows without a figure or energy, each with its most frequent reason."""
    requested = [row for row in report.rows if row.experiment is not None]
    rows = list(filter(_has_figures, requested))
    reasons: dict[str, list[str | None]] = {
        "left out": [],
        "failed or invalid": [],
        "without energy": [],
        "with remarks": [],
        "not ranked": [],
    }
    for row in requested:
        for shortcoming, reason in _shortcomings(row):
            reasons[shortcoming].append(reason)
    for shortcoming, of_rows in reasons.items():
        of_absent = shortcoming in ("left out", "failed or invalid")
        yield from _because(shortcoming, of_rows, requested if of_absent else rows)


def _shortcomings(row: Row) -> Iterator[tuple[str, str | None]]:
    """What a row lacks, and why."""
    if not _has_figures(row):
        reason = next(iter(row.invalid_reasons), row.why("bandwidth_bytes_per_s"))
        yield "failed or invalid" if row.invalid_runs else "left out", reason
        return
    if row.remarks:
        yield "with remarks", next(iter(row.remarks.values()))
    if row.measured is None:
        yield "without energy", row.why("power_w")
    elif not row.ranked:
        yield "not ranked", row.ranked_reason


def _because(text: str, reasons: Sequence[str | None], rows: Sequence[Row]) -> Iterable[str]:
    """How many of the rows have a reason, and the most frequent one."""
    if not reasons:
        return
    counts = Counter(reason or "not known" for reason in reasons)
    reason, _ = counts.most_common(1)[0]
    others = ""
    if len(counts) > 1:
        others = f" (and {len(counts) - 1} more reasons)"
    counted = f"{text}: {len(reasons)} of {len(rows)} rows"
    yield f"{counted}: {reason.removeprefix('not measured: ')}{others}"


def _precision(campaign: Campaign) -> Iterable[str]:
    """How many experiments of an adaptive campaign are as precise as requested."""
    rule = campaign.design.protocol.adaptive
    if rule is not None:
        precise = sum(reason.startswith(PRECISE) for reason in campaign.design.stopped.values())
        yield (
            f"precision: {precise} of {len(campaign.design.experiments)} experiments known to "
            f"±{percent(rule.precision)} %"
        )


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return line[: most - 1] + "…"
