"""The page's script by itself: its tests, its lint, and that what is committed is what it gives."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "ci/page/node_modules"
SCRIPT = ROOT / "result-parsers/eeio_results/report/page/script"
TESTS = sorted(str(path) for path in (Path(__file__).parent / "script").glob("*.test.mjs"))


def _run(*command: str) -> None:
    done = subprocess.run(
        command, cwd=ROOT, timeout=120, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("needs node")
    return found


@pytest.fixture
def tools(node: str) -> Path:
    if not (TOOLS / ".fetched").exists():
        pytest.skip("needs esbuild and eslint: ci/page/build --fetch")
    return TOOLS


def test_the_modules_pass_their_tests(node: str) -> None:
    _run(node, "--test", *TESTS)


def test_the_modules_pass_the_lint(tools: Path) -> None:
    _run(
        str(tools / ".bin/eslint"), "--config", "ci/page/eslint.config.js", str(SCRIPT),
        "tests/page/script",
    )  # fmt: skip


def test_what_is_committed_is_what_the_modules_give(tools: Path) -> None:
    _run("ci/page/build", "--check")


def test_the_script_says_what_it_is_and_cannot_leave_its_element() -> None:
    script = (SCRIPT.parent / "page.js").read_text()
    assert "SPDX-License-Identifier: GPL-3.0-or-later" in script[:600]
    assert "</script" not in script and "<!--" not in script


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (ROOT / "ci/page/package-lock.json").read_text()
