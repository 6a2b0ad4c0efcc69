"""What tracing costs the program, and how long a million events take to become phases.

    python benchmarks/trace_cost.py DIRECTORY [--pairs 10] [--events 1000000]

BT-IO class W, subtype simple, 4 ranks (I/O time, s) and fio with 4 KiB requests from the page cache
and direct (time a request, s),
    bare and as `eeio record trace` runs them under strace and bpftrace, in
turn: the ratio of the medians. bpftrace is left out, with the reason, where it cannot work. Then a
synthetic file of strace with `--events` lines of 4 processes is read (eeio.traces.strace)
and its phases are found: goal under 10 s together. Works in a folder of its own below DIRECTORY,
which it removes.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from eeio.measure import tracers
from eeio.traces import strace
from eeio.traces.events import find_phases

SOURCE = Path(__file__).parents[1] / "test-profiles/eeio-btio-1.0.0/btio.c"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_io": "romio321",
}


def printed(arguments: list[str], folder: Path, tracer: str | None) -> str:
    """What a program prints, bare or traced."""
    out = folder / "out"
    arguments = ["sh", "-c", 'exec "$@" >"$0"', str(out), *arguments]
    if tracer is None:
        subprocess.run(arguments, check=True, timeout=300)
    else:
        trace = folder / "trace"
        trace.mkdir()
        exit_code, _ = tracers.run(tracer, arguments, trace, lambda: None, to_stderr=False)
        shutil.rmtree(trace)
        if exit_code != 0:
            raise SystemExit(f"{arguments}: exit code {exit_code}")
    return out.read_text()


def btio(folder: Path, tracer: str | None) -> float:
    """Seconds of I/O."""
    text = printed(
        ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", str(folder / "btio"),
         "class=W", "subtype=simple", f"directory={folder}"], folder, tracer,
    )  # fmt: skip
    match = re.search(r"I/O timing in seconds\s*: ([\d.]+)", text)
    assert match, text
    return float(match[1])


def fio(folder: Path, direct: int, tracer: str | None) -> float:
    """Seconds a request."""
    text = printed(
        ["fio", "--name=cost", "--rw=read", "--bs=4k", "--ioengine=psync", "--size=64m",
         "--time_based", "--runtime=1", f"--direct={direct}", "--invalidate=0",
         f"--filename={folder}/fio", "--output-format=json"], folder, tracer,
    )  # fmt: skip
    return 1 / float(json.loads(text)["jobs"][0]["read"]["iops"])


def compare(name: str, pairs: int, run: Callable[[str | None], float], all_: list[str]) -> None:
    kinds: list[str | None] = [None, *all_]
    times: dict[str | None, list[float]] = {kind: [] for kind in kinds}
    for number in range(pairs):
        for kind in kinds[::-1] if number % 2 else kinds:
            times[kind].append(run(kind))
    bare = statistics.median(times[None])
    shown = [f"bare {bare:.3g} s"]
    for kind in all_:
        median = statistics.median(times[kind])
        ratios = [a / b for a, b in zip(times[kind], times[None], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        shown.append(
            f"{kind} {median:.3g} s: {median / bare:.2f} times (of pairs {low:.2f} to {high:.2f})"
        )
    print(f"{name}: {'; '.join(shown)}", flush=True)


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
            file.write(f"{time_s:.6f} +++ exited with 0 +++\n")
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
        subprocess.run(["mpicc", "-std=c11", "-O2", "-o", str(folder / "btio"), str(SOURCE),
                        f"-I{SOURCE.parents[1] / 'common'}", "-lm"],
                       check=True, timeout=120)  # fmt: skip
        able = ["strace"]
        if reason := tracers.no_bpftrace():
            print(f"without bpftrace: {reason}")
        else:
            able.append("bpftrace")
        # fio asks for 250 000 reads/s: what bpftrace does not get rid of at once must fit.
        os.environ |= {**MPI, "BPFTRACE_PERF_RB_PAGES": "32768"}
        compare("BT-IO W, simple, 4 ranks, I/O time", arguments.pairs,
                lambda kind: btio(folder, kind), able)  # fmt: skip
        fio(folder, 0, None)
        for direct, what in ((0, "from the page cache"), (1, "direct")):
            compare(f"fio, 4 KiB reads {what}, time a request", arguments.pairs,
                    lambda kind, direct=direct: fio(folder, direct, kind), able)  # fmt: skip


if __name__ == "__main__":
    main()
