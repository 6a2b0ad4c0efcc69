"""The tables of a report as plain cells, the same for every format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eeio.analysis.characterization import power_during
from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.io_label import load_of, sized
from eeio.analysis.observation import known
from eeio.analysis.rows import Row
from eeio.analysis.summary import Quartiles
from eeio.record.run import DOMAINS, MARKS, EnergyReading, Experiment, Machine
from eeio.record.store import Campaign
from eeio.record.tool_label import tool_label as tool_label  # studies of users import it from here
from eeio.record.tools import about
from eeio.report.campaign.characterized import Report
from eeio.report.campaign.columns import (
    DOMAIN,
    DOUBTFUL,
    TableColumn,
    chosen,
    energy,
    flush_cell,
    level_columns,
    load_cell,
    plain,
    ranking,
    shown,
    signed,
    spread,
)
from eeio.report.campaign.columns import NONE as _NONE
from eeio.report.campaign.rounds import rounds_table
from eeio.report.documents.pareto import pareto_table
from eeio.report.table_and_plot import Table
from eeio.units.number_text import number
from eeio.units.sizes import format_size, prefixed

if TYPE_CHECKING:
    from eeio.comparison.layer_costs import LayerCost

ESTIMATE = "ESTIMATE"


def tables(report: Report) -> list[Table]:
    """Everything a reader of the report sees, in order."""
    several = len(report.campaigns) > 1
    made = [_level_table(report, level, several) for level in report.levels]
    made += _efficiency_tables(report, several)
    if report.layers:
        made.append(layers_table(report.layers))
    if (front := pareto_table(report.pareto)) is not None:
        made.append(front)
    if any(row.estimates for row in report.rows):
        made.append(_estimate_table(report, several))
    made.append(_idle_table(report))
    if (repeated := rounds_table(report.campaigns)) is not None:
        made.append(repeated)
    if report.answers:
        from eeio.report.campaign.answers import answers_table

        decided = answers_table(report.answers)
        if decided is not None:
            made.append(decided)
    if report.context:
        made.append(_context_table(report, several))
    problems = _problem_table(report)
    if problems.rows:
        made.append(problems)
    for campaign in report.campaigns:
        made.append(_machine_table(campaign.name, campaign.machine))
    return made


_FACTORS = (
    "Operation",
    "Spatiality",
    "Request",
    "Buffer",
    "Disk cache",
    "Flush",
    "Tool",
    "Target",
)


def row_label(row: Row) -> str:
    """`fio random read 4 KiB, load 50 %, direct`: a row in one line of text."""
    load = None
    if row.experiment:
        load = load_of(dict(row.experiment.arguments))
    cache = {"on": "page cache", "off": "direct"}.get(row.cache.buffer or "")
    text = sized(f"{row.tool_label or ''} {row.io_label}", row.request_size_bytes)
    return ", ".join(filter(None, (text, load, cache)))


_BYTES = {
    "tool": "the bytes that the program reports; the drive may have moved more or fewer",
    "process": "the bytes that the kernel counts for its processes (fetched from storage, or made "
    "dirty); the drive may have moved more or fewer",
    "drive": "the bytes that the drive moved for it",
}


def _factor_cells(row: Row, several: bool) -> tuple[str, ...]:
    experiment = row.experiment
    cells = (
        row.operation_label,
        row.spatiality or _NONE,
        _NONE if row.request_size_bytes is None else format_size(row.request_size_bytes),
        row.cache.buffer or _NONE,
        row.cache.disk or _NONE,
        flush_cell(row),
        row.tool_label or _NONE,
        experiment.target if experiment else _NONE,
    )
    if several:
        return (row.campaign, *cells)
    return cells


def _header(several: bool, *columns: str) -> tuple[str, ...]:
    return (*(("Campaign",) if several else ()), *_FACTORS, *columns)


def _numeric(first: int, columns: Sequence[TableColumn]) -> frozenset[int]:
    """Which of the columns of a table are numbers; `first` is the place of the first of these."""
    return frozenset(first + index for index, column in enumerate(columns) if column.numeric)


def _domain_notes(report: Report, every: Iterable[DomainFigures | None]) -> dict[str, None]:
    """The contents of the domains in a table, which of them another meter contradicts, and what
    their meters were verified on."""
    notes: dict[str, None] = {}
    known = [figures for figures in every if figures is not None]
    for figures in known:
        if contents := figures.contents():
            notes.setdefault(contents)
        for doubt in figures.doubts:
            notes.setdefault(f"{DOUBTFUL}: {doubt}")
    return notes | dict.fromkeys(report.verified(f.meter for f in known))


def _is_of_file(row: Row) -> bool:
    return row.phase is not None and row.experiment is not None and row.experiment.target == "file"


def _level_table(report: Report, level: str, several: bool) -> Table:
    rows = [row for row in report.rows if row.level == level]
    notes: dict[str, None] = {}
    cells: list[tuple[Row, DomainFigures | None]] = []
    without = 0
    for row in rows:
        is_empty = row.phase is None and row.n == 0
        if is_empty:
            notes.setdefault(row.why("bandwidth_bytes_per_s") or "not measured")
        if row.experiment is None:
            continue
        if is_empty and not row.invalid_runs:
            # A row of dashes adds no information to the note and the table of problems.
            without += 1
            continue
        cells.append((row, row.measured))
        notes |= dict.fromkeys(_row_notes(row, row.experiment))
    notes |= _domain_notes(report, (row.measured for row in rows))
    notes |= dict.fromkeys(_level_notes(level, rows, without))
    columns = _columns_of_level(report, cells)
    lines = []
    for row, best in cells:
        figures = [column.cell(row, best) for column in columns]
        lines.append((*_factor_cells(row, several), *figures))
    return _explaining_spread(
        Table(
            title=f"Level: {level}",
            header=_header(several, *(column.header for column in columns)),
            rows=tuple(lines),
            numeric=_numeric(len(_FACTORS) + several, columns),
            note="\n".join(notes),
        )
    )


def _columns_of_level(
    report: Report, cells: Sequence[tuple[Row, DomainFigures | None]]
) -> tuple[TableColumn, ...]:
    """With the power domain if a row is doubtful: it marks these rows."""
    columns = chosen((*level_columns(), DOMAIN), cells, report.columns)
    is_doubtful = any(figures is not None and figures.doubts for _, figures in cells)
    if is_doubtful and DOMAIN not in columns:
        return (*columns, DOMAIN)
    return columns


def _level_notes(level: str, rows: Iterable[Row], without: int) -> Iterator[str]:
    """The notes on a level with `without` experiments that were not measured."""
    if level == "device" and any(map(_is_of_file, rows)):
        yield (
            "target `file`: no raw device was given, so direct I/O on a prefilled file replaces "
            "it, through the file system (`--device DEV` measures the device itself)"
        )
    if without:
        counted = "1 experiment"
        if without != 1:
            counted = f"{without} experiments"
        yield f"{counted} of this level not measured: listed with the reasons below"


def _explaining_spread(table: Table) -> Table:
    """With a note on the brackets, if a cell has some."""
    if not any(cell.endswith("]") and " [" in cell for row in table.rows for cell in row):
        return table
    text = "median [lower quartile - upper quartile] of the n repetitions"
    return replace(table, note="\n".join(filter(None, (text, table.note))))


def _row_notes(row: Row, experiment: Experiment) -> Iterator[str]:
    """The notes on a row below its table."""
    label = f"{row.tool_label}, {row.io_label}"
    yield from row.device_checks
    yield from (f"{label}: {remark}" for remark in row.remarks.values())
    if experiment.level == "application" and row["bytes"] is not None:
        counted = _BYTES[about(experiment.tool).bytes_of]
        yield f"{experiment.tool}: MB, MB/s, MB/J and J/GB count {counted}"
    rate, p99 = row["operations_per_s"], row["latency_p99_s"]
    if rate is not None:
        latency = ""
        if p99:
            latency = f", p99 {spread(p99, 1e-3)} ms"
        yield f"{row.tool_label}, {row.phase}: {spread(rate)} operations/s{latency}"
    journal = known(row.journal)
    if journal is not None and any(of.median for of in journal.values()):
        yield f"{row.tool_label}, {row.phase}: {_journal(journal)}"
    if not row.n:
        return
    yield from _why_incomplete(row, label)
    if row.observed_otherwise:
        at_drive = row.spatiality_seen_by == "drive"
        where = "arrived at the target"
        if at_drive:
            where = "reached the drive"
        yield f"{label}: requests {where} as {row.order_seen}"


def _why_incomplete(row: Row, label: str) -> Iterator[str]:
    """Why figures of a row with valid repetitions are missing."""
    best, why_no_power = row.measured, row.why("power_w")
    why_no_bandwidth = row.why("bandwidth_bytes_per_s")
    why_no_efficiency = row.why("efficiency_bytes_per_j")
    if why_no_bandwidth is not None:
        yield f"MB/s, MB/J: {why_no_bandwidth}"
    if best is None:
        yield f"power, energy, efficiency: {why_no_power}"
    elif lacking := best.lacks(row.n):
        yield f"{sized(label, row.request_size_bytes, ', ')}: {lacking}"
    if best is not None and why_no_efficiency is not None and why_no_bandwidth is None:
        yield f"MB/J: {why_no_efficiency}"
    if row.why_not_durable is not None:
        until_durable = f"{label}: until durable: {row.why_not_durable}"
        yield row.why_not_durable if row.flush == "unknown" else until_durable


def _journal(figures: Mapping[str, Quartiles]) -> str:
    """Commits of ext4's journal and the calls that waited, as text."""

    def counted(name: str, what: str, mean: str) -> str:
        each = ""
        if mean in figures:
            each = f" ({spread(figures[mean], 1e-3)} ms each)"
        return f"{figures[name].median:g} {what}{each}"

    return (
        f"{counted('journal_commits', 'commits of the journal', 'journal_commit_mean_s')}, "
        f"{figures['journal_fast_commits'].median:g} fast commits; "
        f"{counted('journal_fsyncs', 'fsync calls', 'journal_fsync_mean_s')}, "
        f"{figures['journal_fsyncs_waiting'].median:g} of them waited for a commit"
    )


def _efficiency_tables(report: Report, several: bool) -> list[Table]:
    """MB/J at a glance: one line per pattern, the best first. Below, unordered, those that may not
    be ranked, with the reason. Estimates are in neither."""
    made = []
    for row in report.rows:
        for figures in row.domains:
            if figures["efficiency_bytes_per_j"] is not None:
                made.append((figures["efficiency_bytes_per_j"].median, row, figures))
    ranked = sorted(
        (item for item in made if item[2].ranked_reason is None),
        key=lambda item: (DOMAINS.index(item[2].power_domain), -item[0]),
    )
    others = [(row, figures) for _, row, figures in made if figures.ranked_reason is not None]
    table = _efficiency_table(
        report,
        several,
        "Energy efficiency (MB/J), measured power, best first in each domain",
        [(row, figures) for _, row, figures in ranked],
    )
    if not made:
        return [replace(table, note=_why_nothing_measured(report))]
    if not ranked:
        table = replace(table, note="no experiment may be ranked, for the reasons below")
    if not others:
        return [table]
    below = _efficiency_table(
        report, several, "Energy efficiency (MB/J), measured power, not ranked", others
    )
    return [
        table,
        replace(
            below,
            header=(*below.header, "Why not"),
            rows=tuple(
                (*cells, figures.ranked_reason or "")
                for cells, (_, figures) in zip(below.rows, others, strict=True)
            ),
        ),
    ]


def _efficiency_table(
    report: Report, several: bool, title: str, cells: Sequence[tuple[Row, DomainFigures]]
) -> Table:
    usual = ranking()
    least = [column for column in usual if column.word in ("mb/j", "limit")]
    columns = chosen(usual, cells, report.columns, least)
    return _explaining_spread(
        Table(
            title=title,
            header=(
                "Domain",
                "Meter",
                "Kind",
                "Level",
                *_header(several, *(column.header for column in columns)),
            ),
            rows=tuple(
                (
                    figures.power_domain,
                    _meter(row, figures),
                    figures.energy_kind,
                    row.level,
                    *_factor_cells(row, several),
                    *(column.cell(row, figures) for column in columns),
                )
                for row, figures in cells
            ),
            numeric=_numeric(4 + len(_FACTORS) + several, columns),
            note="\n".join(_domain_notes(report, (figures for _, figures in cells))),
        )
    )


def _meter(row: Row, figures: DomainFigures) -> str:
    """The meter, whether it is doubtful, and how many repetitions have its power if not all."""
    parts = [figures.meter]
    if figures.doubts:
        parts.append(DOUBTFUL)
    if figures.n < row.n:
        parts.append(f"{figures.n} of {row.n} repetitions")
    return ", ".join(parts)


def _why_nothing_measured(report: Report) -> str:
    reasons = []
    for row in report.rows:
        if row.n:
            reasons.append(row.why("efficiency_bytes_per_j"))
    every = dict.fromkeys(reason for reason in reasons if reason is not None)
    return "not measured: " + ("; ".join(every) or "no valid run")


def _estimate_table(report: Report, several: bool) -> Table:
    cells = []
    for row in report.rows:
        for figures in row.estimates:
            cells.append((row, figures))
    columns = tuple(column for column in shown(energy(), cells) if column.header != "Limit")
    return Table(
        title=f"{ESTIMATE}: modelled power, for orientation only; not measured, not ranked",
        header=(
            "Level",
            *_header(
                several,
                "n",
                *(f"{ESTIMATE} {_IN_ESTIMATES.get(c.header, c.header)}" for c in columns),
                "band",
            ),
        ),
        rows=tuple(
            (
                row.level,
                *_factor_cells(row, several),
                str(figures.n),
                *(column.cell(row, figures) for column in columns),
                _band(figures),
            )
            for row, figures in cells
        ),
        numeric=frozenset(
            range(1 + len(_FACTORS) + several, 3 + len(_FACTORS) + several + len(columns))
        ),
    )


_IN_ESTIMATES = {"Power (W)": "W", "Energy (J)": "J"}


def _band(figures: DomainFigures) -> str:
    if figures.energy_uncertainty_j is None or figures["energy_j"] is None:
        return _NONE
    energy_j = abs(figures["energy_j"].median)
    if energy_j:
        return f"±{100 * figures.energy_uncertainty_j.median / energy_j:.0f} %"
    return _NONE


def _idle_table(report: Report) -> Table:
    rows = []
    notes = []
    for campaign in report.campaigns:
        busy = power_during(campaign)
        idle = {r.key: r for r in campaign.idle}
        for key in {**idle, **busy}:
            rows.append(_idle_cells(campaign, key, idle.get(key), busy.get(key)))
        if campaign.idle_reason:
            notes.append(f"{campaign.name}: not measured: {campaign.idle_reason}")
        for reading in campaign.idle:
            if not reading.valid:
                source = f"{campaign.name}: {reading.domain} ({reading.meter})"
                notes.append(f"{source}: {'; '.join(reading.reasons)}")
    return Table(
        title="Power when idle and during the experiments",
        header=(
            "Campaign",
            "Domain",
            "Meter",
            "Kind",
            "Idle, mean (W)",
            "Idle, median (W)",
            "Coverage",
            "Experiments (W)",
            "Rise",
        ),
        rows=tuple(rows),
        numeric=frozenset({4, 5, 6, 7, 8}),
        note="\n".join(notes),
    )


def _idle_cells(
    campaign: Campaign, key: tuple[str, str, str], idle: EnergyReading | None, busy_w: float | None
) -> tuple[str, ...]:
    domain, meter, kind = key
    idle_w = None
    if idle is not None:
        idle_w = idle.power_w
    median_w = None
    if idle is not None:
        median_w = campaign.idle_median_w(idle)
    return (
        campaign.name,
        domain,
        meter,
        f"{kind}, {MARKS[kind]}" if kind in MARKS else kind,
        plain(idle_w),
        plain(median_w),
        _NONE if idle is None else f"{idle.coverage:.0%}",
        plain(busy_w),
        f"{100 * (busy_w / idle_w - 1):+.1f} %" if idle_w and busy_w else _NONE,
    )


def _context_table(report: Report, several: bool) -> Table:
    rows = []
    for row in report.context:
        factor, unit = prefixed(row.value.median, row.unit)
        rows.append(
            (
                *((row.campaign,) if several else ()),
                row.name.replace("_", " "),
                unit,
                str(row.n),
                spread(row.value, factor),
            )
        )
    return Table(
        title="Context: the machine (lmbench), and figures of complete runs",
        header=(*(("Campaign",) if several else ()), "Figure", "Unit", "n", "Median [Q1 - Q3]"),
        rows=tuple(rows),
        numeric=frozenset({2 + several, 3 + several}),
    )


def _problem_table(report: Report) -> Table:
    rows = []
    for row in report.rows:
        cells = (row.level, *_factor_cells(row, False))
        if (load := load_cell(row)) != _NONE:
            cells = (*cells[:-2], f"{cells[-2]} at {load}", cells[-1])
        why_not = row.why("bandwidth_bytes_per_s")
        if row.phase is None and why_not is not None and not row.invalid_runs:
            rows.append((*cells, why_not))
        for reason in row.invalid_reasons:
            rows.append((*cells, f"{row.invalid_runs} invalid: {reason}"))
    return Table(
        title="Not measured, failed or invalid",
        header=("Level", *_FACTORS, "Why"),
        rows=tuple(rows),
    )


def _machine_table(name: str, machine: Machine) -> Table:
    rows = []
    for key, value in machine.to_json().items():
        if key not in ("schema_version", "tools", "programs", "missing", "limits"):
            rows.append(_fact(key, value))
    rows += [
        (f"program of {name}", f"sha256 {sha256}") for name, sha256 in machine.programs.items()
    ]
    for tool in machine.tools:
        rows.append(
            (f"{tool.name} ({tool.source})", f"{tool.version} {tool.path} sha256 {tool.sha256}")
        )
    rows += [(f"limit: {name}", text) for name, text in machine.limits.items()]
    rows += [
        (f"{key.replace('_', ' ')} missing", reason) for key, reason in machine.missing.items()
    ]
    return Table(title=f"Machine of {name}", header=("", ""), rows=tuple(rows))


def _fact(key: str, value: object) -> tuple[str, str]:
    """A line of a machine: `memory`, `25.3 GB (23.54 GiB)` for its `memory_bytes`."""
    name, _, unit = key.rpartition("_")
    if unit in ("bytes", "hz") and isinstance(value, int):
        factor, prefixed_unit = prefixed(value, "B" if unit == "bytes" else "Hz")
        binary = ""
        if unit == "bytes":
            binary = f" ({number(value / 2**30)} GiB)"
        return name.replace("_", " "), f"{number(value / factor)} {prefixed_unit}{binary}"
    return key.replace("_", " "), _NONE if value is None else str(value)


_LAYER_FACTORS = ("machine", "operation", "spatiality")


def layers_table(costs: "Sequence[LayerCost]") -> Table:
    """A row for every two experiments that are one layer apart."""
    return Table(
        title="Cost per layer",
        header=(
            "Campaign",
            "Operation",
            "Spatiality",
            "Request",
            "Buffer",
            "Flush",
            "Layer",
            "Over",
            "n",
            "J/GB more",
            "95 % interval",
            "s/GB more",
            "Verdict",
        ),
        rows=tuple(map(_layer_cells, costs)),
        numeric=frozenset({8, 9, 10, 11}),
        note="medians of the layer less those of the one below; verdict: energy, Mann-Whitney, p "
        "adjusted over all rows (Benjamini and Hochberg), confirmed at p < 0.05",
    )


def _layer_cells(cost: "LayerCost") -> tuple[str, ...]:
    factors = cost.match.upper.factors
    size = cost.match.upper.request_size_bytes
    interval = cost.energy_j_per_gb.interval
    return (
        *(factors[name] for name in _LAYER_FACTORS),
        _NONE if size is None else format_size(size),
        factors["buffer"],
        _NONE if factors["flush"] == "as found" else factors["flush"],
        cost.match.layer,
        cost.match.below,
        str(cost.n),
        signed(cost.energy_j_per_gb.value),
        _NONE if interval is None else f"{signed(interval.low)} to {signed(interval.high)}",
        signed(cost.seconds_per_gb.value),
        cost.verdict,
    )
