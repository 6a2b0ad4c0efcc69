"""SQLite's transactions and lookups, each timed: eeio.json in the form that eeio reads.

    workload.py fill database=FILE rows=N
    workload.py run database=FILE rows=N transactions=N runtime_s=S journal=delete|wal
                    synchronous=off|normal|full seed=N eeio=FILE

Stands alone: it runs with nothing but Python's standard library. One table, `item`: a whole-number
primary key and a value of 100 bytes that does not compress. A transaction is, in this order, two
lookups by key, an update of both rows, the insert of one row, and the commit; keys are drawn evenly
among the rows there are. Then the file's pages are dropped from the page cache, and as many rows
are looked up by key, each one operation: a page comes from storage when it is first asked for.
Times are CLOCK_MONOTONIC.

The write phase lasts until all is on the device: the last commit, the close (in WAL mode it brings
the log into the database) and an fsync of the database and its directory. It is mixed, for a
transaction reads, too. Bytes are the kernel's account of this process (/proc/self/io): pages made
dirty less those that were dropped before they were written, and bytes fetched from storage.
"""

import json
import os
import random
import sqlite3
import sys
import time
from pathlib import Path

VALUE_BYTES = 100
BATCH = 10_000
PERCENTILES = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9))
# https://www.sqlite.org/pragma.html#pragma_synchronous and https://www.sqlite.org/wal.html
PROMISES = {
    ("delete", "off"): "no commit is flushed: a power loss may lose transactions, or the database",
    ("delete", "normal"): "journal and database are flushed at each commit",
    ("delete", "full"): "journal and database are flushed at each commit, the journal twice",
    ("wal", "off"): "nothing is flushed: a power loss may lose transactions, or the database",
    ("wal", "normal"): "the log is flushed at checkpoints alone: a power loss may lose the last "
    "transactions, not the database",
    ("wal", "full"): "the log is flushed at each commit",
}


def version():
    return f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}"


def fill(database, rows):
    """The table with its rows, on the device."""
    values = random.Random("rows")  # no seed of a run
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("PRAGMA synchronous=off")
    db.execute("CREATE TABLE item (key INTEGER PRIMARY KEY, value BLOB NOT NULL)")
    for first in range(0, rows, BATCH):
        last = min(first + BATCH, rows)
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO item VALUES (?, ?)",
            (
                (key, values.getrandbits(8 * VALUE_BYTES).to_bytes(VALUE_BYTES, "big"))
                for key in range(first, last)
            ),
        )
        db.execute("COMMIT")
    db.close()
    flush(database)


def flush(database):
    """Database and directory onto the device; the journal is gone when the database is closed."""
    for path, flags in ((database, os.O_RDWR), (Path(database).parent, os.O_RDONLY)):
        fd = os.open(path, flags)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def drop(database):
    """Its pages out of the page cache: they are clean."""
    fd = os.open(database, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def account():
    """Bytes that this process had fetched from storage, and made dirty to be written."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
        told = dict(line.split(": ") for line in text.splitlines())
        found = {key: int(value) for key, value in told.items()}
        return found["read_bytes"], found["write_bytes"] - found["cancelled_write_bytes"]
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"eeio-sqlite: /proc/self/io: the kernel tells no account of bytes: {error}")


def opened(database, journal, synchronous):
    db = sqlite3.connect(database, isolation_level=None)
    mode = db.execute(f"PRAGMA journal_mode={journal}").fetchone()[0]
    if mode != journal:
        sys.exit(f"eeio-sqlite: {database}: SQLite keeps journal_mode={mode}, not {journal}, here")
    db.execute(f"PRAGMA synchronous={synchronous}")
    return db


def transactions(db, keys, rows, most, runtime_s):
    """Seconds of each commit, and of each whole transaction."""
    commits, wholes = [], []
    began_s = time.monotonic()
    while len(wholes) < most:
        value = keys.getrandbits(8 * VALUE_BYTES).to_bytes(VALUE_BYTES, "big")
        pair = (keys.randrange(rows), keys.randrange(rows))
        start_s = time.monotonic()
        db.execute("BEGIN IMMEDIATE")
        for key in pair:
            look_up(db, key)
        for key in pair:
            db.execute("UPDATE item SET value = ? WHERE key = ?", (value, key))
        db.execute("INSERT INTO item VALUES (?, ?)", (rows, value))
        commit_s = time.monotonic()
        db.execute("COMMIT")
        end_s = time.monotonic()
        rows += 1
        commits.append(end_s - commit_s)
        wholes.append(end_s - start_s)
        if runtime_s and end_s - began_s >= runtime_s:
            break
    return commits, wholes


def lookups(db, keys, rows, most, runtime_s):
    """Seconds of each lookup."""
    taken = []
    began_s = time.monotonic()
    while len(taken) < most:
        key = keys.randrange(rows)
        start_s = time.monotonic()
        look_up(db, key)
        end_s = time.monotonic()
        taken.append(end_s - start_s)
        if runtime_s and end_s - began_s >= runtime_s:
            break
    return taken


def look_up(db, key):
    found = db.execute("SELECT value FROM item WHERE key = ?", (key,)).fetchone()
    if found is None or len(found[0]) != VALUE_BYTES:
        sys.exit(f"eeio-sqlite: the row {key} is not what was written")


def latencies(prefix, seconds):
    """Percentiles by nearest rank, and the longest."""
    ordered = sorted(seconds)
    found = {}
    for name, percent in PERCENTILES:
        rank = -(-len(ordered) * int(10 * percent) // 1000)
        found[f"{prefix}latency_{name}_s"] = ordered[rank - 1]
    found[f"{prefix}latency_max_s"] = ordered[-1]
    return found


def phase(name, operation, spatiality, start_s, end_s, moved, metrics, **more):
    return {
        "name": name,
        "operation": operation,
        "spatiality": spatiality,
        "request_size_bytes": None,
        "bytes_moved": moved,
        "start_monotonic_s": start_s,
        "end_monotonic_s": end_s,
        "bandwidth_bytes_per_s": moved / (end_s - start_s) if moved else None,
        "metrics": metrics,
        **more,
    }


def run(database, journal, synchronous, most, rows, runtime_s, seed):
    keys = random.Random(seed)
    db = opened(database, journal, synchronous)
    read_before, dirtied_before = account()
    start_s = time.monotonic()
    commits, wholes = transactions(db, keys, rows, most, runtime_s)
    returned_s = time.monotonic()
    db.close()
    flush(database)
    end_s = time.monotonic()
    read_after, dirtied_after = account()
    fetched, dirtied = read_after - read_before, dirtied_after - dirtied_before
    done = len(commits)
    written = phase(
        "write",
        "mixed",
        "mixed",
        start_s,
        end_s,
        fetched + dirtied,
        {
            # Not as `bytes_written`, which the drive's counters must reach: of file systems of
            # small blocks less than a page is written of what they make dirty for themselves.
            "fetched_bytes": fetched,
            "dirtied_bytes": dirtied,
            "operations": done,
            "operations_per_s": done / (end_s - start_s),
            "returned_operations_per_s": done / (returned_s - start_s),
            **latencies("", commits),
            **latencies("transaction_", wholes),
        },
        includes_flush=True,
        durable_monotonic_s=end_s,
        durable_source="the close of the database and an fsync of it and its directory",
        invalid=[] if dirtied > 0 else ["the kernel counted no byte to be written to storage"],
    )

    drop(database)
    db = sqlite3.connect(database, isolation_level=None)
    start_s = time.monotonic()
    taken = lookups(db, keys, rows + done, most, runtime_s)
    end_s = time.monotonic()
    fetched = account()[0] - read_after
    db.close()
    looked_up = phase(
        "read",
        "read",
        "random",
        start_s,
        end_s,
        fetched,
        {
            "operations": len(taken),
            "operations_per_s": len(taken) / (end_s - start_s),
            **latencies("", taken),
        },
        invalid=[] if fetched else ["nothing was fetched from storage: the rows came from a cache"],
    )
    notes = [
        version(),
        f"journal={journal} synchronous={synchronous}: {PROMISES[journal, synchronous]}",
    ]
    return {"schema_version": 1, "phases": [written, looked_up], "notes": notes}


def main(words):
    if words == ["version"]:
        print(version())
        return
    factors = dict(word.split("=", 1) for word in words[1:])
    database, rows = factors["database"], int(factors["rows"])
    try:
        if words[0] == "fill":
            fill(database, rows)
            return
        result = run(
            database,
            factors["journal"],
            factors["synchronous"],
            int(factors["transactions"]),
            rows,
            int(factors["runtime_s"]),
            int(factors["seed"]),
        )
    except (OSError, sqlite3.Error) as error:
        sys.exit(f"eeio-sqlite: {database}: {error}")
    for each in result["phases"]:
        told = each["bandwidth_bytes_per_s"]
        print(f"{each['name']} rate: {each['metrics']['operations_per_s']:.3f} operations/s")
        if told is not None:
            print(f"{each['name']} bandwidth: {told / 1e6:.6f} MB/s")
    Path(factors["eeio"]).write_text(json.dumps(result), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
