"""Files for CI services and clusters in the documentation, checked by their own checkers."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.processes import ran

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def blocks() -> list[str]:
    guide = (DOCS / "how-to/gate-a-change-in-ci.md").read_text()
    return re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)


def test_the_workflow_for_github_is_valid(tmp_path: Path) -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed")
    workflow = tmp_path / "gate.yml"
    workflow.write_text(blocks()[0])
    done = ran([program, str(workflow)])
    assert done.stdout == ""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_the_project_s_own_workflows_are_valid_and_call_its_scripts(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    scripts = {command.split()[0] for command in commands if re.match(r"(ci|scripts)/", command)}
    assert scripts and all((ROOT / script).is_file() for script in scripts)
    program = shutil.which("actionlint")
    if program is not None:
        assert ran([program, str(workflow)]).stdout == ""


def test_both_examples_run_the_gate_after_the_campaign() -> None:
    github, gitlab = map(yaml.safe_load, blocks())
    steps = [step["run"] for step in github["jobs"]["io-energy"]["steps"]]
    for first, second in (steps, gitlab["io-energy"]["script"]):
        assert first.startswith("eeio run ") and "--yes" in first
        assert second.startswith("eeio check ") and "--limit 5%" in second


def test_the_job_for_kubernetes_is_valid() -> None:
    text = (DOCS / "cluster/kubernetes-job.yaml").read_text()
    job = yaml.safe_load(text)
    spec = job["spec"]
    assert spec["completions"] == spec["parallelism"]
    (container,) = spec["template"]["spec"]["containers"]
    assert "eeio resume" in container["args"][0] and "eeio run" in container["args"][0]
    checker = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    checker.validate(job, checker.latest_version(), strict=True)
