"""Imported outputs of elbencho."""

import re
from pathlib import Path

import pytest
from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results


def test_a_phase_of_elbencho_without_a_figure_is_no_row(tmp_path: Path, imported: Importer) -> None:
    path = tmp_path / "log.txt"
    path.write_text(
        "OPERATION   RESULT TYPE         FIRST DONE  LAST DONE\n"
        "=========== ================    ==========  =========\n"
        "MKDIRS      Elapsed ms       :           0          0\n"
        "WRITE       Elapsed ms       :         990       1001\n"
        "            Throughput MiB/s :         250        251\n"
    )
    (report,) = imported(path, "--dry-run")["files"][0]["reports"]
    assert [p["name"] for p in report["phases"]] == ["write"]


def test_elbencho_s_table_of_files_and_of_whole_mebibytes(tmp_path: Path) -> None:
    head = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n"
    text = (
        f"{head}WRITE       Elapsed time     :     30.140s     30.196s\n"
        "            Throughput MiB/s :          36          36\n"
        "            Total MiB        :        1101        1101\n"
        f"{head}WRITE       Elapsed time     :       586ms       588ms\n"
        "            Files/s          :       16962       16978\n"
    )
    phases = [p for r in read_one(tmp_path, text).reports for p in r.phases]
    assert phases[0].bandwidth_bytes_per_s == pytest.approx(1101 * (1 << 20) / 30.196)
    assert (phases[1].operation, phases[1].iops) == ("metadata", 16978)


def test_runs_of_elbencho_with_another_depth_are_no_repetitions(tmp_path: Path) -> None:
    """The column is called `IO depth`."""
    header = (
        "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,"
        "random,random aligned,IO depth,shared paths,truncate,operation,time ms [first],"
        "time ms [last],IOPS [first],IOPS [last],MiB/s [first],MiB/s [last],MiB [last]\n"
    )
    for run, depth in enumerate((1, 32)):
        (tmp_path / f"run-{run}.csv").write_text(
            f"{header}2026-01-02T03:04:0{run}-0400,,file,1,1,4,,,10737418240,1048576,1,0,0,{depth},"
            "1,0,READ,9000,10000,1030,1024,1030,1024,10240\n"
        )
    files = results.found([tmp_path])
    phases = [phase for one in files for report in one.reports for phase in report.phases]
    assert [(p.iodepth, p.request_bytes, p.jobs, p.bandwidth_bytes_per_s) for p in phases] == [
        (1, 1 << 20, 4, 1 << 30), (32, 1 << 20, 4, 1 << 30),
    ]  # fmt: skip
    (campaign,) = results.campaigns(files, "x")
    assert {run.repetition for run in campaign.runs} == {1}


HEAD = "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n"
FIRST = (
    "WRITE     Elapsed ms       :       1000       1000\n"
    "          IOPS             :        400        400\n",
    "          Throughput MiB/s :        100        100\n",
    "          Total MiB        :        100        100\n---\n",
)
SECOND = tuple(part.replace("00", "11") for part in FIRST)


SHARED = {
    FIRST[0] + "".join(SECOND) + "".join(FIRST[1:]): "interrupts the block of line {2}",
    # One figure of each kind, but of two processes.
    FIRST[0] + SECOND[0] + FIRST[1] + SECOND[2]: "interrupts the block of line {2}",
    "".join(FIRST) + SECOND[2]: "line {7}: 'Total MiB : 111 111' is in no block",
    SECOND[1] + SECOND[2]: "line {2}: 'Throughput MiB/s : 111 111' is in no block",
    "".join(FIRST[:2])
    + SECOND[1]
    + FIRST[2]: "line {5}: 'Throughput MiB/s : 111 111' is the second",
    # Without any `---`.
    "".join(FIRST[:2]) + SECOND[1]: "line {5}: 'Throughput MiB/s : 111 111' is the second one",
}


@pytest.mark.parametrize(("text", "why"), SHARED.items())
def test_a_block_of_elbencho_that_another_process_prints_into_is_rejected(
    text: str, why: str, tmp_path: Path
) -> None:
    assert re.sub(r"[{}]", "", why) in why_rejected(tmp_path, HEAD + text)
    whole = HEAD + "".join(FIRST).replace("400", "399")
    (report,) = read_one(tmp_path, whole + HEAD + text).reports
    assert report.phases[0].iops == 399
    assert "1 other reports of the file are not read" in report.notes[0]
    later = re.sub(r"\{(\d+)\}", lambda number: str(int(number[1]) + whole.count("\n")), why)
    assert later in report.notes[0]


def test_a_block_of_elbencho_without_its_end_is_cut_off(tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, HEAD + "".join(FIRST) + "".join(SECOND[:2])).reports
    assert report.phases[0].iops == 400
    assert "cut off: no `---` ends the block of line 7" in report.notes[0]


def test_results_of_elbencho_s_services_have_a_note(tmp_path: Path) -> None:
    text = "Service now listening. Port: 1611\n" + HEAD + "".join(FIRST)
    (report,) = read_one(tmp_path, text).reports
    assert report.notes == (
        "services of elbencho printed into this file too: a result may be that of one host, and a "
        "part of another result",
    )
