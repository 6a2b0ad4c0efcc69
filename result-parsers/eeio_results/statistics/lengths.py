"""How long a run must be: the shortest cut whose means are those of the whole run."""

import math
from collections.abc import Mapping

from eeio_results.errors import EeioError

LENGTHS_S = (10.0, 20.0, 30.0, 45.0)
"""Lengths that a pilot tries, s."""


def proven_length(
    means: Mapping[float, Mapping[str, float]], whole: Mapping[str, float], floor: float
) -> float | None:
    """The shortest length from which on each metric stays what it is of the whole run.

    `means` has by length (s) the means of the first seconds of a run by metric, `whole` those of
    the whole run; a length is proven where it and each longer one lie within the share `floor` of
    the whole for each metric. A cut that lacks a metric of the whole proves nothing. None: no
    length is proven, so the run stays whole. Raises EeioError for means that are not above 0, and
    for a floor that is no share.
    """
    if not 0.0 <= floor < 1.0:
        raise EeioError(f"floor {floor:g}: give a share from 0 to below 1, such as 0.01")
    for where, found in (
        ("the whole run", whole),
        *((f"the first {s:g} s", means[s]) for s in means),
    ):
        for metric, value in found.items():
            if not (math.isfinite(value) and value > 0.0):
                raise EeioError(
                    f"{metric} of {where} is {value:g}: no length follows from means that are not "
                    "above 0; leave the run whole"
                )
    if not whole:
        return None
    proven = None
    for length_s in sorted(means, reverse=True):
        cut = means[length_s]
        if any(
            metric not in cut or abs(cut[metric] - full) > floor * full
            for metric, full in whole.items()
        ):
            break
        proven = length_s
    return proven
