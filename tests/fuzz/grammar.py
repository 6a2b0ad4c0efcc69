"""Outputs made by the grammar of each tool's format, not by changing a real one.

Most agree with themselves. Some have one figure that is several times too large or too small: the
readers must reject those (`tests.fuzz.relations`).
"""

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.fuzz.mutate import Files

STARTED_S, LASTED_S = 100.0, 10_000.0
_WRONG_SHARE = 0.4
_WRONG = (0.0, 1e-3, 0.1, 0.2, 0.5, 0.9, 1.1, 2.0, 5.0, 10.0, 1024.0)


@dataclass(frozen=True)
class Work:
    """A phase that a tool might report; each figure may contradict the others."""

    request_bytes: int
    requests: int
    moved: int
    seconds: float
    bandwidth: float
    """bytes/s"""
    iops: float


def work(draw: random.Random, unit: int = 1) -> Work:
    """Bytes are a multiple of `unit`."""
    request = unit * draw.choice((1, 4, 17, 128, 1024)) * draw.choice((1, 512, 1024))
    requests = draw.choice((1, 2, 7, 64, 1000, 12_345))
    seconds = draw.choice((0.0004, 0.02, 0.5, 1.0, 33.3, 700.0)) * draw.uniform(0.5, 2.0)
    figures = {
        "moved": request * requests, "seconds": seconds,
        "bandwidth": request * requests / seconds, "iops": requests / seconds,
    }  # fmt: skip
    if draw.random() < _WRONG_SHARE:
        figures[draw.choice(list(figures))] *= draw.choice(_WRONG)
    return Work(
        request, requests, int(figures["moved"]) // unit * unit, figures["seconds"],
        figures["bandwidth"], figures["iops"],
    )  # fmt: skip


def capture(draw: random.Random, stamps: list[tuple[str, int, float]], **factors: str) -> bytes:
    body = {
        "factors": factors, "exit_code": 0, "started_monotonic_s": STARTED_S,
        "ended_monotonic_s": STARTED_S + LASTED_S, "started_utc_s": 1.7e9,
        "stamps": [] if draw.random() < 0.1 else stamps, "left_out": {},
    }  # fmt: skip
    return json.dumps(body).encode()


def native(draw: random.Random) -> Files:
    """eeio.json of a program."""
    at_s, phases = STARTED_S, []
    for number in range(draw.randint(1, 4)):
        done = work(draw)
        at_s += draw.random()
        operation = draw.choice(("read", "write", "mixed"))
        phase: dict[str, Any] = {
            "name": f"{operation} {number}", "operation": operation,
            "spatiality": draw.choice(("sequential", "random", "strided", "mixed")),
            "request_size_bytes": draw.choice((done.request_bytes, None)),
            "bytes_moved": done.moved, "start_monotonic_s": at_s,
            "end_monotonic_s": at_s + done.seconds,
            "bandwidth_bytes_per_s": draw.choice((done.bandwidth, done.bandwidth, None)),
            "metrics": {},
        }  # fmt: skip
        if draw.random() < 0.7:
            phase["metrics"]["iops"] = done.iops
        if draw.random() < 0.2:
            phase["metrics"][draw.choice(("io_time_s", "span_s", "runtime_s"))] = done.seconds
        if operation == "write" and draw.random() < 0.4:
            flush_s = draw.choice((0.0, 0.5, 5.0))
            phase |= {
                "durable_monotonic_s": phase["end_monotonic_s"] + flush_s,
                "durable_source": "fsync",
                "durable_bandwidth_bytes_per_s": draw.choice(
                    (None, done.moved / (done.seconds + flush_s) if done.seconds else 1.0, 5.0)
                ),
            }
        at_s += done.seconds + 6.0
        phases.append(phase)
    body = {"schema_version": 1, "phases": phases}
    return {"capture.json": capture(draw, []), "eeio.json": json.dumps(body).encode()}


def dataserver(draw: random.Random) -> Files:
    return {**native(draw), "trace.csv": b"time,client,op,offset,length\n0.0,0,read,0,4096\n"}


def fio(draw: random.Random) -> Files:
    """fio.json of one job."""

    def direction(done: Work, used: bool) -> dict[str, Any]:
        latency = {"mean": 5e4, "max": 9e5, "N": done.requests if used else 0}
        return {
            "io_bytes": done.moved if used else 0, "io_kbytes": done.moved // 1024,
            "bw_bytes": int(done.bandwidth), "bw": int(done.bandwidth / 1024),
            "iops": done.iops, "runtime": int(done.seconds * 1000) if used else 0,
            "total_ios": done.requests if used else 0, "short_ios": 0, "drop_ios": 0,
            "lat_ns": {**latency, "percentile": {"99.000000": 8e5}}, "clat_ns": latency,
        }  # fmt: skip

    done, used = work(draw), draw.choice(((True, False), (False, True), (True, True)))
    rw = draw.choice(("read", "write", "randrw", "read:4096"))
    options = {"bs": str(done.request_bytes), "rw": rw, "numjobs": "1"}
    if draw.random() < 0.3:
        options["end_fsync"] = "1"
    other = work(draw) if draw.random() < 0.3 else done
    job = {
        "jobname": "job", "groupid": 0, "error": 0, "job options": options,
        "usr_cpu": 1.5, "sys_cpu": 3.0,
        "read": direction(done, used[0]), "write": direction(other, used[1]),
    }  # fmt: skip
    begun_s = 1.7e9 + draw.random()
    return {
        "capture.json": capture(draw, []),
        "fio.json": json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=1).encode(),
        "fio-start.txt": f"{begun_s:.9f}\n".encode(),
        "fio-end.txt": f"{begun_s + done.seconds + 0.001:.9f}\n".encode(),
    }


_IOR_SUMMARY = (
    "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     "
    "StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff "
    "reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum"
)


def ior_text(draw: random.Random) -> str:
    tasks, segments = draw.choice((1, 2, 16)), draw.choice((1, 3))
    iterations = draw.choice((1, 1, 3))
    flush = draw.choice(("", " -e", " -Y"))
    transfer = draw.choice((4096, 65536, 1 << 20))
    block = transfer * draw.choice((1, 4, 64))
    lines = [
        "IOR-4.0.0: MPI Coordinated Test of Parallel I/O",
        f"Command line        : ior -w -r{flush} -o x", "", "Options: ",
        "access              : single-shared-file", f"segments            : {segments}",
        f"ordering in a file  : {draw.choice(('sequential', 'random'))}",
        f"tasks               : {tasks}", f"xfersize            : {transfer} bytes",
        f"blocksize           : {block} bytes", "", "Results: ", "",
        "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   "
        "close(s)   total(s)   iter",
    ]  # fmt: skip
    operations = draw.choice((("write",), ("read",), ("write", "read")))
    for iteration in range(iterations):
        for operation in operations:
            moved = tasks * segments * block
            total_s = draw.choice((0.003, 0.5, 20.0)) * draw.uniform(0.5, 2.0)
            transfer_s = total_s * draw.uniform(0.05, 1.0)
            figures = [moved / total_s / (1 << 20), moved / transfer / transfer_s]
            if draw.random() < _WRONG_SHARE / 2:
                figures[draw.randrange(2)] *= draw.choice(_WRONG)
            lines.append(
                f"{operation:9} {figures[0]:<10.2f} {figures[1]:<10.2f} 0.004162    "
                f"{block / 1024:<10.0f} {transfer / 1024:<10.2f} 0.000548   {transfer_s:<10.6f} "
                f"0.002298   {total_s:<10.6f} {iteration}   "
            )
    lines += ["", "Summary of all tests:", _IOR_SUMMARY]
    for operation in operations:
        lines.append(
            f"{operation:9} 905.85 439.89 672.87 232.98 905.85 439.89 672.87 232.98 0.02702 NA NA "
            f"0 {tasks} {tasks} {iterations} 0 1 1 0 0 {segments} {block} {transfer} 16.0 POSIX 0"
        )
    return "\n".join([*lines, "Finished            : Sat Nov 21 13:17:59 2026", ""])


def ior(draw: random.Random) -> Files:
    text = ior_text(draw)
    stamps, offset = [], 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        offset += len(line)
        stamps.append(("stdout", offset, STARTED_S + 50.0 * (number + 1)))
    return {"capture.json": capture(draw, stamps), "stdout.txt": text.encode()}


def ior_report(draw: random.Random) -> Files:
    return {"ior.txt": ior_text(draw).encode()}


_BONNIE = (
    ("Writing a byte at a time...", 9, 1), ("Writing intelligently...", 11, 0),
    ("Rewriting...", 13, 0), ("Reading a byte at a time...", 15, 1),
    ("Reading intelligently...", 17, 0), ("start 'em...", 19, 2),
)  # fmt: skip


def bonnie(draw: random.Random) -> Files:
    """The CSV line, and the progress messages with their times of arrival."""
    size, chunk = draw.choice((16, 256, 4096)) << 20, draw.choice((4096, 65536))
    seeks, characters = draw.choice((100, 8192)), draw.choice((0, 1 << 20))
    fields = [""] * 50
    fields[:9] = ["1.98", "2.00a", "eeio", "1", "1795196457", f"{size >> 20}M", "", str(seeks), "5"]
    progress, stamps, at_s = "Using uid:0, gid:0.\n", [], STARTED_S + 1.0
    for text, place, kind in _BONNIE:
        if kind == 1 and not characters:
            continue
        moved = (size, characters, seeks * chunk)[kind]
        seconds = draw.choice((0.1, 0.6, 3.0, 100.0)) * draw.uniform(0.5, 2.0)
        rate = moved / seconds / (chunk if kind == 2 else 1024)
        if draw.random() < _WRONG_SHARE / 4:
            rate *= draw.choice(_WRONG)
        fast = seconds < 0.5 and draw.random() < 0.8
        fields[place : place + 2] = ["+++++", "+++"] if fast else [f"{rate:.0f}", "41"]
        fields[{9: 38, 11: 39, 13: 40, 15: 41, 17: 42, 19: 43}[place]] = "355us"
        progress += text
        stamps.append(("stderr", len(progress), at_s))
        at_s += seconds
        progress += "done\n" if kind != 2 else "done...done...done\n"
        stamps.append(("stderr", len(progress), at_s))
    factors = {"buffer": draw.choice(("on", "off")), "request_size": str(chunk)}
    if characters:
        factors["characters"] = str(characters)
    return {
        "capture.json": capture(draw, stamps, **factors),
        "stdout.txt": f"\n{','.join(fields)}\n".encode(), "stderr.txt": progress.encode(),
    }  # fmt: skip


_IOZONE = "\tIozone: Performance Test of File I/O\n\tOutput is in kBytes/sec\n"
_IOZONE_GROUPS = ("initial writers", "rewriters", "readers", "re-readers", "random readers")


def iozone(draw: random.Random) -> Files:
    """A block a test of several processes."""
    processes, record = draw.choice((1, 2, 64)), draw.choice((4, 32, 1024))
    share = record * draw.choice((1, 8, 1000))
    text = _IOZONE + draw.choice(("", "\tInclude fsync in write timing\n", "\tSYNC Mode. \n"))
    text += draw.choice(("", "\tStonewall disabled\n")) + (
        f"\tEach process writes a {share} kByte file in {record} kByte records\n\n"
    )
    stamps, at_s = [], STARTED_S
    for group in draw.sample(_IOZONE_GROUPS, draw.randint(1, 4)):
        seconds = draw.choice((0.01, 1.0, 50.0)) * draw.uniform(0.5, 2.0)
        at_s += seconds
        rate = processes * share / seconds
        text += (
            f"\tChildren see throughput for {processes} {group} \t= {rate * 1.2:.2f} kB/sec\n"
            f"\tParent sees throughput for {processes} {group} \t= {rate:.2f} kB/sec\n"
            f"\tMin throughput per process \t\t\t= {rate / processes:.2f} kB/sec \n"
            f"\tMax throughput per process \t\t\t= {rate / processes * 1.3:.2f} kB/sec\n"
            f"\tAvg throughput per process \t\t\t= {rate / processes:.2f} kB/sec\n"
            f"\tMin xfer \t\t\t\t\t= {share:.2f} kB\n\n"
        )
        stamps.append(("stdout", len(text), at_s))
    text += "\niozone test complete.\n"
    return {
        "capture.json": capture(draw, stamps), "stdout.txt": text.encode(), "stderr.txt": b"\n",
    }  # fmt: skip


def elbencho(draw: random.Random) -> Files:
    """An object a line, all numbers texts."""

    def figures(done: Work) -> dict[str, str]:
        return {
            "iops": str(int(done.iops)), "bytes/s": str(int(done.bandwidth)),
            "bytes": str(done.moved),
        }  # fmt: skip

    lines = []
    for kind in draw.choices(("WRITE", "READ", "RWMIX50", "MKDIRS", "SYNC", "STAT"), k=3):
        done = work(draw)
        config = {"block_size": str(done.request_bytes), "random_offsets": "false"}
        last: dict[str, Any] = {"elapsed_time_ms": str(int(done.seconds * 1000)), "entries": "4"}
        last |= {"entries/s": str(int(4 / done.seconds) if done.seconds else 4)}
        if kind in ("WRITE", "READ") or kind.startswith("RWMIX"):
            last |= figures(done)
            if draw.random() < 0.7:
                del last["entries/s"]
        if kind.startswith("RWMIX"):
            last["rwmix_read"] = figures(done)
        lines.append(json.dumps({"phase_type": kind, "config": config, "last_done": last}))
    return {"elbencho.json": ("\n".join(lines) + "\n").encode()}
