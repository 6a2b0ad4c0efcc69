"""What campaigns cost to read: one of many runs loaded and reported, many of them listed.

Usage: store_scale.py [--runs N] [--report-runs N] [--campaigns N] [--directory DIR]

A campaign of 53 experiments is made in the folder (default: a temporary one), its records of the
size that a real one has (3.7 kB: two phases, three readings each, processors each second).
Seconds of processor time, and peak memory, of `store.load` and of `eeio report` and `eeio list`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from study_scale import MACHINE

from eeio.record import store
from eeio.record.design import Design, Options, PlannedExperiment, PlannedRun, Protocol
from eeio.record.run import (
    CacheLayers,
    DeviceCounters,
    EnergyReading,
    Experiment,
    Phase,
    ProcessorSeries,
    Run,
)

EXPERIMENTS = 53


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--report-runs", type=int, default=100_000)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--write", nargs=2, metavar=("DIR", "RUNS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write(Path(arguments.write[0]), int(arguments.write[1]))
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        folder = Path(name)
        big = written(folder / "report", arguments.report_runs)
        lines_s = json_s(big / "runs.jsonl")
        print(f"json.loads of the lines of {arguments.report_runs} runs: {lines_s:.1f} s")
        for what in ("", ", from the figures that the first one saved"):
            reported = f"report of {arguments.report_runs} runs{what}"
            took_s = eeio(reported, folder, "report", str(big))
            print(f"  {took_s / lines_s:.2f} times json.loads")
        results = folder / "eeio/results"
        results.mkdir(parents=True)
        one = written(results / "c0", 1000)
        for number in range(1, arguments.campaigns):
            (results / f"c{number}").mkdir()
            for file in ("campaign.json", "machine.json", "idle.json", "runs.jsonl"):
                # Links: a thousand copies would measure the disk.
                os.link(one / file, results / f"c{number}" / file)
        eeio(f"list of {arguments.campaigns} campaigns of 1000 runs", folder, "list")
        made = written(folder / "load", arguments.runs)
        size_kb = (made / "runs.jsonl").stat().st_size / arguments.runs / 1e3
        start_s = time.process_time()
        loaded = store.load(made)
        took_s = time.process_time() - start_s
        print(f"load of {len(loaded.runs)} runs of {size_kb:.1f} kB: {took_s:.2f} s")


def written(folder: Path, count: int) -> Path:
    """As `write`, by another process, so that its records are not in this one's memory."""
    command = [sys.executable, __file__, "--write", str(folder), str(count)]
    subprocess.run(command, check=True, timeout=1800)
    return folder


# The peak of the program's own memory: what getrusage tells begins with that of who started it.
_EEIO = """
import sys
from eeio.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM"))
print(peak, file=sys.stderr)
sys.exit(code)
"""


def json_s(path: Path) -> float:
    """Processor time that json.loads takes for each line."""
    start_s = time.process_time()
    with path.open() as lines:
        for line in lines:
            json.loads(line)
    return time.process_time() - start_s


def eeio(what: str, data: Path, *arguments: str) -> float:
    """Times one command in a process of its own."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", _EEIO, *arguments], check=True, timeout=1800, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(data), "XDG_CACHE_HOME": str(data / "cache")},
    )  # fmt: skip
    after = os.times()
    took_s = after.children_user + after.children_system
    took_s -= before.children_user + before.children_system
    peak_kib = int(done.stderr.split()[-1])
    print(f"{what}: {took_s:.1f} s, peak memory {peak_kib * 1024 / 1e6:.0f} MB")
    return took_s


def write(folder: Path, count: int) -> Path:
    """A stored campaign of `count` runs."""
    planned = [
        PlannedExperiment(
            Experiment(
                "filesystem", "fio", "mixed", "random", 4096 * (n + 1), CacheLayers("off", None)
            ),
            "eeio-fio-1.0.0",
        )
        for n in range(EXPERIMENTS)
    ]
    design = Design(
        name=folder.name, suite="suite", suite_title="Suite",
        created_utc="2026-01-01T00:00:00+00:00", options=Options(seed=1),
        protocol=Protocol(-(-count // EXPERIMENTS), 0.0, 0.0, True),
        experiments=tuple(planned), not_measured=(),
        runs=tuple(
            PlannedRun(n, planned[n % EXPERIMENTS], n // EXPERIMENTS + 1, n) for n in range(count)
        ),
    )  # fmt: skip
    place = store.Store(folder)
    place.create(design)
    place.write_machine(MACHINE)
    place.write_idle((), "synthetic")
    first = _run(design.runs[0])
    place.append_all(
        [
            replace(
                first, experiment=run.experiment.experiment, repetition=run.repetition,
                order_index=run.order_index, started_monotonic_s=5.0 * run.order_index,
                raw=f"raw/{run.order_index:05}",
            )
            for run in design.runs
        ]
    )  # fmt: skip
    return folder


def _run(planned: PlannedRun) -> Run:
    energy = tuple(
        EnergyReading(
            domain, "synthetic", "measured", 41.123456789, 123.456789012, 6.54321098765, 0.9987654,
            0.100123456, 31, 0, True, (), ("processor", "memory"), ("drives", "supply"),
        )
        for domain in ("system", "package", "dram")
    )  # fmt: skip
    metrics = {"iops": 12345.678, "latency_mean_s": 0.000123456, "latency_p99_s": 0.00123456}
    phases = tuple(
        Phase(
            name, name, "random", 4096, 1 << 28, 123456789.123, 0.123456, 3.123456,
            "fio", metrics, energy,
        )
        for name in ("read", "write")
    )  # fmt: skip
    seconds = tuple(float(n) for n in range(2))
    return Run(
        planned.experiment.experiment, 1, 0, "standard", "2026-01-01T00:00:00.000+00:00", 0.0,
        5.123456, 0, phases, "raw/x", device="sda", device_before=DeviceCounters(1 << 40, 1 << 41),
        device_after=DeviceCounters((1 << 40) + 1, (1 << 41) + 1), disk_cache_found="on",
        cache_dropped="0 of 65536 pages in the page cache",
        prepare_s=0.0123456, sync_s=0.00123456,
        processor=ProcessorSeries("/proc/stat", seconds, (0.123456,) * 2, (2.1e9,) * 2),
        notes=("checked against sda",),
    )  # fmt: skip


if __name__ == "__main__":
    main()
