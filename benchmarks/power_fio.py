"""What the sampler costs the benchmark: fio 4 KiB direct random reads with and without it.

    python benchmarks/power_fio.py FOLDER_OR_DEVICE [PAIRS] [SECONDS]

One fio run, during which the sampler (RAPL with 6 zones, in a process of its own, its counters at
100 Hz as while a tool runs) is on and off for SECONDS each, in the order on, off, off, on ...: what
drifts slowly falls out of each pair. Prints the median of the pairs' ratios of IOPS and its 95 %
bootstrap interval. A folder gets one file of 256 MiB, in a folder of its own that is removed at the
end; a device is only read. A folder in memory (/dev/shm) is steadier than a shared disk. Goal: a
median ratio of at least 0.995.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.simulators import FakeRapl
from tests.simulators.powercap import default_zones

# The sampler starts and stops within this; what fio does meanwhile counts for neither.
EDGE_S = 0.3
LOG_MS = 100

CHILD = """
import sys
from pathlib import Path
from eeio_power.meters import open_meters
from eeio_power.monitor import COUNTER_RATE_HZ
from eeio_power.sampler import Sampler
meters = open_meters([f"rapl,root={sys.argv[1]}"])
sampler = None
for line in sys.stdin:
    if sampler is not None:
        sampler.stop()
        sampler = None
    if line == "on\\n":
        sampler = Sampler(meters, Path(sys.argv[2]), 10.0)
        sampler.start()
        sampler.read_counters(COUNTER_RATE_HZ)
    print("done", flush=True)
"""


def main() -> int:
    where = Path(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory(
        prefix="eeio-cost-", dir=where if where.is_dir() else None
    ) as folder:
        ratios = measure(where, Path(folder), pairs, seconds)
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(5000))
    median = statistics.median(ratios)
    print(f"{pairs} pairs of {seconds:g} s: median ratio {median:.4f}, 95 % interval "
          f"{medians[125]:.4f} to {medians[-126]:.4f}")  # fmt: skip
    return 0 if median >= 0.995 else 1


def measure(where: Path, folder: Path, pairs: int, seconds: float) -> list[float]:
    """The ratio of each pair: IOPS with the sampler over IOPS without."""
    root = folder / "powercap"
    FakeRapl(root, default_zones(packages=3))
    target = folder / "data" if where.is_dir() else where
    sampler = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), str(folder / "samples.gz")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert sampler.stdin is not None and sampler.stdout is not None
    fio = subprocess.Popen(
        ["fio", "--name=cost", f"--filename={target}", "--rw=randread", "--bs=4k", "--direct=1",
         "--size=256m", "--ioengine=psync", "--time_based", "--norandommap", "--readonly"
         if not where.is_dir() else "--overwrite=0",
         f"--runtime={int(2 * pairs * (seconds + 1) + 20)}", f"--write_iops_log={folder / 'log'}",
         f"--log_avg_msec={LOG_MS}", "--log_unix_epoch=1", "--minimal"],
        stdout=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    spans: list[tuple[bool, float, float]] = []
    try:
        time.sleep(5)
        for pair in range(pairs):
            for on in (True, False) if pair % 2 == 0 else (False, True):
                sampler.stdin.write("on\n" if on else "off\n")
                sampler.stdin.flush()
                sampler.stdout.readline()
                begun_s = time.time()
                time.sleep(seconds + EDGE_S)
                spans.append((on, begun_s + EDGE_S, begun_s + EDGE_S + seconds))
        if fio.poll() is not None:
            raise SystemExit("fio ended early")
    finally:
        sampler.communicate(timeout=60)
        fio.terminate()
        fio.wait(60)
    (log,) = folder.glob("log_iops.*")
    rows = [line.split(",") for line in log.read_text().splitlines()]
    points = [(int(row[0]) / 1e3, float(row[1])) for row in rows]
    means = []
    for on, start_s, end_s in spans:
        inside = [value for at_s, value in points if start_s + LOG_MS / 1e3 <= at_s <= end_s]
        means.append((on, statistics.fmean(inside)))
    ratios = []
    for first, second in zip(means[::2], means[1::2], strict=True):
        with_it, without = (first, second) if first[0] else (second, first)
        ratios.append(with_it[1] / without[1])
    return ratios


if __name__ == "__main__":
    sys.exit(main())
