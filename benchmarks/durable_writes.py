"""What a write costs until it is durable, by tool, on a disk that is slower than the page cache.

Usage (as root): durable_writes.py [--repetitions N] [--rate BYTES_PER_S] [--size MIB] DIR

A loop device over an image in DIR is held to a rate of writing by the kernel's block control
groups (version 1). fio, the data servers, IOzone and, where it is, IOR write the same bytes in the
same requests through the page cache, in one random order, with flush=end; fio once more with
flush=none, which the runner then flushes. The simulated meter draws 20 W. Prints J/GB of each,
medians, against each other and against the truth, which is 20 W for the bytes that the device
counted over its rate. Goal: 5 % of each other.

The kernel holds back whole requests of the file system, however large, and only then passes them to
the disk, which cuts them. IOzone makes its file anew, and ext4 asks for what it allocates in 8 MiB;
the others write over theirs, and ext4 asks for hundreds of MiB at once: then the disk's own time
came after the wait, not within it, 0.2 s for 512 MiB. Real drives have no such wait. Groups of
blocks of 8 MiB cut all of them alike here.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# As a script it is to find the parts beside it, as with -m.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.throttled import LAZY, throttled
from tests.simulators.powercap import FakeRapl

WATTS = 20.0
PACKAGE = 0.8  # of what the simulated machine draws
GEOMETRY = ("-b", "4096", "-g", "2048", "-O", "^flex_bg", *LAZY)  # groups of 8 MiB
SETTLE_S = 0.5  # the kernel lets a disk that was just busy write a little more at first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rate", type=int, default=100_000_000)
    parser.add_argument("--size", type=int, default=128)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        folder = Path(name)
        size_bytes = 8 * arguments.size << 20
        with throttled(folder, arguments.rate, size_bytes, ("write",), GEOMETRY) as (target, _):
            records = measured(folder, target, arguments)
    show(records, arguments.size << 20, arguments.rate)


def measured(folder: Path, target: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The records of one campaign over all tools."""
    options = (
        "spatiality=sequential operation=write buffer=on request_size=1m "
        f"file_size={arguments.size}m"
    )
    own = f"level=library {options} api=posix"
    entries = [
        ("eeio-fio-1.0.0", f"level=filesystem {options} runtime_s=60 flush=end"),
        ("eeio-fio-1.0.0", f"level=filesystem {options} runtime_s=60 flush=none"),
        ("eeio-iozone-1.0.0", f"level=filesystem {options} flush=end"),
        ("eeio-dataserver-1.0.0", f"{own} clients=1 flush=end"),
    ]
    path = f"{os.environ.get('PATH', os.defpath)}:{Path(sys.prefix) / 'bin'}"
    if shutil.which(os.environ.get("EEIO_IOR") or "ior", path=path):
        entries.append(("eeio-ior-1.0.0", f"{own} processes=1 flush=end"))
    suite = folder / "suite"
    suite.mkdir()
    (suite / "protocol.yaml").write_text(
        f"presets:\n  standard: {{repetitions: {arguments.repetitions}, settle_s: {SETTLE_S}, "
        "idle_s: 1, is_measurement: true}\n"
    )
    (suite / "suite-definition.xml").write_text(
        "<PhoronixTestSuite><SuiteInformation><Title>durable</Title></SuiteInformation>"
        + "".join(
            f"<Execute><Test>local/{profile}</Test><Arguments>{of}</Arguments>"
            f"<Description>{profile} {of.rpartition(' ')[2]}</Description></Execute>"
            for profile, of in entries
        )
        + "</PhoronixTestSuite>"
    )
    with FakeRapl(folder / "powercap", power_w=lambda time_s: WATTS):
        subprocess.run(
            [sys.executable, "-m", "eeio", "run", str(suite), "--preset", "standard",
             "--directory", str(target), "--name", "durable", "--rate", "100",
             "--meter", f"rapl,root={folder / 'powercap'}"],
            check=True, timeout=3600, stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_DATA_HOME": str(folder / "data")},
        )  # fmt: skip
    path = folder / "data/eeio/results/durable/runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def show(records: list[dict[str, Any]], size_bytes: int, rate: int) -> None:
    found: dict[str, list[tuple[float, float, float]]] = {}
    for record in records:
        experiment = record["experiment"]
        (phase,) = record["phases"]
        (package,) = (r for r in phase["until_durable"]["energy"] if r["domain"] == "package")
        written = record["device_after"]["written_bytes"] - record["device_before"]["written_bytes"]
        truth_j = PACKAGE * WATTS * written / rate
        found.setdefault(f"{experiment['tool']} flush={experiment['flush']}", []).append(
            (
                package["energy_j"] / size_bytes * 1e9,
                package["energy_j"] / truth_j,
                phase["bandwidth_bytes_per_s"],
            )
        )
    medians = {name: statistics.median(j for j, _, _ in of) for name, of in found.items()}
    middle = statistics.median(medians.values())
    for name, of in found.items():
        print(
            f"{name}: {medians[name]:.1f} J/GB, {medians[name] / middle:.3f} of the median of all; "
            f"energy over truth {statistics.median(t for _, t, _ in of):.4f}; "
            f"its own rate {statistics.median(r for _, _, r in of) / 1e6:.0f} MB/s (n={len(of)})"
        )


if __name__ == "__main__":
    main()
