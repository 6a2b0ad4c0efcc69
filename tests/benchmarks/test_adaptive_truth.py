"""The simulation that adaptive campaigns are judged by, small."""

import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.adaptive_truth import (
    figures,
    made_rows,
    misses,
    paper_protocol,
    rule_of,
    simulate,
    table,
)
from benchmarks.truth.generators import KINDS, Generator, all_generators, made_world
from benchmarks.truth.protocols import pilot
from benchmarks.truth.published import published_world
from benchmarks.truth.world import WITHIN_SHARE, within_runs
from tests.processes import ran
from tests.published import PUBLISHED, needs_published

PAPER = paper_protocol()
RULE = rule_of(PAPER)
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "adaptive_truth.py"
CONTRACT = {
    "time_share", "time_share_without_pilot", "wrong", "wrong_fixed", "open", "open_fixed",
    "wrong_sign_above_d", "coverage_servers",
}  # fmt: skip


def simulated(generator: Generator, campaigns: int = 2) -> dict[str, float]:
    return figures(simulate(partial(made_world, generator), PAPER, campaigns, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_without_chance_nothing_is_wrong_or_open(kind: str) -> None:
    """All experiments stop after four rounds of the shortest runs."""
    found = simulated(Generator(kind, drift=0.0, bias=0.0, noise=0.0))  # type: ignore[arg-type]
    assert found["wrong"] == found["open"] == found["wrong_fixed"] == found["open_fixed"] == 0
    assert found["coverage_servers"] == 1 and found["runs"] == 4 * 12
    # Eight of ten seconds and four of sixty, four times, against twelve of sixty ten times.
    runs_s, pauses_s = 4 * (8 * 10 + 4 * 60), 4 * 12 * 3.65
    share = (runs_s + pauses_s) / (120 * 80)
    assert found["time_share_without_pilot"] == pytest.approx(share, rel=0.05)
    assert found["time_share"] > found["time_share_without_pilot"]


def test_drift_alone_makes_nothing_wrong() -> None:
    found = simulated(Generator("log-normal", drift=0.10, bias=0.0, noise=0.0))
    assert found["wrong"] == 0 and found["open"] == 0 and found["coverage_servers"] == 1


def test_a_pilot_sees_the_bias_of_cut_runs() -> None:
    """Without chance it cuts no run to a length whose bandwidth is off by more than the floor."""
    rng = np.random.default_rng(3)
    lengths = []
    for _ in range(5):
        for site in made_world(Generator("log-normal", 0.0, 0.03, noise=0.0), rng):
            draws = site.draw(rng, 1)
            proven = pilot(site, draws, 0, RULE.floor, site.settled_s)
            for place, experiment in enumerate(site.experiments):
                length = proven.lengths.get(experiment.id)
                if length is not None:
                    off = draws.cut[place, 0, (10.0, 20.0, 30.0, 45.0).index(length), 0]
                    assert abs(math.expm1(off)) <= RULE.floor + 1e-12
            lengths += list(proven.lengths.values())
    assert {10.0, 20.0, 30.0} <= set(lengths), "some need longer runs"


def test_the_chance_within_a_run_shrinks_with_its_length() -> None:
    rng = np.random.default_rng(4)
    off = within_runs(rng, np.array([0.1, 0.1]), [60.0, 25.0], 20000)
    for number, seconds in enumerate((10.0, 20.0, 30.0, 45.0)):
        expected = 0.1 * math.sqrt(WITHIN_SHARE * (60 / seconds - 1))
        assert off[0, :, number].std() == pytest.approx(expected, rel=0.05)
    assert off[1, :, 1].std() > 0 and not off[1, :, 2:].any(), "not longer than the whole"


def test_drift_that_is_left_in_costs_answers() -> None:
    world = partial(made_world, Generator("log-normal", drift=0.10, bias=0.0))
    taken_out = simulate(world, PAPER, 6, 1).adaptive
    left_in = simulate(world, PAPER, 6, 1, drift="left in").adaptive
    assert taken_out.open < left_in.open


def test_every_generator_has_a_row_with_the_keys_of_the_contract() -> None:
    assert len(all_generators()) == 27
    generators = [one for one in all_generators() if one.drift == 0.03 and one.bias == 0.03]
    rows = made_rows(generators, PAPER, 1, 1)
    assert [row["kind"] for row in rows] == list(KINDS)
    assert all(set(row) >= CONTRACT | {"name", "drift", "bias", "misses"} for row in rows)
    assert all(0 <= row[key] <= 1 for row in rows for key in CONTRACT)
    assert "two modes, drift 3 %, bias 3 %" in table(rows)


def test_a_limit_that_is_missed_is_named() -> None:
    good = {
        "time_share": 0.25, "time_share_without_pilot": 0.22, "wrong": 0.003, "wrong_fixed": 0.001,
        "wrong_sign_above_d": 0.0, "coverage_servers": 0.90,
    }  # fmt: skip
    assert misses(good, is_made=False) == []
    bad = {
        "time_share": 0.26, "time_share_without_pilot": 0.23, "wrong": 0.0045, "wrong_fixed": 0.001,
        "wrong_sign_above_d": 0.0001, "coverage_servers": 0.89,
    }  # fmt: skip
    assert len(misses(bad, is_made=False)) == 5
    assert len(misses(bad, is_made=True)) == 3, "a made world's time is its own"


def test_the_same_seed_gives_the_same_figures() -> None:
    one, two = (simulated(Generator("heavy tails", 0.03, 0.01), 1) for _ in range(2))
    assert one == two


@needs_published
def test_the_published_world_is_that_of_the_paper() -> None:
    sites = published_world(PUBLISHED)
    assert [site.name for site in sites][::4] == ["PC HDD1", "CUBIE HDD1"]
    assert all(len(site.experiments) == 12 for site in sites)
    hours = sum(10 * (e.complete_s + 20) for site in sites for e in site.experiments) / 3600
    assert hours == pytest.approx(21.24, abs=0.005)
    settled = sites[0].settled_s
    assert len(settled) == 62 and min(settled) >= RULE.settle_least_s and max(settled) < 6
    power = {site.name: site.drift(3.0)[1] - site.drift(0.2)[1] for site in sites}
    assert max(power, key=lambda name: abs(power[name])).startswith("CUBIE")
    assert not any(site.drift(hour)[0] for site in sites for hour in (0.0, 1.0, 2.0))


@pytest.mark.slow
@needs_published
def test_the_published_data_as_a_command() -> None:
    done = ran(
        [sys.executable, str(SCRIPT), "--data", str(PUBLISHED), "--json", "--campaigns", "3"]
    )
    body = json.loads(done.stdout)
    assert set(body) >= CONTRACT | {"misses", "generators"} and len(body["generators"]) == 27
    assert body["time_share_without_pilot"] < body["time_share"] < 0.3
    assert body["wrong"] < 0.02 and body["coverage_servers"] > 0.8


def test_data_that_is_not_there_is_rejected(tmp_path: Path) -> None:
    done = ran([sys.executable, str(SCRIPT), "--data", str(tmp_path), "--json"], code=2)
    assert "give the folder of the published data" in done.stderr
