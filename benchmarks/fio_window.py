"""The window of fio runs compared with fio's first and last request in the kernel.

    python -m benchmarks.fio_window DIR [--runs N] [--seconds S] [--processes P] [--load L]

Needs root and bpftrace. The profile eeio-fio reads a file in DIR with direct requests, S seconds a
run. bpftrace records when each process of fio enters its first request and leaves its last one; it
does not stop fio, and prints at the end. L other processes compute meanwhile. Prints by how much
the window is longer than the time between both requests, in % of that time, for the window of the
record and for the time between fio's two stamps; and in how many runs the uncertainty of the edges
contains the difference. Goal: for 10 s and more a median within 0.05 % and 99 % of the runs within
0.5 %; the uncertainty contains the difference of all runs.
"""

import argparse
import contextlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# As a script it is to find the parts beside it, as with -m.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.profiles.harness import Installed

from eeio.record.tools.capture import Capture
from eeio_parsers.fio import run as fio

# An unusual request size separates this fio from others, and from reads that load programs.
PROGRAM = """
tracepoint:syscalls:sys_enter_pread64 /comm == "fio" && args->count == 20480/ {
  if (@first[pid] == 0) { @first[pid] = nsecs; }
  @inside[pid] = 1;
}
tracepoint:syscalls:sys_exit_pread64 /@inside[pid]/ { @last[pid] = nsecs; @inside[pid] = 0; }
END { clear(@inside); }
"""
# The tracepoints are in tracefs, which is not mounted everywhere.
TRACER = """
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 1
exec bpftrace -q -e "$0"
"""
_LINE = re.compile(r"@(first|last)\[(\d+)\]: (\d+)")
_READY_S = 5.0
_MIB_PER_S = 400
_GOAL_MEDIAN, _GOAL_MOST, _GOAL_FROM_S = 0.0005, 0.005, 10.0


@dataclass(frozen=True)
class Window:
    """Seconds on CLOCK_MONOTONIC; `unsure_s` of both edges together."""

    start_s: float
    end_s: float
    unsure_s: float = 0.0

    @property
    def lasted_s(self) -> float:
        return self.end_s - self.start_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--load", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name, loaded(arguments.load):
        found = measured(Path(name), arguments.runs, arguments.seconds, arguments.processes)
    return show(found, arguments.seconds)


@contextlib.contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Processes that compute all the time."""
    started = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def measured(
    folder: Path, runs: int, seconds: float, processes: int
) -> list[tuple[Window, Window, Window]]:
    """Of each run its window in the record, that between fio's stamps, and the truth."""
    profile = Installed("fio", folder / "home", folder / "disk")
    factors = {
        # The run time ends the run, or the end of the file a little before.
        "operation": "read", "request_size": "20k",
        "file_size": f"{max(64, int(seconds * _MIB_PER_S))}m",
        "runtime_s": f"{seconds:g}", "processes": str(processes), "spatiality": "random",
    }  # fmt: skip
    arguments = [f"{key}={value}" for key, value in factors.items()]
    for done in (profile.install(), profile.script("pre.sh", *arguments)):
        if done.returncode != 0:
            raise SystemExit(done.stderr)
    tracer = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", TRACER, PROGRAM],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        time.sleep(_READY_S)
        captures = [profile.capture(folder / f"run-{n}", factors) for n in range(runs)]
    finally:
        tracer.terminate()
        reported, _ = tracer.communicate(timeout=60)
    return [(*windows(capture), truth(capture, reported, processes)) for capture in captures]


def windows(capture: Capture) -> tuple[Window, Window]:
    """As the record has it, and as the stamps alone tell."""
    (phase,) = fio.parse(capture).phases
    assert phase.start_s is not None and phase.end_s is not None
    began_s = capture.started_monotonic_s
    stamps = [
        [began_s + capture.since_start_s(float(word)) for word in capture.text(name).split()]
        for name in (fio.START_FILE, fio.END_FILE)
    ]
    recorded = Window(
        began_s + phase.start_s, began_s + phase.end_s, phase.edges_unsure_s or float("inf")
    )
    return recorded, Window(min(stamps[0]), max(stamps[1]))


def truth(capture: Capture, reported: str, processes: int) -> Window:
    """From the first request of any process of this run to the end of the last one."""
    ahead_s = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    times: dict[str, list[float]] = {"first": [], "last": []}
    for edge, _, nanoseconds in _LINE.findall(reported):
        at_s = int(nanoseconds) / 1e9 - ahead_s
        if capture.started_monotonic_s <= at_s <= capture.ended_monotonic_s:
            times[edge].append(at_s)
    if len(times["first"]) != processes or len(times["last"]) != processes:
        raise SystemExit(f"bpftrace saw {len(times['first'])} of {processes}: {reported[:300]}")
    return Window(min(times["first"]), max(times["last"]))


def show(found: Sequence[tuple[Window, Window, Window]], seconds: float) -> int:
    met = True
    for place, name in enumerate(("record", "stamps")):
        shares = [each[place].lasted_s / each[2].lasted_s - 1 for each in found]
        sizes = sorted(map(abs, shares))
        most = sizes[max(0, -(-99 * len(sizes) // 100) - 1)]
        starts = [1e3 * (each[2].start_s - each[place].start_s) for each in found]
        ends = [1e3 * (each[place].end_s - each[2].end_s) for each in found]
        print(
            f"{name}: longer by {statistics.median(shares):+.4%} (median), {most:.4%} (99 % of "
            f"{len(found)} runs), at most {sizes[-1]:.4%}; begins {statistics.median(starts):.2f} "
            f"ms before (most {max(starts):.2f}), ends {statistics.median(ends):+.2f} ms after "
            f"(most {max(ends, key=abs):+.2f})"
        )
        if place == 0 and seconds >= _GOAL_FROM_S:
            met = abs(statistics.median(shares)) <= _GOAL_MEDIAN and most <= _GOAL_MOST
    # A start that is early and an end that is late by the same time move the window.
    within = [
        max(
            abs(record.lasted_s - true.lasted_s),
            abs(record.start_s - true.start_s),
            abs(record.end_s - true.end_s),
        ) <= record.unsure_s
        for record, _, true in found
    ]  # fmt: skip
    unsure = statistics.median(record.unsure_s / record.lasted_s for record, _, _ in found)
    print(f"the uncertainty ({unsure:.4%}, median) contains {sum(within)} of {len(within)}")
    return 0 if met and all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
