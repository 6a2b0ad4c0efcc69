"""The page's script by itself: its tests, its lint, and the one text that a page contains."""

import re
import shutil
from pathlib import Path

import pytest

from eeio.report.page.document import script
from tests.processes import ran

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "ci/page/node_modules"
SCRIPT = ROOT / "src/eeio/report/page/script"
TESTS = sorted(str(path) for path in (Path(__file__).parent / "script").glob("*.test.mjs"))


def _run(*command: str) -> None:
    ran(command, cwd=ROOT)


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("needs node")
    return found


@pytest.fixture
def tools(node: str) -> Path:
    if not (TOOLS / ".fetched").exists():
        pytest.skip("needs eslint: ci/page/fetch")
    return TOOLS


def test_the_modules_pass_their_tests(node: str) -> None:
    _run(node, "--test", *TESTS)


def test_the_modules_pass_the_lint(tools: Path) -> None:
    _run(
        str(tools / ".bin/eslint"), "--config", "ci/page/eslint.config.js", str(SCRIPT),
        "tests/page/script",
    )  # fmt: skip


def test_the_modules_use_what_is_rewritten_and_nothing_else() -> None:
    text = script()
    assert not re.findall(r"^\s*(?:import|export)\b.*", text, re.MULTILINE)
    for path in SCRIPT.glob("*.mjs"):
        assert text.count(f"const {path.stem}_module = ") == 1, path


def test_one_text_passes_the_parser(node: str, tmp_path: Path) -> None:
    path = tmp_path / "page.js"
    path.write_text(script(), encoding="utf-8")
    _run(node, "--check", str(path))


def test_the_script_states_what_it_is_and_cannot_leave_its_element() -> None:
    text = script()
    assert "SPDX-License-Identifier: GPL-3.0-or-later" in text[:600]
    assert "</script" not in text and "<!--" not in text


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (ROOT / "ci/page/package-lock.json").read_text()
