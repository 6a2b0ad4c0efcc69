"""The values of the paper's figures 2, 3, 7 and 8, next to cells of the same workload."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from eeio.record.run import Experiment
from eeio.studies import PaperFigure
from eeio.studies.chang2014.cells import BASELINE, VariantCell
from eeio.units.sizes import parse_size

PAPER = "Chang et al. 2014"
APART = (
    "Paper: a Xeon E3-1270 with a hard disk of 7200 rpm, means of more than 50 repetitions, and "
    "a delayed commit instead of our delayed fsync (16 ms for IOzone, 1 ms for file creation). "
    "The flush time of the disk decides the outcome: docs/studies/chang2014.md."
)
_KIB = 1024


@dataclass(frozen=True)
class _Printed:
    """`delayjc`: the ratio to EXT4 at the same frequency, the largest over the frequencies; else
    EXT4's speedup, the highest frequency over the lowest. `file_bytes` None: file creation."""

    source: str
    delayjc: bool
    ranks: int
    file_bytes: int | None
    record_bytes: int | None
    value: float
    ghz: str


_PRINTED = (
    _Printed("figure 2", False, 256, 128 * _KIB, 32 * _KIB, 0.53, "3.3 over 1.6 GHz"),
    _Printed("figure 3", False, 4, None, None, 0.80, "3.1 over 1.6 GHz"),
    _Printed("figure 7a", True, 256, 128 * _KIB, 32 * _KIB, 3.65, "3.3 GHz"),
    _Printed("figure 7b", True, 256, 256 * _KIB, 64 * _KIB, 2.04, "2.6 GHz"),
    _Printed("figure 7c", True, 256, 512 * _KIB, 128 * _KIB, 3.47, "3.3 GHz"),
    _Printed("figure 8a", True, 4, None, None, 2.57, "3.1 GHz"),
    _Printed("figure 8b", True, 16, None, None, 1.82, "2.0 GHz"),
    _Printed("figure 8c", True, 32, None, None, 1.49, "2.9 GHz"),
)


def compared(cells: Sequence[VariantCell]) -> tuple[PaperFigure, ...]:
    """Every figure of the paper for each campaign; the workload must be the paper's."""
    campaigns = dict.fromkeys(cell.campaign for cell in cells)
    return tuple(
        _figure(name, printed, [cell for cell in cells if cell.campaign == name])
        for name in campaigns
        for printed in _PRINTED
    )


def _figure(campaign: str, figure: _Printed, cells: Sequence[VariantCell]) -> PaperFigure:
    same = [cell for cell in cells if _same(figure, cell)]
    variant = BASELINE
    if figure.delayjc:
        variant = "delayjc"
    wanted = [cell for cell in same if cell.variant == variant]
    ours, remark = None, _why(figure, same, wanted)
    best = _best_over_ext4(wanted) if figure.delayjc else _fastest(wanted)
    if best is not None:
        ours, cell = best
        at = "frequency as found, "
        if cell.frequency_hz:
            at = f"{cell.frequency_hz / 1e9:g} GHz, "
        remark = f"{at}n {cell.n}"
    compared = "speedup of EXT4"
    if figure.delayjc:
        compared = "delayJC over EXT4"
    return PaperFigure(
        campaign=campaign,
        topic="the journal",
        what=f"{compared}: {_workload(figure)}",
        unit="x",
        printed=figure.value,
        source=figure.source,
        of=figure.ghz,
        ours=ours,
        remark=remark,
    )


def _best_over_ext4(cells: Sequence[VariantCell]) -> tuple[float, VariantCell] | None:
    """The highest ratio to EXT4."""
    known = []
    for cell in cells:
        if (ratio := cell.ratio_to_ext4) is not None:
            known.append((ratio, cell))
    return max(known, key=itemgetter(0), default=None)


def _fastest(cells: Sequence[VariantCell]) -> tuple[float, VariantCell] | None:
    """The speedup at the highest frequency. With only one frequency it is that over itself."""
    if len({cell.frequency_hz for cell in cells}) <= 1:
        return None
    known = []
    for cell in cells:
        if (speedup := cell.speedup) is not None:
            known.append((speedup, cell))
    return max(known, key=lambda pair: pair[1].frequency_hz or 0, default=None)


def _workload(figure: _Printed) -> str:
    if figure.file_bytes is None or figure.record_bytes is None:
        return f"{figure.ranks} ranks create files"
    return (
        f"{figure.ranks} threads write {figure.file_bytes // _KIB} KiB "
        f"in {figure.record_bytes // _KIB} KiB"
    )


def _same(one: _Printed, cell: VariantCell) -> bool:
    experiment = cell.experiment
    if experiment.processes != one.ranks:
        return False
    if one.file_bytes is None:
        return cell.phase == "create"
    # The paper's equation (3) excludes the flush from a thread's time.
    return (
        cell.phase == "write"
        and experiment.flush == "none"
        and experiment.request_size_bytes == one.record_bytes
        and _each_file_bytes(experiment) == one.file_bytes
    )


def _each_file_bytes(experiment: Experiment) -> int | None:
    """Of a thread: the factor is the sum over all of them."""
    size = dict(experiment.arguments).get("file_size")
    if size is None:
        return None
    return parse_size(size) // experiment.processes


def _why(one: _Printed, same: Sequence[VariantCell], wanted: Sequence[VariantCell]) -> str:
    if not same:
        return "the campaign has no such workload"
    if not wanted:
        return "the campaign has no such variant"
    if not one.delayjc and len({cell.frequency_hz for cell in wanted}) < 2:
        return "the campaign has only one frequency"
    return "no valid repetition of both"
