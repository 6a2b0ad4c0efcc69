"""The columns of a report's tables: their names, and how a cell is made from a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.metrics import METRICS, Metric, named
from eeio.analysis.observation import known
from eeio.analysis.rows import Row
from eeio.analysis.summary import Quartiles
from eeio.record.run import DEMO
from eeio.units.number_text import number
from eeio.units.sizes import percent

NONE = "-"
WITHOUT_DRIVES = "without drives"
DOUBTFUL = "doubtful"


@dataclass(frozen=True)
class TableColumn:
    """`cell` receives a row and its figures of one power domain, None if it has none. If `needed`
    is false, a table in which all cells are empty omits the column. `word` is its name in
    `--columns`."""

    header: str
    cell: Callable[[Row, DomainFigures | None], str]
    numeric: bool = True
    needed: bool = True
    word: str = ""


Cells = Sequence[tuple[Row, DomainFigures | None]]


def shown(columns: Sequence[TableColumn], cells: Cells) -> tuple[TableColumn, ...]:
    """Those that a table of these rows needs."""
    return tuple(c for c in columns if c.needed or any(c.cell(*of) != NONE for of in cells))


def plain(value: float | None, unit: float = 1.0) -> str:
    """A number in a unit; NONE if there is none."""
    if value is None:
        return NONE
    return number(value / unit)


def signed(value: float | None) -> str:
    """`+1.5`, `-1.5`, `0`."""
    if value is None:
        return NONE
    if value > 0:
        return f"+{number(value)}"
    return number(value)


def spread(figures: Quartiles | None, unit: float = 1.0) -> str:
    """`median [q1 - q3]` in a unit; only the median where both quartiles are the same, as of one
    repetition."""
    if figures is None:
        return NONE
    median, low, high = (number(v / unit) for v in (figures.median, figures.q1, figures.q3))
    if low == high:
        return median
    return f"{median} [{low} - {high}]"


def middle(figures: Quartiles | None, unit: float = 1.0) -> str:
    return plain(None if figures is None else figures.median, unit)


def limit(figures: Quartiles | None) -> str:
    """The uncertainty of a reading: `±1.2 %`."""
    if figures is None:
        return NONE
    return f"±{percent(figures.median)} %"


def domain_cell(figures: DomainFigures) -> str:
    return f"{figures.power_domain} ({figures.meter})" + (f", {DOUBTFUL}" if figures.doubts else "")


def flush_cell(row: Row) -> str:
    """`end`; `none, not durable` where bandwidth and energy end when the tool returned."""
    if row.flush is None:
        return NONE
    apart = row.durable is False and row.flush != "unknown"
    if apart:
        return f"{row.flush}, not durable"
    return row.flush


def load_cell(row: Row, _: DomainFigures | None = None) -> str:
    """The offered load of a step of a load curve, as a share of the measured maximum."""
    load = None
    if row.experiment is not None:
        load = dict(row.experiment.arguments).get("load")
    if load is None:
        return NONE
    return f"{load} %"


def _marked(figures: DomainFigures | None, text: str, of_storage: bool = False) -> str:
    """A cell of a power domain, marked if the power is not measured, or excludes the drives."""
    if figures is None or text == NONE:
        return NONE
    if of_storage and figures.leaves_drives_out:
        text = f"{text} ({WITHOUT_DRIVES})"
    if figures.energy_kind == DEMO:
        return f"{text} ({DEMO})"
    return text


def _columns(metric: Metric, show_spread: bool | None = None) -> list[TableColumn]:
    """The column of a metric, and those in its other units."""

    def column(header: str, word: str, text: Callable[[Quartiles | None], str]) -> TableColumn:
        def cell(row: Row, figures: DomainFigures | None) -> str:
            found = text(row.figure(metric, figures))
            if metric.of_domain:
                return _marked(figures, found, metric.of_storage)
            return found

        return TableColumn(header, cell, needed=metric.needed, word=word)

    with_spread = show_spread
    if show_spread is None:
        with_spread = metric.spread
    shape = middle
    if with_spread:
        shape = spread
    text = limit
    if not metric.is_share:
        text = partial(shape, unit=metric.unit)
    return [
        column(metric.header, metric.name.lower(), text),
        *(column(name, name.lower(), partial(middle, unit=unit)) for name, unit in metric.units),
    ]


def _of(metrics: Sequence[Metric]) -> tuple[TableColumn, ...]:
    return tuple(column for metric in metrics for column in _columns(metric))


def level_columns() -> tuple[TableColumn, ...]:
    """The usual columns of a level's table."""
    n = TableColumn(
        "n",
        lambda row, _: f"{row.n}" + (f" ({row.invalid_runs} invalid)" if row.invalid_runs else ""),
        word="n",
    )
    return (n, *_of([metric for metric in METRICS if metric.in_rows and not metric.group]))


def energy() -> tuple[TableColumn, ...]:
    """Those of a power domain: of the table of estimates."""
    return _of([metric for metric in METRICS if metric.of_domain and not metric.group])


def ranking() -> tuple[TableColumn, ...]:
    """Those of the tables of efficiency."""
    ranked = _of([metric for metric in METRICS if metric.ranked])
    return (*ranked, _columns(named("MB/s"), show_spread=False)[0])


def _of_drive(name: str) -> TableColumn:
    """A metric by the power of the drive itself, of each meter that feeds or reads one: the main
    source of the row stays another."""
    metric = named(name)

    def cell(row: Row, _: DomainFigures | None) -> str:
        sources = [figures for figures in row.domains if figures.power_domain == "device"]
        texts = [_marked(s, middle(row.figure(metric, s), metric.unit)) for s in sources]
        if len(sources) > 1:
            texts = [f"{text} ({s.meter})" for text, s in zip(texts, sources, strict=True)]
        return "; ".join(texts) or NONE

    return TableColumn(f"Drive {name}", cell)


DOMAIN = TableColumn(
    "Domain",
    lambda _, figures: NONE if figures is None else domain_cell(figures),
    numeric=False,
    word="domain",
)
_LOAD = TableColumn("Load", load_cell, needed=False)
_TEXTS = {
    "seen": (
        TableColumn("Seen", lambda row, _: row.order_seen or NONE, numeric=False),
        TableColumn("Seen by", lambda row, _: row.spatiality_seen_by or NONE, numeric=False),
    ),
    "drive": (TableColumn("Drive", lambda row, _: known(row.drive) or NONE, numeric=False),),
    **{f"drive {name.lower()}": (_of_drive(name),) for name in ("W", "J/GB", "J/operation")},
}


def groups() -> dict[str, tuple[TableColumn, ...]]:
    """The columns that `eeio report --columns` adds, by the name of each group."""
    names = dict.fromkeys(metric.group for metric in METRICS if metric.group)
    return {name: _of([m for m in METRICS if m.group == name]) for name in names} | _TEXTS


def known_columns() -> tuple[str, ...]:
    """All that `--columns` accepts: the groups, then the usual columns."""
    return (*groups(), *(column.word for column in (*level_columns(), DOMAIN)))


def chosen(
    usual: Sequence[TableColumn],
    cells: Cells,
    names: Sequence[str],
    otherwise: Sequence[TableColumn] | None = None,
) -> tuple[TableColumn, ...]:
    """The columns of a table: the load if rows have one, the usual columns that its rows need, or
    those that are named, also without a value, and then those of the groups that are named.
    `otherwise` replaces them where none of those named is among the usual ones (default: the usual
    ones)."""
    columns, further = shown(usual, cells), groups()
    if any(name not in further for name in names):
        named_ones = tuple(column for column in usual if column.word in names)
        columns = named_ones or tuple(columns if otherwise is None else otherwise)
    added = (column for name in names for column in further.get(name, ()))
    return (*shown((_LOAD,), cells), *columns, *added)
