"""The demo meter through every command: marked wherever its figures are shown, never ranked."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from tests import dummy
from tests.once import once
from tests.plugin import Eeio, InProcess

from eeio.cli import main
from eeio.report.campaign.end_of_run import MOST_LINES

_READ = "level=filesystem operation=read spatiality=sequential sleep_s=0.5 bytes_moved=300000"


@pytest.fixture
def campaigns(home: Path, eeio: Eeio, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`a` and `b` with demo power, `c` without a meter."""

    def make(folder: Path) -> None:
        suite = dummy.suite(folder, _READ)
        (folder / "target").mkdir()
        for name, meter in (("a", "demo"), ("b", "demo"), ("c", "none")):
            eeio(
                "run", suite, "--directory", str(folder / "target"), "--name", name, "--idle",
                "0.5", "--repetitions", "3", "--meter", meter,
                environment={"XDG_DATA_HOME": str(folder / "data")},
            )  # fmt: skip

    shutil.copytree(once(tmp_path_factory, "demo", make) / "data", home / "data")
    return home


def test_run_ends_with_a_summary_that_marks_demo_power(campaigns: Path, eeio: Eeio) -> None:
    suite = dummy.suite(campaigns, _READ.replace("0.5 ", "0.6 "))
    done = eeio(
        "run", suite, "--directory", str(campaigns / "target"), "--name", "d", "--idle", "0.5",
        "--repetitions", "2", "--meter", "demo", "--preset", "quick",
    )  # fmt: skip
    lines = done.stdout.strip().splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("d: 2 of 2 runs done, all valid; QUICK: ") and "DEMO" in lines[0]
    (figures,) = [line for line in lines if line.startswith("filesystem")]
    assert " MB/s" in figures, done.stdout and " J/GB" in figures and figures.count("DEMO") == 1
    assert "not ranked: 1 of 1 rows: demo power is not ranked" in lines
    assert lines[-2] == f"page: {campaigns / 'data/eeio/results/d/report.html'}"
    assert lines[-1].startswith("next: eeio report d ")
    assert "2 runs, about " in done.stderr and " GB written" in done.stderr


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "html"])
def test_every_format_of_report_marks_it(campaigns: Path, eeio: Eeio, form: str) -> None:
    text = eeio("report", "a", "--format", form).stdout
    assert ("DEMO:" if form == "html" else "DEMO: fictitious power") in text


def test_numbers_for_programs_carry_the_kind(campaigns: Path, eeio: Eeio) -> None:
    rows = list(csv.DictReader(io.StringIO(eeio("report", "a", "--format", "csv").stdout)))
    measured = [row for row in rows if row["power_w_median"]]
    assert measured and all(row["energy_kind"] == "demo" for row in measured)
    assert all(row["ranked_reason"] == "demo power is not ranked" for row in measured)
    body = eeio.json("report", "a")
    (row,) = [row for row in body["characterization"] if row["n"]]
    assert row["energy_kind"] == "demo" and row["ranked"] is False


def test_demo_is_compared_with_demo_only(campaigns: Path, eeio: Eeio) -> None:
    done = eeio("compare", "a", "b", "--fail-if", "worse:900%")
    assert "b against a: demo power, so this is no result: " in done.stdout
    assert "DEMO" in done.stdout
    assert "demo" in eeio("compare", "a", "c", code=2).stderr


def test_what_decides_rejects_it(
    campaigns: Path, capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    mix = campaigns / "mix.yaml"
    mix.write_text("workload:\n- {operation: read, spatiality: sequential, share: 1}\n")
    servers = ["cost", "--traditional", "a", "--low-power", "b", "--workload", str(mix)]
    for arguments in (servers, ["cost", "a"]):
        assert main(arguments) == 2, arguments
        assert "demo" in capsys.readouterr().err
    shown = in_process("cost", "a", "b", "--demo", "--tool", "dummy").out
    verdict = next(line for line in shown.splitlines() if "energy per TB of" in line)
    assert verdict.startswith("DEMO: ")


def test_it_is_used_with_no_other_meter(home: Path, in_process: InProcess) -> None:
    arguments = [
        "run",
        "dummy-suite",
        "--directory",
        str(home / "target"),
        "--meter",
        "demo",
        "--meter",
        "modelled",
    ]
    assert "'demo' is fictitious" in in_process(*arguments, code=2).err


def test_bench_and_trace_mark_it(
    home: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["bench", "--directory", str(home / "target"), "--meter", "demo", "-r", "2"]
    body = json.loads(in_process(*arguments, "--format", "json", "sleep 0.3").out)
    (command,) = body["commands"]
    assert command["energy_kind"] == "demo" and command["energy_j"]["median"] > 0
    assert "DEMO: fictitious power" in in_process(*arguments, "sleep 0.3").out
