"""What a campaign asks of its own experiments."""

from dataclasses import replace

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, Cell, Measured
from eeio.comparison.questions import against_itself, counted, questions, repetitions_requested
from eeio.statistics.decision import Rule

RULE = Rule()


def cell(id: str, size: str, *values: float, levelled: tuple[float, ...] = ()) -> Cell:
    factors = {"operation": "read", "spatiality": "sequential", "size": size, "buffer": "off"}
    return Cell(factors, {BANDWIDTH: Measured(values, levelled=levelled)}, experiment_id=id)


SMALL = cell("a", "4 KiB", 100.0, 101.0, 99.0, 100.0)


def test_what_differs_in_one_factor_is_compared_in_each_figure_that_both_have() -> None:
    other = replace(SMALL, factors={**SMALL.factors, "size": "1 MiB", "buffer": "on"})
    large = cell("b", "1 MiB", 150.0, 151.0, 149.0, 150.0)
    found = questions([SMALL, large, other], RULE)
    assert [(q.factor, q.metric) for q in found] == [("buffer", BANDWIDTH), ("size", BANDWIDTH)]
    size = found[1]
    assert size.change.answer == "higher" and size.before.experiment_id == "a"
    assert size.label == "sequential read, buffer off: size 4 KiB against 1 MiB"
    assert counted(found)[BANDWIDTH]["higher"] == 1 and EFFICIENCY not in counted(found)


def test_values_without_the_effect_of_their_round_are_requested() -> None:
    drifting = cell("b", "1 MiB", 150.0, 180.0, 140.0, 130.0, levelled=(100.0, 101.0, 99.0, 100.0))
    assert questions([SMALL, drifting], RULE)[0].change.answer == "none above"


def test_open_questions_ask_for_repetitions_of_both() -> None:
    rough = cell("b", "1 MiB", 95.0, 112.0, 106.0, 99.0)
    found = questions([SMALL, rough], RULE)
    needed = found[0].change.needed
    assert found[0].is_open and needed is not None and needed > 4
    assert repetitions_requested(found, 1000) == {"a": needed, "b": needed}
    assert repetitions_requested(found, needed - 1) == {}, "more than may be"


def test_an_experiment_without_a_pair_is_compared_with_itself() -> None:
    """As a gate compares it, before a change and after it."""
    (found,) = against_itself(SMALL, RULE)
    assert (found.metric, found.change.answer) == (BANDWIDTH, "none above")
    assert found.label == "sequential read, 4 KiB, buffer off: against itself later"
    (once,) = against_itself(cell("c", "4 KiB", 100.0), RULE)
    assert once.change.interval is None, "one value has no spread"
