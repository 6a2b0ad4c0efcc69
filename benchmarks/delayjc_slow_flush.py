"""What batching journal commits gives on a disk whose flush is slow.

    python benchmarks/delayjc_slow_flush.py DIRECTORY [--pairs 7] [--window-us 1000] [--threads 16]

As root. The disk is a loop device over a FUSE file (slow_flush.c) whose flush takes 4 ms. On ext4,
IOzone's writers (`-t N -s 128k -r 32k -i 0 -x -+n -e`) each create a file, write 128 KiB in 32 KiB
records and fsync: without libdelayjc, with it (flush first), and with it but no flush, in turn.
Told are medians and the ratios of pairs: journal commits a run (/proc/fs/jbd2/*/info before and
after; one of them is IOzone's own, which deletes the files and calls sync() at its end; no periodic
one is among them), IOzone's Children and Parent throughput, and the mean time a call of fsync took
with the hold in it. Skipped, with the reason, where FUSE, loop devices, IOzone or a compiler are
not there. Works in a folder of its own below DIRECTORY, which it removes.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from eeio.measure.journal import delayjc

HERE = Path(__file__).parent
SIZE_BYTES = 512 << 20
FLUSH_US = 4000

# Preloaded before the library, and alone: how long each fsync() took, hold and all.
TIMER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int fsync(int file)
{
	struct timespec begun, done;
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	clock_gettime(CLOCK_MONOTONIC, &begun);
	int result = next(file);
	clock_gettime(CLOCK_MONOTONIC, &done);
	int log = open(getenv("FSYNC_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dprintf(log, "%.0f\n", (done.tv_sec - begun.tv_sec) * 1e9 + done.tv_nsec - begun.tv_nsec);
	close(log);
	return result;
}
"""


@dataclass(frozen=True)
class Result:
    """Of one run of IOzone; `windows` is the library's own counter, 0 where it was not there."""

    commits: int
    children_kb_per_s: float
    parent_kb_per_s: float
    fsync_ms: float
    calls: int
    windows: int


def run(*arguments: str, **options: object) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr or done.stdout}")
    return str(done.stdout)


def cannot_run() -> str | None:
    if os.geteuid() != 0:
        return "root is needed: loop devices and mounts"
    for program, package in (
        ("cc", "gcc"), ("iozone", "iozone3"), ("fusermount3", "fuse3"),
        ("pkg-config", "pkg-config"), ("mkfs.ext4", "e2fsprogs"), ("losetup", "mount"),
    ):  # fmt: skip
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"{program} is missing: install the package {package}"
    if subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode != 0:
        return "FUSE's headers are missing: install the package libfuse3-dev"
    for node in ("/dev/fuse", "/dev/loop-control"):
        if not Path(node).exists():
            return f"{node} is missing"
    return None


def build(folder: Path) -> None:
    flags = run("pkg-config", "--cflags", "--libs", "fuse3").split()
    run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-o", str(folder / "slow_flush"),
        str(HERE / "slow_flush.c"), *flags, "-pthread")  # fmt: skip
    (folder / "timer.c").write_text(TIMER)
    run(
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(folder / "timer.so"),
        str(folder / "timer.c"),
        "-ldl",
    )
    source = Path(delayjc.__file__).with_name("libdelayjc.c")
    run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread", "-o",
        str(folder / delayjc.NAME), str(source), "-ldl")  # fmt: skip


def unmount(fuse: Path, server: "subprocess.Popen[bytes]") -> None:
    """The loop device lets go a little later when somebody looks at it meanwhile."""
    for option in ("-u",) * 100 + ("-uz",):
        done = subprocess.run(
            ["fusermount3", option, str(fuse)], stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode == 0 or server.poll() is not None:
            break
        time.sleep(0.1)
    server.wait(30)


@contextmanager
def slow_disk(folder: Path) -> Iterator[tuple[Path, Path]]:
    """ext4 on the disk: its mount point, and the journal's info."""
    fuse, ext4 = folder / "fuse", folder / "ext4"
    fuse.mkdir()
    ext4.mkdir()
    with ExitStack() as stack:
        server = subprocess.Popen(
            [str(folder / "slow_flush"), str(SIZE_BYTES), str(FLUSH_US), str(fuse)]
        )
        stack.callback(unmount, fuse, server)
        deadline_s = time.monotonic() + 10
        while not (fuse / "disk").exists():
            if server.poll() is not None or time.monotonic() > deadline_s:
                sys.exit("skipped: FUSE cannot be mounted here")
            time.sleep(0.01)
        node = run("losetup", "--find", "--show", str(fuse / "disk")).strip()
        stack.callback(run, "losetup", "--detach", node)
        # Everything is initialized now, not by a kernel thread during the runs.
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)
        # The periodic commit would be counted.
        run("mount", "-o", "noatime,commit=600", node, str(ext4))
        stack.callback(run, "umount", str(ext4))
        yield ext4, Path(f"/proc/fs/jbd2/{Path(node).name}-8/info")


def transactions(info: Path) -> int:
    return int(info.read_text().split()[0])


def iozone(
    folder: Path, target: Path, info: Path, threads: int, shim: dict[str, str] | None
) -> Result:
    files = [target / f"f{k}" for k in range(threads)]
    log, state = Path("/dev/shm") / f"{folder.name}-log", Path("/dev/shm") / f"{folder.name}-state"
    preload = [str(folder / "timer.so")]
    environment = {**os.environ, "FSYNC_LOG": str(log)}
    if shim is not None:
        preload.append(shim["LD_PRELOAD"])
        environment.update(shim, DELAYJC_STATE=str(state))
    environment["LD_PRELOAD"] = ":".join(preload)
    run("sync", "-f", str(target))
    before = transactions(info)
    try:
        message = run(
            "iozone", "-t", str(threads), "-s", "128k", "-r", "32k", "-i", "0", "-x", "-+n", "-e",
            "-F", *map(str, files), env=environment, cwd=folder,
        )  # fmt: skip
        commits = transactions(info) - before
        calls_ns = [float(line) for line in log.read_text().split()]
        total = delayjc.read_counters(state).total if shim is not None else None
    finally:
        for path in (log, state):
            path.unlink(missing_ok=True)
    found = re.findall(r"(Children|Parent) sees? throughput for.*?= *([0-9.]+)", message)
    children, parent = (float(value) for _, value in found[:2])
    return Result(
        commits, children, parent, statistics.mean(calls_ns) / 1e6, len(calls_ns),
        total.windows if total else 0,
    )  # fmt: skip


def table(names: tuple[str, ...], results: dict[str, list[Result]]) -> None:
    columns = (
        ("commits a run", lambda r: r.commits, "{:.0f}"),
        ("Children MB/s", lambda r: r.children_kb_per_s * 1024 / 1e6, "{:.1f}"),
        ("Parent MB/s", lambda r: r.parent_kb_per_s * 1024 / 1e6, "{:.1f}"),
        ("mean fsync ms", lambda r: r.fsync_ms, "{:.2f}"),
        ("windows a run", lambda r: r.windows, "{:.0f}"),
    )
    base = names[0]
    for title, value, form in columns:
        cells = []
        for name in names:
            values = sorted(value(r) for r in results[name])
            spread = f"{form.format(values[0])}..{form.format(values[-1])}"
            cell = f"{name} {form.format(statistics.median(values))} ({spread})"
            if name != base:
                pairs = zip(results[name], results[base], strict=True)
                ratios = sorted(value(a) / value(b) for a, b in pairs if value(b))
                if ratios:
                    cell += f" x{statistics.median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f})"
            cells.append(cell)
        print(f"{title:14} " + " | ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--window-us", type=int, default=1000)
    arguments = parser.parse_args()
    reason = cannot_run()
    if reason is not None:
        print(f"skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="eeio-delayjc-", dir=arguments.directory) as name:
        folder = Path(name)
        build(folder)
        library = folder / delayjc.NAME
        variants: dict[str, dict[str, str] | None] = {"EXT4": None}
        for label, flush_first in (("delayJC", True), ("delayJC without flush", False)):
            variants[label] = delayjc.settings(
                Path("/unused"), arguments.window_us, flush_first=flush_first, library=library
            )
        results: dict[str, list[Result]] = {label: [] for label in variants}
        with slow_disk(folder) as (target, info):
            for number in range(arguments.pairs + 1):
                order = list(variants.items())
                for label, shim in order if number % 2 else order[::-1]:
                    found = iozone(folder, target, info, arguments.threads, shim)
                    if number == 0:
                        continue  # warms up
                    results[label].append(found)
                    print(f"{number} {label}: {found} load {os.getloadavg()[0]}", flush=True)
        print(
            f"\n{arguments.pairs} rounds, {arguments.threads} writers, window "
            f"{arguments.window_us} us, flush {FLUSH_US} us: median (lowest..highest) "
            "xratio to EXT4"
        )
        table(tuple(variants), results)


if __name__ == "__main__":
    main()
