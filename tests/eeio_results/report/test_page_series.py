"""Power and bandwidth over time, as the page's cards have them."""

import math
from pathlib import Path

import pytest

from eeio.analysis.over_time import PowerSeries
from eeio.report.page.series import bandwidth_steps, power_steps, shown_span

KEY = ("system", "meter", "measured")


def test_some_time_before_and_after_the_window_is_shown() -> None:
    assert shown_span(5.0, 65.0) == pytest.approx((-2.2, 72.2))
    assert shown_span(0.0, 0.1) == pytest.approx((-0.35, 0.45))


def test_fewer_steps_hold_the_same_energy() -> None:
    times = [0.1 * n for n in range(1001)]
    watts = [20.0 + n % 7 for n in range(1001)]
    found = power_steps([PowerSeries(KEY, times, watts)], 0.0, (10.0, 90.0), 20)
    assert found is not None
    ends, means = found
    assert len(means) <= 22 and means[0] is None
    span_s = ends["to"] - ends["from"]
    energy_j = sum(
        mean * min(ends["step"], ends["to"] - ends["from"] - n * ends["step"])
        for n, mean in enumerate(means[1:])
    )
    assert energy_j / span_s == pytest.approx(23.0, rel=0.01)


def test_what_was_not_read_is_a_gap_and_times_count_from_the_run() -> None:
    series = PowerSeries(KEY, [100.0, 101.0, 102.0, 103.5], [9.0, math.nan, 11.0, 12.0])
    assert power_steps([series], 100.0, (0.5, 3.0), 100) == [
        {"from": 0.0, "step": 1.0, "to": 3.5},
        [None, None, 11.0, 12.0],
    ]


def test_uneven_readings_keep_their_times() -> None:
    series = PowerSeries(KEY, [0.0, 1.0, 1.2, 3.5], [9.0, 10.0, 11.0, 12.0])
    assert power_steps([series], 0.0, (0.5, 3.0), 100) == [
        [0.0, 1.0, 1.2, 3.5],
        [None, 10.0, 11.0, 12.0],
    ]


def test_without_readings_in_the_span_there_is_nothing() -> None:
    assert power_steps([PowerSeries(KEY, [1.0, 2.0], [5.0, 5.0])], 100.0, (0.0, 1.0), 10) is None
    assert power_steps([], 0.0, (0.0, 1.0), 10) is None


def test_reads_and_writes_of_all_processes_are_added(tmp_path: Path) -> None:
    (tmp_path / "fio_bw.1.log").write_text("500, 1000, 0, 0, 0\n1000, 2000, 0, 0, 0\n")
    (tmp_path / "fio_bw.2.log").write_text("500, 1000, 1, 0, 0\n1000, 1000, 1, 0, 0\n")
    assert bandwidth_steps(tmp_path, 120) == [[0.0, 0.5, 1.0], [None, 2.0, 3.1]]


@pytest.mark.parametrize("log", ["", "500, 1000, 0\n", "500, x, 0\n1000, 1, 0\n", "500\n", "\xff"])
def test_a_log_that_is_damaged_or_too_short_is_not_drawn(tmp_path: Path, log: str) -> None:
    (tmp_path / "fio_bw.1.log").write_bytes(log.encode("latin-1"))
    assert bandwidth_steps(tmp_path, 120) is None
