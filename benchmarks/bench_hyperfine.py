"""What `eeio bench` costs beside hyperfine: the same command, the same repetitions, no meter.

Usage: bench_hyperfine.py [--pairs N] [COMMAND]

Both run COMMAND (true) through a shell, turn about; prints the time of an execution in each, all
included (starting, calibrating, storing), and the ratio of the medians. eeio repeats what is over
soon inside a run and says how often; hyperfine is asked for as many runs. Goal: at most 1.3.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", nargs="?", default="true")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    if shutil.which("hyperfine") is None:
        raise SystemExit("hyperfine is not installed")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="eeio-bench-") as name:
        home = Path(name)
        eeio(home, arguments.command, "first")  # installs the profile
        for number in range(arguments.pairs):
            each_s, executions = eeio(home, arguments.command, f"b{number}")
            ours.append(each_s)
            theirs.append(hyperfine(arguments.command, executions))
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"{arguments.command}: an execution takes {1e3 * statistics.median(ours):.3f} ms in eeio "
        f"bench, {1e3 * statistics.median(theirs):.3f} ms in hyperfine; ratio "
        f"{statistics.median(ours) / statistics.median(theirs):.2f} (pairs {ratios[0]:.2f} to "
        f"{ratios[-1]:.2f})"
    )


def eeio(home: Path, command: str, name: str) -> tuple[float, int]:
    """Seconds of an execution, all included, and how many there were."""
    arguments = [
        sys.executable, "-m", "eeio", "bench", command, "-r", str(RUNS), "--meter", "none",
        "--directory", str(home), "--name", name, "--format", "json",
    ]  # fmt: skip
    environment = {
        **os.environ, "XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state"),
    }  # fmt: skip
    began_s = time.monotonic()
    done = subprocess.run(arguments, env=environment, check=True, capture_output=True, timeout=600)
    lasted_s = time.monotonic() - began_s
    executions = json.loads(done.stdout)["commands"][0]["executions"]
    return lasted_s / executions, executions


def hyperfine(command: str, runs: int) -> float:
    arguments = ["hyperfine", "--style", "none", "--runs", str(runs), command]
    began_s = time.monotonic()
    subprocess.run(arguments, check=True, capture_output=True, timeout=600)
    return (time.monotonic() - began_s) / runs


if __name__ == "__main__":
    main()
