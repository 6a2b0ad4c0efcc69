"""Several campaigns of one machine: what changes from session to session."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cells import measured
from tests.eeio_results.made import MACHINE

from eeio.analysis.observation import Missing
from eeio.comparison.cells import BANDWIDTH, POWER, Cell
from eeio.comparison.sessions import check_one_machine, joined, session_effects
from eeio.errors import EeioError
from eeio.record.store import Campaign
from eeio.statistics.decision import Rule, change

WATTS = POWER["system"]
BETWEEN, WITHIN = 0.04, 0.01


def session(draw: random.Random, shift: float, experiments: int = 8, n: int = 5) -> list[Cell]:
    """Of experiments that scatter by WITHIN, all shifted alike."""
    return [
        Cell(
            {"operation": "read", "size": str(k), "machine": "m", "device": "d", "type": "SSD"},
            measured({WATTS: [40.0 * math.exp(shift + draw.gauss(0.0, WITHIN)) for _ in range(n)]}),
        )
        for k in range(experiments)
    ]


def test_the_spread_between_sessions_is_found_next_to_that_within() -> None:
    draw = random.Random(3)
    found = []
    for _ in range(200):
        sessions = [session(draw, draw.gauss(0.0, BETWEEN)) for _ in range(4)]
        (effect,) = session_effects(["a", "b", "c", "d"], sessions)
        found.append(effect)
        assert effect.metric == WATTS and effect.experiments == 8
    mean = math.sqrt(sum(one.between**2 for one in found) / len(found))
    assert mean == pytest.approx(BETWEEN, rel=0.15)
    assert found[0].within == pytest.approx(WITHIN, rel=0.5)


def test_sessions_that_are_alike_have_no_spread_between_them() -> None:
    draw = random.Random(4)
    effects = [
        session_effects("ab", [session(draw, 0.0), session(draw, 0.0)])[0].between
        for _ in range(100)
    ]
    assert sorted(effects)[50] < WITHIN / 2, "what the repetitions make of it is taken off"


def test_the_shift_of_a_session_is_what_its_experiments_have_in_common() -> None:
    draw = random.Random(5)
    effect = session_effects("ab", [session(draw, 0.0), session(draw, 0.2)])[0]
    assert effect.shift["b"] == pytest.approx(math.expm1(0.1), abs=0.01)
    assert effect.shift["a"] == pytest.approx(math.expm1(-0.1), abs=0.01)


def test_joined_sessions_hold_their_level_where_single_ones_do_not() -> None:
    """Two machines that are alike, each measured in sessions that differ by 4 %."""
    draw = random.Random(6)
    rule, alone, together = Rule(), 0, 0
    for _ in range(300):
        before, after = (
            [session(draw, draw.gauss(0.0, BETWEEN), experiments=1) for _ in range(3)]
            for _ in range(2)
        )
        single = change(before[0][0].values(WATTS), after[0][0].values(WATTS), rule)
        both = change(joined(before)[0].values(WATTS), joined(after)[0].values(WATTS), rule)
        alone += single.answer in ("higher", "lower")
        together += both.answer in ("higher", "lower")
    assert alone > 0.3 * 300, "one session each: its repetitions agree, and are wrong"
    assert together <= 0.05 * 300


def test_a_metric_that_a_session_lacks_is_missing_with_its_reason() -> None:
    draw = random.Random(7)
    first, second = session(draw, 0.0, 1), session(draw, 0.0, 1)
    second = [replace(second[0], figures={WATTS: Missing("the meter was lost")})]
    (cell,) = joined([first, second])
    assert cell.figures[WATTS] == Missing("the meter was lost")
    assert "the sessions lack it" in str(cell.why(BANDWIDTH))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (replace(MACHINE, hostname="other"), "the machine is board in one, other in the other"),
        (replace(MACHINE, device="sdb"), "the drive is sda in one, sdb in the other"),
        (replace(MACHINE, kernel="6.2"), "the kernel is 6.1 in one, 6.2 in the other"),
    ],
)
def test_two_machines_are_no_sessions(machine: object, message: str) -> None:
    from tests.eeio_results.made import design

    made = design("a", 0)
    first = Campaign(Path("a"), made, MACHINE, (), None, ())
    other = replace(first, machine=machine)  # type: ignore[arg-type]
    with pytest.raises(EeioError, match=message):
        check_one_machine([first, other])
