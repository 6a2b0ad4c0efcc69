"""What the runner adds to a run, beyond the tool itself: 100 runs of a 0.1 s dummy profile.

Prefill, dropping caches and their verification (`prepare_s`) and the sync after a run (`sync_s`)
are counted separately, as they are work for the measurement and not overhead of the runner.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = 102  # three experiments, 34 repetitions


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="eeio-benchmark-", dir=ROOT) as folder:
        home = Path(folder)
        environment = {
            **os.environ,
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
            "EEIO_TEST_PROFILES": str(ROOT / "tests/data/profiles"),
            "EEIO_SUITES": str(ROOT / "tests/data/suites"),
        }
        (home / "target").mkdir()
        subprocess.run(
            [sys.executable, "-m", "eeio", "run", "dummy-suite", "--name", "overhead",
             "--directory", str(home / "target"), "--repetitions", str(RUNS // 3),
             "--meter", "modelled"],
            env=environment, check=True, capture_output=True, timeout=300,
        )  # fmt: skip
        lines = (home / "data/eeio/results/overhead/runs.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    overheads = [
        # From the start of one tool to the start of the next, less all that is accounted for.
        (after["started_monotonic_s"] - after["prepare_s"])
        - (before["started_monotonic_s"] + before["duration_s"] + before["sync_s"])
        for before, after in itertools.pairwise(runs)
    ]
    for name, values in (
        ("runner overhead a run", overheads),
        ("prepare (caches dropped, verified)", [run["prepare_s"] for run in runs]),
        ("sync after the run", [run["sync_s"] for run in runs]),
        ("tool (sleeps 0.1 s)", [run["duration_s"] for run in runs]),
    ):
        print(
            f"{name}: median {statistics.median(values):.4f} s, "
            f"95th percentile {statistics.quantiles(values, n=20)[18]:.4f} s, "
            f"max {max(values):.4f} s"
        )


if __name__ == "__main__":
    main()
