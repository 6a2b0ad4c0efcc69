"""A program under strace or bpftrace: the same events of both."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from eeio.errors import EeioError, RejectedError, ToolOutputError
from eeio.measure.foreground import GATE
from eeio.paths import temporary_folder
from eeio.traces import bpftrace, strace
from eeio.traces.events import Event, Unobserved
from eeio_power.suspension import suspended_s

NAMES = ("strace", "bpftrace")
OVERHEAD = {
    "strace": "the program ran under strace, which stops it at each call (17 to 29 us in "
    "benchmarks/README.md) and draws power: MB/s, J and MB/J are the traced program's. With "
    "small requests they differ much from the untraced ones",
    "bpftrace": "the program ran under bpftrace (3 to 9 us a call where that was measured, "
    "benchmarks/README.md), which takes power itself: MB/s, J and MB/J are the traced program's",
}
"""The overhead of tracing in the measurement, as text."""
# bpftrace compiles and attaches 36 probes: some seconds, on a slow board more.
_START_S = 120.0
_STOP_S = 60.0
# A clock that moved by more than this is no longer the meters'.
_DRIFT_S = 0.05
_INITIAL_PIDS = "pid:[4026531836]"


def check(tracer: str, folder: Path | None = None) -> None:
    """Raises RejectedError where this tracer cannot work; before anything is started."""
    reason = _no_strace() if tracer == "strace" else no_bpftrace()
    if reason is not None:
        raise RejectedError(reason)
    if folder is not None and (
        any(folder.glob("strace.*")) or (folder / bpftrace.OUTPUT_FILE).exists()
    ):
        raise RejectedError(f"{folder}: contains a trace; choose another with -o")


class Program(Protocol):
    """What is done right before a program and right after it."""

    def start(self) -> None: ...
    def end(self) -> None: ...


def run(
    tracer: str,
    command: Sequence[str],
    folder: Path,
    program: Program,
    *,
    to_stderr: bool,
    unobserved: set[Unobserved] | None = None,
) -> tuple[int, list[Event]]:
    """Runs a program to its end; its exit code, or -N after signal N, and its I/O.

    Times of events are on CLOCK_MONOTONIC. Adds I/O with unobserved bytes to `unobserved`. Raises
    EeioError if the trace is incomplete.
    """
    traced = _under_bpftrace
    if tracer == "strace":
        traced = _under_strace
    return traced(command, folder, program, sys.stderr if to_stderr else None, unobserved)


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise


# --- strace --------------------------------------------------------------------------------------


def _no_strace() -> str | None:
    if shutil.which("strace"):
        return None
    return "strace is missing: install the package strace"


def _under_strace(
    command: Sequence[str],
    folder: Path,
    program: Program,
    out: object,
    unobserved: set[Unobserved] | None,
) -> tuple[int, list[Event]]:
    # strace stamps the wall clock; the meters the monotonic one.
    ahead_s = time.time() - time.monotonic()
    program.start()
    exit_code = _wait(
        subprocess.Popen(
            [
                "strace",
                "-ff",
                "-ttt",
                "-T",
                "-y",
                "-s0",
                "-e",
                "signal=none",
                "-e",
                f"trace={strace.CALLS}",
                "-o",
                str(folder / "strace"),
                *command,
            ],
            start_new_session=True,
            stdout=out,  # type: ignore[call-overload]
        )
    )
    drift_s = time.time() - time.monotonic() - ahead_s
    program.end()
    events = [
        event._replace(start_s=event.start_s - ahead_s)
        for event in strace.read(sorted(folder.glob("strace.*")), unobserved)
    ]
    if abs(drift_s) > _DRIFT_S:
        raise EeioError(f"the clock was set by {drift_s:+.3f} s while tracing: no power fits it")
    return exit_code, events


# --- bpftrace ------------------------------------------------------------------------------------


def no_bpftrace(
    kernel: Path = Path("/sys/kernel"), pids: str = "/proc/self/ns/pid", user: int | None = None
) -> str | None:
    """Why bpftrace cannot trace here, with the remedy; None if it can be tried."""
    instead = "or take --tracer strace"
    if shutil.which("bpftrace") is None:
        return f"bpftrace is missing: install the package bpftrace, {instead}"
    if (os.geteuid() if user is None else user) != 0:
        return f"bpftrace needs root: run eeio as root, {instead}"
    if not (kernel / "btf" / "vmlinux").exists():
        return f"{kernel}/btf/vmlinux: this kernel has no BTF, which bpftrace needs; {instead[3:]}"
    calls = "events/syscalls/sys_enter_pread64"
    if not any((kernel / root / calls).exists() for root in ("tracing", "debug/tracing")):
        return (
            f"{kernel}/tracing/{calls}: not there: the kernel has no tracepoints of system calls, "
            f"or tracefs is not mounted (mount -t tracefs tracefs {kernel}/tracing); {instead[3:]}"
        )
    if str(Path(pids).readlink()) != _INITIAL_PIDS:
        return (
            "bpftrace needs the host's process numbers, which this container does not see: "
            f"start it with --pid=host, {instead}"
        )
    return None


def _under_bpftrace(
    command: Sequence[str],
    folder: Path,
    program: Program,
    out: object,
    unobserved: set[Unobserved] | None,
) -> tuple[int, list[Event]]:
    """The program waits at a gate until all probes are there, so that none of its calls is missed;
    when bpftrace does not get that far it is never started."""
    path = folder / bpftrace.OUTPUT_FILE
    mounts = dict.fromkeys(bpftrace.mount_lines(_mountinfo()))
    gate, opened = os.pipe()
    process = None
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", GATE, str(gate), *command],
            start_new_session=True,
            pass_fds=(gate,),
            stdout=out,  # type: ignore[call-overload]
        )
        with _Bpftrace(process.pid, path) as tracer:
            program.start()
            os.write(opened, b".")
            exit_code = _wait(process)
            program.end()
            if _lives(process.pid):
                print(
                    "trace: the program left processes behind; they are traced no further",
                    file=sys.stderr,
                )
    finally:
        os.close(gate)
        os.close(opened)  # without the byte the gate ends by itself
        if process is not None and process.poll() is None:
            process.wait()
    mounts |= dict.fromkeys(bpftrace.mount_lines(_mountinfo()))
    with path.open("a", encoding="utf-8") as file:
        file.writelines([f"clock {round(tracer.ahead_s * 1e9)}\n", *mounts])
    return exit_code, bpftrace.read(path, unobserved)


def _mountinfo() -> str:
    return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class _Bpftrace:
    """A running bpftrace. `ahead_s` is its clock's lead over CLOCK_MONOTONIC.

    It starts the command of -c when all probes are attached, and ends with it: ours is cat, whose
    first echo says "ready", and whose end is the end of its input, also when we are killed.
    """

    def __init__(self, pid: int, path: Path) -> None:
        self._path = path
        self._begun_s = time.monotonic()
        self._before_s = suspended_s()
        self._ready_s = self._begun_s
        self.ahead_s = 0.0
        self._messages = tempfile.TemporaryFile(dir=temporary_folder())  # noqa: SIM115 # lives as long as bpftrace
        self._process = subprocess.Popen(
            [
                "bpftrace",
                "-q",
                "-k",
                "-o",
                str(path),
                "-c",
                shutil.which("cat") or "/bin/cat",
                "-e",
                bpftrace.program(),
                str(pid),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,
            env={**bpftrace.BUFFER, **os.environ, **bpftrace.ENVIRONMENT},
        )

    def __enter__(self) -> "_Bpftrace":
        try:
            self._wait_until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        message = self._end()
        if kind is not None:
            return
        if self._process.returncode != 0:
            raise ToolOutputError(f"{self._path}: bpftrace ended too early: {message}")
        self.ahead_s = self._offset_s()
        if abs(suspended_s() - self._before_s) > _DRIFT_S:
            raise EeioError("the machine was suspended while tracing: no power fits the times")

    def _wait_until_ready(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it reports why on standard error
            self._process.stdin.write(b"ready\n")
            self._process.stdin.flush()
        readable, _, _ = select.select([self._process.stdout], [], [], _START_S)
        if not readable or not self._process.stdout.readline():
            message = self._end()
            raise RejectedError(
                f"bpftrace did not start, so the command was not run: {message}; or use --tracer "
                "strace"
            )
        self._ready_s = time.monotonic()

    def _offset_s(self) -> float:
        """nsecs is CLOCK_BOOTTIME where the kernel offers it, else CLOCK_MONOTONIC: they differ by
        the time that the machine was suspended. It began between our start and its first echo."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            began_s = bpftrace.began_ns(file, str(self._path)) / 1e9
        ahead_s = self._before_s
        if abs(ahead_s) < 1e-3:
            return 0.0
        fits = [s for s in (0.0, ahead_s) if self._begun_s <= began_s - s <= self._ready_s]
        if len(fits) != 1:
            raise EeioError(
                f"bpftrace's clock ({began_s:.3f} s) is ambiguous: the machine was suspended "
                f"for {ahead_s:.3f} s since it started; use --tracer strace"
            )
        return fits[0]

    def _end(self) -> str:
        """Ends bpftrace, if it has not ended; returns its error messages."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").splitlines()
        # That it may not lock more memory is said where it works all the same.
        errors = [
            line for line in lines if "error" in line.lower() and "RLIMIT_MEMLOCK" not in line
        ]
        return "; ".join(errors[:3] or lines[-1:]) or f"exit code {self._process.returncode}"
