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
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors")}
    assert counts == {
        "tests": len(gate["experiments"]), "failures": gate["worse"], "errors": gate["not_tested"],
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
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error")]
    assert any("title=eeio not tested::" in line and "%25" in line for line in lines)
    root = ElementTree.parse(report).getroot()
    cases = [*root.iter("error"), *root.iter("failure")]
    assert len(cases) == len(lines) > 0 and all(case.get("message") for case in cases)


def test_what_is_missing_is_named(in_process: InProcess) -> None:
    assert "--against" in in_process("check", "a", code=2).err
    done = in_process("compare", BEFORE, AFTER, "--junit", "x.xml", code=2)
    assert "give --fail-if too" in done.err
