"""The replacement rule: published figures, an independent recomputation, and every refusal."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio.errors import EeioError
from eeio.guideline.answer import Deployment, Guideline
from eeio.guideline.money import KWH_PER_W_YEAR
from eeio.guideline.replacement_rule import guideline
from eeio.guideline.servers import CellValues, Costs, Server
from eeio.guideline.workload import CellKey, Workload, WorkloadEntry, make_workload
from eeio.guideline.workload_file import load_workload
from eeio.report.document import render_json, render_markdown, render_terminal
from eeio.report.documents import guideline as report
from eeio.report.figures import guideline_map
from eeio.statistics.bootstrap import Estimate

DATA = Path(__file__).parents[2] / "data" / "statistics"

READ = CellKey("read", "sequential", 32768, "off")
RANDOM = CellKey("read", "random", 32768, "off")
WRITE = CellKey("write", "sequential", 32768, "on")


def _only(key: CellKey) -> Workload:
    return make_workload("one", [WorkloadEntry(key, 1.0)])


def _cell(
    key: CellKey, bandwidth: float, power: float, variant: str = "", n: int = 1
) -> CellValues:
    return CellValues(key, (bandwidth,) * n, (power,) * n, variant)


def _plan(found: Guideline, servers: float) -> Deployment:
    return next(p for p in found.deployments if p.servers.value == pytest.approx(servers))


def _value(figure: Estimate) -> float:
    assert figure.value is not None, figure.reason
    return figure.value


def _systems(n: int = 10, spread: float = 0.02, seed: int = 5) -> tuple[Server, Server]:
    """A fast system of about 40 W against a slow one of about 14 W, with noisy repetitions."""
    generator = np.random.default_rng(seed)

    def cell(key: CellKey, bandwidth: float, power: float) -> CellValues:
        noise = 1 + spread * generator.standard_normal((2, n))
        return CellValues(
            key, tuple((bandwidth * noise[0]).tolist()), tuple((power * noise[1]).tolist())
        )

    fast = (cell(READ, 90e6, 42.0), cell(RANDOM, 3e6, 39.0), cell(WRITE, 110e6, 41.0))
    slow = (cell(READ, 50e6, 14.0), cell(RANDOM, 2.5e6, 13.0), cell(WRITE, 40e6, 15.0))
    return Server("fast", fast), Server("slow", slow)


MIX = make_workload(
    "mix", [WorkloadEntry(READ, 0.6), WorkloadEntry(RANDOM, 0.1), WorkloadEntry(WRITE, 0.3)]
)

# Published figures


# Medians of the paper's sequential and random reads of 32 KiB (bytes/s and W).
PC_HDDS = Server("PC", (
    _cell(READ, 88406528, 45.3616, "HDD1"), _cell(READ, 41693184, 42.9660, "HDD2"),
    _cell(RANDOM, 2586624, 38.9927, "HDD1"), _cell(RANDOM, 2571264, 40.3515, "HDD2"),
))  # fmt: skip
MPSOC_HDDS = Server("MPSoC", (
    _cell(READ, 41407488, 16.5567, "HDD1"), _cell(READ, 41699840, 20.5639, "HDD2"),
    _cell(RANDOM, 2555392, 14.3755, "HDD1"), _cell(RANDOM, 2492416, 18.6764, "HDD2"),
))  # fmt: skip
MPSOC_SSDS = Server("MPSoC", (
    _cell(READ, 69184512, 12.7038, "SSD1"), _cell(READ, 61829632, 13.7771, "SSD2"),
))  # fmt: skip


def test_published_hard_disks_by_solid_state_needs_1_4_servers() -> None:
    # Section 7: "This replacement could be by 1.4 MPSoC servers".
    found = guideline(_only(READ), PC_HDDS, MPSOC_SSDS, choice="best-worst")
    assert found.ratio.value == pytest.approx(1.430, abs=5e-4)
    row = found.experiments[0]
    assert (row.traditional_variant, row.low_power_variant) == ("HDD1", "SSD2")
    assert found.saves is None  # one value each: the medians cannot tell
    assert found.ratio.interval is None and "n = 1" in (found.ratio.reason or "")


def test_published_hard_disks_on_both_sides_demand_20_percent_less() -> None:
    # Section 7: "2.2 MPSoC servers would be required, demanding 20% less power". The medians give
    # 2.135; the printed 20 % belongs to the rounded-up 2.2.
    found = guideline(_only(READ), PC_HDDS, MPSOC_HDDS, choice="best-worst", counts=(2.2,))
    assert found.ratio.value == pytest.approx(2.135, abs=5e-4)
    assert _value(_plan(found, 2.2).power_change) == pytest.approx(-0.197, abs=5e-4)
    assert _value(found.deployments[0].power_change) == pytest.approx(-0.2207, abs=5e-4)
    # "increasing the random read bandwidth in up to 120%": 2.2 times a bandwidth the paper found
    # no different; the worst MPSoC against the best PC gives 112 %.
    random = next(c for c in _plan(found, 2.2).experiments if c.label == RANDOM.label)
    assert not random.in_mix and _value(random.change) == pytest.approx(1.12, abs=0.005)


# Published (docs/studies/): two Cubietrucks against one PC, all relative to the PC. Read: bandwidth
# 240 % of the PC's, 85 % less power; write: 37 % lower bandwidth, 82 % less power.
CUBIETRUCK = Server(
    "Cubietruck",
    (_cell(READ, 2.40 / 2, 0.15 / 2), _cell(WRITE, 0.63 / 2, 0.18 / 2)),
    server_price=100.0,
    device_price=330.0,
)
BASE_PC = Server(
    "PC", (_cell(READ, 1.0, 1.0), _cell(WRITE, 1.0, 1.0)), server_price=500.0, device_price=330.0
)


def test_published_reads_of_boards() -> None:
    found = guideline(_only(READ), BASE_PC, CUBIETRUCK, counts=(2,))
    # "A single Cubietruck can achieve similar read bandwidth"
    assert found.ratio.value == pytest.approx(0.833, abs=5e-4)
    assert found.deployments[1].servers.value == 1
    # "two Cubietrucks: doubles the bandwidth, decreases the power demand by 85%"
    two = _plan(found, 2)
    assert _value(two.bandwidth_change) == pytest.approx(1.4)
    assert _value(two.power_change) == pytest.approx(-0.85)
    # "higher energy efficiency: 1437%" lies within what the rounded figures allow.
    efficiency = 1 / (1 + _value(found.energy_per_byte_change)) - 1
    assert 2.35 / 0.155 - 1 < 14.37 < 2.45 / 0.145 - 1
    assert efficiency == pytest.approx(15.0)


def test_published_writes_on_two_and_four_boards() -> None:
    found = guideline(_only(WRITE), BASE_PC, CUBIETRUCK, counts=(2, 4))
    # "two Cubietrucks: decreases bandwidth by 37%"
    assert _value(_plan(found, 2).bandwidth_change) == pytest.approx(-0.37)
    assert _value(_plan(found, 2).power_change) == pytest.approx(-0.82)
    # 3.17 boards keep the bandwidth, so four: "decreases power demand by 64%, increases bandwidth
    # by 25%" (26 % from the rounded 37 %).
    complete = found.deployments[1]
    assert (complete.kind, complete.servers.value) == ("whole", 4)
    assert _value(complete.power_change) == pytest.approx(-0.64)
    assert _value(complete.bandwidth_change) == pytest.approx(0.26)


def test_published_prices() -> None:
    # A Cubietruck costs 100 USD, a PC 500, an SSD 330; one SSD in each machine.
    costs = Costs(price_per_kwh=0.1, years=5, currency="USD")
    found = guideline(_only(WRITE), BASE_PC, CUBIETRUCK, costs, counts=(2, 4))
    two, four = _plan(found, 2).money, _plan(found, 4).money
    assert two is not None and four is not None
    assert _value(two.purchase_difference) == 2 * 430 - 830 == 30
    assert _value(four.purchase_difference) == 4 * 430 - 830 == 890
    # With a PC of both SSDs, two boards are cheaper from the first day.
    pc = replace(BASE_PC, devices=2)
    money = _plan(guideline(_only(WRITE), pc, CUBIETRUCK, costs, counts=(2,)), 2).money
    assert money is not None
    assert (money.outcome, _value(money.break_even_years)) == ("at-once", 0.0)
    assert _value(money.purchase_difference) == -300
    # A PC of 60 W saves 49.2 W with two boards: 43.1 USD a year at 0.1 per kWh, 30 USD in 8 months.
    watts = tuple(replace(cell, power_w=(60.0,)) for cell in BASE_PC.cells)
    boards = tuple(
        replace(cell, power_w=(60.0 * cell.power_w[0],)) for cell in CUBIETRUCK.cells
    )  # fmt: skip
    found = guideline(
        _only(WRITE), replace(BASE_PC, cells=watts), replace(CUBIETRUCK, cells=boards), costs,
        counts=(2,),
    )  # fmt: skip
    money = _plan(found, 2).money
    assert money is not None and money.outcome == "pays-back"
    saved = 60 * 0.82 * 24 * 365.25 / 1000 * 0.1
    assert _value(money.running_saving_per_year) == pytest.approx(saved)
    assert _value(money.break_even_years) == pytest.approx(30 / saved)


# The arithmetic, recomputed apart


def test_a_mix_moves_the_same_bytes_on_both_systems() -> None:
    fast, slow = _systems()
    found = guideline(MIX, fast, slow)
    shares = (0.6, 0.1, 0.3)

    def one(system: Server) -> tuple[float, float]:
        cells = [
            (np.median(c.bandwidth_bytes_per_s), np.median(c.power_w)) for c in system.cells
        ]  # fmt: skip
        seconds = sum(s / b for s, (b, _) in zip(shares, cells, strict=True))
        joules = sum(s / b * p for s, (b, p) in zip(shares, cells, strict=True))
        return 1 / seconds, joules / seconds

    (b_ts, p_ts), (b_lp, p_lp) = one(fast), one(slow)
    assert found.traditional.bandwidth_bytes_per_s.value == pytest.approx(b_ts, rel=1e-12)
    assert found.low_power.power_w.value == pytest.approx(p_lp, rel=1e-12)
    assert found.ratio.value == pytest.approx(b_ts / b_lp, rel=1e-12)
    assert found.energy_per_byte_change.value == pytest.approx(
        (p_lp / b_lp) / (p_ts / b_ts) - 1, rel=1e-12
    )
    fractional, complete = found.deployments
    assert fractional.power_change == found.energy_per_byte_change
    assert complete.servers.value == math.ceil(b_ts / b_lp)
    assert _value(complete.bandwidth_change) == pytest.approx(
        math.ceil(b_ts / b_lp) * b_lp / b_ts - 1, rel=1e-12
    )
    reads = next(c for c in complete.operations if c.label == "read").change
    read_ts, read_lp = (
        1 / sum(s / np.median(c.bandwidth_bytes_per_s) for s, c in
                zip((6 / 7, 1 / 7), system.cells[:2], strict=True))
        for system in (fast, slow)
    )  # fmt: skip
    assert reads.value == pytest.approx(_value(complete.servers) * read_lp / read_ts - 1, rel=1e-12)


def test_shares_of_time_become_shares_of_the_traditional_systems_bytes() -> None:
    fast, slow = _systems()
    timed = guideline(replace(MIX, share_of="time"), fast, slow)
    medians = [float(np.median(c.bandwidth_bytes_per_s)) for c in fast.cells]
    # Under shares of time the traditional bandwidth is the plain weighted mean.
    mean = sum(e.share * b for e, b in zip(MIX.entries, medians, strict=True))
    assert timed.traditional.bandwidth_bytes_per_s.value == pytest.approx(mean, rel=1e-12)
    power = sum(
        e.share * float(np.median(c.power_w)) for e, c in zip(MIX.entries, fast.cells, strict=True)
    )
    assert timed.traditional.power_w.value == pytest.approx(power, rel=1e-12)
    as_bytes = make_workload("b", [
        WorkloadEntry(e.key, e.share * b / mean) for e, b in zip(MIX.entries, medians, strict=True)
    ])  # fmt: skip
    assert timed.ratio.value == pytest.approx(guideline(as_bytes, fast, slow).ratio.value)
    assert (
        "time" in timed.combination and timed.combination != guideline(MIX, fast, slow).combination
    )


def test_money_of_a_server_that_idles() -> None:
    fast, slow = _systems()
    fast = replace(fast, idle_power_w=25.0, server_price=500.0, device_price=50.0)
    slow = replace(slow, idle_power_w=8.0, server_price=100.0, device_price=50.0, devices=2)
    costs = Costs(price_per_kwh=0.3, years=4, pue=1.5, busy_share=0.4)
    found = guideline(MIX, fast, slow, costs)
    complete = found.deployments[1]
    assert complete.money is not None
    servers = _value(complete.servers)
    busy = 0.4 * _value(found.ratio) / servers
    p_ts = 0.4 * _value(found.traditional.power_w) + 0.6 * 25
    p_lp = busy * _value(found.low_power.power_w) + (1 - busy) * 8
    kwh = (p_ts - servers * p_lp) * 1.5 * KWH_PER_W_YEAR
    bought = servers * 200 - 550
    assert _value(complete.money.energy_saving_kwh_per_year) == pytest.approx(kwh)
    assert _value(complete.money.purchase_difference) == pytest.approx(bought)
    assert _value(complete.money.saving_after_years) == pytest.approx(kwh * 0.3 * 4 - bought)
    assert _value(complete.money.break_even_server_price) == pytest.approx(
        (550 + kwh * 0.3 * 4) / servers - 100
    )
    # At its break-even price a server leaves no difference after the years.
    fair = replace(slow, server_price=_value(complete.money.break_even_server_price))
    again = guideline(MIX, fast, fair, costs).deployments[1].money
    assert again is not None and _value(again.saving_after_years) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("ts_price", "lp_price", "lp_power", "outcome"), [
    (100.0, 150.0, 10.0, "pays-back"),
    (100.0, 40.0, 10.0, "at-once"),
    (100.0, 40.0, 40.0, "until"),
    (100.0, 150.0, 40.0, "never"),
    (100.0, 50.0, 40.0, "never"),
    (100.0, 50.0, 20.0, "at-once"),
])  # fmt: skip
def test_outcomes_of_a_purchase(
    ts_price: float, lp_price: float, lp_power: float, outcome: str
) -> None:
    # Two low-power servers replace one of 40 W.
    ts = Server("ts", (_cell(READ, 2.0, 40.0, n=6),), None, ts_price, devices=0)
    lp = Server("lp", (_cell(READ, 1.0, lp_power, n=6),), None, lp_price, devices=0)
    money = guideline(_only(READ), ts, lp, Costs(0.25, 3)).deployments[1].money
    assert money is not None and money.outcome == outcome
    saved = (40 - 2 * lp_power) * KWH_PER_W_YEAR * 0.25
    if outcome in ("pays-back", "until"):
        years = (2 * lp_price - ts_price) / saved
        assert _value(money.break_even_years) == pytest.approx(years) and years > 0
        assert money.break_even_years.interval is not None
        price = _value(money.break_even_price_per_kwh)
        at = guideline(_only(READ), ts, lp, Costs(price, 3)).deployments[1].money
        assert at is not None and _value(at.saving_after_years) == pytest.approx(0, abs=1e-9)
    elif outcome == "at-once":
        assert money.break_even_years.value == 0.0
        assert "any price" in (money.break_even_price_per_kwh.reason or "")
    else:
        assert money.break_even_years.value is None
        assert "never" in (money.break_even_years.reason or "")


def test_a_break_even_that_some_resamples_never_reach_has_no_interval() -> None:
    generator = np.random.default_rng(2)
    power = tuple((20 + 2 * generator.standard_normal(10)).tolist())
    ts = Server("ts", (CellValues(READ, (2.0,) * 10, (40.4,) * 10),), None, 10.0, 0.0)
    lp = Server("lp", (CellValues(READ, (1.0,) * 10, power),), None, 10.0, 0.0)
    money = guideline(_only(READ), ts, lp, Costs(0.25, 3)).deployments[1].money
    assert money is not None and money.break_even_years.interval is None
    assert "of the resamples" in (money.break_even_years.reason or "")
    assert money.saving_after_years.interval is not None


# Intervals


def test_intervals_shrink_with_the_noise_and_hold_the_value() -> None:
    wide = guideline(MIX, *_systems(spread=0.1)).ratio
    narrow = guideline(MIX, *_systems(spread=0.01)).ratio
    assert wide.interval is not None and narrow.interval is not None
    assert narrow.interval.low < _value(narrow) < narrow.interval.high
    assert narrow.interval.high - narrow.interval.low < (wide.interval.high - wide.interval.low) / 4


def test_intervals_cover_the_truth() -> None:
    covered = 0
    for seed in range(150):
        fast, slow = _systems(n=20, spread=0.05, seed=seed)
        found = guideline(MIX, fast, slow, resamples=399).energy_per_byte_change
        truth = guideline(MIX, *_systems(n=1, spread=0.0)).energy_per_byte_change
        assert found.interval is not None
        covered += found.interval.low <= _value(truth) <= found.interval.high
    assert 0.88 <= covered / 150 <= 1.0


def test_bandwidth_and_power_of_one_run_are_drawn_together() -> None:
    # Energy per byte is the same in every repetition, so pairing leaves nearly no width.
    base = np.linspace(1, 2, 11)
    ts = Server("ts", (CellValues(READ, tuple(base.tolist()), tuple((10 * base).tolist())),))
    lp = Server("lp", (_cell(READ, 1.0, 1.0, n=11),))
    paired = guideline(_only(READ), ts, lp).energy_per_byte_change.interval
    assert paired is not None and paired.high - paired.low < 1e-12


def test_the_two_systems_are_drawn_independently() -> None:
    # Drawn alike, a system against itself would be 1 in every resample.
    fast, _ = _systems()
    same = guideline(MIX, fast, fast).ratio.interval
    assert same is not None and same.low < 0.999 < 1.001 < same.high


def test_the_answer_is_reproducible() -> None:
    fast, slow = _systems()
    assert guideline(MIX, fast, slow) == guideline(MIX, fast, slow)
    assert guideline(MIX, fast, slow) != guideline(MIX, fast, slow, seed=1)


def test_few_repetitions_have_an_interval_by_their_logarithms_and_say_so() -> None:
    found = guideline(MIX, *_systems(n=4))
    interval = found.ratio.interval
    assert interval is not None and interval.low < (found.ratio.value or 0) < interval.high
    assert "n = 4: interval by Student's t" in (found.ratio.reason or "")
    assert guideline(MIX, *_systems(n=6)).ratio.reason is None
    assert guideline(MIX, *_systems(n=5), confidence=0.9).ratio.reason is None


def test_two_repetitions_have_figures_without_intervals() -> None:
    found = guideline(MIX, *_systems(n=2))
    assert found.ratio.value is not None and found.ratio.interval is None
    assert "n = 2" in (found.ratio.reason or "") and found.saves is None
    assert "n = 2" in render_terminal(report.document(found))


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_units_do_not_matter(bandwidth_unit: float, power_unit: float) -> None:
    fast, slow = _systems()

    def scaled(system: Server) -> Server:
        return replace(system, cells=tuple(
            CellValues(
                c.key,
                tuple(bandwidth_unit * v for v in c.bandwidth_bytes_per_s),
                tuple(power_unit * v for v in c.power_w),
            )
            for c in system.cells
        ))  # fmt: skip

    plain = guideline(MIX, fast, slow, resamples=100)
    other = guideline(MIX, scaled(fast), scaled(slow), resamples=100)
    assert other.ratio.value == pytest.approx(plain.ratio.value, rel=1e-9)
    assert other.energy_per_byte_change.value == pytest.approx(
        plain.energy_per_byte_change.value, rel=1e-9
    )


def test_verdicts() -> None:
    fast, slow = _systems()
    assert guideline(MIX, fast, slow).saves is True
    assert guideline(MIX, slow, fast).saves is False
    assert guideline(MIX, fast, fast).saves is None
    assert "saves power" in report.verdict(guideline(MIX, fast, slow))
    assert "includes both" in report.verdict(guideline(MIX, fast, fast))
    # Never a tenth of a server.
    assert guideline(MIX, slow, fast).deployments[1].servers.value == 1


# Bad input


def test_a_missing_experiment_of_the_mix_leaves_no_answer_but_names_it() -> None:
    fast, slow = _systems()
    found = guideline(MIX, fast, replace(slow, cells=slow.cells[:2]), Costs(0.2, 5))
    assert found.reason is not None and WRITE.label in found.reason
    assert found.ratio.value is None and found.deployments == ()
    assert f"{WRITE.label} (in the mix): slow has no such experiment" in found.messages
    assert [row.reason is None for row in found.experiments] == [True, True, False]
    assert report.verdict(found) == found.reason
    assert "slow has no such experiment" in render_terminal(report.document(found))
    json.loads(render_json(report.document(found)))
    assert guideline_map.draw(found) is not None


def test_an_experiment_outside_the_mix_is_named_when_one_system_lacks_it() -> None:
    fast, slow = _systems()
    found = guideline(_only(READ), fast, replace(slow, cells=slow.cells[:2]))
    assert found.reason is None and found.ratio.value is not None
    assert f"{WRITE.label}: slow has no such experiment" in found.messages
    assert [c.label for c in found.deployments[0].experiments] == [READ.label, RANDOM.label]


@pytest.mark.parametrize(("bandwidth", "power", "message"), [
    ((1.0, 0.0), (1.0, 1.0), "bandwidth of repetition 2 is 0"),
    ((1.0, 1.0), (0.0, 1.0), "power of repetition 1 is 0"),
    ((1.0, 1.0), (1.0, -2.0), "power of repetition 2 is -2"),
    ((1.0, math.nan), (1.0, 1.0), "bandwidth of repetition 2 is nan"),
    ((), (), "no bandwidth value"),
])  # fmt: skip
def test_values_that_cannot_be_used_are_named(
    bandwidth: tuple[float, ...], power: tuple[float, ...], message: str
) -> None:
    bad = Server("bad", (CellValues(READ, bandwidth, power),))
    found = guideline(_only(READ), Server("good", (_cell(READ, 1.0, 1.0),)), bad)
    assert found.reason is not None
    assert found.experiments[0].reason == f"bad: {message}"


def test_repetitions_with_but_one_figure_are_counted() -> None:
    with pytest.raises(EeioError, match="2 bandwidth and 1 power values"):
        CellValues(READ, (1.0, 2.0), (1.0,))
    partly = replace(_cell(READ, 2.0, 1.0, n=8), left_out=2)
    found = guideline(_only(READ), Server("a", (partly,)), Server("b", (_cell(READ, 1.0, 1.0),)))
    (message,) = [reason for reason in found.messages if "repetitions" in reason]
    assert "2 of 10 repetitions have no bandwidth or no power; they are left out" in message


def test_variants_need_a_choice() -> None:
    found = guideline(_only(READ), PC_HDDS, MPSOC_SSDS)
    assert "several variants (HDD1, HDD2)" in (found.experiments[0].reason or "")
    single = guideline(MIX, *_systems(), choice="best-worst")
    assert any("same as medians" in message for message in single.messages)
    # A variant that cannot be used might have been the best: no answer.
    broken = replace(PC_HDDS, cells=(*PC_HDDS.cells[:1], _cell(READ, 1.0, 0.0, "HDD2")))
    found = guideline(_only(READ), broken, MPSOC_SSDS, choice="best-worst")
    assert "PC HDD2: power of repetition 1 is 0" in (found.experiments[0].reason or "")


def test_a_disk_cache_that_is_not_stated_takes_any_but_not_both() -> None:
    on = _cell(replace(READ, disk="on"), 2.0, 1.0)
    off = _cell(replace(READ, disk="off"), 1.0, 1.0)
    plain = Server("plain", (_cell(READ, 1.0, 1.0),))
    assert guideline(_only(READ), Server("a", (on,)), plain).ratio.value == 2.0
    both = guideline(_only(READ), Server("a", (on, off)), plain)
    assert both.reason is not None
    assert "state cache.disk" in (both.experiments[0].reason or "")
    stated = guideline(
        _only(replace(READ, disk="off")), Server("a", (on, off)), Server("b", (off,))
    )
    assert stated.ratio.value == 1.0


def test_unknown_prices_and_idle_power_have_reasons() -> None:
    fast, slow = _systems()
    priced = replace(slow, server_price=100.0, device_price=10.0)
    money = guideline(MIX, fast, priced, Costs(0.2, 5)).deployments[1].money
    assert money is not None and money.running_saving_per_year.value is not None
    why = money.break_even_years.reason or ""
    assert why.startswith("the price of fast is not known: the server itself and a drive in it")
    half_priced = replace(fast, server_price=3000.0)
    money = guideline(MIX, half_priced, priced, Costs(0.2, 5)).deployments[1].money
    assert money is not None
    why = money.break_even_years.reason or ""
    assert why.startswith("the price of fast is not known: a drive in it (0 if")
    half = Costs(0.2, 5, busy_share=0.5)
    money = guideline(MIX, fast, slow, half).deployments[1].money
    assert money is not None and money.running_saving_per_year.value is None
    assert "idle power of fast is not known" in (money.running_saving_per_year.reason or "")
    idle = replace(fast, idle_power_w=20.0), replace(slow, idle_power_w=5.0)
    money = guideline(MIX, *idle, Costs(0.2, 5, busy_share=1), counts=(1,)).deployments[2].money
    assert money is not None
    assert "1 servers cannot carry the load" in (money.running_saving_per_year.reason or "")


@pytest.mark.parametrize("call", [
    lambda a, b: guideline(MIX, a, b, choice="mean"),
    lambda a, b: guideline(MIX, a, b, counts=(0,)),
    lambda a, b: guideline(MIX, a, b, counts=(math.nan,)),
    lambda a, b: guideline(MIX, a, b, confidence=1.0),
    lambda a, b: guideline(MIX, a, b, resamples=5),
    lambda a, b: guideline(MIX, replace(a, cells=(*a.cells, a.cells[0])), b),
    lambda a, b: guideline(MIX, replace(a, server_price=-1.0), b),
    lambda a, b: guideline(MIX, replace(a, idle_power_w=math.nan), b),
    lambda a, b: guideline(MIX, a, b, Costs(0.0, 5)),
    lambda a, b: guideline(MIX, a, b, Costs(0.1, math.inf)),
    lambda a, b: guideline(MIX, a, b, Costs(0.1, 5, pue=0.9)),
    lambda a, b: guideline(MIX, a, b, Costs(0.1, 5, busy_share=1.1)),
    lambda a, b: make_workload("w", []),
    lambda a, b: make_workload("w", [WorkloadEntry(READ, 0.0)]),
    lambda a, b: make_workload("w", [WorkloadEntry(READ, 1.0)], "words"),
    lambda a, b: make_workload(
        "w", [WorkloadEntry(READ, 1.0), WorkloadEntry(replace(READ, disk="on"), 1.0)]
    ),
])  # fmt: skip
def test_contradictory_input_is_rejected(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EeioError):
        call(*_systems())


# Workload files


def test_a_workload_file() -> None:
    found = load_workload(DATA / "mix.yaml")
    assert (found.name, found.share_of, found.messages) == ("data server", "bytes", ())
    assert [entry.share for entry in found.entries] == [0.5, 0.25, 0.25]
    assert [entry.key for entry in found.entries] == [
        CellKey("read", "sequential", 4 << 20, "off"),
        CellKey("read", "random", 32768, "off", "on"),
        WRITE,
    ]


def test_shares_that_do_not_sum_to_one_are_normalised_and_reported(tmp_path: Path) -> None:
    text = (DATA / "mix.yaml").read_text(encoding="utf-8").replace("share: 0.5", "share: 1.5")
    (tmp_path / "w.yaml").write_text(text, encoding="utf-8")
    found = load_workload(tmp_path / "w.yaml")
    assert [entry.share for entry in found.entries] == [0.75, 0.125, 0.125]
    (message,) = found.messages
    assert "sum to 2" in message


ENTRY = "  - {operation: read, spatiality: random, request_size_bytes: 4k, cache: {buffer: off}, "


@pytest.mark.parametrize(("text", "message"), [
    ("", "empty"),
    ("[1", "not YAML"),
    ("hello", "line 1: expected keys"),
    ("workload: 5", "line 1: workload must be a list"),
    ("workload: []", "must be a list of one entry"),
    ("name: x\n", "missing key 'workload'"),
    ("name: x\nmix: []\n", "line 2: unknown key 'mix'"),
    ("workload:\n" + ENTRY + "share: 1}\nworkload: []", "line 3: key 'workload' is repeated"),
    ("name: [a]\nworkload:\n" + ENTRY + "share: 1}", "line 1: expected one value"),
    ("name: 5\nworkload:\n" + ENTRY + "share: 1}", "line 1: name must be a word"),
    ("share_of: joules\nworkload:\n" + ENTRY + "share: 1}", "share_of 'joules' is not one of"),
    ("workload:\n" + ENTRY + "shares: 1}", "line 2: unknown key 'shares'"),
    ("workload:\n" + ENTRY + "share: lots}", "line 2: share must be a number, not 'lots'"),
    ("workload:\n" + ENTRY + "share: yes}", "share must be a number"),
    ("workload:\n" + ENTRY + "share: -1}", "share -1 is not positive"),
    ("workload:\n" + ENTRY + "share: .nan}", "is not positive"),
    ("workload:\n" + ENTRY + "share: 1}\n" + ENTRY + "share: 1}", "is repeated"),
    ("workload:\n" + ENTRY.replace("read", "reed") + "share: 1}",
     "line 2: operation 'reed' is not one of read, write"),
    ("workload:\n" + ENTRY.replace("random", "randm") + "share: 1}", "spatiality 'randm'"),
    ("workload:\n" + ENTRY.replace("4k", "4 parsecs") + "share: 1}", "not a size"),
    ("workload:\n" + ENTRY.replace("4k", "0") + "share: 1}", "not a positive integer"),
    ("workload:\n" + ENTRY.replace("4k", "1.5") + "share: 1}", "not a positive integer"),
    ("workload:\n" + ENTRY.replace("off", "maybe") + "share: 1}", "cache.buffer 'maybe'"),
    ("workload:\n" + ENTRY.replace("buffer", "page") + "share: 1}", "unknown key 'page'"),
    ("workload: !!python/object:os.system {}", "workload must be a list"),
])  # fmt: skip
def test_a_wrong_workload_file_is_rejected_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EeioError) as caught:
        load_workload(path)
    assert str(path) in str(caught.value) and message in str(caught.value)


def test_a_workload_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EeioError, match="cannot be read"):
        load_workload(tmp_path / "none.yaml")
    (tmp_path / "w.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(EeioError, match=r"w\.yaml"):
        load_workload(tmp_path / "w.yaml")


# What a reader gets


def _full() -> Guideline:
    fast, slow = _systems()
    fast = replace(fast, idle_power_w=25.0, server_price=500.0, device_price=50.0)
    slow = replace(slow, idle_power_w=8.0, server_price=260.0, device_price=50.0)
    costs = Costs(0.3, 4, 1.5, 0.4, "EUR")
    return guideline(MIX, fast, slow, costs, counts=(4,))


def test_text_markdown_and_json_hold_the_same_figures() -> None:
    found = _full()
    plain = render_terminal(report.document(found))
    marked = render_markdown(report.document(found))
    body = json.loads(render_json(report.document(found)))["guideline"]
    ratio = f"{body['ratio']['value']:.4g}"
    for text in (plain, marked):
        assert ratio in text and "Replacing one fast by" in text
        assert "harmonic mean" in text and "seed 20180323" in text
        assert "nan" not in text and "inf" not in text
    assert body["ratio"]["interval"]["confidence"] == 0.95
    assert [plan["kind"] for plan in body["deployments"]] == ["fractional", "whole", "asked"]
    assert body["deployments"][0]["bandwidth_change"]["value"] == 0
    assert len(body["experiments"]) == 3


def test_markdown_contains_no_tag_and_no_heading_of_others() -> None:
    made = _full()
    name = "<script>alert(1)</script>[x](javascript:1)\n# heading"
    named = replace(made, traditional=replace(made.traditional, name=name))
    marked = render_markdown(report.document(named))
    assert "alert(1)" in marked and "Replacing one" in marked
    assert "<script" not in marked and "[x](" not in marked and "\n# heading" not in marked


def test_the_map_shows_every_experiment_and_is_the_same_each_time() -> None:
    found = _full()
    svg = guideline_map.draw(found)
    assert svg is not None and svg == guideline_map.draw(found)
    # Under the pointer each point says what it is, and how sure both ratios are.
    titles = re.findall(r'<g id="point-\w+">\s*<title>([^<]*)</title>', svg)
    assert len(titles) == len(set(titles)) > 1
    assert all("B_ts / B_lp" in title and "P_lp / P_ts" in title for title in titles)
    assert titles[-1].startswith("mix: the complete mix")
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>")
    for row in found.experiments:
        assert row.label in svg
    assert "the complete mix" in svg and "(B_ts / B_lp) x P_lp = P_ts" in svg
    assert "not in the mix" not in svg


def test_a_map_without_points_is_none() -> None:
    empty = guideline(_only(READ), Server("a", ()), Server("b", ()))
    assert guideline_map.draw(empty) is None
    assert empty.experiments[0].reason == "a has no such experiment; b has no such experiment"
    render_markdown(report.document(empty))


# Writes of the same flush


def _flushed(flush: str | None, durable: bool | None) -> Server:
    cell = replace(_cell(replace(WRITE, flush=flush), 1e8, 40.0, n=6), durable=durable)
    return Server(f"{flush}-{durable}", (cell,))


@pytest.mark.parametrize(
    ("ours", "theirs", "why"),
    [
        (("end", True), ("none", True), "flush end against flush none: only equals are compared"),
        (("end", True), ("end", False), "flush end against flush end, not durable: only equals"),
        (("end", True), (None, None), "flush end against flush unknown: only equals"),
        (("end", True), ("end", True), None),
        ((None, None), (None, None), None),
    ],
)
def test_only_writes_of_the_same_flush_stand_against_each_other(
    ours: tuple[str | None, bool | None], theirs: tuple[str | None, bool | None], why: str | None
) -> None:
    found = guideline(_only(WRITE), _flushed(*ours), _flushed(*theirs))
    if why is None:
        assert found.reason is None and _value(found.ratio) == 1.0
    else:
        assert found.reason is not None and found.experiments[0].reason is not None
        assert found.experiments[0].reason.startswith(why)


def test_a_system_with_two_flushes_requires_a_choice() -> None:
    both = Server("both", (*_flushed("end", True).cells, *_flushed("none", True).cells))
    found = guideline(_only(WRITE), both, _flushed("end", True))
    assert "both has it with flush end and flush none: state flush" in str(
        found.experiments[0].reason
    )
    stated = guideline(_only(replace(WRITE, flush="end")), both, _flushed("end", True))
    assert stated.reason is None
    assert stated.experiments[0].label == "sequential write 32 KiB, buffer on, flush end"


def test_a_workload_may_state_the_flush_of_a_write(tmp_path: Path) -> None:
    path = tmp_path / "mix.yaml"
    entry = (
        "workload:\n  - {operation: OP, spatiality: random, request_size_bytes: 32k, "
        "cache: {buffer: on}, flush: WORD, share: 1}\n"
    )
    path.write_text(entry.replace("OP", "write").replace("WORD", "end"))
    assert load_workload(path).entries[0].key.flush == "end"
    for operation, word, why in (("read", "end", "a read has none"), ("write", "off", "flush")):
        path.write_text(entry.replace("OP", operation).replace("WORD", word))
        with pytest.raises(EeioError, match=why):
            load_workload(path)
