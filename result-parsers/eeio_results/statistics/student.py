"""Replicates of a geometric mean of few values, where no bootstrap has an interval."""

import math
from collections.abc import Sequence

import numpy as np

from eeio_results.statistics.bootstrap import Floats

FEWEST_FOR_T = 3
"""Of two values an interval spans twelve times their spread."""


def student_replicates(values: Sequence[float], resamples: int, seed: int, stream: int) -> Floats:
    """Draws whose percentiles are Student's interval of the mean logarithm, as values.

    The mean logarithm plus t(n-1) s / sqrt(n), where t is made of one normal number for each value
    and a chi-square: of two samples of the same size and stream, as bandwidth and power of the same
    runs, the draws are correlated as the samples are. Ratios and mixes of such draws have the
    fiducial interval of Behrens and Fisher (Fisher 1935, The fiducial argument in statistical
    inference, Annals of Eugenics 6), which is a little too wide rather than too narrow. `values`
    above 0.
    """
    n = len(values)
    logs = np.log(np.asarray(values, dtype=np.float64))
    generator = np.random.default_rng((seed, n, stream, 1))
    normal = generator.standard_normal((resamples, n))
    scale = np.sqrt((n - 1) / generator.chisquare(n - 1, resamples)) / math.sqrt(n * (n - 1))
    middle = logs.mean()
    replicates: Floats = np.exp(middle + scale * (normal @ (logs - middle)))
    return replicates
