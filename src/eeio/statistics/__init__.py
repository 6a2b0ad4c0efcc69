"""Statistics for few repetitions: medians with intervals, normality, rank tests.

Everything is a pure function over sequences of floats and gives a frozen result. A figure that
cannot be computed is None with its `reason`; a value that is not finite is an error. `too_small`
warns wherever no data of this size could reach significance. Method and sources:
docs/explanation/statistics.md.

This module has no imports: `stopping` runs on the measured machine, which has no numpy.
"""
