"""eeio-dataserver against fio: one server and one client make the same requests of the same file.

    python benchmarks/dataserver_fio.py DIRECTORY [--pairs 10] [--size 1024] [--operation read]

For each request size, pattern and cache setting, pairs of runs, the order within a pair turned each
time; prints the ratio of the medians of bandwidth (goal: at least 0.97), and the quartiles of the
pairs' ratios. `strided` takes every fourth request (fio: `rw=read:SKIP`; here: a replayed trace,
for one client's strided requests lie one behind the other). `cold` drops the file from the page
cache first, `cached` finds it there: only that one is limited by the programs and not by the
disk. fio makes the same system calls: psync, and no posix_fadvise hint, which changes read-ahead.
Writes go over what is there, with one fsync at the end that both count; fio writes the buffer that
it filled once, ours stamps each page of it anew. fio tells its time in ms: give it some hundreds.
Works in a folder of its own below DIRECTORY, which it removes.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "test-profiles/eeio-dataserver-1.0.0/dataserver.c"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
GOAL = 0.97
STRIDE = 4
CACHES = ("direct", "cold", "cached")


class Pair:
    """The file of one server, and both programs on it."""

    def __init__(self, folder: Path, size: int, operation: str) -> None:
        self.folder, self.size, self.operation = folder, size, operation
        self.file = folder / "eeio-dataserver.0"
        self.program = folder / "dataserver"
        subprocess.run(["mpicc", "-std=c11", "-O2", "-o", str(self.program), str(SOURCE),
                        f"-I{SOURCE.parents[1] / 'common'}"],
                       check=True, timeout=120)  # fmt: skip
        self.served(65536, "operation=write", "flush=end")

    def served(self, request: int, *options: str) -> float:
        out = self.folder / "out.json"
        subprocess.run(
            ["mpirun", "--bind-to", "none", "-np", "1", str(self.program), "clients=1",
             f"request={request}", f"stripe={1 << 40}", f"client_bytes={self.size}",
             f"directory={self.folder}", f"json={out}", *options],
            check=True, capture_output=True, env={**os.environ, **MPI}, timeout=300,
        )  # fmt: skip
        body = json.loads(out.read_text())
        assert body["checksum"]["wrong_pages"] == 0
        return float(body["aggregate"]["bandwidth_bytes_per_s"])

    def ours(self, request: int, pattern: str, direct: bool) -> float:
        options = [f"direct={'on' if direct else 'off'}", "flush=end", f"pattern={pattern}"]
        if pattern == "strided":
            options.append(f"stride={STRIDE}")
        return self.served(request, f"operation={self.operation}", *options)

    def fio(self, request: int, pattern: str, direct: bool) -> float:
        strided = pattern == "strided"
        moved = self.size // STRIDE if strided else self.size
        skip = f":{(STRIDE - 1) * request}" if strided else ""
        done = subprocess.run(
            ["fio", "--name=pair", f"--rw={self.operation}{skip}", f"--bs={request}",
             "--ioengine=psync", f"--size={self.size}", f"--io_size={moved}", "--invalidate=0",
             "--fadvise_hint=0", "--scramble_buffers=0",
             f"--end_fsync={int(self.operation == 'write')}",
             f"--direct={int(direct)}", f"--filename={self.file}", "--overwrite=1",
             "--output-format=json"],
            check=True, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        found = json.loads(done.stdout)["jobs"][0][self.operation]
        assert found["io_bytes"] == moved, (found["io_bytes"], moved)
        return float(found["bw_bytes"])

    def prepare(self, cache: str) -> None:
        with self.file.open("rb") as file:
            os.fdatasync(file.fileno())
            if cache == "cached":
                while file.read(1 << 22):
                    pass
            else:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB")
    parser.add_argument("--operation", choices=("read", "write"), default="read")
    parser.add_argument("--cache", choices=CACHES, action="append")
    arguments = parser.parse_args()
    print(f"{arguments.pairs} pairs, {arguments.size} MiB, {arguments.operation}")
    print(f"{'request':>8} {'pattern':11}{'cache':8}{'ours':>9}{'fio':>9}  MB/s   ratio  of pairs")
    with tempfile.TemporaryDirectory(prefix="eeio-fio-", dir=arguments.directory) as folder:
        pair = Pair(Path(folder), arguments.size << 20, arguments.operation)
        for request, pattern, cache in itertools.product(
            (65536, 4 << 20), ("contiguous", "strided"), arguments.cache or CACHES
        ):
            found: dict[str, list[float]] = {"ours": [], "fio": []}
            for number in range(arguments.pairs):
                for name in ("ours", "fio") if number % 2 else ("fio", "ours"):
                    pair.prepare(cache)
                    run = pair.ours if name == "ours" else pair.fio
                    found[name].append(run(request, pattern, cache == "direct"))
            ours, fio = (statistics.median(found[name]) / 1e6 for name in ("ours", "fio"))
            ratios = [a / b for a, b in zip(found["ours"], found["fio"], strict=True)]
            low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
            print(
                f"{request // 1024:>7}k {pattern:11}{cache:8}{ours:9.0f}{fio:9.0f} "
                f"{ours / fio:12.3f}"
                f"  {low:.3f} to {high:.3f}{'' if ours / fio >= GOAL else '  below the goal'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
