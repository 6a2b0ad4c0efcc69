"""A few kills of each target; `tests/kill/run --kills 1000` does more."""

import os
from pathlib import Path

import pytest

from tests.kill.harness import ROOT, TARGETS, UnavailableError, kill_over_and_over

SLOW = (
    "layers", "applications", "workloads", "container", "adaptive", "extend", "reboot", "checkouts",
    "resumes",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TARGETS],
)
def test_nothing_is_lost_doubled_or_left(tmp_path: Path, name: str) -> None:
    if name in ROOT and os.geteuid() != 0:
        pytest.skip("needs root: loop devices, mounts")
    target = TARGETS[name](tmp_path / "home")
    try:
        # The frequency of a study is looked at for a while, and after every kill again; programs
        # are installed and run for a second each.
        few = name in ("settings", "applications", "workloads")
        outcome = kill_over_and_over(target, kills=1 if few else 2, seed=1)
    except UnavailableError as error:
        pytest.skip(str(error))
    finally:
        target.close()
    assert outcome.wrong == []
    assert outcome.kills and outcome.campaigns
