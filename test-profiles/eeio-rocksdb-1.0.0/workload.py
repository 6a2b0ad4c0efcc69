"""RocksDB by its own db_bench, until all is on the device: eeio.json in the form that eeio reads.

    workload.py probe db_bench=PROGRAM database=FOLDER
    workload.py fill db_bench=PROGRAM database=FOLDER keys=N value_size=BYTES
    workload.py run db_bench=PROGRAM database=FOLDER keys=N value_size=BYTES operations=N threads=N
                    workload=fillseq|fillrandom|readrandom|readwhilewriting sync=on|off
                    runtime_s=S seed=N eeio=FILE

Stands alone: it runs with nothing but Python's standard library. Keys have 16 bytes; values do not
compress, and nothing is compressed. Times are CLOCK_MONOTONIC.

The window begins when db_bench names its database, which it does between opening it and the first
operation, or before its result by the seconds that it prints, whichever is earlier. For writes it
lasts until db_bench has ended and every file of the database, and its folder, are flushed;
compaction that is due by then is not waited for. For `readrandom` it ends at db_bench's result.
Bytes are the kernel's account of db_bench (/proc/PID/io): pages made
dirty less those that were dropped before they were written, and bytes fetched from storage.
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

KEY_BYTES = 16
WORKLOADS = {
    # name: (operation, spatiality, whether the database is there before, what is timed)
    "fillseq": ("mixed", "sequential", False, "write"),
    "fillrandom": ("mixed", "random", False, "write"),
    "readrandom": ("read", "random", True, "read"),
    "readwhilewriting": ("mixed", "random", True, "read"),
}
PR_SET_PDEATHSIG = 1
# Of what db_bench prints nothing is as long.
LONGEST_LINE = 65536
RESULT = re.compile(
    r"^(?P<name>\w+) *: +[\d.]+ micros/op (?P<rate>\d+) ops/sec (?P<seconds>[\d.]+) seconds "
    r"(?P<operations>\d+) operations;(?: +[\d.]+ MB/s)?"
    r"(?: \( *(?P<found>\d+) of +(?P<of>\d+) found\))?"
)
PERCENTILES = {
    "P50": (2, "p50"),
    "P99": (100, "p99"),
    "P99.9": (1000, "p999"),
    "P99.99": (10_000, "p9999"),
}


class BenchError(Exception):
    """db_bench did not do what it was asked for; one line."""


@dataclass
class Ran:
    """What was seen of db_bench: when it began, when it told its result, and what it told."""

    start_s: float
    start_account: tuple[int, int]
    told_s: float
    result: "re.Match[str]"
    lines: list[str]


def options(factors, benchmarks, **more):
    """The arguments of db_bench; what is not said here is its default."""
    told = {
        "benchmarks": benchmarks,
        "db": factors["database"],
        "num": factors["keys"],
        "key_size": KEY_BYTES,
        "value_size": factors["value_size"],
        "compression_type": "none",
        "compression_ratio": 1,
        **more,
    }
    # A pipe would keep its lines back until it ends.
    return ["stdbuf", "-oL", factors["db_bench"], *(f"--{key}={told[key]}" for key in told)]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def account(process="self"):
    """Bytes that a process, with its children that have ended, had fetched and made dirty."""
    path = f"/proc/{process}/io"
    try:
        text = Path(path).read_text(encoding="ascii")
        told = dict(line.split(": ") for line in text.splitlines())
        found = {key: int(value) for key, value in told.items()}
        return found["read_bytes"], found["write_bytes"] - found["cancelled_write_bytes"]
    except (OSError, KeyError, ValueError) as error:
        raise BenchError(f"{path}: the kernel tells no account of bytes: {error}") from error


def bench(command, name, errors):
    """Runs db_bench, its output handed on; what it told of the benchmark `name`.

    `errors` is the file that takes its standard error, which is told of when it fails.
    """
    start_s = told_s = result = begun = None
    lines = []
    with (
        errors.open("wb") as into,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=into,
            preexec_fn=die_with_parent,
        ) as process,
    ):
        while raw := process.stdout.readline(LONGEST_LINE):
            now_s = time.monotonic()
            line = raw.decode("ascii", "replace").rstrip()
            if start_s is None and line.startswith("DB path: ["):
                start_s, begun = now_s, account(process.pid)
            if result is None and (result := RESULT.match(line)):
                told_s = now_s
            print(line, flush=True)
            lines = [*lines[-200:], line]
    status = process.returncode
    if status:
        how = f"died of signal {-status}" if status < 0 else f"ended with exit code {status}"
        raise BenchError(f"db_bench {how}: {last_line(errors, lines)}")
    if start_s is None or result is None or result["name"] != name:
        raise BenchError(f"db_bench told no result of {name}: {last_line(errors, lines)}")
    # On a busy machine the line of the start is read late. Until the result it takes at least the
    # seconds that db_bench prints, rounded to 1 ms.
    latest_start_s = told_s - float(result["seconds"]) + 0.0005
    return Ran(min(start_s, latest_start_s), begun, told_s, result, lines)


def last_line(errors, lines):
    """The last words of what failed, without its counting."""
    with errors.open("rb") as file:
        file.seek(max(0, errors.stat().st_size - 4096))
        words = re.split(r"[\r\n]+", file.read().decode("ascii", "replace"))
    told = [word.strip() for word in words if word.strip() and "finished" not in word]
    return (told or [line for line in lines if line] or ["it printed nothing"])[-1][:300]


def each_file(database):
    return sorted(path for path in Path(database).rglob("*") if path.is_file())


def flush(database):
    """Every file of the database and its folder onto the device."""
    for path in (*each_file(database), Path(database), Path(database).parent):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def drop(database):
    """Its pages out of the page cache: they are clean."""
    for path in each_file(database):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def latencies(timed, lines):
    """As db_bench prints them, in s: a percentile with at least one operation beyond it."""
    try:
        at = lines.index(f"Microseconds per {timed}:")
        count = int(re.match(r"Count: (\d+) ", lines[at + 1])[1])
        longest = float(re.search(r" Max: (\d+)$", lines[at + 2])[1])
        printed = dict(re.findall(r"(P[\d.]+): ([\d.]+)", lines[at + 3]))
        found = {
            f"latency_{place}_s": float(printed[name]) / 1e6
            for name, (least, place) in PERCENTILES.items()
            if count >= least
        }
    except (ValueError, IndexError, TypeError, KeyError):
        return {}
    return {**found, "latency_max_s": longest / 1e6} if count else {}


def fill(factors):
    """Every key once, in order, in tables alone, on the device."""
    bench(
        options(factors, "fillseq,flush", disable_wal=1, seed=1),
        "fillseq",
        Path(factors["database"]).with_suffix(".err"),
    )
    flush(factors["database"])


def run(factors):
    workload, threads = factors["workload"], int(factors["threads"])
    operation, spatiality, there, timed = WORKLOADS[workload]
    database, each = factors["database"], max(1, int(factors["operations"]) // threads)
    more = {
        "threads": threads,
        "sync": int(factors["sync"] == "on"),
        "histogram": 1,
        "use_existing_db": int(there),
        "seed": factors["seed"],
        "reads" if there else "writes": each,
    }
    if workload != "fillseq":
        more["duration"] = factors["runtime_s"]
    if there:
        drop(database)
    before = account()
    errors = Path(factors["eeio"]).with_name("db_bench.err")
    ran = bench(options(factors, workload, **more), workload, errors)
    if operation != "read":
        flush(database)
    ended_s = time.monotonic()
    end_s = ran.told_s if operation == "read" else ended_s
    fetched, dirtied = (
        after - first - start
        for after, first, start in zip(account(), before, ran.start_account, strict=True)
    )
    dirtied = max(0, dirtied)  # a log of before that is dropped
    done, returned = int(ran.result["operations"]), int(ran.result["rate"])
    moved = fetched if operation == "read" else fetched + dirtied
    invalid = []
    if there and not fetched:
        invalid.append("nothing was fetched from storage: the keys came from a cache")
    if not there and not dirtied:
        invalid.append("the kernel counted no byte to be written to storage")
    if there and ran.result["found"] != ran.result["of"]:
        invalid.append(f"db_bench found {ran.result['found']} of {ran.result['of']} keys")
    if not done:
        invalid.append("db_bench made no operation")
    measured = {
        "name": workload,
        "operation": operation,
        "spatiality": spatiality,
        "request_size_bytes": None,
        "bytes_moved": moved,
        "start_monotonic_s": ran.start_s,
        "end_monotonic_s": end_s,
        "bandwidth_bytes_per_s": moved / (end_s - ran.start_s) if moved else None,
        "metrics": {
            # Not as `bytes_written`, which the drive's counters must reach: they count whole pages.
            "fetched_bytes": fetched,
            "dirtied_bytes": dirtied,
            "operations": done,
            "operations_per_s": done / (end_s - ran.start_s),
            "returned_operations_per_s": returned,
            **latencies(timed, ran.lines),
        },
        "invalid": invalid,
    }
    if operation != "read":
        measured |= {
            "includes_flush": True,
            "durable_monotonic_s": end_s,
            "durable_source": "an fsync of every file of the database and of its folder",
        }
    return {"schema_version": 1, "phases": [measured], "notes": notes(workload, timed, ran.lines)}


def notes(workload, timed, lines):
    found = [line.strip() for line in lines if line.startswith("WARNING: ")][:5]
    found.append(
        f"latencies of a {timed} are those that db_bench prints: interpolated within a bucket "
        "whose end is about one and a half times its beginning; it prints no p95"
    )
    if workload == "readwhilewriting":
        found.append("operations are reads: db_bench does not tell those of the one that writes")
    return found


def probe(factors):
    """Its result must be told in a form that is read here."""
    command = options({**factors, "keys": 100, "value_size": 100}, "fillseq", histogram=1)
    bench(command, "fillseq", Path(factors["database"]).with_suffix(".err"))


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])
    try:
        if words[0] == "probe":
            probe(factors)
            return
        if words[0] == "fill":
            fill(factors)
            return
        result = run(factors)
    except (BenchError, OSError) as error:
        sys.exit(f"eeio-rocksdb: {error}")
    (measured,) = result["phases"]
    told = measured["bandwidth_bytes_per_s"]
    print(f"{measured['name']} rate: {measured['metrics']['operations_per_s']:.3f} operations/s")
    if told is not None:
        print(f"{measured['name']} bandwidth: {told / 1e6:.6f} MB/s")
    Path(factors["eeio"]).write_text(json.dumps(result), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
