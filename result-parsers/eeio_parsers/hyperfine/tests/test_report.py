"""Imported outputs of hyperfine."""

from pathlib import Path

import pytest
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results

OUTPUTS = Path(__file__).parents[1] / "outputs"


def test_hyperfine_on_a_terminal(tmp_path: Path) -> None:
    text = (
        "$ hyperfine 'cp a b' true\nBenchmark 1: cp a b\n"
        "  Time (mean ± σ):     543.0 ms ±  20.3 ms    [User: 616.2 ms, System: 58.8 ms]\n"
        "  Range (min … max):   521.0 ms … 577.9 ms    10 runs\n\n"
        "Benchmark 2: true\n"
        "  Time (mean ± σ):   902.1 µs ± 8.0 µs    [User: 0.4 ms, System: 0.3 ms]\n"
        "  Range (min … max):   800.0 µs …  1.2 ms    99 runs\n"
    )
    phases = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert [(p.name, p.runtime_s) for p in phases] == [
        ("cp a b", pytest.approx(0.543)), ("true", pytest.approx(902.1e-6)),
    ]  # fmt: skip
    assert phases[0].metrics == {
        "time_mean_s": pytest.approx(0.543), "time_stddev_s": pytest.approx(0.0203),
        "time_user_s": pytest.approx(0.6162), "time_system_s": pytest.approx(0.0588),
        "time_min_s": pytest.approx(0.521), "time_max_s": pytest.approx(0.5779),
    }  # fmt: skip


def test_several_exports_of_one_run_of_hyperfine(tmp_path: Path) -> None:
    for suffix in ("md", "csv"):
        (tmp_path / f"a.{suffix}").write_bytes((OUTPUTS / f"hyperfine.{suffix}").read_bytes())
        (tmp_path / f"other-{suffix}.{suffix}").write_bytes(
            (OUTPUTS / f"hyperfine.{suffix}").read_bytes() + b"\n"
        )
    found = {one.path.name: one.rejected for one in results.found([tmp_path])}
    assert found == {
        "a.csv": None, "a.md": "repeats the results of a.csv", "other-csv.csv": None,
        "other-md.md": None,
    }  # fmt: skip


def test_tables_that_hyperfine_exports(tmp_path: Path) -> None:
    piped = "sh -c 'sleep 0.02 | cat'"
    complete = (OUTPUTS / "hyperfine.csv").read_text()
    table = (OUTPUTS / "hyperfine.md").read_text()
    for text in (complete, f"# Notes\n\n{table}\nDone.\n"):
        (report,) = read_one(tmp_path, text).reports
        names = [phase.name for phase in report.phases]
        assert names == ["sleep 0.01", piped]
        # The CSV has all digits, the table one decimal of a millisecond.
        times = report.phases[1].metrics
        assert report.phases[1].runtime_s == pytest.approx(0.023554432, abs=5e-5)
        assert times["time_stddev_s"] == pytest.approx(0.0012152, abs=5e-5)
        assert times["time_max_s"] == pytest.approx(0.024825842, abs=5e-5)
    table = (
        "| Command | threads | Mean [s] | Min [s] | Max [s] | Relative |\n"
        "|:---|---:|---:|---:|---:|---:|\n| `x` | 4 | 1.102 ± 0.001 | 1.101 | 1.103 | 1.00 |\n"
        "| `x` | 8 | 0.9 | 0.9 | 0.9 | 1.22 |\n"
    )
    (report,) = read_one(tmp_path, table).reports
    assert [(p.options, p.runtime_s) for p in report.phases] == [
        ({"threads": "4"}, 1.102), ({"threads": "8"}, 0.9)]  # fmt: skip
    assert "time_stddev_s" not in report.phases[1].metrics
    assert "cut off" in why_rejected(tmp_path, complete[:-40])


def test_tables_of_hyperfine_that_a_formatter_aligned(tmp_path: Path) -> None:
    table = (
        "| Command          | _N_  |      Mean [ms] | Min [ms] | Max [ms] |    Relative |\n"
        "| :--------------- | ---- | -------------: | -------: | -------: | ----------: |\n"
        "| `a \\| b`         | 1    |   11.5 ±   0.2 |     11.2 |     12.0 |        1.00 |\n"
        "| `c`              | 2    |   99.0 ±   1.0 |     97.0 |    101.0 | 8.61 ± 0.17 |\n"
    )
    separated = (
        "command ,mean  ,stddev ,median ,user ,system ,min   ,max\n"
        "a | b   ,0.0115,0.0002 ,0.0114 ,0.01 ,0.001  ,0.0112,0.0120\n"
        "c       ,0.0990,0.0010 ,0.0990 ,0.09 ,0.001  ,0.0970,0.1010\n"
    )
    for text in (table, separated):
        (report,) = read_one(tmp_path, text).reports
        assert [(p.name, p.runtime_s) for p in report.phases] == [
            ("a | b", pytest.approx(0.0115)), ("c", pytest.approx(0.099))]  # fmt: skip
        times = report.phases[1].metrics
        assert (times["time_stddev_s"], times["time_min_s"], times["time_max_s"]) == pytest.approx(
            (0.001, 0.097, 0.101)
        )


def test_least_and_most_in_one_column_of_an_older_hyperfine(tmp_path: Path) -> None:
    table = (
        "| Command | Mean [s] | Min…Max [s] |\n|:---|---:|---:|\n"
        "| `slow` | 2.500 ± 0.010 | 2.400…2.600 |\n| `fast` | **0.750 ± 0.004** | 0.740…0.760 |\n"
    )
    (report,) = read_one(tmp_path, table).reports
    assert [(p.name, p.runtime_s, p.metrics["time_min_s"], p.metrics["time_max_s"], p.options)
            for p in report.phases] == [
        ("slow", 2.5, 2.4, 2.6, {}), ("fast", 0.75, 0.74, 0.76, {})]  # fmt: skip


def test_times_of_hyperfine_below_text(tmp_path: Path) -> None:
    line = "  Time (mean ± σ):     {} s ±  0.4 s   [User: 360.2 s, System: 0.9 s]"
    text = f"Vanilla:\n{line.format('362.309')}\n\nAfter:\n{line.format('20.880')}\n"
    reports = read_one(tmp_path, text).reports
    assert [r.phases[0].runtime_s for r in reports] == [
        pytest.approx(362.309), pytest.approx(20.88)]  # fmt: skip
