"""The published figures, each with a campaign's."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from eeio.studies import PaperFigure, Unit
from eeio.studies.powersensor3 import published
from eeio.studies.powersensor3.by_size import OfSize, span
from eeio.studies.powersensor3.over_time import OverTime
from eeio.units.sizes import format_size

_READS = "drawing of the random reads"
_WRITES = "drawing of the random writes"
_TOPICS: Mapping[Unit, str] = {
    "W": "power",
    "MiB/s": "bandwidth",
    "MiB/J": "energy efficiency",
    "x": "energy per byte",
    "s": "time until the change",
}


def figures(name: str, sizes: Sequence[OfSize], runs: Sequence[OverTime]) -> list[PaperFigure]:
    """Those of the campaign of that name. With several engines, of the one with the options of the
    paper, or else of the one with the most sizes."""
    of_engine = _chosen_engine(sizes)
    return [
        *_spans(name, of_engine),
        *_sizes(name, of_engine),
        *_over_time(name, runs),
    ]


def _chosen_engine(sizes: Sequence[OfSize]) -> list[OfSize]:
    engines = {each.engine for each in sizes}
    if not engines:
        return []
    chosen = "io_uring_combined"
    if chosen not in engines:
        count_of = {engine: sum(each.engine == engine for each in sizes) for engine in engines}
        chosen = max(sorted(engines), key=count_of.__getitem__)
    return [each for each in sizes if each.engine == chosen]


def _figure(
    name: str,
    source: str,
    what: str,
    unit: Unit,
    printed: float,
    ours: float | None,
    remark: str,
) -> PaperFigure:
    return PaperFigure(
        campaign=name,
        topic=_TOPICS[unit],
        what=what,
        unit=unit,
        printed=printed,
        source=source,
        of=published.DRIVE,
        ours=ours,
        remark=remark,
    )


def _spans(name: str, sizes: Sequence[OfSize]) -> Iterator[PaperFigure]:
    """The ends of power and bandwidth, and the factor of energy per byte."""
    powers = [each.power_w for each in sizes if each.power_w is not None]
    rates = [each.mib_per_s for each in sizes if each.mib_per_s is not None]
    spans: tuple[tuple[str, Unit, float, float | None], ...] = (
        ("reads: lowest power", "W", published.LOWEST_W, min(powers, default=None)),
        ("reads: highest power", "W", published.HIGHEST_W, max(powers, default=None)),
        ("reads: lowest bandwidth", "MiB/s", published.LOWEST_MIB_PER_S, min(rates, default=None)),
        (
            "reads: highest bandwidth",
            "MiB/s",
            published.HIGHEST_MIB_PER_S,
            max(rates, default=None),
        ),
        (
            "reads: factor between the sizes",
            "x",
            published.FACTOR_BY_SIZE,
            span([each.efficiency_bytes_per_j for each in sizes]),
        ),
    )
    for what, unit, printed, ours in spans:
        remark = _why_missing(sizes)
        if ours is not None:
            remark = f"of {len(sizes)} sizes; power of the {sizes[0].power_domain}"
        yield _figure(name, _READS, what, unit, printed, ours, remark)


def _why_missing(sizes: Sequence[OfSize]) -> str:
    for each in sizes:
        if each.reason is not None:
            return each.reason
    return "the campaign has no random reads at depth 1 of four or more sizes"


def _sizes(name: str, sizes: Sequence[OfSize]) -> Iterator[PaperFigure]:
    by_kib = {each.request_size_bytes // 1024: each for each in sizes}
    for kib, printed in published.READS_BY_KIB.items():
        label = format_size(kib * 1024)
        of_size = by_kib.get(kib)
        if of_size is None:
            values: tuple[float | None, float | None, float | None] = (None, None, None)
            remark = "the campaign has no reads of this size"
        else:
            values = (of_size.power_w, of_size.mib_per_s, of_size.mib_per_j)
            remark = of_size.reason or f"n = {of_size.n}"
        of_paper = (printed.power_w, printed.mib_per_s, printed.mib_per_j)
        units: tuple[Unit, ...] = ("W", "MiB/s", "MiB/J")
        for unit, of_printed, ours in zip(units, of_paper, values, strict=True):
            yield _figure(name, _READS, f"reads of {label}", unit, of_printed, ours, remark)


def _over_time(name: str, runs: Sequence[OverTime]) -> Iterator[PaperFigure]:
    changes = [run.change for run in runs if run.change is not None]
    remark = f"{len(changes)} of {len(runs)} runs"
    if not runs:
        remark = "the campaign has no random writes after a fill"
    elif not changes:
        remark = "; ".join(dict.fromkeys(run.reason for run in runs if run.reason is not None))
    figures_of: tuple[tuple[str, Unit, float, list[float]], ...] = (
        ("writes: before the change", "W", published.BEFORE_W, [c.before_w for c in changes]),
        ("writes: after the change", "W", published.AFTER_W, [c.after_w for c in changes]),
        (
            "writes: after the change over before it",
            "x",
            published.FACTOR_OVER_TIME,
            [c.factor for c in changes],
        ),
        ("writes: time until the change", "s", published.CHANGE_S, [c.at_s for c in changes]),
    )
    for what, unit, printed, values in figures_of:
        ours = None
        if values:
            ours = statistics.median(values)
        yield _figure(name, _WRITES, what, unit, printed, ours, remark)
