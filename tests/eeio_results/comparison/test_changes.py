"""What changed from one campaign to another, and the line that says whether it helped."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.cells import measured

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, POWER, UNCERTAINTY, Cell
from eeio.comparison.changes import Changes, changes
from eeio.report.documents import changes as report
from eeio.statistics.decision import Rule

SYSTEM = POWER["system"]


def cell(
    place: str,
    size: str,
    mb_per_s: Sequence[float],
    watts: float | None = 100.0,
    known: float = 0.01,
) -> Cell:
    """An experiment whose energy is that of a machine with constant power."""
    factors = {
        "machine": place, "device": place, "type": "SSD", "level": "filesystem", "tool": "fio",
        "target": "file", "operation": "read", "spatiality": "sequential", "size": size,
        "buffer": "off", "flush": "as found", "phase": "read", "arguments": "",
    }  # fmt: skip
    values = {BANDWIDTH: tuple(1e6 * x for x in mb_per_s)}
    if watts is not None:
        values |= {
            J_PER_GB: tuple(1e3 * watts / x for x in mb_per_s),
            EFFICIENCY: tuple(1e6 * x / watts for x in mb_per_s),
            SYSTEM: tuple(watts * (1 + 1e-4 * k) for k in range(len(mb_per_s))),
            UNCERTAINTY: tuple(known for _ in mb_per_s),
        }
    return Cell(factors, measured(values), efficiency_of=("system",))


def around(middle: float, share: float = 0.005, n: int = 6) -> list[float]:
    return [middle * (1 + share * (k - (n - 1) / 2)) for k in range(n)]


def found(before: Sequence[Cell], after: Sequence[Cell], rule: Rule | None = None) -> Changes:
    return changes(("old", before), ("new", after), rule or Rule())


def test_each_experiment_has_its_verdict_and_one_line_answers() -> None:
    sizes = {"4 KiB": 1.2, "32 KiB": 0.9, "1 MiB": 1.0}
    before = [cell("a", size, around(100)) for size in sizes]
    after = [cell("b", size, around(100 * factor)) for size, factor in sizes.items()]
    made = found(before, after)
    verdicts = [e.metrics[J_PER_GB].verdict for e in made.experiments]
    assert verdicts == ["better", "worse", "none above"]
    assert [e.metrics[BANDWIDTH].verdict for e in made.experiments] == verdicts
    assert [e.metrics[SYSTEM].verdict for e in made.experiments] == ["none above"] * 3
    assert report.answer(made) == (
        "new against old: mixed: J/GB is better by more than 1 % in 1, by up to 16.67 % and worse "
        "in 1, by up to 11.11 % of 3 experiments; 1 without a difference above 5 %; on average "
        "-2.53 %."
    )
    (headline, others) = report.tables(made)
    assert [row[-1] for row in headline.rows] == ["worse", "better", "no difference above 5 %"]
    assert others.header == ("Experiment", "MB/s", "MB/J", "system W")


@pytest.mark.parametrize(
    ("factor", "scatter", "message"),
    [
        (1.2, 0.005, "J/GB is better by more than 1 % in 1 of 1 experiments, by up to 16.67 %"),
        (0.8, 0.005, "J/GB is worse by more than 1 % in 1 of 1 experiments, by up to 25 %"),
        (1.0, 0.005, "no difference: J/GB differs by no more than 5 % in any of 1 experiments"),
        (1.05, 0.2, "not decided: J/GB is open in 1 of 1 experiments"),
    ],
)
def test_the_answer(factor: float, scatter: float, message: str) -> None:
    made = found(
        [cell("a", "4 KiB", around(100, scatter))],
        [cell("b", "4 KiB", around(100 * factor, scatter))],
    )
    assert report.answer(made).startswith(f"new against old: {message}")


def test_an_open_question_reports_what_it_would_take() -> None:
    made = found([cell("a", "4 KiB", around(100, 0.02))], [cell("b", "4 KiB", around(104, 0.02))])
    ((*_, verdict),) = report.tables(made)[0].rows
    needed = made.experiments[0].metrics[J_PER_GB].change.needed
    assert (
        needed is not None
        and verdict == f"open: about {needed} repetitions decide half of such cases"
    )


def test_without_energy_bandwidth_answers() -> None:
    made = found([cell("a", "4 KiB", around(100), None)], [cell("b", "4 KiB", around(120), None)])
    assert made.headline == BANDWIDTH
    assert "MB/s is better by more than 1 % in 1 of 1" in report.answer(made)
    assert made.experiments[0].metrics[J_PER_GB].verdict == "not compared"


def test_what_is_not_comparable_has_no_verdict() -> None:
    rough = found([cell("a", "4 KiB", around(100), known=0.3)], [cell("b", "4 KiB", around(120))])
    assert rough.experiments[0].metrics[J_PER_GB].reason == "the energy is known only to ±30 %"
    assert "not decided: the energy is known only to ±30 %" in report.answer(rough)
    assert rough.experiments[0].metrics[BANDWIDTH].verdict == "better", "no meter is in it"
    apart = found([cell("a", "4 KiB", around(100))], [cell("b", "1 MiB", around(200))])
    assert apart.experiments == () and len(apart.only_before) == len(apart.only_after) == 1
    assert "not decided: they have no experiment in common" in report.answer(apart)


def test_a_doubtful_energy_has_no_verdict_however_large_the_change() -> None:
    """Its clock was 20 s ahead: better by 34 %, while it was worse by 22 %."""
    before = cell("a", "4 KiB", around(100))
    after = replace(cell("b", "4 KiB", around(200)), doubts=("the clock is ahead by 20 s",))
    for made in (found([before], [after]), found([after], [before])):
        metrics = made.experiments[0].metrics
        for metric in (J_PER_GB, EFFICIENCY, SYSTEM):
            assert metrics[metric].verdict == "not compared"
            assert metrics[metric].reason == "doubtful: the clock is ahead by 20 s"
        assert metrics[BANDWIDTH].verdict in ("better", "worse"), "no meter is in it"
        assert made.mean_ratio(J_PER_GB) is None


def test_a_change_beyond_what_the_meters_may_be_wrong_has_a_verdict() -> None:
    """-64 % of J/GB by a meter that is known to 12 % is no question of the meter."""
    before = [cell("a", "4 KiB", around(100), known=0.12)]
    halved = found(before, [cell("b", "4 KiB", around(280), known=0.12)])
    assert halved.experiments[0].metrics[J_PER_GB].verdict == "better"
    small = found(before, [cell("b", "4 KiB", around(115), known=0.12)])
    assert small.experiments[0].metrics[J_PER_GB].verdict == "not compared"
    broken = found(
        [cell("a", "4 KiB", around(100), known=1.0)], [cell("b", "4 KiB", around(900), known=1.0)]
    )
    assert broken.experiments[0].metrics[J_PER_GB].verdict == "not compared"


def test_before_after_and_change_are_of_one_statistic() -> None:
    before = [cell("a", "4 KiB", [100, 101, 160])]
    after = [cell("b", "4 KiB", [50, 50.5, 51])]
    made = found(before, after)
    figures = report.to_json(made)["experiments"][0]["metrics"][BANDWIDTH]
    assert figures["before"] == pytest.approx(1e6 * (100 * 101 * 160) ** (1 / 3))
    ratio = figures["after"] / figures["before"]
    assert 100 * (ratio - 1) == pytest.approx(figures["change_percent"])
    (line,) = [row for row in report.records(made) if row["metric"] == BANDWIDTH]
    assert (line["before_mean"], line["after_mean"]) == (figures["before"], figures["after"])


def test_many_questions_are_adjusted() -> None:
    """One of twenty with p 0.03 is no finding."""
    middle = [100.0] * 19 + [112.0]
    scatter = [0.02] * 19 + [0.037]
    sizes = [f"{k} KiB" for k in range(1, 21)]
    before = [cell("a", s, around(100, w)) for s, w in zip(sizes, scatter, strict=True)]
    after = [cell("b", s, around(m, w)) for s, m, w in zip(sizes, middle, scatter, strict=True)]
    alone = changes(("old", before[19:]), ("new", after[19:]), Rule())
    assert alone.experiments[0].metrics[BANDWIDTH].verdict == "better"
    together = found(before, after)
    last = together.experiments[19].metrics[BANDWIDTH]
    assert last.verdict == "open"
    assert last.change.interval is not None and last.change.interval[0] > 1.01
    text = report.verdict(last, together)
    assert text.startswith("open: the interval is of this row alone, over all rows p = 0.")
