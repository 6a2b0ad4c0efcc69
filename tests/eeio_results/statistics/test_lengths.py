"""The length of a run that a pilot proves."""

import math

import pytest

from eeio.errors import EeioError
from eeio.statistics.stopping import LENGTHS_S, proven_length

COMPLETE = {"bandwidth": 200.0, "power": 40.0}


def means(**by_metric: tuple[float, ...]) -> dict[float, dict[str, float]]:
    """Shares of the whole run's means at 10, 20, 30 and 45 s."""
    return {
        length: {m: COMPLETE[m] * shares[place] for m, shares in by_metric.items()}
        for place, length in enumerate(LENGTHS_S)
    }


def test_the_shortest_length_is_proven_where_all_means_are_alike() -> None:
    assert proven_length(means(bandwidth=(1, 1, 1, 1), power=(1, 1, 1, 1)), COMPLETE, 0.01) == 10


def test_every_metric_must_be_within_the_floor() -> None:
    found = means(bandwidth=(1, 1, 1, 1), power=(1.05, 1.02, 1.005, 1))
    assert proven_length(found, COMPLETE, 0.01) == 30


def test_a_length_that_a_longer_one_contradicts_is_not_proven() -> None:
    """10 s are right by chance: at 30 s the run is off again."""
    found = means(bandwidth=(1, 1, 0.97, 1), power=(1, 1, 1, 1))
    assert proven_length(found, COMPLETE, 0.01) == 45


@pytest.mark.parametrize("last", [0.98, 1.02])
def test_a_run_whose_longest_cut_is_off_stays_complete(last: float) -> None:
    found = means(bandwidth=(1, 1, 1, last), power=(1, 1, 1, 1))
    assert proven_length(found, COMPLETE, 0.01) is None


def test_a_cut_at_the_floor_is_within_it() -> None:
    assert proven_length({10.0: {"power": 50.5}}, {"power": 50.0}, 0.01) == 10


def test_a_cut_without_a_metric_of_the_complete_run_proves_nothing() -> None:
    assert proven_length(means(bandwidth=(1, 1, 1, 1)), COMPLETE, 0.01) is None
    assert proven_length({}, COMPLETE, 0.01) is None
    assert proven_length({10.0: {}}, {}, 0.01) is None


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_means_that_are_not_above_0_are_rejected(value: float) -> None:
    with pytest.raises(EeioError, match=r"power of the first 20 s is .*use the full run length"):
        proven_length({20.0: {"power": value}}, {"power": 1.0}, 0.01)
    with pytest.raises(EeioError, match="power of the complete run"):
        proven_length({20.0: {"power": 1.0}}, {"power": value}, 0.01)


@pytest.mark.parametrize("floor", [-0.01, 1.0, math.nan])
def test_a_floor_that_is_no_share_is_rejected(floor: float) -> None:
    with pytest.raises(EeioError, match="give a share"):
        proven_length({10.0: COMPLETE}, COMPLETE, floor)
