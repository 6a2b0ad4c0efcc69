"""What a TB costs: by hand, against brute force, and every number that was not given."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from eeio.errors import EeioError
from eeio.guideline.answer import ANSWERS, HEADLINES, Cost
from eeio.guideline.cost import costs
from eeio.guideline.cost_inputs import CostInputs, Grid, load_inputs, read_grid
from eeio.guideline.servers import CellValues, Server
from eeio.guideline.workload import CellKey, Workload, WorkloadEntry, make_workload
from eeio.statistics.bootstrap import RESAMPLES, median_interval

READ = CellKey("read", "sequential", 4 << 20, "off")
WRITE = CellKey("write", "sequential", 4 << 20, "off", None, "end")
WATTS = (46.0, 48.0, 49.0, 50.0, 50.0, 51.0, 52.0, 54.0)
ONE = Server("one", (CellValues(READ, (200e6,) * 8, WATTS),), idle_power_w=30.0)
ALL = CostInputs(
    price_per_kwh=0.3, grid=Grid(400.0), pue=1.5, duty=0.25, purchase=1000.0, embodied_kg=300.0,
    years=5.0, capacity_bytes=4e12, currency="EUR",
)  # fmt: skip


def cost(
    system: Server, workload: Workload | None, given: CostInputs, resamples: int = RESAMPLES
) -> Cost:
    """Of one system."""
    return costs((system,), workload, (given,), resamples=resamples)[0][0]


def value(made: Cost, name: str) -> float:
    found = getattr(made, name).value
    assert found is not None, getattr(made, name).reason
    assert isinstance(found, float)
    return found


def test_by_hand() -> None:
    made = cost(ONE, None, ALL)
    # 50 W at 0.2 GB/s, and three seconds of 30 W idle for each busy one.
    joules = 250 + 3 * 30 / 0.2
    kwh = joules * 1000 / 3.6e6 * 1.5
    life_tb = 200e6 * 0.25 * 5 * 365.25 * 86400 / 1e12
    stored = 30 * 8.766 * 1.5 / 4
    by_hand = {
        "j_per_gb": joules,
        "kwh_per_tb": kwh,
        "electricity_per_tb": 0.3 * kwh,
        "purchase_per_tb": 1000 / life_tb,
        "money_per_tb": 0.3 * kwh + 1000 / life_tb,
        "g_co2e_operation_per_tb": 400 * kwh,
        "g_co2e_embodied_per_tb": 300_000 / life_tb,
        "g_co2e_per_tb": 400 * kwh + 300_000 / life_tb,
        "kwh_per_tb_year": stored,
        "money_per_tb_year": 0.3 * stored + 1000 / 5 / 4,
        "g_co2e_per_tb_year": 400 * stored + 300_000 / 5 / 4,
    }
    assert set(by_hand) == set(ANSWERS)
    for name, wanted in by_hand.items():
        assert value(made, name) == pytest.approx(wanted, rel=1e-12), name


def test_intervals_are_those_of_the_bootstrap() -> None:
    made = cost(ONE, None, replace(ALL, duty=1.0, pue=None))
    of_power = median_interval(WATTS).interval
    assert of_power is not None and made.j_per_gb.interval is not None
    assert made.j_per_gb.interval.low == pytest.approx(of_power.low * 5, rel=0.01)
    assert made.j_per_gb.interval.high == pytest.approx(of_power.high * 5, rel=0.01)
    # One idle baseline has no spread that anybody saw.
    assert made.kwh_per_tb_year.interval is None
    assert "one idle baseline" in (made.kwh_per_tb_year.reason or "")


def test_what_is_not_given_is_missing_with_its_reason() -> None:
    made = cost(replace(ONE, idle_power_w=None), None, CostInputs())
    assert value(made, "j_per_gb") == 250
    for name in ANSWERS:
        if name not in ("j_per_gb", "kwh_per_tb"):
            figure = getattr(made, name)
            assert figure.value is None and "not given" in figure.reason, name
    lacking = cost(replace(ONE, idle_power_w=None), None, ALL)
    assert lacking.j_per_gb.value is None and "idle" in (lacking.j_per_gb.reason or "")
    # A purchase that cannot be spread leaves no sum in its place.
    unspread = cost(ONE, None, replace(ALL, duty=None))
    assert unspread.money_per_tb.value is None and "--duty-cycle" in (
        unspread.money_per_tb.reason or ""
    )
    assert value(unspread, "electricity_per_tb") > 0


def test_a_workload_weighs_by_bytes() -> None:
    system = replace(ONE, cells=(*ONE.cells, CellValues(WRITE, (100e6,) * 8, (60.0,) * 8)))
    mix = make_workload("mix", [WorkloadEntry(READ, 0.75), WorkloadEntry(WRITE, 0.25)])
    assert value(cost(system, mix, CostInputs()), "j_per_gb") == pytest.approx(
        0.75 * 250 + 0.25 * 600
    )
    alike = cost(system, None, CostInputs())
    assert value(alike, "j_per_gb") == pytest.approx((250 + 600) / 2)
    assert "no --workload" in alike.messages[0]
    by_time = replace(mix, share_of="time")
    bytes_read, bytes_written = 0.75 * 200, 0.25 * 100
    wanted = (bytes_read * 250 + bytes_written * 600) / (bytes_read + bytes_written)
    assert value(cost(system, by_time, CostInputs()), "j_per_gb") == pytest.approx(wanted)
    lacking = cost(ONE, mix, ALL)
    assert lacking.j_per_gb.value is None and "no such experiment" in (
        lacking.j_per_gb.reason or ""
    )
    assert lacking.sensitivities == ()


@drawn(
    st.floats(1e6, 1e10), st.floats(1, 1e3), st.floats(0.1, 500), st.floats(0.01, 0.9),
    st.floats(1, 3), st.floats(0.01, 2), st.floats(1, 1e3), st.floats(1, 1e5), st.floats(1, 20),
)  # fmt: skip
def test_sensitivities_are_the_formulas_own(
    bandwidth: float, power: float, idle: float, duty: float, pue: float, price: float,
    grid: float, purchase: float, years: float,
) -> None:  # fmt: skip
    system = Server("one", (CellValues(READ, (bandwidth,), (power,)),), idle)
    inputs = CostInputs(price, Grid(grid), pue, duty, purchase, purchase / 3, years, 4e12)
    made = cost(system, None, inputs, resamples=100)
    larger = {
        "price_per_kwh": replace(inputs, price_per_kwh=1.1 * price),
        "pue": replace(inputs, pue=1.1 * pue),
        "duty": replace(inputs, duty=1.1 * duty),
        "purchase": replace(inputs, purchase=1.1 * purchase),
        "years": replace(inputs, years=1.1 * years),
        "grid_g_per_kwh": replace(inputs, grid=Grid(1.1 * grid)),
    }
    for answer in HEADLINES:
        changes = [abs(one.change or 0) for one in made.sensitivities if one.answer == answer]
        assert changes == sorted(changes, reverse=True) and changes
    costs_then = {
        name: cost(system, None, then, resamples=100)
        for name, then in larger.items()
        if name in {one.input for one in made.sensitivities}
    }
    for one in made.sensitivities:
        if one.input in larger:
            after = value(costs_then[one.input], one.answer)
            assert one.change == pytest.approx(after / value(made, one.answer) - 1, abs=1e-9)
            assert math.isfinite(one.change or 0)


def test_a_duty_that_cannot_grow_has_a_reason() -> None:
    made = cost(ONE, None, replace(ALL, duty=0.95))
    (reported,) = {(one.change, one.reason) for one in made.sensitivities if one.input == "duty"}
    assert reported == (None, "a duty of 0.95 cannot be 10 % larger")


def test_hours_of_a_grid(tmp_path: Path) -> None:
    file = tmp_path / "hours.csv"
    hours = [f"2025-03-01T{hour:02}:00Z,{100 + hour}" for hour in range(24)]
    file.write_text("hour_utc,g_per_kwh\n" + "\n".join(hours) + "\n")
    assert read_grid(file) == Grid(float(np.mean([100 + h for h in range(24)])), 24, 100, 123)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,1", "2025-01-01T02:00Z,1"], "line 3: .*gap"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,1", "2025-01-01T00:00Z,1"], "line 3: .*gap"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,1", "2025-01-01T01:00Z,"], "line 3: no value"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,-1"], "line 2: .*-1.0 is not"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,nan"], "line 2: .*nan is not"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00,1"], "line 2: .*of which zone"),
        (["hour_utc,g_per_kwh", "monday,1"], "line 2: 'monday' is not an hour"),
        (["hour_utc,g_per_kwh", "2025-01-01T00:00Z,1", ""], "line 3: 0 cells"),
        (["hour_utc,g_per_kwh"], "no hours"),
        (["time,value"], "line 1: expected the header"),
        ([], "line 1: expected the header"),
    ],
)
def test_hours_that_tell_no_mean(tmp_path: Path, lines: list[str], why: str) -> None:
    file = tmp_path / "hours.csv"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(EeioError, match=why):
        read_grid(file)


def test_inputs_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text("hour_utc,g_per_kwh\n2025-01-01T00:00Z,400\n")
    file = tmp_path / "inputs.yaml"
    file.write_text(
        "price_per_kwh: 0.3\ngrid_g_per_kwh: hours.csv\npue: 1.5\nduty: 0.25\npurchase: 1000\n"
        "embodied_kg: 300\nyears: 5\ncapacity_bytes: 4e12\ncurrency: EUR\n"
    )
    assert load_inputs(file) == replace(ALL, grid=Grid(400.0, 1, 400.0, 400.0))
    over = CostInputs(pue=1.1).over(load_inputs(file))
    assert (over.pue, over.years, over.currency) == (1.1, 5, "EUR")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected keys"),
        ("- 1", "expected keys"),
        ("prize_per_kwh: 1", "unknown key 'prize_per_kwh'"),
        ("pue: 0.9", "pue: 0.9 is not a number from 1"),
        ("years: 0", "years: 0; leave it out"),
        ("duty: 30 %", "duty: '30 %' is not a number"),
        ("price_per_kwh: true", "True is not a number"),
        ("price_per_kwh: [1]", "is not a number"),
        ("grid_g_per_kwh: none.csv", "none.csv: cannot be read"),
        ("currency: 3", "must be a word"),
        ("years: {", "not YAML"),
    ],
)
def test_inputs_that_are_none(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "inputs.yaml"
    file.write_text(text)
    with pytest.raises(EeioError, match=why):
        load_inputs(file)
