"""`eeio plan` tells all before it refuses; `eeio doctor` begins with what can be measured."""

import json
from pathlib import Path

import pytest
from tests import suites
from tests.executables import executable
from tests.plugin import Eeio, InProcess

from eeio.cli import main
from eeio.measure import doctor as examination
from eeio.measure.doctor import Finding, can_measure

HUGE = "eeio-suite"


def _plan(eeio: Eeio, home: Path, *arguments: str) -> "tuple[int, str, str]":
    done = eeio.plan("dummy-suite", "--allow-memory-filesystem", *arguments, code=None)
    return done.returncode, done.stdout, done.stderr


def test_a_meter_that_run_rejects_is_rejected_after_the_plan(home: Path, eeio: Eeio) -> None:
    code, out, err = _plan(eeio, home, "--meter", "foo")
    assert code == 2
    assert "about " in out and "would be touched" in out
    assert "`eeio run` would refuse this" in err and "no meter 'foo'" in err
    assert _plan(eeio, home, "--meter", "none")[0] == 0


def test_without_the_room_it_still_reports_the_time(home: Path, eeio: Eeio) -> None:
    """No disk has room for a run of 2^60 bytes."""
    done = eeio.plan(
        "eeio-suite", "--work", "1048576t", "--meter", "none", "--allow-memory-filesystem",
        code=2,
    )  # fmt: skip
    assert "about " in done.stdout and "GB written" in done.stdout
    assert "would refuse this" in done.stderr and "free" in done.stderr


def test_an_entry_without_a_level_has_the_profiles_defaults(home: Path, eeio: Eeio) -> None:
    """As PTS's module and the profile itself: an experiment of `context` is in no table."""
    entry = ("iozone", "operation=write buffer=on", "IOzone")
    suite = suites.written(home / "bare", [entry])
    done = eeio.plan(
        str(suite),
        "--allow-memory-filesystem",
        "--meter",
        "none",
        "--format",
        "json",
        "--preset",
        "quick",
    )
    (experiment,) = json.loads(done.stdout)["experiments"]
    assert (experiment["level"], experiment["operation"]) == ("filesystem", "write")
    assert (experiment["spatiality"], experiment["request_size"]) == ("sequential", "4m")


def test_an_entry_whose_level_is_unknown_is_rejected(home: Path, eeio: Eeio) -> None:
    suite = suites.written(home / "bare", [("dummy", "operation=read", "Read")])
    failed = eeio.plan(str(suite), "--allow-memory-filesystem", "--preset", "quick", code=2)
    assert "eeio-dummy-1.0.0 'Read': the level is missing. Add level=filesystem" in failed.stderr


def _tool(name: str, found: bool, program: str | None = None) -> Finding:
    return Finding("tool", name, found, "", "", "", program)


def _meter(name: str, found: bool) -> Finding:
    return Finding("meter", name, found, "measured, package")


def test_what_can_be_measured_comes_first() -> None:
    bandwidth, energy, _ = can_measure(
        [_tool("fio", True), _tool("ior", False), _meter("rapl", False), _meter("modelled", True)]
    )
    assert bandwidth == "bandwidth: yes, by fio"
    assert energy.startswith("energy: no: no meter was found")
    _, energy, _ = can_measure([_meter("rapl", True)])
    assert energy == "energy: yes, by rapl (measured, package)"
    bandwidth, _, _ = can_measure([_tool("fio", False)])
    assert bandwidth.startswith("bandwidth: no")


def test_a_program_whose_profile_is_not_installed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a fresh data folder looks like: fio is there, nothing of eeio's is installed."""
    monkeypatch.delenv("EEIO_TEST_PROFILES")
    monkeypatch.setenv("PATH", str(home / "bin"))
    executable(home / "bin/fio", "#!/bin/sh\n")
    found = {f.name: f for f in examination._tools()}
    fio = found["fio"]
    assert not fio.found and fio.program == str(home / "bin/fio")
    assert "its profile is not installed yet" in fio.detail
    assert fio.remedy == "eeio profile install eeio-fio-1.0.0"
    assert can_measure([fio])[0] == "bandwidth: yes, by fio (to be installed)"
    assert main(["doctor", "--require", "fio"]) == 0
    (home / "bin/fio").unlink()
    (unknown,) = [f for f in examination._tools() if f.name == "fio"]
    assert (unknown.cost or "").startswith("none if the first run that needs it can install it")
    assert main(["doctor", "--require", "fio"]) == 1


def test_options_of_a_run_are_taken_as_they_are(home: Path, eeio: Eeio) -> None:
    assert _plan(eeio, home, "--meter", "none", "--name", "x", "--yes")[0] == 0


@pytest.mark.parametrize("command", ["list", "doctor", "plan"])
def test_each_command_has_help_all(command: str, in_process: InProcess) -> None:
    assert f"usage: eeio {command}" in in_process(command, "--help-all").out


def test_the_json_reports_it_too(eeio: Eeio) -> None:
    body = eeio.json("doctor")
    assert [line.partition(":")[0] for line in body["can_measure"][:2]] == ["bandwidth", "energy"]
    assert eeio("doctor").stdout.startswith("bandwidth: ")
