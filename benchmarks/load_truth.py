"""eeio-load against a machine whose power is a known line of its load.

Usage (as root): load_truth.py [--rate BYTES_PER_S] DIR

An ext4 on a loop device over an image in DIR, which the kernel's block control groups (version 1)
hold to a rate. The simulated meter draws 20 W and 0.2 J for each MB that the device's own counters
saw. Runs the preset quick of eeio-load there and prints how far each load was from what was
offered, and the overall figure (bytes over joules of all steps) over that of the line. Goals: 2 %
up to 90 % of load, and 1 %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# As a script it is to find the parts beside it, as with -m.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.throttled import throttled
from tests.simulators.powercap import FakeRapl

IDLE_W, J_PER_BYTE = 20.0, 0.2e-6
PACKAGE = 0.8  # of what the simulated machine draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rate", type=int, default=100_000_000)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=arguments.directory) as name,
        throttled(
            Path(name), arguments.rate, 512 << 20, ("read", "write"), attach=("--direct-io=on",)
        ) as (target, sysfs),
        FakeRapl(Path(name) / "powercap", power_w=Line(sysfs / "stat")),
    ):
        show(reported(Path(name), target))


class Line:
    """The machine's power over the time since it was last asked."""

    def __init__(self, stat: Path) -> None:
        self._stat = stat
        self._time_s = 0.0
        self._bytes = self._moved()

    def __call__(self, time_s: float) -> float:
        moved, before_s, before = self._moved(), self._time_s, self._bytes
        if time_s <= before_s:
            return IDLE_W
        self._time_s, self._bytes = time_s, moved
        return IDLE_W + J_PER_BYTE * (moved - before) / (time_s - before_s)

    def _moved(self) -> int:
        fields = self._stat.read_text().split()
        return 512 * (int(fields[2]) + int(fields[6]))


def reported(folder: Path, target: Path) -> dict[str, Any]:
    """The body of `eeio report --format json`."""
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    eeio = [sys.executable, "-m", "eeio"]
    subprocess.run(
        [*eeio, "run", "eeio-load", "--preset", "quick", "--directory", str(target), "--name", "c",
         "--meter", f"rapl,root={folder / 'powercap'}"],
        env=environment, check=True, timeout=900, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    done = subprocess.run(
        [*eeio, "report", "c", "--format", "json"], env=environment, check=True, timeout=120,
        capture_output=True, text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def show(body: dict[str, Any]) -> None:
    steps = body["load_curve"]
    rates = [step["bandwidth_bytes_per_s"] for step in steps]
    truth = sum(rates) / sum(PACKAGE * (IDLE_W + J_PER_BYTE * rate) for rate in rates)
    found = body["proportionality"]
    for step in steps[1:]:
        line_w = PACKAGE * (IDLE_W + J_PER_BYTE * step["bandwidth_bytes_per_s"])
        print(
            f"{step['offered_share']:4.0%} of load: held {step['held']:.4f}, power over the line's "
            f"{step['power_w'] / line_w:.4f}"
        )
    worst = max(abs(step["held"] - 1) for step in steps[1:] if step["offered_share"] <= 0.9)
    overall = found["overall_bytes_per_j"]
    print(
        f"worst up to 90 %: {worst:.2%} (goal 2 %); overall {overall / 1e6:.4f} MB/J of the "
        f"{found['power_domain']}, over the truth {overall / truth:.4f} (goal within 1 %)"
    )


if __name__ == "__main__":
    main()
