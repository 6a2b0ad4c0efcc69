"""Whether the repetitions of experiments are normally distributed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from eeio.comparison.cells import TESTED, Cell
from eeio.comparison.differences import ALPHA
from eeio.statistics.normality import Normality
from eeio.statistics.normality import normality as normality_of


@dataclass(frozen=True)
class NormalityCount:
    """In how many experiments a test rejects that the repetitions are normally distributed."""

    metric: str
    experiments: int
    kolmogorov_smirnov: int
    lilliefors: int
    shapiro_wilk: int


def normality_counts(cells: Sequence[Cell], alpha: float = ALPHA) -> list[NormalityCount]:
    """For each measured metric. Kolmogorov-Smirnov with fitted mean and deviation is far too
    lenient, and only for comparison with older papers; the other two decide."""
    counts = []
    for metric in TESTED:
        tested = []
        for cell in cells:
            if cell.n(metric):
                tested.append(normality_of(cell.values(metric)))
        if tested:
            rejected = (
                sum((p := getattr(one, field.name).p) is not None and p < alpha for one in tested)
                for field in fields(Normality)
            )
            counts.append(NormalityCount(metric, len(tested), *rejected))
    return counts
