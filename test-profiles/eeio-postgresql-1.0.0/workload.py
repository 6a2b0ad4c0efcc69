"""pgbench's transactions on a PostgreSQL of this run's own: eeio.json in the form that eeio reads.

    workload.py clear folder=DIR bin=DIR
    workload.py fill folder=DIR bin=DIR scale=N
    workload.py run folder=DIR bin=DIR scale=N clients=N runtime_s=S synchronous_commit=off|on
                    fsync=off|on seed=N eeio=FILE

Stands alone, with server.py beside it: it runs with nothing but Python's standard library. A
transaction is pgbench's own (`tpcb-like`): three updates, a lookup, an insert. The server is
started anew from data that are not in the page cache, which is not measured. The phase begins when
pgbench is started. It lasts until all is on the device: the server's orderly end, which is a
checkpoint, and a syncfs for what fsync=off has left. Times are CLOCK_MONOTONIC.

pgbench tells when each transaction ended and how long it took; that goes through a pipe, so that
nothing beside the database is written.
"""

import os
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import server

TOOL = "eeio-postgresql"
HERE = "/proc/self/cwd"  # the socket's folder, in few bytes wherever the data are
LINE_BYTES = 4096
CLIENT_GRACE_S = 120
TPS = r"tps = ([\d.]+) \((?:without initial|excluding) connection"  # 14 and newer, before
MANUAL = "https://www.postgresql.org/docs/current/runtime-config-wal.html"
PROMISES = {
    ("on", "on"): "a commit returns when its log is flushed: no transaction is lost",
    ("off", "on"): "a commit returns before its log is flushed: a crash may lose the last "
    "transactions (three times wal_writer_delay, 0.6 s), not the database",
    ("on", "off"): "nothing is flushed: a power loss may lose the database",
    ("off", "off"): "nothing is flushed: a power loss may lose the database",
}
# What a server is asked for when it runs, and what its notes tell.
SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "data_checksums",
)


class Programs:
    """Where they are, and how they come to the server."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self.postgres = self.path("postgres")

    def path(self, name):
        return str(self._folder / name)

    def client(self, name, *words):
        return [self.path(name), "-h", HERE, *words]

    def server(self, data, *settings):
        every = (
            "listen_addresses=",
            "unix_socket_directories=.",
            "unix_socket_permissions=0700",
            *settings,
        )
        return [self.postgres, "-D", str(data), *(w for each in every for w in ("-c", each))]

    def answers(self):
        return self.client("pg_isready", "-q", "-d", "postgres")


def fill(place, programs, scale):
    """A cluster with pgbench's tables, on the device; nobody waits for its flushes."""
    place.clear()
    place.make()
    place.call(
        [
            programs.path("initdb"),
            "-D",
            str(place.data),
            "--auth=peer",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
        ],
        300,
    )
    with tempfile.TemporaryFile() as log:
        place.start(programs.server(place.data, "fsync=off"), log, programs.answers())
        place.call(programs.client("pgbench", "-i", "-q", "-s", scale, "postgres"), 86400)
        place.stop(signal.SIGINT)
    place.mark_ready(f"scale={scale}")


def measure(place, programs, factors):
    """The phase, and what is to be said of it."""
    fsync, commit = factors["fsync"], factors["synchronous_commit"]
    place.drop()
    with (Path(factors["eeio"]).parent / "server.txt").open("w+b") as log:
        settings = (f"fsync={fsync}", f"synchronous_commit={commit}")
        place.start(programs.server(place.data, *settings), log, programs.answers())
        kept = asked(place, programs)
        for name, value in (("fsync", fsync), ("synchronous_commit", commit)):
            if kept.get(name) != value:
                raise server.RejectedError(f"the server keeps {name}={kept.get(name)}, not {value}")
        server.sync(place.data)  # what its start has left is no part of what follows
        before = place.account()
        start_s = time.monotonic()
        counted, failed, text, by_client = transactions(place, programs, factors)
        place.stop(signal.SIGINT)
        server.sync(place.data)
        end_s = time.monotonic()
        fetched, dirtied = (
            now - then - of_client
            for now, then, of_client in zip(place.account(), before, by_client, strict=True)
        )
    print(text, end="")
    done = sum(counted.values())
    if told(text, r"transactions actually processed: (\d+)") != done or not done:
        raise server.RejectedError(
            f"pgbench logged {done} transactions, and says otherwise: {text}"
        )
    phase = {
        "name": "transactions",
        "operation": "mixed",
        "spatiality": "mixed",
        "request_size_bytes": None,
        "bytes_moved": fetched + dirtied,
        "start_monotonic_s": start_s,
        "end_monotonic_s": end_s,
        "bandwidth_bytes_per_s": (fetched + dirtied) / (end_s - start_s),
        "metrics": {
            "fetched_bytes": fetched,
            "dirtied_bytes": dirtied,
            "operations": done,
            "operations_per_s": done / (end_s - start_s),
            "returned_operations_per_s": told(text, TPS),
            "failed_operations": failed,
            **server.latencies({spent / 1e6: times for spent, times in counted.items()}),
        },
        "includes_flush": True,
        "durable_monotonic_s": end_s,
        "durable_source": "the server's orderly end with its checkpoint, and a syncfs",
        "invalid": [] if dirtied > 0 else ["the kernel counted no byte to be written to storage"],
    }
    notes = [
        place.call([programs.postgres, "--version"], 60).strip(),
        f"fsync={fsync} synchronous_commit={commit}: {PROMISES[commit, fsync]} ({MANUAL})",
        " ".join(f"{name}={value}" for name, value in kept.items()) + ", no O_DIRECT",
        f"pgbench tpcb-like scale={factors['scale']} clients={factors['clients']}, one thread, by "
        f"a Unix socket; the server ran as {place.user}",
    ]
    return phase, notes


def asked(place, programs):
    """The server's settings, by the server."""
    names = ", ".join(f"'{name}'" for name in SETTINGS)
    query = f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})"
    lines = place.call(programs.client("psql", "-XAtF=", "-c", query, "postgres"), 60).splitlines()
    return dict(line.split("=", 1) for line in lines)


def transactions(place, programs, factors):
    """How often transactions took how many microseconds, how many failed, what pgbench printed, and
    the bytes that the kernel counts for it."""
    limit_s = int(factors["runtime_s"]) + CLIENT_GRACE_S
    command = programs.client(
        "pgbench",
        "-n",
        "-c",
        factors["clients"],
        "-T",
        factors["runtime_s"],
        "-l",
        "--log-prefix=log",
        f"--random-seed={factors['seed']}",
        "postgres",
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # pgbench opens log.PID to write it: a pipe of that name waits for it.
        client = place.spawn(command, out, err, before=make_pipe)
        pipe = place.data / f"log.{client.pid}"
        try:
            counted, failed = logged(pipe, client, time.monotonic() + limit_s)
            by_client = server.reap(client, CLIENT_GRACE_S)
        finally:
            server.end(client)
            pipe.unlink()
        out.seek(0)
        text = out.read(server.SPOKEN_BYTES).decode(errors="replace")
        if client.returncode:
            words = f"{server.error_line(err)}{place.said()}"
            raise server.RejectedError(f"pgbench ended with status {client.returncode}: {words}")
    return counted, failed, text, by_client


def make_pipe():
    os.mkfifo(f"log.{os.getpid()}", 0o600)


def logged(path, client, deadline_s):
    """Reads pgbench's log until it closes it: how often transactions took how many microseconds,
    and how many failed. A line is client, number, microseconds, script and when; a word stands for
    the microseconds of one that failed."""
    counted, failed, rest = Counter(), 0, b""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while True:
            if time.monotonic() > deadline_s:
                raise server.RejectedError("pgbench does not end")
            if not poll.poll(100):
                # Nobody has opened it yet, or nobody will.
                if os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                    return counted, failed
                continue
            chunk = os.read(pipe, 65536)
            if not chunk:
                return counted, failed
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LINE_BYTES:
                raise server.RejectedError(f"pgbench logs no transactions: {rest[:60]!r}")
            for line in lines:
                _, _, spent, *_ = *line.split(), b"", b"", b""
                if spent.isdigit():
                    counted[int(spent)] += 1
                else:
                    failed += 1
    finally:
        os.close(pipe)


def told(text, pattern):
    found = re.search(pattern, text)
    if found is None:
        raise server.RejectedError(f"pgbench does not tell {pattern!r}: {text[-300:]!r}")
    return float(found[1])


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])
    programs = Programs(factors["bin"])
    users = ("postgres", "nobody")

    def work(place):
        if words[0] == "clear":
            place.clear()
        elif words[0] == "fill":
            fill(place, programs, factors["scale"])
        else:
            server.report(factors["eeio"], *measure(place, programs, factors))

    server.guarded(TOOL, work, factors["folder"], programs.postgres, users, signal.SIGQUIT)


if __name__ == "__main__":
    main(sys.argv[1:])
