"""`eeio report`, `compare` and `guideline` on a stored campaign of writes: options and tables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eeio_results.made import MACHINE, WRITE, design, energy, in_turn, run, stored, written
from tests.plugin import PARSERS, InProcess

from eeio.cli import main
from eeio.record.design import NotMeasured

LIBRARY = replace(WRITE, level="library", tool="dataserver")


@pytest.fixture
def campaign(tmp_path: Path) -> str:
    """Eight repetitions of a write through the file system and through a library, 10 W more."""
    reported = {"latency_p99_s": 0.004, "iops": 1000.0}
    runs = [
        run(2 * n + place, (written(50.0 + 10 * place + n, metrics=reported),), experiment)
        for n in range(8)
        for place, experiment in enumerate((WRITE, LIBRARY))
    ]
    plan = in_turn(design("c", len(runs), WRITE, LIBRARY))
    return str(stored(tmp_path / "c", runs, plan, idle=(energy(30.0),)))


def test_the_options_of_a_report(campaign: str, in_process: InProcess) -> None:
    page = in_process("report", campaign, "--columns", "iops,latency", "--duty-cycle", "10%").out
    assert "p99.9 (ms)" in page and "J/GB with idle" in page
    assert "Cost per layer" in page
    done = in_process("report", campaign, "--most-uncertain", "0.001%")
    assert "no experiment may be ranked" in done.out


def test_json_contains_the_layers(campaign: str, in_process: InProcess) -> None:
    (layer,) = json.loads(in_process("report", campaign, "--format", "json").out)["layers"]
    assert layer["difference_j_per_gb"] == pytest.approx(40) and layer["verdict"] == "costs more"


def test_what_nothing_beats_stands_in_report_and_comparison(
    campaign: str, in_process: InProcess
) -> None:
    assert "Pareto-optimal experiments" in in_process("report", campaign).out
    for command in ("report", "compare"):
        best, beaten = json.loads(in_process(command, campaign, "--format", "json").out)["pareto"]
        assert best["on_bandwidth_front"] and best["on_p99_front"]
        assert not beaten["on_p99_front"]
        # 1 GB in 4 s.
        assert best["energy_delay_j_s_per_gb2"] == pytest.approx(4 * best["energy_j_per_gb"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--columns", "iops,colour"], "no columns 'colour'; there are iops, latency"),
        (["--most-uncertain", "ten"], "write it as 10% or 0.1"),
        (["--duty-cycle", "0"], "never in use"),
    ],
)
def test_options_that_cannot_be_are_rejected(
    campaign: str, in_process: InProcess, arguments: list[str], why: str
) -> None:
    assert why in " ".join(in_process("report", campaign, *arguments, code=2).err.split())


def test_a_comparison_within_a_latency(campaign: str, in_process: InProcess) -> None:
    assert "left out" not in in_process("compare", campaign, "--max-p99", "5ms").out
    assert main(["compare", campaign, "--max-p99", "1ms"]) != 0


@pytest.fixture
def sides(campaign: str, tmp_path: Path) -> list[str]:
    """A guideline's two sides: 53.5 and 23.5 W, both 1 GB in 4 s."""
    other = tmp_path / "d"
    runs = [run(n, (written(20.0 + n),), WRITE) for n in range(8)]
    machine = replace(MACHINE, hostname="other")
    stored(other, runs, design("d", 8, WRITE), machine=machine, idle=(energy(3.0),))
    mix = tmp_path / "mix.yaml"
    mix.write_text(
        "workload:\n  - {operation: write, spatiality: sequential, request_size_bytes: 4k, "
        "cache: {buffer: on}, flush: none, share: 1}\n"
    )
    return ["cost", "--traditional", campaign, "--low-power", str(other), "--workload",
            str(mix)]  # fmt: skip


def test_a_guideline_within_a_latency(
    sides: list[str], capsys: pytest.CaptureFixture[str], in_process: InProcess
) -> None:
    assert "changes power by" in in_process(*sides).out
    assert main([*sides, "--max-p99", "5ms"]) != 0
    assert "its tool reports no p99 latency" in capsys.readouterr().err


def test_a_guideline_reports_what_a_tb_costs_on_both(
    sides: list[str], in_process: InProcess
) -> None:
    arguments = [*sides, "--price-per-kwh", "0.3", "--years", "5", "--grid-g-per-kwh", "400",
             "--duty-cycle", "1", "--low-power-embodied-kg", "100"]  # fmt: skip
    done = in_process(*arguments, "--format", "json")
    traditional, low_power = json.loads(done.out)["guideline"]["per_tb"]
    # 53.5 W x 4 s/GB; 23.5 x 4 = 94 J/GB, 94 kJ/GB x 1000 / 3.6e6 = 0.02611 kWh a TB.
    assert traditional["j_per_gb"]["value"] == pytest.approx(214)
    assert low_power["kwh_per_tb"]["value"] == pytest.approx(0.0261111, rel=1e-4)
    assert low_power["electricity_per_tb"]["value"] == pytest.approx(0.0078333, rel=1e-4)
    assert low_power["g_co2e_operation_per_tb"]["value"] == pytest.approx(10.4444, rel=1e-4)
    # 100 kg over what 250 MB/s move in five years, 39447 TB.
    assert low_power["g_co2e_embodied_per_tb"]["value"] == pytest.approx(2.535, rel=1e-3)
    assert traditional["g_co2e_embodied_per_tb"]["value"] is None
    assert traditional["g_co2e_embodied_per_tb"]["reason"]
    assert "Cost per moved TB" in in_process(*arguments).out
    reported = " ".join(in_process(*sides).out.split())
    assert "times the energy per TB of board: other costs less." in reported


@pytest.mark.parametrize(
    ("further", "why"),
    [
        (("--low-power-embodied-kg", "100"), "spread over --years"),
        (("--grid-g-per-kwh", "hours.csv"), "hours.csv"),
        (("--years", "5"), "both --price-per-kwh and --years"),
    ],
)
def test_what_a_tb_costs_needs_all_of_it(
    sides: list[str], further: tuple[str, ...], why: str, in_process: InProcess
) -> None:
    output = in_process(*sides, *further, code=2).err
    assert why in output and output.count("\n") == 1


def test_only_columns_that_are_named(campaign: str, in_process: InProcess) -> None:
    page = in_process("report", campaign, "--columns", "mb/j,W,iops").out
    head = next(line for line in page.splitlines() if line.startswith("Operation"))
    assert head.split("Target")[1].split() == ["Power", "(W)", "MB/J", "IOPS", "IOPS/W"]


def test_a_named_column_without_values_is_there(home: Path, in_process: InProcess) -> None:
    in_process("import", str(PARSERS / "fio/outputs/jobs-3.41.json"), "--name", "without-power")
    assert "above idle" not in in_process("report", "without-power").out
    page = in_process("report", "without-power", "--columns", "j/gb above idle").out
    head = next(line for line in page.splitlines() if line.startswith("Operation"))
    assert head.rstrip().endswith("J/GB above idle") and "MB/s" not in head


def test_only_levels_that_are_named(campaign: str, in_process: InProcess) -> None:
    page = in_process("report", campaign, "--level", "library").out
    assert "Level: library" in page and "Level: filesystem" not in page
    done = in_process("report", campaign, "--level", "library", "--format", "json")
    rows = json.loads(done.out)["characterization"]
    assert [row["level"] for row in rows] == ["library"]


@pytest.mark.parametrize(
    ("word", "first"), [("w", "filesystem"), ("j/gb", "filesystem"), ("mb/j", "filesystem")]
)
def test_rows_are_sorted_the_best_first(
    campaign: str, in_process: InProcess, word: str, first: str
) -> None:
    done = in_process("report", campaign, "--sort", word, "--format", "json")
    rows = json.loads(done.out)["characterization"]
    assert rows[0]["level"] == first


def test_on_a_terminal_every_line_fits(
    campaign: str, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eeio.units.terminal.width", lambda: 80)
    lines = in_process("report", campaign).out.splitlines()
    assert max(map(len, lines)) <= 80
    monkeypatch.setattr("eeio.units.terminal.width", lambda: None)
    assert max(map(len, in_process("report", campaign).out.splitlines())) > 120


@pytest.fixture
def mix(tmp_path: Path) -> str:
    path = tmp_path / "mix.yaml"
    path.write_text(
        "workload:\n  - {operation: write, spatiality: sequential, request_size_bytes: 4k, "
        "cache: {buffer: on}, flush: none, share: 1}\n"
    )
    return str(path)


def _quick(folder: Path, domain: str) -> str:
    """A campaign that is no measurement, whose power is of one domain."""
    plan = design(folder.name, 4, WRITE, measurement=False)
    readings = [energy(20.0 + n, domain=domain) for n in range(4)]
    runs = [run(n, (replace(written(), energy=(r,), until_durable=None),), WRITE)
            for n, r in enumerate(readings)]  # fmt: skip
    return str(stored(folder, runs, plan, machine=replace(MACHINE, hostname=folder.name)))


def test_a_guideline_names_the_domain_that_was_measured(
    tmp_path: Path, mix: str, in_process: InProcess
) -> None:
    sides = ["--traditional", _quick(tmp_path / "a", "package"),
             "--low-power", _quick(tmp_path / "b", "package")]  # fmt: skip
    output = in_process("cost", *sides, "--workload", mix, "--domain", "system", code=2).err
    assert "measured was package: --domain package" in output
    output = in_process("cost", *sides, "--workload", mix).out
    assert "power of the package, the widest domain that every campaign has" in output
    assert output.count("QUICK: not a measurement") == 2


@pytest.mark.parametrize("command", ["report", "compare"])
def test_tables_as_latex(campaign: str, in_process: InProcess, command: str) -> None:
    page = in_process(command, campaign, "--format", "latex").out
    assert page.startswith("% needs") and page.count(r"\begin{table}") == page.count(r"\end{table}")
    assert r"\toprule" in page


def test_what_was_not_measured_is_no_row_of_dashes(tmp_path: Path, in_process: InProcess) -> None:
    plan = replace(design("n", 1, WRITE), not_measured=(NotMeasured(LIBRARY, "IOR is not here"),))
    stored(tmp_path / "n", [run(0, (written(),), WRITE)], plan)
    page = in_process("report", str(tmp_path / "n")).out
    library = page[page.index("Level: library") : page.index("Level: application")]
    assert "dataserver" not in library and "IOR is not here" in library
    assert "1 experiment of this level not measured" in library
    assert "IOR is not here" in page[page.index("Not measured, failed or invalid") :]


def test_a_ranked_figure_of_some_repetitions_only_has_their_number_in_its_row(
    in_process: InProcess,
) -> None:
    lost = Path(__file__).parents[1] / "data/campaigns/lost"
    lines = in_process("report", str(lost)).out.splitlines()
    title = "Energy efficiency (MB/J), measured power, best first in each domain"
    ranking = lines[lines.index(title) :]
    of_system = [line for line in ranking[:10] if line.startswith("system")]
    of_package = [line for line in ranking[:10] if line.startswith("package ")]
    assert len(of_system) == 2 and all("broken, 2 of 4 repetitions" in line for line in of_system)
    assert of_package and not any("repetitions" in line for line in of_package)
