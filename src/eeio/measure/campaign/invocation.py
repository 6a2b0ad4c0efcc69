"""One process of a profile: started, watched, and its output stored with times."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from eeio.errors import EeioError
from eeio.files import inputs
from eeio.machine.owner import Orphans, start_ticks
from eeio.machine.undo import UndoEntry, UndoJournal, end_group, mark
from eeio.record.tools.capture import Capture, Stamp

TIMED_OUT = 124  # as timeout(1)


def invoke(
    command: Sequence[str],
    *,
    directory: Path,
    home: Path,
    environment: Mapping[str, str],
    factors: Mapping[str, str],
    timeout_s: float,
    journal: UndoJournal,
    umask: int = -1,
) -> Capture:
    """Runs `command` in its own process group; stdout.txt, stderr.txt and capture.json are left
    in `directory`, each piece of output stamped with the monotonic clock as it came. Of more
    output than `eeio.files.inputs` allows the beginning and the end are stored.

    Whatever ends this call, no process that it started is left, also none in a session of its own;
    `Capture.left_running` counts those that went on after the end. `umask` is the command's; -1 is
    the caller's.
    """
    orphans = Orphans(mark())
    started_utc_s = time.time()
    started_s = time.monotonic()
    deadline_s = started_s + timeout_s
    try:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**environment, **mark()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            umask=umask,
        )
    except OSError as error:
        raise EeioError(f"{command[0]}: {error.strerror}; install the profile again") from error
    # Noted at once, so that a tool which outlives a killed campaign is found and ended.
    entry = UndoEntry("process", str(process.pid), str(start_ticks(process.pid) or 0))
    journal.add(entry)
    try:
        stamps, left_out, ended_s = _drain(process, directory, deadline_s)
        exit_code = TIMED_OUT if ended_s is None else process.wait()
        ended_s = ended_s or time.monotonic()
    finally:
        if process.poll() is None:
            end_group(process.pid)
            process.wait()
        else:
            # Children that outlive the wrapper would disturb the next run.
            _end_leftovers(process.pid)
        left_running = orphans.end(process.pid)
        journal.forget(entry)
    capture = Capture(
        directory=directory,
        factors=factors,
        exit_code=exit_code,
        started_monotonic_s=started_s,
        ended_monotonic_s=ended_s,
        started_utc_s=started_utc_s,
        stamps=tuple(stamps),
        left_out=left_out,
        left_running=left_running,
    )
    capture.save()
    return capture


def _drain(
    process: "subprocess.Popen[bytes]", directory: Path, deadline_s: float
) -> tuple[list[Stamp], dict[str, int], float | None]:
    """Copies both pipes to files until the wrapper has ended: the stamps, the bytes of each stream
    that were not kept, and when it ended, or None: time is out.

    The wrapper's end counts, not that of the pipes: a child it left behind may hold them open.
    """
    assert process.stdout is not None and process.stderr is not None
    stamps: list[Stamp] = []
    ended_s: float | None = None
    with (
        _End(process) as end,
        selectors.DefaultSelector() as selector,
        (directory / "stdout.txt").open("wb") as stdout,
        (directory / "stderr.txt").open("wb") as stderr,
        process.stdout,
        process.stderr,
    ):
        streams = [_Stream("stdout", stdout), _Stream("stderr", stderr)]
        selector.register(process.stdout, selectors.EVENT_READ, streams[0])
        selector.register(process.stderr, selectors.EVENT_READ, streams[1])
        selector.register(end.pipe, selectors.EVENT_READ)
        while True:
            # After the end only data already in the pipes are read.
            remaining: float = 0
            if ended_s is None:
                remaining = deadline_s - time.monotonic()
            ready = [key for key, _ in selector.select(max(remaining, 0))]
            if remaining < 0 or (not ready and ended_s is not None):
                left_out = {s.name: count for s in streams if (count := s.finish())}
                return stamps, left_out, ended_s
            for key in ready:
                if key.fd == end.pipe:
                    ended_s = end.monotonic_s()
                    selector.unregister(end.pipe)
                    continue
                stream: _Stream = key.data
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                stream.take(chunk)
                if len(stamps) < inputs.STAMPS:
                    stamps.append(Stamp(stream.name, stream.size, time.monotonic()))


class _Stream:
    """A tool's output: its beginning and its end, and the number of bytes between them."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self.size = 0
        self._file = file
        self._tail = bytearray()

    def take(self, chunk: bytes) -> None:
        room = max(0, inputs.KEPT_HEAD_BYTES - self.size)
        self.size += len(chunk)
        self._file.write(chunk[:room])
        # Written at once: a watcher of the folder reads the meters at each output of the tool.
        self._file.flush()
        self._tail += chunk[room:]
        # Not at every chunk: moving the rest takes time.
        if len(self._tail) > 2 * inputs.KEPT_TAIL_BYTES:
            del self._tail[: -inputs.KEPT_TAIL_BYTES]

    def finish(self) -> int:
        """Writes the end behind the beginning; how many bytes are in neither."""
        tail = self._tail[-inputs.KEPT_TAIL_BYTES :]
        left_out = max(0, self.size - inputs.KEPT_HEAD_BYTES - len(tail))
        if left_out:
            self._file.write(b"\n[eeio: %d bytes are left out here]\n" % left_out)
        self._file.write(tail)
        return left_out


class _End:
    """Reports through a pipe that a process has ended, and when. (pidfd_open would do the same, but
    not on the old kernels of many boards.)"""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.pipe, self._write_end = os.pipe()
        self._thread = threading.Thread(target=self._watch, args=(process,), daemon=True)

    def __enter__(self) -> "_End":
        self._thread.start()
        return self

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        process.wait()
        os.write(self._write_end, repr(time.monotonic()).encode())

    def monotonic_s(self) -> float:
        """When the process ended; to be called when the pipe is readable."""
        return float(os.read(self.pipe, 64))

    def __exit__(self, *_: object) -> None:
        # When the time is out the process still runs, and its end is awaited elsewhere.
        if self._thread.is_alive():
            self._thread.join(0.05)
        if not self._thread.is_alive():
            os.close(self.pipe)
            os.close(self._write_end)


def _end_leftovers(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
