"""Which experiments nothing beats in two figures at once, by hand and against brute force."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.cells import measured

from eeio.comparison.cells import BANDWIDTH, EFFICIENCY, J_PER_GB, P99, S_PER_GB, UNCERTAINTY, Cell
from eeio.comparison.pareto import Choice, choices
from eeio.report.documents.pareto import pareto_table, to_json


def cell(
    size: str, mb_per_s: float, mb_per_j: float | None, p99_s: float | None = None, **levels: str
) -> Cell:
    factors = {
        "operation": "read", "spatiality": "random", "size": size, "buffer": "off",
        "durable": "as found", **levels,
    }  # fmt: skip
    values = {BANDWIDTH: (mb_per_s * 1e6,), S_PER_GB: (1e3 / mb_per_s,)}
    if mb_per_j is not None:
        values |= {EFFICIENCY: (mb_per_j * 1e6,), J_PER_GB: (1e3 / mb_per_j,)}
    if p99_s is not None:
        values[P99] = (p99_s,)
    return Cell(factors, measured(values))


def of(found: tuple[Choice, ...], size: str) -> Choice:
    return next(one for one in found if f", {size}," in one.label)


def test_by_hand() -> None:
    found = choices([
        cell("4 KiB", 50, 2, 0.001), cell("1 MiB", 400, 10, 0.004), cell("4 MiB", 500, 9, 0.020),
        cell("32 KiB", 150, 5, 0.005), cell("8 MiB", 900, None), cell("2 MiB", 450, 9.5),
    ])  # fmt: skip
    fronts = {
        size: (of(found, size).on_bandwidth_front, of(found, size).on_p99_front)
        for size in ("4 KiB", "32 KiB", "1 MiB", "2 MiB", "4 MiB", "8 MiB")
    }
    assert fronts == {
        "4 KiB": (False, True), "32 KiB": (False, False), "1 MiB": (True, True),
        "2 MiB": (True, None), "4 MiB": (True, False), "8 MiB": (None, None),
    }  # fmt: skip
    assert of(found, "2 MiB").reason == "its tool reports no p99 latency"
    assert of(found, "8 MiB").reason == "not measured"
    # 100 J/GB and 2.5 s/GB
    assert of(found, "1 MiB").energy_delay_j_s_per_gb2 == 250
    assert [row[4] for row in to_table(found)] == ["4", "-", "20", "1"]
    assert json.dumps(to_json(found))


def to_table(found: tuple[Choice, ...]) -> tuple[tuple[str, ...], ...]:
    table = pareto_table(found)
    assert table is not None
    return table.rows


def test_what_may_not_be_ranked_beats_nothing() -> None:
    good = cell("1 MiB", 100, 5, 0.002, operation="write", durable="yes")
    fast = cell("4 MiB", 900, 50, 0.001, operation="write", durable="no")
    doubtful = replace(cell("2 MiB", 900, 50, 0.001, operation="write"), doubts=("two meters",))
    vague = cell("8 MiB", 900, 50, 0.001, operation="write")
    vague = replace(vague, figures={**vague.figures, **measured({UNCERTAINTY: (0.3,)})})
    found = choices([good, fast, doubtful, vague])
    assert of(found, "1 MiB").on_bandwidth_front is True
    assert [of(found, size).reason for size in ("4 MiB", "2 MiB", "8 MiB")] == [
        "not durable", "doubtful: two meters", "the energy is known only to ±30 %",
    ]  # fmt: skip
    assert pareto_table(found) is None, "one alone is no choice"


def test_demo_power_is_on_no_front() -> None:
    pair = [cell("4 KiB", 50, 2, 0.001), cell("1 MiB", 400, 10, 0.004)]
    found = choices(replace(one, efficiency_of=("system (demo)",)) for one in pair)
    assert all(one.reason == "demo power is not ranked" for one in found)
    assert pareto_table(found) is None


def test_a_read_is_no_choice_in_place_of_a_write() -> None:
    found = choices([cell("1 MiB", 100, 5), cell("1 MiB", 50, 2, operation="write")])
    assert all(one.on_bandwidth_front for one in found)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_fronts_are_those_of_brute_force(points: list[tuple[int, int]]) -> None:
    found = choices([cell(f"{n} KiB", rate, joule) for n, (rate, joule) in enumerate(points)])
    for n, (rate, joule) in enumerate(points):
        beaten = any(r >= rate and j >= joule and (r > rate or j > joule) for r, j in points)
        assert of(found, f"{n} KiB").on_bandwidth_front is not beaten
