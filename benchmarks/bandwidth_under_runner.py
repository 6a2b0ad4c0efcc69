"""fio's bandwidth under the runner, with power sampled at 10 Hz, against bare fio: 10 pairs on the
same file, the order within a pair drawn at random. The runner should cost nothing."""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = """<?xml version="1.0"?>
<PhoronixTestSuite><SuiteInformation><Title>One fio experiment</Title></SuiteInformation>
<Execute><Test>local/eeio-fio-1.0.0</Test>
<Arguments>level=filesystem operation=read spatiality=sequential request_size={request} buffer=off
file_size={size} runtime_s=10</Arguments><Description>fio</Description></Execute>
</PhoronixTestSuite>
"""
PROTOCOL = """presets:
  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}
"""


def under_runner(home: Path, target: Path, number: int) -> float:
    name = f"pair-{number}"
    subprocess.run(
        [sys.executable, "-m", "eeio", "run", str(home / "suite"), "--preset", "quick",
         "--name", name, "--directory", str(target), "--meter", "modelled"],
        env={**os.environ, "XDG_DATA_HOME": str(home / "data"),
             "XDG_STATE_HOME": str(home / "state"), "EEIO_KEEP_FILES": "1"},
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    line = (home / f"data/eeio/results/{name}/runs.jsonl").read_text()
    return float(json.loads(line)["phases"][0]["bandwidth_bytes_per_s"])


def bare(target: Path, arguments: argparse.Namespace) -> float:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    done = subprocess.run(
        ["fio", "--name=bare", "--rw=read", f"--bs={arguments.request}", "--ioengine=psync",
         f"--size={arguments.size}", "--runtime=10", "--direct=1", "--invalidate=1",
         "--iodepth=1", "--numjobs=1", "--group_reporting", "--overwrite=1", "--eta=never",
         f"--filename={target}/eeio-scratch/eeio-fio.0.0", "--output-format=json"],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return float(json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="on the disk to use")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--size", default="2g")
    parser.add_argument("--request", default="1m")
    arguments = parser.parse_args()
    target = Path(tempfile.mkdtemp(prefix="eeio-benchmark-", dir=arguments.directory))
    try:
        home = target / "home"
        (home / "suite").mkdir(parents=True)
        (home / "suite/suite-definition.xml").write_text(
            SUITE.format(size=arguments.size, request=arguments.request)
        )
        (home / "suite/protocol.yaml").write_text(PROTOCOL)
        under_runner(home, target, 0)  # prefills the file and warms everything up
        ratios = []
        order = random.Random(1)
        for number in range(1, arguments.pairs + 1):
            if order.random() < 0.5:
                plain = bare(target, arguments)
                ours = under_runner(home, target, number)
            else:
                ours = under_runner(home, target, number)
                plain = bare(target, arguments)
            ratios.append(ours / plain)
            print(f"pair {number}: {ours / 1e6:.0f} / {plain / 1e6:.0f} MB/s = {ratios[-1]:.3f}")
        q1, median, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
        print(f"ratio under the runner / bare: median {median:.3f}, quartiles {q1:.3f} - {q3:.3f}")
    finally:
        shutil.rmtree(target)


if __name__ == "__main__":
    main()
