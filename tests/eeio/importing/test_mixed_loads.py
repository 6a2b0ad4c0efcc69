"""Results that read and write at the same time: bytes and energy once, bandwidth of each."""

import json
from pathlib import Path

import pytest
from tests.eeio.importing.test_power_logs import RUNS, START_S, joules, wattsup
from tests.plugin import InProcess

READ_BYTES, WRITTEN_BYTES = 7 * 10**8, 3 * 10**8


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """fio's reports of randrw, one for each of RUNS."""
    folder = tmp_path / "old"
    folder.mkdir()
    for place, (begin_s, end_s) in enumerate(RUNS):
        lasted_s = end_s - begin_s

        def side(moved: int, lasted_s: float = lasted_s) -> dict[str, object]:
            return {
                "io_bytes": moved, "io_kbytes": moved // 1024, "bw_bytes": round(moved / lasted_s),
                "bw": 1, "iops": moved / 65536 / lasted_s, "runtime": round(lasted_s * 1000),
                "total_ios": moved // 65536,
            }  # fmt: skip

        body = {
            "fio version": "fio-3.36", "timestamp_ms": round((START_S + end_s) * 1000),
            "timestamp": int(START_S + end_s),
            "global options": {"rw": "randrw", "bs": "64k", "rwmixread": "70", "direct": "1"},
            "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "job options": {},
                      "read": side(READ_BYTES), "write": side(WRITTEN_BYTES)}],
        }  # fmt: skip
        (folder / f"run{place}.json").write_text(json.dumps(body))
    (tmp_path / "w.log").write_text(wattsup())
    return folder


def test_both_directions_have_one_energy(
    home: Path, results: Path, tmp_path: Path, in_process: InProcess
) -> None:
    log = str(tmp_path / "w.log")
    body = json.loads(in_process("import", str(results), "--power", log, "--name", "x",
                                 "--format", "json").out)  # fmt: skip
    for file, (begin_s, end_s) in zip(body["files"], RUNS, strict=True):
        (report,) = file["reports"]
        (both,) = report["mixed"]
        (reading,) = both["energy"]
        exact_j = joules(START_S + begin_s, START_S + end_s)
        assert reading["energy_j"] == pytest.approx(exact_j, abs=reading["uncertainty_j"])
        assert both["bytes"] == READ_BYTES + WRITTEN_BYTES
        assert [phase["operation"] for phase in report["phases"]] == ["read", "write"]
        for phase in report["phases"]:
            (of_direction,) = phase["energy"]
            assert of_direction["energy_j"] is None
            assert "of both directions together" in of_direction["reasons"][0]


def test_rows_have_the_bytes_once_and_both_bandwidths(
    home: Path, results: Path, tmp_path: Path, in_process: InProcess
) -> None:
    in_process("import", str(results), "--power", str(tmp_path / "w.log"), "--name", "x")
    rows = json.loads(in_process("report", "x", "--format", "json").out)["characterization"]
    rows = [row for row in rows if row["tool"]]
    assert [row["operation"] for row in rows] == ["mixed"] * 3
    both, reads, writes = sorted(rows, key=lambda row: -row["bandwidth_bytes_per_s"]["median"])
    assert (reads["phase"], writes["phase"]) == ("reads", "writes")
    rates = [row["bandwidth_bytes_per_s"]["median"] for row in (both, reads, writes)]
    assert rates[1] / rates[0] == pytest.approx(0.7, rel=1e-3)
    assert rates[2] / rates[0] == pytest.approx(0.3, rel=1e-3)
    assert both["bytes"]["median"] == READ_BYTES + WRITTEN_BYTES
    assert both["energy_j_per_gb"]["median"] > 0
    for row in (reads, writes):
        assert row["bytes"] is None and row["energy_j_per_gb"] is None
        assert "of both directions together" in json.dumps(row["reasons"])
    assert len([row for row in rows if row["ranked"]]) <= 1


def test_cost_counts_them_once(
    home: Path, results: Path, tmp_path: Path, in_process: InProcess
) -> None:
    in_process("import", str(results), "--power", str(tmp_path / "w.log"), "--name", "x")
    body = json.loads(in_process("cost", "x", "--format", "json").out)
    (experiment,) = body["mix"]
    assert "mixed 64 KiB" in experiment["label"] and experiment["share"] == 1
    rows = json.loads(in_process("report", "x", "--format", "json").out)["characterization"]
    (j_per_gb,) = (row["energy_j_per_gb"]["median"] for row in rows if row["energy_j_per_gb"])
    assert body["j_per_gb"]["value"] == pytest.approx(j_per_gb)
