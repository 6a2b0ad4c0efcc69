"""What drifts within a campaign, and how an adaptive one was repeated."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats
from tests.eeio_results.made import MACHINE, WRITE, design, energy, run, written

from eeio_results.campaign import AdaptiveProtocol
from eeio_results.comparison.drift import trends
from eeio_results.report.methods import paragraphs
from eeio_results.report.model import build
from eeio_results.report.rounds import rounds_table
from eeio_results.store import Campaign

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
        made,
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


def test_the_report_says_how_often_experiments_were_repeated() -> None:
    table = rounds_table([_campaign()])
    assert table is not None
    assert table.rows[0][:6] == ("c", "16", "1", "0", "0", "1")
    assert "power +0.99 % an hour" in table.rows[0][6] and "±3 % (95 %)" in table.note
    fixed = _campaign()
    fixed = replace(fixed, design=replace(fixed.design, protocol=replace(
        fixed.design.protocol, adaptive=None)))  # fmt: skip
    assert rounds_table([fixed]) is None


def test_the_methods_of_an_adaptive_campaign_tell_its_rounds() -> None:
    text = " ".join(paragraphs(build([_campaign()])))
    assert "in rounds, each in a random order of its own" in text and "one random order" not in text
    assert "not known to 3 %" in text and "power was within 2 % of idle" in text
