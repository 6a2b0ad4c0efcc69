"""Programs that a test starts and waits for."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]
Code = int | tuple[int, ...] | None


def check_code(done: Done, code: Code = 0) -> None:
    """The program must have ended with this exit code, or with one of these; None: with any."""
    codes = code if isinstance(code, tuple) else (code,)
    known = (done.returncode, done.stdout, done.stderr)
    assert code is None or done.returncode in codes, known


def ran(command: Sequence[str | Path], code: Code = 0, **options: Any) -> Done:
    """Runs a program to its end. Further options are those of subprocess.run."""
    if "input" not in options:
        options = {"stdin": subprocess.DEVNULL, **options}
    settings = {"capture_output": True, "text": True, "timeout": 900, **options}
    done = subprocess.run(command, check=False, **settings)
    check_code(done, code)
    return done
