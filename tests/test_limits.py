"""A test that takes too long fails by its name, and the others go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ran

ROOT = Path(__file__).parents[1]

HANGING = """
import time
import pytest

def test_that_waits_for_the_imports_of_the_plug_in():
    pass

@pytest.mark.timeout(0.5)
def test_that_hangs():
    time.sleep(600)

@pytest.fixture
def hanging():
    yield
    time.sleep(600)

@pytest.mark.timeout(0.5)
def test_that_fails_and_hangs_while_cleaning_up(hanging):
    raise ValueError

def test_after_it():
    pass
"""
VARIANTS = """
import pytest

@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("number", range(4))
def test_numbers(number):
    pass

@pytest.mark.slow
def test_long():
    pass
"""


def run(folder: Path, text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_own.py").write_text(text)
    return ran(
        [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-p", "no:cacheprovider", "-c",
         str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-q", *arguments, str(folder)],
        cwd=ROOT, env={**os.environ, "EEIO_TEST_SLOWNESS": "1"}, code=None,
    )  # fmt: skip


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_test_that_hangs_fails_and_the_others_go_on(tmp_path: Path, workers: str) -> None:
    done = run(tmp_path, HANGING, "--numprocesses", workers)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 2 and "test_own.py::test_that_hangs" in failed[0], done.stdout
    assert "Timeout (>0.5s)" in done.stdout and "Timeout (>0.5 s) while cleaning up" in done.stdout
    assert "2 failed, 2 passed, 1 error" in done.stdout, done.stdout


@pytest.mark.parametrize(("marker", "passed"), [("not slow", 2), ("slow", 3), ("", 5)])
def test_slow_variants_run_only_where_all_do(tmp_path: Path, marker: str, passed: int) -> None:
    assert f"{passed} passed" in run(tmp_path, VARIANTS, "-m", marker).stdout
