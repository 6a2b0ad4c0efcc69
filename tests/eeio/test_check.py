"""`eeio check` is the gate of `eeio compare`; its result as JUnit XML and annotations."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.plugin import DATA, InProcess

from eeio.cli import main

BEFORE, AFTER = (str(DATA / "campaigns" / name) for name in ("quick-before", "quick-after"))


def test_it_is_the_gate_of_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main(["compare", BEFORE, AFTER, "--fail-if", "worse:5%:MB/s", "--format", "json"])
    compared = json.loads(capsys.readouterr().out)
    report = tmp_path / "gate.xml"
    checked = main(["check", AFTER, "--against", BEFORE, "--limit", "5%:MB/s", "--format", "json",
                    "--junit", str(report)])  # fmt: skip
    assert checked == status and status in (0, 1, 4)
    assert json.loads(capsys.readouterr().out) == compared
    (gate,) = compared["gate"]
    root = ElementTree.parse(report).getroot()
    (suite,) = root
    names = ("tests", "failures", "errors", "skipped")
    counts = {name: int(suite.get(name)) for name in names}
    assert counts == {
        "tests": len(gate["experiments"]), "failures": gate["worse"], "errors": gate["not_tested"],
        "skipped": gate["not_decided"],
    }  # fmt: skip
    assert [case.get("name") for case in suite] == [row["label"] for row in gate["experiments"]]


def test_an_experiment_that_does_not_pass_is_named_for_the_workflow(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of these quick campaigns some energies are too uncertain for J/GB."""
    report = tmp_path / "gate.xml"
    status = main(["check", AFTER, "--against", BEFORE, "--annotations", "github", "--junit",
                   str(report)])  # fmt: skip
    assert status in (1, 4)
    out = capsys.readouterr().out.splitlines()
    lines = [line for line in out if line.startswith("::error")]
    assert any(line.startswith("::warning title=eeio not decided::") for line in out)
    assert any("title=eeio not tested::" in line and "%25" in line for line in lines)
    root = ElementTree.parse(report).getroot()
    cases = [*root.iter("error"), *root.iter("failure")]
    assert len(cases) == len(lines) > 0 and all(case.get("message") for case in cases)


def test_what_must_not_pass_unnoticed_does_not_pass_undecided(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = tmp_path / "gate.xml"
    command = ["check", AFTER, "--against", BEFORE, "--limit", "5%:MB/s", "--detect", "10%"]
    assert main([*command, "--format", "json", "--junit", str(report)]) == 1
    (gate,) = json.loads(capsys.readouterr().out)["gate"]
    assert gate["detect"] == 0.1 and gate["failed"] and gate["worse"] == 0 < gate["not_decided"]
    assert "(which fails the gate)" in gate["verdict"]
    root = ElementTree.parse(report).getroot()
    errors = [error.get("message") or "" for error in root.iter("error")]
    assert len(errors) == gate["not_decided"]
    assert all("would be found in 9 of 10" in error for error in errors)
    assert all(case.findtext("system-out") for case in root.iter("testcase"))
    assert main([*command, "--undecided", "pass"]) == 0
    assert main([*command[:-2], "--undecided", "fail"]) == 1
    capsys.readouterr()


def test_a_change_to_detect_exceeds_the_tolerated_one(in_process: InProcess) -> None:
    gate = ("compare", BEFORE, AFTER, "--fail-if", "worse:5%")
    assert "a change of 5 % is tolerated" in in_process(*gate, "--detect", "5%", code=2).err
    assert "'5' is not a share" in in_process(*gate, "--detect", "5", code=2).err
    done = in_process("compare", BEFORE, AFTER, "--detect", "5%", code=2)
    assert "--detect: an option of the gate; give --fail-if too" in done.err


def test_what_is_missing_is_named(in_process: InProcess) -> None:
    assert "--against" in in_process("check", "a", code=2).err
    done = in_process("compare", BEFORE, AFTER, "--junit", "x.xml", code=2)
    assert "give --fail-if too" in done.err
