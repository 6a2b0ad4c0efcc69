"""BT-IO's I/O time against the original's, or against a plain write of the same requests.

    EEIO_NPB=FOLDER python benchmarks/btio_cost.py DIRECTORY [--pairs 10] [--class A] [--ranks 4]

EEIO_NPB names a folder with NPB's own binaries (bt.A.4.mpi_io_full, ...). Both then run in turn, in
one directory, under the same MPI settings. First strace tells whether they make the same requests
of the file system: offsets and sizes, written and read. Then the I/O times of writing are compared
as NPB counts them: the writes and the close of each rank, without the open, harmonic mean of the
ranks. Ours runs twice a pair: at once, and keeping the processors busy between
the dumps for as long as the original's solver did (`compute_ms`). A collective buffer is an option
of ours, and a file that ROMIO_HINTS names for the original.

Without EEIO_NPB one process writes what strace saw BT-IO write (subtype full), from open to close:
what is more than 1.0 then is the exchange between the ranks.

Goal: ratio of the medians at most 1.1. Works in a folder of its own below DIRECTORY, which it
removes.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eeio_parsers.btio import run as btio

SOURCE = Path(__file__).parents[1] / "test-profiles/eeio-btio-1.0.0/btio.c"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_io": "romio321",
}
GOAL = 1.1
DUMPS = 40
_CALL = re.compile(r"^(\d+\.\d+) p(write|read)64\(.*btio[a-z.]*out>, .*, (\d+), (\d+)\) += \3\b")
_HINTS = (
    "cb_buffer_size {0}\nind_wr_buffer_size {0}\nind_rd_buffer_size {0}\n"
    "romio_cb_write enable\nromio_cb_read enable\n"
)


@dataclass(frozen=True)
class Bench:
    """Where, and how many."""

    folder: Path
    size: str
    ranks: int
    pairs: int

    def run(self, *arguments: str, hints: Path | None = None) -> str:
        more = {"ROMIO_HINTS": str(hints)} if hints else {}
        return subprocess.run(
            ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(self.ranks), *arguments],
            check=True, capture_output=True, text=True, env={**os.environ, **MPI, **more},
            timeout=600, cwd=self.folder,
        ).stdout  # fmt: skip

    def ours(self, *options: str) -> list[str]:
        return [str(self.folder / "btio"), f"class={self.size}", f"directory={self.folder}",
                *options]  # fmt: skip

    def hints(self, buffer: int) -> Path | None:
        path = self.folder / "hints"
        path.write_text(_HINTS.format(buffer))
        return path if buffer else None

    def requests(
        self, arguments: Sequence[str], hints: Path | None = None
    ) -> dict[str, list[tuple[int, int]]]:
        """(offset, size) of each write and of each read, by time."""
        before = ("strace", "-ff", "-ttt", "-y", "-s0", "-e", "trace=pwrite64,pread64", "-o",
                  str(self.folder / "strace"))  # fmt: skip
        self.run(*before, *arguments, hints=hints)
        found: dict[str, list[tuple[float, int, int]]] = {"write": [], "read": []}
        for path in self.folder.glob("strace.*"):
            for line in path.read_text().splitlines():
                if match := _CALL.match(line):
                    found[match[2]].append((float(match[1]), int(match[4]), int(match[3])))
            path.unlink()
        return {key: [(at, size) for _, at, size in sorted(all_)] for key, all_ in found.items()}


def seconds(out: str, what: str = "I/O timing in seconds") -> float:
    match = re.search(re.escape(what) + r"\s*[:=]\s*([\d.]+)", out)
    assert match, out
    return float(match[1])


def summary(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})"


def judged(ours: Sequence[float], other: Sequence[float]) -> str:
    ratio = statistics.median(ours) / statistics.median(other)
    ratios = [a / b for a, b in zip(ours, other, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    above = "" if ratio <= GOAL else ", above the goal"
    return f"{ratio:.2f} (of pairs {low:.2f} to {high:.2f}){above}"


# --- against the original ------------------------------------------------------------------------


def same_requests(bench: Bench, npb: Path, subtype: str, buffer: int) -> None:
    original = str(npb / f"bt.{bench.size}.{bench.ranks}.mpi_io_{subtype}")
    hints = bench.hints(buffer)
    theirs = bench.requests([original], hints)
    ours = bench.requests(bench.ours(f"subtype={subtype}", f"collective_buffer={buffer}"))
    for operation in ("write", "read"):
        a, b = ours[operation], theirs[operation]
        sizes = Counter(size for _, size in a)
        same = "the same as" if sorted(a) == sorted(b) else "NOT THOSE OF"
        shown = ", ".join(f"{count} of {size}" for size, count in sizes.most_common())
        print(
            f"class {bench.size}, {bench.ranks} ranks, {subtype}, collective_buffer={buffer}: "
            f"{operation}s {sum(s for _, s in a)} bytes, {shown} bytes: offsets and sizes {same} "
            f"the original's ({sum(s for _, s in b)} bytes, {len(b)} calls)",
            flush=True,
        )


def against_original(bench: Bench, npb: Path, subtype: str, buffer: int) -> None:
    original = str(npb / f"bt.{bench.size}.{bench.ranks}.mpi_io_{subtype}")
    hints = bench.hints(buffer)
    options = (f"subtype={subtype}", f"collective_buffer={buffer}")
    times: dict[str, list[float]] = {"at once": [], "computing": [], "original": []}
    compute_ms = 0
    for number in range(bench.pairs):
        order = ["original", "at once", "computing"]
        # How long the solver takes is known once the original has run.
        for one in order[::-1] if number % 2 else order:
            os.sync()
            if one == "original":
                out = bench.run(original, hints=hints)
                times[one].append(btio.parse_text(out).phases[0].metrics["npb_io_time_s"])
                computing_s = seconds(out, "Time in seconds") - times[one][-1]
                compute_ms = round(computing_s / DUMPS * 1000)
            else:
                busy = [f"compute_ms={compute_ms}"] if one == "computing" else []
                out = bench.run(*bench.ours(*options, *busy))
                times[one].append(seconds(out, "The same, as NPB counts"))
            for path in bench.folder.glob("btio.*.out*"):
                path.unlink()
            print(f"  {one}: {times[one][-1]:.4f} s", file=sys.stderr, flush=True)
    what = f"class {bench.size}, {bench.ranks} ranks, {subtype}, collective_buffer={buffer}"
    print(f"{what}: original {summary(times['original'])}")
    for one in ("at once", "computing"):
        busy = f" {compute_ms} ms a dump" if one == "computing" else ""
        print(f"{what}: ours, {one}{busy}: {summary(times[one])}: "
              f"{judged(times[one], times['original'])}", flush=True)  # fmt: skip


# --- against a plain write -----------------------------------------------------------------------


def plain(folder: Path, calls: list[tuple[int, int]]) -> float:
    """The same requests by one process; s from open to close, as BT-IO counts."""
    path = folder / "plain.out"
    data = memoryview(
        bytearray(os.urandom(1 << 20) * (max(size for _, size in calls) // (1 << 20) + 1))
    )
    begun_s = time.monotonic()
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for at, size in calls:
        assert os.pwrite(file, data[:size], at) == size
    os.close(file)
    took_s = time.monotonic() - begun_s
    path.unlink()
    return took_s


def against_plain(bench: Bench, buffer: int) -> None:
    arguments = bench.ours("subtype=full", f"collective_buffer={buffer}")
    calls = bench.requests(arguments)["write"]
    ours: list[float] = []
    other: list[float] = []
    for number in range(bench.pairs):
        for one in ("ours", "other") if number % 2 else ("other", "ours"):
            os.sync()
            if one == "ours":
                ours.append(seconds(bench.run(*arguments)))
            else:
                other.append(plain(bench.folder, calls))
    sizes = {size for _, size in calls}
    print(
        f"class {bench.size}, {bench.ranks} ranks, full, collective_buffer={buffer}: {len(calls)} "
        f"requests of {min(sizes)} to {max(sizes)} bytes; {summary(ours)} against plain "
        f"{summary(other)}: {judged(ours, other)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--class", dest="size", choices="WAB", default="A")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--subtype", choices=("full", "simple"), action="append")
    arguments = parser.parse_args()
    npb = Path(os.environ.get("EEIO_NPB", ""))
    with tempfile.TemporaryDirectory(prefix="eeio-btio-", dir=arguments.directory) as name:
        folder = Path(name)
        subprocess.run(["mpicc", "-std=c11", "-O2", "-o", str(folder / "btio"), str(SOURCE),
                        f"-I{SOURCE.parents[1] / 'common'}", "-lm"],
                       check=True, timeout=120)  # fmt: skip
        bench = Bench(folder, arguments.size, arguments.ranks, arguments.pairs)
        for subtype in arguments.subtype or ["full"]:
            for buffer in (0, 131072) if subtype == "full" else (0,):
                if not os.environ.get("EEIO_NPB"):
                    against_plain(bench, buffer)
                    continue
                same_requests(bench, npb, subtype, buffer)
                if bench.pairs:
                    against_original(bench, npb, subtype, buffer)


if __name__ == "__main__":
    main()
