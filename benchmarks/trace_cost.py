"""What tracing by strace costs the program, and how long a million events take to become phases.

    python benchmarks/trace_cost.py DIRECTORY [--pairs 10] [--events 1000000]

BT-IO class W, subtype simple, 4 ranks (I/O time, s) and fio with 4 KiB requests from the page cache
and direct (IOPS), with and without strace in turn: the ratio of the medians. Then a synthetic file
of strace with `--events` lines of 4 processes is read (eeio_results.traces.strace) and its phases
are found: goal under 10 s together. Works in a folder of its own below DIRECTORY, which it removes.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from btio_cost import SOURCE, btio

from eeio_results.traces import strace
from eeio_results.traces.events import find_phases


def tracer(folder: Path) -> tuple[str, ...]:
    """As `eeio trace` calls it."""
    return (
        "strace", "-ff", "-ttt", "-T", "-y", "-s0", "-e", "signal=none", "-e",
        f"trace={strace.CALLS}", "-o", str(folder / "strace"),
    )  # fmt: skip


def fio(folder: Path, direct: int, before: tuple[str, ...] = ()) -> float:
    """Seconds a request."""
    done = subprocess.run(
        [*before, "fio", "--name=cost", "--rw=read", "--bs=4k", "--ioengine=psync", "--size=64m",
         "--time_based", "--runtime=1", f"--direct={direct}", "--invalidate=0",
         f"--filename={folder}/fio", "--output-format=json"],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return 1 / float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def compare(name: str, pairs: int, run: Callable[[tuple[str, ...]], float], folder: Path) -> None:
    bare: list[float] = []
    traced: list[float] = []
    for number in range(pairs):
        for with_strace in (True, False) if number % 2 else (False, True):
            (traced if with_strace else bare).append(run(tracer(folder) if with_strace else ()))
            for path in folder.glob("strace.*"):
                path.unlink()
    a, b = statistics.median(traced), statistics.median(bare)
    print(f"{name}: traced {a:.3g} s, bare {b:.3g} s: {a / b:.1f} times", flush=True)


def phases(folder: Path, count: int) -> None:
    processes, each = 4, count // 4
    for process in range(processes):
        with (folder / f"events.{1000 + process}").open("w") as file:
            time_s = 1_700_000_000.0
            for n in range(each):
                # Stretches of writes and of reads with a pause between, as checkpoints.
                call = "pwrite64" if n * 20 // each % 2 == 0 else "pread64"
                time_s += 1.0 if n and n % (each // 20) == 0 else 0.00005
                at = (n * processes + process) * 4096
                file.write(
                    f'{time_s:.6f} {call}(3</data/file>, ""..., 4096, {at}) = 4096 <0.000030>\n'
                )
    begun_s = time.monotonic()
    events = strace.read(sorted(folder.glob("events.*")))
    read_s = time.monotonic() - begun_s
    found = find_phases(events)
    all_s = time.monotonic() - begun_s
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(events)} events -> {len(found)} phases: read {read_s:.2f} s, phases "
        f"{all_s - read_s:.2f} s, together {all_s:.2f} s (goal 10 s), {memory:.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eeio-trace-", dir=arguments.directory) as name:
        folder = Path(name)
        phases(folder, arguments.events)
        subprocess.run(["mpicc", "-std=c11", "-O2", "-o", str(folder / "btio"), str(SOURCE), "-lm"],
                       check=True, timeout=120)  # fmt: skip
        options = ("class=W", "subtype=simple")
        compare("BT-IO W, simple, 4 ranks, I/O time", arguments.pairs,
                lambda before: btio(folder, 4, *options, before=before), folder)  # fmt: skip
        fio(folder, 0)
        for direct, what in ((0, "from the page cache"), (1, "direct")):
            compare(f"fio, 4 KiB reads {what}, time a request", arguments.pairs,
                    lambda before, direct=direct: fio(folder, direct, before), folder)  # fmt: skip


if __name__ == "__main__":
    main()
