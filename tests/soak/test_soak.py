"""A soak of seconds; `python -m tests.soak` is one of hours."""

import subprocess
import sys

import pytest


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_faults_at_random_moments_leave_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--minutes", "1", "--repetitions", "20"],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 wrong" in done.stdout and " runs, " in done.stdout
