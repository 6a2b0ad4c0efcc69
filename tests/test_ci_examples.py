"""Files for CI services and clusters in the documentation, checked by their own checkers."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.processes import ran

DOCS = Path(__file__).parents[1] / "docs"


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
