"""Imported outputs of IO500."""

from pathlib import Path

from tests.eeio.importing.importer import Importer
from tests.eeio.importing.read import read_one, why_rejected

from eeio.exchange.importing import results


def test_results_of_io500_of_2017(tmp_path: Path, imported: Importer) -> None:
    line = "[RESULT] BW   phase 1   ior_easy_write   0.500 GB/s : time 300.00 seconds\n"
    (phase,) = imported.phases_of(line + line)
    assert phase["bandwidth_bytes_per_s"] == 512 << 20
    (tmp_path / "b.txt").write_text(line + line.replace("0.500", "0.750"))
    (campaign,) = results.campaigns(results.found([tmp_path / "b.txt"]), "x")
    # Runs of which no setting is known.
    assert [run.repetition for run in campaign.runs] == [1, 1]


def test_results_of_io500_behind_labels(tmp_path: Path) -> None:
    text = "Write:\n" + "".join(
        f"{label}: [RESULT]      ior-easy-write     {rate} GiB/s : time {seconds} seconds\n"
        for label, rate, seconds in (("O_DIRECT", 420.5, 869.65), ("CACHED", 368.25, 413.6))
    )
    (report,) = read_one(tmp_path, text).reports
    assert [(p.name, p.bandwidth_bytes_per_s) for p in report.phases] == [
        ("O_DIRECT ior-easy-write", 420.5 * 2**30), ("CACHED ior-easy-write", 368.25 * 2**30),
    ]  # fmt: skip


def test_io500_s_phases_without_a_score(tmp_path: Path) -> None:
    text = (
        "[RESULT]       ior-easy-write        1.250000 GiB/s : time 31.000 seconds\n"
        "[      ]            timestamp        0.000000 kIOPS : time 0.000 seconds\n"
        "[      ]  ior-rnd4K-easy-read        0.500000 GiB/s : time 30.500 seconds\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert [
        (p.name, p.operation, p.access_pattern, p.bandwidth_bytes_per_s) for p in report.phases
    ] == [
        ("ior-easy-write", "write", "sequential", 1.25 * 2**30),
        ("ior-rnd4K-easy-read", "read", "random", 2**29),
    ]  # fmt: skip
    assert report.notes == (
        "IO500 measured these phases without a score: ior-rnd4K-easy-read",
        "IO500 printed no score: it did not reach its end, or lines are missing",
    )


def test_the_rejection_of_io500_s_result_txt_names_the_other_file(tmp_path: Path) -> None:
    text = (
        "[run]\nprocs           = 480\nversion         = io500-isc23\n\n[ior-easy-write]\n"
        "exe             = ./ior -t 1m -b 99000000m -w -D 300\nscore           = 21.538043\n"
    )
    wanted = "IO500: a result.txt: import the result_summary.txt next to it"
    assert why_rejected(tmp_path, text) == wanted


def test_a_score_that_io500_marks_as_invalid_is_named(tmp_path: Path) -> None:
    text = (
        "[RESULT]       ior-easy-write        1.250000 GiB/s : time 31.000 seconds\n"
        "[SCORE INVALID] Bandwidth 0.172092 GB/s : IOPS 292.625029 kiops : TOTAL 7.096374\n"
    )
    (report,) = read_one(tmp_path, text).reports
    assert report.notes == ("IO500 marks the score of this run as invalid: [SCORE INVALID]",)
