"""`eeio cost` as typed, and the worked example of docs/how-to/costs.md."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results.made import MACHINE, WRITE, design, energy, phase, run, stored, written
from tests.plugin import InProcess

from eeio.cli import main

CAMPAIGNS = Path(__file__).parents[1] / "data/campaigns"
PAGE = Path(__file__).parents[2] / "docs/how-to/costs.md"
WATTS = (46.0, 48.0, 49.0, 50.0, 50.0, 51.0, 52.0, 54.0)
GIVEN = [
    "--price-per-kwh", "0.30", "--grid-g-per-kwh", "400", "--pue", "1.5", "--duty-cycle", "25%",
    "--price", "1000", "--embodied-kg", "300", "--years", "5", "--capacity", "4T",
    "--currency", "EUR",
]  # fmt: skip


@pytest.fixture
def campaign(tmp_path: Path) -> str:
    """Eight reads at 200 MB/s and about 50 W, on a machine that idles at 30 W."""
    runs = [run(n, (phase(200e6, (energy(w),)),)) for n, w in enumerate(WATTS)]
    machine = replace(MACHINE, filesystem="ext4")
    return str(stored(tmp_path / "board", runs, machine=machine, idle=(energy(30.0),)))


def test_json(campaign: str, in_process: InProcess) -> None:
    reported = json.loads(in_process("cost", campaign, *GIVEN, "--format", "json").out)
    for name, wanted in (
        ("j_per_gb", 700), ("kwh_per_tb", 0.291667), ("money_per_tb", 0.214253),
        ("g_co2e_per_tb", 154.692),
    ):  # fmt: skip
        assert reported[name]["value"] == pytest.approx(wanted, rel=1e-5)
        assert reported[name]["interval"]["low"] < wanted < reported[name]["interval"]["high"]
    assert reported["sensitivities"][0]["answer"] == "j_per_gb"
    reported = json.loads(in_process("cost", campaign, "--format", "json").out)
    assert reported["money_per_tb"]["value"] is None
    assert reported["money_per_tb"]["reason"] == "not given: --price-per-kwh"


def test_j_per_gb_is_that_of_the_report(campaign: str, in_process: InProcess) -> None:
    ours = json.loads(in_process("cost", campaign, "--format", "json").out)["j_per_gb"]["value"]
    rows = json.loads(in_process("report", campaign, "--format", "json").out)["characterization"]
    (row,) = [row for row in rows if row["level"] == "filesystem"]
    assert row["energy_j_per_gb"]["median"] == pytest.approx(ours)


def test_the_worked_example_of_the_page(
    campaign: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(campaign).parent)
    assert main(["cost", "./board", *GIVEN, "-o", "cost.txt"]) == 0
    shown = Path("cost.txt").read_text(encoding="utf-8").split("\n\nThe workload")[0]
    page = PAGE.read_text(encoding="utf-8")
    assert " ".join(GIVEN) in " ".join(page.replace("\\\n", " ").split())
    printed = "\n".join(line.rstrip() for line in shown.splitlines() if not line.startswith("***"))
    assert f"```\n{printed.strip()}\n```" in page


def test_idle_power_that_the_campaign_did_not_measure(
    campaign: str, tmp_path: Path, in_process: InProcess
) -> None:
    """Three idle seconds per busy second: 3 x 20 W / 0.2 GB/s = 300 J/GB more than busy."""
    runs = [run(n, (phase(200e6, (energy(w),)),)) for n, w in enumerate(WATTS[::-1])]
    without = str(stored(tmp_path / "imported", runs, machine=MACHINE))
    command = ("cost", without, "--duty-cycle", "25%", "--format", "json")
    missing = json.loads(in_process(*command).out)["j_per_gb"]
    assert missing["value"] is None and "--idle-w is not given" in missing["reason"]
    body = json.loads(in_process(*command, "--idle-w", "20").out)
    assert body["j_per_gb"]["value"] == pytest.approx(550) and body["idle_power_w"] == 20
    assert any("given by --idle-w" in message for message in body["messages"])
    inputs = tmp_path / "site.yaml"
    inputs.write_text("idle_w: 20\n")
    of_file = json.loads(in_process(*command, "--inputs", str(inputs)).out)
    assert of_file["j_per_gb"] == body["j_per_gb"]
    measured = in_process("cost", campaign, "--duty-cycle", "25%", "--idle-w", "20", code=2)
    assert "board measured its idle power itself: 30 W of the system" in measured.err
    own = json.loads(in_process("cost", campaign, *command[2:]).out)
    assert any("measured by the campaign" in message for message in own["messages"])
    both = ("cost", campaign, without, "--duty-cycle", "25%", "--format", "json")
    costs = json.loads(in_process(*both, "--idle-w", "20").out)["costs"]
    assert [cost["idle_power_w"] for cost in costs] == [30, 20], "for the one that lacks it"
    assert "measured its idle power itself" in in_process(*both, "--idle-w", "30,20", code=2).err
    sides = ("cost", "--traditional", campaign, "--low-power", campaign, "--idle-w", "20")
    assert "--idle-w: not with --traditional" in in_process(*sides, code=2).err


def test_markdown(campaign: str, in_process: InProcess) -> None:
    done = in_process("cost", campaign, *GIVEN, "--format", "markdown")
    assert "| Energy (kWh/TB) | 0.2917 [" in done.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--pue", "0.5"], "pue: 0.5 is not a number from 1 to 100"),
        (["--duty-cycle", "0"], "never in use"),
        (["--years", "0"], "years: 0; leave it out"),
        (["--capacity", "4"], "write it as 150T"),
        (["--price-per-kwh", "x"], "'x' is not a number"),
    ],
)
def test_numbers_that_cannot_be(
    campaign: str, in_process: InProcess, arguments: list[str], why: str
) -> None:
    assert why in " ".join(in_process("cost", campaign, *arguments, code=2).err.split())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--grid-g-per-kwh", "-3"], "is not a number from 0"),
        (["--grid-g-per-kwh", "none.csv"], "none.csv: cannot be read"),
        (["--inputs", "none.yaml"], "none.yaml: cannot be read"),
        (["--workload", "none.yaml"], "none.yaml: cannot be read"),
        (["--tool", "ior"], "there is --tool fio --level filesystem"),
        (["--domain", "package"], "measured was system: --domain system"),
    ],
)
def test_what_is_rejected_in_a_line(
    campaign: str, in_process: InProcess, arguments: list[str], why: str
) -> None:
    arguments = [f"{arguments[0]}={arguments[1]}"]
    reported = in_process("cost", campaign, *arguments, code=2).err
    *left_out, rejected = reported.splitlines()
    assert why in rejected and all("left out: " in line for line in left_out)


@pytest.mark.parametrize(
    ("name", "tool", "level", "why"),
    [
        ("applications", "archive", "application", "no single request size"),
        ("chang", "metadata", "filesystem", "no single request size"),
        ("chang", "iozone", "filesystem", "the energy is known only to"),
    ],
)
def test_a_rejection_has_the_true_reason_and_names_only_what_can_be_costed(
    name: str, tool: str, level: str, why: str, in_process: InProcess
) -> None:
    path = str(CAMPAIGNS / name)
    of_tool = ("--tool", tool, "--level", level)
    *left_out, rejected = in_process("cost", path, "--demo", *of_tool, code=2).err.splitlines()
    assert ("see above" in rejected) == bool(left_out) == bool(why)
    assert all("left out: " in line for line in left_out)
    assert why in "".join(left_out)
    assert "; no other tool or level has it" in rejected


def test_each_choice_that_a_rejection_names_can_be_costed(in_process: InProcess) -> None:
    path = str(CAMPAIGNS / "quick-before")
    rejected = in_process("cost", path, "--demo", "--level", "library", code=2).err
    named = re.findall(r"--tool (\w+) --level (\w+)", rejected)
    assert named
    for tool, level in named:
        in_process("cost", path, "--demo", "--tool", tool, "--level", level)


def test_a_cost_counts_what_reads_and_writes_at_once_once(in_process: InProcess) -> None:
    done = in_process("cost", str(CAMPAIGNS / "mixed"), "--demo", "--format", "json")
    labels = [experiment["label"] for experiment in json.loads(done.out)["mix"]]
    assert len(labels) == 2 and all("random mixed 4 KiB" in label for label in labels)
    assert "left out" not in done.err


def test_a_cost_names_experiments_that_the_report_does_not_rank(
    tmp_path: Path, in_process: InProcess
) -> None:
    runs = [run(n, (written(durable=False),), experiment=WRITE) for n in range(3)]
    plan = design("buffered", len(runs), WRITE)
    path = str(stored(tmp_path / "buffered", runs, plan, machine=MACHINE))
    rows = json.loads(in_process("report", path, "--format", "json").out)["characterization"]
    (reason,) = {row["ranked_reason"] for row in rows if row["level"] == "filesystem"}
    assert reason.startswith("not durable: ")
    text = " ".join(in_process("cost", path).out.split())
    assert f"buffered: experiments that the report does not rank: 1 ({reason})" in text


def test_an_imported_machine_without_a_name_has_that_of_its_campaign(
    tmp_path: Path, in_process: InProcess
) -> None:
    machine = replace(MACHINE, hostname="unknown", device=None, drive_id=None)
    runs = [run(n, (phase(200e6, (energy(50.0),)),)) for n in range(3)]
    path = str(stored(tmp_path / "lab-7", runs, machine=machine))
    text = in_process("cost", path).out
    assert "unknown unknown" not in text
    assert "lab-7" in text


def test_powers_with_and_without_the_drives_are_not_compared(
    tmp_path: Path, in_process: InProcess
) -> None:
    paths = []
    for name, leaves_out in (("with-drives", ()), ("without", ("drives",))):
        readings = [replace(energy(watts), leaves_out=leaves_out) for watts in WATTS]
        runs = [run(n, (phase(200e6, (reading,)),)) for n, reading in enumerate(readings)]
        machine = replace(MACHINE, hostname=name)
        paths.append(str(stored(tmp_path / name, runs, design(name, len(runs)), machine=machine)))
    text = in_process("cost", *paths, code=2).err
    assert "with-drives: system; without: system without drives" in text
    in_process("cost", paths[1])
