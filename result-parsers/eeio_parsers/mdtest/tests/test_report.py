"""Imported outputs of mdtest."""

from pathlib import Path

import pytest
from tests.eeio.importing.read import read_one, why_rejected

OUTPUTS = Path(__file__).parents[1] / "outputs"
TEXT = (OUTPUTS / "mdtest-4.0.0.txt").read_text()


def test_the_mean_of_each_operation(tmp_path: Path) -> None:
    (report,) = read_one(tmp_path, TEXT).reports
    rates = {phase.name: phase.iops for phase in report.phases}
    assert len(rates) == 10 and rates["file creation"] == 31755.772
    assert {(phase.jobs, phase.nodes, phase.operation) for phase in report.phases} == {
        (2, 1, "metadata")
    }


def test_a_second_table_of_times_is_ignored(tmp_path: Path) -> None:
    rows = TEXT[TEXT.index("   Operation") : TEXT.index("-- finished")]
    times = f"SUMMARY time (in ms/op): (of 2 iterations)\n{rows}"
    (report,) = read_one(tmp_path, TEXT.replace("-- finished", f"{times}-- finished")).reports
    assert report.phases[4].iops == 31755.772 and len(report.phases) == 10


def test_a_rate_until_the_time_limit_is_no_result_of_its_own(tmp_path: Path) -> None:
    """A real output of `mdtest -v -F -C -W 1`."""
    text = (OUTPUTS / "mdtest-3.3.0-stonewall.txt").read_text()
    (report,) = read_one(tmp_path, text).reports
    assert {phase.name: phase.iops for phase in report.phases} == {
        "file creation": 55613.920, "tree creation": 10347.147,
    }  # fmt: skip
    damaged = text.replace("55676.093             NA", "55676.093")
    assert "is not understood" in why_rejected(tmp_path, damaged)


def test_the_heading_of_running_times_is_no_table(tmp_path: Path) -> None:
    """With -v, mdtest 1.9.3 writes it without a prefix."""
    heading = "   Operation               Duration              Rate\n   ---------\n"
    (report,) = read_one(tmp_path, TEXT.replace("SUMMARY rate", f"{heading}SUMMARY rate")).reports
    assert len(report.phases) == 10


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("   File stat ", "   File creation ", "listed twice"),
        ("2501.113", "?", "is not understood"),
        ("SUMMARY rate: (of 2 iterations)\n", "", "no summary of rates"),
    ],
)
def test_a_damaged_table_is_rejected(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in TEXT
    assert why in why_rejected(tmp_path, TEXT.replace(old, new, 1))


def test_a_table_without_its_line_above_it_is_rejected(tmp_path: Path) -> None:
    rows = TEXT[TEXT.index("   Operation") : TEXT.index("-- finished")]
    assert "without the line SUMMARY" in why_rejected(tmp_path, TEXT + rows)
