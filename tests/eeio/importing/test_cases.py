"""Outputs that users of these tools reported as misread by other programs."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.eeio.importing.importer import Importer

from eeio.errors import ToolOutputError
from eeio.traces import logs
from eeio_parsers.elbencho import report as elbencho
from eeio_parsers.fio import report as fio
from eeio_parsers.fio import text as fio_text
from eeio_parsers.found import FoundPhase
from eeio_parsers.ior import report as ior

PARSERS = Path(__file__).parents[3] / "result-parsers/eeio_parsers"
CASES_OF_POWER = Path(__file__).parents[2] / "data/imports/cases-power"
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


def _fio_phases(*jobs: dict[str, Any], **options: str) -> tuple[FoundPhase, ...]:
    """Those of jobs that ran for 40 s. The report ended 80 s after BEGIN_MS."""
    side = {
        "io_bytes": 10**9,
        "io_kbytes": 976562,
        "runtime": 40_000,
        "total_ios": 1000,
        "bw_bytes": 25_000_000,
    }
    entries = [
        {"jobname": name, "groupid": 0, "error": 0, "job options": {}, "read": side} | job
        for name, job in zip("ab", jobs, strict=False)
    ]
    body = {
        "fio version": "fio-3.36", "timestamp_ms": 1_764_000_180_000,
        "global options": {"rw": "read"} | options, "jobs": entries,
    }  # fmt: skip
    (report,) = fio.read_json(json.dumps(body))
    return report.phases


def _fio_group(*jobs: dict[str, Any], **options: str) -> list[float | None]:
    """How well the start of a group is known whose jobs ran for 40 s."""
    return [phase.starts_within_s for phase in _fio_phases(*jobs, **options)]


BEGIN_MS = 1_764_000_100_000


@pytest.mark.parametrize("option", ["startdelay", "wait_for"])
def test_the_start_of_jobs_that_do_not_start_together_is_unknown(option: str) -> None:
    delayed: dict[str, Any] = {"job options": {option: "40"}}
    assert _fio_group({}, {}) == [0.1]
    assert _fio_group({}, delayed) == [None]
    # fio 3.36 reports the start of each job.
    first, later = {"job_start": BEGIN_MS}, {"job_start": BEGIN_MS + 40_000}
    assert _fio_group(first, delayed | later) == [None]
    assert _fio_group(first, {"job_start": BEGIN_MS + 400}) == [0.5]


def test_a_group_that_ended_later_than_its_longest_job_did_not_start_together() -> None:
    """The entry of a group has the options of its first job only."""
    reported = {"job options": {"group_reporting": "1"}}
    assert _fio_group(reported | {"job_start": BEGIN_MS}) == [None]
    assert _fio_group(reported | {"job_start": BEGIN_MS + 40_000}) == [0.1]


def test_a_group_before_another_ended_when_that_started() -> None:
    """That waited for it (`stonewall`)."""
    first = {"job_start": BEGIN_MS, "job options": {"group_reporting": "1"}}
    second = {"groupid": 1, "job options": {"group_reporting": "1", "stonewall": "1"}}
    together = second | {"job_start": BEGIN_MS + 40_100}
    assert _fio_group(first, together) == [0.1, 0.1]
    # Another job of the first group started 30 s later.
    later = second | {"job_start": BEGIN_MS + 70_000}
    assert _fio_group(first, later)[0] is None


@pytest.mark.parametrize(
    ("numjobs", "job_runtime", "within_s"),
    [("1", 39_999, 0.1), ("3", 119_996, 0.1), ("1", 79_998, None), ("1", None, None)],
)
def test_an_entry_with_the_run_times_of_other_jobs_has_no_known_start(
    numjobs: str, job_runtime: int | None, within_s: float | None
) -> None:
    """fio before 3.36 reports the options of the first job of a group only, and before 3.12 not the
    sum of the run times either."""
    job: dict[str, Any] = {"job options": {"group_reporting": "1", "numjobs": numjobs}}
    if job_runtime is not None:
        job["job_runtime"] = job_runtime
    assert _fio_group(job) == [within_s]


def test_jobs_of_several_hosts_are_counted() -> None:
    """A power log may be that of one of them."""
    assert [phase.nodes for phase in _fio_phases({"hostname": "n1"}, {"hostname": "n2"})] == [2]
    assert [phase.nodes for phase in _fio_phases({"hostname": "n1"}, {"hostname": "n1"})] == [None]


def test_groups_have_no_start_where_fio_reports_the_end_of_the_last_one_only() -> None:
    phases = _fio_phases({}, {"groupid": 1})
    assert [(phase.started_utc, phase.starts_within_s) for phase in phases] == [(None, None)] * 2


@pytest.mark.parametrize(("jobs", "within_s"), [(1, 1.0), (2, None)])
def test_several_jobs_of_a_text_of_fio_may_have_started_apart(
    jobs: int, within_s: float | None
) -> None:
    text = (
        "fio-3.33\n{}Run status group 0 (all jobs):\n"
        "   READ: bw=10.0MiB/s (10.5MB/s), io={}MiB (42MB), run=4000-4000msec\n"
    ).format(
        "a: (groupid=0, jobs=1): err= 0: pid=9: Fri Feb  9 12:56:50 2018\n"
        "  read: IOPS=10, BW=10.0MiB/s (10.5MB/s)(40.0MiB/4000msec)\n" * jobs,
        40 * jobs,
    )
    (report,) = fio_text.read_text(text)
    (phase,) = report.phases
    assert phase.starts_within_s == within_s
    assert phase.started_utc == "2018-02-09T12:56:46.000"


@pytest.mark.parametrize(
    ("options", "within_s"),
    [
        ({"unlink": "1"}, None),
        ({"unlink": "0"}, 0.1),
        ({"write_lat_log": "a"}, None),
        ({"write_lat_log": "a", "log_avg_msec": "500"}, 0.1),
    ],
)
def test_work_of_fio_after_its_io_makes_its_start_unknown(
    options: dict[str, str], within_s: float | None
) -> None:
    assert _fio_group({}, **options) == [within_s]
    # The start that fio 3.36 reports is not affected.
    assert _fio_group({"job_start": BEGIN_MS}, **options) == [0.1]


@pytest.mark.parametrize(("finished", "within_s"), [("35", 2.0), ("59", None), ("", None)])
def test_ior_s_delay_before_its_test_makes_its_start_unknown(
    finished: str, within_s: float | None
) -> None:
    """-d, -M and the removal of old files are between `Began` and the timed part."""
    text = (PARSERS / "ior/outputs/ior-4.0.0.txt").read_text()
    text = text.replace("-i 2", "-i 1 -w").replace("repetitions         : 2", "repetitions : 1")
    lines = [line for line in text.splitlines() if not line.startswith(("read", "write"))]
    row = "write 256 4096 0.000121 4096 256.00 0.00004 34.9 0.0001 35.0 0"
    table = next(k for k, line in enumerate(lines) if line.startswith("------")) + 1
    lines[table:table] = [row]
    last = next(k for k, line in enumerate(lines) if line.startswith("Finished"))
    began = next(line for line in lines if line.startswith("Began"))
    lines[last] = began.replace("Began", "Finished").replace("50:57", f"51:{finished}")
    lines = [line.replace("50:57", "51:00") if line == began else line for line in lines]
    (report,) = ior.read_text("\n".join(lines if finished else lines[:last]) + "\n")
    assert [phase.starts_within_s for phase in report.phases] == [within_s]


ELBENCHO_MIX = (
    "ISO date,label,block size,operation,time ms [last],IOPS [last],MiB/s [last],MiB [last]"
)
READS_OF_MIX = ",rwmix read IOPS [last],rwmix read MiB/s [last],rwmix read MiB [last]"


def test_a_mixed_phase_of_elbencho_s_csv_has_both_directions() -> None:
    row = "\n2025-11-24T16:01:40.000+0000,,1048576,RWMIX70,30000,300,300,9000"
    (report,) = elbencho.read_csv(f"{ELBENCHO_MIX}{READS_OF_MIX}{row},700,700,21000\n")
    (phase,) = report.phases
    assert phase.iops == 1000 and phase.bandwidth_bytes_per_s == 1000 << 20
    assert phase.bytes == 30_000 << 20
    with pytest.raises(ToolOutputError, match="without its column rwmix read"):
        list(elbencho.read_csv(f"{ELBENCHO_MIX}{row}\n"))


def test_the_date_of_an_older_elbencho_is_that_of_the_end() -> None:
    """2.1 wrote it with whole seconds when it printed the line."""
    header, row = "ISO date,operation,time ms [last],MiB/s [last],MiB [last]", "WRITE,9000,10,90"
    text = f"{header}\n2022-03-04T12:03:45-0800,{row}\n2025-11-24T16:01:40.000+0000,{row}\n"
    phases = [phase for report in elbencho.read_csv(text) for phase in report.phases]
    assert [phase.started_utc for phase in phases] == [None, "2025-11-24T16:01:40.000+00:00"]


def test_elbencho_s_json_has_the_start_of_each_phase() -> None:
    text = (PARSERS / "elbencho/outputs/3.1-10/sequential.json").read_text()
    phases = [phase for report in elbencho.read_json(text) for phase in report.phases]
    assert [phase.started_utc for phase in phases] == [
        "2026-11-22T19:43:02.168+00:00", "2026-11-22T19:43:02.241+00:00",
    ]  # fmt: skip
    assert all(phase.starts_within_s == 0.01 for phase in phases)


def test_the_waits_of_an_iolog_of_version_2_count_from_its_start() -> None:
    events = logs.read(CASES_OF_POWER / "iolog_v2_wait.log")
    assert [event.start_s for event in events] == [4.0, 6.0]
