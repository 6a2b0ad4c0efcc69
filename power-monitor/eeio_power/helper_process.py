"""The helpers that read meters for us (`helper/*.c`): finding and running them.

Waking a Python thread ten times a second costs several times as much as the reading. The helper
wakes instead, and its readings wait in a pipe until the sampler fetches them, every two seconds.
`scripts/setup` compiles them if there is a C compiler; without one the meter reads by itself.
"""

import math
import os
import select
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import fcntl
from pathlib import Path
from typing import Protocol

from eeio.files.inputs import ANSWER_BYTES
from eeio.files.trust import why_untrusted
from eeio_power.errors import PowerError
from eeio_power.meters import Batch

NAME = "eeio-energy-reader"
IPMI_NAME = "eeio-ipmi-reader"
# The first place is for a copy with more read privileges than its user: only root can put it there.
LIBEXEC = Path("usr/local/libexec")
INSTALLED = LIBEXEC / NAME

# Room for the readings of more than ten minutes, in case they are not fetched (a disk that hangs).
PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
# Two seconds' readings are less; a larger buffer would come from the system at every call.
FETCH_BYTES = 1 << 14

FIRST_READING_S = 2.0
CAN_RUN_S = 10.0
LAST_MESSAGE_S = 0.5
# Somebody's helper that dies at every start must not be started all the time.
RESTART_PAUSE_S = 5.0

_MISSING = math.nan

# Begun ns, done ns, length of the rest.
_HEAD = struct.Struct("=qqq")


def _microseconds(period_s: float) -> str:
    return str(max(1000, round(period_s * 1e6)))


def find_reader(root: Path, name: str = NAME) -> Path | None:
    """The helper, if it was installed or compiled and may be run."""
    places = [root / LIBEXEC / name, Path(sys.prefix) / "libexec" / name]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    return None


class Helper(ABC):
    """A helper's process with a pipe for its records."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._started_s = 0.0
        self._finished = False
        self._died = f"{name} ended"
        self._untold = False

    @abstractmethod
    def _command(self) -> tuple[list[str], Sequence[int]]:
        """The command, and the descriptors it inherits. Raises OSError."""

    @abstractmethod
    def _batch(self) -> Batch:
        """The complete records of `_rest`, which keeps the beginning of another one."""

    def start(self) -> None:
        """Start reading. Raises OSError if the helper cannot be run."""
        self._rest = b""
        self._started_s = time.monotonic()
        command, descriptors = self._command()
        self._process = process = subprocess.Popen(
            command,
            pass_fds=descriptors,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={},
            # Ctrl-C is for the command that is measured; our end of its input ends it.
            start_new_session=True,
        )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        with suppress(OSError):  # more than an ordinary user may have: then the kernel's size
            fcntl(process.stdout.fileno(), _F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def ended(self) -> bool:
        """It was requested to finish, and all its records were fetched."""
        return self._finished and self._process is None

    def fetch(self) -> Batch:
        """The readings since the last call, without waiting.

        Raises PowerError if the helper died; it is started again by a later call.
        """
        if self._process is None:
            if self._finished:
                return self._batch()
            if self._untold:
                self._untold = False
                raise PowerError(self._died)
            self._start_again()
        process = self._process
        assert process is not None and process.stdout is not None
        while True:
            try:
                data = os.read(process.stdout.fileno(), FETCH_BYTES)
            except BlockingIOError:
                return self._batch()
            self._rest += data
            if len(data) == FETCH_BYTES:
                continue
            if data:
                return self._batch()
            batch = self._batch()
            message = self._reap()
            self._died = f"{self._name} ended: {message}"
            if batch.begun_s or self._finished:
                self._untold = not self._finished  # the next call reports it
                return batch
            raise PowerError(self._died)

    def wait(self, limit_s: float) -> None:
        """Wait until there may be something to fetch, `limit_s` at most."""
        if self._process is None or self._process.stdout is None:
            time.sleep(limit_s)
            return
        select.select([self._process.stdout], [], [], limit_s)

    def sample_now(self) -> None:
        """Ask for a reading outside the beat."""
        self._send(b".")

    def _send(self, data: bytes) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.closed:
            with suppress(BrokenPipeError):  # it died: the next fetch reports it
                os.write(process.stdin.fileno(), data)

    def finish(self) -> None:
        """Ask for a last reading; the helper ends then. `fetch` until `ended`."""
        self._finished = True
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def kill(self) -> None:
        """End a helper that does not end by itself."""
        self._finished = True
        if self._process is not None:
            with suppress(PermissionError, ProcessLookupError):
                self._process.kill()
            self._reap()

    def _start_again(self) -> None:
        pause_s = self._started_s + RESTART_PAUSE_S - time.monotonic()
        if pause_s > 0.0:
            raise PowerError(f"{self._died}; it is started again in {pause_s:.0f} s")
        try:
            self.start()
        except OSError as error:
            raise PowerError(f"{self._name} cannot be started: {error.strerror}") from error

    def _reap(self) -> str:
        """Close everything; returns the helper's last message."""
        process, self._process = self._process, None
        if process is None:
            return ""
        assert process.stdin and process.stdout and process.stderr
        message = b""
        if select.select([process.stderr], [], [], LAST_MESSAGE_S)[0]:
            message = os.read(process.stderr.fileno(), 1000)
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                stream.close()
        try:
            code = process.wait(LAST_MESSAGE_S)
        except subprocess.TimeoutExpired:
            return "it does not end"
        return message.decode("utf-8", "replace").strip() or f"exit code {code}"


class EnergyReader(Helper):
    """Reads RAPL's counters; `folder` is None for the kernel's powercap folder."""

    def __init__(
        self, helper: Path, folder: Path | None, zones: Sequence[str], period_s: float
    ) -> None:
        super().__init__(NAME)
        where: tuple[str, ...] = ()
        if folder is not None:
            where = ("-r", str(folder))
        self._arguments = [str(helper), *where, _microseconds(period_s), *zones]
        self._record_bytes = 8 * (2 + len(zones))
        self._pace = b""

    def start(self) -> None:
        super().start()
        # A restarted one continues at its previous rate.
        if self._pace:
            self._send(self._pace)

    def set_period(self, period_s: float | None) -> None:
        """Read so often from now on, at most once a millisecond and no less than each 127 ms; None:
        as at the start. A helper of before this was there reads once more instead."""
        ms = 0
        if period_s is not None:
            ms = min(127, max(1, round(period_s * 1e3)))
        self._pace = bytes([128 + ms])
        self._send(self._pace)

    def _command(self) -> tuple[list[str], Sequence[int]]:
        return self._arguments, ()

    def _batch(self) -> Batch:
        size = self._record_bytes // 8
        complete = len(self._rest) // self._record_bytes * self._record_bytes
        numbers = array("q")
        numbers.frombytes(self._rest[:complete])
        self._rest = self._rest[complete:]
        return Batch(
            begun_s=[n / 1e9 for n in numbers[0::size]],
            done_s=[n / 1e9 for n in numbers[1::size]],
            columns=tuple(
                [n / 1e6 if n >= 0 else _MISSING for n in numbers[c::size]] for c in range(2, size)
            ),
        )


class Peer(Protocol):
    """The process behind a `QuestionReader`."""

    def descriptors(self) -> tuple[int, int, float | None]:
        """Its input and output, and how long its first answer may take, s, if it is started now."""

    def close(self) -> None:
        """End it: it is out of step."""


class QuestionReader(Helper):
    """Queries a BMC through ipmitool; its answers are checked here, when they are fetched."""

    def __init__(
        self,
        helper: Path,
        peer: Peer,
        question: str,
        judge: Callable[[Sequence[str]], float],
        period_s: float,
        answer_s: float,
    ) -> None:
        super().__init__(IPMI_NAME)
        self._helper = helper
        self._peer = peer
        self._question = question
        self._judge = judge
        self._period_s = period_s
        self._answer_s = answer_s

    def _command(self) -> tuple[list[str], Sequence[int]]:
        into, out, first_s = self._peer.descriptors()
        first_s = first_s or self._answer_s
        numbers = (round(first_s * 1e3), round(self._answer_s * 1e3), into, out)
        head = [str(self._helper), _microseconds(self._period_s)]
        return [*head, *map(str, numbers), self._question], (into, out)

    def _batch(self) -> Batch:
        begun_s, done_s, values = [], [], []
        problems = {}
        place = 0
        while len(self._rest) - place >= _HEAD.size:
            begun_ns, done_ns, length = _HEAD.unpack_from(self._rest, place)
            if not 0 <= length <= ANSWER_BYTES:
                self._rest = b""
                raise PowerError(f"{self._name} is out of step: an answer of {length} bytes")
            end = place + _HEAD.size + length
            if end > len(self._rest):
                break
            text = self._rest[place + _HEAD.size : end].decode("utf-8", errors="replace")
            place = end
            try:
                # The last line is the beginning of the one that names the token.
                values.append(self._judge(text.splitlines()[:-1]))
            except PowerError as error:
                problems[len(values)] = str(error)
                values.append(_MISSING)
            begun_s.append(begun_ns / 1e9)
            done_s.append(done_ns / 1e9)
        self._rest = self._rest[place:]
        return Batch(begun_s, done_s, (values,), problems)

    def _reap(self) -> str:
        ours, well = self._process, False
        message = super()._reap()
        if ours is not None:
            well = self._finished and ours.returncode == 0
        if not well:
            self._peer.close()
        return message


def why_not_run(helper: Path) -> str | None:
    """Why this machine cannot run it, or root must not. Without arguments it prints its usage."""
    if (reason := why_untrusted(helper)) is not None:
        return f"{helper} is not run as root: {reason}"
    done = None
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [str(helper)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=CAN_RUN_S,
            check=False,
        )
    if done is None or done.returncode != 2 or b"usage: " not in done.stderr:
        return f"{helper} cannot be run"
    return None


def try_reader(helper: Path, folder: Path | None, zones: Sequence[str]) -> str | None:
    """Why the helper gives no reading of all zones, None if it does."""
    if (reason := why_untrusted(helper)) is not None:
        return f"{helper} is not run as root: {reason}"
    reader = EnergyReader(helper, folder, zones, 1.0)
    try:
        reader.start()
        deadline_s = time.monotonic() + FIRST_READING_S
        while not (batch := reader.fetch()).begun_s:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0.0:
                return f"{helper} gave no reading in {FIRST_READING_S:g} s"
            reader.wait(left_s)
    except OSError as error:
        return f"{helper} cannot be run: {error.strerror}"
    except PowerError as error:
        return str(error)
    finally:
        reader.kill()
    silent = [z for z, column in zip(zones, batch.columns, strict=True) if math.isnan(column[0])]
    if silent:
        return f"{helper} cannot read {', '.join(silent)}"
    return None
