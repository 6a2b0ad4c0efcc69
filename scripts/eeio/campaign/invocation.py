"""One process of a profile: started, watched, and everything it said kept with the time it came."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from eeio.target.undo import Entry, UndoJournal, end_group, start_ticks
from eeio_results.errors import EeioError
from eeio_results.tools.capture import Capture, Stamp

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
) -> Capture:
    """Runs `command` in its own process group; stdout.txt, stderr.txt and capture.json are left
    in `directory`, each piece of output stamped with the monotonic clock as it came.

    Whatever ends this call, no process of the group is left.
    """
    started_utc_s = time.time()
    started_s = time.monotonic()
    deadline_s = started_s + timeout_s
    try:
        process = subprocess.Popen(
            command,
            cwd=home,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise EeioError(f"{command[0]}: {error.strerror}; install the profile again") from error
    # Noted at once, so that a tool which outlives a killed campaign is found and ended.
    entry = Entry("process", str(process.pid), str(start_ticks(process.pid) or 0))
    journal.add(entry)
    try:
        stamps, timed_out = _drain(process, directory, deadline_s)
        exit_code = TIMED_OUT if timed_out else _wait(process, deadline_s)
        ended_s = time.monotonic()
    finally:
        if process.poll() is None:
            end_group(process.pid)
            process.wait()
        else:
            # Children that outlive the wrapper would disturb the next run.
            _end_leftovers(process.pid)
        journal.forget(entry)
    capture = Capture(
        directory=directory,
        factors=factors,
        exit_code=exit_code,
        started_monotonic_s=started_s,
        ended_monotonic_s=ended_s,
        started_utc_s=started_utc_s,
        stamps=tuple(stamps),
    )
    capture.save()
    return capture


def _drain(
    process: "subprocess.Popen[bytes]", directory: Path, deadline_s: float
) -> tuple[list[Stamp], bool]:
    """Copies both pipes to files until the wrapper has ended and closed them, or time is out."""
    assert process.stdout is not None and process.stderr is not None
    stamps: list[Stamp] = []
    sizes = {"stdout": 0, "stderr": 0}
    with (
        selectors.DefaultSelector() as selector,
        (directory / "stdout.txt").open("wb") as stdout,
        (directory / "stderr.txt").open("wb") as stderr,
        process.stdout,
        process.stderr,
    ):
        selector.register(process.stdout, selectors.EVENT_READ, ("stdout", stdout))
        selector.register(process.stderr, selectors.EVENT_READ, ("stderr", stderr))
        while selector.get_map():
            remaining = deadline_s - time.monotonic()
            if remaining <= 0:
                return stamps, True
            for key, _ in selector.select(remaining):
                name, file = key.data
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                file.write(chunk)
                sizes[name] += len(chunk)
                stamps.append(Stamp(name, sizes[name], time.monotonic()))
    return stamps, False


def _wait(process: "subprocess.Popen[bytes]", deadline_s: float) -> int:
    try:
        return process.wait(max(0.1, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        return TIMED_OUT


def _end_leftovers(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
