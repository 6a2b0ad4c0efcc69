"""What `eeio bench` costs beside hyperfine: the same command, the same executions, no meter.

Usage: bench_hyperfine.py [--pairs N] [--runs N] [COMMAND]

Both execute COMMAND (true) without a shell, turn about; prints the wall time of each, all included
(starting, a trial, storing and the table), and the ratio of the medians. Goals: 1,000 executions in
at most 3 times hyperfine's time, 10 executions within 0.5 s of it.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", default="true")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1000)
    arguments = parser.parse_args()
    if shutil.which("hyperfine") is None:
        raise SystemExit("hyperfine is not installed")
    ours_s, theirs_s = [], []
    with tempfile.TemporaryDirectory(prefix="eeio-bench-") as name:
        home = Path(name)
        eeio(home, arguments.command, 1, "first")  # installs the profile
        for number in range(arguments.pairs):
            ours_s.append(eeio(home, arguments.command, arguments.runs, f"b{number}"))
            theirs_s.append(hyperfine(arguments.command, arguments.runs))
    ours, theirs = statistics.median(ours_s), statistics.median(theirs_s)
    print(
        f"{arguments.runs} executions of {arguments.command}: {ours:.2f} s in eeio bench, "
        f"{theirs:.2f} s in hyperfine; ratio {ours / theirs:.1f}, difference {ours - theirs:.2f} s"
    )


def eeio(home: Path, command: str, runs: int, name: str) -> float:
    """Wall time of so many executions, s."""
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPYCACHEPREFIX": str(home / "pycache"),  # as after an installation
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = ["bench", "-S", "none", command, "-r", str(runs), "--meter", "none"]
    words += ["--directory", str(home), "--name", name]
    return _lasted_s([sys.executable, "-m", "eeio", *words], environment)


def hyperfine(command: str, runs: int) -> float:
    """Wall time of so many executions, s."""
    words = ["hyperfine", "-N", "-r", str(runs), "-w", "0", command]
    return _lasted_s(words, dict(os.environ))


def _lasted_s(words: list[str], environment: dict[str, str]) -> float:
    began_s = time.monotonic()
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=600)
    return time.monotonic() - began_s


if __name__ == "__main__":
    main()
