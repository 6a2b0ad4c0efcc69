"""What drifts within a campaign, and how an adaptive one was repeated."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats
from tests.cells import measured
from tests.eeio_results.made import MACHINE, WRITE, design, energy, in_turn, run, written

from eeio.comparison.campaigns import named_cells
from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, Cell
from eeio.comparison.differences import differences, values_to_test
from eeio.comparison.drift import compared_cells, rounds_of, trends, without_drift
from eeio.record.design import AdaptiveProtocol
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build
from eeio.report.campaign.methods import paragraphs
from eeio.report.campaign.rounds import rounds_table

OTHER = replace(WRITE, request_size_bytes=1 << 20)


def _campaign() -> Campaign:
    """Half an hour a run; the power of the first rises by 1 % an hour, and a little besides."""
    runs = []
    for n in range(8):
        for experiment in (WRITE, OTHER):
            noise = 1 + 0.0005 * (-1) ** n
            watts = 50.0 * math.exp(0.005 * n) * noise if experiment is WRITE else 40.0
            one = run(len(runs), (written(watts),), experiment)
            runs.append(replace(one, started_monotonic_s=1800.0 * n))
    made = design("c", len(runs), WRITE, OTHER)
    made = replace(
        in_turn(made),
        protocol=replace(made.protocol, repetitions=4, adaptive=AdaptiveProtocol()),
        anchors=(WRITE.id,),
        stopped={WRITE.id: "precise enough after 8: power_system_w to ±1.2 %"},
    )
    return Campaign(Path("c"), made, MACHINE, (energy(30.0),), None, tuple(runs))


def test_the_trend_of_an_anchor_is_the_line_through_its_logarithms() -> None:
    (found,) = trends(_campaign())
    hours = [0.5 * n for n in range(8)]
    logs = [math.log(50.0 * math.exp(0.005 * n) * (1 + 0.0005 * (-1) ** n)) for n in range(8)]
    line = stats.linregress(hours, logs)
    half = stats.t.ppf(0.975, 6) * line.stderr
    assert found.per_hour == pytest.approx(line.slope, rel=1e-6)
    assert found.interval == pytest.approx((line.slope - half, line.slope + half), rel=1e-6)
    assert (found.metric, found.n, found.hours) == ("power_system_w", 8, 3.5)
    assert found.interval[0] < 0.01 < found.interval[1]


def test_the_report_states_how_often_experiments_were_repeated() -> None:
    table = rounds_table([_campaign()])
    assert table is not None
    assert table.rows[0][:6] == ("c", "16", "1", "0", "0", "1")
    assert "power +0.99 % an hour" in table.rows[0][6] and "±5 % (95 %)" in table.note
    fixed = _campaign()
    fixed = replace(fixed, design=replace(fixed.design, protocol=replace(
        fixed.design.protocol, adaptive=None)))  # fmt: skip
    assert rounds_table([fixed]) is None


def test_the_methods_of_an_adaptive_campaign_tell_its_rounds() -> None:
    text = " ".join(paragraphs(build([_campaign()])))
    assert "in rounds, each in a separate random order" in text and "one random order" not in text
    assert "not known to 5 %" in text and "power was within 2 % of idle" in text


# --- the effects of rounds -----------------------------------------------------------------------


def _is_levelled(cell: Cell) -> bool:
    return any(measured.levelled for measured in cell.measured.values())


def _cell(name: str, watts: Sequence[float], orders: Sequence[int], **more: str) -> Cell:
    """At 100 MB/s."""
    bandwidth = tuple(100e6 + order for order in orders)
    return Cell(
        factors={"machine": "board", "device": "HDD1", "phase": "read", **more},
        figures=measured({
            BANDWIDTH: bandwidth,
            POWER["system"]: watts,
            EFFICIENCY: [b / w for b, w in zip(bandwidth, watts, strict=True)],
            J_PER_GB: [1e9 * w / b for b, w in zip(bandwidth, watts, strict=True)],
        }, orders),
        efficiency_of=("system without drives",),
        experiment_id=name,
    )  # fmt: skip


# Four rounds of three experiments, then two more of two; power rises by 2 % a round.
ROUND_OF = {order: 1 + order // 3 for order in range(12)} | {12: 5, 13: 5, 14: 6, 15: 6}
RISE = {number: math.exp(0.02 * number) for number in range(1, 7)}


def _warming() -> list[Cell]:
    def of(orders: Sequence[int], watts: float) -> tuple[list[float], Sequence[int]]:
        return [watts * RISE[ROUND_OF[order]] for order in orders], orders

    return [
        _cell("a", *of([0, 3, 6, 9], 20.0), buffer="off"),
        _cell("b", *of([1, 4, 7, 10, 12, 14], 20.2), buffer="on"),
        _cell("c", *of([2, 5, 8, 11, 13, 15], 30.0), buffer="on"),
    ]


def test_the_round_of_a_run_follows_from_the_order() -> None:
    made = design("c", 7, WRITE, OTHER)
    first, second = made.experiments
    ran = [first, second, second, first, second, second, first]
    runs = tuple(replace(r, experiment=p) for r, p in zip(made.runs, ran, strict=True))
    made = replace(made, runs=runs)
    assert rounds_of(made) == {}, "a fixed campaign is one random order"
    made = replace(made, protocol=replace(made.protocol, adaptive=AdaptiveProtocol()))
    assert rounds_of(made) == {0: 1, 1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 4}


def test_the_drift_of_rounds_is_taken_out_of_powers_and_what_rests_on_them() -> None:
    before = _warming()
    after = without_drift(before, ROUND_OF)
    for old, new in zip(before, after, strict=True):
        assert all(new.values(m) == old.values(m) for m in old.figures), (
            "tables keep what was measured"
        )
        assert new.tested(BANDWIDTH) == old.values(BANDWIDTH)
        watts = new.tested(POWER["system"])
        assert max(watts) / min(watts) == pytest.approx(1.0, abs=1e-9)
        pairs = zip(new.values(BANDWIDTH), watts, strict=True)
        assert new.tested(EFFICIENCY) == pytest.approx([b / w for b, w in pairs])
        pairs = zip(new.values(BANDWIDTH), watts, strict=True)
        assert new.tested(J_PER_GB) == pytest.approx([1e9 * w / b for b, w in pairs])


def test_an_experiment_that_went_on_is_not_higher_for_it() -> None:
    """By raw values the one with six runs lies 2 % above the other, and 1 % in truth."""
    a, b, _ = _warming()
    (raw,) = differences([(b, a)], POWER["system"])
    a, b, _ = without_drift(_warming(), ROUND_OF)
    (levelled,) = differences([(b, a)], POWER["system"])
    assert raw.percent == pytest.approx(3.0, abs=0.2)
    assert levelled.percent == pytest.approx(1.0, abs=0.01)
    assert levelled.ratio.value == pytest.approx(1.01, abs=1e-4)


def test_across_campaigns_values_stay_raw() -> None:
    a, b, _ = without_drift(_warming(), ROUND_OF)
    other = replace(b, factors={**b.factors, "machine": "PC"})
    assert values_to_test(other, a, POWER["system"])[0] == b.values(POWER["system"])
    assert values_to_test(b, a, POWER["system"])[0] == b.tested(POWER["system"])


def test_one_cell_alone_shows_no_drift() -> None:
    (cell,) = without_drift(_warming()[:1], ROUND_OF)
    assert not _is_levelled(cell)


def test_a_comparison_takes_the_drift_out_of_adaptive_campaigns_alone() -> None:
    campaign = _campaign()
    assert all(_is_levelled(cell) for cells in named_cells([campaign]) for cell in cells)
    fixed = replace(campaign.design.protocol, adaptive=None)
    campaign = replace(campaign, design=replace(campaign.design, protocol=fixed))
    assert not any(_is_levelled(cell) for cell in compared_cells(campaign))


def test_the_report_states_that_drift_was_taken_out_and_how_large_it_was() -> None:
    table = rounds_table([_campaign()])
    assert table is not None
    message = "Tests between its experiments are without the effects of its rounds on power"
    assert message in table.note and "system +0.85 % in round 8" in table.note
    text = " ".join(paragraphs(build([_campaign()])))
    assert "without the effects of its rounds" in text
