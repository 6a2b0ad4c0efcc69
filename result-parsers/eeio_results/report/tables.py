"""The tables of a report as plain cells, the same for every format."""

from collections.abc import Iterable

from eeio_results.characterization import Row, power_during
from eeio_results.domains import DomainFigures, Quartiles
from eeio_results.record import LEVELS, EnergyReading, Experiment, Machine
from eeio_results.report.model import Report
from eeio_results.report.parts import Table
from eeio_results.units import KIB, MB, MIB, format_size

ESTIMATE = "ESTIMATE"
WITHOUT_DRIVES = "without drives"
DOUBTFUL = "doubtful"
_NONE = "-"


def tables(report: Report) -> list[Table]:
    """Everything a reader of the report sees, in order."""
    several = len(report.campaigns) > 1
    found = [_level_table(report, level, several) for level in LEVELS]
    found.append(_efficiency_table(report, several))
    if any(row.estimates for row in report.rows):
        found.append(_estimate_table(report, several))
    found.append(_idle_table(report))
    if report.context:
        found.append(_context_table(report, several))
    problems = _problem_table(report)
    if problems.rows:
        found.append(problems)
    found += [_machine_table(campaign.name, campaign.machine) for campaign in report.campaigns]
    return found


def number(value: float) -> str:
    """Four significant digits without an exponent: 1234.5 -> `1234`, 0.012345 -> `0.01234`."""
    if value == 0:
        return "0"
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e+" in text else (f"{value:.3g}" if "e-" in text else text)


def spread(figures: Quartiles | None, unit: float = 1.0) -> str:
    """`median [q1 - q3]` in a unit."""
    if figures is None:
        return _NONE
    low, high = number(figures.q1 / unit), number(figures.q3 / unit)
    return f"{number(figures.median / unit)} [{low} - {high}]"


def middle(figures: Quartiles | None, unit: float = 1.0) -> str:
    return _NONE if figures is None else number(figures.median / unit)


_FACTORS = ("Operation", "Spatiality", "Request", "Buffer", "Disk cache", "Tool", "Target")


# Arguments that tell one experiment from another, in a word.
_TELLING = {
    ("collective", "on"): "collective",
    ("file_per_process", "on"): "file per process",
    ("fsync", "on"): "fsync",
    ("fsync", "end"): "fsync at the end",
    ("flush", "off"): "flush=off",
    ("layout", "own"): "own folders",
    ("mode", "fork"): "fork",
}
# Those whose value says nothing without their name.
_NAMED = ("engine", "iodepth", "stride")


def tool_label(experiment: Experiment) -> str:
    """`ior mpiio x4 collective`: the tool, and what else its experiments differ in."""
    words = [experiment.tool]
    if experiment.api != "posix":
        words.append(experiment.api)
    if experiment.processes > 1:
        words.append(f"x{experiment.processes}")
    arguments = dict(experiment.arguments)
    if "files" in arguments:
        words.append(f"{arguments['files']} files")
    words += [word for (name, value), word in _TELLING.items() if arguments.get(name) == value]
    words += [arguments[name] for name in ("subtype", "variant") if name in arguments]
    words += [f"{name}={arguments[name]}" for name in _NAMED if name in arguments]
    if "frequency_hz" in arguments:
        words.append(f"{int(arguments['frequency_hz']) / 1e9:g} GHz")
    return " ".join(words)


def operation_label(row: Row) -> str:
    """`write (rewrite)`: the operation, and the tool's own word where that says more."""
    phase = row.phase or ""
    operation = row.operation or _NONE
    if phase and phase not in (operation, f"{row.spatiality} {operation}"):
        return f"{operation} ({phase})"
    return operation


def _factor_cells(row: Row, several: bool) -> tuple[str, ...]:
    experiment = row.experiment
    cells = (
        operation_label(row),
        row.spatiality or _NONE,
        _NONE if row.request_size_bytes is None else format_size(row.request_size_bytes),
        row.cache.buffer or _NONE,
        row.cache.disk or _NONE,
        tool_label(experiment) if experiment else _NONE,
        experiment.target if experiment else _NONE,
    )
    return (row.campaign, *cells) if several else cells


def _header(several: bool, *columns: str) -> tuple[str, ...]:
    return (*(("Campaign",) if several else ()), *_FACTORS, *columns)


def _numeric(several: bool, count: int) -> frozenset[int]:
    first = len(_FACTORS) + several
    return frozenset(range(first, first + count))


def _energy_cells(figures: DomainFigures | None) -> tuple[str, ...]:
    if figures is None:
        return (_NONE,) * 4
    efficiency = figures.efficiency_bytes_per_j
    return (
        spread(figures.power_w),
        spread(figures.energy_j),
        _efficiency_cell(figures, spread(efficiency, MB)),
        _efficiency_cell(figures, middle(efficiency, KIB)),
    )


def _efficiency_cell(figures: DomainFigures, text: str) -> str:
    """Beside a figure that is not the storage's: so."""
    drives = figures.leaves_drives_out and text != _NONE
    return f"{text} ({WITHOUT_DRIVES})" if drives else text


def _domain_cell(figures: DomainFigures) -> str:
    return f"{figures.power_domain} ({figures.meter})" + (f", {DOUBTFUL}" if figures.doubts else "")


def _domain_notes(every: Iterable[DomainFigures | None]) -> dict[str, None]:
    """What the domains in a table hold, and which of them another meter contradicts."""
    notes: dict[str, None] = {}
    for figures in filter(None, every):
        if contents := figures.contents():
            notes.setdefault(contents)
        for doubt in figures.doubts:
            notes.setdefault(f"{DOUBTFUL}: {doubt}")
    return notes


def _level_table(report: Report, level: str, several: bool) -> Table:
    rows = []
    notes: dict[str, None] = {}
    for row in report.rows:
        if row.level != level:
            continue
        best = row.measured
        if row.experiment is None or (row.n == 0 and row.phase is None):
            notes.setdefault(next(iter(row.reasons.values())))
        if row.experiment is None:
            continue
        rows.append(
            (
                *_factor_cells(row, several),
                f"{row.n}" + (f" ({row.invalid_runs} invalid)" if row.invalid_runs else ""),
                spread(row.bandwidth_bytes_per_s, MB),
                middle(row.bandwidth_bytes_per_s, MIB),
                *_energy_cells(best),
                _domain_cell(best) if best else _NONE,
            )
        )
        for check in row.device_checks:
            notes.setdefault(check)
        if row.operations_per_s is not None:
            notes.setdefault(
                f"{tool_label(row.experiment)}, {row.phase}: {spread(row.operations_per_s)} "
                "operations/s"
            )
            if row.bandwidth_bytes_per_s is None:
                notes.setdefault(f"MB/s, MB/J: {row.reasons['bandwidth_bytes_per_s']}")
        if best is not None and best.n < row.n:
            notes.setdefault(
                f"{tool_label(row.experiment)}, {operation_label(row)} {row.spatiality}: power of "
                f"{best.n} of {row.n} repetitions: {best.reason}"
            )
        if best is None and row.n:
            notes.setdefault(f"power, energy, efficiency: {row.reasons['power_w']}")
        elif "efficiency_bytes_per_j" in row.reasons and row.bandwidth_bytes_per_s is not None:
            notes.setdefault(f"MB/J: {row.reasons['efficiency_bytes_per_j']}")
    notes |= _domain_notes(row.measured for row in report.rows if row.level == level)
    if level == "device" and any(
        row.level == level and row.experiment and row.experiment.target == "file" and row.phase
        for row in report.rows
    ):
        notes.setdefault(
            "target `file`: no raw device was given, so direct I/O on a prefilled file stands for "
            "it, with the file system in between (`--device DEV` measures the device itself)"
        )
    return Table(
        title=f"Level: {level}",
        header=_header(
            several, "n", "MB/s", "MiB/s", "Power (W)", "Energy (J)", "MB/J", "KiB/J", "Domain"
        ),
        rows=tuple(rows),
        numeric=_numeric(several, 7),
        note="\n".join(notes),
    )


def _efficiency_table(report: Report, several: bool) -> Table:
    """MB/J at a glance: one line a pattern, the best first. Estimates are never ranked."""
    ranked = sorted(
        (
            (figures.efficiency_bytes_per_j.median, row, figures)
            for row in report.rows
            for figures in row.domains
            if figures.efficiency_bytes_per_j is not None
        ),
        key=lambda item: (item[2].power_domain, -item[0]),
    )
    return Table(
        title="Energy efficiency (MB/J), measured power, best first in each domain",
        header=("Domain", "Meter", "Kind", "Level", *_header(several, "MB/J", "KiB/J", "MB/s")),
        rows=tuple(
            (
                figures.power_domain,
                figures.meter + (f", {DOUBTFUL}" if figures.doubts else ""),
                figures.energy_kind,
                row.level,
                *_factor_cells(row, several),
                _efficiency_cell(figures, spread(figures.efficiency_bytes_per_j, MB)),
                _efficiency_cell(figures, middle(figures.efficiency_bytes_per_j, KIB)),
                middle(row.bandwidth_bytes_per_s, MB),
            )
            for _, row, figures in ranked
        ),
        numeric=frozenset(column + 4 for column in _numeric(several, 3)),
        note="\n".join(_domain_notes(figures for _, _, figures in ranked))
        if ranked
        else _why_nothing_measured(report),
    )


def _why_nothing_measured(report: Report) -> str:
    reasons = dict.fromkeys(
        row.reasons["efficiency_bytes_per_j"]
        for row in report.rows
        if row.n and "efficiency_bytes_per_j" in row.reasons
    )
    return "not measured: " + ("; ".join(reasons) or "no valid run")


def _estimate_table(report: Report, several: bool) -> Table:
    rows = []
    for row in report.rows:
        for figures in row.estimates:
            rows.append(
                (
                    row.level,
                    *_factor_cells(row, several),
                    *_energy_cells(figures),
                    _band(figures),
                )
            )
    return Table(
        title=f"{ESTIMATE}: modelled power, for orientation only; not measured, not ranked",
        header=(
            "Level",
            *_header(
                several,
                f"{ESTIMATE} W",
                f"{ESTIMATE} J",
                f"{ESTIMATE} MB/J",
                f"{ESTIMATE} KiB/J",
                "band",
            ),
        ),
        rows=tuple(rows),
        numeric=frozenset(column + 1 for column in _numeric(several, 5)),
    )


def _band(figures: DomainFigures) -> str:
    if figures.energy_j is None or figures.energy_uncertainty_j is None:
        return _NONE
    return f"±{100 * figures.energy_uncertainty_j.median / figures.energy_j.median:.0f} %"


def _idle_table(report: Report) -> Table:
    rows = []
    notes = []
    for campaign in report.campaigns:
        busy = power_during(campaign)
        idle = {(r.domain, r.meter, r.kind): r for r in campaign.idle}
        rows += [
            _idle_cells(campaign.name, key, idle.get(key), busy.get(key))
            for key in {**idle, **busy}
        ]
        if campaign.idle_reason:
            notes.append(f"{campaign.name}: not measured: {campaign.idle_reason}")
    return Table(
        title="Power when idle and during the experiments",
        header=(
            "Campaign",
            "Domain",
            "Meter",
            "Kind",
            "Idle (W)",
            "Coverage",
            "Experiments (W)",
            "Rise",
        ),
        rows=tuple(rows),
        numeric=frozenset({4, 5, 6, 7}),
        note="\n".join(notes),
    )


def _idle_cells(
    campaign: str, key: tuple[str, str, str], idle: EnergyReading | None, busy_w: float | None
) -> tuple[str, ...]:
    domain, meter, kind = key
    idle_w = None if idle is None else idle.power_w
    return (
        campaign,
        domain,
        meter,
        f"modelled, {ESTIMATE}" if kind == "modelled" else kind,
        _NONE if idle_w is None else number(idle_w),
        _NONE if idle is None else f"{idle.coverage:.0%}",
        _NONE if busy_w is None else number(busy_w),
        f"{100 * (busy_w / idle_w - 1):+.1f} %" if idle_w and busy_w else _NONE,
    )


def _context_table(report: Report, several: bool) -> Table:
    return Table(
        title="Context: the machine itself (lmbench)",
        header=(*(("Campaign",) if several else ()), "Figure", "Unit", "n", "Median [Q1 - Q3]"),
        rows=tuple(
            (
                *((row.campaign,) if several else ()),
                row.name.replace("_", " "),
                row.unit,
                str(row.n),
                spread(row.value),
            )
            for row in report.context
        ),
        numeric=frozenset({2 + several, 3 + several}),
    )


def _problem_table(report: Report) -> Table:
    rows = []
    for row in report.rows:
        if row.phase is None and row.reasons and not row.invalid_runs:
            rows.append((row.level, *_factor_cells(row, False), row.reasons["power_w"]))
        rows += [
            (row.level, *_factor_cells(row, False), f"{row.invalid_runs} invalid: {reason}")
            for reason in row.invalid_reasons
        ]
    return Table(
        title="Not measured, failed or invalid",
        header=("Level", *_FACTORS, "Why"),
        rows=tuple(rows),
    )


def _machine_table(name: str, machine: Machine) -> Table:
    rows = [
        (key.replace("_", " "), _NONE if value is None else str(value))
        for key, value in machine.to_json().items()
        if key not in ("schema_version", "tools", "missing")
    ]
    rows += [
        (f"{tool.name} ({tool.source})", f"{tool.version} {tool.path} sha256 {tool.sha256}")
        for tool in machine.tools
    ]
    rows += [(f"{key.replace('_', ' ')} missing", why) for key, why in machine.missing.items()]
    return Table(title=f"Machine of {name}", header=("", ""), rows=tuple(rows))
