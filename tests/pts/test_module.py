"""The module's own logic, against a stub of PTS's interface: wherever there is a PHP."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eeio.pts import entry
from tests.clock import Clock
from tests.executables import executable
from tests.own_meter import BENCH
from tests.processes import ran
from tests.pts.harness import ROOT, TRIVIAL, make_trivial_profile
from tests.simulators import FakeHwmon
from tests.simulators.powercap import FakeRapl, FakeZone

MODULE = ROOT / "power-monitor" / "eeio_power.php"
STUB = Path(__file__).parent / "stub.php"
READ = "level=filesystem operation=read"

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="no php: install php-cli")


def run(
    folder: Path,
    tests: list[dict[str, Any]],
    module: Path = MODULE,
    suites: Sequence[str] = (),
    **settings: str,
) -> tuple[int, dict[str, Any], str]:
    """Exit code, what the stub's result file holds, and what was said."""
    folder.mkdir(exist_ok=True)
    shutil.rmtree(folder / "result", ignore_errors=True)
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("EEIO_") or key == "EEIO_LOCKS"
    }
    done = ran(
        ["php", "-d", "display_errors=stderr", str(STUB), str(module), str(folder), *suites],
        input=json.dumps(tests),
        env={
            **own,
            "EEIO_PYTHON": sys.executable,
            "EEIO_PRESET": "quick",
            "EEIO_IDLE_S": "0",
            **settings,
        },
        code=None,
    )
    line = next((ln for ln in done.stdout.splitlines() if ln.startswith("RESULT ")), "RESULT {}")
    got = json.loads(line.removeprefix("RESULT "))
    for result in got.get("results", ()):
        if isinstance(result["json"], dict) and "eeio" in result["json"]:
            entry.check(result["json"]["eeio"])  # the published form, whatever the test is of
    return done.returncode, got, done.stdout + done.stderr


def experiment(arguments: str, *trials: str | None) -> dict[str, Any]:
    return {"name": "eeio-x-1.0.0", "arguments": f"{READ} {arguments}", "trials": trials}


def test_php_finds_no_error_in_it() -> None:
    parts = sorted((MODULE.parent / "pts_module").glob("*.php"))
    assert len(parts) > 5
    for path in (MODULE, *parts, STUB):
        assert subprocess.run(["php", "-l", str(path)], capture_output=True).returncode == 0
        assert len(path.read_text().splitlines()) <= 300, path


def test_a_failed_trial_does_not_shift_the_energies_of_the_others(tmp_path: Path) -> None:
    with FakeRapl(tmp_path / "r", (FakeZone("intel-rapl:0", "package-0", 1),), lambda _: 100.0):
        code, got, message = run(
            tmp_path / "out", [experiment("a=1", "10", None, "30")],
            EEIO_METER=f"rapl,root={tmp_path}/r",
        )  # fmt: skip
    assert code == 3
    assert "trial 2 failed" in message
    by_scale = {result["scale"]: result for result in got["results"]}
    assert set(by_scale) == {"MB/s", "W", "J", "MB/J"}
    assert by_scale["MB/s"]["raw"] == "10:30"
    assert by_scale["MB/s"]["json"]["eeio"]["trial-of-value"] == [0, 2]
    assert "1 of 3 trials failed" in by_scale["MB/s"]["annotation"]
    powers = [float(word) for word in by_scale["W"]["raw"].split(":")]
    efficiencies = [float(word) for word in by_scale["MB/J"]["raw"].split(":")]
    assert all(power > 0 for power in powers)
    assert efficiencies == pytest.approx([10 / powers[0], 30 / powers[1]], rel=1e-4)
    # A package with one power at all loads is doubtful on a busy machine.
    description = by_scale["MB/J"]["description"].removesuffix(", doubtful")
    assert description.endswith("(rapl package), without drives")
    assert "without" not in by_scale["W"]["description"]
    trials = by_scale["J"]["json"]["eeio"]["trials"]
    assert "drives" in trials[0]["reading"]["leaves_out"]
    assert [trial["failed"] for trial in trials] == [False, True, False]
    assert all(trial["duration_s"] > 0.09 for trial in trials)
    assert got["shares"] is False, "without a terminal nobody can be asked about an upload"


def test_demo_power_is_marked_and_not_offered_for_an_upload(tmp_path: Path) -> None:
    code, got, message = run(tmp_path / "out", [experiment("a=1", "10")], EEIO_METER="demo")
    assert code == 0, message
    assert "demo (DEMO, not a measurement)" in message
    assert "the power is fictitious (meter demo), so that the results are not uploaded" in message
    of_power = [result for result in got["results"] if result["scale"] != "MB/s"]
    assert {result["scale"] for result in of_power} >= {"W", "J"}
    assert all(" - DEMO: " in result["description"] for result in of_power)
    assert got["shares"] is False


# What a tool of ours leaves: a phase of 0.5 s; I/O, at 100 MB/s, went on in `share` of it.
TOOL = """
import json, os, sys, time
share = float(sys.argv[1])
start_s = time.monotonic()
time.sleep(0.5)
end_s = time.monotonic()
phase = {"name": "read", "operation": "read", "spatiality": "sequential",
         "request_size_bytes": 4096, "bytes_moved": int(1e8 * share * (end_s - start_s)),
         "start_monotonic_s": start_s, "end_monotonic_s": end_s, "bandwidth_bytes_per_s": 1e8,
         "metrics": {}}
with open(os.environ["EEIO_OUTPUT_DIR"] + "/eeio.json", "w") as file:
    json.dump({"schema_version": 1, "context": [], "phases": [phase]}, file)
"""


def run_with_share(folder: Path, share: float) -> tuple[int, dict[str, Any], str]:
    make_trivial_profile(folder / "profiles")
    (folder / "tool.py").write_text(TOOL)
    test = {"name": TRIVIAL, "arguments": READ, "trials": ["100", "100"],
            "tool": f"exec {sys.executable} {folder}/tool.py {share}"}  # fmt: skip
    with FakeRapl(folder / "r", (FakeZone("intel-rapl:0", "package-0", 1),), lambda _: 100.0):
        return run(
            folder / "out", [test], EEIO_METER=f"rapl,root={folder}/r",
            EEIO_TEST_PROFILES=str(folder / "profiles"),
        )  # fmt: skip


def test_a_trial_that_computes_half_of_the_time_has_no_efficiency(tmp_path: Path) -> None:
    """BT-IO computes between its writes: its mean power is not that of its I/O."""
    code, got, output = run_with_share(tmp_path, 0.5)
    assert code == 0, output
    assert {result["scale"] for result in got["results"]} == {"MB/s", "W", "J"}
    (bandwidth,) = (result for result in got["results"] if result["scale"] == "MB/s")
    message = "2 of 2 trials have no MB/J of rapl package: I/O covers 50% of the power window"
    assert message in bandwidth["annotation"]
    reported = bandwidth["json"]["eeio"]["told"][0]
    assert set(reported) == {
        "phases", "context", "notes", "device", "device_reason", "disk_cache_found"
    }  # fmt: skip


def test_the_efficiency_is_of_the_time_that_the_tool_did_io_in(tmp_path: Path) -> None:
    code, got, message = run_with_share(tmp_path, 1.0)
    assert code == 0, message
    by_scale = {result["scale"]: result for result in got["results"]}
    phases = [reported["phases"][0] for reported in by_scale["MB/s"]["json"]["eeio"]["told"]]
    expected = [100.0 / phase["energy"][0]["power_w"] for phase in phases]
    shown = [float(word) for word in by_scale["MB/J"]["raw"].split(":")]
    assert shown == pytest.approx(expected, rel=1e-4)
    # A busy machine may move the simulated counter late, which is marked as doubtful.
    assert "no MB/J" not in (by_scale["MB/s"]["annotation"] or "")
    assert "efficiency" not in by_scale["J"]["json"]["eeio"]["trials"][0]


def test_meters_that_contradict_each_other_are_reported_in_the_annotation(tmp_path: Path) -> None:
    hwmon = FakeHwmon(tmp_path / "h")
    hwmon.add_chip("power_meter", {"power1_average": 20_000_000, "power1_average_interval": 50})
    with FakeRapl(tmp_path / "r", (FakeZone("intel-rapl:0", "package-0", 1),), lambda _: 100.0):
        code, got, message = run(
            tmp_path / "out", [experiment("a=1", "10")],
            EEIO_METER=f"rapl,root={tmp_path}/r hwmon,root={tmp_path}/h",
        )  # fmt: skip
    assert code == 0, message
    (bandwidth,) = (result for result in got["results"] if result["scale"] == "MB/s")
    assert "doubtful: package (rapl)" in bandwidth["annotation"]
    assert "is in system (hwmon) 20.0 W and draws more" in bandwidth["annotation"]
    shown = {r["description"].rpartition(" - ")[2] for r in got["results"] if r["scale"] == "MB/J"}
    assert "Mean Energy Efficiency (rapl package), without drives, doubtful" in shown
    # A trial on an idle machine is too short for the slower meter; a busy machine makes it longer.
    with_mb_per_j = any("Mean Energy Efficiency (hwmon system)" in text for text in shown)
    reason = "no MB/J of hwmon system: the energy is known only to"
    assert with_mb_per_j != (reason in bandwidth["annotation"])


TWELVE = [experiment(f"a={k}", *(str(10 * k + n) for n in range(1, 5))) for k in range(1, 4)]


@pytest.mark.slow
def test_the_random_order_is_the_seeds_and_ends_in_one_entry_each(tmp_path: Path) -> None:
    settings = {
        "EEIO_METER": "none", "EEIO_PROTOCOL": "random", "EEIO_SEED": "5",
        "FORCE_TIMES_TO_RUN": "4",
    }  # fmt: skip
    code, first, message = run(tmp_path / "a", TWELVE, **settings)
    _, second, _ = run(tmp_path / "b", TWELVE, **settings)
    _, other, _ = run(tmp_path / "c", TWELVE, **settings | {"EEIO_SEED": "6"})
    assert code == 0, message
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


def test_the_repetitions_are_those_of_the_suites_protocol(tmp_path: Path) -> None:
    """The table that stood in the module said 5 where eeio-suite says 6."""
    settings = {"EEIO_METER": "none", "EEIO_PROTOCOL": "random", "EEIO_PRESET": "standard",
                "EEIO_SETTLE_S": "0"}  # fmt: skip
    values = [str(value) for value in range(1, 10)]
    code, got, message = run(tmp_path / "a", [experiment("a=1", *values)], **settings)
    assert code == 0, message
    assert len(got["order"]) == 6
    suite = tmp_path / "b" / "test-suites" / "local" / "eeio-mine"
    suite.mkdir(parents=True)
    (suite / "suite-definition.xml").write_text(
        "<PhoronixTestSuite><Execute><Test>pts/x</Test></Execute></PhoronixTestSuite>"
    )
    (suite / "protocol.yaml").write_text(
        "presets: {standard: {repetitions: 2, settle_s: 0, idle_s: 0, is_measurement: true}}\n"
    )
    code, got, message = run(
        tmp_path / "b", [experiment("a=1", *values)], suites=["eeio-mine"], **settings
    )
    assert code == 0, message
    assert len(got["order"]) == 2
    code, _, message = run(
        tmp_path / "b", [experiment("a=1", "1")], suites=["eeio-mine"],
        **settings | {"EEIO_PRESET": "quick"},
    )  # fmt: skip
    assert code == 2
    assert "suite eeio-mine has no preset 'quick'" in message


def test_what_the_preset_leaves_out_is_not_run(tmp_path: Path) -> None:
    suite = tmp_path / "test-suites" / "local" / "eeio-mine"
    suite.mkdir(parents=True)
    entries = "".join(
        f"<Execute><Test>eeio-x-1.0.0</Test><Arguments>{READ} a={a}</Arguments></Execute>"
        for a in (1, 2)
    )
    (suite / "suite-definition.xml").write_text(f"<PhoronixTestSuite>{entries}</PhoronixTestSuite>")
    (suite / "protocol.yaml").write_text(
        "presets: {quick: {repetitions: 2, settle_s: 0, idle_s: 0, is_measurement: false,\n"
        "  leave_out: [{profile: eeio-x-1.0.0, factors: {a: '2'}, reason: too slow}]}}\n"
    )
    code, got, message = run(
        tmp_path, [experiment("a=1", "1"), experiment("a=2", "1")], suites=["eeio-mine"],
        EEIO_METER="none", EEIO_PROTOCOL="native",
    )  # fmt: skip
    assert code == 0, message
    assert got["order"] == [f"eeio-x-1.0.0 {READ} a=1"]
    assert "the preset quick leaves out 1 tests of the suite" in message


def test_without_a_protocol_the_random_order_requires_its_numbers(tmp_path: Path) -> None:
    python = without_packages(tmp_path)
    settings = {"EEIO_METER": "none", "EEIO_PROTOCOL": "random", "EEIO_PYTHON": python}
    alone = copied_module(tmp_path)
    code, _, message = run(tmp_path / "a", [experiment("a=1", "1")], alone, **settings)
    assert code == 2
    assert (
        "the protocol of the suite is not known" in message and "give FORCE_TIMES_TO_RUN" in message
    )
    settings |= {"FORCE_TIMES_TO_RUN": "1", "EEIO_SETTLE_S": "0"}
    code, got, message = run(tmp_path / "b", [experiment("a=1", "1")], alone, **settings)
    assert code == 0, message
    assert len(got["order"]) == 1


def test_an_experiment_of_which_every_trial_fails_keeps_one_empty_entry(tmp_path: Path) -> None:
    """PTS crashes when it has to overwrite its own empty entry for the third time."""
    code, got, message = run(
        tmp_path / "out", [experiment("a=1", None, None, None)],
        EEIO_METER="none", EEIO_PROTOCOL="random", FORCE_TIMES_TO_RUN="3",
    )  # fmt: skip
    assert code == 3
    assert message.count("failed, it has no values") == 3
    assert [result["value"] for result in got["results"]] == [""]


def test_modelled_values_are_called_estimates(tmp_path: Path) -> None:
    # Long enough for a reading on a busy machine, too.
    tool = {**experiment("a=1", "10"), "tool": "exec sleep 2"}
    code, got, message = run(tmp_path / "out", [tool], EEIO_METER="modelled")
    assert code == 0, message
    derived = [result for result in got["results"] if result["scale"] != "MB/s"]
    assert {result["scale"] for result in derived} == {"W", "J", "MB/J"}
    assert all("ESTIMATE" in r["title"] and "ESTIMATE" in r["description"] for r in derived)


def copied_module(folder: Path) -> Path:
    """The module with its classes, away from the Python packages."""
    module = folder / "module" / "eeio_power.php"
    module.parent.mkdir()
    shutil.copy(MODULE, module)
    shutil.copytree(MODULE.parent / "pts_module", module.parent / "pts_module")
    return module


def without_packages(folder: Path) -> str:
    """A Python that finds the standard library alone."""
    python = executable(folder / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    return str(python)


def test_without_the_python_package_the_bandwidths_stand_alone(tmp_path: Path) -> None:
    alone = copied_module(tmp_path)
    bare = {"EEIO_PYTHON": without_packages(tmp_path)}
    code, got, message = run(tmp_path / "out", [experiment("a=1", "10")], alone, **bare)
    assert code == 0, message
    assert "no power: the power session has ended: " in message
    assert "No module named 'eeio'" in message
    assert [result["scale"] for result in got["results"]] == ["MB/s"]
    code, _, message = run(
        tmp_path / "out2", [experiment("a=1", "10")], alone, EEIO_METER="rapl", **bare
    )
    assert code == 2
    assert "No module named 'eeio'" in message


def test_an_installed_copy_finds_the_packages_and_meters_of_ones_own(tmp_path: Path) -> None:
    """In the image the packages lie where Python looks by itself, and not beside the module."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bench.py").write_text(BENCH)
    code, got, message = run(
        tmp_path / "out", [experiment("a=1", "10")], copied_module(tmp_path),
        EEIO_METERS=str(tmp_path / "mine"), EEIO_METER="bench",
    )  # fmt: skip
    assert code == 0, message
    by_scale = {result["scale"]: result for result in got["results"]}
    assert float(by_scale["W"]["value"]) == 7.5
    assert float(by_scale["MB/J"]["value"]) == pytest.approx(10 / 7.5, rel=1e-4)
    code, _, message = run(
        tmp_path / "out2", [experiment("a=1", "10")],
        EEIO_METERS=str(tmp_path / "none"), EEIO_METER="bench",
    )  # fmt: skip
    assert code == 2
    assert f"EEIO_METERS: {tmp_path}/none: No such file" in message


def test_a_module_that_was_copied_without_its_classes_is_reported(tmp_path: Path) -> None:
    alone = tmp_path / "eeio_power.php"
    shutil.copy(MODULE, alone)
    code, _, message = run(tmp_path / "out", [experiment("a=1", "10")], alone)
    assert code == 2
    assert f"the folder pts_module does not lie beside {alone}" in message


def test_the_module_finds_its_classes_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "modules" / "eeio_power.php"
    link.parent.mkdir()
    link.symlink_to(MODULE)
    code, got, message = run(tmp_path / "out", [experiment("a=1", "10")], link, EEIO_METER="none")
    assert code == 0, message
    assert [result["scale"] for result in got["results"]] == ["MB/s"]


def test_a_result_file_cut_off_by_a_full_disk_is_put_back(tmp_path: Path) -> None:
    """The stub is told to write half of it, as PTS does when the disk is full."""
    code, _, message = run(
        tmp_path / "out", [experiment("a=1", "10")], EEIO_METER="none", STUB_DISK_FULL="1"
    )
    assert code == 3
    assert "could not be written whole" in message
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
def test_a_setting_that_cannot_be_is_rejected_in_one_line(
    tmp_path: Path, setting: str, value: str
) -> None:
    code, _, message = run(tmp_path / "out", [experiment("a=1", "1")], **{setting: value})
    assert code == 2
    lines = [line for line in message.splitlines() if line.startswith("eeio_power:")]
    assert len(lines) == 1
    assert value.partition("=")[2] in lines[0] or value in lines[0]


def test_a_seed_that_is_no_number_is_rejected(tmp_path: Path) -> None:
    code, _, message = run(
        tmp_path / "out", [experiment("a=1", "1")], EEIO_PROTOCOL="random", EEIO_SEED="dice"
    )
    assert code == 2
    assert "EEIO_SEED=dice" in message


# Says who asked, and nothing to the first one before the second one has asked.
LATE = """#!{python}
import json, sys
print('{{"meters": []}}', flush=True)
first, second = sys.stdin.readline(), sys.stdin.readline()
for line in (first, second):
    print(json.dumps({{"to": json.loads(line)["do"]}}), flush=True)
sys.stdin.readline()
"""
REQUEST_TWICE = """<?php
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
    executable(session, LATE.format(python=sys.executable))
    script.write_text(REQUEST_TWICE)
    done = ran(
        ["php", str(script), str(MODULE), str(tmp_path)],
        env={**os.environ, "EEIO_PYTHON": str(session)},
        code=None,
    )
    assert done.stdout.splitlines() == ["the power session does not answer", '{"to":"two"}']


# Answers in three parts, with the clock set ahead between them, each part only after PHP has read
# the one before it.
STEPPED = """#!{python}
import array, fcntl, json, sys, termios
from pathlib import Path

def send(text):
    print(text, end="", flush=True)
    unread = array.array("i", [1])
    while unread[0]:
        fcntl.ioctl(1, termios.FIONREAD, unread)

print('{{"meters": []}}', flush=True)
sys.stdin.readline()
send('{{"to":')
Path({clock!r}).write_text("3600")
send('"o')
print('ne"}}', flush=True)
sys.stdin.readline()
"""
REQUEST_ONCE = """<?php
class pts_module_interface {}
require $argv[1];
$session = new eeio_power_session(array(), $argv[2] . '/power.csv.gz', false);
echo json_encode($session->try_to_ask(array('do' => 'one'), 0));
$session->close();
"""


def test_an_answer_is_awaited_while_the_clock_is_set(tmp_path: Path) -> None:
    """An hour ahead: "the power session does not answer", and no power of the rest."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    clock = Clock(tmp_path)
    session, script = tmp_path / "session", tmp_path / "ask.php"
    stepped = STEPPED.format(python=sys.executable, clock=clock.environment["CLOCK_OFFSET_FILE"])
    executable(session, stepped)
    script.write_text(REQUEST_ONCE)
    done = ran(
        ["php", str(script), str(MODULE), str(tmp_path)],
        env={**os.environ, **clock.environment, "EEIO_PYTHON": str(session)},
        code=None,
    )
    assert done.stdout == '{"to":"one"}'
