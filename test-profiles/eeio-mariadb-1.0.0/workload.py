"""sysbench's transactions on a MariaDB of this run's own: eeio.json in the form that eeio reads.

    workload.py clear folder=DIR server=FILE
    workload.py fill folder=DIR server=FILE rows=N
    workload.py run folder=DIR server=FILE rows=N workload=read_only|read_write|write_only clients=N
                    runtime_s=S flush_log_at_trx_commit=0|1|2 buffer=on|off seed=N eeio=FILE

Stands alone, with server.py beside it: it runs with nothing but Python's standard library. A
transaction is sysbench's own (`oltp_read_only`, `oltp_read_write`, `oltp_write_only`), on four
tables, with keys drawn evenly. The server is started anew from data that are not in the page cache,
which is not measured. The phase begins when sysbench is started. Where it writes it lasts until all
is on the device: the server's orderly end, which writes InnoDB's dirty pages, and a syncfs. Times
are CLOCK_MONOTONIC.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import server

TOOL = "eeio-mariadb"
SOCKET = "--socket=mariadb.sock"  # in the data directory, which all begin in
TABLES = 4
CLIENT_GRACE_S = 120
MANUAL = "https://mariadb.com/kb/en/innodb-system-variables/#innodb_flush_log_at_trx_commit"
PROMISES = {
    "0": "the log is written and flushed once a second: a crash of the server may lose the last "
    "second",
    "1": "a commit returns when its log is flushed: no transaction is lost",
    "2": "a commit returns when its log is written, which is flushed once a second: a power loss "
    "may lose the last second",
}
FLUSH_METHODS = {"off": "O_DIRECT", "on": "fsync"}
# What a server is asked for when it runs, and what its notes tell.
SETTINGS = (
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_file_buffering",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_use_native_aio",
    "innodb_io_capacity",
    "log_bin",
)


def started(place, program, log, commit, buffer):
    """The server runs and answers. Its memory begins empty, and tells nobody where it was."""
    place.start(
        [
            program,
            "--no-defaults",
            f"--datadir={place.data}",
            f"--tmpdir={place.data}",
            SOCKET,
            "--pid-file=mariadb.pid",
            "--skip-networking",
            "--skip-name-resolve",
            f"--innodb-flush-log-at-trx-commit={commit}",
            f"--innodb-flush-method={FLUSH_METHODS[buffer]}",
            "--innodb-buffer-pool-load-at-startup=0",
            "--innodb-buffer-pool-dump-at-shutdown=0",
        ],
        log,
        ["mariadb-admin", "--no-defaults", SOCKET, f"--user={place.user}", "ping"],
    )


def ask(place, query):
    return place.call(
        ["mariadb", "--no-defaults", SOCKET, f"--user={place.user}", "-BN", "-e", query], 3600
    )


def sysbench(place, workload, rows, *words):
    return [
        "sysbench",
        f"oltp_{workload}",
        "--db-driver=mysql",
        f"--mysql-{SOCKET[2:]}",
        f"--mysql-user={place.user}",
        "--mysql-db=sbtest",
        f"--tables={TABLES}",
        f"--table-size={rows}",
        "--rand-type=uniform",
        *words,
    ]


def fill(place, program, rows):
    """A server's data with sysbench's tables, on the device; nobody waits for its flushes."""
    place.clear()
    place.make()
    # Only the user that runs the server may log in, through the socket. Temporary tables are in the
    # current folder: in /tmp, servers that start delete each other's temporary tables. The program
    # is a script that splits the value of this option at blanks.
    place.call(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={place.data}",
            "--tmpdir=.",
            "--skip-test-db",
            "--skip-name-resolve",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={place.user}",
        ],
        300,
    )
    with tempfile.TemporaryFile() as log:
        started(place, program, log, "0", "on")
        ask(place, "CREATE DATABASE sbtest")
        place.call(
            sysbench(place, "read_write", rows, "--rand-seed=1", f"--threads={TABLES}", "prepare"),
            86400,
        )
        check_filled(place, rows)
        place.stop(signal.SIGTERM)
    place.mark_ready(f"rows={rows}")


def check_filled(place, rows):
    """RejectedError where rows are missing: sysbench's threads fail, and it ends with status 0."""
    counts = " UNION ALL ".join(f"SELECT count(*) FROM sbtest.sbtest{n + 1}" for n in range(TABLES))
    for number, found in enumerate(ask(place, counts).split(), start=1):
        if found != rows:
            raise server.RejectedError(
                f"sysbench filled {found} of {rows} rows of its table {number}{place.said()}"
            )


def measure(place, program, factors):
    """The phase, and what is to be said of it."""
    commit, workload = factors["flush_log_at_trx_commit"], factors["workload"]
    writes = workload != "read_only"
    place.drop()
    with (Path(factors["eeio"]).parent / "server.txt").open("w+b") as log:
        started(place, program, log, commit, factors["buffer"])
        kept = asked(place)
        for name, value in (
            ("innodb_flush_log_at_trx_commit", commit),
            ("innodb_flush_method", FLUSH_METHODS[factors["buffer"]]),
        ):
            if kept.get(name) != value:
                raise server.RejectedError(f"the server keeps {name}={kept.get(name)}, not {value}")
        server.sync(place.data)  # what its start has left is no part of what follows
        before = place.account()
        start_s = time.monotonic()
        text, by_client = transactions(place, factors)
        end_s = time.monotonic()
        if writes:
            place.stop(signal.SIGTERM)
            server.sync(place.data)
            end_s = time.monotonic()
        fetched, dirtied = (
            now - then - of_client
            for now, then, of_client in zip(place.account(), before, by_client, strict=True)
        )
    print(text, end="")
    moved = fetched + dirtied if writes else fetched
    invalid = []
    if writes and dirtied <= 0:
        invalid = ["the kernel counted no byte to be written to storage"]
    if not writes and fetched <= 0:
        invalid = ["the kernel counted no byte fetched from storage"]
    written = {"dirtied_bytes": dirtied} if writes else {}
    phase = {
        "name": "transactions",
        "operation": "mixed" if writes else "read",
        "spatiality": "mixed" if writes else "random",
        "request_size_bytes": None,
        "bytes_moved": moved,
        "start_monotonic_s": start_s,
        "end_monotonic_s": end_s,
        "bandwidth_bytes_per_s": moved / (end_s - start_s) if moved else None,
        "metrics": {
            "fetched_bytes": fetched,
            **written,
            **figures(text, end_s - start_s),
        },
        "invalid": invalid,
    }
    if writes:
        phase |= {
            "includes_flush": True,
            "durable_monotonic_s": end_s,
            "durable_source": "the server's orderly end, and a syncfs",
        }
    direct = "no O_DIRECT" if factors["buffer"] == "on" else "O_DIRECT for the data's pages"
    notes = [
        place.call([program, "--version"], 60).strip(),
        place.call(["sysbench", "--version"], 60).strip(),
        " ".join(f"{name}={value}" for name, value in kept.items()) + f", {direct}",
        f"sysbench oltp_{workload} tables={TABLES} rows={factors['rows']} each, "
        f"clients={factors['clients']}, keys drawn evenly, by a Unix socket; the server ran as "
        f"{place.user}",
        "latencies are sysbench's histogram's, whose steps are 1.8 %; failed_operations are "
        "deadlocks and the like, after which sysbench tries again",
    ]
    if writes:
        notes.insert(2, f"innodb_flush_log_at_trx_commit={commit}: {PROMISES[commit]} ({MANUAL})")
    return phase, notes


def asked(place):
    """The server's settings, by the server."""
    names = ", ".join(f"'{name}'" for name in SETTINGS)
    lines = ask(place, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def transactions(place, factors):
    """What sysbench printed, and the bytes that the kernel counts for it."""
    command = sysbench(
        place,
        factors["workload"],
        factors["rows"],
        f"--threads={factors['clients']}",
        f"--time={factors['runtime_s']}",
        "--events=0",
        "--histogram=on",
        "--percentile=99",
        f"--rand-seed={factors['seed']}",
        "run",
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        client = place.spawn(command, out, err)
        try:
            client_ended = server.reap(client, int(factors["runtime_s"]) + CLIENT_GRACE_S)
        except subprocess.TimeoutExpired:
            raise server.RejectedError(f"sysbench does not end{place.said()}") from None
        finally:
            server.end(client)
        if client.returncode:
            words = server.error_line(err) or server.error_line(out)
            raise server.RejectedError(
                f"sysbench ended with status {client.returncode}: {words}{place.said()}"
            )
        out.seek(0)
        return out.read(server.SPOKEN_BYTES).decode(errors="replace"), client_ended


def figures(text, lasted_s):
    """Metrics of what sysbench printed."""
    done = told(text, r"^ *transactions: +(\d+) ")
    steps = re.findall(r"^ *([\d.]+) \|\**  *(\d+)$", text, re.MULTILINE)
    counted = {round(float(value) / 1e3, 6): int(times) for value, times in steps}
    if sum(counted.values()) != done or not done:
        raise server.RejectedError(f"sysbench's histogram has not its {done:g} transactions")
    longest_s = told(text, r"^ *max: +([\d.]+)$") / 1e3
    # A step's middle, of the last may lie above what was longest.
    places = {name: min(spent_s, longest_s) for name, spent_s in server.latencies(counted).items()}
    return {
        "operations": int(done),
        "operations_per_s": done / lasted_s,
        "returned_operations_per_s": told(text, r"^ *transactions: .*\(([\d.]+) per sec"),
        "failed_operations": int(told(text, r"^ *ignored errors: +(\d+) ")),
        **places,
        "latency_max_s": longest_s,
    }


def told(text, pattern):
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise server.RejectedError(f"sysbench does not tell {pattern!r}: {text[-300:]!r}")
    return float(found[1])


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])

    def work(place):
        if words[0] == "clear":
            place.clear()
        elif words[0] == "fill":
            fill(place, factors["server"], factors["rows"])
        else:
            server.report(factors["eeio"], *measure(place, factors["server"], factors))

    users = ("mysql", "nobody")
    server.guarded(TOOL, work, factors["folder"], factors["server"], users, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
