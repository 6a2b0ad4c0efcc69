"""Variances of many experiments with few repetitions each, moderated by what they have in common.

Smyth 2004, "Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments", Stat. Appl. Genet. Mol. Biol. 3(1), section 6.2: the variances of the
experiments are those of a scaled inverse chi-square distribution. Its degrees of freedom say how
much each is shrunk towards the common one: completely if they scatter as samples of one variance.
"""

import math
import statistics
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import polygamma, psi

_LEAST_EXCESS = 1e-6
"""A smaller variance between the experiments has no degrees of freedom that can be computed."""


def moderated(variances: Sequence[float], degrees: Sequence[int]) -> list[float]:
    """Each of the `variances`, with its `degrees` of freedom, shrunk towards the common one. A
    variance of 0 stays as it is and tells nothing about the others."""
    positive = []
    for s, d in zip(variances, degrees, strict=True):
        if s > 0:
            positive.append((s, d))
    if len(positive) < 2:
        return list(variances)
    logs = [math.log(s) - float(psi(d / 2)) + math.log(d / 2) for s, d in positive]
    expected = statistics.fmean(float(polygamma(1, d / 2)) for _, d in positive)
    excess = statistics.variance(logs) - expected
    if excess <= _LEAST_EXCESS:
        common = sum(s * d for s, d in positive) / sum(d for _, d in positive)
        return [common if s > 0 else s for s in variances]
    prior = 2.0 * _trigamma_inverse(excess)
    common = math.exp(statistics.fmean(logs) + float(psi(prior / 2)) - math.log(prior / 2))
    return [
        (prior * common + d * s) / (prior + d) if s > 0 else s
        for s, d in zip(variances, degrees, strict=True)
    ]


def _trigamma_inverse(value: float) -> float:
    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-6, 2.0 / _LEAST_EXCESS))
