"""Outputs that users of these tools reported as misread by other programs."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer

from eeio_parsers.fio import report as fio

PARSERS = Path(__file__).parents[3] / "result-parsers/eeio_parsers"
CASES = {path.name: path for path in PARSERS.glob("*/outputs/cases/*")}


def _body(imported: Importer, name: str, code: int = 0) -> dict[str, Any]:
    return imported(CASES[name], "--dry-run", code=code)


def _phases(body: dict[str, Any]) -> list[dict[str, Any]]:
    (file,) = body["files"]
    return [phase for report in file["reports"] for phase in report["phases"]]


@pytest.mark.parametrize("form", ["both_bw.1.log", "client_bw.1.log.node1", "epoch_bw.1.log"])
def test_logs_of_fio_in_all_forms(imported: Importer, form: str) -> None:
    """With the maximum of each interval, of a server, and with times since 1970."""
    name = f"fiolog_{form}"
    rows = [line.split(", ") for line in (CASES[name]).read_text().splitlines()]
    mean = sum(int(row[1]) for row in rows) / len(rows) * 1024
    (phase,) = _phases(_body(imported, name))
    assert phase["operation"] == "write" and phase["bandwidth_bytes_per_s"] == mean
    assert phase["runtime_s"] == len(rows)


def test_a_log_of_single_requests_has_no_rate(imported: Importer) -> None:
    body = _body(imported, "fiolog_requests_iops.1.log")
    (phase,) = _phases(body)
    assert phase["iops"] is None and phase["request_bytes"] == 4096
    assert "single requests" in str(body)


def test_the_last_report_of_a_run_follows_within_a_second(imported: Importer) -> None:
    (phase,) = _phases(_body(imported, "fio_status_interval_last_289ms.json"))
    assert phase["runtime_s"] == 43.899


def test_a_report_with_an_impossible_time_does_not_hide_the_next(imported: Importer) -> None:
    body = _body(imported, "fio_runt_then_good.txt")
    (phase,) = _phases(body)
    assert phase["iops"] == 800 and "run time of 18446744071562070 ms" in str(body)


def test_a_text_report_beside_json_is_named(imported: Importer) -> None:
    body = _body(imported, "fio_text_and_json.txt")
    assert len(_phases(body)) == 1 and "a text report of fio in this file is not read" in str(body)


def test_small_rates_of_older_fio(imported: Importer) -> None:
    (phase,) = _phases(_body(imported, "fio_text_low_rate.txt"))
    assert phase["bandwidth_bytes_per_s"] == pytest.approx(256 * 1024 / 46.612)


def test_skipped_bytes_are_a_factor(imported: Importer) -> None:
    """rw=read and rw=read:64k are no repetitions of each other."""
    imported(CASES["fio_rw_skip"], "--name", "skip")
    rows = imported.rows("skip")
    assert [row["n"] for row in rows] == [1, 1] and rows[1]["details"][-1] == "rw:N=64k"


def test_a_command_after_the_job_makes_its_start_unknown() -> None:
    """fio stamps its output when that command has ended, too."""
    text = (PARSERS / "fio/outputs/jobs-3.19.json").read_text()
    body = json.loads(text[text.index("{") :])
    body["jobs"] = (job,) = body["jobs"][:1]  # of several groups no start is known

    def within_s() -> list[float | None]:
        (report,) = fio.read_json(json.dumps(body))
        assert all(phase.started_utc for phase in report.phases)
        return [phase.starts_within_s for phase in report.phases]

    assert within_s() == [0.1]
    job["job options"]["exec_postrun"] = "sleep 3"
    assert within_s() == [None]


def test_marks_of_failure_are_errors(imported: Importer) -> None:
    imported(CASES["hyperfine_exit_codes.json"], "--name", "commands")
    good, bad = imported.rows("commands")
    failed = "3 of 3 runs failed, the first had the exit code 2"
    assert failed in bad["invalid_reasons"] and failed not in good["invalid_reasons"]
    imported(CASES["io500_result_invalid.txt"], "--name", "io500")
    invalid = [row for row in imported.rows("io500") if row["invalid_runs"]]
    assert len(invalid) == 2 and all(row["n"] == 0 for row in invalid)
    assert "IO500 marks ior-hard-write as invalid" in str(invalid)


def test_direct_io_of_ior_by_its_command(imported: Importer) -> None:
    assert [phase["direct"] for phase in _phases(_body(imported, "ior_odirect.json"))] == [True] * 2


def test_a_rejection_names_the_tool(imported: Importer) -> None:
    (file,) = _body(imported, "ior_summary_nan.txt", code=2)["files"]
    assert file["rejected"].startswith("ior: '-nan' is not a number")
    (file,) = _body(imported, "fio_quoted_without_status.txt", code=2)["files"]
    assert file["rejected"] == "fio: the report is cut off before `Run status`"
