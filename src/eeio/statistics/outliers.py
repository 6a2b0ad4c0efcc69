"""Values that differ from the others of their kind.

The scale is Q_n: P. J. Rousseeuw and C. Croux, Alternatives to the Median Absolute Deviation,
Journal of the American Statistical Association 88 (1993), 1273-1283. Scipy does not have it.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

LEAST_VALUES = 5
"""Fewer values have no scale that one outlier cannot distort."""

_CONSISTENT = 2.2219
"""Q_n's factor for normal values."""
_EFFICIENCY = 0.82
"""Of Q_n, relative to the standard deviation of normal values."""
_SMALL = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}


def robust_scale(values: Sequence[float]) -> float:
    """Q_n: the standard deviation of the values that are no outliers. Raises ValueError for fewer
    than two values."""
    n = len(values)
    if n < 2:
        raise ValueError(f"{n} values have no scale")
    array = np.asarray(values, dtype=float)
    distances = np.abs(array[:, None] - array[None, :])[np.triu_indices(n, 1)]
    half = n // 2 + 1
    place = half * (half - 1) // 2 - 1
    factor = _SMALL.get(n) or (n / (n + 1.4) if n % 2 else n / (n + 3.8))
    return _CONSISTENT * factor * float(np.partition(distances, place)[place])


def outlier_p_values(values: Sequence[float]) -> list[float] | None:
    """The two-sided p-value of each value: that one of the same normal distribution lies as far
    from the median. None for fewer than LEAST_VALUES values, and for values without a scale: at
    least half of them are equal."""
    if len(values) < LEAST_VALUES:
        return None
    scale = robust_scale(values)
    if scale == 0.0:
        return None
    far = np.abs(np.asarray(values, dtype=float) - np.median(values)) / scale
    freedom = _EFFICIENCY * (len(values) - 1)
    return list(map(float, 2.0 * special.stdtr(freedom, -far)))
