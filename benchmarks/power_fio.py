"""What the sampler costs the benchmark: fio 4 KiB direct random reads with and without it.

    python benchmarks/power_fio.py FOLDER [PAIRS] [SECONDS]

Pairs of runs, one with and one without the sampler (RAPL with 6 zones at 10 Hz, in a process of its
own), in random order. Writes one file below FOLDER, in a folder of its own that is removed at the
end. Goal: a median ratio of at least 0.995.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from eeio_power.simulators import FakeRapl
from eeio_power.simulators.powercap import default_zones

CHILD = """
import sys
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.sampler import Sampler
with Sampler(open_meters([f"rapl,root={sys.argv[1]}"]), Path(sys.argv[2]), 10.0):
    print("up", flush=True)
    sys.stdin.read()
"""


def iops(file: Path, seconds: int) -> float:
    command = [
        "fio", "--name=cost", f"--filename={file}", "--rw=randread", "--bs=4k", "--direct=1",
        "--size=256m", "--ioengine=psync", "--time_based", f"--runtime={seconds}", "--ramp_time=1",
        "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def main() -> int:
    where = Path(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    draw = random.Random(1)
    ratios = []
    with tempfile.TemporaryDirectory(prefix="eeio-cost-", dir=where) as folder:
        file, root = Path(folder) / "data", Path(folder) / "powercap"
        FakeRapl(root, default_zones(packages=3))
        iops(file, 1)
        for _ in range(pairs):
            found = {}
            for sampled in draw.sample([True, False], 2):
                found[sampled] = _sampled(file, root, seconds) if sampled else iops(file, seconds)
            ratios.append(found[True] / found[False])
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"{pairs} pairs of {seconds} s: median ratio {statistics.median(ratios):.4f}, "
          f"quartiles {quartiles[0]:.4f} to {quartiles[2]:.4f}")  # fmt: skip
    return 0 if statistics.median(ratios) >= 0.995 else 1


def _sampled(file: Path, root: Path, seconds: int) -> float:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), str(file.with_name("samples.gz"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        child.stdout.readline()
        return iops(file, seconds)
    finally:
        child.communicate(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
