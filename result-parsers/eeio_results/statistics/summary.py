"""Order statistics of one sample."""

from collections.abc import Sequence
from dataclasses import dataclass

from eeio_results.characterization import quartiles
from eeio_results.statistics.checks import finite


@dataclass(frozen=True)
class Summary:
    """Order statistics of one sample; quartiles by R's type 7."""

    n: int
    median: float
    q1: float
    q3: float
    minimum: float
    maximum: float

    @property
    def iqr(self) -> float:
        """Interquartile range, q3 - q1."""
        return self.q3 - self.q1


def summary(values: Sequence[float]) -> Summary | None:
    """None without values. Raises EeioError for a value that is not finite."""
    found = finite(values, "the sample")
    figures = quartiles(found)
    if figures is None:
        return None
    return Summary(
        len(found), figures.median, figures.q1, figures.q3, min(found), max(found)
    )  # fmt: skip
