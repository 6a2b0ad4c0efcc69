"""An application against its reference values (Table I)."""

from collections.abc import Sequence

from eeio_results.comparison.cells import BANDWIDTH, POWER
from eeio_results.record import SCHEMA_VERSION
from eeio_results.report.columns import number
from eeio_results.report.document import Document, flat
from eeio_results.report.parts import Table
from eeio_results.studies.panadero2012.references import Reference
from eeio_results.units import MB


def document(found: Sequence[Reference]) -> Document:
    """The answer of `eeio study reference`."""
    metrics = [
        (f"W ({domain})", metric, 1.0)
        for domain, metric in POWER.items()
        if any(item.application.n(metric) for item in found)
    ]
    columns = [("MB/s", BANDWIDTH, MB), *metrics]
    header = ["Application", "Phase"]
    for name, _, _ in columns:
        header += [name, "Reference", "Deviation"]
    table = Table(
        title="Deviation of an application from its reference values (Table I)",
        header=tuple(header),
        rows=tuple(_row(item, columns) for item in found),
        numeric=frozenset(range(2, len(header))),
        note="medians; deviation in percent of the reference",
    )
    sources = Table(
        title="Experiments of the phases",
        header=("Application", "Phase", "Reference", "Differs in"),
        rows=tuple(
            (
                item.application.label(tool=True),
                item.application.factors["phase"],
                item.reference.label(tool=True) if item.reference else f"none: {item.reason}",
                "; ".join(item.differs),
            )
            for item in found
        ),
    )
    missing = dict.fromkeys(
        f"{metric}: {cell.reasons[metric]}"
        for item in found
        for cell in (item.application, item.reference)
        if cell is not None
        for metric in (POWER["system"],)
        if metric in cell.reasons
    )
    items = [item.to_json() for item in found]
    return Document(
        title="eeio study reference",
        parts=(table, sources, *missing),
        data=lambda: {"schema_version": SCHEMA_VERSION, "references": items},
        records=lambda: [flat(item) for item in items],
    )


def _row(item: Reference, columns: Sequence[tuple[str, str, float]]) -> tuple[str, ...]:
    factors = item.application.factors
    name = f"{factors['tool']} {factors['arguments']}".replace("collective_buffer=0", "").strip()
    cells = [name, factors["phase"]]
    for _, metric, unit in columns:
        for cell in (item.application, item.reference):
            has = cell is not None and cell.n(metric)
            cells.append(number(cell.median(metric) / unit) if cell and has else "-")
        deviation = item.deviation_percent(metric)
        cells.append("-" if deviation is None else f"{deviation:+.1f} %")
    return tuple(cells)
