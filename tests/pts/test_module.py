"""The module's own logic, against a stub of PTS's interface: wherever there is a PHP."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eeio_power.simulators import FakeHwmon
from eeio_power.simulators.powercap import FakeRapl, FakeZone
from tests.pts.harness import ROOT

MODULE = ROOT / "power-monitor" / "eeio_power.php"
STUB = Path(__file__).parent / "stub.php"
READ = "level=filesystem operation=read"

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="no php: install php-cli")


def run(
    folder: Path, tests: list[dict[str, Any]], module: Path = MODULE, **settings: str
) -> tuple[int, dict[str, Any], str]:
    """Exit code, what the stub's result file holds, and what was said."""
    folder.mkdir(exist_ok=True)
    own = {key: value for key, value in os.environ.items() if not key.startswith("EEIO_")}
    done = subprocess.run(
        ["php", "-d", "display_errors=stderr", str(STUB), str(module), str(folder)],
        input=json.dumps(tests), capture_output=True, text=True, timeout=60, check=False,
        env={**own, "EEIO_PYTHON": sys.executable, "EEIO_PRESET": "quick", "EEIO_IDLE_S": "0",
             **settings},
    )  # fmt: skip
    line = next((ln for ln in done.stdout.splitlines() if ln.startswith("RESULT ")), "RESULT {}")
    return done.returncode, json.loads(line.removeprefix("RESULT ")), done.stdout + done.stderr


def experiment(arguments: str, *trials: str | None) -> dict[str, Any]:
    return {"name": "eeio-x-1.0.0", "arguments": f"{READ} {arguments}", "trials": trials}


def test_php_finds_no_error_in_it() -> None:
    for path in (MODULE, STUB):
        assert subprocess.run(["php", "-l", str(path)], capture_output=True).returncode == 0


def test_a_failed_trial_does_not_shift_the_energies_of_the_others(tmp_path: Path) -> None:
    with FakeRapl(tmp_path / "r", (FakeZone("intel-rapl:0", "package-0", 1),), lambda _: 100.0):
        code, got, said = run(
            tmp_path / "out", [experiment("a=1", "10", None, "30")],
            EEIO_METER=f"rapl,root={tmp_path}/r",
        )  # fmt: skip
    assert code == 3
    assert "trial 2 failed" in said
    by_scale = {result["scale"]: result for result in got["results"]}
    assert set(by_scale) == {"MB/s", "W", "J", "MB/J"}
    assert by_scale["MB/s"]["raw"] == "10:30"
    assert by_scale["MB/s"]["json"]["eeio"]["trial-of-value"] == [0, 2]
    assert "1 of 3 trials failed" in by_scale["MB/s"]["annotation"]
    powers = [float(word) for word in by_scale["W"]["raw"].split(":")]
    efficiencies = [float(word) for word in by_scale["MB/J"]["raw"].split(":")]
    assert all(power > 0 for power in powers)
    assert efficiencies == pytest.approx([10 / powers[0], 30 / powers[1]], rel=1e-4)
    assert by_scale["MB/J"]["description"].endswith("(rapl package), without drives")
    assert "without" not in by_scale["W"]["description"]
    trials = by_scale["J"]["json"]["eeio"]["trials"]
    assert "drives" in trials[0]["reading"]["leaves_out"]
    assert [trial["failed"] for trial in trials] == [False, True, False]
    assert all(trial["duration_s"] > 0.09 for trial in trials)
    assert got["shares"] is False, "without a terminal nobody can be asked about an upload"


def test_meters_that_contradict_each_other_are_told_in_the_annotation(tmp_path: Path) -> None:
    hwmon = FakeHwmon(tmp_path / "h")
    hwmon.add_chip("power_meter", {"power1_average": 20_000_000, "power1_average_interval": 50})
    with FakeRapl(tmp_path / "r", (FakeZone("intel-rapl:0", "package-0", 1),), lambda _: 100.0):
        code, got, said = run(
            tmp_path / "out", [experiment("a=1", "10")],
            EEIO_METER=f"rapl,root={tmp_path}/r hwmon,root={tmp_path}/h",
        )  # fmt: skip
    assert code == 0, said
    (bandwidth,) = (result for result in got["results"] if result["scale"] == "MB/s")
    assert "doubtful: package (rapl)" in bandwidth["annotation"]
    assert "is in system (hwmon) 20.0 W and draws more" in bandwidth["annotation"]
    shown = {r["description"].rpartition(" - ")[2] for r in got["results"] if r["scale"] == "MB/J"}
    assert shown == {
        "Energy Efficiency (rapl package), without drives", "Energy Efficiency (hwmon system)",
    }  # fmt: skip


TWELVE = [experiment(f"a={k}", *(str(10 * k + n) for n in range(1, 5))) for k in range(1, 4)]


def test_the_random_order_is_the_seeds_and_ends_in_one_entry_each(tmp_path: Path) -> None:
    settings = {
        "EEIO_METER": "none", "EEIO_PROTOCOL": "random", "EEIO_SEED": "5",
        "FORCE_TIMES_TO_RUN": "4",
    }  # fmt: skip
    code, first, _ = run(tmp_path / "a", TWELVE, **settings)
    _, second, _ = run(tmp_path / "b", TWELVE, **settings)
    _, other, _ = run(tmp_path / "c", TWELVE, **settings | {"EEIO_SEED": "6"})
    assert code == 0
    assert first["order"] == second["order"] != other["order"]
    assert len(first["order"]) == 12
    assert first["order"] != sorted(first["order"])
    assert len(first["results"]) == 3
    for k in range(1, 4):
        result = next(r for r in first["results"] if f"a={k} " in r["description"])
        assert result["raw"] == ":".join(str(10 * k + n) for n in range(1, 5))
        assert float(result["value"]) == 10 * k + 2.5
    assert first["stored"]["EEIO_SEED"] == 5
    assert first["posts"] == ["local/eeio-x-1.0.0 post"], "the files are removed at the end, once"
    assert first["keep"] is False


def test_an_experiment_of_which_every_trial_fails_keeps_one_empty_entry(tmp_path: Path) -> None:
    """PTS crashes when it has to overwrite its own empty entry for the third time."""
    code, got, said = run(
        tmp_path / "out", [experiment("a=1", None, None, None)],
        EEIO_METER="none", EEIO_PROTOCOL="random", FORCE_TIMES_TO_RUN="3",
    )  # fmt: skip
    assert code == 3
    assert said.count("failed, it has no values") == 3
    assert [result["value"] for result in got["results"]] == [""]


def test_modelled_values_are_called_estimates(tmp_path: Path) -> None:
    code, got, said = run(tmp_path / "out", [experiment("a=1", "10")], EEIO_METER="modelled")
    assert code == 0, said
    derived = [result for result in got["results"] if result["scale"] != "MB/s"]
    assert {result["scale"] for result in derived} == {"W", "J", "MB/J"}
    assert all("ESTIMATE" in r["title"] and "ESTIMATE" in r["description"] for r in derived)


def test_without_the_python_package_the_bandwidths_stand_alone(tmp_path: Path) -> None:
    alone = tmp_path / "modules" / "eeio_power.php"
    alone.parent.mkdir()
    shutil.copy(MODULE, alone)
    code, got, said = run(tmp_path / "out", [experiment("a=1", "10")], alone)
    assert code == 0
    assert "no power: the Python package eeio_power does not lie beside" in said
    assert [result["scale"] for result in got["results"]] == ["MB/s"]
    code, _, said = run(tmp_path / "out2", [experiment("a=1", "10")], alone, EEIO_METER="rapl")
    assert code == 2
    assert "does not lie beside" in said


def test_a_result_file_cut_off_by_a_full_disk_is_put_back(tmp_path: Path) -> None:
    """The stub is told to write half of it, as PTS does when the disk is full."""
    code, _, said = run(
        tmp_path / "out", [experiment("a=1", "10")], EEIO_METER="none", STUB_DISK_FULL="1"
    )
    assert code == 3
    assert "could not be written whole" in said
    assert (tmp_path / "out" / "result" / "composite.xml").read_text() == "<x/>"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("EEIO_PROTOCOL", "chaos"),
        ("EEIO_PRESET", "huge"),
        ("EEIO_METER", "rapl,root=/nowhere"),
        ("EEIO_METER", "crystal-ball"),
        ("EEIO_IDLE_S", "-1"),
        ("EEIO_SETTLE_S", "long"),
        ("EEIO_PYTHON", "/bin/false"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, setting: str, value: str
) -> None:
    code, _, said = run(tmp_path / "out", [experiment("a=1", "1")], **{setting: value})
    assert code == 2
    lines = [line for line in said.splitlines() if line.startswith("eeio_power:")]
    assert len(lines) == 1
    assert value.partition("=")[2] in lines[0] or value in lines[0]


def test_a_seed_that_is_no_number_is_refused(tmp_path: Path) -> None:
    code, _, said = run(
        tmp_path / "out", [experiment("a=1", "1")], EEIO_PROTOCOL="random", EEIO_SEED="dice"
    )
    assert code == 2
    assert "EEIO_SEED=dice" in said


# Says who asked, and nothing to the first one before the second one has asked.
LATE = """#!{python}
import json, sys
print('{{"meters": []}}', flush=True)
first, second = sys.stdin.readline(), sys.stdin.readline()
for line in (first, second):
    print(json.dumps({{"to": json.loads(line)["do"]}}), flush=True)
sys.stdin.readline()
"""
ASK_TWICE = """<?php
class pts_module_interface {}
require $argv[1];
$session = new eeio_power_session(array(), $argv[2] . '/power.csv.gz', false);
$short = 0.2 - eeio_power_session::START_LIMIT_S;
try { $session->ask(array('do' => 'one'), $short); echo 'answered'; }
catch(RuntimeException $error) { echo $error->getMessage(); }
echo PHP_EOL . json_encode($session->ask(array('do' => 'two'), 0));
$session->close();
"""


def test_an_answer_that_comes_late_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    session, script = tmp_path / "session", tmp_path / "ask.php"
    session.write_text(LATE.format(python=sys.executable))
    session.chmod(0o755)
    script.write_text(ASK_TWICE)
    done = subprocess.run(
        ["php", str(script), str(MODULE), str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "EEIO_PYTHON": str(session)},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["the power session does not answer", '{"to":"two"}']
