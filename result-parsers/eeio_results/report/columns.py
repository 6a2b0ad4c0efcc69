"""The columns of a report's tables: what each is called, and how its cell is made of a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eeio_results.characterization import Row
from eeio_results.domains import DomainFigures, Quartiles
from eeio_results.record import DEMO
from eeio_results.units import KIB, MB, MIB, percent

NONE = "-"
WITHOUT_DRIVES = "without drives"
DOUBTFUL = "doubtful"


@dataclass(frozen=True)
class TableColumn:
    """`cell` is given a row and its figures of one power domain, None where it has none. Where
    `needed` is false the column is left out of a table in which no row has anything for it."""

    header: str
    cell: Callable[[Row, DomainFigures | None], str]
    numeric: bool = True
    needed: bool = True


Cells = Sequence[tuple[Row, DomainFigures | None]]


def shown(columns: Sequence[TableColumn], cells: Cells) -> tuple[TableColumn, ...]:
    """Those that a table of these rows needs."""
    return tuple(c for c in columns if c.needed or any(c.cell(*of) != NONE for of in cells))


def number(value: float) -> str:
    """Four significant digits without an exponent: 1234.5 -> `1234`, 0.012345 -> `0.01234`."""
    if value == 0:
        return "0"
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e+" in text else (f"{value:.3g}" if "e-" in text else text)


def spread(figures: Quartiles | None, unit: float = 1.0) -> str:
    """`median [q1 - q3]` in a unit; only the median where both quartiles are the same, as of one
    repetition."""
    if figures is None:
        return NONE
    median, low, high = (number(v / unit) for v in (figures.median, figures.q1, figures.q3))
    return median if low == high else f"{median} [{low} - {high}]"


def middle(figures: Quartiles | None, unit: float = 1.0) -> str:
    return NONE if figures is None else number(figures.median / unit)


def limit(figures: Quartiles | None) -> str:
    """The limit of error of a reading: `±1.2 %`."""
    return NONE if figures is None else f"±{percent(figures.median)} %"


def domain_cell(figures: DomainFigures) -> str:
    return f"{figures.power_domain} ({figures.meter})" + (f", {DOUBTFUL}" if figures.doubts else "")


def flush_cell(row: Row) -> str:
    """`end`; `none, not durable` where bandwidth and energy end when the tool returned."""
    if row.flush is None:
        return NONE
    apart = row.durable is False and row.flush != "unknown"
    return f"{row.flush}, not durable" if apart else row.flush


def _load(row: Row, _: DomainFigures | None) -> str:
    """The offered load of a step of a load curve, as a share of the measured maximum."""
    load = None if row.experiment is None else dict(row.experiment.arguments).get("load")
    return NONE if load is None else f"{load} %"


def _of_domain(make: Callable[[DomainFigures], str]) -> Callable[[Row, DomainFigures | None], str]:
    def cell(row: Row, figures: DomainFigures | None) -> str:
        text = NONE if figures is None else make(figures)
        demo = figures is not None and figures.energy_kind == DEMO and text != NONE
        return f"{text} ({DEMO})" if demo else text

    return cell


def _of_storage(figures: DomainFigures, text: str) -> str:
    """Beside a figure that is not the storage's: so."""
    drives = figures.leaves_drives_out and text != NONE
    return f"{text} ({WITHOUT_DRIVES})" if drives else text


def _latency(name: str) -> Callable[[Row, DomainFigures | None], str]:
    return lambda row, figures: middle(row.work.latency_s.get(name), 1e-3)


_LOAD = TableColumn("Load", _load, needed=False)
_MB_PER_S = TableColumn("MB/s", lambda row, _: spread(row.bandwidth_bytes_per_s, MB))
_LIMIT = TableColumn("Limit", _of_domain(lambda d: limit(d.uncertainty_relative)))
_MB_PER_J = TableColumn(
    "MB/J", _of_domain(lambda d: _of_storage(d, spread(d.efficiency_bytes_per_j, MB)))
)
_KIB_PER_J = TableColumn(
    "KiB/J", _of_domain(lambda d: _of_storage(d, middle(d.efficiency_bytes_per_j, KIB)))
)
_J_PER_GB = TableColumn("J/GB", _of_domain(lambda d: _of_storage(d, middle(d.energy_j_per_gb))))
_MB_PER_J_ABOVE = TableColumn(
    "MB/J above idle",
    _of_domain(lambda d: middle(d.marginal.efficiency_bytes_per_j, MB)),
    needed=False,
)
_J_PER_OPERATION = TableColumn(
    "J/operation",
    _of_domain(lambda d: _of_storage(d, middle(d.energy_j_per_operation))),
    needed=False,
)
_J_PER_GB_ABOVE = TableColumn(
    "J/GB above idle", _of_domain(lambda d: middle(d.marginal.energy_j_per_gb)), needed=False
)
_J_PER_GB_SHARED = TableColumn(
    "J/GB, idle shared out", _of_domain(lambda d: middle(d.busy_energy_j_per_gb)), needed=False
)

ENERGY: tuple[TableColumn, ...] = (
    TableColumn("Power (W)", _of_domain(lambda d: spread(d.power_w))),
    TableColumn("W above idle", _of_domain(lambda d: middle(d.marginal.power_w)), needed=False),
    TableColumn("Energy (J)", _of_domain(lambda d: spread(d.energy_j))),
    _LIMIT,
    _MB_PER_J,
    _KIB_PER_J,
    _MB_PER_J_ABOVE,
    _J_PER_GB,
    _J_PER_GB_ABOVE,
    _J_PER_GB_SHARED,
    _J_PER_OPERATION,
)

LEVEL: tuple[TableColumn, ...] = (
    TableColumn(
        "n",
        lambda row, _: f"{row.n}" + (f" ({row.invalid_runs} invalid)" if row.invalid_runs else ""),
    ),
    _MB_PER_S,
    TableColumn("MiB/s", lambda row, _: middle(row.bandwidth_bytes_per_s, MIB)),
    TableColumn(
        "MB/s into page cache",
        lambda row, _: middle(row.work.page_cache_bandwidth_bytes_per_s, MB),
        needed=False,
    ),
    TableColumn("Operations/s", lambda row, _: spread(row.operations_per_s), needed=False),
    TableColumn("Time (s)", lambda row, _: middle(row.work.duration_s)),
    TableColumn("MB", lambda row, _: middle(row.work.bytes, MB)),
    *ENERGY,
)
DOMAIN = TableColumn("Domain", _of_domain(domain_cell), numeric=False)

RANKING: tuple[TableColumn, ...] = (
    _MB_PER_J,
    _LIMIT,
    _KIB_PER_J,
    _MB_PER_J_ABOVE,
    _J_PER_GB,
    _J_PER_GB_ABOVE,
    _J_PER_GB_SHARED,
    TableColumn("MB/s", lambda row, _: middle(row.bandwidth_bytes_per_s, MB)),
)

FURTHER: dict[str, tuple[TableColumn, ...]] = {
    "iops": (
        TableColumn("IOPS", lambda row, _: spread(row.work.iops)),
        TableColumn("IOPS/W", _of_domain(lambda d: middle(d.iops_per_w))),
    ),
    "latency": (
        TableColumn("p50 (ms)", _latency("p50")),
        TableColumn("p95 (ms)", _latency("p95")),
        TableColumn("p99 (ms)", _latency("p99")),
        TableColumn("p99.9 (ms)", _latency("p999")),
        TableColumn("p99.99 (ms)", _latency("p9999")),
        TableColumn("max (ms)", _latency("max")),
    ),
    "seen": (
        TableColumn("Seen", lambda row, _: row.work.spatiality_seen or NONE, numeric=False),
        TableColumn("Seen by", lambda row, _: row.work.spatiality_seen_by or NONE, numeric=False),
    ),
    "drive": (TableColumn("Drive", lambda row, _: row.drive or NONE, numeric=False),),
}
"""Those of `eeio report --columns`, by the word that asks for them."""


def word(column: TableColumn) -> str:
    """What `--columns` calls it: its unit, else its header: `w`, `mb/s`, `j/gb above idle`."""
    header = column.header.lower()
    return header.partition("(")[2].rstrip(")") or header


def known_words() -> tuple[str, ...]:
    """All that `--columns` takes: those of FURTHER, then the usual columns."""
    return (*FURTHER, *(word(column) for column in (*LEVEL, DOMAIN)))


def chosen(
    usual: Sequence[TableColumn],
    cells: Cells,
    names: Sequence[str],
    otherwise: Sequence[TableColumn] | None = None,
) -> tuple[TableColumn, ...]:
    """The columns of a table: the load if rows have one, the usual columns that its rows need, or
    those of them that are named, and then those of FURTHER that are asked for. `otherwise` stands
    where none of those named is among the usual ones (default: the usual ones)."""
    columns = shown(usual, cells)
    if any(name not in FURTHER for name in names):
        named = tuple(column for column in columns if word(column) in names)
        columns = named or tuple(columns if otherwise is None else otherwise)
    further = (column for name in names for column in FURTHER.get(name, ()))
    return (*shown((_LOAD,), cells), *columns, *further)
