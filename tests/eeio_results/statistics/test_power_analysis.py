"""Repetitions for a difference: against campaigns that are drawn."""

import math
import random

import pytest

from eeio.comparison.detection import POWER, deviation_factor, repetitions_to_detect
from eeio.errors import EeioError
from eeio.statistics.decision import Rule, change

RULE = Rule()


@pytest.mark.parametrize(("share", "deviation"), [(0.05, 0.03), (0.05, 0.015), (0.2, 0.1)])
def test_so_many_repetitions_see_it_in_as_many_campaigns(share: float, deviation: float) -> None:
    n = repetitions_to_detect(share, (deviation**2, deviation**2), RULE)
    assert n is not None
    draw = random.Random(1)

    def campaign() -> bool:
        before = [math.exp(draw.gauss(0.0, deviation)) for _ in range(n)]
        after = [math.exp(draw.gauss(math.log1p(share), deviation)) for _ in range(n)]
        # Direction alone: a difference at the edge of the indifference is none that matters.
        p = change(before, after, RULE).p_direction
        return p is not None and p < RULE.alpha

    observed = sum(campaign() for _ in range(1000)) / 1000
    assert POWER - 0.05 < observed < POWER + 0.15, "whole numbers of repetitions see a little more"


def test_no_spread_takes_two_and_too_much_never_ends() -> None:
    assert repetitions_to_detect(0.05, (0.0, 0.0), RULE) == 2
    assert repetitions_to_detect(0.05, (4.0, 4.0), RULE) is None


def test_what_is_below_the_floor_is_never_reported() -> None:
    with pytest.raises(EeioError, match=r"is below the minimum effect of 0\.01"):
        repetitions_to_detect(0.01, (0.0, 0.0), RULE)


def test_few_sessions_tell_little_of_what_changes_between_them() -> None:
    assert deviation_factor(2) == pytest.approx(31.91, abs=0.01)
    assert deviation_factor(3) == pytest.approx(6.285, abs=0.001)
    assert deviation_factor(1000) == pytest.approx(1.0, abs=0.05)
