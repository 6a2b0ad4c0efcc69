"""Cells of comparisons that a test makes."""

from collections.abc import Mapping, Sequence

from eeio.comparison.cells import Measured


def measured(
    values: Mapping[str, Sequence[float]], runs: Sequence[int] = ()
) -> dict[str, Measured]:
    """Metric -> its values, in these runs or in the first ones."""
    return {
        metric: Measured(tuple(of_metric), tuple(runs or range(len(of_metric))))
        for metric, of_metric in values.items()
    }
