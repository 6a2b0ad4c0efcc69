"""BT-IO's I/O time against a plain write of the same requests, as its requests reach the disk.

    python benchmarks/btio_cost.py DIRECTORY [--pairs 10] [--class A] [--ranks 4]

strace tells once which requests BT-IO (subtype full) makes of the file system; one process then
writes the same offsets and sizes in the same order to a new file, in turn with BT-IO. What is more
than 1.0 is the exchange between the ranks. Goal: at most 1.1. Prints medians of the pairs, and the
ratio of the medians. NPB's own BT-IO takes the part of the plain write where EEIO_NPB names it.
Works in a folder of its own below DIRECTORY, which it removes.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "test-profiles/eeio-btio-1.0.0/btio.c"
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_io": "romio321",
}
GOAL = 1.1
_CALL = re.compile(r"^(\d+\.\d+) pwrite64\(.*eeio-btio\.out.*, (\d+), (\d+)\) += \2\b")


def btio(folder: Path, ranks: int, *options: str, before: tuple[str, ...] = ()) -> float:
    """I/O time of writing, s."""
    out = run(folder, ranks, *before, str(folder / "btio"), *options, f"directory={folder}")
    return seconds(out)


def run(folder: Path, ranks: int, *words: str) -> str:
    return subprocess.run(
        ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *words],
        check=True, capture_output=True, text=True, env={**os.environ, **MPI}, timeout=300,
        cwd=folder,
    ).stdout  # fmt: skip


def seconds(out: str) -> float:
    match = re.search(r"I/O timing in seconds\s*:\s*([\d.]+)", out)
    assert match, out
    return float(match[1])


def requests(folder: Path, ranks: int, *options: str) -> list[tuple[int, int]]:
    """(offset, size) of each write, by time."""
    before = ("strace", "-ff", "-ttt", "-y", "-s0", "-e", "trace=pwrite64", "-o",
              str(folder / "strace"))  # fmt: skip
    btio(folder, ranks, *options, before=before)
    found = []
    for path in folder.glob("strace.*"):
        for line in path.read_text().splitlines():
            if match := _CALL.match(line):
                found.append((float(match[1]), int(match[3]), int(match[2])))
        path.unlink()
    return [(at, size) for _, at, size in sorted(found)]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--class", dest="size", choices="SWAB", default="A")
    parser.add_argument("--ranks", type=int, default=4)
    arguments = parser.parse_args()
    npb = os.environ.get("EEIO_NPB")
    with tempfile.TemporaryDirectory(prefix="eeio-btio-", dir=arguments.directory) as name:
        folder = Path(name)
        subprocess.run(["mpicc", "-std=c11", "-O2", "-o", str(folder / "btio"), str(SOURCE), "-lm"],
                       check=True, timeout=120)  # fmt: skip
        for buffer in (0, 131072):
            options = (f"class={arguments.size}", "subtype=full", f"collective_buffer={buffer}")
            calls = requests(folder, arguments.ranks, *options)
            ours: list[float] = []
            other: list[float] = []
            for number in range(arguments.pairs):
                for one in ("ours", "other") if number % 2 else ("other", "ours"):
                    os.sync()
                    if one == "ours":
                        ours.append(btio(folder, arguments.ranks, *options))
                    elif npb:
                        original = f"{npb}/bt.{arguments.size}.{arguments.ranks}.mpi_io_full"
                        other.append(seconds(run(folder, arguments.ranks, original)))
                    else:
                        other.append(plain(folder, calls))
            sizes = {size for _, size in calls}
            ratio = statistics.median(ours) / statistics.median(other)
            print(
                f"class {arguments.size}, {arguments.ranks} ranks, collective_buffer={buffer}: "
                f"{len(calls)} requests of {min(sizes)} to {max(sizes)} bytes; "
                f"{statistics.median(ours):.3f} s ({min(ours):.3f} to {max(ours):.3f}) against "
                f"{'the original' if npb else 'plain'} {statistics.median(other):.3f} s "
                f"({min(other):.3f} to {max(other):.3f}): {ratio:.2f}"
                f"{'' if ratio <= GOAL else ', above the goal'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
