"""Power, bandwidth and MiB/J of random reads, one at a time, by their size."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eeio.analysis.ranking import why_figures_unsure
from eeio.record.store import Campaign
from eeio.report.campaign.columns import plain
from eeio.report.figures.panels_of_lines import Line, Panel
from eeio.report.table_and_plot import Table
from eeio.units.sizes import MIB, format_size

if TYPE_CHECKING:
    from eeio.analysis.rows import Row

FEWEST_SIZES = 4
"""With fewer, a campaign has no table of sizes."""


@dataclass(frozen=True)
class OfSize:
    """Medians of one request size. A None has its reason in `reason`; `unsure` says why the energy
    is compared with no other."""

    request_size_bytes: int
    engine: str
    n: int
    bandwidth_bytes_per_s: float | None
    power_w: float | None
    efficiency_bytes_per_j: float | None
    power_domain: str | None
    reason: str | None = None
    unsure: str | None = None

    @property
    def mib_per_s(self) -> float | None:
        return _in_mib(self.bandwidth_bytes_per_s)

    @property
    def mib_per_j(self) -> float | None:
        return _in_mib(self.efficiency_bytes_per_j)


def _in_mib(value: float | None) -> float | None:
    if value is None:
        return None
    return value / MIB


def of_sizes(campaign: Campaign) -> list[OfSize]:
    """In ascending order, each engine for itself; none of an engine with too few sizes."""
    from eeio.analysis.characterization import characterize

    sizes: dict[str, list[OfSize]] = {}
    for row in characterize(campaign):
        if _is_single_random_read(row):
            of_size = _of_size(row)
            sizes.setdefault(of_size.engine, []).append(of_size)
    chosen: list[OfSize] = []
    for engine in sorted(sizes):
        if len(sizes[engine]) >= FEWEST_SIZES:
            chosen += sorted(sizes[engine], key=lambda each: each.request_size_bytes)
    return chosen


def _is_single_random_read(row: "Row") -> bool:
    if row.experiment is None or row.request_size_bytes is None:
        return False
    if row.n + row.invalid_runs == 0:
        return False
    arguments = dict(row.experiment.arguments)
    asks_for_load = "load" in arguments or "latency_ms" in arguments
    return (
        (row.operation, row.spatiality) == ("read", "random")
        and row.cache.buffer == "off"
        and row.experiment.processes == 1
        and arguments.get("iodepth", "1") == "1"
        and not asks_for_load
    )


def _of_size(row: "Row") -> OfSize:
    assert row.experiment is not None and row.request_size_bytes is not None
    engine = dict(row.experiment.arguments).get("engine", "psync")
    bandwidth = row["bandwidth_bytes_per_s"]
    figures = row.drive_or_main
    without_power = OfSize(
        row.request_size_bytes,
        engine,
        row.n,
        None,
        None,
        None,
        None,
        row.why("bandwidth_bytes_per_s") or row.why("power_w"),
    )
    if bandwidth is None:
        return without_power
    without_power = replace(without_power, bandwidth_bytes_per_s=bandwidth.median)
    if figures is None:
        return without_power
    power, efficiency = figures["power_w"], figures["efficiency_bytes_per_j"]
    if power is None or efficiency is None:
        return without_power
    return OfSize(
        row.request_size_bytes,
        engine,
        row.n,
        bandwidth.median,
        power.median,
        efficiency.median,
        figures.power_domain,
        unsure=why_figures_unsure(figures),
    )


def span(values: Sequence[float | None]) -> float | None:
    """The largest over the smallest; None if one is missing."""
    known = [value for value in values if value]
    if len(known) < len(values) or len(known) < 2:
        return None
    return max(known) / min(known)


def table(name: str, sizes: Sequence[OfSize]) -> Table:
    """One row a size."""
    rows = tuple(
        (
            format_size(each.request_size_bytes),
            each.engine,
            str(each.n),
            plain(each.mib_per_s),
            plain(each.power_w),
            plain(each.mib_per_j),
        )
        for each in sizes
    )
    notes = []
    domains = dict.fromkeys(each.power_domain for each in sizes if each.power_domain is not None)
    if domains:
        notes.append(f"medians; power of the {', '.join(domains)}")
    factor = span([each.efficiency_bytes_per_j for each in sizes])
    if factor is not None:
        notes.append(f"energy per byte: a factor of {plain(factor)} between the sizes")
    notes += dict.fromkeys(each.reason for each in sizes if each.reason is not None)
    notes += dict.fromkeys(
        f"W and MiB/J: {each.unsure}" for each in sizes if each.unsure is not None
    )
    return Table(
        title=f"Random reads by request size, depth 1: {name}",
        header=("Request", "Engine", "n", "MiB/s", "Power (W)", "MiB/J"),
        rows=rows,
        numeric=frozenset((2, 3, 4, 5)),
        note="\n".join(notes),
    )


def panels(sizes: Sequence[OfSize]) -> list[Panel]:
    """Power, bandwidth and MiB/J over the size in KiB."""
    values = (
        ("MiB/s", [each.mib_per_s for each in sizes]),
        ("power (W)", [each.power_w for each in sizes]),
        ("MiB/J", [each.mib_per_j for each in sizes]),
    )
    engines = list(dict.fromkeys(each.engine for each in sizes))
    made = []
    for axis, of_axis in values:
        lines = []
        for engine in engines:
            points = []
            for each, value in zip(sizes, of_axis, strict=True):
                if each.engine == engine and value is not None:
                    points.append((each.request_size_bytes / 1024, value))
            lines.append(Line(engine, points))
        if any(line.points for line in lines):
            made.append(Panel(axis, lines))
    return made
