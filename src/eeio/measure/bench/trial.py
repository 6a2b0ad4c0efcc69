"""One execution of a command before the campaign: does it work, and how long does it take?"""

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eeio.errors import EeioError, RejectedError
from eeio.machine.caches import flush
from eeio.machine.counters import read_counters
from eeio.machine.filesystem import BlockDevice, backing_device
from eeio.machine.owner import Orphans
from eeio.machine.undo import group_members, mark
from eeio.measure.bench.plan import Executions, How
from eeio.measure.bench.request import Command
from eeio.measure.campaign import command_bytes
from eeio.measure.campaign.pilots import READINGS
from eeio.paths import temporary_folder

_LOOP = Path(__file__).with_name("eeio-command-1.0.0") / "loop.py"
# A run of repeated executions lasts this long at least, s, so that what a run costs beside them
# (starting, flushing, reading meters) is little.
_REPEATED_S = 1.0
_MOST_TRIALS = 3
_CONTROL_S = 0.1
_MOST_EXECUTIONS = 100_000
# Less than this is left of a disk on which a command failed for it.
_FULL_BYTES = 1 << 20


@dataclass(frozen=True)
class Trial:
    """One execution of a command, until what it wrote was on the drive; None for bytes of which
    the kernel keeps no account."""

    durable_s: float
    bytes_read: int | None
    bytes_written: int | None
    writes: bool = True
    """Whether it changed a file system, or may have."""

    @property
    def may_be_of_others(self) -> bool:
        """Whether only the drive's count shows writes. A command that changes names does so each
        time; another program writes now and then."""
        return self.writes and self.bytes_written == 0

    def executions(self, how: How, period_s: float | None) -> Executions:
        """How a run executes the command: once, or as often as the slowest meter (a reading in
        `period_s`; None without a meter) resolves."""
        # A prepared or cold state lasts for one execution only.
        alone = how.prepare or how.conclude or how.cold
        if alone or self.durable_s >= how.shortest_s:
            return Executions(writes=self.writes)
        if period_s is None:
            # Runs that are decided one by one, and pauses, need processes of their own.
            may_share = how.precision is None and how.settle_s == 0.0
            return Executions(writes=self.writes, share_process=may_share and not self.writes)
        wanted_s = max(_REPEATED_S, READINGS * period_s)
        count = min(_MOST_EXECUTIONS, math.ceil(wanted_s / max(self.durable_s, 1e-5)))
        return Executions(count, self.writes)


def run(command: Command, how: How, directory: str, warmup: int) -> Trial:
    """Runs a command `warmup` times and once more. EeioError where it fails, RejectedError where it
    cannot be run at all."""
    for left in reversed(range(warmup + 1)):
        _shell(how.prepare, how, directory, "--prepare")
        if left == 0:  # no waiting for writes of other programs
            flush(Path(directory), None)
        trial = _once(command, how, directory)
        _shell(how.conclude, how, directory, "--conclude")
    for _ in range(_MOST_TRIALS - 1):
        if not trial.may_be_of_others or trial.executions(how, 0.0).count == 1:
            return trial
        flush(Path(directory), None)
        trial = _once(command, how, directory)
    if trial.may_be_of_others and _others_write(directory):
        return replace(trial, writes=False)
    return trial


def _others_write(directory: str) -> bool:
    """Whether the drive writes without the command, too: then its count shows nothing."""
    drive = backing_device(Path(directory))[0]
    before_bytes = _written_bytes(drive)
    time.sleep(_CONTROL_S)
    flush(Path(directory), None)
    return _written_bytes(drive) - before_bytes >= command_bytes.LEAST_CHANGE_BYTES


def _once(command: Command, how: How, directory: str) -> Trial:
    with tempfile.TemporaryDirectory(prefix="eeio-bench-", dir=temporary_folder()) as output:
        ignore_failure = "off"
        if how.ignore_failure:
            ignore_failure = "on"
        options = [
            f"command={command.as_factor}",
            "count=1",
            f"directory={directory}",
            f"output={output}",
            f"ignore_failure={ignore_failure}",
        ]
        if how.stdin:
            options.append(f"stdin={how.stdin}")
        drive = backing_device(Path(directory))[0]
        before_bytes = _written_bytes(drive)
        orphans = Orphans(mark())
        ended = _ended([sys.executable, "-I", "-S", str(_LOOP), *options], how.timeout_s)
        code, stderr = ended.code, ended.stderr
        synced = flush(Path(directory), None)
        changed_bytes = _written_bytes(drive) - before_bytes
        left = orphans.end(ended.group)
        results = Path(output) / "command.json"
        if code is None:
            raise EeioError(
                f"{command.text}: not done after {how.timeout_s:g} s, and was ended; give it more "
                "by --timeout"
            )
        if code < 0:
            name = signal.Signals(-code).name
            raise EeioError(f"{command.text}: the process that times it was killed ({name})")
        if not results.is_file():
            raise RejectedError(f"{stderr or 'it cannot be run'}")
        body = json.loads(results.read_text(encoding="utf-8"))
    if code != 0:
        hint = ""
        if code == 127:
            hint = "; a shell finds no such command"
        free = os.statvfs(directory)
        if free.f_bavail * free.f_frsize < _FULL_BYTES:
            hint += f"; the disk of {directory} is full"
        message = ""
        if stderr:
            message = f": {stderr}"
        raise EeioError(
            f"{command.text}: exit code {code}{message}{hint}; to measure "
            "it anyway, use --ignore-failure"
        )
    if left := left + body["left"]:
        raise EeioError(
            f"{command.text}: {left} of its processes continued in the background, so its time "
            "would be incomplete; let it wait for them"
        )
    lasted_s, account = float(body["executed_s"]), body["account"]
    if account is None:  # it may have written
        return Trial(lasted_s + synced.end_s - synced.start_s, None, None)
    written = max(0, account["write_bytes"] - account["cancelled_write_bytes"])
    writes = written > 0 or changed_bytes >= command_bytes.LEAST_CHANGE_BYTES
    durable_s = lasted_s + (synced.end_s - synced.start_s if writes else 0.0)
    return Trial(durable_s, account["read_bytes"], written, writes)


def _written_bytes(drive: BlockDevice | None) -> int:
    """Of a drive, since boot; 0 without one."""
    if drive is None:
        return 0
    return read_counters(drive).written_bytes


@dataclass(frozen=True)
class _Ended:
    """A program that has ended: its exit code (None where the time was out), its last words, the
    number of its process group, and how many processes of that group were ended after it."""

    code: int | None
    stderr: str
    group: int
    left: int


def _ended(options: Sequence[str], timeout_s: float, directory: str | None = None) -> _Ended:
    with tempfile.TemporaryFile(dir=temporary_folder()) as errors:
        process = subprocess.Popen(
            options,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            cwd=directory,
            env={**os.environ, **mark()},
        )
        try:
            code = _exit_code(process, timeout_s)
            left = len(group_members(process.pid))
        finally:
            _end(process)
        errors.seek(max(0, errors.tell() - 4096))
        lines = errors.read().decode(errors="replace").strip().splitlines()
    last_line = ""
    if lines:
        last_line = lines[-1][:300]
    return _Ended(code, last_line, process.pid, left)


def _exit_code(process: "subprocess.Popen[bytes]", timeout_s: float) -> int | None:
    """None where the time was out."""
    try:
        # Popen would look for the end every 50 ms.
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # a kernel before 5.3
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout_s)
        return None
    try:
        has_ended = select.select([descriptor], [], [], timeout_s)[0]
    finally:
        os.close(descriptor)
    if not has_ended:
        return None
    return process.wait()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The complete group, including background processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _shell(text: str | None, how: How, directory: str, option: str) -> None:
    """What is left of it would take power during the run, or work for the command unmeasured."""
    if not text:
        return
    orphans = Orphans(mark())
    ended = _ended(["sh", "-c", text], how.timeout_s, directory)
    left = ended.left + orphans.end(ended.group)
    if ended.code is None:
        raise EeioError(f"{option} {text}: not done after {how.timeout_s:g} s, and was ended")
    if ended.code != 0:
        words = ""
        if ended.stderr:
            words = f": {ended.stderr}"
        raise EeioError(f"{option} {text}: exit code {ended.code}{words}")
    if left:
        raise EeioError(
            f"{option} {text}: {left} of its processes continued in the background, and were "
            "ended; let it wait for them"
        )
