"""Which rounds of a campaign are its measurement."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eeio.analysis.characterization import characterize
from eeio.record.design import PlannedRun, SteadyProtocol
from eeio.record.steady_state import goes_on, state
from eeio.record.store import Campaign, Store, load
from eeio.report.campaign.characterized import build
from tests.eeio_results.made import EXPERIMENT, MACHINE, design, phase, run

WRITE = replace(EXPERIMENT, operation="write", flush="end")
RULE = SteadyProtocol()
FALLING = (180, 160, 140, 120, 100, 100, 100, 100, 100)
"""Steady over rounds 5 to 9: over 4 to 8 the fitted line still falls by 15 % of the mean."""


def campaign(
    folder: Path, writes: Sequence[float | None], rule: SteadyProtocol = RULE, lacking: int = 0
) -> Campaign:
    """A reading and a writing experiment, a round for each of the speeds of the writes (None: it
    failed); of the last round so many runs are `lacking`."""
    made = design("c", 1, EXPERIMENT, WRITE)
    runs = [
        PlannedRun(2 * place + number, planned, place + 1, 1)
        for place in range(len(writes))
        for number, planned in enumerate(made.experiments)
    ]
    store = Store(folder)
    protocol = replace(made.protocol, repetitions=rule.rounds, steady=rule)
    store.create(replace(made, protocol=protocol, runs=tuple(runs)))
    store.write_machine(MACHINE)
    store.write_idle((), "no meter")
    for one in runs[: len(runs) - lacking]:
        speed = writes[one.repetition - 1]
        is_write = one.experiment.experiment.operation == "write"
        moved = replace(phase(speed if is_write else 50.0), name="io", operation="write")
        body = replace(
            run(one.order_index, (moved,), one.experiment.experiment), repetition=one.repetition
        )
        if is_write and speed is None:
            body = replace(body, phases=(), validity=("it failed",))
        store.append(body)
    return load(folder)


def test_only_the_last_rounds_are_the_measurement(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", FALLING)
    assert {one.repetition for one in made.runs} == {5, 6, 7, 8, 9}
    assert {one.repetition for one in made.set_aside} == {1, 2, 3, 4}
    assert made.stored_runs == made.planned_runs == 18 and not made.shortcomings
    rows = [row for row in characterize(made) if row.operation == "write" and row.n]
    assert all(row.n == 5 for row in rows)
    found = made.steady_state
    assert found is not None and found.is_steady and (found.first, found.rounds) == (5, 9)


@pytest.mark.parametrize("rounds", [5, 6, 7, 8])
def test_before_it_is_steady_another_round_is_run(tmp_path: Path, rounds: int) -> None:
    made = campaign(tmp_path / "c", FALLING[:rounds])
    found = made.steady_state
    assert found is not None and not found.is_steady and goes_on(found, RULE)
    assert made.shortcomings == [
        f"no steady state after {rounds} rounds (1 of 1 experiments still change): the figures "
        f"are of rounds {rounds - 4} to {rounds}"
    ]
    assert build([made]).warnings == [f"c: {made.shortcomings[0]}"]


def test_one_that_never_settles_ends_and_is_reported(tmp_path: Path) -> None:
    rule = replace(RULE, most_rounds=7)
    made = campaign(tmp_path / "c", (100, 200) * 3 + (100,), rule)
    found = made.steady_state
    assert found is not None and not found.is_steady and not goes_on(found, rule)
    assert "no steady state after 7 rounds" in made.shortcomings[0]


def test_a_round_that_is_not_complete_is_none_yet(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", (*FALLING, 500), lacking=1)
    assert {one.repetition for one in made.runs} == {5, 6, 7, 8, 9}
    assert made.stored_runs == 19 and "1 of 20 runs are not done" in made.shortcomings[0]
    few = campaign(tmp_path / "d", (100,), lacking=1)
    assert len(few.runs) == 1 and not few.set_aside, "what there is, is shown"


def test_a_failure_in_the_window_is_no_steady_state(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", (100, 100, None, 100, 100))
    found = made.steady_state
    assert found is not None and not found.is_steady and goes_on(found, RULE)
    later = campaign(tmp_path / "d", (100, 100, None, 100, 100, 100, 100, 100))
    found = later.steady_state
    assert found is not None and found.is_steady and found.first == 4


def test_what_never_worked_is_not_waited_for(tmp_path: Path) -> None:
    found = campaign(tmp_path / "c", (None,) * 5).steady_state
    assert found is not None and not found.tracked and not goes_on(found, RULE)


def test_without_writes_the_reads_are_tracked() -> None:
    made = design("c", 1, EXPERIMENT)
    runs = [
        replace(run(n, (phase(100.0),), EXPERIMENT), repetition=n + 1) for n in range(RULE.rounds)
    ]
    assert state(made, RULE, runs).is_steady


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (SteadyProtocol(rounds=1), "no slope"),
        (SteadyProtocol(rounds=6, most_rounds=5), "fewer than the window"),
        (SteadyProtocol(active_share=0.0), "no area to measure"),
    ],
)
def test_a_rule_that_makes_no_sense(rule: SteadyProtocol, message: str) -> None:
    assert message in (rule.impossible() or "")
