"""The stored records of campaigns, and campaigns that a signal ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def records(home: Path, name: str = "c") -> list[dict[str, Any]]:
    """The runs of a campaign of the user whose folder is `home`."""
    return records_in(home / "data/eeio/results" / name)


def records_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def signalled(
    signum: int, progress: str, *arguments: str, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs eeio, sends it the signal at the first line on stderr that begins with `progress`, and
    waits for its end."""
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "eeio", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    if not any(line.startswith(progress) for line in process.stderr):
        pytest.fail(f"the campaign ended before it printed {progress}")
    process.send_signal(signum)
    _, errors = process.communicate(timeout=900)
    return subprocess.CompletedProcess(process.args, process.returncode, "", errors)


def killed(progress: str, *arguments: str) -> None:
    signalled(signal.SIGKILL, progress, *arguments)
