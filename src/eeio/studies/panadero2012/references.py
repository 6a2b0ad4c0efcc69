"""Panadero et al. 2012, part 4 and Table I: an application compared with the characterization.

For each phase of an application (BT-IO's dumps, its reading back) the characterization gives
reference values. They are those of the experiment at the library level, or the file-system level if
there is none, with the same operation on the same drive, the nearest request size, the same access
pattern and the same state of the buffer cache and of the drive's cache. For writes, only those with
the same flush and durable end count. Table I is the difference between the measured power and the
reference, in percent of the reference; bandwidth is next to it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from eeio.comparison.cells import BANDWIDTH, POWER, Cell
from eeio.record.run import SCHEMA_VERSION
from eeio.report.campaign.columns import plain
from eeio.report.document import Document, flat
from eeio.report.table_and_plot import Table
from eeio.units.sizes import MB

LEVELS = ("library", "filesystem")
"""Where reference values come from, the first that has any (Fig. 14 takes the library's)."""


@dataclass(frozen=True)
class Reference:
    """One phase of an application and its reference experiment, or why there is none.

    `differs` names the factors in which that experiment is not like the phase.
    """

    application: Cell
    reference: Cell | None
    differs: tuple[str, ...]
    reason: str | None

    def deviation_percent(self, metric: str) -> float | None:
        """100 (measured / reference - 1) of the medians; None where one was not measured."""
        measured = self.application.known(metric)
        reference = None
        if self.reference is not None:
            reference = self.reference.known(metric)
        if measured is None or reference is None:
            return None
        return 100.0 * (measured / reference - 1.0)

    def to_json(self) -> dict[str, Any]:
        experiment = self.reference
        metrics = (BANDWIDTH, *POWER.values())
        return {
            "application": self.application.label(tool=True),
            "phase": self.application.factors["phase"],
            "reference": experiment.label(tool=True) if experiment else None,
            "differs": list(self.differs),
            "reason": self.reason,
            "values": {
                metric: {
                    "measured": self.application.known(metric),
                    "reference": experiment.known(metric) if experiment else None,
                    "deviation_percent": self.deviation_percent(metric),
                }
                for metric in metrics
                if self.application.n(metric) or (experiment is not None and experiment.n(metric))
            },
        }


def references(cells: Sequence[Cell]) -> list[Reference]:
    """Every phase at the application level with its reference."""
    made = []
    for cell in cells:
        if cell.factors["level"] == "application":
            made.append(_reference(cell, cells))
    return made


def _reference(application: Cell, cells: Sequence[Cell]) -> Reference:
    wanted = application.factors
    alike = []
    for cell in cells:
        if cell.n(BANDWIDTH) and all(
            cell.factors[name] == wanted[name] for name in ("machine", "operation")
        ):
            alike.append(cell)
    equals = [cell for cell in alike if _flushed(cell) == _flushed(application)]
    # Use another drive only if there are no data for this one.
    own = [cell for cell in equals if cell.factors["device"] == wanted["device"]]
    for of_drive, level in product((own, equals), LEVELS):
        like = [cell for cell in of_drive if cell.factors["level"] == level]
        if like:
            best = min(like, key=lambda cell: _distance(application, cell))
            return Reference(application, best, _differs(application, best), None)
    if any(cell.factors["level"] in LEVELS for cell in alike):
        flush, durable = _flushed(application)
        return Reference(
            application,
            None,
            (),
            f"the characterization has no {wanted['operation']} of the same flush: {flush} "
            f"(durable: {durable})",
        )
    return Reference(
        application,
        None,
        (),
        f"the characterization has no {wanted['operation']} at the library or file-system level",
    )


def _flushed(cell: Cell) -> tuple[str, str]:
    """The requested flush, and whether the figures run until the bytes are on the device."""
    return cell.factors.get("flush", "as found"), cell.factors.get("durable", "as found")


def _distance(application: Cell, cell: Cell) -> tuple[Any, ...]:
    """Caches first, because they change most; then the request size, the pattern, the library."""
    wanted, factors = application.factors, cell.factors
    return (
        factors["buffer"] != wanted["buffer"],
        factors["disk"] != wanted["disk"],
        _size_distance(application.request_size_bytes, cell.request_size_bytes),
        factors["spatiality"] != wanted["spatiality"],
        factors["api"] != wanted["api"],
        factors["processes"] != wanted["processes"],
        cell.label(tool=True),
    )


def _size_distance(wanted_bytes: int | None, found_bytes: int | None) -> float:
    """Octaves between two request sizes; an application without one size is near to all."""
    if wanted_bytes is None or found_bytes is None:
        if wanted_bytes == found_bytes:
            return 0.0
        return 1.0
    return abs(math.log2(wanted_bytes / found_bytes))


def _differs(application: Cell, cell: Cell) -> tuple[str, ...]:
    names = ("size", "spatiality", "buffer", "disk", "api", "processes", "device", "target")
    differs = []
    for name in names:
        if cell.factors[name] != application.factors[name]:
            differs.append(f"{name}: {cell.factors[name]} for {application.factors[name]}")
    return tuple(differs)


def document(found: Sequence[Reference]) -> Document:
    """The answer of `eeio study reference`."""
    metrics = []
    for domain, metric in POWER.items():
        if any(item.application.n(metric) for item in found):
            metrics.append((f"W ({domain})", metric, 1.0))
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
        f"{POWER['system']}: {reason}"
        for item in found
        for cell in (item.application, item.reference)
        if cell is not None
        if (reason := cell.why(POWER["system"])) is not None
    )
    items = [item.to_json() for item in found]
    return Document(
        title="eeio study reference",
        parts=(table, sources, *missing),
        data=lambda: {"schema_version": SCHEMA_VERSION, "references": items},
        records=lambda: list(map(flat, items)),
    )


def _row(item: Reference, columns: Sequence[tuple[str, str, float]]) -> tuple[str, ...]:
    factors = item.application.factors
    name = f"{factors['tool']} {factors['arguments']}".replace("collective_buffer=0", "").strip()
    cells = [name, factors["phase"]]
    for _, metric, unit in columns:
        for cell in (item.application, item.reference):
            cells.append(plain(None if cell is None else cell.known(metric), unit))
        deviation = item.deviation_percent(metric)
        cells.append("-" if deviation is None else f"{deviation:+.1f} %")
    return tuple(cells)
